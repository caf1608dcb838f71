//! What the server remembers of one legacy client. Knows no transport.

use super::Server;
use super::message::{Outlet, Received};
use crate::zoo::InternalDeviation;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The levels of log messages, the least severe first.
pub(crate) const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The revisions of the legacy era, the oldest first.
pub(crate) const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
pub(crate) const MODERN: &str = "2026-07-28";

/// The least severe level that is told unless the client asks for others: nothing that this server has to tell.
const QUIET: &str = "warning";

/// One conversation. A modern request has one to itself.
#[derive(Default)]
pub(crate) struct Session {
    pub(crate) id: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    version: Option<String>,
    /// What the client has declared.
    client: Value,
    level: Option<usize>,
    /// The requests that subscribed, by URI.
    subscriptions: BTreeMap<String, Arc<Received>>,
    outlet: Option<Arc<dyn Outlet>>,
    ended: bool,
}

impl Session {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The revision that was agreed on.
    pub(crate) fn version(&self) -> Option<String> {
        self.state().version.clone()
    }

    pub(crate) fn agree_on(&self, version: &str) {
        self.state().version = Some(version.to_owned());
    }

    /// Notes what the client can do.
    pub(crate) fn meet(&self, capabilities: &Value) {
        self.state().client = capabilities.clone();
    }

    pub(crate) fn client_capabilities(&self) -> Value {
        self.state().client.clone()
    }

    pub(crate) fn set_level(&self, level: usize) {
        self.state().level = Some(level);
    }

    /// Whether the client wants to know of this.
    pub(crate) fn wants_level(&self, level: &str) -> bool {
        let least = self.state().level;
        rank(level) >= least.or_else(|| rank(QUIET))
    }

    pub(crate) fn subscribe(&self, uri: &str, received: &Arc<Received>) {
        self.state().subscriptions.insert(uri.to_owned(), Arc::clone(received));
    }

    pub(crate) fn unsubscribe(&self, uri: &str) {
        self.state().subscriptions.remove(uri);
    }

    pub(crate) fn subscription(&self, uri: &str) -> Option<Arc<Received>> {
        self.state().subscriptions.get(uri).cloned()
    }

    /// From now on, what answers no request goes there.
    pub(crate) fn attach(&self, outlet: Arc<dyn Outlet>) {
        self.state().outlet = Some(outlet);
    }

    pub(crate) fn outlet(&self) -> Option<Arc<dyn Outlet>> {
        self.state().outlet.clone()
    }

    /// Says what answers no request, if there is a way to.
    pub(crate) fn send(&self, message: &Value) {
        if let Some(outlet) = self.outlet() {
            outlet.send(message);
        }
    }

    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        // The requests that subscribed hold the session.
        state.subscriptions.clear();
        state.outlet = None;
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.state().ended
    }
}

pub(crate) fn rank(level: &str) -> Option<usize> {
    LEVELS.iter().position(|known| *known == level)
}

impl Server {
    /// A session that is kept under an id of its own.
    pub(crate) fn open_session(&self) -> Arc<Session> {
        if self.deviates(InternalDeviation::NewSessionsEndOthers) {
            self.sessions().values().for_each(|session| session.end());
        }
        let session = Arc::new(Session { id: self.deviation.session_id(self), ..Session::default() });
        self.sessions().insert(session.id.clone(), Arc::clone(&session));
        session
    }

    /// The session with that id.
    ///
    /// # Errors
    /// The HTTP status that says that there is none.
    pub(crate) fn session(&self, id: &str) -> Result<Arc<Session>, u16> {
        let known = self.sessions().get(id).cloned();
        match known {
            Some(session) if session.has_ended() => Err(if self.deviates(InternalDeviation::EndedSessionsGet400) { 400 } else { 404 }),
            Some(session) => Ok(session),
            None if self.deviates(InternalDeviation::UnknownSessionsServed) => {
                let session = Session { id: id.to_owned(), ..Session::default() };
                session.agree_on(LEGACY[LEGACY.len() - 1]);
                Ok(Arc::new(session))
            }
            None => Err(if self.deviates(InternalDeviation::UnknownSessionsGet400) { 400 } else { 404 }),
        }
    }

    /// The session of a request that names none.
    pub(crate) fn any_session(&self) -> Option<Arc<Session>> {
        self.all_sessions().into_iter().find(|session| self.deviates(InternalDeviation::MissingSessionsServed) && !session.has_ended())
    }

    pub(crate) fn all_sessions(&self) -> Vec<Arc<Session>> {
        self.sessions().values().cloned().collect()
    }

    pub(crate) fn end_session(&self, id: &str) {
        if self.deviates(InternalDeviation::SessionsOutliveTheirEnd) {
            return;
        }
        if self.deviates(InternalDeviation::EndsAllSessions) {
            self.sessions().values().for_each(|session| session.end());
        }
        // It is kept, so that an ended session is told from one that never was.
        if let Some(session) = self.sessions().get(id) {
            session.end();
        }
    }
}
