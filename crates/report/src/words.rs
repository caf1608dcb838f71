//! The words for facts that several reporters show: states of servers, likely causes, counts. Text lives once.

use crate::diagnostic::wire;
use crate::style::count;
use mcproof_record::{Aftermath, Blame, Branch, CasePlan, Counts, Coverage, Diagnostic, ItemKind, Parting, Proof, ServerState, Verdict};
use std::time::Duration;

/// `shop exited with code 3; likely cause: the server`, for each server that a case used. Nothing of a server that is still running if that
/// points to no cause, and nothing that the failure itself says: that a server did not start, exited, or cannot be reached.
pub(crate) fn aftermath(found: &[Aftermath], diagnostics: &[Diagnostic]) -> Vec<String> {
    let says = |code: &str| found.len() == 1 && diagnostics.iter().any(|diagnostic| diagnostic.code == code);
    let adds = |after: &&Aftermath| match (after.state, after.blame) {
        (ServerState::Answers, Blame::ServerOrSuite) | (ServerState::NotStarted, Blame::Server) => false,
        (ServerState::Died, Blame::Server) => !says("server-exited"),
        (ServerState::Unreachable, Blame::Network) => !says("server-unreachable"),
        _ => true,
    };
    found.iter().filter(adds).map(state_and_cause).collect()
}

fn state_and_cause(after: &Aftermath) -> String {
    let Aftermath { server, state, blame, message } = after;
    let found = match state {
        _ if !message.is_empty() => message,
        ServerState::Answers => "still responds",
        ServerState::NotStarted => "did not start",
        ServerState::Died => "exited",
        ServerState::Hung => "hangs",
        ServerState::Silent => "is running but does not respond",
        ServerState::Unreachable => "cannot be reached",
    };
    let cause = match blame {
        Blame::Server => "the server",
        Blame::Network => "the network",
        Blame::Suite => "the suite",
        Blame::ServerOrSuite => "the server or the suite",
        Blame::InjectedFault => "an injected fault",
    };
    format!("{server} {found}; likely cause: {cause}")
}

/// `an order #2` for the second run of a test that is repeated.
pub(crate) fn case_name(case: &CasePlan) -> String {
    repeated(&case.name, &[case.repetition])
}

/// `an order #1-3, #7`: the runs of a test, in rising order; 0 is one that is not repeated.
pub(crate) fn repeated(name: &str, repetitions: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in repetitions.iter().copied().filter(|number| *number > 0) {
        match ranges.last_mut() {
            Some((_, last)) if number <= last.saturating_add(1) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let ranges: Vec<String> =
        ranges.into_iter().map(|(first, last)| if first == last { format!("#{first}") } else { format!("#{first}-{last}") }).collect();
    if ranges.is_empty() { name.to_owned() } else { format!("{name} {}", ranges.join(", ")) }
}

/// `shop: stdio, legacy era, protocol 2025-11-25`.
pub(crate) fn proof(proof: &Proof) -> String {
    let Proof { server, transport, era, protocol_version } = proof;
    let server = if server.is_empty() { String::new() } else { format!("{server}: ") };
    format!("{server}{transport}, {era} era, protocol {protocol_version}")
}

/// `6 passed, 3 failed in 0.84 s`.
pub(crate) fn counts(counts: &Counts, duration: Duration) -> String {
    let parts: Vec<String> = parts(counts).into_iter().map(|(number, word)| format!("{number} {word}")).collect();
    let parts = if parts.is_empty() { "no test ran".to_owned() } else { parts.join(", ") };
    format!("{parts} in {:.2} s", duration.as_secs_f64())
}

/// The counts above zero; that of passed tests also if it is zero, unless no test ran.
pub(crate) fn parts(counts: &Counts) -> Vec<(u32, &'static str)> {
    let Counts { passed, flaky, failed, skipped, canceled } = *counts;
    let is_empty = *counts == Counts::default();
    let all = [(passed, "passed"), (flaky, "flaky"), (failed, "failed"), (skipped, "skipped"), (canceled, "canceled")];
    all.into_iter().filter(|(number, word)| *number > 0 || (*word == "passed" && !is_empty)).collect()
}

pub(crate) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "passed",
        Verdict::Flaky => "flaky",
        Verdict::Fail => "failed",
        Verdict::Skipped => "skipped",
        Verdict::Canceled => "canceled",
    }
}

/// `stdio and sse`, `stdio, http and sse`.
pub(crate) fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [start @ .., last] => format!("{} and {last}", start.join(", ")),
    }
}

/// `passes on stdio and sse, fails on http`.
pub(crate) fn transport_specific(failed: &[String], passed: &[String]) -> String {
    format!("passes on {}, fails on {}", list(passed), list(failed))
}

/// The first difference between two transports: the step, and what was received there on each.
pub(crate) fn parting(parting: &Parting) -> [(&'static str, String); 3] {
    let received = |Branch { transport, frame }: &Branch| {
        let summary = frame.as_ref().and_then(|frame| wire::summary(frame, &[]));
        format!("{transport}: {}", summary.map_or_else(|| "no response".to_owned(), |(summary, _)| summary))
    };
    [("first differs at", parting.step.clone()), ("passes with", received(&parting.passed)), ("fails with", received(&parting.failed))]
}

/// `passed at attempt 2`.
pub(crate) fn attempts(attempts: u32) -> String {
    format!("passed at attempt {attempts}")
}

/// `12 of 15 used (80 %)`.
pub(crate) fn coverage(coverage: &Coverage) -> String {
    format!("{} of {} used ({} %)", coverage.used(), count(coverage.items.len() as u64, "item"), coverage.percent())
}

/// What no case used, by kind: the label, and the names.
pub(crate) fn unused(coverage: &Coverage) -> Vec<(&'static str, Vec<String>)> {
    let mut kinds: Vec<(ItemKind, Vec<String>)> = Vec::new();
    for item in coverage.unused() {
        let name = item.argument.as_ref().map_or_else(|| item.name.clone(), |argument| format!("{}({argument})", item.name));
        match kinds.iter_mut().find(|(kind, _)| *kind == item.kind) {
            Some((_, names)) => names.push(name),
            None => kinds.push((item.kind, vec![name])),
        }
    }
    kinds.sort_by_key(|(kind, _)| *kind);
    kinds.into_iter().map(|(kind, names)| (label(kind), names)).collect()
}

fn label(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Tool => "tools",
        ItemKind::ToolArgument => "tool arguments",
        ItemKind::ToolError => "error paths",
        ItemKind::Prompt => "prompts",
        ItemKind::PromptArgument => "prompt arguments",
        ItemKind::Resource => "resources",
        ItemKind::ResourceTemplate => "templates",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_server_is_told_where_the_failure_does_not_say_it() {
        let check = |state: ServerState, blame: Blame, code: &str, expected: &[&str]| {
            let after = Aftermath { server: "shop".to_owned(), state, blame, message: "is so".to_owned() };
            assert_eq!(aftermath(&[after], &[Diagnostic::error(code, "message")]), expected, "{state:?} {blame:?} {code}");
        };
        check(ServerState::Died, Blame::Server, "server-exited", &[]);
        check(ServerState::Died, Blame::Server, "no-response", &["shop is so; likely cause: the server"]);
        check(ServerState::Died, Blame::Suite, "server-exited", &["shop is so; likely cause: the suite"]);
        check(ServerState::Unreachable, Blame::Network, "server-unreachable", &[]);
        check(ServerState::Unreachable, Blame::Network, "no-response", &["shop is so; likely cause: the network"]);
        check(ServerState::NotStarted, Blame::Server, "server-exited", &[]);
        check(ServerState::Answers, Blame::ServerOrSuite, "unexpected-value", &[]);
    }

    #[test]
    fn repetitions_are_shown_as_ranges() {
        let check = |repetitions: &[u32], expected: &str| assert_eq!(repeated("a", repetitions), expected);
        check(&[0], "a");
        check(&[2], "a #2");
        check(&[1, 2, 3, 3, 5, 7, 8], "a #1-3, #5, #7-8");
        check(&[1, 1], "a #1");
    }
}
