//! Which SDK a server is made with, and which of its findings are known defects of that SDK. What its processes have loaded is known,
//! and of which version that is by the files that they run from; nothing is guessed, and nothing that goes wrong here changes a verdict.

mod executable;
mod javascript;
mod loaded;
mod python;

use loaded::{files_in_memory, in_memory};
use mcproof_client::{Program, Session, programs};
use mcproof_record::Sdk;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::SetOnce;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

/// How long the end of a check waits for a search that goes on.
const LONGEST: Duration = Duration::from_secs(5);

/// Processes of a server that are searched, one after another: over stdio, one may end before it has been read.
const MOST_SEARCHES: usize = 3;

/// Between two looks at one process: over HTTP, the first comes while the server starts.
const PAUSES: [Duration; 3] = [Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(3)];

/// What the server of a check is made with: searched beside the conversations, until it is known.
#[derive(Clone, Debug, Default)]
pub struct DetectedSdks {
    searches: Arc<Mutex<Vec<JoinHandle<Vec<Sdk>>>>>,
    progress: Arc<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    is_known: AtomicBool,
    /// The check has ended: nobody looks again.
    ended: SetOnce<()>,
}

impl DetectedSdks {
    /// Looks at the processes of a server, unless it is known what it is made with.
    pub(crate) fn look(&self, session: &Session) {
        let mut searches = self.searches.lock().unwrap_or_else(PoisonError::into_inner);
        if searches.len() >= MOST_SEARCHES || self.progress.is_known.load(Ordering::Relaxed) {
            return;
        }
        if let Some(root) = session.programs().first().map(|program| program.pid) {
            searches.push(tokio::spawn(search(root, Arc::clone(&self.progress))));
        }
    }

    /// The most specific first; none where nothing is known.
    pub(crate) async fn told(&self) -> Vec<Sdk> {
        // It may have been set by the check of another instance.
        let _ = self.progress.ended.set(());
        let searches = mem::take(&mut *self.searches.lock().unwrap_or_else(PoisonError::into_inner));
        for search in searches {
            let found = timeout(LONGEST, search).await.ok().and_then(Result::ok).unwrap_or_default();
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }
}

/// Looks at a process and those below it until an SDK is found, or they are gone.
async fn search(root: i32, progress: Arc<Progress>) -> Vec<Sdk> {
    for pause in PAUSES.into_iter().map(Some).chain([None]) {
        let look = move || {
            let programs = programs(root);
            (programs.is_empty(), identify(&programs))
        };
        let Ok((is_gone, found)) = spawn_blocking(look).await else { break };
        if !found.is_empty() {
            progress.is_known.store(true, Ordering::Relaxed);
            return found;
        }
        match pause {
            Some(pause) if !is_gone && !progress.is_known.load(Ordering::Relaxed) && progress.ended.get().is_none() => {
                let _ = timeout(pause, progress.ended.wait()).await;
            }
            _ => break,
        }
    }
    Vec::new()
}

/// Programs that are looked at: a server behind more wrappers is not worth the time.
const MOST_PROGRAMS: usize = 32;

/// The SDKs of the first program of a process tree that has any, the most specific first: what runs below it speaks to it, and not
/// to us. Reads a few files, and the memory of the processes.
pub fn identify(programs: &[Program]) -> Vec<Sdk> {
    let of = |program: &Program| {
        let ways: [&dyn Fn() -> Vec<Sdk>; 3] =
            [&|| javascript::sdks(program, &in_memory, &files_in_memory), &|| python::sdks(program, &in_memory, &files_in_memory), &|| {
                executable::sdks(program)
            }];
        ways.into_iter().map(|sdks| sdks()).find(|sdks| !sdks.is_empty())
    };
    programs.iter().take(MOST_PROGRAMS).find_map(of).unwrap_or_default()
}

fn sdk(name: &str, ecosystem: &str, package: &str, version: &str) -> Sdk {
    Sdk { name: name.into(), package: format!("{ecosystem}:{package}"), version: version.into() }
}
