//! The start of a server, the handshake, and whether it is there until the client leaves.
//! Source: basic/lifecycle; 2026-07-28, basic/versioning.

use super::ConversationView;
use super::answers::{
    Meaning, Pairing, ServerMessage, death, died_of_abuse, first_abuse, garbled, gathered, how_it_exited, messages, shown,
};
use super::jsonrpc::RESPONSES;
use super::lost_requests;
use super::modern::supports_legacy;
use super::rule_definition::{Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, negotiated, revisions};
use mcproof_analysis::diagnosis::{missing_piece, remedy_for_body};
use mcproof_analysis::messages::has_request;
use mcproof_analysis::probes::{LEGAL_FORM, parallel_number};
use mcproof_analysis::wording::{excerpt, reason, shortened};
use mcproof_analysis::{Attempt, AttemptOutcome, HttpExchange, USUAL_PROBES, WireMessage, unusual_headers};
use mcproof_protocol::error_code::HEADER_MISMATCH;
use mcproof_protocol::{Era, Revision, methods};
use mcproof_record::{FrameBody, FrameId, Opened, ProbeOutcome};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const NEGOTIATION: &[RequirementSource] =
    &[RequirementSource { revisions: revisions::LEGACY, level: RequirementLevel::Must, source: "basic/lifecycle#version-negotiation" }];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "server-starts",
        area: Area::Lifecycle,
        requirement: "a server does not exit before it has responded to the handshake",
        sources: &[
            RequirementSource { revisions: revisions::LEGACY, level: RequirementLevel::Must, source: "basic/lifecycle#initialization" },
            RequirementSource {
                revisions: revisions::MODERN,
                level: RequirementLevel::Must,
                source: "basic/versioning#protocol-version-negotiation",
            },
        ],
        judge: Judge::Each(starts),
        why: "a host only sees a closed pipe, and reports that the server failed",
        remedy: "run the command by hand in the same environment and folder, and read its output",
        ..Rule::DEFAULT
    },
    Rule {
        id: "initialize-gets-result",
        area: Area::Lifecycle,
        requirement: "`initialize` gets a result",
        sources: &[RequirementSource {
            revisions: revisions::LEGACY,
            level: RequirementLevel::Must,
            source: "basic/lifecycle#initialization",
        }],
        judge: Judge::Each(initialize_is_answered),
        why: "without it there is no session: hosts show the server as failed, mostly after a long wait",
        remedy: "respond to `initialize` at once, and do slow work (connecting, indexing) afterwards",
        ..Rule::DEFAULT
    },
    Rule {
        id: "initialize-negotiates-version",
        area: Area::Lifecycle,
        requirement: "a client that offers an unknown version gets one that the server supports",
        sources: NEGOTIATION,
        judge: Judge::Each(negotiates),
        why: "with an error, a client of a newer revision cannot fall back; with an echo, both sides use a revision that does not exist",
        remedy: "return the requested version if it is supported, otherwise the newest supported one",
        ..Rule::DEFAULT
    },
    Rule {
        id: "initialize-version-is-consistent",
        area: Area::Lifecycle,
        requirement: "the version that a server offers instead of an unknown one is a published one, and the server agrees to it when a client requests it",
        sources: NEGOTIATION,
        judge: Judge::Together(is_consistent),
        why: "a client that requests the offered version gets a different one, or does not know it, and gives up",
        remedy: "use one list of supported versions for both responses",
        ..Rule::DEFAULT
    },
    Rule {
        id: "no-server-requests-before-initialized",
        area: Area::Lifecycle,
        requirement: "before `notifications/initialized` the server sends no request except `ping`",
        sources: &[RequirementSource {
            revisions: revisions::LEGACY,
            level: RequirementLevel::Should,
            source: "basic/lifecycle#initialization",
        }],
        judge: Judge::Each(waits_for_initialized),
        why: "many clients respond only after the handshake, so a server that waits for a response during the handshake waits forever",
        remedy: "send requests, such as `roots/list`, only after `notifications/initialized`",
        sdks: &[("TypeScript", "set `server.oninitialized`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "server-stays-alive",
        area: Area::Lifecycle,
        requirement: "a server does not exit or close the connection in the middle of a conversation",
        sources: &[
            RequirementSource { revisions: revisions::LEGACY, level: RequirementLevel::Must, source: "basic/lifecycle#operation" },
            RequirementSource {
                revisions: revisions::MODERN,
                level: RequirementLevel::Must,
                source: "basic/transports/stdio#unexpected-termination",
            },
        ],
        judge: Judge::Each(stays_alive),
        why: "every open request is lost, and most hosts do not restart the server",
        remedy: "find the handler that ends the process: an uncaught error, or an exit instead of an error response",
        sdks: &[
            ("TypeScript", "an unhandled rejection ends the process: `process.on('unhandledRejection', …)`"),
            ("Go", "recover from panics in handlers"),
        ],
        ..Rule::DEFAULT
    },
    Rule {
        id: "request-gets-response",
        area: Area::Lifecycle,
        requirement: "each valid request gets a response, which may be an error",
        sources: RESPONSES,
        judge: Judge::Each(requests_are_answered),
        why: "the client waits until its deadline; a model that called a tool waits with it",
        remedy: "make every path through a handler end in a response, and respond to unknown methods with -32601",
        ..Rule::DEFAULT
    },
    Rule {
        id: "client-capabilities-are-respected",
        area: Area::Lifecycle,
        requirement: "a server sends only requests that the client has declared to support",
        sources: &negotiated("basic#meta"),
        judge: Judge::Each(capabilities_are_respected),
        why: "the client responds with an error that few tools expect, or does not respond",
        remedy: "check the client's capabilities before sending a request, and work without those that are missing",
        sdks: &[("TypeScript", "`server.getClientCapabilities()`"), ("Python", "`session.check_client_capability(…)`")],
        ..Rule::DEFAULT
    },
];

fn starts(conversation: &ConversationView<'_>) -> Judgment {
    let frames = conversation.frames();
    let attempt =
        conversation.requests().find(|(request, _)| matches!(request.method(), Some(methods::INITIALIZE | methods::SERVER_DISCOVER)));
    let exit = frames.iter().find_map(|frame| match &frame.body {
        FrameBody::Exited { code, signal } => Some((frame, *code, *signal)),
        _ => None,
    });
    let answered = attempt.is_some_and(|(_, answer)| answer.is_some());
    match (answered, exit) {
        (true, _) => Judgment::Pass,
        (false, Some(_)) if outlived(conversation) => {
            Judgment::Untestable("the handshake got no response, and the process did not exit".into())
        }
        (false, Some((frame, code, signal)))
            if !matches!(conversation.conversation.opened, Opened::Bare) && (failed(code, signal) || garbled(conversation).is_none()) =>
        {
            let how = how_it_exited(code, signal);
            let evidence = last_lines(conversation).into_iter().chain([frame.id]);
            let wire_message = last_words(conversation);
            let violation = Violation::new(format!("the process ended {how} before it responded to the handshake{wire_message}"), evidence);
            let variable = |name: &str| Some(format!("set `{name}` in the environment of the server"));
            Judgment::Broken(vec![Violation { remedy: missing_piece(&conversation.conversation.transcript, variable), ..violation }])
        }
        (false, _) => Judgment::Untestable("the handshake got no response, and the process did not exit".into()),
    }
}

/// Whether a process says that it failed: then what it printed before is not its response.
fn failed(code: Option<i32>, signal: Option<i32>) -> bool {
    signal.is_some() || code.is_some_and(|code| code != 0)
}

/// The frames of the last lines of stderr, or of those from the error on: what a server says of its own trouble.
fn last_lines(conversation: &ConversationView<'_>) -> Vec<FrameId> {
    const MOST: usize = 12;
    let lines = stderr_lines(conversation);
    let last = lines.len().saturating_sub(MOST);
    let from = error_line(&lines).map_or(last, |line| line.min(last));
    lines[from..].iter().take(MOST).map(|(frame, _)| *frame).collect()
}

/// The line of stderr that names the error, or else the last one, to be put after a sentence.
pub(super) fn last_words(conversation: &ConversationView<'_>) -> String {
    let lines = stderr_lines(conversation);
    let told = error_line(&lines).or_else(|| lines.iter().rposition(|(_, line)| !line.is_empty()));
    told.map(|line| format!("; its last output: {}", lines[line].1)).unwrap_or_default()
}

fn stderr_lines(conversation: &ConversationView<'_>) -> Vec<(FrameId, String)> {
    let lines = conversation.frames().iter().filter_map(|frame| match &frame.body {
        FrameBody::Stderr { bytes } => Some((frame.id, bytes.to_text().trim().to_owned())),
        _ => None,
    });
    lines.collect()
}

/// The position of the last line that says what went wrong. Runtimes print more after it: Node its stack and its version, Rust how to get
/// a backtrace, Go its goroutines; Rust says it on the line after the place.
fn error_line(lines: &[(FrameId, String)]) -> Option<usize> {
    let names_error = |line: &str| {
        let names = |kind: &str| kind.contains("rror") || kind.contains("xception") || kind == "panic" || kind == "fatal";
        !line.starts_with("at ") && line.split_once(':').is_some_and(|(kind, _)| names(kind))
    };
    let last = lines.iter().rposition(|(_, line)| names_error(line) || line.contains("panicked at "))?;
    let is_place = lines[last].1.contains("panicked at ") && last + 1 < lines.len();
    Some(last + usize::from(is_place))
}

/// The handshake that opened the conversation; those of probes have laws of their own.
fn handshake<'c, 'a>(conversation: &'c ConversationView<'a>) -> Option<&'c WireMessage<'a>> {
    let in_probe = |frame: FrameId| conversation.conversation.probes.iter().any(|probed| probed.contains(frame));
    conversation.from_client().rfind(|wire_message| {
        wire_message.method() == Some(methods::INITIALIZE) && wire_message.is_request() && !in_probe(wire_message.frame.id)
    })
}

fn initialize_is_answered(conversation: &ConversationView<'_>) -> Judgment {
    let Some(attempt) = handshake(conversation) else { return Judgment::Untestable("`initialize` was not sent".into()) };
    let pairing = Pairing::of(conversation);
    let request = pairing.requests.iter().position(|request| request.frame == attempt.frame.id);
    let answer = request.and_then(|request| pairing.answer_to(request));
    let broken = |how: String, frame: Option<FrameId>| {
        let frames = [Some(attempt.frame.id), frame].into_iter().flatten().chain(last_lines(conversation));
        let variable = |name: &str| Some(format!("set `{name}` in the environment of the server"));
        let remedy = missing_piece(&conversation.conversation.transcript, variable);
        Judgment::Broken(vec![Violation { remedy, ..Violation::new(format!("`initialize` got {how}"), frames) }])
    };
    if let Some(answer) = answer {
        return match answer.value.get("error") {
            Some(error) if is_modern_only(error) => Judgment::Untestable("the server supports the modern era".into()),
            Some(error) if answer.value.get("result").is_none() => {
                broken(format!("the error {}{}", shown(error), last_words(conversation)), Some(answer.frame))
            }
            _ => Judgment::Pass,
        };
    }
    let exchange = attempt.exchange.and_then(|id| conversation.exchanges.get(&id));
    match exchange.and_then(|exchange| exchange.response) {
        _ if garbled(conversation).is_some() => Judgment::Untestable(COULD_NOT_BE_READ.into()),
        Some(response) if response.status == 403 && exchange.is_some_and(|exchange| exchange.header("www-authenticate").is_none()) => {
            Judgment::Untestable(REFUSES_ACCESS.into())
        }
        Some(response) if matches!(response.status, 401 | 403) => Judgment::Untestable(WANTS_AUTHORIZATION.into()),
        Some(response) if response.status >= 300 => {
            let location = exchange.and_then(|exchange| exchange.header("location"));
            let to = location.map(|location| format!(", to {}", shortened(location, 200))).unwrap_or_default();
            let why = exchange.map(reason_of).unwrap_or_default();
            let remedy = match (response.status, location) {
                _ if conversation.is_over("sse") && response.status >= 400 => Some(SERVE_ENDPOINT),
                (404 | 405 | 501, _) if has_untyped_stream(conversation) => Some(NAME_STREAM),
                (..=399, Some(_)) => Some("use the URL that it redirects to: clients do not send a message a second time"),
                (404 | 405 | 501, _) => Some("check the path of the URL: many servers listen at /mcp, or at /sse if it is HTTP+SSE"),
                _ if why.ends_with("stream is not readable") => Some(BODY_WAS_READ),
                (400.., _) => Some("find out why the server refuses it: its log tells, and often the body of the response"),
                _ => None,
            };
            let frames = [attempt.frame.id, response.frame.id];
            let violation = Violation::new(format!("`initialize` got status {}{to}{why}", response.status), frames);
            Judgment::Broken(vec![Violation { remedy: remedy.map(str::to_owned), ..violation }])
        }
        _ if conversation.frames().iter().any(|frame| matches!(frame.body, FrameBody::Exited { .. })) && !outlived(conversation) => {
            Judgment::Untestable("the process ended before that".into())
        }
        _ if conversation.conversation.transcript.dropped > 0 => Judgment::Untestable(NOT_ALL_KEPT.into()),
        _ => match exchange.and_then(response_of_no_message) {
            Some((how, remedy, frames)) => {
                let frames = std::iter::once(attempt.frame.id).chain(frames);
                Judgment::Broken(vec![Violation { remedy, ..Violation::new(format!("`initialize` got {how}"), frames) }])
            }
            None => broken(format!("no response{}", last_words(conversation)), None),
        },
    }
}

/// What a successful HTTP response has in place of a message, with the remedy and its frames.
fn response_of_no_message(exchange: &HttpExchange<'_>) -> Option<(String, Option<String>, Vec<FrameId>)> {
    let status = exchange.response?.status;
    let has_ended = exchange.end.is_some_and(|(_, broken)| broken.is_none());
    let (how, body) = match exchange.body {
        Some((_, body)) if !body.trim_ascii().is_empty() => {
            (format!("status {status} and a body that is not a message: `{}`", excerpt(body)), body)
        }
        _ if !has_ended => return None,
        _ if exchange.events.is_empty() => (format!("status {status} without a message"), b"".as_slice()),
        _ => return None,
    };
    let frames = exchange.heads().into_iter().chain(exchange.body.map(|(frame, _)| frame.id));
    Some((how, remedy_for_body(body).map(str::to_owned), frames.collect()))
}

const SERVE_ENDPOINT: &str = "the URL is the one of the `endpoint` event: accept messages there for as long as the stream is open (in Node.js, listen to `close` of \
                              the response, not of the request)";
const NAME_STREAM: &str = "if this is HTTP+SSE, set `Content-Type: text/event-stream` in the response to GET; otherwise check the path of the URL: many servers \
                           listen at /mcp";

/// Whether a GET gets something that may be a stream of HTTP+SSE without its type.
fn has_untyped_stream(conversation: &ConversationView<'_>) -> bool {
    let is_untyped = |exchange: &HttpExchange<'_>| {
        exchange.method == "GET" && exchange.status() == Some(200) && matches!(exchange.media_type().as_deref(), None | Some("text/plain"))
    };
    conversation.exchanges.values().any(is_untyped)
}

const BODY_WAS_READ: &str = "a middleware such as `express.json()` has read the body: pass `req.body` to the transport as well";

/// The reason that a refusal gives, to be put after its status.
pub(super) fn reason_of(exchange: &HttpExchange<'_>) -> String {
    let why = exchange.body.filter(|_| exchange.status().is_some_and(|status| status >= 400)).and_then(|(_, body)| reason(body));
    why.map(|why| format!(": {why}")).unwrap_or_default()
}

/// Whether an error is for a header that no `initialize` has, or names the revisions that a server supports, and none of them
/// has an `initialize`.
fn is_modern_only(error: &Value) -> bool {
    if error.get("code").and_then(Value::as_i64) == Some(HEADER_MISMATCH) {
        return true;
    }
    let supported = error.pointer("/data/supported").and_then(Value::as_array);
    supported.is_some_and(|all| {
        !all.is_empty() && all.iter().all(|version| version.as_str().is_some_and(|version| Revision::at(version) >= Revision::MODERN))
    })
}

/// Whether a process still ran when we began to end it.
fn outlived(conversation: &ConversationView<'_>) -> bool {
    let end = conversation.frames().iter().find(|frame| match &frame.body {
        FrameBody::Closed { pipe } => pipe == "stdin",
        other => matches!(other, FrameBody::Exited { .. } | FrameBody::Signalled { .. }),
    });
    end.is_some_and(|frame| !matches!(frame.body, FrameBody::Exited { .. }))
}

/// Why next to nothing can be tested on a server that lets nobody in, or that nobody understands.
pub(super) const WANTS_AUTHORIZATION: &str =
    "the server requires authorization; `--bearer env:NAME` sends a token, `--header 'X-Api-Key: …'` a key in a header of its own";
pub(super) const REFUSES_ACCESS: &str = "the server refuses access with status 403";
pub(super) const NOT_ALL_KEPT: &str = "the server sent more than is kept of a conversation";
pub(super) const COULD_NOT_BE_READ: &str = "the output of the server could not be read";

/// What breaks a rule because the server never said something, in any conversation: known only where all of them are kept and read.
pub(super) fn of_what_was_never_said(all: &[&ConversationView<'_>], violations: Vec<Violation>) -> Judgment {
    let is_whole = |one: &&ConversationView<'_>| one.conversation.transcript.dropped == 0 && one.unread.is_none();
    match violations.is_empty() || all.iter().all(is_whole) {
        true => Judgment::from_violations(violations),
        false => Judgment::Untestable(NOT_ALL_KEPT.into()),
    }
}

const NOT_TRIED: &str = "no unknown version was offered";

fn negotiates(conversation: &ConversationView<'_>) -> Judgment {
    let Some(attempt) = conversation.probe("unknown-version") else { return Judgment::Untestable(NOT_TRIED.into()) };
    let offered = attempt.probed.subject.as_deref().unwrap_or_default();
    let found = match attempt.answer {
        AttemptOutcome::Result { value, .. } => match value.get("protocolVersion").and_then(Value::as_str) {
            Some(version) if version == offered => "the same one back".to_owned(),
            Some(_) => return Judgment::Pass,
            None => return Judgment::Untestable("the response has no `protocolVersion`".into()),
        },
        AttemptOutcome::Error { error, .. } => format!("the error {}", shown(error)),
        AttemptOutcome::Status { status: 401 | 403, .. } => return Judgment::Untestable(WANTS_AUTHORIZATION.into()),
        // So a proxy limits requests, and there is nothing else in this conversation that would tell whether it lasts.
        AttemptOutcome::Status { status: 503, .. }
            if attempt.http.is_some_and(|exchange| exchange.media_type().as_deref() == Some("text/html")) =>
        {
            return Judgment::Untestable("the server was not available".into());
        }
        AttemptOutcome::None | AttemptOutcome::Status { status: ..=399, .. } => {
            return Judgment::Untestable("the response could not be read".into());
        }
        AttemptOutcome::Gone if !conversation.is_over("stdio") => return Judgment::Untestable("the server was not there".into()),
        _ if garbled(conversation).is_some() || Pairing::of(conversation).is_off() => {
            return Judgment::Untestable("the response could not be read".into());
        }
        other => other.describe(),
    };
    Judgment::Broken(vec![Violation::new(format!("`initialize` with the version {offered} got {found}"), attempt.frames())])
}

fn is_consistent(conversations: &[&ConversationView<'_>]) -> Judgment {
    if let Some(unpublished) = conversations.iter().enumerate().find_map(|(index, one)| unpublished_answer(one, index)) {
        return Judgment::Broken(vec![unpublished]);
    }
    let offers = conversations.iter().enumerate().filter_map(|(index, one)| Some((index, one.probe("unknown-version")?)));
    let mut seen = Judgment::Untestable(NOT_TRIED.into());
    for (index, attempt) in offers {
        let AttemptOutcome::Result { value, .. } = attempt.answer else { continue };
        let Some(version) = value.get("protocolVersion").and_then(Value::as_str) else { continue };
        if attempt.probed.subject.as_deref() == Some(version) {
            continue;
        }
        let broken = |message: String, frames: Vec<FrameId>, conversation: usize| {
            Judgment::Broken(vec![Violation { conversation, ..Violation::new(message, frames) }])
        };
        if Era::of(version) != Some(Era::Legacy) {
            let what = if Era::of(version) == Some(Era::Modern) { "which has no `initialize`" } else { "which was never published" };
            return broken(format!("instead of an unknown version it offers {version}, {what}"), attempt.frames(), index);
        }
        match conversations.iter().enumerate().find_map(|(other, one)| Some((other, answered_when_asked_for(one, version)?))) {
            Some((_, (answered, _))) if answered == version => seen = Judgment::Pass,
            Some((other, (answered, frames))) => {
                let message =
                    format!("instead of an unknown version it offers {version}; to a request with {version} it responds with {answered}");
                return broken(message, frames, other);
            }
            None => seen = Judgment::Untestable(format!("the offered version {version} was not requested")),
        }
    }
    seen
}

/// The first answer to an `initialize` that agrees on a version that nobody can speak. One that gives back what it was asked
/// for has a law of its own, and so has what is offered instead of an unknown version.
fn unpublished_answer(conversation: &ConversationView<'_>, index: usize) -> Option<Violation> {
    let handshakes = conversation.requests().filter(|(request, _)| request.method() == Some(methods::INITIALIZE));
    handshakes.filter_map(|(request, answer)| Some((request, answer?))).find_map(|(request, answer)| {
        let version = answer.value.pointer("/result/protocolVersion")?.as_str()?;
        let attempt = request.param("/protocolVersion").and_then(Value::as_str).unwrap_or_default();
        if Era::of(version) == Some(Era::Legacy) || Era::of(attempt) != Some(Era::Legacy) {
            return None;
        }
        let what = if Era::of(version) == Some(Era::Modern) { "which has no `initialize`" } else { "which was never published" };
        let message = format!("to a request with {attempt} it responds with {}, {what}", shortened(version, 40));
        Some(Violation { conversation: index, ..Violation::new(message, [request.frame.id, answer.frame.id]) })
    })
}

/// The version in the answer to an `initialize` with this version, and the frames of both.
fn answered_when_asked_for(conversation: &ConversationView<'_>, version: &str) -> Option<(String, Vec<FrameId>)> {
    let attempt = |request: &WireMessage<'_>| {
        request.method() == Some(methods::INITIALIZE) && request.param("/protocolVersion").is_some_and(|attempt| attempt == version)
    };
    conversation.requests().filter(|(request, _)| attempt(request)).find_map(|(request, answer)| {
        let answer = answer?;
        let answered = answer.value.pointer("/result/protocolVersion")?.as_str()?;
        Some((answered.to_owned(), vec![request.frame.id, answer.frame.id]))
    })
}

fn waits_for_initialized(conversation: &ConversationView<'_>) -> Judgment {
    let Some(initialized) = initialized(conversation) else {
        return Judgment::Untestable("the handshake was not completed".into());
    };
    let early = messages(conversation).filter(|server_message| {
        server_message.is_request() && server_message.frame < initialized && server_message.method() != Some(methods::PING)
    });
    let violations = early.map(|server_message| {
        let message =
            format!("the server sent the request `{}` before `notifications/initialized`", server_message.method().unwrap_or_default());
        Violation::new(message, [server_message.frame, initialized])
    });
    Judgment::from_violations(gathered(violations.collect()))
}

fn initialized(conversation: &ConversationView<'_>) -> Option<FrameId> {
    conversation
        .from_client()
        .find(|wire_message| wire_message.method() == Some(methods::notifications::INITIALIZED))
        .map(|wire_message| wire_message.frame.id)
}

fn stays_alive(conversation: &ConversationView<'_>) -> Judgment {
    let take = conversation.conversation;
    match &take.opened {
        Opened::No { .. } | Opened::OtherEra => return Judgment::Untestable("there was no conversation".into()),
        Opened::Bare if !take.probes.is_empty() => return Judgment::Untestable("the conversation was not an ordinary one".into()),
        Opened::Yes | Opened::Bare => {}
    }
    let Some(death) = death(conversation) else { return Judgment::Pass };
    if died_of_abuse(conversation, &death) {
        return Judgment::Untestable("the server did not survive a message, which another rule judges".into());
    }
    let last = sent_last(conversation, death.frame);
    let after = last.as_ref().and_then(|last| last.name.as_ref()).map(|name| format!(", after {name}")).unwrap_or_default();
    let canceled = canceled_before(conversation, death.frame).filter(|canceled| last.as_ref().is_some_and(|last| last.frame != *canceled));
    let shortly = canceled.map(|_| ", shortly after a request was canceled").unwrap_or_default();
    let message = format!("{} in the middle of a conversation{after}{shortly}{}", death.how, last_words(conversation));
    let frames = canceled.into_iter().chain(last.iter().map(|last| last.frame)).chain([death.frame]);
    let tolerance = last.as_ref().filter(|last| last.has_other_type).map(|_| "clients send messages as `application/json`");
    Judgment::Broken(vec![Violation { tolerance, ..Violation::new(message, frames) }])
}

/// The last cancellation in the moment before a frame, since what it sets off takes a while; or, however long before, one beyond which the
/// server did not come: it was busy, and has responded to nothing that was sent later.
fn canceled_before(conversation: &ConversationView<'_>, end: FrameId) -> Option<FrameId> {
    const SHORTLY: Duration = Duration::from_secs(2);
    let is_shortly_before = |frame: FrameId| frame < end && conversation.elapsed(frame, end).is_some_and(|elapsed| elapsed <= SHORTLY);
    let is_beyond = |frame: FrameId| {
        let mut later = conversation.requests().filter(|(request, _)| request.frame.id > frame);
        later.any(|(_, answer)| answer.is_some_and(|answer| answer.frame.id < end))
    };
    let canceled = conversation.from_client().filter(|message| message.method() == Some(methods::notifications::CANCELLED));
    let mut canceled = canceled.map(|message| message.frame.id).filter(|frame| *frame < end);
    canceled.rfind(|frame| is_shortly_before(*frame) || !is_beyond(*frame))
}

/// What a client sent: a message, or a request of HTTP that carries none.
struct Sent {
    name: Option<String>,
    frame: FrameId,
    /// Over HTTP, a message whose `Content-Type` is not that of messages.
    has_other_type: bool,
}

/// What the client sent last before a frame.
fn sent_last(conversation: &ConversationView<'_>, end: FrameId) -> Option<Sent> {
    let message = conversation.from_client().rfind(|wire_message| wire_message.frame.id < end);
    let requests = conversation.exchanges.values().filter(|exchange| exchange.request.id < end);
    let request = requests.max_by_key(|exchange| exchange.request.id);
    match request.filter(|exchange| message.is_none_or(|wire_message| wire_message.frame.id < exchange.request.id)) {
        Some(exchange) => {
            let origin = exchange.request_header("origin").map(|origin| format!(" with `Origin: {}`", excerpt(origin))).unwrap_or_default();
            Some(Sent { name: Some(format!("a {}{origin}", exchange.method)), frame: exchange.request.id, has_other_type: false })
        }
        None => message.map(|wire_message| {
            let kind = wire_message.exchange.and_then(|id| conversation.exchanges.get(&id)?.request_header("content-type"));
            let other = kind.filter(|kind| !kind.starts_with("application/json")).map(|kind| format!(" as `{}`", excerpt(kind)));
            let has_other_type = other.is_some();
            let name = wire_message.method().map(|method| format!("`{method}`{}", other.unwrap_or_default()));
            Sent { name, frame: wire_message.frame.id, has_other_type }
        }),
    }
}

/// Methods of requests that a client may send without being sure that the server has them, and that are answered at once.
const METHODS: [&str; 13] = [
    methods::PING,
    methods::SERVER_DISCOVER,
    methods::TOOLS_LIST,
    methods::TOOLS_CALL,
    methods::RESOURCES_LIST,
    methods::RESOURCES_READ,
    methods::RESOURCES_TEMPLATES_LIST,
    methods::RESOURCES_SUBSCRIBE,
    methods::RESOURCES_UNSUBSCRIBE,
    methods::PROMPTS_LIST,
    methods::PROMPTS_GET,
    methods::COMPLETION_COMPLETE,
    methods::LOGGING_SET_LEVEL,
];

/// Of these, what the modern era no longer has.
const REMOVED: [&str; 4] = [methods::PING, methods::RESOURCES_SUBSCRIBE, methods::RESOURCES_UNSUBSCRIBE, methods::LOGGING_SET_LEVEL];

/// Requests that deserve an error, which is a response too.
const REFUSED_PROBES: [&str; 3] = ["unknown-tool", "unknown-resource", "unknown-prompt"];
const ERROR_PAGE: &str = "a client still learns that the request failed";
const ERROR_PAGE_REMEDY: &str =
    "catch the error in the handler, and send it as a JSON-RPC error; a framework's own error page is no response";

fn requests_are_answered(conversation: &ConversationView<'_>) -> Judgment {
    let pairing = Pairing::of(conversation);
    let end = first_abuse(conversation);
    let tools = conversation.tools();
    // That an unknown method gets no response has a rule of its own, and these are unknown in the modern era.
    let is_silence = |attempt: Attempt<'_, '_>| matches!(attempt.answer, AttemptOutcome::Silence);
    let ignores_unknown = conversation.is_modern() && conversation.probe("unknown-method").is_some_and(is_silence);
    let is_valid = |index: usize| {
        let request = &pairing.requests[index];
        let method = request.method();
        let in_time = end.is_none_or(|end| request.frame < end);
        // A server of both eras may take a request without a version for one that comes before the handshake.
        let whole = !conversation.is_modern()
            || !supports_legacy(conversation)
            || request.value.pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion").is_some();
        // That `initialize` gets a result has a rule of its own, in the revisions that have it.
        let is_known = METHODS.contains(&method) || conversation.is_modern() && method == methods::INITIALIZE;
        let is_known = is_known && !(ignores_unknown && REMOVED.contains(&method));
        in_time && whole && is_known
    };
    // A tool may take as long as it likes.
    let may_be_silent = |index: usize| {
        let request = &pairing.requests[index];
        let is_given_up = request.value.pointer("/params/_meta/progressToken").and_then(parallel_number).is_some();
        let is_known = || tools.iter().any(|(tool, _)| tool.get("name") == request.value.pointer("/params/name"));
        is_given_up || request.method() == methods::TOOLS_CALL && is_known()
    };
    // A response that took longer than another request of its method was waited for shows a slow server, not one that is silent.
    let mut slowest = BTreeMap::<&str, Duration>::new();
    for (index, request) in pairing.requests.iter().enumerate() {
        let took = pairing.answer_to(index).and_then(|answer| conversation.elapsed(request.frame, answer.frame));
        let known = slowest.entry(request.method()).or_default();
        *known = (*known).max(took.unwrap_or_default());
    }
    let (mut violations, mut told) = (Vec::<Violation>::new(), BTreeSet::new());
    // Requests that others differ from only in their headers, each with its method.
    let (mut plain, mut unusual) = (BTreeSet::new(), Vec::new());
    for probed in conversation.conversation.probes.iter().filter(|probed| probed.probe != LEGAL_FORM) {
        for (index, request) in pairing.within(probed.first, probed.end) {
            let is_lost = || pairing.may_be_missing(request, conversation.is_over("http"));
            if !is_valid(index) || pairing.answer_to(index).is_some() || is_lost() {
                continue;
            }
            let exchange = request.exchange.and_then(|id| conversation.exchanges.get(&id)).filter(|_| conversation.is_over("http"));
            let is_usual = USUAL_PROBES.iter().chain(&["first-message", "undiscovered"]).any(|probe| probed.probe == *probe);
            let how = match (exchange.and_then(|exchange| exchange.status()), probed.outcome) {
                (Some(status @ 200..300), ProbeOutcome::Gone | ProbeOutcome::Done)
                    // That a stream has ended shows that the tool took no longer; only what was canceled gets none.
                    if (is_usual || !may_be_silent(index))
                        && exchange.is_some_and(|exchange| {
                            exchange.end.is_some_and(|(_, why)| why.is_none())
                                && !conversation.was_cut(exchange)
                                && !conversation.was_ended_by_client(exchange, request.id())
                        }) =>
                {
                    format!("got status {status} but no response")
                }
                // Who may ask, and how often, has other rules; so has a session that has ended.
                (Some(401 | 403 | 429), _) => continue,
                (Some(404), _) if conversation.has_expired(request.frame) => continue,
                (Some(status @ 400..), _) if is_usual && exchange.is_none_or(|exchange| conversation.error_in(exchange).is_none()) => {
                    format!("got status {status} but no response")
                }
                // An error page in place of the error that the request deserves.
                (Some(status @ 500..), _)
                    if REFUSED_PROBES.contains(&probed.probe.as_str())
                        && exchange.is_some_and(|exchange| exchange.body.is_some() && conversation.error_in(exchange).is_none()) =>
                {
                    let request_frame = request.frame;
                    let how = format!("got status {status} but no response");
                    if told.insert((format!("`{}`", request.method()), how.clone())) {
                        let frames =
                            [Some(request_frame), exchange.and_then(|exchange| exchange.response.map(|response| response.frame.id))];
                        let violation = Violation::new(format!("`{}` {how}", request.method()), frames.into_iter().flatten());
                        violations.push(Violation { tolerance: Some(ERROR_PAGE), remedy: Some(ERROR_PAGE_REMEDY.to_owned()), ..violation });
                    }
                    continue;
                }
                (Some(400..), _) => continue,
                (_, ProbeOutcome::Silent) if !may_be_silent(index) => {
                    // The last frame may be one of those that there was no room for.
                    match conversation.elapsed(request.frame, FrameId(probed.end.0.saturating_sub(1))) {
                        Some(waited) if slowest.get(request.method()).is_some_and(|slowest| waited < *slowest) => continue,
                        Some(waited) => format!("got no response within {:.1} s", waited.as_secs_f64()),
                        None => "got no response in time".to_owned(),
                    }
                }
                _ => continue,
            };
            let headers = exchange.and_then(|exchange| unusual_headers(conversation, exchange));
            let asked = format!("`{}`{}", request.method(), headers.as_ref().map(|headers| format!(" {headers}")).unwrap_or_default());
            // Each method once, unless it fails in different ways.
            if !told.insert((asked.clone(), how.clone())) {
                continue;
            }
            let frames = [Some(request.frame), exchange.and_then(|exchange| exchange.response.map(|response| response.frame.id))];
            let violation = Violation::new(format!("{asked} {how}"), frames.into_iter().flatten());
            match headers {
                Some(_) => unusual.push((request.method(), violation)),
                None => {
                    plain.insert(request.method());
                    violations.push(violation);
                }
            }
        }
    }
    // Where the same fails without them, the headers are not to blame.
    violations.extend(unusual.into_iter().filter(|(method, _)| !plain.contains(method)).map(|(_, violation)| violation));
    violations.extend(hung_up(conversation, &pairing, is_valid));
    violations.extend(empty_for_large_body(conversation));
    violations.extend(lost_requests::violations(conversation));
    let is_judged = |index: usize| is_valid(index) && !may_be_silent(index);
    let answered = (0..pairing.requests.len()).filter(|index| is_judged(*index) && pairing.answer_to(*index).is_some()).count();
    // A process that has not said anything may still be starting; that the handshake got nothing has a rule of its own.
    if conversation.is_over("stdio") && conversation.from_server().next().is_none() {
        return Judgment::Untestable("the server did not respond in time, and may still have been starting".into());
    }
    // What is missing may be what could not be read.
    if garbled(conversation).is_some() && (answered == 0 || !violations.is_empty()) {
        return Judgment::Untestable(COULD_NOT_BE_READ.into());
    }
    Judgment::of(gathered(violations), answered, "no ordinary request got a response")
}

/// A large request that was accepted with a body of nothing: one that is too large for the server gets an error or a status that says so.
fn empty_for_large_body(conversation: &ConversationView<'_>) -> Option<Violation> {
    let attempt = super::http::varied(conversation, "large-body").ok().filter(|_| conversation.is_over("http"))?;
    let (exchange, status) = (attempt.http?, attempt.status().filter(|status| super::http::is_success(*status))?);
    let has_ended = exchange.end.is_some_and(|(_, why)| why.is_none()) && !conversation.was_cut(exchange);
    let is_empty = exchange.events.is_empty() && exchange.body.is_none_or(|(_, body)| body.trim_ascii().is_empty());
    let message = format!("a request of 4 MiB got status {status} but no response");
    let remedy = Some("respond with 413 to a body that is too large for the server or for the proxy in front of it".to_owned());
    (has_ended && is_empty).then(|| Violation { remedy, ..Violation::new(message, super::http::evidence(&attempt)) })
}

/// Requests over HTTP of which every one had its connection closed by the server before a response began: by method, and calls by the
/// name of their tool. One alone may be the fault of the network.
fn hung_up(conversation: &ConversationView<'_>, pairing: &Pairing<'_>, is_valid: impl Fn(usize) -> bool) -> Vec<Violation> {
    const LEAST: usize = 2;
    // Who dies cannot but hang up.
    if !conversation.is_over("http") || death(conversation).is_some() {
        return Vec::new();
    }
    let was_closed = |index: usize| {
        let request = &pairing.requests[index];
        let exchange = request.exchange.and_then(|id| conversation.exchanges.get(&id));
        exchange.is_some_and(|exchange| was_hung_up(exchange) && !conversation.was_ended_by_client(exchange, request.id()))
    };
    let mut requests = BTreeMap::<(&str, String), Vec<usize>>::new();
    for index in (0..pairing.requests.len()).filter(|index| is_valid(*index)) {
        let request = &pairing.requests[index];
        let tool = request.value.pointer("/params/name").map(ToString::to_string).unwrap_or_default();
        requests.entry((request.method(), tool)).or_default().push(index);
    }
    let closed = requests.into_iter().filter(|(_, all)| all.len() >= LEAST && all.iter().all(|index| was_closed(*index)));
    closed
        .map(|((method, _), all)| {
            let message = format!("the connection of each of {} `{method}` requests was closed without a response", all.len());
            Violation::new(message, all.iter().take(3).map(|index| pairing.requests[*index].frame))
        })
        .collect()
}

/// Whether the server closed the connection before its response began. Whoever refuses the connection has no server behind it, which has
/// rules of its own.
pub(super) fn was_hung_up(exchange: &HttpExchange<'_>) -> bool {
    let why = exchange.end.filter(|_| exchange.response.is_none()).and_then(|(_, why)| why);
    why.is_some_and(|why| why.starts_with("connection closed") || why.contains("reset"))
}

fn capabilities_are_respected(conversation: &ConversationView<'_>) -> Judgment {
    let revision = Revision::at(&conversation.conversation.revision);
    let mut violations: Vec<Violation> = match conversation.is_modern() {
        true => undeclared_inputs(conversation, revision),
        false => {
            let Some(initialized) = initialized(conversation) else {
                return Judgment::Untestable("the handshake was not completed".into());
            };
            let declared = conversation
                .from_client()
                .find(|wire_message| wire_message.method() == Some(methods::INITIALIZE))
                .and_then(|wire_message| wire_message.param("/capabilities"));
            // What comes before belongs to `no-server-requests-before-initialized`.
            let shakes_hands = |exchange| {
                conversation
                    .from_client()
                    .any(|wire_message| wire_message.exchange == Some(exchange) && wire_message.method() == Some(methods::INITIALIZE))
            };
            let is_early = |server_message: &ServerMessage<'_>| {
                server_message.frame < initialized || server_message.exchange.is_some_and(shakes_hands)
            };
            let attempt = messages(conversation).filter(|server_message| server_message.is_request() && !is_early(server_message));
            let has_more = |declared: Option<&Value>| declared.and_then(Value::as_object).is_some_and(|members| !members.is_empty());
            let are_extended = ["experimental", "extensions"]
                .iter()
                .any(|key| has_more(conversation.capability(key)) || has_more(declared.and_then(|declared| declared.get(key))));
            let wrong = attempt.filter_map(|server_message: ServerMessage<'_>| {
                let method = server_message.method()?;
                if let Some(missing) = undeclared(revision, declared, method, server_message.value.get("params")) {
                    let message = format!("the server sent the request `{method}`, but the client has not declared `{missing}`");
                    return Some(Violation::new(message, [server_message.frame]));
                }
                // One with an id that is a notification has a rule of its own.
                let is_known = has_request(method, &conversation.conversation.revision) || method.starts_with("notifications/");
                (!is_known && !are_extended).then(|| unknown_request(conversation, method, server_message.frame))
            });
            wrong.collect()
        }
    };
    // The first one stands for all of them.
    violations.sort_by_key(|violation| violation.tolerance.is_some());
    match conversation.conversation.opened {
        Opened::Yes => Judgment::from_violations(gathered(violations)),
        _ if !violations.is_empty() => Judgment::Broken(gathered(violations)),
        _ => Judgment::Untestable("there was no complete conversation".into()),
    }
}

const REFUSED_BY_CLIENTS: &str = "clients respond with error -32601, as to any request that they do not know";

/// A request that no revision, or another one, has: which requests a server may send is a closed list (schema, `ServerRequest`).
fn unknown_request(conversation: &ConversationView<'_>, method: &str, frame: FrameId) -> Violation {
    let revision = &conversation.conversation.revision;
    let message = format!("the server sent the request `{}`, which {revision} does not have", excerpt(method));
    let remedy = "declare what belongs to an extension under `capabilities.experimental` on both sides, and send it only then".to_owned();
    Violation { tolerance: Some(REFUSED_BY_CLIENTS), remedy: Some(remedy), ..Violation::new(message, [frame]) }
}

/// Input that a result asks for (2026-07-28, basic/patterns/mrtr) and that its request has not declared.
fn undeclared_inputs(conversation: &ConversationView<'_>, revision: Revision) -> Vec<Violation> {
    let pairing = Pairing::of(conversation);
    let answers = pairing.replies.iter().filter_map(|reply| match reply.meaning {
        Meaning::Response { request } => Some((reply, &pairing.requests[request])),
        _ => None,
    });
    let mut violations = Vec::new();
    for (reply, request) in answers {
        let declared = request.value.pointer("/params/_meta/io.modelcontextprotocol~1clientCapabilities");
        let inputs = reply.value.pointer("/result/inputRequests").and_then(Value::as_object).into_iter().flatten();
        for (_, input) in inputs {
            let method = input.get("method").and_then(Value::as_str).unwrap_or_default();
            if let Some(missing) = undeclared(revision, declared, method, input.get("params")) {
                let message =
                    format!("the response to `{}` requests `{method}`, but the request has not declared `{missing}`", request.method());
                violations.push(Violation::new(message, [request.frame, reply.frame]));
            }
        }
    }
    violations
}

/// The capability that a question to the client needs, if it is not declared. Modes of elicitation came with 2025-11-25; without any,
/// forms are declared (client/elicitation, capabilities).
fn undeclared(revision: Revision, declared: Option<&Value>, method: &str, params: Option<&Value>) -> Option<&'static str> {
    let has = |path: &str| declared.and_then(|declared| declared.pointer(path)).is_some();
    let param = |key: &str| params.and_then(|params| params.get(key));
    match method {
        methods::ROOTS_LIST => (!has("/roots")).then_some("roots"),
        methods::SAMPLING_CREATE_MESSAGE if !has("/sampling") => Some("sampling"),
        methods::SAMPLING_CREATE_MESSAGE => (param("tools").is_some() && !has("/sampling/tools")).then_some("sampling.tools"),
        methods::ELICITATION_CREATE if !has("/elicitation") => Some("elicitation"),
        methods::ELICITATION_CREATE if param("mode").is_some_and(|mode| mode == "url") => {
            (!has("/elicitation/url")).then_some("elicitation.url")
        }
        methods::ELICITATION_CREATE if revision >= Revision::V2025_11_25 => {
            (has("/elicitation/url") && !has("/elicitation/form")).then_some("elicitation.form")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_analysis::example;
    use serde_json::json;

    #[test]
    fn what_we_gave_up_early_says_nothing() {
        let check = |params: &str, expected: &str| {
            let answered = r#"> {"jsonrpc":"2.0","id":1,"method":"ping"}
                < {"jsonrpc":"2.0","id":1,"result":{}}"#;
            let text = format!(
                "@ ping\n{answered}\n@ read! a\n> {{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"resources/read\",\"params\":{params}}}"
            );
            let judged = requests_are_answered(&ConversationView::new(&example::read(&text, "stdio", "2025-11-25")));
            assert!(format!("{judged:?}").starts_with(expected), "{params} {judged:?}");
        };
        check(r#"{"uri":"a"}"#, "Broken");
        check(r#"{"uri":"a","_meta":{"progressToken":"mcproof-parallel-3"}}"#, "Pass");
        check(r#"{"uri":"a","_meta":{"progressToken":"mcproof-parallel-3-Größe"}}"#, "Pass");
        check(r#"{"uri":"a","_meta":{"progressToken":1460000003}}"#, "Pass");
        check(r#"{"uri":"a","_meta":{"progressToken":3}}"#, "Broken");
        check(r#"{"uri":"a","_meta":{"progressToken":"mine"}}"#, "Broken");
    }

    #[test]
    fn silence_names_the_header_that_is_unusual_unless_others_get_none_either() {
        let post = |probe: &str, headers: &str, id: u32, rest: &str| {
            let request = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/list\"}}");
            format!("@ {probe}\n> POST /mcp accept: a | {headers}\n> {request}\n{rest}\n")
        };
        let answer = |id: u32| {
            let result = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[]}}}}"#);
            format!("< 200 content-type: application/json\n< {result}\n! ended")
        };
        let check = |text: &str, expected: &[&str]| {
            let Judgment::Broken(violations) = requests_are_answered(&ConversationView::new(&example::read(text, "http", "2025-11-25")))
            else {
                panic!("{text}")
            };
            let messages: Vec<&str> = violations.iter().map(|violation| violation.message.as_str()).collect();
            assert!(messages.len() == expected.len(), "{messages:?}");
            assert!(messages.iter().zip(expected).all(|(message, start)| message.starts_with(start)), "{messages:?}");
        };
        let usual = post("list", "host: h", 1, &answer(1)) + &post("plain", "host: h", 2, &answer(2));
        let silent = "~ 5000\n! note no response";
        let foreign = post("evil-origin!", "host: h | origin: https://x.example", 3, silent);
        check(&(usual.clone() + &foreign), &["`tools/list` with `Origin: https://x.example` got no response within 5"]);
        let plain = post("list-again!", "host: h", 4, silent);
        check(&(usual + &plain + &foreign), &["`tools/list` got no response within 5"]);
    }

    #[test]
    fn the_end_of_a_server_names_what_was_sent_before_it_message_or_not() {
        let check = |last: &str, expected: &str| {
            let text = format!(
                r#"> POST /mcp
                   > {{"jsonrpc":"2.0","id":1,"method":"tools/list"}}
                   < 200 content-type: application/json
                   < {{"jsonrpc":"2.0","id":1,"result":{{"tools":[]}}}}
                   {last}
                   ! broken connection reset
                   > DELETE /mcp
                   ! broken connection refused"#
            );
            let judged = stays_alive(&ConversationView::new(&example::read(&text, "http", "2025-11-25")));
            let Judgment::Broken(violations) = judged else { panic!("{judged:?}") };
            assert_eq!(violations[0].tolerance.is_some(), last.contains("text/plain"), "{last}");
            assert_eq!(
                violations[0].message,
                format!("the server no longer responds (connection reset) in the middle of a conversation{expected}")
            );
        };
        check("> GET /mcp accept: text/event-stream | origin: null", ", after a GET with `Origin: null`");
        check("> GET /mcp accept: text/event-stream", ", after a GET");
        check(
            "> POST /mcp content-type: text/plain\n> {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}",
            ", after `ping` as `text/plain`",
        );
        check("> POST /mcp\n> {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}", ", after `ping`");
    }

    #[test]
    fn the_end_of_a_server_is_due_to_the_cancellation_beyond_which_it_did_not_come() {
        let check = |response: &str, expected: bool| {
            let text = format!(
                r#"> {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a"}}}}
                   > {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":1}}}}
                   ~ 5000
                   > {{"jsonrpc":"2.0","id":2,"method":"ping"}}
                   {response}
                   > {{"jsonrpc":"2.0","id":3,"method":"ping"}}
                   ! exited 1"#
            );
            let judged = stays_alive(&ConversationView::new(&example::read(&text, "stdio", "2025-11-25")));
            let Judgment::Broken(violations) = judged else { panic!("{judged:?}") };
            assert_eq!(violations[0].message.contains("after a request was canceled"), expected, "{}", violations[0].message);
        };
        check("~ 1", true);
        check(r#"< {"jsonrpc":"2.0","id":2,"result":{}}"#, false);
    }

    #[test]
    fn of_what_a_runtime_prints_at_its_end_the_error_is_told() {
        let check = |printed: &[&str], expected: Option<&str>| {
            let lines: Vec<(FrameId, String)> = (0..).map(FrameId).zip(printed.iter().map(|line| line.trim().to_owned())).collect();
            assert_eq!(error_line(&lines).map(|line| lines[line].1.as_str()), expected, "{printed:?}");
        };
        let error = "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'express' imported from /app/server.mjs";
        check(
            &["node:internal/errors:540", error, "    at new NodeError (node:internal/errors:405:5)", "", "Node.js v20.20.2"],
            Some(error),
        );
        let panicked = "thread 'main' panicked at src/main.rs:5:5:";
        check(&[panicked, "DATABASE_URL must be set", "note: run with `RUST_BACKTRACE=1`"], Some("DATABASE_URL must be set"));
        check(&["panic: no token", "", "goroutine 1 [running]:", "main.main()"], Some("panic: no token"));
        let raised = "KeyError: 'NOTES_FILE'";
        check(&["Traceback (most recent call last):", "  File \"server.py\", line 3, in <module>", raised], Some(raised));
        let thrown = "Exception in thread \"main\" java.lang.IllegalStateException: no port";
        check(&[thrown, "        at Main.main(Main.java:5)"], Some(thrown));
        check(&["listening", "stopped"], None);
    }

    #[test]
    fn a_server_that_hangs_up_on_each_call_answers_none() {
        let check = |endings: [&str; 2], lives: bool, expected: &str| {
            let calls = endings.iter().zip(2..).map(|(ending, id)| {
                let call = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"add"}}}}"#);
                format!("@ call add\n> POST /mcp\n> {call}\n{ending}\n")
            });
            let ping = |id: u32| {
                let (attempt, given) = (format!(r#""id":{id},"method":"ping""#), format!(r#""id":{id},"result":{{}}"#));
                format!("> POST /mcp\n> {{\"jsonrpc\":\"2.0\",{attempt}}}\n< 200\n< {{\"jsonrpc\":\"2.0\",{given}}}\n")
            };
            let text = format!("{}{}{}", ping(1), calls.collect::<String>(), if lives { ping(9) } else { String::new() });
            let judged = requests_are_answered(&ConversationView::new(&example::read(&text, "http", "2025-11-25")));
            assert!(format!("{judged:?}").starts_with(expected), "{endings:?} {judged:?}");
        };
        let closed = "! broken connection closed before message completed";
        let refused = "! broken connection to 127.0.0.1:7102 refused";
        check([closed, closed], true, "Broken");
        // Whoever dies cannot but hang up, which is another rule's.
        check([closed, closed], false, "Pass");
        check([closed, "< 200\n< {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"content\":[]}}"], true, "Pass");
        check([refused, refused], true, "Pass");
    }

    #[test]
    fn what_a_question_needs_is_looked_for_in_what_was_declared() {
        let check = |declared: Value, method: &str, params: Value, expected: Option<&str>| {
            let seen = undeclared(Revision::LATEST_LEGACY, Some(&declared), method, Some(&params));
            assert_eq!(seen, expected, "{declared} {method} {params}");
        };
        check(json!({}), "roots/list", json!({}), Some("roots"));
        check(json!({ "roots": {} }), "roots/list", json!({}), None);
        check(json!({}), "ping", json!({}), None);
        check(json!({ "elicitation": {} }), "elicitation/create", json!({}), None);
        check(json!({ "elicitation": {} }), "elicitation/create", json!({ "mode": "url" }), Some("elicitation.url"));
        let (form, url, both) = (json!({ "form": {} }), json!({ "url": {} }), json!({ "form": {}, "url": {} }));
        for (modes, form, url) in [(form, None, Some("elicitation.url")), (url, Some("elicitation.form"), None), (both, None, None)] {
            let declared = json!({ "elicitation": modes });
            check(declared.clone(), "elicitation/create", json!({}), form);
            check(declared.clone(), "elicitation/create", json!({ "mode": "form" }), form);
            check(declared, "elicitation/create", json!({ "mode": "url" }), url);
        }
        let without_modes = undeclared(Revision::V2025_06_18, Some(&json!({ "elicitation": { "url": {} } })), "elicitation/create", None);
        assert_eq!(without_modes, None);
        check(json!({ "sampling": {} }), "sampling/createMessage", json!({ "tools": [] }), Some("sampling.tools"));
        check(json!({ "sampling": { "tools": {} } }), "sampling/createMessage", json!({ "tools": [] }), None);
    }
}
