//! Every suite file is read, or each error has a place inside the file and can be shown.

use mcproof_record::Diagnostic;
use mcproof_report::{Style, diagnostic};
use mcproof_suite::{self as suite, Environment};
use std::path::Path;

/// # Panics
/// If a property does not hold.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match suite::load("fuzzed.mcproof.yaml", text, Path::new("/"), &Environment::default()) {
        Ok(suite) => assert!(!suite.cases.is_empty(), "a suite without tests would be green"),
        Err(mistakes) => {
            assert!(!mistakes.is_empty(), "a file is only refused for a reason");
            mistakes.iter().for_each(|mistake| check_mistake(mistake, text));
            let shown = diagnostic::render_all(&mistakes, &Style::default());
            let hostile = shown.chars().find(|character| character.is_control() && *character != '\n');
            assert_eq!(hostile, None, "{shown:?}");
        }
    }
}

pub(crate) fn check_mistake(mistake: &Diagnostic, text: &str) {
    let place = mistake.place.as_ref().unwrap_or_else(|| panic!("{mistake:?} has no place"));
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let line = text.split(['\n', '\r']).nth(place.line as usize - 1);
    let line = line.unwrap_or_else(|| panic!("line {} is not in the file: {mistake:?}", place.line));
    // Of a long line, only the beginning is shown, and stars stand for a secret.
    let is_same = |(shown, written): (char, char)| shown == written || shown == '*';
    assert!(place.text.chars().count() == line.chars().count().min(1000), "{mistake:?} of {line:?}");
    assert!(place.text.chars().zip(line.chars()).all(is_same), "{mistake:?} of {line:?}");
    let width = line.chars().count();
    let end = place.column as usize + place.length as usize;
    assert!(place.column >= 1 && place.length >= 1, "{mistake:?}");
    // Something that is missing at the end of a line is shown one column further.
    assert!(end <= width + 1 || (place.column as usize, place.length) == (width + 1, 1), "{mistake:?} of {width} columns");
}
