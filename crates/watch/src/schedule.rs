//! When a target is probed. Pure: knows slots, neither probes nor tables.
//!
//! A slot is a scheduled time on the grid of a target: multiples of its interval, moved by an offset that its name decides, so
//! that many targets spread over the interval. The slot names a result, however late its probe was.

use crate::moment::{Moment, millis};
use siphasher::sip::SipHasher13;
use std::hash::Hasher as _;
use std::time::Duration;

/// The scheduled times of one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    every: i64,
    offset: i64,
}

/// What a target waits for: the probe of a slot, and from when on it may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    pub slot: Moment,
    /// 0 for the scheduled probe, then 1 and 2 for those that confirm its failure.
    pub attempt: u32,
    pub due: Moment,
}

impl Grid {
    pub fn new(target: &str, every: Duration) -> Self {
        let every = millis(every).max(1);
        let mut hasher = SipHasher13::new();
        hasher.write(target.as_bytes());
        let offset = hasher.finish() % every.unsigned_abs();
        Self { every, offset: offset.cast_signed() }
    }

    pub fn every(self) -> Duration {
        Duration::from_millis(self.every.unsigned_abs())
    }

    pub fn slot_at_or_after(self, moment: Moment) -> Moment {
        let latest = self.slot_at_or_before(moment);
        if latest == moment { latest } else { Moment(latest.0 + self.every) }
    }

    pub fn slot_at_or_before(self, moment: Moment) -> Moment {
        Moment(moment.0 - (moment.0 - self.offset).rem_euclid(self.every))
    }

    /// The slot that follows one that may be of another grid, because the interval was changed: not so soon that it would be the
    /// same probe twice, nor so late that one would be missing. On the same grid that is the next one.
    pub fn next_slot(self, slot: Moment) -> Moment {
        self.slot_at_or_after(Moment(slot.0 + self.every.div_euclid(2) + 1))
    }

    /// How many slots there are from `from` on, and before `until`.
    pub fn slots_between(self, from: Moment, until: Moment) -> u64 {
        let first = self.slot_at_or_after(from);
        u64::try_from((until.0 - first.0 + self.every - 1).div_euclid(self.every)).unwrap_or(0)
    }
}

impl Turn {
    /// The first one of a target that was never probed: the slot that is running is due at once, so that nobody waits an interval
    /// to hear of it. Many of them spread over `spread`, which is half an interval at the most: each is over before its next one.
    pub fn first(grid: Grid, now: Moment, spread: Duration) -> Self {
        let slot = grid.slot_at_or_before(now);
        let until_next = i128::from(slot.0 + grid.every - now.0);
        let spread = i128::from(millis(spread).min(grid.every / 2));
        let wait = until_next * spread / i128::from(grid.every);
        Self { slot, attempt: 0, due: Moment(now.0 + i64::try_from(wait).unwrap_or(0)) }
    }

    /// The first one of a target that was probed in this slot before: the next slot.
    pub fn resumed(grid: Grid, now: Moment) -> Self {
        Self::scheduled(grid.next_slot(grid.slot_at_or_before(now)))
    }

    fn scheduled(slot: Moment) -> Self {
        Self { slot, attempt: 0, due: slot }
    }

    /// The turn that is taken now. One that could not be taken before the next slot began is missed: in its place the slot that
    /// is running now is probed.
    #[must_use]
    pub fn taken(self, grid: Grid, now: Moment) -> Self {
        if self.due + grid.every() > now {
            return self;
        }
        let slot = grid.slot_at_or_before(now);
        if slot > self.slot { Self::scheduled(slot) } else { self }
    }

    /// What comes after the result of this one: the same slot again, after `confirm`, or the next slot that has not passed.
    #[must_use]
    pub fn after(self, grid: Grid, now: Moment, confirm: Option<Duration>) -> Self {
        match confirm {
            Some(delay) => Self { slot: self.slot, attempt: self.attempt + 1, due: now + delay },
            None => Self::scheduled(grid.next_slot(self.slot).max(grid.slot_at_or_before(now))),
        }
    }

    /// The turn of a target whose interval has become another one. A slot that comes sooner stays, and so does a confirmation.
    #[must_use]
    pub fn moved(self, grid: Grid, now: Moment) -> Self {
        if self.attempt > 0 || self.due <= now {
            return self;
        }
        // The slot of this very millisecond may have been probed on the grid before.
        let first = Self::scheduled(grid.slot_at_or_after(Moment(now.0 + 1)));
        if first.slot < self.slot { first } else { self }
    }
}

#[cfg(test)]
mod tests;
