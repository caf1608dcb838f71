//! Responses as HTTP itself wants them: a head that can be read, with each header once.
//! Source: RFC 9112 (HTTP/1.1), RFC 9110 (HTTP semantics).

use super::connections::{is_abandoned, is_responded_later};
use super::fields::is_token;
use super::rule_definition::{AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::{ConversationView, HttpExchange};
use mcproof_analysis::wording::excerpt;
use mcproof_client::transport::NOT_HTTP;
use std::collections::BTreeMap;
use std::time::Duration;

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
        on: AppliesTo::Web,
        judge: Judge::Each(responses_are_http),
        why: "the HTTP library of the client refuses the whole response, and reports only that parsing failed",
        remedy: "let an HTTP library write the head of the response, and check the proxies between it and the client",
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-request-gets-response",
        area: Area::Http,
        requirement: "each GET, DELETE and OPTIONS gets a response, even if it is an error status",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Must,
            source: "https://www.rfc-editor.org/rfc/rfc9110#section-3.4",
        }],
        on: AppliesTo::Web,
        judge: Judge::Each(requests_get_responses),
        why: "the client waits until its timeout: a page of a browser for its preflight, a host for its shutdown",
        remedy: "respond to methods that are not supported with status 405, and send the head of an event stream before its first event",
        sdks: &[("TypeScript", "`response.writeHead(200, headers).flushHeaders()`")],
        ..Rule::DEFAULT
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
        on: AppliesTo::Web,
        judge: Judge::Each(headers_come_once),
        why: "one client takes the first value, another one joins both with a comma, browsers refuse a double \
              `Access-Control-Allow-Origin`, and proxies refuse a double `Content-Length`",
        remedy: "set the header in one place: the framework, a middleware and the proxy may each add it",
        ..Rule::DEFAULT
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
        on: AppliesTo::Web,
        judge: Judge::Each(lists_are_of_tokens),
        why: "browsers and caches drop the whole header, so a page cannot read an allowed response, or gets the response of another page; a missing line end also hides the next header",
        remedy: "put commas between the names, and let an HTTP library write the head of the response",
        ..Rule::DEFAULT
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

/// How long the head of a response may take that nothing has to be worked out for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Why a GET without a head counts one step less.
const HEAD_WITH_FIRST_EVENT: &str = "some servers send the head of a stream together with its first event, and clients do not wait for it";

/// POSTs are judged by the messages in them.
fn requests_get_responses(conversation: &ConversationView<'_>) -> Judgment {
    let Some(last) = conversation.frames().last() else { return Judgment::Untestable(NO_RESPONSE.into()) };
    let (mut seen, mut wrong) = (0, BTreeMap::<&str, Violation>::new());
    for exchange in conversation.exchanges.values() {
        if exchange.method == "POST" || is_abandoned(conversation, exchange) {
            continue;
        }
        seen += usize::from(exchange.response.is_some());
        let is_overdue = exchange.response.is_none()
            && exchange.end.is_none()
            && conversation.elapsed(exchange.request.id, last.id).is_some_and(|elapsed| elapsed >= PATIENCE)
            && is_responded_later(conversation, exchange);
        if is_overdue {
            wrong.entry(exchange.method).or_insert_with(|| {
                let violation = Violation::new(format!("a {} got no response", excerpt(exchange.method)), [exchange.request.id]);
                Violation { tolerance: (exchange.method == "GET").then_some(HEAD_WITH_FIRST_EVENT), ..violation }
            });
        }
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

/// The transfer codings that have a name (RFC 9112, 7).
const TRANSFER_CODINGS: [&str; 6] = ["chunked", "compress", "deflate", "gzip", "x-compress", "x-gzip"];

fn lists_are_of_tokens(conversation: &ConversationView<'_>) -> Judgment {
    let mut seen = 0;
    let mut wrong: BTreeMap<&str, Violation> = BTreeMap::new();
    for (exchange, response) in conversation.exchanges.values().filter_map(|exchange| Some((exchange, exchange.response?))) {
        seen += 1;
        for name in LISTS_OF_TOKENS {
            let values = response.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str());
            let elements = values.flat_map(|value| value.split(',')).map(|element| element.trim_matches([' ', '\t']));
            if let Some(element) = elements.filter(|element| !element.is_empty()).find(|element| !is_token(element)) {
                let told = format!("`{name}` has `{}` in its list", excerpt(element));
                wrong.entry(name).or_insert_with(|| Violation::new(told, exchange.heads()));
            }
        }
        if let Some((name, told)) =
            cache_directive_flaw(exchange).or_else(|| transfer_coding_flaw(exchange)).or_else(|| buffering_flaw(exchange))
        {
            wrong.entry(name).or_insert_with(|| Violation::new(told, exchange.heads()));
        }
    }
    Judgment::of(wrong.into_values().collect(), seen, NO_RESPONSE)
}

/// A directive is a name, or a name and a value (RFC 9111, 5.2).
fn cache_directive_flaw(exchange: &HttpExchange<'_>) -> Option<(&'static str, String)> {
    let value = exchange.header("cache-control")?;
    let names = value.split(',').map(|directive| directive.split('=').next().unwrap_or_default().trim_matches([' ', '\t']));
    // The values of some directives are quoted lists.
    let wrong = names.filter(|_| !value.contains('"')).find(|name| !name.is_empty() && !is_token(name))?;
    Some(("cache-control", format!("`cache-control` has `{}` in its list", excerpt(wrong))))
}

/// A value that is neither of the two has swallowed the next header.
fn buffering_flaw(exchange: &HttpExchange<'_>) -> Option<(&'static str, String)> {
    let value = exchange.header("x-accel-buffering").filter(|value| value.contains(':'))?;
    Some(("x-accel-buffering", format!("`x-accel-buffering` is `{}`: neither `yes` nor `no`", excerpt(value))))
}

fn transfer_coding_flaw(exchange: &HttpExchange<'_>) -> Option<(&'static str, String)> {
    let mut codings = exchange.header("transfer-encoding")?.split(',').map(|coding| coding.trim().to_ascii_lowercase());
    let unknown = codings.find(|coding| !coding.is_empty() && !TRANSFER_CODINGS.contains(&coding.as_str()))?;
    Some(("transfer-encoding", format!("`transfer-encoding` has the unknown coding `{}`", excerpt(&unknown))))
}
