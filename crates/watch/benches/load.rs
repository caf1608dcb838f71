//! Thousands of targets, every one of them once a minute, against a server on loopback: how late probes begin, how many slots are
//! skipped, and what it takes in memory and in CPU. Before that, how many probes a core can do at the most, next to what the same
//! exchange costs hyper and rustls alone, measured in the same run.
//!
//! `--targets N --minutes N`, `--ceiling SECONDS`; `--tls` for targets over TLS. One process on SQLite; with `--postgres` it is
//! `--workers N` processes on a Postgres of their own. The server and the workers are this program once more.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "it runs in real time")]

#[path = "../tests/authority/mod.rs"]
mod authority;
#[path = "load/bare.rs"]
mod bare;
#[path = "load/figures.rs"]
mod figures;
#[path = "../tests/store/fixtures.rs"]
#[expect(dead_code, reason = "the tests need more of it")]
mod fixtures;
#[path = "../tests/postgres/mod.rs"]
mod postgres;
#[path = "../tests/store/server.rs"]
mod server;

use authority::Authority;
use figures::{cpu, cpu_of, memory};
use fixtures::{config, over_http, reach};
use mcproof_client::{Network, Tls};
use mcproof_watch::clock::Clock;
use mcproof_watch::config::TargetSpec;
use mcproof_watch::latency::Latency;
use mcproof_watch::moment::Moment;
use mcproof_watch::monitor::{Monitor, Role};
use mcproof_watch::store::{Store, sqlite};
use mcproof_watch::worker::HealthReport;
use postgres::{Cluster, Durability};
use serde::{Deserialize, Serialize};
use server::{Mood, Moods, converse, serve};
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

const EVERY: Duration = Duration::from_secs(60);
/// More than a core can do: these targets are due again before their turn comes.
const TOO_MANY: u32 = 3_000;
const TOO_OFTEN: Duration = Duration::from_secs(1);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match words.first().map(String::as_str) {
        Some("--server") => return runtime.block_on(run_server(Path::new(&words[1]))),
        Some("--worker") => return runtime.block_on(work(&serde_json::from_str(&words[1]).unwrap())),
        _ => {}
    }
    let has = |flag: &str| words.iter().any(|word| word == flag);
    let number = |flag: &str, usual: u32| {
        let at = words.iter().position(|word| word == flag);
        at.and_then(|at| words.get(at + 1)).map_or(usual, |text| text.parse().unwrap())
    };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let over_tls = has("--tls");
    let seconds = u64::from(number("--ceiling", 10));
    if seconds > 0 {
        for over_tls in [false, true] {
            runtime.block_on(ceiling(&server, over_tls, Duration::from_secs(seconds)));
        }
    }
    let (targets, minutes) = (number("--targets", 5_000), number("--minutes", 2));
    let lasts = Duration::from_secs(u64::from(minutes) * 60);
    if has("--postgres") {
        let cluster = Cluster::start(Durability::Full);
        let task = Task { name: String::new(), database: cluster.database("load"), targets, every: EVERY, lasts, ..server.task(over_tls) };
        on_postgres(&cluster, &task, number("--workers", 2));
    } else if minutes > 0 {
        let file = folder.path().join("watch.db");
        let task = Task { name: "bench".into(), database: sqlite(&file), targets, every: EVERY, lasts, ..server.task(over_tls) };
        runtime.block_on(probe(&task)).print(&task);
        println!("database: {} MiB", std::fs::metadata(&file).unwrap().len() >> 20);
    }
}

/// The servers of all targets.
struct Server {
    process: Child,
    plain: SocketAddr,
    secure: SocketAddr,
    /// PEM.
    authority: PathBuf,
}

impl Server {
    fn start(folder: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut process = command.arg("--server").arg(folder).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut address = || lines.next().unwrap().unwrap().parse().unwrap();
        Self { plain: address(), secure: address(), authority: folder.join("ca.pem"), process }
    }

    fn task(&self, over_tls: bool) -> Task {
        let origin = if over_tls { format!("https://{}", self.secure) } else { format!("http://{}", self.plain) };
        Task { origin, authority: self.authority.clone(), ..Task::default() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

async fn run_server(folder: &Path) {
    let moods: Moods = Arc::new(|_: &str| Mood::Well);
    let acceptor = TlsAcceptor::from(Authority::new(folder).server(|_| {}));
    let (plain, secure) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap());
    println!("{}\n{}", plain.local_addr().unwrap(), secure.local_addr().unwrap());
    let (for_plain, for_secure) = (Arc::clone(&moods), moods);
    let securing = async {
        while let Ok((stream, _)) = secure.accept().await {
            let (acceptor, moods) = (acceptor.clone(), Arc::clone(&for_secure));
            tokio::spawn(async move {
                let _ = stream.set_nodelay(true);
                if let Ok(stream) = acceptor.accept(stream).await {
                    let _ = converse(stream, &moods).await;
                }
            });
        }
    };
    tokio::join!(serve(plain, for_plain), securing);
}

/// What a monitor is to do.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Task {
    name: String,
    database: String,
    /// All targets are there, and differ by the path.
    origin: String,
    authority: PathBuf,
    targets: u32,
    every: Duration,
    lasts: Duration,
    /// Results before anything is measured: the first one of a target brings its contract.
    warm_up: u64,
}

/// What came of it, in one process.
#[derive(Serialize, Deserialize)]
struct Figures {
    /// Seconds.
    elapsed: f64,
    cpu: f64,
    /// MiB.
    memory: u64,
    results: u64,
    dropped: u64,
    missed: u64,
    lag: Vec<u8>,
    trouble: Option<String>,
}

async fn work(task: &Task) {
    println!("{}", serde_json::to_string(&probe(task).await).unwrap());
}

async fn probe(task: &Task) -> Figures {
    let store = Store::open(&task.database).await.unwrap();
    let mut config = config();
    let target = |number: u32| {
        let name = format!("target-{number}");
        TargetSpec { every: task.every, ..over_http(&name, &format!("{}/{name}", task.origin)) }
    };
    config.targets = (0..task.targets).map(target).map(|target| (target.name.clone(), target)).collect();
    let mut tls = Tls::default();
    tls.trust(&std::fs::read(&task.authority).unwrap()).unwrap();
    let reach = mcproof_watch::monitor::Reach { network: Network { tls, ..Network::default() }, ..reach(&task.name) };
    let monitor = Monitor::over(store, config, reach, Moment::from(SystemTime::now())).await.unwrap();
    let mut start = (cpu(), Instant::now(), 0);
    let measured = async {
        while start.2 < task.warm_up {
            tokio::time::sleep(Duration::from_millis(20)).await;
            start = (cpu(), Instant::now(), monitor.worker_health.report().results);
        }
        tokio::time::sleep(task.lasts).await;
    };
    monitor.run(Role::Serve, &Clock::of_machine(SystemTime::now), measured).await;
    let (before, began, warmed) = start;
    let HealthReport { results, dropped, missed, lag, trouble, .. } = monitor.worker_health.report();
    Figures {
        elapsed: began.elapsed().as_secs_f64(),
        cpu: cpu() - before,
        memory: memory(),
        results: results - warmed,
        dropped,
        missed,
        lag: lag.bytes(),
        trouble: trouble.map(|trouble| trouble.why),
    }
}

impl Figures {
    /// Microseconds of CPU for a probe and its result.
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    fn each(&self) -> f64 {
        self.cpu / self.results as f64 * 1e6
    }

    fn print(&self, task: &Task) {
        let lag = Latency::read(&self.lag);
        let at = |share: f64| Duration::from_micros(lag.quantile(share).unwrap_or(0));
        println!("{} targets for {:.0} s: {} results", task.targets, self.elapsed, self.results);
        println!(
            "lag: p50 {:?}, p99 {:?}, worst {:?}; {} slots skipped, {} results dropped",
            at(0.5),
            at(0.99),
            at(1.0),
            self.missed,
            self.dropped
        );
        let core = self.cpu / self.elapsed * 100.0;
        println!("memory: {} MiB at the most; {:.0} µs of CPU for a probe and its result; {core:.0} % of a core", self.memory, self.each());
        if let Some(trouble) = &self.trouble {
            println!("trouble: {trouble}");
        }
    }
}

/// As many probes as one process can do, and next to them as many bare exchanges.
async fn ceiling(server: &Server, over_tls: bool, lasts: Duration) {
    let authority = std::fs::read(&server.authority).unwrap();
    let (name, address, authority) = match over_tls {
        false => ("HTTP", server.plain, None),
        true => ("TLS", server.secure, Some(&authority[..])),
    };
    // Before and after, so that a machine that changes its speed changes it for both.
    let before = bare::exchange(address, authority).await;
    let folder = tempfile::tempdir().unwrap();
    let database = sqlite(&folder.path().join("watch.db"));
    let task = Task { name: "bench".into(), database, targets: TOO_MANY, every: TOO_OFTEN, lasts, ..server.task(over_tls) };
    let task = Task { warm_up: u64::from(TOO_MANY) * 2, ..task };
    let figures = probe(&task).await;
    let bare = (before + bare::exchange(address, authority).await) / 2.0;
    let (bare, each) = (bare * 1e6, figures.each());
    println!(
        "{name}: at the most {:.0} probes a second and core ({each:.0} µs of CPU), {:.0} bare exchanges ({bare:.0} µs): {:.0} %; \
         {:.0} % of a core",
        1e6 / each,
        1e6 / bare,
        bare / each * 100.0,
        figures.cpu / figures.elapsed * 100.0
    );
}

fn on_postgres(cluster: &Cluster, task: &Task, workers: u32) {
    let before = cluster.process().map_or(0.0, cpu_of);
    let start = |number: u32| {
        let task = Task { name: format!("worker-{number}"), ..task.clone() };
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg("--worker").arg(serde_json::to_string(&task).unwrap()).stdout(Stdio::piped()).spawn().unwrap()
    };
    let workers: Vec<Child> = (0..workers).map(start).collect();
    let end = |worker: Child| -> Figures {
        let output = worker.wait_with_output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let all: Vec<Figures> = workers.into_iter().map(end).collect();
    let mut lag = Latency::default();
    for (number, figures) in all.iter().enumerate() {
        println!("worker {number}:");
        figures.print(task);
        lag.merge(&Latency::read(&figures.lag));
    }
    let at = |share: f64| Duration::from_micros(lag.quantile(share).unwrap_or(0));
    let sum = |of: fn(&Figures) -> u64| all.iter().map(of).sum::<u64>();
    println!(
        "together: {} results; lag p50 {:?}, p99 {:?}, worst {:?}; {} slots skipped, {} results dropped",
        sum(|one| one.results),
        at(0.5),
        at(0.99),
        at(1.0),
        sum(|one| one.missed),
        sum(|one| one.dropped)
    );
    // Its connections are processes that have ended by now.
    let spent = cluster.process().map_or(0.0, cpu_of) - before;
    println!("postgres: {:.0} % of a core", spent / task.lasts.as_secs_f64() * 100.0);
}
