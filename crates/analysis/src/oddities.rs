//! What a server sent that not every client takes: whoever uses a server is told, whoever is strict refuses it. Knows sessions,
//! not what was asked of them.

use crate::diagnosis::{self, Asker};
use mcproof_client::Session;
use mcproof_record::{Diagnostic, ProbeVerdict, Severity};

/// What becomes of what is odd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Oddities {
    #[default]
    Told,
    Refused,
}

impl Oddities {
    /// Of one, as something to tell.
    pub fn severity(self) -> Severity {
        match self {
            Self::Told => Severity::Warning,
            Self::Refused => Severity::Error,
        }
    }

    /// Of a server that sent one, and works all the same.
    pub fn verdict(self) -> ProbeVerdict {
        match self {
            Self::Told => ProbeVerdict::Warning,
            Self::Refused => ProbeVerdict::Unhealthy,
        }
    }
}

/// What was odd in a session.
pub struct Odd {
    /// One of each kind: a server that logs to stdout does it all the time.
    pub kinds: Vec<Diagnostic>,
    /// All of them.
    pub count: usize,
}

impl Odd {
    pub fn of(session: &Session, asker: Asker, oddities: Oddities) -> Self {
        let faults = session.faults();
        let mut kinds: Vec<Diagnostic> = Vec::new();
        if !faults.is_empty() {
            let transcript = session.tap().transcript();
            for fault in &faults {
                let told = diagnosis::of_fault(fault, &transcript, asker);
                if !kinds.iter().any(|known| known.code == told.code && known.hint == told.hint) {
                    kinds.push(Diagnostic { severity: oddities.severity(), ..told });
                }
            }
        }
        Self { kinds, count: faults.len() }
    }
}
