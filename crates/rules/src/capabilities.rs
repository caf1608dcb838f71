//! What a server says that it can do, held against what it does; and its log.
//! Source: basic/lifecycle, capability negotiation; server/*, capabilities; server/utilities/logging.

use super::answers::gathered;
use super::modern::{is_of_legacy_request, key_of};
use super::rule_definition::{Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, negotiated, revisions};
use super::{Attempt, AttemptOutcome, ConversationView, WireMessage};
use mcproof_analysis::messages::{has_notification, is_notification};
use mcproof_analysis::wording::excerpt;
use mcproof_protocol::{Revision, error_code, methods};
use mcproof_record::{FrameId, counted};
use serde_json::Value;

const OFTEN_BROKEN: Option<&str> = Some("several well-known servers break it");

/// Both parties keep to what was negotiated.
const NEGOTIATED: &[RequirementSource] = &negotiated("server/tools#capabilities");

/// What a modern server may send is told by each subscription and each request: that is `listen-filter-is-honored` and
/// `logs-only-when-requested`.
/// That a modern server logs is told by its capabilities all the same.
const NEGOTIATED_BY_HANDSHAKE: &[RequirementSource] = &negotiated("server/utilities/logging#capabilities");

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "declared-capability-is-implemented",
        area: Area::Capabilities,
        requirement: "the methods of a declared capability exist, and its list can be read",
        sources: NEGOTIATED,
        tolerance: OFTEN_BROKEN,
        judge: Judge::Each(is_kept),
        why: "clients show declared features, and their user gets an error",
        remedy: "implement the method, or do not declare the capability; where a list needs a service that is down, return what is known without it",
        sdks: &[("TypeScript", "take the capability out of the options of `new Server(…)`, or set a request handler for its methods")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "capability-is-declared",
        area: Area::Capabilities,
        requirement: "a server declares each capability that it implements",
        sources: &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Must, source: "server/tools#capabilities" }],
        tolerance: OFTEN_BROKEN,
        judge: Judge::Each(is_declared),
        why: "clients use only declared features",
        remedy: "declare the capability in the response to the handshake",
        ..Rule::DEFAULT
    },
    Rule {
        id: "notifications-are-declared",
        area: Area::Capabilities,
        requirement: "notifications are sent only for declared capabilities: `listChanged`, `subscribe`, `logging`, `tasks`",
        sources: NEGOTIATED_BY_HANDSHAKE,
        judge: Judge::Each(notifications_are_declared),
        why: "clients register handlers for declared capabilities; any other notification is lost or an error",
        remedy: "declare the capability, or do not send the notification",
        sdks: &[("TypeScript", "`capabilities: { logging: {}, tools: { listChanged: true } }` in the options of the server")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "notification-method-is-known",
        area: Area::Capabilities,
        requirement: "a notification has a method of its revision of MCP, unless the server declares extensions or experimental capabilities",
        sources: &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Should, source: "" }],
        judge: Judge::Each(notification_methods_are_known),
        why: "clients silently ignore a notification that they do not know: a misspelled one is lost",
        remedy: "compare the method with the specification, such as `notifications/message` or `notifications/tools/list_changed`; declare what \
                 belongs to an extension under `capabilities.extensions` or `capabilities.experimental`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "log-level-is-honored",
        area: Area::Capabilities,
        requirement: "log messages below the requested level are not sent",
        sources: &[
            RequirementSource {
                revisions: revisions::LEGACY,
                level: RequirementLevel::Should,
                source: "server/utilities/logging#setting-log-level",
            },
            RequirementSource {
                revisions: revisions::MODERN,
                level: RequirementLevel::Should,
                source: "server/utilities/logging#per-request-log-level",
            },
        ],
        judge: Judge::Each(log_level_is_obeyed),
        why: "a client that requests only errors is flooded with other messages",
        remedy: "store the level for each session, and check it before sending a message",
        ..Rule::DEFAULT
    },
    Rule {
        id: "log-level-unknown-is-refused",
        area: Area::Capabilities,
        requirement: "an unknown log level gets error -32602",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Should,
            source: "server/utilities/logging#error-handling",
        }],
        judge: Judge::Each(unknown_log_level_is_refused),
        why: "a client with a misspelled level gets a success, but no such level is set",
        remedy: "accept the eight levels of syslog, and respond with -32602 to any other",
        ..Rule::DEFAULT
    },
];

const NO_HANDSHAKE: &str = "the capabilities of the server are unknown";

/// What tells whether a declared capability exists: the capability, the probe, what it was tried on.
const KEPT: [(&str, &str, Option<&str>); 8] = [
    ("tools", "list", Some(methods::TOOLS_LIST)),
    ("tools", "call", None),
    ("resources", "list", Some(methods::RESOURCES_LIST)),
    ("prompts", "list", Some(methods::PROMPTS_LIST)),
    ("completions", "complete", None),
    ("completions", "complete-unknown", None),
    ("logging", "set-log-level", None),
    // Nothing is listened to unless something was declared.
    ("", "listen", None),
];

fn is_kept(conversation: &ConversationView<'_>) -> Judgment {
    if conversation.handshake().is_none() {
        return Judgment::Untestable(NO_HANDSHAKE.into());
    }
    let (mut seen, mut violations) = (0, Vec::<Violation>::new());
    for (capability, probe, subject) in KEPT {
        if !capability.is_empty() && conversation.capability(capability).is_none() {
            continue;
        }
        let tried = || conversation.probes(probe).filter(|attempt| subject.is_none_or(|subject| attempt.subject() == subject));
        let answered = || tried().filter(|attempt| !matches!(attempt.answer, AttemptOutcome::Silence | AttemptOutcome::Gone));
        // A tool may hand on the error of another server.
        let Some(attempt) =
            answered().find(|attempt| attempt.answer.code() != Some(error_code::METHOD_NOT_FOUND)).or_else(|| answered().next())
        else {
            continue;
        };
        seen += 1;
        let method = attempt.request.and_then(WireMessage::method).unwrap_or_default();
        // A list that fails each time; without tools there is no conversation, which is told by itself.
        let fails = probe == "list" && capability != "tools" && attempt.answer.code().is_some() && !conversation.gives_results(method);
        if attempt.answer.code() == Some(error_code::METHOD_NOT_FOUND) || fails {
            let declared = if capability.is_empty() { "notifications are declared".into() } else { format!("`{capability}` is declared") };
            let message = format!("{declared}, and `{method}` got {}", attempt.answer.describe());
            if !violations.iter().any(|known| known.message == message) {
                violations.push(Violation::new(message, declaration(conversation).into_iter().chain(attempt.frames())));
            }
        }
    }
    match (violations.is_empty(), seen) {
        (true, 0) => Judgment::NotApplicable("the server declares no capability that can be tested".into()),
        _ => Judgment::from_violations(violations),
    }
}

fn declaration(conversation: &ConversationView<'_>) -> Option<FrameId> {
    conversation.handshake().map(|(_, frame)| frame)
}

fn is_declared(conversation: &ConversationView<'_>) -> Judgment {
    if conversation.handshake().is_none() {
        return Judgment::Untestable(NO_HANDSHAKE.into());
    }
    let (mut seen, mut violations) = (0, Vec::new());
    for attempt in conversation.probes("list").chain(conversation.probes("complete")) {
        let AttemptOutcome::Result { value, .. } = attempt.answer else { continue };
        let Some(method) = attempt.request.and_then(WireMessage::method) else { continue };
        let (capability, items) = match method {
            // It came with 2025-03-26.
            methods::COMPLETION_COMPLETE if Revision::at(&conversation.conversation.revision) < Revision::V2025_03_26 => continue,
            methods::COMPLETION_COMPLETE => ("completions", value.pointer("/completion/values")),
            _ => (method.split('/').next().unwrap_or_default(), value.get(key_of(method))),
        };
        // Many servers answer lists of what they have not with an empty one.
        let Some(count) = items.and_then(Value::as_array).map(Vec::len).filter(|count| *count > 0) else { continue };
        seen += 1;
        if conversation.capability(capability).is_none() {
            let frames = declaration(conversation).into_iter().chain(attempt.frames());
            let things = counted(count, "item");
            violations.push(Violation::new(format!("`{method}` returns {things}, but `{capability}` is not declared"), frames));
        }
    }
    violations.dedup_by(|later: &mut Violation, first| later.message == first.message);
    match (violations.is_empty(), seen) {
        (true, 0) => Judgment::NotApplicable("the server has neither tools nor resources nor prompts".into()),
        _ => Judgment::from_violations(violations),
    }
}

fn notification_methods_are_known(conversation: &ConversationView<'_>) -> Judgment {
    let is_extended = |key: &str| conversation.capability(key).and_then(Value::as_object).is_some_and(|declared| !declared.is_empty());
    if is_extended("experimental") || is_extended("extensions") {
        return Judgment::NotApplicable("the server declares more than MCP defines".into());
    }
    let is_of_revision = |message: &&WireMessage<'_>| message.is_notification() && !is_of_legacy_request(conversation, message);
    let sent: Vec<&WireMessage<'_>> = conversation.from_server().filter(is_of_revision).collect();
    let mut unknown: Vec<Violation> = Vec::new();
    for message in &sent {
        let revision = &conversation.conversation.revision;
        let Some(method) = message.method().filter(|method| !has_notification(method, revision)) else { continue };
        let told = match is_notification(method) {
            true => format!("the server sent the notification `{method}`, which {revision} does not have"),
            false => format!("the server sent the unknown notification `{}`", excerpt(method)),
        };
        if unknown.iter().all(|known| known.message != told) {
            unknown.push(Violation::new(told, [message.frame.id]));
        }
    }
    match sent.is_empty() {
        true => Judgment::NotApplicable("the server sent no notification".into()),
        false => Judgment::from_violations(gathered(unknown)),
    }
}

fn notifications_are_declared(conversation: &ConversationView<'_>) -> Judgment {
    let Some((_, handshake)) = conversation.handshake() else { return Judgment::Untestable(NO_HANDSHAKE.into()) };
    let needs = |method: &str| match method {
        methods::notifications::MESSAGE => Some("logging"),
        methods::notifications::TASKS => Some("extensions/io.modelcontextprotocol~1tasks"),
        _ if conversation.is_modern() => None,
        methods::notifications::TASKS_STATUS => Some("tasks"),
        methods::notifications::TOOLS_LIST_CHANGED => Some("tools/listChanged"),
        methods::notifications::PROMPTS_LIST_CHANGED => Some("prompts/listChanged"),
        methods::notifications::RESOURCES_LIST_CHANGED => Some("resources/listChanged"),
        methods::notifications::RESOURCES_UPDATED => Some(methods::RESOURCES_SUBSCRIBE),
        _ => None,
    };
    let mut violations: Vec<Violation> = Vec::new();
    for wire_message in conversation.from_server().filter(|wire_message| wire_message.is_notification()) {
        let Some((method, capability)) = wire_message.method().and_then(|method| Some((method, needs(method)?))) else { continue };
        if conversation.capability(capability).is_some() || is_of_legacy_request(conversation, wire_message) {
            continue;
        }
        let message = format!("`{method}` was sent, but `{}` is not declared", capability.replace('/', ".").replace("~1", "/"));
        if !violations.iter().any(|known| known.message == message) {
            violations.push(Violation::new(message, [handshake, wire_message.frame.id]));
        }
    }
    Judgment::from_violations(violations)
}

/// From the most talkative to the most urgent.
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

fn rank(level: &Value) -> Option<usize> {
    LEVELS.iter().position(|known| Some(*known) == level.as_str())
}

fn log_level_is_obeyed(conversation: &ConversationView<'_>) -> Judgment {
    if let Some(judgment) = crate::rule_definition::unless_declared(conversation, "logging") {
        return judgment;
    }
    if let Some(judgment) = level_of_call_is_obeyed(conversation) {
        return judgment;
    }
    let probe = if conversation.is_modern() { "log-level" } else { "set-log-level" };
    let mut attempts = conversation.probes(probe);
    let Some(attempt) = attempts.next() else { return Judgment::Untestable("no log level was set".into()) };
    // Another level counts from then on.
    let next = attempts.next().and_then(|next| next.request).map(|request| request.frame.id);
    let level = Value::from(attempt.subject());
    match attempt.answer {
        AttemptOutcome::Result { .. } => {}
        // That is `declared-capability-is-implemented`.
        AttemptOutcome::Error { .. } if attempt.answer.code() != Some(error_code::METHOD_NOT_FOUND) => {
            let message = format!("the log level {level} got {}", attempt.answer.describe());
            return Judgment::Broken(vec![Violation::new(message, attempt.frames())]);
        }
        answer => return Judgment::Untestable(format!("the log level {level} got {}", answer.describe())),
    }
    let asked_at = attempt.request.map(|request| request.frame.id);
    let (Some(wanted), Some(from)) = (rank(&level), if conversation.is_modern() { asked_at } else { attempt.answer.frame() }) else {
        return Judgment::Untestable("no log level was set".into());
    };
    let logs = || conversation.from_server().filter(|wire_message| wire_message.method() == Some(methods::notifications::MESSAGE));
    if conversation.is_modern() && logs().any(|wire_message| wire_message.frame.id < from) {
        return Judgment::Untestable("the server logs without a request at any level, which another rule judges".into());
    }
    let until = if conversation.is_modern() { attempt.answer.frame() } else { next };
    let is_later = |frame: FrameId| frame > from && until.is_none_or(|until| frame < until);
    let later: Vec<&WireMessage<'_>> = logs().filter(|wire_message| is_later(wire_message.frame.id)).collect();
    let mut calls = conversation.probes("call-with-logs").filter_map(|attempt| attempt.answer.frame());
    let is_seen = !later.is_empty() || calls.any(is_later);
    let low: Vec<(&WireMessage<'_>, &Value)> = later
        .into_iter()
        .filter_map(|wire_message| Some((wire_message, wire_message.param("/level")?)))
        .filter(|(_, level)| rank(level).is_some_and(|rank| rank < wanted))
        .collect();
    // What is held back until a stream ends may be from before.
    let deleted = conversation.exchanges.values().filter(|exchange| exchange.method == "DELETE" && exchange.request.id > from);
    let ended = deleted.map(|exchange| exchange.request.id).min();
    let (held, low): (Vec<_>, Vec<_>) = low.into_iter().partition(|(message, _)| ended.is_some_and(|ended| message.frame.id > ended));
    if low.is_empty() && !held.is_empty() {
        return Judgment::Untestable("log messages came only when the session was ended: something holds the stream back".into());
    }
    let Some((first, below)) = low.first() else {
        return if is_seen { Judgment::Pass } else { Judgment::Untestable("no tool was called while a log level was set".into()) };
    };
    let others = if low.len() > 1 { format!(", the first of {}", low.len()) } else { String::new() };
    let message = format!("a log message of level {below} was sent after the level had been set to {level}{others}");
    Judgment::Broken(vec![Violation::new(message, attempt.frames().into_iter().chain([first.frame.id]))])
}

/// Whether logs of the modern era are at the level of some request that is under way; `None` if no call requested one.
fn level_of_call_is_obeyed(conversation: &ConversationView<'_>) -> Option<Judgment> {
    let calls: Vec<(FrameId, FrameId, usize, &Value)> = conversation
        .probes("call-with-logs")
        .filter_map(|attempt| {
            let (request, level) = (attempt.request?, attempt.request?.meta("logLevel")?);
            Some((request.frame.id, attempt.answer.frame()?, rank(level)?, level))
        })
        .collect();
    let logs = conversation.from_server().filter(|wire_message| wire_message.method() == Some(methods::notifications::MESSAGE));
    for log in logs {
        let under_way = || calls.iter().filter(|(from, until, ..)| (*from..*until).contains(&log.frame.id));
        let (Some(least), Some(level)) = (under_way().min_by_key(|(_, _, rank, _)| *rank), log.param("/level")) else { continue };
        if rank(level).is_some_and(|rank| rank < least.2) {
            let message = format!("a log message of level {level} was sent during calls that requested level {} and above", least.3);
            return Some(Judgment::Broken(vec![Violation::new(message, [least.0, log.frame.id])]));
        }
    }
    (!calls.is_empty()).then_some(Judgment::Pass)
}

fn unknown_log_level_is_refused(conversation: &ConversationView<'_>) -> Judgment {
    if let Some(judgment) = crate::rule_definition::unless_declared(conversation, "logging") {
        return judgment;
    }
    let tried: Vec<Attempt<'_, '_>> =
        conversation.probes("set-unknown-log-level").chain(conversation.probes("unknown-log-level")).collect();
    let Some(attempt) = tried.first() else { return Judgment::Untestable("no unknown log level was requested".into()) };
    match attempt.answer {
        AttemptOutcome::Result { .. } => Judgment::Broken(vec![Violation::new("an unknown log level was accepted", attempt.frames())]),
        AttemptOutcome::Error { .. } if attempt.answer.code() == Some(error_code::INVALID_PARAMS) => Judgment::Pass,
        // The level is not what it refuses, but the method: declared-capability-is-implemented.
        AttemptOutcome::Error { .. }
            if attempt.answer.code() == Some(error_code::METHOD_NOT_FOUND)
                && !conversation.gives_results(methods::LOGGING_SET_LEVEL)
                && !conversation.is_modern() =>
        {
            Judgment::Untestable(format!("the server does not implement `{}`", methods::LOGGING_SET_LEVEL))
        }
        // The method is not part of this revision.
        AttemptOutcome::Error { .. } if conversation.is_modern() && attempt.answer.code() == Some(error_code::METHOD_NOT_FOUND) => {
            Judgment::Pass
        }
        AttemptOutcome::Error { .. } => {
            let message = format!("an unknown log level got {}, not error -32602", attempt.answer.describe());
            Judgment::Broken(vec![Violation::new(message, attempt.frames())])
        }
        answer => Judgment::Untestable(format!("an unknown log level got {}", answer.describe())),
    }
}
