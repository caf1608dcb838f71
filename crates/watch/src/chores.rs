//! What is to be done besides probing and telling: look for targets of which nothing is heard, tell what was held back during
//! maintenance, count, and forget. Any number of processes may try; one of them does it.

use crate::clock::TOLERANCE;
use crate::config::{Config, Retention};
use crate::moment::Moment;
use crate::store::{Store, StoreFailure, incidents};
use crate::worker::Plan;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};

/// How often each is done.
const LOOK: Duration = Duration::from_secs(10);
const COUNT: Duration = Duration::from_secs(60);
const FORGET: Duration = Duration::from_secs(3_600);
/// Between two signs of a process that was there all the time.
const LONGEST_ABSENCE: Duration = Duration::from_secs(30);
/// Between two signs during a pass, however long that takes.
const SIGN: Duration = Duration::from_secs(5);
/// For what is written in one transaction, and for all that one pass tells of targets that are not seen any more.
const PART: Duration = Duration::from_secs(15);
const LONGEST_SWEEP: Duration = Duration::from_secs(60);
/// A database that takes longer than this to answer keeps results back for longer than what waits for them allows.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

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
    /// For which the database kept it waiting of late.
    wait: Duration,
}

impl Presence {
    pub fn new(now: Moment) -> Self {
        Self(Arc::new(Mutex::new(Span { since: now, last: now, wait: Duration::ZERO })))
    }

    /// It is there now; since when without a gap?
    pub(crate) fn seen(&self, now: Moment) -> Moment {
        let mut span = self.lock();
        if now + TOLERANCE < span.last || now > span.last + LONGEST_ABSENCE {
            span.since = now;
        }
        span.last = now;
        span.since
    }

    /// The database kept it waiting, and the others as well, who could not write results meanwhile. One that always takes that long is no
    /// reason to look anew each time: results are written there all the same. Since when is it there?
    fn waited(&self, wait: Duration, now: Moment) -> Moment {
        let mut span = self.lock();
        if wait > LONGEST_WAIT.min(TOLERANCE + span.wait * 2) {
            (span.since, span.last) = (now, now);
        }
        span.wait = wait.max(span.wait * 3 / 4);
        span.since
    }

    pub(crate) fn begin(&self, now: Moment) {
        let mut span = self.lock();
        (span.since, span.last) = (now, now);
    }

    fn lock(&self) -> MutexGuard<'_, Span> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many targets are told of in one transaction: as many as take some seconds, so that nobody who has results of one of them waits
/// for long; and enough of them for a storm to be seen as one. `wait` was for two statements; each target takes about ten.
fn at_once(wait: Duration, storm: u32) -> i64 {
    let in_time = PART.as_millis() / (wait.as_millis() * 5).max(5);
    i64::try_from(in_time).unwrap_or(i64::MAX).max(i64::from(storm.min(1_000)))
}

impl Chores {
    /// Does what is due, and says when to look again.
    ///
    /// # Errors
    /// The database failed. What was not done is done by the next pass.
    pub async fn pass(&self, now: Moment) -> Result<Option<Moment>, StoreFailure> {
        self.presence.seen(now);
        let began = Instant::now();
        let done = tokio::select! {
            done = self.do_what_is_due(now, began) => done,
            never = self.give_signs(now, began) => match never {},
        };
        if done.is_err() {
            // Meanwhile nobody could write results either.
            self.presence.begin(now);
        }
        done
    }

    /// A slow database is no absence.
    async fn give_signs(&self, now: Moment, began: Instant) -> Infallible {
        loop {
            sleep(SIGN).await;
            self.presence.seen(now + began.elapsed());
        }
    }

    async fn do_what_is_due(&self, now: Moment, began: Instant) -> Result<Option<Moment>, StoreFailure> {
        self.store.recover_from_set_back(now).await?;
        let plan = Arc::clone(&self.plan.borrow());
        let config = Arc::clone(&plan.config);
        let asked = Instant::now();
        if self.store.take_chore("look", &self.name, LOOK, now).await?.is_some() {
            let wait = asked.elapsed();
            let since = self.presence.waited(wait, now);
            let blind = self.sweep_blind(&config, since, at_once(wait, config.storm), now, began).await?;
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

    /// Tells of the targets of which nothing is heard, in parts, each of which counts whatever becomes of the others; the next pass goes on
    /// with those that are left. Says how many it told of.
    async fn sweep_blind(&self, config: &Config, since: Moment, at_once: i64, now: Moment, began: Instant) -> Result<usize, StoreFailure> {
        let end = Instant::now() + LONGEST_SWEEP;
        let mut all = 0;
        loop {
            let found = self.store.sweep_blind(config, &self.region, since, at_once, now).await?;
            all += found;
            let is_last = i64::try_from(found).is_ok_and(|found| found < at_once);
            // Whoever was stopped meanwhile looks anew.
            if is_last || Instant::now() > end || self.presence.seen(now + began.elapsed()) > since {
                return Ok(all);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_is_always_slow_is_no_absence_and_one_that_is_locked_for_once_is() {
        let at = |seconds: u64| Moment(0) + Duration::from_secs(seconds);
        let presence = Presence::new(at(0));
        // After so many seconds it waited for so long, and is there since then.
        let check = |second: u64, wait: u64, since: u64| {
            presence.seen(at(second));
            assert_eq!(presence.waited(Duration::from_secs(wait), at(second)), at(since), "after {second} s");
        };
        check(10, 0, 0);
        check(20, 3, 20);
        // It stays so, or becomes a little slower, and is quick in between.
        [(30, 3), (40, 6), (50, 0), (60, 5), (70, 1), (80, 6)].into_iter().for_each(|(second, wait)| check(second, wait, 20));
        check(90, 60, 90);
        check(100, 11, 100);
        // Nobody was there.
        check(131, 0, 131);
    }

    #[test]
    fn fewer_targets_are_told_of_at_once_where_each_takes_longer() {
        let check = |wait: u64, storm: u32, expected: i64| assert_eq!(at_once(Duration::from_millis(wait), storm), expected);
        check(0, 5, 3_000);
        check(10, 5, 300);
        check(100, 5, 30);
        check(2_000, 5, 5);
        check(100, 1_000_000, 1_000);
    }
}
