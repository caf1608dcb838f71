//! What a new user meets first: `mcproof` alone, `doctor`, and completions.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use rexpect::session::spawn_command;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

fn mcproof(folder: &Path) -> Command {
    let mut mcproof = Command::new(env!("CARGO_BIN_EXE_mcproof"));
    mcproof.current_dir(folder).env("NO_COLOR", "1").env("XDG_STATE_HOME", folder.join("state"));
    mcproof
}

/// What a terminal shows of `mcproof` without arguments.
fn screen(folder: &Path) -> String {
    spawn_command(mcproof(folder), Some(60_000)).unwrap().exp_eof().unwrap().replace('\r', "")
}

#[track_caller]
fn shows(files: &[(&str, &str)], lines: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let screen = screen(folder.path());
    for line in lines {
        assert!(screen.lines().any(|shown| shown.trim_start().starts_with(line)), "no line `{line}` in\n{screen}");
    }
}

#[test]
fn without_arguments_it_says_what_to_type_in_this_folder() {
    shows(&[], &["mcproof tools -- node server.js", "mcproof check -- mcproof demo shop"]);
    shows(&[("mcp.json", r#"{"mcpServers":{"shop":{"command":"true"}}}"#)], &["From mcp.json:", "mcproof tools shop", "mcproof init shop"]);
    shows(&[(".cursor/mcp.json", r#"{"mcpServers":{"shop":{"command":"true"}}}"#)], &["From .cursor/mcp.json:", "mcproof tools shop"]);
    let package = r#"{"dependencies":{"@modelcontextprotocol/sdk":"1.29.0"},"bin":"dist/index.js","scripts":{"build":"tsc"}}"#;
    let built = ["From package.json, once `npm run build` has made dist/index.js:", "mcproof check -- node dist/index.js"];
    shows(&[("package.json", package)], &built);
    // What `npm init` writes names a file that is not there.
    let fresh = r#"{"dependencies":{"@modelcontextprotocol/sdk":"1"},"main":"index.js"}"#;
    shows(&[("package.json", fresh)], &["mcproof tools -- node server.js"]);
    shows(&[("requirements.txt", "mcp>=1\n"), ("server.py", "")], &["From requirements.txt:", "mcproof tools -- python server.py"]);
    let project = r#"<Project><PackageReference Include="ModelContextProtocol" Version="1.0.0" /></Project>"#;
    shows(&[("Shop.csproj", project)], &["From Shop.csproj:", "mcproof tools -- dotnet run --project Shop.csproj"]);
    let pom = "<groupId>io.modelcontextprotocol.sdk</groupId>";
    shows(&[("pom.xml", pom), ("target/shop-1.jar", "")], &["From pom.xml:", "mcproof tools -- java -jar target/shop-1.jar"]);
    shows(&[("pom.xml", pom)], &["mcproof tools -- node server.js"]);
    let project = "[project]\nname = \"a\"\ndependencies = [\"fastmcp>=3\"]\n";
    shows(&[("pyproject.toml", project), ("server.py", "")], &["From pyproject.toml:", "mcproof tools -- python server.py"]);
    shows(&[("Cargo.toml", "[dependencies]\nrmcp = \"1\"\n")], &["mcproof tools -- cargo run --quiet"]);
    shows(&[("go.mod", "module a\nrequire github.com/mark3labs/mcp-go v0.40.0\n")], &["mcproof tools -- go run ."]);
    shows(&[("shop.mcproof.yaml", "")], &["This folder has test suites:", "mcproof test"]);
    // Files that are none of this, or broken.
    shows(&[("mcp.json", "{"), ("package.json", "[]"), ("pyproject.toml", "["), ("Cargo.toml", "=")], &["mcproof tools -- node server.js"]);
}

#[test]
fn each_page_is_listed_by_a_name_that_opens_it() {
    let folder = tempfile::tempdir().unwrap();
    let help = |words: &[&str]| {
        let ran = mcproof(folder.path()).arg("help").args(words).output().unwrap();
        assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    };
    let list = help(&[]);
    let pages = list.lines().skip_while(|line| *line != "Tutorials").take_while(|line| *line != "Commands");
    for line in pages.filter(|line| line.starts_with("  ")) {
        let (name, title) = line.trim().split_once(' ').unwrap();
        let shown = help(&[name]);
        assert_eq!(shown.lines().next().unwrap().replace('`', ""), title.trim().replace('`', ""), "mcproof help {name}");
    }
    assert!(list.contains("\n  guide/check ") && list.contains("\n  glossary "), "{list}");
    assert!(help(&["rules"]).contains("stdio-only-messages-on-stdout"));
}

#[test]
fn a_search_finds_pages_flags_and_rules() {
    let folder = tempfile::tempdir().unwrap();
    for (words, expected) in [
        ("suppress a rule", "mcproof help guide/check  "),
        ("--lost-response", "mcproof check --help  "),
        ("confusable", "mcproof explain tool-names-are-not-confusable  "),
    ] {
        let ran = mcproof(folder.path()).args(["help", "-s", words]).output().unwrap();
        let text = String::from_utf8(ran.stdout).unwrap();
        assert!(text.lines().any(|line| line.starts_with(expected)), "{words}:\n{text}");
    }
    let ran = mcproof(folder.path()).args(["help", "-s", "watch"]).output().unwrap();
    let text = String::from_utf8(ran.stdout).unwrap();
    assert!(text.lines().any(|line| line.starts_with("mcproof test --help  ")), "{text}");
    // What has no page of its own is searched for.
    for (word, expected) in [("docker", "mcproof help guide/install  "), ("pytest", "mcproof help guide/migrate-pytest  ")] {
        let ran = mcproof(folder.path()).args(["help", word]).output().unwrap();
        let text = String::from_utf8(ran.stdout).unwrap();
        assert!(text.starts_with(&format!("No page or command is named `{word}`. These mention it:\n")), "{text}");
        assert!(ran.status.success() && text.lines().any(|line| line.starts_with(expected)), "{word}:\n{text}");
    }
    let ran = mcproof(folder.path()).args(["help", "chekc"]).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.code() == Some(2) && said.contains("did you mean `mcproof help check`?"), "{said}");
    let ran = mcproof(folder.path()).args(["help", "-s", "zebra", "xylophone"]).output().unwrap();
    assert_eq!(ran.status.code(), Some(2), "{ran:?}");
}

#[test]
fn in_a_pipe_it_prints_the_help_and_fails() {
    let folder = tempfile::tempdir().unwrap();
    let ran = mcproof(folder.path()).output().unwrap();
    assert_eq!((ran.status.code(), ran.stdout.len()), (Some(2), 0));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("Usage: mcproof"), "{ran:?}");
}

#[test]
fn flags_for_all_commands_change_nothing_of_the_front_page() {
    let folder = tempfile::tempdir().unwrap();
    let run = |flags: &[&str]| mcproof(folder.path()).args(flags).output().unwrap();
    let bare = run(&[]);
    for flags in [&["-v"][..], &["--color", "never"], &["--color=auto", "--verbose"]] {
        let ran = run(flags);
        assert_eq!((ran.status.code(), &ran.stdout, &ran.stderr), (Some(2), &bare.stdout, &bare.stderr), "{flags:?}");
    }
    let colored = |when: &str| run(&["test", "--color", when, "--bogus"]).stderr.contains(&0x1b);
    assert_eq!(["always", "never", "auto"].map(colored), [true, false, false]);
}

#[test]
fn advice_for_a_flag_of_another_tool_stands_over_the_usage_of_the_command() {
    let folder = tempfile::tempdir().unwrap();
    for (flags, advice) in [(["--grep", "x"], "-E 'name(TEXT)'"), (["--retries", "2"], "set `retries` in the suite")] {
        let ran = mcproof(folder.path()).arg("test").args(flags).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(said.contains(advice) && said.contains("Usage: mcproof test [OPTIONS]"), "{said}");
    }
}

#[test]
fn words_in_another_order_get_the_right_one() {
    let folder = tempfile::tempdir().unwrap();
    let ran = mcproof(folder.path()).args(["call", "echo", "http://127.0.0.1:9/mcp", "message=hello"]).output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(said.contains("the server comes first: mcproof call http://127.0.0.1:9/mcp echo\n"), "{said}");
}

fn doctor(folder: &Path, variables: &[(&str, &str)]) -> (Option<i32>, Value) {
    let Output { status, stdout, .. } = mcproof(folder).args(["doctor", "--json"]).envs(variables.iter().copied()).output().unwrap();
    (status.code(), serde_json::from_slice(&stdout).unwrap())
}

/// State and detail of a finding.
fn finding(report: &Value, name: &str) -> (String, String) {
    let findings = report["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["name"] == name).unwrap_or_else(|| panic!("no {name} in {report:#}"));
    (found["state"].as_str().unwrap().to_owned(), found["detail"].as_str().unwrap().to_owned())
}

#[test]
fn the_doctor_tells_what_is_missing_from_what_is_broken() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let programs = folder.path().join("bin");
    std::fs::create_dir(&programs).unwrap();
    for (name, script) in [("node", "#!/bin/sh\necho v22.1.0\n"), ("python3", "#!/bin/sh\nexit 7\n"), ("java", "#!/nonexistent\n")] {
        std::fs::write(programs.join(name), script).unwrap();
        std::fs::set_permissions(programs.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = programs.to_str().unwrap();
    let (code, report) = doctor(folder.path(), &[("PATH", path), ("HTTPS_PROXY", "http://me:hunter2@proxy:3128"), ("SHELL", "/bin/sh")]);
    assert_eq!(code, Some(1), "{report:#}");
    assert_eq!(finding(&report, "node"), ("ok".into(), format!("22.1.0, {path}/node")));
    assert_eq!(finding(&report, "uvx").0, "missing");
    let (state, detail) = finding(&report, "python3");
    assert!(state == "problem" && detail.ends_with("--version exited with code 7"), "{detail}");
    assert_eq!(finding(&report, "java").0, "problem");
    assert_eq!(finding(&report, "https_proxy").1, "http://me:***@proxy:3128/");
    assert!(!report.to_string().contains("hunter2"));
}

#[test]
fn the_doctor_finds_what_is_configured_and_does_not_work() {
    let folder = tempfile::tempdir().unwrap();
    for (variable, value, name) in [
        ("SSL_CERT_FILE", "/nonexistent.pem", "certificates"),
        ("HTTP_PROXY", "gopher://proxy", "http_proxy"),
        ("BROWSER", "no-such-browser", "browser"),
        ("SHELL", "/no/such/shell", "shell"),
        ("TMPDIR", "/no/such/folder", "temporary directory"),
        ("XDG_STATE_HOME", "/proc/mcproof", "state directory"),
    ] {
        let (code, report) = doctor(folder.path(), &[("PATH", ""), ("SHELL", "/bin/sh"), (variable, value)]);
        assert_eq!((code, finding(&report, name).0.as_str()), (Some(1), "problem"), "{variable}={value}: {report:#}");
    }
    let (code, report) = doctor(folder.path(), &[("PATH", ""), ("SHELL", "/bin/sh")]);
    assert_eq!(code, Some(0), "{report:#}");
}

#[test]
fn a_shell_takes_its_completions() {
    let folder = tempfile::tempdir().unwrap();
    let own = env!("CARGO_BIN_EXE_mcproof");
    // The words after `mcproof`, of which the last one is completed.
    let completed = |words: &[&str]| -> Vec<String> {
        let (last, before) = words.split_last().unwrap();
        let previous = before.last().unwrap_or(&"mcproof");
        let script = format!(
            "source <({own} completions bash); COMP_WORDS=(mcproof {} '{last}'); COMP_CWORD={}; _mcproof mcproof '{last}' {previous}; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            before.join(" "),
            words.len(),
        );
        let ran = Command::new("bash").current_dir(folder.path()).args(["-c", &script]).output().unwrap();
        String::from_utf8(ran.stdout).unwrap().lines().map(str::to_owned).collect()
    };
    assert_eq!(completed(&["che"]), ["check"]);
    assert_eq!(completed(&["help", "log"]), ["login"]);
    assert_eq!(completed(&["help", "guide/c"]), ["guide/check"]);
    assert!(completed(&["explain", "tool-"]).contains(&"tool-has-annotations".to_owned()));
    assert_eq!(completed(&["check", "--only", "poi"]), ["poisoning"]);
    assert_eq!(completed(&["test", "--reporter", "j"]), ["json", "junit"]);
    assert_eq!(completed(&["proxy", "install", "cu"]), ["cursor"]);
    let all = completed(&[""]);
    assert!(all.iter().any(|name| name == "check") && all.iter().all(|name| name != "man" && name != "reference"), "{all:?}");
    // They are offered, and not demanded; the help has no list of them.
    let help = mcproof(folder.path()).args(["help", "explain"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&help.stdout).contains("tool-has-annotations"), "{help:?}");
    let man = mcproof(folder.path()).args(["man", "pages"]).status().unwrap();
    assert!(man.success());
    assert!(std::fs::read_to_string(folder.path().join("pages/mcproof-check.1")).unwrap().contains("MCP specification"));
}

/// Runs `mcproof upgrade` where `npm` is this script: the exit code, and what was printed.
fn upgrade(folder: &Path, npm: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let program = folder.join("npm");
    std::fs::write(&program, format!("#!/bin/sh\n: > '{}'\n{npm}\n", folder.join("asked").display())).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ran = mcproof(folder).arg("upgrade").args(arguments).env("PATH", format!("{}:/usr/bin:/bin", folder.display())).output().unwrap();
    (ran.status.code(), String::from_utf8([ran.stdout, ran.stderr].concat()).unwrap())
}

#[test]
fn a_newer_version_is_asked_for_only_on_request_and_never_made_up() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let own = env!("CARGO_PKG_VERSION");
    let check = |npm: &str, arguments: &[&str], expected: Option<i32>, words: &str| {
        let (exit, told) = upgrade(folder, npm, arguments);
        assert!(exit == expected && told.contains(words), "{npm} {arguments:?}: {exit:?}\n{told}");
    };
    check("echo 999.0.0", &["--from", "npm"], Some(0), "upgrade with `npm install mcproof@latest`");
    assert!(!folder.join("asked").exists(), "without --check nothing is asked");
    check("echo 999.0.0", &["--check", "--from", "npm"], Some(1), &format!("mcproof 999.0.0 is available; this is {own}"));
    assert!(folder.join("asked").exists());
    check(&format!("echo {own}"), &["--check", "--from", "npm"], Some(0), &format!("mcproof {own} is the newest version (npm)"));
    check("echo 0.0.1", &["--check", "--from", "npm"], Some(0), "is newer than 0.0.1");
    check("echo 999.0.0", &["--check", "--from", "npm", "--json"], Some(1), "\"newest\": \"999.0.0\"");
    check("echo offline >&2; exit 1", &["--check", "--from", "npm"], Some(3), "`npm view mcproof version` failed: offline");
    check("echo hello", &["--check", "--from", "npm"], Some(3), "names no version of mcproof");
    check("true", &["--check", "--from", "npm"], Some(3), "names no version of mcproof");
    check("true", &["--check", "--from", "homebrew"], Some(3), "`brew` is not on PATH");
    check("true", &["--check"], Some(2), "no package manager is known to have installed");
}

#[test]
fn licenses_name_the_libraries_of_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let ran = mcproof(folder.path()).arg("licenses").output().unwrap();
    let told = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success() && told.starts_with(concat!("mcproof ", env!("CARGO_PKG_VERSION"), ": MIT OR Apache-2.0")), "{told}");
    assert!(told.contains("\npreact ") && told.contains("Permission is hereby granted"), "{told}");
}
