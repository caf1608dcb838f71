//! Streamable HTTP: status codes, media types, methods and headers.
//! Source: basic/transports, Streamable HTTP.

use super::connections::{second_request_hangs, unanswered_posts};
use super::rule_definition::{AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::{Attempt, AttemptOutcome, ConversationView, HttpExchange};
use mcproof_analysis::diagnosis::{PAGE, is_page, remedy_for_body};
use mcproof_analysis::probes::{BAD_VERSION_DELETE, BAD_VERSION_GET};
use mcproof_analysis::read_json;
use mcproof_analysis::stdout_lines::has_half_surrogate;
use mcproof_analysis::wording::excerpt;
use mcproof_client::is_gateway;
use mcproof_protocol::Revision;
use mcproof_record::FrameId;
use serde_json::Value;

pub(super) const SENDING: &[RequirementSource] = &[
    RequirementSource {
        revisions: revisions::SESSIONS,
        level: RequirementLevel::Must,
        source: "basic/transports#sending-messages-to-the-server",
    },
    RequirementSource {
        revisions: revisions::MODERN,
        level: RequirementLevel::Must,
        source: "basic/transports/streamable-http#sending-messages",
    },
];

const PRACTICE: &[RequirementSource] = &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Portability, source: "" }];

/// What a status means where the specification leaves open which one it is.
const STATUS_CODES: &str = "https://www.rfc-editor.org/rfc/rfc9110#section-15";

const VERSION_HEADER: &str = "basic/transports#protocol-version-header";
const WITH_VERSION_HEADER: super::Revisions = Revision::V2025_06_18..=Revision::V2025_11_25;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "http-response-content-type",
        area: Area::Http,
        requirement: "the response to a request is `application/json` or `text/event-stream`",
        sources: &[
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
                source: "basic/transports/streamable-http#sending-messages",
            },
        ],
        on: AppliesTo::Web,
        judge: Judge::Each(answer_content_type),
        why: "clients decide by the content type how to read the body, and reject any other type",
        remedy: "set `Content-Type` to the type of the body",
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-result-has-status-200",
        area: Area::Http,
        requirement: "a result is sent with status 200",
        sources: SENDING,
        on: AppliesTo::Http,
        judge: Judge::Each(result_has_status_200),
        why: "clients check the status first: they treat an error status as a failure, and 202 as the response to a notification",
        remedy: "respond with status 200 to requests that succeed",
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-error-has-status-200",
        area: Area::Http,
        requirement: "in revisions with a handshake, the JSON-RPC error for a valid HTTP request is sent with status 200",
        sources: &[RequirementSource { revisions: revisions::SESSIONS, level: RequirementLevel::Should, source: "" }],
        on: AppliesTo::Http,
        judge: Judge::Each(error_has_status_200),
        why: "clients check the status first: they treat 404 as the end of the session and 202 as an accepted notification; for any other status they report the number instead of the error, or wait until their deadline",
        remedy: "respond with status 200 and the JSON-RPC error; 4xx is for errors in the HTTP request itself",
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-notification-gets-202",
        area: Area::Http,
        requirement: "a POST of a notification or a response gets status 202",
        sources: SENDING,
        on: AppliesTo::Http,
        judge: Judge::Each(notification_gets_202),
        why: "with another status, some clients look for a message in the body, and others treat the handshake as failed",
        remedy: "respond to notifications and responses with 202 and no body",
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-notification-response-is-empty",
        area: Area::Http,
        requirement: "the HTTP response to a notification or a response has no body",
        sources: SENDING,
        on: AppliesTo::Http,
        judge: Judge::Each(notification_answer_is_empty),
        why: "clients that read the body find a message without a request, or invalid JSON",
        remedy: "send status 202 with `Content-Length: 0`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-get-opens-stream-or-405",
        area: Area::Http,
        requirement: "a GET opens an event stream or gets status 405; in the modern era it gets 405",
        sources: &[
            RequirementSource {
                revisions: revisions::SESSIONS,
                level: RequirementLevel::Must,
                source: "basic/transports#listening-for-messages-from-the-server",
            },
            RequirementSource {
                revisions: revisions::MODERN,
                level: RequirementLevel::Should,
                source: "basic/transports/streamable-http#earlier-streamable-http-revisions",
            },
        ],
        on: AppliesTo::Http,
        judge: Judge::Each(get_opens_stream_or_405),
        why: "clients open this stream after the handshake; with 405 they continue without it, and any other error is a failed connection to them",
        remedy: "respond to GET at the endpoint with `text/event-stream`, or with 405 and `Allow`",
        sdks: &[("TypeScript", "`app.get('/mcp', (_, response) => response.set('Allow', 'POST').status(405).end())`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-delete-ends-session-or-405",
        area: Area::Http,
        requirement: "a DELETE ends the session or gets status 405; in the modern era it gets 405",
        sources: &[
            RequirementSource {
                revisions: revisions::SESSIONS,
                level: RequirementLevel::Must,
                source: "basic/transports#session-management",
            },
            RequirementSource {
                revisions: revisions::MODERN,
                level: RequirementLevel::Should,
                source: "basic/transports/streamable-http#earlier-streamable-http-revisions",
            },
        ],
        on: AppliesTo::Http,
        judge: Judge::Each(delete_is_answered),
        why: "clients end their sessions when they disconnect; if that fails, sessions pile up on the server",
        remedy: "remove the session and respond to DELETE with a success status, or respond with 405",
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-unknown-version-gets-400",
        area: Area::Http,
        requirement: "a request whose `MCP-Protocol-Version` is invalid or not supported gets status 400",
        sources: &[RequirementSource { revisions: WITH_VERSION_HEADER, level: RequirementLevel::Must, source: VERSION_HEADER }],
        on: AppliesTo::Http,
        judge: Judge::Each(unknown_version_gets_400),
        why: "without the error, a client of another revision gets responses that it cannot interpret",
        remedy: "compare the header with the supported revisions before reading anything else",
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-version-header-is-optional",
        area: Area::Http,
        requirement: "a request of a session without `MCP-Protocol-Version` is served",
        sources: &[RequirementSource { revisions: WITH_VERSION_HEADER, level: RequirementLevel::Should, source: VERSION_HEADER }],
        on: AppliesTo::Http,
        judge: Judge::Each(version_header_is_optional),
        why: "clients of 2025-03-26 do not know the header",
        remedy: "treat a missing header as the negotiated version of the session, or as 2025-03-26",
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-malformed-body-is-refused",
        area: Area::Http,
        requirement: "a body that is not valid JSON gets an HTTP error status",
        sources: &[
            RequirementSource { revisions: revisions::FIRST, level: RequirementLevel::Should, source: STATUS_CODES },
            RequirementSource {
                revisions: revisions::SESSIONS,
                level: RequirementLevel::Must,
                source: "basic/transports#sending-messages-to-the-server",
            },
            RequirementSource {
                revisions: revisions::MODERN,
                level: RequirementLevel::Must,
                source: "basic/transports/streamable-http#sending-messages",
            },
        ],
        on: AppliesTo::Web,
        judge: Judge::Each(malformed_body_is_refused),
        why: "a success status means that the message was accepted, so the client waits for a response that never comes",
        remedy: "catch the parse error, and respond with 400 and the error -32700",
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-malformed-body-is-4xx",
        area: Area::Http,
        requirement: "a body that is not valid JSON is refused with a status from 400 to 499, not with 5xx",
        sources: &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Should, source: STATUS_CODES }],
        on: AppliesTo::Web,
        judge: Judge::Each(malformed_body_is_4xx),
        why: "5xx triggers alarms, and retries by clients and proxies, for an error of the client",
        remedy: "catch the parse error, and respond with 400 and the error -32700",
        sdks: &[("TypeScript", "an error handler after `express.json()` that answers with 400")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-wrong-content-type-is-4xx",
        area: Area::Http,
        requirement: "a message posted as `text/plain` is refused",
        sources: &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Should, source: "" }],
        on: AppliesTo::Web,
        judge: Judge::Each(wrong_content_type_is_4xx),
        why: "a browser lets any page post `text/plain` to any server, but JSON only after a preflight",
        remedy: "respond with 415 unless the content type is `application/json`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-batch-is-4xx",
        area: Area::Http,
        requirement: "a batch is refused in revisions without batches",
        sources: &[
            RequirementSource {
                revisions: WITH_VERSION_HEADER,
                level: RequirementLevel::Portability,
                source: "basic/transports#sending-messages-to-the-server",
            },
            RequirementSource {
                revisions: revisions::MODERN,
                level: RequirementLevel::Portability,
                source: "basic/transports/streamable-http#sending-messages",
            },
        ],
        on: AppliesTo::Http,
        judge: Judge::Each(batch_is_4xx),
        why: "an old client that sends a batch waits for responses that never arrive, or gets them in an unexpected form",
        remedy: "respond to a body that is an array with 400",
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-null-id-is-refused",
        area: Area::Http,
        requirement: "a request whose id is null is refused",
        sources: PRACTICE,
        on: AppliesTo::Http,
        judge: Judge::Each(null_id_is_refused),
        why: "a server that treats it as a notification drops it silently, and the client waits for a response",
        remedy: "respond with 400 and the error -32600",
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-large-body-is-not-5xx",
        area: Area::Http,
        requirement: "a body of 4 MiB is accepted, or refused with a status from 400 to 499",
        sources: &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Should, source: "" }],
        on: AppliesTo::Web,
        judge: Judge::Each(large_body_is_not_5xx),
        why: "tools get files and images as arguments; 5xx makes clients retry the same request",
        remedy: "raise the limit for bodies, and respond with 413 to larger ones",
        sdks: &[("TypeScript", "`express.json({ limit: '10mb' })`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-accepts-wildcard",
        area: Area::Http,
        requirement: "`Accept: */*` includes both JSON and event streams",
        sources: PRACTICE,
        on: AppliesTo::Http,
        judge: Judge::Each(accepts_wildcard),
        why: "HTTP libraries and health checks send it by default",
        remedy: "treat `*/*` as accepting both media types",
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-accepts-charset",
        area: Area::Http,
        requirement: "a request with `Content-Type: application/json; charset=utf-8` is accepted as one with `application/json`",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Should,
            source: "https://www.rfc-editor.org/rfc/rfc8259#section-11",
        }],
        on: AppliesTo::Http,
        judge: Judge::Each(accepts_charset),
        why: "HTTP libraries, such as those of .NET and Java, name the charset with every JSON body, so such a client can send nothing",
        remedy: "compare the media type up to the first semicolon, regardless of case",
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-serves-trailing-slash",
        area: Area::Http,
        requirement: "the endpoint does not redirect, with or without a trailing slash in its path",
        sources: PRACTICE,
        on: AppliesTo::Http,
        judge: Judge::Each(serves_trailing_slash),
        why: "some clients do not follow the redirect of a POST, others lose its body or its token",
        remedy: "serve both paths, or respond to the other one with 404",
        sdks: &[("Python", "Starlette: `app.router.redirect_slashes = False`")],
        ..Rule::DEFAULT
    },
];

/// The exchange of a probe whose request differs from the plain one in a single thing, where that one is served.
pub(super) fn varied<'a, 'c>(conversation: &'c ConversationView<'a>, probe: &str) -> Result<Attempt<'a, 'c>, Judgment> {
    let untestable = |why: &str| Err(Judgment::Untestable(why.to_owned()));
    let Some(attempt) = conversation.probe(probe) else { return Err(Judgment::NotTried("it was not tried".into())) };
    if !is_served(conversation) {
        return untestable("even a plain request was refused, so refusals are not conclusive");
    }
    match attempt.status() {
        Some(_) => Ok(attempt),
        None => untestable("no response came"),
    }
}

/// Whether the plain request was.
pub(super) fn is_served(conversation: &ConversationView<'_>) -> bool {
    conversation.probe("plain").is_some_and(|plain| plain.status().is_some_and(is_success))
}

pub(super) fn is_success(status: u16) -> bool {
    (200..300).contains(&status)
}

/// What came back, with the status that HTTP gave it.
pub(super) fn told(attempt: &Attempt<'_, '_>) -> String {
    match (&attempt.answer, attempt.status()) {
        (AttemptOutcome::Result { .. } | AttemptOutcome::Error { .. }, Some(status)) => {
            format!("status {status} and {}", attempt.answer.describe())
        }
        (_, Some(status)) => format!("status {status}"),
        (answer, None) => answer.describe(),
    }
}

fn one(message: String, attempt: &Attempt<'_, '_>) -> Judgment {
    Judgment::Broken(vec![Violation::new(message, evidence(attempt))])
}

/// The frames of a probe, with the head of its response.
pub(super) fn evidence(attempt: &Attempt<'_, '_>) -> Vec<FrameId> {
    let mut frames = attempt.frames();
    frames.extend(attempt.http.into_iter().flat_map(HttpExchange::heads));
    frames.sort_unstable();
    frames.dedup();
    frames
}

/// What a POST carried, if that is one value.
fn posted_message(exchange: &HttpExchange<'_>) -> Option<Value> {
    (exchange.method == "POST").then(|| serde_json::from_slice::<Value>(exchange.request_body).ok())?
}

/// The same, if it is a request or a notification.
fn message_of(exchange: &HttpExchange<'_>) -> Option<Value> {
    posted_message(exchange).filter(|message| message.get("method").is_some())
}

fn answer_content_type(conversation: &ConversationView<'_>) -> Judgment {
    let is_sse = conversation.is_over("sse");
    // In the modern era a request may be refused with another status, and by a message all the same.
    let brings_error = |exchange: &HttpExchange<'_>| {
        let is_error = |body: Value| body.get("jsonrpc").is_some() && body.get("error").is_some();
        conversation.is_modern() && exchange.body.is_some_and(|(_, body)| read_json(body).is_ok_and(|body| body.is_some_and(is_error)))
    };
    let answered: Vec<&HttpExchange<'_>> = conversation
        .exchanges
        .values()
        .filter(|exchange| exchange.status().is_some_and(|status| (200..300).contains(&status)) || brings_error(exchange))
        .filter(|exchange| match is_sse {
            true => exchange.method == "GET" && exchange.request_header("accept") == Some("text/event-stream"),
            false => message_of(exchange).is_some_and(|message| message.get("id").is_some()),
        })
        .filter(|exchange| is_sse || !exchange.events.is_empty() || exchange.body.is_some_and(|(_, body)| !body.is_empty()))
        .collect();
    let is_right = |kind: &str| kind == "text/event-stream" || (!is_sse && kind == "application/json");
    let wrong: Vec<_> = answered.iter().filter(|exchange| !exchange.media_type().as_deref().is_some_and(is_right)).collect();
    let violation = wrong.first().map(|exchange| {
        let kind = exchange.header("content-type").map_or_else(|| "no content type".to_owned(), |kind| format!("`{}`", excerpt(kind)));
        let what = message_of(exchange).and_then(|message| Some(format!("`{}`", message.get("method")?.as_str()?)));
        let what = what.unwrap_or_else(|| "the GET of the stream".into());
        let body = exchange.body.map(|(_, body)| String::from_utf8_lossy(body)).unwrap_or_default();
        let remedy = is_page(exchange.header("content-type").unwrap_or_default(), &body).then(|| PAGE.to_owned());
        Violation { remedy, ..Violation::new(format!("the response to {what} has {kind}"), exchange.heads()) }
    });
    Judgment::of(violation.into_iter().collect(), answered.len(), "no request got a response with a body")
}

/// What is wrong with the JSON of a body, if anything is.
fn flaw_of_body(body: &[u8]) -> Option<String> {
    match read_json(body) {
        Ok(None | Some(Value::Object(_) | Value::Array(_))) => None,
        Ok(Some(_)) => Some(format!("is not an object: `{}`", excerpt(body))),
        Err(_) if body.trim_ascii().is_empty() => Some("is empty".to_owned()),
        Err(_) if [b"data:".as_slice(), b"event:", b"id:", b":"].iter().any(|field| body.trim_ascii_start().starts_with(field)) => {
            Some(format!("is an event stream: `{}`", excerpt(body)))
        }
        // One that is cut short is told with how it is framed, one in another encoding with that.
        Err(error) if error.is_eof() || std::str::from_utf8(body).is_err() => None,
        Err(_) if has_half_surrogate(body) => Some(format!("has half of a surrogate pair: `{}`", excerpt(body))),
        Err(_) => Some(match not_a_number(body) {
            Some(number) => format!("has the number `{number}`, which JSON does not have"),
            None => format!("is not valid JSON: `{}`", excerpt(body)),
        }),
    }
}

/// What some serializers write for numbers that JSON has no form for.
fn not_a_number(body: &[u8]) -> Option<&'static str> {
    let text = std::str::from_utf8(body).ok()?;
    let stands = |number: &&str| text.contains(&format!(":{number}")) || text.contains(&format!(": {number}"));
    ["-Infinity", "Infinity", "NaN"].into_iter().find(stands)
}

/// Judges `http-body-is-json`.
pub(super) fn json_body_is_json(conversation: &ConversationView<'_>) -> Judgment {
    let asks = |exchange: &&HttpExchange<'_>| message_of(exchange).is_some_and(|message| message.get("id").is_some());
    let is_json = |exchange: &&HttpExchange<'_>| exchange.media_type().as_deref() == Some("application/json");
    // A body that broke off is told with how it is framed.
    let has_ended = |exchange: &&HttpExchange<'_>| exchange.end.is_some_and(|(_, why)| why.is_none());
    let is_refusal = |exchange: &HttpExchange<'_>| exchange.status().is_some_and(|status| status >= 400);
    let has_content = |exchange: &HttpExchange<'_>| exchange.body.is_some_and(|(_, body)| !body.trim_ascii().is_empty());
    let is_whole = |exchange: &&HttpExchange<'_>| match exchange.status() {
        Some(200) => exchange.body.is_some() || has_ended(exchange),
        // A refusal may have no body.
        _ => is_refusal(exchange) && has_content(exchange),
    };
    let bodies: Vec<&HttpExchange<'_>> = conversation.exchanges.values().filter(asks).filter(is_json).filter(is_whole).collect();
    let is_broken = |exchange: &HttpExchange<'_>| matches!(exchange.end, Some((_, Some(_))));
    let wrong = bodies.iter().filter(|exchange| !is_broken(exchange)).find_map(|exchange| {
        let body = exchange.body.map_or(b"".as_slice(), |(_, body)| body);
        // Nor does it have to be a message.
        let flaw = flaw_of_body(body).filter(|_| !is_refusal(exchange) || read_json(body).is_err())?;
        let method = message_of(exchange)?["method"].as_str().unwrap_or_default().to_owned();
        let frames = exchange.heads().into_iter().chain(exchange.body.map(|(frame, _)| frame.id));
        let message = format!("the response to `{method}` has the type `application/json` and {flaw}");
        Some(Violation { remedy: remedy_for_body(body).map(str::to_owned), ..Violation::new(message, frames) })
    });
    Judgment::of(wrong.into_iter().collect(), bodies.len(), "no request got a JSON body")
}

fn result_has_status_200(conversation: &ConversationView<'_>) -> Judgment {
    let results: Vec<(&HttpExchange<'_>, FrameId)> = conversation
        .from_server()
        .filter(|wire_message| wire_message.value.get("result").is_some())
        .filter_map(|wire_message| Some((conversation.exchanges.get(&wire_message.exchange?)?, wire_message.frame.id)))
        .filter(|(exchange, _)| message_of(exchange).is_some_and(|message| message.get("id").is_some()))
        .collect();
    let wrong: Vec<_> = results.iter().filter(|(exchange, _)| exchange.status() != Some(200)).collect();
    let violation = wrong.first().map(|(exchange, frame)| {
        let status = exchange.status().unwrap_or_default();
        Violation::new(format!("a result came with status {status}"), exchange.heads().into_iter().chain([*frame]))
    });
    Judgment::of(violation.into_iter().collect(), results.len(), "no request got a result")
}

fn error_has_status_200(conversation: &ConversationView<'_>) -> Judgment {
    let Some(attempt) = conversation.probe("unknown-method") else { return Judgment::NotTried("no unknown method was tried".into()) };
    match (attempt.status(), attempt.answer) {
        (Some(200), AttemptOutcome::Error { .. }) => Judgment::Pass,
        (Some(status @ (401 | 403)), _) => Judgment::Untestable(format!("an unknown method got status {status}")),
        // What is refused without a message may not have been read.
        (Some(status), answer) if status != 200 && (status < 400 || matches!(answer, AttemptOutcome::Error { .. })) => {
            one(format!("an unknown method got {}", told(&attempt)), &attempt)
        }
        _ => Judgment::Untestable(format!("an unknown method got {}", attempt.answer.describe())),
    }
}

/// Notifications that were posted, and responses to what the server asked: what each is called, and the status that it got.
fn unanswerable<'c, 'a>(conversation: &'c ConversationView<'a>) -> Vec<(&'c HttpExchange<'a>, String, u16)> {
    // A response to nothing is none of what a server has to accept.
    let attempt = |id: &Value| conversation.from_server().find(|wire_message| wire_message.is_request() && wire_message.id() == Some(id));
    let posted = conversation.exchanges.values().filter_map(|exchange| {
        let message = posted_message(exchange)?;
        let what = match (message.get("method"), message.get("id")) {
            (Some(method), None) => format!("`{}`", method.as_str()?),
            (None, Some(id)) => format!("the response to `{}`", attempt(id)?.method()?),
            _ => return None,
        };
        Some((exchange, what, exchange.status()?))
    });
    posted.collect()
}

const ON_KEPT_CONNECTIONS: &str =
    "respond to each request on a connection, or send `Connection: close` with the first response (http-connection-is-reusable)";

/// Why the refusal of a cancellation counts one step less if there is nothing to cancel.
const CANCELS_NOTHING: &str = "the specification says that invalid cancellations should be ignored, not that they must be";

fn notification_gets_202(conversation: &ConversationView<'_>) -> Judgment {
    // Whoever agreed to a version that does not exist has another fault.
    let is_of_known = |(exchange, ..): &(&HttpExchange<'_>, String, u16)| !exchange.names_unknown_version();
    let posted: Vec<_> = unanswerable(conversation).into_iter().filter(is_of_known).collect();
    // One that names a request of this conversation is right, whether the request has ended or not.
    let is_of_request = |exchange: &HttpExchange<'_>| {
        let canceled = posted_message(exchange).and_then(|message| message.pointer("/params/requestId").cloned());
        canceled.is_some_and(|id| conversation.requests().any(|(request, _)| request.id() == Some(&id)))
    };
    // Invalid cancellations SHOULD be ignored (basic/utilities/cancellation#error-handling).
    let is_of_nothing = |exchange: &HttpExchange<'_>| {
        conversation.probes("unknown-cancel").any(|attempt| attempt.probed.contains(exchange.request.id)) && !is_of_request(exchange)
    };
    let wrong = |exchange: &HttpExchange<'_>, what: &str, status: u16| match (status, what) {
        (202 | 401 | 403, _) => false,
        // What the server does not know it may refuse; the end of the handshake and a cancellation it may not.
        (400, "`notifications/cancelled`") => is_of_request(exchange) || is_of_nothing(exchange),
        (400.., _) => what == "`notifications/initialized`",
        _ => true,
    };
    let is_tolerated = |exchange: &HttpExchange<'_>, status: u16| status == 400 && is_of_nothing(exchange);
    let mut all = posted.iter().filter(|(exchange, what, status)| wrong(exchange, what, *status));
    let first = all.clone().find(|(exchange, _, status)| !is_tolerated(exchange, *status)).or_else(|| all.next());
    let violation = first.map(|(exchange, what, status)| Violation {
        tolerance: is_tolerated(exchange, *status).then_some(CANCELS_NOTHING),
        ..Violation::new(format!("{what} got status {status}"), exchange.heads())
    });
    let unanswered = unanswered_posts(conversation);
    let silence = unanswered.first().map(|(exchange, told)| match second_request_hangs(conversation) {
        true => {
            let message = format!("{told}, as the second request on any connection gets none");
            Violation { remedy: Some(ON_KEPT_CONNECTIONS.to_owned()), ..Violation::new(message, exchange.heads()) }
        }
        false => Violation::new(told.clone(), exchange.heads()),
    });
    Judgment::of(violation.into_iter().chain(silence).collect(), posted.len(), "no notification was posted")
}

/// Why a body without a message counts one step less.
const WHITE_SPACE: &str = "clients do not read the body of a response to a notification";

fn notification_answer_is_empty(conversation: &ConversationView<'_>) -> Judgment {
    let taken: Vec<_> = unanswerable(conversation).into_iter().filter(|(_, _, status)| *status == 202).collect();
    let bodies = || taken.iter().filter_map(|(exchange, what, _)| Some((exchange, what, exchange.body?)));
    let told = bodies().find(|(.., (_, body))| !body.trim_ascii().is_empty()).map(|(exchange, what, (frame, body))| {
        let message = format!("the HTTP response to {what} has the body `{}`", excerpt(body));
        Violation::new(message, exchange.heads().into_iter().chain([frame.id]))
    });
    let blank = || {
        bodies().find(|(.., (_, body))| !body.is_empty()).map(|(exchange, what, (frame, _))| {
            let message = format!("the HTTP response to {what} has a body of nothing but white space");
            Violation { tolerance: Some(WHITE_SPACE), ..Violation::new(message, exchange.heads().into_iter().chain([frame.id])) }
        })
    };
    Judgment::of(told.or_else(blank).into_iter().collect(), taken.len(), "no notification got status 202")
}

const HAS_LEGACY_ERA: &str = "the server also supports the legacy era, which has this method";

fn get_opens_stream_or_405(conversation: &ConversationView<'_>) -> Judgment {
    let Some(attempt) = conversation.probe("get") else {
        return match conversation.is_modern() && conversation.probe("plain").is_some() {
            true => Judgment::NotApplicable(HAS_LEGACY_ERA.into()),
            false => Judgment::NotTried("no GET was sent".into()),
        };
    };
    let mut resumed = ["resumed-after-last", "resumed-after-first"].into_iter().flat_map(|probe| conversation.probes(probe));
    if let Some((status, resumed)) = resumed.find_map(|resumed| Some((resumed.status().filter(|status| *status >= 500)?, resumed))) {
        return one(format!("a GET with a `Last-Event-ID` of the server got status {status}"), &resumed);
    }
    let is_stream = !conversation.is_modern() && attempt.http.and_then(HttpExchange::media_type).as_deref() == Some("text/event-stream");
    match attempt.status() {
        None => Judgment::Untestable("the GET got no response within a second".into()),
        Some(401) => Judgment::Untestable("the GET was not authorized".into()),
        Some(405) => Judgment::Pass,
        Some(200) if is_stream => Judgment::Pass,
        Some(409) if has_stream_in_session(conversation, &attempt) => {
            Judgment::Untestable("the server takes one stream for each session, and that is open".into())
        }
        Some(status) => {
            let kind = attempt.http.and_then(|http| http.header("content-type")).map(|kind| format!(" and `{}`", excerpt(kind)));
            one(format!("a GET got status {status}{}", kind.unwrap_or_default()), &attempt)
        }
    }
}

/// Whether a stream was opened before, in the session of this request.
fn has_stream_in_session(conversation: &ConversationView<'_>, attempt: &Attempt<'_, '_>) -> bool {
    let Some(http) = attempt.http else { return false };
    let session = http.request_header("mcp-session-id");
    conversation.exchanges.values().any(|other| {
        let is_earlier = other.method == "GET" && other.request.id < http.request.id && other.status() == Some(200);
        is_earlier && session.is_some() && other.request_header("mcp-session-id") == session
    })
}

fn delete_is_answered(conversation: &ConversationView<'_>) -> Judgment {
    let Some(attempt) = conversation.probe("delete") else {
        return match conversation.is_modern() && conversation.probe("plain").is_some() {
            true => Judgment::NotApplicable(HAS_LEGACY_ERA.into()),
            false => super::sessions::without_sessions(conversation),
        };
    };
    match attempt.status() {
        None => Judgment::Untestable("the DELETE got no response".into()),
        Some(401) => Judgment::Untestable("the DELETE was not authorized".into()),
        Some(405) => Judgment::Pass,
        Some(status) if is_success(status) && !conversation.is_modern() => Judgment::Pass,
        Some(404) if has_ended_before(conversation, &attempt) => Judgment::Untestable("the session had ended before".into()),
        Some(status) => one(format!("a DELETE got status {status}"), &attempt),
    }
}

/// Whether the last message in the session of a DELETE was refused as well.
fn has_ended_before(conversation: &ConversationView<'_>, delete: &Attempt<'_, '_>) -> bool {
    let Some((exchange, session)) = delete.http.and_then(|http| Some((http, http.request_header("mcp-session-id")?))) else { return false };
    let in_session = conversation.exchanges.values().filter(|other| other.request_header("mcp-session-id") == Some(session));
    let last =
        in_session.filter(|other| other.method == "POST" && other.request.id < exchange.request.id).max_by_key(|other| other.request.id);
    last.is_some_and(|last| last.status() == Some(404))
}

fn unknown_version_gets_400(conversation: &ConversationView<'_>) -> Judgment {
    // Whoever closes the connection upon several versions, and serves what comes after them, has not refused them as it should.
    let closed = conversation.probes("bad-version").filter(|attempt| matches!(attempt.answer, AttemptOutcome::Gone)).count();
    let is_served_later = || conversation.probe("no-version").is_some_and(|attempt| attempt.status().is_some());
    let closes = closed > 1 && is_served(conversation) && is_served_later();
    if let Err(judgment) = varied(conversation, "bad-version")
        && !closes
    {
        return judgment;
    }
    let is_tried = |attempt: &Attempt<'_, '_>| attempt.status().is_some() || closes && matches!(attempt.answer, AttemptOutcome::Gone);
    let tried: Vec<_> = conversation.probes("bad-version").filter(is_tried).collect();
    let wrong: Vec<_> = tried.iter().filter(|attempt| attempt.status() != Some(400)).collect();
    let outcome = |attempt: &Attempt<'_, '_>| match attempt.status() {
        Some(_) => told(attempt),
        None => "no response: the connection was closed".to_owned(),
    };
    let told: Vec<String> = wrong
        .iter()
        .map(|attempt| format!("`{}` got {}", attempt.probed.subject.as_deref().unwrap_or_default(), outcome(attempt)))
        .collect();
    let frames = wrong.iter().flat_map(|attempt| evidence(attempt));
    let violation = (!wrong.is_empty()).then(|| Violation::new(format!("the version {}", told.join(", and ")), frames));
    let violation = violation.or_else(|| unknown_version_is_served(conversation));
    Judgment::of(violation.into_iter().collect(), tried.len(), "no response came")
}

/// Why an unknown version on a GET or a DELETE counts one step less.
const NO_MESSAGE: &str = "some SDKs compare the version of a POST only, and a GET and a DELETE carry no message that could be misread";

/// That a GET or a DELETE did its work in an unknown version. A refusal may have other reasons, such as that there is no such method.
fn unknown_version_is_served(conversation: &ConversationView<'_>) -> Option<Violation> {
    let opened = conversation.probe(BAD_VERSION_GET).filter(|attempt| {
        attempt.status() == Some(200) && attempt.http.and_then(HttpExchange::media_type).as_deref() == Some("text/event-stream")
    });
    let ended = conversation.probe(BAD_VERSION_DELETE).filter(|attempt| attempt.status().is_some_and(is_success));
    let served = opened.map(|attempt| ("a GET", "an event stream".to_owned(), attempt)).into_iter();
    let served: Vec<_> = served.chain(ended.map(|attempt| ("a DELETE", told(&attempt), attempt))).collect();
    let sentences = served.iter().map(|(what, outcome, attempt)| {
        let version = attempt.http.and_then(|http| http.request_header("mcp-protocol-version")).unwrap_or_default();
        format!("{what} with the version `{}` got {outcome}", excerpt(version))
    });
    let message = sentences.collect::<Vec<_>>().join(", and ");
    let violation = Violation::new(message, served.iter().flat_map(|(.., attempt)| evidence(attempt)));
    (!served.is_empty()).then_some(Violation { tolerance: Some(NO_MESSAGE), ..violation })
}

fn version_header_is_optional(conversation: &ConversationView<'_>) -> Judgment {
    match varied(conversation, "no-version") {
        Err(judgment) => judgment,
        Ok(attempt) if attempt.status().is_some_and(is_success) => Judgment::Pass,
        Ok(attempt) => one(format!("a request without `MCP-Protocol-Version` got {}", told(&attempt)), &attempt),
    }
}

/// The status that a body got that is not valid JSON, or what is to be said instead.
fn malformed_body<'a, 'c>(conversation: &'c ConversationView<'a>) -> Result<(Attempt<'a, 'c>, u16), Judgment> {
    let Some(attempt) = conversation.probe("malformed-body") else { return Err(Judgment::NotTried("none was sent".into())) };
    let Some(status) = attempt.status() else { return Err(Judgment::Untestable("a malformed body got no response".into())) };
    let is_told_on_the_stream = conversation.is_over("sse")
        && is_success(status)
        && conversation.from_server().any(|wire_message| {
            let is_late_error = wire_message.value.get("error").is_some() && wire_message.value.get("id").is_none_or(Value::is_null);
            is_late_error && wire_message.frame.id >= attempt.probed.first && wire_message.exchange != attempt.http.map(|http| http.id)
        });
    if is_told_on_the_stream {
        return Err(Judgment::Pass);
    }
    if is_without_stream(conversation, status) {
        return Err(Judgment::Untestable(NO_STREAM.into()));
    }
    Ok((attempt, status))
}

/// The specification names 400 as an example: any status of an error will do.
fn malformed_body_is_refused(conversation: &ConversationView<'_>) -> Judgment {
    match malformed_body(conversation) {
        Err(judgment) => judgment,
        Ok((_, 400..)) => Judgment::Pass,
        Ok((attempt, status)) => one(format!("a body that is not valid JSON got status {status}"), &attempt),
    }
}

fn malformed_body_is_4xx(conversation: &ConversationView<'_>) -> Judgment {
    match malformed_body(conversation) {
        Err(judgment) => judgment,
        Ok((_, 400..500)) => Judgment::Pass,
        Ok((attempt, status @ 500..)) => one(format!("a body that is not valid JSON got status {status}"), &attempt),
        Ok((_, status)) => Judgment::Untestable(format!("it got status {status}: see http-malformed-body-is-refused")),
    }
}

fn wrong_content_type_is_4xx(conversation: &ConversationView<'_>) -> Judgment {
    match varied(conversation, "text-body") {
        Err(judgment) => judgment,
        Ok(attempt) => match (attempt.status(), attempt.answer) {
            (Some(400..500), _) | (_, AttemptOutcome::Error { .. }) => Judgment::Pass,
            _ => one(format!("a message posted as `text/plain` got {}", told(&attempt)), &attempt),
        },
    }
}

/// A body that is no single request in order, and what a server did with it.
fn refused_body(conversation: &ConversationView<'_>, probe: &str, what: &str) -> Judgment {
    match varied(conversation, probe) {
        Err(judgment) => judgment,
        Ok(attempt) => match (attempt.status(), attempt.answer) {
            (Some(400..500), _) | (_, AttemptOutcome::Error { .. }) => Judgment::Pass,
            _ => one(format!("{what} got {}", told(&attempt)), &attempt),
        },
    }
}

fn batch_is_4xx(conversation: &ConversationView<'_>) -> Judgment {
    refused_body(conversation, "http-batch", "a batch")
}

fn null_id_is_refused(conversation: &ConversationView<'_>) -> Judgment {
    refused_body(conversation, "null-id", "a request whose id is null")
}

const NO_STREAM: &str = "the server had ended the event stream, without which it takes no message";

/// Whether a status tells that there is no stream any more that the response could go to.
fn is_without_stream(conversation: &ConversationView<'_>, status: u16) -> bool {
    let mut streams = conversation.exchanges.values().filter(|exchange| exchange.method == "GET" && !exchange.events.is_empty());
    conversation.is_over("sse") && is_gateway(status) && streams.next().is_some_and(|own| own.end.is_some())
}

fn large_body_is_not_5xx(conversation: &ConversationView<'_>) -> Judgment {
    match varied(conversation, "large-body") {
        Err(judgment) => judgment,
        Ok(attempt) if attempt.status().is_some_and(|status| is_without_stream(conversation, status)) => {
            Judgment::Untestable(NO_STREAM.into())
        }
        Ok(attempt) if attempt.status().is_some_and(|status| status >= 500) => {
            one(format!("a body of 4 MiB got {}", told(&attempt)), &attempt)
        }
        Ok(_) => Judgment::Pass,
    }
}

fn accepts_wildcard(conversation: &ConversationView<'_>) -> Judgment {
    match varied(conversation, "accept-wildcard") {
        Err(judgment) => judgment,
        Ok(attempt) if attempt.status().is_some_and(is_success) => Judgment::Pass,
        Ok(attempt) => one(format!("`Accept: */*` got {}", told(&attempt)), &attempt),
    }
}

fn accepts_charset(conversation: &ConversationView<'_>) -> Judgment {
    match varied(conversation, "charset-named") {
        Err(judgment) => judgment,
        Ok(attempt) if attempt.status().is_some_and(is_success) => Judgment::Pass,
        Ok(attempt) => one(format!("`Content-Type: application/json; charset=utf-8` got {}", told(&attempt)), &attempt),
    }
}

fn serves_trailing_slash(conversation: &ConversationView<'_>) -> Judgment {
    let Some(attempt) = conversation.probe("other-slash") else {
        return match conversation.probe("plain") {
            Some(_) => Judgment::NotApplicable("the endpoint is the root path, which has no other spelling".into()),
            None => Judgment::NotTried("it was not tried".into()),
        };
    };
    let path = attempt.probed.subject.as_deref().unwrap_or_default();
    match attempt.status() {
        None => Judgment::Untestable("the other spelling of the path got no response".into()),
        Some(status @ 300..400) => {
            let location = attempt.http.and_then(|http| http.header("location")).unwrap_or("nowhere");
            one(format!("`{path}` redirects to `{}` with status {status}", excerpt(location)), &attempt)
        }
        Some(_) => Judgment::Pass,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_analysis::example;

    #[test]
    fn a_page_for_people_is_no_message_with_another_type() {
        let check = |kind: &str, body: &str, expected: Option<&str>| {
            let text = format!("> POST /mcp\n> {{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}}\n< 200 content-type: {kind}\n< {body}");
            let judged = answer_content_type(&ConversationView::new(&example::read(&text, "http", "2025-11-25")));
            let Judgment::Broken(violations) = judged else { panic!("{judged:?}") };
            assert_eq!(violations[0].remedy.as_deref(), expected, "{body}");
        };
        check("text/html", "<!doctype html><html></html>", Some(PAGE));
        check("text/html", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", None);
    }

    #[test]
    fn a_connection_that_is_closed_upon_each_unknown_version_is_no_refusal() {
        let judged = |rest: &str| {
            let text = format!("@ plain\n> POST /mcp\n< 200\n{rest}");
            unknown_version_gets_400(&ConversationView::new(&example::read(&text, "http", "2025-11-25")))
        };
        let closed =
            |version: &str| format!("@ bad-version? {version}\n> POST /mcp mcp-protocol-version: {version}\n! broken connection closed\n");
        let (one, both) = (closed("1900-01-01"), [closed("1900-01-01"), closed("2099-12-31")].concat());
        let later = "@ no-version\n> POST /mcp\n< 200";
        let Judgment::Broken(violations) = judged(&format!("{both}{later}")) else { panic!("it was not refused") };
        let expected = "the version `1900-01-01` got no response: the connection was closed, and `2099-12-31` got no response: the connection was closed";
        assert_eq!(violations[0].message, expected);
        // Once is chance, and a server that is gone afterwards has another fault.
        assert!(matches!(judged(&format!("{one}{later}")), Judgment::Untestable(_)));
        assert!(matches!(judged(&both), Judgment::Untestable(_)));
    }

    #[test]
    fn an_unknown_version_is_served_by_a_stream_or_the_end_of_a_session() {
        let check = |rest: &str, expected: &str| {
            let refused = "@ bad-version 1900-01-01\n> POST /mcp mcp-protocol-version: 1900-01-01\n< 400";
            let text = format!("@ plain\n> POST /mcp\n< 200\n{refused}\n{rest}");
            let judged = unknown_version_gets_400(&ConversationView::new(&example::read(&text, "http", "2025-11-25")));
            match &judged {
                Judgment::Broken(violations) => assert_eq!(violations[0].message, expected),
                judged => assert_eq!((judged, expected), (&Judgment::Pass, ""), "{rest}"),
            }
        };
        let get = |response: &str| format!("@ bad-version-get\n> GET /mcp mcp-protocol-version: 1900-01-01\n< {response}");
        let delete = |status: u16| format!("@ bad-version-delete\n> DELETE /mcp mcp-protocol-version: 1900-01-01\n< {status}");
        check(&get("200 content-type: text/event-stream"), "a GET with the version `1900-01-01` got an event stream");
        check(&delete(204), "a DELETE with the version `1900-01-01` got status 204");
        // What is refused may be refused for another reason.
        for refusal in ["400", "405 allow: POST", "409", "200 content-type: text/html"] {
            check(&get(refusal), "");
        }
        [400, 404, 405].into_iter().for_each(|status| check(&delete(status), ""));
    }
}
