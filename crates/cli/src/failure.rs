//! The failure of a command: a diagnostic and an exit code. Knows no rendering.

use crate::exit::Exit;
use mcproof_client::Tap;
use mcproof_record::{Diagnostic, Place};
use serde_json::Value;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) diagnostic: Box<Diagnostic>,
    /// The error as the server sent it, where it is one.
    pub(crate) wire: Option<Box<Value>>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, diagnostic: Diagnostic) -> Self {
        Self { exit, diagnostic: Box::new(diagnostic), wire: None }
    }

    /// Invalid input of the user.
    pub(crate) fn bad_input(code: &str, message: impl Into<String>) -> Self {
        Self::new(Exit::BadInput, Diagnostic::error(code, message))
    }

    pub(crate) fn cannot_read(path: &Path, error: &io::Error) -> Self {
        Self::bad_input("cannot-read", format!("cannot read {}: {error}", path.display()))
    }

    pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> Self {
        // What wraps the system's words adds the name of a file that only we know.
        let reason = error.get_ref().and_then(|inner| inner.source()).map_or_else(|| error.to_string(), ToString::to_string);
        Self::bad_input("cannot-write", format!("cannot write {}: {reason}", path.display()))
    }

    /// An address of `--listen` that is taken, or not ours.
    pub(crate) fn cannot_listen(address: SocketAddr, error: &io::Error) -> Self {
        Self::bad_input("cannot-listen", format!("cannot listen on {address}: {error}"))
            .hint("choose another address with --listen; port 0 is any free port")
    }

    /// A flag, a method or a scheme that a later version will know.
    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::bad_input("unsupported", message)
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.diagnostic.hint = Some(hint.into());
        self
    }

    /// A server may repeat what it was given, in whatever it is told by.
    #[must_use]
    pub(crate) fn redacted(self, tap: &Tap) -> Self {
        let diagnostic = Box::new(self.diagnostic.map_text(|text| tap.redacted(text)));
        Self { diagnostic, wire: self.wire.map(|wire| Box::new(tap.redacted_value(*wire))), ..self }
    }

    #[must_use]
    pub(crate) fn at(mut self, place: Place) -> Self {
        self.diagnostic.place = Some(place);
        self
    }
}
