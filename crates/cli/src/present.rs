//! Renders results for people on a terminal, and escapes all text from a server.
//! Knows the shapes of results; anything else is shown as JSON.

mod content;
mod lists;

use mcproof_protocol::methods;
use mcproof_report::{Style, escape, escape_block};
use serde_json::Value;

const BOLD: anstyle::Style = anstyle::Style::new().bold();
const DIM: anstyle::Style = anstyle::Style::new().dimmed();

/// The result of a method, ending with a line feed.
pub(crate) fn result(method: &str, result: &Value, style: &Style) -> String {
    let shown = match method {
        methods::TOOLS_LIST => lists::tools(result, style),
        methods::PROMPTS_LIST => lists::prompts(result, style),
        methods::RESOURCES_LIST => lists::resources(result, "resources", "uri", style),
        methods::RESOURCES_TEMPLATES_LIST => lists::resources(result, "resourceTemplates", "uriTemplate", style),
        methods::TOOLS_CALL => content::of_call(result),
        methods::RESOURCES_READ => content::of_resource(result),
        methods::PROMPTS_GET => content::of_prompt(result),
        methods::COMPLETION_COMPLETE => completion(result),
        methods::INITIALIZE | methods::SERVER_DISCOVER => server(result),
        _ if result.as_object().is_some_and(serde_json::Map::is_empty) => Some(format!("{DIM}ok{DIM:#}")),
        _ => None,
    };
    let mut text = shown.unwrap_or_else(|| json(result));
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// One line of a report about several things, and below it what to do.
pub(crate) fn finding_line(mark: &str, name: &str, width: usize, detail: &str, hint: Option<&str>) -> String {
    let mut text = format!("{mark} {BOLD}{name:<width$}{BOLD:#}  {}\n", escape(detail));
    if let Some(hint) = hint {
        text += &format!("  {:<width$}  {DIM}{}{DIM:#}\n", "", escape(hint));
    }
    text
}

/// Indented JSON, safe for a terminal.
fn json(value: &Value) -> String {
    escape_block(&format!("{value:#}")).into_owned()
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

/// The first line of a text, made safe.
fn first_line(text: &str) -> String {
    escape(text.trim().lines().next().unwrap_or_default().trim_end()).into_owned()
}

fn completion(result: &Value) -> Option<String> {
    let completion = result.get("completion")?;
    let values: Option<Vec<&str>> = completion.get("values")?.as_array()?.iter().map(Value::as_str).collect();
    let mut lines: Vec<String> = values?.into_iter().map(|value| escape(value).into_owned()).collect();
    if lines.is_empty() {
        lines.push(format!("{DIM}no match{DIM:#}"));
    }
    if completion.get("hasMore") == Some(&Value::Bool(true)) {
        lines.push(format!("{DIM}and more{DIM:#}"));
    }
    Some(lines.join("\n"))
}

/// The result of a handshake of either era.
fn server(result: &Value) -> Option<String> {
    let info = result.get("serverInfo").or_else(|| result.pointer("/_meta/io.modelcontextprotocol~1serverInfo"));
    let name = info.and_then(|info| text(info, "name")).unwrap_or("unnamed server");
    let version = info.and_then(|info| text(info, "version")).unwrap_or_default();
    let mut lines = vec![format!("{BOLD}{}{BOLD:#} {}", escape(name), escape(version))];
    let versions = match result.get("supportedVersions").and_then(Value::as_array) {
        Some(versions) => versions.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        None => text(result, "protocolVersion")?.to_owned(),
    };
    lines.push(format!("revision      {}", escape(&versions)));
    let capabilities = result.get("capabilities")?.as_object()?.iter().map(|(name, details)| {
        let flags: Vec<&str> =
            details.as_object().into_iter().flatten().filter(|(_, on)| **on != Value::Bool(false)).map(|(flag, _)| flag.as_str()).collect();
        if flags.is_empty() { name.clone() } else { format!("{name} ({})", flags.join(", ")) }
    });
    lines.push(format!("capabilities  {}", escape(&capabilities.collect::<Vec<_>>().join(", "))));
    if let Some(instructions) = text(result, "instructions") {
        lines.push(String::new());
        lines.push(escape_block(instructions.trim()).into_owned());
    }
    Some(lines.join("\n"))
}
