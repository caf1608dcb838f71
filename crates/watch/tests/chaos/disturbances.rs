//! What is done to the monitor itself and to its database, one thing at a time, and each time until everything goes on: processes
//! that die and freeze, clocks that are set, disks that are full, databases that are locked, stopped or gone.

use super::judge::Effect;
use super::monitors::{Monitor, set_clock};
use super::observer::Health;
use super::postgres::Cluster;
use super::scene::IncidentContext;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sqlx::{AnyConnection, Connection as _, Executor as _};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// Until everybody is well again, before that is a finding of its own.
const RECOVERY: Duration = Duration::from_secs(60);
/// Of a process that died among several: its leases end, and what it had is looked at by another one.
const LEASE: Duration = Duration::from_secs(16);
/// What was looked at while a clock was set is looked at again.
const SECOND_LOOK: Duration = Duration::from_secs(15);
/// A service manager starts again what has ended.
const RESTART: Duration = Duration::from_millis(700);

/// What the monitors keep everything in.
pub(crate) enum Database {
    Sqlite { file: PathBuf },
    Postgres { cluster: Box<Cluster>, clock: PathBuf },
}

impl Database {
    fn is_postgres(&self) -> bool {
        matches!(self, Self::Postgres { .. })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChaosAction {
    Kill,
    KillAll,
    Freeze,
    FreezeAll,
    FreezeLong,
    SetClock,
    SetClockOfDatabase,
    FillDisk,
    Lock,
    KillDatabase,
    FreezeDatabase,
}

const ON_SQLITE: [(ChaosAction, u8); 5] = [
    (ChaosAction::KillAll, 7),
    (ChaosAction::FreezeAll, 4),
    (ChaosAction::SetClock, 3),
    (ChaosAction::FillDisk, 3),
    (ChaosAction::Lock, 3),
];
const ON_POSTGRES: [(ChaosAction, u8); 9] = [
    (ChaosAction::Kill, 5),
    (ChaosAction::KillAll, 1),
    (ChaosAction::Freeze, 4),
    (ChaosAction::FreezeAll, 1),
    (ChaosAction::SetClock, 1),
    (ChaosAction::SetClockOfDatabase, 2),
    (ChaosAction::FillDisk, 2),
    (ChaosAction::KillDatabase, 3),
    (ChaosAction::FreezeDatabase, 2),
];

/// What can be done on this machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abilities {
    pub(crate) clocks: bool,
    /// The database lies on a disk of its own.
    pub(crate) disk: bool,
}

pub(crate) struct Disturbances<'a> {
    pub(crate) scene: &'a IncidentContext,
    pub(crate) monitors: &'a Mutex<Vec<Monitor>>,
    pub(crate) health: Vec<Health>,
    pub(crate) database: Database,
    pub(crate) disk: PathBuf,
    pub(crate) abilities: Abilities,
    pub(crate) random: fastrand::Rng,
    /// How long it took until everybody was well after a fault had ended.
    pub(crate) recoveries: Vec<(&'static str, Duration)>,
    /// When everybody is frozen for most of a minute.
    pub(crate) long_freezes: Vec<Duration>,
}

impl Disturbances<'_> {
    /// Until the moment at which everything ends.
    pub(crate) fn go_on(&mut self, until: Duration) {
        self.rest(Duration::from_secs(12));
        while self.scene.timeline.now() < until {
            let action = self.choose();
            self.disturb(action);
            let rest = if self.database.is_postgres() { 4_000..8_000 } else { 3_000..7_000 };
            let rest = Duration::from_millis(self.random.u64(rest));
            self.rest(rest);
        }
    }

    fn choose(&mut self) -> ChaosAction {
        if self.long_freezes.first().is_some_and(|due| *due <= self.scene.timeline.now()) {
            self.long_freezes.remove(0);
            return ChaosAction::FreezeLong;
        }
        let actions: &[(ChaosAction, u8)] = if self.database.is_postgres() { &ON_POSTGRES } else { &ON_SQLITE };
        let can = |action: &&(ChaosAction, u8)| match action.0 {
            ChaosAction::SetClock | ChaosAction::SetClockOfDatabase => self.abilities.clocks,
            ChaosAction::FillDisk => self.abilities.disk,
            _ => true,
        };
        let actions: Vec<(ChaosAction, u8)> = actions.iter().filter(can).copied().collect();
        let mut ticket = self.random.u8(..actions.iter().map(|(_, weight)| *weight).sum::<u8>());
        let chosen = actions.iter().find(|(_, weight)| {
            let is_it = ticket < *weight;
            ticket = ticket.saturating_sub(*weight);
            is_it
        });
        chosen.map_or(ChaosAction::KillAll, |(action, _)| *action)
    }

    fn disturb(&mut self, action: ChaosAction) {
        let count = self.monitors.lock().unwrap().len();
        let one = self.random.usize(..count);
        let (all, single): (Vec<usize>, Vec<usize>) = ((0..count).collect(), vec![one]);
        let of_several = if count > 1 { Effect::Slows } else { Effect::Halts };
        let aftermath = if count > 1 { LEASE } else { Duration::from_secs(2) };
        match action {
            ChaosAction::Kill => self.kill("kill -9", &single, of_several, aftermath),
            ChaosAction::KillAll => self.kill("kill -9", &all, Effect::Halts, aftermath),
            ChaosAction::Freeze => self.freeze("freeze", &single, of_several, aftermath, 1_000..9_000),
            ChaosAction::FreezeAll => self.freeze("freeze", &all, Effect::Halts, aftermath, 1_000..9_000),
            ChaosAction::FreezeLong => self.freeze("freeze of most of a minute", &all, Effect::Halts, aftermath, 35_000..55_000),
            ChaosAction::SetClock => {
                let clock = self.monitors.lock().unwrap()[one].clock.clone();
                self.set_clock("clock of a process set", &clock);
            }
            ChaosAction::SetClockOfDatabase => {
                let clock = match &self.database {
                    Database::Postgres { clock, .. } => clock.clone(),
                    Database::Sqlite { .. } => return,
                };
                self.set_clock("clock of the database set", &clock);
            }
            ChaosAction::FillDisk => self.fill_disk(),
            ChaosAction::Lock => self.lock(),
            ChaosAction::KillDatabase => self.kill_database(),
            ChaosAction::FreezeDatabase => self.freeze_database(),
        }
    }

    fn kill(&mut self, kind: &'static str, victims: &[usize], effect: Effect, aftermath: Duration) {
        let hindrance = self.scene.begin(kind, effect, false);
        for victim in victims {
            self.monitors.lock().unwrap()[*victim].kill();
        }
        std::thread::sleep(RESTART);
        for victim in victims {
            self.monitors.lock().unwrap()[*victim].resume();
        }
        self.recover(kind, hindrance, aftermath);
    }

    fn freeze(&mut self, kind: &'static str, victims: &[usize], effect: Effect, aftermath: Duration, length: std::ops::Range<u64>) {
        let hindrance = self.scene.begin(kind, effect, false);
        let send = |signal| victims.iter().for_each(|victim| self.monitors.lock().unwrap()[*victim].send(signal));
        send(Signal::SIGSTOP);
        std::thread::sleep(Duration::from_millis(self.random.u64(length)));
        send(Signal::SIGCONT);
        self.recover(kind, hindrance, aftermath);
    }

    /// Forward or back by half a minute up to a day; and then to what it was.
    fn set_clock(&mut self, kind: &'static str, clock: &Path) {
        let hindrance = self.scene.begin(kind, Effect::Slows, false);
        let by = [30, 300, 3_600, 86_400][self.random.usize(..4)];
        set_clock(clock, if self.random.bool() { by } else { -by });
        let length = Duration::from_millis(self.random.u64(3_000..20_000));
        self.rest(length);
        set_clock(clock, 0);
        // Until it is read.
        self.rest(Duration::from_secs(2));
        self.recover(kind, hindrance, SECOND_LOOK);
    }

    fn fill_disk(&mut self) {
        let hindrance = self.scene.begin("disk full", Effect::Slows, true);
        let filler = self.disk.join("filler");
        let mut file = File::create(&filler).unwrap();
        let until = self.scene.timeline.now() + Duration::from_millis(self.random.u64(2_000..25_000));
        while self.scene.timeline.now() < until {
            // What somebody else gives back is taken as well.
            for size in [1 << 20, 4096, 1] {
                while file.write_all(&vec![7; size]).is_ok() {}
            }
            self.rest(Duration::from_millis(200));
        }
        drop(file);
        fs::remove_file(filler).unwrap();
        if let Database::Postgres { cluster, .. } = &mut self.database
            && cluster.has_ended()
        {
            cluster.resume();
        }
        self.recover("disk full", hindrance, SECOND_LOOK);
    }

    /// Another program has the file for itself.
    fn lock(&mut self) {
        let Database::Sqlite { file } = &self.database else { return };
        let address = format!("sqlite://{}", file.display());
        let hindrance = self.scene.begin("database locked", Effect::Slows, true);
        let length = Duration::from_millis(self.random.u64(2_000..25_000));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let locked = runtime.block_on(async {
            let mut connection = AnyConnection::connect(&address).await?;
            connection.execute("PRAGMA busy_timeout = 2000").await?;
            connection.execute("BEGIN EXCLUSIVE").await?;
            tokio::time::sleep(length).await;
            connection.execute("ROLLBACK").await?;
            connection.close().await
        });
        drop(locked);
        self.recover("database locked", hindrance, SECOND_LOOK);
    }

    fn kill_database(&mut self) {
        let hindrance = self.scene.begin("database killed", Effect::Slows, true);
        let length = Duration::from_millis(self.random.u64(300..25_000));
        let Database::Postgres { cluster, .. } = &mut self.database else { return };
        cluster.stop();
        self.rest(length);
        let Database::Postgres { cluster, .. } = &mut self.database else { return };
        cluster.resume();
        self.recover("database killed", hindrance, SECOND_LOOK);
    }

    /// It answers nothing, and its connections stay open.
    fn freeze_database(&mut self) {
        let hindrance = self.scene.begin("database frozen", Effect::Slows, true);
        let Database::Postgres { cluster, .. } = &self.database else { return };
        let send = |signal| {
            for process in cluster.process().into_iter().flat_map(family) {
                // It may have ended.
                let _ = kill(Pid::from_raw(process.cast_signed()), signal);
            }
        };
        send(Signal::SIGSTOP);
        let length = Duration::from_millis(self.random.u64(2_000..20_000));
        std::thread::sleep(length);
        send(Signal::SIGCONT);
        self.recover("database frozen", hindrance, SECOND_LOOK);
    }

    /// Until everybody is well.
    fn recover(&mut self, kind: &'static str, hindrance: usize, aftermath: Duration) {
        let began = self.scene.timeline.now();
        self.health.iter().for_each(Health::forget);
        while !self.health.iter().all(Health::is_well) && self.scene.timeline.now() < began + RECOVERY {
            self.rest(Duration::from_millis(50));
        }
        self.recoveries.push((kind, self.scene.timeline.now() - began));
        self.scene.finish(hindrance, aftermath);
    }

    /// Meanwhile whoever ends is started again.
    pub(crate) fn rest(&mut self, length: Duration) {
        let timeline = self.scene.timeline;
        let until = timeline.now() + length;
        while timeline.now() < until {
            self.monitors.lock().unwrap().iter_mut().for_each(|monitor| monitor.tend(timeline));
            timeline.sleep_until(until.min(timeline.now() + Duration::from_millis(500)));
        }
    }
}

/// A process and its children.
fn family(process: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    std::iter::once(process).chain(children.split_whitespace().filter_map(|child| child.parse().ok())).collect()
}
