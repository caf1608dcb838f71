//! The natural forms: however a server is named (a command, a URL, a URL with the command that serves it, a name in a
//! configuration file, a package), and whatever is left open about it (the transport, the era), each command says the same of it.
//!
//! What a form has to say is worked out from what it names, and compared with what the plainest form says of the same server.
//! `cargo xtask field --forms` runs the tests that are ignored as well: every command in every form, and servers of each SDK.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "forms/form.rs"]
mod form;
mod peers;

use form::{Form, Ran, Server, forms, run};
use mcproof_protocol::EraChoice;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;

/// Commands that print what a server has, the same in both eras.
const LISTS: [&[&str]; 5] = [&["inspect", "--method", "tools/list"], &["tools"], &["prompts"], &["resources"], &["templates"]];

/// Commands whose answers each era words in its own way.
const ASKS: [(&str, &[&str]); 4] =
    [("ping", &[]), ("call", &["echo", "message=hello"]), ("read", &["tracker://projects"]), ("prompt", &["triage", "issue=ISSUE-1"])];

#[test]
fn each_form_lists_the_same_tools() {
    lists_are_the_same(&LISTS[..1], &[EraChoice::Auto, EraChoice::Legacy, EraChoice::Modern]);
    lists_are_the_same(&LISTS[1..2], &[EraChoice::Auto]);
}

#[test]
#[ignore = "every command in every form: `cargo xtask field --forms`"]
fn each_form_lists_the_same() {
    lists_are_the_same(&LISTS, &[EraChoice::Auto, EraChoice::Legacy, EraChoice::Modern]);
}

/// The flag of MCP Inspector is the URL like any other.
#[test]
fn a_url_in_a_flag_is_served_by_the_command_beside_it() {
    let server = Server::start();
    let words =
        ["tools", "--server-url", "http://127.0.0.1:${port}/mcp", "--", form::MCPROOF, "demo", "tracker", "--http", "--port", "${port}"];
    assert_eq!(run(server.folder(), &words.map(str::to_owned)).text(), server.plain(&["tools"]).text());
}

#[test]
fn each_form_gets_the_same_answers() {
    answers_are_the_same(&ASKS[..2], &[EraChoice::Auto]);
}

#[test]
#[ignore = "every command in every form: `cargo xtask field --forms`"]
fn each_form_gets_the_same_answers_in_each_era() {
    answers_are_the_same(&ASKS, &[EraChoice::Auto, EraChoice::Legacy, EraChoice::Modern]);
}

#[test]
fn each_form_finds_the_same_server_with_a_probe() {
    let server = Server::start();
    let plain = server.plain(&["hash"]).text();
    for form in forms(&server, &[EraChoice::Auto]) {
        let found = form.run(&["probe", "--json"]).json();
        let expected = json!({"verdict": "healthy", "transport": form.transport, "era": form.comes_to(), "tools": plain.trim()});
        let got = json!({
            "verdict": found["verdict"],
            "transport": found["handshake"]["transport"],
            "era": found["handshake"]["era"],
            "tools": found["contract"]["tools"],
        });
        assert_eq!(got, expected, "{form}");
        assert_eq!(form.run(&["hash"]).text(), plain, "{form}");
    }
}

/// A lock of one form is kept in all others, and holds the same contracts.
#[test]
fn each_form_promises_the_same() {
    let server = Server::start();
    let lock = server.folder().join("plain.lock");
    let lock = lock.to_str().unwrap();
    server.plain(&["lock", "--output", lock]).text();
    let whole = contracts(lock);
    for form in forms(&server, &[EraChoice::Auto]).filter(|form| !form.names_transport) {
        let own = server.folder().join("own.lock");
        let own = own.to_str().unwrap();
        let _ = fs::remove_file(own);
        form.run(&["lock", "--output", own]).text();
        let got = contracts(own);
        for (key, contract) in whole.as_object().unwrap() {
            // HTTP+SSE has no modern era.
            let expected = if form.transport == "sse" && key.starts_with("modern") { &Value::Null } else { contract };
            assert_eq!(&got[key], expected, "{key}: {form}");
        }
        let verified = form.run(&["lock", "--verify", "--output", lock]).text();
        let compared = form.run(&["diff", lock]).text();
        assert!(verified.contains("no changes, for legacy/full"), "{form}: {verified}");
        assert_eq!(compared, verified, "{form}");
    }
}

/// An era that a transport does not have is bad input or out of reach, and nothing is printed that could pass for an answer.
#[test]
fn a_modern_era_over_http_sse_is_refused_in_each_form() {
    let server = Server::start();
    for form in forms(&server, &[EraChoice::Modern]).filter(|form| form.transport == "sse") {
        let Ran { code, stdout, stderr } = form.run(&["tools"]);
        assert!(matches!(code, Some(2 | 3)) && stdout.is_empty() && stderr.contains("error: "), "{form}: {code:?} {stdout} {stderr}");
    }
}

/// What is wrong with a server does not depend on how it was typed, and nothing is wrong with this one.
#[test]
fn each_form_of_a_sound_server_passes_a_check() {
    let server = Server::start();
    for form in forms(&server, &[EraChoice::Auto]).filter(|form| form.is_distinct() && !form.names_transport) {
        let Ran { code, stdout, stderr } = form.run(&["check", "--json", "--skip", "http-listens-on-loopback"]);
        let report: Value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{form}: {stderr}"));
        assert_eq!((code, findings(&report)), (Some(0), BTreeSet::new()), "{form}");
    }
}

/// The suite that a form writes is found, and passes.
#[test]
fn each_form_writes_a_suite_that_passes() {
    let server = Server::start();
    for form in forms(&server, &[EraChoice::Auto]).filter(|form| !form.names_transport && form.is_distinct()) {
        let folder = server.folder().join("init");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        form.run(&["init", "--dir", folder.to_str().unwrap()]).text();
        let Ran { code, stdout, stderr } = run(&folder, &["test".to_owned()]);
        assert_eq!(code, Some(0), "{form}: {stdout}{stderr}");
    }
}

/// As its users start it: by the name of a package, which npm finds among what is installed.
#[test]
fn a_package_is_a_command_like_any_other() {
    let server = Server::start();
    let packages = server.folder().join("node_modules/.bin");
    fs::create_dir_all(&packages).unwrap();
    std::os::unix::fs::symlink(form::MCPROOF, packages.join("the-tracker")).unwrap();
    let package = |verb: &[&str]| {
        let words = [verb, &["--", "npx", "--no-install", "the-tracker", "demo", "tracker"]].concat();
        run(server.folder(), &words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(package(&["tools"]).text(), server.plain(&["tools"]).text());
    assert_eq!(package(&["probe", "--json"]).json()["verdict"], "healthy");
}

/// One server of each SDK: started by a command and at a URL it lists the same tools, with the transport named or left open.
#[test]
#[ignore = "servers of each SDK: `cargo xtask field --forms`"]
fn each_form_of_a_server_of_each_sdk_lists_the_same_tools() {
    for name in ["everything", "context7", "kubernetes", "fastmcp"] {
        let forms = form::of_peer(name);
        for transport in ["stdio", "http", "sse"] {
            let mut lists = forms.iter().filter(|form| form.transport == transport).map(|form| (form, form.run(&["tools"]).json()));
            let Some((first, expected)) = lists.next() else { continue };
            for (form, list) in lists {
                assert_eq!(list, expected, "{form} and {first}");
            }
        }
    }
}

fn lists_are_the_same(commands: &[&[&str]], eras: &[EraChoice]) {
    let server = Server::start();
    for command in commands {
        let plain = server.plain(command).text();
        assert!(plain.contains("\"name\""), "{plain}");
        for form in forms(&server, eras).filter(Form::is_possible) {
            assert_eq!(form.run(command).text(), plain, "{}: {form}", command[0]);
        }
    }
}

fn answers_are_the_same(asks: &[(&str, &[&str])], eras: &[EraChoice]) {
    let server = Server::start();
    for (verb, words) in asks {
        let plain = |era: &str| server.plain_with(&[verb, "--era", era], words).text();
        let (legacy, modern) = (plain("legacy"), plain("modern"));
        for form in forms(&server, eras).filter(Form::is_possible) {
            let expected = if form.comes_to() == "legacy" { &legacy } else { &modern };
            assert_eq!(&form.run_with(&[verb], words).text(), expected, "{verb}: {form}");
        }
    }
}

fn contracts(lock: &str) -> Value {
    let lock: Value = serde_json::from_str(&fs::read_to_string(lock).unwrap()).unwrap();
    lock["contracts"].clone()
}

/// What a check tells, whatever its severity.
fn findings(report: &Value) -> BTreeSet<String> {
    let rulings = report["rules"].as_array().unwrap();
    let told = |ruling: &Value| {
        let findings = ruling["judged"]["findings"].as_array().cloned().unwrap_or_default();
        findings.into_iter().map(|finding| format!("{}: {}", ruling["rule"], finding["message"])).collect::<Vec<_>>()
    };
    rulings.iter().flat_map(told).collect()
}
