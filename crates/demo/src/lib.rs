//! The built-in demo servers: which there are, how one is asked for, and how it is served.
//! Knows no flags and prints nothing but protocol bytes and, over HTTP, the one line that names the address.

mod name;

mod handler;
mod session;

mod analysis;
mod shop;
mod tool;
mod tracker;

mod guard;
mod http;
pub mod patient;
mod sse;

pub use name::{DemoName, NAMES, UnknownDemo};

use std::{
    future::Future,
    io::{self, Write as _},
    net::SocketAddr,
    time::Duration,
};

use axum::{Router, middleware::from_fn_with_state, serve::ListenerExt as _};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::oneshot,
};

use self::{guard::Guard, handler::Demo};
use crate::patient::serve_transport;

/// The delay of a tool that takes its time, unless the options say otherwise.
pub const DEFAULT_SLOW: Duration = Duration::from_millis(50);

/// What to serve, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoOptions {
    pub name: DemoName,
    pub transport: DemoTransport,
    /// The shop takes one item too many out of its stock, so that a suite fails legibly.
    pub miscount: bool,
    /// How long `long_operation` and `run_analysis` take.
    pub slow: Duration,
}

impl DemoOptions {
    /// The demo `name` on stdio, correct, with the default delay.
    #[must_use]
    pub fn new(name: DemoName) -> Self {
        Self { name, transport: DemoTransport::Stdio, miscount: false, slow: DEFAULT_SLOW }
    }
}

/// How the demo is reached. Port 0 asks the system for a free one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DemoTransport {
    Stdio,
    /// Streamable HTTP at `/mcp`.
    Http {
        host: String,
        port: u16,
    },
    /// HTTP+SSE of 2024-11-05 at `/sse`.
    Sse {
        host: String,
        port: u16,
    },
}

/// The address that the HTTP transports bind unless told otherwise.
pub const DEFAULT_HOST: &str = "127.0.0.1";

/// Why a demo could not be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemoError {
    /// Another process listens there, or the host is not one of this machine.
    #[error("cannot listen on {host}:{port}: {source}")]
    Bind { host: String, port: u16, source: io::Error },
    /// The pipe or socket broke while serving.
    #[error("the transport failed: {0}")]
    Transport(#[from] io::Error),
}

/// How long an open connection may take to end after `stop`; then it is dropped.
const FAREWELL: Duration = Duration::from_millis(150);

/// Serves one demo until its peer is done (stdio: end of input) or `stop` resolves. Over HTTP it first writes the
/// line `listening on URL` to standard error.
///
/// # Errors
/// If the address cannot be bound or the transport breaks.
pub async fn serve(options: DemoOptions, stop: impl Future<Output = ()>) -> Result<(), DemoError> {
    if options.transport == DemoTransport::Stdio {
        let (input, output) = rmcp::transport::stdio_pipes();
        return serve_stream(&options, input, output, stop).await;
    }
    let listening = bind(&options).await?;
    writeln!(io::stderr(), "listening on {}", listening.url())?;
    listening.serve(stop).await
}

/// Serves one demo over a pair of byte streams, one JSON-RPC message per line, until `input` ends or `stop` resolves.
/// The transport in `options` is not looked at.
///
/// # Errors
/// If a stream breaks.
pub async fn serve_stream<R, W>(options: &DemoOptions, input: R, output: W, stop: impl Future<Output = ()>) -> Result<(), DemoError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let transport = AsyncRwTransport::new_server(input, output);
    let handler = Demo::new(options).connect();
    let phase = handler.phase().clone();
    Ok(serve_transport(handler, phase, transport, stop).await?)
}

/// Binds the address in `options`, so that the port is known before anything is served. Without an HTTP transport in
/// `options` that is a free port of [`DEFAULT_HOST`] for Streamable HTTP.
///
/// # Errors
/// If the address cannot be bound, mostly because the port is taken.
pub async fn bind(options: &DemoOptions) -> Result<Listening, DemoError> {
    let demo = Demo::new(options);
    match &options.transport {
        DemoTransport::Stdio => {
            let (router, close) = http::routes(demo);
            Listening::new(DEFAULT_HOST, 0, "/mcp", Guard::new(DEFAULT_HOST, http::METHODS), router, close).await
        }
        DemoTransport::Http { host, port } => {
            let (router, close) = http::routes(demo);
            Listening::new(host, *port, "/mcp", Guard::new(host, http::METHODS), router, close).await
        }
        DemoTransport::Sse { host, port } => {
            let (router, close) = sse::routes(demo);
            Listening::new(host, *port, "/sse", Guard::new(host, sse::METHODS), router, close).await
        }
    }
}

/// A demo that is bound to an address and not yet serving: connections queue from the moment that it exists.
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    path: &'static str,
    router: Router,
    close: Box<dyn FnOnce() + Send>,
}

impl Listening {
    async fn new(
        host: &str,
        port: u16,
        path: &'static str,
        guard: Guard,
        router: Router,
        close: impl FnOnce() + Send + 'static,
    ) -> Result<Self, DemoError> {
        let refused = |source| DemoError::Bind { host: host.to_owned(), port, source };
        let listener = TcpListener::bind((host, port)).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let router = router.layer(from_fn_with_state(guard, guard::check));
        Ok(Self { listener, address, path, router, close: Box::new(close) })
    }

    /// The address that is bound, with its real port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where a client connects: `http://127.0.0.1:PORT/mcp`, or `/sse`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, self.path)
    }

    /// Serves until `stop` resolves, then ends every open stream.
    ///
    /// # Errors
    /// If the socket breaks.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> Result<(), DemoError> {
        // An event is a small write that a client waits for: Nagle's algorithm would hold it back.
        let listener = self.listener.tap_io(|stream| {
            // Without it the stream is slower and still right.
            let _slower = stream.set_nodelay(true);
        });
        let (farewell, said) = oneshot::channel::<()>();
        let server = axum::serve(listener, self.router).with_graceful_shutdown(async {
            // The sender is never dropped before it has sent, and a lost one means the same.
            let _ended = said.await;
        });
        let mut server = std::pin::pin!(server.into_future());
        tokio::select! {
            ended = &mut server => return Ok(ended?),
            () = stop => {}
        }
        (self.close)();
        // The server may have gone already.
        let _gone = farewell.send(());
        match tokio::time::timeout(FAREWELL, server).await {
            Ok(ended) => Ok(ended?),
            Err(_) => Ok(()),
        }
    }
}
