//! What went wrong with a server, as a test prints it. Knows diagnoses, not how they come about.

use mcproof_record::Diagnostic;
use mcproof_report::{Style, diagnostic};
use std::fmt;

/// A diagnosis, with the wire around it. Its `Debug` is made to be read, because that is what `unwrap` prints.
#[derive(Clone, PartialEq)]
pub struct Failure(Box<Diagnostic>);

impl Failure {
    pub(crate) fn new(diagnostic: Diagnostic) -> Self {
        Self(Box::new(diagnostic))
    }

    /// Stable and kebab-case, such as `no-response` or `server-exited`.
    pub fn code(&self) -> &str {
        &self.0.code
    }

    /// All that is known.
    pub fn diagnostic(&self) -> &Diagnostic {
        &self.0
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&rendered(&self.0))
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\n{self}")
    }
}

impl std::error::Error for Failure {}

/// As the terminal shows it.
pub(crate) fn rendered(found: &Diagnostic) -> String {
    diagnostic::render(found, &Style::default())
}
