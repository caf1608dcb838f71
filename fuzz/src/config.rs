//! Every configuration file of a monitor is read, or each error has a place inside the file and can be shown, without the
//! secrets in the file.

use crate::suite::check_mistake;
use mcproof_report::{Style, diagnostic};
use mcproof_suite::Environment;
use mcproof_watch::config;
use std::collections::BTreeMap;
use std::path::Path;

const SECRET: &str = "s3cr3t-of-a-channel";

/// # Panics
/// If a property does not hold.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let variables = BTreeMap::from([("API_KEY".to_owned(), SECRET.to_owned()), ("NAME".to_owned(), "shop".to_owned())]);
    let environment = Environment { variables, ..Environment::default() };
    // A folder with nothing in it: what a file names is not there.
    let folder = Path::new("/nonexistent");
    let (found, is_mistaken) = match config::load("watch.yaml", text, folder, &environment) {
        Ok(loaded) => {
            assert!(!format!("{:?}", loaded.config).contains(SECRET), "a configuration that is printed tells no secret");
            (loaded.warnings, false)
        }
        Err(mistakes) => (mistakes, true),
    };
    assert!(!is_mistaken || !found.is_empty(), "a file is only refused for a reason");
    found.iter().for_each(|mistake| check_mistake(mistake, text));
    let shown = diagnostic::render_all(&found, &Style::default());
    let hostile = shown.chars().find(|character| character.is_control() && *character != '\n');
    assert_eq!(hostile, None, "{shown:?}");
    assert!(!shown.contains(SECRET), "{shown}");
    let _ = config::database_of("watch.yaml", text, folder, &environment);
}
