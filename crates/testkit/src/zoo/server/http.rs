//! Streamable HTTP of both eras at `/mcp`: blocking sockets, a thread for each connection.

use super::guard;
use super::message::{INVALID_REQUEST, MessageKind, Outlet, PARSE_ERROR, kind, readable_id};
use super::reply::{Accepts, Reply, Stream};
use super::response::Response;
use super::session::{LEGACY, MODERN, Session};
use super::{Ended, Received, RpcError, Server, answer, batch, headers, modern, note, sse};
use crate::raw_http::{self, Request};
use crate::zoo::InternalDeviation;
use crate::zoo::changes::ask;
use mcproof_protocol::Era;
use mcproof_protocol::Transport;
use serde_json::{Value, json};
use std::io::{self, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// Where messages go.
const PATH: &str = "/mcp";

/// A request, and the connection that it came on.
pub(super) struct Exchange<'a> {
    pub(super) server: &'a Arc<Server>,
    pub(super) request: &'a Arc<Request>,
    pub(super) connection: &'a TcpStream,
}

pub(super) fn serve(server: &Arc<Server>, port: u16, transport: Transport) -> io::Result<()> {
    let address = if server.deviates(InternalDeviation::ListensEverywhere) { Ipv4Addr::UNSPECIFIED } else { Ipv4Addr::LOCALHOST };
    let listener = TcpListener::bind((address, port))?;
    let port = listener.local_addr()?.port();
    let path = if transport == Transport::Sse { sse::PATH } else { PATH };
    writeln!(io::stderr(), "listening on http://127.0.0.1:{port}{path}")?;
    for connection in listener.incoming() {
        let (connection, server) = (connection?, Arc::clone(server));
        // Ends with an error when the client goes, as it does sooner or later.
        thread::spawn(move || converse(&server, &connection, transport));
    }
    Ok(())
}

fn converse(server: &Arc<Server>, connection: &TcpStream, transport: Transport) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut reader = BufReader::new(connection.try_clone()?);
    loop {
        let mut writer = connection;
        let paused = server.deviates(InternalDeviation::BodiesEndAtPauses).then_some(connection);
        let request = match raw_http::read_up_to_pause(&mut reader, &mut writer, paused) {
            Ok(Some(request)) => Arc::new(request),
            Ok(None) => return Ok(()),
            Err(error) => {
                let status = match error.kind() {
                    io::ErrorKind::InvalidData => 400,
                    io::ErrorKind::FileTooLarge => 413,
                    _ => return Err(error),
                };
                Response::text(status, &error.to_string()).with("connection", "close").send(server, &Request::default(), connection)?;
                return Ok(());
            }
        };
        let exchange = Exchange { server, request: &request, connection };
        if !exchange.route(transport)? {
            return Ok(());
        }
    }
}

impl Exchange<'_> {
    /// Answers; says whether the connection can take another request.
    fn route(&self, transport: Transport) -> io::Result<bool> {
        let (server, request) = (self.server, self.request);
        if let Some(response) = server.deviation.rejected(request) {
            return self.send(response);
        }
        if !request.header("host").is_some_and(|host| self.serves(host)) {
            return self.send(Response::text(403, "this host is not served here"));
        }
        let origin = request.header("origin");
        if !origin.is_none_or(|origin| self.welcomes(origin)) {
            return self.send(Response::text(403, "this origin is not welcome here"));
        }
        if request.method == "OPTIONS" {
            return self.send(preflight());
        }
        if let Some(response) = guard::answer(self) {
            return self.send(response);
        }
        match (transport, request.path().trim_end_matches('/')) {
            (Transport::Sse, _) => sse::route(self),
            (Transport::Http, PATH) => match request.method.as_str() {
                "POST" => self.post(),
                "GET" => self.get(),
                "DELETE" => self.delete(),
                _ => self.not_allowed(),
            },
            _ => self.send(Response::text(404, "there is nothing here")),
        }
    }

    fn serves(&self, host: &str) -> bool {
        let server = self.server;
        // Whoever listens on all addresses is asked by all of them.
        let by_address = || server.deviates(InternalDeviation::ListensEverywhere) && host.parse::<std::net::SocketAddr>().is_ok();
        let begins_well = || ["localhost", "127.0.0.1"].iter().any(|known| host.starts_with(known));
        let by_beginning = server.deviates(InternalDeviation::HostsByTheirBeginning) && begins_well();
        let port = || self.connection.local_addr().map(|address| format!(":{}", address.port()));
        let by_port = server.deviates(InternalDeviation::HostsByTheirPort) && port().is_ok_and(|port| host.ends_with(&port));
        is_local(host) || server.deviates(InternalDeviation::HostUnchecked) || by_beginning || by_port || by_address()
    }

    fn welcomes(&self, origin: &str) -> bool {
        let server = self.server;
        let begins_well = || ["http://localhost", "http://127.0.0.1"].iter().any(|known| origin.starts_with(known));
        if server.deviates(InternalDeviation::OriginsByTheirBeginning) && begins_well() {
            return true;
        }
        let is_unchecked = match self.request.method.as_str() {
            "GET" => server.deviates(InternalDeviation::OriginUncheckedForGet),
            "DELETE" => server.deviates(InternalDeviation::OriginUncheckedForDelete),
            _ => false,
        };
        if is_unchecked {
            return true;
        }
        is_local_origin(origin)
            || server.deviates(InternalDeviation::OriginUnchecked)
            || (origin == "null" && server.deviates(InternalDeviation::NullOriginWelcome))
    }

    /// Sends a response that is complete.
    pub(super) fn send(&self, response: Response) -> io::Result<bool> {
        Ok(with_cors(response, self.request).send(self.server, self.request, self.connection)?.keeps)
    }

    pub(super) fn not_allowed(&self) -> io::Result<bool> {
        self.send(Response::text(405, "not allowed").with("allow", "GET, POST, DELETE, OPTIONS"))
    }

    fn get(&self) -> io::Result<bool> {
        if self.speaks_modern() {
            return self.not_allowed();
        }
        if !self.accepts().events {
            return self.send(Response::text(406, "a GET opens an event stream"));
        }
        if let Err(fault) = self.check_version() {
            return self.refuse(&fault, None);
        }
        let session = match self.session() {
            Ok(session) => session,
            Err(response) => match self.in_place_of_ended() {
                Some(session) => session,
                None => return self.send(response),
            },
        };
        let opened = with_cors(Response::events(), self.request).send(self.server, self.request, self.connection)?;
        if !opened.streams {
            return Ok(opened.keeps);
        }
        let stream = Arc::new(Stream::new(self.server, self.connection)?);
        session.attach(Arc::<Stream>::clone(&stream));
        if self.request.header("last-event-id").is_some() {
            let events = self.server.events_sent();
            events.iter().all(|event| stream.write(event));
        }
        if self.server.deviates(InternalDeviation::AnswersGet200) {
            session.send(&ask(json!("ping of the zoo"), "ping", json!({})));
        }
        stream.stay(self.connection, || session.has_ended())?;
        Ok(false)
    }

    fn delete(&self) -> io::Result<bool> {
        if self.speaks_modern() {
            return self.not_allowed();
        }
        if let Err(fault) = self.check_version() {
            return self.refuse(&fault, None);
        }
        match self.session() {
            Ok(session) => {
                self.server.end_session(&session.id);
                self.send(Response::new(204))
            }
            Err(response) => self.send(response),
        }
    }

    fn post(&self) -> io::Result<bool> {
        let accepts = self.accepts();
        if !is_json(self.server, self.request) {
            return self.send(Response::text(415, "messages are application/json"));
        }
        if !(accepts.json || accepts.events) {
            return self.send(Response::text(406, "answers are application/json or text/event-stream"));
        }
        self.server.deviation.raw(&self.request.body);
        let mut message = match serde_json::from_slice::<Value>(self.server.deviation.readable(&self.request.body)) {
            Ok(Value::Array(messages)) => return self.post_batch(messages, accepts),
            Ok(message) => message,
            Err(error) => return self.refuse(&RpcError::new(PARSE_ERROR, format!("Parse error: {error}")), None),
        };
        self.server.deviation.incoming(&mut message);
        let kind = match kind(&message) {
            Ok(kind) => kind,
            Err(fault) => return self.refuse(&fault, readable_id(&message)),
        };
        let is_modern = self.speaks_modern() || (self.server.knows(Era::Modern) && modern::is_modern(&message));
        if is_modern { self.post_modern(message, kind, accepts) } else { self.post_legacy(message, kind, accepts) }
    }

    fn post_modern(&self, message: Value, kind: MessageKind, accepts: Accepts) -> io::Result<bool> {
        let (server, session) = (Arc::clone(self.server), Arc::new(Session::default()));
        let received = Arc::new(Received { server, session, message, era: Era::Modern, version: MODERN.to_owned() });
        match kind {
            MessageKind::Request => {}
            MessageKind::Notification => {
                note(&received, kind);
                return self.send(Response::new(202));
            }
            MessageKind::Response => return self.refuse(&RpcError::new(INVALID_REQUEST, "this revision asks nothing of clients"), None),
        }
        if received.method() == "tools/call" && received.server.deviates(InternalDeviation::CallsHangUp) {
            return Ok(false);
        }
        let unknown = modern::version(&received.message).filter(|version| *version != MODERN);
        let is_consistent = unknown.is_some() && self.request.header("mcp-protocol-version") == unknown;
        if is_consistent && received.server.deviates(InternalDeviation::UnknownVersionsHangUp) {
            return Ok(false);
        }
        if received.method() == "subscriptions/listen" && !accepts.events {
            return self.send(Response::text(406, "a subscription is an event stream"));
        }
        let reply = Reply::new(self, accepts, prefers_events(received.method()), true)?;
        if let Err(fault) = headers::check(&received, self.request) {
            reply.refuse_with(400);
            received.send(fault.answer(Some(received.id())), &reply);
            return reply.finish(Ended::Answered);
        }
        self.reply(&received, reply)
    }

    fn post_legacy(&self, message: Value, kind: MessageKind, accepts: Accepts) -> io::Result<bool> {
        if let Err(fault) = self.check_version() {
            return self.refuse(&fault, readable_id(&message));
        }
        let server = Arc::clone(self.server);
        let opens = kind == MessageKind::Request && message["method"] == "initialize";
        let session = match opens {
            true => self.server.open_session(),
            false => match self.session() {
                Ok(session) => session,
                Err(response) => return self.send(response),
            },
        };
        let version = session.version().unwrap_or_default();
        let received = Arc::new(Received { server, session, message, era: Era::Legacy, version });
        if kind != MessageKind::Request {
            note(&received, kind);
            if kind == MessageKind::Notification && received.server.deviates(InternalDeviation::NotificationsHangUp) {
                return Ok(false);
            }
            return self.send(match kind {
                MessageKind::Response if received.server.deviates(InternalDeviation::AnswersGet200) => Response::json(200, &json!({})),
                _ => Response::new(202),
            });
        }
        if received.method() == "tools/call" && received.server.deviates(InternalDeviation::CallsHangUp) {
            return Ok(false);
        }
        let reply = Reply::new(self, accepts, prefers_events(received.method()), false)?;
        if opens {
            reply.name_session(&received.session.id);
        }
        self.reply(&received, reply)
    }

    fn reply(&self, received: &Arc<Received>, reply: Reply) -> io::Result<bool> {
        let reply = Arc::new(reply);
        let outlet: Arc<dyn Outlet> = Arc::<Reply>::clone(&reply);
        let ticket = self.server.enter(&received.session, received.id());
        let ended = answer(received, &ticket, &outlet);
        self.server.leave(&received.session, received.id(), &ticket);
        reply.finish(ended)
    }

    fn post_batch(&self, messages: Vec<Value>, accepts: Accepts) -> io::Result<bool> {
        let batches = |session: &Arc<Session>| batch::check(self.server, session, &messages);
        let session = match self.session() {
            Ok(session) if !self.speaks_modern() && batches(&session).is_ok() => session,
            _ => return self.refuse(&RpcError::new(INVALID_REQUEST, "Invalid request: there are no batches here"), None),
        };
        if !messages.iter().any(|message| kind(message) == Ok(MessageKind::Request)) {
            return self.send(Response::new(202));
        }
        let reply = Arc::new(Reply::new(self, accepts, false, false)?);
        let outlet: Arc<dyn Outlet> = Arc::<Reply>::clone(&reply);
        batch::answer_all(self.server, &session, messages, &outlet);
        reply.finish(Ended::Answered)
    }

    /// The session that the request names.
    fn session(&self) -> Result<Arc<Session>, Response> {
        match self.request.header("mcp-session-id") {
            Some(id) => self.server.session(id).map_err(|status| Response::text(status, "there is no such session")),
            None => self.server.any_session().ok_or_else(|| Response::text(400, "Mcp-Session-Id is missing")),
        }
    }

    /// One that takes the place of the session that the request names, if that has ended and nobody looks at that.
    fn in_place_of_ended(&self) -> Option<Arc<Session>> {
        let id = self.request.header("mcp-session-id").filter(|_| self.server.deviates(InternalDeviation::StreamsInEndedSessions))?;
        self.server.sessions().get(id).map(|_| Arc::default())
    }

    /// 400, with an error where the revision has errors without an id.
    fn refuse(&self, fault: &RpcError, id: Option<&Value>) -> io::Result<bool> {
        let version = match self.session() {
            Ok(session) => session.version(),
            Err(_) => self.request.header("mcp-protocol-version").map(str::to_owned),
        };
        let tells = id.is_some() || self.speaks_modern() || version.as_deref() == Some("2025-11-25");
        self.send(if tells { Response::json(400, &fault.answer(id)) } else { Response::text(400, &fault.message) })
    }

    /// "If the server receives a request with an invalid or unsupported `MCP-Protocol-Version`, it MUST respond with 400"
    /// (2025-06-18, basic/transports). A missing one means 2025-03-26.
    fn check_version(&self) -> Result<(), RpcError> {
        match self.request.header("mcp-protocol-version") {
            Some(version) if !LEGACY.contains(&version) && !self.takes_any_version() => {
                Err(RpcError::new(INVALID_REQUEST, format!("unsupported protocol version: {version}")))
            }
            _ => Ok(()),
        }
    }

    fn takes_any_version(&self) -> bool {
        let of_method = match self.request.method.as_str() {
            "GET" => InternalDeviation::VersionHeaderUncheckedForGet,
            "DELETE" => InternalDeviation::VersionHeaderUncheckedForDelete,
            _ => InternalDeviation::VersionHeaderUnchecked,
        };
        self.server.deviates(of_method) || self.server.deviates(InternalDeviation::VersionHeaderUnchecked)
    }

    /// Whether the request says in its head that it is of the modern era, or could be of no other.
    fn speaks_modern(&self) -> bool {
        let server = self.server;
        server.knows(Era::Modern) && (!server.knows(Era::Legacy) || self.request.header("mcp-protocol-version") == Some(MODERN))
    }

    fn accepts(&self) -> Accepts {
        let Some(accepted) = self.request.header("accept") else { return Accepts { json: true, events: true } };
        let takes = |kind: &str| {
            let family = kind.split('/').next().unwrap_or_default();
            accepted.split(',').any(|range| {
                let range = range.split(';').next().unwrap_or_default().trim();
                range == "*/*" || range.eq_ignore_ascii_case(kind) || range.strip_suffix("/*") == Some(family)
            })
        };
        Accepts { json: takes("application/json"), events: takes("text/event-stream") }
    }
}

/// Whether an answer is told as an event: where other messages may come before it, and for lists, so that each client sees
/// both forms.
fn prefers_events(method: &str) -> bool {
    matches!(method, "tools/call" | "tasks/result" | "tools/list" | "resources/read" | "subscriptions/listen")
}

pub(super) fn is_json(server: &Server, request: &Request) -> bool {
    let kind = request.header("content-type").and_then(|kind| kind.split(';').next());
    server.deviates(InternalDeviation::ContentTypeUnchecked)
        || kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// Whether a value of `Host` names this machine as its clients do.
fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => host.split(':').next(),
    };
    matches!(name, Some("127.0.0.1" | "localhost" | "::1"))
}

fn is_local_origin(origin: &str) -> bool {
    origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")).is_some_and(is_local)
}

fn preflight() -> Response {
    const HEADERS: &str = "content-type, accept, authorization, mcp-session-id, mcp-protocol-version, last-event-id, mcp-method, \
        mcp-name, mcp-param-region, mcp-param-most, mcp-param-key";
    Response::new(204)
        .with("access-control-allow-methods", "GET, POST, DELETE, OPTIONS")
        .with("access-control-allow-headers", HEADERS)
        .with("access-control-max-age", "600")
}

/// Lets pages of this machine read the response.
pub(super) fn with_cors(response: Response, request: &Request) -> Response {
    match request.header("origin") {
        Some(origin) if is_local_origin(origin) => response
            .with("access-control-allow-origin", origin)
            .with("access-control-expose-headers", "Mcp-Session-Id, WWW-Authenticate, Mcp-Protocol-Version")
            .with("vary", "Origin"),
        _ => response,
    }
}
