//! The facts of a run, in the order in which they became known. Reporters, stores and dashboards are sinks of this stream;
//! none of them depends on how it is shown.

use crate::{CaseOutcome, Counts, Coverage, Diagnostic, Frame, millis};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Version of everything in this crate that is written to a file or a pipe.
pub const FORMAT_VERSION: u32 = 1;

/// Position of a case in the plan of its run, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct CaseId(pub u32);

/// One case that a run is about to execute: a test of a suite, on one transport.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CasePlan {
    pub id: CaseId,
    /// The suite file as the user named it.
    pub suite: String,
    pub name: String,
    /// `stdio`, `http`, `sse` or `in-memory`.
    pub transport: String,
    /// The line of the test in its suite, 1-based.
    pub line: u32,
    /// The number of the repetition, counted from 1; 0 if cases are not repeated.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repetition: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The servers that its steps name, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
}

/// The first response in which two runs of a test over different transports differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Parting {
    /// The step, as its outcome calls it.
    pub step: String,
    pub failed: Branch,
    pub passed: Branch,
}

/// What one of them received there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Branch {
    pub transport: String,
    /// Missing if there was no response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<Frame>,
}

/// One fact about a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    RunStarted {
        version: u32,
        cases: Vec<CasePlan>,
        /// Cases of the same suites that were not selected.
        #[serde(default, skip_serializing_if = "is_zero")]
        left_out: u32,
        /// What the cases were shuffled with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seed: Option<u32>,
    },
    CaseStarted {
        id: CaseId,
    },
    CaseFinished(CaseOutcome),
    /// A case that passes on one transport and fails on another: `failed` and `passed` name them.
    TransportSpecific {
        suite: String,
        name: String,
        failed: Vec<String>,
        passed: Vec<String>,
        /// The first difference between the transports, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parting: Option<Box<Parting>>,
    },
    /// Something about the run or a suite that belongs to no single case.
    Notice {
        diagnostic: Diagnostic,
    },
    /// What a server offers, and what of it no case used.
    Covered(Coverage),
    RunFinished {
        counts: Counts,
        #[serde(rename = "duration_ms", with = "millis")]
        #[cfg_attr(feature = "schema", schemars(with = "f64"))]
        duration: Duration,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}
