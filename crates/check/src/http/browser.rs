//! A web page that is meant to talk to the server: preflights, and answers that it may read.

use super::super::explorer::Explorer;
use super::attack::EVIL_ORIGIN;
use super::request_variants::{Questions, RequestVariants as _};
use mcproof_client::{RawHttpRequest, Reads, param_headers};
use mcproof_protocol::{Transport, methods};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Where the protocol's own inspector is served.
const PAGE: &str = "http://localhost:6274";

const LEGACY_HEADERS: &str = "content-type, authorization, last-event-id, mcp-protocol-version, mcp-session-id";
const MODERN_HEADERS: &str = "content-type, authorization, mcp-method, mcp-name, mcp-protocol-version";

/// The subject of the preflight says whether somebody asked for a browser: if not, its judges have to see for themselves
/// whether this is a server for browsers.
pub(super) const AS_ASKED: &str = "as a browser";

pub(super) async fn take(explorer: &mut Explorer<'_>, http_requests: &Questions) {
    let names = if explorer.is_modern() { MODERN_HEADERS } else { LEGACY_HEADERS };
    let preflight = RawHttpRequest { method: "OPTIONS".into(), body: Vec::new(), headers: Vec::new(), ..http_requests.post("") };
    let preflight = preflight.with("access-control-request-method", "POST").with("access-control-request-headers", names).anonymous();
    let attempt = explorer.check_options.as_browser;
    let answer = explorer.http("preflight", attempt.then_some(AS_ASKED), &preflight.clone().with("origin", PAGE)).await;
    let welcomes_pages = answer.is_some_and(|answer| answer.head.headers.iter().any(|(name, _)| name.starts_with("access-control-allow-")));
    if !attempt && !welcomes_pages {
        return;
    }
    explorer.http("preflight-evil", None, &preflight.clone().with("origin", EVIL_ORIGIN)).await;
    if explorer.is_modern() {
        let params = params_in_headers(explorer).await.join(", ");
        if !params.is_empty() {
            let preflight = preflight.with("access-control-request-headers", &format!("{names}, {params}")).with("origin", PAGE);
            explorer.http("preflight-params", Some(&params), &preflight).await;
        }
    }
    let plain = http_requests.plain(explorer).with("origin", PAGE);
    explorer.http("page", None, &plain).await;
    match explorer.kind() {
        Transport::Sse => {
            let stream = RawHttpRequest { reads: Reads::Head, ..http_requests.stream().with("origin", PAGE) };
            explorer.http("page", Some("GET"), &stream).await;
        }
        _ if !explorer.is_modern() => {
            let initialize = http_requests.initialize(explorer).with("origin", PAGE);
            let opened = explorer.http("page", Some(methods::INITIALIZE), &initialize).await;
            if let Some(id) = opened.as_ref().and_then(|answer| answer.head.header("mcp-session-id")) {
                let http_request = http_requests.bare("DELETE").with("mcp-session-id", id);
                explorer.http("tidy-up", None, &http_request).await;
            }
        }
        _ => {}
    }
    explorer.http("page-error", None, &http_requests.post("{").with("origin", PAGE)).await;
    let anonymous = http_requests.plain(explorer).with("origin", PAGE).anonymous();
    explorer.http("page-anonymous", None, &anonymous).await;
}

/// The most headers that a preflight asks for on behalf of tools.
const MOST_PARAMS: usize = 20;

/// The headers into which the arguments of tools go, in lower case.
async fn params_in_headers(explorer: &mut Explorer<'_>) -> Vec<String> {
    if !explorer.declares("tools") {
        return Vec::new();
    }
    let listed = explorer.send_request("preflight-tools", None, methods::TOOLS_LIST, json!({})).await;
    let Some(Ok(result)) = listed else { return Vec::new() };
    let tools = result.get("tools").and_then(Value::as_array).into_iter().flatten();
    // A tool whose annotations are not valid is left out by clients.
    let unique: BTreeSet<String> = tools.filter_map(|tool| param_headers(tool).ok()).flatten().collect();
    unique.into_iter().take(MOST_PARAMS).collect()
}
