//! A stream whose peer has to take what is written to it: not at once, but at a pace. Time in which nothing waits to be taken
//! costs nobody anything, so that an event stream may be silent for as long as it likes.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

pub(super) struct Paced<S> {
    stream: S,
    /// So long a peer may be behind.
    patience: Duration,
    /// Bytes per second.
    pace: u32,
    /// How far it is behind. It catches up by what it takes, and while nothing waits for it.
    behind: Duration,
    is_waited_for: bool,
    looked: Instant,
    end: Pin<Box<Sleep>>,
}

impl<S> Paced<S> {
    pub(super) fn new(stream: S, patience: Duration, pace: u32) -> Self {
        let end = Box::pin(sleep(patience));
        Self { stream, patience, pace, behind: Duration::ZERO, is_waited_for: false, looked: Instant::now(), end }
    }

    /// What came of a write.
    fn judge(&mut self, context: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        let now = Instant::now();
        let passed = now - std::mem::replace(&mut self.looked, now);
        self.behind = if self.is_waited_for { self.behind + passed } else { self.behind.saturating_sub(passed) };
        self.is_waited_for = written.is_pending();
        match written {
            Poll::Ready(Ok(taken)) => {
                let seconds = f64::from(u32::try_from(taken).unwrap_or(u32::MAX)) / f64::from(self.pace.max(1));
                self.behind = self.behind.saturating_sub(Duration::from_secs_f64(seconds));
                Poll::Ready(Ok(taken))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending if self.behind >= self.patience => Poll::Ready(Err(ErrorKind::TimedOut.into())),
            Poll::Pending => {
                self.end.as_mut().reset(now + (self.patience - self.behind));
                ready!(self.end.as_mut().poll(context));
                Poll::Ready(Err(ErrorKind::TimedOut.into()))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, written)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.judge(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
