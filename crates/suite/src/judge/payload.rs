//! What a tool's result amounts to: the value that `expect` matches. Knows tool results, not matchers.

use super::number::has_long_integer;
use serde_json::Value;

/// The value of a response, and its text where it has one.
#[derive(Clone, Debug, PartialEq)]
pub struct Payload {
    pub value: Value,
    /// All text blocks of a tool's result, joined by line feeds.
    pub text: Option<String>,
    pub origin: Origin,
    pub numbers: Numbers,
}

/// Whether the numbers of a value are those that were on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbers {
    Exact,
    /// Integers that do not fit 64 bits may have been among them, and were rounded.
    #[default]
    Rounded,
}

impl Numbers {
    /// Of a value that was read from this text.
    pub fn of(json: &str) -> Self {
        if has_long_integer(json) { Self::Rounded } else { Self::Exact }
    }
}

/// Where [`Payload::value`] comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was JSON on the wire.
    Json,
    /// It is the text, or JSON that stood in the text. A text expectation then also matches the raw text.
    Text,
    /// It is an HTTP response. The names of its `headers` are in lower case, and have no case.
    Http,
}

impl Payload {
    /// From the raw `result` of `tools/call`: `structuredContent` if there is one, else the one text block parsed as JSON if it
    /// parses, else the text. `Null` if there is neither.
    pub fn from_call_result(result: &Value) -> Self {
        let blocks = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let texts: Vec<&str> = blocks
            .iter()
            .filter(|block| block.get("type").and_then(Value::as_str) == Some("text"))
            .filter_map(|block| block.get("text").and_then(Value::as_str))
            .collect();
        let text = (!texts.is_empty()).then(|| texts.join("\n"));
        if let Some(structured) = result.get("structuredContent").filter(|structured| !structured.is_null()) {
            return Self { value: structured.clone(), text, origin: Origin::Json, numbers: Numbers::Rounded };
        }
        let value = match texts.as_slice() {
            [] => Value::Null,
            [only] => serde_json::from_str(only).unwrap_or_else(|_| Value::String((*only).to_owned())),
            [_, _, ..] => text.clone().map_or(Value::Null, Value::String),
        };
        let numbers = text.as_deref().map_or(Numbers::Exact, Numbers::of);
        Self { value, text, origin: Origin::Text, numbers }
    }

    /// A response of anything but a tool: its value as it stands.
    pub fn of(value: Value) -> Self {
        Self { value, text: None, origin: Origin::Json, numbers: Numbers::Rounded }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_payload_is_structured_content_or_json_in_text_or_text() {
        let check = |result: Value, value: Value, text: Option<&str>, origin: Origin| {
            let found = Payload::from_call_result(&result);
            assert_eq!((&found.value, found.text.as_deref(), found.origin), (&value, text, origin), "{result}");
        };
        let block = |text: &str| json!({"type": "text", "text": text});
        check(json!({"content": [block("x")], "structuredContent": {"a": 1}}), json!({"a": 1}), Some("x"), Origin::Json);
        check(json!({"content": [block("x")], "structuredContent": null}), json!("x"), Some("x"), Origin::Text);
        check(json!({"content": [block("{\"a\": 1}")]}), json!({"a": 1}), Some("{\"a\": 1}"), Origin::Text);
        check(json!({"content": [block("123")]}), json!(123), Some("123"), Origin::Text);
        check(json!({"content": [block("1 apple")]}), json!("1 apple"), Some("1 apple"), Origin::Text);
        check(json!({"content": [block("1"), block("2")]}), json!("1\n2"), Some("1\n2"), Origin::Text);
        check(json!({"content": [{"type": "image", "data": ""}, block("1")]}), json!(1), Some("1"), Origin::Text);
        check(json!({"content": [{"type": "image", "data": ""}]}), json!(null), None, Origin::Text);
        check(json!({"content": []}), json!(null), None, Origin::Text);
        check(json!({"content": "no list"}), json!(null), None, Origin::Text);
        check(json!({}), json!(null), None, Origin::Text);
        check(json!(null), json!(null), None, Origin::Text);
    }
}
