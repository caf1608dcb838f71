//! The HTTP response to a message that is posted over HTTP+SSE, beside what comes on the stream.
//! Source: 2024-11-05, basic/transports, HTTP with SSE. The page names no status, so HTTP itself says what each of them means.

use super::rule_definition::{AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::{ConversationView, HttpExchange, WireMessage};
use mcproof_analysis::wording::excerpt;
use mcproof_client::is_gateway;
use mcproof_record::FrameBody;

const STATUS: &[RequirementSource] = &[RequirementSource {
    revisions: revisions::LEGACY,
    level: RequirementLevel::Should,
    source: "https://www.rfc-editor.org/rfc/rfc9110#section-15",
}];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "sse-answered-post-succeeds",
        area: Area::Http,
        requirement: "over HTTP+SSE, the POST of a request whose response comes on the stream gets a status of success",
        sources: STATUS,
        on: AppliesTo::Sse,
        judge: Judge::Each(answered_posts_succeed),
        why: "a client reports the status as the failure of the request, and drops the response that comes on the stream",
        remedy: "respond to the POST with 202 when the message is taken; a JSON-RPC error goes on the stream only",
        ..Rule::DEFAULT
    },
    Rule {
        id: "sse-refused-post-is-4xx",
        area: Area::Http,
        requirement: "over HTTP+SSE, a POST that is refused gets a status from 400 to 499",
        sources: STATUS,
        on: AppliesTo::Sse,
        judge: Judge::Each(refused_posts_are_4xx),
        why: "5xx triggers alarms and retries for an error of the client, and a redirect sends the message to another place",
        remedy: "respond with 404 to an unknown session and with 400 to a message that is not taken",
        ..Rule::DEFAULT
    },
];

/// What was posted with a message, and the status of its response. A redirect is followed: what counts is where it leads.
fn posts<'c, 'a>(conversation: &'c ConversationView<'a>) -> impl Iterator<Item = (&'c WireMessage<'a>, &'c HttpExchange<'a>, u16)> {
    let posted = conversation.from_client().filter(|message| message.method().is_some());
    posted.filter_map(|message| {
        let exchange = conversation.exchanges.get(&message.exchange?)?;
        let status = exchange.status()?;
        let leads_on = (300..400).contains(&status) && exchange.header("location").is_some();
        // What a server that is not ready responds with does not count either.
        (!leads_on && !is_gateway(status)).then_some((message, exchange, status))
    })
}

fn answered_posts_succeed(conversation: &ConversationView<'_>) -> Judgment {
    let is_event = |answer: &&WireMessage<'_>| matches!(answer.frame.body, FrameBody::SseEvent { .. });
    let answered: Vec<_> = posts(conversation)
        .filter_map(|(request, exchange, status)| {
            let answer = conversation.answer_to(request).filter(is_event)?;
            Some((request, answer, exchange, status))
        })
        .collect();
    let wrong = answered.iter().find(|(.., status)| !(200..300).contains(status)).map(|(request, answer, exchange, status)| {
        let method = excerpt(request.method().unwrap_or_default());
        let told = format!("the POST of `{method}` got status {status}, and its response came on the stream");
        Violation::new(told, exchange.heads().into_iter().chain([answer.frame.id]))
    });
    Judgment::of(wrong.into_iter().collect(), answered.len(), "no response came on the stream")
}

fn refused_posts_are_4xx(conversation: &ConversationView<'_>) -> Judgment {
    let refused: Vec<_> = posts(conversation)
        .filter(|(message, _, status)| !(200..300).contains(status) && conversation.answer_to(message).is_none())
        .collect();
    if refused.is_empty() {
        return Judgment::NotApplicable("no POST was refused".into());
    }
    let wrong = refused.iter().find(|(.., status)| !(400..500).contains(status)).map(|(message, exchange, status)| {
        let method = excerpt(message.method().unwrap_or_default());
        Violation::new(format!("the POST of `{method}` got status {status}"), exchange.heads())
    });
    Judgment::from_violations(wrong.into_iter().collect())
}
