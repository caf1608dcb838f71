//! Thousands of targets in one process on SQLite, every one of them once a minute, against a server on loopback: how late probes
//! begin, how many slots are skipped, what it takes in memory, and the CPU time of a probe next to that of a bare exchange of the
//! same two requests in the same run. `--targets N --minutes N`; the server is this program once more.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "it runs in real time")]

#[path = "../tests/store/fixtures.rs"]
#[expect(dead_code, reason = "the tests need more of it")]
mod fixtures;
#[path = "../tests/store/server.rs"]
mod server;

use fixtures::{config, over_http, reach};
use mcproof_watch::config::TargetSpec;
use mcproof_watch::moment::Moment;
use mcproof_watch::monitor::{Monitor, Role};
use mcproof_watch::store::{Store, sqlite};
use server::{Mood, serve};
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const EVERY: Duration = Duration::from_secs(60);
/// Bare exchanges that are measured.
const BARE: u32 = 3_000;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |flag: &str, usual: u32| {
        let at = words.iter().position(|word| word == flag);
        at.and_then(|at| words.get(at + 1)).map_or(usual, |text| text.parse().unwrap())
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if words.first().is_some_and(|word| word == "--server") {
        return runtime.block_on(run_server());
    }
    let mut server = Command::new(std::env::current_exe().unwrap()).arg("--server").stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut address).unwrap();
    runtime.block_on(measure(address.trim(), number("--targets", 5_000), number("--minutes", 2)));
    server.kill().unwrap();
    server.wait().unwrap();
}

async fn run_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    serve(listener, Arc::new(|_: &str| Mood::Well)).await;
}

async fn measure(address: &str, targets: u32, minutes: u32) {
    let bare = bare(address).await;
    println!("bare exchange of two requests on a new connection: {:.0} µs of CPU", bare * 1e6);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("watch.db");
    let store = Store::open(&sqlite(&file)).await.unwrap();
    let mut config = config();
    let target = |number: u32| {
        let name = format!("target-{number}");
        TargetSpec { every: EVERY, ..over_http(&name, &format!("http://{address}/{name}")) }
    };
    config.targets = (0..targets).map(target).map(|target| (target.name.clone(), target)).collect();
    let monitor = Monitor::over(store, config, reach("bench"), Moment::from(SystemTime::now())).await.unwrap();
    let (cpu, began) = (cpu(), Instant::now());
    let lasts = Duration::from_secs(u64::from(minutes) * 60);
    monitor.run(Role::Serve, SystemTime::now, tokio::time::sleep(lasts)).await;
    let (spent, elapsed) = (self::cpu() - cpu, began.elapsed());
    let vitals = monitor.pulse.vitals();
    let lag = |share: f64| Duration::from_micros(vitals.lag.quantile(share).unwrap_or(0));
    println!("{targets} targets for {:.0} s: {} results of {}", elapsed.as_secs_f64(), vitals.results, targets * minutes);
    println!(
        "lag: p50 {:?}, p99 {:?}, worst {:?}; {} slots skipped, {} results dropped",
        lag(0.5),
        lag(0.99),
        lag(1.0),
        vitals.missed,
        vitals.dropped
    );
    println!("memory: {} MiB at the most; database {} MiB", memory() >> 10, std::fs::metadata(&file).unwrap().len() >> 20);
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    let probe = spent / vitals.results as f64;
    println!(
        "{:.0} µs of CPU for a probe and its result, {:.1} times the bare exchange; {:.0} % of a core",
        probe * 1e6,
        probe / bare,
        spent / elapsed.as_secs_f64() * 100.0
    );
    if let Some(trouble) = vitals.trouble {
        println!("trouble: {trouble}");
    }
}

/// Seconds of CPU for the same two requests, ready-made.
async fn bare(address: &str) -> f64 {
    let request = |method: &str| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{}}}}"#);
        format!("POST /bare HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    };
    let before = cpu();
    let mut answer = vec![0; 4_096];
    for _ in 0..BARE {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        for method in ["server/discover", "tools/list"] {
            stream.write_all(request(method).as_bytes()).await.unwrap();
            assert!(stream.read(&mut answer).await.unwrap() > 0);
        }
    }
    (cpu() - before) / f64::from(BARE)
}

/// Seconds of CPU that this process has had.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = text.rsplit(')').next().unwrap();
    let ticks: u32 = after_name.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u32>().unwrap()).sum();
    f64::from(ticks) / 100.0
}

/// The most that was ever in memory, in KiB.
fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
