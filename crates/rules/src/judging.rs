//! Holds rules against conversations: which rule concerns which of them, and how what several say becomes one result.

use super::lifecycle::{COULD_NOT_BE_READ, NOT_ALL_KEPT, REFUSES_ACCESS, WANTS_AUTHORIZATION};
use super::{ConversationView, Judge, Judgment, Rule, Violation, alike, causes, sessions, slow};
use mcproof_analysis::probes::parallel_number;
use mcproof_protocol::{Era, Revision, methods};
use mcproof_record::{
    Conversation, Direction, Finding, Frame, FrameBody, Judged, Opened, ProbeOutcome, RuleResult, Severity, without_numbers,
};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

/// Why a server that limits requests, or the sessions that they open, cannot be judged. What it refused follows.
pub(super) const THROTTLED: &str = "the server limits how many requests or sessions it takes";

const EXPIRED: &str = "the server ended the session during the conversation, as it may: raise its session lifetime for the check";
const TURNED_AWAY: &str = "the server refused a second session beside the first one";
const UNREADABLE: &str = "the server issues session ids that are not valid UTF-8, so that no client can send them back";

/// Why what was tried tells nothing: a better reason than that it was not tried in another conversation.
const EXCUSES: [&str; 4] = [THROTTLED, EXPIRED, TURNED_AWAY, UNREADABLE];

/// Which severities findings get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// Those of the tolerances of the rules: lower where known clients cope.
    Tolerant,
    /// Those of the levels of the requirements.
    Strict,
}

/// Judges recorded conversations by rules. `strictness`: which severities the findings get.
pub fn judge(rules: &[&'static Rule], recorded: &[Conversation], strictness: Strictness) -> Vec<RuleResult> {
    judge_read(rules, &ConversationView::all(recorded), strictness)
}

/// The same, where they have been read.
pub(super) fn judge_read(rules: &[&'static Rule], conversations: &[ConversationView<'_>], strictness: Strictness) -> Vec<RuleResult> {
    let mut results = judge_all(rules, conversations, strictness);
    causes::fold(&mut results, conversations);
    if let Some(common) = common_reason(conversations, &results) {
        for result in &mut results {
            if let Judged::Untestable { why } = &mut result.judged
                && !conversations.iter().any(|one| one.left_out() == Some(why.as_str()))
            {
                common.clone_into(why);
            }
        }
    }
    results
}

/// Rules that are judged at the same time. What each reads again takes memory as long as it is judged.
const MOST_AT_ONCE: usize = 4;

/// Conversations with fewer are judged on this thread alone.
const FEW_FRAMES: usize = 500;

/// Judges each rule separately, several at once if there are cores.
fn judge_all(rules: &[&'static Rule], conversations: &[ConversationView<'_>], strictness: Strictness) -> Vec<RuleResult> {
    let (next, judged) = (AtomicUsize::new(0), rules.iter().map(|_| OnceLock::new()).collect::<Vec<_>>());
    let work = || {
        while let Some((rule, place)) = rules.iter().zip(&judged).nth(next.fetch_add(1, Ordering::Relaxed)) {
            place.get_or_init(|| judge_one(rule, conversations, strictness));
        }
    };
    // A thread costs more than the rules about a few frames.
    let is_short = conversations.iter().map(|one| one.frames().len()).sum::<usize>() < FEW_FRAMES;
    std::thread::scope(|scope| {
        let most = if is_short { 1 } else { available_parallelism().map_or(1, usize::from).min(MOST_AT_ONCE) };
        for _ in 1..most {
            scope.spawn(work);
        }
        work();
    });
    judged.into_iter().filter_map(OnceLock::into_inner).collect()
}

/// The common reason why rules could not be judged, if no conversation was opened.
fn common_reason(conversations: &[ConversationView<'_>], results: &[RuleResult]) -> Option<&'static str> {
    if conversations.is_empty() {
        return None;
    }
    if !conversations.iter().any(was_answered) {
        return Some("the server never sent anything");
    }
    let has_result =
        |conversation: &ConversationView<'_>| conversation.from_server().any(|wire_message| wire_message.value.get("result").is_some());
    if conversations.iter().any(|one| one.conversation.opened == Opened::Yes || has_result(one)) {
        return None;
    }
    let is_told = |reason: &str| results.iter().any(|result| matches!(&result.judged, Judged::Untestable { why } if why == reason));
    let better = [WANTS_AUTHORIZATION, REFUSES_ACCESS, COULD_NOT_BE_READ].into_iter().find(|reason| is_told(reason));
    Some(better.unwrap_or("no request got a result"))
}

/// Whether the server sent anything at all where its client listens, readable or not.
fn was_answered(conversation: &ConversationView<'_>) -> bool {
    let is_said = |frame: &Frame| {
        let speaks = matches!(frame.body, FrameBody::Line { .. } | FrameBody::HttpResponse { .. });
        speaks && frame.direction == Direction::FromServer
    };
    conversation.frames().iter().any(is_said)
}

/// Rules about the form of what a server sends, which also holds for the refusal of an era that it does not support.
const OF_ANY_ERA: [&str; 29] = [
    "jsonrpc-version-is-2-0",
    "message-has-each-member-once",
    "message-has-method-or-outcome",
    "json-names-are-unique",
    "error-has-code-and-message",
    "response-has-result-or-error",
    "response-id-matches-request",
    "request-gets-one-response",
    "stdio-message-on-one-line",
    "stdio-only-messages-on-stdout",
    "stdio-line-is-terminated",
    "stdio-ends-lines-with-lf",
    "stdio-has-no-blank-lines",
    "stdio-has-no-bom",
    "stdio-is-utf8",
    "http-response-is-well-formed",
    "http-header-is-not-repeated",
    "http-list-header-is-well-formed",
    "http-content-type-is-media-type",
    "http-content-encoding-is-right",
    "http-unknown-era-is-refused",
    "http-body-length-is-correct",
    "http-body-is-json",
    "http-body-is-utf8",
    "sse-data-is-one-message",
    "sse-event-is-terminated",
    "sse-ends-lines-with-lf",
    "sse-is-utf8",
    "sse-lines-are-fields-or-comments",
];

const NOT_SPOKEN: &str = "this server was not talked to over a transport and in a revision that has it";

/// The revision whose laws hold for a conversation: a server that does not support an era follows the rules of the other one.
fn revision(take: &Conversation) -> &str {
    match take.opened {
        Opened::OtherEra if Revision::at(&take.revision).era() == Era::Modern => Revision::LATEST_LEGACY.as_str(),
        Opened::OtherEra => Revision::MODERN.as_str(),
        _ => &take.revision,
    }
}

/// Judges conversations, in the order of their recorded, by one rule.
pub fn judge_one(rule: &Rule, conversations: &[ConversationView<'_>], strictness: Strictness) -> RuleResult {
    let concerned: Vec<(usize, &ConversationView<'_>)> = conversations
        .iter()
        .enumerate()
        .filter(|(_, one)| one.conversation.opened != Opened::OtherEra || OF_ANY_ERA.contains(&rule.id))
        .filter(|(_, one)| rule.on.includes(&one.conversation.transport) && rule.requirement_in(revision(one.conversation)).is_some())
        .collect();
    let judged = match (concerned.is_empty(), &rule.judge) {
        (true, _) => Judged::NotApplicable { why: NOT_SPOKEN.into() },
        (false, Judge::Each(judge)) => {
            let judged = concerned.iter();
            let wire_message = judged.map(|(take, one)| (*take, in_time(one, unless_refused(judge(one), rule, conversations, |_| one))));
            merge(rule, conversations, wire_message, strictness)
        }
        (false, Judge::Together(judge)) => {
            let all: Vec<&ConversationView<'_>> = concerned.iter().map(|(_, one)| *one).collect();
            let wire_message = match unless_refused(judge(&all), rule, conversations, |violation| all[violation.conversation]) {
                Judgment::Broken(violations) => {
                    let of = |violation: Violation| (concerned[violation.conversation].0, Judgment::Broken(vec![violation]));
                    violations.into_iter().map(of).collect()
                }
                other => {
                    let (take, one) = concerned.iter().find(|(_, one)| one.left_out().is_some() || !is_kept(one)).unwrap_or(&concerned[0]);
                    vec![(*take, in_time(one, other))]
                }
            };
            merge(rule, conversations, wire_message.into_iter(), strictness)
        }
    };
    RuleResult { rule: rule.id.into(), area: rule.area.name().into(), requirement: rule.requirement.into(), judged }
}

/// What rests on a request that came too often, on a session that had ended, that cannot be named or that never began is no violation: the
/// server refused to be asked, and says nothing about what it was asked.
fn unless_refused<'c, 'a: 'c>(
    judgment: Judgment,
    rule: &Rule,
    conversations: &[ConversationView<'_>],
    of: impl Fn(&Violation) -> &'c ConversationView<'a>,
) -> Judgment {
    let Judgment::Broken(violations) = judgment else { return judgment };
    let reason = |violation: &Violation| match of(violation) {
        one if one.is_throttled(&violation.frames) => Some(THROTTLED),
        one if !sessions::OF_ENDINGS.contains(&rule.id) && one.rests_on_expiry(&violation.frames) => Some(EXPIRED),
        one if one.rests_on_unreadable_session(&violation.frames) => Some(UNREADABLE),
        one if one.rests_on_second_session(&violation.frames) => Some(TURNED_AWAY),
        one if one.rests_on_gap(&violation.frames) => Some(NOT_ALL_KEPT),
        _ => None,
    };
    let excuse = violations.iter().find_map(reason);
    let told: Vec<_> = violations.into_iter().filter(|violation| reason(violation).is_none()).collect();
    match excuse {
        Some(THROTTLED) if told.is_empty() => Judgment::Untestable(throttled(conversations)),
        Some(excuse) if told.is_empty() => Judgment::Untestable(excuse.into()),
        _ => Judgment::Broken(told),
    }
}

/// That the server limits what it takes, with what was seen of it first, so that all rules give the same reason.
pub(super) fn throttled(conversations: &[ConversationView<'_>]) -> String {
    let first = conversations.iter().enumerate().find_map(|(place, one)| Some((place, one, one.first_throttled()?)));
    let Some((place, at, refused)) = first else { return format!("{THROTTLED}: raise that limit for the check") };
    // Over stdio each conversation has a process of its own; over HTTP they follow one another.
    let before = conversations[..place].iter().filter(|one| !at.is_over("stdio") && !one.is_over("stdio"));
    let own = at.requests().filter(|(request, _)| request.frame.id < refused.request);
    let (mut requests, mut sessions) = (0_usize, 0_usize);
    for (request, response) in before.flat_map(|one| one.requests()).chain(own) {
        let is_opened = request.method() == Some(methods::INITIALIZE) && response.is_some_and(|told| told.value.get("result").is_some());
        requests += 1;
        sessions += usize::from(is_opened);
    }
    let counted = |count: usize, name: &str| if count == 1 { format!("1 {name}") } else { format!("{count} {name}s") };
    let after = match (refused.method, sessions) {
        (methods::INITIALIZE, 1..) => format!("{} ({})", counted(sessions, "session"), counted(requests, "request")),
        _ => counted(requests, "request"),
    };
    format!("{THROTTLED}: `{}` got {} after {after}; raise that limit for the check", refused.method, refused.outcome)
}

fn is_kept(conversation: &ConversationView<'_>) -> bool {
    conversation.conversation.transcript.dropped == 0
}

/// What a conversation does not tell because there was no time or no room for it is not the server's to answer for.
fn in_time(conversation: &ConversationView<'_>, judgment: Judgment) -> Judgment {
    match (conversation.left_out(), judgment) {
        (Some(why), Judgment::Untestable(_) | Judgment::NotTried(_)) => Judgment::Untestable(why.to_owned()),
        (None, Judgment::Untestable(_)) if !is_kept(conversation) => Judgment::Untestable(NOT_ALL_KEPT.to_owned()),
        (None, Judgment::Untestable(why)) if !BETTER.iter().any(|better| why.starts_with(better)) && was_given_up(conversation) => {
            Judgment::Untestable(GIVEN_UP.to_owned())
        }
        (None, Judgment::NotTried(_)) if was_given_up(conversation) => Judgment::NotTried(GIVEN_UP.to_owned()),
        (_, judgment) => judgment,
    }
}

/// Requests in a row without a response after which a client asks no more.
const MOST_SILENT: usize = 3;
const GIVEN_UP: &str = "three requests in a row got no response, after which no more were sent";

/// Reasons that tell more than that the server fell silent.
const BETTER: [&str; 8] =
    [THROTTLED, EXPIRED, TURNED_AWAY, UNREADABLE, NOT_ALL_KEPT, WANTS_AUTHORIZATION, REFUSES_ACCESS, COULD_NOT_BE_READ];

/// Whether the last requests that were waited for got no response, so that no more were sent.
fn was_given_up(conversation: &ConversationView<'_>) -> bool {
    // What is only noted has no frames; whoever aborts does not wait.
    let waited = conversation.conversation.probes.iter().rev().filter(|probed| probed.first < probed.end && probed.probe != "abort");
    let last: Vec<_> = waited.take(MOST_SILENT).collect();
    last.len() == MOST_SILENT
        && last.iter().all(|probed| {
            // What goes out beside others is given up sooner.
            let number = || parallel_number(conversation.attempt(probed).request?.param("/_meta/progressToken")?);
            probed.outcome == ProbeOutcome::Silent && number().is_none()
        })
}

/// One violation breaks the rule; else one pass is a pass; else the best reason is reported. That something could not be tested
/// counts first where a handshake had been made: other conversations are about other things.
fn merge(
    rule: &Rule,
    conversations: &[ConversationView<'_>],
    wire_message: impl Iterator<Item = (usize, Judgment)>,
    strictness: Strictness,
) -> Judged {
    let (mut findings, mut passed, mut untestable, mut not_applicable) = (Vec::new(), false, None, None);
    let (mut left_out, mut untestable_beside) = (None, None);
    let mut not_tried = None;
    let is_excuse = |why: &str| EXCUSES.iter().any(|known| why.starts_with(known));
    let better = |known: Option<String>, why: String| match known {
        Some(known) if is_excuse(&known) || !is_excuse(&why) => Some(known),
        _ => Some(why),
    };
    // Before and beside its sessions a server is asked in revisions that it may not support: what was not tried there is not its concern.
    let is_spoken = |one: &ConversationView<'_>| {
        rule.on.includes(&one.conversation.transport) && rule.requirement_in(revision(one.conversation)).is_some()
    };
    let mut opened = conversations.iter().filter(|one| one.conversation.opened == Opened::Yes).peekable();
    let is_foreign = opened.peek().is_some() && !opened.any(is_spoken);
    for (take, judgment) in wire_message {
        match judgment {
            // A valid refusal of another era does not imply that the rest is valid.
            Judgment::Pass if conversations[take].conversation.opened == Opened::OtherEra => {}
            Judgment::Pass => passed = true,
            Judgment::Broken(violations) => {
                findings.extend(
                    violations
                        .into_iter()
                        .filter_map(|violation| finding(rule, conversations[take].conversation, take, violation, strictness)),
                );
            }
            // A lack of time is a better reason than what is missing elsewhere.
            Judgment::Untestable(why) if conversations[take].left_out().is_some() => left_out = Some(why),
            Judgment::Untestable(why) if conversations[take].conversation.opened == Opened::Yes => untestable = better(untestable, why),
            Judgment::Untestable(why) => untestable_beside = better(untestable_beside, why),
            Judgment::NotApplicable(why) => not_applicable = not_applicable.or(Some(why)),
            Judgment::NotTried(_) if is_foreign => not_applicable = not_applicable.or_else(|| Some(NOT_SPOKEN.to_owned())),
            Judgment::NotTried(why) => not_tried = not_tried.or(Some(why)),
        }
    }
    let late = slow::forgive(rule.id, &mut findings, conversations);
    if let (true, Some(why)) = (findings.is_empty(), late) {
        return Judged::Untestable { why };
    }
    let beside = untestable_beside.or(not_tried).filter(|_| not_applicable.is_none());
    let untestable = left_out.or_else(|| match (untestable, beside) {
        (Some(why), Some(beside)) => better(Some(why), beside),
        (why, beside) => why.or(beside),
    });
    match (findings.is_empty(), passed, untestable, not_applicable) {
        (false, ..) => Judged::Broken { findings: alike::gather(rule.id, without_repetitions(findings)) },
        (true, true, ..) => Judged::Pass,
        (true, false, Some(why), _) => Judged::Untestable { why },
        (true, false, None, why) => Judged::NotApplicable { why: why.unwrap_or_else(|| "the server only refused another era".into()) },
    }
}

fn finding(rule: &Rule, judged: &Conversation, conversation: usize, violation: Violation, strictness: Strictness) -> Option<Finding> {
    let law = rule.requirement_in(revision(judged))?;
    let strict = law.level.severity();
    let tolerance = violation.tolerance.or(rule.tolerance);
    let severity = if strictness == Strictness::Strict { strict } else { law.severity(tolerance) };
    Some(Finding {
        severity,
        level: law.level.to_string(),
        tolerance: tolerance.filter(|_| severity < strict.max(Severity::Note)).map(str::to_owned),
        message: violation.message,
        conversation,
        frames: violation.frames,
        source: link(law.source, revision(judged)),
        remedy: violation.remedy.unwrap_or_else(|| rule.remedy.into()),
        cause: None,
        defect: None,
        accepted: false,
    })
}

/// Messages of several conversations that differ only in numbers and in what they quote, or of which a later one names nothing that
/// the first does not name, are reported once, with the evidence of the first.
fn without_repetitions(findings: Vec<Finding>) -> Vec<Finding> {
    let (mut kept, mut messages) = (Vec::<Finding>::new(), HashSet::new());
    let mut recorded: HashMap<String, HashSet<usize>> = HashMap::new();
    for finding in findings {
        let elsewhere = recorded.entry(without_numbers(without_quotation(&finding.message)).replace("-#", "#")).or_default();
        if elsewhere.iter().any(|take| *take != finding.conversation) || messages.contains(&finding.message) {
            continue;
        }
        if kept.iter().any(|one| one.conversation != finding.conversation && names_all(&one.message, &finding.message)) {
            continue;
        }
        elsewhere.insert(finding.conversation);
        messages.insert(finding.message.clone());
        kept.push(finding);
    }
    kept
}

/// A message without the sample that ends it, and without how often the same was seen besides: an event does not end with a blank
/// line: `{"jsonrpc…` (and 3 more).
fn without_quotation(message: &str) -> &str {
    let counted = |before: &str, after: &str| {
        let (text, count) = message.strip_suffix(after)?.rsplit_once(before)?;
        count.bytes().all(|digit| digit.is_ascii_digit()).then_some(text)
    };
    const COUNTS: [(&str, &str); 3] = [(" (and ", " more)"), (", and so did ", " more"), (", and ", " more like it")];
    let text = COUNTS.iter().find_map(|(before, after)| counted(before, after)).unwrap_or(message);
    // What is put together of several quotations is a sentence.
    let quoted = text.strip_suffix('`').and_then(|text| text.rsplit_once(": `")).filter(|(_, sample)| !sample.contains('`'));
    quoted.map_or(text, |(text, _)| text)
}

/// Whether two messages say the same, and each list of what is in backquotes in `first` holds that in `second`, or more than it
/// shows.
fn names_all(first: &str, second: &str) -> bool {
    let ((texts, lists), (other_texts, other_lists)) = (Subjects::in_message(first), Subjects::in_message(second));
    texts == other_texts && lists.iter().zip(&other_lists).all(|(one, other)| one.holds(other))
}

/// A list in a message: `a`, `b` and 3 more.
#[derive(Debug, Default)]
struct Subjects<'m> {
    shown: BTreeSet<&'m str>,
    has_more: bool,
}

impl<'m> Subjects<'m> {
    /// What stands between the lists of a message, and the lists.
    fn in_message(message: &'m str) -> (Vec<&'m str>, Vec<Self>) {
        let (mut texts, mut lists) = (Vec::new(), Vec::<Self>::new());
        for (position, part) in message.split('`').enumerate() {
            let goes_on = texts.len() == lists.len();
            match (position % 2, lists.last_mut()) {
                (1, Some(list)) if goes_on => _ = list.shown.insert(part),
                (1, _) => lists.push(Self { shown: BTreeSet::from([part]), has_more: false }),
                (_, Some(_)) if matches!(part, ", " | " and ") => {}
                (_, Some(list)) if part.starts_with(" and ") && part.contains(" more") => {
                    list.has_more = true;
                    texts.push(part.split_once(" more").map_or(part, |(_, rest)| rest));
                }
                _ => texts.push(part),
            }
        }
        (texts, lists)
    }

    fn holds(&self, other: &Self) -> bool {
        self.has_more && self.shown.len() > 1 || !other.has_more && other.shown.is_subset(&self.shown)
    }
}

/// Where a law of a revision can be read.
pub(crate) fn link(source: &str, revision: &str) -> String {
    if source.is_empty() || source.contains("://") {
        return source.to_owned();
    }
    format!("https://modelcontextprotocol.io/specification/{revision}/{source}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find;
    use mcproof_analysis::example;

    fn check(rule: &str, (transport, revision): (&str, &str), dropped: u64, text: &str, expected: &str) {
        let mut take = example::read(text, transport, revision);
        take.transcript.dropped = dropped;
        let result = judge_one(find(rule).unwrap(), &[ConversationView::new(&take)], Strictness::Tolerant);
        let judged = match result.judged {
            Judged::Pass => "pass",
            Judged::Broken { .. } => "broken",
            Judged::Untestable { .. } => "untestable",
            Judged::NotApplicable { .. } => "not applicable",
        };
        assert_eq!(judged, expected, "{rule}: {text}");
    }

    const HTTP: (&str, &str) = ("http", "2025-11-25");
    const STDIO: (&str, &str) = ("stdio", "2025-11-25");

    #[test]
    fn what_was_not_tried_in_a_revision_that_is_not_spoken_does_not_concern_the_server() {
        let check = |of_session: &str, expected: &str| {
            let session = example::read(&ping(1, None, 200), "http", of_session);
            let before = Conversation { opened: Opened::Bare, ..example::read(&ping(1, None, 200), "http", "2025-11-25") };
            let views = [ConversationView::new(&session), ConversationView::new(&before)];
            let judged = judge_one(find("authorization-server-supports-pkce").unwrap(), &views, Strictness::Tolerant).judged;
            let (Judged::Untestable { why } | Judged::NotApplicable { why }) = judged else { panic!("{judged:?}") };
            assert_eq!(why, expected, "{of_session}");
        };
        check("2025-06-18", NOT_SPOKEN);
        check("2025-11-25", "no request was sent without credentials");
    }

    #[test]
    fn a_server_for_which_credentials_were_given_is_not_to_serve_an_invalid_token() {
        let asked = |probe: &str, id: u32, outcome: &str| {
            let response = match outcome {
                "" => "< 401".to_owned(),
                outcome => format!("< 200 content-type: application/json\n< {{\"jsonrpc\":\"2.0\",\"id\":{id},{outcome}}}"),
            };
            format!("@ {probe}\n> POST /mcp\n> {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n{response}\n")
        };
        let (served, failed) = (r#""result":{}"#, r#""error":{"code":-32001,"message":"no token"}"#);
        let both = |anonymous: &str, intruder: &str| asked("anonymous", 1, anonymous) + &asked("bad-token", 2, intruder);
        let rule = "invalid-token-gets-401";
        assert_eq!(severity(rule, HTTP, &both(served, served)), Some(Severity::Warning));
        check(rule, HTTP, 0, &both(served, ""), "pass");
        check(rule, HTTP, 0, &both(served, failed), "not applicable");
        check(rule, HTTP, 0, &both(failed, served), "not applicable");
        check(rule, HTTP, 0, &asked("anonymous", 1, served), "not applicable");
    }

    #[test]
    fn a_list_of_subjects_covers_its_parts_and_no_other_sentence() {
        let check = |first: &str, second: &str, expected: bool| assert_eq!(names_all(first, second), expected, "{first} / {second}");
        let all = "the result of `a`, `b`, `c`, `d` and 5 more has no `resultType`";
        check(all, "the result of `a` has no `resultType`", true);
        check(all, "the result of `e` and `a` has no `resultType`", true);
        check(all, "the result of `e`, `f`, `g`, `a` and 2 more has no `resultType`", true);
        check(all, "the result of `a` has no `ttlMs`", false);
        check(all, "the result of `a` has the `resultType` \"done\"", false);
        check("the result of `a` and `b` has no `x`", "the result of `a` has no `x`", true);
        check("the result of `a` and `b` has no `x`", "the result of `c` has no `x`", false);
        check("the result of `a` has no `x`", "the result of `a` and `b` has no `x`", false);
        check("tool `echo`: a call succeeded", "tool `add`: a call succeeded", false);
    }

    #[test]
    fn what_a_message_quotes_is_no_other_finding() {
        let check = |message: &str, expected: &str| assert_eq!(without_quotation(message), expected);
        check("an event does not end with a blank line: `{}` (and 3 more)", "an event does not end with a blank line");
        check("message `a`: `b` of `c` is null at `/d`", "message `a`: `b` of `c` is null at `/d`");
        check("an event does not end with a blank line: `{}`", "an event does not end with a blank line");
        check("`a/b` got error -32601 with status 200, and so did 5 more", "`a/b` got error -32601 with status 200");
        check("a line is not a message: `DEBUG`, and 6 more like it", "a line is not a message");
        check("`a`: `b` is missing", "`a`: `b` is missing");
        check("tools differ: `a` (and many more)", "tools differ: `a` (and many more)");
    }

    #[test]
    fn a_server_that_limits_how_often_it_is_asked_breaks_no_law() {
        let refused = |status: &str| {
            format!(
                r#"> POST /mcp
                   > {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{}}}}
                   < {status} content-type: application/json
                   < {{"jsonrpc":"2.0","id":null,"error":{{"code":-32029,"message":"slow down"}}}}"#
            )
        };
        check("initialize-gets-result", HTTP, 0, &refused("429"), "untestable");
        check("initialize-gets-result", HTTP, 0, &refused("500"), "broken");
    }

    #[test]
    fn a_limit_is_told_with_what_was_refused_and_after_what() {
        let initialize =
            |id: u32| format!("> POST /mcp\n> {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"initialize\",\"params\":{{}}}}\n");
        let opened = |id: u32| {
            let result = format!("< 200 content-type: application/json\n< {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n");
            initialize(id) + &result
        };
        let check = |texts: &[String], expected: &str| {
            let takes: Vec<_> = texts.iter().map(|text| example::read(text, "http", "2025-11-25")).collect();
            let views: Vec<_> = takes.iter().map(ConversationView::new).collect();
            assert_eq!(throttled(&views), format!("{THROTTLED}: {expected}; raise that limit for the check"));
        };
        let too_many = initialize(9) + "< 429\n< Too many sessions\n";
        check(
            &[opened(1) + &ping(2, None, 200), opened(3) + &too_many],
            "`initialize` got status 429 (Too many sessions) after 2 sessions (3 requests)",
        );
        check(&[opened(1) + &ping(2, None, 200) + &ping(3, None, 429)], "`ping` got status 429 (gone) after 2 requests");
        let error = r#"< 200 content-type: application/json
            < {"jsonrpc":"2.0","id":9,"error":{"code":-32000,"message":"rate limit exceeded"}}"#;
        check(&[too_many], "`initialize` got status 429 (Too many sessions) after 0 requests");
        check(&[opened(1), initialize(9) + error], "`initialize` got error -32000 (rate limit exceeded) after 1 session (1 request)");
    }

    #[test]
    fn the_status_of_limits_excuses_only_a_server_that_has_some() {
        let tried = |ordinary: u16, head: &str| {
            format!(
                r#"@ plain
                   > POST /mcp
                   < 200
                   @ ping
                   > POST /mcp
                   > {{"jsonrpc":"2.0","id":1,"method":"ping"}}
                   < {ordinary}
                   @ bad-version 1900-01-01
                   > POST /mcp mcp-protocol-version: 1900-01-01
                   > {{"jsonrpc":"2.0","id":2,"method":"ping"}}
                   < 429 {head}"#
            )
        };
        let rule = "http-unknown-version-gets-400";
        check(rule, HTTP, 0, &tried(200, "content-type: text/plain"), "broken");
        check(rule, HTTP, 0, &tried(200, "retry-after: 1"), "untestable");
        check(rule, HTTP, 0, &tried(200, "X-RateLimit-Remaining: 0"), "untestable");
        check(rule, HTTP, 0, &tried(429, "content-type: text/plain"), "untestable");
    }

    #[test]
    fn what_was_tried_and_excused_is_told_before_what_was_not_tried() {
        let opened =
            example::read("@ ping\n> POST /mcp\n> {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n< 200", "http", "2026-07-28");
        let tried = "@ without-meta\n> POST /mcp\n> {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n< 429 retry-after: 1";
        let stateless = Conversation { opened: Opened::Bare, ..example::read(tried, "http", "2026-07-28") };
        let all = [opened, stateless];
        let judged = judge_one(find("meta-is-required").unwrap(), &ConversationView::all(&all), Strictness::Tolerant).judged;
        assert!(matches!(&judged, Judged::Untestable { why } if why.starts_with(THROTTLED)), "{judged:?}");
    }

    /// A POST of `ping`, in a session or not, and the status of its response.
    fn ping(id: u32, session: Option<&str>, status: u16) -> String {
        let session = session.map(|session| format!("mcp-session-id: {session}")).unwrap_or_default();
        let answer = match status {
            200 => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#),
            _ => "gone".to_owned(),
        };
        format!("> POST /mcp {session}\n> {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n< {status}\n< {answer}\n")
    }

    #[test]
    fn a_server_may_end_a_session_at_any_time_but_not_serve_it_now_and_then() {
        let served = |statuses: [u16; 5]| {
            let pings = statuses.iter().zip(1..).map(|(status, id)| format!("@ ping\n{}", ping(id, Some("a"), *status)));
            pings.collect::<String>()
        };
        check("request-gets-response", HTTP, 0, &served([200, 200, 404, 404, 404]), "pass");
        check("request-gets-response", HTTP, 0, &served([200, 404, 404, 404, 200]), "broken");
        let deleted = served([200, 200, 404, 404, 404]).replacen("@ ping", "> DELETE /mcp mcp-session-id: a\n< 200\n@ ping", 1);
        check("request-gets-response", HTTP, 0, &deleted, "broken");
    }

    #[test]
    fn clients_that_use_the_same_id_get_their_own_responses() {
        let post = |id: &str, method: &str, params: &str, result: Option<&str>| {
            let request = format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"{method}","params":{params}}}"#);
            let result = result.map(|result| format!("< {{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"result\":{result}}}\n"));
            format!("> POST /mcp\n> {request}\n< 200\n{}", result.unwrap_or_default())
        };
        let same = |other: &str, method: &str, params: &str, result: Option<&str>| {
            let asked = |round: u8| format!("@ same-id {other}\n{}", post(&format!("mcproof-same-{round}"), method, params, result));
            asked(1) + &asked(2)
        };
        let check_text = |text: &str, expected: &str| check("concurrent-responses-match-requests", HTTP, 0, text, expected);
        let check_one = |other: &str, (method, result): (&str, &str), expected: &str| {
            check_text(&same(&format!(r#"{{"method":"{other}"}}"#), method, "{}", Some(result)), expected);
        };
        let (tools, prompts) = (r#"{"tools":[]}"#, r#"{"prompts":[]}"#);
        check_one("ping", ("tools/list", tools), "pass");
        check_one("tools/list", ("ping", "{}"), "pass");
        check_one("tools/list", ("ping", tools), "broken");
        check_one("ping", ("tools/list", "{}"), "broken");
        check_one("server/discover", ("tools/list", r#"{"supportedVersions":[]}"#), "broken");
        check_one("prompts/list", ("tools/list", prompts), "broken");
        check_one("tools/call", ("tools/list", r#"{"content":[]}"#), "broken");

        let params = |text: &str| format!(r#"{{"name":"echo","arguments":{{"text":"mcproof-at-once-{text}"}}}}"#);
        let other = format!(r#"{{"method":"tools/call","params":{}}}"#, params("two"));
        let called = |result: Option<&str>| same(&other, "tools/call", &params("one"), result);
        let said = |text: &str| format!(r#"{{"content":[{{"type":"text","text":"mcproof-at-once-{text}"}}]}}"#);
        check_text(&called(Some(&said("one"))), "pass");
        check_text(&called(Some(&said("two"))), "broken");
        check_text(&called(Some(tools)), "broken");
        // Silence tells something only of a tool that responds before and after that.
        let alone = |id: &str| format!("@ id-of-its-own\n{}", post(id, "tools/call", &params("one"), Some(&said("one"))));
        check_text(&(alone("1") + &called(None) + &alone("2")), "broken");
        check_text(&(alone("1") + &called(None)), "untestable");
        check_text(&(called(None) + &alone("2")), "untestable");
    }

    #[test]
    fn a_second_session_may_be_refused_and_what_lacks_one_after_that() {
        let handshake = |id: u32, head: &str| {
            let request = format!("> POST /mcp\n> {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"initialize\",\"params\":{{}}}}\n");
            format!("{request}< {head}\n< {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n")
        };
        let first = handshake(1, "200 mcp-session-id: a");
        let busy = handshake(2, "503").replace(r#""result":{}"#, r#""error":{"code":-32000,"message":"busy"}"#);
        let broken = busy.replace("< 503", "< 500");
        let bare = format!("@ legal-form no `params`\n{}", ping(3, None, 400));
        let served = format!("@ ping\n{}", ping(4, Some("a"), 200));
        check("valid-request-is-served", HTTP, 0, &format!("{first}{served}{busy}{bare}"), "untestable");
        check("valid-request-is-served", HTTP, 0, &format!("{first}{served}{broken}{bare}"), "untestable");
        check("valid-request-is-served", HTTP, 0, &format!("{first}{served}{bare}"), "broken");
    }

    #[test]
    fn a_session_that_cannot_be_named_is_one_finding() {
        let text = |id: &str| {
            format!(
                r#"> POST /mcp
                   > {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{}}}}
                   < 200 mcp-session-id: {id}
                   < {{"jsonrpc":"2.0","id":1,"result":{{}}}}
                   > POST /mcp mcp-session-id: {id}
                   > {{"jsonrpc":"2.0","method":"notifications/initialized"}}
                   < 404"#
            )
        };
        check("http-notification-gets-202", HTTP, 0, &text("gehege"), "broken");
        check("http-notification-gets-202", HTTP, 0, &text("geh\u{fffd}ge"), "untestable");
        check("session-id-is-visible-ascii", HTTP, 0, &text("geh\u{fffd}ge"), "broken");
        // As many conversations as there are, each with an id of its own.
        let recorded = ["a\u{fffd}", "b\u{fffd}"].map(|id| example::read(&text(id), HTTP.0, HTTP.1));
        let conversations: Vec<ConversationView<'_>> = recorded.iter().map(ConversationView::new).collect();
        let judged = judge_one(find("session-id-is-visible-ascii").unwrap(), &conversations, Strictness::Tolerant).judged;
        assert!(matches!(&judged, Judged::Broken { findings } if findings.len() == 1), "{judged:?}");
    }

    #[test]
    fn what_ends_after_our_signal_did_not_end_by_itself() {
        let ended = |how: &str| {
            format!(
                r#"> POST /mcp
                   > {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{}}}}
                   < 200 content-type: application/json
                   < {{"jsonrpc":"2.0","id":1,"result":{{}}}}
                   > GET /mcp accept: text/event-stream
                   {how}
                   ! broken connection closed before message completed
                   > DELETE /mcp
                   ! broken connection refused"#
            )
        };
        check("server-stays-alive", HTTP, 0, &ended("! signal SIGTERM"), "pass");
        check("server-stays-alive", HTTP, 0, &ended("~ 1"), "broken");
    }

    #[test]
    fn an_answer_may_belong_to_a_request_that_was_not_kept() {
        let text = r#"< {"jsonrpc":"2.0","id":109,"result":{}}"#;
        check("response-belongs-to-a-request", ("stdio", "2025-11-25"), 0, text, "broken");
        check("response-belongs-to-a-request", ("stdio", "2025-11-25"), 7, text, "untestable");
    }

    #[test]
    fn what_was_not_kept_is_not_judged() {
        let lost = "! note 7 earlier frames were counted but not stored: the limit is 1 bytes";
        let asked = |probe: &str, before: &str, after: &str| {
            format!(
                r#"> POST /mcp
                   > {{"jsonrpc":"2.0","id":1,"method":"ping"}}
                   < 200 content-type: application/json
                   < {{"jsonrpc":"2.0","id":1,"result":{{}}}}
                   ! ended
                   {before}
                   @ {probe} tools/list
                   > POST /mcp
                   > {{"jsonrpc":"2.0","id":2,"method":"tools/list"}}
                   < 200 content-type: application/json
                   {after}
                   ! ended"#
            )
        };
        let (rule, message) = ("request-gets-response", r#"< {"jsonrpc":"2.0","id":2,"result":{"tools":[]}}"#);
        check(rule, HTTP, 0, &asked("list", "", message), "pass");
        check(rule, HTTP, 0, &asked("list", "", ""), "broken");
        check(rule, HTTP, 7, &asked("list", "", lost), "untestable");
        // What was lost before the request is not its response, and a client that waited in vain knows that there was none.
        check(rule, HTTP, 7, &asked("list", lost, ""), "broken");
        check(rule, HTTP, 7, &asked("list!", "", lost), "broken");
    }

    #[test]
    fn a_response_without_a_request_is_found_on_the_stream_of_a_get() {
        let stray = r#"> POST /mcp
                       > {"jsonrpc":"2.0","id":1,"method":"tools/list"}
                       < 200 content-type: application/json
                       < {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}
                       > GET /mcp accept: text/event-stream
                       < 200 content-type: text/event-stream
                       < data: {"jsonrpc":"2.0","id":109,"result":{}}"#;
        check("response-belongs-to-a-request", HTTP, 0, stray, "broken");
    }

    #[test]
    fn what_was_not_sent_for_want_of_responses_says_so() {
        let silent = |id: u32| format!("@ plain!\n> POST /mcp\n> {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
        let why = |times: u32| {
            let text: String = (1..=times).map(silent).collect();
            let take = example::read(&text, HTTP.0, HTTP.1);
            match judge_one(find("origin-is-validated").unwrap(), &[ConversationView::new(&take)], Strictness::Tolerant).judged {
                Judged::Untestable { why } => why,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(why(3), GIVEN_UP);
        assert_ne!(why(2), GIVEN_UP);
    }

    #[test]
    fn a_rule_passes_only_on_what_it_has_seen() {
        let completion = |completion: &str| {
            format!(
                r#"@ complete name
                   > {{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{{}}}}
                   < {{"jsonrpc":"2.0","id":1,"result":{{"completion":{completion}}}}}"#
            )
        };
        let rule = "completion-total-is-consistent";
        check(rule, STDIO, 0, &completion(r#"{"values":["Ada"]}"#), "not applicable");
        check(rule, STDIO, 0, &completion(r#"{"values":["Ada"],"total":1}"#), "pass");
        check(rule, STDIO, 0, &completion(r#"{"values":["Ada"],"total":0}"#), "broken");

        let called = |unknown: &str, called: &str| {
            format!(
                r#"@ unknown-tool none
                   > {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"none"}}}}
                   < {{"jsonrpc":"2.0","id":1,"error":{{"code":-32602,"message":"{unknown}"}}}}
                   @ call echo
                   > {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"echo"}}}}
                   < {{"jsonrpc":"2.0","id":2,{called}}}"#
            )
        };
        let refused = |message: &str| format!(r#""error":{{"code":-32602,"message":"{message}"}}"#);
        let rule = "listed-tool-is-callable";
        check(rule, STDIO, 0, &called("failed", &refused("failed")), "untestable");
        check(rule, STDIO, 0, &called("failed", r#""result":{"content":[]}"#), "pass");
        check(rule, STDIO, 0, &called("no tool none", &refused("text is missing")), "pass");
        check(rule, STDIO, 0, &called("no tool none", &refused("no tool echo")), "broken");
        check(rule, STDIO, 0, &called("no tool none", r#""error":{"code":-32603,"message":"undefined"}"#), "broken");
        let with_text = |message: &str| {
            let called = called("no tool none", &format!(r#""error":{{"code":-32603,"message":"{message}"}}"#));
            called.replace(r#""name":"echo""#, r#""name":"echo","arguments":{"url":"mcproof"}"#)
        };
        check(rule, STDIO, 0, &with_text("Invalid URL: mcproof"), "pass");
        check(rule, STDIO, 0, &with_text("url is not defined"), "broken");
        let told = example::read(&with_text("url is not defined"), "stdio", "2025-11-25");
        let judged = judge_one(find(rule).unwrap(), &[ConversationView::new(&told)], Strictness::Tolerant).judged;
        let Judged::Broken { findings } = judged else { panic!("{judged:?}") };
        let message = "tool `echo`: a call with arguments that its schema allows got error -32603: \"url is not defined\"";
        assert_eq!(findings[0].message, message);
        let listed = |schema: &str| {
            let tool = format!(r#"{{"name":"echo","inputSchema":{schema}}}"#);
            let list = format!(
                r#"> {{"jsonrpc":"2.0","id":0,"method":"tools/list"}}
                   < {{"jsonrpc":"2.0","id":0,"result":{{"tools":[{tool}]}}}}
                   "#
            );
            list + &called("no tool none", &refused("not a result"))
        };
        check(rule, STDIO, 0, &listed(r#"{"type":"object","properties":{}}"#), "broken");
        check(rule, STDIO, 0, &listed(r#"{"type":"object"}"#), "pass");
        let takes_text = listed(r#"{"type":"object","properties":{"text":{"type":"string"}}}"#);
        check(rule, STDIO, 0, &takes_text, "pass");
        let reported = r#"
                   @ call-missing-argument echo
                   > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo"}}
                   < {"jsonrpc":"2.0","id":3,"result":{"content":[],"isError":true}}"#;
        check(rule, STDIO, 0, &(takes_text + reported), "broken");
    }

    /// The severity of the first finding, if there is any.
    fn severity(rule: &str, (transport, revision): (&str, &str), text: &str) -> Option<Severity> {
        let take = example::read(text, transport, revision);
        match judge_one(find(rule).unwrap(), &[ConversationView::new(&take)], Strictness::Tolerant).judged {
            Judged::Broken { findings } => Some(findings[0].severity),
            _ => None,
        }
    }

    #[test]
    fn a_cursor_says_nothing_about_a_list_that_fails_without_one_as_well() {
        let listed = |list: &str| {
            format!(
                r#"> {{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{{}}}}
                   < {{"jsonrpc":"2.0","id":1,{list}}}
                   @ unknown-cursor resources/list
                   > {{"jsonrpc":"2.0","id":2,"method":"resources/list","params":{{"cursor":"nothing"}}}}
                   < {{"jsonrpc":"2.0","id":2,"error":{{"code":-32603,"message":"no database"}}}}"#
            )
        };
        let rule = "list-unknown-cursor-is-refused";
        check(rule, STDIO, 0, &listed(r#""error":{"code":-32603,"message":"no database"}"#), "untestable");
        check(rule, STDIO, 0, &listed(r#""result":{"resources":[]}"#), "broken");
    }

    #[test]
    fn a_declared_list_that_fails_each_time_is_told_once() {
        let listed = |first: &str, second: &str| {
            format!(
                r#"> {{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"2025-11-25"}}}}
                   < {{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":"2025-11-25","capabilities":{{"resources":{{}}}},"serverInfo":{{"name":"a","version":"1"}}}}}}
                   @ list resources/list
                   > {{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{{}}}}
                   < {{"jsonrpc":"2.0","id":1,{first}}}
                   @ list-again resources/list
                   > {{"jsonrpc":"2.0","id":2,"method":"resources/list","params":{{}}}}
                   < {{"jsonrpc":"2.0","id":2,{second}}}"#
            )
        };
        let (failed, given) = (r#""error":{"code":-32603,"message":"no database"}"#, r#""result":{"resources":[]}"#);
        let rule = "declared-capability-is-implemented";
        check(rule, STDIO, 0, &listed(failed, failed), "broken");
        check(rule, STDIO, 0, &listed(failed, given), "pass");
        check(rule, STDIO, 0, &listed(given, given), "pass");
    }

    #[test]
    fn a_discovery_whose_result_names_versions_is_as_good_as_a_refusal() {
        let discovered = |outcome: &str| {
            format!(
                r#"> POST /mcp mcp-protocol-version: 2026-07-28
                   > {{"jsonrpc":"2.0","id":1,"method":"server/discover"}}
                   < 200 content-type: application/json
                   < {{"jsonrpc":"2.0","id":1,{outcome}}}
                   @ bad-version 1900-01-01
                   > POST /mcp mcp-protocol-version: 1900-01-01
                   > {{"jsonrpc":"2.0","id":2,"method":"tools/list"}}
                   < 400"#
            )
        };
        let rule = "http-unknown-era-is-refused";
        check(rule, HTTP, 0, &discovered(r#""result":{"supportedVersions":["2025-11-25"]}"#), "pass");
        check(rule, HTTP, 0, &discovered(r#""result":{"supportedVersions":[]}"#), "broken");
        check(rule, HTTP, 0, &discovered(r#""error":{"code":-32601,"message":"Method not found"}"#), "broken");
    }

    #[test]
    fn a_connection_that_is_closed_upon_each_unknown_version_names_no_versions() {
        let closed = |id: u32, version: &str| {
            let meta = format!(r#"{{"io.modelcontextprotocol/protocolVersion":"{version}"}}"#);
            let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"server/discover","params":{{"_meta":{meta}}}}}"#);
            format!(
                "@ unsupported-version? {version}\n> POST /mcp mcp-protocol-version: {version}\n> {request}\n! broken connection closed\n"
            )
        };
        let (one, other, later) = (closed(1, "1900-01-01"), closed(2, "2099-12-31"), "@ use-right tools/list\n> POST /mcp\n< 200\n");
        let check = |text: &str, expected: &str| {
            check("unsupported-version-error-names-versions", ("http", "2026-07-28"), 0, text, expected);
        };
        check(&format!("{one}{other}{later}"), "broken");
        check(&format!("{one}{later}"), "untestable");
        check(&format!("{one}{other}"), "untestable");
    }

    #[test]
    fn a_warning_is_what_an_author_has_to_change() {
        let without_session = |status: &str, outcome: &str| {
            format!(
                r#"@ session
                   > POST /mcp
                   < 200 mcp-session-id: 1868a90c
                   @ plain
                   > POST /mcp
                   < 200
                   @ no-session
                   > POST /mcp
                   > {{"jsonrpc":"2.0","id":1,"method":"tools/list"}}
                   < {status} content-type: application/json
                   < {{"jsonrpc":"2.0","id":1,{outcome}}}"#
            )
        };
        let (listed, refused) = (r#""result":{"tools":[]}"#, r#""error":{"code":-32000,"message":"no session"}"#);
        let rule = "session-missing-gets-400";
        assert_eq!(severity(rule, HTTP, &without_session("200", listed)), Some(Severity::Note), "a session that is not required");
        assert_eq!(severity(rule, HTTP, &without_session("404", refused)), Some(Severity::Warning));

        let unknown = |code: i32| {
            format!(
                r#"@ unknown-resource mcproof://no/such/resource
                   > {{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{{"uri":"mcproof://no/such/resource"}}}}
                   < {{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"Unknown resource"}}}}"#
            )
        };
        let rule = "resource-unknown-code";
        assert_eq!(severity(rule, STDIO, &unknown(-32602)), Some(Severity::Note), "the code of the next revision");
        assert_eq!(severity(rule, STDIO, &unknown(0)), Some(Severity::Warning));
        assert_eq!(severity(rule, STDIO, &unknown(-32002)), None);

        let without_allow = "> GET /mcp accept: text/event-stream\n< 405";
        assert_eq!(severity("http-405-has-allow", HTTP, without_allow), Some(Severity::Note), "a law of HTTP that no client needs");
    }

    #[test]
    fn a_method_that_does_not_exist_says_nothing_about_what_it_was_asked() {
        let asked = |probe: &str, method: &str, known: &str| {
            format!(
                r#"> {{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{}}}}
                   < {{"jsonrpc":"2.0","id":1,{known}}}
                   @ {probe} nothing
                   > {{"jsonrpc":"2.0","id":2,"method":"{method}","params":{{}}}}
                   < {{"jsonrpc":"2.0","id":2,"error":{{"code":-32601,"message":"Method not found"}}}}"#
            )
        };
        let (missing, given) = (r#""error":{"code":-32601,"message":"Method not found"}"#, r#""result":{}"#);
        for (rule, probe, method) in [
            ("log-level-unknown-is-refused", "set-unknown-log-level", "logging/setLevel"),
            ("resource-unknown-code", "unknown-resource", "resources/read"),
            ("prompt-unknown-code", "unknown-prompt", "prompts/get"),
        ] {
            check(rule, STDIO, 0, &asked(probe, method, missing), "untestable");
            check(rule, STDIO, 0, &asked(probe, method, given), "broken");
        }
    }

    #[test]
    fn what_is_posted_without_a_stream_says_nothing_about_its_body() {
        let posted = |end: &str, status: u16| {
            format!(
                r#"> GET /sse accept: text/event-stream
                   < 200 content-type: text/event-stream
                   < event: endpoint
                   {end}
                   @ plain
                   > POST /message
                   < 202
                   @ malformed-body
                   > POST /message
                   < {status}
                   @ large-body
                   > POST /message
                   < {status}"#
            )
        };
        const SSE: (&str, &str) = ("sse", "2024-11-05");
        for rule in ["http-malformed-body-is-4xx", "http-large-body-is-not-5xx"] {
            check(rule, SSE, 0, &posted("~ 1", 503), "broken");
            check(rule, SSE, 0, &posted("! ended", 500), "broken");
            check(rule, SSE, 0, &posted("! ended", 503), "untestable");
        }
    }

    #[test]
    fn a_malformed_body_needs_an_error_status_of_which_one_of_4xx_is_better() {
        let posted = |status: u16| format!("@ malformed-body\n> POST /mcp\n> {{\"jsonrpc\":\n< {status}");
        let (law, practice) = ("http-malformed-body-is-refused", "http-malformed-body-is-4xx");
        for status in [200, 202, 302] {
            assert_eq!(severity(law, HTTP, &posted(status)), Some(Severity::Error), "{status}");
            check(practice, HTTP, 0, &posted(status), "untestable");
        }
        check(law, HTTP, 0, &posted(500), "pass");
        assert_eq!(severity(practice, HTTP, &posted(500)), Some(Severity::Warning));
        for rule in [law, practice] {
            check(rule, HTTP, 0, &posted(400), "pass");
        }
        // The page of HTTP+SSE names no status.
        assert_eq!(severity(law, ("sse", "2024-11-05"), &posted(200)), Some(Severity::Warning));
    }

    #[test]
    fn a_late_response_to_a_canceled_call_counts_if_it_repeats() {
        let called = |id: u32, arguments: &str, late: u32| {
            format!(
                r#"@ call slow
                   > {{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"slow","arguments":{arguments}}}}}
                   ~ 700
                   > {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}
                   @ after
                   > {{"jsonrpc":"2.0","id":"after-{id}","method":"ping"}}
                   < {{"jsonrpc":"2.0","id":"after-{id}","result":{{}}}}
                   ~ {late}
                   < {{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}
                   "#
            )
        };
        let quick = |id: u32, arguments: &str| {
            format!(
                r#"@ call slow
                   > {{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"slow","arguments":{arguments}}}}}
                   < {{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}
                   "#
            )
        };
        let rule = "canceled-request-gets-no-response";
        let (one, other) = (r#"{"a":1}"#, r#"{"a":2}"#);
        check(rule, STDIO, 0, &called(1, one, 2000), "untestable");
        check(rule, STDIO, 0, &[called(1, one, 2000), called(2, other, 2000)].concat(), "untestable");
        check(rule, STDIO, 0, &[called(1, one, 2000), called(2, one, 2000)].concat(), "broken");
        check(rule, STDIO, 0, &[called(1, one, 2000), called(2, one, 2000), quick(3, other)].concat(), "broken");
        check(rule, STDIO, 0, &[called(1, one, 2000), called(2, one, 2000), quick(3, one)].concat(), "untestable");
    }

    #[test]
    fn any_date_can_be_a_supported_version() {
        let refused = |supported: &str| {
            format!(
                r#"@ unsupported-version 1900-01-01
                   > {{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"1900-01-01"}}}}}}
                   < {{"jsonrpc":"2.0","id":1,"error":{{"code":-32022,"message":"no","data":{{"supported":["2026-07-28",{supported}],"requested":"1900-01-01"}}}}}}"#
            )
        };
        for (supported, expected) in
            [("\"2024-10-07\"", "pass"), ("\"2027-01-01\"", "pass"), ("\"DRAFT-2026\"", "pass"), ("\"1.0\"", "broken")]
        {
            check("unsupported-version-error-names-versions", ("stdio", "2026-07-28"), 0, &refused(supported), expected);
        }
    }

    #[test]
    fn a_request_without_the_header_of_its_revision_may_be_taken_for_a_legacy_one() {
        let attempt = |headers: &str| {
            format!(
                r#"> POST /mcp {headers}
                   > {{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}}}}
                   < 200 content-type: application/json
                   < {{"jsonrpc":"2.0","id":1,"result":{{"tools":[]}}}}"#
            )
        };
        let modern = ("http", "2026-07-28");
        check("result-has-type", modern, 0, &attempt("mcp-protocol-version: 2026-07-28"), "broken");
        check("result-has-type", modern, 0, &attempt("accept: application/json"), "untestable");
    }

    #[test]
    fn the_refusal_of_another_era_has_to_be_an_error_and_says_nothing_more() {
        let check = |error: &str, expected: &str| {
            let text = format!(
                "> {{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\"}}\n< {{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{error}}}"
            );
            let take = Conversation { opened: Opened::OtherEra, ..example::read(&text, "stdio", "2026-07-28") };
            let judged =
                judge_one(find("error-has-code-and-message").unwrap(), &[ConversationView::new(&take)], Strictness::Tolerant).judged;
            assert!(format!("{judged:?}").starts_with(expected), "{error} {judged:?}");
            if let Judged::Broken { findings } = judged {
                assert!(!findings[0].source.contains("2026"), "{}", findings[0].source);
            }
        };
        check(r#"{"code":-32601}"#, "Broken");
        check(r#"{"code":-32601,"message":"Method not found"}"#, "NotApplicable");
    }
}
