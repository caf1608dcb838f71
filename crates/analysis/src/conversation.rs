//! A transcript with an index: messages, HTTP exchanges, and what was asked and answered. Interprets, but judges nothing.

use crate::probes::{CONTROL, LEFT_OUT};
use crate::wording;
use mcproof_client::transport::tells_http2;
use mcproof_protocol::{Era, Revision, methods};
use mcproof_record::{
    Conversation, Direction, ExchangeId, Frame, FrameBody, FrameId, JsonSize, NOT_STORED, Opened, ProbeOutcome, Probed, SENT_AGAIN,
    Transcript,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

/// Probes that send what any client sends: what the server lists or declares, in the usual form.
pub const USUAL_PROBES: [&str; 12] = [
    methods::PING,
    "list",
    "list-again",
    "list-for-calls",
    "concurrent",
    "call",
    "read",
    "get-prompt",
    "complete",
    "subscribe",
    "unsubscribe",
    "set-log-level",
];

/// Those that send the same beside what is unusual.
const PLAIN_PROBES: [&str; 4] = ["plain", "use-right", "first-message", CONTROL];

/// One conversation of a check, ready to be judged.
pub struct ConversationView<'a> {
    pub conversation: &'a Conversation,
    /// Every JSON value that either side sent, in order. What is no JSON is only among the frames.
    pub wire_message: Vec<WireMessage<'a>>,
    pub exchanges: BTreeMap<ExchangeId, HttpExchange<'a>>,
    /// Exchanges whose request went out again and then got a response: it is among the others as it was sent then, once.
    pub sent_again: Vec<HttpExchange<'a>>,
    /// Why a message of the server was not read: nothing is known of what it says.
    pub unread: Option<TooMuch>,
    /// How many notifications of a method there are beyond those that are read.
    pub flooded: BTreeMap<String, usize>,
    /// Whether the server limits how many requests it takes: in some conversation, it refused an ordinary one with status 429.
    limits_requests: bool,
    /// How many notifications of a method were read.
    notified: BTreeMap<String, usize>,
    /// Messages of ours, positions in `said`. They are few, also where a server floods.
    ours: Vec<usize>,
    /// The answers to these, positions in `said`; `None` also for what is no request.
    answers_to_ours: Vec<Option<usize>>,
    /// Answers of the server by their id, positions in `said`. Long conversations are asked for them again and again.
    answers: BTreeMap<String, Vec<usize>>,
    /// Answers without an id, by the exchange that brought them.
    nameless: BTreeMap<ExchangeId, Vec<usize>>,
    /// Requests of ours by their id.
    questions: BTreeMap<String, Vec<usize>>,
    /// Where frames are missing that were not kept: the number of the last one before, and of the first one after. Twice its own
    /// number of a frame that was not read.
    gaps: Vec<(FrameId, FrameId)>,
}

/// One JSON value on the wire.
#[derive(Clone, Debug)]
pub struct WireMessage<'a> {
    pub frame: &'a Frame,
    /// Equal large responses share one, with the id of the first: see [`WireMessage::id`].
    pub value: Arc<Value>,
    /// Its own id, where the value has that of another one.
    own_id: Option<Value>,
    /// The HTTP exchange that carried it.
    pub exchange: Option<ExchangeId>,
}

/// One HTTP request and what came of it.
#[derive(Clone, Debug)]
pub struct HttpExchange<'a> {
    pub id: ExchangeId,
    /// The frame of the request.
    pub request: &'a Frame,
    pub method: &'a str,
    pub url: &'a str,
    pub request_headers: &'a [(String, String)],
    pub request_body: &'a [u8],
    /// The head of the response.
    pub response: Option<Response<'a>>,
    /// The body of a response that is no event stream.
    pub body: Option<(&'a Frame, &'a [u8])>,
    pub events: Vec<&'a Frame>,
    /// The frame of its end, and why it broke.
    pub end: Option<(&'a Frame, Option<&'a str>)>,
}

impl HttpExchange<'_> {
    /// Whether the request is in a version that no revision has, so that its version may be all that is refused.
    pub fn names_unknown_version(&self) -> bool {
        self.request_header("mcp-protocol-version").is_some_and(|version| Era::of(version).is_none())
    }
}

/// The head of a response.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    pub frame: &'a Frame,
    pub status: u16,
    pub headers: &'a [(String, String)],
}

/// What was tried, and what came of it.
pub struct Attempt<'a, 'c> {
    pub probed: &'a Probed,
    /// The first message that went out.
    pub request: Option<&'c WireMessage<'a>>,
    /// The HTTP exchange that carried it, or that was the probe itself.
    pub http: Option<&'c HttpExchange<'a>>,
    pub answer: AttemptOutcome<'c>,
}

/// A request that a server refused because there were too many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Throttled<'c> {
    /// The frame of the request.
    pub request: FrameId,
    /// Of its message, or else of HTTP.
    pub method: &'c str,
    /// In a few words, with the reason that the server gave.
    pub outcome: String,
}

/// What came back for a request.
#[derive(Clone, Copy, Debug)]
pub enum AttemptOutcome<'c> {
    Result {
        value: &'c Value,
        frame: FrameId,
    },
    Error {
        error: &'c Value,
        frame: FrameId,
    },
    /// An HTTP response without a JSON-RPC answer.
    Status {
        status: u16,
        frame: FrameId,
    },
    /// The deadline passed.
    Silence,
    /// The connection or the process ended.
    Gone,
    /// The probe waited for nothing.
    None,
}

impl AttemptOutcome<'_> {
    /// The code of a JSON-RPC error.
    pub fn code(&self) -> Option<i64> {
        match self {
            Self::Error { error, .. } => error.get("code").and_then(Value::as_i64),
            _ => None,
        }
    }

    /// A JSON-RPC error, a result with `isError`, or an HTTP status that refuses.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Error { .. } => true,
            Self::Result { value, .. } => value.get("isError") == Some(&Value::Bool(true)),
            Self::Status { status, .. } => (400..500).contains(status),
            Self::Silence | Self::Gone | Self::None => false,
        }
    }

    pub fn frame(&self) -> Option<FrameId> {
        match self {
            Self::Result { frame, .. } | Self::Error { frame, .. } | Self::Status { frame, .. } => Some(*frame),
            Self::Silence | Self::Gone | Self::None => None,
        }
    }

    /// In a few words: `a result`, `error -32601`, `status 404`, `no response`.
    pub fn describe(&self) -> String {
        match self {
            Self::Result { value, .. } if value.get("isError") == Some(&Value::Bool(true)) => "a result with `isError`".into(),
            Self::Result { .. } => "a result".into(),
            Self::Error { .. } => self.code().map_or_else(|| "an error without a code".into(), |code| format!("error {code}")),
            Self::Status { status, .. } => format!("status {status}"),
            Self::Silence => "no response".into(),
            Self::Gone => "the end of the connection".into(),
            Self::None => "nothing".into(),
        }
    }
}

/// A value takes many times the memory of its bytes. What holds more than these is not read: four times what a session takes.
const MOST_VALUES: usize = 1_000_000;

/// Roughly what one message may take as a value, in bytes.
const MOST_MEMORY_OF_ONE: usize = 56 << 20;

/// The same for the messages of the server in all conversations of a check.
const MOST_MEMORY: usize = 2 * MOST_MEMORY_OF_ONE;

/// Of the notifications of one method in a conversation only these are read: a flood says the same again and again.
pub const MOST_NOTIFICATIONS: usize = 2000;

/// Of the message of an error this much tells why, in bytes.
const LONGEST_REASON: usize = 300;

/// Why a message is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooMuch {
    /// It holds too much itself.
    InOneMessage,
    /// Together with what the server sent before it would take too much memory.
    InAll,
}

/// What tells a notification from other messages, without its content.
#[derive(Deserialize)]
struct MessageHead<'a> {
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    id: Option<IgnoredAny>,
}

/// JSON that somebody sent; `None` for some that holds too much to be read.
pub fn read_json(bytes: &[u8]) -> serde_json::Result<Option<Value>> {
    read_if_fits(bytes, JsonSize::of(bytes), MOST_MEMORY_OF_ONE).map(Result::ok)
}

/// The same where a part of the memory of a check is left.
fn read_if_fits(bytes: &[u8], size: JsonSize, memory: usize) -> serde_json::Result<Result<Value, TooMuch>> {
    let too_much = match size.memory() {
        needed if needed > MOST_MEMORY_OF_ONE || size.values > MOST_VALUES => TooMuch::InOneMessage,
        needed if needed > memory => TooMuch::InAll,
        _ => return serde_json::from_slice(bytes).map(Ok),
    };
    serde_json::from_slice::<IgnoredAny>(bytes).map(|_| Err(too_much))
}

/// A response that takes more as a value is compared with those that were read: every conversation asks for the same lists.
const LARGE: usize = 1 << 20;

/// What is left of the memory of a check, and the large responses that it holds.
struct Reading {
    left: usize,
    large: BTreeMap<Content, Arc<Value>>,
}

/// A value that may be that of an earlier response, and then the id that it should have.
type SharedValue = (Arc<Value>, Option<Value>);

/// A response but for its id: the kind of the id, and length and hash of the rest.
type Content = (bool, usize, u64);

/// The members of a response, as they stand there. With other members, or the same one twice, it is compared with nothing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResponseHead<'a> {
    #[serde(rename = "jsonrpc", borrow)]
    _jsonrpc: &'a str,
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(rename = "result", borrow)]
    _result: &'a RawValue,
}

impl Reading {
    fn of(left: usize) -> Self {
        Self { left, large: BTreeMap::new() }
    }

    /// A message of the server. If its value is that of an earlier response, its own id comes with it.
    fn read(&mut self, bytes: &[u8]) -> serde_json::Result<Result<SharedValue, TooMuch>> {
        let size = JsonSize::of(bytes);
        let content = if size.memory() > LARGE { content(bytes) } else { None };
        if let Some((content, id)) = &content
            && let Some(value) = self.large.get(content)
        {
            return Ok(Ok((Arc::clone(value), Some(id.clone()))));
        }
        let value = match read_if_fits(bytes, size, self.left)? {
            Ok(value) => Arc::new(value),
            Err(too_much) => return Ok(Err(too_much)),
        };
        self.left -= size.memory();
        if let Some((content, _)) = content {
            self.large.insert(content, Arc::clone(&value));
        }
        Ok(Ok((value, None)))
    }
}

/// What a response says, and its id.
fn content(bytes: &[u8]) -> Option<(Content, Value)> {
    let head: ResponseHead<'_> = serde_json::from_slice(bytes).ok()?;
    let id = serde_json::from_str::<Value>(head.id.get()).ok().filter(|id| id.is_string() || id.is_u64())?;
    let text = head.id.get().as_bytes();
    let start = text.as_ptr().addr().checked_sub(bytes.as_ptr().addr())?;
    let mut hasher = DefaultHasher::new();
    bytes.get(..start)?.hash(&mut hasher);
    bytes.get(start + text.len()..)?.hash(&mut hasher);
    Some(((id.is_string(), bytes.len() - text.len(), hasher.finish()), id))
}

impl<'a> ConversationView<'a> {
    pub fn new(conversation: &'a Conversation) -> Self {
        let view = Self::within(conversation, &mut Reading::of(MOST_MEMORY));
        Self { limits_requests: view.refused_ordinary_request(), ..view }
    }

    /// Those of one check, which share a bound of memory.
    pub fn all(conversations: &'a [Conversation]) -> Vec<Self> {
        let mut reading = Reading::of(MOST_MEMORY);
        let mut all: Vec<Self> = conversations.iter().map(|conversation| Self::within(conversation, &mut reading)).collect();
        // What a server says to the handshake of another era is not ordinary.
        let is_of_other_era = |one: &Self| matches!(one.conversation.opened, Opened::No { .. } | Opened::OtherEra);
        let is_opened = all.iter().any(|one| one.conversation.opened == Opened::Yes);
        let limits_requests = all.iter().any(|one| !(is_opened && is_of_other_era(one)) && one.refused_ordinary_request());
        all.iter_mut().for_each(|one| one.limits_requests = limits_requests);
        all
    }

    fn within(conversation: &'a Conversation, reading: &mut Reading) -> Self {
        let mut view = Self {
            conversation,
            wire_message: Vec::new(),
            exchanges: BTreeMap::new(),
            sent_again: Vec::new(),
            unread: None,
            flooded: BTreeMap::new(),
            limits_requests: false,
            notified: BTreeMap::new(),
            ours: Vec::new(),
            answers_to_ours: Vec::new(),
            answers: BTreeMap::new(),
            nameless: BTreeMap::new(),
            questions: BTreeMap::new(),
            gaps: gaps(conversation),
        };
        for frame in in_time(conversation) {
            view.take_in(frame, reading);
        }
        view.join_repeated();
        view.index();
        view
    }

    /// A request that the client sent again, over another connection, is one request: the second one if that got a response, else the first.
    fn join_repeated(&mut self) {
        let repeated: Vec<ExchangeId> = in_time(self.conversation).iter().filter_map(|frame| frame.body.sent_again()).collect();
        for id in repeated {
            let Some(first) = self.exchanges.get(&id) else { continue };
            let is_copy =
                |later: &&HttpExchange<'_>| (later.method, later.url, later.request_body) == (first.method, first.url, first.request_body);
            let mut later = self.exchanges.range((Bound::Excluded(id), Bound::Unbounded)).map(|(_, later)| later);
            let Some(second) = later.find(is_copy) else { continue };
            let dropped = if second.response.is_some() { id } else { second.id };
            self.wire_message.retain(|wire_message| wire_message.exchange != Some(dropped));
            if let Some(first) = self.exchanges.remove(&dropped).filter(|_| dropped == id) {
                self.sent_again.push(first);
            }
            if let Some((_, Some(why))) = self.exchanges.get_mut(&id).and_then(|first| first.end.as_mut()) {
                *why = why.strip_suffix(SENT_AGAIN).unwrap_or(*why);
            }
        }
    }

    fn index(&mut self) {
        for (position, wire_message) in self.wire_message.iter().enumerate() {
            if !wire_message.is_from_server() {
                self.ours.push(position);
            }
            let id = wire_message.id();
            let known = match (wire_message.is_from_server(), id) {
                (true, Some(_)) if wire_message.is_answer() => Some(&mut self.answers),
                (false, Some(_)) if wire_message.is_request() => Some(&mut self.questions),
                _ => None,
            };
            if let (Some(known), Some(id)) = (known, id) {
                known.entry(key_of(id)).or_default().push(position);
            }
            let is_nameless = wire_message.is_from_server() && wire_message.is_answer() && id.is_none_or(Value::is_null);
            if let Some(exchange) = wire_message.exchange.filter(|_| is_nameless) {
                self.nameless.entry(exchange).or_default().push(position);
            }
        }
        let answer_to = |position: &usize| {
            Some(&self.wire_message[*position]).filter(|one| one.is_request()).and_then(|one| self.position_of_answer_to(one))
        };
        self.answers_to_ours = self.ours.iter().map(answer_to).collect();
    }

    /// Whether this is one more notification of a flood. Counts it.
    fn is_of_flood(&mut self, bytes: &[u8]) -> bool {
        if self.notified.values().all(|read| *read < MOST_NOTIFICATIONS) {
            return false;
        }
        let Ok(MessageHead { method: Some(method), id: None }) = serde_json::from_slice(bytes) else { return false };
        let is_beyond = self.notified.get(method.as_ref()).is_some_and(|read| *read >= MOST_NOTIFICATIONS);
        if is_beyond {
            *self.flooded.entry(method.into_owned()).or_default() += 1;
        }
        is_beyond
    }

    /// Reads a message. False if there is none, or it was not read.
    fn say(&mut self, frame: &'a Frame, bytes: &[u8], exchange: Option<ExchangeId>, reading: &mut Reading) -> bool {
        let is_theirs = frame.direction == Direction::FromServer;
        if is_theirs && self.is_of_flood(bytes) {
            return true;
        }
        let read = match is_theirs {
            true => reading.read(bytes),
            false => read_if_fits(bytes, JsonSize::of(bytes), MOST_MEMORY_OF_ONE).map(|fits| fits.map(|value| (Arc::new(value), None))),
        };
        let (value, own_id) = match read {
            Ok(Ok(read)) if exchange.is_none() || is_message(&read.0) => read,
            Ok(Err(too_much)) if is_theirs => {
                self.unread.get_or_insert(too_much);
                self.gaps.push((frame.id, frame.id));
                return false;
            }
            Ok(_) | Err(_) => return false,
        };
        if let Some(method) = value.get("method").and_then(Value::as_str).filter(|_| is_theirs && value.get("id").is_none()) {
            match self.notified.get_mut(method) {
                Some(read) => *read += 1,
                None => _ = self.notified.insert(method.to_owned(), 1),
            }
        }
        self.wire_message.push(WireMessage { frame, value, own_id, exchange });
        true
    }

    fn take_in(&mut self, frame: &'a Frame, reading: &mut Reading) {
        match &frame.body {
            FrameBody::Line { bytes, .. } => {
                self.say(frame, bytes.as_bytes(), None, reading);
            }
            FrameBody::HttpRequest { exchange, method, url, headers, body } => {
                self.say(frame, body.as_bytes(), Some(*exchange), reading);
                self.exchanges.insert(
                    *exchange,
                    HttpExchange {
                        id: *exchange,
                        request: frame,
                        method,
                        url,
                        request_headers: headers,
                        request_body: body.as_bytes(),
                        response: None,
                        body: None,
                        events: Vec::new(),
                        end: None,
                    },
                );
            }
            FrameBody::HttpResponse { exchange, status, headers } => {
                if let Some(known) = self.exchanges.get_mut(exchange) {
                    known.response = Some(Response { frame, status: *status, headers });
                }
            }
            FrameBody::HttpBody { exchange, bytes } => {
                // Refusals and documents beside the protocol are JSON as well.
                let known = self.exchanges.get(exchange);
                let is_ours = known.is_none_or(|known| known.method == "POST" && known.status().is_none_or(|status| status < 400));
                if is_ours || read_json(bytes.as_bytes()).is_ok_and(|value| value.as_ref().is_some_and(is_error_response)) {
                    self.say(frame, bytes.as_bytes(), Some(*exchange), reading);
                }
                if let Some(known) = self.exchanges.get_mut(exchange) {
                    known.body = Some((frame, bytes.as_bytes()));
                }
            }
            FrameBody::SseEvent { exchange, bytes, data, .. } => {
                let is_said = data.as_ref().is_some_and(|data| self.say(frame, data.as_bytes(), Some(*exchange), reading));
                // What is there in spite of a faulty event is known: its fault is one, that nothing was said is none. An event
                // that says something may have swallowed lines before it that are no fields.
                let text = bytes.to_text();
                let lines = text.lines().map(|line| line.strip_prefix("data:").filter(|_| !is_said).unwrap_or(line).trim());
                for line in lines.filter(|line| line.starts_with('{')) {
                    self.say(frame, line.as_bytes(), Some(*exchange), reading);
                }
                if let Some(known) = self.exchanges.get_mut(exchange) {
                    known.events.push(frame);
                }
            }
            FrameBody::HttpEnd { exchange, error } => {
                if let Some(known) = self.exchanges.get_mut(exchange) {
                    known.end = Some((frame, error.as_deref()));
                }
            }
            _ => {}
        }
    }

    pub fn frames(&self) -> &'a [Frame] {
        in_time(self.conversation)
    }

    /// Why a part of what is usually tried was left out of this conversation, if it was.
    pub fn left_out(&self) -> Option<&str> {
        left_out(self.conversation)?.subject.as_deref()
    }

    pub fn is_modern(&self) -> bool {
        Revision::at(&self.conversation.revision).era() == Era::Modern
    }

    pub fn is_over(&self, transport: &str) -> bool {
        self.conversation.transport == transport
    }

    /// Whether a connection was HTTP/2.
    pub fn is_over_http2(&self) -> bool {
        self.frames().iter().any(|frame| matches!(&frame.body, FrameBody::Note { text } if tells_http2(text)))
    }

    /// Whether any request of a method whose name starts like this got a result.
    pub fn gives_results(&self, method: &str) -> bool {
        let mut requests = self.requests().filter(|(request, _)| request.method().is_some_and(|name| name.starts_with(method)));
        requests.any(|(_, response)| response.is_some_and(|response| response.value.get("result").is_some()))
    }

    /// Messages of the server, arrays (batches) as they are.
    pub fn from_server(&self) -> impl Iterator<Item = &WireMessage<'a>> {
        self.wire_message.iter().filter(|wire_message| wire_message.is_from_server())
    }

    /// Messages of ours.
    pub fn from_client(&self) -> impl DoubleEndedIterator<Item = &WireMessage<'a>> + ExactSizeIterator {
        self.ours.iter().map(|position| &self.wire_message[*position])
    }

    /// Our requests, each with its answer.
    pub fn requests(&self) -> impl DoubleEndedIterator<Item = (&WireMessage<'a>, Option<&WireMessage<'a>>)> {
        let both = self.from_client().zip(&self.answers_to_ours).filter(|(wire_message, _)| wire_message.is_request());
        both.map(|(wire_message, answer)| (wire_message, answer.map(|position| &self.wire_message[position])))
    }

    /// The first message of the server that answers a request, whatever its shape: by id, or as the only one without an id
    /// in the request's own HTTP exchange.
    pub fn answer_to(&self, request: &WireMessage<'_>) -> Option<&WireMessage<'a>> {
        self.position_of_answer_to(request).map(|position| &self.wire_message[position])
    }

    fn position_of_answer_to(&self, request: &WireMessage<'_>) -> Option<usize> {
        let id = request.id()?;
        let later =
            |positions: &Vec<usize>| positions.iter().copied().find(|position| self.wire_message[*position].frame.id > request.frame.id);
        let by_id = self.answers.get(&key_of(id)).and_then(later);
        by_id.or_else(|| self.nameless.get(&request.exchange?).and_then(later))
    }

    /// The message that has an answer's id, before it.
    pub fn question_of(&self, answer: &WireMessage<'_>) -> Option<&WireMessage<'a>> {
        let same = self.questions.get(&key_of(answer.id()?))?;
        same.iter().map(|position| &self.wire_message[*position]).rfind(|wire_message| wire_message.frame.id < answer.frame.id)
    }

    /// Every time that this was tried.
    pub fn probes<'c>(&'c self, probe: &str) -> impl Iterator<Item = Attempt<'a, 'c>> {
        self.conversation.probes.iter().filter(move |probed| probed.probe == probe).map(|probed| self.attempt(probed))
    }

    /// The first time that this was tried.
    pub fn probe<'c>(&'c self, probe: &str) -> Option<Attempt<'a, 'c>> {
        self.conversation.probes.iter().find(|probed| probed.probe == probe).map(|probed| self.attempt(probed))
    }

    /// Whether a frame was recorded during one of these probes.
    pub fn is_within(&self, frame: FrameId, probes: &[&str]) -> bool {
        self.conversation.probes.iter().any(|probed| probes.contains(&probed.probe.as_str()) && probed.contains(frame))
    }

    /// What went out and came back for a probe.
    pub fn attempt<'c>(&'c self, probed: &'a Probed) -> Attempt<'a, 'c> {
        let within = |frame: &Frame| probed.contains(frame.id);
        let request = self.from_client().find(|wire_message| within(wire_message.frame));
        let http = self.exchanges.values().find(|exchange| within(exchange.request));
        let answer = match request.and_then(|request| self.answer_to(request)) {
            Some(wire_message) => match (wire_message.value.get("error"), wire_message.value.get("result")) {
                // Without its code it tells nothing but that it is broken, which is a law of its own.
                (Some(error), _) if error.get("code").is_none_or(|code| !code.is_number()) => AttemptOutcome::None,
                // Nor does one that is both.
                (Some(_), Some(_)) => AttemptOutcome::None,
                (Some(error), None) => AttemptOutcome::Error { error, frame: wire_message.frame.id },
                (None, Some(value)) => AttemptOutcome::Result { value, frame: wire_message.frame.id },
                (None, None) => AttemptOutcome::None,
            },
            None => match (http.and_then(|http| self.response_to(http, probed.outcome)), probed.outcome) {
                (Some(response), _) => match http.and_then(|http| self.error_in(http)) {
                    Some((error, frame)) => AttemptOutcome::Error { error, frame },
                    None => AttemptOutcome::Status { status: response.status, frame: response.frame.id },
                },
                (None, ProbeOutcome::Silent) => AttemptOutcome::Silence,
                (None, ProbeOutcome::Gone) => AttemptOutcome::Gone,
                (None, ProbeOutcome::Done) => AttemptOutcome::None,
            },
        };
        Attempt { probed, request, http, answer }
    }

    /// Whether we closed an event stream before its end: what is missing may have been under way. A note tells it.
    pub fn was_cut(&self, http: &HttpExchange<'_>) -> bool {
        let before = |end: FrameId| self.frame(FrameId(end.0.checked_sub(1)?));
        let note = |end| before(end).is_some_and(|frame| matches!(frame.body, FrameBody::Note { .. }));
        !http.events.is_empty() && http.end.is_some_and(|(frame, _)| note(frame.id))
    }

    /// Whether an exchange ended about when its client canceled the request, ended the session, or asked the process to end or killed it: what
    /// is missing then is not the server's to answer for.
    pub fn was_ended_by_client(&self, http: &HttpExchange<'_>, id: &Value) -> bool {
        /// Frames of one moment may be in any order.
        const ABOUT: Duration = Duration::from_millis(100);
        const KILLED: i32 = 9;
        let Some((end, _)) = http.end else { return false };
        let in_time = |frame: &Frame| frame.id > http.request.id && frame.at <= end.at + ABOUT;
        let is_kill = |frame: &&Frame| {
            matches!(frame.body, FrameBody::Signalled { .. } | FrameBody::Exited { signal: Some(KILLED), .. }) && in_time(frame)
        };
        let session = http.request_header("mcp-session-id");
        let is_delete = |other: &&HttpExchange<'_>| {
            let is_of_session = session.is_some() && other.request_header("mcp-session-id") == session;
            other.method == "DELETE" && is_of_session && other.status().is_none_or(|status| status < 400) && in_time(other.request)
        };
        self.frames().iter().any(|frame| is_kill(&frame))
            || self.exchanges.values().any(|other| is_delete(&other))
            || self.cancellation_of(id).is_some_and(|cancellation| in_time(cancellation.frame))
    }

    /// The first notification by which the client canceled a request.
    pub fn cancellation_of(&self, id: &Value) -> Option<&WireMessage<'_>> {
        let is_of_request = |message: &&WireMessage<'_>| {
            message.method() == Some(methods::notifications::CANCELLED) && message.param("/requestId") == Some(id)
        };
        self.from_client().find(is_of_request)
    }

    /// Whether the server had ended a session by the time of this request in it: from some request on, at the latest this one, all that name
    /// the session get 404, which may be at any time (2025-11-25, basic/transports, "Session Management"), and nobody had asked for that.
    fn is_past_expiry(&self, exchange: &HttpExchange<'_>) -> bool {
        const LEAST: usize = 3;
        let Some(session) = exchange.request_header("mcp-session-id").filter(|_| exchange.status() == Some(404)) else { return false };
        // What was sent before the refusal came may have been served before it.
        let refused_at = exchange.response.map_or(exchange.request.id, |response| response.frame.id);
        let in_session = || self.exchanges.values().filter(|other| other.request_header("mcp-session-id") == Some(session));
        let served =
            in_session().any(|other| other.method == "POST" && other.request.id < exchange.request.id && other.status() != Some(404));
        let refused = in_session().filter(|other| other.method == "POST" && other.status() == Some(404)).count();
        let mut others = in_session().filter(|other| other.method != "POST" || other.status() != Some(404));
        let is_over = others.all(|other| match other.method {
            "POST" => other.request.id < refused_at,
            "DELETE" => other.request.id > exchange.request.id,
            _ => true,
        });
        served && is_over && refused >= LEAST
    }

    /// Whether the server had ended the session of the request with this frame.
    pub fn has_expired(&self, frame: FrameId) -> bool {
        self.exchanges.values().any(|exchange| exchange.request.id == frame && self.is_past_expiry(exchange))
    }

    /// Whether one of these frames belongs to an exchange of this kind.
    fn rests_on(&self, frames: &[FrameId], kind: impl Fn(&HttpExchange<'a>) -> bool) -> bool {
        self.exchanges.values().any(|exchange| exchange.frames().any(|frame| frames.contains(&frame)) && kind(exchange))
    }

    /// Whether one of these frames belongs to a request in a session that the server had ended.
    pub fn rests_on_expiry(&self, frames: &[FrameId]) -> bool {
        self.rests_on(frames, |exchange| self.is_past_expiry(exchange))
    }

    /// Whether one of these frames belongs to a request without a session, refused because the server would not have a second session beside
    /// the first one.
    pub fn rests_on_second_session(&self, frames: &[FrameId]) -> bool {
        // Busy, or broken: what follows without a session is the same.
        let refuses = |status: u16| matches!(status, 400 | 409 | 429 | 500..);
        let handshakes = || self.from_client().filter(|wire_message| wire_message.method() == Some(methods::INITIALIZE));
        let exchange_of = |wire_message: &WireMessage<'_>| wire_message.exchange.and_then(|id| self.exchanges.get(&id));
        let was_given =
            |wire_message: &WireMessage<'_>| exchange_of(wire_message).is_some_and(|exchange| exchange.header("mcp-session-id").is_some());
        let is_refused = |wire_message: &&WireMessage<'_>| exchange_of(wire_message).and_then(HttpExchange::status).is_some_and(refuses);
        let Some(refused) = handshakes().skip(1).find(is_refused) else { return false };
        let is_bare = |exchange: &HttpExchange<'_>| {
            exchange.request_header("mcp-session-id").is_none() && exchange.request.id > refused.frame.id && exchange.status() == Some(400)
        };
        handshakes().next().is_some_and(was_given) && self.rests_on(frames, is_bare)
    }

    /// Whether one of these frames belongs to a request in a session whose id no client can repeat: it is no UTF-8, and was kept with marks in
    /// place of what cannot be read.
    pub fn rests_on_unreadable_session(&self, frames: &[FrameId]) -> bool {
        self.rests_on(frames, |exchange| {
            exchange.request_header("mcp-session-id").is_some_and(|id| id.contains(char::REPLACEMENT_CHARACTER))
        })
    }

    /// Whether a message that any client sends was refused with status 429.
    fn refused_ordinary_request(&self) -> bool {
        let refused = |wire_message: &&WireMessage<'_>| {
            let exchange = wire_message.exchange.and_then(|id| self.exchanges.get(&id));
            exchange.is_some_and(|exchange| exchange.method == "POST" && exchange.status() == Some(429))
        };
        let is_ordinary = |wire_message: &WireMessage<'_>| {
            let mut probes = self.conversation.probes.iter().filter(|probed| probed.contains(wire_message.frame.id));
            // A server of the legacy era need not know the discovery of the modern one.
            wire_message.method() != Some(methods::SERVER_DISCOVER)
                && probes.all(|probed| USUAL_PROBES.contains(&probed.probe.as_str()) || PLAIN_PROBES.contains(&probed.probe.as_str()))
        };
        self.from_client().filter(refused).any(is_ordinary)
    }

    /// Whether one of these frames belongs to a request that the server refused because there were too many: with status 429, if it names a
    /// limit or refuses ordinary requests with that as well, with 503 and a time to come back, or with an error that says so. A page with
    /// status 503 is that of a proxy that limits requests (nginx says no more of it), unless nothing is served from then on.
    pub fn is_throttled(&self, frames: &[FrameId]) -> bool {
        let is_refused = |request: &WireMessage<'_>, response: Option<&WireMessage<'_>>| {
            // What is said of the response alone is said of its form.
            let is_of = |response: &WireMessage<'_>| frames.contains(&response.frame.id) && frames.len() > 1;
            response.is_some_and(|response| limits_rate(response) && (frames.contains(&request.frame.id) || is_of(response)))
        };
        self.rests_on(frames, self.throttling()) || self.requests().any(|(request, response)| is_refused(request, response))
    }

    /// The first request that was refused so.
    pub fn first_throttled(&self) -> Option<Throttled<'_>> {
        let is_throttled = self.throttling();
        let exchange = self.exchanges.values().find(|exchange| is_throttled(exchange)).map(|exchange| {
            let message = self.from_client().find(|wire_message| wire_message.exchange == Some(exchange.id));
            let method = message.and_then(WireMessage::method).unwrap_or(exchange.method);
            let reason = exchange.body.and_then(|(_, body)| wording::reason(body)).map(|reason| format!(" ({reason})"));
            let outcome = format!("status {}{}", exchange.status().unwrap_or_default(), reason.unwrap_or_default());
            Throttled { request: exchange.request.id, method, outcome }
        });
        let response = self.requests().find_map(|(request, response)| {
            let error = response.filter(|response| limits_rate(response))?.value.get("error")?;
            let reason = error.get("message").and_then(Value::as_str).map(|message| format!(" ({})", wording::excerpt(message)));
            let code = error.get("code").map(|code| format!(" {code}")).unwrap_or_default();
            let outcome = format!("error{code}{}", reason.unwrap_or_default());
            Some(Throttled { request: request.frame.id, method: request.method().unwrap_or_default(), outcome })
        });
        exchange.into_iter().chain(response).min_by_key(|throttled| throttled.request)
    }

    /// Whether an exchange was refused because there were too many.
    fn throttling(&self) -> impl Fn(&HttpExchange<'a>) -> bool {
        const LASTING: usize = 3;
        let is_page = |exchange: &HttpExchange<'_>| exchange.header("content-type").is_some_and(|kind| kind.starts_with("text/html"));
        let is_served = |exchange: &&HttpExchange<'_>| exchange.status() == Some(200);
        let last_served = self.exchanges.values().filter(is_served).map(|exchange| exchange.request.id).max();
        let after_last_served = |exchange: &&HttpExchange<'_>| Some(exchange.request.id) > last_served;
        let is_lasting = self.exchanges.values().filter(after_last_served).count() >= LASTING;
        let is_passing = move |refused: &HttpExchange<'_>| last_served.is_some_and(|last| refused.request.id < last || !is_lasting);
        let limits_requests = self.limits_requests;
        move |exchange: &HttpExchange<'a>| match exchange.status() {
            Some(429) => limits_requests || names_limit(exchange),
            Some(503) => exchange.header("retry-after").is_some() || is_page(exchange) && is_passing(exchange),
            _ => false,
        }
    }

    /// Whether what is said of these frames may rest on frames that were not kept or not read: none of them is a message of the server,
    /// and the response to a request among them, or the body of a response, may be one of those. Where the client waited in vain,
    /// nothing is missing.
    pub fn rests_on_gap(&self, frames: &[FrameId]) -> bool {
        if self.gaps.is_empty() || frames.iter().any(|id| self.frame(*id).is_some_and(is_content)) {
            return false;
        }
        let is_between =
            |from: FrameId, to: Option<FrameId>| self.gaps.iter().any(|(before, after)| *after > from && to.is_none_or(|to| *before < to));
        let was_awaited_in_vain = |id: FrameId| {
            let is_unanswered = |probed: &Probed| matches!(probed.outcome, ProbeOutcome::Silent | ProbeOutcome::Gone);
            self.conversation.probes.iter().any(|probed| is_unanswered(probed) && probed.contains(id))
        };
        let is_cut_exchange = |id: FrameId| {
            let exchange = self.exchanges.values().find(|exchange| exchange.frames().any(|frame| frame == id));
            exchange.is_some_and(|exchange| {
                exchange.status().is_none_or(|status| (200..300).contains(&status))
                    && is_between(exchange.request.id, exchange.end.map(|(frame, _)| frame.id))
                    && !was_awaited_in_vain(exchange.request.id)
            })
        };
        let lacks_response = |id: FrameId| {
            let mut asked = self.from_client().filter(|wire_message| wire_message.frame.id == id && wire_message.is_request());
            asked.any(|request| self.answer_to(request).is_none() && is_between(id, None) && !was_awaited_in_vain(id))
        };
        frames.iter().any(|id| is_cut_exchange(*id) || lacks_response(*id))
    }

    /// The response that says what came of a probe. One that only promises an answer says nothing.
    fn response_to(&self, http: &HttpExchange<'a>, outcome: ProbeOutcome) -> Option<Response<'a>> {
        let promises = |response: &Response<'_>| {
            (200..300).contains(&response.status)
                && (outcome == ProbeOutcome::Silent || outcome == ProbeOutcome::Gone && self.is_over("sse"))
        };
        http.response.filter(|response| !promises(response))
    }

    /// An error that an exchange brought, whatever it answers.
    pub fn error_in(&self, http: &HttpExchange<'_>) -> Option<(&Value, FrameId)> {
        self.from_server()
            .filter(|wire_message| wire_message.exchange == Some(http.id))
            .find_map(|wire_message| Some((wire_message.value.get("error")?, wire_message.frame.id)))
    }

    /// Every page of a list that was answered, with the method that asked: its items and the frame.
    pub fn listed<'c>(&'c self, method: &'c str, key: &'c str) -> impl Iterator<Item = (&'c [Value], FrameId)> {
        self.requests().filter(move |(request, _)| request.method() == Some(method)).filter_map(move |(_, answer)| {
            let answer = answer?;
            let items = answer.value.pointer(&format!("/result/{key}"))?.as_array()?;
            Some((items.as_slice(), answer.frame.id))
        })
    }

    /// Tools as the server listed them, each once, with the frame of its page.
    pub fn tools(&self) -> Vec<(&Value, FrameId)> {
        let mut seen = std::collections::BTreeSet::new();
        let mut tools = Vec::new();
        for (items, frame) in self.listed(methods::TOOLS_LIST, "tools") {
            for tool in items {
                if seen.insert(tool.get("name").and_then(Value::as_str).unwrap_or_default()) {
                    tools.push((tool, frame));
                }
            }
        }
        tools
    }

    /// The result of the handshake: of `initialize`, or of `server/discover`.
    pub fn handshake(&self) -> Option<(&Value, FrameId)> {
        let method = if self.is_modern() { methods::SERVER_DISCOVER } else { methods::INITIALIZE };
        let mut shaken = self.requests().rev().filter(|(request, _)| request.method() == Some(method));
        shaken.find_map(|(_, answer)| Some((answer?.value.get("result")?, answer?.frame.id)))
    }

    /// What the server declared under a capability, such as `tools` or `resources/subscribe`.
    pub fn capability(&self, path: &str) -> Option<&Value> {
        let (result, _) = self.handshake()?;
        result.get("capabilities")?.pointer(&format!("/{path}")).filter(|value| !matches!(value, Value::Bool(false) | Value::Null))
    }

    /// Whether the handshake shows that the server does not declare this capability.
    pub fn lacks(&self, path: &str) -> bool {
        self.handshake().is_some() && self.capability(path).is_none()
    }

    /// Between two frames.
    pub fn elapsed(&self, from: FrameId, to: FrameId) -> Option<Duration> {
        Some(self.frame(to)?.at.saturating_sub(self.frame(from)?.at))
    }

    /// How long it took from the frame before this one.
    pub fn since_previous_frame(&self, id: FrameId) -> Option<Duration> {
        let frames = self.frames();
        let place = frames.binary_search_by_key(&id, |frame| frame.id).ok()?;
        Some(frames[place].at.saturating_sub(frames.get(place.checked_sub(1)?)?.at))
    }

    fn frame(&self, id: FrameId) -> Option<&'a Frame> {
        let frames = self.frames();
        frames.binary_search_by_key(&id, |frame| frame.id).ok().map(|place| &frames[place])
    }
}

/// The frames for which there was time: what a server does while it is not waited for says nothing.
fn in_time(conversation: &Conversation) -> &[Frame] {
    let frames = &conversation.transcript.frames;
    let end = left_out(conversation).map_or(frames.len(), |probed| frames.partition_point(|frame| frame.id < probed.first));
    &frames[..end]
}

/// What an id is known by: long ones, which hardly anybody has, are not to be there twice.
fn key_of(id: &Value) -> String {
    const LONGEST: usize = 200;
    let mut text = id.to_string();
    if text.len() > LONGEST {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        text = format!("{} bytes, {:x}", text.len(), hasher.finish());
    }
    text
}

/// A message, an event or a body of the server.
fn is_content(frame: &Frame) -> bool {
    let is_content = matches!(frame.body, FrameBody::Line { .. } | FrameBody::SseEvent { .. } | FrameBody::HttpBody { .. });
    is_content && frame.direction == Direction::FromServer
}

fn gaps(conversation: &Conversation) -> Vec<(FrameId, FrameId)> {
    let Transcript { frames, dropped: 1.. } = &conversation.transcript else { return Vec::new() };
    let is_gap = |frame: &Frame| matches!(&frame.body, FrameBody::Note { text } if text.contains(NOT_STORED));
    let places = frames.iter().enumerate().filter(|(_, frame)| is_gap(frame));
    places
        .map(|(place, gap)| {
            let before = place.checked_sub(1).map_or(FrameId(0), |before| frames[before].id);
            (before, FrameId(gap.id.0 + 1))
        })
        .collect()
}

fn left_out(conversation: &Conversation) -> Option<&Probed> {
    conversation.probes.iter().find(|probed| probed.probe == LEFT_OUT)
}

/// Whether the body of an HTTP response with an error status is meant as a JSON-RPC error, and not as something of the application's.
pub fn is_error_response(value: &Value) -> bool {
    value.get("jsonrpc").is_some() || value.get("id").is_some() && value.pointer("/error/code").is_some_and(Value::is_i64)
}

/// Whether the head of a response tells when to come back, or how many requests are left.
fn names_limit(exchange: &HttpExchange<'_>) -> bool {
    let is_limit = |name: &str| name == "retry-after" || name.contains("ratelimit") || name.contains("rate-limit");
    exchange.response.is_some_and(|response| response.headers.iter().any(|(name, _)| is_limit(&name.to_ascii_lowercase())))
}

/// Whether a response says that there were too many requests. There is no code for that.
fn limits_rate(response: &WireMessage<'_>) -> bool {
    const WORDS: [&str; 5] = ["rate limit", "ratelimit", "rate_limit", "too many requests", "throttl"];
    let message = response.value.pointer("/error/message").and_then(Value::as_str).unwrap_or_default();
    let message = message.get(..message.floor_char_boundary(LONGEST_REASON)).unwrap_or_default().to_lowercase();
    WORDS.iter().any(|words| message.contains(words))
}

/// Whether HTTP carried a message, and not something of its own: has any of the members that messages have.
fn is_message(value: &Value) -> bool {
    match value {
        Value::Object(members) => ["jsonrpc", "method", "id", "result", "error"].iter().any(|name| members.contains_key(*name)),
        other => other.is_array(),
    }
}

impl<'a> WireMessage<'a> {
    pub fn is_from_server(&self) -> bool {
        self.frame.direction == Direction::FromServer
    }

    pub fn method(&self) -> Option<&str> {
        self.value.get("method")?.as_str()
    }

    pub fn id(&self) -> Option<&Value> {
        self.own_id.as_ref().or_else(|| self.value.get("id"))
    }

    pub fn is_request(&self) -> bool {
        self.value.get("method").is_some() && self.value.get("id").is_some()
    }

    pub fn is_notification(&self) -> bool {
        self.value.get("method").is_some() && self.value.get("id").is_none()
    }

    /// Has a result or an error, or an id without a method.
    pub fn is_answer(&self) -> bool {
        self.value.get("method").is_none() && ["result", "error", "id"].iter().any(|key| self.value.get(key).is_some())
    }

    pub fn param(&self, pointer: &str) -> Option<&Value> {
        self.value.get("params")?.pointer(pointer)
    }

    /// What `_meta` has under a key of the protocol, such as `protocolVersion`.
    pub fn meta(&self, key: &str) -> Option<&Value> {
        self.param("/_meta")?.get(format!("io.modelcontextprotocol/{key}"))
    }
}

impl<'a> HttpExchange<'a> {
    /// Its request, the head of its response, and a body that is no stream.
    fn frames(&self) -> impl Iterator<Item = FrameId> {
        let response = self.response.map(|response| response.frame);
        [Some(self.request), response, self.body.map(|(frame, _)| frame)].into_iter().flatten().map(|frame| frame.id)
    }

    /// A header of the response, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.response.and_then(|response| first(response.headers, name))
    }

    /// A header of the request, by its name in lower case.
    pub fn request_header(&self, name: &str) -> Option<&'a str> {
        first(self.request_headers, name)
    }

    pub fn status(&self) -> Option<u16> {
        self.response.map(|response| response.status)
    }

    /// Type and subtype of the response, in lower case, without parameters.
    pub fn media_type(&self) -> Option<String> {
        self.header("content-type").map(|kind| kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
    }

    /// The frames of the request and of the head of its response.
    pub fn heads(&self) -> Vec<FrameId> {
        [Some(self.request.id), self.response.map(|response| response.frame.id)].into_iter().flatten().collect()
    }
}

fn first<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

impl Attempt<'_, '_> {
    /// What it was tried on; empty if that is not told.
    pub fn subject(&self) -> &str {
        self.probed.subject.as_deref().unwrap_or_default()
    }

    /// The frames of what was asked and of what was answered.
    pub fn frames(&self) -> Vec<FrameId> {
        let attempt = self.request.map(|wire_message| wire_message.frame.id).or(self.http.map(|http| http.request.id));
        let mut frames: Vec<FrameId> = [attempt, self.answer.frame()].into_iter().flatten().collect();
        if frames.is_empty() {
            frames.push(self.probed.first);
        }
        frames
    }

    /// The status of the HTTP response, where HTTP carried it.
    pub fn status(&self) -> Option<u16> {
        self.http.and_then(HttpExchange::status)
    }
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    /// The ids of the messages in an event, as it stands.
    fn check(event: &str, expected: &[u64]) {
        let take = example::read(&format!("> GET /sse\n< 200 content-type: text/event-stream\n<~ {event}"), "sse", "2025-11-25");
        let conversation = ConversationView::new(&take);
        let found: Vec<u64> = conversation.from_server().filter_map(|wire_message| wire_message.id()?.as_u64()).collect();
        assert_eq!(found, expected, "{event}");
    }

    #[test]
    fn what_a_faulty_event_holds_is_known() {
        check(r#"data: {"id":1,"result":{}}\n\n"#, &[1]);
        check(r#"{"id":1,"result":{}}\n\n"#, &[1]);
        check(r#"data: {"id":1,"result":{}}\ndata: {"id":2,"result":{}}\n\n"#, &[1, 2]);
        check(r#"{"id":1,"result":{}}\ndata: {"id":2,"result":{}}\n\n"#, &[2, 1]);
        check(r#"data: {"id":1,\ndata: "result":{}}\n\n"#, &[1]);
    }

    #[test]
    fn a_request_that_went_out_again_counts_once() {
        let check = |second: &str, kept: u64, sent_again: usize| {
            let asked = r#"> POST /mcp
                           > {"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
            let end = format!("! broken connection closed{SENT_AGAIN}");
            let text = format!("> POST /mcp\n> {{\"id\":0}}\n< 202\n! ended\n{asked}\n{end}\n{asked}\n{second}");
            let take = example::read(&text, "http", "2025-11-25");
            let conversation = ConversationView::new(&take);
            let requests: Vec<_> = conversation.requests().map(|(request, _)| request.exchange).collect();
            assert_eq!(requests, [Some(ExchangeId(kept))], "{text}");
            assert_eq!((conversation.exchanges.len(), conversation.sent_again.len()), (2, sent_again), "{text}");
        };
        check("< 200 content-type: application/json\n< {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n! ended", 2, 1);
        check("! broken connection closed", 1, 0);
        check("~ 10", 1, 0);
    }

    #[test]
    fn what_holds_too_much_is_not_read() {
        let many = |values: usize| format!(r#"{{"jsonrpc":"2.0","id":1,"result":[{}0]}}"#, "0,".repeat(values));
        assert!(read_json(many(10).as_bytes()).unwrap().is_some());
        assert!(read_json(many(MOST_VALUES).as_bytes()).unwrap().is_none());
        assert!(read_json(many(MOST_VALUES).trim_end_matches('}').as_bytes()).unwrap_err().is_eof());
        // A long text is one value, whatever stands in it.
        let text = format!(r#"["{}"]"#, ",".repeat(2 * MOST_VALUES));
        assert!(read_json(text.as_bytes()).unwrap().is_some());
    }

    #[test]
    fn equal_large_responses_are_held_once_and_keep_their_ids() {
        let list = |id: &str, last: &str| {
            let tools: Vec<String> = (0..4000).map(|number| format!(r#"{{"name":"t{number}","inputSchema":{{}}}}"#)).collect();
            format!(r#"< {{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{},{{"name":"{last}"}}]}}}}"#, tools.join(","))
        };
        let lines = |ids: [&str; 2], last: &str| {
            let asked = ids.map(|id| format!("> {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/list\"}}"));
            format!("{}\n{}\n{}\n{}", asked[0], list(ids[0], "same"), asked[1], list(ids[1], last))
        };
        let takes = [lines(["1", "22"], "same"), lines(["333", "4444"], "other"), lines([r#""a""#, "5"], "same")];
        let takes = takes.map(|text| example::read(&text, "stdio", "2025-11-25"));
        let views = ConversationView::all(&takes);
        let responses = || views.iter().flat_map(|view| view.requests().map(|(request, response)| (request, response.unwrap())));
        for (request, response) in responses() {
            assert_eq!(request.id(), response.id());
        }
        let first = responses().next().unwrap().1;
        let shared: Vec<bool> = responses().map(|(_, response)| Arc::ptr_eq(&response.value, &first.value)).collect();
        assert_eq!(shared, [true, true, true, false, false, true]);
    }

    #[test]
    fn nothing_is_said_of_a_response_that_was_not_read() {
        let text = r#"> POST /mcp
                      > {"jsonrpc":"2.0","id":1,"method":"tools/list"}
                      < 200 content-type: application/json
                      < {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}
                      ! ended"#;
        let take = example::read(text, "http", "2025-11-25");
        for (memory, is_unread) in [(MOST_MEMORY, false), (0, true)] {
            let conversation = ConversationView::within(&take, &mut Reading::of(memory));
            let heads: Vec<FrameId> = conversation.exchanges.values().flat_map(HttpExchange::heads).collect();
            assert_eq!((conversation.unread.is_some(), conversation.rests_on_gap(&heads)), (is_unread, is_unread), "{heads:?}");
        }
    }
}
