//! `mcproof doctor` on broken servers: the step that it names has to be the one that fails.

use libtest_mimic::Failed;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

/// A broken server of the zoo, over a transport, and the step that fails.
const BROKEN: &[(&str, &str, &str)] = &[
    ("exits-at-start", "stdio", "start"),
    ("aborts-at-start", "stdio", "start"),
    ("initialize-refused", "stdio", "handshake"),
    ("initialize-unanswered", "stdio", "handshake"),
    ("capabilities-are-a-list", "stdio", "handshake"),
    ("server-info-left-out", "stdio", "handshake"),
    ("version-left-out", "stdio", "handshake"),
    ("version-never-published", "stdio", "handshake"),
    ("banner", "stdio", "stdout"),
    ("pretty-printed", "stdio", "stdout"),
    ("newline-missing", "stdio", "stdout"),
    ("carriage-returns-only", "stdio", "stdout"),
    ("latin-1", "stdio", "stdout"),
    ("byte-order-mark", "stdio", "stdout"),
    ("blank-lines", "stdio", "stdout"),
    ("dies-when-asked-for-tools", "stdio", "lists"),
    ("dies-after-answer", "stdio", "lists"),
    ("tools-as-map", "stdio", "lists"),
    ("pages-without-end", "stdio", "lists"),
    ("ids-become-null", "stdio", "lists"),
    ("neither-result-nor-error", "stdio", "lists"),
    ("declared-prompts-missing", "stdio", "lists"),
    ("prompts-unanswered", "stdio", "lists"),
    ("outlives-its-input", "stdio", "end"),
    ("leaves-a-child", "stdio", "end"),
    ("exits-at-start", "http", "start"),
    ("port-taken", "http", "start"),
    ("guarded", "http", "authorization"),
    ("challenge-without-metadata", "http", "authorization"),
    ("no-challenge", "http", "authorization"),
    ("metadata-without-servers", "http", "authorization"),
    ("metadata-of-another", "http", "authorization"),
    ("initialize-refused", "http", "handshake"),
    ("initialize-unanswered", "http", "handshake"),
    ("version-never-published", "http", "handshake"),
    ("dies-when-asked-for-tools", "http", "lists"),
    ("events-as-text", "http", "lists"),
    ("data-prefix-missing", "http", "lists"),
    ("blank-line-missing", "http", "lists"),
    ("content-length-too-long", "http", "lists"),
    ("exits-at-start", "sse", "start"),
    ("endpoint-late", "sse", "transport"),
    ("endpoint-unnamed", "sse", "transport"),
    ("endpoint-elsewhere", "sse", "transport"),
    ("post-not-accepted", "sse", "lists"),
];

/// Rows at the same time: most of the time is spent waiting.
const WORKERS: usize = 4;

pub(crate) fn names_the_step_that_fails() -> Result<(), Failed> {
    let this = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    let mut rows: Vec<(String, Vec<String>, &str)> = Vec::new();
    for (name, transport, step) in BROKEN {
        let (url, flags): (Option<&str>, &[&str]) = match *transport {
            "stdio" => (None, &["--stdio", "--era", "legacy"]),
            "http" => (Some("http://127.0.0.1:${port}/mcp"), &["--http", "${port}", "--era", "legacy"]),
            _ => (Some("http://127.0.0.1:${port}/sse"), &["--sse", "${port}"]),
        };
        let words = url.into_iter().chain(["--", &this, "--zoo", name]).chain(flags.iter().copied());
        rows.push((format!("{name} over {transport}"), words.map(str::to_owned).collect(), step));
    }
    // What no server is needed for. Somebody listens at the port, but serves no pages and no TLS.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    thread::spawn(move || silent.incoming().for_each(drop));
    let (banner, failing, gateway) = (
        responder(b"SSH-2.0-OpenSSH_9\r\n"),
        responder(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\nConnection: close\r\n\r\nboom"),
        responder(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
    );
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let demo = [env!("CARGO_BIN_EXE_mcproof"), "demo", "shop", "--http", "--port", "${port}"];
    for (name, words, step) in [
        ("no such program", vec!["--", "no-such-program-anywhere"], "command"),
        ("no such file", vec!["--", "./no/such/file"], "command"),
        ("nothing listens", vec![&*format!("http://127.0.0.1:{free}/mcp")], "tcp"),
        ("no such host", vec!["http://no-such-host.invalid/mcp"], "dns"),
        ("no TLS", vec![&*format!("https://127.0.0.1:{port}/mcp")], "tls"),
        ("no HTTP", vec![&*banner], "path"),
        ("status 500", vec![&*failing], "handshake"),
        ("status 502", vec![&*gateway], "handshake"),
        ("another path", [vec!["http://127.0.0.1:${port}/other", "--"], demo.to_vec()].concat(), "path"),
    ] {
        rows.push((name.to_owned(), words.into_iter().map(str::to_owned).collect(), step));
    }
    rows.push(("a healthy server".to_owned(), ["--", &this, "--zoo", "none", "--stdio"].map(str::to_owned).to_vec(), ""));
    let (queue, wrong) = (Mutex::new(rows), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap().pop();
                    let Some((name, words, expected)) = next else { break };
                    let (found, said) = examined(&words);
                    let lacks_remedy = said.ends_with(" null") && name.starts_with("status");
                    if found != expected || lacks_remedy {
                        wrong.lock().unwrap().push(format!("{name}: expected {expected:?}, named {found:?}: {said}"));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Whoever connects is told these bytes, whatever is asked. Gives the URL.
fn responder(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                // A client that has gone away is no matter.
                let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
                let mut buffer = vec![0; 64 << 10];
                if bytes.starts_with(b"HTTP") && !matches!(stream.read(&mut buffer), Ok(1..)) {
                    return;
                }
                let _ = stream.write_all(bytes);
                while matches!(stream.read(&mut buffer), Ok(1..)) {}
            });
        }
    });
    url
}

/// The first step that failed, and what is said of it; nothing for a server that passed all of them.
fn examined(words: &[String]) -> (String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_mcproof"))
        .args(["doctor", "--json", "--connect-timeout", "6s"])
        .args(words)
        .env_remove("HTTPS_PROXY")
        .env_remove("HTTP_PROXY")
        .output()
        .unwrap();
    let Ok(report) = serde_json::from_slice::<Value>(&output.stdout) else {
        return ("no report".to_owned(), String::from_utf8_lossy(&output.stderr).into_owned());
    };
    let steps = report["steps"].as_array().cloned().unwrap_or_default();
    match steps.iter().find(|step| step["state"] == "failed") {
        Some(step) => (step["id"].as_str().unwrap_or_default().to_owned(), format!("{} {}", step["detail"], step["hint"])),
        None if !steps.is_empty() && steps.iter().all(|step| step["state"] == "passed") => Default::default(),
        None => ("none".to_owned(), report.to_string()),
    }
}
