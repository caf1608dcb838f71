//! The way to the driver: lines from anywhere in the process. What the driver takes at once is written at once, anything else by
//! a thread, so that a driver that does not read holds up nothing. Knows nothing of what lines say.

use crate::failure::Failure;
use crate::output;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// A driver that leaves so much unread is taken to be gone.
const MOST_UNREAD: usize = 256 << 20;
/// What a pipe that takes anything takes as a whole (POSIX, `PIPE_BUF` on Linux).
const SURE: usize = 4096;

#[derive(Clone)]
pub(super) struct Outlet {
    lines: Sender<Line>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    unread: AtomicUsize,
    closed: AtomicBool,
    written: Notify,
    /// Held while a line is written or queued, so that none overtakes another.
    turn: Mutex<()>,
}

enum Line {
    Text(Vec<u8>),
    /// Everything before it is written.
    Last,
}

impl Outlet {
    pub(super) fn open() -> Result<Self, Failure> {
        let (lines, queue) = mpsc::channel::<Line>();
        let state = Arc::new(State::default());
        let of_thread = Arc::clone(&state);
        let writes = move || {
            let mut bytes = Vec::new();
            while let Ok(line) = queue.recv() {
                let mut is_last = take(line, &mut bytes);
                // What has come meanwhile goes out in one write.
                while !is_last && let Ok(line) = queue.try_recv() {
                    is_last = take(line, &mut bytes);
                }
                if output::data(&bytes).is_err() {
                    of_thread.closed.store(true, Ordering::Relaxed);
                }
                of_thread.unread.fetch_sub(bytes.len(), Ordering::Release);
                bytes.clear();
                if is_last {
                    of_thread.written.notify_one();
                }
            }
        };
        let started = std::thread::Builder::new().name("outlet".into()).spawn(writes);
        started.map_err(|error| Failure::bad_input("no-thread", format!("the system gives no thread: {error}")))?;
        Ok(Self { lines, state })
    }

    /// Sends a line, with its line feed.
    pub(super) fn send(&self, line: Vec<u8>) {
        let _turn = self.state.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if line.len() <= SURE && self.state.unread.load(Ordering::Acquire) == 0 && output::takes_data() {
            // A driver that is gone is noticed by its stdin.
            let _ = output::data(&line);
            return;
        }
        let unread = self.state.unread.fetch_add(line.len(), Ordering::Relaxed);
        if unread > MOST_UNREAD {
            self.close();
        }
        // The thread lives as long as anybody can send.
        let _ = self.lines.send(Line::Text(line));
    }

    /// Nothing more is wanted from the driver, or by it.
    pub(super) fn close(&self) {
        self.state.closed.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.closed.load(Ordering::Relaxed)
    }

    /// Waits until everything is written, but not for a driver that does not read.
    pub(super) async fn finish(&self) {
        let _ = self.lines.send(Line::Last);
        let _ = tokio::time::timeout(std::time::Duration::from_secs(1), self.state.written.notified()).await;
    }
}

fn take(line: Line, bytes: &mut Vec<u8>) -> bool {
    match line {
        Line::Text(text) => bytes.extend_from_slice(&text),
        Line::Last => return true,
    }
    false
}
