mod fleet;
mod together;

use super::*;
use crate::config::{Route, When, Window};
use crate::state::{Announcement, Observation, Policy, Verdict, observe};
use crate::store::{packed, sqlite};
use mcproof_client::EraEvidence;
use mcproof_record::{Contract, ContractHashes};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

const MINUTE: i64 = 60_000;

/// A store with targets, and what is done to them.
struct World {
    store: Store,
    config: Config,
    states: BTreeMap<String, TargetState>,
    _folder: tempfile::TempDir,
}

fn config() -> Config {
    let route = |severities: &[Severity], tags: &[&str], channels: &[&str]| Route {
        severities: severities.to_vec(),
        tags: tags.iter().map(|&tag| tag.to_owned()).collect(),
        channels: channels.iter().map(|&name| name.to_owned()).collect(),
        ..Route::default()
    };
    Config {
        routes: vec![
            route(&[], &["quiet"], &[]),
            route(&[Severity::Page, Severity::Security], &[], &["pager", "mail"]),
            route(&[], &[], &["chat"]),
        ],
        ..Config::default()
    }
}

impl World {
    async fn new(targets: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&sqlite(&folder.path().join("watch.db"))).await.unwrap();
        let world = Self { store, config: config(), states: BTreeMap::new(), _folder: folder };
        world.add(targets).await;
        world
    }

    async fn add(&self, targets: &[(&str, &str)]) {
        for (name, host) in targets {
            let statement = "INSERT INTO target (name, source, definition, host, every, tags, public, state, availability, surface, since) \
                             VALUES ($1, 'config', x'', $2, 60000, '[]', 0, '{}', 'ok', 'ok', 0)";
            sqlx::query(statement).bind(*name).bind(*host).execute(&self.store.pool).await.unwrap();
            let statement = "INSERT INTO schedule (target, region, slot, due) VALUES ($1, 'here', 120000, 120000)";
            sqlx::query(statement).bind(*name).execute(&self.store.pool).await.unwrap();
        }
    }

    /// One result, folded and written.
    async fn see(&mut self, target: &str, at: i64, change: impl FnOnce(&mut Observation)) {
        self.see_announced(target, at, None, change).await;
    }

    async fn see_announced(&mut self, target: &str, at: i64, announced: Option<&Announcement>, change: impl FnOnce(&mut Observation)) {
        self.see_when(target, at, at, announced, change).await;
    }

    /// The clock may say another time when it is written.
    async fn see_when(&mut self, target: &str, at: i64, now: i64, announced: Option<&Announcement>, change: impl FnOnce(&mut Observation)) {
        let mut observation = Observation {
            target: target.into(),
            slot: Moment(at),
            region: "here".into(),
            attempt: 0,
            at: Moment(at),
            verdict: Verdict::Up,
            reason: String::new(),
            layer: None,
            message: "connection refused".into(),
            hint: None,
            duration: Duration::ZERO,
            phases: Vec::new(),
            contract: None,
            era_evidence: EraEvidence::Shown,
            certificate_ends: None,
            process: None,
        };
        change(&mut observation);
        let mut state = self.states.get(target).cloned().unwrap_or_default();
        let policy = Policy { every: Duration::from_secs(60), ..Policy::default() };
        let effects = observe(&mut state, &policy, &observation, announced, Moment(now));
        let (last_slot, last_result) = (Some(Moment(at)), Some(Moment(at)));
        let mut turns = [Turn { target: target.into(), region: "here".into(), state, effects, last_slot, last_result, evidence: None }];
        let mut transaction = self.store.pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
        apply(&mut transaction, &self.config, &mut turns, Moment(now)).await.unwrap();
        transaction.commit().await.unwrap();
        let [turn] = turns;
        self.states.insert(target.into(), turn.state);
    }

    async fn fail(&mut self, target: &str, at: i64) {
        for after in [0, 5_000, 15_000] {
            self.see(target, at + after, |observation| observation.verdict = Verdict::Down).await;
        }
    }

    async fn recover(&mut self, target: &str, at: i64) {
        for after in [0, 5_000] {
            self.see(target, at + after, |_| ()).await;
        }
    }

    /// What people are told, in its order: what, of whom, to whom.
    async fn outbox(&self) -> Vec<String> {
        let statement = "SELECT outbox.kind, incident.subject, incident.class, outbox.route \
                         FROM outbox JOIN incident ON incident.id = outbox.incident ORDER BY outbox.id";
        let rows = sqlx::query(statement).fetch_all(&self.store.pool).await.unwrap();
        let text = |row: &AnyRow, at: usize| row.get::<String, _>(at);
        rows.iter().map(|row| format!("{} {} {} {}", text(row, 0), text(row, 1), text(row, 2), text(row, 3))).collect()
    }

    async fn texts(&self, statement: &'static str) -> Vec<String> {
        sqlx::query_scalar(statement).fetch_all(&self.store.pool).await.unwrap()
    }
}

#[tokio::test]
async fn an_outage_is_told_once_and_its_end_to_the_same_people() {
    let mut world = World::new(&[("shop", "a:1")]).await;
    world.fail("shop", MINUTE).await;
    world.see("shop", 2 * MINUTE, |observation| observation.verdict = Verdict::Down).await;
    world.recover("shop", 3 * MINUTE).await;
    let route = r#"["pager","mail"]"#;
    assert_eq!(world.outbox().await, [format!("trigger shop availability {route}"), format!("resolve shop availability {route}")]);
    let events = world.texts("SELECT kind FROM incident_event ORDER BY at").await;
    assert_eq!(events, ["opened", "resolved"]);
    assert_eq!(world.texts("SELECT availability FROM target").await, ["ok"]);
    // Another outage is another incident.
    world.fail("shop", 10 * MINUTE).await;
    assert_eq!(world.texts("SELECT id FROM incident").await.len(), 2);
}

#[tokio::test]
async fn what_is_watched_no_more_is_over_and_unknown_when_it_comes_back() {
    let mut world = World::new(&[("shop", "a:1")]).await;
    world.fail("shop", MINUTE).await;
    world.store.remove_target("shop", Moment(2 * MINUTE)).await.unwrap();
    let route = r#"["pager","mail"]"#;
    assert_eq!(world.outbox().await, [format!("trigger shop availability {route}"), format!("resolve shop availability {route}")]);
    assert_eq!(world.texts("SELECT availability || ' ' || state FROM target").await, ["unknown {}"]);
    let details = world.texts("SELECT detail FROM incident").await;
    assert!(details.iter().all(|detail| detail.contains("\"is_unmonitored\":true")), "{details:?}");
}

#[tokio::test]
async fn nobody_is_told_during_maintenance_until_it_is_over() {
    let mut world = World::new(&[("shop", "a:1"), ("desk", "b:1")]).await;
    let when = When::Once { from: Moment(0), until: Moment(5 * MINUTE) };
    world.config.maintenance = vec![Window { name: "w".into(), targets: vec!["shop".into()], tags: Vec::new(), when }];
    world.fail("shop", MINUTE).await;
    world.fail("desk", MINUTE).await;
    assert_eq!(world.outbox().await.len(), 1);
    assert!(!tell_what_is_owed(&world.store, &world.config, Moment(4 * MINUTE)).await.unwrap());
    assert!(tell_what_is_owed(&world.store, &world.config, Moment(5 * MINUTE)).await.unwrap());
    assert!(!tell_what_is_owed(&world.store, &world.config, Moment(6 * MINUTE)).await.unwrap());
    let told = world.outbox().await;
    assert_eq!(told[1], r#"trigger shop availability ["pager","mail"]"#);
    // What began and ended meanwhile is nobody's business.
    let mut world = World::new(&[("shop", "a:1")]).await;
    sqlx::query("UPDATE target SET muted_until = 300000").execute(&world.store.pool).await.unwrap();
    world.fail("shop", MINUTE).await;
    world.recover("shop", 3 * MINUTE).await;
    tell_what_is_owed(&world.store, &world.config, Moment(6 * MINUTE)).await.unwrap();
    assert_eq!(world.outbox().await, Vec::<String>::new());
    assert_eq!(world.texts("SELECT kind FROM incident_event ORDER BY at").await, ["opened", "suppressed", "resolved"]);
}

#[tokio::test]
async fn many_on_one_host_are_one_storm_and_one_page() {
    let names: Vec<String> = (0..8).map(|number| format!("t{number}")).collect();
    let targets: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "a:1")).collect();
    let mut world = World::new(&targets).await;
    // All are seen failing before the first one is confirmed.
    for name in &names {
        world.see(name, MINUTE, |observation| observation.verdict = Verdict::Down).await;
    }
    for after in [5_000, 15_000] {
        for name in &names {
            world.see(name, MINUTE + after, |observation| observation.verdict = Verdict::Down).await;
        }
    }
    assert_eq!(world.outbox().await, [r#"trigger host:a:1 storm ["pager","mail"]"#]);
    let parents = world.texts("SELECT COALESCE(parent, 'none') FROM incident WHERE class = 'availability'").await;
    assert_eq!(parents.len(), 8);
    assert!(parents.iter().all(|parent| *parent == parents[0] && parent != "none"), "{parents:?}");
    for name in &names {
        assert_eq!(world.outbox().await.len(), 1, "before {name}");
        world.recover(name, 10 * MINUTE).await;
    }
    assert_eq!(world.outbox().await[1..], [r#"resolve host:a:1 storm ["pager","mail"]"#]);
}

/// A host with ten targets, of which the first eight fail at the first minute.
async fn in_a_storm() -> (World, Vec<String>) {
    let (mut world, names) = under_maintenance(10, 0..0, 0..0).await;
    world.fail_together(&names[..8], MINUTE).await;
    assert_eq!(world.outbox().await, [r#"trigger host:a:1 storm ["pager","mail"]"#]);
    (world, names)
}

impl World {
    async fn ends_storms(&self, at: i64) -> bool {
        end_storms(&self.store, &self.config, Moment(at)).await.unwrap()
    }
}

#[tokio::test]
async fn what_fails_at_once_is_named_by_what_it_has_in_common() {
    for (host, title, hint) in [
        ("a:1", "5 targets on a:1 fail at once", "check a:1 before the single servers"),
        ("jobs", "5 jobs fail at once", "check first whether jobs can reach this monitor, and what they have in common"),
        (
            "local",
            "5 targets on the machine of the monitor fail at once",
            "check this machine before the single servers: its memory, its disk, its load",
        ),
    ] {
        let names: Vec<String> = (0..5).map(|number| format!("t{number}")).collect();
        let targets: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), host)).collect();
        let mut world = World::new(&targets).await;
        world.fail_together(&names, MINUTE).await;
        let statement = "SELECT title, detail FROM incident WHERE class = 'storm'";
        let (said, detail): (String, String) = sqlx::query_as(statement).fetch_one(&world.store.pool).await.unwrap();
        let detail: Detail = serde_json::from_str(&detail).unwrap();
        assert_eq!((said.as_str(), detail.hint.as_deref()), (title, Some(hint)));
    }
}

#[tokio::test]
async fn what_begins_long_after_a_storm_or_when_that_is_nearly_over_is_told_alone() {
    let (mut world, names) = in_a_storm().await;
    world.fail(&names[8], 8 * MINUTE).await;
    assert_eq!(world.outbox().await[1..], [r#"trigger t8 availability ["pager","mail"]"#]);
    let (mut world, names) = in_a_storm().await;
    for name in &names[1..8] {
        world.recover(name, 2 * MINUTE).await;
    }
    world.fail(&names[9], 3 * MINUTE).await;
    assert_eq!(world.outbox().await[1..], [r#"trigger t9 availability ["pager","mail"]"#]);
    // What begins with it is a part of it.
    let (mut world, names) = in_a_storm().await;
    world.fail(&names[9], 3 * MINUTE).await;
    assert_eq!(world.outbox().await.len(), 1);
    // Unless somebody has acknowledged it: nobody would hear of that.
    let (mut world, names) = in_a_storm().await;
    let storm: String = sqlx::query_scalar("SELECT id FROM incident WHERE class = 'storm'").fetch_one(&world.store.pool).await.unwrap();
    assert!(acknowledge(&world.store, &storm, "bob", Moment(2 * MINUTE)).await.unwrap());
    world.fail(&names[9], 3 * MINUTE).await;
    assert_eq!(world.outbox().await.last().map(String::as_str), Some(r#"trigger t9 availability ["pager","mail"]"#));
}

#[tokio::test]
async fn what_outlasts_a_storm_is_told_on_its_own() {
    let (mut world, names) = in_a_storm().await;
    for name in &names[1..8] {
        world.recover(name, 2 * MINUTE).await;
    }
    assert!(!world.ends_storms(3 * MINUTE).await, "the last one may be about to work again");
    assert!(!world.ends_storms(8 * MINUTE).await, "nobody has looked at it since");
    world.see("t0", 8 * MINUTE, |observation| observation.verdict = Verdict::Down).await;
    assert!(world.ends_storms(9 * MINUTE).await);
    assert!(!world.ends_storms(9 * MINUTE).await);
    let told = [r#"resolve host:a:1 storm ["pager","mail"]"#, r#"trigger t0 availability ["pager","mail"]"#];
    assert_eq!(world.outbox().await[1..], told);
    world.recover("t0", 10 * MINUTE).await;
    assert_eq!(world.outbox().await[3..], [r#"resolve t0 availability ["pager","mail"]"#]);
    // The next storm is one.
    world.fail_together(&names, 30 * MINUTE).await;
    assert_eq!(world.outbox().await[4..], [r#"trigger host:a:1 storm ["pager","mail"]"#]);
}

#[tokio::test]
async fn a_storm_of_which_many_are_left_goes_on_however_many_work() {
    let (mut world, names) = under_maintenance(20, 0..0, 0..0).await;
    world.fail_together(&names[..15], MINUTE).await;
    for name in &names[5..15] {
        world.recover(name, 2 * MINUTE).await;
    }
    for name in &names[..5] {
        world.see(name, 8 * MINUTE, |observation| observation.verdict = Verdict::Down).await;
    }
    assert!(!world.ends_storms(9 * MINUTE).await);
    assert_eq!(world.outbox().await.len(), 1);
    // Four are not many.
    world.recover(&names[4], 9 * MINUTE).await;
    for name in &names[..4] {
        world.see(name, 15 * MINUTE, |observation| observation.verdict = Verdict::Down).await;
    }
    assert!(world.ends_storms(16 * MINUTE).await);
    assert_eq!(world.outbox().await.len(), 6);
}

#[tokio::test]
async fn a_storm_of_which_nobody_recovered_is_over_when_a_few_are_left_of_it() {
    let (mut world, names) = under_maintenance(8, 0..0, 0..0).await;
    let down = |observation: &mut Observation| observation.verdict = Verdict::Down;
    for after in [0, 5_000] {
        for name in &names[..6] {
            world.see(name, MINUTE + after, down).await;
        }
    }
    // Only one of them is confirmed.
    world.see(&names[0], MINUTE + 15_000, down).await;
    for name in &names[1..6] {
        world.see(name, MINUTE + 20_000, |_| ()).await;
    }
    assert_eq!(world.outbox().await, [r#"trigger host:a:1 storm ["pager","mail"]"#]);
    world.see(&names[0], 5 * MINUTE, down).await;
    assert!(!world.ends_storms(6 * MINUTE).await);
    assert!(world.ends_storms(7 * MINUTE).await);
    let told = [r#"resolve host:a:1 storm ["pager","mail"]"#, r#"trigger t0 availability ["pager","mail"]"#];
    assert_eq!(world.outbox().await[1..], told);
}

#[tokio::test]
async fn a_second_wave_is_one_page_while_the_first_one_lasts() {
    let (mut world, names) = under_maintenance(20, 0..0, 0..0).await;
    let storms = |kinds: &[&str]| kinds.iter().map(|kind| format!(r#"{kind} host:a:1 storm ["pager","mail"]"#)).collect::<Vec<_>>();
    world.fail_together(&names[..6], MINUTE).await;
    world.fail_together(&names[6..18], 30 * MINUTE).await;
    assert_eq!(world.outbox().await, storms(&["trigger", "resolve", "trigger"]));
    // All of them are parts of the second one.
    let parents = world.texts("SELECT parent FROM incident WHERE class = 'availability'").await;
    assert_eq!((parents.len(), parents.iter().collect::<std::collections::BTreeSet<_>>().len()), (18, 1));
    // One that fails later is told alone, and is nobody's reason for another storm.
    world.fail(&names[18], 60 * MINUTE).await;
    assert_eq!(world.outbox().await[3..], [r#"trigger t18 availability ["pager","mail"]"#]);
    for name in &names[..18] {
        assert_eq!(world.outbox().await.len(), 4, "before {name}");
        world.recover(name, 70 * MINUTE).await;
    }
    assert_eq!(world.outbox().await[4..], storms(&["resolve"]));
}

#[tokio::test]
async fn a_storm_that_goes_on_while_a_few_recover_stays_one() {
    let (mut world, names) = in_a_storm().await;
    world.recover(&names[7], 2 * MINUTE).await;
    for name in &names[..7] {
        world.see(name, 8 * MINUTE, |observation| observation.verdict = Verdict::Down).await;
    }
    assert!(!world.ends_storms(9 * MINUTE).await);
    assert_eq!(world.outbox().await.len(), 1);
}

#[tokio::test]
async fn a_storm_is_told_to_everybody_who_is_to_know_of_one_of_its_targets() {
    let (mut world, names) = under_maintenance(8, 0..0, 0..0).await;
    for (name, tag) in [("t1", "team-b"), ("t5", "team-b"), ("t7", "team-c")] {
        let statement = "UPDATE target SET tags = $1 WHERE name = $2";
        sqlx::query(statement).bind(format!("[\"{tag}\"]")).bind(name).execute(&world.store.pool).await.unwrap();
    }
    for tag in ["team-b", "team-c"] {
        let route = Route { severities: vec![], tags: vec![tag.into()], channels: vec![tag.into()], ..Route::default() };
        world.config.routes.insert(0, route);
    }
    world.fail_together(&names[..7], MINUTE).await;
    let mut told = vec![r#"trigger host:a:1 storm ["pager","mail"]"#, r#"trigger host:a:1 storm ["team-b"]"#];
    assert_eq!(world.outbox().await, told);
    // Who joins it has people, too.
    world.fail("t7", 2 * MINUTE).await;
    told.push(r#"trigger host:a:1 storm ["team-c"]"#);
    assert_eq!(world.outbox().await, told);
}

#[tokio::test]
async fn what_has_failed_for_long_makes_no_storm_of_a_few_others() {
    let (mut world, names) = under_maintenance(8, 0..0, 0..0).await;
    for (name, hour) in names[..4].iter().zip(0..) {
        world.fail(name, hour * 60 * MINUTE).await;
    }
    world.fail_together(&names[4..6], 600 * MINUTE).await;
    assert!(world.outbox().await.iter().all(|told| told.contains(" availability ")));
    assert_eq!(world.outbox().await.len(), 6);
}

#[tokio::test]
async fn a_few_among_many_that_work_are_no_storm() {
    let names: Vec<String> = (0..20).map(|number| format!("t{number:02}")).collect();
    let targets: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "a:1")).collect();
    let mut world = World::new(&targets).await;
    for after in [0, 5_000, 15_000] {
        for (number, name) in names.iter().enumerate() {
            let verdict = if number < 6 { Verdict::Down } else { Verdict::Up };
            world.see(name, MINUTE + after, |observation| observation.verdict = verdict).await;
        }
    }
    let told = world.outbox().await;
    assert_eq!(told.len(), 6, "{told:?}");
    assert!(told.iter().all(|told| told.contains(" availability ")), "{told:?}");
}

/// `t0` and so on, on one host, with planned work from one minute to another on some of them.
async fn under_maintenance(count: usize, planned: std::ops::Range<usize>, minutes: std::ops::Range<i64>) -> (World, Vec<String>) {
    let names: Vec<String> = (0..count).map(|number| format!("t{number}")).collect();
    let targets: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "a:1")).collect();
    let mut world = World::new(&targets).await;
    let when = When::Once { from: Moment(minutes.start * MINUTE), until: Moment(minutes.end * MINUTE) };
    world.config.maintenance = vec![Window { name: "w".into(), targets: names[planned].to_vec(), tags: Vec::new(), when }];
    (world, names)
}

impl World {
    /// Together, so that the first is confirmed when all have been seen failing.
    async fn fail_together(&mut self, names: &[String], at: i64) {
        for after in [0, 5_000, 15_000] {
            for name in names {
                self.see(name, at + after, |observation| observation.verdict = Verdict::Down).await;
            }
        }
    }

    async fn owed(&self, at: i64) -> bool {
        tell_what_is_owed(&self.store, &self.config, Moment(at)).await.unwrap()
    }
}

#[tokio::test]
async fn a_storm_that_began_during_maintenance_and_outlasts_it_is_one_page() {
    let (mut world, names) = under_maintenance(8, 0..8, 0..5).await;
    world.fail_together(&names, MINUTE).await;
    assert!(!world.owed(4 * MINUTE).await);
    assert_eq!(world.outbox().await, Vec::<String>::new());
    // One of them is well again by then: it is nobody's business.
    world.recover(&names[7], 4 * MINUTE).await;
    assert!(world.owed(5 * MINUTE).await);
    assert!(!world.owed(6 * MINUTE).await);
    assert_eq!(world.outbox().await, [r#"trigger host:a:1 storm ["pager","mail"]"#]);
    assert_eq!(world.texts("SELECT DISTINCT title FROM incident WHERE class = 'storm'").await, ["7 targets on a:1 fail at once"]);
    // It ends with the last of them.
    for name in &names[..7] {
        assert_eq!(world.outbox().await.len(), 1, "before {name}");
        world.recover(name, 10 * MINUTE).await;
    }
    assert_eq!(world.outbox().await[1..], [r#"resolve host:a:1 storm ["pager","mail"]"#]);
}

#[tokio::test]
async fn a_few_that_outlast_maintenance_among_many_that_work_are_told_one_by_one() {
    let (mut world, names) = under_maintenance(20, 0..20, 0..5).await;
    world.fail_together(&names[..6], MINUTE).await;
    for name in &names[6..] {
        world.see(name, 4 * MINUTE, |_| ()).await;
    }
    assert!(world.owed(5 * MINUTE).await);
    let told = world.outbox().await;
    assert_eq!(told.len(), 6, "{told:?}");
    assert!(told.iter().all(|told| told.contains(" availability ")), "{told:?}");
}

#[tokio::test]
async fn a_storm_that_ends_during_maintenance_is_told_to_have_ended() {
    let (mut world, names) = under_maintenance(8, 0..8, 5..20).await;
    world.fail_together(&names, MINUTE).await;
    assert_eq!(world.outbox().await, [r#"trigger host:a:1 storm ["pager","mail"]"#]);
    for name in &names {
        world.recover(name, 10 * MINUTE).await;
    }
    assert!(!world.owed(20 * MINUTE).await);
    assert_eq!(world.outbox().await[1..], [r#"resolve host:a:1 storm ["pager","mail"]"#]);
}

#[tokio::test]
async fn who_joins_a_storm_during_maintenance_is_a_part_of_it_afterwards() {
    let (mut world, names) = under_maintenance(8, 6..8, 5..20).await;
    world.fail_together(&names[..6], MINUTE).await;
    world.fail_together(&names[6..], 6 * MINUTE).await;
    assert_eq!(world.outbox().await.len(), 1);
    assert!(world.owed(20 * MINUTE).await);
    // Who knows of the storm is told once of both.
    assert!(!world.owed(21 * MINUTE).await);
    assert_eq!(world.outbox().await[1..], [r#"update host:a:1 storm ["pager","mail"]"#]);
    let detail: Detail = serde_json::from_str(&world.texts("SELECT detail FROM incident WHERE class = 'storm'").await[0]).unwrap();
    assert!(detail.message.ends_with("; t6, t7 fail as well, of which no alert was sent before"), "{}", detail.message);
    assert!(["t6", "t7"].iter().all(|name| detail.members.iter().any(|member| member == name)), "{:?}", detail.members);
    let alone = "SELECT subject FROM incident WHERE class = 'availability' AND parent IS NULL";
    assert_eq!(world.texts(alone).await, Vec::<String>::new());
    for name in &names[..6] {
        world.recover(name, 30 * MINUTE).await;
    }
    assert_eq!(world.outbox().await.len(), 2, "two of them still fail");
    for name in &names[6..] {
        world.recover(name, 40 * MINUTE).await;
    }
    assert_eq!(world.outbox().await[2..], [r#"resolve host:a:1 storm ["pager","mail"]"#]);
}

#[tokio::test]
async fn what_was_silenced_before_a_storm_that_others_know_is_told_when_the_silence_is_over() {
    // Nobody takes care of the storm, or somebody does who knows nothing of it.
    for (acknowledged, told) in
        [(false, r#"update host:a:1 storm ["pager","mail"]"#), (true, r#"trigger t7 availability ["pager","mail"]"#)]
    {
        let (mut world, names) = under_maintenance(8, 7..8, 0..5).await;
        world.fail(&names[7], MINUTE).await;
        world.fail_together(&names[..6], 3 * MINUTE).await;
        assert_eq!(world.outbox().await, [r#"trigger host:a:1 storm ["pager","mail"]"#]);
        if acknowledged {
            let storm = world.texts("SELECT id FROM incident WHERE class = 'storm'").await.remove(0);
            assert!(acknowledge(&world.store, &storm, "bob", Moment(4 * MINUTE)).await.unwrap());
        }
        assert!(world.owed(5 * MINUTE).await);
        assert_eq!(world.outbox().await[1..], [told]);
        assert!(!world.owed(6 * MINUTE).await, "it is told once");
    }
}

#[tokio::test]
async fn what_is_expected_to_fail_makes_no_storm_of_the_others() {
    let (mut world, names) = under_maintenance(8, 0..6, 0..20).await;
    world.fail_together(&names, MINUTE).await;
    // Both are of the same moment.
    let mut told = world.outbox().await;
    told.sort();
    assert_eq!(told, ["t6", "t7"].map(|name| format!(r#"trigger {name} availability ["pager","mail"]"#)));
}

#[tokio::test]
async fn who_shares_a_host_with_one_that_fails_is_looked_at_out_of_turn() {
    let mut world = World::new(&[("t0", "a:1"), ("t1", "a:1"), ("t2", "b:1")]).await;
    world.see("t0", MINUTE, |observation| observation.verdict = Verdict::Down).await;
    let statement = "SELECT target || ' ' || slot || ' ' || attempt || ' ' || due FROM schedule ORDER BY target";
    assert_eq!(world.texts(statement).await, ["t0 120000 0 120000", "t1 60000 9 60000", "t2 60000 9 60000"]);
}

/// Tools with their descriptions.
fn contract(tools: &[(&str, &str)]) -> Contract {
    let tools =
        tools.iter().map(|(name, description)| json!({ "name": name, "description": description, "inputSchema": { "type": "object" } }));
    Contract { tools: Some(tools.collect()), capabilities: serde_json::from_value(json!({ "tools": {} })).unwrap(), ..Contract::default() }
}

/// The first of the contracts is seen twice, then the other one.
async fn after_change(from: &Contract, to: &Contract, announced: Option<&Announcement>) -> World {
    let mut world = World::new(&[("shop", "a:1")]).await;
    for (hash, contract) in [("a", from), ("b", to)] {
        let contract = Contract { hashes: ContractHashes { full: hash.into(), ..ContractHashes::default() }, ..contract.clone() };
        let statement = "INSERT INTO contract (target, hash, first_seen, body) VALUES ('shop', $1, 0, $2)";
        sqlx::query(statement).bind(hash).bind(packed::pack(&contract)).execute(&world.store.pool).await.unwrap();
    }
    for (at, hash) in [(1, "a"), (2, "a"), (3, "b"), (4, "b")] {
        let see = |observation: &mut Observation| observation.contract = Some(hash.into());
        world.see_announced("shop", at * MINUTE, announced, see).await;
    }
    world
}

#[tokio::test]
async fn a_changed_contract_is_told_as_loudly_as_it_matters() {
    let before = contract(&[("buy", "Buys."), ("sell", "Sells.")]);
    let rows = [
        (contract(&[("buy", "Buys.")]), "breaking", "page", r#"trigger shop contract ["pager","mail"]"#),
        (
            contract(&[("buy", "Buys."), ("sell", "Sells."), ("new", "Is new.")]),
            "compatible",
            "notify",
            r#"trigger shop contract ["chat"]"#,
        ),
        (contract(&[("buy", "Buys gold."), ("sell", "Sells.")]), "security", "security", r#"trigger shop contract ["pager","mail"]"#),
    ];
    for (after, level, severity, told) in rows {
        let world = after_change(&before, &after, None).await;
        assert_eq!(world.texts("SELECT level FROM contract_change").await, [level]);
        assert_eq!(world.texts("SELECT severity FROM incident").await, [severity]);
        assert_eq!(world.outbox().await, [told]);
        assert_eq!(world.texts("SELECT surface || ' ' || contract FROM target").await, ["changed b"]);
    }
    let quiet = after_change(&before, &contract(&[]), Some(&Announcement { expected: None })).await;
    assert_eq!(quiet.texts("SELECT level || announced FROM contract_change").await, ["breaking1"]);
    assert_eq!(quiet.outbox().await, Vec::<String>::new());
}

/// Each of the contracts is seen twice, the first from minute 1 on.
async fn after_changes(contracts: &[Contract]) -> World {
    let mut world = World::new(&[("shop", "a:1")]).await;
    for (number, contract) in (1..).zip(contracts) {
        change_contract(&mut world, number, contract).await;
    }
    world
}

async fn change_contract(world: &mut World, number: i64, contract: &Contract) {
    let hash = format!("h{number}");
    let contract = Contract { hashes: ContractHashes { full: hash.clone(), ..ContractHashes::default() }, ..contract.clone() };
    let statement = "INSERT INTO contract (target, hash, first_seen, body) VALUES ('shop', $1, 0, $2)";
    sqlx::query(statement).bind(&hash).bind(packed::pack(&contract)).execute(&world.store.pool).await.unwrap();
    for at in [2 * number - 1, 2 * number] {
        world.see("shop", at * MINUTE, |observation| observation.contract = Some(hash.clone())).await;
    }
}

#[tokio::test]
async fn a_second_change_of_a_contract_is_told_as_loudly_as_both_matter_together() {
    let before = contract(&[("buy", "Buys."), ("sell", "Sells.")]);
    let added = contract(&[("buy", "Buys."), ("sell", "Sells."), ("new", "Is new.")]);
    let poisoned = contract(&[("buy", "Buys gold."), ("sell", "Sells."), ("new", "Is new.")]);
    let gone = contract(&[("buy", "Buys.")]);
    let gone_and_added = contract(&[("buy", "Buys."), ("new", "Is new.")]);
    let (chat, pager) = (r#"trigger shop contract ["chat"]"#, r#"trigger shop contract ["pager","mail"]"#);
    let (to_chat, to_pager) = (r#"update shop contract ["chat"]"#, r#"update shop contract ["pager","mail"]"#);
    let other = contract(&[("buy", "Buys."), ("sell", "Sells."), ("new", "Is new."), ("more", "Is more.")]);
    let rows = [
        (&added, &poisoned, "security", [chat, to_pager], false),
        (&added, &gone, "page", [chat, to_pager], false),
        (&added, &other, "notify", [chat, to_chat], true),
        // What is still gone does not end by itself, whatever came after it.
        (&gone, &gone_and_added, "page", [pager, to_pager], false),
        (&gone, &added, "page", [pager, to_pager], true),
        // A tool that is new and then says something else: a comparison with the first contract does not show it.
        (&added, &contract(&[("buy", "Buys."), ("sell", "Sells."), ("new", "Is gold.")]), "security", [chat, to_pager], false),
    ];
    for (first, second, severity, told, ends) in rows {
        let mut world = after_changes(&[before.clone(), first.clone(), second.clone()]).await;
        assert_eq!(world.texts("SELECT severity FROM incident").await, [severity]);
        assert_eq!(world.outbox().await, told);
        world.see("shop", 25 * 60 * MINUTE, |observation| observation.contract = Some("h3".into())).await;
        let open = world.texts("SELECT id FROM incident WHERE resolved IS NULL").await;
        assert_eq!(open.is_empty(), ends, "{severity}, {told:?}");
    }
}

#[tokio::test]
async fn what_became_worse_while_it_was_muted_is_told_afterwards() {
    let before = contract(&[("buy", "Buys."), ("sell", "Sells.")]);
    let mut world = after_changes(&[before, contract(&[("buy", "Buys."), ("sell", "Sells."), ("new", "Is new.")])]).await;
    sqlx::query("UPDATE target SET muted_until = 600000").execute(&world.store.pool).await.unwrap();
    change_contract(&mut world, 3, &contract(&[("buy", "Buys.")])).await;
    let trigger = r#"trigger shop contract ["chat"]"#;
    assert_eq!(world.outbox().await, [trigger]);
    assert_eq!(world.texts("SELECT severity FROM incident").await, ["page"]);
    assert!(!tell_what_is_owed(&world.store, &world.config, Moment(9 * MINUTE)).await.unwrap());
    assert!(tell_what_is_owed(&world.store, &world.config, Moment(11 * MINUTE)).await.unwrap());
    assert!(!tell_what_is_owed(&world.store, &world.config, Moment(12 * MINUTE)).await.unwrap());
    assert_eq!(world.outbox().await, [trigger, r#"update shop contract ["pager","mail"]"#]);
}

#[tokio::test]
async fn what_becomes_a_page_after_somebody_acknowledged_it_is_to_be_acknowledged_again() {
    const DAY: i64 = 24 * 60 * MINUTE;
    let mut world = World::new(&[("shop", "a:1")]).await;
    let ends = |observation: &mut Observation| observation.certificate_ends = Some(Moment(10 * DAY));
    world.see("shop", MINUTE, ends).await;
    let id = world.texts("SELECT id FROM incident").await.remove(0);
    assert!(acknowledge(&world.store, &id, "ann", Moment(2 * MINUTE)).await.unwrap());
    world.see("shop", 2 * DAY, ends).await;
    assert_eq!(world.texts("SELECT acknowledged_by FROM incident").await, ["ann"]);
    world.see("shop", 4 * DAY, ends).await;
    let route = r#"["pager","mail"]"#;
    assert_eq!(world.outbox().await, [r#"trigger shop certificate ["chat"]"#.to_owned(), format!("update shop certificate {route}")]);
    assert_eq!(world.texts("SELECT severity FROM incident WHERE acknowledged IS NULL").await, ["page"]);
    let raised = world.texts("SELECT text FROM incident_event WHERE kind = 'raised'").await;
    assert_eq!(raised, ["from notify to page: it has to be acknowledged again"]);
    // The last step is no more severe than that.
    assert!(acknowledge(&world.store, &id, "bob", Moment(5 * DAY)).await.unwrap());
    world.see("shop", 10 * DAY - MINUTE, ends).await;
    assert_eq!(world.outbox().await.len(), 3);
    assert_eq!(world.texts("SELECT acknowledged_by FROM incident").await, ["bob"]);
}

/// Somebody may have acknowledged it where nobody tells us.
#[tokio::test]
async fn each_time_that_it_becomes_more_severe_is_written_down() {
    let before = contract(&[("buy", "Buys."), ("sell", "Sells.")]);
    let changes = [before, contract(&[("buy", "Buys.")]), contract(&[("buy", "Buys gold.")])];
    let world = after_changes(&changes).await;
    assert_eq!(world.texts("SELECT severity FROM incident").await, ["security"]);
    assert_eq!(world.texts("SELECT text FROM incident_event WHERE kind = 'worse'").await, ["from page to security"]);
    let id = world.texts("SELECT id FROM incident").await.remove(0);
    assert_eq!(world.store.raised(&id).await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_becomes_a_page_before_its_first_message_was_sent_is_escalated_from_then_on() {
    let mut world = World::new(&[("shop", "a:1")]).await;
    world.fail("shop", MINUTE).await;
    // As a group does: the message that waits says what became of it, so that no other one follows.
    let raised = "INSERT INTO incident_event (incident, at, kind, text) SELECT id, $1, 'raised', '' FROM incident";
    sqlx::query(raised).bind(5 * MINUTE).execute(&world.store.pool).await.unwrap();
    let told = async || world.store.unacknowledged().await.unwrap().iter().map(|one| one.told).collect::<Vec<Moment>>();
    assert_eq!(told().await, [Moment(5 * MINUTE)]);
    // What had been sent before says nothing of it.
    let sent = "UPDATE outbox SET delivered = $1, delivered_by = 'pager'";
    sqlx::query(sent).bind(4 * MINUTE).execute(&world.store.pool).await.unwrap();
    assert_eq!(told().await, Vec::<Moment>::new());
    sqlx::query(sent).bind(6 * MINUTE).execute(&world.store.pool).await.unwrap();
    assert_eq!(told().await, [Moment(5 * MINUTE)]);
}

#[tokio::test]
async fn who_acknowledges_a_changed_contract_takes_it_as_it_is() {
    let world = after_change(&contract(&[("buy", "Buys.")]), &contract(&[]), None).await;
    let id = world.texts("SELECT id FROM incident").await.remove(0);
    assert!(acknowledge(&world.store, &id, "ann", Moment(9 * MINUTE)).await.unwrap());
    assert!(!acknowledge(&world.store, &id, "bob", Moment(9 * MINUTE)).await.unwrap());
    assert_eq!(world.texts("SELECT surface FROM target").await, ["ok"]);
    assert_eq!(world.texts("SELECT acknowledged_by FROM incident WHERE resolved IS NOT NULL").await, ["ann"]);
    let told = world.outbox().await;
    assert_eq!(told.last().map(String::as_str), Some(r#"resolve shop contract ["pager","mail"]"#));
}

impl World {
    /// What is known of targets is what the database says.
    async fn remember(&mut self) {
        let states: Vec<(String, String)> = sqlx::query_as("SELECT name, state FROM target").fetch_all(&self.store.pool).await.unwrap();
        self.states = states.into_iter().map(|(name, state)| (name, serde_json::from_str(&state).unwrap())).collect();
    }

    /// Somebody stands in who cannot read one of the tables.
    async fn stand_in(&self, targets: &[(&str, &str)], unreadable: &str) -> (Self, bool) {
        let memory = Store::in_memory().await.unwrap();
        let run = |statement: String| async {
            sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&self.store.writer).await.unwrap();
        };
        run(format!("ALTER TABLE {unreadable} RENAME TO hidden")).await;
        let reading = memory.read_from(&self.store, "here").await.unwrap();
        assert!(reading.unread.is_some());
        run(format!("ALTER TABLE hidden RENAME TO {unreadable}")).await;
        let memory = Self { store: memory, config: config(), states: BTreeMap::new(), _folder: tempfile::tempdir().unwrap() };
        if !reading.knows_states {
            memory.add(targets).await;
        }
        (memory, reading.knows_states)
    }

    async fn take_over(&mut self, memory: &Self, knows_states: bool, at: i64) {
        self.store.write_from(&memory.store, knows_states, Moment(at)).await.unwrap();
        self.remember().await;
    }
}

const SHOP: [(&str, &str); 1] = [("shop", "a:1")];
const INCIDENTS: &str = "SELECT class || ' ' || subject || ' ' || COALESCE(CAST(resolved AS TEXT), 'open') FROM incident ORDER BY id";

#[tokio::test]
async fn what_was_open_before_an_unread_standby_ends_and_the_next_outage_is_told() {
    let mut world = World::new(&SHOP).await;
    world.fail("shop", MINUTE).await;
    for unreadable in ["target", "schedule", "incident", "outbox"] {
        let (mut memory, knows_states) = world.stand_in(&SHOP, unreadable).await;
        assert!(!knows_states, "{unreadable}");
        memory.recover("shop", 2 * MINUTE).await;
        world.take_over(&memory, knows_states, 3 * MINUTE).await;
        assert_eq!(world.outbox().await, [r#"trigger shop availability ["pager","mail"]"#], "{unreadable}");
        assert_eq!(world.texts("SELECT availability FROM target").await, ["down"]);
        assert_eq!(world.texts("SELECT CAST(last_result AS TEXT) FROM target").await, ["125000"]);
    }
    world.recover("shop", 4 * MINUTE).await;
    world.fail("shop", 10 * MINUTE).await;
    let told = ["trigger", "resolve", "trigger"].map(|kind| format!(r#"{kind} shop availability ["pager","mail"]"#));
    assert_eq!(world.outbox().await, told);
}

#[tokio::test]
async fn what_an_unread_standby_told_anew_goes_on_and_what_was_told_before_ends() {
    let mut world = World::new(&SHOP).await;
    world.fail("shop", MINUTE).await;
    // Of this nobody knows in memory: it stays.
    let statement = "INSERT INTO incident (id, subject, class, severity, title, detail, since, opened) \
                     VALUES ('z', 'shop', 'contract', 'page', '', '{}', 0, 0)";
    sqlx::query(statement).execute(&world.store.writer).await.unwrap();
    let (mut memory, knows_states) = world.stand_in(&SHOP, "incident").await;
    memory.fail("shop", 10 * MINUTE).await;
    // Whoever does not hear that it was written writes it once more.
    for minute in [11, 12] {
        world.take_over(&memory, knows_states, minute * MINUTE).await;
        let told = ["trigger", "trigger", "resolve"].map(|kind| format!(r#"{kind} shop availability ["pager","mail"]"#));
        assert_eq!(world.outbox().await, told);
        assert_eq!(world.texts(INCIDENTS).await, ["availability shop 660000", "availability shop open", "contract shop open"]);
        assert_eq!(world.texts("SELECT kind FROM incident_event ORDER BY at").await, ["opened", "opened", "resolved"]);
    }
    world.recover("shop", 13 * MINUTE).await;
    assert_eq!(world.outbox().await[3..], [r#"resolve shop availability ["pager","mail"]"#]);
    world.fail("shop", 100 * MINUTE).await;
    assert_eq!(world.outbox().await[4..], [r#"trigger shop availability ["pager","mail"]"#]);
}

#[tokio::test]
async fn an_outage_that_began_and_ended_while_nothing_could_be_read_leaves_what_was_known() {
    let mut world = World::new(&SHOP).await;
    world.fail("shop", MINUTE).await;
    let (mut memory, knows_states) = world.stand_in(&SHOP, "incident").await;
    memory.fail("shop", 10 * MINUTE).await;
    memory.recover("shop", 11 * MINUTE).await;
    world.take_over(&memory, knows_states, 12 * MINUTE).await;
    assert_eq!(world.texts(INCIDENTS).await, ["availability shop open", "availability shop 665000"]);
    world.recover("shop", 13 * MINUTE).await;
    assert_eq!(world.texts(INCIDENTS).await, ["availability shop 785000", "availability shop 665000"]);
}

#[tokio::test]
async fn a_storm_that_was_told_anew_takes_the_parts_of_the_older_one() {
    let (mut world, names) = in_a_storm().await;
    let targets: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "a:1")).collect();
    let (mut memory, knows_states) = world.stand_in(&targets, "incident").await;
    for name in &names[6..] {
        memory.see(name, 10 * MINUTE, |_| ()).await;
    }
    memory.fail_together(&names[..6], 10 * MINUTE).await;
    world.take_over(&memory, knows_states, 11 * MINUTE).await;
    let told = ["trigger", "trigger", "resolve"].map(|kind| format!(r#"{kind} host:a:1 storm ["pager","mail"]"#));
    assert_eq!(world.outbox().await, told);
    for name in &names[..8] {
        assert_eq!(world.outbox().await.len(), 3, "before {name}");
        world.recover(name, 20 * MINUTE).await;
    }
    assert_eq!(world.outbox().await[3..], [r#"resolve host:a:1 storm ["pager","mail"]"#]);
    assert!(world.texts(INCIDENTS).await.iter().all(|incident| !incident.ends_with(" open")));
}

#[tokio::test]
async fn a_storm_is_one_page_where_the_clock_is_set_back_while_it_is_confirmed() {
    let names: Vec<String> = (0..8).map(|number| format!("t{number}")).collect();
    let mut world = World::new(&names.iter().map(|name| (name.as_str(), "a:1")).collect::<Vec<_>>()).await;
    let begin = 1_000 * MINUTE;
    for name in &names {
        for after in [0, 5_000] {
            world.see(name, begin + after, |observation| observation.verdict = Verdict::Down).await;
        }
    }
    for name in &names {
        // An hour back, and what was seen is an hour ahead.
        let (at, now) = (begin + 15_000, begin - 60 * MINUTE);
        world.see_when(name, at, now, None, |observation| observation.verdict = Verdict::Down).await;
    }
    assert_eq!(world.outbox().await, [r#"trigger host:a:1 storm ["pager","mail"]"#]);
}

/// Two processes stand in for one database; this is the one that is late.
async fn late(world: &World) -> World {
    let (mut memory, knows_states) = world.stand_in(&SHOP, "deploy").await;
    assert!(knows_states);
    memory.remember().await;
    memory
}

const TOLD: [&str; 2] = [r#"trigger shop availability ["pager","mail"]"#, r#"resolve shop availability ["pager","mail"]"#];

#[tokio::test]
async fn what_was_told_in_memory_by_one_who_was_overtaken_ends_when_the_target_works() {
    let mut world = World::new(&SHOP).await;
    world.see("shop", MINUTE, |_| ()).await;
    let mut memory = late(&world).await;
    memory.fail("shop", 2 * MINUTE).await;
    // Meanwhile another process goes on with the database, and sees it work.
    world.see("shop", 3 * MINUTE, |_| ()).await;
    world.take_over(&memory, true, 4 * MINUTE).await;
    assert_eq!(world.outbox().await, TOLD[..1]);
    world.recover("shop", 5 * MINUTE).await;
    assert_eq!(world.outbox().await, TOLD);
    // The end, too: it goes on from there, and the next outage is told.
    world.fail("shop", 100 * MINUTE).await;
    let mut memory = late(&world).await;
    memory.recover("shop", 102 * MINUTE).await;
    world.see("shop", 103 * MINUTE, |observation| observation.verdict = Verdict::Down).await;
    world.take_over(&memory, true, 104 * MINUTE).await;
    assert_eq!(world.outbox().await, [TOLD, TOLD].concat());
    world.fail("shop", 200 * MINUTE).await;
    assert_eq!(world.outbox().await[4..], TOLD[..1]);
}

#[tokio::test]
async fn what_was_told_in_memory_of_a_target_that_is_gone_ends_when_it_is_written() {
    let mut world = World::new(&SHOP).await;
    world.see("shop", MINUTE, |_| ()).await;
    let mut memory = late(&world).await;
    memory.fail("shop", 2 * MINUTE).await;
    world.store.sync_targets(&[], "here", Moment(3 * MINUTE)).await.unwrap();
    world.take_over(&memory, true, 4 * MINUTE).await;
    assert_eq!(world.outbox().await, TOLD);
    assert!(world.texts(INCIDENTS).await.iter().all(|incident| !incident.ends_with(" open")));
}

#[tokio::test]
async fn what_two_told_at_the_same_time_ends_for_one_of_them_and_says_that_the_other_goes_on() {
    let mut world = World::new(&SHOP).await;
    world.see("shop", MINUTE, |_| ()).await;
    let (mut one, mut other) = (late(&world).await, late(&world).await);
    one.fail("shop", 2 * MINUTE).await;
    other.fail("shop", 2 * MINUTE).await;
    world.take_over(&one, true, 3 * MINUTE).await;
    world.take_over(&other, true, 3 * MINUTE).await;
    // Of two that were told in the same millisecond either may be the one that ends.
    let told = async |world: &World| {
        let mut told = world.outbox().await;
        told.sort();
        told
    };
    assert_eq!(told(&world).await, [TOLD[1], TOLD[0], TOLD[0]]);
    let titles = world.texts("SELECT title FROM incident WHERE resolved IS NOT NULL").await;
    assert_eq!(titles, ["shop is down: connection refused (alerted twice: the other alert stays open)"]);
    world.recover("shop", 4 * MINUTE).await;
    assert_eq!(told(&world).await, [TOLD[1], TOLD[1], TOLD[0], TOLD[0]]);
}

#[tokio::test]
async fn what_can_be_read_is_used_when_something_else_cannot() {
    let mut world = World::new(&SHOP).await;
    world.fail("shop", MINUTE).await;
    let (mut memory, knows_states) = world.stand_in(&SHOP, "deploy").await;
    assert!(knows_states);
    memory.remember().await;
    memory.recover("shop", 2 * MINUTE).await;
    world.take_over(&memory, knows_states, 3 * MINUTE).await;
    let told = ["trigger", "resolve"].map(|kind| format!(r#"{kind} shop availability ["pager","mail"]"#));
    assert_eq!(world.outbox().await, told);
}

#[tokio::test]
async fn what_is_written_late_is_counted() {
    let mut world = World::new(&SHOP).await;
    let (memory, knows_states) = world.stand_in(&SHOP, "incident").await;
    let statement = "INSERT INTO result (target, slot, region, attempt, at, verdict, duration, phases) \
                     VALUES ('shop', $1, 'here', 0, $1, 'down', 0, '{}')";
    for minute in 10..15 {
        sqlx::query(statement).bind(minute * MINUTE).execute(&memory.store.writer).await.unwrap();
    }
    let now = Moment(40 * MINUTE);
    let none = world.store.take_chore("count", "here", Duration::ZERO, now).await.unwrap().unwrap();
    let until = world.store.roll_up(none, now).await.unwrap();
    world.store.end_chore("count", "here", until).await.unwrap();
    // Somebody counts just now.
    world.store.take_chore("count", "here", Duration::ZERO, now).await.unwrap().unwrap();
    world.take_over(&memory, knows_states, 40 * MINUTE).await;
    world.store.end_chore("count", "here", until).await.unwrap();
    let since = world.store.take_chore("count", "here", Duration::ZERO, now).await.unwrap().unwrap();
    assert_eq!(since, Moment(10 * MINUTE));
    world.store.roll_up(since, now).await.unwrap();
    let counts = "SELECT start || ' ' || bad FROM rollup WHERE width = 300000 ORDER BY start";
    assert_eq!(world.texts(counts).await, ["600000 5"]);
    // What was counted up to before that stays so.
    sqlx::query("UPDATE chore SET last_run = 1 WHERE name = 'count'").execute(&world.store.writer).await.unwrap();
    world.take_over(&memory, knows_states, 40 * MINUTE).await;
    assert_eq!(world.texts("SELECT CAST(last_run AS TEXT) FROM chore WHERE name = 'count'").await, ["1"]);
}

#[tokio::test]
async fn whoever_may_have_been_told_is_known_in_memory_and_written_back_once() {
    let mut world = World::new(&SHOP).await;
    world.fail("shop", MINUTE).await;
    let statement = "INSERT INTO incident_event (incident, at, kind, text) SELECT id, 90000, 'unconfirmed', 'pager' FROM incident";
    sqlx::query(statement).execute(&world.store.writer).await.unwrap();
    let (memory, knows_states) = world.stand_in(&SHOP, "deploy").await;
    let unsure = "SELECT text FROM incident_event WHERE kind = 'unconfirmed'";
    assert_eq!(memory.texts(unsure).await, ["pager"]);
    assert_eq!(memory.texts("SELECT kind FROM incident_event").await, ["unconfirmed"]);
    world.take_over(&memory, knows_states, 3 * MINUTE).await;
    assert_eq!(world.texts(unsure).await, ["pager"]);
}
