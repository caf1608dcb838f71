//! Remembers which servers could not be started in a run: the tests after them fail at once, and start nothing in vain. Also those that
//! ignore the question for their era, which the tests after them do not ask.
//! Knows commands and whether a session opened, not why one did not.

use crate::plan::Launch;
use mcproof_client::{CallFailure, ConnectFailure};
use mcproof_protocol::Transport;
use mcproof_record::{CasePlan, Diagnostic};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// A server that failed once may have had bad luck.
const FAILURES: u32 = 2;

/// A server that ignored the question for its era once may only have been slow.
const IGNORED: u32 = 2;

/// Of a server that is not started again, as it never opened a session in this run.
pub(super) const NOT_STARTED_AGAIN: &str = "not-started-again";

/// What makes two starts the same: everything that is known before.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct StartKey {
    pub(super) launch: Launch,
    pub(super) url: Option<String>,
    pub(super) transport: Transport,
    /// What the handshake says, and how long it is waited for: a server may fail at it.
    pub(super) handshake: String,
}

/// The starts of a run, by what they have in common.
#[derive(Clone)]
pub(super) struct Starts(Arc<Inner>);

struct Inner {
    servers: Mutex<HashMap<StartKey, Known>>,
    /// Told whenever a start is over.
    over: watch::Sender<()>,
}

#[derive(Default)]
struct Known {
    underway: usize,
    failures: u32,
    /// A session has opened. From then on a failure is news each time.
    opened: bool,
    /// How often in a row it has not responded to `server/discover`, and then to `initialize`.
    ignored: u32,
    first: Option<FirstFailure>,
}

/// What was found when a server failed to start for the first time.
#[derive(Clone, Debug)]
pub(super) struct FirstFailure {
    case: String,
    message: String,
}

impl FirstFailure {
    /// For a test that would have started the server once more.
    pub(super) fn diagnostic(&self) -> Diagnostic {
        let message = format!("server is not started again, since it failed to start before: {}", self.message);
        Diagnostic::error(NOT_STARTED_AGAIN, message).hint(format!("see `{}`, the first test for which it failed", self.case))
    }
}

impl Default for Starts {
    fn default() -> Self {
        Self(Arc::new(Inner { servers: Mutex::default(), over: watch::Sender::new(()) }))
    }
}

impl Starts {
    /// Says that a server is being started. Where it has failed often enough, this waits for what other tests find out meanwhile. `attempts`
    /// are those that a test has, with its retries.
    ///
    /// # Errors
    /// It has failed that often, and never opened a session.
    pub(super) async fn begin(&self, key: StartKey, attempts: u32) -> Result<Start, FirstFailure> {
        let mut over = self.0.over.subscribe();
        loop {
            if let Some(decided) = self.decide(&key, attempts) {
                return decided.map(|()| Start { starts: self.clone(), key });
            }
            over.changed().await.expect("the sender lives as long as `self`");
        }
    }

    /// `None` while others start it that may prove that it can be.
    fn decide(&self, key: &StartKey, attempts: u32) -> Option<Result<(), FirstFailure>> {
        let mut servers = self.servers();
        let known = servers.entry(key.clone()).or_default();
        let is_hopeless = !known.opened && known.failures >= attempts.max(FAILURES);
        match known.first.as_ref().filter(|_| is_hopeless) {
            Some(_) if known.underway > 0 => None,
            Some(first) => Some(Err(first.clone())),
            None => {
                known.underway += 1;
                Some(Ok(()))
            }
        }
    }

    fn servers(&self) -> MutexGuard<'_, HashMap<StartKey, Known>> {
        self.0.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A start that is underway. Dropped, it says nothing about the server.
pub(super) struct Start {
    starts: Starts,
    key: StartKey,
}

impl Start {
    /// Whether the server ignores the question for its era, so that waiting for a response is in vain.
    pub(super) fn ignores_discovery(&self) -> bool {
        self.starts.servers().get(&self.key).is_some_and(|known| known.ignored >= IGNORED)
    }

    /// A session has opened, with or without a response to `server/discover`, if that was sent.
    pub(super) fn opened(self, ignored_discovery: bool) {
        self.known(|known| {
            known.opened = true;
            // Who is known to ignore it is not asked any more.
            if known.ignored < IGNORED {
                known.ignored = if ignored_discovery { known.ignored + 1 } else { 0 };
            }
        });
    }

    /// No session could be opened.
    pub(super) fn failed(self, case: &CasePlan, found: &Diagnostic) {
        self.known(|known| {
            known.failures += 1;
            let first = || FirstFailure { case: format!("{} > {}", case.suite, case.name), message: found.message.clone() };
            known.first.get_or_insert_with(first);
        });
    }

    fn known(&self, change: impl FnOnce(&mut Known)) {
        if let Some(known) = self.starts.servers().get_mut(&self.key) {
            change(known);
        }
    }
}

impl Drop for Start {
    fn drop(&mut self) {
        self.known(|known| known.underway = known.underway.saturating_sub(1));
        self.starts.0.over.send_replace(());
    }
}

/// Whether a failure is one of the process, and not of what it said.
pub(super) fn is_of_start(failure: &ConnectFailure) -> bool {
    use ConnectFailure as F;
    match failure {
        F::Start(_) | F::Exited { .. } | F::NotListening { .. } | F::NotLocated { .. } => true,
        F::Unanswered { failure, .. } => matches!(failure, CallFailure::TimedOut { .. } | CallFailure::Closed(_)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Inherited;
    use mcproof_record::CaseId;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn key(program: &str) -> StartKey {
        let launch =
            Launch { command: vec![program.to_owned()], env: Vec::new(), folder: ".".into(), cwd: None, inherited: Inherited::All };
        StartKey { launch, url: None, transport: Transport::Stdio, handshake: String::new() }
    }

    /// What can be decided without waiting.
    fn begin(starts: &Starts, program: &str, attempts: u32) -> Option<Result<Start, String>> {
        let mut begins = pin!(starts.begin(key(program), attempts));
        match begins.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(decided) => Some(decided.map_err(|first| first.diagnostic().message)),
            Poll::Pending => None,
        }
    }

    fn fail(start: Start, name: &str) {
        let case = CasePlan {
            id: CaseId(0),
            suite: "a.mcproof.yaml".to_owned(),
            name: name.to_owned(),
            transport: "stdio".to_owned(),
            line: 1,
            repetition: 0,
            tags: Vec::new(),
            servers: Vec::new(),
        };
        start.failed(&case, &Diagnostic::error("server-exited", format!("exited in {name}")));
    }

    fn started(starts: &Starts, program: &str, attempts: u32) -> Start {
        begin(starts, program, attempts).expect("it is decided").expect("it is started")
    }

    #[test]
    fn a_server_that_failed_twice_is_not_started_again() {
        let starts = Starts::default();
        fail(started(&starts, "x", 1), "first");
        fail(started(&starts, "x", 1), "second");
        let refused = begin(&starts, "x", 1).expect("it is decided").err();
        assert_eq!(refused.as_deref(), Some("server is not started again, since it failed to start before: exited in first"));
        // Another command is another server, and a test with retries has all of its attempts.
        started(&starts, "y", 1).opened(false);
        fail(started(&starts, "x", 3), "third");
        assert!(begin(&starts, "x", 3).expect("it is decided").is_err());
    }

    #[test]
    fn a_server_that_opened_once_is_always_started() {
        let starts = Starts::default();
        fail(started(&starts, "x", 1), "first");
        started(&starts, "x", 1).opened(false);
        for name in ["second", "third", "fourth"] {
            fail(started(&starts, "x", 1), name);
        }
        drop(started(&starts, "x", 1));
    }

    #[test]
    fn a_server_that_ignored_its_discovery_twice_in_a_row_is_not_asked_again() {
        let starts = Starts::default();
        let open = |ignored: bool| started(&starts, "x", 1).opened(ignored);
        [true, false, true].into_iter().for_each(open);
        assert!(!started(&starts, "x", 1).ignores_discovery());
        // From the second one on it is not asked any more.
        [true, false, false].into_iter().for_each(open);
        assert!(started(&starts, "x", 1).ignores_discovery());
        assert!(!started(&starts, "y", 1).ignores_discovery());
    }

    #[test]
    fn what_other_tests_are_starting_is_waited_for() {
        let starts = Starts::default();
        let slow = started(&starts, "x", 1);
        fail(started(&starts, "x", 1), "first");
        fail(started(&starts, "x", 1), "second");
        assert!(begin(&starts, "x", 1).is_none());
        slow.opened(false);
        drop(started(&starts, "x", 1));
        // One that is given up has nothing to say.
        let other = Starts::default();
        let slow = started(&other, "x", 1);
        fail(started(&other, "x", 1), "first");
        fail(started(&other, "x", 1), "second");
        drop(slow);
        assert!(begin(&other, "x", 1).expect("it is decided").is_err());
    }
}
