//! Findings that an SDK causes, grouped by SDK and separate from those of the server's own code. Selects and renders them.

use crate::check::is_open;
use crate::style::{BOLD, DIM, RED, Style, YELLOW, count};
use mcproof_record::{CheckReport, Defect, Finding, RuleResult, Sdk, Severity};

/// Rows for one defect.
const MOST_ROWS: usize = 12;

/// The known defects of an SDK that a check found.
pub(crate) struct SdkDefects<'r> {
    pub(crate) sdk: &'r Sdk,
    pub(crate) defects: Vec<KnownDefect<'r>>,
}

/// One known defect. It may show in several findings of its rule.
pub(crate) struct KnownDefect<'r> {
    pub(crate) rule_result: &'r RuleResult,
    pub(crate) defect: &'r Defect,
    /// The worst first.
    pub(crate) findings: Vec<&'r Finding>,
}

impl KnownDefect<'_> {
    pub(crate) fn severity(&self) -> Severity {
        self.findings[0].severity
    }

    /// The remedy, and why the finding has less weight than its level, if it does.
    pub(crate) fn advice(&self) -> String {
        let Finding { severity, level, tolerance, .. } = self.findings[0];
        let tolerance = tolerance.as_ref().map(|_| format!("; a {level} that counts as a {} without --strict", word(*severity)));
        format!("{}{}", self.defect.advice, tolerance.unwrap_or_default())
    }

    /// Rule and message, and the number of other findings of the same defect.
    pub(crate) fn headline(&self) -> String {
        let more = match self.findings.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        format!("{}: {}{more}", self.rule_result.rule, self.findings[0].message)
    }
}

/// `TypeScript SDK 1.29.0 (not your code)`
pub(crate) fn title(sdk: &Sdk) -> String {
    format!("{sdk} (not your code)")
}

/// By SDK, in the order of the rules.
pub(crate) fn by_sdk(report: &CheckReport) -> Vec<SdkDefects<'_>> {
    let mut groups: Vec<SdkDefects<'_>> = Vec::new();
    for (rule_result, finding) in report.findings().filter(|(_, finding)| is_open(finding)) {
        let Some(defect) = &finding.defect else { continue };
        let position = groups.iter().position(|group| *group.sdk == defect.sdk).unwrap_or_else(|| {
            groups.push(SdkDefects { sdk: &defect.sdk, defects: Vec::new() });
            groups.len() - 1
        });
        let defects = &mut groups[position].defects;
        match defects.iter_mut().find(|known| known.rule_result.rule == rule_result.rule && known.defect == defect) {
            Some(known) => known.findings.push(finding),
            None => defects.push(KnownDefect { rule_result, defect, findings: vec![finding] }),
        }
    }
    for known in groups.iter_mut().flat_map(|group| &mut group.defects) {
        known.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    }
    for group in &mut groups {
        group.defects.sort_by_key(|known| std::cmp::Reverse(known.severity()));
    }
    groups
}

/// `3 known defects of TypeScript SDK 1.29.0 (1 failure, 2 notes)`, one item for each SDK; empty if there are none.
pub(crate) fn counted(groups: &[SdkDefects<'_>]) -> Vec<String> {
    let summary = |group: &SdkDefects<'_>| {
        let of = |severity| group.defects.iter().filter(|known| known.severity() == severity).count() as u64;
        let kinds = [Severity::Error, Severity::Warning, Severity::Note].into_iter().filter(|severity| of(*severity) > 0);
        let kinds: Vec<String> = kinds.map(|severity| count(of(severity), word(severity))).collect();
        format!("{} of {} ({})", count(group.defects.len() as u64, "known defect"), group.sdk, kinds.join(", "))
    };
    groups.iter().map(summary).collect()
}

/// What a finding counts for.
pub(crate) fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "failure",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// A paragraph for each SDK: each defect on a line, with the remedy below it.
pub(crate) fn render(report: &CheckReport, style: &Style) -> String {
    let mut text = String::new();
    for SdkDefects { sdk, defects } in by_sdk(report) {
        text += &style.paint(BOLD, &style.text(&title(sdk)));
        text.push('\n');
        for known in defects {
            let label = format!("{:<7}", word(known.severity()));
            let label = match known.severity() {
                Severity::Error => style.paint(RED, &label),
                Severity::Warning => style.paint(YELLOW, &label),
                Severity::Note => style.paint(DIM, &label),
            };
            let width = style.width.saturating_sub(INDENT);
            for (index, line) in style.wrap(&known.headline(), width, MOST_ROWS).into_iter().enumerate() {
                let before = if index == 0 { format!("  {label}  ") } else { " ".repeat(INDENT) };
                text += &format!("{before}{line}\n");
            }
            for line in style.wrap(&known.advice(), width, MOST_ROWS) {
                text += &format!("{}{}\n", " ".repeat(INDENT), style.paint(DIM, &line));
            }
        }
        text.push('\n');
    }
    text
}

/// Columns before the rule of a defect.
const INDENT: usize = 11;
