//! Sessions of other clients, unknown sessions and ended sessions. Everything that is opened here is closed again.

use super::super::explorer::{Explorer, initialized};
use super::attack::EVIL_ORIGIN;
use super::headers::{BAD_VERSION, FOR_HEAD};
use super::request_variants::{Questions, RequestVariants as _};
use mcproof_analysis::probes::{AFTER_OTHER_ENDED, BAD_VERSION_DELETE, BEFORE_OTHER_ENDS, OTHER_ENDS};
use mcproof_client::{RawHttpRequest, Reads};
use mcproof_protocol::{Revision, Transport};

/// An id as servers give them out, and none did.
const ANONYMOUS: &str = "6b1d0a52-93c7-4d0e-8f43-2f0c9b7e51aa";

/// Sessions besides those that there are, so that their ids can be compared.
const MORE: usize = 2;

/// A request in a session while there are others.
pub(super) const BESIDE_OTHERS: &str = "session-beside-others";

/// Pairs of sessions of which one is ended, until the other has outlived that.
const PAIRS: usize = 2;

/// `refused` are the attackers of whom the server wants no POST.
pub(super) async fn take(explorer: &mut Explorer<'_>, http_requests: &Questions, refused: &[&str]) {
    let Some(first) = http_requests.session() else { return };
    if explorer.kind() != Transport::Http {
        return;
    }
    let is_only_one = http_requests.is_only_session();
    let mut ids = vec![first.to_owned()];
    let more = if is_only_one { 0 } else { MORE };
    for _ in 0..more {
        let http_request = http_requests.initialize(explorer);
        let opened = explorer.http("session", None, &http_request).await;
        ids.extend(opened.and_then(|answer| answer.head.header("mcp-session-id").map(str::to_owned)));
    }
    if !is_only_one {
        let http_request = http_requests.plain(explorer);
        explorer.http(BESIDE_OTHERS, None, &http_request).await;
    }
    let http_request = http_requests.plain(explorer).without("mcp-session-id");
    explorer.http("no-session", None, &http_request).await;
    let http_request = http_requests.plain(explorer).with("mcp-session-id", ANONYMOUS);
    explorer.http("unknown-session", None, &http_request).await;
    let stream = RawHttpRequest { reads: Reads::Head, ..http_requests.stream() };
    explorer.http_within("unknown-session", &stream.clone().with("mcp-session-id", ANONYMOUS), FOR_HEAD).await;
    // What comes after this needs it.
    if is_only_one {
        return;
    }
    if let Some(id) = ids.get(1).filter(|id| *id != first && refused.contains(&"evil-origin")) {
        let http_request = http_requests.bare("DELETE").with("mcp-session-id", id).with("origin", EVIL_ORIGIN);
        explorer.http("evil-origin", Some("DELETE"), &http_request).await;
    }
    let deleted = explorer.http("delete", None, &http_requests.bare("DELETE")).await.map(|answer| answer.head.status);
    if deleted.is_some_and(|status| (200..300).contains(&status)) {
        let http_request = http_requests.plain(explorer);
        explorer.http("deleted-session", None, &http_request).await;
        explorer.http_within("deleted-session", &stream, FOR_HEAD).await;
        explorer.http("deleted-session", None, &http_requests.bare("DELETE")).await;
    }
    let mut left: Vec<&str> = ids.iter().skip(1).map(String::as_str).filter(|id| *id != first).collect();
    if let Some(id) = left.last().copied().filter(|_| Revision::at(explorer.revision()).has_version_header()) {
        let http_request = http_requests.bare("DELETE").with("mcp-session-id", id).with("mcp-protocol-version", BAD_VERSION);
        let ended = explorer.http(BAD_VERSION_DELETE, None, &http_request).await;
        if ended.is_some_and(|answer| (200..300).contains(&answer.head.status)) {
            left.pop();
        }
    }
    for id in left {
        let http_request = http_requests.bare("DELETE").with("mcp-session-id", id);
        explorer.http("tidy-up", None, &http_request).await;
    }
    // The session that was ended first may have been gone, because another client's was ended.
    if deleted.is_some_and(|status| status != 405) {
        for _ in 0..PAIRS {
            if end_one_of_two(explorer, http_requests).await {
                break;
            }
        }
    }
}

/// Ends one of two sessions, and asks something in the other before and after that. `false` if that is worth another try.
async fn end_one_of_two(explorer: &mut Explorer<'_>, http_requests: &Questions) -> bool {
    let mut pair = Vec::new();
    for _ in 0..2 {
        let http_request = http_requests.initialize(explorer);
        let opened = explorer.http("session-of-pair", None, &http_request).await;
        pair.extend(opened.and_then(|answer| answer.head.header("mcp-session-id").map(str::to_owned)));
    }
    let mut is_told = true;
    if let [ended, other] = &pair[..]
        && ended != other
    {
        let http_request = http_requests.post(initialized().to_string()).with("mcp-session-id", other);
        explorer.http("session-initialized", None, &http_request).await;
        let http_request = http_requests.plain(explorer).with("mcp-session-id", other);
        explorer.http(BEFORE_OTHER_ENDS, None, &http_request).await;
        let http_request = http_requests.bare("DELETE").with("mcp-session-id", ended);
        explorer.http(OTHER_ENDS, None, &http_request).await;
        let http_request = http_requests.plain(explorer).with("mcp-session-id", other);
        let after = explorer.http(AFTER_OTHER_ENDED, None, &http_request).await;
        is_told = after.is_none_or(|answer| answer.head.status < 400);
        pair.remove(0);
    }
    for id in &pair {
        let http_request = http_requests.bare("DELETE").with("mcp-session-id", id);
        explorer.http("tidy-up", None, &http_request).await;
    }
    is_told
}
