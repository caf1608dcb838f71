//! The real binary against real servers: the built-in demos over stdio and sockets, and shell scripts that misbehave.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[cfg(target_os = "linux")]
mod processes;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");

/// What the program did.
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn mcproof(arguments: &[&str]) -> Command {
    let mut command = Command::new(MCPROOF);
    // Whatever is stored by those who run this is their own.
    command.env("XDG_STATE_HOME", "/nowhere");
    command.args(arguments).env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

fn ran(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn run(arguments: &[&str]) -> Ran {
    ran(&mut mcproof(arguments))
}

/// Runs `arguments -- mcproof demo tracker`.
fn with_tracker(arguments: &[&str]) -> Ran {
    run(&[arguments, &["--", MCPROOF, "demo", "tracker"]].concat())
}

/// Runs `arguments -- sh -c script`.
fn with_script(arguments: &[&str], script: &str) -> Ran {
    run(&[arguments, &["--", "sh", "-c", script]].concat())
}

impl Ran {
    #[track_caller]
    fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        serde_json::from_str(&self.stdout).unwrap()
    }

    #[track_caller]
    fn check(&self, code: i32, stdout: &str, stderr: &str) {
        assert!(
            self.code == Some(code) && self.stdout.contains(stdout) && self.stderr.contains(stderr),
            "{:?}\nstdout: {}\nstderr: {}",
            self.code,
            self.stdout,
            self.stderr
        );
    }

    /// It failed before a result: nothing is on stdout that could pass for one.
    #[track_caller]
    fn check_failed(&self, code: i32, stderr: &[&str]) {
        assert_eq!(self.stdout, "");
        for part in stderr {
            self.check(code, "", part);
        }
    }
}

/// A server that listens. Ends with its test.
struct Listening {
    process: Child,
    url: String,
}

impl Listening {
    fn start(kind: &str) -> Self {
        let mut process = mcproof(&["demo", "tracker", "--transport", kind]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on ").unwrap().to_owned();
        Self { process, url }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A legacy server of a few lines: `body` runs after the handshake.
fn legacy(body: &str) -> String {
    let handshake =
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;
    format!("read -r a; echo '{handshake}'; read -r a; {body}")
}

#[test]
fn each_method_prints_its_result() {
    let result = |flags: &[&str]| with_tracker(&[&["inspect"], flags].concat()).json();
    let names = |list: &Value| list.as_array().unwrap().iter().map(|item| item["name"].clone()).collect::<Vec<_>>();
    let tools = result(&["--method", "tools/list"]);
    assert_eq!(names(&tools["tools"]), ["echo", "create_issue", "get_issue", "list_issues"]);
    assert_eq!(tools.as_object().unwrap().len(), 1);
    assert_eq!(names(&result(&["--method", "prompts/list"])["prompts"]), ["triage"]);
    assert_eq!(names(&result(&["--method", "resources/list"])["resources"]), ["projects"]);
    assert!(result(&["--method", "resources/templates/list"])["resourceTemplates"].is_array());
    assert_eq!(result(&["--method", "resources/read", "--uri", "tracker://projects"])["contents"][0]["uri"], "tracker://projects");
    assert_eq!(result(&["--method", "initialize"])["protocolVersion"], "2025-11-25");
    assert_eq!(result(&["--method", "initialize", "--era", "modern"])["protocolVersion"], "2026-07-28");
    assert_eq!(result(&["--method", "initialize", "--protocol-version", "2024-11-05"])["protocolVersion"], "2024-11-05");
    assert!(result(&["--method", "server/discover"])["supportedVersions"].is_array());
    assert_eq!(result(&["--method", "ping", "--era", "legacy"]), json!({}));
    assert_eq!(result(&["--method", "logging/setLevel", "--log-level", "debug", "--protocol-era", "legacy"]), json!({}));
    let prompt = result(&["--method", "prompts/get", "--prompt-name", "triage", "--prompt-args", "issue=ISSUE-1"]);
    assert_eq!(prompt["messages"][0]["role"], "user");
    let completion = result(&["--method", "completion/complete", "--ref", "prompt:triage", "--argument", "issue=I"]);
    assert!(completion["completion"]["values"].is_array());
}

#[test]
fn each_transport_gives_the_same_list() {
    let stdio = with_tracker(&["tools"]).json();
    for kind in ["http", "sse"] {
        let server = Listening::start(kind);
        assert_eq!(run(&["tools", &server.url]).json(), stdio, "{kind}");
        assert_eq!(run(&["inspect", &server.url, "--transport", kind, "--method", "tools/list"]).json(), stdio, "{kind}");
        assert_eq!(run(&["inspect", "--server-url", &server.url, "--method", "tools/list"]).json(), stdio, "{kind}");
    }
}

#[test]
fn short_forms_do_what_they_say() {
    with_tracker(&["call", "echo", "message=hello"]).check(0, r#""text": "hello""#, "");
    with_tracker(&["read", "tracker://projects"]).check(0, "tracker://projects", "");
    with_tracker(&["prompt", "triage", "issue=ISSUE-1"]).check(0, "messages", "");
    with_tracker(&["resources"]).check(0, "projects", "");
    with_tracker(&["prompts"]).check(0, "triage", "");
    with_tracker(&["templates"]).check(0, "resourceTemplates", "");
    with_tracker(&["ping"]).check(0, "supportedVersions", "");
    let server = Listening::start("http");
    run(&["call", &server.url, "echo", "message=hello"]).check(0, r#""text": "hello""#, "");
    run(&["read", &server.url, "tracker://projects"]).check(0, "tracker://projects", "");
    run(&["prompt", &server.url, "triage", "issue=ISSUE-1"]).check(0, "messages", "");
}

#[test]
fn arguments_keep_their_types() {
    let sent = |arguments: &[&str]| {
        let ran = with_tracker(&[&["-v", "call"], arguments].concat());
        let line = ran.stderr.lines().find(|line| line.contains(r#""method":"tools/call""#)).unwrap().to_owned();
        let message: Value = serde_json::from_str(&line[line.find('{').unwrap()..]).unwrap();
        message["params"]["arguments"].clone()
    };
    assert_eq!(sent(&["echo", "message=123"]), json!({ "message": "123" }));
    assert_eq!(sent(&["echo", "message:=123"]), json!({ "message": 123 }));
    assert_eq!(sent(&["list_issues", "project=1", "limit=2"]), json!({ "project": "1", "limit": 2 }));
    assert_eq!(sent(&["echo", "--args", r#"{"message":"a","x":1}"#, "message=b"]), json!({ "message": "b", "x": 1 }));
    assert_eq!(sent(&["nope", "a=1", "b=x"]), json!({ "a": 1, "b": "x" }));
    with_tracker(&["inspect", "--method", "tools/call", "--tool-name", "echo", "--tool-args-json", r#"{"message":"7"}"#]).check(
        0,
        r#""text": "7""#,
        "",
    );
    with_tracker(&["inspect", "--method", "tools/call", "--tool-name", "create_issue", "--tool-arg", "project=p", "title=a=b"])
        .check(0, "a=b", "");
}

#[test]
fn arguments_come_from_a_file_or_stdin() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("arguments.json");
    std::fs::write(&file, r#"{"message":"from a file"}"#).unwrap();
    with_tracker(&["call", "echo", "--args", &format!("@{}", file.display())]).check(0, "from a file", "");
    let mut command = mcproof(&["call", "echo", "--args", "-", "--", MCPROOF, "demo", "tracker"]);
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    process.stdin.take().unwrap().write_all(br#"{"message":"from stdin"}"#).unwrap();
    let output = process.wait_with_output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("from stdin"));
    with_tracker(&["call", "echo", "--args", "@/no/such/file"]).check_failed(2, &["/no/such/file"]);
}

#[test]
fn a_failing_tool_or_method_exits_1() {
    with_tracker(&["call", "create_issue"]).check(1, r#""isError": true"#, "error: tool `create_issue` returned `isError`");
    let said = ["error: server returned an error for `tools/call`: JSON-RPC error -32602", "the server has no tool `nope`; it has `"];
    with_tracker(&["call", "nope"]).check_failed(1, &said);
    with_tracker(&["call", "echo", "{\"message\": \"a\"}"]).check_failed(2, &["is not a valid argument", "use --args"]);
    with_tracker(&["call", "ehco", "message=a"]).check_failed(1, &["the server has no tool `ehco`: did you mean `echo`?"]);
    let refused = mcproof(&["resources", "--", MCPROOF, "demo", "shop"]).output().unwrap();
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(told.contains("the server does not declare the capability `resources`"), "{told}");
    let misspelled = with_tracker(&["call", "echo", "mesage=a"]);
    misspelled.check(1, r#""isError": true"#, "the tool has no argument `mesage`: did you mean `message`?");
    with_tracker(&["inspect", "--method", "no/such", "--params", "{}"]).check_failed(1, &["JSON-RPC error -32601"]);
}

#[test]
fn format_json_is_an_envelope_on_one_line() {
    let ran = with_tracker(&["call", "--format", "json", "echo", "message=a"]);
    assert_eq!(ran.json()["result"]["content"][0]["text"], "a");
    assert_eq!(ran.stdout.lines().count(), 1);
    let error = |ran: &Ran| serde_json::from_str::<Value>(&ran.stderr).unwrap()["error"].clone();
    let refused = with_tracker(&["call", "--format", "json", "nope"]);
    refused.check_failed(1, &[]);
    assert_eq!(error(&refused)["code"], -32602);
    let tool_error = with_tracker(&["call", "--format", "json", "create_issue"]);
    tool_error.check(1, r#"{"result":"#, "");
    assert_eq!(error(&tool_error)["code"], "tool_is_error");
    let unknown = run(&["tools", "--format", "json", "nobody"]);
    assert_eq!((unknown.code, &error(&unknown)["code"]), (Some(2), &json!("unknown-server")));
}

#[test]
fn a_pipe_gets_plain_json() {
    let piped = with_tracker(&["tools"]);
    assert_eq!(piped.stderr, "");
    assert_eq!(piped.stdout, with_tracker(&["tools", "--json"]).stdout);
    assert_eq!(piped.stdout, with_tracker(&["inspect", "--format", "text", "--color", "always", "--method", "tools/list"]).stdout);
    assert_eq!(piped.stdout, format!("{:#}\n", piped.json()));
}

#[test]
fn colours_are_for_terminals_and_those_who_ask() {
    let is_colored = |ran: &Ran| ran.stderr.contains('\u{1b}');
    assert!(!is_colored(&with_tracker(&["call", "nope"])));
    assert!(is_colored(&with_tracker(&["--color", "always", "call", "nope"])));
    assert!(!is_colored(&with_tracker(&["--color", "never", "-v", "call", "nope"])));
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let mut command = mcproof(&["tools", "--", MCPROOF, "demo", "tracker"]);
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(process.stdout.take());
    let output = process.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(0), String::new()));
}

#[test]
fn results_go_to_a_file_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("result");
    let path = file.to_str().unwrap();
    let written = |flags: &[&str]| {
        let ran = with_tracker(&[&["call", "--output", path], flags, &["echo", "message=text"]].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{}", ran.stderr);
        std::fs::read_to_string(&file).unwrap()
    };
    assert_eq!(serde_json::from_str::<Value>(&written(&[])).unwrap()["content"][0]["text"], "text");
    assert_eq!(written(&["--output-format", "raw"]), "text");
    with_tracker(&["tools", "--output", "/dev/null/folder/x"]).check_failed(2, &["cannot write"]);
    with_tracker(&["tools", "--output-format", "raw"]).check_failed(2, &["--output"]);
}

#[test]
fn pages_are_one_list_unless_a_cursor_is_given() {
    let pages = legacy(
        r#"read -r a; echo "$a" >&2; echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"a"}],"nextCursor":"2"}}';
           read -r a; echo "$a" >&2; echo '{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"b"}]}}'; read -r a"#,
    );
    let inspect = ["inspect", "--era", "legacy", "--method", "tools/list"];
    let ran = with_script(&[&inspect[..], &["-v", "--metadata", "k=1"]].concat(), &pages);
    assert_eq!(ran.json(), json!({ "tools": [{ "name": "a" }, { "name": "b" }] }));
    ran.check(0, "", r#""params":{"_meta":{"k":1},"cursor":"2"}"#);
    let one = with_script(&[&inspect[..], &["-v", "--cursor", "1"]].concat(), &pages);
    assert_eq!(one.json(), json!({ "tools": [{ "name": "a" }], "nextCursor": "2" }));
    one.check(0, "", r#""params":{"cursor":"1"}"#);
}

#[test]
fn metadata_is_sent() {
    let ran = with_tracker(&[
        "-v",
        "inspect",
        "--era",
        "legacy",
        "--method",
        "tools/call",
        "--tool-name",
        "echo",
        "--tool-arg",
        "message=a",
        "--metadata",
        "x=1",
        "y=b",
        "--tool-metadata",
        "z=true",
    ]);
    ran.check(0, "", r#""_meta":{"x":1,"y":"b","z":true}"#);
}

#[test]
fn capabilities_are_declared_when_asked() {
    with_tracker(&["-v", "tools", "--era", "legacy"]).check(0, "", r#""capabilities":{},"clientInfo""#);
    with_tracker(&["-v", "tools", "--era", "legacy", "--capabilities", r#"{"roots":{}}"#]).check(
        0,
        "",
        r#""capabilities":{"roots":{}},"clientInfo""#,
    );
    with_tracker(&["tools", "--capabilities", "roots"]).check_failed(2, &["not a JSON object"]);
}

#[test]
fn a_server_that_is_not_there_exits_3() {
    run(&["inspect", "http://127.0.0.1:1/mcp", "--method", "tools/list"]).check_failed(3, &["127.0.0.1:1 refused", "hint"]);
    run(&["tools", "--", "/no/such/program"]).check_failed(3, &["`/no/such/program` was not found"]);
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("server");
    std::fs::write(&script, "#!/old/place/venv/bin/python\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let missing = "was found, but its interpreter `/old/place/venv/bin/python` was not";
    run(&["tools", "--", script.to_str().unwrap()]).check_failed(3, &[missing]);
    run(&["tools", "--cwd", "/no/such/folder", "--", "true"]).check_failed(3, &["/no/such/folder", "--cwd"]);
}

#[test]
fn a_server_that_exits_at_once_is_quoted() {
    let said = ["server exited with code 1", "before responding to `initialize`", "boom", "hint"];
    with_script(&["inspect", "--method", "tools/list"], "echo boom >&2; exit 1").check_failed(3, &said);
    with_script(&["tools"], "echo 'DATABASE_URL is not set' >&2; exit 1").check_failed(3, &["set it: -e DATABASE_URL=…"]);
    // The reason is the first line, and the usage that follows is long.
    let usage = "echo 'Error: no current-context is set' >&2; for i in $(seq 60); do echo \"  --flag-$i\" >&2; done; exit 1";
    with_script(&["tools"], usage).check_failed(3, &["Error: no current-context is set", "49 lines", "--flag-60"]);
    run(&["tools", "--", "cat"]).check_failed(3, &["the command sends every message back"]);
    let dies = legacy("read -r a; echo dying >&2; exit 7");
    with_script(&["tools", "--era", "legacy"], &dies)
        .check_failed(1, &["exited with code 7", "before responding to `tools/list`", "dying"]);
}

#[test]
fn a_server_that_never_answers_runs_into_the_deadline() {
    with_script(&["tools", "--era", "legacy", "--connect-timeout", "100"], "read -r a; read -r a")
        .check_failed(3, &["no response to `initialize` within 100 ms"]);
    with_script(&["tools", "--era", "legacy", "--timeout", "100ms"], &legacy("read -r a; read -r a"))
        .check_failed(1, &["no response to `tools/list` within 100 ms", "--timeout"]);
}

#[test]
fn noise_is_told_and_the_result_still_printed() {
    let script = format!("echo Server ready; exec {MCPROOF} demo tracker");
    with_script(&["tools"], &script).check(0, r#""name": "echo""#, "Server ready");
    let quiet = with_script(&["tools", "-q"], &script);
    quiet.check(0, r#""name": "echo""#, "");
    assert_eq!(quiet.stderr, "");
}

#[test]
fn what_is_mistyped_exits_2_and_says_what_was_meant() {
    run(&["inspect", "--methd", "x", "--", "true"]).check_failed(2, &["'--methd'", "'--method'"]);
    run(&["inspect", "true", "--methd", "x"]).check_failed(2, &["'--methd'", "'--method'"]);
    run(&["tols"]).check_failed(2, &["'tols'", "'tools'"]);
    run(&["inspect", "--method", "tool/list", "--", "true"]).check_failed(2, &["did you mean `tools/list`?"]);
    run(&["inspect", "--method", "tools/call", "--", "true"]).check_failed(2, &["tools/call requires --tool-name"]);
    run(&["tools", "--max-body", "much", "--", "true"]).check_failed(2, &["`much` is not a valid size: write one such as 64KiB"]);
    run(&["tools", "--cacert", "no-such-file", "--", "true"]).check_failed(2, &["--cacert: cannot read no-such-file"]);
    run(&["tools", "--proxy", "socks5://h:1", "--", "true"]).check_failed(2, &["--proxy", "`socks5://` proxies are not supported"]);
    run(&["tools", "ftp://localhost/"]).check_failed(2, &["`ftp://localhost/` has the unsupported scheme `ftp://`"]);
    let folder = tempfile::tempdir().unwrap();
    let suite = folder.path().join("a.mcproof.yaml");
    std::fs::write(&suite, "server: { stdio: 'true' }\ntests:\n  - name: a\n    steps: [ping]\n").unwrap();
    for (url, reason) in [
        ("notaurl", "does not begin with http:// or https://"),
        ("ftp://x", "has the unsupported scheme `ftp://`"),
        ("http://127.0.0.1:99999/mcp", "has a port that is not a number from 0 to 65535"),
    ] {
        run(&["test", "--url", url, suite.to_str().unwrap()]).check_failed(2, &["--url <URL>", reason]);
        run(&["tools", "--server-url", url]).check_failed(2, &[reason]);
    }
    run(&["tools", "some-name", "--", "true"]).check_failed(2, &["the server is given twice"]);
    run(&["test", "-j", "abc"]).check_failed(2, &["expected a whole number"]);
    run(&["test", "-j", "0"]).check_failed(2, &["expected a whole number from 1 to 65535"]);
    run(&["ui", "--listen", "here:1", "x"]).check_failed(2, &["expected IP:PORT, such as 127.0.0.1:7130"]);
    run(&["tools", "--timeout", "soon", "--", "true"]).check_failed(2, &["`soon` is not a valid duration"]);
    for flag in ["--timeout", "--connect-timeout"] {
        run(&["tools", flag, "0", "--", "true"]).check_failed(2, &["`0` is zero; write a duration above zero"]);
        run(&["test", flag, "0", "--", "true"]).check_failed(2, &["`0` is zero; write a duration above zero"]);
    }
    run(&["tools", "--era", "modrn", "--", "true"]).check_failed(2, &["did you mean `modern`?"]);
    run(&["tools", "--header", "x: y", "--", "true"]).check_failed(2, &["`--header` requires a URL"]);
    run(&["call", "http://h/"]).check_failed(2, &["missing tool name", "mcproof call TARGET TOOL"]);
    run(&["demo", "trackr"]).check_failed(2, &["tracker"]);
    run(&["inspect", "--no-revoke", "--method", "ping", "http://h/"]).check_failed(2, &["`--no-revoke` is not supported"]);
}

#[test]
fn help_and_version_are_data() {
    run(&["--version"]).check(0, concat!("mcproof ", env!("CARGO_PKG_VERSION")), "");
    run(&["--help"]).check(0, "130  interrupted by Ctrl-C", "");
    run(&["inspect", "--help"]).check(0, "--tool-args-json", "");
    run(&[]).check_failed(2, &["Usage: mcproof"]);
}

#[test]
fn inspectors_way_of_writing_a_command_works() {
    run(&["inspect", MCPROOF, "demo", "tracker", "--method", "tools/list"]).check(0, r#""name": "echo""#, "");
    run(&["inspect", MCPROOF, "demo", "tracker", "--slow", "1ms", "--method", "tools/list"]).check(0, r#""name": "echo""#, "");
    run(&["inspect", MCPROOF, "demo", "tracker", "--", "--method", "tools/list"]).check(0, r#""name": "echo""#, "");
    run(&["inspect", "--", MCPROOF, "demo", "tracker", "--method", "tools/list"]).check(0, r#""name": "echo""#, "");
}

#[test]
fn a_revision_that_nobody_knows_is_no_way_to_ask() {
    let known = ["is not a known protocol revision", "known revisions: 2026-07-28, 2025-11-25"];
    for command in ["tools", "ping", "check", "probe"] {
        with_tracker(&[command, "--protocol-version", "latest"]).check_failed(2, &known);
    }
    with_tracker(&["tools", "--protocol-version", "2025-6-18"])
        .check_failed(2, &["did you mean `2025-06-18`? (with --era legacy, any text is accepted)"]);
    let mixed = ["tools", "--protocol-version", "2025-06-18", "--era", "modern"];
    with_tracker(&mixed).check_failed(2, &["is a revision of the legacy era, not the modern one"]);
    with_tracker(&["tools", "--protocol-version", "1999-01-01", "--era", "legacy"]).check_failed(3, &["not the requested 1999-01-01"]);
    run(&["test", "examples", "--protocol-version", "2025-6-18"]).check_failed(2, &["did you mean `2025-06-18`?"]);
}

#[test]
fn servers_have_names() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("a/b");
    std::fs::create_dir_all(&below).unwrap();
    let write =
        |name: &str, servers: Value| std::fs::write(folder.path().join(name), json!({ "mcpServers": servers }).to_string()).unwrap();
    write(".mcp.json", json!({ "tracker": { "command": MCPROOF, "args": ["demo", "${DEMO:-tracker}"] } }));
    let at = |path: &Path, arguments: &[&str]| ran(mcproof(arguments).current_dir(path));
    at(&below, &["tools", "tracker"]).check(0, r#""name": "echo""#, "");
    at(&below, &["tools"]).check(0, r#""name": "echo""#, "");
    at(&below, &["inspect", "tracker", "--method", "tools/list"]).check(0, r#""name": "echo""#, "");
    at(folder.path(), &["call", "--server", "tracker", "echo", "message=a"]).check(0, r#""text": "a""#, "");
    at(&below, &["tools", "trackr"]).check_failed(2, &["no server named `trackr`", "did you mean `tracker`?"]);
    at(&below, &["tools", "127.0.0.1:3000"]).check_failed(2, &["for a URL, write http://127.0.0.1:3000"]);
    at(&below, &["tools", "server.js"]).check_failed(2, &["-- node server.js"]);
    at(&below, &["tools", "other"]).check_failed(2, &["known servers: tracker"]);
    at(folder.path(), &["check", ".mcp.json"])
        .check_failed(2, &["is a configuration file, not a server", "name one of its servers: tracker"]);
    at(folder.path(), &["lock", "none.json"]).check_failed(2, &["file `none.json` does not exist"]);
    at(folder.path(), &["test", ".mcp.json"]).check_failed(2, &["this is a configuration of servers, not a suite"]);
    let suite = folder.path().join("shop.mcproof.yaml");
    std::fs::write(&suite, "server: { stdio: mcproof demo shop }\ntests: [{ name: a, steps: [ping] }]\n").unwrap();
    at(folder.path(), &["check", "shop.mcproof.yaml"]).check_failed(2, &["is a suite, not a server", "mcproof test shop.mcproof.yaml"]);
    at(folder.path(), &["mock", "shop.mcproof.yaml"]).check_failed(2, &["no step of shop.mcproof.yaml describes a response"]);
    std::fs::remove_file(&suite).unwrap();
    let server = Listening::start("http");
    write("mcp.json", json!({ "there": { "type": "http", "url": server.url }, "bad": {} }));
    at(folder.path(), &["tools", "there"]).check(0, r#""name": "echo""#, "");
    at(folder.path(), &["tools", "bad"]).check_failed(2, &["server `bad` has neither `command` nor `url`", "mcp.json:1:"]);
    at(folder.path(), &["tools"]).check_failed(2, &["no server given", "known servers: tracker, there, bad"]);
    let config = folder.path().join("mcp.json");
    run(&["tools", "--config", config.to_str().unwrap(), "there"]).check(0, r#""name": "echo""#, "");
    run(&["tools", "--config", "/no/such/file", "there"]).check_failed(2, &["/no/such/file"]);
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(".vscode")).unwrap();
    let servers = format!(
        "{{ // of this workspace\n  \"servers\": {{ \"tracker\": {{ \"command\": {MCPROOF:?}, \"args\": [\"demo\", \"tracker\",], }}, }},\n}}"
    );
    std::fs::write(folder.path().join(".vscode/mcp.json"), servers).unwrap();
    at(folder.path(), &["tools", "tracker"]).check(0, r#""name": "echo""#, "");
    at(folder.path(), &["tools", "trackr"]).check_failed(2, &["no server named `trackr` in .vscode/mcp.json"]);
}

#[test]
fn a_trace_is_written_without_secrets_even_on_failure() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.json");
    let flags = ["tools", "--trace", file.to_str().unwrap(), "-e", "API_TOKEN=hunter22"];
    with_script(&flags, r#"echo "token $API_TOKEN" >&2; exit 1"#).check_failed(3, &["token [redacted]"]);
    let trace: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(trace["version"], 1);
    assert_eq!(trace["frames"][0]["kind"], json!(null));
    assert_eq!(trace["frames"][0]["body"]["kind"], "spawned");
    assert!(!trace.to_string().contains("hunter22"));
    let server = Listening::start("http");
    let flags = ["-v", "tools", "--trace", file.to_str().unwrap(), "--header", "Authorization: Bearer hunter22", &server.url];
    let ran = run(&flags);
    ran.check(0, "echo", "[redacted]");
    assert!(!ran.stderr.contains("hunter22"));
    assert!(!std::fs::read_to_string(&file).unwrap().contains("hunter22"));
    with_tracker(&["tools", "--trace", "/dev/null/folder/x"]).check_failed(2, &["cannot write /dev/null/folder/x"]);
}

#[test]
fn a_server_cannot_steer_the_terminal() {
    let script = legacy(r#"read -r a; printf '{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"\\u001b[31mred"}}\n'; read -r a"#);
    let ran = with_script(&["tools", "--era", "legacy"], &script);
    ran.check_failed(1, &["\\u{1b}[31mred"]);
    assert!(!ran.stderr.contains('\u{1b}'));
}

/// Waits for a line of stderr with `mark` and gives what follows it.
#[cfg(target_os = "linux")]
fn wait_for(mark: &str, stderr: &mut impl std::io::BufRead) -> String {
    loop {
        let mut line = String::new();
        assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "the line never came");
        if let Some(at) = line.find(mark) {
            return line[at + mark.len()..].trim().to_owned();
        }
    }
}

/// A process that has ended counts as gone, whether or not somebody has collected it.
#[cfg(target_os = "linux")]
fn wait_until_gone(pid: Pid) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while processes::is_running(pid) {
        assert!(std::time::Instant::now() < deadline, "process {pid} is still there");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_the_server_as_well() {
    let stage = [("read -r a; echo pid $$ >&2; sleep 1000".to_owned(), "opening"), (legacy("echo pid $$ >&2; sleep 1000"), "asking")];
    for (script, stage) in &stage {
        for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
            let mut command = mcproof(&["-v", "tools", "--era", "legacy", "--", "sh", "-c", script]);
            let mut process = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
            let mut stderr = BufReader::new(process.stderr.take().unwrap());
            let server = Pid::from_raw(wait_for("stderr  pid ", &mut stderr).parse().unwrap());
            kill(Pid::from_raw(i32::try_from(process.id()).unwrap()), signal).unwrap();
            assert_eq!(process.wait().unwrap().code(), Some(code), "{stage}");
            wait_until_gone(server);
        }
    }
}

#[test]
fn a_demo_ends_with_its_client_or_a_signal() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut server = Listening::start("http");
        kill(Pid::from_raw(i32::try_from(server.process.id()).unwrap()), signal).unwrap();
        assert_eq!(server.process.wait().unwrap().code(), Some(0));
    }
    run(&["demo", "tracker"]).check(0, "", "");
    let taken = Listening::start("http");
    let port = taken.url.rsplit(':').next().unwrap().split('/').next().unwrap();
    run(&["demo", "tracker", "--http", "--port", port]).check_failed(2, &["cannot listen on 127.0.0.1", "--port"]);
    let (address, listen) = (format!("127.0.0.1:{port}"), "another address with --listen");
    run(&["proxy", "--listen", &address, &taken.url]).check_failed(2, &["cannot listen on 127.0.0.1", listen]);
}

#[test]
fn what_listens_at_a_url_can_be_started_for_one_question() {
    let url = "http://127.0.0.1:${port}/mcp";
    let server = ["--", MCPROOF, "demo", "tracker", "--http", "--port", "${port}"];
    for asked in [&["ping", url][..], &["tools", url], &["call", url, "echo", "message=hi"]] {
        run(&[asked, &server].concat()).check(0, "", "");
    }
    with_tracker(&["ping", "--transport", "http"]).check_failed(2, &["requires a URL", "'http://127.0.0.1:${port}/mcp' -- COMMAND"]);
}

#[test]
fn what_is_typed_out_of_habit_is_answered_with_how_it_is_said_here() {
    for (arguments, advice) in [
        (&["tools", "node", "server.js"][..], "`mcproof tools -- node server.js`"),
        (&["call", "echo", "--text", "hi"], "text=VALUE"),
        (&["test", "-k", "slow"], "-E 'name(TEXT)'"),
        (&["run"], "run suites with `mcproof test`"),
        (&["call", "x", "--jsn"], "'--json'"),
    ] {
        run(arguments).check_failed(2, &[advice]);
    }
    let ran = run(&["diff", "no.lock", "other.lock"]);
    ran.check_failed(2, &["file `no.lock` does not exist"]);
}
