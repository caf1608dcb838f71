//! What ends the wait for an answer: time, or somebody who does not want it any more.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

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
pub struct Canceller(Arc<Wish>);

/// Tells a wait that nobody wants its answer any more. Clones are about the same.
#[derive(Clone, Debug)]
pub struct Cancellation(Arc<Wish>);

#[derive(Debug, Default)]
struct Wish {
    reason: Mutex<Option<String>>,
    told: Notify,
}

impl Canceller {
    pub fn new() -> (Self, Cancellation) {
        let wish = Arc::new(Wish::default());
        (Self(Arc::clone(&wish)), Cancellation(wish))
    }

    /// Cancels what waits now, and what begins to wait later. The server is told this reason.
    pub fn cancel(&self, reason: String) {
        self.0.reason.lock().unwrap_or_else(PoisonError::into_inner).replace(reason);
        self.0.told.notify_waiters();
    }
}

impl Cancellation {
    /// The reason, once there is one: never, if nobody is left who could cancel. Cancel safe.
    pub async fn asked(&self) -> String {
        // Told of what happens from here on, before it is looked whether it has happened.
        let told = self.0.told.notified();
        if let Some(reason) = self.reason() {
            return reason;
        }
        told.await;
        self.reason().expect("there is a reason before anybody is told")
    }

    fn reason(&self) -> Option<String> {
        self.0.reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
