//! Findings of one rule that say the same of other messages, values or positions are one finding: what has one cause is reported once.
//! Names of tools, prompts and resources are not left out of the comparison, since each of them may have a cause of its own.

use mcproof_record::{Finding, counted};
use std::collections::BTreeSet;

/// Between what was found first and how often it was found besides.
const MORE: &str = " more like it";

/// The number of methods that are listed.
const MOST_METHODS: usize = 5;

/// Rules that try one check in several ways: whatever fails them fails for one reason.
const ONE_CHECK: [&str; 3] = ["header-method-is-checked", "header-name-is-checked", "header-base64-is-decoded"];

/// Keeps the first of each kind, with how many others there are, and the methods that only the others name.
pub(super) fn gather(rule: &str, findings: Vec<Finding>) -> Vec<Finding> {
    let mut groups: Vec<(String, Option<String>, Vec<Finding>)> = Vec::new();
    for finding in findings {
        let kind = if ONE_CHECK.contains(&rule) { rule.to_owned() } else { kind(&finding.message) };
        let value = wrong_value(&finding.message);
        let known = groups.iter_mut().find(|(known, of, _)| *known == kind || value.is_some() && *of == value);
        match known {
            Some((.., group)) => group.push(finding),
            None => groups.push((kind, value, vec![finding])),
        }
    }
    groups.into_iter().map(|(.., group)| one_of(group)).collect()
}

fn one_of(mut group: Vec<Finding>) -> Finding {
    let others = group.split_off(1);
    let mut first = group.remove(0);
    if others.is_empty() {
        return first;
    }
    let (text, more) = number_told(&first.message);
    let count: usize = more + others.iter().map(|other| 1 + number_told(&other.message).1).sum::<usize>();
    let named: BTreeSet<&str> = methods(&first.message).collect();
    let mut new: Vec<&str> = Vec::new();
    for method in others.iter().flat_map(|other| methods(&other.message)) {
        if !named.contains(method) && !new.contains(&method) {
            new.push(method);
        }
    }
    let left_out = new.len().saturating_sub(MOST_METHODS);
    let mut listed: Vec<String> = new.iter().take(MOST_METHODS).map(|method| format!("`{method}`")).collect();
    if left_out > 0 {
        listed.push(counted(left_out, "other"));
    }
    let listed = if listed.is_empty() { String::new() } else { format!(" ({})", listed.join(", ")) };
    first.message = format!("{text}, and {count}{MORE}{listed}");
    first.severity = others.iter().map(|other| other.severity).fold(first.severity, Ord::max);
    first
}

/// A message without its count of others, and the count.
fn number_told(message: &str) -> (&str, usize) {
    const COUNTS: [(&str, &str, usize); 3] = [(", and ", MORE, 0), (" (and ", " more)", 0), (", the first of ", "", 1)];
    let parsed = COUNTS.iter().find_map(|(before, after, itself)| {
        let (text, count) = message.strip_suffix(after)?.rsplit_once(before)?;
        Some((text, count.parse::<usize>().ok()?.saturating_sub(*itself)))
    });
    parsed.unwrap_or((message, 0))
}

/// What is in backquotes and is the name of a method.
fn methods(message: &str) -> impl Iterator<Item = &str> {
    message.split('`').skip(1).step_by(2).filter(|name| is_method(name))
}

fn is_method(name: &str) -> bool {
    const AREAS: [&str; 11] = [
        "tools",
        "resources",
        "prompts",
        "completion",
        "logging",
        "server",
        "subscriptions",
        "tasks",
        "notifications",
        "sampling",
        "roots",
    ];
    matches!(name, "ping" | "initialize") || name.split_once('/').is_some_and(|(area, _)| AREAS.contains(&area))
}

/// The message with a `*` in place of methods, values in double quotes, numbers and the members of `capabilities`.
fn kind(message: &str) -> String {
    let (text, _) = number_told(message);
    // A sample at the end: what a line, a body or an event begins with.
    let sampled = text
        .strip_suffix('`')
        .and_then(|text| text.rsplit_once(": `"))
        .filter(|(_, sample)| sample.contains([' ', '{']) && !sample.contains('`'));
    let text = sampled.map_or(text, |(text, _)| text);
    let mut kind = String::with_capacity(text.len());
    for (position, part) in text.split('`').enumerate() {
        match position % 2 {
            1 if is_method(part) => kind.push('*'),
            1 if part.starts_with("capabilities.") || part.starts_with("/result/capabilities/") => kind.push_str("capabilities"),
            // A position within a list.
            1 if part.contains('[') => kind.push_str(&without_values(part)),
            1 => kind.push_str(part),
            _ => kind.push_str(&without_values(part)),
        }
        kind.push('`');
    }
    match kind.split_once(" is ").zip(kind.rsplit_once("; it has to be ")) {
        Some(((subject, _), (_, expected))) => format!("{subject} is *; it has to be {expected}"),
        None => kind,
    }
}

/// A text with a `*` in place of each JSON string and of each number.
fn without_values(text: &str) -> String {
    let (mut plain, mut characters) = (String::with_capacity(text.len()), text.chars().peekable());
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                plain.push('*');
                while let Some(quoted) = characters.next() {
                    match quoted {
                        '\\' => _ = characters.next(),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            '0'..='9' => {
                plain.push('*');
                while characters.next_if(|next| next.is_ascii_digit() || *next == '.').is_some() {}
            }
            _ => plain.push(character),
        }
    }
    plain
}

/// The text that a member has although it has to be something else, with what it has to be: the same one in two places is one mistake.
fn wrong_value(message: &str) -> Option<String> {
    let (_, wrong) = message.split_once(" is \"")?;
    let (value, expected) = wrong.split_once("\"; it has to be ")?;
    let expected = expected.rsplit_once(" at `").map_or(expected, |(expected, _)| expected);
    (value.chars().count() > 3).then(|| format!("{value} {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_record::Severity;

    fn finding(message: &str) -> Finding {
        Finding {
            severity: Severity::Error,
            level: "MUST".into(),
            tolerance: None,
            message: message.into(),
            conversation: 0,
            frames: Vec::new(),
            source: String::new(),
            remedy: String::new(),
            cause: None,
            defect: None,
            accepted: false,
        }
    }

    fn check(rule: &str, messages: &[&str], expected: &[&str]) {
        let found: Vec<String> =
            gather(rule, messages.iter().map(|message| finding(message)).collect()).into_iter().map(|finding| finding.message).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_same_of_other_methods_values_and_positions_is_one_finding() {
        check(
            "list-pagination-ends",
            &[
                "page 2 of `tools/list` has the cursor \"next\", as an earlier page",
                "page 3 of `resources/list` has the cursor \"n\", as an earlier page",
                "page 2 of `prompts/list` has the cursor 7, as an earlier page",
            ],
            &["page 2 of `tools/list` has the cursor \"next\", as an earlier page, and 2 more like it (`resources/list`, `prompts/list`)"],
        );
        check(
            "progress-increases",
            &["the progress of `tools/list` goes from 5 to 3", "the progress of `tools/call` goes from 5 to 3, and 44 more like it"],
            &["the progress of `tools/list` goes from 5 to 3, and 45 more like it (`tools/call`)"],
        );
        check(
            "logs-only-when-requested",
            &[
                "a log message was sent with `tools/call`, which did not request any, the first of 7",
                "a log message was sent with `tools/call`, which did not request any",
            ],
            &["a log message was sent with `tools/call`, which did not request any, and 7 more like it"],
        );
        check(
            "message-matches-schema",
            &[
                "message `tools/call`: `content` is \"a \\\" b\"; it has to be an array at `/result/content`",
                "message `tools/call`: `content` is null; it has to be an array at `/result/content`",
            ],
            &["message `tools/call`: `content` is \"a \\\" b\"; it has to be an array at `/result/content`, and 1 more like it"],
        );
        check(
            "message-matches-schema",
            &[
                "message `resources/list`: `uri` of resource `a` is \"docs/a\"; it has to be an absolute URI at `/result/resources/*/uri`",
                "message `resources/read`: `contents[0].uri` is \"docs/a\"; it has to be an absolute URI at `/result/contents/*/uri`",
            ],
            &[
                "message `resources/list`: `uri` of resource `a` is \"docs/a\"; it has to be an absolute URI at `/result/resources/*/uri`, and 1 more like it (`resources/read`)",
            ],
        );
    }

    #[test]
    fn each_tool_and_each_kind_of_mistake_stays_a_finding_of_its_own() {
        let apart = |rule: &str, messages: &[&str]| check(rule, messages, messages);
        apart(
            "call-missing-argument-is-refused",
            &["tool `a`: a call without the required `q` succeeded", "tool `b`: a call without the required `q` succeeded"],
        );
        apart("list-has-no-duplicates", &["`search` is listed twice by `tools/list`", "`book` is listed twice by `tools/list`"]);
        apart(
            "message-matches-schema",
            &[
                "message `tools/call`: `isError` is 1; it has to be true or false at `/result/isError`",
                "message `tools/call`: `content` is 1; it has to be an array at `/result/content`",
            ],
        );
    }
}
