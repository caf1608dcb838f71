//! A trace as Markdown for a pull request: what was called, what failed, what was slow. Nothing of a server is markup in it.

use super::lines::shown;
use mcproof_report::{escape_block, escape_line};
use mcproof_trace::calls::{Call, CallKind};
use mcproof_trace::export::ExportError;
use mcproof_trace::{CallStream, Ending, Item, Trace};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

/// Calls that are listed in a table.
const MOST_ROWS: usize = 20;

/// Characters of a message in a details section.
const LONGEST_MESSAGE: usize = 4_000;

#[derive(Default)]
struct Row {
    calls: u64,
    errors: u64,
    longest: Duration,
    total: Duration,
}

pub(super) fn write(trace: Trace, out: &mut dyn Write) -> Result<Ending, ExportError> {
    let mut stream = CallStream::new(trace);
    let (mut rows, mut failed): (BTreeMap<String, Row>, Vec<Call>) = (BTreeMap::new(), Vec::new());
    let (mut calls, mut errors) = (0_u64, 0_u64);
    for item in stream.by_ref() {
        let Item::Call(call) = item? else { continue };
        if call.kind != CallKind::Request {
            continue;
        }
        let row = rows.entry(title(&call)).or_default();
        let duration = call.duration().unwrap_or_default();
        (row.calls, row.longest, row.total) = (row.calls + 1, row.longest.max(duration), row.total + duration);
        calls += 1;
        if call.status.is_error() {
            row.errors += 1;
            errors += 1;
            if failed.len() < MOST_ROWS {
                failed.push(*call);
            }
        }
    }
    writeln!(out, "### MCP trace: {}, {errors} failed\n", mcproof_record::counted(calls, "request"))?;
    for session in stream.sessions() {
        let revision = session.revision.as_deref().map(|revision| format!(", {}", text(revision))).unwrap_or_default();
        writeln!(out, "- session {}: {} over {}{revision}", session.key, text(&session.server), text(&session.transport))?;
    }
    writeln!(out, "\n| request | calls | failed | average | longest |\n|---|---:|---:|---:|---:|")?;
    let mut sorted: Vec<_> = rows.iter().collect();
    sorted.sort_by_key(|(_, row)| std::cmp::Reverse((row.errors, row.total)));
    for (title, row) in sorted.iter().take(MOST_ROWS) {
        let average = row.total / u32::try_from(row.calls).unwrap_or(u32::MAX).max(1);
        writeln!(out, "| {title} | {} | {} | {} | {} |", row.calls, row.errors, shown(average), shown(row.longest))?;
    }
    if sorted.len() > MOST_ROWS {
        writeln!(out, "\n{} more are not listed.", sorted.len() - MOST_ROWS)?;
    }
    for call in &failed {
        let message = call.message.as_deref().map(|message| format!(": {}", text(message))).unwrap_or_default();
        writeln!(out, "\n<details><summary>call {} {} {}{message}</summary>\n", call.key, title(call), call.status.name())?;
        for message in [Some(&call.request), call.response.as_ref()].into_iter().flatten().filter(|message| !message.is_empty()) {
            let pretty = serde_json::from_slice::<Value>(message.as_bytes()).map(|value| format!("{value:#}"));
            let body: String = pretty.unwrap_or_else(|_| message.to_text().into_owned()).chars().take(LONGEST_MESSAGE).collect();
            let body = escape_block(&body);
            // A fence that is longer than any in the text.
            let fence = "`".repeat(longest_run(&body).max(2) + 1);
            writeln!(out, "{fence}json\n{body}\n{fence}\n")?;
        }
        writeln!(out, "</details>")?;
    }
    if errors > failed.len() as u64 {
        writeln!(out, "\n{} more failed.", errors - failed.len() as u64)?;
    }
    out.flush()?;
    Ok(stream.ending())
}

fn title(call: &Call) -> String {
    match &call.target {
        Some(target) => format!("{} {}", text(&call.method), text(target)),
        None => text(&call.method),
    }
}

/// One line in which nothing is markup, in Markdown or in HTML.
fn text(value: &str) -> String {
    let mut clean = String::new();
    for symbol in escape_line(value, 120).chars() {
        match symbol {
            '&' => clean.push_str("&amp;"),
            '<' => clean.push_str("&lt;"),
            '>' => clean.push_str("&gt;"),
            // Mentions and references would tell people.
            '@' | '#' => clean.push_str(&format!("&#{};", u32::from(symbol))),
            '|' | '*' | '_' | '`' | '[' | ']' | '~' | '\\' | '!' => clean.extend(['\\', symbol]),
            other => clean.push(other),
        }
    }
    // A bare address would become a link.
    clean.replace("://", ":&#47;&#47;")
}

fn longest_run(text: &str) -> usize {
    text.split(|symbol| symbol != '`').map(str::len).max().unwrap_or(0)
}
