//! The dead man's switch: a URL that is fetched as long as results come in, so that somebody outside notices when they do not.
//! What is written by nobody, or says nothing about any server, keeps it silent.

use crate::channel::Carrier;
use crate::clock::TOLERANCE;
use crate::config::TargetSpec;
use crate::moment::Moment;
use crate::store::Store;
use crate::worker::{Plan, Pulse};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// After a fetch that failed.
const RETRY: Duration = Duration::from_secs(10);
/// Results may be this much later than their interval says.
const GRACE: Duration = Duration::from_secs(60);

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
    /// Results are missing, are of times that have not come yet, or cannot be written.
    Silent,
    Failed(String),
}

impl Heart {
    /// `pulse` is that of the worker of this process.
    pub fn new(store: Store, plan: watch::Receiver<Arc<Plan>>, carrier: Carrier, pulse: Pulse) -> Self {
        Self { store, plan, carrier, pulse, next: Arc::default() }
    }

    /// Fetches the URL if it is time and results came lately. Says when it is time again.
    ///
    /// # Errors
    /// The database refused.
    pub async fn pass(&self, now: Moment) -> Result<(Beat, Option<Moment>), sqlx::Error> {
        let plan = Arc::clone(&self.plan.borrow());
        let Some(heartbeat) = &plan.config.heartbeat else { return Ok((Beat::Waited, None)) };
        let due = *self.lock();
        // A clock that was set back does not silence it for longer.
        if now < due && due <= now + heartbeat.every {
            return Ok((Beat::Waited, Some(due)));
        }
        let newest = sqlx::query_scalar("SELECT MAX(last_result) FROM target WHERE removed IS NULL").fetch_one(&self.store.pool);
        let newest: Option<i64> = newest.await?;
        let targets = plan.targets.values();
        let beat = match newest.map(Moment).filter(|newest| *newest > Moment(0) && *newest <= now + TOLERANCE) {
            Some(newest) if self.pulse.vitals().trouble.is_none() && now.since(newest) <= lately(targets.map(Arc::as_ref)) => {
                match self.carrier.fetch(&heartbeat.url).await {
                    Ok(_) => Beat::Fetched,
                    Err(why) => Beat::Failed(why),
                }
            }
            _ => Beat::Silent,
        };
        let next = now + if beat == Beat::Fetched { heartbeat.every } else { RETRY.min(heartbeat.every) };
        *self.lock() = next;
        Ok((beat, Some(next)))
    }

    fn lock(&self) -> MutexGuard<'_, Moment> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Three intervals of the target that is probed most often.
fn lately<'a>(targets: impl Iterator<Item = &'a TargetSpec>) -> Duration {
    targets.map(|target| target.every).min().unwrap_or(Duration::ZERO) * 3 + GRACE
}
