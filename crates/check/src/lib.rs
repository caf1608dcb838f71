//! Behaves like every kind of client towards one server, and keeps what happened: the conversations that the rules judge.
//! Knows what to try, not what is right.

// An exploration is one future of many parts, whose sockets and pipes nest deeper on Windows than the default limit of 128.
#![recursion_limit = "256"]

mod abuse;
mod budget;
pub(crate) mod calls;
mod concurrent_requests;
mod explorer;
mod features;
pub(crate) mod fixtures;
pub(crate) mod growth;
mod host_start;
pub(crate) mod http;
mod legacy;
pub(crate) mod listing;
mod modern;
mod modern_headers;
mod optional_members;
mod padding;
mod permission;
mod pieces;
mod process;
mod processor_waits;
mod progress_tokens;
mod readiness;
mod replicas;
pub mod sdk;
mod served;
mod spellings;
mod state;
pub(crate) mod tasks;
mod transport;

pub use budget::Budget;
pub use host_start::HostStart;
pub use permission::Permission;

use crate::sdk::DetectedSdks;
use calls::Tools;
use explorer::{Explorer, not_begun};
use mcproof_analysis::ConversationView;
use mcproof_analysis::probes::ONE_CONNECTION;
use mcproof_client::{
    CallFailure, ConnectFailure, ConnectOptions, FrameObserver, Reading, Reuse, Session, Startup, Tap, TapBounds, Target, TranscriptPool,
    Unanswered, is_gateway, search_endpoint,
};
use mcproof_protocol::{EraChoice, Revision, Transport, error_code};
use mcproof_record::{Conversation, Direction, Frame, FrameBody, FrameId, Opened, ProbeOutcome, Probed};
use served::Served;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{SetOnce, oneshot};
use tokio::time::{Instant, timeout};
use transport::Settled;
use url::Url;

/// Whoever keeps a modern client waiting for longer is started again for the next one.
const HANDING_ON: Duration = Duration::from_secs(3);

/// All conversations together keep as much as so many of their transcripts may take: of a server that floods each of them, more would
/// say nothing new.
const KEPT_TRANSCRIPTS: usize = 2;

/// With less time than this nothing is tried again.
const LEAST_FOR_ANOTHER: Duration = Duration::from_secs(1);

/// What to check, and what is allowed.
#[derive(Clone)]
pub struct CheckOptions {
    pub target: Target,
    pub options: ConnectOptions,
    /// Never to be recorded.
    pub secrets: Vec<String>,
    pub tap: TapBounds,
    /// The longest wait for one response.
    pub timeout: Duration,
    /// How long a tool may take that takes its time, if somebody said so.
    pub call_patience: Option<Duration>,
    /// What the whole check may take.
    pub budget: Budget,
    /// How long a server that refuses all connections, or says that it is not there yet, may be about to start.
    pub patience: Duration,
    /// Which tools may be called.
    pub calls: Permission,
    /// Which calls are sent twice.
    pub repeats: RepeatedCalls,
    /// Whether to be a browser even if the server shows no sign of wanting one.
    pub as_browser: bool,
    /// Whether and how to start the server once more as a desktop host does.
    pub host_start: Option<HostStart>,
    /// Other instances of the same server.
    pub replicas: Vec<Url>,
    pub detected_sdks: DetectedSdks,
    /// What the transcripts of all conversations may take.
    pub pool: TranscriptPool,
    /// Who sees the frames while they come.
    pub watcher: Option<ConversationWatcher>,
}

/// Sees each conversation from its start: given its name, gives what sees its frames. Also those of which nothing is kept, such as attempts
/// that are repeated.
pub type ConversationWatcher = Arc<dyn Fn(&str) -> FrameObserver + Send + Sync>;

/// Which calls are sent twice with the same arguments, to see whether their effect doubles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepeatedCalls {
    #[default]
    OfIdempotentTools,
    /// Of all that may be called and change something.
    OfAllTools,
}

impl CheckOptions {
    /// The options of a check that calls nothing: an outage is reported, not awaited, and oddities are judged, not tolerated.
    pub fn new(target: Target, options: ConnectOptions, secrets: Vec<String>, tap: TapBounds, timeout: Duration) -> Self {
        Self {
            patience: readiness::patience(&target, &options),
            options: ConnectOptions { startup: Startup::Over, reading: Reading::Strict, ..options },
            target,
            secrets,
            tap,
            timeout,
            call_patience: None,
            budget: Budget::default(),
            calls: Permission::default(),
            repeats: RepeatedCalls::default(),
            as_browser: false,
            host_start: None,
            replicas: Vec::new(),
            detected_sdks: DetectedSdks::default(),
            pool: pool(tap),
            watcher: None,
        }
    }

    /// For one conversation, of this name.
    fn new_tap(&self, name: &str) -> Tap {
        let observer = self.watcher.as_ref().map(|watcher| watcher(name));
        Tap::of_pool(self.tap, self.pool.clone(), self.secrets.clone(), observer)
    }
}

fn pool(bounds: TapBounds) -> TranscriptPool {
    TranscriptPool::of(bounds.bytes.saturating_mul(KEPT_TRANSCRIPTS))
}

/// What came of it.
pub struct Explored {
    pub conversations: Vec<Conversation>,
    /// Set if there was no conversation at all.
    pub unreachable: Option<ConnectFailure>,
}

/// What was on the wire of a session so far, as a conversation that rules can judge. What was not tried is untestable.
pub fn take_of(session: &Session) -> Conversation {
    let handshake = session.handshake();
    Conversation {
        name: handshake.era.to_string(),
        transport: handshake.transport.to_string(),
        revision: handshake.protocol_version.clone(),
        opened: Opened::Yes,
        probes: Vec::new(),
        ending: None,
        sdks: Vec::new(),
        transcript: session.tap().transcript(),
    }
}

/// The eras and the transport that a server turned out to have.
#[derive(Clone, Copy, Debug)]
struct DetectedServer {
    kind: Transport,
    /// The legacy revision that it speaks.
    is_legacy: bool,
    is_modern: bool,
}

impl DetectedServer {
    /// The one to talk in where it does not matter: the legacy one if it speaks both.
    fn era(self) -> EraChoice {
        if self.is_legacy { EraChoice::Legacy } else { EraChoice::Modern }
    }

    fn speaks(self, era: EraChoice) -> bool {
        if era == EraChoice::Legacy { self.is_legacy } else { self.is_modern }
    }
}

/// Talks to the server until everything has been tried that may be. Over stdio clients share a process only as long as it is well,
/// because some servers cannot be talked to in both eras, and some do not survive. Over HTTP one process that we start serves
/// all clients but those that may be its end.
pub async fn explore(check_options: &CheckOptions) -> Explored {
    check_options.budget.begin();
    // Without its type: what a check awaits is nested almost as deeply as the compiler follows.
    let exploration: Pin<Box<dyn Future<Output = Explored> + Send + '_>> = Box::pin(explore_all(check_options));
    let mut explored = exploration.await;
    let marking: Pin<Box<dyn Future<Output = ()> + Send + '_>> = Box::pin(host_start::mark(check_options, &mut explored.conversations));
    marking.await;
    check_options.calls.mark(&mut explored.conversations);
    let sdks = check_options.detected_sdks.told().await;
    explored.conversations.iter_mut().for_each(|take| take.sdks.clone_from(&sdks));
    explored
}

async fn explore_all(check_options: &CheckOptions) -> Explored {
    match &check_options.target {
        Target::Stdio(_) => {
            let explored = explore_pipes(check_options).await;
            let budget = &check_options.budget;
            if !budget.were_in_the_way() || budget.left() < LEAST_FOR_ANOTHER {
                return explored;
            }
            let was_opened = |explored: &Explored| explored.conversations.iter().any(|one| one.opened == Opened::Yes);
            // What happened once may be chance: two processes have to be in each other's way again.
            if was_opened(&explored) && run_side_by_side(check_options).await {
                return explored;
            }
            // Two large recordings are not to be there at the same time.
            let explored = Some(explored).filter(|explored| !was_opened(explored));
            // A server that locks a file or listens on a port cannot run twice at the same time, which is allowed.
            let alone =
                CheckOptions { budget: check_options.budget.one_at_a_time(), pool: pool(check_options.tap), ..check_options.clone() };
            let alone = explore_one_by_one(&alone).await;
            let has_died = |one: &Conversation| explorer::exited_before_output(&one.transcript);
            // A process that ended by itself tells more than one that there was no time for.
            match explored {
                Some(explored) if !was_opened(&alone) && !alone.conversations.iter().any(has_died) => explored,
                _ => alone,
            }
        }
        Target::Http { .. } => explore_web(check_options).await,
    }
}

/// Whether two clients get through the handshake at the same time, each with a process of its own.
async fn run_side_by_side(check_options: &CheckOptions) -> bool {
    let open = || Explorer::open(check_options, "side by side", check_options.options.clone());
    let (one, other) = tokio::join!(open(), open());
    let are_both_open = one.is_ok() && other.is_ok();
    for explorer in [one, other].into_iter().flatten() {
        explorer.with_brief_shutdown().end().await;
    }
    are_both_open
}

/// Over stdio, with one process after the other.
async fn explore_one_by_one(check_options: &CheckOptions) -> Explored {
    let HandshakeOutcome { mut conversations, found, unreachable, .. } =
        converse(check_options, &EraSupport::default(), &mut None, oneshot::channel().0).await;
    if let Some(found) = found {
        let tested = fixtures::explore(check_options, found, &conversations).await;
        conversations.extend(tested);
        let tools = Tools::in_takes(&conversations, &check_options.calls);
        conversations.extend(state::explore(check_options, found.era(), &tools).await);
        explore_in_sequence(check_options, found, &mut conversations).await;
    }
    Explored { conversations, unreachable }
}

/// What may be the end of a server, each in a conversation of its own, one after the other.
async fn explore_in_sequence(check_options: &CheckOptions, found: DetectedServer, conversations: &mut Vec<Conversation>) {
    for era in [EraChoice::Modern, EraChoice::Legacy].into_iter().filter(|era| found.speaks(*era)) {
        let mut tools = None;
        match calls::open(check_options, era).await {
            Ok(explorer) => conversations.extend(calls::explore(check_options, explorer, |told| tools = Some(told)).await),
            Err(late) => conversations.extend(late),
        }
        if let (Some(tools), true) = (tools, era == found.era()) {
            conversations.extend(calls::explore_unusual_calls(check_options, era, &tools).await);
            if let Some(host) = calls::call_as_host(check_options, era, &tools).await {
                let limits = host.limits();
                conversations.push(host.end().await);
                conversations.extend(calls::call_as_limited_hosts(check_options, &tools, limits).await);
            }
        }
    }
    if found.is_legacy {
        conversations.extend(legacy::early(check_options, found.kind).await);
    }
    conversations.extend(abuse::explore(check_options, found.era(), None).await);
    if !conversations.iter().any(process::was_terminated) {
        conversations.extend(process::explore(check_options, found.era()).await);
    }
}

/// Over stdio, everything at once: each conversation begins as soon as it is known what it depends on, and none waits for the
/// end of another.
async fn explore_pipes(check_options: &CheckOptions) -> Explored {
    let eras = EraSupport::default();
    let (report_legacy, legacy_tools) = oneshot::channel();
    let (report_modern, modern_tools) = oneshot::channel();
    // Nobody may be left who wants to know.
    let tell = |listener: oneshot::Sender<Tools>| move |tools| drop(listener.send(tools));
    // The calls take longest, and need not wait for anything.
    let called = async {
        match calls::open(check_options, EraChoice::Legacy).await {
            Ok(explorer) => {
                eras.report_legacy(true);
                calls::explore(check_options, explorer, tell(report_legacy)).await
            }
            Err(late) => {
                drop(report_legacy);
                if eras.is_legacy().await { late } else { None }
            }
        }
    };
    let called_modern = async {
        if !eras.is_modern().await {
            return None;
        }
        match calls::open(check_options, EraChoice::Modern).await {
            Ok(explorer) => calls::explore(check_options, explorer, tell(report_modern)).await,
            Err(late) => {
                drop(report_modern);
                late
            }
        }
    };
    let (hand_on, handed_on) = oneshot::channel();
    let aside = async {
        let era = eras.spoken().await?;
        let is_modern = era == EraChoice::Modern;
        // In a version that was asked for, nothing else can be agreed on.
        let is_free = !is_modern && check_options.options.protocol_version.is_none();
        let refused = async { if is_free { timeout(HANDING_ON, handed_on).await.ok()?.ok() } else { None } };
        let tools = async { if is_modern { modern_tools.await.ok() } else { legacy_tools.await.ok() } };
        Some(explore_side_conversations(check_options, era, refused.await, tools).await)
    };
    let conversed = async {
        let HandshakeOutcome { conversations, found, unreachable, .. } = converse(check_options, &eras, &mut None, hand_on).await;
        let tools = Tools::in_takes(&conversations, &check_options.calls);
        let (tested, host) = match found {
            Some(found) => {
                let mut tested = fixtures::explore(check_options, found, &conversations).await;
                let host = calls::call_as_host(check_options, found.era(), &tools).await;
                let limits = host.as_ref().map(calls::Host::limits).unwrap_or_default();
                tested.extend(calls::call_as_limited_hosts(check_options, &tools, limits).await);
                (tested, host)
            }
            None => (Vec::new(), None),
        };
        (conversations, tested, host, tools, unreachable)
    };
    let (called, (mut conversations, tested, host, tools, unreachable), aside, called_modern) =
        tokio::join!(biased; called, conversed, aside, called_modern);
    let spoken = if unreachable.is_none() { eras.spoken().await } else { None };
    if let Some(SideConversations { strange, observed, odd, abused }) = aside {
        let observed = match (observed, spoken) {
            // Whoever was to list the tools did not get to it.
            (None, Some(era)) => state::explore(check_options, era, &tools).await,
            (observed, _) => observed.unwrap_or_default(),
        };
        let called_modern = called_modern.into_iter().collect();
        conversations.extend([strange, abused, called_modern, observed, tested, odd].into_iter().flatten());
    }
    conversations.extend(called);
    if let (Some(era), false) = (spoken, conversations.iter().any(process::was_terminated)) {
        conversations.extend(process::explore(check_options, era).await);
    }
    // The longer it stays, the more of what goes wrong later is seen.
    if let Some(host) = host {
        conversations.push(host.end().await);
    }
    Explored { conversations, unreachable }
}

/// The conversations that run beside the main one; no other conversation waits for them.
struct SideConversations {
    strange: Vec<Conversation>,
    /// `None` if the tools are not known.
    observed: Option<Vec<Conversation>>,
    odd: Vec<Conversation>,
    abused: Vec<Conversation>,
}

/// All in the process that refused to be modern, one after the other, as long as it is there and well; otherwise each in its own,
/// at the same time.
async fn explore_side_conversations<'a>(
    check_options: &'a CheckOptions,
    era: EraChoice,
    refused: Option<Explorer<'a>>,
    tools: impl Future<Output = Option<Tools>>,
) -> SideConversations {
    let agreed = match refused {
        Some(refused) => legacy::agree(check_options, refused).await,
        None => None,
    };
    let Some((strange, explorer)) = agreed else {
        let strange = async { if era == EraChoice::Legacy { legacy::offering_unknown(check_options).await } else { Vec::new() } };
        let with_tools = async {
            let tools = tools.await?;
            Some(tokio::join!(state::explore(check_options, era, &tools), calls::explore_unusual_calls(check_options, era, &tools)))
        };
        let (strange, with_tools, abused) = tokio::join!(strange, with_tools, abuse::explore(check_options, era, None));
        let (observed, odd) = with_tools.unzip();
        return SideConversations { strange, observed, odd: odd.unwrap_or_default(), abused };
    };
    let Some(tools) = tools.await else {
        return SideConversations {
            strange,
            observed: None,
            odd: Vec::new(),
            abused: abuse::explore(check_options, era, Some(explorer)).await,
        };
    };
    let (observed, well) = state::observe_in(explorer, &tools).await;
    let (odd, abused) = match well {
        None => tokio::join!(calls::explore_unusual_calls(check_options, era, &tools), abuse::explore(check_options, era, None)),
        Some(explorer) => {
            let (odd, well) = calls::try_odd(check_options, era, &tools, explorer).await;
            (odd, abuse::explore(check_options, era, well).await)
        }
    };
    SideConversations { strange, observed: Some(observed), odd, abused }
}

/// Which eras a server supports: set by the first conversation that detects it, awaited by the others.
#[derive(Default)]
struct EraSupport {
    legacy: SetOnce<bool>,
    modern: SetOnce<bool>,
}

impl EraSupport {
    /// Two find it out, and only one of them says so if it does not.
    fn report_legacy(&self, speaks: bool) {
        // Who knows it first is as good as the other.
        let _ = self.legacy.set(speaks);
    }

    fn report_modern(&self, speaks: bool) {
        self.modern.set(speaks).expect("one conversation finds it out");
    }

    async fn is_legacy(&self) -> bool {
        *self.legacy.wait().await
    }

    async fn is_modern(&self) -> bool {
        *self.modern.wait().await
    }

    /// The legacy one if it speaks both.
    async fn spoken(&self) -> Option<EraChoice> {
        match self.is_legacy().await {
            true => Some(EraChoice::Legacy),
            false => self.is_modern().await.then_some(EraChoice::Modern),
        }
    }
}

/// Over HTTP, one thing after the other.
async fn explore_web(check_options: &CheckOptions) -> Explored {
    let mut served = match Served::start(check_options).await {
        Ok(served) => served,
        Err(failed) => {
            let (take, failure) = *failed;
            return Explored { conversations: vec![take], unreachable: Some(failure).filter(is_unreachable) };
        }
    };
    let began = Instant::now();
    let mut is_first = true;
    let (reached, settled, greeted, outcome) = loop {
        let mut reached = served.as_ref().map_or_else(|| check_options.clone(), |served| served.check_options.clone());
        let Settled { kind, greeted } = transport::settle(&reached).await;
        revive(&mut served).await;
        transport::set(&mut reached.target, kind);
        let mut settled = check_options.clone();
        transport::set(&mut settled.target, kind);
        let outcome = converse(&reached, &EraSupport::default(), &mut served, oneshot::channel().0).await;
        // Nothing of this attempt is judged if the server only was not ready: ready means answered.
        let is_starting = is_first && outcome.found.is_none() && greeted.is_none() && outcome.is_starting;
        if !is_starting || !readiness::comes_about(&reached, served.as_ref(), began).await {
            break (reached, settled, greeted, outcome);
        }
        is_first = false;
    };
    let check_options = &settled;
    let HandshakeOutcome { mut conversations, found, unreachable, failure, .. } = outcome;
    // What served a client before is there, whatever it does to the next ones.
    let unreachable = match (greeted.is_none(), unreachable, failure) {
        (true, None, Some(failure)) => misplaced(&reached, failure).await,
        (true, unreachable, _) => unreachable,
        (false, ..) => None,
    };
    if let (Some(greeted), None) = (greeted, found) {
        conversations.insert(0, greeted);
    }
    if check_options.budget.reuse() == Some(Reuse::Alone) {
        // What follows opens streams beside its requests, each of which would wait in vain.
        let eras = |found: DetectedServer| [(found.is_legacy, Revision::LATEST_LEGACY), (found.is_modern, Revision::MODERN)];
        let spoken = found.into_iter().flat_map(eras).filter(|(is_spoken, _)| *is_spoken);
        conversations.extend(spoken.map(|(_, revision)| not_begun(check_options, "http", revision.as_str(), ONE_CONNECTION)));
        if let Some(served) = served {
            conversations.extend(served.end(found).await);
        }
        return Explored { conversations, unreachable };
    }
    let tools = Tools::in_takes(&conversations, &check_options.calls);
    if let Some(found) = found {
        revive(&mut served).await;
        conversations.extend(state::explore(&reached, found.era(), &tools).await);
        let tested = fixtures::explore(&reached, found, &conversations).await;
        conversations.extend(tested);
    }
    if let Some(served) = served {
        conversations.extend(served.end(found).await);
    }
    let Some(found) = found else { return Explored { conversations, unreachable } };
    // What these do to a server is judged by what they see of it. If it does not start again, they say so.
    let served = Served::start(check_options).await.unwrap_or_default();
    if !is_first {
        readiness::comes_about(&reached, served.as_ref(), Instant::now()).await;
    }
    conversations.extend(http::explore(&reached, found).await);
    conversations.extend(replicas::explore(&reached, found).await);
    if let Some(served) = served {
        served.end(Some(found)).await;
    }
    explore_in_sequence(check_options, found, &mut conversations).await;
    Explored { conversations, unreachable }
}

/// The failure of a URL whose server is at another path, of which nothing can be judged here.
async fn misplaced(check_options: &CheckOptions, failure: ConnectFailure) -> Option<ConnectFailure> {
    let Target::Http { endpoint, kind, .. } = &check_options.target else { return None };
    // There is a stream at this path: what fails is at that of its endpoint.
    if *kind == Some(Transport::Sse) && !matches!(failure, ConnectFailure::Sse(_)) {
        return None;
    }
    let searched = search_endpoint(failure, endpoint, &check_options.options.network).await;
    Some(searched).filter(|failure| matches!(failure, ConnectFailure::WrongPath { .. }))
}

/// What came of the handshakes, and of what follows upon them.
struct HandshakeOutcome {
    conversations: Vec<Conversation>,
    found: Option<DetectedServer>,
    unreachable: Option<ConnectFailure>,
    /// Of the first handshake, if there was none in either era.
    failure: Option<ConnectFailure>,
    /// The first handshake failed as it does with a server that is about to start.
    is_starting: bool,
}

async fn converse<'a>(
    check_options: &'a CheckOptions,
    eras: &EraSupport,
    served: &mut Option<Served>,
    hand_on: oneshot::Sender<Explorer<'a>>,
) -> HandshakeOutcome {
    let (mut legacy, mut modern) = match &check_options.target {
        Target::Stdio(_) if !check_options.budget.is_one_at_a_time() => {
            // Whoever refuses to be modern is talked to longer than the other.
            let (modern, legacy) =
                tokio::join!(biased; modern::explore(check_options, eras, hand_on), legacy::explore(check_options, eras));
            (legacy, modern)
        }
        _ => {
            let mut legacy = legacy::explore(check_options, eras).await;
            revive(served).await;
            if let (Some(kind), None) = (legacy.kind, &legacy.failure) {
                legacy.conversations.extend(legacy::versions(check_options, kind).await);
                revive(served).await;
            }
            (legacy, modern::explore(check_options, eras, hand_on).await)
        }
    };
    let unreachable = match (&legacy.failure, &modern.failure) {
        (Some(failure), Some(_)) if is_unreachable(failure) && !was_served(&legacy.conversations) => legacy.failure.clone(),
        _ => None,
    };
    let is_starting = legacy.failure.as_ref().is_some_and(readiness::is_passing) && modern.failure.is_some();
    distinguish_eras(&mut legacy, &mut modern);
    let is_late = |talked: &EraOutcome| talked.failure.as_ref().is_some_and(explorer::timed_out) && sent_nothing(&talked.conversations);
    if is_late(&legacy) && modern.failure.is_some() && sent_nothing(&modern.conversations) {
        legacy.conversations.iter_mut().for_each(mark_slow_start_as_not_judged);
    }
    let (is_legacy, is_modern) = (legacy.failure.is_none(), modern.failure.is_none());
    let found = legacy.kind.or(modern.kind).map(|kind| DetectedServer { kind, is_legacy, is_modern });
    let mut conversations = legacy.conversations;
    conversations.extend(modern.conversations.into_iter().map(|take| if is_legacy { of_both_eras(take) } else { take }));
    if unreachable.is_none() && !is_legacy && !is_modern {
        conversations.extend(http::explore_without_handshake(check_options).await);
    }
    let failure = legacy.failure.filter(|_| !is_modern);
    HandshakeOutcome { conversations, found, unreachable, failure, is_starting }
}

/// A server that we started may not have survived the last client.
async fn revive(served: &mut Option<Served>) {
    if let Some(served) = served {
        served.revive().await;
    }
}

/// Notes that the server speaks earlier revisions as well, which allows it to take what lacks modern metadata for theirs.
fn of_both_eras(mut take: Conversation) -> Conversation {
    let nothing = FrameId(0);
    let probe = "speaks-legacy".to_owned();
    take.probes.push(Probed { probe, subject: None, first: nothing, end: nothing, outcome: ProbeOutcome::Done });
    take
}

/// A server that lives in one era refuses the handshake of the other, as it should. One that refuses both is broken in the
/// era that it seems to be of.
fn distinguish_eras(legacy: &mut EraOutcome, modern: &mut EraOutcome) {
    let (Some(old), Some(new)) = (&legacy.failure, &modern.failure) else {
        // A modern server without a word for legacy clients.
        if let (Some(ConnectFailure::Unanswered { failure: CallFailure::Unanswered(Unanswered::Response { head, .. }), .. }), None) =
            (&legacy.failure, &modern.failure)
            && (400..500).contains(&head.status)
            && !is_of_gateway(head.status)
        {
            legacy.conversations.iter_mut().for_each(|take| take.opened = Opened::OtherEra);
        }
        return;
    };
    // If the server is gone, its response is not known.
    if is_unreachable(new) {
        return;
    }
    // One that was discovered is modern, whatever it named, and does not have to know `initialize`, which lacks metadata.
    let is_discovered = modern.conversations.iter().any(|take| ConversationView::new(take).handshake().is_some());
    let is_modern = matches!(old, ConnectFailure::Refused { error, .. }
        if MODERN_CODES.contains(&error.code) || is_discovered && IGNORANT_CODES.contains(&error.code));
    let (reason, theirs) = if is_modern { (new.to_string(), modern) } else { (old.to_string(), legacy) };
    for take in theirs.conversations.iter_mut().filter(|take| take.opened == Opened::OtherEra) {
        take.opened = Opened::No { reason: reason.clone() };
    }
}

/// Errors that only the modern era has (2026-07-28, basic, error codes).
const MODERN_CODES: [i64; 3] = [error_code::HEADER_MISMATCH, error_code::MISSING_CAPABILITY, error_code::UNSUPPORTED_VERSION];

/// Errors of a server that does not know what it was asked, or misses something in it.
const IGNORANT_CODES: [i64; 2] = [error_code::METHOD_NOT_FOUND, error_code::INVALID_PARAMS];

/// Whether a failure is unrelated to the server, because there is none.
fn is_unreachable(failure: &ConnectFailure) -> bool {
    match failure {
        ConnectFailure::Start(_)
        | ConnectFailure::AddressTaken { .. }
        | ConnectFailure::OtherListens { .. }
        | ConnectFailure::NotListening { .. } => true,
        ConnectFailure::Unanswered { failure: CallFailure::Unanswered(Unanswered::Unreachable(_)), .. } => true,
        ConnectFailure::Unauthorized { .. } => false,
        _ => false,
    }
}

/// Whether a status is that of a gateway or of a limit, which says nothing about what the server speaks.
fn is_of_gateway(status: u16) -> bool {
    is_gateway(status) || matches!(status, 408 | 425 | 429)
}

/// Whether `initialize` got a result.
fn was_served(conversations: &[Conversation]) -> bool {
    conversations.iter().any(|take| ConversationView::new(take).handshake().is_some())
}

/// Whether a server has sent nothing at all where its client listens, and has not exited.
fn sent_nothing(conversations: &[Conversation]) -> bool {
    let is_said = |frame: &Frame| match &frame.body {
        FrameBody::Stderr { .. } | FrameBody::Closed { .. } => false,
        FrameBody::Exited { code, .. } => code.is_some(),
        _ => frame.direction == Direction::FromServer,
    };
    !conversations.iter().flat_map(|take| &take.transcript.frames).any(is_said)
}

/// A server that has sent nothing by the end of the connect timeout may be broken or still be starting.
fn mark_slow_start_as_not_judged(take: &mut Conversation) {
    if let Opened::No { reason } = &take.opened {
        let reason = format!("{reason}: the server has not sent anything, and may still be starting");
        take.probes.push(explorer::left_out_because(reason.clone(), FrameId(0)));
        take.opened = Opened::No { reason };
    }
}

/// What one era's main conversation brought.
struct EraOutcome {
    conversations: Vec<Conversation>,
    kind: Option<Transport>,
    failure: Option<ConnectFailure>,
}
