//! What a step can do and expect, over real wires: against the demo servers, servers that others wrote, and one that breaks
//! its own output schemas.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod peers;
mod running;

use peers::{Peer, root};
use running::{check, run, run_suite};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const SHOP: &str = "server: { stdio: mcproof demo shop }\n";

/// One test on the shop with these steps fails, and says so.
fn check_failure(steps: &str, said: &[&str]) {
    check(&format!("{SHOP}tests:\n  - name: a\n    steps:\n{steps}"), &[], 1, said);
}

#[test]
fn every_action_works_over_all_transports_in_both_eras() {
    for era in [&["--era", "modern", "--transport", "stdio,http"][..], &["--era", "legacy"]] {
        let ran = run(&[&["crates/cli/tests/suites/steps.mcproof.yaml"], era].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stdout);
        assert!(!ran.stdout.contains("warning"), "{}", ran.stdout);
    }
}

#[test]
fn a_server_of_others_can_be_tested_in_every_way() {
    for transport in ["stdio", "http", "sse"] {
        let start = Peer::named("everything").start(transport);
        let mut mcproof = Command::new(env!("CARGO_BIN_EXE_mcproof"));
        mcproof.current_dir(root()).args(["test", "crates/cli/tests/suites/everything.mcproof.yaml", "--transport", transport]);
        mcproof.args(start.url.iter().flat_map(|url| ["--url", url]));
        for (key, value) in &start.env {
            mcproof.arg("-e").arg(format!("{key}={value}"));
        }
        let output = mcproof.arg("--").args(&start.command).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && !text.contains("warning"), "{transport}: {text}");
    }
}

#[test]
fn subscriptions_work_as_each_era_has_them() {
    let tests = "tests:\n  - name: a subscriber is told\n    steps:\n      - subscribe: tracker://projects\n      \
                 - call: create_issue\n        with: { project: x, title: y }\n        notifications: [{ method: notifications/resources/updated, params: { uri: \"tracker://projects\" } }]\n      \
                 - unsubscribe: tracker://projects\n      - subscribe: tracker://nothing\n        timeout: 1s\n";
    let server = "server:\n  stdio: mcproof demo tracker\n  http: { command: \"mcproof demo tracker --http --port ${port}\", url: \"http://127.0.0.1:${port}/mcp\" }\n";
    let without_last = tests.rsplit_once("      - subscribe: tracker://nothing").unwrap().0;
    check(&format!("{server}{without_last}"), &["--era", "modern"], 0, &["2 passed"]);
    check(&format!("{server}{without_last}"), &["--era", "legacy"], 0, &["2 passed"]);
    check(&format!("{server}{tests}"), &["--era", "legacy"], 1, &["expected a result, found JSON-RPC error", "Resource not found"]);
    let not_declared = format!("{server}tests: [{{ name: a, steps: [subscribe: tools] }}]\n");
    check(&not_declared, &["--era", "legacy"], 1, &["does not declare notifications for changes of its tools"]);
    let never = format!("{server}tests: [{{ name: a, steps: [unsubscribe: 'a://b'] }}]\n");
    for era in ["modern", "legacy"] {
        check(&never, &["--era", era], 1, &["this test is not subscribed to a://b"]);
    }
}

#[test]
fn runs_that_fail_are_told_by_their_numbers() {
    check_failure(
        "      - { call: calculate, with: { a: \"${n}\", b: 1 }, times: 5, concurrency: 2, expect: { $one_of: [\"Result: 2\", \"Result: 4\"] } }\n",
        &["run 2 of 5: response does not match", "3 of 5 runs failed: 2, 4, 5"],
    );
    check_failure("      - { call: calculate, with: { a: 1, b: 1 }, times: 3, distinct: $ }\n", &["`$` is \"Result: 2\" in runs 1, 2, 3"]);
    check_failure(
        "      - { call: calculate, with: { a: 1, b: 1 }, times: 3, distinct: id }\n",
        &["run 1: there is nothing to compare: nothing is at `id`"],
    );
}

#[test]
fn each_parallel_step_is_judged() {
    check_failure(
        "      - parallel:\n          - { call: calculate, with: { a: 1, b: 1 }, expect: \"Result: 3\" }\n          - { call: nope }\n",
        &["expected \"Result: 3\", found \"Result: 2\"", "expected a result, found JSON-RPC error"],
    );
}

#[test]
fn what_does_not_follow_is_told() {
    let call = "      - { call: calculate, with: { a: 1, b: 1 }, timeout: 300ms, notifications";
    check_failure(&format!("{call}: [{{ method: x }}] }}\n"), &["no notification came within 300 ms"]);
    let progress = "      - { call: long_operation, with: { id: 1 }, meta: { progressToken: 1 }, timeout: 300ms, notifications";
    check_failure(&format!("{progress}: [{{ method: x }}] }}\n"), &["list of notifications does not match", "notifications/progress"]);
    check_failure(&format!("{progress}: [] }}\n"), &["expected  0 elements", "found     1 element"]);
    let earlier =
        "      - { call: long_operation, with: { id: 1 }, meta: { progressToken: 1 } }\n      - { ping: , timeout: 300ms, notifications";
    check_failure(
        &format!("{earlier}: [{{ method: notifications/progress }}] }}\n"),
        &["no notification came within 300 ms", "before this step"],
    );
    check_failure("      - { close_stdin: , exited: { code: 3 } }\n", &["expected 3, found 0"]);
    check_failure("      - { signal: KILL, exited: { code: 0 } }\n", &["expected an exit code, found: server was ended by SIGKILL"]);
    check_failure("      - { signal: CONT, exited: { within: 200ms } }\n", &["the server still runs, 200 ms after `signal CONT`"]);
    check_failure(
        "      - { cancel: { call: calculate, with: { a: 1, b: 2 }, after: 20s } }\n",
        &["before the call was canceled", "shorten `after`"],
    );
}

#[test]
fn a_tool_is_held_to_its_own_output_schema() {
    let server = root().join("crates/cli/tests/servers/outputs.mjs");
    let suite = |steps: &str, version: &str| {
        format!(
            "server: {{ stdio: {{ command: [node, {:?}, \"{version}\"] }}, era: legacy }}\ntests: [{{ name: a, steps: [{steps}] }}]\n",
            server.display()
        )
    };
    let passes = |steps: &str, version: &str| check(&suite(steps, version), &[], 0, &["1 passed"]);
    let fails = |steps: &str, said: &[&str]| check(&suite(steps, "2025-11-25"), &[], 1, said);
    passes("{ call: right }, { call: failing, tool_error: done }, { call: plain }, { call: elsewhere }", "2025-11-25");
    fails(
        "{ call: wrong }",
        &["the result of `wrong` breaks the tool's own `outputSchema`", "structuredContent.id", "validate_output: false"],
    );
    fails("{ call: missing }", &["`missing` declares an `outputSchema`, and its result has no `structuredContent`"]);
    fails("{ call: invalid }", &["the `outputSchema` of `invalid` is not a valid JSON Schema"]);
    fails(
        "{ call: multiplied }",
        &["the result of `multiplied` cannot be held against its `outputSchema`", "more than 2 million steps", "validate_output: false"],
    );
    passes("{ call: wrong, validate_output: false }", "2025-11-25");
    // There were no output schemas then.
    passes("{ call: wrong }, { call: missing }", "2025-03-26");
    // The list is asked for once at most, and not at all where the suite does it.
    passes("{ call: right }, { call: right }, { call: lists, expect: 1 }", "2025-11-25");
    passes("tools, { call: right }, { call: lists, expect: 1 }", "2025-11-25");
    passes("{ call: lists, validate_output: false, expect: 0 }", "2025-11-25");
    let of_suite = suite("{ call: wrong }", "2025-11-25");
    check(&format!("validate_output: false\n{of_suite}"), &[], 0, &["1 passed"]);
    check(&of_suite.replace("{ name: a,", "{ name: a, validate_output: false,"), &[], 0, &["1 passed"]);
}

#[test]
fn a_subscription_is_to_a_list_or_to_a_uri() {
    let of = |topic: &str| format!("{SHOP}tests: [{{ name: a, steps: [{{ subscribe: {topic} }}] }}]\n");
    let refused = |topic: &str, said: &str| {
        let ran = run_suite(&of(topic), &[]);
        assert!(ran.code == Some(2) && ran.stderr.contains(said), "{:?} {}", ran.code, ran.stderr);
    };
    refused("tool", "`tool` is neither the URI of a resource nor one of `tools`, `prompts`, `resources`");
    refused("tool", "did you mean `tools`?");
    refused("prices", "a URI has a scheme, such as `file:///a.txt`");
}

#[test]
fn weak_expectations_are_warned_of_and_run() {
    let text =
        format!("{SHOP}tests:\n  - name: a\n    steps:\n      - {{ call: calculate, with: {{ a: 1, b: 1 }}, expect: {{ $any: true }} }}\n");
    check(&text, &[], 0, &["warning: every response is accepted", "1 passed"]);
    for expected in ["{ $regex: '\\d*' }", "{ $text: '/(order \\d+)?/' }", "{ $regex: 'x|' }"] {
        let step = format!("{{ call: calculate, with: {{ a: 1, b: 1 }}, expect: {expected} }}");
        check(
            &format!("{SHOP}tests: [{{ name: a, steps: [{step}] }}]\n"),
            &[],
            0,
            &["warning: this pattern matches every text", "1 passed"],
        );
    }
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).map(|entries| entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()));
    let mut names: Vec<String> = entries.into_iter().flatten().collect();
    names.sort();
    names
}

#[test]
fn a_snapshot_waits_until_it_is_reviewed() {
    let folder = tempfile::tempdir().unwrap();
    let (file, snapshots) = (folder.path().join("s.mcproof.yaml"), folder.path().join("s.snapshots"));
    let path = file.to_str().unwrap();
    let write = |quantity: u32| {
        let text = format!(
            "server:\n  stdio: mcproof demo shop\n  http: {{ command: \"mcproof demo shop --http --port ${{port}}\", url: \"http://127.0.0.1:${{port}}/mcp\" }}\n\
             tests:\n  - name: an order\n    steps:\n      - {{ call: create_order, with: {{ product_id: PROD-123, quantity: {quantity} }}, snapshot: true, redact: [datetime] }}\n"
        );
        std::fs::write(&file, text).unwrap();
    };
    let tested = |arguments: &[&str], code: i32, said: &[&str]| {
        let ran = run(&[&[path], arguments].concat());
        assert_eq!(ran.code, Some(code), "{}{}", ran.stdout, ran.stderr);
        said.iter().for_each(|part| assert!(ran.stdout.contains(part), "{part:?} is not in\n{}", ran.stdout));
    };
    let reviewed = |arguments: &[&str], code: i32, said: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_mcproof")).arg("review").arg(folder.path()).args(arguments).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{text}");
        said.iter().for_each(|part| assert!(text.contains(part), "{part:?} is not in\n{text}"));
    };
    write(1);
    reviewed(&[], 0, &["no snapshots to review"]);
    tested(&[], 1, &["has not been reviewed", "mcproof review", "2 failed"]);
    assert_eq!(files(&snapshots), ["an-order-1.json.new"]);
    reviewed(&[], 1, &["an-order-1.json is new", "[datetime]", "0 accepted, 0 rejected, 1 pending"]);
    reviewed(&["--accept"], 0, &["1 accepted"]);
    tested(&[], 0, &["2 passed"]);
    write(2);
    tested(&[], 1, &["does not match the snapshot `an-order-1.json`", "2 failed"]);
    reviewed(&["--reject"], 0, &["quantity", "1 rejected"]);
    assert_eq!(files(&snapshots), ["an-order-1.json"]);
    tested(&["--update-snapshots"], 0, &["2 passed"]);
    tested(&[], 0, &["2 passed"]);
    let kept: Value = serde_json::from_slice(&std::fs::read(snapshots.join("an-order-1.json")).unwrap()).unwrap();
    assert_eq!((&kept["quantity"], &kept["created_at"]), (&Value::from(2), &Value::from("[datetime]")));
    std::fs::write(snapshots.join("old-test-1.json"), "{}").unwrap();
    tested(&[], 0, &["takes the snapshot", "old-test-1.json", "2 passed"]);
    // A pending one of a run that is over does not outlive the next run that passes.
    std::fs::write(snapshots.join("an-order-1.json.new"), "{}").unwrap();
    tested(&[], 0, &["2 passed"]);
    assert_eq!(files(&snapshots), ["an-order-1.json", "old-test-1.json"]);
}

/// A server may write the same number in another way.
#[test]
fn snapshots_compare_numbers_by_value() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.mcproof.yaml");
    let server = root().join("crates/cli/tests/servers/obedient.py").display().to_string();
    let tested = |json: &str, flags: &[&str]| {
        let text = format!(
            "server: {{ era: legacy, stdio: {{ command: [python3, {server:?}] }} }}\ntests:\n  - {{ name: a, steps: [{{ call: give, with: {{ json: '{json}' }}, snapshot: x }}] }}\n"
        );
        std::fs::write(&file, text).unwrap();
        run(&[&[file.to_str().unwrap()], flags].concat())
    };
    assert_eq!(tested("{\"v\": 2.0}", &["--update-snapshots"]).code, Some(0));
    let same = tested("{\"v\": 2}", &[]);
    assert_eq!(same.code, Some(0), "{}", same.stdout);
    let other = tested("{\"v\": 3}", &[]);
    assert!(other.code == Some(1) && other.stdout.contains("does not match the snapshot"), "{}", other.stdout);
}

/// No server has a part in it.
#[test]
fn a_command_that_is_not_as_expected_is_a_failed_test() {
    for steps in [
        "[{ run: [sh, -c, echo hi], expect: { stdout: ho } }]",
        "[{ run: [sleep, \"0.3\"], within: 10ms }]",
        "[{ run: [\"false\"] }]",
        "[{ run: [sleep, \"60\"], timeout: 200ms }]",
    ] {
        check(&format!("{SHOP}tests: [{{ name: a, steps: {steps} }}]\n"), &["--transport", "stdio"], 1, &["1 failed"]);
    }
    let slow = format!("{SHOP}tests: [{{ name: a, timeout: 200ms, steps: [{{ run: [sleep, \"60\"] }}] }}]\n");
    check(&slow, &["--transport", "stdio"], 1, &["the test was not done within 200 ms"]);
    let none = "server: { stdio: nosuchserver }\ntests: [{ name: a, steps: [ping] }]\n";
    check(none, &[], 3, &["nosuchserver"]);
}

#[test]
fn one_run_shows_all_that_has_to_be_reviewed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.mcproof.yaml");
    let tested = |quantity: u32, last: &str, flags: &[&str]| {
        let order = format!(
            "{{ call: create_order, with: {{ product_id: PROD-123, quantity: {quantity} }}, snapshot: true, redact: [datetime, uuid, '/ORD-\\w+/'] }}"
        );
        let text = format!(
            "{SHOP}tests:\n  - name: a\n    steps: [{{ snapshot: true, tools: }}, {order}, {last}, {{ snapshot: true, tools: }}]\n"
        );
        std::fs::write(&file, text).unwrap();
        run(&[&[file.to_str().unwrap(), "--transport", "stdio"], flags].concat())
    };
    let good = "{ call: check_inventory, with: { product_id: PROD-123 } }";
    let first = tested(1, good, &[]);
    assert_eq!((first.code, first.stdout.matches("has not been reviewed").count()), (Some(1), 3), "{}", first.stdout);
    assert!(first.stdout.contains("1 failed"), "{}", first.stdout);
    assert_eq!(files(&folder.path().join("s.snapshots")), ["a-1.json.new", "a-2.json.new", "a-3.json.new"]);
    assert_eq!(tested(1, good, &["--update-snapshots"]).code, Some(0));
    // What differs is no reason to stop either; what fails is.
    let second = tested(2, "{ call: nope }", &[]);
    assert!(second.stdout.contains("does not match the snapshot `a-2.json`") && second.stdout.contains("nope"), "{}", second.stdout);
    assert_eq!(files(&folder.path().join("s.snapshots")), ["a-1.json", "a-2.json", "a-2.json.new", "a-3.json"]);
}

#[test]
fn redactions_of_the_suite_join_those_of_a_step() {
    let folder = tempfile::tempdir().unwrap();
    let order =
        |rules: &str| format!("      - {{ call: create_order, with: {{ product_id: PROD-123, quantity: 1 }}, snapshot: true{rules} }}\n");
    let text = format!(
        "{SHOP}include: rules.yaml\nredact: [datetime]\ntests:\n  - name: an order\n    steps:\n{}{}",
        order(""),
        order(", redact: [$.status]")
    );
    std::fs::write(folder.path().join("s.mcproof.yaml"), text).unwrap();
    std::fs::write(folder.path().join("rules.yaml"), "redact: ['/ORD-\\w+/']\ntests: []\n").unwrap();
    let ran = run(&[folder.path().join("s.mcproof.yaml").to_str().unwrap(), "--update-snapshots"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let kept = |number: u32| -> Value {
        let file = folder.path().join(format!("s.snapshots/an-order-{number}.json"));
        serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
    };
    for (number, status) in [(1, "pending"), (2, "[redacted]")] {
        let kept = kept(number);
        let found = [&kept["id"], &kept["created_at"], &kept["status"]];
        assert_eq!(found, ["[redacted]", "[datetime]", status], "{kept}");
    }
    let ran = run_suite(&format!("{SHOP}redact: [uid]\ntests: [{{ name: a, steps: [tools] }}]\n"), &[]);
    assert!(ran.code == Some(2) && ran.stderr.contains("did you mean `uuid`?"), "{}", ran.stderr);
}

#[test]
fn an_action_that_its_transport_does_not_have_is_skipped_there() {
    let text = "server:\n  stdio: mcproof demo shop\n  http: { command: \"mcproof demo shop --http --port ${port}\", url: \"http://127.0.0.1:${port}/mcp\" }\n\
                tests:\n  - { name: a, steps: [{ http: /nowhere, expect: { status: 404 } }] }\n  - { name: b, steps: [{ close_stdin: , exited: { code: 0 } }] }\n";
    check(text, &[], 0, &["`http GET /nowhere` needs an HTTP transport", "`close stdin` needs the stdio transport", "2 passed, 2 skipped"]);
    let ran = run_suite("server: { stdio: x }\ntests: [{ name: a, steps: [{ http: / }] }]\n", &[]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("`http` needs an HTTP transport, which `server` does not have"), "{}", ran.stderr);
}
