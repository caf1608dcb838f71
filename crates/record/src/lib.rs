//! What happened: frames, transcripts, diagnostics and the events of a run.
//! Plain data with serde; knows neither tokio nor any I/O, so that a saved run can be judged and shown again later.

mod audit;
mod check;
pub mod clients;
mod contract;
mod counted;
mod coverage;
mod diagnostic;
pub mod drive;
pub mod duration;
mod event;
mod frame;
mod json;
mod json_size;
mod last_run;
mod millis;
mod outcome;
mod planned;
mod probe;
mod raw;
mod repeated_names;
mod requirement;
#[cfg(feature = "schema")]
pub mod schema;
mod summary;
mod telling_lines;

pub use audit::AuditLine;
pub use check::{
    Acceptance, Baseline, CheckReport, Conclusion, Conversation, Defect, Ending, Finding, Gap, GapKind, Judged, Opened, ProbeOutcome,
    Probed, RulePage, RuleResult, RuleSource, Sdk, without_numbers,
};
pub use contract::{ChangeLevel, Contract, ContractChange, ContractDiff, ContractHashes, ContractLock, LockedTarget, PartialContract};
pub use counted::counted;
pub use coverage::{Coverage, CoveredItem, ItemKind};
pub use diagnostic::{Diagnostic, Difference, Place, Severity};
pub use event::{Branch, CaseId, CasePlan, Event, FORMAT_VERSION, Parting};
pub use frame::{ABRIDGED, Direction, Evidence, ExchangeId, Frame, FrameBody, FrameId, NOT_STORED, SENT_AGAIN, Transcript};
pub use json::{Json, JsonObject, Shape, is_plain, read_message, without_half_surrogates};
pub use json_size::{JsonSize, holds_more_values};
pub use last_run::{CaseKey, LastRun};
pub use outcome::{Aftermath, AnswerKind, Blame, CaseOutcome, Exchange, Proof, ServerState, SessionTranscript, StepOutcome, Verdict};
pub use planned::{PlannedCase, PlannedRun, PlannedStep};
pub use probe::{Phase, ProbePhase, ProbeReport, ProbeVerdict, ProbedCertificate, ProbedContract, ProbedHandshake, ProbedTls};
pub use raw::Raw;
pub use repeated_names::RepeatedNames;
pub use requirement::{Requirement, RequirementOwner, Unseen};
pub use summary::{Counts, Summary, fold};
pub use telling_lines::{names_reason, telling_lines};
