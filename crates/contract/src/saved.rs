//! Contracts out of the text of a file: a lock, a trace, or a check. Knows texts and the names of their files, no files.

use super::{LockError, of_check, of_trace, parse};
use mcproof_record::{CheckReport, Contract, ContractLock, Diagnostic, Transcript};
use serde_json::Value;
use std::collections::BTreeMap;
use std::{fmt, io};

/// What a file holds that is no live server.
pub enum Saved {
    Lock(ContractLock),
    Trace(BTreeMap<String, Contract>),
}

impl Saved {
    /// By the kind of client.
    pub fn into_contracts(self) -> BTreeMap<String, Contract> {
        match self {
            Self::Lock(lock) => lock.contracts,
            Self::Trace(contracts) => contracts,
        }
    }
}

/// The diagnostic of a file of contracts that cannot be read.
pub fn unreadable(name: impl fmt::Display, error: &io::Error) -> Diagnostic {
    Diagnostic::error("cannot-read", format!("cannot read {name}: {error}")).hint("`mcproof lock TARGET` writes mcproof.lock")
}

/// Reads the text of a lock, a trace, or a check. `name` is how the file is shown.
///
/// # Errors
/// It is damaged, or shows no contract.
pub fn read_saved(name: impl fmt::Display, text: &str) -> Result<Saved, Diagnostic> {
    let wrong = |reason: String| Diagnostic::error("bad-trace", format!("trace {name} {reason}"));
    let damaged = |error: serde_json::Error| wrong(format!("is damaged: {error}"));
    let document: Option<Value> = serde_json::from_str(text).ok();
    let contracts = match document {
        Some(document) if document.get("frames").is_some() => {
            let transcript: Transcript = serde_json::from_value(document).map_err(damaged)?;
            of_trace(transcript).map(|(visitor, contract)| BTreeMap::from([(visitor.key(None), contract)]))
        }
        Some(document) if document.get("conversations").is_some() => {
            let report: CheckReport = serde_json::from_value(document).map_err(damaged)?;
            of_check(&report.conversations)
        }
        _ => return read_lock(name, text).map(Saved::Lock),
    };
    contracts.map(Saved::Trace).map_err(|failure| wrong(failure.to_string()).hint("save one of `mcproof tools TARGET --trace FILE`"))
}

/// Reads the text of a lock file. `name` is how the file is shown.
///
/// # Errors
/// It is damaged, of a newer version, or was changed by hand.
pub fn read_lock(name: impl fmt::Display, text: &str) -> Result<ContractLock, Diagnostic> {
    parse(text).map_err(|failure| {
        let hint = match failure {
            LockError::Newer { .. } => "update mcproof",
            _ => "restore it from version control, or remove it and run `mcproof lock` again",
        };
        Diagnostic::error("bad-lock", format!("{name} {failure}")).hint(hint)
    })
}
