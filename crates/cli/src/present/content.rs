//! Renders content blocks, resources and prompt messages. Binary content is shown as type and size.

use super::{BOLD, DIM, json, text};
use mcproof_report::{escape, escape_block};
use serde_json::Value;

/// The result of `tools/call`: its blocks, and its structured content unless that only repeats the text.
pub(super) fn of_call(result: &Value) -> Option<String> {
    let blocks = result.get("content")?.as_array()?;
    let mut parts: Vec<String> = blocks.iter().map(block).collect();
    if let Some(structured) = result.get("structuredContent") {
        let repeated =
            |block: &Value| text(block, "text").and_then(|text| serde_json::from_str::<Value>(text).ok()).as_ref() == Some(structured);
        if !blocks.iter().any(repeated) {
            parts.push(json(structured));
        }
    }
    Some(if parts.is_empty() { format!("{DIM}no content{DIM:#}") } else { parts.join("\n") })
}

/// The result of `resources/read`.
pub(super) fn of_resource(result: &Value) -> Option<String> {
    let contents = result.get("contents")?.as_array()?;
    let title = |content: &Value| format!("{BOLD}{}{BOLD:#}\n", escape(text(content, "uri").unwrap_or_default()));
    let parts = contents.iter().map(|content| match contents.len() {
        1 => resource(content),
        _ => title(content) + &resource(content),
    });
    Some(parts.collect::<Vec<_>>().join("\n"))
}

/// The result of `prompts/get`.
pub(super) fn of_prompt(result: &Value) -> Option<String> {
    let messages = result.get("messages")?.as_array()?;
    let mut parts = Vec::new();
    parts.extend(text(result, "description").map(|description| format!("{DIM}{}{DIM:#}", escape(description))));
    for message in messages {
        let role = escape(text(message, "role").unwrap_or("nobody"));
        parts.push(format!("{BOLD}{role}{BOLD:#}  {}", message.get("content").map(block).unwrap_or_default()));
    }
    Some(parts.join("\n"))
}

fn block(block: &Value) -> String {
    match text(block, "type") {
        Some("text") => text(block, "text").map(|text| escape_block(text).into_owned()),
        Some(kind @ ("image" | "audio")) => text(block, "data").map(|data| binary(kind, text(block, "mimeType"), data)),
        Some("resource_link") => text(block, "uri").map(|uri| {
            let name = text(block, "title").or_else(|| text(block, "name")).unwrap_or_default();
            format!("{DIM}link{DIM:#} {} {}", escape(uri), escape(name))
        }),
        Some("resource") => block.get("resource").map(|resource_value| {
            format!("{DIM}resource{DIM:#} {}\n{}", escape(text(resource_value, "uri").unwrap_or_default()), resource(resource_value))
        }),
        _ => None,
    }
    .unwrap_or_else(|| json(block))
}

fn resource(content: &Value) -> String {
    match (text(content, "text"), text(content, "blob")) {
        (Some(text), _) => escape_block(text).into_owned(),
        (None, Some(blob)) => binary("blob", text(content, "mimeType"), blob),
        (None, None) => json(content),
    }
}

fn binary(kind: &str, media_type: Option<&str>, base64: &str) -> String {
    let padding = base64.bytes().rev().take_while(|byte| *byte == b'=').count();
    let size = (base64.len() / 4 * 3).saturating_sub(padding);
    format!("{DIM}{kind}{DIM:#} {}, {}", escape(media_type.unwrap_or("of unknown type")), bytes(size))
}

#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
fn bytes(count: usize) -> String {
    match count {
        1 => "1 byte".into(),
        0..10_000 => format!("{count} bytes"),
        10_000..10_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        _ => format!("{:.1} MB", count as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(result: Value, expected: &str) {
        let shown = super::super::result("tools/call", &result, &mcproof_report::Style::default());
        assert_eq!(anstream::adapter::strip_str(&shown).to_string(), expected);
    }

    #[test]
    fn content_reads_as_text() {
        check(json!({"content": [{"type": "text", "text": "a\nb"}]}), "a\nb\n");
        check(json!({"content": [{"type": "text", "text": "\u{1b}[31mred\u{202e}"}]}), "\\u{1b}[31mred\\u{202e}\n");
        check(json!({"content": [{"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}]}), "image image/png, 5 bytes\n");
        check(json!({"content": [{"type": "resource_link", "uri": "file:///a", "name": "a"}]}), "link file:///a a\n");
        check(json!({"content": [{"type": "resource", "resource": {"uri": "x:y", "text": "t"}}]}), "resource x:y\nt\n");
        check(json!({"content": [{"type": "new", "x": 1}]}), "{\n  \"type\": \"new\",\n  \"x\": 1\n}\n");
        check(json!({"content": []}), "no content\n");
    }

    #[test]
    fn structured_content_is_not_shown_twice() {
        check(json!({"content": [{"type": "text", "text": "{\"a\": 1}"}], "structuredContent": {"a": 1}}), "{\"a\": 1}\n");
        check(json!({"content": [{"type": "text", "text": "one"}], "structuredContent": {"a": 1}}), "one\n{\n  \"a\": 1\n}\n");
    }
}
