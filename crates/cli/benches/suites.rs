//! What a suite costs: the six end-to-end tests, repeated, each on a fresh server of its own, over stdio and http. Next to it a
//! bare runner that only starts the same servers and sends the same requests as ready-made text (one case after the other, as
//! the peers below do, or as many at a time as there are cores, as mcproof does if it is not told otherwise), and, where they are
//! installed (`cargo xtask peers`), vitest with the TypeScript SDK and pytest with the Python SDK, which run the same tests over stdio.
//! Rounds are paired, so that a machine that changes its speed changes it for all. CPU time includes all servers.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]
#![expect(clippy::zombie_processes, reason = "wait4 waits, and tells the CPU time as well")]

use nix::libc;
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tokio::net::TcpSocket;

const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");
const REPEAT: usize = 20;
const ROUNDS: usize = 5;

/// What each of the six tests asks after `server/discover`; the first asks nothing.
const REQUESTS: [Option<(&str, &str)>; 6] = [
    None,
    Some(("tools/list", "")),
    Some(("tools/list", "")),
    Some(("tools/call", r#""name":"echo","arguments":{"message":"hello from e2e"},"#)),
    Some(("tools/call", r#""name":"echo","arguments":{},"#)),
    Some(("tools/call", r#""name":"nonexistent_tool_xyz","arguments":{},"#)),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [command, transports, jobs] = arguments.as_slice()
        && command == "bare-runner"
    {
        return bare_runner(transports, jobs.parse().expect("a number of jobs"));
    }
    let own = std::env::current_exe().expect("this program has a path");
    let cores = thread::available_parallelism().map_or(1, usize::from).to_string();
    let tests = |name, flags: &[&str]| Contender::new(name, Path::new(MCPROOF), &[&mcproof("stdio,http")[..], flags].concat());
    let both = [
        Contender::new("bare runner, one case after the other", &own, &["bare-runner", "stdio,http", "1"]),
        tests("mcproof test --jobs 1", &["--jobs", "1"]),
        tests("mcproof test", &[]),
        tests("mcproof test, cold starts", &["--no-warm-start"]),
        Contender::new("bare runner, a case for each core", &own, &["bare-runner", "stdio,http", &cores]),
    ];
    compare("240 cases over stdio and http, Rust server", both.into(), ROUNDS);
    let mut stdio = vec![
        Contender::new("bare runner, one case after the other", &own, &["bare-runner", "stdio", "1"]),
        Contender::new("mcproof test", Path::new(MCPROOF), &mcproof("stdio")),
        Contender::new("mcproof test, isolation: file", Path::new(MCPROOF), &mcproof_on(&sharing_suite(), "stdio")),
    ];
    stdio.extend(vitest());
    stdio.extend(pytest());
    compare("120 cases over stdio, Rust server", stdio, 3);
    if let Some(everything) = everything() {
        let command: Vec<&str> = everything.iter().map(String::as_str).collect();
        let tail = [&["--"], &command[..]].concat();
        let node = |name, flags: &[&str]| Contender::new(name, Path::new(MCPROOF), &[&mcproof("stdio")[..], flags, &tail].concat());
        let contenders = vec![
            node("mcproof test, cold starts", &["--no-warm-start"]),
            node("mcproof test", &[]),
            node("mcproof test --jobs 1, cold starts", &["--jobs", "1", "--no-warm-start"]),
            node("mcproof test --jobs 1", &["--jobs", "1"]),
        ];
        compare("120 cases over stdio, Node server (server-everything)", contenders, 2);
    }
}

const SUITE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/e2e.mcproof.yaml");

fn mcproof(transports: &str) -> Vec<&str> {
    mcproof_on(SUITE, transports)
}

fn mcproof_on<'a>(suite: &'a str, transports: &'a str) -> Vec<&'a str> {
    vec!["test", suite, "--quiet", "--repeat", "20", "--transport", transports]
}

/// The same tests, of which those of one repetition share a server.
fn sharing_suite() -> String {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sharing.mcproof.yaml");
    let text = std::fs::read_to_string(SUITE).expect("the example is there");
    std::fs::write(&file, format!("isolation: file\n{text}")).expect("the target folder can be written");
    file.to_string_lossy().into_owned()
}

struct Contender {
    name: String,
    program: PathBuf,
    arguments: Vec<String>,
    folder: Option<PathBuf>,
    costs: Vec<Cost>,
}

#[derive(Clone, Copy)]
struct Cost {
    cpu: Duration,
    wall: Duration,
}

fn compare(title: &str, mut contenders: Vec<Contender>, rounds: usize) {
    for round in 0..=rounds {
        for contender in &mut contenders {
            let cost = contender.run();
            // The first round warms caches.
            if round > 0 {
                contender.costs.push(cost);
            }
        }
    }
    let medians: Vec<(String, Cost)> = contenders.iter().map(|it| (it.name.clone(), median(&it.costs))).collect();
    let (_, floor) = medians[0];
    println!("{title:56} {:>10} {:>8} {:>10} {:>8}", "CPU", "x first", "wall", "x first");
    for (name, Cost { cpu, wall }) in medians {
        let times = |own: Duration, first: Duration| own.as_secs_f64() / first.as_secs_f64();
        let (cpu_ratio, wall_ratio) = (times(cpu, floor.cpu), times(wall, floor.wall));
        println!("  {name:54} {:>8.2} s {cpu_ratio:>7.2}x {:>8.2} s {wall_ratio:>7.2}x", cpu.as_secs_f64(), wall.as_secs_f64());
    }
    println!();
}

impl Contender {
    fn new(name: &str, program: &Path, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Self { name: name.to_owned(), program: program.to_owned(), arguments, folder: None, costs: Vec::new() }
    }

    fn run(&self) -> Cost {
        let started = Instant::now();
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).envs([("MCPROOF", MCPROOF), ("REPEAT", "20")]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        let child = command.spawn().expect("the contender starts");
        let pid = i32::try_from(child.id()).expect("process ids fit an i32");
        let mut status = 0;
        // SAFETY: both pointers are valid for writes; a zeroed rusage is a valid one.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            assert_eq!(libc::wait4(pid, &raw mut status, 0, &raw mut usage), pid, "the contender is ours to wait for");
            usage
        };
        assert_eq!(status, 0, "{} failed: {:?} {:?}", self.name, self.program, self.arguments);
        Cost { cpu: time(usage.ru_utime) + time(usage.ru_stime), wall: started.elapsed() }
    }
}

fn time(value: libc::timeval) -> Duration {
    let part = |number: i64| u64::try_from(number).expect("CPU time is not negative");
    Duration::from_secs(part(value.tv_sec)) + Duration::from_micros(part(value.tv_usec))
}

/// Of each figure for itself.
fn median(costs: &[Cost]) -> Cost {
    let middle = |figure: fn(&Cost) -> Duration| {
        let mut figures: Vec<Duration> = costs.iter().map(figure).collect();
        figures.sort();
        figures[figures.len() / 2]
    };
    Cost { cpu: middle(|cost| cost.cpu), wall: middle(|cost| cost.wall) }
}

fn peers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers")
}

fn missing(what: &str) {
    eprintln!("{what} is not installed here (cargo xtask peers): left out");
}

fn everything() -> Option<Vec<String>> {
    let peers = peers();
    let node = peers.join("node/node22/node_modules/.bin/node");
    let server = peers.join("node/everything/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    if !node.exists() || !server.exists() {
        missing("server-everything");
        return None;
    }
    Some([node, server].map(|path| path.to_string_lossy().into_owned()).to_vec())
}

/// A folder with the tests and the packages that they need: Node looks for packages beside the file that asks for them.
fn vitest() -> Option<Contender> {
    let peers = peers();
    let packages = peers.join("node/vitest/node_modules");
    let node = peers.join("node/node22/node_modules/.bin/node");
    if !packages.exists() || !node.exists() {
        missing("vitest");
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vitest");
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    let harness = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/harness/vitest/e2e.test.mjs");
    std::fs::copy(harness, folder.join("e2e.test.mjs")).expect("the tests are there");
    if !folder.join("node_modules").exists() {
        std::os::unix::fs::symlink(&packages, folder.join("node_modules")).expect("the target folder can be written");
    }
    let entry = packages.join("vitest/vitest.mjs").to_string_lossy().into_owned();
    Some(Contender { folder: Some(folder), ..Contender::new("vitest, TypeScript SDK (Node 22)", &node, &[&entry, "run"]) })
}

fn pytest() -> Option<Contender> {
    let python = peers().join("python/pytest/bin/python");
    if !python.exists() {
        missing("pytest");
        return None;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/harness/pytest");
    let arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_e2e.py"];
    Some(Contender { folder: Some(folder), ..Contender::new("pytest, Python SDK", &python, &arguments) })
}

fn bare_runner(transports: &str, jobs: usize) {
    let mut cases = Vec::new();
    for _ in 0..REPEAT {
        for request in REQUESTS {
            cases.extend(transports.split(',').map(|transport| (transport, request)));
        }
    }
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some((transport, request)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let messages = std::iter::once(("server/discover", "")).chain(*request);
                    let messages = messages.zip(1..).map(|((method, params), id)| (method, message(method, params, id)));
                    if *transport == "stdio" { over_stdio(messages) } else { over_http(messages) }
                }
            });
        }
    });
}

fn message(method: &str, params: &str, id: u32) -> String {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bare","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}"#;
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{meta}}}}}"#)
}

fn over_stdio<'a>(messages: impl Iterator<Item = (&'a str, String)>) {
    let mut server = start(&["demo", "tracker"]);
    let mut stdin = server.0.stdin.take().expect("stdin is a pipe");
    let mut stdout = BufReader::new(server.0.stdout.take().expect("stdout is a pipe"));
    for (_, message) in messages {
        stdin.write_all(format!("{message}\n").as_bytes()).expect("the server reads");
        let mut answer = String::new();
        stdout.read_line(&mut answer).expect("the server answers");
        assert!(answer.starts_with('{'), "{answer}");
    }
    drop(stdin);
    server.0.wait().expect("the server is ours to wait for");
}

fn over_http<'a>(messages: impl Iterator<Item = (&'a str, String)>) {
    let port = free_port();
    let _server = start(&["demo", "tracker", "--http", "--port", &port.to_string()]);
    let mut connection = loop {
        match TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
            Ok(connection) => break connection,
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    };
    for (method, message) in messages {
        let name = if message.contains("nonexistent") { "nonexistent_tool_xyz" } else { "echo" };
        let name = if method == "tools/call" { format!("mcp-name: {name}\r\n") } else { String::new() };
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
             mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n{name}content-length: {}\r\n\r\n",
            message.len()
        );
        connection.write_all(format!("{head}{message}").as_bytes()).expect("the server reads");
        let mut reader = BufReader::new(&connection);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("the server answers");
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim().parse().expect("a length is a number");
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("the body is whole");
        assert!(body.starts_with(b"{"), "{}", String::from_utf8_lossy(&body));
    }
}

/// None that was given before: the system may offer a port again before its server listens. The socket does not listen either:
/// a server that another thread is just starting has a copy of it until it runs, and would take our connection.
fn free_port() -> u16 {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut kept = Vec::new();
    loop {
        let socket = TcpSocket::new_v4().expect("a socket is free");
        socket.set_reuseaddr(true).expect("a new socket takes options");
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a port is free");
        let port = socket.local_addr().expect("it is bound").port();
        if GIVEN.lock().expect("nobody panics with it").insert(port) {
            return port;
        }
        kept.push(socket);
    }
}

/// Ends its server also where the runner fails, so that none is left on the machine.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing to do where it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(arguments: &[&str]) -> Server {
    let mut command = Command::new(MCPROOF);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    Server(command.spawn().expect("the server starts"))
}
