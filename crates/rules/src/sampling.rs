//! The messages of sampling requests in which the model has used tools.
//! Source: client/sampling, tool use.

use super::asking_users::{SAMPLING, judged, questions};
use super::rule_definition::{Area, Judge, RequirementLevel, RequirementSource, Rule, revisions};
use mcproof_analysis::wording::excerpt;
use serde_json::Value;

const fn since_2025_11(source: &'static str) -> RequirementSource {
    RequirementSource { revisions: revisions::SINCE_2025_11, level: RequirementLevel::Must, source }
}

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "sampling-tool-results-are-not-mixed",
        area: Area::Capabilities,
        requirement: "a sampling message with tool results has no other content",
        sources: &[since_2025_11("client/sampling#tool-result-messages")],
        judge: Judge::Each(|conversation| judged(&questions(conversation), SAMPLING, |question| mixed_results(question.params))),
        why: "model APIs have a separate role for tool results, and refuse a message that mixes them with text",
        remedy: "put only the results into a message with the role `user`, and other content into the next message",
        ..Rule::DEFAULT
    },
    Rule {
        id: "sampling-tool-uses-have-results",
        area: Area::Capabilities,
        requirement: "each tool use of a model has its result in the next message, and each result belongs to an earlier tool use",
        sources: &[since_2025_11("client/sampling#tool-use-and-result-balance")],
        judge: Judge::Each(|conversation| judged(&questions(conversation), SAMPLING, |question| unbalanced(question.params))),
        why: "model APIs refuse a conversation with a tool use without a result, or a result without a tool use",
        remedy: "follow every `tool_use` of the model with a `tool_result` of the same id, even if the tool failed, before any other content",
        ..Rule::DEFAULT
    },
];

/// The messages of a sampling request, each with its blocks: one, or several in an array.
fn messages(params: &Value) -> impl Iterator<Item = (&Value, &[Value])> {
    let messages = params.get("messages").and_then(Value::as_array).into_iter().flatten();
    messages.map(|message| {
        let content = message.get("content");
        let blocks = content.map_or(&[][..], |content| content.as_array().map_or(std::slice::from_ref(content), Vec::as_slice));
        (message, blocks)
    })
}

fn is_result(block: &Value) -> bool {
    block["type"] == "tool_result"
}

/// The ids that blocks of a kind have under a key.
fn ids<'c>(blocks: &'c [Value], kind: &str, key: &str) -> Vec<&'c str> {
    blocks.iter().filter(|block| block["type"] == kind).filter_map(|block| block.get(key)?.as_str()).collect()
}

fn mixed_results(params: &Value) -> Option<String> {
    let mixed = |blocks: &[Value]| blocks.iter().any(is_result) && !blocks.iter().all(is_result);
    let (_, blocks) = messages(params).find(|(_, blocks)| mixed(blocks))?;
    let other = blocks.iter().find(|block| !is_result(block))?;
    let kind = other.get("type").and_then(Value::as_str).unwrap_or("other content");
    Some(format!("a sampling message has tool results together with `{}`", excerpt(kind)))
}

fn unbalanced(params: &Value) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    for (message, blocks) in messages(params) {
        let results = ids(blocks, "tool_result", "toolUseId");
        if let Some(stray) = results.iter().find(|id| !open.contains(id)) {
            return Some(format!("the tool result for `{}` does not follow a tool use with this id", excerpt(*stray)));
        }
        if let Some(missing) = open.iter().find(|id| !results.contains(id)) {
            return Some(format!("the tool use `{}` has no result in the next message", excerpt(*missing)));
        }
        open = if message["role"] == "assistant" { ids(blocks, "tool_use", "id") } else { Vec::new() };
    }
    open.first().map(|id| format!("the tool use `{}` has no result in the next message", excerpt(*id)))
}
