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
    /// How long a server may take that reads nothing, or goes on reading: what reads may be a program that passes it on to one that starts.
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

    /// Waits until a server that has read a request, and now a second one, only responds as another process, if at all: it leaves the second
    /// one unread, so it is stuck in the first, or responds to neither. For ever where nothing is known of what it reads.
    pub(super) async fn lasts(&self, intake: Intake) {
        if intake == Intake::Unknown {
            return std::future::pending().await;
        }
        let began = Instant::now();
        while began.elapsed() < self.allowed || !(self.has_unread() || self.began.elapsed() >= self.patience) {
            sleep(LOOK.min(self.allowed)).await;
        }
    }

    fn has_unread(&self) -> bool {
        self.gauge.as_ref().is_some_and(PipeGauge::has_unread)
    }
}
