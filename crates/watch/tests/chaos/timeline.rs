//! The time of a run: everybody in it goes by the same clock, which nobody sets.

use std::time::{Duration, Instant};

/// Since the run began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeline(Instant);

impl Timeline {
    pub(crate) fn begin() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(self) -> Duration {
        self.0.elapsed()
    }

    pub(crate) fn sleep_until(self, moment: Duration) {
        std::thread::sleep(moment.saturating_sub(self.now()));
    }
}
