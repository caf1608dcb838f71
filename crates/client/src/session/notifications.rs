//! What the server says unasked, in order, and how to wait for it. Knows messages that were parsed, not who sent for them.

use super::Session;
use super::history_bounds::BoundedHistory;
use crate::jsonrpc::RequestId;
use crate::transport::Closed;
use mcproof_record::FrameId;
use mcproof_record::duration::readable;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// A notification from the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    pub frame: FrameId,
    pub method: String,
    pub params: Option<Value>,
    /// The request whose HTTP response carried it.
    pub carried_by: Option<RequestId>,
}

impl Notification {
    /// A parameter, by its JSON pointer.
    pub(super) fn param(&self, pointer: &str) -> Option<&Value> {
        self.params.as_ref()?.pointer(pointer)
    }
}

/// Why a notification was waited for in vain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotificationFailure {
    #[error("no `{method}` within {}", readable(*.after))]
    TimedOut { method: String, after: Duration },
    #[error("{0}")]
    Closed(Closed),
}

impl Session {
    /// Notifications of the server, oldest first. Of a flood only the newest are kept here; the tap counts the rest.
    pub fn notifications(&self) -> Vec<Notification> {
        self.dispatcher.notifications.all()
    }

    /// The notifications that came since this was last asked with the same `position`, which begins at 0.
    pub fn notifications_since(&self, position: &mut u64) -> Vec<Notification> {
        self.dispatcher.notifications.since(position)
    }

    /// Changes whenever a notification has come, and when the connection has ended.
    pub fn arrivals(&self) -> watch::Receiver<()> {
        self.dispatcher.notifications.arrived.subscribe()
    }

    /// Waits for a notification of this method. Each is given once, in the order in which they came, so that one which
    /// came before the wait began is not missed, and the next wait is for the next one.
    ///
    /// # Errors
    /// The deadline passed, or the connection ended.
    pub async fn wait_for_notification(&self, method: &str, deadline: Duration) -> Result<Notification, NotificationFailure> {
        match timeout(deadline, self.dispatcher.notifications.next_of(method)).await {
            Ok(Some(notification)) => Ok(notification),
            Ok(None) => Err(NotificationFailure::Closed(self.closed_because().unwrap_or(Closed::StreamEnded))),
            Err(_) => Err(NotificationFailure::TimedOut { method: method.to_owned(), after: deadline }),
        }
    }
}

pub(super) struct Notifications {
    kept: Mutex<StoredNotifications>,
    /// Told of each arrival, and of the end.
    arrived: watch::Sender<()>,
}

#[derive(Default)]
struct StoredNotifications {
    newest: BoundedHistory<Notification>,
    /// How many came before the first of these.
    forgotten: u64,
    ended: bool,
    /// Where a wait for a method goes on.
    next_of: HashMap<String, u64>,
}

impl Notifications {
    pub(super) fn new() -> Self {
        Self { kept: Mutex::default(), arrived: watch::Sender::new(()) }
    }

    pub(super) fn all(&self) -> Vec<Notification> {
        self.kept().newest.iter().cloned().collect()
    }

    fn since(&self, position: &mut u64) -> Vec<Notification> {
        let kept = self.kept();
        let start = usize::try_from(position.saturating_sub(kept.forgotten)).unwrap_or(usize::MAX);
        let newer: Vec<Notification> = kept.newest.iter().skip(start).cloned().collect();
        *position = (*position).max(kept.forgotten + kept.newest.iter().len() as u64);
        newer
    }

    pub(super) fn keep(&self, notification: Notification, bytes: usize) {
        let mut kept = self.kept();
        kept.forgotten += kept.newest.push(notification, bytes) as u64;
        drop(kept);
        self.arrived.send_replace(());
    }

    /// Nothing more will come.
    pub(super) fn end(&self) {
        self.kept().ended = true;
        self.arrived.send_replace(());
    }

    /// Of the next one to arrive.
    pub(super) fn position(&self) -> u64 {
        let kept = self.kept();
        kept.forgotten + kept.newest.iter().len() as u64
    }

    /// The first wanted one from `position` on; `None` once the connection has ended without. Cancel safe: `position`
    /// moves only past what is not wanted, or is given.
    pub(super) async fn next(&self, position: &mut u64, wanted: impl Fn(&Notification) -> bool) -> Option<Notification> {
        self.when(|kept| kept.find(position, &wanted)).await
    }

    async fn next_of(&self, method: &str) -> Option<Notification> {
        self.when(|kept| {
            let mut position = kept.next_of.get(method).copied().unwrap_or_default();
            let found = kept.find(&mut position, |notification| notification.method == method);
            kept.next_of.insert(method.to_owned(), position);
            found
        })
        .await
    }

    async fn when(&self, mut look: impl FnMut(&mut StoredNotifications) -> Option<Notification>) -> Option<Notification> {
        // What arrives between a look and the wait counts as a change.
        let mut arrived = self.arrived.subscribe();
        loop {
            {
                let mut kept = self.kept();
                let found = look(&mut kept);
                if found.is_some() || kept.ended {
                    return found;
                }
            }
            // The sender is `self.arrived`.
            arrived.changed().await.ok()?;
        }
    }

    fn kept(&self) -> MutexGuard<'_, StoredNotifications> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoredNotifications {
    fn find(&self, position: &mut u64, wanted: impl Fn(&Notification) -> bool) -> Option<Notification> {
        let start = usize::try_from(position.saturating_sub(self.forgotten)).unwrap_or(usize::MAX);
        let found = self.newest.iter().enumerate().skip(start).find(|(_, notification)| wanted(notification));
        let passed = found.map_or(self.newest.iter().len(), |(index, _)| index + 1);
        *position = (*position).max(self.forgotten + passed as u64);
        found.map(|(_, notification)| notification.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::history_bounds::MAX_STORED;

    fn notification(method: &str, frame: u64) -> Notification {
        Notification { frame: FrameId(frame), method: method.to_owned(), params: None, carried_by: None }
    }

    async fn frame_of(notifications: &Notifications, method: &str) -> Option<u64> {
        notifications.next_of(method).await.map(|found| found.frame.0)
    }

    #[tokio::test]
    async fn each_notification_is_given_once_and_none_is_missed() {
        let notifications = Notifications::new();
        for (frame, method) in ["a", "b", "a"].into_iter().enumerate() {
            notifications.keep(notification(method, frame as u64), 1);
        }
        assert_eq!(frame_of(&notifications, "a").await, Some(0));
        assert_eq!(frame_of(&notifications, "a").await, Some(2));
        assert_eq!(frame_of(&notifications, "b").await, Some(1));
        let (next, ()) = tokio::join!(frame_of(&notifications, "a"), async { notifications.keep(notification("a", 3), 1) });
        assert_eq!(next, Some(3));
        let (none, ()) = tokio::join!(frame_of(&notifications, "a"), async { notifications.end() });
        assert_eq!(none, None);
        assert_eq!(notifications.all().len(), 4);
    }

    #[tokio::test]
    async fn a_flood_is_forgotten_from_its_beginning() {
        let notifications = Notifications::new();
        let mut position = notifications.position();
        let flood = MAX_STORED as u64 + 7;
        for frame in 0..flood {
            notifications.keep(notification("a", frame), 1);
        }
        assert_eq!(notifications.all().len(), MAX_STORED);
        assert_eq!(notifications.next(&mut position, |_| true).await, Some(notification("a", 7)));
        assert_eq!(position, 8);
        assert_eq!(notifications.position(), flood);
    }
}
