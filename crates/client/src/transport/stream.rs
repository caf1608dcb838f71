//! Sockets as hyper wants them. Knows bytes only.

use hyper::rt::{Read, ReadBufCursor, Write};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Why a connection failed, in words, where hyper's error no longer tells.
pub(super) type Trouble = Arc<OnceLock<String>>;

/// The last bytes that a connection brought, and when: whether a chunk is open shows in them alone, if nothing follows it.
#[derive(Clone, Debug, Default)]
pub(super) struct LastRead(Arc<Mutex<Received>>);

#[derive(Debug, Default)]
struct Received {
    last: [u8; 2],
    at: Option<Instant>,
    /// All bytes so far.
    count: u64,
}

impl LastRead {
    fn note(&self, bytes: &[u8]) {
        let mut received = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for byte in bytes.iter().rev().take(2).rev() {
            received.last = [received.last[1], *byte];
        }
        if !bytes.is_empty() {
            received.at = Some(Instant::now());
        }
        received.count += bytes.len() as u64;
    }

    /// How many bytes the connection has brought.
    pub(super) fn count(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    /// Whether what came last is no line end, and nothing has come after it for so long.
    pub(super) fn lacks_line_end(&self, silence: Duration) -> bool {
        let received = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        received.last != *b"\r\n" && received.at.is_some_and(|at| at.elapsed() >= silence)
    }
}

/// Makes tokio's streams readable and writable for hyper.
pub(super) struct Stream<T> {
    inner: T,
    /// Told of the first failed read, by way of `explain`.
    trouble: Option<(Trouble, Explain)>,
    last_read: LastRead,
}

pub(super) type Explain = Box<dyn Fn(&io::Error) -> Option<String> + Send>;

impl<T> Stream<T> {
    pub(super) fn new(inner: T) -> Self {
        Self { inner, trouble: None, last_read: LastRead::default() }
    }

    pub(super) fn explained(inner: T, trouble: Trouble, explain: Explain) -> Self {
        Self { inner, trouble: Some((trouble, explain)), last_read: LastRead::default() }
    }

    pub(super) fn last_read(&self) -> LastRead {
        self.last_read.clone()
    }

    fn explain(&self, error: &io::Error) {
        if let Some((trouble, explain)) = &self.trouble
            && let Some(text) = explain(error)
        {
            // The first failure is the cause of the others.
            let _ = trouble.set(text);
        }
    }
}

impl<T: AsyncRead + Unpin> Read for Stream<T> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, mut into: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        // SAFETY: tokio's `poll_read` never writes uninitialized bytes into the buffer it is given.
        let mut buffer = ReadBuf::uninit(unsafe { into.as_mut() });
        if let Err(error) = std::task::ready!(Pin::new(&mut self.inner).poll_read(context, &mut buffer)) {
            self.explain(&error);
            return Poll::Ready(Err(error));
        }
        self.last_read.note(buffer.filled());
        let read = buffer.filled().len();
        // SAFETY: `read` bytes were just filled.
        unsafe { into.advance(read) };
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> Write for Stream<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, parts: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bytes_tell_whether_a_line_end_is_missing() {
        let check = |reads: &[&str], expected: bool| {
            let last = LastRead::default();
            reads.iter().for_each(|read| last.note(read.as_bytes()));
            assert_eq!(last.lacks_line_end(Duration::ZERO), expected, "{reads:?}");
            assert_eq!(last.count(), reads.concat().len() as u64, "{reads:?}");
            assert!(!last.lacks_line_end(Duration::from_secs(3600)), "{reads:?}");
        };
        check(&[], false);
        check(&["5\r\nhello\r\n"], false);
        check(&["5\r\nhello\r", "\n"], false);
        check(&["5\r\nhello\r", "", "\n"], false);
        check(&["5\r\nhello"], true);
        check(&["5\r\nhello\r"], true);
        check(&["5\r\nhello\r\n", "1"], true);
    }
}
