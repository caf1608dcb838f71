//! Calls per second over Streamable HTTP, 64 in flight, next to a bare client that writes ready-made requests and only looks
//! for the end of each response, and to `wrk`, on the same server. Ours parses each answer, matches it to its request and
//! keeps the wire. Rounds of all three in one run, on HTTP/1.1, where each request in flight has a connection.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use mcproof_client::{ConnectOptions, Endpoint, Session, Tap, Target, open_session};
use mcproof_protocol::{EraChoice, Transport};
use serde_json::{Map, Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use url::Url;

const CALLS: usize = 10_000;
const IN_FLIGHT: usize = 64;
const ROUNDS: usize = 5;
const VERSION: &str = "2026-07-28";

fn main() {
    let mut server = Command::new(env!("CARGO_BIN_EXE_mcproof"))
        .args(["demo", "tracker", "--http", "--port", "0"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let url = address(&mut server);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    println!("{CALLS} calls over Streamable HTTP, {IN_FLIGHT} in flight");
    let (mut to_bare, mut to_wrk) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let (bare, ours) = (runtime.block_on(bare(&url)), runtime.block_on(ours(&url)));
        let wrk = wrk(&url);
        // The first round warms caches.
        if round == 0 {
            continue;
        }
        to_bare.push(ours / bare);
        to_wrk.extend(wrk.map(|wrk| ours / wrk));
        let wrk = wrk.map_or("not found".to_owned(), |wrk| format!("{wrk:.0}"));
        println!("bare {bare:>7.0} calls/s   wrk {wrk:>9}   mcproof {ours:>7.0} calls/s");
    }
    println!("median ratio to the bare client {:.2}", median(to_bare));
    match to_wrk.is_empty() {
        true => println!("no ratio to wrk: it is not on the PATH (Debian: `apt-get install wrk`)"),
        false => println!("median ratio to wrk {:.2}", median(to_wrk)),
    }
    server.kill().and_then(|()| server.wait()).expect("the server ends");
}

fn median(mut ratios: Vec<f64>) -> f64 {
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

/// The URL that the server says it listens at.
fn address(server: &mut Child) -> Url {
    let mut line = String::new();
    BufReader::new(server.stderr.take().expect("stderr is a pipe")).read_line(&mut line).expect("the server says where it listens");
    let url = line.split_whitespace().last().and_then(|word| Url::parse(word).ok());
    url.expect("the line ends with a URL")
}

fn headers() -> [(&'static str, &'static str); 5] {
    [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", VERSION),
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
    ]
}

fn body() -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": { "name": "bare", "version": "0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "echo", "arguments": { "message": "hello" }, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
}

async fn bare(url: &Url) -> f64 {
    let authority = url[url::Position::BeforeHost..url::Position::AfterPort].to_owned();
    let lines: String = headers().iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let body = body();
    let request = format!("POST {} HTTP/1.1\r\nhost: {authority}\r\n{lines}content-length: {}\r\n\r\n{body}", url.path(), body.len());
    let request: Arc<str> = request.into();
    let started = Instant::now();
    let mut workers = JoinSet::new();
    for worker in 0..IN_FLIGHT {
        workers.spawn(post(authority.clone(), Arc::clone(&request), times(worker)));
    }
    workers.join_all().await;
    CALLS as f64 / started.elapsed().as_secs_f64()
}

fn times(worker: usize) -> usize {
    CALLS / IN_FLIGHT + usize::from(worker < CALLS % IN_FLIGHT)
}

async fn post(authority: String, request: Arc<str>, times: usize) {
    let mut stream = TcpStream::connect(&authority).await.expect("the server listens");
    let _ = stream.set_nodelay(true);
    let mut buffer = Vec::with_capacity(4096);
    for _ in 0..times {
        stream.write_all(request.as_bytes()).await.expect("the server reads");
        buffer.clear();
        while !is_whole(&buffer) {
            assert!(stream.read_buf(&mut buffer).await.expect("the server answers") > 0, "the server keeps the connection");
        }
    }
}

fn is_whole(response: &[u8]) -> bool {
    let Some(end) = response.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&response[..end]);
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    response.len() - end - 4 >= length.expect("the response has a length")
}

async fn ours(url: &Url) -> f64 {
    let target = Target::Http {
        endpoint: Endpoint { url: url.clone(), headers: Vec::new() },
        kind: Some(Transport::Http),
        launch: None,
        locate: None,
    };
    let options = ConnectOptions { era: EraChoice::Modern, ..ConnectOptions::default() };
    let session = Arc::new(open_session(&target, &options, &Tap::new()).await.expect("the session opens"));
    let params: Map<String, Value> =
        Map::from_iter([("name".to_owned(), json!("echo")), ("arguments".to_owned(), json!({ "message": "hello" }))]);
    let started = Instant::now();
    let mut workers = JoinSet::new();
    for worker in 0..IN_FLIGHT {
        workers.spawn(call(Arc::clone(&session), params.clone(), times(worker)));
    }
    workers.join_all().await;
    let rate = CALLS as f64 / started.elapsed().as_secs_f64();
    Arc::into_inner(session).expect("the workers are gone").close().await;
    rate
}

async fn call(session: Arc<Session>, params: Map<String, Value>, times: usize) {
    for _ in 0..times {
        let reply = session.request("tools/call", Some(params.clone()), Duration::from_secs(30)).await.expect("an answer comes");
        assert_eq!(reply.answer.expect("a result")["content"][0]["text"], "hello");
    }
}

/// Calls per second; `None` if there is no `wrk`.
fn wrk(url: &Url) -> Option<f64> {
    let mut script = tempfile::NamedTempFile::new().expect("the folder for temporary files can be written");
    writeln!(script, "wrk.method = 'POST'\nwrk.body = '{}'", body()).expect("the script is written");
    for (name, value) in headers() {
        writeln!(script, "wrk.headers['{name}'] = '{value}'").expect("the script is written");
    }
    let connections = IN_FLIGHT.to_string();
    let output = Command::new("wrk").args(["-t1", "-d2s", "-c", &connections, "-s"]).arg(script.path()).arg(url.as_str()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!text.contains("Non-2xx"), "{text}");
    Some(text.lines().find_map(|line| line.strip_prefix("Requests/sec:")?.trim().parse().ok()).expect("wrk tells its rate"))
}
