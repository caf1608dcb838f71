//! How much it takes until something counts: what may be set for each target, and what is usual.

use std::time::Duration;

/// Of one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// When a failure is looked at again, from the first one on, growing. A target is down when all of them have failed, too.
    pub confirmations: Vec<Duration>,
    /// Good probes in a row until what was down counts as up.
    pub recoveries: u32,
    /// So many outages within this time are one story, and told as one.
    pub outages: u32,
    pub within: Duration,
    /// Without any failure, until flapping is over.
    pub calm: Duration,
}

/// The gap between two confirmations where only their number is known.
const GAP: Duration = Duration::from_secs(15);

impl Default for Thresholds {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { confirmations: Self::after(3), recoveries: 2, outages: 3, within: seconds(3_600), calm: seconds(1_800) }
    }
}

impl Thresholds {
    /// The usual times for so many failures in a row: 5 s and 15 s after the first one, then every 15 s.
    pub fn after(failures: u32) -> Vec<Duration> {
        let usual = |number: u32| if number == 0 { Duration::from_secs(5) } else { GAP * number };
        (0..failures.saturating_sub(1)).map(usual).collect()
    }

    /// Failures in a row until a target counts as down: the first one and its confirmations.
    pub(crate) fn failures(&self) -> u32 {
        u32::try_from(self.confirmations.len()).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// From now until it is looked at once more, after so many failures of which the first one was so long ago.
    pub(super) fn next(&self, failures: u32, since_first: Duration) -> Duration {
        const LEAST: Duration = Duration::from_secs(5);
        let first = self.confirmations.first().copied().unwrap_or(LEAST).min(LEAST);
        let at = usize::try_from(failures).unwrap_or(usize::MAX).saturating_sub(1);
        let wanted = self.confirmations.get(at).or(self.confirmations.last()).copied().unwrap_or(LEAST);
        wanted.saturating_sub(since_first).max(first)
    }
}
