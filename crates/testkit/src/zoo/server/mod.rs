//! The correct server: what it offers, what it remembers, and how it hears and answers. Made by hand, so that every byte
//! of it can be twisted. Knows the twists by name and no animal.

mod asking;
mod batch;
mod calls;
mod catalogue;
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
pub(crate) use message::{Fault, Heard, METHOD_NOT_FOUND, notification, result};
pub(crate) use response::{Body, Part, Response};
pub(crate) use session::{LEGACY, MODERN};

use super::{Era, Slip, Twist};
use crate::reach::Reach;
use message::{Kind, Outlet};
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
    pub(crate) twist: &'static Twist,
    pub(crate) eras: &'static [Era],
    pub(crate) catalogue: Catalogue,
    notes: Mutex<BTreeMap<String, String>>,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    running: Mutex<HashMap<String, Arc<Ticket>>>,
    listeners: Mutex<Vec<Arc<Listener>>>,
    memory: Mutex<Value>,
    questions: asking::Questions,
    tasks: Mutex<Vec<tasks::Task>>,
    legacy_tasks: Mutex<Vec<legacy_tasks::LegacyTask>>,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Answered,
    /// Its client wants no answer any more.
    Cancelled,
}

impl Server {
    pub(crate) fn new(twist: &'static Twist, eras: &'static [Era]) -> Arc<Self> {
        let mut catalogue = if twist.has_fixtures() { Catalogue::with_fixtures() } else { Catalogue::correct() };
        if let Twist::Catalogue(change) = twist {
            change(&mut catalogue);
        }
        Arc::new(Self {
            twist,
            eras,
            catalogue,
            notes: Mutex::new(notes::first()),
            sessions: Mutex::default(),
            running: Mutex::default(),
            listeners: Mutex::default(),
            memory: Mutex::default(),
            questions: asking::Questions::default(),
            tasks: Mutex::default(),
            legacy_tasks: Mutex::default(),
        })
    }

    pub(crate) fn knows(&self, era: Era) -> bool {
        self.eras.contains(&era)
    }

    pub(crate) fn slips(&self, slip: Slip) -> bool {
        matches!(self.twist, Twist::Slip(known) if *known == slip)
    }

    /// What a twist has to remember from one message to the next.
    pub(crate) fn memory(&self) -> MutexGuard<'_, Value> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Is that server until its client has gone (stdio) or for good.
///
/// # Errors
/// The client has gone, or the port is taken.
pub(crate) fn serve(server: &Arc<Server>, reach: Reach) -> io::Result<()> {
    server.twist.start(reach)?;
    match reach {
        Reach::Stdio => stdio::serve(server),
        Reach::Http(port) => http::serve(server, port, http::Transport::Streamable),
        Reach::Sse(port) => http::serve(server, port, http::Transport::Sse),
    }
}

/// Answers a request.
pub(crate) fn answer(heard: &Arc<Heard>, ticket: &Ticket, outlet: &Arc<dyn Outlet>) -> Ended {
    for message in heard.server.twist.unasked(heard) {
        outlet.say(&message);
    }
    let answered = match heard.era {
        Era::Legacy => legacy::answer(heard, ticket, outlet.as_ref()),
        Era::Modern => modern::answer(heard, ticket, outlet),
    };
    let answer = match answered {
        Ok(Some(value)) => result(heard.id(), value),
        Ok(None) => return Ended::Cancelled,
        Err(fault) => fault.answer(Some(heard.id())),
    };
    heard.say(answer, outlet.as_ref());
    Ended::Answered
}

/// Takes note of a notification, or of an answer.
pub(crate) fn note(heard: &Heard, kind: Kind) {
    for message in heard.server.twist.unasked(heard) {
        heard.session.tell(&message);
    }
    if kind == Kind::Answer {
        heard.server.take_answer(&heard.message);
    }
    if kind == Kind::Notification && heard.method() == "notifications/cancelled" {
        heard.server.cancel(&heard.session, &heard.params()["requestId"]);
    }
}

/// Answers a request; in a thread of its own if that may take a while, so that others can come in between.
fn dispatch(heard: Heard, outlet: &Arc<dyn Outlet>) -> Option<JoinHandle<()>> {
    let ticket = heard.server.enter(&heard.session, heard.id());
    let slow = matches!(heard.method(), "tools/call" | "tasks/result" | "subscriptions/listen");
    let (heard, outlet) = (Arc::new(heard), Arc::clone(outlet));
    let work = move || {
        answer(&heard, &ticket, &outlet);
        heard.server.leave(&heard.session, heard.id(), &ticket);
    };
    if slow {
        return Some(thread::spawn(work));
    }
    work();
    None
}
