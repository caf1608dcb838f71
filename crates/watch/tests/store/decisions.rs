//! What people decide while the database takes nothing: it counts at once, and is in the database afterwards, once.

use super::fixtures::*;
use super::probing::small_server;
use super::standby::{refuse, run, take};
use crate::receiver::Receiver;
use mcproof_client::Network;
use mcproof_watch::channel::DeliveryClient;
use mcproof_watch::clock::Clock;
use mcproof_watch::config::{ChannelSpec, Config, Route, Secret, TargetSpec};
use mcproof_watch::monitor::{Monitor, Role, keep_passing};
use mcproof_watch::notifier::Notifier;
use mcproof_watch::standby::{News, Standby};
use mcproof_watch::state::Thresholds;
use mcproof_watch::store::Store;
use mcproof_watch::web;
use serde_json::{Value, json};
use std::cell::Cell;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio::time::{Instant, sleep};

const SOON: Duration = Duration::from_millis(50);

/// Where people meet the monitor, and what it says.
struct Desk<'a> {
    at: SocketAddr,
    chat: &'a Receiver,
    has_begun: &'a Cell<bool>,
    has_ended: &'a Cell<bool>,
    is_well: [Arc<AtomicBool>; 2],
}

/// A monitor of two servers, `shop` and `desk`, with a dashboard and everything else, for as long as a story about it lasts.
async fn with_monitor(address: &str, story: impl AsyncFnOnce(Desk<'_>)) {
    #[expect(clippy::disallowed_methods, reason = "whoever stands in does so in real time")]
    let clock = Clock::of_machine(SystemTime::now);
    let chat = Receiver::http().await;
    let is_well = [true, true].map(|is_well| Arc::new(AtomicBool::new(is_well)));
    let mut config = Config {
        channels: [("chat".to_owned(), ChannelSpec::Webhook { url: Secret::new(chat.url("/")), secret: None })].into(),
        routes: vec![Route { channels: vec!["chat".into()], remind_every: Some(Duration::from_secs(1)), ..Route::default() }],
        ..config()
    };
    for (name, is_well) in ["shop", "desk"].into_iter().zip(&is_well) {
        let thresholds = Thresholds { confirmations: Vec::new(), recoveries: 1, ..Thresholds::default() };
        let spec = over_http(name, &small_server(Arc::clone(is_well)).await);
        config.targets.insert(name.to_owned(), TargetSpec { every: Duration::from_secs(1), thresholds, ..spec });
    }
    let store = Store::open(address).await.unwrap();
    clock.follow(&store).await.unwrap();
    let monitor = Monitor::over(store, config, reach("worker"), clock.now()).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let (plan, of_web) = (monitor.plan(), clock.clone());
    let current = Arc::new(move || Arc::clone(&plan.borrow().config));
    let mut state = web::State::new(monitor.store.clone(), current, move || of_web.now(), broadcast::channel(16).0);
    state.worker_health = monitor.worker_health.clone();
    let delivery_client = DeliveryClient::new(Network::default());
    let notifier = Notifier::new(monitor.store.clone(), monitor.plan(), delivery_client.clone());
    let standby = Standby::new(monitor.clone(), delivery_client);
    let (has_begun, has_ended) = (Cell::new(false), Cell::new(false));
    let tell = |news| match news {
        News::Began => has_begun.set(true),
        News::Ended => has_ended.set(true),
        _ => {}
    };
    let telling = keep_passing(
        async |now| {
            if monitor.worker_health.report().is_replaced {
                return Ok(Some(now + Duration::from_secs(1)));
            }
            let next = notifier.pass(now).await?.next;
            let soon = now + Duration::from_secs(1);
            Ok::<_, sqlx::Error>(Some(next.map_or(soon, |next| next.min(soon))))
        },
        &monitor.stirred,
        &clock,
        pending(),
    );
    let living = async {
        tokio::join!(
            monitor.run(Role::Serve, &clock, pending()),
            standby.run(&clock, tell, pending()),
            web::serve(listener, state, pending()),
            telling
        )
    };
    let desk = Desk { at, chat: &chat, has_begun: &has_begun, has_ended: &has_ended, is_well };
    tokio::select! {
        () = story(desk) => {}
        _ = living => {}
    }
}

impl Desk<'_> {
    async fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, String) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(self.at).await.unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}",
            body.len()
        );
        stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    async fn get(&self, path: &str) -> String {
        self.ask("GET", path, &Value::Null).await.1
    }

    async fn json(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let (status, text) = self.ask(method, path, &body).await;
        (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{method} {path}: {error}: {text}")))
    }

    /// Of these words, how often each was told of a target.
    fn told(&self, subject: &str, kind: &str) -> usize {
        let is_it = |message: &Value| message["target"] == subject && message["kind"] == kind;
        self.chat.heard().iter().filter(|heard| is_it(&heard.json())).count()
    }

    async fn until_told(&self, subject: &str, kind: &str) {
        while self.told(subject, kind) == 0 {
            sleep(SOON).await;
        }
    }

    async fn until_results(&self, address: &str) {
        while rows(address, "SELECT DISTINCT target FROM result").await.len() < 2 {
            sleep(SOON).await;
        }
    }
}

async fn until(is_so: &Cell<bool>) {
    while !is_so.get() {
        sleep(SOON).await;
    }
}

pub(crate) async fn what_people_decide_in_memory_counts_at_once_and_is_written_once(address: String) {
    let database = address.as_str();
    with_monitor(database, async |desk: Desk<'_>| {
        desk.until_results(database).await;
        refuse(database).await;
        desk.is_well[0].store(false, Ordering::Relaxed);
        until(desk.has_begun).await;
        desk.until_told("shop", "reminder").await;
        let (_, listed) = desk.json("GET", "/api/incidents", Value::Null).await;
        assert_eq!(listed["incidents"].as_array().unwrap().len(), 1, "what was opened in memory is listed: {listed}");
        let incident = listed["incidents"][0]["id"].as_str().unwrap().to_owned();
        let path = format!("/api/incidents/{incident}/acknowledge");

        let (status, told) = desk.json("POST", &path, Value::Null).await;
        assert_eq!((status, &told["acknowledged_by"], &told["stored"]), (200, &json!("local"), &json!(false)), "{told}");
        assert!(told["note"].as_str().unwrap().contains("lost if the monitor ends before"), "{told}");
        // A second person is told that somebody does it already.
        assert_eq!(desk.json("POST", &path, Value::Null).await.0, 409);
        let (_, listed) = desk.json("GET", "/api/incidents", Value::Null).await;
        assert_eq!(listed["incidents"][0]["acknowledged_by"], "local", "{listed}");
        let page = desk.get(&format!("/incidents/{incident}")).await;
        assert!(page.contains("acknowledged") && page.contains("The acknowledgement is kept in memory"), "{page}");
        desk.until_told("shop", "acknowledge").await;
        let reminders = desk.told("shop", "reminder");

        // Whoever is muted is not told, as long as that lasts.
        let (status, told) = desk.json("POST", "/api/targets/desk/mute", json!({ "minutes": 60 })).await;
        assert!(status == 200 && told["stored"] == false && told["muted_until"].is_string(), "{told}");
        assert_eq!(desk.json("POST", "/api/targets/nobody/mute", json!({ "minutes": 60 })).await.0, 404);
        assert!(desk.get("/api/targets/desk").await.contains("\"muted_until\":\"2"));
        assert!(desk.get("/").await.contains("1 muted"));
        desk.is_well[1].store(false, Ordering::Relaxed);
        while desk.json("GET", "/api/incidents", Value::Null).await.1["incidents"].as_array().unwrap().len() < 2 {
            sleep(SOON).await;
        }
        let silence = json!({ "names": ["x-*"], "reason": "moving", "minutes": 5, "future": true });
        let (status, silenced) = desk.json("POST", "/api/silences", silence.clone()).await;
        assert!(status == 201 && silenced["stored"] == false, "{silenced}");
        let (status, over) = desk.json("POST", "/api/silences", silence).await;
        assert_eq!(status, 201);
        let over = format!("/api/silences/{}", over["id"].as_str().unwrap());
        assert_eq!(desk.json("DELETE", &over, Value::Null).await.1["stored"], false);
        let (_, silences) = desk.json("GET", "/api/silences", Value::Null).await;
        assert_eq!(silences["silences"].as_array().unwrap().len(), 1, "{silences}");
        let (_, audit) = desk.json("GET", "/api/audit", Value::Null).await;
        assert_eq!(audit["entries"][0]["action"], "end a silence", "{audit}");
        sleep(Duration::from_secs(3)).await;
        assert_eq!((desk.told("desk", "trigger"), desk.told("shop", "reminder")), (0, reminders));
        assert!(rows(database, "SELECT id FROM audit UNION SELECT id FROM silence UNION SELECT id FROM incident").await.is_empty());
        assert!(!desk.has_ended.get());

        take(database).await;
        until(desk.has_ended).await;
        let written = async || {
            let acknowledged = "SELECT subject, COALESCE(acknowledged_by, 'nobody') FROM incident ORDER BY subject";
            assert_eq!(rows(database, acknowledged).await, [["desk", "nobody"], ["shop", "local"]]);
            let history = "SELECT text FROM incident_event WHERE kind = 'acknowledged'";
            assert_eq!(rows(database, history).await, [["by local"]]);
            let muted = "SELECT name FROM target WHERE muted_until > 0";
            assert_eq!(rows(database, muted).await, [["desk"]]);
            let entries = rows(database, "SELECT action, COALESCE(outcome, 'unknown') FROM audit ORDER BY at, id").await;
            let expected = [
                ["acknowledge", "done"],
                ["acknowledge", "refused: 409 Conflict"],
                ["mute for 1 h", "done"],
                ["mute for 1 h", "refused: 404 Not Found"],
                ["silence for 5 min", "done"],
                ["silence for 5 min", "done"],
                ["end a silence", "done"],
            ];
            assert_eq!(entries, expected);
            assert_eq!(rows(database, "SELECT id FROM silence").await.len(), 2);
        };
        written().await;
        let (_, silences) = desk.json("GET", "/api/silences", Value::Null).await;
        assert_eq!((silences["silences"].as_array().unwrap().len(), &silences["silences"][0]["id"]), (1, &silenced["id"]));
        assert!(!desk.get(&format!("/incidents/{incident}")).await.contains("kept in memory"));
        // Whoever tells people again does it out of the database, and nothing comes twice.
        sleep(Duration::from_secs(3)).await;
        written().await;
        let counts = ["trigger", "acknowledge", "reminder"].map(|kind| desk.told("shop", kind));
        assert_eq!((counts, desk.told("desk", "trigger")), ([1, 1, reminders], 0));
        let (status, told) = desk.json("POST", "/api/targets/desk/mute", json!({ "minutes": 0 })).await;
        assert!(status == 200 && told.get("stored").is_none(), "{told}");
        desk.until_told("desk", "trigger").await;
        desk.is_well[0].store(true, Ordering::Relaxed);
        desk.until_told("shop", "resolve").await;
        assert_eq!(desk.told("shop", "resolve"), 1);
    })
    .await;
}

/// The first thing that the database refuses may be what somebody decides: nobody waits until a result was refused for a while.
pub(crate) async fn a_decision_that_the_database_refuses_is_taken_by_whoever_stands_in(address: String) {
    let database = address.as_str();
    with_monitor(database, async |desk: Desk<'_>| {
        desk.until_results(database).await;
        desk.is_well[0].store(false, Ordering::Relaxed);
        desk.until_told("shop", "reminder").await;
        refuse_audit(database).await;
        let (asked, listed) = (Instant::now(), desk.json("GET", "/api/incidents", Value::Null).await.1);
        let incident = listed["incidents"][0]["id"].as_str().unwrap();
        let (status, told) = desk.json("POST", &format!("/api/incidents/{incident}/acknowledge"), Value::Null).await;
        assert!(status == 200 && told["stored"] == false, "{told}");
        assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
        // Two at the same time.
        let mute = async || desk.json("POST", "/api/targets/desk/mute", json!({ "minutes": 60 })).await;
        let both = tokio::join!(mute(), mute());
        assert!(both.0.1["stored"] == false && both.1.1["stored"] == false, "{both:?}");
        desk.until_told("shop", "acknowledge").await;
        let page = desk.get(&format!("/incidents/{incident}")).await;
        assert!(page.contains("The acknowledgement is kept in memory"), "{page}");
        let reminders = desk.told("shop", "reminder");
        assert!(rows(database, "SELECT id FROM incident WHERE acknowledged IS NOT NULL").await.is_empty());
        take_audit(database).await;
        until(desk.has_ended).await;
        assert_eq!(rows(database, "SELECT acknowledged_by FROM incident").await, [["local"]]);
        assert_eq!(rows(database, "SELECT text FROM incident_event WHERE kind = 'acknowledged'").await.len(), 1);
        let entries = rows(database, "SELECT action, COALESCE(outcome, 'unknown') FROM audit ORDER BY at, id").await;
        assert_eq!(entries, [["acknowledge", "done"], ["mute for 1 h", "done"], ["mute for 1 h", "done"]]);
        assert_eq!(rows(database, "SELECT name FROM target WHERE muted_until > 0").await, [["desk"]]);
        sleep(Duration::from_secs(3)).await;
        assert_eq!((desk.told("shop", "acknowledge"), desk.told("shop", "reminder")), (1, reminders));
    })
    .await;
}

/// A mute that ends while the database is away ends there, too: what is still down then is told.
pub(crate) async fn a_mute_that_ends_in_memory_is_over_there_and_in_the_database(address: String) {
    let database = address.as_str();
    with_monitor(database, async |desk: Desk<'_>| {
        desk.until_results(database).await;
        refuse(database).await;
        until(desk.has_begun).await;
        assert_eq!(desk.json("POST", "/api/targets/shop/mute", json!({ "minutes": 1 })).await.0, 200);
        desk.is_well[0].store(false, Ordering::Relaxed);
        let muted = Instant::now();
        desk.until_told("shop", "trigger").await;
        assert!(muted.elapsed() > Duration::from_secs(55), "it was told after {:?}", muted.elapsed());
        assert!(!desk.get("/").await.contains("1 muted"));
        take(database).await;
        until(desk.has_ended).await;
        sleep(Duration::from_secs(3)).await;
        assert_eq!(desk.told("shop", "trigger"), 1);
        assert_eq!(rows(database, "SELECT subject FROM incident WHERE resolved IS NULL").await, [["shop"]]);
    })
    .await;
}

/// Nothing that people do can be written.
async fn refuse_audit(address: &str) {
    let statements: &[&str] = match address.starts_with("sqlite") {
        true => &["CREATE TRIGGER refuse_audit BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'nothing is taken'); END"],
        false => &[
            "CREATE FUNCTION refuse_audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'nothing is taken'; END $$",
            "CREATE TRIGGER refuse_audit BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION refuse_audit()",
        ],
    };
    run(address, statements).await;
}

async fn take_audit(address: &str) {
    let statement: &[&str] = match address.starts_with("sqlite") {
        true => &["DROP TRIGGER refuse_audit"],
        false => &["DROP TRIGGER refuse_audit ON audit"],
    };
    run(address, statement).await;
}
