//! Holds the traffic of a test against rules that are handed in: a suite knows none. Only what a client sent that keeps to the
//! specification proves anything about its server.

use super::RunOptions;
use super::expand::Work;
use super::sessions::{EndedSession, Open, Renewed};
use crate::plan::{Action, Case, Isolation, Step};
use mcproof_record::{CaseOutcome, Conversation, Diagnostic, FrameId, Opened, Severity, StepOutcome, Transcript};
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
    // What was sent in a shared session before is a part of it. Looks at all cases, so only for as long as a session is short.
    let is_sound = || !work.suite.cases.iter().any(|other| other.isolation == Isolation::File && is_odd(work, other));
    let errors = outcome.diagnostics.iter().filter(|known| known.severity == Severity::Error);
    let told: BTreeSet<String> = errors.map(|known| known.code.clone()).collect();
    let traffic = |conversation, is_whole, since| {
        let skipped = case.skip_rules.iter().map(|rule| rule.name.as_str()).collect();
        Traffic { conversation, is_whole, since, skipped, told: told.clone() }
    };
    let ended = past.iter().filter_map(|past| {
        let spoke = past.spoke.clone()?;
        let conversation = conversation(&past.transcript.server, spoke, past.transcript.transcript.clone());
        Some(traffic(conversation, true, FrameId(0)))
    });
    let renewed = renewed
        .iter()
        .map(|(name, Renewed { spoke, transcript })| traffic(conversation(name, spoke.clone(), transcript.clone()), true, FrameId(0)));
    let open = open.iter().filter(|(_, open)| open.injector.is_none()).map(|(name, open)| {
        let is_short = open.tap.mark().0.saturating_sub(open.begins.0) <= SHORT;
        let (transcript, is_whole) = match &open.opening {
            Some(opening) if !is_short || !is_sound() => {
                let Transcript { frames, dropped } = open.tap.transcript_since(open.since);
                (Transcript { frames: opening.iter().cloned().chain(frames).collect(), dropped }, false)
            }
            _ => (open.tap.transcript_since(open.begins), true),
        };
        traffic(conversation(name, open.spoke(), transcript), is_whole, open.since)
    });
    let (mut found, mut codes) = (Vec::new(), BTreeSet::new());
    for traffic in ended.chain(renewed).chain(open) {
        let Conversation { name, transcript, .. } = &traffic.conversation;
        if transcript.dropped > 0 {
            let message = format!("the traffic of `{name}` was not checked against rules, because it exceeds the transcript limit");
            let hint = "raise `limits: { transcript }` of the server, or --max-transcript";
            found.push(Diagnostic::warning("traffic-not-judged", message).at(case.place.clone()).hint(hint));
            continue;
        }
        for BrokenRule { diagnostic, frame } in judge(&traffic) {
            if codes.len() < MOST && codes.insert(diagnostic.code.clone()) {
                // Of the step that was under way.
                let was_over = |response: &Option<FrameId>| *response < frame;
                let exchanges = |step: &&StepOutcome| step.server == *name && step.exchanges.iter().any(|one| one.frame.is_some());
                let mut steps = outcome.steps.iter().filter(exchanges);
                let step = steps.find(|step| !step.exchanges.iter().all(|exchange| was_over(&exchange.frame)));
                let place = step.map_or(&case.place, |step| &step.place);
                found.push(diagnostic.at(place.clone()).evidence(transcript.around(frame, SHOWN, 0)));
            }
        }
    }
    outcome.diagnostics.extend(found);
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
