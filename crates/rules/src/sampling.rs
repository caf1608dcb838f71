//! The messages that a server gives a model to go on from, where the model has used tools.
//! Source: client/sampling, tool use.

use super::asking_users::{SAMPLING, judged, questions};
use super::rule_definition::{Area, Judge, On, RequirementLevel, RequirementSource, Rule, revisions};
use mcproof_analysis::wording::excerpt;
use serde_json::Value;

const fn since_2025_11(source: &'static str) -> RequirementSource {
    RequirementSource { revisions: revisions::SINCE_2025_11, level: RequirementLevel::Must, source }
}

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "sampling-tool-results-are-not-mixed",
        area: Area::Capabilities,
        requirement: "a message to a model that has results of tools has nothing else",
        sources: &[since_2025_11("client/sampling#tool-result-messages")],
        on: On::Any,
        tolerance: None,
        judge: Judge::Each(|conversation| judged(&questions(conversation), SAMPLING, |question| mixed_results(question.params))),
        why: "the interfaces of models have a role of its own for results, and refuse a message that mixes them with a text",
        remedy: "put the results into a message with the role `user` by themselves, and what else there is to say into the next one",
        sdks: &[],
        bad: r#"
            > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}
            < {"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{"maxTokens":5,"messages":[{"role":"assistant","content":{"type":"tool_use","id":"u1","name":"find","input":{}}},{"role":"user","content":[{"type":"text","text":"Here it is:"},{"type":"tool_result","toolUseId":"u1","content":[]}]}]}}"#,
        good: r#"
            > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}
            < {"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{"maxTokens":5,"messages":[{"role":"assistant","content":{"type":"tool_use","id":"u1","name":"find","input":{}}},{"role":"user","content":[{"type":"tool_result","toolUseId":"u1","content":[]}]}]}}"#,
    },
    Rule {
        id: "sampling-tool-uses-have-results",
        area: Area::Capabilities,
        requirement: "each use of a tool by a model has its result in the next message, and each result belongs to a use before it",
        sources: &[since_2025_11("client/sampling#tool-use-and-result-balance")],
        on: On::Any,
        tolerance: None,
        judge: Judge::Each(|conversation| judged(&questions(conversation), SAMPLING, |question| unbalanced(question.params))),
        why: "the interfaces of models refuse a conversation in which a use of a tool has no result, or a result no use",
        remedy: "answer every `tool_use` of the model with a `tool_result` of the same id, also if the tool failed, before anything else is said",
        sdks: &[],
        bad: r#"
            > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}
            < {"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{"maxTokens":5,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"u1","name":"find","input":{}},{"type":"tool_use","id":"u2","name":"find","input":{}}]},{"role":"user","content":{"type":"tool_result","toolUseId":"u1","content":[]}}]}}"#,
        good: r#"
            > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}
            < {"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{"maxTokens":5,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"u1","name":"find","input":{}},{"type":"tool_use","id":"u2","name":"find","input":{}}]},{"role":"user","content":[{"type":"tool_result","toolUseId":"u2","content":[]},{"type":"tool_result","toolUseId":"u1","content":[]}]}]}}"#,
    },
];

/// The messages of a request for a sample, each with its blocks: one, or several in an array.
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
    let kind = other.get("type").and_then(Value::as_str).unwrap_or("something else");
    Some(format!("a message to the model has results of tools together with `{}`", excerpt(kind)))
}

fn unbalanced(params: &Value) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    for (message, blocks) in messages(params) {
        let results = ids(blocks, "tool_result", "toolUseId");
        if let Some(stray) = results.iter().find(|id| !open.contains(id)) {
            return Some(format!("the result for `{}` follows upon no use of a tool with this id", excerpt(*stray)));
        }
        if let Some(missing) = open.iter().find(|id| !results.contains(id)) {
            return Some(format!("the use `{}` of a tool has no result in the message that follows it", excerpt(*missing)));
        }
        open = if message["role"] == "assistant" { ids(blocks, "tool_use", "id") } else { Vec::new() };
    }
    open.first().map(|id| format!("the use `{}` of a tool has no result in the message that follows it", excerpt(*id)))
}
