//! What a proxy keeps: the trace, written and judged while it happens, and the frames that are judged at the end. Knows no transports.

use super::judgment::{self, FailOn};
use super::live_judgment::{LiveJudge, Told};
use crate::conversation::{Watching, observer};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::recording::{names_endpoint, numbered};
use crate::shown_contract::ShownContract;
use crate::{output, settings};
use mcproof_client::redaction::Redactor;
use mcproof_client::{Tap, TapBounds};
use mcproof_record::{Diagnostic, Finding, Frame, Transcript};
use mcproof_report::diagnostic;
use mcproof_system::files;
use mcproof_trace::calls::CallTracker;
use mcproof_trace::{Manifest, Mark, MarkBody, SessionInfo, SessionKey, TraceLimits, TraceWriter};
use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Traces that are kept in the state folder, and the bytes that they may take together. Older ones are deleted.
const MOST_TRACES: usize = 100;
const MOST_BYTES: u64 = 1 << 30;
/// Recordings under one name, each with a number.
const MOST_NUMBERED: usize = 10_000;
/// A trace that was written to lately may belong to a proxy that runs.
const YOUNG: Duration = Duration::from_secs(3600);

/// What is recorded, and where.
pub(super) struct Recorded {
    pub(super) transport: String,
    pub(super) server: String,
    /// How the server is started.
    pub(super) started: SessionInfo,
    pub(super) faults: RecordedFaults,
    pub(super) trace: TracePlace,
    pub(super) bounds: TapBounds,
    /// Findings are printed as they happen, if there will be any.
    pub(super) fail_on: FailOn,
}

/// What goes wrong on the way, so that a trace says how to repeat it.
pub(super) struct RecordedFaults {
    /// The flags that ask for it.
    pub(super) words: Vec<String>,
    pub(super) seed: Option<u64>,
    /// The content of their file.
    pub(super) file: Option<String>,
}

pub(super) enum TracePlace {
    Nowhere,
    /// A file, or a folder for one.
    Given(PathBuf),
    StateFolder,
}

/// A recording that has begun.
pub(super) struct Recording {
    what: SessionInfo,
    bounds: TapBounds,
    secrets: Vec<String>,
    watching: Watching,
    fail_on: FailOn,
    trace: Option<(TraceWriter, PathBuf)>,
    /// Until it has finished.
    judge: Mutex<Option<LiveJudge>>,
    sessions: Mutex<Vec<RecordedSession>>,
    /// If there is a trace.
    shown: Option<Arc<Mutex<ShownContract>>>,
}

/// What is kept of one server process, or of all that is sent to one URL.
struct RecordedSession {
    key: SessionKey,
    /// If it is to be judged.
    tap: Option<Tap>,
    tracker: Arc<Mutex<CallTracker>>,
    is_sse: Arc<AtomicBool>,
}

impl Recording {
    pub(super) fn begin(recorded: &Recorded, secrets: Vec<String>, watching: Watching) -> Result<Self, Failure> {
        let clean = Redactor::new(secrets.iter().cloned());
        let server = clean.text(&recorded.server).into_owned();
        let manifest = manifest(&server, &recorded.faults, &clean);
        let mut kept = None;
        let trace = match &recorded.trace {
            TracePlace::Nowhere => None,
            TracePlace::Given(path) => {
                let is_folder = path.is_dir() || path.as_os_str().to_string_lossy().ends_with('/');
                let wanted = if is_folder { path.join(file_name()) } else { path.clone() };
                let created = if is_folder { create_folder(path) } else { Ok(()) }.and_then(|()| create(&wanted, manifest));
                let (writer, file) = created.map_err(|error| crate::recording::cannot_write(&wanted, &error))?;
                kept = (file != wanted).then_some(wanted);
                Some((writer, file))
            }
            // What nobody asked for must not keep a server from its client.
            TracePlace::StateFolder => state_trace(manifest),
        };
        if let Some((writer, path)) = &trace {
            if let Some(file) = &recorded.faults.file {
                writer.attach("faults.yaml", clean.text(file).as_bytes());
            }
            output::talk(&format!("mcproof proxy: writing the trace to {}\n", path.display()));
            if let Some(kept) = kept {
                output::talk(&format!("mcproof proxy: {} exists already, and is kept\n", kept.display()));
            }
        }
        let what = SessionInfo { server, transport: recorded.transport.clone(), ..recorded.started.clone() };
        let (bounds, fail_on) = (recorded.bounds, recorded.fail_on);
        let writer = trace.as_ref().map(|(writer, _)| writer.clone());
        let tell = move |mark: Mark, new: Option<&Finding>| {
            if let (true, Some(finding), MarkBody::Finding { rule, .. }) = (fail_on != FailOn::Never, new, &mark.body) {
                judgment::tell_finding(rule, finding);
            }
            if let Some(writer) = &writer {
                writer.mark(mark);
            }
        };
        let has_reader = trace.is_some() || fail_on != FailOn::Never;
        let judge = Mutex::new(has_reader.then(|| LiveJudge::start(what.transport.clone(), tell)).flatten());
        let shown = trace.is_some().then(Arc::default);
        Ok(Self { what, bounds, secrets, watching, fail_on, trace, judge, sessions: Mutex::default(), shown })
    }

    /// Where the frames of another session go: ids and times are its own.
    pub(super) fn new_session(&self) -> Tap {
        let mut sessions = lock(&self.sessions);
        let number = u32::try_from(sessions.len() + 1).unwrap_or(u32::MAX);
        let writer = self.trace.as_ref().map(|(writer, _)| writer.clone());
        let key = writer.as_ref().map_or(SessionKey(number), |writer| writer.begin_session(self.what.clone()));
        let (tracker, is_sse) = (Arc::new(Mutex::new(CallTracker::new())), Arc::new(AtomicBool::new(false)));
        let (following, found_sse, shown) = (Arc::clone(&tracker), Arc::clone(&is_sse), observer(self.watching));
        let contract = self.shown.clone();
        let judged = lock(&self.judge).as_ref().map(|judge| judge.watcher(key));
        let observe = move |frame: &Frame| {
            if let Some(writer) = &writer {
                writer.frame(key, frame);
            }
            if names_endpoint(frame) {
                found_sse.store(true, Ordering::Relaxed);
            }
            let updates = lock(&following).feed(key, frame);
            if let Some(contract) = contract.as_ref().filter(|_| !updates.is_empty()) {
                lock(contract).updates(&updates);
            }
            // After it is written: a finding comes later than its frame.
            if let Some(judged) = &judged {
                judged(frame);
            }
            if let Some(shown) = &shown {
                shown(frame);
            }
        };
        let tap = Tap::with(self.bounds, self.secrets.clone(), Some(Box::new(observe)));
        tap.keep_secret_arguments();
        sessions.push(RecordedSession { key, tap: (self.fail_on != FailOn::Never).then(|| tap.clone()), tracker, is_sse });
        tap
    }

    /// Nothing was started, so that there is nothing to keep: the next start has the name of the trace.
    pub(super) fn discard(&self) {
        // What is no file was there before: a device, or a link of the user.
        if let Some((_, path)) = &self.trace
            && fs::symlink_metadata(path).is_ok_and(|about| about.is_file())
        {
            let _ = fs::remove_file(path);
        }
    }

    /// Completes the trace, and judges the traffic if that was requested.
    pub(super) fn finish(&self) -> Result<Exit, Failure> {
        let told = lock(&self.judge).take().map_or_else(Told::new, LiveJudge::finish);
        let sessions = lock(&self.sessions);
        if let Some((writer, path)) = &self.trace {
            for RecordedSession { key, tracker, is_sse, .. } in &*sessions {
                let facts = lock(tracker).facts(*key).cloned().unwrap_or_default();
                let (era, what) = (facts.era().map(str::to_owned), self.what.clone());
                let transport = if is_sse.load(Ordering::Relaxed) { "sse".to_owned() } else { what.transport };
                writer.describe_session(SessionInfo { key: *key, era, transport, revision: facts.revision, client: facts.client, ..what });
            }
            if let Some(shown) = &self.shown {
                let mut shown = std::mem::take(&mut *lock(shown));
                sessions.iter().for_each(|session| shown.updates(&lock(&session.tracker).finish()));
                shown.attach(writer);
            }
            if let Err(error) = writer.clone().finish() {
                let warning = Diagnostic::warning("cannot-write", format!("the trace {} is incomplete: {error}", path.display()));
                output::talk(&diagnostic::render(&warning, &settings::style()));
            }
        }
        match self.fail_on {
            FailOn::Never => Ok(Exit::Passed),
            FailOn::Error | FailOn::Warning => {
                let transcripts: Vec<Transcript> = sessions.iter().filter_map(|session| Some(session.tap.as_ref()?.transcript())).collect();
                Ok(judgment::judge(&transcripts, &self.what.transport, self.fail_on, &told))
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn file_name() -> String {
    let now = jiff::Timestamp::try_from(settings::now()).unwrap_or_default();
    format!("proxy-{}-{}.mcptrace", now.strftime("%Y%m%dT%H%M%SZ"), std::process::id())
}

fn manifest(server: &str, faults: &RecordedFaults, clean: &Redactor) -> Manifest {
    let started_at = jiff::Timestamp::try_from(settings::now()).ok().map(|now| now.to_string());
    let words = faults.words.iter().map(|word| clean.text(word).into_owned());
    let command = ["mcproof".to_owned(), "proxy".to_owned()].into_iter().chain(words).chain([server.to_owned()]).collect();
    Manifest { mcproof: env!("CARGO_PKG_VERSION").into(), command, started_at, seed: faults.seed, ..Manifest::default() }
}

/// A trace in a file that was not there before. A host starts the same command again, also while an earlier one still records: where the
/// name is taken, it is the next free one with a number, as `session-2.mcptrace`.
fn create(path: &Path, manifest: Manifest) -> std::io::Result<(TraceWriter, PathBuf)> {
    files::make_folder_of(path)?;
    for number in 1..=MOST_NUMBERED {
        let file = numbered(path, number);
        match File::create_new(&file) {
            Ok(created) => return Ok((TraceWriter::onto(created, manifest, TraceLimits::default())?, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                // A device keeps nothing that could be lost, and a link to nowhere may be followed.
                if !fs::metadata(&file).is_ok_and(|about| about.is_file() || about.is_dir()) {
                    return Ok((TraceWriter::create(&file, manifest)?, file));
                }
            }
            Err(error) => return Err(error),
        }
    }
    Err(std::io::Error::new(ErrorKind::AlreadyExists, format!("it has {MOST_NUMBERED} recordings already")))
}

/// Other users have no business in there.
fn create_folder(path: &Path) -> std::io::Result<()> {
    files::private_folder(DirBuilder::new().recursive(true)).create(path)
}

fn state_trace(manifest: Manifest) -> Option<(TraceWriter, PathBuf)> {
    let folder = settings::state_folder()?.join("traces");
    let path = folder.join(file_name());
    match create_folder(&folder).and_then(|()| create(&path, manifest)) {
        Ok(created) => {
            tidy(&folder);
            Some(created)
        }
        Err(error) => {
            let warning = Diagnostic::warning("cannot-write", format!("no trace is written: {}: {error}", path.display()));
            let warning = warning.hint("set XDG_STATE_HOME to a writable directory, or use --trace FILE or --no-trace");
            output::talk(&diagnostic::render(&warning, &settings::style()));
            None
        }
    }
}

/// Deletes the oldest traces beyond the bounds.
fn tidy(folder: &Path) {
    let trace = |entry: fs::DirEntry| {
        let path = entry.path();
        let name = path.file_name()?.to_str()?;
        let about = entry.metadata().ok().filter(|about| about.is_file())?;
        (name.starts_with("proxy-") && name.ends_with(".mcptrace")).then_some((about.modified().ok()?, about.len(), path.clone()))
    };
    let mut traces: Vec<(SystemTime, u64, PathBuf)> = fs::read_dir(folder).into_iter().flatten().flatten().filter_map(trace).collect();
    traces.sort_by_key(|(modified, ..)| std::cmp::Reverse(*modified));
    let mut bytes = 0;
    for (index, (modified, length, path)) in traces.into_iter().enumerate() {
        bytes += length;
        let is_old = settings::now().duration_since(modified).is_ok_and(|age| age > YOUNG);
        if is_old && (index >= MOST_TRACES || bytes > MOST_BYTES) {
            // What cannot be deleted now is tried again by the next proxy.
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_recording_takes_the_place_of_another() {
        let check = |path: &str, number: usize, expected: &str| assert_eq!(numbered(Path::new(path), number), Path::new(expected));
        check("a/session.mcptrace", 1, "a/session.mcptrace");
        check("a/session.mcptrace", 2, "a/session-2.mcptrace");
        check("trace", 3, "trace-3");
        check("v1.2.mcptrace", 12, "v1.2-12.mcptrace");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mcptrace");
        let files: Vec<PathBuf> = (0..3).map(|_| create(&path, Manifest::default()).unwrap().1).collect();
        assert_eq!(files, [1, 2, 3].map(|number| numbered(&path, number)));
    }
}
