//! Protocol revisions, eras and transports by name. Knows no messages.

use std::fmt;
use std::str::FromStr;

/// The newest revision of the modern era.
pub const MODERN: &str = "2026-07-28";

/// Revisions with an `initialize` handshake, newest first.
pub const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The first revision whose HTTP requests carry `MCP-Protocol-Version` (2025-06-18, transports).
const FIRST_WITH_VERSION_HEADER: &str = "2025-06-18";

/// Whether an HTTP request after the handshake carries `MCP-Protocol-Version`. Revisions are dates, so they compare as text.
pub(crate) fn has_version_header(version: &str) -> bool {
    version >= FIRST_WITH_VERSION_HEADER
}

/// Whether tasks are part of the revision itself. They came, as an experiment, with 2025-11-25 and left for an extension.
pub(crate) fn has_tasks(version: &str) -> bool {
    version == "2025-11-25"
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Era {
    /// `initialize` handshake, up to 2025-11-25.
    Legacy,
    /// Stateless, `server/discover`, from 2026-07-28 on.
    Modern,
}

impl Era {
    /// The era of a revision that we know; `None` for any other text.
    pub fn of(version: &str) -> Option<Self> {
        if version == MODERN {
            Some(Self::Modern)
        } else if LEGACY.contains(&version) {
            Some(Self::Legacy)
        } else {
            None
        }
    }
}

/// Which era to speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EraChoice {
    /// Find out: modern first, then legacy, as 2026-07-28 asks of a client that speaks both.
    #[default]
    Auto,
    Legacy,
    Modern,
}

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TransportKind {
    InMemory,
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown value `{found}`: expected one of {allowed}")]
pub struct ParseChoiceError {
    found: String,
    allowed: &'static str,
}

macro_rules! names {
    ($type:ident, $allowed:literal, $($variant:ident = $name:literal),+) => {
        impl fmt::Display for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(match self { $(Self::$variant => $name),+ })
            }
        }

        impl FromStr for $type {
            type Err = ParseChoiceError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($name => Ok(Self::$variant),)+
                    _ => Err(ParseChoiceError { found: text.to_owned(), allowed: $allowed }),
                }
            }
        }
    };
}

names!(Era, "legacy, modern", Legacy = "legacy", Modern = "modern");
names!(EraChoice, "auto, legacy, modern", Auto = "auto", Legacy = "legacy", Modern = "modern");
names!(TransportKind, "in-memory, stdio, http, sse", InMemory = "in-memory", Stdio = "stdio", Http = "http", Sse = "sse");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_belong_to_their_era() {
        let check = |version, expected| assert_eq!(Era::of(version), expected, "{version}");
        check("2026-07-28", Some(Era::Modern));
        check("2025-11-25", Some(Era::Legacy));
        check("2024-11-05", Some(Era::Legacy));
        check("1999-01-01", None);
        check("", None);
    }

    #[test]
    fn version_header_begins_with_2025_06_18() {
        assert_eq!(LEGACY.map(has_version_header), [true, true, false, false]);
    }
}
