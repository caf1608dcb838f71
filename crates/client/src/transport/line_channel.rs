//! Messages as lines over a pair of byte streams: pipes of a process, or any other pair in memory. Knows newlines and the
//! tap, not JSON.

use super::cut_body::BETWEEN_PIECES;
use super::faults::{DisturbedLines, FaultInjector};
use super::lines::{Line, LineReader};
use super::process::exited;
use super::{Closed, DirectChannel, Envelope, Exit, Inbox, Limits, Purpose};
use crate::Tap;
use mcproof_record::{Direction, FrameBody, FrameId};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, consume_budget};
use tokio::time::{interval, sleep, timeout};

/// How the end of the peer's stream is explained.
pub(crate) enum Ending {
    /// By the end of the process that holds the other side.
    Process(watch::Receiver<Option<Exit>>),
    /// There is nothing behind the stream that could tell more.
    Stream,
}

/// A line on its way out.
struct Outgoing {
    bytes: Vec<u8>,
    /// The byte with which a second write begins, a moment after the first one.
    cut: Option<usize>,
    /// Who wants to know when it is out.
    purpose: Purpose,
}

pub(crate) struct LineChannel {
    /// `None` once the output was closed.
    outgoing: Mutex<Option<mpsc::UnboundedSender<Outgoing>>>,
    /// Goes before the queue, where there is one.
    shortcut: Option<Arc<DirectChannel>>,
    /// Whether it has recorded that it closed the server's stdin.
    writer: JoinHandle<bool>,
    /// Whether the output is the stdin of a process.
    is_stdin: bool,
    reader: JoinHandle<()>,
    /// Between the channel and the peer, where faults are requested.
    relay: Option<DisturbedLines>,
    tap: Tap,
}

impl LineChannel {
    pub(crate) fn open(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
        ending: Ending,
        limits: Limits,
        faults: Option<&FaultInjector>,
        tap: &Tap,
        inbox: Arc<dyn Inbox>,
    ) -> Self {
        match faults {
            None => Self::over(input, output, ending, limits, tap, inbox),
            Some(faults) => {
                let (relay, input, output) = DisturbedLines::start(input, output, faults, limits.line, tap);
                let mut channel = Self::over(input, output, ending, limits, tap, inbox);
                channel.relay = Some(relay);
                channel
            }
        }
    }

    /// Over both the streams and what leads past them.
    pub(crate) fn open_with(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
        shortcut: Arc<DirectChannel>,
        limits: Limits,
        tap: &Tap,
        inbox: Arc<dyn Inbox>,
    ) -> Self {
        shortcut.reach(Arc::clone(&inbox), tap.clone(), limits.line);
        let mut channel = Self::over(input, output, Ending::Stream, limits, tap, inbox);
        channel.shortcut = Some(shortcut);
        channel
    }

    fn over(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
        ending: Ending,
        limits: Limits,
        tap: &Tap,
        inbox: Arc<dyn Inbox>,
    ) -> Self {
        // Bounded by the requests in flight, ours and the server's: a caller waits for its response, or gives up, before it sends
        // the next, and the server's have their own bound.
        let (outgoing, queue) = mpsc::unbounded_channel();
        let is_stdin = matches!(ending, Ending::Process(_));
        let writer = tokio::spawn(write_lines(output, queue, tap.clone(), is_stdin));
        let reader = tokio::spawn(read_lines(input, ending, limits, tap.clone(), inbox));
        Self { outgoing: Mutex::new(Some(outgoing)), shortcut: None, writer, is_stdin, reader, relay: None, tap: tap.clone() }
    }

    /// Queues the message. Whole messages are written by one task, so that a caller that gives up cannot tear one.
    pub(crate) fn send(&self, envelope: Envelope) -> FrameId {
        let id = self.tap.record(Direction::ToServer, FrameBody::Line { bytes: envelope.body.as_slice().into(), unterminated: false });
        match &self.shortcut {
            Some(shortcut) => self.unless_finished(|_| shortcut.carrier().carry(&envelope.body)),
            None => {
                let mut line = envelope.body;
                line.push(b'\n');
                self.queue(Outgoing { bytes: line, cut: None, purpose: envelope.purpose });
            }
        }
        id
    }

    /// Queues bytes as they stand, whatever they are. `cut`: the byte with which a second write begins, over streams.
    pub(crate) fn send_bytes(&self, bytes: Vec<u8>, cut: Option<usize>, purpose: Purpose) -> FrameId {
        let line = bytes.strip_suffix(b"\n");
        let body = FrameBody::Line { bytes: line.unwrap_or(&bytes).into(), unterminated: line.is_none() };
        let id = self.tap.record(Direction::ToServer, body);
        match &self.shortcut {
            Some(shortcut) => self.unless_finished(|_| shortcut.carrier().carry_bytes(&bytes)),
            None => self.queue(Outgoing { bytes, cut, purpose }),
        }
        id
    }

    fn queue(&self, line: Outgoing) {
        // This fails only after the writer has ended, which the tap and the reader tell better.
        self.unless_finished(|outgoing| drop(outgoing.send(line)));
    }

    fn unless_finished(&self, write: impl FnOnce(&mpsc::UnboundedSender<Outgoing>)) {
        if let Some(outgoing) = &*self.outgoing.lock().unwrap_or_else(PoisonError::into_inner) {
            write(outgoing);
        }
    }

    /// The writer closes our side once everything is written.
    pub(crate) fn finish_output(&self) {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Closes our side once everything is written. A peer that does not read keeps the writer waiting: then the stream is
    /// closed by ending the task.
    pub(crate) async fn close_output(&mut self, patience: Duration) {
        self.finish_output();
        let is_recorded = matches!(timeout(patience, &mut self.writer).await, Ok(Ok(true)));
        if self.is_stdin && !is_recorded {
            record_closed_stdin(&self.tap);
        }
        self.writer.abort();
    }

    /// Waits shortly for the end of the peer's side.
    pub(crate) async fn end(mut self) {
        let _ = timeout(LINGER, &mut self.reader).await;
    }
}

impl Drop for LineChannel {
    fn drop(&mut self) {
        self.writer.abort();
        self.reader.abort();
    }
}

/// How long the end of a stream and the end of its process may lie apart.
const LINGER: Duration = Duration::from_millis(500);

/// Recorded before the pipe is closed: a server that ends at once has ended because of it.
pub(super) fn record_closed_stdin(tap: &Tap) {
    tap.record(Direction::Local, FrameBody::Closed { pipe: "stdin".into() });
}

/// Returns whether it has recorded that it closed the server's stdin, which it does once everything is written.
async fn write_lines(mut output: impl AsyncWrite + Unpin, mut queue: mpsc::UnboundedReceiver<Outgoing>, tap: Tap, is_stdin: bool) -> bool {
    let mut is_whole = true;
    while let Some(Outgoing { mut bytes, mut cut, purpose }) = queue.recv().await {
        let mut purposes = vec![purpose];
        // What has queued up meanwhile goes out in one write.
        while cut.is_none()
            && let Ok(more) = queue.try_recv()
        {
            cut = more.cut.map(|at| bytes.len() + at);
            bytes.extend_from_slice(&more.bytes);
            purposes.push(more.purpose);
        }
        let (first, second) = bytes.split_at(cut.unwrap_or(bytes.len()).min(bytes.len()));
        let written = async {
            output.write_all(first).await?;
            output.flush().await?;
            if !second.is_empty() {
                sleep(BETWEEN_PIECES).await;
                output.write_all(second).await?;
            }
            output.flush().await
        };
        if let Err(error) = written.await {
            tap.note(format!("writing to the server failed: {error}"));
            is_whole = false;
            break;
        }
    }
    let is_recorded = is_stdin && is_whole;
    if is_recorded {
        record_closed_stdin(&tap);
    }
    // Half of a split stream does not close it by being dropped.
    let _ = output.shutdown().await;
    is_recorded
}

async fn read_lines(input: impl AsyncRead + Unpin, ending: Ending, limits: Limits, tap: Tap, inbox: Arc<dyn Inbox>) {
    let mut reader = LineReader::new(input, limits.line);
    let closed = match ending {
        Ending::Stream => match deliver_lines(&mut reader, &tap, &*inbox).await {
            Ok(closed) => closed.unwrap_or(Closed::StreamEnded),
            Err(error) => {
                if let Some(begun) = reader.begun() {
                    tap.record(Direction::FromServer, FrameBody::Line { bytes: begun.into(), unterminated: true });
                }
                tap.note(format!("reading from the server failed: {error}"));
                Closed::StreamFailed(error.to_string())
            }
        },
        Ending::Process(mut exit) => {
            let mut ended = exit.clone();
            let outcome = tokio::select! {
                biased;
                outcome = deliver_lines(&mut reader, &tap, &*inbox) => outcome,
                // The process is gone, but a child of it may hold stdout open: read what is there, but do not wait for its end.
                _ = exited(&mut ended) => timeout(LINGER, deliver_lines(&mut reader, &tap, &*inbox)).await.unwrap_or(Ok(None)),
            };
            match outcome {
                Ok(Some(closed)) => closed,
                Ok(None) | Err(_) => {
                    let exit = timeout(LINGER, exited(&mut exit)).await.ok().flatten();
                    exit.map_or(Closed::StdoutClosed, Closed::Exited)
                }
            }
        }
    };
    inbox.closed(closed);
}

/// Delivers lines until the stream ends, or says why it is given up.
async fn deliver_lines(reader: &mut LineReader<impl AsyncRead + Unpin>, tap: &Tap, inbox: &dyn Inbox) -> io::Result<Option<Closed>> {
    let mut tick = interval(PAUSE);
    loop {
        let line = tokio::select! {
            biased;
            line = reader.next() => Some(line?),
            _ = tick.tick() => None,
        };
        let Some(line) = line else {
            // Told once for a line: a message that is written slowly is legal, one that never ends explains a silence.
            if let Some(begun) = reader.begun() {
                let shown = String::from_utf8_lossy(&begun[..begun.len().min(SHOWN_OF_OPEN_LINE)]);
                inbox.line_begun(begun, &|| tap.note(format!("a line of {} bytes has no line feed so far: {shown}", begun.len())));
            }
            continue;
        };
        let (bytes, unterminated) = match line {
            Line::Whole(bytes) => (bytes, false),
            Line::Unterminated(bytes) => (bytes, true),
            Line::TooLong(bytes) => {
                let limit = bytes.len();
                let shown = bytes[..limit.min(SHOWN_OF_LONG_LINE)].into();
                tap.record(Direction::FromServer, FrameBody::Line { bytes: shown, unterminated: true });
                return Ok(Some(Closed::TooLong { unit: "line", limit }));
            }
            Line::End => {
                tap.record(Direction::FromServer, FrameBody::Closed { pipe: "stdout".into() });
                return Ok(None);
            }
        };
        let frame = tap.record(Direction::FromServer, FrameBody::Line { bytes: bytes.into(), unterminated });
        inbox.message(bytes, frame, None, None);
        // One read may hold thousands of lines: a flood of them must not keep deadlines from passing.
        consume_budget().await;
    }
}

const SHOWN_OF_LONG_LINE: usize = 1024;
const SHOWN_OF_OPEN_LINE: usize = 80;
/// How often to look for a line that has begun and does not end.
const PAUSE: Duration = Duration::from_millis(200);
