//! The result of a check for people: what is wrong first, then what was not tested, then one line that counts.

use crate::diagnostic;
use crate::style::Style;
use mcproof_record::{CheckReport, Diagnostic, Evidence, Finding, Frame, FrameBody, Judged, Ruling, Severity};
use std::fmt::Write as _;

/// Frames of one finding that are shown.
const MOST_FRAMES: usize = 8;

/// Everything that a check found, the worst first.
pub fn render(report: &CheckReport, style: &Style) -> String {
    let mut findings: Vec<(&Ruling, &Finding)> = report.findings().filter(|(_, finding)| !finding.accepted).collect();
    findings.sort_by_key(|(_, finding)| std::cmp::Reverse(finding.severity));
    let mut text = String::new();
    for (ruling, finding) in findings {
        text += &diagnostic::render(&diagnosed(report, ruling, finding), style);
        text.push('\n');
    }
    text += &summary(report, style);
    text
}

/// A finding in the form in which all failures are told.
pub fn diagnosed(report: &CheckReport, ruling: &Ruling, finding: &Finding) -> Diagnostic {
    let take = &report.takes[finding.take];
    let frames: Vec<Frame> = take.transcript.frames.iter().filter(|frame| finding.frames.contains(&frame.id)).cloned().collect();
    let (stderr, frames): (Vec<_>, Vec<_>) = frames.into_iter().partition(|frame| matches!(frame.body, FrameBody::Stderr { .. }));
    let said = |frame: &Frame| match &frame.body {
        FrameBody::Stderr { bytes } => bytes.to_text().into_owned(),
        _ => String::new(),
    };
    let evidence =
        Evidence { omitted: 0, frames: frames.into_iter().take(MOST_FRAMES).collect(), stderr: stderr.iter().map(said).collect() };
    let mut message = format!("{} ({} {}", finding.message, take.transport, take.revision);
    write!(message, ", {})", finding.keyword).expect("a String takes all text");
    let mut hint = finding.remedy.clone();
    if let Some(lenience) = &finding.lenience {
        write!(hint, "; a warning only, because {lenience}").expect("a String takes all text");
    }
    Diagnostic {
        code: ruling.rule.clone(),
        severity: finding.severity,
        message,
        place: None,
        differences: Vec::new(),
        actual: None,
        evidence: Some(evidence),
        hint: Some(hint),
    }
}

fn summary(report: &CheckReport, _style: &Style) -> String {
    let count = |severity| report.findings().filter(|(_, finding)| finding.severity == severity && !finding.accepted).count();
    let rulings = |wanted: fn(&Judged) -> bool| report.rulings.iter().filter(|ruling| wanted(&ruling.judged)).count();
    format!(
        "{} failures, {} warnings, {} notes; {} rules kept, {} not testable, {} not applicable\n",
        count(Severity::Error),
        count(Severity::Warning),
        count(Severity::Note),
        rulings(|judged| *judged == Judged::Pass),
        rulings(|judged| matches!(judged, Judged::Untestable { .. })),
        rulings(|judged| matches!(judged, Judged::NotApplicable { .. })),
    )
}
