//! Which rules are judged: ids, areas and globs, as the user names them.

use super::{Area, Rule, all};
use globset::Glob;
use mcproof_analysis::did_you_mean;
use mcproof_record::Diagnostic;
use std::sync::LazyLock;

/// A selector that matches no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no rule or area is called `{typed}`")]
pub struct UnknownRule {
    pub typed: String,
    /// The nearest name.
    pub near: Option<&'static str>,
}

impl UnknownRule {
    pub fn diagnostic(&self) -> Diagnostic {
        let family = |rule: &&Rule| rule.id.strip_prefix(self.typed.as_str()).is_some_and(|rest| rest.starts_with('-'));
        let hint = match self.near {
            _ if all().filter(family).nth(1).is_some() => format!("did you mean the rules `{}-*`?", self.typed),
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("areas: {}; list their rules with `mcproof explain`", Area::EVERY.map(Area::name).join(", ")),
        };
        Diagnostic::error("unknown-rule", self.to_string()).hint(hint)
    }
}

/// The rules that `only` names, without those that `skip` names. If `only` is empty: all rules except those about hosts, which are
/// judged only if they are named.
///
/// # Errors
/// A selector matches no rule.
pub fn select(only: &[String], skip: &[String]) -> Result<Vec<&'static Rule>, UnknownRule> {
    let mut selected: Vec<&'static Rule> =
        if only.is_empty() { all().filter(|rule| rule.area != Area::Hosts).collect() } else { named(only)? };
    let skipped = named(skip)?;
    selected.retain(|rule| !skipped.iter().any(|other| other.id == rule.id));
    Ok(selected)
}

/// The rules about hosts, with the rules of other areas that matter to hosts, without those that `skip` names.
///
/// # Errors
/// A selector matches no rule.
pub fn of_hosts(skip: &[String]) -> Result<Vec<&'static Rule>, UnknownRule> {
    select(&[Area::Hosts.name().to_owned(), LIMITS_OF_HOSTS.join(",")], skip)
}

/// The rules that the traffic of any client that keeps to the specification tells about its server, without those that `skip` names:
/// how messages look, when they may be sent, and what they may refer to. `is_whole`: the traffic begins with the session, so that
/// nothing can refer to what came before.
///
/// # Errors
/// A selector matches no rule.
pub fn of_traffic(is_whole: bool, skip: &[&str]) -> Result<Vec<&'static Rule>, UnknownRule> {
    let skip: Vec<String> = skip.iter().map(ToString::to_string).collect();
    let skipped = named(&skip)?;
    let mut selected = TRAFFIC[usize::from(is_whole)].clone();
    selected.retain(|rule| !skipped.iter().any(|other| other.id == rule.id));
    Ok(selected)
}

/// The rules about what is no message, for traffic of which no client tells it: what came after its last step. Without those that `skip` names.
///
/// # Errors
/// A selector matches no rule.
pub fn of_endings(skip: &[&str]) -> Result<Vec<&'static Rule>, UnknownRule> {
    let skip: Vec<String> = skip.iter().map(ToString::to_string).collect();
    let skipped = named(&skip)?;
    Ok(all().filter(|rule| OF_ENDINGS.contains(&rule.id) && !skipped.iter().any(|other| other.id == rule.id)).collect())
}

/// Lines of a stdio server that no client can read.
const OF_ENDINGS: [&str; 2] = ["stdio-line-is-terminated", "stdio-only-messages-on-stdout"];

/// Those of a part of a session, and those of a whole one.
static TRAFFIC: LazyLock<[Vec<&'static Rule>; 2]> = LazyLock::new(|| {
    let of_part = |rule: &&Rule| OF_TRAFFIC.contains(&rule.id);
    let of_whole = |rule: &&Rule| of_part(rule) || OF_WHOLE_TRAFFIC.contains(&rule.id);
    [all().filter(of_part).collect(), all().filter(of_whole).collect()]
});

/// A message, or a message and what it answers, breaks one of these.
const OF_TRAFFIC: [&str; 42] = [
    "client-capabilities-are-respected",
    "completion-has-at-most-100",
    "content-is-base64",
    "error-code-is-defined-in-revision",
    "error-has-code-and-message",
    "error-has-http-status-400",
    "http-get-stream-has-no-responses",
    "http-message-is-sent-once",
    "http-notification-gets-202",
    "http-notification-response-is-empty",
    "http-progress-is-on-request-stream",
    "http-response-content-type",
    "http-result-has-status-200",
    "input-required-only-where-allowed",
    "jsonrpc-version-is-2-0",
    "message-has-each-member-once",
    "message-has-method-or-outcome",
    "message-matches-schema",
    "messages-are-not-batched",
    "mime-type-is-valid",
    "modern-response-has-no-session-id",
    "new-task-status-is-working",
    "notification-gets-no-response",
    "notification-has-no-id",
    "notifications-are-declared",
    "ping-gets-empty-result",
    "progress-ends-with-response",
    "progress-increases",
    "progress-tokens-are-unique",
    "request-gets-one-response",
    "resource-read-names-uri",
    "response-has-result-or-error",
    "sampling-tool-results-are-not-mixed",
    "sampling-tool-uses-have-results",
    "server-request-id-is-unique",
    "server-sends-no-requests",
    "sse-data-is-one-message",
    "sse-event-is-named-message",
    "sse-response-is-on-session-stream",
    "task-result-names-its-task",
    "trace-context-is-well-formed",
    "unknown-method-gets-404",
];

/// These look back to what the client sent, or heard, at any time.
const OF_WHOLE_TRAFFIC: [&str; 13] = [
    "list-has-no-duplicates",
    "list-pagination-ends",
    "listen-filter-is-honored",
    "listen-is-acknowledged-first",
    "listen-notifications-are-tagged",
    "logs-only-when-requested",
    "progress-has-known-token",
    "response-belongs-to-a-request",
    "response-id-matches-request",
    "server-cancels-only-own-requests",
    "task-ids-differ",
    "task-result-is-stable",
    "task-terminal-status-is-final",
];

/// Limits of hosts that are worth a note even if the rules about hosts are not selected.
const LIMITS_OF_HOSTS: [&str; 2] = ["tool-name-has-at-most-64-characters", "tool-description-is-short"];

/// Longer than any rule id; also bounds the size of the automaton of a glob.
const LONGEST: usize = 200;

/// In the order of the catalogue.
fn named(words: &[String]) -> Result<Vec<&'static Rule>, UnknownRule> {
    let mut found = vec![false; all().count()];
    for word in words.iter().flat_map(|words| words.split(',')).map(str::trim).filter(|word| !word.is_empty()) {
        if word.len() > LONGEST {
            return Err(UnknownRule { typed: word.chars().take(LONGEST).chain(['…']).collect(), near: None });
        }
        let glob = Glob::new(word).map(|glob| glob.compile_matcher()).ok();
        let mut hits = 0;
        for (index, rule) in all().enumerate() {
            if rule.id == word || rule.area.name() == word || glob.as_ref().is_some_and(|glob| glob.is_match(rule.id)) {
                found[index] = true;
                hits += 1;
            }
        }
        if hits == 0 {
            let names = all().flat_map(|rule| [rule.id, rule.area.name()]);
            return Err(UnknownRule { typed: word.to_owned(), near: did_you_mean(word, names) });
        }
    }
    Ok(all().zip(found).filter_map(|(rule, found)| found.then_some(rule)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_is_judged_by_rules_that_exist() {
        let ids = |is_whole, skip: &[&str]| of_traffic(is_whole, skip).unwrap().len();
        assert_eq!(ids(false, &[]), OF_TRAFFIC.len());
        assert_eq!(ids(true, &[]), OF_TRAFFIC.len() + OF_WHOLE_TRAFFIC.len());
        assert_eq!((ids(true, &["*"]), ids(false, &["progress"])), (0, OF_TRAFFIC.len() - 3));
        assert_eq!(of_traffic(true, &["progress-increase"]).err().unwrap().near, Some("progress-increases"));
    }

    #[test]
    fn rules_are_named_by_id_by_area_and_by_glob() {
        let words = |text: &str| if text.is_empty() { vec![] } else { vec![text.to_owned()] };
        let ids =
            |only: &str, skip: &str| -> Vec<&str> { select(&words(only), &words(skip)).unwrap().iter().map(|rule| rule.id).collect() };
        assert_eq!(ids("server-starts", ""), ["server-starts"]);
        assert_eq!(ids("server-starts,unknown-method-is-*", ""), ["server-starts", "unknown-method-is-refused"]);
        assert!(
            ids("stdio", "stdio-only-messages-on-stdout")
                .iter()
                .all(|id| id.starts_with("stdio-") && *id != "stdio-only-messages-on-stdout")
        );
        assert_eq!(ids("", "").len() + ids("hosts", "").len(), all().count());
        assert!(ids("hosts", "").contains(&"host-tool-list-is-short"));
        assert_eq!(of_hosts(&[]).unwrap().len(), ids("hosts", "").len() + LIMITS_OF_HOSTS.len());
        let unknown = select(&words("server-strats"), &[]).err().unwrap();
        assert_eq!((unknown.typed.as_str(), unknown.near), ("server-strats", Some("server-starts")));
        let hint = |typed: &str| select(&words(typed), &[]).err().unwrap().diagnostic().hint.unwrap_or_default();
        assert_eq!(hint("authorization"), "did you mean the rules `authorization-*`?");
        assert_eq!(hint("securty"), "did you mean `security`?");
        assert!(hint("nope").starts_with("areas: lifecycle, jsonrpc, stdio, "), "{}", hint("nope"));
        let flood = select(&words(&"*é".repeat(1 << 20)), &[]).err().unwrap();
        assert_eq!((flood.typed.chars().count(), flood.near), (LONGEST + 1, None));
    }
}
