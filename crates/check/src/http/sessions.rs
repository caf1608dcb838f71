//! Sessions of other clients, unknown sessions and ended sessions. Everything that is opened here is closed again.

use super::super::explorer::Explorer;
use super::request_variants::{Questions, RequestVariants as _};
use mcproof_protocol::Transport;

/// An id as servers give them out, and none did.
const ANONYMOUS: &str = "6b1d0a52-93c7-4d0e-8f43-2f0c9b7e51aa";

/// Sessions besides those that there are, so that their ids can be compared.
const MORE: usize = 2;

pub(super) async fn take(explorer: &mut Explorer<'_>, http_requests: &Questions) {
    let Some(first) = http_requests.session() else { return };
    if explorer.kind() != Transport::Http {
        return;
    }
    let mut ids = vec![first.to_owned()];
    for _ in 0..MORE {
        let http_request = http_requests.initialize(explorer);
        let opened = explorer.http("session", None, &http_request).await;
        ids.extend(opened.and_then(|answer| answer.head.header("mcp-session-id").map(str::to_owned)));
    }
    let http_request = http_requests.plain(explorer);
    explorer.http("session-beside-others", None, &http_request).await;
    let http_request = http_requests.plain(explorer).without("mcp-session-id");
    explorer.http("no-session", None, &http_request).await;
    let http_request = http_requests.plain(explorer).with("mcp-session-id", ANONYMOUS);
    explorer.http("unknown-session", None, &http_request).await;
    let deleted = explorer.http("delete", None, &http_requests.bare("DELETE")).await;
    if deleted.is_some_and(|answer| (200..300).contains(&answer.head.status)) {
        let http_request = http_requests.plain(explorer);
        explorer.http("deleted-session", None, &http_request).await;
    }
    for id in ids.iter().skip(1).filter(|id| *id != first) {
        let http_request = http_requests.bare("DELETE").with("mcp-session-id", id);
        explorer.http("tidy-up", None, &http_request).await;
    }
}
