//! What somebody may do: look, act on what happens, or change who and what there is.

use std::fmt;

/// Each may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Sees everything but tokens and the audit log.
    Viewer,
    /// Acknowledges, mutes, silences, announces work and deploys.
    Operator,
    /// Adds and removes targets and tokens, and reads the audit log.
    Admin,
}

impl Role {
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Admin];

    /// As it is written in the configuration and in the store.
    pub fn word(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.word() == word)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.word())
    }
}
