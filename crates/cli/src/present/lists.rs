//! Lists of tools, prompts and resources as tables that fit the terminal.

use super::{BOLD, DIM, first_line, text};
use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width, presets};
use mcproof_report::{Style, escape};
use serde_json::Value;

/// Tools with their arguments: a star marks those that are required.
pub(super) fn tools(result: &Value, style: &Style) -> Option<String> {
    let rows = result.get("tools")?.as_array()?.iter().map(|tool| [name(tool), tool_arguments(tool), description(tool)]);
    Some(table(["tool", "arguments", "description"], rows, style))
}

pub(super) fn prompts(result: &Value, style: &Style) -> Option<String> {
    let rows = result.get("prompts")?.as_array()?.iter().map(|prompt| [name(prompt), prompt_arguments(prompt), description(prompt)]);
    Some(table(["prompt", "arguments", "description"], rows, style))
}

/// Resources or their templates.
pub(super) fn resources(result: &Value, key: &str, address: &'static str, style: &Style) -> Option<String> {
    let rows = result.get(key)?.as_array()?.iter().map(|resource| {
        let media_type = escape(text(resource, "mimeType").unwrap_or_default()).into_owned();
        let about = match description(resource) {
            none if none.is_empty() => name(resource),
            description => description,
        };
        [escape(text(resource, address).unwrap_or_default()).into_owned(), media_type, about]
    });
    let title = if address == "uri" { "resource" } else { "template" };
    Some(table([title, "type", "description"], rows, style))
}

fn name(item: &Value) -> String {
    escape(text(item, "name").unwrap_or("(no name)")).into_owned()
}

fn description(item: &Value) -> String {
    first_line(text(item, "description").or_else(|| text(item, "title")).unwrap_or_default())
}

fn tool_arguments(tool: &Value) -> String {
    let properties = tool.pointer("/inputSchema/properties").and_then(Value::as_object);
    let required = tool.pointer("/inputSchema/required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|required| required.iter().any(|known| known == name));
    joined(properties.into_iter().flatten().map(|(name, _)| (name.as_str(), is_required(name))))
}

fn prompt_arguments(prompt: &Value) -> String {
    let arguments = prompt.get("arguments").and_then(Value::as_array);
    joined(arguments.into_iter().flatten().filter_map(|argument| {
        Some((text(argument, "name")?, argument.get("required") == Some(&Value::Bool(true))))
    }))
}

fn joined<'a>(arguments: impl Iterator<Item = (&'a str, bool)>) -> String {
    let name = |(name, required): (&str, bool)| format!("{}{}", escape(name), if required { "*" } else { "" });
    arguments.map(name).collect::<Vec<_>>().join(" ")
}

fn table(titles: [&str; 3], rows: impl Iterator<Item = [String; 3]>, style: &Style) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(style.width).unwrap_or(u16::MAX));
    for row in rows {
        table.add_row(row);
    }
    if table.is_empty() {
        return format!("{DIM}no {}s{DIM:#}", titles[0]);
    }
    let count = table.row_iter().count();
    // A name is what one copies: it is not broken while there is any other way.
    if let Some(column) = table.column_mut(0) {
        column.set_constraint(ColumnConstraint::UpperBoundary(Width::Percentage(50)));
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    let plural = if count == 1 { "" } else { "s" };
    let star = if titles[1] == "arguments" { "  (* required)" } else { "" };
    let heading = format!("{BOLD}{count} {}{plural}{BOLD:#}{DIM}{star}{DIM:#}", titles[0]);
    format!("{heading}\n{}", lines.join("\n"))
}
