//! What is told together, and what is explained by something else: written by several workers at the same time, told by a real notifier
//! to a real receiver.

use super::fixtures::*;
use super::receiver::Receiver;
use mcproof_client::Network;
use mcproof_suite::Environment;
use mcproof_watch::channel::DeliveryClient;
use mcproof_watch::config::{Config, load};
use mcproof_watch::moment::Moment;
use mcproof_watch::notifier::Notifier;
use mcproof_watch::state::Verdict;
use mcproof_watch::store::incidents::{end_empty_groups, tell_what_is_owed};
use mcproof_watch::store::{Lease, Store};
use mcproof_watch::worker::Plan;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

struct IncidentContext {
    stores: Vec<Store>,
    config: Config,
    notifier: Notifier,
    chat: Receiver,
    now: Moment,
}

impl IncidentContext {
    async fn new(address: &str, text: &str) -> Self {
        let chat = Receiver::http().await;
        let text = format!("{text}channels: {{ chat: {{ webhook: \"{}\" }} }}\n", chat.url("/"));
        let config =
            load("w.yaml", &text, Path::new("/"), &Environment::default()).unwrap_or_else(|mistakes| panic!("{mistakes:#?}")).config;
        let targets: Vec<_> = config.targets.values().cloned().collect();
        // As several processes: each with connections of its own.
        let mut stores = vec![store_of(address, &targets).await];
        for _ in 1..targets.len() {
            stores.push(Store::open(address).await.unwrap());
        }
        let (_, plan) = watch::channel(Arc::new(Plan { config: Arc::new(config.clone()), targets: BTreeMap::new() }));
        let notifier = Notifier::new(stores[0].clone(), plan, DeliveryClient::new(Network::default()));
        Self { stores, config, notifier, chat, now: FIRST }
    }

    /// All these targets are probed, each by a process of its own, and all at the same time.
    async fn see(&mut self, verdicts: &[(&str, Verdict)], after: Duration) {
        self.now = self.now + after;
        let now = self.now;
        let leases: BTreeMap<String, Lease> =
            lease(&self.stores[0], "here", now).await.into_iter().map(|lease| (lease.target.clone(), lease)).collect();
        let (config, stores) = (&self.config, &self.stores);
        let commits = verdicts.iter().zip(stores).map(|((target, verdict), store)| {
            let finished = leases.get(*target).map(|lease| finished(lease, *verdict, now));
            async move { store.commit(finished.as_slice(), config, now).await.unwrap() }
        });
        futures_util::future::join_all(commits).await;
        let rest: Vec<Lease> = leases.into_values().filter(|lease| verdicts.iter().all(|(target, _)| *target != lease.target)).collect();
        self.stores[0].release(&rest).await.unwrap();
    }

    async fn confirm(&mut self, verdicts: &[(&str, Verdict)]) {
        for after in [5, 10] {
            self.see(verdicts, Duration::from_secs(after)).await;
        }
    }

    /// What a monitor does besides, until nothing is due for so long.
    async fn pass(&mut self, after: Duration) {
        self.now = self.now + after;
        tell_what_is_owed(&self.stores[0], &self.config, self.now).await.unwrap();
        end_empty_groups(&self.stores[0], &self.config, self.now).await.unwrap();
        while self.notifier.pass(self.now).await.unwrap().next.is_some_and(|next| next <= self.now) {}
    }

    /// A page whose reply was lost is sent again: what is promised is that a receiver knows it by its id, and that nothing else of its
    /// incident came between.
    fn heard(&self) -> Vec<(String, String, Value)> {
        let mut told: Vec<Value> = Vec::new();
        for heard in self.chat.heard() {
            let message = heard.json();
            assert_eq!(heard.header("idempotency-key"), message["id"].as_str().unwrap());
            match told.iter().rposition(|earlier| earlier["id"] == message["id"]) {
                None => told.push(message),
                Some(at) => {
                    let says = |message: &Value| ["kind", "incident", "target", "targets", "title"].map(|key| message[key].clone());
                    assert_eq!(says(&told[at]), says(&message), "a repetition says something else");
                    assert!(
                        told[at + 1..].iter().all(|later| later["incident"] != message["incident"]),
                        "a repetition came too late: {message}"
                    );
                }
            }
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        told.iter().map(|told| (text(&told["kind"]), text(&told["target"]), told["targets"].clone())).collect()
    }

    fn kinds(&self) -> Vec<String> {
        self.heard().into_iter().map(|(kind, target, _)| format!("{kind} {target}")).collect()
    }
}

const DOWN: Verdict = Verdict::Down;
const UP: Verdict = Verdict::Up;
const SECOND: Duration = Duration::from_secs(1);

const DEPENDENT: &str = "targets:
  db: { monitor: http://127.0.0.1:9/ }
  shop: { monitor: http://127.0.0.1:9/, depends_on: db }
";

pub(crate) async fn what_depends_on_what_is_down_is_told_only_if_it_outlasts_that(address: String) {
    let mut scene = IncidentContext::new(&address, DEPENDENT).await;
    let both = [("db", DOWN), ("shop", DOWN)];
    scene.see(&both, Duration::ZERO).await;
    scene.confirm(&both).await;
    scene.pass(SECOND).await;
    assert_eq!(scene.kinds(), ["trigger db"], "whichever of them was written first");
    // Who starts anew knows as much.
    let reopened = Store::open(&address).await.unwrap();
    for _ in 0..3 {
        assert!(!tell_what_is_owed(&reopened, &scene.config, scene.now + MINUTE).await.unwrap());
    }
    assert_eq!(rows(&address, "SELECT subject FROM incident WHERE parent IS NOT NULL").await, [["shop"]]);
    let causes = scene.stores[0].causes(&["shop", "db"]).await.unwrap();
    assert_eq!(causes, BTreeMap::from([("shop".to_owned(), ("db".to_owned(), false))]));
    scene.see(&[("db", UP), ("shop", DOWN)], MINUTE).await;
    scene.see(&[("db", UP)], Duration::from_secs(5)).await;
    scene.pass(SECOND).await;
    assert_eq!(scene.kinds(), ["trigger db", "resolve db"], "it is looked at again first");
    scene.see(&[("db", UP), ("shop", DOWN)], MINUTE).await;
    scene.pass(SECOND).await;
    assert_eq!(scene.kinds()[2..], ["trigger shop"]);
    scene.see(&[("shop", UP)], MINUTE).await;
    scene.see(&[("shop", UP)], Duration::from_secs(5)).await;
    scene.pass(SECOND).await;
    assert_eq!(scene.kinds()[3..], ["resolve shop"]);
}

const GROUPED: &str = "targets:
  a: { monitor: http://127.0.0.1:9/, tags: blue }
  b: { monitor: http://127.0.0.1:9/, tags: blue }
  c: { monitor: http://127.0.0.1:9/, tags: blue }
  d: { monitor: http://127.0.0.1:9/, tags: blue }
routes: [{ channels: chat, group_by: blue }]
";

pub(crate) async fn what_is_grouped_is_one_message_and_none_is_lost(address: String) {
    let mut scene = IncidentContext::new(&address, GROUPED).await;
    let down = [("a", DOWN), ("b", DOWN), ("c", DOWN)];
    scene.see(&[("a", DOWN), ("b", DOWN), ("c", DOWN), ("d", UP)], Duration::ZERO).await;
    scene.confirm(&down).await;
    scene.pass(SECOND).await;
    assert_eq!(scene.kinds(), Vec::<String>::new(), "it waits for others");
    scene.pass(SECOND * 10).await;
    let heard = scene.heard();
    assert_eq!(scene.kinds(), ["trigger group:blue@chat"]);
    assert_eq!(heard[0].2, serde_json::json!(["a", "b", "c"]));
    scene.see(&[("d", DOWN)], MINUTE - SECOND * 26).await;
    scene.confirm(&[("d", DOWN)]).await;
    scene.pass(SECOND * 11).await;
    assert_eq!((scene.kinds().len(), &scene.heard()[1].2), (2, &serde_json::json!(["a", "b", "c", "d"])));
    assert_eq!(scene.kinds()[1], "update group:blue@chat");
    // All of them end at the same time, so that each is the last one.
    let up = [("a", UP), ("b", UP), ("c", UP), ("d", UP)];
    for after in [60, 5] {
        scene.see(&up, Duration::from_secs(after)).await;
    }
    scene.pass(SECOND * 11).await;
    assert_eq!(scene.kinds()[2..], ["resolve group:blue@chat"]);
    assert_eq!(rows(&address, "SELECT id FROM incident WHERE resolved IS NULL").await, Vec::<Vec<String>>::new());
}
