//! The summary of a run: a fold over its events, so that every reporter counts alike.

use crate::{CaseId, CaseOutcome, CasePlan, Event, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counts {
    pub passed: u32,
    /// Passed, but not at the first attempt.
    #[serde(default)]
    pub flaky: u32,
    pub failed: u32,
    /// Left out by the suite.
    #[serde(default)]
    pub skipped: u32,
    /// Planned, and never finished.
    #[serde(alias = "cancelled")]
    pub canceled: u32,
}

/// The state of a run so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    pub planned: Vec<CasePlan>,
    pub outcomes: BTreeMap<CaseId, CaseOutcome>,
}

/// Adds one event to the summary.
pub fn fold(summary: &mut Summary, event: &Event) {
    match event {
        Event::RunStarted { cases, .. } => summary.planned.clone_from(cases),
        Event::CaseFinished(outcome) => {
            summary.outcomes.insert(outcome.id, outcome.clone());
        }
        Event::CaseStarted { .. }
        | Event::TransportSpecific { .. }
        | Event::Notice { .. }
        | Event::Covered(_)
        | Event::RunFinished { .. } => {}
    }
}

impl Summary {
    /// A case without an outcome counts as canceled, never as passed.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for case in &self.planned {
            match self.outcomes.get(&case.id).map(|outcome| outcome.verdict) {
                Some(Verdict::Pass) => counts.passed += 1,
                Some(Verdict::Flaky) => counts.flaky += 1,
                Some(Verdict::Fail) => counts.failed += 1,
                Some(Verdict::Skipped) => counts.skipped += 1,
                Some(Verdict::Canceled) | None => counts.canceled += 1,
            }
        }
        counts
    }

    /// Whether any case got as far as a handshake.
    pub fn reached_a_server(&self) -> bool {
        self.outcomes.values().any(|outcome| !outcome.proof.is_empty())
    }

    /// The cases whose verdict differs between transports, in plan order.
    pub fn transport_specific(&self) -> Vec<Event> {
        let mut groups: Vec<((&str, &str), Vec<&CasePlan>)> = Vec::new();
        let mut known: HashMap<(&str, &str), usize> = HashMap::new();
        for case in &self.planned {
            let key = (case.suite.as_str(), case.name.as_str());
            let group = *known.entry(key).or_insert(groups.len());
            if group == groups.len() {
                groups.push((key, Vec::new()));
            }
            groups[group].1.push(case);
        }
        groups
            .into_iter()
            .filter_map(|((suite, name), cases)| {
                // Repeated cases have several verdicts on one transport; one that differs within itself is not about transports.
                let on = |wanted: fn(Verdict) -> bool| -> Vec<String> {
                    let mut transports: Vec<(&str, bool)> = Vec::new();
                    for case in &cases {
                        let Some(outcome) = self.outcomes.get(&case.id) else { continue };
                        let fits = wanted(outcome.verdict);
                        match transports.iter_mut().find(|(known, _)| *known == case.transport) {
                            Some((_, all)) => *all &= fits,
                            None => transports.push((&case.transport, fits)),
                        }
                    }
                    transports.into_iter().filter(|(_, all)| *all).map(|(transport, _)| transport.to_owned()).collect()
                };
                let (failed, passed) = (on(|verdict| verdict == Verdict::Fail), on(Verdict::is_success));
                (!failed.is_empty() && !passed.is_empty()).then(|| Event::TransportSpecific {
                    suite: suite.to_owned(),
                    name: name.to_owned(),
                    failed,
                    passed,
                    parting: None,
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn summary(verdicts: &[(&str, &str, Option<Verdict>)]) -> Summary {
        let mut summary = Summary::default();
        let cases = verdicts
            .iter()
            .zip(0..)
            .map(|((name, transport, _), id)| CasePlan {
                id: CaseId(id),
                suite: "s".into(),
                name: (*name).into(),
                transport: (*transport).into(),
                line: 1,
                repetition: 0,
                tags: vec![],
                servers: vec![],
            })
            .collect();
        fold(&mut summary, &Event::RunStarted { version: 1, cases, left_out: 0, seed: None });
        for ((_, _, verdict), id) in verdicts.iter().zip(0..) {
            if let Some(verdict) = *verdict {
                let outcome = CaseOutcome::new(CaseId(id), verdict, Duration::ZERO);
                fold(&mut summary, &Event::CaseFinished(outcome));
            }
        }
        summary
    }

    #[test]
    fn a_case_that_never_finished_is_not_green() {
        let counts = summary(&[("a", "stdio", Some(Verdict::Pass)), ("b", "stdio", None)]).counts();
        assert_eq!(counts, Counts { passed: 1, canceled: 1, ..Counts::default() });
    }

    #[test]
    fn a_case_that_differs_between_transports_is_named() {
        let pass = Some(Verdict::Pass);
        let fail = Some(Verdict::Fail);
        let found = summary(&[("a", "stdio", pass), ("b", "stdio", fail), ("a", "http", fail), ("b", "http", fail)]).transport_specific();
        let expected = Event::TransportSpecific {
            suite: "s".into(),
            name: "a".into(),
            failed: vec!["http".into()],
            passed: vec!["stdio".into()],
            parting: None,
        };
        assert_eq!(found, [expected]);
    }

    #[test]
    fn a_repeated_case_that_differs_within_a_transport_is_not_transport_specific() {
        let pass = Some(Verdict::Pass);
        let fail = Some(Verdict::Fail);
        assert_eq!(
            summary(&[("a", "stdio", pass), ("a", "http", fail), ("a", "stdio", pass), ("a", "http", pass)]).transport_specific(),
            []
        );
        let found = summary(&[("a", "stdio", pass), ("a", "http", fail), ("a", "stdio", pass), ("a", "http", fail)]).transport_specific();
        let expected = Event::TransportSpecific {
            suite: "s".into(),
            name: "a".into(),
            failed: vec!["http".into()],
            passed: vec!["stdio".into()],
            parting: None,
        };
        assert_eq!(found, [expected]);
    }
}
