//! Converts between lines of the driver protocol and JSON-RPC messages. Knows no methods.

use mcproof_client::jsonrpc::RpcError;
use mcproof_protocol::error_code::{INVALID_REQUEST, PARSE_ERROR};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// What a line says.
#[derive(Debug)]
pub(crate) enum Incoming<'a> {
    Request { id: Value, method: Cow<'a, str>, params: &'a str },
    Notification { method: Cow<'a, str>, params: &'a str },
    Response { id: String, answer: Result<Value, RpcError> },
    Wrong { id: Value, code: i64, message: String },
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Text<'a>>,
    id: Option<Value>,
    #[serde(borrow)]
    method: Option<Text<'a>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    result: Option<Value>,
    error: Option<Refusal>,
}

/// As it stands in the line, where nothing in it is escaped.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct Refusal {
    code: i64,
    message: String,
    data: Option<Value>,
}

/// The id and the params of a request of this method, if the line has its members in the order in which drivers write them: then it is
/// read once, not first as an envelope. Else, and where anything is wrong with it, the envelope tells.
pub(crate) fn request_of<'a, T: Deserialize<'a>>(line: &'a [u8], method: &str) -> Option<(u64, T)> {
    let rest = line.strip_prefix(br#"{"jsonrpc":"2.0","id":"#)?;
    let (id, rest) = rest.split_at(rest.iter().position(|byte| *byte == b',')?);
    let rest = rest.strip_prefix(br#","method":""#)?.strip_prefix(method.as_bytes())?;
    let params = params_before_end(rest.strip_prefix(br#"","params":"#)?)?;
    Some((std::str::from_utf8(id).ok()?.parse().ok()?, params))
}

/// Like [`request_of`], for a notification.
pub(crate) fn notification_of<'a, T: Deserialize<'a>>(line: &'a [u8], method: &str) -> Option<T> {
    let rest = line.strip_prefix(br#"{"jsonrpc":"2.0","method":""#)?.strip_prefix(method.as_bytes())?;
    params_before_end(rest.strip_prefix(br#"","params":"#)?)
}

fn params_before_end<'a, T: Deserialize<'a>>(rest: &'a [u8]) -> Option<T> {
    crate::read(std::str::from_utf8(rest.strip_suffix(b"}")?).ok()?).ok()
}

/// Reads a line.
pub(crate) fn read(line: &[u8]) -> Incoming<'_> {
    let wrong = |code, id, message: String| Incoming::Wrong { id, code, message };
    let line = match std::str::from_utf8(line) {
        Ok(line) => line,
        Err(error) => return wrong(PARSE_ERROR, Value::Null, format!("line is not valid JSON: {error}")),
    };
    let envelope: Envelope<'_> = match serde_json::from_str(line) {
        Ok(envelope) => envelope,
        Err(error) => {
            return match serde_json::from_str::<serde::de::IgnoredAny>(line) {
                Ok(_) => wrong(INVALID_REQUEST, Value::Null, format!("line is not a JSON-RPC message: {error}")),
                Err(_) => wrong(PARSE_ERROR, Value::Null, format!("line is not valid JSON: {error}")),
            };
        }
    };
    let Envelope { jsonrpc, id, method, params, result, error } = envelope;
    if !matches!(id, None | Some(Value::String(_) | Value::Number(_))) {
        return wrong(INVALID_REQUEST, Value::Null, "id must be a string or a number".into());
    }
    if jsonrpc.is_none_or(|Text(version)| version != "2.0") {
        return wrong(INVALID_REQUEST, id.unwrap_or_default(), "`jsonrpc` must be \"2.0\"".into());
    }
    let params = params.map_or("{}", RawValue::get);
    match (method.map(|Text(method)| method), id, error) {
        (Some(method), Some(id), _) => Incoming::Request { id, method, params },
        (Some(method), None, _) => Incoming::Notification { method, params },
        (None, Some(Value::String(id)), None) => Incoming::Response { id, answer: Ok(result.unwrap_or_default()) },
        (None, Some(Value::String(id)), Some(Refusal { code, message, data })) => {
            Incoming::Response { id, answer: Err(RpcError { code, message, data }) }
        }
        (None, id, _) => wrong(INVALID_REQUEST, id.unwrap_or_default(), "message has no `method`".into()),
    }
}

/// The line of a response.
pub(crate) fn result(id: &Value, result: &impl Serialize) -> Vec<u8> {
    line(&["\"id\":", &id.to_string(), ",\"result\":"], result)
}

/// The line of an error.
pub(crate) fn error(id: &Value, error: &impl Serialize) -> Vec<u8> {
    line(&["\"id\":", &id.to_string(), ",\"error\":"], error)
}

/// The line of a notification.
pub(crate) fn notification(method: &str, params: &impl Serialize) -> Vec<u8> {
    line(&["\"method\":\"", method, "\",\"params\":"], params)
}

/// The line of a request.
pub(crate) fn request(id: &str, method: &str, params: &impl Serialize) -> Vec<u8> {
    line(&["\"id\":\"", id, "\",\"method\":\"", method, "\",\"params\":"], params)
}

/// `members` end with the name of that which is `last`. Written in one place, which most lines fit.
fn line(members: &[&str], last: &impl Serialize) -> Vec<u8> {
    let mut line = Vec::with_capacity(USUAL);
    line.extend_from_slice(b"{\"jsonrpc\":\"2.0\",");
    for part in members {
        line.extend_from_slice(part.as_bytes());
    }
    serde_json::to_writer(&mut line, last).expect("messages have text keys only");
    line.extend_from_slice(b"}\n");
    line
}

const USUAL: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_message_or_says_what_is_wrong_with_it() {
        let check = |line: &str, expected: &str| {
            let said = match read(line.as_bytes()) {
                Incoming::Request { id, method, params } => format!("request {id} {method} {params}"),
                Incoming::Notification { method, params } => format!("notification {method} {params}"),
                Incoming::Response { id, answer } => format!("response {id} {answer:?}"),
                Incoming::Wrong { id, code, .. } => format!("wrong {id} {code}"),
            };
            assert_eq!(said, expected, "{line}");
        };
        check(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"b": 1}}"#, r#"request 1 a {"b": 1}"#);
        check(r#"{"jsonrpc":"2.0","id":"x","method":"a"}"#, r#"request "x" a {}"#);
        check(r#"{"jsonrpc":"2.0","method":"a"}"#, "notification a {}");
        check(r#"{"jsonrpc":"2.0","id":"ask-1","result":{}}"#, "response ask-1 Ok(Object {})");
        check(
            r#"{"jsonrpc":"2.0","id":"ask-1","error":{"code":-1,"message":"m"}}"#,
            r#"response ask-1 Err(RpcError { code: -1, message: "m", data: None })"#,
        );
        check("{", "wrong null -32700");
        check("", "wrong null -32700");
        check(r#"{"jsonrpc":"2\u002e0","method":"\u0061"}"#, "notification a {}");
        check("[]", "wrong null -32600");
        check("7", "wrong null -32600");
        check(r#"{"id":1,"method":"a"}"#, "wrong 1 -32600");
        check(r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#, "wrong null -32600");
        check(r#"{"jsonrpc":"2.0","id":3}"#, "wrong 3 -32600");
        check("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\u{ff}\"}", "request 1 \u{ff} {}");
    }
}
