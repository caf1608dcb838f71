//! Headers whose meaning HTTP itself defines, wherever a response has them or has to have them.
//! Source: RFC 9110 (HTTP semantics).

use super::rule_definition::{AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::{ConversationView, HttpExchange};
use mcproof_analysis::wording::excerpt;
use mcproof_client::transport::{INVALID_CODING, UNSUPPORTED_CODING};
use std::collections::BTreeMap;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "http-405-has-allow",
        area: Area::Http,
        requirement: "a response with status 405 has the header `Allow` with the methods that are supported",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            // A MUST of HTTP, not of MCP, whose clients decide by the status.
            level: RequirementLevel::Portability,
            source: "https://www.rfc-editor.org/rfc/rfc9110#section-15.5.6",
        }],
        on: AppliesTo::Web,
        judge: Judge::Each(refusals_name_methods),
        why: "HTTP requires the header: gateways, test tools and people learn from it which methods work, and without it, a 405 looks like a \
              wrong URL; clients of MCP do not read it",
        remedy: "send `Allow` with each 405, such as `Allow: POST`",
        sdks: &[("TypeScript", "`app.get('/mcp', (_, response) => response.set('Allow', 'POST').status(405).end())`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-content-type-is-media-type",
        area: Area::Http,
        requirement: "the value of `Content-Type` is a media type: a type, a slash, a subtype, and parameters after semicolons",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Must,
            source: "https://www.rfc-editor.org/rfc/rfc9110#section-8.3.1",
        }],
        on: AppliesTo::Web,
        judge: Judge::Each(content_types_are_media_types),
        why: "strict clients and proxies refuse the whole response; a missing line end also hides the next header",
        remedy: "write `type/subtype`, such as `text/plain; charset=utf-8`, and let an HTTP library write the head of the response",
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-content-encoding-is-right",
        area: Area::Http,
        requirement: "a body is in the coding that its `Content-Encoding` names, which is one that the client takes",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Must,
            source: "https://www.rfc-editor.org/rfc/rfc9110#section-8.4",
        }],
        on: AppliesTo::Web,
        judge: Judge::Each(codings_are_right),
        why: "a client that cannot decode a body gets no message from it",
        remedy: "remove `Content-Encoding`, or compress the body in that way, for clients that name the coding in `Accept-Encoding`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "http-charset-is-utf-8",
        area: Area::Http,
        requirement: "the type of an event stream or of JSON names no charset, or `utf-8`",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Must,
            source: "https://html.spec.whatwg.org/multipage/iana.html#text/event-stream",
        }],
        on: AppliesTo::Web,
        judge: Judge::Each(charsets_are_utf_8),
        why: "messages are UTF-8, and the HTTP libraries of Python, Java and .NET decode a body by the charset of its type: with UTF-16 the client \
              gets no message, with ISO-8859-1 wrong letters",
        remedy: "leave the charset out, or set it to `utf-8`; some frameworks add another one by default",
        sdks: &[("Java", "`response.setCharacterEncoding(\"UTF-8\")` before the writer is used: a servlet's default is ISO-8859-1")],
        ..Rule::DEFAULT
    },
];

const NO_RESPONSE: &str = "no HTTP response came";

fn refusals_name_methods(conversation: &ConversationView<'_>) -> Judgment {
    let refusals: Vec<&HttpExchange<'_>> = conversation.exchanges.values().filter(|exchange| exchange.status() == Some(405)).collect();
    if refusals.is_empty() {
        return Judgment::NotApplicable("no request got status 405".into());
    }
    let without = refusals.iter().find(|exchange| exchange.header("allow").is_none());
    let told = |exchange: &&HttpExchange<'_>| {
        Violation::new(format!("the response to the {} has status 405 and no `Allow`", excerpt(exchange.method)), exchange.heads())
    };
    Judgment::from_violations(without.map(told).into_iter().collect())
}

fn content_types_are_media_types(conversation: &ConversationView<'_>) -> Judgment {
    // The type of what clients have to read is judged by http-response-content-type.
    let is_beside = |exchange: &&HttpExchange<'_>| exchange.status().is_some_and(|status| status != 200);
    let responses: Vec<&HttpExchange<'_>> = conversation.exchanges.values().filter(is_beside).collect();
    let wrong = responses.iter().find_map(|exchange| {
        let value = exchange.header("content-type").map(str::trim).filter(|value| !value.is_empty())?;
        let status = exchange.status()?;
        (!is_media_type(value)).then(|| {
            let told = format!("the response to the {} has status {status} and `Content-Type: {}`", exchange.method, excerpt(value));
            Violation::new(told, exchange.heads())
        })
    });
    Judgment::of(wrong.into_iter().collect(), responses.len(), NO_RESPONSE)
}

/// The content codings that are registered besides gzip, deflate and br, which every client takes (IANA, HTTP parameters).
const RARE_CODINGS: [&str; 8] = ["aes128gcm", "compress", "dcb", "dcz", "exi", "pack200-gzip", "x-compress", "zstd"];

/// Why one of those counts one step less.
const NOT_EXCLUDED: &str = "a client that names no codings excludes none (RFC 9110, section 12.5.3)";

fn codings_are_right(conversation: &ConversationView<'_>) -> Judgment {
    let encoded = |exchange: &&HttpExchange<'_>| exchange.header("content-encoding").is_some();
    let encoded: Vec<&HttpExchange<'_>> = conversation.exchanges.values().filter(encoded).collect();
    let wrong = encoded.iter().find_map(|exchange| {
        let (end, reason) = exchange.end.and_then(|(end, reason)| Some((end, reason?)))?;
        let coding = exchange.header("content-encoding").unwrap_or_default().trim();
        let (flaw, tolerance) = match reason {
            _ if reason.starts_with(UNSUPPORTED_CODING) => {
                let is_rare = RARE_CODINGS.iter().any(|known| coding.eq_ignore_ascii_case(known));
                ("which the client did not ask for".to_owned(), is_rare.then_some(NOT_EXCLUDED))
            }
            _ if reason.starts_with(INVALID_CODING) => (format!("and {reason}"), None),
            _ => return None,
        };
        let told = format!("the response to the {} has `Content-Encoding: {}`, {flaw}", excerpt(exchange.method), excerpt(coding));
        let frames = exchange.heads().into_iter().chain(exchange.body.map(|(frame, _)| frame.id)).chain([end.id]);
        Some(Violation { tolerance, ..Violation::new(told, frames) })
    });
    match encoded.is_empty() {
        true => Judgment::NotApplicable("no response has a `Content-Encoding`".into()),
        false => Judgment::from_violations(wrong.into_iter().collect()),
    }
}

/// Why a charset of JSON counts one step less.
const NO_MEANING: &str = "a charset has no meaning for JSON (RFC 8259, section 11), and many clients ignore it";

/// Why this name does.
const ALIAS: &str = "most clients take `utf8` for `utf-8`";

fn charsets_are_utf_8(conversation: &ConversationView<'_>) -> Judgment {
    let (mut seen, mut wrong) = (0, BTreeMap::<bool, Violation>::new());
    for exchange in conversation.exchanges.values() {
        let kind = exchange.media_type();
        let is_stream = kind.as_deref() == Some("text/event-stream");
        if !is_stream && (kind.as_deref() != Some("application/json") || exchange.method != "POST") {
            continue;
        }
        seen += 1;
        let value = exchange.header("content-type").unwrap_or_default();
        let Some(charset) = charset(value).filter(|charset| !charset.eq_ignore_ascii_case("utf-8")) else { continue };
        let tolerance = match charset.eq_ignore_ascii_case("utf8") {
            true => Some(ALIAS),
            false => (!is_stream).then_some(NO_MEANING),
        };
        let told = format!("the response to the {} has `Content-Type: {}`", excerpt(exchange.method), excerpt(value));
        wrong.entry(is_stream).or_insert_with(|| Violation { tolerance, ..Violation::new(told, exchange.heads()) });
    }
    Judgment::of(wrong.into_values().collect(), seen, "no response with a message came")
}

/// The charset that a media type names, without its quotation marks.
fn charset(media_type: &str) -> Option<&str> {
    let mut parameters = media_type.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let (_, value) = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))?;
    Some(value.trim().trim_matches('"'))
}

/// RFC 9110, 8.3.1. A quoted value may hold anything.
fn is_media_type(value: &str) -> bool {
    let mut parts = value.split(';');
    let is_kind =
        parts.next().and_then(|kind| kind.trim().split_once('/')).is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype));
    is_kind
        && (value.contains('"')
            || parts
                .map(str::trim)
                .filter(|parameter| !parameter.is_empty())
                .all(|parameter| parameter.split_once('=').is_some_and(|(name, value)| is_token(name) && is_token(value))))
}

/// RFC 9110, 5.6.2.
pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_analysis::example;

    #[test]
    fn a_charset_is_that_of_messages() {
        let check = |method: &str, kind: &str, expected: Option<bool>| {
            let text = format!("> {method} /mcp\n< 200 content-type: {kind}");
            let recorded = example::read(&text, "http", "2025-11-25");
            let is_tolerated = match charsets_are_utf_8(&ConversationView::new(&recorded)) {
                Judgment::Broken(violations) => Some(violations[0].tolerance.is_some()),
                _ => None,
            };
            assert_eq!(is_tolerated, expected, "{method} {kind}");
        };
        check("GET", "text/event-stream", None);
        check("GET", "text/event-stream;charset=UTF-8", None);
        check("GET", "text/event-stream; a=b; charset=\"utf-8\"", None);
        check("GET", "text/html; charset=latin1", None);
        check("GET", "text/event-stream; Charset=utf-16", Some(false));
        check("POST", "text/event-stream; charset=\"ISO-8859-1\"", Some(false));
        check("POST", "text/event-stream; charset=utf8", Some(true));
        check("POST", "application/json; charset=iso-8859-1", Some(true));
        check("POST", "application/json; charset=utf-8", None);
        // A document beside the protocol.
        check("GET", "application/json; charset=iso-8859-1", None);
    }

    #[test]
    fn media_types_have_a_type_a_subtype_and_parameters() {
        for value in ["text/plain", "application/json; charset=utf-8", "text/html;charset=UTF-8;", "a/b; c=\"d; e: f\"", "image/svg+xml"] {
            assert!(is_media_type(value), "{value}");
        }
        for value in ["text", "text/plainallow: GET", "/json", "text/", "application/json charset=utf-8", "text/plain; charset"] {
            assert!(!is_media_type(value), "{value}");
        }
    }
}
