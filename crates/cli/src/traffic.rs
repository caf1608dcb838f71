//! Holds the traffic of tests against the rules of `check`. Knows rules and their findings, not how tests run.

use mcproof_record::{Diagnostic, Finding, Judged, Severity};
use mcproof_rules::{self as rules, Strictness};
use mcproof_suite::plan::{SkippedRule, Suite};
use mcproof_suite::run::Traffic;
use std::slice;

/// An error for each rule that the traffic of a test breaks. There is none where known clients cope, nor where the server may do what a
/// version of its SDK does: which it has, `check` finds out.
pub(crate) fn judge(traffic: &Traffic<'_>) -> Vec<Diagnostic> {
    // Names that are not known have been reported with the suite.
    let selected = rules::of_traffic(traffic.is_whole, &traffic.skipped).unwrap_or_default();
    let mut results = rules::judge(&selected, slice::from_ref(&traffic.conversation), Strictness::Tolerant);
    let first = results.iter_mut().filter_map(|result| {
        let Judged::Broken { findings } = &mut result.judged else { return None };
        let is_its_own = |finding: &Finding| !rules::may_be_of_an_sdk(&result.rule, &finding.message);
        let position = findings.iter().position(|finding| finding.severity == Severity::Error && is_its_own(finding))?;
        let finding = findings.swap_remove(position);
        let (rule, remedy) = (&result.rule, finding.remedy);
        let hint = format!("{remedy}; see `mcproof explain {rule}`, or add `skip_rules: [{rule}]` to leave it out");
        Some(Diagnostic::error(rule, finding.message).hint(hint))
    });
    first.collect()
}

/// Names in `skip_rules` that no rule has.
pub(crate) fn unknown_rules(suite: &Suite) -> Vec<Diagnostic> {
    let mut names: Vec<&SkippedRule> = suite.cases.iter().flat_map(|case| &case.skip_rules).collect();
    names.sort_by_key(|rule| (rule.place.line, rule.place.column, &rule.name));
    names.dedup_by_key(|rule| (rule.place.line, rule.place.column, &rule.name));
    let unknown = |rule: &SkippedRule| Some(rules::of_traffic(true, &[&rule.name]).err()?.diagnostic().at(rule.place.clone()));
    names.into_iter().filter_map(unknown).collect()
}
