//! Broken servers that describe their tools wrongly.

use super::changes::{refuse, remove};
use super::deviation::Deviation;
use super::server::{Catalogue, METHOD_NOT_FOUND};
use super::{ALL, BOTH, BrokenServer, HTTP, MODERN, broken_server};
use serde_json::{Value, json};

pub(super) const BROKEN_SERVERS: &[BrokenServer] = &[
    broken_server(
        "calls-do-not-exist",
        "lists tools, and does not know `tools/call`",
        "declared-capability-is-implemented",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| match received.method() == "tools/call" && message.get("method").is_none() {
            true => vec![refuse(received, METHOD_NOT_FOUND, "Method not found")],
            false => vec![message],
        }),
    ),
    broken_server(
        "name-with-blanks",
        "has a tool whose name has blanks",
        "tool-name-is-portable",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| rename(all, "draw the sign")),
    ),
    broken_server(
        "name-with-umlaut",
        "has a tool whose name has an umlaut",
        "tool-name-is-portable",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| rename(all, "schild_fürs_tor")),
    ),
    broken_server(
        "name-is-too-long",
        "has a tool whose name has 129 characters",
        "tool-name-is-portable",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| rename(all, &"d".repeat(129))),
    ),
    broken_server(
        "name-is-long",
        "has a tool whose name has 65 characters",
        "tool-name-has-at-most-64-characters",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| rename(all, &"d".repeat(65))),
    ),
    broken_server(
        "description-missing",
        "has a tool without a description",
        "tool-has-description",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| remove(all.tool_mut("draw"), "description")),
    ),
    broken_server(
        "description-empty",
        "has a tool with an empty description",
        "tool-has-description",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| all.tool_mut("draw")["description"] = json!("")),
    ),
    broken_server(
        "description-long",
        "describes a tool with 2,000 characters",
        "tool-description-is-short",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| all.tool_mut("draw")["description"] = json!("Draws the sign. ".repeat(125))),
    ),
    broken_server(
        "type-unknown",
        "has an argument of a type that JSON Schema does not have",
        "tool-input-schema-compiles",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| input(all, json!({ "size": { "type": "int" } }))),
    ),
    broken_server(
        "pattern-broken",
        "has an argument with a pattern that does not compile",
        "tool-input-schema-compiles",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| input(all, json!({ "size": { "type": "string", "pattern": "[0-9" } }))),
    ),
    broken_server(
        "ref-dangles",
        "has an argument whose `$ref` points to nothing",
        "tool-input-schema-compiles",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| input(all, json!({ "size": { "$ref": "#/$defs/size" } }))),
    ),
    broken_server(
        "output-type-unknown",
        "has an output of a type that JSON Schema does not have",
        "tool-output-schema-compiles",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| all.tool_mut("find_animals")["outputSchema"]["properties"]["animals"] = json!({ "type": "list" })),
    ),
    broken_server(
        "ref-to-network",
        "has an argument whose schema is on the network",
        "tool-schema-refs-are-local",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| input(all, json!({ "size": { "$ref": "https://zoo.example/size.json" } }))),
    ),
    broken_server(
        "ref-to-file",
        "has an argument whose schema is in a file",
        "tool-schema-refs-are-local",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| input(all, json!({ "size": { "$ref": "file:///etc/passwd" } }))),
    ),
    broken_server(
        "refs-multiply",
        "has an argument whose schema refers twice to the next one, thirty times",
        "tool-schema-cost-is-bounded",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| {
            let twice = |next: usize| json!({ "allOf": [{ "$ref": format!("#/$defs/d{next}") }, { "$ref": format!("#/$defs/d{next}") }] });
            let defs =
                (0..30).map(|index| (format!("d{index}"), twice(index + 1))).chain([("d30".to_owned(), json!({ "type": "integer" }))]);
            input(all, json!({ "size": { "$ref": "#/$defs/d0" } }));
            all.tool_mut("draw")["inputSchema"]["$defs"] = defs.collect();
        }),
    ),
    broken_server(
        "required-unknown",
        "requires an argument that it does not describe",
        "tool-required-properties-exist",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| {
            input(all, json!({ "size": { "type": "integer" } }));
            all.tool_mut("draw")["inputSchema"]["required"] = json!(["size", "colour"]);
        }),
    ),
    broken_server(
        "icon-is-script",
        "has a script for an icon",
        "icon-uri-is-loadable",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| all.tool_mut("draw")["icons"] = json!([{ "src": "javascript:alert(1)" }])),
    ),
    broken_server(
        "enum-empty",
        "leaves no value to choose from for an argument",
        "tool-enum-has-values",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| all.tool_mut("discard_notes")["inputSchema"]["properties"]["of"] = json!({ "enum": [] })),
    ),
    broken_server(
        "default-misfits",
        "has a default that breaks its own schema",
        "tool-defaults-match-schema",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| all.tool_mut("patrol")["inputSchema"]["properties"]["steps"]["default"] = json!("five")),
    ),
    broken_server(
        "default-out-of-range",
        "has a default beyond its own maximum",
        "tool-defaults-match-schema",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| all.tool_mut("patrol")["inputSchema"]["properties"]["steps"]["default"] = json!(50)),
    ),
    broken_server(
        "read-only-and-destructive",
        "says of a tool that it only reads, and destroys",
        "tool-annotations-are-consistent",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| all.tool_mut("draw")["annotations"]["destructiveHint"] = json!(true)),
    ),
    broken_server(
        "annotations-missing",
        "has a tool without annotations",
        "tool-has-annotations",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| remove(all.tool_mut("draw"), "annotations")),
    ),
    broken_server(
        "header-empty",
        "wants an argument in a header without a name",
        HEADERS,
        HTTP,
        MODERN,
        Deviation::Catalogue(|all| input(all, json!({ "size": { "type": "integer", "x-mcp-header": "" } }))),
    ),
    broken_server(
        "header-with-blank",
        "wants an argument in a header whose name has a blank",
        HEADERS,
        HTTP,
        MODERN,
        Deviation::Catalogue(|all| input(all, json!({ "size": { "type": "integer", "x-mcp-header": "the size" } }))),
    ),
    broken_server(
        "header-twice",
        "wants two arguments in the same header",
        HEADERS,
        HTTP,
        MODERN,
        Deviation::Catalogue(|all| {
            input(all, json!({ "a": { "type": "string", "x-mcp-header": "Size" }, "b": { "type": "string", "x-mcp-header": "size" } }))
        }),
    ),
    broken_server(
        "header-of-object",
        "wants an object in a header",
        HEADERS,
        HTTP,
        MODERN,
        Deviation::Catalogue(|all| input(all, json!({ "size": { "type": "object", "x-mcp-header": "Size" } }))),
    ),
    broken_server(
        "header-of-number",
        "wants a number that is no integer in a header",
        HEADERS,
        HTTP,
        MODERN,
        Deviation::Catalogue(|all| input(all, json!({ "size": { "type": "number", "x-mcp-header": "Size" } }))),
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
