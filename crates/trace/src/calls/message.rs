//! JSON-RPC messages in the bytes of a frame. Forgives whatever can still be told apart.

use mcproof_record::{holds_more_values, read_message};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Of a message that holds more values, only the kind, the id and the method are read.
const MOST_VALUES: usize = 250_000;

/// Bytes of an id that is read in such a message.
const LONGEST_ID: usize = 1_000;

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
    if holds_more_values(bytes, MOST_VALUES) {
        return outline(bytes).map(|message| (message, bytes.to_vec())).into_iter().collect();
    }
    match read_message(bytes) {
        Ok(Value::Object(members)) => message(members).map(|message| (message, bytes.to_vec())).into_iter().collect(),
        Ok(Value::Array(items)) => items.into_iter().filter_map(part).collect(),
        _ => Vec::new(),
    }
}

/// Members of a message that are not built.
#[derive(Deserialize)]
struct Outline<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

fn outline(bytes: &[u8]) -> Option<Message> {
    let Outline { id, method, result, error } = serde_json::from_slice(bytes).ok()?;
    let id = id.filter(|id| id.get().len() <= LONGEST_ID).and_then(|id| serde_json::from_str(id.get()).ok());
    match (method, id) {
        (Some(method), Some(id)) => Some(Message::Request { id, method: method.into_owned(), params: Value::Null }),
        (Some(method), None) => Some(Message::Notification { method: method.into_owned(), params: Value::Null }),
        (None, id) if error.is_some() => Some(Message::Response { id: id.unwrap_or_default(), outcome: Err(Value::Null) }),
        (None, id) => result.map(|_| Message::Response { id: id.unwrap_or_default(), outcome: Ok(Value::Null) }),
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
    // What an HTTP server says of itself may have an `error` as well, such as that of OAuth.
    let (id, version) = (take("id"), take("jsonrpc"));
    if id.is_none() && version.is_none() {
        return None;
    }
    let id = id.unwrap_or(Value::Null);
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_response_without_an_id_says_that_it_is_json_rpc() {
        let check = |text: &str, expected: bool| assert_eq!(!messages(text.as_bytes()).is_empty(), expected, "{text}");
        check(r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}"#, true);
        check(r#"{"id":null,"error":{"code":-32700,"message":"no"}}"#, true);
        check(r#"{"error":"invalid_token","error_description":"The token has expired"}"#, false);
        check(r#"{"result":"ok"}"#, false);
    }

    #[test]
    fn of_a_message_with_too_many_values_only_the_outline_is_read() {
        let many = "0,".repeat(MOST_VALUES) + "0";
        for (text, expected) in [
            (format!(r#"{{"id":7,"result":[{many}]}}"#), Some(Message::Response { id: json!(7), outcome: Ok(Value::Null) })),
            (format!(r#"{{"id":"a","error":[{many}]}}"#), Some(Message::Response { id: json!("a"), outcome: Err(Value::Null) })),
            (format!(r#"{{"id":[{many}],"result":1}}"#), Some(Message::Response { id: Value::Null, outcome: Ok(Value::Null) })),
            (
                format!(r#"{{"method":"tools/call","id":1,"params":[{many}]}}"#),
                Some(Message::Request { id: json!(1), method: "tools/call".into(), params: Value::Null }),
            ),
            (format!("[{many}]"), None),
        ] {
            let found = messages(text.as_bytes());
            assert_eq!(found.first().map(|(message, _)| message), expected.as_ref());
            assert!(found.iter().all(|(_, bytes)| bytes == text.as_bytes()));
        }
    }
}
