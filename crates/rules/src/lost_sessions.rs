//! Sessions over HTTP that a server begins and then does not know: always, or now and then. Pure, like all judges.

use super::ConversationView;
use super::causes::{Failure, HANDSHAKES, LEAST_FAILING, Outcome, Scope, ServerFailure, code, shown};
use mcproof_analysis::{HttpExchange, read_json};
use mcproof_protocol::error_code::{INVALID_PARAMS, METHOD_NOT_FOUND};
use std::collections::{BTreeMap, BTreeSet};

/// After a handshake, whatever else is asked for is refused with the same status: what identifies the session does not reach the
/// server, or is not what it expects.
pub(super) fn refusal(conversations: &[&ConversationView<'_>], all: &[(Vec<Outcome<'_>>, Vec<Outcome<'_>>)]) -> Option<ServerFailure> {
    let is_ordinary = |outcome: &&Outcome<'_>| !HANDSHAKES.contains(&outcome.method);
    // The modern era has no sessions: what a server of both eras serves there says nothing about them.
    let of_sessions = || conversations.iter().zip(all).enumerate().filter(|(_, (one, _))| !one.is_modern());
    let served = || of_sessions().flat_map(|(_, (_, (outcomes, _)))| outcomes).filter(|outcome| outcome.failure.is_none());
    let handshake = served().find(|outcome| HANDSHAKES.contains(&outcome.method))?;
    if served().any(|outcome| is_ordinary(&outcome)) {
        return None;
    }
    // Whoever wants authorization says so, and so does who is asked too often.
    let is_plain = |outcome: &&Outcome<'_>| !matches!(outcome.failure, Some(Failure::Status(401 | 403 | 429)) | None);
    let refused = of_sessions().flat_map(|(position, (_, (_, refused)))| refused.iter().map(move |outcome| (position, outcome)));
    let refused: Vec<_> = refused.filter(|(_, outcome)| is_ordinary(outcome) && is_plain(outcome)).collect();
    let (conversation, first) = *refused.first()?;
    let Some(Failure::Status(status)) = first.failure else { return None };
    let same: Vec<_> = refused.iter().filter(|(_, outcome)| outcome.failure == first.failure).collect();
    let methods: BTreeSet<&str> = same.iter().map(|(_, outcome)| outcome.method).collect();
    if same.len() < LEAST_FAILING || methods.len() < 2 {
        return None;
    }
    let failure = Failure::Status(status);
    let why = why_refused(conversations[conversation], status);
    let message = format!("`{}` was served, and each of the {} ordinary requests after it {failure}{why}", handshake.method, same.len());
    let frames = shown(same.iter().filter(|(position, _)| *position == conversation).map(|(_, outcome)| *outcome));
    Some(ServerFailure { failure, was_up: true, message, conversation, frames, scope: Scope::Sessions })
}

/// What about the session explains that it is not recognized.
fn why_refused(conversation: &ConversationView<'_>, status: u16) -> &'static str {
    let exchanges = || conversation.exchanges.values();
    let is_success = |exchange: &&HttpExchange<'_>| exchange.method == "POST" && exchange.status().is_some_and(|status| status < 300);
    let Some(handshake) = exchanges().find(is_success) else { return "" };
    let issued = handshake.header("mcp-session-id");
    let is_other =
        |exchange: &HttpExchange<'_>| exchange.header("mcp-session-id").is_some_and(|id| issued.is_some_and(|issued| issued != id));
    match (issued, handshake.header("set-cookie")) {
        (None, Some(_)) => ": the handshake set a cookie, which clients do not send back, and no `Mcp-Session-Id`",
        (Some(_), _) if exchanges().any(is_other) => ": a later response changed `Mcp-Session-Id`",
        (None, None) if status == 400 => ": the response to it has no `Mcp-Session-Id`, which a proxy may have removed",
        (Some(_), _) if status == 404 => ": the server does not know the `Mcp-Session-Id` that it issued",
        _ => "",
    }
}

/// Whether the body tells what is wrong with the request: whoever knows that its method or params are wrong knows the session.
fn names_request(exchange: &HttpExchange<'_>) -> bool {
    let error = exchange.body.and_then(|(_, body)| read_json(body).ok().flatten());
    error.is_some_and(|error| matches!(code(&error), Some(METHOD_NOT_FOUND | INVALID_PARAMS)))
}

/// A session that is served, then not known, and then served again: a load balancer without affinity, or several processes with a
/// memory of their own.
pub(super) fn flickering(conversations: &[&ConversationView<'_>]) -> Option<ServerFailure> {
    let mut issued: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (position, conversation) in conversations.iter().enumerate() {
        for id in conversation.exchanges.values().filter_map(|exchange| exchange.header("mcp-session-id")) {
            issued.entry(id).or_default().insert(position);
        }
    }
    // What several clients share may be ended by any of them.
    issued.retain(|_, positions| positions.len() == 1);
    conversations.iter().enumerate().find_map(|(position, conversation)| {
        let session =
            |exchange: &HttpExchange<'_>| exchange.request_header("mcp-session-id").filter(|id| issued.contains_key(id)).map(str::to_owned);
        let in_session: Vec<_> =
            conversation.exchanges.values().filter_map(|exchange| Some((exchange, session(exchange)?, exchange.status()?))).collect();
        let is_lost = |at: usize| {
            let (exchange, session, status) = &in_session[at];
            let of_same = |(_, other, _): &&(_, String, _)| other == session;
            let is_ended = in_session[..at].iter().filter(of_same).any(|(earlier, ..)| earlier.method == "DELETE");
            let is_served_later =
                in_session[at + 1..].iter().filter(of_same).any(|(later, _, status)| later.method == "POST" && *status < 300);
            exchange.method == "POST" && *status == 404 && !names_request(exchange) && !is_ended && is_served_later
        };
        let lost: Vec<usize> = (0..in_session.len()).filter(|at| is_lost(*at)).collect();
        // A single request may have had another flaw.
        if lost.len() < LEAST_FAILING {
            return None;
        }
        let message = format!(
            "{} of {} requests in a session got status 404, and later ones were served: only some of the server's processes know it",
            lost.len(),
            in_session.len()
        );
        let frames = in_session[*lost.first()?..].iter().take(2).flat_map(|(exchange, ..)| exchange.heads()).collect();
        Some(ServerFailure { failure: Failure::Status(404), was_up: true, message, conversation: position, frames, scope: Scope::Sessions })
    })
}
