//! The store, on SQLite and on a real Postgres: the same claims for both.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod postgres;

use libtest_mimic::{Arguments, Trial};
use mcproof_watch::config::{Config, Login, Retention, TargetKind, TargetSpec};
use mcproof_watch::moment::Moment;
use mcproof_watch::state::{Observation, Policy, Verdict};
use mcproof_watch::store::{Committed, Fence, Finished, Lease, Store, sqlite};
use postgres::{Cluster, Durability};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

type Claim = fn(String) -> Pin<Box<dyn Future<Output = ()>>>;

macro_rules! claims {
    ($($name:ident),* $(,)?) => {
        &[$((stringify!($name), |address| Box::pin($name(address)))),*]
    };
}

const CLAIMS: &[(&str, Claim)] = claims![
    a_turn_is_leased_to_one_worker_only,
    a_lease_that_ended_is_taken_over_and_its_result_is_dropped,
    without_the_fence_a_late_result_is_taken,
    leases_that_are_given_back_are_taken_again,
    a_result_is_written_once_and_its_target_waits_for_the_next_slot,
    a_failure_is_looked_at_again_and_so_are_the_neighbours,
    a_reload_keeps_turns_and_changes_what_changed,
    what_was_never_committed_is_probed_again_and_what_has_passed_is_missed,
    contracts_and_evidence_come_back_as_they_were,
    another_region_confirms,
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let cluster = (!arguments.list).then(|| Arc::new(Cluster::start(Durability::None)));
    let trials = CLAIMS.iter().flat_map(|(name, claim)| {
        let cluster = cluster.clone();
        let on_sqlite = Trial::test(format!("sqlite::{name}"), move || {
            let folder = tempfile::tempdir().unwrap();
            run(*claim, sqlite(&folder.path().join("watch.db")));
            Ok(())
        });
        let on_postgres = Trial::test(format!("postgres::{name}"), move || {
            run(*claim, cluster.unwrap().database(name));
            Ok(())
        });
        [on_sqlite, on_postgres]
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn run(claim: Claim, address: String) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(claim(address));
}

const START: Moment = Moment(1_800_000_000_000);
const MINUTE: Duration = Duration::from_secs(60);

fn target(name: &str) -> TargetSpec {
    TargetSpec {
        name: name.into(),
        kind: TargetKind::Monitor("http://127.0.0.1:9/healthz".into()),
        every: MINUTE,
        timeout: Duration::from_secs(5),
        regions: Vec::new(),
        tags: vec!["team-a".into()],
        lock: None,
        suite: None,
        objective: None,
        keep: false,
        public: false,
    }
}

fn config() -> Config {
    Config {
        database: String::new(),
        listen: None,
        public_url: None,
        region: "here".into(),
        targets: BTreeMap::new(),
        channels: BTreeMap::new(),
        routes: Vec::new(),
        maintenance: Vec::new(),
        heartbeat: None,
        canaries: Vec::new(),
        retention: Retention::default(),
        allow_private: false,
        seal: None,
        login: Login::default(),
        otlp: None,
    }
}

async fn store_of(address: &str, targets: &[TargetSpec]) -> Store {
    let store = Store::open(address).await.unwrap();
    sync(&store, targets, START).await;
    store
}

async fn sync(store: &Store, targets: &[TargetSpec], now: Moment) -> (usize, usize, usize) {
    let synced = store.sync_targets(&targets.iter().collect::<Vec<_>>(), "here", now).await.unwrap();
    (synced.added, synced.changed, synced.removed)
}

async fn lease(store: &Store, region: &str, now: Moment) -> Vec<Lease> {
    let mut leases = store.lease(region, "worker", now, 50).await.unwrap();
    leases.sort_by(|one, two| one.target.cmp(&two.target));
    leases
}

fn finished(lease: &Lease, verdict: Verdict, at: Moment) -> Finished {
    let observation = Observation {
        target: lease.target.clone(),
        slot: lease.turn.slot,
        region: lease.region.clone(),
        attempt: lease.turn.attempt,
        at,
        verdict,
        reason: String::new(),
        layer: None,
        message: String::new(),
        hint: None,
        duration: Duration::from_millis(12),
        phases: Vec::new(),
        contract: None,
        certificate_ends: None,
        process: None,
    };
    let policy = Policy { every: MINUTE, ..Policy::default() };
    Finished { lease: lease.clone(), policy, observation, evidence: None, contract: None }
}

async fn commit(store: &Store, all: &[Finished], now: Moment) -> (usize, usize) {
    let Committed { written, dropped, .. } = store.commit(all, &config(), now).await.unwrap();
    (written, dropped)
}

async fn a_turn_is_leased_to_one_worker_only(address: String) {
    let targets: Vec<_> = (0..120).map(|number| target(&format!("t{number}"))).collect();
    let store = store_of(&address, &targets).await;
    let now = START + MINUTE;
    let three = [0, 1, 2].map(|_| store.lease("here", "worker", now, 50));
    let leased: Vec<Lease> = futures_util::future::try_join_all(three).await.unwrap().into_iter().flatten().collect();
    let names: BTreeSet<&str> = leased.iter().map(|lease| lease.target.as_str()).collect();
    assert_eq!(names.len(), leased.len(), "somebody was leased twice");
    let rest = store.lease("here", "worker", now, 500).await.unwrap();
    assert_eq!((names.len() + rest.len(), lease(&store, "here", now).await.len()), (120, 0));
    assert!(store.lease("elsewhere", "worker", now, 50).await.unwrap().is_empty());
}

async fn a_lease_that_ended_is_taken_over_and_its_result_is_dropped(address: String) {
    let store = store_of(&address, &[target("one")]).await;
    let (first, second) = taken_over(&store).await;
    assert_eq!(commit(&store, &[finished(&second, Verdict::Up, second.until)], second.until).await, (1, 0));
    assert_eq!(commit(&store, &[finished(&first, Verdict::Down, first.until)], second.until).await, (0, 1));
}

async fn without_the_fence_a_late_result_is_taken(address: String) {
    let store = store_of(&address, &[target("one")]).await.fenced(Fence::Down);
    let (first, second) = taken_over(&store).await;
    assert_eq!(commit(&store, &[finished(&first, Verdict::Down, first.until)], second.until).await, (1, 0));
}

/// The same turn twice: of who had it first, and of who has it now.
async fn taken_over(store: &Store) -> (Lease, Lease) {
    let first = lease(store, "here", START + MINUTE).await.remove(0);
    assert_eq!(store.next_due("here", START + MINUTE).await.unwrap(), Some(first.until));
    let second = lease(store, "here", first.until).await.remove(0);
    assert_eq!((second.turn, second.epoch), (first.turn, first.epoch + 1));
    (first, second)
}

async fn leases_that_are_given_back_are_taken_again(address: String) {
    let store = store_of(&address, &[target("one"), target("two")]).await;
    let now = START + MINUTE;
    let leases = lease(&store, "here", now).await;
    store.release(&leases[..1]).await.unwrap();
    let again = lease(&store, "here", now).await;
    assert_eq!((again.len(), &again[0].target), (1, &leases[0].target));
    assert_eq!(commit(&store, &[finished(&leases[0], Verdict::Up, now)], now).await, (0, 1));
}

async fn a_result_is_written_once_and_its_target_waits_for_the_next_slot(address: String) {
    let store = store_of(&address, &[target("one"), target("two")]).await;
    let now = START + MINUTE;
    let leases = lease(&store, "here", now).await;
    let all: Vec<Finished> = leases.iter().map(|lease| finished(lease, Verdict::Up, now)).collect();
    assert_eq!(commit(&store, &all, now).await, (2, 0));
    assert!(lease(&store, "here", now).await.is_empty());
    let next = lease(&store, "here", now + MINUTE).await;
    for (before, after) in leases.iter().zip(&next) {
        assert_eq!((after.turn.slot, after.turn.attempt), (before.turn.slot + MINUTE, 0));
    }
    // The lease of the slot before is over, whatever it says.
    assert_eq!(commit(&store, &all, now + MINUTE).await, (0, 2));
}

async fn a_failure_is_looked_at_again_and_so_are_the_neighbours(address: String) {
    let elsewhere = TargetSpec { kind: TargetKind::Monitor("http://127.0.0.2:9/".into()), ..target("elsewhere") };
    let store = store_of(&address, &[target("one"), target("two"), elsewhere]).await;
    let now = START + MINUTE;
    let all: Vec<Finished> = lease(&store, "here", now).await.iter().map(|lease| finished(lease, Verdict::Up, START)).collect();
    commit(&store, &all, now).await;
    // Whose slot comes first is up to their names.
    let mut slots: Vec<(Moment, String)> = all
        .iter()
        .filter(|one| one.lease.target != "elsewhere")
        .map(|one| (one.lease.turn.slot + MINUTE, one.lease.target.clone()))
        .collect();
    slots.sort();
    let [(now, failing), (_, neighbour)] = <[_; 2]>::try_from(slots).unwrap();
    let due = lease(&store, "here", now).await;
    let failing = due.iter().find(|lease| lease.target == failing).unwrap();
    assert_eq!(commit(&store, &[finished(failing, Verdict::Down, now)], now).await, (1, 0));
    let asked = lease(&store, "here", now).await;
    let asked: Vec<(&str, u32)> = asked.iter().map(|lease| (lease.target.as_str(), lease.turn.attempt)).collect();
    assert!(asked.contains(&(neighbour.as_str(), 9)), "{asked:?}");
    let confirming = lease(&store, "here", now + Duration::from_secs(5)).await.into_iter().find(|lease| lease.target == failing.target);
    assert_eq!(confirming.map(|lease| (lease.turn.slot, lease.turn.attempt)), Some((failing.turn.slot, 1)));
}

async fn a_reload_keeps_turns_and_changes_what_changed(address: String) {
    let store = store_of(&address, &[target("one"), target("two"), target("three")]).await;
    let quick = TargetSpec { every: Duration::from_secs(10), ..target("two") };
    let now = START + Duration::from_millis(1);
    assert_eq!(sync(&store, &[target("one"), quick.clone()], now).await, (0, 1, 1));
    assert_eq!(sync(&store, &[target("one"), quick.clone()], now).await, (0, 0, 0));
    let now = now + Duration::from_secs(10);
    let due = lease(&store, "here", now).await;
    let two = due.iter().find(|lease| lease.target == "two").unwrap();
    assert_eq!(two.turn.slot, quick.grid().slot_at_or_before(now));
    assert!(due.iter().all(|lease| lease.target != "three"));
    // It is probed while its interval changes: what follows is on the new grid, and its result counts.
    assert_eq!(sync(&store, &[target("one"), target("two"), target("three")], now).await, (1, 1, 0));
    assert_eq!(commit(&store, &[finished(two, Verdict::Up, now)], now).await, (1, 0));
    let next = lease(&store, "here", now + MINUTE * 2).await.into_iter().find(|lease| lease.target == "two").unwrap();
    assert_eq!(next.turn.slot, target("two").grid().next_slot(two.turn.slot));
}

async fn what_was_never_committed_is_probed_again_and_what_has_passed_is_missed(address: String) {
    let store = store_of(&address, &[target("one")]).await;
    let first = lease(&store, "here", START + MINUTE).await.remove(0);
    if address.starts_with("sqlite") {
        store.free_leases().await.unwrap();
        let again = lease(&store, "here", START + MINUTE).await.remove(0);
        assert_eq!(again.turn, first.turn);
    }
    let late = START + MINUTE * 5;
    let after = lease(&store, "here", late).await.remove(0);
    let taken = after.turn.taken(target("one").grid(), late);
    assert_eq!(taken.slot, target("one").grid().slot_at_or_before(late));
    let after = Lease { turn: taken, ..after };
    assert_eq!(commit(&store, &[finished(&after, Verdict::Up, late)], late).await, (1, 0));
    assert_eq!(store.next_due("here", late).await.unwrap(), Some(taken.slot + MINUTE));
}

async fn contracts_and_evidence_come_back_as_they_were(address: String) {
    use mcproof_record::{Contract, ContractHashes, ProbeReport, Transcript};
    use mcproof_watch::store::{ProbeEvidence, SeenContract, evidence_id};
    let store = store_of(&address, &[target("one")]).await;
    let now = START + MINUTE;
    let lease = lease(&store, "here", now).await.remove(0);
    let contract = Contract {
        hashes: ContractHashes { tools: "t".into(), full: "f".into() },
        instructions: Some("be kind".into()),
        ..Contract::default()
    };
    let evidence = ProbeEvidence { report: ProbeReport::new("one"), transcript: Transcript::default() };
    let mut one = finished(&lease, Verdict::Up, now);
    one.observation.contract = Some("f".into());
    let one = Finished { evidence: Some(evidence.packed()), contract: Some(SeenContract::new(&contract)), ..one };
    commit(&store, std::slice::from_ref(&one), now).await;
    assert_eq!(store.contract("one", "f").await.unwrap(), Some(contract));
    assert_eq!(store.contract("one", "g").await.unwrap(), None);
    let back = store.evidence(&evidence_id(&one.observation)).await.unwrap().unwrap();
    assert_eq!((back.report, back.transcript), (evidence.report, evidence.transcript));
}

async fn another_region_confirms(address: String) {
    let both = TargetSpec { regions: vec!["here".into(), "there".into()], ..target("one") };
    let store = store_of(&address, &[both]).await;
    let now = target("one").grid().slot_at_or_after(START);
    let here = lease(&store, "here", now).await.remove(0);
    let there = lease(&store, "there", now).await.remove(0);
    commit(&store, &[finished(&there, Verdict::Up, now)], now).await;
    let policy = Policy { every: MINUTE, regions: vec!["here".into(), "there".into()], ..Policy::default() };
    commit(&store, &[Finished { policy, ..finished(&here, Verdict::Down, now) }], now).await;
    let confirming = lease(&store, "there", now + Duration::from_secs(5)).await.remove(0);
    assert_eq!((confirming.turn.slot, confirming.turn.attempt), (here.turn.slot, 1));
    assert!(lease(&store, "here", now + Duration::from_secs(5)).await.is_empty());
}
