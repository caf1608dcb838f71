//! Clients over Streamable HTTP in front of a stdio server. Each session of the legacy era has a process of its own; requests of
//! 2026-07-28, which has no sessions, share one, under ids of ours. Knows ids, progress tokens and sessions, and nothing else of messages.
//! Source: 2025-11-25 and 2026-07-28, basic/transports, Streamable HTTP.

mod process;

use super::http::{RelayListener, admit};
use crate::modern_request::{VERSION, check_headers, check_meta};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited, combinators::BoxBody};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue, ORIGIN};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use mcproof_client::{Guardian, Launch, Limits, ShutdownTimeouts, Tap};
use mcproof_protocol::error_code::{
    HEADER_MISMATCH, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY, PARSE_ERROR, UNSUPPORTED_VERSION,
};
use mcproof_protocol::{Revision, methods};
use process::{Exchange, StdioServer};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::Url;

/// Connections of clients at the same time; the next ones wait.
const MOST_CONNECTIONS: usize = 1024;
/// Sessions at the same time, each with its process.
const MOST_SESSIONS: usize = 64;
/// How long a client may ask for nothing while another one needs its place: most that vanish send no DELETE.
const IDLE: Duration = Duration::from_secs(60);
/// How long a head or a body of a request may take.
const PATIENCE: Duration = Duration::from_secs(75);
const SESSION: &str = "mcp-session-id";
/// A server error of our own (JSON-RPC, reserved for implementations).
const NO_RESPONSE: i64 = -32000;

/// Serves a stdio server to clients over HTTP, at `/mcp`.
pub struct InwardBridge {
    how: Start,
    sessions: Mutex<HashMap<String, Arc<StdioServer>>>,
    /// Of the requests without a session.
    shared: tokio::sync::Mutex<Option<Arc<StdioServer>>>,
}

/// How its processes are started and ended.
pub struct Start {
    pub launch: Launch,
    pub guardian: Guardian,
    pub limits: Limits,
    pub patience: ShutdownTimeouts,
    /// Where the frames of a new process go.
    pub new_tap: Box<dyn Fn() -> Tap + Send + Sync>,
}

type Answer = Response<BoxBody<Bytes, Infallible>>;

impl InwardBridge {
    pub fn new(how: Start) -> Arc<Self> {
        Arc::new(Self { how, sessions: Mutex::default(), shared: tokio::sync::Mutex::default() })
    }

    /// Serves clients until this is dropped.
    ///
    /// # Errors
    /// The listener broke.
    pub async fn serve(self: &Arc<Self>, listener: RelayListener) -> io::Result<Infallible> {
        let RelayListener { listener, address } = listener;
        let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let mut connections = JoinSet::new();
        loop {
            let permit = Arc::clone(&room).acquire_owned().await.map_err(io::Error::other)?;
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            };
            match accepted {
                Ok((stream, _)) => {
                    let bridge = Arc::clone(self);
                    connections.spawn(async move {
                        bridge.attend(stream, address).await;
                        drop(permit);
                    });
                }
                // The client is gone again, or we are short of descriptors for a moment.
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    /// Ends all servers.
    pub async fn close(&self) {
        let shared = self.shared.lock().await.take();
        let sessions: Vec<Arc<StdioServer>> = self.sessions().drain().map(|(_, server)| server).collect();
        let mut ends = JoinSet::new();
        for server in sessions.into_iter().chain(shared) {
            ends.spawn(async move { server.end().await });
        }
        while ends.join_next().await.is_some() {}
    }

    async fn attend(self: Arc<Self>, stream: TcpStream, address: SocketAddr) {
        let _ = stream.set_nodelay(true);
        let own = stream.local_addr().unwrap_or(address);
        let service = service_fn(move |request| {
            let bridge = Arc::clone(&self);
            async move { Ok::<_, Infallible>(bridge.respond(request, own).await) }
        });
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE);
        builder.http2().timer(TokioTimer::new());
        // A connection that fails is the client's matter.
        let _ = builder.serve_connection(TokioIo::new(stream), service).await;
    }

    async fn respond(&self, request: Request<Incoming>, own: SocketAddr) -> Answer {
        if let Err(host) = admit(&request, own) {
            return text(StatusCode::FORBIDDEN, &format!("the Host header `{host}` is not an address of this proxy; use {own}"));
        }
        if let Some(origin) = foreign_origin(request.headers(), own) {
            return text(StatusCode::FORBIDDEN, &format!("pages of {origin} may not use this server"));
        }
        if request.uri().path() != "/mcp" {
            return text(StatusCode::NOT_FOUND, "MCP is served at /mcp");
        }
        let (head, body) = request.into_parts();
        match head.method {
            Method::POST => {
                let body = match timeout(PATIENCE, Limited::new(body, self.how.limits.body).collect()).await {
                    Ok(Ok(body)) => body.to_bytes(),
                    Ok(Err(error)) => return text(StatusCode::PAYLOAD_TOO_LARGE, &format!("the request was not read: {error}")),
                    Err(_) => return text(StatusCode::REQUEST_TIMEOUT, "the body of the request did not end"),
                };
                self.post(&head.headers, &body).await
            }
            Method::GET => match self.session(&head.headers) {
                Ok(server) => match server.listen() {
                    Some(messages) => events(None, messages, None),
                    None => text(StatusCode::CONFLICT, "this session has a stream already"),
                },
                Err(refused) => refused,
            },
            Method::DELETE => match self.session(&head.headers) {
                Ok(server) => {
                    self.sessions().retain(|_, known| !Arc::ptr_eq(known, &server));
                    server.end().await;
                    empty(StatusCode::NO_CONTENT)
                }
                Err(refused) => refused,
            },
            _ => {
                let mut refused = text(StatusCode::METHOD_NOT_ALLOWED, "use POST, GET or DELETE");
                refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST, DELETE"));
                refused
            }
        }
    }

    async fn post(&self, headers: &HeaderMap, body: &[u8]) -> Answer {
        let is_json = headers
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json"));
        if !is_json {
            return text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "messages are application/json");
        }
        let message: Value = match serde_json::from_slice(body) {
            Ok(message @ Value::Object(_)) => message,
            Ok(_) => {
                return error(
                    StatusCode::BAD_REQUEST,
                    &Value::Null,
                    INVALID_REQUEST,
                    "a message is a JSON object; there are no batches here",
                );
            }
            Err(reason) => return error(StatusCode::BAD_REQUEST, &Value::Null, PARSE_ERROR, &format!("Parse error: {reason}")),
        };
        let id = message.get("id").filter(|id| !id.is_null()).cloned();
        let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
        if message.get("id").is_some_and(Value::is_null) && method.is_some() {
            return error(StatusCode::BAD_REQUEST, &Value::Null, INVALID_REQUEST, "the id of a request is a string or a number");
        }
        let said = headers.get("mcp-protocol-version").and_then(|version| version.to_str().ok());
        let params = message.get("params").unwrap_or(&Value::Null);
        let names_version = params.get("_meta").is_some_and(|meta| meta.get(VERSION).is_some());
        let is_modern = names_version || (said == Some(Revision::MODERN.as_str()) && !headers.contains_key(SESSION));
        if let (false, Some(said)) = (is_modern, said.filter(|said| !is_known(said))) {
            return error(
                StatusCode::BAD_REQUEST,
                id.as_ref().unwrap_or(&Value::Null),
                INVALID_REQUEST,
                &format!("the version `{said}` is unknown"),
            );
        }
        if let (true, Some(id), Some(method)) = (is_modern, &id, &method) {
            let tools = self.shared.lock().await.clone();
            let tool = |name: &str| tools.as_ref().and_then(|server| server.tool(name));
            if let Err(reason) = check_headers(tool, method, params, headers).and_then(|()| check_meta(method, params)) {
                return json_response(StatusCode::BAD_REQUEST, &json!({ "jsonrpc": "2.0", "id": id, "error": reason }));
            }
        }
        let begins = method.as_deref() == Some(methods::INITIALIZE);
        let (server, session) = match () {
            () if begins => match self.begin() {
                Ok(begun) => begun,
                Err(refused) => return refused,
            },
            () if headers.contains_key(SESSION) => match self.session(headers) {
                Ok(server) => (server, None),
                Err(refused) => return refused,
            },
            // A notification of 2026-07-28 need not name its version.
            () if is_modern || id.is_none() => match self.share().await {
                Ok(server) => (server, None),
                Err(reason) => return failed(id.as_ref(), &reason),
            },
            () => {
                return error(
                    StatusCode::BAD_REQUEST,
                    id.as_ref().unwrap_or(&Value::Null),
                    NO_RESPONSE,
                    "the header Mcp-Session-Id is missing",
                );
            }
        };
        let Some(id) = id.filter(|_| method.is_some()) else {
            return match server.send(message).await {
                true => empty(StatusCode::ACCEPTED),
                false => text(StatusCode::BAD_GATEWAY, &server.why_ended()),
            };
        };
        let mut exchange = match server.request(message).await {
            Ok(exchange) => exchange,
            Err(reason) => return failed(Some(&id), &reason),
        };
        let Some(first) = exchange.next().await else {
            if let Some(session) = &session {
                self.sessions().remove(session);
            }
            return failed(Some(&id), &server.why_ended());
        };
        let accepts = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or("*/*");
        let takes_events = accepts.contains("text/event-stream");
        let mut response = match exchange.is_over() {
            true if accepts.contains("json") || accepts.contains("*/*") || !takes_events => {
                json_response(status_of(is_modern, &first), &first)
            }
            _ if takes_events => events(Some(first), exchange.messages(), Some(exchange)),
            // What comes before the response finds no place in JSON.
            _ => loop {
                match exchange.next().await {
                    Some(message) if exchange.is_over() => break json_response(status_of(is_modern, &message), &message),
                    Some(_) => {}
                    None => break failed(Some(&id), &server.why_ended()),
                }
            },
        };
        if let Some(session) = session
            && let Ok(session) = HeaderValue::from_str(&session)
        {
            response.headers_mut().insert(SESSION, session);
        }
        response
    }

    /// A process for a new session, and its id.
    fn begin(&self) -> Result<(Arc<StdioServer>, Option<String>), Answer> {
        let mut sessions = self.sessions();
        sessions.retain(|_, server| !server.has_ended());
        if sessions.len() >= MOST_SESSIONS {
            let idle = sessions.iter().map(|(id, server)| (id.as_str(), server.idle()));
            let Some(id) = gives_way(idle).map(str::to_owned) else {
                let reason =
                    format!("{MOST_SESSIONS} sessions are open, each used within the last {} s: end one with DELETE", IDLE.as_secs());
                return Err(text(StatusCode::SERVICE_UNAVAILABLE, &reason));
            };
            if let Some(server) = sessions.remove(&id) {
                // Its client gets 404, and begins a new session.
                tokio::spawn(async move { server.end().await });
            }
        }
        let server = StdioServer::new(process::Ids::Kept);
        server.start(&self.how);
        let id = uuid::Uuid::new_v4().to_string();
        sessions.insert(id.clone(), Arc::clone(&server));
        Ok((server, Some(id)))
    }

    async fn share(&self) -> Result<Arc<StdioServer>, String> {
        let mut shared = self.shared.lock().await;
        if let Some(server) = shared.as_ref().filter(|server| !server.has_ended()) {
            return Ok(Arc::clone(server));
        }
        let server = StdioServer::new(process::Ids::Ours);
        server.start(&self.how);
        *shared = Some(Arc::clone(&server));
        Ok(server)
    }

    fn session(&self, headers: &HeaderMap) -> Result<Arc<StdioServer>, Answer> {
        let id = headers.get(SESSION).and_then(|id| id.to_str().ok());
        let id = id.ok_or_else(|| text(StatusCode::BAD_REQUEST, "the header Mcp-Session-Id is missing"))?;
        let known = self.sessions().get(id).filter(|server| !server.has_ended()).cloned();
        known.ok_or_else(|| text(StatusCode::NOT_FOUND, "this session is unknown, or its server has ended"))
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Arc<StdioServer>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of sessions with how long they are idle, the one whose place a new one may take.
fn gives_way<'s>(sessions: impl Iterator<Item = (&'s str, Option<Duration>)>) -> Option<&'s str> {
    let idle = sessions.filter_map(|(id, idle)| Some((idle.filter(|idle| *idle >= IDLE)?, id)));
    idle.max().map(|(_, id)| id)
}

/// The status that goes with an error (2026-07-28, basic/transports, Streamable HTTP); the legacy era has none.
fn status_of(is_modern: bool, response: &Value) -> StatusCode {
    match response.pointer("/error/code").and_then(Value::as_i64).filter(|_| is_modern) {
        Some(METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

fn is_known(version: &str) -> bool {
    Revision::LEGACY.into_iter().chain([Revision::MODERN]).any(|revision| revision.as_str() == version)
}

/// The origin of a page that is not on this machine: it may have made a browser connect here (DNS rebinding).
fn foreign_origin(headers: &HeaderMap, own: SocketAddr) -> Option<String> {
    let origin = String::from_utf8_lossy(headers.get(ORIGIN)?.as_bytes()).into_owned();
    let host = Url::parse(&origin).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_here = bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback() || address == own.ip());
    (!is_here).then(|| origin.chars().take(100).collect())
}

/// Messages as events. The exchange ends with its stream.
struct EventStream {
    first: Option<Value>,
    messages: mpsc::Receiver<Value>,
    /// Of the request whose response ends the stream.
    exchange: Option<Exchange>,
    ended: bool,
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let next = match self.first.take() {
            Some(first) => Some(first),
            None => match self.messages.poll_recv(context) {
                Poll::Ready(next) => next,
                Poll::Pending => return Poll::Pending,
            },
        };
        let Some(message) = next else {
            self.ended = true;
            return Poll::Ready(None);
        };
        if let Some(exchange) = &mut self.exchange {
            exchange.saw(&message);
            self.ended = exchange.is_over();
        }
        let event = format!("event: message\ndata: {message}\n\n");
        Poll::Ready(Some(Ok(Frame::data(event.into()))))
    }
}

fn events(first: Option<Value>, messages: mpsc::Receiver<Value>, exchange: Option<Exchange>) -> Answer {
    let mut response = Response::new(EventStream { first, messages, exchange, ended: false }.boxed());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn json_response(status: StatusCode, message: &Value) -> Answer {
    let mut response = Response::new(Full::new(Bytes::from(message.to_string())).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn error(status: StatusCode, id: &Value, code: i64, reason: &str) -> Answer {
    let error = json!({ "code": code, "message": format!("mcproof proxy: {reason}") });
    json_response(status, &json!({ "jsonrpc": "2.0", "id": id, "error": error }))
}

/// The server behind did not respond.
fn failed(id: Option<&Value>, reason: &str) -> Answer {
    error(StatusCode::BAD_GATEWAY, id.unwrap_or(&Value::Null), NO_RESPONSE, reason)
}

fn text(status: StatusCode, reason: &str) -> Answer {
    let mut response = Response::new(Full::new(Bytes::from(format!("mcproof proxy: {reason}\n"))).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

fn empty(status: StatusCode) -> Answer {
    let mut response = Response::new(Full::new(Bytes::new()).boxed());
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_that_is_idle_for_longest_gives_way_and_one_in_use_never() {
        let check = |sessions: &[(&str, Option<u64>)], expected: Option<&str>| {
            let sessions = sessions.iter().map(|(id, idle)| (*id, idle.map(Duration::from_secs)));
            assert_eq!(gives_way(sessions), expected);
        };
        check(&[("a", Some(70)), ("b", Some(600)), ("c", None)], Some("b"));
        check(&[("a", Some(59)), ("c", None)], None);
        check(&[], None);
    }
}
