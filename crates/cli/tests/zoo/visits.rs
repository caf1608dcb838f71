//! A suite whose steps expect little, run on the zoo: the correct server passes it at every place, and what a broken one breaks fails it
//! wherever its steps meet it.

use crate::{one_of, word};
use libtest_mimic::{Failed, Trial};
use mcproof_protocol::Era;
use mcproof_rules as rules;
use mcproof_testkit::zoo::broken_servers;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

const SUITE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/zoo/visit.mcproof.yaml");

const SHARED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/zoo/shared.mcproof.yaml");

/// What these do is not met on the way: the client names the era, uses numbers as ids and words as progress tokens, knows no method that a
/// server may not have, cancels nothing, logs nothing, lists and subscribes once and cannot be asked; or it is only a warning; or it is also
/// what some SDK does.
const NOT_MET: [&str; 28] = [
    "asks-in-words-of-its-own",
    "cancellation-gets-400",
    "cancellation-gets-nothing",
    "cursor-works-once",
    "discovery-refused-without-message",
    "error-code-undefined",
    "grants-what-it-does-not-declare",
    "hangs-up-on-notifications",
    "ids-in-ascii",
    "ids-in-small-letters",
    "ids-without-blanks",
    "long-ids-are-cut",
    "notification-gets-line-end",
    "notification-gets-result",
    "notifications-answered",
    "other-era-refused-under-other-id",
    "pages-for-any-elicitation",
    "progress-on-another-stream",
    "progress-token-becomes-text",
    "progress-token-in-ascii",
    "refusal-without-id",
    "refusals-as-text",
    "second-subscription-breaks",
    "string-ids-become-numbers",
    "tools-for-any-sampling",
    "undeclared-log",
    "undeclared-log-on-request",
    "unknown-method-gets-200",
];

pub(crate) fn trials() -> impl Iterator<Item = Trial> {
    let ids: BTreeSet<&str> = rules::of_traffic(true, &[]).unwrap().iter().map(|rule| rule.id).collect();
    // The suite does not know the tools of other servers.
    let is_another = |name: &str| name.starts_with("task-") || name.starts_with("samples-");
    let broken = broken_servers().filter(move |server| ids.contains(server.rule) && !is_another(server.name)).map(|server| {
        let places: Vec<_> = server.places().collect();
        let (transport, era) = places[one_of(server.name, places.len())];
        Trial::test(format!("a_test_tells_of_{}_over_{transport}_{}", server.name, word(era)), move || {
            let seen = visit(server.name, transport, era);
            // Some of it is told by the client already, in words of its own.
            let is_red = matches!(seen.code, Some(1 | 3)) && !seen.codes.is_empty();
            match is_red || NOT_MET.contains(&server.name) {
                true => Ok(()),
                false => Err(format!("{} {}: exit {:?}, {:?}\n{}", server.does, server.rule, seen.code, seen.codes, seen.stderr).into()),
            }
        })
    });
    let places = [("stdio", Era::Legacy), ("stdio", Era::Modern), ("http", Era::Legacy), ("http", Era::Modern), ("sse", Era::Legacy)];
    let correct = places.map(|(transport, era)| {
        Trial::test(format!("a_test_praises_the_correct_server_over_{transport}_{}", word(era)), move || {
            let seen = visit("none", transport, era);
            if seen.code == Some(0) { Ok(()) } else { Err(format!("exit {:?}, {:?}\n{}", seen.code, seen.codes, seen.stderr).into()) }
        })
    });
    let shared =
        ["legacy", "modern"].map(|era| Trial::test(format!("each_test_is_told_of_its_own_traffic_{era}"), move || told_apart(era)));
    broken.chain(correct).chain(shared)
}

/// Which tests of a suite fail on a server whose progress goes back: in a shared session, without the rule, in repeats, and after a restart.
fn told_apart(era: &str) -> Result<(), Failed> {
    let this = std::env::current_exe().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcproof"));
    command.args(["test", SHARED, "--era", era, "--reporter", "tap", "--trace", "off", "--"]).arg(this);
    let output = command.args(["--zoo", "progress-goes-back", "--stdio", "--era", era]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_told = |line: &&str| line.starts_with("ok ") || line.starts_with("not ok ");
    let is_right = |line: &str| line.starts_with("ok ") == line.contains("passes") && line.contains("fails") == line.starts_with("not ok ");
    let lines: Vec<&str> = told.lines().filter(is_told).collect();
    match output.status.code() == Some(1) && lines.len() == 6 && lines.into_iter().all(is_right) {
        true => Ok(()),
        false => Err(format!("exit {:?}\n{told}\n{}", output.status.code(), String::from_utf8_lossy(&output.stderr)).into()),
    }
}

/// The codes of all errors.
struct Seen {
    code: Option<i32>,
    codes: BTreeSet<String>,
    stderr: String,
}

fn visit(name: &str, transport: &str, era: Era) -> Seen {
    let this = std::env::current_exe().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcproof"));
    command.args(["test", SUITE, "--json", "--trace", "off", "--era", word(era), "--timeout", "5s", "--transport", transport]);
    let listens = format!("--{transport}");
    let wire: &[&str] = match transport {
        "stdio" => &["--stdio"],
        _ => {
            let path = if transport == "sse" { "sse" } else { "mcp" };
            command.arg("--url").arg(format!("http://127.0.0.1:${{port}}/{path}"));
            &[&listens, "${port}"]
        }
    };
    let output = command.arg("--").arg(this).args(["--zoo", name]).args(wire).args(["--era", word(era)]).output().unwrap();
    let mut codes = BTreeSet::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        collect(&serde_json::from_str(line).unwrap(), &mut codes);
    }
    Seen { code: output.status.code(), codes, stderr: String::from_utf8_lossy(&output.stderr).into_owned() }
}

fn collect(value: &Value, codes: &mut BTreeSet<String>) {
    if let (Some(code), Some("error")) = (value["code"].as_str(), value["severity"].as_str()) {
        codes.insert(code.to_owned());
    }
    let inner: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    };
    inner.into_iter().for_each(|value| collect(value, codes));
}
