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
    /// Why the database did not do what it was asked, the last time.
    pub trouble: Option<String>,
}

impl Pulse {
    pub fn vitals(&self) -> Vitals {
        self.lock().clone()
    }

    pub(super) fn well(&self, now: Moment) {
        let mut vitals = self.lock();
        vitals.looked = now;
        vitals.trouble = None;
    }

    pub(super) fn ill(&self, failure: &StoreFailure) {
        self.lock().trouble = Some(failure.to_string());
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
    }

    fn lock(&self) -> MutexGuard<'_, Vitals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
