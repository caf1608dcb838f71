//! `mcproof test` as a person meets it: the examples pass on the demos, and each way to fail is told for what it is.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod peers;
mod running;

use peers::root;
use running::{check, run, run_suite};

fn shell(server: &str, steps: &str) -> String {
    format!("server: {{ stdio: {{ command: [sh, -c, {server:?}] }} }}\ntests: [{{ name: a, steps: [{steps}] }}]\n")
}

#[test]
fn the_examples_pass_in_both_eras() {
    for era in [&[][..], &["--era", "modern", "--transport", "stdio,http"], &["--era", "legacy"]] {
        let ran = run(&[&["examples", "-v"], era].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    }
}

#[test]
fn a_shop_that_miscounts_fails_legibly_on_all_transports() {
    let text = std::fs::read_to_string(root().join("examples/quickstart/shop.mcproof.yaml")).unwrap();
    let text = text.replace("demo shop", "demo shop --miscount");
    let said = ["✗ FAIL [stdio, http, sse]", "expect: { available: 8 }", "^ expected 8, found 7", "→ tools/call", "6 passed, 3 failed"];
    check(&text, &[], 1, &said);
}

#[test]
fn a_case_that_fails_on_one_transport_is_called_transport_specific() {
    let text = "server:\n  stdio: mcproof demo shop\n  http: { command: \"mcproof demo shop --miscount --http --port ${port}\", url: \"http://127.0.0.1:${port}/mcp\" }\n\
                tests:\n  - name: a\n    steps:\n      - { call: create_order, with: { product_id: PROD-123, quantity: 1 } }\n      \
                - { call: check_inventory, with: { product_id: PROD-123 }, expect: { available: 9 } }\n";
    check(text, &[], 1, &["fails on http", "passes on stdio"]);
}

#[test]
fn the_port_that_a_server_prints_is_used() {
    let text = "server:\n  http: { command: mcproof demo tracker --http --port 0, url: \"http://127.0.0.1:${port}/mcp\", port_from: 'listening on http://127\\.0\\.0\\.1:(\\d+)/' }\n\
                tests: [{ name: a, steps: [tools: [echo, create_issue, get_issue, list_issues]] }]\n";
    check(text, &[], 0, &["1 passed"]);
}

#[test]
fn a_server_that_dies_is_told_with_its_last_words() {
    let died = "server exited with code 3";
    let boot = shell("echo 'Error: DATABASE_URL is required' >&2; exit 3", "tools");
    check(&boot, &[], 3, &[died, "before responding to `initialize`", "stderr  Error: DATABASE_URL is required", "set `DATABASE_URL`"]);
    let answer = r#"printf '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}\n'"#;
    let later = shell(&format!("read -r l; {answer}; read -r l; read -r l; echo boom >&2; exit 3"), "tools");
    check(&later, &["--era", "legacy"], 1, &[died, "before responding to `tools/list`", "stderr  boom"]);
    check(&shell("exec nosuchprogram", "tools"), &[], 3, &["nosuchprogram"]);
}

#[test]
fn a_late_response_to_a_canceled_request_is_ignored_and_a_second_one_is_not() {
    let message = |id: u32, result: &str| format!(r#"printf '{{"jsonrpc":"2.0","id":{id},"result":{result}}}\n'"#);
    let initialized = message(1, r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}"#);
    let late = message(2, r#"{"content":[]}"#);
    // Reads `notifications/initialized`, the call, its cancellation and `tools/list`.
    let server = |late: &str| {
        let lines = "read -r l; ".repeat(4);
        shell(
            &format!("read -r l; {initialized}; {lines}{late}; {}; cat >/dev/null", message(3, r#"{"tools":[]}"#)),
            "{ cancel: { call: slow, after: 5ms } }, tools",
        )
    };
    check(&server(&late), &["--era", "legacy"], 0, &["1 passed"]);
    check(&server(&format!("{late}; {late}")), &["--era", "legacy"], 1, &["another response with id 2, whose request is complete"]);
}

#[test]
fn noise_on_stdout_fails_a_case_that_would_pass() {
    let noisy = shell(&format!("echo 'Server ready'; exec {} demo tracker", env!("CARGO_BIN_EXE_mcproof")), "tools");
    check(&noisy, &[], 1, &["not an MCP message", "`Server ready`", "write only messages to stdout", "`allow_faults:"]);
    let told = ["1 passed", "warning: the server wrote a line on stdout that is not an MCP message", "accepted by `allow_faults`"];
    check(&format!("allow_faults: true\n{noisy}"), &[], 0, &told);
    check(&format!("allow_faults: true\n{}", noisy.replace("{ name: a,", "{ name: a, allow_faults: false,")), &[], 1, &["1 failed"]);
}

#[test]
fn a_server_that_never_answers_runs_into_the_deadline() {
    let silent = shell("cat >/dev/null", "tools");
    check(&silent, &["--connect-timeout", "300ms"], 3, &["no response to `initialize`", "raise `timeouts.connect`", "`era: legacy` skips"]);
}

#[test]
fn a_server_that_does_not_start_is_told_with_what_to_write_instead() {
    let of = |stdio: &str| format!("server: {{ stdio: {stdio:?} }}\ntests: [{{ name: a, steps: [tools] }}]\n");
    check(&of("~/server"), &[], 3, &["`~` is not expanded"]);
    check(&of("./s.mcproof.yaml"), &[], 3, &["Permission denied", "run it with its interpreter, such as `node ./s.mcproof.yaml`"]);
    check(&of("sh -c 'echo Please set WEATHER_API_KEY >&2; exit 1'"), &[], 3, &["set `WEATHER_API_KEY` in `env`"]);
    check(
        &of("sh -c \"echo Cannot find module \\'/no/such.js\\' >&2; exit 1\""),
        &[],
        3,
        &["`/no/such.js` does not exist: check the path"],
    );
    let serves = "sh -c 'echo Uvicorn running on http://127.0.0.1:8123 >&2; cat >/dev/null'";
    check(&of(serves), &["--connect-timeout", "600ms"], 3, &["the server reports that it listens at http://127.0.0.1:8123", "`http: {"]);
}

#[test]
fn a_secret_that_a_server_repeats_stands_in_no_report() {
    let text = "vars: { password: hunter2secret }\nserver: { stdio: { command: mcproof demo tracker, env: { API_KEY: \"${password}\" } } }\n\
                tests:\n  - name: a\n    steps: [{ call: echo, with: { message: \"${password}\" }, expect: other }]\n";
    for form in ["terminal", "json", "junit", "html", "tap", "agent", "github"] {
        let ran = run_suite(text, &["--reporter", form]);
        assert_eq!(ran.code, Some(1), "{form}: {}", ran.stderr);
        assert!(ran.stdout.contains("[redacted]") && !ran.stdout.contains("hunter2secret"), "{form}: {}", ran.stdout);
    }
}

#[test]
fn a_secret_of_a_command_stands_in_no_report() {
    let step =
        |script: &str, rest: &str| format!("{{ run: {{ command: [sh, -c, {script:?}], env: {{ API_TOKEN: \"${{password}}\" }} }}{rest} }}");
    let said = step("echo got $API_TOKEN", ", save: { said: stdout }");
    let echo = "{ call: echo, with: { message: \"${said}\" }, expect: other }";
    for steps in [
        step("echo got $API_TOKEN; exit 3", ""),
        step("echo got $API_TOKEN", ", expect: { stdout: other }"),
        step("echo got $API_TOKEN >&2; sleep 100", ", timeout: 300ms"),
        format!("{said}, {echo}"),
        format!("tools, {said}, {echo}"),
    ] {
        let text = format!(
            "vars: {{ password: hunter2secret }}\nserver: {{ stdio: mcproof demo tracker }}\ntests:\n  - name: a\n    steps: [{steps}]\n"
        );
        let ran = run_suite(&text, &["--json"]);
        assert_ne!(ran.code, Some(0), "{steps}: {}", ran.stderr);
        let finished = serde_json::to_string(&ran.finished()).unwrap();
        assert!(finished.contains("[redacted]") && !finished.contains("hunter2secret"), "{steps}: {finished}");
    }
}

#[test]
fn a_tool_that_the_server_does_not_have_is_told_with_those_it_has() {
    let of = |step: &str| format!("server: {{ stdio: mcproof demo tracker }}\ntests:\n  - name: a\n    steps: [{step}]\n");
    check(&of("{ call: ehco, with: { message: hi } }"), &[], 1, &["the server has no tool `ehco`: did you mean `echo`?"]);
    check(&of("{ call: ehco, tool_error: /never/ }"), &[], 1, &["did you mean `echo`?"]);
    check(&of("{ call: translate, times: 2 }"), &[], 1, &["the server has no tool `translate`; it has `", "`echo`", "`create_issue`"]);
    // What is there is not doubted, and neither is a failure that is described, or of what is plainly no tool.
    let ran = run_suite(&of("{ call: echo, with: { message: 1 } }"), &[]);
    assert!(ran.code == Some(1) && !ran.stdout.contains("the server has no tool"), "{}", ran.stdout);
    for step in ["{ call: nothing-of-the-kind, fails: true }", "{ call: ehco, rpc_error: { code: -32602 } }"] {
        check(&of(step), &[], 0, &["1 passed"]);
    }
    // Prompts, their arguments and resources as well.
    check(&of("{ prompt: triag, with: {}, fails: true }"), &[], 1, &["the server has no prompt `triag`: did you mean `triage`?"]);
    check(
        &of("{ prompt: triage, with: { isue: ISSUE-1 }, rpc_error: true }"),
        &[],
        1,
        &["`triage` has no argument `isue`: did you mean `issue`?"],
    );
    check(&of("{ read: 'tracker://project', fails: true }"), &[], 1, &["the server has no resource `tracker://project`: did you mean"]);
    check(&of("{ prompt: nothing-of-the-kind, with: {}, fails: true }"), &[], 0, &["1 passed"]);
    // Whatever it is given, it fails.
    for failure in ["fails", "rpc_error"] {
        check(&of(&format!("{{ call: ehco, {failure}: true }}")), &[], 1, &["error: the server has no tool `ehco`: did you mean `echo`?"]);
    }
}

#[test]
fn a_test_that_failed_is_not_told_to_expect_more() {
    let text =
        "server: { stdio: mcproof demo tracker }\ntests:\n  - { name: good, steps: [tools] }\n  - { name: bad, steps: [call: nope] }\n";
    for form in ["terminal", "json", "junit", "html", "tap", "agent", "github"] {
        let ran = run_suite(text, &["--reporter", form]);
        assert_eq!(ran.code, Some(1), "{form}: {}", ran.stderr);
        let said = |part: &str| ran.stdout.contains(part);
        assert!(said("there is a response to `list tools`") && !said("there is a response to `call nope`"), "{form}: {}", ran.stdout);
    }
}

#[test]
fn a_secret_that_a_server_repeats_stands_in_no_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let suite = folder.path().join("s.mcproof.yaml");
    let text = "vars: { password: hunter2secret }\nserver: { stdio: { command: mcproof demo tracker, env: { API_KEY: \"${password}\" } } }\n\
                tests:\n  - name: a\n    steps: [{ call: echo, with: { message: \"${password}\" }, expect: hunter2secret, snapshot: true }]\n";
    std::fs::write(&suite, text).unwrap();
    for flags in [&["--update-snapshots"][..], &[]] {
        let ran = run(&[&[suite.to_str().unwrap()], flags].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("s.snapshots/a-1.json")).unwrap().trim(), "\"[redacted]\"");
}

#[test]
fn all_mistakes_of_a_file_are_told_at_once() {
    let ran = run_suite(
        "server: { stdio: mcproof demo shop }\ntests:\n  - name: a\n    steps:\n      - cal: x\n      - { call: y, expect: { $regx: 1 } }\n",
        &[],
    );
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("did you mean `call`?") && ran.stderr.contains("did you mean `$regex`?"), "{}", ran.stderr);
    assert!(ran.stderr.ends_with("2 errors; no tests were run\n"), "{}", ran.stderr);
    let folder = tempfile::tempdir().unwrap();
    let suite = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    for name in ["a.mcproof.yaml", "b.mcproof.yaml"] {
        suite(name, "server: { stdio: mcproof demo shop }\ntests: [{ name: a, steps: [tools: [check_inventory]] }]\n");
    }
    suite("c.mcproof.yaml", "server: { http: { url: \"${env.NO_SUCH_VARIABLE}\" } }\ntests: [{ name: a, steps: [tools] }]\n");
    let ran = run(&[folder.path().to_str().unwrap()]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    let told = "1 error in 1 of 3 suites; no tests were run. To run the other suites, name only them\n";
    assert!(ran.stderr.contains("NO_SUCH_VARIABLE") && ran.stderr.ends_with(told), "{}", ran.stderr);
}

#[test]
fn nothing_to_run_is_never_green() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(&[folder.path().to_str().unwrap()]).code, Some(4));
    assert_eq!(run(&["no/such/path"]).code, Some(2));
    let only_stdio = "server: { stdio: mcproof demo shop }\ntests: [{ name: a, steps: [tools] }]\n";
    assert_eq!(run_suite(only_stdio, &["--transport", "sse"]).code, Some(4));
}

/// Latin-1, as some editors write it.
#[test]
fn a_suite_that_is_no_text_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.mcproof.yaml");
    std::fs::write(&file, b"server: { stdio: mcproof demo shop }\n# f\xfcr Bestellungen\ntests: [{ name: a, steps: [ping] }]\n").unwrap();
    let ran = run(&[file.to_str().unwrap()]);
    // Long sentences are broken at words.
    let told = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(ran.code == Some(2) && told.contains("is not UTF-8 text, from line 2"), "{}{}", ran.stdout, ran.stderr);
}
