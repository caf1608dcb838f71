//! What the traffic of a test breaks, whatever the test expects: errors that nothing but the server is to blame for. Knows neither suites
//! nor drivers.

use crate::judging::{Strictness, judge};
use crate::sdk::may_be_of_an_sdk;
use crate::selection::{UnknownRule, of_endings, of_traffic, select};
use mcproof_record::{Conversation, Finding, FrameId, Judged, RuleResult, Severity};
use std::collections::BTreeSet;
use std::slice;

/// Errors of the client, each with the rule that says the same.
const SAME: [(&str, &str); 4] = [
    ("answered-twice", "request-gets-one-response"),
    ("duplicate-name", "list-has-no-duplicates"),
    ("invalid-result", "message-matches-schema"),
    ("unknown-id", "response-belongs-to-a-request"),
];

/// The rule about responses to pings.
const OF_PINGS: &str = "ping-gets-empty-result";
/// The rule about results of tools with an `outputSchema`.
const OF_OUTPUTS: &str = "call-output-matches-schema";

/// Which part of a conversation is judged, and by which rules.
#[derive(Clone, Debug)]
pub struct TrafficScope<'a> {
    /// Whether the conversation begins with the session. Otherwise it has only the handshake and what came since.
    pub is_whole: bool,
    /// Whether it ends with the session: nobody has told yet what came at the end and is no message.
    pub is_over: bool,
    /// What ended before this frame was judged already.
    pub since: FrameId,
    /// Rules that it is not judged by, as the user names them.
    pub skipped: &'a [&'a str],
    /// Codes of the errors of the client that are known already.
    pub told: &'a BTreeSet<String>,
    pub tester: Tester,
}

/// Who talks to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tester {
    /// A suite, whose steps hold results against the output schemas of tools.
    Suite,
    /// A test in a programming language, which does not: they are held against what it has listed. Pings are also sent to see what else a
    /// server has to say: no test asked for these, and none fails for them.
    Library,
}

/// The first error of each rule that the traffic of a client breaks which keeps to the specification, with the id of the rule. There is
/// none where known clients cope, nor where the server may do what a version of its SDK does: which it has, `check` finds out.
///
/// # Errors
/// A selector of `skipped` matches no rule.
pub fn errors_of_traffic(conversation: &Conversation, scope: &TrafficScope<'_>) -> Result<Vec<(String, Finding)>, UnknownRule> {
    let mut selected = of_traffic(scope.is_whole, scope.skipped)?;
    if scope.is_over {
        selected.extend(of_endings(scope.skipped)?);
    }
    if scope.tester == Tester::Library {
        let skipped: Vec<String> = scope.skipped.iter().map(ToString::to_string).collect();
        selected.retain(|rule| rule.id != OF_PINGS);
        selected.extend(select(&[OF_OUTPUTS.to_owned()], &skipped)?);
    }
    selected.retain(|rule| !SAME.iter().any(|(code, same)| rule.id == *same && scope.told.contains(*code)));
    let results = judge(&selected, slice::from_ref(conversation), Strictness::Tolerant);
    let first = results.into_iter().filter_map(|RuleResult { rule, judged, .. }| {
        let Judged::Broken { findings } = judged else { return None };
        let is_its_own = |finding: &Finding| {
            let frame = finding.frames.iter().max();
            finding.severity == Severity::Error
                && frame.is_none_or(|frame| *frame >= scope.since)
                && !may_be_of_an_sdk(&rule, &finding.message)
        };
        let finding = findings.into_iter().find(is_its_own)?;
        Some((rule, finding))
    });
    Ok(first.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find;
    use mcproof_record::{Opened, Transcript};

    fn errors(skipped: &[&str]) -> Result<Vec<(String, Finding)>, UnknownRule> {
        let (name, transport, revision) = ("s".to_owned(), "stdio".to_owned(), "2025-11-25".to_owned());
        let (probes, transcript) = (Vec::new(), Transcript::default());
        let conversation =
            Conversation { name, transport, revision, opened: Opened::Yes, probes, ending: None, sdks: Vec::new(), transcript };
        let (since, told) = (FrameId(0), BTreeSet::new());
        let scope = TrafficScope { is_whole: true, is_over: true, since, skipped, told: &told, tester: Tester::Library };
        errors_of_traffic(&conversation, &scope)
    }

    #[test]
    fn rules_that_are_named_here_exist() {
        assert!(SAME.iter().all(|(_, rule)| find(rule).is_some()));
        assert!(find(OF_PINGS).is_some() && find(OF_OUTPUTS).is_some());
    }

    #[test]
    fn what_no_rule_is_called_cannot_be_left_out() {
        assert!(errors(&["progress-*"]).unwrap().is_empty());
        assert_eq!(errors(&["progress-increase"]).unwrap_err().near, Some("progress-increases"));
    }
}
