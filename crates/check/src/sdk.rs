//! Which SDK a server is made with, and which of its findings are known defects of that SDK. What the files say that its processes
//! run from is known; nothing is guessed, and nothing that goes wrong here changes a verdict.

mod executable;
mod javascript;
mod python;

use mcproof_client::{Program, Session};
use mcproof_record::Sdk;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long the end of a check waits for an answer that it has had all the time for.
const LONGEST: Duration = Duration::from_millis(100);

/// What the server of a check is made with: looked up once, beside the conversations.
#[derive(Clone, Debug, Default)]
pub struct DetectedSdks {
    looking: Arc<Mutex<Option<JoinHandle<Vec<Sdk>>>>>,
}

impl DetectedSdks {
    /// Looks at the processes of a server that has got through its handshake, unless somebody has done so.
    pub(crate) fn look(&self, session: &Session) {
        let mut looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        if looking.is_some() {
            return;
        }
        let programs = session.programs();
        if !programs.is_empty() {
            *looking = Some(tokio::task::spawn_blocking(move || identify(&programs)));
        }
    }

    /// The most specific first; none where nothing is known.
    pub(crate) async fn told(&self) -> Vec<Sdk> {
        let looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner).take();
        match looking {
            Some(looking) => timeout(LONGEST, looking).await.ok().and_then(Result::ok).unwrap_or_default(),
            None => Vec::new(),
        }
    }
}

/// Programs that are looked at: a server behind more wrappers is not worth the time.
const MOST_PROGRAMS: usize = 32;

/// The SDKs of the first program of a process tree that has any, the most specific first: what runs below it speaks to it, and not
/// to us. Reads a few files.
pub fn identify(programs: &[Program]) -> Vec<Sdk> {
    let of = |program: &Program| {
        let known = [javascript::sdks, python::sdks, executable::sdks].into_iter().map(|sdks| sdks(program));
        known.into_iter().find(|sdks| !sdks.is_empty())
    };
    programs.iter().take(MOST_PROGRAMS).find_map(of).unwrap_or_default()
}

fn sdk(name: &str, ecosystem: &str, package: &str, version: &str) -> Sdk {
    Sdk { name: name.into(), package: format!("{ecosystem}:{package}"), version: version.into() }
}
