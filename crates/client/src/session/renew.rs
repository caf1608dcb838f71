//! A new session on the same server process: what a leak check compares a server with itself by. The old session is ended
//! as the protocol has it, and the server is asked whether it has let go of it.

use super::open::Opening;
use super::wire::Connection;
use super::{ConnectFailure, ConnectOptions, Session};
use crate::Tap;
use crate::transport::{Endpoint, Program, ResourceUsage};
use mcproof_protocol::Transport;
use std::sync::Arc;

/// What a server did with a session that we ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// There was none to end: the server gave us no session id, or the transport has none.
    NoSession,
    /// A request with the old id was refused.
    Refused,
    /// DELETE was not taken, as the protocol allows: the server ends its sessions by itself (status).
    NotTaken(u16),
    /// DELETE was taken, and a request with the old id as well (status).
    StillKnown(u16),
    /// No response came in time.
    Silent,
}

impl Session {
    /// Ends this session and opens another one on the same server process. Over stdio and in memory, where a process has one
    /// session, it goes on as it is.
    ///
    /// # Errors
    /// As [`super::open_session`]; the server that was started has ended then.
    pub async fn renew(self, options: &ConnectOptions, tap: &Tap) -> Result<(Self, SessionEnd), ConnectFailure> {
        let Some((endpoint, kind)) = self.reached.clone() else { return Ok((self, SessionEnd::NoSession)) };
        let Self { wire, spawned, answering, patience, .. } = self;
        answering.end().await;
        let mut farewell = SessionEnd::NoSession;
        if let Some(wire) = Arc::into_inner(wire)
            && let (true, headers) = (wire.has_session(), wire.headers())
            && let Connection::Http(http) = wire.connection
        {
            farewell = match http.delete(&headers, patience.end_of_input).await {
                None => SessionEnd::Silent,
                // 2025-03-26 to 2025-11-25, transports, session management: 405 where clients may not end a session.
                Some(status) if !(200..300).contains(&status) => SessionEnd::NotTaken(status),
                Some(_) => match http.ask_with(&headers, patience.end_of_input).await {
                    None => SessionEnd::Silent,
                    Some(400..=499) => SessionEnd::Refused,
                    Some(status) => SessionEnd::StillKnown(status),
                },
            };
        }
        let session = Opening::new(options, tap).connect(&endpoint, Some(kind), spawned).await?;
        Ok((session, farewell))
    }

    /// Where an HTTP server listens, and which of its transports it is: what another session with it is opened by.
    pub fn reached(&self) -> Option<&(Endpoint, Transport)> {
        self.reached.as_ref()
    }

    /// What the server's processes hold now; `None` where we did not start it, or the system does not tell.
    pub fn resource_usage(&self) -> Option<ResourceUsage> {
        match (&self.wire.connection, &self.spawned) {
            (Connection::Stdio(stdio), _) => stdio.resource_usage(),
            (_, Some(spawned)) => spawned.process.resource_usage(),
            _ => None,
        }
    }

    /// The id of the server's process; `None` where we did not start it.
    pub fn process_id(&self) -> Option<i32> {
        match (&self.wire.connection, &self.spawned) {
            (Connection::Stdio(stdio), _) => Some(stdio.process().group()),
            (_, Some(spawned)) => Some(spawned.process.group()),
            _ => None,
        }
    }

    /// The programs of the server's processes, parents first; none where we did not start it, or the system does not tell.
    pub fn programs(&self) -> Vec<Program> {
        match (&self.wire.connection, &self.spawned) {
            (Connection::Stdio(stdio), _) => stdio.process().programs(),
            (_, Some(spawned)) => spawned.process.programs(),
            _ => Vec::new(),
        }
    }
}
