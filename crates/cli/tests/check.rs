//! `mcproof check` and `mcproof explain` as a person uses them, on a server with one flaw: it greets on stdout.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod peers;

use peers::root;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const RULE: &str = "stdio-only-messages-on-stdout";

/// A folder with the server.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let server = format!("echo welcome, this is run $$\nexec {} demo shop\n", env!("CARGO_BIN_EXE_mcproof"));
    std::fs::write(folder.path().join("server.sh"), server).unwrap();
    folder
}

fn mcproof(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcproof"));
    command.env_remove("GITHUB_ACTIONS").env_remove("GITHUB_STEP_SUMMARY").current_dir(folder);
    command.args(arguments).output().unwrap()
}

/// Checks the server, and gives exit code, stdout and stderr.
fn check(folder: &TempDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    said(mcproof(folder.path(), &[&["check"], arguments, &["--", "sh", "server.sh"]].concat()))
}

/// Without the line breaks of long sentences.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn said(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn read(folder: &TempDir, file: &str) -> String {
    std::fs::read_to_string(folder.path().join(file)).unwrap()
}

#[test]
fn a_finding_has_its_rule_its_frame_and_what_to_change() {
    let (code, stdout, stderr) = check(&folder(), &[]);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    for part in [
        "error: a line on stdout is not a message: `welcome, this is run",
        "← welcome, this is run",
        RULE,
        "write logs to stderr",
        "1 failure, ",
    ] {
        assert!(stdout.contains(part), "{part:?} is not in\n{stdout}");
    }
}

#[test]
fn rules_are_selected_by_id_area_and_glob_and_a_typo_is_told() {
    let folder = folder();
    for (arguments, code) in [
        (&["--only", RULE][..], 1),
        (&["--only", "stdio"], 1),
        (&["--only", "stdio-*"], 1),
        (&["--skip", RULE], 0),
        (&["--only", "stdio", "--skip", "stdio-only-*"], 0),
    ] {
        assert_eq!(check(&folder, arguments).0, Some(code), "{arguments:?}");
    }
    let (code, _, stderr) = check(&folder, &["--only", "stdio-only-message-on-stdout"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains(&format!("did you mean `{RULE}`?")), "{stderr}");
}

#[test]
fn accepted_findings_pass_and_stale_ones_are_told() {
    let folder = folder();
    let (code, _, stderr) = check(&folder, &["--baseline", "accepted.json"]);
    assert_eq!(code, Some(2), "a baseline that is named has to be there");
    assert!(stderr.contains("--update-baseline"), "{stderr}");
    assert_eq!(check(&folder, &["--baseline", "accepted.json", "--update-baseline"]).0, Some(0));
    let (code, stdout, stderr) = check(&folder, &["--baseline", "accepted.json"]);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("accepted"), "{stdout}");

    let mended = format!("exec {} demo shop\n", env!("CARGO_BIN_EXE_mcproof"));
    std::fs::write(folder.path().join("server.sh"), mended).unwrap();
    let (code, _, stderr) = check(&folder, &["--baseline", "accepted.json"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("baseline accepts a finding that no longer exists: stdio-only-messages-on-stdout"), "{stderr}");
    assert_eq!(check(&folder, &["--baseline", "accepted.json", "--strict", "--only", RULE]).0, Some(1));
    let (code, _, stderr) = check(&folder, &["--baseline", "accepted.json", "--skip", RULE]);
    assert!(code == Some(0) && !stderr.contains("gone"), "what was not judged is not stale: {stderr}");
}

#[test]
fn what_was_saved_is_judged_again_without_the_server() {
    let folder = folder();
    let first = check(&folder, &["--trace", "saved.json", "--json"]);
    std::fs::remove_file(folder.path().join("server.sh")).unwrap();
    let again = said(mcproof(folder.path(), &["check", "--replay", "saved.json", "--json"]));
    assert_eq!(first, again);
    let shown = said(mcproof(folder.path(), &["check", "--replay", "saved.json"]));
    assert!(shown.0 == Some(1) && shown.1.contains("welcome"), "{}", shown.1);
}

#[test]
fn every_report_tells_the_finding() {
    let folder = folder();
    let files =
        ["sarif=a.sarif", "junit=a.xml", "github=a.txt", "html=a.html", "json=a.json", "terminal=a.term", "agent=a.agent", "tap=a.tap"];
    let reporters: Vec<&str> = files.iter().flat_map(|file| ["--reporter", file]).collect();
    let (code, stdout, stderr) = check(&folder, &reporters);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    for file in files {
        let name = file.split_once('=').unwrap().1;
        let text = read(&folder, name);
        assert!(text.contains(RULE) && text.contains("welcome"), "{name}: {text}");
    }
    let sarif: Value = serde_json::from_str(&read(&folder, "a.sarif")).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!((result["ruleId"].as_str(), result["level"].as_str()), (Some(RULE), Some("error")));
    assert_eq!(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "server.sh");
    let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
    assert_eq!(sarif["runs"][0]["tool"]["driver"]["rules"][index]["id"], RULE);
    assert!(!result["partialFingerprints"]["mcproof/v1"].as_str().unwrap().contains(char::is_numeric), "{result}");
    let xmllint = Command::new("xmllint").args(["--noout", "--nonet"]).arg(folder.path().join("a.xml")).status();
    assert!(xmllint.expect("xmllint is installed: run `cargo xtask check`").success());
}

#[test]
fn an_agent_reads_the_worst_first_and_can_repeat_it() {
    let folder = folder();
    let (code, stdout, stderr) =
        check(&folder, &["--reporter", "agent", "--strict", "--call", "all", "-e", "TOKEN=secret", "--skip", "tools"]);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    let repeat = format!("repeat: mcproof check --only {RULE} --strict --call all -e 'TOKEN=[redacted]' -- sh server.sh");
    let first = format!("\n1. {RULE}: failure: a line on stdout is not a message: `welcome");
    for part in [
        "FAILED: 1 failure, 0 warnings",
        &first,
        "   wire: ← welcome, this is run",
        "   hint: write logs to stderr",
        "not tested, because",
        &repeat,
    ] {
        assert!(stdout.contains(part), "{part:?} is not in\n{stdout}");
    }
    let (code, stdout, _) = check(&folder, &["--reporter", "agent", "--skip", RULE]);
    assert!(code == Some(0) && stdout.starts_with("PASSED: 0 failures"), "{stdout}");
}

#[test]
fn json_fits_the_published_schema() {
    let schema: Value = serde_json::from_slice(&mcproof(&root(), &["schema", "check"]).stdout).unwrap();
    let (_, stdout, _) = check(&folder(), &["--json"]);
    let report: Value = serde_json::from_str(&stdout).unwrap();
    let errors: Vec<String> = jsonschema::validator_for(&schema).unwrap().iter_errors(&report).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn a_server_that_is_not_there_is_no_verdict() {
    let folder = folder();
    for arguments in [&["check", "http://127.0.0.1:1/mcp"][..], &["check", "--", "mcproof-no-such-program"]] {
        let (code, stdout, stderr) = said(mcproof(folder.path(), arguments));
        assert_eq!((code, stdout.as_str()), (Some(3), ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains("error:"), "{stderr}");
    }
}

#[test]
fn a_server_that_dies_at_its_start_is_a_verdict() {
    let folder = tempfile::tempdir().unwrap();
    for place in [&[][..], &["http://127.0.0.1:${port}/mcp"]] {
        let arguments = [&["check"], place, &["--", "sh", "-c", "echo no database >&2; exit 7"]].concat();
        let (code, stdout, stderr) = said(mcproof(folder.path(), &arguments));
        assert_eq!(code, Some(1), "{stderr}");
        for part in ["with code 7", "no database", "server-starts", "1 failure, 0 warnings, 0 notes"] {
            assert!(stdout.contains(part), "{part:?} is not in\n{stdout}");
        }
        // One reason for all that could not be tested.
        assert_eq!(stdout.matches("not tested, because").count(), 1, "{stdout}");
    }
}

#[test]
fn a_server_that_says_nothing_may_be_slow_to_start_which_is_no_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let silent = ["--", "sh", "-c", "echo connecting >&2; exec sleep 60"];
    for (limit, why) in [("--connect-timeout", "and may still be starting"), ("--deadline", "deadline of 1 s had passed")] {
        let (code, stdout, stderr) = said(mcproof(folder.path(), &[&["check", limit, "1s", "--reporter", "json"], &silent[..]].concat()));
        let report: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(code, Some(3), "{stderr}");
        assert!(report["gaps"][0]["message"].as_str().unwrap().contains(why), "{}", report["gaps"]);
        assert!(report["rules"].as_array().unwrap().iter().all(|ruling| ruling["judged"]["verdict"] != "broken"));
    }
}

#[test]
fn what_a_server_does_with_unknown_versions_is_told_as_that() {
    let folder = tempfile::tempdir().unwrap();
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/versions.mjs");
    let (url, server) = ("http://127.0.0.1:${port}/mcp", server.to_str().unwrap());
    for (habit, expected) in [("404", "`1900-01-01` got status 404"), ("drop", "`1900-01-01` got no response: the connection was closed")] {
        let (code, stdout, stderr) =
            said(mcproof(folder.path(), &["check", "--reporter", "json", url, "--", "node", server, "${port}", habit]));
        let report: Value = serde_json::from_str(&stdout).unwrap();
        // Whoever closes each connection of the modern era may have one, which nobody has seen.
        assert_eq!((code, report.get("gaps").is_some()), (Some(1), habit == "drop"), "{habit}: {stderr}");
        let findings = report["rules"].as_array().unwrap().iter().flat_map(|ruling| {
            let findings = ruling["judged"]["findings"].as_array().into_iter().flatten();
            findings.filter(|finding| finding["severity"] == "error").map(move |finding| (ruling["rule"].as_str().unwrap(), finding))
        });
        let findings: Vec<(&str, &Value)> = findings.collect();
        let [("http-unknown-version-gets-400", finding)] = findings.as_slice() else { panic!("{habit}: {findings:#?}") };
        assert!(finding["message"].as_str().unwrap().contains(expected) && finding.get("cause").is_none(), "{finding:#}");
    }
}

/// A process that refused to be discovered may be modern all the same, which is seen in another one: it ends as every other does.
#[test]
fn a_process_that_refused_discovery_is_ended_before_it_is_let_go() {
    let folder = tempfile::tempdir().unwrap();
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/undiscoverable.py");
    let (code, stdout, stderr) = said(mcproof(folder.path(), &["check", "--", "python3", server.to_str().unwrap(), "log"]));
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    let discovered = log.lines().find_map(|line| line.strip_suffix(" server/discover")).unwrap();
    assert!(log.lines().any(|line| line == format!("{discovered} ended")), "{log}");
}

#[test]
fn a_server_that_lists_only_legacy_versions_and_serves_the_modern_one_contradicts_itself() {
    let folder = tempfile::tempdir().unwrap();
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/hides_era.py");
    let server = server.to_str().unwrap();
    for (what, is_broken) in [("lies", true), ("refuses", false)] {
        let (code, stdout, stderr) = said(mcproof(folder.path(), &["check", "--reporter", "json", "--", "python3", server, what]));
        let report: Value = serde_json::from_str(&stdout).unwrap();
        let rules = report["rules"].as_array().unwrap();
        let ruling = rules.iter().find(|ruling| ruling["rule"] == "discover-names-versions").unwrap();
        assert_eq!(ruling["judged"]["verdict"] == "broken", is_broken, "{code:?}: {ruling:#}{stderr}");
        if is_broken {
            let finding = &ruling["judged"]["findings"][0];
            assert!(finding["message"].as_str().unwrap().ends_with("without \"2026-07-28\", the version of the request"), "{finding:#}");
            assert_eq!(code, Some(1), "{stderr}");
        }
    }
}

#[test]
fn a_server_that_cannot_run_twice_at_the_same_time_is_talked_to_by_one_client_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/alone.py");
    let (code, stdout, stderr) = said(mcproof(folder.path(), &["check", "--", "python3", server.to_str().unwrap(), "lock"]));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("0 failures, 0 warnings"), "{stdout}");
}

#[test]
fn a_server_that_died_at_one_of_its_starts_is_not_green() {
    let folder = tempfile::tempdir().unwrap();
    let server = concat!("python3 ", env!("CARGO_MANIFEST_DIR"), "/tests/servers/alone.py $$.lock");
    // One that only dies when it is discovered may be of the other era.
    let script = format!("mkdir first 2>/dev/null || mkdir second 2>/dev/null || {{ mkdir third 2>/dev/null && exit 3; }}; exec {server}");
    let (code, stdout, stderr) = said(mcproof(folder.path(), &["check", "--", "sh", "-c", &script]));
    assert!(matches!(code, Some(1 | 3)), "{code:?}: {stdout}{stderr}");
}

#[test]
fn ctrl_c_ends_the_check_and_its_servers() {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("started");
    let script = format!("echo $$ > {}; exec sleep 600", mark.display());
    let mut checking = Command::new(env!("CARGO_BIN_EXE_mcproof"))
        .args(["check", "--", "sh", "-c", &script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let server = loop {
        match std::fs::read_to_string(&mark).ok().and_then(|text| text.trim().parse::<i32>().ok()) {
            Some(pid) => break Pid::from_raw(pid),
            None => std::thread::yield_now(),
        }
    };
    kill(Pid::from_raw(i32::try_from(checking.id()).unwrap()), Signal::SIGINT).unwrap();
    assert_eq!(checking.wait().unwrap().code(), Some(130));
    // It was killed; init takes a moment to see that.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while kill(server, None).is_ok() {
        assert!(std::time::Instant::now() < until, "the server is still there");
        std::thread::yield_now();
    }
}

#[test]
fn a_rule_is_explained_in_the_words_of_its_page() {
    let folder = tempfile::tempdir().unwrap();
    let (code, stdout, _) = said(mcproof(folder.path(), &["explain", RULE]));
    assert_eq!(code, Some(0));
    for part in [RULE, "MUST", "Why it matters", "What to change", "< Listening on stdio"] {
        assert!(stdout.contains(part), "{part:?} is not in\n{stdout}");
    }
    assert!(said(mcproof(folder.path(), &["explain"])).1.contains(RULE));
    assert_eq!(said(mcproof(folder.path(), &["explain", "no-such-rule-anywhere"])).0, Some(2));
}

/// Regenerate with `cargo run -p mcproof -- explain --all --output docs/rules`.
#[test]
fn the_pages_of_the_rules_are_those_in_the_documentation() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(said(mcproof(folder.path(), &["explain", "--all", "--output", "rules"])).0, Some(0));
    let pages = |folder: &Path| -> Vec<(String, String)> {
        let mut pages: Vec<(String, String)> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(path).unwrap()))
            .collect();
        pages.sort();
        pages
    };
    let (generated, kept) = (pages(&folder.path().join("rules")), pages(&root().join("docs/rules")));
    let names = |pages: &[(String, String)]| pages.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&generated), names(&kept));
    for (generated, kept) in generated.iter().zip(&kept) {
        assert_eq!(generated, kept);
    }
}

/// Has no page at any path.
const NOWHERE: &str = "import http.server, sys
class Nowhere(http.server.BaseHTTPRequestHandler):
    def do_POST(self): self.send_error(404)
    do_GET = do_DELETE = do_POST
http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Nowhere).serve_forever()";

#[test]
fn a_server_that_is_reached_at_a_wrong_path_is_told_so_and_little_else() {
    let folder = tempfile::tempdir().unwrap();
    let server = ["--", "python3", "-c", NOWHERE, "${port}"];
    let (code, stdout, _) = said(mcproof(folder.path(), &[&["check", "http://127.0.0.1:${port}/nowhere"], &server[..]].concat()));
    assert_eq!(code, Some(1), "{stdout}");
    for part in ["got status 404", "check the path of the URL", "not tested, because no request got a result: "] {
        assert!(stdout.contains(part), "{part:?} is not in\n{stdout}");
    }
    assert_eq!(stdout.matches("not tested, because").count(), 1, "{stdout}");
}

#[test]
fn a_server_at_another_path_is_found_there_and_not_judged() {
    let folder = tempfile::tempdir().unwrap();
    let check = |verb: &str, transport: &str, path: &str, right: &str| {
        let url = format!("http://127.0.0.1:${{port}}{path}");
        let server = ["--", env!("CARGO_BIN_EXE_mcproof"), "demo", "tracker", transport, "--port", "${port}"];
        let (code, stdout, stderr) = said(mcproof(folder.path(), &[&[verb, &url], &server[..]].concat()));
        let told = format!("{stdout}{stderr}");
        assert_eq!(code, Some(3), "{verb} {path}: {told}");
        let hint = told.lines().find(|line| line.contains("use the URL http://127.0.0.1:"));
        assert!(hint.is_some_and(|hint| hint.ends_with(right)), "{verb} {path}: {told}");
        assert!(!told.contains("failure"), "{verb} {path}: {told}");
    };
    check("check", "--http", "", "/mcp");
    check("check", "--sse", "/mcp", "/sse");
    check("tools", "--http", "/tracker/mcp/", "/mcp");
    check("tools", "--sse", "/", "/sse");
    check("doctor", "--http", "/sse", "/mcp");
}

#[test]
fn a_mistake_of_a_natural_server_is_told_once_and_is_never_green() {
    let folder = tempfile::tempdir().unwrap();
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/natural.py");
    let rows: [(&str, &[&str], usize); 11] = [
        ("nothing", &["0 failures"], 0),
        ("has-no-database", &["inconclusive: `tools/list` got error -32603 each time, so no tool was checked"], 1),
        ("choices-are-not-checked", &["mcproof-no-such-value", "call-out-of-range-argument-is-refused"], 0),
        ("find-never-responds", &["inconclusive: no call of `find` got a response"], 1),
        ("add-never-responds", &["inconclusive: no call of `add` got a response"], 1),
        (
            "eight-never-respond",
            &["inconclusive: no call of", "`read_0`, ", "the time for calls was up before `read_6` and `read_7` responded"],
            1,
        ),
        ("uses-up-a-pool", &["inconclusive: ", "got no response", ", although others like "], 1),
        ("every-call-breaks", &["inconclusive: each call of `add` and `find` got the error -32603"], 1),
        (
            "limits-its-rate",
            &["the server limits how many requests or sessions it takes: ", " got error -32000 (Rate limit", "0 failures"],
            0,
        ),
        ("nulls", &["`title` of tool `find` is null", "`outputSchema` of tool `find` is null", "in 2 items"], 2),
        ("prints-and-fails", &["ended with code 1 before it responded to the handshake; its last output: KeyError: 'NOTES_FILE'"], 2),
    ];
    for (mistake, told, errors) in rows {
        let (code, stdout, stderr) =
            said(mcproof(folder.path(), &["check", "--call", "all", "--", "python3", server.to_str().unwrap(), mistake]));
        assert_eq!(code, Some(i32::from(errors > 0)), "{mistake}: {stdout}{stderr}");
        let words = unwrapped(&stdout);
        for part in told {
            assert!(words.contains(part), "{mistake}: {part:?} is not in\n{stdout}");
        }
        assert_eq!(stdout.matches("error: ").count(), errors, "{mistake}: {stdout}");
    }
}

#[test]
fn a_secret_that_a_server_repeats_is_in_no_report() {
    let folder = tempfile::tempdir().unwrap();
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/natural.py");
    for reporter in ["terminal", "json", "agent"] {
        let options = ["check", "--call", "all", "--reporter", reporter, "-e", "API_TOKEN=hunter2-9xQ"];
        let arguments = [&options[..], &["--", "python3", server.to_str().unwrap(), "names-a-secret"]].concat();
        let (_, stdout, stderr) = said(mcproof(folder.path(), &arguments));
        assert!(!format!("{stdout}{stderr}").contains("hunter2"), "{reporter}: {stdout}{stderr}");
    }
}

/// A trace shows one kind of client: the server is compared as that one sees it.
#[test]
fn what_is_new_since_a_trace_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/natural.py");
    let run = |start: &[&str], mistake: &str| {
        said(mcproof(folder.path(), &[start, &["--", "python3", server.to_str().unwrap(), mistake]].concat()))
    };
    assert_eq!(run(&["tools", "--trace", "before.mcptrace"], "nothing").0, Some(0));
    let (code, stdout, stderr) = run(&["diff", "before.mcptrace"], "eight-never-respond");
    assert!(code == Some(1) && stdout.contains("read_0"), "{code:?}: {stdout}{stderr}");
    assert_eq!(run(&["diff", "before.mcptrace"], "nothing").0, Some(0));
    let own = ["tools", "--capabilities", "{\"sampling\":{}, \"roots\":{}, \"experimental\":{}}", "--trace", "own.mcptrace"];
    assert_eq!(run(&own, "nothing").0, Some(0));
    let exported = said(mcproof(folder.path(), &["trace", "export", "own.mcptrace", "--lock", "--output", "own.lock"]));
    assert_eq!(exported.0, Some(0), "{exported:?}");
    let (code, _, stderr) = run(&["diff", "own.lock"], "nothing");
    assert!(code == Some(2) && stderr.contains("--capabilities"), "{code:?}: {stderr}");
}

#[test]
fn a_start_that_fails_late_is_told_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    // The second look, at one process alone, is cut short by the deadline: what the first processes said counts.
    let script = "sleep 3; echo 'error: no solution was found' >&2; exit 1";
    let (code, stdout, stderr) = said(mcproof(folder.path(), &["check", "--deadline", "8s", "--", "bash", "-c", script]));
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    for part in ["server-starts", "error: no solution was found", "code 1"] {
        assert!(stdout.contains(part), "{part:?} is not in\n{stdout}{stderr}");
    }
}

#[test]
fn a_server_that_is_gone_later_or_now_and_then_is_one_finding() {
    let folder = tempfile::tempdir().unwrap();
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/natural.py");
    let rows = [
        ("is-gone-later", "got an HTML page instead of an MCP response"),
        ("fails-now-and-then", "ordinary requests got status 500, while others like them were served"),
    ];
    for (mistake, told) in rows {
        let arguments = ["check", "http://127.0.0.1:${port}/mcp", "--", "python3", server.to_str().unwrap(), mistake, "${port}"];
        let (code, stdout, stderr) = said(mcproof(folder.path(), &arguments));
        assert_eq!(code, Some(1), "{stdout}{stderr}");
        for part in [told, "requests-continue-to-be-served", "1 failure, "] {
            assert!(stdout.contains(part), "{mistake}: {part:?} is not in\n{stdout}");
        }
    }
    let arguments = ["check", "http://127.0.0.1:${port}/mcp", "--", "python3", server.to_str().unwrap(), "resets-calls", "${port}"];
    let (code, stdout, stderr) = said(mcproof(folder.path(), &arguments));
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(stdout.contains("(`tools/call find`) had their connection closed without a response, although others like them"), "{stdout}");
}

#[test]
fn connections_that_are_in_the_way_of_one_another_are_one_finding_and_take_no_deadline() {
    let folder = tempfile::tempdir().unwrap();
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/natural.py");
    let rows = [
        ("serves-one-connection", "a message got no response while another connection was open and at rest"),
        ("stream-takes-all", "a message got no response while "),
        ("hangs-on-reuse", "the second request on a connection got no response"),
    ];
    for (mistake, told) in rows {
        let arguments = ["check", "http://127.0.0.1:${port}/mcp", "--", "python3", server.to_str().unwrap(), mistake, "${port}"];
        let (code, stdout, stderr) = said(mcproof(folder.path(), &arguments));
        assert_eq!(code, Some(1), "{stdout}{stderr}");
        for part in [told, "requests-continue-to-be-served", "serve each connection in a thread or task of its own", "1 failure, "] {
            assert!(stdout.contains(part), "{mistake}: {part:?} is not in\n{stdout}");
        }
        // Where nothing can be tried beside a stream, the check is inconclusive as well.
        let errors = stdout.matches("error: ").count() - stdout.matches("error: inconclusive").count();
        assert_eq!(errors, 1, "{mistake}: {stdout}");
        assert!(!stdout.contains("deadline"), "{mistake}: {stdout}");
    }
}

#[test]
fn a_response_on_the_stream_of_another_request_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/natural.py");
    let mistake = "responds-on-another-stream";
    let arguments = ["check", "http://127.0.0.1:${port}/mcp", "--", "python3", server.to_str().unwrap(), mistake, "${port}"];
    let (_, stdout, stderr) = said(mcproof(folder.path(), &arguments));
    assert!(stdout.contains("http-response-is-on-request-stream"), "{stdout}{stderr}");
}

/// A server may close the connection after an event with an id, and give the response to a GET with that id: to requests in whatever form.
#[test]
fn a_server_that_lets_clients_poll_is_as_sound_as_one_that_responds_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/natural.py");
    let found = ["nothing", "lets-clients-poll"].map(|mistake| {
        let arguments = ["check", "--json", "http://127.0.0.1:${port}/mcp", "--", "python3", server.to_str().unwrap(), mistake, "${port}"];
        let (_, stdout, stderr) = said(mcproof(folder.path(), &arguments));
        let report: Value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{mistake}: {stdout}{stderr}"));
        let judged = report["rules"].as_array().unwrap().iter().filter(|ruling| ruling["judged"]["findings"].is_array());
        judged.map(|ruling| ruling["rule"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    });
    assert_eq!(found[1], found[0]);
}

#[test]
fn a_body_that_is_broken_for_those_who_accept_compression_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/natural.py");
    let arguments = ["check", "http://127.0.0.1:${port}/mcp", "--", "python3", server.to_str().unwrap(), "labels-compression", "${port}"];
    let (code, stdout, stderr) = said(mcproof(folder.path(), &arguments));
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(stdout.contains("not valid gzip") && stdout.contains("1 failure, "), "{stdout}");
}

#[test]
fn what_a_proxy_refuses_because_there_are_too_many_requests_is_not_judged() {
    let folder = tempfile::tempdir().unwrap();
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/natural.py");
    let arguments = ["check", "http://127.0.0.1:${port}/mcp", "--", "python3", server.to_str().unwrap(), "is-behind-a-limit", "${port}"];
    let (code, stdout, stderr) = said(mcproof(folder.path(), &arguments));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    for part in
        ["the server limits how many requests or sessions it takes: ", " got status 503 (503 Service Temporarily Unavailable) after "]
    {
        assert!(unwrapped(&stdout).contains(part), "{part:?} is not in\n{stdout}");
    }
}

#[test]
fn a_server_that_serves_only_its_first_request_is_one_finding() {
    let folder = tempfile::tempdir().unwrap();
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/first_only.py");
    let closed = "because the connection was closed";
    // With the transport left open, the first request is the one that finds it out.
    let rows = [
        ("500", "auto", "got status 500"),
        ("500", "http", "got status 500"),
        ("404", "auto", "got status 404"),
        ("close", "auto", closed),
        ("close", "http", closed),
    ];
    for (how, transport, told) in rows {
        let server = server.to_str().unwrap();
        let arguments = ["check", "--transport", transport, "http://127.0.0.1:${port}/mcp", "--", "python3", server, how, "${port}"];
        let (code, stdout, stderr) = said(mcproof(folder.path(), &arguments));
        assert_eq!(code, Some(1), "{stdout}{stderr}");
        for part in ["error: `initialize` ", " was served, and ", told, "requests-continue-to-be-served", "follow from", "1 failure, "] {
            assert!(stdout.contains(part), "{how} {transport}: {part:?} is not in\n{stdout}");
        }
        assert_eq!(stdout.matches("error: ").count(), 1, "{how} {transport}: {stdout}");
    }
}

#[test]
fn a_message_of_which_only_the_end_is_missing_is_told_and_not_awaited() {
    let folder = tempfile::tempdir().unwrap();
    let unterminated = r#"read line; printf '{"jsonrpc":"2.0","id":1,"result":{}}'; exec sleep 60"#;
    let spread = r#"read line; printf '{\n"jsonrpc":"2.0","id":1,\n"result":{}\n}\n'; exec sleep 60"#;
    let marked = r#"read line; printf '\357\273\277{"jsonrpc":"2.0","id":1,"result":{}}\n'; exec sleep 60"#;
    let servers = [(unterminated, "stdio-line-is-terminated"), (spread, "stdio-message-on-one-line"), (marked, "stdio-has-no-bom")];
    for (script, rule) in servers {
        let (code, stdout, stderr) = said(mcproof(folder.path(), &["check", "--json", "--", "sh", "-c", script]));
        assert_eq!(code, Some(1), "{stdout}{stderr}");
        let report: Value = serde_json::from_str(&stdout).unwrap();
        let is_broken = |ruling: &Value| ruling["rule"] == rule && ruling["judged"]["verdict"] == "broken";
        assert!(report["rules"].as_array().unwrap().iter().any(is_broken), "{rule}: {report}");
        // A wait that lasts until the connect timeout says so.
        assert!(!stdout.contains("within 30 s"), "{rule}: {}", report["gaps"]);
    }
}

#[test]
fn the_last_words_of_a_server_are_its_error_and_say_what_to_set() {
    let folder = tempfile::tempdir().unwrap();
    let script = "printf 'Error: API_KEY is not set\\n    at main.js:3\\n\\nNode.js v20\\n' >&2; exit 1";
    let (code, stdout, _) = said(mcproof(folder.path(), &["check", "--", "sh", "-c", script]));
    assert_eq!(code, Some(1), "{stdout}");
    assert!(
        stdout.contains("its last output: Error: API_KEY is not set") && stdout.contains("set `API_KEY` in the environment"),
        "{stdout}"
    );
}

#[test]
fn the_list_of_rules_is_whole_in_a_pipe_and_has_each_area_once() {
    let folder = tempfile::tempdir().unwrap();
    let list = said(mcproof(folder.path(), &["explain"])).1;
    let areas: Vec<&str> = list.lines().filter(|line| !line.is_empty() && !line.starts_with(' ')).collect();
    assert!(areas.iter().all(|area| areas.iter().filter(|other| other == &area).count() == 1), "{areas:?}");
    assert!(list.lines().all(|line| !line.ends_with('\u{2026}')), "{list}");
}

/// Responds to `initialize` with what it is given, and to everything else that it does not know what it has to.
const RESPONDER: &str = r#"
import json, sys
for line in sys.stdin.buffer:
    try:
        message = json.loads(line)
        method, id = message["method"], message["id"]
    except (ValueError, TypeError, KeyError):
        continue
    answer = {"initialize": sys.argv[1], "ping": '"result":{}'}.get(method, '"error":{"code":-32601,"message":"Method not found"}')
    print('{"jsonrpc":"2.0","id":%s,%s}' % (json.dumps(id), answer), flush=True)
"#;

#[test]
fn no_check_passes_unless_a_conversation_got_through_the_handshake_and_the_lists() {
    let info = r#""serverInfo":{"name":"s","version":"1"}"#;
    let result = |members: &str| format!(r#""result":{{{members}}}"#);
    let rows = [
        (result(&format!(r#""protocolVersion":"2025-11-25","capabilities":{{}},{info}"#)), true),
        (result(&format!(r#""capabilities":{{}},{info}"#)), false),
        (result(r#""protocolVersion":"2025-11-25","capabilities":{}"#), false),
        (result(&format!(r#""protocolVersion":"2025-11-25","capabilities":[],{info}"#)), false),
        (result(&format!(r#""protocolVersion":"2025-01-01","capabilities":{{}},{info}"#)), false),
        (result(&format!(r#""protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},{info}"#)), true),
        (r#""error":{"code":-32603,"message":"no"}"#.to_owned(), false),
    ];
    std::thread::scope(|scope| {
        for (response, is_green) in &rows {
            scope.spawn(move || {
                let folder = tempfile::tempdir().unwrap();
                std::fs::write(folder.path().join("server.py"), RESPONDER).unwrap();
                let (code, stdout, stderr) = said(mcproof(folder.path(), &["check", "--", "python3", "server.py", response]));
                assert_eq!(code == Some(0), *is_green, "{response}: exit {code:?}\n{stdout}{stderr}");
                assert!(*is_green || stdout.starts_with("error: "), "what is missing comes first: {response}\n{stdout}");
            });
        }
    });
}

#[test]
fn a_repeated_call_whose_effect_nothing_shows_is_no_success() {
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/orders.py");
    let server = server.to_str().unwrap();
    let rule = "lost-response-doubles-no-effect";
    let unseen = "shows the effect of the first call of `create_order`";
    let clock = "without a call, these change as well: tool `list_orders`";
    std::thread::scope(|scope| {
        for (shown_by, code, expected) in [
            ("a-list", Some(0), "tool `list_orders` changes again when the same call is sent again"),
            ("one-order", Some(0), "1 rule passed"),
            ("nothing", Some(1), unseen),
            ("a-clock", Some(1), clock),
            ("seconds", Some(1), unseen),
            ("a-counter", Some(1), clock),
            ("an-error", Some(1), unseen),
        ] {
            scope.spawn(move || {
                let folder = tempfile::tempdir().unwrap();
                let words = ["check", "--call", "create_order", "--lost-response", "--only", rule, "--", "python3", server, shown_by];
                let (found, stdout, stderr) = said(mcproof(folder.path(), &words));
                assert_eq!(found, code, "{shown_by}: {stdout}{stderr}");
                let told = in_one_line(&(stdout + &stderr));
                assert!(told.contains(expected), "{shown_by}: {told}");
            });
        }
    });
    // With all the other rules as well.
    let folder = tempfile::tempdir().unwrap();
    let words = ["check", "--call", "create_order", "--lost-response", "--", "python3", server, "nothing"];
    let (code, stdout, stderr) = said(mcproof(folder.path(), &words));
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    let told = in_one_line(&(stdout + &stderr));
    assert!(told.contains("whether a repeated call doubles its effect is not known of `create_order`"), "{told}");
}

/// A text as it was before its lines were wrapped.
fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_selection_of_which_nothing_was_judged_is_inconclusive() {
    let folder = tempfile::tempdir().unwrap();
    let server = ["--", env!("CARGO_BIN_EXE_mcproof"), "demo", "shop"];
    let (code, stdout, _) = said(mcproof(folder.path(), &[&["check", "--only", "cors"], &server[..]].concat()));
    assert_eq!(code, Some(1), "{stdout}");
    assert!(stdout.starts_with("error: inconclusive: none of the"), "{stdout}");
    let (code, stdout, _) = said(mcproof(folder.path(), &[&["check", "--only", "stdio", "--reporter", "agent"], &server[..]].concat()));
    assert!(code == Some(0) && stdout.starts_with("PASSED"), "{stdout}");
}
