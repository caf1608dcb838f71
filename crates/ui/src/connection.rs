//! One server of the inspector: opens its session, holds it, notices its end, closes it.

use crate::apps::{AppFailure, NewView, Opened, Sandbox};
use crate::asks;
use crate::hub::{Hub, HubFailure, MAX_SESSIONS};
use crate::policy::{self, Policy};
use crate::sign_in::{self, Flow, SignIn};
use crate::spec::{Prepared, ServerSpec};
use crate::subscriptions::Subscriptions;
use crate::tasks::Followed;
use mcproof_analysis::diagnosis::{self, Audience};
use mcproof_client::{Canceler, Closed, Session, ShutdownTimeouts, Tap, open_session};
use mcproof_record::{Diagnostic, Frame, FrameBody, Transcript};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{Notify, RwLock};

pub(crate) struct Connection {
    pub(crate) id: u64,
    pub(crate) spec: ServerSpec,
    /// How its questions are answered.
    pub(crate) policy: Policy,
    /// What a name in a configuration file stood for when the server was started last. Its values are not shown.
    pub(crate) resolved: Option<ServerSpec>,
    pub(crate) status: Status,
    /// Newest last.
    pub(crate) sessions: Vec<Recorded>,
    pub(crate) live: Option<Live>,
    /// Its last authorization.
    pub(crate) flow: Option<Flow>,
    pub(crate) followed: Vec<Followed>,
    /// Where the server's apps run, once one was opened.
    pub(crate) sandbox: Option<Arc<Sandbox>>,
    /// Of a recorded session, what whoever recorded it has found.
    pub(crate) found: Option<Box<Diagnostic>>,
    /// Ends an attempt to connect.
    abandon: Arc<Notify>,
}

/// How a connection is.
pub(crate) enum Status {
    Closed,
    Opening,
    Open,
    Failed(Box<Diagnostic>),
    /// By the server.
    Ended(Box<Diagnostic>),
    /// A session that is only looked at.
    Recorded,
}

/// A session and its frames, also when it is over.
#[derive(Clone)]
pub(crate) struct Recorded {
    pub(crate) id: u64,
    pub(crate) frames: Frames,
    opened_ms: u64,
    /// What the server said of itself.
    pub(crate) handshake: Option<Value>,
}

/// Where the frames of a session are.
#[derive(Clone)]
pub(crate) enum Frames {
    Live(Tap),
    Saved(Arc<Transcript>),
}

impl Frames {
    /// What records a session of this run.
    pub(crate) fn tap(&self) -> Option<Tap> {
        match self {
            Self::Live(tap) => Some(tap.clone()),
            Self::Saved(_) => None,
        }
    }
}

impl Recorded {
    pub(crate) fn new(id: u64, frames: Frames, opened_ms: u64) -> Self {
        Self { id, frames, opened_ms, handshake: None }
    }
}

impl Frames {
    /// Some frames from number `next` on, of about `bytes` bytes or less, unless a single one is larger.
    pub(crate) fn from(&self, next: u64, bytes: usize) -> Vec<Frame> {
        let take = |frames: &mut dyn Iterator<Item = &Frame>| {
            let mut left = bytes;
            let mut taken = Vec::new();
            for frame in frames.skip_while(|frame| frame.id.0 < next) {
                let size = frame_size(frame);
                if size > left && !taken.is_empty() {
                    break;
                }
                left = left.saturating_sub(size);
                taken.push(frame.clone());
            }
            taken
        };
        match self {
            Self::Live(tap) => tap.look(take),
            Self::Saved(transcript) => {
                // They are many, and in their order.
                let begin = transcript.frames.partition_point(|frame| frame.id.0 < next);
                take(&mut transcript.frames[begin..].iter())
            }
        }
    }

    pub(crate) fn transcript(&self) -> Transcript {
        match self {
            Self::Live(tap) => tap.transcript(),
            Self::Saved(transcript) => Transcript::clone(transcript),
        }
    }
}

/// About how many bytes a frame has as JSON.
fn frame_size(frame: &Frame) -> usize {
    let bytes = match &frame.body {
        FrameBody::Line { bytes, .. } | FrameBody::Stderr { bytes } | FrameBody::Stdout { bytes } | FrameBody::HttpBody { bytes, .. } => {
            bytes.len()
        }
        FrameBody::SseEvent { bytes, data, .. } => bytes.len() + data.as_ref().map_or(0, mcproof_record::Raw::len),
        FrameBody::HttpRequest { body, .. } => body.len(),
        _ => 0,
    };
    bytes + 200
}

/// An open session.
#[derive(Clone)]
pub(crate) struct Live {
    pub(crate) recorded: u64,
    /// Read while requests are under way; taken to be closed.
    pub(crate) session: Arc<RwLock<Option<Session>>>,
    /// By the key that the page gave each request.
    pub(crate) cancelers: Arc<std::sync::Mutex<HashMap<String, Canceler>>>,
    /// Whether its handshake offered roots.
    pub(crate) declares_roots: bool,
    pub(crate) subscriptions: Subscriptions,
}

impl Connection {
    pub(crate) fn new(id: u64, spec: ServerSpec) -> Self {
        Self {
            id,
            policy: Policy::of_roots(&spec.roots),
            spec,
            resolved: None,
            status: Status::Closed,
            sessions: Vec::new(),
            live: None,
            flow: None,
            followed: Vec::new(),
            sandbox: None,
            found: None,
            abandon: Arc::default(),
        }
    }

    /// As the page gets it.
    pub(crate) fn shown(&self) -> Value {
        let (status, diagnostic) = match &self.status {
            Status::Closed => ("closed", None),
            Status::Opening => ("opening", None),
            Status::Open => ("open", None),
            Status::Failed(why) => ("failed", Some(why)),
            Status::Ended(why) => ("ended", Some(why)),
            Status::Recorded => ("recorded", self.found.as_ref()),
        };
        let sessions = self
            .sessions
            .iter()
            .map(|recorded| json!({ "id": recorded.id, "openedMs": recorded.opened_ms, "handshake": recorded.handshake }));
        json!({
            "id": self.id,
            "title": self.spec.title(),
            "spec": self.spec.masked(),
            "resolved": self.resolved.as_ref().map(ServerSpec::masked),
            "policy": self.policy.shown(),
            "declaresRoots": self.live.as_ref().map(|live| live.declares_roots),
            "subscriptions": self.live.as_ref().map(|live| live.subscriptions.uris()).unwrap_or_default(),
            "status": status,
            "diagnostic": diagnostic,
            "authorization": self.flow.as_ref().map(Flow::shown),
            "followed": self.followed.iter().map(Followed::shown).collect::<Vec<_>>(),
            "sessions": sessions.collect::<Vec<_>>(),
        })
    }
}

/// Whether a user who is signed in already is taken as such.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tokens {
    Kept,
    Discarded,
}

/// Connects, and stays until the session is over. Whatever was open before is closed first.
pub(crate) async fn open(hub: Arc<Hub>, id: u64, tokens: Tokens) {
    close(&hub, id).await;
    let opened = hub.change(|state| {
        let connection = state.connection(id)?;
        connection.status = Status::Opening;
        connection.flow = None;
        connection.abandon = Arc::default();
        Some((connection.spec.clone(), connection.policy.clone(), Arc::clone(&connection.abandon)))
    });
    let Some((spec, policy, abandon)) = opened else { return };
    let user = SignIn { control: sign_in::control(&hub, id), anew: tokens == Tokens::Discarded };
    let Prepared { target, mut options, secrets, tap: bounds, hint } = match hub.connector.prepare(&spec, Some(user)) {
        Ok(prepared) => prepared,
        Err(diagnostic) => return hub.fail(id, *diagnostic),
    };
    let tap = hub.new_tap(bounds, secrets);
    let resolved = spec.server.is_some().then(|| spec.resolved(&target, hub.connector.folder()).map_text(|text| tap.redacted(text)));
    let opened_ms = hub.now_ms();
    let Some(recorded) = hub.change(|state| {
        let recorded = state.new_id();
        let connection = state.connection(id)?;
        connection.resolved = resolved;
        connection.sessions.push(Recorded::new(recorded, Frames::Live(tap.clone()), opened_ms));
        let surplus = connection.sessions.len().saturating_sub(MAX_SESSIONS);
        connection.sessions.drain(..surplus);
        Some(recorded)
    }) else {
        return;
    };
    declare_apps(&mut options.client.capabilities);
    options.answers = policy.responses(asks::callback(&hub, id, recorded, tap.clone()));
    options.roots_change = true;
    let outcome = tokio::select! {
        outcome = open_session(&target, &options, &tap) => outcome,
        () = abandon.notified() => return,
    };
    let session = match outcome {
        Ok(session) => session,
        Err(failure) => {
            let mut diagnostic = diagnosis::of_connect_failure(&failure, &target, &tap.transcript(), Audience::CommandLine);
            if let (mcproof_client::ConnectFailure::Exited { .. }, Some(hint)) = (&failure, hint) {
                diagnostic.hint = Some(hint);
            }
            return hub.fail(id, diagnostic.map_text(|text| tap.redacted(text)));
        }
    };
    let handshake = tap.redacted_value(session.handshake().to_value());
    let mut arrivals = session.arrivals();
    let slot = Arc::new(RwLock::new(Some(session)));
    let live = Live {
        recorded,
        session: Arc::clone(&slot),
        cancelers: Arc::default(),
        declares_roots: policy.has_roots(),
        subscriptions: Subscriptions::default(),
    };
    let newer = hub.change(|state| {
        let connection = state.connection(id)?;
        connection.status = Status::Open;
        if let Some(known) = connection.sessions.iter_mut().find(|known| known.id == recorded) {
            known.handshake = Some(handshake);
        }
        connection.live = Some(live.clone());
        Some(connection.policy.clone()).filter(|newer| !newer.has_same_roots(&policy))
    });
    // They were changed while it was connecting.
    if let Some(newer) = newer {
        policy::tell_roots(&hub, id, live, &newer).await;
    }
    let ended = loop {
        tokio::select! {
            arrived = arrivals.changed() => {
                let held = slot.read().await;
                // It was closed by us.
                let Some(session) = held.as_ref() else { return };
                if let Some(closed) = session.closed_because() {
                    break closed;
                }
                if arrived.is_err() {
                    return;
                }
            }
            () = abandon.notified() => return,
        }
    };
    end(&hub, id, recorded, &ended, &tap);
}

/// The server has ended the session.
fn end(hub: &Arc<Hub>, id: u64, recorded: u64, closed: &Closed, tap: &Tap) {
    let mut diagnostic = Diagnostic::error("session-ended", closed.to_string());
    diagnostic.evidence = Some(tap.transcript().tail(8, 12));
    diagnostic.hint = Some("connect again to start it anew".to_owned());
    let live = hub.change(|state| {
        asks::withdraw(state, recorded);
        let connection = state.connection(id)?;
        if connection.live.as_ref().is_none_or(|live| live.recorded != recorded) {
            return None;
        }
        stop_what_waits(connection);
        connection.status = Status::Ended(Box::new(diagnostic.map_text(|text| tap.redacted(text))));
        connection.live.take()
    });
    if let Some(live) = live {
        tokio::spawn(async move { shut_down(live).await });
    }
}

/// Ends the session, if there is one, and the server if we started it.
pub(crate) async fn close(hub: &Arc<Hub>, id: u64) {
    let live = hub.change(|state| {
        let connection = state.connection(id)?;
        connection.abandon.notify_waiters();
        // One that begins to wait in this very moment is told as well.
        connection.abandon.notify_one();
        if matches!(connection.status, Status::Open | Status::Opening) {
            connection.status = Status::Closed;
        }
        stop_what_waits(connection);
        let live = connection.live.take();
        if let Some(live) = &live {
            asks::withdraw(state, live.recorded);
        }
        live
    });
    if let Some(live) = live {
        shut_down(live).await;
    }
}

fn stop_what_waits(connection: &mut Connection) {
    connection.followed.iter_mut().for_each(Followed::stop);
    if let Some(flow) = &mut connection.flow {
        flow.abandon();
    }
}

async fn shut_down(live: Live) {
    live.subscriptions.end();
    for (_, canceler) in live.cancelers.lock().unwrap_or_else(std::sync::PoisonError::into_inner).drain() {
        canceler.cancel("the user has disconnected".to_owned());
    }
    if let Some(session) = live.session.write().await.take() {
        session.close_within(ShutdownTimeouts::default()).await;
    }
}

/// What the page can show, so that servers offer their apps (MCP Apps 2026-01-26, client capabilities).
fn declare_apps(capabilities: &mut Map<String, Value>) {
    let extensions = capabilities.entry("extensions").or_insert_with(|| json!({}));
    if let Some(extensions) = extensions.as_object_mut() {
        extensions.insert("io.modelcontextprotocol/ui".to_owned(), json!({ "mimeTypes": ["text/html;profile=mcp-app"] }));
    }
}

/// Shows an app of the server of a connection.
pub(crate) async fn open_app(hub: &Hub, id: u64, view: NewView) -> Result<Result<Opened, AppFailure>, HubFailure> {
    let known = hub.state().connection(id).ok_or(HubFailure::NoConnection)?.sandbox.clone();
    let sandbox = match known {
        Some(sandbox) => sandbox,
        None => match Sandbox::bind(hub.origins.clone()).await {
            Ok(bound) => {
                let mut state = hub.state();
                let connection = state.connection(id).ok_or(HubFailure::NoConnection)?;
                // Somebody may have been faster.
                Arc::clone(connection.sandbox.get_or_insert_with(|| Arc::new(bound)))
            }
            Err(failure) => return Ok(Err(failure)),
        },
    };
    Ok(sandbox.open(view))
}

/// Ends a connection and forgets it.
pub(crate) async fn remove(hub: &Arc<Hub>, id: u64) {
    close(hub, id).await;
    hub.change(|state| state.connections.retain(|connection| connection.id != id));
}

/// The open session of a connection.
pub(crate) fn live(hub: &Hub, id: u64) -> Result<Live, HubFailure> {
    let mut state = hub.state();
    state.connection(id).ok_or(HubFailure::NoConnection)?.live.clone().ok_or(HubFailure::NotOpen)
}
