//! What a schema tells people and models, and the defaults in it. Knows where schemas stand inside of schemas, not what they
//! accept.

use super::document::below;
use super::formats;
use super::wording::shown;
use super::{ChangeLevel, SchemaChange, Use};
use serde_json::{Map, Value};

/// Schemas inside each other that are looked at.
const DEEPEST: usize = 64;

/// Keywords whose value is a schema, a list of schemas, or schemas by name.
const SCHEMAS: [&str; 12] = [
    "items",
    "additionalProperties",
    "additionalItems",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contentSchema",
];
const LISTS: [&str; 5] = ["anyOf", "oneOf", "allOf", "prefixItems", "items"];
const MAPS: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Adds what changed in schemas that stand at the same place on both sides.
pub(super) fn compare(old: &Value, new: &Value, usage: Use, changes: &mut Vec<SchemaChange>) {
    walk(old, new, String::new(), usage, DEEPEST, changes);
}

fn walk(old: &Value, new: &Value, pointer: String, usage: Use, depth: usize, changes: &mut Vec<SchemaChange>) {
    let (Some(before), Some(after), Some(depth)) = (old.as_object(), new.as_object(), depth.checked_sub(1)) else { return };
    texts(before, after, &pointer, usage, changes);
    for keyword in SCHEMAS {
        if let (Some(old), Some(new)) = (before.get(keyword), after.get(keyword)) {
            walk(old, new, below(&pointer, keyword), usage, depth, changes);
        }
    }
    for keyword in LISTS {
        let lists = (before.get(keyword).and_then(Value::as_array), after.get(keyword).and_then(Value::as_array));
        let (Some(old), Some(new)) = lists else { continue };
        for (index, (old, new)) in old.iter().zip(new).enumerate() {
            walk(old, new, below(&below(&pointer, keyword), &index.to_string()), usage, depth, changes);
        }
    }
    for keyword in MAPS {
        let named = before.get(keyword).and_then(Value::as_object).into_iter().flatten();
        for (name, old) in named {
            if let Some(new) = after.get(keyword).and_then(|named| named.get(name)) {
                walk(old, new, below(&below(&pointer, keyword), name), usage, depth, changes);
            }
        }
    }
}

fn texts(before: &Map<String, Value>, after: &Map<String, Value>, pointer: &str, usage: Use, changes: &mut Vec<SchemaChange>) {
    let mut note = |keyword: &str, level: ChangeLevel, code: &str, reason: String| {
        let (old, new) = (before.get(keyword).cloned(), after.get(keyword).cloned());
        changes.push(SchemaChange { level, code: code.into(), pointer: below(pointer, keyword), reason, old, new });
    };
    let differs = |keyword: &str| before.get(keyword) != after.get(keyword);
    if differs("default") {
        let what = match (before.get("default"), after.get("default")) {
            (None, Some(new)) => format!("the default is {} now; there was none before", shown(new)),
            (Some(old), None) => format!("there is no default any more; it was {}", shown(old)),
            (old, new) => {
                format!("the default is {} instead of {}", new.map(shown).unwrap_or_default(), old.map(shown).unwrap_or_default())
            }
        };
        let level = if usage == Use::Arguments { ChangeLevel::Compatible } else { ChangeLevel::Cosmetic };
        let effect = if usage == Use::Arguments { ", which is what callers get that leave it out" } else { "" };
        note("default", level, "default-changed", format!("{what}{effect}"));
    }
    if differs("description") {
        note("description", ChangeLevel::Cosmetic, "description-changed", "the description changed".into());
    }
    if differs("title") {
        note("title", ChangeLevel::Cosmetic, "title-changed", "the title changed".into());
    }
    for keyword in ["examples", "example", "deprecated", "readOnly", "writeOnly", "$comment", "contentEncoding", "contentMediaType"] {
        if differs(keyword) {
            note(keyword, ChangeLevel::Cosmetic, "annotation-changed", format!("`{keyword}` changed"));
        }
    }
    if differs("$schema") {
        note("$schema", ChangeLevel::Cosmetic, "schema-dialect-changed", "the schema names another dialect of JSON Schema".into());
    }
    let format = |keywords: &Map<String, Value>| keywords.get("format").and_then(Value::as_str).map(str::to_owned);
    if differs("format") && [format(before), format(after)].into_iter().flatten().any(|format| !formats::is_known(&format)) {
        note("format", ChangeLevel::Cosmetic, "format-name-changed", "a `format` that JSON Schema does not define changed".into());
    }
}
