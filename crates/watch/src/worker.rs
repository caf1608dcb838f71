//! Whoever probes: takes turns that are due, probes, and commits what was found. Any number of workers may share a database.
//!
//! [`Worker::pass`] does that once and is what tests drive; [`Worker::run`] goes on while slow probes are on their way.

mod health;
mod runtime;

pub(crate) use health::LONGEST_ANSWER;
pub use health::{HealthReport, Trouble, WorkerHealth};

use crate::clock::{Clock, TOLERANCE};
use crate::config::{Config, TargetKind, TargetSpec};
use crate::moment::Moment;
use crate::prober::Prober;
use crate::state::Verdict;
use crate::store::{Finished, Lease, Store, StoreFailure};
use backon::{BackoffBuilder as _, ExponentialBuilder};
use health::Task;
use runtime::{RuntimeMonitor, Watchdog};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// What is to be done: the configuration, and all targets by their names, also those that came over the API.
#[derive(Debug)]
pub struct Plan {
    pub config: Arc<Config>,
    pub targets: BTreeMap<String, Arc<TargetSpec>>,
}

/// Turns in one lease, and results in one transaction.
const LEASED_AT_ONCE: usize = 50;
const COMMITTED_AT_ONCE: usize = 200;
/// Results wait so long for others to be committed with.
const GATHERING: Duration = Duration::from_millis(100);
/// Between two looks at the schedule at the least, and at the most.
const SHORTEST_REST: Duration = Duration::from_millis(50);
const LONGEST_REST: Duration = Duration::from_secs(1);
/// For probes on their way when everything ends. Their turns are given back, so that the next process has them at once.
const LAST_CALL: Duration = Duration::from_millis(800);

/// One that probes from a region.
#[derive(Clone)]
pub struct Worker {
    pub store: Store,
    pub prober: Prober,
    pub region: String,
    /// Whom a lease names.
    pub name: String,
    /// Probes at the same time.
    pub permits: usize,
    pub plan: watch::Receiver<Arc<Plan>>,
    /// Notified when a commit left something to be told.
    pub stirred: Arc<Notify>,
    pub worker_health: WorkerHealth,
}

/// Asks a server how it is, or looks what a job has said.
async fn probe(prober: &Prober, store: &Store, spec: &Arc<TargetSpec>, lease: &Lease, now: Moment) -> Finished {
    match &spec.kind {
        TargetKind::Push { expectation, .. } => {
            let reported = store.pushed(&spec.name).await;
            let judgement = reported.map(|reported| expectation.judge(&reported, now)).map_err(|failure| failure.to_string());
            prober.judged(spec, lease, now, judgement)
        }
        TargetKind::Server(_) | TargetKind::Monitor(_) => prober.probe(spec, lease, now).await,
    }
}

impl Worker {
    /// Probes everything that is due, as far as permits go, and says when something is due next.
    ///
    /// # Errors
    /// The database failed. What was not written is probed again when its lease has ended.
    pub async fn pass(&self, now: Moment) -> Result<Option<Moment>, StoreFailure> {
        let leases = self.lease(self.permits, now).await?;
        let probes = leases.into_iter().map(|(spec, lease)| async move { probe(&self.prober, &self.store, &spec, &lease, now).await });
        let finished = futures_util::future::join_all(probes).await;
        for part in finished.chunks(COMMITTED_AT_ONCE) {
            self.commit(part, now).await?;
        }
        self.store.next_due(&self.region, now).await
    }

    /// Probes until `stop` resolves, and what is on its way then for a little longer.
    pub async fn run(&self, clock: &Clock, stop: impl Future<Output = ()>) {
        let (results, arrivals) = mpsc::channel(COMMITTED_AT_ONCE);
        let watchdog = Watchdog::start();
        tokio::join!(self.probe_all(clock, results, watchdog.runtime_monitor(), stop), self.commit_all(clock, arrivals));
    }

    /// Ends when all probes have ended; dropping the sender then ends the other half.
    async fn probe_all(
        &self,
        clock: &Clock,
        results: mpsc::Sender<Finished>,
        runtime_monitor: RuntimeMonitor,
        stop: impl Future<Output = ()>,
    ) {
        let mut stop = std::pin::pin!(stop);
        let permits = Arc::new(Semaphore::new(self.permits));
        let mut probes = JoinSet::new();
        let mut before = clock.now();
        let mut looked = Instant::now();
        loop {
            let now = clock.now();
            let expected = before + looked.elapsed();
            looked = Instant::now();
            if now + TOLERANCE < before
                && let Err(failure) = self.store.recover_from_set_back(now).await
            {
                self.worker_health.ill(Task::Lease, &failure);
            }
            if now > expected + TOLERANCE
                && let Err(failure) = self.store.keep_confirmations_apart(now.since(expected), now).await
            {
                self.worker_health.ill(Task::Lease, &failure);
            }
            before = now;
            while probes.try_join_next().is_some() {}
            let rest = match permits.available_permits() {
                0 => SHORTEST_REST,
                _ if self.worker_health.report().is_replaced => LONGEST_REST,
                free => {
                    let (leases, rest) = self.take(free, clock.now()).await;
                    for (spec, lease) in leases {
                        let permit = Arc::clone(&permits).try_acquire_owned().expect("no more is leased than there are permits");
                        let (prober, results, runtime_monitor) = (self.prober.clone(), results.clone(), runtime_monitor.clone());
                        let (clock, store) = (clock.clone(), self.store.clone());
                        probes.spawn(async move {
                            let steady = runtime_monitor.begin(&clock);
                            let mut finished = probe(&prober, &store, &spec, &lease, clock.now()).await;
                            if let Some(reason) = steady.broken() {
                                finished.observation.verdict = Verdict::Inconclusive;
                                finished.observation.reason = reason.into();
                            }
                            // Nobody takes it if everything ends; then it is probed again.
                            let _ = results.send(finished).await;
                            drop(permit);
                        });
                    }
                    rest
                }
            };
            tokio::select! {
                biased;
                () = &mut stop => break,
                () = sleep(rest) => {}
            }
        }
        // What has not ended by then is dropped, and its processes with it.
        let _ = timeout(LAST_CALL, async { while probes.join_next().await.is_some() {} }).await;
        probes.shutdown().await;
    }

    /// Turns that are due, and how long to wait until the next look. A database that fails is asked again, less often.
    async fn take(&self, free: usize, now: Moment) -> (Vec<(Arc<TargetSpec>, Lease)>, Duration) {
        self.worker_health.ask(Task::Lease);
        let taken = async {
            let leases = self.lease(free, now).await?;
            let next = if leases.is_empty() { self.store.next_due(&self.region, now).await? } else { Some(now) };
            Ok((leases, next))
        };
        let taken = taken.await;
        self.worker_health.displaced(self.store.is_displaced());
        match taken {
            Ok((leases, next)) => {
                self.worker_health.well(now);
                let rest = next.map_or(LONGEST_REST, |next| next.since(now));
                (leases, rest.clamp(SHORTEST_REST, LONGEST_REST))
            }
            Err(failure) => {
                self.worker_health.ill(Task::Lease, &failure);
                (Vec::new(), LONGEST_REST)
            }
        }
    }

    async fn lease(&self, most: usize, now: Moment) -> Result<Vec<(Arc<TargetSpec>, Lease)>, StoreFailure> {
        let plan = Arc::clone(&self.plan.borrow());
        let mut taken = Vec::new();
        while taken.len() < most {
            let limit = LEASED_AT_ONCE.min(most - taken.len());
            let leases = self.store.lease(&self.region, &self.name, now, limit).await?;
            let is_last = leases.len() < limit;
            for lease in leases {
                // A target that this process was not told of yet waits for one that was.
                let Some(spec) = plan.targets.get(&lease.target) else { continue };
                let turn = lease.turn.taken(spec.grid(), now);
                self.worker_health.leased(lease.turn, turn, spec.grid(), now);
                taken.push((Arc::clone(spec), Lease { turn, ..lease }));
            }
            if is_last {
                break;
            }
        }
        Ok(taken)
    }

    /// Ends when everybody who could send a result has gone.
    async fn commit_all(&self, clock: &Clock, mut arrivals: mpsc::Receiver<Finished>) {
        let mut batch = Vec::with_capacity(COMMITTED_AT_ONCE);
        while arrivals.recv_many(&mut batch, COMMITTED_AT_ONCE).await > 0 {
            let gathered =
                async { while batch.len() < COMMITTED_AT_ONCE && arrivals.recv_many(&mut batch, COMMITTED_AT_ONCE).await > 0 {} };
            // Cancelling keeps what has arrived: it is in the batch.
            let _ = timeout(GATHERING, gathered).await;
            self.persist(clock, &batch).await;
            batch.clear();
        }
    }

    /// Tries as long as there is a lease left. After two failures each result goes alone: one of them may be what the database
    /// does not take.
    async fn persist(&self, clock: &Clock, batch: &[Finished]) {
        let delays = ExponentialBuilder::default().with_min_delay(Duration::from_millis(50)).with_max_delay(Duration::from_secs(2));
        let mut delays = delays.with_jitter().without_max_times().build();
        let mut size = COMMITTED_AT_ONCE;
        let mut before: Option<Vec<Finished>> = None;
        for failures in 1.. {
            let mut left = Vec::new();
            for part in before.as_deref().unwrap_or(batch).chunks(size) {
                if let Err(failure) = self.commit(part, clock.now()).await {
                    self.worker_health.ill(Task::Commit, &failure);
                    left.extend_from_slice(part);
                }
            }
            let now = clock.now();
            left.retain(|one| one.lease.until > now);
            if left.is_empty() {
                return;
            }
            before = Some(left);
            if failures == 2 {
                size = 1;
            }
            sleep(delays.next().unwrap_or(LONGEST_REST)).await;
        }
    }

    async fn commit(&self, finished: &[Finished], now: Moment) -> Result<(), StoreFailure> {
        let config = Arc::clone(&self.plan.borrow().config);
        self.worker_health.ask(Task::Commit);
        let committed = self.store.commit(finished, &config, now).await?;
        // Of what was dropped nothing was written.
        if committed.dropped == 0 {
            finished.iter().for_each(|one| self.prober.remember(one));
        }
        self.worker_health.committed(&committed, now);
        if committed.stirred {
            self.stirred.notify_waiters();
            self.stirred.notify_one();
        }
        Ok(())
    }
}
