//! Bodies that arrive in two segments, or in chunks. Knows what is worth trying, not what is right.

use super::super::explorer::Explorer;
use super::super::pieces::{TRIES, cut_of, request, widened};
use super::request_variants::{Questions, RequestVariants as _};
use mcproof_analysis::probes::{CHUNKED_BODY, IN_ONE_PIECE, IN_PIECES};
use mcproof_client::{RawHttpRequest, Sends, request_headers};
use serde_json::{Map, Value};
use std::time::Duration;

/// How long a server may take that has left requests without a response.
const BRIEFLY: Duration = Duration::from_secs(1);

fn patience(explorer: &Explorer<'_>) -> Duration {
    if explorer.was_silent() { BRIEFLY } else { explorer.sign_of_life() }
}

/// A message cut within a character, beside the same one at once.
pub(super) async fn take_in_pieces(explorer: &mut Explorer<'_>, http_requests: &Questions) {
    let whole = http_request(explorer, http_requests);
    let Some(expected) = explorer.http(IN_ONE_PIECE, None, &whole).await.map(|answer| answer.head.status) else { return };
    let patience = patience(explorer);
    for _ in 0..TRIES {
        let whole = http_request(explorer, http_requests);
        let Some(at) = cut_of(&whole.body) else { return };
        let cut = RawHttpRequest { sends: Sends::InTwo { at }, ..whole };
        let answer = explorer.http_within(IN_PIECES, &cut, patience).await;
        if answer.is_some_and(|answer| answer.head.status == expected) {
            return;
        }
    }
}

fn http_request(explorer: &Explorer<'_>, http_requests: &Questions) -> RawHttpRequest {
    let (method, params) = request(explorer);
    let named = request_headers(explorer.revision(), method, params.as_object().unwrap_or(&Map::new()));
    let mut http_request = http_requests.request(explorer, method, params);
    if let Ok(message) = serde_json::from_slice::<Value>(&http_request.body) {
        http_request.body = widened(message).to_string().into_bytes();
    }
    match named.into_iter().find(|(name, _)| name == "mcp-name").filter(|_| explorer.is_modern()) {
        Some((name, value)) => http_request.with(&name, &value),
        None => http_request,
    }
}

/// An ordinary request whose body is in chunks.
pub(super) async fn take_in_chunks(explorer: &mut Explorer<'_>, http_requests: &Questions) {
    if explorer.speaks_http2() {
        return;
    }
    let patience = patience(explorer);
    for _ in 0..TRIES {
        let chunked = RawHttpRequest { sends: Sends::Chunked, ..http_requests.plain(explorer) };
        if explorer.http_within(CHUNKED_BODY, &chunked, patience).await.is_some() {
            return;
        }
    }
}
