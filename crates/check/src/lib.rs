//! Behaves like every kind of client towards one server, and keeps what happened: the conversations that the rules judge.
//! Knows what to try, not what is right.

mod abuse;
mod budget;
pub(crate) mod calls;
mod concurrent_requests;
mod explorer;
mod features;
pub(crate) mod fixtures;
pub(crate) mod growth;
pub(crate) mod http;
mod legacy;
mod modern;
mod modern_headers;
mod padding;
mod permission;
mod process;
mod replicas;
pub mod sdk;
mod served;
mod state;
pub(crate) mod tasks;
pub(crate) mod tour;
mod transport;

pub use budget::Budget;
pub use permission::Permission;

use crate::sdk::DetectedSdks;
use calls::Tools;
use explorer::Explorer;
use mcproof_analysis::ConversationView;
use mcproof_analysis::probes::EXPLORED_IN_PART as SAMPLED;
use mcproof_analysis::probes::PARALLEL_TOKEN;
use mcproof_client::{CallFailure, ConnectFailure, ConnectOptions, EraChoice, Session, TapBounds, Target, TransportKind, Unanswered};
use mcproof_record::{Conversation, Direction, Frame, FrameBody, FrameId, Opened, ProbeOutcome, Probed};
use served::Served;
use std::time::Duration;
use tokio::sync::{SetOnce, oneshot};
use tokio::time::timeout;
use url::Url;

/// Whoever keeps a modern client waiting for longer is started again for the next one.
const HANDING_ON: Duration = Duration::from_secs(3);

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
    /// What the whole check may take.
    pub budget: Budget,
    /// Which tools may be called.
    pub calls: Permission,
    /// Whether to be a browser even if the server shows no sign of wanting one.
    pub as_browser: bool,
    /// Other instances of the same server.
    pub replicas: Vec<Url>,
    pub detected_sdks: DetectedSdks,
}

/// What came of it.
pub struct Explored {
    pub conversations: Vec<Conversation>,
    /// Set if no conversation came about at all.
    pub unreachable: Option<ConnectFailure>,
}

/// What was on the wire of a session so far, as a conversation that rules can judge. What nobody tried is untestable.
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
    kind: TransportKind,
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
pub async fn explore(inquiry: &CheckOptions) -> Explored {
    inquiry.budget.begin();
    let mut explored = explore_all(inquiry).await;
    let sdks = inquiry.detected_sdks.told().await;
    explored.conversations.iter_mut().for_each(|take| take.sdks.clone_from(&sdks));
    explored
}

async fn explore_all(inquiry: &CheckOptions) -> Explored {
    match &inquiry.target {
        Target::Stdio(_) => {
            let explored = explore_pipes(inquiry).await;
            // What happened once may be chance: two processes have to be in each other's way again.
            if !inquiry.budget.were_in_the_way() || inquiry.budget.left() < LEAST_FOR_ANOTHER || run_side_by_side(inquiry).await {
                return explored;
            }
            // A server that locks a file or listens on a port cannot run twice at the same time, which nobody forbids it.
            let alone = CheckOptions { budget: inquiry.budget.one_at_a_time(), ..inquiry.clone() };
            explore_one_by_one(&alone).await
        }
        Target::Http { .. } => explore_web(inquiry).await,
    }
}

/// Whether two clients get through the handshake at the same time, each with a process of its own.
async fn run_side_by_side(inquiry: &CheckOptions) -> bool {
    let open = || Explorer::open(inquiry, "side by side", inquiry.options.clone());
    let (one, other) = tokio::join!(open(), open());
    let are_both_open = one.is_ok() && other.is_ok();
    for explorer in [one, other].into_iter().flatten() {
        explorer.with_brief_shutdown().end().await;
    }
    are_both_open
}

/// Over stdio, with one process after the other.
async fn explore_one_by_one(inquiry: &CheckOptions) -> Explored {
    let HandshakeOutcome { mut conversations, found, unreachable } =
        converse(inquiry, &EraSupport::default(), &mut None, oneshot::channel().0).await;
    if let Some(found) = found {
        let tested = fixtures::explore(inquiry, found, &conversations).await;
        conversations.extend(tested);
        let tools = Tools::in_takes(&conversations, &inquiry.calls);
        conversations.extend(state::explore(inquiry, found.era(), &tools).await);
        explore_in_sequence(inquiry, found, &mut conversations).await;
    }
    Explored { conversations, unreachable }
}

/// What may be the end of a server, each in a conversation of its own, one after the other.
async fn explore_in_sequence(inquiry: &CheckOptions, found: DetectedServer, conversations: &mut Vec<Conversation>) {
    for era in [EraChoice::Modern, EraChoice::Legacy].into_iter().filter(|era| found.speaks(*era)) {
        let mut tools = None;
        if let Some(explorer) = calls::open(inquiry, era).await {
            conversations.extend(calls::explore(inquiry, explorer, |told| tools = Some(told)).await);
        }
        if let (Some(tools), true) = (tools, era == found.era()) {
            conversations.extend(calls::explore_unusual_calls(inquiry, era, &tools).await);
        }
    }
    if found.is_legacy {
        conversations.extend(legacy::early(inquiry, found.kind).await);
    }
    conversations.extend(abuse::explore(inquiry, found.era(), None).await);
    if !conversations.iter().any(process::was_terminated) {
        conversations.extend(process::explore(inquiry, found.era()).await);
    }
}

/// Over stdio, everything at once: each conversation begins as soon as it is known what it depends on, and none waits for the
/// end of another.
async fn explore_pipes(inquiry: &CheckOptions) -> Explored {
    let eras = EraSupport::default();
    let (report_legacy, legacy_tools) = oneshot::channel();
    let (report_modern, modern_tools) = oneshot::channel();
    // Nobody may be left who wants to know.
    let tell = |listener: oneshot::Sender<Tools>| move |tools| drop(listener.send(tools));
    // The calls take longest, and need not wait for anything.
    let called = async {
        let explorer = calls::open(inquiry, EraChoice::Legacy).await?;
        eras.report_legacy(true);
        calls::explore(inquiry, explorer, tell(report_legacy)).await
    };
    let called_modern = async {
        if !eras.is_modern().await {
            return None;
        }
        let explorer = calls::open(inquiry, EraChoice::Modern).await?;
        calls::explore(inquiry, explorer, tell(report_modern)).await
    };
    let (hand_on, handed_on) = oneshot::channel();
    let aside = async {
        let era = eras.spoken().await?;
        let is_modern = era == EraChoice::Modern;
        // In a version that was asked for, nothing else can be agreed on.
        let is_free = !is_modern && inquiry.options.protocol_version.is_none();
        let refused = async { if is_free { timeout(HANDING_ON, handed_on).await.ok()?.ok() } else { None } };
        let tools = async { if is_modern { modern_tools.await.ok() } else { legacy_tools.await.ok() } };
        Some(explore_side_conversations(inquiry, era, refused.await, tools).await)
    };
    let conversed = async {
        let HandshakeOutcome { conversations, found, unreachable } = converse(inquiry, &eras, &mut None, hand_on).await;
        let tested = match found {
            Some(found) => fixtures::explore(inquiry, found, &conversations).await,
            None => Vec::new(),
        };
        let tools = Tools::in_takes(&conversations, &inquiry.calls);
        (conversations, tested, tools, unreachable)
    };
    let (called, (mut conversations, tested, tools, unreachable), aside, called_modern) =
        tokio::join!(biased; called, conversed, aside, called_modern);
    let spoken = if unreachable.is_none() { eras.spoken().await } else { None };
    if let Some(SideConversations { strange, observed, odd, abused }) = aside {
        let observed = match (observed, spoken) {
            // Whoever was to list the tools did not get to it.
            (None, Some(era)) => state::explore(inquiry, era, &tools).await,
            (observed, _) => observed.unwrap_or_default(),
        };
        let called_modern = called_modern.into_iter().collect();
        conversations.extend([strange, abused, called_modern, observed, tested, odd].into_iter().flatten());
    }
    conversations.extend(called);
    if let (Some(era), false) = (spoken, conversations.iter().any(process::was_terminated)) {
        conversations.extend(process::explore(inquiry, era).await);
    }
    Explored { conversations, unreachable }
}

/// What nobody is waiting for.
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
    inquiry: &'a CheckOptions,
    era: EraChoice,
    refused: Option<Explorer<'a>>,
    tools: impl Future<Output = Option<Tools>>,
) -> SideConversations {
    let agreed = match refused {
        Some(refused) => legacy::agree(inquiry, refused).await,
        None => None,
    };
    let Some((strange, explorer)) = agreed else {
        let strange = async { if era == EraChoice::Legacy { legacy::strangers(inquiry).await } else { Vec::new() } };
        let with_tools = async {
            let tools = tools.await?;
            Some(tokio::join!(state::explore(inquiry, era, &tools), calls::explore_unusual_calls(inquiry, era, &tools)))
        };
        let (strange, with_tools, abused) = tokio::join!(strange, with_tools, abuse::explore(inquiry, era, None));
        let (observed, odd) = with_tools.unzip();
        return SideConversations { strange, observed, odd: odd.unwrap_or_default(), abused };
    };
    let Some(tools) = tools.await else {
        return SideConversations { strange, observed: None, odd: Vec::new(), abused: abuse::explore(inquiry, era, Some(explorer)).await };
    };
    let (observed, well) = state::observe_in(explorer, &tools).await;
    let (odd, abused) = match well {
        None => tokio::join!(calls::explore_unusual_calls(inquiry, era, &tools), abuse::explore(inquiry, era, None)),
        Some(explorer) => {
            let (odd, well) = calls::try_odd(inquiry, era, &tools, explorer).await;
            (odd, abuse::explore(inquiry, era, well).await)
        }
    };
    SideConversations { strange, observed: Some(observed), odd, abused }
}

/// Which eras a server speaks: told by those who are first to know, to those who wait for it.
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
async fn explore_web(inquiry: &CheckOptions) -> Explored {
    let mut served = match Served::start(inquiry).await {
        Ok(served) => served,
        Err(failed) => {
            let (take, failure) = *failed;
            return Explored { conversations: vec![take], unreachable: Some(failure).filter(is_unreachable) };
        }
    };
    let mut reached = served.as_ref().map_or_else(|| inquiry.clone(), |served| served.inquiry.clone());
    let kind = transport::settle(&reached).await;
    revive(&mut served).await;
    transport::set(&mut reached.target, kind);
    let mut settled = inquiry.clone();
    transport::set(&mut settled.target, kind);
    let inquiry = &settled;
    let HandshakeOutcome { mut conversations, found, unreachable } =
        converse(&reached, &EraSupport::default(), &mut served, oneshot::channel().0).await;
    let tools = Tools::in_takes(&conversations, &inquiry.calls);
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
    let served = Served::start(inquiry).await.unwrap_or_default();
    conversations.extend(http::explore(&reached, found).await);
    conversations.extend(replicas::explore(&reached, found).await);
    if let Some(served) = served {
        served.end(Some(found)).await;
    }
    explore_in_sequence(inquiry, found, &mut conversations).await;
    Explored { conversations, unreachable }
}

/// What came of the handshakes, and of what follows upon them.
struct HandshakeOutcome {
    conversations: Vec<Conversation>,
    found: Option<DetectedServer>,
    unreachable: Option<ConnectFailure>,
}

async fn converse<'a>(
    inquiry: &'a CheckOptions,
    eras: &EraSupport,
    served: &mut Option<Served>,
    hand_on: oneshot::Sender<Explorer<'a>>,
) -> HandshakeOutcome {
    let (mut legacy, mut modern) = match &inquiry.target {
        Target::Stdio(_) if !inquiry.budget.is_one_at_a_time() => {
            // Whoever refuses to be modern is talked to longer than the other.
            let (modern, legacy) = tokio::join!(biased; modern::explore(inquiry, eras, hand_on), legacy::explore(inquiry, eras));
            (legacy, modern)
        }
        _ => {
            let mut legacy = legacy::explore(inquiry, eras).await;
            revive(served).await;
            if let (Some(kind), None) = (legacy.kind, &legacy.failure) {
                legacy.conversations.extend(legacy::versions(inquiry, kind).await);
                revive(served).await;
            }
            (legacy, modern::explore(inquiry, eras, hand_on).await)
        }
    };
    let unreachable = match (&legacy.failure, &modern.failure) {
        (Some(failure), Some(_)) if is_unreachable(failure) => legacy.failure.clone(),
        _ => None,
    };
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
        conversations.extend(http::explore_without_handshake(inquiry).await);
    }
    HandshakeOutcome { conversations, found, unreachable }
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
    // One that is discovered, names its legacy versions only, and speaks them, does not claim to be modern.
    if legacy.failure.is_none() && matches!(modern.failure, Some(ConnectFailure::NoCommonVersion { .. })) {
        modern.conversations.iter_mut().for_each(|take| take.opened = Opened::OtherEra);
    }
    let (Some(old), Some(new)) = (&legacy.failure, &modern.failure) else {
        // A modern server without a word for legacy clients.
        if let (Some(ConnectFailure::Unanswered { failure: CallFailure::Unanswered(Unanswered::Response { head, .. }), .. }), None) =
            (&legacy.failure, &modern.failure)
            && head.status < 500
        {
            legacy.conversations.iter_mut().for_each(|take| take.opened = Opened::OtherEra);
        }
        return;
    };
    // Where there is no server any more, it is not known what it would have said.
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
const MODERN_CODES: [i64; 3] = [-32020, -32021, -32022];

/// Errors of a server that does not know what it was asked, or misses something in it.
const IGNORANT_CODES: [i64; 2] = [-32601, -32602];

/// Whether a failure says nothing about a server, because there is none.
fn is_unreachable(failure: &ConnectFailure) -> bool {
    match failure {
        ConnectFailure::Start(_) | ConnectFailure::AddressTaken { .. } | ConnectFailure::NotListening { .. } => true,
        ConnectFailure::Unanswered { failure: CallFailure::Unanswered(Unanswered::Unreachable(_)), .. } => true,
        ConnectFailure::Unauthorized { .. } => false,
        _ => false,
    }
}

/// Whether a server has said nothing at all where its client listens, and has not ended by itself.
fn sent_nothing(conversations: &[Conversation]) -> bool {
    let is_said = |frame: &Frame| match &frame.body {
        FrameBody::Stderr { .. } | FrameBody::Closed { .. } => false,
        FrameBody::Exited { code, .. } => code.is_some(),
        _ => frame.direction == Direction::FromServer,
    };
    !conversations.iter().flat_map(|take| &take.transcript.frames).any(is_said)
}

/// A server that has said nothing by the end of the connect timeout may be broken, or still be starting: nobody can tell which.
fn mark_slow_start_as_not_judged(take: &mut Conversation) {
    if let Opened::No { reason } = &take.opened {
        let reason = format!("{reason}: the server has not said anything, and may still be starting");
        take.probes.push(explorer::left_out_because(reason.clone(), FrameId(0)));
        take.opened = Opened::No { reason };
    }
}

/// What one era's main conversation brought.
struct EraOutcome {
    conversations: Vec<Conversation>,
    kind: Option<TransportKind>,
    failure: Option<ConnectFailure>,
}
