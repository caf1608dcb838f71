//! One diagnostic as text: what is wrong, the source with a caret, what was received, the frames around it, and what to do next.
//! Decides the order and the layout; the source, the differences and the frames are drawn by the modules below it.

pub(crate) mod diff;
mod differences;
mod snippet;
pub(crate) mod wire;

use crate::Style;
use crate::escape::columns;
use crate::style::{BOLD, CYAN, DIM};
use mcproof_record::{Diagnostic, Difference, Evidence, Frame};

/// Rows for a line of stderr.
const ROWS: usize = 4;
/// Rows for a hint, which names what to change at its end.
const HINT_ROWS: usize = 8;

/// Codes that only repeat the headline. Every other code of a diagnostic with evidence is the id of a broken rule, which
/// the reader can look up.
const GENERAL: &[&str] = &[
    "address-taken",
    "answer-without-id",
    "answered-twice",
    "bad-output-schema",
    "bad-url",
    "body-too-large",
    "breaker-open",
    "canceled",
    "cannot-fail",
    "certificate-expires",
    "client-failed",
    "command-failed",
    "command-not-found",
    "command-not-started",
    "command-timeout",
    "connection-closed",
    "contract-changed",
    "costly-output-schema",
    "coverage-unknown",
    "duplicate-name",
    "endless-pages",
    "era-mismatch",
    "event-too-large",
    "fault-not-injected",
    "handshake-invalid",
    "handshake-refused",
    "head-too-large",
    "inconclusive",
    "insecure",
    "invalid-result",
    "json-too-deep",
    "json-too-many-values",
    "leak",
    "leak-untestable",
    "list-too-large",
    "listens-elsewhere",
    "lists-change",
    "missing-structured-content",
    "mock-failed",
    "name-clash",
    "no-event-stream",
    "no-free-port",
    "no-notification",
    "no-policy",
    "no-response",
    "no-response-in-http-response",
    "no-such-folder",
    "not-a-message",
    "not-a-task",
    "not-declared",
    "not-distinct",
    "not-observed",
    "not-started-again",
    "not-strict",
    "not-subscribed",
    "nothing-to-compare",
    "nothing-to-save",
    "one-session",
    "output-breaks-schema",
    "port-not-announced",
    "response-before-cancel",
    "rpc-error",
    "runs-failed",
    "server-exited",
    "server-not-listening",
    "server-not-started",
    "server-unreachable",
    "session-closed",
    "session-ended",
    "session-kept",
    "skipped",
    "snapshot-differs",
    "snapshot-not-reviewed",
    "snapshot-unusable",
    "still-running",
    "stopped-early",
    "subscription-failed",
    "subscription-not-granted",
    "task-without-result",
    "tasks-not-offered",
    "test-timeout",
    "timeout",
    "too-long",
    "too-slow",
    "traffic-not-judged",
    "unauthorized",
    "unexpected-exit",
    "unexpected-names",
    "unexpected-outcome",
    "unexpected-value",
    "unknown-argument",
    "unknown-id",
    "unknown-revision",
    "unknown-tool",
    "unknown-variable",
    "unstable-contract",
    "unstable-lists",
    "unused-client-response",
    "version-mismatch",
];

/// The diagnosis as lines, each ending with a line feed. What a server or a suite wrote is escaped.
pub fn render(diagnostic: &Diagnostic, style: &Style) -> String {
    let (mut text, explained) = snippet::render(diagnostic, style);
    let notes = notes(diagnostic, &explained, style);
    if !notes.is_empty() && text.lines().nth(1).is_some() {
        text.push('\n');
    }
    for line in lay_out(&notes, style) {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// Only the frames, as in a diagnostic: a line for each.
pub fn render_frames(frames: &[Frame], style: &Style) -> String {
    wire::all(frames, 0, style, style.width.max(20)).into_iter().map(|line| line + "\n").collect()
}

/// Several diagnoses, with an empty line between them.
pub fn render_all(diagnostics: &[Diagnostic], style: &Style) -> String {
    diagnostics.iter().map(|diagnostic| render(diagnostic, style)).collect::<Vec<_>>().join("\n")
}

/// Lines that belong together, under a label at their left.
struct Note {
    label: &'static str,
    lines: Vec<String>,
}

fn notes(diagnostic: &Diagnostic, explained: &[&Difference], style: &Style) -> Vec<Note> {
    let room = room(style);
    let mut notes = Vec::new();
    let mut add = |label, lines: Vec<String>| {
        if !lines.is_empty() {
            notes.push(Note { label, lines });
        }
    };
    add("differs", differences::lines(diagnostic, explained, style, room));
    match diff::of(diagnostic, style, room) {
        Some(diff::Shown::Diff(lines)) => add("diff", lines),
        Some(diff::Shown::Whole(lines)) => add("found", lines),
        None => {}
    }
    if let Some(evidence) = &diagnostic.evidence {
        add("wire", wire::lines(evidence, style, room));
        add("stderr", stderr(evidence, style, room));
        if !GENERAL.contains(&diagnostic.code.as_str()) {
            add("rule", vec![style.line(&diagnostic.code, room)]);
        }
    }
    if let Some(hint) = &diagnostic.hint {
        add("hint", style.wrap(hint, room, HINT_ROWS));
    }
    notes
}

fn stderr(evidence: &Evidence, style: &Style, room: usize) -> Vec<String> {
    evidence.stderr.iter().flat_map(|line| style.wrap(line.trim_end_matches('\r'), room, ROWS)).collect()
}

/// Two columns, the label, two columns, and what remains of the width.
fn room(style: &Style) -> usize {
    style.width.saturating_sub("  differs  ".len()).max(20)
}

fn lay_out(notes: &[Note], style: &Style) -> Vec<String> {
    let widest = notes.iter().map(|note| columns(note.label)).max().unwrap_or_default();
    let mut lines = Vec::new();
    for note in notes {
        let label_style = if note.label == "hint" { CYAN.bold() } else { BOLD };
        for (index, line) in note.lines.iter().enumerate() {
            let label = if index == 0 { note.label } else { "" };
            let padding = " ".repeat(widest - columns(label) + 2);
            let label = if label.is_empty() { String::new() } else { style.paint(label_style, label) };
            lines.push(format!("  {label}{padding}{line}").trim_end().to_owned());
        }
    }
    lines
}

/// `… and 3 more differences`, dimmed.
pub(crate) fn remainder(number: usize, thing: &str, style: &Style) -> Option<String> {
    let counted = crate::style::count(number as u64, thing);
    (number > 0).then(|| style.paint(DIM, &format!("{} and {}", style.ellipsis(), counted.replacen(' ', " more ", 1))))
}
