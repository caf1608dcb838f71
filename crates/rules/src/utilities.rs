//! Ping, and the requests that a server may cancel.
//! Source: basic/utilities/ping and cancellation; 2026-07-28, basic/patterns/cancellation.

use super::ConversationView;
use super::answers::{ServerMessage, messages};
use super::rule_definition::{Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::served::{Served, served};
use mcproof_analysis::AttemptOutcome;
use mcproof_analysis::wording::excerpt;
use mcproof_protocol::{Era, methods};
use serde_json::{Map, Value};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "ping-gets-empty-result",
        area: Area::Lifecycle,
        requirement: "`ping` gets an empty result",
        sources: &[RequirementSource {
            revisions: revisions::LEGACY,
            level: RequirementLevel::Must,
            source: "basic/utilities/ping#behavior-requirements",
        }],
        judge: Judge::Each(ping_gets_empty_result),
        why: "clients and gateways use `ping` to check whether a connection is alive, and close it on an error; SDKs with strict schemas treat a result that is not empty as an error",
        remedy: "respond to `ping` with `\"result\": {}` in every state of the session",
        ..Rule::DEFAULT
    },
    Rule {
        id: "server-cancels-only-own-requests",
        area: Area::Progress,
        requirement: "a server cancels only its own requests; in the modern era, only subscriptions of the client",
        sources: &[
            RequirementSource {
                revisions: revisions::LEGACY,
                level: RequirementLevel::Must,
                source: "basic/utilities/cancellation#behavior-requirements",
            },
            RequirementSource {
                revisions: revisions::MODERN,
                level: RequirementLevel::Must,
                source: "basic/patterns/cancellation#behavior-requirements",
            },
        ],
        judge: Judge::Each(cancels_only_own_requests),
        why: "a client stops waiting for the named request; if it is one of its own requests, the response is lost",
        remedy: "send `notifications/cancelled` only with the id of a request to the client; respond to requests of the client with an error instead",
        ..Rule::DEFAULT
    },
    Rule {
        id: "initialize-offers-latest-version",
        area: Area::Lifecycle,
        requirement: "for an unknown version, a server offers the latest one that it supports",
        sources: &[RequirementSource {
            revisions: revisions::LEGACY,
            level: RequirementLevel::Should,
            source: "basic/lifecycle#version-negotiation",
        }],
        judge: Judge::Together(offers_latest_version),
        why: "clients that are newer than the server get fewer features: no structured results, no titles, no elicitation",
        remedy: "respond to an unknown version with the newest supported version",
        ..Rule::DEFAULT
    },
    Rule {
        id: "notification-has-no-id",
        area: Area::JsonRpc,
        requirement: "a notification has no id",
        sources: &[
            RequirementSource { revisions: revisions::FIRST, level: RequirementLevel::Must, source: "basic/messages#notifications" },
            RequirementSource { revisions: revisions::SESSIONS, level: RequirementLevel::Must, source: "basic#notifications" },
        ],
        judge: Judge::Each(notifications_have_no_id),
        why: "with an id it is a request: clients respond with an error, and its content is lost",
        remedy: "send notifications without the member `id`, not even with null",
        ..Rule::DEFAULT
    },
    Rule {
        id: "embedded-resource-needs-capability",
        area: Area::Capabilities,
        requirement: "a server whose tools embed resources declares resources",
        sources: &[RequirementSource {
            revisions: revisions::SINCE_2025_06,
            level: RequirementLevel::Should,
            source: "server/tools#embedded-resources",
        }],
        judge: Judge::Each(embedded_resources_are_declared),
        why: "a client cannot read the embedded resource again or subscribe to it",
        remedy: "declare `resources` and support `resources/read` for the URIs that tools embed; otherwise return the text as a text block",
        ..Rule::DEFAULT
    },
];

fn ping_gets_empty_result(conversation: &ConversationView<'_>) -> Judgment {
    let (mut seen, mut violations) = (0, Vec::new());
    for Served { result, frames, .. } in served(conversation, methods::PING, &[methods::PING]) {
        seen += 1;
        let has_more = |members: &Map<String, Value>| members.keys().find(|name| *name != "_meta").cloned();
        if let Some(member) = result.as_object().and_then(has_more) {
            let message = format!("the result of `ping` has the member `{}`; it has to be empty", excerpt(member));
            violations.push(Violation::new(message, frames));
        }
    }
    for attempt in conversation.probes(methods::PING) {
        if let AttemptOutcome::Error { .. } | AttemptOutcome::Status { .. } = attempt.answer {
            violations.push(Violation::new(format!("`ping` got {}", attempt.answer.describe()), attempt.frames()));
        }
    }
    Judgment::of(violations, seen, "no `ping` got a response")
}

fn cancels_only_own_requests(conversation: &ConversationView<'_>) -> Judgment {
    let server_message: Vec<ServerMessage<'_>> = messages(conversation).collect();
    let (mut seen, mut violations) = (0, Vec::new());
    for (position, one) in
        server_message.iter().enumerate().filter(|(_, server_message)| server_message.method() == Some(methods::notifications::CANCELLED))
    {
        seen += 1;
        let id = one.value.pointer("/params/requestId").unwrap_or(&Value::Null);
        let may = match conversation.is_modern() {
            true => conversation.from_client().any(|wire_message| {
                wire_message.method() == Some(methods::SUBSCRIPTIONS_LISTEN)
                    && wire_message.id() == Some(id)
                    && wire_message.frame.id < one.frame
            }),
            false => server_message[..position].iter().any(|earlier| earlier.is_request() && earlier.id == Some(id)),
        };
        if !may {
            let whose = if conversation.is_modern() { "is not a subscription of the client" } else { "is not a request of the server" };
            violations
                .push(Violation::new(format!("`notifications/cancelled` names {}, which {whose}", excerpt(id.to_string())), [one.frame]));
        }
    }
    violations.truncate(1);
    match seen {
        0 if conversation.handshake().is_some() => Judgment::NotApplicable("the server canceled nothing".into()),
        _ => Judgment::of(violations, seen, "the server canceled nothing"),
    }
}

fn offers_latest_version(conversations: &[&ConversationView<'_>]) -> Judgment {
    let offer = conversations.iter().enumerate().find_map(|(index, one)| {
        let attempt = one.probe("unknown-version")?;
        let AttemptOutcome::Result { value, .. } = attempt.answer else { return None };
        Some((index, value.get("protocolVersion")?.as_str()?.to_owned(), attempt.frames()))
    });
    let Some((index, offered, frames)) = offer else {
        return Judgment::Untestable("no request with an unknown version got a response".into());
    };
    // A server that returns whatever it got violates `initialize-negotiates-version`, and has no latest version.
    if Era::of(&offered).is_none() {
        return Judgment::NotApplicable(format!("the server offers {}, which is no revision", excerpt(&offered)));
    }
    let agreed = conversations.iter().flat_map(|one| one.requests()).filter(|(request, _)| request.method() == Some(methods::INITIALIZE));
    let agreed = agreed.filter_map(|(request, answer)| {
        let version = answer?.value.pointer("/result/protocolVersion")?.as_str()?;
        (request.param("/protocolVersion")?.as_str()? == version).then_some(version)
    });
    match agreed.filter_map(|version| version.parse().ok()).filter(|revision| revisions::LEGACY.contains(revision)).max() {
        Some(latest) if latest.as_str() > offered.as_str() => {
            let message = format!("instead of an unknown version it offers {}, and it supports {latest}", excerpt(&offered));
            Judgment::Broken(vec![Violation { conversation: index, ..Violation::new(message, frames) }])
        }
        Some(_) => Judgment::Pass,
        None => Judgment::Untestable("no supported version of the server is known".into()),
    }
}

fn notifications_have_no_id(conversation: &ConversationView<'_>) -> Judgment {
    let notifies = |server_message: &ServerMessage<'_>| server_message.method().is_some_and(|method| method.starts_with("notifications/"));
    let all: Vec<ServerMessage<'_>> = messages(conversation).filter(notifies).collect();
    let violation = all.iter().find(|server_message| server_message.id.is_some()).map(|server_message| {
        Violation::new(format!("`{}` has an id", excerpt(server_message.method().unwrap_or_default())), [server_message.frame])
    });
    match all.is_empty() {
        true => Judgment::NotApplicable("the server sends no notifications".into()),
        false => Judgment::from_violations(violation.into_iter().collect()),
    }
}

fn embedded_resources_are_declared(conversation: &ConversationView<'_>) -> Judgment {
    let embedding = messages(conversation).find(|server_message| {
        let mut blocks = server_message.value.pointer("/result/content").and_then(Value::as_array).into_iter().flatten();
        blocks.any(|block| block.get("type").and_then(Value::as_str) == Some("resource"))
    });
    let Some(embedding) = embedding else { return Judgment::NotApplicable("no tool embeds a resource".into()) };
    match (conversation.handshake(), conversation.capability("resources")) {
        (None, _) => Judgment::Untestable("the capabilities of the server are unknown".into()),
        (Some(_), Some(_)) => Judgment::Pass,
        (Some((_, handshake)), None) => {
            let message = "a tool embeds a resource, but the server does not declare `resources`";
            Judgment::Broken(vec![Violation::new(message, [handshake, embedding.frame])])
        }
    }
}
