//! The suite of a target, as far as a monitor runs it: the cases that change nothing. Read when the configuration is, so that a
//! mistake is told before anybody relies on it, and again before each run, since the file may be another one by then.

use mcproof_client::Tls;
use mcproof_record::Diagnostic;
use mcproof_suite::plan::{Server, Suite};
use mcproof_suite::{self as suite, Environment};
use serde_json::Map;
use std::collections::BTreeMap;
use std::path::Path;

/// Only cases with this tag are run: a monitor must change nothing.
const TAG: &str = "read-only";

/// The suite without the cases that a monitor leaves alone.
///
/// # Errors
/// It cannot be read, it has a mistake, or none of its cases is one that a monitor runs.
pub(crate) fn load_read_only(
    path: &Path,
    variables: &BTreeMap<String, String>,
    server: &Server,
    tls: &Tls,
) -> Result<Suite, Box<Diagnostic>> {
    let shown = path.display().to_string();
    let text = mcproof_suite::bounds::read_text(path).map_err(|error| Diagnostic::error("cannot-read", error.to_string()))?;
    let (variables, overrides) = (variables.clone(), Map::new());
    let environment = Environment { variables, overrides, server: Some(server.clone()), tls: tls.clone(), ..Environment::default() };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let read = suite::load(&shown, &text, folder, &environment);
    let mistaken = |mut mistakes: Vec<Diagnostic>| match mistakes.is_empty() {
        true => Diagnostic::error("no-suite", "this is not a suite"),
        false => mistakes.remove(0),
    };
    let mut suite = read.map_err(mistaken)?;
    suite.cases.retain(|case| case.tags.iter().any(|tag| tag == TAG));
    if suite.cases.is_empty() {
        let diagnostic = Diagnostic::error("nothing-to-run", format!("none of its tests has the tag `{TAG}`"));
        return Err(diagnostic.hint(format!("add `tags: [{TAG}]` to tests that change nothing")).into());
    }
    Ok(suite)
}
