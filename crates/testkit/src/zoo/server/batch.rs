//! Batches, which only 2025-03-26 has: servers of that revision must take them (basic#batching).

use super::message::{INVALID_REQUEST, MessageKind, Outlet, Received, is_response, kind};
use super::session::Session;
use super::{RpcError, Server, answer, note};
use crate::zoo::InternalDeviation;
use mcproof_protocol::Era;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};

/// The one revision that has them.
const REVISION: &str = "2025-03-26";

/// Keeps the answers together, and lets everything else through.
struct Collected {
    answers: Mutex<Vec<Value>>,
    outlet: Arc<dyn Outlet>,
}

impl Outlet for Collected {
    fn send(&self, message: &Value) -> bool {
        if !is_response(message) {
            return self.outlet.send(message);
        }
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).push(message.clone());
        true
    }

    fn is_open(&self) -> bool {
        self.outlet.is_open()
    }
}

/// # Errors
/// Batches are not for this session, or this is none.
pub(super) fn check(server: &Server, session: &Session, messages: &[Value]) -> Result<(), RpcError> {
    let refused = |why: &str| Err(RpcError::new(INVALID_REQUEST, format!("Invalid request: {why}")));
    if session.version().as_deref() != Some(REVISION) || server.deviates(InternalDeviation::BatchesRefused) {
        return refused("there are no batches in this revision");
    }
    if messages.is_empty() || messages.iter().any(|message| kind(message).is_err()) {
        return refused("the batch holds something else than messages");
    }
    Ok(())
}

/// Answers all requests of a batch at once.
pub(super) fn answer_all(server: &Arc<Server>, session: &Arc<Session>, messages: Vec<Value>, outlet: &Arc<dyn Outlet>) {
    let collected = Arc::new(Collected { answers: Mutex::default(), outlet: Arc::clone(outlet) });
    let each: Arc<dyn Outlet> = Arc::<Collected>::clone(&collected);
    for message in messages {
        let Ok(kind) = kind(&message) else { continue };
        let version = REVISION.to_owned();
        let received = Received { server: Arc::clone(server), session: Arc::clone(session), message, era: Era::Legacy, version };
        if kind != MessageKind::Request {
            note(&received, kind);
            continue;
        }
        let ticket = server.enter(session, received.id());
        let received = Arc::new(received);
        answer(&received, &ticket, &each);
        server.leave(session, received.id(), &ticket);
    }
    let answers = std::mem::take(&mut *collected.answers.lock().unwrap_or_else(PoisonError::into_inner));
    if !answers.is_empty() {
        outlet.send(&Value::Array(answers));
    }
}
