//! Where the answers of a mock come from, and what there is to say when there is none. Knows messages, no sockets.

use super::recording::{Outcome, TimedStep};
use mcproof_protocol::Era;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

/// Something that knows what a server says.
pub trait Answers: Send + Sync {
    /// The eras in which it was recorded or written.
    fn eras(&self) -> Vec<Era>;

    /// What the server says about itself to a client with these `initialize` params, or with this `_meta`.
    fn about(&self, state: &mut SessionState, era: Era, client: &Value) -> ServerFacts;

    /// What happens for a request. The state is the session's.
    ///
    /// # Errors
    /// Nothing is known about such a request.
    fn answer(&self, state: &mut SessionState, era: Era, method: &str, params: &Value) -> Result<Script, Miss>;

    /// What the server says after a notification.
    fn noted(&self, state: &mut SessionState, method: &str) -> Vec<TimedStep>;

    /// A client responds in the way of another recording than the one that it was answered from, and goes on with that one.
    fn go_on(&self, _state: &mut SessionState, _script: &Script) {}

    /// What is declared about each tool, for the headers that mirror its arguments.
    fn tool(&self, name: &str) -> Option<Value>;
}

/// What a mock remembers of one client.
#[derive(Clone, Debug, Default)]
pub struct SessionState {
    /// Which of the recorded sessions it plays.
    pub chosen: Option<usize>,
    /// How often each request was made.
    pub counts: HashMap<String, usize>,
    /// Recorded requests whose answers it got, by their keys: which time it was, the session and the place in it.
    pub given: Vec<(String, usize, (usize, usize))>,
    /// What may explain a response, for people. Whoever asked for it takes them out.
    pub notes: Vec<String>,
    /// The state of a scenario.
    pub name: Option<String>,
}

/// What a server says about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerFacts {
    pub server: Value,
    pub capabilities: Map<String, Value>,
    pub instructions: Option<String>,
    /// Of `initialize`, where it was recorded.
    pub legacy_version: Option<String>,
    /// That of `initialize` whatever the client offers; without one, any client of the legacy era is served.
    pub pinned_version: Option<String>,
    /// Other members of the result.
    pub more: Map<String, Value>,
}

/// What happens for a request, from first to last.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    pub steps: Vec<TimedStep>,
    pub outcome: Outcome,
    pub delay: Duration,
    pub after: Vec<TimedStep>,
    /// Other recordings of the same request, for a client that responds to questions in another way.
    pub alternatives: Vec<Self>,
    /// In which it was recorded; results are adapted for another one.
    pub era: Option<Era>,
    /// Where it was recorded: the session, and the place in it.
    pub place: Option<(usize, usize)>,
    /// Requests that were sent later, and answered before it.
    pub overtaken_by: Vec<(usize, usize)>,
}

impl Script {
    pub fn of(outcome: Outcome) -> Self {
        Self {
            steps: Vec::new(),
            outcome,
            delay: Duration::ZERO,
            after: Vec::new(),
            alternatives: Vec::new(),
            era: None,
            place: None,
            overtaken_by: Vec::new(),
        }
    }

    pub fn result(result: Value) -> Self {
        Self::of(Outcome::Result(result))
    }

    pub fn error(code: i64, message: impl Into<String>) -> Self {
        Self::of(Outcome::Error { error: json!({ "code": code, "message": message.into() }), status: None })
    }
}

/// A request for which nothing was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Miss {
    pub method: String,
    /// The name of the tool or prompt, or the URI.
    pub subject: Option<String>,
    pub reason: MissReason,
}

#[derive(Clone, Debug, PartialEq)]
pub enum MissReason {
    /// There is no request with this method. A server that does not declare the feature says the same.
    UnknownMethod { known: Vec<String> },
    /// Another request with this method is nearest.
    Different(Box<Nearest>),
    /// Nothing of this name is in the contract.
    UnknownName { near: Option<String> },
    /// No value is found that the output schema of the tool accepts.
    NoValue,
    /// No written answer fits; how the nearest one differs.
    Unwritten { nearest: Option<String> },
    /// It was recorded that often, and not once more.
    Exhausted { recorded: usize },
    /// It is in another session of the recording than the one that this client plays, with this number.
    OtherSession { request: u64 },
    /// The server asked something here that this client does not declare to answer.
    CannotAsk { question: String },
    /// The client responded to a question in a way that was not recorded.
    OtherResponse { question: String },
}

/// The recorded request that is most like one that was received.
#[derive(Clone, Debug, PartialEq)]
pub struct Nearest {
    /// That of the recorded request.
    pub number: u64,
    pub subject: Option<String>,
    pub pointer: String,
    pub recorded: Option<Value>,
    pub received: Option<Value>,
    /// Further places that differ.
    pub more: usize,
}

impl Miss {
    pub fn new(method: &str, params: &Value, reason: MissReason) -> Self {
        Self { method: method.to_owned(), subject: subject(params), reason }
    }

    /// For programs, beside the message of the error.
    pub fn data(&self) -> Value {
        match &self.reason {
            MissReason::UnknownMethod { known } => json!({ "recorded": known }),
            MissReason::Different(nearest) => json!({
                "nearest": nearest.number,
                "pointer": nearest.pointer,
                "recorded": shown(nearest.recorded.as_ref()),
                "received": shown(nearest.received.as_ref()),
            }),
            MissReason::UnknownName { near } => json!({ "nearest": near }),
            MissReason::NoValue => json!({}),
            MissReason::Unwritten { nearest } => json!({ "nearest": nearest }),
            MissReason::Exhausted { recorded } => json!({ "recorded": recorded }),
            MissReason::OtherSession { request } => json!({ "nearest": request }),
            MissReason::CannotAsk { question } | MissReason::OtherResponse { question } => json!({ "question": question }),
        }
    }
}

impl fmt::Display for Miss {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let request = match &self.subject {
            Some(subject) => format!("{} {}", self.method, cut(subject)),
            None => cut(&self.method),
        };
        match &self.reason {
            MissReason::UnknownMethod { known } if known.is_empty() => write!(formatter, "`{request}` was not recorded"),
            MissReason::UnknownMethod { known } => {
                write!(formatter, "`{request}` was not recorded; recorded methods are {}", known.join(", "))
            }
            MissReason::Different(nearest) => {
                write!(formatter, "`{request}` was not recorded with these parameters: the nearest is request {}", nearest.number)?;
                match &nearest.subject {
                    Some(subject) if Some(subject) != self.subject.as_ref() => {
                        write!(formatter, ", `{} {}`, which", self.method, cut(subject))?
                    }
                    _ => write!(formatter, ", which")?,
                }
                write!(
                    formatter,
                    " differs at {} (recorded {}, received {})",
                    nearest.pointer,
                    shown(nearest.recorded.as_ref()),
                    shown(nearest.received.as_ref())
                )?;
                match nearest.more {
                    0 => Ok(()),
                    1 => write!(formatter, " and at one more place"),
                    more => write!(formatter, " and at {more} more places"),
                }
            }
            MissReason::UnknownName { near: None } => write!(formatter, "`{request}` is not in the contract"),
            MissReason::UnknownName { near: Some(near) } => {
                write!(formatter, "`{request}` is not in the contract; the nearest name is `{near}`")
            }
            MissReason::NoValue => {
                write!(formatter, "`{request}` has no result: no value was found that the output schema of the tool accepts")
            }
            MissReason::Unwritten { nearest: None } => write!(formatter, "`{request}` has no answer in the mock"),
            MissReason::Unwritten { nearest: Some(nearest) } => write!(formatter, "`{request}` has no answer in the mock: {nearest}"),
            MissReason::Exhausted { recorded: 1 } => write!(formatter, "`{request}` was recorded once, and is sent once more"),
            MissReason::Exhausted { recorded } => write!(formatter, "`{request}` was recorded {recorded} times, and is sent once more"),
            MissReason::OtherSession { request: number } => {
                write!(
                    formatter,
                    "`{request}` was not recorded in the session that this client plays: it is request {number}, of another session"
                )
            }
            MissReason::CannotAsk { question } => {
                write!(formatter, "the server sends `{question}` during `{request}`, and this client does not declare to support it")
            }
            MissReason::OtherResponse { question } => {
                write!(formatter, "the client responds to `{question}` during `{request}` in a way that was not recorded")
            }
        }
    }
}

/// The name of a tool or prompt, or a URI.
pub(crate) fn subject(params: &Value) -> Option<String> {
    ["name", "uri", "taskId"].iter().find_map(|key| params.get(*key)?.as_str()).map(str::to_owned)
}

/// Characters of a value in a message.
const MOST_SHOWN: usize = 120;

fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else { return "nothing".into() };
    cut(&value.to_string())
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
