//! How long the server takes for each page, with a thousand targets and thirty days of results: `cargo bench -p mcproof-watch
//! --bench pages`. Prints the 50th and the 95th percentile; asserts nothing, because a busy machine proves nothing.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![expect(clippy::print_stdout, reason = "it is there to be read")]

#[path = "../tests/web/data.rs"]
mod data;

use data::{Amount, Data, NOW};
use mcproof_watch::config::Config;
use mcproof_watch::moment::Moment;
use mcproof_watch::store::{Store, sqlite};
use mcproof_watch::web::{self, State};
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::broadcast;

const AMOUNT: Amount = Amount { targets: 1_000, days: 30, fine_days: 14, raw_days: 1 };
const ROUNDS: usize = 40;

/// What is read only now and then is read anew after this.
const A_WHILE: i64 = 61_000;

/// Milliseconds since [`NOW`].
static CLOCK: AtomicI64 = AtomicI64::new(0);

fn now() -> Moment {
    Moment(NOW.0 + CLOCK.load(Ordering::Relaxed))
}

fn alone() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn get(address: SocketAddr, path: &str) -> (Duration, usize) {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut body = Vec::new();
    let begun = Instant::now();
    // As a browser asks.
    let more = "Accept-Encoding: gzip, deflate, br\r\nConnection: close";
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{more}\r\n\r\n").as_bytes()).unwrap();
    stream.read_to_end(&mut body).unwrap();
    assert!(body.starts_with(b"HTTP/1.1 200"), "{path}");
    (begun.elapsed(), body.len())
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let begun = Instant::now();
    alone().block_on(async {
        let (_, data) = Data::new(folder.path()).await;
        data.fill(AMOUNT).await;
        data.evidence("evidence-1", "svc-0001").await;
        data.change("change-1", "svc-0003").await;
        let detail = json!({ "layer": "connect", "message": "connection refused" });
        data.incident("incident-1", "svc-0001", "availability", "svc-0001 is down", &detail, Some("evidence-1")).await;
    });
    let database = folder.path().join("watch.db");
    let size = std::fs::metadata(&database).unwrap().len() >> 20;
    println!("{} targets, {} days, {size} MiB, made in {:.0?}", AMOUNT.targets, AMOUNT.days, begun.elapsed());
    let (tell, address) = mpsc::channel();
    std::thread::spawn(move || {
        alone().block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            let config = Arc::new(Config::default());
            let store = Store::open(&sqlite(&database)).await.unwrap();
            let state = State::new(store, Arc::new(move || config.clone()), now, broadcast::channel(64).0);
            web::serve(listener, state, std::future::pending()).await.unwrap();
        });
    });
    let address = address.recv().unwrap();
    println!("{:<32} {:>10} {:>10} {:>10} {:>10}", "page", "first", "p50", "p95", "KiB");
    for path in [
        "/",
        "/?q=svc-0999",
        "/rows?names=%5B%22svc-0007%22%5D",
        "/targets/svc-0500",
        "/targets/svc-0500?span=7d",
        "/targets/svc-0500?span=30d",
        "/targets/svc-0500?span=90d",
        "/incidents",
        "/incidents/incident-1",
        "/evidence/evidence-1",
        "/changes/change-1",
        "/status",
        "/status/svc-0501",
        "/badge/svc-0501.svg",
        "/api/targets",
        "/metrics",
        "/healthz",
    ] {
        measure(address, path, path, 0);
    }
    for (path, shown) in [("/", "/ after a while"), ("/status", "/status after a while")] {
        measure(address, path, shown, A_WHILE);
    }
}

/// `later`: milliseconds that pass before each request.
fn measure(address: SocketAddr, path: &str, shown: &str, later: i64) {
    let (first, size) = get(address, path);
    let one = || {
        CLOCK.fetch_add(later, Ordering::Relaxed);
        get(address, path).0
    };
    let mut times: Vec<Duration> = (0..ROUNDS).map(|_| one()).collect();
    times.sort();
    println!("{shown:<32} {first:>10.1?} {:>10.1?} {:>10.1?} {:>10}", times[ROUNDS / 2], times[ROUNDS * 95 / 100], size / 1024);
}
