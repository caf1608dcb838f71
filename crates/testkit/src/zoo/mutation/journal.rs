//! A file of all that the server said, a line each, from which the mutations are made. Several processes may write to it.

use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

#[derive(Debug)]
pub(super) struct Journal(PathBuf);

impl Journal {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn note(&self, form: &str, subject: &str, value: impl FnOnce() -> Value) {
        let line = format!("{}\n", json!({ "form": form, "subject": subject, "value": value() }));
        // One write to a file opened for appending: lines of several threads and processes do not mix. Without the file there
        // are no mutations, which the runner notices.
        let file = OpenOptions::new().create(true).append(true).open(&self.0);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}
