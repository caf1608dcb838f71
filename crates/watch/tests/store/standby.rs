//! A database that takes nothing for a while: people are told all the same, and everything is in it afterwards.

use super::fixtures::*;
use super::probing::small_server;
use crate::receiver::Receiver;
use mcproof_client::Network;
use mcproof_watch::channel::DeliveryClient;
use mcproof_watch::clock::Clock;
use mcproof_watch::config::{ChannelSpec, Config, Route, Secret, TargetKind, TargetSpec};
use mcproof_watch::monitor::{Monitor, Role, keep_passing};
use mcproof_watch::notifier::Notifier;
use mcproof_watch::push::{Expectation, PushSchedule};
use mcproof_watch::standby::{News, Standby};
use mcproof_watch::store::Store;
use mcproof_watch::web;
use sqlx::{AnyConnection, Connection as _, Executor as _};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;

pub(crate) async fn an_outage_is_told_while_the_database_takes_nothing(address: String) {
    #[expect(clippy::disallowed_methods, reason = "whoever stands in does so in real time")]
    let clock = Clock::of_machine(SystemTime::now);
    let (is_well, chat) = (Arc::new(AtomicBool::new(true)), Receiver::http().await);
    let target = TargetSpec { every: Duration::from_secs(1), ..over_http("small", &small_server(Arc::clone(&is_well)).await) };
    let channel = ChannelSpec::Webhook { url: Secret::new(chat.url("/")), secret: None };
    let route = Route { channels: vec!["chat".into()], ..Route::default() };
    let config = Config {
        targets: [("small".to_owned(), target)].into(),
        channels: [("chat".to_owned(), channel)].into(),
        routes: vec![route],
        ..config()
    };
    let store = Store::open(&address).await.unwrap();
    clock.follow(&store).await.unwrap();
    let monitor = Monitor::over(store, config, reach("worker"), clock.now()).await.unwrap();
    let delivery_client = DeliveryClient::new(Network::default());
    let notifier = Notifier::new(monitor.store.clone(), monitor.plan(), delivery_client.clone());
    let standby = Standby::new(monitor.clone(), delivery_client);
    let has_ended = Cell::new(false);
    let tell = |news| has_ended.set(has_ended.get() || matches!(news, News::Ended));
    let telling = keep_passing(async |now| notifier.pass(now).await.map(|round| round.next), &monitor.stirred, &clock, pending());
    let living = async { tokio::join!(monitor.run(Role::Serve, &clock, pending()), standby.run(&clock, tell, pending()), telling) };
    let story = async {
        while rows(&address, "SELECT target FROM result").await.is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        is_well.store(false, Ordering::Relaxed);
        refuse(&address).await;
        heard(&chat, 1).await;
        assert!(!has_ended.get());
        assert_eq!(rows(&address, "SELECT id FROM incident").await.len(), 0);
        take(&address).await;
        while !has_ended.get() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let incidents = rows(&address, "SELECT class, COALESCE(CAST(resolved AS TEXT), 'open') FROM incident").await;
        assert_eq!(incidents, [["availability", "open"]]);
        is_well.store(true, Ordering::Relaxed);
        heard(&chat, 2).await;
        let told: Vec<_> = chat.heard().iter().map(|heard| heard.json()).collect();
        assert_eq!([&told[0]["kind"], &told[1]["kind"]], ["trigger", "resolve"]);
        assert_eq!(told[0]["incident"], told[1]["incident"]);
    };
    tokio::select! {
        () = story => {}
        _ = living => {}
    }
}

/// A monitor that cannot open its database at the start probes and tells; once it can, what it found out is there.
pub(crate) async fn a_monitor_that_starts_without_its_database_tells_and_stores_it_later(address: String) {
    #[expect(clippy::disallowed_methods, reason = "whoever stands in does so in real time")]
    let clock = Clock::of_machine(SystemTime::now);
    let (is_well, chat) = (Arc::new(AtomicBool::new(false)), Receiver::http().await);
    let target = TargetSpec { every: Duration::from_secs(1), ..over_http("small", &small_server(Arc::clone(&is_well)).await) };
    let channel = ChannelSpec::Webhook { url: Secret::new(chat.url("/")), secret: None };
    let config = Config {
        database: address.clone(),
        targets: [("small".to_owned(), target)].into(),
        channels: [("chat".to_owned(), channel)].into(),
        routes: vec![Route { channels: vec!["chat".into()], ..Route::default() }],
        ..config()
    };
    // The tables are there, and nobody may look which they are.
    drop(Store::open(&address).await.unwrap());
    let mut locked = AnyConnection::connect(&address).await.unwrap();
    locked.execute(if address.starts_with("sqlite") { "BEGIN IMMEDIATE" } else { "SELECT pg_advisory_lock(7130)" }).await.unwrap();
    let (monitor, failure) = Monitor::open_or_stand_by(config, reach("worker"), &clock).await.unwrap();
    assert!(failure.unwrap().to_string().contains("locked"));
    let delivery_client = DeliveryClient::new(Network::default());
    let notifier = Notifier::new(monitor.store.clone(), monitor.plan(), delivery_client.clone());
    let standby = Standby::new(monitor.clone(), delivery_client);
    let has_ended = Cell::new(false);
    let tell = |news| has_ended.set(has_ended.get() || matches!(news, News::Ended));
    let telling = keep_passing(async |now| notifier.pass(now).await.map(|round| round.next), &monitor.stirred, &clock, pending());
    let living = async { tokio::join!(monitor.run(Role::Serve, &clock, pending()), standby.run(&clock, tell, pending()), telling) };
    let story = async {
        heard(&chat, 1).await;
        assert!(!has_ended.get());
        locked.close().await.unwrap();
        while !has_ended.get() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let incidents = rows(&address, "SELECT class, COALESCE(CAST(resolved AS TEXT), 'open') FROM incident").await;
        assert_eq!(incidents, [["availability", "open"]]);
        is_well.store(true, Ordering::Relaxed);
        heard(&chat, 2).await;
        let told: Vec<_> = chat.heard().iter().map(|heard| heard.json()).collect();
        assert_eq!([&told[0]["kind"], &told[1]["kind"]], ["trigger", "resolve"]);
        assert_eq!(told[0]["incident"], told[1]["incident"]);
    };
    tokio::select! {
        () = story => {}
        _ = living => {}
    }
}

/// Whoever looks at the dashboard, the status page or the metrics sees what is known, not what could be written last; and a job that
/// reports in is not missed because its report could not be written.
pub(crate) async fn what_is_known_in_memory_is_shown_and_jobs_report_there(address: String) {
    #[expect(clippy::disallowed_methods, reason = "whoever stands in does so in real time")]
    let clock = Clock::of_machine(SystemTime::now);
    let (is_well, chat) = (Arc::new(AtomicBool::new(true)), Receiver::http().await);
    let small = over_http("small", &small_server(Arc::clone(&is_well)).await);
    let small = TargetSpec { every: Duration::from_secs(1), public: true, ..small };
    let expectation = Expectation { rhythm: PushSchedule::Every(MINUTE * 60), grace: MINUTE, lasts: None };
    let kind = TargetKind::Push { token: Secret::new("the-token-of-the-backup"), expectation };
    let job = TargetSpec { kind, every: Duration::from_secs(1), ..target("backup") };
    let channel = ChannelSpec::Webhook { url: Secret::new(chat.url("/")), secret: None };
    let config = Config {
        targets: [("small".to_owned(), small), ("backup".to_owned(), job)].into(),
        channels: [("chat".to_owned(), channel)].into(),
        routes: vec![Route { channels: vec!["chat".into()], ..Route::default() }],
        ..config()
    };
    let store = Store::open(&address).await.unwrap();
    clock.follow(&store).await.unwrap();
    let monitor = Monitor::over(store, config, reach("worker"), clock.now()).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let (plan, of_web) = (monitor.plan(), clock.clone());
    let current = Arc::new(move || Arc::clone(&plan.borrow().config));
    let mut state = web::State::new(monitor.store.clone(), current, move || of_web.now(), broadcast::channel(16).0);
    state.worker_health = monitor.worker_health.clone();
    let standby = Standby::new(monitor.clone(), DeliveryClient::new(Network::default()));
    let has_ended = Cell::new(false);
    let tell = |news| has_ended.set(has_ended.get() || matches!(news, News::Ended));
    let living = async {
        tokio::join!(
            monitor.run(Role::Serve, &clock, pending()),
            standby.run(&clock, tell, pending()),
            web::serve(listener, state, pending())
        )
    };
    let succeeded = || rows(&address, "SELECT CAST(succeeded AS TEXT) FROM push");
    let story = async {
        let until = async |path: &str, part: &str| {
            while !get(at, path).await.contains(part) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        until("/status", "All systems operational.").await;
        assert!(get(at, "/push/the-token-of-the-backup").await.starts_with("HTTP/1.1 200"));
        let before = succeeded().await;
        is_well.store(false, Ordering::Relaxed);
        refuse(&address).await;
        heard(&chat, 1).await;
        for (path, part) in [
            ("/status", "1 of 1 target down."),
            ("/status/small", "It is down."),
            ("/badge/small.svg", "small: down"),
            ("/metrics", "mcproof_probe_success{target=\"small\"} 0"),
            ("/metrics", "mcproof_incidents_open{class=\"availability\",severity=\"page\"} 1"),
            ("/api/targets/small", "\"down\""),
            ("/", "1 of 2 targets down"),
            ("/", "Results cannot be written"),
            ("/healthz", "HTTP/1.1 503"),
        ] {
            let page = get(at, path).await;
            assert!(page.contains(part), "{path}: {part} is not in\n{page}");
        }
        let told = chat.heard()[0].json();
        let incident = get(at, &format!("/incidents/{}", told["incident"].as_str().unwrap())).await;
        assert!(incident.starts_with("HTTP/1.1 200") && incident.contains("small is down"), "{incident}");
        assert!(get(at, "/push/the-token-of-the-backup").await.starts_with("HTTP/1.1 200"));
        assert_eq!(succeeded().await, before, "it is kept in memory");
        take(&address).await;
        while !has_ended.get() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_ne!(succeeded().await, before);
        is_well.store(true, Ordering::Relaxed);
        until("/status", "All systems operational.").await;
        until("/healthz", "HTTP/1.1 200").await;
    };
    tokio::select! {
        () = story => {}
        _ = living => {}
    }
}

/// The whole response.
async fn get(at: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(at).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

/// Nothing could be read of what was told before: it is told anew, and each of the two has its end.
pub(crate) async fn what_an_unread_standby_tells_anew_goes_on(address: String) {
    #[expect(clippy::disallowed_methods, reason = "whoever stands in does so in real time")]
    let clock = Clock::of_machine(SystemTime::now);
    let (is_well, chat) = (Arc::new(AtomicBool::new(true)), Receiver::http().await);
    let target = TargetSpec { every: Duration::from_secs(1), ..over_http("small", &small_server(Arc::clone(&is_well)).await) };
    let channel = ChannelSpec::Webhook { url: Secret::new(chat.url("/")), secret: None };
    let config = Config {
        targets: [("small".to_owned(), target)].into(),
        channels: [("chat".to_owned(), channel)].into(),
        routes: vec![Route { channels: vec!["chat".into()], ..Route::default() }],
        ..config()
    };
    let store = Store::open(&address).await.unwrap();
    clock.follow(&store).await.unwrap();
    let monitor = Monitor::over(store, config, reach("worker"), clock.now()).await.unwrap();
    let delivery_client = DeliveryClient::new(Network::default());
    let notifier = Notifier::new(monitor.store.clone(), monitor.plan(), delivery_client.clone());
    let standby = Standby::new(monitor.clone(), delivery_client);
    let is_unread = Cell::new(false);
    let tell = |news| is_unread.set(is_unread.get() || matches!(news, News::Unread(_)));
    // It looks when it is told to, and never by itself.
    let telling = keep_passing(async |now| notifier.pass(now).await.map(|round| round.next), &monitor.stirred, &clock, pending());
    let living = async { tokio::join!(monitor.run(Role::Serve, &clock, pending()), standby.run(&clock, tell, pending()), telling) };
    let story = async {
        while rows(&address, "SELECT target FROM result").await.is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        is_well.store(false, Ordering::Relaxed);
        heard(&chat, 1).await;
        refuse(&address).await;
        run(&address, &["ALTER TABLE target RENAME TO hidden"]).await;
        heard(&chat, 2).await;
        assert!(is_unread.get());
        run(&address, &["ALTER TABLE hidden RENAME TO target"]).await;
        take(&address).await;
        // Before anything else happens that could stir somebody.
        heard(&chat, 3).await;
        is_well.store(true, Ordering::Relaxed);
        heard(&chat, 4).await;
        let told: Vec<_> = chat.heard().iter().map(|heard| heard.json()).collect();
        assert_eq!([0, 1, 2, 3].map(|at| told[at]["kind"].clone()), ["trigger", "trigger", "resolve", "resolve"]);
        assert_eq!((&told[2]["incident"], &told[3]["incident"]), (&told[0]["incident"], &told[1]["incident"]));
        assert_ne!(told[0]["incident"], told[1]["incident"]);
    };
    tokio::select! {
        () = story => {}
        _ = living => {}
    }
}

/// A database that can be written, but does not take what is known, is tried again now and then.
pub(crate) async fn what_the_database_does_not_take_is_tried_again_later(address: String) {
    #[expect(clippy::disallowed_methods, reason = "whoever stands in does so in real time")]
    let clock = Clock::of_machine(SystemTime::now);
    let url = small_server(Arc::new(AtomicBool::new(true))).await;
    let target = TargetSpec { every: Duration::from_secs(1), ..over_http("small", &url) };
    let config = Config { targets: [("small".to_owned(), target)].into(), ..config() };
    let store = Store::open(&address).await.unwrap();
    clock.follow(&store).await.unwrap();
    let monitor = Monitor::over(store, config, reach("worker"), clock.now()).await.unwrap();
    let standby = Standby::new(monitor.clone(), DeliveryClient::new(Network::default()));
    let (has_begun, has_ended) = (Cell::new(false), Cell::new(false));
    let tell = |news| {
        has_begun.set(has_begun.get() || matches!(news, News::Began));
        has_ended.set(has_ended.get() || matches!(news, News::Ended));
    };
    let living = async { tokio::join!(monitor.run(Role::Serve, &clock, pending()), standby.run(&clock, tell, pending())) };
    let tried = async || rows(&address, "SELECT CAST(last_run AS TEXT) FROM chore WHERE name = 'write'").await;
    let story = async {
        refuse_results(&address).await;
        refuse(&address).await;
        while !has_begun.get() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // Until there is something to be written.
        tokio::time::sleep(Duration::from_secs(4)).await;
        take(&address).await;
        while tried().await.is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let mut tries = BTreeSet::new();
        for _ in 0..40 {
            tries.insert(tried().await);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(tries.len() <= 2, "{} tries in four seconds", tries.len());
        assert!(!has_ended.get());
    };
    tokio::select! {
        () = story => {}
        _ = living => {}
    }
}

async fn refuse_results(address: &str) {
    let statements: &[&str] = match address.starts_with("sqlite") {
        true => &["CREATE TRIGGER refuse_results BEFORE INSERT ON result BEGIN SELECT RAISE(ABORT, 'nothing is taken'); END"],
        false => &[
            "CREATE FUNCTION refuse_results() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'nothing is taken'; END $$",
            "CREATE TRIGGER refuse_results BEFORE INSERT ON result FOR EACH ROW EXECUTE FUNCTION refuse_results()",
        ],
    };
    run(address, statements).await;
}

async fn heard(chat: &Receiver, count: usize) {
    while chat.heard().len() < count {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Nothing that a monitor does can be written.
pub(crate) async fn refuse(address: &str) {
    let statements: &[&str] = match address.starts_with("sqlite") {
        true => &[
            "CREATE TRIGGER refuse BEFORE UPDATE ON schedule BEGIN SELECT RAISE(ABORT, 'nothing is taken'); END",
            "CREATE TRIGGER refuse_chores BEFORE INSERT ON chore BEGIN SELECT RAISE(ABORT, 'nothing is taken'); END",
        ],
        false => &[
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'nothing is taken'; END $$",
            "CREATE TRIGGER refuse BEFORE UPDATE ON schedule FOR EACH ROW EXECUTE FUNCTION refuse()",
            "CREATE TRIGGER refuse_chores BEFORE INSERT ON chore FOR EACH ROW EXECUTE FUNCTION refuse()",
        ],
    };
    run(address, statements).await;
}

pub(crate) async fn take(address: &str) {
    let statements: &[&str] = match address.starts_with("sqlite") {
        true => &["DROP TRIGGER refuse", "DROP TRIGGER refuse_chores"],
        false => &["DROP TRIGGER refuse ON schedule", "DROP TRIGGER refuse_chores ON chore"],
    };
    run(address, statements).await;
}

pub(crate) async fn run(address: &str, statements: &[&'static str]) {
    let mut connection = AnyConnection::connect(address).await.unwrap();
    for statement in statements {
        connection.execute(*statement).await.unwrap();
    }
    connection.close().await.unwrap();
}
