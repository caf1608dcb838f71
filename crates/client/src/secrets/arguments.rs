//! Arguments of tools that are secret by their schemas: `format: password` and `writeOnly`. Knows messages and schemas, and no place where
//! they are shown.

use mcproof_record::{Direction, FrameBody};
use serde_json::Value;
use std::collections::HashMap;

/// Tools that are remembered.
const MOST_TOOLS: usize = 1_000;
/// Schemas inside each other that are followed.
const DEEPEST: usize = 32;
/// Schemas that are looked at for the arguments of one call; references may multiply without end.
const MOST_STEPS: usize = 10_000;

/// The input schemas with secrets in them, by the names of their tools.
#[derive(Debug, Default)]
pub(crate) struct SecretArguments {
    schemas: HashMap<String, Value>,
}

impl SecretArguments {
    /// The secrets in a frame, by what frames before it said of the tools.
    pub(crate) fn find(&mut self, direction: Direction, body: &FrameBody) -> Vec<String> {
        let (FrameBody::Line { bytes, .. }
        | FrameBody::HttpBody { bytes, .. }
        | FrameBody::SseEvent { data: Some(bytes), .. }
        | FrameBody::HttpRequest { body: bytes, .. }) = body
        else {
            return Vec::new();
        };
        let has = |text: &str, words: &[&str]| words.iter().any(|word| text.contains(word));
        let is_of_interest = |text: &&str| match direction {
            Direction::FromServer => has(text, &["inputSchema"]) && has(text, &["password", "writeOnly"]),
            Direction::ToServer => !self.schemas.is_empty() && has(text, &["call"]),
            Direction::Local => false,
        };
        let text = std::str::from_utf8(bytes.as_bytes()).ok().filter(is_of_interest);
        let Some(read) = text.and_then(|text| serde_json::from_str::<Value>(text).ok()) else { return Vec::new() };
        let messages = read.as_array().map_or(std::slice::from_ref(&read), Vec::as_slice);
        if direction == Direction::FromServer {
            messages.iter().for_each(|message| self.learn(message));
            return Vec::new();
        }
        messages.iter().flat_map(|message| self.sent(message)).collect()
    }

    fn learn(&mut self, message: &Value) {
        let tools = message.pointer("/result/tools").and_then(Value::as_array).into_iter().flatten();
        for tool in tools.filter(|tool| tool.get("inputSchema").is_some_and(|schema| has_secret(schema, 0))) {
            if let Some(name) = tool["name"].as_str().filter(|_| self.schemas.len() < MOST_TOOLS) {
                self.schemas.insert(name.to_owned(), tool["inputSchema"].clone());
            }
        }
    }

    fn sent(&self, message: &Value) -> Vec<String> {
        let mut found = Vec::new();
        let params = message.get("params").filter(|_| message["method"] == "tools/call");
        let schema = params.and_then(|params| self.schemas.get(params["name"].as_str()?));
        if let (Some(schema), Some(arguments)) = (schema, params.and_then(|params| params.get("arguments"))) {
            Search { root: schema, steps: MOST_STEPS, found: &mut found }.look(schema, arguments, 0);
        }
        found
    }
}

fn is_secret(schema: &Value) -> bool {
    schema["format"] == "password" || schema["writeOnly"] == true
}

fn has_secret(schema: &Value, depth: usize) -> bool {
    let inner = |schema: &Value| depth < DEEPEST && has_secret(schema, depth + 1);
    is_secret(schema)
        || match schema {
            Value::Object(members) => members.values().any(inner),
            Value::Array(items) => items.iter().any(inner),
            _ => false,
        }
}

struct Search<'a> {
    root: &'a Value,
    steps: usize,
    found: &'a mut Vec<String>,
}

impl Search<'_> {
    /// Takes the texts in a value at which the schema says that it is secret.
    fn look(&mut self, schema: &Value, value: &Value, depth: usize) {
        let Some(steps) = self.steps.checked_sub(1).filter(|_| depth < DEEPEST) else { return };
        self.steps = steps;
        if is_secret(schema) {
            return texts_in(value, self.found);
        }
        let root = self.root;
        let referred = schema["$ref"].as_str().and_then(|reference| root.pointer(reference.strip_prefix('#')?));
        let options = ["allOf", "anyOf", "oneOf"].iter().filter_map(|keyword| schema.get(*keyword)?.as_array()).flatten();
        let branches = ["then", "else"].iter().filter_map(|keyword| schema.get(*keyword));
        for same in referred.into_iter().chain(options).chain(branches) {
            self.look(same, value, depth + 1);
        }
        for (name, value) in value.as_object().into_iter().flatten() {
            let declared = schema.get("properties").and_then(|properties| properties.get(name));
            if let Some(inner) = declared.or_else(|| schema.get("additionalProperties")) {
                self.look(inner, value, depth + 1);
            }
        }
        if let Some(items) = schema.get("items") {
            value.as_array().into_iter().flatten().for_each(|value| self.look(items, value, depth + 1));
        }
    }
}

fn texts_in(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts_in(item, found)),
        Value::Object(members) => members.values().for_each(|value| texts_in(value, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_schema_calls_a_password_is_secret() {
        let line = |value: &Value| FrameBody::Line { bytes: value.to_string().as_str().into(), unterminated: false };
        let check = |schema: Value, arguments: Value, expected: &[&str]| {
            let mut secrets = SecretArguments::default();
            let tools = json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [{ "name": "login", "inputSchema": schema }] } });
            assert!(secrets.find(Direction::FromServer, &line(&tools)).is_empty());
            let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "login", "arguments": arguments } });
            assert_eq!(secrets.find(Direction::ToServer, &line(&call)), expected, "{schema}");
        };
        let password = json!({ "type": "string", "format": "password" });
        let given = json!({ "user": "ann", "a": "hunter22" });
        check(json!({ "properties": { "user": { "type": "string" }, "a": password } }), given.clone(), &["hunter22"]);
        check(json!({ "properties": { "a": { "type": "string", "writeOnly": true } } }), given.clone(), &["hunter22"]);
        check(json!({ "properties": { "a": { "$ref": "#/$defs/p" } }, "$defs": { "p": password } }), given.clone(), &["hunter22"]);
        check(json!({ "properties": { "a": { "anyOf": [{ "type": "null" }, password] } } }), given.clone(), &["hunter22"]);
        check(json!({ "properties": { "a": { "type": "string", "description": "a password" } } }), given, &[]);
        let inside = json!({ "type": "array", "items": { "properties": { "p": password } } });
        check(json!({ "properties": { "all": inside } }), json!({ "all": [{ "p": "one-1" }, { "p": "two-2" }] }), &["one-1", "two-2"]);
        let endless = json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }], "properties": { "a": password } });
        let found = json!({ "a": 5 });
        check(endless, found, &[]);
    }
}
