//! A frame is one thing seen on the wire; a transcript is all of them, in order. Nothing here interprets a message.

use crate::{Raw, telling_lines};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Position of a frame in its transcript, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct FrameId(pub u64);

/// One HTTP request together with its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct ExchangeId(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    ToServer,
    FromServer,
    /// A fact about the connection or the process that neither side sent: started, exited, timed out.
    Local,
}

/// One thing seen on the wire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Frame {
    pub id: FrameId,
    /// Time since the transcript began.
    #[serde(with = "micros", rename = "at_us")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub at: Duration,
    pub direction: Direction,
    pub body: FrameBody,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FrameBody {
    /// One line on stdin or stdout of a stdio server, without its line feed. `unterminated` is set if the stream
    /// ended before one.
    Line {
        bytes: Raw,
        #[serde(default, skip_serializing_if = "is_false")]
        unterminated: bool,
    },
    /// One line that the server's process wrote to stderr.
    Stderr { bytes: Raw },
    /// One line that an HTTP server's process wrote to stdout, which is not a protocol channel there.
    Stdout { bytes: Raw },
    /// The head and the whole body of an HTTP request that mcproof sent.
    HttpRequest { exchange: ExchangeId, method: String, url: String, headers: Vec<(String, String)>, body: Raw },
    /// The head of an HTTP response.
    HttpResponse { exchange: ExchangeId, status: u16, headers: Vec<(String, String)> },
    /// The whole body of an HTTP response that is not an event stream.
    HttpBody { exchange: ExchangeId, bytes: Raw },
    /// One server-sent event: the raw bytes up to and including its blank line, and what they mean.
    SseEvent { exchange: ExchangeId, bytes: Raw, event: Option<String>, id: Option<String>, data: Option<Raw> },
    /// An HTTP exchange ended. `error` is the reason if it failed.
    HttpEnd { exchange: ExchangeId, error: Option<String> },
    /// The server's process was started.
    Spawned { pid: u32, command: Vec<String> },
    /// The server's process ended.
    Exited { code: Option<i32>, signal: Option<i32> },
    /// A pipe of the server was closed: `stdin` by mcproof, `stdout` by the server.
    Closed { pipe: String },
    /// mcproof sent a signal to the server's process, or to its process group.
    Signalled { signal: String },
    /// An event of the connection without bytes: refused, reset, a limit or a deadline that was reached.
    Note { text: String },
}

impl FrameBody {
    /// The HTTP exchange that it belongs to, if it is a part of one.
    pub fn exchange(&self) -> Option<ExchangeId> {
        match self {
            Self::HttpRequest { exchange, .. }
            | Self::HttpResponse { exchange, .. }
            | Self::HttpBody { exchange, .. }
            | Self::SseEvent { exchange, .. }
            | Self::HttpEnd { exchange, .. } => Some(*exchange),
            _ => None,
        }
    }

    /// The HTTP exchange that ended here and whose request went out again.
    pub fn sent_again(&self) -> Option<ExchangeId> {
        match self {
            Self::HttpEnd { exchange, error: Some(error) } if error.ends_with(SENT_AGAIN) => Some(*exchange),
            _ => None,
        }
    }
}

/// Stands in a long text of which only the beginning was kept, before how long it is.
pub const ABRIDGED: &str = "… [abridged: ";

/// What the note says that stands in the place of frames which were not stored, after their number.
pub const NOT_STORED: &str = "earlier frames were counted but not stored";

/// How the reason of an exchange ends whose request went out again, because the connection that had been kept for it ended before a
/// byte of the response (RFC 9112, 9.3.1). What came of the request is in another exchange.
pub const SENT_AGAIN: &str = "; the request goes out again over a new connection";

/// All frames of a session, in order: the only evidence that a verdict may cite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Transcript {
    pub frames: Vec<Frame>,
    /// Frames that were counted, but not stored, because a limit was reached.
    #[serde(default)]
    pub dropped: u64,
}

/// The part of a transcript that a diagnostic shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    pub frames: Vec<Frame>,
    /// Frames left out before the first of these.
    pub omitted: u64,
    /// The last lines of the server's stderr; of many, also the first ones and those that look like a reason, with `… 60 lines` for
    /// what lies between them.
    pub stderr: Vec<String>,
}

impl Evidence {
    /// Leaves out the frames before `begin`, unless there are no others.
    pub fn begin_at(&mut self, begin: FrameId) {
        let before = self.frames.iter().filter(|frame| frame.id < begin).count();
        if before < self.frames.len() {
            self.frames.retain(|frame| frame.id >= begin);
            self.omitted += before as u64;
        }
    }
}

impl Transcript {
    /// The last `frames` frames that are messages or local facts, and `stderr` lines of stderr, chosen by [`telling_lines()`].
    pub fn tail(&self, frames: usize, stderr: usize) -> Evidence {
        self.around(None, frames, stderr)
    }

    /// Like [`Transcript::tail`], but ending at frame `end` instead of the newest one. Stderr is not cut there:
    /// what a server says at its end usually is the reason why it failed. Of a server that was restarted, only the last process is shown.
    pub fn around(&self, end: Option<FrameId>, frames: usize, stderr: usize) -> Evidence {
        let born = self.frames.iter().rposition(|frame| matches!(frame.body, FrameBody::Spawned { .. })).unwrap_or(0);
        let mut wire = Vec::new();
        let mut lines = Vec::new();
        for frame in &self.frames[born..] {
            match &frame.body {
                FrameBody::Stderr { bytes } => lines.push(bytes.to_text()),
                _ if end.is_none_or(|end| frame.id <= end) => wire.push(frame),
                _ => {}
            }
        }
        let skipped = wire.len().saturating_sub(frames);
        Evidence {
            frames: wire.into_iter().skip(skipped).cloned().collect(),
            omitted: (born + skipped) as u64 + self.dropped,
            stderr: telling_lines(&lines, stderr),
        }
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

mod micros {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub(crate) fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(value.as_micros()).unwrap_or(u64::MAX))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(id: u64, body: FrameBody) -> Frame {
        Frame { id: FrameId(id), at: Duration::from_micros(id), direction: Direction::FromServer, body }
    }

    fn transcript() -> Transcript {
        let line = |text: &str| FrameBody::Line { bytes: text.into(), unterminated: false };
        let stderr = |text: &str| FrameBody::Stderr { bytes: text.into() };
        Transcript {
            frames: vec![frame(0, line("a")), frame(1, stderr("x")), frame(2, line("b")), frame(3, line("c")), frame(4, stderr("y"))],
            dropped: 0,
        }
    }

    #[test]
    fn evidence_counts_what_it_leaves_out() {
        let evidence = transcript().tail(2, 1);
        assert_eq!(evidence.frames.iter().map(|frame| frame.id.0).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(evidence.omitted, 1);
        assert_eq!(evidence.stderr, ["y"]);
    }

    #[test]
    fn evidence_may_begin_late_but_never_without_a_frame() {
        let check = |begin, frames: &[u64], omitted| {
            let mut evidence = transcript().tail(9, 9);
            evidence.begin_at(FrameId(begin));
            let found: Vec<u64> = evidence.frames.iter().map(|frame| frame.id.0).collect();
            assert_eq!((found.as_slice(), evidence.omitted), (frames, omitted), "from {begin}");
        };
        check(0, &[0, 2, 3], 0);
        check(2, &[2, 3], 1);
        check(4, &[0, 2, 3], 0);
    }

    #[test]
    fn evidence_may_end_before_the_newest_frame() {
        let evidence = transcript().around(Some(FrameId(2)), 9, 9);
        assert_eq!(evidence.frames.iter().map(|frame| frame.id.0).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(evidence.stderr, ["x", "y"]);
    }

    #[test]
    fn evidence_shows_the_last_life_of_a_server() {
        let mut transcript = transcript();
        transcript.frames.insert(2, frame(9, FrameBody::Spawned { pid: 1, command: vec![] }));
        let evidence = transcript.tail(9, 9);
        assert_eq!(evidence.frames.iter().map(|frame| frame.id.0).collect::<Vec<_>>(), [9, 2, 3]);
        assert_eq!((evidence.omitted, evidence.stderr), (2, vec!["y".to_owned()]));
    }

    #[test]
    fn a_transcript_reads_back_as_it_was_written() {
        let text = serde_json::to_string(&transcript()).unwrap();
        assert_eq!(serde_json::from_str::<Transcript>(&text).unwrap(), transcript());
    }
}
