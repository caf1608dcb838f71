//! Counts of five minutes, hours and days; what is forgotten; and targets that nobody sees any more.

use super::fixtures::*;
use mcproof_watch::chores::{Chores, Presence};
use mcproof_watch::config::{Config, Retention, Route, TargetSpec};
use mcproof_watch::incident::Severity;
use mcproof_watch::latency::Latency;
use mcproof_watch::moment::Moment;
use mcproof_watch::state::Verdict;
use mcproof_watch::store::{Lease, Store, incidents};
use mcproof_watch::worker::Plan;
use sqlx::{AnyConnection, Connection as _, Executor as _};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};

const HOUR: Duration = Duration::from_secs(3_600);
/// The beginning of a day.
const MIDNIGHT: Moment = Moment(1_800_057_600_000);

/// Probes everything that is due until then, minute by minute.
async fn probe_until(store: &Store, from: Moment, until: Moment, verdict: impl Fn(&Lease) -> Option<Verdict>) {
    let mut now = from;
    while now <= until {
        let leases = lease(store, "here", now).await;
        let leases: Vec<Lease> =
            leases.into_iter().map(|lease| Lease { turn: lease.turn.taken(target(&lease.target).grid(), now), ..lease }).collect();
        let all: Vec<_> = leases.iter().filter_map(|lease| Some(finished(lease, verdict(lease)?, now))).collect();
        store.commit(&all, &config(), now).await.unwrap();
        now = now + Duration::from_secs(30);
    }
}

async fn counts(address: &str) -> Vec<Vec<String>> {
    let statement = "SELECT target, CAST(width / 60000 AS TEXT), CAST((start - 1800057600000) / 60000 AS TEXT), CAST(good AS TEXT), \
         CAST(bad AS TEXT), CAST(inconclusive AS TEXT), CAST(missed AS TEXT) FROM rollup ORDER BY target, width, start";
    rows(address, statement).await
}

fn table(rows: &[[i64; 6]]) -> Vec<Vec<String>> {
    rows.iter().map(|row| std::iter::once("one".to_owned()).chain(row.iter().map(ToString::to_string)).collect()).collect()
}

pub(crate) async fn results_become_counts_and_counting_twice_changes_nothing(address: String) {
    let store = Store::open(&address).await.unwrap();
    sync(&store, &[target("one")], MIDNIGHT).await;
    // The slot that runs at midnight is of the day before. The first five minutes are fine; then one fails each time, one is our own fault, and then nobody is there.
    let minute = |lease: &Lease| lease.turn.slot.since(MIDNIGHT).as_secs() / 60;
    probe_until(&store, MIDNIGHT, MIDNIGHT + MINUTE * 10, |lease| match (minute(lease), lease.turn.attempt) {
        (6, _) => Some(Verdict::Down),
        (7, _) => Some(Verdict::Inconclusive),
        _ => Some(Verdict::Up),
    })
    .await;
    let until = store.roll_up(Moment(0), MIDNIGHT + MINUTE * 10 + Duration::from_secs(40)).await.unwrap();
    assert_eq!(until, MIDNIGHT + MINUTE * 10);
    let expected = table(&[
        [5, -5, 1, 0, 0, 0],
        [5, 0, 5, 0, 0, 0],
        [5, 5, 3, 1, 1, 0],
        [60, -60, 1, 0, 0, 0],
        [60, 0, 8, 1, 1, 0],
        [1440, -1440, 1, 0, 0, 0],
        [1440, 0, 8, 1, 1, 0],
    ]);
    assert_eq!(counts(&address).await, expected);
    store.roll_up(Moment(0), MIDNIGHT + MINUTE * 10 + Duration::from_secs(40)).await.unwrap();
    assert_eq!(counts(&address).await, expected);
    // Ten minutes without anybody: the hour knows what it missed.
    probe_until(&store, MIDNIGHT + MINUTE * 20, MIDNIGHT + MINUTE * 25, |_| Some(Verdict::Up)).await;
    store.roll_up(until, MIDNIGHT + MINUTE * 25 + Duration::from_secs(40)).await.unwrap();
    let hour = counts(&address).await.into_iter().find(|row| row[1] == "60" && row[2] == "0").unwrap();
    let sum: i64 = hour[3..].iter().map(|count| count.parse::<i64>().unwrap()).sum();
    assert_eq!((sum, hour[6].parse::<i64>().unwrap() >= 9), (25, true), "{hour:?}");
    let histogram = rows(&address, "SELECT CAST(length(histogram) AS TEXT) FROM rollup WHERE width = 86400000").await;
    assert!(histogram[0][0].parse::<usize>().unwrap() < 16, "{histogram:?}");
    assert_eq!(Latency::read(&[]).count(), 0);
}

pub(crate) async fn what_is_old_is_forgotten_and_counts_stay_longer(address: String) {
    let store = Store::open(&address).await.unwrap();
    sync(&store, &[target("one")], MIDNIGHT).await;
    probe_until(&store, MIDNIGHT, MIDNIGHT + MINUTE * 5, |_| Some(Verdict::Up)).await;
    store.roll_up(Moment(0), MIDNIGHT + MINUTE * 6).await.unwrap();
    let left = async || {
        let statement = "SELECT CAST(count(*) AS TEXT), (SELECT CAST(count(*) AS TEXT) FROM rollup) FROM result";
        rows(&address, statement).await[0].clone()
    };
    let days = |days: u32| MIDNIGHT + HOUR * 24 * days;
    for (now, expected) in [(days(6), ["6", "6"]), (days(9), ["0", "6"]), (days(15), ["0", "4"]), (days(400), ["0", "2"])] {
        store.retain(&Retention::default(), now).await.unwrap();
        assert_eq!(left().await, expected, "{now}");
    }
}

pub(crate) async fn who_is_not_heard_for_three_intervals_is_blind_unless_the_monitor_was_away(address: String) {
    let store = Store::open(&address).await.unwrap();
    sync(&store, &[target("one"), target("two")], MIDNIGHT).await;
    probe_until(&store, MIDNIGHT, MIDNIGHT + MINUTE * 10, |lease| (lease.target == "one").then_some(Verdict::Up)).await;
    let config: Config = config();
    let blind = async |started: Moment, now: Moment| store.sweep_blind(&config, "here", started, 100, now).await.unwrap();
    let now = MIDNIGHT + MINUTE * 10;
    assert_eq!(blind(now - MINUTE, now).await, 0, "the monitor has just begun");
    assert_eq!(blind(MIDNIGHT, now).await, 1);
    assert_eq!(blind(MIDNIGHT, now).await, 0, "it is known");
    let states = rows(&address, "SELECT name, availability FROM target ORDER BY name").await;
    assert_eq!(states, [["one", "ok"], ["two", "blind"]]);
    // Who is probed every second waits longer than three seconds for the second look at a failure.
    let quick = TargetSpec { every: Duration::from_secs(1), ..target("quick") };
    sync(&store, &[target("one"), quick], now).await;
    assert_eq!(blind(MIDNIGHT, now + Duration::from_secs(10)).await, 0);
    assert_eq!(blind(MIDNIGHT, now + Duration::from_secs(40)).await, 1);
}

/// Each part counts, and all together are one storm.
pub(crate) async fn who_is_not_heard_is_told_in_parts_until_all_are(address: String) {
    let targets: Vec<_> = (0..23).map(|number| target(&format!("t{number:02}"))).collect();
    let store = Store::open(&address).await.unwrap();
    sync(&store, &targets, MIDNIGHT).await;
    let (config, now) = (config(), MIDNIGHT + MINUTE * 10);
    for expected in [10, 10, 3, 0] {
        assert_eq!(store.sweep_blind(&config, "here", MIDNIGHT, 10, now).await.unwrap(), expected);
    }
    let open = "SELECT class || ' ' || CAST(count(*) AS TEXT) FROM incident WHERE resolved IS NULL GROUP BY class ORDER BY class";
    assert_eq!(rows(&address, open).await, [["blind 23"], ["storm 1"]]);
    assert_eq!(rows(&address, "SELECT subject FROM incident WHERE class = 'blind' AND parent IS NULL").await.len(), 0);
}

pub(crate) async fn a_region_that_is_not_heard_while_others_are_is_told_until_it_is(address: String) {
    let shop = |regions: &[&str]| TargetSpec { regions: regions.iter().map(|&name| name.to_owned()).collect(), ..target("shop") };
    let all = shop(&["ap", "eu", "us"]);
    let store = store_of(&address, std::slice::from_ref(&all)).await;
    let route = |severities: &[Severity], channel: &str| Route {
        severities: severities.to_vec(),
        channels: vec![channel.to_owned()],
        ..Route::default()
    };
    let config = Config { routes: vec![route(&[Severity::Page], "pager"), route(&[], "chat")], ..config() };
    let known = |spec: TargetSpec| BTreeMap::from([("shop".to_owned(), Arc::new(spec))]);
    let at = |minute: u32| START + MINUTE * minute;
    let hear = async |regions: &'static [&'static str], minutes: std::ops::Range<u32>| {
        for now in minutes.map(at) {
            for region in regions {
                for lease in lease(&store, region, now).await {
                    let lease = Lease { turn: lease.turn.taken(target("shop").grid(), now), ..lease };
                    commit(&store, &[finished(&lease, Verdict::Up, now)], now).await;
                }
            }
        }
    };
    let targets = known(all);
    let sweep = async |minute: u32| incidents::sweep_regions(&store, &config, &targets, START, at(minute)).await.unwrap();
    let open = || {
        let statement =
            "SELECT subject || ' ' || severity FROM incident WHERE resolved IS NULL AND subject LIKE 'region:%' ORDER BY subject";
        rows(&address, statement)
    };
    hear(&["ap", "eu", "us"], 1..6).await;
    assert!(!sweep(5).await);
    // Two of three are a majority.
    hear(&["ap", "eu"], 6..12).await;
    assert!(sweep(11).await);
    assert!(!sweep(11).await, "it is known");
    assert_eq!(open().await, [["region:us notify"]]);
    hear(&["ap"], 12..18).await;
    assert!(sweep(17).await);
    assert_eq!(open().await, [["region:eu page"], ["region:us page"]]);
    // What is not heard from anywhere is no end of it.
    assert_eq!(store.sweep_blind(&config, "here", START, 100, at(24)).await.unwrap(), 1);
    assert!(!sweep(24).await);
    assert_eq!(open().await.len(), 2);
    hear(&["eu"], 24..25).await;
    assert!(sweep(24).await);
    assert_eq!(open().await, [["region:us page"]]);
    let fewer = shop(&["ap", "eu"]);
    sync(&store, std::slice::from_ref(&fewer), at(25)).await;
    assert!(incidents::sweep_regions(&store, &config, &known(fewer), START, at(25)).await.unwrap());
    let told = "SELECT outbox.kind || ' ' || incident.subject || ' ' || outbox.route FROM outbox \
         JOIN incident ON incident.id = outbox.incident WHERE incident.subject LIKE 'region:%' ORDER BY outbox.id";
    let expected = [
        r#"trigger region:us ["chat"]"#,
        r#"trigger region:eu ["pager"]"#,
        r#"trigger region:us ["pager"]"#,
        r#"resolve region:eu ["pager"]"#,
        r#"resolve region:us ["chat"]"#,
    ];
    assert_eq!(rows(&address, told).await, expected.map(|told| [told]));
    let reasons = "SELECT text FROM incident_event WHERE kind = 'resolved' AND text LIKE '%from%' ORDER BY at";
    assert_eq!(rows(&address, reasons).await, [["results arrive again from eu"], ["nothing is probed from us any more"]]);
}

pub(crate) async fn who_waited_for_the_database_calls_nobody_blind(address: String) {
    let store = Store::open(&address).await.unwrap();
    let quick = TargetSpec { every: Duration::from_secs(1), ..target("quick") };
    sync(&store, std::slice::from_ref(&quick), START).await;
    let plan = Plan { config: Arc::new(config()), targets: BTreeMap::from([("quick".to_owned(), Arc::new(quick))]) };
    let (_, plan) = watch::channel(Arc::new(plan));
    let (presence, stirred) = (Presence::new(START), Arc::new(Notify::new()));
    let (name, region, longest_raw) = ("worker".to_owned(), "here".to_owned(), Duration::MAX);
    let chores = Chores { store, name, region, plan, presence, longest_raw, stirred };
    let blind = async |seconds: u64| {
        chores.pass(START + Duration::from_secs(seconds)).await.unwrap();
        rows(&address, "SELECT subject FROM incident WHERE class = 'blind'").await.len()
    };
    for seconds in [0, 10, 20] {
        assert_eq!(blind(seconds).await, 0);
    }
    let mut other = AnyConnection::connect(&address).await.unwrap();
    let lock: &[&str] = if address.starts_with("sqlite") { &["BEGIN IMMEDIATE"] } else { &["BEGIN", "LOCK TABLE chore IN EXCLUSIVE MODE"] };
    for statement in lock {
        other.execute(*statement).await.unwrap();
    }
    let unlocking = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        other.execute("ROLLBACK").await.unwrap();
    };
    let (found, ()) = tokio::join!(blind(30), unlocking);
    assert_eq!(found, 0, "nobody could write");
    assert_eq!((blind(40).await, blind(50).await, blind(60).await), (0, 0, 1));
}

pub(crate) async fn a_chore_is_done_by_one_of_many(address: String) {
    let store = Store::open(&address).await.unwrap();
    let take = async |who: &str, now: Moment| store.take_chore("count", who, MINUTE, now).await.unwrap();
    assert_eq!(take("a", START).await, Some(Moment(0)));
    assert_eq!(take("b", START).await, None);
    store.end_chore("count", "a", START).await.unwrap();
    assert_eq!(take("b", START + Duration::from_secs(59)).await, None);
    assert_eq!(take("b", START + MINUTE).await, Some(START));
    // It dies; somebody takes over.
    assert_eq!(take("a", START + MINUTE * 2).await, None);
    assert_eq!(take("a", START + MINUTE * 4).await, Some(START));
}
