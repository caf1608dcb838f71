//! JSON-RPC messages in the bytes of a frame. Forgives whatever can still be told apart.

use serde_json::{Map, Value};

/// One JSON-RPC message.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    Request { id: Value, method: String, params: Value },
    Notification { method: String, params: Value },
    Response { id: Value, outcome: Result<Value, Value> },
}

/// The messages in some bytes, each with its own text: none if they are no JSON-RPC, several in a batch.
pub fn messages(bytes: &[u8]) -> Vec<(Message, Vec<u8>)> {
    // Cheaper than to find out in the parser, and most noise is no JSON.
    if !matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'[')) {
        return Vec::new();
    }
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(members)) => message(members).map(|message| (message, bytes.to_vec())).into_iter().collect(),
        Ok(Value::Array(items)) => items.into_iter().filter_map(part).collect(),
        _ => Vec::new(),
    }
}

fn part(item: Value) -> Option<(Message, Vec<u8>)> {
    let text = serde_json::to_vec(&item).expect("a value has text keys only");
    match item {
        Value::Object(members) => Some((message(members)?, text)),
        _ => None,
    }
}

fn message(mut members: Map<String, Value>) -> Option<Message> {
    let mut take = |name: &str| members.get_mut(name).map(Value::take);
    if let Some(Value::String(method)) = take("method") {
        let (id, params) = (take("id"), take("params").unwrap_or(Value::Null));
        return Some(match id {
            Some(id) => Message::Request { id, method, params },
            None => Message::Notification { method, params },
        });
    }
    let id = take("id").unwrap_or(Value::Null);
    match (take("result"), take("error")) {
        (_, Some(error)) if !error.is_null() => Some(Message::Response { id, outcome: Err(error) }),
        (Some(result), _) => Some(Message::Response { id, outcome: Ok(result) }),
        _ => None,
    }
}

/// What a message is about: the name of a tool or prompt, a URI, a task.
pub(super) fn target(method: &str, params: &Value) -> Option<String> {
    let text = |pointer: &str| {
        params.pointer(pointer).and_then(|value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        })
    };
    match method {
        "tools/call" | "prompts/get" => text("/name"),
        "completion/complete" => text("/ref/name").or_else(|| text("/ref/uri")),
        "logging/setLevel" | "notifications/message" => text("/level"),
        "notifications/progress" => text("/progressToken"),
        "notifications/cancelled" => text("/requestId"),
        _ => text("/uri").or_else(|| text("/taskId")).or_else(|| text("/task/taskId")),
    }
}
