use super::*;
use mcproof_analysis::example;
use serde_json::{Value, json};

fn check(flaws: fn(&Value) -> Vec<String>, schema: Value, expected: &[&str]) {
    assert_eq!(flaws(&json!({ "name": "t", "inputSchema": schema })), expected, "{schema}");
}

#[test]
fn flaws_of_schemas_are_told_with_their_place() {
    let nested = |inner: Value| json!({ "type": "object", "properties": { "a/b": { "anyOf": [{ "type": "integer" }, inner] } } });
    check(schemas::references, nested(json!({ "$ref": "#/x" })), &["the Gemini API refuses it: `/properties/a~1b/anyOf/1` is a `$ref`"]);
    check(schemas::references, json!({ "properties": { "$ref": { "type": "string" } } }), &[]);
    check(schemas::references, json!({ "default": { "$ref": "x" } }), &[]);
    check(
        schemas::arrays,
        nested(json!({ "type": ["array", "null"] })),
        &["VS Code and the Gemini API refuse it: `/properties/a~1b/anyOf/1` is an array without `items`"],
    );
    check(schemas::arrays, nested(json!({ "type": "array", "items": { "type": "array", "items": {} } })), &[]);
    check(
        schemas::types,
        json!({ "properties": { "a": { "type": ["string", "null"] }, "b": { "items": { "type": ["integer", "null"] } } } }),
        &["the Gemini API refuses it: `/properties/a` has the types [\"string\",\"null\"], and 1 more"],
    );
    check(
        schemas::formats,
        json!({ "properties": { "a": { "type": "string", "format": "email" } } }),
        &["the Gemini API refuses it: `/properties/a` has the format `email`"],
    );
    check(schemas::formats, json!({ "properties": { "a": { "type": "integer", "format": "int32" } } }), &[]);
    check(
        schemas::top,
        json!({ "type": "object", "oneOf": [], "not": {} }),
        &["Claude Code, the Anthropic and OpenAI APIs refuse `oneOf` and `not` at the top of its input schema"],
    );
    check(schemas::older_forms, json!({ "$schema": "http://json-schema.org/draft-07/schema#", "items": {}, "exclusiveMinimum": 1 }), &[]);
    check(
        schemas::older_forms,
        nested(json!({ "exclusiveMaximum": true })),
        &["the Anthropic API refuses it: `/properties/a~1b/anyOf/1` has a boolean `exclusiveMaximum`"],
    );
    let dialect = |text: &str| schemas::dialect(&json!({ "name": "t", "outputSchema": { "$schema": text } })).len();
    assert_eq!((dialect("https://json-schema.org/draft/2020-12/schema#"), dialect("http://json-schema.org/draft-07/schema#")), (0, 1));
    check(
        schemas::arguments,
        json!({ "properties": { "ok.1-x": {}, "größe": {} } }),
        &["the Anthropic API refuses the argument name \"größe\""],
    );
}

#[test]
fn names_are_as_every_interface_wants_them() {
    let check = |name: &str, expected: usize| assert_eq!(limits::name(&json!({ "name": name })).len(), expected, "{name}");
    check("get_weather-2", 0);
    check("_get", 0);
    check("get weather", 1);
    check("2nd.try", 2);
    check("getWetter°", 1);
}

#[test]
fn what_a_model_reads_is_counted() {
    let take = example::read(crate::find("host-tool-list-is-short").unwrap().examples().keeps, "stdio", "2025-11-25");
    let read = r#"{"name":"find","description":"Finds things","input_schema":{"type":"object","properties":{"name":{"type":"string"}}}}"#;
    let found = cost(&[take]).unwrap();
    assert_eq!((found.tools, found.characters, found.dearest.clone()), (1, read.len(), Some(("find".into(), read.len()))));
    assert_eq!((found.tokens(), found.dearest_tokens()), (read.len().div_ceil(4), read.len().div_ceil(4)));
    assert_eq!(cost(&[example::read("! spawned", "stdio", "2025-11-25")]), None);
}
