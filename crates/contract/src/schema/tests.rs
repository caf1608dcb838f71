//! What each change of a schema comes to, held against inputs by chance: what worked before a compatible change still does, and
//! before a breaking one there was something that no longer does.

use super::generated::Generator;
use super::*;
use serde_json::json;

/// Inputs that are tried for each row.
const INPUTS: usize = 1_000;
/// Attempts to find as many that the old schema accepts.
const ATTEMPTS: usize = 60_000;

/// What the old inputs say of a breaking change.
#[derive(Clone, Copy, PartialEq)]
enum Witness {
    /// One of them fails.
    Fails,
    /// All are still valid: what breaks is not what they look like.
    None,
}

struct Row {
    name: &'static str,
    old: Value,
    new: Value,
    level: ChangeLevel,
    code: &'static str,
    witness: Witness,
}

const BREAKING: ChangeLevel = ChangeLevel::Breaking;
const COMPATIBLE: ChangeLevel = ChangeLevel::Compatible;
const COSMETIC: ChangeLevel = ChangeLevel::Cosmetic;

/// The schema of a tool with the one argument `a`.
fn one(schema: Value) -> Value {
    json!({ "type": "object", "properties": { "a": schema } })
}

fn row(name: &'static str, old: Value, new: Value, level: ChangeLevel, code: &'static str) -> Row {
    Row { name, old, new, level, code, witness: Witness::Fails }
}

/// A change of the argument `a`.
fn arg(name: &'static str, old: Value, new: Value, level: ChangeLevel, code: &'static str) -> Row {
    row(name, one(old), one(new), level, code)
}

fn rows() -> Vec<Row> {
    let text = || json!({ "type": "string" });
    let number = || json!({ "type": "number" });
    let whole = || json!({ "type": "integer" });
    let object = |properties: Value, required: Value| json!({ "type": "object", "properties": properties, "required": required });
    let list = |items: Value| json!({ "type": "array", "items": items });
    let draft7 = |schema: Value| {
        let mut schema = schema;
        schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
        schema
    };
    let variant = |kind: &str, extra: Value| object(json!({ "kind": { "const": kind }, "v": extra }), json!(["kind"]));
    let node = |value: Value| {
        json!({
            "type": "object",
            "properties": { "tree": { "$ref": "#/$defs/node" } },
            "$defs": { "node": { "type": "object", "properties": { "value": value, "next": { "$ref": "#/$defs/node" } }, "required": ["value"] } },
        })
    };
    let shared = |definition: Value| {
        json!({
            "type": "object",
            "properties": { "a": { "$ref": "#/$defs/x" }, "b": { "$ref": "#/$defs/x" } },
            "$defs": { "x": definition },
        })
    };
    vec![
        // Arguments as a whole.
        row("a new optional argument", one(text()), object(json!({ "a": text(), "b": whole() }), json!([])), COMPATIBLE, "argument-added"),
        row(
            "a new required argument",
            one(text()),
            object(json!({ "a": text(), "b": whole() }), json!(["b"])),
            BREAKING,
            "argument-required",
        ),
        row("an argument becomes required", one(text()), object(json!({ "a": text() }), json!(["a"])), BREAKING, "argument-required"),
        row("an argument becomes optional", object(json!({ "a": text() }), json!(["a"])), one(text()), COMPATIBLE, "argument-optional"),
        Row {
            witness: Witness::None,
            ..row("an argument is gone", object(json!({ "a": text(), "b": whole() }), json!([])), one(text()), BREAKING, "argument-removed")
        },
        row(
            "an argument is gone, and others are refused",
            json!({ "type": "object", "properties": { "a": {}, "b": {} }, "additionalProperties": false }),
            json!({ "type": "object", "properties": { "a": {} }, "additionalProperties": false }),
            BREAKING,
            "argument-removed",
        ),
        row(
            "a new argument where others were refused",
            json!({ "type": "object", "properties": { "a": {} }, "additionalProperties": false }),
            json!({ "type": "object", "properties": { "a": {}, "b": text() }, "additionalProperties": false }),
            COMPATIBLE,
            "argument-added",
        ),
        row(
            "undeclared arguments are refused",
            one(text()),
            json!({ "type": "object", "properties": { "a": text() }, "additionalProperties": false }),
            BREAKING,
            "undeclared-narrowed",
        ),
        row(
            "undeclared arguments are let through",
            json!({ "type": "object", "properties": { "a": text() }, "additionalProperties": false }),
            one(text()),
            COMPATIBLE,
            "undeclared-widened",
        ),
        row(
            "undeclared arguments get a type",
            json!({ "type": "object", "additionalProperties": true }),
            json!({ "type": "object", "additionalProperties": text() }),
            BREAKING,
            "type-narrowed",
        ),
        row(
            "the values of a map get wider",
            one(json!({ "type": "object", "additionalProperties": whole() })),
            one(json!({ "type": "object", "additionalProperties": number() })),
            COMPATIBLE,
            "type-widened",
        ),
        row(
            "a member of a map gets a narrower schema of its own",
            one(json!({ "type": "object", "additionalProperties": whole(), "required": ["k"] })),
            one(
                json!({ "type": "object", "additionalProperties": whole(), "properties": { "k": { "type": "integer", "minimum": 5 } }, "required": ["k"] }),
            ),
            BREAKING,
            "minimum-narrowed",
        ),
        // Types.
        arg("a string becomes a number", text(), number(), BREAKING, "type-changed"),
        arg("a number becomes a whole number", number(), whole(), BREAKING, "type-narrowed"),
        arg("a whole number becomes a number", whole(), number(), COMPATIBLE, "type-widened"),
        arg("null is allowed", text(), json!({ "type": ["string", "null"] }), COMPATIBLE, "type-widened"),
        arg("null is no longer allowed", json!({ "type": ["string", "null"] }), text(), BREAKING, "type-narrowed"),
        arg(
            "null by anyOf instead of a list",
            json!({ "type": ["string", "null"] }),
            json!({ "anyOf": [text(), { "type": "null" }] }),
            COSMETIC,
            "schema-rewritten",
        ),
        arg("a type where there was none", json!({}), text(), BREAKING, "type-narrowed"),
        arg("no type where there was one", text(), json!({}), COMPATIBLE, "type-widened"),
        arg("true instead of nothing", json!({}), json!(true), COSMETIC, "schema-rewritten"),
        arg("nothing is accepted any more", text(), json!(false), BREAKING, "argument-removed"),
        // Values.
        arg("a value is gone", json!({ "enum": ["x", "y"] }), json!({ "enum": ["x"] }), BREAKING, "value-narrowed"),
        arg("a value is new", json!({ "enum": ["x"] }), json!({ "enum": ["x", "y"] }), COMPATIBLE, "value-widened"),
        arg("values in another order", json!({ "enum": ["x", "y"] }), json!({ "enum": ["y", "x"] }), COSMETIC, "schema-rewritten"),
        arg("text becomes a choice", text(), json!({ "type": "string", "enum": ["x", "y"] }), BREAKING, "values-narrowed"),
        arg("a choice becomes text", json!({ "type": "string", "enum": ["x", "y"] }), text(), COMPATIBLE, "values-widened"),
        arg("a constant becomes another", json!({ "const": 1 }), json!({ "const": 2 }), BREAKING, "value-narrowed"),
        arg("a constant becomes a choice of one", json!({ "const": "x" }), json!({ "enum": ["x"] }), COSMETIC, "schema-rewritten"),
        arg("1.0 instead of 1", json!({ "const": 1 }), json!({ "const": 1.0 }), COSMETIC, "schema-rewritten"),
        arg(
            "a boolean becomes a choice of both",
            json!({ "type": "boolean" }),
            json!({ "enum": [false, true] }),
            COSMETIC,
            "schema-rewritten",
        ),
        arg("a boolean has to be true", json!({ "type": "boolean" }), json!({ "const": true }), BREAKING, "value-narrowed"),
        arg(
            "a choice that fits a new pattern",
            json!({ "enum": ["ab", "cd"] }),
            json!({ "type": "string", "pattern": "^[a-d]+$" }),
            COMPATIBLE,
            "widened",
        ),
        arg(
            "a choice that fits no pattern",
            json!({ "enum": ["ab", "c1"] }),
            json!({ "type": "string", "pattern": "^[a-d]+$" }),
            BREAKING,
            "value-narrowed",
        ),
        // Numbers.
        arg("a minimum", whole(), json!({ "type": "integer", "minimum": 0 }), BREAKING, "minimum-narrowed"),
        arg(
            "a lower minimum",
            json!({ "type": "integer", "minimum": 3 }),
            json!({ "type": "integer", "minimum": 1 }),
            COMPATIBLE,
            "minimum-widened",
        ),
        arg(
            "a lower maximum",
            json!({ "type": "number", "maximum": 10 }),
            json!({ "type": "number", "maximum": 5 }),
            BREAKING,
            "maximum-narrowed",
        ),
        arg("no maximum", json!({ "type": "number", "maximum": 10 }), number(), COMPATIBLE, "maximum-widened"),
        arg(
            "an exclusive bound",
            json!({ "type": "number", "minimum": 3 }),
            json!({ "type": "number", "exclusiveMinimum": 3 }),
            BREAKING,
            "minimum-narrowed",
        ),
        arg(
            "an exclusive bound of whole numbers",
            json!({ "type": "integer", "exclusiveMinimum": 3 }),
            json!({ "type": "integer", "minimum": 4 }),
            COSMETIC,
            "schema-rewritten",
        ),
        arg("only even numbers", whole(), json!({ "type": "integer", "multipleOf": 2 }), BREAKING, "multiple-of-narrowed"),
        arg(
            "a finer step",
            json!({ "type": "integer", "multipleOf": 4 }),
            json!({ "type": "integer", "multipleOf": 2 }),
            COMPATIBLE,
            "multiple-of-widened",
        ),
        arg(
            "a step that does not divide",
            json!({ "type": "integer", "multipleOf": 2 }),
            json!({ "type": "integer", "multipleOf": 3 }),
            BREAKING,
            "multiple-of-narrowed",
        ),
        // Strings.
        arg(
            "a shorter maximum",
            json!({ "type": "string", "maxLength": 10 }),
            json!({ "type": "string", "maxLength": 3 }),
            BREAKING,
            "max-length-narrowed",
        ),
        arg(
            "a longer maximum",
            json!({ "type": "string", "maxLength": 3 }),
            json!({ "type": "string", "maxLength": 10 }),
            COMPATIBLE,
            "max-length-widened",
        ),
        arg("a minimum length", text(), json!({ "type": "string", "minLength": 1 }), BREAKING, "min-length-narrowed"),
        arg("a length for what is no string", whole(), json!({ "type": "integer", "minLength": 1 }), COSMETIC, "schema-rewritten"),
        arg("a pattern", text(), json!({ "type": "string", "pattern": "^[a-z]+$" }), BREAKING, "pattern-narrowed"),
        arg("no pattern", json!({ "type": "string", "pattern": "^[a-z]+$" }), text(), COMPATIBLE, "pattern-widened"),
        arg(
            "a wider pattern",
            json!({ "type": "string", "pattern": "^[a-z]+$" }),
            json!({ "type": "string", "pattern": "^[a-z0-9]+$" }),
            COMPATIBLE,
            "pattern-widened",
        ),
        arg(
            "a narrower pattern",
            json!({ "type": "string", "pattern": "^[a-z0-9]+$" }),
            json!({ "type": "string", "pattern": "^[a-z]+$" }),
            BREAKING,
            "pattern-narrowed",
        ),
        arg(
            "a pattern without its anchors",
            json!({ "type": "string", "pattern": "^abc$" }),
            json!({ "type": "string", "pattern": "abc" }),
            COMPATIBLE,
            "pattern-widened",
        ),
        arg(
            "the same pattern in other words",
            json!({ "type": "string", "pattern": "^[ab]{1,2}$" }),
            json!({ "type": "string", "pattern": "^(a|b)(a|b)?$" }),
            COSMETIC,
            "schema-rewritten",
        ),
        arg(
            "another pattern",
            json!({ "type": "string", "pattern": "^[a-z]+$" }),
            json!({ "type": "string", "pattern": "^[A-Z]+$" }),
            BREAKING,
            "pattern-narrowed",
        ),
        arg("a format", text(), json!({ "type": "string", "format": "email" }), BREAKING, "format-narrowed"),
        arg("no format", json!({ "type": "string", "format": "uri" }), text(), COMPATIBLE, "format-widened"),
        arg(
            "a wider format",
            json!({ "type": "string", "format": "uri" }),
            json!({ "type": "string", "format": "uri-reference" }),
            COMPATIBLE,
            "format-widened",
        ),
        arg(
            "another format",
            json!({ "type": "string", "format": "date" }),
            json!({ "type": "string", "format": "date-time" }),
            BREAKING,
            "format-narrowed",
        ),
        arg("a format that nobody checks", text(), json!({ "type": "string", "format": "int64" }), COSMETIC, "format-name-changed"),
        // Arrays.
        arg("items get a type", json!({ "type": "array" }), list(text()), BREAKING, "type-narrowed"),
        arg("items get wider", list(whole()), list(number()), COMPATIBLE, "type-widened"),
        arg(
            "fewer items",
            json!({ "type": "array", "maxItems": 3 }),
            json!({ "type": "array", "maxItems": 2 }),
            BREAKING,
            "max-items-narrowed",
        ),
        arg("an item is needed", list(text()), json!({ "type": "array", "items": text(), "minItems": 1 }), BREAKING, "min-items-narrowed"),
        arg(
            "items must differ",
            list(whole()),
            json!({ "type": "array", "items": whole(), "uniqueItems": true }),
            BREAKING,
            "unique-items-narrowed",
        ),
        arg(
            "items may repeat",
            json!({ "type": "array", "uniqueItems": true }),
            json!({ "type": "array" }),
            COMPATIBLE,
            "unique-items-widened",
        ),
        arg(
            "a place is retyped",
            json!({ "type": "array", "prefixItems": [text(), whole()] }),
            json!({ "type": "array", "prefixItems": [text(), text()] }),
            BREAKING,
            "type-changed",
        ),
        arg(
            "a place is new",
            json!({ "type": "array", "prefixItems": [text()], "items": false }),
            json!({ "type": "array", "prefixItems": [text(), whole()], "items": false }),
            COMPATIBLE,
            "widened",
        ),
        arg(
            "nothing behind the places",
            json!({ "type": "array", "prefixItems": [text()] }),
            json!({ "type": "array", "prefixItems": [text()], "items": false }),
            BREAKING,
            "narrowed",
        ),
        arg("one instead of a list", list(text()), text(), BREAKING, "type-changed"),
        arg("one or a list", text(), json!({ "anyOf": [text(), list(text())] }), COMPATIBLE, "type-widened"),
        // Nested objects.
        arg(
            "a nested member becomes required",
            object(json!({ "b": text() }), json!([])),
            object(json!({ "b": text() }), json!(["b"])),
            BREAKING,
            "argument-required",
        ),
        arg(
            "a nested member is retyped",
            object(json!({ "b": object(json!({ "c": text() }), json!([])) }), json!([])),
            object(json!({ "b": object(json!({ "c": whole() }), json!([])) }), json!([])),
            BREAKING,
            "type-changed",
        ),
        arg(
            "a nested member is new",
            object(json!({ "b": text() }), json!([])),
            object(json!({ "b": text(), "c": text() }), json!([])),
            COMPATIBLE,
            "argument-added",
        ),
        arg(
            "fewer members",
            json!({ "type": "object", "maxProperties": 3 }),
            json!({ "type": "object", "maxProperties": 0 }),
            BREAKING,
            "max-properties-narrowed",
        ),
        arg(
            "members of a pattern get narrower",
            json!({ "type": "object", "patternProperties": { "^x-": {} } }),
            json!({ "type": "object", "patternProperties": { "^x-": text() } }),
            BREAKING,
            "type-narrowed",
        ),
        arg(
            "names are restricted",
            json!({ "type": "object" }),
            json!({ "type": "object", "propertyNames": { "maxLength": 2 } }),
            BREAKING,
            "property-names-narrowed",
        ),
        arg(
            "one member needs another",
            object(json!({ "b": {}, "c": {} }), json!([])),
            json!({ "type": "object", "properties": { "b": {}, "c": {} }, "dependentRequired": { "b": ["c"] } }),
            BREAKING,
            "dependent-required-narrowed",
        ),
        // Alternatives.
        arg("an alternative is gone", json!({ "anyOf": [text(), whole()] }), json!({ "anyOf": [text()] }), BREAKING, "type-narrowed"),
        arg("an alternative is new", json!({ "oneOf": [text()] }), json!({ "oneOf": [text(), whole()] }), COMPATIBLE, "type-widened"),
        arg(
            "alternatives in another order",
            json!({ "anyOf": [text(), whole()] }),
            json!({ "anyOf": [whole(), text()] }),
            COSMETIC,
            "schema-rewritten",
        ),
        arg(
            "an alternative gets narrower",
            json!({ "anyOf": [text(), { "type": "integer" }] }),
            json!({ "anyOf": [text(), { "type": "integer", "minimum": 1 }] }),
            BREAKING,
            "minimum-narrowed",
        ),
        arg(
            "a tagged variant is gone",
            json!({ "oneOf": [variant("x", text()), variant("y", whole())] }),
            json!({ "oneOf": [variant("x", text())] }),
            BREAKING,
            "alternative-narrowed",
        ),
        arg(
            "a tagged variant is new",
            json!({ "oneOf": [variant("x", text())] }),
            json!({ "oneOf": [variant("x", text()), variant("y", whole())] }),
            COMPATIBLE,
            "alternative-widened",
        ),
        arg(
            "a tagged variant changes",
            json!({ "oneOf": [variant("x", text()), variant("y", number())] }),
            json!({ "oneOf": [variant("x", text()), variant("y", whole())] }),
            BREAKING,
            "type-narrowed",
        ),
        arg(
            "exactly one instead of any, with an overlap",
            json!({ "anyOf": [whole(), { "type": "number", "minimum": 5 }] }),
            json!({ "oneOf": [whole(), { "type": "number", "minimum": 5 }] }),
            BREAKING,
            "one-of-narrowed",
        ),
        arg(
            "exactly one instead of any, without an overlap",
            json!({ "anyOf": [text(), whole()] }),
            json!({ "oneOf": [text(), whole()] }),
            COSMETIC,
            "schema-rewritten",
        ),
        arg(
            "allOf instead of one schema",
            json!({ "type": "integer", "minimum": 1, "maximum": 5 }),
            json!({ "allOf": [{ "type": "integer", "minimum": 1 }, { "maximum": 5 }] }),
            COSMETIC,
            "schema-rewritten",
        ),
        arg(
            "one more part of allOf",
            json!({ "allOf": [{ "type": "integer" }] }),
            json!({ "allOf": [{ "type": "integer" }, { "minimum": 3 }] }),
            BREAKING,
            "minimum-narrowed",
        ),
        arg(
            "allOf with members in each part",
            json!({ "allOf": [object(json!({ "b": text() }), json!([])), object(json!({ "c": text() }), json!([]))] }),
            json!({ "allOf": [object(json!({ "b": text() }), json!([])), object(json!({ "c": whole() }), json!([]))] }),
            BREAKING,
            "type-changed",
        ),
        arg("not", text(), json!({ "type": "string", "not": { "const": "a" } }), BREAKING, "not-narrowed"),
        arg("no not", json!({ "type": "string", "not": { "const": "a" } }), text(), COMPATIBLE, "not-widened"),
        arg(
            "if and then",
            whole(),
            json!({ "type": "integer", "if": { "minimum": 5 }, "then": { "multipleOf": 2 } }),
            BREAKING,
            "narrowed",
        ),
        // References.
        row(
            "a definition gets narrower",
            shared(whole()),
            shared(json!({ "type": "integer", "minimum": 1 })),
            BREAKING,
            "minimum-narrowed",
        ),
        row("a definition gets wider", shared(whole()), shared(number()), COMPATIBLE, "type-widened"),
        row(
            "a definition is written in place",
            shared(whole()),
            object(json!({ "a": whole(), "b": whole() }), json!([])),
            COSMETIC,
            "schema-rewritten",
        ),
        row("a recursive definition gets narrower", node(number()), node(whole()), BREAKING, "type-narrowed"),
        row("a recursive definition gets wider", node(whole()), node(number()), COMPATIBLE, "type-widened"),
        row(
            "a definition that nobody uses",
            one(text()),
            json!({ "type": "object", "properties": { "a": text() }, "$defs": { "x": whole() } }),
            COSMETIC,
            "schema-rewritten",
        ),
        row(
            "a recursion is unrolled once",
            node(whole()),
            json!({
                "type": "object",
                "properties": { "tree": { "type": "object", "properties": { "value": whole(), "next": { "$ref": "#/$defs/node" } }, "required": ["value"] } },
                "$defs": { "node": { "type": "object", "properties": { "value": whole(), "next": { "$ref": "#/$defs/node" } }, "required": ["value"] } },
            }),
            COSMETIC,
            "schema-rewritten",
        ),
        // Dialects.
        row("another dialect", draft7(one(text())), one(text()), COSMETIC, "schema-dialect-changed"),
        row(
            "places as draft-07 and as 2020-12 write them",
            draft7(one(json!({ "type": "array", "items": [text(), whole()], "additionalItems": false }))),
            one(json!({ "type": "array", "prefixItems": [text(), whole()], "items": false })),
            COSMETIC,
            "schema-rewritten",
        ),
        row(
            "definitions as draft-07 and as 2020-12 write them",
            draft7(json!({ "type": "object", "properties": { "a": { "$ref": "#/definitions/x" } }, "definitions": { "x": whole() } })),
            json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/x" } }, "$defs": { "x": whole() } }),
            COSMETIC,
            "schema-rewritten",
        ),
        row(
            "what stands beside a reference begins to count",
            draft7(
                json!({ "type": "object", "properties": { "a": { "$ref": "#/definitions/x", "minimum": 5 } }, "definitions": { "x": whole() } }),
            ),
            json!({ "type": "object", "properties": { "a": { "$ref": "#/definitions/x", "minimum": 5 } }, "definitions": { "x": whole() } }),
            BREAKING,
            "minimum-narrowed",
        ),
        row(
            "prefixItems begin to count",
            draft7(one(json!({ "type": "array", "prefixItems": [text()] }))),
            one(json!({ "type": "array", "prefixItems": [text()] })),
            BREAKING,
            "type-narrowed",
        ),
        // What people and models read.
        arg("a description", text(), json!({ "type": "string", "description": "d" }), COSMETIC, "description-changed"),
        arg("a title", json!({ "type": "string", "title": "T" }), text(), COSMETIC, "title-changed"),
        arg(
            "another default",
            json!({ "type": "integer", "default": 1 }),
            json!({ "type": "integer", "default": 2 }),
            COMPATIBLE,
            "default-changed",
        ),
        arg("examples", text(), json!({ "type": "string", "examples": ["e"] }), COSMETIC, "annotation-changed"),
        arg(
            "a member that is called default",
            object(json!({ "default": text() }), json!([])),
            object(json!({ "default": whole() }), json!([])),
            BREAKING,
            "type-changed",
        ),
    ]
}

fn validator(schema: &Value) -> jsonschema::Validator {
    jsonschema::options().should_validate_formats(true).should_ignore_unknown_formats(true).build(schema).unwrap()
}

/// Inputs that the schema accepts.
fn inputs(schema: &Value, other: &Value, seed: u64) -> Vec<Value> {
    let accepts = validator(schema);
    let mut generator = Generator::new(schema, &[schema, other], seed);
    (0..ATTEMPTS).map(|_| generator.input()).filter(|input| accepts.is_valid(input)).take(INPUTS).collect()
}

fn described(changes: &[SchemaChange]) -> String {
    changes.iter().map(|change| format!("\n  {:?} {} at {}: {}", change.level, change.code, change.pointer, change.reason)).collect()
}

fn level(changes: &[SchemaChange]) -> Option<ChangeLevel> {
    changes.iter().map(|change| change.level).max()
}

#[test]
fn each_change_has_its_level_and_its_reason() {
    let mut wrong = String::new();
    for row in rows() {
        let changes = compare(&row.old, &row.new, Use::Arguments);
        let is_right =
            level(&changes) == Some(row.level) && changes.iter().any(|change| change.level == row.level && change.code.ends_with(row.code));
        if !is_right {
            wrong += &format!("\n{}: expected {:?} {}, got{}", row.name, row.level, row.code, described(&changes));
        }
        for change in &changes {
            let found = [&row.new, &row.old].iter().any(|schema| schema.pointer(&change.pointer).is_some());
            if !found {
                wrong += &format!("\n{}: nothing is at {} ({})", row.name, change.pointer, change.code);
            }
        }
    }
    assert_eq!(wrong, "");
    assert!(rows().len() >= 60);
}

#[test]
fn inputs_by_chance_agree_with_each_level() {
    let mut wrong = String::new();
    for (seed, row) in rows().iter().enumerate() {
        let (old, accepts) = (inputs(&row.old, &row.new, seed as u64), validator(&row.new));
        if old.len() < INPUTS {
            wrong += &format!("\n{}: only {} inputs were found", row.name, old.len());
        }
        let failing = old.iter().filter(|input| !accepts.is_valid(input)).min_by_key(|input| input.to_string().len());
        match (row.level, row.witness, failing) {
            (BREAKING, Witness::Fails, Some(input)) => println!("{}: no longer valid is {input}", row.name),
            (BREAKING, Witness::Fails, None) => wrong += &format!("\n{}: no input fails", row.name),
            (_, _, Some(input)) => wrong += &format!("\n{}: {input} fails", row.name),
            _ => {}
        }
    }
    assert_eq!(wrong, "");
}

/// What a caller reads may become less, not more.
#[test]
fn results_are_seen_from_the_other_side() {
    let object = |properties: Value, required: Value| json!({ "type": "object", "properties": properties, "required": required });
    let check = |name: &str, old: Value, new: Value, expected: ChangeLevel, code: &str| {
        let changes = compare(&old, &new, Use::Result);
        let has_code = changes.iter().any(|change| change.level == expected && change.code == code);
        assert!(level(&changes) == Some(expected) && has_code, "{name}: {}", described(&changes));
    };
    let text = || json!({ "type": "string" });
    check("null is possible", one(text()), one(json!({ "type": ["string", "null"] })), BREAKING, "type-widened");
    check("null is no longer possible", one(json!({ "type": ["string", "null"] })), one(text()), COMPATIBLE, "type-narrowed");
    check("a member may be missing", object(json!({ "a": text() }), json!(["a"])), one(text()), BREAKING, "result-may-be-missing");
    check("a member is always there", one(text()), object(json!({ "a": text() }), json!(["a"])), COMPATIBLE, "result-always-there");
    check("a member is gone", object(json!({ "a": text() }), json!(["a"])), json!({ "type": "object" }), BREAKING, "result-may-be-missing");
    check("an optional member is gone", one(text()), json!({ "type": "object" }), COMPATIBLE, "result-removed");
    check("a member is new", json!({ "type": "object" }), one(text()), COMPATIBLE, "result-added");
    let closed = |properties: Value| json!({ "type": "object", "properties": properties, "additionalProperties": false });
    check("a member is new that was forbidden", closed(json!({})), closed(json!({ "a": text() })), BREAKING, "result-added");
    check("one more value", one(json!({ "enum": ["x"] })), one(json!({ "enum": ["x", "y"] })), BREAKING, "value-widened");
    check("one value less", one(json!({ "enum": ["x", "y"] })), one(json!({ "enum": ["x"] })), COMPATIBLE, "value-narrowed");
    check("another type", one(text()), one(json!({ "type": "integer" })), BREAKING, "type-changed");
    check(
        "a larger maximum",
        one(json!({ "type": "integer", "maximum": 5 })),
        one(json!({ "type": "integer", "maximum": 9 })),
        BREAKING,
        "maximum-widened",
    );
    check("another default", one(json!({ "default": 1 })), one(json!({ "default": 2 })), COSMETIC, "default-changed");
}

/// Schemas that do not end, or that are made to keep us busy.
#[test]
fn hostile_schemas_are_compared_in_the_end() {
    let check = |old: Value, new: Value, expected: Option<ChangeLevel>| {
        assert_eq!(level(&compare(&old, &new, Use::Arguments)), expected, "{old} {new}");
    };
    check(json!({ "$ref": "#" }), json!({ "$ref": "#", "type": "object" }), Some(BREAKING));
    let endless = |kind: &str| json!({ "$defs": { "x": { "oneOf": [{ "$ref": "#/$defs/x" }, { "type": kind }] } }, "$ref": "#/$defs/x" });
    assert!(level(&compare(&endless("string"), &endless("integer"), Use::Arguments)).is_some());
    let wide = |count: usize| {
        let union: Vec<Value> = (0..count).map(|index| json!({ "type": "string", "maxLength": index })).collect();
        json!({ "allOf": [{ "anyOf": union }, { "anyOf": union }, { "anyOf": union }] })
    };
    check(wide(20), wide(21), Some(BREAKING));
    let mut deep = json!({ "type": "string" });
    for _ in 0..200 {
        deep = json!({ "type": "object", "properties": { "a": deep } });
    }
    let above = |extra: Value| json!({ "type": "object", "properties": { "a": { "properties": { "a": deep, "b": extra } } } });
    check(above(json!({})), above(json!({ "title": "T" })), Some(COSMETIC));
    check(one(deep.clone()), one(json!({ "type": "array", "items": deep })), Some(BREAKING));
    check(json!({ "type": ["nonsense", 5], "enum": 3, "required": "a" }), json!(5), Some(COMPATIBLE));
    check(
        json!({ "properties": { "a": { "$ref": "other.json" } } }),
        json!({ "properties": { "a": { "$ref": "third.json" } } }),
        Some(BREAKING),
    );
}

/// A change of a shared definition is reported once, however often it is used.
#[test]
fn a_change_of_a_definition_is_told_once() {
    let of = |definition: Value| json!({ "properties": { "a": { "$ref": "#/$defs/x" }, "b": { "$ref": "#/$defs/x" } }, "$defs": { "x": definition } });
    let changes = compare(&of(json!({ "type": "integer" })), &of(json!({ "type": "integer", "minimum": 1 })), Use::Arguments);
    assert_eq!(changes.len(), 1, "{}", described(&changes));
    assert_eq!(changes[0].pointer, "/$defs/x/minimum");
    assert_eq!(changes[0].reason, "argument `a` gets the `minimum` 1");
}

#[test]
fn schemas_whose_references_multiply_are_too_complex_to_compare() {
    let multiplied = |last: &str| {
        let twice = |index: usize| json!({ "allOf": [{ "$ref": format!("#/$defs/d{}", index + 1) }, { "$ref": format!("#/$defs/d{}", index + 1) }] });
        let defs = (0..60).map(|index| (format!("d{index}"), twice(index))).chain([("d60".to_owned(), json!({ "type": last }))]);
        json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/d0" } }, "$defs": defs.collect::<Value>() })
    };
    let changes = compare(&multiplied("string"), &multiplied("integer"), Use::Arguments);
    assert_eq!(level(&changes), Some(BREAKING), "{}", described(&changes));
    assert!(changes.iter().any(|change| change.code == "schema-too-complex-narrowed"), "{}", described(&changes));
}

#[test]
fn names_in_another_order_are_no_change() {
    let schema = |required: [&str; 2], types: [&str; 2]| json!({ "type": "object", "properties": { "a": { "type": types }, "b": {} }, "required": required });
    let changes = compare(&schema(["a", "b"], ["string", "null"]), &schema(["b", "a"], ["null", "string"]), Use::Arguments);
    assert!(changes.is_empty(), "{}", described(&changes));
}

#[test]
fn thousands_of_values_are_too_many_to_compare_one_by_one() {
    let listed = |count: usize| json!({ "type": "object", "properties": { "a": { "enum": (0..count).collect::<Vec<_>>() } } });
    let codes = |old: usize, new: usize| -> Vec<String> {
        compare(&listed(old), &listed(new), Use::Arguments).into_iter().map(|change| change.code).collect()
    };
    assert_eq!(codes(300, 301), ["value-widened"]);
    assert!(codes(20_000, 20_001).contains(&"schema-too-complex-narrowed".to_owned()), "{:?}", codes(20_000, 20_001));
}

/// Whoever compares each change with each other one takes minutes for these.
#[test]
fn tens_of_thousands_of_changes_are_told_once_each() {
    let names = || (0..30_000).map(|number| format!("m{number}"));
    let object = |properties: Value, required: Value| json!({ "type": "object", "properties": properties, "required": required });
    let all: Vec<String> = names().collect();
    let check = |old: &Value, new: &Value, usage: Use, code: &str, expected: usize| {
        let changes = compare(old, new, usage);
        assert_eq!(changes.iter().filter(|change| change.code == code).count(), expected, "{:?}", changes.first());
    };
    let (none, required) = (object(json!({}), json!([])), object(json!({}), json!(all)));
    check(&none, &required, Use::Arguments, "argument-required", 30_000);
    check(&required, &none, Use::Result, "result-may-be-missing", 30_000);
    let of = |schema: Value| object(names().map(|name| (name, schema.clone())).collect::<serde_json::Map<_, _>>().into(), json!([]));
    check(&of(json!({ "type": "string" })), &of(json!({ "type": "integer" })), Use::Arguments, "type-changed", 19_999);
}
