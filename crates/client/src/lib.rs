//! Talks to a server and records everything: transports, the tap below JSON, sessions of both eras.
//! Knows no suites and no rules; it never repairs, drops or responds to anything unless its caller requests it.

mod answers;
pub mod auth;
pub mod jsonrpc;
pub mod redaction;
pub mod revision;
mod secrets;
pub mod session;
mod tap;
pub mod transport;

pub use answers::{Answers, Callback, Consulted, Elicitation, HostedTasks, Sampling};
pub use revision::{Era, EraChoice, ParseChoiceError, TransportKind};
pub use secrets::inherited_secrets;
pub use session::{
    CallFailure, Called, Cancellation, Canceller, ClientProfile, ConnectFailure, ConnectOptions, Deadline, Farewell, Fault, Handshake,
    Headers, HttpAnswer, HttpQuestion, ListFailure, Listed, ListenFailure, Locate, Notification, NotificationFailure, Reading, Reads,
    Reply, Sent, Session, Startup, Subscription, SubscriptionEnd, SubscriptionFailure, Target, Task, TaskEnd, TaskFailure, TaskState,
    TaskStatus, Terms, WaitFor, ask_elsewhere, check_param_headers, open_bare, open_in_memory, open_relayed, open_session,
};
pub use tap::{Tap, TapBounds};
pub use transport::{
    Bound, Broken, Carrier, Census, Closed, Destinations, Dialed, Disturbance, Endpoint, Errand, ErrandAnswer, Exit, FaultInjector,
    FaultKind, FaultRule, Guardian, HttpHead, JsonLimits, Launch, Limits, ListedHost, Network, NoHost, Patience, ProcessSignal, Program,
    Proxies, Proxy, ProxyVariables, Schedule, Shortcut, ShutdownReport, Spelling, SseFailure, Stage, StartFailure, Surroundings, Tls,
    TlsFailure, Toward, Unanswered, UnknownSignal, Verification, run_command,
};
