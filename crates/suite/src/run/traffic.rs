//! Holds the traffic of a test against rules that are handed in: a suite knows none. Only what a client sent that keeps to the
//! specification proves anything about its server.

use super::RunOptions;
use super::case::unless_allowed;
use super::expand::Work;
use super::sessions::{EndedSession, Open, Renewed, SessionRecord};
use crate::plan::{Action, Case, Isolation, Step};
use mcproof_record::{
    CaseOutcome, Conversation, Diagnostic, Direction, Frame, FrameBody, FrameId, Opened, Severity, StepOutcome, Transcript,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Gives an error for each rule that is broken, with the id of the rule as its code.
pub type TrafficJudge = Arc<dyn Fn(&Traffic<'_>) -> Vec<BrokenRule> + Send + Sync>;

/// A rule that the traffic of a test breaks.
pub struct BrokenRule {
    pub diagnostic: Diagnostic,
    /// The last frame that shows it.
    pub frame: Option<FrameId>,
}

/// What one session of a test saw.
pub struct Traffic<'a> {
    pub conversation: Conversation,
    /// Whether it begins with the session. Otherwise there are only the handshake and what came during this test.
    pub is_whole: bool,
    /// Whether it ends with the session: nobody has told yet what came since then and is no message.
    pub is_over: bool,
    /// The first frame of this test: what ended before is not its own.
    pub since: FrameId,
    /// Rules that the test is not judged by, as they are named.
    pub skipped: Vec<&'a str>,
    /// Codes of errors that are known already.
    pub told: BTreeSet<String>,
}

/// Told for one test; the rest is as in `check`.
const MOST: usize = 5;
/// A shared session is judged as a whole while it has no more frames: each of its tests looks through all of them.
const SHORT: u64 = 500;
/// Frames that are shown of each.
const SHOWN: usize = 8;

/// All that a case has, and had.
pub(super) struct SessionsOfCase<'a> {
    pub(super) open: &'a BTreeMap<String, Open>,
    pub(super) past: &'a [EndedSession],
    pub(super) renewed: &'a BTreeMap<String, Renewed>,
}

/// Adds what servers did wrong while a case ran, whatever its steps expect.
pub(super) fn judge(work: &Work, options: &RunOptions, sessions: SessionsOfCase<'_>, outcome: &mut CaseOutcome) {
    let SessionsOfCase { open, past, renewed } = sessions;
    let (Some(judge), case) = (&options.judge, work.case()) else { return };
    if is_odd(work, case) {
        return;
    }
    let errors = outcome.diagnostics.iter().filter(|known| known.severity == Severity::Error || case.allows_faults);
    let told: BTreeSet<String> = errors.map(|known| known.code.clone()).collect();
    let skipped: Vec<&str> = case.skip_rules.iter().map(|rule| rule.name.as_str()).collect();
    let whole = |conversation| Traffic {
        conversation,
        is_whole: true,
        is_over: false,
        since: FrameId(0),
        skipped: skipped.clone(),
        told: told.clone(),
    };
    let ended = past.iter().filter_map(|past| {
        let spoke = past.spoke.clone()?;
        Some(whole(conversation(&past.transcript.server, spoke, past.transcript.transcript.clone())))
    });
    let renewed = renewed.iter().map(|(name, Renewed { spoke, transcript })| whole(conversation(name, spoke.clone(), transcript.clone())));
    let open = open
        .iter()
        .filter(|(_, open)| open.injector.is_none())
        .map(|(name, open)| Traffic { told: told.clone(), ..of_session(work, name, open.record()) });
    let (mut found, mut codes) = (Vec::new(), BTreeSet::new());
    for traffic in ended.chain(renewed).chain(open) {
        found.extend(broken(work, judge, &traffic, &outcome.steps, &mut codes));
    }
    outcome.diagnostics.extend(found.into_iter().map(|diagnostic| unless_allowed(case, diagnostic)));
}

/// What a server did wrong after its last case was judged, until its session had ended.
pub(super) fn judge_rest(work: &Work, options: &RunOptions, name: &str, record: SessionRecord) -> Vec<Diagnostic> {
    let Some(judge) = options.judge.as_ref().filter(|_| !is_odd(work, work.case())) else { return Vec::new() };
    let is_message = |frame: &Frame| match &frame.body {
        FrameBody::Line { .. } | FrameBody::SseEvent { .. } => frame.direction == Direction::FromServer,
        FrameBody::HttpBody { bytes, .. } => !bytes.as_bytes().is_empty(),
        _ => false,
    };
    if !record.tap.transcript_since(record.since).frames.iter().any(is_message) {
        return Vec::new();
    }
    let traffic = Traffic { is_over: true, ..of_session(work, name, record) };
    broken(work, judge, &traffic, &[], &mut BTreeSet::new())
}

/// The traffic of one session, to be judged for a case.
fn of_session<'w>(work: &'w Work, name: &str, record: SessionRecord) -> Traffic<'w> {
    let SessionRecord { since, begins, tap, opening, spoke } = record;
    // What was sent in a shared session before is a part of it. Looks at all cases, so only for as long as a session is short.
    let is_sound = || !work.suite.cases.iter().any(|other| other.isolation == Isolation::File && is_odd(work, other));
    let is_short = tap.mark().0.saturating_sub(begins.0) <= SHORT;
    let (transcript, is_whole) = match &opening {
        Some(opening) if !is_short || !is_sound() => {
            let Transcript { frames, dropped } = tap.transcript_since(since);
            (Transcript { frames: opening.iter().cloned().chain(frames).collect(), dropped }, false)
        }
        _ => (tap.transcript_since(begins), true),
    };
    let skipped = work.case().skip_rules.iter().map(|rule| rule.name.as_str()).collect();
    Traffic { conversation: conversation(name, spoke, transcript), is_whole, is_over: false, since, skipped, told: BTreeSet::new() }
}

/// An error for each rule that traffic breaks, at the step of the case that shows it. `codes` has those that the case has already.
fn broken(
    work: &Work,
    judge: &TrafficJudge,
    traffic: &Traffic<'_>,
    steps: &[StepOutcome],
    codes: &mut BTreeSet<String>,
) -> Vec<Diagnostic> {
    let Conversation { name, transcript, .. } = &traffic.conversation;
    let place = &work.case().place;
    if transcript.dropped > 0 {
        let message = format!("the traffic of `{name}` was not checked against rules, because it exceeds the transcript limit");
        let hint = "raise `limits: { transcript }` of the server, or --max-transcript";
        return vec![Diagnostic::warning("traffic-not-judged", message).at(place.clone()).hint(hint)];
    }
    let mut found = Vec::new();
    for BrokenRule { diagnostic, frame } in judge(traffic) {
        if codes.len() < MOST && codes.insert(diagnostic.code.clone()) {
            // Of the step that was under way.
            let was_over = |response: &Option<FrameId>| *response < frame;
            let exchanges = |step: &&StepOutcome| step.server == *name && step.exchanges.iter().any(|one| one.frame.is_some());
            let mut steps = steps.iter().filter(exchanges);
            let step = steps.find(|step| !step.exchanges.iter().all(|exchange| was_over(&exchange.frame)));
            let place = step.map_or(place, |step| &step.place);
            found.push(diagnostic.at(place.clone()).evidence(transcript.around(frame, SHOWN, 0)));
        }
    }
    found
}

/// Whether its client does what no client does that keeps to the specification.
fn is_odd(work: &Work, case: &Case) -> bool {
    let hooks = [&case.hooks, &work.suite.shared];
    let mut steps = hooks.into_iter().flat_map(|hooks| hooks.setup.iter().chain(&hooks.teardown)).chain(&case.steps).flat_map(Step::leaves);
    let is_odd = |step: &Step| matches!(step.action, Action::Raw(_) | Action::Http(_) | Action::SendBytes(_));
    !case.faults.is_empty() || steps.any(is_odd)
}

fn conversation(name: &str, (transport, revision): (String, String), transcript: Transcript) -> Conversation {
    let (name, opened) = (name.to_owned(), Opened::Yes);
    Conversation { name, transport, revision, opened, probes: Vec::new(), ending: None, sdks: Vec::new(), transcript }
}
