//! Detects changes of files below directories, except hidden files and those that `.gitignore` excludes, and of files that
//! count in any case. Knows no suites.

use crate::failure::Failure;
use crate::suites::folder_of;
use ignore::WalkBuilder;
use notify_debouncer_full::notify::{self, RecommendedWatcher, RecursiveMode};
use notify_debouncer_full::{DebounceEventResult, Debouncer, NoCache, new_debouncer_opt};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;

/// An editor saves in several steps.
const QUIET: Duration = Duration::from_millis(100);

/// A file that changes in so many runs one after the other is written by what is tested.
const WRITTEN_BY_TESTS: u32 = 3;

/// More readings than an editor needs: a bound against a file that never stops changing.
const MOST_READS: u32 = 20;

pub(crate) struct Changes {
    folders: Vec<PathBuf>,
    /// Wherever they are.
    always: Vec<PathBuf>,
    watcher: Debouncer<RecommendedWatcher, NoCache>,
    watched: BTreeSet<PathBuf>,
    /// Something happened; only a look at the files says whether it counts.
    signals: mpsc::UnboundedReceiver<()>,
    files: Files,
    /// How many runs one after the other each file has changed in.
    in_runs: BTreeMap<PathBuf, u32>,
}

/// Size and time of change: what differs when a file was written.
type Files = BTreeMap<PathBuf, (u64, Option<SystemTime>)>;

impl Changes {
    /// # Errors
    /// The system watches no more files.
    pub(crate) fn new(folders: Vec<PathBuf>, always: Vec<PathBuf>) -> Result<Self, Failure> {
        let (sender, signals) = mpsc::unbounded_channel();
        let tell = move |_: DebounceEventResult| {
            // Nobody listens any more when the program ends.
            let _ = sender.send(());
        };
        let watcher = new_debouncer_opt(QUIET, None, tell, NoCache, notify::Config::default()).map_err(|error| cannot_watch(&error))?;
        let (watched, files, in_runs) = (BTreeSet::new(), Files::new(), BTreeMap::new());
        let mut changes = Self { folders, always, watcher, watched, signals, files, in_runs };
        changes.files = changes.look()?;
        Ok(changes)
    }

    /// Reads the files before a run, and again where that gave nothing whole and they were still being written: an editor that
    /// saves in several steps is no mistake of its user. What changes from here on may be the work of the tests.
    pub(crate) async fn settled<T>(&mut self, mut read: impl FnMut() -> T, is_whole: impl Fn(&T) -> bool) -> T {
        let mut found = self.read(&mut read);
        for _ in 0..MOST_READS {
            if is_whole(&found) || !self.goes_on().await {
                break;
            }
            found = self.read(&mut read);
        }
        found
    }

    fn read<T>(&mut self, read: impl FnOnce() -> T) -> T {
        while self.signals.try_recv().is_ok() {}
        read()
    }

    /// Whether a file changes within the time that an editor may take.
    async fn goes_on(&mut self) -> bool {
        tokio::time::sleep(QUIET).await;
        let Ok(now) = self.look() else { return false };
        let changed = self.counted(&now);
        self.files = now;
        changed
    }

    /// Whether a file that is watched differs from when it was looked at.
    fn counted(&self, now: &Files) -> bool {
        let counts = |path: &PathBuf| self.in_runs.get(path).is_none_or(|runs| *runs < WRITTEN_BY_TESTS);
        differing(&self.files, now).iter().any(counts)
    }

    /// Gives the files that are no longer watched, because every run changes them.
    pub(crate) fn end_run(&mut self) -> Vec<PathBuf> {
        let Ok(now) = self.look() else { return Vec::new() };
        let changed = differing(&self.files, &now);
        self.in_runs.retain(|path, runs| *runs >= WRITTEN_BY_TESTS || changed.contains(path));
        let mut given_up = Vec::new();
        for path in changed {
            let runs = self.in_runs.entry(path.clone()).or_default();
            *runs += 1;
            if *runs == WRITTEN_BY_TESTS {
                given_up.push(path);
            }
        }
        given_up
    }

    /// Waits until a file has changed since the last run began. Cancelling this loses nothing.
    ///
    /// # Errors
    /// The system watches no more files.
    pub(crate) async fn next(&mut self) -> Result<(), Failure> {
        loop {
            let now = self.look()?;
            let changed = self.counted(&now);
            self.files = now;
            if changed {
                return Ok(());
            }
            if self.signals.recv().await.is_none() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// All files that count, as they are now. Folders that are new are watched from here on.
    fn look(&mut self) -> Result<Files, Failure> {
        let mut files = Files::new();
        for folder in &self.folders {
            for entry in WalkBuilder::new(folder).require_git(false).build().flatten() {
                let Ok(metadata) = entry.metadata() else { continue };
                if !metadata.is_dir() {
                    files.insert(entry.into_path(), (metadata.len(), metadata.modified().ok()));
                } else if self.watched.insert(entry.path().to_owned()) {
                    watch(&mut self.watcher, entry.path())?;
                }
            }
        }
        for file in &self.always {
            let Ok(metadata) = file.metadata() else { continue };
            files.insert(file.clone(), (metadata.len(), metadata.modified().ok()));
            let folder = folder_of(file);
            if self.watched.insert(folder.to_owned()) {
                watch(&mut self.watcher, folder)?;
            }
        }
        self.watched.retain(|folder| folder.is_dir());
        Ok(files)
    }
}

fn watch(watcher: &mut Debouncer<RecommendedWatcher, NoCache>, folder: &Path) -> Result<(), Failure> {
    match watcher.watch(folder, RecursiveMode::NonRecursive) {
        // It is gone again.
        Err(notify::Error { kind: notify::ErrorKind::PathNotFound, .. }) => Ok(()),
        watched => watched.map_err(|error| cannot_watch(&error)),
    }
}

fn cannot_watch(error: &notify::Error) -> Failure {
    let failure = Failure::bad_input("cannot-watch", format!("cannot watch files: {error}"));
    match error.kind {
        notify::ErrorKind::MaxFilesWatch => failure.hint("exclude directories with .gitignore, or increase fs.inotify.max_user_watches"),
        _ => failure,
    }
}

fn differing(before: &Files, now: &Files) -> Vec<PathBuf> {
    let all: BTreeSet<&PathBuf> = before.keys().chain(now.keys()).collect();
    all.into_iter().filter(|path| before.get(*path) != now.get(*path)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a file of which each reading finds one more of these texts; gives what counted in the end, and how often it was read.
    async fn check(texts: &[&str], expected: (&str, usize)) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s.yaml");
        let write = |index: usize| texts.get(index).into_iter().for_each(|text| std::fs::write(&file, text).unwrap());
        write(0);
        let mut changes = Changes::new(vec![folder.path().to_owned()], Vec::new()).unwrap();
        let mut reads = 0;
        let read = || {
            let text = std::fs::read_to_string(&file).unwrap();
            reads += 1;
            // The editor goes on as soon as the half of it was read.
            write(reads);
            text
        };
        let found = changes.settled(read, |text| text.ends_with("whole")).await;
        assert_eq!((found.as_str(), reads), expected, "{texts:?}");
    }

    #[test]
    fn a_suite_counts_where_git_ignores_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        for (name, text) in [(".gitignore", "*.yaml\n"), ("a.yaml", ""), ("b.yaml", "")] {
            std::fs::write(file(name), text).unwrap();
        }
        let mut changes = Changes::new(vec![folder.path().to_owned()], vec![file("a.yaml")]).unwrap();
        let files: Vec<PathBuf> = changes.look().unwrap().into_keys().collect();
        assert_eq!(files, [file("a.yaml")]);
    }

    #[tokio::test]
    async fn a_file_that_is_still_being_written_is_read_again() {
        check(&["whole"], ("whole", 1)).await;
        check(&["", "ha", "half", "the whole"], ("the whole", 4)).await;
        check(&["half"], ("half", 1)).await;
        check(&["half", "half of it"], ("half of it", 2)).await;
        // Changes during the run are reported afterwards.
        check(&["whole", "the whole"], ("whole", 1)).await;
    }

    #[tokio::test]
    async fn a_file_that_never_stops_changing_is_told_all_the_same() {
        let texts: Vec<String> = (0..100).map(|length| "x".repeat(length)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let reads = MOST_READS as usize + 1;
        check(&texts, (texts[reads - 1], reads)).await;
    }
}
