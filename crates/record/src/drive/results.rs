//! The results and notifications that a driver receives. A later version may add members.

use crate::{CheckReport, Contract, ContractDiff, Diagnostic, Difference, Frame, FrameId, Json, Raw, Severity};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// Declares results.
macro_rules! results {
    ($($(#[$doc:meta])* pub struct $name:ident { $($(#[$field_doc:meta])* pub $field:ident: $kind:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct $name { $($(#[$field_doc])* pub $field: $kind,)* }
    )*};
}

/// No members.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// `relay/write`: a message, or bytes.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RelayWritten<'a> {
    pub session: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Value>"))]
    pub message: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Raw>,
}

/// The result of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SnapshotState {
    Same,
    New,
    Differs,
    Written,
}

results! {
    pub struct HelloResult {
        pub protocol: u32,
        /// Of the binary.
        pub version: String,
        pub methods: Vec<String>,
        pub pid: u32,
    }

    pub struct Opened {
        pub session: String,
        pub era: String,
        pub transport: String,
        pub protocol_version: String,
        pub server_info: Option<Value>,
        pub capabilities: Value,
        pub instructions: Option<String>,
        /// Of the handshake.
        pub result: Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub url: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub pid: Option<u32>,
        pub elapsed_ms: f64,
    }

    /// The head of an HTTP response.
    pub struct Http {
        pub status: u16,
        pub headers: Vec<(String, String)>,
    }

    pub struct Answer {
        pub result: Json,
        pub elapsed_ms: f64,
        pub frame: FrameId,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub http: Option<Http>,
    }

    pub struct CallAnswer {
        pub result: Json,
        pub payload: Value,
        pub text: Option<String>,
        pub is_error: bool,
        pub elapsed_ms: f64,
        pub frame: FrameId,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub http: Option<Http>,
    }

    /// Empty if no response was waited for.
    pub struct RawAnswer {
        #[serde(skip_serializing_if = "Option::is_none")]
        pub result: Option<Value>,
        /// The JSON-RPC error of the server.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub error: Option<Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub elapsed_ms: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub frame: Option<FrameId>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub http: Option<Http>,
    }

    pub struct ListResult {
        pub items: Vec<Value>,
        pub pages: usize,
        pub elapsed_ms: f64,
    }

    pub struct Waited {
        pub method: String,
        pub params: Option<Value>,
        pub frame: FrameId,
    }

    pub struct Spawned {
        pub server: String,
        pub url: String,
        pub port: Option<u16>,
        pub pid: Option<u32>,
        pub elapsed_ms: f64,
    }

    /// How a process ended.
    pub struct ExitStatus {
        #[serde(skip_serializing_if = "Option::is_none")]
        pub code: Option<i32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub signal: Option<i32>,
    }

    pub struct Closed {
        /// Missing if mcproof started no process.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub exit: Option<ExitStatus>,
        /// Whether mcproof had to send a signal.
        pub forced: bool,
        pub left_behind: Vec<i32>,
        pub faults: Vec<Diagnostic>,
    }

    pub struct TranscriptResult {
        #[serde(skip_serializing_if = "Option::is_none")]
        pub frames: Option<Vec<Frame>>,
        pub dropped: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub text: Option<String>,
        pub faults: Vec<Diagnostic>,
    }

    pub struct Expected {
        pub ok: bool,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub differences: Vec<Difference>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub diagnostic: Option<Diagnostic>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub text: Option<String>,
    }

    pub struct SnapshotResult {
        pub state: SnapshotState,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub diagnostic: Option<Diagnostic>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub text: Option<String>,
    }

    pub struct CheckFinding {
        pub rule: String,
        pub severity: Severity,
        pub message: String,
        pub remedy: String,
        /// As the terminal shows it.
        pub text: String,
    }

    pub struct CheckResult {
        pub ok: bool,
        pub findings: Vec<CheckFinding>,
        pub report: CheckReport,
        pub text: String,
    }

    pub struct ContractResult {
        /// The kind of client.
        pub key: String,
        pub contract: Contract,
        pub hashes: HashResult,
    }

    pub struct HashResult {
        pub tools: String,
        pub full: String,
    }

    pub struct DiffResult {
        pub ok: bool,
        pub diff: ContractDiff,
        pub text: String,
    }

    /// `session/notification`
    pub struct Notified {
        pub session: String,
        pub method: String,
        pub params: Option<Value>,
        pub frame: FrameId,
    }

    /// `session/progress`
    pub struct Progressed {
        pub session: String,
        /// Of the driver's request.
        pub id: Value,
        pub progress: Option<Value>,
        pub total: Option<Value>,
        pub message: Option<Value>,
        pub frame: FrameId,
    }

    /// `session/frame`
    pub struct SeenFrame {
        pub session: String,
        pub frame: Frame,
        pub text: String,
    }

    /// `session/ended`
    pub struct Ended {
        pub session: String,
        pub reason: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub exit: Option<ExitStatus>,
    }

    /// `session/ask`
    pub struct AskedOfDriver {
        pub session: String,
        pub method: String,
        pub params: Value,
    }

    /// `relay/end`
    pub struct RelayEnded {
        pub session: String,
    }

    /// The `data` of an error.
    pub struct ErrorData {
        /// `bad-input`, `not-open`, `unanswered`, `refused`, `canceled` or `gone`.
        pub kind: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub diagnostic: Option<Diagnostic>,
        /// As the terminal shows it.
        pub text: String,
        /// The JSON-RPC error of the server.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub error: Option<Value>,
        /// The result of the tool, if it was to be raised as an error.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub result: Option<Value>,
        /// The supported versions of the protocol, if another one was requested.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub supported: Option<Vec<u32>>,
    }
}
