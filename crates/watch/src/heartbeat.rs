//! The dead man's switch: a URL that is fetched as long as results come in, so that somebody outside notices when they do not.
//! What is written by nobody, or says nothing about any server, keeps it silent, in each region; and so does a page that no channel
//! takes.

use crate::channel::Carrier;
use crate::moment::{Moment, span};
use crate::store::{Store, StoreFailure};
use crate::worker::{Plan, Pulse};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// After a fetch that failed.
const RETRY: Duration = Duration::from_secs(10);

/// Clones share what they know.
#[derive(Clone, Debug)]
pub struct Heart {
    store: Store,
    plan: watch::Receiver<Arc<Plan>>,
    carrier: Carrier,
    pulse: Pulse,
    next: Arc<Mutex<Moment>>,
}

/// What a pass did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beat {
    /// It was not time, or there is no heartbeat.
    Waited,
    Fetched,
    /// Results are missing from somewhere, cannot be written, or nobody can be told of what they mean.
    Silent(String),
    Failed(String),
}

impl Heart {
    /// `pulse` is that of the worker of this process.
    pub fn new(store: Store, plan: watch::Receiver<Arc<Plan>>, carrier: Carrier, pulse: Pulse) -> Self {
        Self { store, plan, carrier, pulse, next: Arc::default() }
    }

    /// Fetches the URL if it is time, results came lately from everywhere, and pages are taken. Says when it is time again.
    ///
    /// # Errors
    /// The database refused.
    pub async fn pass(&self, now: Moment) -> Result<(Beat, Option<Moment>), StoreFailure> {
        let plan = Arc::clone(&self.plan.borrow());
        let Some(heartbeat) = &plan.config.heartbeat else { return Ok((Beat::Waited, None)) };
        let due = *self.lock();
        // A clock that was set back does not silence it for longer.
        if now < due && due <= now + heartbeat.every {
            return Ok((Beat::Waited, Some(due)));
        }
        let beat = match self.ailment(now).await? {
            Some(why) => Beat::Silent(why),
            None => match self.carrier.fetch(&heartbeat.url).await {
                Ok(_) => Beat::Fetched,
                Err(why) => Beat::Failed(why),
            },
        };
        let next = now + if beat == Beat::Fetched { heartbeat.every } else { RETRY.min(heartbeat.every) };
        *self.lock() = next;
        Ok((beat, Some(next)))
    }

    /// Why nobody outside is to be told that all is well.
    async fn ailment(&self, now: Moment) -> Result<Option<String>, StoreFailure> {
        if let Some(trouble) = self.pulse.vitals().trouble {
            return Ok(Some(format!("results cannot be written: {}", trouble.why)));
        }
        if self.plan.borrow().targets.is_empty() {
            return Ok(Some("no targets".to_owned()));
        }
        let silent = self.store.silent_regions(now).await?;
        if !silent.is_empty() {
            return Ok(Some(format!("no recent results from {}", silent.join(", "))));
        }
        let overdue = self.store.overdue_page(now).await?;
        Ok(overdue.map(|waited| format!("no channel has accepted a page for {}", span(waited))))
    }

    fn lock(&self) -> MutexGuard<'_, Moment> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
