//! Revisions in their order, and what holds since which of them.

use serde::{Deserialize, Serialize};

/// A dated version of the specification. Ordered as published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

crate::names!(Revision:
    V2024_11_05 = "2024-11-05",
    V2025_03_26 = "2025-03-26",
    V2025_06_18 = "2025-06-18",
    V2025_11_25 = "2025-11-25",
    V2026_07_28 = "2026-07-28",
);

impl Revision {
    /// The newest revision of the modern era.
    pub const MODERN: Self = Self::V2026_07_28;
    /// The newest revision with an `initialize` handshake.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;
    pub const NEWEST_FIRST: [Self; 5] = [Self::V2026_07_28, Self::V2025_11_25, Self::V2025_06_18, Self::V2025_03_26, Self::V2024_11_05];
    /// Revisions with an `initialize` handshake, newest first.
    pub const LEGACY: [Self; 4] = [Self::V2025_11_25, Self::V2025_06_18, Self::V2025_03_26, Self::V2024_11_05];

    /// The newest revision that is not after `version`; versions are dates, so they compare as text. `None` before the first one.
    pub fn not_after(version: &str) -> Option<Self> {
        Self::NEWEST_FIRST.into_iter().find(|revision| revision.as_str() <= version)
    }

    /// The revision that a session of `version` is taken for: [`Self::not_after`], or else the first one.
    pub fn at(version: &str) -> Self {
        Self::not_after(version).unwrap_or(Self::V2024_11_05)
    }

    /// Whether an HTTP request after the handshake carries `MCP-Protocol-Version` (2025-06-18, transports).
    pub fn has_version_header(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Whether tasks are part of the revision itself. They came, as an experiment, with 2025-11-25 and left for an extension.
    pub fn has_tasks(self) -> bool {
        self == Self::V2025_11_25
    }

    pub const fn era(self) -> Era {
        match self {
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 | Self::V2025_11_25 => Era::Legacy,
            Self::V2026_07_28 => Era::Modern,
        }
    }
}

/// How sessions begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Era {
    /// `initialize` handshake, up to 2025-11-25.
    Legacy,
    /// Stateless, `server/discover`, from 2026-07-28 on.
    Modern,
}

crate::names!(Era: Legacy = "legacy", Modern = "modern");

impl Era {
    /// The era of a published revision; `None` for any other text.
    pub fn of(version: &str) -> Option<Self> {
        version.parse().ok().map(Revision::era)
    }
}

/// Which era to speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EraChoice {
    /// Find out: modern first, then legacy, as 2026-07-28 requires of a client that speaks both.
    #[default]
    Auto,
    Legacy,
    Modern,
}

crate::names!(EraChoice: Auto = "auto", Legacy = "legacy", Modern = "modern");

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
        assert_eq!(Revision::LEGACY.map(Revision::has_version_header), [true, true, false, false]);
    }

    #[test]
    fn any_version_is_judged_by_a_revision() {
        let check = |version, expected| assert_eq!(Revision::at(version), expected, "{version}");
        check("2025-06-18", Revision::V2025_06_18);
        check("2025-07-01", Revision::V2025_06_18);
        check("2099-01-01", Revision::V2026_07_28);
        check("1999-01-01", Revision::V2024_11_05);
    }
}
