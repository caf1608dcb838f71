//! The explorer: one client of a check, in one conversation, with a list of what it tried. Whatever the server does, it continues as long
//! as requests can be sent, and never waits longer than its deadlines.

mod given_up;

use super::CheckOptions;
use super::budget::Waits;
use super::http;
use super::padding::without_padding;
use super::processor_waits::ProcessorWaits;
use super::progress_tokens::{ProgressTokens, number_in};
use super::readiness;
use futures_util::StreamExt as _;
use given_up::GivenUp;
pub(crate) use given_up::Rest;
use mcproof_analysis::diagnosis::sentence;
use mcproof_analysis::probes::{LEFT_OUT, TokenType};
use mcproof_client::{
    Beside, CallFailure, ClientProfile, ConnectFailure, ConnectOptions, HeaderCase, Headers, ListenFailure, ProcessSignal, RawHttpRequest,
    RawHttpResponse, Reply, Session, ShutdownTimeouts, SseFailure, Subscription, Tap, Target, WaitFor, open_bare, open_session,
    request_elsewhere,
};
use mcproof_protocol::{EraChoice, Revision, Transport, methods};
use mcproof_record::{Conversation, Direction, Ending, FrameBody, FrameId, Opened, ProbeOutcome, Probed, Transcript};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::LazyLock;
use std::thread::available_parallelism;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};
use url::Url;

/// How long a server may take to end after its stdin was closed, and after SIGTERM, before that is reported.
pub(super) const SHUTDOWN: ShutdownTimeouts = ShutdownTimeouts { end_of_input: Duration::from_secs(5), terminate: Duration::from_secs(5) };

/// The time for a server to respond after invalid input, in addition to what a slow server gets.
const SIGN_OF_LIFE: Duration = Duration::from_secs(4);

/// How often a server may take the time that its start and handshake took: so slow are it and the machine now.
const SLOWNESS: u32 = 4;

/// How long an HTTP request beside the protocol may take.
const HTTP: Duration = Duration::from_secs(5);

/// How long a place that the server named, or that may not be there, may take.
const ELSEWHERE: Duration = Duration::from_secs(2);

/// After this many requests in a row without a response, no more are sent.
const MOST_SILENT_IN_ROW: usize = 3;

/// A longer start does not predict the time of responses.
const SLOWEST_PACE: Duration = Duration::from_secs(4);

/// Longer than any wait of a check: deadlines end each of them.
const NEVER: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a subscription may take until it is acknowledged.
const MOST_FOR_AN_ACKNOWLEDGEMENT: Duration = Duration::from_secs(2);

/// New connections that are tried after the connection of the session has ended.
const MOST_CONNECTIONS: usize = 2;

/// Why nothing is said of a server that could not run.
const NO_PROCESSOR: &str = "the machine was too busy: the server waited for a processor";

/// Scheduler turns after which a dropped task is gone.
const TURNS_OF_THE_DROPPED: usize = 8;

/// Parallel requests that are in flight at the same time.
pub(super) const AT_ONCE: usize = 6;

/// How long a starting server may delay the start of the next.
const LONGEST_WAIT_FOR_START_SLOT: Duration = Duration::from_secs(1);

/// For the shutdown of a server where its manner is not judged.
const BRIEF_SHUTDOWN: ShutdownTimeouts = ShutdownTimeouts { end_of_input: Duration::from_millis(500), terminate: Duration::from_secs(1) };

/// How long a start may take by default.
const LONGEST_START: Duration = Duration::from_secs(30);

/// How long the right response may come after one with a wrong id.
const MISLED: Duration = Duration::from_secs(1);

/// How long the response to a notification may take on a new connection, whatever else is open.
const BESIDE_PATIENCE: Duration = Duration::from_secs(2);

/// How long the response to a POST over HTTP+SSE may take after everything else is done.
const POSTED: Duration = Duration::from_millis(2500);

/// For the end of a server where no time is left.
const SHUTDOWN_WITHOUT_TIME: ShutdownTimeouts =
    ShutdownTimeouts { end_of_input: Duration::from_millis(200), terminate: Duration::from_millis(300) };

/// What a legacy client says after the handshake.
pub(super) fn initialized() -> Value {
    json!({ "jsonrpc": "2.0", "method": methods::notifications::INITIALIZED })
}

/// What every POST to a server has, in the words of its transport.
pub(super) fn headers_of_post() -> Headers {
    let headers = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

pub(super) struct Explorer<'a> {
    pub(super) check_options: &'a CheckOptions,
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
    /// What comes from its frame on had no time.
    left_out: Option<Probed>,
    processor_waits: ProcessorWaits,
    /// Of parallel requests.
    progress_tokens: ProgressTokens,
    /// A call was given up that the server may still be busy with.
    unfinished_work: bool,
    /// Calls that were given up since the server was last seen to respond.
    owed: u32,
    /// The server was waited for in vain after such calls, and has not responded since.
    is_restless: bool,
    /// Requests that are sent once more before the conversation ends.
    given_up: Vec<GivenUp>,
    patience: ShutdownTimeouts,
    /// How long it took until there was a session.
    pace: Duration,
    frame_range: FrameRange,
    /// Released once the process has ended.
    turn: Option<OwnedSemaphorePermit>,
}

/// A failed `server/discover`.
pub(super) struct FailedDiscovery<'a> {
    pub(super) take: Conversation,
    pub(super) failure: ConnectFailure,
    /// The conversation, if there is one: its server still runs.
    pub(super) still: Option<Explorer<'a>>,
}

/// One of several requests that are sent in parallel.
#[derive(Clone, Debug)]
pub(super) struct ParallelRequest {
    pub(super) probe: &'static str,
    pub(super) subject: String,
    pub(super) method: &'static str,
    pub(super) params: Value,
}

/// The outcome of one parallel request.
#[derive(Clone, Debug)]
pub(super) struct ParallelOutcome {
    /// `None` if no response came in time, or the request was never sent.
    pub(super) response: ResponseOutcome,
    pub(super) took: Duration,
}

/// The result or error code of a response, as far as the next step of a client depends on it. Rules read the transcript.
pub(super) type ResponseOutcome = Option<Result<Value, i64>>;

/// Whether these capabilities have this, such as `tools` or `resources/subscribe`.
pub(super) fn is_declared(capabilities: &Value, path: &str) -> bool {
    capabilities.pointer(&format!("/{path}")).is_some_and(|value| !matches!(value, Value::Bool(false) | Value::Null))
}

impl<'a> Explorer<'a> {
    /// With a handshake of the era. A failed handshake yields a take as well.
    pub(super) async fn open(
        check_options: &'a CheckOptions,
        name: &'static str,
        options: ConnectOptions,
    ) -> Result<Self, Box<(Conversation, ConnectFailure)>> {
        let offered = match (&options.protocol_version, options.era) {
            (Some(version), _) => version.clone(),
            (None, EraChoice::Modern) => Revision::MODERN.as_str().to_owned(),
            (None, _) => Revision::LATEST_LEGACY.as_str().to_owned(),
        };
        let again = check_options.budget.has_started();
        match Self::try_to_open(check_options, name, &offered, &options).await {
            // That one start of several was slow is reported only if it happens again.
            Err(failed) if again && options.era != EraChoice::Modern && timed_out(&failed.1) => {
                Self::try_to_open(check_options, name, &offered, &options).await
            }
            opened => opened,
        }
    }

    async fn try_to_open(
        check_options: &'a CheckOptions,
        name: &'static str,
        offered: &str,
        options: &ConnectOptions,
    ) -> Result<Self, Box<(Conversation, ConnectFailure)>> {
        let tap = check_options.new_tap(name);
        if check_options.budget.left().is_zero() {
            let failure = no_time();
            return Err(Box::new((unopened(check_options, name, offered.to_owned(), &failure, &tap, CutShort::Yes), failure)));
        }
        let (alone, _turn) = (check_options.budget.turn().await, turn().await);
        let began = Instant::now();
        let (options, cut) = in_time(check_options, options);
        let opened = open_session(&check_options.target, &options, &tap).await;
        if options.era == EraChoice::Legacy && cut == CutShort::No {
            check_options.budget.shook_hands(opened.is_ok());
        }
        match opened {
            Ok(session) => {
                check_options.budget.started(began.elapsed());
                Ok(Self { turn: alone, ..Self::opened(check_options, session, tap, name, began.elapsed()) })
            }
            Err(failure) => {
                // What is left of a stream that was given up, such as an event without its end, is recorded when its task is
                // dropped: at its next turn.
                for _ in 0..TURNS_OF_THE_DROPPED {
                    tokio::task::yield_now().await;
                }
                Err(Box::new((unopened(check_options, name, offered.to_owned(), &failure, &tap, cut), failure)))
            }
        }
    }

    /// In the modern era, over stdio. A server that refuses to be discovered may be asked something else.
    /// Once `give_up` completes, a missing response is a failure.
    pub(super) async fn discover(
        check_options: &'a CheckOptions,
        name: &'static str,
        give_up: impl Future<Output = ()>,
    ) -> Result<Self, FailedDiscovery<'a>> {
        let tap = check_options.new_tap(name);
        let (options, cut) = in_time(check_options, &ConnectOptions { era: EraChoice::Modern, ..check_options.options.clone() });
        let offered = options.protocol_version.clone().unwrap_or_else(|| Revision::MODERN.as_str().to_owned());
        let (alone, _turn) = (check_options.budget.turn().await, turn().await);
        let began = Instant::now();
        let (failure, session) = match open_bare(&check_options.target, Transport::Stdio, &offered, &options, &tap).await {
            Ok(session) => {
                let discovered = tokio::select! {
                    discovered = session.discover(&options, &tap) => Some(discovered),
                    () = give_up => None,
                };
                match discovered {
                    Some(Ok(session)) => {
                        check_options.budget.started(began.elapsed());
                        return Ok(Self { turn: alone, ..Self::opened(check_options, session, tap, name, began.elapsed()) });
                    }
                    Some(Err(refused)) => {
                        let (failure, session) = *refused;
                        // A response that is late would come into the next conversation of this process.
                        let has_responded = !matches!(failure, ConnectFailure::Unanswered { .. });
                        (failure, has_responded.then_some(session))
                    }
                    None => {
                        let method = methods::SERVER_DISCOVER;
                        let failure = CallFailure::TimedOut { method: method.into(), after: began.elapsed(), stage: None };
                        (ConnectFailure::Unanswered { method, failure, faults: Vec::new() }, None)
                    }
                }
            }
            Err(failure) => (failure, None),
        };
        let take = unopened(check_options, name, offered.clone(), &failure, &tap, cut);
        let pace = began.elapsed();
        let still = session.map(|session| Self { pace, turn: alone, ..Self::of(check_options, session, tap, name, offered, Opened::Bare) });
        Err(FailedDiscovery { take, failure, still })
    }

    /// Another conversation with the process of one that came to nothing.
    pub(super) fn restarted_as(mut self, name: &'static str) -> Self {
        self.frame_range.begun = self.tap.mark();
        Self { name, probes: Vec::new(), ..self }
    }

    /// The handshake of the legacy era with an offer of this version. `None` if nothing came of it.
    pub(super) async fn propose(mut self, probe: &str, version: &str) -> Option<Self> {
        let patience = self.first_patience()?;
        let Self { check_options, session, tap, name, probes, pace, frame_range, waits, turn, .. } = self;
        let options =
            ConnectOptions { era: EraChoice::Legacy, timeout: Some(patience), misled: Some(MISLED), ..check_options.options.clone() };
        let first = tap.mark();
        let session = session.propose(version, &options, &tap).await.ok()?;
        let explorer = Self::opened(check_options, session, tap, name, pace);
        let mut explorer =
            Self { probes, waits, turn, frame_range: FrameRange { begun: frame_range.begun, ..explorer.frame_range }, ..explorer };
        explorer.record_probe(probe, Some(version), first, ProbeOutcome::Done);
        Some(explorer)
    }

    fn opened(check_options: &'a CheckOptions, session: Session, tap: Tap, name: &'static str, pace: Duration) -> Self {
        let revision = session.handshake().protocol_version.clone();
        check_options.detected_sdks.look(&session);
        Self { patience: SHUTDOWN, pace, ..Self::of(check_options, session, tap, name, revision, Opened::Yes) }
    }

    /// Without a handshake.
    pub(super) async fn bare(
        check_options: &'a CheckOptions,
        name: &'static str,
        kind: Transport,
        version: &str,
    ) -> Result<Self, ConnectFailure> {
        let tap = check_options.new_tap(name);
        if check_options.budget.left().is_zero() {
            return Err(no_time());
        }
        let turn = check_options.budget.turn().await;
        let session = open_bare(&check_options.target, kind, version, &in_time(check_options, &check_options.options).0, &tap).await?;
        let was_awaited = readiness::await_process(check_options, &session).await;
        let mut explorer = Self { turn, ..Self::of(check_options, session, tap, name, version.to_owned(), Opened::Bare) };
        if was_awaited {
            explorer.frame_range.begun = explorer.tap.mark();
        }
        Ok(explorer)
    }

    fn of(check_options: &'a CheckOptions, session: Session, tap: Tap, name: &'static str, revision: String, opened: Opened) -> Self {
        let (probes, patience, pace) = (Vec::new(), BRIEF_SHUTDOWN, Duration::ZERO);
        let frame_range = FrameRange { begun: FrameId(0), greeted: tap.mark(), parted: tap.mark() };
        let (waits, until) = match is_beside_others(check_options) {
            true => (check_options.budget.beside_others(), check_options.budget.end()),
            false => (check_options.budget.one_by_one(), check_options.budget.share()),
        };
        let processor_waits = ProcessorWaits::of(session.process_id());
        Self {
            check_options,
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
            processor_waits,
            progress_tokens: ProgressTokens::beginning_with(TokenType::Number),
            unfinished_work: false,
            owed: 0,
            is_restless: false,
            given_up: Vec::new(),
            patience,
            pace,
            frame_range,
            turn: None,
        }
    }

    /// In an era that the server speaks.
    pub(super) async fn open_in(
        check_options: &'a CheckOptions,
        name: &'static str,
        era: EraChoice,
    ) -> Result<Self, Box<(Conversation, ConnectFailure)>> {
        Self::open(check_options, name, ConnectOptions { era, ..check_options.options.clone() }).await
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    pub(super) fn kind(&self) -> Transport {
        self.session.handshake().transport
    }

    /// Whether a request may still be sent: there is time left, and the server still responds.
    fn may_send(&mut self) -> bool {
        if self.left_out.is_none() && Instant::now() >= self.until {
            self.leave_out_from(self.tap.mark());
        }
        self.left_out.is_none() && self.silent_in_row < MOST_SILENT_IN_ROW
    }

    /// How long a response to a request of this method is waited for; `None` if it is not to be sent.
    fn patience(&mut self, method: &str) -> Option<Duration> {
        if !self.may_send() {
            return None;
        }
        let patience = self.waits.patience(method, self.pace.min(SLOWEST_PACE))?.min(self.check_options.timeout);
        // Over stdio the first response of a conversation waits for the start of a process: silence until then is no evidence.
        let is_starting = self.kind() == Transport::Stdio && !self.has_sent();
        let patience = if is_starting { self.start(patience) } else { patience };
        Some(patience.min(self.time_left()))
    }

    /// How long a server that may still be starting is waited for.
    fn start(&self, patience: Duration) -> Duration {
        self.check_options.options.timeout.map_or(patience, |most| self.check_options.budget.start(most).max(patience))
    }

    /// The same for a request that is the first: what it waits for is the start of the server as well.
    fn first_patience(&mut self) -> Option<Duration> {
        let patience = self.patience(methods::INITIALIZE)?;
        if self.has_sent() {
            return Some(patience);
        }
        Some(self.start(patience).min(self.time_left()))
    }

    /// Whether the server has sent anything in this conversation: then it has started.
    fn has_sent(&self) -> bool {
        let mut frames = (self.frame_range.begun.0..self.tap.mark().0).rev().filter_map(|id| self.tap.frame(FrameId(id)));
        frames.any(|frame| {
            frame.direction == Direction::FromServer && matches!(frame.body, FrameBody::Line { .. } | FrameBody::HttpResponse { .. })
        })
    }

    fn time_left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// What a wait that ended without a response tells: that there was no time, or that the server is silent.
    fn record_silence(&mut self, method: &str, first: FrameId, after: Duration) -> Wait {
        if Instant::now() >= self.until {
            self.leave_out_from(first);
            return Wait::TooShort;
        }
        if self.processor_waits.are_most_of(after) {
            self.left_out.get_or_insert_with(|| left_out_because(NO_PROCESSOR.to_owned(), first));
            return Wait::TooShort;
        }
        self.waits.was_silent(method, after);
        self.silent_in_row += 1;
        // The frames show how long that was.
        self.tap.note(format!("no response to `{method}` so far; the wait has ended"));
        Wait::LongEnough
    }

    /// There is no time for what comes from this frame on.
    fn leave_out_from(&mut self, first: FrameId) {
        self.left_out.get_or_insert_with(|| left_out(self.check_options, first));
    }

    /// How long it took until there was a session: so slow are the server and the machine.
    pub(super) fn pace(&self) -> Duration {
        self.pace
    }

    /// The method of a request for which any will do that every server has.
    pub(super) fn any_method(&self) -> &'static str {
        match (self.check_options.budget.lists_many(), self.is_modern()) {
            (false, _) => methods::TOOLS_LIST,
            (true, false) => methods::PING,
            (true, true) => methods::SERVER_DISCOVER,
        }
    }

    /// Whether the server has left any request without a response.
    pub(super) fn was_silent(&self) -> bool {
        self.waits.was_ever_silent()
    }

    /// The time for a server to respond after invalid input.
    pub(super) fn sign_of_life(&self) -> Duration {
        SIGN_OF_LIFE + self.pace.min(SLOWEST_PACE) * SLOWNESS
    }

    /// Whether the server is reachable: one that listens may have exited since the last conversation.
    pub(super) async fn is_reachable(&self) -> bool {
        matches!(self.kind(), Transport::Stdio | Transport::InMemory) || self.session.takes_connections(self.sign_of_life()).await
    }

    fn scaled_to_pace(&self, patience: ShutdownTimeouts) -> ShutdownTimeouts {
        if self.left_out.is_some() || self.time_left().is_zero() {
            return SHUTDOWN_WITHOUT_TIME;
        }
        let more = self.pace.min(SLOWEST_PACE) * SLOWNESS;
        ShutdownTimeouts { end_of_input: patience.end_of_input + more, terminate: patience.terminate + more }
    }

    /// Whether no more requests can be sent.
    pub(super) fn is_over(&self) -> bool {
        self.session.closed_because().is_some() || self.left_out.is_some() || Instant::now() >= self.until
    }

    /// A request as a client of the era makes it.
    pub(super) async fn send_request(&mut self, probe: &str, subject: Option<&str>, method: &str, params: Value) -> ResponseOutcome {
        self.come_to_rest().await;
        let patience = self.patience(method)?;
        let first = self.tap.mark();
        let members = params.as_object().cloned();
        let outcome = with_patience(method, patience, self.session.request(method, members, NEVER)).await;
        let response = self.conclude(probe, subject, method, first, outcome.map(Some));
        if response.is_none() {
            if method == methods::TOOLS_CALL && self.was_last_silent(probe) {
                self.give_up_call(params, first, patience);
            }
            http::examine_connections(self, first).await;
        }
        response
    }

    /// A call was given up that the server may still be busy with.
    pub(super) fn mark_unfinished_work(&mut self) {
        self.unfinished_work = true;
    }

    /// Whether as much again can be kept of the conversation as there is: what is repeated for its own sake is not to crowd out the rest.
    pub(super) fn has_room(&self) -> bool {
        self.tap.kept_bytes() < self.check_options.tap.bytes / 2
    }

    /// With most of the time that is left, for what takes longest.
    pub(super) fn with_most_of_time(mut self) -> Self {
        if !is_beside_others(self.check_options) {
            self.until = Instant::now() + self.check_options.budget.left() * 3 / 5;
        }
        self
    }

    /// That is no main conversation, whose end would be judged: it is not to take long.
    pub(super) fn with_brief_shutdown(mut self) -> Self {
        self.patience = BRIEF_SHUTDOWN;
        self
    }

    /// A message as it stands, with the id in it. A request waits for its response.
    pub(super) async fn send(&mut self, probe: &str, subject: Option<&str>, message: Value) -> ResponseOutcome {
        self.send_within(None, probe, subject, message).await
    }

    /// The same for what a sound server answers at once.
    pub(super) async fn send_briefly(&mut self, probe: &str, subject: &str, message: Value) -> ResponseOutcome {
        self.send_within(Some(self.sign_of_life()), probe, Some(subject), message).await
    }

    /// Waits no longer than `most`, nor than a request of its method may take.
    async fn send_within(&mut self, most: Option<Duration>, probe: &str, subject: Option<&str>, message: Value) -> ResponseOutcome {
        self.come_to_rest().await;
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let usual = self.patience(&method)?;
        let first = self.tap.mark();
        let patience = most.map_or(usual, |most| usual.min(most));
        let outcome = self.session.send_message(message.as_object().unwrap_or(&Map::new()), patience).await;
        let response = self.conclude(probe, subject, &method, first, outcome);
        if response.is_none() {
            http::examine_connections(self, first).await;
        }
        response
    }

    /// The text of a request as it stands, its line end included, which a sound server answers at once.
    pub(super) async fn send_spelled(&mut self, probe: &str, subject: &str, method: &str, text: String) -> ResponseOutcome {
        self.come_to_rest().await;
        let patience = self.patience(method)?.min(self.sign_of_life());
        let first = self.tap.mark();
        let outcome = self.session.send_bytes(text.into_bytes(), WaitFor::Answer, patience).await;
        let response = self.conclude(probe, Some(subject), method, first, outcome);
        if response.is_none() {
            http::examine_connections(self, first).await;
        }
        response
    }

    /// A request as it stands, as a line that is written in two pieces: the second one begins with the byte `at`.
    pub(super) async fn send_in_two(&mut self, probe: &str, message: &Value, at: usize) -> ResponseOutcome {
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let patience = self.patience(&method)?.min(self.sign_of_life());
        let first = self.tap.mark();
        let outcome = self.session.send_in_two(message.as_object()?, at, patience).await;
        self.conclude(probe, None, &method, first, outcome)
    }

    /// A request of the era as it stands, for an id of the caller's.
    pub(super) fn build_request(&self, id: Value, method: &str, params: Value) -> Value {
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
    pub(super) fn build_message(&self, method: &str, params: Value) -> Value {
        self.build_request(json!(format!("mcproof-{}", self.probes.len())), method, params)
    }

    /// Whether the server declared this, such as `tools` or `resources/subscribe`.
    pub(super) fn declares(&self, path: &str) -> bool {
        is_declared(&self.session.handshake().capabilities, path)
    }

    /// A POST of a message with the headers of the caller's and no others, their names in this spelling. Over HTTP only.
    pub(super) async fn post(&mut self, probe: &str, subject: &str, message: &Value, headers: Headers, spelling: HeaderCase) {
        let body = message.to_string().into_bytes();
        let http_request = RawHttpRequest { method: "POST".into(), path: None, headers, body, ..RawHttpRequest::default() };
        let method = message["method"].as_str().unwrap_or_default();
        let Some(patience) = self.patience(method) else { return };
        let first = self.tap.mark();
        let Some(outcome) = self.session.ask_over_http_spelled(&http_request, spelling, patience).await else { return };
        let outcome = match outcome {
            Ok(_) => ProbeOutcome::Done,
            Err(CallFailure::TimedOut { after, .. }) => match self.record_silence(method, first, after) {
                Wait::TooShort => return,
                Wait::LongEnough => ProbeOutcome::Silent,
            },
            Err(_) => ProbeOutcome::Gone,
        };
        self.record_probe(probe, Some(subject), first, outcome);
    }

    /// Listens for what the filter names, at most for `hold` after the acknowledgement, and cancels then.
    pub(super) async fn listen(&mut self, probe: &str, filter: Map<String, Value>, hold: Duration) {
        let first = self.tap.mark();
        let Some((subscription, outcome)) = self.open_subscription(filter).await else { return };
        if let Some(mut subscription) = subscription {
            let end = self.until.min(Instant::now() + hold);
            while subscription.next(end.saturating_duration_since(Instant::now())).await.is_ok() {}
            subscription.close();
        }
        self.record_probe(probe, None, first, outcome);
    }

    /// Listens for what the filter names until the subscription is dropped. `None` if it was not acknowledged.
    pub(super) async fn subscribe(&mut self, probe: &str, filter: Map<String, Value>) -> Option<Subscription> {
        let first = self.tap.mark();
        let (subscription, outcome) = self.open_subscription(filter).await?;
        self.record_probe(probe, None, first, outcome);
        subscription
    }

    /// `None` if it could not be tried.
    async fn open_subscription(&mut self, filter: Map<String, Value>) -> Option<(Option<Subscription>, ProbeOutcome)> {
        let deadline = self.patience(methods::SUBSCRIPTIONS_LISTEN)?.min(MOST_FOR_AN_ACKNOWLEDGEMENT);
        let first = self.tap.mark();
        // Without its type, as what a check awaits is nested deeply.
        let listening: Pin<Box<dyn Future<Output = Result<Subscription, ListenFailure>> + Send + '_>> =
            Box::pin(self.session.listen(filter, deadline));
        let listened = listening.await;
        Some(match listened {
            Ok(subscription) => (Some(subscription), ProbeOutcome::Done),
            Err(ListenFailure::Call(CallFailure::TimedOut { after, .. })) => {
                match self.record_silence(methods::SUBSCRIPTIONS_LISTEN, first, after) {
                    Wait::TooShort => return None,
                    Wait::LongEnough => (None, ProbeOutcome::Silent),
                }
            }
            Err(ListenFailure::Call(_)) => (None, ProbeOutcome::Gone),
            Err(_) => (None, ProbeOutcome::Done),
        })
    }

    /// A message as it stands, without waiting for a response.
    pub(super) async fn send_without_wait(&mut self, probe: &str, message: Value) {
        let mut bytes = message.to_string().into_bytes();
        bytes.push(b'\n');
        self.bytes(probe, bytes).await;
    }

    /// `initialize` with this version, and `notifications/initialized` if the response is a result.
    pub(super) async fn initialize(&mut self, probe: &str, version: &str) -> ResponseOutcome {
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
            if Revision::at(version).has_version_header() {
                headers.push(("mcp-protocol-version".into(), version.to_owned()));
            }
            let id = http.as_ref().and_then(|head| head.header("mcp-session-id"));
            headers.extend(id.map(|id| ("mcp-session-id".to_owned(), id.to_owned())));
            self.session.set_headers(headers);
            let initialized = initialized();
            // Whether it was taken shows in the transcript.
            let _ = self.session.send_message(initialized.as_object().unwrap_or(&Map::new()), patience).await;
        }
        self.conclude(probe, Some(version), methods::INITIALIZE, first, outcome)
    }

    /// Something that was seen beside the conversation: the subject says what.
    pub(super) fn record_observation(&mut self, probe: &str, what: &str) {
        let now = self.tap.mark();
        self.record_probe(probe, Some(what), now, ProbeOutcome::Done);
    }

    /// Tools of which some calls with the usual arguments got no response in time, and others did.
    pub(super) fn silent_at_times(&self) -> BTreeSet<String> {
        const USUAL: [&str; 6] = ["call", "call-again", "call-repeated", "call-slow", "call-usual", "call-with-logs"];
        let of = |wanted: ProbeOutcome| {
            let calls = self.probes.iter().filter(move |probed| USUAL.contains(&probed.probe.as_str()) && probed.outcome == wanted);
            calls.filter_map(|probed| probed.subject.clone()).collect::<BTreeSet<_>>()
        };
        of(ProbeOutcome::Silent).intersection(&of(ProbeOutcome::Done)).cloned().collect()
    }

    /// What was tried last was another probe as well.
    pub(super) fn record_also_as(&mut self, probe: &str) {
        if let Some(last) = self.probes.last().cloned() {
            self.probes.push(Probed { probe: probe.into(), ..last });
        }
    }

    /// A signal to the server, and the wait for its end. A server that listens gets it alone, without its children, as from a
    /// supervisor.
    pub(super) async fn signal(&mut self, probe: &str, signal: ProcessSignal) {
        if !self.may_send() {
            return;
        }
        let first = self.tap.mark();
        match self.kind() {
            Transport::Http | Transport::Sse => self.session.signal_alone(signal),
            Transport::Stdio | Transport::InMemory => self.session.signal(signal),
        };
        let patience = self.scaled_to_pace(SHUTDOWN).terminate;
        let exit = self.session.wait_for_exit(patience.min(self.time_left())).await;
        match exit {
            Some(_) => self.record_probe(probe, None, first, ProbeOutcome::Done),
            None if self.time_left().is_zero() => self.leave_out_from(first),
            None => self.record_probe(probe, None, first, ProbeOutcome::Silent),
        }
    }

    /// Bytes as they stand, without an expected response.
    pub(super) async fn bytes(&mut self, probe: &str, bytes: impl Into<Vec<u8>>) {
        if !self.may_send() {
            return;
        }
        let first = self.tap.mark();
        let outcome = self.session.send_bytes(bytes.into(), WaitFor::Nothing, self.sign_of_life().min(self.time_left())).await;
        self.conclude(probe, None, "", first, outcome);
    }

    /// An HTTP request beside the protocol.
    pub(super) async fn http(&mut self, probe: &str, subject: Option<&str>, http_request: &RawHttpRequest) -> Option<RawHttpResponse> {
        let patience = self.patience(&http_request.method)?.min(HTTP);
        let first = self.tap.mark();
        let outcome = self.session.ask_over_http(http_request, patience).await?;
        self.conclude_http(probe, subject, first, outcome, Some(&http_request.method))
    }

    /// An HTTP request that this client gives up by itself, answered or not.
    pub(super) async fn http_within(&mut self, probe: &str, http_request: &RawHttpRequest, patience: Duration) -> Option<RawHttpResponse> {
        if !self.may_send() {
            return None;
        }
        let first = self.tap.mark();
        let outcome = self.session.ask_over_http(http_request, patience).await?;
        self.conclude_http(probe, None, first, outcome, None)
    }

    pub(super) fn speaks_http2(&self) -> bool {
        self.session.speaks_http2()
    }

    /// An HTTP request that this client leaves alone at once: after the other tasks had so many turns, which is sooner than
    /// any clock could tell.
    pub(super) async fn http_left(&mut self, probe: &str, http_request: &RawHttpRequest, turns: usize) {
        if !self.may_send() {
            return;
        }
        let first = self.tap.mark();
        let leave = async {
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            _ = self.session.ask_over_http(http_request, HTTP) => {}
            () = leave => {}
        }
        self.record_probe(probe, None, first, ProbeOutcome::Silent);
    }

    /// An HTTP request beside an open connection, which had its response: to a request for a stream, or else to the same. Recorded as silence
    /// if the other one got its response only when the first connection was closed, or none.
    pub(super) async fn http_beside(
        &mut self,
        probe: &str,
        stream: Option<&RawHttpRequest>,
        http_request: &RawHttpRequest,
    ) -> Option<Beside> {
        if !self.may_send() {
            return None;
        }
        let first = self.tap.mark();
        let beside = self.session.ask_beside(stream, http_request, BESIDE_PATIENCE.min(self.time_left())).await?;
        let outcome = match beside {
            Beside::Served => ProbeOutcome::Done,
            Beside::ServedAfterClose | Beside::NotServed | Beside::NoneServed => ProbeOutcome::Silent,
            Beside::Broken => ProbeOutcome::Gone,
        };
        self.record_probe(probe, None, first, outcome);
        Some(beside)
    }

    /// Whether this was tried last, and got no response.
    pub(super) fn was_last_silent(&self, probe: &str) -> bool {
        self.probes.last().is_some_and(|last| last.probe == probe && last.outcome == ProbeOutcome::Silent)
    }

    /// Two HTTP requests on one connection, unless the server is known to take one only.
    pub(super) async fn http_in_row(&mut self, probe: &str, http_requests: [&RawHttpRequest; 2]) -> Option<RawHttpResponse> {
        if self.check_options.budget.reuse().is_some() {
            return None;
        }
        let patience = self.patience(&http_requests[0].method)?.min(HTTP);
        let first = self.tap.mark();
        let outcome = self.session.ask_in_row(http_requests, patience).await?;
        self.conclude_http(probe, None, first, outcome, Some(&http_requests[0].method))
    }

    /// An HTTP request to whatever place, which gets nothing of this session.
    pub(super) async fn http_elsewhere(&mut self, probe: &str, url: &Url, http_request: &RawHttpRequest) -> Option<RawHttpResponse> {
        if !self.may_send() {
            return None;
        }
        let first = self.tap.mark();
        let outcome = request_elsewhere(url, http_request, &self.check_options.options, &self.tap, ELSEWHERE).await;
        self.conclude_http(probe, Some(url.as_str()), first, outcome, None)
    }

    /// `waited_for` names the HTTP method where the wait was as long as a server can ask for.
    fn conclude_http(
        &mut self,
        probe: &str,
        subject: Option<&str>,
        first: FrameId,
        outcome: Result<RawHttpResponse, CallFailure>,
        waited_for: Option<&str>,
    ) -> Option<RawHttpResponse> {
        let (response, outcome) = match outcome {
            Ok(response) => {
                self.silent_in_row = 0;
                self.is_restless = false;
                (Some(response), ProbeOutcome::Done)
            }
            Err(CallFailure::TimedOut { after, .. }) => {
                if let Some(method) = waited_for
                    && self.record_silence(method, first, after) == Wait::TooShort
                {
                    return None;
                }
                (None, ProbeOutcome::Silent)
            }
            Err(_) => (None, ProbeOutcome::Gone),
        };
        self.record_probe(probe, subject, first, outcome);
        response
    }

    pub(super) fn revision(&self) -> &str {
        &self.revision
    }

    /// How often the server has reported progress so far.
    pub(super) fn progress_count(&self) -> usize {
        let wire_message = self.tap.transcript();
        let is_report = |bytes: &[u8]| memchr::memmem::find(bytes, b"\"notifications/progress\"").is_some();
        let from_server = wire_message.frames.iter().filter(|frame| frame.direction == Direction::FromServer);
        let reports = from_server.filter(|frame| match &frame.body {
            FrameBody::Line { bytes, .. } | FrameBody::SseEvent { bytes, .. } => is_report(bytes.as_bytes()),
            _ => false,
        });
        reports.count()
    }

    /// How many things have been tried so far.
    pub(super) fn probe_count(&self) -> usize {
        self.probes.len()
    }

    /// The frame that comes next.
    pub(super) fn mark(&self) -> FrameId {
        self.tap.mark()
    }

    /// What has been seen so far.
    pub(super) fn transcript(&self) -> Transcript {
        self.tap.transcript()
    }

    /// Whether the server still responds; recorded as the probe `PROBE-after`.
    pub(super) async fn is_alive_after(&mut self, probe: &str) -> bool {
        self.come_to_rest().await;
        let methods = if self.is_modern() { [methods::SERVER_DISCOVER, methods::TOOLS_LIST] } else { [methods::PING, methods::TOOLS_LIST] };
        // One that is silent about one thing may respond to another.
        let mut left: Vec<&str> = methods.into_iter().filter(|method| !self.waits.is_silent(method)).collect();
        if left.is_empty() {
            left.push(methods[0]);
        }
        let last = left.len() - 1;
        for (index, method) in left.into_iter().enumerate() {
            let Some(patience) = self.patience(method) else { return false };
            let patience = patience.min(self.sign_of_life());
            let mut first = self.tap.mark();
            let mut outcome = with_patience(method, patience, self.session.request(method, Some(Map::new()), NEVER)).await;
            for _ in 0..MOST_CONNECTIONS {
                let is_lost = matches!(&outcome, Err(failure) if !matches!(failure, CallFailure::TimedOut { .. }));
                if !is_lost || self.is_over() || !self.is_reachable().await {
                    break;
                }
                // The end of a connection is not the end of the server, and what a real client would do is to connect again.
                first = self.tap.mark();
                outcome = with_patience(method, patience, self.session.request(method, Some(Map::new()), NEVER)).await;
            }
            match outcome {
                Err(CallFailure::TimedOut { after, .. }) if index < last => {
                    if self.record_silence(method, first, after) == Wait::TooShort {
                        return false;
                    }
                }
                outcome => return self.conclude(&format!("{probe}-after"), None, method, first, outcome.map(Some)).is_some(),
            }
        }
        false
    }

    /// As [`Session::input_for`].
    pub(super) async fn input_for(&self, result: &Value) -> Option<Map<String, Value>> {
        self.session.input_for(result).await
    }

    pub(super) fn is_modern(&self) -> bool {
        Revision::at(&self.revision) >= Revision::MODERN
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
        self.come_to_rest().await;
        // Where nothing may be asked any more, nothing is waited for.
        let patience = self.patience("").unwrap_or(Duration::from_millis(1));
        let first = self.tap.mark();
        let outcome = work(&self.session, patience).await;
        if self.time_left().is_zero() {
            self.leave_out_from(first);
        } else {
            self.record_probe(probe, subject, first, ProbeOutcome::Done);
        }
        outcome
    }

    /// Requests that go out a few at a time, each with a progress token and cancelled after `limit`; after `until` no more are
    /// sent. A missing response is not held against the server: later requests have their usual timeout.
    pub(super) async fn request_in_parallel(
        &mut self,
        requests: &[ParallelRequest],
        limit: Duration,
        until: Instant,
    ) -> Vec<ParallelOutcome> {
        // What the server still has to do is not taken from the time of these.
        let until = until + self.come_to_rest().await.waited();
        if !self.may_send() {
            return vec![ParallelOutcome { response: None, took: Duration::ZERO }; requests.len()];
        }
        let until = until.min(self.until);
        let first = self.tap.mark();
        let tokens: Vec<(usize, Value)> = requests.iter().map(|request| self.progress_tokens.next(&request.params)).collect();
        let session = &self.session;
        let send = async |(index, request): (usize, &ParallelRequest)| {
            let started = Instant::now();
            let patience = limit.min(until.saturating_duration_since(started));
            if patience.is_zero() {
                return (index, None);
            }
            let mut params = request.params.clone();
            params["_meta"]["progressToken"] = tokens[index].1.clone();
            let outcome = session.request(request.method, params.as_object().cloned(), patience).await;
            (index, Some((outcome, started.elapsed())))
        };
        let sent = futures_util::stream::iter(requests.iter().enumerate()).map(send);
        let outcomes: BTreeMap<usize, _> = sent.buffer_unordered(AT_ONCE).collect().await;
        let frames = self.frames_of_parallel_requests(first);
        if self.time_left().is_zero() {
            self.leave_out_from(first);
        }
        let mut results = Vec::new();
        for (request, (index, outcome)) in requests.iter().zip(outcomes) {
            let Some((outcome, took)) = outcome else {
                results.push(ParallelOutcome { response: None, took: Duration::ZERO });
                continue;
            };
            let (response, outcome) = match outcome {
                Ok(reply) => (Some(reply.answer.map_err(|error| error.code)), ProbeOutcome::Done),
                Err(CallFailure::TimedOut { .. }) => (None, ProbeOutcome::Silent),
                Err(_) => (None, ProbeOutcome::Gone),
            };
            self.unfinished_work |= outcome == ProbeOutcome::Silent;
            self.is_restless &= outcome != ProbeOutcome::Done;
            let has_responded = response.as_ref().is_some_and(|answer| !given_up::is_refused(request, answer));
            if has_responded && request.method == methods::TOOLS_CALL {
                self.waits.called(request.params["name"].as_str().unwrap_or_default(), took);
            }
            if let Some(frame) = frames.get(&tokens[index].0).copied() {
                let (probe, subject) = (request.probe.into(), Some(request.subject.clone()));
                self.probes.push(Probed { probe, subject, first: frame, end: FrameId(frame.0 + 1), outcome });
                if outcome == ProbeOutcome::Silent {
                    self.give_up(request, frame, Some(tokens[index].0), took);
                }
            }
            results.push(ParallelOutcome { response, took });
        }
        results
    }

    /// The frames of the parallel requests since a frame, by the number in their progress token.
    fn frames_of_parallel_requests(&self, first: FrameId) -> BTreeMap<usize, FrameId> {
        let sent = (first.0..self.tap.mark().0).filter_map(|id| self.tap.frame(FrameId(id)));
        sent.filter(|frame| frame.direction == Direction::ToServer)
            .filter_map(|frame| match &frame.body {
                FrameBody::Line { bytes, .. } | FrameBody::HttpRequest { body: bytes, .. } => {
                    Some((number_in(bytes.as_bytes())?, frame.id))
                }
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
    ) -> ResponseOutcome {
        let (answered, outcome) = match outcome {
            Ok(Some(reply)) => {
                self.silent_in_row = 0;
                self.is_restless = false;
                // What is counted for `initialize` is the start.
                if method != methods::INITIALIZE {
                    self.waits.answered(reply.elapsed);
                }
                (Some(reply.answer.map_err(|error| error.code)), ProbeOutcome::Done)
            }
            Ok(None) => (None, ProbeOutcome::Done),
            Err(CallFailure::TimedOut { after, .. }) => match self.record_silence(method, first, after) {
                Wait::TooShort => return None,
                Wait::LongEnough => (None, ProbeOutcome::Silent),
            },
            Err(_) => (None, ProbeOutcome::Gone),
        };
        self.record_probe(probe, subject, first, outcome);
        answered
    }

    fn record_probe(&mut self, probe: &str, subject: Option<&str>, first: FrameId, outcome: ProbeOutcome) {
        let end = self.tap.mark();
        self.probes.push(Probed { probe: probe.into(), subject: subject.map(str::to_owned), first, end, outcome });
    }

    /// Parallel requests have a text as their progress token at first, no number.
    pub(super) fn with_texts_as_tokens_first(self) -> Self {
        Self { progress_tokens: ProgressTokens::beginning_with(TokenType::Text), ..self }
    }

    /// The same process, in a conversation of another kind.
    pub(super) fn renamed(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// No request stays without a response that nobody looked for again.
    async fn settle_given_up(&mut self) {
        if !self.given_up.is_empty() {
            // Without its type, which would be a part of whatever ends a conversation.
            let again: Pin<Box<dyn Future<Output = ()> + Send + '_>> = Box::pin(self.send_given_up_again());
            again.await;
        }
    }

    /// What was tried so far, as a take. The conversation goes on, as another take, unless the server is not well: then it ends.
    pub(super) async fn hand_over(mut self) -> (Conversation, Option<Self>) {
        self.settle_given_up().await;
        if self.is_over() || self.unfinished_work || !self.may_send() {
            return (self.end().await, None);
        }
        let take = Conversation { transcript: self.frame_range.of(self.tap.transcript()), ..self.take() };
        self.frame_range.parted = self.tap.mark();
        (take, Some(self))
    }

    /// Ends the conversation, and the server if it is ours.
    pub(super) async fn end(mut self) -> Conversation {
        self.settle_given_up().await;
        self.session.settle().await;
        if !self.session.settle_posts(POSTED.min(self.time_left())).await {
            // The frames show how long that was.
            self.tap.note("a POST has no complete response so far; the wait has ended");
        }
        if self.unfinished_work && self.check_options.target.command().is_some() {
            // How it ends in the middle of its work is not a fair test.
            self.session.signal(ProcessSignal::KILL);
            self.session.wait_for_exit(self.scaled_to_pace(SHUTDOWN).terminate).await;
        }
        let (mut take, frame_range, patience) = (self.take(), self.frame_range, self.scaled_to_pace(self.patience));
        let (ending, transcript) = end(self.session, &self.tap, patience).await;
        let is_fair = self.left_out.is_none() && !self.unfinished_work;
        take.ending = ending.filter(|_| self.check_options.target.command().is_some() && is_fair);
        take.transcript = frame_range.of(transcript);
        if frame_range.begun == FrameId(0) && exited_before_output(&take.transcript) {
            self.check_options.budget.died_at_start();
        }
        take
    }

    /// What was tried since the last take.
    fn take(&mut self) -> Conversation {
        self.may_send();
        self.probes.extend(self.left_out.clone());
        let clean = |probed: Probed| Probed { subject: probed.subject.map(|subject| self.tap.redacted(subject)), ..probed };
        let probes = std::mem::take(&mut self.probes).into_iter().map(clean).collect();
        Conversation {
            name: self.name.into(),
            transport: self.kind().to_string(),
            revision: self.revision.clone(),
            opened: self.opened.clone(),
            probes,
            ending: None,
            sdks: Vec::new(),
            transcript: Transcript::default(),
        }
    }
}

/// What a wait for a response was worth that did not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    LongEnough,
    /// The time of the conversation ended it.
    TooShort,
}

/// Waits for the outcome of a request. One that is given up is not cancelled: its response may still come.
async fn with_patience<T>(
    method: &str,
    patience: Duration,
    request: impl Future<Output = Result<T, CallFailure>>,
) -> Result<T, CallFailure> {
    let given_up = |_| Err(CallFailure::TimedOut { method: method.to_owned(), after: patience, stage: None });
    timeout(patience, request).await.unwrap_or_else(given_up)
}

/// Whether the deadline of the check left a start less time than is fair.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CutShort {
    Yes,
    No,
}

/// With what is left of the check's time.
fn in_time(check_options: &CheckOptions, options: &ConnectOptions) -> (ConnectOptions, CutShort) {
    let most = options.timeout.unwrap_or(LONGEST_START);
    // Where conversations follow one another, another may want to try.
    let left = if is_beside_others(check_options) { check_options.budget.left() } else { check_options.budget.left() / 2 };
    let start = match (options.era, check_options.budget.other_era()) {
        (EraChoice::Modern, Some(other_era)) => check_options.budget.start(most).min(other_era),
        _ => check_options.budget.start(most),
    };
    let cut = if left < start.min(check_options.budget.fair_start()) { CutShort::Yes } else { CutShort::No };
    let mut options = ConnectOptions { timeout: Some(start.min(left)), misled: Some(MISLED), ..options.clone() };
    if let Some(reuse) = check_options.budget.reuse() {
        options.network.reuse = reuse;
    }
    (options, cut)
}

/// Over stdio conversations are held at the same time, if the server can run more than once; over HTTP one after the other.
fn is_beside_others(check_options: &CheckOptions) -> bool {
    matches!(check_options.target, Target::Stdio(_)) && !check_options.budget.is_one_at_a_time()
}

/// Whether a process ended by itself before it had said anything.
pub(super) fn exited_before_output(transcript: &Transcript) -> bool {
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
    let failure = CallFailure::TimedOut { method: methods::INITIALIZE.into(), after: Duration::ZERO, stage: None };
    ConnectFailure::Unanswered { method: methods::INITIALIZE, failure, faults: Vec::new() }
}

pub(super) fn timed_out(failure: &ConnectFailure) -> bool {
    matches!(failure, ConnectFailure::Unanswered { failure: CallFailure::TimedOut { .. }, .. } | ConnectFailure::SseTimedOut { .. })
}

fn left_out(check_options: &CheckOptions, first: FrameId) -> Probed {
    left_out_because(check_options.budget.reason(), first)
}

/// A conversation that was not begun, for this reason.
pub(super) fn not_begun(check_options: &CheckOptions, name: &str, revision: &str, reason: &str) -> Conversation {
    Conversation {
        name: name.into(),
        transport: transport_of(check_options).to_string(),
        revision: revision.into(),
        opened: Opened::Bare,
        probes: vec![left_out_because(reason.to_owned(), FrameId(0))],
        ending: None,
        sdks: Vec::new(),
        transcript: Transcript::default(),
    }
}

pub(super) fn left_out_because(reason: String, first: FrameId) -> Probed {
    Probed { probe: LEFT_OUT.into(), subject: Some(reason), first, end: first, outcome: ProbeOutcome::Done }
}

/// Which frames of a process are of one conversation.
#[derive(Clone, Copy)]
struct FrameRange {
    /// Earlier ones are of another conversation with the same process.
    begun: FrameId,
    /// Those between these two are in conversations of their own; what is before them is the handshake.
    greeted: FrameId,
    parted: FrameId,
}

impl FrameRange {
    fn of(self, mut transcript: Transcript) -> Transcript {
        transcript.frames.retain(|frame| frame.id >= self.begun && !(self.greeted..self.parted).contains(&frame.id));
        without_padding(&mut transcript);
        transcript
    }
}

/// Waits until fewer servers are starting than there are cores: so the first ones are there early, and each is as quick as the
/// server is. One that does not start keeps the others waiting for a moment only.
async fn turn() -> Option<SemaphorePermit<'static>> {
    static START_SLOTS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(available_parallelism().map_or(1, usize::from)));
    timeout(LONGEST_WAIT_FOR_START_SLOT, START_SLOTS.acquire()).await.ok()?.ok()
}

/// Ends a session, and says how the server went that it had started. Nothing is said of one that had ended before, unless it
/// has left something behind.
pub(super) async fn end(session: Session, tap: &Tap, patience: ShutdownTimeouts) -> (Option<Ending>, Transcript) {
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
fn unopened(
    check_options: &CheckOptions,
    name: &str,
    revision: String,
    failure: &ConnectFailure,
    tap: &Tap,
    cut: CutShort,
) -> Conversation {
    let is_starting = matches!(failure, ConnectFailure::NotListening { .. } | ConnectFailure::NotLocated { .. });
    let is_late = cut == CutShort::Yes && (is_starting || timed_out(failure));
    let transcript = tap.transcript();
    if exited_before_output(&transcript) {
        check_options.budget.died_at_start();
    }
    Conversation {
        name: name.into(),
        transport: transport_after(check_options, failure).to_string(),
        revision,
        opened: if is_late { Opened::Bare } else { Opened::No { reason: tap.redacted(sentence(failure, &transcript)) } },
        probes: is_late.then(|| left_out(check_options, FrameId(0))).into_iter().collect(),
        ending: None,
        sdks: Vec::new(),
        transcript,
    }
}

/// What the conversation would have been over, had it come about.
pub(super) fn transport_of(check_options: &CheckOptions) -> Transport {
    match &check_options.target {
        Target::Stdio(_) => Transport::Stdio,
        Target::Http { kind, .. } => kind.unwrap_or(Transport::Http),
    }
}

/// The same, where the failure tells more: a stream that begins wrongly is a stream.
fn transport_after(check_options: &CheckOptions, failure: &ConnectFailure) -> Transport {
    use SseFailure::{BadEndpoint, Ended, Flawed, OtherEvent};
    match failure {
        ConnectFailure::Sse(Ended(_) | Flawed(_) | OtherEvent(_) | BadEndpoint(_)) => Transport::Sse,
        _ => transport_of(check_options),
    }
}
