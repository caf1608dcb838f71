//! The facts of a run, in the order in which they became known. Reporters, stores and dashboards are sinks of this stream;
//! nothing in it says how to show it.

use crate::{Counts, Diagnostic, Transcript};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Version of everything in this crate that is written to a file or a pipe.
pub const FORMAT_VERSION: u32 = 1;

/// Position of a case in the plan of its run, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CaseId(pub u32);

/// One case that a run is about to execute: a test of a suite, on one transport.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CasePlan {
    pub id: CaseId,
    /// The suite file as the user named it.
    pub suite: String,
    pub name: String,
    /// `stdio`, `http`, `sse` or `in-memory`.
    pub transport: String,
}

/// What the wire proved about how a case was really run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// The name of the server in the suite.
    pub server: String,
    pub transport: String,
    /// `legacy` or `modern`.
    pub era: String,
    pub protocol_version: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Pass,
    Fail,
    /// Not run because the run was told to stop first. Never green.
    Cancelled,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseOutcome {
    pub id: CaseId,
    pub verdict: Verdict,
    /// From the start of the case's first server to its last expectation; the end of the server is not in it.
    #[serde(rename = "duration_ms", with = "millis")]
    pub duration: Duration,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proof: Vec<Proof>,
    /// Failures first, then warnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
    /// Everything on the wire, kept for cases that did not pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transcripts: Vec<Transcript>,
}

/// One fact about a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    RunStarted {
        version: u32,
        cases: Vec<CasePlan>,
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
    },
    RunFinished {
        counts: Counts,
        #[serde(rename = "duration_ms", with = "millis")]
        duration: Duration,
    },
}

mod millis {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub(crate) fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64((value.as_secs_f64() * 1e6).round() / 1e3)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let millis = f64::deserialize(deserializer)?;
        Duration::try_from_secs_f64(millis / 1e3).map_err(serde::de::Error::custom)
    }
}
