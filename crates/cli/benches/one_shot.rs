//! What one `mcproof inspect --method tools/list` costs, next to a bare client that only writes four lines to the same
//! server, and to MCP Inspector's CLI where the peers are installed (`cargo xtask peers`). Paired runs: A B C, A B C, …,
//! so that a machine that changes its speed changes it for all. CPU time is the process's own with all its children.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]
#![expect(clippy::zombie_processes, reason = "wait4 waits, and tells the CPU time as well")]

use nix::libc;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");
const SERVER: [&str; 3] = [MCPROOF, "demo", "tracker"];
const ROUNDS: usize = 20;

fn main() {
    if std::env::args().nth(1).as_deref() == Some("bare-client") {
        return bare_client();
    }
    let own = std::env::current_exe().expect("this program has a path");
    let mut contenders = vec![
        Contender::new("bare client, four lines", &own, &["bare-client"]),
        Contender::new("mcproof inspect", Path::new(MCPROOF), &["inspect", "--method", "tools/list", "--"]).with_server(),
        Contender::new("mcproof inspect --era legacy", Path::new(MCPROOF), &["inspect", "--era", "legacy", "--method", "tools/list", "--"])
            .with_server(),
    ];
    contenders.extend(inspector());
    for round in 0..=ROUNDS {
        for contender in &mut contenders {
            // Inspector costs a second each time: a few rounds tell enough.
            if contender.slow && round > 3 {
                continue;
            }
            let cost = contender.run();
            // The first round warms caches.
            if round > 0 {
                contender.costs.push(cost);
            }
        }
    }
    let floor = median(&contenders[0].costs);
    println!("{:32} {:>10} {:>8}   runs", "one tools/list over stdio", "CPU", "x bare");
    for contender in &contenders {
        let cost = median(&contender.costs);
        println!(
            "{:32} {:>7.2} ms {:>7.2}x   {}",
            contender.name,
            cost.as_secs_f64() * 1e3,
            cost.as_secs_f64() / floor.as_secs_f64(),
            contender.costs.len()
        );
    }
}

struct Contender {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<String>,
    slow: bool,
    costs: Vec<Duration>,
}

impl Contender {
    fn new(name: &'static str, program: &Path, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Self { name, program: program.to_owned(), arguments, slow: false, costs: Vec::new() }
    }

    fn with_server(mut self) -> Self {
        self.arguments.extend(SERVER.map(str::to_owned));
        self
    }

    /// CPU time of one run, its children included.
    fn run(&self) -> Duration {
        let child = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the contender starts");
        let pid = i32::try_from(child.id()).expect("process ids fit an i32");
        let mut status = 0;
        // SAFETY: both pointers are valid for writes; a zeroed rusage is a valid one.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            assert_eq!(libc::wait4(pid, &raw mut status, 0, &raw mut usage), pid, "the contender is ours to wait for");
            usage
        };
        assert_eq!(status, 0, "{} failed", self.name);
        time(usage.ru_utime) + time(usage.ru_stime)
    }
}

fn time(value: libc::timeval) -> Duration {
    let part = |number: i64| u64::try_from(number).expect("CPU time is not negative");
    Duration::from_secs(part(value.tv_sec)) + Duration::from_micros(part(value.tv_usec))
}

fn median(costs: &[Duration]) -> Duration {
    let mut costs = costs.to_vec();
    costs.sort();
    costs[costs.len() / 2]
}

/// MCP Inspector's CLI under Node 22, if both are installed.
fn inspector() -> Option<Contender> {
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/node");
    let node = peers.join("node22/node_modules/.bin/node");
    let launcher = peers.join("inspector/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");
    if !node.exists() || !launcher.exists() {
        eprintln!("MCP Inspector is not installed here (cargo xtask peers): left out");
        return None;
    }
    let launcher = launcher.to_string_lossy().into_owned();
    let mut contender = Contender::new("MCP Inspector --cli (Node 22)", &node, &[&launcher, "--cli"]).with_server();
    contender.arguments.extend(["--method", "tools/list"].map(str::to_owned));
    contender.slow = true;
    Some(contender)
}

/// Spawns the server, writes ready-made lines, reads until the last answer, ends.
fn bare_client() {
    let [program, arguments @ ..] = SERVER;
    let mut server = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the server starts");
    let mut stdin = server.stdin.take().expect("stdin is a pipe");
    let mut lines = BufReader::new(server.stdout.take().expect("stdout is a pipe")).lines();
    let mut ask = |line: &str, answers: usize| {
        stdin.write_all(line.as_bytes()).expect("the server reads");
        for _ in 0..answers {
            lines.next().expect("the server answers").expect("the answer is text");
        }
    };
    ask(
        concat!(
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"#,
            r#""clientInfo":{"name":"bare","version":"0"}}}"#,
            "\n"
        ),
        1,
    );
    ask("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n", 0);
    ask("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}\n", 1);
    ask(
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"message\":\"hello\"}}}\n",
        1,
    );
    drop(stdin);
    server.wait().expect("the server is ours to wait for");
}
