//! Holds the traffic of tests against the rules of `check`. Knows rules and their findings, not how tests run.

use mcproof_record::{Diagnostic, Finding, Judged, RuleResult, Severity};
use mcproof_rules::{self as rules, Strictness};
use mcproof_suite::plan::{SkippedRule, Suite};
use mcproof_suite::run::{BrokenRule, Traffic};
use std::slice;

/// Errors of the client, each with the rule that says the same.
const SAME: [(&str, &str); 4] = [
    ("answered-twice", "request-gets-one-response"),
    ("duplicate-name", "list-has-no-duplicates"),
    ("invalid-result", "message-matches-schema"),
    ("unknown-id", "response-belongs-to-a-request"),
];

/// An error for each rule that the traffic of a test breaks. There is none where known clients cope, nor where the server may do what a
/// version of its SDK does: which it has, `check` finds out.
pub(crate) fn judge(traffic: &Traffic<'_>) -> Vec<BrokenRule> {
    // Without any rule, every test would pass.
    let mut selected = rules::of_traffic(traffic.is_whole, &traffic.skipped).expect("unknown rules are errors of the suite");
    if traffic.is_over {
        selected.extend(rules::of_endings(&traffic.skipped).expect("unknown rules are errors of the suite"));
    }
    selected.retain(|rule| !SAME.iter().any(|(code, same)| rule.id == *same && traffic.told.contains(*code)));
    let results = rules::judge(&selected, slice::from_ref(&traffic.conversation), Strictness::Tolerant);
    let first = results.into_iter().filter_map(|RuleResult { rule, judged, .. }| {
        let Judged::Broken { findings } = judged else { return None };
        let is_its_own = |finding: &Finding| {
            let frame = finding.frames.iter().max();
            finding.severity == Severity::Error
                && frame.is_none_or(|frame| *frame >= traffic.since)
                && !rules::may_be_of_an_sdk(&rule, &finding.message)
        };
        let Finding { message, remedy, frames, .. } = findings.into_iter().find(is_its_own)?;
        let hint = format!("{remedy}; see `mcproof explain {rule}`, or add `skip_rules: [{rule}]` to leave it out");
        Some(BrokenRule { diagnostic: Diagnostic::error(rule, message).hint(hint), frame: frames.into_iter().max() })
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
