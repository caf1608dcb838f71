//! Turns what passes into frames, on a thread of its own: whoever relays bytes waits for room in a queue at most, never for redaction
//! or a disk. Knows lines, not messages.

use mcproof_client::Tap;
use mcproof_record::{Direction, FrameBody};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// Pieces that may wait to be recorded. A relay that is faster than the recorder waits for it, so that memory is bounded.
const QUEUE: usize = 64;

/// What is kept of a single line.
#[derive(Clone, Copy, Debug)]
pub struct RecorderLimits {
    /// Bytes of one line of the protocol; of a longer one the beginning is recorded.
    pub line: usize,
    /// Bytes of one line of stderr.
    pub stderr_line: usize,
}

impl Default for RecorderLimits {
    fn default() -> Self {
        Self { line: 16 << 20, stderr_line: 64 << 10 }
    }
}

/// A stream of a stdio server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassingStream {
    Stdin,
    Stdout,
    Stderr,
}

enum Seen {
    Bytes(PassingStream, Vec<u8>),
    End(PassingStream),
    Fact(Direction, FrameBody),
    /// Everything before this is recorded.
    Settled(SyncSender<()>),
}

/// Records what passes, in the order in which it is told. Clones feed the same tap.
#[derive(Clone)]
pub struct Recorder {
    queue: SyncSender<(Duration, Seen)>,
    tap: Tap,
}

impl Recorder {
    /// Starts the thread. It ends when all recorders are dropped.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(tap: Tap, limits: RecorderLimits) -> std::io::Result<Self> {
        let (queue, seen) = sync_channel(QUEUE);
        let recording = tap.clone();
        thread::Builder::new().name("recorder".into()).spawn(move || record_all(&seen, &recording, limits))?;
        Ok(Self { queue, tap })
    }

    /// The next bytes of a stream. Call it before they are passed on: what is caused by them comes later then.
    pub fn bytes(&self, stream: PassingStream, bytes: &[u8]) {
        self.tell(Seen::Bytes(stream, bytes.to_vec()));
    }

    /// A stream has ended.
    pub fn end(&self, stream: PassingStream) {
        self.tell(Seen::End(stream));
    }

    /// A frame that needs no splitting.
    pub fn fact(&self, direction: Direction, body: FrameBody) {
        self.tell(Seen::Fact(direction, body));
    }

    pub(super) fn tap(&self) -> &Tap {
        &self.tap
    }

    /// Waits until everything that was told so far is recorded, for as long as this. Another thread may go on telling.
    pub fn settle(&self, limit: Duration) {
        let (settled, done) = sync_channel(1);
        self.tell(Seen::Settled(settled));
        let _ = done.recv_timeout(limit);
    }

    fn tell(&self, seen: Seen) {
        // The receiver lives as long as any sender.
        let _ = self.queue.send((self.tap.elapsed(), seen));
    }
}

fn record_all(seen: &Receiver<(Duration, Seen)>, tap: &Tap, limits: RecorderLimits) {
    let mut stdin = LineSplitter::new(limits.line);
    let mut stdout = LineSplitter::new(limits.line);
    let mut stderr = LineSplitter::new(limits.stderr_line);
    while let Ok((at, seen)) = seen.recv() {
        let deliver = |stream: PassingStream, line: SplitLine<'_>| {
            let direction = if stream == PassingStream::Stdin { Direction::ToServer } else { Direction::FromServer };
            tap.record_at(at, direction, frame_of(stream, &line));
            if let SplitLine::Cut(_) = line {
                let text = format!("a line of {} is longer than the limit: only its beginning is recorded", stream.name());
                tap.record_at(at, Direction::Local, FrameBody::Note { text });
            }
        };
        match seen {
            Seen::Fact(direction, body) => drop(tap.record_at(at, direction, body)),
            Seen::Bytes(stream, bytes) => stream.of(&mut stdin, &mut stdout, &mut stderr).feed(&bytes, |line| deliver(stream, line)),
            Seen::Settled(settled) => {
                // Whoever asked may have given up.
                let _ = settled.try_send(());
            }
            Seen::End(stream) => {
                stream.of(&mut stdin, &mut stdout, &mut stderr).finish(|line| deliver(stream, line));
                if stream != PassingStream::Stderr {
                    tap.record_at(at, Direction::Local, FrameBody::Closed { pipe: stream.name().into() });
                }
            }
        }
    }
}

impl PassingStream {
    fn name(self) -> &'static str {
        match self {
            Self::Stdin => "stdin",
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }

    fn of<'a, T>(self, stdin: &'a mut T, stdout: &'a mut T, stderr: &'a mut T) -> &'a mut T {
        match self {
            Self::Stdin => stdin,
            Self::Stdout => stdout,
            Self::Stderr => stderr,
        }
    }
}

fn frame_of(stream: PassingStream, line: &SplitLine<'_>) -> FrameBody {
    let (SplitLine::Whole(bytes) | SplitLine::Unterminated(bytes) | SplitLine::Cut(bytes)) = *line;
    match stream {
        PassingStream::Stderr => FrameBody::Stderr { bytes: bytes.strip_suffix(b"\r").unwrap_or(bytes).into() },
        PassingStream::Stdin | PassingStream::Stdout => {
            FrameBody::Line { bytes: bytes.into(), unterminated: matches!(line, SplitLine::Unterminated(_)) }
        }
    }
}

enum SplitLine<'a> {
    Whole(&'a [u8]),
    /// The stream ended before a line feed.
    Unterminated(&'a [u8]),
    /// The beginning of a line that is longer than the limit.
    Cut(&'a [u8]),
}

/// Splits pieces of any size into lines of bounded length.
struct LineSplitter {
    begun: Vec<u8>,
    limit: usize,
    /// The rest of the open line is not kept.
    skipping: bool,
}

impl LineSplitter {
    fn new(limit: usize) -> Self {
        Self { begun: Vec::new(), limit, skipping: false }
    }

    fn feed(&mut self, mut bytes: &[u8], mut deliver: impl FnMut(SplitLine<'_>)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.take(&bytes[..end], &mut deliver);
            if !std::mem::take(&mut self.skipping) {
                deliver(SplitLine::Whole(&self.begun));
            }
            self.clear();
            bytes = &bytes[end + 1..];
        }
        self.take(bytes, &mut deliver);
    }

    fn finish(&mut self, mut deliver: impl FnMut(SplitLine<'_>)) {
        if !self.begun.is_empty() {
            deliver(SplitLine::Unterminated(&self.begun));
        }
        self.clear();
        self.skipping = false;
    }

    fn take(&mut self, bytes: &[u8], deliver: &mut impl FnMut(SplitLine<'_>)) {
        if self.skipping {
            return;
        }
        let room = self.limit - self.begun.len();
        self.begun.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room {
            deliver(SplitLine::Cut(&self.begun));
            self.clear();
            self.skipping = true;
        }
    }

    /// Memory of a long line is given back.
    fn clear(&mut self) {
        self.begun.clear();
        self.begun.shrink_to(64 << 10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(pieces: &[&[u8]], limit: usize) -> Vec<String> {
        let mut splitter = LineSplitter::new(limit);
        let mut found = Vec::new();
        let mut deliver = |line: SplitLine<'_>| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            found.push(match line {
                SplitLine::Whole(bytes) => text(bytes),
                SplitLine::Unterminated(bytes) => text(bytes) + "…",
                SplitLine::Cut(bytes) => text(bytes) + "!",
            });
        };
        pieces.iter().for_each(|piece| splitter.feed(piece, &mut deliver));
        splitter.finish(deliver);
        found
    }

    #[test]
    fn a_line_beyond_the_limit_is_cut_and_the_next_one_is_whole() {
        assert_eq!(split(&[b"12345678\n123456789\nx\ny"], 8), ["12345678", "12345678!", "x", "y…"]);
        assert_eq!(split(&[b"123456789abc"], 8), ["12345678!"]);
        assert_eq!(split(&[b"\n\r\n"], 8), ["", "\r"]);
    }

    proptest! {
        #[test]
        fn lines_are_the_same_wherever_the_stream_is_cut(bytes in prop::collection::vec(prop::sample::select(b"ab\n".to_vec()), 0..60), at in any::<prop::sample::Index>()) {
            let at = at.index(bytes.len() + 1);
            prop_assert_eq!(split(&[&bytes[..at], &bytes[at..]], 5), split(&[&bytes], 5));
        }
    }

    #[test]
    fn frames_come_in_the_order_in_which_they_were_told() {
        let tap = Tap::new();
        let recorder = Recorder::start(tap.clone(), RecorderLimits::default()).unwrap();
        recorder.bytes(PassingStream::Stdin, b"{\"id\":1}\n{\"id\"");
        recorder.bytes(PassingStream::Stdout, b"answer\n");
        recorder.bytes(PassingStream::Stdin, b":2}\n");
        recorder.bytes(PassingStream::Stderr, b"talk\r\n");
        recorder.end(PassingStream::Stdin);
        recorder.settle(Duration::from_secs(20));
        let frames = tap.transcript().frames;
        let shown: Vec<String> = frames.iter().map(|frame| serde_json::to_string(&frame.body).unwrap()).collect();
        assert_eq!(
            shown,
            [
                r#"{"kind":"line","bytes":"{\"id\":1}"}"#,
                r#"{"kind":"line","bytes":"answer"}"#,
                r#"{"kind":"line","bytes":"{\"id\":2}"}"#,
                r#"{"kind":"stderr","bytes":"talk"}"#,
                r#"{"kind":"closed","pipe":"stdin"}"#,
            ]
        );
        assert!(frames.is_sorted_by_key(|frame| frame.at));
    }
}
