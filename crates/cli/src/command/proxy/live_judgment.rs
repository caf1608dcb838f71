//! Judges the traffic of a proxy while it comes, on a thread of its own, by the rules that hold for any client: whoever views the trace sees
//! what is wrong when it happens. What there is no time for is left to the judgment at the end. Knows frames and rules, no transports.

use crate::recording::names_endpoint;
use mcproof_client::transport::{DELAY_NOTE, FAULT_NOTE};
use mcproof_record::clients::ClientStream;
use mcproof_record::{Conversation, Finding, Frame, FrameBody, FrameId, Opened, Transcript};
use mcproof_relay::proxy::{CLIENT_LEFT, UNREAD_NOTE};
use mcproof_rules::{Tester, TrafficScope, errors_of_traffic};
use mcproof_trace::calls::{CallKind, CallTracker};
use mcproof_trace::{Mark, MarkBody, SessionKey};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Frames that may wait. Of more, and of larger ones, nothing is judged here: memory is bounded, and nobody waits for a rule.
const QUEUE: usize = 64;
const LARGEST: usize = 256 << 10;
/// Frames of a client that are kept from its start, with its handshake, and of the newest ones, with the bytes of these.
const MOST_OPENING: usize = 16;
const MOST_NEW: usize = 300;
const MOST_BYTES: usize = 8 << 20;
/// Clients of a session that are judged; of more, the first ones are forgotten.
const MOST_CLIENTS: usize = 64;
/// Findings of a session that are marked, each of them once.
const MOST_FOUND: usize = 50;
/// What comes at once is judged together: until nothing came for so long, or so much time has passed.
const QUIET: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_millis(500);
/// What the last judgment may take, and how often it is asked for while the queue is full.
const LAST: Duration = Duration::from_secs(2);
const ASK_AGAIN: Duration = Duration::from_millis(10);

/// Rules with what they said.
pub(super) type Told = BTreeSet<(String, String)>;

/// The thread that judges. It ends with [`LiveJudge::finish`], or when nothing more can come.
pub(super) struct LiveJudge {
    queue: SyncSender<Seen>,
    thread: thread::JoinHandle<()>,
}

enum Seen {
    Frame {
        session: SessionKey,
        frame: Frame,
        /// Frames before it are missing.
        follows_gap: bool,
    },
    Over(SyncSender<Told>),
}

impl LiveJudge {
    /// `tell` has what is new in a session, as a mark of the trace, and with what to do about it if no session had it before. `None` where
    /// there is no thread left.
    pub(super) fn start(transport: String, tell: impl Fn(Mark, Option<&Finding>) + Send + 'static) -> Option<Self> {
        let (queue, seen) = sync_channel(QUEUE);
        let thread = thread::Builder::new().name("judge".into()).spawn(move || judge_all(&seen, &transport, &tell)).ok()?;
        Some(Self { queue, thread })
    }

    /// What hands on the frames of a session.
    pub(super) fn watcher(&self, session: SessionKey) -> impl Fn(&Frame) + Send + Sync + use<> {
        let (queue, has_gap) = (self.queue.clone(), AtomicBool::new(false));
        move |frame: &Frame| {
            let Some(length) = length(frame) else { return };
            let is_lost = length > LARGEST || {
                let follows_gap = has_gap.load(Ordering::Relaxed);
                queue.try_send(Seen::Frame { session, frame: frame.clone(), follows_gap }).is_err()
            };
            has_gap.store(is_lost, Ordering::Relaxed);
        }
    }

    /// Judges what is left, and gives all that was told.
    pub(super) fn finish(self) -> Told {
        let (over, done) = sync_channel(1);
        let (began, mut asked) = (Instant::now(), Seen::Over(over));
        // Whoever prints a finding may be held up for as long as nobody reads it.
        while let Err(refused) = self.queue.try_send(asked) {
            match refused {
                TrySendError::Full(again) if began.elapsed() < LAST => asked = again,
                _ => return Told::new(),
            }
            thread::sleep(ASK_AGAIN);
        }
        let Ok(told) = done.recv_timeout(LAST.saturating_sub(began.elapsed())) else { return Told::new() };
        // It has nothing more to do.
        drop(self.thread.join());
        told
    }
}

/// Bytes of what a rule may look at.
fn length(frame: &Frame) -> Option<usize> {
    match &frame.body {
        FrameBody::Line { bytes, .. } | FrameBody::HttpBody { bytes, .. } | FrameBody::SseEvent { bytes, .. } => Some(bytes.len()),
        FrameBody::HttpRequest { body, .. } => Some(body.len()),
        FrameBody::HttpResponse { .. } | FrameBody::HttpEnd { .. } | FrameBody::Note { .. } => Some(0),
        _ => None,
    }
}

fn judge_all(seen: &Receiver<Seen>, transport: &str, tell: &dyn Fn(Mark, Option<&Finding>)) {
    let mut sessions: BTreeMap<SessionKey, Watched> = BTreeMap::new();
    let (mut told, mut over) = (Told::new(), None);
    while over.is_none()
        && let Ok(first) = seen.recv()
    {
        let (began, mut next) = (Instant::now(), Some(first));
        while let Some(seen_now) = next {
            match seen_now {
                Seen::Frame { session, frame, follows_gap } => sessions.entry(session).or_default().take(frame, follows_gap),
                Seen::Over(done) => over = Some(done),
            }
            let waits = over.is_none() && began.elapsed() < LONGEST;
            next = waits.then(|| seen.recv_timeout(QUIET).ok()).flatten();
        }
        for (session, watched) in &mut sessions {
            for (rule, finding, at) in watched.judge(transport) {
                let is_new = told.insert((rule.clone(), finding.message.clone()));
                let frame = finding.frames.iter().max().copied();
                let body = MarkBody::Finding { rule, severity: finding.severity, message: finding.message.clone(), frame };
                tell(Mark { session: *session, at, body }, is_new.then_some(&finding));
            }
        }
    }
    if let Some(over) = over {
        // Whoever asked may have given up.
        drop(over.try_send(told));
    }
}

/// A session: one process, or all that is sent to one URL.
#[derive(Default)]
struct Watched {
    clients: ClientStream,
    parts: BTreeMap<usize, Part>,
    /// What comes after a fault may follow from it, and what could not be read cannot be judged.
    is_disturbed: bool,
    /// What was found, so that what repeats is marked once, and hides nothing else.
    marked: Told,
}

impl Watched {
    fn take(&mut self, frame: Frame, follows_gap: bool) {
        if follows_gap {
            self.parts.values_mut().for_each(Part::forget);
        }
        if let FrameBody::Note { text } = &frame.body {
            self.is_disturbed |= text.starts_with(UNREAD_NOTE) || (text.starts_with(FAULT_NOTE) && !text.starts_with(DELAY_NOTE));
        }
        if self.is_disturbed || self.marked.len() >= MOST_FOUND {
            return self.parts.clear();
        }
        for (client, frame) in self.clients.feed(frame) {
            self.parts.entry(client.unwrap_or_default()).or_default().take(frame);
        }
        if self.parts.len() > MOST_CLIENTS {
            self.parts.pop_first();
        }
    }

    /// What was not found before.
    fn judge(&mut self, transport: &str) -> Vec<(String, Finding, Duration)> {
        let mut found: Vec<_> = self.parts.values_mut().filter_map(|part| part.judge(transport)).flatten().collect();
        found.retain(|(rule, finding, _)| self.marked.insert((rule.clone(), finding.message.clone())));
        found
    }
}

/// What is kept of one client.
#[derive(Default)]
struct Part {
    tracker: CallTracker,
    opening: Vec<Frame>,
    /// Since the oldest request without a response.
    newest: Vec<Frame>,
    /// Of the newest ones.
    bytes: usize,
    /// The first frame that was not judged.
    since: u64,
    /// The last one that came.
    last: u64,
}

/// Of the tracker of one client.
const SESSION: SessionKey = SessionKey(1);

impl Part {
    fn take(&mut self, frame: Frame) {
        self.tracker.feed(SESSION, &frame);
        self.last = frame.id.0;
        if self.opening.len() < MOST_OPENING {
            return self.opening.push(frame);
        }
        self.bytes += length(&frame).unwrap_or_default();
        self.newest.push(frame);
        if self.bytes > MOST_BYTES {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.newest.clear();
        self.bytes = 0;
    }

    /// What is wrong with the newest frames; nothing before the handshake.
    fn judge(&mut self, transport: &str) -> Option<Vec<(String, Finding, Duration)>> {
        if self.last < self.since || self.opening.is_empty() {
            return None;
        }
        let revision = self.tracker.facts(SESSION)?.revision.clone()?;
        let mut frames: Vec<Frame> = self.opening.iter().chain(&self.newest).cloned().collect();
        // A client may leave whenever it wants.
        frames.retain(|frame| !matches!(&frame.body, FrameBody::HttpEnd { error: Some(error), .. } if error == CLIENT_LEFT));
        let transport = if frames.iter().any(names_endpoint) { "sse" } else { transport };
        let conversation = Conversation {
            name: "proxy".into(),
            transport: transport.to_owned(),
            revision,
            opened: Opened::Yes,
            probes: Vec::new(),
            ending: None,
            sdks: Vec::new(),
            transcript: Transcript { frames, dropped: 0 },
        };
        let (since, told) = (FrameId(self.since), BTreeSet::new());
        let scope = TrafficScope { is_whole: false, is_over: true, since, skipped: &[], told: &told, tester: Tester::Suite };
        let errors = errors_of_traffic(&conversation, &scope).unwrap_or_default();
        self.since = self.last + 1;
        let requests = self.tracker.all_open().filter(|call| call.kind == CallKind::Request);
        let oldest = requests.filter_map(|call| call.frames.first().copied()).min();
        self.newest.retain(|frame| oldest.is_some_and(|oldest| frame.id >= oldest));
        self.bytes = self.newest.iter().filter_map(length).sum();
        if self.newest.len() > MOST_NEW {
            self.forget();
        }
        let frames = &conversation.transcript.frames;
        let timed = |(rule, finding): (String, Finding)| {
            let frame = finding.frames.iter().max().and_then(|id| frames.iter().find(|frame| frame.id == *id)).or(frames.last());
            let at = frame.map_or(Duration::ZERO, |frame| frame.at);
            (rule, finding, at)
        };
        Some(errors.into_iter().map(timed).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_record::Direction;
    use serde_json::{Value, json};
    use std::sync::{Arc, Mutex};

    fn line(id: u64, direction: Direction, text: &str) -> Frame {
        Frame {
            id: FrameId(id),
            at: Duration::from_millis(id),
            direction,
            body: FrameBody::Line { bytes: text.into(), unterminated: false },
        }
    }

    /// A line over stdio: from the client if it begins with `>`.
    fn line_of(id: u64, text: &str) -> Frame {
        let (direction, text) = text.strip_prefix('>').map_or((Direction::FromServer, text), |text| (Direction::ToServer, text));
        line(id, direction, text)
    }

    fn sent(id: u32, method: &str, params: Value) -> String {
        format!(">{}", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
    }

    fn got(id: u32, result: Value) -> String {
        json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
    }

    fn opening() -> [String; 3] {
        let client = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
        let server =
            json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": { "name": "s", "version": "1" } });
        let initialized = format!(">{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        [sent(0, "initialize", client), got(0, server), initialized]
    }

    fn list(tool: Value) -> [String; 2] {
        [sent(1, "tools/list", json!({})), got(1, json!({ "tools": [tool] }))]
    }

    /// The rules that lines break.
    fn broken(lines: &[String]) -> Vec<String> {
        let found = Arc::new(Mutex::new(Vec::new()));
        let telling = Arc::clone(&found);
        let tell = move |mark: Mark, _: Option<&Finding>| {
            let MarkBody::Finding { rule, .. } = mark.body else { panic!("{mark:?}") };
            telling.lock().unwrap().push(rule);
        };
        let judge = LiveJudge::start("stdio".into(), tell).unwrap();
        let watch = judge.watcher(SessionKey(1));
        for (id, text) in (0..).zip(lines) {
            watch(&line_of(id, text));
        }
        let told = judge.finish();
        let found = found.lock().unwrap().clone();
        assert_eq!(found.len(), told.len());
        found
    }

    #[test]
    fn what_is_wrong_is_told_once_and_what_is_right_is_not() {
        let opening = opening();
        let good = list(json!({ "name": "t", "inputSchema": { "type": "object" } }));
        assert_eq!(broken(&[&opening[..], &good].concat()), [""; 0]);
        let stray = ["listening".to_owned()];
        assert_eq!(broken(&[&stray[..], &opening, &stray, &good].concat()), ["stdio-only-messages-on-stdout"]);
        assert_eq!(broken(&[&opening[..], &list(json!({ "name": "t" }))].concat()), ["message-matches-schema"]);
        // A request that waits is no finding, and without a handshake nothing is.
        assert_eq!(broken(&[&opening[..], &good[..1]].concat()), [""; 0]);
        assert_eq!(broken(&stray), [""; 0]);
    }

    #[test]
    fn a_finding_that_repeats_is_marked_once_in_a_session_and_hides_no_other() {
        let mut ids = 0..;
        let mut judged = |watched: &mut Watched, lines: &[String]| -> Vec<String> {
            for (id, text) in ids.by_ref().zip(lines) {
                watched.take(line_of(id, text), false);
            }
            watched.judge("stdio").into_iter().map(|(rule, _, _)| rule).collect()
        };
        for mut watched in [Watched::default(), Watched::default()] {
            judged(&mut watched, &opening());
            let strays: Vec<String> = (0..2 * MOST_FOUND).flat_map(|_| judged(&mut watched, &["listening".to_owned()])).collect();
            assert_eq!(strays, ["stdio-only-messages-on-stdout"]);
            assert_eq!(judged(&mut watched, &list(json!({ "name": "t" }))), ["message-matches-schema"]);
        }
    }

    #[test]
    fn what_is_kept_of_a_client_has_a_bound_in_bytes() {
        let mut part = Part::default();
        let text = " ".repeat(LARGEST);
        for id in 0..200 {
            part.take(line(id, Direction::FromServer, &text));
            assert!(part.bytes <= MOST_BYTES);
            assert_eq!(part.bytes, part.newest.iter().filter_map(length).sum::<usize>());
        }
    }
}
