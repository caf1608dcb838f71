//! What came of a case: its verdict, its steps, and the evidence. Says nothing about how to show it.

use crate::{CaseId, Diagnostic, FrameId, Place, Transcript, millis};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

/// What the wire proved about how a case was really run.
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
    /// Failed first, and passed when it was tried again. Never plain green.
    Flaky,
    Fail,
    /// Not run, for a reason that the suite gives; its diagnostic is a note that says which.
    Skipped,
    /// Not run because the run was told to stop first. Never green.
    Cancelled,
}

impl Verdict {
    /// Whether the case met its expectations in the end.
    pub fn is_success(self) -> bool {
        matches!(self, Self::Pass | Self::Flaky)
    }
}

/// One step of a case as it was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepOutcome {
    /// What it did, as a person says it: `call create_order`.
    pub title: String,
    /// The name of the server in the suite.
    pub server: String,
    pub place: Place,
    /// From the start of the case.
    #[serde(rename = "at_ms", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub at: Duration,
    #[serde(rename = "duration_ms", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub duration: Duration,
    pub passed: bool,
    /// The requests of the step, each with what came of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchanges: Vec<Exchange>,
}

/// A request and the kind of its answer: what coverage counts, and what an audit writes down.
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
    /// Set if it was tried again, because nothing came that could be judged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retried: bool,
    /// From the request to its answer, or to the end of waiting.
    #[serde(rename = "duration_ms", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub duration: Duration,
    /// The frame of the answer in the transcript of the step's server.
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
    /// None came.
    Nothing,
}

/// Everything on the wire of one session of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionTranscript {
    /// The name of the server in the suite.
    pub server: String,
    pub transcript: Transcript,
}

/// In what state a failure left a server, as a probe right after it found.
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
    /// It answers as it should.
    Answers,
    /// It never came up.
    NotStarted,
    /// Its process has ended.
    Died,
    /// Its process lives, and answers nothing.
    Hung,
    /// It takes a new connection, but the old session is silent.
    Silent,
    /// No connection can be made.
    Unreachable,
}

/// Who has to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Blame {
    Server,
    Network,
    Suite,
    /// The server answers well, and the expectation may be as wrong as the answer.
    ServerOrSuite,
    /// The suite put faults between client and server, and they are the likely cause.
    InjectedFault,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaseOutcome {
    pub id: CaseId,
    pub verdict: Verdict,
    /// From when the case has its turn to its last expectation. Its first server may have been started ahead of its turn; only
    /// what the case still had to wait for it counts. The end of the servers is not in it.
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
    /// Of the servers of a case that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aftermath: Vec<Aftermath>,
    /// Kept for cases that did not pass, or for all where a sink asks for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transcripts: Vec<SessionTranscript>,
}

impl CaseOutcome {
    /// An outcome without anything to tell.
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
