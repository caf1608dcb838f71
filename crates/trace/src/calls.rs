//! Calls: requests with their responses, notifications, and HTTP requests without a message, derived from frames as they come.
//! Knows JSON-RPC and the methods of MCP; not how a call is shown.

mod facts;
mod message;
mod tracker;

pub use facts::SessionFacts;
pub use message::{Message, messages};
pub use tracker::{CallTracker, Update};

use crate::manifest::SessionKey;
use mcproof_record::{Direction, ExchangeId, FrameId, Raw, read_message};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// Number of a call in its trace, counted from 1 in the order in which calls began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallKey(pub u64);

impl fmt::Display for CallKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallKind {
    /// A JSON-RPC request, of either side.
    Request,
    /// A JSON-RPC notification, of either side.
    Notification,
    /// An HTTP request that carries no JSON-RPC message, such as the GET of a stream.
    Http,
    /// A response to no open request: a second one, a late one, or one with an unknown id.
    Unmatched,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallStatus {
    Pending,
    Ok,
    /// A result that asks the client for input, after which it sends the request again.
    InputRequired,
    /// A result with `isError`.
    ToolError,
    /// A JSON-RPC error.
    RpcError,
    /// An HTTP status of 400 or above, without a JSON-RPC error.
    HttpError,
    /// The side that sent the request canceled it, and no response came before.
    Canceled,
    /// The connection, the process or the trace ended first.
    NoResponse,
}

impl CallStatus {
    pub const ALL: [Self; 8] =
        [Self::Pending, Self::Ok, Self::InputRequired, Self::ToolError, Self::RpcError, Self::HttpError, Self::Canceled, Self::NoResponse];

    /// As in filters and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Ok => "ok",
            Self::InputRequired => "input-required",
            Self::ToolError => "tool-error",
            Self::RpcError => "rpc-error",
            Self::HttpError => "http-error",
            Self::Canceled => "canceled",
            Self::NoResponse => "no-response",
        }
    }

    /// Whether something went wrong.
    pub fn is_error(self) -> bool {
        matches!(self, Self::ToolError | Self::RpcError | Self::HttpError | Self::NoResponse)
    }
}

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    pub key: CallKey,
    pub session: SessionKey,
    pub kind: CallKind,
    /// Who began it: `to-server` for what the client asks.
    pub direction: Direction,
    /// The method of the message; of HTTP requests without one, that of HTTP.
    pub method: String,
    /// The name of the tool or prompt, the URI of the resource, or what else the method is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The JSON-RPC id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    /// Since the session began.
    #[serde(with = "crate::line::micros", rename = "start_us")]
    pub start: Duration,
    /// When the response came, or the wait for it was over.
    #[serde(default, with = "optional_micros", rename = "end_us", skip_serializing_if = "Option::is_none")]
    pub end: Option<Duration>,
    pub status: CallStatus,
    /// The code of a JSON-RPC error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// What went wrong, in the words of whoever said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpCall>,
    /// The call during which it happened: progress, logs and requests of the server belong to one of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<CallKey>,
    /// The call that asked for the input which this one brings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<CallKey>,
    /// In the order in which they were recorded.
    pub frames: Vec<FrameId>,
    /// The message with which it began; the body of an HTTP request without one.
    pub request: Raw,
    /// The message that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Raw>,
}

/// The HTTP request that carried a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpCall {
    pub exchange: ExchangeId,
    pub method: String,
    pub url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

impl Call {
    pub fn duration(&self) -> Option<Duration> {
        self.end.map(|end| end.saturating_sub(self.start))
    }

    /// The message with which it began, if it is one.
    pub fn request_json(&self) -> Option<Value> {
        read_message(self.request.as_bytes()).ok()
    }

    pub fn response_json(&self) -> Option<Value> {
        read_message(self.response.as_ref()?.as_bytes()).ok()
    }

    /// The arguments of a tool or prompt, else the params without what differs from request to request (`_meta`, cursors stay).
    pub fn arguments(&self) -> Value {
        let mut params = self.request_json().and_then(|mut request| request.get_mut("params").map(Value::take)).unwrap_or(Value::Null);
        if matches!(self.method.as_str(), "tools/call" | "prompts/get") {
            return params.get_mut("arguments").map_or(Value::Null, Value::take);
        }
        if let Some(members) = params.as_object_mut() {
            members.shift_remove("_meta");
        }
        params
    }
}

mod optional_micros {
    use crate::line::micros;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    #[expect(clippy::ref_option, reason = "serde passes the field by reference")]
    pub(super) fn serialize<S: Serializer>(value: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => micros::serialize(value, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_micros))
    }
}
