//! Headers that are legal, wrong, or missing, and another spelling of the path.

use super::super::explorer::Explorer;
use super::super::modern::{FUTURE_VERSION, UNKNOWN_VERSION};
use super::body_forms;
use super::request_variants::{Questions, RequestVariants as _};
use mcproof_analysis::probes::{ACCEPT_FORM, BAD_VERSION_GET, KEPT_CONNECTION};
use mcproof_client::{RawHttpRequest, Reads};
use mcproof_protocol::{Revision, Transport};
use std::time::Duration;

/// No revision of the protocol.
pub(super) const BAD_VERSION: &str = UNKNOWN_VERSION;
const BAD_VERSIONS: [&str; 3] = [BAD_VERSION, FUTURE_VERSION, "not-a-version"];

/// How long the head of a stream may be waited for.
pub(super) const FOR_HEAD: Duration = Duration::from_secs(1);

/// Another order, a weight and no blank at once; and each of them alone.
const ACCEPT_FORMS: [&str; 4] = [
    "text/event-stream;q=0.9,application/json",
    "text/event-stream, application/json",
    "application/json, text/event-stream;q=0.9",
    "application/json,text/event-stream",
];

/// What the HTTP clients of the SDKs send without being told. They undo the encoding, so that nobody sees it until it is wrong.
const ACCEPTED: &str = "gzip, deflate, br";

pub(super) async fn take(explorer: &mut Explorer<'_>, http_requests: &Questions) {
    let text = http_requests.plain(explorer).with("content-type", "text/plain");
    explorer.http("text-body", None, &text).await;
    let (first, second) = (http_requests.notification(explorer), http_requests.notification(explorer));
    explorer.http_in_row(KEPT_CONNECTION, [&first, &second]).await;
    body_forms::take_in_pieces(explorer, http_requests).await;
    if explorer.kind() != Transport::Http {
        return;
    }
    let wildcard = http_requests.plain(explorer).with("accept", "*/*");
    explorer.http("accept-wildcard", None, &wildcard).await;
    for accept in ACCEPT_FORMS {
        let http_request = http_requests.plain(explorer).with("accept", accept);
        let answer = explorer.http(ACCEPT_FORM, Some(accept), &http_request).await;
        // Who takes the first one takes the others.
        if accept == ACCEPT_FORMS[0] && answer.is_none_or(|answer| answer.head.status < 400) {
            break;
        }
    }
    let named = http_requests.plain(explorer).with("content-type", "application/json; charset=utf-8");
    explorer.http("charset-named", None, &named).await;
    body_forms::take_in_chunks(explorer, http_requests).await;
    let compressed = http_requests.plain(explorer).with("accept-encoding", ACCEPTED);
    explorer.http("compressed", None, &compressed).await;
    if let Some(path) = other_spelling(explorer) {
        let mut other = http_requests.plain(explorer);
        other.path = Some(path.clone());
        explorer.http("other-slash", Some(&path), &other).await;
    }
    if !explorer.is_modern() && Revision::at(explorer.revision()).has_version_header() {
        for version in BAD_VERSIONS {
            let http_request = http_requests.plain(explorer).with("mcp-protocol-version", version);
            explorer.http("bad-version", Some(version), &http_request).await;
        }
        let http_request = http_requests.plain(explorer).without("mcp-protocol-version");
        explorer.http("no-version", None, &http_request).await;
        let stream = RawHttpRequest { reads: Reads::Head, ..http_requests.stream().with("mcp-protocol-version", BAD_VERSION) };
        explorer.http_within(BAD_VERSION_GET, &stream, FOR_HEAD).await;
    }
}

/// The path of the endpoint with a slash at its end, or without it.
fn other_spelling(explorer: &Explorer<'_>) -> Option<String> {
    let url = explorer.session().url()?;
    let path = match url.path() {
        "/" => return None,
        path => path.strip_suffix('/').map_or_else(|| format!("{path}/"), str::to_owned),
    };
    Some(url.query().map_or_else(|| path.clone(), |query| format!("{path}?{query}")))
}
