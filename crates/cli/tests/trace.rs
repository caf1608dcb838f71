//! Traces as a person uses them: recorded by real commands on real servers, then shown, searched, compared, exported and redacted.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use mcproof_trace::{Trace, TraceLine};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");

/// It ends with this code and says all of this. Gives stdout.
fn check(folder: &Path, arguments: &[&str], code: i32, said: &[&str]) -> String {
    let output = Command::new(MCPROOF).current_dir(folder).env_remove("CI").args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let all = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {all}");
    for part in said {
        assert!(all.contains(part), "{arguments:?}: {part:?} is not in\n{all}");
    }
    text(&output.stdout)
}

const SUITE: &str = "\
server: { stdio: MCPROOF demo shop }
tests:
  - name: an order is paid
    steps:
      - { call: check_inventory, with: { product_id: PROD-123 }, expect: { available: 10 } }
      - { call: create_order, with: { product_id: PROD-123, quantity: 2 }, save: { order: id } }
      - { call: process_payment, with: { order_id: \"${order}\", amount: 99.99 }, expect: { status: success } }
      - { call: create_order, with: { product_id: PROD-123, quantity: 999 }, tool_error: true }
";

/// A folder with traces of a suite.
fn recorded() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("shop.mcproof.yaml"), SUITE.replace("MCPROOF", MCPROOF)).unwrap();
    check(folder.path(), &["test", "shop.mcproof.yaml", "--trace", "traces"], 0, &["1 passed", "1 trace in traces; show one with"]);
    folder
}

const RECORDED: &str = "traces/shop-an-order-is-paid-stdio.mcptrace";

#[test]
fn a_trace_is_shown_searched_and_compared() {
    let folder = recorded();
    let at = folder.path();
    check(at, &["trace", "show", RECORDED], 0, &["stdio", "→ tools/call process_payment  ok", "→ tools/call create_order  tool-error"]);
    check(at, &["trace", "show", RECORDED, "--frames"], 0, &["started process"]);
    let found = check(at, &["trace", "grep", "tool:process_payment", RECORDED, "--json"], 0, &[]);
    let call: Value = serde_json::from_str(&found).unwrap();
    let key = call["key"].to_string();
    check(at, &["trace", "show", RECORDED, &key], 0, &["\"amount\": 99.99", "request\n", "response\n", "frames\n"]);
    assert_eq!(check(at, &["trace", "grep", "-c", "status:error", RECORDED], 0, &[]), "1\n");
    check(at, &["trace", "grep", "tool:none", RECORDED], 1, &[]);
    check(at, &["trace", "grep", "toool:none", RECORDED], 2, &["unknown key `toool`", "did you mean `tool:`?", "^^^^^"]);
    check(at, &["trace", "show", RECORDED, "99"], 2, &["the trace has no call 99"]);
    check(at, &["trace", "show", "shop.mcproof.yaml"], 2, &["cannot read shop.mcproof.yaml: not a trace"]);
    check(at, &["trace", "diff", RECORDED, RECORDED], 0, &["0 changed, 0 removed, 0 added"]);
    let more = ["call", "check_inventory", "product_id=PROD-124", "--trace", "one.mcptrace", "--", MCPROOF, "demo", "shop"];
    check(at, &more, 0, &[]);
    check(at, &["trace", "diff", RECORDED, "one.mcptrace"], 1, &["removed", "whose arguments differ at /product_id"]);
}

#[test]
fn a_suite_of_a_recording_passes_at_once() {
    let folder = recorded();
    let at = folder.path();
    check(at, &["trace", "export", RECORDED, "--suite", "--output", "again.mcproof.yaml"], 0, &["1 test with 5 steps"]);
    let text = fs::read_to_string(at.join("again.mcproof.yaml")).unwrap();
    assert!(text.contains("${id}") && text.contains("save:") && text.contains("tool_error: Insufficient inventory"), "{text}");
    check(at, &["test", "again.mcproof.yaml"], 0, &["1 passed"]);
    // It is a test: on another server it fails.
    fs::write(at.join("again.mcproof.yaml"), text.replace("available: 10", "available: 11")).unwrap();
    check(at, &["test", "again.mcproof.yaml"], 1, &["expected 11, found 10"]);
}

const EXPECTING: &str = "\
server: { stdio: MCPROOF demo shop }
tests:
  - name: finds
    steps:
      - { tools: [find, fail], expect: { find: { description: { $regex: '^Finds' } } } }
      - { call: find, with: { q: tea }, expect: { items: [{ name: { $regex: '^T-[0-9]+$' }, price: { $gt: 3, $lt: 5 } }] } }
      - { call: find, with: { q: nothing }, rpc_error: { code: -32001 } }
      - { call: fail, tool_error: /out of stock/ }
  - name: reads
    steps:
      - { read: 'shop://terms', expect: { contents: [{ text: { $contains: returned } }] } }
      - { prompt: greet, with: { name: Ann }, expect: { messages: { $len: 1 } } }
";

/// What goes on beside the responses, in the eras in which it exists.
const BESIDE: &str = "\
server: { stdio: MCPROOF demo shop }
tests:
  - name: says what it is
    steps:
      - { handshake: , expect: { serverInfo: { name: Teas }, instructions: { $contains: tea }, capabilities: { tools: {} } } }
      - { call: brew, with: { q: tea }, meta: { progressToken: p }, notifications: [{ method: notifications/progress, params: { progressToken: p } }] }
  - name: asks the user
    steps:
      - { call: order, answers: { elicitation: { name: Ann } }, expect: ordered }
  - name: is declined
    steps:
      - { call: order, answers: { elicitation: decline }, expect: not ordered }
  - name: asks nobody
    steps:
      - { call: order, expect: nobody to ask }
  - name: tells of changes
    steps:
      - { subscribe: 'shop://terms' }
      - { call: change, notifications: [{ method: notifications/resources/updated, params: { uri: 'shop://terms' } }] }
  - name: is canceled
    steps:
      - { cancel: { call: slow, after: 5ms } }
      - { call: quick, expect: quick }
";

/// What only one era has.
const LEGACY: &str = "\
server: { stdio: MCPROOF demo shop }
tests:
  - name: takes its time
    steps:
      - { handshake: , expect: { protocolVersion: '2025-11-25' } }
      - { call: count, with: { to: 3 }, task: true, expect: { n: 3 } }
  - name: logs
    steps:
      - { call: log, notifications: [{ method: notifications/message, params: { data: { $contains: tea } } }], expect: logged }
      - { call: grow, notifications: [{ method: notifications/tools/list_changed }] }
";

#[test]
fn a_mock_of_a_suite_notifies_asks_and_makes_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (file, suite) in [("beside.mcproof.yaml", BESIDE), ("legacy.mcproof.yaml", LEGACY), ("modern.mcproof.yaml", MODERN)] {
        fs::write(at.join(file), suite.replace("MCPROOF", MCPROOF)).unwrap();
        check(at, &["test", file, "--", MCPROOF, "mock", file], 0, &["passed"]);
    }
    // In the other era as well.
    let legacy = BESIDE.replace("server: { stdio: MCPROOF demo shop }", "server: { stdio: MCPROOF demo shop, era: legacy }");
    fs::write(at.join("beside.mcproof.yaml"), legacy.replace("MCPROOF", MCPROOF)).unwrap();
    check(at, &["test", "beside.mcproof.yaml", "--", MCPROOF, "mock", "beside.mcproof.yaml"], 0, &["6 passed"]);
    check(at, &["mock", "legacy.mcproof.yaml"], 0, &["note: the mock speaks only the legacy era"]);
}

/// Tasks of the extension.
const MODERN: &str = "\
server: { stdio: MCPROOF demo shop, era: modern }
tests:
  - name: takes its time
    steps:
      - { discover: , expect: { instructions: ask for tea } }
      - { call: count, with: { to: 3 }, task: true, expect: { n: 3 } }
";

#[test]
fn a_mock_of_a_suite_says_what_its_tests_expect() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (file, suite) in [("shop.mcproof.yaml", SUITE), ("other.mcproof.yaml", EXPECTING)] {
        fs::write(at.join(file), suite.replace("MCPROOF", MCPROOF)).unwrap();
        check(at, &["test", file, "--", MCPROOF, "mock", file], 0, &["passed"]);
    }
    // Its own server has none of it: the mock does not pass because everything would.
    check(at, &["test", "other.mcproof.yaml"], 1, &["2 failed"]);
    check(at, &["call", "find", "q=tea", "--era", "modern", "--", MCPROOF, "mock", "other.mcproof.yaml"], 0, &["T-"]);
    check(at, &["call", "find", "q=coffee", "--", MCPROOF, "mock", "other.mcproof.yaml"], 1, &["was not recorded with these parameters"]);
    // What is not served is told.
    let more = EXPECTING.replace("      - { read:", "      - { raw: { jsonrpc: '2.0', id: 7, method: no/such } }\n      - { read:");
    fs::write(at.join("more.mcproof.yaml"), more).unwrap();
    check(at, &["mock", "more.mcproof.yaml"], 0, &["note: more.mcproof.yaml:11: `raw no/such` is not served: a mock serves only calls"]);
    fs::write(at.join("none.mcproof.yaml"), "server: { stdio: x }\ntests: [{ name: a, steps: [ping] }]\n").unwrap();
    check(at, &["mock", "none.mcproof.yaml"], 2, &["no step of none.mcproof.yaml describes a response"]);
}

#[test]
fn no_server_is_made_of_a_trace_without_a_handshake() {
    let folder = tempfile::tempdir().unwrap();
    let silent = ["tools", "--trace", "silent.mcptrace", "--era", "legacy", "--connect-timeout", "200ms", "--", "sleep", "60"];
    check(folder.path(), &silent, 3, &["no response to `initialize`"]);
    check(folder.path(), &["mock", "silent.mcptrace"], 2, &["no server got through the handshake in silent.mcptrace"]);
    check(folder.path(), &["trace", "silent.mcptrace"], 2, &["`mcproof trace show silent.mcptrace`"]);
}

#[test]
fn a_trace_is_exported() {
    let folder = recorded();
    let at = folder.path();
    let read = |name: &str| fs::read_to_string(at.join(name)).unwrap();
    for format in ["har", "otlp", "markdown", "html", "jsonl"] {
        check(at, &["trace", "export", RECORDED, &format!("--{format}"), "--output", format], 0, &[]);
    }
    let har: Value = serde_json::from_str(&read("har")).unwrap();
    let entries = har["log"]["entries"].as_array().unwrap();
    assert!(entries.iter().any(|entry| entry["request"]["url"].as_str().unwrap().ends_with("/tools/call/process_payment")), "{har:#}");
    assert!(entries.iter().all(|entry| entry["_mcproof"]["mapped"] == true));
    let otlp: Value = serde_json::from_str(&read("otlp")).unwrap();
    let spans = otlp["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    assert!(spans.iter().any(|span| span["name"] == "tools/call create_order" && span["status"]["code"] == 2), "{otlp:#}");
    assert!(read("markdown").contains("| tools/call create\\_order | 2 | 1 |"), "{}", read("markdown"));
    // What it looks like is seen in the browser tests of the inspector, from this very command.
    assert!(read("html").contains("process_payment"));
    assert!(Trace::open(&at.join("jsonl")).unwrap().all(|line| line.is_ok()));
    check(at, &["trace", "diff", "jsonl", RECORDED], 0, &["0 changed"]);
    check(at, &["trace", "export", RECORDED], 2, &["--har"]);
}

/// What others read: a validator of HAR, and the messages of OpenTelemetry. A peer judges each of them.
#[test]
fn exports_are_what_the_programs_of_others_read() {
    let folder = recorded();
    let at = folder.path();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    for source in [RECORDED, "http.mcptrace"] {
        if source == "http.mcptrace" {
            let server = ["call", "http://127.0.0.1:${port}/mcp", "check_inventory", "product_id=PROD-124", "--trace", source, "--"];
            check(at, &[&server[..], &[MCPROOF, "demo", "shop", "--http", "--port", "${port}"]].concat(), 0, &[]);
        }
        for format in ["har", "otlp"] {
            check(at, &["trace", "export", source, &format!("--{format}"), "--output", format], 0, &[]);
        }
        let validator = root.join("target/peers/node/har/node_modules/har-validator/lib/promise.js");
        assert!(validator.exists(), "{} is not there: run `cargo xtask peers` first", validator.display());
        let script = "const [library, file] = process.argv.slice(1); \
            require(library).har(JSON.parse(require('fs').readFileSync(file))).catch(error => { console.error(error); process.exit(1) })";
        let judged = Command::new("node").args(["-e", script]).arg(validator).arg(at.join("har")).output().unwrap();
        assert!(judged.status.success(), "{source}: {}", String::from_utf8_lossy(&judged.stderr));

        let request = serde_json::json!({"path": "/v1/traces", "body": fs::read_to_string(at.join("otlp")).unwrap()});
        fs::write(at.join("request"), format!("{request}\n")).unwrap();
        let judged = Command::new(root.join("target/peers/python/receivers/bin/python"))
            .arg(root.join("crates/watch/tests/receivers/otlp.py"))
            .stdin(fs::File::open(at.join("request")).unwrap())
            .output()
            .unwrap();
        assert!(judged.status.success(), "{source}: {}", String::from_utf8_lossy(&judged.stderr));
        let held: Value = serde_json::from_slice(&judged.stdout).unwrap();
        assert!(held["spans"].as_array().unwrap().iter().any(|span| span == "tools/call check_inventory"), "{source}: {held}");
    }
}

#[test]
fn a_command_that_is_killed_leaves_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["-v", "call", "slow", "--trace", "killed.mcptrace", "--", "sh", "-c"];
    // A server that says hello and then nothing.
    let script = r#"read line; echo '{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"no"}}'; echo hello >&2; exec sleep 60"#;
    let mut command = Command::new(MCPROOF);
    let mut child = command.current_dir(folder.path()).args(arguments).arg(script).stderr(Stdio::piped()).spawn().unwrap();
    // The frame is shown after it was written.
    let shown = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok).find(|line| line.contains("stderr  hello"));
    assert!(shown.is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    let path = folder.path().join("killed.mcptrace");
    let frames = Trace::open(&path).unwrap().filter(|line| matches!(line, Ok(TraceLine::Frame(_)))).count();
    assert!(frames >= 3, "{frames}");
    check(folder.path(), &["trace", "show", "killed.mcptrace"], 0, &["the trace is cut off"]);
}

/// Starts a command, and sends it a signal once its trace has so many frames. Gives its exit code, and the trace.
fn stopped(at: &Path, arguments: &[&str], signal: &str, trace: &str, frames: usize) -> (Option<i32>, PathBuf) {
    let path = at.join(trace);
    let mut command = Command::new(MCPROOF);
    command.current_dir(at).env_remove("CI").args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let seen = || Trace::open(&path).map_or(0, |trace| trace.filter(|line| matches!(line, Ok(TraceLine::Frame(_)))).count());
    while seen() < frames {
        assert!(child.try_wait().unwrap().is_none(), "{arguments:?} ended before {trace} had {frames} frames");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    (child.wait().unwrap().code(), path)
}

/// Responds to what comes first and then not at all.
const SILENT: &str = r#"read line; echo '{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"no"}}'; echo hello >&2; exec sleep 60"#;

#[test]
fn a_check_that_is_killed_leaves_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let arguments = ["check", "--trace", "killed.mcptrace", "--", "sh", "-c", SILENT];
    let (_, path) = stopped(at, &arguments, "-KILL", "killed.mcptrace", 3);
    check(at, &["trace", "show", "killed.mcptrace"], 0, &["the trace is cut off"]);
    let clients: Vec<Option<String>> = Trace::open(&path)
        .unwrap()
        .filter_map(|line| if let Ok(TraceLine::Session(session)) = line { Some(session.client) } else { None })
        .collect();
    assert!(!clients.is_empty() && clients.iter().all(Option::is_some), "{clients:?}");
    // One that comes to its end has nothing of this left, and what is judged.
    check(at, &["check", "--only", "stdio-only-messages-on-stdout", "--trace", "killed.mcptrace", "--", MCPROOF, "demo", "shop"], 0, &[]);
    check(at, &["check", "--only", "stdio-only-messages-on-stdout", "--replay", "killed.mcptrace"], 0, &[]);
    assert_eq!(fs::read_dir(at).unwrap().count(), 1);
}

#[test]
fn a_test_that_is_stopped_leaves_a_trace_and_one_that_passes_none() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let suite = json!({ "server": { "stdio": { "command": ["sh", "-c", SILENT] } }, "tests": [{ "name": "hangs", "steps": ["ping"] }] });
    fs::write(at.join("silent.mcproof.yaml"), suite.to_string()).unwrap();
    let (arguments, trace) = (["test", "silent.mcproof.yaml", "--trace", "on-failure"], "mcproof-traces/silent-hangs-stdio.mcptrace");
    stopped(at, &arguments, "-KILL", trace, 3);
    check(at, &["trace", "show", trace], 0, &["the trace is cut off"]);
    fs::remove_file(at.join(trace)).unwrap();
    let (code, path) = stopped(at, &arguments, "-INT", trace, 3);
    assert_eq!((code, Trace::open(&path).unwrap().any(|line| matches!(line, Ok(TraceLine::End(_))))), (Some(130), true));

    fs::remove_dir_all(at.join("mcproof-traces")).unwrap();
    fs::write(at.join("shop.mcproof.yaml"), SUITE.replace("MCPROOF", MCPROOF)).unwrap();
    check(at, &["test", "shop.mcproof.yaml", "--trace", "on-failure"], 0, &["1 passed"]);
    assert!(!at.join("mcproof-traces").exists());
    // Where it fails, all of it is there, and nothing else.
    fs::write(at.join("shop.mcproof.yaml"), SUITE.replace("MCPROOF", MCPROOF).replace("available: 10", "available: 11")).unwrap();
    check(at, &["test", "shop.mcproof.yaml", "--trace", "on-failure"], 1, &["1 trace in mcproof-traces"]);
    assert_eq!(fs::read_dir(at.join("mcproof-traces")).unwrap().count(), 1);
    let marks = Trace::open(&at.join(RECORDED.replace("traces/", "mcproof-traces/")))
        .unwrap()
        .filter(|line| matches!(line, Ok(TraceLine::Mark(_))));
    assert!(marks.count() >= 2);
    let mut lines = Trace::open(&at.join(RECORDED.replace("traces/", "mcproof-traces/"))).unwrap();
    assert!(lines.any(|line| matches!(line, Ok(TraceLine::Attachment(file)) if file.name == "suites/shop.mcproof.yaml")));
}

#[test]
fn a_trace_goes_to_no_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["ping", "--trace", "/dev/stdout", "--", MCPROOF, "demo", "shop"];
    check(folder.path(), &arguments, 2, &["cannot write /dev/stdout: a trace is a file", "mcproof trace export FILE --jsonl"]);
}

/// A trace without an end, and a reader such as `head` that has seen enough of it.
#[test]
fn a_closed_pipe_ends_what_is_printed() {
    for (arguments, first) in [
        (&["trace", "show", "-"][..], true),
        (&["trace", "show", "-", "--frames"][..], true),
        (&["trace", "export", "-", "--jsonl"][..], true),
        (&["trace", "grep", "tool:none", "-"][..], false),
    ] {
        let mut command = Command::new(MCPROOF);
        let mut mcproof = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut stdin = mcproof.stdin.take().unwrap();
        let writer = std::thread::spawn(move || {
            for id in 1.. {
                for (half, direction, message) in [
                    (0, "to-server", json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })),
                    (1, "from-server", json!({ "jsonrpc": "2.0", "id": id, "result": {} })),
                ] {
                    let body = json!({ "kind": "line", "bytes": message.to_string() });
                    let frame = json!({ "session": 1, "id": id * 2 + half, "at_us": id, "direction": direction, "body": body });
                    if writeln!(stdin, "{}", json!({ "frame": frame })).is_err() {
                        return;
                    }
                }
            }
        });
        let mut stdout = BufReader::new(mcproof.stdout.take().unwrap());
        if first {
            assert!(stdout.read_line(&mut String::new()).unwrap() > 0, "{arguments:?}");
        }
        drop(stdout);
        assert_eq!(mcproof.wait().unwrap().code(), Some(if first { 0 } else { 1 }), "{arguments:?}");
        writer.join().unwrap();
    }
}

#[test]
fn secrets_go_before_and_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let call = [
        "call",
        "check_inventory",
        "product_id=secret-PROD-1",
        "-e",
        "TOKEN=hunter22",
        "--trace",
        "a.mcptrace",
        "--",
        MCPROOF,
        "demo",
        "shop",
    ];
    check(at, &call, 0, &[]);
    let text = check(at, &["trace", "export", "a.mcptrace", "--jsonl"], 0, &["secret-PROD-1", "TOKEN=[redacted]"]);
    assert!(!text.contains("hunter22"), "{text}");
    fs::write(at.join("secret"), "secret-PROD-1\n").unwrap();
    check(at, &["trace", "redact", "a.mcptrace", "--secret", "file:secret", "--output", "b.mcptrace"], 0, &[]);
    let clean = check(at, &["trace", "export", "b.mcptrace", "--jsonl"], 0, &["[redacted]"]);
    assert!(!clean.contains("secret-PROD-1"), "{clean}");
    check(at, &["trace", "redact", "a.mcptrace", "--secret", "abc", "--output", "b"], 2, &["--secret takes env:NAME or file:PATH"]);
    check(
        at,
        &["trace", "redact", "a.mcptrace", "--secret", "file:secret", "--output", "./a.mcptrace"],
        2,
        &["--output is the trace itself"],
    );
}

#[test]
fn a_trace_has_the_contract_that_it_shows() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let shop = ["--", MCPROOF, "demo", "shop"];
    check(at, &[&["tools", "--trace", "a.mcptrace"], &shop[..]].concat(), 0, &[]);
    check(at, &["trace", "show", "a.mcptrace"], 0, &["contract: ", "`mcproof trace export FILE --lock` writes it"]);
    let lock = check(at, &["trace", "export", "a.mcptrace", "--lock"], 0, &["\"check_inventory\"", "tools, sha256:"]);
    check(at, &["trace", "export", "a.mcptrace", "--lock", "--output", "a.lock"], 0, &[]);
    assert_eq!(fs::read_to_string(at.join("a.lock")).unwrap(), lock);
    check(at, &[&["lock", "--verify", "--lock", "a.lock", "--deny", "breaking"], &shop[..]].concat(), 0, &[]);
    check(at, &[&["diff", "a.mcptrace", "--deny", "any"], &shop[..]].concat(), 0, &["no changes"]);
    // Without the part at its end, as in a trace that was cut off or is older.
    let lines = check(at, &["trace", "export", "a.mcptrace", "--jsonl"], 0, &["mcproof.lock"]);
    let frames: String = lines.lines().filter(|line| !line.starts_with("{\"attachment\"")).map(|line| format!("{line}\n")).collect();
    fs::write(at.join("frames.jsonl"), frames).unwrap();
    assert_eq!(check(at, &["trace", "export", "frames.jsonl", "--lock"], 0, &[]), lock);
    // What is redacted afterwards is so in it as well, and it is a lock again.
    fs::write(at.join("secret"), "check_inventory\n").unwrap();
    check(at, &["trace", "redact", "a.mcptrace", "--secret", "file:secret", "--output", "b.mcptrace"], 0, &[]);
    check(at, &["trace", "show", "b.mcptrace"], 0, &["contract: "]);
    let redacted = check(at, &["trace", "export", "b.mcptrace", "--lock"], 0, &["[redacted]"]);
    assert!(!redacted.contains("check_inventory"), "{redacted}");
    fs::write(at.join("b.lock"), redacted).unwrap();
    check(at, &["diff", "b.lock", "a.lock"], 1, &["check_inventory"]);
    // Other commands write it as well, if the lists passed by.
    check(at, &[&["check", "--only", "tools", "--trace", "c.mcptrace"], &shop[..]].concat(), 0, &[]);
    check(at, &["trace", "show", "c.mcptrace"], 0, &["contract: "]);
    check(at, &[&["tools", "--", MCPROOF, "proxy", "--trace", "p.mcptrace"], &shop[..]].concat(), 0, &[]);
    check(at, &["trace", "show", "p.mcptrace"], 0, &["contract: "]);
    check(at, &["trace", "export", "p.mcptrace", "--lock"], 0, &["\"check_inventory\""]);
    check(at, &[&["ping", "--trace", "ping.mcptrace"], &shop[..]].concat(), 0, &[]);
    check(at, &["trace", "export", "ping.mcptrace", "--lock"], 2, &["the trace shows no contract: it has no complete list"]);
    check(at, &["diff", "a.lock", "ping.mcptrace"], 2, &["trace ping.mcptrace has no complete list"]);
}

#[test]
fn a_check_is_judged_again_from_its_trace() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let rules = ["--only", "stdio-only-messages-on-stdout", "--json"];
    let noisy = format!("echo welcome; exec {MCPROOF} demo shop");
    let first = check(at, &[&["check"], &rules[..], &["--trace", "c.mcptrace", "--", "sh", "-c", &noisy]].concat(), 1, &["welcome"]);
    assert_eq!(check(at, &[&["check"], &rules[..], &["--replay", "c.mcptrace"]].concat(), 1, &[]), first);
    check(at, &["trace", "grep", "method:initialize", "c.mcptrace"], 0, &["initialize"]);
}

/// What a person typed to start the server is in the suite, but no value of a variable.
#[test]
fn a_suite_of_a_recording_starts_its_server_as_it_was_started() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::create_dir(at.join("inner")).unwrap();
    // The port comes by a variable, as servers of Node.js have it.
    let script = "echo \"$KEY\" > key; exec \"$0\" demo shop --http --port \"$PORT\"";
    let url = "http://127.0.0.1:${port}/mcp";
    let server = ["call", url, "check_inventory", "product_id=PROD-123", "-e", "PORT=${port}", "-e", "KEY=s3cret-value", "--cwd", "inner"];
    check(at, &[&server[..], &["--trace", "a.mcptrace", "--", "sh", "-c", script, MCPROOF]].concat(), 0, &[]);
    check(at, &["trace", "export", "a.mcptrace", "--suite", "--output", "a.mcproof.yaml"], 0, &["1 test with 2 steps"]);
    let text = fs::read_to_string(at.join("a.mcproof.yaml")).unwrap();
    assert!(text.contains("PORT: \"${port}\"") && text.contains("KEY: \"${env.KEY}\"") && text.contains(url), "{text}");
    assert!(!text.contains("s3cret"), "{text}");
    fs::remove_file(at.join("inner/key")).unwrap();
    let output =
        Command::new(MCPROOF).current_dir(at).env("KEY", "another").args(["test", "a.mcproof.yaml", "--trace", "off"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(fs::read_to_string(at.join("inner/key")).unwrap(), "another\n");
}

/// Records what a client says to a server over stdio, and gives the suite that is made of it. `TEXT` in a message is the last number of seven
/// digits that the server has said, and the text `NUMBER` is the same as a number.
fn suite_of(at: &Path, server: &[&str], said: &[Value], told: &str) -> String {
    let path = at.join("client.mcptrace");
    // The proxy keeps a recording that exists.
    let _ = fs::remove_file(&path);
    let mut proxy = Command::new(MCPROOF)
        .args(["proxy", "--trace", path.to_str().unwrap(), "--"])
        .args(server)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = proxy.stdin.take().unwrap();
    let mut lines = BufReader::new(proxy.stdout.take().unwrap()).lines();
    let mut last = String::new();
    for message in said {
        writeln!(stdin, "{}", message.to_string().replace("\"NUMBER\"", &last).replace("TEXT", &last)).unwrap();
        while let Some(id) = message.get("id") {
            let line = lines.next().unwrap_or_else(|| panic!("no response to {message}")).unwrap();
            let received: Value = serde_json::from_str(&line).unwrap();
            last = line.rsplit(|symbol: char| !symbol.is_ascii_digit()).find(|word| word.len() == 7).map_or(last, str::to_owned);
            if received["method"] == "elicitation/create" {
                // The user fills in what has to be, and leaves the defaults out.
                let result = json!({ "action": "accept", "content": { "name": "Ann" } });
                writeln!(stdin, "{}", json!({ "jsonrpc": "2.0", "id": received["id"], "result": result })).unwrap();
            } else if received.get("id") == Some(id) && received.get("method").is_none() {
                break;
            }
        }
    }
    drop(stdin);
    assert!(proxy.wait().unwrap().success());
    check(at, &["trace", "export", "client.mcptrace", "--suite", "--output", "client.mcproof.yaml"], 0, &[told]);
    check(at, &["test", "client.mcproof.yaml", "--trace", "off"], 0, &["1 passed"]);
    fs::read_to_string(at.join("client.mcproof.yaml")).unwrap()
}

fn handshake() -> [Value; 2] {
    let client = json!({ "name": "host", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    [
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
    ]
}

fn request(id: u32, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

#[test]
fn a_suite_of_a_recording_has_completions_subscriptions_and_log_levels() {
    let folder = tempfile::tempdir().unwrap();
    let complete = |reference: Value, argument: &str| json!({ "ref": reference, "argument": { "name": argument, "value": "ISSUE" } });
    let uri = json!({ "uri": "tracker://issues/ISSUE-1" });
    let said = [
        &handshake()[..],
        &[
            request(1, "completion/complete", complete(json!({ "type": "ref/prompt", "name": "triage" }), "issue")),
            request(2, "completion/complete", complete(json!({ "type": "ref/resource", "uri": "tracker://issues/{id}" }), "id")),
            request(3, "completion/complete", complete(json!({ "type": "ref/prompt", "name": "no such prompt" }), "issue")),
            request(4, "resources/subscribe", uri.clone()),
            request(5, "logging/setLevel", json!({ "level": "debug" })),
            request(6, "resources/unsubscribe", uri),
        ],
    ];
    let text = suite_of(folder.path(), &[MCPROOF, "demo", "tracker"], &said.concat(), "1 test with 6 steps");
    for part in ["complete: ", "ISSUE-1", "rpc_error: ", "- subscribe: ", "logging/setLevel", "- unsubscribe: "] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

/// A server that answers in sentences and asks its user.
fn clerk() -> [String; 2] {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/clerk.py");
    ["python3".to_owned(), script.to_str().unwrap().to_owned()]
}

#[test]
fn a_suite_of_a_recording_answers_as_its_client_did() {
    let folder = tempfile::tempdir().unwrap();
    let mut opening = handshake();
    opening[0]["params"]["capabilities"] = json!({ "elicitation": {} });
    let said = [&opening[..], &[request(1, "tools/call", json!({ "name": "ask", "arguments": {} }))]].concat();
    let text = suite_of(folder.path(), &clerk().each_ref().map(String::as_str), &said, "1 test with 1 step");
    for part in ["$result", "action: accept", "The user said"] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn a_suite_of_a_recording_saves_what_stands_in_a_text() {
    let folder = tempfile::tempdir().unwrap();
    let call = |id: u32, name: &str, arguments: Value| request(id, "tools/call", json!({ "name": name, "arguments": arguments }));
    let said = [
        &handshake()[..],
        &[
            call(1, "order", json!({ "item": "tea" })),
            call(2, "look", json!({ "number": "TEXT" })),
            call(3, "look", json!({ "number": "NUMBER" })),
            call(4, "look", json!({ "number": "the order TEXT" })),
        ],
    ];
    let text = suite_of(folder.path(), &clerk().each_ref().map(String::as_str), &said.concat(), "1 test with 4 steps");
    for part in ["/Created order ([0-9]+)/", "(?<number>[0-9]+)/", "the order ${order}"] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn a_suite_of_a_recording_has_lists_of_several_pages() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/many.py");
    let server = ["python3", script.to_str().unwrap(), "60"];
    let [first, second, third] = [json!({}), json!({ "cursor": "50" }), json!({ "cursor": "100" })];
    let pages = [request(1, "tools/list", first), request(2, "tools/list", second), request(3, "tools/list", third)];
    let whole = suite_of(at, &server, &[&handshake()[..], &pages[..]].concat(), "1 test with 1 step");
    assert!(whole.contains("tool-0") && whole.contains("tool-59"), "{whole}");
    // Of a list whose client stopped early, no more is expected than it saw.
    let some = suite_of(at, &server, &[&handshake()[..], &pages[..1]].concat(), "1 test with 1 step");
    assert!(some.contains("tool-0") && !some.contains("tool-59"), "{some}");
}

#[test]
fn files_are_attached_to_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (shop, picture) = (["--trace", "a.mcptrace", "--", MCPROOF, "demo", "shop"], b"\x89PNG\r\n\x1a\n");
    check(at, &[&["call", "check_inventory", "product_id=PROD-123"], &shop[..]].concat(), 0, &[]);
    fs::write(at.join("shot.png"), picture).unwrap();
    check(at, &["trace", "attach", "a.mcptrace", "shot.png"], 0, &[]);
    check(at, &["trace", "attach", "a.mcptrace", "shot.png", "--name", "second.png"], 0, &[]);
    check(at, &["trace", "show", "a.mcptrace"], 0, &["check_inventory", "attachments: shot.png (8 bytes), second.png (8 bytes)"]);
    check(at, &["trace", "attach", "a.mcptrace", "shot.png"], 2, &["the trace has attachments/shot.png already", "--name"]);
    check(at, &["trace", "attach", "a.mcptrace", "none.png"], 2, &["cannot read none.png"]);
    check(at, &["trace", "attach", "shot.png", "shot.png"], 2, &["cannot read shot.png: not a trace"]);
    check(
        at,
        &["trace", "export", "a.mcptrace", "--html"],
        0,
        &["<figcaption>shot.png</figcaption>", "data:image/png;base64,iVBORw0KGgo="],
    );
    // It is a trace like before.
    check(at, &["call", "check_inventory", "product_id=PROD-123", "--", MCPROOF, "mock", "a.mcptrace"], 0, &["available"]);
}
