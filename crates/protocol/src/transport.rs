//! Transports by name.

use serde::{Deserialize, Serialize};

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    InMemory,
    Stdio,
    /// Streamable HTTP, since 2025-03-26.
    Http,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

crate::names!(Transport: InMemory = "in-memory", Stdio = "stdio", Http = "http", Sse = "sse");

/// Which transport to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TransportChoice {
    /// What the server's address suggests; at a URL, Streamable HTTP first and HTTP+SSE if the server does not serve it.
    #[default]
    Auto,
    Stdio,
    Http,
    Sse,
}

crate::names!(TransportChoice: Auto = "auto", Stdio = "stdio", Http = "http", Sse = "sse");

impl TransportChoice {
    /// The one that was chosen; `None` for `auto`.
    pub const fn only(self) -> Option<Transport> {
        match self {
            Self::Auto => None,
            Self::Stdio => Some(Transport::Stdio),
            Self::Http => Some(Transport::Http),
            Self::Sse => Some(Transport::Sse),
        }
    }
}
