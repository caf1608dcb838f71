//! Calls per second over one stdio session, 64 in flight, next to a bare client on the same server that writes ready-made
//! lines and only looks for line ends. Ours parses each answer and matches it to its request. Paired rounds in one run.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use mcproof_client::{ConnectOptions, Launch, Session, Tap, Target, open_session};
use mcproof_protocol::EraChoice;
use serde_json::{Map, Value, json};
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const SERVER: [&str; 3] = [env!("CARGO_BIN_EXE_mcproof"), "demo", "tracker"];
const CALLS: usize = 10_000;
const IN_FLIGHT: usize = 64;
const ROUNDS: usize = 5;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    let mut ratios = Vec::new();
    println!("{CALLS} calls over stdio, {IN_FLIGHT} in flight");
    for round in 0..=ROUNDS {
        let (bare, ours) = (bare(), runtime.block_on(ours()));
        // The first round warms caches.
        if round > 0 {
            let ratio = bare.as_secs_f64() / ours.as_secs_f64();
            println!("bare {:>8.0} calls/s   mcproof {:>8.0} calls/s   ratio {ratio:.2}", per_second(bare), per_second(ours));
            ratios.push(ratio);
        }
    }
    ratios.sort_by(f64::total_cmp);
    println!("median ratio {:.2}", ratios[ratios.len() / 2]);
}

fn per_second(time: Duration) -> f64 {
    CALLS as f64 / time.as_secs_f64()
}

fn bare() -> Duration {
    let [program, arguments @ ..] = SERVER;
    let mut server = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the server starts");
    let mut stdin = BufWriter::new(server.stdin.take().expect("stdin is a pipe"));
    let mut stdout = BufReader::with_capacity(64 << 10, server.stdout.take().expect("stdout is a pipe"));
    let mut line = Vec::new();
    let mut read = || {
        line.clear();
        assert!(stdout.read_until(b'\n', &mut line).expect("the server answers") > 0);
    };
    let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "bare", "version": "0" } } });
    writeln!(stdin, "{initialize}").and_then(|()| stdin.flush()).expect("the server reads");
    read();
    writeln!(stdin, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#).expect("the server reads");
    let started = Instant::now();
    let (mut sent, mut received) = (0, 0);
    while received < CALLS {
        while sent < CALLS && sent - received < IN_FLIGHT {
            sent += 1;
            writeln!(
                stdin,
                r#"{{"jsonrpc":"2.0","id":{sent},"method":"tools/call","params":{{"name":"echo","arguments":{{"message":"hello"}}}}}}"#
            )
            .expect("the server reads");
        }
        stdin.flush().expect("the server reads");
        read();
        received += 1;
    }
    let elapsed = started.elapsed();
    drop(stdin);
    server.wait().expect("the server ends");
    elapsed
}

async fn ours() -> Duration {
    let launch = Launch { command: SERVER.map(str::to_owned).to_vec(), ..Launch::default() };
    let options = ConnectOptions { era: EraChoice::Legacy, ..ConnectOptions::default() };
    let session = open_session(&Target::Stdio(launch), &options, &Tap::new()).await.expect("the session opens");
    let params: Map<String, Value> =
        Map::from_iter([("name".to_owned(), json!("echo")), ("arguments".to_owned(), json!({ "message": "hello" }))]);
    let started = Instant::now();
    let session = Arc::new(session);
    let mut workers = JoinSet::new();
    for worker in 0..IN_FLIGHT {
        let times = CALLS / IN_FLIGHT + usize::from(worker < CALLS % IN_FLIGHT);
        workers.spawn(call(Arc::clone(&session), params.clone(), times));
    }
    workers.join_all().await;
    let elapsed = started.elapsed();
    Arc::into_inner(session).expect("the workers are gone").close().await;
    elapsed
}

async fn call(session: Arc<Session>, params: Map<String, Value>, times: usize) {
    for _ in 0..times {
        let reply = session.request("tools/call", Some(params.clone()), Duration::from_secs(30)).await.expect("an answer comes");
        assert_eq!(reply.answer.expect("a result")["content"][0]["text"], "hello");
    }
}
