//! JSON-RPC 2.0 messages as MCP uses them. Reads and writes; knows no methods and no transport.

use crate::transport::JsonLimits;
use mcproof_record::{Json, JsonObject, JsonSize, holds_more_values, is_plain, without_half_surrogates};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
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
        answer: Result<Json, RpcError>,
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

/// Some bytes that are no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{flaw}")]
pub struct Malformed {
    pub flaw: Flaw,
    /// The request that they were meant to answer, as far as that can be told.
    pub answers: Option<RequestId>,
}

/// Why some bytes are no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    #[error("not UTF-8 from byte {0} on")]
    NotUtf8(usize),
    #[error("starts with a byte order mark")]
    ByteOrderMark,
    #[error("not JSON: {0}")]
    NotJson(String),
    #[error("JSON nested deeper than {0} levels")]
    TooDeep(usize),
    #[error("more than {0} JSON values in one message")]
    TooManyValues(usize),
    #[error("a JSON-RPC message has to be an object, found {0}")]
    NotAnObject(&'static str),
    #[error("neither a request, a notification nor a response: {0}")]
    NotAMessage(&'static str),
}

/// Reads one message of usual size. Nothing is repaired.
///
/// # Errors
/// Says why the bytes are no message, or which bound they break.
pub fn parse(bytes: &[u8]) -> Result<Message, Malformed> {
    parse_within(bytes, JsonLimits::default())
}

/// Like [`parse`], within other bounds.
///
/// # Errors
/// As [`parse`].
pub fn parse_within(bytes: &[u8], limits: JsonLimits) -> Result<Message, Malformed> {
    let mut members = parse_members(bytes, limits).map_err(|flaw| Malformed { flaw, answers: None })?;
    let id = match members.id.take() {
        None => Ok(Id::Missing),
        Some(Value::Null) => Ok(Id::Null),
        Some(Value::String(text)) => Ok(Id::Valid(RequestId::Text(text))),
        Some(Value::Number(number)) => match number.as_i64() {
            Some(number) => Ok(Id::Valid(RequestId::Number(number))),
            None => Err("`id` is not an integer that fits 64 bits"),
        },
        Some(_) => Err("`id` is neither a string nor an integer"),
    };
    let answers = match &id {
        Ok(Id::Valid(id)) if members.method.is_none() => Some(id.clone()),
        _ => None,
    };
    let message = id.and_then(|id| read(members, id));
    message.map_err(|reason| Malformed { flaw: Flaw::NotAMessage(reason), answers })
}

/// What bytes that are no message hold of a response, without blanks and quotes: it may have something before or after it, or be in another
/// notation or in UTF-16.
pub(crate) fn unreadable_response(bytes: &[u8]) -> Option<Vec<u8>> {
    const MOST_READ: usize = 16 << 10;
    let mut text = bytes[..bytes.len().min(MOST_READ)].to_vec();
    text.retain(|byte| !matches!(byte, 0 | b' ' | b'"' | b'\''));
    (has(&text, "jsonrpc:") && (has(&text, "result:") || has(&text, "error:"))).then_some(text)
}

/// Whether an [`unreadable_response`] has this id.
pub(crate) fn names_id(response: &[u8], id: &RequestId) -> bool {
    let id = match id {
        RequestId::Number(number) => number.to_string(),
        RequestId::Text(text) => text.replace([' ', '"', '\''], ""),
    };
    [",", "}"].iter().any(|end| has(response, &format!("id:{id}{end}")))
}

fn has(text: &[u8], word: &str) -> bool {
    text.windows(word.len()).any(|part| part == word.as_bytes())
}

/// The responses that clients which put up with more find in bytes that are no message: in an array, with any `jsonrpc`, with a number
/// such as `1.0` as their id, with an `error` that is `null`, with half of a surrogate pair in a text.
pub(crate) fn tolerant_responses(bytes: &[u8], limits: JsonLimits) -> Vec<(RequestId, Result<Json, RpcError>)> {
    let mended = without_half_surrogates(bytes);
    let bytes = mended.as_deref().unwrap_or(bytes);
    if !matches!(parse_members(bytes, limits), Ok(_) | Err(Flaw::NotAnObject(_))) {
        return Vec::new();
    }
    let all = match serde_json::from_slice(bytes) {
        Ok(Value::Array(all)) => all,
        Ok(one) => vec![one],
        Err(_) => return Vec::new(),
    };
    let mended = all.into_iter().filter_map(|mut value| {
        let members = value.as_object_mut()?;
        members.insert("jsonrpc".into(), "2.0".into());
        if members.contains_key("result") && members.get("error") == Some(&Value::Null) {
            members.remove("error");
        }
        if let Some(number) =
            members.get("id").and_then(Value::as_f64).filter(|number| number.fract() == 0.0 && number.abs() < LARGEST_EXACT)
        {
            members.insert("id".into(), Value::from(number as i64));
        }
        match parse_within(&serde_json::to_vec(&value).ok()?, limits) {
            Ok(Message::Response { id: Some(id), answer }) => Some((id, answer)),
            _ => None,
        }
    });
    mended.collect()
}

/// Up to here a floating-point number is the integer that it shows.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;

fn parse_members(bytes: &[u8], limits: JsonLimits) -> Result<Members, Flaw> {
    let text = std::str::from_utf8(bytes).map_err(|error| Flaw::NotUtf8(error.valid_up_to()))?;
    if text.starts_with('\u{feff}') {
        return Err(Flaw::ByteOrderMark);
    }
    // Counted before anything is built, where there are bytes enough for so many. Commas inside strings do not count, so a long text
    // is looked at more closely.
    let JsonLimits { depth, values } = limits;
    if holds_more_values(bytes, values) {
        return Err(Flaw::TooManyValues(values));
    }
    // The parser has a bound of its own; a lower one is looked for where there are brackets enough.
    if depth < JsonLimits::DEEPEST && memchr::memchr2_iter(b'[', b'{', bytes).nth(depth).is_some() && JsonSize::of(bytes).depth > depth {
        return Err(Flaw::TooDeep(depth));
    }
    // What is plain has no flaw that only a look at every value finds.
    let whole = if is_plain(bytes) {
        serde_json::from_str(text).map(|Whole::<false>(members)| members)
    } else {
        serde_json::from_str(text).map(|Whole::<true>(members)| members)
    };
    match whole {
        Ok(members) => members.map_err(Flaw::NotAnObject),
        Err(_) if JsonSize::of(bytes).depth > JsonLimits::DEEPEST => Err(Flaw::TooDeep(JsonLimits::DEEPEST)),
        Err(error) => Err(Flaw::NotJson(error.to_string())),
    }
}

/// The members of some JSON, or what it is instead of an object. No map is made of them, which are few and known. The result is `READ`, or
/// left as it stands.
struct Whole<const READ: bool>(Result<Members, &'static str>);

/// The last of each name, as in any map.
#[derive(Default)]
struct Members {
    is_version_2: bool,
    id: Option<Value>,
    method: Option<Value>,
    params: Option<Value>,
    result: Option<Json>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Name {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    #[serde(other)]
    Other,
}

impl<'de, const READ: bool> Deserialize<'de> for Whole<READ> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WholeVisitor::<READ>)
    }
}

struct WholeVisitor<const READ: bool>;

impl<'de, const READ: bool> Visitor<'de> for WholeVisitor<READ> {
    type Value = Whole<READ>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Whole<READ>, A::Error> {
        let mut members = Members::default();
        while let Some(name) = map.next_key()? {
            match name {
                Name::Jsonrpc => members.is_version_2 = map.next_value::<Value>()? == "2.0",
                Name::Id => members.id = Some(map.next_value()?),
                Name::Method => members.method = Some(map.next_value()?),
                Name::Params => members.params = Some(map.next_value()?),
                Name::Result if READ => members.result = Some(Json::Read(map.next_value()?)),
                Name::Result => members.result = Some(Json::Unread(map.next_value()?)),
                Name::Error => members.error = Some(map.next_value()?),
                // Also what nobody requests has to be JSON that can be read.
                Name::Other => drop(map.next_value::<Value>()?),
            }
        }
        Ok(Whole(Ok(members)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Whole<READ>, A::Error> {
        while seq.next_element::<Value>()?.is_some() {}
        Ok(Whole(Err("an array")))
    }

    fn visit_unit<E>(self) -> Result<Whole<READ>, E> {
        Ok(Whole(Err("null")))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Whole<READ>, E> {
        Ok(Whole(Err("a boolean")))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Whole<READ>, E> {
        Ok(Whole(Err("a number")))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Whole<READ>, E> {
        Ok(Whole(Err("a number")))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Whole<READ>, E> {
        Ok(Whole(Err("a number")))
    }

    fn visit_str<E>(self, _: &str) -> Result<Whole<READ>, E> {
        Ok(Whole(Err("a string")))
    }
}

fn read(members: Members, id: Id) -> Result<Message, &'static str> {
    if !members.is_version_2 {
        return Err("`jsonrpc` is not \"2.0\"");
    }
    let id_of_response = |id| match id {
        Id::Valid(id) => Some(id),
        Id::Missing | Id::Null => None,
    };
    match (members.method, members.result, members.error) {
        (None, Some(_), Some(_)) => Err("it has both `result` and `error`"),
        (None, Some(result), None) => Ok(Message::Response { id: id_of_response(id), answer: Ok(result) }),
        (None, None, Some(error)) => Ok(Message::Response { id: id_of_response(id), answer: Err(read_error(error)?) }),
        (None, None, None) => Err("`method`, `result` and `error` are all missing"),
        (Some(Value::String(method)), _, _) => match id {
            Id::Missing => Ok(Message::Notification { method, params: members.params }),
            Id::Valid(id) => Ok(Message::Request { id, method, params: members.params }),
            Id::Null => Err("a request with `id: null`"),
        },
        (Some(_), _, _) => Err("`method` is not a string"),
    }
}

enum Id {
    Missing,
    Null,
    Valid(RequestId),
}

pub(crate) fn read_error(error: Value) -> Result<RpcError, &'static str> {
    let Value::Object(mut error) = error else { return Err("`error` is not an object") };
    let code = error.get("code").and_then(Value::as_i64).ok_or("`error.code` is not an integer")?;
    let Some(Value::String(message)) = error.remove("message") else { return Err("`error.message` is not a string") };
    Ok(RpcError { code, message, data: error.remove("data") })
}

/// The bytes of a request, on one line.
pub fn request(id: &RequestId, method: &str, params: Option<&JsonObject>) -> Vec<u8> {
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
struct Outgoing<'a, Params> {
    jsonrpc: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RequestId>,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<Params>,
}

fn write(message: &Outgoing<'_, impl Serialize>) -> Vec<u8> {
    serde_json::to_vec(message).expect("strings, integers and JSON values always serialize")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_found_in_a_line_that_is_not_one() {
        let message = r#"{"jsonrpc": "2.0", "id": 1, "result": {}}"#;
        let utf_16: Vec<u8> = message.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let holds = |bytes: &[u8], id: i64| unreadable_response(bytes).is_some_and(|response| names_id(&response, &RequestId::Number(id)));
        assert!(holds(&utf_16, 1));
        for line in [format!("INFO: {message}"), message.replace('"', "'"), format!("data: {message}")] {
            assert!(holds(line.as_bytes(), 1), "{line}");
            assert!(!holds(line.as_bytes(), 11), "{line}");
        }
        for line in ["", "started", r#"{"level": "error"}"#, r#"sent {"jsonrpc": "2.0", "method": "ping", "id": 1}"#] {
            assert!(!holds(line.as_bytes(), 1), "{line}");
        }
    }

    fn check(text: &str, expected: Result<Message, &str>) {
        let found = parse(text.as_bytes()).map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned), "{text}");
    }

    /// `members` besides `jsonrpc`.
    fn check_message(members: &str, expected: Message) {
        check(&format!(r#"{{"jsonrpc":"2.0",{members}}}"#), Ok(expected));
    }

    fn check_no_message(members: &str, expected: &str) {
        let expected = format!("neither a request, a notification nor a response: {expected}");
        check(&format!(r#"{{"jsonrpc":"2.0",{members}}}"#), Err(&expected));
    }

    #[test]
    fn messages_are_told_apart() {
        let number = |id| Some(RequestId::Number(id));
        check_message(r#""id":1,"result":{}"#, Message::Response { id: number(1), answer: Ok(json!({}).into()) });
        check_message(
            r#""id":"1","error":{"code":-1,"message":"m","data":[1]}"#,
            Message::Response {
                id: Some(RequestId::Text("1".into())),
                answer: Err(RpcError { code: -1, message: "m".into(), data: Some(json!([1])) }),
            },
        );
        check_message(r#""id":null,"result":1"#, Message::Response { id: None, answer: Ok(json!(1).into()) });
        check_message(r#""method":"a","params":[]"#, Message::Notification { method: "a".into(), params: Some(json!([])) });
        check_message(r#""id":7,"method":"a""#, Message::Request { id: RequestId::Number(7), method: "a".into(), params: None });
    }

    #[test]
    fn what_is_no_message_says_why() {
        check("Server ready", Err("not JSON: expected value at line 1 column 1"));
        for (text, kind) in [
            ("[]", "an array"),
            (r#"[{"jsonrpc":"2.0"},[1]]"#, "an array"),
            ("null", "null"),
            ("true", "a boolean"),
            ("1", "a number"),
            ("-1", "a number"),
            ("1.5", "a number"),
            (r#""x""#, "a string"),
            (r#""\n""#, "a string"),
        ] {
            check(text, Err(&format!("a JSON-RPC message has to be an object, found {kind}")));
        }
        check("{} {}", Err("not JSON: trailing characters at line 1 column 4"));
        check_no_message(r#""method":"a","jsonrpc":"1.0""#, "`jsonrpc` is not \"2.0\"");
        check_no_message(r#""method":"a","method":1"#, "`method` is not a string");
        check(r#"{"jsonrpc":"2.0","method":"a","more":"\ud800"}"#, Err("not JSON: unexpected end of hex escape at line 1 column 45"));
        check("\u{feff}{}", Err("starts with a byte order mark"));
        check(r#"{"id":1,"result":{}}"#, Err("neither a request, a notification nor a response: `jsonrpc` is not \"2.0\""));
        check_no_message(r#""id":1"#, "`method`, `result` and `error` are all missing");
        check_no_message(r#""id":1.5,"result":1"#, "`id` is not an integer that fits 64 bits");
        check_no_message(r#""id":1,"result":1,"error":{}"#, "it has both `result` and `error`");
        check_no_message(r#""id":1,"error":"no""#, "`error` is not an object");
        check_no_message(r#""id":null,"method":"a""#, "a request with `id: null`");
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        check(&deep, Err("JSON nested deeper than 127 levels"));
        let deepest = format!("{}{}", "[".repeat(127), "]".repeat(127));
        check(&deepest, Err("a JSON-RPC message has to be an object, found an array"));
        assert_eq!(parse(b"{\"a\":\"\xff\"}").unwrap_err().flaw, Flaw::NotUtf8(6));
    }

    #[test]
    fn a_flawed_answer_tells_whom_it_was_for() {
        let check = |text: &str, expected| assert_eq!(parse(text.as_bytes()).unwrap_err().answers, expected, "{text}");
        check(r#"{"id":1,"result":{}}"#, Some(RequestId::Number(1)));
        check(r#"{"jsonrpc":"2.0","id":1}"#, Some(RequestId::Number(1)));
        check(r#"{"id":1,"method":"a"}"#, None);
        check("{", None);
    }

    #[test]
    fn values_are_counted_but_not_their_text() {
        let many = format!(r#"{{"a":[{}0]}}"#, "0,".repeat(JsonLimits::default().values));
        check(&many, Err("more than 250000 JSON values in one message"));
        let text = format!(r#""method":"a","params":{{"t":"\\\"{}"}}"#, ",".repeat(JsonLimits::default().values * 2));
        let text = format!(r#"{{"jsonrpc":"2.0",{text}}}"#);
        assert!(parse(text.as_bytes()).is_ok());
    }

    #[test]
    fn bounds_may_be_lower() {
        let check = |text: &str, depth, values, expected: Option<Flaw>| {
            let found = parse_within(text.as_bytes(), JsonLimits { depth, values }).err().map(|malformed| malformed.flaw);
            assert_eq!(found, expected, "{text}");
        };
        let message = r#"{"jsonrpc":"2.0","method":"a","params":{"t":["[[[",1]}}"#;
        check(message, 3, 6, None);
        check(message, 2, 6, Some(Flaw::TooDeep(2)));
        check(message, 3, 5, Some(Flaw::TooManyValues(5)));
    }

    #[test]
    fn what_we_write_is_one_line() {
        let params = json!({ "text": "a\nb" }).as_object().cloned().unwrap_or_default();
        let bytes = request(&RequestId::Number(1), "m", Some(&params.into()));
        assert_eq!(String::from_utf8(bytes).unwrap(), r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"text":"a\nb"}}"#);
    }
}
