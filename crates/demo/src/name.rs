//! The names of the demos, as a person types them.

use std::{fmt, str::FromStr};

/// Which demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DemoName {
    /// An issue tracker: tools, resources, a prompt, completion and logging.
    Tracker,
    /// A shop: orders, stock, and tools that depend on each other.
    Shop,
    /// The whole analysis trio in one server.
    Analysis,
    /// First of the analysis trio: finds a data set.
    DataSource,
    /// Second of the analysis trio: runs a model over it.
    MlAnalysis,
    /// Third of the analysis trio: words the result.
    Report,
}

/// All demos, in the order in which help lists them.
pub const NAMES: [DemoName; 6] =
    [DemoName::Tracker, DemoName::Shop, DemoName::Analysis, DemoName::DataSource, DemoName::MlAnalysis, DemoName::Report];

impl DemoName {
    /// The name as typed: `data-source`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tracker => "tracker",
            Self::Shop => "shop",
            Self::Analysis => "analysis",
            Self::DataSource => "data-source",
            Self::MlAnalysis => "ml-analysis",
            Self::Report => "report",
        }
    }

    /// One line of help.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Tracker => "an issue tracker, with resources, a prompt and completion",
            Self::Shop => "a shop whose orders reduce its stock",
            Self::Analysis => "the three servers of the analysis trio in one",
            Self::DataSource => "finds a data set, first of the analysis trio",
            Self::MlAnalysis => "runs a model over a data set, second of the analysis trio",
            Self::Report => "writes up the result of an analysis, third of the analysis trio",
        }
    }
}

impl fmt::Display for DemoName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// No demo has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no demo is called `{0}`")]
pub struct UnknownDemo(pub String);

impl FromStr for DemoName {
    type Err = UnknownDemo;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        NAMES.into_iter().find(|name| name.as_str() == text).ok_or_else(|| UnknownDemo(text.to_owned()))
    }
}
