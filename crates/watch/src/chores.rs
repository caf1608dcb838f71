//! What is to be done besides probing and telling: look for targets of which nothing is heard, tell what was held back during
//! maintenance, count, and forget. Any number of processes may try; one of them does it.

use crate::moment::Moment;
use crate::store::{Store, StoreFailure, incidents};
use crate::worker::Plan;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// How often each is done.
const LOOK: Duration = Duration::from_secs(10);
const COUNT: Duration = Duration::from_secs(60);
const FORGET: Duration = Duration::from_secs(3_600);

/// One that does chores.
#[derive(Clone)]
pub struct Chores {
    pub store: Store,
    /// Whom a lease names.
    pub name: String,
    pub region: String,
    pub plan: watch::Receiver<Arc<Plan>>,
    /// Since when this process is there.
    pub started: Moment,
    /// Notified when there is something to be told.
    pub stirred: Arc<Notify>,
}

impl Chores {
    /// Does what is due, and says when to look again.
    ///
    /// # Errors
    /// The database failed. What was not done is done by the next pass.
    pub async fn pass(&self, now: Moment) -> Result<Option<Moment>, StoreFailure> {
        let config = Arc::clone(&self.plan.borrow().config);
        if self.store.take_chore("look", &self.name, LOOK, now).await?.is_some() {
            let blind = self.store.sweep_blind(&config, &self.region, self.started, now).await?;
            if incidents::tell_what_is_owed(&self.store, &config, now).await? || blind > 0 {
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
            self.store.retain(&config.retention, now).await?;
            self.store.end_chore("forget", &self.name, now).await?;
        }
        Ok(Some(now + LOOK))
    }
}
