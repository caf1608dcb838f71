//! One run on one database: sets the scene, lets everybody bring trouble at the same time, waits until everything is calm, and counts.

use super::disturbances::{Abilities, Database, Disturbances};
use super::judge::{Hindrance, Page, Record, judge};
use super::monitors::{Monitor, can_set_clocks, set_clock, with_clock};
use super::observer::{Health, Seen, ask, count};
use super::outages::{change_targets, trouble_receivers, trouble_servers};
use super::page::Figures;
use super::pager::Pager;
use super::postgres::Cluster;
use super::scene::{IncidentContext, NEIGHBOURS};
use super::servers::Place;
use super::timeline::Timeline;
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Targets with a host of their own.
const ALONE: u8 = 32;
/// After the last fault, until everybody has been told of everything.
const CALM: Duration = Duration::from_secs(180);
/// Enough for what is written in a run, little enough to be filled at once.
const DISK: &str = "size=300m";

pub(crate) struct Plan {
    pub(crate) program: PathBuf,
    /// Where logs and figures go.
    pub(crate) logs: PathBuf,
    pub(crate) minutes: u64,
    pub(crate) seed: u64,
}

/// A small disk; gone when it is dropped.
struct Disk {
    folder: PathBuf,
    is_own: bool,
}

impl Disk {
    fn mount(folder: PathBuf) -> Self {
        fs::create_dir_all(&folder).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", DISK, "mcproof-chaos"]).arg(&folder).output();
        Self { folder, is_own: mounted.is_ok_and(|mounted| mounted.status.success()) }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.is_own {
            // What is still open there keeps it until it ends.
            let _ = Command::new("umount").arg("--lazy").arg(&self.folder).status();
        }
    }
}

pub(crate) fn run(plan: &Plan, name: &str) -> Figures {
    sqlx::any::install_default_drivers();
    let folder = tempfile::Builder::new().prefix("mcproof-chaos-").tempdir().unwrap();
    fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let disk = Disk::mount(folder.path().join("disk"));
    let clock = folder.path().join("database.clock");
    set_clock(&clock, 0);
    let (address, database) = if name == "postgres" {
        let cluster = Cluster::start_in(&disk.folder, with_clock(&clock));
        (cluster.database("chaos"), Database::Postgres { cluster: Box::new(cluster), clock })
    } else {
        let file = disk.folder.join("watch.db");
        (format!("sqlite:{}", file.display()), Database::Sqlite { file })
    };
    let timeline = Timeline::begin();
    let runtime = Background::start();
    let seen = Seen::default();
    let (places, pager) = runtime.wait(open_world(timeline, if name == "postgres" { 2 } else { 1 }));
    let scene = IncidentContext::new(timeline, places, pager, folder.path().to_owned(), address.clone());
    let roles: &[&str] = if name == "postgres" { &["serve", "serve", "worker"] } else { &["serve"] };
    let start = |(number, role): (usize, &&str)| Monitor::start(&format!("monitor-{number}"), &plan.program, folder.path(), role);
    let monitors: Vec<Monitor> = roles.iter().enumerate().map(start).collect();
    let health: Vec<Health> = monitors.iter().filter(|monitor| monitor.address.is_some()).map(|_| Health::default()).collect();
    for (address, health) in monitors.iter().filter_map(|monitor| monitor.address).zip(&health) {
        runtime.spawn(ask(address, timeline, seen.clone(), health.clone()));
    }
    let reading = if name == "postgres" { address } else { format!("{}?mode=ro", address.replacen("sqlite:", "sqlite://", 1)) };
    runtime.spawn(count(reading, timeline, seen.clone()));
    let monitors = Mutex::new(monitors);
    let end = timeline.now() + Duration::from_secs(plan.minutes * 60);
    let random = |lane: u64| fastrand::Rng::with_seed(plan.seed.wrapping_mul(1_000).wrapping_add(lane));
    let abilities = Abilities { clocks: can_set_clocks(), disk: disk.is_own };
    let long_freezes = vec![end / 4, end * 3 / 4];
    let mut disturbances = Disturbances {
        scene: &scene,
        monitors: &monitors,
        health,
        database,
        disk: disk.folder.clone(),
        abilities,
        random: random(1),
        recoveries: Vec::new(),
        long_freezes,
    };
    let hang_up = || monitors.lock().unwrap().iter().for_each(|monitor| monitor.send(Signal::SIGHUP));
    std::thread::scope(|scope| {
        scope.spawn(|| trouble_servers(&scene, random(2)));
        scope.spawn(|| change_targets(&scene, &hang_up, random(3)));
        scope.spawn(|| trouble_receivers(&scene, random(4)));
        disturbances.go_on(end);
        scene.end();
    });
    wait_for_calm(&scene, &mut disturbances);
    let until = timeline.now();
    keep_logs(plan, name, folder.path(), &monitors);
    let record = scene.record.lock().unwrap();
    let judged = judge(&record);
    let beats = scene.pager.beats();
    let mut recoveries: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (kind, length) in &disturbances.recoveries {
        recoveries.entry((*kind).to_owned()).or_default().push(milliseconds(*length));
    }
    let describe = |spans: Vec<(Duration, Duration)>| -> Vec<(u64, u64, String)> {
        let spans = spans.into_iter().take(10);
        spans.map(|(from, length)| (milliseconds(from), milliseconds(length), during(&record.hindrances, from, length))).collect()
    };
    let unseen = describe(seen.blindness(&beats, until));
    let mut unasked: Vec<(Duration, Duration)> =
        scene.places[..scene.shared()].iter().flat_map(|place| place.gaps()).map(|(from, to)| (from, to - from)).collect();
    unasked.retain(|(from, length)| during(&record.hindrances, *from, *length) == NOTHING);
    unasked.sort_by_key(|(_, length)| std::cmp::Reverse(*length));
    let pages = scene.pager.pages();
    write_events(plan, name, &record, &pages);
    fs::write(plan.logs.join(format!("{name}-record.json")), serde_json::to_string(&*record).unwrap()).unwrap();
    let ended = monitors.lock().unwrap().iter().flat_map(|monitor| monitor.ended.clone()).collect();
    let mut skipped = Vec::new();
    if !abilities.clocks {
        skipped.push("clocks, without libfaketime".to_owned());
    }
    if !abilities.disk {
        skipped.push("a full disk, without the right to mount one".to_owned());
    }
    let faults = scene.faults.lock().unwrap().clone();
    Figures {
        database: name.to_owned(),
        seed: plan.seed,
        minutes: plan.minutes,
        machine: machine(),
        build: build(&plan.program),
        targets: usize::from(ALONE) + NEIGHBOURS,
        processes: roles.len(),
        results: seen.results(),
        messages: pages.len(),
        skipped,
        faults,
        judged,
        unseen,
        unasked: describe(unasked),
        recoveries,
        ended,
    }
}

/// The last run on a database, as it is judged now.
pub(crate) fn judge_again(plan: &Plan, name: &str) -> Figures {
    let read = |file: String| fs::read_to_string(plan.logs.join(file)).unwrap();
    let figures: Figures = serde_json::from_str(&read(format!("{name}.json"))).unwrap();
    let record: Record = serde_json::from_str(&read(format!("{name}-record.json"))).unwrap();
    Figures { judged: judge(&record), ..figures }
}

async fn open_world(timeline: Timeline, network: u8) -> (Vec<Arc<Place>>, Arc<Pager>) {
    let mut places = Vec::new();
    for number in 0..=ALONE {
        places.push(Place::open(Ipv4Addr::new(127, network, 0, number + 1), timeline).await);
    }
    (places, Pager::open(timeline).await)
}

/// Until nobody thinks any more that something is wrong, and a little longer.
fn wait_for_calm(scene: &IncidentContext, disturbances: &mut Disturbances<'_>) {
    let timeline = scene.timeline;
    let until = timeline.now() + CALM;
    let is_calm = || scene.pager.open_incidents().iter().all(|(_, class, _)| matches!(class.as_str(), "flapping" | "latency"));
    while timeline.now() < until && !is_calm() {
        disturbances.rest(Duration::from_secs(1));
    }
    disturbances.rest(Duration::from_secs(5));
    scene.record.lock().unwrap().pages = scene.pager.pages();
}

const NOTHING: &str = "nothing else";

/// What was done in this time.
fn during(hindrances: &[Hindrance], from: Duration, length: Duration) -> String {
    let is_then = |hindrance: &&Hindrance| hindrance.began <= from + length && from <= hindrance.ended;
    let mut kinds: Vec<&str> =
        hindrances.iter().filter(is_then).map(|hindrance| hindrance.kind.as_str()).filter(|kind| !kind.starts_with("receiver")).collect();
    kinds.sort_unstable();
    kinds.dedup();
    if kinds.is_empty() { NOTHING.to_owned() } else { kinds.join(", ") }
}

fn milliseconds(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

fn keep_logs(plan: &Plan, name: &str, folder: &Path, monitors: &Mutex<Vec<Monitor>>) {
    let count = monitors.lock().unwrap().len();
    for number in 0..count {
        let file = format!("monitor-{number}.log");
        // It is only there to be read by a person.
        let _ = fs::copy(folder.join(&file), plan.logs.join(format!("{name}-{file}")));
    }
}

/// All that happened, in its order, for whoever looks for a reason.
fn write_events(plan: &Plan, name: &str, record: &Record, pages: &[Page]) {
    let mut events: Vec<(Duration, String)> = Vec::new();
    for one in &record.outages {
        events.push((one.began, format!("down: {one:?}")));
    }
    for one in &record.hindrances {
        events.push((one.began, format!("done: {} until {:.1}", one.kind, one.ended.as_secs_f64())));
    }
    for (target, at) in &record.removed {
        events.push((*at, format!("removed: {target}")));
    }
    for page in pages {
        events.push((page.at, format!("told: {page:?}")));
    }
    events.sort();
    let text: String = events.iter().map(|(at, what)| format!("{:8.2} {what}\n", at.as_secs_f64())).collect();
    fs::write(plan.logs.join(format!("{name}-events.txt")), text).unwrap();
}

/// As the page says it.
fn build(program: &Path) -> String {
    let is_debug = program.components().any(|part| part.as_os_str() == "debug");
    let commit = Command::new("git").args(["show", "--no-patch", "--format=%h of %cs"]).output();
    let commit = commit.ok().and_then(|commit| String::from_utf8(commit.stdout).ok()).unwrap_or_default();
    format!("{}, {}", if is_debug { "unoptimized" } else { "optimized" }, commit.trim())
}

fn machine() -> String {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")).and_then(|line| line.split_once(':'));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{cores} cores of {}", model.map_or("an unknown processor", |(_, name)| name.trim()))
}

/// A thread on which servers, receivers and lookers run.
struct Background {
    handle: tokio::runtime::Handle,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Background {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let handle = runtime.handle().clone();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let thread = std::thread::spawn(move || drop(runtime.block_on(stopped)));
        Self { handle, stop: Some(stop), thread: Some(thread) }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(task);
    }

    fn wait<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> T {
        let (give, given) = std::sync::mpsc::channel();
        self.handle.spawn(async move { drop(give.send(task.await)) });
        given.recv().unwrap()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}
