//! Headers whose meaning HTTP itself defines, wherever a response has them or has to have them.
//! Source: RFC 9110 (HTTP semantics).

use super::rule_definition::{AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::{ConversationView, HttpExchange};
use mcproof_analysis::wording::excerpt;

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
