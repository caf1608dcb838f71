//! Notifiers that are killed and frozen in the middle of everything, before a pager that drops requests, loses its answers and
//! fails: every page and every end arrives, no end before its page, no page again after its end, and what comes twice comes
//! under the same key. Without the guard of half a lease the test has to fail, which is a test as well.
//!
//! This program is also the notifiers.

use super::postgres::{Cluster, Durability};
use libtest_mimic::{Failed, Trial};
use mcproof_client::Network;
use mcproof_engine::suite::Environment;
use mcproof_watch::channel::Carrier;
use mcproof_watch::config::load;
use mcproof_watch::moment::Moment;
use mcproof_watch::notifier::{Guard, Notifier};
use mcproof_watch::store::{Store, sqlite};
use mcproof_watch::worker::Plan;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use sqlx::AnyPool;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::watch;

const LEASE: Duration = Duration::from_millis(1_500);
/// Longer than the lease, and than what the others need to go on.
const FREEZE: Duration = Duration::from_millis(3_500);
/// Between two faults.
const CALM: Duration = Duration::from_millis(350);
/// For everything that is open to arrive in the end.
const DRAIN: Duration = Duration::from_secs(60);
/// How this program is asked to be a notifier.
const NOTIFIER: &str = "be-a-notifier";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("sqlite::no_page_is_lost_when_notifiers_die", || {
            let folder = tempfile::tempdir().unwrap();
            Scene::new(sqlite(&folder.path().join("watch.db")), Guard::Up).suffer(20).judge()
        }),
        Trial::test("postgres::no_page_is_lost_when_notifiers_die", || {
            let cluster = Cluster::start(Durability::Full);
            Scene::new(cluster.database("pages"), Guard::Up).suffer(20).judge()
        }),
        Trial::test("postgres::without_the_guard_a_frozen_notifier_opens_again_what_is_over", || {
            let cluster = Cluster::start(Durability::Full);
            let mut scene = Scene::new(cluster.database("guard"), Guard::Down);
            for _ in 0..12 {
                scene = scene.freeze();
                if scene.reopened() > 0 {
                    return Ok(());
                }
            }
            Err("twelve times a notifier went on after its lease, and nobody noticed".into())
        }),
    ]
}

/// If this process was asked to be a notifier, until it is killed.
pub(crate) fn serve(arguments: &[String]) -> Option<ExitCode> {
    let [_, word, address, config, guard] = arguments else { return None };
    if word != NOTIFIER {
        return None;
    }
    let guard = if guard == "up" { Guard::Up } else { Guard::Down };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let config = load("w.yaml", config, Path::new("/"), &Environment::default()).unwrap().config;
        let (_sender, plan) = watch::channel(Arc::new(Plan { config: Arc::new(config), targets: BTreeMap::new() }));
        let store = Store::open(address).await.unwrap();
        let notifier = Notifier::new(store, plan, Carrier::new(Network::default())).leasing(LEASE).guarded(guard);
        loop {
            // A database that is busy is asked again.
            let next = notifier.pass(now()).await.ok().and_then(|round| round.next);
            let rest = next.map_or(Duration::from_millis(50), |next| next.since(now()));
            tokio::time::sleep(rest.min(Duration::from_millis(50))).await;
        }
    })
}

#[expect(clippy::disallowed_methods, reason = "several processes have to agree on the time")]
fn now() -> Moment {
    Moment::from(SystemTime::now())
}

/// A message as the pager took it: incident, kind, key.
type Taken = (String, String, String);

/// Takes most messages; some are dropped unread, some are taken without an answer, some are refused for now.
fn pager(taken: Arc<Mutex<Vec<Taken>>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        let mut random = fastrand::Rng::with_seed(11);
        for stream in listener.incoming() {
            let (Ok(stream), fate) = (stream, random.u8(0..20)) else { continue };
            let taken = Arc::clone(&taken);
            thread::spawn(move || drop(answer(stream, fate, &taken)));
        }
    });
    url
}

fn answer(stream: std::net::TcpStream, fate: u8, taken: &Mutex<Vec<Taken>>) -> std::io::Result<()> {
    if fate == 0 {
        return Ok(());
    }
    let mut stream = BufReader::new(stream);
    let (mut length, mut key) = (0, String::new());
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "idempotency-key" => key = value.trim().to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let Ok(message) = serde_json::from_slice::<Value>(&body) else { return Ok(()) };
    if fate == 1 {
        return stream.get_mut().write_all(b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    }
    let word = |name: &str| message[name].as_str().unwrap_or_default().to_owned();
    taken.lock().unwrap().push((word("incident"), word("kind"), key));
    if fate == 2 {
        return Ok(());
    }
    stream.get_mut().write_all(b"HTTP/1.1 202 Taken\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

/// Killed when it is dropped.
struct Teller(Child);

impl Drop for Teller {
    fn drop(&mut self) {
        // It may be dead already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Teller {
    fn send(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id().cast_signed()), signal).unwrap();
    }
}

struct Scene {
    address: String,
    config: String,
    guard: Guard,
    rows: AnyPool,
    tellers: Vec<Teller>,
    taken: Arc<Mutex<Vec<Taken>>>,
    runtime: tokio::runtime::Runtime,
    random: fastrand::Rng,
    written: u64,
    /// Incidents whose end is still to be written.
    open: Vec<String>,
}

impl Scene {
    fn new(address: String, guard: Guard) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let rows = runtime.block_on(async {
            Store::open(&address).await.unwrap();
            AnyPool::connect(&address).await.unwrap()
        });
        let taken = Arc::<Mutex<Vec<Taken>>>::default();
        let config = format!("channels: {{ pager: {{ webhook: \"{}\" }} }}", pager(Arc::clone(&taken)));
        let random = fastrand::Rng::with_seed(7);
        let mut scene = Self { address, config, guard, rows, tellers: Vec::new(), taken, runtime, random, written: 0, open: Vec::new() };
        scene.tellers = (0..2).map(|_| scene.teller()).collect();
        scene
    }

    fn teller(&self) -> Teller {
        let guard = if self.guard == Guard::Up { "up" } else { "down" };
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([NOTIFIER, &self.address, &self.config, guard]).stdin(Stdio::null());
        Teller(command.spawn().unwrap())
    }

    /// Writes incidents and their ends for as long as this.
    fn work(&mut self, span: Duration) {
        let began = Instant::now();
        while began.elapsed() < span {
            for _ in 0..4 {
                let id = format!("incident-{:06}", self.written);
                self.write(&id, "trigger");
                self.open.push(id);
            }
            while self.open.len() > 12 {
                let ended = self.open.swap_remove(self.random.usize(..self.open.len()));
                self.write(&ended, "resolve");
            }
            thread::sleep(Duration::from_millis(25));
        }
    }

    fn write(&mut self, incident: &str, kind: &str) {
        self.written += 1;
        let (id, at) = (format!("{:08}", self.written), now().0);
        self.runtime.block_on(async {
            // SQLite may be busy for longer than it waits.
            for _ in 0..50 {
                let opened = sqlx::query(
                    "INSERT INTO incident (id, subject, class, severity, title, detail, since, opened) \
                     VALUES ($1, $1, 'availability', 'page', 'down', '{\"message\":\"down\"}', $2, $2) ON CONFLICT DO NOTHING",
                );
                let told = sqlx::query(
                    "INSERT INTO outbox (id, incident, kind, route, created, due) VALUES ($1, $2, $3, '[\"pager\"]', $4, $4) \
                     ON CONFLICT DO NOTHING",
                );
                let opened = opened.bind(incident).bind(at).execute(&self.rows).await;
                if opened.is_ok() && told.bind(&id).bind(incident).bind(kind).bind(at).execute(&self.rows).await.is_ok() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            panic!("the database takes nothing");
        });
    }

    /// Kills, and freezes every fourth time.
    fn suffer(mut self, faults: usize) -> Self {
        for number in 0..faults {
            self.work(CALM);
            if number % 4 == 2 {
                self = self.freeze();
            } else {
                let victim = self.random.usize(..self.tellers.len());
                self.tellers[victim].send(Signal::SIGKILL);
                self.tellers[victim] = self.teller();
            }
        }
        self
    }

    /// Freezes one for longer than its lease, while the other goes on.
    fn freeze(mut self) -> Self {
        let victim = self.random.usize(..self.tellers.len());
        self.work(Duration::from_millis(self.random.u64(100..300)));
        self.tellers[victim].send(Signal::SIGSTOP);
        self.work(FREEZE);
        self.tellers[victim].send(Signal::SIGCONT);
        self.work(CALM);
        self
    }

    /// Pages that came after the end of their incident had been taken.
    fn reopened(&self) -> usize {
        let taken = self.taken.lock().unwrap();
        let mut ended = BTreeSet::new();
        let mut reopened = 0;
        for (incident, kind, _) in taken.iter() {
            match kind.as_str() {
                "resolve" => drop(ended.insert(incident.clone())),
                _ => reopened += usize::from(ended.contains(incident)),
            }
        }
        reopened
    }

    fn judge(mut self) -> Result<(), Failed> {
        for incident in std::mem::take(&mut self.open) {
            self.write(&incident, "resolve");
        }
        let began = Instant::now();
        let open = || {
            let count = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM outbox WHERE delivered IS NULL");
            self.runtime.block_on(count.fetch_one(&self.rows)).unwrap_or(1)
        };
        while open() > 0 && began.elapsed() < DRAIN {
            thread::sleep(Duration::from_millis(100));
        }
        let mut incidents: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
        let taken = self.taken.lock().unwrap().clone();
        for (incident, kind, key) in &taken {
            incidents.entry(incident).or_default().push((kind, key));
        }
        let expected = usize::try_from(self.written / 2).unwrap();
        let mut wrong = Vec::new();
        for (incident, heard) in &incidents {
            let of = |kind: &str| heard.iter().filter(|(heard, _)| *heard == kind).map(|(_, key)| *key).collect::<Vec<_>>();
            let (triggers, resolves) = (of("trigger"), of("resolve"));
            let begins = heard[0].0 == "trigger";
            let same = |keys: &[&str]| keys.iter().all(|key| *key == keys[0]);
            if !begins || triggers.is_empty() || resolves.is_empty() || !same(&triggers) || !same(&resolves) {
                wrong.push(format!("{incident}: {heard:?}"));
            }
        }
        let lost = expected - incidents.len();
        match (lost, self.reopened(), wrong.is_empty(), open()) {
            (0, 0, true, 0) => Ok(()),
            (lost, reopened, _, open) => {
                Err(format!("{expected} incidents: {lost} lost, {reopened} reopened, {open} messages still open, wrong: {wrong:#?}").into())
            }
        }
    }
}
