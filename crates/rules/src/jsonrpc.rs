//! JSON-RPC itself: members, ids, answers.
//! Source: basic, messages; JSON-RPC 2.0.

use super::ConversationView;
use super::answers::{
    Meaning, Pairing, Request, ServerMessage, ServerResponse, and_so_did, first_abuse, gathered, messages, shown, taken_up,
};
use super::rule_definition::{Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use mcproof_analysis::probes::{AT_ONCE, AT_ONCE_NUMBERS, LEGAL_FORM, SAME_ID};
use mcproof_analysis::wording::excerpt;
use mcproof_analysis::{Attempt, AttemptOutcome, HttpExchange, WireMessage};
use mcproof_protocol::{Revision, error_code, methods};
use mcproof_record::{ExchangeId, FrameId, ProbeOutcome, Probed};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(super) const MESSAGES: &[RequirementSource] = &[
    RequirementSource { revisions: revisions::FIRST, level: RequirementLevel::Must, source: "basic/messages" },
    RequirementSource { revisions: revisions::SINCE_2025_03, level: RequirementLevel::Must, source: "basic#messages" },
];
const FIRST_REQUESTS: RequirementSource =
    RequirementSource { revisions: revisions::FIRST, level: RequirementLevel::Must, source: "basic/messages#requests" };
/// Of the server; the modern era has none.
const REQUESTS: &[RequirementSource] =
    &[FIRST_REQUESTS, RequirementSource { revisions: revisions::SESSIONS, level: RequirementLevel::Must, source: "basic#requests" }];
const ALL_REQUESTS: &[RequirementSource] =
    &[FIRST_REQUESTS, RequirementSource { revisions: revisions::SINCE_2025_03, level: RequirementLevel::Must, source: "basic#requests" }];
pub(super) const RESPONSES: &[RequirementSource] = &[
    RequirementSource { revisions: revisions::FIRST, level: RequirementLevel::Must, source: "basic/messages#responses" },
    RequirementSource { revisions: revisions::SINCE_2025_03, level: RequirementLevel::Must, source: "basic#responses" },
];
const NOTIFICATIONS: &[RequirementSource] = &[
    RequirementSource { revisions: revisions::FIRST, level: RequirementLevel::Must, source: "basic/messages#notifications" },
    RequirementSource { revisions: revisions::SINCE_2025_03, level: RequirementLevel::Must, source: "basic#notifications" },
];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "jsonrpc-version-is-2-0",
        area: Area::JsonRpc,
        requirement: "each message has the member `jsonrpc` with the value \"2.0\"",
        sources: MESSAGES,
        judge: Judge::Each(version_is_2_0),
        why: "clients recognize messages of the protocol by it, and drop all others",
        remedy: "put `\"jsonrpc\": \"2.0\"` into each message, as a string",
        ..Rule::DEFAULT
    },
    Rule {
        id: "response-id-matches-request",
        area: Area::JsonRpc,
        requirement: "a response has the id of its request, with the same value and type",
        sources: RESPONSES,
        judge: Judge::Together(responses_have_ids_of_requests),
        why: "a client finds the request by the id alone; a response with another id is dropped, and the request times out",
        remedy: "return the id as the JSON value that was received: a string stays a string, a number a number",
        sdks: &[("Go", "keep it as `json.RawMessage`, not as `int`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "request-gets-one-response",
        area: Area::JsonRpc,
        requirement: "a request gets exactly one response",
        sources: RESPONSES,
        judge: Judge::Each(answers_come_once),
        why: "a second response has no request: clients log an error, and those that reuse ids match it to another request",
        remedy: "send the response in one place, also if the handler fails after it has responded",
        ..Rule::DEFAULT
    },
    Rule {
        id: "response-has-result-or-error",
        area: Area::JsonRpc,
        requirement: "a response has either a result or an error",
        sources: RESPONSES,
        judge: Judge::Each(answers_have_one),
        why: "with both, clients disagree on whether the request succeeded; with neither, they reject the message",
        remedy: "leave `error` out of a success and `result` out of an error, even as null",
        ..Rule::DEFAULT
    },
    Rule {
        id: "error-has-code-and-message",
        area: Area::JsonRpc,
        requirement: "an error has an integer as its code, and a message",
        sources: RESPONSES,
        judge: Judge::Each(errors_are_whole),
        why: "clients decide by the code and show the message; an error without them cannot be parsed, and its cause is lost",
        remedy: "give each error a `code` that is a number and a `message` that is a string",
        ..Rule::DEFAULT
    },
    Rule {
        id: "valid-request-is-served",
        area: Area::JsonRpc,
        requirement: "a request is served in each valid form: with any string or integer as its id, with anything in `_meta`, with or without optional members, and in any spelling of JSON",
        sources: ALL_REQUESTS,
        judge: Judge::Each(legal_requests_are_served),
        why: "SDKs differ: some count from 0, some use strings as ids, most request progress, and many omit empty `params`; each language writes JSON in its own way",
        remedy: "accept 0, negative numbers and any string as an id, ignore members that are not known, require only members that the schema requires, and read messages with a JSON parser, line by line at the line feed only",
        ..Rule::DEFAULT
    },
    Rule {
        id: "notification-gets-no-response",
        area: Area::JsonRpc,
        requirement: "a notification gets no response, not even an error",
        sources: NOTIFICATIONS,
        judge: Judge::Each(notifications_are_not_answered),
        why: "a response without an id has no request, and strict clients disconnect",
        remedy: "do not respond to a message without `id`, even if its method is unknown",
        ..Rule::DEFAULT
    },
    Rule {
        id: "response-belongs-to-a-request",
        area: Area::JsonRpc,
        requirement: "each response belongs to a request",
        sources: RESPONSES,
        judge: Judge::Each(answers_match_requests),
        why: "a response without a request is at best an error in the client's log; at worst its id matches a later request",
        remedy: "look for responses that go to another client, or that are sent after their request was canceled and its id discarded",
        ..Rule::DEFAULT
    },
    Rule {
        id: "server-request-id-is-unique",
        area: Area::JsonRpc,
        requirement: "a request of the server has a string or an integer as its id, and never the same twice",
        sources: REQUESTS,
        judge: Judge::Each(request_ids_are_fresh),
        why: "the server cannot match the client's responses to its requests; a request with the id null is treated as a notification, and gets no response",
        remedy: "number the server's requests in each session, and never reset the counter",
        ..Rule::DEFAULT
    },
    Rule {
        id: "messages-are-not-batched",
        area: Area::JsonRpc,
        requirement: "each message is sent on its own, not in an array",
        sources: &[
            RequirementSource {
                revisions: Revision::V2025_06_18..=Revision::V2025_11_25,
                level: RequirementLevel::Must,
                source: "basic/transports",
            },
            RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Must, source: "basic/transports/stdio" },
        ],
        judge: Judge::Each(messages_are_not_batched),
        why: "2025-06-18 removed batches; clients expect one object",
        remedy: "send the messages of the array one by one",
        ..Rule::DEFAULT
    },
    Rule {
        id: "unknown-method-is-refused",
        area: Area::JsonRpc,
        requirement: "a request with an unknown method gets an error",
        sources: MESSAGES,
        judge: Judge::Each(unknown_method_is_refused),
        why: "newer clients try newer methods first; after no response or a result, they do not fall back to older ones",
        remedy: "respond to unknown methods with error -32601",
        ..Rule::DEFAULT
    },
    Rule {
        id: "unknown-method-code",
        area: Area::JsonRpc,
        requirement: "a request with an unknown method gets error -32601",
        sources: &[
            RequirementSource {
                revisions: revisions::LEGACY,
                level: RequirementLevel::Should,
                source: "https://www.jsonrpc.org/specification#error_object",
            },
            RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Should, source: "basic#error-codes" },
        ],
        judge: Judge::Each(unknown_method_code),
        why: "clients fall back to older methods on this code, and give up on any other",
        remedy: "respond to unknown methods with -32601 before validating their parameters",
        ..Rule::DEFAULT
    },
    Rule {
        id: "concurrent-responses-match-requests",
        area: Area::JsonRpc,
        requirement: "each of several concurrent requests gets its own response",
        sources: RESPONSES,
        judge: Judge::Each(concurrent_answers_match),
        why: "one user gets the data of another; hosts often call several tools at once",
        remedy: "keep the data of a request in its handler, not in a global variable of the server",
        ..Rule::DEFAULT
    },
];

const NO_MESSAGE: &str = "the server sent no message";
const NO_ANSWER: &str = "the server sent no response";

fn version_is_2_0(conversation: &ConversationView<'_>) -> Judgment {
    let all: Vec<ServerMessage<'_>> = messages(conversation).collect();
    let wrong = all.iter().filter(|server_message| server_message.value.get("jsonrpc") != Some(&json!("2.0")));
    let violations = wrong.map(|server_message| {
        let found =
            server_message.value.get("jsonrpc").map_or_else(|| "no `jsonrpc`".to_owned(), |found| format!("`jsonrpc` {}", shown(found)));
        Violation::new(format!("a message has {found}"), [server_message.frame])
    });
    Judgment::of(gathered(violations.collect()), all.len(), NO_MESSAGE)
}

/// The same wrong id in several responses, of whatever conversation, is one violation.
fn responses_have_ids_of_requests(all: &[&ConversationView<'_>]) -> Judgment {
    let (mut seen, mut found) = (0, Vec::<(String, Violation, usize)>::new());
    for (position, conversation) in all.iter().enumerate() {
        let pairing = Pairing::of(conversation);
        seen += pairing.replies.len();
        for reply in &pairing.replies {
            let Meaning::WrongId { request } = reply.meaning else { continue };
            // That a valid request could not be read is another rule's.
            let is_of_form = |probed: &Probed| probed.probe == LEGAL_FORM && probed.contains(reply.frame);
            if is_parse_error(reply.value) && conversation.conversation.probes.iter().any(is_of_form) {
                continue;
            }
            let request = &pairing.requests[request];
            let id = reply.id.map_or_else(|| "no id".to_owned(), |id| format!("the id {}", shown(id)));
            if let Some((_, _, more)) = found.iter_mut().find(|(known, ..)| *known == id) {
                *more += 1;
                continue;
            }
            let message = format!("the response to `{}`, which has the id {}, has {id}", request.method(), shown(request.id()));
            let violation = Violation { conversation: position, ..Violation::new(message, [request.frame, reply.frame]) };
            found.push((id, violation, 0));
        }
    }
    let more_like = |violation: Violation, more: usize| match more {
        0 => violation,
        _ => Violation { message: format!("{}, and {more} more like it", violation.message), ..violation },
    };
    let total: usize = found.iter().map(|(_, _, more)| more + 1).sum();
    let violations = match found.len() {
        0..=3 => found.into_iter().map(|(_, violation, more)| more_like(violation, more)).collect(),
        _ => found.into_iter().take(1).map(|(_, violation, _)| more_like(violation, total - 1)).collect(),
    };
    Judgment::of(violations, seen, NO_ANSWER)
}

fn answers_come_once(conversation: &ConversationView<'_>) -> Judgment {
    let pairing = Pairing::of(conversation);
    let again = pairing.replies.iter().filter_map(|reply| match reply.meaning {
        Meaning::Again { request } => Some((reply, request, &pairing.requests[request])),
        _ => None,
    });
    let violations = again.map(|(reply, index, request)| {
        let first = pairing.answer_to(index).map(|first| first.frame);
        let canceled = conversation.cancellation_of(request.id()).is_some_and(|cancellation| cancellation.frame.id < reply.frame);
        let when = if canceled { ", after it was canceled" } else { "" };
        let message = format!("`{}` with the id {} got a second response{when}", request.method(), shown(request.id()));
        Violation::new(message, [Some(request.frame), first, Some(reply.frame)].into_iter().flatten())
    });
    let violations = gathered(violations.chain(copy_in_body(conversation, &pairing)).collect());
    Judgment::of(violations, pairing.replies.len(), NO_ANSWER)
}

const PASSED_OVER: &str = "clients of HTTP+SSE pass over the body of the response to a POST";

/// A response that is on the stream of HTTP+SSE, and in the body of the response to its POST as well.
fn copy_in_body(conversation: &ConversationView<'_>, pairing: &Pairing<'_>) -> Option<Violation> {
    if !conversation.is_over("sse") {
        return None;
    }
    let method_of = |exchange: Option<ExchangeId>| exchange.and_then(|id| conversation.exchanges.get(&id)).map(|exchange| exchange.method);
    let in_bodies = pairing.replies.iter().filter(|reply| method_of(reply.exchange) == Some("POST"));
    let mut copies = in_bodies.filter_map(|copy| {
        let request = pairing.requests.iter().find(|request| request.exchange == copy.exchange && request.id() == copy.id())?;
        let is_same =
            |event: &&ServerResponse<'_>| event.id() == copy.id() && event.frame > request.frame && event.exchange != copy.exchange;
        Some((request, pairing.replies.iter().find(is_same)?, copy))
    });
    let (request, event, copy) = copies.next()?;
    let others = and_so_did(copies.count());
    let mut frames = [request.frame, event.frame, copy.frame];
    frames.sort_unstable();
    let message =
        format!("`{}` got its response on the event stream and in the body of the response to its POST{others}", request.method());
    let remedy = "respond to the POST with 202 and no body, and send the response on the event stream only".to_owned();
    Some(Violation { tolerance: Some(PASSED_OVER), remedy: Some(remedy), ..Violation::new(message, frames) })
}

fn answers_have_one(conversation: &ConversationView<'_>) -> Judgment {
    let answers: Vec<ServerMessage<'_>> = messages(conversation).filter(ServerMessage::is_answer).collect();
    let violations = answers.iter().filter_map(|server_message| {
        let wrong = match (server_message.value.get("result"), server_message.value.get("error")) {
            (Some(_), Some(_)) => "both a result and an error",
            (None, None) => "neither a result nor an error",
            _ => return None,
        };
        let id = server_message.id.unwrap_or(&Value::Null);
        Some(Violation::new(format!("the response with the id {} has {wrong}", shown(id)), [server_message.frame]))
    });
    Judgment::of(gathered(violations.collect()), answers.len(), NO_ANSWER)
}

fn errors_are_whole(conversation: &ConversationView<'_>) -> Judgment {
    let errors: Vec<(ServerMessage<'_>, &Value)> = messages(conversation)
        .filter(|server_message| server_message.is_answer() && server_message.value.get("result").is_none())
        .filter_map(|server_message| Some((server_message, server_message.value.get("error")?)))
        .collect();
    let violations = errors.iter().filter_map(|(server_message, error)| {
        let is_integer = |code: &Value| code.is_i64() || code.as_f64().is_some_and(|code| code.fract() == 0.0);
        let wrong = match (error.get("code"), error.get("message")) {
            _ if !error.is_object() => format!("an error is {}, not an object", shown(error)),
            (None, _) => "an error has no code".into(),
            (Some(code), _) if !is_integer(code) => format!("an error has the code {}, which is not an integer", shown(code)),
            (_, None) => "an error has no message".into(),
            (_, Some(message)) if !message.is_string() => format!("an error has the message {}, which is not a string", shown(message)),
            _ => return None,
        };
        Some(Violation::new(wrong, [server_message.frame]))
    });
    let violations = gathered(violations.collect());
    match errors.is_empty() {
        true => Judgment::Untestable("the server sent no error".into()),
        false => Judgment::from_violations(violations),
    }
}

fn notifications_are_not_answered(conversation: &ConversationView<'_>) -> Judgment {
    if conversation.is_over("http") {
        return Judgment::NotApplicable("over HTTP, `http-notification-response-is-empty` judges the response to a notification".into());
    }
    let notifications = conversation.from_client().filter(|wire_message| wire_message.is_notification()).count();
    let pairing = Pairing::of(conversation);
    let answered = pairing.replies.iter().filter_map(|reply| match reply.meaning {
        Meaning::OfNotification { notification } => Some((reply, notification)),
        _ => None,
    });
    let violations = answered.map(|(reply, notification)| {
        let sent = conversation
            .from_client()
            .find(|wire_message| wire_message.frame.id == notification)
            .and_then(|wire_message| wire_message.method());
        let message = format!("`{}` got a response: {}", sent.unwrap_or("a notification"), shown(reply.value));
        Violation::new(message, [notification, reply.frame])
    });
    Judgment::of(gathered(violations.collect()), notifications.min(pairing.replies.len()), "no notification was sent")
}

fn answers_match_requests(conversation: &ConversationView<'_>) -> Judgment {
    if conversation.conversation.transcript.dropped > 0 {
        return Judgment::Untestable("the transcript is truncated, so a request may be missing; see `--max-transcript`".into());
    }
    let pairing = Pairing::of(conversation);
    let stray = pairing.replies.iter().filter(|reply| reply.meaning == Meaning::Stray);
    let violations = stray.map(|reply| {
        let id = reply.id.map_or_else(|| "without an id".to_owned(), |id| format!("with the id {}", shown(id)));
        Violation::new(format!("a response {id} has no request"), [reply.frame])
    });
    Judgment::of(gathered(violations.collect()), pairing.replies.len(), NO_ANSWER)
}

fn request_ids_are_fresh(conversation: &ConversationView<'_>) -> Judgment {
    let attempt: Vec<ServerMessage<'_>> = messages(conversation).filter(ServerMessage::is_request).collect();
    if attempt.is_empty() {
        return Judgment::NotApplicable("the server sent no request".into());
    }
    let mut known: BTreeMap<String, ServerMessage<'_>> = BTreeMap::new();
    let mut violations = Vec::new();
    for server_message in attempt {
        let (id, method) = (server_message.id.unwrap_or(&Value::Null), server_message.method().unwrap_or_default());
        if !(id.is_string() || id.is_i64() || id.is_u64()) {
            violations
                .push(Violation::new(format!("the server sent the request `{method}` with the id {}", shown(id)), [server_message.frame]));
            continue;
        }
        // The same on another stream is a copy: that is another law.
        if let Some(earlier) = known.get(&id.to_string()).filter(|earlier| earlier.exchange == server_message.exchange) {
            let before = earlier.method().unwrap_or_default();
            let message =
                format!("the server sent the request `{method}` with the id {}, which its request `{before}` had before", shown(id));
            violations.push(Violation::new(message, [earlier.frame, server_message.frame]));
        }
        known.entry(id.to_string()).or_insert(server_message);
    }
    Judgment::from_violations(gathered(violations))
}

fn messages_are_not_batched(conversation: &ConversationView<'_>) -> Judgment {
    // A batch may be answered in kind.
    let end = first_abuse(conversation);
    let values: Vec<_> = conversation.from_server().filter(|wire_message| end.is_none_or(|end| wire_message.frame.id < end)).collect();
    let batches =
        values.iter().filter(|wire_message| wire_message.value.as_array().is_some_and(|all| all.iter().any(super::answers::is_message)));
    let violations = batches.map(|wire_message| {
        let count = wire_message.value.as_array().map_or(0, Vec::len);
        Violation::new(format!("{count} message(s) were sent in an array"), [wire_message.frame.id])
    });
    Judgment::of(gathered(violations.collect()), values.len(), NO_MESSAGE)
}

fn unknown_method_is_refused(conversation: &ConversationView<'_>) -> Judgment {
    let Some(attempt) = conversation.probe("unknown-method") else { return Judgment::Untestable("no unknown method was tried".into()) };
    match attempt.answer {
        _ if attempt.answer.is_refusal() => Judgment::Pass,
        AttemptOutcome::Result { .. } | AttemptOutcome::Silence | AttemptOutcome::Status { status: 200..300, .. } => {
            Judgment::Broken(vec![Violation::new(format!("an unknown method got {}", attempt.answer.describe()), attempt.frames())])
        }
        _ => Judgment::Untestable(format!("an unknown method got {}", attempt.answer.describe())),
    }
}

fn unknown_method_code(conversation: &ConversationView<'_>) -> Judgment {
    let Some(attempt) = conversation.probe("unknown-method") else { return Judgment::Untestable("no unknown method was tried".into()) };
    match attempt.answer.code() {
        Some(error_code::METHOD_NOT_FOUND) => Judgment::Pass,
        Some(code) => Judgment::Broken(vec![Violation::new(format!("an unknown method got the error {code}"), attempt.frames())]),
        None => Judgment::Untestable(format!("an unknown method got {}", attempt.answer.describe())),
    }
}

/// The keys of lists by their methods.
const LISTS: [(&str, &str); 4] = [
    (methods::TOOLS_LIST, "tools"),
    (methods::PROMPTS_LIST, "prompts"),
    (methods::RESOURCES_LIST, "resources"),
    (methods::RESOURCES_TEMPLATES_LIST, "resourceTemplates"),
];

fn concurrent_answers_match(conversation: &ConversationView<'_>) -> Judgment {
    let is_tried = |probed: &&Probed| probed.probe == "concurrent" && probed.outcome != ProbeOutcome::Gone;
    let pairing = Pairing::of(conversation);
    let rounds = conversation.conversation.probes.iter().filter(is_tried);
    let attempt: Vec<_> = rounds.flat_map(|probed| pairing.within(probed.first, probed.end)).collect();
    let (mut seen, mut violations) = of_same_id(conversation, &pairing);
    if attempt.is_empty() && seen == 0 && violations.is_empty() {
        return Judgment::Untestable("no concurrent requests were sent".into());
    }
    for (index, request) in &attempt {
        let Some(reply) = pairing.answer_to(*index).filter(|reply| matches!(reply.meaning, Meaning::Response { .. })) else { continue };
        let Some(result) = reply.value.get("result") else { continue };
        seen += 1;
        let others = || attempt.iter().filter(|(other, _)| other != index).map(|(_, other)| other.value);
        let Some(mixed) = mixed_up(request.value, result, others()) else { continue };
        // What a request gets that is alone has another cause.
        let is_so_alone = pairing.requests.iter().enumerate().any(|(single, asked)| {
            let result = || pairing.answer_to(single)?.value.get("result");
            !attempt.iter().any(|(concurrent, _)| *concurrent == single)
                && is_same_request(asked, request)
                && result().is_some_and(|result| mixed_up(asked.value, result, others()).is_some())
        });
        let message = format!("of several concurrent requests, {} got {mixed}", what_is_asked(request.value));
        // Which of them get it, and how many, is chance.
        if !is_so_alone && !violations.iter().any(|known| known.message == message) {
            violations.push(Violation::new(message, [request.frame, reply.frame]));
        }
    }
    match seen {
        0 | 1 if violations.is_empty() => Judgment::Untestable("fewer than two of several concurrent requests got a result".into()),
        _ => Judgment::from_violations(gathered(violations)),
    }
}

/// One sentence for both clients, of which one may get nothing and the other one what was not meant for it.
const OF_OTHER_CLIENT: &str = "while another client used the same id, a request did not get its own response";

/// Responses to requests that have the same id as those of another client: how many there are, and which are for the other one.
fn of_same_id(conversation: &ConversationView<'_>, pairing: &Pairing<'_>) -> (usize, Vec<Violation>) {
    let (mut seen, mut violations, mut unanswered) = (0, Vec::new(), Vec::new());
    for probed in conversation.conversation.probes.iter().filter(|probed| probed.probe == SAME_ID) {
        let Some(other) = probed.subject.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok()) else { continue };
        for (_, request) in pairing.within(probed.first, probed.end) {
            let is_own = |exchange: ExchangeId| Some(taken_up(conversation, exchange)) == request.exchange;
            let replies = || pairing.replies.iter().filter(|reply| reply.exchange.is_some_and(is_own));
            for (frame, result) in replies().filter_map(|reply| Some((reply.frame, reply.value.get("result")?))) {
                seen += 1;
                if mixed_up(request.value, result, std::iter::once(&other)).is_some() {
                    violations.push(Violation::new(OF_OTHER_CLIENT, [request.frame, frame]));
                }
            }
            let exchange = request.exchange.and_then(|exchange| conversation.exchanges.get(&exchange));
            if replies().next().is_none() && exchange.and_then(HttpExchange::status).is_none_or(|status| status < 400) {
                unanswered.push(request);
            }
        }
    }
    violations.extend(unanswered_for_their_ids(pairing, &unanswered));
    (seen, violations)
}

fn is_same_request(one: &Request<'_>, other: &Request<'_>) -> bool {
    one.method() == other.method() && ["name", "arguments", "uri"].iter().all(|key| one.value["params"][key] == other.value["params"][key])
}

/// A request for a reader: by its tool or its resource, if it is about one.
fn what_is_asked(request: &Value) -> String {
    let method = request["method"].as_str().unwrap_or_default();
    match (request["params"]["name"].as_str(), request["params"]["uri"].as_str()) {
        (Some(name), _) if method == methods::TOOLS_CALL => format!("a call of `{}`", excerpt(name)),
        (_, Some(uri)) => format!("`{method}` of `{}`", excerpt(uri)),
        _ => format!("`{method}`"),
    }
}

/// Requests whose responses the other client may have got: each time, although the same requests are answered before and after that.
fn unanswered_for_their_ids(pairing: &Pairing<'_>, unanswered: &[&Request<'_>]) -> Option<Violation> {
    unanswered.iter().enumerate().find_map(|(at, first)| {
        let last = unanswered[at + 1..].iter().rfind(|request| is_same_request(request, first))?;
        let mut answered = pairing.requests.iter().enumerate().filter(|(index, request)| {
            is_same_request(request, first)
                && pairing.answer_to(*index).is_some_and(|reply| matches!(reply.meaning, Meaning::Response { .. }))
        });
        let is_answered_around =
            answered.any(|(_, request)| request.frame < first.frame) && answered.any(|(_, request)| request.frame > last.frame);
        is_answered_around.then(|| Violation::new(OF_OTHER_CLIENT, [first.frame, last.frame]))
    })
}

/// What belongs to another request, if it is in a result and what belongs to this one is not.
fn mixed_up<'v>(request: &Value, result: &Value, mut others: impl Iterator<Item = &'v Value>) -> Option<String> {
    let method = request["method"].as_str()?;
    let key = LISTS.iter().find(|(known, _)| *known == method).map(|(_, key)| *key);
    if key.is_some_and(|key| result.get(key).is_some()) {
        return None;
    }
    // What tells itself for which method it is.
    let of_list = LISTS.iter().find(|(_, key)| result.get(key).is_some()).map(|(other, _)| *other);
    let is_of_ping = |other: &Value| other["method"] == methods::PING && result.as_object().is_some_and(serde_json::Map::is_empty);
    let other = match (key, method) {
        (Some(_), _) if of_list.is_none() && result.get("supportedVersions").is_some() => Some(methods::SERVER_DISCOVER),
        (Some(_), _) if result.get("content").is_some() => {
            others.any(|other| other["method"] == methods::TOOLS_CALL).then_some(methods::TOOLS_CALL)
        }
        (Some(_), _) => of_list.or_else(|| others.any(is_of_ping).then_some(methods::PING)),
        (None, methods::PING | methods::SERVER_DISCOVER) => of_list,
        (None, methods::TOOLS_CALL) if result.get("content").is_none() => of_list,
        _ => None,
    };
    if key.is_some() || other.is_some() {
        return other.map(|other| format!("the answer to `{other}`"));
    }
    let text = result.to_string();
    let subjects = |request: &Value| -> Vec<String> {
        let params = &request["params"];
        let uri = params["uri"].as_str().into_iter();
        let texts = || params["arguments"].as_object().into_iter().flatten().filter_map(|(_, value)| value.as_str());
        let numbers = params["arguments"].as_object().into_iter().flatten().filter_map(|(_, value)| value.as_u64());
        let numbers = numbers.filter(|number| AT_ONCE_NUMBERS.contains(number)).map(|number| number.to_string());
        uri.chain(texts().filter(|text| text.starts_with(AT_ONCE))).map(str::to_owned).chain(numbers).collect()
    };
    let own = subjects(request);
    if own.iter().any(|own| text.contains(own.as_str())) {
        return None;
    }
    let is_of =
        |other: &&Value| other["method"] == request["method"] && subjects(other).iter().any(|subject| text.contains(subject.as_str()));
    // Several may have asked with the same: most likely it is of the same tool.
    let of: Vec<&Value> = others.filter(is_of).collect();
    let is_same_tool = |other: &&Value| other["params"]["name"] == request["params"]["name"];
    let other = of.iter().copied().find(is_same_tool).or_else(|| of.first().copied())?;
    Some(match method == methods::TOOLS_CALL && is_same_tool(&other) {
        true => "the result of another call of it".to_owned(),
        false => format!("what belongs to {}", what_is_asked(other)),
    })
}

const EMPTY_ARGUMENTS: &str = "servers of some SDKs take an empty object only";

fn legal_requests_are_served(conversation: &ConversationView<'_>) -> Judgment {
    let is_failed = |result: &Value| result.get("isError") == Some(&Value::Bool(true));
    let is_served = |asked: &WireMessage<'_>| {
        let is_same = |request: &WireMessage<'_>| request.method() == asked.method() && request.param("/name") == asked.param("/name");
        let mut same = conversation.requests().filter(|(request, _)| is_same(request)).filter_map(|(_, answer)| answer);
        same.any(|answer| answer.value.get("result").is_some_and(|result| !is_failed(result)))
    };
    let (mut seen, mut violations) = (0, Vec::new());
    for attempt in conversation.probes(LEGAL_FORM) {
        // A handshake is marked only where another one was served.
        let is_told = |request: &&WireMessage<'_>| request.method() == Some(methods::INITIALIZE) || is_served(request);
        let Some(request) = attempt.request.filter(is_told) else { continue };
        let method = request.method().unwrap_or_default();
        let is_call = method == methods::TOOLS_CALL;
        match attempt.answer {
            AttemptOutcome::Gone | AttemptOutcome::None => continue,
            // It may take its time.
            AttemptOutcome::Silence if is_call => continue,
            AttemptOutcome::Result { value, .. } if !(is_call && is_failed(value)) => {}
            // An answer with another id is another rule's.
            AttemptOutcome::Silence | AttemptOutcome::Status { status: 200..300, .. } if is_misnamed(conversation, &attempt) => {}
            answer => {
                let message = format!("`{method}` with {} got {}", attempt.subject(), answer.describe());
                let tolerance = is_call.then_some(EMPTY_ARGUMENTS);
                violations.push(Violation { tolerance, ..Violation::new(message, attempt.frames()) });
            }
        }
        seen += 1;
    }
    Judgment::of(violations, seen, "no request in another form was tried")
}

/// An error without an id: what was sent could not be read.
fn is_parse_error(value: &Value) -> bool {
    value.get("id").is_none_or(Value::is_null) && value.pointer("/error/code") == Some(&json!(error_code::PARSE_ERROR))
}

/// Whether the answer came with an id that is not the request's. The error that it could not be read is what the request got.
fn is_misnamed(conversation: &ConversationView<'_>, attempt: &Attempt<'_, '_>) -> bool {
    let within = |frame: FrameId| attempt.probed.contains(frame);
    let mut answers = conversation.from_server().filter(|wire_message| wire_message.is_answer() && within(wire_message.frame.id));
    answers.any(|wire_message| !is_parse_error(&wire_message.value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_analysis::example;

    /// What the answers of an example over stdio mean, in order.
    fn check(text: &str, expected: &[&str]) {
        let take = example::read(text, "stdio", "2025-11-25");
        let conversation = ConversationView::new(&take);
        let pairing = Pairing::of(&conversation);
        let found: Vec<String> = pairing
            .replies
            .iter()
            .map(|reply| match reply.meaning {
                Meaning::Response { request } => format!("answer {}", pairing.requests[request].method()),
                Meaning::Again { request } => format!("again {}", pairing.requests[request].method()),
                Meaning::WrongId { request } => format!("wrong {}", pairing.requests[request].method()),
                Meaning::OfNotification { .. } => "notification".into(),
                Meaning::Excused => "excused".into(),
                Meaning::Stray => "stray".into(),
            })
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn a_request_is_served_in_each_form_in_which_others_like_it_are() {
        let tried = |id: u32, probe: &str, method: &str, name: &str, outcome: &str| {
            let params = if name.is_empty() { "{}".to_owned() } else { format!(r#"{{"name":"{name}"}}"#) };
            let request = format!(r#"> {{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
            format!("@ {probe}\n{request}\n< {{\"jsonrpc\":\"2.0\",\"id\":{id},{outcome}}}\n")
        };
        let check = |usual: &str, form: &str, expected: Option<bool>| {
            let take = example::read(&format!("{usual}{form}"), "stdio", "2025-11-25");
            let seen = match legal_requests_are_served(&ConversationView::new(&take)) {
                Judgment::Broken(violations) => Some(violations[0].tolerance.is_some()),
                _ => None,
            };
            assert_eq!(seen, expected, "{usual}{form}");
        };
        let (result, error) = (r#""result":{}"#, r#""error":{"code":-32602,"message":"no"}"#);
        let failed = r#""result":{"isError":true}"#;
        let level = |id: u32, probe: &str, outcome: &str| tried(id, probe, "logging/setLevel", "", outcome);
        check(&level(1, "set-log-level error", result), &level(2, "legal-form the level `alert`", error), Some(false));
        check(&level(1, "set-log-level error", error), &level(2, "legal-form the level `alert`", error), None);
        check("", &tried(2, "legal-form capabilities", "initialize", "", error), Some(false));
        let call = |id: u32, probe: &str, name: &str, outcome: &str| tried(id, probe, "tools/call", name, outcome);
        check(&call(1, "call a", "a", result), &call(2, "legal-form no `arguments`", "a", result), None);
        check(&call(1, "call a", "a", result), &call(2, "legal-form no `arguments`", "a", error), Some(true));
        check(&call(1, "call a", "a", result), &call(2, "legal-form no `arguments`", "a", failed), Some(true));
        check(&call(1, "call a", "a", failed), &call(2, "legal-form no `arguments`", "a", failed), None);
        check(&call(1, "call b", "b", result), &call(2, "legal-form no `arguments`", "a", error), None);
        let list = |probe: &str, outcome: &str| tried(3, probe, "tools/list", "", outcome);
        let unread = |probe: &str, id: &str| {
            let request = r#"{ "method":"tools/list", "jsonrpc":"2.0", "id":4 }"#;
            let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32700,"message":"no"}}}}"#);
            format!("@ {probe} blanks between its members\n> {request}\n< {answer}\n")
        };
        check(&list("list tools/list", result), &unread("legal-form", "4"), Some(false));
        check(&list("list tools/list", result), &unread("legal-form!", "null"), Some(false));
    }

    #[test]
    fn what_a_request_gets_alone_has_another_cause_than_others_at_once() {
        let read = |id: u32, uri: &str| format!(r#"> {{"jsonrpc":"2.0","id":{id},"method":"resources/read","params":{{"uri":"{uri}"}}}}"#);
        let contents = |id: u32, uri: &str| format!(r#"< {{"jsonrpc":"2.0","id":{id},"result":{{"contents":[{{"uri":"{uri}"}}]}}}}"#);
        let call = |id: u32, tool: &str| {
            let params = format!(r#"{{"name":"{tool}","arguments":{{"text":"mcproof-at-once-{id}-{tool}"}}}}"#);
            format!(r#"> {{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)
        };
        let said = |id: u32, text: &str| {
            format!(r#"< {{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"text":"mcproof-at-once-{text}"}}]}}}}"#)
        };
        let check = |lines: &[String], expected: Result<(), &str>| {
            let take = example::read(&lines.join("\n"), "stdio", "2025-11-25");
            let judged = concurrent_answers_match(&ConversationView::new(&take));
            let seen = match &judged {
                Judgment::Pass => Ok(()),
                Judgment::Broken(violations) => {
                    Err(violations.iter().map(|violation| violation.message.as_str()).collect::<Vec<_>>().join("; "))
                }
                other => Err(format!("{other:?}")),
            };
            assert_eq!(seen, expected.map_err(str::to_owned), "{lines:?}");
        };
        let alone = |came: &str| ["@ read a".to_owned(), read(1, "a://a"), contents(1, came)];
        let at_once = ["@ concurrent".to_owned(), read(2, "a://a"), read(3, "a://b"), contents(2, "a://b"), contents(3, "a://b")];
        let mixed = "of several concurrent requests, `resources/read` of `a://a` got what belongs to `resources/read` of `a://b`";
        check(&[alone("a://a").as_slice(), &at_once].concat(), Err(mixed));
        check(&[alone("a://b").as_slice(), &at_once].concat(), Ok(()));

        let calls = |tools: [&str; 3], came: [&str; 3]| {
            let asked = tools.iter().zip(1..).map(|(tool, id)| call(id, tool));
            let came = came.iter().zip(1..).map(|(text, id)| said(id, text));
            std::iter::once("@ concurrent".to_owned()).chain(asked).chain(came).collect::<Vec<_>>()
        };
        check(&calls(["echo", "echo", "echo"], ["1-echo", "2-echo", "3-echo"]), Ok(()));
        let of_itself = "of several concurrent requests, a call of `echo` got the result of another call of it";
        check(&calls(["echo", "echo", "echo"], ["3-echo", "3-echo", "3-echo"]), Err(of_itself));
        let of_another = "of several concurrent requests, a call of `echo` got what belongs to a call of `draw`";
        check(&calls(["echo", "echo", "draw"], ["3-draw", "2-echo", "3-draw"]), Err(of_another));
    }

    #[test]
    fn what_an_answer_is_about_is_told_without_its_id() {
        let one = r#"> {"jsonrpc":"2.0","id":1,"method":"one"}"#;
        let told = r#"> {"jsonrpc":"2.0","method":"notifications/told"}"#;
        let answer = |id: &str| format!("< {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}");
        let join = |lines: &[&str]| lines.join("\n");
        check(&join(&[one, &answer("1")]), &["answer one"]);
        check(&join(&[one, &answer("1"), &answer("1")]), &["answer one", "again one"]);
        check(&join(&[one, one, &answer("1"), &answer("1")]), &["answer one", "answer one"]);
        check(&join(&[one, &answer("\"1\"")]), &["wrong one"]);
        check(&join(&[one, &answer("null")]), &["wrong one"]);
        check(&join(&[one, &answer("2"), &answer("1")]), &["stray", "answer one"]);
        check(&join(&[one, &answer("1"), told, &answer("null")]), &["answer one", "notification"]);
        check(&join(&[one, told, &answer("null"), &answer("1")]), &["notification", "answer one"]);
        check(&join(&[told, one, &answer("null"), &answer("1")]), &["notification", "answer one"]);
        check(&join(&["> {\"jsonrpc\":", &answer("null"), one, &answer("1")]), &["excused", "answer one"]);
        check(&join(&[told, one, ">", &answer("1"), &answer("null")]), &["answer one", "excused"]);
        check(&join(&[">", one, &answer("\"1\"")]), &["wrong one"]);
        check(&join(&[one, "< [{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]"]), &["answer one"]);
        check(&join(&[one, "< {\"level\":\"info\"}", &answer("1")]), &["answer one"]);
    }
}
