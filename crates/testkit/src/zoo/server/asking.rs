//! Requests of the server to its client, and what came back.

use super::message::{Heard, Outlet};
use super::{Server, modern};
use crate::zoo::changes::ask;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use uuid::Uuid;

/// A client that answers by itself does so at once.
const PATIENCE: Duration = Duration::from_millis(500);

/// What was asked, by id, with the answer once it is there.
#[derive(Default)]
pub(super) struct Questions {
    open: Mutex<HashMap<String, Option<Value>>>,
    answered: Condvar,
}

impl Questions {
    fn open(&self) -> MutexGuard<'_, HashMap<String, Option<Value>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    /// The result that the client gives; `None` if it refuses, or does not answer.
    pub(super) fn ask(&self, heard: &Heard, outlet: &dyn Outlet, method: &str, params: Value) -> Option<Value> {
        let id = Uuid::new_v4().to_string();
        self.questions.open().insert(id.clone(), None);
        heard.say(ask(json!(id), method, params), outlet);
        let waiting = |open: &mut HashMap<String, Option<Value>>| open.get(&id).is_some_and(Option::is_none);
        let waited = self.questions.answered.wait_timeout_while(self.questions.open(), PATIENCE, waiting);
        let (mut open, _) = waited.unwrap_or_else(PoisonError::into_inner);
        open.remove(&id)??.get("result").cloned()
    }

    /// Takes in an answer.
    pub(super) fn take_answer(&self, message: &Value) {
        let mut open = self.questions.open();
        if let Some(question) = message["id"].as_str().and_then(|id| open.get_mut(id)) {
            *question = Some(message.clone());
            self.questions.answered.notify_all();
        }
    }
}

impl Heard {
    /// Whether the client has declared that it can do this.
    pub(super) fn client_can(&self, capability: &str) -> bool {
        match self.is_modern() {
            true => self.params()["_meta"][modern::CAPABILITIES].pointer(capability).is_some(),
            false => self.session.client_capabilities().pointer(capability).is_some(),
        }
    }
}
