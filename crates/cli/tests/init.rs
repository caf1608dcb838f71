//! `mcproof init`: what it writes passes at once, on servers that others wrote and on one that is as odd as can be.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod peers;

use peers::{Peer, root};
use saphyr::{LoadableYamlNode as _, Yaml};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A command in this folder, away from what the machine that runs the tests has set.
fn mcproof(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcproof"));
    command.env_remove("GITHUB_ACTIONS").env_remove("GITHUB_STEP_SUMMARY").current_dir(folder);
    command
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The one suite in a folder, and its text.
fn suite(folder: &Path) -> (PathBuf, String) {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let suites: Vec<PathBuf> = files.filter(|path| path.to_string_lossy().ends_with(".mcproof.yaml")).collect();
    assert_eq!(suites.len(), 1, "{suites:?}");
    let text = std::fs::read_to_string(&suites[0]).unwrap();
    (suites[0].clone(), text)
}

/// Runs what was written, without an edit: all of it passes, nothing is odd, and the lock is kept. Gives the number of tests.
fn passes(folder: &Path, env: &[(String, String)]) -> usize {
    let variables = || env.iter().map(|(name, value)| (name, value));
    let output = mcproof(folder).args(["test", "--reporter", "json=run.json"]).envs(variables()).output().unwrap();
    let text = said(&output);
    assert!(output.status.success() && !text.contains("warning"), "{text}\n{}", suite(folder).1);
    let output = mcproof(folder).args(["lock", "--verify"]).envs(variables()).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let events = std::fs::read_to_string(folder.join("run.json")).unwrap();
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["event"] == "test-finished").inspect(|event| assert_eq!(event["verdict"], "pass", "{event}")).count()
}

/// Writes for a peer, runs what was written, and gives the text of the suite.
fn check(name: &str, flags: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let start = Peer::named(name).start("stdio");
    let mut init = mcproof(folder.path());
    init.arg("init").args(flags).args(start.cwd.iter().flat_map(|cwd| ["--cwd", cwd]));
    init.args(start.env.iter().flat_map(|(name, value)| ["-e".to_owned(), format!("{name}={value}")]));
    let output = init.arg("--").args(&start.command).output().unwrap();
    assert!(output.status.success(), "{name}: {}", said(&output));
    let tests = passes(folder.path(), &start.env);
    let text = suite(folder.path()).1;
    assert!(tests >= 3 && text.matches("  - name: ").count() == tests, "{name}: {tests} tests\n{text}");
    text
}

#[test]
fn node_servers_pass_at_once() {
    let text = check("everything", &[]);
    for part in [
        "# yaml-language-server: $schema=mcproof.schema.json\n",
        "with: { message: mcproof } # review\n        expect: \"Echo: mcproof\"",
        "name: get-sum requires a\n",
        "with: { a: 3, b: 5 } # review",
        "- call: mcproof-no-such-thing\n        tool_error: true",
        "- name: an unknown resource fails\n",
        "- prompt: args-prompt\n        with: { city: mcproof } # review",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let text = check("filesystem", &[]);
    assert!(text.contains("- call: read_text_file\n        with: { path: ") && text.contains("name: read_text_file responds"), "{text}");
    assert!(text.contains("not called, because it does not declare itself read-only\n  - name: write_file is listed"), "{text}");
    check("memory", &[]);
    check("kubernetes", &[]);
}

#[test]
fn python_servers_pass_at_once() {
    let text = check("time", &[]);
    // Today's date is no expectation, and neither is what follows from it.
    for part in
        ["datetime: { $datetime: true }", "day_of_week: { $type: string }", "timezone: America/New_York", "name: convert_time responds"]
    {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    check("sqlite", &[]);
    let text = check("fastmcp", &["--call", "echo"]);
    assert!(text.contains("- call: echo\n        with: { message: mcproof } # review\n        expect: { result: mcproof }\n"), "{text}");
}

#[test]
fn tools_that_are_named_one_by_one_are_told_to_stand_together() {
    let folder = tempfile::tempdir().unwrap();
    let output = mcproof(folder.path()).args(["init", "--call", "a", "--call", "b", "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("separate the names of tools with commas"), "{}", said(&output));
}

#[test]
fn a_mistyped_tool_is_told_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let binary = env!("CARGO_BIN_EXE_mcproof");
    let output = mcproof(folder.path()).args(["init", "--call", "creat_issue", "--", binary, "demo", "tracker"]).output().unwrap();
    let text = said(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("--call: the server has no tool `creat_issue`: did you mean `create_issue`?"), "{text}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// The demo servers are made with rmcp.
#[test]
fn a_server_is_reached_as_it_was_when_the_suite_was_written() {
    let binary = env!("CARGO_BIN_EXE_mcproof");
    let written = |transport: &str, url: &str, flag: &str| {
        let folder = tempfile::tempdir().unwrap();
        let init = [
            "init",
            url,
            "--transport",
            transport,
            "--call",
            "all,create_issue",
            "--",
            binary,
            "demo",
            "tracker",
            flag,
            "--port",
            "${port}",
        ];
        let output = mcproof(folder.path()).args(init).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        assert!(passes(folder.path(), &[]) > 5);
        let text = suite(folder.path()).1;
        assert!(text.contains(&format!("  {transport}:\n")) && text.contains(&format!("url: \"{url}\"")), "{text}");
        text
    };
    let text = written("http", "http://127.0.0.1:${port}/mcp", "--http");
    assert!(text.contains("- call: create_issue\n") && text.contains("isolation: file"), "{text}");
    written("sse", "http://127.0.0.1:${port}/sse", "--sse");
}

fn many(count: usize) -> [String; 3] {
    let script = root().join("crates/cli/tests/servers/many.py");
    ["python3".to_owned(), script.display().to_string(), count.to_string()]
}

fn init_many(folder: &Path, count: usize, flags: &[&str]) -> Output {
    mcproof(folder).arg("init").args(flags).arg("--").args(many(count)).output().unwrap()
}

#[test]
fn two_hundred_tools_and_the_oddest_names_and_answers_pass_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let output = init_many(folder.path(), 200, &[]);
    assert!(output.status.success(), "{}", said(&output));
    let (path, text) = suite(folder.path());
    assert_eq!(path.file_name().unwrap().to_str(), Some("many-servers-env-home.mcproof.yaml"));
    // Each of the two hundred twice: as it answers, and without what it demands.
    assert!(passes(folder.path(), &[]) > 400, "{text}");
    for part in [
        "- call: tool-199\n        with: { \"n\": 3 } # review\n        expect: tool-199 says 3\n",
        "- call: counted\n        expect: { calls: 1, process: { $type: number }, steady: true }\n",
        "expect: { at: { $datetime: true }, day: { $type: string }, id: { $uuid: true } }\n",
        "- call: environment\n        expect: { $type: object }\n",
        "does not match its `outputSchema`",
        "- call: \"$${env.HOME}\"\n",
        "- call: pattern\n        expect: { $type: string }\n",
        "name: no-content is listed",
        "name: asks-for-input is listed",
        "name: refuses rejects arguments that it cannot use",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "what would steer a terminal is escaped");
}

fn files(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() { files.extend(self::files(&entry)) } else { files.push(entry.display().to_string()) }
    }
    files.sort();
    files
}

#[test]
fn credentials_and_settings_stand_in_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let given = [("SOME_TOKEN", "hunter2-of-init"), ("ROOM", "room-101-of-init")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut init = mcproof(folder.path());
    init.arg("init").args(given.iter().flat_map(|(name, value)| ["-e".to_owned(), format!("{name}={value}")]));
    // What the shell has set is not written down either.
    let output = init.env("NOBODYS_BUSINESS", "swordfish-of-init").arg("--").args(many(1)).output().unwrap();
    assert!(output.status.success() && said(&output).contains("set SOME_TOKEN, ROOM before `mcproof test`"), "{}", said(&output));
    for file in files(folder.path()) {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains("-of-init"), "{file}:\n{text}");
    }
    let text = suite(folder.path()).1;
    assert!(text.contains("env: { SOME_TOKEN: \"${env.SOME_TOKEN}\", ROOM: \"${env.ROOM}\" }"), "{text}");
    let workflow = std::fs::read_to_string(folder.path().join(".github/workflows/mcproof.yml")).unwrap();
    assert!(workflow.contains("      SOME_TOKEN: ${{ secrets.SOME_TOKEN }}\n"), "{workflow}");
    passes(folder.path(), &given);
}

#[test]
fn nothing_is_overwritten_without_being_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let hooks = folder.path().join(".pre-commit-config.yaml");
    std::fs::write(&hooks, "repos: []\n").unwrap();
    let output = init_many(folder.path(), 1, &[]);
    assert!(output.status.success(), "{}", said(&output));
    let written = [
        ".github/workflows/mcproof.yml",
        ".gitlab/mcproof.yml",
        "many-servers-env-home.mcproof.yaml",
        "mcproof.Dockerfile",
        "mcproof.lock",
        "mcproof.pre-commit.yaml",
        "mcproof.schema.json",
    ];
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(told.lines().count(), written.len(), "{told}");
    for file in written {
        assert!(folder.path().join(file).is_file() && told.contains(&format!("{file}: ")), "{file}: {told}");
    }
    assert_eq!(std::fs::read_to_string(&hooks).unwrap(), "repos: []\n", "the hooks of others stay");

    let (path, text) = suite(folder.path());
    std::fs::write(&path, "# edited\n").unwrap();
    let output = init_many(folder.path(), 1, &[]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let all = "many-servers-env-home.mcproof.yaml, mcproof.schema.json, mcproof.lock, .github/workflows/mcproof.yml, ";
    assert!(said(&output).contains(all) && said(&output).contains(" already exist; nothing was written"), "{}", said(&output));
    assert_eq!(suite(folder.path()).1, "# edited\n");
    // What is missing is added, and what was edited stays.
    let workflow = folder.path().join(".github/workflows/mcproof.yml");
    std::fs::remove_file(&workflow).unwrap();
    let output = init_many(folder.path(), 1, &[]);
    assert!(output.status.success(), "{}", said(&output));
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("many-servers-env-home.mcproof.yaml: kept as it is") && workflow.is_file(), "{told}");
    assert_eq!(suite(folder.path()).1, "# edited\n");
    assert!(init_many(folder.path(), 1, &["--force"]).status.success());
    assert_eq!(suite(folder.path()).1, text, "the same server gives the same suite");
    // A folder that cannot be written to is told before the server is started.
    std::fs::write(folder.path().join("blocked"), "").unwrap();
    let output = init_many(folder.path(), 1, &["--dir", "blocked/deep"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("choose another directory with --dir") && !said(&output).contains("exploring"), "{}", said(&output));
    std::fs::remove_file(folder.path().join("blocked")).unwrap();
    // Another folder has nothing in the way.
    let output = init_many(folder.path(), 1, &["--dir", "other/place"]);
    assert!(output.status.success(), "{}", said(&output));
    let other = suite(&folder.path().join("other/place")).1;
    assert!(other.contains("cwd: \"../..\""), "the server runs where it ran: {other}");
    assert_eq!(std::fs::read_to_string(&hooks).unwrap(), "repos: []\n");
    passes(&folder.path().join("other/place"), &[]);
}

/// What CI systems read is YAML to them, and to us.
#[test]
fn the_forms_are_whole() {
    let folder: TempDir = tempfile::tempdir().unwrap();
    assert!(init_many(folder.path(), 0, &["-e", "SOME_TOKEN=x"]).status.success());
    let read = |file: &str| std::fs::read_to_string(folder.path().join(file)).unwrap();
    let workflow = read(".github/workflows/mcproof.yml");
    let docker = read("mcproof.Dockerfile");
    assert!(workflow.contains("mcproof lock --verify") && !workflow.contains("# secrets"), "{workflow}");
    assert!(docker.starts_with("# syntax=docker/dockerfile:1\n"), "{docker}");
    assert!(docker.contains("COPY many-servers-env-home.mcproof.yaml ./\n"), "{docker}");
    assert!(docker.contains("RUN --mount=type=secret,id=SOME_TOKEN,env=SOME_TOKEN /opt/mcproof/bin/mcproof test many-servers"), "{docker}");
    // Nothing says how the server is installed: its language is there, and a place for the rest.
    let job = read(".gitlab/mcproof.yml");
    for form in [&workflow, &job] {
        assert!(form.contains("# review: install here") && !form.contains("# install\n"), "{form}");
        assert_eq!(Yaml::load_from_str(form).unwrap().len(), 1, "{form}");
    }
    assert!(workflow.contains("actions/setup-python@v5") && job.contains("  image: python:3\n"), "{workflow}\n{job}");
    let schema: Value = serde_json::from_str(&read("mcproof.schema.json")).unwrap();
    assert!(jsonschema::validator_for(&schema).is_ok());
}

/// A fresh clone has what is in the repository, and no more.
#[test]
fn the_forms_install_what_the_project_names() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("requirements.txt"), "mcp\n").unwrap();
    let output = init_many(folder.path(), 0, &[]);
    assert!(output.status.success(), "{}", said(&output));
    let note = "for CI: the jobs install the server with `pip install -r requirements.txt`; set the variable MCPROOF_REPOSITORY";
    assert!(said(&output).contains(note), "{}", said(&output));
    for (form, step) in [(".github/workflows/mcproof.yml", "          pip install"), (".gitlab/mcproof.yml", "    - pip install")] {
        let text = std::fs::read_to_string(folder.path().join(form)).unwrap();
        assert!(text.contains(&format!("{step} -r requirements.txt\n")) && !text.contains("review"), "{text}");
        assert_eq!(Yaml::load_from_str(&text).unwrap().len(), 1, "{text}");
    }
}

#[test]
fn in_a_subfolder_the_forms_are_in_the_root_of_the_repository() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("packages/My server");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::create_dir(root.path().join(".git")).unwrap();
    std::fs::write(root.path().join(".git/HEAD"), "ref: refs/heads/trunk\n").unwrap();
    std::fs::write(folder.join("requirements.txt"), "mcp\n").unwrap();
    let output = init_many(&folder, 0, &[]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("the root of the repository, and run in packages/My server; "), "{}", said(&output));
    assert!(!folder.join(".github").exists() && !folder.join(".gitlab").exists() && !folder.join(".pre-commit-config.yaml").exists());
    let read = |file: &str| std::fs::read_to_string(root.path().join(file)).unwrap();
    let workflow = read(".github/workflows/mcproof-packages-my-server.yml");
    for part in [
        "    branches: [trunk]\n",
        "    defaults: { run: { working-directory: packages/My server } }\n",
        "            packages/My server/mcproof.xml\n",
        "          name: mcproof-packages-my-server\n",
    ] {
        assert!(workflow.contains(part), "{part:?} is not in\n{workflow}");
    }
    let job = read(".gitlab/mcproof-packages-my-server.yml");
    for part in
        ["include: { local: .gitlab/mcproof-packages-my-server.yml }", "\nmcproof-packages-my-server:\n", "    - cd 'packages/My server'\n"]
    {
        assert!(job.replace('"', "").contains(part), "{part:?} is not in\n{job}");
    }
    let hook = read(".pre-commit-config.yaml");
    assert!(hook.replace('"', "").contains("entry: mcproof test 'packages/My server'\n"), "{hook}");
    for form in [workflow, job, hook] {
        assert!(!form.contains("__"), "{form}");
        assert_eq!(Yaml::load_from_str(&form).unwrap().len(), 1, "{form}");
    }
    // Another package of the repository has jobs of its own, and adds its hook to those that are there.
    let other = root.path().join("other");
    std::fs::create_dir(&other).unwrap();
    assert!(init_many(&other, 0, &[]).status.success());
    assert!(root.path().join(".github/workflows/mcproof-other.yml").is_file() && other.join("mcproof.pre-commit.yaml").is_file());
}

#[test]
fn a_fault_of_the_server_is_accepted_in_the_suite_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
import sys, json
print("Server ready", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    results = {"tools/list": {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}}
    results["initialize"] = {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    method, answer = message["method"], {"jsonrpc": "2.0", "id": message["id"]}
    error = {"code": -32602 if method == "tools/call" else -32601, "message": "unknown"}
    print(json.dumps({**answer, "result": results[method]} if method in results else {**answer, "error": error}), flush=True)
"#;
    std::fs::write(folder.path().join("s.py"), script).unwrap();
    let output = mcproof(folder.path()).args(["init", "--", "python3", "s.py"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("remove the key when the server is fixed: the server wrote a line"), "{}", said(&output));
    let (_, text) = suite(folder.path());
    assert!(text.contains("\n# review: each test would fail") && text.contains("`Server ready`\n"), "{text}");
    assert!(text.contains("\nallow_faults: true\n\ntests:\n"), "{text}");
    let output = mcproof(folder.path()).arg("test").output().unwrap();
    assert!(output.status.success() && said(&output).contains("warning"), "{}", said(&output));
}

#[test]
fn a_server_that_is_not_there_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let output = mcproof(folder.path()).args(["init", "--", "mcproof-no-such-program"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert_eq!(files(folder.path()), Vec::<String>::new());
}

#[test]
fn a_list_that_is_not_valid_keeps_nothing_else_from_being_tested() {
    let folder = tempfile::tempdir().unwrap();
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/natural.py");
    let output = mcproof(folder.path()).args(["init", "--", "python3"]).arg(server).arg("templates-are-missing").output().unwrap();
    // A lock without one of the lists would verify nothing about it.
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    for part in ["skipped mcproof.lock", "a list of the server is not valid"] {
        assert!(said(&output).contains(part), "{part}: {}", said(&output));
    }
    let tested = mcproof(folder.path()).arg("test").output().unwrap();
    assert!(tested.status.success() && suite(folder.path()).1.contains("find"), "{}", said(&tested));
}

#[test]
fn a_contract_that_differs_from_session_to_session_is_told_and_not_locked_by_init() {
    let folder = tempfile::tempdir().unwrap();
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/natural.py");
    let ran = |verb: &str, mistake: &str| mcproof(folder.path()).args([verb, "--", "python3"]).arg(&server).arg(mistake).output().unwrap();
    let told = "the contract is not the same in each session: tool `find`: ";
    let output = ran("init", "changes-its-texts");
    assert!(output.status.success() && said(&output).contains(told), "{}", said(&output));
    assert!(said(&output).contains("skipped mcproof.lock") && !folder.path().join("mcproof.lock").exists(), "{}", said(&output));
    let output = ran("lock", "changes-its-texts");
    assert!(output.status.success() && said(&output).contains(told), "{}", said(&output));
    std::fs::remove_file(folder.path().join("mcproof.lock")).unwrap();
    let output = ran("lock", "nothing");
    assert!(output.status.success() && !said(&output).contains("not the same"), "{}", said(&output));
}
