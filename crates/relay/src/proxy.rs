//! Passes bytes between a real client and a server unchanged, and lets an observer see them.

mod bodies;
mod endpoint;
mod http;
mod inward;
mod outward;
mod recorder;
mod stdio;

pub use bodies::{CLIENT_LEFT, UNREAD_NOTE};
pub use http::{HttpRelay, RelayListener};
pub use inward::{InwardBridge, Start};
pub use outward::OutwardBridge;
pub use recorder::{PassingStream, Recorder, RecorderLimits};
pub use stdio::{LineFaults, RelayFailure, ServerEnd, command_of, end_like, relay_stdio};
