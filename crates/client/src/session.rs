//! One conversation with a server: handshake or discovery, requests, shutdown. Interprets messages, never bytes.

mod dispatcher;
mod listing;
mod open;

pub use dispatcher::{Fault, FaultKind};
pub use listing::{ListFailure, Listed};
pub use open::{ConnectFailure, ConnectOptions, Locate, Target, open_session};

use crate::Tap;
use crate::answers::Answers;
use crate::jsonrpc::{self, RpcError};
use crate::revision::{Era, TransportKind};
use crate::transport::{
    Closed, Envelope, Exit, HttpConnection, HttpHead, Patience, Process, Purpose, ShutdownReport, SseConnection, StdinUse, StdioConnection,
    Unanswered,
};
use dispatcher::{Dispatcher, ServerRequest};
use mcproof_record::FrameId;
use serde_json::{Map, Value, json};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::process::ChildStdin;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// What a server said of itself in the answer to `initialize` or `server/discover`.
#[derive(Clone, Debug, PartialEq)]
pub struct Handshake {
    pub era: Era,
    pub transport: TransportKind,
    /// The revision that both sides speak from here on.
    pub protocol_version: String,
    /// `{name, version, …}`; modern servers may leave it out.
    pub server_info: Option<Value>,
    pub capabilities: Value,
    pub instructions: Option<String>,
    /// The whole result.
    pub result: Value,
}

impl Handshake {
    /// Both eras in one form, for expectations and for people.
    pub fn to_value(&self) -> Value {
        let mut object = json!({
            "era": self.era.to_string(),
            "transport": self.transport.to_string(),
            "protocolVersion": self.protocol_version,
            "capabilities": self.capabilities,
        });
        if let Some(object) = object.as_object_mut() {
            object.extend(self.server_info.clone().map(|info| ("serverInfo".into(), info)));
            object.extend(self.instructions.clone().map(|text| ("instructions".into(), text.into())));
        }
        object
    }
}

/// An answer, as it came.
#[derive(Clone, Debug)]
pub struct Reply {
    pub answer: Result<Value, RpcError>,
    /// The answer had no id; only the HTTP exchange tells to which request it belongs.
    pub anonymous: bool,
    pub request_frame: Option<FrameId>,
    pub frame: FrameId,
    /// From the request to its answer.
    pub elapsed: Duration,
    /// The head of the HTTP response that carried it.
    pub http: Option<Arc<HttpHead>>,
}

/// Why a request got no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallFailure {
    #[error("no answer to `{method}` within {}", show(*.after))]
    TimedOut { method: String, after: Duration },
    #[error("{0}")]
    Closed(Closed),
    #[error("{}", describe_unanswered(.0))]
    Unanswered(Unanswered),
}

/// A duration as people write it.
pub(crate) fn show(duration: Duration) -> String {
    let millis = duration.as_millis();
    match millis {
        0..1000 => format!("{millis} ms"),
        _ if millis.is_multiple_of(1000) => format!("{} s", millis / 1000),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}

fn describe_unanswered(why: &Unanswered) -> String {
    match why {
        Unanswered::Unreachable(reason) => reason.clone(),
        Unanswered::Response { head, excerpt, broken } => {
            let kind = head.header("content-type").unwrap_or("no content type");
            let mut text = format!("the HTTP response has no answer in it: status {}, {kind}", head.status);
            if let Some(location) = head.header("location") {
                text += &format!(", to {location}");
            }
            if let Some(broken) = broken {
                text += &format!(", broken off ({broken})");
            } else if !excerpt.trim().is_empty() {
                text += &format!(", `{}`", excerpt.lines().next().unwrap_or_default().trim());
            }
            text
        }
    }
}

/// An open session. Dropping it kills a server that it started; [`Session::close`] ends one in good order.
pub struct Session {
    wire: Arc<Wire>,
    /// A server that we started and talk to over HTTP.
    spawned: Option<Spawned>,
    dispatcher: Arc<Dispatcher>,
    handshake: Handshake,
    client: ClientProfile,
    tap: Tap,
    patience: Patience,
    answering: Answering,
}

/// The connection, shared with the task that answers the server's requests.
struct Wire {
    connection: Connection,
    /// Legacy HTTP: what each message after the handshake carries.
    headers: OnceLock<Vec<(&'static str, String)>>,
}

/// The task that answers the server's requests. Ends with its session.
struct Answering(JoinHandle<()>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.abort();
    }
}

enum Connection {
    Stdio(StdioConnection),
    Http(HttpConnection),
    Sse(SseConnection),
}

/// A process that listens, and its stdin.
struct Spawned {
    process: Process,
    stdin: ChildStdin,
}

/// Who we say that we are.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientProfile {
    pub name: String,
    pub version: String,
    pub capabilities: Map<String, Value>,
}

impl Default for ClientProfile {
    fn default() -> Self {
        Self { name: "mcproof".into(), version: env!("CARGO_PKG_VERSION").into(), capabilities: Map::new() }
    }
}

impl ClientProfile {
    fn info(&self) -> Value {
        json!({ "name": self.name, "version": self.version })
    }
}

const VERSION_HEADER: &str = "mcp-protocol-version";
const SESSION_HEADER: &str = "mcp-session-id";

impl Session {
    pub fn handshake(&self) -> &Handshake {
        &self.handshake
    }

    pub fn tap(&self) -> &Tap {
        &self.tap
    }

    /// What the server sent that fits no conforming conversation, in order.
    pub fn faults(&self) -> Vec<Fault> {
        self.dispatcher.faults()
    }

    /// Why the connection has ended, if it has.
    pub fn closed_because(&self) -> Option<Closed> {
        self.dispatcher.closed_because()
    }

    /// Sends a request and waits for its answer. A JSON-RPC error is an answer.
    ///
    /// # Errors
    /// No answer came: the deadline passed, the connection ended, or the HTTP response carried none.
    pub async fn request(&self, method: &str, params: Option<Map<String, Value>>, deadline: Duration) -> Result<Reply, CallFailure> {
        match self.handshake.era {
            Era::Legacy => self.wire.ask(&self.dispatcher, method, params, self.wire.headers(), deadline).await,
            Era::Modern => {
                let (params, headers) = modern(&self.client, &self.handshake.protocol_version, method, params);
                self.wire.ask(&self.dispatcher, method, Some(params), headers, deadline).await
            }
        }
    }

    /// Ends the session and, if we started it, the server.
    pub async fn close(self) -> ShutdownReport {
        let patience = self.patience;
        self.close_within(patience).await
    }

    /// Like [`Session::close`] with other patience.
    pub async fn close_within(self, patience: Patience) -> ShutdownReport {
        let Self { wire, spawned, mut answering, .. } = self;
        answering.0.abort();
        let _ = (&mut answering.0).await;
        if let Some(Wire { connection, headers }) = Arc::into_inner(wire) {
            match connection {
                Connection::Stdio(stdio) => return stdio.close(patience).await,
                Connection::Http(http) => {
                    let headers = headers.into_inner().unwrap_or_default();
                    if headers.iter().any(|(name, _)| *name == SESSION_HEADER) {
                        http.delete(&headers, patience.end_of_input).await;
                    }
                }
                Connection::Sse(sse) => drop(sse),
            }
        }
        match spawned {
            Some(Spawned { process, stdin }) => process.shut_down(Some(stdin), StdinUse::Held, patience).await,
            None => ShutdownReport::default(),
        }
    }

    /// Waits shortly until everything that a dying server said has arrived.
    pub async fn settle(&self) {
        match (&self.wire.connection, &self.spawned) {
            (Connection::Stdio(stdio), _) => stdio.settle().await,
            (_, Some(spawned)) => spawned.process.settle().await,
            _ => {}
        }
    }

    /// How the process that we started ended, if it has.
    pub fn exit(&self) -> Option<Exit> {
        match (&self.wire.connection, &self.spawned) {
            (Connection::Stdio(stdio), _) => stdio.exit(),
            (_, Some(spawned)) => spawned.process.exit(),
            _ => None,
        }
    }
}

impl Wire {
    fn headers(&self) -> Vec<(&'static str, String)> {
        self.headers.get().cloned().unwrap_or_default()
    }

    /// Sends a request and waits for its answer; the handshake may still be ahead.
    async fn ask(
        &self,
        dispatcher: &Dispatcher,
        method: &str,
        params: Option<Map<String, Value>>,
        headers: Vec<(&'static str, String)>,
        deadline: Duration,
    ) -> Result<Reply, CallFailure> {
        let mut waiting = dispatcher.expect_answer()?;
        let body = jsonrpc::request(&waiting.id, method, params.as_ref());
        waiting.sent(self.connection.send(Envelope { body, purpose: Purpose::Request(waiting.id.clone()), headers }));
        match timeout(deadline, waiting.answer()).await {
            Ok(answered) => answered,
            Err(_) => Err(CallFailure::TimedOut { method: method.to_owned(), after: deadline }),
        }
    }

    /// Sends a notification and waits, at most that long, until an HTTP server has taken it: what is sent next must not
    /// overtake it on another connection.
    async fn notify(&self, method: &str, deadline: Duration) {
        let body = jsonrpc::notification(method, None);
        let (done, taken) = oneshot::channel();
        self.connection.send(Envelope { body, purpose: Purpose::Notification(done), headers: self.headers() });
        let _ = timeout(deadline, taken).await;
    }
}

impl Connection {
    fn send(&self, envelope: Envelope) -> FrameId {
        match self {
            Self::Stdio(stdio) => stdio.send(envelope),
            Self::Http(http) => http.send(envelope),
            Self::Sse(sse) => sse.send(envelope),
        }
    }
}

/// The parameters and headers of a modern request (2026-07-28, basic, `_meta`, and Streamable HTTP, request metadata).
fn modern(
    client: &ClientProfile,
    version: &str,
    method: &str,
    params: Option<Map<String, Value>>,
) -> (Map<String, Value>, Vec<(&'static str, String)>) {
    let mut params = params.unwrap_or_default();
    let mut headers = vec![(VERSION_HEADER, version.to_owned()), ("mcp-method", method.to_owned())];
    let name = match method {
        "tools/call" | "prompts/get" => params.get("name"),
        "resources/read" => params.get("uri"),
        _ => None,
    };
    headers.extend(name.and_then(Value::as_str).map(|name| ("mcp-name", header_value(name))));
    let own = [
        ("io.modelcontextprotocol/protocolVersion", Value::from(version)),
        ("io.modelcontextprotocol/clientInfo", client.info()),
        ("io.modelcontextprotocol/clientCapabilities", Value::Object(client.capabilities.clone())),
    ];
    let meta = params.entry("_meta").or_insert_with(|| json!({}));
    if let Some(meta) = meta.as_object_mut() {
        for (key, value) in own {
            // What a plan says stands: it may want to send something wrong.
            meta.entry(key).or_insert(value);
        }
    }
    (params, headers)
}

/// A value as a header can carry it, else in the Base64 sentinel form (2026-07-28, Streamable HTTP, value encoding).
fn header_value(value: &str) -> String {
    let plain = value.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    let padded = value.starts_with([' ', '\t']) || value.ends_with([' ', '\t']);
    let looks_encoded = value.starts_with("=?base64?") && value.ends_with("?=");
    if plain && !padded && !looks_encoded {
        return value.to_owned();
    }
    use base64::Engine as _;
    format!("=?base64?{}?=", base64::engine::general_purpose::STANDARD.encode(value))
}

/// Answers what the server asks, as the policies say.
async fn answer_requests(mut queue: mpsc::UnboundedReceiver<ServerRequest>, wire: Weak<Wire>, answers: Answers) {
    while let Some(ServerRequest { id, method, params }) = queue.recv().await {
        let Some(wire) = wire.upgrade() else { return };
        let body = jsonrpc::response(&id, answers.answer(&method, &params));
        wire.connection.send(Envelope { body, purpose: Purpose::Response, headers: wire.headers() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_values_are_encoded_when_they_have_to_be() {
        let check = |value, expected| assert_eq!(header_value(value), expected);
        check("us-west1", "us-west1");
        check("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?=");
        check(" padded ", "=?base64?IHBhZGRlZCA=?=");
        check("line1\nline2", "=?base64?bGluZTEKbGluZTI=?=");
        check("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=");
    }
}
