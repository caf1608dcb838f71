//! A mock over Streamable HTTP of both eras, at `/mcp`, and over HTTP+SSE, at `/sse`. Knows HTTP, no answers.

mod guard;
mod reply;
mod sse;

use super::player::{Started, play_after};
use super::server::{Call, MessageKind, Mock, MockEvent, error_message, kind, readable_id};
use super::session::{Outlet, Session};
use super::stdio;
use crate::modern_request::check_headers;
use bytes::Bytes;
use guard::{Accepts, with_cors};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::header::{ALLOW, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use mcproof_protocol::error_code::{INVALID_REQUEST, PARSE_ERROR};
use mcproof_protocol::{Era, Revision};
use mcproof_record::read_message;
use reply::{Body, Broken, Responded};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};

/// Which of the transports over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpKind {
    Streamable,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

const PATH: &str = "/mcp";
/// Bytes of a request body.
const LARGEST: usize = 16 << 20;
const MOST_CONNECTIONS: usize = 1024;
/// Sessions that are kept; the oldest go.
const MOST_SESSIONS: usize = 10_000;
/// How long a head or a body may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What all connections share.
pub(super) struct Site {
    mock: Arc<Mock>,
    kind: HttpKind,
    /// Whether only this machine can connect, so that pages of other sites can be told apart by `Host` and `Origin`.
    is_local: bool,
    sessions: Mutex<Sessions>,
    /// Of requests without a session.
    stateless: Arc<Session>,
    /// What goes on when the HTTP request that began it has its response.
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Default)]
struct Sessions {
    known: HashMap<String, Arc<Session>>,
    order: VecDeque<String>,
}

/// Serves until `stop` is ready.
///
/// # Errors
/// The listener fails.
pub async fn serve_http(mock: &Arc<Mock>, listener: TcpListener, kind: HttpKind, stop: impl Future<Output = ()>) -> io::Result<()> {
    let address = listener.local_addr()?;
    let path = if kind == HttpKind::Sse { sse::PATH } else { PATH };
    mock.tell(MockEvent::Listening(format!("http://{}{path}", reachable(address))));
    let stateless = Session::new(String::new());
    let site = Arc::new(Site {
        mock: Arc::clone(mock),
        kind,
        is_local: address.ip().is_loopback(),
        sessions: Mutex::default(),
        stateless,
        tasks: Mutex::default(),
    });
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
        };
        let Ok((connection, _)) = accepted else {
            // Out of descriptors, as it may be for a moment.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        let site = Arc::clone(&site);
        connections.spawn(async move {
            converse(&site, connection).await;
            drop(place);
        });
    }
    connections.shutdown().await;
    site.tasks.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    Ok(())
}

/// Of an address that listens everywhere, one that can be connected to.
fn reachable(address: SocketAddr) -> SocketAddr {
    match (address.ip().is_unspecified(), address.is_ipv4()) {
        (true, true) => SocketAddr::new([127, 0, 0, 1].into(), address.port()),
        (true, false) => SocketAddr::new([0, 0, 0, 0, 0, 0, 0, 1].into(), address.port()),
        _ => address,
    }
}

async fn converse(site: &Arc<Site>, connection: TcpStream) {
    let _ = connection.set_nodelay(true);
    let service = service_fn(|request| {
        let site = Arc::clone(site);
        async move { route(&site, request).await }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    // A connection that fails is the client's matter.
    let _ = builder.serve_connection(TokioIo::new(connection), service).await;
}

async fn route(site: &Arc<Site>, request: Request<Incoming>) -> Result<Response<Body>, Broken> {
    let (head, body) = request.into_parts();
    let origin = head.headers.get("origin").cloned();
    if let Some(refused) = guard::refused(site.is_local, &head.headers) {
        return Ok(refused);
    }
    if head.method == Method::OPTIONS {
        return Ok(with_cors(guard::preflight(&head.headers), origin.as_ref()));
    }
    let body = match tokio::time::timeout(PATIENCE, Limited::new(body, LARGEST).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => return Ok(with_cors(text(413, "the body is too large"), origin.as_ref())),
        Err(_) => return Err(Broken),
    };
    let visit = Visit { site, headers: head.headers, body };
    let path = head.uri.path().trim_end_matches('/').to_owned();
    let responded = match (site.kind, path.as_str()) {
        (HttpKind::Sse, _) => sse::route(visit, &head.method, &path, head.uri.query().unwrap_or_default()).await,
        (HttpKind::Streamable, PATH) => match head.method {
            Method::POST => visit.post().await,
            Method::GET => visit.get().await,
            Method::DELETE => Ok(visit.delete()),
            _ => Ok(not_allowed()),
        },
        _ => Ok(text(404, "not found: MCP is served at /mcp")),
    };
    responded.map(|response| with_cors(response, origin.as_ref()))
}

/// One HTTP request.
struct Visit<'a> {
    site: &'a Arc<Site>,
    headers: HeaderMap,
    body: Bytes,
}

impl Visit<'_> {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Whether the request says in its head that it is of the modern era, or could be of no other.
    fn is_modern(&self) -> bool {
        let mock = &self.site.mock;
        let says = || self.header("mcp-protocol-version").is_some_and(|version| version >= Revision::MODERN.as_str());
        mock.speaks(Era::Modern) && (!mock.speaks(Era::Legacy) || says())
    }

    async fn get(&self) -> Responded {
        if self.is_modern() {
            return Ok(not_allowed());
        }
        if !Accepts::of(&self.headers).events {
            return Ok(text(406, "a GET opens an event stream: accept text/event-stream"));
        }
        if let Some(refused) = self.refuse_version(&Value::Null) {
            return Ok(refused);
        }
        let session = match self.session() {
            Ok(session) => session,
            Err(refused) => return Ok(refused),
        };
        Ok(reply::open_stream(self.site, session, None))
    }

    fn delete(&self) -> Response<Body> {
        if self.is_modern() {
            return not_allowed();
        }
        if let Some(refused) = self.refuse_version(&Value::Null) {
            return refused;
        }
        match self.session() {
            Ok(session) => {
                session.end();
                empty(204)
            }
            Err(refused) => refused,
        }
    }

    async fn post(&self) -> Responded {
        let accepts = Accepts::of(&self.headers);
        if !guard::is_json(&self.headers) {
            return Ok(text(415, "messages are application/json"));
        }
        if !(accepts.json || accepts.events) {
            return Ok(text(406, "responses are application/json or text/event-stream"));
        }
        let message = match read_message(&self.body) {
            Ok(Value::Array(batch)) => return self.post_batch(batch, accepts).await,
            Ok(message) => message,
            Err(error) => return Ok(self.refuse(PARSE_ERROR, &format!("Parse error: {error}"), &Value::Null)),
        };
        let kind = match kind(&message) {
            Ok(kind) => kind,
            Err(reason) => return Ok(self.refuse(INVALID_REQUEST, &reason, &readable_id(&message))),
        };
        let is_modern = self.is_modern() || self.site.mock.era_of(&self.site.stateless, &message) == Era::Modern;
        if is_modern { self.post_modern(message, kind, accepts).await } else { self.post_legacy(message, kind, accepts).await }
    }

    async fn post_modern(&self, message: Value, kind: MessageKind, accepts: Accepts) -> Responded {
        let (mock, session) = (&self.site.mock, &self.site.stateless);
        match kind {
            MessageKind::Request => {}
            MessageKind::Notification => {
                let after = mock.noted(session, &message);
                play_after(mock, session, after).await;
                return Ok(empty(202));
            }
            MessageKind::Response => return Ok(self.refuse(INVALID_REQUEST, "this revision has no requests of the server", &Value::Null)),
        }
        let mut message = message;
        let params = message.get_mut("params").map_or_else(|| json!({}), Value::take);
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let call = Call { session: Arc::clone(session), era: Era::Modern, id: message["id"].take(), method, params };
        if super::session::is_listen(&call.method) && !accepts.events {
            return Ok(text(406, "a subscription is an event stream: accept text/event-stream"));
        }
        if let Err(error) = check_headers(|name| mock.tool(name), &call.method, &call.params, &self.headers) {
            return Ok(json_response(400, &json!({ "jsonrpc": "2.0", "id": call.id, "error": error })));
        }
        reply::respond(self.site, Started::of(mock, call), accepts, None).await
    }

    async fn post_legacy(&self, message: Value, kind: MessageKind, accepts: Accepts) -> Responded {
        let mock = &self.site.mock;
        if let Some(refused) = self.refuse_version(&readable_id(&message)) {
            return Ok(refused);
        }
        let opens = kind == MessageKind::Request && message["method"] == "initialize";
        let session = match opens {
            true if self.header("mcp-session-id").is_none() => Session::new(uuid::Uuid::new_v4().to_string()),
            _ => match self.session() {
                Ok(session) => session,
                Err(refused) => return Ok(refused),
            },
        };
        match kind {
            MessageKind::Response => {
                session.respond(message);
                return Ok(empty(202));
            }
            MessageKind::Notification => {
                let after = mock.noted(&session, &message);
                let (mock, session) = (Arc::clone(mock), Arc::clone(&session));
                self.site.own(async move { play_after(&mock, &session, after).await });
                return Ok(empty(202));
            }
            MessageKind::Request => {}
        }
        let started = Started::of(mock, stdio::call(mock, &session, message));
        if !opens {
            return reply::respond(self.site, started, accepts, None).await;
        }
        // A handshake that is refused begins no session.
        let begun = session.version().is_some().then(|| session.id.clone());
        if begun.is_some() {
            self.site.keep(session);
        }
        reply::respond(self.site, started, accepts, begun.as_deref()).await
    }

    async fn post_batch(&self, batch: Vec<Value>, accepts: Accepts) -> Responded {
        let session = match self.session() {
            Ok(session) if !self.is_modern() => session,
            _ => return Ok(self.refuse(INVALID_REQUEST, "Invalid request: there are no batches here", &Value::Null)),
        };
        if let Some(refused) = stdio::batch_error(&session, &batch) {
            return Ok(json_response(400, &refused));
        }
        if !batch.iter().any(|message| kind(message) == Ok(MessageKind::Request)) {
            for message in batch {
                match kind(&message) {
                    Ok(MessageKind::Response) => session.respond(message),
                    _ => drop(self.site.mock.noted(&session, &message)),
                }
            }
            return Ok(empty(202));
        }
        let (outlet, outgoing) = Outlet::new();
        let (mock, batch_session) = (Arc::clone(&self.site.mock), Arc::clone(&session));
        let play = async move {
            let responses = stdio::play_batch(&mock, &batch_session, batch, &outlet).await;
            outlet.message(Value::Array(responses)).await;
        };
        reply::respond_with(self.site, play, outgoing, accepts, Era::Legacy, None).await
    }

    /// The session that the request names.
    fn session(&self) -> Result<Arc<Session>, Response<Body>> {
        let id = self.header("mcp-session-id").ok_or_else(|| text(400, "the header Mcp-Session-Id is missing"))?;
        self.site.session(id).ok_or_else(|| text(404, "this session is unknown or has ended"))
    }

    /// 400 for a request in a version that does not exist, or that has no sessions.
    fn refuse_version(&self, id: &Value) -> Option<Response<Body>> {
        let version = self.header("mcp-protocol-version")?;
        let is_known = Revision::LEGACY.iter().any(|revision| revision.as_str() == version);
        (!is_known).then(|| self.refuse(INVALID_REQUEST, &format!("unsupported protocol version: {version}"), id))
    }

    /// 400, with an error where the revision has errors without an id.
    fn refuse(&self, code: i64, reason: &str, id: &Value) -> Response<Body> {
        let named = self.header("mcp-session-id").and_then(|id| self.site.session(id)).and_then(|session| session.version());
        let version = named.or_else(|| self.header("mcp-protocol-version").map(str::to_owned));
        let has_errors = version.as_deref() == Some(Revision::LATEST_LEGACY.as_str());
        match !id.is_null() || self.is_modern() || has_errors {
            true => {
                let mut error = error_message(id, code, reason);
                if id.is_null() {
                    drop(error.as_object_mut().and_then(|members| members.shift_remove("id")));
                }
                json_response(400, &error)
            }
            false => text(400, reason),
        }
    }
}

impl Site {
    /// Runs something that ends when the mock does, at the latest.
    fn own(&self, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work)
    }

    fn keep(&self, session: Arc<Session>) {
        let mut sessions = self.sessions();
        sessions.order.push_back(session.id.clone());
        sessions.known.insert(session.id.clone(), session);
        if sessions.order.len() > MOST_SESSIONS
            && let Some(oldest) = sessions.order.pop_front()
            && let Some(session) = sessions.known.remove(&oldest)
        {
            session.end();
        }
    }

    fn session(&self, id: &str) -> Option<Arc<Session>> {
        self.sessions().known.get(id).filter(|session| !session.has_ended()).cloned()
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn empty(status: u16) -> Response<Body> {
    let mut response = Response::new(Body::Whole(None));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

fn whole(status: u16, kind: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = empty(status);
    response.headers_mut().insert("content-type", HeaderValue::from_static(kind));
    *response.body_mut() = Body::Whole(Some(body.into()));
    response
}

fn text(status: u16, body: &str) -> Response<Body> {
    whole(status, "text/plain; charset=utf-8", format!("{body}\n"))
}

fn json_response(status: u16, message: &Value) -> Response<Body> {
    whole(status, "application/json", message.to_string())
}

fn not_allowed() -> Response<Body> {
    let mut response = text(405, "this method is not allowed here");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST, DELETE, OPTIONS"));
    response
}

fn set(response: &mut Response<Body>, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(value)) {
        response.headers_mut().insert(name, value);
    }
}
