//! Passes bytes between a real client and a server unchanged, and lets an observer see them.

mod bodies;
mod endpoint;
mod http;
mod recorder;
mod stdio;

pub use bodies::CLIENT_LEFT;
pub use http::{HttpRelay, RelayListener};
pub use recorder::{PassingStream, Recorder, RecorderLimits};
pub use stdio::{HostPipes, RelayFailure, ServerEnd, command_of, end_like, relay_stdio, take_host_pipes};
