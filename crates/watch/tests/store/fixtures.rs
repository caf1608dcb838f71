//! What all tests of the store start from.

use mcproof_analysis::oddities::Oddities;
use mcproof_client::EraEvidence;
use mcproof_protocol::{EraChoice, Transport};
use mcproof_record::Place;
use mcproof_suite::plan::{Binding, Reach, Server};
use mcproof_watch::config::{Config, Dependencies, TargetKind, TargetSpec};
use mcproof_watch::moment::Moment;
use mcproof_watch::monitor;
use mcproof_watch::state::{Observation, Policy, Thresholds, Verdict};
use mcproof_watch::store::{Committed, Finished, Lease, Store};
use sqlx::Row as _;
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) const START: Moment = Moment(1_800_000_000_000);
/// When everything that was made known at `START` is due for the first time, however many there are.
pub(crate) const FIRST: Moment = Moment(START.0 + 500);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

pub(crate) fn target(name: &str) -> TargetSpec {
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
        oddities: Oddities::Warn,
        public: false,
        thresholds: Thresholds::default(),
        depends_on: Dependencies::default(),
    }
}

pub(crate) fn config() -> Config {
    Config { region: "here".into(), ..Config::default() }
}

pub(crate) async fn store_of(address: &str, targets: &[TargetSpec]) -> Store {
    let store = Store::open(address).await.unwrap();
    sync(&store, targets, START).await;
    store
}

pub(crate) async fn sync(store: &Store, targets: &[TargetSpec], now: Moment) -> (usize, usize, usize) {
    let synced = store.sync_targets(&targets.iter().collect::<Vec<_>>(), "here", now).await.unwrap();
    (synced.added, synced.changed, synced.removed)
}

pub(crate) async fn lease(store: &Store, region: &str, now: Moment) -> Vec<Lease> {
    let mut leases = store.lease(region, "worker", now, 50).await.unwrap();
    leases.sort_by(|one, two| one.target.cmp(&two.target));
    leases
}

pub(crate) fn finished(lease: &Lease, verdict: Verdict, at: Moment) -> Finished {
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
        era_evidence: EraEvidence::Shown,
        certificate_ends: None,
        process: None,
    };
    let policy = Policy { every: MINUTE, ..Policy::default() };
    Finished { lease: lease.clone(), policy, observation, evidence: None, contracts: Vec::new() }
}

pub(crate) async fn commit(store: &Store, all: &[Finished], now: Moment) -> (usize, usize) {
    let Committed { written, dropped, .. } = store.commit(all, &config(), now).await.unwrap();
    (written, dropped)
}

/// How a test reaches the world.
pub(crate) fn reach(name: &str) -> monitor::Reach {
    monitor::Reach {
        network: mcproof_client::Network::default(),
        guardian: mcproof_client::Guardian::default(),
        own_binary: None,
        variables: BTreeMap::new(),
        name: name.into(),
    }
}

/// A server over Streamable HTTP that somebody else runs.
pub(crate) fn over_http(name: &str, url: &str) -> TargetSpec {
    let binding = Binding {
        transport: Transport::Http,
        place: place(),
        launch: None,
        url: Some(url.into()),
        headers: Vec::new(),
        port_from: None,
        reach: Reach::default(),
    };
    server(name, binding)
}

pub(crate) fn server(name: &str, binding: Binding) -> TargetSpec {
    let server = Server { name: name.into(), place: place(), bindings: vec![binding], era: EraChoice::Auto, protocol_version: None };
    TargetSpec { kind: TargetKind::Server(Box::new(server)), ..target(name) }
}

/// What a statement finds, all of it as text.
pub(crate) async fn rows(address: &str, statement: &'static str) -> Vec<Vec<String>> {
    sqlx::any::install_default_drivers();
    let pool = sqlx::any::AnyPoolOptions::new().max_connections(1).connect(address).await.unwrap();
    let rows = sqlx::query(statement).fetch_all(&pool).await.unwrap();
    let text = |row: &sqlx::any::AnyRow| (0..row.len()).map(|column| row.get::<Option<String>, _>(column).unwrap_or_default()).collect();
    let rows = rows.iter().map(text).collect();
    pool.close().await;
    rows
}

/// Nobody looks for it.
pub(crate) fn place() -> Place {
    Place { file: "watch.yaml".into(), line: 1, column: 1, length: 1, text: String::new() }
}
