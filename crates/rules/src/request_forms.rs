//! Forms that a client may give to an ordinary request, of which most clients use one only: another `Accept`, a body in chunks, a message
//! whose bytes arrive in two pieces.
//! Source: RFC 9110, RFC 9112; basic/transports.

use super::http::{evidence, is_served, is_success, told};
use super::rule_definition::{AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::{Attempt, AttemptOutcome, ConversationView};
use mcproof_analysis::probes::{ACCEPT_FORM, CHUNKED_BODY, IN_ONE_PIECE, IN_PIECES, WIDE_NAME};
use mcproof_analysis::wording::excerpt;
use mcproof_client::is_gateway;
use mcproof_protocol::error_code::PARSE_ERROR;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "http-accept-is-a-list",
        area: Area::Http,
        requirement: "an `Accept` that lists both media types is accepted in any order, with weights, and without blanks",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Should,
            source: "https://www.rfc-editor.org/rfc/rfc9110#section-12.5.1",
        }],
        on: AppliesTo::Http,
        judge: Judge::Each(accept_is_a_list),
        why: "HTTP libraries and proxies join and order the values in their own way, so such a client can send nothing",
        remedy: "split `Accept` at its commas, cut each range at its first semicolon, and look for both media types",
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-accepts-chunked-body",
        area: Area::Http,
        requirement: "a body in the chunked transfer coding is read, or refused with status 411",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Should,
            source: "https://www.rfc-editor.org/rfc/rfc9112#section-7.1",
        }],
        on: AppliesTo::Http,
        judge: Judge::Each(chunked_body_is_read),
        why: "HTTP libraries and proxies that write a body before they know its length send chunks, so such a client can send nothing",
        remedy: "read bodies with an HTTP library, which knows both forms, or respond with 411 where `Content-Length` is missing",
        ..Rule::DEFAULT
    },
    Rule {
        id: "message-in-pieces-is-read",
        area: Area::Robustness,
        requirement: "a message that arrives in two pieces, cut within a character, is read like one that arrives at once",
        sources: &[
            RequirementSource { revisions: revisions::LEGACY, level: RequirementLevel::Must, source: "basic/transports" },
            RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Must, source: "basic/transports#messages" },
        ],
        judge: Judge::Together(message_in_pieces_is_read),
        why: "pipes and networks cut a longer message anywhere: it is lost, or its text is changed without an error",
        remedy: "collect the bytes of a whole message before decoding them, or use a decoder that keeps the rest of a character",
        sdks: &[("TypeScript", "`stream.setEncoding('utf8')` or `Buffer.concat(chunks).toString()` instead of `text += chunk`")],
        ..Rule::DEFAULT
    },
];

/// Why a refused weight counts one step less.
const WEIGHTS: &str = "few clients send weights, and some SDKs compare media types together with them";

/// Whether a status refuses the request itself, for a reason that another form of it would not have.
fn is_refusal(status: u16) -> bool {
    status >= 400 && !is_gateway(status) && ![401, 403, 404, 408, 429].contains(&status)
}

/// The first form has all at once; the others are tried where that is refused.
fn accept_is_a_list(conversation: &ConversationView<'_>) -> Judgment {
    let tried: Vec<Attempt<'_, '_>> = conversation.probes(ACCEPT_FORM).collect();
    let Some(all) = tried.first() else { return Judgment::NotTried("it was not tried".into()) };
    if !is_served(conversation) {
        return Judgment::Untestable("even a plain request was refused, so refusals are not conclusive".into());
    }
    match all.status() {
        Some(status) if is_success(status) => return Judgment::Pass,
        Some(status) if is_refusal(status) => {}
        _ => return Judgment::Untestable(format!("a request with another `Accept` got {}", told(all))),
    }
    let is_refused = |attempt: &&Attempt<'_, '_>| attempt.status().is_some_and(is_refusal);
    let mut refused: Vec<&Attempt<'_, '_>> = tried.iter().skip(1).filter(is_refused).collect();
    if refused.is_empty() {
        refused.push(all);
    }
    let accept = |attempt: &Attempt<'_, '_>| attempt.http.and_then(|http| http.request_header("accept")).unwrap_or_default().to_owned();
    let sentences = refused.iter().map(|attempt| format!("`Accept: {}` got {}", excerpt(accept(attempt)), told(attempt)));
    let message = sentences.collect::<Vec<_>>().join(", and ");
    let has_weights = refused.iter().all(|attempt| accept(attempt).contains(";q="));
    let violation = Violation::new(message, refused.iter().flat_map(|attempt| evidence(attempt)));
    Judgment::Broken(vec![Violation { tolerance: has_weights.then_some(WEIGHTS), ..violation }])
}

fn chunked_body_is_read(conversation: &ConversationView<'_>) -> Judgment {
    if conversation.is_over_http2() {
        return Judgment::Untestable("the server was reached over HTTP/2, which has no chunked transfer coding".into());
    }
    let tried: Vec<Attempt<'_, '_>> = conversation.probes(CHUNKED_BODY).collect();
    let Some(last) = tried.last() else { return Judgment::NotTried("it was not tried".into()) };
    if !is_served(conversation) {
        return Judgment::Untestable("even a plain request was refused, so refusals are not conclusive".into());
    }
    let is_unread = last.answer.code() == Some(PARSE_ERROR);
    match last.status() {
        Some(411) => Judgment::Pass,
        Some(status) if is_success(status) && !is_unread => Judgment::Pass,
        Some(status) if is_unread || is_refusal(status) => broken(format!("a body in chunks got {}", told(last)), last),
        None if tried.len() > 1 => broken("a body in chunks got no response".to_owned(), last),
        _ => Judgment::Untestable(format!("a body in chunks got {}", told(last))),
    }
}

fn broken(message: String, attempt: &Attempt<'_, '_>) -> Judgment {
    Judgment::Broken(vec![Violation::new(message, evidence(attempt))])
}

/// What became of a message in pieces, beside the same one as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reading {
    Same,
    /// Says how it differs.
    Other(String),
    /// There was no response.
    Lost,
    /// What came tells nothing.
    Unknown,
}

fn reading(whole: &Attempt<'_, '_>, pieces: &Attempt<'_, '_>) -> Reading {
    use AttemptOutcome::{Error, Gone, Result, Silence};
    let is_quoted = |answer: &AttemptOutcome<'_>| match answer {
        Result { value: said, .. } | Error { error: said, .. } => said.to_string().contains(WIDE_NAME),
        _ => false,
    };
    let is_same_code = pieces.answer.code() == whole.answer.code();
    match (&whole.answer, &pieces.answer) {
        (Result { .. } | Error { .. }, Silence | Gone) => Reading::Lost,
        (Result { .. }, Result { .. }) | (Error { .. }, Error { .. }) if is_same_code => {
            match is_quoted(&whole.answer) && !is_quoted(&pieces.answer) {
                true => Reading::Other(format!("its text came back changed{}", changed(&pieces.answer))),
                false => Reading::Same,
            }
        }
        (Result { .. } | Error { .. }, Result { .. } | Error { .. }) => Reading::Other(format!("it got {}", told(pieces))),
        (Result { .. } | Error { .. }, AttemptOutcome::Status { status, .. }) if is_refusal(*status) => {
            Reading::Other(format!("it got {}", told(pieces)))
        }
        _ => Reading::Unknown,
    }
}

/// The message of an error in which a text came back.
fn changed(answer: &AttemptOutcome<'_>) -> String {
    let AttemptOutcome::Error { error, .. } = answer else { return String::new() };
    error.get("message").and_then(serde_json::Value::as_str).map(|message| format!(": `{}`", excerpt(message))).unwrap_or_default()
}

/// What a conversation shows counts if the message was never read there; that no response came, if it happened twice.
fn message_in_pieces_is_read(all: &[&ConversationView<'_>]) -> Judgment {
    let (mut same, mut is_tried, mut others, mut lost) = (0, false, Vec::new(), Vec::new());
    for (position, conversation) in all.iter().enumerate() {
        let Some(whole) = conversation.probe(IN_ONE_PIECE) else { continue };
        let (mut is_read, mut differing, mut unanswered) = (false, Vec::new(), Vec::new());
        for pieces in conversation.probes(IN_PIECES) {
            is_tried = true;
            let violation = |how: &str| Violation {
                conversation: position,
                ..Violation::new(format!("a message arrived in two pieces, cut within a character, and {how}"), evidence(&pieces))
            };
            match reading(&whole, &pieces) {
                Reading::Same => is_read = true,
                Reading::Other(how) => differing.push(violation(&how)),
                Reading::Lost => unanswered.push(violation("it got no response")),
                Reading::Unknown => {}
            }
        }
        same += usize::from(is_read);
        if !is_read {
            others.append(&mut differing);
            lost.append(&mut unanswered);
        }
    }
    if lost.len() > 1 {
        others.append(&mut lost);
    }
    others.truncate(1);
    match is_tried {
        false => Judgment::NotTried("it was not tried".into()),
        true => Judgment::of(others, same, "no response came that could be compared with that to the whole message"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_analysis::example;

    #[test]
    fn only_the_refused_forms_of_accept_are_told() {
        let check = |statuses: &[(&str, u16)], expected: &[&str], is_tolerated: bool| {
            let forms = statuses.iter().map(|(accept, status)| format!("@ accept-form\n> POST /mcp accept: {accept}\n< {status}\n"));
            let text = format!("@ plain\n> POST /mcp\n< 200\n{}", forms.collect::<String>());
            match accept_is_a_list(&ConversationView::new(&example::read(&text, "http", "2025-11-25"))) {
                Judgment::Broken(violations) => {
                    let message = &violations[0].message;
                    assert_eq!(
                        (message.matches(" got status ").count(), violations[0].tolerance.is_some()),
                        (expected.len(), is_tolerated)
                    );
                    assert!(expected.iter().all(|accept| message.contains(&format!("`Accept: {accept}` got"))), "{message}");
                }
                judged => assert_eq!(matches!(judged, Judgment::Pass), statuses[0].1 < 400, "{judged:?}"),
            }
        };
        let (all, order, weight, blank) = ("b;q=0.9,a", "b, a", "a, b;q=0.9", "a,b");
        check(&[(all, 200)], &[], false);
        check(&[(all, 429)], &[], false);
        check(&[(all, 404)], &[], false);
        check(&[(all, 406), (order, 406), (weight, 200), (blank, 200)], &[order], false);
        check(&[(all, 400), (order, 200), (weight, 400), (blank, 200)], &[weight], true);
        check(&[(all, 406), (order, 406), (weight, 406), (blank, 406)], &[order, weight, blank], false);
        check(&[(all, 500), (order, 200), (weight, 200), (blank, 200)], &[all], true);
    }

    #[test]
    fn a_body_in_chunks_is_read_or_its_length_is_demanded() {
        let check = |rest: &str, expected: &str| {
            let text = format!("@ plain\n> POST /mcp\n< 200\n{rest}");
            let judged = chunked_body_is_read(&ConversationView::new(&example::read(&text, "http", "2025-11-25")));
            assert!(format!("{judged:?}").starts_with(expected), "{rest} {judged:?}");
        };
        let request = r#"> {"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        let tried = |response: &str| format!("@ chunked-body\n> POST /mcp transfer-encoding: chunked\n{request}\n< {response}");
        for (response, expected) in
            [("200", "Pass"), ("411", "Pass"), ("400", "Broken"), ("501", "Broken"), ("502", "Untestable"), ("429", "Untestable")]
        {
            check(&tried(response), expected);
        }
        let unread = r#"200 content-type: application/json
            < {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#;
        check(&tried(unread), "Broken");
        // For one silence a busy machine may be to blame.
        let silent = format!("@ chunked-body! \n> POST /mcp transfer-encoding: chunked\n{request}\n");
        check(&silent, "Untestable");
        check(&silent.repeat(2), "Broken");
        check(&format!("{silent}{}", tried("200")), "Pass");
        // Over HTTP/2 it would go out without chunks.
        for (http, expected) in [("HTTP/2", "Untestable"), ("HTTP/1.1", "Pass")] {
            check(&format!("! note connected to a.example:443: TLS 1.3, {http}\n{}", tried("200")), expected);
        }
        check("! note connected to a.example:443: TLS 1.3, HTTP/2", "Untestable");
    }

    #[test]
    fn a_message_in_pieces_is_compared_with_the_whole_one() {
        let call = |id: u32| format!(r#"> {{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{WIDE_NAME}"}}}}"#);
        let error =
            |id: u32, code: i64, text: &str| format!(r#"< {{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{text}"}}}}"#);
        let check = |whole: &str, pieces: &[&str], expected: &str| {
            let mut text = format!("@ in-one-piece\n{}\n{whole}\n", call(1));
            for response in pieces {
                let mark = if response.is_empty() { "@ in-pieces! " } else { "@ in-pieces" };
                text += &format!("{mark}\n{}\n{response}\n", call(2));
            }
            let take = example::read(&text, "stdio", "2025-11-25");
            let judged = message_in_pieces_is_read(&[&ConversationView::new(&take)]);
            assert!(format!("{judged:?}").starts_with(expected), "{text} {judged:?}");
        };
        let quoting = error(1, -32602, &format!("Unknown tool: {WIDE_NAME}"));
        let silent = error(1, -32602, "Unknown tool");
        check(&quoting, &[&error(2, -32602, &format!("Unknown tool: {WIDE_NAME}"))], "Pass");
        check(&quoting, &[&error(2, -32602, "Unknown tool: mcproof-\u{fffd}\u{fffd}具")], "Broken");
        check(&silent, &[&error(2, -32602, "Unknown tool")], "Pass");
        check(&silent, &[&error(2, -32700, "Parse error")], "Broken");
        check(&silent, &[r#"< {"jsonrpc":"2.0","id":2,"result":{}}"#], "Broken");
        check(&silent, &[&error(2, -32020, "Header mismatch")], "Broken");
        // What happens once has another cause.
        check(&silent, &[&error(2, -32603, "Internal error"), &error(2, -32602, "Unknown tool")], "Pass");
        check(&silent, &[""], "Untestable");
        check("", &[&error(2, -32602, "Unknown tool")], "Untestable");
    }
}
