//! What a check has to have seen before it may pass: a conversation over each transport that completed the handshake and the
//! lists, and a judgment of the essential rules. Knows results and conversations, and no violation.

use super::answers::death;
use super::judging;
use super::lifecycle::{NOT_ALL_KEPT, last_words};
use super::rule_definition::{Area, RequirementLevel};
use super::{ConversationView, Strictness, broken_tools, lost_requests, prompts, unanswered};
use crate::sdk;
use mcproof_analysis::arguments::{self, Unusual};
use mcproof_analysis::diagnosis::remedy_for_silence;
use mcproof_analysis::probes::{
    CALLER, DEADLINE, EXPLORED_IN_PART, LEFT_OUT, ONE_CONNECTION, SILENT_AGAIN, SILENT_BESIDE_CANCELED, UNANSWERED_CALL, UNKNOWN_CALL,
    UNUSUAL_UNANSWERED,
};
use mcproof_analysis::{AttemptOutcome, MOST_NOTIFICATIONS, TooMuch, did_you_mean, named};
use mcproof_protocol::{Era, error_code, methods};
use mcproof_record::{
    CheckReport, Conversation, FORMAT_VERSION, Finding, Frame, FrameBody, FrameId, Gap, GapKind, Judged, Opened, ProbeOutcome, RuleResult,
    Severity,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Rules that can be judged in any conversation. If one of them was not judged, the conversation was not a normal one.
const ESSENTIAL: [&str; 10] = [
    "initialize-gets-result",
    "request-gets-response",
    "response-id-matches-request",
    "response-has-result-or-error",
    "jsonrpc-version-is-2-0",
    "message-matches-schema",
    "stdio-only-messages-on-stdout",
    "stdio-message-on-one-line",
    "http-response-content-type",
    "server-stays-alive",
];

/// The lists of a capability: the method, and the member of its result.
const LISTS: [(&str, &str, &str); 3] = [
    ("tools", methods::TOOLS_LIST, "tools"),
    ("resources", methods::RESOURCES_LIST, "resources"),
    ("prompts", methods::PROMPTS_LIST, "prompts"),
];

/// Judges recorded conversations by rules, and reports what was not seen. `strictness`: which severities the findings get.
pub fn report(target: String, rules: &[&'static super::Rule], recorded: Vec<Conversation>, strictness: Strictness) -> CheckReport {
    let (mut results, gaps, in_part) = {
        let conversations = ConversationView::all(&recorded);
        let results = judging::judge_read(rules, &conversations, strictness);
        let (gaps, mut in_part) = (gaps(&conversations, &results), floods(&conversations));
        in_part.extend(broken_tools::in_part(&conversations));
        in_part.extend(prompts::in_part(&conversations));
        in_part.extend(lost_requests::in_part(&conversations));
        in_part.extend(limited(&conversations, &results));
        (results, gaps, in_part)
    };
    sdk::explain(&mut results, &recorded, strictness);
    if gaps.iter().any(|gap| gap.kind == GapKind::NoConversation) {
        give_one_reason(&mut results);
    }
    let marks = recorded.iter().flat_map(|take| &take.probes).filter(|probed| probed.probe == EXPLORED_IN_PART);
    let sampled: BTreeSet<String> = marks.filter_map(|probed| probed.subject.clone()).chain(in_part).chain(not_kept(&recorded)).collect();
    CheckReport { version: FORMAT_VERSION, target, gaps, sampled: sampled.into_iter().collect(), rules: results, conversations: recorded }
}

/// That the server limited what it took, unless a rule that could not be judged says so.
fn limited(conversations: &[ConversationView<'_>], results: &[RuleResult]) -> Option<String> {
    let is_told = |result: &RuleResult| matches!(&result.judged, Judged::Untestable { why } if why.starts_with(judging::THROTTLED));
    let is_limited = conversations.iter().any(|one| one.first_throttled().is_some());
    (is_limited && !results.iter().any(is_told)).then(|| judging::throttled(conversations))
}

/// If no conversation completed, every rule lacks evidence for the same reason.
fn give_one_reason(results: &mut [RuleResult]) {
    let reasons = |result: &RuleResult| match &result.judged {
        Judged::Untestable { why } => Some(why.clone()),
        _ => None,
    };
    if results.iter().filter_map(reasons).collect::<BTreeSet<_>>().len() < 2 {
        return;
    }
    for result in results {
        if let Judged::Untestable { why } = &mut result.judged {
            "no conversation completed the handshake and the lists".clone_into(why);
        }
    }
}

/// The gaps that rule out a verdict.
fn gaps(conversations: &[ConversationView<'_>], results: &[RuleResult]) -> Vec<Gap> {
    let mut gaps = without_conversation(conversations, results);
    if gaps.is_empty() {
        gaps.extend(failed_handshakes(conversations, results));
    }
    if gaps.is_empty() {
        gaps.extend(not_judged(results));
    }
    if gaps.is_empty() {
        gaps.extend(unread_message(conversations));
        gaps.extend(not_kept_of_rules(results));
        gaps.extend(calls_of_unlisted_tools(conversations));
        gaps.extend(calls_without_response(conversations));
        gaps.extend(calls_answered_once(conversations));
        gaps.extend(unusual_calls_without_response(conversations));
        gaps.extend(calls_lost_by_cancellations(conversations));
        gaps.extend(lost_requests::gap(conversations, results));
        gaps.extend(tools_that_are_never_listed(conversations));
        gaps.extend(calls_that_all_fail(conversations));
        gaps.extend(broken_tools::gap(conversations));
        gaps.extend(unexplained_end(conversations, results));
        let in_part = || no_call(conversations).or_else(|| binding_rule_out_of_time(conversations, results));
        gaps.extend(out_of_time(conversations, results).or_else(in_part));
        if gaps.is_empty() {
            gaps.extend(unanswered::gap(conversations, results));
        }
    }
    gaps
}

/// Which notifications were not judged, because there were so many.
fn floods(conversations: &[ConversationView<'_>]) -> Vec<String> {
    let mut beyond = BTreeMap::<&str, usize>::new();
    for (method, count) in conversations.iter().flat_map(|one| &one.flooded) {
        *beyond.entry(method).or_default() += count;
    }
    let told = |(method, count)| {
        format!("the first {MOST_NOTIFICATIONS} notifications `{method}` of a conversation were judged, and {count} more were counted")
    };
    beyond.into_iter().map(told).collect()
}

/// How much was not judged because it was not kept.
fn not_kept(recorded: &[Conversation]) -> Option<String> {
    let dropped: u64 = recorded.iter().map(|take| take.transcript.dropped).sum();
    let of = recorded.iter().filter(|take| take.transcript.dropped > 0).count();
    let (frames, conversations) = (if dropped == 1 { "frame" } else { "frames" }, if of == 1 { "conversation" } else { "conversations" });
    (dropped > 0).then(|| format!("{dropped} {frames} of {of} {conversations} were counted and not judged: more came than a check keeps"))
}

/// That rules have no verdict, because of what was not kept.
fn not_kept_of_rules(results: &[RuleResult]) -> Option<Gap> {
    let is_lost = |result: &&RuleResult| matches!(&result.judged, Judged::Untestable { why } if why == NOT_ALL_KEPT);
    /// Of those that apply, one in so many.
    const PART: usize = 20;
    let lost = results.iter().filter(is_lost).count();
    let all = lost + results.iter().filter(|result| matches!(result.judged, Judged::Pass | Judged::Broken { .. })).count();
    let message = format!("{lost} of {all} rules were not tested, because {NOT_ALL_KEPT}");
    let hint = "raise --max-transcript, or let the tools return less";
    (lost * PART > all).then(|| Gap { kind: GapKind::NotJudged, message, hint: hint.into(), conversation: None })
}

/// A message that was too large to be judged.
fn unread_message(conversations: &[ConversationView<'_>]) -> Option<Gap> {
    let (take, too_much) = conversations.iter().enumerate().find_map(|(take, one)| Some((take, one.unread?)))?;
    let message = match too_much {
        TooMuch::InOneMessage => "a message of the server holds too many JSON values to be judged",
        TooMuch::InAll => "the server sent more than one check judges: some of its messages were not judged",
    };
    let hint = "send less at a time: paginate lists, and link to large results as resources";
    Some(Gap { kind: GapKind::NotJudged, message: message.into(), hint: hint.into(), conversation: Some(take) })
}

/// Tools that were to be called and are not there: whoever mistyped one takes it for tested.
fn calls_of_unlisted_tools(conversations: &[ConversationView<'_>]) -> Option<Gap> {
    let marks = || conversations.iter().enumerate().flat_map(|(take, one)| one.probes(UNKNOWN_CALL).map(move |attempt| (take, attempt)));
    let (take, _) = marks().next()?;
    let names: Vec<String> = marks().map(|(_, attempt)| attempt.subject().to_owned()).collect::<BTreeSet<_>>().into_iter().collect();
    let tools: Vec<(&Value, FrameId)> = conversations.iter().flat_map(|one| one.tools()).collect();
    let listed: BTreeSet<&str> = tools.iter().filter_map(|(tool, _)| tool.get("name")?.as_str()).collect();
    let near: BTreeSet<&str> = names.iter().filter_map(|name| did_you_mean(name, listed.iter().copied())).collect();
    let near: Vec<String> = near.into_iter().map(str::to_owned).collect();
    let message = format!("{} cannot be called: the server lists no such tool", named(&names));
    let hint = match near.is_empty() {
        true => "`mcproof tools` lists the names".to_owned(),
        false => format!("did you mean {}?", named(&near)),
    };
    Some(Gap { kind: GapKind::NotJudged, message, hint, conversation: Some(take) })
}

/// Tools whose calls got no response in time. The specification does not limit how long a tool may take.
fn calls_without_response(conversations: &[ConversationView<'_>]) -> Option<Gap> {
    let mut silent =
        conversations.iter().enumerate().flat_map(|(take, one)| one.probes(UNANSWERED_CALL).map(move |attempt| (take, attempt)));
    let is_answered = |tool: &str| {
        let mut called = conversations.iter().flat_map(|one| one.probes("call"));
        let is_served = called.any(|attempt| {
            let is_served = !matches!(attempt.answer, AttemptOutcome::Status { status: 200..300, .. });
            attempt.subject() == tool && is_served && attempt.answer.frame().is_some()
        });
        // Another client may have waited longer.
        let mut requests = conversations.iter().flat_map(|one| one.requests());
        is_served
            || requests.any(|(request, answer)| {
                let is_of_tool =
                    request.method() == Some(methods::TOOLS_CALL) && request.value.pointer("/params/name") == Some(&json!(tool));
                is_of_tool
                    && answer.is_some_and(|answer| {
                        answer.value.pointer("/result/content").is_some() && answer.value.pointer("/result/isError") != Some(&json!(true))
                    })
            })
    };
    let names: BTreeSet<(usize, String)> =
        silent.by_ref().map(|(take, attempt)| (take, attempt.subject().to_owned())).filter(|(_, tool)| !is_answered(tool)).collect();
    let (take, _) = *names.first().as_ref()?;
    let tools: Vec<String> = names.iter().map(|(_, tool)| tool.clone()).collect::<BTreeSet<_>>().into_iter().collect();
    let its = if tools.len() == 1 { "its" } else { "their" };
    let message = format!("no call of {} got a response, so {its} results were not checked", named(&tools));
    let hint = "a tool that is slow gets more time by --timeout, such as `--timeout 60s --deadline 3m`";
    Some(Gap { kind: GapKind::NotJudged, message, hint: hint.into(), conversation: Some(*take) })
}

/// That no client got the list of the declared tools, and why. That the server does not have the method is a violation.
fn tools_that_are_never_listed(conversations: &[ConversationView<'_>]) -> Option<Gap> {
    let declare = || conversations.iter().enumerate().filter(|(_, one)| one.capability("tools").is_some());
    if declare().any(|(_, one)| one.gives_results(methods::TOOLS_LIST)) {
        return None;
    }
    let refusal = |one: &ConversationView<'_>| {
        let mut codes = one.probes("list").filter(|attempt| attempt.subject() == methods::TOOLS_LIST).map(|attempt| attempt.answer.code());
        codes.next().flatten().filter(|code| *code != error_code::METHOD_NOT_FOUND)
    };
    let (index, code) = declare().find_map(|(index, one)| Some((index, refusal(one)?)))?;
    let message = format!("`{}` got error {code} each time, so no tool was checked", methods::TOOLS_LIST);
    let hint = "fix the list, or do not declare `tools`; `mcproof tools` shows the error".into();
    Some(Gap { kind: GapKind::NotJudged, message, hint, conversation: Some(index) })
}

/// Tools that answered at once and not again, while the server answered others. Such a tool may wait for something to happen.
fn calls_answered_once(conversations: &[ConversationView<'_>]) -> Option<Gap> {
    // Another client may have waited longer.
    let slow = &lost_requests::slow_at_times(conversations);
    let marks = || conversations.iter().enumerate().flat_map(|(take, one)| one.probes(SILENT_AGAIN).map(move |attempt| (take, attempt)));
    let silent = || marks().filter(move |(_, attempt)| !slow.contains(attempt.subject()));
    let (take, _) = silent().next()?;
    let tools: Vec<String> = silent().map(|(_, attempt)| attempt.subject().to_owned()).collect::<BTreeSet<_>>().into_iter().collect();
    let message = format!("{} responded at once, and then to no further call with the same arguments", named(&tools));
    let hint = "a lock that is not released looks like this, and so does a tool that waits for something to happen: call it twice in one session, such as in a suite; \
                a tool that is slow gets more time by --timeout and --deadline";
    Some(Gap { kind: GapKind::NotJudged, message, hint: hint.into(), conversation: Some(take) })
}

/// Tools of which all calls under way are lost if one is canceled.
fn calls_lost_by_cancellations(conversations: &[ConversationView<'_>]) -> Option<Gap> {
    let mut marks = conversations.iter().enumerate().filter_map(|(take, one)| Some((take, one.probe(SILENT_BESIDE_CANCELED)?)));
    let (take, mark) = marks.next()?;
    let message = format!("`{}` responds, but not if another call is canceled meanwhile", mark.subject());
    let hint = "stop only the work of the request that `requestId` names";
    Some(Gap { kind: GapKind::NotJudged, message, hint: hint.into(), conversation: Some(take) })
}

/// Tools that answer at once, unless something about their arguments is unusual.
fn unusual_calls_without_response(conversations: &[ConversationView<'_>]) -> Option<Gap> {
    let slow = lost_requests::slow_at_times(conversations);
    let is_explained = &|subject: &str| subject.split_once(' ').is_some_and(|(_, tool)| slow.contains(tool));
    let all = || conversations.iter().enumerate().flat_map(|(take, one)| one.probes(UNUSUAL_UNANSWERED).map(move |mark| (take, mark)));
    let marks = || all().filter(move |(_, mark)| !is_explained(mark.subject()));
    let (take, _) = marks().next()?;
    let mut tools: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (_, mark) in marks() {
        let (probe, tool) = mark.probed.subject.as_deref().and_then(|subject| subject.split_once(' '))?;
        let unusual = Unusual::EVERY.into_iter().find(|unusual| unusual.probe() == probe)?;
        tools.entry(tool).or_default().insert(unusual.told());
    }
    let told: Vec<String> = tools
        .iter()
        .map(|(tool, unusual)| {
            let unusual: Vec<&str> = unusual.iter().copied().collect();
            format!("`{tool}` responds at once, but not to a call with {}", unusual.join(" or "))
        })
        .collect();
    let hint = "a server that stops reading, waits for a pipe or retries without end looks like this; if the tool needs long for such a call, it should refuse it or report progress";
    Some(Gap { kind: GapKind::NotJudged, message: told.join(", and "), hint: hint.into(), conversation: Some(take) })
}

/// How a finding begins to tell of the end of a process.
const EXITED: &str = "the server has exited";

/// A process that failed by itself, if no finding tells of it: what it was asked last it survived in another conversation.
fn unexplained_end(conversations: &[ConversationView<'_>], results: &[RuleResult]) -> Option<Gap> {
    // One of several conversations that ended in the same way tells of it.
    let is_told = |index: usize, how: &str| {
        let tells = |finding: &Finding| finding.conversation == index || finding.message.contains(how) || finding.message.contains(EXITED);
        findings(results).any(tells)
    };
    let ended = |one: &ConversationView<'_>| {
        let death = death(one)?;
        let is_failure = |frame: &Frame| matches!(frame.body, FrameBody::Exited { code, .. } if code != Some(0));
        one.frames().iter().find(|frame| frame.id == death.frame).is_some_and(is_failure).then_some(death.how)
    };
    let mut ends = conversations.iter().enumerate().filter_map(|(index, one)| Some((index, ended(one)?)));
    let (index, how) = ends.find(|(index, how)| !is_told(*index, how))?;
    let message = format!("{how} during the check, and no request before it explains why");
    let hint = "read its stderr; it may fail after a number of requests, or after some time";
    Some(Gap { kind: GapKind::NotJudged, message, hint: hint.into(), conversation: Some(index) })
}

/// That no tool got as far as a result, so that rules about results had nothing to judge.
fn calls_that_all_fail(conversations: &[ConversationView<'_>]) -> Option<Gap> {
    let calls = || conversations.iter().enumerate().flat_map(|(take, one)| one.probes("call").map(move |attempt| (take, attempt)));
    let (take, _) = calls().next()?;
    if !calls().all(|(_, attempt)| attempt.answer.code() == Some(error_code::INTERNAL_ERROR)) {
        return None;
    }
    let tools: Vec<String> = calls().map(|(_, attempt)| attempt.subject().to_owned()).collect::<BTreeSet<_>>().into_iter().collect();
    let message = format!("each call of {} got the error {}, so no result was checked", named(&tools), error_code::INTERNAL_ERROR);
    let hint = "read the stderr of the server; what it needs to run its tools may not be configured";
    Some(Gap { kind: GapKind::NotJudged, message, hint: hint.into(), conversation: Some(take) })
}

/// That no tool was called, for want of time, although some may be.
fn no_call(conversations: &[ConversationView<'_>]) -> Option<Gap> {
    let may_be_called = |tool: &Value| {
        let hint = |name: &str| tool.pointer(&format!("/annotations/{name}")) == Some(&json!(true));
        hint("readOnlyHint") && !hint("destructiveHint") && tool.get("inputSchema").and_then(arguments::minimal).is_some()
    };
    let may_call = conversations.iter().any(|one| one.tools().iter().any(|(tool, _)| may_be_called(tool)));
    if !may_call || conversations.iter().any(|one| one.probes("call").next().is_some()) {
        return None;
    }
    // A conversation that there was no time to begin leaves no mark.
    let calls = |one: &ConversationView<'_>| one.conversation.name == CALLER;
    let is_explored = || conversations.iter().any(|one| one.probes("list").next().is_some());
    let never_began = || {
        let is_absent = is_explored() && !conversations.iter().any(calls);
        is_absent.then_some("the conversation that calls tools did not begin in time")
    };
    let why = conversations.iter().find_map(ConversationView::left_out).or_else(never_began)?;
    let message = format!("no tool was called, because {why}");
    let hint = "run the check when the machine is less busy, or give it more time with --deadline and --connect-timeout";
    Some(Gap { kind: GapKind::NotJudged, message, hint: hint_for(why, hint).into(), conversation: None })
}

/// The rules that were left out for want of time, and why.
fn left_out<'r>(conversations: &[ConversationView<'_>], results: &'r [RuleResult]) -> Vec<(&'r str, &'r str)> {
    let marks = conversations.iter().flat_map(|one| &one.conversation.probes).filter(|probed| probed.probe == LEFT_OUT);
    let reasons: BTreeSet<&str> = marks.filter_map(|probed| probed.subject.as_deref()).collect();
    let left_out = results.iter().filter_map(|result| match &result.judged {
        Judged::Untestable { why } => Some((result.rule.as_str(), why.as_str())).filter(|(_, why)| reasons.contains(why)),
        _ => None,
    });
    left_out.collect()
}

/// That a large part of the rules was left out for want of time.
fn out_of_time(conversations: &[ConversationView<'_>], results: &[RuleResult]) -> Option<Gap> {
    /// Of those that apply, one in so many.
    const PART: usize = 4;
    let left_out = left_out(conversations, results);
    let judged = results.iter().filter(|result| matches!(result.judged, Judged::Pass | Judged::Broken { .. })).count();
    let all = judged + left_out.len();
    let (_, why) = *left_out.first().filter(|_| left_out.len() * PART > all)?;
    let message = format!("{} of {all} rules were not tested, because {why}", left_out.len());
    Some(Gap { kind: GapKind::NotJudged, message, hint: hint_for(why, MORE_TIME).into(), conversation: None })
}

/// That there was no time for rules that a server has to keep, or for what it has to survive, however few they are.
fn binding_rule_out_of_time(conversations: &[ConversationView<'_>], results: &[RuleResult]) -> Option<Gap> {
    let left_out = left_out(conversations, results);
    let binding: Vec<&(&str, &str)> = left_out.iter().filter(|(rule, why)| why.contains(DEADLINE) && is_binding(rule)).collect();
    let (first, why) = binding.first()?;
    let more = binding.len() - 1;
    let and_more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let message = format!("`{first}`{and_more} could not be tested, because {why}");
    Some(Gap { kind: GapKind::NotJudged, message, hint: hint_for(why, MORE_TIME).into(), conversation: None })
}

const MORE_TIME: &str = "give the check more time with --deadline";

/// Whether a server has to keep a rule by the specification, or to survive what the rule tries.
fn is_binding(rule: &str) -> bool {
    let is_must = |rule: &super::Rule| rule.sources.iter().any(|source| source.level == RequirementLevel::Must);
    super::find(rule).is_some_and(|rule| rule.area == Area::Robustness || is_must(rule))
}

/// What helps where something was left out, if more time does.
fn hint_for<'h>(why: &str, more_time: &'h str) -> &'h str {
    if why == ONE_CONNECTION { "serve connections side by side, and check again" } else { more_time }
}

/// A gap for each transport over which no conversation completed the handshake and the lists.
fn without_conversation(conversations: &[ConversationView<'_>], results: &[RuleResult]) -> Vec<Gap> {
    let explained = conversations_with_errors(results);
    let over = |is_concerned: fn(&ConversationView<'_>) -> bool| {
        conversations.iter().filter(|one| is_concerned(one)).map(|one| one.conversation.transport.as_str()).collect::<BTreeSet<_>>()
    };
    // Where a client only looks from the outside, it does not begin a conversation.
    let shaking_hands = over(|one| one.conversation.opened != Opened::Bare);
    let transports = if shaking_hands.is_empty() { over(|_| true) } else { shaking_hands };
    if transports.is_empty() {
        return vec![no_conversation("there was no conversation with the server".into(), None)];
    }
    // Over HTTP, the output of the process is recorded beside the conversations.
    let output = conversations.iter().map(last_words).find(|words| !words.is_empty()).unwrap_or_default();
    let gap = |transport: &str| {
        let mut furthest: Option<(u8, usize, String)> = None;
        // Other conversations may ask for a list as well, for a purpose of their own; only what was explored was checked.
        let explores = |one: &ConversationView<'_>| one.conversation.probes.iter().any(|probed| probed.probe == "list");
        let is_explored = conversations.iter().any(|one| one.is_over(transport) && explores(one));
        for (index, conversation) in conversations.iter().enumerate().filter(|(_, one)| one.is_over(transport)) {
            match completed_opening(conversation) {
                Ok(()) if is_explored && !explores(conversation) => {}
                Ok(()) => return None,
                Err((stage, why)) if furthest.as_ref().is_none_or(|(known, ..)| stage > *known) => furthest = Some((stage, index, why)),
                Err(_) => {}
            }
        }
        let (stage, take, why) = furthest?;
        let is_explained = stage > LAST_OF_HANDSHAKE || explained.contains(&take);
        let take = if is_explained { take } else { error_on_handshake(conversations, results, transport).unwrap_or(take) };
        let output = if transport == "stdio" { "" } else { output.as_str() };
        let gap =
            no_conversation(format!("no conversation over {transport} completed the handshake and the lists: {why}{output}"), Some(take));
        let remedy = if transport == "stdio" { remedy_for_silence(&conversations[take].conversation.transcript) } else { None };
        Some(match remedy {
            Some(hint) => Gap { hint, ..gap },
            None => gap,
        })
    };
    transports.into_iter().filter_map(gap).collect()
}

fn no_conversation(message: String, conversation: Option<usize>) -> Gap {
    let hint = "nothing after this point was checked: fix it, then check again; `mcproof tools` shows the same handshake";
    Gap { kind: GapKind::NoConversation, message, hint: hint.into(), conversation }
}

/// The last stage of a conversation in which its handshake has no result.
const LAST_OF_HANDSHAKE: u8 = 3;

/// Whether a conversation completed the handshake and the lists of the declared capabilities. If not, at which stage it ended, and
/// why.
fn completed_opening(conversation: &ConversationView<'_>) -> Result<(), (u8, String)> {
    match &conversation.conversation.opened {
        Opened::Yes => {}
        Opened::No { reason } => return Err((2, reason.clone())),
        Opened::OtherEra => return Err((1, "the server does not support this era".into())),
        Opened::Bare => match conversation.left_out() {
            Some(why) => return Err((2, why.to_owned())),
            None => return Err((0, "the handshake was not made".into())),
        },
    }
    let Some((result, _)) = conversation.handshake() else { return Err((3, "the handshake got no result".into())) };
    if let Some(flaw) = flaw_of_handshake(conversation, result) {
        return Err((4, flaw));
    }
    for (capability, method, key) in LISTS {
        let is_declared = result.get("capabilities").and_then(|all| all.get(capability)).is_some_and(Value::is_object);
        // An error is a response, and a separate violation if the capability was declared.
        let is_answered = conversation.requests().filter(|(request, _)| request.method() == Some(method)).any(|(_, response)| {
            response.is_some_and(|response| {
                response.value.pointer(&format!("/result/{key}")).is_some_and(Value::is_array) || response.value.get("error").is_some()
            })
        });
        if is_declared && !is_answered && conversation.unread.is_some() {
            return Err((5, format!("a message held too many JSON values to be judged, and `{method}` got no list")));
        }
        if is_declared && !is_answered && conversation.conversation.transcript.dropped > 0 {
            return Err((5, format!("{NOT_ALL_KEPT}, and the response to `{method}` is missing")));
        }
        if is_declared && !is_answered {
            return Err((5, format!("`{method}` got no list, although `{capability}` is declared")));
        }
        // What the client did not get was not explored: a response beyond its limits, or one that came when it waited no longer.
        let methods: &[&str] = if capability == "resources" { &[method, methods::RESOURCES_TEMPLATES_LIST] } else { &[method] };
        let attempts = conversation.conversation.probes.iter().filter(|probed| probed.probe == "list");
        for (method, outcome) in attempts.filter_map(|probed| Some((probed.subject.as_deref()?, probed.outcome))) {
            if !is_declared || !methods.contains(&method) || death(conversation).is_some() {
                continue;
            }
            match outcome {
                ProbeOutcome::Done => {}
                ProbeOutcome::Silent => {
                    return Err((5, format!("`{method}` got no response in time, so what it lists was not checked")));
                }
                ProbeOutcome::Gone => {
                    return Err((5, format!("no response to `{method}` was accepted; `mcproof {capability}` shows why")));
                }
            }
        }
    }
    Ok(())
}

/// Why a client cannot continue after this handshake result.
fn flaw_of_handshake(conversation: &ConversationView<'_>, result: &Value) -> Option<String> {
    let is_object = |key: &str| result.get(key).is_some_and(Value::is_object);
    if !is_object("capabilities") {
        return Some("the result of the handshake has no object `capabilities`".into());
    }
    if conversation.is_modern() {
        return None;
    }
    match result.get("protocolVersion").and_then(Value::as_str) {
        None => return Some("the result of `initialize` has no `protocolVersion`".into()),
        Some(version) if Era::of(version) != Some(Era::Legacy) => {
            return Some(format!("`initialize` agreed on revision {version:?}, which does not exist"));
        }
        Some(_) => {}
    }
    (!is_object("serverInfo")).then(|| "the result of `initialize` has no object `serverInfo`".into())
}

fn findings(results: &[RuleResult]) -> impl Iterator<Item = &Finding> {
    results.iter().flat_map(|result| match &result.judged {
        Judged::Broken { findings } => findings.as_slice(),
        _ => &[],
    })
}

fn errors(results: &[RuleResult]) -> impl Iterator<Item = &Finding> {
    findings(results).filter(|finding| finding.severity == Severity::Error)
}

fn conversations_with_errors(results: &[RuleResult]) -> BTreeSet<usize> {
    errors(results).map(|finding| finding.conversation).collect()
}

/// A conversation over a transport whose handshake has an error: the same handshake fails in the others, too.
fn error_on_handshake(conversations: &[ConversationView<'_>], results: &[RuleResult], transport: &str) -> Option<usize> {
    let is_handshake = |conversation: &ConversationView<'_>, finding: &Finding| {
        let mut handshakes = conversation.from_client().filter(|message| message.method() == Some(methods::INITIALIZE));
        handshakes.any(|message| finding.frames.contains(&message.frame.id))
    };
    let concerned = |finding: &&Finding| {
        let conversation = &conversations[finding.conversation];
        conversation.is_over(transport) && is_handshake(conversation, finding)
    };
    errors(results).find(concerned).map(|finding| finding.conversation)
}

/// The rules that tell that a server serves nothing any more.
const GONE: [&str; 2] = ["requests-continue-to-be-served", "server-stays-alive"];

/// Handshakes that failed while others succeeded, and that no violation explains. Where a server that listens is gone, that explains all.
fn failed_handshakes(conversations: &[ConversationView<'_>], results: &[RuleResult]) -> Vec<Gap> {
    let explained = conversations_with_errors(results);
    let is_error = |findings: &[Finding]| findings.iter().any(|finding| finding.severity == Severity::Error);
    let is_gone = results.iter().filter(|result| GONE.contains(&result.rule.as_str())).any(|result| match &result.judged {
        Judged::Broken { findings } => is_error(findings),
        _ => false,
    });
    let gap = |(index, conversation): (usize, &ConversationView<'_>)| {
        let Opened::No { reason } = &conversation.conversation.opened else { return None };
        if is_gone && !conversation.is_over("stdio") {
            return None;
        }
        let message = format!("the conversation `{}` did not complete the handshake: {reason}", conversation.conversation.name);
        let all: Vec<FrameId> = conversation.frames().iter().map(|frame| frame.id).collect();
        let hint = match conversation.is_throttled(&all) {
            true => judging::throttled(conversations),
            false => "check again; if it happens each time, look at the frames of this handshake with `mcproof tools -v`".to_owned(),
        };
        (!explained.contains(&index)).then_some(Gap { kind: GapKind::NotJudged, message, hint, conversation: Some(index) })
    };
    conversations.iter().enumerate().filter_map(gap).collect()
}

/// Essential rules without a judgment; or no rule judged at all.
fn not_judged(results: &[RuleResult]) -> Option<Gap> {
    let is_judged = |result: &&RuleResult| matches!(result.judged, Judged::Pass | Judged::Broken { .. });
    let gap = |message: String| {
        let hint = "run `mcproof check` without --only and --skip; `mcproof explain RULE` shows what a rule needs";
        Gap { kind: GapKind::NotJudged, message, hint: hint.into(), conversation: None }
    };
    if !results.iter().any(|result| is_judged(&result)) {
        let count = results.len();
        return Some(gap(format!("none of the {count} selected rules could be judged on this server")));
    }
    let missing: Vec<(&str, &str)> = results
        .iter()
        .filter(|result| ESSENTIAL.contains(&result.rule.as_str()))
        .filter_map(|result| match &result.judged {
            Judged::Untestable { why } => Some((result.rule.as_str(), why.as_str())),
            _ => None,
        })
        .collect();
    let (_, why) = missing.first()?;
    let names: Vec<String> = missing.iter().map(|(rule, _)| format!("`{rule}`")).collect();
    Some(gap(format!("essential rules were not judged, because {why}: {}", names.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select;
    use mcproof_analysis::example;

    #[test]
    fn handshakes_with_a_server_that_is_gone_are_explained_by_that() {
        let check = |transport: &str, is_told: bool, expected: usize| {
            let served = r#"> {"jsonrpc":"2.0","id":1,"method":"tools/list"}
                < {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#;
            let mut refused = example::read("", transport, "2026-07-28");
            refused.opened = Opened::No { reason: "connection refused".into() };
            let recorded = [example::read(served, transport, "2026-07-28"), refused];
            let views: Vec<ConversationView<'_>> = recorded.iter().map(ConversationView::new).collect();
            let finding = Finding {
                severity: Severity::Error,
                level: "MUST".into(),
                tolerance: None,
                message: "gone".into(),
                conversation: 0,
                frames: Vec::new(),
                source: String::new(),
                remedy: String::new(),
                cause: None,
                defect: None,
                accepted: false,
            };
            let judged = if is_told { Judged::Broken { findings: vec![finding] } } else { Judged::Pass };
            let results = [RuleResult { rule: GONE[0].into(), area: String::new(), requirement: String::new(), judged }];
            assert_eq!(failed_handshakes(&views, &results).len(), expected, "{transport} {is_told}");
        };
        check("http", true, 0);
        check("http", false, 1);
        // Over stdio, another process is another server.
        check("stdio", true, 1);
    }

    #[test]
    fn what_is_too_large_to_be_judged_is_no_pass() {
        let check = |values: usize, expected: &[&str]| {
            let text = format!(
                r#"> {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25"}}}}
                   < {{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25","capabilities":{{}},"serverInfo":{{"name":"a","version":"1"}}}}}}
                   > {{"jsonrpc":"2.0","method":"notifications/initialized"}}
                   > {{"jsonrpc":"2.0","id":2,"method":"ping"}}
                   < {{"jsonrpc":"2.0","id":2,"result":{{}}}}
                   > {{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{{"uri":"a:b"}}}}
                   < {{"jsonrpc":"2.0","id":3,"result":{{"contents":[],"a":[{}0]}}}}"#,
                "0,".repeat(values)
            );
            let take = example::read(&text, "stdio", "2025-11-25");
            let gaps = report("t".into(), &select(&[], &[]).unwrap(), vec![take], Strictness::Tolerant).gaps;
            let told: Vec<&str> = gaps.iter().map(|gap| gap.message.as_str()).collect();
            assert_eq!(told, expected);
        };
        check(10, &[]);
        check(1_000_000, &["a message of the server holds too many JSON values to be judged"]);
    }

    #[test]
    fn a_tool_that_is_to_be_called_and_is_not_listed_is_told_with_its_neighbor() {
        let check = |name: &str, expected: &str| {
            let listed = r#"> {"jsonrpc":"2.0","id":1,"method":"tools/list"}
                < {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"echo"},{"name":"add"}]}}"#;
            let take = example::read(&format!("{listed}\n@ {UNKNOWN_CALL} {name}\n! closed stdin"), "stdio", "2025-11-25");
            let gap = calls_of_unlisted_tools(&[ConversationView::new(&take)]).unwrap();
            assert_eq!(format!("{} {}", gap.message, gap.hint), expected);
        };
        check("ech", "`ech` cannot be called: the server lists no such tool did you mean `echo`?");
        check("nosuchtool", "`nosuchtool` cannot be called: the server lists no such tool `mcproof tools` lists the names");
    }
}
