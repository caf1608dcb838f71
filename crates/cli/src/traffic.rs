//! Holds the traffic of tests against the rules of `check`. Knows rules and their findings, not how tests run.

use mcproof_record::{Diagnostic, Finding};
use mcproof_rules::{self as rules, Tester, TrafficScope};
use mcproof_suite::plan::{SkippedRule, Suite};
use mcproof_suite::run::{BrokenRule, Traffic};

/// An error for each rule that the traffic of a test breaks.
pub(crate) fn judge(traffic: &Traffic<'_>) -> Vec<BrokenRule> {
    let Traffic { conversation, is_whole, is_over, since, skipped, told } = traffic;
    let scope = TrafficScope { is_whole: *is_whole, is_over: *is_over, since: *since, skipped, told, tester: Tester::Suite };
    // Without any rule, every test would pass.
    let errors = rules::errors_of_traffic(conversation, &scope).expect("unknown rules are errors of the suite");
    let broken = |(rule, finding): (String, Finding)| {
        let Finding { message, remedy, frames, .. } = finding;
        let hint = format!("{remedy}; see `mcproof explain {rule}`, or add `skip_rules: [{rule}]` to leave it out");
        BrokenRule { diagnostic: Diagnostic::error(rule, message).hint(hint), frame: frames.into_iter().max() }
    };
    errors.into_iter().map(broken).collect()
}

/// Names in `skip_rules` that no rule has.
pub(crate) fn unknown_rules(suite: &Suite) -> Vec<Diagnostic> {
    let mut names: Vec<&SkippedRule> = suite.cases.iter().flat_map(|case| &case.skip_rules).collect();
    names.sort_by_key(|rule| (rule.place.line, rule.place.column, &rule.name));
    names.dedup_by_key(|rule| (rule.place.line, rule.place.column, &rule.name));
    let unknown = |rule: &SkippedRule| Some(rules::of_traffic(true, &[&rule.name]).err()?.diagnostic().at(rule.place.clone()));
    names.into_iter().filter_map(unknown).collect()
}
