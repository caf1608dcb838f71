//! What a check costs: `mcproof check` on server-everything, its own CPU time apart from that of the servers that it starts,
//! next to the official conformance suite, which runs its own subset of checks against the same server over HTTP. In one run,
//! in turns.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]
#![expect(clippy::unwrap_used, reason = "a benchmark that finds no peers fails by panicking")]

#[path = "../tests/peers/mod.rs"]
mod peers;

use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::{Pid, SysconfVar, sysconf};
use peers::{Peer, Start, installed};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");
const ROUNDS: usize = 5;

fn main() {
    if !Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/node/conformance").exists() {
        eprintln!("the peers are not installed here (cargo xtask peers): nothing to compare with");
        return;
    }
    let Start { command, .. } = Peer::named("everything").start("stdio");
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let check = [&["check", "--"], &words[..]].concat();
    let listening = Listening::start();
    let suite = installed("conformance");
    let suite = [&suite[..], &["server".to_owned(), "--url".into(), listening.url.clone()]].concat();
    let (mut own, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let checked = run(Command::new(MCPROOF).args(&check));
        let suited = run(Command::new(&suite[0]).args(&suite[1..]));
        // The first round warms caches.
        if round > 0 {
            own.push(checked.own);
            ours.push(checked.wall);
            theirs.push(suited.wall);
        }
    }
    let [own, ours, theirs] = [own, ours, theirs].map(median);
    println!("{:56} {:>10} {:>10} {:>8}", "server-everything", "own CPU", "wall", "x suite");
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    println!("  {:54} {:>8.2} s {:>8.2} s {ratio:>7.2}x", "mcproof check, stdio", own.as_secs_f64(), ours.as_secs_f64());
    println!("  {:54} {:>10} {:>8.2} s {:>7.2}x", "official conformance suite, Streamable HTTP", "", theirs.as_secs_f64(), 1.0);
}

struct Cost {
    /// Without the children.
    own: Duration,
    wall: Duration,
}

/// Findings and failed checks are no matter here.
fn run(command: &mut Command) -> Cost {
    let started = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the contender starts");
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("process ids fit an i32"));
    // It has ended and is still there, so that its figures can be read.
    waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).expect("the contender is ours to wait for");
    let wall = started.elapsed();
    let own = own_time(pid);
    child.wait().expect("the contender has ended");
    Cost { own, wall }
}

/// proc(5): user and system time of a process are the 14th and 15th field, in ticks; the name before may hold spaces.
fn own_time(pid: Pid) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process is still there");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("a text has an end").split_whitespace().collect();
    let ticks: u32 = fields[11..13].iter().map(|field| field.parse::<u32>().expect("a number of ticks")).sum();
    let second = sysconf(SysconfVar::CLK_TCK).ok().flatten().expect("the system tells its ticks");
    Duration::from_secs(1) * ticks / u32::try_from(second).expect("there are few ticks in a second")
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// The server for the suite, which starts none.
struct Listening {
    process: Child,
    url: String,
}

impl Listening {
    fn start() -> Self {
        let Start { command, env, url, .. } = Peer::named("everything").start("http");
        let port = mcproof_testkit::free_port();
        let filled = |text: &str| text.replace("${port}", &port.to_string());
        let mut server = Command::new(&command[0]);
        server.args(command[1..].iter().map(|word| filled(word))).envs(env.iter().map(|(name, value)| (name, filled(value))));
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = server.spawn().expect("the server starts");
        let url = filled(&url.expect("a server over HTTP has a URL"));
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            thread::sleep(Duration::from_millis(10));
        }
        Self { process, url }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // Nothing to do where it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
