//! Oddities: what a server did wrong and clients tolerate. Reported as warnings, or as errors with `--strict`. Knows sessions,
//! not the requests in them.

use crate::diagnosis::{self, Audience};
use mcproof_client::Session;
use mcproof_record::{Diagnostic, ProbeVerdict, Severity};

/// How oddities are reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Oddities {
    #[default]
    Warn,
    Fail,
}

impl Oddities {
    /// The severity of the diagnostic of an oddity.
    pub fn severity(self) -> Severity {
        match self {
            Self::Warn => Severity::Warning,
            Self::Fail => Severity::Error,
        }
    }

    /// The verdict on a server that works apart from an oddity.
    pub fn verdict(self) -> ProbeVerdict {
        match self {
            Self::Warn => ProbeVerdict::Warning,
            Self::Fail => ProbeVerdict::Unhealthy,
        }
    }
}

/// The oddities of a session.
pub struct Odd {
    /// One of each kind: a server that logs to stdout does so repeatedly.
    pub kinds: Vec<Diagnostic>,
    /// All of them.
    pub count: usize,
}

impl Odd {
    pub fn of(session: &Session, audience: Audience, oddities: Oddities) -> Self {
        let faults = session.faults();
        let mut kinds: Vec<Diagnostic> = Vec::new();
        if !faults.is_empty() {
            let transcript = session.tap().transcript();
            for fault in &faults {
                let diagnostic = diagnosis::of_fault(fault, &transcript, audience);
                if !kinds.iter().any(|known| known.code == diagnostic.code && known.hint == diagnostic.hint) {
                    kinds.push(Diagnostic { severity: oddities.severity(), ..diagnostic });
                }
            }
        }
        Self { kinds, count: faults.len() }
    }
}
