//! Each bound on what a server may send: hit through the real binary, named by its own code, with a hint that names the
//! flag or the key that raises it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod heard;

use std::io::{BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");

/// Answers each POST with this, on a thread that ends with the test.
fn serve(answer: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || converse(stream, &answer));
        }
    });
    url
}

fn converse(stream: TcpStream, answer: &str) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let message = heard::message(&mut stream)?;
        stream.get_mut().write_all(answer.replace("ID", &message["id"].to_string()).as_bytes()).ok()?;
    }
}

fn json(result: &str) -> String {
    let body = format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{result}}}"#);
    // One digit takes the place of two letters.
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len() - 1)
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    // Whatever is stored by those who run this is their own.
    Command::new(MCPROOF).env("XDG_STATE_HOME", "/nowhere").args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

/// Hits a bound by a flag and by a key.
#[track_caller]
fn check(server: Server<'_>, flag: [&str; 2], key: &str, code: &str, message: &str) {
    let folder = tempfile::tempdir().unwrap();
    let era = ["--era", "modern", "--timeout", "5s", "--connect-timeout", "5s"];
    let (named, written) = match server {
        Server::Http(url) => (vec!["inspect", url, "--method", "ping"], format!("http: {{ url: \"{url}\", limits: {{ {key} }} }}")),
        Server::Stdio(script) => {
            let words = serde_json::json!(["sh", "-c", script]);
            (vec!["inspect", "--method", "ping"], format!("stdio: {{ command: {words}, limits: {{ {key} }} }}"))
        }
    };
    let mut arguments = [&named[..], &era, &flag, &["--format", "json"]].concat();
    let mut readable = [&named[..], &era, &flag].concat();
    if let Server::Stdio(script) = server {
        for arguments in [&mut arguments, &mut readable] {
            arguments.extend(["--", "sh", "-c", script]);
        }
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let found = run(folder.path(), &arguments);
    let told = text(&found.stderr);
    assert!(told.contains(&format!("\"code\":\"{code}\"")) && told.contains(message), "{told}");
    let shown = text(&run(folder.path(), &readable).stderr);
    assert!(shown.contains(&format!("raise {} if the server is expected to send that much", flag[0])), "{shown}");

    let suite = format!("server: {{ era: modern, {written} }}\ntests: [{{ name: a, steps: [ping] }}]\n");
    std::fs::write(folder.path().join("s.mcproof.yaml"), suite).unwrap();
    let events = text(&run(folder.path(), &["test", "--json", "--timeout", "5s", "--connect-timeout", "5s"]).stdout);
    let name = key.split_once(':').unwrap().0;
    let hint = format!("raise `limits: {{ {name}: … }}` if the server is expected to send that much");
    assert!(events.contains(&format!("\"code\":\"{code}\"")) && events.contains(message) && events.contains(&hint), "{events}");
}

#[derive(Clone, Copy)]
enum Server<'a> {
    Http(&'a str),
    Stdio(&'a str),
}

#[test]
fn each_bound_has_a_verdict_a_flag_and_a_key() {
    let long = "x".repeat(20_000);
    let body = serve(json(&format!("\"{long}\"")));
    check(Server::Http(&body), ["--max-body", "1000"], "body: 1000", "body-too-large", "the body is larger than 1000 bytes");
    let event = serve(format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {long}"));
    check(Server::Http(&event), ["--max-event", "1000"], "event: 1000", "event-too-large", "an event is larger than 1000 bytes");
    let head = serve(format!("HTTP/1.1 200 OK\r\nx: {long}\r\ncontent-length: 0\r\n\r\n"));
    check(
        Server::Http(&head),
        ["--max-head", "8KiB"],
        "head: 8KiB",
        "head-too-large",
        "the head of the response is larger than 8192 bytes",
    );
    let deep = serve(json("[[[[[]]]]]"));
    check(Server::Http(&deep), ["--max-depth", "4"], "depth: 4", "json-too-deep", "JSON nested deeper than 4 levels");
    let many = serve(json("[1,2,3,4,5,6,7,8,9]"));
    check(Server::Http(&many), ["--max-values", "10"], "values: 10", "json-too-many-values", "more than 10 JSON values in one message");
    let line = "read x; printf '%05000d' 1; sleep 20";
    check(Server::Stdio(line), ["--max-line", "1000"], "line: 1000", "too-long", "more than 1000 bytes without a line end");
    let deep = "read x; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[[[[]]]]}'; sleep 20";
    check(Server::Stdio(deep), ["--max-depth", "3"], "depth: 3", "json-too-deep", "JSON nested deeper than 3 levels");
}

#[test]
fn the_pages_of_a_list_have_room_for_four_messages() {
    // Answers every request with a page that leads to the next one.
    let script = r#"i=0; while read -r x; do case $x in *'"id":'*) i=$((i+1)); printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"a","version":"1"},"tools":[{"name":"%0900d"}],"nextCursor":"%s"}}\n' $i 1 $i;; esac; done"#;
    let folder = tempfile::tempdir().unwrap();
    let check = |flag: &str, value: &str, expected: &str| {
        let found = run(folder.path(), &["tools", "--era", "legacy", flag, value, "--", "sh", "-c", script]);
        let told = String::from_utf8_lossy(&found.stderr).into_owned();
        let hint = format!("raise {flag} if the server is expected to send that much");
        assert!(found.status.code() == Some(1) && told.contains(expected) && told.contains(&hint), "{:?}: {told}", found.status);
    };
    check("--max-line", "1500", "more than 6000 bytes in the pages of tools/list: 7 pages received");
    check("--max-values", "20", "more than 80 JSON values in the pages of tools/list: 41 pages received");
    // Pages without items have cursors, which count as well.
    let large_cursors = script.replace(r#"{"name":"%0900d"}"#, "").replace(r#""nextCursor":"%s""#, r#""nextCursor":"%0900d""#);
    let large_cursors = large_cursors.replace("$i 1 $i", "$i $i");
    let found = run(folder.path(), &["tools", "--era", "legacy", "--max-line", "1500", "--", "sh", "-c", &large_cursors]);
    let told = String::from_utf8_lossy(&found.stderr).into_owned();
    let expected = "more than 6000 bytes in the pages of tools/list: 7 pages received";
    assert!(found.status.code() == Some(1) && told.contains(expected), "{:?}: {told}", found.status);
}

/// Far below the limits of a message: of a handshake, copies are kept.
#[test]
fn a_handshake_has_a_limit_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let check = |before: &str, filler: &str, after: &str, expected: &str| {
        let begin = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"a","version":"1"},"#;
        let script = format!("read -r x; printf '%s' '{begin}{before}'; {filler}; printf '%s\\n' '{after}'; exec sleep 20");
        let found = run(folder.path(), &["ping", "--era", "legacy", "--", "sh", "-c", &script]);
        let told = String::from_utf8_lossy(&found.stderr).into_owned();
        assert!(found.status.code() != Some(0) && told.contains(&format!("the response to `initialize` {expected}")), "{told}");
    };
    let letters = "head -c 5000000 /dev/zero | tr '\\0' x";
    check(r#""capabilities":{},"instructions":""#, letters, r#""}}"#, "is larger than 4194304 bytes");
    let numbers = "yes 1, | head -n 10000 | tr -d '\\n'";
    check(r#""capabilities":{"experimental":{"a":["#, numbers, "1]}}}}", "has more than 10000 JSON values");
}

/// What is not read any further ends by itself: that follows from the limit.
#[test]
fn a_limit_is_named_and_not_the_end_that_follows_from_it() {
    let folder = tempfile::tempdir().unwrap();
    // `head` is the server itself, and ends at the closed pipe.
    let found = run(folder.path(), &["tools", "--max-line", "1000", "--", "sh", "-c", "exec head -c 1000000000 /dev/zero"]);
    let told = String::from_utf8_lossy(&found.stderr).into_owned();
    let first = told.lines().next().unwrap_or_default();
    assert!(first.contains("server sent more than 1000 bytes without a line end"), "{told}");
    assert!(told.contains("raise --max-line"), "{told}");
}

#[test]
fn bounds_that_are_none_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let check = |flag: &str, value: &str, expected: &str| {
        let found = run(folder.path(), &["tools", "http://127.0.0.1:1/", flag, value]);
        let told = String::from_utf8_lossy(&found.stderr).into_owned();
        assert!(found.status.code() == Some(2) && told.contains(expected), "{told}");
    };
    check("--max-body", "much", "`much` is not a valid size: write one such as 64KiB");
    check("--max-head", "1KiB", "the head of a response may always have 8KiB");
    check("--max-depth", "128", "a whole number from 1 to 127");
    check("--max-values", "0", "a whole number of at least 1");
}

#[test]
fn a_transcript_keeps_what_it_may_and_counts_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let noise = "read -r x; i=0; while [ $i -lt 500 ]; do echo '{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"a line that takes some room\"}}'; i=$((i+1)); done; exit 3";
    let arguments = ["ping", "--era", "legacy", "--max-transcript", "20KiB", "--trace", "trace.json", "--", "sh", "-c", noise];
    run(folder.path(), &arguments);
    let trace = std::fs::read_to_string(folder.path().join("trace.json")).unwrap();
    assert!(trace.contains("earlier frames were counted but not stored"), "{}", trace.len());
    assert!(trace.len() < 100_000, "{}", trace.len());
}

/// What a command says whose processes may open, or write, no more than this: an argument of `ulimit`.
fn limited(folder: &Path, limit: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let script = format!("trap '' XFSZ; ulimit {limit}; exec \"$@\"");
    let output = Command::new("sh").args(["-c", &script, "limited", MCPROOF]).args(arguments).current_dir(folder).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_file_that_cannot_be_written_whole_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let shop = ["--", MCPROOF, "demo", "shop"];
    // In units of 512 bytes.
    let (code, stderr) = limited(folder.path(), "-f 1", &[&["init"][..], &shop].concat());
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("cannot write") && stderr.contains("File too large"), "{stderr}");
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
    let (code, stderr) = limited(folder.path(), "-f 1", &[&["tools", "--trace", "a.mcptrace"][..], &shop].concat());
    assert!(code == Some(2) && stderr.contains("cannot write a.mcptrace"), "{stderr}");
    assert!(!stderr.contains("ZipWriter"), "{stderr}");
}

/// A file can be made there, but not written.
#[test]
fn the_doctor_finds_a_folder_that_takes_no_data() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" doctor";
    let output = Command::new("/bin/sh").args(["-c", script, MCPROOF]).env("XDG_STATE_HOME", folder.path()).env("PATH", "").output();
    let output = output.unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let line = told.lines().find(|line| line.contains("state directory")).unwrap_or_default();
    assert!(output.status.code() == Some(1) && line.contains("cannot write to") && line.contains("File too large"), "{told}");
}

#[test]
fn a_server_that_cannot_be_started_for_want_of_file_descriptors_is_not_blamed() {
    let folder = tempfile::tempdir().unwrap();
    let (code, stderr) = limited(folder.path(), "-n 12", &["tools", "--", MCPROOF, "demo", "shop"]);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("ulimit -n"), "{stderr}");
}

/// The main thread of Windows has a stack of 1 MiB.
#[test]
fn a_small_stack_of_the_main_thread_is_enough() {
    let script = "ulimit -s 256; exec \"$0\" check --only ping-gets-empty-result -- \"$0\" demo shop";
    let output = Command::new("sh").args(["-c", script, MCPROOF]).stdin(Stdio::null()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 rule passed"), "{told}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_file_without_an_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["watch", "--check", "/dev/zero"][..],
        &["check", "--baseline", "/dev/zero", "--", "mcproof", "demo", "shop"],
        &["call", "get_product", "--args", "@/dev/zero", "--", "mcproof", "demo", "shop"],
        &["lock", "--verify", "--output", "/dev/zero", "--", "mcproof", "demo", "shop"],
        &["tools", "--cacert", "/dev/zero", "https://127.0.0.1:1/mcp"],
    ] {
        let output = run(folder.path(), arguments);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && told.contains("larger than 64 MiB"), "{arguments:?}: {told}");
    }
}
