//! Workers that stall in the middle of a transaction, and what connections agree upon so that nobody waits for them for ever.

use super::fixtures::*;
use super::postgres::{Cluster, beside, half_open};
use crate::frozen::Freezable;
use futures_util::future::join_all;
use libtest_mimic::{Failed, Trial};
use mcproof_watch::config::{ChannelSpec, Config, Route, Secret};
use mcproof_watch::moment::Moment;
use mcproof_watch::state::Verdict;
use mcproof_watch::store::{Lease, Store};
use sqlx::{AnyConnection, Connection as _, Executor as _};
use std::ops::Range;
use std::time::Duration;

/// How far a commit comes in its transaction before it stalls; the last of them are behind its end.
const ROUND_TRIPS: Range<usize> = 0..48;
/// One of so many, so that there are not too many connections. All of them have their turn some day.
const EACH: usize = 6;
/// In the time of the machine: more than what a transaction may stand still.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn trial_of_connections() -> Trial {
    Trial::test("postgres::connections_notice_that_nobody_is_there_any_more", connections_notice)
}

/// The result that opens an incident: it is written once, and told once, wherever the first one who has it stalls.
pub(crate) async fn a_worker_that_stalls_in_its_transaction_holds_nobody_up(address: String) {
    let offset = fastrand::usize(1..=EACH);
    let stalls = std::iter::once(0).chain(ROUND_TRIPS.skip(offset).step_by(EACH)).map(|round_trips| {
        let address = &address;
        async move {
            let address = beside(address, &format!("stalled_{round_trips}")).await;
            stall(&address, round_trips).await
        }
    });
    let half_open = join_all(stalls).await.into_iter().filter(|was_half_open| *was_half_open).count();
    assert!(half_open > 0, "no transaction was half open");
}

/// Whether that left a transaction half open.
async fn stall(address: &str, round_trips: usize) -> bool {
    let (slow, other) = (store_of(address, &[target("one")]).await, Store::open(address).await.unwrap());
    let config = telling();
    // It worked, and its next slot is a minute away; two failures are known: the third is an outage.
    for verdict in [Verdict::Up, Verdict::Down, Verdict::Down] {
        let (leased, now) = next(&slow).await;
        slow.commit(&[finished(&leased, verdict, now)], &config, now).await.unwrap();
    }
    let (first, now) = next(&slow).await;
    // A server can be so quick that nobody waits for it; here its first statement takes its time.
    let mut connection = AnyConnection::connect(address).await.unwrap();
    for statement in [
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END $$",
        "CREATE TRIGGER slow AFTER INSERT ON result FOR EACH STATEMENT EXECUTE FUNCTION slow()",
    ] {
        connection.execute(statement).await.unwrap();
    }
    let late = [finished(&first, Verdict::Down, now)];
    let mut stalled = Freezable::new(slow.commit(&late, &config, now));
    while half_open(address).await == 0 {
        assert!(stalled.polled(1).await.is_none(), "nothing was written");
    }
    let ended = stalled.polled(round_trips).await;
    let was_half_open = half_open(address).await > 0;
    // Somebody else has it when the lease is over, and nobody holds the row any more.
    let now = first.until;
    let began = std::time::Instant::now();
    let second = loop {
        if let Some(lease) = lease(&other, "here", now).await.pop() {
            break Some(lease);
        }
        // What was committed has moved on.
        let moved = rows(address, "SELECT CAST(attempt AS TEXT) FROM schedule").await != [["2"]];
        if moved && half_open(address).await == 0 {
            break None;
        }
        assert!(began.elapsed() < PATIENCE, "a transaction that stalled after {round_trips} round trips is still there");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    if let Some(second) = &second {
        other.commit(&[finished(second, Verdict::Down, now)], &config, now).await.unwrap();
    }
    // The first one wakes, and tries again as workers do.
    let outcome = match ended {
        Some(outcome) => outcome,
        None => stalled.thawed().await,
    };
    match outcome {
        Ok(committed) => assert_eq!(committed.written, usize::from(second.is_none()), "after {round_trips} round trips"),
        Err(_) => assert_eq!(slow.commit(&late, &config, now).await.unwrap().dropped, 1),
    }
    let counts = "SELECT CAST((SELECT count(*) FROM result) AS TEXT), CAST((SELECT count(*) FROM incident) AS TEXT), \
         CAST((SELECT count(*) FROM outbox) AS TEXT), CAST(attempt AS TEXT), CAST(slot AS TEXT) FROM schedule";
    let slot = target("one").grid().next_slot(first.turn.slot).0.to_string();
    let expected: Vec<String> = [4.to_string(), 1.to_string(), 1.to_string(), 0.to_string(), slot].into();
    assert_eq!(rows(address, counts).await, [expected], "after {round_trips} round trips, half open: {was_half_open}");
    was_half_open
}

/// The next turn, when it is due.
async fn next(store: &Store) -> (Lease, Moment) {
    let now = store.next_due("here", START).await.unwrap().unwrap();
    (lease(store, "here", now).await.remove(0), now)
}

/// Somebody is told of everything.
fn telling() -> Config {
    let channel = ChannelSpec::Webhook { url: Secret::new("http://127.0.0.1:9/"), secret: None };
    let route = Route { severities: Vec::new(), tags: Vec::new(), channels: vec!["chat".into()], ..Route::default() };
    Config { channels: [("chat".to_owned(), channel)].into(), routes: vec![route], ..config() }
}

/// A server that nobody tells that a worker has gone finds out, and gives up what it held; and it waits for nobody who says nothing.
fn connections_notice() -> Result<(), Failed> {
    const SETTINGS: [(&str, &str); 4] = [
        ("idle_in_transaction_session_timeout", "5s"),
        ("tcp_keepalives_idle", "10"),
        ("tcp_keepalives_interval", "5"),
        ("tcp_keepalives_count", "3"),
    ];
    let cluster = Cluster::over_tcp();
    let address = cluster.database("noticed");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(&address).await.unwrap();
        // Whoever writes tells what its connection is set to; slowly, so that each has one of its own.
        let settings = SETTINGS.map(|(name, _)| format!("current_setting('{name}')")).join(" || ' ' || ");
        let mut connection = AnyConnection::connect(&address).await.unwrap();
        for statement in [
            "CREATE TABLE told (pid BIGINT, settings TEXT)".to_owned(),
            format!(
                "CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.3); \
                 INSERT INTO told VALUES (pg_backend_pid(), {settings}); RETURN NEW; END $$"
            ),
            "CREATE TRIGGER tell BEFORE INSERT ON chore FOR EACH ROW EXECUTE FUNCTION tell()".to_owned(),
        ] {
            connection.execute(sqlx::AssertSqlSafe(statement)).await.unwrap();
        }
        let names: Vec<String> = (0..6).map(|number| format!("chore-{number}")).collect();
        join_all(names.iter().map(|name| store.take_chore(name, "a", MINUTE, START))).await;
        let told = rows(&address, "SELECT DISTINCT settings FROM told").await;
        assert_eq!(told, [[SETTINGS.map(|(_, value)| value).join(" ")]]);
        let connections = rows(&address, "SELECT CAST(count(DISTINCT pid) AS TEXT) FROM told").await;
        assert!(connections[0][0].parse::<u32>().unwrap() > 3, "{connections:?}");
    });
    Ok(())
}
