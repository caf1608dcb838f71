//! The steps, in the order in which a connection takes them, and how each went.

use mcproof_client::{Session, Tap, Target};
use mcproof_record::FrameId;
use serde::Serialize;
use std::time::Duration;

/// One step of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepId {
    Command,
    Start,
    Address,
    Dns,
    Tcp,
    Tls,
    Path,
    Authorization,
    Transport,
    /// Only messages on stdout.
    Stdout,
    Handshake,
    Lists,
    End,
}

impl StepId {
    pub fn title(self) -> &'static str {
        match self {
            Self::Command => "command found",
            Self::Start => "server starts",
            Self::Address => "address",
            Self::Dns => "DNS",
            Self::Tcp => "TCP",
            Self::Tls => "TLS",
            Self::Path => "path",
            Self::Authorization => "authorization",
            Self::Transport => "transport",
            Self::Stdout => "stdout clean",
            Self::Handshake => "handshake",
            Self::Lists => "lists",
            Self::End => "server ends",
        }
    }
}

/// How a step went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepState {
    Passed,
    Failed,
    /// A step before it failed, or it was not reached: nothing is known of it.
    #[default]
    Skipped,
}

/// A step and how it went.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    pub id: StepId,
    pub title: &'static str,
    pub state: StepState,
    /// What was found, or what is wrong: a lowercase fragment without a final dot.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_us: Option<u64>,
    /// The frame that shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<FrameId>,
}

/// All steps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Examination {
    pub steps: Vec<Step>,
    /// The last lines that the server wrote to stderr, if a step failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stderr: Vec<String>,
}

impl Examination {
    /// The first step that failed.
    pub fn failed(&self) -> Option<&Step> {
        self.steps.iter().find(|step| step.state == StepState::Failed)
    }

    /// Whether every step was taken and passed.
    pub fn is_healthy(&self) -> bool {
        self.steps.iter().all(|step| step.state == StepState::Passed)
    }
}

/// Steps while they are taken.
pub(crate) struct Steps {
    steps: Vec<Step>,
    pub(crate) stderr: Vec<String>,
}

impl Steps {
    /// Those that a connection with this target takes.
    pub(crate) fn of(target: &Target) -> Self {
        let mut ids = Vec::new();
        if target.command().is_some() {
            ids.extend([StepId::Command, StepId::Start]);
        }
        match target {
            Target::Stdio(_) => ids.push(StepId::Stdout),
            Target::Http { endpoint, .. } => {
                if endpoint.url.domain().is_some() {
                    ids.push(StepId::Dns);
                }
                ids.push(StepId::Tcp);
                if target.is_over_tls() {
                    ids.push(StepId::Tls);
                }
                ids.extend([StepId::Path, StepId::Authorization, StepId::Transport]);
            }
        }
        ids.extend([StepId::Handshake, StepId::Lists]);
        if matches!(target, Target::Stdio(_)) {
            ids.push(StepId::End);
        }
        let step = |id: StepId| Step {
            id,
            title: id.title(),
            state: StepState::Skipped,
            detail: String::new(),
            hint: None,
            elapsed_us: None,
            frame: None,
        };
        Self { steps: ids.into_iter().map(step).collect(), stderr: Vec::new() }
    }

    pub(crate) fn has(&self, id: StepId) -> bool {
        self.steps.iter().any(|step| step.id == id)
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.steps.iter().any(|step| step.state == StepState::Failed)
    }

    pub(crate) fn before(&self, id: StepId) -> Vec<StepId> {
        self.steps.iter().map(|step| step.id).take_while(|known| *known != id).collect()
    }

    pub(crate) fn pass(&mut self, id: StepId, detail: String, took: Option<Duration>) {
        if let Some(step) = self.steps.iter_mut().find(|step| step.id == id && step.state == StepState::Skipped) {
            step.state = StepState::Passed;
            step.detail = detail;
            step.elapsed_us = took.map(|took| u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        }
    }

    pub(crate) fn fail(&mut self, id: StepId, detail: String, hint: Option<String>, frame: FrameId) {
        let position = self.steps.iter().position(|step| step.id == id).unwrap_or_else(|| {
            // A step that this target was not expected to take, such as an address that cannot be used.
            self.steps.insert(
                0,
                Step { id, title: id.title(), state: StepState::Skipped, detail: String::new(), hint: None, elapsed_us: None, frame: None },
            );
            0
        });
        let step = &mut self.steps[position];
        step.state = StepState::Failed;
        step.detail = detail;
        step.hint = hint;
        step.frame = Some(frame);
    }

    /// The session is open, so that all steps up to the handshake have passed.
    pub(crate) fn connected(&mut self, session: &Session, took: Duration) {
        let handshake = session.handshake();
        let text = format!("{} era, revision {}", handshake.era, handshake.protocol_version);
        self.pass(StepId::Start, "running".to_owned(), None);
        self.pass(StepId::Transport, handshake.transport.to_string(), None);
        self.pass(StepId::Handshake, text, Some(took));
    }

    /// Without the secrets that are known.
    pub(crate) fn finish(self, tap: &Tap) -> Examination {
        let clean = |step: Step| Step { detail: tap.redacted(step.detail), hint: step.hint.map(|hint| tap.redacted(hint)), ..step };
        Examination {
            steps: self.steps.into_iter().map(clean).collect(),
            stderr: self.stderr.into_iter().map(|line| tap.redacted(line)).collect(),
        }
    }
}
