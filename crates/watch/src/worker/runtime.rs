//! Whether time went on as usual while a probe was under way. A process that was stopped, a machine that slept and a clock that
//! was set look like servers that do not answer.

use crate::clock::{Clock, TOLERANCE};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// Between two signs of life.
const BEAT: Duration = Duration::from_millis(500);

/// Notices when this process does not get to run.
pub(super) struct Watchdog {
    runtime_monitor: RuntimeMonitor,
    beating: JoinHandle<()>,
}

#[derive(Clone)]
pub(super) struct RuntimeMonitor(Arc<Beats>);

struct Beats {
    start: Instant,
    /// Milliseconds since the start.
    last: AtomicU64,
    /// How often one came too late.
    gaps: AtomicU64,
}

impl Watchdog {
    pub(super) fn start() -> Self {
        let beats = Arc::new(Beats { start: Instant::now(), last: AtomicU64::new(0), gaps: AtomicU64::new(0) });
        let own = Arc::clone(&beats);
        let beating = tokio::spawn(async move {
            loop {
                sleep(BEAT).await;
                own.beat();
            }
        });
        Self { runtime_monitor: RuntimeMonitor(beats), beating }
    }

    pub(super) fn runtime_monitor(&self) -> RuntimeMonitor {
        self.runtime_monitor.clone()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.beating.abort();
    }
}

impl Beats {
    fn beat(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let last = self.last.swap(now, Ordering::AcqRel);
        if Duration::from_millis(now.saturating_sub(last)) > TOLERANCE {
            self.gaps.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// From the beginning of a probe on.
pub(super) struct RuntimeCheck {
    beats: Arc<Beats>,
    gaps: u64,
    clock: Clock,
    wall: SystemTime,
    began: Instant,
}

impl RuntimeMonitor {
    pub(super) fn begin(&self, clock: &Clock) -> RuntimeCheck {
        self.0.beat();
        let (gaps, beats) = (self.0.gaps.load(Ordering::Acquire), Arc::clone(&self.0));
        RuntimeCheck { beats, gaps, clock: clock.clone(), wall: clock.machine(), began: Instant::now() }
    }
}

impl RuntimeCheck {
    /// What happened meanwhile that is no fault of the server: longer without a sign of life, or further apart from the clock on the
    /// wall than is usual, and something is wrong with us.
    pub(super) fn broken(&self) -> Option<&'static str> {
        self.beats.beat();
        if self.beats.gaps.load(Ordering::Acquire) > self.gaps {
            return Some("monitor-stalled");
        }
        let expected = self.wall + self.began.elapsed();
        let now = self.clock.machine();
        let jumped = now.duration_since(expected).unwrap_or_else(|behind| behind.duration());
        (jumped > TOLERANCE).then_some("clock-jumped")
    }
}
