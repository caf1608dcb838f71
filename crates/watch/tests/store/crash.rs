//! Processes that die, freeze, and lose their database, in the middle of everything, and a pager that drops requests and loses
//! replies: no result is lost, none counts twice, no slot is gone back to, nobody is told of a server that was well all the time,
//! and everybody is told of those that were not: their begin, then their end, and nothing more.
//!
//! This program is also the workers: they are killed as no test of functions can be. With the fence down the test has to fail,
//! which is a test as well.

use super::fixtures::*;
use super::pager::{Page, Pager};
use super::postgres::{Cluster, Durability};
use super::server::{Mood, serve};
use libtest_mimic::{Failed, Trial};
use mcproof_client::Network;
use mcproof_watch::channel::DeliveryClient;
use mcproof_watch::clock::Clock;
use mcproof_watch::config::{ChannelSpec, Route, Secret, TargetSpec};
use mcproof_watch::moment::Moment;
use mcproof_watch::monitor::{Monitor, Role, keep_passing};
use mcproof_watch::notifier::Notifier;
use mcproof_watch::store::{Fence, Store, sqlite};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sqlx::any::AnyPoolOptions;
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use tokio::net::TcpListener;

const TARGETS: usize = 40;
/// The first of them, which do not work for a while: few enough to be no storm.
const BROKEN: usize = 10;
const EVERY: Duration = Duration::from_secs(1);
/// As the database of this test has it, whatever the workers ask for.
const LEASE: Duration = Duration::from_millis(1_500);
/// Longer than the lease.
const FREEZE: Duration = Duration::from_millis(2_500);
const OUTAGE: Duration = Duration::from_millis(700);
/// After a fault, until everything that hung on it goes on: a lease, the start of a process, its next look at the schedule.
const AFTERMATH: Duration = Duration::from_secs(5);

/// What is done to those that work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Kill,
    Freeze,
    StopDatabase,
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("sqlite::nothing_is_lost_when_processes_die", || on_sqlite(24)),
        Trial::test("postgres::nothing_is_lost_when_processes_die", || on_postgres(24)),
        Trial::test("postgres::without_the_fence_a_frozen_worker_is_noticed", without_fence),
    ]
}

/// The long form.
pub(crate) fn long(on_sqlite_kills: usize, on_postgres_kills: usize) -> ExitCode {
    let threads = [std::thread::spawn(move || on_sqlite(on_sqlite_kills)), std::thread::spawn(move || on_postgres(on_postgres_kills))];
    let failures: Vec<String> = threads
        .into_iter()
        .filter_map(|thread| thread.join().unwrap().err())
        .map(|failed| failed.message().unwrap_or_default().to_owned())
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    ExitCode::SUCCESS
}

fn on_sqlite(kills: usize) -> Result<(), Failed> {
    let folder = tempfile::tempdir().unwrap();
    let address = sqlite(&folder.path().join("watch.db"));
    let mut scene = IncidentContext::new(address, None, 1, Fence::Up);
    scene.suffer_an_outage(kills, |number| if number % 8 == 5 { Fault::Freeze } else { Fault::Kill });
    scene.judge()
}

fn on_postgres(kills: usize) -> Result<(), Failed> {
    let cluster = Cluster::start(Durability::Full);
    let address = cluster.database("crash");
    let mut scene = IncidentContext::new(address, Some(cluster), 2, Fence::Up);
    scene.suffer_an_outage(kills, |number| match number % 8 {
        2 => Fault::Freeze,
        5 => Fault::StopDatabase,
        _ => Fault::Kill,
    });
    scene.judge()
}

fn without_fence() -> Result<(), Failed> {
    let cluster = Cluster::start(Durability::Full);
    let address = cluster.database("crash");
    let mut scene = IncidentContext::new(address, Some(cluster), 2, Fence::Down);
    for _ in 0..10 {
        scene.suffer(1, |_| Fault::Freeze);
        if !scene.rows("SELECT target FROM regress").is_empty() {
            return Ok(());
        }
    }
    Err("ten times a worker wrote results after its leases had ended, and nobody noticed".into())
}

/// A database, the workers on it, and what was done to them.
struct IncidentContext {
    address: String,
    cluster: Option<Cluster>,
    workers: Vec<Worker>,
    fence: Fence,
    /// When each fault began and ended.
    faults: Vec<(Moment, Moment)>,
    began: Moment,
    runtime: tokio::runtime::Runtime,
    url: String,
    is_outage: Arc<AtomicBool>,
    pager: Pager,
    pager_url: String,
    random: fastrand::Rng,
}

/// Killed when it is dropped.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        // It may be dead already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Worker {
    fn send(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id().cast_signed()), signal).unwrap();
    }
}

impl IncidentContext {
    fn new(address: String, cluster: Option<Cluster>, workers: usize, fence: Fence) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let is_outage = Arc::new(AtomicBool::new(false));
        let url = server(Arc::clone(&is_outage));
        let pager = Pager::default();
        let pager_url = pager.listen();
        runtime.block_on(async {
            Store::open(&address).await.unwrap();
            watch_schedule(&address).await;
        });
        let (faults, random) = (Vec::new(), fastrand::Rng::with_seed(7));
        let mut scene =
            Self { address, cluster, workers: Vec::new(), fence, faults, began: now(), runtime, url, is_outage, pager, pager_url, random };
        for _ in 0..workers {
            let worker = scene.worker();
            scene.workers.push(worker);
        }
        scene.wait_for_all();
        scene.began = now();
        scene
    }

    fn worker(&self) -> Worker {
        let fence = if self.fence == Fence::Up { "up" } else { "down" };
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(std::env::current_exe().unwrap());
        command.args(["--worker", &self.address, &self.url, &self.pager_url, fence]).stdin(Stdio::null());
        Worker(command.spawn().unwrap())
    }

    /// Half of the faults while some targets do not work, the other half while they do again.
    fn suffer_an_outage(&mut self, count: usize, fault: impl Fn(usize) -> Fault) {
        self.is_outage.store(true, Ordering::Relaxed);
        self.suffer(count / 2, &fault);
        let open = "SELECT subject FROM incident WHERE class = 'availability' AND resolved IS NULL";
        self.wait_until("everything that does not work is known", |scene| scene.rows(open).len() == BROKEN);
        self.is_outage.store(false, Ordering::Relaxed);
        self.suffer(count - count / 2, &fault);
        self.wait_until("everything works again", |scene| scene.rows("SELECT subject FROM incident WHERE resolved IS NULL").is_empty());
        self.wait_until("everything is told", |scene| scene.rows("SELECT id FROM outbox WHERE delivered IS NULL").is_empty());
    }

    fn wait_until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let deadline = std::time::Instant::now() + Duration::from_secs(120);
        while !is_so(self) {
            assert!(std::time::Instant::now() < deadline, "not within two minutes: {what}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn suffer(&mut self, count: usize, fault: impl Fn(usize) -> Fault) {
        for number in 0..count {
            std::thread::sleep(Duration::from_millis(self.random.u64(100..600)));
            let victim = self.random.usize(..self.workers.len());
            let began = now();
            match (fault(number), &mut self.cluster) {
                (Fault::Freeze, _) => {
                    self.workers[victim].send(Signal::SIGSTOP);
                    std::thread::sleep(FREEZE);
                    self.workers[victim].send(Signal::SIGCONT);
                }
                (Fault::StopDatabase, Some(cluster)) => {
                    cluster.stop();
                    std::thread::sleep(OUTAGE);
                    cluster.resume();
                }
                _ => self.workers[victim] = self.worker(),
            }
            self.faults.push((began, now()));
        }
        if self.fence == Fence::Up {
            self.wait_for_all();
        } else {
            // For what the frozen one still had in its hands.
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    /// Until each target has a result that is newer than everything that has happened.
    fn wait_for_all(&self) {
        let last = self.faults.last().map_or(self.began, |(_, ended)| *ended);
        self.wait_until("every target is probed again", |scene| {
            let results = scene.rows("SELECT CAST(last_result AS TEXT) FROM target");
            results.iter().filter(|row| row[0].parse::<i64>().unwrap() > last.0).count() == TARGETS
        });
    }

    fn rows(&self, statement: &'static str) -> Vec<Vec<String>> {
        self.runtime.block_on(rows(&self.address, statement))
    }

    fn judge(mut self) -> Result<(), Failed> {
        self.workers.clear();
        let mut findings = Vec::new();
        let mut find = |what: &str, rows: Vec<Vec<String>>| {
            if let Some(first) = rows.first() {
                findings.push(format!("{what}: {} times, such as {first:?}", rows.len()));
            }
        };
        find("a slot was gone back to", self.rows("SELECT target, CAST(before AS TEXT), CAST(after AS TEXT) FROM regress"));
        let told = "SELECT subject, title FROM incident WHERE class NOT IN ('blind', 'storm') AND subject NOT LIKE 'target-_'";
        find("somebody was told of a server that was well", self.rows(told));
        let again = "SELECT subject, class FROM incident WHERE class NOT IN ('blind', 'storm') GROUP BY subject, class HAVING count(*) > 1";
        find("an incident was opened again", self.rows(again));
        find("a page was lost or came in the wrong order", self.wrong_pages());
        let torn = "SELECT name, CAST(last_slot AS TEXT) FROM target \
             WHERE last_slot <> (SELECT MAX(slot) FROM result WHERE result.target = target.name)";
        find("a state knows of a result that is not there", self.rows(torn));
        let moved = "SELECT target FROM schedule WHERE attempt = 0 AND slot <= (SELECT MAX(slot) FROM result WHERE result.target = schedule.target)";
        find("the schedule is behind its results", self.rows(moved));
        find("a result was lost", self.unexplained());
        let results = self.rows("SELECT CAST(count(*) AS TEXT) FROM result")[0][0].parse::<usize>().unwrap();
        if results < TARGETS * 10 {
            findings.push(format!("only {results} results"));
        }
        if findings.is_empty() { Ok(()) } else { Err(findings.join("\n").into()) }
    }

    /// Of those that did not work: whose begin or end was not told, or told after its end.
    fn wrong_pages(&self) -> Vec<Vec<String>> {
        let pages = self.pager.pages();
        let of = |incident: &str| pages.iter().filter(|page| page.incident == incident).collect::<Vec<&Page>>();
        let is_right = |pages: &[&Page]| {
            let begin = pages.iter().position(|page| page.kind == "trigger");
            let end = pages.iter().position(|page| page.kind == "resolve");
            let last_begin = pages.iter().rposition(|page| page.kind == "trigger");
            begin.is_some() && begin < end && last_begin < end
        };
        // Part of a storm is what failed while too few of the others could be looked at: then the storm is told.
        let outages = self.rows("SELECT COALESCE(parent, id), subject FROM incident WHERE class = 'availability'");
        let kinds = |row: &Vec<String>| of(&row[0]).iter().map(|page| page.kind.clone()).collect::<Vec<_>>();
        let wrong = outages.iter().filter(|row| !is_right(&of(&row[0])));
        let mut wrong: Vec<Vec<String>> = wrong.map(|row| [row.clone(), kinds(row)].concat()).collect();
        let subjects: BTreeSet<&String> = outages.iter().map(|row| &row[1]).collect();
        if subjects.len() != BROKEN {
            wrong.push(vec![format!("{} incidents of {BROKEN}", subjects.len())]);
        }
        // Also of all others that somebody was told of: no begin after an end.
        for row in self.rows("SELECT DISTINCT incident, kind FROM outbox WHERE kind = 'resolve'") {
            let kinds: Vec<&str> = of(&row[0]).iter().map(|page| page.kind.as_str()).collect();
            let end = kinds.iter().position(|kind| *kind == "resolve");
            if end.is_some_and(|end| kinds[end..].contains(&"trigger")) {
                wrong.push(vec![row[0].clone(), kinds.join(" ")]);
            }
        }
        wrong
    }

    /// Slots without a result at a time when nothing was wrong. Who does not work is looked at out of turn instead.
    fn unexplained(&self) -> Vec<Vec<String>> {
        let every = i64::try_from(EVERY.as_millis()).unwrap();
        let mut slots: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for row in self.rows("SELECT DISTINCT target, CAST(slot AS TEXT) FROM result WHERE target NOT LIKE 'target-_'") {
            slots.entry(row[0].clone()).or_default().push(row[1].parse().unwrap());
        }
        // When the machine itself was too slow for a slot: then probes of others were late, too.
        let slow: Vec<i64> = self
            .rows("SELECT CAST(at AS TEXT), CAST(slot AS TEXT) FROM result WHERE attempt = 0")
            .iter()
            .map(|row| (row[0].parse::<i64>().unwrap(), row[1].parse::<i64>().unwrap()))
            .filter_map(|(at, slot)| (at - slot > every / 2).then_some(at))
            .collect();
        let is_explained = |slot: i64| {
            self.faults.iter().any(|(began, ended)| began.0 - every * 2 <= slot && slot <= (*ended + AFTERMATH).0)
                || slow.iter().any(|at| (slot - every..=slot + every * 2).contains(at))
        };
        let mut missing = Vec::new();
        for (target, mut slots) in slots {
            slots.sort_unstable();
            for pair in slots.windows(2) {
                let between = (1..).map(|number| pair[0] + number * every).take_while(|slot| *slot < pair[1]);
                missing.extend(
                    between.filter(|slot| *slot > self.began.0 && !is_explained(*slot)).map(|slot| vec![target.clone(), slot.to_string()]),
                );
            }
        }
        missing
    }
}

/// Answers in a thread of its own, as long as this process lives.
fn server(is_outage: Arc<AtomicBool>) -> String {
    let broken: BTreeSet<String> = (0..BROKEN).map(|number| format!("target-{number}")).collect();
    let mood = move |name: &str| if is_outage.load(Ordering::Relaxed) && broken.contains(name.trim()) { Mood::Broken } else { Mood::Well };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    listener.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { serve(TcpListener::from_std(listener).unwrap(), Arc::new(mood)).await });
    });
    url
}

/// Writes down whenever the schedule goes back, and keeps leases short.
async fn watch_schedule(address: &str) {
    let lease = LEASE.as_millis();
    let is_back = "NEW.attempt = 0 AND (NEW.slot < OLD.slot OR (NEW.slot = OLD.slot AND OLD.attempt > 0))";
    let table = "CREATE TABLE regress (target TEXT, before BIGINT, after BIGINT)".to_owned();
    let statements = if address.starts_with("sqlite") {
        let short = |event: &str| {
            format!(
                "CREATE TRIGGER short_{event} AFTER {event} ON schedule WHEN NEW.patience <> {lease} \
                 BEGIN UPDATE schedule SET patience = {lease} WHERE target = NEW.target AND region = NEW.region; END"
            )
        };
        let back = format!(
            "CREATE TRIGGER back AFTER UPDATE OF slot, attempt ON schedule WHEN {is_back} \
             BEGIN INSERT INTO regress VALUES (NEW.target, OLD.slot, NEW.slot); END"
        );
        vec![table, short("INSERT"), short("UPDATE"), back]
    } else {
        let short =
            format!("CREATE FUNCTION short() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.patience := {lease}; RETURN NEW; END $$");
        let back = "CREATE FUNCTION back() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN INSERT INTO regress VALUES (NEW.target, OLD.slot, NEW.slot); RETURN NULL; END $$"
            .to_owned();
        vec![
            table,
            short,
            back,
            "CREATE TRIGGER short BEFORE INSERT OR UPDATE ON schedule FOR EACH ROW EXECUTE FUNCTION short()".to_owned(),
            format!("CREATE TRIGGER back AFTER UPDATE ON schedule FOR EACH ROW WHEN ({is_back}) EXECUTE FUNCTION back()"),
        ]
    };
    let pool = AnyPoolOptions::new().max_connections(1).connect(address).await.unwrap();
    for statement in statements {
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&pool).await.unwrap();
    }
    pool.close().await;
}

/// One of the processes that die.
pub(crate) fn work(words: &[&str]) -> ExitCode {
    let [address, url, pager, fence] = words else { return ExitCode::FAILURE };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fence = if *fence == "up" { Fence::Up } else { Fence::Down };
    runtime.block_on(async {
        // The database may be down right now.
        let monitor = loop {
            if let Ok(monitor) = open(address, url, pager, fence).await {
                break monitor;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        let clock = Clock::of_machine(clock);
        let notifier = Notifier::new(monitor.store.clone(), monitor.plan(), DeliveryClient::new(Network::default()));
        let telling =
            keep_passing(async |now| notifier.pass(now).await.map(|round| round.next), &monitor.stirred, &clock, std::future::pending());
        tokio::join!(monitor.run(Role::Serve, &clock, std::future::pending()), telling);
    });
    ExitCode::SUCCESS
}

async fn open(address: &str, url: &str, pager: &str, fence: Fence) -> Result<Monitor, mcproof_watch::store::StoreFailure> {
    let mut config = config();
    let target = |number: usize| {
        let name = format!("target-{number}");
        let url = format!("{url}/{name}");
        TargetSpec { every: EVERY, ..over_http(&name, &url) }
    };
    config.targets = (0..TARGETS).map(target).map(|target| (target.name.clone(), target)).collect();
    config.channels = [("pager".to_owned(), ChannelSpec::Webhook { url: Secret::new(pager), secret: None })].into();
    let (channels, everything) = (vec!["pager".to_owned()], Vec::new());
    config.routes = vec![Route { severities: Vec::new(), tags: everything, channels, ..Route::default() }];
    let store = Store::open(address).await?.fenced(fence);
    store.free_leases().await?;
    Monitor::over(store, config, reach(&format!("worker-{}", std::process::id())), now()).await
}

#[expect(clippy::disallowed_methods, reason = "processes die in real time")]
fn clock() -> SystemTime {
    SystemTime::now()
}

fn now() -> Moment {
    Moment::from(clock())
}
