//! A check in few words: one paragraph for each rule that is broken, the worst first, with the frame that shows it, what to
//! change, and the command that judges this rule again. What was not tested is said, what was kept is counted.

use super::line;
use crate::check::{INCONCLUSIVE, counted, followed_by, is_told, missing, untested};
use crate::defects::{OfSdk, by_sdk, title, word};
use crate::diagnostic::wire;
use crate::escape::escape;
use crate::repeat::Repeat;
use crate::style::Style;
use crate::{Charset, Color};
use mcproof_record::{CheckReport, Conclusion, Direction, Finding, Judged, RuleResult};
use std::cmp::Reverse;
use std::io::{self, Write};

/// Findings of one rule: the same in other conversations is mostly the same mistake.
const FINDINGS: usize = 3;
/// The last frames that a finding cites: what the server did stands at their end.
const FRAMES: usize = 3;

/// Writes a check for an agent. `conclusion` is what the exit code says.
///
/// # Errors
/// The writer fails.
pub fn write(mut writer: impl Write, report: &CheckReport, conclusion: Conclusion, repeat: &Repeat) -> io::Result<()> {
    writer.write_all(text(report, conclusion, repeat).as_bytes())?;
    writer.flush()
}

fn text(report: &CheckReport, conclusion: Conclusion, repeat: &Repeat) -> String {
    let mut broken: Vec<(&RuleResult, Vec<&Finding>)> = report.rules.iter().filter_map(broken).collect();
    broken.sort_by_key(|(ruling, findings)| {
        Reverse((followed_by(report, &ruling.rule).is_some(), findings.iter().map(|finding| finding.severity).max()))
    });
    let verdict = match conclusion {
        Conclusion::Passed => "PASSED",
        Conclusion::Failed => "FAILED",
        Conclusion::Inconclusive => "INCONCLUSIVE",
    };
    let order = if broken.len() > 1 { "; the worst first" } else { "" };
    let mut text = format!("{verdict}: {}{order}\n", counted(report));
    for gap in report.unexplained_gaps() {
        text += &format!("\n{}\n", line(&format!("{INCONCLUSIVE}: {}", gap.message)));
        let stderr = missing(report, gap).evidence.map(|evidence| evidence.stderr).unwrap_or_default();
        text.extend(stderr.iter().rev().take(FRAMES).rev().map(|said| format!("   stderr: {}\n", line(said))));
        text += &format!("   hint: {}\n", line(&gap.hint));
    }
    for (index, (ruling, findings)) in broken.iter().enumerate() {
        text += &paragraph(index + 1, report, ruling, findings, repeat);
    }
    for OfSdk { sdk, defects } in by_sdk(report) {
        text += &format!("\n{}:\n", line(&title(sdk)));
        for known in defects {
            text += &format!("   {}: {}\n", word(known.severity()), line(&known.told()));
            text += &format!("   hint: {}\n", line(&known.advice()));
        }
    }
    // One line for each reason: whoever reads this wraps lines as it likes.
    let untested = untested(report, &Style { color: Color::Plain, charset: Charset::Unicode, width: usize::MAX });
    if !untested.is_empty() {
        text.push('\n');
        text += &untested;
    }
    text
}

/// A rule with those of its findings that are not accepted.
fn broken(ruling: &RuleResult) -> Option<(&RuleResult, Vec<&Finding>)> {
    let Judged::Broken { findings } = &ruling.judged else { return None };
    let mut open: Vec<&Finding> = findings.iter().filter(|finding| is_told(finding)).collect();
    open.sort_by_key(|finding| Reverse(finding.severity));
    (!open.is_empty()).then_some((ruling, open))
}

fn paragraph(number: usize, report: &CheckReport, ruling: &RuleResult, findings: &[&Finding], repeat: &Repeat) -> String {
    let mut text = String::new();
    for (index, finding) in findings.iter().take(FINDINGS).enumerate() {
        let take = &report.conversations[finding.conversation];
        let severity = word(finding.severity);
        let said = format!("{severity}: {} ({} {}, {})", finding.message, take.transport, take.revision, finding.level);
        text += &match index {
            0 => format!("\n{number}. {}\n", line(&format!("{}: {said}", ruling.rule))),
            _ => format!("   also: {}\n", line(&said)),
        };
        let cited: Vec<_> = take.transcript.frames.iter().filter(|frame| finding.frames.contains(&frame.id)).collect();
        for frame in cited.iter().skip(cited.len().saturating_sub(FRAMES)).filter(|_| index == 0) {
            let arrow = match frame.direction {
                Direction::ToServer => "→",
                Direction::FromServer => "←",
                Direction::Local => "•",
            };
            if let Some((said, _)) = wire::said(frame, &take.transcript.frames) {
                text += &format!("   wire: {}\n", line(&format!("{arrow} {said}")));
            }
        }
    }
    if let Some(more) = findings.len().checked_sub(FINDINGS).filter(|more| *more > 0) {
        text += &format!("   also: {more} more of this rule\n");
    }
    if let Some(first) = findings.first() {
        text += &format!("   hint: {}\n", line(&first.remedy));
    }
    if let Some(followed_by) = followed_by(report, &ruling.rule) {
        text += &format!("   {}\n", line(&followed_by));
    }
    // Whole: half a command is none.
    text += &format!("   repeat: {}\n", escape(&repeat.rule(&ruling.rule)));
    text
}
