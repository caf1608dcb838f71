//! The tool results for an agent: short, with the rest on demand and the meaning of the exit code. Starts nothing.

use super::job::{Job, JobEnd, JobResult, Wire};
use super::journal::{Journal, Operation, StoredLines};
use super::tools::{Page, Part};
use crate::exit::{self, Exit};
use mcproof_record::{RulePage, counted};
use mcproof_report::{Style, escape_block, explain};
use mcproof_rules as rules;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;
use std::fmt::Write as _;

/// Bytes of one result, give or take a line.
const LONGEST: usize = 12_000;
/// Characters of an error, which may repeat the request.
const LONGEST_ERROR: usize = 1000;
/// Rules that are explained in one result; of more, only the requirements are shown.
const MOST_RULES: usize = 3;

#[derive(Debug)]
pub(super) struct ToolOutput {
    text: String,
    is_error: bool,
}

impl ToolOutput {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: false }
    }

    /// What is wrong, without all of what was wrong with it.
    pub(super) fn error(text: impl Into<String>) -> Self {
        let mut text = text.into();
        if let Some((end, _)) = text.char_indices().nth(LONGEST_ERROR) {
            text.truncate(end);
            text.push('…');
        }
        Self { text, is_error: true }
    }
}

impl From<ToolOutput> for CallToolResult {
    fn from(ToolOutput { text, is_error }: ToolOutput) -> Self {
        let content = vec![ContentBlock::text(text)];
        if is_error { Self::error(content) } else { Self::success(content) }
    }
}

/// Files what was left of a job and tells of it. That a server failed is a result like any other; that nothing was found out
/// about it is an error.
pub(super) fn of_job(job: &Job, ran: JobResult, journal: &Journal) -> ToolOutput {
    let JobResult { end, report, talk, wire } = ran;
    let report = compact(&report.join("\n")).unwrap_or(report);
    let output: StoredLines = report.iter().chain(&talk).map(|line| line.trim_end()).collect();
    let operation = journal.write(&job.tool, output, wire);
    let mut text = page(&operation, Part::Output, 0);
    let number = operation.number;
    let ended = match end {
        JobEnd::Code(code) => format!("exit code {code}: {}", exit::meaning(code).unwrap_or("unknown")),
        JobEnd::Signal => "mcproof was killed".to_owned(),
        JobEnd::Late => format!("timed out after {} s; it was ended with all processes that it started", job.deadline.as_secs()),
    };
    let seen = match (operation.wire.lines.len(), job.wire) {
        (0, Wire::Test) if end == JobEnd::Code(0) => String::new(),
        (0, _) => "; no traffic was recorded".to_owned(),
        (lines, _) => format!("; {} of traffic: transcript {{\"operation\": {number}}}", counted(lines, "line")),
    };
    writeln!(text, "[operation {number}, {ended}{seen}]").expect("a String takes all text");
    let is_result = [Exit::Passed, Exit::Failed].iter().any(|exit| end == JobEnd::Code(i32::from(exit.code())));
    ToolOutput { text, is_error: !is_result }
}

/// JSON in few characters: a list with one item a line, else one line for all. `None` if it is no JSON, or not whole.
fn compact(report: &str) -> Option<Vec<String>> {
    let result: Value = serde_json::from_str(report).ok()?;
    let lists = ["tools", "resources", "resourceTemplates", "prompts"];
    let list = lists.into_iter().find_map(|key| Some((key, result.get(key)?.as_array()?)));
    Some(match list {
        Some((key, items)) => std::iter::once(format!("{} {key}", items.len())).chain(items.iter().map(Value::to_string)).collect(),
        None => vec![result.to_string()],
    })
}

/// What an earlier operation left.
pub(super) fn of_page(asked: Page, journal: &Journal) -> ToolOutput {
    let operation = match journal.find(asked.operation) {
        Ok(operation) => operation,
        Err(why) => return ToolOutput::error(why),
    };
    let Operation { number, tool, .. } = &*operation;
    let (name, kept) = part(&operation, asked.part);
    let all = kept.lines.len();
    let from = match (asked.from, asked.last) {
        (Some(_), Some(_)) => return ToolOutput::error("`from` cannot be used with `last`"),
        (Some(from), None) => from - 1,
        (None, Some(last)) => all.saturating_sub(last),
        (None, None) => 0,
    };
    if all > 0 && from >= all {
        return ToolOutput::error(format!("{name} of operation {number} has {}", counted(all, "line")));
    }
    let head = format!("[operation {number}, {tool}: {name}, {}, from line {}]\n", counted(all, "line"), from + 1);
    let why = match (all, asked.part, tool.as_str()) {
        (0, Part::Wire, "check") => "no traffic: that of a check is available once the check is complete\n",
        (0, Part::Wire, "test") => "no traffic: only that of failed tests is recorded\n",
        (0, ..) => "nothing\n",
        _ => "",
    };
    ToolOutput::new(head + why + &page(&operation, asked.part, from))
}

fn part(operation: &Operation, part: Part) -> (&'static str, &StoredLines) {
    match part {
        Part::Wire => ("wire", &operation.wire),
        Part::Output => ("output", &operation.output),
    }
}

/// The lines from this one on, as far as an answer goes, and how to see more.
fn page(operation: &Operation, which: Part, from: usize) -> String {
    let (name, kept) = part(operation, which);
    let mut text = String::new();
    for (index, line) in kept.lines.iter().enumerate().skip(from) {
        if text.len() + line.len() > LONGEST && index > from {
            let more = kept.lines.len() - index;
            let number = operation.number;
            let next = index + 1;
            writeln!(text, "[{more} more lines: transcript {{\"operation\": {number}, \"part\": \"{name}\", \"from\": {next}}}]")
                .expect("a String takes all text");
            return text;
        }
        // What a server said may stand in it as it was.
        text.push_str(&escape_block(line));
        text.push('\n');
    }
    if kept.left_out > 0 {
        writeln!(text, "[{} more lines were not kept]", kept.left_out).expect("a String takes all text");
    }
    text
}

/// A rule, the laws of several, or the ids of all.
pub(super) fn of_rules(asked: Option<&str>) -> ToolOutput {
    let words: Vec<String> = asked.into_iter().map(str::to_owned).collect();
    let selected = match rules::select(&words, &[]) {
        Ok(selected) => selected,
        Err(unknown) => {
            let near =
                unknown.near.as_ref().map_or_else(|| "omit `rule` to list all rules".to_owned(), |near| format!("did you mean `{near}`?"));
            return ToolOutput::error(format!("{unknown}; {near}"));
        }
    };
    let pages: Vec<RulePage> = selected.iter().map(|rule| rule.page()).collect();
    let style = Style::default();
    ToolOutput::new(if asked.is_none() {
        by_area(&pages)
    } else if pages.len() > MOST_RULES {
        pages.iter().map(|page| format!("{}: {}\n", page.id, page.requirement)).collect()
    } else {
        explain::terminal(&pages, &style)
    })
}

fn by_area(pages: &[RulePage]) -> String {
    let mut text = String::new();
    for area in pages.chunk_by(|one, other| one.area == other.area) {
        let ids: Vec<&str> = area.iter().map(|page| page.id.as_str()).collect();
        let name = area.first().map_or("", |page| &page.area);
        writeln!(text, "{name}: {}", ids.join(", ")).expect("a String takes all text");
    }
    text
}
