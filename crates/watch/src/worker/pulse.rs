//! How a worker is: what it did last, how late it is, and what the database said. For `/healthz` and the metrics.

use crate::latency::Latency;
use crate::moment::Moment;
use crate::schedule::{Grid, Turn};
use crate::store::{Committed, StoreFailure};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Clones share what they know.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<Mutex<Vitals>>);

/// Since the start of the process.
#[derive(Clone, Debug, Default)]
pub struct Vitals {
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
    /// Why turns could not be had, or results not be written, the last time that this was tried.
    pub trouble: Option<Trouble>,
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
}

impl Pulse {
    pub fn vitals(&self) -> Vitals {
        self.lock().clone()
    }

    pub(super) fn well(&self, now: Moment) {
        let mut vitals = self.lock();
        vitals.looked = now;
        // Where nothing is due nothing is written: that results can be is seen when they are.
        vitals.trouble.take_if(|trouble| trouble.task == Task::Lease);
    }

    pub(super) fn ill(&self, task: Task, failure: &StoreFailure) {
        self.lock().trouble = Some(Trouble { why: failure.to_string(), hint: failure.hint(), task });
    }

    /// Somebody stands in for the database.
    pub(crate) fn replace(&self) {
        self.lock().is_replaced = true;
    }

    /// It can be written again.
    pub(crate) fn recovered(&self) {
        let mut vitals = self.lock();
        vitals.is_replaced = false;
        vitals.trouble = None;
    }

    /// `due` is what waited, `taken` what is probed in its place.
    pub(super) fn leased(&self, due: Turn, taken: Turn, grid: Grid, now: Moment) {
        let mut vitals = self.lock();
        vitals.lag.record(u64::try_from(now.since(taken.due).as_micros()).unwrap_or(u64::MAX));
        if taken.slot > due.slot {
            vitals.missed += grid.slots_between(due.slot, taken.slot);
        }
    }

    pub(super) fn committed(&self, committed: &Committed, now: Moment) {
        let mut vitals = self.lock();
        vitals.results += u64::try_from(committed.written).unwrap_or(0);
        vitals.dropped += u64::try_from(committed.dropped).unwrap_or(0);
        vitals.written = now;
        vitals.trouble = None;
    }

    fn lock(&self) -> MutexGuard<'_, Vitals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
