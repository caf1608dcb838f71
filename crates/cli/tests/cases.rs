//! What surrounds the steps of a test: rows, hooks, shared servers, attempts, conditions, includes and profiles.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod peers;
mod running;

use peers::Peer;
use running::{check, run, run_files, run_suite};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

const TRACKER: &str = "server: { stdio: mcproof demo tracker }\n";

/// The events of a run.
fn events(text: &str, arguments: &[&str]) -> Vec<Value> {
    let ran = run_suite(text, &[&["--json"], arguments].concat());
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn each_row_is_a_case_of_its_own() {
    let text = format!(
        "{TRACKER}tests:\n  - name: echo\n    rows: [{{ say: one }}, {{ say: two, wrong: x }}]\n    steps: [{{ call: echo, with: {{ message: \"${{say}}\" }}, expect: {{ $text: one }} }}]\n  \
         - name: \"echo of ${{say}}\"\n    rows: [{{ say: three }}]\n    steps: [{{ call: echo, with: {{ message: \"${{say}}\" }}, expect: {{ $text: three }} }}]\n"
    );
    check(&text, &[], 1, &["echo [say=one]", "✗ FAIL [stdio] ", "echo [say=two, wrong=x]", "echo of three", "2 passed, 1 failed"]);
}

#[test]
fn hooks_run_around_the_steps_even_when_they_fail() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let note = |word: &str| format!("{{ run: {{ command: [sh, -c, 'echo {word} >> {}'] }} }}", log.display());
    let text = format!(
        "{TRACKER}setup: [{}]\nteardown: [{}]\nbefore_each: [{}]\nafter_each: [{}]\ntests:\n  - name: a\n    setup: [{}]\n    steps: [{{ call: nope }}]\n    teardown: [{}]\n",
        note("suite-setup"),
        note("suite-teardown"),
        note("before"),
        note("after"),
        note("setup"),
        note("teardown"),
    );
    check(&text, &[], 1, &["1 failed"]);
    let written = std::fs::read_to_string(&log).unwrap();
    assert_eq!(written.split_whitespace().collect::<Vec<_>>(), ["suite-setup", "before", "setup", "teardown", "after", "suite-teardown"]);
}

#[test]
fn a_command_seeds_the_file_that_a_real_server_reads() {
    let memory = Peer::named("memory").start("stdio").command;
    let seed = r#"{"type":"entity","name":"Ann","entityType":"person","observations":["likes tea"]}"#;
    let text = format!(
        "server: {{ stdio: {{ command: {memory:?}, env: {{ MEMORY_FILE_PATH: \"${{tmp}}/memory.json\" }} }} }}\n\
         setup:\n  - run: {{ command: [sh, -c, 'printf \"%s\\n\" \"$0\" > memory.json', '{seed}'], cwd: \"${{tmp}}\" }}\n\
         tests:\n  - name: the seed is there\n    steps:\n      - {{ call: read_graph, expect: {{ entities: [{{ name: Ann }}] }} }}\n      \
         - {{ call: delete_entities, with: {{ entityNames: [Ann] }} }}\n      - run: {{ command: [cat, memory.json], cwd: \"${{tmp}}\" }}\n        expect: {{ code: 0, stdout: {{ $not: {{ $contains: Ann }} }} }}\n  \
         - name: and again, although it was deleted\n    steps: [{{ call: read_graph, expect: {{ entities: [{{ name: Ann }}] }} }}]\n"
    );
    check(&text, &[], 0, &["2 passed"]);
}

#[test]
fn a_command_that_fails_fails_its_test() {
    let of = |step: &str| format!("{TRACKER}tests: [{{ name: a, steps: [{step}] }}]\n");
    check(&of("run: [sh, -c, 'echo no space left >&2; exit 7']"), &[], 1, &["`sh` ended with code 7: no space left"]);
    check(&of("{ run: [sh, -c, 'exit 7'], expect: { code: 7 } }"), &[], 0, &["1 passed"]);
    check(&of("{ run: [sh, -c, 'sleep 60'], timeout: 100ms }"), &[], 1, &["`sh -c 'sleep 60'` did not end within 100 ms"]);
    check(&of("run: nosuchprogram"), &[], 1, &["`nosuchprogram` was not found"]);
}

#[test]
fn tests_that_share_a_server_see_what_the_others_did() {
    let tests = "tests:\n  - name: first\n    steps: [{ call: create_order, with: { product_id: PROD-123, quantity: 2 } }]\n  \
                 - name: second\n    steps: [{ call: check_inventory, with: { product_id: PROD-123 }, expect: { available: 8 } }]\n";
    let servers = std::fs::read_to_string(peers::root().join("examples/quickstart/shop.mcproof.yaml")).unwrap();
    let (servers, _) = servers.split_once("tests:").unwrap();
    check(&format!("{servers}isolation: file\n{tests}"), &["--jobs", "4"], 0, &["6 passed"]);
    check(&format!("{servers}{tests}"), &[], 1, &["3 passed, 3 failed"]);
}

#[test]
fn one_test_at_a_time_is_one_server_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/alone.py");
    let lock = folder.path().join("lock");
    let tests: String = (0..6).map(|number| format!("  - {{ name: t{number}, steps: [{{ call: count, expect: 3 }}] }}\n")).collect();
    let suite = |options: &str, arguments: &str| {
        format!("server: {{ {options}stdio: {{ command: [python3, {server:?}, {lock:?}{arguments}] }} }}\ntests:\n{tests}")
    };
    check(&suite("", ""), &["--jobs", "1"], 0, &["6 passed"]);
    let expected = ["locked by another process", "use --jobs 1"];
    check(&suite("era: legacy, ", ", --contended"), &["--jobs", "6"], 1, &expected);
    // Nobody is told so who has to correct the path first.
    let ran = run_suite("server: { stdio: python3 nosuchfile.py }\ntests: [{ name: a, steps: [tools] }]\n", &["--jobs", "6"]);
    assert!(ran.stdout.contains("does not exist: check the path"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("use --jobs") && !ran.stdout.contains("likely cause"), "{}", ran.stdout);
}

#[test]
fn a_shared_server_that_dies_fails_only_the_test_that_killed_it() {
    let text = "server: { stdio: { command: [sh, -c, 'exec mcproof demo tracker'] } }\nisolation: file\n";
    let text = text.replace("exec mcproof", &format!("exec {}", env!("CARGO_BIN_EXE_mcproof")));
    let kill = "{ run: [sh, -c, 'pkill -KILL -P $PPID -f \"[d]emo tracker\"'] }";
    let text = format!(
        "{text}tests:\n  - {{ name: a, steps: [tools] }}\n  - {{ name: b, steps: [tools, {kill}, tools] }}\n  - {{ name: c, steps: [tools] }}\n"
    );
    check(&text, &[], 1, &["server was ended by SIGKILL", "2 passed, 1 failed"]);
}

#[test]
fn a_failure_on_a_shared_server_shows_the_frames_of_its_own_step() {
    let echo = |said: &str, expected: &str| format!("{{ call: echo, with: {{ message: {said} }}, expect: {{ $text: {expected} }} }}");
    let tests =
        format!("tests:\n  - {{ name: a, steps: [{}] }}\n  - {{ name: b, steps: [{}] }}\n", echo("first", "first"), echo("second", "x"));
    let shared = run_suite(&format!("{TRACKER}isolation: file\n{tests}"), &[]);
    assert!(shared.stdout.contains("second") && !shared.stdout.contains("first"), "{}", shared.stdout);
    let earlier = format!("{TRACKER}tests: [{{ name: c, steps: [{}, {}] }}]\n", echo("first", "first"), echo("second", "x"));
    check(&earlier, &[], 1, &["first", "second"]);
}

#[test]
fn a_test_that_passes_when_it_is_tried_again_is_flaky() {
    let folder = tempfile::tempdir().unwrap();
    let flag = folder.path().join("flag");
    let (flag, own) = (flag.display(), env!("CARGO_BIN_EXE_mcproof"));
    let server = format!(
        "server: {{ stdio: {{ command: [sh, -c, 'if [ -e {flag} ]; then exec {own} demo tracker; fi; touch {flag}; exit 3'] }} }}\n"
    );
    let text = format!("{server}tests: [{{ name: a, retries: {{ max: 2, delay: 1ms }}, steps: [tools] }}]\n");
    check(&text, &["--era", "legacy"], 0, &["FLAKY", "server exited with code 3", "1 flaky"]);
    std::fs::remove_file(folder.path().join("flag")).unwrap();
    let ran = run_suite(&text, &["--era", "legacy", "--fail-on-flaky"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("1 test passed only after a retry"), "{}{}", ran.stdout, ran.stderr);
    check(
        &format!("{TRACKER}retries: {{ max: 2, delay: 1ms }}\ntests: [{{ name: a, steps: [{{ call: nope }}] }}]\n"),
        &[],
        1,
        &["0 passed, 1 failed"],
    );
}

#[test]
fn a_server_that_never_starts_is_not_started_for_each_test() {
    let folder = tempfile::tempdir().unwrap();
    let check = |options: &str, arguments: &[&str], starts: usize| {
        let log = folder.path().join("starts");
        let server =
            format!("{{ era: legacy, stdio: {{ command: [sh, -c, 'echo x >> {}; echo no database >&2; exit 1'] }} }}", log.display());
        let tests: String = (0..5).map(|number| format!("  - {{ name: t{number}, steps: [tools] }}\n")).collect();
        let text = format!("server: {server}\n{options}tests:\n{tests}");
        check(&text, arguments, 3, &["no database", "server is not started again", "> t0`", "5 failed"]);
        assert_eq!(std::fs::read_to_string(&log).unwrap().lines().count(), starts, "{options} {arguments:?}");
        std::fs::remove_file(&log).unwrap();
    };
    check("isolation: file\n", &["--jobs", "4"], 2);
    check("", &["--jobs", "1"], 2);
    // A test with retries has all of its attempts, and those after it none.
    check("retries: { max: 2, delay: 1ms }\n", &["--jobs", "1"], 3);
}

#[test]
fn a_skipped_test_says_why_and_is_not_green() {
    let servers = std::fs::read_to_string(peers::root().join("examples/quickstart/shop.mcproof.yaml")).unwrap();
    let (servers, _) = servers.split_once("tests:").unwrap();
    let text = format!(
        "{servers}tests:\n  - {{ name: a, skip: not yet, steps: [tools] }}\n  - {{ name: b, skip_if: {{ transport: [http, sse] }}, steps: [tools] }}\n  \
         - {{ name: c, skip_if: {{ lacks: prompts }}, steps: [prompts] }}\n  - {{ name: d, skip_if: [{{ era: legacy }}, {{ no_env: PATH }}], steps: [tools] }}\n"
    );
    check(&text, &["--era", "legacy"], 0, &["SKIP", "1 passed, 11 skipped"]);
    let reasons: Vec<Value> = events(&text, &["--era", "legacy"])
        .into_iter()
        .filter(|event| event["verdict"] == "skipped")
        .map(|event| event["diagnostics"][0]["message"].clone())
        .collect();
    for reason in ["not yet", "it is not for this transport", "the server does not declare `prompts`", "it is not for this era"] {
        assert!(reasons.iter().any(|found| found == reason), "{reason}: {reasons:?}");
    }
}

#[test]
fn only_runs_what_says_so_and_warns() {
    let text = format!("{TRACKER}tests:\n  - {{ name: a, steps: [tools] }}\n  - {{ name: b, only: true, steps: [tools] }}\n");
    check(&text, &["--allow-only"], 0, &["only 1 of 2 tests of this suite are run", "1 passed"]);
}

#[test]
fn a_test_has_a_deadline_for_all_of_its_steps() {
    let text = format!("{TRACKER}tests: [{{ name: a, timeout: 300ms, steps: [tools, {{ run: sleep 60 }}] }}]\n");
    check(&text, &[], 1, &["the test was not done within 300 ms", "raise `timeout` of the test"]);
}

#[test]
fn a_tool_may_have_a_deadline_of_its_own() {
    let text = "server: { stdio: mcproof demo ml-analysis }\ntimeouts: { tools: { run_analysis: 20ms } }\n\
                tests: [{ name: a, steps: [tools, { call: run_analysis, with: { dataset_location: x, model: gradient_boost } }] }]\n";
    check(text, &[], 1, &["no response to `tools/call` within 20 ms"]);
}

#[test]
fn included_files_bring_servers_steps_and_tests() {
    let suite = "include: common.yaml\nvars: { who: Ann }\ntests:\n  - name: own\n    steps: [{ include: greet.yaml }, tools]\n";
    let common = "server: { stdio: mcproof demo tracker }\nvars: { who: nobody }\ntests: [{ name: common, steps: [tools] }]\n";
    let greet = "- { call: echo, with: { message: \"hello ${who}\" }, expect: { $text: hello Ann } }\n";
    let files = [("s.mcproof.yaml", suite), ("common.yaml", common), ("greet.yaml", greet)];
    let ran = run_files(&files, &[]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("2 passed"), "{}", ran.stdout);
    let wrong = [files[0], files[1], ("greet.yaml", "- { cal: echo }\n")];
    let ran = run_files(&wrong, &[]);
    assert!(ran.stderr.contains("greet.yaml:1:5") && ran.stderr.contains("did you mean `call`?"), "{}", ran.stderr);
    let twice = [
        ("s.mcproof.yaml", "include: [t.yaml]\nserver: { stdio: x }\ntests: [{ name: a, steps: [tools] }]\n"),
        ("t.yaml", "\ntests: [{ name: a, steps: [tools] }]\n"),
    ];
    let ran = run_files(&twice, &[]);
    assert!(
        ran.code == Some(2) && ran.stderr.contains("the test in line 2 of ") && ran.stderr.contains("t.yaml has this name already"),
        "{}",
        ran.stderr
    );
    let ran = run_files(&[files[0], ("common.yaml", "include: s.mcproof.yaml\n")], &[]);
    assert_eq!(ran.code, Some(2), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_profile_swaps_the_server_and_selects_tests() {
    let text = "server: { stdio: nosuchserver }\nvars: { text: local }\nprofiles:\n  demo:\n    server: { stdio: mcproof demo tracker }\n    vars: { text: staged }\n    tags: [read-only]\n\
                tests:\n  - { name: reads, tags: [read-only], steps: [{ call: echo, with: { message: \"${text}\" }, expect: { $text: staged } }] }\n  - { name: writes, steps: [tools] }\n";
    check(text, &["--profile", "demo"], 0, &["reads", "1 passed"]);
    check(text, &[], 3, &["`nosuchserver` was not found", "2 failed"]);
    let ran = run_suite(text, &["--profile", "deno"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("did you mean `demo`?"), "{}", ran.stderr);
    // What its server cannot do is skipped, if it is chosen at all.
    let text = "server: { http: \"http://127.0.0.1:9/mcp\" }\nprofiles:\n  all: { server: { stdio: mcproof demo tracker } }\n  some: { server: { stdio: mcproof demo tracker }, tags: [read-only] }\n\
                tests:\n  - { name: reads, tags: [read-only], steps: [tools] }\n  - { name: asks, steps: [{ http: { method: GET, path: /nowhere }, expect: { status: 404 } }] }\n";
    check(text, &["--profile", "all"], 0, &["1 passed, 1 skipped", "`http GET /nowhere` needs an HTTP transport"]);
    check(text, &["--profile", "some"], 0, &["1 passed"]);
    // What no server of the file can do is a mistake, whatever the profile; what only its own can do is run.
    let text = "server: { stdio: mcproof demo tracker }\nprofiles:\n  pipe: { server: { stdio: mcproof demo tracker } }\n\
                tests:\n  - { name: asks, steps: [{ http: { method: GET, path: /nowhere }, expect: { status: 404 } }] }\n";
    for arguments in [&[][..], &["--profile", "pipe"]] {
        let ran = run_suite(text, arguments);
        let is_refused = ran.code == Some(2) && ran.stderr.contains("`http` needs an HTTP transport, which `server` does not have");
        assert!(is_refused, "{arguments:?}: {}{}", ran.stdout, ran.stderr);
    }
    let web =
        "  web: { server: { http: { command: \"mcproof demo tracker --http --port ${port}\", url: \"http://127.0.0.1:${port}/mcp\" } } }\n";
    let text = text.replace("tests:\n", &format!("{web}tests:\n"));
    check(&text, &["--profile", "web"], 0, &["1 passed"]);
    check(&text, &["--profile", "pipe"], 4, &["1 skipped"]);
}

#[test]
fn after_a_failure_the_server_is_asked_how_it_is() {
    let check = |server: &str, steps: &str, state: &str, blame: &str| {
        let text = format!("server: {server}\ntimeouts: {{ connect: 2s, request: 300ms }}\ntests: [{{ name: a, steps: [{steps}] }}]\n");
        let events = events(&text, &["--era", "legacy"]);
        let outcome = events.iter().find(|event| event["event"] == "test-finished").unwrap();
        let aftermath = &outcome["aftermath"][0];
        assert_eq!((aftermath["state"].as_str(), aftermath["blame"].as_str()), (Some(state), Some(blame)), "{outcome}");
    };
    let hello = r#"read -r l; printf "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}\n"; read -r l; read -r l"#;
    let shell = |then: &str| format!("{{ stdio: {{ command: [sh, -c, '{hello}; {then}'] }} }}");
    check("{ stdio: mcproof demo tracker }", "{ call: nope }", "answers", "server-or-suite");
    check("{ stdio: mcproof demo tracker }", "{ signal: KILL }, ping", "died", "suite");
    check(&shell("exit 3"), "tools", "died", "server");
    check(&shell("cat >/dev/null"), "tools", "hung", "server");
    check("{ http: \"http://127.0.0.1:9/mcp\" }", "tools", "unreachable", "network");
    check("{ stdio: nosuchserver }", "tools", "not-started", "server");
}

#[test]
fn a_server_that_the_test_itself_has_killed_is_not_blamed() {
    let ran = run_suite(&format!("{TRACKER}tests:\n  - name: a\n    steps:\n      - signal: KILL\n      - ping\n"), &[]);
    let told = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("by the step `signal KILL` in line 5; likely cause: the suite"), "{}", ran.stdout);
    // What the failure says is not said once more.
    let refused = run_suite("server: { http: \"http://127.0.0.1:1/mcp\" }\ntests: [{ name: a, steps: [ping] }]\n", &[]);
    assert!(refused.stdout.contains("127.0.0.1:1 refused") && !refused.stdout.contains("likely cause"), "{}", refused.stdout);
}

#[test]
fn every_step_is_told_with_its_exchanges() {
    let text = format!(
        "{TRACKER}tests: [{{ name: a, steps: [tools, {{ call: echo, with: {{ message: x }} }}, {{ call: nope, fails: true }}] }}]\n"
    );
    let events = events(&text, &[]);
    let steps = events.iter().find(|event| event["event"] == "test-finished").unwrap()["steps"].as_array().unwrap().clone();
    let titles: Vec<&str> = steps.iter().filter_map(|step| step["title"].as_str()).collect();
    assert_eq!(titles, ["list tools", "call echo", "call nope"]);
    assert_eq!((&steps[1]["exchanges"][0]["arguments"]["message"], &steps[1]["exchanges"][0]["answer"]), (&"x".into(), &"result".into()));
    assert_ne!(steps[2]["exchanges"][0]["answer"], "result");
    assert!(run(&["--help"]).stdout.contains("--profile"));
}

#[test]
fn a_test_that_differs_between_transports_says_where_the_wires_part() {
    let text = "server:\n  stdio: mcproof demo shop\n  http: { command: \"mcproof demo shop --miscount --http --port ${port}\", url: \"http://127.0.0.1:${port}/mcp\" }\n\
                tests:\n  - name: a\n    steps:\n      - tools\n      - { call: create_order, with: { product_id: PROD-123, quantity: 1 }, save: { id: id } }\n      \
                - { call: check_inventory, with: { product_id: PROD-123 }, expect: { available: 9 } }\n";
    let events = events(text, &[]);
    let parting = &events.iter().find(|event| event["event"] == "transport-specific").unwrap()["parting"];
    assert_eq!(
        (&parting["step"], &parting["failed"]["transport"], &parting["passed"]["transport"]),
        (&"call check_inventory".into(), &"http".into(), &"stdio".into())
    );
    let said = |branch: &Value| branch["frame"]["body"].to_string();
    assert!(said(&parting["failed"]).contains(":8") && said(&parting["passed"]).contains(":9"), "{parting}");
}

#[test]
fn the_staging_profile_of_the_examples_runs_what_reads_against_a_deployed_server() {
    let mut deployed = Command::new(env!("CARGO_BIN_EXE_mcproof"))
        .args(["demo", "tracker", "--http", "--port", "0"])
        .stderr(Stdio::piped())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(deployed.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().trim_start_matches("listening on ");
    let output = Command::new(env!("CARGO_BIN_EXE_mcproof"))
        .current_dir(peers::root())
        .args(["test", "examples/guide/staging.mcproof.yaml", "--profile", "staging"])
        .envs([("STAGING_URL", url), ("STAGING_TOKEN", "a token of staging")])
        .output()
        .unwrap();
    deployed.kill().unwrap();
    deployed.wait().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && said.contains("2 passed") && !said.contains("a token of staging"), "{said}");
}

/// What a suite with a shared server does around its tests, as words in the order in which it was done.
fn around(tests: &str, arguments: &[&str], code: i32) -> (Vec<String>, running::Ran) {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let note = |word: &str| format!("{{ run: {{ command: [sh, -c, 'echo {word} >> {}'] }} }}", log.display());
    let text = format!("{TRACKER}isolation: file\nsetup: [{}]\nteardown: [{}]\ntests:\n{tests}", note("setup"), note("teardown"));
    let ran = run_suite(&text.replace("NOTE", &note("test")), &[&["--jobs", "1"], arguments].concat());
    assert_eq!(ran.code, Some(code), "{}{}", ran.stdout, ran.stderr);
    let written = std::fs::read_to_string(&log).unwrap_or_default();
    (written.split_whitespace().map(str::to_owned).collect(), ran)
}

#[test]
fn a_shared_teardown_runs_whatever_becomes_of_the_last_test() {
    let check = |tests: &str, arguments: &[&str], code: i32, expected: &[&str]| {
        let (found, ran) = around(tests, arguments, code);
        assert_eq!(found, expected, "{tests}{}", ran.stdout);
    };
    let (good, bad) = ("steps: [tools, NOTE]", "steps: [NOTE, { call: nope }]");
    let tests = |first: &str, last: &str| format!("  - {{ name: a, {first} }}\n  - {{ name: b, {good} }}\n  - {{ name: c, {last} }}\n");
    check(&tests(good, good), &[], 0, &["setup", "test", "test", "test", "teardown"]);
    // The rest of the group never runs, and nobody but the run itself can clean up.
    check(&tests(bad, good), &["--fail-fast"], 1, &["setup", "test", "teardown"]);
    check(&tests(good, bad), &["--fail-fast"], 1, &["setup", "test", "test", "test", "teardown"]);
    // What is skipped is the last one, for a reason that is known before or only in its session.
    check(&tests(good, &format!("skip: not now, {good}")), &[], 0, &["setup", "test", "test", "teardown"]);
    check(&tests(good, &format!("skip_if: {{ lacks: experimental }}, {good}")), &[], 0, &["setup", "test", "test", "teardown"]);
    check(&tests(&format!("skip_if: {{ lacks: experimental }}, {good}"), good), &[], 0, &["setup", "test", "test", "teardown"]);
    let skipped = format!("skip: not now, {good}");
    check(&format!("  - {{ name: a, {skipped} }}\n  - {{ name: b, {skipped} }}\n"), &[], 4, &[]);
    // A server that is gone owes it all the same.
    check(&tests("steps: [{ signal: KILL }, { call: nope }]", good), &["--fail-fast"], 1, &["setup", "teardown"]);
}

#[test]
fn a_shared_teardown_that_fails_after_fail_fast_is_told() {
    let tests = "  - { name: a, steps: [{ call: nope }] }\n  - { name: b, steps: [tools] }\n";
    let text = format!("{TRACKER}isolation: file\nteardown: [{{ run: [sh, -c, 'exit 7'] }}]\ntests:\n{tests}");
    check(&text, &["--jobs", "1", "-x"], 1, &["in the shared teardown: `sh` ended with code 7", "stopped after 1 failure"]);
}

#[test]
fn a_shared_teardown_that_fails_is_told_of_the_last_test_that_ran() {
    let text = format!("{TRACKER}isolation: file\nteardown: [{{ run: [sh, -c, 'exit 7'] }}]\ntests:\n");
    let tests = |skip: &str| format!("{text}  - {{ name: a, steps: [tools] }}\n  - {{ name: b, {skip}, steps: [tools] }}\n");
    let known = tests("skip: not now");
    check(&known, &["--jobs", "1"], 1, &["✗ FAIL [stdio] ", "› a", "`sh` ended with code 7", "name(=a)", "1 failed, 1 skipped"]);
    check(&known, &["--jobs", "1", "--filter", "name(=a)"], 1, &["`sh` ended with code 7"]);
    // That a session has to be asked first is known too late.
    let unknown = tests("skip_if: { lacks: experimental }");
    check(&unknown, &["--jobs", "1"], 1, &["in the shared teardown: `sh` ended with code 7"]);
}

#[test]
fn a_profile_may_disturb_the_wire_and_say_how_often_to_try() {
    let text = "server: { stdio: mcproof demo tracker }\nprofiles:\n  bad-network:\n    faults: { drop: true, tool: echo, first: 1 }\n    timeouts: { request: 2s }\n    retry: { max: 1, force: true }\n  \
                worse-network:\n    faults: [{ drop: true, tool: echo }]\n    timeouts: { request: 300ms }\n  thorough:\n    leaks: { repeat: 2 }\n  patient:\n    breaker: { failures: 1, open: 60s }\n    faults: { drop: true, tool: echo }\n    timeouts: { request: 300ms }\n\
                tests: [{ name: a, steps: [{ call: echo, with: { message: hi }, expect: { $text: hi } }, { call: echo, with: { message: hi } }] }]\n";
    check(text, &[], 0, &["1 passed"]);
    check(text, &["--profile", "bad-network"], 0, &["1 passed"]);
    check(text, &["--profile", "worse-network"], 1, &["1 failed", "`faults` dropped the response to `tools/call echo`"]);
    check(text, &["--profile", "thorough"], 0, &["1 passed"]);
    let patient = text.replace("expect: { $text: hi }", "no_response: true");
    check(&patient, &["--profile", "patient"], 1, &["the breaker stays open"]);
}
