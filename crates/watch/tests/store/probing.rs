//! Probes of real servers by a worker, pass by pass: what each failure is, and whose.

use super::fixtures::*;
use super::server::{Mood, serve};
use mcproof_demo::{DemoName, DemoOptions, bind};
use mcproof_protocol::Transport;
use mcproof_suite::plan::{Binding, Inherited, Launch, Reach};
use mcproof_watch::clock::Clock;
use mcproof_watch::config::{Config, Secret, TargetKind, TargetSpec};
use mcproof_watch::monitor::Monitor;
use mcproof_watch::push::{Expectation, PushSchedule, Said};
use mcproof_watch::state::Thresholds;
use mcproof_watch::store::Store;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use tokio::net::{TcpListener, TcpSocket};

pub(crate) async fn monitor(address: &str, targets: Vec<TargetSpec>, canaries: Vec<String>) -> Monitor {
    let store = Store::open(address).await.unwrap();
    let mut config = config();
    config.canaries = canaries;
    config.targets = targets.into_iter().map(|target| (target.name.clone(), target)).collect();
    Monitor::over(store, config, reach("worker"), START).await.unwrap()
}

fn impatient(spec: TargetSpec) -> TargetSpec {
    TargetSpec { timeout: Duration::from_millis(400), ..spec }
}

/// A server that is started.
fn stdio(name: &str, command: &[&str]) -> TargetSpec {
    let command = command.iter().map(|word| (*word).to_owned()).collect();
    let launch = Launch { command, env: Vec::new(), folder: std::env::temp_dir(), cwd: None, inherited: Inherited::All };
    let (place, reach) = (place(), Reach::default());
    let transport = Transport::Stdio;
    server(name, Binding { transport, place, launch: Some(launch), url: None, headers: Vec::new(), port_from: None, reach })
}

/// An address at which nobody listens, as long as this process lives.
fn closed() -> String {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = socket.local_addr().unwrap().to_string();
    // A port that is bound is nobody else's.
    std::mem::forget(socket);
    address
}

/// Serves whoever asks as long as the flag says so.
pub(crate) async fn small_server(is_well: Arc<AtomicBool>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mood = move |_: &str| if is_well.load(Ordering::Relaxed) { Mood::Well } else { Mood::Broken };
    tokio::spawn(serve(listener, Arc::new(mood)));
    format!("http://{address}/small")
}

pub(crate) async fn a_job_is_down_when_it_does_not_report_in(address: String) {
    let expectation = Expectation { rhythm: PushSchedule::Every(MINUTE * 60), grace: MINUTE * 5, lasts: Some(MINUTE * 30) };
    let token = Secret::new("the-token-of-the-backup");
    let job = TargetSpec { kind: TargetKind::Push { token, expectation }, ..target("backup") };
    let monitor = monitor(&address, vec![job], Vec::new()).await;
    let state = || rows(&address, "SELECT availability FROM target");
    let reasons = || rows(&address, "SELECT reason FROM result ORDER BY slot DESC, attempt DESC LIMIT 1");
    // It looks once a minute, and again five seconds later where that is needed.
    let look = async |from: i64, until: i64| {
        let mut now = START + MINUTE * u32::try_from(from).unwrap();
        let end = START + MINUTE * u32::try_from(until).unwrap();
        while now < end {
            monitor.worker.pass(now).await.unwrap();
            monitor.chores.pass(now).await.unwrap();
            now = now + Duration::from_secs(5);
        }
    };
    look(1, 4).await;
    assert_eq!((state().await, reasons().await), (vec![vec!["ok".to_owned()]], vec![vec!["job-report-pending".to_owned()]]));
    monitor.store.push("backup", Said::Succeeded, "", START + MINUTE * 4).await.unwrap();
    look(4, 6).await;
    assert_eq!((state().await, reasons().await), (vec![vec!["ok".to_owned()]], vec![vec![String::new()]]));
    monitor.store.push("backup", Said::Failed, "disk full", START + MINUTE * 6).await.unwrap();
    look(6, 9).await;
    assert_eq!((state().await, reasons().await), (vec![vec!["down".to_owned()]], vec![vec!["job-failed".to_owned()]]));
    let titles = rows(&address, "SELECT title FROM incident").await;
    assert!(titles[0][0].starts_with("backup is down: the job reported a failure at ") && titles[0][0].contains("disk full"), "{titles:?}");
    monitor.store.push("backup", Said::Started, "", START + MINUTE * 9).await.unwrap();
    monitor.store.push("backup", Said::Succeeded, "", START + MINUTE * 10).await.unwrap();
    look(10, 12).await;
    assert_eq!(state().await, [["ok"]]);
    // An hour and five minutes after the last success.
    look(74, 75).await;
    assert_eq!(state().await, [["ok"]]);
    look(75, 77).await;
    assert_eq!((state().await, reasons().await), (vec![vec!["down".to_owned()]], vec![vec!["job-missing".to_owned()]]));
    monitor.store.push("backup", Said::Started, "", START + MINUTE * 77).await.unwrap();
    look(77, 79).await;
    let late = (vec![vec!["down".to_owned()]], vec![vec!["job-missing".to_owned()]]);
    assert_eq!((state().await, reasons().await), late, "it began too late: it is up when it has succeeded");
    look(107, 110).await;
    assert_eq!((state().await, reasons().await), (vec![vec!["down".to_owned()]], vec![vec!["job-overruns".to_owned()]]));
    // Who begins in time is at it; who is killed and begins again is not.
    monitor.store.push("backup", Said::Succeeded, "", START + MINUTE * 110).await.unwrap();
    monitor.store.push("backup", Said::Started, "", START + MINUTE * 170).await.unwrap();
    look(174, 178).await;
    assert_eq!(state().await, [["ok"]], "it is at it");
    monitor.store.push("backup", Said::Started, "", START + MINUTE * 178).await.unwrap();
    look(178, 181).await;
    assert_eq!((state().await, reasons().await), late);
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
    let own = std::env::current_exe().unwrap();
    let targets = vec![
        over_http("demo", &shop_url),
        stdio("stdio", &[own.to_str().unwrap(), "--demo"]),
        stdio("missing", &["/no/such/program"]),
        impatient(over_http("hangs", &hangs)),
        impatient(over_http("no-tls", &no_tls)),
        over_http("refused", &format!("http://{}/mcp", closed())),
        over_http("unnamed", "http://no-such-name.invalid/mcp"),
        // An address for documentation: nobody has it.
        impatient(over_http("cut-off", "http://192.0.2.1:9/mcp")),
        TargetSpec { kind: TargetKind::Monitor(format!("http://{}/healthz", closed())), ..target("monitor") },
    ];
    let monitor = monitor(&address, targets, vec![closed()]).await;
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
    // Whoever is paged has a configuration, and no command line.
    for row in rows(&address, "SELECT evidence FROM result WHERE verdict = 'down'").await {
        let report = monitor.store.evidence(&row[0]).await.unwrap().unwrap().report;
        let hints: Vec<String> = report.diagnostics.into_iter().filter_map(|diagnostic| diagnostic.hint).collect();
        assert!(hints.iter().all(|hint| !hint.contains("--") && !hint.contains("`timeouts")), "{hints:?}");
    }
    assert_eq!(rows(&address, "SELECT target FROM result WHERE reason = '' ORDER BY target").await, [["demo"], ["stdio"]]);
}

pub(crate) async fn an_outage_is_confirmed_told_once_and_ended(address: String) {
    let is_well = Arc::new(AtomicBool::new(true));
    let url = small_server(Arc::clone(&is_well)).await;
    let monitor = monitor(&address, vec![over_http("small", &url)], Vec::new()).await;
    let mut now = START;
    let mut tracker = Vec::new();
    for is_up in [true, true, false, false, false, false, true, true, true] {
        is_well.store(is_up, Ordering::Relaxed);
        now = monitor.store.next_due("here", now).await.unwrap().unwrap().max(now);
        monitor.worker.pass(now).await.unwrap();
        tracker.push(rows(&address, "SELECT availability FROM target").await.remove(0).remove(0));
    }
    assert_eq!(tracker, ["ok", "ok", "suspect", "suspect", "down", "down", "recovering", "ok", "ok"]);
    let told = rows(&address, "SELECT class, CAST(resolved IS NOT NULL AS TEXT) FROM incident").await;
    assert_eq!((told.len(), told[0][0].as_str()), (1, "availability"));
    assert!(["1", "true"].contains(&told[0][1].as_str()), "{told:?}");
    let contracts = rows(&address, "SELECT CAST(count(*) AS TEXT) FROM contract").await;
    assert_eq!(contracts, [["1"]], "the same contract is kept once");
}

pub(crate) async fn once_probes_everything_at_once(address: String) {
    let url = small_server(Arc::new(AtomicBool::new(true))).await;
    #[expect(clippy::disallowed_methods, reason = "what cron does, it does now")]
    let clock = Clock::of_machine(SystemTime::now);
    // No slot of its own comes meanwhile.
    let daily = |name: &str| TargetSpec { every: Duration::from_secs(86_400), ..over_http(name, &url) };
    let mut config = config();
    config.targets = [daily("other"), daily("small")].map(|target| (target.name.clone(), target)).into();
    let store = Store::open(&address).await.unwrap();
    let monitor = Monitor::over(store, config, reach("cron"), clock.now()).await.unwrap();
    monitor.once(&clock).await.unwrap();
    monitor.once(&clock).await.unwrap();
    let statement = "SELECT target, verdict, CAST(count(*) AS TEXT) FROM result GROUP BY target, verdict ORDER BY target";
    assert_eq!(rows(&address, statement).await, [["other", "up", "2"], ["small", "up", "2"]]);
}

/// Results of a shorter interval are newer than the slot before the next one.
pub(crate) async fn once_believes_no_old_result_after_the_interval_became_longer(address: String) {
    let is_well = Arc::new(AtomicBool::new(true));
    let url = small_server(Arc::clone(&is_well)).await;
    #[expect(clippy::disallowed_methods, reason = "what cron does, it does now")]
    let clock = Clock::of_machine(SystemTime::now);
    let availability = || rows(&address, "SELECT availability FROM target");
    for (every, well, expected) in [(1, true, "ok"), (86_400, false, "down"), (86_400, true, "ok")] {
        is_well.store(well, Ordering::Relaxed);
        let thresholds = Thresholds { confirmations: Vec::new(), recoveries: 1, ..Thresholds::default() };
        let spec = TargetSpec { every: Duration::from_secs(every), thresholds, ..over_http("small", &url) };
        let config = Config { targets: [("small".to_owned(), spec)].into(), ..config() };
        let store = Store::open(&address).await.unwrap();
        Monitor::over(store, config, reach("cron"), clock.now()).await.unwrap().once(&clock).await.unwrap();
        assert_eq!(availability().await, [[expected]], "every {every} s");
    }
}

/// What the state remembers of the process: samples of memory, and starts.
async fn remembered(address: &str) -> (usize, usize) {
    let state = rows(address, "SELECT state FROM target").await.remove(0).remove(0);
    let state: serde_json::Value = serde_json::from_str(&state).unwrap();
    let count = |name: &str| state["process"][name].as_array().map_or(0, Vec::len);
    (count("memory"), count("restarts"))
}

pub(crate) async fn a_process_lives_on_between_probes_and_its_deaths_are_counted(address: String) {
    let own = std::env::current_exe().unwrap();
    let kept = TargetSpec { keep: true, ..stdio("kept", &[own.to_str().unwrap(), "--demo", &address]) };
    let monitor = monitor(&address, vec![kept], Vec::new()).await;
    let mut seen = Vec::new();
    for minute in 1..=4 {
        monitor.worker.pass(START + MINUTE * minute).await.unwrap();
        let pid = pid_of(&address).unwrap();
        seen.push((pid, remembered(&address).await));
        if minute == 2 {
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).unwrap();
            // Its entry goes when its end has been taken note of.
            while std::path::Path::new(&format!("/proc/{pid}")).exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
    let [(first, one), (second, two), (third, three), (fourth, four)] = <[_; 4]>::try_from(seen).unwrap();
    assert_eq!((first == second, second == third, third == fourth), (true, false, true));
    assert_eq!([one, two, three, four], [(1, 0), (2, 0), (1, 1), (2, 1)]);
    let verdicts = rows(&address, "SELECT DISTINCT verdict FROM result").await;
    assert_eq!(verdicts, [["up"]]);
}

/// The process that was started with this argument.
fn pid_of(argument: &str) -> Option<i32> {
    std::fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let words = std::fs::read(entry.path().join("cmdline")).ok()?;
        words.split(|byte| *byte == 0).any(|word| word == argument.as_bytes()).then_some(pid)
    })
}

pub(crate) async fn the_suite_of_a_target_runs_what_changes_nothing(address: String) {
    let shop = bind(&DemoOptions::new(DemoName::Shop)).await.unwrap();
    let url = shop.url();
    tokio::spawn(shop.serve(std::future::pending()));
    let folder = tempfile::tempdir().unwrap();
    let with = |name: &str, text: &str| {
        let path = folder.path().join(format!("{name}.mcproof.yaml"));
        std::fs::write(&path, format!("server:\n  http: {{ url: \"http://127.0.0.1:9/mcp\" }}\ntests:\n{text}")).unwrap();
        TargetSpec { suite: Some(path), ..over_http(name, &url) }
    };
    let case = |name: &str, tags: &str, stock: u32| {
        format!(
            "  - name: {name}\n    tags: [{tags}]\n    steps:\n      - call: check_inventory\n        \
             with: {{ product_id: PROD-123 }}\n        expect: {{ available: {stock} }}\n"
        )
    };
    let targets = vec![
        with("fails", &case("the stock is large", "read-only", 1_000)),
        with("passes", &format!("{}{}", case("the stock is there", "read-only", 10), case("not run", "writes", 1_000))),
        with("skipped", &case("not here", "read-only", 1_000).replace("    steps", "    skip: true\n    steps")),
        with("unusable", &case("not run", "writes", 10)),
    ];
    let monitor = monitor(&address, targets, Vec::new()).await;
    let probed = async |minute: u32| {
        monitor.worker.pass(START + MINUTE * minute).await.unwrap();
        let all = rows(&address, "SELECT target, verdict, reason FROM result ORDER BY at, target").await;
        all.last_chunk::<4>().unwrap().clone()
    };
    let nothing_tested = ["inconclusive", "suite-unusable"];
    let found = probed(1).await;
    assert_eq!(found.iter().map(|row| &row[1]).collect::<Vec<_>>(), ["down", "up", nothing_tested[0], nothing_tested[0]]);
    assert_eq!([&found[2][2], &found[3][2]], [nothing_tested[1]; 2]);
    // While the file has errors, its last version is run.
    std::fs::write(folder.path().join("fails.mcproof.yaml"), "tests: [").unwrap();
    std::fs::remove_file(folder.path().join("passes.mcproof.yaml")).unwrap();
    let found = probed(2).await;
    assert_eq!([&found[0][1], &found[1][1], &found[1][2]], ["down", "warning", "suite-unusable"], "{found:?}");
}
