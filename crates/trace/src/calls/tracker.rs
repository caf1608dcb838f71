//! Turns frames into calls, one frame at a time, in memory that depends on what is open and not on what has been.

use super::message::{self, Message, messages};
use super::{Call, CallKey, CallKind, CallStatus, HttpCall, SessionFacts};
use crate::manifest::SessionKey;
use mcproof_record::{Direction, ExchangeId, Frame, FrameBody, FrameId, Raw};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::time::Duration;

/// What a frame changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// A call began; [`CallTracker::open`] has it.
    Began(CallKey),
    /// It has its response, and more of its HTTP exchange may follow.
    Answered(CallKey),
    /// It is complete, and no longer kept here.
    Ended(Box<Call>),
}

/// Open calls of all sessions: of more, the oldest of the session at hand end without a response.
const MOST_OPEN: usize = 10_000;

/// Bytes of their targets, requests and responses.
const MOST_OPEN_BYTES: usize = 32 << 20;

/// Ended calls of a session to which a second response is attributed.
const REMEMBERED: usize = 1_000;

/// Calls of one HTTP request that end with it, those of a large batch: more end with their response.
const MOST_CARRIED: usize = 100;

/// Frames of a call that are listed.
const MOST_FRAMES: usize = 1_000;

#[derive(Default)]
pub struct CallTracker {
    last: u64,
    totals: OpenTotals,
    sessions: BTreeMap<SessionKey, SessionCalls>,
}

/// What the open calls of all sessions take.
#[derive(Default)]
struct OpenTotals {
    calls: usize,
    bytes: usize,
}

impl OpenTotals {
    fn are_too_many(&self) -> bool {
        self.calls > MOST_OPEN || self.bytes > MOST_OPEN_BYTES
    }
}

#[derive(Default)]
struct SessionCalls {
    open: BTreeMap<CallKey, Call>,
    /// Requests without a response, by who sent them and their id.
    by_id: HashMap<(Side, String), CallKey>,
    ended: RecentCalls,
    by_token: HashMap<(Side, String), CallKey>,
    /// Of each open call that has one.
    tokens: HashMap<CallKey, (Side, String)>,
    by_state: RecentCalls,
    /// Requests of the client without an outcome.
    ongoing: BTreeSet<CallKey>,
    exchanges: HashMap<ExchangeId, ExchangeCalls>,
    /// Why no further response can come.
    over: Option<String>,
    facts: SessionFacts,
    at: Duration,
}

/// Who sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Side {
    Client,
    Server,
}

/// An HTTP exchange that has not ended.
struct ExchangeCalls {
    /// Those that have not ended either.
    calls: BTreeSet<CallKey>,
    http: HttpCall,
}

/// The newest calls by a name, which may be as long as a message: only its hash is kept.
#[derive(Default)]
struct RecentCalls {
    hasher: RandomState,
    by_name: HashMap<u64, CallKey>,
    order: VecDeque<(u64, CallKey)>,
}

impl RecentCalls {
    fn add(&mut self, name: &impl Hash, key: CallKey) {
        let name = self.hasher.hash_one(name);
        self.by_name.insert(name, key);
        self.order.push_back((name, key));
        if self.order.len() > REMEMBERED
            && let Some((oldest, key)) = self.order.pop_front()
            && self.by_name.get(&oldest) == Some(&key)
        {
            self.by_name.remove(&oldest);
        }
    }

    fn get(&self, name: &impl Hash) -> Option<CallKey> {
        self.by_name.get(&self.hasher.hash_one(name)).copied()
    }
}

/// Where a message stood.
struct Place<'a> {
    session: SessionKey,
    frame: &'a Frame,
    exchange: Option<ExchangeId>,
}

impl CallTracker {
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next frame of a session.
    pub fn feed(&mut self, session: SessionKey, frame: &Frame) -> Vec<Update> {
        let calls = self.sessions.entry(session).or_default();
        let mut feeding = Feeding { last: &mut self.last, totals: &mut self.totals, calls, updates: Vec::new() };
        feeding.frame(session, frame);
        feeding.updates
    }

    /// A call that has not ended.
    pub fn open(&self, session: SessionKey, key: CallKey) -> Option<&Call> {
        self.sessions.get(&session)?.open.get(&key)
    }

    /// All calls that have not ended, in the order in which they began.
    pub fn all_open(&self) -> impl Iterator<Item = &Call> {
        self.sessions.values().flat_map(|calls| calls.open.values())
    }

    pub fn facts(&self, session: SessionKey) -> Option<&SessionFacts> {
        self.sessions.get(&session).map(|calls| &calls.facts)
    }

    /// The session has ended: so have its calls. What is open has no response.
    pub fn end_session(&mut self, session: SessionKey) -> Vec<Update> {
        let Some(calls) = self.sessions.get_mut(&session) else { return Vec::new() };
        let mut feeding = Feeding { last: &mut self.last, totals: &mut self.totals, calls, updates: Vec::new() };
        feeding.end_all("the session ended");
        feeding.updates
    }

    /// The trace has ended.
    pub fn finish(&mut self) -> Vec<Update> {
        let keys: Vec<_> = self.sessions.keys().copied().collect();
        keys.into_iter().flat_map(|key| self.end_session(key)).collect()
    }
}

struct Feeding<'a> {
    last: &'a mut u64,
    totals: &'a mut OpenTotals,
    calls: &'a mut SessionCalls,
    updates: Vec<Update>,
}

impl Feeding<'_> {
    fn frame(&mut self, session: SessionKey, frame: &Frame) {
        self.calls.at = self.calls.at.max(frame.at);
        let here = |exchange| Place { session, frame, exchange };
        match &frame.body {
            FrameBody::Line { bytes, .. } => self.all_messages(bytes, &here(None)),
            FrameBody::HttpRequest { exchange, method, url, body, .. } => self.http_request(&here(Some(*exchange)), method, url, body),
            FrameBody::HttpResponse { exchange, status, headers } => {
                self.calls.facts.learn_from_headers(headers);
                self.http_response(*exchange, *status, frame);
            }
            FrameBody::HttpBody { exchange, bytes } => {
                self.bare_http_body(*exchange, bytes, frame.id);
                self.all_messages(bytes, &here(Some(*exchange)));
            }
            FrameBody::SseEvent { exchange, data: Some(data), .. } => self.all_messages(data, &here(Some(*exchange))),
            FrameBody::HttpEnd { exchange, error } => self.http_end(*exchange, error.as_deref(), frame),
            FrameBody::Spawned { .. } => {
                self.end_all("the server was started again");
                self.calls.over = None;
            }
            FrameBody::Exited { code, signal } => {
                let how = match (code, signal) {
                    (Some(code), _) => format!("the server exited with code {code}"),
                    (None, Some(signal)) => format!("the server was terminated by signal {signal}"),
                    (None, None) => "the server ended".to_owned(),
                };
                self.calls.over = Some(how);
            }
            _ => {}
        }
    }

    fn all_messages(&mut self, bytes: &Raw, place: &Place<'_>) {
        for (message, text) in messages(bytes.as_bytes()) {
            self.message(message, text.into(), place);
        }
    }

    fn message(&mut self, message: Message, text: Raw, place: &Place<'_>) {
        let from = match place.frame.direction {
            Direction::ToServer => Side::Client,
            Direction::FromServer => Side::Server,
            Direction::Local => return,
        };
        self.calls.facts.learn_from_request(&message);
        match message {
            Message::Request { id, method, params } => self.request(from, id, method, &params, text, place),
            Message::Notification { method, params } => self.notification(from, method, &params, text, place),
            Message::Response { id, outcome } => self.response(from, &id, outcome, text, place),
        }
    }

    fn request(&mut self, from: Side, id: Value, method: String, params: &Value, text: Raw, place: &Place<'_>) {
        let key = self.new_key();
        let name = (from, id.to_string());
        let parent = match from {
            Side::Client => None,
            Side::Server => self.ongoing(place),
        };
        let previous = params.get("requestState").and_then(Value::as_str).and_then(|state| self.calls.by_state.get(&state));
        if let Some(token) = params.pointer("/_meta/progressToken") {
            self.calls.by_token.insert((from, token.to_string()), key);
            self.calls.tokens.insert(key, (from, token.to_string()));
        }
        if from == Side::Client {
            self.calls.ongoing.insert(key);
        }
        let target = message::target(&method, params);
        let call = Call { id: Some(id), target, parent, previous, ..self.new_call(key, CallKind::Request, method, text, place) };
        self.calls.by_id.insert(name, key);
        self.keep(call, place);
        while self.totals.are_too_many()
            && let Some(oldest) = self.calls.open.keys().next().copied().filter(|oldest| *oldest != key)
        {
            self.end(oldest, CallStatus::NoResponse, Some("too many requests are open".into()));
        }
    }

    fn notification(&mut self, from: Side, method: String, params: &Value, text: Raw, place: &Place<'_>) {
        let key = self.new_key();
        let parent = match method.as_str() {
            "notifications/progress" => {
                let other = if from == Side::Client { Side::Server } else { Side::Client };
                let token = params.get("progressToken").map(Value::to_string).unwrap_or_default();
                self.calls.by_token.get(&(other, token)).copied()
            }
            "notifications/cancelled" => params.get("requestId").and_then(|id| self.calls.by_id.get(&(from, id.to_string()))).copied(),
            _ if from == Side::Server => self.ongoing(place),
            _ => None,
        };
        let target = message::target(&method, params);
        let is_cancel = method == "notifications/cancelled";
        let call = Call { target, parent, ..self.new_call(key, CallKind::Notification, method, text, place) };
        self.keep(call, place);
        if self.carrier(key).is_none() {
            // Nothing else can happen to it.
            self.settle(key, CallStatus::Ok, None, place.frame.at);
            self.release(key);
        }
        if is_cancel && let Some(canceled) = parent {
            let reason = params.get("reason").and_then(Value::as_str).map(str::to_owned);
            self.add_frame(canceled, place.frame.id);
            self.settle(canceled, CallStatus::Canceled, reason, place.frame.at);
            self.release_unless_carried(canceled);
        }
    }

    fn response(&mut self, from: Side, id: &Value, outcome: Result<Value, Value>, text: Raw, place: &Place<'_>) {
        let name = (if from == Side::Client { Side::Server } else { Side::Client }, id.to_string());
        let (status, code, message) = judge(&outcome);
        let Some(key) = self.calls.by_id.get(&name).copied() else {
            let parent = self.calls.ended.get(&name);
            let key = self.new_key();
            let call = self.new_call(key, CallKind::Unmatched, "response".into(), Raw::default(), place);
            let why = if parent.is_some() { "the request had already ended" } else { "no request has this id" };
            let message = Some(message.map_or_else(|| why.to_owned(), |message| format!("{why}: {message}")));
            let call = Call { id: Some(id.clone()), parent, code, response: Some(text), ..call };
            self.keep(call, place);
            self.settle(key, status, message, place.frame.at);
            self.release_unless_carried(key);
            return;
        };
        if let (Ok(result), Some(call)) = (&outcome, self.calls.open.get(&key)) {
            self.calls.facts.learn_from_result(&call.method, result);
            if let (CallStatus::InputRequired, Some(state)) = (status, result.get("requestState").and_then(Value::as_str)) {
                self.calls.by_state.add(&state, key);
            }
        }
        self.add_frame(key, place.frame.id);
        if let Some(call) = self.calls.open.get_mut(&key) {
            call.code = code;
        }
        self.set_response(key, text);
        self.settle(key, status, message, place.frame.at);
        if self.carrier(key).is_some() {
            self.updates.push(Update::Answered(key));
        } else {
            self.release(key);
        }
    }

    fn http_request(&mut self, place: &Place<'_>, method: &str, url: &str, body: &Raw) {
        let Some(exchange) = place.exchange else { return };
        let http = HttpCall { exchange, method: method.to_owned(), url: url.to_owned(), status: None };
        self.calls.exchanges.insert(exchange, ExchangeCalls { calls: BTreeSet::new(), http });
        let found = messages(body.as_bytes());
        if found.is_empty() {
            let key = self.new_key();
            let call = self.new_call(key, CallKind::Http, method.to_owned(), body.clone(), place);
            self.keep(Call { target: Some(path_of(url)), ..call }, place);
        }
        for (message, text) in found {
            self.message(message, text.into(), place);
        }
    }

    fn http_response(&mut self, exchange: ExchangeId, status: u16, frame: &Frame) {
        let Some(known) = self.calls.exchanges.get_mut(&exchange) else { return };
        known.http.status = Some(status);
        for key in known.calls.clone() {
            self.add_frame(key, frame.id);
            if let Some(http) = self.calls.open.get_mut(&key).and_then(|call| call.http.as_mut()) {
                http.status = Some(status);
            }
        }
    }

    fn bare_http_body(&mut self, exchange: ExchangeId, bytes: &Raw, frame: FrameId) {
        for key in self.calls_of(exchange) {
            self.add_frame(key, frame);
            // For requests, a message in it takes its place.
            if self.calls.open.get(&key).is_some_and(|call| call.response.is_none()) {
                self.set_response(key, bytes.clone());
            }
        }
    }

    fn http_end(&mut self, exchange: ExchangeId, error: Option<&str>, frame: &Frame) {
        let Some(known) = self.calls.exchanges.remove(&exchange) else { return };
        for key in known.calls {
            self.add_frame(key, frame.id);
            let Some(call) = self.calls.open.get_mut(&key) else { continue };
            let is_settled = call.status != CallStatus::Pending;
            match (known.http.status, error) {
                _ if is_settled => self.release(key),
                (Some(status), _) if status >= 400 => {
                    self.settle(key, CallStatus::HttpError, Some(format!("HTTP status {status}")), frame.at);
                    self.release(key);
                }
                (None, error) => {
                    self.settle(key, CallStatus::NoResponse, Some(error.unwrap_or("no HTTP response").to_owned()), frame.at);
                    self.release(key);
                }
                (Some(_), None) if call.kind != CallKind::Request => {
                    self.settle(key, CallStatus::Ok, None, frame.at);
                    self.release(key);
                }
                (Some(_), Some(error)) if call.kind != CallKind::Request => {
                    // How a stream ends that is only ever broken off.
                    let status = if call.kind == CallKind::Http { CallStatus::Ok } else { CallStatus::NoResponse };
                    self.settle(key, status, Some(error.to_owned()), frame.at);
                    self.release(key);
                }
                // The response may come on another stream: that of HTTP+SSE, or one that is resumed.
                (Some(_), error) => call.message = error.map(str::to_owned),
            }
        }
    }

    fn end_all(&mut self, otherwise: &str) {
        self.calls.exchanges.clear();
        for key in self.calls.open.keys().copied().collect::<Vec<_>>() {
            let reason = self.calls.over.clone().unwrap_or_else(|| otherwise.to_owned());
            let kind = self.calls.open.get(&key).map(|call| call.kind);
            let (status, reason) = match kind {
                Some(CallKind::Request) => (CallStatus::NoResponse, Some(reason)),
                _ => (CallStatus::Ok, None),
            };
            self.end(key, status, reason);
        }
        self.calls.by_id.clear();
        self.calls.by_token.clear();
        self.calls.tokens.clear();
    }

    fn end(&mut self, key: CallKey, status: CallStatus, reason: Option<String>) {
        let reason = self.calls.open.get(&key).and_then(|call| call.message.clone()).or(reason);
        self.settle(key, status, reason, self.calls.at);
        self.release(key);
    }

    /// The first outcome holds.
    fn settle(&mut self, key: CallKey, status: CallStatus, message: Option<String>, at: Duration) {
        let Some(call) = self.calls.open.get_mut(&key).filter(|call| call.status == CallStatus::Pending) else { return };
        (call.status, call.message, call.end) = (status, message, Some(at));
        self.calls.ongoing.remove(&key);
        if call.kind == CallKind::Request
            && let Some(id) = &call.id
        {
            let side = if call.direction == Direction::ToServer { Side::Client } else { Side::Server };
            let name = (side, id.to_string());
            if self.calls.by_id.get(&name) == Some(&key) {
                self.calls.by_id.remove(&name);
            }
            self.calls.ended.add(&name, key);
        }
    }

    fn release_unless_carried(&mut self, key: CallKey) {
        if self.carrier(key).is_none() {
            self.release(key);
        }
    }

    fn release(&mut self, key: CallKey) {
        let Some(call) = self.calls.open.remove(&key) else { return };
        self.totals.calls = self.totals.calls.saturating_sub(1);
        self.totals.bytes = self.totals.bytes.saturating_sub(bytes_of(&call));
        self.calls.ongoing.remove(&key);
        if let Some(token) = self.calls.tokens.remove(&key)
            && self.calls.by_token.get(&token) == Some(&key)
        {
            self.calls.by_token.remove(&token);
        }
        if let Some(known) = call.http.as_ref().and_then(|http| self.calls.exchanges.get_mut(&http.exchange)) {
            known.calls.remove(&key);
        }
        self.updates.push(Update::Ended(Box::new(call)));
    }

    /// The HTTP exchange that is still open and carries a call.
    fn carrier(&self, key: CallKey) -> Option<ExchangeId> {
        let exchange = self.calls.open.get(&key)?.http.as_ref()?.exchange;
        self.calls.exchanges.get(&exchange).filter(|known| known.calls.contains(&key)).map(|_| exchange)
    }

    fn calls_of(&self, exchange: ExchangeId) -> Vec<CallKey> {
        self.calls.exchanges.get(&exchange).map(|known| known.calls.iter().copied().collect()).unwrap_or_default()
    }

    /// The request of the client during which the server says something: the one on the same stream, or the only one that is open.
    fn ongoing(&self, place: &Place<'_>) -> Option<CallKey> {
        let is_request = |call: &&Call| call.kind == CallKind::Request && call.direction == Direction::ToServer;
        if let Some(exchange) = place.exchange {
            let calls = &self.calls.exchanges.get(&exchange)?.calls;
            return calls.iter().copied().find(|key| self.calls.open.get(key).as_ref().is_some_and(is_request));
        }
        let mut ongoing = self.calls.ongoing.iter();
        ongoing.next().filter(|_| ongoing.next().is_none()).copied()
    }

    fn new_key(&mut self) -> CallKey {
        *self.last += 1;
        CallKey(*self.last)
    }

    fn new_call(&self, key: CallKey, kind: CallKind, method: String, request: Raw, place: &Place<'_>) -> Call {
        let http = place.exchange.and_then(|exchange| self.calls.exchanges.get(&exchange)).map(|known| known.http.clone());
        Call {
            key,
            session: place.session,
            kind,
            direction: place.frame.direction,
            method,
            target: None,
            id: None,
            start: place.frame.at,
            end: None,
            status: CallStatus::Pending,
            code: None,
            message: None,
            http,
            parent: None,
            previous: None,
            frames: vec![place.frame.id],
            request,
            response: None,
        }
    }

    fn keep(&mut self, call: Call, place: &Place<'_>) {
        let key = call.key;
        // What the server says on a stream ends without the stream.
        if call.direction == Direction::ToServer
            && let Some(known) = place.exchange.and_then(|exchange| self.calls.exchanges.get_mut(&exchange))
            && known.calls.len() < MOST_CARRIED
        {
            known.calls.insert(key);
        }
        self.totals.calls += 1;
        self.totals.bytes += bytes_of(&call);
        self.calls.open.insert(key, call);
        self.updates.push(Update::Began(key));
    }

    fn set_response(&mut self, key: CallKey, response: Raw) {
        let Some(call) = self.calls.open.get_mut(&key) else { return };
        let before = bytes_of(call);
        call.response = Some(response);
        self.totals.bytes = (self.totals.bytes + bytes_of(call)).saturating_sub(before);
    }

    fn add_frame(&mut self, key: CallKey, frame: FrameId) {
        if let Some(call) = self.calls.open.get_mut(&key)
            && call.frames.last() != Some(&frame)
            && call.frames.len() < MOST_FRAMES
        {
            call.frames.push(frame);
        }
    }
}

fn judge(outcome: &Result<Value, Value>) -> (CallStatus, Option<i64>, Option<String>) {
    match outcome {
        Err(error) => {
            let message = error.get("message").and_then(Value::as_str).map(str::to_owned);
            (CallStatus::RpcError, error.get("code").and_then(Value::as_i64), message)
        }
        Ok(result) if result.get("isError") == Some(&Value::Bool(true)) => {
            let text = result.pointer("/content/0/text").and_then(Value::as_str).map(str::to_owned);
            (CallStatus::ToolError, None, text)
        }
        Ok(result) if result.get("resultType").and_then(Value::as_str) == Some("input_required") => (CallStatus::InputRequired, None, None),
        Ok(_) => (CallStatus::Ok, None, None),
    }
}

fn bytes_of(call: &Call) -> usize {
    call.target.as_ref().map_or(0, String::len) + call.request.len() + call.response.as_ref().map_or(0, Raw::len)
}

/// Path and query.
fn path_of(url: &str) -> String {
    let after = url.split_once("://").map_or(url, |(_, after)| after);
    after.find('/').map_or("/", |place| &after[place..]).to_owned()
}
