//! The sessions of the driver: open, concurrent requests, close. Knows no requests.

use crate::error::DriveError;
use crate::redaction::Redaction;
use crate::relay::Ends;
use crate::targets::{ResolvedTarget, duration};
use crate::wire_faults::{JudgedUntil, Spoken, WireFaults};
use crate::{Drive, envelope};
use mcproof_analysis::diagnosis::{self, Audience};
use mcproof_client::{
    Answers, ConnectOptions, Exit, Fault, Session, ShutdownReport, ShutdownTimeouts, Tap, Target, ViolationKind, open_in_memory,
    open_relayed, open_session,
};
use mcproof_protocol::methods;
use mcproof_record::drive::{
    AnswersParams, CloseParams, Closed, Ended, ExitStatus, Nothing, Notified, OpenParams, Opened, PatienceName, Progressed, Push,
    SeenFrame, SessionOnly,
};
use mcproof_record::{Diagnostic, Frame, FrameBody};
use mcproof_report::frame_line;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedRwLockWriteGuard, RwLock, RwLockReadGuard, SetOnce, watch};

/// How many sessions are remembered that are no more.
const MOST_PAST: usize = 64;
/// How long the driver may take to respond to a request of a server.
const CALLBACK: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(crate) struct Sessions {
    open: RefCell<HashMap<String, Rc<SessionSlot>>>,
    /// Those that are no more, the newest last.
    past: RefCell<VecDeque<Rc<SessionSlot>>>,
}

/// A session, from when the driver names it.
pub(crate) struct SessionSlot {
    pub(crate) name: String,
    pub(crate) tap: Tap,
    /// For what its server says.
    pub(crate) redaction: Redaction,
    /// Locked for writing while it is opened and when it is closed; requests read.
    session: Arc<RwLock<Option<Session>>>,
    /// Why it never opened.
    failed: RefCell<Option<DriveError>>,
    /// Set when it is to be closed.
    closing: SetOnce<()>,
    /// For each request.
    pub(crate) timeout: Duration,
    callback: Duration,
    pushes_notifications: bool,
    /// How far notifications were passed on.
    position: Cell<u64>,
    /// The driver's requests with progress notifications, by token.
    progress: RefCell<HashMap<String, Value>>,
    pub(crate) wire_faults: WireFaults,
    has_ended: Cell<bool>,
}

/// A session that has its name, and is to be opened.
pub(crate) struct Opening {
    seat: Rc<SessionSlot>,
    place: OwnedRwLockWriteGuard<Option<Session>>,
    target: Target,
    options: ConnectOptions,
    relay: Option<Ends>,
}

impl Sessions {
    /// Of those that are, and of those that were.
    pub(crate) fn taps(&self) -> Vec<Tap> {
        let (open, past) = (self.open.borrow(), self.past.borrow());
        open.values().chain(past.iter()).map(|seat| seat.tap.clone()).collect()
    }
}

impl Drive {
    /// Gives a session its name, and its relay if it has one, so that what comes behind may be about it.
    pub(crate) fn take_seat(&self, params: OpenParams) -> Result<Box<Opening>, DriveError> {
        let OpenParams {
            session: name,
            target,
            era,
            protocol_version,
            timeouts,
            client,
            answers,
            later_answers,
            push,
            secrets,
            show_secrets,
            skip_rules,
        } = params;
        if name.is_empty() {
            return Err(DriveError::bad("bad-params", "`session` is empty: it must be the name of the new session"));
        }
        if self.sessions.open.borrow().contains_key(&name) {
            return Err(DriveError::bad("name-taken", format!("session `{name}` already exists")));
        }
        let wire_faults = WireFaults::new(skip_rules).map_err(|unknown| DriveError::bad_input(vec![unknown.diagnostic()]))?;
        let version = protocol_version.as_deref();
        let resolved = match (&target.spawned, target.relay) {
            (None, Some(_)) => self.targets.relayed(&target, era, version, &timeouts)?,
            (spawned, _) => {
                let address = spawned.as_ref().map(|spawned| self.servers.address(spawned, target.path.as_deref())).transpose()?;
                self.targets.resolve(&target, address, era, version, &timeouts)?
            }
        };
        let ResolvedTarget { target: reached, mut options, secrets: known, timeout, tap: bounds, .. } = resolved;
        let callback = duration("timeouts.callback_ms", timeouts.callback_ms, CALLBACK)?;
        options.client.name = client.name.unwrap_or(options.client.name);
        options.client.version = client.version.unwrap_or(options.client.version);
        options.client.capabilities = client.capabilities;
        let push = push.unwrap_or_else(|| vec![Push::Notifications]);
        let observer = push.contains(&Push::Frames).then(|| self.observer(&name));
        let tap = Tap::with(bounds, known.into_iter().chain(secrets).collect(), observer);
        if let Some(spawned) = &target.spawned {
            tap.keep_secrets_of(&self.servers.tap(spawned)?);
        }
        let redaction = Redaction { tap: tap.clone(), shows_secrets: show_secrets };
        options.answers = self.callbacks.policies(&name, &redaction, &answers, callback)?;
        options.later_answers = self.callbacks.policies(&name, &redaction, &later_answers, callback)?;
        let seat = Rc::new(SessionSlot {
            name: name.clone(),
            tap,
            redaction,
            session: Arc::default(),
            failed: RefCell::default(),
            closing: SetOnce::new(),
            timeout,
            callback,
            pushes_notifications: push.contains(&Push::Notifications),
            position: Cell::new(0),
            progress: RefCell::default(),
            wire_faults,
            has_ended: Cell::new(false),
        });
        let relay = target.relay.map(|form| self.relays.open(&name, form, &self.outlet)).transpose()?;
        let place = Arc::clone(&seat.session).try_write_owned().expect("nobody knows it yet");
        self.sessions.past.borrow_mut().retain(|past| past.name != name);
        self.sessions.open.borrow_mut().insert(name, Rc::clone(&seat));
        Ok(Box::new(Opening { seat, place, target: reached, options, relay }))
    }

    fn observer(&self, name: &str) -> Box<dyn Fn(&Frame) + Send + Sync> {
        let (outlet, style, session) = (self.outlet.clone(), self.style.get(), name.to_owned());
        Box::new(move |frame| {
            let text = frame_line(frame, &style);
            let seen = SeenFrame { session: session.clone(), frame: frame.clone(), text };
            outlet.send(envelope::notification("session/frame", &seen));
        })
    }

    pub(crate) async fn open(self: &Rc<Self>, opening: Box<Opening>) -> Result<Opened, DriveError> {
        let Opening { seat, mut place, target, options, relay } = *opening;
        let started = Instant::now();
        let opens = async {
            match relay {
                Some(Ends { input, output, shortcut: Some(shortcut) }) => open_relayed(input, output, shortcut, &options, &seat.tap).await,
                Some(Ends { input, output, shortcut: None }) => open_in_memory(input, output, &options, &seat.tap).await,
                None => open_session(&target, &options, &seat.tap).await,
            }
        };
        let outcome = tokio::select! {
            biased;
            opened = opens => opened.map_err(|failure| {
                DriveError::not_open(diagnosis::of_connect_failure(&failure, &target, &seat.tap.transcript(), Audience::Driver))
            }),
            _ = seat.closing.wait() => Err(DriveError::closed(&seat.name)),
        };
        let session = match outcome {
            Ok(session) => session,
            Err(trouble) => {
                *seat.failed.borrow_mut() = Some(trouble.clone());
                self.retire(&seat);
                return Err(trouble);
            }
        };
        seat.wire_faults.opened(&seat.tap);
        let opened = opened(&seat, &session, started.elapsed());
        let pushing = Rc::clone(self);
        let arrivals = session.arrivals();
        *place = Some(session);
        let place = place.downgrade();
        if let Some(session) = &*place {
            self.pass_on(&seat, session);
        }
        tokio::task::spawn_local(async move { pushing.keep_passing_on(seat, arrivals).await });
        Ok(opened)
    }

    /// A session that is open, or is being opened.
    pub(crate) fn seat(&self, name: &str) -> Result<Rc<SessionSlot>, DriveError> {
        self.sessions.open.borrow().get(name).cloned().ok_or_else(|| DriveError::gone("session", name))
    }

    /// A session that is or was.
    pub(crate) fn seat_or_past(&self, name: &str) -> Result<Rc<SessionSlot>, DriveError> {
        self.seat(name).or_else(|gone| {
            let past = self.sessions.past.borrow();
            past.iter().find(|past| past.name == name).cloned().ok_or(gone)
        })
    }

    /// Does something with a session, once it is open and as long as it is. What the server said meanwhile is passed on first.
    pub(crate) async fn with<T>(
        &self,
        seat: &SessionSlot,
        work: impl AsyncFnOnce(&Session) -> Result<T, DriveError>,
    ) -> Result<T, DriveError> {
        let session = seat.session.read().await;
        let Some(session) = &*session else {
            return Err(seat.failed.borrow().clone().unwrap_or_else(|| DriveError::gone("session", &seat.name)));
        };
        let outcome = tokio::select! {
            biased;
            outcome = work(session) => outcome,
            _ = seat.closing.wait() => Err(DriveError::closed(&seat.name)),
        };
        self.pass_on(seat, session);
        outcome
    }

    pub(crate) async fn discover(&self, SessionOnly { session }: SessionOnly) -> Result<Opened, DriveError> {
        let seat = self.seat(&session)?;
        self.with(&seat, async |session| Ok(opened(&seat, session, Duration::ZERO))).await
    }

    pub(crate) async fn change_answers(&self, AnswersParams { session, answers }: AnswersParams) -> Result<Nothing, DriveError> {
        let seat = self.seat(&session)?;
        let policies: Answers = self.callbacks.policies(&seat.name, &seat.redaction, &answers, seat.callback)?;
        self.with(&seat, async |session| {
            session.set_client_responses(policies);
            Ok(Nothing {})
        })
        .await
    }

    pub(crate) async fn close(&self, CloseParams { session, patience }: CloseParams) -> Result<Closed, DriveError> {
        let seat = self.seat(&session)?;
        let patience = match patience {
            PatienceName::Usual => ShutdownTimeouts::default(),
            PatienceName::Short => ShutdownTimeouts::SHORT,
        };
        self.close_seat(&seat, patience).await
    }

    async fn close_seat(&self, seat: &Rc<SessionSlot>, patience: ShutdownTimeouts) -> Result<Closed, DriveError> {
        // Its name is free from here on, but for the relay, which still has something to say.
        self.sessions.open.borrow_mut().remove(&seat.name);
        // Who closes it twice closes it once.
        let _ = seat.closing.set(());
        let session = seat.session.write().await.take();
        let Some(session) = session else {
            return Ok(closed(&ShutdownReport::default(), Vec::new()));
        };
        let (spoken, faults) = (seat.spoken(&session), session.faults());
        seat.judge(&spoken, faults, JudgedUntil::Now);
        let report = session.close_within(patience).await;
        seat.judge(&spoken, Vec::new(), JudgedUntil::ItsEnd);
        self.retire(seat);
        Ok(closed(&report, seat.wire_faults.told()))
    }

    pub(crate) async fn close_all(&self, patience: ShutdownTimeouts) {
        let seats: Vec<Rc<SessionSlot>> = self.sessions.open.borrow().values().cloned().collect();
        let mut closing: Vec<_> = seats.iter().map(|seat| Box::pin(self.close_seat(seat, patience))).collect();
        // Together, because each may take its time.
        std::future::poll_fn(|context| {
            closing.retain_mut(|one| one.as_mut().poll(context).is_pending());
            if closing.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    }

    fn retire(&self, seat: &Rc<SessionSlot>) {
        self.relays.forget(&seat.name);
        let mut open = self.sessions.open.borrow_mut();
        if open.get(&seat.name).is_some_and(|known| Rc::ptr_eq(known, seat)) {
            open.remove(&seat.name);
        }
        let mut past = self.sessions.past.borrow_mut();
        past.push_back(Rc::clone(seat));
        if past.len() > MOST_PAST {
            past.pop_front();
        }
    }

    async fn keep_passing_on(&self, seat: Rc<SessionSlot>, mut arrivals: watch::Receiver<()>) {
        // Ends with the session.
        while arrivals.changed().await.is_ok() {
            let session = seat.session.read().await;
            let Some(session) = &*session else { return };
            self.pass_on(&seat, session);
        }
    }

    /// Sends notifications of the server to the driver.
    pub(crate) fn pass_on(&self, seat: &SessionSlot, session: &Session) {
        let mut position = seat.position.get();
        let news = session.notifications_since(&mut position);
        seat.position.set(position);
        for notification in news {
            let frame = notification.frame;
            if let Some(progressed) = seat.progressed(&notification) {
                self.outlet.send(envelope::notification("session/progress", &progressed));
            }
            if seat.pushes_notifications {
                let params = notification.params.map(|params| seat.redaction.value(params));
                let notified = Notified { session: seat.name.clone(), method: notification.method, params, frame };
                self.outlet.send(envelope::notification("session/notification", &notified));
            }
        }
        if let Some(reason) = session.closed_because()
            && !seat.closing.initialized()
            && !seat.has_ended.replace(true)
        {
            let ended =
                Ended { session: seat.name.clone(), reason: seat.tap.redacted(reason.to_string()), exit: session.exit().map(exit_status) };
            self.outlet.send(envelope::notification("session/ended", &ended));
        }
    }
}

impl SessionSlot {
    /// The session, if it is open and not about to be closed. Not to be held for long: who opens or closes it waits.
    pub(crate) fn open_session(&self) -> Option<RwLockReadGuard<'_, Session>> {
        RwLockReadGuard::try_map(self.session.try_read().ok()?, Option::as_ref).ok()
    }

    /// What its server sent and should not have, so far.
    pub(crate) async fn faults(&self) -> Vec<Diagnostic> {
        if let Some(session) = &*self.session.read().await {
            // What is on its way is a fault only if nothing follows.
            let faults = session.faults().into_iter().filter(|fault| !matches!(fault.kind, ViolationKind::UnfinishedLine)).collect();
            self.judge(&self.spoken(session), faults, JudgedUntil::Now);
        }
        self.wire_faults.told()
    }

    fn judge(&self, spoken: &Spoken, faults: Vec<Fault>, until: JudgedUntil) {
        self.wire_faults.judge(&self.tap, spoken, faults, until);
    }

    /// From now on progress with this token is passed on as that of a request of the driver.
    pub(crate) fn expect_progress(&self, token: &str, request: &Value) {
        self.progress.borrow_mut().insert(token.to_owned(), request.clone());
    }

    pub(crate) fn forget_progress(&self, token: &str) {
        self.progress.borrow_mut().remove(token);
    }

    fn progressed(&self, notification: &mcproof_client::Notification) -> Option<Progressed> {
        if notification.method != methods::notifications::PROGRESS {
            return None;
        }
        let params = notification.params.as_ref()?;
        let id = self.progress.borrow().get(params.get("progressToken")?.as_str()?)?.clone();
        let member = |name: &str| params.get(name).cloned().map(|value| self.redaction.value(value));
        Some(Progressed {
            session: self.name.clone(),
            id,
            progress: member("progress"),
            total: member("total"),
            message: member("message"),
            frame: notification.frame,
        })
    }

    fn spoken(&self, session: &Session) -> Spoken {
        let handshake = session.handshake();
        Spoken { name: self.name.clone(), transport: handshake.transport.to_string(), revision: handshake.protocol_version.clone() }
    }
}

pub(crate) fn closed(report: &ShutdownReport, faults: Vec<Diagnostic>) -> Closed {
    Closed { exit: report.exit.map(exit_status), forced: report.ignored_end_of_input, left_behind: report.left_behind.clone(), faults }
}

fn exit_status(exit: Exit) -> ExitStatus {
    ExitStatus { code: exit.code, signal: exit.signal }
}

/// The process that a transcript began with.
pub(crate) fn process_id(tap: &Tap) -> Option<u32> {
    let spawned = |frame: &Frame| match frame.body {
        FrameBody::Spawned { pid, .. } => Some(pid),
        _ => None,
    };
    tap.transcript().frames.iter().rev().find_map(spawned)
}

fn opened(seat: &SessionSlot, session: &Session, elapsed: Duration) -> Opened {
    let (handshake, redaction) = (session.handshake(), &seat.redaction);
    Opened {
        session: seat.name.clone(),
        era: handshake.era.to_string(),
        transport: handshake.transport.to_string(),
        protocol_version: handshake.protocol_version.clone(),
        server_info: handshake.server_info.clone().map(|server| redaction.value(server)),
        capabilities: redaction.value(handshake.capabilities.clone()),
        instructions: handshake.instructions.clone().map(|text| redaction.text(text)),
        result: redaction.value(handshake.result.clone()),
        url: session.url().map(ToString::to_string),
        pid: process_id(&seat.tap),
        elapsed_ms: milliseconds(elapsed),
    }
}

/// With three digits behind the point.
pub(crate) fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
