//! Schemas: what is in them that interfaces of models do not take. Reads them as they are written; follows no reference.

use serde_json::{Map, Value};

const ANTHROPIC: &str = "the Anthropic API refuses";
const GEMINI: &str = "the Gemini API refuses";
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

pub(super) fn top(tool: &Value) -> Vec<String> {
    let Some(schema) = tool.get("inputSchema").and_then(Value::as_object) else { return Vec::new() };
    let found: Vec<String> =
        ["oneOf", "anyOf", "allOf", "enum", "not"].iter().filter(|key| schema.contains_key(**key)).map(|key| format!("`{key}`")).collect();
    let mut flaws = Vec::new();
    if !found.is_empty() {
        flaws.push(format!("Claude Code, the Anthropic and OpenAI APIs refuse {} at the top of its input schema", found.join(" and ")));
    }
    flaws
}

pub(super) fn dialect(tool: &Value) -> Vec<String> {
    let wire_message = tool.pointer("/outputSchema/$schema").and_then(Value::as_str);
    let other = wire_message.filter(|wire_message| wire_message.trim_end_matches('#') != DIALECT);
    other.map(|wire_message| format!("Claude Desktop refuses the dialect of its output schema, {wire_message}")).into_iter().collect()
}

/// What older dialects allow and 2020-12 does not.
pub(super) fn older_forms(tool: &Value) -> Vec<String> {
    found(tool, ANTHROPIC, |schema| {
        if schema.get("items").is_some_and(Value::is_array) {
            return Some("has a list of `items`".to_owned());
        }
        let bound = ["exclusiveMinimum", "exclusiveMaximum"].into_iter().find(|key| schema.get(*key).is_some_and(Value::is_boolean))?;
        Some(format!("has a boolean `{bound}`"))
    })
}

pub(super) fn references(tool: &Value) -> Vec<String> {
    found(tool, GEMINI, |schema| schema.contains_key("$ref").then(|| "is a `$ref`".to_owned()))
}

pub(super) fn arrays(tool: &Value) -> Vec<String> {
    let is_array = |schema: &Map<String, Value>| match schema.get("type") {
        Some(Value::String(name)) => name == "array",
        Some(Value::Array(names)) => names.iter().any(|name| name == "array"),
        _ => false,
    };
    found(tool, "VS Code and the Gemini API refuse", |schema| {
        let says_items = schema.contains_key("items") || schema.contains_key("prefixItems");
        (is_array(schema) && !says_items).then(|| "is an array without `items`".to_owned())
    })
}

pub(super) fn types(tool: &Value) -> Vec<String> {
    found(tool, GEMINI, |schema| schema.get("type").filter(|value| value.is_array()).map(|types| format!("has the types {types}")))
}

pub(super) fn formats(tool: &Value) -> Vec<String> {
    found(tool, GEMINI, |schema| {
        let format = schema.get("format")?.as_str()?;
        let is_string = schema.get("type").is_none_or(|name| name == "string");
        (is_string && !matches!(format, "date-time" | "enum")).then(|| format!("has the format `{format}`"))
    })
}

pub(super) fn arguments(tool: &Value) -> Vec<String> {
    let properties = tool.pointer("/inputSchema/properties").and_then(Value::as_object).into_iter().flatten();
    let is_accepted = |name: &str| {
        (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
    };
    properties
        .filter(|(name, _)| !is_accepted(name))
        .map(|(name, _)| format!("the Anthropic API refuses the argument name {name:?}"))
        .collect()
}

/// What is wrong with the schemas in an input schema, told once: who refuses it, the first place, and how many more there are.
fn found(tool: &Value, refusing: &str, flaw: impl Fn(&Map<String, Value>) -> Option<String>) -> Vec<String> {
    let mut places = Vec::new();
    if let Some(schema) = tool.get("inputSchema") {
        walk(schema, "", &mut |schema, pointer| places.extend(flaw(schema).map(|flaw| (pointer.to_owned(), flaw))));
    }
    let Some((pointer, flaw)) = places.first() else { return Vec::new() };
    let place = if pointer.is_empty() { "its input schema".to_owned() } else { format!("`{pointer}`") };
    let more = match places.len() - 1 {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    vec![format!("{refusing} it: {place} {flaw}{more}")]
}

/// Calls `visit` with each schema in a schema, and its JSON pointer.
fn walk(schema: &Value, pointer: &str, visit: &mut impl FnMut(&Map<String, Value>, &str)) {
    let Some(members) = schema.as_object() else { return };
    visit(members, pointer);
    for (key, value) in members {
        match (key.as_str(), value) {
            ("properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas", Value::Object(schemas)) => {
                for (name, schema) in schemas {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    walk(schema, &format!("{pointer}/{key}/{name}"), visit);
                }
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                for (index, schema) in schemas.iter().enumerate() {
                    walk(schema, &format!("{pointer}/{key}/{index}"), visit);
                }
            }
            ("items" | "additionalProperties" | "contains" | "not" | "if" | "then" | "else" | "propertyNames", schema) => {
                walk(schema, &format!("{pointer}/{key}"), visit);
            }
            _ => {}
        }
    }
}
