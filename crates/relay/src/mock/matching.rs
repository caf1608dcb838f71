//! Which recorded request a request is: by method, name and canonical arguments (RFC 8785). Pure functions over messages.

use mcproof_client::redaction::REDACTED;
use serde_json::{Map, Number, Value, json};

/// JSON pointers into `params` that do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ignored(pub Vec<String>);

/// Members of `params` that a client chooses for each request anew, or that the session says anyway.
const OF_THE_MOMENT: [&str; 3] = ["_meta", "inputResponses", "requestState"];
/// Requests of which one is like the other, whatever their parameters say about the client.
const HANDSHAKE: [&str; 2] = ["initialize", "server/discover"];
/// Pairs of values that are compared at most.
const MOST_COMPARED: usize = 10_000;

/// Whether a request gets the same answer whatever its session has done: the handshake, lists, and what has no answer but "done".
pub(crate) fn is_of_any_session(method: &str) -> bool {
    HANDSHAKE.contains(&method) || method.ends_with("/list") || matches!(method, "ping" | "logging/setLevel")
}

/// Where a request differs from a recorded one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mismatch {
    /// JSON pointer into `params`.
    pub pointer: String,
    /// Missing on one side: `None`.
    pub recorded: Option<Value>,
    pub received: Option<Value>,
    /// How many places differ in all.
    pub places: usize,
}

/// Whether these are params of the modern era.
pub(crate) fn is_modern(params: &Value) -> bool {
    params.get("_meta").and_then(|meta| meta.get("io.modelcontextprotocol/protocolVersion")).is_some()
}

/// The params without what differs from one request to the next.
pub(crate) fn normal(params: &Value) -> Map<String, Value> {
    let mut members = params.as_object().cloned().unwrap_or_default();
    members.retain(|name, value| {
        let is_empty = match name.as_str() {
            // Clients leave them out, or send them empty.
            "arguments" => value.as_object().is_some_and(Map::is_empty),
            "cursor" => value.is_null(),
            _ => false,
        };
        !is_empty && !OF_THE_MOMENT.contains(&name.as_str())
    });
    if let Some(task) = members.get_mut("task") {
        // How long a result is kept has no influence on it.
        *task = json!({});
    }
    members
}

/// Requests with the same key are the same request.
pub(crate) fn key(method: &str, params: &Value, ignored: &Ignored) -> String {
    if HANDSHAKE.contains(&method) {
        return method.to_owned();
    }
    let mut params = Value::Object(normal(params));
    for pointer in &ignored.0 {
        remove(&mut params, pointer);
    }
    let params = exact(params);
    let canonical = serde_json_canonicalizer::to_string(&params).unwrap_or_else(|_| params.to_string());
    format!("{method} {canonical}")
}

/// Integers that RFC 8785 would round to the same double as others, as words.
fn exact(value: Value) -> Value {
    match value {
        Value::Number(number) if !is_exact(&number) => json!({ "integer": number.to_string() }),
        Value::Array(items) => items.into_iter().map(exact).collect(),
        Value::Object(members) => Value::Object(members.into_iter().map(|(name, value)| (name, exact(value))).collect()),
        value => value,
    }
}

/// Whether a number is no integer, or one that no other integer has the double of.
fn is_exact(number: &Number) -> bool {
    const LARGEST: u64 = 1 << 53;
    let size = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
    size.is_none_or(|size| size < LARGEST)
}

/// Whether a recorded request is this one if everything that was redacted in it may be anything.
pub(crate) fn fits_redacted(recorded: &Value, received: &Value, ignored: &Ignored) -> bool {
    holds_redacted(recorded) && difference(recorded, received, ignored).is_none()
}

fn holds_redacted(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(REDACTED),
        Value::Array(items) => items.iter().any(holds_redacted),
        Value::Object(members) => members.values().any(holds_redacted),
        _ => false,
    }
}

/// The first place at which the params differ; `None` if they are the same.
pub(crate) fn difference(recorded: &Value, received: &Value, ignored: &Ignored) -> Option<Mismatch> {
    let (mut recorded, mut received) = (Value::Object(normal(recorded)), Value::Object(normal(received)));
    for pointer in &ignored.0 {
        remove(&mut recorded, pointer);
        remove(&mut received, pointer);
    }
    let mut found = Found { first: None, places: 0, left: MOST_COMPARED };
    compare(Some(&recorded), Some(&received), &mut String::new(), &mut found);
    let places = found.places;
    found.first.map(|first| Mismatch { places, ..first })
}

struct Found {
    first: Option<Mismatch>,
    places: usize,
    left: usize,
}

fn compare(recorded: Option<&Value>, received: Option<&Value>, pointer: &mut String, found: &mut Found) {
    let Some(left) = found.left.checked_sub(1) else { return };
    found.left = left;
    let length = pointer.len();
    let child = |step: &str, recorded, received, pointer: &mut String, found: &mut Found| {
        pointer.push('/');
        pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
        compare(recorded, received, pointer, found);
        pointer.truncate(length);
    };
    match (recorded, received) {
        (Some(Value::Object(recorded)), Some(Value::Object(received))) => {
            for (name, value) in recorded {
                child(name, Some(value), received.get(name), pointer, found);
            }
            for (name, value) in received.iter().filter(|(name, _)| !recorded.contains_key(*name)) {
                child(name, None, Some(value), pointer, found);
            }
        }
        (Some(Value::Array(recorded)), Some(Value::Array(received))) => {
            for index in 0..recorded.len().max(received.len()) {
                child(&index.to_string(), recorded.get(index), received.get(index), pointer, found);
            }
        }
        (Some(Value::String(text)), Some(_)) if text.contains(REDACTED) => {}
        (recorded, received) if is_same(recorded, received) => {}
        (recorded, received) => {
            found.places += 1;
            if found.first.is_none() {
                let (recorded, received) = (recorded.cloned(), received.cloned());
                found.first = Some(Mismatch { pointer: pointer.clone(), recorded, received, places: 0 });
            }
        }
    }
}

/// RFC 8785 writes all numbers as the same double the same way.
fn is_same(left: Option<&Value>, right: Option<&Value>) -> bool {
    match (left, right) {
        (Some(Value::Number(left)), Some(Value::Number(right))) => {
            left == right || left.as_f64() == right.as_f64() && is_exact(left) && is_exact(right)
        }
        (left, right) => left == right,
    }
}

fn remove(value: &mut Value, pointer: &str) {
    let Some((parent, last)) = pointer.rsplit_once('/') else { return };
    let name = last.replace("~1", "/").replace("~0", "~");
    match value.pointer_mut(parent) {
        Some(Value::Object(members)) => drop(members.shift_remove(&name)),
        Some(Value::Array(items)) => {
            if let Some(item) = name.parse::<usize>().ok().and_then(|index| items.get_mut(index)) {
                *item = Value::Null;
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(left: Value, right: Value) {
        let ignored = Ignored::default();
        assert_eq!(key("tools/call", &left, &ignored), key("tools/call", &right, &ignored));
        assert_eq!(difference(&left, &right, &ignored), None, "{left} and {right}");
    }

    fn differs(recorded: Value, received: Value, pointer: &str) {
        let ignored = Ignored::default();
        assert_ne!(key("tools/call", &recorded, &ignored), key("tools/call", &received, &ignored));
        assert_eq!(difference(&recorded, &received, &ignored).unwrap().pointer, pointer);
    }

    #[test]
    fn integers_that_round_to_one_double_differ() {
        let call = |id: Value| json!({ "name": "get", "arguments": { "id": id } });
        differs(call(json!(1_234_567_890_123_456_789_u64)), call(json!(1_234_567_890_123_456_788_u64)), "/arguments/id");
        differs(call(json!(9_007_199_254_740_993_u64)), call(json!(9_007_199_254_740_992_u64)), "/arguments/id");
        differs(call(json!([-9_007_199_254_740_993_i64])), call(json!([-9_007_199_254_740_992_i64])), "/arguments/id/0");
        same(call(json!(9_007_199_254_740_993_u64)), call(json!(9_007_199_254_740_993_u64)));
    }

    #[test]
    fn order_numbers_and_what_is_of_the_moment_do_not_count() {
        same(json!({ "name": "a", "arguments": { "x": 1, "y": 2 } }), json!({ "arguments": { "y": 2.0, "x": 1 }, "name": "a" }));
        same(json!({ "name": "a", "_meta": { "progressToken": 1 } }), json!({ "name": "a", "arguments": {} }));
        same(json!({}), json!({ "cursor": null }));
        same(json!({ "task": { "ttl": 5 } }), json!({ "task": { "ttl": 9 } }));
    }

    #[test]
    fn the_pointer_names_the_first_difference() {
        differs(json!({ "arguments": { "q": "a" } }), json!({ "arguments": { "q": "b" } }), "/arguments/q");
        differs(json!({ "arguments": { "q": [1, 2] } }), json!({ "arguments": { "q": [1] } }), "/arguments/q/1");
        differs(json!({ "arguments": { "a/b": 1 } }), json!({ "arguments": { "a/b": 2 } }), "/arguments/a~1b");
        differs(json!({ "name": "a" }), json!({ "name": "b" }), "/name");
        differs(json!({ "arguments": { "q": 1 } }), json!({ "arguments": { "q": "1" } }), "/arguments/q");
    }

    #[test]
    fn an_ignored_pointer_does_not_count() {
        let ignored = Ignored(vec!["/arguments/now".to_owned()]);
        let (left, right) = (json!({ "arguments": { "now": 1, "q": 2 } }), json!({ "arguments": { "now": 3, "q": 2 } }));
        assert_eq!(key("m", &left, &ignored), key("m", &right, &ignored));
        assert_eq!(difference(&left, &right, &ignored), None);
    }

    #[test]
    fn what_was_redacted_may_be_anything() {
        let ignored = Ignored::default();
        let recorded = json!({ "arguments": { "token": "[redacted]", "q": 1 } });
        assert!(fits_redacted(&recorded, &json!({ "arguments": { "token": "s3cret", "q": 1 } }), &ignored));
        assert!(!fits_redacted(&recorded, &json!({ "arguments": { "token": "s3cret", "q": 2 } }), &ignored));
        assert!(!fits_redacted(&json!({ "q": 1 }), &json!({ "q": 1 }), &ignored), "nothing was redacted");
    }
}
