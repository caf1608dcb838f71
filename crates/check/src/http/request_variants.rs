//! HTTP requests as a client of the era makes them, to be varied. Knows no server.

use super::super::explorer::{Explorer, headers_of_post, initialized};
use mcproof_analysis::probes::POSTED;
use mcproof_client::{ClientProfile, Headers, RawHttpRequest};
use mcproof_protocol::{Revision, Transport, methods};
use mcproof_record::FrameBody;
use serde_json::{Value, json};

/// What a client of one conversation sends along with whatever it asks.
pub(super) struct Questions {
    /// Where messages go, if that is not where the server is.
    path: Option<String>,
    /// Those of the session, or of the era.
    headers: Headers,
    /// What is asked where anything will do.
    plain: &'static str,
    /// Whether the session is that of the conversation, because there can be no second one.
    is_only_session: bool,
}

/// Variations of an HTTP request.
pub(super) trait RequestVariants {
    /// With this header in the place of others of its name.
    fn with(self, name: &str, value: &str) -> Self;
    fn without(self, name: &str) -> Self;
    /// With nothing that lets it in.
    fn anonymous(self) -> Self;
}

impl RequestVariants for RawHttpRequest {
    fn with(self, name: &str, value: &str) -> Self {
        let mut varied = self.without(name);
        varied.headers.push((name.to_owned(), value.to_owned()));
        varied
    }

    fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    fn anonymous(self) -> Self {
        Self { is_anonymous: true, ..self }
    }
}

impl Questions {
    /// Opens a second session where there are sessions: it has no stream for what the server says unasked, and it may end. A server that
    /// takes one session at a time is asked in that of the conversation.
    pub(super) async fn prepare(explorer: &mut Explorer<'_>) -> Self {
        if explorer.is_modern() || explorer.kind() == Transport::Sse {
            return Self::of_session(explorer);
        }
        let mut http_requests = Self { path: None, headers: Headers::new(), plain: explorer.any_method(), is_only_session: false };
        let http_request = http_requests.initialize(explorer);
        let opened = explorer.http("session", None, &http_request).await;
        let first = Self::of_session(explorer);
        if first.session().is_some() && opened.as_ref().is_some_and(|answer| answer.head.status >= 400) {
            return Self { is_only_session: true, ..first };
        }
        let id = opened.as_ref().and_then(|answer| answer.head.header("mcp-session-id"));
        http_requests.headers.extend(id.map(|id| ("mcp-session-id".to_owned(), id.to_owned())));
        if Revision::at(explorer.revision()).has_version_header() {
            http_requests.headers.push(("mcp-protocol-version".to_owned(), explorer.revision().to_owned()));
        }
        explorer.http("session-initialized", None, &http_requests.post(initialized().to_string())).await;
        if first.session().is_some() && http_requests.session() != first.session() {
            explorer.http("session-beside-others", None, &first.plain(explorer)).await;
        }
        http_requests
    }

    /// Those of the conversation's own session.
    pub(super) fn of_session(explorer: &Explorer<'_>) -> Self {
        let headers = match explorer.is_modern() {
            true => vec![("mcp-protocol-version".to_owned(), explorer.revision().to_owned())],
            false => explorer.session().headers(),
        };
        let path = if explorer.kind() == Transport::Sse { endpoint(explorer) } else { None };
        Self { path, headers, plain: explorer.any_method(), is_only_session: false }
    }

    /// The same in another session.
    pub(super) fn in_session(&self, id: &str) -> Self {
        let others = self.headers.iter().filter(|(name, _)| name != "mcp-session-id").cloned();
        let headers = others.chain([("mcp-session-id".to_owned(), id.to_owned())]).collect();
        Self { path: self.path.clone(), headers, plain: self.plain, is_only_session: self.is_only_session }
    }

    /// Those of a client that was not let in.
    pub(super) fn outside(explorer: &Explorer<'_>) -> Self {
        let (headers, plain) = match explorer.is_modern() {
            true => (vec![("mcp-protocol-version".to_owned(), explorer.revision().to_owned())], methods::SERVER_DISCOVER),
            false => (Headers::new(), methods::INITIALIZE),
        };
        Self { path: None, headers, plain, is_only_session: false }
    }

    /// The id of the session, if there are sessions.
    pub(super) fn session(&self) -> Option<&str> {
        self.headers.iter().find(|(name, _)| name == "mcp-session-id").map(|(_, id)| id.as_str())
    }

    pub(super) fn is_only_session(&self) -> bool {
        self.is_only_session
    }

    /// Where messages go, if that is not where the server is.
    pub(super) fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// A body for the endpoint.
    pub(super) fn post(&self, body: impl Into<Vec<u8>>) -> RawHttpRequest {
        let mut headers = headers_of_post();
        headers.extend(self.headers.iter().cloned());
        RawHttpRequest { method: "POST".into(), path: self.path.clone(), headers, body: body.into(), ..RawHttpRequest::default() }
    }

    /// A request that any server can answer.
    pub(super) fn plain(&self, explorer: &Explorer<'_>) -> RawHttpRequest {
        match self.plain {
            methods::INITIALIZE => self.initialize(explorer),
            method => self.request(explorer, method, json!({})),
        }
    }

    pub(super) fn request(&self, explorer: &Explorer<'_>, method: &str, params: Value) -> RawHttpRequest {
        let message = explorer.build_request(fresh_id(explorer), method, params);
        let http_request = self.post(message.to_string());
        if explorer.is_modern() { http_request.with("mcp-method", method) } else { http_request }
    }

    /// The first request of a session.
    pub(super) fn initialize(&self, explorer: &Explorer<'_>) -> RawHttpRequest {
        let client = ClientProfile::default();
        let params = json!({
            "protocolVersion": explorer.revision(),
            "capabilities": {},
            "clientInfo": { "name": client.name, "version": client.version },
        });
        let message = json!({ "jsonrpc": "2.0", "id": fresh_id(explorer), "method": "initialize", "params": params });
        self.post(message.to_string()).without("mcp-session-id").without("mcp-protocol-version")
    }

    /// A notification that means nothing to the server.
    pub(super) fn notification(&self, explorer: &Explorer<'_>) -> RawHttpRequest {
        let method = methods::notifications::CANCELLED;
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": { "requestId": "mcproof-never-asked" } });
        let http_request = self.post(message.to_string());
        if explorer.is_modern() { http_request.with("mcp-method", method) } else { http_request }
    }

    /// A request without a body to where the server is.
    pub(super) fn bare(&self, method: &str) -> RawHttpRequest {
        let headers = self.headers.clone();
        RawHttpRequest { method: method.to_owned(), headers, ..RawHttpRequest::default() }
    }

    /// A request for a stream.
    pub(super) fn stream(&self) -> RawHttpRequest {
        self.bare("GET").with("accept", "text/event-stream")
    }
}

/// Not used in the conversation before.
fn fresh_id(explorer: &Explorer<'_>) -> Value {
    json!(format!("{POSTED}{}", explorer.probe_count()))
}

/// The endpoint for messages that the stream of HTTP+SSE named.
fn endpoint(explorer: &Explorer<'_>) -> Option<String> {
    explorer.transcript().frames.into_iter().find_map(|frame| match frame.body {
        FrameBody::SseEvent { event: Some(name), data: Some(data), .. } if name == "endpoint" => Some(data.to_text().trim().to_owned()),
        _ => None,
    })
}
