//! Whether each message matches the schema of its revision.

use super::flaws::{Flaw, told};
use super::rule_definition::{Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, revisions};
use super::{ConversationView, WireMessage};
use mcproof_analysis::messages::{self, About, MessageFlaw};
use mcproof_protocol::{Revision, error_code};
use serde_json::Value;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "message-matches-schema",
        area: Area::Schema,
        requirement: "each message matches the schema of its revision",
        sources: &[
            RequirementSource {
                revisions: Revision::V2024_11_05..=Revision::V2025_03_26,
                level: RequirementLevel::Must,
                source: "basic#schema",
            },
            RequirementSource { revisions: revisions::SINCE_2025_06, level: RequirementLevel::Must, source: "schema" },
        ],
        judge: Judge::Together(matches_schema),
        why: "clients rely on the types of the schema: one validates and refuses the message, another reads a missing member",
        remedy: "send what the schema of the negotiated revision requires; leave absent members out instead of sending null",
        ..Rule::DEFAULT
    },
    Rule {
        id: "content-is-base64",
        area: Area::Schema,
        requirement: "the data of images, audio and blobs is Base64: the standard alphabet, padded, without line breaks",
        sources: &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Must, source: "server/tools#image-content" }],
        judge: Judge::Together(base64_content),
        why: "a client that validates results refuses the whole result; others show a broken image",
        remedy: "encode the bytes with the standard alphabet; no `data:` URL, no URL-safe alphabet, no line breaks",
        sdks: &[
            ("Python", "`base64.b64encode(data).decode()`"),
            ("TypeScript", "`buffer.toString(\"base64\")`"),
            ("Go", "`base64.StdEncoding`; a `[]byte` is encoded automatically"),
        ],
        ..Rule::DEFAULT
    },
];

/// Every message of the server with what is known about it: the conversation, its position, and the method or name that it
/// is about.
fn judge(
    all: &[&ConversationView<'_>],
    flaws_of: impl Fn(&Value, About<'_>, &str) -> Vec<MessageFlaw>,
    is_reported_elsewhere: impl Fn(&MessageFlaw, &Value) -> bool,
) -> (usize, Vec<Flaw>) {
    let (mut seen, mut flaws) = (0, Vec::new());
    for (position, conversation) in all.iter().enumerate() {
        // A conversation without a handshake by the client may have one that was sent as raw data.
        let negotiated = conversation.handshake().and_then(|(result, _)| result.get("protocolVersion")?.as_str());
        let revision = negotiated.filter(|_| !conversation.is_modern()).unwrap_or(&conversation.conversation.revision);
        for wire_message in conversation.from_server().filter(|wire_message| wire_message.value.is_object()) {
            seen += 1;
            let request = if wire_message.is_answer() { conversation.question_of(wire_message) } else { None };
            // Another rule reports that this response exists.
            if request.is_some_and(|request| removed(conversation, request)) {
                continue;
            }
            let method = request.and_then(|request| request.method());
            let about = match (request, method) {
                (Some(request), Some(method)) => About::Response { method, params: request.value.get("params") },
                _ => About::Itself,
            };
            let subject = wire_message.method().or(method).unwrap_or("a response");
            let mut own = flaws_of(&wire_message.value, about, revision);
            own.retain(|flaw| !is_reported_elsewhere(flaw, &wire_message.value));
            for detail in each_once(&own) {
                flaws.push(Flaw { subject: subject.to_owned(), detail, frames: vec![wire_message.frame.id], conversation: position });
            }
        }
    }
    (seen, flaws)
}

/// Whether a request uses a method that its revision removed.
fn removed(conversation: &ConversationView<'_>, request: &WireMessage<'_>) -> bool {
    conversation.is_within(request.frame.id, &["removed-method"])
}

fn matches_schema(all: &[&ConversationView<'_>]) -> Judgment {
    let (seen, flaws) = judge(all, messages::flaws, has_its_own_rule);
    match seen {
        0 => Judgment::Untestable("the server sent no message".into()),
        _ => Judgment::from_violations(told("message", "messages", flaws)),
    }
}

const VALUES: &str = "/result/completion/values";

/// What belongs to the rules about JSON-RPC, and to those about single members of the modern era.
fn has_its_own_rule(flaw: &MessageFlaw, message: &Value) -> bool {
    const OTHERS: [&str; 10] = [
        "",
        "/jsonrpc",
        "/id",
        "/error",
        "/error/code",
        "/error/message",
        "/result/resultType",
        "/result/ttlMs",
        "/result/cacheScope",
        "/result/supportedVersions",
    ];
    let is_about_versions = || message.pointer("/error/code") == Some(&Value::from(error_code::UNSUPPORTED_VERSION));
    let has_too_many = || flaw.pointer == VALUES && message.pointer(VALUES).is_some_and(Value::is_array);
    OTHERS.contains(&flaw.pointer.as_str()) || has_too_many() || (flaw.pointer.starts_with("/error/data") && is_about_versions())
}

/// The flaws of a message in words. What is wrong with several of its items in the same way is one flaw, told of the first.
fn each_once(flaws: &[MessageFlaw]) -> Vec<String> {
    let mut kinds: Vec<(String, &MessageFlaw, usize)> = Vec::new();
    for flaw in flaws {
        let place = without_indices(&flaw.pointer);
        match kinds.iter_mut().find(|(known, first, _)| *known == place && first.predicate == flaw.predicate) {
            Some((_, _, count)) => *count += 1,
            None => kinds.push((place, flaw, 1)),
        }
    }
    let told = |(place, first, count): (String, &MessageFlaw, usize)| match count {
        1 => format!("{} at `{place}`", first.message),
        _ => format!("{} at `{place}`, in {count} items", first.message),
    };
    kinds.into_iter().map(told).collect()
}

/// Makes the same flaw in many items one flaw.
fn without_indices(pointer: &str) -> String {
    let plain =
        |part: &str| if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) { "*".to_owned() } else { part.to_owned() };
    pointer.split('/').map(plain).collect::<Vec<_>>().join("/")
}

fn base64_content(all: &[&ConversationView<'_>]) -> Judgment {
    let (_, flaws) = judge(all, messages::base64_flaws, |_, _| false);
    let has_any = all.iter().flat_map(|conversation| conversation.from_server()).any(|wire_message| has_encoded(&wire_message.value));
    match (has_any, flaws.is_empty()) {
        (false, true) => Judgment::NotApplicable("the server sent no image, audio or blob".into()),
        _ => Judgment::from_violations(told("message", "messages", flaws)),
    }
}

/// Whether there is anything that has to be Base64.
fn has_encoded(message: &Value) -> bool {
    let list = |pointer: &str| message.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let blocks = list("/result/content").chain(list("/result/messages").filter_map(|message| message.get("content")));
    let mut all = blocks.chain(list("/result/contents"));
    all.any(|block| block.get("data").is_some() || block.get("blob").is_some() || block.pointer("/resource/blob").is_some())
}
