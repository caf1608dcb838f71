//! Faults on a pair of byte streams that carry one message a line. Stands between the channel and the process as a
//! network would. Knows lines and treatments, no reasons for them. A line goes on once it is whole: of one that never ends,
//! our client sees nothing before the stream does.

use super::{FaultDirection, FaultInjector, InjectedFault, MessageFaults, OVERTAKEN_WITHIN, PlannedFault, Subject, pieces};
use crate::Tap;
use crate::transport::lines::{Line, LineReader};
use std::io;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

/// Carries lines both ways until both ends are closed. Dropping it closes them.
pub(in crate::transport) struct Relay(JoinHandle<()>);

impl Drop for Relay {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Lines that wait for their time.
const QUEUE: usize = 1024;
const BUFFER: usize = 64 << 10;

impl Relay {
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
        let (reset, mut broken) = watch::channel(false);
        let way = |toward| Way { toward, injector: injector.clone(), tap: tap.clone(), reset: reset.clone() };
        let (to_client, to_server) = (way(FaultDirection::Client), way(FaultDirection::Server));
        let task = tokio::spawn(async move {
            let both = async {
                tokio::join!(to_client.carry(input, far_input, limit.saturating_add(1)), to_server.carry(far_output, output, usize::MAX));
            };
            tokio::select! {
                () = both => {}
                // Leaving drops all four ends.
                _ = broken.wait_for(|broken| *broken) => {}
            }
        });
        (Self(task), near_input, near_output)
    }
}

/// One direction.
struct Way {
    toward: FaultDirection,
    injector: FaultInjector,
    tap: Tap,
    reset: watch::Sender<bool>,
}

/// Bytes that are to go on at a time.
struct Chunk {
    bytes: Vec<u8>,
    due: Instant,
    bytes_per_second: Option<u64>,
}

/// A line that waits to be overtaken.
struct Held {
    line: Vec<u8>,
    subject: Subject,
    planned: PlannedFault,
    until: Instant,
}

impl Way {
    async fn carry(self, input: impl AsyncRead + Unpin, output: impl AsyncWrite + Unpin, limit: usize) {
        let (queue, parcels) = mpsc::channel(QUEUE);
        // Errors are the end of the stream; who reads or writes at the other end will see it.
        let (_, _) = tokio::join!(self.take(input, queue, limit), give(output, parcels));
    }

    /// Reads lines and says when and how each of them goes on. What is held survives the choice of `select!`: it is
    /// outside of it.
    async fn take(&self, input: impl AsyncRead + Unpin, queue: mpsc::Sender<Chunk>, limit: usize) -> io::Result<()> {
        let mut reader = LineReader::new(input, limit);
        let mut held: Option<Held> = None;
        loop {
            let until = held.as_ref().map_or_else(Instant::now, |held| held.until);
            let next = tokio::select! {
                biased;
                line = reader.next() => Some(match line? {
                    Line::Whole(bytes) => ([bytes, b"\n"].concat(), true),
                    Line::Unterminated(bytes) | Line::TooLong(bytes) => (bytes.to_vec(), false),
                    Line::End => break,
                }),
                () = sleep_until(until), if held.is_some() => None,
            };
            match next {
                Some((line, is_whole)) => self.pass(line, is_whole, &mut held, &queue).await,
                None => self.release(&mut held, &queue, false).await,
            }
        }
        self.release(&mut held, &queue, false).await;
        Ok(())
    }

    async fn pass(&self, line: Vec<u8>, is_whole: bool, held: &mut Option<Held>, queue: &mpsc::Sender<Chunk>) {
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
                InjectedFault::Reset => {
                    did(planned, format!("closed the pipes in place of {subject}"));
                    self.reset.send_replace(true);
                    return;
                }
                InjectedFault::Reorder if held.is_none() => {
                    *held = Some(Held { line, subject, planned, until: Instant::now() + OVERTAKEN_WITHIN });
                    return;
                }
                _ => vec![line],
            },
        };
        let odd = treatment.planned.is_some() || self.injector.is_disturbed(&subject);
        let overtakes = !lines.is_empty();
        for line in lines {
            self.queue(line, odd, &treatment, queue).await;
        }
        if overtakes {
            self.release(held, queue, true).await;
        }
    }

    async fn release(&self, held: &mut Option<Held>, queue: &mpsc::Sender<Chunk>, overtaken: bool) {
        let Some(Held { line, subject, planned, .. }) = held.take() else { return };
        self.tap.note(match overtaken {
            true => self.injector.did(planned, format!("let another message overtake {subject}")),
            false => format!("no message came that could overtake {subject}"),
        });
        self.queue(line, true, &MessageFaults::default(), queue).await;
    }

    async fn queue(&self, bytes: Vec<u8>, odd: bool, treatment: &MessageFaults, queue: &mpsc::Sender<Chunk>) {
        if odd && self.toward == FaultDirection::Client {
            self.tap.excuse(bytes.strip_suffix(b"\n").unwrap_or(&bytes));
        }
        let parcel = Chunk { bytes, due: Instant::now() + treatment.delay, bytes_per_second: treatment.bytes_per_second };
        // Whoever would have taken it has closed its end.
        let _ = queue.send(parcel).await;
    }
}

/// Writes what is due, in order, and closes the stream after the last.
async fn give(mut output: impl AsyncWrite + Unpin, mut parcels: mpsc::Receiver<Chunk>) -> io::Result<()> {
    while let Some(Chunk { bytes, due, bytes_per_second }) = parcels.recv().await {
        sleep_until(due).await;
        match bytes_per_second {
            None => output.write_all(&bytes).await?,
            Some(rate) => {
                let (size, pause) = pieces(rate);
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
