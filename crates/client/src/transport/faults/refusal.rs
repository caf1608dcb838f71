//! What a server refuses because of what came before: sessions that it has forgotten, tokens that have expired.

use super::{FaultInjector, InjectedFault};
use hyper::Request;
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use std::collections::HashSet;
use std::time::Duration;

/// A response in place of the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: u16,
    retry_after: Option<Duration>,
}

/// Credentials and sessions that are refused from now on.
#[derive(Debug, Default)]
pub(super) struct Revoked {
    sessions: HashSet<String>,
    tokens: HashSet<Vec<u8>>,
}

/// Sessions, and tokens, that are remembered.
const MOST_REVOKED: usize = 10_000;

impl Refusal {
    /// What the response has besides its status.
    pub fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        let mut headers = Vec::new();
        if let Some(after) = self.retry_after {
            // Whole seconds, and never earlier than requested (RFC 9110, 10.2.3).
            let seconds = u64::try_from(after.as_millis().div_ceil(1000)).unwrap_or(u64::MAX);
            headers.push((RETRY_AFTER, HeaderValue::from(seconds)));
        }
        if self.status == 401 {
            // RFC 6750, 3.1.
            headers.push((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer error=\"invalid_token\"")));
        }
        headers
    }
}

/// The session that a request belongs to: the header of Streamable HTTP, or the parameter that servers of HTTP+SSE have.
fn session_of<B>(request: &Request<B>) -> Option<String> {
    if let Some(session) = request.headers().get("mcp-session-id") {
        return Some(String::from_utf8_lossy(session.as_bytes()).into_owned());
    }
    request.uri().query().filter(|query| query.to_ascii_lowercase().contains("session")).map(str::to_owned)
}

fn token_of<B>(request: &Request<B>) -> Vec<u8> {
    request.headers().get(AUTHORIZATION).map(|token| token.as_bytes().to_vec()).unwrap_or_default()
}

impl FaultInjector {
    /// Whether something that a request carries was revoked by an earlier fault.
    pub(super) fn is_revoked<B>(&self, request: &Request<B>) -> Option<Refusal> {
        let state = self.state();
        let is_gone = session_of(request).is_some_and(|session| state.revoked.sessions.contains(&session));
        let is_expired = !state.revoked.tokens.is_empty() && state.revoked.tokens.contains(&token_of(request));
        let status = if is_expired { 401 } else { 404 };
        (is_gone || is_expired).then_some(Refusal { status, retry_after: None })
    }

    /// The response that a fault has for a request; revokes what the fault is about. `None` if the request has nothing of the kind.
    pub(super) fn refuse<B>(&self, fault: InjectedFault, request: &Request<B>) -> Option<Refusal> {
        let mut state = self.state();
        match fault {
            InjectedFault::Status { code, retry_after } => Some(Refusal { status: code, retry_after }),
            InjectedFault::EndSession => {
                let session = session_of(request)?;
                if state.revoked.sessions.len() < MOST_REVOKED {
                    state.revoked.sessions.insert(session);
                }
                Some(Refusal { status: 404, retry_after: None })
            }
            InjectedFault::ExpireToken => {
                let token = token_of(request);
                // A request without a token is refused once: one with a token may follow.
                if !token.is_empty() && state.revoked.tokens.len() < MOST_REVOKED {
                    state.revoked.tokens.insert(token);
                }
                Some(Refusal { status: 401, retry_after: None })
            }
            _ => None,
        }
    }
}
