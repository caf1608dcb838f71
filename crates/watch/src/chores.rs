//! What is to be done besides probing and telling: look for targets of which nothing is heard, tell what was held back during
//! maintenance, count, and forget. Any number of processes may try; one of them does it.

use crate::clock::TOLERANCE;
use crate::config::Retention;
use crate::moment::Moment;
use crate::store::{Store, StoreFailure, incidents};
use crate::worker::Plan;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// How often each is done.
const LOOK: Duration = Duration::from_secs(10);
const COUNT: Duration = Duration::from_secs(60);
const FORGET: Duration = Duration::from_secs(3_600);
/// Between two passes of a process that was there all the time.
const LONGEST_ABSENCE: Duration = Duration::from_secs(30);

/// One that does chores.
#[derive(Clone)]
pub struct Chores {
    pub store: Store,
    /// Whom a lease names.
    pub name: String,
    pub region: String,
    pub plan: watch::Receiver<Arc<Plan>>,
    pub presence: Presence,
    /// Results are kept no longer than this, whatever the configuration says.
    pub longest_raw: Duration,
    /// Notified when there is something to be told.
    pub stirred: Arc<Notify>,
}

/// Since when this process has looked without a gap. A process that was stopped, a machine that slept, a clock that was set and a
/// database that was gone are no reason to say that targets are not seen any more: they are looked at again first.
#[derive(Clone, Debug)]
pub struct Presence(Arc<Mutex<Span>>);

#[derive(Clone, Copy, Debug)]
struct Span {
    since: Moment,
    last: Moment,
}

impl Presence {
    pub fn new(now: Moment) -> Self {
        Self(Arc::new(Mutex::new(Span { since: now, last: now })))
    }

    /// It is there now; since when without a gap?
    pub(crate) fn seen(&self, now: Moment) -> Moment {
        let mut span = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now + TOLERANCE < span.last || now > span.last + LONGEST_ABSENCE {
            span.since = now;
        }
        span.last = now;
        span.since
    }

    pub(crate) fn begin(&self, now: Moment) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Span { since: now, last: now };
    }
}

impl Chores {
    /// Does what is due, and says when to look again.
    ///
    /// # Errors
    /// The database failed. What was not done is done by the next pass.
    pub async fn pass(&self, now: Moment) -> Result<Option<Moment>, StoreFailure> {
        let since = self.presence.seen(now);
        let done = self.do_what_is_due(since, now).await;
        if done.is_err() {
            // Meanwhile nobody could write results either.
            self.presence.begin(now);
        }
        done
    }

    async fn do_what_is_due(&self, since: Moment, now: Moment) -> Result<Option<Moment>, StoreFailure> {
        self.store.recover_from_set_back(now).await?;
        let plan = Arc::clone(&self.plan.borrow());
        let config = Arc::clone(&plan.config);
        let began = Instant::now();
        if self.store.take_chore("look", &self.name, LOOK, now).await?.is_some() {
            // Whoever waited for the database could not write results either, nor could the others.
            let since = if began.elapsed() > TOLERANCE {
                self.presence.begin(now);
                now
            } else {
                since
            };
            let blind = self.store.sweep_blind(&config, &self.region, since, now).await?;
            let regions = incidents::sweep_regions(&self.store, &config, &plan.targets, since, now).await?;
            let ended =
                incidents::end_storms(&self.store, &config, now).await? | incidents::end_empty_groups(&self.store, &config, now).await?;
            if incidents::tell_what_is_owed(&self.store, &config, now).await? || blind > 0 || regions || ended {
                self.stirred.notify_one();
            }
            self.store.end_chore("look", &self.name, now).await?;
        }
        if let Some(since) = self.store.take_chore("count", &self.name, COUNT, now).await? {
            // Not until now: what is not over is counted when it is.
            let until = self.store.roll_up(since, now).await?;
            self.store.end_chore("count", &self.name, until).await?;
        }
        if self.store.take_chore("forget", &self.name, FORGET, now).await?.is_some() {
            let raw = config.retention.raw.min(self.longest_raw);
            self.store.retain(&Retention { raw, ..config.retention.clone() }, now).await?;
            self.store.end_chore("forget", &self.name, now).await?;
        }
        Ok(Some(now + LOOK))
    }
}
