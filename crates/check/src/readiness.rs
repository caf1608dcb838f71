//! Whether a server that let nobody in is about to start: it accepts connections, and resets them or says 503. Knows what the client
//! retries, and no rule.

use super::CheckOptions;
use super::explorer::headers_of_post;
use super::served::Served;
use mcproof_client::{
    CallFailure, ConnectFailure, ConnectOptions, RawHttpRequest, Reads, Session, SseFailure, Startup, Target, Unanswered, is_gateway,
    open_bare,
};
use mcproof_protocol::{Revision, Transport};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often to ask.
const PAUSE: Duration = Duration::from_millis(200);

/// What the start of a server takes that is given no other time.
const START: Duration = Duration::from_secs(30);

/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(2);

/// One that we start is awaited as long as its start may take, one at a URL as long as its user says.
pub(super) fn patience(target: &Target, options: &ConnectOptions) -> Duration {
    match (target, options.startup) {
        (Target::Http { launch: Some(_), .. }, _) => options.timeout.unwrap_or(START),
        (_, Startup::Awaited(patience)) => patience,
        (_, Startup::Over) => Duration::ZERO,
    }
}

/// Whether a handshake failed as it does with a server that is about to start.
pub(super) fn is_passing(failure: &ConnectFailure) -> bool {
    match failure {
        ConnectFailure::Unanswered { failure: CallFailure::Unanswered(Unanswered::Unreachable(_)), .. }
        | ConnectFailure::Sse(SseFailure::Unreachable(_)) => true,
        ConnectFailure::Unanswered { failure: CallFailure::Unanswered(Unanswered::Response { head, .. }), .. }
        | ConnectFailure::Sse(SseFailure::NoStream(head)) => is_gateway(head.status),
        _ => false,
    }
}

/// Asks until the server responds. False if its process ended, or it did not become ready in time.
pub(super) async fn comes_about(check_options: &CheckOptions, served: Option<&Served>, began: Instant) -> bool {
    let tap = check_options.new_tap("readiness");
    let revision = Revision::LATEST_LEGACY.as_str();
    let Ok(session) = open_bare(&check_options.target, Transport::Http, revision, &check_options.options, &tap).await else { return false };
    let is_there = responds(check_options, &session, began, || served.is_none_or(Served::is_running)).await;
    if is_there {
        check_options.budget.listens_early();
    }
    is_there
}

/// The same for a process of a conversation, if another one listened before it responded. Whether anything was asked.
pub(super) async fn await_process(check_options: &CheckOptions, session: &Session) -> bool {
    let is_early = check_options.budget.is_known_to_listen_early() && check_options.target.command().is_some();
    if is_early {
        responds(check_options, session, Instant::now(), || session.exit().is_none()).await;
    }
    is_early
}

/// Whether requests that every server may refuse get responses of its own: a GET, and the request that changes nothing, since some
/// serve the one before the other.
async fn responds(check_options: &CheckOptions, session: &Session, began: Instant, is_running: impl Fn() -> bool) -> bool {
    let get = RawHttpRequest { method: "GET".into(), reads: Reads::Head, ..RawHttpRequest::default() };
    let ping = RawHttpRequest {
        method: "POST".into(),
        headers: headers_of_post(),
        body: br#"{"jsonrpc":"2.0","id":"ready","method":"ping"}"#.to_vec(),
        reads: Reads::Head,
        ..RawHttpRequest::default()
    };
    let end = began + check_options.patience.min(check_options.budget.left());
    let mut left = [get, ping].into_iter().peekable();
    while let Some(request) = left.peek() {
        if Instant::now() >= end || !is_running() {
            return false;
        }
        match session.ask_over_http(request, ATTEMPT).await {
            Some(Ok(response)) if !is_gateway(response.head.status) => drop(left.next()),
            _ => sleep(PAUSE).await,
        }
    }
    true
}
