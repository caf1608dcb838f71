//! The messages of `mcproof drive`, as `docs/drive.md` explains them: the requests of a driver, their results, and the notifications of mcproof.
//! Plain data; knows neither lines nor sessions.

mod params;
mod results;

pub use params::{
    AnswersParams, Asked, CallParams, CancelParams, CheckParams, ClientParams, CloseParams, CompleteArgument, CompleteParams,
    ContractParams, Denied, DiffParams, DriveAnswers, DriveTarget, ExpectParams, HelloParams, ListParams, Listing, NameOnly, NotifyParams,
    OpenParams, PatienceName, PingParams, PromptParams, Push, RawParams, ReadParams, RelayClosedParams, RelayForm, RelayReceivedParams,
    RequestParams, SessionOnly, SnapshotParams, SpawnParams, Timeouts, TranscriptParams, WaitParams,
};
pub use results::{
    Answer, AskedOfDriver, CallAnswer, CheckFinding, CheckResult, Closed, ContractResult, DiffResult, Ended, ErrorData, ExitStatus,
    Expected, HashResult, HelloResult, Http, ListResult, Nothing, Notified, Opened, Progressed, RawAnswer, RelayEnded, RelayWritten,
    SeenFrame, SnapshotResult, SnapshotState, Spawned, TranscriptResult, Waited,
};

#[cfg(feature = "schema")]
use schemars::JsonSchema;

/// The version of the protocol that these types are.
pub const PROTOCOL: u32 = 1;

/// Declares the methods: their names, and the types of their params and results.
macro_rules! methods {
    ($(#[$doc:meta])* $list:ident, $requests:ident, $results:ident: $($method:literal $name:ident($params:ty) -> $result:ty,)*) => {
        $(#[$doc])*
        pub const $list: &[&str] = &[$($method),*];

        /// The requests that a driver sends, by their methods.
        #[cfg(feature = "schema")]
        #[derive(Clone, Debug, JsonSchema)]
        #[serde(tag = "method", content = "params")]
        #[expect(clippy::large_enum_variant, reason = "never made: it stands for a schema")]
        pub enum $requests {
            $(#[serde(rename = $method)] $name($params),)*
        }

        /// The results of those requests, by their methods.
        #[cfg(feature = "schema")]
        #[derive(Clone, Debug, JsonSchema)]
        #[serde(tag = "method", content = "result")]
        pub enum $results {
            $(#[serde(rename = $method)] $name($result),)*
        }
    };
}

methods! {
    /// The methods that a driver may call.
    METHODS, DriverRequest, DriveResult:
    "hello" Hello(HelloParams) -> HelloResult,
    "open" Open(OpenParams) -> Opened,
    "answers" Answers(AnswersParams) -> Nothing,
    "request" Request(RequestParams) -> Answer,
    "call" Call(CallParams) -> CallAnswer,
    "list" List(ListParams) -> ListResult,
    "read" Read(ReadParams) -> Answer,
    "prompt" Prompt(PromptParams) -> Answer,
    "complete" Complete(CompleteParams) -> Answer,
    "ping" Ping(PingParams) -> Answer,
    "discover" Discover(SessionOnly) -> Opened,
    "notify" Notify(NotifyParams) -> Nothing,
    "raw" Raw(RawParams) -> RawAnswer,
    "wait" Wait(WaitParams) -> Waited,
    "spawn" Spawn(SpawnParams) -> Spawned,
    "stop" Stop(NameOnly) -> Closed,
    "transcript" Transcript(TranscriptParams) -> TranscriptResult,
    "expect" Expect(ExpectParams) -> Expected,
    "snapshot" Snapshot(SnapshotParams) -> SnapshotResult,
    "check" Check(CheckParams) -> CheckResult,
    "contract" Contract(ContractParams) -> ContractResult,
    "hash" Hash(ContractParams) -> HashResult,
    "diff" Diff(DiffParams) -> DiffResult,
    "close" Close(CloseParams) -> Closed,
    "shutdown" Shutdown(Nothing) -> Nothing,
}

/// The notifications that a driver sends.
#[cfg(feature = "schema")]
#[derive(Clone, Debug, JsonSchema)]
#[serde(tag = "method", content = "params")]
pub enum DriverNotification {
    #[serde(rename = "cancel")]
    Cancel(CancelParams),
    #[serde(rename = "relay/received")]
    RelayReceived(RelayReceivedParams<'static>),
    #[serde(rename = "relay/closed")]
    RelayClosed(RelayClosedParams),
}

/// The messages to a driver; `session/ask` is a request, all others are notifications.
#[cfg(feature = "schema")]
#[derive(Clone, Debug, JsonSchema)]
#[serde(tag = "method", content = "params")]
pub enum DrivePush {
    #[serde(rename = "session/notification")]
    Notification(Notified),
    #[serde(rename = "session/progress")]
    Progress(Progressed),
    #[serde(rename = "session/frame")]
    Frame(SeenFrame),
    #[serde(rename = "session/ended")]
    Ended(Ended),
    #[serde(rename = "session/ask")]
    Ask(AskedOfDriver),
    #[serde(rename = "relay/write")]
    RelayWrite(RelayWritten<'static>),
    #[serde(rename = "relay/end")]
    RelayEnd(RelayEnded),
}

/// The content of the lines of `mcproof drive`, without the envelope of JSON-RPC 2.0.
#[cfg(feature = "schema")]
#[derive(Clone, Debug, JsonSchema)]
pub struct DriveMessages {
    pub request: DriverRequest,
    pub notification: DriverNotification,
    pub result: DriveResult,
    pub error: ErrorData,
    pub push: DrivePush,
}
