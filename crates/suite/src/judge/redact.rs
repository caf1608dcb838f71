//! What a snapshot keeps of a payload: everything but what its rules say differs from run to run. And how two snapshots
//! differ. Pure.

use super::number::equality;
use super::payload::Numbers;
use crate::plan::Redaction;
use mcproof_analysis::differences::{MAXIMUM_DIFFERENCES, element, member, shown};
use mcproof_record::Difference;
use regex::Regex;
use serde_json::Value;
use std::sync::LazyLock;

macro_rules! pattern {
    ($text:literal) => {
        LazyLock::new(|| Regex::new($text).expect("the pattern is valid"))
    };
}
static UUID: LazyLock<Regex> = pattern!(r"\b[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b");
static DATETIME: LazyLock<Regex> = pattern!(r"\b\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})?");
static PORT: LazyLock<Regex> = pattern!(r"(?P<host>\blocalhost|\b\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-fA-F:]+\]):\d{1,5}\b");
static DURATION: LazyLock<Regex> =
    pattern!(r"\b\d+(\.\d+)?\s?(nanoseconds?|microseconds?|milliseconds?|seconds?|minutes?|hours?|ns|us|µs|ms|secs?|mins?|s|m|h)\b");

/// The value with placeholders in place of what the rules name.
pub(crate) fn redact(value: &Value, rules: &[Redaction]) -> Value {
    let mut redacted = value.clone();
    for rule in rules {
        match rule {
            Redaction::Uuid => replace(&mut redacted, &UUID, "[uuid]"),
            Redaction::Datetime => replace(&mut redacted, &DATETIME, "[datetime]"),
            Redaction::Port => replace(&mut redacted, &PORT, "${host}:[port]"),
            Redaction::Duration => replace(&mut redacted, &DURATION, "[duration]"),
            Redaction::Pattern(pattern) => replace(&mut redacted, pattern, "[redacted]"),
            Redaction::Path(_, path) => {
                let pointers: Vec<String> = path.query_located(&redacted).locations().map(|found| found.to_json_pointer()).collect();
                for pointer in pointers {
                    if let Some(found) = redacted.pointer_mut(&pointer) {
                        *found = Value::from("[redacted]");
                    }
                }
            }
        }
    }
    redacted
}

/// How a value differs from the one that was reviewed.
pub(crate) fn changes(reviewed: &Value, now: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    collect(Some(reviewed), Some(now), "", &mut found);
    found.truncate(MAXIMUM_DIFFERENCES);
    found
}

fn collect(reviewed: Option<&Value>, now: Option<&Value>, path: &str, found: &mut Vec<Difference>) {
    match (reviewed, now) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            for (key, value) in old {
                collect(Some(value), new.get(key), &member(path, key), found);
            }
            for (key, value) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
                collect(None, Some(value), &member(path, key), found);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            for index in 0..old.len().max(new.len()) {
                collect(old.get(index), new.get(index), &element(path, index), found);
            }
        }
        (Some(old), Some(new)) if equality(old, new, Numbers::Exact) == Some(true) => {}
        (None, None) => {}
        (old, new) => {
            let show = |value: Option<&Value>, missing: &str| value.map_or_else(|| missing.to_owned(), shown);
            found.push(Difference { path: path.to_owned(), expected: show(old, "nothing"), actual: show(new, "missing"), place: None });
        }
    }
}

fn replace(value: &mut Value, pattern: &Regex, placeholder: &str) {
    match value {
        Value::String(text) => *text = pattern.replace_all(text, placeholder).into_owned(),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, pattern, placeholder)),
        Value::Object(members) => members.values_mut().for_each(|member| replace(member, pattern, placeholder)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rules_replace_what_they_name_and_nothing_else() {
        let check = |rule: Redaction, value: Value, expected: Value| assert_eq!(redact(&value, &[rule]), expected);
        let id = "0f8fad5b-d9cb-469f-a165-70867728950e";
        check(Redaction::Uuid, json!({"a": [id, format!("x {id}!"), 1]}), json!({"a": ["[uuid]", "x [uuid]!", 1]}));
        check(Redaction::Datetime, json!("at 2025-11-25T08:30:00.12Z"), json!("at [datetime]"));
        check(Redaction::Datetime, json!("2025-11-25"), json!("2025-11-25"));
        check(Redaction::Port, json!("http://127.0.0.1:4711/mcp, localhost:80"), json!("http://127.0.0.1:[port]/mcp, localhost:[port]"));
        check(Redaction::Port, json!("at 12:30"), json!("at 12:30"));
        check(Redaction::Duration, json!("took 12.5 ms, or 3s"), json!("took [duration], or [duration]"));
        check(Redaction::Duration, json!("3 small files"), json!("3 small files"));
        check(Redaction::Pattern(Regex::new(r"ORD-\d+").unwrap()), json!("ORD-1 ORD-x"), json!("[redacted] ORD-x"));
        let path = |text: &str| Redaction::Path(text.into(), serde_json_path::JsonPath::parse(text).unwrap());
        check(
            path("$.items[*].id"),
            json!({"items": [{"id": 1, "n": 2}, {"id": {}}]}),
            json!({"items": [{"id": "[redacted]", "n": 2}, {"id": "[redacted]"}]}),
        );
        check(path("$.nothing"), json!({"a": 1}), json!({"a": 1}));
    }

    #[test]
    fn changes_are_told_one_by_one() {
        let show = |found: Vec<Difference>| -> Vec<String> {
            found.into_iter().map(|found| format!("{}: {} → {}", found.path, found.expected, found.actual)).collect()
        };
        let check = |old: Value, new: Value, expected: &[&str]| assert_eq!(show(changes(&old, &new)), expected);
        check(json!({"a": 1.0, "b": [1]}), json!({"b": [1], "a": 1}), &[]);
        check(json!({"a": 1, "b": 2}), json!({"a": 2, "c": 3}), &["a: 1 → 2", "b: 2 → missing", "c: nothing → 3"]);
        check(json!([1, {"x": "y"}]), json!([1, {"x": "z"}, 3]), &["[1].x: \"y\" → \"z\"", "[2]: nothing → 3"]);
        check(json!("text"), json!({}), &[": \"text\" → {}"]);
    }
}
