//! Matches the responses of the server to the requests of the client, also if an id is wrong or missing; and finds what ended a conversation.
//! Interprets, but judges nothing.

use super::robustness::UNREADABLE;
use super::rule_definition::Violation;
use mcproof_analysis::is_error_response;
use mcproof_analysis::probes::{BESIDE, BESIDE_STREAM, KEPT_CONNECTION, POSTED};
use mcproof_analysis::stdout_lines::is_blank;
use mcproof_analysis::wording::shortened;
use mcproof_analysis::{ConversationView, HttpExchange, WireMessage, read_json};
use mcproof_protocol::{error_code::METHOD_NOT_FOUND, methods};
use mcproof_record::{Direction, ExchangeId, Frame, FrameBody, FrameId, Opened, ProbeOutcome, Probed};
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Requests and answers of one conversation, matched.
pub(super) struct Pairing<'c> {
    pub(super) requests: Vec<Request<'c>>,
    pub(super) replies: Vec<ServerResponse<'c>>,
    /// The first reply to each request, whatever its id.
    first_replies: Vec<Option<usize>>,
}

/// A request of ours.
pub(super) struct Request<'c> {
    pub(super) value: &'c Value,
    pub(super) frame: FrameId,
    pub(super) exchange: Option<ExchangeId>,
}

/// An answer of the server, be it in an array of several.
pub(super) struct ServerResponse<'c> {
    pub(super) value: &'c Value,
    /// Its own id; that of the value may be another one's, see [`WireMessage::value`].
    pub(super) id: Option<&'c Value>,
    pub(super) frame: FrameId,
    pub(super) exchange: Option<ExchangeId>,
    pub(super) meaning: Meaning,
}

/// What an answer is about. Requests are positions in [`Pairing::requests`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Response {
        request: usize,
    },
    /// It has the id of a request that was answered before, on the same channel.
    Again {
        request: usize,
    },
    /// It can only be meant for this request, which has another id.
    WrongId {
        request: usize,
    },
    /// Without an id, upon a notification.
    OfNotification {
        notification: FrameId,
    },
    /// It may be about something that could not be read, refuse an HTTP request as a whole, or be a copy on another stream.
    Excused,
    /// Nobody asked.
    Stray,
}

/// A message of the server: one value of the wire, or one of an array of them.
#[derive(Clone, Copy)]
pub(super) struct ServerMessage<'c> {
    pub(super) value: &'c Value,
    /// Its own id; that of the value may be another one's, see [`WireMessage::value`].
    pub(super) id: Option<&'c Value>,
    pub(super) frame: FrameId,
    pub(super) exchange: Option<ExchangeId>,
}

impl ServerMessage<'_> {
    pub(super) fn method(&self) -> Option<&str> {
        self.value.get("method")?.as_str()
    }

    pub(super) fn is_request(&self) -> bool {
        self.method().is_some() && self.id.is_some()
    }

    pub(super) fn is_answer(&self) -> bool {
        self.value.get("method").is_none() && ["result", "error", "id"].iter().any(|key| self.value.get(key).is_some())
    }
}

/// Messages of the server, those of an array one by one. What is only JSON (a log, a body beside the protocol) is none.
pub(super) fn messages<'c>(conversation: &'c ConversationView<'_>) -> impl Iterator<Item = ServerMessage<'c>> {
    let asking: BTreeSet<ExchangeId> = {
        let attempt = conversation.from_client().filter(|attempt| each(&attempt.value).any(is_message));
        attempt.filter_map(|attempt| attempt.exchange).collect()
    };
    let wire_message = conversation.from_server().filter(move |wire_message| carries_messages(conversation, &asking, wire_message));
    wire_message
        .flat_map(|wire_message| {
            let (frame, exchange) = (wire_message.frame.id, wire_message.exchange);
            each(&wire_message.value).map(move |value| {
                let id = if wire_message.value.is_array() { value.get("id") } else { wire_message.id() };
                ServerMessage { value, id, frame, exchange }
            })
        })
        .filter(|server_message| is_message(server_message.value))
}

/// Whether a value claims to be a message.
pub(super) fn is_message(value: &Value) -> bool {
    let has = |key: &str| value.get(key).is_some();
    let notifies = || value.get("method").and_then(Value::as_str).is_some_and(|method| method.starts_with("notifications/"));
    has("jsonrpc") || has("id") && (has("method") || has("result") || has("error")) || notifies()
}

/// The value, or those in it if it is an array.
pub(super) fn each(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice).iter()
}

/// Over HTTP messages are events, and bodies that answer messages, as the exchanges that are `asking` have. A refusal may say
/// what it likes.
fn carries_messages(conversation: &ConversationView<'_>, asking: &BTreeSet<ExchangeId>, wire_message: &WireMessage<'_>) -> bool {
    let Some(exchange) = wire_message.exchange.and_then(|id| conversation.exchanges.get(&id)) else { return true };
    if matches!(wire_message.frame.body, FrameBody::SseEvent { .. }) {
        return true;
    }
    let is_refusal = exchange.status().is_some_and(|status| status >= 400);
    asking.contains(&exchange.id) && (!is_refusal || is_error_response(&wire_message.value))
}

impl<'c> Pairing<'c> {
    pub(super) fn of(conversation: &'c ConversationView<'_>) -> Self {
        let (mut requests, mut notifications) = (Vec::new(), Vec::new());
        for wire_message in conversation.from_client() {
            for value in each(&wire_message.value).filter(|value| value.get("method").is_some()) {
                let (frame, exchange) = (wire_message.frame.id, wire_message.exchange);
                match value.get("id") {
                    Some(_) => requests.push(Request { value, frame, exchange }),
                    None => notifications.push((frame, exchange)),
                }
            }
        }
        let replies = messages(conversation).filter(ServerMessage::is_answer);
        let mut replies: Vec<ServerResponse<'c>> = replies
            .map(|ServerMessage { value, id, frame, exchange }| ServerResponse { value, id, frame, exchange, meaning: Meaning::Stray })
            .collect();
        let mut answered: Vec<Option<usize>> = vec![None; requests.len()];
        let exchanges: Vec<Option<ExchangeId>> = replies.iter().map(|reply| reply.exchange).collect();
        let mut by_id: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, request) in requests.iter().enumerate() {
            by_id.entry(request.id().to_string()).or_default().push(index);
        }
        for (index, reply) in replies.iter_mut().enumerate() {
            let earlier = |request: usize| answered[request].map(|earlier: usize| exchanges[earlier]);
            let same = reply.id.and_then(|id| by_id.get(&id.to_string()));
            let Some(meaning) = same.and_then(|same| meaning_by_id(&requests, same, reply, earlier)) else { continue };
            if let Meaning::Response { request } = meaning {
                answered[request] = Some(index);
            }
            reply.meaning = meaning;
        }
        let unreadable = first_unreadable(conversation);
        let blank = first_blank_line(conversation);
        let guess = Inference { conversation, requests: &requests, notifications: &notifications, unreadable, blank };
        for (index, reply) in replies.iter_mut().enumerate().filter(|(_, reply)| reply.meaning == Meaning::Stray) {
            // What it answers may be among the frames that were not kept.
            let meaning = match conversation.conversation.transcript.dropped {
                0 => guess.meaning(reply, &answered),
                _ => Meaning::Excused,
            };
            if let Meaning::WrongId { request } = meaning {
                answered[request] = Some(index);
            }
            reply.meaning = meaning;
        }
        let mut first_replies = vec![None; requests.len()];
        for (index, reply) in replies.iter().enumerate().rev() {
            if let Meaning::Response { request } | Meaning::WrongId { request } = reply.meaning {
                first_replies[request] = Some(index);
            }
        }
        Self { requests, replies, first_replies }
    }

    /// The answer to a request, whatever its id.
    pub(super) fn answer_to(&self, request: usize) -> Option<&ServerResponse<'c>> {
        Some(&self.replies[(*self.first_replies.get(request)?)?])
    }

    /// Whether there are answers that fit no request, so that what is missing may be among them.
    pub(super) fn is_off(&self) -> bool {
        self.replies.iter().any(|reply| matches!(reply.meaning, Meaning::WrongId { .. } | Meaning::Stray))
    }

    /// Whether an answer that fits nothing may have been meant for this request.
    pub(super) fn may_be_missing(&self, request: &Request<'_>, by_exchange: bool) -> bool {
        let fits_nothing =
            |reply: &&ServerResponse<'_>| matches!(reply.meaning, Meaning::Excused | Meaning::Stray | Meaning::WrongId { .. });
        let is_near =
            |reply: &ServerResponse<'_>| if by_exchange { reply.exchange == request.exchange } else { reply.frame > request.frame };
        self.replies.iter().filter(fits_nothing).any(is_near)
    }

    /// Requests whose frame is in the range of a probe.
    pub(super) fn within(&self, first: FrameId, end: FrameId) -> impl Iterator<Item = (usize, &Request<'c>)> {
        self.requests.iter().enumerate().filter(move |(_, request)| first <= request.frame && request.frame < end)
    }
}

impl Request<'_> {
    pub(super) fn id(&self) -> &Value {
        &self.value["id"]
    }

    pub(super) fn method(&self) -> &str {
        self.value["method"].as_str().unwrap_or_default()
    }
}

impl ServerResponse<'_> {
    pub(super) fn id(&self) -> &Value {
        self.id.unwrap_or(&Value::Null)
    }
}

/// What the id of a reply says, from the requests that have it; an id that is missing or unknown says nothing. `earlier` tells
/// which exchange, if any, brought the answer that a request has already.
fn meaning_by_id(
    requests: &[Request<'_>],
    same: &[usize],
    reply: &ServerResponse<'_>,
    earlier: impl Fn(usize) -> Option<Option<ExchangeId>>,
) -> Option<Meaning> {
    let same: Vec<usize> = same.iter().copied().filter(|request| requests[*request].frame < reply.frame).collect();
    let open = || same.iter().copied().filter(|request| earlier(*request).is_none());
    let own = open().find(|request| reply.exchange.is_some() && requests[*request].exchange == reply.exchange);
    if let Some(request) = own.or_else(|| open().next()) {
        return Some(Meaning::Response { request });
    }
    let request = *same.last()?;
    // An HTTP response belongs to the request that it responds to, whatever its id says.
    let carries_other = |index: usize| reply.exchange.is_some() && requests[index].exchange == reply.exchange && !same.contains(&index);
    if earlier(request) != Some(reply.exchange) && (0..requests.len()).any(carries_other) {
        return None;
    }
    Some(if earlier(request) == Some(reply.exchange) { Meaning::Again { request } } else { Meaning::Excused })
}

/// The exchange whose stream another one takes up where it broke off (2025-03-26 to 2025-11-25, transports, resumability), or itself.
pub(super) fn taken_up(conversation: &ConversationView<'_>, exchange: ExchangeId) -> ExchangeId {
    /// A stream may break off again and again.
    const MOST: usize = 20;
    let mut current = exchange;
    for _ in 0..MOST {
        let last = conversation.exchanges.get(&current).and_then(|resumed| resumed.request_header("last-event-id"));
        let Some(last) = last.filter(|last| !last.is_empty()) else { break };
        let is_last = |frame: &&Frame| matches!(&frame.body, FrameBody::SseEvent { id: Some(id), .. } if id == last);
        let mut earlier = conversation.exchanges.range(..current).map(|(_, earlier)| earlier);
        let Some(earlier) = earlier.rfind(|earlier| earlier.events.iter().any(is_last)) else { break };
        current = earlier.id;
    }
    current
}

/// What is known if an id identifies no request.
struct Inference<'c, 'a, 'r> {
    conversation: &'c ConversationView<'a>,
    requests: &'r [Request<'c>],
    notifications: &'r [(FrameId, Option<ExchangeId>)],
    unreadable: Option<FrameId>,
    /// A blank line is no message: an error that answers it has no id.
    blank: Option<FrameId>,
}

impl Inference<'_, '_, '_> {
    fn meaning(&self, reply: &ServerResponse<'_>, answered: &[Option<usize>]) -> Meaning {
        let exchange = reply.exchange.and_then(|id| self.conversation.exchanges.get(&id));
        let has_id = !reply.id().is_null();
        let is_refused = |exchange: &HttpExchange<'_>| exchange.status().is_some_and(|status| status >= 400);
        if !has_id && exchange.is_some_and(|exchange| is_refused(exchange) && !self.names_method(exchange, reply)) {
            return Meaning::Excused;
        }
        let before = |frame: FrameId| frame < reply.frame;
        // What we sent may have been read in ways that we do not see, id and all. The response to a POST rests on that POST alone.
        let is_unreadable = match exchange.filter(|exchange| self.conversation.is_over("http") && exchange.method == "POST") {
            Some(exchange) => self.is_unreadable(exchange),
            None => self.unreadable.is_some_and(before),
        };
        if is_unreadable || !has_id && self.blank.is_some_and(before) {
            return Meaning::Excused;
        }
        // A subscription is not answered as long as it lasts.
        let lasts = |request: usize| self.requests[request].method() == methods::SUBSCRIPTIONS_LISTEN;
        let is_cancelled = |request: usize| {
            let id = self.requests[request].value.get("id");
            let mut cancellations =
                self.conversation.from_client().filter(|wire_message| wire_message.method() == Some(methods::notifications::CANCELLED));
            cancellations.any(|wire_message| before(wire_message.frame.id) && wire_message.param("/requestId") == id)
        };
        let open = |request: &usize| {
            answered[*request].is_none() && before(self.requests[*request].frame) && !lasts(*request) && !is_cancelled(*request)
        };
        if self.conversation.is_over("http") {
            if exchange.is_some_and(|exchange| self.conversation.was_cut(exchange)) {
                return Meaning::Excused;
            }
            let own = reply.exchange.map(|exchange| taken_up(self.conversation, exchange));
            let mut carried = (0..self.requests.len()).filter(|request| self.requests[*request].exchange == own);
            return match carried.find(open) {
                Some(request) => Meaning::WrongId { request },
                // An answer to a notification is another law over HTTP: its response has to be empty.
                None if self.notifications.iter().any(|(_, exchange)| *exchange == reply.exchange) => Meaning::Excused,
                None => Meaning::Stray,
            };
        }
        let notification = self.notifications.iter().rfind(|(frame, _)| before(*frame)).map(|(frame, _)| *frame);
        let last_request = self.requests.iter().rfind(|request| before(request.frame)).map(|request| request.frame);
        let pending = (0..self.requests.len()).rfind(open);
        // Over HTTP+SSE the answer to what was only posted may come when nobody listens any more, or be this one.
        let is_posted = |request: usize| self.requests[request].id().as_str().is_some_and(|id| id.starts_with(POSTED));
        if pending.is_some_and(is_posted) {
            return Meaning::Excused;
        }
        match (pending, notification) {
            (_, Some(notification)) if !has_id && Some(notification) > last_request => Meaning::OfNotification { notification },
            (Some(request), _) => Meaning::WrongId { request },
            (None, Some(notification)) if !has_id => Meaning::OfNotification { notification },
            _ => Meaning::Stray,
        }
    }
}

impl Inference<'_, '_, '_> {
    /// Whether a server may fail to find the id in the body of a request.
    fn is_unreadable(&self, exchange: &HttpExchange<'_>) -> bool {
        serde_json::from_slice::<IgnoredAny>(exchange.request_body).is_err()
            || self.conversation.is_within(exchange.request.id, &UNREADABLE)
    }

    /// Whether a refusal shows that the request was read, so that its id is known: in the modern era 404 and -32601 mean that the
    /// method does not exist. Elsewhere than at the endpoint they may mean that nothing is there.
    fn names_method(&self, exchange: &HttpExchange<'_>, reply: &ServerResponse<'_>) -> bool {
        let endpoint = self.conversation.exchanges.values().find(|known| known.method == "POST").map(|known| known.url);
        let code = reply.value.pointer("/error/code").and_then(Value::as_i64);
        self.conversation.is_modern() && exchange.status() == Some(404) && code == Some(METHOD_NOT_FOUND) && endpoint == Some(exchange.url)
    }
}

/// The first message that was sent and that a server may fail to read: it cannot give back an id that it has not found.
fn first_unreadable(conversation: &ConversationView<'_>) -> Option<FrameId> {
    let sent = conversation.frames().iter().filter(|frame| frame.direction == Direction::ToServer);
    let mut bodies = sent.filter_map(|frame| match &frame.body {
        FrameBody::Line { bytes, .. } | FrameBody::HttpRequest { body: bytes, .. } => Some((frame.id, bytes.as_bytes())),
        _ => None,
    });
    let garbled = bodies.find(|(_, bytes)| !bytes.trim_ascii().is_empty() && serde_json::from_slice::<Value>(bytes).is_err());
    let strange =
        conversation.conversation.probes.iter().find(|probed| UNREADABLE.contains(&probed.probe.as_str())).map(|probed| probed.first);
    [garbled.map(|(frame, _)| frame), strange].into_iter().flatten().min()
}

fn first_blank_line(conversation: &ConversationView<'_>) -> Option<FrameId> {
    let mut sent = conversation.frames().iter().filter(|frame| frame.direction == Direction::ToServer);
    let blank = sent.find(|frame| matches!(&frame.body, FrameBody::Line { bytes, .. } if bytes.as_bytes().trim_ascii().is_empty()));
    blank.map(|frame| frame.id)
}

/// Where a client began to send what a server has to survive: probes after which somebody looked whether it is still there,
/// and bodies over HTTP that may not be readable. What comes of that is judged by rules of its own.
pub(super) fn first_abuse(conversation: &ConversationView<'_>) -> Option<FrameId> {
    let is_abuse = |probe: &str| is_looked_after(conversation, probe) || CARELESS_BODIES.contains(&probe);
    conversation.conversation.probes.iter().find(|probed| is_abuse(&probed.probe)).map(|probed| probed.first)
}

fn is_looked_after(conversation: &ConversationView<'_>, probe: &str) -> bool {
    conversation.conversation.probes.iter().any(|probed| probed.probe.strip_suffix("-after") == Some(probe))
}

/// Whether a server ended after a message that it has to survive, which another rule reports.
pub(super) fn died_of_abuse(conversation: &ConversationView<'_>, death: &UnexpectedEnd) -> bool {
    let is_careless = |probed: &Probed| CARELESS_BODIES.contains(&probed.probe.as_str()) || CANCEL_NOTHING.contains(&probed.probe.as_str());
    let mut before = conversation.conversation.probes.iter().filter(|probed| probed.first <= death.frame);
    // That the connection is gone may be seen before what it means.
    let is_end =
        |probed: &Probed| is_looked_after(conversation, &probed.probe) || is_careless(probed) && probed.outcome == ProbeOutcome::Gone;
    before.clone().next_back().is_some_and(is_careless) || before.any(is_end)
}

/// Something that the server wrote and that no client can read as a message, so that whatever it was meant for is missing.
pub(super) fn garbled(conversation: &ConversationView<'_>) -> Option<FrameId> {
    let is_json = |bytes: &[u8]| read_json(bytes).is_ok_and(|value| value.is_some_and(|value| value.is_object() || value.is_array()));
    let unread = |frame: &&Frame| match &frame.body {
        FrameBody::Line { bytes, unterminated } => *unterminated || !(is_blank(bytes.as_bytes()) || is_json(bytes.as_bytes())),
        FrameBody::SseEvent { event: Some(name), .. } if name != "message" => false,
        FrameBody::SseEvent { data: Some(data), .. } => !(data.as_bytes().is_empty() || is_json(data.as_bytes())),
        FrameBody::SseEvent { bytes, data: None, .. } => {
            let is_field = |line: &[u8]| [b":".as_slice(), b"id:", b"retry:", b"event:"].iter().any(|field| line.starts_with(field));
            let lines = || bytes.as_bytes().split(|byte| matches!(byte, b'\n' | b'\r')).filter(|line| !line.is_empty());
            !lines().all(is_field)
        }
        FrameBody::HttpBody { bytes, exchange } => {
            let is_answer = |exchange: &HttpExchange<'_>| exchange.method == "POST" && exchange.status() == Some(200);
            let is_empty = is_blank(bytes.as_bytes());
            conversation.exchanges.get(exchange).is_some_and(is_answer) && !is_empty && !is_json(bytes.as_bytes())
        }
        _ => false,
    };
    conversation.frames().iter().filter(|frame| frame.direction == Direction::FromServer).find(unread).map(|frame| frame.id)
}

/// Probes over HTTP of what is sent in the same way where it is looked after: bodies that are no message, or none of this
/// revision.
const CARELESS_BODIES: [&str; 4] = ["malformed-body", "large-body", "http-batch", "null-id"];
/// The same, of a cancellation of what was never asked.
const CANCEL_NOTHING: [&str; 3] = [KEPT_CONNECTION, BESIDE, BESIDE_STREAM];

/// The end of a conversation that the server made, before we did.
pub(super) struct UnexpectedEnd {
    pub(super) frame: FrameId,
    /// `the process ended with code 3`
    pub(super) how: String,
}

/// `None` where the conversation lasted until we ended it, and where it never began.
pub(super) fn death(conversation: &ConversationView<'_>) -> Option<UnexpectedEnd> {
    if matches!(conversation.conversation.opened, Opened::No { .. } | Opened::OtherEra) {
        return None;
    }
    let stream = || conversation.exchanges.values().find(|exchange| exchange.method == "GET").filter(|_| conversation.is_over("sse"));
    let lived = conversation.frames().iter().take_while(|frame| !is_end_of_ours(frame));
    let ends = lived.filter_map(|frame| {
        let how = match &frame.body {
            FrameBody::Exited { code, signal } => format!("the process ended {}", how_it_exited(*code, *signal)),
            FrameBody::Closed { .. } => "it closed its stdout".into(),
            FrameBody::HttpEnd { exchange, .. } if stream().is_some_and(|stream| stream.id == *exchange) => "it ended its stream".into(),
            _ => return None,
        };
        Some((matches!(frame.body, FrameBody::Exited { .. }), UnexpectedEnd { frame: frame.id, how }))
    });
    // A process that ends closes its pipes a moment before: its exit is the better evidence.
    let (mut exits, mut others): (Vec<_>, Vec<_>) = ends.partition(|(is_exit, _)| *is_exit);
    exits.append(&mut others);
    exits.into_iter().next().map(|(_, death)| death).or_else(|| silent_http(conversation))
}

pub(super) fn how_it_exited(code: Option<i32>, signal: Option<i32>) -> String {
    match (code, signal) {
        (Some(code), _) => format!("with code {code}"),
        (None, Some(signal)) => format!("by signal {signal}"),
        (None, None) => "without a word".into(),
    }
}

/// Whether we ended the server here: what ends from then on ends because of that.
fn is_end_of_ours(frame: &Frame) -> bool {
    match &frame.body {
        FrameBody::Closed { pipe } => pipe == "stdin",
        FrameBody::Signalled { .. } => true,
        _ => false,
    }
}

/// After some request, no more responses arrived: the server is gone.
fn silent_http(conversation: &ConversationView<'_>) -> Option<UnexpectedEnd> {
    if !conversation.is_over("http") && !conversation.is_over("sse") {
        return None;
    }
    let failed = |exchange: &&HttpExchange<'_>| exchange.response.is_none() && exchange.end.is_some_and(|(_, why)| why.is_some());
    let end_of_ours = conversation.frames().iter().find(|frame| is_end_of_ours(frame)).map(|frame| frame.id);
    let in_time = |exchange: &&HttpExchange<'_>| {
        end_of_ours.is_none_or(|ours| exchange.request.id < ours && exchange.end.is_none_or(|(end, _)| end.id < ours))
    };
    let lived: Vec<_> = conversation.exchanges.values().filter(in_time).collect();
    let trailing: Vec<_> = lived.iter().rev().copied().take_while(failed).collect();
    let first = trailing.last().filter(|_| trailing.len() > 1 && trailing.len() < lived.len())?;
    let (frame, why) = first.end?;
    Some(UnexpectedEnd { frame: frame.id, how: format!("the server no longer responds ({})", why.unwrap_or_default()) })
}

/// Many of a kind as one, with the evidence of the first few.
pub(super) fn gathered(mut violations: Vec<Violation>) -> Vec<Violation> {
    const MOST_ALONE: usize = 3;
    if violations.len() > MOST_ALONE {
        let more = violations.len() - 1;
        let frames = violations.iter().take(MOST_ALONE).flat_map(|violation| violation.frames.clone()).collect();
        violations.truncate(1);
        violations[0].message += &format!(", and {more} more like it");
        violations[0].frames = frames;
    }
    violations
}

/// What ends a sentence about the first of several.
pub(super) fn and_so_did(more: usize) -> String {
    if more == 0 { String::new() } else { format!(", and so did {more} more") }
}

/// A value as it stands, not too long.
pub(super) fn shown(value: &Value) -> String {
    const MOST: usize = 80;
    shortened(&value.to_string(), MOST)
}
