//! The result of a check: for people, what is wrong first, then what was not tested; and as a run with a case for each rule,
//! so that every reporter of runs can show it.

use crate::defects::{self, KnownDefect};
use crate::diagnostic;
use crate::style::{BOLD, DIM, Style, count};
use mcproof_record::{
    CaseId, CaseOutcome, CasePlan, CheckReport, Diagnostic, Event, Evidence, FORMAT_VERSION, Finding, Frame, FrameBody, Gap, Judged,
    RuleResult, SessionTranscript, Severity, Summary, Verdict, fold,
};
use std::collections::BTreeSet;
use std::time::Duration;

/// Frames of one finding that are shown.
const MOST_FRAMES: usize = 8;

/// Rules that are named for one reason why they were not tested.
const MOST_RULES: usize = 24;

/// Everything that a check found, the worst first.
pub fn render(report: &CheckReport, style: &Style) -> String {
    let mut findings: Vec<(&RuleResult, &Finding)> = report.findings().filter(|(_, finding)| is_listed(finding)).collect();
    // Causes of other findings come first.
    findings
        .sort_by_key(|(rule_result, finding)| std::cmp::Reverse((!consequences(report, &rule_result.rule).is_empty(), finding.severity)));
    let mut text = String::new();
    for gap in report.unexplained_gaps() {
        text += &diagnostic::render(&missing(report, gap), style);
        text.push('\n');
    }
    for (rule_result, finding) in findings {
        text += &diagnostic::render(&diagnosed(report, rule_result, finding), style);
        for line in followed_by(report, &rule_result.rule).iter().flat_map(|line| style.wrap(line, style.width, 6)) {
            text += &style.paint(DIM, &line);
            text.push('\n');
        }
        text.push('\n');
    }
    text += &defects::render(report, style);
    text += &untested(report, style);
    text += &style.paint(BOLD, &counted(report));
    text.push('\n');
    text
}

/// Whether a finding is listed separately: neither accepted, nor caused by another one or by an SDK.
pub(crate) fn is_listed(finding: &Finding) -> bool {
    is_open(finding) && finding.defect.is_none()
}

/// Whether a finding needs a change, in the server or in its SDK.
pub(crate) fn is_open(finding: &Finding) -> bool {
    !finding.accepted && finding.cause.is_none()
}

/// The findings that follow from one of this rule.
fn consequences<'r>(report: &'r CheckReport, cause: &str) -> Vec<&'r RuleResult> {
    let follows = |finding: &Finding| finding.cause.as_deref() == Some(cause) && !finding.accepted;
    report.findings().filter(|(_, finding)| follows(finding)).map(|(rule_result, _)| rule_result).collect()
}

/// `and 13 findings that follow from it: ping-gets-empty-result, …`
pub(crate) fn followed_by(report: &CheckReport, cause: &str) -> Option<String> {
    let consequences = consequences(report, cause);
    let rules: BTreeSet<&str> = consequences.iter().map(|rule_result| rule_result.rule.as_str()).collect();
    let (follow, rules) =
        (if rules.len() == 1 && consequences.len() == 1 { "follows" } else { "follow" }, rules.into_iter().collect::<Vec<_>>());
    (!rules.is_empty()).then(|| format!("and {} that {follow} from it: {}", count(consequences.len() as u64, "finding"), rules.join(", ")))
}

/// A finding as a diagnostic, the form of all failures.
pub fn diagnosed(report: &CheckReport, rule_result: &RuleResult, finding: &Finding) -> Diagnostic {
    let conversation = &report.conversations[finding.conversation];
    let cited = conversation.transcript.frames.iter().filter(|frame| finding.frames.contains(&frame.id));
    let (talk, mut frames): (Vec<&Frame>, Vec<&Frame>) = cited.partition(|frame| matches!(frame.body, FrameBody::Stderr { .. }));
    frames.truncate(MOST_FRAMES);
    let line = |frame: &&Frame| match &frame.body {
        FrameBody::Stderr { bytes } => bytes.to_text().into_owned(),
        _ => String::new(),
    };
    let evidence = Evidence { omitted: 0, frames: frames.into_iter().cloned().collect(), stderr: talk.iter().map(line).collect() };
    let message = format!("{} ({} {}, {})", finding.message, conversation.transport, conversation.revision, finding.level);
    let mut hint = match (&finding.cause, &finding.defect) {
        (Some(cause), _) => format!("follows from `{cause}`: fix that first"),
        (None, Some(defect)) => format!("a known defect of {}, not your code; {}", defect.sdk, defect.advice),
        (None, None) => finding.remedy.clone(),
    };
    if let Some(tolerance) = &finding.tolerance {
        hint += &format!("; only a {}, because {tolerance}", defects::word(finding.severity));
    }
    let diagnostic = Diagnostic { severity: finding.severity, ..Diagnostic::error(&rule_result.rule, message) };
    diagnostic.hint(hint).evidence(evidence)
}

/// The reason why a check is inconclusive, as a diagnostic.
pub fn missing(report: &CheckReport, gap: &Gap) -> Diagnostic {
    let evidence = gap.conversation.map(|index| report.conversations[index].transcript.tail(MOST_FRAMES, MOST_FRAMES)).unwrap_or_default();
    Diagnostic::error(INCONCLUSIVE, format!("inconclusive: {}", gap.message)).hint(gap.hint.clone()).evidence(evidence)
}

/// The code of a diagnostic that explains why there is no verdict.
pub(crate) const INCONCLUSIVE: &str = "inconclusive";

/// What was looked at only in part, and the rules that could not be tested, by reason.
pub(crate) fn untested(report: &CheckReport, style: &Style) -> String {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for rule_result in &report.rules {
        if let Judged::Untestable { why } = &rule_result.judged {
            match reasons.iter_mut().find(|(known, _)| known == why) {
                Some((_, rules)) => rules.push(&rule_result.rule),
                None => reasons.push((why, vec![&rule_result.rule])),
            }
        }
    }
    let sampled = report.sampled.iter().map(|what| format!("partly checked: {what}"));
    let untested = reasons.into_iter().map(|(why, rules)| {
        let named = if rules.len() > MOST_RULES { count(rules.len() as u64, "rule") } else { rules.join(", ") };
        format!("not tested, because {why}: {named}")
    });
    let mut text = String::new();
    for line in sampled.chain(untested) {
        for line in style.wrap(&line, style.width, 6) {
            text += &style.paint(DIM, &line);
            text.push('\n');
        }
    }
    text
}

/// `inconclusive; 2 failures, 2 warnings, 2 notes, including 3 known defects of TypeScript SDK 1.29.0 (1 failure, 2 notes); 80 rules
/// passed, 3 not tested, 20 not applicable`
pub(crate) fn counted(report: &CheckReport) -> String {
    let groups = defects::by_sdk(report);
    let known = |severity| groups.iter().flat_map(|group| &group.defects).filter(|known| known.severity() == severity).count();
    let listed = |severity| report.findings().filter(|(_, finding)| finding.severity == severity && is_listed(finding)).count();
    let found = |severity| (listed(severity) + known(severity)) as u64;
    let with = |wanted: fn(&Judged) -> bool| report.rules.iter().filter(|rule_result| wanted(&rule_result.judged)).count() as u64;
    let accepted = report.findings().filter(|(_, finding)| finding.accepted).count();
    let of_sdks: String = defects::counted(&groups).into_iter().map(|counted| format!(", including {counted}")).collect();
    let following = report.findings().filter(|(_, finding)| !finding.accepted && finding.cause.is_some()).count();
    format!(
        "{}{}, {}, {}{}{}{of_sdks}; {} passed, {} not tested, {} not applicable",
        if report.unexplained_gaps().next().is_some() { "inconclusive; " } else { "" },
        count(found(Severity::Error), "failure"),
        count(found(Severity::Warning), "warning"),
        count(found(Severity::Note), "note"),
        if following > 0 { format!(" (and {following} that follow from these)") } else { String::new() },
        if accepted > 0 { format!(" ({accepted} accepted)") } else { String::new() },
        count(with(|judged| *judged == Judged::Pass), "rule"),
        with(|judged| matches!(judged, Judged::Untestable { .. })),
        with(|judged| matches!(judged, Judged::NotApplicable { .. })),
    )
}

/// The check as a run: the rules of an area are the tests of a suite.
pub fn as_run(report: &CheckReport, duration: Duration) -> Vec<Event> {
    let transports: BTreeSet<&str> = report.conversations.iter().map(|conversation| conversation.transport.as_str()).collect();
    let transport = transports.into_iter().collect::<Vec<_>>().join("+");
    let id = |index: usize| CaseId(u32::try_from(index).unwrap_or(u32::MAX));
    let plan = |index: usize, suite: &str, name: String| CasePlan {
        id: id(index),
        suite: suite.to_owned(),
        name,
        transport: transport.clone(),
        line: 1,
        repetition: 0,
        tags: Vec::new(),
        servers: vec![report.target.clone()],
    };
    let test_of = |rule_result: &RuleResult| format!("{}: {}", rule_result.rule, rule_result.requirement);
    let rules = report.rules.iter().enumerate().map(|(index, rule_result)| plan(index, &rule_result.area, test_of(rule_result)));
    let enough = plan(report.rules.len(), "check", "enough was seen for a verdict".into());
    let judged = sufficient(report, enough.id);
    // Known defects of an SDK come last, in a separate suite.
    let groups = defects::by_sdk(report);
    let known = groups.iter().flat_map(|group| group.defects.iter().map(|known| (defects::title(group.sdk), known)));
    let known: Vec<(CasePlan, &KnownDefect<'_>)> = (report.rules.len() + 1..)
        .zip(known)
        .map(|(index, (suite, known))| (plan(index, &suite, test_of(known.rule_result)), known))
        .collect();
    let cases = rules.chain([enough]).chain(known.iter().map(|(plan, _)| plan.clone())).collect();
    let mut events = vec![Event::RunStarted { version: FORMAT_VERSION, cases, left_out: 0, seed: None }, Event::CaseFinished(judged)];
    events.extend(report.rules.iter().enumerate().map(|(index, rule_result)| Event::CaseFinished(outcome(report, rule_result, id(index)))));
    events.extend(known.iter().map(|(plan, known)| Event::CaseFinished(broken(report, known.rule_result, &known.findings, plan.id))));
    let mut summary = Summary::default();
    events.iter().for_each(|event| fold(&mut summary, event));
    events.push(Event::RunFinished { counts: summary.counts(), duration });
    events
}

/// Whether enough was seen, as the outcome of a test.
fn sufficient(report: &CheckReport, id: CaseId) -> CaseOutcome {
    let diagnostics: Vec<Diagnostic> = report.unexplained_gaps().map(|gap| missing(report, gap)).collect();
    let verdict = if diagnostics.is_empty() { Verdict::Pass } else { Verdict::Fail };
    CaseOutcome { diagnostics, ..CaseOutcome::new(id, verdict, Duration::ZERO) }
}

fn outcome(report: &CheckReport, rule_result: &RuleResult, id: CaseId) -> CaseOutcome {
    let skipped = |code: &str, why: &str| {
        let note = Diagnostic { severity: Severity::Note, ..Diagnostic::error(code, why) };
        CaseOutcome { diagnostics: vec![note], ..CaseOutcome::new(id, Verdict::Skipped, Duration::ZERO) }
    };
    let findings = match &rule_result.judged {
        Judged::Pass => return CaseOutcome::new(id, Verdict::Pass, Duration::ZERO),
        Judged::NotApplicable { why } => return skipped("not-applicable", why),
        Judged::Untestable { why } => return skipped("untestable", why),
        Judged::Broken { findings } => findings,
    };
    // A consequence is reported with its cause.
    if let (None, Some((finding, cause))) = (
        findings.iter().find(|finding| finding.accepted || is_listed(finding)),
        findings.iter().find_map(|finding| Some((finding, finding.cause.as_ref()?))),
    ) {
        return skipped("follows-from-another", &format!("{}, which follows from `{cause}`", finding.message));
    }
    let listed: Vec<&Finding> = findings.iter().filter(|finding| is_listed(finding)).collect();
    if let (true, Some(defect)) = (listed.is_empty(), findings.iter().find_map(|finding| finding.defect.as_ref())) {
        return skipped("known-sdk-defect", &format!("a known defect of {}, which is a separate test", defect.sdk));
    }
    let mut outcome = broken(report, rule_result, &listed, id);
    if let (Some(first), Some(followed_by)) = (outcome.diagnostics.first_mut(), followed_by(report, &rule_result.rule)) {
        first.message += &format!("; {followed_by}");
    }
    outcome
}

/// The outcome of a rule that these findings break; without findings, all of them are accepted.
fn broken(report: &CheckReport, rule_result: &RuleResult, findings: &[&Finding], id: CaseId) -> CaseOutcome {
    let verdict = if findings.iter().any(|finding| finding.severity == Severity::Error) { Verdict::Fail } else { Verdict::Pass };
    let conversations: BTreeSet<usize> = findings.iter().map(|finding| finding.conversation).collect();
    let transcript = |index: usize| SessionTranscript {
        server: report.conversations[index].name.clone(),
        transcript: report.conversations[index].transcript.clone(),
    };
    let mut diagnostics: Vec<Diagnostic> = findings.iter().map(|finding| diagnosed(report, rule_result, finding)).collect();
    diagnostics.sort_by_key(|diagnostic| std::cmp::Reverse(diagnostic.severity));
    CaseOutcome {
        diagnostics,
        transcripts: conversations.into_iter().map(transcript).collect(),
        ..CaseOutcome::new(id, verdict, Duration::ZERO)
    }
}
