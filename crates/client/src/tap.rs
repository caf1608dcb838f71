//! The tap: every byte of a session passes it on its way, below JSON, and is kept as a frame with its time.
//! Knows no messages.

use crate::abridged::abridged;
use crate::redaction::{Redactor, Tail};
use crate::secrets::SecretArguments;
use crate::transport::ConnectionTiming;
use mcproof_record::{Direction, ExchangeId, Frame, FrameBody, FrameId, Json, NOT_STORED, Raw, Transcript};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

/// Sees each frame as it is recorded, without secrets, also those that are later dropped.
pub type FrameObserver = Box<dyn Fn(&Frame) + Send + Sync>;

/// Finds the secrets in a frame that is about to be recorded.
pub(crate) type FindSecrets = fn(&FrameBody) -> Vec<String>;

/// Records frames. Clones share one transcript.
#[derive(Clone)]
pub struct Tap {
    shared: Arc<TapInner>,
    find_secrets: Option<FindSecrets>,
}

struct TapInner {
    start: Instant,
    state: Mutex<TapState>,
    observer: Option<FrameObserver>,
    bounds: TapBounds,
    pool: Option<TranscriptPool>,
    secrets: RwLock<Redactor>,
    /// What schemas say of arguments, if those are looked at.
    arguments: Mutex<Option<SecretArguments>>,
    /// What each stream of lines ended with last.
    tails: Mutex<[Tail; STREAMS]>,
    /// HTTP exchanges begun so far, on whatever connection.
    exchanges: AtomicU64,
    excused: Mutex<ExcusedFrames>,
    /// What it took to make the first connections.
    dialed: Mutex<Vec<ConnectionTiming>>,
    /// Whether anything was ever excused: most taps never look further.
    is_disturbed: AtomicBool,
}

/// What is odd because we made it so.
#[derive(Default)]
struct ExcusedFrames {
    expected: Vec<Vec<u8>>,
    frames: BTreeSet<FrameId>,
}

#[derive(Default)]
struct TapState {
    next: u64,
    /// Time of the newest frame.
    latest: Duration,
    first: Vec<Frame>,
    first_bytes: usize,
    /// After these, all but the output.
    last: Ring,
    /// What the process prints beside the protocol: a server that logs each request in a hundred lines is not to crowd out what it says.
    output: Ring,
    /// Frames that are missing before all of `last` and `output`.
    dropped: u64,
    /// The bound that the last of these went beyond.
    exceeded: usize,
    output_dropped: u64,
    /// The newest frame of these.
    last_output_dropped: Option<(FrameId, Duration)>,
}

/// The newest frames, in their order.
#[derive(Default)]
struct Ring {
    frames: VecDeque<Frame>,
    bytes: usize,
}

impl Ring {
    fn push(&mut self, frame: Frame) {
        self.bytes += size(&frame);
        self.frames.push_back(frame);
    }

    fn pop(&mut self) -> Option<Frame> {
        let old = self.frames.pop_front()?;
        self.bytes -= size(&old);
        Some(old)
    }

    fn frame(&self, id: FrameId) -> Option<&Frame> {
        self.frames.binary_search_by_key(&id, |frame| frame.id).ok().map(|index| &self.frames[index])
    }
}

impl TapState {
    /// Keeps a frame that is not one of the first, within these bytes, of which the output has a part. At least so many are kept all the same.
    /// Gives the bytes that are free again.
    fn keep(&mut self, frame: Frame, most: usize, least: usize) -> usize {
        /// The output has one byte in so many.
        const PART: usize = 16;
        let held = |state: &Self| state.last.bytes + state.output.bytes;
        let before = held(self) + size(&frame);
        if is_output(&frame) {
            self.output.push(frame);
            while self.output.bytes > most / PART
                && self.output.frames.len() > 1
                && let Some(old) = self.output.pop()
            {
                self.output_dropped += 1;
                self.last_output_dropped = Some((old.id, old.at));
            }
        } else {
            self.last.push(frame);
            while self.last.bytes > most
                && self.last.frames.len() > least
                && let Some(old) = self.last.pop()
            {
                self.dropped += 1;
                self.exceeded = most;
                // What is missing up to here is told in one place.
                while self.output.frames.front().is_some_and(|output| output.id < old.id) && self.output.pop().is_some() {
                    self.dropped += 1;
                }
                if self.last_output_dropped.take_if(|(id, _)| *id < old.id).is_some() {
                    self.dropped += std::mem::take(&mut self.output_dropped);
                }
            }
        }
        before - held(self)
    }

    /// After the first ones, and after those that are missing.
    fn rest(&self) -> Vec<&Frame> {
        let mut rest: Vec<&Frame> = self.last.frames.iter().chain(&self.output.frames).collect();
        rest.sort_by_key(|frame| frame.id);
        rest
    }
}

/// What a process prints beside the protocol.
fn is_output(frame: &Frame) -> bool {
    matches!(frame.body, FrameBody::Stderr { .. } | FrameBody::Stdout { .. })
}

/// What a tap keeps. The first frames (the handshake) and the newest are worth most; the middle of a flood is counted.
#[derive(Clone, Copy, Debug)]
pub struct TapBounds {
    /// Frames kept from the start of the session, as long as they are small.
    pub first: usize,
    /// Bytes of the newest frames kept after those; the first ones may take a quarter of that besides.
    pub bytes: usize,
}

/// What several taps keep together. One that is used up leaves each of them a little.
#[derive(Clone, Debug)]
pub struct TranscriptPool {
    bytes: usize,
    used: Arc<AtomicUsize>,
}

impl TranscriptPool {
    /// `bytes`: what all of them keep together, counted like that of one.
    pub fn of(bytes: usize) -> Self {
        Self { bytes, used: Arc::default() }
    }

    fn is_used_up(&self) -> bool {
        self.used.load(Ordering::Relaxed) > self.bytes
    }
}

/// What a tap keeps of a pool that is used up: enough for an ordinary conversation.
const LEAST_KEPT: usize = 512 << 10;

impl Default for TapBounds {
    fn default() -> Self {
        Self { first: 64, bytes: 16 << 20 }
    }
}

/// Rough cost of a frame besides its bytes, for the frame and for what whoever reads it makes of it, so that a flood of small ones is
/// bounded as well.
const FRAME_OVERHEAD: usize = 1024;

impl Tap {
    pub fn new() -> Self {
        Self::with(TapBounds::default(), Vec::new(), None)
    }

    /// `secrets` are replaced before anything is recorded; `observer` is called for each frame.
    pub fn with(bounds: TapBounds, secrets: Vec<String>, observer: Option<FrameObserver>) -> Self {
        Self::made(bounds, secrets, observer, None)
    }

    /// One that shares a bound with others, and keeps only the beginning of long texts.
    pub fn of_pool(bounds: TapBounds, pool: TranscriptPool, secrets: Vec<String>, observer: Option<FrameObserver>) -> Self {
        Self::made(bounds, secrets, observer, Some(pool))
    }

    fn made(bounds: TapBounds, secrets: Vec<String>, observer: Option<FrameObserver>, pool: Option<TranscriptPool>) -> Self {
        let shared = TapInner {
            start: Instant::now(),
            state: Mutex::default(),
            observer,
            bounds,
            pool,
            secrets: RwLock::default(),
            arguments: Mutex::default(),
            tails: Mutex::default(),
            exchanges: AtomicU64::new(0),
            excused: Mutex::default(),
            dialed: Mutex::default(),
            is_disturbed: AtomicBool::new(false),
        };
        let tap = Self { shared: Arc::new(shared), find_secrets: None };
        secrets.iter().for_each(|secret| tap.keep_secret(secret));
        tap
    }

    /// From now on this is replaced before anything is recorded, in whatever form it comes, unless it is too short to be one.
    pub fn keep_secret(&self, secret: &str) {
        self.shared.secrets.write().unwrap_or_else(PoisonError::into_inner).add(secret);
    }

    /// From now on, arguments that the schema of their tool calls a password (`format: password`, `writeOnly`) are replaced before anything
    /// is recorded, if the schema has come before.
    pub fn keep_secret_arguments(&self) {
        self.arguments().get_or_insert_default();
    }

    fn arguments(&self) -> MutexGuard<'_, Option<SecretArguments>> {
        self.shared.arguments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on also those that another one knows by now.
    pub fn keep_secrets_of(&self, other: &Self) {
        let secrets = other.secrets().secrets().to_vec();
        secrets.iter().for_each(|secret| self.keep_secret(secret));
    }

    fn secrets(&self) -> RwLockReadGuard<'_, Redactor> {
        self.shared.secrets.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same transcript, for frames that may tell secrets which are not known before they are seen.
    pub(crate) fn finding(&self, find_secrets: FindSecrets) -> Self {
        Self { shared: Arc::clone(&self.shared), find_secrets: Some(find_secrets) }
    }

    /// The same transcript, for HTTP traffic between other programs: credentials in it are redacted as they are seen.
    pub fn finding_credentials(&self) -> Self {
        self.finding(crate::secrets::credentials_in)
    }

    /// A number for an HTTP exchange, unique in the transcript.
    pub fn next_exchange(&self) -> ExchangeId {
        ExchangeId(self.shared.exchanges.fetch_add(1, Ordering::Relaxed))
    }

    /// A message that is about to come with these bytes is odd because an injected fault made it so.
    pub(crate) fn excuse(&self, bytes: &[u8]) {
        self.shared.is_disturbed.store(true, Ordering::Relaxed);
        let mut excused = self.excused();
        if excused.expected.len() < MAX_EXPECTED {
            excused.expected.push(bytes.to_vec());
        }
    }

    /// Marks a frame that is there as our own doing, not the server's.
    pub fn excuse_frame(&self, frame: FrameId) {
        self.shared.is_disturbed.store(true, Ordering::Relaxed);
        self.excused().frames.insert(frame);
    }

    pub(crate) fn is_excused(&self, frame: FrameId) -> bool {
        self.is_disturbed() && self.excused().frames.contains(&frame)
    }

    /// Whether an injected fault has hit anything that came.
    pub(crate) fn is_disturbed(&self) -> bool {
        self.shared.is_disturbed.load(Ordering::Relaxed)
    }

    fn takes_excuse(&self, body: &FrameBody) -> bool {
        let (FrameBody::Line { bytes, .. } | FrameBody::HttpBody { bytes, .. } | FrameBody::SseEvent { bytes, .. }) = body else {
            return false;
        };
        let mut excused = self.excused();
        let found = excused.expected.iter().position(|expected| expected == bytes.as_bytes());
        found.map(|found| excused.expected.swap_remove(found)).is_some()
    }

    fn excused(&self) -> MutexGuard<'_, ExcusedFrames> {
        self.shared.excused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was recorded elsewhere, without the secrets that are known here by now.
    pub fn redacted_transcript(&self, mut transcript: Transcript) -> Transcript {
        let (secrets, mut tails) = (self.secrets(), Default::default());
        let frames = std::mem::take(&mut transcript.frames);
        let clean = |frame: Frame| Frame { body: redact(frame.body, frame.direction, &secrets, &mut tails), ..frame };
        transcript.frames = frames.into_iter().map(clean).collect();
        transcript
    }

    /// A text without the secrets that are known by now.
    pub fn redacted(&self, text: String) -> String {
        without(text, &self.secrets())
    }

    /// A value without the secrets that are known by now.
    pub fn redacted_value(&self, mut value: Value) -> Value {
        let secrets = self.secrets();
        if !secrets.is_empty() {
            clean(&mut value, &secrets);
        }
        value
    }

    /// The same for JSON, which is only read if there seems to be a secret in it.
    pub fn redacted_json(&self, json: Json) -> Json {
        let secrets = self.secrets();
        match json {
            json if secrets.is_empty() => json,
            Json::Unread(text) if matches!(secrets.bytes(text.get().as_bytes()), Cow::Borrowed(_)) => Json::Unread(text),
            json => {
                let mut value = json.into_inner();
                clean(&mut value, &secrets);
                Json::Read(value)
            }
        }
    }

    /// Whether there is anything to redact.
    pub fn knows_secrets(&self) -> bool {
        !self.secrets().is_empty()
    }

    pub fn record(&self, direction: Direction, body: FrameBody) -> FrameId {
        self.record_seen(None, direction, body)
    }

    /// Records what was seen a moment ago, by the clock of [`Tap::elapsed`]. Frames come in the order in which they are recorded: no
    /// time is earlier than that of the frame before.
    pub fn record_at(&self, at: Duration, direction: Direction, body: FrameBody) -> FrameId {
        self.record_seen(Some(at), direction, body)
    }

    fn record_seen(&self, seen_at: Option<Duration>, direction: Direction, body: FrameBody) -> FrameId {
        if let Some(find_secrets) = self.find_secrets {
            find_secrets(&body).iter().for_each(|secret| self.keep_secret(secret));
        }
        let secret_arguments = self.arguments().as_mut().map(|arguments| arguments.find(direction, &body));
        secret_arguments.iter().flatten().for_each(|secret| self.keep_secret(secret));
        let is_excused = self.is_disturbed() && self.takes_excuse(&body);
        let secrets = self.secrets();
        let body = if secrets.is_empty() {
            body
        } else {
            redact(body, direction, &secrets, &mut self.shared.tails.lock().unwrap_or_else(PoisonError::into_inner))
        };
        drop(secrets);
        let body = if self.shared.pool.is_some() { abridged(body, direction) } else { body };
        let mut state = self.state();
        // The clock is read under the lock: frames are ordered by id and by time alike.
        let at = seen_at.unwrap_or_else(|| self.shared.start.elapsed()).max(state.latest);
        let frame = Frame { id: FrameId(state.next), at, direction, body };
        state.latest = at;
        state.next += 1;
        if let Some(observer) = &self.shared.observer {
            observer(&frame);
        }
        let id = frame.id;
        if is_excused {
            self.excuse_frame(id);
        }
        let bounds = self.shared.bounds;
        let begins = state.last.frames.is_empty() && state.output.frames.is_empty() && state.first.len() < bounds.first;
        let taken = size(&frame);
        if let Some(pool) = &self.shared.pool {
            pool.used.fetch_add(taken, Ordering::Relaxed);
        }
        if begins && state.first_bytes + taken <= (bounds.bytes / 4).min(self.most()) {
            state.first_bytes += taken;
            state.first.push(frame);
        } else {
            // Of one transcript the newest frame is always kept. Of many each would keep a large one.
            let least = usize::from(!self.is_pool_used_up());
            let freed = state.keep(frame, self.most(), least);
            if let Some(pool) = &self.shared.pool {
                pool.used.fetch_sub(freed, Ordering::Relaxed);
            }
        }
        id
    }

    /// The bytes that are kept besides the first ones.
    fn most(&self) -> usize {
        let bytes = self.shared.bounds.bytes;
        if self.is_pool_used_up() { bytes.min(LEAST_KEPT) } else { bytes }
    }

    fn is_pool_used_up(&self) -> bool {
        self.shared.pool.as_ref().is_some_and(TranscriptPool::is_used_up)
    }

    /// Since the transcript began: the clock of its frames.
    pub fn elapsed(&self) -> Duration {
        self.shared.start.elapsed()
    }

    /// What it took to make the connections, in the order in which that was over. Of many only the first are there.
    pub fn connections(&self) -> Vec<ConnectionTiming> {
        self.shared.dialed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn keep_dialed(&self, dialed: ConnectionTiming) {
        let mut kept = self.shared.dialed.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MAX_CONNECTION_TIMINGS {
            kept.push(dialed);
        }
    }

    /// Something about the connection that is no bytes.
    pub fn note(&self, text: impl Into<String>) -> FrameId {
        self.record(Direction::Local, FrameBody::Note { text: text.into() })
    }

    /// What is kept takes so many bytes; everything, if there is no more room in the pool.
    pub fn kept_bytes(&self) -> usize {
        if self.is_pool_used_up() {
            return usize::MAX;
        }
        let state = self.state();
        state.first_bytes + state.last.bytes + state.output.bytes
    }

    /// The id that the next frame will have.
    pub fn mark(&self) -> FrameId {
        FrameId(self.state().next)
    }

    /// One frame, if it is kept.
    pub fn frame(&self, id: FrameId) -> Option<Frame> {
        let state = self.state();
        let first = state.first.binary_search_by_key(&id, |frame| frame.id).ok().map(|index| &state.first[index]);
        first.or_else(|| state.last.frame(id)).or_else(|| state.output.frame(id)).cloned()
    }

    /// Looks at the frames that are kept, without a copy of them. Nothing is recorded meanwhile.
    pub fn look<T>(&self, at: impl FnOnce(&mut dyn Iterator<Item = &Frame>) -> T) -> T {
        let state = self.state();
        at(&mut state.first.iter().chain(state.rest()))
    }

    /// Everything that is kept so far. Where frames are missing, a note in their place says how many.
    pub fn transcript(&self) -> Transcript {
        let state = self.state();
        let rest = state.rest();
        let gap = (state.dropped > 0).then(|| {
            let (end, at) = rest.first().map_or((state.next, state.latest), |next| (next.id.0, next.at));
            let text = format!("{} {NOT_STORED}: the limit is {} bytes", state.dropped, state.exceeded);
            // The place and the number of the last one that is missing.
            Frame { id: FrameId(end - 1), at, direction: Direction::Local, body: FrameBody::Note { text } }
        });
        let mut frames: Vec<Frame> = state.first.iter().chain(&gap).chain(rest).cloned().collect();
        if let Some((id, at)) = state.last_output_dropped {
            let text = format!("{} lines that the server printed on stderr or stdout were not kept", state.output_dropped);
            let place = frames.partition_point(|frame| frame.id < id);
            frames.insert(place, Frame { id, at, direction: Direction::Local, body: FrameBody::Note { text } });
        }
        Transcript { frames, dropped: state.dropped }
    }

    /// The frames from this one on, without a look at the earlier ones. `dropped` is 0 if all of them are kept but output of the process.
    pub fn transcript_since(&self, since: FrameId) -> Transcript {
        let state = self.state();
        let first = state.first.partition_point(|frame| frame.id < since);
        let newest = |ring: &Ring| ring.frames.partition_point(|frame| frame.id < since);
        let (last, output) = (newest(&state.last), newest(&state.output));
        let rest = state.last.frames.range(last..).chain(state.output.frames.range(output..));
        let mut frames: Vec<Frame> = state.first[first..].iter().chain(rest).cloned().collect();
        frames.sort_by_key(|frame| frame.id);
        // All that is missing is older than what is left.
        let is_whole = state.last.frames.front().is_some_and(|oldest| oldest.id <= since);
        let dropped = if is_whole { 0 } else { state.dropped };
        Transcript { frames, dropped }
    }

    fn state(&self) -> MutexGuard<'_, TapState> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Tap {
    fn default() -> Self {
        Self::new()
    }
}

fn size(frame: &Frame) -> usize {
    let bytes = match &frame.body {
        FrameBody::Line { bytes, .. } | FrameBody::Stderr { bytes } | FrameBody::Stdout { bytes } | FrameBody::HttpBody { bytes, .. } => {
            bytes.len()
        }
        FrameBody::SseEvent { bytes, event, id, data, .. } => {
            let field = |field: &Option<String>| field.as_ref().map_or(0, String::len);
            let data = data.as_ref().filter(|data| !data.shares_memory(bytes));
            bytes.len() + data.map_or(0, Raw::len) + field(event) + field(id)
        }
        FrameBody::Note { text } | FrameBody::HttpEnd { error: Some(text), .. } => text.len(),
        FrameBody::HttpRequest { body, headers, url, .. } => body.len() + url.len() + headers_size(headers),
        FrameBody::HttpResponse { headers, .. } => headers_size(headers),
        _ => 0,
    };
    bytes + FRAME_OVERHEAD
}

fn headers_size(headers: &[(String, String)]) -> usize {
    headers.iter().map(|(name, value)| name.len() + value.len() + 48).sum()
}

/// Connections whose making is remembered: whoever asks, asks about the first.
const MAX_CONNECTION_TIMINGS: usize = 32;

/// Messages that were disturbed and have not come yet.
const MAX_EXPECTED: usize = 1000;

/// Streams of lines: messages, stdout that is none, stderr.
const STREAMS: usize = 3;

fn without(text: String, secrets: &Redactor) -> String {
    let clean = changed(secrets.text(&text));
    clean.unwrap_or(text)
}

/// On bytes, because a secret in a frame that is no UTF-8 is a secret all the same.
fn without_raw(raw: Raw, secrets: &Redactor) -> Raw {
    let clean = changed(secrets.bytes(raw.as_bytes()));
    clean.map_or(raw, |clean| clean.as_slice().into())
}

/// A line, in which a secret may go on that began in the line before.
fn without_line(raw: Raw, secrets: &Redactor, tail: &mut Tail) -> Raw {
    let clean = changed(secrets.piece(raw.as_bytes(), tail));
    clean.map_or(raw, |clean| clean.as_slice().into())
}

fn changed<T: ToOwned + ?Sized>(text: Cow<'_, T>) -> Option<T::Owned> {
    match text {
        Cow::Borrowed(_) => None,
        Cow::Owned(changed) => Some(changed),
    }
}

fn clean(value: &mut Value, secrets: &Redactor) {
    match value {
        Value::String(text) => *text = without(std::mem::take(text), secrets),
        Value::Array(items) => items.iter_mut().for_each(|item| clean(item, secrets)),
        Value::Object(members) => {
            for (name, mut member) in std::mem::take(members) {
                clean(&mut member, secrets);
                members.insert(without(name, secrets), member);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn redact(body: FrameBody, direction: Direction, secrets: &Redactor, tails: &mut [Tail; STREAMS]) -> FrameBody {
    let text = |value: String| without(value, secrets);
    let raw = |value: Raw| without_raw(value, secrets);
    let pairs = |values: Vec<(String, String)>| values.into_iter().map(|(name, value)| (name, text(value))).collect();
    match body {
        FrameBody::Line { bytes, unterminated } if direction == Direction::FromServer => {
            FrameBody::Line { bytes: without_line(bytes, secrets, &mut tails[0]), unterminated }
        }
        FrameBody::Line { bytes, unterminated } => FrameBody::Line { bytes: raw(bytes), unterminated },
        FrameBody::Stdout { bytes } => FrameBody::Stdout { bytes: without_line(bytes, secrets, &mut tails[1]) },
        FrameBody::Stderr { bytes } => FrameBody::Stderr { bytes: without_line(bytes, secrets, &mut tails[2]) },
        FrameBody::HttpRequest { exchange, method, url, headers, body } => {
            FrameBody::HttpRequest { exchange, method, url: text(url), headers: pairs(headers), body: raw(body) }
        }
        FrameBody::HttpResponse { exchange, status, headers } => FrameBody::HttpResponse { exchange, status, headers: pairs(headers) },
        FrameBody::HttpBody { exchange, bytes } => FrameBody::HttpBody { exchange, bytes: raw(bytes) },
        FrameBody::SseEvent { exchange, bytes, event, id, data } => {
            FrameBody::SseEvent { exchange, bytes: raw(bytes), event: event.map(text), id: id.map(text), data: data.map(raw) }
        }
        FrameBody::HttpEnd { exchange, error } => FrameBody::HttpEnd { exchange, error: error.map(text) },
        FrameBody::Spawned { pid, command } => FrameBody::Spawned { pid, command: command.into_iter().map(text).collect() },
        FrameBody::Note { text: note } => FrameBody::Note { text: text(note) },
        other @ (FrameBody::Exited { .. } | FrameBody::Closed { .. } | FrameBody::Signalled { .. }) => other,
    }
}

/// Takes secrets out of frames that were recorded earlier, in the order in which they were.
pub struct FrameRedactor {
    secrets: Redactor,
    tails: [Tail; STREAMS],
}

impl FrameRedactor {
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        Self { secrets: Redactor::new(secrets), tails: Default::default() }
    }

    pub fn frame(&mut self, frame: Frame) -> Frame {
        Frame { body: redact(frame.body, frame.direction, &self.secrets, &mut self.tails), ..frame }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redaction::REDACTED;

    fn line(text: &str) -> FrameBody {
        FrameBody::Line { bytes: text.into(), unterminated: false }
    }

    #[test]
    fn a_flood_keeps_the_first_and_the_last_frames_and_counts_the_rest() {
        let tap = Tap::with(TapBounds { first: 2, bytes: 8 * (FRAME_OVERHEAD + 1) }, vec![], None);
        for _ in 0..100 {
            tap.record(Direction::FromServer, line("x"));
        }
        let transcript = tap.transcript();
        let ids: Vec<u64> = transcript.frames.iter().map(|frame| frame.id.0).collect();
        assert_eq!(ids, [0, 1, 91, 92, 93, 94, 95, 96, 97, 98, 99]);
        assert_eq!(transcript.dropped, 90);
        let FrameBody::Note { text } = &transcript.frames[2].body else { panic!("{:?}", transcript.frames[2]) };
        let bound = 8 * (FRAME_OVERHEAD + 1);
        assert_eq!(*text, format!("90 earlier frames were counted but not stored: the limit is {bound} bytes"));
        let small = Tap::with(TapBounds { first: 2, bytes: 1 << 20 }, vec![], None);
        for _ in 0..100 {
            small.record(Direction::FromServer, line("x"));
        }
        assert_eq!((small.transcript().frames.len(), small.transcript().dropped), (100, 0));
    }

    #[test]
    fn much_output_beside_the_protocol_crowds_out_no_messages() {
        let tap = Tap::with(TapBounds { first: 2, bytes: 1 << 20 }, vec![], None);
        for _ in 0..100 {
            tap.record(Direction::FromServer, line("x"));
            for _ in 0..100 {
                tap.record(Direction::FromServer, FrameBody::Stderr { bytes: "DEBUG".into() });
            }
        }
        let Transcript { frames, dropped } = tap.transcript();
        let lines = frames.iter().filter(|frame| matches!(frame.body, FrameBody::Line { .. })).count();
        let output = frames.iter().filter(|frame| is_output(frame)).count();
        let told = frames.iter().find_map(|frame| if let FrameBody::Note { text } = &frame.body { Some(text.clone()) } else { None });
        assert_eq!((lines, dropped), (100, 0));
        assert!((30..=(1 << 16) / FRAME_OVERHEAD).contains(&output), "{output}");
        assert_eq!(told, Some(format!("{} lines that the server printed on stderr or stdout were not kept", 10_000 - output)));
        assert!(frames.is_sorted_by(|one, next| one.id < next.id));
        assert!(matches!(frames.last(), Some(Frame { body: FrameBody::Stderr { .. }, id: FrameId(10_099), .. })));
    }

    #[test]
    fn what_is_missing_of_messages_and_output_is_told_in_one_place() {
        let tap = Tap::with(TapBounds { first: 2, bytes: 64 << 10 }, vec![], None);
        for _ in 0..200 {
            tap.record(Direction::FromServer, line("x"));
            tap.record(Direction::FromServer, FrameBody::Stderr { bytes: "DEBUG".into() });
        }
        for _ in 0..200 {
            tap.record(Direction::FromServer, line("x"));
        }
        let Transcript { frames, dropped } = tap.transcript();
        let kept = frames.iter().filter(|frame| !matches!(frame.body, FrameBody::Note { .. })).count();
        assert_eq!((kept as u64 + dropped, frames.len()), (600, kept + 1));
        assert!(frames.is_sorted_by(|one, next| one.id < next.id));
        assert!(matches!(&frames[2].body, FrameBody::Note { text } if text.contains(NOT_STORED)), "{:?}", frames[2]);
    }

    #[test]
    fn taps_of_a_pool_that_is_used_up_keep_no_large_frame() {
        let (bounds, pool) = (TapBounds { first: 2, bytes: 16 << 20 }, TranscriptPool::of(8 << 20));
        let large = "x".repeat(3 << 20);
        let kept = (0..5).map(|_| {
            let tap = Tap::of_pool(bounds, pool.clone(), vec![], None);
            tap.record(Direction::ToServer, line("asked"));
            tap.record(Direction::FromServer, line("small"));
            tap.record(Direction::FromServer, line(&large));
            let Transcript { frames, dropped } = tap.transcript();
            let texts = frames.into_iter().map(|frame| match frame.body {
                FrameBody::Line { bytes, .. } => bytes.len().to_string(),
                FrameBody::Note { text } => text,
                other => panic!("{other:?}"),
            });
            (texts.collect::<Vec<_>>(), dropped)
        });
        let whole = (vec!["5".to_owned(), "5".to_owned(), large.len().to_string()], 0);
        let text = format!("1 {NOT_STORED}: the limit is {LEAST_KEPT} bytes");
        let cut = (vec!["5".to_owned(), "5".to_owned(), text], 1);
        assert_eq!(kept.collect::<Vec<_>>(), [whole.clone(), whole, cut.clone(), cut.clone(), cut]);
    }

    #[test]
    fn large_frames_at_the_start_are_bounded_as_well() {
        let tap = Tap::with(TapBounds { first: 64, bytes: 40_000 }, vec![], None);
        let large = "x".repeat(10_000);
        for _ in 0..64 {
            tap.record(Direction::FromServer, line("small"));
            tap.record(Direction::FromServer, line(&large));
        }
        let transcript = tap.transcript();
        let ids: Vec<u64> = transcript.frames.iter().map(|frame| frame.id.0).collect();
        assert_eq!(ids, [0, 121, 122, 123, 124, 125, 126, 127]);
        assert_eq!(transcript.dropped, 121);
    }

    #[test]
    fn secrets_never_reach_a_frame() {
        let tap = Tap::with(TapBounds::default(), vec!["hunter2".into()], None);
        tap.record(Direction::ToServer, line(r#"{"token":"hunter2"}"#));
        let exchange = ExchangeId(0);
        let headers = vec![("authorization".into(), "Bearer hunter2".into())];
        tap.record(
            Direction::ToServer,
            FrameBody::HttpRequest { exchange, method: "POST".into(), url: "http://h/?k=hunter2".into(), headers, body: "hunter2".into() },
        );
        tap.record(
            Direction::FromServer,
            FrameBody::SseEvent { exchange, bytes: "data: hunter2\n\n".into(), event: None, id: None, data: Some("hunter2".into()) },
        );
        let text = serde_json::to_string(&tap.transcript()).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
        assert_eq!(text.matches(REDACTED).count(), 6);
    }

    #[test]
    fn a_secret_that_is_learned_on_the_way_is_kept_from_then_on() {
        let find: FindSecrets = |body| match body {
            FrameBody::Note { text } => text.split(' ').filter_map(|word| word.strip_prefix("token=")).map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        let tap = Tap::new();
        tap.keep_secret("abc");
        tap.keep_secret("inner");
        tap.keep_secret("outer-inner-outer");
        tap.finding(find).note("token=hunter2 abc");
        tap.note("a hunter2 outer-inner-outer inner");
        let bytes = [b"\xff hunter2 hunter2 \xff".as_slice(), b"hunter"].concat();
        tap.record(Direction::FromServer, FrameBody::Line { bytes: bytes.as_slice().into(), unterminated: false });
        let frames = tap.transcript().frames;
        let FrameBody::Note { text } = &frames[0].body else { panic!() };
        assert_eq!(text, "token=[redacted] abc");
        let FrameBody::Note { text } = &frames[1].body else { panic!() };
        assert_eq!(text, "a [redacted] [redacted] [redacted]");
        let FrameBody::Line { bytes, .. } = &frames[2].body else { panic!() };
        assert_eq!(bytes.as_bytes(), b"\xff [redacted] [redacted] \xff[redacted]");
    }

    #[test]
    fn a_secret_that_goes_on_in_the_next_line_is_hidden_there_as_well() {
        let tap = Tap::with(TapBounds::default(), vec!["correct horse battery".into()], None);
        for piece in ["said correct hor", "se batt", "ery and more", "se batt"] {
            tap.record(Direction::FromServer, FrameBody::Stderr { bytes: piece.into() });
            tap.record(Direction::Local, FrameBody::Note { text: "between".into() });
        }
        let frames = tap.transcript().frames;
        let lines: Vec<String> = frames
            .into_iter()
            .filter_map(|frame| if let FrameBody::Stderr { bytes } = frame.body { Some(bytes.to_text().into_owned()) } else { None })
            .collect();
        assert_eq!(lines, ["said [redacted]", "[redacted]", "[redacted] and more", "se batt"]);
    }

    #[test]
    fn a_value_is_cleaned_with_its_names() {
        let tap = Tap::with(TapBounds::default(), vec!["hunter2".into()], None);
        let value = serde_json::json!({ "aHVudGVyMg==": ["Hunter2", 7, { "a": "%68unter2" }] });
        let expected = serde_json::json!({ "[redacted]": ["[redacted]", 7, { "a": "[redacted]" }] });
        assert_eq!(tap.redacted_value(value), expected);
    }
}
