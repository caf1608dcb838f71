//! Requests of the server to its client, and their responses.

use super::message::{Outlet, Received};
use super::{Server, modern};
use crate::zoo::changes::ask;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use uuid::Uuid;

/// An automatic client responds at once.
const PATIENCE: Duration = Duration::from_millis(500);

/// The requests by id, each with its response once it is there.
#[derive(Default)]
pub(super) struct PendingRequests {
    open: Mutex<HashMap<String, Option<Value>>>,
    answered: Condvar,
}

impl PendingRequests {
    fn open(&self) -> MutexGuard<'_, HashMap<String, Option<Value>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    /// The result of the client; `None` if it returns an error, or does not respond.
    pub(super) fn ask(&self, received: &Received, outlet: &dyn Outlet, method: &str, params: Value) -> Option<Value> {
        let id = Uuid::new_v4().to_string();
        self.pending_requests.open().insert(id.clone(), None);
        received.send(ask(json!(id), method, params), outlet);
        let waiting = |open: &mut HashMap<String, Option<Value>>| open.get(&id).is_some_and(Option::is_none);
        let waited = self.pending_requests.answered.wait_timeout_while(self.pending_requests.open(), PATIENCE, waiting);
        let (mut open, _) = waited.unwrap_or_else(PoisonError::into_inner);
        open.remove(&id)??.get("result").cloned()
    }

    /// Stores a response.
    pub(super) fn take_response(&self, message: &Value) {
        let mut open = self.pending_requests.open();
        if let Some(question) = message["id"].as_str().and_then(|id| open.get_mut(id)) {
            *question = Some(message.clone());
            self.pending_requests.answered.notify_all();
        }
    }
}

impl Received {
    /// Whether the client has declared this capability. Elicitation is that of forms, which one that declares only pages has not.
    pub(super) fn client_can(&self, capability: &str) -> bool {
        let has = |path: &str| match self.is_modern() {
            true => self.params()["_meta"][modern::CAPABILITIES].pointer(path).is_some(),
            false => self.session.client_capabilities().pointer(path).is_some(),
        };
        let has_pages_only = || has("/elicitation/url") && !has("/elicitation/form");
        has(capability) && !(capability == "/elicitation" && has_pages_only())
    }
}
