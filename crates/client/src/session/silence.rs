//! How long a server at the other end of a pair of streams may be silent after the question for its era. Knows what it has read, where the
//! system tells it, and no messages.

use mcproof_system::pipes::PipeGauge;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a server that has read a request may be silent until the next one follows, and at the most an eighth of the time that there is.
const SILENCE: Duration = Duration::from_secs(2);
/// How often to look whether a server has read what it was sent.
const LOOK: Duration = Duration::from_millis(20);

/// What is known of a server that was sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intake {
    /// It has read the request.
    Begun,
    /// Nobody tells, or it may still be starting.
    Unknown,
}

/// The silence of a server, which begins when it is sent a request.
pub(super) struct Silence {
    gauge: Option<PipeGauge>,
    /// How much of it is no sign of anything.
    allowed: Duration,
    began: Instant,
    /// How long a server may take that reads nothing, or nothing more.
    patience: Duration,
}

impl Silence {
    /// Of one that is sent a request now, and has this time for its handshake. Holds the server's stdin open.
    pub(super) fn after_request(gauge: Option<PipeGauge>, budget: Duration) -> Self {
        Self { gauge, allowed: SILENCE.min(budget / 8), began: Instant::now(), patience: budget / 2 }
    }

    /// Waits until the server has been silent for a moment after it read the request, or was given up. Where nobody tells what it has read,
    /// that is taken to be at once.
    pub(super) async fn falls(&self) -> Intake {
        let mut since = Instant::now();
        while self.began.elapsed() < self.patience {
            if since.elapsed() >= self.allowed {
                return if self.gauge.is_some() { Intake::Begun } else { Intake::Unknown };
            }
            sleep(LOOK.min(self.allowed)).await;
            if self.has_unread() {
                since = Instant::now();
            }
        }
        Intake::Unknown
    }

    /// Waits until a server is stuck in a request that it has read: half of the time is over, and a second request is still unread. One that
    /// reads one line before it begins its work, as those of the Python SDK do, looks the same until then, and a second process beside it
    /// could disturb it: both may want the same port or file. For ever where the second request was read, perhaps by a program that passes
    /// it on, or where nobody tells.
    pub(super) async fn sticks(&self, intake: Intake) {
        if intake == Intake::Unknown {
            return std::future::pending().await;
        }
        sleep(self.patience.saturating_sub(self.began.elapsed())).await;
        if !self.has_unread() {
            std::future::pending().await
        }
    }

    /// How long it has lasted.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    fn has_unread(&self) -> bool {
        self.gauge.as_ref().is_some_and(PipeGauge::has_unread)
    }
}
