//! Flaws in the schema of a tool, independent of any value. Knows JSON Schema.

use jsonschema::error::ValidationErrorKind;
use mcproof_analysis::json_schema::Schema;
use mcproof_analysis::wording::excerpt;
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashSet};

/// Keywords whose value is data without schemas.
const DATA: [&str; 5] = ["default", "const", "enum", "examples", "example"];
/// Keywords that contain schemas by name.
const NAMED: [&str; 6] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];
/// The maximum nesting of schemas.
const DEEPEST: usize = 64;
/// The maximum number of names and schemas in one search.
const MOST_STEPS: usize = 200_000;
/// The maximum number of values in the schemas that defaults are validated against, each together with all definitions.
const MOST_VALUES: usize = 500_000;
/// The maximum nesting of schemas for one value.
const MOST_SCHEMAS: usize = 500;

/// Why a schema is not valid in its own dialect, which is 2020-12 if it names none. Unknown dialects are not judged.
pub(super) fn invalid_schema(schema: &Value) -> Option<String> {
    let error = match jsonschema::meta::validate(schema) {
        Ok(()) => return dangling(schema).or_else(|| broken_pattern(schema)),
        Err(error) => error,
    };
    match error.kind() {
        // Whether a pattern is valid depends on the regex engine.
        ValidationErrorKind::Referencing(_) | ValidationErrorKind::Format { .. } => None,
        _ => {
            let at = error.instance_path().to_string();
            let place = if at.is_empty() { String::new() } else { format!(" at `{at}`") };
            Some(format!("not a valid schema{place}: {}", excerpt(error.to_string())))
        }
    }
}

/// A reference within the schema whose target does not exist.
fn dangling(schema: &Value) -> Option<String> {
    let mut names = BTreeSet::new();
    let mut references = Vec::new();
    let mut has_inner_ids = false;
    walk(schema, 0, &mut |object, depth| {
        has_inner_ids |= depth > 0 && (object.contains_key("$id") || object.contains_key("id"));
        names.extend(["$anchor", "$dynamicAnchor"].iter().filter_map(|keyword| object.get(*keyword)?.as_str().map(str::to_owned)));
        references.extend(object.get("$ref").and_then(Value::as_str).map(str::to_owned));
    });
    let leads_nowhere = |reference: &&String| match reference.strip_prefix('#') {
        Some("") | None => false,
        Some(pointer) if pointer.starts_with('/') => schema.pointer(&decoded(pointer)).is_none(),
        Some(name) => !names.contains(name),
    };
    // Inside a schema with an `$id`, references are resolved from there.
    let found = if has_inner_ids { None } else { references.iter().find(leads_nowhere) };
    found.map(|reference| format!("`$ref` \"{}\" has no target", excerpt(reference)))
}

/// A pattern that no regex engine accepts. Patterns that only some engines refuse are not judged.
fn broken_pattern(schema: &Value) -> Option<String> {
    let mut found = None;
    walk(schema, 0, &mut |object, _| {
        let pattern = object.get("pattern").and_then(Value::as_str).filter(|pattern| is_unbalanced(pattern));
        if let (None, Some(pattern)) = (&found, pattern) {
            found = Some(format!("the `pattern` \"{}\" is not a valid regular expression", excerpt(pattern)));
        }
    });
    found
}

/// Whether a group or a class is not closed, a group is closed that was not opened, or nothing is repeated or escaped.
fn is_unbalanced(pattern: &str) -> bool {
    let (mut open, mut in_class, mut at_start) = (0_usize, false, true);
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        let was_start = std::mem::replace(&mut at_start, false);
        match character {
            '\\' => match characters.next() {
                Some(_) => {}
                None => return true,
            },
            ']' => in_class = false,
            _ if in_class => {}
            '[' => in_class = true,
            '(' => {
                open += 1;
                at_start = true;
            }
            ')' => match open.checked_sub(1) {
                Some(left) => open = left,
                None => return true,
            },
            '|' => at_start = true,
            // After `(`, a question mark starts the type of the group.
            '*' | '+' if was_start => return true,
            _ => {}
        }
    }
    open > 0 || in_class
}

fn decoded(pointer: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = pointer.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = tail.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// References to targets outside the schema.
pub(super) fn foreign_references(schema: &Value) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    let mut found = BTreeSet::new();
    walk(schema, 0, &mut |object, _| {
        ids.extend(["$id", "id"].iter().filter_map(|keyword| object.get(*keyword)?.as_str().map(str::to_owned)));
        let references = ["$ref", "$dynamicRef"].into_iter().filter_map(|keyword| object.get(keyword)?.as_str());
        found.extend(references.filter(|reference| !reference.starts_with('#')).map(str::to_owned));
    });
    // A bundled schema contains what it refers to; its relative references are resolved against ids.
    let is_bundled = |reference: &String| {
        let document = reference.split('#').next().unwrap_or_default();
        ids.iter().any(|id| id == document || (!document.contains("://") && id.ends_with(document)))
    };
    found.into_iter().filter(|reference| !is_bundled(reference)).collect()
}

/// Where an `enum` has no values: ` in NAME` for each property, or nothing for what is elsewhere.
pub(super) fn empty_enums(schema: &Value) -> Vec<String> {
    let has_empty = |schema: &Value| {
        let mut found = false;
        walk(schema, 0, &mut |object, _| found |= object.get("enum").and_then(Value::as_array).is_some_and(Vec::is_empty));
        found
    };
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let named: Vec<String> = properties.filter(|(_, inner)| has_empty(inner)).map(|(name, _)| format!(" in `{}`", excerpt(name))).collect();
    if named.is_empty() && has_empty(schema) { vec![String::new()] } else { named }
}

/// Names in `required` that are not among the properties, with the place of the schema.
pub(super) fn undeclared(schema: &Value) -> Vec<String> {
    let mut search = Search { root: schema, left: MOST_STEPS, found: Vec::new() };
    search.required_in(schema, &BTreeSet::new(), "", 0);
    search.found
}

/// A search for names that are not among the properties.
struct Search<'a> {
    root: &'a Value,
    /// The remaining steps: definitions may be referenced repeatedly.
    left: usize,
    found: Vec<String>,
}

/// Whether properties other than the declared ones are allowed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Openness {
    Closed,
    Open,
}

impl<'a> Search<'a> {
    /// `known` are the properties that schemas around this one declare for the same value.
    fn required_in(&mut self, schema: &'a Value, known: &BTreeSet<&'a str>, place: &str, depth: usize) {
        let Some(object) = schema.as_object() else { return };
        if depth > DEEPEST {
            return;
        }
        let mut declared = known.clone();
        if self.declare(object, &mut declared, &mut HashSet::new()) == Openness::Open || !self.may_step(known.len()) {
            return;
        }
        for name in object.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if !declared.contains(name) {
                self.found.push(if place.is_empty() { format!("`{name}`") } else { format!("`{name}` in `{place}`") });
            }
        }
        for (name, inner) in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
            self.required_in(inner, &BTreeSet::new(), &place, depth + 1);
        }
        if let Some(items) = object.get("items") {
            self.required_in(items, &BTreeSet::new(), &format!("{place}[]"), depth + 1);
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for part in object.get(keyword).and_then(Value::as_array).into_iter().flatten() {
                self.required_in(part, &declared, place, depth + 1);
            }
        }
    }

    /// Adds the properties that a schema and its references declare. Skips schemas that were already `seen`.
    fn declare(
        &mut self,
        object: &'a Map<String, Value>,
        declared: &mut BTreeSet<&'a str>,
        seen: &mut HashSet<*const Map<String, Value>>,
    ) -> Openness {
        if !seen.insert(object) {
            return Openness::Closed;
        }
        let properties = object.get("properties").and_then(Value::as_object);
        if seen.len() > MOST_SCHEMAS || !self.may_step(1 + properties.map_or(0, Map::len)) {
            return Openness::Open;
        }
        declared.extend(properties.into_iter().flatten().map(|(name, _)| name.as_str()));
        // A map from any name to a type: its required names need no declaration.
        let is_map = object.contains_key("patternProperties") || object.get("additionalProperties").is_some_and(Value::is_object);
        let mut openness = if is_map { Openness::Open } else { Openness::Closed };
        let referred = object.get("$ref").map(|reference| {
            let pointer = reference.as_str().and_then(|reference| reference.strip_prefix('#'));
            pointer.and_then(|pointer| self.root.pointer(&decoded(pointer))).and_then(Value::as_object)
        });
        let lists = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|keyword| object.get(keyword)?.as_array()).flatten();
        let branches = ["if", "then", "else"].into_iter().filter_map(|keyword| object.get(keyword));
        let parts = lists.chain(branches).filter_map(Value::as_object).map(Some);
        for part in parts.chain(referred) {
            let inner = part.map_or(Openness::Open, |part| self.declare(part, declared, seen));
            if inner == Openness::Open {
                openness = Openness::Open;
            }
        }
        openness
    }

    fn may_step(&mut self, steps: usize) -> bool {
        let left = self.left.checked_sub(steps);
        self.left = left.unwrap_or(0);
        left.is_some()
    }
}

/// Defaults that are not valid in their own schema: the place, the value.
pub(super) fn unfit_defaults(schema: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    defaults_in(schema, schema, "", 0, &mut { MOST_VALUES }, &mut found);
    found
}

fn defaults_in(root: &Value, schema: &Value, place: &str, depth: usize, left: &mut usize, found: &mut Vec<(String, String)>) {
    let Some(object) = schema.as_object().filter(|_| depth <= DEEPEST) else { return };
    if let Some(default) = object.get("default").filter(|_| !place.is_empty() && *left > 0) {
        // References are resolved from the root.
        let mut alone = object.clone();
        for keyword in ["$schema", "$defs", "definitions"] {
            if let Some(value) = root.get(keyword) {
                alone.insert(keyword.to_owned(), value.clone());
            }
        }
        let alone = Value::Object(alone);
        *left = left.saturating_sub(values_in(&alone));
        if Schema::of(&alone).is_ok_and(|schema| schema.is_valid(default) == Ok(false)) {
            found.push((place.to_owned(), excerpt(default.to_string())));
        }
    }
    for (name, inner) in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
        defaults_in(root, inner, &place, depth + 1, left, found);
    }
}

fn values_in(value: &Value) -> usize {
    1 + match value {
        Value::Object(members) => members.values().map(values_in).sum(),
        Value::Array(items) => items.iter().map(values_in).sum(),
        _ => 0,
    }
}

/// Every schema in a schema, itself first.
fn walk(schema: &Value, depth: usize, visit: &mut impl FnMut(&Map<String, Value>, usize)) {
    if depth > DEEPEST {
        return;
    }
    match schema {
        Value::Object(object) => {
            visit(object, depth);
            for (keyword, value) in object {
                match value {
                    _ if DATA.contains(&keyword.as_str()) => {}
                    Value::Object(named) if NAMED.contains(&keyword.as_str()) => {
                        named.values().for_each(|inner| walk(inner, depth + 1, visit))
                    }
                    _ => walk(value, depth + 1, visit),
                }
            }
        }
        Value::Array(parts) => parts.iter().for_each(|part| walk(part, depth + 1, visit)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn invalid_schemas_are_distinguished_from_unknown_dialects() {
        let check = |schema: Value, expected: &str| {
            let found = invalid_schema(&schema).unwrap_or_default();
            assert!(found.starts_with(expected) && found.is_empty() == expected.is_empty(), "{schema}: {found:?}");
        };
        check(json!({ "type": "object" }), "");
        check(json!({ "type": "objct" }), "not a valid schema at `/type`");
        check(json!({ "properties": { "a": { "type": "strin" } } }), "not a valid schema at `/properties/a/type`");
        check(json!({ "required": "a" }), "not a valid schema at `/required`");
        check(json!({ "$schema": "https://example.com/own", "required": "a" }), "");
        check(json!({ "$schema": "http://json-schema.org/draft-07/schema#", "required": [1] }), "not a valid schema at `/required/0`");
        check(json!({ "$schema": "http://json-schema.org/draft-07/schema#", "items": [{}] }), "");
        check(json!({ "properties": { "a": { "pattern": "(?<=x)[^]\\p{L}" } } }), "");
        check(json!({ "properties": { "a": { "pattern": "[a-z" } } }), "the `pattern` \"[a-z\" is not a valid regular");
        check(json!({ "properties": { "a": { "pattern": "(a|*b)" } } }), "the `pattern`");
        check(json!({ "properties": { "a": { "pattern": "a)" } } }), "the `pattern`");
        check(json!({ "properties": { "a": { "pattern": "^(?:\\(|[(*]+)\\]*?$" } } }), "");
        check(json!({ "properties": { "a": { "$ref": "#/$defs/none" } } }), "`$ref` \"#/$defs/none\" has no target");
        check(json!({ "properties": { "a": { "$ref": "#/$defs/a%20b~1c" } }, "$defs": { "a b/c": {} } }), "");
        check(json!({ "properties": { "a": { "$ref": "#here" }, "b": { "$anchor": "here" } } }), "");
        check(json!({ "properties": { "$ref": { "type": "string" } }, "default": { "$ref": "#/none" } }), "");
    }

    #[test]
    fn enums_without_values_are_found() {
        let check = |schema: Value, expected: &[&str]| assert_eq!(empty_enums(&schema), expected, "{schema}");
        check(json!({ "properties": { "a": { "enum": ["x"] }, "enum": { "type": "array" } } }), &[]);
        check(json!({ "properties": { "a": { "enum": [] }, "b": { "items": { "enum": [] } } } }), &[" in `a`", " in `b`"]);
        check(json!({ "$defs": { "a": { "enum": [] } } }), &[""]);
        check(json!({ "properties": { "a": { "default": { "enum": [] } } } }), &[]);
    }

    #[test]
    fn references_that_lead_out_are_found() {
        let check = |schema: Value, expected: &[&str]| {
            assert_eq!(foreign_references(&schema).into_iter().collect::<Vec<_>>(), expected, "{schema}");
        };
        check(json!({ "$ref": "#/$defs/a" }), &[]);
        check(json!({ "properties": { "a": { "$ref": "https://example.com/a.json" } } }), &["https://example.com/a.json"]);
        check(json!({ "allOf": [{ "$ref": "other.json#/a" }] }), &["other.json#/a"]);
        check(json!({ "$ref": "a.json", "$defs": { "a": { "$id": "https://example.com/a.json" } } }), &[]);
        check(json!({ "examples": [{ "$ref": "https://example.com" }] }), &[]);
    }

    #[test]
    fn what_is_required_has_to_be_declared() {
        let check = |schema: Value, expected: &[&str]| assert_eq!(undeclared(&schema), expected, "{schema}");
        check(json!({ "properties": { "a": {} }, "required": ["a"] }), &[]);
        check(json!({ "properties": { "a": {} }, "required": ["b"] }), &["`b`"]);
        check(json!({ "required": ["b"] }), &["`b`"]);
        check(json!({ "required": ["b"], "additionalProperties": { "type": "string" } }), &[]);
        check(json!({ "required": ["b"], "allOf": [{ "properties": { "b": {} } }] }), &[]);
        check(json!({ "required": ["b"], "$ref": "#/$defs/x", "$defs": { "x": { "properties": { "b": {} } } } }), &[]);
        check(json!({ "properties": { "a": {}, "b": {} }, "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] }), &[]);
        check(json!({ "properties": { "o": { "properties": {}, "required": ["x"] } } }), &["`x` in `o`"]);
        check(json!({ "properties": { "l": { "items": { "required": ["x"] } } } }), &["`x` in `l[]`"]);
    }

    #[test]
    fn definitions_that_are_referred_to_again_and_again_are_looked_at_once() {
        let twice = |index: usize| json!({ "oneOf": [{ "$ref": format!("#/$defs/d{}", index + 1) }, { "$ref": format!("#/$defs/d{}", index + 1) }] });
        let defs =
            (0..60).map(|index| (format!("d{index}"), twice(index))).chain([("d60".to_owned(), json!({ "properties": { "a": {} } }))]);
        let schema = json!({ "$ref": "#/$defs/d0", "required": ["a", "b"], "$defs": defs.collect::<Value>() });
        assert_eq!(undeclared(&schema), ["`b`"]);
    }

    #[test]
    fn defaults_have_to_fit() {
        let check = |property: Value, expected: &[(&str, &str)]| {
            let schema = json!({ "properties": { "a": property }, "$defs": { "small": { "maximum": 3 } } });
            let expected: Vec<(String, String)> = expected.iter().map(|(place, value)| ((*place).into(), (*value).into())).collect();
            assert_eq!(unfit_defaults(&schema), expected, "{schema}");
        };
        check(json!({ "type": "string", "default": "x" }), &[]);
        check(json!({ "type": "string", "default": null }), &[("a", "null")]);
        check(json!({ "$ref": "#/$defs/small", "default": 4 }), &[("a", "4")]);
        check(json!({ "properties": { "b": { "enum": [1], "default": 2 } } }), &[("a.b", "2")]);
        check(json!({ "$ref": "https://example.com/x", "default": 4 }), &[]);
    }
}
