//! What one probe of a target showed, as the state machines see it: facts, without the words of the report.

use crate::moment::Moment;
use mcproof_client::EraEvidence;
use mcproof_record::Phase;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Up,
    /// It works, and something will need care.
    Warning,
    Down,
    /// The fault was on our own side: it says nothing about the target.
    Inconclusive,
}

/// One result. `slot` and `attempt` say which one it is, `at` when it happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    pub target: String,
    /// The scheduled time.
    pub slot: Moment,
    pub region: String,
    /// 0 for the scheduled probe, then 1 and 2 for those that confirm its failure.
    pub attempt: u32,
    pub at: Moment,
    pub verdict: Verdict,
    /// The code of the diagnostic that decided; empty if all is well.
    pub reason: String,
    /// How far it came, where it failed.
    pub layer: Option<String>,
    /// As the diagnostic says it; hostile.
    pub message: String,
    pub hint: Option<String>,
    pub duration: Duration,
    pub phases: Vec<(Phase, Duration)>,
    /// The full hash of the contract, where it was seen.
    pub contract: Option<String>,
    /// A server has another contract in each era: whether it has shown of which one this is.
    pub era_evidence: EraEvidence,
    /// When its certificate ends.
    pub certificate_ends: Option<Moment>,
    /// Of a process that lives on between probes.
    pub process: Option<ProcessFacts>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessFacts {
    /// Bytes in memory.
    pub resident: u64,
    /// Whether it had to be started anew since the last probe.
    pub restarted: bool,
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Warning => "warning",
            Self::Down => "down",
            Self::Inconclusive => "inconclusive",
        }
    }

    pub fn of_word(word: &str) -> Option<Self> {
        [Self::Up, Self::Warning, Self::Down, Self::Inconclusive].into_iter().find(|verdict| verdict.word() == word)
    }

    pub fn is_up(self) -> bool {
        matches!(self, Self::Up | Self::Warning)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.word())
    }
}
