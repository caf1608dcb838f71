//! `mcproof proxy` changes nothing between a client and a server, records it, and leaves nothing behind.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(target_os = "linux")]

mod processes;

use mcproof_record::FrameBody;
use mcproof_trace::{MarkBody, Trace, TraceLine};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use processes::until;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::{Duration, Instant};

const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");

fn odd_server(code: &str) -> Vec<String> {
    ["python3", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/relayed/odd.py"), code].map(str::to_owned).to_vec()
}

fn proxied(trace: &Path, server: &[String]) -> Vec<String> {
    let flags = [MCPROOF, "proxy", "--trace", trace.to_str().unwrap(), "--"].map(str::to_owned);
    flags.into_iter().chain(server.iter().cloned()).collect()
}

fn start(command: &[String]) -> (Child, ChildStdin) {
    let mut child = Command::new(&command[0]);
    let mut child = child.args(&command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take().unwrap();
    (child, stdin)
}

fn talk(command: &[String], input: &[u8]) -> Output {
    let (child, mut stdin) = start(command);
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// The frames of a trace.
fn bodies(trace: &Path) -> Vec<FrameBody> {
    let frame = |line| match line {
        TraceLine::Frame(frame) => Some(frame.body),
        _ => None,
    };
    Trace::open(trace).unwrap().filter_map(|line| frame(line.unwrap())).collect()
}

/// The line that the proxy itself writes on stderr.
fn without_notice(stderr: &[u8]) -> Vec<u8> {
    let end = stderr.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    assert!(stderr.starts_with(b"mcproof proxy: writing the trace to "), "{}", String::from_utf8_lossy(stderr));
    stderr[end..].to_vec()
}

#[test]
fn a_server_and_its_client_see_the_same_bytes_and_the_same_end() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("odd.mcptrace");
    let mut input = b"{\"jsonrpc\":\"2.0\"}\n\xff\xfe\n".to_vec();
    input.extend((0..5_000_000_u32).map(|number| (number % 251) as u8));
    let alone = talk(&odd_server("7"), &input);
    let relayed = talk(&proxied(&trace, &odd_server("7")), &input);
    assert_eq!((alone.status.code(), relayed.status.code()), (Some(7), Some(7)));
    assert!(relayed.stdout == alone.stdout, "{} and {} bytes", relayed.stdout.len(), alone.stdout.len());
    assert_eq!(without_notice(&relayed.stderr), alone.stderr);
    let recorded = bodies(&trace);
    assert!(recorded.iter().any(|body| matches!(body, FrameBody::Line { bytes, .. } if bytes.as_bytes() == b"\xff\xfe\x00")));
    assert!(
        recorded.iter().any(|body| matches!(body, FrameBody::Line { bytes, unterminated: true } if bytes.as_bytes() == b"no line feed"))
    );
    assert!(recorded.iter().any(|body| matches!(body, FrameBody::Exited { code: Some(7), .. })));
}

#[test]
fn the_proxy_ends_by_the_signal_that_ended_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = ["sh", "-c", "kill -SEGV $$"].map(str::to_owned);
    assert_eq!(talk(&proxied(&folder.path().join("x"), &server), b"").status.signal(), Some(Signal::SIGSEGV as i32));
}

#[test]
fn a_signal_reaches_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = ["sh", "-c", "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.05; done"].map(str::to_owned);
    let (mut child, stdin) = start(&proxied(&folder.path().join("x"), &server));
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
    stdout.read_to_string(&mut line).unwrap();
    assert_eq!((line.as_str(), child.wait().unwrap().code()), ("ready\nbye\n", Some(5)));
    drop(stdin);
}

/// A server with a child; both ignore whatever asks them to end.
fn stubborn(marker: &str) -> Vec<String> {
    ["sh", "-c", &format!("trap '' TERM INT HUP; sleep {marker} & echo ready; while :; do sleep {marker}; done")]
        .map(str::to_owned)
        .to_vec()
}

#[test]
fn nothing_is_left_when_either_side_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    for (round, kills_proxy) in [(1, true), (2, false)] {
        let marker = &format!("87{round}{}", std::process::id());
        let (mut child, stdin) = start(&proxied(&folder.path().join("x"), &stubborn(marker)));
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        if kills_proxy {
            child.kill().unwrap();
        } else {
            // What a killed client leaves: its ends of the pipes are closed.
            drop((stdin, stdout, child.stderr.take()));
        }
        child.wait().unwrap();
        until(marker, |count| count == 0);
    }
}

#[test]
fn a_trace_of_a_killed_proxy_opens() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("killed.mcptrace");
    let (mut child, mut stdin) = start(&proxied(&trace, &["cat".to_owned()]));
    stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    // The frame of the line that came back is written after that of the line that went.
    let lines = || bodies(&trace).iter().filter(|body| matches!(body, FrameBody::Line { .. })).count();
    while lines() < 1 {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(lines() >= 1);
}

/// A demo server behind a listening proxy, and the URL of the proxy.
fn listening(transport: &str, flags: &[&str]) -> (Listening, String) {
    let path = if transport == "sse" { "sse" } else { "mcp" };
    let url = format!("http://127.0.0.1:${{port}}/{path}");
    let mut command = Command::new(MCPROOF);
    command.args(["proxy", "--listen", "127.0.0.1:0", "--no-trace"]).args(flags).arg(url);
    command.args(["--", MCPROOF, "demo", "shop", "--transport", transport, "--port", "${port}"]);
    announced(command)
}

/// A proxy that listens, and its URL.
fn announced(mut command: Command) -> (Listening, String) {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    let url = loop {
        let begun = said.len();
        assert!(stderr.read_line(&mut said).unwrap() > 0, "{said}");
        if let Some(url) = said[begun..].trim().strip_prefix("mcproof proxy: listening on ") {
            break url.to_owned();
        }
    };
    child.stderr = Some(stderr.into_inner());
    (Listening(Some(child)), url)
}

/// A proxy that ends with its test, even if that fails.
struct Listening(Option<Child>);

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM);
            let _ = child.wait();
        }
    }
}

fn end(mut proxy: Listening) -> Output {
    let mut child = proxy.0.take().unwrap();
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
    drop(child.stdin.take());
    child.wait_with_output().unwrap()
}

#[test]
fn clients_of_each_transport_and_era_use_a_server_through_the_proxy() {
    for (transport, era) in [("http", "legacy"), ("http", "modern"), ("sse", "legacy")] {
        let (proxy, url) = listening(transport, &["--fail-on", "error"]);
        let tools = |server: &[&str]| {
            let flags = ["tools", "--era", era, "--transport", transport, "--json"];
            let output = Command::new(MCPROOF).args(flags).args(server).output().unwrap();
            assert!(output.status.success(), "{transport} {era}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        let path = if transport == "sse" { "sse" } else { "mcp" };
        let direct = format!("http://127.0.0.1:${{port}}/{path}");
        let alone = tools(&[&direct, "--", MCPROOF, "demo", "shop", "--transport", transport, "--port", "${port}"]);
        assert_eq!(tools(&[&url]), alone, "{transport} {era}");
        let ended = end(proxy);
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!((ended.status.code(), ended.stdout.len()), (Some(0), 0), "{transport} {era}: {said}");
    }
}

/// A server on this machine gets the name as it is, so that what it does about it is seen; with credentials of ours, the proxy is the guard.
#[test]
fn a_page_that_resolves_its_own_name_to_the_proxy_is_refused() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", server.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let (stream, _) = server.accept().unwrap();
        let mut head = String::new();
        let mut lines = BufReader::new(&stream);
        while lines.read_line(&mut head).unwrap() > 2 {}
        (&stream).write_all(b"HTTP/1.1 421 Misdirected Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
        head.to_ascii_lowercase()
    });
    let ask = |flags: &[&str]| {
        let mut command = Command::new(MCPROOF);
        command.args(["proxy", "--listen", "127.0.0.1:0", "--no-trace"]).args(flags).arg(&url);
        let (proxy, near) = announced(command);
        let address = near.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(b"POST /mcp HTTP/1.1\r\nhost: evil.example\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        end(proxy);
        response
    };
    let refused = ask(&["--header", "X-Key: abcd-1234-efgh"]);
    assert!(refused.starts_with("HTTP/1.1 403") && refused.contains("not an address of this proxy"), "{refused}");
    let passed = ask(&[]);
    assert!(passed.starts_with("HTTP/1.1 421"), "{passed}");
    let head = serving.join().unwrap();
    assert!(head.contains("\r\nhost: evil.example\r\n"), "{head}");
}

/// The body of a response, as its bytes come.
fn posted(address: &str, path: &str) -> Vec<u8> {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let body = "grant_type=authorization_code&code=a";
    let head = format!("POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}", body.len());
    stream.write_all(format!("{head}\r\naccept-encoding: gzip\r\n\r\n{body}").as_bytes()).unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).unwrap();
    let end = response.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    response.split_off(end + 4)
}

#[test]
fn what_a_server_compressed_passes_as_it_is_and_is_recorded_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("compressed.mcptrace");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/relayed/compressed.py");
    let mut server = Command::new("python3").arg(script).stdout(Stdio::piped()).spawn().unwrap();
    let mut port = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let server = Listening(Some(server));
    let address = format!("127.0.0.1:{}", port.trim());
    let url = format!("http://{address}/mcp");
    let mut command = Command::new(MCPROOF);
    command.args(["proxy", "--listen", "127.0.0.1:0", "--fail-on", "error", "--trace", trace.to_str().unwrap(), &url]);
    let (proxy, through) = announced(command);
    let near = through.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let sent = posted(&address, "/token");
    assert!(sent.starts_with(b"\x1f\x8b") && posted(near, "/token") == sent);
    // By a client over HTTP, and by one over stdio.
    let called = ["call", through.as_str(), "greet", "--era", "legacy"];
    let output = Command::new(MCPROOF).args(called).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("hello"), "{}", String::from_utf8_lossy(&output.stderr));
    let bridged = ["call", "greet", "--era", "legacy", "--", MCPROOF, "proxy", "--no-trace", &url];
    let output = Command::new(MCPROOF).args(bridged).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("hello"), "{}", String::from_utf8_lossy(&output.stderr));
    let ended = end(proxy);
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    let recorded = bodies(&trace);
    let texts: Vec<String> = recorded
        .iter()
        .filter_map(|body| match body {
            FrameBody::HttpBody { bytes, .. } | FrameBody::SseEvent { bytes, .. } => Some(bytes.to_text().into_owned()),
            _ => None,
        })
        .collect();
    let has = |part: &str| texts.iter().any(|text| text.contains(part));
    assert!(has("access_token") && has("\"tools\"") && has("data: ") && has("hello"), "{texts:?}");
    assert!(!has("token-of-nobody"), "{texts:?}");
    // What is compressed in a way that we cannot read passes as well, and proves nothing.
    let mut command = Command::new(MCPROOF);
    command.args(["proxy", "--listen", "127.0.0.1:0", "--fail-on", "error", "--no-trace", &url]);
    let (proxy, through) = announced(command);
    assert!(Command::new(MCPROOF).args(["tools", through.as_str(), "--era", "legacy"]).output().unwrap().status.success());
    let near = through.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    assert_eq!(posted(near, "/unknown"), b"nobody reads this");
    let ended = end(proxy);
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.code() == Some(1) && said.contains("the content of a body could not be read"), "{said}");
    drop(server);
}

#[test]
fn what_may_follow_from_a_fault_of_the_proxy_is_no_finding() {
    let request =
        |id: u32, method: &str, params: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n");
    let hello = r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#;
    let call = r#"{"name":"check_inventory","arguments":{"product_id":"PROD-123"}}"#;
    let initialized = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
    let input = [request(1, "initialize", hello), initialized.to_owned(), request(2, "tools/call", call)].concat();
    let flags = ["--no-trace", "--fail-on", "error", "--fault", "duplicate tool=check_inventory"];
    let command = [&[MCPROOF, "proxy"], &flags[..], &["--", MCPROOF, "demo", "shop"]].concat();
    let ended = talk(&command.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), input.as_bytes());
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(said.contains("1 finding left out, which may follow from the injected faults"), "{said}");
    assert_eq!((ended.status.code(), said.contains("error: ")), (Some(0), false), "{said}");
}

#[test]
fn findings_fail_the_proxy_where_that_was_requested() {
    let script = "echo hello; read line; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"serverInfo\":{\"name\":\"a\",\"version\":\"1\"}}}'";
    let server = ["sh", "-c", script].map(str::to_owned);
    let request = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let judged = |input: &[u8]| {
        let command: Vec<String> =
            [MCPROOF, "proxy", "--no-trace", "--fail-on", "error", "--"].map(str::to_owned).into_iter().chain(server.clone()).collect();
        talk(&command, input)
    };
    let broken = judged(&[&request[..], b"\n"].concat());
    let said = String::from_utf8_lossy(&broken.stderr).into_owned();
    assert_eq!(broken.status.code(), Some(1), "{said}");
    assert!(said.contains("stdio-only-messages-on-stdout"), "{said}");
    let nothing = judged(b"\n");
    let said = String::from_utf8_lossy(&nothing.stderr);
    assert_eq!((nothing.status.code(), said.contains("a line on stdout is not a message: `hello`")), (Some(1), true), "{said}");
}

/// A host starts a server again, and some start it twice.
#[test]
fn the_next_start_keeps_the_trace_of_an_earlier_one() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("a.mcptrace");
    let server = [MCPROOF, "demo", "shop"].map(str::to_owned);
    // The first one still records.
    let (child, mut stdin) = start(&proxied(&trace, &server));
    let began = Instant::now();
    while !trace.exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "there is no trace");
        std::thread::sleep(Duration::from_millis(20));
    }
    let second = talk(&proxied(&trace, &server), b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n");
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(said.contains("a-2.mcptrace\n") && said.contains("a.mcptrace exists already, and is kept"), "{said}");
    stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":\"first\",\"method\":\"ping\"}\n").unwrap();
    drop(stdin);
    child.wait_with_output().unwrap();
    let is_ping = |body: &FrameBody| match body {
        FrameBody::Line { bytes, .. } => String::from_utf8_lossy(bytes.as_bytes()).contains("\"method\":\"ping\""),
        _ => false,
    };
    let pings = |path: &Path| bodies(path).iter().filter(|body| is_ping(body)).count();
    assert_eq!((pings(&trace), pings(&folder.path().join("a-2.mcptrace"))), (1, 1));
}

#[test]
fn a_trace_says_which_faults_were_injected() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, faults) = (folder.path().join("a.mcptrace"), folder.path().join("f.yaml"));
    fs::write(&faults, "{ drop: , tool: check_inventory }\n").unwrap();
    let flags = ["--seed", "7", "--faults", faults.to_str().unwrap(), "--fault", "latency=1ms"];
    let words = [&[MCPROOF, "proxy", "--trace", trace.to_str().unwrap()], &flags[..], &["--", MCPROOF, "demo", "shop"]].concat();
    talk(&words.into_iter().map(str::to_owned).collect::<Vec<_>>(), b"");
    let trace = Trace::open(&trace).unwrap();
    let manifest = trace.manifest().clone();
    let lines: Vec<TraceLine> = trace.map(Result::unwrap).collect();
    assert_eq!((manifest.seed, &manifest.command[2..8]), (Some(7), &flags.map(str::to_owned)[..]));
    assert!(lines.iter().any(|line| matches!(line, TraceLine::Attachment(file) if file.name == "faults.yaml")));
}

#[test]
fn findings_are_in_the_trace_and_on_stderr_when_they_happen() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("a.mcptrace");
    let script = "echo hello; read line; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"serverInfo\":{\"name\":\"a\",\"version\":\"1\"}}}'; exec cat >&2";
    let request = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    for (flags, is_judged) in [(&["--fail-on", "error"][..], true), (&[][..], false)] {
        // A recording that exists is kept.
        let _ = fs::remove_file(&trace);
        let words = [&[MCPROOF, "proxy", "--trace", trace.to_str().unwrap()], flags, &["--", "sh", "-c", script]].concat();
        let (child, mut stdin) = start(&words.into_iter().map(str::to_owned).collect::<Vec<_>>());
        stdin.write_all(&[&request[..], b"\n"].concat()).unwrap();
        let is_finding = |line: TraceLine| match line {
            TraceLine::Mark(mark) => matches!(mark.body, MarkBody::Finding { rule, .. } if rule == "stdio-only-messages-on-stdout"),
            _ => false,
        };
        let began = Instant::now();
        // While the session goes on.
        while !Trace::open(&trace).is_ok_and(|lines| lines.filter_map(Result::ok).any(is_finding)) {
            assert!(began.elapsed() < Duration::from_secs(60), "no finding is in the trace");
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let told = said.matches("a line on stdout is not a message").count();
        assert_eq!((output.status.code(), told), (Some(i32::from(is_judged)), usize::from(is_judged)), "{said}");
    }
}

/// A client that gets no response waits in vain, and no rule judges what did not come.
#[test]
fn a_request_without_a_response_is_not_judged() {
    let check = |oddity: &str, waits: Duration, expected: Option<&str>| {
        let server = ["python3", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/odd.py"), oddity];
        let words = [&[MCPROOF, "proxy", "--no-trace", "--fail-on", "error", "--"], &server[..]].concat();
        let (child, mut stdin) = start(&words.into_iter().map(str::to_owned).collect::<Vec<_>>());
        let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#;
        let call = |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo"}}}}"#);
        let lines = [
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#),
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(),
            call(2),
            call(3),
        ];
        lines.iter().for_each(|line| stdin.write_all(format!("{line}\n").as_bytes()).unwrap());
        std::thread::sleep(waits);
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(i32::from(expected.is_some())), "{oddity}: {said}");
        assert!(said.contains(expected.unwrap_or("0 findings")), "{oddity}: {said}");
    };
    let (long, short) = (Duration::from_millis(3000), Duration::ZERO);
    check("sound", long, None);
    check("answers-once", long, Some("the traffic was not judged: tools/call echo has no response after"));
    check("ends-after-call", long, Some("because the server ended"));
    // Who leaves at once has not waited.
    check("sound", short, None);
}

#[test]
fn a_host_is_installed_and_uninstalled_with_the_same_bytes() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".cursor/mcp.json");
    fs::create_dir(home.path().join(".cursor")).unwrap();
    let before = "{ // mine\r\n\t\"mcpServers\": { \"shop\": { \"command\": \"node\", \"args\": [\"server.js\"] } }\r\n}";
    fs::write(&file, before).unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new(MCPROOF);
        let output = command.arg("proxy").args(words).env("HOME", home.path()).env_remove("XDG_CONFIG_HOME").current_dir(home.path());
        let output = output.output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, shown, _) = run(&["install"]);
    assert_eq!((code, shown.starts_with("cursor ")), (Some(0), true), "{shown}");
    let (code, shown, _) = run(&["install", "cursor", "--dry-run"]);
    assert!(code == Some(0) && shown.contains("\"proxy\", \"--\", \"node\""), "{shown}");
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    assert_eq!(run(&["install", "cursor"]).0, Some(0));
    let installed = fs::read_to_string(&file).unwrap();
    assert!(
        installed.contains(&format!("\"command\": \"{MCPROOF}\", \"args\": [\"proxy\", \"--\", \"node\", \"server.js\"]")),
        "{installed}"
    );
    assert_eq!(run(&["uninstall", "cursor", "shop"]).0, Some(0));
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    let (code, _, said) = run(&["install", "cursr"]);
    assert!(code == Some(2) && said.contains("did you mean `cursor`?"), "{said}");
    let (code, _, said) = run(&["install", "zed"]);
    assert!(code == Some(2) && said.contains("--config FILE"), "{said}");
}

/// What a client of ours prints that gets this server.
fn printed(flags: &[&str], server: &[&str]) -> String {
    // A URL comes before the tool, a command after everything.
    let (verb, rest) = flags.split_at(1);
    let words = if server[0] == "--" { [verb, rest, server].concat() } else { [verb, server, rest].concat() };
    let output = Command::new(MCPROOF).args(words).output().unwrap();
    assert!(output.status.success(), "{flags:?} {server:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_client_over_stdio_uses_a_server_at_a_url() {
    let (server, url) = listening("http", &[]);
    for era in ["legacy", "modern"] {
        for verb in [&["tools", "--json"][..], &["call", "check_inventory", "product_id=PROD-123", "--json"]] {
            let flags = [verb, &["--era", era]].concat();
            let direct = printed(&flags, &[&url]);
            assert_eq!(printed(&flags, &["--", MCPROOF, "proxy", "--no-trace", &url]), direct, "{flags:?}");
        }
    }
    end(server);
    // Nobody listens there any more: a response says so.
    let output = Command::new(MCPROOF).args(["tools", "--era", "legacy", "--", MCPROOF, "proxy", "--no-trace", &url]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("mcproof proxy: no response from"), "{said}");
}

#[test]
fn clients_over_http_use_a_stdio_server() {
    let mut command = Command::new(MCPROOF);
    command.args(["proxy", "--listen", "127.0.0.1:0", "--no-trace", "--", MCPROOF, "demo", "shop"]);
    let (server, url) = announced(command);
    let order = ["call", "create_order", "product_id=PROD-123", "quantity=2", "--json"];
    for era in ["legacy", "modern"] {
        for verb in [&["tools", "--json"][..], &["call", "check_inventory", "product_id=PROD-123", "--json"]] {
            let flags = [verb, &["--era", era]].concat();
            assert_eq!(printed(&flags, &[&url]), printed(&flags, &["--", MCPROOF, "demo", "shop"]), "{flags:?}");
        }
        // Sessions have a server each, and what has none shares one.
        printed(&[&order[..], &["--era", era]].concat(), &[&url]);
        let stock = printed(&["call", "check_inventory", "product_id=PROD-123", "--json", "--era", era], &[&url]);
        assert_eq!(stock.contains("\"available\": 8") || stock.contains("\"available\":8"), era == "modern", "{stock}");
        // Through both bridges, it is a stdio server again.
        let flags = ["tools", "--json", "--era", era];
        assert_eq!(printed(&flags, &["--", MCPROOF, "proxy", "--no-trace", &url]), printed(&flags, &["--", MCPROOF, "demo", "shop"]));
    }
    let ended = end(server);
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn clients_at_the_same_time_are_sessions_of_their_own_in_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("a.mcptrace");
    let mut command = Command::new(MCPROOF);
    command.args(["proxy", "--listen", "127.0.0.1:0", "--trace", trace.to_str().unwrap(), "--", MCPROOF, "demo", "shop"]);
    let (server, url) = announced(command);
    let products = ["PROD-123", "PROD-456"];
    let client = |product: &str| {
        let argument = format!("product_id={product}");
        Command::new(MCPROOF).args(["call", &url, "check_inventory", &argument, "--era", "legacy"]).stdout(Stdio::null()).spawn().unwrap()
    };
    let clients = products.map(client);
    clients.into_iter().for_each(|mut client| assert!(client.wait().unwrap().success()));
    end(server);
    let said = |words: &[&str]| {
        let output = Command::new(MCPROOF).arg("trace").args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    for session in 1..=2 {
        let filter = format!("session:{session} tool:check_inventory");
        let shown = said(&["grep", &filter, trace.to_str().unwrap()]);
        assert_eq!(shown.matches("check_inventory").count(), 1, "{shown}");
        // Its response is not that of the other client, whose request has the same id.
        let call = shown.split_whitespace().next().unwrap();
        let whole = said(&["show", trace.to_str().unwrap(), call]);
        assert_eq!(whole.contains("PROD-123"), whole.contains(r#"\"available\":10"#), "{whole}");
        assert_eq!(whole.contains("PROD-456"), whole.contains(r#"\"available\":0"#), "{whole}");
    }
}

/// One server for all, and a session of MCP for each client: what each did is a session of the trace, a test, and what a mock plays.
#[test]
fn each_client_of_a_server_at_a_url_is_a_session_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| {
        let output = Command::new(MCPROOF).current_dir(folder.path()).args(words).output().unwrap();
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        assert!(output.status.success(), "{words:?}: {said}");
        said
    };
    let product = |name: &str| format!("product_id={name}");
    for transport in ["http", "sse"] {
        let (trace, suite) = (format!("{transport}.mcptrace"), format!("{transport}.mcproof.yaml"));
        let path = if transport == "sse" { "sse" } else { "mcp" };
        let mut command = Command::new(MCPROOF);
        command.current_dir(folder.path()).args(["proxy", "--listen", "127.0.0.1:0", "--trace", &trace]);
        command.arg(format!("http://127.0.0.1:${{port}}/{path}"));
        command.args(["--", MCPROOF, "demo", "shop", "--transport", transport, "--port", "${port}"]);
        let (proxy, url) = announced(command);
        for name in ["PROD-123", "PROD-456"] {
            run(&["call", &url, "check_inventory", &product(name), "--era", "legacy", "--transport", transport]);
        }
        end(proxy);
        for (session, name) in [("session:1", "PROD-123"), ("session:2", "PROD-456")] {
            let shown = run(&["trace", "grep", &format!("{session} tool:check_inventory"), &trace, "--json"]);
            assert!(shown.lines().count() == 1 && shown.contains(name), "{shown}");
        }
        let exported = run(&["trace", "export", &trace, "--suite", "--output", &suite]);
        assert!(exported.contains("2 tests with "), "{exported}");
        assert!(run(&["test", &suite, "--trace", "off"]).contains("2 passed"));
        // The second client, although the mock has seen no first one.
        let told = run(&["call", "check_inventory", &product("PROD-456"), "--era", "legacy", "--", MCPROOF, "mock", &trace, "--strict"]);
        assert!(told.contains("\"available\": 0") && !told.contains("another session"), "{told}");
        // What was not recorded is told with the number by which the trace shows the nearest request.
        let mut command = Command::new(MCPROOF);
        command.current_dir(folder.path()).args(["call", "check_inventory", &product("PROD-999"), "--era", "legacy"]);
        let missed = command.args(["--", MCPROOF, "mock", &trace]).output().unwrap();
        let missed = String::from_utf8_lossy(&missed.stderr).into_owned();
        let number: String =
            missed.split("the nearest is request ").nth(1).unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
        assert!(run(&["trace", "show", &trace, &number]).contains("check_inventory"), "{number}: {missed}");
    }
}

#[test]
fn a_stdio_server_behind_http_passes_a_check() {
    let mut command = Command::new(MCPROOF);
    command.args(["proxy", "--listen", "127.0.0.1:0", "--no-trace", "--", MCPROOF, "demo", "tracker"]);
    let (server, url) = announced(command);
    let output = Command::new(MCPROOF).args(["check", &url]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    end(server);
}
