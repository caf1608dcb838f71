//! Shortens texts of servers for use in a sentence. Does not escape control characters: the result is as untrusted as the input.

use regex::Regex;
use serde_json::Value;
use std::sync::LazyLock;

/// The first `most` characters of a text, with an ellipsis if it is longer.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The beginning of what a server sent, on one line.
pub fn excerpt(sent: impl AsRef<[u8]>) -> String {
    const MOST: usize = 60;
    let text = String::from_utf8_lossy(sent.as_ref());
    let line: String = text.trim_end().chars().map(|character| if character.is_whitespace() { ' ' } else { character }).collect();
    shortened(&line, MOST)
}

/// The reason that the body of a refusal gives: the message of an error in JSON, or else the first line of a text or page.
pub fn reason(body: &[u8]) -> Option<String> {
    const MOST_READ: usize = 16 << 10;
    const MOST: usize = 120;
    static HIDDEN: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?is)<head\b.*?</head>|<style\b.*?</style>|<script\b.*?</script>|<title\b.*?</title>"));
    static TAG: LazyLock<Regex> = LazyLock::new(|| pattern(r"<[^>]*>"));
    let body = &body[..body.len().min(MOST_READ)];
    let told = match serde_json::from_slice::<Value>(body) {
        Ok(json) => ["/error/message", "/message", "/error_description", "/detail", "/error"]
            .iter()
            .find_map(|place| Some(json.pointer(place)?.as_str()?.to_owned()))?,
        Err(_) => {
            let text = String::from_utf8_lossy(body);
            let text = TAG.replace_all(&HIDDEN.replace_all(&text, ""), "\n").into_owned();
            [("&nbsp;", " "), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")]
                .iter()
                .fold(text, |text, (entity, character)| text.replace(entity, character))
        }
    };
    let line = told.lines().map(str::trim).find(|line| line.chars().any(char::is_alphanumeric))?;
    Some(shortened(line, MOST))
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("patterns of the program are valid")
}

/// A few names of many, for the sentence of a finding: `a`, `b` and 7 more.
pub fn named(names: &[String]) -> String {
    const MOST: usize = 4;
    let shown: Vec<String> = names.iter().take(MOST).map(|name| format!("`{name}`")).collect();
    match (names.len() - shown.len(), shown.split_last()) {
        (0, Some((last, []))) => last.clone(),
        (0, Some((last, others))) => format!("{} and {last}", others.join(", ")),
        (more, _) => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters_with_an_ellipsis() {
        for (text, most, expected) in [("", 0, ""), ("abc", 3, "abc"), ("abcd", 3, "abc…"), ("äöü", 2, "äö…"), ("a", 0, "…")] {
            assert_eq!(shortened(text, most), expected, "{text:?} cut to {most}");
        }
    }

    #[test]
    fn a_refusal_says_why_in_json_in_a_text_or_on_a_page() {
        let express = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Error</title>\n</head>\n<body>\n\
                       <pre>Error: Already connected to a transport.<br> &nbsp; &nbsp;at Server.connect (file:///srv/a.js:221:19)</pre>\n</body>";
        let rows = [
            (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#, Some("Session not found")),
            (r#"{"error":"invalid_token","error_description":"The token expired"}"#, Some("The token expired")),
            (r#"{"detail":"Not Found"}"#, Some("Not Found")),
            (r#"{"status":500}"#, None),
            ("Internal Server Error\n", Some("Internal Server Error")),
            (express, Some("Error: Already connected to a transport.")),
            ("<html><head><title>502</title></head><body><center><h1>502 Bad Gateway</h1></center></body></html>", Some("502 Bad Gateway")),
            ("<pre>Cannot POST /mcp</pre>", Some("Cannot POST /mcp")),
            ("", None),
        ];
        for (body, expected) in rows {
            assert_eq!(reason(body.as_bytes()).as_deref(), expected, "{body}");
        }
    }

    #[test]
    fn an_excerpt_is_one_line() {
        for (sent, expected) in [(&b"one\r\ntwo\tthree\n"[..], "one  two three"), (b"\xff!", "\u{fffd}!"), (b"", "")] {
            assert_eq!(excerpt(sent), expected);
        }
    }
}
