//! Server-sent events: how a stream is written, and what stands in it.
//! Source: WHATWG HTML, server-sent events; 2024-11-05, basic/transports, HTTP with SSE; 2025-03-26 and later, Streamable HTTP.

use super::connections::{is_abandoned, unanswered_posts};
use super::rule_definition::{AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::{ConversationView, HttpExchange};
use mcproof_analysis::probes::LEGAL_FORM;
use mcproof_analysis::stdout_lines::{has_half_surrogate, is_blank};
use mcproof_analysis::wording::excerpt;
use mcproof_analysis::{USUAL_PROBES, WireMessage, has_escaped_line_end, read_json};
use mcproof_client::transport::EventView;
use mcproof_protocol::{Revision, methods};
use mcproof_record::{ExchangeId, Frame, FrameBody, FrameId, Opened};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use url::Url;

const STREAM_FORMAT: &[RequirementSource] = &[RequirementSource {
    revisions: revisions::ALL,
    level: RequirementLevel::Must,
    source: "https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream",
}];

const MESSAGES: &[RequirementSource] = &[
    RequirementSource {
        revisions: Revision::V2024_11_05..=Revision::V2024_11_05,
        level: RequirementLevel::Must,
        source: "basic/transports#http-with-sse",
    },
    RequirementSource {
        revisions: revisions::SESSIONS,
        level: RequirementLevel::Must,
        source: "basic/transports#sending-messages-to-the-server",
    },
    RequirementSource {
        revisions: revisions::MODERN,
        level: RequirementLevel::Must,
        source: "basic/transports/streamable-http#receiving-messages",
    },
];

const SSE: &[RequirementSource] = &[RequirementSource {
    revisions: revisions::LEGACY,
    level: RequirementLevel::Must,
    source: "https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse",
}];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "sse-lines-are-fields-or-comments",
        area: Area::Events,
        requirement: "each line of an event stream is a field (`data`, `event`, `id`, `retry`) or a comment",
        sources: STREAM_FORMAT,
        on: AppliesTo::Web,
        judge: Judge::Each(content_is_fields),
        why: "clients ignore unknown lines, so a message without `data:` never arrives",
        remedy: "begin each line of a message with `data: `",
        ..Rule::DEFAULT
    },
    Rule {
        id: "sse-event-is-terminated",
        area: Area::Events,
        requirement: "an event ends with a blank line",
        sources: STREAM_FORMAT,
        on: AppliesTo::Web,
        judge: Judge::Each(event_is_terminated),
        why: "clients wait for the blank line: a message is lost, is merged with the next one, or comes with the next heartbeat only",
        remedy: "write two line feeds after the data of each event",
        ..Rule::DEFAULT
    },
    Rule {
        id: "sse-data-is-one-message",
        area: Area::Events,
        requirement: "the data of an event is one message",
        sources: MESSAGES,
        on: AppliesTo::Web,
        judge: Judge::Each(data_is_a_message),
        why: "clients parse all data as messages: some log an error for each heartbeat, some disconnect",
        remedy: "send heartbeats as comments (a line that begins with a colon), and each message as one event",
        ..Rule::DEFAULT
    },
    Rule {
        id: "sse-event-is-named-message",
        area: Area::Events,
        requirement: "an event with a message is named `message` or has no name",
        sources: MESSAGES,
        on: AppliesTo::Web,
        judge: Judge::Each(event_is_named_message),
        why: "clients listen for `message` and ignore other names, so the request never gets its response",
        remedy: "leave out the `event` field, or write `event: message`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "sse-is-utf8",
        area: Area::Events,
        requirement: "an event stream is UTF-8",
        sources: STREAM_FORMAT,
        on: AppliesTo::Web,
        judge: Judge::Each(is_utf8),
        why: "in another encoding, characters are wrong or the message cannot be read",
        remedy: "encode the stream as UTF-8, regardless of the locale",
        sdks: &[("Python", "`text.encode(\"utf-8\")`, never without an encoding")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "sse-ends-lines-with-lf",
        area: Area::Events,
        requirement: "the lines of an event stream end with a line feed alone",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Portability,
            source: "https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream",
        }],
        on: AppliesTo::Web,
        judge: Judge::Each(ends_lines_with_lf),
        why: "a carriage return before it is valid, but some clients search for two line feeds and never find them",
        remedy: "end lines with a line feed",
        sdks: &[("Python", "sse-starlette: `EventSourceResponse(…, sep=\"\\n\")`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "sse-resumable-stream-starts-with-id",
        area: Area::Events,
        requirement: "a resumable stream begins with an event that has an id and no data",
        sources: &[RequirementSource {
            revisions: Revision::V2025_11_25..=Revision::V2025_11_25,
            level: RequirementLevel::Should,
            source: "basic/transports#sending-messages-to-the-server",
        }],
        on: AppliesTo::Http,
        judge: Judge::Each(stream_is_primed),
        why: "a client whose connection breaks before the first message has no id to resume from, and loses the response",
        remedy: "send `id: …` with an empty `data:` as soon as a stream is opened, before the first message",
        ..Rule::DEFAULT
    },
    Rule {
        id: "sse-event-ids-are-unique",
        area: Area::Events,
        requirement: "no two events of a session have the same id",
        sources: &[RequirementSource {
            revisions: revisions::SESSIONS,
            level: RequirementLevel::Must,
            source: "basic/transports#resumability-and-redelivery",
        }],
        on: AppliesTo::Http,
        judge: Judge::Each(event_ids_are_unique),
        why: "a client resumes from the last id that it received; if another stream has the same id, it gets the wrong messages, or none",
        remedy: "include the stream in the id, for example a random name for each stream, followed by a counter",
        ..Rule::DEFAULT
    },
    Rule {
        id: "sse-resumed-stream-has-only-its-messages",
        area: Area::Events,
        requirement: "a stream that is resumed brings messages of that stream alone, and only those after the last event that the client names",
        sources: &[RequirementSource {
            revisions: revisions::SESSIONS,
            level: RequirementLevel::Must,
            source: "basic/transports#resumability-and-redelivery",
        }],
        on: AppliesTo::Http,
        judge: Judge::Each(resumed_stream_has_only_its_messages),
        why: "a client whose connection broke gets responses twice, or responses to requests of other streams",
        remedy: "store each event with its stream, and replay those of the stream of `Last-Event-ID` that came after it",
        ..Rule::DEFAULT
    },
    Rule {
        id: "sse-stream-ends-after-response",
        area: Area::Events,
        requirement: "the event stream of a request ends after the response",
        sources: &[
            RequirementSource {
                revisions: revisions::SESSIONS,
                level: RequirementLevel::Should,
                source: "basic/transports#sending-messages-to-the-server",
            },
            RequirementSource {
                revisions: revisions::MODERN,
                level: RequirementLevel::Should,
                source: "basic/transports/streamable-http#receiving-messages",
            },
        ],
        on: AppliesTo::Http,
        judge: Judge::Each(stream_ends_after_answer),
        why: "each request leaves an open connection behind, until the client or a proxy reaches its limit",
        remedy: "close the stream after writing the response",
        ..Rule::DEFAULT
    },
    Rule {
        id: "sse-endpoint-comes-first",
        area: Area::Events,
        requirement: "the first event of HTTP+SSE is named `endpoint`, and its data is the URL for messages",
        sources: SSE,
        on: AppliesTo::Sse,
        judge: Judge::Each(endpoint_comes_first),
        why: "a client that does not know where to send messages waits until its deadline",
        remedy: "send `event: endpoint` with the path for messages as the first event, as soon as the stream is open",
        ..Rule::DEFAULT
    },
    Rule {
        id: "sse-endpoint-has-same-origin",
        area: Area::Events,
        requirement: "the endpoint for messages has the same origin as the stream",
        sources: &[RequirementSource { revisions: revisions::LEGACY, level: RequirementLevel::Security, source: "" }],
        on: AppliesTo::Sse,
        judge: Judge::Each(endpoint_has_same_origin),
        why: "clients refuse an endpoint that would send messages and credentials to another server",
        remedy: "send a path without a host, or, behind a proxy, the host that clients use",
        ..Rule::DEFAULT
    },
    Rule {
        id: "sse-post-is-accepted",
        area: Area::Events,
        requirement: "the POST of a message gets a success status",
        sources: SSE,
        on: AppliesTo::Sse,
        judge: Judge::Each(post_is_accepted),
        why: "clients treat any other status as a failed request, regardless of the stream",
        remedy: "respond to the POST with 202 before handling the message, and send errors on the stream",
        ..Rule::DEFAULT
    },
];

const NO_STREAM: &str = "the server sent no event stream";

/// How long a stream may last after its answer.
const PATIENCE: Duration = Duration::from_millis(900);

/// An event with a comment at its end that came so much later than what was there before it was waiting for the comment.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// One event, read again from its bytes.
struct Read<'c, 'a> {
    frame: &'a Frame,
    exchange: &'c HttpExchange<'a>,
    bytes: &'a [u8],
    event: EventView<'a>,
}

impl Read<'_, '_> {
    fn data(&self) -> Option<&[u8]> {
        self.event.data.as_deref().filter(|data| !is_blank(data))
    }

    /// Whether it is the first one of HTTP+SSE.
    fn is_endpoint(&self) -> bool {
        self.event.name.as_deref() == Some("endpoint") && self.exchange.method == "GET"
    }

    /// The sizes of chunks have got into the content: what is wrong is wrong further below.
    fn is_chunk_debris(&self) -> bool {
        let is_size = |line: &&[u8]| !line.is_empty() && line.iter().all(u8::is_ascii_hexdigit);
        !self.event.unknown.is_empty() && self.event.unknown.iter().all(is_size)
    }
}

fn events<'c, 'a>(conversation: &'c ConversationView<'a>) -> Vec<Read<'c, 'a>> {
    let frames = conversation.exchanges.values().flat_map(|exchange| exchange.events.iter().map(move |frame| (exchange, *frame)));
    let mut read: Vec<Read<'c, 'a>> = frames
        .filter_map(|(exchange, frame)| {
            let FrameBody::SseEvent { bytes, .. } = &frame.body else { return None };
            Some(Read { frame, exchange, bytes: bytes.as_bytes(), event: EventView::of(bytes.as_bytes()) })
        })
        .collect();
    read.sort_by_key(|read| read.frame.id);
    read
}

/// What of an exchange no finding is needed for, because it broke off further below.
fn broke(exchange: &HttpExchange<'_>) -> bool {
    matches!(exchange.end, Some((_, Some(_))))
}

fn is_message(value: &Value) -> bool {
    match value {
        Value::Object(object) => ["method", "id", "result", "error"].iter().any(|key| object.contains_key(*key)),
        Value::Array(batch) => !batch.is_empty() && batch.iter().all(is_message),
        _ => false,
    }
}

fn holds_message(data: &[u8]) -> bool {
    let text = String::from_utf8_lossy(data);
    // One that holds too much to be read is one all the same.
    read_json(text.as_bytes()).is_ok_and(|value| value.map_or_else(|| text.trim_start().starts_with('{'), |value| is_message(&value)))
}

/// Several messages, each on a line of its own: events that have run into each other.
fn holds_messages(data: &[u8]) -> bool {
    let lines: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
    lines.len() > 1 && lines.iter().all(|line| holds_message(line))
}

/// One violation for all that is wrong in the same way.
fn together(wrong: &[(FrameId, String)], say: impl Fn(&str, usize) -> String) -> Judgment {
    const MOST_FRAMES: usize = 5;
    match wrong.first() {
        None => Judgment::Pass,
        Some((_, first)) => {
            Judgment::Broken(vec![Violation::new(say(first, wrong.len() - 1), wrong.iter().take(MOST_FRAMES).map(|(frame, _)| *frame))])
        }
    }
}

fn and_more(more: usize) -> String {
    if more == 0 { String::new() } else { format!(" (and {more} more)") }
}

fn content_is_fields(conversation: &ConversationView<'_>) -> Judgment {
    let events = events(conversation);
    if events.is_empty() {
        return Judgment::NotApplicable(NO_STREAM.into());
    }
    let wrong: Vec<_> = events
        .iter()
        .filter(|read| !read.is_chunk_debris())
        .filter_map(|read| Some((read.frame.id, excerpt(read.event.unknown.iter().find(|line| !is_ignored_by_all(line))?))))
        .collect();
    let escaped: Vec<_> =
        events.iter().filter(|read| has_escaped_line_end(read.bytes)).map(|read| (read.frame.id, excerpt(read.bytes))).collect();
    match wrong.is_empty() && !escaped.is_empty() {
        true => together(&escaped, |line, more| {
            format!("an event has a backslash and an `n` where a line has to end: `{line}`{}", and_more(more))
        }),
        false => together(&wrong, |line, more| format!("a line of an event stream is not a field: `{line}`{}", and_more(more))),
    }
}

/// Whether there are events in a response, and none of them has a message that can be read.
pub(super) fn has_unreadable_message(exchange: &HttpExchange<'_>) -> bool {
    let is_read = |frame: &&Frame| match &frame.body {
        FrameBody::SseEvent { bytes, .. } => {
            let event = EventView::of(bytes.as_bytes());
            let is_named = event.name.as_deref().is_none_or(|name| matches!(name, "" | "message"));
            is_named && !event.unfinished && event.data.as_deref().is_some_and(holds_message)
        }
        _ => false,
    };
    !exchange.events.is_empty() && !exchange.events.iter().any(is_read)
}

/// Whether a line is a field that the standard lets everybody ignore, or one of its own with a value that is ignored. What looks like a
/// message, or like a known field misspelt, is missed by somebody.
fn is_ignored_by_all(line: &[u8]) -> bool {
    const FIELDS: [&str; 4] = ["data", "event", "id", "retry"];
    let Some(colon) = memchr::memchr(b':', line) else { return false };
    let (name, value) = (String::from_utf8_lossy(&line[..colon]), &line[colon + 1..]);
    if FIELDS.contains(&name.as_ref()) {
        return true;
    }
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    // What is longer than the longest field by more than a character is none of them misspelt, and may be as long as an event.
    let is_short = name.len() <= FIELDS.map(str::len).into_iter().max().unwrap_or_default() + 1;
    let is_meant = is_short && FIELDS.iter().any(|field| strsim::damerau_levenshtein(field, &name.to_lowercase()) <= 1);
    is_name && !is_meant && !value.contains(&b'{')
}

fn event_is_terminated(conversation: &ConversationView<'_>) -> Judgment {
    let events = events(conversation);
    if events.is_empty() {
        return Judgment::NotApplicable(NO_STREAM.into());
    }
    let last = conversation.frames().last().map(|frame| frame.id);
    let wrong: Vec<_> = events
        .iter()
        .filter(|read| !broke(read.exchange) && read.event.unknown.is_empty())
        .filter(|read| {
            let is_unfinished = read.event.unfinished && read.data().is_some();
            // A stream that we closed may have been about to go on; not so one that a handshake was waited for in vain.
            let is_vain = matches!(conversation.conversation.opened, Opened::No { .. });
            let has_ended = is_vain || read.exchange.end.is_some() || last.is_none_or(|last| waited(conversation, read.frame.id, last));
            (is_unfinished && (has_ended || read.data().is_some_and(holds_message))) || read.data().is_some_and(holds_messages)
        })
        .map(|read| (read.frame.id, excerpt(read.data().unwrap_or_default())))
        .collect();
    let late: Vec<_> = events
        .iter()
        .filter(|read| read.data().is_some() && ends_with_comment(read.bytes))
        .filter(|read| conversation.since_previous_frame(read.frame.id).is_some_and(|elapsed| elapsed >= HEARTBEAT))
        .map(|read| (read.frame.id, excerpt(read.data().unwrap_or_default())))
        .collect();
    match wrong.is_empty() && !late.is_empty() {
        true => together(&late, |data, more| {
            format!("an event ends with the blank line of the heartbeat that came after it: `{data}`{}", and_more(more))
        }),
        false => together(&wrong, |data, more| format!("an event does not end with a blank line: `{data}`{}", and_more(more))),
    }
}

/// Whether the last line of an event before its blank line is a comment. The standard allows that; but what comes late with a
/// comment at its end was waiting for that comment.
fn ends_with_comment(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r'));
    lines.rfind(|line| !line.is_empty()).is_some_and(|line| line.starts_with(b":"))
}

fn waited(conversation: &ConversationView<'_>, from: FrameId, to: FrameId) -> bool {
    conversation.elapsed(from, to).is_some_and(|elapsed| elapsed >= PATIENCE)
}

fn data_is_a_message(conversation: &ConversationView<'_>) -> Judgment {
    let events = events(conversation);
    let with_data: Vec<_> = events.iter().filter(|read| !read.event.unfinished && !read.is_endpoint() && !broke(read.exchange)).collect();
    let with_data: Vec<_> = with_data.into_iter().filter_map(|read| Some((read, read.data()?))).collect();
    let is_first = |read: &Read<'_, '_>| read.exchange.events.first().is_some_and(|first| first.id == read.frame.id);
    let is_lost_endpoint = |read: &Read<'_, '_>| conversation.is_over("sse") && read.exchange.method == "GET" && is_first(read);
    // Of the other ones no client takes the data for a message.
    let is_message = |read: &Read<'_, '_>| matches!(read.event.name.as_deref(), None | Some("" | "message"));
    let wrong: Vec<_> = with_data
        .iter()
        .filter(|(read, data)| is_message(read) && !holds_message(data) && !holds_messages(data) && !is_lost_endpoint(read))
        .map(|(read, data)| (read.frame.id, excerpt(data)))
        .collect();
    let is_cut =
        wrong.first().is_some_and(|(first, _)| with_data.iter().any(|(read, data)| read.frame.id == *first && has_half_surrogate(data)));
    let flaw = if is_cut { "has half of a surrogate pair, so that not every client reads it" } else { "is not a message" };
    match (with_data.is_empty(), together(&wrong, |data, more| format!("the data of an event {flaw}: `{data}`{}", and_more(more)))) {
        (true, _) => Judgment::NotApplicable(NO_STREAM.into()),
        (false, judgment) => judgment,
    }
}

fn event_is_named_message(conversation: &ConversationView<'_>) -> Judgment {
    let events = events(conversation);
    let messages: Vec<_> = events.iter().filter(|read| read.data().is_some_and(holds_message)).collect();
    if messages.is_empty() {
        return Judgment::NotApplicable("no message came in an event stream".into());
    }
    let wrong: Vec<_> = messages
        .iter()
        .filter_map(|read| {
            let name = read.event.name.as_deref().filter(|name| !matches!(*name, "" | "message"))?;
            Some((read.frame.id, excerpt(name)))
        })
        .collect();
    together(&wrong, |name, more| format!("a message came in an event named `{name}`{}", and_more(more)))
}

fn is_utf8(conversation: &ConversationView<'_>) -> Judgment {
    let events = events(conversation);
    if events.is_empty() {
        return Judgment::NotApplicable(NO_STREAM.into());
    }
    let wrong: Vec<_> = events
        .iter()
        .filter(|read| !read.event.unfinished)
        .filter_map(|read| {
            let at = std::str::from_utf8(read.bytes).err()?.valid_up_to();
            let byte = read.bytes.get(at)?;
            Some((read.frame.id, format!("byte {byte:#04x} at offset {at}")))
        })
        .collect();
    together(&wrong, |what, more| format!("an event is not valid UTF-8: {what}{}", and_more(more)))
}

fn ends_lines_with_lf(conversation: &ConversationView<'_>) -> Judgment {
    let events = events(conversation);
    if events.is_empty() {
        return Judgment::NotApplicable(NO_STREAM.into());
    }
    let wrong: Vec<_> = events
        .iter()
        .filter(|read| read.bytes.contains(&b'\r') && !read.is_chunk_debris())
        .map(|read| (read.frame.id, String::new()))
        .collect();
    together(&wrong, |_, _| "the lines of events end with a carriage return and a line feed".to_owned())
}

fn event_ids_are_unique(conversation: &ConversationView<'_>) -> Judgment {
    let mut seen: BTreeMap<(String, String), FrameId> = BTreeMap::new();
    let mut wrong = Vec::new();
    let events = events(conversation);
    for read in &events {
        // What is sent again on purpose has the id that it had.
        let is_resumed = read.exchange.request_header("last-event-id").is_some();
        let Some(id) = read.event.id.as_deref().map(str::to_owned).filter(|id| !id.is_empty() && !is_resumed && !read.event.unfinished)
        else {
            continue;
        };
        if let Some(first) = seen.insert((session_of(read.exchange), id.clone()), read.frame.id) {
            wrong.push((first, read.frame.id, id));
        }
    }
    match (seen.is_empty(), wrong.first()) {
        (true, _) => Judgment::NotApplicable("its events have no ids".into()),
        (false, None) => Judgment::Pass,
        (false, Some((first, second, id))) => Judgment::Broken(vec![Violation::new(
            format!("two events of a session have the id `{}`{}", excerpt(id), and_more(wrong.len() - 1)),
            [*first, *second],
        )]),
    }
}

/// Judged by responses, each of which belongs to the stream of one request.
fn resumed_stream_has_only_its_messages(conversation: &ConversationView<'_>) -> Judgment {
    let events = events(conversation);
    let streams = conversation.exchanges.values().filter_map(|resumed| {
        let last = resumed.request_header("last-event-id")?;
        let is_last = |read: &&Read<'_, '_>| {
            let is_earlier = read.frame.id < resumed.request.id && read.exchange.request_header("last-event-id").is_none();
            is_earlier && session_of(read.exchange) == session_of(resumed) && read.event.id.as_deref() == Some(last)
        };
        // An id that two streams have is told by another rule.
        let named: Vec<_> = events.iter().filter(is_last).collect();
        let [named] = named[..] else { return None };
        (resumed.media_type().as_deref() == Some("text/event-stream")).then_some((resumed, named))
    });
    let (mut seen, mut violations) = (0, Vec::new());
    for (resumed, named) in streams {
        seen += 1;
        let told = conversation.from_server().filter(|message| message.exchange == Some(resumed.id) && message.method().is_none());
        for response in told {
            let is_same = |message: &&WireMessage<'_>| {
                message.method().is_none()
                    && message.id().is_some()
                    && message.id() == response.id()
                    && message.frame.id < response.frame.id
            };
            let Some(first) = conversation.from_server().find(is_same) else { continue };
            let wrong = if first.exchange != Some(named.exchange.id) {
                "the response of another stream"
            } else if first.frame.id <= named.frame.id {
                "a response from before that event"
            } else {
                continue;
            };
            violations.push(Violation::new(
                format!("a stream that is resumed with `Last-Event-ID` brings {wrong}"),
                [first.frame.id, resumed.request.id, response.frame.id],
            ));
            break;
        }
    }
    violations.truncate(1);
    match seen {
        0 => Judgment::NotApplicable("no stream was resumed".into()),
        _ => Judgment::from_violations(violations),
    }
}

/// Streams without ids cannot be resumed, which servers may leave out. A request that does not name the revision may be one of
/// an earlier client, which cannot read an event without data.
fn stream_is_primed(conversation: &ConversationView<'_>) -> Judgment {
    let (mut seen, mut violations) = (0, Vec::new());
    for exchange in conversation.exchanges.values().filter(|exchange| exchange.method == "POST") {
        let attempt = serde_json::from_slice::<Value>(exchange.request_body).unwrap_or_default();
        let events = exchange.events.iter().filter_map(|frame| match &frame.body {
            // An empty id names nothing to resume from.
            FrameBody::SseEvent { id, data, .. } => Some((frame.id, id.as_ref().filter(|id| !id.is_empty()), data)),
            _ => None,
        });
        let events: Vec<_> = events.collect();
        let is_named = exchange.request_header("mcp-protocol-version") == Some(conversation.conversation.revision.as_str());
        if !is_named || attempt["method"] == methods::INITIALIZE || !events.iter().any(|(_, id, _)| id.is_some()) {
            continue;
        }
        seen += 1;
        let Some((frame, id, data)) = events.first() else { continue };
        let is_empty = data.as_ref().is_none_or(|data| data.as_bytes().is_empty());
        if id.is_none() || !is_empty {
            let message = "the stream of a request has events with ids, and begins with a message";
            violations.push(Violation::new(message, [exchange.request.id, *frame]));
        }
    }
    violations.truncate(1);
    match seen {
        0 => Judgment::NotApplicable("the events have no ids, so no stream can be resumed".into()),
        _ => Judgment::from_violations(violations),
    }
}

/// The session that an exchange belongs to, or begins.
pub(super) fn session_of(exchange: &HttpExchange<'_>) -> String {
    exchange.request_header("mcp-session-id").or_else(|| exchange.header("mcp-session-id")).unwrap_or_default().to_owned()
}

fn stream_ends_after_answer(conversation: &ConversationView<'_>) -> Judgment {
    match (watched_stream_ends(conversation), other_streams_end(conversation)) {
        (judgment @ Judgment::Broken(_), _) | (_, judgment @ Judgment::Broken(_)) => judgment,
        (_, Judgment::Pass) => Judgment::Pass,
        (judgment, _) => judgment,
    }
}

const LASTS: &str = "the event stream of a request was still open a second after its response";

/// The streams of all requests, by what was requested: some servers respond to calls alone with a stream. What is told late by chance is not
/// told late each time.
fn other_streams_end(conversation: &ConversationView<'_>) -> Judgment {
    let debris: Vec<ExchangeId> = events(conversation).iter().filter(|read| read.is_chunk_debris()).map(|read| read.exchange.id).collect();
    let Some(last) = conversation.frames().last() else { return Judgment::NotTried("nothing was sent".into()) };
    let mut kinds: BTreeMap<(&str, &str), (bool, [FrameId; 2])> = BTreeMap::new();
    for (request, answer) in conversation.requests() {
        let (Some(answer), Some(method)) = (answer, request.method().filter(|method| *method != methods::SUBSCRIPTIONS_LISTEN)) else {
            continue;
        };
        let Some(http) =
            answer.exchange.filter(|exchange| request.exchange == Some(*exchange)).and_then(|id| conversation.exchanges.get(&id))
        else {
            continue;
        };
        let is_stream = http.media_type().as_deref() == Some("text/event-stream");
        if !is_stream || debris.contains(&http.id) || conversation.was_cut(http) || is_abandoned(conversation, http) {
            continue;
        }
        let lasts = match http.end {
            Some((end, why)) => match waited(conversation, answer.frame.id, end.id) {
                false if why.is_some() => continue,
                lasts => lasts,
            },
            // Its end may be what was not kept.
            None if conversation.conversation.transcript.dropped > 0 => continue,
            None if !waited(conversation, answer.frame.id, last.id) => continue,
            None => true,
        };
        let name = request.param("/name").and_then(Value::as_str).unwrap_or_default();
        let kind = kinds.entry((method, name)).or_insert((true, [http.request.id, answer.frame.id]));
        kind.0 &= lasts;
    }
    let lasting = kinds.values().find(|(lasts, _)| *lasts);
    let violation = lasting.map(|(_, frames)| Violation::new(LASTS, *frames));
    Judgment::of(violation.into_iter().collect(), kinds.len(), "no request was answered with a stream")
}

fn watched_stream_ends(conversation: &ConversationView<'_>) -> Judgment {
    let Some(attempt) = conversation.probe("stream-end") else { return Judgment::NotTried("no stream was waited for".into()) };
    let (Some(http), Some(answer)) = (attempt.http, attempt.answer.frame()) else {
        return Judgment::Untestable("the request whose stream was waited for got no response".into());
    };
    if http.media_type().as_deref() != Some("text/event-stream") {
        return Judgment::NotApplicable("the server responds with JSON, not with event streams".into());
    }
    let debris: Vec<ExchangeId> = events(conversation).iter().filter(|read| read.is_chunk_debris()).map(|read| read.exchange.id).collect();
    let last = conversation.frames().last().map_or(answer, |frame| frame.id);
    match http.end {
        Some((end, _)) if !waited(conversation, answer, end.id) => Judgment::Pass,
        None if debris.contains(&http.id) => Judgment::Untestable("the stream violates a more basic rule".into()),
        None if !waited(conversation, answer, last) => Judgment::Untestable("the conversation ended before the stream had to".into()),
        _ => Judgment::Broken(vec![Violation::new(LASTS, [http.request.id, answer])]),
    }
}

/// The streams of HTTP+SSE that a client opened and that were served.
fn sse_streams<'c, 'a>(conversation: &'c ConversationView<'a>) -> impl Iterator<Item = &'c HttpExchange<'a>> {
    conversation.exchanges.values().filter(|exchange| {
        exchange.method == "GET" && exchange.status() == Some(200) && exchange.media_type().as_deref() == Some("text/event-stream")
    })
}

fn view_of(frame: &Frame) -> Option<(FrameId, EventView<'_>)> {
    match &frame.body {
        FrameBody::SseEvent { bytes, .. } => Some((frame.id, EventView::of(bytes.as_bytes()))),
        _ => None,
    }
}

const BARE_ENDPOINT: &str = "send the path itself, without quotes or JSON: `data: /messages?session=1`";

fn endpoint_comes_first(conversation: &ConversationView<'_>) -> Judgment {
    let firsts: Vec<(FrameId, EventView<'_>)> = sse_streams(conversation)
        .filter_map(|exchange| {
            exchange.events.iter().copied().filter_map(view_of).find(|(_, event)| event.data.is_some() || event.name.is_some())
        })
        .collect();
    let wrong = firsts.iter().filter(|(_, event)| event.name.as_deref() != Some("endpoint") || event.data.is_none());
    let quoted = firsts.iter().filter_map(|(frame, event)| {
        let data = event.data.as_deref().filter(|_| event.name.as_deref() == Some("endpoint"))?;
        data.trim_ascii_start()
            .starts_with(b"\"")
            .then_some((frame, "in quotes", data))
            .or_else(|| data.trim_ascii_start().starts_with(b"{").then_some((frame, "in JSON", data)))
    });
    let quoted = quoted.take(1).map(|(frame, how, data)| {
        let message = format!("the data of the `endpoint` event is not a URL, but {how}: `{}`", excerpt(data));
        Violation { remedy: Some(BARE_ENDPOINT.to_owned()), ..Violation::new(message, [*frame]) }
    });
    let violations = wrong.take(1).map(|(frame, event)| {
        let name = event.name.as_deref().map_or_else(|| "without a name".to_owned(), |name| format!("named `{name}`"));
        let data = excerpt(event.data.as_deref().unwrap_or_default());
        Violation::new(format!("the first event of the stream is {name}, with the data `{data}`"), [*frame])
    });
    Judgment::of(violations.chain(quoted).collect(), firsts.len(), "no stream of the server began with an event")
}

fn endpoint_has_same_origin(conversation: &ConversationView<'_>) -> Judgment {
    let mut told = 0;
    let mut violations = Vec::new();
    for exchange in sse_streams(conversation) {
        let endpoint = exchange.events.iter().find_map(|frame| match &frame.body {
            FrameBody::SseEvent { event: Some(name), data: Some(data), .. } if name == "endpoint" => Some((frame.id, data.to_text())),
            _ => None,
        });
        let (Some((frame, data)), Ok(stream)) = (endpoint, Url::parse(exchange.url)) else { continue };
        told += 1;
        let problem = match stream.join(data.trim()) {
            Ok(url) if url.origin() == stream.origin() => continue,
            Ok(url) => format!(
                "the endpoint is at {}, and the stream at {}",
                url.origin().ascii_serialization(),
                stream.origin().ascii_serialization()
            ),
            Err(_) => format!("the endpoint `{}` is not a valid URL", excerpt(data.as_bytes())),
        };
        violations.push(Violation::new(problem, [frame]));
    }
    violations.truncate(1);
    Judgment::of(violations, told, "no stream of the server named an endpoint")
}

fn post_is_accepted(conversation: &ConversationView<'_>) -> Judgment {
    let posts: Vec<&HttpExchange<'_>> = conversation
        .exchanges
        .values()
        .filter(|exchange| exchange.method == "POST" && !is_odd(conversation, exchange))
        .filter(|exchange| !matches!(exchange.status(), None | Some(401 | 403)))
        .collect();
    let refused: Vec<_> = posts.iter().filter(|exchange| !exchange.status().is_some_and(|status| (200..300).contains(&status))).collect();
    let mut violations = Vec::new();
    if let Some(exchange) = refused.first() {
        let status = exchange.status().unwrap_or_default();
        let message = format!("the POST of a message got status {status}{}", and_more(refused.len() - 1));
        violations.push(Violation::new(message, exchange.heads()));
    }
    let unanswered = unanswered_posts(conversation);
    if let Some((exchange, told)) = unanswered.first() {
        let message = format!("the POST of {told}{}", and_more(unanswered.len() - 1));
        violations.push(Violation::new(message, exchange.heads()));
    }
    Judgment::of(violations, posts.len(), "no message was posted")
}

/// Whether a POST is not what any client of the protocol would send.
fn is_odd(conversation: &ConversationView<'_>, exchange: &HttpExchange<'_>) -> bool {
    const ALSO_USUAL: [&str; 4] = ["plain", LEGAL_FORM, "call-slow", "after-cancel"];
    let probe = conversation.conversation.probes.iter().find(|probed| probed.contains(exchange.request.id));
    let is_usual = match probe {
        Some(probed) => USUAL_PROBES.iter().chain(&ALSO_USUAL).any(|probe| probed.probe == *probe),
        // The handshake.
        None => conversation.conversation.opened != Opened::Bare,
    };
    let message = serde_json::from_slice::<Value>(exchange.request_body);
    !is_usual || !message.is_ok_and(|message| message.get("method").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_analysis::example;

    #[test]
    fn a_stream_that_stays_open_is_seen_wherever_it_is() {
        let list = r#"@ stream-end
            > POST /mcp
            > {"jsonrpc":"2.0","id":1,"method":"tools/list"}
            < 200 content-type: application/json
            < {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}
            ! ended"#;
        let call = |id: u32, name: &str, end: &str| {
            format!(
                "\n@ call {name}\n> POST /mcp\n> {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"{name}\"}}}}\n\
                 < 200 content-type: text/event-stream\n< data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[]}}}}\n{end}"
            )
        };
        let (ended, late, open, soon) = ("! ended", "~ 1000\n! ended", "~ 1000", "~ 100");
        let check = |calls: &[(&str, &str)], expected: &str| {
            let calls: String = calls.iter().zip(2..).map(|((name, end), id)| call(id, name, end)).collect();
            let take = example::read(&format!("{list}{calls}\n! note the conversation goes on"), "http", "2025-11-25");
            let seen = match stream_ends_after_answer(&ConversationView::new(&take)) {
                Judgment::Pass => "pass",
                Judgment::Broken(_) => "broken",
                _ => "not judged",
            };
            assert_eq!(seen, expected, "{calls}");
        };
        check(&[], "not judged");
        check(&[("one", ended), ("two", ended)], "pass");
        check(&[("one", ended), ("two", late)], "broken");
        check(&[("one", open)], "broken");
        check(&[("one", soon)], "not judged");
        // What is late once says nothing.
        check(&[("one", ended), ("one", late)], "pass");
    }
}
