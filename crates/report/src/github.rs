//! A run for GitHub Actions: annotations as workflow commands, and a summary in Markdown. Knows the two formats;
//! the caller decides where they are written.

use crate::escape::{self, Lines};
use crate::findings::{Finding, Findings, Shared, Title, place};
use crate::{Reporter, Style, diagnostic, words};
use mcproof_record::{Coverage, Diagnostic, Event, Severity, Verdict};
use std::io::{self, Write};

/// Annotations of one kind that GitHub shows for a step; it drops the others silently.
const ANNOTATIONS: usize = 10;
/// Characters of the summary; GitHub refuses one of more than 1 MiB.
const SUMMARY: usize = 900_000;
/// Titles above one finding that several cases share.
const TITLES: usize = 8;
/// Columns for what was received on one transport.
const RECEIVED: usize = 240;

/// A sink of events that annotates the lines of suites, and writes a summary.
pub struct Github<W, S> {
    annotations: W,
    /// The file that a step's summary is appended to.
    summary: Option<S>,
    /// From the top of the repository to the folder in which suites are named.
    folder: String,
    /// Ends the pause in which GitHub obeys no command in the output. Secret.
    pause: Option<String>,
    findings: Findings,
    notices: Vec<Diagnostic>,
    specific: Vec<String>,
    coverage: Vec<Coverage>,
}

impl<W: Write, S: Write> Github<W, S> {
    /// `pause` is a random word, needed if other reporters write to the same output: until the run has finished, GitHub obeys no
    /// command in lines that contain text of a server.
    pub fn new(annotations: W, summary: Option<S>, folder: String, pause: Option<String>) -> Self {
        let findings = Findings::default();
        Self { annotations, summary, folder, pause, findings, notices: Vec::new(), specific: Vec::new(), coverage: Vec::new() }
    }

    pub fn into_inner(self) -> (W, Option<S>) {
        (self.annotations, self.summary)
    }

    fn commands(&self) -> String {
        let mut text = String::new();
        let shared = self.findings.shared();
        let failures = shared.iter().filter(|shared| shared.finding.verdict == Verdict::Fail);
        let mut errors: Vec<String> = failures.map(|shared| self.annotation(Severity::Error, shared)).collect();
        let others = shared.iter().filter(|shared| matches!(shared.finding.verdict, Verdict::Pass | Verdict::Flaky));
        let mut warnings: Vec<String> = others.map(|shared| self.annotation(Severity::Warning, shared)).collect();
        for notice in &self.notices {
            let list = if notice.severity == Severity::Error { &mut errors } else { &mut warnings };
            list.push(self.command(notice.severity, notice, "mcproof", &diagnostic::render(notice, &style())));
        }
        for list in [errors, warnings] {
            let left_out = list.len().saturating_sub(ANNOTATIONS);
            // The last one counts those that are not shown.
            let shown = if left_out > 0 { ANNOTATIONS - 1 } else { list.len() };
            text.extend(list.iter().take(shown).map(String::as_str));
            if left_out > 0 {
                text.push_str(&format!("::notice title=mcproof::{} more findings are in the log and the summary\n", list.len() - shown));
            }
        }
        text
    }

    fn annotation(&self, severity: Severity, shared: &Shared<'_>) -> String {
        let titles: Vec<String> = shared
            .titles()
            .iter()
            .take(TITLES)
            .map(|Title { name, transports, .. }| format!("{name} [{}]", transports.join(", ")))
            .collect();
        let mut body = diagnostic::render_all(&shared.finding.diagnostics, &style());
        body.extend(after(shared.finding));
        let unplaced = Diagnostic::error("failed", "failed");
        let first = shared.finding.diagnostics.first().unwrap_or(&unplaced);
        self.command(severity, first, &titles.join("; "), &body)
    }

    fn command(&self, severity: Severity, diagnostic: &Diagnostic, title: &str, body: &str) -> String {
        let name = match severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        let mut properties = Vec::new();
        if let Some(place) = place(diagnostic).filter(|place| place.file != "command line") {
            let end = place.column.saturating_add(place.length);
            let file = if place.file.starts_with('/') {
                place.file.clone()
            } else {
                format!("{}{}", self.folder, place.file.trim_start_matches("./"))
            };
            properties.push(format!("file={}", property(&file)));
            properties.push(format!("line={},col={},endColumn={end}", place.line, place.column));
        }
        properties.push(format!("title={}", property(title)));
        format!("::{name} {}::{}\n", properties.join(","), data(body.trim_end()))
    }

    fn markdown(&self, headline: &str) -> String {
        let mut text = format!("## mcproof: {}\n\n", inline(headline));
        for line in &self.specific {
            text.push_str(&format!("- {line}\n"));
        }
        let mut shared = self.findings.shared();
        shared.retain(|shared| shared.finding.verdict != Verdict::Skipped);
        shared.sort_by_key(|shared| shared.finding.verdict != Verdict::Fail);
        let mut blocks: Vec<String> = shared.iter().map(section).collect();
        blocks.extend(self.notices.iter().map(|notice| fenced(&diagnostic::render(notice, &style()))));
        blocks.extend(self.coverage.iter().map(covered));
        let total = blocks.len();
        for (index, block) in blocks.into_iter().enumerate() {
            if text.len() + block.len() > SUMMARY {
                text.push_str(&format!("\n… and {} more that do not fit here\n", total - index));
                break;
            }
            text.push('\n');
            text.push_str(&block);
        }
        text
    }
}

impl<W: Write, S: Write> Reporter for Github<W, S> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.findings.add(event);
        match event {
            Event::RunStarted { .. } => {
                if let Some(word) = &self.pause {
                    writeln!(self.annotations, "::stop-commands::{word}")?;
                }
                self.annotations.flush()
            }
            Event::TransportSpecific { suite, name, failed, passed, parting } => {
                let verdicts = words::transport_specific(failed, passed);
                let mut text = format!("**transport-specific**: {} › {}: {}", inline(suite), inline(name), inline(&verdicts));
                for (label, received) in parting.as_deref().map(words::parting).into_iter().flatten() {
                    text.push_str(&format!("\n  - {label} {}", inline(&escape::escape_line(&received, RECEIVED))));
                }
                self.specific.push(text);
                Ok(())
            }
            Event::Notice { diagnostic } => {
                self.notices.push(diagnostic.clone());
                Ok(())
            }
            Event::Covered(coverage) => {
                self.coverage.push(coverage.clone());
                Ok(())
            }
            Event::RunFinished { counts, duration } => {
                if let Some(word) = &self.pause {
                    writeln!(self.annotations, "::{word}::")?;
                }
                self.annotations.write_all(self.commands().as_bytes())?;
                self.annotations.flush()?;
                let markdown = self.markdown(&words::counts(counts, *duration));
                match &mut self.summary {
                    Some(summary) => summary.write_all(markdown.as_bytes()).and_then(|()| summary.flush()),
                    None => Ok(()),
                }
            }
            Event::CaseStarted { .. } | Event::CaseFinished(_) => Ok(()),
        }
    }
}

fn style() -> Style {
    Style::default()
}

fn section(shared: &Shared<'_>) -> String {
    let mark = match shared.finding.verdict {
        Verdict::Fail => "❌ failed",
        Verdict::Flaky => "⚠️ flaky",
        Verdict::Canceled => "⚠️ canceled",
        Verdict::Pass | Verdict::Skipped => "⚠️ warning",
    };
    let titles = shared.titles();
    let mut text = String::new();
    for Title { suite, name, transports } in titles.iter().take(TITLES) {
        text.push_str(&format!("### {mark}: {} › {} [{}]\n", inline(suite), inline(name), inline(&transports.join(", "))));
    }
    if titles.len() > TITLES {
        text.push_str(&format!("\n… and {} more in the same way\n", titles.len() - TITLES));
    }
    text.push('\n');
    let mut body = diagnostic::render_all(&shared.finding.diagnostics, &style());
    body.extend(after(shared.finding));
    text + &fenced(&body)
}

fn covered(coverage: &Coverage) -> String {
    let head = format!("### coverage of {} › {}: {}\n\n", inline(&coverage.suite), inline(&coverage.server), words::coverage(coverage));
    let rows = words::unused(coverage).into_iter().map(|(label, names)| format!("| {label} | {} |\n", inline(&names.join(", "))));
    let rows: String = rows.collect();
    if rows.is_empty() { head } else { format!("{head}| unused | |\n|---|---|\n{rows}") }
}

fn after(finding: &Finding) -> Vec<String> {
    words::aftermath(&finding.aftermath, &finding.diagnostics).iter().map(|after| format!("{}\n", escape::escape(after))).collect()
}

/// Text as a code block with a fence that the text does not contain.
fn fenced(text: &str) -> String {
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}text\n{}\n{fence}\n", escape::escape_block(text.trim_end()))
}

/// Text within one line of Markdown, with its markup escaped.
fn inline(text: &str) -> String {
    let mut safe = String::new();
    for character in escape::escape_also(text, Lines::One, |_| false).chars() {
        match character {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            // Prevents mentions and links.
            '@' => safe.push_str("&#64;"),
            ':' if safe.ends_with("http") || safe.ends_with("https") => safe.push_str("&#58;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '(' | ')' | '#' | '|' | '~' | '!' => safe.extend(['\\', character]),
            _ => safe.push(character),
        }
    }
    safe
}

/// The text of a command.
fn data(text: &str) -> String {
    escape::escape_block(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property of a command.
fn property(text: &str) -> String {
    data(&escape::escape(text)).replace(':', "%3A").replace(',', "%2C")
}
