//! A run in the Test Anything Protocol, version 14, in the order of the plan. Diagnostics are shown as text.

use crate::escape::{self, Lines};
use crate::{Reporter, Style, diagnostic, findings, words};
use mcproof_record::{CaseId, CaseOutcome, CasePlan, Event, Verdict};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

/// A sink of events that writes a test point as soon as all before it are written.
pub struct Tap<W> {
    writer: W,
    planned: Vec<CasePlan>,
    written: usize,
    /// Finished before their turn; without transcripts.
    waiting: BTreeMap<CaseId, CaseOutcome>,
}

impl<W: Write> Tap<W> {
    pub fn new(writer: W) -> Self {
        Self { writer, planned: Vec::new(), written: 0, waiting: BTreeMap::new() }
    }

    pub fn into_inner(self) -> W {
        self.writer
    }

    /// The next test points, as far as they are known.
    fn ready(&mut self) -> String {
        let mut text = String::new();
        while let Some(plan) = self.planned.get(self.written)
            && let Some(outcome) = self.waiting.remove(&plan.id)
        {
            self.written += 1;
            text.push_str(&point(self.written, plan, &outcome));
        }
        text
    }

    /// A case without an outcome was canceled, and counts as failed.
    fn rest(&mut self) -> String {
        let mut text = String::new();
        while let Some(plan) = self.planned.get(self.written) {
            let outcome = self.waiting.remove(&plan.id).unwrap_or_else(|| CaseOutcome::new(plan.id, Verdict::Canceled, Duration::ZERO));
            self.written += 1;
            text.push_str(&point(self.written, plan, &outcome));
        }
        text
    }
}

impl<W: Write> Reporter for Tap<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        let text = match event {
            Event::RunStarted { cases, .. } => {
                self.planned.clone_from(cases);
                format!("TAP version 14\n1..{}\n", cases.len())
            }
            Event::CaseFinished(outcome) => {
                self.waiting.insert(outcome.id, outcome.clone_without_transcripts());
                self.ready()
            }
            Event::Notice { diagnostic } => comment(&diagnostic::render(diagnostic, &style())),
            Event::Covered(coverage) => {
                comment(&format!("coverage of {} > {}: {}", coverage.suite, coverage.server, words::coverage(coverage)))
            }
            Event::RunFinished { counts, duration } => self.rest() + &comment(&words::counts(counts, *duration)),
            Event::CaseStarted { .. } | Event::TransportSpecific { .. } => String::new(),
        };
        self.writer.write_all(text.as_bytes())?;
        self.writer.flush()
    }
}

fn style() -> Style {
    Style::default()
}

fn point(number: usize, plan: &CasePlan, outcome: &CaseOutcome) -> String {
    let (CasePlan { suite, transport, .. }, name) = (plan, words::case_name(plan));
    let is_ok = matches!(outcome.verdict, Verdict::Pass | Verdict::Flaky | Verdict::Skipped);
    let status = if is_ok { "ok" } else { "not ok" };
    let mut text = format!("{status} {number} - {}", description(&format!("{suite} > {name} [{transport}]")));
    if outcome.verdict == Verdict::Skipped {
        let reason = outcome.diagnostics.first().map(|diagnostic| diagnostic.message.as_str()).unwrap_or_default();
        text.push_str(&format!(" # SKIP {}", description(reason)));
    }
    text = text.trim_end().to_owned() + "\n";
    if outcome.verdict != Verdict::Skipped {
        text.push_str(&details(outcome));
    }
    text
}

/// The diagnostic block: YAML whose values are JSON, which YAML 1.2 reads as it is.
fn details(outcome: &CaseOutcome) -> String {
    let mut text = String::from("  ---\n");
    let mut add = |key: &str, value: Value| text.push_str(&format!("  {key}: {value}\n"));
    add("verdict", json!(words::verdict(outcome.verdict)));
    add("duration_ms", json!(outcome.duration.as_millis() as u64));
    if outcome.attempts > 1 {
        add("attempts", json!(outcome.attempts));
    }
    for proof in &outcome.proof {
        add("proof", json!(escape::escape(&words::proof(proof))));
    }
    if let Some(first) = outcome.diagnostics.first() {
        add("code", json!(escape::escape(&first.code)));
        add("message", json!(escape::escape(&first.message)));
        if let Some(place) = findings::place(first) {
            add("at", json!({ "file": escape::escape(&place.file), "line": place.line, "column": place.column }));
        }
    }
    let after: Vec<String> = words::aftermath(&outcome.aftermath, &outcome.diagnostics);
    let diagnosis = diagnostic::render_all(&outcome.diagnostics, &style());
    for (key, lines) in [("aftermath", after.iter().map(String::as_str).collect()), ("diagnosis", diagnosis.lines().collect::<Vec<_>>())] {
        if !lines.is_empty() {
            text.push_str(&format!("  {key}:\n"));
            text.extend(lines.iter().map(|line| format!("    - {}\n", json!(escape::escape(line)))));
        }
    }
    text + "  ...\n"
}

/// `#` begins a directive, so it is escaped (TAP 14, escaping).
fn description(text: &str) -> String {
    escape::escape_also(text, Lines::One, |_| false).replace('\\', "\\\\").replace('#', "\\#")
}

fn comment(text: &str) -> String {
    text.lines().map(|line| format!("# {}\n", escape::escape(line))).collect()
}
