//! Ordinary requests that were given up, lost or failed by the server, although the server has answered the very same request at other times. One of them alone
//! says nothing: a tool may take as long as it likes, and a network loses a connection. Nor do several at a time: a machine may pause.

use super::ConversationView;
use super::answers::{Pairing, Request, first_abuse};
use super::causes::GOES_ON;
use super::lifecycle::was_hung_up;
use mcproof_analysis::probes::POSTED;
use mcproof_analysis::{HttpExchange, named};
use mcproof_protocol::methods;
use mcproof_record::duration::readable;
use mcproof_record::{FrameId, Gap, GapKind, Judged, RuleResult};
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
    fate: Fate,
}

#[derive(Clone, Copy)]
enum Fate {
    /// Given up after so long.
    GivenUp(Duration),
    /// Its connection was closed.
    Closed,
    /// An HTTP status by which the server says that it failed.
    Failed(u16),
}

impl Fate {
    fn waited(self) -> Duration {
        match self {
            Self::GivenUp(waited) => waited,
            Self::Closed | Self::Failed(_) => Duration::ZERO,
        }
    }
}

/// That what was answered at other times was not. `results`: of the rules, one of which tells of requests of many kinds that fail.
pub(super) fn gap(conversations: &[ConversationView<'_>], results: &[RuleResult]) -> Option<Gap> {
    let failures_are_told = results.iter().any(|result| result.rule == GOES_ON && matches!(result.judged, Judged::Broken { .. }));
    let (mut slowest, mut lost) = (BTreeMap::<Kind, Duration>::new(), Vec::<(Kind, Lost)>::new());
    for (index, conversation) in conversations.iter().enumerate() {
        let (pairing, end) = (Pairing::of(conversation), first_abuse(conversation));
        for (position, request) in pairing.requests.iter().enumerate().filter(|(_, request)| end.is_none_or(|end| request.frame < end)) {
            let fate = fate(conversation, request).filter(|_| is_ordinary(request));
            let took = pairing.answer_to(position).and_then(|answer| conversation.elapsed(request.frame, answer.frame));
            match (took, fate) {
                // A failure may have a body with an error.
                (None, Some(fate)) | (Some(_), Some(fate @ Fate::Failed(_))) => {
                    let sent = conversation.elapsed(FrameId(0), request.frame).unwrap_or_default();
                    lost.push((kind(request), Lost { conversation: index, subject: subject(request), sent, fate }));
                }
                (Some(took), _) => {
                    let known = slowest.entry(kind(request)).or_default();
                    *known = (*known).max(took);
                }
                (None, None) => {}
            }
        }
    }
    lost.retain(|(kind, lost)| {
        slowest.get(kind).is_some_and(|took| match lost.fate {
            Fate::GivenUp(waited) => waited >= LEAST_WAIT && waited >= *took * TIMES,
            Fate::Closed => true,
            Fate::Failed(_) => !failures_are_told,
        })
    });
    let (_, first) = lost.first().filter(|_| times(&lost) >= LEAST)?;
    let subjects: Vec<String> = lost.iter().map(|(_, lost)| lost.subject.clone()).collect::<BTreeSet<_>>().into_iter().collect();
    let took = lost.iter().filter_map(|(kind, _)| slowest.get(kind)).max()?;
    let mut how = BTreeSet::new();
    for (_, lost) in &lost {
        how.insert(match lost.fate {
            Fate::GivenUp(_) => "got no response".to_owned(),
            Fate::Closed => "had their connection closed without a response".to_owned(),
            Fate::Failed(status) => format!("got status {status}"),
        });
    }
    let how = how.into_iter().collect::<Vec<_>>().join(", or ");
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
        let end = lost.sent + lost.fate.waited();
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

/// What became of a request without a result; none if nothing tells.
fn fate(conversation: &ConversationView<'_>, request: &Request<'_>) -> Option<Fate> {
    let exchange = request.exchange.and_then(|id| conversation.exchanges.get(&id)).filter(|_| conversation.is_over("http"));
    if exchange.is_some_and(was_hung_up) {
        return Some(Fate::Closed);
    }
    if let Some(status) = exchange.and_then(HttpExchange::status).filter(|status| *status >= 400) {
        let is_own = status >= 500 && !conversation.is_throttled(&[request.frame]);
        return is_own.then_some(Fate::Failed(status));
    }
    let canceled = conversation
        .from_client()
        .find(|message| message.method() == Some(methods::notifications::CANCELLED) && message.param("/requestId") == Some(request.id()));
    let end = canceled.map(|message| message.frame.id).or_else(|| Some(exchange?.end?.0.id));
    conversation.elapsed(request.frame, end?).map(Fate::GivenUp)
}
