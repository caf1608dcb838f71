//! Lists of tools, prompts and resources as tables that fit the terminal.

use super::{BOLD, DIM, first_line, text};
use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width, presets};
use mcproof_report::{Style, escape};
use serde_json::Value;

/// Tools with their arguments: a star marks those that are required.
pub(super) fn tools(result: &Value, style: &Style) -> Option<String> {
    let rows = result.get("tools")?.as_array()?.iter().map(|tool| [name(tool), tool_arguments(tool), description(tool)]);
    Some(table(["tool", "arguments"], rows, style))
}

pub(super) fn prompts(result: &Value, style: &Style) -> Option<String> {
    let rows = result.get("prompts")?.as_array()?.iter().map(|prompt| [name(prompt), prompt_arguments(prompt), description(prompt)]);
    Some(table(["prompt", "arguments"], rows, style))
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
    Some(table([title, "type"], rows, style))
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
    joined(
        arguments
            .into_iter()
            .flatten()
            .filter_map(|argument| Some((text(argument, "name")?, argument.get("required") == Some(&Value::Bool(true))))),
    )
}

fn joined<'a>(arguments: impl Iterator<Item = (&'a str, bool)>) -> String {
    let name = |(name, required): (&str, bool)| format!("{}{}", escape(name), if required { "*" } else { "" });
    arguments.map(name).collect::<Vec<_>>().join(" ")
}

/// `titles` name what is listed, and its second column.
fn table(titles: [&str; 2], rows: impl Iterator<Item = [String; 3]>, style: &Style) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(style.width).unwrap_or(u16::MAX));
    for row in rows {
        table.add_row(row);
    }
    if table.is_empty() {
        return format!("{DIM}no {}s{DIM:#}", titles[0]);
    }
    // A name or an address is what one copies: it is not broken while there is another way.
    let widest = usize::from(table.column_max_content_widths().first().copied().unwrap_or_default());
    if let Some(column) = table.column_mut(0) {
        let fits = widest <= style.width * 2 / 3;
        column.set_constraint(if fits { ColumnConstraint::ContentWidth } else { ColumnConstraint::UpperBoundary(Width::Percentage(50)) });
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    let count = table.row_count();
    let plural = if count == 1 { "" } else { "s" };
    let mut heading = format!("{BOLD}{count} {}{plural}{BOLD:#}", titles[0]);
    if titles[1] == "arguments" {
        heading += &format!("  {DIM}* required{DIM:#}");
    }
    format!("{heading}\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use crate::present;
    use mcproof_report::Style;
    use serde_json::{Value, json};

    fn check(method: &str, result: Value, expected: &[&str]) {
        let shown = present::result(method, &result, &Style { width: 60, ..Style::default() });
        let plain = anstream::adapter::strip_str(&shown).to_string();
        assert_eq!(plain.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn lists_are_tables_that_fit() {
        check("tools/list", json!({"tools": []}), &["no tools"]);
        check(
            "tools/list",
            json!({"tools": [
                {"name": "echo", "description": "Says it again.\nAnd more.", "inputSchema": {"properties": {"m": {}, "n": {}}, "required": ["m"]}},
                {"name": "a\u{1b}[31m", "title": "A title"},
            ]}),
            &["2 tools  * required", " echo         m* n  Says it again.", " a\\u{1b}[31m        A title"],
        );
        check(
            "prompts/list",
            json!({"prompts": [{"name": "p", "arguments": [{"name": "x", "required": true}, {"name": "y"}]}]}),
            &["1 prompt  * required", " p  x* y"],
        );
        check(
            "resources/list",
            json!({"resources": [{"uri": "file:///a/rather/long/path", "name": "path", "mimeType": "text/plain"}]}),
            &["1 resource", " file:///a/rather/long/path  text/plain  path"],
        );
    }

    #[test]
    fn what_is_no_list_is_shown_as_json() {
        check("tools/list", json!({"tool": 1}), &["{", "  \"tool\": 1", "}"]);
    }
}
