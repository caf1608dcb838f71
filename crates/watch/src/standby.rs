//! What goes on while the database takes nothing: targets are probed and people are told out of a database in memory. It begins with
//! what can still be read of the real one, which is nothing if that could not be opened at the start; what it knows by the end is written
//! there as soon as that takes it.

use crate::channel::DeliveryClient;
use crate::chores::{Chores, Presence};
use crate::clock::Clock;
use crate::config::TargetSpec;
use crate::moment::Moment;
use crate::monitor::{Monitor, keep_passing};
use crate::notifier::{Notifier, Receipts, Sent};
use crate::store::{Reading, Store, StoreFailure};
use crate::worker::{Trouble, Worker, WorkerHealth};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

/// The database may refuse for so long before somebody stands in for it.
const PATIENCE: Duration = Duration::from_secs(10);
/// Whoever could not decide something finds the database in memory in this time, also where the real one takes everything else.
const FIRST_REST: Duration = Duration::from_millis(500);
/// Between two tries to write what is known at the most; at first it is the patience.
const LONGEST_REST: Duration = Duration::from_secs(60);
/// Results are kept in memory for so long, and for the time between two looks at what is to be forgotten. What people were told
/// stays, and so does what is known of targets.
const LONGEST_RAW: Duration = Duration::from_secs(2 * 3_600);
/// Between two looks at it.
const LOOK: Duration = Duration::from_secs(1);
/// For writing what is known when the process ends: a database that takes it may be slow on a machine with much to do, and one that
/// takes nothing mostly says so at once.
const LAST_CALL: Duration = Duration::from_secs(5);

/// Stands in for the database of a monitor.
#[derive(Clone)]
pub struct Standby {
    monitor: Monitor,
    delivery_client: DeliveryClient,
    /// What was sent before, and could not be written down.
    receipts: Receipts,
}

/// What there is to be logged.
#[derive(Clone, Debug)]
pub enum News {
    Began,
    /// What was read of the database that cannot be written, if not all that is needed.
    Unread(String),
    Sent(Vec<Sent>),
    /// Everything is in the database.
    Ended,
    /// The write-ahead log of the database was damaged when it was opened in the end: what was written last, before all this, is lost.
    LostLog,
    /// The process ends, and the database takes nothing, for this reason: what was found out and decided is lost.
    Lost(String),
}

impl Standby {
    pub fn new(monitor: Monitor, delivery_client: DeliveryClient) -> Self {
        Self { monitor, delivery_client, receipts: Receipts::default() }
    }

    /// One that does not send again what this notifier has sent and could not write down.
    #[must_use]
    pub fn after(self, notifier: &Notifier) -> Self {
        Self { receipts: notifier.receipts(), ..self }
    }

    /// Watches the database until `stop` resolves, and stands in for it while it takes nothing. What is not written by then is written if
    /// the database takes it at once, and lost otherwise.
    pub async fn run(&self, clock: &Clock, tell: impl Fn(News), stop: impl Future<Output = ()>) {
        let worker_health = &self.monitor.worker_health;
        worker_health.attend();
        // What stands in, and whether it knows the states.
        let current: RefCell<Option<(Store, bool)>> = RefCell::new(None);
        let watching = async {
            loop {
                self.until_needed().await;
                worker_health.replace();
                // Whoever decides something right now is waited for: it is to be known in memory, too.
                drop(worker_health.change_place().await);
                tell(News::Began);
                // Without a database in memory there is nobody to stand in.
                match self.begin(clock, &tell).await {
                    Ok((memory, knows_states)) => {
                        current.replace(Some((memory.clone(), knows_states)));
                        worker_health.stand_in_with(memory.clone());
                        let has_lost_log = self.monitor.store.has_lost_log();
                        self.stand_in(&memory, knows_states, clock, &tell).await;
                        current.replace(None);
                        tell(News::Ended);
                        if !has_lost_log && self.monitor.store.has_lost_log() {
                            tell(News::LostLog);
                        }
                    }
                    Err(_) => worker_health.recovered(),
                }
                // What came of it may be waiting to be told.
                self.monitor.stirred.notify_one();
            }
        };
        tokio::select! {
            () = watching => {}
            () = stop => {}
        }
        let Some((memory, knows_states)) = current.take() else { return };
        let writing = async {
            let _alone = worker_health.change_place().await;
            self.monitor.store.write_from(&memory, knows_states, clock.now()).await?;
            worker_health.recovered();
            Ok::<_, StoreFailure>(())
        };
        tell(match timeout(LAST_CALL, writing).await {
            Ok(Ok(())) => News::Ended,
            Ok(Err(failure)) => News::Lost(failure.to_string()),
            Err(_) => News::Lost(format!("no response from the database within {} s", LAST_CALL.as_secs())),
        });
    }

    /// Resolves when nothing could be written for a while, or when somebody's decision was not.
    async fn until_needed(&self) {
        let worker_health = &self.monitor.worker_health;
        let mut since: Option<Instant> = None;
        loop {
            since = worker_health.report().trouble.filter(Trouble::is_refusal).and(since.or_else(|| Some(Instant::now())));
            if worker_health.is_summoned() || since.is_some_and(|since| since.elapsed() >= PATIENCE) {
                return;
            }
            tokio::select! {
                () = sleep(LOOK) => {}
                () = worker_health.summoned() => {}
            }
        }
    }

    /// Says also whether what was known of targets could be read.
    async fn begin(&self, clock: &Clock, tell: &impl Fn(News)) -> Result<(Store, bool), StoreFailure> {
        let memory = Store::in_memory().await?;
        let region = &self.monitor.worker.region;
        let reading = match self.monitor.store.is_open() {
            true => memory.read_from(&self.monitor.store, region).await,
            // Nobody waits for what is known to be closed.
            false => Ok(Reading { knows_states: false, unread: None }),
        };
        let reading = reading.unwrap_or_else(|failure| Reading { knows_states: false, unread: Some(failure) });
        if let Some(failure) = reading.unread {
            tell(News::Unread(failure.to_string()));
        }
        let plan = Arc::clone(&self.monitor.plan().borrow());
        let is_ours = |spec: &&Arc<TargetSpec>| spec.is_probed_from(region);
        let targets: Vec<&TargetSpec> = plan.targets.values().filter(is_ours).map(Arc::as_ref).collect();
        memory.sync_targets(&targets, region, clock.now()).await?;
        Ok((memory, reading.knows_states))
    }

    /// Probes and tells until everything is in the database.
    async fn stand_in(&self, memory: &Store, knows_states: bool, clock: &Clock, tell: &impl Fn(News)) {
        let stirred = Arc::new(Notify::new());
        let worker_health = WorkerHealth::default();
        let worker = Worker { store: memory.clone(), worker_health, stirred: Arc::clone(&stirred), ..self.monitor.worker.clone() };
        let chores = in_memory(&self.monitor.chores, memory, &stirred, clock.now());
        let notifier = Notifier::new(memory.clone(), self.monitor.plan(), self.delivery_client.clone()).after(self.receipts.clone());
        let mut rest = FIRST_REST;
        loop {
            let (ended, _) = watch::channel(false);
            let stopped = || {
                let mut ended = ended.subscribe();
                async move { drop(ended.wait_for(|ended| *ended).await) }
            };
            let telling = keep_passing(
                async |now| {
                    let round = notifier.pass(now).await?;
                    tell(News::Sent(round.sent));
                    let soon = now + LOOK;
                    Ok::<_, sqlx::Error>(Some(round.next.map_or(soon, |next| next.min(soon))))
                },
                &stirred,
                clock,
                stopped(),
            );
            let never = Notify::new();
            let tidying = keep_passing(|now| chores.pass(now), &never, clock, stopped());
            let waiting = async {
                sleep(rest).await;
                while self.prove_usable(clock).await.is_err() {
                    sleep(LOOK).await;
                }
                ended.send_replace(true);
            };
            tokio::join!(waiting, worker.run(clock, stopped()), telling, tidying);
            if self.monitor.store.write_from(memory, knows_states, clock.now()).await.is_ok() && self.hand_over(memory, clock).await {
                return;
            }
            rest = (rest * 2).clamp(PATIENCE, LONGEST_REST);
        }
    }

    /// The targets are known there, and it can be written.
    async fn prove_usable(&self, clock: &Clock) -> Result<(), StoreFailure> {
        self.monitor.attach(clock).await?;
        self.monitor.store.prove_writable(clock.now()).await
    }

    /// From here on, what jobs say and people decide goes to the database again. What came while everything else was written goes there
    /// first. False if the database did not take it.
    async fn hand_over(&self, memory: &Store, clock: &Clock) -> bool {
        let worker_health = &self.monitor.worker_health;
        let _alone = worker_health.change_place().await;
        let is_written = self.monitor.store.write_decisions_from(memory, clock.now()).await.is_ok();
        if is_written {
            worker_health.recovered();
        }
        is_written
    }
}

/// The chores of whoever stands in.
fn in_memory(chores: &Chores, memory: &Store, stirred: &Arc<Notify>, now: Moment) -> Chores {
    let (store, stirred) = (memory.clone(), Arc::clone(stirred));
    Chores { store, stirred, presence: Presence::new(now), longest_raw: LONGEST_RAW, ..chores.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::worker::Plan;
    use std::collections::BTreeMap;

    #[tokio::test]
    async fn results_are_not_kept_in_memory_for_long_and_come_back_with_their_evidence() {
        const HOUR: i64 = 3_600_000;
        let (memory, store) = (Store::in_memory().await.unwrap(), Store::in_memory().await.unwrap());
        let run = async |statement: String| {
            sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&memory.writer).await.unwrap();
        };
        run("INSERT INTO target (name, source, definition, host, every, tags, public, state, availability, surface, since) \
             VALUES ('shop', 'config', x'', 'a:1', 60000, '[]', 0, '{}', 'ok', 'ok', 0)"
            .into())
        .await;
        let hours: Vec<i64> = (90..100).collect();
        for slot in hours.iter().map(|hour| hour * HOUR) {
            run(format!(
                "INSERT INTO result (target, slot, region, attempt, at, verdict, duration, phases, evidence) \
                 VALUES ('shop', {slot}, 'here', 0, {slot}, 'down', 0, '{{}}', 'evidence-{slot}')"
            ))
            .await;
            run(format!("INSERT INTO evidence (id, target, at, body) VALUES ('evidence-{slot}', 'shop', {slot}, x'00')")).await;
        }
        let (_, plan) = watch::channel(Arc::new(Plan { config: Arc::new(Config::default()), targets: BTreeMap::new() }));
        let (now, stirred) = (Moment(99 * HOUR), Arc::new(Notify::new()));
        let presence = Presence::new(now);
        let (name, region) = ("worker".to_owned(), "here".to_owned());
        let longest_raw = Duration::MAX;
        let chores = Chores { store: store.clone(), name, region, plan, presence, longest_raw, stirred: Arc::clone(&stirred) };
        in_memory(&chores, &memory, &stirred, now).pass(now).await.unwrap();
        store.write_from(&memory, true, now).await.unwrap();
        for statement in ["SELECT slot FROM result ORDER BY slot", "SELECT at FROM evidence ORDER BY at"] {
            let kept: Vec<i64> = sqlx::query_scalar(statement).fetch_all(&store.pool).await.unwrap();
            assert_eq!(kept, [97, 98, 99].map(|hour| hour * HOUR), "{statement}");
        }
    }
}
