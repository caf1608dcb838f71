//! What a trace says about itself and its sessions.

use crate::line::End;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Version of the trace file. A reader accepts this and all earlier ones.
pub const TRACE_FORMAT: u32 = 1;

/// Number of a session in its trace, counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct SessionKey(pub u32);

impl fmt::Display for SessionKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The first line of a trace, and its `manifest.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Manifest {
    /// Version of the format: [`TRACE_FORMAT`].
    pub format: u32,
    /// Version of mcproof that wrote the trace.
    pub mcproof: String,
    /// What was typed, without secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// RFC 3339, in UTC; missing if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// What everything random was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// All sessions; only in `manifest.json`. In the lines, each session has a line of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<SessionInfo>,
    /// Totals; only in `manifest.json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
}

/// One session of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionInfo {
    /// Assigned by the writer.
    pub key: SessionKey,
    /// The name of the server as the user knows it.
    pub server: String,
    /// `stdio`, `http`, `sse` or `in-memory`.
    pub transport: String,
    /// `legacy` or `modern`; missing if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub era: Option<String>,
    /// The negotiated revision; missing if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The kind of client: `mcproof`, that of a check, or the name by which a recorded client introduced itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Variables that were set for the server, as a suite says them: `${port}` where the value is the port of its URL, else `${env.NAME}`. Their
    /// values may be secrets, and are not recorded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The directory in which the server was started, if one was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The test that held the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// From the start of the trace to the start of the session, from which the times of its frames count.
    #[serde(default, with = "crate::line::micros", rename = "at_us")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub at: Duration,
}
