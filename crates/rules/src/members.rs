//! Which members a message has, and names that occur twice in one JSON object: a parser merges both into one value, so only the bytes
//! show it.
//! Source: JSON-RPC 2.0, request and response objects; RFC 8259, section 4.

use super::ConversationView;
use super::answers::{ServerMessage, gathered, messages, shown};
use super::rule_definition::{Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use mcproof_record::{Frame, FrameBody, FrameId, RepeatedNames};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "message-has-each-member-once",
        area: Area::JsonRpc,
        requirement: "a message has each of `jsonrpc`, `id`, `method`, `params`, `result` and `error` once",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Must,
            source: "https://www.jsonrpc.org/specification#response_object",
        }],
        judge: Judge::Each(members_come_once),
        why: "one client takes the first value, another one the last, and a third (each one in Rust with serde) refuses the message",
        remedy: "serialize the message from one object; do not concatenate text",
        ..Rule::DEFAULT
    },
    Rule {
        id: "json-names-are-unique",
        area: Area::JsonRpc,
        requirement: "no object within a message repeats a name",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Should,
            source: "https://www.rfc-editor.org/rfc/rfc8259#section-4",
        }],
        judge: Judge::Each(names_are_unique),
        why: "one client takes the first value, another one the last, and a third refuses the message",
        remedy: "serialize the object from a map; do not concatenate text",
        ..Rule::DEFAULT
    },
    Rule {
        id: "message-has-method-or-outcome",
        area: Area::JsonRpc,
        requirement: "each message has a `method`, or the `result` or `error` of a request",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Must,
            source: "https://www.jsonrpc.org/specification#notification",
        }],
        judge: Judge::Each(messages_are_of_a_kind),
        why: "clients tell requests, notifications and responses apart by these members, and drop whatever has none of them",
        remedy: "give each notification and request its `method`, and each response a `result` or an `error`",
        ..Rule::DEFAULT
    },
];

const NO_MESSAGE: &str = "the server sent no message";

fn members_come_once(conversation: &ConversationView<'_>) -> Judgment {
    judge_repeated(conversation, is_of_envelope)
}

fn names_are_unique(conversation: &ConversationView<'_>) -> Judgment {
    judge_repeated(conversation, |pointer| !is_of_envelope(pointer))
}

fn messages_are_of_a_kind(conversation: &ConversationView<'_>) -> Judgment {
    let all: Vec<ServerMessage<'_>> = messages(conversation).collect();
    // With an id it is a response, which other rules judge.
    let has_none = |message: &&ServerMessage<'_>| ["method", "result", "error", "id"].iter().all(|name| message.value.get(name).is_none());
    let wrong = all.iter().filter(has_none);
    let violations =
        wrong.map(|message| Violation::new(format!("a message has no `method`: {}", shown(message.value)), [message.frame])).collect();
    Judgment::of(gathered(violations), all.len(), NO_MESSAGE)
}

/// Whether a name belongs to a message itself, also in a batch.
fn is_of_envelope(pointer: &str) -> bool {
    const ENVELOPE: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
    let name = pointer.trim_start_matches("/*").trim_start_matches('/');
    ENVELOPE.contains(&name)
}

fn judge_repeated(conversation: &ConversationView<'_>, concerns: impl Fn(&str) -> bool) -> Judgment {
    let frames: BTreeMap<FrameId, &Frame> = conversation.frames().iter().map(|frame| (frame.id, frame)).collect();
    let sent: BTreeSet<FrameId> = messages(conversation).map(|server_message| server_message.frame).collect();
    let mut violations = Vec::new();
    for frame in sent.iter().filter_map(|id| frames.get(id)) {
        let Ok(RepeatedNames(repeated)) = serde_json::from_slice::<RepeatedNames>(text_of(frame)) else { continue };
        let concerned = repeated.iter().filter(|pointer| concerns(pointer));
        violations.extend(concerned.map(|pointer| Violation::new(format!("`{pointer}` occurs twice in a message"), [frame.id])));
    }
    Judgment::of(gathered(violations), sent.len(), NO_MESSAGE)
}

/// The JSON that a frame carries.
fn text_of(frame: &Frame) -> &[u8] {
    match &frame.body {
        FrameBody::Line { bytes, .. } | FrameBody::HttpBody { bytes, .. } => bytes.as_bytes(),
        FrameBody::SseEvent { data: Some(data), .. } => data.as_bytes(),
        _ => b"",
    }
}
