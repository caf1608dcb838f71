//! What needs attention in a run: failures, warnings and reasons, each once with all cases that share it. Does not render them.

use crate::words;
use mcproof_record::{Aftermath, CaseId, CaseOutcome, CasePlan, Diagnostic, Event, Place, Verdict};
use std::collections::BTreeMap;

/// The findings of a run so far.
#[derive(Default)]
pub(crate) struct Findings {
    planned: BTreeMap<CaseId, CasePlan>,
    by_case: BTreeMap<CaseId, Finding>,
}

/// What is stored of a case: not its transcripts, which may be large.
pub(crate) struct Finding {
    pub(crate) verdict: Verdict,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) aftermath: Vec<Aftermath>,
}

/// A finding with the cases that share it, in the order of the plan.
pub(crate) struct Shared<'a> {
    pub(crate) cases: Vec<&'a CasePlan>,
    pub(crate) finding: &'a Finding,
}

impl Findings {
    pub(crate) fn add(&mut self, event: &Event) {
        match event {
            Event::RunStarted { cases, .. } => self.planned = cases.iter().map(|case| (case.id, case.clone())).collect(),
            Event::CaseFinished(outcome) if outcome.verdict == Verdict::Fail || !outcome.diagnostics.is_empty() => {
                let CaseOutcome { verdict, diagnostics, aftermath, .. } = outcome.clone_without_transcripts();
                self.by_case.insert(outcome.id, Finding { verdict, diagnostics, aftermath });
            }
            _ => {}
        }
    }

    pub(crate) fn plan(&self, id: CaseId) -> Option<&CasePlan> {
        self.planned.get(&id)
    }

    pub(crate) fn planned(&self) -> impl Iterator<Item = &CasePlan> {
        self.planned.values()
    }

    pub(crate) fn diagnostics(&self) -> impl Iterator<Item = &Diagnostic> {
        self.by_case.values().flat_map(|finding| &finding.diagnostics)
    }

    /// In the order of the plan, each with all cases that share it.
    pub(crate) fn shared(&self) -> Vec<Shared<'_>> {
        let mut groups: Vec<Shared> = Vec::new();
        for (id, finding) in &self.by_case {
            let Some(case) = self.plan(*id) else { continue };
            match groups.iter_mut().find(|group| same(group.finding, finding)) {
                Some(group) => group.cases.push(case),
                None => groups.push(Shared { cases: vec![case], finding }),
            }
        }
        groups
    }
}

/// A test that shares a finding.
pub(crate) struct Title<'a> {
    pub(crate) suite: &'a str,
    /// With the repetitions, where it is repeated.
    pub(crate) name: String,
    pub(crate) transports: Vec<&'a str>,
}

impl Shared<'_> {
    /// The tests by suite and name, each once, with the transports on which it shares the finding; repetitions stand together
    /// where they do so on the same transports.
    pub(crate) fn titles(&self) -> Vec<Title<'_>> {
        type Key<'a> = (&'a str, &'a str, u32);
        let mut runs: Vec<(Key, Vec<&str>)> = Vec::new();
        for case in &self.cases {
            let key = (case.suite.as_str(), case.name.as_str(), case.repetition);
            match runs.iter_mut().find(|(known, _)| *known == key) {
                Some((_, transports)) => transports.push(&case.transport),
                None => runs.push((key, vec![&case.transport])),
            }
        }
        let mut tests: Vec<(&str, &str, Vec<u32>, Vec<&str>)> = Vec::new();
        for ((suite, name, repetition), transports) in runs {
            match tests.iter_mut().find(|test| (test.0, test.1, &test.3) == (suite, name, &transports)) {
                Some(test) => test.2.push(repetition),
                None => tests.push((suite, name, vec![repetition], transports)),
            }
        }
        let title = |(suite, name, repetitions, transports): (_, &str, Vec<u32>, _)| Title {
            suite,
            name: words::repeated(name, &repetitions),
            transports,
        };
        tests.into_iter().map(title).collect()
    }
}

/// The most useful place: that of the first difference, or else that of the expectation.
pub(crate) fn place(diagnostic: &Diagnostic) -> Option<&Place> {
    diagnostic.differences.iter().find_map(|difference| difference.place.as_ref()).or(diagnostic.place.as_ref())
}

/// Whether two cases fail in the same way, apart from transcripts and durations.
fn same(one: &Finding, other: &Finding) -> bool {
    let alike = |(one, other): (&Diagnostic, &Diagnostic)| {
        one.code == other.code
            && one.place == other.place
            && one.differences == other.differences
            && without_durations(&one.message) == without_durations(&other.message)
    };
    let left =
        |finding: &Finding| -> Vec<_> { finding.aftermath.iter().map(|after| (after.server.clone(), after.state, after.blame)).collect() };
    one.verdict == other.verdict
        && one.diagnostics.len() == other.diagnostics.len()
        && one.diagnostics.iter().zip(&other.diagnostics).all(alike)
        && left(one) == left(other)
}

/// The words of a message but for the numbers before `ms` and `s`.
fn without_durations(message: &str) -> Vec<&str> {
    let words: Vec<&str> = message.split(' ').collect();
    let is_unit = |word: &str| matches!(word.trim_end_matches([',', '.', ';', ':', ')']), "ms" | "s");
    let is_duration = |index: usize| words[index].parse::<f64>().is_ok() && words.get(index + 1).is_some_and(|next| is_unit(next));
    (0..words.len()).filter(|index| !is_duration(*index)).map(|index| words[index]).collect()
}
