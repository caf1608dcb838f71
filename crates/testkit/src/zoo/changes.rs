//! What the rows of several areas do to messages.

use super::server::{Received, RpcError, result};
use serde_json::{Value, json};

/// The answer to `tools/list`.
pub(super) fn lists_tools(message: &Value) -> bool {
    message["result"]["tools"].is_array()
}

/// The answer to `initialize` or to `server/discover`.
pub(super) fn is_handshake(message: &Value) -> bool {
    message["result"]["capabilities"].is_object()
}

pub(super) fn is_error(message: &Value) -> bool {
    message.get("error").is_some()
}

/// A result of a tool that says that the call failed.
pub(super) fn is_tool_error(message: &Value) -> bool {
    message["result"]["isError"] == true
}

/// An error in place of an answer.
pub(super) fn refuse(received: &Received, code: i64, message: &str) -> Value {
    RpcError::new(code, message).answer(Some(received.id()))
}

/// A result in place of an answer, with all that the era asks for.
pub(super) fn accept(received: &Received, mut value: Value) -> Value {
    if received.is_modern() {
        value["resultType"] = json!("complete");
        if received.method() == "resources/read" {
            value["ttlMs"] = json!(0);
            value["cacheScope"] = json!("public");
        }
    }
    result(received.id(), value)
}

/// The result of a call that did nothing and says that all went well.
pub(super) fn pretend(received: &Received) -> Value {
    let mut value = json!({ "content": [{ "type": "text", "text": "undefined" }] });
    let structured = match received.name() {
        "add" => Some(json!({ "sum": 0 })),
        "find_animals" => Some(json!({ "animals": [] })),
        _ => None,
    };
    if let Some(structured) = structured {
        value["content"][0]["text"] = json!(structured.to_string());
        value["structuredContent"] = structured;
    }
    accept(received, value)
}

/// Removes a member of an object.
pub(super) fn remove(value: &mut Value, key: &str) {
    if let Some(object) = value.as_object_mut() {
        object.shift_remove(key);
    }
}

/// A request of the server.
pub(super) fn ask(id: Value, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Counts how often this was asked, from one.
pub(super) fn count(received: &Received) -> u64 {
    let mut memory = received.server.memory();
    let count = memory["count"].as_u64().unwrap_or_default() + 1;
    memory["count"] = json!(count);
    count
}
