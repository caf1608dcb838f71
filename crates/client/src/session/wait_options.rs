//! What ends the wait for a response: its deadline or a cancellation.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// How long to wait for a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// From the request, or from the last progress, to the response.
    pub idle: Duration,
    /// If set, progress is requested, and each progress notification starts `idle` anew, up to this in all.
    pub maximum: Option<Duration>,
}

impl From<Duration> for Deadline {
    fn from(idle: Duration) -> Self {
        Self { idle, maximum: None }
    }
}

/// A deadline, and whoever may cancel before it.
#[derive(Clone, Debug)]
pub struct WaitOptions {
    pub deadline: Deadline,
    pub cancellation: Option<Cancellation>,
}

impl From<Duration> for WaitOptions {
    fn from(idle: Duration) -> Self {
        Self { deadline: idle.into(), cancellation: None }
    }
}

impl From<Deadline> for WaitOptions {
    fn from(deadline: Deadline) -> Self {
        Self { deadline, cancellation: None }
    }
}

/// Ends the waits that were given its [`Cancellation`].
#[derive(Debug)]
pub struct Canceler(Arc<CancellationState>);

/// Cancels a wait. Clones share one state.
#[derive(Clone, Debug)]
pub struct Cancellation(Arc<CancellationState>);

#[derive(Debug, Default)]
struct CancellationState {
    reason: Mutex<Option<String>>,
    requested: Notify,
}

impl Canceler {
    pub fn new() -> (Self, Cancellation) {
        let state = Arc::new(CancellationState::default());
        (Self(Arc::clone(&state)), Cancellation(state))
    }

    /// Cancels what waits now, and what begins to wait later. The server is requested this reason.
    pub fn cancel(&self, reason: String) {
        self.0.reason.lock().unwrap_or_else(PoisonError::into_inner).replace(reason);
        self.0.requested.notify_waiters();
    }
}

impl Cancellation {
    /// The reason, once there is one; never resolves if every canceler is gone. Cancel safe.
    pub async fn asked(&self) -> String {
        // Told of what happens from here on, before it is looked whether it has happened.
        let requested = self.0.requested.notified();
        if let Some(reason) = self.reason() {
            return reason;
        }
        requested.await;
        self.reason().expect("there is a reason before anybody is requested")
    }

    fn reason(&self) -> Option<String> {
        self.0.reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
