//! What many servers do although no revision of the protocol has it so, and what the verbs make of it: tolerant where a server is
//! used, strict where it is tested. One server program with switches (`servers/odd.py`), one table.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");

fn server() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/odd.py")
}

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn run(folder: &Path, words: &[&str]) -> Ran {
    let output = Command::new(MCPROOF).env("NO_PROXY", "*").current_dir(folder).args(words).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// The words that name an odd server, as a person would type them.
fn odd(transport: &str, oddity: &str) -> Vec<String> {
    let program = server().display().to_string();
    let (url, port) = match transport {
        "stdio" => return ["--", "python3", &program, oddity].map(str::to_owned).to_vec(),
        "http" => ("http://127.0.0.1:${port}/mcp", ["--http", "${port}"]),
        _ => ("http://127.0.0.1:${port}/sse", ["--sse", "${port}"]),
    };
    [url, "--", "python3", &program, oddity, port[0], port[1]].map(str::to_owned).to_vec()
}

/// What `tools` makes of each oddity: its exit code, and what stderr says. Nothing where there is nothing to say.
const USED: &[(&str, &str, i32, &str)] = &[
    ("stdio", "sound", 0, ""),
    ("stdio", "noise-first", 0, "a line on stdout that is not an MCP message"),
    ("stdio", "noise", 0, "a line on stdout that is not an MCP message"),
    ("stdio", "json-noise", 0, "a line on stdout that is not an MCP message"),
    ("stdio", "blank-lines", 0, "an empty line on stdout"),
    ("stdio", "crlf", 0, ""),
    ("stdio", "padded", 0, ""),
    ("stdio", "string-id", 0, "where the request had the number"),
    ("stdio", "float-id", 0, "`id` is not an integer"),
    ("stdio", "null-error", 0, "both `result` and `error`"),
    ("stdio", "batch", 0, "found an array"),
    ("stdio", "no-jsonrpc", 0, "`jsonrpc` is not \"2.0\""),
    ("stdio", "jsonrpc-1", 0, "`jsonrpc` is not \"2.0\""),
    ("stdio", "half-character", 0, "a line on stdout that is not an MCP message"),
    ("stdio", "bom", 3, "byte order mark"),
    ("stdio", "pretty", 3, "pretty-printed JSON spans several lines"),
    ("stdio", "unknown-version", 0, "the revision \"2031-01-01\", which does not exist"),
    ("stdio", "no-server-info", 3, "serverInfo"),
    ("stdio", "no-capabilities", 3, "capabilities"),
    ("http", "sound", 0, ""),
    ("http", "charset", 0, ""),
    ("http", "upper-type", 0, ""),
    ("http", "200-for-notification", 0, ""),
    ("http", "pretty", 0, ""),
    ("http", "string-id", 0, "where the request had the number"),
    ("http", "event-missing", 0, ""),
    ("http", "event-fields", 0, ""),
    ("http", "event-crlf", 0, ""),
    ("http", "events-charset", 0, ""),
    ("http", "json-as-events", 3, "respond with plain JSON and"),
    ("http", "events-as-json", 3, "set `Content-Type: text/event-stream`"),
    ("http", "events-as-text", 3, "set `Content-Type: text/event-stream`"),
    ("http", "text-plain", 0, "`Content-Type: text/plain`, where clients expect `application/json`"),
    ("http", "rpc-type", 0, "`Content-Type: application/json-rpc`, where clients expect"),
    ("http", "no-type", 0, "no `Content-Type`, where clients expect"),
    ("http", "bom", 0, "byte order mark"),
    ("http", "batch", 0, "found an array"),
    ("sse", "sound", 0, ""),
    ("sse", "event-missing", 0, ""),
    ("sse", "answer-in-post", 3, "send the message on the event stream"),
    ("sse", "answer-in-both", 0, "in the response to a POST"),
    ("sse", "endpoint-no-data", 3, "begin the line with `data: `"),
];

/// The same of what no client reads, and whose form tells what has to be done.
const REMEDIED: &[(&str, &str, i32, &str)] = &[
    ("stdio", "prefix", 3, "there is something else before it"),
    ("stdio", "colors", 3, "without colors"),
    ("stdio", "event-on-stdio", 3, "belongs to event streams"),
    ("stdio", "headers", 3, "unlike LSP"),
    ("stdio", "quotes", 3, "single quotes"),
    ("stdio", "utf-16", 3, "stdout is UTF-16"),
    ("stdio", "logs-what-it-sends", 0, "a line on stdout that is not an MCP message"),
    ("http", "host-refused", 3, "server refuses access: HTTP 403 for `server/discover`: Invalid Host header"),
    ("http", "accepted", 3, "HTTP 202"),
    ("http", "twice", 3, "serialize the message once"),
    ("http", "wrapped", 3, "send the message itself as the body"),
];

/// Runs of `tools` at the same time.
const AT_ONCE: usize = 4;

#[test]
fn a_server_is_used_wherever_mainstream_clients_use_it_and_what_is_odd_is_said() {
    let queue = Mutex::new([USED, REMEDIED].concat());
    let wrong = Mutex::new(String::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((transport, oddity, code, said)) = queue.lock().unwrap().pop() {
                    let words = odd(transport, oddity);
                    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
                    words.splice(0..0, ["tools", "--timeout", "5s", "--transport", transport]);
                    let ran = run(Path::new("."), &words);
                    let is_said = if said.is_empty() { ran.stderr.is_empty() } else { ran.stderr.contains(said) };
                    if ran.code != Some(code) || !is_said || (code == 0) != ran.stdout.contains("echo") {
                        *wrong.lock().unwrap() += &format!("{transport} {oddity}: {:?}\n{}{}\n", ran.code, ran.stdout, ran.stderr);
                    }
                }
            });
        }
    });
    assert_eq!(wrong.into_inner().unwrap(), "");
}

/// Transport and oddity, and a part of the message and of the hint of what `test` says, if it fails for it.
type Tested = (&'static str, &'static str, Option<(&'static str, &'static str)>);

const TESTED: &[Tested] = &[
    ("stdio", "sound", None),
    ("stdio", "crlf", None),
    ("stdio", "noise", Some(("a line on stdout that is not an MCP message", "logs to stderr"))),
    ("stdio", "string-id", Some(("where the request had the number", "1 is not \"1\""))),
    ("stdio", "prefix", Some(("the response is not a valid message", "there is something else before it"))),
    ("stdio", "quotes", Some(("the response is not a valid message", "single quotes"))),
    ("stdio", "half-character", Some(("the response is not a valid message", "cut texts between characters"))),
    ("stdio", "utf-16", Some(("the response is not a valid message", "stdout is UTF-16"))),
    ("stdio", "no-newline", Some(("without a line feed", "end each message with a line feed"))),
    ("http", "sound", None),
    ("http", "event-crlf", None),
    ("http", "event-fields", None),
    ("http", "no-blank-line", Some(("without the blank line", "two line feeds"))),
    ("http", "no-blank-line --stays", Some(("without the blank line", "two line feeds"))),
    ("http", "no-data", Some(("outside of `data:`", "write `data: ` before the message"))),
    ("http", "data-case", Some(("outside of `data:`", "in lowercase"))),
    ("http", "event-other", Some(("a message in an event named `response`", "`event: message`"))),
    ("http", "event-open --stays", Some(("without the blank line", "two line feeds"))),
    ("http", "json-as-events", Some(("outside of `data:`", "`Content-Type: application/json`"))),
    ("http", "json-as-open-events", Some(("outside of `data:`", "`Content-Type: application/json`"))),
    ("http", "events-as-json", Some(("not JSON", "`Content-Type: text/event-stream`"))),
    ("http", "events-as-text", Some(("text/plain", "`Content-Type: text/event-stream`"))),
    ("http", "text-plain", Some(("text/plain", "`Content-Type: application/json`"))),
    ("sse", "sound", None),
    ("sse", "no-blank-line", Some(("without the blank line", "two line feeds"))),
    ("sse", "no-data", Some(("outside of `data:`", "write `data: ` before the message"))),
    ("sse", "event-other", Some(("a message in an event named `response`", "`event: message`"))),
    ("sse", "endpoint-open", Some(("without the blank line", "two line feeds"))),
    ("sse", "endpoint-no-data", Some(("outside of `data:`", "begin the line with `data: `"))),
    ("sse", "answer-in-post", Some(("in the response to a POST", "send the message on the event stream"))),
    ("sse", "answer-in-both", Some(("in the response to a POST", "send the message on the event stream"))),
];

#[test]
fn a_test_names_what_is_wrong_with_an_event_stream() {
    let folder = tempfile::tempdir().unwrap();
    let program = server().display().to_string();
    for (number, (transport, oddity, _)) in TESTED.iter().enumerate() {
        let (way, path) = (format!("python3 {program} {oddity} --{transport} ${{port}}"), if *transport == "sse" { "sse" } else { "mcp" });
        let reach = match *transport {
            "stdio" => format!("stdio: python3 {program} {oddity}"),
            _ => format!("{transport}: {{ command: \"{way}\", url: \"http://127.0.0.1:${{port}}/{path}\" }}"),
        };
        let text = format!(
            "server: {{ era: legacy, {reach} }}\ntimeouts: {{ connect: 10s, request: 3s }}\ntests: [{{ name: \"{transport} {oddity}\", steps: [tools] }}]\n"
        );
        std::fs::write(folder.path().join(format!("{number:02}.mcproof.yaml")), text).unwrap();
    }
    let ran = run(folder.path(), &["test", "--json", "--jobs", "8"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    let events = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let finished: Vec<Value> = events.filter(|event| event["event"] == "test-finished").collect();
    let mut wrong = String::new();
    for (number, (transport, oddity, told)) in TESTED.iter().enumerate() {
        let name = format!("{transport} {oddity}");
        // The files are in the order of their names, with one test each.
        let Some(finished) = finished.iter().find(|event| event["id"] == number) else {
            wrong += &format!("{name} has no verdict\n");
            continue;
        };
        let text = finished.to_string();
        let is_right = match told {
            None => text.contains("\"verdict\":\"pass\""),
            Some((message, hint)) => {
                let quoted = |part: &str| serde_json::to_string(part).unwrap().trim_matches('"').to_owned();
                text.contains("\"verdict\":\"fail\"") && text.contains(&quoted(message)) && text.contains(&quoted(hint))
            }
        };
        if !is_right {
            wrong += &format!("{name}: {finished:#}\n");
        }
    }
    assert_eq!(wrong, "", "{}", ran.stderr);
}

#[test]
fn a_second_session_on_one_server_shows_what_leaks_between_them() {
    let folder = tempfile::tempdir().unwrap();
    let check = |oddity: &str, code: i32, said: &str| {
        let program = server().display().to_string();
        let text = format!(
            "server: {{ http: {{ command: \"python3 {program} {oddity} --http ${{port}}\", url: \"http://127.0.0.1:${{port}}/mcp\" }} }}\n\
             tests:\n  - name: sessions are apart\n    steps:\n\
             \x20     - {{ call: set, with: {{ key: user, value: ann }} }}\n\
             \x20     - {{ call: get, session: other, with: {{ key: user }}, tool_error: /no value/ }}\n\
             \x20     - {{ call: set, session: other, with: {{ key: user, value: bob }} }}\n\
             \x20     - {{ call: get, with: {{ key: user }}, expect: ann }}\n"
        );
        std::fs::write(folder.path().join("s.mcproof.yaml"), text).unwrap();
        let ran = run(folder.path(), &["test", "s.mcproof.yaml"]);
        assert_eq!(ran.code, Some(code), "{oddity}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains(said), "{oddity}: {}", ran.stdout);
    };
    check("sessions", 0, "1 passed");
    check("one-dictionary", 1, "expected an `isError` result");
    // Over stdio there is no other session: where no transport has one, that is a mistake in the suite.
    let text = "server: { stdio: python3 x.py }\ntests: [{ name: a, steps: [{ tools: , session: other }] }]\n";
    std::fs::write(folder.path().join("t.mcproof.yaml"), text).unwrap();
    let ran = run(folder.path(), &["test", "t.mcproof.yaml"]);
    assert_eq!(ran.code, Some(2), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("`session` needs an HTTP transport"), "{}", ran.stderr);
}

/// Steps that would be satisfied if nobody looked closely, and what is said instead.
#[test]
fn a_test_does_not_pass_where_nothing_was_shown() {
    let folder = tempfile::tempdir().unwrap();
    let check = |oddity: &str, steps: &str, said: Option<&str>| {
        let program = server().display().to_string();
        let text = format!(
            "server:\n  stdio: python3 {program} {oddity}\n\
             \x20 http: {{ command: \"python3 {program} {oddity} --http ${{port}}\", url: \"http://127.0.0.1:${{port}}/mcp\" }}\n\
             tests:\n  - name: shown\n    steps: [{steps}]\n"
        );
        std::fs::write(folder.path().join("s.mcproof.yaml"), text).unwrap();
        let transport = if steps.contains("http:") || steps.contains("raw:") { "http" } else { "stdio" };
        let ran = run(folder.path(), &["test", "s.mcproof.yaml", "--transport", transport]);
        assert_eq!(ran.code, Some(i32::from(said.is_some())), "{oddity} {steps}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains(said.unwrap_or("1 passed")), "{oddity} {steps}: {}", ran.stdout);
    };
    // Clients refuse such a result.
    check("sound", "{ call: echo, expect: said again }", None);
    check(
        "is-error-in-text",
        "{ call: echo, expect: said again }",
        Some("`isError` is \"true\"; it has to be true or false, at `/isError`"),
    );
    check("text-is-number", "{ call: echo }", Some("at `/content/0/text`"));
    check("sound", "{ read: 'note://a' }", None);
    check("no-contents", "{ read: 'note://a' }", Some("at `/contents`"));
    // Nothing to look at.
    check("sound", "{ read: 'note://a', expect: { $not: { $text: /secret/ } } }", Some("cannot be checked"));
    check("sound", "{ call: echo, result: { content: { $all: { type: text } } } }", None);
    // The names of headers have no case.
    check("sound", "{ http: GET /none, expect: { headers: { SERVER: { $absent: true } } } }", Some("no such key"));
    check("sound", "{ http: GET /none, expect: { headers: { $not: { $contains: Server } } } }", Some("something that contains"));
    check("sound", "{ http: GET /none, save: { software: headers.Server }, expect: { headers: { $contains: SERVER } } }", None);
    // The server has ended by itself.
    let end = "{ call: echo }, { run: sleep 0.5 }, { close_stdin: , exited: { code: 3 } }";
    check("ends-after-call", end, Some("before this step told it to end"));
    check("ends-after-call", "{ call: echo }, { ping: , timeout: 2s, fails: true }", Some("server exited with code 3"));
    // One id for several requests is one after the other.
    let raw = "{ raw: { jsonrpc: '2.0', id: 88, method: ping }, times: 5, result: {} }";
    check("sound", raw, None);
}

#[test]
fn progress_extends_a_timeout_where_a_suite_says_how_far() {
    let folder = tempfile::tempdir().unwrap();
    let program = server().display().to_string();
    let text = format!(
        "server: {{ stdio: python3 {program} sound, era: legacy }}\n\
         timeouts: {{ request: 700ms, max: 20s }}\n\
         tests:\n  - {{ name: of the suite, steps: [{{ call: slow }}] }}\n\
         \x20 - {{ name: of the step, steps: [{{ call: slow, timeout: 600ms, max_timeout: 15s }}] }}\n\
         \x20 - {{ name: not so far, steps: [{{ call: slow, max_timeout: 1s }}] }}\n"
    );
    std::fs::write(folder.path().join("s.mcproof.yaml"), text).unwrap();
    let ran = run(folder.path(), &["test", "s.mcproof.yaml"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    for part in ["2 passed", "1 failed", "no response to `tools/call` within 1 s"] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
}

/// The last two columns of the page are what is tested here.
#[test]
fn the_page_tells_what_is_tested() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tolerance.md")).unwrap();
    let row = |transport: &str, oddity: &str| {
        let line = page.lines().find(|line| line.starts_with(&format!("| {transport} |")) && line.contains(&format!("| `{oddity}` |")));
        line.map(|line| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>())
    };
    let mut compared = 0;
    for (transport, oddity, code, said) in USED.iter().filter(|(_, oddity, ..)| *oddity != "sound") {
        let cells = row(transport, oddity).unwrap_or_else(|| panic!("{transport} {oddity} is not on the page"));
        let expected = match (code, said.is_empty()) {
            (0, true) => "works",
            (0, false) => "works, and says so",
            _ => "fails",
        };
        assert_eq!(cells[9], expected, "{transport} {oddity}");
        compared += 1;
    }
    for (transport, oddity, told) in TESTED {
        let Some(cells) = row(transport, oddity) else { continue };
        assert_eq!(cells[10], if told.is_none() { "passes" } else { "fails" }, "{transport} {oddity}");
        compared += 1;
    }
    assert!(compared > 40, "{compared}");
}

/// A server that listens at a URL, until this is dropped.
struct Listening(Child);

impl Listening {
    fn start(oddity: &str, port: u16) -> Self {
        let port = port.to_string();
        let command = Command::new("python3").arg(server()).args([oddity, "--http", &port]).stderr(Stdio::null()).spawn();
        Self(command.unwrap())
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_server_is_ready_when_it_has_answered() {
    let folder = tempfile::tempdir().unwrap();
    let check = |words: &[&str], code: i32, said: &str| {
        let ran = run(folder.path(), words);
        assert_eq!(ran.code, Some(code), "{words:?}: {}{}", ran.stdout, ran.stderr);
        assert!(format!("{}{}", ran.stdout, ran.stderr).contains(said), "{words:?}: {}{}", ran.stdout, ran.stderr);
    };
    for oddity in ["503-at-first", "reset-at-first"] {
        let words = odd("http", oddity);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let lock = format!("{oddity}.lock");
        check(&[&["lock", "--era", "legacy", "--output", &lock], &words[..]].concat(), 0, "wrote ");
        check(&[&["tools"], &words[..]].concat(), 0, "echo");
        // A server at a URL that nobody starts gets a moment, too; a probe tells how it is now.
        let port = mcproof_testkit::free_port();
        let url = format!("http://127.0.0.1:{port}/mcp");
        let _server = Listening::start(oddity, port);
        check(&["probe", &url], 3, "un");
        check(&["tools", "--connect-timeout", "20s", &url], 0, "echo");
    }
}

/// The start is not what is judged: a server that refuses every POST until it is ready, and no GET, gets the findings of one that is
/// ready at once.
#[test]
fn a_check_judges_what_comes_after_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let [sound, refusing, resetting] = ["sound", "503-at-first", "reset-at-first"].map(|oddity| {
        let words = odd("http", oddity);
        let ran = run(folder.path(), &[&["check", "--json"], &words.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat());
        let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{oddity}: {:?}\n{}", ran.code, ran.stderr));
        let judged = report["rules"].as_array().unwrap().iter().filter(|ruling| ruling["judged"]["findings"].is_array());
        judged.map(|ruling| ruling["rule"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    });
    assert!(sound.contains(&"call-unknown-tool-is-refused".to_owned()), "{sound:?}");
    assert_eq!([&refusing, &resetting], [&sound; 2]);
}

/// What clients pass over is told by a rule of its own, and nothing else is left unchecked for it.
#[test]
fn a_check_goes_on_where_clients_do() {
    let words = odd("sse", "answer-in-both");
    let start = ["check", "--json", "--transport", "sse"];
    let ran = run(Path::new("."), &[&start[..], &words.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat());
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{:?}\n{}", ran.code, ran.stderr));
    let ruling = |id: &str| report["rules"].as_array().unwrap().iter().find(|ruling| ruling["rule"] == id).unwrap().clone();
    let copies = ruling("request-gets-one-response");
    assert!(copies.to_string().contains("in the body of the response to its POST"), "{copies}");
    assert_eq!(ruling("initialize-gets-result")["judged"]["verdict"], "pass", "{}", ran.stdout);
}

/// What is wrong with a server only after its first call, or only once nobody asks it any more.
#[test]
fn a_check_sees_what_calls_leave_behind() {
    let check = |oddity: &str, code: i32, said: &str| {
        let words = odd("stdio", oddity);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ran = run(Path::new("."), &[&["check"], &words[..]].concat());
        assert!(ran.code == Some(code) && ran.stdout.contains(said), "{oddity}: {:?}\n{}{}", ran.code, ran.stdout, ran.stderr);
    };
    check("answers-once", 1, "`echo` responded at once, and then to no further call");
    check("ascii-only", 1, "`echo` responds at once, but not to a call with a string of unusual characters");
    check("fails-later", 1, "server-stays-alive");
}

/// A server that does one request after the other is sound, however long its tools take; one that leaves a call without a response is not.
#[test]
fn a_serial_server_with_a_slow_tool_is_sound_and_one_that_loses_a_call_is_not() {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/serial.py").display().to_string();
    let check = |words: &[&str], code: i32, said: &str| {
        let ran = run(Path::new("."), &[&["check", "--deadline", "3m", "--", "python3", &program], words].concat());
        assert!(ran.code == Some(code) && ran.stdout.contains(said), "{words:?}: {:?}\n{}{}", ran.code, ran.stdout, ran.stderr);
        assert_eq!(
            code != 0,
            ran.stdout.contains("request-gets-response") || ran.stdout.contains("inconclusive"),
            "{words:?}: {}",
            ran.stdout
        );
    };
    check(&["0"], 0, "0 failures");
    check(&["1.5"], 0, "0 failures");
    check(&["3"], 0, "0 failures");
    check(&["0", "forgets-missing"], 1, "request-gets-response");
    check(&["0", "forgets-fourth"], 1, "although others like them got a response");
}

/// What was given up before `--timeout` may be on its way: latency that varies is no loss.
#[test]
fn a_server_whose_tool_is_slow_now_and_then_is_sound() {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/varying.py").display().to_string();
    for (manner, seconds) in [("every-third", "4"), ("every-third", "8"), ("one-per", "2")] {
        let ran = run(Path::new("."), &["check", "--deadline", "3m", "--", "python3", &program, manner, seconds]);
        let is_sound = ran.code == Some(0) && ran.stdout.contains("0 failures") && !ran.stdout.contains("inconclusive");
        assert!(is_sound, "{manner} {seconds}: {:?}\n{}{}", ran.code, ran.stdout, ran.stderr);
        assert!(!ran.stdout.contains("request-gets-response"), "{manner} {seconds}: {}", ran.stdout);
    }
}

/// Two traces of calls that say the same are still different where the server did anything else.
#[test]
fn a_comparison_of_traces_sees_more_than_responses() {
    let folder = tempfile::tempdir().unwrap();
    let trace = |oddity: &str| {
        let words = odd("stdio", oddity);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let file = format!("{oddity}.mcptrace");
        run(folder.path(), &[&["call", "echo", "--era", "legacy", "--trace", &file], &words[..]].concat());
        file
    };
    let sound = trace("sound");
    let check = |oddity: &str, filter: &[&str], code: i32, said: &str| {
        let ran = run(folder.path(), &[&["trace", "diff", &sound, &trace(oddity)], filter].concat());
        assert!(ran.code == Some(code) && ran.stdout.contains(said), "{oddity}: {:?}\n{}{}", ran.code, ran.stdout, ran.stderr);
    };
    check("sound", &[], 0, "0 changed, 0 removed, 0 added");
    check("logs", &[], 1, "added    notifications/message {\"level\":\"error\",\"data\":\"disk full\"}");
    check("logs", &["kind:request"], 0, "0 added");
    check("logs", &["-method:notifications/message"], 0, "0 added");
    check("noise", &[], 1, "added    not a message \"[info] tools/call\"");
    check("noise", &["kind:request"], 0, "0 added");
    check("twice-each", &[], 1, "added    response");
    check("fails-at-end", &[], 1, "added    exit {\"code\":1");
    check("ends-after-call", &[], 1, "added    exit {\"code\":3");
    check("logs", &["kinds:request"], 2, "");
}

/// A client of a suite that says more than the server knows, or nearly what it knows, tests something else than what is written.
#[test]
fn a_test_tells_what_its_author_misspelled() {
    let folder = tempfile::tempdir().unwrap();
    let program = server().display().to_string();
    let check = |test: &str, code: i32, said: &str| {
        let text = format!("server: {{ era: legacy, stdio: python3 {program} form }}\ntests: [{{ name: a, {test} }}]\n");
        std::fs::write(folder.path().join("a.mcproof.yaml"), text).unwrap();
        let ran = run(folder.path(), &["test", "--trace", "off"]);
        assert!(ran.code == Some(code) && ran.stdout.contains(said), "{test}: {:?}\n{}{}", ran.code, ran.stdout, ran.stderr);
    };
    let answered = |answers: &str| format!("steps: [{{ call: form, answers: {{ elicitation: {answers} }} }}]");
    check(&answered("{ newsletter: true, email: a@b.de }"), 0, "1 passed");
    check(&answered("decline"), 0, "1 passed");
    check(&answered("{ newsleter: true }"), 1, "the form of the server has no field `newsleter`: did you mean `newsletter`?");
    // Nothing that a form has: it may be for another one.
    check(&answered("{ age: 5 }"), 0, "1 passed");
    check("answers: { elicitation: { newsleter: true } }, steps: [{ call: form }]", 0, "no field `newsleter`");
    // What was not asked for is told, where the step itself has it.
    let unused = "steps: [{ call: form, with: { done: true }, answers: { elicitation: decline } }]";
    check(unused, 0, "the answer for `elicitation` was not used");
    check("answers: { elicitation: decline }, steps: [{ call: form, with: { done: true } }]", 0, "1 passed");
    check(
        "steps: [{ call: form, with: { donne: true }, answers: { elicitation: decline } }]",
        1,
        "`form` has no argument `donne`: did you mean `done`?",
    );
    check("answers: { elicitation: decline }, steps: [{ call: form, with: { donne: true }, fails: true }]", 1, "");
    check("answers: { elicitation: decline }, steps: [{ call: form, with: { other: true } }]", 0, "1 passed");
    // `echo` takes whatever it gets.
    check("steps: [{ call: echo, with: { donne: true } }]", 0, "1 passed");
    let schema = |keyword: &str| format!("steps: [{{ call: echo, expect: {{ $schema: {{ type: string, {keyword} }} }} }}]");
    check(&schema("minLength: 1"), 0, "1 passed");
    check(&schema("minLenght: 1"), 2, "");
    check(&schema("format: dat"), 2, "");
    check(&schema("format: date-time"), 1, "valid by its schema");
}

/// The verbs that use a server, as a person would type them; a lock is there for those that compare.
const USING: &[(&[&str], &str)] = &[
    (&["tools"], "echo"),
    (&["call", "echo"], "said again"),
    (&["ping"], ""),
    (&["inspect", "--method", "tools/list"], "echo"),
    (&["init", "--force"], "tool called"),
    (&["lock", "--output", "new.lock"], "wrote "),
    (&["lock", "--verify"], ""),
    (&["diff", "mcproof.lock"], ""),
    (&["hash"], "sha256:"),
    (&["probe"], "1 tool"),
];

/// Each verb works and says what was odd; with `--strict` it says so and fails, and writes nothing.
#[test]
fn who_is_strict_fails_for_what_is_odd() {
    let folder = tempfile::tempdir().unwrap();
    let ran = |words: &[&str], oddity: &str| {
        let of_server = odd("stdio", oddity);
        let of_server: Vec<&str> = of_server.iter().map(String::as_str).collect();
        // A command comes last; the words of one that is called follow the target's flags all the same.
        run(folder.path(), &[words, &of_server].concat())
    };
    assert_eq!(ran(&["lock"], "sound").code, Some(0));
    for (words, shown) in USING {
        for (oddity, said) in [("noise", "a line on stdout that is not an MCP message"), ("string-id", "where the request had the number")]
        {
            let used = ran(words, oddity);
            let text = format!("{words:?} {oddity}: {:?}\n{}{}", used.code, used.stdout, used.stderr);
            assert_eq!(used.code, Some(0), "{text}");
            assert!(used.stdout.contains(shown) && used.stderr.contains(said), "{text}");
        }
        let strict = [words, &["--strict"][..]].concat();
        let sound = ran(&strict, "sound");
        assert_eq!(sound.code, Some(0), "{words:?}: {}{}", sound.stdout, sound.stderr);
        for file in ["new.lock", "odd.mcproof.yaml"] {
            let _ = std::fs::remove_file(folder.path().join(file));
        }
        let refused = ran(&strict, "noise");
        let text = format!("{strict:?}: {:?}\n{}{}", refused.code, refused.stdout, refused.stderr);
        assert_eq!(refused.code, Some(1), "{text}");
        assert!(refused.stderr.contains("a line on stdout that is not an MCP message"), "{text}");
        assert_eq!(words[0] != "probe", refused.stderr.contains("some clients reject"), "{text}");
        for file in ["new.lock", "odd.mcproof.yaml"] {
            assert!(!folder.path().join(file).exists(), "{text}");
        }
    }
}

/// A monitor warns of a server that is odd, and pages where its target is strict.
#[test]
fn a_strict_target_of_a_monitor_is_down_when_it_is_odd() {
    let folder = tempfile::tempdir().unwrap();
    let program = server().display().to_string();
    for (key, word, code) in [("", "warning", 0), (", strict: true", "down", 1)] {
        let text = format!("targets:\n  odd: {{ stdio: python3 {program} noise{key} }}\n");
        std::fs::write(folder.path().join("mcproof.watch.yaml"), text).unwrap();
        let ran = run(folder.path(), &["watch", "mcproof.watch.yaml", "--once"]);
        assert_eq!(ran.code, Some(code), "{key}: {}{}", ran.stdout, ran.stderr);
        assert!(format!("{}{}", ran.stdout, ran.stderr).contains(word), "{key}: {}{}", ran.stdout, ran.stderr);
    }
}

/// A response that comes after the client has given up was not looked at, and is no sign of a server that does not respond.
#[test]
fn a_list_that_comes_after_the_timeout_was_not_checked() {
    let folder = tempfile::tempdir().unwrap();
    for transport in ["stdio", "http"] {
        let server = odd(transport, "slow-list");
        let words: Vec<&str> = ["check", "--timeout", "500ms"].into_iter().chain(server.iter().map(String::as_str)).collect();
        let ran = run(folder.path(), &words);
        // Over stdio it has real failures besides: it does not survive what is not JSON.
        assert_eq!(ran.code, Some(if transport == "stdio" { 1 } else { 3 }), "{transport}: {}{}", ran.stdout, ran.stderr);
        assert!(
            ran.stdout.contains("`tools/list` got no response in time, so what it lists was not checked"),
            "{transport}: {}",
            ran.stdout
        );
        assert!(!ran.stdout.contains("request-gets-response"), "{transport}: {}", ran.stdout);
    }
}
