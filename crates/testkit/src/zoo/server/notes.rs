//! The state of the server: notes by name, and who wants to know when they change.

use super::message::notification;
use super::{Server, modern};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

/// The resource that shows all notes.
pub(crate) const NOTES: &str = "zoo://notes";

pub(super) fn first() -> BTreeMap<String, String> {
    BTreeMap::from([("hay".to_owned(), "two bales are left".to_owned())])
}

impl Server {
    pub(crate) fn notes(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells those who have subscribed to the notes that they have changed.
    pub(crate) fn notes_changed(&self) {
        for session in self.all_sessions() {
            if let (Some(received), Some(outlet)) = (session.subscription(NOTES), session.outlet()) {
                received.send(notification("notifications/resources/updated", json!({ "uri": NOTES })), outlet.as_ref());
            }
        }
        modern::tell_listeners(self, NOTES);
    }
}
