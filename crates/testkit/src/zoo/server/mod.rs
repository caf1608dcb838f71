//! The correct server: what it offers, its state, and how it handles messages. Written by hand, so that every byte
//! of it can be changed. Knows deviations, but no single broken server.

mod batch;
mod calls;
mod catalogue;
mod client_requests;
mod features;
mod fixtures;
mod guard;
mod headers;
mod http;
mod legacy;
mod legacy_tasks;
mod message;
mod modern;
mod notes;
mod reply;
mod response;
mod session;
mod sse;
mod stdio;
mod tasks;
mod ticket;

pub(crate) use catalogue::Catalogue;
pub use guard::TOKEN;
pub(crate) use message::{METHOD_NOT_FOUND, Received, RpcError, notification, result};
pub(crate) use response::{Body, Part, Response};
pub(crate) use session::{LEGACY, MODERN};

use super::{Deviation, Era, InternalDeviation};
use crate::server_transport::ServerTransport;
use mcproof_protocol::Transport;
use message::{INVALID_PARAMS, MessageKind, Outlet};
use modern::Listener;
use serde_json::Value;
use session::Session;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use ticket::Ticket;

/// One server process.
pub(crate) struct Server {
    pub(crate) deviation: &'static Deviation,
    pub(crate) eras: &'static [Era],
    pub(crate) catalogue: Catalogue,
    notes: Mutex<BTreeMap<String, String>>,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    running: Mutex<HashMap<String, Arc<Ticket>>>,
    listeners: Mutex<Vec<Arc<Listener>>>,
    memory: Mutex<Value>,
    pending_requests: client_requests::PendingRequests,
    tasks: Mutex<Vec<tasks::Task>>,
    legacy_tasks: Mutex<Vec<legacy_tasks::LegacyTask>>,
    /// With their ids.
    sent_events: Mutex<Vec<Vec<u8>>>,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Answered,
    /// Its client canceled it.
    Cancelled,
}

impl Server {
    pub(crate) fn new(deviation: &'static Deviation, eras: &'static [Era]) -> Arc<Self> {
        let mut catalogue = if deviation.has_fixtures() { Catalogue::with_fixtures() } else { Catalogue::correct() };
        if let Deviation::Catalogue(change) = deviation {
            change(&mut catalogue);
        }
        Arc::new(Self {
            deviation,
            eras,
            catalogue,
            notes: Mutex::new(notes::first()),
            sessions: Mutex::default(),
            running: Mutex::default(),
            listeners: Mutex::default(),
            memory: Mutex::default(),
            pending_requests: client_requests::PendingRequests::default(),
            tasks: Mutex::default(),
            legacy_tasks: Mutex::default(),
            sent_events: Mutex::default(),
        })
    }

    pub(crate) fn knows(&self, era: Era) -> bool {
        self.eras.contains(&era)
    }

    pub(crate) fn deviates(&self, internal_deviation: InternalDeviation) -> bool {
        matches!(self.deviation, Deviation::Internal(known) if *known == internal_deviation)
    }

    /// A message as an event of the stream of its request, with an id where streams can be resumed.
    fn event(&self, message: &Value) -> Vec<u8> {
        let event = self.deviation.event(message);
        if !self.deviates(InternalDeviation::ResumesAllStreams) {
            return event;
        }
        let mut sent = self.sent_events.lock().unwrap_or_else(PoisonError::into_inner);
        let (stream, message) = (sent.len(), String::from_utf8_lossy(&event).into_owned());
        let event = format!("id: {stream}-0\ndata:\n\nid: {stream}-1\n{message}").into_bytes();
        sent.push(event.clone());
        event
    }

    fn events_sent(&self) -> Vec<Vec<u8>> {
        self.sent_events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// State that a deviation needs from one message to the next.
    pub(crate) fn memory(&self) -> MutexGuard<'_, Value> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs that server until its client disconnects (stdio), or forever.
///
/// # Errors
/// The client has disconnected, or the port is in use.
pub(crate) fn serve(server: &Arc<Server>, transport: ServerTransport) -> io::Result<()> {
    server.deviation.start(transport)?;
    match transport {
        ServerTransport::Stdio => stdio::serve(server),
        ServerTransport::Http(port) => http::serve(server, port, Transport::Http),
        ServerTransport::Sse(port) => http::serve(server, port, Transport::Sse),
    }
}

/// Handles a request.
pub(crate) fn answer(received: &Arc<Received>, ticket: &Ticket, outlet: &Arc<dyn Outlet>) -> Ended {
    for message in received.server.deviation.extra(received) {
        outlet.send(&message);
    }
    let answered = match received.era {
        _ if received.method() == "tools/list" && has_lost_roots(received) => Err(RpcError::new(INVALID_PARAMS, "no such root")),
        Era::Legacy => legacy::answer(received, ticket, outlet.as_ref()),
        Era::Modern => modern::answer(received, ticket, outlet),
    };
    let answer = match answered {
        Ok(Some(value)) => result(received.id(), value),
        Ok(None) => return Ended::Cancelled,
        Err(fault) => fault.answer(Some(received.id())),
    };
    received.send(answer, outlet.as_ref());
    Ended::Answered
}

/// Whether this client has changed its roots, which the server does not survive.
fn has_lost_roots(received: &Received) -> bool {
    let server = &received.server;
    server.deviates(InternalDeviation::ChangedRootsBreakLists) && server.memory()[&received.session.id] == true
}

/// Handles a notification or a response.
pub(crate) fn note(received: &Received, kind: MessageKind) {
    for message in received.server.deviation.extra(received) {
        received.session.send(&message);
    }
    if kind == MessageKind::Response {
        received.server.take_response(&received.message);
    }
    if received.method() == "notifications/roots/list_changed" && received.server.deviates(InternalDeviation::ChangedRootsBreakLists) {
        received.server.memory()[&received.session.id] = Value::Bool(true);
    }
    if kind == MessageKind::Notification && received.method() == "notifications/cancelled" {
        received.server.cancel(&received.session, &received.params()["requestId"]);
    }
}

/// Handles a request; in a separate thread if that may take a while, so that others are handled meanwhile.
fn dispatch(received: Received, outlet: &Arc<dyn Outlet>) -> Option<JoinHandle<()>> {
    let ticket = received.server.enter(&received.session, received.id());
    let slow = matches!(received.method(), "tools/call" | "tasks/result" | "subscriptions/listen");
    let (received, outlet) = (Arc::new(received), Arc::clone(outlet));
    let work = move || {
        answer(&received, &ticket, &outlet);
        received.server.leave(&received.session, received.id(), &ticket);
    };
    if slow {
        return Some(thread::spawn(work));
    }
    work();
    None
}
