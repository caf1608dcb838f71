//! The report of a run for a terminal: a line per case as it finishes, failures in detail, a summary. Does not detect the terminal
//! or the locale: the caller does.
//!
//! Cases run in parallel, so their lines come as they finish. Details come at the end, in the order of the plan: there they are
//! the last thing on the screen, not interrupted by cases that passed meanwhile, and two runs of the same suite read alike. Cases
//! with the same failure share one finding: a server that does not start is one finding, not sixty.

use crate::diagnostic;
use crate::escape::columns;
use crate::findings::{Finding, Findings, Shared, Title};
use crate::style::{BOLD, CYAN, DIM, GREEN, RED, YELLOW, count};
use crate::{Repeat, Reporter, Style, words};
use mcproof_record::{CaseId, CaseOutcome, Counts, Coverage, Diagnostic, Event, Parting, Severity, Verdict};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::time::Duration;

/// Titles above one finding that several cases share.
const TITLES: usize = 8;
/// Rows for the text beside a label.
const ROWS: usize = 12;
/// Rows for each of two responses that differ.
const PARTING_ROWS: usize = 3;

/// How much is shown.
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
    /// For a pipe or a file: written text is never changed.
    Off,
    /// The last line shows what is running and is overwritten. Moves the cursor.
    Live,
}

/// A sink of events that writes the report of a run for a person.
pub struct Terminal<W> {
    writer: W,
    style: Style,
    detail: Detail,
    progress: Progress,
    transport_columns: usize,
    planned: usize,
    left_out: u32,
    seed: Option<u32>,
    running: BTreeSet<CaseId>,
    finished: usize,
    /// The total duration of the finished cases.
    spent: Duration,
    /// What is shown at the end.
    findings: Findings,
    transport_notes: Vec<String>,
    notices: Vec<Diagnostic>,
    coverage: Vec<Coverage>,
    is_live_line_shown: bool,
    repeat: Option<Repeat>,
}

impl<W: Write> Terminal<W> {
    pub fn new(writer: W, style: Style, detail: Detail, progress: Progress) -> Self {
        Self {
            writer,
            style,
            detail,
            progress,
            transport_columns: 0,
            planned: 0,
            left_out: 0,
            seed: None,
            running: BTreeSet::new(),
            finished: 0,
            spent: Duration::ZERO,
            findings: Findings::default(),
            transport_notes: Vec::new(),
            notices: Vec::new(),
            coverage: Vec::new(),
            is_live_line_shown: false,
            repeat: None,
        }
    }

    /// Shows the command that runs a failed case again.
    #[must_use]
    pub fn repeating(self, repeat: Repeat) -> Self {
        Self { repeat: Some(repeat), ..self }
    }

    pub fn into_inner(self) -> W {
        self.writer
    }

    fn opening(&self) -> String {
        let suites: BTreeSet<&str> = self.findings.planned().map(|case| case.suite.as_str()).collect();
        let (tests, suites) = (count(self.planned as u64, "test"), count(suites.len() as u64, "suite"));
        let left_out = if self.left_out > 0 { format!(", {} not selected", self.left_out) } else { String::new() };
        self.style.paint(DIM, &format!("running {tests} from {suites}{left_out}{}", self.shuffled())) + "\n"
    }

    /// How to repeat the order of the cases.
    fn shuffled(&self) -> String {
        self.seed.map(|seed| format!(", shuffled with --seed {seed}")).unwrap_or_default()
    }

    fn case_line(&self, outcome: &CaseOutcome) -> String {
        // The longest mark uses one column of the durations, which leave it free.
        let room = if outcome.verdict == Verdict::Flaky { 7 } else { 8 };
        let duration = format!("{:>room$}", format!("{:.3} s", outcome.duration.as_secs_f64()));
        let transport = self.findings.plan(outcome.id).map(|case| self.transports(&[&case.transport])).unwrap_or_default();
        let padding = " ".repeat(self.transport_columns.saturating_sub(columns(&transport)));
        let has_warnings = outcome.verdict == Verdict::Pass && !outcome.diagnostics.is_empty();
        let mark = if has_warnings { self.warned() } else { self.mark(outcome.verdict) };
        let (transport, title, reason) = (self.style.paint(CYAN, &transport), self.title(outcome.id), self.reason(outcome));
        let mut text = format!("{mark} {duration} {transport}{padding} {title}{reason}\n");
        if self.detail == Detail::Verbose {
            for proof in &outcome.proof {
                text.push_str(
                    &self
                        .style
                        .paint(DIM, &format!("{:indent$}{}", "", self.style.text(&words::proof(proof)), indent = self.mark_columns() + 10)),
                );
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
            Verdict::Canceled => self.style.paint(YELLOW, self.style.pick("• STOP", "STOP")),
        }
    }

    /// For a case that passed, but with a warning.
    fn warned(&self) -> String {
        self.style.paint(YELLOW, self.style.pick("! WARN", "WARN"))
    }

    fn mark_columns(&self) -> usize {
        columns(self.style.pick("✓ PASS", "PASS"))
    }

    /// Why a case did not run, or needed more than one attempt.
    fn reason(&self, outcome: &CaseOutcome) -> String {
        let reason = match outcome.verdict {
            Verdict::Skipped => outcome.diagnostics.first().map(|diagnostic| diagnostic.message.clone()),
            Verdict::Flaky => Some(words::attempts(outcome.attempts)),
            _ => None,
        };
        reason.map(|reason| self.style.paint(DIM, &format!(" ({})", self.style.text(&reason)))).unwrap_or_default()
    }

    /// Suite and name of a case.
    fn title(&self, id: CaseId) -> String {
        match self.findings.plan(id) {
            Some(case) => self.named(&case.suite, &words::case_name(case)),
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

    fn transport_note(&self, suite: &str, name: &str, verdicts: &str, parting: Option<&Parting>) -> String {
        let label = self.style.paint(YELLOW.bold(), "transport-specific:");
        let mut text = format!("{label} {}: {}\n", self.named(suite, name), self.style.text(verdicts));
        for (label, received) in parting.map(words::parting).into_iter().flatten() {
            text.push_str(&self.labelled(&format!("{label:<16}"), &received, PARTING_ROWS));
        }
        text
    }

    fn closing(&self, counts: &Counts, duration: Duration) -> String {
        let mut text = String::new();
        for shared in self.shown_findings() {
            text.push('\n');
            text.push_str(&self.finding(&shared));
        }
        if !self.notices.is_empty() {
            text.push('\n');
            text.push_str(&diagnostic::render_all(&self.notices, &self.style));
        }
        if !self.transport_notes.is_empty() {
            text.push('\n');
            text.extend(self.transport_notes.iter().map(String::as_str));
        }
        for coverage in &self.coverage {
            text.push('\n');
            text.push_str(&self.covered(coverage));
        }
        if self.detail != Detail::Quiet || !text.is_empty() {
            text.push('\n');
        }
        if counts.canceled > 0 {
            text.push_str(&self.stopped());
        }
        text + &self.summary(counts, duration)
    }

    /// The cases that were running when the run was stopped.
    fn stopped(&self) -> String {
        let mut text = String::new();
        for id in self.running.iter().take(TITLES) {
            let transport = self.findings.plan(*id).map(|case| self.transports(&[&case.transport])).unwrap_or_default();
            let (mark, transport, title) = (self.mark(Verdict::Canceled), self.style.paint(CYAN, &transport), self.title(*id));
            text.push_str(&format!("{mark} {transport} {title}{}\n", self.style.paint(DIM, " (it was running)")));
        }
        text
    }

    /// Warnings of cases that passed, then the failures, each in the order of the plan and with all cases that share it. The
    /// line of a skipped case already has the reason.
    fn shown_findings(&self) -> Vec<Shared<'_>> {
        let mut groups = self.findings.shared();
        groups.retain(|shared| shared.finding.verdict != Verdict::Skipped);
        groups.sort_by_key(|shared| shared.finding.verdict == Verdict::Fail);
        groups
    }

    fn finding(&self, shared: &Shared<'_>) -> String {
        let Finding { verdict, diagnostics, aftermath } = shared.finding;
        let mark = if *verdict == Verdict::Pass { self.warned() } else { self.mark(*verdict) };
        // A case that shares its finding between transports takes one line.
        let titles = shared.titles();
        let mut text = String::new();
        for Title { suite, name, transports } in titles.iter().take(TITLES) {
            text.push_str(&format!("{mark} {} {}\n", self.style.paint(CYAN, &self.transports(transports)), self.named(suite, name)));
        }
        if let Some(more) = diagnostic::remainder(titles.len().saturating_sub(TITLES), "test", &self.style) {
            text.push_str(&format!("{more} in the same way\n"));
        }
        text.push_str(&diagnostic::render_all(diagnostics, &self.style));
        for after in words::aftermath(aftermath, diagnostics) {
            text.push_str(&self.labelled("after", &after, ROWS));
        }
        if let (Verdict::Fail, Some(repeat), Some(case)) = (verdict, &self.repeat, shared.cases.first()) {
            // Never wrapped: it is copied into a shell.
            text.push_str(&format!("  {}  {}\n", self.style.paint(BOLD, "rerun"), self.style.text(&repeat.command(case))));
        }
        text
    }

    fn covered(&self, coverage: &Coverage) -> String {
        let percent = coverage.percent();
        let color = if percent == 100 { GREEN } else { YELLOW };
        let summary = self.style.paint(color, &words::coverage(coverage));
        let mut text = format!("coverage: {}: {summary}\n", self.named(&coverage.suite, &coverage.server));
        let unused = words::unused(coverage);
        let widest = unused.iter().map(|(label, _)| label.len()).max().unwrap_or_default();
        for (label, names) in unused {
            text.push_str(&self.labelled(&format!("unused {label:widest$}"), &names.join(", "), ROWS));
        }
        text
    }

    /// `  label  text`, with all rows of the text beside the label.
    fn labelled(&self, label: &str, text: &str, most: usize) -> String {
        let indent = label.len() + 4;
        let rows = self.style.wrap(text, self.style.width.saturating_sub(indent).max(20), most);
        let mut lines = String::new();
        for (index, row) in rows.iter().enumerate() {
            let head = if index == 0 { format!("  {}  ", self.style.paint(BOLD, label)) } else { " ".repeat(indent) };
            lines.push_str(&format!("{head}{row}\n"));
        }
        lines
    }

    fn summary(&self, counts: &Counts, duration: Duration) -> String {
        let warnings = self.findings.diagnostics().filter(|diagnostic| diagnostic.severity == Severity::Warning).count() as u64;
        let color = |word: &str| match word {
            "passed" => GREEN,
            "failed" => RED,
            "skipped" => DIM,
            _ => YELLOW,
        };
        let part = |(number, word): (u32, &str)| {
            let text = format!("{number} {word}");
            if number > 0 { self.style.paint(color(word).bold(), &text) } else { text }
        };
        let mut parts: Vec<String> = words::parts(counts).into_iter().map(part).collect();
        if warnings > 0 {
            parts.push(self.style.paint(YELLOW, &count(warnings, "warning")));
        }
        if *counts == Counts::default() {
            parts = vec!["no test ran".to_owned()];
        }
        format!("{} in {:.2} s{}\n", parts.join(", "), duration.as_secs_f64(), self.shuffled())
    }

    /// What is running now, without a line feed; empty when that is not to be shown.
    fn live_line(&self) -> String {
        if self.progress == Progress::Off || self.running.is_empty() {
            return String::new();
        }
        let names: Vec<String> = self
            .running
            .iter()
            .filter_map(|id| self.findings.plan(*id))
            .map(|case| format!("{} [{}]", words::case_name(case), case.transport))
            .collect();
        let text = format!("{}/{} done{}, running {}", self.finished, self.planned, self.time_left(), names.join(", "));
        // One column less than the terminal has: some wrap as soon as the last one is used.
        self.style.paint(DIM, &self.style.line(&text, self.style.width.saturating_sub(1)))
    }

    /// An estimate from the durations so far and the number of cases that run at once. Empty for less than two seconds.
    fn time_left(&self) -> String {
        let Ok(finished @ 1..) = u32::try_from(self.finished) else { return String::new() };
        let waiting = self.planned.saturating_sub(self.finished) as f64;
        let left = (self.spent / finished).as_secs_f64() * waiting / self.running.len().max(1) as f64;
        match left.ceil() as u64 {
            0 | 1 => String::new(),
            seconds @ 2..120 => format!(", about {seconds} s left"),
            seconds => format!(", about {} min left", seconds.div_ceil(60)),
        }
    }
}

impl<W: Write> Reporter for Terminal<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.findings.add(event);
        let mut text = String::new();
        match event {
            Event::RunStarted { cases, left_out, seed, .. } => {
                self.planned = cases.len();
                self.left_out = *left_out;
                self.seed = *seed;
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
                self.spent += outcome.duration;
                if self.detail != Detail::Quiet {
                    text = self.case_line(outcome);
                }
            }
            Event::TransportSpecific { suite, name, failed, passed, parting } => {
                self.transport_notes.push(self.transport_note(suite, name, &words::transport_specific(failed, passed), parting.as_deref()));
            }
            Event::Notice { diagnostic } => self.notices.push(diagnostic.clone()),
            Event::Covered(coverage) => self.coverage.push(coverage.clone()),
            Event::RunFinished { counts, duration } => {
                text = self.closing(counts, *duration);
                self.running.clear();
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
}
