//! The traces of tests that run: each grows from the first frame of its test on, so that a run that is killed or interrupted leaves it.
//! Knows frames and files, no verdicts.

use crate::recording;
use mcproof_record::{CaseId, CasePlan, Frame, FrameId};
use mcproof_trace::{Manifest, SessionInfo, SessionKey, TraceLimits, TraceWriter};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Frames of a test that are written while it runs: a server that floods its stderr is not to wait for a disk. The trace of a test that
/// ends has what was kept of its sessions, whatever stood here.
const MOST_FRAMES: u64 = 100_000;

/// Clones write to the same files.
#[derive(Clone)]
pub(super) struct LiveTraces(Arc<Mutex<Running>>);

struct Running {
    folder: PathBuf,
    made_folder: bool,
    manifest: Manifest,
    /// Those without a verdict.
    cases: BTreeMap<CaseId, RunningCase>,
}

struct RunningCase {
    name: String,
    session: SessionInfo,
    /// Its servers may be started before it is.
    has_started: bool,
    file: CaseFile,
}

enum CaseFile {
    NotYet,
    Open(TraceWriter, BTreeMap<String, SessionKey>),
    /// It could not be created, or the case is over.
    Gone,
}

impl LiveTraces {
    pub(super) fn new(folder: PathBuf) -> Self {
        let running = Running { folder, made_folder: false, manifest: Manifest::default(), cases: BTreeMap::new() };
        Self(Arc::new(Mutex::new(running)))
    }

    /// What is about to run, and the name of the file of each.
    pub(super) fn plan<'a>(&self, manifest: &Manifest, cases: impl Iterator<Item = (&'a CasePlan, &'a String)>) {
        let mut running = self.running();
        running.manifest = manifest.clone();
        running.cases = cases.map(|(case, name)| (case.id, RunningCase::of(case, name.clone()))).collect();
    }

    pub(super) fn start(&self, case: CaseId) {
        if let Some(case) = self.running().cases.get_mut(&case) {
            case.has_started = true;
        }
    }

    /// Writes a frame of a session with this server, if its case has no verdict.
    pub(super) fn frame(&self, case: CaseId, server: &str, frame: &Frame) {
        // Cases that run at the same time do not wait for each other's disk.
        let found = self.running().session(case, server, frame.id);
        if let Some((writer, session)) = found {
            writer.frame(session, frame);
        }
    }

    /// The case has its verdict. Whether it has left a file, which is complete in itself.
    pub(super) fn end(&self, case: CaseId) -> bool {
        self.running().cases.remove(&case).is_some_and(|mut case| case.end())
    }

    /// The run is over. Gives the names of the files that stay: those of cases that have started and were not done.
    pub(super) fn close(&self) -> BTreeSet<String> {
        let mut running = self.running();
        let mut left = BTreeSet::new();
        for mut case in std::mem::take(&mut running.cases).into_values() {
            if !case.end() {
                continue;
            }
            if case.has_started {
                left.insert(case.name);
            } else {
                // One that cannot be removed harms nobody.
                drop(fs::remove_file(running.folder.join(case.name)));
            }
        }
        if running.made_folder {
            // One that is not empty stays.
            drop(fs::remove_dir(&running.folder));
        }
        left
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    /// What writes the frames of a session. The first frame of another session has the id 0.
    fn session(&mut self, case: CaseId, server: &str, frame: FrameId) -> Option<(TraceWriter, SessionKey)> {
        let RunningCase { name, session, file, .. } = self.cases.get_mut(&case)?;
        if matches!(file, CaseFile::NotYet) {
            self.made_folder |= !self.folder.exists();
            // Whatever goes wrong does so again, and is told, when the whole trace is written.
            let limits = TraceLimits { frames: MOST_FRAMES, ..TraceLimits::default() };
            let created = recording::create_within(&self.folder.join(name), self.manifest.clone(), limits);
            *file = created.map_or(CaseFile::Gone, |writer| CaseFile::Open(writer, BTreeMap::new()));
        }
        let CaseFile::Open(writer, sessions) = file else { return None };
        let known = sessions.get(server).copied().filter(|_| frame != FrameId(0));
        let key = known.unwrap_or_else(|| writer.begin_session(SessionInfo { server: server.to_owned(), ..session.clone() }));
        sessions.insert(server.to_owned(), key);
        Some((writer.clone(), key))
    }
}

impl RunningCase {
    fn of(case: &CasePlan, name: String) -> Self {
        let session = SessionInfo {
            transport: case.transport.clone(),
            client: Some("mcproof".into()),
            test: Some(case.name.clone()),
            ..SessionInfo::default()
        };
        Self { name, session, has_started: false, file: CaseFile::NotYet }
    }

    /// Whether there is a file.
    fn end(&mut self) -> bool {
        let CaseFile::Open(writer, _) = std::mem::replace(&mut self.file, CaseFile::Gone) else { return false };
        // As above.
        drop(writer.finish());
        true
    }
}
