//! Conversations as a person writes them down: the examples of the rules, which are tested by being judged.
//!
//! One frame a line:
//! - `> {…}` and `< {…}`: a line on stdin and stdout, or the body of the HTTP request or response that has just begun; in
//!   what comes from the server `\r` and `\xfc` stand for bytes
//! - `> POST /mcp accept: a | origin: b`: the head of an HTTP request; `< 200 content-type: a`: that of its response
//! - `< data: …`: an event with its blank line, `\n` standing for a line break; `<~ …` the same without one: as it stands, with `\r` and
//!   `\xNN` for other bytes
//! - `! exited 1`, `! closed stdin`, `! signal SIGTERM`, `! broken …` (the HTTP exchange), `! spawned`: what nobody said
//! - `! left 7 8`: these processes were left behind when the server was ended; none, if there are no numbers
//! - `@ PROBE SUBJECT`: what follows was tried as this probe; `@ PROBE! SUBJECT`: no answer came to it in time; `@ PROBE?
//!   SUBJECT`: the connection ended before
//! - `~ 6000`: milliseconds pass

use mcproof_client::transport::EventParser;
use mcproof_record::{
    Conversation, Direction, Ending, ExchangeId, Frame, FrameBody, FrameId, Opened, ProbeOutcome, Probed, Raw, Transcript,
};
use std::time::Duration;

/// Reads an example as a take over a transport and in a revision.
///
/// # Panics
/// A line is in none of the forms: examples are part of the program.
pub fn read(text: &str, transport: &str, revision: &str) -> Conversation {
    let mut reader = Reader { frames: Vec::new(), probes: Vec::new(), exchange: None, exchanges: 0, at: Duration::ZERO, ending: None };
    text.lines().map(str::trim).filter(|line| !line.is_empty()).for_each(|line| reader.line(line));
    reader.end_probe();
    let transcript = Transcript { frames: reader.frames, dropped: 0 };
    Conversation {
        name: "example".into(),
        transport: transport.into(),
        revision: revision.into(),
        opened: Opened::Yes,
        probes: reader.probes,
        ending: reader.ending,
        sdks: Vec::new(),
        transcript,
    }
}

struct Reader {
    frames: Vec<Frame>,
    probes: Vec<Probed>,
    exchange: Option<ExchangeId>,
    exchanges: u64,
    at: Duration,
    ending: Option<Ending>,
}

impl Reader {
    fn line(&mut self, line: &str) {
        let (mark, rest) = line.split_once(' ').unwrap_or((line, ""));
        match mark {
            ">" => self.sent(rest),
            "<" => self.came(rest),
            "<~" => self.event(&raw(rest)),
            "!" => self.happened(rest),
            "@" => self.probe(rest),
            "~" => self.at += Duration::from_millis(rest.parse().expect("an example gives a number of milliseconds")),
            _ => panic!("`{line}` is no line of an example"),
        }
    }

    fn push(&mut self, direction: Direction, body: FrameBody) {
        let id = FrameId(self.frames.len() as u64);
        self.at += Duration::from_millis(1);
        self.frames.push(Frame { id, at: self.at, direction, body });
    }

    fn sent(&mut self, text: &str) {
        let first = text.split(' ').next().unwrap_or_default();
        if ["GET", "POST", "DELETE", "OPTIONS"].contains(&first) {
            let mut words = text.splitn(3, ' ').skip(1);
            let exchange = ExchangeId(self.exchanges);
            self.exchanges += 1;
            self.exchange = Some(exchange);
            let url = format!("http://127.0.0.1:3000{}", words.next().unwrap_or("/mcp"));
            let headers = headers(words.next().unwrap_or_default());
            let body = FrameBody::HttpRequest { exchange, method: first.into(), url, headers, body: Raw::default() };
            return self.push(Direction::ToServer, body);
        }
        let in_exchange = self.exchange.is_some();
        match self.frames.last_mut().map(|frame| &mut frame.body) {
            Some(FrameBody::HttpRequest { body, .. }) if in_exchange => *body = text.into(),
            _ => self.push(Direction::ToServer, FrameBody::Line { bytes: text.into(), unterminated: false }),
        }
    }

    fn came(&mut self, text: &str) {
        let status = text.get(..3).and_then(|digits| digits.parse::<u16>().ok());
        match (self.exchange, status) {
            (Some(exchange), Some(status)) => {
                let headers = headers(text.get(4..).unwrap_or_default());
                self.push(Direction::FromServer, FrameBody::HttpResponse { exchange, status, headers });
            }
            (Some(_), None) if ["data:", "event:", "id:", ":"].iter().any(|field| text.starts_with(field)) => {
                self.event(format!("{}\n\n", text.replace("\\n", "\n")).as_bytes());
            }
            (Some(exchange), None) => {
                self.push(Direction::FromServer, FrameBody::HttpBody { exchange, bytes: with_bytes(text).as_slice().into() })
            }
            (None, _) => {
                self.push(Direction::FromServer, FrameBody::Line { bytes: with_bytes(text).as_slice().into(), unterminated: false });
            }
        }
    }

    fn event(&mut self, bytes: &[u8]) {
        let exchange = self.exchange.expect("an event belongs to an exchange");
        let (mut parser, mut events) = (EventParser::default(), Vec::new());
        parser.feed(bytes, |event| events.push(event));
        events.extend(parser.finish(usize::MAX));
        for event in events {
            let body = FrameBody::SseEvent {
                exchange,
                bytes: event.raw.as_slice().into(),
                event: event.name,
                id: event.id,
                data: event.data.map(|data| data.as_slice().into()),
            };
            self.push(Direction::FromServer, body);
        }
    }

    fn happened(&mut self, text: &str) {
        let (what, rest) = text.split_once(' ').unwrap_or((text, ""));
        if what == "left" {
            let left_behind = rest.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect();
            self.ending = Some(Ending { left_behind, ..Ending::default() });
            return;
        }
        let body = match what {
            "exited" => FrameBody::Exited { code: rest.parse().ok(), signal: None },
            "spawned" => FrameBody::Spawned { pid: 1, command: vec!["server".into()] },
            "closed" => FrameBody::Closed { pipe: rest.into() },
            "signal" => FrameBody::Signalled { signal: rest.into() },
            "note" => FrameBody::Note { text: rest.into() },
            "broken" => FrameBody::HttpEnd { exchange: self.exchange.expect("an exchange breaks"), error: Some(rest.into()) },
            "ended" => FrameBody::HttpEnd { exchange: self.exchange.expect("an exchange ends"), error: None },
            _ => panic!("`! {text}` is nothing that happens in an example"),
        };
        self.push(Direction::Local, body);
    }

    fn probe(&mut self, text: &str) {
        self.end_probe();
        let (probe, subject) = text.split_once(' ').map_or((text, None), |(probe, subject)| (probe, Some(subject.to_owned())));
        let outcome = match probe.chars().last() {
            Some('!') => ProbeOutcome::Silent,
            Some('?') => ProbeOutcome::Gone,
            _ => ProbeOutcome::Done,
        };
        let first = FrameId(self.frames.len() as u64);
        self.probes.push(Probed { probe: probe.trim_end_matches(['!', '?']).into(), subject, first, end: FrameId(u64::MAX), outcome });
    }

    fn end_probe(&mut self) {
        let end = FrameId(self.frames.len() as u64);
        if let Some(open) = self.probes.last_mut().filter(|open| open.end == FrameId(u64::MAX)) {
            open.end = end;
        }
    }
}

/// A text with its escapes as the bytes that they stand for: `\n`, `\r`, and `\xNN`.
fn raw(text: &str) -> Vec<u8> {
    with_bytes(&text.replace("\\n", "\n"))
}

/// The bytes of a line on stdout, in which `\n` belongs to JSON.
fn with_bytes(text: &str) -> Vec<u8> {
    let text = text.replace("\\r", "\r");
    let mut pieces = text.split("\\x");
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let (digits, rest) = piece.split_at(2);
        bytes.push(u8::from_str_radix(digits, 16).expect("two hexadecimal digits follow"));
        bytes.extend_from_slice(rest.as_bytes());
    }
    bytes
}

fn headers(text: &str) -> Vec<(String, String)> {
    text.split('|').filter_map(|pair| pair.split_once(':')).map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}
