//! What was lost, in words. Knows sentences, not how a loss is found.

use super::Use;
use super::branch::{ARRAY, BOOLEAN, FRACTION, INTEGER, NULL, NUMBER, OBJECT, STRING, Types};
use super::contains::{By, CounterexampleKind, Declared};
use mcproof_analysis::wording::shortened;
use serde_json::Value;

/// Whether less is accepted than before, or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Narrowed,
    Widened,
}

pub(super) struct Phrase {
    pub(super) code: String,
    pub(super) reason: String,
}

/// Characters of a value that are shown.
const LONGEST_VALUE: usize = 60;

pub(super) fn phrase(what: &CounterexampleKind, path: &str, way: Direction, usage: Use) -> Phrase {
    let subject = subject(path, usage);
    let verb = match (usage, way) {
        (Use::Arguments, Direction::Narrowed) => "no longer accepts",
        (Use::Arguments, Direction::Widened) => "also accepts",
        (Use::Result, Direction::Narrowed) => "is no longer",
        (Use::Result, Direction::Widened) => "may also be",
    };
    let is_narrowed = way == Direction::Narrowed;
    let told = |code: &str, object: String| phrase_of(code, way, format!("{subject} {verb} {object}"));
    match what {
        CounterexampleKind::Types { lost: FRACTION, kept } if kept & INTEGER != 0 => told("type", "a number with a fraction".into()),
        CounterexampleKind::Types { lost, kept: 0 } if *lost == EVERYTHING => told("type", "anything at all".into()),
        CounterexampleKind::Types { lost, .. } => told("type", names(*lost)),
        CounterexampleKind::Value(value) => told("value", shown(value)),
        CounterexampleKind::Unlisted => told("values", "values that are not listed".into()),
        CounterexampleKind::Alternative => told("alternative", "what one of its alternatives describes".into()),
        CounterexampleKind::Tighter { keyword, inner, outer } => {
            let (before, after) = if is_narrowed { (inner, outer) } else { (outer, inner) };
            let change = match (before.is_null(), after.is_null()) {
                (true, _) => format!("gets the `{keyword}` {}", shown(after)),
                (_, true) => format!("loses its `{keyword}` {}", shown(before)),
                _ => format!("has the `{keyword}` {} instead of {}", shown(after), shown(before)),
            };
            phrase_of(&kebab(keyword), way, format!("{subject} {change}"))
        }
        CounterexampleKind::Repetition => told("unique-items", "a list in which items repeat".into()),
        CounterexampleKind::Absence(name) => {
            let member = subject_of(path, name, usage);
            let (code, state) = match (usage, way) {
                (Use::Arguments, Direction::Narrowed) => ("argument-required", "is required now"),
                (Use::Arguments, Direction::Widened) => ("argument-optional", "may be left out now"),
                (Use::Result, Direction::Narrowed) => ("result-always-there", "is always there now"),
                (Use::Result, Direction::Widened) => ("result-may-be-missing", "may be missing now"),
            };
            Phrase { code: code.into(), reason: format!("{member} {state}") }
        }
        CounterexampleKind::Member(name) => {
            let member = subject_of(path, name, usage);
            let (code, state) = match (usage, way) {
                (Use::Arguments, Direction::Narrowed) => ("argument-removed", "is refused now"),
                (Use::Arguments, Direction::Widened) => ("argument-added", "is accepted now"),
                (Use::Result, Direction::Narrowed) => ("result-removed", "is gone"),
                (Use::Result, Direction::Widened) => ("result-added", "may be there now, which the old schema forbids"),
            };
            Phrase { code: code.into(), reason: format!("{member} {state}") }
        }
        CounterexampleKind::Undeclared => told("undeclared", "members that are not declared".into()),
        CounterexampleKind::Uncertain(keyword) => {
            let effect = if is_narrowed { "may exclude what was valid" } else { "may let through what was invalid" };
            phrase_of(&kebab(keyword), way, format!("`{keyword}` of {subject} differs, which {effect}"))
        }
        CounterexampleKind::TooComplex => {
            phrase_of("schema-too-complex", way, format!("the schema of {subject} differs and is too large to be compared"))
        }
    }
}

/// A type that took the place of another.
pub(super) fn retyped(before: Types, after: Types, path: &str, usage: Use) -> Phrase {
    let verb = if usage == Use::Arguments { "accepts" } else { "is" };
    let reason = format!("{} {verb} {} instead of {}", subject(path, usage), names(after), names(before));
    Phrase { code: "type-changed".into(), reason }
}

/// A member that only one side declares.
pub(super) fn declared(declared: &Declared, usage: Use) -> Phrase {
    let member = subject_of(&declared.path, &declared.name, usage);
    let (code, reason) = match (declared.by, usage) {
        (By::Inner, Use::Arguments) => ("argument-removed", format!("{member} is gone, so the server ignores it in calls")),
        (By::Outer, Use::Arguments) => ("argument-added", format!("{member} is new and optional")),
        (By::Inner, Use::Result) => ("result-removed", format!("{member}, which was optional, is gone")),
        (By::Outer, Use::Result) => ("result-added", format!("{member} is new")),
    };
    Phrase { code: code.into(), reason }
}

/// What a path is called.
pub(super) fn subject(path: &str, usage: Use) -> String {
    match (path, usage) {
        ("", Use::Arguments) => "the arguments".into(),
        ("", Use::Result) => "the result".into(),
        (path, Use::Arguments) => format!("argument `{path}`"),
        (path, Use::Result) => format!("`{path}` of the result"),
    }
}

/// A value as a fragment of a sentence.
pub(super) fn shown(value: &Value) -> String {
    let text = shortened(&value.to_string(), LONGEST_VALUE);
    if value.is_number() { text } else { format!("`{text}`") }
}

const EVERYTHING: Types = NULL | BOOLEAN | NUMBER | STRING | ARRAY | OBJECT;

fn subject_of(path: &str, name: &str, usage: Use) -> String {
    if path.is_empty() { subject(name, usage) } else { subject(&format!("{path}.{name}"), usage) }
}

fn phrase_of(code: &str, way: Direction, reason: String) -> Phrase {
    let end = if way == Direction::Narrowed { "narrowed" } else { "widened" };
    Phrase { code: format!("{code}-{end}"), reason }
}

/// `maxLength` as a part of a code.
fn kebab(keyword: &str) -> String {
    let mut text = String::new();
    for character in keyword.trim_start_matches('$').chars() {
        if character.is_ascii_uppercase() {
            text.push('-');
        }
        text.push(character.to_ascii_lowercase());
    }
    text
}

fn names(types: Types) -> String {
    let number = match types & NUMBER {
        NUMBER => "a number",
        FRACTION => "a number with a fraction",
        INTEGER => "a whole number",
        _ => "",
    };
    let of = |of: Types, name: &'static str| if types & of != 0 { name } else { "" };
    let all = [of(STRING, "a string"), number, of(BOOLEAN, "a boolean"), of(ARRAY, "an array"), of(OBJECT, "an object"), of(NULL, "null")];
    let known: Vec<&str> = all.into_iter().filter(|name| !name.is_empty()).collect();
    match known.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => "nothing".into(),
    }
}
