//! From a suite file to a plan: parse into a spanned document, check it, resolve variables. Knows nothing of the wire.

pub mod answers;
pub mod audit;
pub mod auth;
pub mod bounds;
mod command;
mod declared;
mod discover;
pub mod document;
mod duration;
pub mod faults;
pub mod file_kind;
pub mod format;
mod given_server;
pub mod habits;
pub mod include;
pub mod judge;
pub mod leaks;
pub mod parse;
pub mod plan;
pub mod profile;
pub mod reach;
pub mod reader;
pub mod reference;
pub mod resilience;
pub mod restriction;
pub mod retries;
pub mod run;
mod scalar;
pub mod schema;
pub mod server;
mod size;
pub mod skip;
pub mod source;
pub mod step;
mod syntax;
pub(crate) mod template;
pub mod test;
#[cfg(test)]
mod tests;

pub use discover::{Discovered, NOT_SEARCHED, discover};
pub use duration::{BadDuration, parse_duration};
pub use given_server::Kept;
use mcproof_client::redaction::Redactor;
use mcproof_client::{Tls, inherited_secrets};
use mcproof_record::Diagnostic;
use plan::{Server, Suite};
use restriction::Restriction;
pub use scalar::plain_scalar_is_text;
use serde_json::{Map, Value};
pub use size::{parse_head_size, parse_size};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
pub(crate) use step::{COUNTER, NO_EXPECTATION};
pub use template::{MissingVariable, interpolate, interpolate_text};
pub(crate) use test::TMP;

/// The code of the notice that tests with `only` leave out the others.
pub const ONLY: &str = "only";

/// What a suite takes from outside.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// The process environment, for `${env.NAME}`.
    pub variables: BTreeMap<String, String>,
    /// From `--var`; they win over `vars:`.
    pub overrides: Map<String, Value>,
    /// From `--profile`.
    pub profile: Option<String>,
    /// A server from the command line; it takes the place of the suite's own.
    pub server: Option<Server>,
    /// What its command has of the suite's own.
    pub kept: Kept,
    /// To which a suite's own `tls:` adds.
    pub tls: Tls,
    /// What the suite may touch; everything if there is none.
    pub restriction: Option<Arc<Restriction>>,
}

/// Mistakes without the credentials of the environment: one that was filled in where it does not belong stands in the message.
pub fn without_credentials(mut mistakes: Vec<Diagnostic>, environment: &Environment) -> Vec<Diagnostic> {
    let secrets = Redactor::new(inherited_secrets(&environment.variables));
    if !secrets.is_empty() {
        mistakes = mistakes.into_iter().map(|mistake| mistake.map_text(|text| secrets.text(&text).into_owned())).collect();
    }
    mistakes
}

/// Reads the text of a suite. `folder` is where relative paths begin.
///
/// # Errors
/// All mistakes in the file, with its warnings, in the order of their places.
pub fn load(path_as_named: &str, text: &str, folder: &Path, environment: &Environment) -> Result<Suite, Vec<Diagnostic>> {
    let source = source::Source::new(path_as_named, text);
    match parse::parse_suite(source, folder, environment) {
        (Some(suite), _) => Ok(suite),
        (None, diagnostics) => Err(without_credentials(diagnostics, environment)),
    }
}
