//! A run in few words, for a coding agent: what failed, the likeliest cause first, each with one hint and the command that
//! repeats it. Tests that passed are only counted.

mod check;

pub use check::write as write_check;

use crate::escape::{self, escape};
use crate::findings::{Finding, Findings, Shared, Title, place};
use crate::repeat::Repeat;
use crate::style::count;
use crate::{Reporter, words};
use mcproof_record::{Counts, Coverage, Diagnostic, Event, ServerState, Severity, Verdict, telling_lines};
use std::io::{self, Write};
use std::time::Duration;

/// Columns of one line: more of a message is rarely needed, and costs tokens.
const WIDTH: usize = 300;
/// Differences of one finding.
const DIFFERENCES: usize = 3;
/// Cases that are named of those that share a finding.
const CASES: usize = 4;
/// Lines of stderr.
const STDERR: usize = 3;

/// A sink of events that writes a short report when the run has finished.
pub struct Agent<W> {
    writer: W,
    repeat: Repeat,
    findings: Findings,
    /// What belongs to no finding: notices, differences between transports, coverage.
    asides: Vec<String>,
}

impl<W: Write> Agent<W> {
    pub fn new(writer: W, repeat: Repeat) -> Self {
        Self { writer, repeat, findings: Findings::default(), asides: Vec::new() }
    }

    pub fn into_inner(self) -> W {
        self.writer
    }

    fn report(&self, counts: &Counts, duration: Duration) -> String {
        let mut ranked = self.findings.shared();
        ranked.retain(|shared| shared.finding.verdict != Verdict::Skipped);
        ranked.sort_by_key(|shared| (rank(shared.finding), std::cmp::Reverse(shared.cases.len())));
        let is_good = counts.failed == 0 && counts.canceled == 0 && counts.passed + counts.flaky > 0;
        let verdict = if is_good { "PASSED" } else { "FAILED" };
        let found = if ranked.is_empty() { String::new() } else { format!("; {}", count(ranked.len() as u64, "finding")) };
        let order = if ranked.len() > 1 { ", likeliest cause first" } else { "" };
        let mut text = format!("{verdict}: {}{found}{order}\n", words::counts(counts, duration));
        for (index, shared) in ranked.iter().enumerate() {
            text.push_str(&self.finding(index + 1, shared));
        }
        if !self.asides.is_empty() {
            text.push('\n');
            text.extend(self.asides.iter().map(|aside| format!("{}\n", escape(aside))));
        }
        text
    }

    fn finding(&self, number: usize, shared: &Shared<'_>) -> String {
        let Finding { verdict, diagnostics, aftermath } = shared.finding;
        let mut text = String::from("\n");
        let mut add = |label: &str, content: &str| text.push_str(&format!("   {label}: {}\n", line(content)));
        let Some(first) = diagnostics.first() else { return String::new() };
        let head = if *verdict == Verdict::Fail { first.code.clone() } else { format!("{} ({})", first.code, words::verdict(*verdict)) };
        let headline = format!("{number}. {}\n", line(&format!("{head}: {}", first.message)));
        for difference in first.differences.iter().take(DIFFERENCES) {
            let path = if difference.path.is_empty() { "the whole value" } else { &difference.path };
            add("differs", &format!("{path}: expected {}, found {}", difference.expected, difference.actual));
        }
        if first.differences.len() > DIFFERENCES {
            add("differs", &format!("in {} more places", first.differences.len() - DIFFERENCES));
        }
        if first.differences.is_empty()
            && let Some(actual) = &first.actual
            && !first.message.contains(actual.as_str())
        {
            add("found", &actual.split_whitespace().collect::<Vec<_>>().join(" "));
        }
        if let Some(place) = place(first) {
            add("at", &format!("{}:{}:{} `{}`", place.file, place.line, place.column, place.text.trim()));
        }
        for other in diagnostics.iter().skip(1) {
            add("also", &format!("{}: {}", other.code, other.message));
        }
        let stderr = first.evidence.as_ref().map_or(&[][..], |evidence| &evidence.stderr);
        let stderr: Vec<&String> = stderr.iter().filter(|line| !line.trim().is_empty()).collect();
        telling_lines(&stderr, STDERR).iter().for_each(|line| add("stderr", line));
        words::aftermath(aftermath, diagnostics).iter().for_each(|after| add("after", after));
        if let Some(hint) = diagnostics.iter().find_map(|diagnostic| diagnostic.hint.as_ref()) {
            add("hint", hint);
        }
        let titles: Vec<String> = shared
            .titles()
            .iter()
            .take(CASES)
            .map(|Title { suite, name, transports }| format!("{suite} > {name} [{}]", transports.join(", ")))
            .collect();
        let more = shared.titles().len().saturating_sub(CASES);
        let more = if more > 0 { format!("; {more} more") } else { String::new() };
        add(if shared.cases.len() == 1 { "test" } else { "tests" }, &format!("{}{more}", titles.join("; ")));
        if let Some(case) = shared.cases.first() {
            // Never shortened: a part of a command does not run.
            text.push_str(&format!("   repeat: {}\n", escape(&self.repeat.command(case))));
        }
        text.insert_str(1, &headline);
        text
    }
}

impl<W: Write> Reporter for Agent<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.findings.add(event);
        match event {
            Event::TransportSpecific { suite, name, failed, passed, parting } => {
                self.asides.push(format!("transport-specific: {suite} > {name}: {}", words::transport_specific(failed, passed)));
                let parting = parting.as_deref().map(words::parting).into_iter().flatten();
                self.asides.extend(parting.map(|(label, received)| line(&format!("{label} {received}"))));
            }
            Event::Notice { diagnostic } => self.asides.push(notice(diagnostic)),
            Event::Covered(coverage) => self.asides.push(covered(coverage)),
            Event::RunFinished { counts, duration } => {
                self.writer.write_all(self.report(counts, *duration).as_bytes())?;
                self.writer.flush()?;
            }
            Event::RunStarted { .. } | Event::CaseStarted { .. } | Event::CaseFinished(_) => {}
        }
        Ok(())
    }
}

fn notice(diagnostic: &Diagnostic) -> String {
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let hint = diagnostic.hint.as_ref().map(|hint| format!(" (hint: {hint})")).unwrap_or_default();
    format!("{severity}: {}: {}{hint}", diagnostic.code, diagnostic.message)
}

fn covered(coverage: &Coverage) -> String {
    let unused: Vec<String> = words::unused(coverage).into_iter().map(|(label, names)| format!("{label} {}", names.join(", "))).collect();
    let unused = if unused.is_empty() { String::new() } else { format!("; unused: {}", unused.join("; ")) };
    format!("coverage: {} > {}: {}{unused}", coverage.suite, coverage.server, words::coverage(coverage))
}

/// Likely root causes come first: a server that does not run, then one that breaks the protocol, then one that does not respond,
/// then unexpected responses; warnings come last.
fn rank(finding: &Finding) -> u8 {
    if finding.verdict != Verdict::Fail {
        return 9;
    }
    let left = |states: &[ServerState]| finding.aftermath.iter().any(|after| states.contains(&after.state));
    let code = finding.diagnostics.first().map_or("", |diagnostic| diagnostic.code.as_str());
    match code {
        _ if left(&[ServerState::NotStarted, ServerState::Died, ServerState::Unreachable]) => 0,
        "address-taken"
        | "bad-url"
        | "command-not-found"
        | "connection-closed"
        | "handshake-invalid"
        | "handshake-refused"
        | "listens-elsewhere"
        | "no-free-port"
        | "no-such-folder"
        | "not-started-again"
        | "port-not-announced"
        | "server-exited"
        | "server-not-listening"
        | "server-not-started"
        | "server-unreachable"
        | "version-mismatch" => 0,
        _ if left(&[ServerState::Hung, ServerState::Silent]) => 1,
        "answer-without-id"
        | "answered-twice"
        | "invalid-result"
        | "no-event-stream"
        | "no-response-in-http-response"
        | "not-a-message"
        | "too-long"
        | "unknown-id" => 1,
        "no-response" | "timeout" => 2,
        _ => 3,
    }
}

/// What a rule says, whose quotes are short.
fn sentence(text: &str) -> String {
    within(text, 5 * WIDTH)
}

/// Text for one line.
fn line(text: &str) -> String {
    within(text, WIDTH)
}

fn within(text: &str, width: usize) -> String {
    escape::cut(&text.replace('\n', " "), width, "…", |_| false)
}
