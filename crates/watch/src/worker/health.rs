//! How a worker is: what it did last, how late it is, and what the database said. For `/healthz` and the metrics.

use crate::latency::Latency;
use crate::moment::Moment;
use crate::schedule::{Grid, Turn};
use crate::store::{Committed, Store, StoreFailure};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::time::Instant;

/// A database that has not answered for so long takes nothing: others are told before it says so itself.
pub(crate) const LONGEST_ANSWER: Duration = Duration::from_secs(3);

/// What goes on beside the probes may fail for so long: what was locked by somebody else, or is done by another process, is no trouble.
const LONGEST_NEGLECT: Duration = Duration::from_secs(60);
/// It may take so long: what is old is deleted once an hour, and that may be much.
const LONGEST_UPKEEP: Duration = Duration::from_secs(300);

/// Clones share what they know.
#[derive(Clone, Debug, Default)]
pub struct WorkerHealth {
    report: Arc<Mutex<HealthReport>>,
    /// Held for reading while somebody's decision is written, and for writing while that place changes.
    place: Arc<RwLock<()>>,
    summons: Arc<Notify>,
}

/// Since the start of the process.
#[derive(Clone, Debug, Default)]
pub struct HealthReport {
    /// When the schedule was last read.
    pub looked: Moment,
    /// When results were last written.
    pub written: Moment,
    /// Results that were written.
    pub results: u64,
    /// Results that were somebody else's by then.
    pub dropped: u64,
    /// Slots that passed before anybody could probe.
    pub missed: u64,
    /// From when a turn was due to when it was taken.
    pub lag: Latency,
    /// Somebody stands in for the database: nothing is asked of it.
    pub is_replaced: bool,
    /// There is somebody who would stand in for it.
    has_standby: bool,
    /// They are to do so at once.
    is_summoned: bool,
    /// What stands in for it, as soon as that is there.
    stand_in: Option<Store>,
    /// Why the configuration is an earlier version of its file.
    rejection: Option<String>,
    /// Its file is not where it was.
    is_displaced: bool,
    /// Why turns could not be had, or results not be written, the last time that this was tried.
    pub trouble: Option<Trouble>,
    /// Since when turns are waited for, and results to be written.
    asked: [Option<Instant>; 2],
    /// What goes on beside the probes, by what it is for: since when it was not done, and why, if it has failed.
    undone: BTreeMap<&'static str, (Instant, Option<String>)>,
}

impl HealthReport {
    /// Why the monitor is not well, if it is not.
    pub(crate) fn problem(&self) -> Option<String> {
        let trouble = self.trouble.as_ref().map(|trouble| format!("results cannot be written: {}", trouble.why));
        trouble.or_else(|| self.neglect())
    }

    /// What goes on beside the probes and was not done for a while, and why. Nobody would notice otherwise: results still come in,
    /// and messages are still delivered.
    pub fn neglect(&self) -> Option<String> {
        self.undone.iter().find_map(|(what, (since, why))| match why {
            Some(why) => (since.elapsed() > LONGEST_NEGLECT).then(|| format!("{what} fails: {why}")),
            None => {
                (since.elapsed() > LONGEST_UPKEEP).then(|| format!("{what} has not finished for {} minutes", LONGEST_UPKEEP.as_secs() / 60))
            }
        })
    }
}

/// What the database did not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub why: String,
    pub hint: Option<&'static str>,
    task: Task,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Lease,
    Commit,
    /// What is written can be read by others, and after the end of this process.
    Keep,
}

impl Trouble {
    fn of(failure: &StoreFailure, task: Task) -> Self {
        Self { why: failure.to_string(), hint: failure.hint(), task }
    }

    /// Whether results are not accepted: somebody has to stand in then.
    pub(crate) fn is_refusal(&self) -> bool {
        self.task != Task::Keep
    }
}

impl WorkerHealth {
    pub fn report(&self) -> HealthReport {
        let mut report = self.lock().clone();
        for task in [Task::Lease, Task::Commit] {
            let waits = report.asked[task as usize].is_some_and(|since| since.elapsed() > LONGEST_ANSWER);
            if waits && report.trouble.is_none() {
                let hint = Some("check whether another program has locked it, or its machine is overloaded");
                report.trouble = Some(Trouble { why: "the database does not answer".into(), hint, task });
            }
        }
        // Whatever else fails follows from it.
        if report.is_displaced {
            let task = report.trouble.map_or(Task::Keep, |trouble| trouble.task);
            report.trouble = Some(Trouble::of(&StoreFailure::Displaced, task));
        }
        // Something that was asked before may have been done meanwhile; what is found out now is still not written.
        if report.is_replaced && report.trouble.is_none() {
            let why = "the database did not accept them, and they are kept in memory".to_owned();
            report.trouble = Some(Trouble { why, hint: Some("they are written as soon as the database accepts them"), task: Task::Commit });
        }
        report
    }

    /// The database is asked for this now.
    pub(super) fn ask(&self, task: Task) {
        self.lock().asked[task as usize] = Some(Instant::now());
    }

    pub(super) fn well(&self, now: Moment) {
        let mut report = self.lock();
        report.asked[Task::Lease as usize] = None;
        report.looked = now;
        // Where nothing is due nothing is written: that results can be is seen when they are.
        report.trouble.take_if(|trouble| trouble.task == Task::Lease);
    }

    /// The file of the configuration is not taken over for this reason, or, without one, is.
    pub fn reject(&self, why: Option<&str>) {
        self.lock().rejection = why.map(str::to_owned);
    }

    /// Why the configuration is an earlier version of its file, if it is.
    pub fn rejection(&self) -> Option<String> {
        self.lock().rejection.clone()
    }

    pub(super) fn displaced(&self, is_displaced: bool) {
        self.lock().is_displaced = is_displaced;
    }

    pub(super) fn ill(&self, task: Task, failure: &StoreFailure) {
        let mut report = self.lock();
        report.asked[task as usize] = None;
        report.trouble = Some(Trouble::of(failure, task));
    }

    /// What goes on beside the probes is done now.
    pub(crate) fn upkeep(&self, what: &'static str) {
        self.lock().undone.entry(what).or_insert_with(|| (Instant::now(), None));
    }

    /// It was done, or failed.
    pub(crate) fn upkept(&self, what: &'static str, failure: Option<&StoreFailure>) {
        let mut report = self.lock();
        match failure {
            Some(failure) => report.undone.entry(what).or_insert_with(|| (Instant::now(), None)).1 = Some(failure.to_string()),
            None => drop(report.undone.remove(what)),
        }
    }

    /// Somebody is there who stands in for the database when it takes nothing.
    pub(crate) fn attend(&self) {
        self.lock().has_standby = true;
    }

    pub(crate) fn has_standby(&self) -> bool {
        self.lock().has_standby
    }

    /// The database did not take what somebody decided. Whoever stands in for it does so at once, if there is anybody.
    pub(crate) fn summon(&self, failure: &StoreFailure) {
        {
            let mut report = self.lock();
            report.is_summoned = true;
            report.trouble.get_or_insert_with(|| Trouble::of(failure, Task::Commit));
        }
        self.summons.notify_one();
    }

    pub(crate) fn is_summoned(&self) -> bool {
        self.lock().is_summoned
    }

    /// Resolves when somebody summons.
    pub(crate) async fn summoned(&self) {
        self.summons.notified().await;
    }

    /// As long as this is held, the place where decisions go stays the same: the database, or what stands in for it.
    pub(crate) async fn keep_place(&self) -> RwLockReadGuard<'_, ()> {
        self.place.read().await
    }

    /// Nobody's decision is on its way while this is held.
    pub(crate) async fn change_place(&self) -> RwLockWriteGuard<'_, ()> {
        self.place.write().await
    }

    /// Somebody stands in for the database.
    pub(crate) fn replace(&self) {
        self.lock().is_replaced = true;
    }

    /// From now on, what is known is in this database.
    pub fn stand_in_with(&self, memory: Store) {
        let mut report = self.lock();
        report.is_replaced = true;
        report.stand_in = Some(memory);
    }

    /// Where results go instead of the database, if somebody stands in for it: nothing if not even that is there yet.
    pub(crate) fn stand_in(&self) -> Option<Option<Store>> {
        let report = self.lock();
        report.is_replaced.then(|| report.stand_in.clone())
    }

    /// It can be written again.
    pub(crate) fn recovered(&self) {
        let mut report = self.lock();
        report.is_replaced = false;
        report.is_summoned = false;
        report.stand_in = None;
        report.trouble = None;
        // What was to be done meanwhile, and has not ended, has its time from now on.
        report.undone.values_mut().for_each(|(since, _)| *since = Instant::now());
    }

    /// `due` is what waited, `taken` what is probed in its place.
    pub(super) fn leased(&self, due: Turn, taken: Turn, grid: Grid, now: Moment) {
        let mut report = self.lock();
        report.lag.record(u64::try_from(now.since(taken.due).as_micros()).unwrap_or(u64::MAX));
        if taken.slot > due.slot {
            report.missed += grid.slots_between(due.slot, taken.slot);
        }
    }

    pub(super) fn committed(&self, committed: &Committed, now: Moment) {
        let mut report = self.lock();
        report.results += u64::try_from(committed.written).unwrap_or(0);
        report.dropped += u64::try_from(committed.dropped).unwrap_or(0);
        report.written = now;
        report.asked[Task::Commit as usize] = None;
        report.trouble = None;
    }

    fn lock(&self) -> MutexGuard<'_, HealthReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_database_that_does_not_answer_is_told_before_it_refuses() {
        let worker_health = WorkerHealth::default();
        for (task, ends) in [(Task::Lease, true), (Task::Commit, false)] {
            worker_health.ask(task);
            tokio::time::advance(LONGEST_ANSWER).await;
            assert_eq!(worker_health.report().trouble, None);
            tokio::time::advance(Duration::from_millis(1)).await;
            assert_eq!(worker_health.report().trouble.map(|trouble| trouble.task), Some(task));
            if ends {
                worker_health.well(Moment(1));
                assert_eq!(worker_health.report().trouble, None);
            }
        }
        // Turns can be had, results still cannot be written.
        worker_health.well(Moment(2));
        assert!(worker_health.report().trouble.is_some());
        worker_health.committed(&Committed::default(), Moment(3));
        assert_eq!(worker_health.report().trouble, None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_beside_the_probes_is_told_while_results_come_in() {
        let worker_health = WorkerHealth::default();
        let fails = |what: &'static str| {
            worker_health.upkeep(what);
            worker_health.upkept(what, Some(&StoreFailure::Displaced));
        };
        fails("tidying");
        tokio::time::advance(LONGEST_NEGLECT).await;
        worker_health.committed(&Committed::default(), Moment(1));
        assert_eq!(worker_health.report().neglect(), None);
        // It is the same trouble, however often it comes.
        fails("tidying");
        fails("counting");
        tokio::time::advance(Duration::from_millis(1)).await;
        let told = worker_health.report();
        assert_eq!(told.neglect().as_deref(), Some("tidying fails: the file of the database was removed or replaced"));
        // It is no reason for anybody to stand in for the database.
        assert_eq!(told.trouble, None);
        for done in ["tidying", "counting"] {
            worker_health.upkept(done, None);
        }
        assert_eq!(worker_health.report().neglect(), None);
        // Somebody holds a lock for ever.
        worker_health.upkeep("tidying");
        tokio::time::advance(LONGEST_UPKEEP).await;
        assert_eq!(worker_health.report().neglect(), None);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(worker_health.report().neglect().as_deref(), Some("tidying has not finished for 5 minutes"));
    }
}
