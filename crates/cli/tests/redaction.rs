//! A server that tells its secrets in every form there is: none of them is in anything that mcproof says or writes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const TOKEN: &str = "Zq9/tok+en\"Sëcret&<7>%41x";
const INHERITED: &str = "ghp_Inherited0123456789abcdef";

fn server() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/leaks.py").display().to_string()
}

/// What must not be seen, as Python writes it.
fn forms() -> Vec<String> {
    let python =
        Command::new("python3").arg(server()).arg("--forms").env("API_TOKEN", TOKEN).env("GITHUB_TOKEN", INHERITED).output().unwrap();
    let forms: Vec<String> = serde_json::from_slice(&python.stdout).unwrap();
    assert!(forms.len() > 30 && forms.iter().all(|form| form.chars().count() >= 8), "{forms:?}");
    forms
}

struct Folder {
    folder: TempDir,
    forms: Vec<String>,
}

impl Folder {
    fn new() -> Self {
        let folder = Self { folder: tempfile::tempdir().unwrap(), forms: forms() };
        let suite = format!(
            "server: {{ stdio: {{ command: python3 {}, env: {{ API_TOKEN: \"${{env.LEAK}}\" }} }}, era: legacy }}\n\
             tests:\n  - {{ name: shown, steps: [{{ call: leak, snapshot: true, save: {{ told: \"all[0]\" }} }}, {{ call: leak, with: {{ x: \"${{told}}\" }} }}] }}\n\
             \x20 - {{ name: other, steps: [{{ call: leak, expect: nothing }}] }}\n\
             \x20 - {{ name: refused, steps: [{{ call: refuse }}] }}\n",
            server()
        );
        std::fs::write(folder.folder.path().join("s.mcproof.yaml"), suite).unwrap();
        let watch =
            format!("targets:\n  leaks: {{ stdio: {{ command: python3 {}, env: {{ API_TOKEN: \"${{env.LEAK}}\" }} }} }}\n", server());
        std::fs::write(folder.folder.path().join("watch.yaml"), watch).unwrap();
        folder
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcproof"));
        command.current_dir(self.folder.path()).env("LEAK", TOKEN).env("GITHUB_TOKEN", INHERITED).env("XDG_STATE_HOME", self.folder.path());
        command.env_remove("GITHUB_ACTIONS").env_remove("GITHUB_STEP_SUMMARY").args(words);
        command
    }

    /// Runs a command and reads all that it said and wrote. Gives its exit code.
    fn says_nothing(&self, words: &[&str]) -> Option<i32> {
        let output = self.run(words);
        for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
            self.holds_nothing(words, name, bytes);
            let text = String::from_utf8(bytes.clone()).unwrap();
            let hidden = text.chars().find(|character| "\u{202e}\u{200b}\u{2066}\u{1b}".contains(*character));
            assert_eq!(hidden, None, "{words:?} {name}: {text}");
        }
        self.files_hold_nothing(words, self.folder.path());
        output.status.code()
    }

    fn files_hold_nothing(&self, words: &[&str], folder: &Path) {
        let inputs = ["s.mcproof.yaml", "watch.yaml"].map(PathBuf::from);
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => self.files_hold_nothing(words, &path),
                false if inputs.iter().any(|input| path.ends_with(input)) => {}
                false => self.holds_nothing(words, &path.display().to_string(), &std::fs::read(&path).unwrap()),
            }
        }
    }

    fn holds_nothing(&self, words: &[&str], name: &str, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        if let Some(found) = self.forms.iter().find(|form| text.contains(form.as_str())) {
            let place = text.find(found.as_str()).unwrap();
            let from = text[..place].char_indices().rev().nth(300).map_or(0, |(index, _)| index);
            panic!("{words:?}: {name} holds {found}: …{}", text[from..].chars().take(700).collect::<String>());
        }
    }
}

/// The words of a command with the server that leaks.
fn of_server<'a>(words: &[&'a str], variable: &'a str, server: &'a str) -> Vec<&'a str> {
    [words, &["-e", variable, "--", "python3", server][..]].concat()
}

#[test]
fn no_command_shows_a_secret_in_any_form() {
    let (folder, server, variable) = (Folder::new(), server(), format!("API_TOKEN={TOKEN}"));
    let check = |words: &[&str], code: i32| {
        let words = of_server(words, &variable, &server);
        let found = folder.says_nothing(&words);
        assert_eq!(found, Some(code), "{words:?}: {}", String::from_utf8_lossy(&folder.run(&words).stderr));
    };
    check(&["tools"], 0);
    check(&["tools", "-v", "--trace", "trace.json"], 0);
    check(&["tools", "--format", "json"], 0);
    check(&["call", "leak"], 0);
    check(&["call", "leak", "-v"], 0);
    check(&["call", "leak", "--output", "raw.txt", "--output-format", "raw"], 0);
    check(&["call", "leak", "--output", "result.json"], 0);
    check(&["call", "fail"], 1);
    check(&["call", "refuse"], 1);
    check(&["call", "refuse", "--format", "json"], 1);
    check(&["prompts"], 0);
    check(&["prompt", "leak"], 0);
    check(&["resources"], 0);
    check(&["read", "leak://it"], 0);
    check(&["ping", "-v"], 0);
    check(&["inspect", "--method", "tools/list"], 0);
    check(&["probe", "--json"], 0);
    check(&["hash", "--json"], 0);
    check(&["lock"], 0);
    check(&["lock", "--verify"], 0);
    check(&["diff", "mcproof.lock", "--json"], 0);
    check(&["init", "--dir", "started"], 0);
    // What it wrote holds nothing of them, and passes.
    let ran = folder.command(&["test", "started"]).env("API_TOKEN", TOKEN).output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stdout));
}

#[test]
fn no_answer_to_an_agent_shows_a_secret_in_any_form() {
    let folder = Folder::new();
    let asked = [
        ("list", json!({})),
        ("call", json!({ "tool": "leak" })),
        ("call", json!({ "tool": "refuse" })),
        ("check", json!({ "call": ["all"] })),
        ("probe", json!({})),
    ];
    for (tool, mut arguments) in asked {
        arguments["command"] = format!("python3 {}", server()).into();
        arguments["env"] = json!({ "API_TOKEN": TOKEN });
        let arguments = arguments.to_string();
        let words = ["call", tool, "--args", &arguments, "--", env!("CARGO_BIN_EXE_mcproof"), "mcp"];
        assert_eq!(folder.says_nothing(&words), Some(0), "{tool}");
    }
}

#[test]
fn no_check_shows_a_secret_in_any_form() {
    let (folder, server, variable) = (Folder::new(), server(), format!("API_TOKEN={TOKEN}"));
    let reporters = ["terminal", "agent=a.txt", "json=c.json", "junit=c.xml", "sarif=c.sarif", "html=c.html", "github=c.txt", "tap=c.tap"];
    let mut words = vec!["check", "--call", "all"];
    words.extend(reporters.iter().flat_map(|reporter| ["--reporter", reporter]));
    folder.says_nothing(&of_server(&words, &variable, &server));
    folder.says_nothing(&of_server(&["check", "--json"], &variable, &server));
    let saved = std::fs::read_to_string(folder.folder.path().join("c.json")).unwrap();
    assert!(saved.contains("[redacted]") && saved.contains("\\u202e"), "{saved}");
}

#[test]
fn no_run_and_no_monitor_shows_a_secret_in_any_form() {
    let folder = Folder::new();
    let reporters = ["terminal", "agent=a.txt", "json=r.json", "junit=r.xml", "html=r.html", "github=r.txt", "tap=r.tap"];
    let mut words = vec!["test", "s.mcproof.yaml", "--audit", "audit.jsonl", "--update-snapshots"];
    words.extend(reporters.iter().flat_map(|reporter| ["--reporter", reporter]));
    assert_eq!(folder.says_nothing(&words), Some(1));
    assert_eq!(folder.says_nothing(&["test", "s.mcproof.yaml", "--json"]), Some(1));
    assert_eq!(folder.says_nothing(&["test", "s.mcproof.yaml", "-v"]), Some(1));
    assert_eq!(folder.says_nothing(&["watch", "watch.yaml", "--once"]), Some(0));
    assert_eq!(folder.says_nothing(&["watch", "status", "watch.yaml", "--json"]), Some(0));
}

#[test]
fn no_coverage_shows_a_secret_in_any_form() {
    let folder = Folder::new();
    let suite = format!(
        "server: {{ stdio: {{ command: python3 {} --in-names, env: {{ API_TOKEN: \"${{env.LEAK}}\" }} }}, era: legacy }}\n\
         tests: [{{ name: used, steps: [ping, {{ call: leak }}] }}]\n",
        server()
    );
    std::fs::write(folder.folder.path().join("s.mcproof.yaml"), suite).unwrap();
    let reporters = ["terminal", "agent=a.txt", "json=r.json", "junit=r.xml", "html=r.html", "github=r.txt", "tap=r.tap"];
    let mut words = vec!["test", "s.mcproof.yaml", "--coverage"];
    words.extend(reporters.iter().flat_map(|reporter| ["--reporter", reporter]));
    folder.says_nothing(&words);
    folder.says_nothing(&["test", "s.mcproof.yaml", "--coverage", "--json"]);
    let told = std::fs::read_to_string(folder.folder.path().join("r.json")).unwrap();
    for name in ["tool-[redacted]", "prompt-[redacted]", "leak://it?token=[redacted]"] {
        assert!(told.contains(name), "{name} is not in {told}");
    }
}

/// All lines of a trace.
fn lines_of(folder: &Path, trace: &str) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_mcproof")).current_dir(folder).args(["trace", "export", trace, "--jsonl"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn no_trace_holds_what_flags_and_arguments_give_to_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let binary = env!("CARGO_BIN_EXE_mcproof");
    let script =
        "echo $PLAIN $DATABASE_URL $MYSQL_PWD $1 $2 $3 $4 >&2; echo $MODE, $MAX_TOKENS on a $KEYBOARD keyboard >&2; exec \"$0\" demo shop";
    let server = [
        "--",
        "sh",
        "-c",
        script,
        binary,
        "--api-key",
        "ARGSECRET1xx",
        "--token=ARGSECRET2xx",
        "https://u:ARGSECRET3xx@h/?sig=ARGSECRET4xx",
    ];
    let given = ["-e", "PLAIN=FLAGSECRET1xx", "-e", "MODE=production", "-e", "MAX_TOKENS=1000", "-e", "KEYBOARD=german"];
    for (verb, trace) in [("tools", "tools.mcptrace"), ("check", "check.mcptrace"), ("proxy", "proxy.mcptrace")] {
        let mut command = Command::new(binary);
        command.current_dir(folder.path()).env("XDG_STATE_HOME", folder.path()).env_remove("GITHUB_ACTIONS");
        command.env("DATABASE_URL", "postgres://u:ENVSECRET1pw@h/db").env("MYSQL_PWD", "ENVSECRET2pw");
        command.args([verb, "--trace", trace]).args(given).args(server).output().unwrap();
        let lines = lines_of(folder.path(), trace);
        let is_leak = |line: &&str| ["ARGSECRET", "FLAGSECRET", "ENVSECRET"].iter().any(|secret| line.contains(secret));
        let leaked: Vec<&str> = lines.lines().filter(is_leak).collect();
        assert!(leaked.is_empty(), "{verb}: {leaked:#?}");
        // What is plain can be read.
        assert!(lines.contains("production, 1000 on a german keyboard"), "{verb}: {lines}");
    }
}

#[test]
fn no_trace_holds_a_header_that_a_flag_gives() {
    let folder = tempfile::tempdir().unwrap();
    let binary = env!("CARGO_BIN_EXE_mcproof");
    let mut command = Command::new(binary);
    command.current_dir(folder.path()).args(["tools", "--header", "X-Custom: CUSTSECRET99", "--trace", "h.mcptrace"]);
    command.args(["http://127.0.0.1:${port}/mcp", "--", binary, "demo", "shop", "--http", "--port", "${port}"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines = lines_of(folder.path(), "h.mcptrace");
    assert!(lines.to_ascii_lowercase().contains("x-custom") && !lines.contains("CUSTSECRET99"), "{lines}");
}
