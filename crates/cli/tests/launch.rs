//! `--launch host`: servers that are started as by a desktop host, by the real binary.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a test adds to the PATH that it was given")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    Command::new(MCPROOF).args(arguments).current_dir(folder).env("PATH", path).env("OF_THIS_SHELL", "here").output().unwrap()
}

#[track_caller]
fn check(found: &Output, code: i32, said: &[&str]) -> String {
    let text = String::from_utf8_lossy(&[found.stdout.as_slice(), &found.stderr].concat()).into_owned();
    assert_eq!(found.status.code(), Some(code), "{text}");
    for part in said {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    text
}

#[test]
fn a_server_sees_what_a_host_gives() {
    let folder = tempfile::tempdir().unwrap();
    let script = "pwd >&2; echo shell:$OF_THIS_SHELL key:$API_KEY home:$HOME >&2; exit 1";
    let ours = check(&run(folder.path(), &["tools", "--", "sh", "-c", script]), 3, &["shell:here key: home:/"]);
    assert!(ours.contains(&format!("{}", folder.path().canonicalize().unwrap().display())), "{ours}");
    let theirs = check(
        &run(folder.path(), &["tools", "--launch", "host", "-e", "API_KEY=k1", "--", "sh", "-c", script]),
        3,
        &["shell: key:k1 home:/"],
    );
    assert!(theirs.contains("stderr  /\n"), "{theirs}");
    check(&run(folder.path(), &["tools", "--launch", "host", "--", MCPROOF, "demo", "shop"]), 0, &["check_inventory"]);
}

#[test]
fn what_only_this_shell_finds_is_named_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let runner = folder.path().join("my-runner");
    std::fs::write(&runner, format!("#!/bin/sh\nexec {MCPROOF} demo shop\n")).unwrap();
    std::fs::set_permissions(&runner, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(folder.path().join("server.sh"), format!("exec {MCPROOF} demo shop\n")).unwrap();
    let run = |arguments: &[&str]| run(folder.path(), arguments);
    check(&run(&["tools", "--", "my-runner"]), 0, &["check_inventory"]);
    let place = format!("it is at {}: use this path", runner.display());
    check(&run(&["tools", "--launch", "host", "--", "my-runner"]), 3, &["`my-runner` is not on the PATH of a desktop host", &place]);
    check(&run(&["tools", "--launch", "host", "--", runner.to_str().unwrap()]), 0, &["check_inventory"]);
    let path = format!("PATH={}:/bin", folder.path().display());
    check(&run(&["tools", "--launch", "host", "-e", &path, "--", "my-runner"]), 0, &["check_inventory"]);
    check(&run(&["tools", "--", "sh", "server.sh"]), 0, &["check_inventory"]);
    for command in ["tools", "probe"] {
        check(&run(&[command, "--launch", "host", "--", "sh", "server.sh"]), 3, &["`server.sh` is not found from /"]);
    }
    check(&run(&["tools", "--launch", "host", "--", "./my-runner"]), 3, &["use its absolute path"]);
    check(&run(&["tools", "--launch", "host", "http://127.0.0.1:1/mcp"]), 2, &["`--launch` requires a command"]);
}

#[test]
fn a_command_of_a_configuration_runs_where_the_host_would_run_it() {
    let folder = tempfile::tempdir().unwrap();
    let script = "pwd >&2; exit 1";
    let config = format!(
        r#"{{"mcpServers":{{"plain":{{"command":"sh","args":["-c","{script}"]}},"chosen":{{"command":"sh","args":["-c","{script}"],"cwd":"/usr"}}}}}}"#
    );
    std::fs::write(folder.path().join("mcp.json"), config).unwrap();
    check(&run(folder.path(), &["tools", "plain", "--launch", "host"]), 3, &["stderr  /\n"]);
    check(&run(folder.path(), &["tools", "chosen", "--launch", "host"]), 3, &["stderr  /usr\n"]);
}

#[test]
fn suites_start_their_servers_so_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let suite = "server: { stdio: my-runner }\ntests:\n  - name: lists\n    steps:\n      - { call: check_inventory, with: { product_id: PROD-123 } }\n";
    std::fs::write(folder.path().join("one.mcproof.yaml"), suite).unwrap();
    let runner = folder.path().join("my-runner");
    std::fs::write(&runner, format!("#!/bin/sh\nexec {MCPROOF} demo shop\n")).unwrap();
    std::fs::set_permissions(&runner, std::fs::Permissions::from_mode(0o755)).unwrap();
    check(&run(folder.path(), &["test"]), 0, &["1 passed"]);
    check(&run(folder.path(), &["test", "--launch", "host"]), 3, &["`my-runner` is not on the PATH of a desktop host"]);
    check(&run(folder.path(), &["test", "--launch", "host", "--", runner.to_str().unwrap()]), 0, &["1 passed"]);
}

#[test]
fn a_check_for_hosts_names_what_only_this_shell_provides() {
    let folder = tempfile::tempdir().unwrap();
    let runner = folder.path().join("my-runner");
    let script =
        format!("#!/bin/sh\ntest \"$OF_THIS_SHELL\" || {{ echo OF_THIS_SHELL is not set >&2; exit 1; }}\nexec {MCPROOF} demo shop\n");
    std::fs::write(&runner, script).unwrap();
    std::fs::set_permissions(&runner, std::fs::Permissions::from_mode(0o755)).unwrap();
    let place = runner.to_str().unwrap();
    let run = |command: &[&str]| {
        let all = [&["check", "--only", "host-starts-server", "--strict"], command].concat();
        let found = run(folder.path(), &all);
        (found.status.code(), String::from_utf8_lossy(&[found.stdout, found.stderr].concat()).into_owned())
    };
    let broken: [(&[&str], &str); 3] = [
        (&["--hosts", "--", "my-runner"], "`my-runner` is not on the PATH of a desktop host"),
        (&["--hosts", "--", "./my-runner"], "use its absolute path"),
        (&["--hosts", "--", place], "its stderr names `OF_THIS_SHELL`, which hosts do not pass to servers"),
    ];
    for (command, expected) in broken {
        let (code, said) = run(command);
        // Long sentences are broken at words.
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(code == Some(1) && said.contains("host-starts-server") && said.contains(expected), "{command:?}: {code:?}: {said}");
    }
    let (code, said) = run(&["-e", "OF_THIS_SHELL=1", "--", place]);
    assert!(code == Some(0) && said.contains("1 rules passed") || said.contains("1 rule passed"), "{code:?}: {said}");
}

#[test]
fn rules_about_hosts_are_judged_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let check_shop = |arguments: &[&str]| {
        let found = run(folder.path(), &[&["check", "--json", "--timeout", "5s"], arguments, &["--", MCPROOF, "demo", "shop"]].concat());
        let report: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
        let rulings = report["rules"].as_array().unwrap().iter().filter(|ruling| ruling["area"] == "hosts").count();
        (rulings, String::from_utf8(found.stderr).unwrap())
    };
    let (without, said) = check_shop(&["--only", "tools"]);
    assert!(without == 0 && !said.contains("tokens"), "{said}");
    let (with, said) = check_shop(&["--only", "tools", "--hosts"]);
    assert!(with > 5, "{with}");
    assert!(said.contains(" tools use about ") && said.contains("(estimate: "), "{said}");
}
