//! Requests that got no response, not even when they were sent again by themselves, while the server responded to others: what a check makes of
//! the marks that an exploration leaves of them. A tool may take as long as it likes, so that not each of them breaks a rule; but none is
//! passed over. Knows conversations, and no other violation.

use super::ConversationView;
use super::rule_definition::Violation;
use mcproof_analysis::named;
use mcproof_analysis::probes::{LOST_AT_ONCE, LOST_REFUSAL, LOST_REQUEST, SILENT_AGAIN, SLOW_AT_TIMES, UNANSWERED_CALL};
use mcproof_protocol::methods;
use mcproof_record::duration::readable;
use mcproof_record::{FrameId, Gap, GapKind, Judged, RuleResult};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

const MARKS: [&str; 3] = [LOST_REQUEST, LOST_REFUSAL, LOST_AT_ONCE];
/// A wait that is told as a violation lasts at least so long, and so many times as long as the slowest response to a request like it.
const LEAST_WAIT: Duration = Duration::from_millis(2800);
const TIMES: u32 = 5;
/// A request that was not waited for so many times as long as another one like it took may only be late.
const TIMES_LATE: u32 = 3;

/// A request that is marked.
struct Lost {
    mark: &'static str,
    /// `a call of` and the tool, or the method.
    what: String,
    /// The tool that was called.
    tool: Option<String>,
    frame: FrameId,
    waited: Duration,
    /// How long the slowest response to a request like it took in the same conversation.
    slowest: Option<Duration>,
    /// It came after all, when nobody waited any more.
    came_late: bool,
}

impl Lost {
    /// Whether nothing but a defect explains it.
    fn is_violation(&self) -> bool {
        let is_quick = self.slowest.is_some_and(|slowest| slowest * TIMES <= self.waited);
        self.mark != LOST_REQUEST && self.waited >= LEAST_WAIT && is_quick && !self.came_late
    }
}

/// What breaks the rule that each request gets a response.
pub(super) fn violations(conversation: &ConversationView<'_>) -> Vec<Violation> {
    let broken = lost(conversation).into_iter().filter(Lost::is_violation).map(|lost| {
        let (waited, quick) = (readable(lost.waited), readable(lost.slowest.unwrap_or_default()));
        let message = match lost.mark {
            LOST_AT_ONCE => format!("{} got no response within {waited} beside others like it, which by itself gets one", lost.what),
            _ => {
                format!("{} with wrong arguments got no response within {waited}, twice; others like it got one within {quick}", lost.what)
            }
        };
        Violation::new(message, [lost.frame])
    });
    broken.collect()
}

/// What no finding tells, and nothing explains either.
pub(super) fn gap(conversations: &[ConversationView<'_>], results: &[RuleResult]) -> Option<Gap> {
    // These have a gap of their own.
    let told = [UNANSWERED_CALL, SILENT_AGAIN].map(|mark| conversations.iter().flat_map(move |one| one.probes(mark)));
    let told: BTreeSet<&str> = told.into_iter().flatten().filter_map(|mark| mark.probed.subject.as_deref()).collect();
    // What is found in one conversation explains the same in another one that did not wait as long.
    let broken: BTreeSet<String> = conversations.iter().flat_map(lost).filter(Lost::is_violation).map(|lost| lost.what).collect();
    let is_found = |index: usize, lost: &Lost| {
        let mut findings = results.iter().filter_map(|result| match &result.judged {
            Judged::Broken { findings } => Some(findings),
            _ => None,
        });
        findings.any(|all| all.iter().any(|finding| finding.conversation == index && finding.frames.contains(&lost.frame)))
    };
    let is_open = |index: usize, lost: &Lost| {
        // One that no call got a response of is a part of that gap, although there was no time to call it as often.
        let never_responds = |tool: &str| conversations.iter().all(|one| slowest_call(one, tool).is_none());
        let is_told = lost.tool.as_deref().is_some_and(|tool| told.contains(tool) || (!told.is_empty() && never_responds(tool)));
        !broken.contains(&lost.what) && !is_told && !is_slow(conversations, lost) && !is_found(index, lost)
    };
    let lost = conversations.iter().enumerate().flat_map(|(index, one)| lost(one).into_iter().map(move |lost| (index, lost)));
    let lost: Vec<(usize, Lost)> = lost.filter(|(index, lost)| is_open(*index, lost)).collect();
    let (index, first) = lost.first()?;
    let others: BTreeSet<&str> = lost.iter().map(|(_, lost)| lost.what.as_str()).filter(|what| *what != first.what).collect();
    let more = if others.is_empty() { String::new() } else { format!(", and so did {} more", others.len()) };
    // Otherwise, all that is known is that the server responded to something else.
    let others = match first.slowest {
        Some(slowest) => format!("others like it got one within {}", readable(slowest)),
        None => "the server was there".to_owned(),
    };
    let message = format!("{} got no response within {}, although {others}{more}", first.what, readable(first.waited));
    let hint = "look for a path through the handler that does not respond; a tool that is slow gets more time by --timeout, such as \
                `--timeout 60s --deadline 3m`";
    Some(Gap { kind: GapKind::NotJudged, message, hint: hint.into(), conversation: Some(*index) })
}

/// Sentences about calls of tools that are slow at other times as well.
pub(super) fn in_part(conversations: &[ConversationView<'_>]) -> Option<String> {
    let lost = conversations.iter().flat_map(lost).filter(|lost| !lost.is_violation() && is_slow(conversations, lost));
    let marked = slow_at_times(conversations).into_iter().map(str::to_owned);
    let tools: Vec<String> = lost.filter_map(|lost| lost.tool).chain(marked).collect::<BTreeSet<_>>().into_iter().collect();
    let are = if tools.len() == 1 { "is" } else { "are" };
    (!tools.is_empty()).then(|| format!("{} {are} slow: not all calls got a response in time", named(&tools)))
}

/// Tools that respond late at times, as somebody saw who waited for it.
pub(super) fn slow_at_times<'c>(conversations: &'c [ConversationView<'_>]) -> BTreeSet<&'c str> {
    conversations.iter().flat_map(|one| one.probes(SLOW_AT_TIMES)).filter_map(|mark| mark.probed.subject.as_deref()).collect()
}

/// Whether a call took as long in any conversation, or its response came when nobody waited any more.
fn is_slow(conversations: &[ConversationView<'_>], lost: &Lost) -> bool {
    let is_as_slow = |one: &ConversationView<'_>| {
        lost.tool.as_deref().and_then(|tool| slowest_call(one, tool)).is_some_and(|slowest| slowest * TIMES_LATE >= lost.waited)
    };
    lost.came_late || conversations.iter().any(is_as_slow)
}

fn lost(conversation: &ConversationView<'_>) -> Vec<Lost> {
    let marks = MARKS.into_iter().flat_map(|mark| conversation.probes(mark).map(move |attempt| (mark, attempt)));
    let lost = marks.filter_map(|(mark, attempt)| {
        let request = attempt.request?;
        let (frame, method) = (request.frame.id, request.method()?);
        let tool = request.param("/name").filter(|_| method == methods::TOOLS_CALL).and_then(Value::as_str).map(str::to_owned);
        let what = tool.as_ref().map_or_else(|| format!("`{method}`"), |tool| format!("a call of `{tool}`"));
        let canceled = request.id().and_then(|id| conversation.cancellation_of(id)).map(|cancellation| cancellation.frame.id);
        let closed = attempt.http.and_then(|http| http.end).map(|(end, _)| end.id);
        // What is not canceled is waited for until its probe ends.
        let probes = conversation.conversation.probes.iter().filter(|probed| !MARKS.contains(&probed.probe.as_str()));
        let ended = probes.filter(|probed| probed.contains(frame)).map(|probed| FrameId(probed.end.0.saturating_sub(1))).max();
        let ends = [canceled, closed, ended].into_iter().flatten();
        let waited = ends.filter(|end| *end > frame).filter_map(|end| conversation.elapsed(frame, end)).max().unwrap_or_default();
        let slowest = tool.as_deref().and_then(|tool| slowest_call(conversation, tool));
        let came_late = conversation.answer_to(request).is_some();
        Some(Lost { mark, what, tool, frame, waited, slowest, came_late })
    });
    lost.collect()
}

/// How long the slowest call of a tool took that got a result.
fn slowest_call(conversation: &ConversationView<'_>, tool: &str) -> Option<Duration> {
    let calls = conversation.requests().filter(|(request, _)| {
        request.method() == Some(methods::TOOLS_CALL) && request.param("/name").and_then(Value::as_str) == Some(tool)
    });
    // Who refuses a call with an error may not have come as far as the tool.
    let results = calls.filter_map(|(request, answer)| Some((request, answer.filter(|answer| answer.value.get("result").is_some())?)));
    results.filter_map(|(request, answer)| conversation.elapsed(request.frame.id, answer.frame.id)).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_analysis::example;

    fn call(id: u32, mark: &str, took: u32, is_answered: bool) -> String {
        let answer = format!(r#"< {{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#);
        let canceled = format!(r#"> {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#);
        let end = if is_answered { answer } else { canceled };
        format!(
            r#"@ {mark} echo
               > {{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{}}}}}}
               ~ {took}
               {end}
               "#
        )
    }

    #[test]
    fn a_lost_request_is_a_violation_or_a_gap_unless_its_tool_is_slow() {
        let check = |mark: &str, usual: u32, waited: u32, broken: usize, open: bool, slow: bool| {
            let text = call(1, "call", usual, true) + &call(2, mark, waited, false);
            let take = example::read(&text, "stdio", "2025-11-25");
            let conversations = [ConversationView::new(&take)];
            let found = (violations(&conversations[0]).len(), gap(&conversations, &[]).is_some(), in_part(&conversations).is_some());
            assert_eq!(found, (broken, open, slow), "{mark} {usual} {waited}");
        };
        check(LOST_REFUSAL, 5, 5000, 1, false, false);
        check(LOST_AT_ONCE, 5, 5000, 1, false, false);
        check(LOST_REQUEST, 5, 5000, 0, true, false);
        check(LOST_REFUSAL, 5, 700, 0, true, false);
        check(LOST_REFUSAL, 1500, 5000, 0, true, false);
        check(LOST_REFUSAL, 3000, 5000, 0, false, true);
        check(LOST_REQUEST, 3000, 5000, 0, false, true);
        check("call-missing-argument", 5, 5000, 0, false, false);
    }
}
