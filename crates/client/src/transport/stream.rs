//! Sockets as hyper wants them. Knows bytes only.

use hyper::rt::{Read, ReadBufCursor, Write};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Why a connection failed, in words, where hyper's error no longer tells.
pub(super) type Trouble = Arc<OnceLock<String>>;

/// Makes tokio's streams readable and writable for hyper.
pub(super) struct Stream<T> {
    inner: T,
    /// Told of the first failed read, by way of `explain`.
    trouble: Option<(Trouble, Explain)>,
}

pub(super) type Explain = Box<dyn Fn(&io::Error) -> Option<String> + Send>;

impl<T> Stream<T> {
    pub(super) fn new(inner: T) -> Self {
        Self { inner, trouble: None }
    }

    pub(super) fn explained(inner: T, trouble: Trouble, explain: Explain) -> Self {
        Self { inner, trouble: Some((trouble, explain)) }
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
