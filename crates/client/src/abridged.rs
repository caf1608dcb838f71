//! Messages whose long texts are cut before they are kept, so that a few large ones do not crowd out all others. What surrounds a text stays
//! as it came, byte for byte.

use mcproof_record::{ABRIDGED, Direction, FrameBody, Raw};
use memchr::memchr2;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Texts with more bytes are cut.
const LONGEST: usize = 64 << 10;
/// Bytes that are kept of them.
const KEPT: usize = 1 << 10;

/// A frame with its long texts cut: all of what mcproof sent itself, and of the server what is only there to be read, the `text` of contents and
/// the `data` of logs. Binary data, and whatever a schema may describe, stay whole.
pub(crate) fn abridged(body: FrameBody, direction: Direction) -> FrameBody {
    let cut = |raw: Raw| cut(raw.as_bytes(), direction).map_or(raw, Raw::from);
    match body {
        FrameBody::Line { bytes, unterminated } => FrameBody::Line { bytes: cut(bytes), unterminated },
        FrameBody::HttpBody { exchange, bytes } => FrameBody::HttpBody { exchange, bytes: cut(bytes) },
        FrameBody::HttpRequest { exchange, method, url, headers, body } => {
            FrameBody::HttpRequest { exchange, method, url, headers, body: cut(body) }
        }
        FrameBody::SseEvent { exchange, bytes, event, id, data } if bytes.len() > LONGEST => {
            FrameBody::SseEvent { exchange, bytes: cut(bytes), event, id, data: data.map(cut) }
        }
        other => other,
    }
}

/// `None` if there is nothing to cut.
fn cut(bytes: &[u8], direction: Direction) -> Option<Vec<u8>> {
    if bytes.len() <= LONGEST {
        return None;
    }
    let (mut left, mut copied, mut at, mut name) = (Vec::new(), 0, 0, None);
    while let Some(begin) = memchr::memchr(b'"', &bytes[at..]).map(|found| at + found + 1) {
        let Some(end) = end_of_string(bytes, begin) else { break };
        let text = &bytes[begin..end];
        let is_name = bytes[end + 1..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
        let may_be_cut =
            direction == Direction::ToServer || name == Some(&b"text"[..]) || name == Some(&b"data"[..]) && text.contains(&b' ');
        if text.len() > LONGEST && !is_name && may_be_cut && is_plain(text) {
            left.extend_from_slice(&bytes[copied..begin + kept(text)]);
            left.extend_from_slice(mark(text).as_bytes());
            copied = end;
        }
        name = is_name.then_some(text);
        at = end + 1;
    }
    (copied > 0).then(|| {
        left.extend_from_slice(&bytes[copied..]);
        left
    })
}

/// Where the quote is that ends a string; `None` if there is none.
fn end_of_string(bytes: &[u8], begin: usize) -> Option<usize> {
    let mut at = begin;
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// Whether nothing is wrong in a text that rules would find.
fn is_plain(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok() && text.iter().all(|byte| *byte >= b' ')
}

/// How much of a text stays: no character and no escape is cut in two, and no pair of surrogates.
fn kept(text: &[u8]) -> usize {
    let mut at = 0;
    while at < KEPT {
        at += match &text[at..] {
            [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', _, _, b'\\', b'u', ..] => 12,
            [b'\\', b'u', ..] => 6,
            [b'\\', ..] => 2,
            [0xf0..=0xff, ..] => 4,
            [0xe0..=0xef, ..] => 3,
            [0xc0..=0xdf, ..] => 2,
            _ => 1,
        };
    }
    at
}

/// What stands for the rest: texts that differ are told apart by it.
fn mark(text: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{ABRIDGED}{} bytes, {:016x}]", text.len(), hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn line(text: &str, direction: Direction) -> String {
        let FrameBody::Line { bytes, .. } = abridged(FrameBody::Line { bytes: text.into(), unterminated: false }, direction) else {
            unreachable!("a line stays one")
        };
        bytes.to_text().into_owned()
    }

    #[test]
    fn long_texts_are_cut_and_everything_else_stays() {
        let check = |message: &Value, direction: Direction, is_cut: bool| {
            let text = message.to_string();
            let kept = line(&text, direction);
            assert_eq!(kept != text, is_cut, "{} of {} bytes", kept.len(), text.len());
            assert!(!is_cut || kept.len() < 10_000, "{} bytes", kept.len());
            let read: Value = serde_json::from_str(&kept).unwrap();
            assert_eq!(read["id"], message["id"]);
        };
        let long = "ab \"\\\n\u{1f600}ü".repeat(20_000);
        let result = |text: &str| json!({ "id": 1, "result": { "content": [{ "type": "text", "text": text }] } });
        check(&result(&long), Direction::FromServer, true);
        check(&result("short"), Direction::FromServer, false);
        check(
            &json!({ "id": 1, "result": { "content": [{ "type": "image", "data": "A".repeat(100_000) }] } }),
            Direction::FromServer,
            false,
        );
        let log = json!({ "method": "notifications/message", "params": { "level": "info", "data": long } });
        check(&log, Direction::FromServer, true);
        check(&json!({ "id": 1, "result": { "structuredContent": { "value": long } } }), Direction::FromServer, false);
        check(&json!({ "id": 1, "params": { "arguments": { "a": long, "b": [long, long] } } }), Direction::ToServer, true);
        // Texts that differ at their end only are told apart.
        let (one, other) = (result(&(long.clone() + "1")).to_string(), result(&(long + "2")).to_string());
        assert_ne!(line(&one, Direction::FromServer), line(&other, Direction::FromServer));
    }

    #[test]
    fn what_is_not_valid_stays_as_it_came() {
        for text in [format!("{{\"text\":\"{}", "a".repeat(100_000)), format!("{{\"text\":\"{}\t\"}}", "a".repeat(100_000))] {
            assert_eq!(line(&text, Direction::FromServer), text);
        }
        let escaped = format!("{{\"id\":1,\"text\":\"{}\"}}", "\\ud83d\\ude00".repeat(10_000));
        assert!(serde_json::from_str::<Value>(&line(&escaped, Direction::FromServer)).is_ok_and(|value| value["id"] == 1));
        // Half of a pair is as long as any other escape, so that what follows it is not cut in two.
        let half = format!("{{\"id\":1,\"text\":\"{}\\ud83dabcde\\n{}\"}}", "a".repeat(KEPT - 1), "a".repeat(LONGEST));
        assert!(line(&half, Direction::FromServer).contains("\\ud83d… ["));
    }
}
