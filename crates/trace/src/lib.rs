//! Traces: recorded sessions as a file that people keep, search, compare and export.
//! Knows frames and JSON-RPC messages; no client, no suites, no rules, no clock.

pub mod calls;
pub mod diff;
pub mod export;
pub mod filter;
mod line;
mod manifest;
mod reader;
#[cfg(feature = "schema")]
mod schema;
mod stream;
mod writer;

pub use line::{Attachment, CONTRACT, End, Mark, MarkBody, Omitted, PROBE, TraceLine, TracedFrame};
pub use manifest::{Manifest, SessionInfo, SessionKey, TRACE_FORMAT};
pub use reader::{Ending, Trace, TraceError, TraceRoom, is_zip, transport_of};
#[cfg(feature = "schema")]
pub use schema::trace_schema;
pub use stream::{CallStream, Item};
pub use writer::{TraceLimits, TraceWriter, attach_to, trace_in_memory};
