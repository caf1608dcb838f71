//! What is told together, or not at all because something else explains it.

use super::*;
use crate::config::load;
use mcproof_suite::Environment;
use std::path::Path;

const TARGETS: &str = "targets:
  db: { monitor: http://127.0.0.1:9/, tags: [storage, quiet] }
  cache: { monitor: http://127.0.0.1:9/, tags: storage }
  shop: { monitor: http://127.0.0.1:9/, tags: [billing, front], depends_on: [db, 'tag:storage'] }
  desk: { monitor: http://127.0.0.1:9/, tags: billing, depends_on: shop }
  mill: { monitor: http://127.0.0.1:9/, tags: billing }
channels: { pager: { webhook: http://127.0.0.1:9/ }, chat: { webhook: http://127.0.0.1:9/ } }
";
const ALONE: &str = "routes: [{ severities: page, channels: pager }, { channels: chat }]\n";
const GROUPED: &str = "routes: [{ severities: page, channels: pager, group_by: 'bill*', group_wait: 20s }, { channels: chat }]\n";

impl World {
    /// With targets on hosts of their own, and with the tags and dependencies of the file.
    async fn of(routes: &str) -> Self {
        let mut world = Self::new(&[("db", "a:1"), ("cache", "b:1"), ("shop", "c:1"), ("desk", "d:1"), ("mill", "e:1")]).await;
        world.configure(routes).await;
        world
    }

    async fn configure(&mut self, routes: &str) {
        let loaded = load("w.yaml", &format!("{TARGETS}{routes}"), Path::new("/"), &Environment::default());
        self.config = loaded.unwrap_or_else(|mistakes| panic!("{mistakes:#?}")).config;
        for target in self.config.targets.values() {
            let tags = serde_json::to_string(&target.tags).unwrap();
            let query = sqlx::query("UPDATE target SET tags = $1 WHERE name = $2").bind(tags).bind(&target.name);
            query.execute(&self.store.pool).await.unwrap();
        }
    }

    async fn looks(&self, at: i64) -> bool {
        let told = tell_what_is_owed(&self.store, &self.config, Moment(at)).await.unwrap();
        end_empty_groups(&self.store, &self.config, Moment(at)).await.unwrap();
        told
    }

    async fn down(&mut self, target: &str, at: i64) {
        self.see(target, at, |observation| observation.verdict = Verdict::Down).await;
    }

    async fn up(&mut self, target: &str, at: i64) {
        self.see(target, at, |_| ()).await;
    }

    async fn told(&self) -> Vec<String> {
        let told = self.outbox().await;
        told.into_iter().map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
    }

    async fn because(&self) -> Vec<String> {
        let statement = "SELECT detail FROM incident WHERE resolved IS NULL ORDER BY id";
        let details = self.texts(statement).await;
        details.iter().filter_map(|detail| serde_json::from_str::<Detail>(detail).unwrap().because_of).collect()
    }
}

const DB: &str = "trigger db availability";
const SHOP: &str = "trigger shop availability";

#[tokio::test]
async fn what_is_down_because_of_something_else_is_told_only_if_it_outlasts_that() {
    let mut world = World::of(ALONE).await;
    world.fail("db", MINUTE).await;
    world.fail("shop", MINUTE + 20_000).await;
    // What depends on that is explained by it, too.
    world.fail("desk", MINUTE + 40_000).await;
    assert_eq!(world.told().await, [DB]);
    assert_eq!(world.because().await, ["db", "shop"]);
    for at in [2, 3, 4] {
        world.down("shop", at * MINUTE).await;
        assert!(!world.looks(at * MINUTE).await);
    }
    world.recover("db", 5 * MINUTE).await;
    assert_eq!(world.told().await, [DB, "resolve db availability"]);
    assert!(!world.looks(5 * MINUTE + 10_000).await, "it may work again, too");
    world.recover("desk", 5 * MINUTE + 20_000).await;
    world.down("shop", 6 * MINUTE).await;
    assert!(world.looks(6 * MINUTE + 1_000).await);
    assert!(!world.looks(6 * MINUTE + 11_000).await, "it is told once");
    assert_eq!(world.told().await[2..], [SHOP]);
    assert_eq!(world.because().await, Vec::<String>::new());
    world.recover("shop", 7 * MINUTE).await;
    assert_eq!(world.told().await[3..], ["resolve shop availability"]);
    let events = world.texts("SELECT event.kind FROM incident_event event JOIN incident ON incident.id = event.incident WHERE subject = 'shop' ORDER BY event.at").await;
    assert_eq!(events, ["opened", "suppressed", "outlasted", "resolved"]);
}

#[tokio::test]
async fn what_is_confirmed_later_explains_it_and_what_works_does_not() {
    // Both begin to fail at the same time, and it is confirmed first.
    let mut world = World::of(ALONE).await;
    world.down("shop", MINUTE).await;
    world.down("cache", MINUTE + 10_000).await;
    world.down("shop", MINUTE + 11_000).await;
    world.down("shop", MINUTE + 15_000).await;
    assert_eq!(world.told().await, Vec::<String>::new());
    world.down("cache", MINUTE + 16_000).await;
    world.down("cache", MINUTE + 25_000).await;
    assert!(!world.looks(MINUTE + 26_000).await);
    assert_eq!((world.told().await, world.because().await), (vec!["trigger cache availability".to_owned()], vec!["cache".to_owned()]));
    // What it depends on was seen to work since.
    let mut world = World::of(ALONE).await;
    world.down("shop", MINUTE).await;
    for target in ["db", "cache"] {
        world.up(target, MINUTE + 1_000).await;
    }
    world.down("shop", MINUTE + 11_000).await;
    world.down("shop", MINUTE + 15_000).await;
    assert_eq!(world.told().await, [SHOP]);
    // It was not looked at since: that is waited for, and not for ever.
    let mut world = World::of(ALONE).await;
    world.fail("shop", MINUTE).await;
    assert!(!world.looks(MINUTE + 30_000).await);
    world.up("db", MINUTE + 40_000).await;
    assert!(!world.looks(MINUTE + 41_000).await);
    assert!(world.looks(4 * MINUTE).await);
    assert_eq!(world.told().await, [SHOP]);
}

#[tokio::test]
async fn nothing_is_explained_by_what_nobody_is_told_of() {
    // Nobody is told of the first target: its route has no channels.
    let mut world = World::of("routes: [{ tags: front, channels: pager }, { tags: billing, channels: pager }]\n").await;
    world.fail("db", MINUTE).await;
    world.up("cache", MINUTE + 21_000).await;
    world.fail("shop", MINUTE + 20_000).await;
    assert_eq!(world.told().await, [SHOP]);
    // Of what is silenced nobody wants to hear, nor of what follows from it.
    let mut world = World::of(ALONE).await;
    sqlx::query("UPDATE target SET muted_until = 600000 WHERE name = 'db'").execute(&world.store.pool).await.unwrap();
    world.fail("db", MINUTE).await;
    world.fail("shop", MINUTE + 20_000).await;
    assert!(!world.looks(5 * MINUTE).await);
    world.down("shop", 10 * MINUTE).await;
    assert!(world.looks(10 * MINUTE).await, "the first one is told now");
    assert_eq!(world.told().await, [DB]);
}

#[tokio::test]
async fn who_changes_dependencies_is_told_of_what_they_explained() {
    let mut world = World::of(ALONE).await;
    world.fail("db", MINUTE).await;
    world.fail("shop", MINUTE + 20_000).await;
    world.config.targets.get_mut("shop").unwrap().depends_on = crate::config::Dependencies::default();
    assert!(world.looks(2 * MINUTE).await);
    assert_eq!(world.told().await, [DB, SHOP]);
    // Turned round, neither waits for the other one.
    let mut world = World::of(ALONE).await;
    world.fail("db", MINUTE).await;
    world.fail("shop", MINUTE + 20_000).await;
    sqlx::query("DELETE FROM outbox").execute(&world.store.pool).await.unwrap();
    let names = std::collections::BTreeSet::from(["shop".to_owned()]);
    world.config.targets.get_mut("db").unwrap().depends_on = crate::config::Dependencies { names, ..Default::default() };
    assert!(world.looks(2 * MINUTE).await);
    assert!(!world.told().await.is_empty());
    // What is watched no more explains nothing.
    let mut world = World::of(ALONE).await;
    world.fail("db", MINUTE).await;
    world.fail("shop", MINUTE + 20_000).await;
    world.store.remove_target("db", Moment(2 * MINUTE)).await.unwrap();
    world.down("shop", 3 * MINUTE).await;
    assert!(world.looks(3 * MINUTE).await);
    assert_eq!(world.told().await[2..], [SHOP]);
}

#[tokio::test]
async fn targets_of_a_group_are_one_page_that_later_ones_update() {
    let mut world = World::of(GROUPED).await;
    world.fail("mill", MINUTE).await;
    let group = |kind: &str| format!("{kind} group:billing@pager group");
    assert_eq!(world.told().await, [group("trigger")]);
    assert_eq!(world.texts("SELECT title FROM incident WHERE class = 'group'").await, ["mill is down: connection refused"]);
    assert_eq!(world.texts("SELECT CAST(due - created AS TEXT) FROM outbox").await, ["20000"]);
    // Within the time that the page waits, it says both.
    for target in ["db", "cache"] {
        world.up(target, MINUTE + 16_500).await;
    }
    world.fail("shop", MINUTE + 16_000).await;
    assert_eq!(world.told().await, [group("trigger")]);
    assert_eq!(world.texts("SELECT title FROM incident WHERE class = 'group'").await, ["2 incidents in the group billing"]);
    let told = "SELECT detail FROM incident WHERE class = 'group'";
    let detail: Detail = serde_json::from_str(&world.texts(told).await[0]).unwrap();
    assert_eq!(detail.message, "mill is down: connection refused; shop is down: connection refused");
    assert_eq!((detail.members, detail.tags), (vec!["mill".to_owned(), "shop".to_owned()], vec!["billing".to_owned()]));
    sqlx::query("UPDATE outbox SET delivered = 1, delivered_by = 'pager'").execute(&world.store.pool).await.unwrap();
    // What depends on one of them is told when it outlasts that, and updates the page.
    world.fail("desk", 2 * MINUTE).await;
    assert!(!world.looks(3 * MINUTE).await);
    assert_eq!(world.told().await, [group("trigger")]);
    world.recover("shop", 4 * MINUTE).await;
    world.down("desk", 5 * MINUTE).await;
    assert!(world.looks(5 * MINUTE).await);
    assert_eq!(world.told().await, [group("trigger"), group("update")]);
    world.recover("mill", 6 * MINUTE).await;
    assert_eq!(world.told().await.len(), 2);
    world.recover("desk", 7 * MINUTE).await;
    assert_eq!(world.told().await[2..], [group("resolve")]);
    let open = world.texts("SELECT subject FROM incident WHERE resolved IS NULL").await;
    assert_eq!(open, Vec::<String>::new());
}

#[tokio::test]
async fn whoever_takes_care_of_a_group_is_told_anew_of_what_comes_later() {
    let mut world = World::of(GROUPED).await;
    world.fail("mill", MINUTE).await;
    let group = world.texts("SELECT id FROM incident WHERE class = 'group'").await.remove(0);
    assert!(acknowledge(&world.store, &group, "ann", Moment(2 * MINUTE)).await.unwrap());
    world.config.targets.get_mut("shop").unwrap().depends_on = crate::config::Dependencies::default();
    world.fail("shop", 3 * MINUTE).await;
    world.fail("desk", 4 * MINUTE).await;
    assert_eq!(world.told().await, ["trigger group:billing@pager group", "trigger group:billing@pager#2 group"]);
    world.recover("mill", 5 * MINUTE).await;
    assert_eq!(world.told().await[2..], ["resolve group:billing@pager group"]);
    world.recover("shop", 6 * MINUTE).await;
    world.recover("desk", 7 * MINUTE).await;
    assert_eq!(world.told().await[3..], ["resolve group:billing@pager#2 group"]);
}

#[tokio::test]
async fn what_is_open_in_a_group_that_is_over_is_told_again_and_an_empty_group_ends() {
    let mut world = World::of(GROUPED).await;
    world.fail("mill", MINUTE).await;
    // As two transactions of Postgres may leave it: each has seen the part of the other one.
    sqlx::query("UPDATE incident SET resolved = 61000 WHERE class = 'group'").execute(&world.store.pool).await.unwrap();
    assert!(world.looks(2 * MINUTE).await);
    assert_eq!(world.told().await, ["trigger group:billing@pager group", "trigger group:billing@pager group"]);
    sqlx::query("UPDATE incident SET resolved = 125000 WHERE class = 'availability'").execute(&world.store.pool).await.unwrap();
    world.looks(3 * MINUTE).await;
    assert_eq!(world.told().await[2..], ["resolve group:billing@pager group"]);
}

const HALF_PAST: &str = "routes: [{ hours: { from: '00:30', until: '02:00' }, channels: pager }]\n";

#[tokio::test]
async fn outside_the_hours_of_all_routes_alerts_wait_for_the_next_that_begin() {
    let mut world = World::of(HALF_PAST).await;
    world.fail("db", MINUTE).await;
    // What is over by then is told to nobody.
    world.fail("mill", 3 * MINUTE).await;
    world.recover("mill", 5 * MINUTE).await;
    assert!(!world.looks(29 * MINUTE).await);
    assert_eq!(world.told().await, Vec::<String>::new());
    let waits = "SELECT text FROM incident_event WHERE kind = 'suppressed' ORDER BY at";
    assert_eq!(world.texts(waits).await, ["alerts wait until 1970-01-01T00:30:00Z, when the hours of a route begin"; 2]);
    assert!(world.looks(30 * MINUTE).await);
    assert_eq!(world.told().await, [DB]);
    assert!(!world.looks(31 * MINUTE).await, "it is told once");
    // The end goes the way of the begin, whatever time it is.
    world.recover("db", 130 * MINUTE).await;
    assert_eq!(world.told().await, [DB, "resolve db availability"]);
}

#[tokio::test]
async fn a_storm_outside_the_hours_of_all_routes_is_told_as_one_when_they_begin() {
    let mut world = World::of(HALF_PAST).await;
    let names = ["db", "cache", "shop", "desk", "mill"].map(str::to_owned);
    world.fail_together(&names, MINUTE).await;
    assert!(!world.looks(29 * MINUTE).await);
    assert!(world.looks(30 * MINUTE).await);
    assert!(!world.looks(31 * MINUTE).await, "it is told once");
    assert_eq!(world.told().await, ["trigger region:here storm"]);
}

#[tokio::test]
async fn the_first_route_that_is_open_is_used() {
    let routes = "routes: [{ hours: { from: '00:30', until: '02:00' }, channels: chat }, { channels: pager }]\n";
    let mut world = World::of(routes).await;
    world.fail("db", MINUTE).await;
    world.fail("mill", 40 * MINUTE).await;
    let told = [r#"trigger db availability ["pager"]"#, r#"trigger mill availability ["chat"]"#];
    assert_eq!(world.outbox().await, told);
}
