//! The cases that earlier runs left unfinished, so that the next run can select them. A fold over summaries; knows no files.

use crate::{CasePlan, FORMAT_VERSION, Summary};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Identifies a case in every run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CaseKey {
    /// Its suite file, relative to the folder of [`LastRun`] where it is below it.
    pub suite: String,
    pub name: String,
    pub transport: String,
}

/// The cases that failed, were canceled or never ran when they were last selected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastRun {
    pub version: u32,
    /// Where it was run.
    pub folder: String,
    pub unfinished: BTreeSet<CaseKey>,
}

impl LastRun {
    pub fn new(folder: impl Into<String>) -> Self {
        Self { version: FORMAT_VERSION, folder: folder.into(), unfinished: BTreeSet::new() }
    }

    /// Adds one more run. Cases that it did not select do not change.
    pub fn fold(&mut self, summary: &Summary, key: impl Fn(&CasePlan) -> CaseKey) {
        for case in &summary.planned {
            self.unfinished.remove(&key(case));
        }
        // All repetitions of a case have one key: it is finished when all of them are.
        let is_open = |case: &&CasePlan| match summary.outcomes.get(&case.id) {
            Some(outcome) => !outcome.verdict.is_success() && outcome.verdict != crate::Verdict::Skipped,
            None => true,
        };
        self.unfinished.extend(summary.planned.iter().filter(is_open).map(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CaseId, CaseOutcome, Event, Verdict, fold};
    use std::time::Duration;

    fn ran(verdicts: &[(&str, Option<Verdict>)]) -> Summary {
        let plan = |(id, (name, _)): (u32, &(&str, Option<Verdict>))| CasePlan {
            id: CaseId(id),
            suite: "s".into(),
            name: (*name).into(),
            transport: "stdio".into(),
            line: 1,
            repetition: 0,
            tags: vec![],
            servers: vec![],
        };
        let mut summary = Summary::default();
        let cases = (0..).zip(verdicts).map(plan).collect();
        fold(&mut summary, &Event::RunStarted { version: 1, cases, left_out: 0, seed: None });
        for (id, (_, verdict)) in (0..).zip(verdicts) {
            if let Some(verdict) = *verdict {
                fold(&mut summary, &Event::CaseFinished(CaseOutcome::new(CaseId(id), verdict, Duration::ZERO)));
            }
        }
        summary
    }

    #[test]
    fn what_is_unfinished_stays_until_it_passes() {
        use Verdict::{Canceled, Fail, Flaky, Pass, Skipped};
        let mut last = LastRun::new("/");
        let mut check = |verdicts: &[(&str, Option<Verdict>)], expected: &[&str]| {
            last.fold(&ran(verdicts), |case| CaseKey { suite: String::new(), name: case.name.clone(), transport: String::new() });
            let names: Vec<&str> = last.unfinished.iter().map(|key| key.name.as_str()).collect();
            assert_eq!(names, expected, "{verdicts:?}");
        };
        check(&[("a", Some(Pass)), ("b", Some(Fail)), ("c", None), ("d", Some(Canceled)), ("e", Some(Skipped))], &["b", "c", "d"]);
        check(&[("b", Some(Pass))], &["c", "d"]);
        check(&[("a", Some(Fail)), ("d", Some(Flaky))], &["a", "c"]);
        // Repetitions: one failure is a failure.
        check(&[("a", Some(Fail)), ("a", Some(Pass)), ("c", Some(Pass)), ("c", Some(Pass))], &["a"]);
        check(&[("a", Some(Pass)), ("a", Some(Pass))], &[]);
    }
}
