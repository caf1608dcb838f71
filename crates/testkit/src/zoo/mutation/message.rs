//! Changes of a message as JSON: a member is deleted, made null, given another type or another value, or said twice.

use super::Mutation;
use serde_json::{Map, Value, json};

/// Changes of a member.
pub(super) const OF_MEMBERS: [&str; 5] = ["delete", "null", "retype", "change", "twice"];
/// Changes of a message as a whole.
pub(super) const OF_MESSAGES: [&str; 2] = ["drop", "double"];

/// Whether this mutation changes the value of such a message.
pub(super) fn changes(mutation: &Mutation, message: &Value) -> bool {
    match mutation.operation.as_str() {
        "drop" | "double" => true,
        "delete" | "null" | "retype" => message.pointer(&mutation.place).is_some(),
        // An empty list and an empty object stay what they are.
        "change" => message.pointer(&mutation.place).is_some_and(|value| changed(value) != *value),
        _ => false,
    }
}

/// Whether this mutation says a member of such a message twice.
pub(super) fn repeats(mutation: &Mutation, message: &Value) -> bool {
    mutation.operation == "twice" && message.pointer(&mutation.place).is_some()
}

pub(super) fn edit(mutation: &Mutation, message: &mut Value) {
    if mutation.operation == "delete" {
        return delete(message, &mutation.place);
    }
    if let Some(value) = message.pointer_mut(&mutation.place) {
        *value = match mutation.operation.as_str() {
            "null" => Value::Null,
            "retype" => retyped(value),
            _ => changed(value),
        };
    }
}

fn delete(message: &mut Value, pointer: &str) {
    let Some((parent, last)) = pointer.rsplit_once('/') else { return };
    match message.pointer_mut(parent) {
        Some(Value::Object(members)) => drop(members.shift_remove(&unescaped(last))),
        Some(Value::Array(items)) => {
            if let Some(index) = last.parse::<usize>().ok().filter(|index| *index < items.len()) {
                items.remove(index);
            }
        }
        _ => {}
    }
}

fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// A value of another type, as near to it as can be: what a careless serializer would make of it.
pub(super) fn retyped(value: &Value) -> Value {
    match value {
        Value::Null => json!("null"),
        Value::Bool(flag) => json!(flag.to_string()),
        Value::Number(number) => json!(number.to_string()),
        Value::String(_) => json!(7),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, item)| (index.to_string(), item.clone())).collect::<Map<_, _>>().into()
        }
        Value::Object(_) => json!([]),
    }
}

/// Another value of the same type.
pub(super) fn changed(value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::Bool(flag) => json!(!flag),
        Value::Number(number) => {
            number.as_i64().map_or_else(|| json!(number.as_f64().unwrap_or_default() + 0.5), |number| json!(number + 1))
        }
        Value::String(text) => json!(format!("{text}x")),
        Value::Array(_) => json!([]),
        Value::Object(_) => json!({}),
    }
}

/// The text of a message in which the member at that place stands twice, first with another value.
pub(super) fn with_repetition(message: &Value, pointer: &str) -> String {
    let mut text = String::new();
    write(message, "", pointer, &mut text);
    text
}

fn write(value: &Value, here: &str, pointer: &str, text: &mut String) {
    match value {
        Value::Object(members) => {
            text.push('{');
            for (index, (name, member)) in members.iter().enumerate() {
                let place = format!("{here}/{}", name.replace('~', "~0").replace('/', "~1"));
                text.push_str(if index > 0 { "," } else { "" });
                if place == pointer {
                    text.push_str(&format!("{}:{},", json!(name), changed(member)));
                }
                text.push_str(&format!("{}:", json!(name)));
                write(member, &place, pointer, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index > 0 { "," } else { "" });
                write(item, &format!("{here}/{index}"), pointer, text);
            }
            text.push(']');
        }
        plain => text.push_str(&plain.to_string()),
    }
}
