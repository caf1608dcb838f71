//! The mock itself: decides what happens for each message, and counts what was not recorded. Knows messages, no transport.

use super::answers::{Answers, Miss, MissReason, Script, ServerFacts, SessionState};
use super::session::{Session, is_listen};
use super::{era, matching};
use mcproof_protocol::error_code::{INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND};
use mcproof_protocol::{Era, Revision};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How a mock plays.
#[derive(Clone, Debug, Default)]
pub struct MockOptions {
    /// The eras that are spoken; those of the recording if there are none.
    pub eras: Vec<Era>,
    /// How many times faster than recorded; without it no message waits for longer than a few milliseconds.
    pub speed: Option<f64>,
    /// Whether a response of the client that was not recorded is a miss.
    pub responses: ResponseCheck,
}

/// What becomes of responses to the server's requests that differ from the recorded ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseCheck {
    /// They are told, and the recording goes on.
    #[default]
    Told,
    Miss,
}

/// What happens while a mock runs, for people.
#[derive(Clone, Debug, PartialEq)]
pub enum MockEvent {
    /// Its address.
    Listening(String),
    Miss(Miss),
    /// Something that is no mistake, but may explain one.
    Note(String),
}

type Tell = Box<dyn Fn(MockEvent) + Send + Sync>;

/// A server that answers as it is told.
pub struct Mock {
    answers: Box<dyn Answers>,
    pub(crate) options: MockOptions,
    eras: Vec<Era>,
    /// It was asked for a discovery, and refused or supports no modern revision: its response is known.
    is_discovered: bool,
    tell: Tell,
    misses: AtomicU64,
    paused: Mutex<VecDeque<(String, Paused)>>,
}

/// A request that waits for input of the client, who sends it again (2026-07-28, basic/patterns/mrtr).
#[derive(Clone, Debug)]
pub(crate) struct Paused {
    /// Of the request.
    pub(crate) key: String,
    pub(crate) script: Script,
    /// The question.
    pub(crate) step: usize,
}

/// A request of the client.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) session: Arc<Session>,
    pub(crate) era: Era,
    pub(crate) id: Value,
    pub(crate) method: String,
    pub(crate) params: Value,
}

/// What happens for a request.
#[derive(Debug)]
pub(crate) enum Plan {
    Play {
        script: Script,
        from: usize,
    },
    /// A paused request goes on, with what the client sent.
    Resume {
        paused: Box<Paused>,
        responses: Value,
    },
    Listen {
        honored: Value,
    },
    /// The error object, and the HTTP status that goes with it.
    Refuse {
        error: Value,
        status: Option<u16>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageKind {
    Request,
    Notification,
    Response,
}

/// Requests that wait for input.
const MOST_PAUSED: usize = 1000;
pub(crate) use crate::modern_request::LOG_LEVEL;
use crate::modern_request::{CAPABILITIES, VERSION, check_meta};

impl Mock {
    pub fn new(answers: Box<dyn Answers>, options: MockOptions, tell: impl Fn(MockEvent) + Send + Sync + 'static) -> Arc<Self> {
        let mut eras = if options.eras.is_empty() { answers.eras() } else { options.eras.clone() };
        if eras.is_empty() {
            eras = vec![Era::Legacy, Era::Modern];
        }
        let (misses, paused) = (AtomicU64::new(0), Mutex::default());
        let discovered = || answers.answer(&mut SessionState::default(), Era::Modern, "server/discover", &json!({})).is_ok();
        let is_discovered = options.eras.is_empty() && !eras.contains(&Era::Modern) && discovered();
        Arc::new(Self { answers, options, eras, is_discovered, tell: Box::new(tell), misses, paused })
    }

    /// How many requests were not recorded.
    pub fn misses(&self) -> u64 {
        self.misses.load(Ordering::Relaxed)
    }

    pub fn speaks(&self, era: Era) -> bool {
        self.eras.contains(&era)
    }

    pub(crate) fn tell(&self, event: MockEvent) {
        (self.tell)(event);
    }

    pub(crate) fn note(&self, text: impl Into<String>) {
        self.tell(MockEvent::Note(text.into()));
    }

    /// Counts and tells a miss, and gives the error for the client.
    pub(crate) fn missed(&self, miss: Miss) -> Value {
        self.misses.fetch_add(1, Ordering::Relaxed);
        let code = match miss.reason {
            MissReason::UnknownMethod { .. } => METHOD_NOT_FOUND,
            // The client did nothing wrong.
            MissReason::NoValue => INTERNAL_ERROR,
            _ => INVALID_PARAMS,
        };
        let error = json!({ "code": code, "message": format!("mock: {miss}"), "data": miss.data() });
        self.tell(MockEvent::Miss(miss));
        error
    }

    /// The client at hand goes on with another recording.
    pub(crate) fn go_on(&self, call: &Call, script: &Script) {
        call.session.with_state(|state| self.answers.go_on(state, script));
    }

    pub(crate) fn tool(&self, name: &str) -> Option<Value> {
        self.answers.tool(name)
    }

    /// The era of a message: what it says, or else what is left.
    pub(crate) fn era_of(&self, session: &Session, message: &Value) -> Era {
        let modern = message
            .get("params")
            .is_some_and(|params| params.get("_meta").is_some_and(|meta| meta.get(VERSION).is_some() || meta.get(CAPABILITIES).is_some()));
        match (self.speaks(Era::Modern), self.speaks(Era::Legacy)) {
            (true, false) => Era::Modern,
            (true, true) if modern && session.version().is_none() => Era::Modern,
            (true, true) if message["method"] == "server/discover" => Era::Modern,
            (false, true) if self.is_discovered && message["method"] == "server/discover" && session.version().is_none() => Era::Modern,
            _ => Era::Legacy,
        }
    }

    pub(crate) fn facts(&self, call: &Call) -> ServerFacts {
        let client = match call.era {
            Era::Legacy => call.params.clone(),
            Era::Modern => call.params.get("_meta").cloned().unwrap_or_default(),
        };
        call.session.with_state(|state| self.answers.about(state, call.era, &client))
    }

    /// Decides what happens for a request. What a recording has of it counts as played from here on, so that the order in which
    /// requests come in decides, and not how long they take.
    pub(crate) fn plan(&self, call: &Call) -> Plan {
        match self.checked(call) {
            Ok(plan) => plan,
            Err(refused) => refused,
        }
    }

    fn checked(&self, call: &Call) -> Result<Plan, Plan> {
        match call.era {
            Era::Legacy => self.check_legacy(call)?,
            Era::Modern => check_modern(call)?,
        }
        match (call.era, call.method.as_str()) {
            (Era::Legacy, "initialize") => return self.initialize(call),
            (Era::Legacy, "ping") => return Ok(play(Script::result(json!({})))),
            (Era::Modern, "server/discover") if !self.is_discovered => return Ok(play(Script::result(era::discover(&self.facts(call))))),
            (Era::Modern, method) if is_listen(method) => {
                let filter = call.params.get("notifications").filter(|filter| filter.is_object());
                let filter = filter.ok_or_else(|| refused(INVALID_PARAMS, "`notifications` must be an object"))?;
                return Ok(Plan::Listen { honored: era::honored(filter, &self.facts(call).capabilities) });
            }
            (Era::Modern, _) => {
                if let Some(state) = call.params.get("requestState").and_then(Value::as_str) {
                    return self.resume(call, state);
                }
                if call.session.with_state(|state| state.chosen.is_none()) {
                    self.facts(call);
                }
            }
            (Era::Legacy, _) => {}
        }
        let (answered, notes) = call.session.with_state(|state| {
            let answered = self.answers.answer(state, call.era, &call.method, &call.params);
            (answered, std::mem::take(&mut state.notes))
        });
        notes.into_iter().for_each(|note| self.note(note));
        answered.map(play).or_else(|miss| self.unrecorded(call, miss))
    }

    /// What the specification says about a request that was not recorded, if it says anything; else a miss.
    fn unrecorded(&self, call: &Call, miss: Miss) -> Result<Plan, Plan> {
        let capabilities = self.facts_again(call).capabilities;
        let declared = |feature: &str| match feature {
            "tasks" => capabilities.contains_key("tasks") || capabilities.contains_key("extensions"),
            feature => capabilities.contains_key(feature),
        };
        let feature = era::feature(&call.method);
        if matches!(miss.reason, MissReason::UnknownMethod { .. }) {
            let is_legacy = call.era == Era::Legacy;
            let subscribes = || capabilities.get("resources").is_some_and(|resources| resources["subscribe"] == true);
            match call.method.as_str() {
                "logging/setLevel" if is_legacy && declared("logging") => return Ok(play(Script::result(json!({})))),
                "resources/subscribe" | "resources/unsubscribe" if is_legacy && subscribes() => return Ok(play(Script::result(json!({})))),
                // Nobody expects anything of what was not declared.
                _ if !feature.is_some_and(declared) || (!is_legacy && era::is_removed(&call.method)) => {
                    return Err(refused(METHOD_NOT_FOUND, format!("Method not found: {}", call.method)));
                }
                _ => {}
            }
        }
        Err(Plan::Refuse { error: self.missed(miss), status: None })
    }

    /// The facts without choosing a session anew.
    pub(crate) fn facts_again(&self, call: &Call) -> ServerFacts {
        let mut state = call.session.with_state(|state| state.clone());
        let client = call.params.get("_meta").cloned().unwrap_or_default();
        self.answers.about(&mut state, call.era, &client)
    }

    fn check_legacy(&self, call: &Call) -> Result<(), Plan> {
        if !self.speaks(Era::Legacy) {
            return Err(refused(METHOD_NOT_FOUND, "this server has no `initialize`"));
        }
        match (call.method.as_str(), call.session.version()) {
            ("initialize", Some(_)) => Err(refused(INVALID_REQUEST, "the session is initialized already")),
            ("initialize" | "ping", _) | (_, Some(_)) => Ok(()),
            ("server/discover", None) => Err(refused(METHOD_NOT_FOUND, "Method not found: server/discover")),
            (_, None) => Err(refused(INVALID_REQUEST, "the first request must be `initialize`")),
        }
    }

    fn initialize(&self, call: &Call) -> Result<Plan, Plan> {
        let asked = call.params.get("protocolVersion").and_then(Value::as_str);
        let asked = asked.ok_or_else(|| refused(INVALID_PARAMS, "`protocolVersion` must be a string"))?;
        let facts = self.facts(call);
        let recorded = facts.legacy_version.clone().unwrap_or_else(|| Revision::LATEST_LEGACY.as_str().to_owned());
        // Any client of the era can use a mock, whatever revision was recorded.
        let is_known = Revision::LEGACY.iter().any(|revision| revision.as_str() == asked);
        let version = facts.pinned_version.clone().unwrap_or_else(|| if is_known { asked.to_owned() } else { recorded });
        call.session.agree(&version, call.params.get("capabilities").cloned().unwrap_or_default());
        Ok(play(Script { era: Some(Era::Legacy), ..Script::result(era::initialize(&facts, &version)) }))
    }

    fn resume(&self, call: &Call, state: &str) -> Result<Plan, Plan> {
        let key = matching::key(&call.method, &call.params, &matching::Ignored::default());
        let mut paused = self.paused();
        let place = paused.iter().position(|(known, paused)| known == state && paused.key == key);
        let place = place.ok_or_else(|| refused(INVALID_PARAMS, "unknown `requestState`"))?;
        let (_, paused) = paused.remove(place).expect("the place was just found");
        Ok(Plan::Resume { paused: Box::new(paused), responses: call.params.get("inputResponses").cloned().unwrap_or_else(|| json!({})) })
    }

    /// Keeps a request until its client sends it again; gives the state by which it is known.
    pub(crate) fn pause(&self, call: &Call, script: Script, step: usize) -> String {
        let state = uuid::Uuid::new_v4().to_string();
        let key = matching::key(&call.method, &call.params, &matching::Ignored::default());
        let mut paused = self.paused();
        if paused.len() >= MOST_PAUSED {
            paused.pop_front();
        }
        paused.push_back((state.clone(), Paused { key, script, step }));
        state
    }

    fn paused(&self) -> MutexGuard<'_, VecDeque<(String, Paused)>> {
        self.paused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the server says after a notification of the client.
    pub(crate) fn noted(&self, session: &Session, message: &Value) -> Vec<super::recording::TimedStep> {
        let method = message["method"].as_str().unwrap_or_default();
        if method == "notifications/cancelled" {
            session.cancel(&message["params"]["requestId"]);
        }
        session.with_state(|state| self.answers.noted(state, method))
    }
}

impl Call {
    /// What the client declares to support.
    pub(crate) fn capabilities(&self) -> Value {
        match self.era {
            Era::Legacy => self.session.capabilities(),
            Era::Modern => self.meta(CAPABILITIES).cloned().unwrap_or_default(),
        }
    }

    pub(crate) fn meta(&self, key: &str) -> Option<&Value> {
        self.params.get("_meta").and_then(|meta| meta.get(key))
    }
}

fn play(script: Script) -> Plan {
    Plan::Play { script, from: 0 }
}

fn refused(code: i64, message: impl Into<String>) -> Plan {
    Plan::Refuse { error: json!({ "code": code, "message": message.into() }), status: None }
}

/// What every request of the era has to carry (2026-07-28, basic#_meta).
fn check_modern(call: &Call) -> Result<(), Plan> {
    check_meta(&call.method, &call.params).map_err(|error| Plan::Refuse { error, status: Some(400) })
}

/// The kind of a message.
///
/// # Errors
/// It is not a JSON-RPC message; why.
pub(crate) fn kind(message: &Value) -> Result<MessageKind, String> {
    let invalid = |what: &str| Err(format!("Invalid request: {what}"));
    if message["jsonrpc"] != "2.0" {
        return invalid("`jsonrpc` must be \"2.0\"");
    }
    let id = message.get("id");
    if id.is_some_and(|id| !is_id(id)) {
        return invalid("`id` must be a string or an integer");
    }
    if message.get("method").is_none() && (message.get("result").is_some() || message.get("error").is_some()) {
        return Ok(MessageKind::Response);
    }
    if !message["method"].is_string() {
        return invalid("`method` must be a string");
    }
    if message.get("params").is_some_and(|params| !params.is_object()) {
        return invalid("`params` must be an object");
    }
    Ok(if id.is_some() { MessageKind::Request } else { MessageKind::Notification })
}

/// The id of a request that could be read.
pub(crate) fn readable_id(message: &Value) -> Value {
    message.get("id").filter(|id| is_id(id)).cloned().unwrap_or(Value::Null)
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}

pub(crate) fn error_message(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}
