//! What the inspector holds: connections, their recorded sessions, and questions of servers that wait for the user. Whoever shows it is
//! told by a bell that there is something new, and looks.

use crate::RecordedSession;
use crate::asks::Ask;
use crate::connection::{Connection, Frames, Recorded, Status, Tokens};
use crate::spec::{Connector, KnownServer, ServerSpec, SharedSession};
use crate::test_runs::{TestRunner, Tests};
use mcproof_client::{Tap, TapBounds};
use mcproof_record::{Diagnostic, Frame};
use serde::Serialize;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

pub(crate) struct Hub {
    pub(crate) connector: Arc<dyn Connector>,
    state: Mutex<State>,
    bell: watch::Sender<u64>,
    now: fn() -> SystemTime,
    version: &'static str,
    /// The origins of the page.
    pub(crate) origins: Vec<String>,
    /// Held while a test is saved.
    pub(crate) saving: Mutex<()>,
    runner: OnceLock<Arc<dyn TestRunner>>,
}

#[derive(Default)]
pub(crate) struct State {
    /// Changes with everything below, but not with new frames.
    pub(crate) revision: u64,
    pub(crate) next_id: u64,
    /// Of `mcproof test --ui`.
    pub(crate) tests: Option<Tests>,
    pub(crate) connections: Vec<Connection>,
    pub(crate) asks: Vec<Ask>,
}

/// All but the frames, for the page.
#[derive(Serialize)]
pub(crate) struct Overview {
    pub(crate) revision: u64,
    version: &'static str,
    connections: Vec<Value>,
    asks: Vec<Value>,
    known: Vec<KnownServer>,
    tests: Option<Value>,
}

/// Connections at the same time: each holds a session, and perhaps a process.
pub(crate) const MAX_CONNECTIONS: usize = 32;
/// Earlier sessions of a connection that can still be looked at.
pub(crate) const MAX_SESSIONS: usize = 4;

/// Why a connection is not there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HubFailure {
    #[error("there is no such connection")]
    NoConnection,
    #[error("the server is not connected")]
    NotOpen,
    #[error("{MAX_CONNECTIONS} servers are listed already: remove one first")]
    TooMany,
    #[error("there is no such session")]
    NoSession,
}

impl Hub {
    pub(crate) fn new(connector: Arc<dyn Connector>, now: fn() -> SystemTime, version: &'static str, origins: Vec<String>) -> Arc<Self> {
        Arc::new(Self {
            connector,
            state: Mutex::default(),
            bell: watch::Sender::new(0),
            now,
            version,
            origins,
            saving: Mutex::default(),
            runner: OnceLock::new(),
        })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes something that the overview shows.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state();
        state.revision += 1;
        let changed = change(&mut state);
        drop(state);
        self.ring();
        changed
    }

    fn ring(&self) {
        self.bell.send_modify(|rings| *rings = rings.wrapping_add(1));
    }

    pub(crate) fn bell(&self) -> watch::Receiver<u64> {
        self.bell.subscribe()
    }

    /// Milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        let since = (self.now)().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn overview(&self) -> Overview {
        // Read before the lock: it looks at files.
        let known = self.connector.known();
        let state = self.state();
        Overview {
            revision: state.revision,
            version: self.version,
            connections: state.connections.iter().map(Connection::shown).collect(),
            asks: state.asks.iter().map(Ask::shown).collect(),
            known,
            tests: state.tests.as_ref().map(Tests::shown),
        }
    }

    /// Before anybody is served.
    pub(crate) fn set_tests(&self, runner: Arc<dyn TestRunner>) {
        // It is set once, at the start.
        let _ = self.runner.set(runner);
        self.change(|state| state.tests = Some(Tests::new()));
    }

    pub(crate) fn runner(&self) -> Option<Arc<dyn TestRunner>> {
        self.runner.get().cloned()
    }

    /// Lists a server, without connecting.
    pub(crate) fn add(&self, spec: ServerSpec) -> u64 {
        self.change(|state| {
            let id = state.new_id();
            state.connections.push(Connection::new(id, spec));
            id
        })
    }

    pub(crate) fn try_add(&self, spec: ServerSpec) -> Result<u64, HubFailure> {
        if self.state().connections.len() >= MAX_CONNECTIONS {
            return Err(HubFailure::TooMany);
        }
        Ok(self.add(spec))
    }

    /// Lists a session that was recorded earlier.
    pub(crate) fn add_recorded(&self, RecordedSession { name, transcript, found }: RecordedSession) {
        let opened_ms = self.now_ms();
        self.change(|state| {
            let (id, session) = (state.new_id(), state.new_id());
            let mut connection = Connection::new(id, ServerSpec { name, ..ServerSpec::default() });
            connection.status = Status::Recorded;
            connection.found = found;
            connection.sessions.push(Recorded::new(session, Frames::Saved(Arc::new(transcript)), opened_ms));
            state.connections.push(connection);
        });
    }

    /// A tap whose frames ring the bell.
    pub(crate) fn new_tap(self: &Arc<Self>, bounds: TapBounds, secrets: Vec<String>) -> Tap {
        let hub = Arc::downgrade(self);
        let observer = move |_: &Frame| {
            if let Some(hub) = hub.upgrade() {
                hub.ring();
            }
        };
        let tap = Tap::with(bounds, secrets, Some(Box::new(observer)));
        tap.keep_secret_arguments();
        tap
    }

    /// Starts to connect.
    pub(crate) fn open(self: &Arc<Self>, id: u64, tokens: Tokens) {
        tokio::spawn(crate::connection::open(Arc::clone(self), id, tokens));
    }

    pub(crate) fn fail(&self, id: u64, diagnostic: Diagnostic) {
        self.change(|state| {
            if let Some(connection) = state.connection(id) {
                connection.status = Status::Failed(Box::new(diagnostic));
            }
        });
    }

    /// A session, of whatever connection.
    pub(crate) fn recorded(&self, session: u64) -> Result<Recorded, HubFailure> {
        let state = self.state();
        let mut all = state.connections.iter().flat_map(|connection| &connection.sessions);
        all.find(|recorded| recorded.id == session).cloned().ok_or(HubFailure::NoSession)
    }

    /// What the server of a session said of itself, if it has.
    pub(crate) fn handshake(&self, session: u64) -> Option<Value> {
        let state = self.state();
        let mut all = state.connections.iter().flat_map(|connection| &connection.sessions);
        all.find(|recorded| recorded.id == session).and_then(|recorded| recorded.handshake.clone())
    }

    /// A session with what is known of it, as it is handed on.
    pub(crate) fn shared(&self, session: u64) -> Result<SharedSession, HubFailure> {
        let (spec, recorded, taps) = {
            let state = self.state();
            let owner = state.connections.iter().find(|connection| connection.sessions.iter().any(|recorded| recorded.id == session));
            let owner = owner.ok_or(HubFailure::NoSession)?;
            let taps: Vec<Tap> = owner.sessions.iter().filter_map(|recorded| recorded.frames.tap()).collect();
            (owner.spec.clone(), owner.sessions.iter().find(|recorded| recorded.id == session).cloned(), taps)
        };
        let Recorded { frames, handshake, .. } = recorded.ok_or(HubFailure::NoSession)?;
        let said = |key: &str| handshake.as_ref().and_then(|handshake| handshake.get(key)?.as_str()).map(str::to_owned);
        // A command may have secrets among its arguments; it may have been edited since this session began.
        let title = taps.iter().fold(spec.title(), |title, tap| tap.redacted(title));
        Ok(SharedSession {
            title,
            transport: said("transport").or(spec.transport).unwrap_or_default(),
            era: said("era"),
            revision: said("protocolVersion"),
            transcript: frames.transcript(),
        })
    }

    /// What this program calls itself.
    pub(crate) fn version(&self) -> &'static str {
        self.version
    }

    pub(crate) async fn close_all(self: &Arc<Self>) {
        crate::test_runs::stop(self);
        let ids: Vec<u64> = self.state().connections.iter().map(|connection| connection.id).collect();
        futures_util::future::join_all(ids.into_iter().map(|id| crate::connection::close(self, id))).await;
        crate::test_runs::ended(self).await;
    }
}

impl State {
    pub(crate) fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    pub(crate) fn connection(&mut self, id: u64) -> Option<&mut Connection> {
        self.connections.iter_mut().find(|connection| connection.id == id)
    }
}
