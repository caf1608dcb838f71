//! Talks to a server and records everything: transports, the tap below JSON, sessions of both eras.
//! Knows no suites and no rules; it never repairs, drops or responds to anything unless its caller requests it.

mod abridged;
mod answers;
pub mod auth;
pub mod jsonrpc;
mod ports;
pub mod redaction;
mod secrets;
mod server_url;
pub mod session;
mod tap;
pub mod transport;

pub use answers::{Answers, Asked, AskedLog, Callback, CallbackResponse, Elicitation, HostedTasks, ResponseJudge, Root, Sampling};

pub use ports::free_port;
pub use secrets::{given_secrets, inherited_secrets, is_secret, url_holds_secret};
pub use server_url::{BadServerUrl, URL_HINT, check_server_url, server_url};
pub use session::{
    CallFailure, Called, Canceler, Cancellation, ClientProfile, ConnectFailure, ConnectOptions, Deadline, EraEvidence, Fault, Handshake,
    Headers, ListFailure, Listed, ListenFailure, Notification, NotificationFailure, ParamHeaders, RawHttpRequest, RawHttpResponse, Reading,
    Reads, Reply, Sends, Sent, Session, SessionEnd, Startup, Subscription, SubscriptionEnd, SubscriptionFailure, Target, Task, TaskEnd,
    TaskFailure, TaskState, TaskStatus, UrlFinder, WaitFor, WaitOptions, check_param_headers, is_gateway, open_bare, open_in_memory,
    open_relayed, open_session, param_headers, request_elsewhere, request_headers, search_endpoint,
};
pub use tap::{FrameObserver, FrameRedactor, Tap, TapBounds, TranscriptPool};
pub use transport::{
    BaseEnvironment, Beside, Bound, Broken, Carrier, Closed, ConnectionTiming, Destinations, DirectChannel, Endpoint, Exit, FaultCount,
    FaultDirection, FaultInjector, FaultRule, Group, Guardian, HeaderCase, HttpCall, HttpCallResponse, HttpHead, InjectedFault, JsonLimits,
    Launch, Limits, ListedHost, Network, NoHost, ProcessSignal, Program, Proxies, Proxy, ProxyVariables, ResourceUsage, Reuse, Schedule,
    ShutdownReport, ShutdownTimeouts, Spawned, SseFailure, Stage, StartFailure, Tls, TlsFailure, Unanswered, UnknownSignal, Verification,
    ViolationKind, programs, read_memory, run_command,
};
