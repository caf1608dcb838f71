//! Values that an expectation accepts, for a server that is made of a suite: guesses, of which only those are given that the expectation
//! accepts when it is compared with them. Knows matchers, no servers.

use super::matcher::{Matcher, Order, Test, TypeName};
use super::payload::{Numbers, Payload};
use crate::interpolate;
use mcproof_analysis::arguments::minimal;
use serde_json::{Map, Value, json};

/// Guesses for one value that are looked at.
const MOST: usize = 24;

/// The longest list or text that is made because of its length.
const LONGEST: u64 = 1_000;

impl Matcher {
    /// A value that fits, if one is found.
    pub(crate) fn example(&self, scope: &Map<String, Value>) -> Option<Value> {
        self.guesses(scope).into_iter().take(MOST).find(|guess| self.accepts(guess, scope))
    }

    /// The same inside another value, where what has several parts is rather a list than a text.
    fn example_inside(&self, scope: &Map<String, Value>) -> Option<Value> {
        let mut guesses = self.guesses(scope);
        guesses.sort_by_key(|guess| guess.is_string() && self.names_parts());
        guesses.into_iter().take(MOST).find(|guess| self.accepts(guess, scope))
    }

    fn names_parts(&self) -> bool {
        match &self.test {
            Test::ContainsAll(_) => true,
            Test::Every(tests) => tests.iter().any(Self::names_parts),
            _ => false,
        }
    }

    /// Also as the text of a result.
    fn accepts(&self, value: &Value, scope: &Map<String, Value>) -> bool {
        let fits = |payload: Payload| self.compare(&Payload { numbers: Numbers::Exact, ..payload }, scope).is_empty();
        let as_text = |text: &str| Payload::from_call_result(&json!({ "content": [{ "type": "text", "text": text }] }));
        fits(Payload::of(value.clone())) || value.as_str().is_some_and(|text| fits(as_text(text)))
    }

    fn guesses(&self, scope: &Map<String, Value>) -> Vec<Value> {
        let each = |tests: &[Self]| tests.iter().map(|test| test.example(scope)).collect::<Option<Vec<Value>>>();
        match &self.test {
            Test::Equals(value) => interpolate(value, scope).into_iter().collect(),
            Test::Elements(elements) => each(elements).map(Value::Array).into_iter().collect(),
            Test::Members { members, .. } => {
                let present = members.iter().filter(|(_, test)| !matches!(test.test, Test::Absent));
                let made: Option<Map<String, Value>> =
                    present.map(|(name, test)| Some((name.clone(), test.example_inside(scope)?))).collect();
                made.map(Value::Object).into_iter().collect()
            }
            Test::Every(tests) => every(tests, scope),
            Test::Regex(pattern) => pattern.example(scope).map(Value::String).into_iter().collect(),
            Test::Order { order, bound } => interpolate(bound, scope).map_or_else(|_| Vec::new(), |bound| beside(*order, &bound)),
            Test::Length(length) => length.example(scope).and_then(|length| length.as_u64()).map_or_else(Vec::new, of_length),
            Test::Type(types) => types.iter().flat_map(of_type).collect(),
            Test::Any => anything(),
            Test::Absent => Vec::new(),
            Test::All(test) => test.example(scope).map(|item| json!([item])).into_iter().chain([json!([])]).collect(),
            Test::Contains(test) => {
                let part = test.example(scope);
                let text = part.clone().filter(Value::is_string);
                text.into_iter().chain(part.map(|part| json!([part]))).collect()
            }
            Test::ContainsAll(tests) => each(tests).map_or_else(Vec::new, |parts| {
                let texts: Option<Vec<&str>> = parts.iter().map(Value::as_str).collect();
                let joined = texts.map(|texts| Value::String(texts.join(" ")));
                joined.into_iter().chain([Value::Array(parts.clone())]).collect()
            }),
            Test::Json(test) => test.example(scope).map(|value| Value::String(value.to_string())).into_iter().collect(),
            Test::Not(_) => anything(),
            Test::OneOf(tests) => tests.iter().filter_map(|test| test.example(scope)).collect(),
            Test::CloseTo { value, .. } => vec![Value::Number(value.clone())],
            Test::Uuid => vec![json!("3f2c8a1e-5b74-4d09-9c61-7e8f0a2b4c6d")],
            Test::Datetime => vec![json!("2026-01-02T03:04:05Z")],
            Test::Schema { schema, .. } => of_schema(schema).into_iter().collect(),
            Test::Text(pattern) => pattern.example(scope).map(Value::String).into_iter().collect(),
        }
    }
}

/// What one part asks for may be what the others ask for as well; objects are put together.
fn every(tests: &[Matcher], scope: &Map<String, Value>) -> Vec<Value> {
    let mut guesses: Vec<Value> = tests.iter().flat_map(|test| test.guesses(scope)).collect();
    let objects = guesses.iter().filter_map(Value::as_object);
    let together: Map<String, Value> = objects.flatten().map(|(name, value)| (name.clone(), value.clone())).collect();
    if !together.is_empty() {
        guesses.insert(0, Value::Object(together));
    }
    let lengths =
        tests.iter().filter_map(|test| if let Test::Length(length) = &test.test { length.example(scope)?.as_u64() } else { None });
    let filled: Vec<Value> = lengths.flat_map(|length| guesses.iter().filter_map(move |guess| filled(guess, length))).collect();
    filled.into_iter().chain(guesses).collect()
}

/// A text or list with more in it, so that it has this length.
fn filled(value: &Value, length: u64) -> Option<Value> {
    let length = usize::try_from(length.min(LONGEST)).ok()?;
    match value {
        Value::String(text) if !text.is_empty() => {
            let missing = length.checked_sub(text.chars().count())?;
            Some(Value::String(format!("{text}{}", ".".repeat(missing))))
        }
        Value::Array(items) => {
            let mut items = items.clone();
            let last = items.last()?.clone();
            items.resize(length.max(items.len()), last);
            Some(Value::Array(items))
        }
        _ => None,
    }
}

/// Values on the right side of a bound.
fn beside(order: Order, bound: &Value) -> Vec<Value> {
    let mut values = vec![bound.clone()];
    if let Some(number) = bound.as_i64() {
        let next = if matches!(order, Order::Above | Order::AtLeast) { number.checked_add(1) } else { number.checked_sub(1) };
        values.extend(next.map(Value::from));
    }
    if let Some(number) = bound.as_f64().filter(|_| bound.is_number()) {
        let steps = if matches!(order, Order::Above | Order::AtLeast) { [0.5, 1.0] } else { [-0.5, -1.0] };
        values.extend(steps.iter().map(|step| json!(number + step)));
    }
    if let Some(text) = bound.as_str() {
        values.extend([json!(format!("{text}~")), json!("")]);
    }
    values
}

fn of_length(length: u64) -> Vec<Value> {
    let Some(length) = usize::try_from(length.min(LONGEST)).ok().filter(|_| length <= LONGEST) else { return Vec::new() };
    let object = (0..length).map(|number| (format!("key{number}"), json!("text"))).collect();
    vec![Value::Array(vec![json!("text"); length]), Value::String("x".repeat(length)), Value::Object(object)]
}

fn of_type(name: &TypeName) -> Vec<Value> {
    match name {
        TypeName::String => vec![json!("text"), json!("")],
        TypeName::Number | TypeName::Integer => vec![json!(1), json!(0)],
        TypeName::Boolean => vec![json!(true), json!(false)],
        TypeName::Array => vec![json!([]), json!(["text"])],
        TypeName::Object => vec![json!({}), json!({ "key": "text" })],
        TypeName::Null => vec![Value::Null],
    }
}

fn anything() -> Vec<Value> {
    vec![json!("text"), json!(1), json!(true), json!({}), json!([]), json!(0), json!(""), Value::Null]
}

/// A value that a JSON Schema accepts.
fn of_schema(schema: &Value) -> Option<Value> {
    let around = json!({ "type": "object", "required": ["value"], "properties": { "value": schema } });
    minimal(&around)?.get_mut("value").map(Value::take)
}

/// A text that a regular expression finds something in.
pub(super) fn of_pattern(pattern: &str) -> Option<String> {
    let made = of_schema(&json!({ "type": "string", "pattern": pattern }))?;
    made.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::super::Subject;
    use super::*;
    use crate::document::Node;
    use crate::source::{Source, Span};

    #[test]
    fn an_example_is_what_the_expectation_accepts() {
        let scope = json!({ "id": "ORD-1" }).as_object().cloned().unwrap();
        let example = |expectation: Value| {
            let (node, mut mistakes) = (Node::from_value(&expectation, Span { line: 1, column: 1, ..Span::default() }), Vec::new());
            let matcher = Matcher::compile(&node, Subject::Payload, &Source::new("f", "{}"), &mut mistakes).unwrap();
            let made = matcher.example(&scope);
            assert!(made.iter().all(|made| matcher.accepts(made, &scope)), "{expectation}");
            made
        };
        for (expectation, expected) in [
            (json!({ "a": 1, "b": { "c": "${id}" }, "d": { "$absent": true } }), json!({ "a": 1, "b": { "c": "ORD-1" } })),
            (json!({ "n": { "$gt": 3, "$lt": 5 } }), json!({ "n": 4 })),
            (json!([{ "$type": "string" }, { "$uuid": true }]), json!(["text", "3f2c8a1e-5b74-4d09-9c61-7e8f0a2b4c6d"])),
            (json!({ "$len": 2 }), json!(["text", "text"])),
            (json!({ "$contains": "tea" }), json!("tea")),
            (json!({ "required": { "$contains_all": ["a", "b"] } }), json!({ "required": ["a", "b"] })),
            (json!({ "$contains": "tea", "$len": 6 }), json!("tea...")),
            (json!({ "l": { "$contains": 5, "$len": 3 } }), json!({ "l": [5, 5, 5] })),
            (json!({ "$type": "array", "$not": { "$len": 0 } }), json!(["text"])),
            (json!({ "$text": "abc" }), json!("abc")),
            (json!({ "$schema": { "enum": [7] } }), json!(7)),
        ] {
            assert_eq!(example(expectation.clone()), Some(expected), "{expectation}");
        }
        assert!(example(json!({ "$regex": "^ORD-\\d{3}$" })).is_some());
        assert_eq!(example(json!({ "$gt": 3, "$lt": 3 })), None);
    }
}
