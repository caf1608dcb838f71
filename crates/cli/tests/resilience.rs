//! Faults, retries, breakers, audits, leak checks and federations as a person meets them. What passes is in
//! `examples/resilience.mcproof.yaml`; here is what fails, and what is told.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod peers;
mod running;

use mcproof_client::{
    ConnectOptions, Deadline, Endpoint, FaultDirection, FaultInjector, FaultRule, InjectedFault, Launch, Schedule, Session, Tap, Target,
    open_session,
};
use mcproof_protocol::{EraChoice, Transport};
use mcproof_record::{AuditLine, FrameBody};
use peers::Peer;
use running::{check, run_files, run_suite};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const TRACKER: &str = "server:\n  stdio: mcproof demo tracker\n  \
    http: { command: \"mcproof demo tracker --http --port ${port}\", url: \"http://127.0.0.1:${port}/mcp\" }\n  \
    sse: { command: \"mcproof demo tracker --sse --port ${port}\", url: \"http://127.0.0.1:${port}/sse\" }\n\
    timeouts: { request: 2s }\n";
const ECHO: &str = "{ call: echo, with: { message: hi } }";

fn tracker(test: &str) -> String {
    format!("{TRACKER}tests:\n  - name: a\n    {test}\n")
}

#[test]
fn a_fault_that_nobody_expects_fails_the_test_and_is_told() {
    let check_fault = |fault: &str, said: &[&str]| check(&tracker(&format!("faults: {fault}\n    steps: [{ECHO}]")), &[], 1, said);
    let dropped = "`faults` dropped the response to `tools/call echo` (request";
    check_fault(
        "{ drop: true, tool: echo }",
        &["✗ FAIL [stdio, sse]", "✗ FAIL [http]", "no response to `tools/call` within 2 s", dropped, "`no_response`"],
    );
    check_fault("{ reset: true, method: tools/call }", &["3 failed", "`faults` closed the pipes in place of the response to"]);
}

#[test]
fn an_injected_fault_is_the_likely_cause_of_what_follows_it() {
    let blamed = |suite: &str, transport: &str| {
        let ran = run_suite(suite, &["--transport", transport, "--era", "legacy", "--connect-timeout", "5s", "--json"]);
        let finished = ran.finished().remove(0);
        let aftermath = &finished["aftermath"][0];
        let text = |key: &str| aftermath[key].as_str().unwrap_or_default().to_owned();
        (text("state"), text("blame"), text("message"))
    };
    let check_blame = |test: &str, transport: &str, state: &str, blame: &str, message: &str| {
        let found = blamed(&tracker(test), transport);
        assert_eq!((found.0.as_str(), found.1.as_str()), (state, blame), "{test}: {found:?}");
        assert!(found.2.contains(message), "{test}: {found:?}");
    };
    let disturbed = "and `faults` disturbed 1 message of this test";
    let dropped = format!("faults: {{ drop: true, tool: echo }}\n    steps: [{ECHO}]");
    check_blame(&dropped, "stdio", "answers", "injected-fault", disturbed);
    check_blame(&dropped, "http", "answers", "injected-fault", disturbed);
    check_blame(&format!("faults: {{ reset: true, tool: echo }}\n    steps: [{ECHO}]"), "stdio", "died", "injected-fault", disturbed);
    check_blame(
        &format!("faults: {{ drop: true, method: initialize }}\n    steps: [{ECHO}]"),
        "stdio",
        "not-started",
        "injected-fault",
        "before the handshake was complete",
    );
    // A server may end when its pipes close, but not like this.
    let crash = "import sys, json\nfor line in sys.stdin:\n  ask = json.loads(line)\n  if 'id' in ask:\n    told = {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 's', 'version': '1'}, 'tools': []}\n    print(json.dumps({'jsonrpc': '2.0', 'id': ask['id'], 'result': told}), flush=True)\n";
    let text = "server: { stdio: python3 crash.py }\ntests: [{ name: a, faults: { truncate: true, method: tools/list, to: server }, steps: [tools] }]\n";
    let ran = run_files(&[("s.mcproof.yaml", text), ("crash.py", crash)], &["--era", "legacy", "--json"]);
    let aftermath = ran.finished()[0]["aftermath"][0].clone();
    assert_eq!((&aftermath["state"], &aftermath["blame"]), (&json!("died"), &json!("server")), "{aftermath}");
    // A fault that never came about explains nothing.
    let elsewhere = "faults: { drop: true, tool: nope, probability: 0.000001 }\n    steps: [{ call: nope }]";
    check_blame(elsewhere, "stdio", "answers", "server-or-suite", "still responds to `ping`");
    // What hit an earlier test that shares the server is no cause.
    let shared = format!(
        "isolation: file\nfaults: {{ drop: true, tool: echo }}\n{TRACKER}tests:\n  - {{ name: a, steps: [{{ call: echo, with: {{ message: hi }}, no_response: timeout }}] }}\n  - {{ name: b, steps: [{{ call: nope }}] }}\n"
    );
    let ran = run_suite(&shared, &["--transport", "stdio", "--jobs", "1", "--json"]);
    let verdicts: Vec<(Value, Value)> = ran
        .finished()
        .into_iter()
        .map(|case| (case["verdict"].clone(), case["aftermath"].get(0).map_or(Value::Null, |after| after["blame"].clone())))
        .collect();
    assert_eq!(verdicts, [(json!("pass"), Value::Null), (json!("fail"), json!("server-or-suite"))], "{}", ran.stdout);
    // A server that was ended and started again in order did start.
    check(
        &format!("{TRACKER}tests: [{{ name: a, steps: [tools, restart, {{ call: nope }}] }}]\n"),
        &["--transport", "stdio"],
        1,
        &["rerun  mcproof test"],
    );
    let ran =
        run_suite(&format!("{TRACKER}tests: [{{ name: a, steps: [tools, restart, {{ call: nope }}] }}]\n"), &["--transport", "stdio"]);
    assert!(!ran.stdout.contains("before the handshake was complete"), "{}", ran.stdout);
}

#[test]
fn a_fault_that_hits_nothing_fails_the_test() {
    let said = ["3 failed", "this fault hit nothing over stdio, so that the test proves nothing", "`skip_if: { transport: stdio }`"];
    check(&tracker(&format!("faults: {{ drop: true, tool: other }}\n    steps: [{ECHO}]")), &[], 1, &said);
    // Nothing comes that could overtake the only answer.
    check(&tracker(&format!("faults: {{ reorder: true, tool: echo }}\n    steps: [{ECHO}]")), &[], 1, &["3 failed", "hit nothing"]);
    let by_chance = |tool: &str| tracker(&format!("faults: {{ drop: true, tool: {tool}, probability: 0.000001 }}\n    steps: [{ECHO}]"));
    check(&by_chance("echo"), &[], 0, &["3 passed", "by chance, this fault hit none of 1 message over stdio"]);
    check(&by_chance("ecko"), &[], 1, &["3 failed", "this fault hit nothing over stdio, so that the test proves nothing"]);
}

#[test]
fn faults_of_a_server_and_of_a_transport_hit_all_its_tests() {
    let text = format!(
        "server:\n  faults: {{ latency: 10ms, tool: echo }}\n  stdio: mcproof demo tracker\n  \
         http: {{ command: \"mcproof demo tracker --http --port ${{port}}\", url: \"http://127.0.0.1:${{port}}/mcp\", faults: [{{ status: 503, tool: echo }}] }}\n\
         tests:\n  - {{ name: a, steps: [{ECHO}] }}\n"
    );
    check(&text, &[], 1, &["1 passed, 1 failed", "status 503"]);
    let ran = run_suite(&text, &["--transport", "stdio", "-v"]);
    assert!(ran.stdout.contains("1 passed"), "{}", ran.stdout);
}

#[test]
fn what_may_do_its_work_twice_is_not_repeated_unless_it_is_forced() {
    let create = "{ call: create_issue, with: { project: p, title: t } }";
    let faults = "faults: { drop: true, tool: create_issue, first: 1 }";
    let said = ["3 failed", "declares neither `readOnlyHint` nor `idempotentHint`", "`retry: { force: true }`"];
    check(&tracker(&format!("{faults}\n    retry: 2\n    steps: [{create}]")), &[], 1, &said);
    check(&tracker(&format!("{faults}\n    retry: {{ max: 2, force: true }}\n    steps: [{create}]")), &[], 0, &["3 passed"]);
}

#[test]
fn retries_that_are_used_up_are_counted_and_each_attempt_is_an_exchange() {
    let text = tracker(&format!("faults: {{ status: 503, tool: echo }}\n    retry: {{ max: 2, delay: 10ms }}\n    steps: [{ECHO}]"));
    let ran = run_suite(&text, &["--transport", "http", "--json"]);
    let events: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let finished = events.iter().find(|event| event["event"] == "test-finished").unwrap();
    assert_eq!(finished["steps"][0]["exchanges"].as_array().unwrap().len(), 3, "{finished}");
    let told = finished["diagnostics"][0]["message"].as_str().unwrap();
    assert!(told.contains("it was tried 3 times"), "{told}");
    let frames = finished["transcripts"][0]["transcript"]["frames"].to_string();
    for note in ["fault: answered the request `tools/call echo`", "retry 2 of 2 in"] {
        assert!(frames.contains(note), "{note}: {frames}");
    }
}

#[test]
fn an_attempt_that_had_to_be_repeated_passed_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (suite, file) = (folder.path().join("s.mcproof.yaml"), folder.path().join("new/audit.jsonl"));
    let test = format!("faults: {{ status: 503, tool: echo, first: 1 }}\n    retry: {{ max: 2, delay: 10ms }}\n    steps: [{ECHO}]");
    std::fs::write(&suite, tracker(&test)).unwrap();
    let ran = running::run(&[suite.to_str().unwrap(), "--transport", "http", "--audit", file.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let passed: Vec<bool> = audit(&file).iter().map(|line| line.passed).collect();
    assert_eq!(passed, [false, true], "{:?}", audit(&file));
}

#[test]
fn an_open_breaker_has_a_diagnosis_of_its_own() {
    let expected = "{ call: echo, with: { message: hi }, no_response: true }";
    let text = tracker(&format!(
        "faults: {{ status: 500, tool: echo }}\n    breaker: {{ failures: 2, open: 60s }}\n    steps: [{expected}, {expected}, {ECHO}]"
    ));
    check(&text, &["--transport", "http,sse"], 1, &["2 failed", "`tools/call` was not sent: 2 requests in a row got no response"]);
    let answered = tracker("steps: [{ call: echo, with: { message: hi }, no_response: timeout }]");
    check(&answered, &[], 1, &["3 failed", "expected no response, found one"]);
}

#[test]
fn a_server_that_ends_is_no_mere_missing_response() {
    let script = "read -r line; id=$(printf %s \"$line\" | sed 's/.*\"id\":\\([^,}]*\\).*/\\1/'); \
                  printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}\\n' \"$id\"; \
                  read -r line; read -r line; exit 3\n";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dies.sh");
    std::fs::write(&file, script).unwrap();
    let of = |causes: &str| {
        let server = format!("server: {{ era: legacy, stdio: {{ command: [sh, {}] }} }}", file.display());
        format!("{server}\ntests: [{{ name: a, steps: [{{ call: a, no_response: {causes} }}] }}]\n")
    };
    check(&of("true"), &[], 1, &["exited with code 3", "`no_response: reset` does"]);
    check(&of("reset"), &[], 0, &["1 passed"]);
}

/// A session with the demo tracker that suffers from one rule.
async fn disturbed(over: Transport, rule: FaultRule) -> (Session, FaultInjector) {
    let port = mcproof_testkit::free_port().to_string();
    let mut command = vec![env!("CARGO_BIN_EXE_mcproof"), "demo", "tracker"];
    match over {
        Transport::Http => command.extend(["--http", "--port", &port]),
        Transport::Sse => command.extend(["--sse", "--port", &port]),
        _ => {}
    }
    let launch = Launch { command: command.into_iter().map(str::to_owned).collect(), ..Launch::default() };
    let target = match over {
        Transport::Stdio => Target::Stdio(launch),
        _ => {
            let path = if over == Transport::Sse { "sse" } else { "mcp" };
            let endpoint = Endpoint { url: format!("http://127.0.0.1:{port}/{path}").parse().unwrap(), headers: Vec::new() };
            Target::Http { endpoint, kind: Some(over), launch: Some(launch), locate: None }
        }
    };
    let injector = FaultInjector::new(vec![rule]);
    let options = ConnectOptions { era: EraChoice::Legacy, faults: Some(injector.clone()), ..ConnectOptions::default() };
    (open_session(&target, &options, &Tap::new()).await.unwrap(), injector)
}

async fn echo(session: &Session, message: &str) -> Value {
    let params = json!({ "name": "echo", "arguments": { "message": message } });
    let deadline = Deadline::from(Duration::from_secs(30));
    session.request("tools/call", params.as_object().cloned(), deadline).await.unwrap().answer.unwrap()
}

#[tokio::test]
async fn answers_overtake_each_other_and_come_twice_without_blame_for_the_server() {
    let rule = |disturbance, schedule| FaultRule {
        disturbance,
        toward: FaultDirection::Client,
        method: None,
        tool: Some("echo".into()),
        schedule,
        seed: 1,
    };
    for over in [Transport::Stdio, Transport::Http, Transport::Sse] {
        let (session, injector) = disturbed(over, rule(InjectedFault::Reorder, Schedule::First(1))).await;
        let (first, second) = tokio::join!(echo(&session, "one"), echo(&session, "two"));
        assert_eq!((&first["content"][0]["text"], &second["content"][0]["text"]), (&json!("one"), &json!("two")), "{over}");
        assert_eq!(injector.hits(), [1], "{over}: {:#?}", session.tap().transcript());
        assert!(session.faults().is_empty(), "{over}: {:?}", session.faults());
        session.close().await;
    }
    for over in [Transport::Stdio, Transport::Sse] {
        let (session, injector) = disturbed(over, rule(InjectedFault::Duplicate, Schedule::Always)).await;
        echo(&session, "one").await;
        // The answer to this one comes after the second answer to the first.
        echo(&session, "two").await;
        assert!(injector.hits()[0] >= 1, "{over}");
        assert!(session.faults().is_empty(), "{over}: {:?}", session.faults());
        let notes = session.tap().transcript().frames.into_iter().filter(
            |frame| matches!(&frame.body, FrameBody::Note { text } if text.starts_with("fault: sent the response to `tools/call echo`")),
        );
        assert!(notes.count() >= 1, "{over}");
        session.close().await;
    }
}

#[test]
fn every_request_is_audited_without_secrets_and_without_torn_lines() {
    let folder = tempfile::tempdir().unwrap();
    let suite = folder.path().join("s.mcproof.yaml");
    let call = "{ call: echo, with: { message: \"hunter2 is ${n}\" } }";
    let tests: String = (0..8).map(|n| format!("  - {{ name: t{n}, vars: {{ n: {n} }}, steps: [{call}, {{ call: create_issue, with: {{ project: hunter2, title: secret-{n} }} }}] }}\n")).collect();
    let text = format!("{TRACKER}audit: {{ file: audit.jsonl, redact: [project] }}\ntests:\n{tests}");
    std::fs::write(&suite, text).unwrap();
    let ran = running::run(&[suite.to_str().unwrap(), "--jobs", "8"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let lines = audit(&folder.path().join("audit.jsonl"));
    assert_eq!(lines.len(), 8 * 2 * 3);
    for transport in ["stdio", "http", "sse"] {
        assert_eq!(lines.iter().filter(|line| line.transport == transport).count(), 16);
    }
    let created: Vec<&AuditLine> = lines.iter().filter(|line| line.target.as_deref() == Some("create_issue")).collect();
    assert_eq!(created.len(), 24);
    for line in created {
        assert_eq!(line.arguments["project"], "[redacted]");
        let result = line.result.as_ref().unwrap().to_string();
        assert!(result.contains("secret-") && !result.contains("hunter2"), "{result}");
        assert!(line.passed && line.time.ends_with('Z') && line.session > 0, "{line:?}");
    }
    let schema = Command::new(env!("CARGO_BIN_EXE_mcproof")).args(["schema", "audit"]).output().unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_slice(&schema.stdout).unwrap()).unwrap();
    for line in std::fs::read_to_string(folder.path().join("audit.jsonl")).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let flaws: Vec<String> = validator.iter_errors(&line).map(|flaw| format!("{flaw} at {}", flaw.instance_path())).collect();
        assert!(flaws.is_empty(), "{flaws:?} in {line}");
        // The schema is one that can fail.
        let without = |member: &str| {
            line.as_object()
                .unwrap()
                .iter()
                .filter(|(name, _)| *name != member)
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect::<Value>()
        };
        assert!(!validator.is_valid(&without("method")) && validator.is_valid(&without("target")));
    }
    // The flag takes the place of the key, and a second run adds to what is there.
    let other = folder.path().join("other.jsonl");
    for runs in 1..=2 {
        running::run(&[suite.to_str().unwrap(), "--transport", "stdio", "--audit", other.to_str().unwrap()]);
        assert_eq!(audit(&other).len(), 16 * runs);
    }
    assert_eq!(audit(&folder.path().join("audit.jsonl")).len(), 48);
    let refused = running::run(&[suite.to_str().unwrap(), "--audit", "/dev/null/folder/a.jsonl"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("--audit"), "{}", refused.stderr);
}

fn audit(path: &Path) -> Vec<AuditLine> {
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_demo_and_the_everything_server_do_not_leak() {
    let steps = "leaks: true\n    steps: [{ call: echo, with: { message: hi } }, tools]";
    check(&tracker(steps), &[], 0, &["3 passed"]);
    let peer = Peer::named("everything");
    let (stdio, http) = (peer.start("stdio"), peer.start("http"));
    let env: String = http.env.iter().map(|(name, value)| format!("{name}: {value:?}")).collect::<Vec<_>>().join(", ");
    let text = format!(
        "server:\n  stdio: {{ command: {:?} }}\n  http: {{ command: {:?}, env: {{ {env} }}, url: {:?} }}\ntests:\n  - name: a\n    {steps}\n",
        stdio.command,
        http.command,
        http.url.unwrap(),
    );
    check(&text, &[], 0, &["2 passed"]);
}

#[test]
fn a_server_that_keeps_files_processes_and_sessions_is_caught() {
    let check_leaky = |transport: &str, flags: &str, limits: &str, code: i32, said: &[&str]| {
        let server = match transport {
            "stdio" => format!("stdio: {{ command: python3 leaky.py {flags} }}"),
            _ => format!("http: {{ command: \"python3 leaky.py --http ${{port}} {flags}\", url: \"http://127.0.0.1:${{port}}/mcp\" }}"),
        };
        let text = format!("server:\n  era: legacy\n  {server}\ntests: [{{ name: a, leaks: {limits}, steps: [{{ call: leak }}] }}]\n");
        let ran = run_files(&[("s.mcproof.yaml", text.as_str()), ("leaky.py", LEAKY)], &[]);
        assert_eq!(ran.code, Some(code), "{transport} {flags}: {}{}", ran.stdout, ran.stderr);
        for part in said {
            assert!(ran.stdout.contains(part), "{part:?} is not in\n{}", ran.stdout);
        }
    };
    for transport in ["stdio", "http"] {
        check_leaky(transport, "", "true", 0, &["1 passed"]);
        check_leaky(transport, "--files", "true", 1, &["after 10 repeats `server` holds 10 more open file descriptors (10 × /dev/null)"]);
        check_leaky(transport, "--files", "{ repeat: 3, fds: 3 }", 0, &["1 passed"]);
        check_leaky(transport, "--processes", "{ repeat: 3, fds: 100 }", 1, &["3 more processes (3 × sleep)"]);
    }
    check_leaky("http", "--sessions", "{ repeat: 2 }", 1, &["accepted DELETE for a session, but still serves it", "status 200"]);
    check_leaky(
        "http",
        "--no-delete",
        "{ repeat: 2 }",
        0,
        &["not tested for leaks: whether `server` ends sessions: DELETE returned status 405"],
    );
}

const LEAKY: &str = include_str!("running/leaky.py");

/// Answers each notification, as soon as it comes: after the last step of a test that only shakes hands, and between two tests.
const ANSWERS_NOTIFICATIONS: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    result = None
    if message.get("method") == "initialize":
        result = {"capabilities": {"tools": {}}, "protocolVersion": "2025-06-18", "serverInfo": {"name": "x", "version": "1"}}
    elif "id" in message:
        result = {"tools": []}
    print(json.dumps({"jsonrpc": "2.0", **({"id": message["id"]} if "id" in message else {}), "result": result}), flush=True)
"#;

/// Prints a line that is no message when its input ends, if it has an argument.
const PRINTS_LATE: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {"tools": []}
    if message["method"] == "initialize":
        result = {"capabilities": {"tools": {}}, "protocolVersion": "2025-06-18", "serverInfo": {"name": "x", "version": "1"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
if len(sys.argv) > 1:
    print("bye", flush=True)
"#;

#[test]
fn a_line_that_is_no_message_fails_a_test_when_it_comes_at_the_end() {
    for (flag, code) in [("", 0), (" noise", 1)] {
        let command = format!("python3 server.py{flag}");
        let text = format!("server:\n  era: legacy\n  stdio: {{ command: {command} }}\ntests: [{{ name: a, steps: [tools] }}]\n");
        let ran = run_files(&[("s.mcproof.yaml", text.as_str()), ("server.py", PRINTS_LATE)], &[]);
        assert_eq!(ran.code, Some(code), "{flag}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.stdout.contains("a line on stdout is not a message: `bye`"), code == 1, "{flag}: {}", ran.stdout);
    }
}

#[test]
fn what_comes_after_the_last_step_of_a_test_fails_a_test() {
    for (isolation, tests, failed) in [
        ("test", "{ name: a, steps: [handshake] }", "1 failed"),
        ("file", "{ name: a, steps: [handshake] }, { name: b, steps: [tools] }", "1 failed"),
        ("file", "{ name: a, steps: [handshake] }", "1 failed"),
    ] {
        let text = format!("server:\n  era: legacy\n  stdio: {{ command: python3 server.py }}\nisolation: {isolation}\ntests: [{tests}]\n");
        for _ in 0..4 {
            let ran = run_files(&[("s.mcproof.yaml", text.as_str()), ("server.py", ANSWERS_NOTIFICATIONS)], &[]);
            assert_eq!(ran.code, Some(1), "{isolation}: {}{}", ran.stdout, ran.stderr);
            assert!(ran.stdout.contains(failed), "{isolation}: {}", ran.stdout);
        }
    }
}

#[test]
fn tools_of_the_same_name_clash() {
    let servers = "servers:\n  one: { stdio: mcproof demo tracker }\n  two: { stdio: mcproof demo tracker }\n";
    let clash = format!("{servers}tests: [{{ name: a, steps: [federation] }}]\n");
    check(&clash, &[], 1, &["is offered by `one`, `two`, and 3 more names clash", "would shadow all but one", "`clashes: allowed`"]);
    let allowed = format!(
        "{servers}tests: [{{ name: a, steps: [{{ federation: , clashes: allowed, expect: {{ two.echo: {{ name: echo }} }} }}, {{ call: two.echo, with: {{ message: hi }} }}] }}]\n"
    );
    check(&allowed, &[], 0, &["1 passed"]);
    let missing = format!("{servers}tests: [{{ name: a, steps: [{{ federation: [one.echo], clashes: allowed }}] }}]\n");
    check(&missing, &[], 1, &["not expected:", "two.echo"]);
}
