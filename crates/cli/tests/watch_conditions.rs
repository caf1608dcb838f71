//! `mcproof watch` in a bad world, as the real binary on a SQLite file and on a real Postgres: clocks that are set, databases that are out for a
//! while, and processes that die. All that one database goes through happens at the same time, since most of it is waiting.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../watch/tests/postgres/cluster.rs"]
mod cluster;
mod heard;
mod monitoring;

use cluster::{Cluster, Durability};
use monitoring::{MCPROOF, Monitor, Service, get, send, until};
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use tempfile::TempDir;

/// Where Debian's libfaketime is.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sqlite,
    Postgres,
}

#[test]
fn on_sqlite() {
    at_once(&[
        ("an outage of the database", || a_database_that_is_out_loses_no_page_and_no_acknowledgement(Kind::Sqlite)),
        ("a clock that is set", || a_clock_that_is_set_forward_and_back_hides_no_outage(Kind::Sqlite)),
    ]);
}

#[test]
fn on_postgres() {
    at_once(&[
        ("an outage of the database", || a_database_that_is_out_loses_no_page_and_no_acknowledgement(Kind::Postgres)),
        ("a clock that is set", || a_clock_that_is_set_forward_and_back_hides_no_outage(Kind::Postgres)),
        ("two processes", two_processes_of_which_one_dies_tell_each_begin_and_end_once),
    ]);
}

/// Each in a thread of its own, which is named in what it fails with. A cluster ends with its thread.
fn at_once(claims: &[(&str, fn())]) {
    let threads = claims.iter().map(|(name, claim)| thread::Builder::new().name((*name).to_owned()).spawn(*claim).unwrap());
    let threads: Vec<_> = threads.collect();
    let failed = threads.into_iter().map(thread::JoinHandle::join).filter(Result::is_err).count();
    assert_eq!(failed, 0);
}

/// A folder with the file of a monitor of `shop` and `desk`, each of which is down as long as it is broken.
struct Scene {
    folder: TempDir,
    pager: Service,
    cluster: Option<Cluster>,
}

impl Scene {
    fn new(cluster: Option<Cluster>) -> Self {
        let (folder, pager) = (tempfile::tempdir().unwrap(), Service::answering(202));
        let target = |name: &str| {
            let script = folder.path().join(format!("{name}.sh"));
            let broken = folder.path().join(format!("{name}.broken"));
            std::fs::write(&script, format!("test -e '{}' && exit 1\nexec '{MCPROOF}' demo shop\n", broken.display())).unwrap();
            format!("  {name}: {{ stdio: 'sh {}', every: 1s, failures: 1, recoveries: 1 }}\n", script.display())
        };
        let database = cluster.as_ref().map(|cluster| format!("database: '{}'\n", cluster.database("watch"))).unwrap_or_default();
        let config = format!(
            "listen: 127.0.0.1:0\n{database}targets:\n{}{}channels: {{ pager: {{ webhook: '{}' }} }}\nroutes: [{{ channels: pager }}]\n",
            target("shop"),
            target("desk"),
            pager.url
        );
        std::fs::write(folder.path().join("watch.yaml"), config).unwrap();
        Self { folder, pager, cluster }
    }

    /// A monitor that has probed, and where its dashboard is.
    fn start(&self, variables: &[(String, String)]) -> (Monitor, String) {
        let mut shell = Command::new("sh");
        // Without the signal a process is told of its limit as of any other failure.
        shell.args(["-c", "trap '' XFSZ; exec \"$0\" watch watch.yaml --json", MCPROOF]).current_dir(self.folder.path());
        let variables = variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let mut monitor = Monitor::spawn(shell.env("XDG_STATE_HOME", "/nowhere").env("NO_PROXY", "*").envs(variables));
        let at = monitor.says("dashboard")["at"].as_str().unwrap().to_owned();
        until("the first results", || get(&at, "/healthz").0.contains("200") && last_result(&at).is_some());
        (monitor, at)
    }

    fn breaks(&self, target: &str) {
        std::fs::write(self.folder.path().join(format!("{target}.broken")), "").unwrap();
    }

    fn works_again(&self, target: &str) {
        std::fs::remove_file(self.folder.path().join(format!("{target}.broken"))).unwrap();
    }

    /// How often the begin and the end of each outage of a target were told.
    fn outages(&self, target: &str) -> BTreeMap<String, (usize, usize)> {
        let mut outages: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for told in self.pager.heard.lock().unwrap().iter() {
            if told["target"] != target || told["class"] != "availability" {
                continue;
            }
            let counts = outages.entry(told["incident"].as_str().unwrap().to_owned()).or_default();
            match told["kind"].as_str().unwrap() {
                "trigger" => counts.0 += 1,
                "resolve" => counts.1 += 1,
                _ => {}
            }
        }
        outages
    }

    fn is_told(&self, target: &str) -> bool {
        self.outages(target).values().any(|(begun, ended)| *begun > *ended)
    }

    /// What was told of its outages has come to its end: each begin once, and each end once.
    fn ends(&self, target: &str) {
        let is_over = || !self.outages(target).is_empty() && !self.is_told(target);
        until(&format!("the end of {target} (told: {:?})", self.outages(target)), is_over);
        let outages = self.outages(target);
        assert!(outages.values().all(|counts| *counts == (1, 1)), "{target}: {outages:?}");
    }
}

fn last_result(at: &str) -> Option<String> {
    send(at, "GET", "/api/targets/shop", "").1["last_result"].as_str().map(str::to_owned)
}

/// The open incident of a target, as far as it can be read now.
fn incident(at: &str, target: &str) -> Option<Value> {
    let (_, listed) = send(at, "GET", "/api/incidents", "");
    listed["incidents"].as_array()?.iter().find(|incident| incident["subject"] == target).cloned()
}

/// Its page was taken, and that is written down: it would be sent again otherwise.
fn until_noted(at: &str, target: &str) {
    let is_noted = |incident: &Value| get(at, &format!("/incidents/{}", incident["id"].as_str().unwrap())).1.contains("trigger by pager");
    until("the note of a page", || incident(at, target).as_ref().is_some_and(is_noted));
}

fn a_database_that_is_out_loses_no_page_and_no_acknowledgement(kind: Kind) {
    let mut scene = Scene::new((kind == Kind::Postgres).then(|| Cluster::start(Durability::Full)));
    let (mut monitor, at) = scene.start(&[]);
    let limit = |monitor: &Monitor, size: &str| {
        let (pid, limit) = (monitor.process.id().to_string(), format!("--fsize={size}:unlimited"));
        assert!(Command::new("prlimit").args(["--pid", &pid, &limit]).status().unwrap().success());
    };
    scene.breaks("shop");
    until("the first page", || scene.is_told("shop"));
    until_noted(&at, "shop");
    match &mut scene.cluster {
        Some(cluster) => cluster.stop(),
        None => limit(&monitor, "4096"),
    }
    scene.breaks("desk");
    until("the page of what fails while the database is out", || scene.is_told("desk"));
    let is_acknowledged = || {
        let waiting = incident(&at, "shop").filter(|incident| incident["acknowledged_by"].is_null());
        waiting.is_some_and(|incident| {
            let path = format!("/api/incidents/{}/acknowledge", incident["id"].as_str().unwrap());
            send(&at, "POST", &path, "").0 == 200
        })
    };
    until("the acknowledgement", is_acknowledged);
    assert!(get(&at, "/healthz").0.contains("503"));
    match &mut scene.cluster {
        Some(cluster) => cluster.resume(),
        None => limit(&monitor, "unlimited"),
    }
    monitor.says("standby-ended");
    until("the state of the monitor", || get(&at, "/healthz").0.contains("200"));
    let known = incident(&at, "shop").unwrap();
    assert_eq!(known["acknowledged_by"], "local", "{known}");
    for target in ["shop", "desk"] {
        scene.works_again(target);
        scene.ends(target);
    }
    assert!(scene.pager.kinds().contains(&"acknowledge".to_owned()));
}

/// A clock that stands in a file, for a process of its own or for a database.
struct SetClock {
    folder: TempDir,
}

impl SetClock {
    fn new() -> Self {
        assert!(Path::new(FAKETIME).exists(), "install libfaketime");
        let folder = tempfile::tempdir().unwrap();
        // A database may run as somebody else.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let clock = Self { folder };
        clock.set(0);
        clock
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("clock")
    }

    /// So many seconds ahead.
    fn set(&self, seconds: i64) {
        // Whoever reads it meanwhile reads all of it.
        let fresh = self.folder.path().join("fresh");
        std::fs::write(&fresh, format!("{seconds:+}\n")).unwrap();
        std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(0o644)).unwrap();
        std::fs::rename(&fresh, self.file()).unwrap();
    }

    fn variables(&self) -> Vec<(String, String)> {
        let file = self.file().display().to_string();
        let variables = [
            ("LD_PRELOAD", FAKETIME),
            ("FAKETIME_TIMESTAMP_FILE", file.as_str()),
            ("FAKETIME_CACHE_DURATION", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
            ("NO_FAKE_STAT", "1"),
        ];
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }
}

/// A monitor on SQLite goes by the clock of its machine, one on Postgres by that of the database.
fn a_clock_that_is_set_forward_and_back_hides_no_outage(kind: Kind) {
    let clock = SetClock::new();
    let of_database = (kind == Kind::Postgres).then(|| Cluster::start_in(&std::env::temp_dir(), clock.variables()));
    let of_process = if kind == Kind::Sqlite { clock.variables() } else { Vec::new() };
    let scene = Scene::new(of_database);
    let (monitor, at) = scene.start(&of_process);
    // With minutes and seconds behind it, an hour is another one in any case.
    let hour = |result: &str| result[..13].to_owned();
    let before = hour(&last_result(&at).unwrap());
    clock.set(3_600);
    until("a result of an hour later", || last_result(&at).is_some_and(|result| hour(&result) > before));
    clock.set(0);
    scene.breaks("shop");
    until("the page of an outage after the clock was set back", || scene.is_told("shop"));
    scene.works_again("shop");
    scene.ends("shop");
    let process = monitor.process.id();
    drop(monitor);
    // What libfaketime leaves behind in memory when it cannot end as it would.
    for left in ["faketime_shm", "sem.faketime_sem"] {
        let _ = std::fs::remove_file(format!("/dev/shm/{left}_{process}"));
    }
}

fn two_processes_of_which_one_dies_tell_each_begin_and_end_once() {
    let scene = Scene::new(Some(Cluster::start(Durability::None)));
    let ((one, at_one), (_other, at_other)) = (scene.start(&[]), scene.start(&[]));
    scene.breaks("shop");
    until("the page", || scene.is_told("shop"));
    until_noted(&at_one, "shop");
    one.signal("-KILL");
    scene.breaks("desk");
    until("the page of what fails after one has died", || scene.is_told("desk"));
    until_noted(&at_other, "desk");
    for target in ["shop", "desk"] {
        scene.works_again(target);
        scene.ends(target);
    }
}
