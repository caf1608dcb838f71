//! Reads the contract from an open session: the result of the handshake and all lists, page by page. Knows the session, not what
//! becomes of the contract.
//!
//! Within one kind of client nothing in it depends on the transport, the size of pages, their order, or on what changes by
//! itself: `_meta` of results, how long they may be cached, when a resource was modified and how large it is.

use super::hash::{canonical, full_hash, sort, text, tools_hash};
use super::profile::{Profile, Visitor};
use futures_util::future::try_join_all;
use mcproof_client::{CallFailure, ConnectFailure, ConnectOptions, Handshake, ListFailure, Session, Tap, Target, Unanswered, open_session};
use mcproof_protocol::error_code::METHOD_NOT_FOUND;
use mcproof_protocol::{Era, Revision, Transport, methods};
use mcproof_record::{Contract, ContractHashes};
use serde_json::{Map, Value};
use std::time::Duration;

/// A contract, and how it was had.
#[derive(Clone, Debug)]
pub struct Captured {
    pub contract: Contract,
    pub transport: Transport,
}

/// Why a session gave no contract.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CaptureFailure {
    #[error("{method}: {failure}")]
    List { method: &'static str, failure: ListFailure },
    #[error("the lists of the server change faster than they can be read")]
    Unstable,
}

/// How long a server that announces changes of a list may take until the first of them, after the handshake. What it learns
/// of its client then (roots, for one) may decide what it offers.
const ANNOUNCEMENT: Duration = Duration::from_millis(400);
/// How often lists are read again after a notification that they have changed.
const MOST_READINGS: usize = 5;

/// The lists: method, key of the items, capability, what tells of a change, and what items are sorted by.
const LISTS: [(&str, &str, &str, &str, &str); 4] = [
    (methods::TOOLS_LIST, "tools", "tools", methods::notifications::TOOLS_LIST_CHANGED, "name"),
    (methods::PROMPTS_LIST, "prompts", "prompts", methods::notifications::PROMPTS_LIST_CHANGED, "name"),
    (methods::RESOURCES_LIST, "resources", "resources", methods::notifications::RESOURCES_LIST_CHANGED, "uri"),
    (methods::RESOURCES_TEMPLATES_LIST, "resourceTemplates", "resources", methods::notifications::RESOURCES_LIST_CHANGED, "uriTemplate"),
];

/// The contract that a session shows. `versions` are the revisions that the server speaks in its era, where they are known.
///
/// # Errors
/// A list could not be had.
pub async fn capture(session: &Session, versions: &[String], timeout: Duration) -> Result<Captured, CaptureFailure> {
    complete(session, versions, timeout, None).await
}

/// The tools of a session that has listed them, and how many changes it had been told of before.
pub struct ToolsSeen {
    pub tools: Vec<Value>,
    /// Of these tools.
    pub hash: String,
    pub told: usize,
}

/// Like [`capture`], without listing the tools again if they were listed and have not changed since.
///
/// # Errors
/// As [`capture`].
pub async fn complete(
    session: &Session,
    versions: &[String],
    timeout: Duration,
    mut seen: Option<ToolsSeen>,
) -> Result<Captured, CaptureFailure> {
    let handshake = session.handshake();
    let (mut lists, mut hash) = (Vec::new(), None);
    await_announcement(session).await;
    for reading in 0.. {
        lists.clear();
        let (before, tools);
        (before, tools, hash) = match seen.take() {
            Some(seen) => (seen.told, Some(seen.tools), Some(seen.hash)),
            None => (changes_told(session), None, None),
        };
        let known = tools.into_iter().map(Some).chain(std::iter::repeat(None));
        for ((method, key, capability, _, _), known) in LISTS.into_iter().zip(known) {
            lists.push(match known {
                Some(known) => Some(known),
                None if declares(&handshake.result, capability) => Some(list(session, method, key, timeout).await?),
                None => None,
            });
        }
        if changes_told(session) == before {
            break;
        }
        if reading == MOST_READINGS {
            return Err(CaptureFailure::Unstable);
        }
    }
    let [tools, prompts, resources, resource_templates] = <[Option<Vec<Value>>; 4]>::try_from(lists).expect("there are four lists");
    // A contract is written down, and a server may tell in its texts what it was given.
    let clean = |items: Option<Vec<Value>>| items.map(|items| items.into_iter().map(|item| session.tap().redacted_value(item)).collect());
    let shaken = handshake_of(handshake, versions);
    let shaken = Contract {
        server: shaken.server.map(|server| session.tap().redacted_value(server)),
        instructions: shaken.instructions.map(|text| session.tap().redacted(text)),
        ..shaken
    };
    let mut contract = in_order(shaken, clean(tools), clean(prompts), clean(resources), clean(resource_templates));
    let tools = hash.unwrap_or_else(|| tools_hash(contract.tools.as_deref().unwrap_or_default()));
    contract.hashes = ContractHashes { tools, full: full_hash(&contract) };
    Ok(Captured { contract, transport: handshake.transport })
}

/// The contract with the very client that a session is, and the key of that kind of client.
///
/// # Errors
/// As [`capture`].
pub async fn of_session(session: &Session, timeout: Duration) -> Result<(String, Contract), CaptureFailure> {
    let key = Visitor { era: session.handshake().era, profile: Profile::Own }.key(None);
    Ok((key, capture(session, &[], timeout).await?.contract))
}

/// The revisions of an era that the server speaks, newest first. A legacy server tells one in each handshake, so each is
/// tried, in a session of its own, while the one of the handshake is open.
///
/// # Errors
/// The server cannot be reached.
pub async fn versions(
    target: &Target,
    options: &ConnectOptions,
    era: Era,
    handshake: &Handshake,
    tap: impl Fn() -> Tap,
) -> Result<Vec<String>, ConnectFailure> {
    if era == Era::Modern {
        return Ok(told_versions(handshake));
    }
    // A server that we started to listen does so already, for the session that is open.
    let running = match target {
        Target::Http { endpoint, kind, launch: Some(_), locate: None } => {
            Some(Target::Http { endpoint: endpoint.clone(), kind: *kind, launch: None, locate: None })
        }
        _ => None,
    };
    let target = running.as_ref().unwrap_or(target);
    let others = Revision::LEGACY.iter().map(|revision| revision.as_str()).filter(|version| *version != handshake.protocol_version);
    let attempt = |version: &'static str| {
        let tap = tap();
        async move {
            let options = ConnectOptions { protocol_version: Some((*version).to_owned()), ..options.clone() };
            match open_session(target, &options, &tap).await {
                Ok(session) => {
                    session.close().await;
                    Ok(Spoken::Yes((*version).to_owned()))
                }
                Err(failure) if says_nothing(&failure) => Err(failure),
                Err(failure) if is_silence(&failure) => Ok(Spoken::Unknown(version)),
                Err(_) => Ok(Spoken::No),
            }
        }
    };
    let (mut found, mut spoken) = (vec![handshake.protocol_version.clone()], Vec::new());
    if let Target::Stdio(_) = target {
        // Each has a process of its own, whose start is all that this waits for.
        spoken = try_join_all(others.map(&attempt)).await?;
    } else {
        // Some servers over HTTP bear one session at a time.
        for version in others {
            spoken.push(attempt(version).await?);
        }
    }
    for one in spoken {
        let one = match one {
            // Of several processes that start at the same time, one may be too slow. Whoever is silent on its own as well does not speak it.
            Spoken::Unknown(version) => attempt(version).await?,
            known => known,
        };
        if let Spoken::Yes(version) = one {
            found.push(version);
        }
    }
    found.sort_by(|one, two| two.cmp(one));
    Ok(found)
}

/// Whether a server speaks a revision.
enum Spoken {
    Yes(String),
    No,
    /// It has not responded in time.
    Unknown(&'static str),
}

fn is_silence(failure: &ConnectFailure) -> bool {
    let is_timeout = |failure: &CallFailure| matches!(failure, CallFailure::TimedOut { .. });
    match failure {
        ConnectFailure::Unanswered { failure, .. } => is_timeout(failure),
        ConnectFailure::SseTimedOut { .. } => true,
        _ => false,
    }
}

/// Whether a session failed for a reason that has nothing to do with the revision that was offered.
fn says_nothing(failure: &ConnectFailure) -> bool {
    match failure {
        ConnectFailure::Unanswered { failure, .. } => matches!(failure, CallFailure::Unanswered(Unanswered::Unreachable(_))),
        ConnectFailure::Start(_)
        | ConnectFailure::Address(_)
        | ConnectFailure::AddressTaken { .. }
        | ConnectFailure::OtherListens { .. }
        | ConnectFailure::NotListening { .. }
        | ConnectFailure::NotLocated { .. }
        | ConnectFailure::Unauthorized { .. } => true,
        _ => false,
    }
}

/// The parts of a contract that are in the result of the handshake.
pub(super) fn handshake_of(handshake: &Handshake, versions: &[String]) -> Contract {
    Contract {
        protocol_versions: if versions.is_empty() { told_versions(handshake) } else { versions.to_vec() },
        server: handshake.server_info.clone().map(sorted),
        capabilities: sorted(handshake.capabilities.clone()).as_object().cloned().unwrap_or_default(),
        instructions: handshake.instructions.clone(),
        ..Contract::default()
    }
}

/// A contract of all its parts, sorted and hashed.
pub(crate) fn of_parts(
    handshake: Contract,
    tools: Option<Vec<Value>>,
    prompts: Option<Vec<Value>>,
    resources: Option<Vec<Value>>,
    resource_templates: Option<Vec<Value>>,
) -> Contract {
    let mut contract = in_order(handshake, tools, prompts, resources, resource_templates);
    contract.hashes = ContractHashes { tools: tools_hash(contract.tools.as_deref().unwrap_or_default()), full: full_hash(&contract) };
    contract
}

/// Without its hashes.
fn in_order(
    handshake: Contract,
    tools: Option<Vec<Value>>,
    prompts: Option<Vec<Value>>,
    resources: Option<Vec<Value>>,
    resource_templates: Option<Vec<Value>>,
) -> Contract {
    let settled = |items: Option<Vec<Value>>, index: usize| items.map(|items| settle(items, LISTS[index].4));
    Contract {
        tools: settled(tools, 0),
        prompts: settled(prompts, 1),
        resources: settled(resources, 2),
        resource_templates: settled(resource_templates, 3),
        ..handshake
    }
}

/// Method, key and capability of each list, in the order of [`of_parts`].
pub(super) fn lists() -> [(&'static str, &'static str, &'static str); 4] {
    LISTS.map(|(method, key, capability, ..)| (method, key, capability))
}

fn told_versions(handshake: &Handshake) -> Vec<String> {
    let told = handshake.result.get("supportedVersions").and_then(Value::as_array).into_iter().flatten();
    let mut versions: Vec<String> = told.filter_map(|version| version.as_str().map(str::to_owned)).collect();
    if versions.is_empty() {
        versions.push(handshake.protocol_version.clone());
    }
    // Of a modern server the legacy revisions depend on the transport, and belong to the other key.
    if handshake.era == Era::Modern {
        versions.retain(|version| Revision::at(version) >= Revision::MODERN);
    }
    versions.sort_by(|one, two| two.cmp(one));
    versions.dedup();
    versions
}

/// Whether a list may be requested, by the result of a handshake. A modern server without discovery declares nothing, so every list may.
pub(super) fn declares(result: &Value, capability: &str) -> bool {
    result
        .get("capabilities")
        .is_none_or(|declared| declared.get(capability).is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false))))
}

async fn await_announcement(session: &Session) {
    let handshake = session.handshake();
    let tells = |capability: &str| handshake.capabilities.pointer(&format!("/{capability}/listChanged")) == Some(&Value::Bool(true));
    if handshake.era == Era::Legacy && ["tools", "prompts", "resources"].iter().any(|capability| tells(capability)) {
        let mut arrivals = session.arrivals();
        if changes_told(session) == 0 {
            // Silence is the usual answer.
            let first = async { while changes_told(session) == 0 && arrivals.changed().await.is_ok() {} };
            let _ = tokio::time::timeout(ANNOUNCEMENT, first).await;
        }
    }
}

/// How many notifications about changed lists the server has sent.
pub fn changes_told(session: &Session) -> usize {
    let tells = |method: &str| LISTS.iter().any(|(_, _, _, change, _)| *change == method);
    session.notifications().iter().filter(|notification| tells(&notification.method)).count()
}

async fn list(session: &Session, method: &'static str, key: &str, timeout: Duration) -> Result<Vec<Value>, CaptureFailure> {
    match session.list(method, key, timeout).await {
        Ok(listed) => {
            // Our client does not call these over HTTP; the server offers them all the same, on every transport.
            let rejected = listed.rejected.into_iter().map(|(tool, _)| tool);
            Ok(listed.items.into_iter().chain(rejected).collect())
        }
        // Many servers declare more than they answer: resources, and no templates.
        Err(ListFailure::Rpc { error, .. }) if error.code == METHOD_NOT_FOUND => Ok(Vec::new()),
        Err(failure) => Err(CaptureFailure::List { method, failure }),
    }
}

/// Items in a fixed order, without what changes by itself.
fn settle(items: Vec<Value>, key: &str) -> Vec<Value> {
    let mut items: Vec<Value> = items.into_iter().map(|item| sorted(steady(item, key))).collect();
    sort(&mut items, |item| text(item, key), canonical);
    items
}

fn steady(mut item: Value, key: &str) -> Value {
    if key == "uri"
        && let Some(resource) = item.as_object_mut()
    {
        resource.shift_remove("size");
        if let Some(annotations) = resource.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.shift_remove("lastModified");
            if annotations.is_empty() {
                resource.shift_remove("annotations");
            }
        }
    }
    item
}

/// The same value with all members in the order of their names.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<(String, Value)> = members.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            members.sort_by(|one, two| one.0.cmp(&two.0));
            Value::Object(Map::from_iter(members))
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_contract_knows_neither_order_nor_what_changes_by_itself() {
        let resource = |modified: &str, size: u64| json!({ "uri": "a://1", "name": "r", "size": size, "annotations": { "lastModified": modified, "priority": 1 } });
        let of = |tools: Vec<Value>, resources: Vec<Value>| of_parts(Contract::default(), Some(tools), None, Some(resources), None);
        let (a, b) = (json!({ "name": "a", "inputSchema": {} }), json!({ "inputSchema": {}, "name": "b" }));
        let one = of(vec![a.clone(), b.clone()], vec![resource("2026-01-01", 1)]);
        let two = of(vec![b, a], vec![resource("2026-02-02", 2)]);
        assert_eq!(one, two);
        assert_eq!(one.resources.unwrap()[0], json!({ "uri": "a://1", "name": "r", "annotations": { "priority": 1 } }));
    }
}
