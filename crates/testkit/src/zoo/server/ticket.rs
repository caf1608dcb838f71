//! Requests that are being worked on, so that they can be cancelled.

use super::session::Session;
use super::{Server, message::Outlet};
use crate::zoo::InternalDeviation;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};

/// One request that is being worked on.
#[derive(Default)]
pub(crate) struct Ticket {
    cancelled: AtomicBool,
}

impl Ticket {
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Whether somebody still waits for the answer. Only in the modern era does closing the stream cancel the request
    /// (2025-11-25: "disconnection SHOULD NOT be interpreted as the client cancelling its request").
    pub(crate) fn is_wanted(&self, modern: bool, outlet: &dyn Outlet) -> bool {
        let open = outlet.is_open();
        !self.is_cancelled() && (!modern || open)
    }
}

impl Server {
    /// Notes that this request is being worked on.
    pub(crate) fn enter(&self, session: &Session, id: &Value) -> Arc<Ticket> {
        let ticket = Arc::new(Ticket::default());
        self.running().insert(key(session, id), Arc::clone(&ticket));
        ticket
    }

    /// Notes that a request is no longer worked on.
    pub(crate) fn leave(&self, session: &Session, id: &Value, ticket: &Arc<Ticket>) {
        let mut running = self.running();
        // Another request may have taken the same id meanwhile.
        if running.get(&key(session, id)).is_some_and(|known| Arc::ptr_eq(known, ticket)) {
            running.remove(&key(session, id));
        }
    }

    pub(crate) fn is_running(&self, session: &Session, id: &Value) -> bool {
        self.running().contains_key(&key(session, id))
    }

    pub(crate) fn cancel(&self, session: &Session, id: &Value) {
        if self.deviates(InternalDeviation::CancelledRequestsAnswered) {
            return;
        }
        if let Some(ticket) = self.running().get(&key(session, id)) {
            ticket.cancelled.store(true, Ordering::Release);
        }
    }

    pub(crate) fn cancel_all(&self) {
        for ticket in self.running().values() {
            ticket.cancelled.store(true, Ordering::Release);
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, Arc<Ticket>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(session: &Session, id: &Value) -> String {
    format!("{} {id}", session.id)
}
