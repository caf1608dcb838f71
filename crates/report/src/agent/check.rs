//! A check in few words: one paragraph for each rule that is broken, the worst first, with the frame that shows it, what to
//! change, and the command that judges this rule again. Lists what was not tested, counts what passed.

use super::{line, sentence};
use crate::check::{INCONCLUSIVE, counted, followed_by, is_listed, missing, untested};
use crate::defects::{SdkDefects, by_sdk, title, word};
use crate::diagnostic::wire;
use crate::escape::escape;
use crate::repeat::Repeat;
use crate::style::Style;
use crate::{Charset, Color};
use mcproof_record::{CheckReport, Conclusion, Direction, Finding, Judged, RuleResult, telling_lines};
use std::cmp::Reverse;
use std::io::{self, Write};

/// Findings of one rule: the same in other conversations is mostly the same mistake.
const FINDINGS: usize = 3;
/// The last frames that a finding cites: they show what the server did.
const FRAMES: usize = 3;

/// Writes a check for an agent. `conclusion` corresponds to the exit code.
///
/// # Errors
/// The writer fails.
pub fn write(mut writer: impl Write, report: &CheckReport, conclusion: Conclusion, repeat: &Repeat) -> io::Result<()> {
    writer.write_all(text(report, conclusion, repeat).as_bytes())?;
    writer.flush()
}

fn text(report: &CheckReport, conclusion: Conclusion, repeat: &Repeat) -> String {
    let mut broken: Vec<(&RuleResult, Vec<&Finding>)> = report.rules.iter().filter_map(broken).collect();
    broken.sort_by_key(|(rule_result, findings)| {
        Reverse((followed_by(report, &rule_result.rule).is_some(), findings.iter().map(|finding| finding.severity).max()))
    });
    let verdict = match conclusion {
        Conclusion::Passed => "PASSED",
        Conclusion::Failed => "FAILED",
        Conclusion::Inconclusive => "INCONCLUSIVE",
    };
    let order = if broken.len() > 1 { "; the worst first" } else { "" };
    let mut text = format!("{verdict}: {}{order}\n", counted(report));
    for gap in report.unexplained_gaps() {
        text += &format!("\n{}\n", sentence(&format!("{INCONCLUSIVE}: {}", gap.message)));
        let stderr = missing(report, gap).evidence.map(|evidence| evidence.stderr).unwrap_or_default();
        text.extend(telling_lines(&stderr, FRAMES).iter().map(|text| format!("   stderr: {}\n", line(text))));
        text += &format!("   hint: {}\n", sentence(&gap.hint));
    }
    for (index, (rule_result, findings)) in broken.iter().enumerate() {
        text += &paragraph(index + 1, report, rule_result, findings, repeat);
    }
    for SdkDefects { sdk, defects } in by_sdk(report) {
        text += &format!("\n{}:\n", line(&title(sdk)));
        for known in defects {
            text += &format!("   {}: {}\n", word(known.severity()), line(&known.headline()));
            text += &format!("   hint: {}\n", line(&known.advice()));
        }
    }
    // One line for each reason: agents need no wrapped lines.
    let untested = untested(report, &Style { color: Color::Plain, charset: Charset::Unicode, width: usize::MAX });
    if !untested.is_empty() {
        text.push('\n');
        text += &untested;
    }
    text
}

/// A rule with those of its findings that are not accepted.
fn broken(rule_result: &RuleResult) -> Option<(&RuleResult, Vec<&Finding>)> {
    let Judged::Broken { findings } = &rule_result.judged else { return None };
    let mut open: Vec<&Finding> = findings.iter().filter(|finding| is_listed(finding)).collect();
    open.sort_by_key(|finding| Reverse(finding.severity));
    (!open.is_empty()).then_some((rule_result, open))
}

fn paragraph(number: usize, report: &CheckReport, rule_result: &RuleResult, findings: &[&Finding], repeat: &Repeat) -> String {
    let mut text = String::new();
    for (index, finding) in findings.iter().take(FINDINGS).enumerate() {
        let conversation = &report.conversations[finding.conversation];
        let severity = word(finding.severity);
        let message = format!("{severity}: {} ({} {}, {})", finding.message, conversation.transport, conversation.revision, finding.level);
        text += &match index {
            0 => format!("\n{number}. {}\n", sentence(&format!("{}: {message}", rule_result.rule))),
            _ => format!("   also: {}\n", sentence(&message)),
        };
        let cited: Vec<_> = conversation.transcript.frames.iter().filter(|frame| finding.frames.contains(&frame.id)).collect();
        for frame in cited.iter().skip(cited.len().saturating_sub(FRAMES)).filter(|_| index == 0) {
            let arrow = match frame.direction {
                Direction::ToServer => "→",
                Direction::FromServer => "←",
                Direction::Local => "•",
            };
            if let Some((summary, _)) = wire::summary(frame, &conversation.transcript.frames) {
                text += &format!("   wire: {}\n", line(&format!("{arrow} {summary}")));
            }
        }
    }
    if let Some(more) = findings.len().checked_sub(FINDINGS).filter(|more| *more > 0) {
        text += &format!("   also: {more} more of this rule\n");
    }
    if let Some(first) = findings.first() {
        text += &format!("   hint: {}\n", sentence(&first.remedy));
    }
    if let Some(followed_by) = followed_by(report, &rule_result.rule) {
        text += &format!("   {}\n", line(&followed_by));
    }
    // Never shortened: a part of a command does not run.
    text += &format!("   repeat: {}\n", escape(&repeat.rule(&rule_result.rule)));
    text
}
