//! Messages over Streamable HTTP: what a body is made of, and which stream carries what.
//! Source: basic/transports; 2026-07-28, basic/transports/streamable-http.

use super::ConversationView;
use super::answers::{Meaning, Pairing, Request, ServerMessage, and_so_did, messages};
use super::http::SENDING;
use super::http::json_body_is_json;
use super::rule_definition::{AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use mcproof_analysis::HttpExchange;
use mcproof_analysis::wording::excerpt;
use mcproof_protocol::methods;
use mcproof_record::{ExchangeId, FrameId};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What follows from a response that came to the wrong client is one with it.
pub(super) const NO_ANSWERS_TO_GET: &str = "http-get-stream-has-no-responses";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "http-body-is-utf8",
        area: Area::Http,
        requirement: "a message in an HTTP body is UTF-8",
        sources: &[
            RequirementSource { revisions: revisions::SESSIONS, level: RequirementLevel::Must, source: "basic/transports" },
            RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Must, source: "basic/transports#messages" },
        ],
        on: AppliesTo::Http,
        judge: Judge::Each(bodies_are_utf8),
        why: "a client reads JSON as UTF-8 regardless of the header, and either refuses the message or shows wrong characters",
        remedy: "encode the serialized message as UTF-8, and take care of text that comes from files or databases in another encoding",
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-body-is-json",
        area: Area::Http,
        requirement: "a body of type JSON is one JSON value",
        sources: SENDING,
        on: AppliesTo::Http,
        judge: Judge::Each(json_body_is_json),
        why: "parsers refuse the whole body for one `NaN`, trailing comma or line of a log, and the request gets no response",
        remedy: "use a strict serializer: JSON has no NaN or infinity, so send null or a string, and write nothing else to the body",
        sdks: &[("Python", "`json.dumps(…, allow_nan=False)` raises instead of writing `NaN`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: NO_ANSWERS_TO_GET,
        area: Area::Http,
        requirement: "the stream of a GET has no responses, unless it resumes another stream",
        sources: &[RequirementSource {
            revisions: revisions::SESSIONS,
            level: RequirementLevel::Must,
            source: "basic/transports#listening-for-messages-from-the-server",
        }],
        on: AppliesTo::Http,
        judge: Judge::Each(get_streams_have_no_answers),
        why: "a client waits for the response to its POST; without the optional GET stream, it never gets the response",
        remedy: "send the JSON-RPC response in the HTTP response to the POST of its request",
        sdks: &[("TypeScript", "pass `relatedRequestId` when you send by hand")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-progress-is-on-request-stream",
        area: Area::Http,
        requirement: "progress of a request is sent on the stream of its response",
        sources: &[
            RequirementSource {
                revisions: revisions::SESSIONS,
                level: RequirementLevel::Should,
                source: "basic/transports#sending-messages-to-the-server",
            },
            RequirementSource {
                revisions: revisions::MODERN,
                level: RequirementLevel::Must,
                source: "basic/transports/streamable-http#receiving-messages",
            },
        ],
        on: AppliesTo::Http,
        judge: Judge::Each(progress_comes_on_its_stream),
        why: "a client without a GET stream does not get it, and gateways that route streams send it to another client",
        remedy: "send progress through the context of the request that it is about",
        sdks: &[("TypeScript", "`extra.sendNotification(…)` instead of `server.notification(…)`"), ("Python", "`ctx.report_progress(…)`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-response-is-on-request-stream",
        area: Area::Http,
        requirement: "the response to a request is sent in the HTTP response to its own POST, not in that to another one",
        sources: &[RequirementSource {
            revisions: revisions::SESSIONS,
            level: RequirementLevel::Should,
            source: "basic/transports#sending-messages-to-the-server",
        }],
        on: AppliesTo::Http,
        judge: Judge::Each(responses_are_on_their_streams),
        why: "a client that reads the stream of each request by itself waits until its deadline, and drops what another stream brings",
        remedy: "keep the stream with its request, not in a variable of the session that the next request replaces",
        ..Rule::DEFAULT
    },
];

/// Whole bodies that claim to be JSON and answer a message.
fn json_bodies<'c>(conversation: &'c ConversationView<'_>) -> impl Iterator<Item = (FrameId, &'c [u8])> {
    conversation.exchanges.values().filter_map(|exchange| {
        let is_answer = exchange.method == "POST" && exchange.status().is_some_and(|status| (200..300).contains(&status));
        let is_json = exchange.media_type().as_deref() == Some("application/json");
        let is_whole = exchange.end.is_none_or(|(_, error)| error.is_none());
        let (frame, body) = exchange.body.filter(|_| is_answer && is_json && is_whole && is_ours(exchange))?;
        (!body.trim_ascii().is_empty()).then_some((frame.id, body))
    })
}

/// Whether a message was sent: what answers other bodies is the matter of other laws.
fn is_ours(exchange: &HttpExchange<'_>) -> bool {
    serde_json::from_slice::<Value>(exchange.request_body).is_ok_and(|value| value.is_object())
}

const NO_BODIES: &str = "the server responds only with event streams";

fn of_bodies(seen: usize, violation: Option<Violation>) -> Judgment {
    if seen == 0 { Judgment::NotApplicable(NO_BODIES.into()) } else { Judgment::from_violations(violation.into_iter().collect()) }
}

/// How compressed data begins (RFC 1952, section 2.3.1).
const GZIP: &[u8] = b"\x1f\x8b";

fn bodies_are_utf8(conversation: &ConversationView<'_>) -> Judgment {
    let bodies: Vec<_> = json_bodies(conversation).collect();
    let violation = bodies.iter().find_map(|(frame, body)| {
        let error = std::str::from_utf8(body).err()?;
        if body.starts_with(GZIP) {
            return Some(Violation::new("a body is compressed with gzip, and its response has no `Content-Encoding: gzip`", [*frame]));
        }
        let at = error.valid_up_to();
        let around = excerpt(&body[at.saturating_sub(20)..(at + 20).min(body.len())]);
        Some(Violation::new(format!("byte {at} of a body, 0x{:02x}, is not valid UTF-8: `{around}`", body[at]), [*frame]))
    });
    of_bodies(bodies.len(), violation)
}

fn get_streams_have_no_answers(conversation: &ConversationView<'_>) -> Judgment {
    let is_fresh = |exchange: &&HttpExchange<'_>| exchange.method == "GET" && exchange.request_header("last-event-id").is_none();
    let streams: Vec<_> = conversation.exchanges.values().filter(is_fresh).filter(|stream| !stream.events.is_empty()).collect();
    let responses: Vec<_> = messages(conversation).filter(ServerMessage::is_answer).collect();
    // Who sends one response on several streams does so with all of them, which is the matter of `http-message-is-sent-once`.
    let is_twin = |one: &ServerMessage<'_>, other: &ServerMessage<'_>| other.exchange != one.exchange && other.id == one.id;
    if responses.iter().any(|one| responses.iter().any(|other| is_twin(one, other))) {
        return Judgment::Untestable("responses were sent on several streams".into());
    }
    let violation = responses.iter().find_map(|server_message| {
        let stream = streams.iter().find(|stream| Some(stream.id) == server_message.exchange)?;
        let id = server_message.id.map(ToString::to_string).unwrap_or_default();
        Some(Violation::new(
            format!("the response with the id {} was sent on the stream of a GET", excerpt(id)),
            [stream.request.id, server_message.frame],
        ))
    });
    match streams.is_empty() {
        true => Judgment::NotApplicable("nothing was sent on the stream of a GET".into()),
        false => Judgment::from_violations(violation.into_iter().collect()),
    }
}

/// Requests whose response came in the HTTP response to another POST, while their own brought none. What a GET brings is the matter of other
/// rules, and so is a copy of a response, or one with the id of another request.
fn responses_are_on_their_streams(conversation: &ConversationView<'_>) -> Judgment {
    let pairing = Pairing::of(conversation);
    let is_post = |exchange: Option<ExchangeId>| {
        exchange.and_then(|id| conversation.exchanges.get(&id)).is_some_and(|exchange| exchange.method == "POST")
    };
    let bringing: BTreeSet<ExchangeId> = pairing.replies.iter().filter_map(|reply| reply.exchange).collect();
    // Of several requests with one id, such as null, it is not known which one a response is for.
    let mut ids = BTreeMap::<String, usize>::new();
    pairing.requests.iter().for_each(|request| *ids.entry(request.id().to_string()).or_default() += 1);
    let is_known = |request: &Request<'_>| !request.id().is_null() && ids.get(&request.id().to_string()) == Some(&1);
    let mut seen = 0;
    let mut astray = Vec::new();
    for reply in pairing.replies.iter().filter(|reply| is_post(reply.exchange)) {
        let Meaning::Response { request } = reply.meaning else { continue };
        seen += 1;
        let request = &pairing.requests[request];
        if is_known(request) && request.exchange != reply.exchange && request.exchange.is_some_and(|own| !bringing.contains(&own)) {
            astray.push((request, reply));
        }
    }
    let violation = astray.first().map(|(request, reply)| {
        let others = and_so_did(astray.len() - 1);
        let message = format!("the response to `{}` came in the HTTP response to another request{others}", excerpt(request.method()));
        Violation::new(message, [request.frame, reply.frame])
    });
    Judgment::of(violation.into_iter().collect(), seen, "no request got a response")
}

fn progress_comes_on_its_stream(conversation: &ConversationView<'_>) -> Judgment {
    let (mut seen, mut violations) = (0, Vec::new());
    for server_message in messages(conversation).filter(|server_message| server_message.method() == Some(methods::notifications::PROGRESS))
    {
        let Some(token) = server_message.value.pointer("/params/progressToken") else { continue };
        let brings = |wire_message: &&super::WireMessage<'_>| {
            wire_message.param("/_meta/progressToken") == Some(token) && wire_message.frame.id < server_message.frame
        };
        let owners: Vec<_> = conversation.from_client().filter(brings).collect();
        let Some(owner) = owners.last() else { continue };
        // A task goes on after the answer that names it, and so does its progress, wherever there is a stream.
        let became_task =
            |answer: &super::WireMessage<'_>| ["/result/task", "/result/taskId"].iter().any(|place| answer.value.pointer(place).is_some());
        if owners.iter().any(|owner| conversation.answer_to(owner).is_some_and(became_task)) {
            continue;
        }
        seen += 1;
        let is_resumed = server_message
            .exchange
            .and_then(|id| conversation.exchanges.get(&id))
            .is_some_and(|exchange| exchange.request_header("last-event-id").is_some());
        if !is_resumed && !owners.iter().any(|owner| owner.exchange == server_message.exchange) {
            violations.push(Violation::new(
                "progress of a request was sent on a different stream than its response",
                [owner.frame.id, server_message.frame],
            ));
        }
    }
    violations.truncate(1);
    if seen == 0 { Judgment::NotApplicable("no progress was sent".into()) } else { Judgment::from_violations(violations) }
}
