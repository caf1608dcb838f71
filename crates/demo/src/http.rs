//! Serves a demo over Streamable HTTP at `/mcp`, with rmcp's service behind a gate that answers what rmcp
//! answers otherwise than the specification asks. Knows HTTP, not what a demo does.

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{any, get},
};
use rmcp::{
    model::{ErrorCode, ErrorData, ProtocolVersion},
    transport::streamable_http_server::{
        SessionManager, StreamableHttpServerConfig, StreamableHttpService,
        session::{SessionId, local::LocalSessionManager},
    },
};
use serde_json::{Map, Value, json};

use super::handler::{Demo, Handler};

/// The methods of the endpoint over all revisions; the modern one has only POST.
pub(crate) const METHODS: &str = "GET, POST, DELETE, OPTIONS";

/// The largest body that is read, as rmcp has it for itself.
pub(crate) const LARGEST_BODY: usize = 4 * 1024 * 1024;

const BOTH_MEDIA_TYPES: &str = "application/json, text/event-stream";

/// The routes, and what ends every open stream.
pub(crate) fn routes(demo: Demo) -> (Router, impl FnOnce() + Send + use<>) {
    let config = StreamableHttpServerConfig::default()
        // The guard in front has checked `Host` and `Origin` with the name that was bound.
        .disable_allowed_hosts()
        // rmcp gives the first event of the `initialize` answer and of each GET stream the same id, and event ids
        // must be unique in a session (2025-11-25, basic/transports#resumability-and-redelivery). Without a
        // priming event these two streams are not resumable, which is allowed; the streams of requests are.
        .with_sse_retry(None)
        // One JSON body where one answer is all there is to say; only the modern revision is served so.
        .with_json_response(true)
        .with_max_request_body_bytes(LARGEST_BODY);
    let closing = config.cancellation_token.clone();
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(demo.connect()), sessions.clone(), config);
    let gate = Gate { service, sessions };
    let router = Router::new().route("/mcp", any(pass)).route("/mcp/", any(pass)).route("/health", get(async || health())).with_state(gate);
    (router, move || closing.cancel())
}

/// The answer to `GET /health`.
pub(crate) fn health() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], r#"{"status":"ok"}"#).into_response()
}

#[derive(Clone)]
struct Gate {
    service: StreamableHttpService<Handler, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
}

async fn pass(State(gate): State<Gate>, request: Request) -> Response {
    match *request.method() {
        Method::POST => gate.post(request).await,
        Method::DELETE => gate.delete(request).await,
        _ => gate.service.handle(request).await.into_response(),
    }
}

impl Gate {
    async fn post(&self, request: Request) -> Response {
        let (mut parts, body) = request.into_parts();
        let Ok(body) = to_bytes(body, LARGEST_BODY).await else {
            return (StatusCode::PAYLOAD_TOO_LARGE, "Payload Too Large").into_response();
        };
        let was_json = is_json(&parts.headers);
        if was_json {
            match well_formed(&body) {
                Err(error) => return refuse(&error),
                Ok(message) if is_modern_initialize(&parts.headers, &message) => return no_initialize(&message),
                Ok(_) => {}
            }
        }
        widen_accept(&mut parts.headers);
        let answer = self.service.handle(Request::from_parts(parts, Body::from(body))).await;
        // rmcp answers 415 to a message that it cannot read, too; the media type was right.
        if was_json && answer.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            return refuse(&ErrorData::invalid_request("The message is not one that MCP knows", None));
        }
        answer.into_response()
    }

    /// A session ends once: rmcp accepts the DELETE of a session that it never had.
    async fn delete(&self, request: Request) -> Response {
        let id = request.headers().get("mcp-session-id").and_then(|id| id.to_str().ok());
        if let Some(id) = id {
            let id = SessionId::from(id);
            if matches!(self.sessions.has_session(&id).await, Ok(false)) {
                return (StatusCode::NOT_FOUND, "Not Found: Session not found").into_response();
            }
        }
        self.service.handle(request).await.into_response()
    }
}

/// The one JSON-RPC message in `body`. rmcp takes a request with the id `null` for a notification, and answers
/// what is no JSON with 415.
pub(crate) fn well_formed(body: &Bytes) -> Result<Map<String, Value>, ErrorData> {
    let value: Value =
        serde_json::from_slice(body).map_err(|error| ErrorData::new(ErrorCode::PARSE_ERROR, format!("Parse error: {error}"), None))?;
    let Value::Object(message) = value else {
        return Err(ErrorData::invalid_request("Invalid request: the body must be one JSON-RPC object", None));
    };
    if message.get("jsonrpc") != Some(&json!("2.0")) {
        return Err(ErrorData::invalid_request("Invalid request: `jsonrpc` must be \"2.0\"", None));
    }
    // "Unlike base JSON-RPC, the ID MUST NOT be null" (2025-11-25, basic#requests).
    if message.get("id").is_some_and(|id| !id.is_string() && !id.is_i64() && !id.is_u64()) {
        return Err(ErrorData::invalid_request("Invalid request: `id` must be a string or an integer", None));
    }
    Ok(message)
}

/// 400 with a JSON-RPC error that has no id, because none could be read.
pub(crate) fn refuse(error: &ErrorData) -> Response {
    let body = json!({ "jsonrpc": "2.0", "error": error }).to_string();
    (StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// Whether a request calls itself one of 2026-07-28, in the header and in `_meta`, and asks for the handshake that this
/// revision no longer has. rmcp takes every `initialize` for a legacy one.
fn is_modern_initialize(headers: &HeaderMap, message: &Map<String, Value>) -> bool {
    let modern = ProtocolVersion::NO_INITIALIZE;
    let declared = message.get("params").and_then(|params| params.get("_meta")?.get("io.modelcontextprotocol/protocolVersion")?.as_str());
    message.get("method").and_then(Value::as_str) == Some("initialize")
        && declared == Some(modern.as_str())
        && headers.get("mcp-protocol-version").is_some_and(|version| version == modern.as_str())
}

fn no_initialize(message: &Map<String, Value>) -> Response {
    let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "Method not found: initialize", None);
    let body = json!({ "jsonrpc": "2.0", "id": message.get("id"), "error": error }).to_string();
    (StatusCode::NOT_FOUND, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

/// `*/*` covers both media types that a client must accept; rmcp wants them spelt out.
fn widen_accept(headers: &mut HeaderMap) {
    let any = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.split(',').any(|range| range.split(';').next().unwrap_or_default().trim() == "*/*"));
    if any {
        headers.insert(header::ACCEPT, HeaderValue::from_static(BOTH_MEDIA_TYPES));
    }
}
