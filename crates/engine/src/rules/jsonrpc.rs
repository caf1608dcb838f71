//! JSON-RPC itself: members, ids, answers.
//! Source: basic, messages; JSON-RPC 2.0.

use super::Conversation;
use super::law::{Area, Judge, Judgement, Keyword, Law, On, Rule, Violation, revisions};
use serde_json::json;

const MESSAGES: &[Law] = &[Law { revisions: revisions::ALL, keyword: Keyword::Must, source: "basic#messages" }];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "jsonrpc-version-is-2-0",
        area: Area::JsonRpc,
        law: "each message has the member `jsonrpc` with the value \"2.0\"",
        laws: MESSAGES,
        on: On::Any,
        lenience: None,
        judge: Judge::Each(version_is_2_0),
        why: "clients tell messages of the protocol from others by it, and drop what lacks it",
        remedy: "put `\"jsonrpc\": \"2.0\"` into each message, as a string",
        sdks: &[],
        bad: r#"
            > {"jsonrpc":"2.0","id":1,"method":"ping"}
            < {"id":1,"result":{}}"#,
        good: r#"
            > {"jsonrpc":"2.0","id":1,"method":"ping"}
            < {"jsonrpc":"2.0","id":1,"result":{}}"#,
    },
    Rule {
        id: "unknown-method-is-refused",
        area: Area::JsonRpc,
        law: "a request for a method that does not exist is answered with an error",
        laws: MESSAGES,
        on: On::Any,
        lenience: None,
        judge: Judge::Each(unknown_method_is_refused),
        why: "newer clients try newer methods first; a server that is silent, dies, or answers with a result leaves them in the dark",
        remedy: "answer what is unknown with the error -32601",
        sdks: &[],
        bad: r#"
            @ unknown-method
            > {"jsonrpc":"2.0","id":1,"method":"mcproof/no-such-method"}
            < {"jsonrpc":"2.0","id":1,"result":{}}"#,
        good: r#"
            @ unknown-method
            > {"jsonrpc":"2.0","id":1,"method":"mcproof/no-such-method"}
            < {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}"#,
    },
];

fn version_is_2_0(conversation: &Conversation<'_>) -> Judgement {
    let messages: Vec<_> = conversation.from_server().filter(|said| said.value.is_object()).collect();
    let wrong = messages.iter().filter(|said| said.value.get("jsonrpc") != Some(&json!("2.0")));
    let violations = wrong.map(|said| {
        let found = said.value.get("jsonrpc").map_or_else(|| "no `jsonrpc`".to_owned(), |found| format!("`jsonrpc` {found}"));
        Violation::new(format!("a message has {found}"), [said.frame.id])
    });
    Judgement::of(violations.collect(), messages.len(), "the server sent no message")
}

fn unknown_method_is_refused(conversation: &Conversation<'_>) -> Judgement {
    let Some(asked) = conversation.probe("unknown-method") else { return Judgement::Untestable("no unknown method was tried".into()) };
    match asked.answer.is_refusal() {
        true => Judgement::Pass,
        false => Judgement::Broken(vec![Violation::new(format!("an unknown method got {}", asked.answer.describe()), asked.frames())]),
    }
}
