//! One conversation of a check: a session with a list of what was tried in it. Whatever the server does, it goes on as long
//! as anything can be asked, and never waits longer than it may.

use super::budget::Waits;
use super::padding::without_padding;
use super::{FLOCK_TOKEN, Inquiry};
use futures_util::StreamExt as _;
use mcproof_analysis::probes::LEFT_OUT;
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
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
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

/// After so many requests in a row without a response nothing more is asked.
const MOST_SILENT_IN_ROW: usize = 3;

/// A start that takes longer says nothing about how quick the responses are.
const SLOWEST_PACE: Duration = Duration::from_secs(4);

/// No wait of a check is longer: the time of its own ends each of them.
const NEVER: Duration = Duration::from_secs(24 * 60 * 60);

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

/// How long a start may take if nobody says so.
const LONGEST_START: Duration = Duration::from_secs(30);

/// How long the right response may come after one with a wrong id.
const MISLED: Duration = Duration::from_secs(1);

/// How long the response to a POST over HTTP+SSE may take after everything else is done.
const POSTED: Duration = Duration::from_millis(2500);

/// For the end of a server where no time is left.
const HASTY: Patience = Patience { end_of_input: Duration::from_millis(200), terminate: Duration::from_millis(300) };

pub(super) struct Visit<'a> {
    pub(super) inquiry: &'a Inquiry,
    session: Session,
    tap: Tap,
    name: &'static str,
    revision: String,
    opened: Opened,
    probes: Vec<Probed>,
    waits: Waits,
    /// Requests without a response since the last one with a response.
    silent_in_row: usize,
    /// When the time of this conversation is over.
    until: Instant,
    /// What comes from here on had no time.
    left_out: Option<FrameId>,
    /// Requests of flocks so far.
    flocked: usize,
    /// A call was given up that the server may still be busy with.
    left_work: bool,
    patience: Patience,
    /// How long it took until there was a session.
    pace: Duration,
    extent: Extent,
    /// Given back once the process has ended.
    turn: Option<OwnedSemaphorePermit>,
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
        let offered = match (&options.protocol_version, options.era) {
            (Some(version), _) => version.clone(),
            (None, EraChoice::Modern) => mcproof_client::revision::MODERN.to_owned(),
            (None, _) => mcproof_client::revision::LEGACY[0].to_owned(),
        };
        let again = inquiry.budget.has_started();
        match Self::try_to_open(inquiry, name, &offered, &options).await {
            // That one start of several was slow is told only if it happens again.
            Err(failed) if again && options.era != EraChoice::Modern && timed_out(&failed.1) => {
                Self::try_to_open(inquiry, name, &offered, &options).await
            }
            opened => opened,
        }
    }

    async fn try_to_open(
        inquiry: &'a Inquiry,
        name: &'static str,
        offered: &str,
        options: &ConnectOptions,
    ) -> Result<Self, Box<(Take, ConnectFailure)>> {
        let tap = Tap::with(inquiry.tap, inquiry.secrets.clone(), None);
        if inquiry.budget.left().is_zero() {
            let failure = no_time();
            return Err(Box::new((unopened(inquiry, name, offered.to_owned(), &failure, &tap, Cut::Yes), failure)));
        }
        let (alone, _turn) = (inquiry.budget.turn().await, turn().await);
        let began = Instant::now();
        let (options, cut) = in_time(inquiry, options);
        let opened = open_session(&inquiry.target, &options, &tap).await;
        if options.era == EraChoice::Legacy && cut == Cut::No {
            inquiry.budget.shook_hands(opened.is_ok());
        }
        match opened {
            Ok(session) => {
                inquiry.budget.started(began.elapsed());
                Ok(Self { turn: alone, ..Self::opened(inquiry, session, tap, name, began.elapsed()) })
            }
            Err(failure) => {
                // What is left of a stream that was given up, such as an event without its end, is recorded when its task is
                // dropped: at its next turn.
                for _ in 0..TURNS_OF_THE_DROPPED {
                    tokio::task::yield_now().await;
                }
                Err(Box::new((unopened(inquiry, name, offered.to_owned(), &failure, &tap, cut), failure)))
            }
        }
    }

    /// In the modern era, over stdio. A server that refuses to be discovered may be asked something else.
    /// Once `give_up` is over, no answer is one.
    pub(super) async fn discover(
        inquiry: &'a Inquiry,
        name: &'static str,
        give_up: impl Future<Output = ()>,
    ) -> Result<Self, Undiscovered<'a>> {
        let tap = Tap::with(inquiry.tap, inquiry.secrets.clone(), None);
        let (options, cut) = in_time(inquiry, &ConnectOptions { era: EraChoice::Modern, ..inquiry.options.clone() });
        let offered = options.protocol_version.clone().unwrap_or_else(|| mcproof_client::revision::MODERN.to_owned());
        let (alone, _turn) = (inquiry.budget.turn().await, turn().await);
        let began = Instant::now();
        let (failure, session) = match open_bare(&inquiry.target, TransportKind::Stdio, &offered, &options, &tap).await {
            Ok(session) => {
                let discovered = tokio::select! {
                    discovered = session.discover(&options, &tap) => Some(discovered),
                    () = give_up => None,
                };
                match discovered {
                    Some(Ok(session)) => {
                        inquiry.budget.started(began.elapsed());
                        return Ok(Self { turn: alone, ..Self::opened(inquiry, session, tap, name, began.elapsed()) });
                    }
                    Some(Err(refused)) => {
                        let (failure, session) = *refused;
                        (failure, Some(session))
                    }
                    None => {
                        let method = "server/discover";
                        let failure = CallFailure::TimedOut { method: method.into(), after: began.elapsed(), stage: None };
                        (ConnectFailure::Unanswered { method, failure, faults: Vec::new() }, None)
                    }
                }
            }
            Err(failure) => (failure, None),
        };
        let take = unopened(inquiry, name, offered.clone(), &failure, &tap, cut);
        let pace = began.elapsed();
        let still = session.map(|session| Self { pace, turn: alone, ..Self::of(inquiry, session, tap, name, offered, Opened::Bare) });
        Err(Undiscovered { take, failure, still })
    }

    /// Another conversation with the process of one that came to nothing.
    pub(super) fn begins_anew(mut self, name: &'static str) -> Self {
        self.extent.begun = self.tap.mark();
        Self { name, probes: Vec::new(), ..self }
    }

    /// The handshake of the legacy era with an offer of this version. `None` if nothing came of it.
    pub(super) async fn propose(mut self, probe: &str, version: &str) -> Option<Self> {
        let patience = self.first_patience()?;
        let Self { inquiry, session, tap, name, probes, pace, extent, waits, turn, .. } = self;
        let options = ConnectOptions { era: EraChoice::Legacy, timeout: Some(patience), misled: Some(MISLED), ..inquiry.options.clone() };
        let first = tap.mark();
        let session = session.propose(version, &options, &tap).await.ok()?;
        let visit = Self::opened(inquiry, session, tap, name, pace);
        let mut visit = Self { probes, waits, turn, extent: Extent { begun: extent.begun, ..visit.extent }, ..visit };
        visit.note(probe, Some(version), first, ProbeOutcome::Done);
        Some(visit)
    }

    fn opened(inquiry: &'a Inquiry, session: Session, tap: Tap, name: &'static str, pace: Duration) -> Self {
        let revision = session.handshake().protocol_version.clone();
        inquiry.made_with.look(&session);
        Self { patience: ENDING, pace, ..Self::of(inquiry, session, tap, name, revision, Opened::Yes) }
    }

    /// Without a handshake.
    pub(super) async fn bare(inquiry: &'a Inquiry, name: &'static str, kind: TransportKind, version: &str) -> Result<Self, ConnectFailure> {
        let tap = Tap::with(inquiry.tap, inquiry.secrets.clone(), None);
        if inquiry.budget.left().is_zero() {
            return Err(no_time());
        }
        let turn = inquiry.budget.turn().await;
        let session = open_bare(&inquiry.target, kind, version, &in_time(inquiry, &inquiry.options).0, &tap).await?;
        Ok(Self { turn, ..Self::of(inquiry, session, tap, name, version.to_owned(), Opened::Bare) })
    }

    fn of(inquiry: &'a Inquiry, session: Session, tap: Tap, name: &'static str, revision: String, opened: Opened) -> Self {
        let (probes, patience, pace) = (Vec::new(), BRIEF, Duration::ZERO);
        let extent = Extent { begun: FrameId(0), greeted: tap.mark(), parted: tap.mark() };
        let (waits, until) = match is_beside_others(inquiry) {
            true => (inquiry.budget.beside_others(), inquiry.budget.end()),
            false => (inquiry.budget.one_by_one(), inquiry.budget.share()),
        };
        Self {
            inquiry,
            session,
            tap,
            name,
            revision,
            opened,
            probes,
            waits,
            silent_in_row: 0,
            until,
            left_out: None,
            flocked: 0,
            left_work: false,
            patience,
            pace,
            extent,
            turn: None,
        }
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

    /// Whether anything may still be asked: there is time, and the server says something now and then.
    fn may_ask(&mut self) -> bool {
        if self.left_out.is_none() && Instant::now() >= self.until {
            self.left_out = Some(self.tap.mark());
        }
        self.left_out.is_none() && self.silent_in_row < MOST_SILENT_IN_ROW
    }

    /// How long a response to a request of this method is waited for; `None` if it is not to be sent.
    fn patience(&mut self, method: &str) -> Option<Duration> {
        if !self.may_ask() {
            return None;
        }
        let patience = self.waits.patience(method, self.pace.min(SLOWEST_PACE))?.min(self.inquiry.timeout);
        // Over stdio the first response of a conversation waits for the start of a process: silence until then tells nothing.
        let is_starting = self.kind() == TransportKind::Stdio && !self.has_spoken();
        let patience = if is_starting { self.start(patience) } else { patience };
        Some(patience.min(self.time_left()))
    }

    /// How long a server that may still be starting is waited for.
    fn start(&self, patience: Duration) -> Duration {
        self.inquiry.options.timeout.map_or(patience, |most| self.inquiry.budget.start(most).max(patience))
    }

    /// The same for a request that is the first: what it waits for is the start of the server as well.
    fn first_patience(&mut self) -> Option<Duration> {
        let patience = self.patience("initialize")?;
        if self.has_spoken() {
            return Some(patience);
        }
        Some(self.start(patience).min(self.time_left()))
    }

    /// Whether the server has said anything in this conversation: then it has started.
    fn has_spoken(&self) -> bool {
        let mut frames = (self.extent.begun.0..self.tap.mark().0).rev().filter_map(|id| self.tap.frame(FrameId(id)));
        frames.any(|frame| {
            frame.direction == Direction::FromServer && matches!(frame.body, FrameBody::Line { .. } | FrameBody::HttpResponse { .. })
        })
    }

    fn time_left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// What a wait that ended without a response tells: that there was no time, or that the server is silent.
    fn waited_in_vain(&mut self, method: &str, first: FrameId, after: Duration) -> Waited {
        if Instant::now() >= self.until {
            self.left_out.get_or_insert(first);
            return Waited::TooShort;
        }
        self.waits.was_silent(method, after);
        self.silent_in_row += 1;
        // How long that was is told by the frames.
        self.tap.note(format!("no response to `{method}` so far: it is not waited for any longer"));
        Waited::LongEnough
    }

    /// How long it took until there was a session: so slow are the server and the machine.
    pub(super) fn pace(&self) -> Duration {
        self.pace
    }

    /// The method of a request for which any will do that every server has.
    pub(super) fn any_method(&self) -> &'static str {
        match (self.inquiry.budget.lists_many(), self.is_modern()) {
            (false, _) => "tools/list",
            (true, false) => "ping",
            (true, true) => "server/discover",
        }
    }

    /// Whether the server has left any request without a response.
    pub(super) fn was_silent(&self) -> bool {
        self.waits.was_ever_silent()
    }

    /// How long a server that was maltreated may take to show that it lives.
    pub(super) fn sign_of_life(&self) -> Duration {
        SIGN_OF_LIFE + self.pace.min(SLOWEST_PACE) * SLOWNESS
    }

    /// Whether the server is there: one that listens may have gone since the last visit.
    pub(super) async fn is_there(&self) -> bool {
        matches!(self.kind(), TransportKind::Stdio | TransportKind::InMemory) || self.session.takes_connections(self.sign_of_life()).await
    }

    fn slowly(&self, patience: Patience) -> Patience {
        if self.left_out.is_some() || self.time_left().is_zero() {
            return HASTY;
        }
        let more = self.pace.min(SLOWEST_PACE) * SLOWNESS;
        Patience { end_of_input: patience.end_of_input + more, terminate: patience.terminate + more }
    }

    /// Whether nothing can be asked any more.
    pub(super) fn is_over(&self) -> bool {
        self.session.closed_because().is_some() || self.left_out.is_some() || Instant::now() >= self.until
    }

    /// A request as a client of the era makes it.
    pub(super) async fn ask(&mut self, probe: &str, subject: Option<&str>, method: &str, params: Value) -> Answered {
        let patience = self.patience(method)?;
        let first = self.tap.mark();
        let params = params.as_object().cloned();
        let outcome = patiently(method, patience, self.session.request(method, params, NEVER)).await;
        self.conclude(probe, subject, method, first, outcome.map(Some))
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
        self.send_within(None, probe, subject, message).await
    }

    /// The same for what a sound server answers at once.
    pub(super) async fn send_briefly(&mut self, probe: &str, subject: &str, message: Value) -> Answered {
        self.send_within(Some(self.sign_of_life()), probe, Some(subject), message).await
    }

    /// Waits no longer than `most`, nor than a request of its method may take.
    async fn send_within(&mut self, most: Option<Duration>, probe: &str, subject: Option<&str>, message: Value) -> Answered {
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let usual = self.patience(&method)?;
        let first = self.tap.mark();
        let patience = most.map_or(usual, |most| usual.min(most));
        let outcome = self.session.send_message(message.as_object().unwrap_or(&Map::new()), patience).await;
        self.conclude(probe, subject, &method, first, outcome)
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
        let method = message["method"].as_str().unwrap_or_default();
        let Some(patience) = self.patience(method) else { return };
        let first = self.tap.mark();
        let Some(outcome) = self.session.ask_over_http_spelled(&question, spelling, patience).await else { return };
        let outcome = match outcome {
            Ok(_) => ProbeOutcome::Done,
            Err(CallFailure::TimedOut { after, .. }) => match self.waited_in_vain(method, first, after) {
                Waited::TooShort => return,
                Waited::LongEnough => ProbeOutcome::Silent,
            },
            Err(_) => ProbeOutcome::Gone,
        };
        self.note(probe, Some(subject), first, outcome);
    }

    /// Listens for what the filter names, at most for `hold` after the acknowledgement, and cancels then.
    pub(super) async fn listen(&mut self, probe: &str, filter: Map<String, Value>, hold: Duration) {
        let Some(patience) = self.patience("subscriptions/listen") else { return };
        let first = self.tap.mark();
        let deadline = patience.min(MOST_FOR_AN_ACKNOWLEDGEMENT);
        let outcome = match self.session.listen(filter, deadline).await {
            Ok(mut subscription) => {
                let end = self.until.min(Instant::now() + hold);
                while subscription.next(end.saturating_duration_since(Instant::now())).await.is_ok() {}
                subscription.close();
                ProbeOutcome::Done
            }
            Err(ListenFailure::Call(CallFailure::TimedOut { after, .. })) => {
                match self.waited_in_vain("subscriptions/listen", first, after) {
                    Waited::TooShort => return,
                    Waited::LongEnough => ProbeOutcome::Silent,
                }
            }
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
        let patience = self.first_patience()?;
        let first = self.tap.mark();
        let began = Instant::now();
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let outcome = self.session.send_message(message.as_object().unwrap_or(&Map::new()), patience).await;
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
            let _ = self.session.send_message(initialized.as_object().unwrap_or(&Map::new()), patience).await;
        }
        self.conclude(probe, Some(version), "initialize", first, outcome)
    }

    /// Something that was seen beside the conversation: the subject says what.
    pub(super) fn looked(&mut self, probe: &str, what: &str) {
        let now = self.tap.mark();
        self.note(probe, Some(what), now, ProbeOutcome::Done);
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
        if !self.may_ask() {
            return;
        }
        let first = self.tap.mark();
        match self.kind() {
            TransportKind::Http | TransportKind::Sse => self.session.signal_alone(signal),
            TransportKind::Stdio | TransportKind::InMemory => self.session.signal(signal),
        };
        let patience = self.slowly(ENDING).terminate;
        let exit = self.session.wait_for_exit(patience.min(self.time_left())).await;
        match exit {
            Some(_) => self.note(probe, None, first, ProbeOutcome::Done),
            None if self.time_left().is_zero() => _ = self.left_out.get_or_insert(first),
            None => self.note(probe, None, first, ProbeOutcome::Silent),
        }
    }

    /// Bytes as they stand, to which no answer is expected.
    pub(super) async fn bytes(&mut self, probe: &str, bytes: impl Into<Vec<u8>>) {
        if !self.may_ask() {
            return;
        }
        let first = self.tap.mark();
        let outcome = self.session.send_bytes(bytes.into(), WaitFor::Nothing, self.sign_of_life().min(self.time_left())).await;
        self.conclude(probe, None, "", first, outcome);
    }

    /// An HTTP request beside the protocol.
    pub(super) async fn http(&mut self, probe: &str, subject: Option<&str>, question: &HttpQuestion) -> Option<HttpAnswer> {
        let patience = self.patience(&question.method)?.min(HTTP);
        let first = self.tap.mark();
        let outcome = self.session.ask_over_http(question, patience).await?;
        self.conclude_http(probe, subject, first, outcome, Some(&question.method))
    }

    /// An HTTP request that this client gives up by itself, answered or not.
    pub(super) async fn http_within(&mut self, probe: &str, question: &HttpQuestion, patience: Duration) -> Option<HttpAnswer> {
        if !self.may_ask() {
            return None;
        }
        let first = self.tap.mark();
        let outcome = self.session.ask_over_http(question, patience).await?;
        self.conclude_http(probe, None, first, outcome, None)
    }

    /// An HTTP request that this client leaves alone at once: after the other tasks had so many turns, which is sooner than
    /// any clock could tell.
    pub(super) async fn http_left(&mut self, probe: &str, question: &HttpQuestion, turns: usize) {
        if !self.may_ask() {
            return;
        }
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
        let patience = self.patience(&questions[0].method)?.min(HTTP);
        let first = self.tap.mark();
        let outcome = self.session.ask_in_row(questions, patience).await?;
        self.conclude_http(probe, None, first, outcome, Some(&questions[0].method))
    }

    /// An HTTP request to whatever place, which gets nothing of this session.
    pub(super) async fn http_elsewhere(&mut self, probe: &str, url: &Url, question: &HttpQuestion) -> Option<HttpAnswer> {
        if !self.may_ask() {
            return None;
        }
        let first = self.tap.mark();
        let outcome = ask_elsewhere(url, question, &self.inquiry.options, &self.tap, ELSEWHERE).await;
        self.conclude_http(probe, Some(url.as_str()), first, outcome, None)
    }

    /// `waited_for` names the HTTP method where the wait was as long as a server can ask for.
    fn conclude_http(
        &mut self,
        probe: &str,
        subject: Option<&str>,
        first: FrameId,
        outcome: Result<HttpAnswer, CallFailure>,
        waited_for: Option<&str>,
    ) -> Option<HttpAnswer> {
        let (answer, outcome) = match outcome {
            Ok(answer) => {
                self.silent_in_row = 0;
                (Some(answer), ProbeOutcome::Done)
            }
            Err(CallFailure::TimedOut { after, .. }) => {
                if let Some(method) = waited_for
                    && self.waited_in_vain(method, first, after) == Waited::TooShort
                {
                    return None;
                }
                (None, ProbeOutcome::Silent)
            }
            Err(_) => (None, ProbeOutcome::Gone),
        };
        self.note(probe, subject, first, outcome);
        answer
    }

    pub(super) fn revision(&self) -> &str {
        &self.revision
    }

    /// How often the server has reported progress so far.
    pub(super) fn reports(&self) -> usize {
        let said = self.tap.transcript();
        let is_report = |bytes: &[u8]| memchr::memmem::find(bytes, b"\"notifications/progress\"").is_some();
        let from_server = said.frames.iter().filter(|frame| frame.direction == Direction::FromServer);
        let reports = from_server.filter(|frame| match &frame.body {
            FrameBody::Line { bytes, .. } | FrameBody::SseEvent { bytes, .. } => is_report(bytes.as_bytes()),
            _ => false,
        });
        reports.count()
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
        let methods = if self.is_modern() { ["server/discover", "tools/list"] } else { ["ping", "tools/list"] };
        // One that is silent about one thing may answer another.
        let mut left: Vec<&str> = methods.into_iter().filter(|method| !self.waits.is_silent(method)).collect();
        if left.is_empty() {
            left.push(methods[0]);
        }
        let last = left.len() - 1;
        for (index, method) in left.into_iter().enumerate() {
            let Some(patience) = self.patience(method) else { return false };
            let patience = patience.min(self.sign_of_life());
            let mut first = self.tap.mark();
            let mut outcome = patiently(method, patience, self.session.request(method, Some(Map::new()), NEVER)).await;
            for _ in 0..MOST_CONNECTIONS {
                let is_lost = matches!(&outcome, Err(failure) if !matches!(failure, CallFailure::TimedOut { .. }));
                if !is_lost || self.is_over() || !self.is_there().await {
                    break;
                }
                // The end of a connection is not the end of the server, and what a real client would do is to connect again.
                first = self.tap.mark();
                outcome = patiently(method, patience, self.session.request(method, Some(Map::new()), NEVER)).await;
            }
            match outcome {
                Err(CallFailure::TimedOut { after, .. }) if index < last => {
                    if self.waited_in_vain(method, first, after) == Waited::TooShort {
                        return false;
                    }
                }
                outcome => return self.conclude(&format!("{probe}-after"), None, method, first, outcome.map(Some)).is_some(),
            }
        }
        false
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
        // Where nothing may be asked any more, nothing is waited for.
        let patience = self.patience("").unwrap_or(Duration::from_millis(1));
        let first = self.tap.mark();
        let outcome = work(&self.session, patience).await;
        if self.time_left().is_zero() {
            self.left_out.get_or_insert(first);
        } else {
            self.note(probe, subject, first, ProbeOutcome::Done);
        }
        outcome
    }

    /// Requests that go out a few at a time, each with a progress token and cancelled after `limit`; after `until` no more are
    /// sent. What is still not answered then says nothing about the server, so that later requests are waited for as ever.
    pub(super) async fn flock(&mut self, birds: &[Bird], limit: Duration, until: Instant) -> Vec<Landed> {
        if !self.may_ask() {
            return vec![Landed { answer: None, took: Duration::ZERO }; birds.len()];
        }
        let until = until.min(self.until);
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
            params["_meta"]["progressToken"] = json!(format!("{FLOCK_TOKEN}{}", base + index));
            let outcome = session.request(bird.method, params.as_object().cloned(), patience).await;
            (index, Some((outcome, started.elapsed())))
        };
        let sent = futures_util::stream::iter(birds.iter().enumerate()).map(send);
        let outcomes: BTreeMap<usize, _> = sent.buffer_unordered(AT_ONCE).collect().await;
        let frames = self.frames_of_flock(first);
        if self.time_left().is_zero() {
            self.left_out.get_or_insert(first);
        }
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

    fn conclude(
        &mut self,
        probe: &str,
        subject: Option<&str>,
        method: &str,
        first: FrameId,
        outcome: Result<Option<Reply>, CallFailure>,
    ) -> Answered {
        let (answered, outcome) = match outcome {
            Ok(Some(reply)) => {
                self.silent_in_row = 0;
                // What is counted for `initialize` is the start.
                if method != "initialize" {
                    self.waits.answered(reply.elapsed);
                }
                (Some(reply.answer.map_err(|error| error.code)), ProbeOutcome::Done)
            }
            Ok(None) => (None, ProbeOutcome::Done),
            Err(CallFailure::TimedOut { after, .. }) => match self.waited_in_vain(method, first, after) {
                Waited::TooShort => return None,
                Waited::LongEnough => (None, ProbeOutcome::Silent),
            },
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
        if self.is_over() || self.left_work || !self.may_ask() {
            return (self.end().await, None);
        }
        let take = Take { transcript: self.extent.of(self.tap.transcript()), ..self.take() };
        self.extent.parted = self.tap.mark();
        (take, Some(self))
    }

    /// Ends the conversation, and the server if it is ours.
    pub(super) async fn end(mut self) -> Take {
        self.session.settle().await;
        if !self.session.settle_posts(POSTED.min(self.time_left())).await {
            // How long that was is told by the frames.
            self.tap.note("a POST has no whole response so far: it is not waited for any longer");
        }
        if self.left_work && self.inquiry.target.command().is_some() {
            // How it ends in the middle of its work is no fair question.
            self.session.signal(ProcessSignal::KILL);
            self.session.wait_for_exit(self.slowly(ENDING).terminate).await;
        }
        let (mut take, extent, patience) = (self.take(), self.extent, self.slowly(self.patience));
        let (ending, transcript) = end(self.session, &self.tap, patience).await;
        let is_fair = self.left_out.is_none() && !self.left_work;
        take.ending = ending.filter(|_| self.inquiry.target.command().is_some() && is_fair);
        take.transcript = extent.of(transcript);
        if extent.begun == FrameId(0) && died_unheard(&take.transcript) {
            self.inquiry.budget.died_at_start();
        }
        take
    }

    /// What was tried since the last take.
    fn take(&mut self) -> Take {
        self.may_ask();
        if let Some(first) = self.left_out {
            self.probes.push(left_out(self.inquiry, first));
        }
        Take {
            name: self.name.into(),
            transport: self.kind().to_string(),
            revision: self.revision.clone(),
            opened: self.opened.clone(),
            probes: std::mem::take(&mut self.probes),
            ending: None,
            sdks: Vec::new(),
            transcript: Transcript::default(),
        }
    }
}

/// What a wait for a response was worth that did not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    LongEnough,
    /// The time of the conversation ended it.
    TooShort,
}

/// Waits for the outcome of a request. One that is given up is not cancelled: its response may still come.
async fn patiently<T>(method: &str, patience: Duration, request: impl Future<Output = Result<T, CallFailure>>) -> Result<T, CallFailure> {
    let given_up = |_| Err(CallFailure::TimedOut { method: method.to_owned(), after: patience, stage: None });
    timeout(patience, request).await.unwrap_or_else(given_up)
}

/// Whether the deadline of the check left a start less time than is fair.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    Yes,
    No,
}

/// With what is left of the check's time.
fn in_time(inquiry: &Inquiry, options: &ConnectOptions) -> (ConnectOptions, Cut) {
    let most = options.timeout.unwrap_or(LONGEST_START);
    // Where conversations follow one another, another may want to try.
    let left = if is_beside_others(inquiry) { inquiry.budget.left() } else { inquiry.budget.left() / 2 };
    let start = match (options.era, inquiry.budget.other_era()) {
        (EraChoice::Modern, Some(other_era)) => inquiry.budget.start(most).min(other_era),
        _ => inquiry.budget.start(most),
    };
    let cut = if left < start.min(inquiry.budget.fair_start()) { Cut::Yes } else { Cut::No };
    (ConnectOptions { timeout: Some(start.min(left)), misled: Some(MISLED), ..options.clone() }, cut)
}

/// Over stdio conversations are held at the same time, if the server can run more than once; over HTTP one after the other.
fn is_beside_others(inquiry: &Inquiry) -> bool {
    matches!(inquiry.target, Target::Stdio(_)) && !inquiry.budget.is_one_at_a_time()
}

/// Whether a process ended by itself before it had said anything.
fn died_unheard(transcript: &Transcript) -> bool {
    for frame in &transcript.frames {
        match &frame.body {
            FrameBody::Exited { .. } => return true,
            FrameBody::Signalled { .. } => return false,
            FrameBody::Closed { pipe } if pipe == "stdin" && frame.direction == Direction::Local => return false,
            FrameBody::Line { .. } if frame.direction == Direction::FromServer => return false,
            _ => {}
        }
    }
    false
}

/// Why nothing was begun that there is no time for.
fn no_time() -> ConnectFailure {
    let failure = CallFailure::TimedOut { method: "initialize".into(), after: Duration::ZERO, stage: None };
    ConnectFailure::Unanswered { method: "initialize", failure, faults: Vec::new() }
}

pub(super) fn timed_out(failure: &ConnectFailure) -> bool {
    matches!(failure, ConnectFailure::Unanswered { failure: CallFailure::TimedOut { .. }, .. } | ConnectFailure::SseTimedOut { .. })
}

fn left_out(inquiry: &Inquiry, first: FrameId) -> Probed {
    left_out_because(inquiry.budget.reason(), first)
}

pub(super) fn left_out_because(reason: String, first: FrameId) -> Probed {
    Probed { probe: LEFT_OUT.into(), subject: Some(reason), first, end: first, outcome: ProbeOutcome::Done }
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
fn unopened(inquiry: &Inquiry, name: &str, revision: String, failure: &ConnectFailure, tap: &Tap, cut: Cut) -> Take {
    let is_starting = matches!(failure, ConnectFailure::NotListening { .. } | ConnectFailure::NotLocated { .. });
    let is_late = cut == Cut::Yes && (is_starting || timed_out(failure));
    let transcript = tap.transcript();
    if died_unheard(&transcript) {
        inquiry.budget.died_at_start();
    }
    Take {
        name: name.into(),
        transport: transport_after(inquiry, failure).to_string(),
        revision,
        opened: if is_late { Opened::Bare } else { Opened::No { reason: failure.to_string() } },
        probes: is_late.then(|| left_out(inquiry, FrameId(0))).into_iter().collect(),
        ending: None,
        sdks: Vec::new(),
        transcript,
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
