//! One step of a case as a plan holds it: its action, how often it is done, and what is expected of it.

use super::{Launch, NameConflicts, Retry, RetryCause};
use crate::judge::{JsonPath, Matcher, Selector, TextPattern};
use mcproof_client::{Answers, ProcessSignal};
use mcproof_protocol::methods;
use mcproof_record::Place;
use regex::Regex;
use serde_json::{Map, Value};
use std::time::Duration;

/// Between the name of a server and that of a session with it, where it is not the first one.
pub(crate) const BESIDE: char = '#';

/// One action of a test with its expectations.
#[derive(Clone, Debug)]
pub struct Step {
    pub place: Place,
    /// A key of [`super::Suite::servers`]; none for a command of its own.
    pub server: Option<String>,
    /// Another session with that server than its first one.
    pub session: Option<String>,
    pub action: Action,
    /// Sent as `_meta` of the request.
    pub meta: Map<String, Value>,
    /// Calls the tool as a task, and follows that to its end.
    pub task: Option<TaskCall>,
    /// While it is done, in place of those of the case.
    pub answers: Option<Answers>,
    pub repeat: Option<Repeat>,
    pub expect: Expectations,
    /// Variable name to what of the payload it is, or of `result` where the path begins with `result`.
    pub save: Vec<(String, Spanned<Selector>)>,
    pub snapshot: Option<Snapshot>,
    /// The answer has to come within this time.
    pub within: Option<Spanned<Duration>>,
    /// Replaces [`super::Timeouts::request`] for this step.
    pub timeout: Option<Duration>,
    /// Replaces [`super::Timeouts::max`] for this step.
    pub max_timeout: Option<Duration>,
    /// Replaces that of the case.
    pub retry: Option<Retry>,
    pub output: OutputCheck,
}

impl Step {
    /// Whether the server may be gone after it: the step expects that, or does what may end it.
    pub(crate) fn may_end_server(&self) -> bool {
        let is_expected = self.expect.failure.as_ref().is_some_and(|failure| failure.value.names_lost_connection());
        is_expected || self.expect.exit.is_some() || matches!(self.action, Action::Run(_) | Action::SendBytes(_))
    }

    /// What tells the session that it uses from all others of its case: that of its server, or another one with it.
    pub fn conversation(&self) -> Option<String> {
        let server = self.server.as_ref()?;
        Some(self.session.as_ref().map_or_else(|| server.clone(), |session| format!("{server}{BESIDE}{session}")))
    }

    pub fn needs(&self) -> Option<Needs> {
        // Over stdio a process has one session.
        if self.session.is_some() { Some(Needs::Http) } else { self.action.needs() }
    }

    /// This step, or those that it runs at the same time.
    pub fn leaves(&self) -> &[Self] {
        match &self.action {
            Action::Parallel(steps) => steps,
            _ => std::slice::from_ref(self),
        }
    }
}

#[derive(Clone, Debug)]
pub enum Action {
    /// What the handshake or discovery said.
    Handshake,
    Call {
        tool: String,
        arguments: Map<String, Value>,
    },
    /// Lists all pages. The payload is keyed by name (resources by `uri`, templates by `uriTemplate`).
    List(Listing),
    /// Lists the tools of all servers. The payload is keyed by `server.tool`.
    Federation(NameConflicts),
    Read {
        uri: String,
    },
    Prompt {
        name: String,
        arguments: Map<String, Value>,
    },
    Complete {
        reference: Value,
        argument: String,
        value: String,
        /// Arguments that have a value already.
        context: Map<String, Value>,
    },
    Discover,
    Ping,
    Subscribe(Topic),
    Unsubscribe(Topic),
    /// A call that is canceled before its response.
    Cancel {
        tool: String,
        arguments: Map<String, Value>,
        after: Duration,
        /// The reason that is sent to the server; may hold `${saved}` values.
        reason: String,
    },
    /// A JSON-RPC message as it stands.
    Raw(Map<String, Value>),
    Http(HttpRequest),
    /// To stdin, or as the body of a POST.
    SendBytes(Bytes),
    CloseStdin,
    Signal(ProcessSignal),
    /// Ends the server in order and starts it anew; saved values stay.
    Restart,
    /// All at the same time.
    Parallel(Vec<Step>),
    /// Runs a command of its own and waits for its end.
    Run(Launch),
}

/// A call as a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskCall {
    /// How long the server is asked to keep it.
    pub ttl: Option<Duration>,
}

/// What an action cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    Stdio,
    /// Streamable HTTP or HTTP+SSE.
    Http,
    /// A server that we start.
    OwnProcess,
}

impl Needs {
    /// What it is, after "needs".
    pub fn noun(self) -> &'static str {
        match self {
            Self::Stdio => "the stdio transport",
            Self::Http => "an HTTP transport",
            Self::OwnProcess => "a server that mcproof starts",
        }
    }
}

impl Action {
    /// What it does, as a person says it: `call create_order`.
    pub fn title(&self) -> String {
        match self {
            Self::Handshake => "handshake".into(),
            Self::Call { tool, .. } => format!("call {tool}"),
            Self::List(listing) => format!("list {}", listing.noun()),
            Self::Federation(_) => "federation".into(),
            Self::Read { uri } => format!("read {uri}"),
            Self::Prompt { name, .. } => format!("prompt {name}"),
            Self::Complete { argument, .. } => format!("complete {argument}"),
            Self::Discover => "discover".into(),
            Self::Ping => "ping".into(),
            Self::Subscribe(topic) => format!("subscribe {}", topic.name()),
            Self::Unsubscribe(topic) => format!("unsubscribe {}", topic.name()),
            Self::Cancel { tool, .. } => format!("cancel {tool}"),
            Self::Raw(message) => match message.get("method").and_then(Value::as_str) {
                Some(method) => format!("raw {method}"),
                None => "raw message".into(),
            },
            Self::Http(HttpRequest { method, path, .. }) => format!("http {method} {}", path.as_deref().unwrap_or_default()).trim().into(),
            Self::SendBytes(_) => "send bytes".into(),
            Self::CloseStdin => "close stdin".into(),
            Self::Signal(signal) => format!("signal {signal}"),
            Self::Restart => "restart".into(),
            Self::Parallel(steps) => {
                let titles: Vec<String> = steps.iter().map(|step| step.action.title()).collect();
                format!("in parallel: {}", titles.join(", "))
            }
            Self::Run(launch) => format!("run {}", launch.command.first().map_or("", String::as_str)),
        }
    }

    pub fn needs(&self) -> Option<Needs> {
        match self {
            Self::CloseStdin => Some(Needs::Stdio),
            Self::Http(_) => Some(Needs::Http),
            Self::Signal(_) | Self::Restart => Some(Needs::OwnProcess),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    Tools,
    Prompts,
    Resources,
    ResourceTemplates,
}

impl Listing {
    pub fn noun(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::ResourceTemplates => "resource templates",
        }
    }

    pub fn method(self) -> &'static str {
        match self {
            Self::Tools => methods::TOOLS_LIST,
            Self::Prompts => methods::PROMPTS_LIST,
            Self::Resources => methods::RESOURCES_LIST,
            Self::ResourceTemplates => methods::RESOURCES_TEMPLATES_LIST,
        }
    }

    /// The member of the result that holds the list, and the member of an item that identifies it.
    pub fn members(self) -> (&'static str, &'static str) {
        match self {
            Self::Tools => ("tools", "name"),
            Self::Prompts => ("prompts", "name"),
            Self::Resources => ("resources", "uri"),
            Self::ResourceTemplates => ("resourceTemplates", "uriTemplate"),
        }
    }
}

/// What a client can ask to be told about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Updates of one resource, by its URI.
    Resource(String),
    /// Changes of a list.
    List(Listing),
}

impl Topic {
    pub fn name(&self) -> &str {
        match self {
            Self::Resource(uri) => uri,
            Self::List(listing) => listing.noun(),
        }
    }
}

/// A request to the origin of the endpoint. Texts may hold `${saved}` values.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpRequest {
    pub method: String,
    /// With its query; the endpoint's own if there is none.
    pub path: Option<String>,
    pub headers: Vec<(String, String)>,
    /// Text as it is, anything else as JSON.
    pub body: Option<Value>,
    /// Whether the headers of the session go along: its id and the protocol version.
    pub in_session: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bytes {
    /// May hold `${saved}` values.
    Text(String),
    Fixed(Vec<u8>),
}

/// An action that is done several times.
#[derive(Clone, Debug)]
pub struct Repeat {
    /// `${n}` counts them from 1.
    pub times: u32,
    /// So many at the same time.
    pub concurrency: u32,
    /// What differs from response to response.
    pub distinct: Option<Spanned<JsonPath>>,
}

/// What a step expects of its response. Without any failure expectation the action must succeed.
#[derive(Clone, Debug, Default)]
pub struct Expectations {
    /// Matches the payload.
    pub payload: Option<Matcher>,
    /// Matches the raw `result` object.
    pub result: Option<Matcher>,
    /// The exact set of names that a listing holds.
    pub names: Option<Spanned<Vec<String>>>,
    pub failure: Option<Spanned<ExpectedFailure>>,
    /// Matches the list of notifications that came from the beginning of the step on, each `{method, params}`.
    pub notifications: Option<Matcher>,
    pub exit: Option<Spanned<ExpectedExit>>,
}

#[derive(Clone, Debug)]
pub enum ExpectedFailure {
    /// `fails: true`: `isError` or a JSON-RPC error.
    Either,
    /// `tool_error: true`, or a pattern that the error text must match.
    Tool(Option<TextPattern>),
    /// `rpc_error: true`, or a matcher over `{code, message, data}`.
    Rpc(Option<Matcher>),
    /// `no_response:`: one of these keeps the response from coming.
    NoAnswer(Vec<RetryCause>),
}

impl ExpectedFailure {
    /// Whether it names a lost connection, as by the end of the server: `no_response: true` says only that no response comes.
    pub(crate) fn names_lost_connection(&self) -> bool {
        matches!(self, Self::NoAnswer(causes) if causes.contains(&RetryCause::Reset) && causes.len() < RetryCause::ALL.len())
    }
}

/// How the server's process has to end.
#[derive(Clone, Debug)]
pub struct ExpectedExit {
    pub code: Option<Matcher>,
    /// The signal that ends it.
    pub signal: Option<ProcessSignal>,
    /// From the end of the action on.
    pub within: Duration,
}

/// A payload that is compared with what was reviewed before.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub place: Place,
    /// Instead of a number.
    pub name: Option<String>,
    /// Counts the snapshots of a case from 1.
    pub number: u32,
    pub redact: Vec<Redaction>,
}

/// What is replaced in a snapshot, because it differs from run to run.
#[derive(Clone, Debug)]
pub enum Redaction {
    Uuid,
    Datetime,
    /// Ports in URLs and addresses.
    Port,
    /// Such as `12.5 ms`.
    Duration,
    /// Whatever is at this path.
    Path(String, serde_json_path::JsonPath),
    /// Each part of a text that matches.
    Pattern(Regex),
}

/// Whether the output of a tool is held against the schema that the tool declares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputCheck {
    #[default]
    Validated,
    Ignored,
}

/// A value together with where it stands in the suite.
#[derive(Clone, Debug)]
pub struct Spanned<T> {
    pub value: T,
    pub place: Place,
}
