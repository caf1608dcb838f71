//! `mcproof inspect` prints what MCP Inspector's CLI prints: the same JSON, from the same real servers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod peers;

use peers::{Peer, installed};
use serde_json::Value;
use std::process::{Command, Stdio};

/// Runs a client on a server over stdio and gives what it printed on stdout, as JSON.
fn printed(client: &[String], flags: &[&str], peer: &Peer) -> Value {
    let start = peer.start("stdio");
    let mut command = Command::new(&client[0]);
    command.args(&client[1..]).args(flags).arg("--").args(&start.command).envs(start.env.clone());
    if let Some(folder) = &start.cwd {
        command.current_dir(folder);
    }
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{client:?} {flags:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&text).unwrap()
}

/// `extra` goes to mcproof only.
fn check(name: &str, flags: &[&str], extra: &[&str]) {
    let peer = Peer::named(name);
    let mcproof = [env!("CARGO_BIN_EXE_mcproof").to_owned(), "inspect".to_owned()];
    let ours = printed(&mcproof, &[flags, extra].concat(), &peer);
    // On a loaded machine, its 15 s are too few for a server in Python.
    let theirs = printed(&installed("inspector"), &[flags, &["--connect-timeout", "120000"]].concat(), &peer);
    assert_eq!(ours, theirs, "{name} {flags:?}");
}

const LIST: [&str; 2] = ["--method", "tools/list"];

#[test]
fn the_tools_of_node_servers_are_the_same() {
    for name in ["filesystem", "memory", "sequential-thinking", "eslint"] {
        check(name, &LIST, &[]);
    }
    // Inspector declares roots, for which this server has one tool more.
    check("everything", &LIST, &["--root", "file:///"]);
}

#[test]
fn the_tools_of_python_servers_are_the_same() {
    // They speak both eras; Inspector asks for the legacy one.
    for name in ["time", "git", "sqlite"] {
        check(name, &LIST, &["--era", "legacy"]);
    }
}

#[test]
fn other_methods_are_the_same() {
    check("everything", &["--method", "tools/call", "--tool-name", "get-sum", "--tool-arg", "a=2", "b=3"], &[]);
    check("everything", &["--method", "prompts/list"], &[]);
    check("everything", &["--method", "prompts/get", "--prompt-name", "args-prompt", "--prompt-args", "city=Bern"], &[]);
    check("everything", &["--method", "resources/list"], &[]);
    check("everything", &["--method", "resources/templates/list"], &[]);
    check("filesystem", &["--method", "tools/call", "--tool-name", "list_allowed_directories"], &[]);
}
