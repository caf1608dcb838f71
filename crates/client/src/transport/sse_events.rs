//! Splits an event stream into server-sent events. Knows the stream format, not what the data means.
//! Source: WHATWG HTML, "Server-sent events", interpretation of an event stream.

use mcproof_record::Raw;
use std::borrow::Cow;

/// One event: the raw bytes up to and including the blank line that ended it, and what they mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    pub raw: Vec<u8>,
    /// The `event` field.
    pub name: Option<String>,
    /// The `id` field.
    pub id: Option<String>,
    /// The `data` fields, joined by line feeds; `None` if there was none, as in a comment that keeps the stream alive.
    pub data: Option<Vec<u8>>,
    /// Where the data begins in the raw bytes, if it stands there in one piece.
    pub data_start: Option<usize>,
    /// The `retry` field, in milliseconds.
    pub retry: Option<u64>,
    /// Lines that are neither a comment nor a field of the standard.
    pub unknown: Vec<Vec<u8>>,
    /// The stream ended before the blank line: by the standard such an event does not count.
    pub unfinished: bool,
}

/// An incremental parser: bytes in chunks of any size, events out. The events are the same wherever the chunks are cut.
///
/// A lone CR ends a line as well, and an LF that follows it belongs to it. Where the lines of an event end with CRLF, its
/// last CR waits for that LF, so that the event has its own bytes; where they end with CR alone, nothing is waited for, and
/// an LF that follows all the same is counted to what comes next.
#[derive(Debug, Default)]
pub struct EventParser {
    /// What has begun; its raw bytes hold the open line as well.
    event: Event,
    /// Where in those bytes the open line begins.
    line_start: usize,
    /// The last byte was a carriage return, so a line feed now belongs to it.
    after_return: bool,
    /// The line before the open one ended with CRLF.
    after_pair: bool,
    /// An event that is complete but for the line feed of its last CRLF.
    ready: Option<Event>,
    begun: bool,
}

impl EventParser {
    /// Takes the next bytes and calls `deliver` for each event that they complete.
    pub fn feed(&mut self, bytes: &[u8], mut deliver: impl FnMut(Event)) {
        let mut rest = bytes;
        while let Some((&first, after)) = rest.split_first() {
            if std::mem::take(&mut self.after_return) {
                self.after_pair = first == b'\n';
                if self.after_pair {
                    rest = after;
                    self.ready.as_mut().unwrap_or(&mut self.event).raw.push(b'\n');
                    self.line_start = self.event.raw.len();
                }
                if let Some(event) = self.ready.take() {
                    deliver(event);
                }
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else {
                self.event.raw.extend_from_slice(rest);
                return;
            };
            self.event.raw.extend_from_slice(&rest[..=end]);
            self.after_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            let event = self.end_line(self.event.raw.len() - 1);
            if self.after_return && self.after_pair {
                self.ready = event;
            } else {
                self.after_pair = false;
                event.into_iter().for_each(&mut deliver);
            }
        }
    }

    /// What is left when the stream ends, if it is more than nothing; of what is longer than `most` bytes only the
    /// beginning, uninterpreted.
    pub fn finish(mut self, most: usize) -> Option<Event> {
        if self.ready.is_some() {
            return self.ready;
        }
        if self.pending() > most {
            self.event.raw.truncate(most);
            return Some(Event { raw: self.event.raw, unfinished: true, ..Event::default() });
        }
        let end = self.event.raw.len();
        let left = if end > self.line_start { self.end_line(end).unwrap_or(self.event) } else { self.event };
        (!is_blank(&left.raw)).then_some(Event { unfinished: true, ..left })
    }

    /// The event that has not ended yet, as far as it has come, without its raw bytes.
    pub fn begun(&self) -> Option<Event> {
        let raw = &self.event.raw;
        let mut event = Event { raw: Vec::new(), unfinished: true, ..self.event.clone_meaning() };
        if let Some(line) = raw.get(self.line_start..).filter(|line| !is_blank(line)) {
            event.read_line(line, raw.len());
        }
        (!is_blank(raw)).then_some(event)
    }

    /// Bytes of the event that has not ended yet.
    pub fn pending(&self) -> usize {
        self.event.raw.len()
    }

    /// Reads the open line, which lasts up to `end`. Returns the event that it ends by being blank.
    fn end_line(&mut self, end: usize) -> Option<Event> {
        let raw = std::mem::take(&mut self.event.raw);
        let line = &raw[self.line_start..end];
        let line = match line.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) if !self.begun => rest,
            _ => line,
        };
        self.begun = true;
        if line.is_empty() {
            self.line_start = 0;
            let event = Event { raw, ..std::mem::take(&mut self.event) };
            // Blank lines between events are no events.
            return (!is_blank(&event.raw)).then_some(event);
        }
        self.event.read_line(line, end);
        self.line_start = raw.len();
        self.event.raw = raw;
        None
    }
}

fn is_blank(raw: &[u8]) -> bool {
    raw.iter().all(|byte| matches!(byte, b'\r' | b'\n'))
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// What a line that is not blank says.
enum Field<'a> {
    Data(&'a [u8]),
    Name(&'a [u8]),
    Id(&'a [u8]),
    /// Digits.
    Retry(&'a [u8]),
    /// No field of the standard, or one whose value it ignores.
    Unknown,
}

impl<'a> Field<'a> {
    /// `None` for a comment.
    fn of(line: &'a [u8]) -> Option<Self> {
        let (name, value) = match memchr::memchr(b':', line) {
            Some(0) => return None,
            Some(colon) => (&line[..colon], line[colon + 1..].strip_prefix(b" ").unwrap_or(&line[colon + 1..])),
            None => (line, &[][..]),
        };
        Some(match name {
            b"data" => Self::Data(value),
            b"event" => Self::Name(value),
            b"id" if !value.contains(&0) => Self::Id(value),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => Self::Retry(value),
            _ => Self::Unknown,
        })
    }
}

/// What the bytes of an event mean, without a copy of what stands there in one piece. See [`Event`] for the members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventView<'a> {
    pub name: Option<Cow<'a, str>>,
    pub id: Option<Cow<'a, str>>,
    pub data: Option<Cow<'a, [u8]>>,
    pub unknown: Vec<&'a [u8]>,
    pub unfinished: bool,
}

impl<'a> EventView<'a> {
    /// The first event in these bytes, which are a whole stream.
    pub fn of(bytes: &'a [u8]) -> Self {
        let (mut view, mut rest, mut is_first, mut has_lines) = (Self::default(), bytes, true, false);
        while !rest.is_empty() {
            let end = memchr::memchr2(b'\n', b'\r', rest);
            let whole = &rest[..end.unwrap_or(rest.len())];
            let line = whole.strip_prefix(BYTE_ORDER_MARK).filter(|_| is_first).unwrap_or(whole);
            is_first = false;
            has_lines |= !whole.is_empty();
            if !line.is_empty() {
                view.read_line(line);
            }
            let Some(end) = end else { break };
            // Blank lines between events are no events.
            if line.is_empty() && has_lines {
                return view;
            }
            rest = rest[end..].strip_prefix(b"\r\n").unwrap_or(&rest[end + 1..]);
        }
        Self { unfinished: has_lines, ..view }
    }

    fn read_line(&mut self, line: &'a [u8]) {
        match Field::of(line) {
            Some(Field::Data(value)) => match &mut self.data {
                Some(data) => {
                    let data = data.to_mut();
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                none => *none = Some(Cow::Borrowed(value)),
            },
            Some(Field::Name(value)) => self.name = Some(String::from_utf8_lossy(value)),
            Some(Field::Id(value)) => self.id = Some(String::from_utf8_lossy(value)),
            Some(Field::Unknown) => self.unknown.push(line),
            Some(Field::Retry(_)) | None => {}
        }
    }
}

/// Why no client takes a message from an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventFlaw {
    /// It stands in a line that is no `data` field: here is that line.
    NoData(Vec<u8>),
    /// The blank line is missing.
    Unfinished,
}

impl Event {
    /// What keeps clients from the message in it, if there seems to be one.
    pub fn flaw(&self) -> Option<EventFlaw> {
        // Fields that the standard does not know are ignored by all: only what looks like a message is missed by somebody.
        let is_meant = matches!(self.name.as_deref(), Some("message" | "endpoint"));
        let stray = self.unknown.iter().find(|line| is_meant || line.contains(&b'{'));
        match (&self.data, stray) {
            (None, Some(line)) => Some(EventFlaw::NoData(line.clone())),
            (Some(data), _) if self.unfinished && !data.is_empty() => Some(EventFlaw::Unfinished),
            _ => None,
        }
    }

    /// The raw bytes, which are taken out of it, and the data, which has no memory of its own if it stands there in one piece.
    pub fn take_bytes(&mut self) -> (Raw, Option<Raw>) {
        let raw = Raw::from(std::mem::take(&mut self.raw));
        let data = self.data.as_ref().map(|data| match self.data_start {
            Some(start) if raw.as_bytes()[start.min(raw.len())..].starts_with(data) => raw.part(start..start + data.len()),
            _ => data.as_slice().into(),
        });
        (raw, data)
    }

    fn clone_meaning(&self) -> Self {
        let Self { raw: _, name, id, data, data_start: _, retry, unknown, unfinished } = self;
        let (name, id, data, unknown) = (name.clone(), id.clone(), data.clone(), unknown.clone());
        Self { raw: Vec::new(), name, id, data, data_start: None, retry: *retry, unknown, unfinished: *unfinished }
    }

    /// Takes in a line that is not blank and ends at `end` of the raw bytes.
    fn read_line(&mut self, line: &[u8], end: usize) {
        let text = |value| String::from_utf8_lossy(value).into_owned();
        match Field::of(line) {
            Some(Field::Data(value)) => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                    self.data_start = None;
                }
                none => {
                    *none = Some(value.to_vec());
                    self.data_start = Some(end - value.len());
                }
            },
            Some(Field::Name(value)) => self.name = Some(text(value)),
            Some(Field::Id(value)) => self.id = Some(text(value)),
            Some(Field::Retry(value)) => self.retry = text(value).parse().ok(),
            Some(Field::Unknown) => self.unknown.push(line.to_vec()),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Event> {
        let mut parser = EventParser::default();
        let mut found = Vec::new();
        for chunk in chunks {
            parser.feed(chunk, |event| found.push(event));
        }
        found.extend(parser.finish(usize::MAX));
        found
    }

    /// An event as text: name, id, data, unknown lines; `…` where the stream broke off.
    fn show(event: &Event) -> String {
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        let mut parts = Vec::new();
        parts.extend(event.name.as_ref().map(|name| format!("event={name}")));
        parts.extend(event.id.as_ref().map(|id| format!("id={id}")));
        parts.extend(event.retry.map(|retry| format!("retry={retry}")));
        parts.extend(event.data.as_ref().map(|data| format!("data={}", text(data))));
        parts.extend(event.unknown.iter().map(|line| format!("unknown={}", text(line))));
        parts.extend(event.unfinished.then(|| "…".to_owned()));
        parts.join(" ")
    }

    fn check(input: &str, expected: &[&str]) {
        for input in [input.to_owned(), input.replace('\n', "\r\n"), input.replace('\n', "\r")] {
            let bytes = input.as_bytes();
            for first in 0..=bytes.len() {
                for second in first..=bytes.len() {
                    let found = events([&bytes[..first], &bytes[first..second], &bytes[second..]]);
                    let shown: Vec<String> = found.iter().map(show).collect();
                    assert_eq!(shown, expected, "{input:?} cut at {first} and {second}");
                    assert_eq!(found, events([bytes]), "{input:?} cut at {first} and {second}");
                }
            }
        }
    }

    #[test]
    fn events_are_the_same_wherever_the_stream_is_cut_and_however_lines_end() {
        check("", &[]);
        check("\n\n", &[]);
        check("data: a\n\n", &["data=a"]);
        check("data:a\n\n\n\ndata: b\n\n", &["data=a", "data=b"]);
        check("event: message\nid: 7\ndata: {\ndata: }\n\n", &["event=message id=7 data={\n}"]);
        check(": keep-alive\n\n", &[""]);
        check("data\n\n", &["data="]);
        check("data:  two\n\n", &["data= two"]);
        check("retry: 500\nretry: soon\n\n", &["retry=500 unknown=retry: soon"]);
        check("{\"jsonrpc\":1}\n\n", &["unknown={\"jsonrpc\":1}"]);
        check("data: ä\n\n", &["data=ä"]);
        check("data: a\n", &["data=a …"]);
        check("data: a", &["data=a …"]);
        check("\u{feff}data: a\n\n", &["data=a"]);
    }

    /// Pieces of event streams, so that generated input hits more than comments.
    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop::sample::select(vec![
            &b"data: "[..],
            b"data",
            b"event:x",
            b"id: 7",
            b"retry: 5",
            b":",
            b"\n",
            b"\r",
            b"\r\n",
            b"\n\n",
            b"{}",
            b"\xef\xbb\xbf",
            b"\xff",
            b"\0",
        ]);
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn any_chunks_give_the_events_of_the_whole_stream(bytes in stream(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).chain([0, bytes.len()]).collect();
            cuts.sort_unstable();
            let chunks = cuts.windows(2).map(|ends| &bytes[ends[0]..ends[1]]);
            prop_assert_eq!(events(chunks), events([&bytes[..]]));
        }

        #[test]
        fn a_view_shows_what_the_first_event_means(bytes in stream()) {
            let first = events([&bytes[..]]).into_iter().next().unwrap_or_default();
            let view = EventView::of(&bytes);
            prop_assert_eq!(view.data.as_deref(), first.data.as_deref());
            prop_assert_eq!((view.name.as_deref(), view.id.as_deref()), (first.name.as_deref(), first.id.as_deref()));
            prop_assert_eq!((view.unknown, view.unfinished), (first.unknown.iter().map(Vec::as_slice).collect(), first.unfinished));
        }
    }

    #[test]
    fn an_event_has_its_own_line_ends_and_waits_only_for_the_second_half_of_a_crlf() {
        let check = |chunks: &[&str], expected: &[&[&str]]| {
            let mut parser = EventParser::default();
            for (chunk, expected) in chunks.iter().zip(expected) {
                let mut found = Vec::new();
                parser.feed(chunk.as_bytes(), |event| found.push(String::from_utf8(event.raw).unwrap()));
                assert_eq!(&found, expected, "{chunk:?} of {chunks:?}");
            }
            assert_eq!(parser.finish(usize::MAX).map(|event| event.unfinished), None);
        };
        check(&["data: a\r\n\r", "\n"], &[&[], &["data: a\r\n\r\n"]]);
        check(&["data: a\r", "\n\r\ndata: b\n\n"], &[&[], &["data: a\r\n\r\n", "data: b\n\n"]]);
        check(&["data: a\r\r", "data: b\r\r"], &[&["data: a\r\r"], &["data: b\r\r"]]);
        check(&["data: a\n\r", "\ndata: b\n\n"], &[&["data: a\n\r"], &["\ndata: b\n\n"]]);
        let mut parser = EventParser::default();
        parser.feed(b"data: a\r\n\r", |_| panic!("the line feed may still come"));
        assert_eq!(parser.finish(usize::MAX).map(|event| event.unfinished), Some(false));
    }

    #[test]
    fn a_message_that_no_client_takes_is_told_also_while_its_event_is_open() {
        let check = |input: &str, expected: Option<EventFlaw>| {
            let mut parser = EventParser::default();
            let mut found = None;
            parser.feed(input.as_bytes(), |event| found = event.flaw());
            assert_eq!(found.or(parser.begun().and_then(|event| event.flaw())), expected, "{input:?}");
        };
        let no_data = |line: &str| Some(EventFlaw::NoData(line.into()));
        check("data: {\"id\":1}\n\n", None);
        check("data: {\"id\":1}\n", Some(EventFlaw::Unfinished));
        check("data: {\"id\":1}", Some(EventFlaw::Unfinished));
        check("event: message\n{\"id\":1}\n\n", no_data("{\"id\":1}"));
        check("{\"id\":1}", no_data("{\"id\":1}"));
        check("Data: {}\n\n", no_data("Data: {}"));
        check(": ping {}\n", None);
        check("heartbeat\n\n", None);
        check("event: endpoint\n/messages\n\n", no_data("/messages"));
        check("note: {\ndata: {}\n\n", None);
        check("event: message\n", None);
    }

    #[test]
    fn raw_bytes_are_kept() {
        for input in ["data: a\n\ndata: b\r\n\r\n:c\n\nx", "data: a\r\rdata: b\r\n\n"] {
            let mut raw = Vec::new();
            let mut parser = EventParser::default();
            parser.feed(input.as_bytes(), |event| raw.extend(event.raw));
            raw.extend(parser.finish(usize::MAX).into_iter().flat_map(|event| event.raw));
            assert_eq!(String::from_utf8(raw).unwrap(), input);
        }
    }

    #[test]
    fn data_in_one_piece_is_found_in_the_raw_bytes() {
        let check = |input: &str, expected: Option<usize>| {
            for found in events([input.as_bytes()]) {
                assert_eq!(found.data_start, expected, "{input:?}");
                let data = found.data.unwrap_or_default();
                assert!(expected.is_none_or(|start| found.raw[start..].starts_with(&data)), "{input:?}");
            }
        };
        check("data: {}\n\n", Some(6));
        check("\u{feff}data:{}\r\n\r\n", Some(8));
        check("event: message\ndata: {}\nid: 7\n\n", Some(21));
        check("data: {}", Some(6));
        check("data: {\ndata: }\n\n", None);
        check("event: message\n\n", None);
    }
}
