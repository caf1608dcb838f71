//! A driver inside the process of the test library: what each turn does, and that nothing is lost between turns.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use mcproof_client::{Limits, TapBounds};
use mcproof_drive::{Embedded, Settings};
use serde_json::{Value, json};

fn settings() -> Settings {
    let talk = |text: &str| panic!("{text}");
    Settings { limits: Limits::default(), tap: TapBounds::default(), secrets: Vec::new(), talk }
}

/// A driver that is the server as well.
struct Driver(Embedded);

impl Driver {
    /// With a legacy session `s` that is open.
    fn new() -> Self {
        Self::skipping(&[])
    }

    /// The same, without these rules.
    fn skipping(rules: &[&str]) -> Self {
        let driver = Self(Embedded::new(settings()).unwrap());
        let target = json!({ "relay": "messages" });
        let open = request(1, "open", &json!({ "session": "s", "target": target, "era": "legacy", "skip_rules": rules }));
        let [initialize] = driver.turn(&[open]).try_into().unwrap();
        let result = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "a", "version": "1" } });
        let opened = driver.turn(&[answer(&initialize["params"]["message"], &result.to_string())]);
        assert_eq!(opened.iter().map(|line| &line["id"]).collect::<Vec<_>>(), [&json!(null), &json!(1)], "{opened:?}");
        driver
    }

    fn turn(&self, lines: &[String]) -> Vec<Value> {
        let told = String::from_utf8(self.0.turn(lines.concat().as_bytes())).unwrap();
        told.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Comes again, as whoever holds an engine does, until there is something.
    fn come_again(&self) -> Vec<Value> {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        loop {
            let told = self.turn(&[]);
            if !told.is_empty() {
                return told;
            }
            assert!(std::time::Instant::now() < end, "nothing came");
        }
    }

    /// The response to a request.
    fn asked(&self, id: u32, method: &str, params: &Value) -> Value {
        let mut told = self.turn(&[request(id, method, params)]);
        loop {
            if let Some(response) = told.into_iter().find(|line| line["id"] == id) {
                return response;
            }
            told = self.come_again();
        }
    }

    /// The codes of all faults so far.
    fn faults(&self, id: u32) -> Vec<String> {
        let told = self.asked(id, "transcript", &json!({ "session": "s", "frames": false, "text": false }));
        let faults = told["result"]["faults"].as_array().cloned().unwrap_or_default();
        faults.iter().map(|fault| fault["code"].as_str().unwrap().to_owned()).collect()
    }

    /// A call that the server does not answer yet, and the message of it.
    fn call(&self, id: u32, params: &Value) -> Value {
        let [written] = self.turn(&[request(id, "call", params)]).try_into().unwrap();
        written["params"]["message"].clone()
    }
}

fn line(message: &Value) -> String {
    format!("{message}\n")
}

/// Its members in the usual order.
fn request(id: u32, method: &str, params: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#) + "\n"
}

fn notification(method: &str, params: &Value) -> String {
    line(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
}

fn received(message: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"relay/received","params":{{"session":"s","message":{message}}}}}"#) + "\n"
}

fn answer(message: &Value, result: &str) -> String {
    received(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, message["id"]))
}

fn messages(told: &[Value]) -> Vec<&str> {
    told.iter().filter_map(|line| line["params"]["message"]["method"].as_str()).collect()
}

/// The kind of trouble that the only line tells of request `id`.
fn trouble(told: &[Value], id: u32) -> &str {
    let [line] = told else { panic!("{told:?}") };
    assert_eq!(line["id"], id);
    line["error"]["data"]["kind"].as_str().unwrap_or_else(|| panic!("{line}"))
}

const HANG: &str = "hang";

#[test]
fn a_question_and_its_answer_take_a_turn_each() {
    let driver = Driver::new();
    let message = driver.call(2, &json!({ "session": "s", "tool": "add", "arguments": { "a": 1 } }));
    assert_eq!(message["params"], json!({ "name": "add", "arguments": { "a": 1 } }));
    let result = r#"{"content": [], "structuredContent": {"sum": 12345678901234567890123}}"#;
    let told = String::from_utf8(driver.0.turn(answer(&message, result).as_bytes())).unwrap();
    assert!(told.contains(&format!(r#""id":2,"result":{{"result":{result},"payload""#)), "{told}");
    let unasked = driver.turn(&[answer(&message, "{}")]);
    assert_eq!(unasked, Vec::<Value>::new());
}

#[test]
fn many_questions_are_answered_as_their_answers_come() {
    let driver = Driver::new();
    let asked: Vec<String> = (2..50).map(|id| request(id, "request", &json!({ "session": "s", "method": "ping" }))).collect();
    let mut written = driver.turn(&asked);
    written.reverse();
    let answers: Vec<String> = written.iter().map(|line| answer(&line["params"]["message"], "{}")).collect();
    let (some, others) = answers.split_at(7);
    let told = [driver.turn(some), driver.turn(&[]), driver.turn(others)].concat();
    let mut ids: Vec<u64> = told.iter().filter_map(|line| line["id"].as_u64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (2..50).collect::<Vec<u64>>());
}

#[test]
fn a_question_does_not_overtake_what_came_before_it() {
    let driver = Driver::new();
    let notify = request(2, "notify", &json!({ "session": "s", "method": "notifications/a" }));
    let told = driver.turn(&[notify, request(3, "request", &json!({ "session": "s", "method": "b" }))]);
    assert_eq!(messages(&told), ["notifications/a", "b"]);
}

#[test]
fn a_question_in_passing_may_be_cancelled_late_or_given_up() {
    let driver = Driver::new();
    driver.call(2, &json!({ "session": "s", "tool": HANG }));
    let mut told = driver.turn(&[notification("cancel", &json!({ "id": 2 }))]);
    assert_eq!(messages(&told), ["notifications/cancelled"]);
    assert_eq!(trouble(&told.split_off(1), 2), "canceled");

    driver.call(3, &json!({ "session": "s", "tool": HANG, "timeout_ms": 1 }));
    let mut told = driver.come_again();
    assert_eq!(messages(&told), ["notifications/cancelled"]);
    assert_eq!(trouble(&told.split_off(1), 3), "unanswered");

    driver.call(4, &json!({ "session": "s", "tool": HANG }));
    let told = driver.turn(&[request(5, "close", &json!({ "session": "s" }))]);
    assert_eq!(trouble(&told[..1], 4), "unanswered");
}

#[test]
fn a_server_that_refuses_or_hangs_up_is_told_of() {
    let driver = Driver::new();
    let message = driver.call(2, &json!({ "session": "s", "tool": "none" }));
    let error = json!({ "jsonrpc": "2.0", "id": message["id"], "error": { "code": -32602, "message": "no such tool" } });
    assert_eq!(trouble(&driver.turn(&[received(&error.to_string())]), 2), "refused");
    let message = driver.call(3, &json!({ "session": "s", "tool": "fails", "raise_errors": true }));
    assert_eq!(trouble(&driver.turn(&[answer(&message, r#"{"isError":true,"content":[]}"#)]), 3), "refused");
    driver.call(4, &json!({ "session": "s", "tool": HANG }));
    let mut told = driver.turn(&[notification("relay/closed", &json!({ "session": "s" }))]);
    while told.len() < 2 {
        told.extend(driver.come_again());
    }
    assert!(told.iter().any(|line| line["id"] == 4 && line["error"].is_object()), "{told:?}");
}

#[test]
fn progress_comes_before_the_answer() {
    let driver = Driver::new();
    let message = driver.call(2, &json!({ "session": "s", "tool": "slow", "progress": true }));
    let token = &message["params"]["_meta"]["progressToken"];
    let params = json!({ "progressToken": token, "progress": 1 });
    let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
    let told = driver.turn(&[received(&progress.to_string()), answer(&message, "{}")]);
    let told: Vec<(&Value, &Value)> = told.iter().map(|line| (&line["method"], &line["id"])).collect();
    assert_eq!(told[0].0, "session/progress");
    assert_eq!(told.last().unwrap().1, 2);
}

const WITHOUT_TEXT: &str = r#"{"content":[{"type":"text"}]}"#;
const SOUND: &str = r#"{"content":[{"type":"text","text":"3"}]}"#;
const OF_SCHEMA: &str = "message-matches-schema";

#[test]
fn what_breaks_a_rule_is_a_fault_each_time_that_it_comes() {
    let driver = Driver::new();
    let call = |id, result| driver.turn(&[answer(&driver.call(id, &json!({ "session": "s", "tool": "add" })), result)]);
    call(2, SOUND);
    assert!(driver.faults(3).is_empty());
    call(4, WITHOUT_TEXT);
    assert_eq!(driver.faults(5), [OF_SCHEMA]);
    call(6, SOUND);
    assert_eq!(driver.faults(7), [OF_SCHEMA]);
    call(8, WITHOUT_TEXT);
    assert_eq!(driver.faults(9), [OF_SCHEMA, OF_SCHEMA]);
}

#[test]
fn what_a_raw_message_leads_to_breaks_no_rule() {
    let driver = Driver::new();
    let raw = json!({ "jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": { "name": "add" } });
    let [written] = driver.turn(&[request(2, "raw", &json!({ "session": "s", "message": raw }))]).try_into().unwrap();
    driver.turn(&[answer(&written["params"]["message"], WITHOUT_TEXT)]);
    assert!(driver.faults(3).is_empty());
    driver.turn(&[answer(&driver.call(4, &json!({ "session": "s", "tool": "add" })), WITHOUT_TEXT)]);
    assert_eq!(driver.faults(5), [OF_SCHEMA]);
}

#[test]
fn rules_may_be_left_out() {
    let driver = Driver::skipping(&["message-*"]);
    driver.turn(&[answer(&driver.call(2, &json!({ "session": "s", "tool": "add" })), WITHOUT_TEXT)]);
    assert!(driver.faults(3).is_empty());
    let open = json!({ "session": "t", "target": { "relay": "messages" }, "skip_rules": ["message-matches-shema"] });
    let refused = driver.asked(4, "open", &open);
    assert_eq!(refused["error"]["data"]["kind"], "bad-input", "{refused}");
    assert!(refused["error"]["data"]["text"].as_str().unwrap().contains(OF_SCHEMA), "{refused}");
}

#[test]
fn a_payload_is_expected_of_a_call_that_succeeds() {
    let driver = Driver::new();
    let check = |result: &Value, expectation: Value, allow_error: bool, expected: bool| {
        let params = json!({ "result": result, "expectation": expectation, "allow_error": allow_error });
        let judged = driver.asked(2, "expect", &params);
        assert_eq!(judged["result"]["ok"], expected, "{params}: {judged}");
        judged["result"]["text"].as_str().unwrap_or_default().to_owned()
    };
    let three = json!({ "content": [{ "type": "text", "text": "3" }] });
    let failed = json!({ "content": [{ "type": "text", "text": "3 is not allowed" }], "structuredContent": { "sum": 3 }, "isError": true });
    check(&three, json!(3), false, true);
    check(&three, json!({ "$text": "3" }), false, true);
    for expectation in [json!({ "sum": 3 }), json!({ "$text": "/3/" })] {
        let text = check(&failed, expectation.clone(), false, false);
        assert!(text.contains("expected success, found an `isError` result: 3 is not allowed"), "{text}");
        check(&failed, expectation, true, true);
    }
    check(&failed, json!({ "sum": 4 }), true, false);
}

#[test]
fn results_are_held_against_the_schemas_that_were_listed() {
    let driver = Driver::new();
    let list = |id, tools: &Value| {
        let [written] = driver.turn(&[request(id, "list", &json!({ "session": "s", "what": "tools" }))]).try_into().unwrap();
        driver.turn(&[answer(&written["params"]["message"], &json!({ "tools": tools }).to_string())]);
    };
    let call = |id| {
        let result = r#"{"content":[{"type":"text","text":"{}"}],"structuredContent":{"sum":"3"}}"#;
        driver.turn(&[answer(&driver.call(id, &json!({ "session": "s", "tool": "add" })), result)]);
    };
    let output = json!({ "type": "object", "properties": { "sum": { "type": "number" } } });
    let tool = json!({ "name": "add", "inputSchema": { "type": "object" }, "outputSchema": output });
    call(2);
    assert!(driver.faults(3).is_empty());
    list(4, &json!([tool]));
    assert!(driver.faults(5).is_empty());
    call(6);
    assert_eq!(driver.faults(7), ["call-output-matches-schema"]);
    list(8, &json!([tool, tool]));
    assert_eq!(driver.faults(9), ["call-output-matches-schema", "duplicate-name"]);
}
