//! What a recording holds for a mock: each request of the client with everything that the server said because of it, in order.
//! Reads frames; knows neither sockets nor how a request is matched.

mod messages;
mod rounds;

use crate::mock::matching;
use mcproof_protocol::{Era, Revision};
use mcproof_record::clients::frames_of_clients;
use mcproof_record::{FrameId, Transcript};
use messages::{Sender, WireMessage};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// All sessions of a recording, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    pub sessions: Vec<RecordedSession>,
}

/// One session: what its client sent, and what that led to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedSession {
    pub requests: Vec<RecordedRequest>,
    pub notifications: Vec<RecordedNotification>,
}

/// A request of the client.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedRequest {
    /// By which people find it: that of its call in the trace, or which of all requests it is, from 1.
    pub number: u64,
    pub origin: Origin,
    pub method: String,
    /// As it was sent, with `_meta`.
    pub params: Value,
    /// What the server did before it answered, in order.
    pub steps: Vec<TimedStep>,
    pub outcome: Outcome,
    /// From the request, or the last step, to the response.
    pub delay: Duration,
    /// What the server said afterwards, before the client sent anything else.
    pub after: Vec<TimedStep>,
    /// When it was sent and when it ended, counted over the session, if it did.
    sent: usize,
    ended: Option<usize>,
    /// Places of later requests of the session that were answered before it.
    pub overtaken_by: Vec<usize>,
}

/// Where a request stands in its transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub frame: FrameId,
    /// Which of the requests of a batch it is, from 0.
    pub nth: usize,
}

/// The numbers of the calls that begin with a frame of a transcript, in their order.
pub type CallNumbers = HashMap<(usize, FrameId), Vec<u64>>;

/// A notification of the client, and what the server said next.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedNotification {
    pub method: String,
    pub after: Vec<TimedStep>,
}

/// Something that the server sent, and how long after what was before it.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedStep {
    pub delay: Duration,
    pub step: Step,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A notification that belongs to the request.
    Notify { method: String, params: Value },
    /// A notification that belongs to the session: a list has changed, a resource was updated.
    Announce { method: String, params: Value },
    /// Requests of the server; the mock goes on when all have their response.
    Ask(Vec<Question>),
}

/// A request of the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Its key in `inputRequests`, where the recording has one.
    pub key: Option<String>,
    pub method: String,
    pub params: Value,
    /// What the recorded client responded.
    pub response: Option<Value>,
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Result(Value),
    /// The error object; over HTTP with this status.
    Error {
        error: Value,
        status: Option<u16>,
    },
    /// An HTTP response without a message in it.
    Http {
        status: u16,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    },
    /// No response came.
    Silence,
    /// The connection broke, or the server exited.
    Gone,
}

/// Requests whose responses one response waits for.
const MOST_OVERTAKING: usize = 1_000;

/// Notifications that are about the session, whatever is open when they come.
const SESSION_CHANGES: [&str; 5] = [
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/tasks/status",
];
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
pub(crate) const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
pub(crate) const LISTEN: &str = "subscriptions/listen";

impl Recording {
    /// The sessions of these transcripts; those in which nothing was requested are left out.
    pub fn of(transcripts: &[Transcript]) -> Self {
        Self::numbered(transcripts, &CallNumbers::new())
    }

    /// The same, with the numbers that requests have elsewhere, by the place of their transcript.
    pub fn numbered(transcripts: &[Transcript], numbers: &CallNumbers) -> Self {
        let clients = transcripts.iter().enumerate();
        let clients =
            clients.flat_map(|(place, transcript)| frames_of_clients(&transcript.frames).into_iter().map(move |frames| (place, frames)));
        let (mut sessions, mut count) = (Vec::new(), 0);
        for (place, frames) in clients {
            let mut session = RecordedSession::of(&Transcript { frames, dropped: 0 });
            for request in &mut session.requests {
                count += 1;
                let calls = numbers.get(&(place, request.origin.frame));
                request.number = calls.and_then(|calls| calls.get(request.origin.nth)).copied().unwrap_or(count);
            }
            sessions.extend((!session.requests.is_empty()).then_some(session));
        }
        Self { sessions }
    }

    /// The eras that were recorded.
    pub fn eras(&self) -> Vec<Era> {
        [Era::Legacy, Era::Modern].into_iter().filter(|era| self.sessions.iter().any(|session| session.speaks(*era))).collect()
    }

    pub fn count_requests(&self) -> usize {
        self.sessions.iter().map(|session| session.requests.len()).sum()
    }
}

impl RecordedSession {
    /// The first request with this method that has a result, and the result.
    pub fn first_result(&self, method: &str) -> Option<(&RecordedRequest, &Value)> {
        self.requests.iter().filter(|request| request.method == method).find_map(|request| match &request.outcome {
            Outcome::Result(result) => Some((request, result)),
            _ => None,
        })
    }

    /// Whether the server says in it what it is and can do.
    pub fn has_handshake(&self) -> bool {
        ["initialize", "server/discover"].iter().any(|method| self.first_result(method).is_some())
    }

    pub fn speaks(&self, era: Era) -> bool {
        match era {
            Era::Legacy => self.first_result("initialize").is_some(),
            Era::Modern => {
                let served = |request: &RecordedRequest| match &request.outcome {
                    // Some servers respond to a discovery, and support only earlier revisions.
                    Outcome::Result(result) => request.method != "server/discover" || supports_modern(result),
                    _ => false,
                };
                self.requests.iter().any(|request| matching::is_modern(&request.params) && served(request))
            }
        }
    }

    fn of(transcript: &Transcript) -> Self {
        let mut builder = Builder::default();
        for message in messages::read(transcript) {
            builder.add(message);
        }
        builder.finish()
    }
}

/// Follows a session from its first frame to its last.
#[derive(Default)]
struct Builder {
    session: RecordedSession,
    open: OpenRequests,
    by_token: HashMap<String, usize>,
    by_exchange: HashMap<u64, usize>,
    /// When something last happened for a request.
    last: HashMap<usize, Duration>,
    /// Requests of the server without a response so far, by id: where they stand.
    asked: HashMap<String, Asked>,
    /// What the client sent last.
    anchor: Option<(Anchor, Duration)>,
    /// Requests that were sent, and that ended.
    counted: usize,
}

/// Requests without a response so far, by their places. One id may have many of them.
#[derive(Default)]
struct OpenRequests {
    ids: BTreeMap<usize, String>,
    by_id: HashMap<String, BTreeSet<usize>>,
    /// Without those that are open as long as they listen.
    waiting: BTreeSet<usize>,
}

impl OpenRequests {
    fn add(&mut self, place: usize, id: String, method: &str) {
        self.by_id.entry(id.clone()).or_default().insert(place);
        self.ids.insert(place, id);
        if method != LISTEN {
            self.waiting.insert(place);
        }
    }

    fn remove(&mut self, place: usize) {
        self.waiting.remove(&place);
        let Some(id) = self.ids.remove(&place) else { return };
        if let Some(places) = self.by_id.get_mut(&id) {
            places.remove(&place);
            if places.is_empty() {
                self.by_id.remove(&id);
            }
        }
    }

    fn remove_id(&mut self, id: &str) {
        for place in self.by_id.remove(id).unwrap_or_default() {
            self.remove(place);
        }
    }

    /// The newest one with this id.
    fn newest(&self, id: &str) -> Option<usize> {
        self.by_id.get(id)?.last().copied()
    }
}

#[derive(Clone, Copy)]
enum Anchor {
    Request(usize),
    Notification(usize),
}

#[derive(Clone, Copy)]
struct Asked {
    anchor: Anchor,
    is_step: bool,
    place: usize,
}

impl Builder {
    fn add(&mut self, message: WireMessage) {
        match message.sender {
            Sender::Client => self.take_from_client(message),
            Sender::Server => self.take_from_server(message),
            Sender::Nobody => self.broken(message.exchange),
        }
    }

    fn take_from_client(&mut self, message: WireMessage) {
        let WireMessage { frame, at, value, exchange, .. } = message;
        let id = value.get("id").map(Value::to_string);
        let Some(method) = value.get("method").and_then(Value::as_str) else {
            self.respond(id.as_deref(), &value);
            return;
        };
        let params = value.get("params").cloned().unwrap_or_else(|| json!({}));
        let Some(id) = id else {
            let place = self.session.notifications.len();
            self.session.notifications.push(RecordedNotification { method: method.to_owned(), after: Vec::new() });
            self.anchor = Some((Anchor::Notification(place), at));
            if method == "notifications/cancelled"
                && let Some(canceled) = params.get("requestId")
            {
                self.open.remove_id(&canceled.to_string());
            }
            return;
        };
        let place = self.session.requests.len();
        if let Some(token) = params.pointer("/_meta/progressToken") {
            self.by_token.insert(token.to_string(), place);
        }
        if let Some(exchange) = exchange {
            self.by_exchange.insert(exchange, place);
        }
        self.open.add(place, id, method);
        self.last.insert(place, at);
        self.anchor = Some((Anchor::Request(place), at));
        let nth = self.session.requests.last().filter(|last| last.origin.frame == frame).map_or(0, |last| last.origin.nth + 1);
        let sent = self.count();
        self.session.requests.push(RecordedRequest {
            number: 0,
            origin: Origin { frame, nth },
            method: method.to_owned(),
            params,
            steps: Vec::new(),
            outcome: Outcome::Silence,
            delay: Duration::ZERO,
            after: Vec::new(),
            sent,
            ended: None,
            overtaken_by: Vec::new(),
        });
    }

    /// What is next in the order of the session.
    fn count(&mut self) -> usize {
        self.counted += 1;
        self.counted
    }

    /// The client responds to a request of the server.
    fn respond(&mut self, id: Option<&str>, value: &Value) {
        let Some(asked) = id.and_then(|id| self.asked.remove(id)) else { return };
        let steps = match (asked.anchor, asked.is_step) {
            (Anchor::Request(request), true) => &mut self.session.requests[request].steps,
            (Anchor::Request(request), false) => &mut self.session.requests[request].after,
            (Anchor::Notification(notification), _) => &mut self.session.notifications[notification].after,
        };
        if let Some(Step::Ask(questions)) = steps.get_mut(asked.place).map(|timed| &mut timed.step) {
            for question in questions {
                question.response = Some(response_of(value));
            }
        }
    }

    fn take_from_server(&mut self, message: WireMessage) {
        let WireMessage { at, value, exchange, status, plain, .. } = message;
        let by_exchange = exchange.and_then(|exchange| self.by_exchange.get(&exchange).copied());
        if let Some(plain) = plain {
            // A response that is no message ends the request that the HTTP request carried.
            if let Some(place) = by_exchange.filter(|place| self.is_open(*place)) {
                self.end(place, at, Outcome::Http { status: plain.status, headers: plain.headers, body: plain.body });
            }
            return;
        }
        let id = value.get("id").filter(|id| !id.is_null()).map(Value::to_string);
        let Some(method) = value.get("method").and_then(Value::as_str).map(str::to_owned) else {
            let by_id = id.and_then(|id| self.open.newest(&id));
            // An error about a message that could not be read has no id, but it has its exchange.
            let Some(place) = by_id.or(by_exchange.filter(|place| self.is_open(*place))) else { return };
            let outcome = match (value.get("result"), value.get("error")) {
                (Some(result), _) => Outcome::Result(result.clone()),
                (None, Some(error)) => Outcome::Error { error: error.clone(), status: status.filter(|status| *status != 200) },
                (None, None) => return,
            };
            self.end(place, at, outcome);
            return;
        };
        let params = value.get("params").cloned().unwrap_or_else(|| json!({}));
        let is_change =
            SESSION_CHANGES.contains(&method.as_str()) || params.pointer("/_meta").is_some_and(|meta| meta.get(SUBSCRIPTION).is_some());
        let is_session = is_change && method != ACKNOWLEDGED;
        let by_token = params.get("progressToken").and_then(|token| self.by_token.get(&token.to_string()).copied());
        let subject = by_token.or(by_exchange).or_else(|| self.latest_open()).filter(|_| !is_session);
        let step = match &id {
            Some(_) => Step::Ask(vec![Question { key: None, method, params, response: None }]),
            None if is_session || subject.is_none() => Step::Announce { method, params },
            None => Step::Notify { method, params },
        };
        // A change of the session comes before the response to what was sent last, if that has none yet.
        let waiting = || match self.anchor {
            Some((Anchor::Request(place), _)) if is_session && self.session.requests[place].method != LISTEN => Some(place),
            _ => None,
        };
        let (anchor, is_step) = match subject.or_else(waiting).filter(|place| self.is_open(*place)) {
            Some(place) => (Anchor::Request(place), true),
            None => match self.anchor {
                Some((anchor, _)) => (anchor, false),
                // What a server says before anybody has said anything to it has no place in a session.
                None => return,
            },
        };
        let since = match (anchor, is_step) {
            (Anchor::Request(place), _) => self.last.get(&place).copied(),
            _ => self.anchor.map(|(_, at)| at),
        };
        let delay = at.saturating_sub(since.unwrap_or(at));
        let steps = match (anchor, is_step) {
            (Anchor::Request(place), true) => &mut self.session.requests[place].steps,
            (Anchor::Request(place), false) => &mut self.session.requests[place].after,
            (Anchor::Notification(place), _) => &mut self.session.notifications[place].after,
        };
        if let Some(id) = id {
            self.asked.insert(id, Asked { anchor, is_step, place: steps.len() });
        }
        steps.push(TimedStep { delay, step });
        match anchor {
            Anchor::Request(place) => drop(self.last.insert(place, at)),
            Anchor::Notification(_) => self.anchor = Some((anchor, at)),
        }
    }

    fn end(&mut self, place: usize, at: Duration, outcome: Outcome) {
        let ended = self.count();
        let request = &mut self.session.requests[place];
        request.delay = at.saturating_sub(self.last.get(&place).copied().unwrap_or(at));
        request.outcome = outcome;
        request.ended = Some(ended);
        self.open.remove(place);
        self.last.insert(place, at);
    }

    /// A connection broke, or the process ended: whatever was still open has no response because of it.
    fn broken(&mut self, exchange: Option<u64>) {
        let ended: Vec<usize> = match exchange {
            Some(exchange) => self.by_exchange.get(&exchange).copied().filter(|place| self.is_open(*place)).into_iter().collect(),
            None => std::mem::take(&mut self.open).ids.into_keys().collect(),
        };
        for place in ended {
            if self.session.requests[place].method != LISTEN {
                self.session.requests[place].outcome = Outcome::Gone;
            }
        }
    }

    fn is_open(&self, place: usize) -> bool {
        self.open.ids.contains_key(&place)
    }

    /// The newest request that waits for its response; over a stream for everything that is all there is to go by.
    fn latest_open(&self) -> Option<usize> {
        self.open.waiting.last().copied()
    }

    fn finish(mut self) -> RecordedSession {
        rounds::join(&mut self.session.requests);
        let order: Vec<(usize, Option<usize>)> = self.session.requests.iter().map(|request| (request.sent, request.ended)).collect();
        for (place, request) in self.session.requests.iter_mut().enumerate() {
            let Some(end) = request.ended else { continue };
            let meanwhile = order.iter().enumerate().skip(place + 1).take_while(|(_, (sent, _))| *sent < end);
            let earlier = meanwhile.filter(|(_, (_, ended))| ended.is_some_and(|ended| ended < end));
            request.overtaken_by = earlier.map(|(later, _)| later).take(MOST_OVERTAKING).collect();
        }
        self.session
    }
}

fn supports_modern(discovered: &Value) -> bool {
    let mut versions = discovered.get("supportedVersions").and_then(Value::as_array).into_iter().flatten();
    versions.any(|version| version == Revision::MODERN.as_str())
}

/// Of a response only what it says.
fn response_of(value: &Value) -> Value {
    let said = ["result", "error"].into_iter().find_map(|key| Some((key.to_owned(), value.get(key)?.clone())));
    Value::Object(Map::from_iter(said))
}
