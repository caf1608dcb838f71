//! Sessions of HTTP+SSE, which are identified only by the endpoint of a stream: where responses arrive, and which clients may post.
//! Source: 2024-11-05, basic/transports, HTTP with SSE. The page does not speak of sessions, but gives each client an endpoint.

use super::http::{evidence, told};
use super::rule_definition::{AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::sessions::weakness;
use super::{AttemptOutcome, ConversationView};
use mcproof_analysis::probes::{UNKNOWN_STREAM, session_in};
use mcproof_analysis::wording::excerpt;
use mcproof_record::{FrameBody, FrameId};
use std::collections::BTreeSet;
use url::Url;

/// Consequences of a response to the wrong client are part of the same violation.
pub(super) const ON_ITS_STREAM: &str = "sse-response-is-on-session-stream";

/// Of the request that each of two clients makes; its subject is the id.
pub(super) const OWN_STREAM: &str = "own-stream";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: ON_ITS_STREAM,
        area: Area::Sessions,
        requirement: "over HTTP+SSE, a response comes only on the stream that named the endpoint of its request",
        sources: &[RequirementSource {
            revisions: revisions::LEGACY,
            level: RequirementLevel::Must,
            source: "https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse",
        }],
        on: AppliesTo::Sse,
        judge: Judge::Together(responses_come_on_their_streams),
        why: "one user reads the response to another user, who waits in vain; the bug stays hidden with a single client",
        remedy: "create a transport with its own session id for each stream, and look it up with the id in the endpoint of each POST",
        sdks: &[
            ("TypeScript", "`transports[transport.sessionId] = transport` at each GET, not one variable `transport` for all"),
            ("Python", "one `SseServerTransport` serves all streams; do not write to the streams directly"),
        ],
        ..Rule::DEFAULT
    },
    Rule {
        id: "sse-session-is-unguessable",
        area: Area::Sessions,
        requirement: "over HTTP+SSE, the endpoint of a stream cannot be guessed from other endpoints",
        sources: &[RequirementSource { revisions: revisions::LEGACY, level: RequirementLevel::Security, source: "" }],
        on: AppliesTo::Sse,
        judge: Judge::Each(endpoint_is_unguessable),
        why: "anyone who guesses the endpoint of another client can post requests in its session, and the responses come on its stream",
        remedy: "put a random id into the endpoint, from a cryptographic random number generator and with at least 128 bits",
        sdks: &[
            ("TypeScript", "`randomUUID()`, as `SSEServerTransport` does"),
            ("Python", "`uuid.uuid4().hex`, as `SseServerTransport` does"),
        ],
        ..Rule::DEFAULT
    },
    Rule {
        id: "sse-unknown-session-is-refused",
        area: Area::Sessions,
        requirement: "over HTTP+SSE, a message to the endpoint of an unknown stream is refused",
        sources: &[RequirementSource { revisions: revisions::LEGACY, level: RequirementLevel::Should, source: "" }],
        on: AppliesTo::Sse,
        judge: Judge::Each(unknown_session_is_refused),
        why: "a client whose stream has ended gets a success status, and waits for a response that cannot arrive",
        remedy: "respond with 404 if no stream has the id in the endpoint",
        ..Rule::DEFAULT
    },
];

/// The endpoints that streams named, in order: as URLs, with the event that named them.
fn endpoints(conversation: &ConversationView<'_>) -> Vec<(Url, FrameId)> {
    let named = conversation.frames().iter().filter_map(|frame| match &frame.body {
        FrameBody::SseEvent { event: Some(name), data: Some(data), exchange, .. } if name == "endpoint" => {
            let stream = Url::parse(conversation.exchanges.get(exchange)?.url).ok()?;
            Some((stream.join(data.to_text().trim()).ok()?, frame.id))
        }
        _ => None,
    });
    named.collect()
}

fn responses_come_on_their_streams(conversations: &[&ConversationView<'_>]) -> Judgment {
    let (mut seen, mut tried, mut violations) = (0, 0, Vec::new());
    for (client, asking) in conversations.iter().enumerate() {
        for attempt in asking.probes(OWN_STREAM) {
            tried += 1;
            let Some(request) = attempt.request else { continue };
            let posted = request.exchange.and_then(|id| asking.exchanges.get(&id)).and_then(|exchange| Url::parse(exchange.url).ok());
            for (other, listening) in conversations.iter().enumerate() {
                // The first stream is that of the conversation itself.
                let Some((endpoint, named)) = endpoints(listening).into_iter().next() else { continue };
                let is_named = posted.as_ref() == Some(&endpoint);
                let response = listening.from_server().find(|wire_message| wire_message.is_answer() && wire_message.id() == request.id());
                match response {
                    Some(_) if other == client && is_named => seen += 1,
                    Some(wire_message) => {
                        let why = match is_named {
                            true => format!(": both streams named the endpoint `{}`", excerpt(endpoint.path())),
                            false => String::new(),
                        };
                        let method = request.method().unwrap_or_default();
                        let message = format!("the response to a `{method}` of one client came on the stream of another client{why}");
                        violations.push(Violation { conversation: other, ..Violation::new(message, [named, wire_message.frame.id]) });
                    }
                    None => {}
                }
            }
        }
    }
    violations.truncate(1);
    match tried {
        0 => Judgment::NotTried("two clients were not connected at the same time".into()),
        _ => Judgment::of(violations, seen, "no request got a response while two clients were connected"),
    }
}

fn endpoint_is_unguessable(conversation: &ConversationView<'_>) -> Judgment {
    let all = endpoints(conversation);
    let different: BTreeSet<&str> = all.iter().map(|(endpoint, _)| endpoint.as_str()).collect();
    match (all.len(), different.len()) {
        (0 | 1, _) => return Judgment::NotTried("no second stream was opened".into()),
        (_, 1) => return Judgment::NotApplicable("all streams have the same endpoint".into()),
        _ => {}
    }
    let different: Vec<&str> = different.into_iter().collect();
    let sessions: Vec<&str> = different
        .iter()
        .enumerate()
        .filter_map(|(at, endpoint)| Some(&endpoint[session_in(endpoint, different[usize::from(at == 0)])?]))
        .collect();
    let violation = weakness(&sessions).map(|weakness| {
        let shown: Vec<String> = sessions.iter().take(2).map(|session| format!("`{}`", excerpt(session))).collect();
        Violation::new(
            format!("the sessions in endpoints {weakness}, such as {}", shown.join(" and ")),
            all.iter().map(|(_, frame)| *frame),
        )
    });
    Judgment::from_violations(violation.into_iter().collect())
}

fn unknown_session_is_refused(conversation: &ConversationView<'_>) -> Judgment {
    let Some(attempt) = conversation.probe(UNKNOWN_STREAM) else {
        return Judgment::NotTried("no message was sent to an unknown session".into());
    };
    match (attempt.status(), &attempt.answer) {
        (Some(200..300), AttemptOutcome::Error { .. }) => Judgment::Pass,
        (Some(200..300), _) => {
            let message = format!("a message to a session that does not exist got {}", told(&attempt));
            Judgment::Broken(vec![Violation::new(message, evidence(&attempt))])
        }
        (Some(_), _) => Judgment::Pass,
        (None, _) => Judgment::Untestable("no response came".into()),
    }
}
