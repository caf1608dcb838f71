//! The contract that saved conversations show, as far as it was asked. Knows frames, no files.

use super::capture::{declares, handshake_of, lists, of_parts};
use super::gathered::{ListOutcome, PagedList};
use super::profile::{Profile, Visitor};
use mcproof_analysis::ConversationView;
use mcproof_client::{EraEvidence, Handshake};
use mcproof_protocol::{Era, Revision, Transport, methods};
use mcproof_record::{Contract, Conversation, Opened, PartialContract, Transcript};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Why a conversation shows no contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceFailure {
    #[error("has no response to `initialize` or `server/discover`")]
    NoHandshake,
    #[error("has no complete list of tools, prompts, resources or templates")]
    NoList,
}

/// The contract in a trace, and the kind of client that it was shown to. Lists that nobody asked for, or that were not read to
/// their end, are missing in it.
///
/// # Errors
/// There is too little in it.
pub fn of_trace(transcript: Transcript) -> Result<(Visitor, Contract), TraceFailure> {
    let mut take = Conversation {
        name: "trace".into(),
        transport: String::new(),
        revision: Revision::MODERN.as_str().into(),
        opened: Opened::Yes,
        probes: Vec::new(),
        ending: None,
        sdks: Vec::new(),
        transcript,
    };
    if let Some(revision) = legacy_revision(&ConversationView::new(&take)) {
        take.revision = revision;
    }
    shown(&take).map(|shown| (shown.visitor, shown.contract))
}

/// The contracts in the conversations of a check, by the kind of client: of each kind what the conversation shows in which most
/// lists were asked for.
///
/// # Errors
/// None shows any.
pub fn of_check(takes: &[Conversation]) -> Result<BTreeMap<String, Contract>, TraceFailure> {
    let mut all: BTreeMap<String, Shown> = BTreeMap::new();
    let mut failure = TraceFailure::NoHandshake;
    for take in takes.iter().filter(|take| take.opened == Opened::Yes) {
        match shown(take) {
            Ok(shown) => {
                let key = shown.visitor.key(None);
                if all.get(&key).is_none_or(|known| known.lists < shown.lists) {
                    all.insert(key, shown);
                }
            }
            Err(missing) => failure = missing,
        }
    }
    if all.is_empty() { Err(failure) } else { Ok(all.into_iter().map(|(key, shown)| (key, shown.contract)).collect()) }
}

/// What one conversation shows.
struct Shown {
    visitor: Visitor,
    contract: Contract,
    /// How many lists it has.
    lists: usize,
}

fn shown(take: &Conversation) -> Result<Shown, TraceFailure> {
    let era = Revision::at(&take.revision).era();
    let conversation = ConversationView::new(take);
    let (result, _) = conversation.handshake().filter(|(result, _)| result.is_object()).ok_or(TraceFailure::NoHandshake)?;
    let listed = lists().map(|(method, key, _)| last_listed(&conversation, method, key));
    let contract = contract_of(era, take.revision.clone(), result, listed);
    let lists = number_of_lists(&contract);
    if lists == 0 {
        return Err(TraceFailure::NoList);
    }
    let profile = if declares_nothing(&conversation) { Profile::Minimal } else { Profile::Own };
    Ok(Shown { visitor: Visitor { era, profile }, contract, lists })
}

/// The contract that the result of a handshake and the lists show, these in the order of [`lists`]. It is marked as partial.
pub(crate) fn contract_of(era: Era, revision: String, result: &Value, listed: [PagedList; 4]) -> Contract {
    let handshake = Handshake {
        era,
        transport: Transport::Stdio,
        protocol_version: revision,
        server_info: match era {
            Era::Legacy => result.get("serverInfo").cloned(),
            Era::Modern => result.pointer("/_meta/io.modelcontextprotocol~1serverInfo").cloned(),
        },
        capabilities: result.get("capabilities").cloned().unwrap_or_else(|| json!({})),
        instructions: result.get("instructions").and_then(Value::as_str).map(str::to_owned),
        result: result.clone(),
        era_evidence: EraEvidence::Shown,
        lost_to_discovery: Duration::ZERO,
    };
    let mut failed = Vec::new();
    let mut shown = listed.into_iter().zip(lists()).map(|(list, (method, _, capability))| match list.outcome() {
        ListOutcome::Whole(items) => Some(items),
        // What a server does not declare, it need not list.
        ListOutcome::Unknown if declares(result, capability) => Some(Vec::new()),
        ListOutcome::Failed if declares(result, capability) => {
            failed.push(method.to_owned());
            None
        }
        ListOutcome::Failed | ListOutcome::Unknown | ListOutcome::NotRead => None,
    });
    let [tools, prompts, resources, templates]: [Option<Vec<Value>>; 4] = std::array::from_fn(|_| shown.next().flatten());
    drop(shown);
    let contract = of_parts(handshake_of(&handshake, &[]), tools, prompts, resources, templates);
    Contract { partial: Some(PartialContract { failed }), ..contract }
}

/// How many lists a contract has.
pub(crate) fn number_of_lists(contract: &Contract) -> usize {
    let Contract { tools, prompts, resources, resource_templates, .. } = contract;
    [tools, prompts, resources, resource_templates].into_iter().flatten().count()
}

/// The revision that `initialize` was answered with, if it was.
pub(crate) fn legacy_revision(conversation: &ConversationView<'_>) -> Option<String> {
    let answers = conversation.requests().filter(|(request, _)| request.method() == Some(methods::INITIALIZE));
    let version = |answer: &Value| answer.pointer("/result/protocolVersion").and_then(Value::as_str).map(str::to_owned);
    answers.filter_map(|(_, answer)| version(&answer?.value)).next_back()
}

fn declares_nothing(conversation: &ConversationView<'_>) -> bool {
    let places = ["/capabilities", "/_meta/io.modelcontextprotocol~1clientCapabilities"];
    let declared = conversation.from_client().flat_map(|said| places.iter().filter_map(|place| said.param(place)));
    declared.filter_map(Value::as_object).all(serde_json::Map::is_empty)
}

/// All pages of a list, as it was read last from the first page to the last one.
fn last_listed(conversation: &ConversationView<'_>, method: &str, key: &str) -> PagedList {
    let mut list = PagedList::default();
    for (request, answer) in conversation.requests().filter(|(request, _)| request.method() == Some(method)) {
        match answer.and_then(|answer| answer.value.get("result")) {
            Some(result) => list.page(request.param("/cursor"), result, key),
            None => list.fail(answer.and_then(|answer| answer.value.pointer("/error/code")).and_then(Value::as_i64)),
        }
    }
    list
}
