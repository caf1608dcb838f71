//! Whether a command prints what a page says. `…` stands for the rest of a line, or on a line of its own for any lines; times and free
//! ports are not compared, and neither is the order of tests that ran at the same time.

use regex::Regex;
use std::fmt::Write as _;
use std::sync::LazyLock;

static TIME: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\s*\b\d+(\.\d+)? ?(s|ms|µs)\b").unwrap());
static PORT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(127\.0\.0\.1|localhost):\d+").unwrap());

/// A line without what a terminal does not show.
pub(crate) fn normal(line: &str) -> String {
    line.trim_end().to_owned()
}

/// What is different, for a person.
pub(crate) fn differences(expected: &[String], actual: &[String]) -> Option<String> {
    if expected.is_empty() {
        return None;
    }
    let (wanted, found) = (comparable(expected), comparable(actual));
    if matches(&wanted, &found) {
        return None;
    }
    let mut text = String::from("prints something else:");
    for line in actual {
        write!(text, "\n    {line}").unwrap();
    }
    text += "\n  instead of:";
    for line in expected {
        write!(text, "\n    {line}").unwrap();
    }
    Some(text)
}

fn comparable(lines: &[String]) -> Vec<String> {
    let mut lines: Vec<String> =
        lines.iter().map(|line| PORT.replace_all(&TIME.replace_all(line, " TIME"), "$1:PORT").into_owned()).collect();
    let is_result = |line: &String| ["✓ PASS", "✗ FAIL TIME", "- SKIP"].iter().any(|mark| line.starts_with(mark));
    let mut begin = 0;
    while begin < lines.len() {
        let length = lines[begin..].iter().take_while(|line| is_result(line)).count();
        lines[begin..begin + length].sort();
        begin += length.max(1);
    }
    lines
}

fn matches(expected: &[String], actual: &[String]) -> bool {
    match expected.split_first() {
        None => actual.is_empty(),
        Some((first, rest)) if first.trim() == "…" => (0..=actual.len()).any(|skipped| matches(rest, &actual[skipped..])),
        Some((first, rest)) => actual.split_first().is_some_and(|(line, others)| line_matches(first, line) && matches(rest, others)),
    }
}

fn line_matches(expected: &str, actual: &str) -> bool {
    let mut pieces = expected.split('…');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = actual.strip_prefix(first) else { return false };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else { return rest.is_empty() };
    for piece in middle {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

/// Beside the harness of this program, which has one test for each page.
pub(crate) fn tests() -> Result<(), String> {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    for (expected, actual, same) in [
        ("2 passed in 0.1 s", "2 passed in 13.57 s", true),
        ("2 passed", "3 passed", false),
        ("a\n…\nc", "a\nb\nb\nc", true),
        ("a\n…\nc", "a\nb", false),
        ("a… d", "a b c d", true),
        ("a… d", "a b c", false),
        ("✓ PASS 1 s [stdio] b\n✓ PASS 1 s [stdio] a", "✓ PASS 0.3 s [stdio] a\n✓ PASS 2 s [stdio] b", true),
        ("✓ PASS 1 s [stdio] b", "✓ PASS 0.3 s [stdio] a", false),
        ("http://127.0.0.1:3000/mcp", "http://127.0.0.1:41234/mcp", true),
        ("a", "", false),
        ("a", "a\nb", false),
    ] {
        if differences(&lines(expected), &lines(actual)).is_none() != same {
            return Err(format!("{expected:?} and {actual:?}"));
        }
    }
    Ok(())
}
