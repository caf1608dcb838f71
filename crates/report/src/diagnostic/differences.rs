//! Differences in words: beside a caret where they are short, else as a list.

use super::remainder;
use crate::Style;
use crate::escape::columns;
use crate::style::{BOLD, GREEN, RED};
use mcproof_record::{Diagnostic, Difference, Place};

/// Differences that the list shows.
const MAXIMUM: usize = 8;
/// Rows for one value in the list.
const ROWS: usize = 3;
/// Characters shown before the first difference of two long values.
const LEAD: usize = 16;

/// The difference in one line for a caret, unless it is too long to be read there.
pub(super) fn label(difference: &Difference, place: &Place, style: &Style) -> Option<String> {
    const LONGEST: usize = 80;
    let place_is_known = names(place, &difference.path);
    let at = if place_is_known { String::new() } else { format!("{}: ", style.text(&difference.path)) };
    let whole = format!("{at}{}", sentence(difference, style, LONGEST)?);
    (columns(&whole) <= LONGEST).then_some(whole)
}

/// The label of a caret whose details are in the list below.
pub(super) fn summary(difference: &Difference, place: &Place, style: &Style) -> String {
    let path = &difference.path;
    if names(place, path) { "differs".to_owned() } else { format!("{} differs", style.line(path, 40)) }
}

/// All differences that no caret explains completely.
pub(super) fn lines(diagnostic: &Diagnostic, explained: &[&Difference], style: &Style, room: usize) -> Vec<String> {
    let is_explained = |difference: &Difference| explained.iter().any(|known| std::ptr::eq(*known, difference));
    let rest: Vec<&Difference> = diagnostic.differences.iter().filter(|difference| !is_explained(difference)).collect();
    let mut lines: Vec<String> = rest.iter().take(MAXIMUM).flat_map(|difference| entry(difference, style, room)).collect();
    lines.extend(remainder(rest.len().saturating_sub(MAXIMUM), "difference", style));
    lines
}

/// One line where it fits, else the path with both values below it, aligned so that the eye can compare them.
fn entry(difference: &Difference, style: &Style, room: usize) -> Vec<String> {
    let path = if difference.path.is_empty() { "the whole value".to_owned() } else { style.line(&difference.path, room) };
    if let Some(short) = sentence(difference, style, room).filter(|short| columns(&path) + 2 + columns(short) <= room) {
        return vec![format!("{}: {short}", style.paint(BOLD, &path))];
    }
    let mut lines = vec![style.paint(BOLD, &path)];
    let value_room = room.saturating_sub("  expected  ".len()).max(10);
    let (expected, actual) = from_first_difference(&difference.expected, &difference.actual, value_room, style);
    for (name, value, color) in [("expected", expected, GREEN), ("found", actual, RED)] {
        for (index, row) in style.wrap(&value, value_room, ROWS).into_iter().enumerate() {
            let name = if index == 0 { name } else { "" };
            lines.push(format!("  {name:<10}{}", style.paint(color, &row)));
        }
    }
    lines
}

/// `expected 2, found 3`; none if that is longer than `width`.
fn sentence(difference: &Difference, style: &Style, width: usize) -> Option<String> {
    if difference.expected.len() + difference.actual.len() > width * 4 {
        return None;
    }
    let (expected, actual) = (style.text(&difference.expected), style.text(&difference.actual));
    let found = if is_missing(&actual) { format!("but it is {actual}") } else { format!("found {actual}") };
    Some(format!("expected {expected}, {found}"))
}

pub(super) fn is_missing(actual: &str) -> bool {
    actual == "missing" || actual.starts_with("missing;")
}

/// Whether the reader of the source line sees which key is meant: it stands right before the caret.
fn names(place: &Place, path: &str) -> bool {
    let last = path.rsplit('.').next().unwrap_or(path);
    let before: String = place.text.chars().take(place.column.saturating_sub(1) as usize).collect();
    let before = before.trim_end();
    let key = before.strip_suffix(':').map(|before| before.trim_end().trim_end_matches(['"', '\'']));
    path.is_empty() || (!path.contains(['.', '[']) && key.is_some_and(|key| key.ends_with(last)))
}

/// Two long values without the start that they have in common.
fn from_first_difference(expected: &str, actual: &str, room: usize, style: &Style) -> (String, String) {
    let same = expected.chars().zip(actual.chars()).take_while(|(expected, actual)| expected == actual).count();
    if same <= room || expected.is_empty() || actual.is_empty() {
        return (expected.to_owned(), actual.to_owned());
    }
    let rest = |text: &str| format!("{}{}", style.ellipsis(), text.chars().skip(same - LEAD).collect::<String>());
    (rest(expected), rest(actual))
}
