//! Connections to one origin: made when needed, kept while the server keeps them. Knows HTTP, not MCP.

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::{Request, Response};
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::net::TcpStream;
use url::Url;

/// Idle connections to one origin.
pub(crate) struct Pool {
    host: String,
    port: u16,
    head_limit: usize,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

/// A connection in use. Give it back once the body was read to its end; drop it to close it.
pub(crate) struct Lease(SendRequest<Full<Bytes>>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressFailure {
    #[error("`{0}` is no http:// URL")]
    Scheme(String),
    #[error("the URL names no host")]
    NoHost,
}

impl Pool {
    pub(crate) fn new(url: &Url, head_limit: usize) -> Result<Self, AddressFailure> {
        if url.scheme() != "http" {
            return Err(AddressFailure::Scheme(url.as_str().to_owned()));
        }
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(AddressFailure::NoHost)?;
        Ok(Self {
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: url.port_or_known_default().ok_or(AddressFailure::NoHost)?,
            head_limit,
            idle: Mutex::default(),
        })
    }

    /// Sends a request and gives the head of its response.
    ///
    /// A request on a kept connection that the server has closed meanwhile was never sent, so it goes out on another;
    /// nothing is ever sent twice.
    ///
    /// # Errors
    /// A sentence for people: refused, reset, or what of the response was no HTTP.
    pub(crate) async fn send(&self, mut request: Request<Full<Bytes>>) -> Result<(Response<Incoming>, Lease), String> {
        loop {
            let kept = self.idle().pop();
            let (mut sender, fresh) = match kept {
                Some(sender) => (sender, false),
                None => (self.connect().await?, true),
            };
            match sender.try_send_request(request).await {
                Ok(response) => return Ok((response, Lease(sender))),
                Err(mut error) => match error.take_message() {
                    Some(unsent) if !fresh => request = unsent,
                    _ => return Err(describe(&error.into_error())),
                },
            }
        }
    }

    pub(crate) fn give_back(&self, lease: Lease) {
        if !lease.0.is_closed() {
            self.idle().push(lease.0);
        }
    }

    /// Whether anything accepts connections there.
    pub(crate) async fn accepts(&self) -> io::Result<()> {
        TcpStream::connect((self.host.as_str(), self.port)).await.map(drop)
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        let address = || format!("{}:{}", self.host, self.port);
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused => format!("connection to {} refused", address()),
            _ => format!("connection to {} failed: {error}", address()),
        })?;
        // A request is one small write: waiting for more would only cost time.
        let _ = stream.set_nodelay(true);
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(self.head_limit.max(8192))
            .handshake(Stream(stream))
            .await
            .map_err(|error| describe(&error))?;
        // Ends by itself when the sender is dropped or the server closes.
        tokio::spawn(connection);
        Ok(sender)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<SendRequest<Full<Bytes>>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// hyper's error with its cause, which holds the useful half.
pub(crate) fn describe(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// Makes tokio's socket readable and writable for hyper.
struct Stream(TcpStream);

impl Read for Stream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, mut into: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        // SAFETY: tokio's `poll_read` never writes uninitialized bytes into the buffer it is given.
        let mut buffer = ReadBuf::uninit(unsafe { into.as_mut() });
        std::task::ready!(Pin::new(&mut self.0).poll_read(context, &mut buffer))?;
        let read = buffer.filled().len();
        // SAFETY: `read` bytes were just filled.
        unsafe { into.advance(read) };
        Poll::Ready(Ok(()))
    }
}

impl Write for Stream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, parts: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, parts)
    }
}
