//! The parts of a monitor put together: who probes, who tidies up, what the configuration says now. Passes become loops here, with
//! the clock that the caller gives.

use crate::api_target;
use crate::chores::{Chores, Presence};
use crate::clock::Clock;
use crate::config::{Config, TargetSpec};
use crate::moment::Moment;
use crate::prober::Prober;
use crate::store::{LONGEST_SILENCE, Store, StoreFailure, Synced};
use crate::worker::{Plan, Worker, WorkerHealth};
use mcproof_client::{Guardian, Network};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, Notify, watch};
use tokio::time::{sleep, timeout};

/// Probes at the same time, in one process.
const PERMITS: usize = 256;
/// Between two passes at the least, and after one that failed.
const SHORTEST_REST: Duration = Duration::from_millis(20);
const REST_AFTER_FAILURE: Duration = Duration::from_secs(1);
/// How often targets that came over the API are looked for.
const REFRESH: Duration = Duration::from_secs(10);
/// As it is told that they fail.
const TIDYING: &str = "the search for missing results and for alerts that are due";
const REFRESHING: &str = "reading which targets are monitored";
/// What [`Monitor::once`] takes at the most, however often it has to look again.
const ONCE: Duration = Duration::from_secs(120);

/// How a monitor reaches the world.
#[derive(Clone)]
pub struct Reach {
    pub network: Network,
    pub guardian: Guardian,
    /// What a command that begins with `mcproof` starts.
    pub own_binary: Option<PathBuf>,
    /// What `${env.NAME}` is in the suites of targets.
    pub variables: BTreeMap<String, String>,
    /// The name of this process among those that share a database.
    pub name: String,
}

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Everything.
    Serve,
    /// It probes.
    Worker,
    /// It tells people.
    Notifier,
}

/// A monitor, ready to run. Clones share everything.
#[derive(Clone)]
pub struct Monitor {
    pub store: Store,
    pub worker: Worker,
    pub chores: Chores,
    /// Notified when there may be something to be told.
    pub stirred: Arc<Notify>,
    pub worker_health: WorkerHealth,
    plan: Arc<watch::Sender<Arc<Plan>>>,
    given: Arc<Mutex<Given>>,
    /// Since when it has looked what other processes have in their files.
    presence: Presence,
    others: Arc<watch::Sender<BTreeSet<String>>>,
    unreadable: Arc<watch::Sender<BTreeSet<String>>>,
    /// The address of a database in which its targets are not known yet.
    unattached: Arc<Mutex<Option<String>>>,
}

/// What came over the API: what each target is made from, and the target.
type Given = BTreeMap<String, (Vec<u8>, Arc<TargetSpec>)>;
type Targets = BTreeMap<String, Arc<TargetSpec>>;

impl Monitor {
    /// Opens the database that the configuration names, and makes its targets known there. The clock goes by that of the database.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub async fn open(config: Config, reach: Reach, clock: &Clock) -> Result<Self, StoreFailure> {
        let store = Store::open(&config.database).await?;
        clock.follow(&store).await?;
        store.free_leases().await?;
        Self::over(store, config, reach, clock.now()).await
    }

    /// Like [`Monitor::open`], also while the database cannot be used for a reason that may pass, and which it says then: whoever stands in
    /// for the database begins with what the file says, and with what can be read.
    ///
    /// # Errors
    /// The database cannot be used, and will not be by itself.
    pub async fn open_or_stand_by(config: Config, reach: Reach, clock: &Clock) -> Result<(Self, Option<StoreFailure>), StoreFailure> {
        let address = config.database.clone();
        let (store, unopened) = match Store::open(&address).await {
            Ok(store) => (store, None),
            Err(failure) if failure.may_be_outlasted() => (Store::closed(&address)?, Some(failure)),
            Err(failure) => return Err(failure),
        };
        let monitor = Self::assemble(store, &config, reach, clock.now());
        *monitor.unattached.lock().await = Some(address);
        let failure = match unopened {
            Some(failure) => failure,
            None => match monitor.attach(clock).await {
                Ok(()) => return Ok((monitor, None)),
                Err(failure) if failure.may_be_outlasted() => failure,
                Err(failure) => return Err(failure),
            },
        };
        let targets = config.targets.values().map(|spec| (spec.name.clone(), Arc::new(spec.clone()))).collect();
        monitor.plan.send_replace(Arc::new(Plan { config: Arc::new(config), targets }));
        monitor.worker_health.summon(&failure);
        Ok((monitor, Some(failure)))
    }

    /// Makes the targets known in a database that could not be used at the start. Done before, it does nothing.
    ///
    /// # Errors
    /// The database still cannot be used.
    pub(crate) async fn attach(&self, clock: &Clock) -> Result<(), StoreFailure> {
        let mut unattached = self.unattached.lock().await;
        let Some(address) = unattached.as_deref() else { return Ok(()) };
        self.store.admit(address).await?;
        clock.follow(&self.store).await?;
        self.store.free_leases().await?;
        let now = clock.now();
        self.store.recover_from_set_back(now).await?;
        let config = Arc::clone(&self.plan.borrow().config);
        self.reload(Config::clone(&config), now).await?;
        *unattached = None;
        Ok(())
    }

    /// Like [`Monitor::open`], over a database that is open.
    ///
    /// # Errors
    /// The database failed.
    pub async fn over(store: Store, config: Config, reach: Reach, now: Moment) -> Result<Self, StoreFailure> {
        // An earlier process may have had a clock that was ahead.
        store.recover_from_set_back(now).await?;
        let monitor = Self::assemble(store, &config, reach, now);
        monitor.reload(config, now).await?;
        Ok(monitor)
    }

    /// Without targets: they come with the configuration once the database knows them.
    fn assemble(store: Store, config: &Config, reach: Reach, now: Moment) -> Self {
        let Reach { network, guardian, own_binary, variables, name } = reach;
        let region = config.region.clone();
        let prober = Prober::new(network, guardian, own_binary, config.canaries.clone()).with_variables(variables);
        let (plan, shown) = watch::channel(Arc::new(Plan { config: Arc::new(config.clone()), targets: BTreeMap::new() }));
        let (stirred, worker_health) = (Arc::new(Notify::new()), WorkerHealth::default());
        let worker = Worker {
            store: store.clone(),
            prober,
            region: region.clone(),
            name: name.clone(),
            permits: PERMITS,
            plan: shown.clone(),
            stirred: Arc::clone(&stirred),
            worker_health: worker_health.clone(),
        };
        let chores = Chores {
            store: store.clone(),
            name,
            region,
            plan: shown,
            presence: Presence::new(now),
            longest_raw: Duration::MAX,
            stirred: Arc::clone(&stirred),
        };
        Self {
            store,
            worker,
            chores,
            stirred,
            worker_health,
            plan: Arc::new(plan),
            given: Arc::default(),
            presence: Presence::new(now),
            others: Arc::default(),
            unreadable: Arc::default(),
            unattached: Arc::default(),
        }
    }

    /// What is to be done now.
    pub fn plan(&self) -> watch::Receiver<Arc<Plan>> {
        self.worker.plan.clone()
    }

    /// Another configuration: targets that did not change go on as if nothing had happened. The database, the region and the
    /// canaries are those of the start.
    ///
    /// # Errors
    /// The database failed; everything is as it was.
    pub async fn reload(&self, config: Config, now: Moment) -> Result<Synced, StoreFailure> {
        let mut given = self.given.lock().await;
        let specs: Vec<&TargetSpec> = config.targets.values().collect();
        self.hold(&config, now).await?;
        // Whoever reads its file says what is to be monitored from now on, whatever killed processes had in theirs.
        let kept_since = self.store.keep_vanished_since(now);
        let synced = self.store.sync_targets(&specs, &self.worker.region, now).await;
        if synced.is_err() {
            self.store.keep_vanished_since(kept_since);
        }
        let synced = synced?;
        let specs = config.targets.values().map(|spec| (spec.name.clone(), Arc::new(spec.clone()))).collect();
        // The key, or what they may be, may be another one now.
        given.clear();
        self.publish(&mut given, Arc::new(config), specs).await?;
        self.keep_targets(now).await?;
        Ok(synced)
    }

    /// What this process monitors goes on, whatever others that share the database have in their files; and what none of those that run,
    /// or were killed, has in its file ends.
    async fn keep_targets(&self, now: Moment) -> Result<(), StoreFailure> {
        let kept = self.keep_targets_since(self.presence.seen(now), now).await;
        if kept.is_err() {
            // Meanwhile the others could not say either that they run.
            self.presence.begin(now);
        }
        kept
    }

    /// `since` it has looked without a gap: who slept, or had no database, gives the others time to say that they run.
    async fn keep_targets_since(&self, since: Moment, now: Moment) -> Result<(), StoreFailure> {
        let config = Arc::clone(&self.plan.borrow().config);
        self.hold(&config, now).await?;
        let (monitored, held) = self.store.monitored_and_held(now).await?;
        let is_own_missing = config.targets.keys().any(|name| !monitored.contains(name));
        if is_own_missing || monitored != held && now.since(since) > LONGEST_SILENCE {
            let specs: Vec<&TargetSpec> = config.targets.values().collect();
            self.store.sync_targets(&specs, &self.worker.region, now).await?;
        }
        let others: BTreeSet<String> = held.into_iter().filter(|name| !config.targets.contains_key(name)).collect();
        self.store.leave_alone(&others);
        tell(&self.others, others);
        Ok(())
    }

    /// Says to the other processes that this one runs, and what it has in its file.
    async fn hold(&self, config: &Config, now: Moment) -> Result<(), StoreFailure> {
        let names: Vec<&str> = config.targets.keys().map(String::as_str).collect();
        self.store.hold_targets(&self.worker.name, &names, now).await?;
        self.store.hold_rejection(&self.worker.name, self.worker_health.rejection().as_deref()).await
    }

    /// The file is another one now, and is not taken over for this reason: everything goes on as it was, and whoever looks is told. If the
    /// database takes nothing, it knows with the next refresh.
    pub async fn reject(&self, why: &str, now: Moment) {
        self.worker_health.reject(Some(why));
        let config = Arc::clone(&self.plan.borrow().config);
        drop(self.hold(&config, now).await);
    }

    /// Targets that only the files of other processes name, which share the database.
    pub fn targets_of_others(&self) -> watch::Receiver<BTreeSet<String>> {
        self.others.subscribe()
    }

    /// Targets that other processes were given over the API, and what others that share the database have in their files.
    ///
    /// # Errors
    /// The database failed.
    pub async fn refresh(&self, now: Moment) -> Result<(), StoreFailure> {
        // Whoever reads the file again meanwhile waits until this is done.
        let mut given = self.given.lock().await;
        self.keep_targets(now).await?;
        let plan = Arc::clone(&self.plan.borrow());
        let is_configured = |(name, _): &(&String, &Arc<TargetSpec>)| plan.config.targets.contains_key(*name);
        let configured = plan.targets.iter().filter(is_configured).map(|(name, spec)| (name.clone(), Arc::clone(spec))).collect();
        self.publish(&mut given, Arc::clone(&plan.config), configured).await
    }

    async fn publish(&self, given: &mut Given, config: Arc<Config>, configured: Targets) -> Result<(), StoreFailure> {
        let found: BTreeMap<String, Vec<u8>> = self.store.api_targets().await?.into_iter().collect();
        // What is the same stays the same value, so that nothing is prepared anew for it.
        given.retain(|name, (definition, _)| found.get(name) == Some(&*definition));
        let mut unreadable = Vec::new();
        for (name, definition) in found {
            if given.contains_key(&name) {
                continue;
            }
            match api_target::decode(&config, &name, &definition) {
                Some(spec) => drop(given.insert(name, (definition, Arc::new(spec)))),
                None => unreadable.push(name),
            }
        }
        let unreadable: BTreeSet<String> = unreadable.into_iter().collect();
        tell(&self.unreadable, unreadable);
        let mut targets: Targets = given.iter().map(|(name, (_, spec))| (name.clone(), Arc::clone(spec))).collect();
        targets.extend(configured);
        self.worker.prober.forget_others(&targets);
        self.plan.send_replace(Arc::new(Plan { config, targets }));
        Ok(())
    }

    /// Targets that came over the API and cannot be opened with this seal key, or may no longer be reached: nobody probes them.
    pub fn unreadable_targets(&self) -> watch::Receiver<BTreeSet<String>> {
        self.unreadable.subscribe()
    }

    /// Does what its role is until `stop` resolves. Who tells people has a loop of its own ([`keep_passing`]).
    pub async fn run(&self, role: Role, clock: &Clock, stop: impl Future<Output = ()>) {
        let (ended, _) = watch::channel(false);
        let stopped = || {
            let mut ended = ended.subscribe();
            async move { drop(ended.wait_for(|ended| *ended).await) }
        };
        let stopping = async {
            stop.await;
            ended.send_replace(true);
        };
        let probing = async {
            if role != Role::Notifier {
                self.worker.run(clock, stopped()).await;
            }
        };
        let never = Notify::new();
        let tidying = keep_passing(
            async |_| {
                self.worker_health.upkeep(TIDYING);
                let done = async {
                    clock.follow(&self.store).await?;
                    self.chores.pass(clock.now()).await
                };
                let done = done.await;
                self.worker_health.upkept(TIDYING, done.as_ref().err());
                done
            },
            &never,
            clock,
            stopped(),
        );
        let refreshing = keep_passing(
            async |now| {
                self.worker_health.upkeep(REFRESHING);
                let done = self.refresh(now).await;
                self.worker_health.upkept(REFRESHING, done.as_ref().err());
                done.map(|()| Some(now + REFRESH))
            },
            &never,
            clock,
            stopped(),
        );
        tokio::join!(stopping, probing, tidying, refreshing);
    }

    /// What this process was about to probe is anybody's: it ends.
    ///
    /// # Errors
    /// The database failed.
    pub async fn give_back(&self) -> Result<(), StoreFailure> {
        self.store.give_back(&self.worker.name).await?;
        self.store.let_go(&self.worker.name).await
    }

    /// Probes every target now, and what fails again until that is certain; then does the chores.
    ///
    /// # Errors
    /// The database failed.
    pub async fn once(&self, clock: &Clock) -> Result<(), StoreFailure> {
        let end = Instant::now() + ONCE;
        self.store.hurry(&self.worker.region, clock.now()).await?;
        loop {
            let now = clock.now();
            let next = self.worker.pass(now).await?;
            let confirmation = self.store.next_confirmation(&self.worker.region).await?;
            let after = clock.now();
            match (next, confirmation) {
                (Some(next), _) if next <= after && Instant::now() < end => {}
                (_, Some(next)) if Instant::now() + next.since(after) < end => sleep(next.since(after)).await,
                _ => break,
            }
        }
        self.chores.pass(clock.now()).await?;
        Ok(())
    }
}

/// Tells whoever follows, if it is something new.
fn tell(followers: &watch::Sender<BTreeSet<String>>, names: BTreeSet<String>) {
    followers.send_if_modified(|known| std::mem::replace(known, names.clone()) != names);
}

/// Runs passes until `stop` resolves: the next one when the last one said, or when there is a knock.
pub async fn keep_passing<E>(
    mut pass: impl AsyncFnMut(Moment) -> Result<Option<Moment>, E>,
    knock: &Notify,
    clock: &Clock,
    stop: impl Future<Output = ()>,
) {
    let mut stop = std::pin::pin!(stop);
    loop {
        let rest = match pass(clock.now()).await {
            Ok(Some(next)) => next.since(clock.now()).max(SHORTEST_REST),
            Ok(None) => Duration::MAX,
            Err(_) => REST_AFTER_FAILURE,
        };
        tokio::select! {
            biased;
            () = &mut stop => return,
            _ = timeout(rest, knock.notified()) => {}
        }
    }
}
