//! JSON-RPC 2.0 messages as MCP uses them. Parses and writes; knows no methods and no transport.

use serde::Serialize;
use serde_json::{Map, Value, json};
use std::fmt;

/// The id of a request. MCP allows strings and integers; a server has to give back exactly what it got.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum RequestId {
    Number(i64),
    Text(String),
}

impl fmt::Display for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(formatter, "{number}"),
            Self::Text(text) => write!(formatter, "{text:?}"),
        }
    }
}

/// The `error` member of a response.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
}

impl RpcError {
    /// As it stood on the wire, as far as it was understood.
    pub fn to_value(&self) -> Value {
        let mut object = json!({ "code": self.code, "message": self.message });
        if let (Some(data), Some(object)) = (&self.data, object.as_object_mut()) {
            object.insert("data".into(), data.clone());
        }
        object
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "JSON-RPC error {}: {}", self.code, self.message)
    }
}

/// A message that a server sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    Response {
        /// `None` where it was `null` or missing, as in answers to a message that could not be read.
        id: Option<RequestId>,
        answer: Result<Value, RpcError>,
    },
    Request {
        id: RequestId,
        method: String,
        params: Option<Value>,
    },
    Notification {
        method: String,
        params: Option<Value>,
    },
}

/// Why some bytes are no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("not JSON: {0}")]
    NotJson(String),
    #[error("a JSON-RPC message has to be an object, found {0}")]
    NotAnObject(&'static str),
    #[error("neither a request, a notification nor a response: {0}")]
    NotAMessage(&'static str),
}

/// Reads one message. Nothing is repaired; what is legal JSON-RPC but odd (a missing `jsonrpc`) is left to rules.
///
/// # Errors
/// Says why the bytes are no message. JSON nested deeper than 128 levels counts as malformed.
pub fn parse(bytes: &[u8]) -> Result<Message, Malformed> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| Malformed::NotJson(error.to_string()))?;
    let mut object = match value {
        Value::Object(object) => object,
        other => return Err(Malformed::NotAnObject(kind(&other))),
    };
    let id = match object.remove("id") {
        None => Id::Missing,
        Some(Value::Null) => Id::Null,
        Some(Value::String(text)) => Id::Valid(RequestId::Text(text)),
        Some(Value::Number(number)) => match number.as_i64() {
            Some(number) => Id::Valid(RequestId::Number(number)),
            None => return Err(Malformed::NotAMessage("`id` is no integer that fits 64 bits")),
        },
        Some(_) => return Err(Malformed::NotAMessage("`id` is neither a string nor an integer")),
    };
    let id_of_response = |id| match id {
        Id::Valid(id) => Some(id),
        Id::Missing | Id::Null => None,
    };
    match (object.remove("method"), object.remove("result"), object.remove("error")) {
        (None, Some(_), Some(_)) => Err(Malformed::NotAMessage("it has both `result` and `error`")),
        (None, Some(result), None) => Ok(Message::Response { id: id_of_response(id), answer: Ok(result) }),
        (None, None, Some(error)) => Ok(Message::Response { id: id_of_response(id), answer: Err(parse_error(error)?) }),
        (None, None, None) => Err(Malformed::NotAMessage("none of `method`, `result` and `error` is there")),
        (Some(Value::String(method)), _, _) => {
            let params = object.remove("params");
            match id {
                Id::Missing => Ok(Message::Notification { method, params }),
                Id::Valid(id) => Ok(Message::Request { id, method, params }),
                Id::Null => Err(Malformed::NotAMessage("a request with `id: null`")),
            }
        }
        (Some(_), _, _) => Err(Malformed::NotAMessage("`method` is no string")),
    }
}

enum Id {
    Missing,
    Null,
    Valid(RequestId),
}

fn parse_error(error: Value) -> Result<RpcError, Malformed> {
    let Value::Object(mut error) = error else { return Err(Malformed::NotAMessage("`error` is no object")) };
    let code = error.get("code").and_then(Value::as_i64).ok_or(Malformed::NotAMessage("`error.code` is no integer"))?;
    let Some(Value::String(message)) = error.remove("message") else {
        return Err(Malformed::NotAMessage("`error.message` is no string"));
    };
    Ok(RpcError { code, message, data: error.remove("data") })
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The bytes of a request, on one line.
pub fn request(id: &RequestId, method: &str, params: Option<&Map<String, Value>>) -> Vec<u8> {
    write(&Outgoing { jsonrpc: "2.0", id: Some(id), method, params })
}

/// The bytes of a notification, on one line.
pub fn notification(method: &str, params: Option<&Map<String, Value>>) -> Vec<u8> {
    write(&Outgoing { jsonrpc: "2.0", id: None, method, params })
}

/// The bytes of a response, on one line.
pub fn response(id: &RequestId, answer: Result<Value, RpcError>) -> Vec<u8> {
    let (key, value) = match answer {
        Ok(result) => ("result", result),
        Err(error) => ("error", error.to_value()),
    };
    json!({ "jsonrpc": "2.0", "id": id, key: value }).to_string().into_bytes()
}

#[derive(Serialize)]
struct Outgoing<'a> {
    jsonrpc: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RequestId>,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a Map<String, Value>>,
}

fn write(message: &Outgoing<'_>) -> Vec<u8> {
    serde_json::to_vec(message).expect("strings, integers and JSON values always serialize")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<Message, &str>) {
        let found = parse(text.as_bytes()).map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn messages_are_told_apart() {
        let number = |id| Some(RequestId::Number(id));
        check(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Ok(Message::Response { id: number(1), answer: Ok(json!({})) }));
        check(
            r#"{"id":"1","error":{"code":-1,"message":"m","data":[1]}}"#,
            Ok(Message::Response {
                id: Some(RequestId::Text("1".into())),
                answer: Err(RpcError { code: -1, message: "m".into(), data: Some(json!([1])) }),
            }),
        );
        check(r#"{"id":null,"result":1}"#, Ok(Message::Response { id: None, answer: Ok(json!(1)) }));
        check(r#"{"method":"a","params":[]}"#, Ok(Message::Notification { method: "a".into(), params: Some(json!([])) }));
        check(r#"{"id":7,"method":"a"}"#, Ok(Message::Request { id: RequestId::Number(7), method: "a".into(), params: None }));
    }

    #[test]
    fn what_is_no_message_says_why() {
        check("Server ready", Err("not JSON: expected value at line 1 column 1"));
        check("[]", Err("a JSON-RPC message has to be an object, found an array"));
        check("{}", Err("neither a request, a notification nor a response: none of `method`, `result` and `error` is there"));
        check(r#"{"id":1.5,"result":1}"#, Err("neither a request, a notification nor a response: `id` is no integer that fits 64 bits"));
        check(
            r#"{"id":1,"result":1,"error":{}}"#,
            Err("neither a request, a notification nor a response: it has both `result` and `error`"),
        );
        check(r#"{"id":1,"error":"no"}"#, Err("neither a request, a notification nor a response: `error` is no object"));
        check(r#"{"id":null,"method":"a"}"#, Err("neither a request, a notification nor a response: a request with `id: null`"));
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        check(&deep, Err("not JSON: recursion limit exceeded at line 1 column 128"));
    }

    #[test]
    fn what_we_write_is_one_line() {
        let params = json!({ "text": "a\nb" });
        let bytes = request(&RequestId::Number(1), "m", params.as_object());
        assert_eq!(String::from_utf8(bytes).unwrap(), r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"text":"a\nb"}}"#);
    }
}
