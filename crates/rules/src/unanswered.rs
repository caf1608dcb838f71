//! Ordinary requests that were given up or lost, although the server has answered the very same request at other times. One of them alone
//! says nothing: a tool may take as long as it likes, and a network loses a connection. Nor do several at a time: a machine may pause.

use super::ConversationView;
use super::answers::{Pairing, Request, first_abuse};
use super::lifecycle::was_hung_up;
use mcproof_analysis::named;
use mcproof_analysis::probes::POSTED;
use mcproof_protocol::methods;
use mcproof_record::duration::readable;
use mcproof_record::{FrameId, Gap, GapKind};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Losses at so many times make a gap.
const LEAST: usize = 2;
/// How long a request is waited for at least, and how many times as long as for the slowest response to the same one.
const LEAST_WAIT: Duration = Duration::from_millis(700);
const TIMES: u32 = 10;

/// A request that is like another one: its method, and its params without `_meta`. Which text a tool gets makes no difference; a number
/// may be how long something takes.
type Kind = (String, String);

struct Lost {
    conversation: usize,
    subject: String,
    /// Since the start of the conversation.
    sent: Duration,
    /// Until it was given up; none if its connection was closed.
    waited: Option<Duration>,
}

/// That what was answered at other times was not.
pub(super) fn gap(conversations: &[ConversationView<'_>]) -> Option<Gap> {
    let (mut slowest, mut lost) = (BTreeMap::<Kind, Duration>::new(), Vec::<(Kind, Lost)>::new());
    for (index, conversation) in conversations.iter().enumerate() {
        let (pairing, end) = (Pairing::of(conversation), first_abuse(conversation));
        for (position, request) in pairing.requests.iter().enumerate().filter(|(_, request)| end.is_none_or(|end| request.frame < end)) {
            if let Some(took) = pairing.answer_to(position).and_then(|answer| conversation.elapsed(request.frame, answer.frame)) {
                let known = slowest.entry(kind(request)).or_default();
                *known = (*known).max(took);
            } else if is_ordinary(request)
                && let Some(waited) = fate(conversation, request)
            {
                let sent = conversation.elapsed(FrameId(0), request.frame).unwrap_or_default();
                lost.push((kind(request), Lost { conversation: index, subject: subject(request), sent, waited }));
            }
        }
    }
    lost.retain(|(kind, lost)| {
        slowest.get(kind).is_some_and(|took| lost.waited.is_none_or(|waited| waited >= LEAST_WAIT && waited >= *took * TIMES))
    });
    let (_, first) = lost.first().filter(|_| times(&lost) >= LEAST)?;
    let subjects: Vec<String> = lost.iter().map(|(_, lost)| lost.subject.clone()).collect::<BTreeSet<_>>().into_iter().collect();
    let took = lost.iter().filter_map(|(kind, _)| slowest.get(kind)).max()?;
    let closed = lost.iter().filter(|(_, lost)| lost.waited.is_none()).count();
    let how = match closed {
        0 => "got no response",
        _ if closed == lost.len() => "had their connection closed without a response",
        _ => "got no response, or had their connection closed",
    };
    let message =
        format!("{} requests ({}) {how}, although others like them got one within {}", lost.len(), named(&subjects), readable(*took));
    let hint =
        "look for what is used up: a connection, a lock or a place in a queue that a handler does not give back; or a worker that crashes";
    Some(Gap { kind: GapKind::NotJudged, message, hint: hint.into(), conversation: Some(first.conversation) })
}

/// How many of the losses were not under way at the same time as the one before. Those of a conversation are in the order of their requests.
fn times(lost: &[(Kind, Lost)]) -> usize {
    let mut under_way: Option<(usize, Duration)> = None;
    let begins = lost.iter().filter(|(_, lost)| {
        let end = lost.sent + lost.waited.unwrap_or_default();
        let overlaps = under_way.is_some_and(|(conversation, until)| conversation == lost.conversation && lost.sent < until);
        under_way = Some((lost.conversation, under_way.filter(|_| overlaps).map_or(end, |(_, until)| until.max(end))));
        !overlaps
    });
    begins.count()
}

fn kind(request: &Request<'_>) -> Kind {
    let mut params = request.value["params"].clone();
    if let Some(members) = params.as_object_mut() {
        members.remove("_meta");
    }
    let arguments = params.get_mut("arguments").filter(|_| request.method() == methods::TOOLS_CALL).and_then(Value::as_object_mut);
    arguments.into_iter().flat_map(|arguments| arguments.values_mut()).filter(|value| value.is_string()).for_each(|text| *text = "".into());
    let params = if params.as_object().is_none_or(serde_json::Map::is_empty) { String::new() } else { params.to_string() };
    (request.method().to_owned(), params)
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

/// How long an unanswered request was waited for, or `Some(None)` if its connection was closed; none if nothing tells.
fn fate(conversation: &ConversationView<'_>, request: &Request<'_>) -> Option<Option<Duration>> {
    let exchange = request.exchange.and_then(|id| conversation.exchanges.get(&id)).filter(|_| conversation.is_over("http"));
    if exchange.is_some_and(was_hung_up) {
        return Some(None);
    }
    if exchange.is_some_and(|exchange| exchange.status().is_some_and(|status| status >= 400)) {
        return None;
    }
    let canceled = conversation
        .from_client()
        .find(|message| message.method() == Some(methods::notifications::CANCELLED) && message.param("/requestId") == Some(request.id()));
    let end = canceled.map(|message| message.frame.id).or_else(|| Some(exchange?.end?.0.id));
    conversation.elapsed(request.frame, end?).map(Some)
}
