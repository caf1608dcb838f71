//! Writes values as YAML that people like to read: on one line where that fits, else in blocks. Whatever a text holds, what is
//! read back is that text. Knows no suites.

use mcproof_suite::plain_scalar_is_text;
use serde_json::Value;

/// Columns that a line may have.
const WIDTH: usize = 120;

/// `key: value`, with a comment at the end of its first line.
pub(super) fn entry(out: &mut String, indent: usize, key: &str, value: &Value, comment: Option<&str>) {
    let begin = out.len();
    out.extend(std::iter::repeat_n(' ', indent));
    out.push_str(&scalar(key));
    out.push(':');
    let comment = comment.map(|comment| format!(" # {comment}")).unwrap_or_default();
    let flow = flow(value);
    let is_nested =
        matches!(value, Value::Array(items) if !items.is_empty()) || matches!(value, Value::Object(members) if !members.is_empty());
    if !is_nested || out.len() - begin + 1 + flow.len() + comment.len() <= WIDTH {
        *out += &format!(" {flow}{comment}\n");
    } else {
        *out += &format!("{comment}\n");
        block(out, indent + 2, value);
    }
}

/// A map or a list over several lines.
fn block(out: &mut String, indent: usize, value: &Value) {
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| entry(out, indent, key, value, None)),
        Value::Array(items) => {
            for item in items {
                let flow = flow(item);
                let mut inner = String::new();
                if indent + 2 + flow.len() > WIDTH {
                    block(&mut inner, indent + 2, item);
                } else {
                    inner = format!("{:1$}{flow}\n", "", indent + 2);
                }
                out.extend(std::iter::repeat_n(' ', indent));
                *out += &format!("- {}", &inner[indent + 2..]);
            }
        }
        other => *out += &format!("{:1$}{2}\n", "", indent, flow(other)),
    }
}

/// A value on one line.
pub(super) fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Object(members) => {
            let members: Vec<String> = members.iter().map(|(key, value)| format!("{}: {}", scalar(key), flow(value))).collect();
            format!("{{ {} }}", members.join(", "))
        }
        other => other.to_string(),
    }
}

/// A text, in quotes where it needs them.
pub(super) fn scalar(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { quoted(text) }
}

/// What every reader of YAML takes for a text, also those for whom `no` is a boolean.
fn is_plain(text: &str) -> bool {
    let begins = text.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '_' | '$' | '/'));
    let is_usual = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '/' | '-' | ' ' | '$');
    let is_word = matches!(text.to_ascii_lowercase().as_str(), "y" | "n" | "yes" | "no" | "on" | "off");
    begins && !is_word && !text.ends_with(' ') && text.chars().all(is_usual) && plain_scalar_is_text(text)
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            ' '..='~' => quoted.push(character),
            _ if character.is_alphanumeric() => quoted.push(character),
            // Not in braces, as Rust does, and in one piece, unlike JSON.
            _ => quoted += &format!("\\U{:08X}", u32::from(character)),
        }
    }
    quoted + "\""
}
