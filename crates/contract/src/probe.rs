//! One probe of a server: reach it, shake hands, list its tools, say how long each part took, and what is wrong. The same for
//! a deploy script and for a monitor. Never prints, and reads no clock of the day.

mod certificate;
mod phases;
mod promise;
mod replay;

pub use promise::Promise;
pub use replay::take_of;

use crate::{ToolsSeen, changes_told, tools_hash};
use backon::{BackoffBuilder as _, ExponentialBuilder};
use mcproof_analysis::diagnosis::{self, Audience, Scene};
use mcproof_analysis::oddities::{Odd, Oddities};
use mcproof_client::{
    ConnectFailure, ConnectOptions, EraEvidence, Handshake, Reading, Session, ShutdownTimeouts, StartFailure, Tap, Target, open_session,
};
use mcproof_protocol::methods;
use mcproof_record::{Contract, ProbeReport, ProbeVerdict, ProbedHandshake};
use phases::PhaseTimes;
use serde_json::Value;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep};

/// What to probe, and what is asked of it.
#[derive(Clone)]
pub struct ProbePlan {
    /// As the user named it.
    pub name: String,
    pub target: Target,
    pub options: ConnectOptions,
    /// For the list of tools, all pages together.
    pub timeout: Duration,
    /// A certificate that is valid for fewer days is an error. Without it one is warned of that is about to expire.
    pub least_days: Option<u32>,
    /// What the server has promised; it is looked at as the client that the promise is for.
    pub promise: Option<Promise>,
    pub extent: ProbeExtent,
    /// What becomes of what not every client takes.
    pub oddities: Oddities,
    /// Whose words a next step has to use.
    pub audience: Audience,
}

/// How much of what a server offers is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProbeExtent {
    /// Its tools; all of it only where that is compared with a promise.
    #[default]
    Tools,
    /// The whole contract.
    Contract,
}

/// What came of a probe.
pub struct Probed {
    pub report: ProbeReport,
    /// Why there was no session, if there was none.
    pub failure: Option<ConnectFailure>,
    /// Where all of it was looked at.
    pub contract: Option<Contract>,
    /// Whether the server has shown of which era that contract is.
    pub era_evidence: EraEvidence,
}

/// Kinds of what is odd that are told.
const MOST_KINDS: usize = 3;

/// Probes once. The tap is a fresh one, whose clock is that of the phases; a session that a server keeps is ended.
pub async fn probe(plan: &ProbePlan, tap: &Tap, now: SystemTime) -> Probed {
    let (probed, session) = visit(plan, None, tap, now).await;
    if let Some(session) = session {
        session.close_within(ShutdownTimeouts::default()).await;
    }
    probed
}

/// Like [`probe`], but the session stays open, and an earlier one may be gone on with: then the tap is that session's, and its
/// lists are all that takes time.
pub async fn visit(plan: &ProbePlan, earlier: Option<Session>, tap: &Tap, now: SystemTime) -> (Probed, Option<Session>) {
    let mut report = ProbeReport::new(tap.redacted(plan.name.clone()));
    let options = plan.promise.as_ref().map_or_else(|| plan.options.clone(), |promise| promise.options(&plan.options));
    // What clients get along with is told below.
    let options = ConnectOptions { reading: Reading::Tolerant, ..options };
    let (mut course, mut contract, mut era_evidence) = (PhaseTimes::default(), None, EraEvidence::Assumed);
    let is_earlier = earlier.is_some();
    let opened = match earlier {
        Some(session) => Ok(session),
        None => open_session(&plan.target, &options, tap).await.inspect(|_| course.handshake = Some(tap.elapsed())),
    };
    let (failure, session) = match opened {
        Ok(session) => {
            let shaken = shaken(session.handshake());
            era_evidence = session.handshake().era_evidence;
            course.lost = session.handshake().lost_to_discovery;
            report.handshake = Some(ProbedHandshake { server: shaken.server.map(|server| tap.redacted(server)), ..shaken });
            let seen = list(plan, &session, &mut course, &mut report).await;
            // The time of this is not the server's: it lists more than a client needs.
            if report.verdict.is_up() {
                contract = match (&plan.promise, plan.extent) {
                    (Some(promise), _) => promise.compare(&session, plan, seen, &mut report).await,
                    (None, ProbeExtent::Contract) => promise::whole(&session, plan, &[], seen, &mut report).await,
                    (None, ProbeExtent::Tools) => None,
                };
            }
            for odd in Odd::of(&session, plan.audience, plan.oddities).kinds.into_iter().take(MOST_KINDS) {
                report.blame(odd, plan.oddities.verdict());
            }
            (None, Some(session))
        }
        Err(failure) => {
            course.failed = Some(tap.elapsed());
            let diagnostic = diagnosis::of_connect_failure(&failure, &plan.target, &tap.transcript(), plan.audience);
            let verdict = if is_there(plan, &failure, tap) { ProbeVerdict::Unhealthy } else { ProbeVerdict::Unreachable };
            report.blame(diagnostic, verdict);
            (Some(failure), None)
        }
    };
    report.tls = certificate::secured(tap);
    if let Some(diagnostic) = report.tls.as_mut().and_then(|tls| certificate::judge(tls, plan, now)) {
        report.blame(diagnostic, ProbeVerdict::Unhealthy);
    }
    // A server may repeat what it was sent, wherever it is quoted.
    report.diagnostics = report.diagnostics.into_iter().map(|diagnostic| diagnostic.map_text(|text| tap.redacted(text))).collect();
    (report.phases, report.duration) = if is_earlier { phases::of_list(&course) } else { phases::of(&plan.target, tap, &course) };
    (Probed { report, failure, contract, era_evidence }, session)
}

async fn list(plan: &ProbePlan, session: &Session, course: &mut PhaseTimes, report: &mut ProbeReport) -> Option<ToolsSeen> {
    if session.handshake().capabilities.get("tools").is_none() {
        other_list(plan, session, course, report).await;
        return None;
    }
    let told = changes_told(session);
    let began = session.tap().elapsed();
    match session.list(methods::TOOLS_LIST, "tools", plan.timeout).await {
        Ok(listed) => {
            course.list = Some((began, session.tap().elapsed()));
            let all = listed.items.into_iter().chain(listed.rejected.into_iter().map(|(tool, _)| tool));
            let all: Vec<Value> = all.map(|tool| session.tap().redacted_value(tool)).collect();
            report.tools = Some(all.len());
            let hash = tools_hash(&all);
            report.contract = Some(promise::found(session, plan, hash.clone()));
            Some(ToolsSeen { tools: all, hash, told })
        }
        Err(failure) => {
            course.failed = Some(session.tap().elapsed());
            let scene = Scene::of(session, session.tap(), plan.audience).await;
            report.blame(diagnosis::of_list_failure(&failure, methods::TOOLS_LIST, &scene), ProbeVerdict::Unhealthy);
            None
        }
    }
}

/// Of a server without tools, the first list that it declares: a handshake alone proves little.
async fn other_list(plan: &ProbePlan, session: &Session, course: &mut PhaseTimes, report: &mut ProbeReport) {
    const OTHERS: [(&str, &str); 2] = [("resources", methods::RESOURCES_LIST), ("prompts", methods::PROMPTS_LIST)];
    let declared = |(key, _): &&(&str, &str)| session.handshake().capabilities.get(*key).is_some();
    let Some((key, method)) = OTHERS.iter().find(declared) else { return };
    let began = session.tap().elapsed();
    match session.list(method, key, plan.timeout).await {
        Ok(_) => course.list = Some((began, session.tap().elapsed())),
        Err(failure) => {
            course.failed = Some(session.tap().elapsed());
            let scene = Scene::of(session, session.tap(), plan.audience).await;
            report.blame(diagnosis::of_list_failure(&failure, method, &scene), ProbeVerdict::Unhealthy);
        }
    }
}

fn shaken(handshake: &Handshake) -> ProbedHandshake {
    let said = |key: &str| handshake.server_info.as_ref().and_then(|info| info.get(key)).and_then(Value::as_str);
    let server = [said("name"), said("version")].into_iter().flatten().collect::<Vec<_>>().join(" ");
    ProbedHandshake {
        transport: handshake.transport.to_string(),
        era: handshake.era.to_string(),
        protocol_version: handshake.protocol_version.clone(),
        server: (!server.is_empty()).then_some(server),
    }
}

/// Whether there is anything at all: a connection that was ready for a request, or a process that lives.
fn is_there(plan: &ProbePlan, failure: &ConnectFailure, tap: &Tap) -> bool {
    match (&plan.target, failure) {
        (_, ConnectFailure::Start(_) | ConnectFailure::Exited { .. }) => false,
        (Target::Stdio(_), _) => true,
        (Target::Http { .. }, _) => tap.connections().iter().any(|dialed| dialed.ready.is_some()),
    }
}

/// Between two attempts at the least, and at the most.
const FIRST_DELAY: Duration = Duration::from_millis(250);
const LONGEST_DELAY: Duration = Duration::from_secs(5);
/// What an attempt gets of the time at the very least, also the one that begins at the deadline.
const SHORTEST_ATTEMPT: Duration = Duration::from_secs(1);

/// An attempt after which there will be another one.
pub struct FailedAttempt<'a> {
    pub report: &'a ProbeReport,
    /// Counted from 1.
    pub attempt: u32,
    /// Until the next one.
    pub delay: Duration,
}

/// Probes until the server is up, with growing delays, for the last time when `within` has passed. What no waiting mends, such
/// as a command that does not exist, is tried once.
pub async fn persist(
    plan: &ProbePlan,
    within: Duration,
    mut fresh_tap: impl FnMut() -> Tap,
    now: impl Fn() -> SystemTime,
    mut set_back: impl FnMut(&FailedAttempt<'_>),
) -> (Probed, Tap) {
    let began = Instant::now();
    let growing = ExponentialBuilder::default().with_min_delay(FIRST_DELAY).with_max_delay(LONGEST_DELAY).with_jitter();
    let mut delays = growing.without_max_times().build();
    let mut attempt = 1;
    loop {
        let left = within.saturating_sub(began.elapsed()).max(SHORTEST_ATTEMPT);
        let mut plan = plan.clone();
        plan.options.timeout = Some(plan.options.timeout.map_or(left, |timeout| timeout.min(left)));
        plan.timeout = plan.timeout.min(left);
        let tap = fresh_tap();
        let probed = probe(&plan, &tap, now()).await;
        let left = within.saturating_sub(began.elapsed());
        if probed.report.verdict.is_up() || is_final(&probed) || left.is_zero() {
            return (probed, tap);
        }
        let delay = delays.next().unwrap_or(LONGEST_DELAY).min(left);
        set_back(&FailedAttempt { report: &probed.report, attempt, delay });
        sleep(delay).await;
        attempt += 1;
    }
}

/// Whether another attempt would fare no better.
fn is_final(probed: &Probed) -> bool {
    matches!(
        probed.failure,
        Some(
            ConnectFailure::Address(_)
                | ConnectFailure::NoModernSse
                | ConnectFailure::Start(
                    StartFailure::NotFound { .. } | StartFailure::NoInterpreter { .. } | StartFailure::NoFolder(_) | StartFailure::Empty
                )
        )
    )
}

#[cfg(test)]
mod tests;
