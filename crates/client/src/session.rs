//! One conversation with a server: handshake or discovery, requests, shutdown. Interprets messages, never bytes.

mod bare_connection;
mod connect_failure;
mod dispatcher;
mod endpoint_search;
mod handshake;
mod history_bounds;
mod hosted_tasks;
mod listing;
mod modern;
mod notifications;
mod open;
mod param_headers;
mod raw;
mod renew;
mod responder;
mod rounds;
mod sent;
mod silence;
mod subscription;
mod target;
mod task;
mod wait_options;
mod wire;

pub use bare_connection::open_bare;
pub use connect_failure::ConnectFailure;
pub use dispatcher::Fault;
pub use endpoint_search::search_endpoint;
pub use listing::{ListFailure, Listed};
pub use notifications::{Notification, NotificationFailure};
pub use open::{is_gateway, open_in_memory, open_relayed, open_session};
pub use param_headers::{ParamHeaders, check_param_headers, param_headers};
pub use raw::{RawHttpRequest, RawHttpResponse, Reads, Sends, WaitFor, request_elsewhere};
pub use renew::SessionEnd;
pub use sent::Sent;
pub use subscription::{ListenFailure, Subscription, SubscriptionEnd, SubscriptionFailure};
pub use target::{ConnectOptions, Reading, Startup, Target, UrlFinder};
pub use task::{Called, Task, TaskEnd, TaskFailure, TaskState, TaskStatus};
pub use wait_options::{Canceler, Cancellation, Deadline, WaitOptions};

pub(crate) use history_bounds::BacklogSlot;

use crate::Tap;
use crate::answers::Answers;
use crate::auth::AuthorizationFailure;
use crate::jsonrpc::{Malformed, RpcError};
use crate::transport::{
    Closed, Endpoint, Exit, HttpHead, Process, Resume, ShutdownReport, ShutdownTimeouts, Stage, StdinUse, Unanswered, ViolationKind,
};
use dispatcher::Dispatcher;
use handshake::Offer;
use mcproof_protocol::{Era, Transport, methods};
use mcproof_record::duration::readable;
use mcproof_record::{FrameId, Json, JsonObject};
use modern::mirrored;
pub use modern::request_headers;
use responder::{Responder, ResponsePolicies};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use task::TaskSupport;
use tokio::process::ChildStdin;
use wire::{Connection, Outgoing, TOO_LATE, Wire};

/// What a server said of itself in the response to `initialize` or `server/discover`.
#[derive(Clone, Debug, PartialEq)]
pub struct Handshake {
    pub era: Era,
    pub transport: Transport,
    /// The revision that both sides speak from here on.
    pub protocol_version: String,
    /// `{name, version, …}`; modern servers may leave it out.
    pub server_info: Option<Value>,
    pub capabilities: Value,
    pub instructions: Option<String>,
    /// The whole result.
    pub result: Value,
    /// Whether the server itself has shown its era.
    pub era_evidence: EraEvidence,
    /// Over stdio, how long a response to `server/discover` was waited for in vain before the server was initialized, which a client of its
    /// era does not do.
    pub lost_to_discovery: Duration,
}

/// How the era of a session is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EraEvidence {
    /// The server responded as one of this era does, or no other era was to be tried.
    #[default]
    Shown,
    /// `server/discover` got no response in time, or one that says nothing about eras: `initialize` worked, and a server that is only slow
    /// may be a modern one all the same.
    Assumed,
}

impl Handshake {
    /// Both eras in one form, for expectations and for users.
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

/// A response, as it came.
#[derive(Clone, Debug)]
pub struct Reply<Answer = Value> {
    pub answer: Result<Answer, RpcError>,
    /// The response had no id; only the HTTP exchange tells to which request it belongs.
    pub anonymous: bool,
    pub request_frame: Option<FrameId>,
    pub frame: FrameId,
    /// From the request to its response.
    pub elapsed: Duration,
    /// The head of the HTTP response that carried it.
    pub http: Option<Arc<HttpHead>>,
}

impl Reply<Json> {
    pub fn read(self) -> Reply {
        let Self { answer, anonymous, request_frame, frame, elapsed, http } = self;
        Reply { answer: answer.map(Json::into_inner), anonymous, request_frame, frame, elapsed, http }
    }
}

/// Why a request got no response.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallFailure {
    #[error("no response to `{method}` within {}{}", readable(*.after), .stage.map(|stage| format!(": {stage}")).unwrap_or_default())]
    TimedOut {
        method: String,
        after: Duration,
        /// How far its exchange had come, where HTTP carries it.
        stage: Option<Stage>,
    },
    #[error("`{method}` was canceled after {}, as requested", readable(*.after))]
    Cancelled { method: String, after: Duration },
    #[error("the response is not a valid message: {0}")]
    NotAnAnswer(Malformed),
    #[error("the server sent {0}")]
    Lost(ViolationKind),
    #[error("server requires authorization (HTTP {}), which failed: {failure}", .head.status)]
    Unauthorized { head: Arc<HttpHead>, failure: AuthorizationFailure },
    #[error("{0}")]
    Closed(Closed),
    #[error("{}", describe_unanswered(.0))]
    Unanswered(Unanswered),
}

fn describe_unanswered(why: &Unanswered) -> String {
    match why {
        Unanswered::Unreachable(reason) => reason.to_string(),
        Unanswered::Response { head, excerpt, broken } => {
            let kind = head.header("content-type").unwrap_or("no content type");
            let mut text = format!("HTTP {}: not an MCP response, {kind}", head.status);
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
    /// Where an HTTP server listens, and which of its transports it is.
    reached: Option<(Endpoint, Transport)>,
    dispatcher: Arc<Dispatcher>,
    handshake: Handshake,
    /// Without what the responses let it declare.
    client: ClientProfile,
    /// What a legacy handshake declares.
    declared: ClientProfile,
    policies: ResponsePolicies,
    offer: Offer,
    /// Modern HTTP: which arguments of which tool are mirrored into headers, as far as tools have been listed.
    param_headers: Mutex<ParamHeaders>,
    /// Legacy: which tools may be called as tasks, once tools have been listed.
    task_support: Mutex<TaskSupport>,
    tap: Tap,
    patience: ShutdownTimeouts,
    answering: Responder,
}

/// A process that listens, and its stdin.
struct Spawned {
    process: Process,
    stdin: ChildStdin,
    /// The URL of the server, and which other process listens there.
    other: Option<(String, String)>,
}

/// Who we say that we are.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientProfile {
    pub name: String,
    pub version: String,
    /// What `clientInfo` has besides these two.
    pub further_info: Map<String, Value>,
    pub capabilities: Map<String, Value>,
}

impl Default for ClientProfile {
    fn default() -> Self {
        let (further_info, capabilities) = (Map::new(), Map::new());
        Self { name: "mcproof".into(), version: env!("CARGO_PKG_VERSION").into(), further_info, capabilities }
    }
}

impl ClientProfile {
    /// Declares these as well. Where the profile says itself how far it can do something, that stands.
    fn declare(&mut self, capabilities: Map<String, Value>) {
        for (name, capability) in capabilities {
            self.capabilities.entry(name).or_insert(capability);
        }
    }

    fn info(&self) -> Value {
        let mut info = json!({ "name": self.name, "version": self.version });
        for (name, value) in &self.further_info {
            info[name] = value.clone();
        }
        info
    }
}

/// Headers of a message, names in lower case.
pub type Headers = Vec<(String, String)>;

const VERSION_HEADER: &str = "mcp-protocol-version";
const SESSION_HEADER: &str = "mcp-session-id";

impl Session {
    pub fn handshake(&self) -> &Handshake {
        &self.handshake
    }

    pub fn tap(&self) -> &Tap {
        &self.tap
    }

    /// What the server sent that fits no conforming conversation, in order. What injected faults made of it does not count.
    pub fn faults(&self) -> Vec<Fault> {
        let mut faults = self.dispatcher.faults();
        if self.tap.is_disturbed() {
            // An error without an id is how a server answers a request that we mutilated.
            let ours = |fault: &Fault| {
                matches!(fault.kind, ViolationKind::UnfinishedLine | ViolationKind::NoId(_)) || self.tap.is_excused(fault.frame)
            };
            faults.retain(|fault| !ours(fault));
        }
        faults
    }

    /// Why the connection has ended, if it has.
    pub fn closed_because(&self) -> Option<Closed> {
        self.dispatcher.closed_because()
    }

    /// Sends a request and waits for its response. A JSON-RPC error is a response. When the deadline passes, the server is
    /// told so, as the protocol asks (2025-11-25, basic/lifecycle, timeouts).
    ///
    /// # Errors
    /// No response came: the deadline passed, the connection ended, or the HTTP response carried none.
    pub async fn request(
        &self,
        method: &str,
        params: Option<Map<String, Value>>,
        terms: impl Into<WaitOptions>,
    ) -> Result<Reply, CallFailure> {
        self.request_once(method, params.map(Json::from), terms.into()).await.map(Reply::read)
    }

    async fn request_once(&self, method: &str, params: Option<JsonObject>, terms: WaitOptions) -> Result<Reply<Json>, CallFailure> {
        let again = self.wire.has_session().then(|| (params.clone(), terms.clone()));
        let outcome = self.send(method, params, terms, TOO_LATE).await;
        match (&outcome, again) {
            // 404 for a session id means that the session is over: a client starts a new one (2025-11-25, transports,
            // session management). The request was not taken, so it is sent again.
            (Err(CallFailure::Unanswered(Unanswered::Response { head, .. })), Some((params, terms))) if head.status == 404 => {
                self.tap.note("the server no longer knows the session: initializing again");
                let (wire, dispatcher, transport) = (&self.wire, &self.dispatcher, self.handshake.transport);
                // Boxed, so that a request does not carry the room for what hardly any needs.
                match Box::pin(handshake::initialize(wire, dispatcher, &self.declared, &self.offer, transport)).await {
                    Ok(_) => Box::pin(self.send(method, params, terms, TOO_LATE)).await,
                    Err(_) => outcome,
                }
            }
            _ => outcome,
        }
    }

    /// Sends a request and cancels it after a while, as the transport and the era have it; where a notification says it, with
    /// this `reason`.
    ///
    /// # Errors
    /// [`CallFailure::Cancelled`] if it went as requested; another failure, or the response, if that came before.
    pub async fn request_and_cancel(
        &self,
        method: &str,
        params: Option<Map<String, Value>>,
        after: Duration,
        reason: &str,
    ) -> Result<Reply, CallFailure> {
        match self.send(method, params.map(Json::from), after.into(), reason).await.map(Reply::read) {
            Err(CallFailure::TimedOut { method, after, .. }) => Err(CallFailure::Cancelled { method, after }),
            other => other,
        }
    }

    async fn send(&self, method: &str, params: Option<JsonObject>, terms: WaitOptions, reason: &str) -> Result<Reply<Json>, CallFailure> {
        self.wire.ask(&self.dispatcher, self.outgoing(method, params), terms, self.handshake.era, reason).await
    }

    /// Sends a notification, and waits, at most that long, until an HTTP server has taken it. Nothing shows whether it did.
    pub async fn notify(&self, method: &str, params: Option<Map<String, Value>>, deadline: Duration) {
        let Outgoing { params, headers, .. } = self.outgoing(method, params.map(Json::from));
        self.wire.notify_with(method, params.map(Json::into_inner).as_ref(), headers, deadline).await;
    }

    /// From here on, what the server requests is answered like this, and what this leaves out is refused. In the modern era the
    /// requests from here on also declare it. A legacy server was told at the handshake, once and for all, what it may ask:
    /// what this adds to [`ConnectOptions::later_answers`] it will not ask for.
    pub fn set_client_responses(&self, answers: Answers) {
        self.policies.set(answers);
    }

    /// Who we are, with what the responses of now let us declare.
    fn profile(&self) -> ClientProfile {
        let mut profile = self.client.clone();
        profile.declare(self.policies.get().capabilities());
        profile
    }

    /// A request with all that the era adds to it.
    fn outgoing<'a>(&self, method: &'a str, params: Option<JsonObject>) -> Outgoing<'a> {
        match self.handshake.era {
            Era::Legacy => Outgoing { method, params, headers: self.wire.headers(), resume: Resume::FromLastEvent },
            Era::Modern => {
                let (params, mut headers) =
                    mirrored(&self.profile(), &self.handshake.protocol_version, method, params.map(Json::into_inner));
                if self.handshake.transport == Transport::Http && method == methods::TOOLS_CALL {
                    headers.extend(self.param_headers.lock().unwrap_or_else(PoisonError::into_inner).of_call(&params));
                }
                Outgoing { method, params: Some(params.into()), headers, resume: Resume::Never }
            }
        }
    }

    /// Ends the session and, if we started it, the server.
    pub async fn close(self) -> ShutdownReport {
        let patience = self.patience;
        self.close_within(patience).await
    }

    /// Like [`Session::close`] with other patience.
    pub async fn close_within(self, patience: ShutdownTimeouts) -> ShutdownReport {
        let Self { wire, spawned, answering, .. } = self;
        answering.end().await;
        if let Some(wire) = Arc::into_inner(wire) {
            let session = wire.has_session().then(|| wire.headers());
            match wire.connection {
                Connection::Stdio(stdio) => return stdio.close(patience).await,
                Connection::Http(http) => {
                    if let Some(headers) = session {
                        http.delete(&headers, patience.end_of_input).await;
                    }
                }
                Connection::Sse(sse) => drop(sse),
                Connection::InMemory(mut channel) => {
                    channel.close_output(patience.end_of_input).await;
                    channel.end().await;
                }
            }
        }
        match spawned {
            Some(Spawned { process, stdin, .. }) => process.shut_down(async { drop(stdin) }, StdinUse::Held, patience).await,
            None => ShutdownReport::default(),
        }
    }

    /// Whether a server that listens takes one more connection within `patience`; `false` where nothing listens.
    pub async fn takes_connections(&self, patience: Duration) -> bool {
        let accepts = async {
            match &self.wire.connection {
                Connection::Http(http) => http.accepts().await,
                Connection::Sse(sse) => sse.accepts().await,
                Connection::Stdio(_) | Connection::InMemory(_) => false,
            }
        };
        tokio::time::timeout(patience, accepts).await.unwrap_or(false)
    }

    /// Waits shortly until everything that a dying server said has arrived.
    pub async fn settle(&self) {
        match (&self.wire.connection, &self.spawned) {
            (Connection::Stdio(stdio), _) => stdio.settle().await,
            (_, Some(spawned)) => spawned.process.settle().await,
            _ => {}
        }
    }

    /// Over HTTP+SSE, waits until each POST has its whole response, whatever came on the stream. False if some have not when the
    /// time is over.
    pub async fn settle_posts(&self, patience: Duration) -> bool {
        match &self.wire.connection {
            Connection::Sse(sse) => sse.settle(patience).await,
            _ => true,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_profile_declares_stands_beside_what_responses_let_it_declare() {
        let object = |value: Value| value.as_object().cloned().unwrap_or_default();
        let capabilities = object(json!({ "elicitation": { "url": {} }, "experimental": {} }));
        let mut profile = ClientProfile { capabilities, ..ClientProfile::default() };
        profile.declare(object(json!({ "elicitation": { "form": {}, "url": {} }, "roots": {} })));
        assert_eq!(Value::Object(profile.capabilities), json!({ "elicitation": { "url": {} }, "experimental": {}, "roots": {} }));
    }
}
