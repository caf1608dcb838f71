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

/// Whether something was not known, and the response does not say that it was the method or a param.
fn is_unknown(exchange: &HttpExchange<'_>) -> bool {
    exchange.status() == Some(404) && !names_request(exchange)
}

/// Whether a session may be what is not known. A version that does not exist is refused for itself, and so may be another spelling of the path.
fn may_be_lost(exchange: &HttpExchange<'_>, usual: &str) -> bool {
    is_unknown(exchange) && exchange.url == usual && !exchange.names_unknown_version()
}

/// The URL to which the first message of a conversation went.
fn usual_url<'c>(conversation: &'c ConversationView<'_>) -> &'c str {
    conversation.exchanges.values().find(|exchange| exchange.method == "POST").map_or("", |exchange| exchange.url)
}

/// The sessions that were issued in one conversation only: what several clients share may be ended by any of them.
fn issued<'c>(conversations: &[&'c ConversationView<'_>]) -> BTreeMap<&'c str, usize> {
    let mut issued: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (position, conversation) in conversations.iter().enumerate() {
        for id in conversation.exchanges.values().filter_map(|exchange| exchange.header("mcp-session-id")) {
            issued.entry(id).or_default().insert(position);
        }
    }
    let of_one = issued.into_iter().filter(|(_, positions)| positions.len() == 1);
    of_one.filter_map(|(id, positions)| Some((id, positions.into_iter().next()?))).collect()
}

/// Sessions that are not known any more after so many requests, always as many: no time was up, and nobody has ended them. Who counts
/// may look at a request before or after what is refused for another reason.
pub(super) fn short_lived(conversations: &[&ConversationView<'_>]) -> Option<ServerFailure> {
    lost_after(conversations, |status| status < 300).or_else(|| lost_after(conversations, |_| true))
}

/// The same, where requests with these statuses count.
fn lost_after(conversations: &[&ConversationView<'_>], counts: impl Fn(u16) -> bool) -> Option<ServerFailure> {
    /// So many sessions do not end after the same number of requests by chance.
    const LEAST_SESSIONS: usize = 3;
    /// What is lost at once is told otherwise.
    const LEAST_SERVED: usize = 3;
    /// How far counts may differ: what a server refuses before it looks at the session it may not count.
    const TOLERANCE: usize = 2;
    struct Lost<'c> {
        position: usize,
        served: usize,
        /// Without a status: the server may have counted them.
        given_up: usize,
        refused: Vec<&'c HttpExchange<'c>>,
    }
    let (mut lost, mut most) = (Vec::<Lost<'_>>::new(), 0);
    for (id, position) in issued(conversations) {
        let is_of_session = |exchange: &&HttpExchange<'_>| exchange.request_header("mcp-session-id") == Some(id);
        let (in_session, given_up): (Vec<&HttpExchange<'_>>, Vec<_>) =
            conversations[position].exchanges.values().filter(is_of_session).partition(|exchange| exchange.status().is_some());
        let usual = usual_url(conversations[position]);
        let is_refused = |exchange: &HttpExchange<'_>| may_be_lost(exchange, usual);
        let is_ended = in_session.iter().any(|exchange| exchange.method == "DELETE" && !is_refused(exchange));
        // Once a session is lost, all that follows in it may be refused for that, whatever else is wrong with it.
        let served = in_session.iter().filter(|exchange| !is_unknown(exchange) && exchange.status().is_some_and(&counts)).count();
        let refused: Vec<_> = in_session.into_iter().filter(|exchange| exchange.method == "POST" && is_refused(exchange)).collect();
        most = most.max(served);
        if !is_ended && refused.len() > 1 {
            lost.push(Lost { position, served, given_up: given_up.len(), refused });
        }
    }
    let of_count = |count: usize| lost.iter().filter(move |lost| lost.served == count);
    let count = lost.iter().map(|lost| lost.served).max_by_key(|count| (of_count(*count).count(), *count))?;
    let is_count = lost.iter().all(|lost| lost.served + lost.given_up.max(TOLERANCE) >= count);
    if of_count(count).count() < LEAST_SESSIONS || count < LEAST_SERVED || most > count + TOLERANCE || !is_count {
        return None;
    }
    let Lost { position: conversation, refused, .. } = of_count(count).next()?;
    let message = format!("each of {} sessions was lost after {count} requests: the next ones got status 404", of_count(count).count());
    let frames = refused.iter().take(2).flat_map(|exchange| exchange.heads()).collect();
    let conversation = *conversation;
    Some(ServerFailure { failure: Failure::Status(404), was_up: true, message, conversation, frames, scope: Scope::Sessions })
}

/// A session that is served, then not known, and then served again: a load balancer without affinity, or several processes with a
/// memory of their own.
pub(super) fn flickering(conversations: &[&ConversationView<'_>]) -> Option<ServerFailure> {
    let issued = issued(conversations);
    conversations.iter().enumerate().find_map(|(position, conversation)| {
        let usual = usual_url(conversation);
        let session =
            |exchange: &HttpExchange<'_>| exchange.request_header("mcp-session-id").filter(|id| issued.contains_key(id)).map(str::to_owned);
        let in_session: Vec<_> =
            conversation.exchanges.values().filter_map(|exchange| Some((exchange, session(exchange)?, exchange.status()?))).collect();
        let is_lost = |at: usize| {
            let (exchange, session, _) = &in_session[at];
            let of_same = |(_, other, _): &&(_, String, _)| other == session;
            let is_ended = in_session[..at].iter().filter(of_same).any(|(earlier, ..)| earlier.method == "DELETE");
            // What was sent before the refusal came may have been served before it.
            let refused = exchange.response.map(|response| response.frame.id);
            let is_later = |later: &HttpExchange<'_>| later.method == "POST" && Some(later.request.id) > refused;
            let is_served_later = in_session[at + 1..].iter().filter(of_same).any(|(later, _, status)| is_later(later) && *status < 300);
            exchange.method == "POST" && may_be_lost(exchange, usual) && !is_ended && is_served_later
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

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_analysis::example;
    use mcproof_record::{FrameBody, FrameId};

    /// A session in which so many requests are served, and two are not.
    fn session(id: &str, served: usize) -> String {
        let ping = |at: usize, status: u16| {
            let request = format!(r#"{{"jsonrpc":"2.0","id":"{id}{at}","method":"ping"}}"#);
            format!("> POST /mcp mcp-session-id: {id}\n> {request}\n< {status}\n! ended\n")
        };
        let pings = (0..served).map(|at| ping(at, 200)).chain((served..served + 2).map(|at| ping(at, 404)));
        format!("> POST /mcp\n< 200 mcp-session-id: {id}\n! ended\n{}", pings.collect::<String>())
    }

    #[test]
    fn sessions_that_end_after_a_number_of_requests_are_told_and_those_that_may_have_expired_are_not() {
        let check = |served: &[(&str, usize)], expected: Option<&str>| {
            let text: String = served.iter().map(|(id, served)| session(id, *served)).collect();
            let take = example::read(&text, "http", "2025-11-25");
            let told = short_lived(&[&ConversationView::new(&take)]).map(|failure| failure.message);
            assert_eq!(told.as_deref(), expected, "{served:?}");
        };
        let told = "each of 3 sessions was lost after 6 requests: the next ones got status 404";
        check(&[("a", 6), ("b", 6), ("c", 6)], Some(told));
        check(&[("a", 6), ("b", 5), ("c", 6), ("d", 6)], Some(told));
        check(&[("a", 6), ("b", 6)], None);
        check(&[("a", 6), ("b", 6), ("c", 6), ("d", 7)], Some(told));
        check(&[("a", 6), ("b", 6), ("c", 6), ("d", 9)], None);
        check(&[("a", 6), ("b", 6), ("c", 6), ("d", 3)], None);
        check(&[("a", 1), ("b", 1), ("c", 1)], None);
    }

    #[test]
    fn what_was_sent_before_a_refusal_came_was_not_served_after_it() {
        let post = |id: u32| format!("> POST /mcp mcp-session-id: a\n> {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
        let refused = |id: u32| format!("{}< 404\n! ended\n", post(id));
        let served = |id: u32| format!("{}< 200\n! ended\n", post(id));
        let first = format!("> POST /mcp\n< 200 mcp-session-id: a\n! ended\n{}", served(1));
        let flickers = |text: String| {
            let mut take = example::read(&text, "http", "2025-11-25");
            // The last request was sent before any of the others had its response.
            let sent = take.transcript.frames.iter().position(|frame| is_post_of(&frame.body, 9)).unwrap();
            let (early, at) = (take.transcript.frames.remove(sent), 5);
            take.transcript.frames.insert(at, early);
            (0..).zip(&mut take.transcript.frames).for_each(|(id, frame)| frame.id = FrameId(id));
            flickering(&[&ConversationView::new(&take)]).is_some()
        };
        let late = [first, refused(2), refused(3), refused(4), served(9)].concat();
        assert!(flickering(&[&ConversationView::new(&example::read(&late, "http", "2025-11-25"))]).is_some());
        assert!(!flickers(late));
    }

    #[test]
    fn a_version_that_does_not_exist_is_no_session_that_was_lost() {
        let post = |path: &str, version: &str, status: u16| {
            format!(
                "> POST {path} mcp-session-id: a | mcp-protocol-version: {version}\n> {{\"id\":1,\"method\":\"ping\"}}\n< {status}\n! ended\n"
            )
        };
        let flickers = |path: &str, version: &str| {
            let text = format!(
                "> POST /mcp\n< 200 mcp-session-id: a\n! ended\n{}{}",
                post(path, version, 404).repeat(4),
                post("/mcp", "2025-11-25", 200)
            );
            flickering(&[&ConversationView::new(&example::read(&text, "http", "2025-11-25"))]).is_some()
        };
        assert!(flickers("/mcp", "2025-11-25"));
        assert!(!flickers("/mcp", "1900-01-01"));
        assert!(!flickers("/mcp/", "2025-11-25"));
    }

    fn is_post_of(body: &FrameBody, id: u32) -> bool {
        matches!(body, FrameBody::HttpRequest { body, .. } if body.to_text().contains(&format!("\"id\":{id}")))
    }
}
