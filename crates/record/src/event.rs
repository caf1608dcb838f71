//! The facts of a run, in the order in which they became known. Reporters, stores and dashboards are sinks of this stream;
//! none of them depends on how it is shown.

use crate::{CaseOutcome, Counts, Coverage, Diagnostic, Frame, millis};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Version of everything in this crate that is written to a file or a pipe.
pub const FORMAT_VERSION: u32 = 1;

/// Position of a test in the plan of its run, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TestId"))]
#[serde(transparent)]
pub struct CaseId(pub u32);

/// One test that a run is about to execute, on one transport.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TestPlan"))]
pub struct CasePlan {
    pub id: CaseId,
    /// The suite file as the user named it.
    pub suite: String,
    pub name: String,
    /// `stdio`, `http`, `sse` or `in-memory`.
    pub transport: String,
    /// The line of the test in its suite, 1-based.
    pub line: u32,
    /// The number of the repetition, counted from 1; 0 if tests are not repeated.
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
        #[serde(rename = "tests", alias = "cases")]
        cases: Vec<CasePlan>,
        /// Tests of the same suites that were not selected.
        #[serde(default, skip_serializing_if = "is_zero")]
        left_out: u32,
        /// What the tests were shuffled with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seed: Option<u32>,
    },
    #[serde(rename = "test-started", alias = "case-started")]
    CaseStarted { id: CaseId },
    #[serde(rename = "test-finished", alias = "case-finished")]
    CaseFinished(CaseOutcome),
    /// A test that passes on one transport and fails on another: `failed` and `passed` name them.
    TransportSpecific {
        suite: String,
        name: String,
        failed: Vec<String>,
        passed: Vec<String>,
        /// The first difference between the transports, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parting: Option<Box<Parting>>,
    },
    /// Something about the run or a suite that belongs to no single test.
    Notice { diagnostic: Diagnostic },
    /// What a server offers, and what of it no test used.
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_of_older_files_are_read_and_no_longer_written() {
        let check = |older: serde_json::Value, today: serde_json::Value| {
            let event: Event = serde_json::from_value(older).unwrap();
            assert_eq!(serde_json::to_value(event).unwrap(), today);
        };
        check(json!({ "event": "run-started", "version": 1, "cases": [] }), json!({ "event": "run-started", "version": 1, "tests": [] }));
        check(json!({ "event": "case-started", "id": 3 }), json!({ "event": "test-started", "id": 3 }));
        check(
            json!({ "event": "case-finished", "id": 3, "verdict": "cancelled", "duration_ms": 0.5 }),
            json!({ "event": "test-finished", "id": 3, "verdict": "canceled", "duration_ms": 0.5 }),
        );
        check(
            json!({ "event": "run-finished", "counts": { "passed": 0, "failed": 1, "cancelled": 2 }, "duration_ms": 0.5 }),
            json!({
                "event": "run-finished",
                "counts": { "passed": 0, "flaky": 0, "failed": 1, "skipped": 0, "canceled": 2 },
                "duration_ms": 0.5
            }),
        );
    }
}
