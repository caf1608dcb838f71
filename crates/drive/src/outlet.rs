//! Output lines of the driver, from anywhere in the process. The lines of one turn of the runtime are written together: directly as far as
//! the reader accepts them, the rest by a thread, so a slow reader blocks nothing. Knows no content of lines.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;
use tokio::task::yield_now;

/// A driver that leaves so much unread is taken to be gone.
const MOST_UNREAD: usize = 256 << 20;
/// More than a pipe holds is for the thread.
const MOST_A_TURN: usize = 64 << 10;

/// Writes for the driver, by whoever owns stdout.
#[derive(Clone, Copy)]
pub struct Output {
    /// Writes all bytes, and waits for the reader.
    pub write: fn(&[u8]) -> io::Result<()>,
    /// Takes from the front what the reader takes without waiting. Used for pipes only.
    pub write_at_once: fn(&mut Vec<u8>),
    pub is_pipe: bool,
}

#[derive(Clone)]
pub(crate) struct Outlet {
    /// The thread; `None` where whoever holds the drive takes the lines.
    lines: Option<Sender<Lines>>,
    state: Arc<OutletState>,
}

#[derive(Default)]
struct OutletState {
    /// The lines of this turn. Held while they are written or queued, so that none overtakes another.
    turn: Mutex<Vec<u8>>,
    /// Told when a turn has its first line.
    begun: Notify,
    /// What the thread has.
    unread: AtomicUsize,
    closed: AtomicBool,
    written: Notify,
}

enum Lines {
    Text(Vec<u8>),
    /// Everything before it is written.
    Last,
}

impl Outlet {
    /// Needs a runtime.
    pub(crate) fn open(output: Output) -> io::Result<Self> {
        let (lines, queue) = mpsc::channel::<Lines>();
        let state = Arc::new(OutletState::default());
        let of_thread = Arc::clone(&state);
        let writes = move || {
            let mut bytes = Vec::new();
            while let Ok(lines) = queue.recv() {
                let mut is_last = take(lines, &mut bytes);
                // What has come meanwhile goes out in one write.
                while !is_last && let Ok(lines) = queue.try_recv() {
                    is_last = take(lines, &mut bytes);
                }
                if (output.write)(&bytes).is_err() {
                    of_thread.closed.store(true, Ordering::Relaxed);
                }
                of_thread.unread.fetch_sub(bytes.len(), Ordering::Release);
                bytes.clear();
                if is_last {
                    of_thread.written.notify_one();
                }
            }
        };
        std::thread::Builder::new().name("outlet".into()).spawn(writes)?;
        let outlet = Self { lines: Some(lines), state };
        tokio::spawn(outlet.clone().write_turns(output));
        Ok(outlet)
    }

    /// Keeps what is sent until it is taken.
    pub(crate) fn kept() -> Self {
        Self { lines: None, state: Arc::default() }
    }

    /// What was sent and not taken yet.
    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.state.turn.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sends a line, with its line feed.
    pub(crate) fn send(&self, line: Vec<u8>) {
        self.add(|turn| if turn.is_empty() { *turn = line } else { turn.extend_from_slice(&line) });
    }

    /// Sends a line in parts, the last with its line feed.
    pub(crate) fn send_parts(&self, parts: &[&[u8]]) {
        self.add(|turn| {
            turn.reserve(parts.iter().map(|part| part.len()).sum());
            parts.iter().for_each(|part| turn.extend_from_slice(part));
        });
    }

    fn add(&self, line: impl FnOnce(&mut Vec<u8>)) {
        let mut turn = self.state.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if turn.is_empty() {
            self.state.begun.notify_one();
        }
        line(&mut turn);
        if turn.len() > MOST_A_TURN {
            self.hand_over(&mut turn);
        }
    }

    /// Nothing more is wanted from the driver, or by it.
    pub(crate) fn close(&self) {
        self.state.closed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.closed.load(Ordering::Relaxed)
    }

    /// Waits until everything is written, but not for a driver that does not read.
    pub(crate) async fn finish(&self) {
        self.hand_over(&mut self.state.turn.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(thread) = &self.lines {
            let _ = thread.send(Lines::Last);
        }
        let _ = tokio::time::timeout(std::time::Duration::from_secs(1), self.state.written.notified()).await;
    }

    async fn write_turns(self, output: Output) {
        loop {
            self.state.begun.notified().await;
            // Until nothing else is to be done: each write wakes the driver.
            yield_now().await;
            let mut turn = self.state.turn.lock().unwrap_or_else(PoisonError::into_inner);
            if output.is_pipe && self.state.unread.load(Ordering::Acquire) == 0 {
                (output.write_at_once)(&mut turn);
            }
            self.hand_over(&mut turn);
        }
    }

    /// Leaves the rest to the thread.
    fn hand_over(&self, turn: &mut Vec<u8>) {
        let Some(thread) = self.lines.as_ref().filter(|_| !turn.is_empty()) else { return };
        let unread = self.state.unread.fetch_add(turn.len(), Ordering::Relaxed);
        if unread > MOST_UNREAD {
            self.close();
        }
        // The thread lives as long as anybody can send.
        let _ = thread.send(Lines::Text(std::mem::take(turn)));
    }
}

fn take(lines: Lines, bytes: &mut Vec<u8>) -> bool {
    match lines {
        Lines::Text(text) => bytes.extend_from_slice(&text),
        Lines::Last => return true,
    }
    false
}
