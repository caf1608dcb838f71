//! What differs between the eras about the same answer. Knows messages, no recordings.

use super::answers::ServerFacts;
use mcproof_protocol::{Era, Revision};
use serde_json::{Map, Value, json};

const SERVER: &str = "io.modelcontextprotocol/serverInfo";
/// Methods whose results may be cached (2026-07-28, server/utilities/caching).
const CACHEABLE: [&str; 6] =
    ["server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"];

/// The result of `initialize`.
pub(super) fn initialize(facts: &ServerFacts, version: &str) -> Value {
    let mut capabilities = facts.capabilities.clone();
    if facts.legacy_version.is_none() {
        // This era has no extensions.
        capabilities.shift_remove("extensions");
    }
    let mut result = json!({ "protocolVersion": version, "capabilities": capabilities, "serverInfo": server(facts) });
    if let Some(instructions) = &facts.instructions {
        result["instructions"] = json!(instructions);
    }
    add(&mut result, &facts.more);
    result
}

/// The result of `server/discover`.
pub(super) fn discover(facts: &ServerFacts) -> Value {
    let mut capabilities = facts.capabilities.clone();
    if facts.legacy_version.is_some() {
        // Tasks of 2025-11-25 are another thing than those of the extension.
        capabilities.shift_remove("tasks");
    }
    let mut result = json!({ "supportedVersions": [Revision::MODERN.as_str()], "capabilities": capabilities });
    if let Some(instructions) = &facts.instructions {
        result["instructions"] = json!(instructions);
    }
    add(&mut result, &facts.more);
    result
}

fn server(facts: &ServerFacts) -> Value {
    if facts.server.is_object() { facts.server.clone() } else { json!({ "name": "mock", "version": "0" }) }
}

fn add(result: &mut Value, more: &Map<String, Value>) {
    for (name, value) in more {
        result[name] = value.clone();
    }
}

/// A result that was recorded in another era, or in none.
pub(super) fn adapted(mut result: Value, method: &str, era: Era, facts: &ServerFacts) -> Value {
    let Some(members) = result.as_object_mut() else { return result };
    match era {
        Era::Modern => {
            let mut whole = Map::from_iter([("resultType".to_owned(), json!("complete"))]);
            whole.append(members);
            if CACHEABLE.contains(&method) {
                whole.entry("ttlMs").or_insert(json!(0));
                whole.entry("cacheScope").or_insert(json!("private"));
            }
            let meta = whole.entry("_meta").or_insert_with(|| json!({}));
            if meta.get(SERVER).is_none() {
                meta[SERVER] = server(facts);
            }
            Value::Object(whole)
        }
        Era::Legacy => {
            members.shift_remove("resultType");
            if CACHEABLE.contains(&method) {
                members.shift_remove("ttlMs");
                members.shift_remove("cacheScope");
            }
            if let Some(Value::Object(meta)) = members.get_mut("_meta") {
                meta.shift_remove(SERVER);
                if meta.is_empty() {
                    members.shift_remove("_meta");
                }
            }
            result
        }
    }
}

/// The capability of the client that a request of the server needs.
pub(super) fn needed(question: &str) -> Option<&'static str> {
    match question {
        "sampling/createMessage" => Some("sampling"),
        "elicitation/create" => Some("elicitation"),
        "roots/list" => Some("roots"),
        _ => None,
    }
}

/// The capability of the server that a method belongs to; `None` if no feature has it.
pub(super) fn feature(method: &str) -> Option<&'static str> {
    match method.split('/').next()? {
        "tools" => Some("tools"),
        "prompts" => Some("prompts"),
        "resources" => Some("resources"),
        "completion" => Some("completions"),
        "logging" => Some("logging"),
        "tasks" => Some("tasks"),
        _ => None,
    }
}

/// The part of a filter of `subscriptions/listen` that a server with these capabilities honors.
pub(super) fn honored(filter: &Value, capabilities: &Map<String, Value>) -> Value {
    let can = |feature: &str, ability: &str| capabilities.get(feature).and_then(|feature| feature.get(ability)) == Some(&Value::Bool(true));
    let has_tasks = capabilities.get("extensions").is_some_and(|extensions| extensions.get("io.modelcontextprotocol/tasks").is_some());
    let honors = |key: &str| match key {
        "toolsListChanged" => can("tools", "listChanged"),
        "promptsListChanged" => can("prompts", "listChanged"),
        "resourcesListChanged" => can("resources", "listChanged"),
        "resourceSubscriptions" => can("resources", "subscribe"),
        "taskIds" => has_tasks,
        _ => false,
    };
    let members = filter.as_object().into_iter().flatten();
    Value::Object(members.filter(|(key, value)| honors(key) && **value != false).map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// Methods that 2026-07-28 has no longer.
pub(super) fn is_removed(method: &str) -> bool {
    matches!(method, "initialize" | "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe")
}

/// How severe a level of log messages is; `None` if there is no such level.
pub(crate) fn log_rank(level: &str) -> Option<usize> {
    const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
    LEVELS.iter().position(|known| *known == level)
}
