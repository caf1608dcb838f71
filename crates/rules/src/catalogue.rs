//! All rules, in the order in which a person would fix what they find.

use super::{
    Rule, apps, asking_users, authorization, calls, capabilities, causes, connections, cors, disclosure, discovery, events, fields,
    fixtures, heads, hosts, http, http_messages, identifiers, jsonrpc, lifecycle, lists, media, members, modern, modern_headers,
    modern_results, poisoning, process, progress, prompts, replicas, request_forms, resources, robustness, sampling, schema, scopes,
    security, sessions, sse_posts, sse_sessions, state, stdio, subscriptions, tasks, tools, trace_context, traversal, utilities,
};

const AREAS: [&[Rule]; 51] = [
    causes::RULES,
    lifecycle::RULES,
    utilities::RULES,
    stdio::RULES,
    jsonrpc::RULES,
    members::RULES,
    schema::RULES,
    identifiers::RULES,
    media::RULES,
    events::RULES,
    http::RULES,
    request_forms::RULES,
    heads::RULES,
    fields::RULES,
    discovery::RULES,
    http_messages::RULES,
    connections::RULES,
    sessions::RULES,
    sse_sessions::RULES,
    sse_posts::RULES,
    modern::RULES,
    modern_headers::RULES,
    modern_results::RULES,
    trace_context::RULES,
    subscriptions::RULES,
    replicas::RULES,
    capabilities::RULES,
    lists::RULES,
    tools::RULES,
    calls::RULES,
    tasks::RULES,
    state::RULES,
    resources::RULES,
    apps::RULES,
    traversal::RULES,
    prompts::RULES,
    progress::RULES,
    process::RULES,
    robustness::RULES,
    security::RULES,
    asking_users::RULES,
    sampling::RULES,
    disclosure::RULES,
    authorization::RULES,
    scopes::RULES,
    poisoning::RULES,
    cors::RULES,
    hosts::RULES,
    fixtures::RULES,
    fixtures::rounds::RULES,
    fixtures::tasks::RULES,
];

/// Every rule.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    AREAS.iter().flat_map(|area| area.iter())
}

/// The rule of this id.
pub fn find(id: &str) -> Option<&'static Rule> {
    all().find(|rule| rule.id == id)
}

#[cfg(test)]
mod tests {
    use super::super::{AppliesTo, ConversationView, Strictness, example, judge_one};
    use super::*;
    use mcproof_protocol::Revision;
    use mcproof_record::Judged;
    use std::collections::BTreeSet;

    /// Where the examples of a rule take place.
    fn scene(rule: &Rule) -> (&'static str, &'static str) {
        let transport = match rule.on {
            AppliesTo::Any | AppliesTo::Stdio => "stdio",
            AppliesTo::Http | AppliesTo::Web => "http",
            AppliesTo::Sse => "sse",
        };
        // Rules of messages may have an example that needs HTTP.
        let transport = if transport == "stdio" && rule.examples().breaks.starts_with("> POST") { "http" } else { transport };
        let last_legacy = Revision::LATEST_LEGACY.as_str();
        let revision = if rule.requirement_in(last_legacy).is_some() { last_legacy } else { rule.sources[0].revisions.end().as_str() };
        (transport, revision)
    }

    fn judged(rule: &Rule, text: &str) -> Judged {
        let (transport, revision) = scene(rule);
        let take = example::read(text, transport, revision);
        judge_one(rule, &[ConversationView::new(&take)], Strictness::Tolerant).judged
    }

    #[test]
    fn every_rule_finds_its_bad_example_and_passes_its_good_one() {
        let mut wrong = Vec::new();
        for rule in all() {
            match judged(rule, rule.examples().breaks) {
                Judged::Broken { findings } if findings.iter().all(|finding| !finding.frames.is_empty()) => {}
                other => wrong.push(format!("{}: the example that breaks it gives {other:?}", rule.id)),
            }
            match judged(rule, rule.examples().keeps) {
                Judged::Pass => {}
                other => wrong.push(format!("{}: the example that keeps it gives {other:?}", rule.id)),
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn declarations_are_complete() {
        let mut ids = BTreeSet::new();
        for rule in all() {
            assert!(ids.insert(rule.id), "{} is there twice", rule.id);
            assert!(rule.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'), "{}", rule.id);
            assert!(!rule.sources.is_empty(), "{}", rule.id);
            for text in [rule.requirement, rule.why, rule.remedy] {
                let is_fragment = !text.is_empty()
                    && !text.ends_with('.')
                    && !text.starts_with(|first: char| first.is_ascii_uppercase() && text.chars().nth(1).is_some_and(char::is_lowercase));
                assert!(is_fragment, "{}: {text:?} has to be a lowercase fragment without a final dot", rule.id);
            }
        }
    }
}
