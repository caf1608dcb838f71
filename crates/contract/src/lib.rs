//! What a server promises: taken from the server, a trace or a check, hashed, locked, and compared with what it promised before.
//! Knows no files and no terminals.

mod capture;
mod diff;
#[doc(hidden)]
pub mod fuzzed;
mod gathered;
mod hash;
mod kept;
mod lock;
pub mod probe;
mod profile;
mod saved;
mod schema;
mod trace;

pub(crate) use capture::of_parts;
pub use capture::{CaptureFailure, Captured, ToolsSeen, capture, changes_told, complete, of_session, versions};
pub use diff::{Extent, Side, diff};
pub use gathered::{ChangedList, GatheredContracts};
pub use hash::{full_hash, tools_hash};
pub use kept::kept;
pub use lock::{LockError, parse, rehashed, write};
pub use profile::{ParseProfileError, Profile, Visitor};
pub use saved::{Saved, read_lock, read_saved, unreadable};
pub(crate) use trace::legacy_revision;
pub use trace::{TraceFailure, of_check, of_trace};
