//! How far an exchange has come: what a deadline that passes says besides that it passed. Knows no messages.

use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// How far the HTTP exchange of a request had come when its deadline passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Connecting,
    /// Waiting for the proxy to open a tunnel.
    Tunnelling,
    /// In the TLS handshake.
    Securing,
    /// The request is out; nothing of a response has come.
    Asked,
    /// The response has begun, and these bytes of its body came.
    Responder {
        bytes: u64,
    },
}

impl fmt::Display for Stage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting => formatter.write_str("no connection was made"),
            Self::Tunnelling => formatter.write_str("the proxy opened no tunnel"),
            Self::Securing => formatter.write_str("the TLS handshake was not finished"),
            Self::Asked => formatter.write_str("no response began"),
            Self::Responder { bytes: 0 } => formatter.write_str("a response began, but nothing of its body came"),
            Self::Responder { bytes: 1 } => formatter.write_str("a response began, and 1 byte of its body came"),
            Self::Responder { bytes } => write!(formatter, "a response began, and {bytes} bytes of its body came"),
        }
    }
}

/// The stage of an exchange, written by the task that does it and read by those that wait for it.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    stage: AtomicU8,
    bytes: AtomicU64,
}

impl Progress {
    /// Enters a stage. The bytes of a body are counted by [`Progress::came`].
    pub(super) fn enter(&self, stage: Stage) {
        let number = match stage {
            Stage::Connecting => 0,
            Stage::Tunnelling => 1,
            Stage::Securing => 2,
            Stage::Asked => 3,
            Stage::Responder { .. } => 4,
        };
        self.stage.store(number, Ordering::Relaxed);
    }

    pub(super) fn came(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Relaxed) {
            0 => Stage::Connecting,
            1 => Stage::Tunnelling,
            2 => Stage::Securing,
            3 => Stage::Asked,
            _ => Stage::Responder { bytes: self.bytes.load(Ordering::Relaxed) },
        }
    }
}
