//! The descriptions of tools in `tools/list`.
//! Source: server/tools; schema, ToolAnnotations.

use super::ConversationView;
use super::flaws::{Flaw, each_tool, name_of, told};
use super::rule_definition::{Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, revisions};
use super::tool_schema::{empty_enums, foreign_references, invalid_schema, undeclared, unfit_defaults};
use mcproof_analysis::json_schema::{TooCostly, explodes};
use mcproof_analysis::texts::{control_character, hidden_character};
use mcproof_protocol::Revision;
use serde_json::{Value, json};

/// The maximum length of names in hosts that pass tools to models of several vendors.
const LONGEST_FOR_HOSTS: usize = 64;
const LONGEST_NAME: usize = 128;
/// Hosts truncate longer descriptions, or refuse the tool.
const LONGEST_DESCRIPTION: usize = 1024;

const PRACTICE: &[RequirementSource] =
    &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Portability, source: "server/tools#tool" }];

const VALID_SCHEMA: &[RequirementSource] = &[
    RequirementSource { revisions: revisions::BEFORE_2025_11, level: RequirementLevel::Should, source: "server/tools#tool" },
    RequirementSource {
        revisions: Revision::V2025_11_25..=Revision::V2025_11_25,
        level: RequirementLevel::Must,
        source: "basic#json-schema-usage",
    },
    RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Must, source: "basic#schema-validation" },
];

/// The revisions with tool annotations.
const ANNOTATIONS: &[RequirementSource] = &[
    RequirementSource {
        revisions: Revision::V2025_03_26..=Revision::V2025_03_26,
        level: RequirementLevel::Should,
        source: "server/tools#tool",
    },
    RequirementSource { revisions: revisions::SINCE_2025_06, level: RequirementLevel::Should, source: "schema#toolannotations" },
];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "tool-name-is-portable",
        area: Area::Tools,
        requirement: "a tool's name has 1 to 128 characters: ASCII letters, digits, `_`, `-` and `.`",
        sources: &[
            RequirementSource { revisions: revisions::BEFORE_2025_11, level: RequirementLevel::Portability, source: "server/tools#tool" },
            RequirementSource { revisions: revisions::SINCE_2025_11, level: RequirementLevel::Should, source: "server/tools#tool-names" },
        ],
        judge: Judge::Together(|all| each_tool(all, |tool| unportable(tool).into_iter().collect())),
        why: "hosts pass the names to model APIs that allow no other characters, and drop such a tool or all tools",
        remedy: "rename the tool; put the human-readable name into `title`",
        sdks: &[
            ("Python", "`@mcp.tool(name=\"…\")`"),
            ("FastMCP", "`@mcp.tool(name=\"…\")`"),
            ("TypeScript", "the first argument of `registerTool`"),
            ("rmcp", "`#[tool(name = \"…\")]`"),
        ],
        ..Rule::DEFAULT
    },
    Rule {
        id: "tool-name-has-at-most-64-characters",
        area: Area::Tools,
        requirement: "a tool's name has at most 64 characters",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Portability,
            source: "https://github.com/microsoft/foundry-dev-tools/issues/201",
        }],
        judge: Judge::Together(|all| each_tool(all, |tool| long_for_hosts(tool).into_iter().collect())),
        why: "several model vendors allow 64 characters, and hosts add the server's name as a prefix",
        remedy: "shorten the name; put details into the description",
        ..Rule::DEFAULT
    },
    Rule {
        id: "tool-has-description",
        area: Area::Tools,
        requirement: "a tool has a description",
        sources: PRACTICE,
        judge: Judge::Together(|all| each_tool(all, |tool| without_description(tool).into_iter().collect())),
        why: "a model chooses tools by their descriptions; without one it has to guess",
        remedy: "describe in a sentence or two what the tool does and when to use it",
        sdks: &[
            ("Python", "the docstring of the function"),
            ("FastMCP", "the docstring of the function"),
            ("TypeScript", "`description` in the second argument of `registerTool`"),
            ("rmcp", "the doc comment, or `#[tool(description = \"…\")]`"),
            ("Go", "`mcp.Tool{Description: \"…\"}`"),
        ],
        ..Rule::DEFAULT
    },
    Rule {
        id: "tool-description-is-short",
        area: Area::Tools,
        requirement: "a tool's description has at most 1,024 characters",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Portability,
            source: "https://github.com/getsentry/sentry-mcp/issues/106",
        }],
        judge: Judge::Together(|all| each_tool(all, |tool| long_description(tool).into_iter().collect())),
        why: "some hosts truncate longer ones or refuse the tool, and every conversation pays for each character",
        remedy: "keep what a model needs to choose the tool; put manuals into `instructions`, a prompt or a resource",
        ..Rule::DEFAULT
    },
    Rule {
        id: "tool-input-schema-compiles",
        area: Area::Tools,
        requirement: "`inputSchema` is a valid JSON Schema of its dialect, and its references have targets",
        sources: VALID_SCHEMA,
        judge: Judge::Together(|all| each_tool(all, |tool| schema_of(tool, "inputSchema").and_then(invalid_schema).into_iter().collect())),
        why: "a host that compiles schemas drops the tool, and some drop the whole server",
        remedy: "correct the schema; without `$schema`, its dialect is 2020-12",
        ..Rule::DEFAULT
    },
    Rule {
        id: "tool-output-schema-compiles",
        area: Area::Tools,
        requirement: "`outputSchema` is a valid JSON Schema of its dialect, and its references have targets",
        sources: &[
            RequirementSource {
                revisions: Revision::V2025_06_18..=Revision::V2025_06_18,
                level: RequirementLevel::Should,
                source: "server/tools#output-schema",
            },
            RequirementSource {
                revisions: Revision::V2025_11_25..=Revision::V2025_11_25,
                level: RequirementLevel::Must,
                source: "basic#json-schema-usage",
            },
            RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Must, source: "basic#schema-validation" },
        ],
        judge: Judge::Together(output_schemas),
        why: "clients validate results with it; SDKs that compile it when listing tools fail for all tools",
        remedy: "correct the schema; without `$schema`, its dialect is 2020-12",
        ..Rule::DEFAULT
    },
    Rule {
        id: "tool-schema-cost-is-bounded",
        area: Area::Tools,
        requirement: "the references of a tool's schemas do not multiply: validating a small value takes few steps",
        sources: &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Security, source: "" }],
        judge: Judge::Together(|all| each_tool(all, multiplied)),
        why: "a client that validates arguments or results hangs or overflows its stack: a schema of a few kilobytes can take years to evaluate",
        remedy: "refer to each definition once for the same value; recursive references have to go through `properties` or `items`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "tool-schema-refs-are-local",
        area: Area::Tools,
        requirement: "the references of a tool's schemas stay within the schema",
        sources: &[
            RequirementSource { revisions: revisions::LEGACY, level: RequirementLevel::Security, source: "" },
            RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Must, source: "basic#ref-resolution" },
        ],
        judge: Judge::Together(|all| each_tool(all, leads_out)),
        why: "clients must not fetch external references, so the schema is incomplete; a client that fetches them lets others change the schema later",
        remedy: "put the target under `$defs`, and refer to it with `#/$defs/NAME`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "tool-required-properties-exist",
        area: Area::Tools,
        requirement: "the names in `required` are among the properties",
        sources: &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Should, source: "server/tools#tool" }],
        judge: Judge::Together(|all| each_tool(all, requires_unknown)),
        why: "a model has to provide an argument without a description; several model vendors refuse such a schema",
        remedy: "declare the property, or remove its name from `required`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "tool-enum-has-values",
        area: Area::Tools,
        requirement: "an `enum` in a tool's schemas has at least one value",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Should,
            source: "https://json-schema.org/draft/2020-12/json-schema-validation#section-6.1.2",
        }],
        judge: Judge::Together(|all| each_tool(all, chooses_from_nothing)),
        why: "no value is valid there, and several model vendors refuse such a schema, and with it all tools",
        remedy: "leave `enum` out where there is nothing to choose from, or do not list the tool",
        ..Rule::DEFAULT
    },
    Rule {
        id: "tool-defaults-match-schema",
        area: Area::Tools,
        requirement: "a `default` is valid in its own schema",
        sources: PRACTICE,
        judge: Judge::Together(|all| each_tool(all, defaults)),
        why: "a host that fills in defaults sends arguments that the server refuses",
        remedy: "correct the default, or allow it: `\"type\": [\"string\", \"null\"]` for null",
        sdks: &[("Python", "`name: str | None = None` instead of `name: str = None`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "tool-annotations-are-consistent",
        area: Area::Tools,
        requirement: "a tool with `readOnlyHint: true` does not have `destructiveHint: true`",
        sources: ANNOTATIONS,
        judge: Judge::Together(|all| each_tool(all, |tool| contradiction(tool).into_iter().collect())),
        why: "one host calls the tool without confirmation, another one warns about it: the hints contradict each other",
        remedy: "set `readOnlyHint` to false if the tool changes anything; otherwise remove `destructiveHint`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "tool-has-annotations",
        area: Area::Tools,
        requirement: "a tool states in its annotations whether it changes or destroys anything",
        sources: &[
            RequirementSource {
                revisions: Revision::V2025_03_26..=Revision::V2025_03_26,
                level: RequirementLevel::Portability,
                source: "server/tools#tool",
            },
            RequirementSource {
                revisions: revisions::SINCE_2025_06,
                level: RequirementLevel::Portability,
                source: "schema#toolannotations",
            },
        ],
        judge: Judge::Together(|all| each_tool(all, |tool| without_hints(tool).into_iter().collect())),
        why: "without hints, a host has to treat a tool as destructive, and requires a confirmation for each call",
        remedy: "annotate `readOnlyHint`, and for what is not read-only `destructiveHint` and `idempotentHint`",
        sdks: &[
            ("Python", "`@mcp.tool(annotations=ToolAnnotations(readOnlyHint=True))`"),
            ("FastMCP", "`@mcp.tool(annotations={\"readOnlyHint\": True})`"),
            ("TypeScript", "`annotations: { readOnlyHint: true }` in the second argument of `registerTool`"),
            ("rmcp", "`#[tool(annotations(read_only_hint = true))]`"),
            ("Go", "`mcp.Tool{Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}`"),
        ],
        ..Rule::DEFAULT
    },
    Rule {
        id: "tool-header-annotations-are-valid",
        area: Area::Tools,
        requirement: "`x-mcp-header` names a unique header, on a string, integer or boolean that is reached only through `properties`",
        sources: &[RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Must, source: "server/tools#x-mcp-header" }],
        judge: Judge::Together(headers),
        why: "a client over Streamable HTTP has to remove such a tool from its list",
        remedy: "use a unique token as the name for each mirrored parameter, and do not mirror numbers, arrays or objects",
        ..Rule::DEFAULT
    },
];

fn unportable(tool: &Value) -> Option<String> {
    let name = tool.get("name")?.as_str()?;
    let length = name.chars().count();
    if hidden_character(name).or_else(|| control_character(name)).is_some() {
        // Worse than unportable, and reported by other rules.
        return None;
    }
    let is_allowed = |character: &char| character.is_ascii_alphanumeric() || "_-.".contains(*character);
    match name.chars().find(|character| !is_allowed(character)) {
        _ if length == 0 => Some("the name is empty".into()),
        _ if length > LONGEST_NAME => Some("the name has more than 128 characters".into()),
        Some(character) => Some(format!("the name contains {}", shown(character))),
        None => None,
    }
}

fn shown(character: char) -> String {
    match character {
        ' ' => "a space".into(),
        _ if character.is_ascii_graphic() => format!("`{character}`"),
        _ => format!("U+{:04X}", u32::from(character)),
    }
}

fn long_for_hosts(tool: &Value) -> Option<String> {
    let length = tool.get("name")?.as_str()?.chars().count();
    (length > LONGEST_FOR_HOSTS && length <= LONGEST_NAME)
        .then(|| "the APIs of OpenAI and Anthropic refuse names of more than 64 characters".into())
}

fn without_description(tool: &Value) -> Option<String> {
    match tool.get("description") {
        None | Some(Value::Null) => Some("no `description`".into()),
        Some(Value::String(text)) if text.trim().is_empty() => Some("an empty `description`".into()),
        Some(_) => None,
    }
}

fn long_description(tool: &Value) -> Option<String> {
    let length = tool.get("description")?.as_str()?.chars().count();
    (length > LONGEST_DESCRIPTION).then(|| "the `description` has more than 1,024 characters".into())
}

/// A schema that is not an object is reported by the rule about schemas of messages.
fn schema_of<'a>(tool: &'a Value, key: &str) -> Option<&'a Value> {
    tool.get(key).filter(|schema| schema.is_object())
}

fn output_schemas(all: &[&ConversationView<'_>]) -> Judgment {
    let has_any = all.iter().any(|conversation| conversation.tools().iter().any(|(tool, _)| schema_of(tool, "outputSchema").is_some()));
    match has_any {
        true => each_tool(all, |tool| schema_of(tool, "outputSchema").and_then(invalid_schema).into_iter().collect()),
        false => Judgment::NotApplicable("no tool has an `outputSchema`".into()),
    }
}

fn leads_out(tool: &Value) -> Vec<String> {
    let schemas = ["inputSchema", "outputSchema"].into_iter().filter_map(|key| Some((key, schema_of(tool, key)?)));
    schemas.flat_map(|(key, schema)| foreign_references(schema).into_iter().map(move |to| format!("`{key}` refers to \"{to}\""))).collect()
}

fn multiplied(tool: &Value) -> Vec<String> {
    let schemas = ["inputSchema", "outputSchema"].into_iter().filter(|key| schema_of(tool, key).is_some_and(explodes));
    schemas.map(|key| format!("the references of `{key}` multiply: {TooCostly}")).collect()
}

fn requires_unknown(tool: &Value) -> Vec<String> {
    let schemas = ["inputSchema", "outputSchema"].into_iter().filter_map(|key| Some((key, schema_of(tool, key)?)));
    schemas
        .flat_map(|(key, schema)| {
            undeclared(schema).into_iter().map(move |name| format!("`{key}` requires {name} but does not declare it"))
        })
        .collect()
}

fn chooses_from_nothing(tool: &Value) -> Vec<String> {
    let schemas = ["inputSchema", "outputSchema"].into_iter().filter_map(|key| Some((key, schema_of(tool, key)?)));
    schemas
        .flat_map(|(key, schema)| empty_enums(schema).into_iter().map(move |place| format!("`{key}` has an empty `enum`{place}")))
        .collect()
}

fn defaults(tool: &Value) -> Vec<String> {
    let Some(schema) = schema_of(tool, "inputSchema") else { return Vec::new() };
    unfit_defaults(schema)
        .into_iter()
        .map(|(place, value)| format!("the default of `{place}`, {value}, is not valid in its schema"))
        .collect()
}

fn contradiction(tool: &Value) -> Option<String> {
    let hint = |name: &str| tool.pointer(&format!("/annotations/{name}")) == Some(&json!(true));
    (hint("readOnlyHint") && hint("destructiveHint")).then(|| "`readOnlyHint` and `destructiveHint` are both true".into())
}

fn without_hints(tool: &Value) -> Option<String> {
    let hints = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
    let has_any = hints.iter().any(|hint| tool.pointer(&format!("/annotations/{hint}")).is_some());
    (!has_any).then(|| "no hint among the `annotations`".into())
}

fn headers(all: &[&ConversationView<'_>]) -> Judgment {
    let mut has_any = false;
    let mut flaws = Vec::new();
    for (position, conversation) in all.iter().enumerate() {
        for (tool, frame) in conversation.tools() {
            has_any |= tool.get("inputSchema").is_some_and(|schema| schema.to_string().contains("\"x-mcp-header\""));
            if let Err(detail) = mcproof_client::check_param_headers(tool) {
                flaws.push(Flaw { subject: name_of(tool).to_owned(), detail, frames: vec![frame], conversation: position });
            }
        }
    }
    match has_any {
        true => Judgment::from_violations(told("tool", "tools", flaws)),
        false => Judgment::NotApplicable("no tool mirrors parameters into headers".into()),
    }
}
