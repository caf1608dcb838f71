//! What ends the wait for an answer: time, or somebody who does not want it any more.

use std::time::Duration;
use tokio::sync::watch;

/// How long to wait for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// From the request, or from the last progress, to the answer.
    pub idle: Duration,
    /// If set, progress is asked for, and each progress notification starts `idle` anew, up to this in all.
    pub maximum: Option<Duration>,
}

impl From<Duration> for Deadline {
    fn from(idle: Duration) -> Self {
        Self { idle, maximum: None }
    }
}

/// A deadline, and whoever may cancel before it.
#[derive(Clone, Debug)]
pub struct Terms {
    pub deadline: Deadline,
    pub cancellation: Option<Cancellation>,
}

impl From<Duration> for Terms {
    fn from(idle: Duration) -> Self {
        Self { deadline: idle.into(), cancellation: None }
    }
}

impl From<Deadline> for Terms {
    fn from(deadline: Deadline) -> Self {
        Self { deadline, cancellation: None }
    }
}

/// Ends the waits that were given its [`Cancellation`].
#[derive(Debug)]
pub struct Canceller(watch::Sender<Option<String>>);

/// Tells a wait that nobody wants its answer any more. Clones are about the same.
#[derive(Clone, Debug)]
pub struct Cancellation(watch::Receiver<Option<String>>);

impl Canceller {
    pub fn new() -> (Self, Cancellation) {
        let (sender, receiver) = watch::channel(None);
        (Self(sender), Cancellation(receiver))
    }

    /// Cancels what waits now, and what begins to wait later. The server is told this reason.
    pub fn cancel(&self, reason: String) {
        self.0.send_replace(Some(reason));
    }
}

impl Cancellation {
    /// The reason, once there is one. Cancel safe.
    pub async fn asked(&mut self) -> String {
        if let Ok(reason) = self.0.wait_for(Option::is_some).await
            && let Some(reason) = reason.clone()
        {
            return reason;
        }
        // Nobody is left who could cancel.
        std::future::pending().await
    }
}
