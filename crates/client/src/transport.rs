//! Ways to reach a server. A transport frames and delivers bytes; it never interprets methods.

mod command;
mod connection_timing;
mod cut_body;
mod decode;
mod destinations;
mod direct_channel;
mod faults;
mod http;
mod http_call;
mod limits;
mod line_channel;
mod lines;
mod pool;
mod process;
mod progress;
mod proxy;
mod sse;
mod sse_events;
mod stdio;
mod stream;
mod tls;
mod uppercase_headers;

pub use command::run_command;
pub use connection_timing::ConnectionTiming;
pub use decode::{ContentReader, INVALID_CODING, UNSUPPORTED_CODING};
pub use destinations::{Destinations, ListedHost, NoHost};
pub use direct_channel::{Carrier, DirectChannel};
pub use faults::{
    Admission, DELAY_NOTE, DisturbedBody, DisturbedLines, FAULT_NOTE, FaultCount, FaultDirection, FaultInjector, FaultRule, InjectedFault,
    PlannedFault, Refusal, Schedule, Subject, admit,
};
pub use http::Endpoint;
pub use http::{Beside, OPEN_CHUNK, RESET_AT_CLOSE};
pub use http_call::{HttpCall, HttpCallResponse};
pub(crate) use limits::measured;
pub use limits::{Bound, Broken, JsonLimits, Limits};
pub use lines::{Line, LineReader};
pub use mcproof_system::{
    Group, Guardian, ProcessSignal, Program, ResourceUsage, Spawned, UnknownSignal, processor_wait, programs, read_memory,
};
pub use pool::{AddressFailure, HeaderCase, Lease, NOT_HTTP, Pool, RequestBody, tells_http2};
pub use process::{BaseEnvironment, Exit, Launch, ShutdownReport, ShutdownTimeouts, StartFailure};
pub use progress::Stage;
pub use proxy::{Proxies, Proxy, ProxyVariables};
pub use sse_events::{Event, EventParser, EventView};
pub use tls::{Tls, TlsFailure, Verification};

pub(crate) use http::{EVENT_STREAM, Exchanger, HttpConnection};
pub(crate) use line_channel::{Ending, LineChannel};
pub(crate) use pool::Way;
pub(crate) use process::{OutputWatcher, Process, StdinUse, Stream, copy_output, exited};
pub(crate) use sse::SseConnection;
pub use sse::SseFailure;
pub(crate) use stdio::StdioConnection;

use crate::auth::wants_authorization;
use crate::jsonrpc::{Malformed, RequestId};
use crate::session::{BacklogSlot, Headers};
use mcproof_protocol::methods;
use mcproof_record::{ExchangeId, FrameId};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// The way to a server over the network.
#[derive(Clone, Debug)]
pub struct Network {
    pub proxies: Proxies,
    pub tls: Tls,
    /// Longest wait for a connection: name, TCP, proxy and TLS together.
    pub connect: Duration,
    /// Where connections may go.
    pub destinations: Destinations,
    pub reuse: Reuse,
}

/// What becomes of a connection of HTTP/1.1 after its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reuse {
    /// It stays open for the next request.
    #[default]
    Kept,
    /// It is closed: the server does not take more than one request on a connection, or another connection beside an open one.
    Never,
    /// The same, and no event stream is opened for what the server says unasked: it would take the place of everything else.
    Alone,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            proxies: Proxies::default(),
            tls: Tls::default(),
            connect: Duration::from_secs(10),
            destinations: Destinations::Any,
            reuse: Reuse::default(),
        }
    }
}

/// A message on its way to the server.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub(crate) body: Vec<u8>,
    pub(crate) purpose: Purpose,
    /// Only for HTTP.
    pub(crate) headers: Headers,
    pub(crate) resume: Resume,
    pub(crate) repeat: Repeat,
}

/// Whether an HTTP request goes out again where the connection that was kept for it ended before a byte of the response: the server
/// may have closed it before the request came, or may have done what was requested (RFC 9110, 9.2.2; RFC 9112, 9.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    Never,
    /// Once, over a new connection.
    Once,
}

impl Repeat {
    /// What holds for messages with this method.
    pub(crate) fn of_message(method: &str) -> Self {
        if methods::may_be_repeated(method) { Self::Once } else { Self::Never }
    }
}

/// Whether an event stream that ends before its response is taken up again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    Never,
    /// By a GET with `Last-Event-ID` (2025-03-26 to 2025-11-25, transports, resumability).
    FromLastEvent,
}

/// Who wants to know what became of a message.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// A request: its HTTP exchange has to carry the response.
    Request(RequestId),
    /// A notification. HTTP transports tell when its exchange is over; on stdio it is out once it is queued.
    Notification(oneshot::Sender<Unanswered>),
    /// A message without a waiting caller.
    Response,
    /// A response to a request of the server, which makes room for the next one when it is out.
    Answer { _room: BacklogSlot },
    /// What a test sends as it stands: no status is a fault.
    Anything(oneshot::Sender<Unanswered>),
}

impl Purpose {
    pub(crate) fn request(&self) -> Option<&RequestId> {
        match self {
            Self::Request(id) => Some(id),
            Self::Notification(_) | Self::Response | Self::Answer { .. } | Self::Anything(_) => None,
        }
    }

    /// The exchange is over.
    pub(crate) fn conclude(self, inbox: &dyn Inbox, unanswered: Unanswered) {
        match self {
            Self::Request(id) => inbox.unanswered(&id, unanswered),
            Self::Notification(done) => {
                if let Unanswered::Response { head, .. } = &unanswered
                    && !(200..300).contains(&head.status)
                    && !wants_authorization(head)
                {
                    inbox.fault(head.frame, ViolationKind::NotificationRefused { status: head.status });
                }
                // Nobody waits any more when the deadline has passed.
                let _ = done.send(unanswered);
            }
            Self::Response | Self::Answer { .. } => {}
            Self::Anything(done) => {
                // As above.
                let _ = done.send(unanswered);
            }
        }
    }
}

/// The head of the HTTP response that carried a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpHead {
    pub exchange: ExchangeId,
    pub frame: FrameId,
    pub status: u16,
    /// Names in lower case, in the order of the wire.
    pub headers: Vec<(String, String)>,
    /// Whether the response is HTTP/1.0, where a connection ends with its response unless that says `keep-alive`.
    pub is_http_1_0: bool,
}

impl HttpHead {
    /// Whether the end of the connection is what ends the body (RFC 9112, 6.3).
    pub(crate) fn ends_with_connection(&self) -> bool {
        self.is_http_1_0 && self.header("content-length").is_none() && self.header("transfer-encoding").is_none()
    }

    /// Whether a second request on the connection is in vain, as everybody knows who reads this (RFC 9112, 9.3).
    pub(crate) fn is_last_on_connection(&self) -> bool {
        let is_kept = self.header("connection").is_some_and(|value| value.to_ascii_lowercase().contains("keep-alive"));
        self.is_http_1_0 && !is_kept
    }

    /// The first header of that (lower-case) name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// What a transport hands up. Calls are short and never wait.
pub(crate) trait Inbox: Send + Sync + 'static {
    /// Bytes that should be one message. `head` is there when an HTTP exchange carried them, `request` when that
    /// exchange was opened for one.
    fn message(&self, bytes: &[u8], frame: FrameId, head: Option<&Arc<HttpHead>>, request: Option<&RequestId>);

    /// A line has begun with these bytes and its end lets wait. `note` records that, if it was not known.
    fn line_begun(&self, bytes: &[u8], note: &dyn Fn() -> FrameId);

    /// An event has begun with this content and its end lets wait. `note` records that, and says what is wrong with it so far.
    fn event_begun(&self, exchange: ExchangeId, content: &[u8], note: &dyn Fn() -> (FrameId, ViolationKind));

    /// What had begun there has ended.
    fn event_ended(&self, exchange: ExchangeId);

    /// A message that came, but in a way in which clients do not take it. `content` is what it seems to be, `request` is as in
    /// [`Inbox::message`].
    fn lost(&self, frame: FrameId, kind: ViolationKind, content: &[u8], request: Option<&RequestId>);

    /// Whether what one client or another takes is a response.
    fn is_tolerant(&self) -> bool;

    /// Something that no conforming server sends.
    fn fault(&self, frame: FrameId, kind: ViolationKind);

    /// Whether this request still waits for its response.
    fn waits_for(&self, request: &RequestId) -> bool;

    /// The HTTP exchange of a request is over. Of no consequence if the response came.
    fn unanswered(&self, request: &RequestId, why: Unanswered);

    /// Nothing more will come.
    fn closed(&self, why: Closed);
}

/// Something that no conforming server sends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViolationKind {
    #[error("{0}")]
    Malformed(Malformed),
    #[error("a response with id {0}, which was never requested")]
    UnknownId(RequestId),
    #[error("a response with id \"{0}\", a string, where the request had the number {0}")]
    TextForNumber(i64),
    #[error("another response with id {0}, whose request is complete")]
    NotWaitedFor(RequestId),
    #[error("a response without an id: {0}")]
    NoId(String),
    #[error("a message in an event named `{0}`, which clients do not read")]
    OtherEvent(String),
    #[error("an event without the blank line that ends it, which clients drop")]
    UnfinishedEvent,
    #[error("a message in an event stream outside of `data:`, which clients drop: `{0}`")]
    EventWithoutData(String),
    #[error("the revision {0:?}, which does not exist")]
    UnknownRevision(String),
    #[error("a message with {0}, where clients expect `application/json`")]
    OtherMediaType(String),
    #[error("a message in the response to a POST, where clients of HTTP+SSE read the event stream only")]
    AnswerOffStream,
    #[error("the beginning of a line without a line feed, which no client reads")]
    UnfinishedLine,
    #[error("status {status} for a notification")]
    NotificationRefused { status: u16 },
    #[error("a request while {most} of its requests, or 1 MiB of them, wait for their responses to be read")]
    TooManyRequests { most: usize },
}

impl ViolationKind {
    /// With no more of the server's own text than a person reads: faults are kept, and their texts may be huge.
    pub(crate) fn shortened(self) -> Self {
        let id = |id: RequestId| match id {
            RequestId::Text(text) => RequestId::Text(beginning(text)),
            number @ RequestId::Number(_) => number,
        };
        match self {
            Self::Malformed(Malformed { flaw, answers }) => Self::Malformed(Malformed { flaw, answers: answers.map(id) }),
            Self::UnknownId(unknown) => Self::UnknownId(id(unknown)),
            Self::NotWaitedFor(known) => Self::NotWaitedFor(id(known)),
            Self::NoId(text) => Self::NoId(beginning(text)),
            Self::OtherEvent(name) => Self::OtherEvent(beginning(name)),
            Self::UnknownRevision(name) => Self::UnknownRevision(beginning(name)),
            Self::OtherMediaType(name) => Self::OtherMediaType(beginning(name)),
            Self::EventWithoutData(line) => Self::EventWithoutData(beginning(line)),
            other => other,
        }
    }
}

fn beginning(text: String) -> String {
    const MOST_CHARACTERS: usize = 200;
    match text.char_indices().nth(MOST_CHARACTERS) {
        // In memory of its own: what is left of a large piece that is cut down tears a hole around it.
        Some((end, _)) => [&text[..end], "…"].concat(),
        None => text,
    }
}

/// Why an HTTP exchange brought no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// No connection could be made, or it broke before the response began.
    Unreachable(Broken),
    /// There was a response, but no message in it.
    Response {
        head: Arc<HttpHead>,
        /// The beginning of the body, for users.
        excerpt: String,
        /// Why the body broke off, if it did.
        broken: Option<Broken>,
    },
}

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Closed {
    #[error("{0}")]
    Exited(Exit),
    #[error("server closed its stdout, but is still running")]
    StdoutClosed,
    #[error("server closed the stream")]
    StreamEnded,
    /// Reading the stream failed, for this reason.
    #[error("server closed the stream: {0}")]
    StreamFailed(String),
    #[error("event stream broke: {0}")]
    StreamBroken(Broken),
    #[error("server sent more than {limit} bytes without a {unit} end")]
    TooLong { unit: &'static str, limit: usize },
}
