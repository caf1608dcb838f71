//! What a server asks back while a step runs, and calls as tasks: over stdio and HTTP with the official everything server for
//! 2025-11-25, over HTTP with rmcp for 2026-07-28.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod peers;
mod running;

use mcproof_testkit::workshop::{Workshop, serve};
use peers::Peer;
use running::{check, run_suite};
use serde_json::Value;
use tokio::net::TcpListener;

/// The everything server, and what follows.
fn everything(rest: &str) -> String {
    let peer = Peer::named("everything");
    let (stdio, http) = (peer.start("stdio"), peer.start("http"));
    let env: String = http.env.iter().map(|(name, value)| format!("{name}: {value:?}")).collect::<Vec<_>>().join(", ");
    let http = format!("{{ command: {:?}, env: {{ {env} }}, url: {:?} }}", http.command, http.url.unwrap());
    format!("server:\n  stdio: {{ command: {:?} }}\n  http: {http}\n{rest}", stdio.command)
}

/// Runs a suite on a workshop in this process, and gives what came of it.
async fn workshop(rest: &str, arguments: &'static [&'static str]) -> running::Ran {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let text = format!("server: {{ http: \"http://{}/mcp\" }}\n{rest}", listener.local_addr().unwrap());
    let server = tokio::spawn(serve(Workshop::default(), listener));
    let ran = tokio::task::spawn_blocking(move || run_suite(&text, arguments)).await.unwrap();
    server.abort();
    ran
}

async fn check_workshop(rest: &str, code: i32, said: &[&str]) {
    let ran = workshop(rest, &[]).await;
    assert_eq!(ran.code, Some(code), "{}{}", ran.stdout, ran.stderr);
    for part in said {
        assert!(ran.stdout.contains(part), "{part:?} is not in\n{}", ran.stdout);
    }
}

/// The messages that a case that failed sent.
fn sent(finished: &Value) -> Vec<Value> {
    let frames = finished["transcripts"][0]["transcript"]["frames"].as_array().unwrap();
    let to_server = frames.iter().filter(|frame| frame["direction"] == "to-server");
    let text = |frame: &Value| frame["body"]["bytes"].as_str().or(frame["body"]["body"].as_str()).map(str::to_owned);
    to_server.filter_map(text).filter_map(|text| serde_json::from_str(&text).ok()).collect()
}

fn one_test(steps: &[&str]) -> String {
    steps.iter().fold("tests:\n  - name: a\n    steps:\n".to_owned(), |text, step| format!("{text}      - {step}\n"))
}

#[test]
fn answers_of_a_step_hold_for_that_step() {
    let ask =
        |answers: &str, expected: &str| format!("{{ call: trigger-elicitation-request{answers}, expect: {{ $text: /{expected}/ }} }}");
    let sample = |answers: &str, expected: &str| {
        format!("{{ call: trigger-sampling-request, with: {{ prompt: p }}{answers}, expect: {{ $text: /{expected}/ }} }}")
    };
    let steps = [
        ask("", "Name. Ada"),
        ask(", answers: { elicitation: decline }", "declined"),
        ask(", answers: { elicitation: { name: Grace } }", "Name. Grace"),
        ask("", "Name. Ada"),
        sample(", answers: { sampling: a poem }", "a poem"),
        // The elicitation of the suite holds on beside the sampling of the step.
        format!("{{ parallel: [{}, {}], answers: {{ sampling: a song }} }}", ask("", "Name. Ada"), sample("", "a song")),
        // The tool is there, because a step of this session has a policy. This one has none.
        "{ call: trigger-sampling-request, with: { prompt: p }, tool_error: /does not offer sampling/ }".to_owned(),
    ];
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    check(&everything(&format!("answers: {{ elicitation: {{ name: Ada }} }}\n{}", one_test(&steps))), &[], 0, &["2 passed"]);
}

#[test]
fn tests_that_share_a_session_have_answers_of_their_own() {
    let test = |name: &str| {
        let expected = format!("expect: {{ $text: /Name. {name}/ }}");
        format!(
            "  - {{ name: {name}, answers: {{ elicitation: {{ name: {name} }} }}, steps: [{{ call: trigger-elicitation-request, {expected} }}] }}\n"
        )
    };
    let text = format!("isolation: file\ntests:\n{}{}", test("Ada"), test("Grace"));
    check(&everything(&text), &["--jobs", "1"], 0, &["4 passed"]);
}

#[tokio::test]
async fn a_modern_request_declares_what_its_step_answers() {
    let steps = [
        "{ call: greet, answers: { elicitation: { name: Grace } }, expect: hello Grace }",
        "{ call: greet, answers: { elicitation: decline }, expect: hello nobody }",
        "{ call: compose, answers: { sampling: a line }, expect: a line }",
        "{ call: greet }",
    ];
    let ran = workshop(&one_test(&steps), &["--json"]).await;
    let finished = &ran.finished()[0];
    let passed: Vec<&Value> = finished["steps"].as_array().unwrap().iter().map(|step| &step["passed"]).collect();
    assert_eq!(passed, [true, true, true, false], "{finished:#}");
    let message = finished["diagnostics"][0]["message"].as_str().unwrap();
    assert_eq!(message, "the server requests input that no client response is configured for, or requests it without end");
    let calls = sent(finished).into_iter().filter(|message| message["method"] == "tools/call");
    let declared = |message: Value| {
        let capabilities = &message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        capabilities.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
    };
    let declared: Vec<String> = calls.map(declared).collect();
    assert_eq!(declared, ["elicitation", "elicitation", "elicitation", "elicitation", "sampling", "sampling", ""]);
}

#[test]
fn a_call_as_a_task_is_followed_to_its_end() {
    let research = |with: &str, rest: &str| format!("{{ call: simulate-research-query, with: {{ topic: python{with} }}, task: {rest} }}");
    let steps = [
        research("", "true, expect: { $text: /^# Research Report. python\\n/ }"),
        research(
            ", ambiguous: true",
            "{ ttl: 60s }, answers: { elicitation: { interpretation: snake } }, expect: { $text: /python .snake./ }",
        ),
    ];
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    check(&everything(&one_test(&steps)), &[], 0, &["2 passed"]);
    let fails = |step: &str, said: &[&str]| check(&everything(&one_test(&[step])), &["--transport", "stdio"], 1, said);
    fails(&research("", "true, timeout: 2s"), &["is still working after", "and was canceled", "raise `timeouts.request`"]);
    fails("{ call: echo, with: { message: m }, task: true }", &["tool `echo` must not be called as a task", "remove `task`"]);
}

#[tokio::test]
async fn a_modern_call_as_a_task_is_followed_to_its_end() {
    let steps = [
        "{ call: work, task: true, expect: done }",
        "{ call: ask, task: true, answers: { elicitation: { name: Grace } }, expect: Grace }",
        "{ call: fail, task: true, rpc_error: { code: -32603 } }",
        "{ call: work, task: true, times: 5, concurrency: 5, expect: done }",
    ];
    check_workshop(&one_test(&steps), 0, &["1 passed"]).await;
    let check = async |step: &str, said: &[&str]| check_workshop(&one_test(&[step]), 1, said).await;
    check("{ call: now, task: true }", &["the call returned at once and did not become a task", "leave out `task`"]).await;
    check("{ call: endless, task: true, timeout: 200ms }", &["is still working after", "and was canceled"]).await;
    check("{ call: ask, task: true }", &["requests input that no client response covers: elicitation/create (`who`)"]).await;
    check("{ call: work, task: true, expect: undone }", &["expected \"undone\", found \"done\""]).await;
}

#[test]
fn a_cancelled_call_is_told_why() {
    let call = "call: trigger-long-running-operation, with: { duration: 20, steps: 20 }, after: 100ms";
    let steps = [
        format!("{{ cancel: {{ {call} }} }}"),
        format!("{{ cancel: {{ {call}, reason: \"found it for ${{who}}\" }} }}"),
        "{ call: echo, with: { message: hi }, expect: ho }".to_owned(),
    ];
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let ran = run_suite(&everything(&format!("vars: {{ who: Ada }}\n{}", one_test(&steps))), &["--json"]);
    for finished in ran.finished() {
        let cancelled = sent(&finished).into_iter().filter(|message| message["method"] == "notifications/cancelled");
        let reasons: Vec<Value> = cancelled.map(|message| message["params"]["reason"].clone()).collect();
        assert_eq!(reasons, ["canceled by the caller, who no longer needs the answer", "found it for Ada"]);
    }
}
