//! A diagnostic: what is wrong, where, what was expected, what was received, and what to do next. Reporters only render it.

use crate::Evidence;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    Note,
    Warning,
    Error,
}

/// A range of a file of the user, with its text, so that a report needs no other file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Place {
    /// As the user named it.
    pub file: String,
    /// 1-based.
    pub line: u32,
    /// 1-based, in characters.
    pub column: u32,
    /// Length in characters on that first line; at least 1.
    pub length: u32,
    /// The whole first line, without its line ending.
    pub text: String,
}

/// One place where a value differs from the expectation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// Path into the actual value, such as `items[0].name`; empty for the value itself.
    pub path: String,
    /// In words or JSON: `2`, `at least 3`, `a string that matches /^ORD-/`.
    pub expected: String,
    /// The actual value as JSON, or `missing`.
    pub actual: String,
    /// The place of the expectation in the suite.
    pub place: Option<Place>,
}

/// What is wrong, complete enough to act on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diagnostic {
    /// Stable and kebab-case, such as `unknown-key` or `server-exited`. A rule id where a rule was broken.
    pub code: String,
    pub severity: Severity,
    /// One sentence: a lowercase fragment without a final dot.
    pub message: String,
    pub place: Option<Place>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    /// The whole value that was received, pretty-printed, if the differences alone do not show enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// One next step, naming the flag, line or variable to change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Diagnostic {
    pub fn error(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            severity: Severity::Error,
            message: message.into(),
            place: None,
            differences: Vec::new(),
            actual: None,
            evidence: None,
            hint: None,
        }
    }

    pub fn warning(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, message) }
    }

    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn evidence(mut self, evidence: Evidence) -> Self {
        self.evidence = Some(evidence);
        self
    }

    /// A copy with `map` applied to every text that was sent or is derived from that. The source lines of a place
    /// belong to the user, and evidence was redacted when it was recorded: both stay.
    #[must_use]
    pub fn map_text(self, map: impl Fn(String) -> String) -> Self {
        let difference = |difference: Difference| Difference {
            path: map(difference.path),
            expected: map(difference.expected),
            actual: map(difference.actual),
            ..difference
        };
        Self {
            message: map(self.message),
            differences: self.differences.into_iter().map(difference).collect(),
            actual: self.actual.map(&map),
            hint: self.hint.map(&map),
            ..self
        }
    }
}
