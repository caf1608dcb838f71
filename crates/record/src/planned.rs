//! What a run would do, without doing it.

use crate::CasePlan;
use serde::{Deserialize, Serialize};

/// The cases that a run would execute, in the order of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedRun {
    pub version: u32,
    #[serde(rename = "tests")]
    pub cases: Vec<PlannedCase>,
    /// Cases of the same suites that are not selected.
    pub left_out: u32,
    /// What the cases are shuffled with; then `cases` is in the order in which they would start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCase {
    #[serde(rename = "test")]
    pub case: CasePlan,
    pub steps: Vec<PlannedStep>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedStep {
    /// What it does, in words: `call create_order`.
    pub title: String,
    /// The name of the server in the suite; empty for a step that runs a command.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// Its line in the suite, 1-based.
    pub line: u32,
}
