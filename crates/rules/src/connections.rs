//! What is below the messages of HTTP: bodies, connections, streams side by side, and the address that is listened at.
//! Source: RFC 9112; basic/transports, Streamable HTTP.

use super::answers::{death, died_of_abuse};
use super::events::session_of;
use super::http::{evidence, is_success, told};
use super::rule_definition::{AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::{Attempt, AttemptOutcome, ConversationView, HttpExchange, WireMessage};
use mcproof_analysis::probes::{AFTER_ABORT_IN_SESSION, BEFORE_ABORT_IN_SESSION, BESIDE, BESIDE_STREAM, KEPT_CONNECTION, UNKNOWN_STREAM};
use mcproof_analysis::read_json;
use mcproof_analysis::wording::excerpt;
use mcproof_client::transport::{INVALID_CODING, OPEN_CHUNK, RESET_AT_CLOSE, UNSUPPORTED_CODING};
use mcproof_protocol::{Revision, methods};
use mcproof_record::{FrameId, ProbeOutcome, Probed};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;
use url::{Host, Url};

const SECURITY_WARNING: &[RequirementSource] = &[
    RequirementSource { revisions: revisions::LEGACY, level: RequirementLevel::Should, source: "basic/transports#security-warning" },
    RequirementSource {
        revisions: revisions::MODERN,
        level: RequirementLevel::Should,
        source: "basic/transports/streamable-http#security-%26-endpoint",
    },
];

pub(super) const ABORT_IS_SURVIVED: &str = "http-abort-is-survived";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "http-body-length-is-correct",
        area: Area::Http,
        requirement: "a body has the length that its header or its chunks declare",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Must,
            source: "https://www.rfc-editor.org/rfc/rfc9112.html#name-message-body-length",
        }],
        on: AppliesTo::Web,
        judge: Judge::Each(body_is_framed_well),
        why: "clients wait for missing bytes, or read the rest of one response as the beginning of the next",
        remedy: "let the HTTP library set `Content-Length` and chunks, and count bytes, not characters",
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-connection-is-reusable",
        area: Area::Http,
        requirement: "a connection accepts a second request unless the response has `Connection: close`",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Portability,
            source: "https://www.rfc-editor.org/rfc/rfc9112.html#name-persistence",
        }],
        on: AppliesTo::Web,
        judge: Judge::Each(connection_is_kept),
        why: "clients reuse their connection; if it is closed, a POST fails, and it must not be repeated",
        remedy: "keep connections open for some seconds, or send `Connection: close`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-message-is-sent-once",
        area: Area::Http,
        requirement: "a message is sent on only one of the open streams",
        sources: &[RequirementSource {
            revisions: revisions::SESSIONS,
            level: RequirementLevel::Must,
            source: "basic/transports#multiple-connections",
        }],
        on: AppliesTo::Http,
        judge: Judge::Each(message_is_sent_once),
        why: "a client with two streams gets the message twice: it responds twice to a request, and a second response has no request",
        remedy: "send messages about a request on the stream of that request, and all others on the stream of the GET",
        ..Rule::DEFAULT
    },
    Rule {
        id: ABORT_IS_SURVIVED,
        area: Area::Http,
        requirement: "a server and its sessions survive a client that closes its connection before the response",
        sources: &[
            RequirementSource { revisions: Revision::V2024_11_05..=Revision::V2024_11_05, level: RequirementLevel::Should, source: "" },
            RequirementSource {
                revisions: revisions::SESSIONS,
                level: RequirementLevel::Should,
                source: "basic/transports#sending-messages-to-the-server",
            },
            RequirementSource {
                revisions: revisions::MODERN,
                level: RequirementLevel::Should,
                source: "basic/transports/streamable-http#cancellation",
            },
        ],
        on: AppliesTo::Web,
        judge: Judge::Each(abort_is_survived),
        why: "laptops sleep and users press Ctrl-C: one client that disconnects must not affect the others",
        remedy: "catch errors when writing to a closed connection, and end a session only when the client asks for it, or after a time without requests",
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-listens-on-loopback",
        area: Area::Security,
        requirement: "a server that runs locally listens on loopback only",
        sources: SECURITY_WARNING,
        on: AppliesTo::Web,
        judge: Judge::Each(listens_on_loopback),
        why: "anyone on the same network can call its tools, with the permissions of the user who started it",
        remedy: "bind 127.0.0.1 or ::1 by default, instead of 0.0.0.0",
        sdks: &[("TypeScript", "`app.listen(port, '127.0.0.1')`"), ("FastMCP", "`mcp.run(transport=\"http\", host=\"127.0.0.1\")`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-stream-disables-buffering",
        area: Area::Http,
        requirement: "an event stream has the header `X-Accel-Buffering: no`",
        sources: &[RequirementSource {
            revisions: revisions::MODERN,
            level: RequirementLevel::Should,
            source: "basic/transports/streamable-http#receiving-messages",
        }],
        on: AppliesTo::Http,
        judge: Judge::Each(says_no_buffering),
        why: "behind proxies such as nginx, events wait in a buffer until it is full or the stream ends",
        remedy: "set `X-Accel-Buffering: no` on every response with `text/event-stream`",
        ..Rule::DEFAULT
    },
];

/// How long a body that has begun may take to end.
const PATIENCE: Duration = Duration::from_secs(1);

/// A request of so many bytes is still being sent when a server refuses it by its head.
const LARGE: usize = 64 << 10;

/// How long the response to a POST may take that nothing has to be worked out for.
const SILENCE: Duration = Duration::from_secs(2);

/// Notifications that were posted, and over HTTP+SSE requests whose response came on the stream, without a response to the POST
/// itself, although the server responded to what was posted later. Each with a sentence.
pub(super) fn unanswered_posts<'c, 'a>(conversation: &'c ConversationView<'a>) -> Vec<(&'c HttpExchange<'a>, String)> {
    let Some(last) = conversation.frames().last() else { return Vec::new() };
    let unanswered = |exchange: &'c HttpExchange<'a>| {
        if exchange.method != "POST" || exchange.response.is_some() || is_abandoned(conversation, exchange) {
            return None;
        }
        let wire_message = conversation.from_client().find(|wire_message| wire_message.exchange == Some(exchange.id))?;
        let since = match (wire_message.is_request(), conversation.is_over("sse")) {
            (true, true) => conversation.answer_to(wire_message)?.frame.id,
            (true, false) => return None,
            (false, _) => exchange.request.id,
        };
        let method = wire_message.method()?;
        if exchange.end.is_some() {
            let is_told = was_closed(exchange)
                && is_responded_later(conversation, exchange)
                && notifications(conversation).all(|sent| sent.response.is_none())
                && notifications(conversation).filter(|sent| was_closed(sent)).count() > 1;
            return is_told.then(|| (exchange, format!("`{method}` got no response: the connection was closed")));
        }
        let is_overdue = conversation.elapsed(since, last.id)? >= SILENCE && is_responded_later(conversation, exchange);
        is_overdue.then(|| (exchange, format!("`{method}` got no response")))
    };
    conversation.exchanges.values().filter_map(unanswered).collect()
}

/// Whether the connection ended before the response began.
fn was_closed(exchange: &HttpExchange<'_>) -> bool {
    exchange.response.is_none() && exchange.end.is_some_and(|(_, broken)| broken.is_some())
}

/// What carried notifications. That a single one was closed, or one of several, is no evidence: a connection that the server closes
/// after a response may be closed just as it is used again.
fn notifications<'c, 'a>(conversation: &'c ConversationView<'a>) -> impl Iterator<Item = &'c HttpExchange<'a>> {
    let sent = conversation.from_client().filter(|wire_message| !wire_message.is_request());
    sent.filter_map(|wire_message| conversation.exchanges.get(&wire_message.exchange?))
}

/// Whether the client did not wait for the response.
pub(super) fn is_abandoned(conversation: &ConversationView<'_>, exchange: &HttpExchange<'_>) -> bool {
    conversation.is_within(exchange.request.id, &["abort", UNKNOWN_STREAM])
}

/// Whether a later HTTP request got a response, so that the server was there.
pub(super) fn is_responded_later(conversation: &ConversationView<'_>, exchange: &HttpExchange<'_>) -> bool {
    conversation.exchanges.values().any(|later| later.request.id > exchange.request.id && later.response.is_some())
}

fn body_is_framed_well(conversation: &ConversationView<'_>) -> Judgment {
    let exchanges: Vec<&HttpExchange<'_>> = conversation.exchanges.values().filter(|exchange| exchange.response.is_some()).collect();
    let exited = conversation.frames().iter().find(|frame| matches!(frame.body, mcproof_record::FrameBody::Exited { .. }));
    let mut violations = Vec::new();
    for exchange in &exchanges {
        // What a server could not send because it had died is not about bodies.
        let is_last =
            exited.is_some_and(|exited| exchange.end.is_none_or(|(end, _)| waited(conversation, end.id, exited.id) == Some(false)));
        // Nor what nobody answers after: it died, or hung up for good. A stream may have been all that it ever answered.
        let mut later = exchanges_after(conversation, exchange);
        // What has neither ended nor broken off is still open, so that somebody is there.
        let is_last_and_open = exchange.end.is_none() && exchanges_after(conversation, exchange).next().is_none();
        let is_gone = conversation.exchanges.len() > 1 && !is_last_and_open && later.all(|later| later.response.is_none());
        // The client gave the stream up, and the server is there.
        let is_left_open = exchange.end.is_some_and(|(_, why)| why == Some(OPEN_CHUNK));
        if let Some(problem) = problem_of_body(conversation, exchange).filter(|_| is_left_open || !is_last && !is_gone) {
            violations.push(Violation::new(problem, framing_evidence(exchange)));
        }
    }
    if violations.is_empty()
        && let Some(exchange) = exchanges.iter().find(|exchange| has_two_lengths(exchange))
    {
        let message = "a response has both `Content-Length` and `Transfer-Encoding`";
        violations.push(Violation { tolerance: Some("clients ignore the length"), ..Violation::new(message, exchange.heads()) });
    }
    if let [first, more @ ..] = &mut violations[..]
        && !more.is_empty()
    {
        first.message = format!("{} (and {} more)", first.message, more.len());
    }
    violations.truncate(1);
    Judgment::of(violations, exchanges.len(), "no response came")
}

/// RFC 9112, 6.2: a sender must not send both; a proxy and a client that disagree take one response for two.
fn has_two_lengths(exchange: &HttpExchange<'_>) -> bool {
    exchange.header("content-length").is_some() && exchange.header("transfer-encoding").is_some()
}

fn exchanges_after<'c, 'a>(
    conversation: &'c ConversationView<'a>,
    exchange: &HttpExchange<'_>,
) -> impl Iterator<Item = &'c HttpExchange<'a>> {
    let end = exchange.end.map_or(exchange.request.id, |(frame, _)| frame.id);
    conversation.exchanges.values().filter(move |later| later.request.id > end)
}

fn waited(conversation: &ConversationView<'_>, from: FrameId, to: FrameId) -> Option<bool> {
    conversation.elapsed(from, to).map(|elapsed| elapsed >= PATIENCE)
}

fn problem_of_body(conversation: &ConversationView<'_>, exchange: &HttpExchange<'_>) -> Option<String> {
    let is_events = exchange.media_type().as_deref() == Some("text/event-stream");
    let is_ours = conversation.is_within(exchange.request.id, &["abort"]);
    // Whoever refuses a body that is too large may close the connection while it is still sent (RFC 9110, 15.5.14), which resets it
    // (RFC 9112, 9.6). Nor is there a length where the end of the connection is the end of the body.
    let is_refused_early = exchange.request_body.len() >= LARGE && exchange.status().is_some_and(|status| status >= 400);
    let has_no_length = matches!(exchange.end, Some((_, Some(RESET_AT_CLOSE))));
    let may_close = exchange.status() == Some(413) || is_refused_early || has_no_length;
    if let Some((_, Some(reason))) = exchange.end {
        // What cannot be decoded has a rule of its own.
        let is_coding = [INVALID_CODING, UNSUPPORTED_CODING].iter().any(|start| reason.starts_with(start));
        return (!is_ours && !may_close && !is_coding).then(|| match reason {
            OPEN_CHUNK => format!("{OPEN_CHUNK} (CRLF)"),
            reason => format!("the body broke off: {}", excerpt(reason)),
        });
    }
    if is_events {
        let is_size = |line: &str| !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_hexdigit());
        let debris = exchange.events.iter().find_map(|frame| {
            let mcproof_record::FrameBody::SseEvent { bytes, .. } = &frame.body else { return None };
            bytes.to_text().lines().find(|line| is_size(line)).map(str::to_owned)
        });
        return debris.map(|size| format!("the size of a chunk is wrong: `{}` is among the content", excerpt(size)));
    }
    let Some((_, body)) = exchange.body else {
        return is_unended(conversation, exchange).then(|| "the body did not end".to_owned());
    };
    let length = exchange.header("content-length")?;
    let is_cut = exchange.media_type().as_deref() == Some("application/json")
        && read_json(body).is_err_and(|error| error.is_eof() && !body.trim_ascii().is_empty());
    is_cut.then(|| format!("the body ends in the middle of its JSON, after the {} bytes that `Content-Length` declares", excerpt(length)))
}

/// Whether a body other than an event stream was waited for in vain.
pub(super) fn is_unended(conversation: &ConversationView<'_>, exchange: &HttpExchange<'_>) -> bool {
    let (Some(response), Some(last)) = (exchange.response, conversation.frames().last()) else { return false };
    let is_other = exchange.body.is_some() || exchange.end.is_some() || exchange.media_type().as_deref() == Some("text/event-stream");
    let lasts = || {
        conversation
            .from_client()
            .any(|wire_message| wire_message.exchange == Some(exchange.id) && wire_message.method() == Some(methods::SUBSCRIPTIONS_LISTEN))
    };
    !is_other
        && !conversation.is_within(exchange.request.id, &["abort"])
        && !lasts()
        && waited(conversation, response.frame.id, last.id) == Some(true)
}

fn framing_evidence(exchange: &HttpExchange<'_>) -> Vec<FrameId> {
    let mut frames = exchange.heads();
    frames.extend(exchange.events.last().map(|frame| frame.id));
    frames.extend(exchange.body.map(|(frame, _)| frame.id));
    frames.extend(exchange.end.map(|(frame, _)| frame.id));
    frames
}

/// Whether a connection took a request, and nothing came for the next one.
pub(super) fn second_request_hangs(conversation: &ConversationView<'_>) -> bool {
    conversation.probes(KEPT_CONNECTION).any(|attempt| is_hanging(conversation, &attempt))
}

fn is_hanging(conversation: &ConversationView<'_>, attempt: &Attempt<'_, '_>) -> bool {
    let mut within = conversation.exchanges.values().filter(|exchange| attempt.probed.contains(exchange.request.id));
    let (first, second) = (within.next(), within.next());
    attempt.probed.outcome == ProbeOutcome::Silent
        && first.is_some_and(|first| first.response.is_some())
        && second.is_some_and(|second| second.response.is_none())
}

/// Whether connections are in the way of one another, or of themselves, with the frames that show it.
pub(super) fn connections_in_the_way(conversation: &ConversationView<'_>) -> Option<(&'static str, Vec<FrameId>)> {
    /// What happens once may be chance.
    const LEAST: usize = 2;
    let within = |attempt: &Attempt<'_, '_>| {
        let mut exchanges = conversation.exchanges.values().filter(|exchange| attempt.probed.contains(exchange.request.id));
        (exchanges.next(), exchanges.next())
    };
    let beside = |probe: &str| {
        let waited = conversation.probes(probe).filter(|attempt| attempt.probed.outcome == ProbeOutcome::Silent);
        let served: Vec<_> = waited
            .filter_map(|attempt| match within(&attempt) {
                (Some(first), Some(second)) if first.response.is_some() && second.response.is_some() => Some((first, second)),
                _ => None,
            })
            .collect();
        let (first, second) = served.first().filter(|_| served.len() >= LEAST)?;
        Some(first.heads().into_iter().chain(second.heads()).collect())
    };
    if let Some(frames) = beside(BESIDE_STREAM) {
        return Some((
            "a message got no response while an event stream was open, and got it when the client had closed the stream",
            frames,
        ));
    }
    if let Some(frames) = beside(BESIDE) {
        let message = "a message got no response while another connection was open and at rest, and got it when the client had closed that";
        return Some((message, frames));
    }
    let hanging: Vec<_> = conversation.probes(KEPT_CONNECTION).filter(|attempt| is_hanging(conversation, attempt)).collect();
    let (first, second) = within(hanging.first().filter(|_| hanging.len() >= LEAST)?);
    Some((SECOND_HANGS, first.into_iter().chain(second).flat_map(HttpExchange::heads).collect()))
}

/// The frames of what waited for a connection: what has no response, or has it since it was looked at which connections are in the way.
pub(super) fn waits_for_connections(conversation: &ConversationView<'_>) -> BTreeSet<FrameId> {
    let is_look = |probed: &&Probed| [BESIDE, BESIDE_STREAM, KEPT_CONNECTION].contains(&probed.probe.as_str());
    let Some(look) = conversation.conversation.probes.iter().find(is_look) else { return BTreeSet::new() };
    let waited = |exchange: &&HttpExchange<'_>| match exchange.response {
        None => true,
        Some(response) => exchange.request.id < look.first && response.frame.id >= look.first,
    };
    conversation.exchanges.values().filter(waited).flat_map(HttpExchange::heads).collect()
}

const SECOND_HANGS: &str = "the second request on a connection got no response";
const CLOSED_UNSAID: &str = "a connection was closed after a response without `Connection: close`";

fn says_close(exchange: &HttpExchange<'_>) -> bool {
    exchange.header("connection").is_some_and(|value| value.to_ascii_lowercase().contains("close"))
}

/// What two requests in a row show, or any other one that had to be sent again.
fn connection_is_kept(conversation: &ConversationView<'_>) -> Judgment {
    match (connection_is_kept_for_second(conversation), closed_when_reused(conversation)) {
        (broken @ Judgment::Broken(_), _) => broken,
        (_, Some(frames)) => Judgment::Broken(vec![Violation::new(CLOSED_UNSAID, frames)]),
        (judged, None) => judged,
    }
}

/// A connection of HTTP/1.1 that was closed about when it was used again, so soon after a response that every client does so.
fn closed_when_reused(conversation: &ConversationView<'_>) -> Option<Vec<FrameId>> {
    /// After that the server may have closed it because nobody used it.
    const SOON: Duration = Duration::from_secs(1);
    if conversation.is_over_http2() {
        return None;
    }
    conversation.sent_again.iter().find_map(|again| {
        let ended = conversation.exchanges.values().filter_map(|before| match before.end {
            Some((end, None)) if end.id < again.request.id => Some((end.id, before)),
            _ => None,
        });
        let (end, before) = ended.max_by_key(|(end, _)| *end)?;
        // Another request may have taken the connection.
        let is_next = !conversation.exchanges.values().any(|other| other.request.id > end && other.request.id < again.request.id);
        let is_soon = conversation.elapsed(end, again.request.id)? < SOON;
        let is_unsaid = before.status().is_some_and(is_success) && !says_close(before);
        let frames = before.heads().into_iter().chain([again.request.id]).chain(again.end.map(|(frame, _)| frame.id));
        (is_next && is_soon && is_unsaid).then(|| frames.collect())
    })
}

fn connection_is_kept_for_second(conversation: &ConversationView<'_>) -> Judgment {
    let Some(attempt) = conversation.probe(KEPT_CONNECTION) else { return Judgment::NotTried("it was not tried".into()) };
    let within = |exchange: &&HttpExchange<'_>| attempt.probed.contains(exchange.request.id);
    let exchanges: Vec<&HttpExchange<'_>> = conversation.exchanges.values().filter(within).collect();
    match exchanges[..] {
        [first, ..] if says_close(first) => Judgment::Pass,
        [_, second] if second.response.is_some() => Judgment::Pass,
        _ if death(conversation).is_some_and(|death| died_of_abuse(conversation, &death)) => {
            Judgment::Untestable("the server did not survive the request".into())
        }
        [first, second] => {
            let frames = first.heads().into_iter().chain([second.request.id]).chain(second.end.map(|(frame, _)| frame.id));
            let message = match second_request_hangs(conversation) {
                true => SECOND_HANGS,
                false => CLOSED_UNSAID,
            };
            Judgment::Broken(vec![Violation::new(message, frames)])
        }
        [first] if matches!(first.end, Some((_, None))) => {
            Judgment::NotApplicable("the responses are HTTP/1.0, which ends the connection after each of them".into())
        }
        _ => Judgment::Untestable("the first request on the connection failed".into()),
    }
}

/// So many different messages that came on two streams at the same time were sent twice, whatever they say.
const LEAST_ALIKE: usize = 3;

/// Whether no other message says the same: it has an id, or names what it is about in a way that comes once.
fn is_unique(message: &WireMessage<'_>) -> bool {
    let named = match message.method() {
        Some(methods::notifications::PROGRESS) => message.param("/progressToken"),
        Some(methods::notifications::CANCELLED) => message.param("/requestId"),
        Some(methods::notifications::ELICITATION_COMPLETE) => message.param("/elicitationId"),
        _ => None,
    };
    message.id().is_some() || named.is_some()
}

fn message_is_sent_once(conversation: &ConversationView<'_>) -> Judgment {
    /// How far apart two copies of one message may be; later ones are two messages that say the same.
    const APART: Duration = Duration::from_millis(100);
    let streamed = |method: &'static str| {
        conversation.from_server().filter_map(move |wire_message| {
            let exchange = conversation.exchanges.get(&wire_message.exchange?)?;
            // What is no stream says why there is none.
            let is_stream = method == "POST" || exchange.media_type().as_deref() == Some("text/event-stream");
            // A stream that is resumed tells again what was lost.
            let is_first = exchange.request_header("last-event-id").is_none();
            (exchange.method == method && is_stream && is_first).then_some((wire_message, exchange))
        })
    };
    let listens = conversation
        .exchanges
        .values()
        .any(|exchange| exchange.method == "GET" && exchange.media_type().as_deref() == Some("text/event-stream"));
    if !listens {
        return Judgment::NotApplicable("the server has no second stream: a GET opens none".into());
    }
    let is_copy = |first: &WireMessage<'_>, second: &WireMessage<'_>| {
        let is_near = || first.frame.at.abs_diff(second.frame.at) < APART;
        first.id() == second.id() && (first.id().is_some() || is_near()) && first.value == second.value
    };
    let copies: Vec<(&WireMessage<'_>, &WireMessage<'_>)> = streamed("GET")
        .filter_map(|(told, stream)| {
            let other =
                streamed("POST").find(|(wire_message, post)| session_of(post) == session_of(stream) && is_copy(told, wire_message))?;
            Some((told, other.0))
        })
        .collect();
    // Two things may be logged in the same words: that says nothing until it happens with one text after the other.
    let texts: BTreeSet<String> = copies.iter().map(|(told, _)| told.value.to_string()).collect();
    let twice = copies.iter().find(|(told, _)| is_unique(told)).or_else(|| copies.first().filter(|_| texts.len() >= LEAST_ALIKE));
    match twice {
        None => Judgment::Pass,
        Some((first, second)) => {
            let what = match (first.method(), first.id()) {
                (Some(method), _) => format!("`{method}`"),
                (None, id) => format!("the response with the id {}", id.unwrap_or(&Value::Null)),
            };
            let frames = [first.frame.id.min(second.frame.id), first.frame.id.max(second.frame.id)];
            Judgment::Broken(vec![Violation::new(format!("{what} was sent on the stream of a GET and on the stream of a POST"), frames)])
        }
    }
}

fn abort_is_survived(conversation: &ConversationView<'_>) -> Judgment {
    let Some(after) = conversation.probes("abort-after").last() else {
        return Judgment::NotTried("no connection was closed early".into());
    };
    let left = conversation.probes("abort").filter_map(|abort| abort.http.map(|http| http.request.id)).last();
    let was_served = conversation.probe("before-abort-after").is_some_and(|before| before.status().is_some_and(is_success));
    if was_served && is_refused_in_session(&after) {
        let before = conversation.probe(BEFORE_ABORT_IN_SESSION);
        let was_served = before.is_some_and(|before| before.status().is_some_and(is_success));
        let again = conversation.probes(AFTER_ABORT_IN_SESSION).last().filter(|again| was_served && is_refused_in_session(again));
        return again.map_or_else(
            || {
                Judgment::Untestable(
                    "the session ended, and nothing shows that it did because of connections that were closed early".into(),
                )
            },
            |again| {
                let message =
                    format!("connections that were closed early ended their session: the next request in it got {}", told(&again));
                Judgment::Broken(vec![Violation::new(message, left.into_iter().chain(evidence(&again)))])
            },
        );
    }
    match after.answer {
        AttemptOutcome::Result { .. } | AttemptOutcome::Error { .. } => Judgment::Pass,
        _ => {
            let message = format!("after connections were closed early, the next request got {}", told(&after));
            Judgment::Broken(vec![Violation::new(message, left.into_iter().chain(evidence(&after)))])
        }
    }
}

fn is_refused_in_session(attempt: &Attempt<'_, '_>) -> bool {
    let names_session = attempt.http.is_some_and(|http| http.request_header("mcp-session-id").is_some());
    names_session && attempt.status().is_some_and(|status| matches!(status, 400 | 404 | 410))
}

fn listens_on_loopback(conversation: &ConversationView<'_>) -> Judgment {
    if conversation.probe("plain").is_none() {
        return Judgment::NotTried("no other address was tried".into());
    }
    let Some(attempt) = conversation.probe("other-interface") else {
        let is_local = conversation.exchanges.values().next().is_some_and(|exchange| is_loopback(exchange.url));
        return match is_local {
            true => Judgment::Untestable("this machine has no other address to try".into()),
            false => Judgment::NotApplicable("the server was reached at an address that is not loopback".into()),
        };
    };
    match attempt.status() {
        None => Judgment::Pass,
        Some(_) => {
            let url = attempt.probed.subject.as_deref().unwrap_or_default();
            Judgment::Broken(vec![Violation::new(format!("it answers at {} as well", excerpt(url)), evidence(&attempt))])
        }
    }
}

/// Whether a URL leads to this machine and cannot lead anywhere else.
pub(super) fn is_loopback(url: &str) -> bool {
    match Url::parse(url).ok().as_ref().and_then(Url::host) {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn says_no_buffering(conversation: &ConversationView<'_>) -> Judgment {
    let streams: Vec<&HttpExchange<'_>> = conversation
        .exchanges
        .values()
        .filter(|exchange| exchange.method == "POST" && exchange.media_type().as_deref() == Some("text/event-stream"))
        .collect();
    if streams.is_empty() {
        return Judgment::NotApplicable("the server responds with JSON, not with event streams".into());
    }
    let says_no = |exchange: &&&HttpExchange<'_>| exchange.header("x-accel-buffering").is_some_and(|value| value.trim() == "no");
    let without: Vec<_> = streams.iter().filter(|exchange| !says_no(exchange)).collect();
    // nginx obeys the header and takes it out: what its server said can't be seen behind it.
    let is_nginx = |exchange: &HttpExchange<'_>| exchange.header("server").is_some_and(|name| name.trim_start().starts_with("nginx"));
    if without.iter().any(|exchange| is_nginx(exchange)) {
        return Judgment::Untestable("nginx is in front of the server, and removes `X-Accel-Buffering` from responses".into());
    }
    let violation = without.first().map(|exchange| {
        Violation::new(format!("{} of {} event streams have no `X-Accel-Buffering: no`", without.len(), streams.len()), exchange.heads())
    });
    Judgment::from_violations(violation.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_analysis::example;
    use mcproof_record::SENT_AGAIN;

    #[test]
    fn what_says_the_same_on_two_streams_is_one_message_only_if_it_can_be_no_other() {
        let check = |messages: &[&str], is_broken: bool| {
            let stream = messages.iter().map(|message| format!("< data: {{\"jsonrpc\":\"2.0\",{message}}}\n")).collect::<String>();
            let head = "< 200 content-type: text/event-stream";
            let post = r#"> {"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
            let text = format!("> GET /mcp mcp-session-id: a\n{head}\n{stream}> POST /mcp mcp-session-id: a\n{post}\n{head}\n{stream}");
            let judged = message_is_sent_once(&ConversationView::new(&example::read(&text, "http", "2025-11-25")));
            assert_eq!(matches!(judged, Judgment::Broken(_)), is_broken, "{messages:?}: {judged:?}");
        };
        let log = |text: &str| format!(r#""method":"notifications/message","params":{{"level":"info","data":"{text}"}}"#);
        let [one, two, three] = ["one", "two", "three"].map(log);
        check(&[&one], false);
        check(&[&one, &one, &one], false);
        check(&[&one, &two], false);
        check(&[&one, &two, &three], true);
        check(&[r#""method":"notifications/resources/updated","params":{"uri":"a:b"}"#], false);
        check(&[r#""method":"notifications/progress","params":{"progressToken":7,"progress":1}"#], true);
        check(&[r#""id":1,"result":{"tools":[]}"#], true);
        check(&[r#""id":"a","method":"ping""#], true);
    }

    #[test]
    fn a_session_that_ends_with_a_connection_is_no_chance() {
        let check = |after: u16, of_its_own: &[(u16, u16)], expected: &str| {
            let ask = |probe: &str, got: u16| format!("@ {probe}\n> POST /mcp mcp-session-id: 1\n< {got}\n");
            let rounds =
                of_its_own.iter().map(|(before, after)| ask(BEFORE_ABORT_IN_SESSION, *before) + &ask(AFTER_ABORT_IN_SESSION, *after));
            let text = ask("before-abort-after", 200) + "@ abort!\n> POST /mcp mcp-session-id: 1\n" + &ask("abort-after", after);
            let text = text + &rounds.collect::<String>();
            let take = example::read(&text, "http", "2025-11-25");
            let seen = match abort_is_survived(&ConversationView::new(&take)) {
                Judgment::Broken(_) => "broken",
                Judgment::Untestable(_) => "untestable",
                _ => "other",
            };
            assert_eq!(seen, expected, "{text}");
        };
        check(404, &[(200, 404)], "broken");
        check(404, &[(200, 200)], "untestable");
        check(404, &[(404, 404)], "untestable");
        check(404, &[], "untestable");
        check(500, &[], "broken");
    }

    #[test]
    fn connections_that_wait_for_one_another_are_told_if_it_happens_twice() {
        let asked = |response: &str| format!("> POST /mcp\n> {{\"method\":\"notifications/cancelled\"}}\n{response}\n");
        let served = asked("< 202\n! ended");
        let late = asked("~ 2000\n! note the other connection is closed\n< 202\n! ended");
        let stream = "> GET /mcp\n< 200 content-type: text/event-stream\n";
        let check = |text: &str, expected: Option<&str>, waiting: usize| {
            let text = format!("> POST /mcp\n> {{\"id\":1,\"method\":\"ping\"}}\n{text}");
            let take = example::read(&text, "http", "2025-11-25");
            let conversation = ConversationView::new(&take);
            let told = connections_in_the_way(&conversation).map(|(message, _)| message);
            assert_eq!(told.is_some(), expected.is_some(), "{text} {told:?}");
            assert!(told.unwrap_or_default().contains(expected.unwrap_or_default()), "{text} {told:?}");
            assert_eq!(waits_for_connections(&conversation).len(), waiting, "{text}");
        };
        let beside = format!("@ beside-open-connection!\n{served}{late}");
        check(&beside, None, 1);
        check(&beside.repeat(2), Some("while another connection was open"), 1);
        check(&format!("@ beside-open-connection\n{served}{served}").repeat(2), None, 1);
        check(&format!("@ beside-open-connection!\n{served}{}", asked("")).repeat(2), None, 3);
        check(&format!("@ beside-open-stream!\n{stream}{late}").repeat(2), Some("while an event stream was open"), 1);
        let hangs = format!("@ kept-connection!\n{served}{}", asked(""));
        check(&hangs, None, 2);
        check(&hangs.repeat(2), Some(SECOND_HANGS), 3);
        check("", None, 0);
    }

    #[test]
    fn a_connection_that_hangs_is_told_from_one_that_is_closed() {
        let check = |text: &str, expected: Option<&str>| {
            let take = example::read(text, "http", "2025-11-25");
            let conversation = ConversationView::new(&take);
            let message = match connection_is_kept(&conversation) {
                Judgment::Broken(violations) => violations.into_iter().next().map(|violation| violation.message),
                _ => None,
            };
            assert_eq!(message.as_deref(), expected, "{text}");
            assert_eq!(second_request_hangs(&conversation), expected == Some(SECOND_HANGS), "{text}");
        };
        let closed = "a connection was closed after a response without `Connection: close`";
        check("@ kept-connection!\n> POST /mcp\n< 202\n! ended\n> POST /mcp", Some(SECOND_HANGS));
        check("@ kept-connection?\n> POST /mcp\n< 202\n! ended\n> POST /mcp\n! broken closed", Some(closed));
        check("@ kept-connection\n> POST /mcp\n< 202\n! ended\n> POST /mcp\n< 202\n! ended", None);
    }

    #[test]
    fn a_request_that_had_to_be_sent_again_shows_that_a_connection_was_closed() {
        let check = |first: &str, pause: u64, between: &str, is_broken: bool| {
            let broken = format!("! broken connection closed before message completed{SENT_AGAIN}");
            let text = format!(
                "@ kept-connection\n> POST /mcp\n< 202\n! ended\n> POST /mcp\n< 202\n! ended\n@ list\n> POST /mcp\n< {first}\n! ended\n\
                 ~ {pause}\n{between}> POST /mcp\n{broken}\n> POST /mcp\n< 200\n! ended"
            );
            let judged = connection_is_kept(&ConversationView::new(&example::read(&text, "http", "2025-11-25")));
            assert_eq!(matches!(judged, Judgment::Broken(_)), is_broken, "{text} {judged:?}");
            assert!(is_broken || judged == Judgment::Pass, "{text} {judged:?}");
        };
        check("200", 0, "", true);
        check("200 connection: close", 0, "", false);
        check("400", 0, "", false);
        check("200", 0, "> GET /mcp\n< 200 content-type: text/event-stream\n", false);
        // Nobody used it for a while.
        check("200", 5000, "", false);
    }

    #[test]
    fn what_nginx_takes_out_of_a_response_is_not_missed() {
        for (server, is_broken) in [("uvicorn", true), ("nginx/1.22.1", false)] {
            let text = format!("> POST /mcp\n< 200 content-type: text/event-stream | server: {server}\n< : hello");
            let take = example::read(&text, "http", "2026-07-28");
            let judged = says_no_buffering(&ConversationView::new(&take));
            assert_eq!(matches!(judged, Judgment::Broken(_)), is_broken, "{server}");
        }
    }

    #[test]
    fn a_stream_that_ends_with_its_server_is_framed_well() {
        let check = |rest: &str, is_broken: bool| {
            let text = format!("> GET /sse\n< 200 content-type: text/event-stream\n< : hello\n! broken reset\n{rest}");
            let take = example::read(&text, "sse", "2025-11-25");
            let judged = body_is_framed_well(&ConversationView::new(&take));
            assert_eq!(matches!(judged, Judgment::Broken(_)), is_broken, "{text}");
        };
        check("", true);
        check("> POST /messages\n! broken refused", false);
        check("> POST /messages\n< 202\n! ended", true);
        check("~ 10\n! exited 1", false);
    }

    #[test]
    fn a_connection_may_be_closed_after_a_body_that_is_too_large() {
        for (status, is_broken) in [(413, false), (400, true)] {
            let text = format!("> POST /mcp\n< {status}\n! broken reset");
            let judged = body_is_framed_well(&ConversationView::new(&example::read(&text, "http", "2025-11-25")));
            assert_eq!(matches!(judged, Judgment::Broken(_)), is_broken, "{text}");
        }
    }

    #[test]
    fn who_refuses_a_large_request_early_resets_its_connection() {
        let check = |size: usize, status: u16, reason: &str, is_broken: bool| {
            let text = format!("> POST /mcp\n> {{\"a\":\"{}\"}}\n< {status} content-length: 90\n! broken {reason}", "x".repeat(size));
            let judged = body_is_framed_well(&ConversationView::new(&example::read(&text, "http", "2025-11-25")));
            assert_eq!(matches!(judged, Judgment::Broken(_)), is_broken, "{size} {status} {reason}");
        };
        check(4 << 20, 400, "reset", false);
        check(4 << 20, 500, "reset", false);
        check(4 << 20, 200, "reset", true);
        check(9, 400, "reset", true);
        check(9, 200, RESET_AT_CLOSE, false);
    }

    #[test]
    fn a_connection_of_http_1_0_is_not_expected_to_stay() {
        let check = |rest: &str, expected: &str| {
            let text = format!("@ kept-connection\n> POST /mcp\n< 202\n{rest}");
            let judged = connection_is_kept(&ConversationView::new(&example::read(&text, "http", "2025-11-25")));
            assert!(format!("{judged:?}").starts_with(expected), "{rest} {judged:?}");
        };
        // No second request was sent.
        check("! ended", "NotApplicable");
        check("! broken reset", "Untestable");
        check("! ended\n> POST /mcp\n! broken server closed the connection", "Broken");
    }

    #[test]
    fn the_last_body_is_told_if_it_stays_open() {
        let check = |rest: &str, is_broken: bool| {
            let text = format!("> POST /mcp\n< 202\n! ended\n> POST /mcp\n< 404 content-length: 9\n{rest}");
            let take = example::read(&text, "http", "2026-07-28");
            let judged = body_is_framed_well(&ConversationView::new(&take));
            assert_eq!(matches!(judged, Judgment::Broken(_)), is_broken, "{text}");
        };
        check("~ 1500\n! signal SIGTERM", true);
        check("! signal SIGTERM", false);
        check("! broken reset", false);
        check("< not found\n! ended", false);
    }

    #[test]
    fn a_post_needs_a_response_of_its_own() {
        let check = |transport: &str, body: &str, rest: &str, expected: usize| {
            let text = format!("> POST /messages\n> {body}\n{rest}");
            let take = example::read(&text, transport, "2025-11-25");
            assert_eq!(unanswered_posts(&ConversationView::new(&take)).len(), expected, "{transport} {text}");
        };
        let notification = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}"#;
        let request = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let later = "~ 2100\n> POST /messages\n< 202\n! ended";
        check("http", notification, later, 1);
        check("sse", notification, later, 1);
        check("http", notification, "> POST /messages\n< 202\n! ended", 0);
        check("http", notification, &format!("< 202\n! ended\n{later}"), 0);
        // A connection that is closed tells at once, unless another one of the kind got its response.
        let closed = "! broken connection closed before message completed";
        let another = format!("> POST /messages\n> {notification}\n< 202\n! ended");
        for transport in ["http", "sse"] {
            let request_later = "> POST /messages\n< 200\n! ended";
            let again = format!("> POST /messages\n> {notification}\n{closed}");
            check(transport, notification, &format!("{closed}\n{again}\n{request_later}"), 2);
            check(transport, notification, &format!("{closed}\n{request_later}"), 0);
            check(transport, notification, &format!("{closed}\n{another}"), 0);
            check(transport, notification, closed, 0);
        }
        // Nobody responds to anything any more, which is told otherwise.
        check("sse", notification, "~ 2100\n> POST /messages", 0);
        // A request may take its time, unless its response has come on the stream.
        check("http", request, later, 0);
        check("sse", request, later, 0);
        let response = r#"< data: {"jsonrpc":"2.0","id":1,"result":{}}"#;
        check("sse", request, &format!("> GET /sse\n< 200 content-type: text/event-stream\n{response}\n{later}"), 1);
    }
}
