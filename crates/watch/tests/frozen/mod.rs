//! Futures that a test goes on with as it likes. One that is not polled any more is what a process is that the system has
//! stopped: it holds all that it held, and its connections stay open.

#![allow(dead_code, reason = "each test program uses some of these")]

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// In the time of the machine: whoever has waited for so long waits for ever.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Freezable<'a, T> {
    future: Pin<Box<dyn Future<Output = T> + 'a>>,
    woken: Arc<Woken>,
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl<'a, T> Freezable<'a, T> {
    pub(crate) fn new(future: impl Future<Output = T> + 'a) -> Self {
        Self { future: Box::pin(future), woken: Arc::new(Woken(AtomicBool::new(true))) }
    }

    /// Whether it would go on.
    pub(crate) fn is_woken(&self) -> bool {
        self.woken.0.load(Ordering::Relaxed)
    }

    /// Lets it go on until it waits.
    pub(crate) fn poll(&mut self) -> Poll<T> {
        self.woken.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&self.woken));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    /// Lets it go on so many times; what it waited for is there then. What came of it, if it ended before.
    pub(crate) async fn polled(&mut self, times: usize) -> Option<T> {
        for _ in 0..times {
            if let Poll::Ready(outcome) = self.poll() {
                return Some(outcome);
            }
            let began = Instant::now();
            while !self.is_woken() {
                assert!(began.elapsed() < PATIENCE, "nothing comes that it waits for");
                breathe().await;
            }
        }
        None
    }

    /// Lets it go on to its end.
    pub(crate) async fn thawed(self) -> T {
        self.future.await
    }
}

/// Lets sockets and databases work, whose time is that of the machine.
pub(crate) async fn breathe() {
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
    std::thread::sleep(Duration::from_micros(50));
}
