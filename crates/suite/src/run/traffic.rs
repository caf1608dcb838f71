//! Holds the traffic of a test against rules that are handed in: a suite knows none. Only what a client sent that keeps to the
//! specification proves anything about its server.

use super::RunOptions;
use super::expand::Work;
use super::sessions::{EndedSession, Open};
use crate::plan::{Action, Step};
use mcproof_record::{Conversation, Diagnostic, Opened, Transcript};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Gives an error for each rule that is broken, by the id of the rule.
pub type TrafficJudge = Arc<dyn Fn(&Traffic<'_>) -> Vec<Diagnostic> + Send + Sync>;

/// What one session of a test saw.
pub struct Traffic<'a> {
    pub conversation: Conversation,
    /// Whether it begins with the session. Otherwise there are only the handshake and what came during this test.
    pub is_whole: bool,
    /// Rules that the test is not judged by, as they are named.
    pub skipped: Vec<&'a str>,
}

/// Told for one test; the rest is as in `check`.
const MOST: usize = 5;

/// What servers did wrong while a case ran, whatever its steps expect.
pub(super) fn judge(work: &Work, options: &RunOptions, open: &BTreeMap<String, Open>, past: &[EndedSession]) -> Vec<Diagnostic> {
    let (Some(judge), case) = (&options.judge, work.case()) else { return Vec::new() };
    let hooks = [&case.hooks, &work.suite.shared];
    let mut steps = hooks.into_iter().flat_map(|hooks| hooks.setup.iter().chain(&hooks.teardown)).chain(&case.steps).flat_map(Step::leaves);
    let is_odd = |step: &Step| matches!(step.action, Action::Raw(_) | Action::Http(_) | Action::SendBytes(_));
    if !case.faults.is_empty() || steps.any(is_odd) {
        return Vec::new();
    }
    let skipped = || case.skip_rules.iter().map(|rule| rule.name.as_str()).collect();
    let ended = past.iter().filter_map(|past| {
        let (transport, revision) = past.spoke.clone()?;
        let conversation = conversation(&past.transcript.server, transport, revision, past.transcript.transcript.clone());
        Some(Traffic { conversation, is_whole: true, skipped: skipped() })
    });
    let open = open.iter().filter(|(_, open)| open.injector.is_none() && !open.is_renewed).map(|(name, open)| {
        let (transport, revision) = open.spoke();
        let (transcript, is_whole) = match &open.opening {
            None => (open.tap.transcript(), true),
            Some(opening) => {
                let Transcript { frames, dropped } = open.tap.transcript_since(open.since);
                (Transcript { frames: opening.iter().cloned().chain(frames).collect(), dropped }, false)
            }
        };
        Traffic { conversation: conversation(name, transport, revision, transcript), is_whole, skipped: skipped() }
    });
    let mut told = BTreeSet::new();
    let all = ended.chain(open).filter(|traffic| traffic.conversation.transcript.dropped == 0);
    all.flat_map(|traffic| judge(&traffic))
        .filter(|diagnostic| told.insert(diagnostic.code.clone()))
        .take(MOST)
        .map(|diagnostic| diagnostic.at(case.place.clone()))
        .collect()
}

fn conversation(name: &str, transport: String, revision: String, transcript: Transcript) -> Conversation {
    let (name, opened) = (name.to_owned(), Opened::Yes);
    Conversation { name, transport, revision, opened, probes: Vec::new(), ending: None, sdks: Vec::new(), transcript }
}
