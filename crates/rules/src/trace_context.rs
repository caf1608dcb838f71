//! The OpenTelemetry keys in `_meta`, which trace a request through several programs.
//! Source: 2026-07-28, basic, `_meta`; W3C Trace Context and W3C Baggage.

use super::ConversationView;
use super::answers::messages;
use super::rule_definition::{Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use mcproof_analysis::wording::excerpt;
use regex::Regex;
use std::sync::LazyLock;

pub(super) const RULES: &[Rule] = &[Rule {
    id: "trace-context-is-well-formed",
    area: Area::Modern,
    requirement: "`traceparent`, `tracestate` and `baggage` in `_meta` have the W3C formats",
    sources: &[RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Must, source: "basic#_meta" }],
    judge: Judge::Each(is_well_formed),
    why: "tracers silently drop invalid values, so the trace ends here",
    remedy: "write these keys with the OpenTelemetry propagator; leave them out if there is no trace",
    ..Rule::DEFAULT
}];

type IsValid = fn(&str) -> bool;
const KEYS: [(&str, IsValid); 3] = [("traceparent", is_parent), ("tracestate", is_state), ("baggage", is_baggage)];

fn is_well_formed(conversation: &ConversationView<'_>) -> Judgment {
    let (mut seen, mut violations) = (0, Vec::<Violation>::new());
    for server_message in messages(conversation) {
        let metas = ["/params/_meta", "/result/_meta"].iter().filter_map(|place| server_message.value.pointer(place));
        for (meta, (key, is_valid)) in metas.flat_map(|meta| KEYS.map(|known| (meta, known))) {
            let Some(value) = meta.get(key) else { continue };
            seen += 1;
            if !value.as_str().is_some_and(is_valid) && !violations.iter().any(|known| known.message.starts_with(&format!("`{key}`"))) {
                violations.push(Violation::new(format!("`{key}` is {}", excerpt(value.to_string())), [server_message.frame]));
            }
        }
    }
    match seen {
        0 => Judgment::NotApplicable("the server sends no trace context".into()),
        _ => Judgment::from_violations(violations),
    }
}

fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("patterns of the program are valid")
}

/// W3C Trace Context, 3.2: later versions may have more at the end.
fn is_parent(text: &str) -> bool {
    static FORM: LazyLock<Regex> = LazyLock::new(|| pattern("^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$"));
    let Some(found) = FORM.captures(text) else { return false };
    let is_zero = |part: usize| found[part].bytes().all(|digit| digit == b'0');
    match &found[1] {
        "ff" => false,
        "00" if found.get(4).is_some() => false,
        _ => !is_zero(2) && !is_zero(3),
    }
}

/// W3C Trace Context, 3.3: at most 32 members, of which some may be empty.
fn is_state(text: &str) -> bool {
    static MEMBER: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"^[a-z0-9][a-z0-9_*/-]{0,255}(@[a-z][a-z0-9_*/-]{0,13})?=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$",
        )
    });
    let members: Vec<&str> = text.split(',').map(|member| member.trim_matches([' ', '\t'])).filter(|member| !member.is_empty()).collect();
    members.len() <= 32 && members.iter().all(|member| MEMBER.is_match(member))
}

/// W3C Baggage, 3.3: a list of `key=value`, each with properties after semicolons.
fn is_baggage(text: &str) -> bool {
    static MEMBER: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r#"^[!#$%&'*+.^_`|~0-9A-Za-z-]+\s*=\s*[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*\s*(;[\x20-\x2b\x2d-\x7e\t]*)*$"#)
    });
    text.split(',').all(|member| MEMBER.is_match(member.trim_matches([' ', '\t'])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(is_valid: IsValid, good: &[&str], bad: &[&str]) {
        good.iter().for_each(|text| assert!(is_valid(text), "{text}"));
        bad.iter().for_each(|text| assert!(!is_valid(text), "{text}"));
    }

    #[test]
    fn w3c_formats_are_validated() {
        const PARENT: &str = "-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
        check(is_parent, &[&format!("00{PARENT}"), &format!("01{PARENT}-more")], &["", "00", PARENT, &format!("ff{PARENT}")]);
        check(is_parent, &[], &[&format!("00{PARENT}-more"), &format!("00{}", PARENT.to_uppercase())]);
        check(is_parent, &[], &["00-00000000000000000000000000000000-00f067aa0ba902b7-01"]);
        check(is_state, &["rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "fw529a3039@dt=FfdC, ,a=b", ""], &["rojo", "Rojo=1", "a=b=c"]);
        check(is_baggage, &["userId=alice", "a=b;ttl=1 , c=d%20e", "key="], &["", "alice", "a b=c", "a=b,"]);
    }
}
