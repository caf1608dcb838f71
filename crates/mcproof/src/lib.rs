//! The library for tests in Rust: a client that talks to a server in memory, with the framing and the evidence of the
//! real wire. No logic of its own.

pub use mcproof_client::{
    Answers, CallFailure, ConnectFailure, ConnectOptions, Deadline, Disturbance, Era, EraChoice, FaultInjector, FaultRule, Handshake,
    Reply, Schedule, Session, Tap, Toward,
};

use std::ops::Deref;
use tokio::io::{AsyncRead, AsyncWrite};

/// An open session with a server of this process.
pub struct Client(Session);

impl Client {
    /// Connects to any rmcp server handler.
    ///
    /// # Errors
    /// The server did not do the handshake.
    #[cfg(feature = "rmcp")]
    pub async fn in_memory<S: rmcp::Service<rmcp::RoleServer>>(server: S) -> Result<Self, ConnectFailure> {
        use rmcp::ServiceExt as _;
        let (ours, theirs) = tokio::io::duplex(BUFFER);
        // Ends when our half is dropped.
        tokio::spawn(async move {
            if let Ok(running) = server.serve(theirs).await {
                let _ = running.waiting().await;
            }
        });
        let (input, output) = tokio::io::split(ours);
        Self::over(input, output, &ConnectOptions::default()).await
    }

    /// Connects over any pair of byte streams: `input` is what the server writes.
    ///
    /// # Errors
    /// The server did not do the handshake.
    pub async fn over(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
        options: &ConnectOptions,
    ) -> Result<Self, ConnectFailure> {
        mcproof_client::open_in_memory(input, output, options, &Tap::new()).await.map(Self)
    }

    /// Ends the session.
    pub async fn close(self) {
        self.0.close().await;
    }
}

impl Deref for Client {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.0
    }
}

/// Bytes in flight each way: as much as a pipe holds.
#[cfg(feature = "rmcp")]
const BUFFER: usize = 64 << 10;
