//! A plan: a suite after variables and files are resolved. Inert data that could be printed; only `${saved}` values,
//! `${port}` and the server itself are still open.

mod resilience;
mod step;

use mcproof_client::auth::Authorization;
use mcproof_client::{Answers, Destinations, JsonLimits, Limits, Proxies, TapBounds, Tls};
use mcproof_protocol::{Era, EraChoice, Transport};
use mcproof_record::{Diagnostic, Place};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

pub use resilience::{Audit, Breaker, Fault, Leaks, NameConflicts, Retry, RetryCause};
pub(crate) use step::BESIDE;
pub use step::{
    Action, Bytes, Expectations, ExpectedExit, ExpectedFailure, HttpRequest, Listing, Needs, OutputCheck, Redaction, Repeat, Snapshot,
    Spanned, Step, TaskCall, Topic,
};

/// One suite file, resolved.
#[derive(Clone, Debug)]
pub struct Suite {
    /// As the user named it.
    pub file: String,
    /// The folder of the suite file: the working folder of its servers and the base of relative paths.
    pub folder: PathBuf,
    pub timeouts: Timeouts,
    /// By name; `server:` alone gives one that is called `server`.
    pub servers: BTreeMap<String, Server>,
    /// Before the first case of a shared server, and after the last one. Cases with a server of their own have them among
    /// their own steps.
    pub shared: Hooks,
    pub cases: Vec<Case>,
    pub audit: Option<Audit>,
    /// Whether anything in it speaks of `${tmp}`.
    pub uses_tmp: bool,
    /// The other tests of the file, which a run of the suite does not take.
    pub left_out: Vec<LeftOut>,
    /// The tags by which a profile has selected.
    pub profile_tags: Option<ProfileTags>,
    /// What is odd about the suite without being wrong.
    pub notices: Vec<Diagnostic>,
}

/// A test that its suite leaves out by itself, whatever is selected.
#[derive(Clone, Debug)]
pub struct LeftOut {
    pub case: Case,
    pub by: LeftOutBy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOutBy {
    /// Other tests have `only`.
    Only,
    /// It has none of the tags of the profile.
    Profile,
}

/// What a profile selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileTags {
    /// Its name.
    pub profile: String,
    /// A test has one of them.
    pub tags: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From the start of a server until the response to its handshake.
    pub connect: Duration,
    /// From a request until its response.
    pub request: Duration,
    /// Whether the suite says `connect`, and `request`: whoever runs it may have other usual times.
    pub says_connect: bool,
    pub says_request: bool,
    /// If set, progress is asked for and starts `request` anew, up to this in all.
    pub max: Option<Duration>,
    /// For the calls of some tools, in place of `request`.
    pub tools: BTreeMap<String, Duration>,
    /// For a whole test with its setup, without its teardown.
    pub test: Option<Duration>,
    /// For a server to end by itself when it is asked to, and again when it gets SIGTERM.
    pub shutdown: Option<Duration>,
    /// How long nothing may come before a list of notifications is taken for complete.
    pub settle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let usual = Duration::from_secs(30);
        Self {
            connect: usual,
            request: usual,
            says_connect: false,
            says_request: false,
            max: None,
            tools: BTreeMap::new(),
            test: None,
            shutdown: None,
            settle: Duration::from_millis(250),
        }
    }
}

/// Steps around others.
#[derive(Clone, Debug, Default)]
pub struct Hooks {
    pub setup: Vec<Step>,
    /// Run in any case, each of them, whatever failed before.
    pub teardown: Vec<Step>,
}

/// Who else uses the server of a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Nobody: a fresh server and session for each test.
    #[default]
    Test,
    /// The tests of the file on the same transport, one after the other: one server and one session.
    File,
}

/// How often a case that fails is tried again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retries {
    /// After the first attempt.
    pub most: u32,
    /// Before the first retry; doubled for each one after it, with jitter.
    pub delay: Duration,
}

/// When a case is not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    pub reason: String,
    /// On these transports only; on all if empty.
    pub transports: Vec<Transport>,
    /// Only if the session of the first server has this era.
    pub era: Option<Era>,
    /// Only if the first server does not declare this capability, such as `prompts` or `resources.subscribe`.
    pub lacks: Option<String>,
}

/// A server under test and the ways to reach it.
#[derive(Clone, Debug)]
pub struct Server {
    pub name: String,
    pub place: Place,
    pub bindings: Vec<Binding>,
    pub era: EraChoice,
    pub protocol_version: Option<String>,
}

/// How to reach a server over one transport.
#[derive(Clone, Debug)]
pub struct Binding {
    pub transport: Transport,
    pub place: Place,
    /// Always there for stdio; for http and sse when the server is to be started by us.
    pub launch: Option<Launch>,
    /// For http and sse; may hold `${port}`.
    pub url: Option<String>,
    pub headers: Vec<(String, String)>,
    /// A pattern whose first group is the bound port in a line of the server's stdout or stderr.
    pub port_from: Option<regex::bytes::Regex>,
    pub reach: Reach,
}

/// What a suite declares about the way to a server; what it leaves out is as the run has it.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    pub tls: Option<Tls>,
    pub proxy: Option<Proxies>,
    pub authorization: Option<Authorization>,
    pub limits: LimitChoices,
    pub faults: Vec<Fault>,
    /// Where connections may go; no suite says it.
    pub destinations: Destinations,
}

/// Limits that somebody chose; the others are the client's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitChoices {
    pub line: Option<usize>,
    pub body: Option<usize>,
    pub event: Option<usize>,
    pub head: Option<usize>,
    pub depth: Option<usize>,
    pub values: Option<usize>,
    /// Bytes of a session's newest frames that are kept.
    pub transcript: Option<usize>,
}

impl LimitChoices {
    /// These, and where they leave something open, the weaker ones.
    #[must_use]
    pub fn or(self, weaker: Self) -> Self {
        Self {
            line: self.line.or(weaker.line),
            body: self.body.or(weaker.body),
            event: self.event.or(weaker.event),
            head: self.head.or(weaker.head),
            depth: self.depth.or(weaker.depth),
            values: self.values.or(weaker.values),
            transcript: self.transcript.or(weaker.transcript),
        }
    }

    /// What a session keeps of its wire.
    pub fn tap_bounds(self) -> TapBounds {
        let TapBounds { first, bytes } = TapBounds::default();
        TapBounds { first, bytes: self.transcript.unwrap_or(bytes) }
    }

    pub fn limits(self) -> Limits {
        let Limits { line, body, event, head, json } = Limits::default();
        Limits {
            line: self.line.unwrap_or(line),
            body: self.body.unwrap_or(body),
            event: self.event.unwrap_or(event),
            head: self.head.unwrap_or(head),
            json: JsonLimits { depth: self.depth.unwrap_or(json.depth), values: self.values.unwrap_or(json.values) },
        }
    }
}

impl Binding {
    /// Whether an action that needs this can be done here.
    pub fn offers(&self, needs: Needs) -> bool {
        match needs {
            Needs::Stdio => self.transport == Transport::Stdio,
            Needs::Http => matches!(self.transport, Transport::Http | Transport::Sse),
            Needs::OwnProcess => self.launch.is_some(),
        }
    }
}

/// A command that starts a server, or does something around a test. Arguments and values may hold `${port}` and `${tmp}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Launch {
    pub command: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Where relative paths begin.
    pub folder: PathBuf,
    /// The working folder, if it is another one.
    pub cwd: Option<String>,
    pub inherited: Inherited,
}

/// What a process has of our own environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Inherited {
    #[default]
    All,
    Only(Vec<(String, String)>),
}

/// What a test is not judged by: an id, an area or a glob.
#[derive(Clone, Debug)]
pub struct SkippedRule {
    pub name: String,
    pub place: Place,
}

/// One test.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub place: Place,
    /// The last line of its file that belongs to it.
    pub last_line: u32,
    pub tags: Vec<String>,
    pub skip_rules: Vec<SkippedRule>,
    /// Whether faults on the wire are warnings.
    pub allows_faults: bool,
    pub skips: Vec<Skip>,
    pub isolation: Isolation,
    pub retries: Retries,
    /// In addition to those of its servers.
    pub faults: Vec<Fault>,
    pub retry: Option<Retry>,
    pub breaker: Option<Breaker>,
    pub leaks: Option<Leaks>,
    /// For the whole case, without its teardown.
    pub timeout: Option<Duration>,
    pub hooks: Hooks,
    pub steps: Vec<Step>,
    /// How the client responds to requests of the server.
    pub answers: Answers,
    /// Variables that are known before the case starts.
    pub variables: Map<String, Value>,
}
