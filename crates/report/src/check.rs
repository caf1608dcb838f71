//! The result of a check: for people, what is wrong first, then what was not tested; and as a run with a case for each rule,
//! so that every reporter of runs can tell it.

use crate::defects::{self, Known};
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

/// Rules that are named where one reason is why all of them were not tested.
const MOST_RULES: usize = 24;

/// Everything that a check found, the worst first.
pub fn render(report: &CheckReport, style: &Style) -> String {
    let mut findings: Vec<(&RuleResult, &Finding)> = report.findings().filter(|(_, finding)| is_told(finding)).collect();
    // What others follow from comes first.
    findings.sort_by_key(|(ruling, finding)| std::cmp::Reverse((!consequences(report, &ruling.rule).is_empty(), finding.severity)));
    let mut text = String::new();
    for gap in report.unexplained_gaps() {
        text += &diagnostic::render(&missing(report, gap), style);
        text.push('\n');
    }
    for (ruling, finding) in findings {
        text += &diagnostic::render(&diagnosed(report, ruling, finding), style);
        for line in followed_by(report, &ruling.rule).iter().flat_map(|line| style.wrap(line, style.width, 6)) {
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

/// Whether a finding is told by itself.
pub(crate) fn is_told(finding: &Finding) -> bool {
    is_open(finding) && finding.defect.is_none()
}

/// Whether somebody has to do something about a finding, be it the author of the server or of its SDK.
pub(crate) fn is_open(finding: &Finding) -> bool {
    !finding.accepted && finding.cause.is_none()
}

/// The findings that follow from one of this rule.
fn consequences<'r>(report: &'r CheckReport, cause: &str) -> Vec<&'r RuleResult> {
    let follows = |finding: &Finding| finding.cause.as_deref() == Some(cause) && !finding.accepted;
    report.findings().filter(|(_, finding)| follows(finding)).map(|(ruling, _)| ruling).collect()
}

/// `and 13 findings that follow from it: ping-answers-with-an-empty-result, …`
pub(crate) fn followed_by(report: &CheckReport, cause: &str) -> Option<String> {
    let consequences = consequences(report, cause);
    let rules: BTreeSet<&str> = consequences.iter().map(|ruling| ruling.rule.as_str()).collect();
    let (follow, rules) =
        (if rules.len() == 1 && consequences.len() == 1 { "follows" } else { "follow" }, rules.into_iter().collect::<Vec<_>>());
    (!rules.is_empty()).then(|| format!("and {} that {follow} from it: {}", count(consequences.len() as u64, "finding"), rules.join(", ")))
}

/// A finding in the form in which all failures are told.
pub fn diagnosed(report: &CheckReport, ruling: &RuleResult, finding: &Finding) -> Diagnostic {
    let take = &report.conversations[finding.conversation];
    let cited = take.transcript.frames.iter().filter(|frame| finding.frames.contains(&frame.id));
    let (talk, mut frames): (Vec<&Frame>, Vec<&Frame>) = cited.partition(|frame| matches!(frame.body, FrameBody::Stderr { .. }));
    frames.truncate(MOST_FRAMES);
    let line = |frame: &&Frame| match &frame.body {
        FrameBody::Stderr { bytes } => bytes.to_text().into_owned(),
        _ => String::new(),
    };
    let evidence = Evidence { omitted: 0, frames: frames.into_iter().cloned().collect(), stderr: talk.iter().map(line).collect() };
    let message = format!("{} ({} {}, {})", finding.message, take.transport, take.revision, finding.level);
    let mut hint = match (&finding.cause, &finding.defect) {
        (Some(cause), _) => format!("follows from `{cause}`: mend that first"),
        (None, Some(defect)) => format!("a known defect of {}, not your code; {}", defect.sdk, defect.advice),
        (None, None) => finding.remedy.clone(),
    };
    if let Some(tolerance) = &finding.tolerance {
        hint += &format!("; only a {}, because {tolerance}", defects::word(finding.severity));
    }
    let diagnostic = Diagnostic { severity: finding.severity, ..Diagnostic::error(&ruling.rule, message) };
    diagnostic.hint(hint).evidence(evidence)
}

/// What keeps a check from a verdict, in the form in which all failures are told.
pub fn missing(report: &CheckReport, gap: &Gap) -> Diagnostic {
    let evidence = gap.conversation.map(|take| report.conversations[take].transcript.tail(MOST_FRAMES, MOST_FRAMES)).unwrap_or_default();
    Diagnostic::error(INCONCLUSIVE, format!("inconclusive: {}", gap.message)).hint(gap.hint.clone()).evidence(evidence)
}

/// The code of a diagnostic that says why there is no verdict.
pub(crate) const INCONCLUSIVE: &str = "inconclusive";

/// What was looked at only in part, and the rules that could not be tested, by reason.
pub(crate) fn untested(report: &CheckReport, style: &Style) -> String {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for ruling in &report.rules {
        if let Judged::Untestable { why } = &ruling.judged {
            match reasons.iter_mut().find(|(known, _)| known == why) {
                Some((_, rules)) => rules.push(&ruling.rule),
                None => reasons.push((why, vec![&ruling.rule])),
            }
        }
    }
    let sampled = report.sampled.iter().map(|what| format!("checked in part: {what}"));
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
    let told = |severity| report.findings().filter(|(_, finding)| finding.severity == severity && is_told(finding)).count();
    let found = |severity| (told(severity) + known(severity)) as u64;
    let ruled = |wanted: fn(&Judged) -> bool| report.rules.iter().filter(|ruling| wanted(&ruling.judged)).count() as u64;
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
        count(ruled(|judged| *judged == Judged::Pass), "rule"),
        ruled(|judged| matches!(judged, Judged::Untestable { .. })),
        ruled(|judged| matches!(judged, Judged::NotApplicable { .. })),
    )
}

/// The check as a run: the rules of an area are the tests of a suite.
pub fn as_run(report: &CheckReport, duration: Duration) -> Vec<Event> {
    let transports: BTreeSet<&str> = report.conversations.iter().map(|take| take.transport.as_str()).collect();
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
    let test_of = |ruling: &RuleResult| format!("{}: {}", ruling.rule, ruling.requirement);
    let rules = report.rules.iter().enumerate().map(|(index, ruling)| plan(index, &ruling.area, test_of(ruling)));
    let enough = plan(report.rules.len(), "check", "enough was seen for a verdict".into());
    let judged = sufficient(report, enough.id);
    // What an SDK explains stands after everything else, in a suite of its own.
    let groups = defects::by_sdk(report);
    let known = groups.iter().flat_map(|group| group.defects.iter().map(|known| (defects::title(group.sdk), known)));
    let known: Vec<(CasePlan, &Known<'_>)> =
        (report.rules.len() + 1..).zip(known).map(|(index, (suite, known))| (plan(index, &suite, test_of(known.ruling)), known)).collect();
    let cases = rules.chain([enough]).chain(known.iter().map(|(plan, _)| plan.clone())).collect();
    let mut events = vec![Event::RunStarted { version: FORMAT_VERSION, cases, left_out: 0, seed: None }, Event::CaseFinished(judged)];
    events.extend(report.rules.iter().enumerate().map(|(index, ruling)| Event::CaseFinished(outcome(report, ruling, id(index)))));
    events.extend(known.iter().map(|(plan, known)| Event::CaseFinished(broken(report, known.ruling, &known.findings, plan.id))));
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

fn outcome(report: &CheckReport, ruling: &RuleResult, id: CaseId) -> CaseOutcome {
    let skipped = |code: &str, why: &str| {
        let note = Diagnostic { severity: Severity::Note, ..Diagnostic::error(code, why) };
        CaseOutcome { diagnostics: vec![note], ..CaseOutcome::new(id, Verdict::Skipped, Duration::ZERO) }
    };
    let findings = match &ruling.judged {
        Judged::Pass => return CaseOutcome::new(id, Verdict::Pass, Duration::ZERO),
        Judged::NotApplicable { why } => return skipped("not-applicable", why),
        Judged::Untestable { why } => return skipped("untestable", why),
        Judged::Broken { findings } => findings,
    };
    // What follows from another finding is one with it.
    if let (None, Some((finding, cause))) = (
        findings.iter().find(|finding| finding.accepted || is_told(finding)),
        findings.iter().find_map(|finding| Some((finding, finding.cause.as_ref()?))),
    ) {
        return skipped("follows-from-another", &format!("{}, which follows from `{cause}`", finding.message));
    }
    let told: Vec<&Finding> = findings.iter().filter(|finding| is_told(finding)).collect();
    if let (true, Some(defect)) = (told.is_empty(), findings.iter().find_map(|finding| finding.defect.as_ref())) {
        return skipped("known-sdk-defect", &format!("a known defect of {}, which has a test of its own", defect.sdk));
    }
    let mut outcome = broken(report, ruling, &told, id);
    if let (Some(first), Some(followed_by)) = (outcome.diagnostics.first_mut(), followed_by(report, &ruling.rule)) {
        first.message += &format!("; {followed_by}");
    }
    outcome
}

/// What came of a rule that these findings break; none, if all of them are accepted.
fn broken(report: &CheckReport, ruling: &RuleResult, findings: &[&Finding], id: CaseId) -> CaseOutcome {
    let verdict = if findings.iter().any(|finding| finding.severity == Severity::Error) { Verdict::Fail } else { Verdict::Pass };
    let takes: BTreeSet<usize> = findings.iter().map(|finding| finding.conversation).collect();
    let transcript = |take: usize| SessionTranscript {
        server: report.conversations[take].name.clone(),
        transcript: report.conversations[take].transcript.clone(),
    };
    let mut diagnostics: Vec<Diagnostic> = findings.iter().map(|finding| diagnosed(report, ruling, finding)).collect();
    diagnostics.sort_by_key(|diagnostic| std::cmp::Reverse(diagnostic.severity));
    CaseOutcome { diagnostics, transcripts: takes.into_iter().map(transcript).collect(), ..CaseOutcome::new(id, verdict, Duration::ZERO) }
}
