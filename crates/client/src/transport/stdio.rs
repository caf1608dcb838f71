//! The stdio transport: one message a line on the stdin and stdout of a process that we start.
//! Source: 2025-11-25 and 2026-07-28, basic/transports, stdio.

use super::lines::{Line, LineReader};
use super::process::exited;
use super::{Closed, Envelope, Exit, Guardian, Inbox, Launch, Limits, Patience, Process, ShutdownReport, StartFailure, StdinUse};
use crate::Tap;
use mcproof_record::{Direction, FrameBody, FrameId};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub(crate) struct StdioConnection {
    process: Process,
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
    writer: JoinHandle<ChildStdin>,
    reader: JoinHandle<()>,
    tap: Tap,
}

impl StdioConnection {
    pub(crate) fn open(
        launch: &Launch,
        guardian: &Guardian,
        limits: Limits,
        tap: &Tap,
        inbox: Arc<dyn Inbox>,
    ) -> Result<Self, StartFailure> {
        let (process, stdin, stdout) = Process::start(launch, guardian, tap, None)?;
        // Bounded by the requests in flight: a caller waits for its answer, or gives up, before it sends the next.
        let (outgoing, queue) = mpsc::unbounded_channel();
        let writer = tokio::spawn(write_lines(stdin, queue, tap.clone()));
        let reader = tokio::spawn(read_lines(stdout, limits, tap.clone(), inbox, process.watch_exit()));
        Ok(Self { process, outgoing, writer, reader, tap: tap.clone() })
    }

    /// Queues the message. Whole messages are written by one task, so that a caller that gives up cannot tear one.
    pub(crate) fn send(&self, envelope: Envelope) -> FrameId {
        let id = self.tap.record(Direction::ToServer, FrameBody::Line { bytes: envelope.body.as_slice().into(), unterminated: false });
        let mut line = envelope.body;
        line.push(b'\n');
        // A send fails only after the writer has ended, which the tap and the reader tell better.
        let _ = self.outgoing.send(line);
        id
    }

    pub(crate) async fn close(self, patience: Patience) -> ShutdownReport {
        let Self { process, outgoing, writer, reader, tap: _ } = self;
        drop(outgoing);
        // A server that does not read its stdin keeps the writer waiting; then the pipe is closed by ending the task.
        let stop = writer.abort_handle();
        let stdin = match timeout(patience.end_of_input, writer).await {
            Ok(stdin) => stdin.ok(),
            Err(_) => {
                stop.abort();
                None
            }
        };
        let report = process.shut_down(stdin, StdinUse::Protocol, patience).await;
        let stop = reader.abort_handle();
        if timeout(LINGER, reader).await.is_err() {
            stop.abort();
        }
        report
    }

    pub(crate) async fn settle(&self) {
        self.process.settle().await;
    }

    pub(crate) fn exit(&self) -> Option<Exit> {
        self.process.exit()
    }
}

/// How long stdout and the end of the process may lie apart.
const LINGER: Duration = Duration::from_millis(500);

async fn write_lines(mut stdin: ChildStdin, mut queue: mpsc::UnboundedReceiver<Vec<u8>>, tap: Tap) -> ChildStdin {
    while let Some(mut bytes) = queue.recv().await {
        // What has queued up meanwhile goes out in one write.
        while let Ok(more) = queue.try_recv() {
            bytes.extend_from_slice(&more);
        }
        if let Err(error) = stdin.write_all(&bytes).await {
            tap.note(format!("writing to the server's stdin failed: {error}"));
            break;
        }
    }
    stdin
}

async fn read_lines(stdout: ChildStdout, limits: Limits, tap: Tap, inbox: Arc<dyn Inbox>, mut exit: watch::Receiver<Option<Exit>>) {
    let mut reader = LineReader::new(stdout, limits.line);
    let mut ended = exit.clone();
    let too_long = tokio::select! {
        biased;
        outcome = deliver_lines(&mut reader, &tap, &*inbox) => outcome.unwrap_or(false),
        // The process is gone, but a child of it may hold stdout open: read what is there, but do not wait for its end.
        () = async { exited(&mut ended).await; } => timeout(LINGER, deliver_lines(&mut reader, &tap, &*inbox)).await.is_ok_and(|outcome| outcome.unwrap_or(false)),
    };
    if too_long {
        tap.note(format!("a line is longer than {} bytes; the rest is not read", limits.line));
        return inbox.closed(Closed::TooLong { unit: "line", limit: limits.line });
    }
    let exit = timeout(LINGER, exited(&mut exit)).await.ok().flatten();
    inbox.closed(exit.map_or(Closed::StdoutClosed, Closed::Exited));
}

/// Delivers lines until the stream ends; true when a line was too long.
async fn deliver_lines(reader: &mut LineReader<ChildStdout>, tap: &Tap, inbox: &dyn Inbox) -> io::Result<bool> {
    loop {
        let (bytes, unterminated, too_long) = match reader.next().await? {
            Line::Whole(bytes) => (bytes, false, false),
            Line::Unterminated(bytes) => (bytes, true, false),
            Line::TooLong(bytes) => (&bytes[..bytes.len().min(SHOWN_OF_LONG_LINE)], true, true),
            Line::End => {
                tap.record(Direction::FromServer, FrameBody::Closed { pipe: "stdout".into() });
                return Ok(false);
            }
        };
        let frame = tap.record(Direction::FromServer, FrameBody::Line { bytes: bytes.into(), unterminated });
        if too_long {
            return Ok(true);
        }
        inbox.message(bytes, frame, None, None);
    }
}

const SHOWN_OF_LONG_LINE: usize = 1024;
