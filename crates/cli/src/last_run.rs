//! Stores which tests of earlier runs did not pass, for `--rerun-failed`: one small file for each directory in which `mcproof test` was
//! started, in the state directory of the user. Knows no suites.

use crate::{output, settings, whole_file};
use mcproof_record::{CaseKey, Diagnostic, FORMAT_VERSION, LastRun, Summary};
use mcproof_report::diagnostic;
use mcproof_suite::run::{case_key, folder_name};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// What is known of earlier runs in a folder.
pub(crate) struct Memory {
    folder: PathBuf,
    /// Where it is kept; nowhere if the user has no home.
    file: Option<PathBuf>,
}

impl Memory {
    pub(crate) fn of_current_folder() -> Self {
        let folder = settings::current_folder();
        let name = format!("{}.json", folder_name(&folder));
        Self { file: settings::state_folder().map(|state| state.join("last-run").join(name)), folder }
    }

    /// `None`, and a word about it, where nothing is known: then all tests count as unfinished.
    pub(crate) fn unfinished(&self) -> Option<BTreeSet<CaseKey>> {
        let problem = match self.read() {
            Ok(Some(last)) => return Some(last.unfinished),
            Ok(None) => Diagnostic::warning("no-last-run", "no earlier run in this directory is recorded, so all tests run"),
            Err(reason) => {
                let file = self.file.as_deref().unwrap_or(Path::new("")).display();
                Diagnostic::warning("bad-last-run", format!("cannot read the record of earlier runs, so all tests run: {reason}"))
                    .hint(format!("this run overwrites {file}"))
            }
        };
        tell(problem);
        None
    }

    /// Takes in a run that is over.
    pub(crate) fn remember(&self, summary: &Summary) {
        let Some(file) = &self.file else { return };
        // An unreadable file is useless, and was reported when it was needed.
        let known = self.read().ok().flatten();
        let mut last = known.unwrap_or_else(|| LastRun::new(self.folder.to_string_lossy()));
        last.fold(summary, |case| case_key(case, &self.folder));
        if let Err(error) = write(file, &last) {
            let warning = Diagnostic::warning("cannot-write", format!("cannot write {}: {error}", file.display()));
            tell(warning.hint("--rerun-failed will ignore this run; set XDG_STATE_HOME to a writable directory"));
        }
    }

    fn read(&self) -> Result<Option<LastRun>, String> {
        let Some(file) = &self.file else { return Ok(None) };
        let text = match std::fs::read(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let last: LastRun = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        match last.version {
            FORMAT_VERSION => Ok(Some(last)),
            other => Err(format!("it was written by another version of mcproof (format {other}, not {FORMAT_VERSION})")),
        }
    }
}

fn write(file: &Path, last: &LastRun) -> io::Result<()> {
    std::fs::create_dir_all(file.parent().unwrap_or(file))?;
    whole_file::write(file, serde_json::to_vec(last)?)
}

fn tell(diagnostic: Diagnostic) {
    output::talk(&diagnostic::render_all(&[diagnostic], &settings::style()));
}
