//! Each kind of fault does on the wire what its words say, for a client that is not ours: behind `mcproof proxy` and before `mcproof mock`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(target_os = "linux")]

#[path = "faulty/pipes.rs"]
mod pipes;
#[path = "faulty/raw_http.rs"]
mod raw_http;

use pipes::{Pipes, ended_by_signal, mcproof};
use raw_http::{Answer, Connection, Listening};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const STOCK: &str = r#""method":"tools/call","params":{"name":"check_inventory","arguments":{"product_id":"PROD-123"}}"#;
const ORDER: &str = r#""method":"tools/call","params":{"name":"create_order","arguments":{"product_id":"PROD-123","quantity":2}}"#;
const PING: &str = r#""method":"ping""#;

/// The shop over stdio behind a proxy with these faults, after its handshake.
fn shop(faults: &[&str]) -> Pipes {
    let mut command = mcproof();
    command.args(["proxy", "--no-trace"]);
    command.args(faults.iter().flat_map(|fault| ["--fault", fault])).args(["--", pipes::MCPROOF, "demo", "shop"]);
    Pipes::start(command)
}

fn id_of(line: &str) -> Option<i64> {
    serde_json::from_str::<Value>(line).ok()?.get("id")?.as_i64()
}

#[test]
fn messages_over_stdio_are_lost_doubled_swapped_and_cut() {
    let cases: [(&str, &[&str]); 6] = [
        ("drop tool=check_inventory", &["3"]),
        ("drop tool=check_inventory to=server", &["3"]),
        ("duplicate tool=check_inventory", &["2", "2", "3"]),
        ("reorder tool=check_inventory", &["3", "2"]),
        ("truncate tool=check_inventory", &["broken", "3"]),
        ("list_changes=2 tool=check_inventory", &["list_changed", "list_changed", "2", "3"]),
    ];
    for (fault, expected) in cases {
        let mut client = shop(&[fault]);
        client.ask(2, STOCK);
        // The shop may answer two requests in any order; what is dropped or swapped never comes first.
        if !fault.starts_with("drop") && !fault.starts_with("reorder") {
            client.wait_for(expected.len() - 1);
        }
        client.ask(3, PING);
        client.wait_for(expected.len());
        let (lines, said) = client.end();
        let named = |line: &String| match serde_json::from_str::<Value>(line) {
            Err(_) => "broken".to_owned(),
            Ok(message) if message["method"] == "notifications/tools/list_changed" => "list_changed".to_owned(),
            Ok(message) => message["id"].to_string(),
        };
        assert_eq!(lines.iter().map(named).collect::<Vec<_>>(), expected, "{fault}: {lines:#?}\n{said}");
        assert!(said.contains(&format!("fault injected once: --fault '{fault}'")), "{said}");
    }
}

#[test]
fn messages_over_stdio_come_late_and_in_pieces() {
    for fault in ["latency=300ms tool=check_inventory", "drip=300ms tool=check_inventory", "throttle=1000 tool=check_inventory"] {
        let mut client = shop(&[fault]);
        let asked = Instant::now();
        client.ask(2, STOCK);
        client.wait_for(1);
        // Not before its time; how much later is up to the machine.
        assert!(asked.elapsed() >= Duration::from_millis(100), "{fault}");
        let (lines, said) = client.end();
        assert_eq!(lines.iter().filter_map(|line| id_of(line)).collect::<Vec<_>>(), [2], "{fault}: {said}");
    }
}

#[test]
fn pipes_close_in_place_of_a_message_in_its_middle_or_after_a_silence() {
    for (fault, ends_in_the_middle) in [("reset tool=check_inventory", false), ("cut tool=check_inventory", true), ("idle_cut=1s", false)] {
        let mut client = shop(&[fault]);
        if !fault.starts_with("idle_cut") {
            client.ask(2, STOCK);
        }
        let (rest, said) = client.until_closed();
        assert_eq!(rest.is_empty(), !ends_in_the_middle, "{fault}: {rest:?}\n{said}");
        assert!(!ends_in_the_middle || (rest.starts_with("{\"jsonrpc\"") && serde_json::from_str::<Value>(&rest).is_err()), "{rest}");
        assert!(said.contains("fault injected once"), "{fault}: {said}");
    }
}

#[test]
fn a_buffer_holds_messages_back_until_it_is_full() {
    let mut client = shop(&["buffer=800 tool=check_inventory first=1"]);
    client.ask(2, STOCK);
    let mut pings = 0;
    while client.received() == 0 {
        pings += 1;
        client.ask(2 + pings, PING);
        assert!(pings < 1000, "nothing comes out of the buffer");
        std::thread::sleep(Duration::from_millis(5));
    }
    let (lines, _) = client.end();
    let first: usize = lines.iter().map(|line| line.len() + 1).sum();
    assert!(lines.iter().any(|line| id_of(line) == Some(2)) && first >= 800, "{lines:#?}");
    // What came first was held until the buffer was full: no message came alone.
    assert!(pings > 5, "{pings}");
}

/// The difference that a retry makes: a request that is lost had no effect, a response that is lost had.
#[test]
fn a_lost_response_had_its_effect_and_a_lost_request_had_none() {
    for (fault, left) in [("drop tool=create_order", 8), ("drop tool=create_order to=server", 10)] {
        let mut client = shop(&[fault]);
        client.ask(2, ORDER);
        client.ask(3, PING);
        client.wait_for(1);
        // The order of two requests at once is the server's: ask until the effect is there, or often enough.
        let mut stock = 0;
        for id in 4..40 {
            client.ask(id, STOCK);
            let line = client.next();
            let answer: Value = serde_json::from_str(&line).unwrap();
            assert_ne!(answer["id"], 2, "{fault}");
            if answer["id"] != 3 {
                stock = answer["result"]["structuredContent"]["available"].as_i64().unwrap();
            }
            if stock == 8 {
                break;
            }
        }
        client.end();
        assert_eq!(stock, left, "{fault}");
    }
}

#[test]
fn the_same_seed_and_traffic_give_the_same_bytes() {
    let run = |seed: &str| {
        let mut command = mcproof();
        command.args([
            "proxy",
            "--no-trace",
            "--seed",
            seed,
            "--fault",
            "duplicate probability=0.3",
            "--fault",
            "truncate probability=0.3",
        ]);
        command.args(["--", pipes::MCPROOF, "demo", "shop"]);
        let mut client = Pipes::start(command);
        for id in 2..34 {
            client.ask(id, PING);
            // One at a time, so that the server has no choice.
            client.next();
        }
        client.end().0
    };
    let first = run("7");
    assert_eq!(first, run("7"));
    assert_ne!(first, run("8"));
}

#[test]
fn faults_over_http_are_statuses_broken_streams_and_doubled_events() {
    let server = Listening::shop("http");
    let check = |faults: &[&str], judge: &dyn Fn(&Connection)| {
        let proxy = server.proxied(faults);
        judge(&Connection::open(&proxy.url));
        proxy.end()
    };
    let call = |client: &Connection| client.post(&format!(r#"{{"jsonrpc":"2.0","id":2,{STOCK}}}"#), &[]);
    let events = |answer: &Answer| answer.body.matches("\"id\":2").count();

    check(&["status=503 retry_after=1500ms tool=check_inventory first=1"], &|client| {
        let refused = call(client);
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("2".into())));
        let answer = call(client);
        assert_eq!((answer.status, events(&answer), answer.is_whole), (200, 1, true), "{answer:?}");
    });
    check(&["duplicate tool=check_inventory"], &|client| assert_eq!(events(&call(client)), 2));
    check(&["list_changes=3 tool=check_inventory"], &|client| {
        let answer = call(client);
        assert_eq!((answer.body.matches("notifications/tools/list_changed").count(), events(&answer)), (3, 1), "{answer:?}");
    });
    check(&["truncate tool=check_inventory"], &|client| {
        let answer = call(client);
        assert!(answer.is_whole && !answer.body.contains("structuredContent"), "{answer:?}");
    });
    check(&["cut tool=check_inventory"], &|client| {
        let answer = call(client);
        assert!(!answer.is_whole && answer.body.contains("data: {") && !answer.body.ends_with("\n\n"), "{answer:?}");
    });
    check(&["reset tool=check_inventory"], &|client| {
        let answer = call(client);
        assert!(!answer.is_whole && events(&answer) == 0, "{answer:?}");
    });
    check(&["reset tool=check_inventory to=server"], &|client| assert_eq!(call(client).status, 0));
    check(&["buffer=1000000 tool=check_inventory"], &|client| assert_eq!(events(&call(client)), 1));
    let said = check(&["idle_cut=1s"], &|client| {
        let stream = client.get();
        assert!(!stream.is_whole && stream.status == 200, "{stream:?}");
    });
    assert!(said.contains("fault injected"), "{said}");
    let said = check(&["reset tool=check_inventry"], &|client| assert_eq!(events(&call(client)), 1));
    assert!(said.contains("hit nothing"), "{said}");
    let said = check(&["reset tool=check_inventry probability=0.9"], &|client| assert_eq!(events(&call(client)), 1));
    assert!(said.contains("hit nothing"), "{said}");
    let said = check(&["reset tool=check_inventory probability=0.000001"], &|client| assert_eq!(events(&call(client)), 1));
    assert!(said.contains("fault injected 0 times, by chance"), "{said}");
}

#[test]
fn a_session_that_is_gone_and_a_token_that_expired_stay_so() {
    let server = Listening::shop("http");
    let call = format!(r#"{{"jsonrpc":"2.0","id":2,{STOCK}}}"#);

    let proxy = server.proxied(&["end_session tool=check_inventory first=1"]);
    let client = Connection::open(&proxy.url);
    let ping = format!(r#"{{"jsonrpc":"2.0","id":3,{PING}}}"#);
    assert_eq!(client.post(&ping, &[]).status, 200);
    assert_eq!([client.post(&call, &[]).status, client.post(&ping, &[]).status, client.get().status], [404, 404, 404]);
    assert_eq!(Connection::open(&proxy.url).post(&call, &[]).status, 200);
    proxy.end();

    let proxy = server.proxied(&["expire_token tool=check_inventory first=1"]);
    let client = Connection::open(&proxy.url);
    let (old, new) = ([("authorization", "Bearer old")], [("authorization", "Bearer new")]);
    let refused = client.post(&call, &old);
    assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer error=\"invalid_token\"".into())));
    assert_eq!([client.post(&ping, &old).status, client.post(&call, &new).status], [401, 200]);
    proxy.end();
}

#[test]
fn a_call_over_the_old_transport_gets_two_responses_or_a_status() {
    let server = Listening::shop("sse");
    for (fault, expected) in [("duplicate tool=check_inventory", (202, 2)), ("status=429 tool=check_inventory", (429, 0))] {
        let proxy = server.proxied(&[fault]);
        assert_eq!(raw_http::over_sse(&proxy.url, STOCK), expected, "{fault}");
        proxy.end();
    }
}

/// A trace of a call that the shop answered.
fn recorded(folder: &Path) -> String {
    let trace = folder.join("shop.mcptrace").display().to_string();
    let flags =
        ["call", "check_inventory", "product_id=PROD-123", "--era", "legacy", "--trace", &trace, "--", pipes::MCPROOF, "demo", "shop"];
    let output = mcproof().args(flags).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    trace
}

#[test]
fn a_mock_has_the_same_faults_over_stdio_and_http() {
    let folder = tempfile::tempdir().unwrap();
    let trace = recorded(folder.path());
    let faults = folder.path().join("faults.yaml");
    fs::write(&faults, "faults:\n  - { duplicate: , tool: check_inventory }\n").unwrap();

    let mut command = mcproof();
    command.args(["mock", &trace, "--faults"]).arg(&faults);
    let mut client = Pipes::start(command);
    client.ask(2, STOCK);
    client.wait_for(2);
    let (lines, said) = client.end();
    assert_eq!(lines.iter().filter_map(|line| id_of(line)).collect::<Vec<_>>(), [2, 2], "{said}");
    assert!(said.contains(&format!("fault injected once: {}:2", faults.display())), "{said}");

    let mut command = mcproof();
    command.args(["mock", &trace, "--transport", "http", "--fault", "status=503 tool=check_inventory first=1"]);
    let mock = Listening::start(command, "listening on ");
    let client = Connection::open(&mock.url);
    let call = format!(r#"{{"jsonrpc":"2.0","id":2,{STOCK}}}"#);
    assert_eq!([client.post(&call, &[]).status, client.post(&call, &[]).status], [503, 200]);
    assert!(mock.end().contains("fault injected once"));
}

#[test]
fn faults_that_cannot_be_meant_are_refused_with_their_place() {
    let refused = |flags: &[&str]| {
        let output = mcproof().args(["proxy", "--no-trace"]).args(flags).args(["--", "true"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let cases = [
        (&["--fault", "rest tool=a"][..], "rest"),
        (&["--fault", "status=503"], "mean nothing over stdio"),
        (&["--fault", "'reset"], "a quotation mark is missing"),
        (&["--fault", "idle_cut=1s tool=a"], "idle_cut"),
        (&["--faults", "/no/such/file"], "cannot read /no/such/file"),
    ];
    for (flags, words) in cases {
        let said = refused(flags);
        assert!(said.contains(words), "{flags:?}: {said}");
    }
}

#[test]
fn a_suite_has_the_new_faults_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let suite = folder.path().join("faults.mcproof.yaml");
    let text = r#"
server:
  http: { command: "MCPROOF demo shop --http --port ${port}", url: "http://127.0.0.1:${port}/mcp" }
tests:
  - name: a client whose session is gone begins a new one
    faults: { end_session: , tool: check_inventory, first: 1 }
    steps:
      - { call: check_inventory, with: { product_id: PROD-123 }, expect: { available: 10 } }
  - name: a response that is cut is none
    faults: { cut: , tool: check_inventory }
    steps:
      - { call: check_inventory, with: { product_id: PROD-123 }, timeout: 500ms, no_response: true }
  - name: a storm of changes hides no response
    faults: { list_changes: 50, tool: check_inventory }
    steps:
      - { call: check_inventory, with: { product_id: PROD-123 }, expect: { available: 10 } }
"#;
    fs::write(&suite, text.replace("MCPROOF", pipes::MCPROOF)).unwrap();
    let output = Command::new(pipes::MCPROOF).args(["test", "--era", "legacy"]).arg(&suite).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("3 passed"), "{said}");
    // Nothing of the runs of this test outlives it.
    assert!(!ended_by_signal(&output.status));
}
