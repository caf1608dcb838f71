//! The outcome of a case: its verdict, its steps, and the evidence. Does not render them.

use crate::{CaseId, Diagnostic, FrameId, Place, Transcript, millis};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

/// How a test was really run, as the frames prove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Proof {
    /// The name of the server in the suite.
    pub server: String,
    pub transport: String,
    /// `legacy` or `modern`.
    pub era: String,
    pub protocol_version: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Pass,
    /// Failed at first, and passed when it was retried. Not the same as passed.
    Flaky,
    Fail,
    /// Not run, for a reason in the suite; its diagnostic is a note with the reason.
    Skipped,
    /// Not run because the run was stopped first. Never a pass.
    #[serde(alias = "cancelled")]
    Canceled,
}

impl Verdict {
    /// Whether the case met its expectations in the end.
    pub fn is_success(self) -> bool {
        matches!(self, Self::Pass | Self::Flaky)
    }
}

/// One step of a test as it was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepOutcome {
    /// What it did, in words: `call create_order`.
    pub title: String,
    /// The name of the server in the suite.
    pub server: String,
    pub place: Place,
    /// From the start of the test.
    #[serde(rename = "at_ms", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub at: Duration,
    #[serde(rename = "duration_ms", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub duration: Duration,
    pub passed: bool,
    /// The requests of the step, each with its outcome.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchanges: Vec<Exchange>,
}

/// A request and the kind of its response: counted by coverage, and recorded by audits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Exchange {
    pub method: String,
    /// The name of the tool or prompt, or the URI of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The arguments that were sent.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub arguments: Map<String, Value>,
    pub answer: AnswerKind,
    /// Set if it was retried, because nothing was received that could be judged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retried: bool,
    /// From the request to its response, or to the end of the wait.
    #[serde(rename = "duration_ms", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub duration: Duration,
    /// The frame of the response in the transcript of the step's server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<FrameId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AnswerKind {
    Result,
    /// A result with `isError`.
    ToolError,
    RpcError,
    /// No response.
    Nothing,
}

/// Everything on the wire of one session of a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionTranscript {
    /// The name of the server in the suite.
    pub server: String,
    pub transcript: Transcript,
}

/// The state of a server right after a failure, found by a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Aftermath {
    pub server: String,
    pub state: ServerState,
    pub blame: Blame,
    /// One sentence: a lowercase fragment without a final dot.
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ServerState {
    /// It responds as expected.
    Answers,
    /// It did not start.
    NotStarted,
    /// Its process has ended.
    Died,
    /// Its process runs, but does not respond.
    Hung,
    /// It accepts a new connection, but the existing session does not respond.
    Silent,
    /// No connection can be made.
    Unreachable,
}

/// The likely cause of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Blame {
    Server,
    Network,
    Suite,
    /// The server responds; either the response or the expectation may be wrong.
    ServerOrSuite,
    /// The suite put faults between client and server, and they are the likely cause.
    InjectedFault,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TestOutcome"))]
pub struct CaseOutcome {
    pub id: CaseId,
    pub verdict: Verdict,
    /// From when the test has its turn to its last expectation. Its first server may have been started ahead of its turn; only
    /// what the test still had to wait for it counts. The end of the servers is not in it.
    #[serde(rename = "duration_ms", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub duration: Duration,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proof: Vec<Proof>,
    /// How often it was run; more than one where `retries` allows it. The rest is about the last of them.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub attempts: u32,
    /// Failures first, then warnings, then notes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepOutcome>,
    /// Of the servers of a test that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aftermath: Vec<Aftermath>,
    /// Stored for tests that did not pass, or for all if a sink requests it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transcripts: Vec<SessionTranscript>,
}

impl CaseOutcome {
    /// An outcome without diagnostics, steps or transcripts.
    pub fn new(id: CaseId, verdict: Verdict, duration: Duration) -> Self {
        Self {
            id,
            verdict,
            duration,
            proof: Vec::new(),
            attempts: 1,
            diagnostics: Vec::new(),
            steps: Vec::new(),
            aftermath: Vec::new(),
            transcripts: Vec::new(),
        }
    }

    /// Everything but the transcripts, which may be large.
    #[must_use]
    pub fn clone_without_transcripts(&self) -> Self {
        Self {
            proof: self.proof.clone(),
            attempts: self.attempts,
            diagnostics: self.diagnostics.clone(),
            steps: self.steps.clone(),
            aftermath: self.aftermath.clone(),
            ..Self::new(self.id, self.verdict, self.duration)
        }
    }
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
fn is_one(number: &u32) -> bool {
    *number == 1
}
