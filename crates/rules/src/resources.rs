//! Resources and their templates: listed resources are readable, others are refused.
//! Source: server/resources.

use super::calls::is_refused_as_unknown;
use super::rule_definition::{Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, negotiated, revisions};
use super::served::{Served, served};
use super::{Attempt, AttemptOutcome, ConversationView, WireMessage};
use iri_string::template::UriTemplateStr;
use mcproof_analysis::named;
use mcproof_analysis::probes::SUBSCRIBE_AGAIN;
use mcproof_protocol::{error_code, methods};
use mcproof_record::{FrameId, counted};
use serde_json::Value;
use std::time::Duration;
use url::Url;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "listed-resource-is-readable",
        area: Area::Resources,
        requirement: "a listed resource can be read, and so can one of a listed template with a value that the server offers for it",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Should,
            source: "server/resources#reading-resources",
        }],
        judge: Judge::Each(listed_can_be_read),
        why: "hosts offer listed resources; their users get an error",
        remedy: "list only existing resources, and accept each URI exactly as it is listed",
        ..Rule::DEFAULT
    },
    Rule {
        id: "resource-read-names-uri",
        area: Area::Resources,
        requirement: "the contents of a resource name the URI that was read, or one below it",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Must,
            source: "server/resources#resource-contents",
        }],
        judge: Judge::Each(read_names_uri),
        why: "clients store contents under the URI in them, and then do not find the resource that they requested",
        remedy: "put the URI of the request into each of the `contents`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "resource-unknown-is-refused",
        area: Area::Resources,
        requirement: "reading a resource that does not exist returns an error",
        sources: &[
            RequirementSource {
                revisions: revisions::LEGACY,
                level: RequirementLevel::Must,
                source: "server/resources#security-considerations",
            },
            RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Must, source: "server/resources#error-handling" },
        ],
        judge: Judge::Each(unknown_is_refused),
        why: "after a result, even an empty one, a model assumes that the resource exists and is empty",
        remedy: "respond with an error: -32002 up to 2025-11-25, -32602 since 2026-07-28",
        ..Rule::DEFAULT
    },
    Rule {
        id: "resource-unknown-code",
        area: Area::Resources,
        requirement: "the error for a resource that does not exist is -32002 up to 2025-11-25, and -32602 since 2026-07-28",
        sources: &[
            RequirementSource { revisions: revisions::LEGACY, level: RequirementLevel::Should, source: "server/resources#error-handling" },
            RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Must, source: "server/resources#error-handling" },
        ],
        judge: Judge::Each(unknown_code),
        why: "the code lets a client distinguish a removed resource from a failing server",
        remedy: "respond with the code of the negotiated revision",
        ..Rule::DEFAULT
    },
    Rule {
        id: "resource-template-parses",
        area: Area::Resources,
        requirement: "a `uriTemplate` is a URI template of RFC 6570",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Must,
            source: "server/resources#resource-templates",
        }],
        judge: Judge::Each(template_parses),
        why: "clients ignore a template that they cannot parse",
        remedy: "write variables as `{name}`, and use braces only for variables",
        ..Rule::DEFAULT
    },
    Rule {
        id: "resource-update-is-subscribed",
        area: Area::Resources,
        requirement: "a client gets updates of resources that it has subscribed to and not unsubscribed from, and of no others",
        sources: &[RequirementSource { revisions: revisions::LEGACY, level: RequirementLevel::Should, source: "" }],
        judge: Judge::Each(updates_are_subscribed),
        why: "clients ignore an update of what they do not watch, and never learn of the one that they wait for",
        remedy: "store the URIs that each session has subscribed to until it unsubscribes, and send `notifications/resources/updated` with one \
                 of them, or with one below it",
        ..Rule::DEFAULT
    },
    Rule {
        id: "resource-subscription-works",
        area: Area::Resources,
        requirement: "if `subscribe` is declared, clients can subscribe to listed resources and unsubscribe from them",
        sources: &negotiated("server/resources#subscriptions"),
        judge: Judge::Each(subscription_works),
        why: "a client that relies on updates shows outdated contents",
        remedy: "accept each listed URI, or do not declare `subscribe`",
        ..Rule::DEFAULT
    },
];

fn listed_can_be_read(conversation: &ConversationView<'_>) -> Judgment {
    if let Some(judgment) = crate::rule_definition::unless_declared(conversation, "resources") {
        return judgment;
    }
    let listed = of_listed(conversation, "read", "the server lists no resource", |refused, count| {
        let of = if count == 1 { String::new() } else { format!(" of {count} listed resources") };
        format!("reading {}{of}", named(refused))
    });
    match (listed, broken_template(conversation)) {
        (listed, None) => listed,
        (Judgment::Broken(mut violations), Some(broken)) => {
            violations.push(broken);
            Judgment::Broken(violations)
        }
        (_, Some(broken)) => Judgment::Broken(vec![broken]),
    }
}

/// The reading of what the server itself offers for a template, and fails to read. What is not found may be the beginning of a value.
fn broken_template(conversation: &ConversationView<'_>) -> Option<Violation> {
    let unknown = conversation.probe("unknown-resource");
    let is_broken = |attempt: &Attempt<'_, '_>| {
        let is_unknown = unknown.as_ref().is_some_and(|unknown| is_refused_as_unknown(attempt, unknown));
        let code = attempt.answer.code().filter(|_| !is_unknown);
        code.is_some_and(|code| !matches!(code, error_code::RESOURCE_NOT_FOUND | error_code::INVALID_PARAMS))
    };
    let broken: Vec<Attempt<'_, '_>> = conversation.probes("read-template").filter(is_broken).collect();
    let names: Vec<String> = broken.iter().map(|attempt| attempt.subject().to_owned()).collect();
    let first = broken.first()?;
    let message =
        format!("reading {}, with a value that the server offers for its template, got {}", named(&names), first.answer.describe());
    Some(Violation::new(message, first.frames()))
}

/// Each probe of this name requests something listed. Refused ones are reported in one sentence, with the first response.
pub(super) fn of_listed(
    conversation: &ConversationView<'_>,
    probe: &str,
    nothing: &str,
    sentence: impl Fn(&[String], usize) -> String,
) -> Judgment {
    let attempt: Vec<Attempt<'_, '_>> = conversation.probes(probe).collect();
    if attempt.is_empty() {
        let why = nothing.to_owned();
        return if conversation.handshake().is_some() { Judgment::NotApplicable(why) } else { Judgment::Untestable(why) };
    }
    let answered: Vec<_> =
        attempt.iter().filter(|attempt| matches!(attempt.answer, AttemptOutcome::Result { .. } | AttemptOutcome::Error { .. })).collect();
    let refused: Vec<_> = answered.iter().filter(|attempt| matches!(attempt.answer, AttemptOutcome::Error { .. })).collect();
    let Some(first) = refused.first() else { return Judgment::of(Vec::new(), answered.len(), "no request for them got a response") };
    let mut names: Vec<String> = refused.iter().map(|attempt| attempt.subject().to_owned()).collect();
    names.dedup();
    let message = format!("{} got {}", sentence(&names, answered.len()), first.answer.describe());
    Judgment::Broken(vec![Violation::new(message, first.frames())])
}

fn read_names_uri(conversation: &ConversationView<'_>) -> Judgment {
    if let Some(judgment) = crate::rule_definition::unless_declared(conversation, "resources") {
        return judgment;
    }
    let (mut seen, mut strange) = (0, Vec::new());
    for Served { params, result, frames } in served(conversation, methods::RESOURCES_READ, &["read", "read-template"]) {
        let Some(asked) = params.get("uri").and_then(Value::as_str) else { continue };
        let contents = result.get("contents").and_then(Value::as_array).into_iter().flatten();
        let uris: Vec<&str> = contents.filter_map(|content| content.get("uri")?.as_str()).collect();
        if uris.is_empty() {
            continue;
        }
        seen += 1;
        if !uris.iter().any(|uri| is_or_is_below(uri, asked)) {
            strange.push((asked, uris[0], frames));
        }
    }
    let Some((asked, got, frames)) = strange.first() else {
        return Judgment::of(Vec::new(), seen, "no resource was read");
    };
    let others = if strange.len() > 1 { format!(", and {} likewise", counted(strange.len() - 1, "other")) } else { String::new() };
    Judgment::Broken(vec![Violation::new(format!("the contents of `{asked}` have the URI `{got}`{others}"), frames.iter().copied())])
}

fn updates_are_subscribed(conversation: &ConversationView<'_>) -> Judgment {
    let subscribed: Vec<(FrameId, &str)> = conversation
        .from_client()
        .filter(|wire_message| wire_message.method() == Some(methods::RESOURCES_SUBSCRIBE))
        .filter_map(|wire_message| Some((wire_message.frame.id, wire_message.param("/uri")?.as_str()?)))
        .collect();
    let updates =
        conversation.from_server().filter(|wire_message| wire_message.method() == Some(methods::notifications::RESOURCES_UPDATED));
    let (mut seen, mut violations) = (0, Vec::new());
    for update in updates {
        let Some(uri) = update.param("/uri").and_then(Value::as_str) else { continue };
        seen += 1;
        // What is below a resource is one of its parts.
        let is_of =
            |(asked, watched): &&(FrameId, &str)| *asked < update.frame.id && (uri.starts_with(watched) || is_or_is_below(uri, watched));
        let of: Vec<&str> = subscribed.iter().filter(is_of).map(|(_, watched)| *watched).collect();
        let ended: Vec<FrameId> = of.iter().filter_map(|watched| end_of_subscription(conversation, watched, update)).collect();
        let method = methods::notifications::RESOURCES_UPDATED;
        if of.is_empty() {
            let message = format!("`{method}` for `{uri}` was sent, but the client has not subscribed to it");
            violations.push(Violation::new(message, [update.frame.id]));
        } else if let (Some(end), true) = (ended.iter().max(), ended.len() == of.len()) {
            let message = format!("`{method}` for `{uri}` was sent, but the client had unsubscribed from it");
            violations.push(Violation::new(message, [*end, update.frame.id]));
        }
    }
    violations.truncate(1);
    match seen {
        0 => Judgment::NotApplicable("the server sent no update of a resource".into()),
        _ => Judgment::from_violations(violations),
    }
}

/// The request that ended a subscription, if that was long before an update. Each subscription has to be ended, as some servers count them;
/// and what was under way in the server when it responded may still come.
fn end_of_subscription(conversation: &ConversationView<'_>, watched: &str, update: &WireMessage<'_>) -> Option<FrameId> {
    let of = move |method: &'static str| {
        let requests = conversation.requests().filter(move |(request, _)| request.method() == Some(method));
        requests.filter(move |(request, _)| {
            request.param("/uri").and_then(Value::as_str) == Some(watched) && request.frame.id < update.frame.id
        })
    };
    let subscriptions =
        of(methods::RESOURCES_SUBSCRIBE).filter(|(_, answer)| answer.is_none_or(|answer| answer.value.get("error").is_none()));
    let (count, last) = subscriptions.fold((0, None), |(count, _), (request, _)| (count + 1, Some(request.frame.id)));
    let ends: Vec<_> = of(methods::RESOURCES_UNSUBSCRIBE).filter_map(|(request, answer)| Some((request.frame.id, answer?))).collect();
    let has_result = ends.iter().any(|(_, answer)| answer.value.get("result").is_some());
    let (end, answer) = ends.last().filter(|(end, _)| has_result && ends.len() >= count && last.is_none_or(|last| last < *end))?;
    // What has a stream of its own may be read later.
    let under_way = Duration::from_millis(if conversation.is_over("http") { 500 } else { 50 });
    let is_late = answer.frame.id < update.frame.id && conversation.elapsed(answer.frame.id, update.frame.id)? >= under_way;
    let mut later = conversation.requests().filter(|(request, _)| request.frame.id > *end).filter_map(|(_, answer)| answer);
    let went_on = later.any(|later| later.frame.id > answer.frame.id && later.frame.id < update.frame.id);
    (is_late && went_on).then_some(*end)
}

/// Whether a URI equals the other one, or names something below it; `file:///a` and `file:///a/` are the same, as are spellings
/// that URL parsers normalize to the same URL.
fn is_or_is_below(uri: &str, attempt: &str) -> bool {
    let normal = |text: &str| Url::parse(text).map_or_else(|_| text.to_owned(), |url| url.to_string());
    let is_below = |uri: &str, attempt: &str| {
        let rest = uri.strip_prefix(attempt.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#']))
    };
    is_below(uri, attempt) || is_below(&normal(uri), &normal(attempt))
}

/// The request for a resource that does not exist; or why it cannot be judged.
fn unknown<'a, 'c>(conversation: &'c ConversationView<'a>) -> Result<Attempt<'a, 'c>, Judgment> {
    if let Some(judgment) = crate::rule_definition::unless_declared(conversation, "resources") {
        return Err(judgment);
    }
    let attempt = conversation.probe("unknown-resource").ok_or_else(|| Judgment::Untestable("no unknown resource was read".into()))?;
    let matching = templates(conversation).into_iter().find(|(template, _)| may_match(template, attempt.subject()));
    match (attempt.answer, matching) {
        // A template matches any URI, so each one has a resource.
        (AttemptOutcome::Result { .. }, Some((template, _))) => {
            Err(Judgment::NotApplicable(format!("the template `{template}` matches any URI, so no URI is unknown")))
        }
        (AttemptOutcome::Result { .. } | AttemptOutcome::Error { .. }, _) => Ok(attempt),
        (answer, _) => Err(Judgment::Untestable(format!("reading an unknown resource got {}", answer.describe()))),
    }
}

fn may_match(template: &str, uri: &str) -> bool {
    template.split('{').next().is_some_and(|literal| uri.starts_with(literal)) && template.contains('{')
}

fn unknown_is_refused(conversation: &ConversationView<'_>) -> Judgment {
    match unknown(conversation) {
        Err(judgment) => judgment,
        Ok(attempt) => match attempt.answer {
            AttemptOutcome::Result { value, .. } if value.get("resultType").and_then(Value::as_str) == Some("input_required") => {
                Judgment::Untestable("reading an unknown resource requires input".into())
            }
            AttemptOutcome::Result { value, .. } => {
                let count = value.get("contents").and_then(Value::as_array).map_or(0, Vec::len);
                let what = if count == 0 { "empty contents".to_owned() } else { "contents".to_owned() };
                Judgment::Broken(vec![Violation::new(format!("reading a resource that does not exist returned {what}"), attempt.frames())])
            }
            _ => Judgment::Pass,
        },
    }
}

fn unknown_code(conversation: &ConversationView<'_>) -> Judgment {
    let attempt = match unknown(conversation) {
        Err(judgment) => return judgment,
        Ok(attempt) => attempt,
    };
    let expected = if conversation.is_modern() { error_code::INVALID_PARAMS } else { error_code::RESOURCE_NOT_FOUND };
    match attempt.answer.code() {
        Some(code) if code == expected => Judgment::Pass,
        // The resource is not what it refuses, but the method: declared-capability-is-implemented.
        Some(error_code::METHOD_NOT_FOUND) if !conversation.gives_results("resources/") => {
            Judgment::Untestable("the server does not implement resources".into())
        }
        Some(code) => {
            let message = format!("reading a resource that does not exist got error {code}, not {expected}");
            let tolerance = (code == error_code::INVALID_PARAMS).then_some(CODE_OF_2026_07_28);
            Judgment::Broken(vec![Violation { tolerance, ..Violation::new(message, attempt.frames()) }])
        }
        None => Judgment::Untestable(format!("reading a resource that does not exist got {}", attempt.answer.describe())),
    }
}

const CODE_OF_2026_07_28: &str = "2026-07-28 asks for this code";

/// Listed templates, with the frame of their page.
fn templates<'c>(conversation: &'c ConversationView<'_>) -> Vec<(&'c str, FrameId)> {
    let pages = conversation.listed(methods::RESOURCES_TEMPLATES_LIST, "resourceTemplates");
    pages.flat_map(|(items, frame)| items.iter().filter_map(move |item| Some((item.get("uriTemplate")?.as_str()?, frame)))).collect()
}

fn template_parses(conversation: &ConversationView<'_>) -> Judgment {
    let all = templates(conversation);
    if all.is_empty() && conversation.handshake().is_some() {
        return Judgment::NotApplicable("the server lists no resource template".into());
    }
    let mut wrong: Vec<(&str, FrameId)> = all.iter().copied().filter(|(template, _)| UriTemplateStr::new(template).is_err()).collect();
    wrong.sort_unstable();
    wrong.dedup_by_key(|(template, _)| *template);
    let violations = wrong.first().map(|(_, frame)| {
        let names: Vec<String> = wrong.iter().map(|(template, _)| (*template).to_owned()).collect();
        let verb = if names.len() == 1 { "is not a valid URI template" } else { "are not valid URI templates" };
        Violation::new(format!("{} {verb}", named(&names)), [*frame])
    });
    Judgment::of(violations.into_iter().collect(), all.len(), "no resource template was listed")
}

const SUBSCRIBED_TWICE: &str = "clients seldom subscribe twice";

fn subscription_works(conversation: &ConversationView<'_>) -> Judgment {
    if let Some(judgment) = crate::rule_definition::unless_declared(conversation, methods::RESOURCES_SUBSCRIBE) {
        return judgment;
    }
    if conversation.is_modern() {
        return listening_to_a_resource_works(conversation);
    }
    let (mut seen, mut violations) = (0, Vec::new());
    for attempt in ["subscribe", "unsubscribe"].into_iter().filter_map(|probe| conversation.probe(probe)) {
        let method = attempt.request.and_then(|request| request.method()).unwrap_or_default();
        match attempt.answer {
            AttemptOutcome::Result { .. } => seen += 1,
            AttemptOutcome::Error { .. } => {
                let message = format!("`{method}` of the listed `{}` got {}", attempt.subject(), attempt.answer.describe());
                violations.push(Violation::new(message, attempt.frames()));
            }
            _ => {}
        }
    }
    if let Some(again) = conversation.probe(SUBSCRIBE_AGAIN).filter(|again| again.answer.code() == Some(error_code::INTERNAL_ERROR)) {
        let message = format!("a second `resources/subscribe` of `{}` got {}", again.subject(), again.answer.describe());
        violations.push(Violation { tolerance: Some(SUBSCRIBED_TWICE), ..Violation::new(message, again.frames()) });
    }
    Judgment::of(violations, seen, "no subscription to a resource got a response")
}

fn listening_to_a_resource_works(conversation: &ConversationView<'_>) -> Judgment {
    let listened = conversation.requests().find(|(request, _)| request.param("/notifications/resourceSubscriptions").is_some());
    let Some((request, _)) = listened else { return Judgment::Untestable("no subscription to a resource was requested".into()) };
    let acknowledgement = conversation.from_server().find(|wire_message| {
        wire_message.method() == Some(methods::notifications::SUBSCRIPTIONS_ACKNOWLEDGED)
            && wire_message.frame.id > request.frame.id
            && wire_message.meta("subscriptionId").is_none_or(|tag| Some(tag) == request.id())
    });
    let Some(acknowledgement) = acknowledgement else { return Judgment::Untestable("no subscription was acknowledged".into()) };
    let granted = acknowledgement.param("/notifications/resourceSubscriptions").and_then(Value::as_array);
    match granted.is_some_and(|granted| !granted.is_empty()) {
        true => Judgment::Pass,
        false => {
            let message = "a subscription to a listed resource was acknowledged without `resourceSubscriptions`";
            Judgment::Broken(vec![Violation::new(message, [request.frame.id, acknowledgement.frame.id])])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Strictness, example, find, judge_one};
    use super::*;
    use mcproof_record::Judged;

    #[test]
    fn what_a_server_offers_it_reads_and_completes() {
        let check = |rule: &str, text: &str, expected: &str| {
            let take = example::read(text, "stdio", "2025-11-25");
            let judged = judge_one(find(rule).unwrap(), &[ConversationView::new(&take)], Strictness::Tolerant).judged;
            let seen = match judged {
                Judged::Pass => "pass",
                Judged::Broken { .. } => "broken",
                _ => "not judged",
            };
            assert_eq!(seen, expected, "{rule}: {text}");
        };
        let tried = |id: u32, probe: &str, method: &str, params: &str, outcome: &str| {
            let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
            format!("@ {probe}\n> {request}\n< {{\"jsonrpc\":\"2.0\",\"id\":{id},{outcome}}}\n")
        };
        let error = |code: i32| format!(r#""error":{{"code":{code},"message":"no"}}"#);
        let read = |id: u32, probe: &str, uri: &str, outcome: &str| {
            tried(id, &format!("{probe} {uri}"), "resources/read", &format!(r#"{{"uri":"{uri}"}}"#), outcome)
        };
        let check_read = |outcome: &str, expected: &str| {
            let text = read(1, "read", "demo://a", r#""result":{"contents":[]}"#) + &read(2, "read-template", "demo://x/1", outcome);
            check("listed-resource-is-readable", &text, expected);
        };
        check_read(r#""result":{"contents":[]}"#, "pass");
        check_read(&error(-32002), "pass");
        check_read(&error(-32603), "broken");
        check_read(&error(0), "broken");

        let reference = |kind: &str, key: &str, of: &str| format!(r#"{{"ref":{{"type":"ref/{kind}","{key}":"{of}"}}}}"#);
        let (prompt, template) = (reference("prompt", "name", "a"), reference("resource", "uri", "demo://{x}"));
        let check_complete = |of_prompt: &str, typed: Option<&str>, of_template: &str, expected: &str| {
            let complete = |id: u32, probe: &str, params: &str, outcome: &str| tried(id, probe, "completion/complete", params, outcome);
            let typed = typed.map(|outcome| complete(2, "complete-typed x", &prompt, outcome)).unwrap_or_default();
            let unknown = complete(4, "complete-unknown b", &reference("prompt", "name", "b"), &error(-32602));
            let text =
                complete(1, "complete x", &prompt, of_prompt) + &typed + &complete(3, "complete x", &template, of_template) + &unknown;
            check("listed-reference-is-completable", &text, expected);
        };
        let values = r#""result":{"completion":{"values":[]}}"#;
        check_complete(values, Some(values), values, "pass");
        check_complete(values, Some(error(-32603).as_str()), values, "broken");
        check_complete(values, Some(values), &error(-32603), "broken");
        check_complete(&error(-32603), None, &error(-32603), "broken");

        let subscribed = |again: &str| {
            let subscribe = |id: u32, probe: &str, outcome: &str| {
                tried(id, &format!("{probe} demo://a"), "resources/subscribe", r#"{"uri":"demo://a"}"#, outcome)
            };
            subscribe(1, "subscribe", r#""result":{}"#) + &subscribe(2, "subscribe-again", again)
        };
        check("resource-subscription-works", &subscribed(r#""result":{}"#), "pass");
        check("resource-subscription-works", &subscribed(&error(-32602)), "pass");
        check("resource-subscription-works", &subscribed(&error(-32603)), "broken");
    }

    #[test]
    fn updates_end_with_their_subscription() {
        let request = |id: u32, method: &str| {
            let params = r#"{"uri":"demo://a"}"#;
            format!(r#"> {{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
        };
        let result = |id: u32| format!(r#"< {{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        let asked = |id: u32, method: &str| request(id, method) + "\n" + &result(id) + "\n";
        let (subscribe, unsubscribe) = ("resources/subscribe", "resources/unsubscribe");
        let update = r#"< {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"demo://a"}}"#;
        let check = |before: &str, is_broken: bool| {
            let take = example::read(&format!("{before}{update}"), "stdio", "2025-11-25");
            let judged = updates_are_subscribed(&ConversationView::new(&take));
            assert_eq!(matches!(judged, Judgment::Broken(_)), is_broken, "{before}: {judged:?}");
        };
        let (begun, ended) = (asked(1, subscribe), asked(2, unsubscribe));
        let later = asked(9, "ping") + "~ 60\n";
        check(&begun, false);
        check(&format!("{begun}{ended}{later}"), true);
        // It may have been under way.
        check(&format!("{begun}{ended}{}", asked(9, "ping")), false);
        check(&format!("{begun}{ended}~ 60\n"), false);
        check(&format!("{begun}{ended}{}{later}", asked(3, subscribe)), false);
        // A server may count subscriptions.
        check(&format!("{begun}{}{ended}{later}", asked(3, subscribe)), false);
        check(&format!("{begun}{}{ended}{}{later}", asked(3, subscribe), asked(4, unsubscribe)), true);
    }

    #[test]
    fn contents_belong_to_the_uri_that_was_read() {
        let check = |uri, attempt, expected| assert_eq!(is_or_is_below(uri, attempt), expected, "{uri} {attempt}");
        check("zoo://gate/rulesx", "zoo://gate/rules", false);
        check("zoo://gate/rules/1", "zoo://gate/rules", true);
        check("zoo://gate/rules#first", "zoo://gate/rules", true);
        check("demo://a", "demo://a", true);
        check("file:///a/", "file:///a", true);
        check("file:///a", "file:///a/", true);
        check("file:///a/b", "file:///a", true);
        check("https://example.com/", "HTTPS://EXAMPLE.com", true);
        check("demo://b", "demo://a", false);
        check("not a uri", "not a uri", true);
    }

    #[test]
    fn a_template_covers_a_uri_that_begins_like_it() {
        let check = |template, expected| assert_eq!(may_match(template, "mcproof://no/such/resource"), expected, "{template}");
        check("demo://{id}", false);
        check("{+uri}", true);
        check("mcproof://{a}/such/{b}", true);
        check("mcproof://no/such/resource", false);
    }
}
