//! What results of the modern era contain besides their content, and which messages may precede them.
//! Source: 2026-07-28, basic, server/utilities/caching, basic/patterns/mrtr, server/utilities/logging.

use super::modern::is_of_legacy_request;
use super::rule_definition::{Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::{ConversationView, WireMessage};
use mcproof_analysis::named;
use mcproof_protocol::methods;
use mcproof_record::FrameId;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

const fn must(source: &'static str) -> RequirementSource {
    RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Must, source }
}

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "result-has-type",
        area: Area::Modern,
        requirement: "each result states its type in `resultType`",
        sources: &[must("basic#resulttype")],
        judge: Judge::Each(result_has_type),
        why: "a result without it is treated as one of an earlier revision, and a result of an unknown type is invalid",
        remedy: "add `\"resultType\": \"complete\"`, or `input_required` where input is needed",
        ..Rule::DEFAULT
    },
    Rule {
        id: "result-has-cache-hints",
        area: Area::Modern,
        requirement: "discovery, lists and resources state in `ttlMs` and `cacheScope` how long and for whom they may be cached, with the same scope on all pages",
        sources: &[must("server/utilities/caching#cacheable-results")],
        judge: Judge::Each(result_has_cache_hints),
        why: "gateways share `public` results among users, and clients without a hint repeat the request each time",
        remedy: "add `ttlMs`, an integer of 0 or more, and `cacheScope`, `public` or `private`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "input-required-only-where-allowed",
        area: Area::Modern,
        requirement: "only results of `tools/call`, `prompts/get` and `resources/read` are `input_required`, and they have `inputRequests` or `requestState`",
        sources: &[must("basic/patterns/mrtr#supported-requests")],
        judge: Judge::Each(input_required_only_where_allowed),
        why: "clients expect a list or a discovery to be complete, and show an error or nothing",
        remedy: "request input only in results of `tools/call`, `prompts/get` and `resources/read`; put `inputRequests` or `requestState` into the result",
        ..Rule::DEFAULT
    },
    Rule {
        id: "logs-only-when-requested",
        area: Area::Modern,
        requirement: "log messages are sent only for requests that enable them",
        sources: &[must("server/utilities/logging#per-request-log-level")],
        judge: Judge::Each(logs_only_when_requested),
        why: "a client that did not request them cannot show them, and may treat them as an error",
        remedy: "send `notifications/message` only if `_meta` of the request has `io.modelcontextprotocol/logLevel`",
        ..Rule::DEFAULT
    },
];

/// Results of requests that came with modern metadata: method, request, response, result. Over HTTP, the header states the revision
/// as well; if it is missing, as in a probe of that header, a server may treat the request as a legacy one.
fn results<'c>(conversation: &'c ConversationView<'_>) -> Vec<(&'c str, &'c WireMessage<'c>, &'c WireMessage<'c>, &'c Map<String, Value>)> {
    conversation
        .requests()
        // In a version that it does not know, a server may treat a request as a legacy one.
        .filter(|(request, _)| request.meta("protocolVersion").and_then(Value::as_str) == Some(conversation.conversation.revision.as_str()))
        .filter(|(request, _)| request.method() != Some(methods::INITIALIZE))
        .filter(|(request, _)| {
            let exchange = request.exchange.and_then(|id| conversation.exchanges.get(&id));
            exchange
                .is_none_or(|exchange| exchange.request_headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("mcp-protocol-version")))
        })
        .filter_map(|(request, answer)| {
            let answer = answer?;
            Some((request.method()?, request, answer, answer.value.get("result")?.as_object()?))
        })
        .collect()
}

/// Flaws by what is wrong: where, and the evidence.
#[derive(Default)]
struct Flaws(BTreeMap<String, (Vec<String>, Vec<FrameId>)>);

impl Flaws {
    fn add(&mut self, what: String, place: &str, frames: [FrameId; 2]) {
        let (places, evidence) = self.0.entry(what).or_default();
        if !places.iter().any(|known| known == place) {
            places.push(place.to_owned());
            evidence.extend(frames);
        }
    }

    fn into_violations(self) -> Vec<Violation> {
        const MOST_FRAMES: usize = 6;
        let violation = |(what, (places, frames)): (String, (Vec<String>, Vec<FrameId>))| {
            Violation::new(format!("the result of {} {what}", named(&places)), frames.into_iter().take(MOST_FRAMES))
        };
        self.0.into_iter().map(violation).collect()
    }
}

const NO_RESULTS: &str = "no request got a result";

fn result_has_type(conversation: &ConversationView<'_>) -> Judgment {
    let results = results(conversation);
    let mut flaws = Flaws::default();
    // Extensions define their own types. A conversation without a discovery does not show which extensions there are.
    let may_be_extended = conversation.handshake().is_none() || conversation.capability("extensions").is_some();
    for (method, request, answer, result) in &results {
        let what = match result.get("resultType") {
            None => "has no `resultType`".to_owned(),
            Some(Value::String(kind)) if may_be_extended || matches!(kind.as_str(), "complete" | "input_required") => continue,
            Some(other) => format!("has the `resultType` {other}"),
        };
        flaws.add(what, method, [request.frame.id, answer.frame.id]);
    }
    Judgment::of(flaws.into_violations(), results.len(), NO_RESULTS)
}

const CACHEABLE: [&str; 6] = [
    methods::SERVER_DISCOVER,
    methods::TOOLS_LIST,
    methods::PROMPTS_LIST,
    methods::RESOURCES_LIST,
    methods::RESOURCES_TEMPLATES_LIST,
    methods::RESOURCES_READ,
];

fn result_has_cache_hints(conversation: &ConversationView<'_>) -> Judgment {
    let results: Vec<_> = results(conversation)
        .into_iter()
        .filter(|(method, _, _, result)| {
            CACHEABLE.contains(method) && !matches!(result.get("resultType"), Some(kind) if kind != "complete")
        })
        .collect();
    let mut flaws = Flaws::default();
    let mut scopes: BTreeMap<&str, (&str, FrameId)> = BTreeMap::new();
    for (method, request, answer, result) in &results {
        let frames = [request.frame.id, answer.frame.id];
        if result.get("ttlMs").is_none() && result.get("cacheScope").is_none() {
            flaws.add("has neither `ttlMs` nor `cacheScope`".into(), method, frames);
            continue;
        }
        match result.get("ttlMs") {
            None => flaws.add("has no `ttlMs`".into(), method, frames),
            // 5.0 is an integer to JSON Schema.
            Some(ttl) if ttl.as_f64().is_some_and(|ttl| ttl >= 0.0 && ttl.fract() == 0.0) => {}
            Some(ttl) => flaws.add(format!("has the `ttlMs` {ttl}"), method, frames),
        }
        let scope = match result.get("cacheScope") {
            None => {
                flaws.add("has no `cacheScope`".into(), method, frames);
                continue;
            }
            Some(Value::String(scope)) if matches!(scope.as_str(), "public" | "private") => scope,
            Some(scope) => {
                flaws.add(format!("has the `cacheScope` {scope}"), method, frames);
                continue;
            }
        };
        if *method == methods::RESOURCES_READ {
            continue;
        }
        let is_first_page = request.param("/cursor").is_none();
        match scopes.get(method) {
            Some((first, page)) if !is_first_page && first != scope => {
                flaws.add(format!("is `{first}` on the first page and `{scope}` on a later one"), method, [*page, answer.frame.id]);
            }
            _ if is_first_page => _ = scopes.insert(method, (scope, answer.frame.id)),
            _ => {}
        }
    }
    Judgment::of(flaws.into_violations(), results.len(), "no request for a discovery, a list or a resource got a result")
}

fn input_required_only_where_allowed(conversation: &ConversationView<'_>) -> Judgment {
    let results = results(conversation);
    let mut flaws = Flaws::default();
    for (method, request, answer, result) in &results {
        if result.get("resultType").and_then(Value::as_str) != Some("input_required") {
            continue;
        }
        let frames = [request.frame.id, answer.frame.id];
        if !matches!(*method, methods::TOOLS_CALL | methods::PROMPTS_GET | methods::RESOURCES_READ) {
            flaws.add("is `input_required`, which is not allowed there".into(), method, frames);
        } else if !["inputRequests", "requestState"].iter().any(|key| result.contains_key(*key)) {
            flaws.add("is `input_required` without `inputRequests` and without `requestState`".into(), method, frames);
        }
    }
    Judgment::of(flaws.into_violations(), results.len(), NO_RESULTS)
}

fn logs_only_when_requested(conversation: &ConversationView<'_>) -> Judgment {
    let requests: Vec<&WireMessage<'_>> = conversation.from_client().filter(|wire_message| wire_message.is_request()).collect();
    let requests_logs = |wire_message: &WireMessage<'_>| wire_message.meta("logLevel").is_some();
    let Some(first_message) = conversation.from_server().next() else { return Judgment::Untestable("the server sent no message".into()) };
    // After an `initialize`, a server of both eras may act as a legacy one.
    let initialized =
        requests.iter().find(|wire_message| wire_message.method() == Some(methods::INITIALIZE)).map(|wire_message| wire_message.frame.id);
    let logged = conversation
        .from_server()
        .filter(|wire_message| wire_message.method() == Some(methods::notifications::MESSAGE))
        .filter(|wire_message| initialized.is_none_or(|initialized| wire_message.frame.id < initialized))
        .filter(|wire_message| !is_of_legacy_request(conversation, wire_message));
    // Over HTTP, the response shows which request the message belongs to; over stdio, any earlier request may have enabled it.
    let unrequested: Vec<&WireMessage<'_>> = logged
        .filter(|log| {
            !requests.iter().any(|request| match (request.exchange, log.exchange) {
                (Some(request_in), Some(log_in)) => request_in == log_in && requests_logs(request),
                _ => request.frame.id < log.frame.id && requests_logs(request),
            })
        })
        .collect();
    let Some(log) = unrequested.first() else { return Judgment::of(Vec::new(), usize::from(first_message.value.is_object()), NO_RESULTS) };
    let request = requests.iter().rev().find(|request| match (request.exchange, log.exchange) {
        (Some(request_in), Some(log_in)) => request_in == log_in,
        _ => request.frame.id < log.frame.id,
    });
    let during = request.and_then(|request| request.method()).map(|method| format!(" with `{method}`")).unwrap_or_default();
    let others = if unrequested.len() > 1 { format!(", the first of {}", unrequested.len()) } else { String::new() };
    let frames = request.map(|request| request.frame.id).into_iter().chain([log.frame.id]);
    Judgment::Broken(vec![Violation::new(format!("a log message was sent{during}, which did not request any{others}"), frames)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_analysis::example;

    /// What a server of both eras sends for a request of an earlier revision, its defaults for those decide.
    #[test]
    fn a_log_of_a_request_without_metadata_is_one_of_an_earlier_revision() {
        let call = |id: u32, meta: &str| {
            format!("> {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"a\"{meta}}}}}\n")
        };
        let log = "< {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"called\"}}\n";
        let answer = |id: u32| format!("< {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"resultType\":\"complete\"}}}}\n");
        let modern = r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
        let check = |eras: &str, meta: &str, is_sound: bool| {
            let text = format!("{eras}{}{log}{}{}{}", call(1, meta), answer(1), call(2, modern), answer(2));
            let judged = logs_only_when_requested(&ConversationView::new(&example::read(&text, "stdio", "2026-07-28")));
            assert_eq!(judged == Judgment::Pass, is_sound, "{text}: {judged:?}");
        };
        check("@ speaks-legacy\n", "", true);
        check("@ speaks-legacy\n", r#","_meta":{"io.modelcontextprotocol/protocolVersion":"1900-01-01"}"#, true);
        check("@ speaks-legacy\n", modern, false);
        check("", "", false);
    }

    #[test]
    fn hints_that_are_both_missing_are_one_violation() {
        let check = |hints: &str, expected: &[&str]| {
            let text = format!(
                r#"> {{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}}}}
                   < {{"jsonrpc":"2.0","id":1,"result":{{"resultType":"complete","tools":[]{hints}}}}}"#
            );
            let judged = result_has_cache_hints(&ConversationView::new(&example::read(&text, "stdio", "2026-07-28")));
            let violations = if let Judgment::Broken(violations) = judged { violations } else { Vec::new() };
            let messages: Vec<&str> = violations.iter().map(|violation| violation.message.as_str()).collect();
            assert_eq!(messages, expected, "{hints}");
        };
        check("", &["the result of `tools/list` has neither `ttlMs` nor `cacheScope`"]);
        check(r#","ttlMs":0"#, &["the result of `tools/list` has no `cacheScope`"]);
        check(r#","cacheScope":"public""#, &["the result of `tools/list` has no `ttlMs`"]);
        check(r#","ttlMs":0,"cacheScope":"public""#, &[]);
    }
}
