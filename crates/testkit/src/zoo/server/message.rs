//! JSON-RPC messages as the server reads and writes them. Knows no method.

use super::Server;
use super::session::Session;
use crate::zoo::Era;
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) const PARSE_ERROR: i64 = -32700;
pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;

/// Where messages to the client go.
pub(crate) trait Outlet: Send + Sync {
    /// Whether the client can still be there.
    fn say(&self, message: &Value) -> bool;

    /// Whether the client still waits for what comes here.
    fn is_open(&self) -> bool {
        true
    }
}

/// A message of the client, with all that an answer depends on.
pub(crate) struct Heard {
    pub(crate) server: Arc<Server>,
    pub(crate) session: Arc<Session>,
    pub(crate) message: Value,
    pub(crate) era: Era,
    /// The revision; empty as long as none was agreed on.
    pub(crate) version: String,
}

impl Heard {
    /// The method; empty if this is an answer.
    pub(crate) fn method(&self) -> &str {
        self.message["method"].as_str().unwrap_or_default()
    }

    pub(crate) fn id(&self) -> &Value {
        &self.message["id"]
    }

    pub(crate) fn params(&self) -> &Value {
        &self.message["params"]
    }

    /// `params.name`; empty if there is none.
    pub(crate) fn name(&self) -> &str {
        self.params()["name"].as_str().unwrap_or_default()
    }

    /// Whether this is a call of that tool.
    pub(crate) fn calls(&self, tool: &str) -> bool {
        self.method() == "tools/call" && self.name() == tool
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.era == Era::Modern
    }

    /// Says something about this message, as the twist wants it said.
    pub(crate) fn say(&self, message: Value, outlet: &dyn Outlet) -> bool {
        let mut heard = true;
        for message in self.server.twist.said(self, message) {
            heard = outlet.say(&message);
        }
        self.server.twist.spoken();
        heard
    }
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl Fault {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(crate) fn with(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// The answer that says so; without an id if none could be read.
    pub(crate) fn answer(&self, id: Option<&Value>) -> Value {
        let mut answer = json!({ "jsonrpc": "2.0" });
        if let Some(id) = id {
            answer["id"] = id.clone();
        }
        answer["error"] = json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            answer["error"]["data"] = data.clone();
        }
        answer
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Request,
    Notification,
    Answer,
}

/// What kind of message this is.
///
/// # Errors
/// It is none.
pub(crate) fn kind(message: &Value) -> Result<Kind, Fault> {
    let invalid = |what: &str| Err(Fault::new(INVALID_REQUEST, format!("Invalid request: {what}")));
    if message["jsonrpc"] != "2.0" {
        return invalid("`jsonrpc` must be \"2.0\"");
    }
    let id = message.get("id");
    if id.is_some_and(|id| !is_id(id)) {
        return invalid("`id` must be a string or an integer");
    }
    if message.get("method").is_none() && (message.get("result").is_some() || message.get("error").is_some()) {
        return Ok(Kind::Answer);
    }
    if !message["method"].is_string() {
        return invalid("`method` must be a string");
    }
    if message.get("params").is_some_and(|params| !params.is_object()) {
        return invalid("`params` must be an object");
    }
    Ok(if id.is_some() { Kind::Request } else { Kind::Notification })
}

/// The id of a request that could be read.
pub(crate) fn readable_id(message: &Value) -> Option<&Value> {
    message.get("id").filter(|id| is_id(id))
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}

pub(crate) fn result(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

pub(crate) fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// Whether the server answers with this; a batch of answers counts.
pub(crate) fn is_answer(message: &Value) -> bool {
    message.is_array() || (message.get("method").is_none() && (message.get("result").is_some() || message.get("error").is_some()))
}
