//! The zoo, looked at from outside: every message of the correct server fits the official schema, and every broken server does
//! something that the correct server does not do. Whether `check` finds it is tested in `mcproof`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod pipe;
mod process;
#[path = "../schemas/mod.rs"]
mod schemas;
mod script;
mod web;

use mcproof_protocol::Era;
use mcproof_testkit::zoo::{self, BrokenServer, CORRECT, broken_servers};
use schemas::{Schemas, revisions};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What was seen of a server, in lines that are the same for the same behavior.
type Record = Vec<String>;

#[test]
fn names_are_unique_and_rules_look_like_rules() {
    let mut names = BTreeSet::from(CORRECT);
    for broken_server in broken_servers() {
        assert!(names.insert(broken_server.name), "{} is there twice", broken_server.name);
        for word in [broken_server.name, broken_server.rule] {
            let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
            assert!(word.chars().all(plain) && word.contains('-') || word == broken_server.name, "{word}");
        }
        assert!(!broken_server.does.is_empty() && !broken_server.does.ends_with('.'), "{}", broken_server.does);
        assert!(broken_server.places().next().is_some(), "{} is nowhere", broken_server.name);
    }
    let rules: BTreeSet<&str> = broken_servers().map(|broken_server| broken_server.rule).collect();
    println!(
        "{} animals in {} places, for {} rules",
        broken_servers().count(),
        broken_servers().flat_map(BrokenServer::places).count(),
        rules.len()
    );
    assert!(broken_servers().count() >= 120);
}

#[test]
fn invocations_are_read() {
    let check = |words: &str, expected: bool| {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        assert_eq!(zoo::parse(&words).is_ok(), expected, "{words:?}");
    };
    for (words, expected) in [
        ("none --stdio", true),
        ("none --stdio --era legacy mark-17", true),
        ("guarded --http 0 --era modern", true),
        ("banner --sse 8000", true),
        ("none --stdio mark-17", true),
        ("none", false),
        ("none --http", false),
        ("none --http 70000", false),
        ("none --stdio --era new", false),
        ("no-such-animal --stdio", false),
        ("", false),
    ] {
        check(words, expected);
    }
}

/// Two recordings of the correct server are the same: differences are due to the broken server.
#[test]
fn the_correct_server_is_always_the_same() {
    for (transport, era) in PLACES {
        let (first, second) = (look("none", transport, era), look("none", transport, era));
        for (first, second) in first.iter().zip(&second) {
            assert_eq!(first, second, "{transport} {era:?}");
        }
        assert_eq!(first.len(), second.len(), "{transport} {era:?}");
    }
}

/// What these do shows only while a second client is there at the same time; `check` has two.
const OF_TWO_CLIENTS: [&str; 2] = ["delete-ends-all-sessions", "results-by-id"];

/// What these do shows only to a client that can be asked for what its user or its model says; `check` has one.
const OF_USERS: [&str; 6] = [
    "closed-form-hangs",
    "closed-form-kills",
    "declined-form-breaks",
    "forms-without-end",
    "pages-for-any-elicitation",
    "tools-for-any-sampling",
];

/// What these do shows only to a client that calls a tool wrongly, or several times at once.
const OF_CALLERS: [&str; 2] = ["calls-lost-beside-others", "missing-argument-hangs"];

/// What these do shows only in memory, and after many calls.
const OF_MEMORY: [&str; 1] = ["keeps-memory-for-good"];

/// What these do shows only to a client that leaves out the metadata of the modern era; `check` does.
const OF_METADATA: [&str; 1] = ["meta-missing-gets-429"];

/// What these do shows only to a client that lists twice, or that calls tools while it listens.
const OF_PATIENT_CLIENTS: [&str; 2] = ["cursor-works-once", "listen-updates-untagged"];

/// What these do shows only to a client that sends what this one does not; `check` does.
const OF_SPELLINGS: [&str; 7] = [
    "changed-roots-break-lists",
    "refuses-titled-clients",
    "refuses-context",
    "wants-jsonrpc-first",
    "wants-no-blanks",
    "wants-no-escapes",
    "splits-at-separators",
];

/// How often a broken server may hide what is wrong with it.
const LOOKS: usize = 3;

#[test]
fn every_broken_server_differs_from_the_correct_one() {
    let correct: BTreeMap<String, Record> =
        PLACES.into_iter().map(|place| (format!("{place:?}"), look("none", place.0, place.1))).collect();
    // Each broken server once on each transport: what it does is the same in both eras.
    let mut places: Vec<(&BrokenServer, &str, Era)> = Vec::new();
    let hidden = [&OF_TWO_CLIENTS[..], &OF_USERS, &OF_CALLERS, &OF_MEMORY, &OF_METADATA, &OF_PATIENT_CLIENTS, &OF_SPELLINGS].concat();
    let is_seen = |broken_server: &&BrokenServer| !hidden.contains(&broken_server.name);
    for broken_server in broken_servers().filter(is_seen) {
        for (transport, era) in broken_server.places() {
            if !places.iter().any(|(known, over, _)| known.name == broken_server.name && *over == transport) {
                places.push((broken_server, transport, era));
            }
        }
    }
    let next = AtomicUsize::new(0);
    let same = Mutex::new(Vec::new());
    thread::scope(|scope| {
        // Most of the time is spent waiting.
        for _ in 0..16 {
            scope.spawn(|| {
                while let Some((broken_server, transport, era)) = places.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let differs = || {
                        let seen = look(broken_server.name, transport, *era);
                        // What is behind OAuth differs anyway; that it differs from what is rightly so is the point.
                        let guarded = seen.iter().any(|line| line.contains("HTTP/1.1 401"));
                        seen != correct[&format!("{:?}", (transport, era))] && !(guarded && seen == look("guarded", transport, *era))
                    };
                    // What depends on who comes first, such as responses that go to another session, may not show at the first look.
                    if !(0..LOOKS).any(|_| differs()) {
                        same.lock().unwrap().push(format!("{} over {transport}, {era:?}", broken_server.name));
                    }
                }
            });
        }
    });
    println!("{} places", places.len());
    assert_eq!(same.into_inner().unwrap(), Vec::<String>::new());
}

const PLACES: [(&str, Era); 5] =
    [("stdio", Era::Legacy), ("stdio", Era::Modern), ("http", Era::Legacy), ("http", Era::Modern), ("sse", Era::Legacy)];

fn look(name: &str, transport: &str, era: Era) -> Record {
    match transport {
        "stdio" => pipe::look(name, era),
        _ => web::look(name, transport, era),
    }
}

/// All messages of the correct server, in each revision.
#[test]
#[cfg_attr(not(official_schemas), ignore = "the official schemas are not beside the checkout (../shared/spec)")]
fn every_message_of_the_correct_server_fits_the_schema() {
    let schemas = Schemas::read();
    for version in revisions() {
        let steps = script::main(version);
        let asked: BTreeMap<String, String> = steps.iter().flat_map(script::Step::requests).collect();
        let mut results = BTreeSet::new();
        let said = pipe::converse("none", &steps, script::era(version));
        for line in said {
            let message: Value = serde_json::from_str(&line).unwrap();
            let definition = match (message["method"].as_str(), message.get("result"), message.get("error")) {
                (Some(method), None, None) => schemas.definition_of(version, method),
                (None, Some(result), None) => {
                    let method = asked[&message["id"].to_string()].as_str();
                    results.insert(method.to_owned());
                    schemas.assert_fits(version, definition_of_result(method), result, &line);
                    "JSONRPCMessage".to_owned()
                }
                (None, None, Some(_)) => error_definition(version, &message).to_owned(),
                _ => panic!("neither request nor answer: {line}"),
            };
            schemas.assert_fits(version, &definition, &message, &line);
        }
        println!("{version}: {results:?}");
        for method in ["tools/list", "tools/call", "resources/read", "prompts/get", "completion/complete"] {
            assert!(results.contains(method), "{version}: no {method} was answered");
        }
    }
}

fn error_definition(version: &str, message: &Value) -> &'static str {
    match (version, message["error"]["code"].as_i64()) {
        ("2026-07-28", Some(-32022)) => "UnsupportedProtocolVersionError",
        ("2026-07-28" | "2025-11-25", _) => "JSONRPCErrorResponse",
        _ => "JSONRPCError",
    }
}

fn definition_of_result(method: &str) -> &'static str {
    match method {
        "initialize" => "InitializeResult",
        "server/discover" => "DiscoverResult",
        "tools/list" => "ListToolsResult",
        "tools/call" => "CallToolResult",
        "prompts/list" => "ListPromptsResult",
        "prompts/get" => "GetPromptResult",
        "resources/list" => "ListResourcesResult",
        "resources/templates/list" => "ListResourceTemplatesResult",
        "resources/read" => "ReadResourceResult",
        "completion/complete" => "CompleteResult",
        "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => "EmptyResult",
        _ => panic!("{method} should have been refused"),
    }
}
