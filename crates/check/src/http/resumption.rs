//! A client whose stream broke off and that asks for the rest of it. Knows what is worth trying, not what is right.

use super::super::explorer::Explorer;
use super::super::listing::UNKNOWN_NAME;
use super::request_variants::{Questions, RequestVariants as _};
use mcproof_client::{RawHttpRequest, Reads};
use mcproof_protocol::{Transport, methods};
use mcproof_record::{FrameBody, Transcript};
use serde_json::json;
use std::time::Duration;

/// What is resumed may stay open for ever.
const PATIENCE: Duration = Duration::from_millis(500);

/// Asks for what comes after the first and after the last event of a stream, while there is another one.
pub(super) async fn take(explorer: &mut Explorer<'_>, http_requests: &Questions) {
    let has_streams = explorer.kind() == Transport::Http && !explorer.is_modern() && http_requests.session().is_some();
    if !has_streams || !explorer.declares("tools") {
        return;
    }
    let Some(ids) = ask(explorer, http_requests).await else { return };
    if ask(explorer, http_requests).await.is_none() {
        return;
    }
    let (first, last) = (ids.first(), ids.last());
    for (probe, id) in [("resumed-after-last", last), ("resumed-after-first", first.filter(|first| Some(*first) != last))] {
        let Some(id) = id else { continue };
        let stream = RawHttpRequest { reads: Reads::All, ..http_requests.stream().with("last-event-id", id) };
        explorer.http_within(probe, &stream, PATIENCE).await;
    }
}

/// The ids of the events on the stream of a request; nothing if there are none. Some servers respond to lists with JSON, and to calls
/// with a stream.
async fn ask(explorer: &mut Explorer<'_>, http_requests: &Questions) -> Option<Vec<String>> {
    let call = (methods::TOOLS_CALL, json!({ "name": UNKNOWN_NAME, "arguments": {} }));
    for (method, params) in [(methods::TOOLS_LIST, json!({})), call] {
        let http_request = http_requests.request(explorer, method, params);
        explorer.http("resumable", Some(method), &http_request).await?;
        let ids = ids_of_last(&explorer.transcript());
        if !ids.is_empty() {
            return Some(ids);
        }
    }
    None
}

/// Of the last POST: a stream that ended before its response was taken up again by a GET.
fn ids_of_last(transcript: &Transcript) -> Vec<String> {
    let asked = transcript.frames.iter().rev().find_map(|frame| match &frame.body {
        FrameBody::HttpRequest { exchange, method, .. } if method == "POST" => Some(*exchange),
        _ => None,
    });
    let id_of = |body: &FrameBody| match body {
        FrameBody::SseEvent { exchange, id: Some(id), .. } if Some(*exchange) == asked && !id.is_empty() => Some(id.clone()),
        _ => None,
    };
    transcript.frames.iter().filter_map(|frame| id_of(&frame.body)).collect()
}
