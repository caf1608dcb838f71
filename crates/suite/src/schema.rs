//! The JSON Schema of the suite format, and of others that are declared in the same way, made from the tables that read them. Editors complete and check suites with it; it sees
//! shapes and names, while `mcproof plan` sees what they mean together.

use super::format::{Described, Presence, Shape};
use super::parse::SUITE;
use super::plan::RetryCause;
use super::step::STEP;
use crate::judge::{MATCHER_KEYS, MatcherKey};
use serde_json::{Map, Value, json};

/// By JSON Schema 2020-12.
pub fn suite_schema() -> Value {
    let example = json!({
        "server": { "stdio": "node server.js" },
        "tests": [{ "name": "search finds coffee", "steps": [{ "call": "search", "with": { "query": "coffee" }, "expect": { "$text": "/coffee/" } }] }],
    });
    let mut definitions = Definitions(Map::new());
    definitions.0.insert("matcher".into(), matcher());
    whole(&SUITE, "mcproof suite", "Tests of an MCP server, run over each of its transports", example, definitions)
}

/// The schema of another format that is declared by tables.
pub fn format_schema(root: &dyn Described, title: &str, about: &str, example: Value) -> Value {
    whole(root, title, about, example, Definitions(Map::new()))
}

fn whole(root: &dyn Described, title: &str, about: &str, example: Value, mut definitions: Definitions) -> Value {
    definitions.0.insert("text".into(), json!({ "type": ["string", "number"] }));
    let root = definitions.object(root);
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "description": about,
        "examples": [example],
    });
    let members = schema.as_object_mut().expect("it was written as an object");
    members.extend(root);
    members.insert("$defs".into(), Value::Object(definitions.0));
    schema
}

/// What objects are made of, each once.
struct Definitions(Map<String, Value>);

impl Definitions {
    /// A reference to the definition of an object, which is made if there is none.
    fn reference(&mut self, object: &dyn Described) -> Value {
        let name = definition_name(object.name());
        if !self.0.contains_key(&name) {
            // Objects may hold each other: the name is taken before its keys are looked at.
            self.0.insert(name.clone(), Value::Null);
            let made = self.object(object);
            self.0.insert(name.clone(), Value::Object(made));
        }
        json!({ "$ref": format!("#/$defs/{name}") })
    }

    fn object(&mut self, object: &dyn Described) -> Map<String, Value> {
        let keys = object.keys();
        let of = |wanted: Presence| keys.iter().filter(move |(_, _, _, presence)| *presence == wanted).map(|(name, ..)| *name);
        let properties: Map<String, Value> =
            keys.iter().map(|(name, doc, shape, _)| ((*name).to_owned(), self.described(*shape, doc))).collect();
        let required: Vec<&str> = of(Presence::Required).collect();
        let choices: Vec<Value> = of(Presence::OneOf).map(|name| json!({ "required": [name] })).collect();
        let mut schema = Map::new();
        schema.insert("type".into(), json!("object"));
        schema.insert("properties".into(), Value::Object(properties));
        schema.insert("additionalProperties".into(), json!(false));
        if !required.is_empty() {
            schema.insert("required".into(), json!(required));
        }
        if !choices.is_empty() {
            schema.insert("oneOf".into(), Value::Array(choices));
        }
        schema
    }

    /// One key: its description stands beside what it takes.
    fn described(&mut self, shape: Shape, doc: &str) -> Value {
        let mut schema = json!({ "description": doc });
        let members = schema.as_object_mut().expect("it was written as an object");
        let Value::Object(taken) = self.shape(shape) else { unreachable!("each shape is an object") };
        members.extend(taken);
        let examples = examples(shape);
        if !examples.is_empty() {
            members.insert("examples".into(), Value::Array(examples));
        }
        schema
    }

    fn shape(&mut self, shape: Shape) -> Value {
        let text = || json!({ "$ref": "#/$defs/text" });
        match shape {
            Shape::Text | Shape::Regex => text(),
            Shape::Duration => json!({
                "type": "string",
                "pattern": r"^\s*(\d+(\.\d*)?\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)\s*)+$|\$\{",
            }),
            Shape::Period => json!({ "type": "string", "pattern": r"^\s*\d+\s*(d|days?|h|hours?)\s*$|\$\{" }),
            Shape::Percentage => json!({ "anyOf": [{ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 100 }, variable()] }),
            Shape::Time => json!({ "anyOf": [{ "type": "string", "format": "date-time" }, variable()] }),
            Shape::Durations => json!({ "type": "object", "additionalProperties": self.shape(Shape::Duration) }),
            Shape::Size => json!({ "anyOf": [{ "type": "integer", "minimum": 1 }, { "type": "string" }] }),
            Shape::Count => json!({ "anyOf": [{ "type": "integer", "minimum": 1 }, variable()] }),
            Shape::Share => json!({ "anyOf": [{ "type": "number", "exclusiveMinimum": 0, "maximum": 1 }, variable()] }),
            Shape::RetryCauses => json!({ "anyOf": [retry_cause(), { "type": "array", "minItems": 1, "items": retry_cause() }] }),
            Shape::FlagOrRetryCauses => json!({ "anyOf": [{ "const": true }, self.shape(Shape::RetryCauses)] }),
            Shape::Number => json!({ "anyOf": [{ "type": "integer", "minimum": 0 }, variable()] }),
            Shape::Rows => json!({ "type": "array", "items": { "type": "object" } }),
            Shape::WordOrWords(words) => {
                json!({ "anyOf": [{ "enum": words }, { "type": "array", "items": { "anyOf": [{ "enum": words }, variable()] } }, variable()] })
            }
            Shape::ObjectOrList(object) => {
                let one = self.reference(object);
                json!({ "anyOf": [one, { "type": "array", "items": one }] })
            }
            Shape::ObjectOrFlag(object) => json!({ "anyOf": [self.reference(object), { "type": "boolean" }] }),
            Shape::ObjectOrNumber(object) => json!({ "anyOf": [self.reference(object), { "type": "integer", "minimum": 0 }] }),
            Shape::Any => json!({}),
            Shape::Name => json!({ "anyOf": [{ "const": true }, text()] }),
            Shape::Flag => json!({ "type": "boolean" }),
            Shape::Nothing => json!({ "enum": [null, true] }),
            Shape::Names => json!({ "anyOf": [{ "enum": [null, true, "all"] }, { "type": "array", "items": text() }] }),
            Shape::Command => json!({
                "anyOf": [
                    { "type": "string", "minLength": 1 },
                    { "type": "array", "minItems": 1, "items": { "type": ["string", "number", "boolean"] } },
                ],
            }),
            Shape::Word(words) => json!({ "anyOf": [{ "enum": words }, variable()] }),
            Shape::TextOrTexts => json!({ "anyOf": [text(), { "type": "array", "items": text() }] }),
            Shape::TextList => json!({ "type": "array", "items": text() }),
            Shape::Elicitation => json!({ "anyOf": [{ "enum": ["accept", "decline", "cancel"] }, { "type": "object" }, variable()] }),
            Shape::Sampling => json!({ "type": ["string", "object"] }),
            Shape::Roots => {
                let properties = json!({ "uri": { "type": "string" }, "name": { "type": "string" } });
                let named = json!({ "type": "object", "properties": properties, "required": ["uri"], "additionalProperties": false });
                json!({ "type": "array", "items": { "anyOf": [text(), named] } })
            }
            Shape::Values => json!({ "anyOf": [{ "type": ["object", "null"] }, variable()] }),
            Shape::Texts => json!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean"] } }),
            Shape::Matcher => json!({ "$ref": "#/$defs/matcher" }),
            Shape::ToolError => json!({ "type": ["boolean", "string"] }),
            Shape::RpcError => json!({ "anyOf": [{ "type": "boolean" }, { "type": "object", "$ref": "#/$defs/matcher" }] }),
            Shape::Object(object) => self.reference(object),
            Shape::ObjectOrText(object) => json!({ "anyOf": [self.reference(object), { "type": "string" }] }),
            Shape::Objects(object) => json!({ "type": "object", "additionalProperties": self.reference(object) }),
            Shape::List(object) => {
                let mut items = self.reference(object);
                if object.name() == STEP.name {
                    items = json!({ "anyOf": [items, { "enum": short_steps() }] });
                }
                json!({ "type": "array", "minItems": 1, "items": items })
            }
        }
    }
}

/// `a step` is defined as `step`.
pub(crate) fn definition_name(name: &str) -> String {
    let plain = name.trim_start_matches("a ").trim_start_matches("an ");
    plain.chars().filter(|each| *each != '`').map(|each| if each.is_alphanumeric() { each } else { '_' }).collect()
}

/// The steps that a single word can stand for.
fn short_steps() -> Vec<&'static str> {
    STEP.keys.iter().filter(|key| matches!(key.shape, Shape::Names | Shape::Nothing)).map(|key| key.name).collect()
}

/// YAML reads a plain 429 as a number.
fn retry_cause() -> Value {
    let mut words: Vec<Value> = RetryCause::ALL.iter().map(|retry_cause| json!(retry_cause.word())).collect();
    words.push(json!(429));
    json!({ "anyOf": [{ "enum": words }, variable()] })
}

/// A text that a variable turns into something else.
fn variable() -> Value {
    json!({ "type": "string", "pattern": r"\$\{" })
}

fn examples(shape: Shape) -> Vec<Value> {
    let one = |value: Value| vec![value];
    match shape {
        Shape::Duration => vec![json!("5s"), json!("200ms"), json!("1m30s")],
        Shape::Size => vec![json!("16MiB"), json!(65536)],
        Shape::Regex => one(json!("/listening on port (\\d+)/")),
        Shape::Command => vec![json!("node server.js"), json!(["sh", "-c", "node server.js 2>log"])],
        Shape::Elicitation => {
            vec![json!("accept"), json!({ "name": "Ann" }), json!({ "$result": { "action": "accept", "content": { "name": "Ann" } } })]
        }
        Shape::Sampling => vec![json!("the model's response"), json!("reject")],
        Shape::Roots => vec![json!(["file:///home/me/project"]), json!([{ "uri": "file:///home/me/project", "name": "project" }])],
        Shape::Matcher => {
            vec![json!({ "status": "ok" }), json!({ "$text": "/found [0-9]+ results/i" }), json!({ "items": { "$len": { "$gt": 0 } } })]
        }
        Shape::ToolError => vec![json!(true), json!("/not found/i")],
        Shape::RpcError => vec![json!(true), json!({ "code": -32602 })],
        Shape::Names => one(json!(["search", "details"])),
        _ => Vec::new(),
    }
}

/// A value with matchers at any depth. Keys with one `$` are matchers and no others; `$$` begins a key that really has one.
fn matcher() -> Value {
    let names: Vec<&str> = MATCHER_KEYS.iter().map(|key| key.name).collect();
    let properties: Map<String, Value> = MATCHER_KEYS.iter().map(|key| (key.name.to_owned(), matcher_key(key))).collect();
    let nested = json!({ "$ref": "#/$defs/matcher" });
    json!({
        "description": "a value, of which objects match a part; `$`-keys are matchers",
        "items": nested,
        "properties": properties,
        "propertyNames": { "anyOf": [{ "enum": names }, { "pattern": r"^(\$\$|[^$]|$)" }] },
        "additionalProperties": nested,
    })
}

fn matcher_key(key: &MatcherKey) -> Value {
    // YAML reads a plain `null` as nothing.
    let types = json!(["string", "number", "integer", "boolean", "array", "object", "null", null]);
    let mut schema = match key.name {
        "$regex" => json!({ "type": "string" }),
        "$gt" | "$gte" | "$lt" | "$lte" => json!({ "type": ["number", "string"] }),
        "$len" => json!({ "anyOf": [{ "type": "number" }, { "type": "object", "$ref": "#/$defs/matcher" }, variable()] }),
        "$type" => json!({ "anyOf": [{ "enum": types }, { "type": "array", "minItems": 1, "items": { "enum": types } }] }),
        "$any" | "$uuid" | "$datetime" => json!({ "const": true }),
        "$absent" => json!({ "type": "boolean" }),
        "$one_of" => json!({ "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/matcher" } }),
        "$schema" => json!({ "type": ["object", "boolean"] }),
        "$text" => json!({ "type": ["string", "number", "boolean"] }),
        "$close_to" => json!({
            "anyOf": [
                { "type": "array", "minItems": 2, "maxItems": 2, "items": { "type": "number" } },
                {
                    "type": "object",
                    "required": ["value", "within"],
                    "properties": { "value": { "type": "number" }, "within": { "type": "number" } },
                    "additionalProperties": false,
                },
            ],
        }),
        // Everything else takes a matcher.
        _ => json!({ "$ref": "#/$defs/matcher" }),
    };
    if let Some(members) = schema.as_object_mut() {
        members.insert("description".into(), json!(key.doc));
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;
    use crate::{Environment, document, load};
    use std::path::Path;

    fn validator() -> jsonschema::Validator {
        jsonschema::draft202012::options().build(&suite_schema()).unwrap()
    }

    fn value(text: &str) -> Option<Value> {
        let source = Source::new("s.yaml", text);
        let (tree, mistakes) = document::parse(&source, 0);
        mistakes.is_empty().then(|| tree.map(|tree| tree.to_value())).flatten()
    }

    #[test]
    fn every_example_is_valid() {
        let validator = validator();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut folders = vec![root.join("examples"), root.join("crates/cli/tests/suites"), root.join("crates/suite/src/tests")];
        let mut seen = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.to_str().unwrap().ends_with(".mcproof.yaml") && !path.ends_with("twelve_mistakes.mcproof.yaml") {
                    let value = value(&std::fs::read_to_string(&path).unwrap()).unwrap();
                    let errors: Vec<String> =
                        validator.iter_errors(&value).map(|error| format!("{}: {error}", error.instance_path())).collect();
                    assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
                    seen += 1;
                }
            }
        }
        assert!(seen > 3);
    }

    /// Mistakes of names and types; a schema cannot see what keys mean together.
    #[test]
    fn every_mistake_of_shape_is_refused() {
        let validator = validator();
        let visible = ["unknown-key", "unsupported-key", "unknown-matcher", "unknown-type", "empty-test", "unknown-step"];
        let mut refused = 0;
        let mut missed = Vec::new();
        for block in include_str!("tests/mistakes.txt").split("### ").skip(1) {
            let (kind, text) = block.split_once('\n').unwrap();
            let one_line = text.trim_end_matches('\n');
            let text = match kind {
                "step" => format!("tests: [{{name: a, steps: [\n {one_line}\n]}}]\nserver: {{stdio: x}}\n"),
                "server" => format!("server: {one_line}\ntests: [{{name: a, steps: [ping]}}]\n"),
                _ => text.to_owned(),
            };
            let mistakes = load("s.yaml", &text, Path::new("/suites"), &Environment::default()).err().unwrap_or_default();
            let Some(value) = value(&text).filter(|_| mistakes.iter().any(|mistake| visible.contains(&mistake.code.as_str()))) else {
                continue;
            };
            if validator.is_valid(&value) { missed.push(text) } else { refused += 1 }
        }
        assert!(missed.is_empty(), "{}", missed.join("\n---\n"));
        assert!(refused > 10, "{refused}");
        assert!(!validator.is_valid(&value(include_str!("tests/twelve_mistakes.mcproof.yaml")).unwrap()));
    }

    #[test]
    fn every_key_is_described() {
        let schema = suite_schema();
        let mut open = vec![&schema];
        let mut described = 0;
        while let Some(value) = open.pop() {
            for (name, member) in value.as_object().into_iter().flatten() {
                if name == "properties" {
                    for (key, property) in member.as_object().unwrap() {
                        assert!(property["description"].is_string() || matches!(key.as_str(), "value" | "within"), "{key}");
                        described += 1;
                    }
                }
                open.push(member);
            }
        }
        assert!(described > 60, "{described}");
    }
}
