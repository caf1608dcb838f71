//! What a server of small suites says, and what is named because it does not.

use super::{MadeEvent, Rehearsal, rehearse};
use crate::{Environment, load};
use mcproof_protocol::Era;
use serde_json::{Value, json};
use std::path::Path;

fn rehearsed(text: &str) -> Rehearsal {
    rehearse(&load("shop.mcproof.yaml", text, Path::new("/suites"), &Environment::default()).unwrap())
}

/// A suite with one test of these steps.
fn of_steps(steps: &[&str]) -> Rehearsal {
    let steps: String = steps.iter().map(|step| format!("      - {step}\n")).collect();
    rehearsed(&format!("server: {{ stdio: x }}\ntests:\n  - name: a\n    steps:\n{steps}"))
}

/// Of each exchange of the first session the method, and the response.
fn responses(rehearsal: &Rehearsal) -> Vec<(&str, Value)> {
    let response = |response: &Option<Result<Value, Value>>| match response {
        None => json!("none"),
        Some(Ok(result)) => result.clone(),
        Some(Err(error)) => json!({ "error": error }),
    };
    rehearsal.sessions[0].exchanges.iter().map(|exchange| (exchange.method, response(&exchange.response))).collect()
}

/// What is not served, each as `title: why`.
fn unmade(rehearsal: &Rehearsal) -> Vec<String> {
    rehearsal.unmade.iter().map(|step| format!("{}: {}", step.title, step.why)).collect()
}

#[test]
fn a_response_is_what_its_step_expects_and_saves() {
    let made = of_steps(&[
        "{ call: create, with: { n: 2 }, expect: { n: 2, at: { $datetime: true } }, save: { order: id } }",
        "{ call: get, with: { id: '${order}' }, expect: { id: '${order}' } }",
        "{ call: get, with: { id: none }, tool_error: /not found/ }",
        "{ read: 'shop://a', rpc_error: { code: -32002 } }",
        "{ cancel: { call: slow, after: 5ms } }",
        "{ call: slow, with: { id: 1 }, timeout: 100ms, no_response: timeout }",
    ]);
    assert_eq!(unmade(&made), Vec::<String>::new());
    let said = responses(&made);
    assert_eq!(said[0].1["structuredContent"], json!({ "n": 2, "at": "2026-01-02T03:04:05Z", "id": "order-1" }));
    assert_eq!(made.sessions[0].exchanges[1].params["arguments"], json!({ "id": "order-1" }));
    assert_eq!(said[1].1["structuredContent"], json!({ "id": "order-1" }));
    assert_eq!(said[2].1["isError"], true);
    assert_eq!(said[3].1["error"]["code"], -32002);
    assert_eq!([&said[4].1, &said[5].1], ["none", "none"]);
    let names = made.lists["tools/list"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["create", "get", "slow"]);
    assert_eq!(made.only, None);
}

#[test]
fn expected_notifications_come_before_the_response() {
    let check = |steps: &[&str], expected: Value, only: Option<Era>, capabilities: Value| {
        let made = of_steps(steps);
        assert_eq!(unmade(&made), Vec::<String>::new(), "{steps:?}");
        let events = &made.sessions[0].exchanges.last().unwrap().events;
        let told = events.iter().map(|event| match event {
            MadeEvent::Notification { method, params } => json!({ "method": method, "params": params }),
            MadeEvent::Request { method, .. } => json!(method),
        });
        assert_eq!(told.collect::<Value>(), expected, "{steps:?}");
        assert_eq!(made.only.map(|(era, _)| era), only, "{steps:?}");
        assert_eq!(made.about["capabilities"], capabilities, "{steps:?}");
    };
    check(
        &["{ call: a, meta: { progressToken: p }, notifications: [{ method: notifications/progress, params: { progress: { $gt: 3 } } }] }"],
        json!([{ "method": "notifications/progress", "params": { "progressToken": "p", "progress": 4 } }]),
        None,
        json!({ "tools": {} }),
    );
    check(
        &["{ call: a, notifications: { $len: 1 } }"],
        json!([{ "method": "notifications/message", "params": { "level": "info", "data": "text" } }]),
        Some(Era::Legacy),
        json!({ "logging": {}, "tools": {} }),
    );
    check(
        &["{ subscribe: 'shop://a' }", "{ call: a, notifications: [{ method: notifications/resources/updated }] }"],
        json!([{ "method": "notifications/resources/updated", "params": { "uri": "shop://a" } }]),
        None,
        json!({ "resources": { "subscribe": true }, "tools": {} }),
    );
    check(
        &["{ call: a, notifications: [{ method: notifications/tools/list_changed }] }"],
        json!([{ "method": "notifications/tools/list_changed", "params": {} }]),
        Some(Era::Legacy),
        json!({ "tools": { "listChanged": true } }),
    );
    check(&["{ call: a, notifications: [] }"], json!([]), None, json!({ "tools": {} }));
}

#[test]
fn a_server_asks_for_what_the_answers_of_a_step_are_for() {
    let made = of_steps(&[
        "{ call: a, answers: { elicitation: { name: Ann, age: 3 }, sampling: hi, roots: ['file:///a'] } }",
        "{ call: b, answers: { elicitation: decline } }",
    ]);
    assert_eq!(unmade(&made), Vec::<String>::new());
    let asked = |nth: usize| {
        let events = made.sessions[0].exchanges[nth].events.iter().map(|event| match event {
            MadeEvent::Request { method, params, response } => (*method, params.clone(), response.clone()),
            MadeEvent::Notification { .. } => panic!("{event:?}"),
        });
        events.collect::<Vec<_>>()
    };
    assert_eq!(
        asked(0).iter().map(|(method, ..)| *method).collect::<Vec<_>>(),
        ["roots/list", "elicitation/create", "sampling/createMessage"]
    );
    let first = asked(0);
    let (_, form, given) = &first[1];
    let properties = json!({ "name": { "type": "string" }, "age": { "type": "integer" } });
    assert_eq!(form["requestedSchema"]["properties"], properties);
    assert_eq!(given, &Ok(json!({ "action": "accept", "content": { "name": "Ann", "age": 3 } })));
    assert_eq!(asked(1)[0].2, Ok(json!({ "action": "decline" })));
    assert_eq!(made.sessions[0].capabilities.keys().collect::<Vec<_>>(), ["roots", "elicitation", "sampling"]);
    // The answers of a test are for its only call.
    let made = rehearsed("server: { stdio: x }\ntests:\n  - { name: a, answers: { sampling: hi }, steps: [ping, { call: a }] }\n");
    assert_eq!(made.sessions[0].exchanges[0].events.len(), 1);
}

#[test]
fn tests_are_told_apart_by_what_the_client_responds() {
    let of_answers = |first: &str, second: &str| {
        let test = |name: &str, answers: &str, text: &str| {
            format!("  - {{ name: {name}, steps: [{{ call: a, answers: {{ elicitation: {answers} }}, expect: {text} }}] }}\n")
        };
        rehearsed(&format!("server: {{ stdio: x }}\ntests:\n{}{}", test("a", first, "one"), test("b", second, "two")))
    };
    assert_eq!(unmade(&of_answers("{ name: Ann }", "decline")), Vec::<String>::new());
    let why = "call a: an earlier test begins with the same request, and expects another response";
    assert_eq!(unmade(&of_answers("decline", "decline")), [why]);
}

#[test]
fn a_server_that_is_started_anew_begins_another_session() {
    let made = of_steps(&["{ call: a, expect: one }", "{ call: b }", "restart", "{ call: b }", "{ call: a, expect: two }"]);
    let lengths: Vec<usize> = made.sessions.iter().map(|session| session.exchanges.len()).collect();
    assert_eq!((lengths, unmade(&made)), (vec![2, 2], Vec::new()));
    // The new process knows nothing of the old one.
    let made = of_steps(&["{ call: a, expect: one }", "restart", "{ call: a, expect: two }"]);
    assert_eq!(unmade(&made).len(), 1);
}

#[test]
fn a_call_as_a_task_becomes_one_in_the_era_of_the_suite() {
    let of_era = |era: &str| {
        rehearsed(&format!(
            "server: {{ stdio: x, era: {era} }}\ntests: [{{ name: a, steps: [{{ call: slow, task: true, expect: {{ n: 1 }} }}] }}]\n"
        ))
    };
    let methods = |made: &Rehearsal| responses(made).iter().map(|(method, _)| (*method).to_owned()).collect::<Vec<_>>();
    for era in ["auto", "legacy"] {
        let made = of_era(era);
        assert_eq!((unmade(&made), made.only.as_ref().map(|(era, _)| *era)), (Vec::new(), Some(Era::Legacy)));
        assert_eq!(methods(&made), ["tools/call", "tasks/get", "tasks/result"]);
        let said = responses(&made);
        let id = &said[0].1["task"]["taskId"];
        assert_eq!((&said[0].1["task"]["status"], &said[1].1["status"]), (&json!("working"), &json!("completed")));
        assert_eq!((&said[1].1["taskId"], &made.sessions[0].exchanges[2].params["taskId"]), (id, id));
        assert_eq!(said[2].1["structuredContent"], json!({ "n": 1 }));
        assert_eq!(made.lists["tools/list"]["tools"][0]["execution"], json!({ "taskSupport": "optional" }));
        assert_eq!(made.about["capabilities"]["tasks"], json!({ "requests": { "tools": { "call": {} } } }));
    }
    let made = of_era("modern");
    assert_eq!((unmade(&made), made.only.as_ref().map(|(era, _)| *era)), (Vec::new(), Some(Era::Modern)));
    assert_eq!(methods(&made), ["tools/call", "tasks/get"]);
    assert_eq!(responses(&made)[1].1["result"]["structuredContent"], json!({ "n": 1 }));
}

#[test]
fn the_handshake_says_what_is_expected_of_it() {
    let check = |expect: &str, pointer: &str, expected: Value, only: Option<Era>| {
        let made = of_steps(&[&format!("{{ handshake: , expect: {expect} }}"), "{ call: a }"]);
        assert_eq!(unmade(&made), Vec::<String>::new(), "{expect}");
        assert_eq!(made.about.pointer(pointer), Some(&expected), "{expect}");
        assert_eq!(made.only.map(|(era, _)| era), only, "{expect}");
        assert!(made.is_described, "{expect}");
    };
    check("{ serverInfo: { name: Shop } }", "/serverInfo", json!({ "name": "Shop", "version": "0" }), None);
    check("{ serverInfo: { version: { $regex: '^1[.]' } } }", "/serverInfo/name", json!("shop"), None);
    check("{ instructions: { $contains: tea } }", "/instructions", json!("tea"), None);
    check("{ capabilities: { logging: {} } }", "/capabilities", json!({ "tools": {}, "logging": {} }), None);
    check("{ protocolVersion: '2025-06-18' }", "/protocolVersion", json!("2025-06-18"), Some(Era::Legacy));
    check("{ protocolVersion: '2026-07-28', instructions: hi }", "/instructions", json!("hi"), Some(Era::Modern));
    let contrary = of_steps(&["{ handshake: , expect: { capabilities: { tools: { $absent: true } } } }", "{ call: a }"]);
    assert_eq!(contrary.unmade.len(), 1, "{:?}", unmade(&contrary));
    let versions = of_steps(&["{ handshake: , expect: { protocolVersion: '2026-07-28' } }", "{ call: a, task: true }"]);
    assert_eq!((unmade(&versions), versions.only.map(|(era, _)| era)), (Vec::new(), Some(Era::Modern)));
}

#[test]
fn what_is_not_served_is_named() {
    let check = |step: &str, expected: &str| {
        let made = of_steps(&["{ call: first }", step]);
        let told = unmade(&made);
        assert!(told.len() == 1 && told[0].contains(expected), "{step}: {told:?}");
    };
    check("{ call: a, expect: { $gt: 3, $lt: 3 } }", "no value was found that fits");
    check("{ call: a, no_response: reset }", "a mock breaks no connection by itself");
    check("{ call: a, notifications: [{ method: notifications/progress }] }", "progress is sent only to a request with a token");
    check("{ call: a, notifications: [{ method: notifications/tasks/status }] }", "sends no `notifications/tasks/status`");
    check("{ ping: , notifications: [{ method: notifications/message }] }", "only during calls, reads, prompts and completions");
    check("{ call: a, answers: { elicitation: { name: { first: Ann } } } }", "no form has a field for the value of `name`");
    check("{ call: a, snapshot: true }", "snapshot of call a: a mock serves what `expect` describes");
    check("{ call: a, times: 3, distinct: result._meta.id }", "distinct values of call a");
    check("{ close_stdin: , exited: { code: 3 } }", "a mock ends with the code 0");
    check("{ raw: { jsonrpc: '2.0', id: 7, method: ping } }", "a mock serves only calls");
    let two = "server: { stdio: x }\ntests:\n  - { name: a, answers: { sampling: hi }, steps: [{ call: a }, { call: b }] }\n";
    assert!(unmade(&rehearsed(two))[0].starts_with("answers of a: several steps"), "{:?}", unmade(&rehearsed(two)));
    let all = "server: { stdio: x }\nanswers: { sampling: hi }\ntests:\n  - { name: a, steps: [{ call: a }] }\n  - { name: b, steps: [{ call: b }] }\n";
    assert!(unmade(&rehearsed(all))[0].starts_with("answers: those of all tests"), "{:?}", unmade(&rehearsed(all)));
}
