//! Requests in spellings of JSON that this client does not use by itself, and other clients do. Knows what is legal, not what a server
//! takes.

use super::explorer::Explorer;
use mcproof_analysis::probes::LEGAL_FORM;
use mcproof_protocol::Transport;
use serde_json::{Value, json};

/// Separators at which some languages split lines, and which a string of JSON may have as they stand.
const SEPARATORS: &str = "mcproof\u{2028}line\u{2029}paragraph\u{85}end";

type Spelling = (&'static str, fn(&Value) -> String);

const SPELLINGS: [Spelling; 4] = [
    ("blanks between its members", spaced),
    ("its members in another order", reordered),
    ("escaped characters in its method", escaped),
    ("U+2028, U+2029 and U+0085 in a string", separated),
];

/// Sends a request of this method in each spelling.
pub(super) async fn take(explorer: &mut Explorer<'_>, method: &str) {
    for (position, (form, spell)) in SPELLINGS.into_iter().enumerate() {
        let message = explorer.build_request(json!(format!("mcproof-spelled-{position}")), method, json!({}));
        explorer.send_spelled(LEGAL_FORM, form, method, spell(&message) + "\n").await;
    }
    if explorer.kind() == Transport::Stdio {
        let message = explorer.build_request(json!("mcproof-spelled-crlf"), method, json!({}));
        explorer.send_spelled(LEGAL_FORM, "CRLF at the end of its line", method, format!("{message}\r\n")).await;
    }
}

/// As the JSON encoders of some languages write it by default, on one line.
fn spaced(message: &Value) -> String {
    // A string has no line feed as it stands.
    format!("{message:#}").replace('\n', " ")
}

/// With the members in the order of the TypeScript SDK.
fn reordered(message: &Value) -> String {
    let members = ["method", "params", "jsonrpc", "id"].into_iter();
    let members = members.filter_map(|name| Some((name.to_owned(), message.get(name)?.clone())));
    Value::Object(members.collect()).to_string()
}

/// With the first letter of the method as its number, and slashes as PHP writes them.
fn escaped(message: &Value) -> String {
    let method = message["method"].as_str().unwrap_or_default();
    let mut characters = method.chars();
    let first = characters.next().map(|character| format!("\\u{:04x}", u32::from(character))).unwrap_or_default();
    let rest = characters.as_str().replace('/', "\\/");
    message.to_string().replacen(&format!("\"method\":\"{method}\""), &format!("\"method\":\"{first}{rest}\""), 1)
}

fn separated(message: &Value) -> String {
    let mut message = message.clone();
    message["params"]["_meta"]["com.example/mcproof"] = json!(SEPARATORS);
    message.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_are_one_line_that_says_the_same() {
        let message = json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/list", "params": { "_meta": { "a/b": "c" } } });
        let plain = message.to_string();
        for spell in [spaced, reordered, escaped] {
            let text = spell(&message);
            assert!(!text.contains('\n') && text != plain, "{text}");
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), message, "{text}");
        }
        assert!(reordered(&message).starts_with(r#"{"method""#) && escaped(&message).contains(r#""\u0074ools\/list""#));
        assert!(spaced(&message).starts_with("{ ") && spaced(&message).contains(r#""method": "tools/list""#));
        assert!(['\u{2028}', '\u{2029}', '\u{85}'].into_iter().all(|separator| separated(&message).contains(separator)));
    }
}
