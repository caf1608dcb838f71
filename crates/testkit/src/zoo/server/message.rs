//! JSON-RPC messages as the server reads and writes them. Knows no method.

use super::Server;
use super::session::Session;
use mcproof_protocol::Era;
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) const PARSE_ERROR: i64 = -32700;
pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;

/// A channel for messages to the client.
pub(crate) trait Outlet: Send + Sync {
    /// Sends a message. False once the client has disconnected.
    fn send(&self, message: &Value) -> bool;

    /// Whether the client still waits for messages on this channel.
    fn is_open(&self) -> bool {
        true
    }
}

/// A message of the client, with everything that the response depends on.
pub(crate) struct Received {
    pub(crate) server: Arc<Server>,
    pub(crate) session: Arc<Session>,
    pub(crate) message: Value,
    pub(crate) era: Era,
    /// The revision; empty until it is negotiated.
    pub(crate) version: String,
}

impl Received {
    /// The method; empty if this is a response.
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

    /// Sends a message about this one, changed by the deviation.
    pub(crate) fn send(&self, message: Value, outlet: &dyn Outlet) -> bool {
        let mut received = true;
        for message in self.server.deviation.outgoing(self, message) {
            received = outlet.send(&message);
        }
        self.server.deviation.message_sent();
        received
    }
}

/// The error that a request gets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(crate) fn with(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// The error response; without an id if none could be read.
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
pub(crate) enum MessageKind {
    Request,
    Notification,
    Response,
}

/// The kind of a message.
///
/// # Errors
/// It is not a JSON-RPC message.
pub(crate) fn kind(message: &Value) -> Result<MessageKind, RpcError> {
    let invalid = |what: &str| Err(RpcError::new(INVALID_REQUEST, format!("Invalid request: {what}")));
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

/// Whether this is a response; a batch of responses counts.
pub(crate) fn is_response(message: &Value) -> bool {
    message.is_array() || (message.get("method").is_none() && (message.get("result").is_some() || message.get("error").is_some()))
}
