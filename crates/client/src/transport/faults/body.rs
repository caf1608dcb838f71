//! The body of a response as our client gets it: as the server sent it, or disturbed, or made up.

use super::{FaultDirection, FaultInjector, InjectedFault, LIST_CHANGED, MessageFaults, OVERTAKEN_WITHIN, Pace, PlannedFault, Subject};
use crate::Tap;
use crate::transport::http::{EVENT_STREAM, is_json, media_type};
use crate::transport::pool::describe;
use crate::transport::sse_events::{Event, EventParser};
use crate::transport::{Broken, HttpHead};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use std::collections::VecDeque;
use std::future::pending;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Where the bytes of a body come from.
pub(in crate::transport) enum Reading {
    Plain(Incoming),
    Disturbed(Box<DisturbedBody>),
    /// Made up by us.
    Made(Option<Bytes>),
}

impl Reading {
    /// The next piece; `None` at the end.
    pub(in crate::transport) async fn next(&mut self) -> Option<Result<Bytes, Broken>> {
        match self {
            Self::Plain(body) => next_of(body).await,
            Self::Disturbed(body) => body.next().await,
            Self::Made(bytes) => bytes.take().map(Ok),
        }
    }
}

async fn next_of(body: &mut Incoming) -> Option<Result<Bytes, Broken>> {
    let frame = body.frame().await?;
    Some(frame.map(|frame| frame.into_data().unwrap_or_default()).map_err(|error| describe(&error).into()))
}

/// A body whose messages are treated one by one. What is read and not yet handed out is in its fields, so that a
/// dropped wait loses nothing.
pub struct DisturbedBody {
    inner: Incoming,
    form: Form,
    /// The request whose response this is, if it carried one.
    request: Subject,
    injector: FaultInjector,
    tap: Tap,
    most: usize,
    ready: VecDeque<Chunk>,
    held: Option<Held>,
    buffer: Option<Buffer>,
    state: State,
    /// After a piece of a throttled message.
    rest_until: Option<Instant>,
    /// When the last bytes came.
    active: Instant,
}

enum Form {
    /// One JSON message, as far as it came.
    Message(Vec<u8>),
    Events(Box<EventParser>),
    /// Nothing that we can or want to look into.
    Opaque,
}

enum State {
    Open,
    /// Everything was read; why it broke, if it did.
    Ended(Option<Broken>),
    /// The end never comes: it was lost with what was dropped.
    Lost,
}

/// Bytes that are to be handed out at a time.
struct Chunk {
    bytes: Bytes,
    due: Instant,
    pace: Option<Pace>,
}

/// Events that wait until there are enough of them.
struct Buffer {
    bytes: Vec<u8>,
    size: usize,
}

/// An event that waits to be overtaken.
struct Held {
    raw: Vec<u8>,
    subject: Subject,
    planned: PlannedFault,
    /// By another event or in another exchange.
    passing: watch::Receiver<u64>,
    until: Instant,
}

/// Messages read ahead while one waits for its time.
const MOST_READY: usize = 1024;

impl DisturbedBody {
    /// `most`: bytes of a message that are read at all; more than the client takes.
    pub fn new(inner: Incoming, head: &HttpHead, request: Subject, injector: &FaultInjector, tap: &Tap, most: usize) -> Self {
        let kind = media_type(head);
        let encoded = head.header("content-encoding").is_some_and(|coding| !coding.trim().eq_ignore_ascii_case("identity"));
        let form = match () {
            () if encoded && kind == EVENT_STREAM => Form::Opaque,
            () if kind == EVENT_STREAM => Form::Events(Box::default()),
            () if is_json(&kind) => Form::Message(Vec::new()),
            () => Form::Opaque,
        };
        let (injector, tap) = (injector.clone(), tap.clone());
        let (ready, active) = (VecDeque::new(), Instant::now());
        let (held, buffer, rest_until) = (None, None, None);
        Self { inner, form, request, injector, tap, most, ready, held, buffer, state: State::Open, rest_until, active }
    }

    /// The next piece; `None` at the end. A canceled wait loses nothing.
    pub async fn next(&mut self) -> Option<Result<Bytes, Broken>> {
        loop {
            let is_open = matches!(self.state, State::Open);
            let due = self.ready.front().map(|chunk| chunk.due.max(self.rest_until.unwrap_or(chunk.due)));
            let until = self.held.as_ref().map(|held| held.until);
            let cut = self.injector.idle_cut().map(|(after, planned)| (self.active + after, after, planned));
            if due.is_none() && until.is_none() && matches!(self.state, State::Lost) {
                match cut {
                    Some((at, ..)) => sleep_until(at).await,
                    None => pending().await,
                }
                self.cut_idle();
                continue;
            }
            if due.is_none() && until.is_none() && !is_open {
                return match std::mem::replace(&mut self.state, State::Ended(None)) {
                    State::Ended(broken) => broken.map(Err),
                    State::Open | State::Lost => unreachable!("it was just found to have ended"),
                };
            }
            let now = Instant::now();
            tokio::select! {
                biased;
                () = sleep_until(due.unwrap_or(now)), if due.is_some() => return self.hand_out().map(Ok),
                piece = next_of(&mut self.inner), if is_open && self.ready.len() < MOST_READY => self.absorb(piece).await,
                () = sleep_until(cut.map_or(now, |(at, ..)| at)), if is_open && cut.is_some() => self.cut_idle(),
                () = overtaken(self.held.as_mut()), if until.is_some() => self.release(true),
                () = sleep_until(until.unwrap_or(now)), if until.is_some() => self.release(false),
            }
        }
    }

    fn hand_out(&mut self) -> Option<Bytes> {
        let mut chunk = self.ready.pop_front()?;
        if let Some(Pace { size, pause }) = chunk.pace
            && chunk.bytes.len() > size
        {
            let piece = chunk.bytes.split_to(size);
            self.ready.push_front(chunk);
            self.rest_until = Some(Instant::now() + pause);
            return Some(piece);
        }
        Some(chunk.bytes)
    }

    fn cut_idle(&mut self) {
        if let Some((after, planned)) = self.injector.idle_cut() {
            self.tap.note(self.injector.cut_idle(after, planned));
            self.state = State::Ended(Some(broken_by_us("the connection was closed after a silence")));
        }
    }

    async fn absorb(&mut self, piece: Option<Result<Bytes, Broken>>) {
        self.active = Instant::now();
        let bytes = match piece {
            Some(Ok(bytes)) => bytes,
            Some(Err(broken)) => return self.end(Some(broken)).await,
            None => return self.end(None).await,
        };
        match &mut self.form {
            Form::Opaque => self.plain(bytes),
            Form::Message(message) => {
                message.extend_from_slice(&bytes);
                if message.len() > self.most {
                    // Too large for us to hold; the client will say so.
                    let message = std::mem::take(message);
                    self.form = Form::Opaque;
                    self.plain(message.into());
                }
            }
            Form::Events(parser) => {
                let mut events = Vec::new();
                parser.feed(&bytes, |event| events.push(event));
                let pending = parser.pending();
                for event in events {
                    self.event(event);
                }
                if pending > self.most
                    && let Form::Events(parser) = std::mem::replace(&mut self.form, Form::Opaque)
                    && let Some(left) = parser.finish(usize::MAX)
                {
                    self.plain(left.raw.into());
                }
            }
        }
    }

    async fn end(&mut self, broken: Option<Broken>) {
        match std::mem::replace(&mut self.form, Form::Opaque) {
            Form::Message(message) if broken.is_none() && !message.is_empty() => return self.message(message).await,
            Form::Message(message) => self.plain(message.into()),
            Form::Events(parser) => {
                if let Some(left) = parser.finish(usize::MAX) {
                    self.plain(left.raw.into());
                }
            }
            Form::Opaque => {}
        }
        self.flush();
        if matches!(self.state, State::Open) {
            self.state = State::Ended(broken);
        }
    }

    /// The one message of a response that is no stream.
    async fn message(&mut self, message: Vec<u8>) {
        let subject = match self.injector.read(FaultDirection::Client, &message) {
            Subject::Unknown => self.request.answer(),
            subject => subject,
        };
        let treatment = self.treatment(&subject);
        self.state = State::Ended(None);
        let mut odd = self.injector.is_disturbed(&subject);
        if let Some(planned) = treatment.planned {
            odd = true;
            match planned.disturbance {
                InjectedFault::Drop => {
                    self.did(planned, format!("dropped {subject}"));
                    self.state = State::Lost;
                    return;
                }
                InjectedFault::Truncate | InjectedFault::Cut => {
                    self.did(planned, format!("cut off the second half of {subject}"));
                    self.state = State::Ended(Some(broken_by_us("the connection closed in the middle of the body")));
                    let half = message[..message.len() / 2].to_vec();
                    return self.deliver(half, &treatment, odd);
                }
                InjectedFault::Reset => {
                    self.did(planned, format!("broke the connection in place of {subject}"));
                    self.state = State::Ended(Some(broken_by_us("connection reset by peer")));
                    return;
                }
                InjectedFault::Duplicate => {
                    self.tap.note(format!("an HTTP response holds one message: {subject} cannot come twice"));
                }
                InjectedFault::Reorder => match self.injector.overtaken(FaultDirection::Client).await {
                    true => self.did(planned, format!("let another message overtake {subject}")),
                    false => drop(self.tap.note(format!("no message came that could overtake {subject}"))),
                },
                InjectedFault::ListChanges { .. } | InjectedFault::Buffer { .. } => {
                    self.tap.note(format!("{subject} came as JSON, without an event stream: nothing else can come before it"));
                }
                _ => {}
            }
        }
        self.deliver(message, &treatment, odd);
        self.injector.pass(FaultDirection::Client);
    }

    fn event(&mut self, event: Event) {
        if !matches!(self.state, State::Open) {
            return;
        }
        let Event { raw, data, .. } = event;
        let subject = data.map_or(Subject::Unknown, |data| self.injector.read(FaultDirection::Client, &data));
        let treatment = self.treatment(&subject);
        let mut odd = self.injector.is_disturbed(&subject);
        if let Some(planned) = treatment.planned {
            odd = true;
            match planned.disturbance {
                InjectedFault::Drop => {
                    self.did(planned, format!("dropped {subject}"));
                    if subject == self.request.answer() {
                        // What follows a response is only the end, and that would tell too much.
                        self.state = State::Lost;
                    }
                    return;
                }
                InjectedFault::Duplicate => {
                    self.did(planned, format!("sent {subject} twice"));
                    self.deliver(raw.clone(), &treatment, odd);
                }
                InjectedFault::Truncate => {
                    self.did(planned, format!("cut off the second half of {subject}"));
                    let half = [&raw[..raw.len() / 2], b"\n\n"].concat();
                    return self.deliver(half, &treatment, odd);
                }
                InjectedFault::Cut => {
                    self.did(planned, format!("broke the connection in the middle of {subject}"));
                    self.state = State::Ended(Some(broken_by_us("the connection closed in the middle of an event")));
                    self.deliver(raw[..raw.len() / 2].to_vec(), &treatment, odd);
                    return self.flush();
                }
                InjectedFault::ListChanges { count } => {
                    self.did(planned, format!("sent {count} notifications of changed tools before {subject}"));
                    let event = [b"event: message\ndata: ", LIST_CHANGED, b"\n\n"].concat();
                    for _ in 0..count {
                        self.deliver(event.clone(), &MessageFaults::default(), true);
                    }
                }
                InjectedFault::Buffer { bytes } => {
                    self.did(planned, format!("held back {subject} until there are {bytes} bytes"));
                    self.buffer.get_or_insert(Buffer { bytes: Vec::new(), size: bytes });
                }
                InjectedFault::Reset => {
                    self.did(planned, format!("broke the connection in place of {subject}"));
                    self.state = State::Ended(Some(broken_by_us("connection reset by peer")));
                    return self.flush();
                }
                InjectedFault::Reorder if self.held.is_none() => {
                    let passing = self.injector.passing(FaultDirection::Client);
                    self.held = Some(Held { raw, subject, planned, passing, until: Instant::now() + OVERTAKEN_WITHIN });
                    return;
                }
                _ => {}
            }
        }
        self.deliver(raw, &treatment, odd);
        if subject != Subject::Unknown {
            self.injector.pass(FaultDirection::Client);
        }
    }

    fn release(&mut self, overtaken: bool) {
        let Some(Held { raw, subject, planned, .. }) = self.held.take() else { return };
        match overtaken {
            true => self.did(planned, format!("let another message overtake {subject}")),
            false => drop(self.tap.note(format!("no message came that could overtake {subject}"))),
        }
        self.deliver(raw, &MessageFaults::default(), true);
    }

    fn treatment(&self, subject: &Subject) -> MessageFaults {
        let treatment = self.injector.treat(FaultDirection::Client, subject);
        if let Some(note) = self.injector.delayed(&treatment, subject) {
            self.tap.note(note);
        }
        treatment
    }

    fn did(&self, planned: PlannedFault, words: String) {
        self.tap.note(self.injector.did(planned, words));
    }

    fn deliver(&mut self, bytes: Vec<u8>, treatment: &MessageFaults, odd: bool) {
        if odd {
            self.tap.excuse(&bytes);
        }
        let pace = treatment.pace(bytes.len());
        self.push(bytes.into(), treatment.delay, pace);
    }

    fn plain(&mut self, bytes: Bytes) {
        self.push(bytes, Duration::ZERO, None);
    }

    fn push(&mut self, bytes: Bytes, delay: Duration, pace: Option<Pace>) {
        if let Some(buffer) = &mut self.buffer {
            buffer.bytes.extend_from_slice(&bytes);
            if buffer.bytes.len() >= buffer.size {
                self.flush();
            }
            return;
        }
        // One after the other: what was held back holds back what follows it.
        let earliest = self.ready.back().map_or_else(Instant::now, |chunk| chunk.due);
        self.ready.push_back(Chunk { bytes, due: earliest.max(Instant::now() + delay), pace });
    }

    fn flush(&mut self) {
        if let Some(Buffer { bytes, .. }) = self.buffer.take() {
            self.push(bytes.into(), Duration::ZERO, None);
        }
    }
}

async fn overtaken(held: Option<&mut Held>) {
    if let Some(held) = held {
        // The sender lives in the injector, which the body keeps.
        let _ = held.passing.changed().await;
    }
}

/// An end that no server requested, told as one.
fn broken_by_us(words: &str) -> Broken {
    format!("{words} (an injected fault)").into()
}
