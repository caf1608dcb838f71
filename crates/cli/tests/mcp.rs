//! `mcproof mcp` as a coding agent uses it: one conversation over stdio, in which it tests servers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(target_os = "linux")]

mod processes;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use processes::until;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");
const RULE: &str = "stdio-only-messages-on-stdout";

/// An agent that has opened a session.
struct Agent {
    server: Child,
    /// Gone once the agent has left.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    sent: u64,
}

impl Agent {
    fn new(folder: &Path) -> Self {
        let mut command = Command::new(MCPROOF);
        command.arg("mcp").current_dir(folder).env("XDG_STATE_HOME", folder.join("state"));
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (server.stdin.take(), BufReader::new(server.stdout.take().unwrap()));
        let mut agent = Self { server, input, output, sent: 0 };
        let client = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "agent", "version": "1" } });
        let said = agent.ask("initialize", &client);
        assert_eq!(said["result"]["instructions"].as_str().unwrap().lines().count(), 3);
        agent.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        agent
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.sent += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.sent, "method": method, "params": params }));
        self.sent
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.request(method, params);
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server is gone");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
        }
    }

    /// Calls a tool, and gives its text and whether it is an error.
    fn call(&mut self, tool: &str, arguments: &Value) -> (String, bool) {
        let answer = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }));
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        (text.to_owned(), result["isError"] == true)
    }

    #[track_caller]
    fn check(&mut self, tool: &str, arguments: &Value, is_error: bool, said: &[&str]) -> String {
        let (text, is) = self.call(tool, arguments);
        assert_eq!(is, is_error, "{tool} {arguments}: {text}");
        for part in said {
            assert!(text.contains(part), "{tool} {arguments}: {part:?} is not in\n{text}");
        }
        text
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.server.wait();
    }
}

/// A folder with a server that greets on stdout, one that is right, and a suite for that.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
    write("noisy.sh", format!("echo welcome, this is run $$\nexec {MCPROOF} demo shop\n"));
    write(".mcp.json", json!({ "mcpServers": { "shop": { "command": MCPROOF, "args": ["demo", "shop"] } } }).to_string());
    let step = |name: &str, left: u32| {
        format!(
            "  - name: {name}\n    steps: [{{ call: check_inventory, with: {{ product_id: PROD-123 }}, expect: {{ available: {left} }} }}]\n"
        )
    };
    let server = format!("server:\n  stdio: {{ command: [{MCPROOF}, demo, shop] }}\n");
    write("shop.mcproof.yaml", format!("{server}tests:\n{}{}", step("right", 10), step("wrong", 11)));
    folder
}

#[test]
fn an_agent_lists_calls_checks_and_tests() {
    let folder = folder();
    let mut agent = Agent::new(folder.path());
    agent.check("transcript", &json!({}), true, &["no operation was run yet"]);
    // The only server of .mcp.json.
    let listed = agent.check("list", &json!({}), false, &["10 tools\n{\"name\":\"check_inventory\"", "[operation 1, exit code 0: passed"]);
    assert_eq!(listed.lines().filter(|line| line.starts_with('{')).count(), 10);
    let inventory = json!({ "server": "shop", "tool": "check_inventory", "arguments": { "product_id": "PROD-123" }, "era": "legacy" });
    agent.check("call", &inventory, false, &["\"structuredContent\":{\"available\":10", "legacy era", "[operation 2, exit code 0"]);
    agent.check("call", &json!({ "tool": "nope" }), false, &["JSON-RPC error -32602", "[operation 3, exit code 1: failed"]);
    agent.check("request", &json!({ "method": "ping", "era": "legacy" }), false, &["{}\n"]);
    agent.check("probe", &json!({ "server": "shop" }), false, &["healthy: "]);
    let (noisy, shop) = (json!({ "command": "sh noisy.sh" }), format!("{MCPROOF} demo shop"));
    let repeat = format!("repeat: mcproof check --only {RULE} -- sh noisy.sh");
    agent.check("check", &noisy, false, &["FAILED: 1 failure", RULE, "wire: ← welcome", &repeat, "[operation 6, exit code 1: failed"]);
    agent.check("check", &json!({ "command": "sh noisy.sh", "skip": [RULE], "only": ["stdio"] }), false, &["PASSED: 0 failures"]);
    let failed = ["FAILED: 1 passed, 1 failed", "available: expected 11, found 10", "[operation 8, exit code 1"];
    agent.check("test", &json!({}), false, &failed);
    agent.check("test", &json!({ "rerun_failed": true }), false, &["FAILED: 0 passed, 1 failed"]);
    agent.check("test", &json!({ "filter": "name(right)", "command": shop }), false, &["PASSED: 1 passed"]);
    agent.check("diff", &json!({ "old": "shop", "new": shop }), false, &["[operation 11, exit code 0"]);

    agent.check(
        "transcript",
        &json!({ "operation": 2 }),
        false,
        &["[operation 2, call: wire", "→ {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\""],
    );
    // The conversation with the finding comes first.
    agent.check("transcript", &json!({ "operation": 6 }), false, &["\n== ", "← welcome, this is run"]);
    agent.check("transcript", &json!({ "operation": 8, "last": 5 }), false, &["[operation 8, test: wire", "server/discover"]);
    agent.check(
        "transcript",
        &json!({ "operation": 1, "part": "output", "from": 2 }),
        false,
        &["from line 2]\n{\"name\":\"check_inventory\""],
    );
    agent.check("explain", &json!({ "rule": RULE }), false, &["MUST", "Why it matters", "What to change"]);
    agent.check("explain", &json!({ "rule": "stdio" }), false, &[&format!("{RULE}: a server writes only messages")]);
    agent.check("explain", &json!({}), false, &[&format!("\nstdio: {RULE}, ")]);
}

#[test]
fn what_cannot_be_done_is_an_error_with_its_reason() {
    let folder = folder();
    let mut agent = Agent::new(folder.path());
    let long = "x".repeat(300_000);
    for (tool, arguments, said) in [
        ("list", json!({ "comand": "x" }), &["did you mean `command`?"][..]),
        ("list", json!({ "server": "sop" }), &["did you mean `shop`?", "exit code 2: invalid input"]),
        ("list", json!({ "command": "sh -c 'echo no database >&2; exit 7'" }), &["code 7", "no database", "exit code 3: server could not"]),
        ("check", json!({ "command": "mcproof-no-such-program" }), &["exit code 3"]),
        ("check", json!({ "only": ["stdio-only-message-on-stdout"] }), &["did you mean", "exit code 2"]),
        ("test", json!({ "paths": ["nowhere.mcproof.yaml"] }), &["nowhere.mcproof.yaml", "exit code 2"]),
        ("test", json!({ "filter": "name(nobody)" }), &["exit code 4: nothing was tested"]),
        ("test", json!({ "cwd": "/no/such/folder" }), &["the working directory /no/such/folder does not exist"]),
        ("call", json!({ "tool": long }), &["could not be started"]),
        ("explain", json!({ "rule": long }), &["`rule`"]),
        ("transcript", json!({ "operation": 99 }), &["unknown operation 99"]),
        ("transcript", json!({ "from": 1, "last": 1 }), &["cannot be used with"]),
    ] {
        let text = agent.check(tool, &arguments, true, said);
        assert!(text.len() < 13_000, "{tool}: {} bytes", text.len());
    }
}

#[test]
fn a_large_answer_is_read_in_pages() {
    let folder = folder();
    let mut agent = Agent::new(folder.path());
    let command = format!("{MCPROOF} demo tracker");
    let message = "0123456789".repeat(5_000);
    let echo = json!({ "command": command, "tool": "echo", "arguments": { "message": message } });
    let mut text = agent.check("call", &echo, false, &["more lines: transcript {\"operation\": 1, \"part\": \"output\", \"from\": "]);
    let mut digits = 0;
    loop {
        assert!(text.len() < 17_000, "{}", text.len());
        digits += text.lines().filter(|line| line.len() > 1000).map(|line| line.matches("0123").count()).sum::<usize>();
        let Some((_, next)) = text.split_once("\"from\": ") else { break };
        let from: u64 = next.split('}').next().unwrap().parse().unwrap();
        text = agent.check("transcript", &json!({ "part": "output", "from": from }), false, &[]);
    }
    // A few are cut in two by the ends of lines.
    assert!(digits > 4_900, "{digits}");
}

/// Begins a check of a server that never answers, has children and ignores SIGTERM; once all of that runs, lets `end` end it.
fn check_end(name: &str, timeout: u64, end: impl FnOnce(&mut Agent, u64)) {
    // Seconds that nobody else sleeps: they mark the processes of this test.
    let marker = format!("86{name}{}", std::process::id());
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("silent.sh"), "trap '' TERM\nsleep $1 & sleep $1 & wait\n").unwrap();
    let mut agent = Agent::new(folder.path());
    let arguments = json!({ "command": format!("sh silent.sh {marker}"), "timeout": timeout });
    let id = agent.request("tools/call", &json!({ "name": "check", "arguments": arguments }));
    // Our own process, the shell, and two that sleep.
    until(&marker, |count| count >= 4);
    end(&mut agent, id);
    until(&marker, |count| count == 0);
}

#[test]
fn a_cancelled_call_leaves_no_process_and_the_server_goes_on() {
    check_end("1", 120, |agent, id| {
        agent.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }));
        agent.check("explain", &json!({ "rule": RULE }), false, &[RULE]);
    });
}

#[test]
fn a_call_whose_time_is_over_says_so_and_leaves_no_process() {
    check_end("2", 10, |agent, id| {
        let mut line = String::new();
        agent.output.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(id), &json!(true)), "{answer}");
        assert!(line.contains("timed out after 10 s"), "{line}");
    });
}

#[test]
fn an_agent_that_leaves_or_kills_leaves_no_process() {
    check_end("3", 120, |agent, _| {
        drop(agent.input.take());
        assert!(agent.server.wait().unwrap().success());
    });
    for (name, signal) in [("4", Signal::SIGTERM), ("5", Signal::SIGKILL)] {
        check_end(name, 120, |agent, _| kill(Pid::from_raw(i32::try_from(agent.server.id()).unwrap()), signal).unwrap());
    }
}

#[test]
fn it_passes_its_own_check_in_both_eras() {
    let folder = folder();
    for (era, calls) in [("legacy", "list,explain,transcript,probe"), ("modern", "list,explain,transcript,request"), ("auto", "explain")] {
        let mut command = Command::new(MCPROOF);
        command.current_dir(folder.path()).args([
            "check",
            "--strict",
            "--reporter",
            "agent",
            "--era",
            era,
            "--call",
            calls,
            "--",
            MCPROOF,
            "mcp",
        ]);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.starts_with("PASSED: 0 failures, 0 warnings, 0 notes"), "{era}: {said}");
    }
}
