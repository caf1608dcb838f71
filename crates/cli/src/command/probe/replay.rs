//! `mcproof probe --replay FILE`: judges a saved probe by the current rules, without the server.

use crate::command::trace;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{output, settings};
use mcproof_contract::probe::take_of;
use mcproof_record::{Diagnostic, FORMAT_VERSION, Judged, ProbeReport, RuleResult, Severity, Transcript, counted};
use mcproof_report::{diagnostic, probe as lines};
use mcproof_rules::{self as rules, Strictness};
use mcproof_trace::{PROBE, TraceRoom, is_zip};
use serde_json::{Value, json};
use std::path::Path;

/// What was saved: the evidence of a monitor, or a trace.
struct Saved {
    report: Option<ProbeReport>,
    transcript: Transcript,
}

pub(super) fn run(path: &Path, as_json: bool) -> Result<Exit, Failure> {
    let Saved { report, transcript } = read(path)?;
    let take = take_of(transcript, report.as_ref());
    let all = rules::select(&[], &[]).expect("no rule is named");
    let rulings: Vec<RuleResult> = rules::judge(&all, &[take], Strictness::Tolerant);
    let broken: Vec<&RuleResult> = rulings.iter().filter(|ruling| matches!(ruling.judged, Judged::Broken { .. })).collect();
    let findings: Vec<Diagnostic> = broken.iter().flat_map(|ruling| findings(ruling)).collect();
    let style = settings::style();
    if as_json {
        let document = json!({ "version": FORMAT_VERSION, "report": report, "rules": broken });
        output::json(&format!("{document:#}\n"))?;
    } else {
        if let Some(report) = &report {
            output::show(&lines::line(report, &style))?;
        }
        let found = |severity, noun| counted(findings.iter().filter(|finding| finding.severity == severity).count(), noun);
        let (failures, warnings) = (found(Severity::Error, "failure"), found(Severity::Warning, "warning"));
        let (notes, held) = (found(Severity::Note, "note"), rulings.iter().filter(|ruling| ruling.judged == Judged::Pass).count());
        output::show(&format!("replayed: {failures}, {warnings}, {notes}; {} passed\n", counted(held, "rule")))?;
    }
    for diagnostic in report.iter().flat_map(|report| &report.diagnostics).chain(&findings) {
        output::talk(&diagnostic::render(diagnostic, &style));
    }
    let was_down = report.as_ref().is_some_and(|report| !report.verdict.is_up());
    let is_broken = findings.iter().any(|finding| finding.severity == Severity::Error);
    Ok(if was_down || is_broken { Exit::Failed } else { Exit::Passed })
}

fn findings(ruling: &RuleResult) -> Vec<Diagnostic> {
    let Judged::Broken { findings } = &ruling.judged else { return Vec::new() };
    let told = findings.iter().map(|finding| {
        let diagnostic = Diagnostic::error(&ruling.rule, &*finding.message).hint(&*finding.remedy);
        Diagnostic { severity: finding.severity, ..diagnostic }
    });
    told.collect()
}

fn read(path: &Path) -> Result<Saved, Failure> {
    if is_zip(path) {
        return read_trace(path);
    }
    let wrong = |reason: String| not_a_probe(path, &reason);
    let text = mcproof_suite::bounds::read_input(path)
        .map_err(|error| Failure::bad_input("cannot-read", format!("cannot read {}: {error}", path.display())))?;
    let document: Value = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
    let version = document.get("version").or_else(|| document.pointer("/report/version"));
    if let Some(version) = version.and_then(Value::as_u64).filter(|version| *version > u64::from(FORMAT_VERSION)) {
        return Err(too_new(path, version));
    }
    let (report, transcript) = match document.get("transcript") {
        Some(transcript) => (document.get("report").filter(|report| !report.is_null()), transcript),
        None => (None, &document),
    };
    Ok(Saved {
        report: report.cloned().map(serde_json::from_value).transpose().map_err(|error| wrong(error.to_string()))?,
        transcript: serde_json::from_value(transcript.clone()).map_err(|error| wrong(error.to_string()))?,
    })
}

/// Far more than a probe has: all rules judge it together.
const ROOM: TraceRoom = TraceRoom { lines: 20_000, bytes: 64 << 20 };

/// The report of a trace, if it has one, and its last session: `--retry` begins another one for each attempt.
fn read_trace(path: &Path) -> Result<Saved, Failure> {
    let (mut sessions, saved) = trace::sessions_with(path, PROBE, ROOM)?;
    let report = saved.map(|saved| read_report(path, &saved)).transpose()?;
    let count = sessions.len();
    let Some((_, transcript)) = sessions.pop_last() else { return Err(not_a_probe(path, "it has no session")) };
    if count > 1 {
        output::talk(&format!("{} has {count} sessions: the last one is judged\n", path.display()));
    }
    Ok(Saved { report, transcript })
}

fn read_report(path: &Path, saved: &[u8]) -> Result<ProbeReport, Failure> {
    let broken = |error: serde_json::Error| not_a_probe(path, &error.to_string());
    let report: Value = serde_json::from_slice(saved).map_err(broken)?;
    match report["version"].as_u64() {
        Some(version) if version > u64::from(FORMAT_VERSION) => Err(too_new(path, version)),
        _ => serde_json::from_value(report).map_err(broken),
    }
}

fn not_a_probe(path: &Path, reason: &str) -> Failure {
    let failure = Failure::bad_input("bad-replay", format!("{} is not a saved probe: {reason}", path.display()));
    failure.hint("save one with `mcproof probe TARGET --trace FILE`, or download the evidence of an incident")
}

fn too_new(path: &Path, version: u64) -> Failure {
    not_a_probe(path, &format!("version {version} requires a newer mcproof"))
}
