//! The six end-to-end tests of `examples/e2e.mcproof.yaml`, unchanged, against servers that others wrote, over every
//! transport that they have. `cargo xtask peers` installs them; `peers/servers.json` says how they are started.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod peers;

use peers::{Peer, root};
use serde_json::Value;
use std::process::Command;

/// Runs the suite against one server over one transport; gives the exit code and the verdicts by test name.
fn run(name: &str, transport: &str) -> (Option<i32>, Vec<(String, String)>, String) {
    let peer = Peer::named(name);
    let (server, start) = (&peer.0, peer.start(transport));
    let mut mcproof = Command::new(env!("CARGO_BIN_EXE_mcproof"));
    mcproof.current_dir(root()).args(["test", "examples/e2e.mcproof.yaml", "--json", "--connect-timeout", "60s", "--timeout", "60s"]);
    mcproof.args(["--transport", transport]);
    let example = &server["example"];
    mcproof.arg("--var").arg(format!("tool:={}", example["tool"]));
    mcproof.arg("--var").arg(format!("arguments:={}", example["arguments"]));
    mcproof.arg("--var").arg(format!("text=/{}/", example["text"].as_str().unwrap().replace('/', "\\/")));
    mcproof.arg("--var").arg(format!("strict:={}", server["refuses_empty"]));
    mcproof.args(start.url.iter().flat_map(|url| ["--url", url]));
    for (key, value) in &start.env {
        mcproof.arg("-e").arg(format!("{key}={value}"));
    }
    mcproof.args(start.cwd.iter().flat_map(|folder| ["--cwd", folder]));
    let output = mcproof.arg("--").args(&start.command).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let cases = events.first().map(|event| event["tests"].as_array().unwrap().clone()).unwrap_or_default();
    let verdicts = events.iter().filter(|event| event["event"] == "test-finished").map(|event| {
        let case = cases.iter().find(|case| case["id"] == event["id"]).unwrap();
        (case["name"].as_str().unwrap().to_owned(), event["verdict"].as_str().unwrap().to_owned())
    });
    (output.status.code(), verdicts.collect(), format!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

fn check(name: &str, transport: &str) {
    let (code, verdicts, text) = run(name, transport);
    assert_eq!(code, Some(0), "{name} over {transport}: {text}");
    assert_eq!(verdicts.len(), 6);
}

#[test]
fn everything_passes_over_all_three_transports() {
    check("everything", "stdio");
    check("everything", "http");
    check("everything", "sse");
}

#[test]
fn node_servers_pass() {
    for name in ["filesystem", "memory", "sequential-thinking", "eslint", "kubernetes"] {
        check(name, "stdio");
    }
    check("kubernetes", "http");
}

#[test]
fn python_servers_pass() {
    for name in ["time", "git", "fastmcp"] {
        check(name, "stdio");
    }
    check("fastmcp", "http");
    check("fastmcp", "sse");
}

/// What a server asks of its client is answered by the suite's policies, over every transport that can ask.
#[test]
fn answers_reach_a_server_that_asks() {
    for transport in ["stdio", "http", "sse"] {
        let start = Peer::named("everything").start(transport);
        let mut mcproof = Command::new(env!("CARGO_BIN_EXE_mcproof"));
        mcproof.current_dir(root()).args(["test", "crates/cli/tests/suites/answers.mcproof.yaml", "--transport", transport]);
        mcproof.args(start.url.iter().flat_map(|url| ["--url", url]));
        for (key, value) in &start.env {
            mcproof.arg("-e").arg(format!("{key}={value}"));
        }
        let output = mcproof.arg("--").args(&start.command).output().unwrap();
        assert!(output.status.success(), "{transport}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

/// mcp-server-sqlite answers an unknown tool with a plain text that does not say it is an error.
#[test]
fn a_real_fault_of_a_real_server_is_found() {
    let (code, verdicts, text) = run("sqlite", "stdio");
    assert_eq!(code, Some(1), "{text}");
    let failed: Vec<&str> = verdicts.iter().filter(|(_, verdict)| verdict == "fail").map(|(name, _)| name.as_str()).collect();
    assert_eq!(failed, ["an unknown tool fails"]);
}
