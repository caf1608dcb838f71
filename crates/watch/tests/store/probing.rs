//! Probes of real servers by a worker, pass by pass: what each failure is, and whose.

use super::fixtures::*;
use super::server::{Mood, serve};
use mcproof_client::TransportKind;
use mcproof_engine::suite::plan::{Binding, Launch, Reach};
use mcproof_testkit::demo::{DemoName, DemoOptions, bind};
use mcproof_watch::config::{TargetKind, TargetSpec};
use mcproof_watch::moment::Moment;
use mcproof_watch::monitor::Monitor;
use mcproof_watch::store::Store;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use tokio::net::TcpListener;

async fn monitor(address: &str, targets: Vec<TargetSpec>, canaries: Vec<String>) -> Monitor {
    let store = Store::open(address).await.unwrap();
    let mut config = config();
    config.canaries = canaries;
    config.targets = targets.into_iter().map(|target| (target.name.clone(), target)).collect();
    Monitor::over(store, config, reach("worker"), START).await.unwrap()
}

fn impatient(spec: TargetSpec) -> TargetSpec {
    TargetSpec { timeout: Duration::from_millis(400), ..spec }
}

/// An address at which nobody listens.
async fn closed() -> String {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string()
}

/// Serves whoever asks as long as the flag says so.
async fn small_server(is_well: Arc<AtomicBool>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mood = move |_: &str| if is_well.load(Ordering::Relaxed) { Mood::Well } else { Mood::Broken };
    tokio::spawn(serve(listener, Arc::new(mood)));
    format!("http://{address}/small")
}

pub(crate) async fn each_failure_has_its_layer_and_its_culprit(address: String) {
    let shop = bind(&DemoOptions::new(DemoName::Shop)).await.unwrap();
    let shop_url = shop.url();
    tokio::spawn(shop.serve(std::future::pending()));
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hangs = format!("http://{}/mcp", silent.local_addr().unwrap());
    let no_tls = format!("https://{}/mcp", plain.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = plain.accept().await {
            drop(stream);
        }
    });
    let stdio = |name: &str, command: &[&str]| {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        let launch = Launch { command, env: Vec::new(), folder: std::env::temp_dir(), cwd: None };
        let (place, reach) = (place(), Reach::default());
        let transport = TransportKind::Stdio;
        server(name, Binding { transport, place, launch: Some(launch), url: None, headers: Vec::new(), port_from: None, reach })
    };
    let own = std::env::current_exe().unwrap();
    let targets = vec![
        over_http("demo", &shop_url),
        stdio("stdio", &[own.to_str().unwrap(), "--demo"]),
        stdio("missing", &["/no/such/program"]),
        impatient(over_http("hangs", &hangs)),
        impatient(over_http("no-tls", &no_tls)),
        over_http("refused", &format!("http://{}/mcp", closed().await)),
        over_http("unnamed", "http://no-such-name.invalid/mcp"),
        // An address for documentation: nobody has it.
        impatient(over_http("cut-off", "http://192.0.2.1:9/mcp")),
        TargetSpec { kind: TargetKind::Monitor(format!("http://{}/healthz", closed().await)), ..target("monitor") },
    ];
    let monitor = monitor(&address, targets, vec![closed().await]).await;
    monitor.worker.pass(START + MINUTE).await.unwrap();
    let found = rows(&address, "SELECT target, verdict FROM result ORDER BY target").await;
    let expected = [
        ["cut-off", "inconclusive"],
        ["demo", "up"],
        ["hangs", "down"],
        ["missing", "down"],
        ["monitor", "down"],
        ["no-tls", "down"],
        ["refused", "down"],
        ["stdio", "up"],
        ["unnamed", "inconclusive"],
    ];
    assert_eq!(found, expected);
    let kept = rows(&address, "SELECT target FROM result WHERE evidence IS NULL").await;
    assert!(kept.is_empty(), "what failed and what is new has evidence: {kept:?}");
    assert_eq!(rows(&address, "SELECT target FROM contract ORDER BY target").await, [["demo"], ["stdio"]]);
    assert_eq!(rows(&address, "SELECT target FROM result WHERE reason = '' ORDER BY target").await, [["demo"], ["stdio"]]);
}

pub(crate) async fn an_outage_is_confirmed_told_once_and_ended(address: String) {
    let is_well = Arc::new(AtomicBool::new(true));
    let url = small_server(Arc::clone(&is_well)).await;
    let monitor = monitor(&address, vec![over_http("small", &url)], Vec::new()).await;
    let mut now = START;
    let mut course = Vec::new();
    for is_up in [true, true, false, false, false, false, true, true, true] {
        is_well.store(is_up, Ordering::Relaxed);
        now = monitor.store.next_due("here", now).await.unwrap().unwrap().max(now);
        monitor.worker.pass(now).await.unwrap();
        course.push(rows(&address, "SELECT availability FROM target").await.remove(0).remove(0));
    }
    assert_eq!(course, ["ok", "ok", "suspect", "suspect", "down", "down", "recovering", "ok", "ok"]);
    let told = rows(&address, "SELECT class, CAST(resolved IS NOT NULL AS TEXT) FROM incident").await;
    assert_eq!((told.len(), told[0][0].as_str()), (1, "availability"));
    assert!(["1", "true"].contains(&told[0][1].as_str()), "{told:?}");
    let contracts = rows(&address, "SELECT CAST(count(*) AS TEXT) FROM contract").await;
    assert_eq!(contracts, [["1"]], "the same contract is kept once");
}

pub(crate) async fn once_probes_everything_at_once(address: String) {
    let url = small_server(Arc::new(AtomicBool::new(true))).await;
    #[expect(clippy::disallowed_methods, reason = "what cron does, it does now")]
    let clock = SystemTime::now;
    // No slot of its own comes meanwhile.
    let daily = |name: &str| TargetSpec { every: Duration::from_secs(86_400), ..over_http(name, &url) };
    let mut config = config();
    config.targets = [daily("other"), daily("small")].map(|target| (target.name.clone(), target)).into();
    let store = Store::open(&address).await.unwrap();
    let monitor = Monitor::over(store, config, reach("cron"), Moment::from(clock())).await.unwrap();
    monitor.once(clock).await.unwrap();
    monitor.once(clock).await.unwrap();
    let statement = "SELECT target, verdict, CAST(count(*) AS TEXT) FROM result GROUP BY target, verdict ORDER BY target";
    assert_eq!(rows(&address, statement).await, [["other", "up", "2"], ["small", "up", "2"]]);
}
