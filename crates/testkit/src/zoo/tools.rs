//! Animals that describe their tools otherwise.

use super::changes::{refuse, remove};
use super::server::{Catalogue, METHOD_NOT_FOUND};
use super::twist::Twist;
use super::{ALL, Animal, BOTH, HTTP, MODERN, animal};
use serde_json::{Value, json};

pub(super) const ANIMALS: &[Animal] = &[
    animal(
        "calls-do-not-exist",
        "lists tools, and does not know `tools/call`",
        "declared-capability-is-implemented",
        ALL,
        BOTH,
        Twist::Says(|heard, message| match heard.method() == "tools/call" && message.get("method").is_none() {
            true => vec![refuse(heard, METHOD_NOT_FOUND, "Method not found")],
            false => vec![message],
        }),
    ),
    animal(
        "name-with-blanks",
        "has a tool whose name has blanks",
        "tool-name-is-portable",
        ALL,
        BOTH,
        Twist::Catalogue(|all| rename(all, "draw the sign")),
    ),
    animal(
        "name-with-umlaut",
        "has a tool whose name has an umlaut",
        "tool-name-is-portable",
        ALL,
        BOTH,
        Twist::Catalogue(|all| rename(all, "schild_fürs_tor")),
    ),
    animal(
        "name-is-too-long",
        "has a tool whose name has 129 characters",
        "tool-name-is-portable",
        ALL,
        BOTH,
        Twist::Catalogue(|all| rename(all, &"d".repeat(129))),
    ),
    animal(
        "name-is-long",
        "has a tool whose name has 65 characters",
        "tool-name-has-at-most-64-characters",
        ALL,
        BOTH,
        Twist::Catalogue(|all| rename(all, &"d".repeat(65))),
    ),
    animal(
        "description-missing",
        "has a tool without a description",
        "tool-has-description",
        ALL,
        BOTH,
        Twist::Catalogue(|all| remove(all.tool_mut("draw"), "description")),
    ),
    animal(
        "description-empty",
        "has a tool with an empty description",
        "tool-has-description",
        ALL,
        BOTH,
        Twist::Catalogue(|all| all.tool_mut("draw")["description"] = json!("")),
    ),
    animal(
        "description-long",
        "describes a tool with 2,000 characters",
        "tool-description-is-short",
        ALL,
        BOTH,
        Twist::Catalogue(|all| all.tool_mut("draw")["description"] = json!("Draws the sign. ".repeat(125))),
    ),
    animal(
        "type-unknown",
        "has an argument of a type that JSON Schema does not have",
        "tool-input-schema-compiles",
        ALL,
        BOTH,
        Twist::Catalogue(|all| input(all, json!({ "size": { "type": "int" } }))),
    ),
    animal(
        "pattern-broken",
        "has an argument with a pattern that does not compile",
        "tool-input-schema-compiles",
        ALL,
        BOTH,
        Twist::Catalogue(|all| input(all, json!({ "size": { "type": "string", "pattern": "[0-9" } }))),
    ),
    animal(
        "ref-dangles",
        "has an argument whose `$ref` points to nothing",
        "tool-input-schema-compiles",
        ALL,
        BOTH,
        Twist::Catalogue(|all| input(all, json!({ "size": { "$ref": "#/$defs/size" } }))),
    ),
    animal(
        "output-type-unknown",
        "has an output of a type that JSON Schema does not have",
        "tool-output-schema-compiles",
        ALL,
        BOTH,
        Twist::Catalogue(|all| all.tool_mut("find_animals")["outputSchema"]["properties"]["animals"] = json!({ "type": "list" })),
    ),
    animal(
        "ref-to-network",
        "has an argument whose schema is on the network",
        "tool-schema-refs-are-local",
        ALL,
        BOTH,
        Twist::Catalogue(|all| input(all, json!({ "size": { "$ref": "https://zoo.example/size.json" } }))),
    ),
    animal(
        "ref-to-file",
        "has an argument whose schema is in a file",
        "tool-schema-refs-are-local",
        ALL,
        BOTH,
        Twist::Catalogue(|all| input(all, json!({ "size": { "$ref": "file:///etc/passwd" } }))),
    ),
    animal(
        "refs-multiply",
        "has an argument whose schema refers twice to the next one, thirty times",
        "tool-schema-cost-is-bounded",
        ALL,
        BOTH,
        Twist::Catalogue(|all| {
            let twice = |next: usize| json!({ "allOf": [{ "$ref": format!("#/$defs/d{next}") }, { "$ref": format!("#/$defs/d{next}") }] });
            let defs =
                (0..30).map(|index| (format!("d{index}"), twice(index + 1))).chain([("d30".to_owned(), json!({ "type": "integer" }))]);
            input(all, json!({ "size": { "$ref": "#/$defs/d0" } }));
            all.tool_mut("draw")["inputSchema"]["$defs"] = defs.collect();
        }),
    ),
    animal(
        "required-unknown",
        "requires an argument that it does not describe",
        "tool-required-properties-exist",
        ALL,
        BOTH,
        Twist::Catalogue(|all| {
            input(all, json!({ "size": { "type": "integer" } }));
            all.tool_mut("draw")["inputSchema"]["required"] = json!(["size", "colour"]);
        }),
    ),
    animal(
        "default-misfits",
        "has a default that breaks its own schema",
        "tool-defaults-match-schema",
        ALL,
        BOTH,
        Twist::Catalogue(|all| all.tool_mut("patrol")["inputSchema"]["properties"]["steps"]["default"] = json!("five")),
    ),
    animal(
        "default-out-of-range",
        "has a default beyond its own maximum",
        "tool-defaults-match-schema",
        ALL,
        BOTH,
        Twist::Catalogue(|all| all.tool_mut("patrol")["inputSchema"]["properties"]["steps"]["default"] = json!(50)),
    ),
    animal(
        "read-only-and-destructive",
        "says of a tool that it only reads, and destroys",
        "tool-annotations-are-consistent",
        ALL,
        BOTH,
        Twist::Catalogue(|all| all.tool_mut("draw")["annotations"]["destructiveHint"] = json!(true)),
    ),
    animal(
        "annotations-missing",
        "has a tool without annotations",
        "tool-has-annotations",
        ALL,
        BOTH,
        Twist::Catalogue(|all| remove(all.tool_mut("draw"), "annotations")),
    ),
    animal(
        "header-empty",
        "wants an argument in a header without a name",
        HEADERS,
        HTTP,
        MODERN,
        Twist::Catalogue(|all| input(all, json!({ "size": { "type": "integer", "x-mcp-header": "" } }))),
    ),
    animal(
        "header-with-blank",
        "wants an argument in a header whose name has a blank",
        HEADERS,
        HTTP,
        MODERN,
        Twist::Catalogue(|all| input(all, json!({ "size": { "type": "integer", "x-mcp-header": "the size" } }))),
    ),
    animal(
        "header-twice",
        "wants two arguments in the same header",
        HEADERS,
        HTTP,
        MODERN,
        Twist::Catalogue(|all| {
            input(all, json!({ "a": { "type": "string", "x-mcp-header": "Size" }, "b": { "type": "string", "x-mcp-header": "size" } }))
        }),
    ),
    animal(
        "header-of-object",
        "wants an object in a header",
        HEADERS,
        HTTP,
        MODERN,
        Twist::Catalogue(|all| input(all, json!({ "size": { "type": "object", "x-mcp-header": "Size" } }))),
    ),
    animal(
        "header-of-number",
        "wants a number that is no integer in a header",
        HEADERS,
        HTTP,
        MODERN,
        Twist::Catalogue(|all| input(all, json!({ "size": { "type": "number", "x-mcp-header": "Size" } }))),
    ),
];

const HEADERS: &str = "tool-header-annotations-are-valid";

/// Gives a tool another name.
fn rename(all: &mut Catalogue, name: &str) {
    all.tool_mut("draw")["name"] = json!(name);
}

/// Gives a tool these arguments.
fn input(all: &mut Catalogue, properties: Value) {
    all.tool_mut("draw")["inputSchema"]["properties"] = properties;
}
