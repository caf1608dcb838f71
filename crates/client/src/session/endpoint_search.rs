//! Where the MCP endpoint of a server is whose URL has another path: at the ones that SDKs and their examples use. A user who forgot
//! `/mcp` gets to know the URL instead of a guess.

use super::{CallFailure, ConnectFailure};
use crate::transport::{EVENT_STREAM, Endpoint, HttpCall, HttpHead, Network, SseFailure, Unanswered};
use mcproof_protocol::{Revision, methods};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;
use url::Url;

/// For all paths together, which are tried at the same time.
const PATIENCE: Duration = Duration::from_secs(2);

/// The failure, and where an MCP server responds instead, if it says that nothing of MCP is served at this URL and there is one at a usual
/// path of the same host. A server that responds at this URL too, in another era or over HTTP+SSE, is not elsewhere. Nothing of the search
/// is in a tap.
pub async fn search_endpoint(failure: ConnectFailure, endpoint: &Endpoint, network: &Network) -> ConnectFailure {
    if !is_elsewhere(&failure) {
        return failure;
    }
    let trials: Vec<_> = candidates(&endpoint.url)
        .into_iter()
        .map(|url| {
            let (headers, network) = (endpoint.headers.clone(), network.clone());
            tokio::spawn(
                async move { timeout(PATIENCE, serves_mcp(&url, &headers, &network)).await.is_ok_and(|serves| serves).then_some(url) },
            )
        })
        .collect();
    let mut found = None;
    for trial in trials {
        found = found.or(trial.await.ok().flatten());
    }
    match found {
        Some(url) if url != endpoint.url => ConnectFailure::WrongPath { url: shown(&url), failure: Box::new(failure) },
        _ => failure,
    }
}

/// Whether a response says that this path is none of an MCP server: there is nothing, nothing that takes POST, or a page.
fn is_elsewhere(failure: &ConnectFailure) -> bool {
    let is_page = |head: &HttpHead| head.header("content-type").is_some_and(|kind| kind.starts_with("text/html"));
    match failure {
        ConnectFailure::Unanswered { failure: CallFailure::Unanswered(Unanswered::Response { head, .. }), .. }
        | ConnectFailure::Sse(SseFailure::NoStream(head)) => matches!(head.status, 404 | 405) || head.status == 200 && is_page(head),
        _ => false,
    }
}

/// The URL itself, then the most likely ones first.
fn candidates(url: &Url) -> Vec<Url> {
    let path = url.path().trim_end_matches('/');
    let toggled = if url.path().ends_with('/') { path.to_owned() } else { format!("{path}/") };
    let mut candidates = vec![url.clone()];
    for candidate in [toggled, format!("{path}/mcp"), format!("{path}/sse"), "/mcp".into(), "/sse".into(), "/".into()] {
        let mut other = url.clone();
        other.set_path(&candidate);
        if !candidates.contains(&other) {
            candidates.push(other);
        }
    }
    candidates
}

/// Whether `initialize` is responded to as by Streamable HTTP, be it with an error or with a request to authorize, or a GET with an event
/// stream as by HTTP+SSE. A session that came of it is ended.
async fn serves_mcp(url: &Url, headers: &[(String, String)], network: &Network) -> bool {
    let accept = |kind: &str| [headers, &[("accept".to_owned(), kind.to_owned())]].concat();
    let mut posted = accept(&format!("application/json, {EVENT_STREAM}"));
    posted.push(("content-type".into(), "application/json".into()));
    let initialize = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": methods::INITIALIZE,
        "params": {
            "protocolVersion": Revision::LATEST_LEGACY.as_str(),
            "capabilities": {},
            "clientInfo": { "name": "mcproof", "version": env!("CARGO_PKG_VERSION") },
        },
    });
    let Ok(call) = HttpCall::connect(url, network).await else { return false };
    if let Ok(response) = call.send("POST", &posted, initialize.to_string().into_bytes()).await {
        if let (Some(session), Ok(call)) = (response.header("mcp-session-id"), HttpCall::connect(url, network).await) {
            let named = [headers, &[("mcp-session-id".to_owned(), session.to_owned())]].concat();
            // One that cannot be ended ends by itself.
            let _ = call.send("DELETE", &named, Vec::new()).await;
        }
        let is_message = || serde_json::from_slice::<Value>(&response.body).is_ok_and(|body| body.get("jsonrpc").is_some());
        let is_kind = |kind| response.header("content-type").is_some_and(|found| found.starts_with(kind));
        let wants_token =
            || response.status == 401 && response.header("www-authenticate").is_some_and(|scheme| scheme.starts_with("Bearer"));
        if is_message() || response.status == 200 && is_kind(EVENT_STREAM) || wants_token() {
            return true;
        }
    }
    let Ok(call) = HttpCall::connect(url, network).await else { return false };
    let head = call.send_for_head("GET", &accept(EVENT_STREAM)).await;
    head.is_ok_and(|head| head.status == 200 && head.header("content-type").is_some_and(|kind| kind.starts_with(EVENT_STREAM)))
}

/// Without what is secret in it.
fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    // A URL with a host takes both.
    let _ = shown.set_username("").and_then(|()| shown.set_password(None));
    shown.set_query(None);
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_paths_are_tried_and_never_the_same_again() {
        let check = |url: &str, paths: &[&str]| {
            let found = candidates(&Url::parse(url).unwrap());
            assert_eq!(found.iter().map(Url::path).collect::<Vec<_>>(), paths, "{url}");
            assert!(found.iter().all(|candidate| candidate.query() == Url::parse(url).unwrap().query()), "{url}");
        };
        check("http://host", &["/", "/mcp", "/sse"]);
        check("http://host/mcp?key=1", &["/mcp", "/mcp/", "/mcp/mcp", "/mcp/sse", "/sse", "/"]);
        check("http://host/mcp/", &["/mcp/", "/mcp", "/mcp/mcp", "/mcp/sse", "/sse", "/"]);
        check("http://host/weather", &["/weather", "/weather/", "/weather/mcp", "/weather/sse", "/mcp", "/sse", "/"]);
    }

    #[test]
    fn a_url_is_shown_without_secrets() {
        assert_eq!(shown(&Url::parse("http://ann:secret@host:81/mcp?key=secret").unwrap()), "http://host:81/mcp");
    }
}
