//! Incidents: what is wrong with whom, and how much it matters. Knows nothing of channels.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing.
    Notify,
    /// Worth waking somebody.
    Page,
    /// Somebody may be up to something.
    Security,
}

/// What kind of trouble. A target has at most one open incident of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    Availability,
    /// Down from some regions, while most see it working.
    Partial,
    Contract,
    MixedFleet,
    Flapping,
    Blind,
    Certificate,
    Latency,
    Objective,
    Memory,
    Restarts,
    /// Many targets at once.
    Storm,
    /// Several targets that are told together.
    Group,
}

impl Class {
    pub const ALL: [Self; 13] = [
        Self::Availability,
        Self::Partial,
        Self::Contract,
        Self::MixedFleet,
        Self::Flapping,
        Self::Blind,
        Self::Certificate,
        Self::Latency,
        Self::Objective,
        Self::Memory,
        Self::Restarts,
        Self::Storm,
        Self::Group,
    ];

    /// As it is written in the store.
    pub fn word(self) -> &'static str {
        match self {
            Self::Availability => "availability",
            Self::Partial => "partial",
            Self::Contract => "contract",
            Self::MixedFleet => "mixed-fleet",
            Self::Flapping => "flapping",
            Self::Blind => "blind",
            Self::Certificate => "certificate",
            Self::Latency => "latency",
            Self::Objective => "objective",
            Self::Memory => "memory",
            Self::Restarts => "restarts",
            Self::Storm => "storm",
            Self::Group => "group",
        }
    }
}

impl Severity {
    pub const ALL: [Self; 3] = [Self::Notify, Self::Page, Self::Security];

    pub fn word(self) -> &'static str {
        match self {
            Self::Notify => "notify",
            Self::Page => "page",
            Self::Security => "security",
        }
    }
}

impl Severity {
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|severity| severity.word() == word)
    }
}

impl Class {
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.word() == word)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.word())
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.word())
    }
}

/// What everybody who is told of an incident gets to know. Kept with the incident, as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    /// The phase or layer that failed: `dns`, `connect`, `tls`, `handshake`, `list`, `contract`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
    /// The code of the diagnostic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// In one or two sentences; redacted, and as hostile as the server that caused it.
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The targets of a storm, or of a group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    /// The target that is down, on which this one depends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because_of: Option<String>,
    /// Of a group: the tags by which its route was found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// It ended because its target is no longer monitored: nobody has seen it work again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unmonitored: bool,
}
