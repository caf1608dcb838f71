//! The dead man's switch: a URL that is fetched as long as results come in, so that somebody outside notices when they do not.
//! What is written by nobody, or says nothing about any server, keeps it silent, in each region; and so does a page that no channel
//! takes.

use crate::channel::DeliveryClient;
use crate::moment::{Moment, span};
use crate::store::{Store, StoreFailure};
use crate::worker::{Plan, WorkerHealth};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// After a fetch that failed.
const RETRY: Duration = Duration::from_secs(10);

/// Clones share what they know.
#[derive(Clone, Debug)]
pub struct HeartbeatSender {
    store: Store,
    plan: watch::Receiver<Arc<Plan>>,
    delivery_client: DeliveryClient,
    worker_health: WorkerHealth,
    next: Arc<Mutex<Moment>>,
}

/// What a pass did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeartbeatOutcome {
    /// It was not time, or there is no heartbeat.
    Waited,
    Fetched,
    /// Results are missing from somewhere, cannot be written, or nobody can be told of what they mean.
    Silent(String),
    Failed(String),
}

impl HeartbeatSender {
    /// `worker_health` is that of the worker of this process.
    pub fn new(store: Store, plan: watch::Receiver<Arc<Plan>>, delivery_client: DeliveryClient, worker_health: WorkerHealth) -> Self {
        Self { store, plan, delivery_client, worker_health, next: Arc::default() }
    }

    /// Fetches the URL if it is time, results came lately from everywhere, and pages are taken. Says when it is time again.
    ///
    /// # Errors
    /// The database refused.
    pub async fn pass(&self, now: Moment) -> Result<(HeartbeatOutcome, Option<Moment>), StoreFailure> {
        let plan = Arc::clone(&self.plan.borrow());
        let Some(heartbeat) = &plan.config.heartbeat else { return Ok((HeartbeatOutcome::Waited, None)) };
        let due = *self.lock();
        // A clock that was set back does not silence it for longer.
        if now < due && due <= now + heartbeat.every {
            return Ok((HeartbeatOutcome::Waited, Some(due)));
        }
        let beat = match self.problem(now).await? {
            Some(why) => HeartbeatOutcome::Silent(why),
            None => match self.delivery_client.fetch(&heartbeat.url).await {
                Ok(_) => HeartbeatOutcome::Fetched,
                Err(why) => HeartbeatOutcome::Failed(why),
            },
        };
        let next = now + if beat == HeartbeatOutcome::Fetched { heartbeat.every } else { RETRY.min(heartbeat.every) };
        *self.lock() = next;
        Ok((beat, Some(next)))
    }

    /// Why nobody outside is to be told that all is well.
    async fn problem(&self, now: Moment) -> Result<Option<String>, StoreFailure> {
        if let Some(why) = self.worker_health.report().problem() {
            return Ok(Some(why));
        }
        if self.plan.borrow().targets.is_empty() {
            return Ok(Some("no targets".to_owned()));
        }
        let silent = self.store.silent_regions(now).await?;
        if !silent.is_empty() {
            return Ok(Some(format!("no recent results from {}", silent.join(", "))));
        }
        let overdue = self.store.overdue_page(now).await?;
        Ok(overdue.map(|waited| format!("no channel accepted the alert for {}", span(waited))))
    }

    fn lock(&self) -> MutexGuard<'_, Moment> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
