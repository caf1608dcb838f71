//! What known hosts, and the interfaces of the models behind them, refuse although the protocol allows it. Each limit is
//! somebody's, so each finding names whose, and each rule where that is told. Judged only when asked for.

mod cost;
mod limits;
mod schemas;
mod starts;

pub use cost::{Cost, cost};

use super::Revisions;
use super::flaws::each_tool;
use super::rule_definition::{AppliesTo, Area, Judge, RequirementLevel, RequirementSource, Rule, revisions};

/// The same in all revisions.
macro_rules! seen {
    ($source:literal) => {
        &[RequirementSource { revisions: ANY, level: RequirementLevel::Portability, source: $source }]
    };
}

const ANY: Revisions = revisions::ALL;

/// The rule that judges a start in the environment of a desktop host, which is made only where it is judged.
pub const HOST_STARTS_SERVER: &str = "host-starts-server";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: HOST_STARTS_SERVER,
        area: Area::Hosts,
        requirement: "a server starts in the environment of a desktop host: a minimal PATH, few variables, and another directory than its own",
        sources: seen!("https://modelcontextprotocol.io/docs/tools/debugging"),
        on: AppliesTo::Stdio,
        judge: Judge::Each(starts::starts),
        why: "what only the author's shell provides is missing in a host, where users see nothing but a server that does not start",
        remedy: "write absolute paths, and set variables in the `env` of the host's configuration; `--launch host` reproduces it",
        ..Rule::DEFAULT
    },
    Rule {
        id: "host-tool-name-is-accepted",
        area: Area::Hosts,
        requirement: "a tool's name has only ASCII letters, digits, `_` and `-`, and begins with a letter or `_`",
        sources: seen!("https://github.com/google-gemini/gemini-cli/issues/2966"),
        judge: Judge::Together(|all| each_tool(all, limits::name)),
        why: "the OpenAI and Anthropic APIs accept `^[a-zA-Z0-9_-]{1,64}$`, Gemini requires a letter or `_` first; one invalid name usually fails the whole request, with all tools of all servers",
        remedy: "rename the tool; put the human-readable name into `title`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "host-tool-name-leaves-room",
        area: Area::Hosts,
        requirement: "the names of a server and its tool together have fewer than 60 characters",
        sources: seen!("https://github.com/ComposioHQ/composio/issues/2788"),
        judge: Judge::Each(limits::name_with_server),
        why: "in Cursor, tools with longer names are dropped, and other hosts add the prefix `mcp__SERVER__`, which then exceeds the limit of 64",
        remedy: "shorten the tool's name, and do not repeat the server's name in it",
        ..Rule::DEFAULT
    },
    Rule {
        id: "host-tool-list-is-short",
        area: Area::Hosts,
        requirement: "a server has at most 40 tools",
        sources: seen!("https://github.com/Snowflake-Labs/mcp/issues/77"),
        judge: Judge::Each(limits::number_of_tools),
        why: "hosts count the tools of all servers together: Trae stops at 40, Cursor at 80 (formerly 40), others at 100, and the \
              APIs behind Zed and VS Code at 128; further tools are dropped silently",
        remedy: "merge tools, or offer groups of tools that the user selects with a flag",
        ..Rule::DEFAULT
    },
    Rule {
        id: "host-schema-is-small",
        area: Area::Hosts,
        requirement: "an input schema has at most 10 levels and 16,000 characters",
        sources: seen!("https://platform.openai.com/docs/guides/structured-outputs"),
        judge: Judge::Together(|all| each_tool(all, limits::size)),
        why: "the strict mode of OpenAI accepts 10 levels of nesting, and every conversation pays for each character",
        remedy: "flatten the arguments, or split the tool",
        ..Rule::DEFAULT
    },
    Rule {
        id: "host-schema-is-a-plain-object",
        area: Area::Hosts,
        requirement: "an input schema is an object at its top level, without `oneOf`, `anyOf`, `allOf`, `enum` or `not`",
        sources: seen!("https://github.com/makenotion/notion-mcp-server/issues/340"),
        judge: Judge::Together(|all| each_tool(all, schemas::top)),
        why: "the APIs of Anthropic and OpenAI refuse the whole request; Claude Code drops the tool",
        remedy: "move the alternatives into a property, or describe which arguments exclude each other, and check them in the tool",
        sdks: &[("TypeScript", "no `z.union` or `.and()` around the whole input: one `z.object`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "host-input-schema-reads-as-2020-12",
        area: Area::Hosts,
        requirement: "an input schema is valid as JSON Schema 2020-12, whichever dialect it names",
        sources: seen!("https://github.com/anthropics/claude-code/issues/586"),
        judge: Judge::Together(|all| each_tool(all, schemas::older_forms)),
        why: "the Anthropic API reads every schema as 2020-12, and responds with 400 to the whole request",
        remedy: "write tuples with `prefixItems` and bounds as numbers, or generate schemas for 2020-12",
        sdks: &[("TypeScript", "zod 4, or `zod-to-json-schema` with the target `jsonSchema2020-12`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "host-output-schema-is-2020-12",
        area: Area::Hosts,
        requirement: "an output schema names the dialect JSON Schema 2020-12 or no dialect",
        sources: seen!("https://github.com/perplexityai/modelcontextprotocol/issues/132"),
        judge: Judge::Together(|all| each_tool(all, schemas::dialect)),
        why: "hosts that validate results with a validator for 2020-12 only, such as Claude Desktop, call no tool with another dialect",
        remedy: "leave out `$schema`, or generate schemas for 2020-12",
        sdks: &[("TypeScript", "zod 4, or `zod-to-json-schema` with the target `jsonSchema2020-12`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "host-schema-has-no-refs",
        area: Area::Hosts,
        requirement: "an input schema has no `$ref`",
        sources: seen!("https://github.com/google-gemini/gemini-cli/issues/13326"),
        judge: Judge::Together(|all| each_tool(all, schemas::references)),
        why: "the Gemini API refuses references, and hosts that rewrite schemas lose the referenced definitions",
        remedy: "write the definitions where they are used",
        sdks: &[("Python", "a Pydantic model as an argument makes `$defs`: use plain arguments"), ("FastMCP", "the same as Python")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "host-schema-arrays-have-items",
        area: Area::Hosts,
        requirement: "every array in an input schema declares its `items`",
        sources: seen!("https://github.com/microsoft/vscode/issues/246119"),
        judge: Judge::Together(|all| each_tool(all, schemas::arrays)),
        why: "VS Code refuses such a tool (\"array type must have items\"), and so does the Gemini API",
        remedy: "add `items`, if only `{\"type\": \"string\"}`",
        sdks: &[("Python", "`list[str]` instead of `list`"), ("TypeScript", "`z.array(z.string())` instead of `z.array(z.any())`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "host-schema-has-one-type-each",
        area: Area::Hosts,
        requirement: "`type` in an input schema is one type, not a list of them",
        sources: seen!("https://github.com/sbroenne/mcp-server-excel/pull/674"),
        judge: Judge::Together(|all| each_tool(all, schemas::types)),
        why: "the Gemini API accepts only one type, and responds with 400 to the whole request",
        remedy: "leave optional arguments out of `required` instead of allowing null",
        sdks: &[("Python", "`name: str = \"\"` instead of `name: str | None`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "host-schema-formats-are-known",
        area: Area::Hosts,
        requirement: "strings in an input schema have no `format` except `date-time` and `enum`",
        sources: seen!("https://github.com/google-gemini/gemini-cli/issues/2237"),
        judge: Judge::Together(|all| each_tool(all, schemas::formats)),
        why: "the Gemini API responds with 400 to any other, such as `uri` and `email`",
        remedy: "describe the format in the description, or use `pattern`",
        sdks: &[("TypeScript", "`z.string()` instead of `z.string().url()`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "host-argument-names-are-accepted",
        area: Area::Hosts,
        requirement: "the names of arguments have 1 to 64 characters: ASCII letters, digits, `_`, `.` and `-`",
        sources: seen!("https://github.com/twilio-labs/mcp/issues/49"),
        judge: Judge::Together(|all| each_tool(all, schemas::arguments)),
        why: "the Anthropic API responds with 400 to the whole request, so no tool of any server can be used",
        remedy: "rename the argument",
        ..Rule::DEFAULT
    },
];

#[cfg(test)]
mod tests;
