//! The report of a run for a person: a line per case as it finishes, failures in detail, a summary. Writes to the writer that it is
//! given, and knows neither whether that is a terminal nor what the locale is.
//!
//! Cases run in parallel, so their lines come as they finish. Details come at the end, in the order of the plan: there they are
//! the last thing on the screen, not torn apart by cases that passed meanwhile, and two runs of the same suite read alike. A case
//! whose failure is another's is named with it, and told once: a server that does not start is one finding, not sixty.

use crate::Style;
use crate::diagnostic;
use crate::escape::columns;
use crate::style::{BOLD, CYAN, DIM, GREEN, RED, YELLOW, count};
use mcproof_record::{CaseId, CaseOutcome, CasePlan, Counts, Diagnostic, Event, Proof, Severity, Verdict};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::time::Duration;

/// Titles above one finding that several cases share.
const TITLES: usize = 8;

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// What needs attention, and the summary.
    Quiet,
    /// A line per finished case, too.
    Normal,
    /// What the wire proved about each case, too.
    Verbose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// For a pipe or a file: what is written stays as it is.
    Off,
    /// A last line that is written over with what is running now. Moves the cursor.
    Live,
}

/// A sink of events that writes the report of a run for a person.
pub struct Terminal<W> {
    writer: W,
    style: Style,
    detail: Detail,
    progress: Progress,
    /// By id: an id is a position in the plan.
    planned: Vec<CasePlan>,
    transport_columns: usize,
    running: BTreeSet<CaseId>,
    finished: usize,
    /// What is told at the end, by its position in the plan.
    findings: BTreeMap<CaseId, Finding>,
    transport_notes: Vec<String>,
    notices: Vec<Diagnostic>,
    is_live_line_shown: bool,
}

struct Finding {
    verdict: Verdict,
    diagnostics: Vec<Diagnostic>,
}

impl<W: Write> Terminal<W> {
    pub fn new(writer: W, style: Style, detail: Detail, progress: Progress) -> Self {
        Self {
            writer,
            style,
            detail,
            progress,
            planned: Vec::new(),
            transport_columns: 0,
            running: BTreeSet::new(),
            finished: 0,
            findings: BTreeMap::new(),
            transport_notes: Vec::new(),
            notices: Vec::new(),
            is_live_line_shown: false,
        }
    }

    /// Writes what the event adds to the report, and flushes.
    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        let mut text = String::new();
        match event {
            Event::RunStarted { cases, .. } => {
                self.planned.clone_from(cases);
                self.transport_columns = cases.iter().map(|case| columns(&self.transports(&[&case.transport]))).max().unwrap_or_default();
                if self.detail != Detail::Quiet {
                    text = self.opening();
                }
            }
            Event::CaseStarted { id } => {
                self.running.insert(*id);
            }
            Event::CaseFinished(outcome) => {
                self.running.remove(&outcome.id);
                self.finished += 1;
                if self.detail != Detail::Quiet {
                    text = self.case_line(outcome);
                }
                self.keep(outcome);
            }
            Event::TransportSpecific { suite, name, failed, passed, .. } => {
                self.transport_notes.push(self.transport_note(suite, name, failed, passed));
            }
            Event::Notice { diagnostic } => self.notices.push(diagnostic.clone()),
            Event::Covered(_) => {}
            Event::RunFinished { counts, duration } => {
                self.running.clear();
                text = self.closing(counts, *duration);
            }
        }
        let live = self.live_line();
        if self.is_live_line_shown {
            self.writer.write_all(b"\r\x1b[2K")?;
        }
        self.writer.write_all(text.as_bytes())?;
        self.writer.write_all(live.as_bytes())?;
        self.is_live_line_shown = !live.is_empty();
        self.writer.flush()
    }

    pub fn into_inner(self) -> W {
        self.writer
    }

    fn opening(&self) -> String {
        let suites: BTreeSet<&str> = self.planned.iter().map(|case| case.suite.as_str()).collect();
        let (tests, suites) = (count(self.planned.len() as u64, "test"), count(suites.len() as u64, "suite"));
        self.style.paint(DIM, &format!("running {tests} from {suites}")) + "\n"
    }

    fn case_line(&self, outcome: &CaseOutcome) -> String {
        let duration = format!("{:>8}", format!("{:.3} s", outcome.duration.as_secs_f64()));
        let transport = self.plan(outcome.id).map(|case| self.transports(&[&case.transport])).unwrap_or_default();
        let padding = " ".repeat(self.transport_columns.saturating_sub(columns(&transport)));
        let has_warnings = outcome.verdict == Verdict::Pass && !outcome.diagnostics.is_empty();
        let mark = if has_warnings { self.warned() } else { self.mark(outcome.verdict) };
        let mut text = format!("{mark} {duration} {}{padding} {}\n", self.style.paint(CYAN, &transport), self.title(outcome.id));
        if self.detail == Detail::Verbose {
            for proof in &outcome.proof {
                text.push_str(&self.style.paint(DIM, &format!("{:indent$}{}", "", self.proof(proof), indent = self.mark_columns() + 10)));
                text.push('\n');
            }
        }
        text
    }

    fn mark(&self, verdict: Verdict) -> String {
        match verdict {
            Verdict::Pass => self.style.paint(GREEN, self.style.pick("✓ PASS", "PASS")),
            Verdict::Fail => self.style.paint(RED.bold(), self.style.pick("✗ FAIL", "FAIL")),
            Verdict::Flaky => self.style.paint(YELLOW, self.style.pick("~ FLAKY", "FLAKY")),
            Verdict::Skipped => self.style.paint(DIM, self.style.pick("- SKIP", "SKIP")),
            Verdict::Cancelled => self.style.paint(YELLOW, self.style.pick("• STOP", "STOP")),
        }
    }

    /// For a case that passed, but with a warning.
    fn warned(&self) -> String {
        self.style.paint(YELLOW, self.style.pick("! WARN", "WARN"))
    }

    fn mark_columns(&self) -> usize {
        columns(self.style.pick("✓ PASS", "PASS"))
    }

    fn proof(&self, proof: &Proof) -> String {
        let Proof { server, transport, era, protocol_version } = proof;
        let server = if server.is_empty() { String::new() } else { format!("{server}: ") };
        self.style.text(&format!("{server}{transport}, {era} era, protocol {protocol_version}"))
    }

    /// Suite and name of a case.
    fn title(&self, id: CaseId) -> String {
        match self.plan(id) {
            Some(case) => self.named(&case.suite, &case.name),
            None => format!("test {}", id.0),
        }
    }

    fn named(&self, suite: &str, name: &str) -> String {
        let suite = self.style.paint(DIM, &format!("{} {}", self.style.text(suite), self.style.pick("›", ">")));
        format!("{suite} {}", self.style.paint(BOLD, &self.style.text(name)))
    }

    fn transports(&self, names: &[&str]) -> String {
        format!("[{}]", self.style.text(&names.join(", ")))
    }

    fn plan(&self, id: CaseId) -> Option<&CasePlan> {
        self.planned.get(id.0 as usize)
    }

    /// Keeps what is told at the end: not the transcripts, which may be large.
    fn keep(&mut self, outcome: &CaseOutcome) {
        if outcome.verdict == Verdict::Fail || !outcome.diagnostics.is_empty() {
            let finding = Finding { verdict: outcome.verdict, diagnostics: outcome.diagnostics.clone() };
            self.findings.insert(outcome.id, finding);
        }
    }

    fn transport_note(&self, suite: &str, name: &str, failed: &[String], passed: &[String]) -> String {
        let label = self.style.paint(YELLOW.bold(), "transport-specific:");
        let verdicts = format!("passes on {}, fails on {}", self.style.text(&list(passed)), self.style.text(&list(failed)));
        format!("{label} {}: {verdicts}\n", self.named(suite, name))
    }

    fn closing(&self, counts: &Counts, duration: Duration) -> String {
        let mut text = String::new();
        for (ids, finding) in self.told_once() {
            text.push('\n');
            text.push_str(&self.finding(&ids, finding));
        }
        if !self.notices.is_empty() {
            text.push('\n');
            text.push_str(&diagnostic::render_all(&self.notices, &self.style));
        }
        if !self.transport_notes.is_empty() {
            text.push('\n');
            text.extend(self.transport_notes.iter().map(String::as_str));
        }
        if self.detail != Detail::Quiet || !text.is_empty() {
            text.push('\n');
        }
        text + &self.summary(counts, duration)
    }

    /// Warnings of cases that passed, then the failures, each in the order of the plan and with all cases that share it.
    fn told_once(&self) -> Vec<(Vec<CaseId>, &Finding)> {
        let mut groups: Vec<(Vec<CaseId>, &Finding)> = Vec::new();
        for (&id, finding) in &self.findings {
            let alike = |(_, other): &&mut (Vec<CaseId>, &Finding)| {
                other.verdict == finding.verdict && same(&other.diagnostics, &finding.diagnostics)
            };
            match groups.iter_mut().find(alike) {
                Some((ids, _)) => ids.push(id),
                None => groups.push((vec![id], finding)),
            }
        }
        groups.sort_by_key(|(_, finding)| finding.verdict == Verdict::Fail);
        groups
    }

    fn finding(&self, ids: &[CaseId], finding: &Finding) -> String {
        let mark = if finding.verdict == Verdict::Pass { self.warned() } else { self.mark(finding.verdict) };
        // A case that shares its finding between transports takes one line.
        let mut titles: Vec<(String, Vec<&str>)> = Vec::new();
        for id in ids {
            let title = self.title(*id);
            let transport = self.plan(*id).map(|case| case.transport.as_str());
            match titles.iter_mut().find(|(known, _)| *known == title) {
                Some((_, transports)) => transports.extend(transport),
                None => titles.push((title, transport.into_iter().collect())),
            }
        }
        let mut text = String::new();
        for (title, transports) in titles.iter().take(TITLES) {
            text.push_str(&format!("{mark} {} {title}\n", self.style.paint(CYAN, &self.transports(transports))));
        }
        if let Some(more) = diagnostic::remainder(titles.len().saturating_sub(TITLES), "test", &self.style) {
            text.push_str(&format!("{more} in the same way\n"));
        }
        text.push_str(&diagnostic::render_all(&finding.diagnostics, &self.style));
        text
    }

    fn summary(&self, counts: &Counts, duration: Duration) -> String {
        let Counts { passed, flaky, failed, skipped, cancelled } = *counts;
        let part = |number: u32, word: &str, style: anstyle::Style| {
            (number > 0).then(|| self.style.paint(style.bold(), &format!("{number} {word}")))
        };
        let warnings = self.findings.values().flat_map(|finding| &finding.diagnostics);
        let warnings = warnings.filter(|diagnostic| diagnostic.severity == Severity::Warning).count() as u64;
        let mut parts: Vec<String> = [
            Some(part(passed, "passed", GREEN).unwrap_or_else(|| "0 passed".to_owned())),
            part(flaky, "flaky", YELLOW),
            part(failed, "failed", RED),
            part(skipped, "skipped", DIM),
            part(cancelled, "cancelled", YELLOW),
        ]
        .into_iter()
        .flatten()
        .collect();
        if warnings > 0 {
            parts.push(self.style.paint(YELLOW, &count(warnings, "warning")));
        }
        if *counts == Counts::default() {
            parts = vec!["no test ran".to_owned()];
        }
        format!("{} in {:.2} s\n", parts.join(", "), duration.as_secs_f64())
    }

    /// What is running now, without a line feed; empty when that is not to be shown.
    fn live_line(&self) -> String {
        if self.progress == Progress::Off || self.running.is_empty() {
            return String::new();
        }
        let names: Vec<String> =
            self.running.iter().filter_map(|id| self.plan(*id)).map(|case| format!("{} [{}]", case.name, case.transport)).collect();
        let text = format!("{}/{} done, running {}", self.finished, self.planned.len(), names.join(", "));
        // One column less than the terminal has: some wrap as soon as the last one is used.
        self.style.paint(DIM, &self.style.line(&text, self.style.width.saturating_sub(1)))
    }
}

/// `stdio and sse`, `stdio, http and sse`.
fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [start @ .., last] => format!("{} and {last}", start.join(", ")),
    }
}

/// Whether two cases fail alike, whatever their wires looked like and however long they took.
fn same(some: &[Diagnostic], others: &[Diagnostic]) -> bool {
    let alike = |(one, other): (&Diagnostic, &Diagnostic)| {
        one.code == other.code
            && one.place == other.place
            && one.differences == other.differences
            && without_durations(&one.message) == without_durations(&other.message)
    };
    some.len() == others.len() && some.iter().zip(others).all(alike)
}

/// The words of a message but for the numbers before `ms` and `s`.
fn without_durations(message: &str) -> Vec<&str> {
    let words: Vec<&str> = message.split(' ').collect();
    let is_unit = |word: &str| matches!(word.trim_end_matches([',', '.', ';', ':', ')']), "ms" | "s");
    let is_duration = |index: usize| words[index].parse::<f64>().is_ok() && words.get(index + 1).is_some_and(|next| is_unit(next));
    (0..words.len()).filter(|index| !is_duration(*index)).map(|index| words[index]).collect()
}
