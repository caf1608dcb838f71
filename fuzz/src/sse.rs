//! Events are the same wherever the stream is cut, equal those of the standard's algorithm, and contain every byte
//! except blank lines.

use crate::pieces;
use mcproof_client::transport::{Event, EventParser};

/// # Panics
/// If a property does not hold.
pub fn check(bytes: &[u8]) {
    let (pieces, whole) = pieces(bytes);
    let events = events([whole]);
    assert_eq!(self::events(pieces), events, "cut and uncut");
    assert_eq!(events.iter().filter_map(meaning).collect::<Vec<_>>(), expected(whole), "the standard's algorithm");
    let kept: Vec<u8> = events.iter().flat_map(|event| event.raw.iter().copied()).filter(not_line_end).collect();
    assert_eq!(kept, whole.iter().copied().filter(not_line_end).collect::<Vec<_>>(), "every byte is kept");
}

fn not_line_end(byte: &u8) -> bool {
    !matches!(byte, b'\r' | b'\n')
}

fn events<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Event> {
    let mut parser = EventParser::default();
    let mut events = Vec::new();
    for piece in pieces {
        parser.feed(piece, |event| events.push(event));
    }
    events.extend(parser.finish(usize::MAX));
    events
}

/// What a client that follows the standard sees of an event.
#[derive(Debug, PartialEq, Eq)]
struct Meaning {
    name: String,
    data: String,
    id: Option<String>,
}

fn meaning(event: &Event) -> Option<Meaning> {
    let data = event.data.as_ref().filter(|_| !event.unfinished)?;
    let data = String::from_utf8_lossy(data).into_owned();
    Some(Meaning { name: event.name.clone().unwrap_or_default(), data, id: event.id.clone() })
}

/// WHATWG HTML, "Interpreting an event stream", on the whole stream at once. Unlike there, an id belongs to its own event,
/// and a `data` field that is empty makes an event.
fn expected(whole: &[u8]) -> Vec<Meaning> {
    let whole = whole.strip_prefix(b"\xef\xbb\xbf").unwrap_or(whole);
    let mut text = Vec::new();
    for (index, byte) in whole.iter().enumerate() {
        match byte {
            b'\n' if index > 0 && whole[index - 1] == b'\r' => {}
            b'\r' => text.push(b'\n'),
            _ => text.push(*byte),
        }
    }
    let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    // Text after the last line end is not a line.
    lines.pop();
    let mut events = Vec::new();
    let (mut name, mut id, mut data) = (String::new(), None, None::<Vec<&[u8]>>);
    for line in lines {
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], line[colon + 1..].strip_prefix(b" ").unwrap_or(&line[colon + 1..])),
            None => (line, &b""[..]),
        };
        let value_text = || String::from_utf8_lossy(value).into_owned();
        match field {
            _ if line.is_empty() => {
                let (name, id) = (std::mem::take(&mut name), id.take());
                events.extend(data.take().map(|data| Meaning { name, data: String::from_utf8_lossy(&data.join(&b'\n')).into_owned(), id }));
            }
            b"event" => name = value_text(),
            b"data" => data.get_or_insert_default().push(value),
            b"id" if !value.contains(&0) => id = Some(value_text()),
            _ => {}
        }
    }
    events
}
