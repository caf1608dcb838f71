//! Days of a monitor in minutes: a whole monitor over SQLite in a file, real probes over loopback, outages that are told and acknowledged,
//! readers of the dashboard, history that is counted and forgotten. The clock jumps to whatever is due next. Prints what is in memory
//! for each hour that has passed, as CSV, and fails if that still grows when as much is forgotten as comes.
//!
//! `--targets N --days N --kept HOURS`: results are kept for so many hours, and all else for a few times as long, so that a few simulated
//! days show what happens in months. The servers are this program once more, so that only the monitor is measured.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up fails by panicking")]

#[path = "load/figures.rs"]
#[expect(dead_code, reason = "the bench of the load needs more of it")]
mod figures;
#[path = "../tests/store/fixtures.rs"]
#[expect(dead_code, reason = "the tests need more of it")]
mod fixtures;
#[path = "../tests/store/server.rs"]
mod server;

use fixtures::{config, over_http, reach};
use mcproof_client::Network;
use mcproof_watch::channel::DeliveryClient;
use mcproof_watch::config::{ChannelSpec, Config, Retention, Route, Secret, TargetSpec};
use mcproof_watch::moment::Moment;
use mcproof_watch::monitor::Monitor;
use mcproof_watch::notifier::Notifier;
use mcproof_watch::store::read::Which;
use mcproof_watch::store::{Store, incidents, sqlite};
use mcproof_watch::web::{self, State};
use server::{Mood, Moods, serve};
use sqlx::AnyPool;
use sqlx::any::AnyPoolOptions;
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;

const BEGIN: Moment = Moment(1_800_000_000_000);
const HOUR: i64 = 3_600_000;
/// Outages of each hour, and how long they last.
const OUTAGES: u32 = 3;
const LASTS: i64 = HOUR / 6;
/// Between two looks of a reader.
const READ_EVERY: i64 = HOUR / 6;
/// Incidents and sums over hours are kept for so many times as long as results. Until they are forgotten, everything grows.
const LONGEST_KEPT: u32 = 3;
/// Of memory: what it may grow by in the last quarter of the time, as a part of what it is.
const NOISE: u64 = 50;

static CLOCK: AtomicI64 = AtomicI64::new(BEGIN.0);

fn now() -> Moment {
    Moment(CLOCK.load(Ordering::Relaxed))
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if words.first().is_some_and(|word| word == "--server") {
        runtime.block_on(run_server());
        return ExitCode::SUCCESS;
    }
    let number = |flag: &str, usual: u32| {
        let at = words.iter().position(|word| word == flag);
        at.and_then(|at| words.get(at + 1)).map_or(usual, |text| text.parse().unwrap())
    };
    let (targets, days, kept) = (number("--targets", 50), number("--days", 6), number("--kept", 24));
    assert!(days * 12 >= kept * LONGEST_KEPT, "in half of the time, nothing is forgotten yet: it takes more days, or fewer hours kept");
    let resident = runtime.block_on(soak(targets, i64::from(days), kept));
    println!("at the most: {} MiB", figures::memory());
    let quarter = resident.len() / 4;
    let [before, after] = [&resident[quarter * 2..quarter * 3], &resident[quarter * 3..]].map(median);
    println!("in the third quarter of the time {before} KiB, in the last {after} KiB");
    if after <= before + before / NOISE { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn median(numbers: &[u64]) -> u64 {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers[numbers.len() / 2]
}

/// All servers at one address. A line of standard input is the list of those that are broken from now on.
async fn run_server() {
    let broken = Arc::<Mutex<BTreeSet<String>>>::default();
    let of_thread = Arc::clone(&broken);
    let (ended, end) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            let names = line.unwrap().split_whitespace().map(str::to_owned).collect();
            *of_thread.lock().unwrap() = names;
        }
        // Nobody waits for it where the server has ended.
        let _ = ended.send(());
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    let moods: Moods = Arc::new(move |name: &str| if broken.lock().unwrap().contains(name) { Mood::Broken } else { Mood::Well });
    tokio::select! {
        _ = serve(listener, moods) => {}
        _ = end => {}
    }
}

struct Servers {
    process: Child,
    stdin: ChildStdin,
    address: SocketAddr,
    broken: Vec<String>,
}

impl Servers {
    fn start() -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut process = command.arg("--server").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let address = lines.next().unwrap().unwrap().parse().unwrap();
        Self { stdin: process.stdin.take().unwrap(), process, address, broken: Vec::new() }
    }

    /// Each hour others are broken for some minutes.
    fn at(&mut self, now: i64, targets: u32) {
        let hour = u32::try_from((now - BEGIN.0) / HOUR).unwrap();
        let is_on = (now - BEGIN.0) % HOUR < LASTS;
        let name = |number: u32| format!("target-{}", (hour * OUTAGES + number) % targets);
        let broken: Vec<String> = (0..OUTAGES).filter(|_| is_on).map(name).collect();
        if broken != self.broken {
            writeln!(self.stdin, "{}", broken.join(" ")).unwrap();
            self.broken = broken;
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// Results are kept for so many hours. Gives what was in memory in each hour, in KiB.
async fn soak(targets: u32, days: i64, hours: u32) -> Vec<u64> {
    let kept = Duration::from_secs(3_600) * hours;
    let folder = tempfile::tempdir().unwrap();
    let mut servers = Servers::start();
    let origin = format!("http://{}", servers.address);
    let target = |number: u32| {
        let name = format!("target-{number}");
        TargetSpec { public: true, ..over_http(&name, &format!("{origin}/{name}")) }
    };
    let config = Config {
        targets: (0..targets).map(target).map(|target| (target.name.clone(), target)).collect(),
        channels: [("chat".to_owned(), ChannelSpec::Webhook { url: Secret::new(format!("{origin}/chat")), secret: None })].into(),
        routes: vec![Route { channels: vec!["chat".into()], remind_every: Some(Duration::from_secs(120)), ..Route::default() }],
        retention: Retention { raw: kept, five_minutes: kept * 2, hours: kept * LONGEST_KEPT },
        ..config()
    };
    let file = folder.path().join("watch.db");
    let store = Store::open(&sqlite(&file)).await.unwrap();
    let rows = AnyPoolOptions::new().max_connections(1).connect(&sqlite(&file)).await.unwrap();
    let monitor = Monitor::over(store.clone(), config.clone(), reach("soak"), BEGIN).await.unwrap();
    let notifier = Notifier::new(store.clone(), monitor.plan(), DeliveryClient::new(Network::default()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dashboard = listener.local_addr().unwrap();
    let config = Arc::new(config);
    let state = State::new(store.clone(), Arc::new(move || config.clone()), now, broadcast::channel(256).0);
    tokio::spawn(async move { web::serve(listener, state, std::future::pending()).await.unwrap() });

    println!("hour,resident_kib,database_kib,log_kib,results,sent,seconds");
    let (began, mut sent, mut read, mut told) = (Instant::now(), 0, BEGIN.0, -1);
    let mut all = Vec::new();
    let end = BEGIN.0 + days * 24 * HOUR;
    let mut now = BEGIN;
    while now.0 < end {
        CLOCK.store(now.0, Ordering::Relaxed);
        servers.at(now.0, targets);
        let next = [monitor.worker.pass(now).await.unwrap(), monitor.chores.pass(now).await.unwrap()];
        let round = notifier.pass(now).await.unwrap();
        sent += round.sent.len();
        if now.0 >= read {
            read = now.0 + READ_EVERY;
            for path in ["/", "/status", "/targets/target-0", "/targets/target-1?span=7d", "/incidents?state=all", "/metrics"] {
                ask(dashboard, path).await;
            }
            for incident in store.incidents(Which::Open, None, 10).await.unwrap() {
                incidents::acknowledge(&store, &incident.id, "ann", now).await.unwrap();
            }
        }
        let hour = (now.0 - BEGIN.0) / HOUR;
        if hour > told {
            told = hour;
            forget_incidents(&rows, now.0 - HOUR * i64::from(hours * LONGEST_KEPT)).await;
            let size = |name: &str| std::fs::metadata(folder.path().join(name)).map_or(0, |about| about.len() >> 10);
            let results = monitor.worker_health.report().results;
            let seconds = began.elapsed().as_secs();
            let resident = resident();
            all.push(resident);
            println!("{hour},{resident},{},{},{results},{sent},{seconds}", size("watch.db"), size("watch.db-wal"));
        }
        let soon = now + Duration::from_millis(100);
        now = next.into_iter().chain([round.next]).flatten().min().unwrap_or(soon).max(soon);
    }
    all
}

/// The monitor keeps incidents for ever; then the file would grow, and what is in memory of it.
async fn forget_incidents(rows: &AnyPool, until: i64) {
    for statement in [
        "DELETE FROM outbox WHERE incident IN (SELECT id FROM incident WHERE resolved < $1)",
        "DELETE FROM incident_event WHERE incident IN (SELECT id FROM incident WHERE resolved < $1)",
        "DELETE FROM incident WHERE resolved < $1",
    ] {
        sqlx::query(statement).bind(until).execute(rows).await.unwrap();
    }
}

async fn ask(address: SocketAddr, path: &str) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut body = Vec::new();
    stream.read_to_end(&mut body).await.unwrap();
    assert!(body.starts_with(b"HTTP/1.1 200"), "{path}: {}", String::from_utf8_lossy(&body[..body.len().min(200)]));
}

/// What is in memory, in KiB.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
