//! Names, counts and sizes.

use crate::flaws::name_of;
use crate::rule_definition::{Judgment, Violation};
use mcproof_analysis::ConversationView;
use serde_json::Value;

const LONGEST_WITH_SERVER: usize = 60;
const LARGEST_SCHEMA: usize = 16_000;
const DEEPEST_SCHEMA: usize = 10;

/// From how many tools on whose hosts drop some.
const HOSTS_BY_TOOLS: [(usize, &str); 4] = [(40, "Trae"), (80, "Cursor"), (100, "Windsurf and Antigravity"), (128, "VS Code and Zed")];

pub(super) fn name(tool: &Value) -> Vec<String> {
    let name = name_of(tool);
    let mut flaws = Vec::new();
    let is_allowed = |character: &char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    let refused: Vec<char> = name.chars().filter(|character| !is_allowed(character)).collect();
    if let Some(first) = refused.first() {
        flaws.push(format!("the OpenAI and Anthropic APIs refuse {first:?} in its name"));
    }
    if name.starts_with(|first: char| first.is_ascii_digit() || first == '-') {
        flaws.push("the Gemini API requires a letter or `_` at the beginning of its name".to_owned());
    }
    flaws
}

pub(super) fn name_with_server(conversation: &ConversationView<'_>) -> Judgment {
    let handshake = conversation.handshake();
    let name = |key: &str| handshake.and_then(|(result, _)| result.pointer(key)).and_then(Value::as_str);
    let Some(server) = name("/serverInfo/name").or_else(|| name("/_meta/io.modelcontextprotocol~1serverInfo/name")) else {
        return Judgment::Untestable("the server does not name itself".into());
    };
    let tools = conversation.tools();
    if tools.is_empty() {
        return no_tools();
    }
    let together = |tool: &Value| server.chars().count() + name_of(tool).chars().count();
    let too_long = tools.iter().filter(|(tool, _)| together(tool) >= LONGEST_WITH_SERVER);
    let violations = too_long.map(|(tool, frame)| {
        let (name, length) = (name_of(tool), together(tool));
        Violation::new(
            format!("tool `{name}`: with `{server}`, the name of the server, it has {length} characters, and Cursor drops it"),
            [*frame],
        )
    });
    Judgment::from_violations(violations.collect())
}

pub(super) fn number_of_tools(conversation: &ConversationView<'_>) -> Judgment {
    let tools = conversation.tools();
    let Some((_, frame)) = tools.first() else { return no_tools() };
    let dropping: Vec<&str> = HOSTS_BY_TOOLS.iter().filter(|(most, _)| tools.len() > *most).map(|(_, hosts)| *hosts).collect();
    if dropping.is_empty() {
        return Judgment::Pass;
    }
    Judgment::Broken(vec![Violation::new(format!("{} tools are too many for {}", tools.len(), dropping.join(", ")), [*frame])])
}

fn no_tools() -> Judgment {
    Judgment::NotApplicable("the server lists no tools".into())
}

pub(super) fn size(tool: &Value) -> Vec<String> {
    let Some(schema) = tool.get("inputSchema") else { return Vec::new() };
    let (length, depth) = (schema.to_string().chars().count(), depth(schema));
    let mut flaws = Vec::new();
    if length > LARGEST_SCHEMA {
        flaws.push(format!("its input schema has {length} characters, about {} tokens in every conversation", length.div_ceil(4)));
    }
    if depth > DEEPEST_SCHEMA {
        flaws.push(format!("OpenAI's strict mode refuses arguments that are nested {depth} levels deep: it takes {DEEPEST_SCHEMA}"));
    }
    flaws
}

/// Levels of objects and arrays below the argument list, as far as they are written out.
fn depth(schema: &Value) -> usize {
    let below = |key: &str| schema.get(key);
    let properties = below("properties").and_then(Value::as_object).into_iter().flat_map(|members| members.values());
    let items = below("items").into_iter().chain(below("additionalProperties")).filter(|value| value.is_object());
    let deeper = properties.chain(items).map(depth).max().map_or(0, |deepest| deepest + 1);
    let unions = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| below(key)?.as_array()).flatten();
    unions.map(depth).max().unwrap_or(0).max(deeper)
}
