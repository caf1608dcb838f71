//! Lines on stdout that are not messages: the remedy for each form that is known. Knows bytes only.

use mcproof_record::without_half_surrogates;
use regex::bytes::Regex;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::sync::LazyLock;

/// The begin of a message, also in notations that are not JSON.
static BEGIN: LazyLock<Regex> = LazyLock::new(|| pattern(r#"\{ ?["']?(jsonrpc|id|result|error|method)["']? ?:"#));
static BANNER: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(> \S+@\d\S* \S+( \S+)?|yarn run v\d\S*)$"));
static LENGTH: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)^content-(length|type):"));
static COLOR: LazyLock<Regex> = LazyLock::new(|| pattern(r"\x1b\[[0-9;]*[A-Za-z]"));

/// What JSON takes for whitespace (RFC 8259, section 2), and nothing else: no form feed, no U+00A0.
pub const JSON_WHITESPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// Whether there is nothing but such whitespace.
pub fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| JSON_WHITESPACE.contains(&char::from(*byte)))
}

/// Without the whitespace around it.
fn trimmed(bytes: &[u8]) -> &[u8] {
    let is_content = |byte: &u8| !is_blank(&[*byte]);
    let start = bytes.iter().position(is_content).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(is_content).map_or(start, |last| last + 1);
    &bytes[start..end]
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("patterns of the program are valid")
}

/// The remedy for a line that is not a message and has one of the forms in which messages, or the lines of a package manager, end up on
/// stdout. `None` for all others, such as logs.
pub fn remedy_for_line(line: &[u8]) -> Option<&'static str> {
    if is_utf_16(line) {
        return Some(
            "write UTF-8: stdout is UTF-16 (in PowerShell, set `[Console]::OutputEncoding` to UTF-8, and do not redirect through `>`)",
        );
    }
    if line.contains(&0) {
        return Some("end each message with a line feed: there is a NUL byte in the line");
    }
    let line = trimmed(line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line));
    if let Some(remedy) = remedy_for_banner(line) {
        return Some(remedy);
    }
    if is_header(line) {
        return Some("write each message on a line of its own and nothing else: MCP over stdio has no headers, unlike LSP");
    }
    if COLOR.is_match(line) && BEGIN.is_match(line) {
        return Some("write messages without colors: there are terminal escape sequences in the line");
    }
    if line.starts_with(b"data:") || line.starts_with(b"event:") {
        return Some("write the message alone on its line: `data:` belongs to event streams over HTTP");
    }
    if has_half_surrogate(line) {
        return Some(CUT_CHARACTER);
    }
    let begin = BEGIN.find(line)?.start();
    let mut values = serde_json::Deserializer::from_slice(&line[begin..]).into_iter::<IgnoredAny>();
    let first = values.next()?;
    Some(match (first, values.next()) {
        (Ok(_), Some(Ok(_))) => "end each message with a line feed: several are on one line",
        (Ok(_), Some(Err(_))) => "write the message alone on its line: there is something else after it",
        (Ok(_), None) if begin > 0 => "write the message alone on its line: there is something else before it",
        (Ok(_), None) => return None,
        (Err(error), _) if error.is_eof() => return None,
        (Err(error), _) if has_no_number(&line[begin..], error.column()) => {
            "JSON has no `NaN` and no `Infinity`: write null, or leave the member out"
        }
        (Err(_), _) if line[begin..].starts_with(b"{'") => {
            "serialize messages as JSON: the line has single quotes, as Python and JavaScript print objects"
        }
        (Err(_), _) => "serialize messages with a JSON library: the line is not valid JSON",
    })
}

/// The remedy for what [`has_half_surrogate`].
pub(crate) const CUT_CHARACTER: &str = "cut texts between characters: half of a surrogate pair is left, such as `\\ud83d` of an emoji, \
                                        and clients that read JSON strictly drop the whole message";

/// Whether a message is one but for half of a surrogate pair, as JavaScript writes it where a text is cut within a character.
pub fn has_half_surrogate(line: &[u8]) -> bool {
    BEGIN.is_match(line) && without_half_surrogates(line).is_some_and(|mended| serde_json::from_slice::<Value>(&mended).is_ok())
}

/// The remedy for lines that a package manager prints before it runs a script, if this is one of them.
pub(crate) fn remedy_for_banner(line: &[u8]) -> Option<&'static str> {
    const REMEDY: &str =
        "these lines are from the package manager: start the server with `npm --silent start`, or with the command of that script";
    BANNER.is_match(line.trim_ascii_end()).then_some(REMEDY)
}

/// Whether a line is a header of the framing that the Language Server Protocol has.
pub fn is_header(line: &[u8]) -> bool {
    LENGTH.is_match(line)
}

/// Whether every second byte of a line is zero, but for a byte order mark. The second byte of a line feed begins the next line.
pub fn is_utf_16(line: &[u8]) -> bool {
    const LEAST: usize = 8;
    let line = line.strip_prefix(b"\0").filter(|rest| rest.starts_with(b"\xff\xfe")).unwrap_or(line);
    let text = line.strip_prefix(b"\xff\xfe").or_else(|| line.strip_prefix(b"\xfe\xff")).unwrap_or(line);
    let zero = |offset: usize| text.iter().skip(offset).step_by(2).all(|byte| *byte == 0);
    text.len() >= LEAST && (zero(0) != zero(1))
}

/// Whether JSON ends at `column`, counted from 1, for a number that it does not have.
fn has_no_number(line: &[u8], column: usize) -> bool {
    let rest = line.get(column.saturating_sub(1)..).unwrap_or_default();
    let rest = &rest[rest.iter().take_while(|byte| matches!(byte, b'-' | b':' | b' ')).count()..];
    ["NaN", "Infinity", "nan", "inf"].iter().any(|word| rest.starts_with(word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &str = r#"{"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}"#;

    #[test]
    fn a_line_gets_the_remedy_for_its_form() {
        let utf_16 = |mark: &[u8]| [mark, &MESSAGE.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>()].concat();
        let rows: [(Vec<u8>, Option<&str>); 27] = [
            (utf_16(b""), Some("UTF-16")),
            (utf_16(b"\xff\xfe"), Some("UTF-16")),
            (utf_16(b"\0\xff\xfe"), Some("UTF-16")),
            (format!("{MESSAGE}\0").into(), Some("NUL")),
            ("> notes@1.0.0 start".into(), Some("package manager")),
            ("> @scope/notes@0.3.0-beta.1 start /home/me/notes".into(), Some("package manager")),
            ("yarn run v1.22.22\n".into(), Some("package manager")),
            ("> node server.js".into(), None),
            ("> mail me@example.com now".into(), None),
            ("listening@1.0.0".into(), None),
            ("Content-Length: 180\r".into(), Some("LSP")),
            (format!("\x1b[32m{MESSAGE}\x1b[0m").into(), Some("colors")),
            ("\x1b[32mINFO\x1b[0m started".into(), None),
            (format!("data: {MESSAGE}").into(), Some("event streams")),
            (format!("INFO: {MESSAGE}").into(), Some("before it")),
            (format!("{MESSAGE} sent").into(), Some("after it")),
            (format!("{MESSAGE}{MESSAGE}").into(), Some("several")),
            (MESSAGE.replace('"', "'").into(), Some("single quotes")),
            (MESSAGE.replace("[]", "NaN").into(), Some("NaN")),
            (MESSAGE.replace("[]", "[-Infinity]").into(), Some("NaN")),
            (MESSAGE.replace("}}", "},}").into(), Some("a JSON library")),
            (MESSAGE.replace("[]", r#""\ud83d""#).into(), Some("between characters")),
            (MESSAGE.replace("[]", r#""\ud83d\ude00""#).into(), None),
            (MESSAGE.into(), None),
            ("{".into(), None),
            (r#"{"level": "info", "message": "started"}"#.into(), None),
            ("Listening on port 3000".into(), None),
        ];
        for (line, expected) in rows {
            let remedy = remedy_for_line(&line);
            let is_it = expected.map_or(remedy.is_none(), |part| remedy.is_some_and(|remedy| remedy.contains(part)));
            assert!(is_it, "{}: {remedy:?}", String::from_utf8_lossy(&line));
        }
    }
}
