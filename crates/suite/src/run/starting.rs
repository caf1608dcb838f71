//! Starts the first server of a case while the cases before it still run. It is that case's own: no other one ever gets it.
//! Knows when that is safe, not what the case does.

use super::case::{RunContext, skipped_unasked};
use super::expand::{Work, binding};
use super::sessions::{EndedSession, Open, Sessions, is_fixed};
use mcproof_record::Diagnostic;
use std::collections::BTreeMap;
use tokio::task::JoinSet;

/// A session on its way. Dropping it ends its server at once.
pub(super) struct StartingSession {
    server: String,
    /// Of one task, because a set ends what it holds when it is dropped.
    opening: JoinSet<Opened>,
}

struct Opened {
    session: Result<Open, Box<Diagnostic>>,
    past: Vec<EndedSession>,
}

impl StartingSession {
    /// `None` where the server can only be started when the turn of the case has come: it has a fixed address, where another may
    /// still be running; it is shared with other cases; it works in a `${tmp}` that is not there yet; or a command comes first.
    /// A case that is skipped needs none, and a server that somebody else runs gains nothing by this.
    pub(super) fn start(work: &Work, world: &RunContext) -> Option<Self> {
        let case = work.case();
        if work.group().is_some() || work.suite.uses_tmp || skipped_unasked(work).is_some() {
            return None;
        }
        let name = case.hooks.setup.iter().chain(&case.steps).next()?.server.as_ref()?;
        let binding = binding(work.suite.servers.get(name)?, work.transport);
        if binding.launch.is_none() || is_fixed(binding) {
            return None;
        }
        let (work, world, server) = (work.clone(), world.clone(), name.clone());
        let mut opening = JoinSet::new();
        opening.spawn(async move {
            let mut sessions = Sessions::new(&work, &world, BTreeMap::new(), None, None);
            let session = sessions.open(&work.suite.servers[&server]).await;
            Opened { session, past: sessions.past }
        });
        Some(Self { server: name.clone(), opening })
    }

    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// Waits until it is open. A session that did not open goes to `past`.
    ///
    /// # Errors
    /// As if it were opened now.
    pub(super) async fn open(mut self, past: &mut Vec<EndedSession>) -> Result<Open, Box<Diagnostic>> {
        let joined = self.opening.join_next().await.expect("the task is in the set until it is joined, which is only done here");
        let Opened { session, past: ended } = super::unless_panicked(joined);
        past.extend(ended);
        session
    }

    /// Returns when its server has ended.
    pub(super) async fn cancel(mut self) {
        self.opening.shutdown().await;
    }
}
