//! The reports of real runs: each in its file, complete in form however the run ended, and none that stops another.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod peers;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use peers::root;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const SHOP: &str = "examples/quickstart/shop.mcproof.yaml";

fn mcproof(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcproof"));
    command
        .current_dir(folder)
        .env_remove("GITHUB_ACTIONS")
        .env_remove("GITHUB_STEP_SUMMARY")
        .env_remove("GITHUB_WORKSPACE")
        .env_remove("CI");
    command
}

/// A folder with the example shop, which counts wrongly if asked to.
fn shop(flag: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(root().join(SHOP)).unwrap().replace("demo shop", &format!("demo shop {flag}"));
    std::fs::write(folder.path().join("shop.mcproof.yaml"), text).unwrap();
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    mcproof(folder).arg("test").args(arguments).output().unwrap()
}

fn read(folder: &Path, file: &str) -> String {
    std::fs::read_to_string(folder.join(file)).unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn is_well_formed(file: &Path) -> bool {
    let xmllint = Command::new("xmllint").args(["--noout", "--nonet"]).arg(file).status();
    xmllint.expect("xmllint is installed: `apt-get install libxml2-utils`, or run `cargo xtask check`").success()
}

#[test]
fn every_reporter_writes_its_own_file_beside_the_terminal() {
    let folder = shop("--miscount");
    let files = ["agent=agent.txt", "json=events.jsonl", "junit=junit.xml", "tap=run.tap", "github=commands.txt", "html=report.html"];
    let reporters: Vec<&str> = files.iter().flat_map(|file| ["--reporter", file]).collect();
    let ran = run(folder.path(), &reporters);
    assert_eq!(ran.status.code(), Some(1), "{}", stderr(&ran));
    assert!(stdout(&ran).contains("✗ FAIL [stdio, http, sse]"), "{}", stdout(&ran));
    let agent = read(folder.path(), "agent.txt");
    assert!(agent.starts_with("FAILED: 6 passed, 3 failed") && agent.contains("available: expected 8, found 7"), "{agent}");
    assert!(
        agent.contains("repeat: mcproof test ./shop.mcproof.yaml --filter 'name(=an order reduces the stock) & transport(=stdio)'"),
        "{agent}"
    );
    assert_eq!(read(folder.path(), "run.tap").matches("\nnot ok ").count(), 3);
    let commands = read(folder.path(), "commands.txt");
    assert!(commands.starts_with("::error file=shop.mcproof.yaml,line=23,col=30,endColumn=31,title="), "{commands}");
    assert!(is_well_formed(&folder.path().join("junit.xml")));
    assert!(read(folder.path(), "report.html").ends_with("</html>\n"));
    assert_eq!(read(folder.path(), "events.jsonl").lines().filter(|line| line.contains("\"test-finished\"")).count(), 9);
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 7, "nothing else is left behind: {left:?}");
}

#[test]
fn every_line_of_json_fits_the_published_schema() {
    let schema = mcproof(&root()).args(["schema", "events"]).output().unwrap();
    let schema: Value = serde_json::from_slice(&schema.stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let folder = shop("--miscount");
    let dead = "server: { stdio: { command: [sh, -c, 'echo no >&2; exit 3'] } }\ntests: [{ name: a, steps: [tools] }]\n";
    std::fs::write(folder.path().join("dead.mcproof.yaml"), dead).unwrap();
    let parted = "server:\n  stdio: mcproof demo shop\n  http: { command: \"mcproof demo shop --miscount --http --port ${port}\", url: \"http://127.0.0.1:${port}/mcp\" }\n\
                  tests:\n  - name: parted\n    steps:\n      - { call: create_order, with: { product_id: PROD-123, quantity: 1 } }\n      \
                  - { call: check_inventory, with: { product_id: PROD-123 }, expect: { available: 9 } }\n";
    std::fs::write(folder.path().join("parted.mcproof.yaml"), parted).unwrap();
    let ran = run(folder.path(), &["--json", "--coverage"]);
    let lines: Vec<Value> = stdout(&ran).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        let flaws: Vec<String> = validator.iter_errors(line).map(|flaw| format!("{flaw} at {}", flaw.instance_path())).collect();
        assert!(flaws.is_empty(), "{flaws:?} in {line}");
    }
    for kind in ["run-started", "test-started", "test-finished", "transport-specific", "notice", "covered", "run-finished"] {
        assert!(lines.iter().any(|line| line["event"] == kind), "{kind} is among them");
    }
    // The schema is one that can fail.
    let mut flawed = lines.iter().find(|line| line["event"] == "test-finished").unwrap().clone();
    flawed["verdict"] = "green".into();
    assert!(!validator.is_valid(&flawed));
    assert!(!validator.is_valid(&serde_json::json!({ "event": "test-started" })));
}

#[test]
fn a_reporter_that_fails_stops_no_other() {
    let folder = shop("");
    // A device that takes nothing: the report fails while the run goes on.
    let ran = run(folder.path(), &["--reporter", "json=/dev/full", "--reporter", "junit=junit.xml"]);
    assert_eq!(ran.status.code(), Some(2), "{}", stderr(&ran));
    assert!(stderr(&ran).contains("`--reporter json=/dev/full` failed: No space left"), "{}", stderr(&ran));
    assert!(stdout(&ran).contains("9 passed") && is_well_formed(&folder.path().join("junit.xml")));
    // A verdict says more than a report that is missing.
    let failing = shop("--miscount");
    assert_eq!(run(failing.path(), &["--reporter", "html=/dev/full"]).status.code(), Some(1));
}

#[test]
fn a_report_may_go_to_a_folder_that_is_not_there_yet() {
    let folder = shop("");
    let ran = run(folder.path(), &["--reporter", "junit=reports/ci/junit.xml", "--reporter", "json=events/run.jsonl"]);
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    assert!(
        is_well_formed(&folder.path().join("reports/ci/junit.xml")) && read(folder.path(), "events/run.jsonl").contains("run-finished")
    );
}

#[test]
fn a_mistyped_path_costs_no_run() {
    let folder = shop("");
    for (arguments, said) in [
        (&["--reporter", "junit=/dev/null/folder/j.xml"][..], "cannot write"),
        (&["--reporter", "html=."], "cannot write"),
        (&["--reporter", "tap", "--json"], "two reporters write to stdout: `tap` and `json`"),
        (&["--reporter", "tap=x", "--reporter", "junit=x"], "two reporters write to x"),
        (&["--reporter", "tap=x", "--reporter", "json=./x"], "two reporters write to ./x"),
        (&["--reporter", "tap=new/x", "--reporter", "html=other/../new/x"], "two reporters write to other/../new/x"),
        (&["--reporter", "junit=shop.mcproof.yaml"], "`--reporter junit=shop.mcproof.yaml` would write over ./shop.mcproof.yaml"),
        (&["--reporter", "json=shop.mcproof.yaml"], "`--reporter json=shop.mcproof.yaml` would write over ./shop.mcproof.yaml"),
        (&["--audit", "audit.jsonl", "--reporter", "json=./audit.jsonl"], "would write over audit.jsonl, which this run uses"),
        (&["--reporter", "htlm=x"], "did you mean `html`?"),
    ] {
        let ran = run(folder.path(), arguments);
        assert_eq!((ran.status.code(), stdout(&ran).as_str()), (Some(2), ""), "{arguments:?}");
        assert!(stderr(&ran).contains(said), "{}", stderr(&ran));
    }
    assert!(read(folder.path(), "shop.mcproof.yaml").contains("demo shop"));
    let check = ["check", "--config", "mcp.json", "--server", "shop", "--reporter", "sarif=./mcp.json"];
    std::fs::write(folder.path().join("mcp.json"), r#"{ "mcpServers": { "shop": { "command": "mcproof", "args": ["demo", "shop"] } } }"#)
        .unwrap();
    let ran = mcproof(folder.path()).args(check).output().unwrap();
    assert_eq!(ran.status.code(), Some(2), "{}", stderr(&ran));
    assert!(stderr(&ran).contains("would write over mcp.json, which this run uses"), "{}", stderr(&ran));
    assert!(read(folder.path(), "mcp.json").contains("mcpServers"));
}

#[test]
fn a_report_is_written_over_only_when_the_new_one_is_whole() {
    let folder = shop("");
    std::fs::write(folder.path().join("kept.xml"), "old").unwrap();
    std::os::unix::fs::symlink("kept.xml", folder.path().join("junit.xml")).unwrap();
    assert_eq!(run(folder.path(), &["--reporter", "junit=junit.xml"]).status.code(), Some(0));
    assert!(folder.path().join("junit.xml").is_symlink() && read(folder.path(), "kept.xml").contains("<testsuites"));
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(folder.path().join("kept.xml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o600, 0o600);
    assert_eq!(mode & 0o111, 0);
}

#[test]
fn ctrl_c_leaves_reports_that_are_complete_in_form() {
    let folder = tempfile::tempdir().unwrap();
    let suite = "server: { stdio: mcproof demo shop }\ntests:\n  - { name: quick, steps: [tools] }\n";
    std::fs::write(folder.path().join("a.mcproof.yaml"), suite).unwrap();
    let silent = "server: { stdio: { command: [sh, -c, 'cat > /dev/null'] } }\ntests: [{ name: silent, steps: [tools] }]\n";
    std::fs::write(folder.path().join("b.mcproof.yaml"), silent).unwrap();
    let reporters = [
        "--reporter",
        "junit=junit.xml",
        "--reporter",
        "html=report.html",
        "--reporter",
        "tap=run.tap",
        "--reporter",
        "terminal=said.txt",
        "--reporter",
        "json",
    ];
    let mut mcproof = mcproof(folder.path()).args(["test", "--jobs", "2"]).args(reporters).stdout(Stdio::piped()).spawn().unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(mcproof.stdout.take().unwrap()));
    let mut lines = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    // The quick one is done, and the silent one runs.
    assert!(lines.any(|line| line["event"] == "test-finished"));
    kill(Pid::from_raw(i32::try_from(mcproof.id()).unwrap()), Signal::SIGINT).unwrap();
    let last = lines.last().unwrap();
    assert_eq!((&last["event"], &last["counts"]["canceled"]), (&"run-finished".into(), &1.into()), "{last}");
    assert_eq!(mcproof.wait().unwrap().code(), Some(130));
    assert!(is_well_formed(&folder.path().join("junit.xml")));
    assert!(read(folder.path(), "junit.xml").contains("the run was stopped before this test was done"));
    assert!(read(folder.path(), "run.tap").contains("not ok 2 - "));
    assert!(read(folder.path(), "said.txt").contains("silent (it was running)"), "{}", read(folder.path(), "said.txt"));
    assert!(read(folder.path(), "report.html").ends_with("</html>\n"));
}

#[test]
fn on_github_a_server_cannot_give_commands() {
    let folder = tempfile::tempdir().unwrap();
    let server = "printf '%s\\n' '::error::forged by the server' >&2; exit 3";
    let suite = format!("server: {{ stdio: {{ command: [sh, -c, {server:?}] }} }}\ntests: [{{ name: a, steps: [tools: [a]] }}]\n");
    let suites = folder.path().join("suites");
    std::fs::create_dir(&suites).unwrap();
    std::fs::write(suites.join("a.mcproof.yaml"), suite).unwrap();
    let summary = folder.path().join("summary.md");
    std::fs::write(&summary, "before\n").unwrap();
    let ran = mcproof(&suites)
        .arg("test")
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_WORKSPACE", folder.path())
        .env("GITHUB_STEP_SUMMARY", &summary)
        .output()
        .unwrap();
    let said = stdout(&ran);
    let (before, rest) = said.split_once("::stop-commands::").expect("commands are paused");
    let (word, rest) = rest.split_once('\n').unwrap();
    let (paused, after) = rest.split_once(&format!("::{word}::\n")).expect("the pause ends");
    assert!(!before.contains("forged") && paused.contains("stderr  ::error::forged"), "{said}");
    assert!(after.starts_with("::error file=suites/a.mcproof.yaml,line=1,"), "{after}");
    assert_eq!(after.lines().count(), 1, "{after}");
    let summary = std::fs::read_to_string(&summary).unwrap();
    assert!(summary.starts_with("before\n## mcproof: 0 passed, 1 failed"), "{summary}");
}

#[test]
fn on_azure_and_teamcity_a_server_cannot_give_commands() {
    let folder = tempfile::tempdir().unwrap();
    let forged = "a ##vso[task.setvariable variable=PATH]/evil ##[error]b ##teamcity[c] d";
    let server = format!("echo '{forged}' >&2; read -r x; echo '{forged}'; exit 3");
    let suite = format!(
        "server: {{ stdio: {{ command: [sh, -c, {server:?}] }} }}\ntests: [{{ name: '{forged}', steps: [tools: ['{forged}']] }}]\n"
    );
    std::fs::write(folder.path().join("a.mcproof.yaml"), suite).unwrap();
    let told = |variable: Option<&str>, arguments: &[&str]| {
        let mut command = mcproof(folder.path());
        command.env_remove("TF_BUILD").env_remove("TEAMCITY_VERSION").args(arguments);
        let ran = command.envs(variable.map(|name| (name, "True"))).output().unwrap();
        format!("{}{}", stdout(&ran), stderr(&ran))
    };
    let shell = ["--", "sh", "-c", server.as_str()];
    let (tools, probe) = ([&["tools", "-v"][..], &shell].concat(), [&["probe"][..], &shell].concat());
    for arguments in [
        &["test"][..],
        &["test", "-v"],
        &["test", "--json"],
        &["test", "--reporter", "agent"],
        &["test", "--reporter", "junit"],
        &["plan"],
        &["plan", "--json"],
        &tools[..],
        &probe[..],
    ] {
        for system in ["TF_BUILD", "TEAMCITY_VERSION"] {
            let said = told(Some(system), arguments);
            let obeyed = ["##vso[", "##[", "##teamcity["].into_iter().find(|command| said.contains(command));
            assert!(obeyed.is_none() && said.contains("#\\u0023vso["), "{system} {arguments:?} {obeyed:?}: {said}");
        }
    }
    assert!(told(None, &["test"]).contains("##vso[task"));
}

#[test]
fn coverage_names_what_no_test_used() {
    let folder = shop("");
    let ran = run(folder.path(), &["--coverage"]);
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    let said = stdout(&ran);
    assert!(said.contains("coverage: ./shop.mcproof.yaml › server"), "{said}");
    let unused = said.split("coverage: ").nth(1).unwrap();
    assert!(unused.contains("unused error paths") && !unused.contains("unused tool arguments  check_inventory"), "{said}");
    // A server that nobody reached has no coverage, which is said.
    let dead = "server: { stdio: { command: [sh, -c, 'exit 3'] } }\ntests: [{ name: a, steps: [tools] }]\n";
    std::fs::write(folder.path().join("shop.mcproof.yaml"), dead).unwrap();
    assert!(stdout(&run(folder.path(), &["--coverage"])).contains("the coverage of `server` is unknown, because no test reached it"));
}
