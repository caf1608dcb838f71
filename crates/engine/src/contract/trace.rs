//! The contract that a saved conversation shows, as far as it was asked. Knows frames, no files.

use super::capture::{handshake_of, lists, of_parts};
use super::profile::{Profile, Visitor};
use crate::rules::Conversation;
use mcproof_client::revision::MODERN;
use mcproof_client::{Era, Handshake, TransportKind};
use mcproof_record::{Contract, Opened, Take, Transcript};
use serde_json::{Value, json};

/// Why a conversation shows no contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceFailure {
    #[error("has no answer to `initialize` or `server/discover`")]
    NoHandshake,
    #[error("has no list of tools, prompts, resources or templates")]
    NoList,
}

/// The contract in a trace, and the kind of client that it was shown to. Lists that nobody asked for are missing in it.
///
/// # Errors
/// There is too little in it.
pub fn of_trace(transcript: Transcript) -> Result<(Visitor, Contract), TraceFailure> {
    let mut take = Take {
        name: "trace".into(),
        transport: String::new(),
        revision: MODERN.into(),
        opened: Opened::Yes,
        probes: Vec::new(),
        ending: None,
        transcript,
    };
    let legacy = legacy_revision(&Conversation::new(&take));
    let era = if legacy.is_some() { Era::Legacy } else { Era::Modern };
    take.revision = legacy.unwrap_or_else(|| MODERN.to_owned());
    let conversation = Conversation::new(&take);
    let (result, _) = conversation.handshake().filter(|(result, _)| result.is_object()).ok_or(TraceFailure::NoHandshake)?;
    let handshake = Handshake {
        era,
        transport: TransportKind::Stdio,
        protocol_version: take.revision.clone(),
        server_info: match era {
            Era::Legacy => result.get("serverInfo").cloned(),
            Era::Modern => result.pointer("/_meta/io.modelcontextprotocol~1serverInfo").cloned(),
        },
        capabilities: result.get("capabilities").cloned().unwrap_or_else(|| json!({})),
        instructions: result.get("instructions").and_then(Value::as_str).map(str::to_owned),
        result: result.clone(),
    };
    let listed = lists().map(|(method, key)| last_listed(&conversation, method, key));
    if listed.iter().all(Option::is_none) {
        return Err(TraceFailure::NoList);
    }
    let [tools, prompts, resources, templates] = listed;
    let contract = of_parts(handshake_of(&handshake, &[]), tools, prompts, resources, templates);
    let profile = if declares_nothing(&conversation) { Profile::Minimal } else { Profile::Own };
    Ok((Visitor { era, profile }, contract))
}

/// The revision that `initialize` was answered with, if it was.
fn legacy_revision(conversation: &Conversation<'_>) -> Option<String> {
    let answers = conversation.requests().filter(|(request, _)| request.method() == Some("initialize"));
    let version = |answer: &Value| answer.pointer("/result/protocolVersion").and_then(Value::as_str).map(str::to_owned);
    answers.filter_map(|(_, answer)| version(&answer?.value)).last()
}

fn declares_nothing(conversation: &Conversation<'_>) -> bool {
    let places = ["/capabilities", "/_meta/io.modelcontextprotocol~1clientCapabilities"];
    let declared = conversation.from_client().flat_map(|said| places.iter().filter_map(|place| said.param(place)));
    declared.filter_map(Value::as_object).all(serde_json::Map::is_empty)
}

/// The items of all pages that belong together, as they were listed last.
fn last_listed(conversation: &Conversation<'_>, method: &str, key: &str) -> Option<Vec<Value>> {
    let mut all: Option<Vec<Value>> = None;
    for (request, answer) in conversation.requests().filter(|(request, _)| request.method() == Some(method)) {
        let Some(items) = answer.and_then(|answer| answer.value.pointer(&format!("/result/{key}"))?.as_array().cloned()) else { continue };
        match (request.param("/cursor"), &mut all) {
            (Some(_), Some(known)) => known.extend(items),
            _ => all = Some(items),
        }
    }
    all
}
