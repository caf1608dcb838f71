//! Headers of the modern era that mirror the body of a request.
//! Source: 2026-07-28, basic/transports/streamable-http, request metadata.

use super::http::{evidence, told, varied};
use super::modern::{ExpectedRefusal, flaw_of, supports_legacy};
use super::rule_definition::{AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::{Attempt, AttemptOutcome, ConversationView};
use mcproof_protocol::{error_code, methods};
use serde_json::Value;

const fn must(source: &'static str) -> RequirementSource {
    RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Must, source }
}

const VALIDATION: &[RequirementSource] = &[must("basic/transports/streamable-http#server-validation")];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "header-version-is-checked",
        area: Area::Modern,
        requirement: "a request whose `MCP-Protocol-Version` is missing or differs from its `_meta` is refused with status 400 and error -32020",
        sources: VALIDATION,
        on: AppliesTo::Http,
        judge: Judge::Each(version_is_checked),
        why: "a gateway routes by the header and the server acts on the body; an attacker who makes them differ bypasses the gateway",
        remedy: "compare the header with `io.modelcontextprotocol/protocolVersion` before the version itself is checked",
        ..Rule::DEFAULT
    },
    Rule {
        id: "header-method-is-checked",
        area: Area::Modern,
        requirement: "a request whose `Mcp-Method` is missing or differs from its method is refused with status 400 and error -32020",
        sources: VALIDATION,
        on: AppliesTo::Http,
        judge: Judge::Each(|conversation| mismatches(conversation, "header-method", "Mcp-Method")),
        why: "a gateway that allows methods by the header lets every other method through",
        remedy: "compare the header with `method`, including upper and lower case",
        ..Rule::DEFAULT
    },
    Rule {
        id: "header-name-is-checked",
        area: Area::Modern,
        requirement: "a request whose `Mcp-Name` is missing or differs from the name or URI in its body is refused with status 400 and error -32020",
        sources: VALIDATION,
        on: AppliesTo::Http,
        judge: Judge::Each(|conversation| mismatches(conversation, "header-name", "Mcp-Name")),
        why: "a gateway that allows tools by the header lets every other tool through",
        remedy: "compare the decoded header with `params.name`, for `resources/read` with `params.uri`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "header-names-are-case-insensitive",
        area: Area::Modern,
        requirement: "header names are case-insensitive",
        sources: &[
            RequirementSource {
                revisions: revisions::SESSIONS,
                level: RequirementLevel::Must,
                source: "https://www.rfc-editor.org/rfc/rfc9110#section-5.1",
            },
            must("basic/transports/streamable-http#case-sensitivity"),
        ],
        on: AppliesTo::Http,
        judge: Judge::Each(names_ignore_case),
        why: "clients and proxies write them in either case, and HTTP/2 only in lower case",
        remedy: "look headers up with the functions of the HTTP library, or convert their names to lower case first",
        ..Rule::DEFAULT
    },
    Rule {
        id: "header-values-are-trimmed",
        area: Area::Modern,
        requirement: "spaces around a header value are not part of it",
        sources: &[must("https://www.rfc-editor.org/rfc/rfc9110#section-5.5")],
        on: AppliesTo::Http,
        judge: Judge::Each(|conversation| accepted(conversation, "header-spaces", "a header value with spaces around it")),
        why: "clients and proxies may send them, and every other HTTP implementation ignores them",
        remedy: "trim spaces and tabs before values are compared",
        ..Rule::DEFAULT
    },
    Rule {
        id: "header-base64-is-decoded",
        area: Area::Modern,
        requirement: "an `Mcp-Name` in the form `=?base64?…?=` is decoded before it is compared, and any other is not",
        sources: &[must("basic/transports/streamable-http#value-encoding")],
        on: AppliesTo::Http,
        judge: Judge::Each(|conversation| accepted(conversation, "header-base64", "an `Mcp-Name`")),
        why: "names and URIs with non-ASCII characters can be sent only in this form",
        remedy: "decode values that begin with `=?base64?` and end with `?=`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "header-params-are-checked",
        area: Area::Modern,
        requirement: "a call whose `Mcp-Param-…` headers differ from its arguments is refused with status 400 and error -32020",
        sources: &[must("basic/transports/streamable-http#server-behavior-for-custom-headers")],
        on: AppliesTo::Http,
        judge: Judge::Each(parameters_are_checked),
        why: "a gateway that routes by tenant or region reads the header, while the tool uses the argument",
        remedy: "compare each header that `x-mcp-header` names with its argument, decoded if it is in Base64; expect none where there is no argument",
        ..Rule::DEFAULT
    },
    Rule {
        id: "header-param-numbers-are-compared",
        area: Area::Modern,
        requirement: "a whole number in an `Mcp-Param-…` header is compared as a number, so that `42.0` is 42",
        sources: &[RequirementSource {
            revisions: revisions::MODERN,
            level: RequirementLevel::Should,
            source: "basic/transports/streamable-http#server-validation",
        }],
        on: AppliesTo::Http,
        judge: Judge::Each(numbers_are_compared),
        why: "languages write the same number in different ways, so a correct call is refused",
        remedy: "read the header as a number where the argument is one, and compare the two numbers",
        ..Rule::DEFAULT
    },
];

const MISMATCH: ExpectedRefusal = ExpectedRefusal { code: error_code::HEADER_MISMATCH, status: 400 };

/// Wrong headers cannot be judged on a server that does not serve requests with the right ones.
fn without_a_right_one(conversation: &ConversationView<'_>) -> Option<Judgment> {
    match conversation.probe("headers-right") {
        None => Some(Judgment::Untestable("headers were not tried".into())),
        Some(attempt) if attempt.answer.code() == Some(error_code::METHOD_NOT_FOUND) => None,
        Some(attempt) => match attempt.answer {
            AttemptOutcome::Result { .. } => None,
            answer => Some(Judgment::Untestable(format!("a request with the right headers got {}", answer.describe()))),
        },
    }
}

/// Whether it was refused with the same wrong code as another `Mcp-Method`, which is reported only there.
fn is_refused_like_a_method(conversation: &ConversationView<'_>, attempt: &Attempt<'_, '_>) -> bool {
    let method = conversation.probes("header-method").find(|method| method.subject() == "different");
    attempt.probed.probe != "header-method"
        && method.is_some_and(|method| {
            attempt.answer.code().is_some() && (attempt.answer.code(), attempt.status()) == (method.answer.code(), method.status())
        })
}

/// Probes with the right headers, in whatever form.
const RIGHT: [&str; 5] = ["headers-right", "header-case", "header-spaces", "header-base64", "header-param-right"];

/// Whether requests of its method fail with the right headers as well: what a wrong one gets says nothing of headers.
fn is_never_served(conversation: &ConversationView<'_>, attempt: &Attempt<'_, '_>) -> bool {
    let wanted = attempt.request.and_then(|request| request.method()).filter(|method| *method != methods::TOOLS_LIST);
    let is_same = |right: &Attempt<'_, '_>| right.request.and_then(|request| request.method()) == wanted;
    let right: Vec<_> = RIGHT.iter().flat_map(|probe| conversation.probes(probe)).filter(is_same).collect();
    let fails = |right: &Attempt<'_, '_>| match right.answer {
        AttemptOutcome::Result { .. } => false,
        AttemptOutcome::Error { .. } => right.answer.code() == Some(error_code::METHOD_NOT_FOUND),
        _ => true,
    };
    !right.is_empty() && right.iter().all(fails)
}

/// Whether a subscription began, which has no response before its end.
fn is_opened(attempt: &Attempt<'_, '_>) -> bool {
    let is_listen = attempt.request.and_then(|request| request.method()) == Some(methods::SUBSCRIPTIONS_LISTEN);
    is_listen && attempt.status().is_some_and(super::http::is_success)
}

/// The probe in words: the method, and what was wrong with the header.
fn described(attempt: &Attempt<'_, '_>, header: &str) -> String {
    let method = attempt.request.and_then(|request| request.method()).unwrap_or_default();
    match attempt.probed.subject.as_deref() {
        Some("absent") => format!("`{method}` without `{header}`"),
        Some(how) => format!("`{method}` with an `{header}` that is {how}"),
        None => format!("`{method}` with a wrong `{header}`"),
    }
}

/// Each probe of this name has to be refused as a mismatch.
fn mismatches(conversation: &ConversationView<'_>, probe: &str, header: &str) -> Judgment {
    if let Some(judgment) = without_a_right_one(conversation) {
        return judgment;
    }
    let (mut seen, mut violations) = (0, Vec::new());
    for attempt in conversation.probes(probe).filter(|attempt| !is_never_served(conversation, attempt)) {
        let flaw = flaw_of(&attempt, MISMATCH).or_else(|| is_opened(&attempt).then(|| Some("an event stream".to_owned())));
        let Some(flaw) = flaw else { continue };
        // A flaw with lists is a flaw with every method.
        let is_told = attempt.probed.probe == "header-method"
            && !violations.is_empty()
            && attempt.request.and_then(|request| request.method()) != Some(methods::TOOLS_LIST);
        let flaw = flaw.filter(|_| !is_refused_like_a_method(conversation, &attempt) && !is_told);
        seen += 1;
        violations.extend(flaw.map(|flaw| Violation::new(format!("{} got {flaw}", described(&attempt, header)), attempt.frames())));
    }
    Judgment::of(violations, seen, &format!("no request with a wrong `{header}` got a response"))
}

fn version_is_checked(conversation: &ConversationView<'_>) -> Judgment {
    let header = "MCP-Protocol-Version";
    if let Some(judgment) = without_a_right_one(conversation) {
        return judgment;
    }
    let supports_legacy = supports_legacy(conversation);
    let (mut seen, mut violations) = (0, Vec::new());
    for attempt in conversation.probes("header-version") {
        let Some(flaw) = flaw_of(&attempt, MISMATCH) else { continue };
        // Streamable HTTP, protocol version header: a server of earlier revisions may take a request without the header for
        // one of theirs. If it does so, it does not give a result of this revision.
        let is_legacy = supports_legacy
            && attempt.subject() == "absent"
            && !matches!(attempt.answer, AttemptOutcome::Result { value, .. } if value.get("resultType").is_some());
        seen += 1;
        let flaw = flaw.filter(|_| !is_legacy && !is_refused_like_a_method(conversation, &attempt));
        violations.extend(flaw.map(|flaw| Violation::new(format!("{} got {flaw}", described(&attempt, header)), attempt.frames())));
    }
    Judgment::of(violations, seen, &format!("no request with a wrong `{header}` got a response"))
}

/// None of the probes of this name may be refused as a mismatch.
fn accepted(conversation: &ConversationView<'_>, probe: &str, what: &str) -> Judgment {
    if let Some(judgment) = without_a_right_one(conversation) {
        return judgment;
    }
    let (mut seen, mut violations) = (0, Vec::new());
    for attempt in conversation.probes(probe) {
        seen += usize::from(matches!(attempt.answer, AttemptOutcome::Result { .. } | AttemptOutcome::Error { .. }));
        if attempt.answer.code() == Some(MISMATCH.code) {
            let method = attempt.request.and_then(|request| request.method()).unwrap_or_default();
            let how = attempt.probed.subject.as_deref().map(|subject| format!(" ({subject})")).unwrap_or_default();
            violations.push(Violation::new(format!("`{method}` with {what}{how} got error -32020"), attempt.frames()));
        }
    }
    Judgment::of(violations, seen, &format!("{what} was not tried, or got no response"))
}

fn names_ignore_case(conversation: &ConversationView<'_>) -> Judgment {
    if !conversation.is_modern() {
        return names_of_sessions_ignore_case(conversation);
    }
    let refused = conversation.probe("headers-right").filter(|small| small.answer.code() == Some(MISMATCH.code));
    let served = conversation.probes("header-case").find(|other| matches!(other.answer, AttemptOutcome::Result { .. }));
    if let (Some(small), Some(other)) = (refused, served) {
        let message = format!("headers in lower case got error -32020, and the same spelled `{}` a result", other.subject());
        return Judgment::Broken(vec![Violation::new(message, small.frames().into_iter().chain(other.frames()))]);
    }
    accepted(conversation, "header-case", "headers in another case")
}

/// In revisions with sessions nothing but the status tells that a header was not found.
fn names_of_sessions_ignore_case(conversation: &ConversationView<'_>) -> Judgment {
    if let Err(judgment) = varied(conversation, "header-case") {
        return judgment;
    }
    let tried: Vec<Attempt<'_, '_>> = conversation.probes("header-case").filter(|attempt| attempt.status().is_some()).collect();
    // These have other reasons, and once may be chance.
    const OTHER: [u16; 3] = [403, 404, 408];
    let is_refused =
        |attempt: &Attempt<'_, '_>| attempt.status().is_some_and(|status| (400..500).contains(&status) && !OTHER.contains(&status));
    let violation = tried.first().filter(|_| tried.iter().all(is_refused)).map(|attempt| {
        let message = format!("a request with the names of its headers spelled `{}` got {}", attempt.subject(), told(attempt));
        Violation::new(message, evidence(attempt))
    });
    Judgment::of(violation.into_iter().collect(), tried.len(), "headers in another case were not tried")
}

/// Whether an argument of a tool goes into a header.
pub(super) fn mirrors(tool: &Value) -> bool {
    let properties = tool.pointer("/inputSchema/properties").and_then(Value::as_object);
    properties.into_iter().flatten().any(|(_, schema)| schema.get("x-mcp-header").is_some())
}

fn numbers_are_compared(conversation: &ConversationView<'_>) -> Judgment {
    match conversation.probe("header-param-number") {
        Some(_) => accepted(conversation, "header-param-number", "a number in `Mcp-Param`"),
        None => Judgment::NotApplicable("no tool that may be called has a whole number with `x-mcp-header`".into()),
    }
}

fn parameters_are_checked(conversation: &ConversationView<'_>) -> Judgment {
    let tools = conversation.tools();
    let mirroring: Vec<&str> = tools.iter().filter(|(tool, _)| mirrors(tool)).filter_map(|(tool, _)| tool.get("name")?.as_str()).collect();
    let Some(name) = mirroring.first() else {
        return Judgment::NotApplicable("no tool has an argument with `x-mcp-header`".into());
    };
    if conversation.probe("header-param").is_none() {
        return Judgment::Untestable(format!("the tools with `x-mcp-header` may not be called (`--call {name}` allows it)"));
    }
    match (mismatches(conversation, "header-param", "Mcp-Param"), accepted(conversation, "header-param-right", "the right `Mcp-Param`")) {
        (Judgment::Broken(mut violations), Judgment::Broken(more)) => {
            violations.extend(more);
            Judgment::Broken(violations)
        }
        (judgment, Judgment::Broken(violations)) if !matches!(judgment, Judgment::Broken(_)) => Judgment::Broken(violations),
        (judgment, _) => judgment,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_analysis::example;

    #[test]
    fn names_in_another_case_are_judged_in_both_eras() {
        let check = |revision: &str, text: &str, is_broken: bool| {
            let take = example::read(text, "http", revision);
            let judged = names_ignore_case(&ConversationView::new(&take));
            assert_eq!(matches!(judged, Judgment::Broken(_)), is_broken, "{text}: {judged:?}");
        };
        let legacy = |plain: u16, other: u16| format!("@ plain\n> POST /mcp\n< {plain}\n@ header-case LIKE-THIS\n> POST /mcp\n< {other}");
        check("2025-11-25", &legacy(200, 200), false);
        check("2025-11-25", &legacy(200, 400), true);
        check("2025-11-25", &legacy(200, 401), true);
        check("2025-11-25", &legacy(200, 408), false);
        check("2025-11-25", &legacy(400, 400), false);

        let ask = |probe: &str, id: &str, outcome: &str| {
            let request = format!(r#"> {{"jsonrpc":"2.0","id":"{id}","method":"tools/list","params":{{}}}}"#);
            let head = "< 200 content-type: application/json";
            format!("@ {probe}\n> POST /mcp\n{request}\n{head}\n< {{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",{outcome}}}\n")
        };
        let (served, refused) = (r#""result":{"resultType":"complete","tools":[]}"#, r#""error":{"code":-32020,"message":"missing"}"#);
        let modern = |small: &str, other: &str| ask("headers-right tools/list", "a", small) + &ask("header-case Like-This", "b", other);
        check("2026-07-28", &modern(served, served), false);
        check("2026-07-28", &modern(served, refused), true);
        check("2026-07-28", &modern(refused, served), true);
    }
}
