//! Why no session came about, in sentences.

use super::{CallFailure, Fault};
use crate::auth::reason_of;
use crate::jsonrpc::RpcError;
use crate::transport::{AddressFailure, Closed, Exit, HttpHead, SseFailure, StartFailure, Unanswered};
use mcproof_record::duration::readable;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Why no session came about.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ConnectFailure {
    #[error(transparent)]
    Start(#[from] StartFailure),
    #[error(transparent)]
    Address(#[from] AddressFailure),
    #[error("{exit}, before {stage}")]
    Exited { exit: Exit, stage: String },
    #[error("{}", not_listening(.url, *.after, .elsewhere))]
    NotListening { url: String, after: Duration, elsewhere: Vec<SocketAddr> },
    #[error("another process already listens at {url}: stop it, or use another port")]
    AddressTaken { url: String },
    /// Another process was faster at the port of the server that was started.
    #[error("{owner} listens at {url}, not the server that was started: use another port, or try again{}", .failure.as_ref().map(|failure| format!("; {failure}")).unwrap_or_default())]
    OtherListens {
        url: String,
        owner: String,
        /// What it said; nothing where it was not asked.
        failure: Option<Box<Self>>,
    },
    /// Something else, or nothing, is at the path of the URL.
    #[error("{failure}; an MCP server responds at {url}")]
    WrongPath { url: String, failure: Box<Self> },
    #[error("the server printed no line with its port within {}", readable(*.after))]
    NotLocated { after: Duration },
    #[error("`{method}`: {failure}")]
    Unanswered {
        method: &'static str,
        failure: CallFailure,
        /// What came instead.
        faults: Vec<Fault>,
    },
    #[error("server {}: HTTP {} for `{method}`{}", if is_refusal(.head) { "refuses access" } else { "requires authorization" }, .head.status, reason_of(.head))]
    Unauthorized { method: &'static str, head: Arc<HttpHead> },
    #[error("server refused `{method}`: {error}")]
    Refused { method: &'static str, error: RpcError },
    #[error("the response to `{method}` {reason}")]
    BadResult { method: &'static str, reason: String },
    #[error("server speaks revision {found}, not the requested {wanted}")]
    OtherVersion { wanted: String, found: String },
    #[error("server negotiated {found:?}, which is not a known revision")]
    UnknownVersion { found: String },
    #[error("server supports no revision that mcproof knows, only {}", .supported.join(", "))]
    NoCommonVersion { supported: Vec<String> },
    #[error("HTTP+SSE: {0}")]
    Sse(#[from] SseFailure),
    #[error("HTTP+SSE belongs to the legacy era, but the modern era was requested")]
    NoModernSse,
    #[error("no HTTP+SSE stream with an `endpoint` event within {}{}", readable(*.after), .faults.first().map(|fault| format!("; the server sent {}", fault.kind)).unwrap_or_default())]
    SseTimedOut {
        after: Duration,
        /// What came instead.
        faults: Vec<Fault>,
    },
}

impl ConnectFailure {
    /// The head of a response that refuses access, for a reason that no token changes.
    pub fn access_refusal(&self) -> Option<&HttpHead> {
        match self {
            Self::Unauthorized { head, .. } => Some(&**head).filter(|head| is_refusal(head)),
            _ => None,
        }
    }

    /// Whether a limit on what a peer may send was hit: a process that ends after that does so because it is not read any further.
    pub(super) fn is_of_limit(&self) -> bool {
        let Self::Unanswered { failure, .. } = self else { return false };
        match failure {
            CallFailure::Closed(Closed::TooLong { .. }) => true,
            CallFailure::Closed(Closed::StreamBroken(broken))
            | CallFailure::Unanswered(Unanswered::Unreachable(broken) | Unanswered::Response { broken: Some(broken), .. }) => {
                broken.bound.is_some()
            }
            _ => false,
        }
    }
}

/// Whether a status is 403 without a scheme to authorize by, as where a host is not on a list.
fn is_refusal(head: &HttpHead) -> bool {
    head.status == 403 && head.header("www-authenticate").is_none()
}

fn not_listening(url: &str, after: Duration, elsewhere: &[SocketAddr]) -> String {
    let mut text = format!("nothing accepts connections at {url} after {}", readable(after));
    if !elsewhere.is_empty() {
        let list: Vec<String> = elsewhere.iter().map(ToString::to_string).collect();
        text += &format!("; the server listens on {} instead", list.join(" and "));
    }
    text
}
