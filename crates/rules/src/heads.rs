//! Responses as HTTP itself wants them: a head that can be read, with each header once.
//! Source: RFC 9112 (HTTP/1.1), RFC 9110 (HTTP semantics).

use super::ConversationView;
use super::rule_definition::{Area, Judge, Judgment, On, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use mcproof_analysis::wording::excerpt;
use mcproof_client::transport::NOT_HTTP;
use std::collections::BTreeMap;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "http-response-is-well-formed",
        area: Area::Http,
        requirement: "each response has a status line, headers with a name and a colon, lengths that are numbers, and a blank line after them",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Must,
            source: "https://www.rfc-editor.org/rfc/rfc9112#section-2.1",
        }],
        on: On::Web,
        tolerance: None,
        judge: Judge::Each(responses_are_http),
        why: "the HTTP library of the client refuses the whole response, and reports only that parsing failed",
        remedy: "let an HTTP library write the head of the response, and check the proxies between it and the client",
        sdks: &[],
        bad: r#"
            > POST /mcp
            > {"jsonrpc":"2.0","id":1,"method":"tools/list"}
            ! broken the response is not valid HTTP: invalid HTTP header parsed"#,
        good: r#"
            > POST /mcp
            > {"jsonrpc":"2.0","id":1,"method":"tools/list"}
            < 200 content-type: application/json"#,
    },
    Rule {
        id: "http-header-is-not-repeated",
        area: Area::Http,
        requirement: "a response has each header once, unless its value is a list",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Must,
            source: "https://www.rfc-editor.org/rfc/rfc9110#section-5.3",
        }],
        on: On::Web,
        tolerance: None,
        judge: Judge::Each(headers_come_once),
        why: "one client takes the first value, another one joins both with a comma, browsers refuse a double \
              `Access-Control-Allow-Origin`, and proxies refuse a double `Content-Length`",
        remedy: "set the header in one place: the framework, a middleware and the proxy may each add it",
        sdks: &[],
        bad: r"
            > POST /mcp
            < 200 content-type: application/json | content-type: application/json",
        good: r"
            > POST /mcp
            < 200 content-type: application/json | vary: origin | vary: accept",
    },
    Rule {
        id: "http-list-header-is-well-formed",
        area: Area::Http,
        requirement: "a header with a list of names or methods separates them with commas",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Must,
            source: "https://www.rfc-editor.org/rfc/rfc9110#section-2.2",
        }],
        on: On::Web,
        tolerance: None,
        judge: Judge::Each(lists_are_of_tokens),
        why: "browsers and caches drop the whole header, so a page cannot read an allowed response, or gets the response of another page; a missing line end also hides the next header",
        remedy: "put commas between the names, and let an HTTP library write the head of the response",
        sdks: &[],
        bad: r"
            > POST /mcp
            < 200 content-type: application/json | vary: origin; accept",
        good: r"
            > POST /mcp
            < 200 content-type: application/json | vary: origin, accept",
    },
];

const NO_RESPONSE: &str = "no HTTP response came";

fn responses_are_http(conversation: &ConversationView<'_>) -> Judgment {
    let mut seen = 0;
    let mut wrong: BTreeMap<&str, Violation> = BTreeMap::new();
    for exchange in conversation.exchanges.values() {
        seen += usize::from(exchange.response.is_some());
        let Some((end, Some(why))) = exchange.end.filter(|(_, why)| why.is_some_and(|why| why.starts_with(NOT_HTTP))) else { continue };
        let message = || serde_json::from_slice::<serde_json::Value>(exchange.request_body).ok();
        let method = message().and_then(|message| Some(format!(" of `{}`", excerpt(message.get("method")?.as_str()?))));
        let told = format!("upon the {}{}, {why}", exchange.method, method.unwrap_or_default());
        wrong.entry(why).or_insert_with(|| Violation::new(told, [exchange.request.id, end.id]));
    }
    Judgment::of(wrong.into_values().collect(), seen, NO_RESPONSE)
}

/// Headers with one value, and `transfer-encoding`, in which nothing may stand twice that servers send.
const SINGLE: [&str; 9] = [
    "content-type",
    "content-length",
    "transfer-encoding",
    "mcp-session-id",
    "mcp-protocol-version",
    "location",
    "retry-after",
    "access-control-allow-origin",
    "access-control-allow-credentials",
];

fn headers_come_once(conversation: &ConversationView<'_>) -> Judgment {
    let mut seen = 0;
    let mut wrong: BTreeMap<&str, Violation> = BTreeMap::new();
    for (exchange, response) in conversation.exchanges.values().filter_map(|exchange| Some((exchange, exchange.response?))) {
        seen += 1;
        for name in SINGLE {
            let values: Vec<&str> =
                response.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str()).collect();
            if let [first, .., last] = values[..] {
                let told = format!("a response has `{name}` {} times: `{}` and `{}`", values.len(), excerpt(first), excerpt(last));
                wrong.entry(name).or_insert_with(|| Violation::new(told, exchange.heads()));
            }
        }
    }
    Judgment::of(wrong.into_values().collect(), seen, NO_RESPONSE)
}

/// Headers whose value is a list of tokens (RFC 9110, 5.6.1 and 5.6.2).
const LISTS_OF_TOKENS: [&str; 5] =
    ["access-control-allow-headers", "access-control-allow-methods", "access-control-expose-headers", "allow", "vary"];

fn lists_are_of_tokens(conversation: &ConversationView<'_>) -> Judgment {
    let mut seen = 0;
    let mut wrong: BTreeMap<&str, Violation> = BTreeMap::new();
    for (exchange, response) in conversation.exchanges.values().filter_map(|exchange| Some((exchange, exchange.response?))) {
        seen += 1;
        for name in LISTS_OF_TOKENS {
            let values = response.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str());
            let elements = values.flat_map(|value| value.split(',')).map(|element| element.trim_matches([' ', '\t']));
            if let Some(element) = elements.filter(|element| !element.is_empty()).find(|element| !element.bytes().all(is_of_token)) {
                let told = format!("`{name}` has `{}` in its list", excerpt(element));
                wrong.entry(name).or_insert_with(|| Violation::new(told, exchange.heads()));
            }
        }
    }
    Judgment::of(wrong.into_values().collect(), seen, NO_RESPONSE)
}

/// RFC 9110, 5.6.2.
fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
