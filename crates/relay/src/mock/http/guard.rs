//! Which HTTP requests are served at all: those of this machine, where only this machine can connect, and of pages of it
//! (2025-11-25, basic/transports#security-warning). Knows headers, no messages.

use super::reply::Body;
use super::{empty, set, text};
use hyper::header::HeaderValue;
use hyper::{HeaderMap, Response};

/// What a client takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) events: bool,
}

impl Accepts {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let accepted: Vec<&str> = headers.get_all("accept").iter().filter_map(|value| value.to_str().ok()).collect();
        if accepted.is_empty() {
            return Self { json: true, events: true };
        }
        let takes = |kind: &str| {
            let family = kind.split('/').next().unwrap_or_default();
            accepted.iter().flat_map(|value| value.split(',')).any(|range| {
                let range = range.split(';').next().unwrap_or_default().trim();
                range == "*/*" || range.eq_ignore_ascii_case(kind) || range.strip_suffix("/*") == Some(family)
            })
        };
        Self { json: takes("application/json"), events: takes("text/event-stream") }
    }
}

pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get("content-type").and_then(|value| value.to_str().ok()).and_then(|kind| kind.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// The refusal of a request that another site may have made.
pub(super) fn refused(is_local: bool, headers: &HeaderMap) -> Option<Response<Body>> {
    let value = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    if is_local && !value("host").is_some_and(names_this_machine) {
        return Some(text(403, "this host is not served here"));
    }
    let is_foreign = value("origin").is_some_and(|origin| !is_local_origin(origin));
    is_foreign.then(|| text(403, "this origin is not served here"))
}

fn is_local_origin(origin: &str) -> bool {
    origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")).is_some_and(names_this_machine)
}

/// Whether a value of `Host` names this machine as its clients do.
fn names_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => host.split(':').next(),
    };
    matches!(name, Some("127.0.0.1" | "localhost" | "::1"))
}

pub(super) fn preflight(headers: &HeaderMap) -> Response<Body> {
    let mut response = empty(204);
    set(&mut response, "access-control-allow-methods", "GET, POST, DELETE, OPTIONS");
    let asked = headers.get("access-control-request-headers").and_then(|value| value.to_str().ok());
    let usual = "content-type, accept, authorization, mcp-session-id, mcp-protocol-version, last-event-id, mcp-method, mcp-name";
    set(&mut response, "access-control-allow-headers", asked.unwrap_or(usual));
    set(&mut response, "access-control-max-age", "600");
    response
}

/// Lets pages of this machine read the response.
pub(super) fn with_cors(mut response: Response<Body>, origin: Option<&HeaderValue>) -> Response<Body> {
    if let Some(origin) = origin.and_then(|origin| origin.to_str().ok()).filter(|origin| is_local_origin(origin)) {
        set(&mut response, "access-control-allow-origin", origin);
        set(&mut response, "access-control-expose-headers", "Mcp-Session-Id, WWW-Authenticate, Mcp-Protocol-Version");
        set(&mut response, "vary", "Origin");
    }
    response
}
