//! Sessions of Streamable HTTP: their ids, and requests without an id, with an unknown one, or with that of an ended session.
//! Source: 2025-03-26 to 2025-11-25, basic/transports, session management.

use super::causes::GOES_ON;
use super::connections::ABORT_IS_SURVIVED;
use super::http::{evidence, is_success, told, varied};
use super::rule_definition::{AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::{AttemptOutcome, ConversationView, HttpExchange};
use mcproof_analysis::Attempt;
use mcproof_analysis::probes::{AFTER_OTHER_ENDED, BEFORE_OTHER_ENDS, OTHER_ENDS};
use mcproof_analysis::wording::excerpt;
use mcproof_client::is_gateway;
use mcproof_record::{FrameId, counted};
use std::collections::BTreeSet;

const SOURCE: &str = "basic/transports#session-management";
const MUST: &[RequirementSource] = &[RequirementSource { revisions: revisions::SESSIONS, level: RequirementLevel::Must, source: SOURCE }];
/// A server over HTTP is a process of its own that handles several clients: the specification says so without a keyword.
const SEVERAL_CLIENTS: &[RequirementSource] =
    &[RequirementSource { revisions: revisions::SESSIONS, level: RequirementLevel::Should, source: "basic/transports#streamable-http" }];
const SHOULD: &[RequirementSource] =
    &[RequirementSource { revisions: revisions::SESSIONS, level: RequirementLevel::Should, source: SOURCE }];

/// The rules that are about sessions that end by themselves, or because of others.
pub(super) const OF_ENDINGS: [&str; 4] = [SIDE_BY_SIDE, SPARES_OTHERS, GOES_ON, ABORT_IS_SURVIVED];
const SIDE_BY_SIDE: &str = "sessions-exist-side-by-side";
const SPARES_OTHERS: &str = "session-end-spares-others";
const SECOND_CLIENT: &str = "second-client-is-not-5xx";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "session-id-is-visible-ascii",
        area: Area::Sessions,
        requirement: "a session id consists of visible ASCII characters",
        sources: MUST,
        on: AppliesTo::Http,
        judge: Judge::Together(id_is_visible_ascii),
        why: "proxies and clients change or refuse other characters in a header",
        remedy: "use a UUID, or Base64 without line breaks",
        ..Rule::DEFAULT
    },
    Rule {
        id: "session-ids-differ",
        area: Area::Sessions,
        requirement: "no two sessions have the same id",
        sources: SHOULD,
        on: AppliesTo::Http,
        judge: Judge::Each(ids_differ),
        why: "two clients share one session: each gets responses for the other, and ends the session for both",
        remedy: "generate a new random id for each `initialize`",
        sdks: &[("TypeScript", "`sessionIdGenerator: () => randomUUID()`, and a separate transport for each session")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "session-id-is-unguessable",
        area: Area::Sessions,
        requirement: "a session id cannot be guessed from other session ids",
        sources: SHOULD,
        on: AppliesTo::Http,
        judge: Judge::Each(id_is_unguessable),
        why: "anyone who guesses a session id can send requests in that session and read its messages",
        remedy: "generate the id with a cryptographic random number generator, with at least 128 bits",
        sdks: &[("TypeScript", "`sessionIdGenerator: () => randomUUID()`"), ("Python", "`uuid.uuid4().hex` or `secrets.token_urlsafe()`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "session-id-does-not-change",
        area: Area::Sessions,
        requirement: "a response within a session carries no other session id",
        sources: &[RequirementSource { revisions: revisions::SESSIONS, level: RequirementLevel::Should, source: "" }],
        on: AppliesTo::Http,
        judge: Judge::Each(id_does_not_change),
        why: "a session id is assigned with the result of `initialize`; clients that take it from every response lose their session, others ignore it",
        remedy: "set `Mcp-Session-Id` on the response to `initialize` only, or repeat the id of the request",
        ..Rule::DEFAULT
    },
    Rule {
        id: "session-unknown-gets-404",
        area: Area::Sessions,
        requirement: "a request with an unknown session id gets status 404",
        sources: MUST,
        on: AppliesTo::Http,
        judge: Judge::Each(unknown_gets_404),
        why: "404 makes a client start a new session; with another status, every client fails permanently after the server restarts",
        remedy: "respond with 404 if the id in `Mcp-Session-Id` is unknown, and with 400 only if the header is missing",
        sdks: &[("TypeScript", "in the handler of POST: `if (id && !transports[id]) return response.status(404).end()`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "session-ended-gets-404",
        area: Area::Sessions,
        requirement: "a request in an ended session gets status 404",
        sources: MUST,
        on: AppliesTo::Http,
        judge: Judge::Each(ended_gets_404),
        why: "404 makes a client start a new session; a session that still works after DELETE was not ended",
        remedy: "remove the session on DELETE, and respond with 404 from then on",
        ..Rule::DEFAULT
    },
    Rule {
        id: SIDE_BY_SIDE,
        area: Area::Sessions,
        requirement: "several clients have sessions at the same time",
        sources: SEVERAL_CLIENTS,
        on: AppliesTo::Http,
        judge: Judge::Each(exist_side_by_side),
        why: "a second window of the same host is a second client: it is refused, or disconnects the first",
        remedy: "keep one transport for each session, in a map by session id, instead of one in a variable",
        sdks: &[("TypeScript", "a `StreamableHTTPServerTransport` and a `Server` of their own for each `initialize`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: SECOND_CLIENT,
        area: Area::Sessions,
        requirement: "the `initialize` of a second client does not get 5xx, unless the server says with 503 that it is busy",
        sources: &[RequirementSource {
            revisions: revisions::SESSIONS,
            level: RequirementLevel::Must,
            source: "basic/lifecycle#initialization",
        }],
        on: AppliesTo::Http,
        judge: Judge::Each(second_client_is_not_5xx),
        why: "the server works for the first client only: every other one fails until the first has ended its session",
        remedy: "create a server and a transport for each `initialize`, and keep them in a map by session id",
        sdks: &[("TypeScript", "a `McpServer` connects to one transport only: create both in the handler of `initialize`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: SPARES_OTHERS,
        area: Area::Sessions,
        requirement: "the DELETE of one session does not end another one",
        sources: &[RequirementSource { revisions: revisions::SESSIONS, level: RequirementLevel::Security, source: "" }],
        on: AppliesTo::Http,
        judge: Judge::Each(end_spares_others),
        why: "each client that disconnects ends the work of all others, and anyone can do so at any time",
        remedy: "on DELETE, close and forget only the session that `Mcp-Session-Id` names",
        ..Rule::DEFAULT
    },
    Rule {
        id: "session-missing-gets-400",
        area: Area::Sessions,
        requirement: "a server with sessions responds with 400 to a request without a session id",
        sources: SHOULD,
        on: AppliesTo::Http,
        judge: Judge::Each(missing_gets_400),
        why: "400 shows a client that the header is missing; serving such a request may use another client's session",
        remedy: "respond with 400 if `Mcp-Session-Id` is missing in any request except `initialize`",
        ..Rule::DEFAULT
    },
];

/// Why sessions cannot be judged.
pub(super) fn without_sessions(conversation: &ConversationView<'_>) -> Judgment {
    match conversation.probe("session").and_then(|attempt| attempt.status()) {
        Some(status) if is_success(status) => Judgment::NotApplicable("the server has no sessions".into()),
        Some(status) => Judgment::Untestable(format!("a second session was refused with status {status}")),
        None => Judgment::NotTried("no second session was opened".into()),
    }
}

/// The session ids of the `session` probes, with the frames that show them.
fn ids<'a>(conversation: &ConversationView<'a>) -> Vec<(&'a str, FrameId)> {
    let opened = conversation.probes("session").filter_map(|attempt| attempt.http);
    opened.filter_map(|http| Some((http.header("mcp-session-id")?, http.response?.frame.id))).collect()
}

/// Reported once: every session has its own id, but all come from the same code.
fn id_is_visible_ascii(conversations: &[&ConversationView<'_>]) -> Judgment {
    let exchanges =
        conversations.iter().enumerate().flat_map(|(position, one)| one.exchanges.values().map(move |exchange| (position, exchange)));
    let given: Vec<(usize, &HttpExchange<'_>, &str)> =
        exchanges.filter_map(|(position, exchange)| Some((position, exchange, exchange.header("mcp-session-id")?))).collect();
    if given.is_empty() {
        let reasons = || conversations.iter().map(|one| without_sessions(one));
        let looked = reasons().find(|reason| !matches!(reason, Judgment::NotTried(_)));
        return looked.or_else(|| reasons().next()).unwrap_or(Judgment::Pass);
    }
    let is_visible = |id: &str| !id.is_empty() && id.bytes().all(|byte| (0x21..=0x7e).contains(&byte));
    let wrong = given.iter().find(|(_, _, id)| !is_visible(id));
    let violation = wrong.map(|(conversation, exchange, id)| Violation {
        conversation: *conversation,
        ..Violation::new(format!("the session id is `{}`", excerpt(id)), exchange.heads())
    });
    Judgment::from_violations(violation.into_iter().collect())
}

fn ids_differ(conversation: &ConversationView<'_>) -> Judgment {
    let ids = ids(conversation);
    let twice = ids.iter().enumerate().find_map(|(later, (id, frame))| {
        let first = ids[..later].iter().find(|(known, _)| known == id)?;
        Some((id, first.1, *frame))
    });
    match (ids.len(), twice) {
        (0, _) => without_sessions(conversation),
        (1, _) => Judgment::Untestable("only one session was opened".into()),
        (_, None) => Judgment::Pass,
        (_, Some((id, first, second))) => {
            Judgment::Broken(vec![Violation::new(format!("two sessions have the id `{}`", excerpt(id)), [first, second])])
        }
    }
}

/// Of sessions that the server has assigned and that were not ended.
fn id_does_not_change(conversation: &ConversationView<'_>) -> Judgment {
    let (mut assigned, mut is_tried) = (BTreeSet::new(), false);
    for exchange in conversation.exchanges.values() {
        let given = exchange.header("mcp-session-id").filter(|_| exchange.status().is_some_and(is_success));
        let Some(named) = exchange.request_header("mcp-session-id") else {
            assigned.extend(given);
            continue;
        };
        if exchange.method == "DELETE" {
            assigned.remove(named);
        }
        if !assigned.contains(named) {
            continue;
        }
        is_tried = true;
        if let Some(given) = given.filter(|given| *given != named) {
            let message = format!("a response within session `{}` carries the session id `{}`", excerpt(named), excerpt(given));
            return Judgment::Broken(vec![Violation::new(message, exchange.heads())]);
        }
    }
    if is_tried { Judgment::Pass } else { without_sessions(conversation) }
}

fn id_is_unguessable(conversation: &ConversationView<'_>) -> Judgment {
    let ids = ids(conversation);
    let texts: Vec<&str> = ids.iter().map(|(id, _)| *id).collect();
    match texts[..] {
        [] => return without_sessions(conversation),
        [_] => return Judgment::Untestable("only one session was opened".into()),
        [first, ref others @ ..] if others.iter().all(|other| *other == first) => {
            return Judgment::Untestable("all sessions have the same id".into());
        }
        _ => {}
    }
    let violation = weakness(&texts).map(|weakness| {
        let shown: Vec<String> = texts.iter().take(2).map(|id| format!("`{}`", excerpt(id))).collect();
        Violation::new(format!("session ids {weakness}, such as {}", shown.join(" and ")), ids.iter().map(|(_, frame)| *frame))
    });
    Judgment::from_violations(violation.into_iter().collect())
}

/// Why ids that were issued one after the other can be guessed.
pub(super) fn weakness(ids: &[&str]) -> Option<String> {
    /// The number of hexadecimal digits for 64 bits.
    const LEAST: usize = 16;
    /// The minimum number of characters that differ between random ids.
    const LEAST_CHANGE: usize = 8;
    let shortest = ids.iter().map(|id| id.len()).min().unwrap_or_default();
    if shortest < LEAST {
        return Some(format!("have {}", counted(shortest, "character")));
    }
    let is_same = |at: usize| ids.iter().all(|id| id.as_bytes()[at] == ids[0].as_bytes()[at]);
    let changes = (0..shortest).filter(|at| !is_same(*at)).count() + ids.iter().map(|id| id.len() - shortest).max().unwrap_or_default();
    (changes < LEAST_CHANGE).then(|| format!("differ in {changes} of {shortest} characters"))
}

fn unknown_gets_404(conversation: &ConversationView<'_>) -> Judgment {
    if ids(conversation).is_empty() && conversation.probe("unknown-session").is_none() {
        return without_sessions(conversation);
    }
    match varied(conversation, "unknown-session") {
        Err(judgment) => judgment,
        Ok(attempt) if attempt.status() == Some(404) => {
            Judgment::from_violations(beside_posts(conversation, "unknown-session", "with a session that does not exist"))
        }
        Ok(attempt) => {
            let message = format!("a request with a session that does not exist got {}", told(&attempt));
            Judgment::Broken(vec![Violation::new(message, evidence(&attempt))])
        }
    }
}

const ENDED_ALL_THE_SAME: &str = "the session has ended either way";
const NO_STREAM: &str = "no stream is opened";

/// What is wrong with the GET and the DELETE of a probe that get another status than 404, where a POST gets that. "It MUST respond to requests
/// containing that session ID with HTTP 404" is about all of them.
fn beside_posts(conversation: &ConversationView<'_>, probe: &str, how: &str) -> Vec<Violation> {
    let opens_streams = conversation.probe("get").is_some_and(|get| is_stream(&get));
    let violation = |attempt: Attempt<'_, '_>| {
        let (method, status) = (attempt.http?.method, attempt.status()?);
        let tolerance = match method {
            // Where nobody gets a stream, its absence says nothing of sessions.
            "GET" if !opens_streams => return None,
            "GET" => (!is_stream(&attempt)).then_some(NO_STREAM),
            "DELETE" => Some(ENDED_ALL_THE_SAME),
            _ => return None,
        };
        // These say why by themselves.
        if matches!(status, 401 | 403 | 404 | 405 | 429) || is_gateway(status) {
            return None;
        }
        let message = format!("a {method} {how} got {}", told(&attempt));
        Some(Violation { tolerance, ..Violation::new(message, evidence(&attempt)) })
    };
    conversation.probes(probe).filter_map(violation).collect()
}

fn is_stream(attempt: &Attempt<'_, '_>) -> bool {
    attempt.status().is_some_and(is_success) && attempt.http.and_then(HttpExchange::media_type).as_deref() == Some("text/event-stream")
}

fn ended_gets_404(conversation: &ConversationView<'_>) -> Judgment {
    if ids(conversation).is_empty() {
        return without_sessions(conversation);
    }
    let deleted = conversation.probe("delete").and_then(|attempt| attempt.status());
    match deleted {
        Some(405) => return Judgment::NotApplicable("clients cannot end sessions: DELETE got status 405".into()),
        Some(status) if is_success(status) => {}
        _ => return Judgment::Untestable("no session could be ended".into()),
    }
    let Some(attempt) = conversation.probe("deleted-session") else { return Judgment::Untestable("it was not tried".into()) };
    let unknown = conversation.probe("unknown-session").and_then(|attempt| attempt.status());
    match attempt.status() {
        None => Judgment::Untestable("there was no response".into()),
        Some(404) => Judgment::from_violations(beside_posts(conversation, "deleted-session", "in an ended session")),
        Some(status) if unknown == Some(status) && !is_success(status) => {
            Judgment::Untestable(format!("ended sessions and unknown sessions both get {status}: see session-unknown-gets-404"))
        }
        Some(_) => {
            let message = format!("a request in an ended session got {}", told(&attempt));
            Judgment::Broken(vec![Violation::new(message, evidence(&attempt))])
        }
    }
}

/// That every other client than the first was refused, while the first was served.
fn second_client_is_refused(conversation: &ConversationView<'_>) -> Option<(u16, Violation)> {
    let opened: Vec<_> = conversation.probes("session").filter(|attempt| attempt.status().is_some()).collect();
    let first = opened.first()?;
    let is_refused = |attempt: &Attempt<'_, '_>| attempt.status().is_some_and(|status| status >= 400 && ![401, 403].contains(&status));
    let is_served_later = conversation
        .exchanges
        .values()
        .any(|exchange| exchange.method == "POST" && exchange.request.id > first.probed.first && exchange.status().is_some_and(is_success));
    let violation = Violation::new(format!("a second client was refused with {}", told(first)), evidence(first));
    (opened.iter().all(is_refused) && is_served_later).then_some((first.status()?, violation))
}

fn is_defect(status: u16) -> bool {
    status >= 500 && !is_gateway(status)
}

fn second_client_is_not_5xx(conversation: &ConversationView<'_>) -> Judgment {
    match second_client_is_refused(conversation) {
        Some((status, violation)) if is_defect(status) => Judgment::Broken(vec![violation]),
        Some(_) => Judgment::Pass,
        None if conversation.probe("session").is_some_and(|attempt| attempt.status().is_some_and(is_success)) => Judgment::Pass,
        None => without_sessions(conversation),
    }
}

/// A server may end any session at any time: what happens each time that another one was ended, a moment after a request in it was served,
/// is no chance.
fn end_spares_others(conversation: &ConversationView<'_>) -> Judgment {
    let has_succeeded = |attempt: &Attempt<'_, '_>| attempt.status().is_some_and(is_success);
    let rounds = conversation.probes(BEFORE_OTHER_ENDS).zip(conversation.probes(OTHER_ENDS)).zip(conversation.probes(AFTER_OTHER_ENDED));
    let rounds: Vec<_> = rounds
        .filter(|((before, end), after)| has_succeeded(before) && has_succeeded(end) && after.status().is_some())
        .map(|((_, end), after)| (end, after))
        .collect();
    let is_gone = |after: &Attempt<'_, '_>| after.status().is_some_and(|status| matches!(status, 400 | 404 | 410));
    match rounds.first() {
        None if conversation.probe(OTHER_ENDS).is_some() => {
            Judgment::Untestable("no session was served beside the one that was ended".into())
        }
        None => without_sessions(conversation),
        Some((_, after)) if rounds.len() < 2 && is_gone(after) => {
            Judgment::Untestable("only once was a session served beside one that was ended".into())
        }
        Some((end, after)) if rounds.iter().all(|(_, after)| is_gone(after)) => {
            let message = format!("the DELETE of one session ended another: a request in that then got {}", told(after));
            Judgment::Broken(vec![Violation::new(message, evidence(end).into_iter().chain(evidence(after)))])
        }
        Some(_) => Judgment::Pass,
    }
}

/// A server may end any session at any time: what happens each time that another one begins is no chance.
fn exist_side_by_side(conversation: &ConversationView<'_>) -> Judgment {
    let opened: Vec<_> = conversation.probes("session").filter(|attempt| attempt.status().is_some()).collect();
    if opened.is_empty() {
        return without_sessions(conversation);
    }
    match second_client_is_refused(conversation) {
        Some((status, _)) if is_defect(status) => {
            return Judgment::Untestable(format!("a second client was refused with status {status}: see {SECOND_CLIENT}"));
        }
        Some((_, violation)) => return Judgment::Broken(vec![violation]),
        None => {}
    }
    let beside: Vec<_> = conversation.probes("session-beside-others").collect();
    let ended: Vec<_> = beside.iter().filter(|attempt| attempt.status().is_some_and(|status| (400..500).contains(&status))).collect();
    match (beside.len(), ended.as_slice()) {
        (0, _) => without_sessions(conversation),
        (1, _) => Judgment::Untestable("only one other session was opened".into()),
        (_, []) => Judgment::Pass,
        (count, [ended, others @ ..]) if others.len() + 1 == count => {
            let other = opened.iter().rfind(|other| other.probed.first < ended.probed.first);
            let frames = other.into_iter().flat_map(evidence).chain(evidence(ended));
            let message = format!("once another session had begun, a request got {}; so it was with {count} sessions", told(ended));
            Judgment::Broken(vec![Violation::new(message, frames)])
        }
        _ => Judgment::Untestable("one session ended after another one had begun, and another session did not".into()),
    }
}

fn missing_gets_400(conversation: &ConversationView<'_>) -> Judgment {
    if ids(conversation).is_empty() && conversation.probe("no-session").is_none() {
        return without_sessions(conversation);
    }
    match varied(conversation, "no-session") {
        Err(judgment) => judgment,
        Ok(attempt) if attempt.status() == Some(400) => Judgment::Pass,
        Ok(attempt) => {
            let message = format!("a request without a session id got {}", told(&attempt));
            let is_served = matches!(attempt.answer, AttemptOutcome::Result { .. });
            Judgment::Broken(vec![Violation {
                tolerance: is_served.then_some(NOT_REQUIRED),
                ..Violation::new(message, evidence(&attempt))
            }])
        }
    }
}

const NOT_REQUIRED: &str = "the specification asks for 400 only where the session id is required";

#[cfg(test)]
mod tests {
    use super::super::{Strictness, example, find, judge_one};
    use super::{ConversationView, weakness};
    use mcproof_record::Judged;

    #[test]
    fn a_stream_in_a_session_that_is_not_there_is_reported() {
        let check = |of_live: &str, of_none: &str, deleted_again: u16, expected: [bool; 2]| {
            let session = "mcp-session-id: 1868a90c";
            let get = |probe: &str, session: &str, got: &str| format!("@ {probe}\n> GET /mcp {session}\n< {got}\n");
            let text = format!(
                "@ plain\n> POST /mcp\n< 200\n@ session\n> POST /mcp\n< 200 {session}\n{}@ unknown-session\n> POST /mcp {unknown}\n< 404\n{}\
                 @ delete\n> DELETE /mcp {session}\n< 204\n@ deleted-session\n> POST /mcp {session}\n< 404\n{}\
                 @ deleted-session\n> DELETE /mcp {session}\n< {deleted_again}",
                get("get", session, of_live),
                get("unknown-session", "mcp-session-id: 0", of_none),
                get("deleted-session", session, of_none),
                unknown = "mcp-session-id: 0",
            );
            let take = example::read(&text, "http", "2025-11-25");
            let is_broken = |rule: &str| {
                let judged = judge_one(find(rule).unwrap(), &[ConversationView::new(&take)], Strictness::Tolerant).judged;
                matches!(judged, Judged::Broken { .. })
            };
            assert_eq!(["session-unknown-gets-404", "session-ended-gets-404"].map(is_broken), expected, "{text}");
        };
        let stream = "200 content-type: text/event-stream";
        check(stream, "404", 404, [false, false]);
        check(stream, "405", 405, [false, false]);
        check(stream, stream, 404, [true, true]);
        check(stream, "400", 404, [true, true]);
        check(stream, "404", 204, [false, true]);
        // A server without streams refuses them in its own way.
        check("406", "406", 404, [false, false]);
    }

    #[test]
    fn ids_are_weak_if_they_are_short_or_hardly_differ() {
        let check = |ids: &[&str], expected: Option<&str>| assert_eq!(weakness(ids).as_deref(), expected, "{ids:?}");
        check(&["1", "2"], Some("have 1 character"));
        check(&["session-000000000041", "session-000000000042"], Some("differ in 1 of 20 characters"));
        check(&["session-0000000009", "session-00000000010"], Some("differ in 2 of 18 characters"));
        // Version 1: all but the time is the same.
        let by_time = ["d9428888-122b-11e1-b85c-61cd3cbb3210", "d9428889-122b-11e1-b85c-61cd3cbb3210"];
        check(&by_time, Some("differ in 1 of 36 characters"));
        check(&["1868a90c-1f3e-4e0b-9c58-3f1f8a3b5c77", "0b7c2d4e-7d51-4f0a-8a94-9ee0c2c1d2a6"], None);
        check(&["9f86d081884c7d65", "2c26b46b68ffc68f"], None);
        // Version 7: the time is the same, the rest is not.
        check(&["0190163d-8694-739b-aea5-966c26f8ad91", "0190163d-8694-7a1c-8f3e-2d4b5c6a7e80"], None);
    }
}
