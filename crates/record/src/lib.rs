//! What happened: frames, transcripts, diagnostics and the events of a run.
//! Plain data with serde; knows neither tokio nor any I/O, so that a saved run can be judged and shown again later.

mod diagnostic;
mod event;
mod frame;
mod raw;
mod summary;

pub use diagnostic::{Diagnostic, Difference, Place, Severity};
pub use event::{CaseId, CaseOutcome, CasePlan, Event, FORMAT_VERSION, Proof, Verdict};
pub use frame::{Direction, Evidence, ExchangeId, Frame, FrameBody, FrameId, Transcript};
pub use raw::Raw;
pub use summary::{Counts, Summary, fold};
