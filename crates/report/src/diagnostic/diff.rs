//! The value that came, where the differences alone do not show enough: as a diff against what was expected of it, or as it is.

use super::differences::is_missing;
use super::remainder;
use crate::Style;
use crate::style::{DIM, GREEN, RED};
use mcproof_record::Diagnostic;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

/// Lines of a diff or of a value.
const MAXIMUM_LINES: usize = 24;
/// Unchanged lines around a change.
const CONTEXT: usize = 2;
/// From this number of differences on, a diff is easier to read than a list.
const MANY: usize = 4;

pub(super) enum Shown {
    Diff(Vec<String>),
    Whole(Vec<String>),
}

/// None if it would only repeat the differences.
pub(super) fn of(diagnostic: &Diagnostic, style: &Style, room: usize) -> Option<Shown> {
    let actual = diagnostic.actual.as_deref().filter(|actual| !actual.trim().is_empty())?;
    let differences = &diagnostic.differences;
    let text: Option<String> = serde_json::from_str(actual).ok();
    let is_in_message = diagnostic.message.contains(text.as_deref().unwrap_or(actual).trim())
        || differences.iter().any(|difference| difference.actual == actual);
    let is_useful =
        differences.is_empty() || differences.len() >= MANY || differences.iter().any(|difference| is_missing(&difference.actual));
    if is_in_message || !is_useful {
        return None;
    }
    if let Some(text) = text {
        // A text is read as its lines, not as the JSON that carried it.
        let lines = text.lines().flat_map(|line| style.wrap(line, room, MAXIMUM_LINES)).collect();
        return Some(Shown::Whole(capped(lines, style)));
    }
    let whole = || Shown::Whole(capped(actual.lines().map(|line| style.line(line, room)).collect(), style));
    Some(expected_text(diagnostic, actual).map_or_else(whole, |expected| Shown::Diff(diff(&expected, actual, style, room))))
}

/// The value that came as a diff against what was expected of it, whole: each line with its sign. None if it cannot be computed.
pub(crate) fn against_expected(diagnostic: &Diagnostic) -> Option<Vec<(&'static str, String)>> {
    let actual = diagnostic.actual.as_deref()?;
    let expected = expected_text(diagnostic, actual)?;
    let diff = TextDiff::from_lines(expected.as_str(), actual);
    let line = |change: similar::Change<&str>| {
        let sign = match change.tag() {
            ChangeTag::Delete => "-",
            ChangeTag::Insert => "+",
            ChangeTag::Equal => " ",
        };
        (sign, change.value().trim_end_matches('\n').to_owned())
    };
    Some(diff.iter_all_changes().map(line).collect())
}

fn diff(expected: &str, actual: &str, style: &Style, room: usize) -> Vec<String> {
    let diff = TextDiff::from_lines(expected, actual);
    let mut lines = Vec::new();
    for (index, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if index > 0 {
            lines.push(style.paint(DIM, style.ellipsis()));
        }
        for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
            let (sign, color) = match change.tag() {
                ChangeTag::Delete => ("-", GREEN),
                ChangeTag::Insert => ("+", RED),
                ChangeTag::Equal => (" ", anstyle::Style::new()),
            };
            let line = style.line(change.value().trim_end_matches('\n'), room.saturating_sub(2));
            lines.push(style.paint(color, &format!("{sign} {line}")));
        }
    }
    let legend = format!("{}  {}", style.paint(GREEN, "- expected"), style.paint(RED, "+ found"));
    let mut lines = capped(lines, style);
    lines.insert(0, legend);
    lines
}

fn capped(mut lines: Vec<String>, style: &Style) -> Vec<String> {
    let more = lines.len().saturating_sub(MAXIMUM_LINES);
    lines.truncate(MAXIMUM_LINES);
    lines.extend(remainder(more, "line", style));
    lines
}

/// The value that came, changed into what was expected of it: the least that would have passed.
///
/// None if it cannot be computed: the value is not JSON, or was cut, or is formatted in another way.
fn expected_text(diagnostic: &Diagnostic, actual: &str) -> Option<String> {
    let mut value: Value = serde_json::from_str(actual).ok()?;
    if serde_json::to_string_pretty(&value).ok()? != actual || !(value.is_object() || value.is_array()) {
        return None;
    }
    let mut in_words = Vec::new();
    let mut changed = false;
    for difference in &diagnostic.differences {
        if difference.path.is_empty() && serde_json::from_str::<Value>(&difference.expected).is_err() {
            return None;
        }
        let expected = serde_json::from_str(&difference.expected).unwrap_or_else(|_| {
            // An expectation in words is not JSON: a placeholder stands in for it until the text is written.
            let stand_in = format!("\u{1}{}\u{1}", in_words.len());
            in_words.push((Value::from(stand_in.as_str()).to_string(), difference.expected.as_str()));
            Value::from(stand_in)
        });
        let unwanted = difference.expected == "no such key";
        changed |= put(&mut value, &steps(&difference.path)?, if unwanted { None } else { Some(expected) }).is_some();
    }
    let text = serde_json::to_string_pretty(&value).ok()?;
    changed.then(|| in_words.iter().fold(text, |text, (stand_in, words)| text.replace(stand_in, words)))
}

enum Step {
    Key(String),
    Index(usize),
}

/// The steps of a path such as `items[0].name` or `headers["a.b"]`.
fn steps(path: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(bracket) = rest.strip_prefix('[') {
            if bracket.starts_with('"') {
                let mut values = serde_json::Deserializer::from_str(bracket).into_iter::<String>();
                steps.push(Step::Key(values.next()?.ok()?));
                rest = bracket.get(values.byte_offset()..)?.strip_prefix(']')?;
            } else {
                let (index, after) = bracket.split_once(']')?;
                steps.push(Step::Index(index.parse().ok()?));
                rest = after;
            }
        } else {
            rest = rest.strip_prefix('.').unwrap_or(rest);
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (key, after) = rest.split_at(end);
            if key.is_empty() {
                return None;
            }
            steps.push(Step::Key(key.to_owned()));
            rest = after;
        }
    }
    Some(steps)
}

/// Sets the value at the end of the steps, or removes it.
fn put(value: &mut Value, steps: &[Step], new: Option<Value>) -> Option<()> {
    match (steps, value) {
        ([], value) => *value = new?,
        ([Step::Key(key)], Value::Object(members)) => match (members.get_mut(key), new) {
            (Some(member), Some(new)) => *member = new,
            (Some(_), None) => drop(members.shift_remove(key)),
            // At the front, so that no other line gets or loses a comma.
            (None, Some(new)) => drop(members.shift_insert(0, key.clone(), new)),
            (None, None) => return None,
        },
        ([Step::Key(key), rest @ ..], Value::Object(members)) => put(members.get_mut(key)?, rest, new)?,
        ([Step::Index(index), rest @ ..], Value::Array(items)) => put(items.get_mut(*index)?, rest, new)?,
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_record::Difference;

    fn check(actual: &str, differences: &[(&str, &str)], expected: Option<&str>) {
        let pretty = |text: &str| serde_json::to_string_pretty(&serde_json::from_str::<Value>(text).unwrap()).unwrap();
        let mut diagnostic = Diagnostic::error("unexpected-value", "m");
        for (path, expected) in differences {
            let (path, expected) = ((*path).to_owned(), (*expected).to_owned());
            diagnostic.differences.push(Difference { path, expected, actual: "x".into(), place: None });
        }
        let text = expected_text(&diagnostic, &pretty(actual)).map(|text| text.split_whitespace().collect::<String>());
        assert_eq!(text.as_deref(), expected, "{actual} with {differences:?}");
    }

    #[test]
    fn the_expected_text_differs_only_where_the_value_does() {
        check(r#"{"a":1,"b":2}"#, &[("b", "3")], Some(r#"{"a":1,"b":3}"#));
        check(r#"{"a":1}"#, &[("b", "3")], Some(r#"{"b":3,"a":1}"#));
        check(r#"{"a":1}"#, &[("a", "atleast3")], Some(r#"{"a":atleast3}"#));
        check(r#"{"a":1,"b":2}"#, &[("b", "no such key")], Some(r#"{"a":1}"#));
        check(r#"{"a":[{"b":1},{"b":2}]}"#, &[("a[1].b", "5")], Some(r#"{"a":[{"b":1},{"b":5}]}"#));
        check(r#"{"a.b":{"c]":1}}"#, &[(r#"["a.b"]["c]"]"#, "5")], Some(r#"{"a.b":{"c]":5}}"#));
        check(r#"{"a":1}"#, &[("", r#"{"b":2}"#)], Some(r#"{"b":2}"#));
        check(r#"{"a":1}"#, &[("", "a string")], None);
        check(r#"{"a":1}"#, &[("x.y", "2")], None);
        check("7", &[("", "8")], None);
        check(r#"{"a":1}"#, &[], None);
    }
}
