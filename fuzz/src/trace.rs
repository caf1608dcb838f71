//! Every trace is judged by all rules, with the same result each time, is read as it was written, and can be shown. An input is a report in
//! JSON, or else the lines of a conversation: `> ` what the client sent, `< ` what the server did, `s ` an event of it, `h ` a status and
//! headers of an HTTP response, `e ` stderr, `o ` stdout, `n ` a note, `p ` a probe that begins; the first line has the transport and
//! the revision.

use mcproof_contract as contract;
use mcproof_record::{
    CheckReport, Conversation, Direction, ExchangeId, Frame, FrameBody, FrameId, Opened, ProbeOutcome, Probed, Transcript,
};
use mcproof_report::{Style, check as shown};
use mcproof_rules::{self as rules, Strictness};
use std::sync::LazyLock;
use std::time::Duration;

static RULES: LazyLock<Vec<&'static rules::Rule>> = LazyLock::new(|| rules::select(&[], &[]).expect("nothing is named"));

/// # Panics
/// If a property does not hold.
pub fn check(bytes: &[u8]) {
    let takes = match serde_json::from_slice::<CheckReport>(bytes) {
        Ok(report) => report.conversations,
        Err(_) => match std::str::from_utf8(bytes) {
            Ok(text) => vec![conversation(text)],
            Err(_) => return,
        },
    };
    let report = rules::report("fuzzed".to_owned(), &RULES, takes, Strictness::Tolerant);
    let written = serde_json::to_vec(&report).expect("a report has text keys only");
    let read: CheckReport = serde_json::from_slice(&written).expect("what was written is read");
    assert_eq!(read, report, "read as it was written");
    let again = rules::report("fuzzed".to_owned(), &RULES, read.conversations, Strictness::Tolerant);
    assert_eq!(again.rules, report.rules, "judged alike");
    let text = shown::render(&report, &Style::default());
    let hostile = text.chars().find(|character| character.is_control() && *character != '\n');
    assert_eq!(hostile, None, "{text:?}");
    // A trace with enough messages yields a contract.
    let _ = contract::of_check(&report.conversations);
}

/// A conversation from its lines.
fn conversation(text: &str) -> Conversation {
    let mut lines = text.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let transport = words.next().filter(|word| ["stdio", "http", "sse"].contains(word)).unwrap_or("stdio");
    let name = words.next().filter(|name| !name.is_empty()).unwrap_or("legacy");
    let revision = words.next().unwrap_or("2025-11-25");
    let mut told = Told { frames: Vec::new(), probes: Vec::new(), exchange: 0, is_http: transport != "stdio" };
    lines.for_each(|line| told.tell(line));
    let Told { frames, probes, .. } = told;
    let transcript = Transcript { frames, dropped: 0 };
    let (name, transport, revision) = (name.to_owned(), transport.to_owned(), revision.to_owned());
    Conversation { name, transport, revision, opened: Opened::Yes, probes, sdks: Vec::new(), ending: None, transcript }
}

struct Told {
    frames: Vec<Frame>,
    probes: Vec<Probed>,
    exchange: u64,
    is_http: bool,
}

impl Told {
    fn add(&mut self, direction: Direction, body: FrameBody) {
        let number = self.frames.len() as u64 + 1;
        self.frames.push(Frame { id: FrameId(number), at: Duration::from_millis(number), direction, body });
    }

    fn tell(&mut self, line: &str) {
        let (kind, rest) = line.split_at_checked(2).unwrap_or((line, ""));
        let (text, exchange) = (rest.to_owned(), ExchangeId(self.exchange));
        match kind {
            "> " if self.is_http => {
                self.exchange += 1;
                let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
                let (exchange, url) = (ExchangeId(self.exchange), "http://127.0.0.1:1/mcp".to_owned());
                let body = FrameBody::HttpRequest { exchange, method: "POST".into(), url, headers, body: rest.into() };
                self.add(Direction::ToServer, body);
            }
            "> " => self.add(Direction::ToServer, FrameBody::Line { bytes: rest.into(), unterminated: false }),
            "< " if self.is_http => {
                self.add(Direction::FromServer, FrameBody::HttpBody { exchange, bytes: rest.into() });
                self.add(Direction::FromServer, FrameBody::HttpEnd { exchange, error: None });
            }
            "< " => self.add(Direction::FromServer, FrameBody::Line { bytes: rest.into(), unterminated: false }),
            "s " => {
                let bytes = format!("data: {rest}\n\n").as_str().into();
                self.add(Direction::FromServer, FrameBody::SseEvent { exchange, bytes, event: None, id: None, data: Some(rest.into()) });
            }
            "h " => {
                let (status, headers) = rest.split_once(' ').unwrap_or((rest, ""));
                let pair = |header: &str| header.split_once(':').map(|(name, value)| (name.to_lowercase(), value.to_owned()));
                let headers = headers.split(';').filter_map(pair).collect();
                self.add(Direction::FromServer, FrameBody::HttpResponse { exchange, status: status.parse().unwrap_or(200), headers });
            }
            "e " => self.add(Direction::FromServer, FrameBody::Stderr { bytes: rest.into() }),
            "o " => self.add(Direction::FromServer, FrameBody::Stdout { bytes: rest.into() }),
            "n " => self.add(Direction::Local, FrameBody::Note { text }),
            "x " => self.add(Direction::Local, FrameBody::Exited { code: text.parse().ok(), signal: None }),
            "p " => {
                let first = FrameId(self.frames.len() as u64 + 1);
                if let Some(last) = self.probes.last_mut() {
                    last.end = first;
                }
                let (probe, subject) = rest.split_once(' ').map_or((text, None), |(probe, subject)| (probe.into(), Some(subject.into())));
                self.probes.push(Probed { probe, subject, first, end: FrameId(u64::MAX), outcome: ProbeOutcome::Done });
            }
            _ => {}
        }
    }
}
