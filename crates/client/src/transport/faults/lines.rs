//! Faults on a pair of byte streams that carry one message a line. Stands between the channel and the process as a
//! network would. Knows lines and treatments, no reasons for them. A line goes on once it is whole: of one that never ends,
//! our client sees nothing before the stream does.

use super::{FaultDirection, FaultInjector, InjectedFault, LIST_CHANGED, MessageFaults, OVERTAKEN_WITHIN, Pace, PlannedFault, Subject};
use crate::Tap;
use crate::transport::lines::{Line, LineReader};
use std::future::pending;
use std::io;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

/// Carries lines both ways until both ends are closed. Dropping it closes them.
pub struct DisturbedLines(JoinHandle<()>);

impl Drop for DisturbedLines {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Lines that wait for their time.
const QUEUE: usize = 1024;
const BUFFER: usize = 64 << 10;

impl DisturbedLines {
    /// Returns the streams to use in place of `input` and `output`. Lines longer than `limit` arrive longer than it, too.
    pub(in crate::transport) fn start(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
        injector: &FaultInjector,
        limit: usize,
        tap: &Tap,
    ) -> (Self, DuplexStream, DuplexStream) {
        let (near_input, far_input) = duplex(BUFFER);
        let (near_output, far_output) = duplex(BUFFER);
        (Self::between(input, output, far_input, far_output, injector, limit, tap), near_input, near_output)
    }

    /// Carries what the server says on `input` to `to_client`, and what the client says on `from_client` to `output`.
    pub fn between(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
        to_client: impl AsyncWrite + Send + Unpin + 'static,
        from_client: impl AsyncRead + Send + Unpin + 'static,
        injector: &FaultInjector,
        limit: usize,
        tap: &Tap,
    ) -> Self {
        let (reset, mut broken) = watch::channel(false);
        let (active, activity) = watch::channel(Instant::now());
        let way = |toward| Way { toward, injector: injector.clone(), tap: tap.clone(), reset: reset.clone(), active: active.clone() };
        let (toward_client, toward_server) = (way(FaultDirection::Client), way(FaultDirection::Server));
        let (injector, tap) = (injector.clone(), tap.clone());
        Self(tokio::spawn(async move {
            let both = async {
                tokio::join!(
                    toward_client.carry(input, to_client, limit.saturating_add(1)),
                    toward_server.carry(from_client, output, usize::MAX)
                );
            };
            tokio::select! {
                () = both => {}
                // Leaving drops all four ends.
                _ = broken.wait_for(|broken| *broken) => {}
                () = silence(&injector, activity, &tap) => {}
            }
        }))
    }

    /// Waits until the streams have ended or broken.
    pub async fn ended(&mut self) {
        let _ = (&mut self.0).await;
    }
}

/// Returns once nothing has passed for as long as a rule says.
async fn silence(injector: &FaultInjector, activity: watch::Receiver<Instant>, tap: &Tap) {
    let Some((after, planned)) = injector.idle_cut() else { return pending().await };
    loop {
        let until = *activity.borrow() + after;
        if until <= Instant::now() {
            tap.note(injector.cut_idle(after, planned));
            return;
        }
        sleep_until(until).await;
    }
}

/// One direction.
struct Way {
    toward: FaultDirection,
    injector: FaultInjector,
    tap: Tap,
    reset: watch::Sender<bool>,
    /// When something passed last.
    active: watch::Sender<Instant>,
}

/// Bytes that are to go on at a time.
struct Chunk {
    bytes: Vec<u8>,
    due: Instant,
    pace: Option<Pace>,
}

/// A line that waits to be overtaken.
struct Held {
    line: Vec<u8>,
    subject: Subject,
    planned: PlannedFault,
    until: Instant,
}

/// What does not go on at once, and the way for what does.
struct Waiting {
    held: Option<Held>,
    buffer: Option<Buffer>,
    queue: mpsc::Sender<Chunk>,
}

/// Lines that wait until there are enough of them.
struct Buffer {
    bytes: Vec<u8>,
    size: usize,
}

impl Way {
    async fn carry(self, input: impl AsyncRead + Unpin, output: impl AsyncWrite + Unpin, limit: usize) {
        let (queue, parcels) = mpsc::channel(QUEUE);
        // Errors are the end of the stream; who reads or writes at the other end will see it.
        let (_, _) = tokio::join!(self.take(input, queue, limit), give(output, parcels));
    }

    /// Reads lines and says when and how each of them goes on. What waits survives the choice of `select!`: it is
    /// outside of it.
    async fn take(&self, input: impl AsyncRead + Unpin, queue: mpsc::Sender<Chunk>, limit: usize) -> io::Result<()> {
        let mut reader = LineReader::new(input, limit);
        let mut waiting = Waiting { held: None, buffer: None, queue };
        loop {
            let until = waiting.held.as_ref().map_or_else(Instant::now, |held| held.until);
            let next = tokio::select! {
                biased;
                line = reader.next() => Some(match line? {
                    Line::Whole(bytes) => ([bytes, b"\n"].concat(), true),
                    Line::Unterminated(bytes) | Line::TooLong(bytes) => (bytes.to_vec(), false),
                    Line::End => break,
                }),
                () = sleep_until(until), if waiting.held.is_some() => None,
            };
            match next {
                Some((line, is_whole)) => {
                    self.active.send_replace(Instant::now());
                    self.pass(line, is_whole, &mut waiting).await;
                }
                None => self.release(&mut waiting, false).await,
            }
        }
        self.release(&mut waiting, false).await;
        waiting.flush().await;
        Ok(())
    }

    async fn pass(&self, line: Vec<u8>, is_whole: bool, waiting: &mut Waiting) {
        let subject = if is_whole { self.injector.read(self.toward, &line[..line.len() - 1]) } else { Subject::Unknown };
        let treatment = self.injector.treat(self.toward, &subject);
        if let Some(note) = self.injector.delayed(&treatment, &subject) {
            self.tap.note(note);
        }
        let did = |planned: PlannedFault, words: String| self.tap.note(self.injector.did(planned, words));
        let lines = match treatment.planned {
            None => vec![line],
            Some(planned) => match planned.disturbance {
                InjectedFault::Drop => {
                    did(planned, format!("dropped {subject}"));
                    Vec::new()
                }
                InjectedFault::Duplicate => {
                    did(planned, format!("sent {subject} twice"));
                    vec![line.clone(), line]
                }
                InjectedFault::Truncate => {
                    did(planned, format!("cut off the second half of {subject}"));
                    let half = (line.len() - 1) / 2;
                    vec![[&line[..half], b"\n"].concat()]
                }
                InjectedFault::Cut => {
                    did(planned, format!("closed the pipes in the middle of {subject}"));
                    let half = line.len() / 2;
                    self.queue(line[..half].to_vec(), true, &treatment, waiting).await;
                    return self.close(waiting).await;
                }
                InjectedFault::Reset => {
                    did(planned, format!("closed the pipes in place of {subject}"));
                    return self.close(waiting).await;
                }
                InjectedFault::ListChanges { count } => {
                    did(planned, format!("sent {count} notifications of changed tools before {subject}"));
                    let change = [LIST_CHANGED, b"\n"].concat();
                    for _ in 0..count {
                        self.queue(change.clone(), true, &MessageFaults::default(), waiting).await;
                    }
                    vec![line]
                }
                InjectedFault::Buffer { bytes } => {
                    did(planned, format!("held back {subject} until there are {bytes} bytes"));
                    waiting.buffer.get_or_insert(Buffer { bytes: Vec::new(), size: bytes });
                    vec![line]
                }
                InjectedFault::Reorder if waiting.held.is_none() => {
                    waiting.held = Some(Held { line, subject, planned, until: Instant::now() + OVERTAKEN_WITHIN });
                    return;
                }
                _ => vec![line],
            },
        };
        let odd = treatment.planned.is_some() || self.injector.is_disturbed(&subject);
        let overtakes = !lines.is_empty();
        for line in lines {
            self.queue(line, odd, &treatment, waiting).await;
        }
        if overtakes {
            self.release(waiting, true).await;
        }
    }

    /// Closes the pipes once everything before is written, so that the same traffic gives the same bytes.
    async fn close(&self, waiting: &mut Waiting) {
        waiting.flush().await;
        let end = Chunk { bytes: Vec::new(), due: Instant::now(), pace: None };
        // All places are free once the last chunk was taken, and that is taken when those before it are written.
        let _ = waiting.queue.send(end).await;
        let _ = waiting.queue.reserve_many(QUEUE).await;
        self.reset.send_replace(true);
        // Nothing after it may be read: the task ends here.
        pending::<()>().await;
    }

    async fn release(&self, waiting: &mut Waiting, overtaken: bool) {
        let Some(Held { line, subject, planned, .. }) = waiting.held.take() else { return };
        self.tap.note(match overtaken {
            true => self.injector.did(planned, format!("let another message overtake {subject}")),
            false => format!("no message came that could overtake {subject}"),
        });
        self.queue(line, true, &MessageFaults::default(), waiting).await;
    }

    async fn queue(&self, bytes: Vec<u8>, odd: bool, treatment: &MessageFaults, waiting: &mut Waiting) {
        if odd && self.toward == FaultDirection::Client {
            self.tap.excuse(bytes.strip_suffix(b"\n").unwrap_or(&bytes));
        }
        if let Some(buffer) = &mut waiting.buffer {
            buffer.bytes.extend_from_slice(&bytes);
            if buffer.bytes.len() >= buffer.size {
                waiting.flush().await;
            }
            return;
        }
        let pace = treatment.pace(bytes.len());
        // Whoever would have taken it has closed its end.
        let _ = waiting.queue.send(Chunk { bytes, due: Instant::now() + treatment.delay, pace }).await;
    }
}

impl Waiting {
    async fn flush(&mut self) {
        if let Some(Buffer { bytes, .. }) = self.buffer.take() {
            let _ = self.queue.send(Chunk { bytes, due: Instant::now(), pace: None }).await;
        }
    }
}

/// Writes what is due, in order, and closes the stream after the last.
async fn give(mut output: impl AsyncWrite + Unpin, mut parcels: mpsc::Receiver<Chunk>) -> io::Result<()> {
    while let Some(Chunk { bytes, due, pace }) = parcels.recv().await {
        sleep_until(due).await;
        match pace {
            None => output.write_all(&bytes).await?,
            Some(Pace { size, pause }) => {
                for piece in bytes.chunks(size) {
                    output.write_all(piece).await?;
                    output.flush().await?;
                    sleep(pause).await;
                }
            }
        }
        output.flush().await?;
    }
    output.shutdown().await
}
