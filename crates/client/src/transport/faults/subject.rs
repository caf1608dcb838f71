//! What a message on its way is about: enough to choose it and to name it. Knows methods, not transports.

use super::{FaultDirection, FaultRule};
use crate::jsonrpc::{self, Message, RequestId};
use mcproof_protocol::methods;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::fmt;

/// A message, as a rule sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A request of ours.
    Request { id: RequestId, about: About },
    /// A response to a request of ours.
    Answer { id: RequestId, about: About },
    /// A request of the server, our answer to one, or a notification of either side.
    Other { what: &'static str, about: About },
    /// No message, or a response to nothing.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    method: String,
    /// Of `tools/call`.
    tool: Option<String>,
}

/// The requests whose answers may still come.
#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    requests: HashMap<RequestId, About>,
    disturbed: HashSet<RequestId>,
}

/// Requests that are remembered; far more than are ever in flight.
const MOST_ASKED: usize = 10_000;

const HANDSHAKE: [&str; 3] = [methods::INITIALIZE, methods::notifications::INITIALIZED, methods::SERVER_DISCOVER];

impl Subject {
    pub(super) fn is_named_by(&self, rule: &FaultRule) -> bool {
        let (Self::Request { about, .. } | Self::Answer { about, .. } | Self::Other { about, .. }) = self else { return false };
        let by_method = match &rule.method {
            Some(method) => *method == about.method,
            None => !HANDSHAKE.contains(&about.method.as_str()),
        };
        by_method && rule.tool.as_ref().is_none_or(|tool| about.tool.as_ref() == Some(tool))
    }

    /// The response to this request, where its own bytes do not tell.
    pub fn answer(&self) -> Self {
        match self {
            Self::Request { id, about } => Self::Answer { id: id.clone(), about: about.clone() },
            _ => Self::Unknown,
        }
    }

    fn id(&self) -> Option<&RequestId> {
        match self {
            Self::Request { id, .. } | Self::Answer { id, .. } => Some(id),
            Self::Other { .. } | Self::Unknown => None,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request { id, about } => write!(formatter, "the request {about} ({id})"),
            Self::Answer { id, about } => write!(formatter, "the response to {about} (request {id})"),
            Self::Other { what, about } => write!(formatter, "{what} {about}"),
            Self::Unknown => formatter.write_str("data that is not a message"),
        }
    }
}

impl fmt::Display for About {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tool {
            Some(tool) => write!(formatter, "`{} {tool}`", self.method),
            None => write!(formatter, "`{}`", self.method),
        }
    }
}

impl OpenRequests {
    pub(super) fn read(&mut self, toward: FaultDirection, bytes: &[u8]) -> Subject {
        let Ok(message) = jsonrpc::parse(bytes) else { return Subject::Unknown };
        match (message, toward) {
            (Message::Request { id, method, params }, FaultDirection::Server) => {
                let tool = params.as_ref().filter(|_| method == methods::TOOLS_CALL).and_then(|params| params.get("name"));
                let tool = tool.and_then(Value::as_str).map(str::to_owned);
                let about = About { method, tool };
                if self.requests.len() >= MOST_ASKED {
                    self.requests.clear();
                    self.disturbed.clear();
                }
                self.requests.insert(id.clone(), about.clone());
                // The ids of a new connection begin anew.
                self.disturbed.remove(&id);
                Subject::Request { id, about }
            }
            (Message::Response { id: Some(id), .. }, FaultDirection::Client) => match self.requests.get(&id) {
                Some(about) => Subject::Answer { id, about: about.clone() },
                None => Subject::Unknown,
            },
            (Message::Request { method, .. }, FaultDirection::Client) => {
                Subject::Other { what: "the server's request", about: About { method, tool: None } }
            }
            (Message::Notification { method, .. }, _) => Subject::Other { what: "the notification", about: About { method, tool: None } },
            (Message::Response { .. }, _) => Subject::Unknown,
        }
    }

    pub(super) fn disturb(&mut self, subject: &Subject) {
        self.disturbed.extend(subject.id().cloned());
    }

    pub(super) fn is_disturbed(&self, subject: &Subject) -> bool {
        subject.id().is_some_and(|id| self.disturbed.contains(id))
    }
}
