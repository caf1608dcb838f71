//! The names of states, as the store and the dashboard have them.

use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Availability {
    /// No result yet.
    #[default]
    Unknown,
    Ok,
    /// It failed, and is looked at again before anybody is told.
    Suspect,
    Down,
    /// It works again; once more, and it is `Ok`.
    Recovering,
    /// It went down and up again too often to tell each time.
    Flapping,
    /// No result for three intervals.
    Blind,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Surface {
    /// No contract seen yet.
    #[default]
    Unknown,
    Ok,
    /// Something else than before was seen, once.
    Suspect,
    /// It is not what it was, and nobody has agreed to that.
    Changed,
    /// Two or more contracts by turns.
    Mixed,
}

impl Availability {
    pub const ALL: [Self; 7] = [Self::Unknown, Self::Ok, Self::Suspect, Self::Down, Self::Recovering, Self::Flapping, Self::Blind];

    pub fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Ok => "ok",
            Self::Suspect => "suspect",
            Self::Down => "down",
            Self::Recovering => "recovering",
            Self::Flapping => "flapping",
            Self::Blind => "blind",
        }
    }

    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }
}

impl Surface {
    pub const ALL: [Self; 5] = [Self::Unknown, Self::Ok, Self::Suspect, Self::Changed, Self::Mixed];

    pub fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Ok => "ok",
            Self::Suspect => "suspect",
            Self::Changed => "changed",
            Self::Mixed => "mixed",
        }
    }

    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }
}

impl fmt::Display for Availability {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.word())
    }
}

impl fmt::Display for Surface {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.word())
    }
}
