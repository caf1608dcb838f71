//! Ordinary requests that were given up or lost, or that failed inside of the server, although it has answered the very same request at
//! other times. One of them alone says nothing: a tool may take as long as it likes, and a network loses a connection. Nor do several at a
//! time: a machine may pause. But one that a later request overtook was lost.

use super::ConversationView;
use super::answers::{Pairing, Request, first_abuse};
use super::causes::GOES_ON;
use super::lifecycle::was_hung_up;
use super::lost_requests::slow_at_times;
use mcproof_analysis::probes::POSTED;
use mcproof_analysis::{HttpExchange, named};
use mcproof_protocol::error_code::INTERNAL_ERROR;
use mcproof_protocol::methods;
use mcproof_record::duration::readable;
use mcproof_record::{FrameId, Gap, GapKind, Judged, RuleResult, counted};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Losses at so many times make a gap.
const LEAST: usize = 2;
/// How long a request is waited for at least, and how many times as long as for the slowest response to the same one.
const LEAST_WAIT: Duration = Duration::from_millis(700);
const TIMES: u32 = 10;
/// A call that was waited for so long is not only late, even if its tool is slow at times, unless others of it took nearly as long.
const LATE: Duration = Duration::from_millis(4500);
const TIMES_LATE: u32 = 3;

/// A request that is like another one: its method, and its params without `_meta`.
type Kind = (String, String);

struct Lost {
    conversation: usize,
    subject: String,
    /// Since the start of the conversation.
    sent: Duration,
    fate: Fate,
    /// With all of its texts.
    exact: Kind,
    /// A request like it got its response earlier, and another one that was sent later got its own while this one was waited for.
    is_overtaken: bool,
}

#[derive(Clone, Copy)]
enum Fate {
    /// Given up after so long.
    GivenUp(Duration),
    /// Its connection was closed.
    Closed,
    /// An HTTP status by which the server says that it failed.
    Failed(u16),
    /// An internal error (JSON-RPC).
    Errored,
}

impl Fate {
    fn waited(self) -> Duration {
        match self {
            Self::GivenUp(waited) => waited,
            Self::Closed | Self::Failed(_) | Self::Errored => Duration::ZERO,
        }
    }
}

/// That what was answered at other times was not. `results`: of the rules, one of which tells of requests of many kinds that fail.
pub(super) fn gap(conversations: &[ConversationView<'_>], results: &[RuleResult]) -> Option<Gap> {
    let failures_are_told = results.iter().any(|result| result.rule == GOES_ON && matches!(result.judged, Judged::Broken { .. }));
    let (mut slowest, mut lost) = (BTreeMap::<Kind, Duration>::new(), Vec::<(Kind, Lost)>::new());
    // By what was called, with any arguments.
    let mut slowest_of = BTreeMap::<String, Duration>::new();
    let mut served = BTreeSet::<Kind>::new();
    for (index, conversation) in conversations.iter().enumerate() {
        let (pairing, end) = (Pairing::of(conversation), first_abuse(conversation));
        let kinds: Vec<Kind> = pairing.requests.iter().map(kind).collect();
        // What a proxy says until the server behind it is there, which is asked until then.
        let (mut is_up, is_of_start) = (false, |fate: &Fate| matches!(fate, Fate::Failed(502..=504)));
        let harmless: BTreeSet<&str> = conversation.tools().iter().filter_map(|(tool, _)| read_only(tool)).collect();
        // A version that does not exist may be all that is wrong with a request, which has a rule of its own.
        let is_own = |request: &Request<'_>| {
            let exchange = request.exchange.and_then(|id| conversation.exchanges.get(&id));
            end.is_none_or(|end| request.frame < end) && !exchange.is_some_and(HttpExchange::names_unknown_version)
        };
        for (position, request) in pairing.requests.iter().enumerate().filter(|(_, request)| is_own(request)) {
            let answer = pairing.answer_to(position);
            let fate = match answer {
                Some(answer) => failure(conversation, request, (answer.value, answer.frame), &harmless),
                None => fate(conversation, request),
            };
            let fate = fate.filter(|fate| is_up || !is_of_start(fate));
            is_up |= answer.is_some() && fate.is_none();
            match (answer, fate.filter(|_| is_ordinary(request))) {
                (_, Some(fate)) => {
                    let sent = conversation.elapsed(FrameId(0), request.frame).unwrap_or_default();
                    let is_overtaken = fate.waited() >= LEAST_WAIT && is_overtaken(conversation, &pairing, &kinds, position, fate.waited());
                    let lost_request =
                        Lost { conversation: index, subject: subject(request), sent, fate, exact: exact(request), is_overtaken };
                    lost.push((kinds[position].clone(), lost_request));
                }
                (Some(answer), None) => {
                    let took = conversation.elapsed(request.frame, answer.frame).unwrap_or_default();
                    let known = slowest.entry(kinds[position].clone()).or_default();
                    *known = (*known).max(took);
                    let known = slowest_of.entry(subject(request)).or_default();
                    *known = (*known).max(took);
                    if answer.value.get("result").is_some() {
                        served.insert(exact(request));
                    }
                }
                (None, None) => {}
            }
        }
    }
    let slow = slow_at_times(conversations);
    let late = |lost: &Lost| slowest_of.get(&lost.subject).map_or(LATE, |took| LATE.max(*took * TIMES_LATE));
    let is_slow = |lost: &Lost| lost.subject.strip_prefix("tools/call ").is_some_and(|tool| slow.contains(tool));
    lost.retain(|(_, lost)| !matches!(lost.fate, Fate::GivenUp(waited) if waited < late(lost)) || !is_slow(lost));
    lost.retain(|(kind, lost)| {
        slowest.get(kind).is_some_and(|took| match lost.fate {
            Fate::GivenUp(waited) => waited >= LEAST_WAIT && waited >= *took * TIMES,
            Fate::Closed => true,
            Fate::Failed(_) => !failures_are_told,
            Fate::Errored => served.contains(&lost.exact),
        })
    });
    let is_enough = times(&lost) >= LEAST || lost.iter().any(|(_, lost)| lost.is_overtaken);
    let (_, first) = lost.first().filter(|_| is_enough)?;
    let subjects: Vec<String> = lost.iter().map(|(_, lost)| lost.subject.clone()).collect::<BTreeSet<_>>().into_iter().collect();
    let took = lost.iter().filter_map(|(kind, _)| slowest.get(kind)).max()?;
    let mut how = BTreeSet::new();
    for (_, lost) in &lost {
        how.insert(match lost.fate {
            Fate::GivenUp(_) => "got no response".to_owned(),
            Fate::Closed => "had their connection closed without a response".to_owned(),
            Fate::Failed(status) => format!("got status {status}"),
            Fate::Errored => format!("got the error {INTERNAL_ERROR}"),
        });
    }
    let how = how.into_iter().collect::<Vec<_>>().join(", or ");
    let them = if lost.len() == 1 { "it" } else { "them" };
    let message = format!(
        "{} ({}) {how}, although others like {them} got a response within {}",
        counted(lost.len(), "request"),
        named(&subjects),
        readable(*took)
    );
    let hint = "look for what is used up: a connection, a lock or a place in a queue that a handler does not give back; or for a worker that \
                crashes, and for state that one request leaves for the next";
    Some(Gap { kind: GapKind::NotJudged, message, hint: hint.into(), conversation: Some(first.conversation) })
}

/// Whether requests like one that was waited for so long got their responses before it was sent, and others that were sent later while it was
/// waited for: what is slow at first, or for a moment, does not explain it.
fn is_overtaken(conversation: &ConversationView<'_>, pairing: &Pairing<'_>, kinds: &[Kind], lost: usize, waited: Duration) -> bool {
    let sent = pairing.requests[lost].frame;
    let answered = pairing.requests.iter().enumerate().filter(|(position, _)| kinds[*position] == kinds[lost]);
    let answered = answered.filter_map(|(position, other)| Some((other.frame, pairing.answer_to(position)?.frame)));
    let in_time = |answer: FrameId| conversation.elapsed(sent, answer).is_some_and(|elapsed| elapsed * 2 <= waited);
    let (earlier, later): (Vec<_>, Vec<_>) = answered.partition(|(request, _)| *request < sent);
    earlier.iter().any(|(_, answer)| *answer < sent) && later.iter().any(|(_, answer)| in_time(*answer))
}

/// How many of the losses were not under way at the same time as the one before. Those of a conversation are in the order of their requests.
fn times(lost: &[(Kind, Lost)]) -> usize {
    let mut under_way: Option<(usize, Duration)> = None;
    let begins = lost.iter().filter(|(_, lost)| {
        let end = lost.sent + lost.fate.waited();
        let overlaps = under_way.is_some_and(|(conversation, until)| conversation == lost.conversation && lost.sent < until);
        under_way = Some((lost.conversation, under_way.filter(|_| overlaps).map_or(end, |(_, until)| until.max(end))));
        !overlaps
    });
    begins.count()
}

/// Which text a tool gets makes no difference; a number may be how long something takes.
fn kind(request: &Request<'_>) -> Kind {
    let mut params = request.value["params"].clone();
    let arguments = params.get_mut("arguments").filter(|_| request.method() == methods::TOOLS_CALL).and_then(Value::as_object_mut);
    arguments.into_iter().flat_map(|arguments| arguments.values_mut()).filter(|value| value.is_string()).for_each(|text| *text = "".into());
    named_by(request, params)
}

/// With all texts as they are.
fn exact(request: &Request<'_>) -> Kind {
    named_by(request, request.value["params"].clone())
}

fn named_by(request: &Request<'_>, mut params: Value) -> Kind {
    if let Some(members) = params.as_object_mut() {
        members.remove("_meta");
    }
    let params = if params.as_object().is_none_or(serde_json::Map::is_empty) { String::new() } else { params.to_string() };
    (request.method().to_owned(), params)
}

/// The name of a tool that changes nothing, so that the same call can succeed again.
fn read_only(tool: &Value) -> Option<&str> {
    let is_read_only = tool.pointer("/annotations/readOnlyHint") == Some(&Value::Bool(true));
    tool.get("name")?.as_str().filter(|_| is_read_only)
}

fn subject(request: &Request<'_>) -> String {
    let name = match request.method() {
        methods::TOOLS_CALL | methods::PROMPTS_GET => request.value.pointer("/params/name"),
        methods::RESOURCES_READ => request.value.pointer("/params/uri"),
        _ => None,
    };
    name.and_then(Value::as_str).map_or_else(|| request.method().to_owned(), |name| format!("{} {name}", request.method()))
}

/// Nobody waited for the response to what was posted as it stands, or has an id of another client; and a subscription gets none while it lasts.
fn is_ordinary(request: &Request<'_>) -> bool {
    if request.method() == methods::SUBSCRIPTIONS_LISTEN {
        return false;
    }
    request.id().as_str().is_none_or(|id| !id.starts_with(POSTED) && !id.starts_with("mcproof-"))
}

/// How a request failed inside of the server that got an answer.
fn failure(
    conversation: &ConversationView<'_>,
    request: &Request<'_>,
    (answer, frame): (&Value, FrameId),
    harmless: &BTreeSet<&str>,
) -> Option<Fate> {
    if let Some(failed) = failed(conversation, request) {
        return Some(failed);
    }
    if answer.pointer("/error/code").and_then(Value::as_i64) != Some(INTERNAL_ERROR) {
        return None;
    }
    let tool = request.value.pointer("/params/name").and_then(Value::as_str);
    let may_be_repeated = request.method() != methods::TOOLS_CALL || tool.is_some_and(|tool| harmless.contains(tool));
    // What the client answered may be to blame.
    (may_be_repeated && !has_asked(conversation, request.frame, frame) && conversation.cancellation_of(request.id()).is_none())
        .then_some(Fate::Errored)
}

/// With a status that says so. The body may have an error besides.
fn failed(conversation: &ConversationView<'_>, request: &Request<'_>) -> Option<Fate> {
    let exchange = request.exchange.and_then(|id| conversation.exchanges.get(&id)).filter(|_| conversation.is_over("http"));
    let status = exchange.and_then(HttpExchange::status).filter(|status| *status >= 500)?;
    (!conversation.is_throttled(&[request.frame])).then_some(Fate::Failed(status))
}

/// What became of a request without an answer; none if nothing tells.
fn fate(conversation: &ConversationView<'_>, request: &Request<'_>) -> Option<Fate> {
    let exchange = request.exchange.and_then(|id| conversation.exchanges.get(&id)).filter(|_| conversation.is_over("http"));
    if let Some(closed) = exchange.filter(|exchange| was_hung_up(exchange)) {
        return (!conversation.was_ended_by_client(closed, request.id())).then_some(Fate::Closed);
    }
    if exchange.is_some_and(|exchange| exchange.status().is_some_and(|status| status >= 400)) {
        return failed(conversation, request);
    }
    let canceled = conversation.cancellation_of(request.id()).map(|cancellation| cancellation.frame.id);
    let end = canceled.or_else(|| Some(exchange?.end?.0.id))?;
    // What is done with what the client responded may take its time.
    if has_asked(conversation, request.frame, end) {
        return None;
    }
    conversation.elapsed(request.frame, end).map(Fate::GivenUp)
}

/// Whether the server sent a request between two frames.
fn has_asked(conversation: &ConversationView<'_>, begin: FrameId, end: FrameId) -> bool {
    conversation.from_server().any(|message| message.is_request() && message.frame.id > begin && message.frame.id < end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_analysis::example;

    #[test]
    fn one_loss_counts_if_later_requests_overtook_it() {
        let sent = |id: u32| {
            format!(
                "> {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"a\",\"arguments\":{{\"b\":\"{id}\"}}}}}}\n"
            )
        };
        let came = |id: u32| format!("~ 5\n< {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n");
        let canceled = |id: u32| {
            format!("~ 700\n> {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id}}}}}\n")
        };
        let check = |text: &str, expected: bool| {
            let take = example::read(text, "stdio", "2025-11-25");
            assert_eq!(gap(&[ConversationView::new(&take)], &[]).is_some(), expected, "{text}");
        };
        check(&(sent(1) + &came(1) + &sent(2) + &sent(3) + &came(3) + &canceled(2)), true);
        // What is slow at its first call, or while nothing else is served.
        check(&(sent(2) + &sent(3) + &came(3) + &canceled(2)), false);
        check(&(sent(1) + &came(1) + &sent(2) + &canceled(2) + &sent(3) + &came(3)), false);
        check(&(sent(1) + &came(1) + &sent(2) + &sent(3) + &came(3) + "~ 100\n" + &came(2)), false);
        // What is slow now and then: another call took nearly as long.
        let patient = sent(4).replace("\"b\":\"4\"", "\"b\":4") + "~ 8000\n" + &came(4);
        let lost = sent(1) + &came(1) + &sent(2) + &sent(3) + &came(3) + "~ 5000\n" + &canceled(2);
        check(&lost, true);
        check(&(lost.clone() + &patient), true);
        check(&(lost + "@ call-slow-at-times a\n" + &patient), false);
    }
}
