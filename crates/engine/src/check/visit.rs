//! One conversation of a check: a session with a list of what was tried in it. Whatever the server does, it goes on as long
//! as anything can be asked, and never waits longer than it may.

use super::padding::without_padding;
use super::{FLOCK_TOKEN, Inquiry};
use futures_util::StreamExt as _;
use mcproof_client::{
    CallFailure, ClientProfile, ConnectFailure, ConnectOptions, EraChoice, Headers, HttpAnswer, HttpQuestion, ListenFailure, Patience,
    ProcessSignal, Reply, Session, Spelling, SseFailure, Tap, Target, TransportKind, WaitFor, ask_elsewhere, open_bare, open_session,
};
use mcproof_record::{Direction, Ending, FrameBody, FrameId, Opened, ProbeOutcome, Probed, Take, Transcript};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::thread::available_parallelism;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};
use url::Url;

/// How long a server may take to end after its stdin was closed, and after SIGTERM, before that is worth a word.
pub(super) const ENDING: Patience = Patience { end_of_input: Duration::from_secs(5), terminate: Duration::from_secs(5) };

/// How long a server that was maltreated may take to show that it lives, besides what a slow one gets.
const SIGN_OF_LIFE: Duration = Duration::from_secs(4);

/// How often a server may take the time that its start and handshake took: so slow are it and the machine now.
const SLOWNESS: u32 = 4;

/// How long an HTTP request beside the protocol may take.
const HTTP: Duration = Duration::from_secs(5);

/// How long a place that the server named, or that may not be there, may take.
const ELSEWHERE: Duration = Duration::from_secs(2);

/// What a server that was silent once still gets.
const IMPATIENT: Duration = Duration::from_secs(1);

/// How long a subscription may take until it is acknowledged.
const MOST_FOR_AN_ACKNOWLEDGEMENT: Duration = Duration::from_secs(2);

/// New connections on which a server may still show that it lives, when the one that was kept has ended.
const MOST_CONNECTIONS: usize = 2;

/// Turns after which what was dropped is gone.
const TURNS_OF_THE_DROPPED: usize = 8;

/// Requests of a flock that are under way at the same time.
const AT_ONCE: usize = 6;

/// How long one server that starts may keep the next from starting.
const LONGEST_TURN: Duration = Duration::from_secs(1);

/// Enough for the end of a server where nothing depends on it.
const BRIEF: Patience = Patience { end_of_input: Duration::from_millis(500), terminate: Duration::from_secs(1) };

pub(super) struct Visit<'a> {
    pub(super) inquiry: &'a Inquiry,
    session: Session,
    tap: Tap,
    name: &'static str,
    revision: String,
    opened: Opened,
    probes: Vec<Probed>,
    was_silent: bool,
    /// Requests of flocks so far.
    flocked: usize,
    /// A call was given up that the server may still be busy with.
    left_work: bool,
    patience: Patience,
    /// How long it took until there was a session.
    pace: Duration,
    extent: Extent,
}

/// A server that did not let itself be discovered.
pub(super) struct Undiscovered<'a> {
    pub(super) take: Take,
    pub(super) failure: ConnectFailure,
    /// The conversation, if there is one: its server still runs.
    pub(super) still: Option<Visit<'a>>,
}

/// One of several requests that go out together.
#[derive(Clone, Debug)]
pub(super) struct Bird {
    pub(super) probe: &'static str,
    pub(super) subject: String,
    pub(super) method: &'static str,
    pub(super) params: Value,
}

/// What came of it.
#[derive(Clone, Debug)]
pub(super) struct Landed {
    /// `None` if no answer came in time, or the request was never sent.
    pub(super) answer: Answered,
    pub(super) took: Duration,
}

/// What came back, as far as the next step of a client depends on it. Judges read the transcript.
pub(super) type Answered = Option<Result<Value, i64>>;

impl<'a> Visit<'a> {
    /// With a handshake of the era. A visit that fails is a take all the same.
    pub(super) async fn open(
        inquiry: &'a Inquiry,
        name: &'static str,
        options: ConnectOptions,
    ) -> Result<Self, Box<(Take, ConnectFailure)>> {
        let tap = Tap::with(inquiry.tap, inquiry.secrets.clone(), None);
        let offered = match (&options.protocol_version, options.era) {
            (Some(version), _) => version.clone(),
            (None, EraChoice::Modern) => mcproof_client::revision::MODERN.to_owned(),
            (None, _) => mcproof_client::revision::LEGACY[0].to_owned(),
        };
        let _turn = turn().await;
        let began = Instant::now();
        match open_session(&inquiry.target, &options, &tap).await {
            Ok(session) => Ok(Self::opened(inquiry, session, tap, name, began.elapsed())),
            Err(failure) => {
                // What is left of a stream that was given up, such as an event without its end, is recorded when its task is
                // dropped: at its next turn.
                for _ in 0..TURNS_OF_THE_DROPPED {
                    tokio::task::yield_now().await;
                }
                Err(Box::new((unopened(inquiry, name, offered, &failure, &tap), failure)))
            }
        }
    }

    /// In the modern era, over stdio. A server that refuses to be discovered may be asked something else.
    pub(super) async fn discover(inquiry: &'a Inquiry, name: &'static str) -> Result<Self, Undiscovered<'a>> {
        let tap = Tap::with(inquiry.tap, inquiry.secrets.clone(), None);
        let options = ConnectOptions { era: EraChoice::Modern, ..inquiry.options.clone() };
        let offered = options.protocol_version.clone().unwrap_or_else(|| mcproof_client::revision::MODERN.to_owned());
        let _turn = turn().await;
        let began = Instant::now();
        let (failure, session) = match open_bare(&inquiry.target, TransportKind::Stdio, &offered, &options, &tap).await {
            Ok(session) => match session.discover(&options, &tap).await {
                Ok(session) => return Ok(Self::opened(inquiry, session, tap, name, began.elapsed())),
                Err(refused) => {
                    let (failure, session) = *refused;
                    (failure, Some(session))
                }
            },
            Err(failure) => (failure, None),
        };
        let take = unopened(inquiry, name, offered.clone(), &failure, &tap);
        let pace = began.elapsed();
        let still = session.map(|session| Self { pace, ..Self::of(inquiry, session, tap, name, offered, Opened::Bare) });
        Err(Undiscovered { take, failure, still })
    }

    /// Another conversation with the process of one that came to nothing.
    pub(super) fn begins_anew(mut self, name: &'static str) -> Self {
        self.extent.begun = self.tap.mark();
        Self { name, probes: Vec::new(), ..self }
    }

    /// The handshake of the legacy era with an offer of this version. `None` if nothing came of it.
    pub(super) async fn propose(self, probe: &str, version: &str) -> Option<Self> {
        let Self { inquiry, session, tap, name, probes, pace, extent, .. } = self;
        let options = ConnectOptions { era: EraChoice::Legacy, ..inquiry.options.clone() };
        let first = tap.mark();
        let session = session.propose(version, &options, &tap).await.ok()?;
        let visit = Self::opened(inquiry, session, tap, name, pace);
        let mut visit = Self { probes, extent: Extent { begun: extent.begun, ..visit.extent }, ..visit };
        visit.note(probe, Some(version), first, ProbeOutcome::Done);
        Some(visit)
    }

    fn opened(inquiry: &'a Inquiry, session: Session, tap: Tap, name: &'static str, pace: Duration) -> Self {
        let revision = session.handshake().protocol_version.clone();
        Self { patience: ENDING, pace, ..Self::of(inquiry, session, tap, name, revision, Opened::Yes) }
    }

    /// Without a handshake.
    pub(super) async fn bare(inquiry: &'a Inquiry, name: &'static str, kind: TransportKind, version: &str) -> Result<Self, ConnectFailure> {
        let tap = Tap::with(inquiry.tap, inquiry.secrets.clone(), None);
        let session = open_bare(&inquiry.target, kind, version, &inquiry.options, &tap).await?;
        Ok(Self::of(inquiry, session, tap, name, version.to_owned(), Opened::Bare))
    }

    fn of(inquiry: &'a Inquiry, session: Session, tap: Tap, name: &'static str, revision: String, opened: Opened) -> Self {
        let (probes, patience, pace) = (Vec::new(), BRIEF, Duration::ZERO);
        let extent = Extent { begun: FrameId(0), greeted: tap.mark(), parted: tap.mark() };
        let (was_silent, flocked, left_work) = (false, 0, false);
        Self { inquiry, session, tap, name, revision, opened, probes, was_silent, flocked, left_work, patience, pace, extent }
    }

    /// In an era that the server speaks.
    pub(super) async fn open_in(inquiry: &'a Inquiry, name: &'static str, era: EraChoice) -> Result<Self, Box<(Take, ConnectFailure)>> {
        Self::open(inquiry, name, ConnectOptions { era, ..inquiry.options.clone() }).await
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    pub(super) fn kind(&self) -> TransportKind {
        self.session.handshake().transport
    }

    fn deadline(&self) -> Duration {
        if self.was_silent { IMPATIENT.min(self.inquiry.timeout) } else { self.inquiry.timeout }
    }

    /// A request that is the first: what it waits for is the start of the server as well.
    fn first_deadline(&self) -> Duration {
        self.inquiry.options.timeout.map_or(self.deadline(), |start| start.max(self.deadline()))
    }

    /// How long it took until there was a session: so slow are the server and the machine.
    pub(super) fn pace(&self) -> Duration {
        self.pace
    }

    /// How long a server that was maltreated may take to show that it lives.
    pub(super) fn sign_of_life(&self) -> Duration {
        SIGN_OF_LIFE + self.pace * SLOWNESS
    }

    /// Whether the server is there: one that listens may have gone since the last visit.
    pub(super) async fn is_there(&self) -> bool {
        matches!(self.kind(), TransportKind::Stdio | TransportKind::InMemory) || self.session.takes_connections(self.sign_of_life()).await
    }

    fn slowly(&self, patience: Patience) -> Patience {
        let more = self.pace * SLOWNESS;
        Patience { end_of_input: patience.end_of_input + more, terminate: patience.terminate + more }
    }

    /// Whether nothing can be asked any more.
    pub(super) fn is_over(&self) -> bool {
        self.session.closed_because().is_some()
    }

    /// A request as a client of the era makes it.
    pub(super) async fn ask(&mut self, probe: &str, subject: Option<&str>, method: &str, params: Value) -> Answered {
        let first = self.tap.mark();
        let params = params.as_object().cloned();
        let outcome = self.session.request(method, params, self.deadline()).await;
        self.conclude(probe, subject, first, outcome.map(Some))
    }

    /// A call was given up that the server may still be busy with.
    pub(super) fn leaves_work(&mut self) {
        self.left_work = true;
    }

    /// That is no main conversation, whose end would be judged: it is not to take long.
    pub(super) fn in_passing(mut self) -> Self {
        self.patience = BRIEF;
        self
    }

    /// A message as it stands, with the id in it. Requests wait for their answer.
    pub(super) async fn send(&mut self, probe: &str, subject: Option<&str>, message: Value) -> Answered {
        let first = self.tap.mark();
        let outcome = self.session.send_message(message.as_object().unwrap_or(&Map::new()), self.deadline()).await;
        self.conclude(probe, subject, first, outcome)
    }

    /// A request of the era as it stands, for an id of the caller's.
    pub(super) fn request(&self, id: Value, method: &str, params: Value) -> Value {
        let mut params = params;
        if self.is_modern() {
            let client = ClientProfile::default();
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": self.revision,
                "io.modelcontextprotocol/clientInfo": { "name": client.name, "version": client.version },
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
    }

    /// A request of the era as it stands, for an id that nothing else in this conversation has.
    pub(super) fn message(&self, method: &str, params: Value) -> Value {
        self.request(json!(format!("mcproof-{}", self.probes.len())), method, params)
    }

    /// Whether the server declared this, such as `tools` or `resources/subscribe`.
    pub(super) fn declares(&self, path: &str) -> bool {
        let declared = self.session.handshake().capabilities.pointer(&format!("/{path}"));
        declared.is_some_and(|value| !matches!(value, Value::Bool(false) | Value::Null))
    }

    /// A POST of a message with the headers of the caller's and no others, their names in this spelling. Over HTTP only.
    pub(super) async fn post(&mut self, probe: &str, subject: &str, message: &Value, headers: Headers, spelling: Spelling) {
        let body = message.to_string().into_bytes();
        let question = HttpQuestion { method: "POST".into(), path: None, headers, body, ..HttpQuestion::default() };
        let first = self.tap.mark();
        let Some(outcome) = self.session.ask_over_http_spelled(&question, spelling, self.deadline()).await else { return };
        let outcome = match outcome {
            Ok(_) => ProbeOutcome::Done,
            Err(CallFailure::TimedOut { .. }) => ProbeOutcome::Silent,
            Err(_) => ProbeOutcome::Gone,
        };
        self.note(probe, Some(subject), first, outcome);
    }

    /// Listens for what the filter names, at most for `hold` after the acknowledgement, and cancels then.
    pub(super) async fn listen(&mut self, probe: &str, filter: Map<String, Value>, hold: Duration) {
        let first = self.tap.mark();
        let deadline = self.deadline().min(MOST_FOR_AN_ACKNOWLEDGEMENT);
        let outcome = match self.session.listen(filter, deadline).await {
            Ok(mut subscription) => {
                let end = Instant::now() + hold;
                while subscription.next(end.saturating_duration_since(Instant::now())).await.is_ok() {}
                subscription.close();
                ProbeOutcome::Done
            }
            Err(ListenFailure::Call(CallFailure::TimedOut { .. })) => ProbeOutcome::Silent,
            Err(ListenFailure::Call(_)) => ProbeOutcome::Gone,
            Err(_) => ProbeOutcome::Done,
        };
        self.note(probe, None, first, outcome);
    }

    /// A message as it stands, to which no answer is waited for.
    pub(super) async fn tell(&mut self, probe: &str, message: Value) {
        let mut bytes = message.to_string().into_bytes();
        bytes.push(b'\n');
        self.bytes(probe, bytes).await;
    }

    /// `initialize` with this version, and `notifications/initialized` if the answer is a result.
    pub(super) async fn initialize(&mut self, probe: &str, version: &str) -> Answered {
        let client = ClientProfile::default();
        let params = json!({
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": { "name": client.name, "version": client.version },
        });
        let first = self.tap.mark();
        let began = Instant::now();
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let outcome = self.session.send_message(message.as_object().unwrap_or(&Map::new()), self.first_deadline()).await;
        if let Ok(Some(Reply { answer: Ok(result), http, .. })) = &outcome {
            self.pace = self.pace.max(began.elapsed());
            let mut headers = Headers::new();
            let version = result.get("protocolVersion").and_then(Value::as_str).unwrap_or(version);
            if version >= "2025-06-18" {
                headers.push(("mcp-protocol-version".into(), version.to_owned()));
            }
            let id = http.as_ref().and_then(|head| head.header("mcp-session-id"));
            headers.extend(id.map(|id| ("mcp-session-id".to_owned(), id.to_owned())));
            self.session.set_headers(headers);
            let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            // Whether it was taken shows in the transcript.
            let _ = self.session.send_message(initialized.as_object().unwrap_or(&Map::new()), self.deadline()).await;
        }
        self.conclude(probe, Some(version), first, outcome)
    }

    /// What was tried last was another probe as well.
    pub(super) fn also(&mut self, probe: &str) {
        if let Some(last) = self.probes.last().cloned() {
            self.probes.push(Probed { probe: probe.into(), ..last });
        }
    }

    /// A signal to the server, and the wait for its end. A server that listens gets it alone, without its children, as from a
    /// supervisor.
    pub(super) async fn signal(&mut self, probe: &str, signal: ProcessSignal) {
        let first = self.tap.mark();
        match self.kind() {
            TransportKind::Http | TransportKind::Sse => self.session.signal_alone(signal),
            TransportKind::Stdio | TransportKind::InMemory => self.session.signal(signal),
        };
        let exit = self.session.wait_for_exit(self.slowly(ENDING).terminate).await;
        self.note(probe, None, first, if exit.is_some() { ProbeOutcome::Done } else { ProbeOutcome::Silent });
    }

    /// Bytes as they stand, to which no answer is expected.
    pub(super) async fn bytes(&mut self, probe: &str, bytes: impl Into<Vec<u8>>) {
        let first = self.tap.mark();
        let outcome = self.session.send_bytes(bytes.into(), WaitFor::Nothing, self.deadline().min(self.sign_of_life())).await;
        self.conclude(probe, None, first, outcome);
    }

    /// An HTTP request beside the protocol.
    pub(super) async fn http(&mut self, probe: &str, subject: Option<&str>, question: &HttpQuestion) -> Option<HttpAnswer> {
        let first = self.tap.mark();
        let outcome = self.session.ask_over_http(question, self.deadline().min(HTTP)).await?;
        self.was_silent |= matches!(outcome, Err(CallFailure::TimedOut { .. }));
        self.conclude_http(probe, subject, first, outcome)
    }

    /// An HTTP request that this client gives up by itself, answered or not.
    pub(super) async fn http_within(&mut self, probe: &str, question: &HttpQuestion, patience: Duration) -> Option<HttpAnswer> {
        let first = self.tap.mark();
        let outcome = self.session.ask_over_http(question, patience).await?;
        self.conclude_http(probe, None, first, outcome)
    }

    /// An HTTP request that this client leaves alone at once: after the other tasks had so many turns, which is sooner than
    /// any clock could tell.
    pub(super) async fn http_left(&mut self, probe: &str, question: &HttpQuestion, turns: usize) {
        let first = self.tap.mark();
        let leave = async {
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            _ = self.session.ask_over_http(question, HTTP) => {}
            () = leave => {}
        }
        self.note(probe, None, first, ProbeOutcome::Silent);
    }

    /// Two HTTP requests on one connection.
    pub(super) async fn http_in_row(&mut self, probe: &str, questions: [&HttpQuestion; 2]) -> Option<HttpAnswer> {
        let first = self.tap.mark();
        let outcome = self.session.ask_in_row(questions, self.deadline().min(HTTP)).await?;
        self.conclude_http(probe, None, first, outcome)
    }

    /// An HTTP request to whatever place, which gets nothing of this session.
    pub(super) async fn http_elsewhere(&mut self, probe: &str, url: &Url, question: &HttpQuestion) -> Option<HttpAnswer> {
        let first = self.tap.mark();
        let outcome = ask_elsewhere(url, question, &self.inquiry.options, &self.tap, ELSEWHERE).await;
        self.conclude_http(probe, Some(url.as_str()), first, outcome)
    }

    fn conclude_http(
        &mut self,
        probe: &str,
        subject: Option<&str>,
        first: FrameId,
        outcome: Result<HttpAnswer, CallFailure>,
    ) -> Option<HttpAnswer> {
        let (answer, outcome) = match outcome {
            Ok(answer) => (Some(answer), ProbeOutcome::Done),
            Err(CallFailure::TimedOut { .. }) => (None, ProbeOutcome::Silent),
            Err(_) => (None, ProbeOutcome::Gone),
        };
        self.note(probe, subject, first, outcome);
        answer
    }

    pub(super) fn revision(&self) -> &str {
        &self.revision
    }

    /// How many things have been tried so far.
    pub(super) fn tried(&self) -> usize {
        self.probes.len()
    }

    /// What has been seen so far.
    pub(super) fn transcript(&self) -> Transcript {
        self.tap.transcript()
    }

    /// Whether the server still answers; noted as the probe `PROBE-after`.
    pub(super) async fn is_alive_after(&mut self, probe: &str) -> bool {
        let method = if self.is_modern() { "server/discover" } else { "ping" };
        let mut first = self.tap.mark();
        let mut outcome = self.session.request(method, Some(Map::new()), self.deadline().min(self.sign_of_life())).await;
        for _ in 0..MOST_CONNECTIONS {
            let is_lost = matches!(&outcome, Err(failure) if !matches!(failure, CallFailure::TimedOut { .. }));
            if !is_lost || self.is_over() || !self.is_there().await {
                break;
            }
            // The end of a connection is not the end of the server, and what a real client would do is to connect again.
            first = self.tap.mark();
            outcome = self.session.request(method, Some(Map::new()), self.deadline().min(self.sign_of_life())).await;
        }
        self.conclude(&format!("{probe}-after"), None, first, outcome.map(Some)).is_some()
    }

    pub(super) fn is_modern(&self) -> bool {
        self.revision.as_str() >= mcproof_client::revision::MODERN
    }

    /// Several things at once, all under one probe.
    pub(super) async fn together<T>(&mut self, probe: &str, work: impl AsyncFnOnce(&Session, Duration) -> T) -> T {
        self.together_on(probe, None, work).await
    }

    /// The same, tried on something.
    pub(super) async fn together_on<T>(
        &mut self,
        probe: &str,
        subject: Option<&str>,
        work: impl AsyncFnOnce(&Session, Duration) -> T,
    ) -> T {
        let first = self.tap.mark();
        let outcome = work(&self.session, self.deadline()).await;
        self.note(probe, subject, first, ProbeOutcome::Done);
        outcome
    }

    /// Requests that go out a few at a time, each with a progress token and cancelled after `limit`; after `until` no more are
    /// sent. What is still not answered then says nothing about the server, so that later requests are waited for as ever.
    pub(super) async fn flock(&mut self, birds: &[Bird], limit: Duration, until: Instant) -> Vec<Landed> {
        let first = self.tap.mark();
        let base = self.flocked;
        self.flocked += birds.len();
        let session = &self.session;
        let send = async |(index, bird): (usize, &Bird)| {
            let started = Instant::now();
            let patience = limit.min(until.saturating_duration_since(started));
            if patience.is_zero() {
                return (index, None);
            }
            let mut params = bird.params.clone();
            params["_meta"] = json!({ "progressToken": format!("{FLOCK_TOKEN}{}", base + index) });
            let outcome = session.request(bird.method, params.as_object().cloned(), patience).await;
            (index, Some((outcome, started.elapsed())))
        };
        let sent = futures_util::stream::iter(birds.iter().enumerate()).map(send);
        let outcomes: BTreeMap<usize, _> = sent.buffer_unordered(AT_ONCE).collect().await;
        let frames = self.frames_of_flock(first);
        let mut landed = Vec::new();
        for (bird, (index, outcome)) in birds.iter().zip(outcomes) {
            let Some((outcome, took)) = outcome else {
                landed.push(Landed { answer: None, took: Duration::ZERO });
                continue;
            };
            let (answer, outcome) = match outcome {
                Ok(reply) => (Some(reply.answer.map_err(|error| error.code)), ProbeOutcome::Done),
                Err(CallFailure::TimedOut { .. }) => (None, ProbeOutcome::Silent),
                Err(_) => (None, ProbeOutcome::Gone),
            };
            self.left_work |= outcome == ProbeOutcome::Silent;
            if let Some(frame) = frames.get(&(base + index)) {
                let (probe, subject) = (bird.probe.into(), Some(bird.subject.clone()));
                self.probes.push(Probed { probe, subject, first: *frame, end: FrameId(frame.0 + 1), outcome });
            }
            landed.push(Landed { answer, took });
        }
        landed
    }

    /// The frames of the requests of flocks since a frame, by the number in their progress token.
    fn frames_of_flock(&self, first: FrameId) -> BTreeMap<usize, FrameId> {
        let start = format!("\"progressToken\":\"{FLOCK_TOKEN}").into_bytes();
        let sent = (first.0..self.tap.mark().0).filter_map(|id| self.tap.frame(FrameId(id)));
        let number = |bytes: &[u8]| {
            let rest = &bytes[memchr::memmem::find(bytes, &start)? + start.len()..];
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
        };
        sent.filter(|frame| frame.direction == Direction::ToServer)
            .filter_map(|frame| match &frame.body {
                FrameBody::Line { bytes, .. } | FrameBody::HttpRequest { body: bytes, .. } => Some((number(bytes.as_bytes())?, frame.id)),
                _ => None,
            })
            .collect()
    }

    fn conclude(&mut self, probe: &str, subject: Option<&str>, first: FrameId, outcome: Result<Option<Reply>, CallFailure>) -> Answered {
        let (answered, outcome) = match outcome {
            Ok(Some(reply)) => (Some(reply.answer.map_err(|error| error.code)), ProbeOutcome::Done),
            Ok(None) => (None, ProbeOutcome::Done),
            Err(CallFailure::TimedOut { .. }) => {
                self.was_silent = true;
                (None, ProbeOutcome::Silent)
            }
            Err(_) => (None, ProbeOutcome::Gone),
        };
        self.note(probe, subject, first, outcome);
        answered
    }

    fn note(&mut self, probe: &str, subject: Option<&str>, first: FrameId, outcome: ProbeOutcome) {
        let end = self.tap.mark();
        self.probes.push(Probed { probe: probe.into(), subject: subject.map(str::to_owned), first, end, outcome });
    }

    /// The same process, in a conversation of another kind.
    pub(super) fn goes_on_as(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// What was tried so far, as a take. The conversation goes on, as another take, unless the server is not well: then it ends.
    pub(super) async fn hand_over(mut self) -> (Take, Option<Self>) {
        if self.is_over() || self.left_work {
            return (self.end().await, None);
        }
        let take = Take { transcript: self.extent.of(self.tap.transcript()), ..self.take() };
        self.extent.parted = self.tap.mark();
        (take, Some(self))
    }

    /// Ends the conversation, and the server if it is ours.
    pub(super) async fn end(mut self) -> Take {
        self.session.settle().await;
        if self.left_work && self.inquiry.target.command().is_some() {
            // How it ends in the middle of its work is no fair question.
            self.session.signal(ProcessSignal::KILL);
            self.session.wait_for_exit(self.slowly(ENDING).terminate).await;
        }
        let (mut take, extent, patience) = (self.take(), self.extent, self.slowly(self.patience));
        let (ending, transcript) = end(self.session, &self.tap, patience).await;
        take.ending = ending.filter(|_| self.inquiry.target.command().is_some() && !self.left_work);
        take.transcript = extent.of(transcript);
        take
    }

    /// What was tried since the last take.
    fn take(&mut self) -> Take {
        Take {
            name: self.name.into(),
            transport: self.kind().to_string(),
            revision: self.revision.clone(),
            opened: self.opened.clone(),
            probes: std::mem::take(&mut self.probes),
            ending: None,
            transcript: Transcript::default(),
        }
    }
}

/// Which frames of a process are of one conversation.
#[derive(Clone, Copy)]
struct Extent {
    /// Earlier ones are of another conversation with the same process.
    begun: FrameId,
    /// Those between these two are in takes of their own; what is before them is the handshake.
    greeted: FrameId,
    parted: FrameId,
}

impl Extent {
    fn of(self, mut transcript: Transcript) -> Transcript {
        transcript.frames.retain(|frame| frame.id >= self.begun && !(self.greeted..self.parted).contains(&frame.id));
        without_padding(&mut transcript);
        transcript
    }
}

/// Waits until fewer servers are starting than there are cores: so the first ones are there early, and each is as quick as the
/// server is. One that does not start keeps the others waiting for a moment only.
async fn turn() -> Option<SemaphorePermit<'static>> {
    static TURNS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(available_parallelism().map_or(1, usize::from)));
    timeout(LONGEST_TURN, TURNS.acquire()).await.ok()?.ok()
}

/// Ends a session, and says how the server went that it had started. Nothing is said of one that had ended before, unless it
/// has left something behind.
pub(super) async fn end(session: Session, tap: &Tap, patience: Patience) -> (Option<Ending>, Transcript) {
    let was_over = session.exit().is_some();
    let report = session.close_within(patience).await;
    let ending = Ending {
        ignored_end_of_input: report.ignored_end_of_input,
        ignored_terminate: report.ignored_terminate,
        left_behind: report.left_behind,
    };
    (Some(ending).filter(|ending| !was_over || !ending.left_behind.is_empty()), tap.transcript())
}

/// The take of a conversation that did not come about.
fn unopened(inquiry: &Inquiry, name: &str, revision: String, failure: &ConnectFailure, tap: &Tap) -> Take {
    Take {
        name: name.into(),
        transport: transport_after(inquiry, failure).to_string(),
        revision,
        opened: Opened::No { reason: failure.to_string() },
        probes: Vec::new(),
        ending: None,
        transcript: tap.transcript(),
    }
}

/// What the conversation would have been over, had it come about.
pub(super) fn transport_of(inquiry: &Inquiry) -> TransportKind {
    match &inquiry.target {
        Target::Stdio(_) => TransportKind::Stdio,
        Target::Http { kind, .. } => kind.unwrap_or(TransportKind::Http),
    }
}

/// The same, where the failure tells more: a stream that begins wrongly is a stream.
fn transport_after(inquiry: &Inquiry, failure: &ConnectFailure) -> TransportKind {
    use SseFailure::{BadEndpoint, Ended, Flawed, OtherEvent};
    match failure {
        ConnectFailure::Sse(Ended(_) | Flawed(_) | OtherEvent(_) | BadEndpoint(_)) => TransportKind::Sse,
        _ => transport_of(inquiry),
    }
}
