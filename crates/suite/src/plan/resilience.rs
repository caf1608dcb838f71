//! What a plan says of things that go wrong: faults to inject, what the client does about them, what a server may not
//! leave behind, and where all of it is written down.

use mcproof_client::FaultRule;
use mcproof_record::Place;
use std::time::Duration;

/// A fault between client and server.
#[derive(Clone, Debug)]
pub struct Fault {
    pub rule: FaultRule,
    pub place: Place,
}

/// How often a request that got no response is sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// After the first attempt.
    pub most: u32,
    /// Before the first retry; doubled for each one after it, with jitter.
    pub delay: Duration,
    pub on: Vec<RetryCause>,
    /// Calls of tools, too, that do not declare themselves read-only or idempotent.
    pub force: bool,
}

/// Sends nothing for a while after many failures in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breaker {
    /// Requests in a row without a response that open it.
    pub failures: u32,
    pub open: Duration,
}

/// What keeps a response from coming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryCause {
    /// The deadline passed.
    Timeout,
    /// The connection or the response broke.
    Reset,
    /// An HTTP status of 500 or more.
    ServerError,
    /// The HTTP status 429.
    TooMany,
    /// The breaker was open, so that nothing was sent.
    Breaker,
}

impl RetryCause {
    pub const ALL: [Self; 5] = [Self::Timeout, Self::Reset, Self::ServerError, Self::TooMany, Self::Breaker];

    /// As a suite writes it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Reset => "reset",
            Self::ServerError => "5xx",
            Self::TooMany => "429",
            Self::Breaker => "breaker",
        }
    }
}

/// What a server may hold more of after the steps of a test were repeated.
#[derive(Clone, Debug)]
pub struct Leaks {
    pub repeat: u32,
    pub descriptors: u32,
    pub processes: u32,
    pub place: Place,
}

/// Where every request is written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// May hold `${tmp}`; relative to the suite.
    pub file: String,
    /// Arguments whose values nobody is to read.
    pub redact: Vec<String>,
}

/// Whether tools of several servers may have the same name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameConflicts {
    #[default]
    Refused,
    Allowed,
}
