//! Matches responses to requests, and records what matches none as a fault. Never waits.

use super::history_bounds::{BacklogSlot, MAX_WAITING, RequestBacklog};
use super::notifications::{Notification, Notifications};
use super::{CallFailure, ConnectOptions, Deadline, Reading, Reply};
use crate::Tap;
use crate::jsonrpc::{self, Malformed, Message, RequestId, RpcError};
use crate::transport::{Closed, HttpHead, Inbox, Limits, Unanswered, ViolationKind};
use mcproof_protocol::methods;
use mcproof_record::{Direction, ExchangeId, FrameId, Json};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::sleep_until;

/// Something a server sent that no conforming server sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub frame: FrameId,
    pub kind: ViolationKind,
}

/// A request from the server, which the session's policy has to answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ServerRequest {
    pub(super) id: RequestId,
    pub(super) method: String,
    pub(super) params: Value,
}

/// A request of the server, and the room that it takes until it is answered.
pub(super) type ServerRequests = mpsc::UnboundedReceiver<(ServerRequest, BacklogSlot)>;

/// Faults kept; a flood of them is counted by the tap, not here.
const MAX_STORED: usize = 1000;
/// How long a request is still waited for once a response has come that nobody can read, or a message without its end: it is most likely
/// the one.
const UNREAD: Duration = Duration::from_secs(2);

pub(super) struct Dispatcher {
    pub(super) notifications: Notifications,
    state: Mutex<DispatcherState>,
    /// Bounded by the backlog.
    requests: mpsc::UnboundedSender<(ServerRequest, BacklogSlot)>,
    backlog: RequestBacklog,
    tap: Tap,
    limits: Limits,
    reading: Reading,
    /// See [`super::ConnectOptions::misled`].
    misled: Option<Duration>,
    /// Told whenever a response came that fits no request.
    strayed: Notify,
}

#[derive(Default)]
struct DispatcherState {
    next: i64,
    pending: HashMap<RequestId, AwaitedRequest>,
    closed: Option<Closed>,
    faults: Vec<Fault>,
    /// A line that has begun and not ended: a fault only as long as that is so.
    open_line: Option<FrameId>,
    /// The same of events, by their exchanges.
    open_events: HashMap<ExchangeId, Fault>,
    /// What has begun and not ended holds whole messages: only its end is missing.
    lacks_only_end: bool,
    /// Answers to what was sent as it stood and is waited for by nobody.
    unawaited: Unawaited,
    /// Ids that were not ours, of what was sent as it stood.
    given: HashSet<RequestId>,
    /// Requests that were canceled or timed out, and whose response may still come.
    given_up: HashSet<RequestId>,
}

#[derive(Default)]
struct Unawaited {
    ids: HashSet<RequestId>,
    /// An error without an id may be about any of it.
    anonymous: bool,
}

struct AwaitedRequest {
    answer: oneshot::Sender<Result<Reply<Json>, CallFailure>>,
    asked: Instant,
    request: Option<FrameId>,
    /// Where it requested progress.
    progress: Option<Progressing>,
    /// Sent as it stood: the server may find no id in it, and answers without one.
    may_be_anonymous: bool,
    /// Responses that fit no request and came since.
    strays: usize,
    /// What came that holds a response to it and is not one.
    unread: Option<Malformed>,
}

impl AwaitedRequest {
    fn take(self, answer: Result<Json, RpcError>, anonymous: bool, frame: FrameId, head: Option<&Arc<HttpHead>>) {
        let Self { answer: waiting, asked, request: request_frame, .. } = self;
        let reply = Reply { answer, anonymous, request_frame, frame, elapsed: asked.elapsed(), http: head.cloned() };
        // The caller may have given up this instant; the tap has the response all the same.
        let _ = waiting.send(Ok(reply));
    }
}

/// The request whose id stands in a response as a text, although it is a number.
fn meant_by_text(id: &RequestId, pending: &mut HashMap<RequestId, AwaitedRequest>) -> Option<(i64, AwaitedRequest)> {
    let RequestId::Text(text) = id else { return None };
    let number = text.parse().ok().filter(|number: &i64| number.to_string() == *text && !pending.contains_key(id))?;
    Some((number, pending.remove(&RequestId::Number(number))?))
}

/// Whether these bytes are one JSON object or several, the last of which has ended.
fn is_whole(bytes: &[u8]) -> bool {
    let text = bytes.strip_suffix(b"\0").unwrap_or(bytes).trim_ascii();
    matches!(text, [b'{', .., b'}'])
        && serde_json::Deserializer::from_slice(text).into_iter::<serde::de::IgnoredAny>().all(|value| value.is_ok())
}

/// The progress of a request.
struct Progressing {
    /// By which notifications name it.
    token: Option<Value>,
    /// Counts them.
    seen: watch::Sender<u64>,
}

/// A request that waits for its response. Dropping it forgets the request: a response then is a late one.
pub(super) struct Waiting {
    pub(super) id: RequestId,
    pub(super) began: Instant,
    dispatcher: Arc<Dispatcher>,
    answer: oneshot::Receiver<Result<Reply<Json>, CallFailure>>,
    progress: Option<watch::Receiver<u64>>,
}

impl Waiting {
    pub(super) fn dispatcher(&self) -> &Arc<Dispatcher> {
        &self.dispatcher
    }

    /// Notes in which frame the request went out.
    pub(super) fn sent(&self, frame: FrameId) {
        if let Some(pending) = self.dispatcher.state().pending.get_mut(&self.id) {
            pending.request = Some(frame);
        }
    }

    /// Notes by which token the server tells of its progress.
    pub(super) fn expect_progress_of(&mut self, token: Option<Value>) {
        if let Some(pending) = self.dispatcher.state().pending.get_mut(&self.id) {
            let (seen, progress) = watch::channel(0);
            pending.progress = Some(Progressing { token, seen });
            self.progress = Some(progress);
        }
    }

    /// Waits for the response without a deadline, which is the caller's. Not to be asked again once it has answered.
    pub(super) async fn reply(&mut self) -> Result<Reply<Json>, CallFailure> {
        (&mut self.answer).await.unwrap_or_else(ended)
    }

    /// The response, if it is there. Not to be asked again once it was.
    pub(super) fn reply_now(&mut self) -> Option<Result<Reply<Json>, CallFailure>> {
        match self.answer.try_recv() {
            Err(TryRecvError::Empty) => None,
            answered => Some(answered.unwrap_or_else(ended)),
        }
    }

    /// Waits for the response; `None` when `deadline` passes. Progress starts it anew, but never beyond its maximum.
    pub(super) async fn answer(&mut self, deadline: Deadline) -> Option<Result<Reply<Json>, CallFailure>> {
        let end = deadline.maximum.map(|maximum| self.began + maximum);
        let mut heard = self.began;
        let mut hopeless: Option<Instant> = None;
        loop {
            // It hears of what comes from here on, so that it is looked for afterwards.
            let strayed = self.dispatcher.strayed.notified();
            // What lacked its end may have got it meanwhile: then the wait is as long as any other.
            let misled = self.dispatcher.is_misled(&self.id);
            hopeless = misled.map(|misled| hopeless.unwrap_or_else(|| Instant::now() + misled));
            let next = heard + deadline.idle;
            let next = [Some(next), end, hopeless].into_iter().flatten().min().unwrap_or(next);
            tokio::select! {
                biased;
                answer = &mut self.answer => return Some(answer.unwrap_or_else(ended)),
                () = progressed(&mut self.progress), if end.is_some() => heard = Instant::now(),
                () = strayed => {}
                () = sleep_until(next.into()) => {
                    return self.dispatcher.unread(&self.id).map(|malformed| Err(CallFailure::NotAnAnswer(malformed)));
                }
            }
        }
    }
}

/// Nobody is left who could answer.
fn ended<E, T>(_: E) -> Result<T, CallFailure> {
    Err(CallFailure::Closed(Closed::StreamEnded))
}

/// Waits for the next progress, for ever where none was requested.
async fn progressed(progress: &mut Option<watch::Receiver<u64>>) {
    if let Some(progress) = progress
        && progress.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // What was answered is forgotten already.
        if !self.answer.is_terminated() {
            let mut state = self.dispatcher.state();
            if state.pending.remove(&self.id).is_some() {
                state.given_up.insert(self.id.clone());
            }
        }
    }
}

impl Dispatcher {
    pub(super) fn new(tap: &Tap, options: &ConnectOptions) -> (Arc<Self>, ServerRequests) {
        let (requests, queue) = mpsc::unbounded_channel();
        let (notifications, backlog) = (Notifications::new(), RequestBacklog::default());
        let (state, strayed) = (Mutex::default(), Notify::new());
        let ConnectOptions { reading, misled, limits, .. } = *options;
        (Arc::new(Self { notifications, state, requests, backlog, tap: tap.clone(), limits, reading, misled, strayed }), queue)
    }

    /// # Errors
    /// The connection has ended already.
    pub(super) fn expect_response(self: &Arc<Self>) -> Result<Waiting, CallFailure> {
        let mut state = self.state();
        if let Some(closed) = &state.closed {
            return Err(CallFailure::Closed(closed.clone()));
        }
        state.next += 1;
        let id = RequestId::Number(state.next);
        Ok(self.wait(&mut state, id, false))
    }

    /// For a message that is sent as it stands: `id` is the one in it, if it has one.
    ///
    /// # Errors
    /// The connection has ended already.
    pub(super) fn expect_response_to(self: &Arc<Self>, id: Option<RequestId>) -> Result<Waiting, CallFailure> {
        let mut state = self.state();
        if let Some(closed) = &state.closed {
            return Err(CallFailure::Closed(closed.clone()));
        }
        let id = id.unwrap_or_else(|| {
            state.next += 1;
            RequestId::Number(state.next)
        });
        state.given.insert(id.clone());
        Ok(self.wait(&mut state, id, true))
    }

    /// Answers with these ids are of no consequence from here on, and those without any neither, if `anonymous`.
    pub(super) fn expect_nothing_of(&self, ids: impl Iterator<Item = RequestId>, anonymous: bool) {
        let mut state = self.state();
        state.unawaited.ids.extend(ids);
        state.unawaited.anonymous |= anonymous;
    }

    /// Answers to what waits for one now are of no consequence from here on.
    pub(super) fn forgo_responses(&self) {
        let mut state = self.state();
        let DispatcherState { pending, unawaited, .. } = &mut *state;
        unawaited.ids.extend(pending.keys().cloned());
    }

    fn wait(self: &Arc<Self>, state: &mut DispatcherState, id: RequestId, may_be_anonymous: bool) -> Waiting {
        let (sender, answer) = oneshot::channel();
        let began = Instant::now();
        let pending =
            AwaitedRequest { answer: sender, asked: began, request: None, progress: None, may_be_anonymous, strays: 0, unread: None };
        state.pending.insert(id.clone(), pending);
        Waiting { id, began, dispatcher: Arc::clone(self), answer, progress: None }
    }

    pub(super) fn faults(&self) -> Vec<Fault> {
        let state = self.state();
        let open = state.open_line.map(|frame| Fault { frame, kind: ViolationKind::UnfinishedLine });
        state.faults.iter().chain(state.open_events.values()).cloned().chain(open).collect()
    }

    /// The request that some malformed bytes were meant to answer: they say so, or the HTTP exchange does, or they look
    /// like a whole message while only one answer is missing.
    fn meant(&self, malformed: &Malformed, bytes: &[u8], request: Option<&RequestId>) -> Option<AwaitedRequest> {
        let mut state = self.state();
        let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        let looks_whole = || matches!(text.trim_ascii(), [b'{', .., b'}']);
        // The SDKs skip what names no request, such as a log record: then the response may still come.
        // What is too large to be read can be anything, and nobody waits for more of it.
        let is_out_of_bounds = matches!(malformed.flaw, jsonrpc::Flaw::TooDeep(_) | jsonrpc::Flaw::TooManyValues(_));
        let may_be_it = self.reading == Reading::Strict || is_out_of_bounds;
        let only = || state.pending.keys().next().filter(|_| may_be_it && state.pending.len() == 1 && looks_whole());
        let id = malformed.answers.as_ref().or(request).or_else(only).cloned()?;
        state.pending.remove(&id)
    }

    /// Takes the responses in what is no message, as far as clients take them, where nobody is strict. Whether there were any.
    fn takes(&self, bytes: &[u8], frame: FrameId, head: Option<&Arc<HttpHead>>) -> bool {
        if self.reading == Reading::Strict {
            return false;
        }
        // Whoever decodes a body as the Fetch standard has it drops the mark.
        let bytes = if head.is_some() { bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes) } else { bytes };
        let mut is_any = false;
        for (id, answer) in jsonrpc::tolerant_responses(bytes, self.limits.json) {
            let pending = self.state().pending.remove(&id);
            if let Some(pending) = pending {
                pending.take(answer, false, frame, head);
                is_any = true;
            }
        }
        is_any
    }

    /// A response came that fits no request that is open.
    fn stray(&self, state: &mut DispatcherState) {
        if self.misled.is_none() {
            return;
        }
        state.pending.values_mut().for_each(|pending| pending.strays += 1);
        self.strayed.notify_waiters();
    }

    /// Something has begun and not ended, of which no more than the end may be missing.
    fn has_begun(&self, state: &mut DispatcherState, lacks_only_end: bool) {
        if lacks_only_end && !state.lacks_only_end {
            state.lacks_only_end = true;
            self.strayed.notify_waiters();
        }
    }

    fn has_ended(&self, state: &mut DispatcherState) {
        if std::mem::take(&mut state.lacks_only_end) {
            self.strayed.notify_waiters();
        }
    }

    /// Returns when what begins an event stream has come without its end, and that does not follow either.
    pub(super) async fn lacks_end_of_first_event(&self) {
        loop {
            let strayed = self.strayed.notified();
            if self.state().lacks_only_end {
                tokio::time::sleep(self.misled.unwrap_or(UNREAD)).await;
                if self.state().lacks_only_end {
                    return;
                }
            }
            strayed.await;
        }
    }

    /// How long a request is waited for from now on, if its response may have come: as one that nobody can read, or among as many that fit
    /// no request as there are open ones.
    fn is_misled(&self, request: &RequestId) -> Option<Duration> {
        let state = self.state();
        let pending = state.pending.get(request)?;
        let is_unread = state.lacks_only_end || pending.unread.is_some();
        match self.misled {
            Some(misled) => (is_unread || pending.strays >= state.pending.len()).then_some(misled),
            None => is_unread.then_some(UNREAD),
        }
    }

    /// What came in place of the response to a request.
    fn unread(&self, request: &RequestId) -> Option<Malformed> {
        self.state().pending.get_mut(request)?.unread.take()
    }

    /// Whether what nobody can read may hold the response to a request that is open.
    fn is_unread_response(&self, malformed: &Malformed, bytes: &[u8]) -> bool {
        let Some(response) = jsonrpc::unreadable_response(bytes) else { return false };
        let mut state = self.state();
        let Some((_, pending)) = state.pending.iter_mut().find(|(id, _)| jsonrpc::names_id(&response, id)) else { return false };
        pending.unread = Some(malformed.clone());
        self.strayed.notify_waiters();
        true
    }

    fn notified(&self, notification: Notification, bytes: usize) {
        if notification.method == methods::notifications::PROGRESS
            && let Some(token) = notification.param("/progressToken")
        {
            let state = self.state();
            let mut asked = state.pending.values().filter_map(|pending| pending.progress.as_ref());
            if let Some(progressing) = asked.find(|progressing| progressing.token.as_ref() == Some(token)) {
                progressing.seen.send_modify(|count| *count += 1);
            }
        }
        self.notifications.keep(notification, bytes);
    }

    /// A revision that does not exist is no reason for some clients to leave. Whether it is one here.
    pub(super) fn takes_revision(&self, version: &str, frame: FrameId) -> bool {
        let is_taken = self.reading == Reading::Tolerant;
        if is_taken {
            self.fault(frame, ViolationKind::UnknownRevision(version.to_owned()));
        }
        is_taken
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    pub(super) fn closed_because(&self) -> Option<Closed> {
        self.state().closed.clone()
    }

    /// The one request that waits for a response which may have no id.
    fn unidentified(&self) -> Option<RequestId> {
        let state = self.state();
        let mut all = state.pending.iter().filter(|(_, pending)| pending.may_be_anonymous).map(|(id, _)| id);
        all.next().filter(|_| all.next().is_none()).cloned()
    }

    fn state(&self) -> MutexGuard<'_, DispatcherState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

impl Inbox for Dispatcher {
    fn line_begun(&self, bytes: &[u8], note: &dyn Fn() -> FrameId) {
        let mut state = self.state();
        if state.open_line.is_none() {
            state.open_line = Some(note());
        }
        self.has_begun(&mut state, is_whole(bytes));
    }

    fn event_begun(&self, exchange: ExchangeId, content: &[u8], note: &dyn Fn() -> (FrameId, ViolationKind)) {
        let mut state = self.state();
        // What begins an HTTP+SSE stream is no message.
        let is_endpoint = state.next == 0 && !content.is_empty() && !content.starts_with(b"{");
        self.has_begun(&mut state, is_endpoint || is_whole(content));
        if state.open_events.len() < MAX_STORED {
            state.open_events.entry(exchange).or_insert_with(|| {
                let (frame, kind) = note();
                Fault { frame, kind: kind.shortened() }
            });
        }
    }

    fn event_ended(&self, exchange: ExchangeId) {
        let mut state = self.state();
        state.open_events.remove(&exchange);
        self.has_ended(&mut state);
    }

    fn lost(&self, frame: FrameId, kind: ViolationKind, content: &[u8], request: Option<&RequestId>) {
        // What the rest of its stream brings may still be a response to a request that this does not name.
        if let Ok(Message::Response { id, .. }) = jsonrpc::parse_within(content, self.limits.json)
            && let Some(pending) = id.as_ref().or(request).and_then(|id| self.state().pending.remove(id))
        {
            let _ = pending.answer.send(Err(CallFailure::Lost(kind.clone().shortened())));
        }
        self.fault(frame, kind);
    }

    fn message(&self, bytes: &[u8], frame: FrameId, head: Option<&Arc<HttpHead>>, request: Option<&RequestId>) {
        let mut state = self.state();
        state.open_line = None;
        self.has_ended(&mut state);
        drop(state);
        match jsonrpc::parse_within(bytes, self.limits.json) {
            // A refused request may be explained in any form; the status says it all (2025-11-25, transports, sending
            // messages: the body of an error status may, not must, be a JSON-RPC error).
            Err(_) if head.is_some_and(|head| head.status >= 400) => {}
            Err(malformed) if self.takes(bytes, frame, head) => self.fault(frame, ViolationKind::Malformed(malformed)),
            Err(malformed) => {
                if let Some(pending) = self.meant(&malformed, bytes, request) {
                    let _ = pending.answer.send(Err(CallFailure::NotAnAnswer(malformed.clone())));
                } else if !self.is_unread_response(&malformed, bytes) && (head.is_some() || bytes.trim_ascii() == b"}") {
                    // An event is meant to be a message, and so is what ends with such a line.
                    self.stray(&mut self.state());
                }
                self.fault(frame, ViolationKind::Malformed(malformed));
            }
            Ok(Message::Notification { method, params }) => {
                self.notified(Notification { frame, method, params, carried_by: request.cloned() }, bytes.len());
            }
            Ok(Message::Request { id, method, params }) => {
                let Some(room) = self.backlog.admit(bytes.len()) else {
                    return self.fault(frame, ViolationKind::TooManyRequests { most: MAX_WAITING });
                };
                // The receiver lives as long as the session; after that nobody has to answer.
                let _ = self.requests.send((ServerRequest { id, method, params: params.unwrap_or_default() }, room));
            }
            Ok(Message::Response { id, answer }) => {
                let anonymous = id.is_none();
                // An error without an id still belongs to the exchange that carried it.
                let Some(id) = id.or_else(|| request.cloned()).or_else(|| self.unidentified()) else {
                    if self.state().unawaited.anonymous {
                        return;
                    }
                    let text = answer.map_or_else(|error| error.to_string(), |_| "a result".to_owned());
                    self.stray(&mut self.state());
                    return self.fault(frame, ViolationKind::NoId(text));
                };
                let mut state = self.state();
                if let Some((number, pending)) = meant_by_text(&id, &mut state.pending) {
                    drop(state);
                    self.fault(frame, ViolationKind::TextForNumber(number));
                    if self.reading == Reading::Strict {
                        let _ = pending.answer.send(Err(CallFailure::Lost(ViolationKind::TextForNumber(number))));
                        return;
                    }
                    return pending.take(answer, false, frame, head);
                }
                let Some(pending) = state.pending.remove(&id) else {
                    // Whoever cancels a request or stops waiting ignores its response, which may have been on its way (2025-11-25,
                    // cancellation, behavior requirements). A second one is a violation all the same.
                    if state.unawaited.ids.remove(&id) || state.given_up.remove(&id) {
                        return;
                    }
                    let known = matches!(id, RequestId::Number(number) if (1..=state.next).contains(&number)) || state.given.contains(&id);
                    // As above: with an id of its own, it explains a refused request all the same.
                    if !known && answer.is_err() && head.is_some_and(|head| head.status >= 400) {
                        return;
                    }
                    self.stray(&mut state);
                    drop(state);
                    return self.fault(frame, if known { ViolationKind::NotWaitedFor(id) } else { ViolationKind::UnknownId(id) });
                };
                drop(state);
                pending.take(answer, anonymous, frame, head);
            }
        }
    }

    fn is_tolerant(&self) -> bool {
        self.reading == Reading::Tolerant
    }

    fn fault(&self, frame: FrameId, kind: ViolationKind) {
        let mut state = self.state();
        let fault = Fault { frame, kind: kind.shortened() };
        // One may be told as soon as it is seen, and again once it is known what came of it.
        if state.faults.len() < MAX_STORED && !state.faults.contains(&fault) {
            state.faults.push(fault);
        }
    }

    fn waits_for(&self, request: &RequestId) -> bool {
        self.state().pending.contains_key(request)
    }

    fn unanswered(&self, request: &RequestId, why: Unanswered) {
        let mut state = self.state();
        // The stream of an earlier request with the same id ends behind its response.
        let is_of_earlier = |pending: &AwaitedRequest| match (&why, pending.request) {
            (Unanswered::Response { head, .. }, Some(sent)) => head.frame < sent,
            _ => false,
        };
        if state.pending.get(request).is_some_and(is_of_earlier) {
            return;
        }
        let Some(pending) = state.pending.remove(request) else { return };
        drop(state);
        let _ = pending.answer.send(Err(CallFailure::Unanswered(why)));
    }

    fn closed(&self, why: Closed) {
        let pending = {
            let mut state = self.state();
            state.closed.get_or_insert(why.clone());
            std::mem::take(&mut state.pending)
        };
        if !matches!(why, Closed::Exited(_)) {
            self.tap.record(Direction::Local, mcproof_record::FrameBody::Note { text: why.to_string() });
        }
        for pending in pending.into_values() {
            let _ = pending.answer.send(Err(CallFailure::Closed(why.clone())));
        }
        self.notifications.end();
    }
}
