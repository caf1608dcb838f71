//! What people are told, over real connections to services that record it: with failures, in order, and to the next channel
//! when one does not take it. The clock jumps.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod databases;
mod frozen;
#[path = "delivery/guard.rs"]
mod guard;
mod postgres;
#[path = "delivery/real.rs"]
mod real;
mod receiver;
mod receivers;

use databases::{Claim, claims};
use frozen::Freezable;
use guard::*;
use libtest_mimic::Arguments;
use mcproof_client::Network;
use mcproof_suite::Environment;
use mcproof_watch::channel::{DeliveryClient, Kind};
use mcproof_watch::config::{Secret, load};
use mcproof_watch::heartbeat::{HeartbeatOutcome, HeartbeatSender};
use mcproof_watch::moment::Moment;
use mcproof_watch::notifier::{Notifier, Sent};
use mcproof_watch::store::Store;
use mcproof_watch::worker::{Plan, WorkerHealth};
use receiver::{Heard, Receiver, Reply};
use serde_json::{Value, json};
use sqlx::{AnyPool, Row as _};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

const CLAIMS: &[(&str, Claim)] = claims![
    a_message_is_told_once_and_in_its_order,
    a_failure_that_may_pass_is_tried_again_under_the_same_key,
    the_next_channel_is_told_after_two_minutes_and_its_end_goes_where_the_begin_went,
    an_end_goes_where_its_begin_went_whatever_that_is_called_now,
    an_end_whose_channel_is_gone_goes_where_the_incident_would_go_now,
    a_channel_that_has_another_name_or_key_is_told_one_end,
    a_process_ends_an_alert_with_the_key_that_opened_it,
    a_refusal_goes_to_the_next_channel_at_once_and_a_page_is_never_given_up,
    alerts_that_may_be_open_somewhere_are_closed_there_too,
    an_alert_whose_response_was_lost_ends_though_another_way_was_told,
    what_becomes_more_severe_opens_another_alert_and_all_of_them_end,
    each_alert_is_told_its_end_until_the_service_has_taken_or_refused_it,
    ways_of_one_incident_do_not_wait_for_each_other,
    people_are_reminded_until_somebody_acknowledges_and_then_told_who,
    all_that_were_told_are_reminded_each_in_its_time,
    who_comes_next_is_told_until_somebody_acknowledges,
    what_becomes_a_page_later_is_escalated_from_then_on_and_acknowledged_anew,
    nobody_else_is_told_during_maintenance_and_each_once_after_it,
    an_escalation_that_nobody_took_is_dropped_once_somebody_takes_care,
    a_reminder_of_a_storm_names_those_who_still_fail,
    a_group_goes_the_way_of_its_tags_and_is_quiet_while_all_of_it_is,
    nobody_is_reminded_during_maintenance,
    an_alertmanager_is_told_again_until_the_end,
    two_notifiers_do_not_send_the_same_message,
    two_notifiers_give_no_two_ends_of_one_incident_the_same_channel,
    what_was_taken_while_the_database_failed_is_not_sent_again_by_who_sent_it,
    what_a_dead_notifier_had_leased_is_sent_when_its_lease_is_over,
    a_message_of_an_incident_that_is_gone_holds_nothing_up,
    who_lost_the_row_while_sending_writes_nothing,
    what_answers_everything_with_200_has_taken_no_page,
    mail_goes_out_and_what_a_server_refuses_for_good_is_refused,
    whom_a_server_refuses_for_a_moment_gets_the_mail_later_and_nobody_gets_it_twice,
    nothing_is_sent_once_the_right_to_it_is_gone,
    what_arrives_arrives_while_its_sender_has_it_to_itself,
    without_the_guard_somebody_hears_of_a_begin_after_its_end,
    the_heart_beats_only_while_results_come_in,
    the_heart_needs_every_region,
    a_page_that_no_channel_takes_silences_the_heart_and_has_an_age,
    a_page_that_its_route_does_not_take_goes_to_the_other_channels,
    a_channel_that_hangs_holds_up_nobody_else,
    a_channel_has_words_of_its_own_and_a_template_that_fails_keeps_nothing_back,
];

const CLAIMS_OF_POSTGRES: &[(&str, Claim)] = claims![a_notifier_that_stalls_in_its_transaction_holds_nobody_up];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, relay] = &words[..]
        && word == "--post"
    {
        return real::post_to(relay);
    }
    let arguments = Arguments::from_args();
    let trials = databases::trials(CLAIMS, CLAIMS_OF_POSTGRES, &arguments).into_iter().chain(real::trials());
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

const BEGIN: Moment = Moment(1_767_225_600_000);
const INCIDENT: &str = "0197-incident";

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// A database with one incident, and a notifier whose clock is ours.
struct World {
    rows: AnyPool,
    store: Store,
    notifier: Notifier,
    file: watch::Sender<Arc<Plan>>,
    now: Moment,
    written: u32,
}

impl World {
    async fn new(address: &str, config: &str) -> Self {
        let (file, plan) = watch::channel(plan_of(config));
        let store = Store::open(address).await.unwrap();
        let rows = AnyPool::connect(address).await.unwrap();
        for table in ["DELETE FROM outbox", "DELETE FROM incident", "DELETE FROM incident_event"] {
            sqlx::query(table).execute(&rows).await.unwrap();
        }
        let notifier = Notifier::new(store.clone(), plan, DeliveryClient::new(Network::default()));
        let world = Self { rows, store, notifier, file, now: BEGIN, written: 0 };
        let statement = "INSERT INTO incident (id, subject, class, severity, title, detail, since, opened, evidence) \
                         VALUES ($1, 'shop', 'availability', 'page', 'shop is down', '{\"message\":\"connection refused\"}', $2, $2, 'ev-1')";
        sqlx::query(statement).bind(INCIDENT).bind(BEGIN.0).execute(&world.rows).await.unwrap();
        world
    }

    /// The file is another one now, and the process as well.
    fn configure(&mut self, config: &str) {
        let (file, plan) = watch::channel(plan_of(config));
        self.notifier = Notifier::new(self.store.clone(), plan, DeliveryClient::new(Network::default()));
        self.file = file;
    }

    /// The file is another one now, and the process has read it.
    fn reload(&self, config: &str) {
        self.file.send_replace(plan_of(config));
    }

    /// Writes what is to be told.
    async fn write(&mut self, kind: Kind, route: &[&str]) {
        self.written += 1;
        let statement = "INSERT INTO outbox (id, incident, kind, route, created, due) VALUES ($1, $2, $3, $4, $5, $5)";
        sqlx::query(statement)
            .bind(format!("{:013}-{}", self.now.0, self.written))
            .bind(INCIDENT)
            .bind(kind.word())
            .bind(serde_json::to_string(route).unwrap())
            .bind(self.now.0)
            .execute(&self.rows)
            .await
            .unwrap();
    }

    async fn run(&self, statement: &'static str) {
        sqlx::query(statement).bind(self.now.0).execute(&self.rows).await.unwrap();
    }

    /// Passes until nothing is due now.
    async fn settle(&mut self) -> (Vec<Sent>, Option<Moment>) {
        let mut sent = Vec::new();
        loop {
            let round = self.notifier.pass(self.now).await.unwrap();
            sent.extend(round.sent);
            match round.next {
                Some(next) if next <= self.now => {}
                next => return (sent, next),
            }
        }
    }

    /// Lets time pass, and gives all that was sent until then.
    async fn until(&mut self, end: Moment) -> Vec<Sent> {
        let mut all = Vec::new();
        loop {
            let (sent, next) = self.settle().await;
            all.extend(sent);
            match next {
                Some(next) if next <= end => self.now = next,
                _ => {
                    self.now = end;
                    all.extend(self.settle().await.0);
                    return all;
                }
            }
        }
    }

    async fn events(&self) -> Vec<String> {
        let rows = sqlx::query("SELECT kind, text FROM incident_event ORDER BY at").fetch_all(&self.rows).await.unwrap();
        rows.iter().map(|row| format!("{}: {}", row.get::<String, _>(0), row.get::<String, _>(1))).collect()
    }

    async fn open(&self) -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM outbox WHERE delivered IS NULL").fetch_one(&self.rows).await.unwrap()
    }
}

fn plan_of(config: &str) -> Arc<Plan> {
    let loaded = load("w.yaml", config, Path::new("/"), &Environment::default()).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    Arc::new(Plan { config: Arc::new(loaded.config), targets: BTreeMap::new() })
}

/// A service that keeps alerts, under this name and with this key, and others that are told.
fn duty(name: &str, key: &str, pager: &Receiver, others: &[(&str, &Receiver)]) -> String {
    let url = pager.url("/v2/enqueue");
    format!("{}  {name}: {{ pagerduty: {{ routing_key: {key}, url: \"{url}\" }} }}\n", hooks(others))
}

/// What it was told, and with which key.
fn told_by_key(pager: &Receiver) -> Vec<String> {
    let heard = pager.heard();
    let told = heard.iter().map(Heard::json);
    told.map(|told| format!("{} {}", told["routing_key"].as_str().unwrap(), told["event_action"].as_str().unwrap())).collect()
}

fn kinds(receiver: &Receiver) -> Vec<String> {
    receiver.heard().iter().map(|heard| heard.json()["kind"].as_str().unwrap().to_owned()).collect()
}

fn hooks(receivers: &[(&str, &Receiver)]) -> String {
    let channels: String =
        receivers.iter().map(|(name, receiver)| format!("  {name}: {{ webhook: \"{}\" }}\n", receiver.url("/"))).collect();
    format!("channels:\n{channels}")
}

async fn a_message_is_told_once_and_in_its_order(address: String) {
    let chat = Receiver::http().await;
    let mut world = World::new(&address, &hooks(&[("chat", &chat)])).await;
    world.write(Kind::Trigger, &["chat"]).await;
    world.write(Kind::Update, &["chat"]).await;
    world.write(Kind::Resolve, &["chat"]).await;
    let (sent, next) = world.settle().await;
    // What came in between is not told after the end.
    assert_eq!(kinds(&chat), ["trigger", "resolve"]);
    assert_eq!((sent.len(), next, world.open().await), (2, None, 0));
    let heard = chat.heard();
    assert!(heard.iter().all(|heard| heard.json()["incident"] == INCIDENT));
    assert_eq!(heard[0].json()["message"], "connection refused");
    assert_ne!(heard[0].header("idempotency-key"), heard[1].header("idempotency-key"));
}

async fn a_failure_that_may_pass_is_tried_again_under_the_same_key(address: String) {
    for (reply, count) in [
        (Reply::Status(500, ""), 2),
        (Reply::Status(429, "retry-after: 40\r\n"), 2),
        (Reply::Status(408, ""), 2),
        (Reply::Body("Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429"), 2),
        (Reply::Drop, 2),
        (Reply::Hang, 2),
    ] {
        let chat = Receiver::http().await;
        chat.will([reply.clone()]);
        let mut world = World::new(&address, &hooks(&[("chat", &chat)])).await;
        world.write(Kind::Trigger, &["chat"]).await;
        let (_, next) = world.settle().await;
        assert_eq!(chat.heard().len(), 1, "{reply:?}");
        assert_eq!(world.open().await, 1, "{reply:?}");
        let wait = next.unwrap().since(world.now);
        let expected = if matches!(reply, Reply::Status(429, _)) { seconds(40)..seconds(41) } else { seconds(1)..seconds(15) };
        assert!(expected.contains(&wait), "{reply:?}: {wait:?}");
        // Whoever has nothing to tell yet, waits for it.
        world.write(Kind::Resolve, &["chat"]).await;
        assert_eq!(world.settle().await.0, [], "{reply:?}");
        world.until(BEGIN + seconds(60)).await;
        let heard = chat.heard();
        assert_eq!(kinds(&chat), ["trigger", "trigger", "resolve"], "{reply:?}");
        assert_eq!(heard[0].header("idempotency-key"), heard[count - 1].header("idempotency-key"), "{reply:?}");
    }
}

async fn the_next_channel_is_told_after_two_minutes_and_its_end_goes_where_the_begin_went(address: String) {
    let (mut pager, chat) = (Receiver::http().await, Receiver::http().await);
    let config = hooks(&[("pager", &pager), ("chat", &chat)]);
    pager.end().await;
    let mut world = World::new(&address, &config).await;
    world.write(Kind::Trigger, &["pager", "chat"]).await;
    world.until(BEGIN + seconds(119)).await;
    assert_eq!((kinds(&chat).len(), world.open().await), (0, 1));
    world.until(BEGIN + seconds(121)).await;
    assert_eq!((kinds(&chat), world.open().await), (vec!["trigger".to_owned()], 0));
    let events = world.events().await;
    assert!(events[0].starts_with("failed-over: pager did not accept the trigger (connection to 127.0.0.1:"), "{events:?}");
    assert!(events[0].ends_with("trying chat"), "{events:?}");
    assert_eq!(events[1], "sent: trigger by chat: status 202: ok");
    world.write(Kind::Resolve, &["pager", "chat"]).await;
    world.settle().await;
    assert_eq!((kinds(&chat), world.open().await), (vec!["trigger".to_owned(), "resolve".to_owned()], 0));
}

async fn an_end_goes_where_its_begin_went_whatever_that_is_called_now(address: String) {
    let (pager, chat) = (Receiver::http().await, Receiver::http().await);
    let mut world = World::new(&address, &hooks(&[("oncall", &pager), ("chat", &chat)])).await;
    world.write(Kind::Trigger, &["oncall"]).await;
    world.settle().await;
    // The names are exchanged, and another one is told of it.
    world.configure(&hooks(&[("chat", &pager), ("oncall", &chat)]));
    world.write(Kind::Update, &["oncall"]).await;
    world.settle().await;
    // One has another name.
    world.configure(&hooks(&[("duty", &pager), ("oncall", &chat)]));
    world.run("UPDATE incident SET acknowledged = $1, acknowledged_by = 'ann'").await;
    world.settle().await;
    world.write(Kind::Resolve, &["oncall"]).await;
    world.settle().await;
    assert_eq!(kinds(&pager), ["trigger", "acknowledge", "resolve"]);
    assert_eq!(kinds(&chat), ["update", "acknowledge", "resolve"]);
    assert_eq!(world.open().await, 0);
}

async fn an_end_whose_channel_is_gone_goes_where_the_incident_would_go_now(address: String) {
    let (pager, chat, mail) = (Receiver::http().await, Receiver::http().await, Receiver::http().await);
    let mut world = World::new(&address, &hooks(&[("oncall", &pager)])).await;
    world.write(Kind::Trigger, &["oncall"]).await;
    world.settle().await;
    world.configure(&format!("{}routes: [{{ channels: [mail, chat] }}]\n", hooks(&[("mail", &mail), ("chat", &chat)])));
    world.write(Kind::Resolve, &["oncall"]).await;
    world.until(BEGIN + seconds(10)).await;
    assert_eq!((kinds(&pager), kinds(&mail)), (vec!["trigger".to_owned()], vec!["resolve".to_owned()]));
    assert_eq!((chat.heard().len(), world.open().await), (0, 0));
    assert!(world.events().await.iter().any(|event| event.contains("unknown channel `oncall`") && event.ends_with("trying mail")));
    // Two channels are gone, and there is one in their place.
    let (mail, duty) = (Receiver::http().await, Receiver::http().await);
    let mut world = World::new(&address, &hooks(&[("oncall", &pager), ("duty", &duty)])).await;
    world.write(Kind::Trigger, &["oncall"]).await;
    world.write(Kind::Update, &["duty"]).await;
    world.settle().await;
    world.configure(&format!("{}routes: [{{ channels: mail }}]\n", hooks(&[("mail", &mail)])));
    world.write(Kind::Resolve, &["oncall"]).await;
    world.until(BEGIN + seconds(10)).await;
    assert_eq!((kinds(&mail), world.open().await), (vec!["resolve".to_owned()], 0));
    // Whoever is told anyway is told once.
    let mut world = World::new(&address, &hooks(&[("oncall", &pager), ("chat", &chat)])).await;
    world.write(Kind::Trigger, &["oncall"]).await;
    world.write(Kind::Update, &["chat"]).await;
    world.settle().await;
    world.configure(&format!("{}routes: [{{ channels: chat }}]\n", hooks(&[("chat", &chat)])));
    world.write(Kind::Resolve, &["oncall"]).await;
    world.until(BEGIN + seconds(10)).await;
    assert_eq!((kinds(&chat), world.open().await), (vec!["update".to_owned(), "resolve".to_owned()], 0));
    // The same if it has another name by now.
    let mut world = World::new(&address, &hooks(&[("oncall", &pager), ("chat", &chat)])).await;
    world.write(Kind::Trigger, &["oncall"]).await;
    world.write(Kind::Update, &["chat"]).await;
    world.settle().await;
    world.configure(&format!("{}routes: [{{ channels: web }}]\n", hooks(&[("web", &chat)])));
    world.write(Kind::Resolve, &["oncall"]).await;
    world.until(BEGIN + seconds(10)).await;
    assert_eq!((kinds(&chat)[2..].to_vec(), world.open().await), (vec!["update".to_owned(), "resolve".to_owned()], 0));
}

async fn a_channel_that_has_another_name_or_key_is_told_one_end(address: String) {
    let (pager, chat) = (Receiver::http().await, Receiver::http().await);
    // Nobody knows whether it has taken anything, and it has another name by now.
    let mut world = World::new(&address, &duty("duty", "one-key", &pager, &[("chat", &chat)])).await;
    pager.will(vec![Reply::Drop; 100]);
    world.write(Kind::Trigger, &["duty", "chat"]).await;
    world.until(BEGIN + seconds(130)).await;
    assert_eq!(kinds(&chat), ["trigger"]);
    let before = pager.heard().len();
    pager.recover();
    world.configure(&format!("{}routes: [{{ channels: chat }}]\n", duty("pd", "one-key", &pager, &[("chat", &chat)])));
    world.write(Kind::Resolve, &["duty", "chat"]).await;
    world.until(BEGIN + seconds(200)).await;
    assert_eq!((&told_by_key(&pager)[before..], world.open().await), (&["one-key resolve".to_owned()][..], 0));
    // It has taken something under one name, and nobody knows whether under the other.
    let pager = Receiver::http().await;
    let mut world = World::new(&address, &duty("duty", "one-key", &pager, &[])).await;
    world.write(Kind::Trigger, &["duty"]).await;
    world.settle().await;
    world.configure(&duty("pd", "one-key", &pager, &[]));
    pager.will([Reply::Drop]);
    world.write(Kind::Update, &["pd"]).await;
    world.settle().await;
    world.write(Kind::Resolve, &["pd"]).await;
    world.until(BEGIN + seconds(60)).await;
    assert_eq!(
        (told_by_key(&pager), world.open().await),
        (["trigger", "trigger", "resolve"].map(|kind| format!("one-key {kind}")).to_vec(), 0)
    );
    // It has another key, and was told something since; the process that knew the other one has ended.
    let pager = Receiver::http().await;
    let mut world = World::new(&address, &duty("duty", "one-key", &pager, &[])).await;
    world.write(Kind::Trigger, &["duty"]).await;
    world.settle().await;
    world.configure(&duty("duty", "another-key", &pager, &[]));
    world.write(Kind::Update, &["duty"]).await;
    world.settle().await;
    world.run("UPDATE incident SET acknowledged = $1, acknowledged_by = 'ann'").await;
    world.settle().await;
    world.write(Kind::Resolve, &["duty"]).await;
    world.until(BEGIN + seconds(60)).await;
    let expected = ["one-key trigger", "another-key trigger", "another-key acknowledge", "another-key resolve"];
    assert_eq!((told_by_key(&pager), world.open().await), (expected.map(str::to_owned).to_vec(), 0));
}

async fn a_process_ends_an_alert_with_the_key_that_opened_it(address: String) {
    let pager = Receiver::http().await;
    let mut world = World::new(&address, &duty("duty", "one-key", &pager, &[])).await;
    world.write(Kind::Trigger, &["duty"]).await;
    world.settle().await;
    world.reload(&duty("duty", "another-key", &pager, &[]));
    world.write(Kind::Update, &["duty"]).await;
    world.settle().await;
    world.write(Kind::Resolve, &["duty"]).await;
    world.until(BEGIN + seconds(60)).await;
    let mut told = told_by_key(&pager);
    // Whichever of the two is first.
    told[2..].sort();
    assert_eq!(told, ["one-key trigger", "another-key trigger", "another-key resolve", "one-key resolve"]);
    // The service no longer takes it.
    let pager = Receiver::http().await;
    let mut world = World::new(&address, &duty("duty", "one-key", &pager, &[])).await;
    world.write(Kind::Trigger, &["duty"]).await;
    world.settle().await;
    world.reload(&duty("duty", "another-key", &pager, &[]));
    pager.will([Reply::Status(403, "")]);
    world.write(Kind::Resolve, &["duty"]).await;
    world.until(BEGIN + seconds(60)).await;
    assert_eq!(told_by_key(&pager), ["one-key trigger", "one-key resolve", "another-key resolve"]);
    let events = world.events().await;
    assert!(events.iter().any(|event| event.contains("close the alert there")), "{events:?}");
}

/// Many messages wait for a channel that does not respond: one of them finds out whether it does again, and a page goes before all of
/// them.
async fn a_channel_that_hangs_holds_up_nobody_else(address: String) {
    let (chat, duty) = (Receiver::http().await, Receiver::http().await);
    let mut world = World::new(&address, &hooks(&[("chat", &chat), ("duty", &duty)])).await;
    world.notifier = world.notifier.leasing(seconds(3));
    let notify = "INSERT INTO incident (id, subject, class, severity, title, detail, since, opened) \
                  VALUES ($1, $1, 'certificate', 'notify', 'it ends soon', '{\"message\":\"x\"}', $2, $2)";
    let message = "INSERT INTO outbox (id, incident, kind, route, created, due) VALUES ($1, $1, 'trigger', '[\"chat\"]', $2, $2)";
    for number in 0..40 {
        for statement in [notify, message] {
            sqlx::query(statement).bind(format!("shop-{number:02}")).bind(BEGIN.0).execute(&world.rows).await.unwrap();
        }
    }
    chat.will(std::iter::repeat_n(Reply::Hang, 34));
    // As many as go at once; of the others, one.
    world.notifier.pass(world.now).await.unwrap();
    assert_eq!(chat.heard().len(), 32);
    world.notifier.pass(world.now).await.unwrap();
    assert_eq!(chat.heard().len(), 33);
    world.now = world.now + seconds(60);
    world.write(Kind::Trigger, &["duty"]).await;
    let sent = world.notifier.pass(world.now).await.unwrap().sent;
    assert_eq!((duty.heard().len(), chat.heard().len()), (1, 34), "{sent:?}");
    assert_eq!(sent.iter().filter(|sent| sent.outcome.is_ok()).count(), 1);
    // It responds again, and nothing is lost.
    world.until(world.now + seconds(600)).await;
    assert_eq!((world.open().await, duty.heard().len()), (0, 1));
    let told: std::collections::BTreeSet<String> =
        chat.heard().iter().skip(34).map(|heard| heard.json()["target"].as_str().unwrap().to_owned()).collect();
    assert_eq!(told.len(), 40);
}

async fn a_refusal_goes_to_the_next_channel_at_once_and_a_page_is_never_given_up(address: String) {
    let (pager, chat) = (Receiver::http().await, Receiver::http().await);
    pager.will(vec![Reply::Status(400, ""); 50]);
    chat.will(vec![Reply::Status(404, ""); 3]);
    let mut world = World::new(&address, &hooks(&[("pager", &pager), ("chat", &chat)])).await;
    world.write(Kind::Trigger, &["pager", "nobody", "chat"]).await;
    let sent = world.until(BEGIN + seconds(25)).await;
    let outcomes: Vec<_> = sent.iter().map(|sent| (sent.channel.as_str(), sent.outcome.clone().unwrap_err())).collect();
    assert_eq!(
        outcomes,
        [("pager", "status 400: ok".to_owned()), ("nobody", "unknown channel `nobody`".to_owned()), ("chat", "status 404: ok".to_owned())]
    );
    assert!(world.until(BEGIN + seconds(29)).await.is_empty());
    world.until(BEGIN + seconds(600)).await;
    assert_eq!((chat.heard().len(), world.open().await), (4, 0));
}

async fn what_answers_everything_with_200_has_taken_no_page(address: String) {
    let pager = Receiver::http().await;
    let key = "routing_key: r0uting-key";
    let config = format!("channels:\n  pager: {{ pagerduty: {{ {key}, url: \"{}\" }} }}\n", pager.url("/v2/enqueue"));
    pager.will([Reply::Body(""), Reply::Body("welcome"), Reply::Body(r#"{"status":"success"}"#)]);
    let mut world = World::new(&address, &config).await;
    world.write(Kind::Trigger, &["pager"]).await;
    let sent = world.until(BEGIN + seconds(60)).await;
    assert_eq!((pager.heard().len(), world.open().await), (3, 0), "{sent:?}");
    assert!(sent[0].outcome.as_ref().is_err_and(|why| why.ends_with("which is not a response of this service")), "{sent:?}");
}

async fn alerts_that_may_be_open_somewhere_are_closed_there_too(address: String) {
    let (pager, chat) = (Receiver::http().await, Receiver::http().await);
    pager.will(vec![Reply::Drop; 100]);
    let config = format!(
        "channels:\n  pager: {{ pagerduty: {{ routing_key: r0uting-key, url: \"{}\" }} }}\n  chat: {{ webhook: \"{}\" }}\n",
        pager.url("/v2/enqueue"),
        chat.url("/")
    );
    let mut world = World::new(&address, &config).await;
    world.write(Kind::Trigger, &["pager", "chat"]).await;
    world.until(BEGIN + seconds(130)).await;
    assert_eq!(kinds(&chat), ["trigger"]);
    let events = world.events().await;
    assert_eq!(events.iter().filter(|event| event.starts_with("unconfirmed: pager ")).count(), 1, "{events:?}");
    world.write(Kind::Resolve, &["pager", "chat"]).await;
    world.until(BEGIN + seconds(3600 * 24)).await;
    assert_eq!(kinds(&chat), ["trigger", "resolve"]);
    let last = pager.heard().last().unwrap().json();
    assert_eq!((last["event_action"].as_str(), last["dedup_key"].as_str()), (Some("resolve"), Some(INCIDENT)));
    assert_eq!(world.open().await, 0);
}

async fn an_alert_whose_response_was_lost_ends_though_another_way_was_told(address: String) {
    let (pager, chat) = (Receiver::http().await, Receiver::http().await);
    let mut world = World::new(&address, &duty("duty", "one-key", &pager, &[("chat", &chat)])).await;
    pager.will([Reply::Drop]);
    world.write(Kind::Trigger, &["duty"]).await;
    world.write(Kind::Trigger, &["chat"]).await;
    world.settle().await;
    world.write(Kind::Resolve, &["duty"]).await;
    world.until(BEGIN + seconds(60)).await;
    assert_eq!(
        (told_by_key(&pager), kinds(&chat)),
        (vec!["one-key trigger".to_owned(), "one-key resolve".to_owned()], ["trigger", "resolve"].map(str::to_owned).to_vec())
    );
    assert_eq!(world.open().await, 0);
}

async fn what_becomes_more_severe_opens_another_alert_and_all_of_them_end(address: String) {
    let (duty, irm) = (Receiver::http().await, Receiver::http().await);
    let config = format!(
        "channels:\n  duty: {{ pagerduty: {{ routing_key: r0uting-key, url: \"{}\" }} }}\n  irm: {{ grafana_oncall: \"{}\" }}\n",
        duty.url("/v2/enqueue"),
        irm.url("/")
    );
    let mut world = World::new(&address, &config).await;
    world.run("UPDATE incident SET severity = 'notify' WHERE opened = $1").await;
    world.write(Kind::Trigger, &["duty"]).await;
    world.settle().await;
    // As the result that makes it a page writes it. Another route is told, too.
    world.now = BEGIN + seconds(60);
    world.run("UPDATE incident SET severity = 'page' WHERE opened < $1").await;
    world.run("INSERT INTO incident_event (incident, at, kind, text) VALUES ('0197-incident', $1, 'raised', 'from notify to page')").await;
    world.write(Kind::Update, &["duty"]).await;
    world.write(Kind::Update, &["irm"]).await;
    world.settle().await;
    world.run("UPDATE incident SET acknowledged = $1, acknowledged_by = 'ann'").await;
    world.settle().await;
    // One of its two events is refused for a moment: that one is sent again.
    duty.will_if(&format!("{INCIDENT}.1"), Reply::Status(500, ""));
    world.write(Kind::Resolve, &["duty"]).await;
    world.until(BEGIN + seconds(120)).await;
    let told = |receiver: &Receiver, action: &str, key: &str| -> Vec<String> {
        let text = |told: &Value, member: &str| told[member].as_str().unwrap().replace(INCIDENT, "it");
        receiver.heard().iter().map(|heard| heard.json()).map(|heard| format!("{} {}", text(&heard, action), text(&heard, key))).collect()
    };
    let mut of_duty = told(&duty, "event_action", "dedup_key");
    // The alerts of one message are told at the same time.
    of_duty[2..4].sort();
    of_duty[4..6].sort();
    let ends = ["resolve it", "resolve it.1", "resolve it.1"];
    assert_eq!(of_duty, [&["trigger it", "trigger it.1", "acknowledge it", "acknowledge it.1"][..], &ends].concat());
    // It shows the end of an alert of which it has never heard.
    assert_eq!((told(&irm, "state", "alert_uid"), world.open().await), (vec!["alerting it.1".to_owned(), "ok it.1".to_owned()], 0));
}

/// The end of an incident that became more severe so many times is about to be told.
async fn ending(address: &str, pager: &Receiver, raised: u64) -> World {
    let mut world = World::new(address, &duty("duty", "one-key", pager, &[])).await;
    world.notifier = world.notifier.leasing(seconds(9));
    for _ in 0..raised {
        world.run("INSERT INTO incident_event (incident, at, kind, text) VALUES ('0197-incident', $1, 'raised', '')").await;
    }
    world.write(Kind::Trigger, &["duty"]).await;
    world.settle().await;
    world.write(Kind::Resolve, &["duty"]).await;
    world
}

async fn each_alert_is_told_its_end_until_the_service_has_taken_or_refused_it(address: String) {
    // How often each of the alerts was told its end, and what was said of it.
    let ends = |pager: &Receiver| -> Vec<usize> {
        let heard: Vec<Value> = pager.heard().iter().map(Heard::json).filter(|told| told["event_action"] == "resolve").collect();
        let of = |key: &str| heard.iter().filter(|told| told["dedup_key"] == key).count();
        ["", ".1", ".2", ".3"].iter().map(|number| of(&format!("{INCIDENT}{number}"))).collect()
    };
    let key = |number: &str| format!("\"{INCIDENT}{number}\"");
    let pager = Receiver::http().await;
    let mut world = ending(&address, &pager, 3).await;
    pager.will_if(&key(".1"), Reply::Status(400, ""));
    pager.will_if(&key(".2"), Reply::Status(500, ""));
    pager.will_if(&key(".3"), Reply::Hang);
    let sent = world.settle().await.0;
    assert!(matches!(sent.as_slice(), [Sent { kind: Kind::Resolve, outcome: Ok(_), .. }]), "{sent:?}");
    let said = sent[0].outcome.clone().unwrap().replace(INCIDENT, "it");
    let expected = "; not taken: it.1: status 400: ok, it.2: status 500: ok, it.3: no response within 3 s; tried again for it.2, it.3";
    assert_eq!((said.strip_prefix("status 202: ok"), ends(&pager)), (Some(expected), vec![1, 1, 1, 1]));
    let sent = world.until(BEGIN + seconds(60)).await;
    assert!(matches!(sent.as_slice(), [Sent { outcome: Ok(_), .. }]), "{sent:?}");
    assert_eq!((ends(&pager), world.open().await), (vec![1, 1, 2, 2], 0));
    // What is refused when it is tried again is told as well.
    let pager = Receiver::http().await;
    let mut world = ending(&address, &pager, 1).await;
    pager.will_if(&key(".1"), Reply::Status(500, ""));
    pager.will_if(&key(".1"), Reply::Status(400, ""));
    world.until(BEGIN + seconds(60)).await;
    assert_eq!((ends(&pager)[..2].to_vec(), world.open().await), (vec![1, 2], 0));
    let events = world.events().await;
    let told = format!("given-up: resolve: not sent to {INCIDENT}.1: {INCIDENT}.1: status 400: ok");
    assert!(events.contains(&told), "{events:?}");
    // Nothing was taken: it is one message still.
    let pager = Receiver::http().await;
    let mut world = ending(&address, &pager, 1).await;
    pager.will_if(&key(""), Reply::Status(500, ""));
    pager.will_if(&key(".1"), Reply::Status(400, ""));
    let sent = world.until(BEGIN + seconds(60)).await;
    let outcomes: Vec<_> = sent.iter().map(|sent| sent.outcome.clone().map_err(|why| why.replace(INCIDENT, "it"))).collect();
    assert_eq!(outcomes, [Err("it: status 500: ok, it.1: status 400: ok".to_owned()), Ok("status 202: ok".to_owned())]);
    assert_eq!((ends(&pager)[..2].to_vec(), world.open().await), (vec![2, 2], 0));
}

async fn ways_of_one_incident_do_not_wait_for_each_other(address: String) {
    let (mut broken, chat, mail) = (Receiver::http().await, Receiver::http().await, Receiver::http().await);
    let config = hooks(&[("broken", &broken), ("chat", &chat), ("mail", &mail)]);
    broken.end().await;
    let mut world = World::new(&address, &config).await;
    for channel in ["broken", "chat", "mail"] {
        world.write(Kind::Trigger, &[channel]).await;
    }
    world.settle().await;
    assert_eq!((kinds(&chat), kinds(&mail)), (vec!["trigger".to_owned()], vec!["trigger".to_owned()]));
    // What one of them never took does not keep the end from the others.
    world.write(Kind::Resolve, &["broken"]).await;
    world.until(BEGIN + seconds(60)).await;
    let both = ["trigger".to_owned(), "resolve".to_owned()];
    assert_eq!((kinds(&chat), kinds(&mail), world.open().await), (both.to_vec(), both.to_vec(), 0));
}

async fn people_are_reminded_until_somebody_acknowledges_and_then_told_who(address: String) {
    let chat = Receiver::http().await;
    let config = format!("{}routes: [{{ channels: chat, remind_every: 10m }}]\n", hooks(&[("chat", &chat)]));
    let mut world = World::new(&address, &config).await;
    world.write(Kind::Trigger, &["chat"]).await;
    world.until(BEGIN + seconds(599)).await;
    assert_eq!(kinds(&chat), ["trigger"]);
    world.until(BEGIN + seconds(1805)).await;
    assert_eq!(kinds(&chat), ["trigger", "reminder", "reminder", "reminder"]);
    world.run("UPDATE incident SET acknowledged = $1, acknowledged_by = 'ann'").await;
    world.until(BEGIN + seconds(7200)).await;
    assert_eq!(kinds(&chat)[4..], ["acknowledge"]);
    assert_eq!(chat.heard()[4].json()["acknowledged_by"], "ann");
    world.write(Kind::Resolve, &["chat"]).await;
    world.settle().await;
    assert_eq!(kinds(&chat)[5..], ["resolve"]);
    assert_eq!(world.events().await.iter().filter(|event| event.starts_with("reminded")).count(), 3);
}

async fn all_that_were_told_are_reminded_each_in_its_time(address: String) {
    let (pager, chat, lead) = (Receiver::http().await, Receiver::http().await, Receiver::http().await);
    let channels = hooks(&[("pager", &pager), ("chat", &chat), ("lead", &lead)]);
    let route = "{ channels: [pager, chat], remind_every: 10m, escalate: [{ after: 10m, channels: lead }] }";
    let mut world = World::new(&address, &format!("{channels}routes: [{route}]\n")).await;
    world.write(Kind::Trigger, &["pager", "chat"]).await;
    world.until(BEGIN + seconds(1_210)).await;
    assert_eq!(kinds(&pager), ["trigger", "reminder", "reminder"], "the escalation puts off none");
    assert_eq!((kinds(&lead), kinds(&chat)), (vec!["escalation".to_owned(), "reminder".to_owned()], Vec::new()));
    // What its channel refuses goes on, and to nobody twice.
    pager.will(vec![Reply::Status(400, ""); 50]);
    world.until(BEGIN + seconds(1_820)).await;
    assert_eq!((kinds(&lead).len(), kinds(&chat), world.open().await), (3, vec!["reminder".to_owned()], 0));
    world.until(BEGIN + seconds(2_430)).await;
    assert_eq!((kinds(&lead).len(), kinds(&chat).len(), world.open().await), (4, 2, 0));
}

const STEPS: &str = "escalate: [{ after: 10m, channels: lead }, { after: 25m, channels: [boss, chat] }]";

async fn who_comes_next_is_told_until_somebody_acknowledges(address: String) {
    let (chat, lead, boss) = (Receiver::http().await, Receiver::http().await, Receiver::http().await);
    let config =
        format!("{}routes: [{{ channels: chat, {STEPS}, repeat: 1 }}]\n", hooks(&[("chat", &chat), ("lead", &lead), ("boss", &boss)]));
    let mut world = World::new(&address, &config).await;
    world.write(Kind::Trigger, &["chat"]).await;
    for (second, of_lead, of_boss) in [(599, 0, 0), (601, 1, 0), (1499, 1, 0), (1501, 1, 1), (2099, 1, 1), (2101, 2, 1)] {
        world.until(BEGIN + seconds(second)).await;
        assert_eq!((kinds(&lead).len(), kinds(&boss).len()), (of_lead, of_boss), "after {second} s");
    }
    assert_eq!((kinds(&chat), kinds(&boss)), (vec!["trigger".to_owned()], vec!["escalation".to_owned()]));
    let told = lead.heard()[0].json();
    assert_eq!((told["incident"].as_str(), told["severity"].as_str()), (Some(INCIDENT), Some("page")));
    let events = world.events().await;
    assert!(events.contains(&"escalated: not acknowledged for 10 min; notifying lead".to_owned()), "{events:?}");
    world.run("UPDATE incident SET acknowledged = $1, acknowledged_by = 'ann'").await;
    world.until(BEGIN + seconds(7200)).await;
    // There would have been one more step.
    assert_eq!((kinds(&lead)[2..].to_vec(), kinds(&boss)[1..].to_vec()), (vec!["acknowledge".to_owned()], vec!["acknowledge".to_owned()]));
    world.write(Kind::Resolve, &["chat"]).await;
    world.settle().await;
    for told in [&chat, &lead, &boss] {
        assert_eq!(kinds(told).last().map(String::as_str), Some("resolve"));
    }
    assert_eq!(world.open().await, 0);
}

async fn what_becomes_a_page_later_is_escalated_from_then_on_and_acknowledged_anew(address: String) {
    let (chat, pager, lead) = (Receiver::http().await, Receiver::http().await, Receiver::http().await);
    let page = "{ severities: page, channels: pager, escalate: [{ after: 10m, channels: lead }] }";
    let channels = hooks(&[("chat", &chat), ("pager", &pager), ("lead", &lead)]);
    let mut world = World::new(&address, &format!("{channels}routes: [{page}, {{ channels: chat }}]\n")).await;
    world.run("UPDATE incident SET severity = 'notify' WHERE $1 > 0").await;
    world.write(Kind::Trigger, &["chat"]).await;
    world.until(BEGIN + seconds(1_000)).await;
    world.run("UPDATE incident SET acknowledged = $1, acknowledged_by = 'ann'").await;
    world.until(BEGIN + seconds(2_000)).await;
    assert_eq!(kinds(&chat), ["trigger", "acknowledge"]);
    // As the result that makes it a page writes it.
    world.run("UPDATE incident SET severity = 'page', acknowledged = NULL, acknowledged_by = NULL WHERE $1 > 0").await;
    world.run("INSERT INTO incident_event (incident, at, kind, text) VALUES ('0197-incident', $1, 'raised', 'from notify to page')").await;
    world.until(BEGIN + seconds(2_100)).await;
    assert_eq!(kinds(&lead), [""; 0], "its page waits for the end of maintenance, or for the hours of its route");
    world.write(Kind::Update, &["pager"]).await;
    world.until(BEGIN + seconds(2_699)).await;
    assert_eq!((kinds(&pager), kinds(&lead)), (vec!["update".to_owned()], Vec::new()));
    world.until(BEGIN + seconds(2_702)).await;
    assert_eq!(kinds(&lead), ["escalation"]);
    world.run("UPDATE incident SET acknowledged = $1, acknowledged_by = 'bob'").await;
    world.until(BEGIN + seconds(7_200)).await;
    assert_eq!(kinds(&chat), ["trigger", "acknowledge", "acknowledge"]);
    assert_eq!((kinds(&pager)[1..].to_vec(), kinds(&lead)[1..].to_vec()), (vec!["acknowledge".to_owned()], vec!["acknowledge".to_owned()]));
    assert_eq!(chat.heard()[2].json()["acknowledged_by"], "bob");
    // Nobody is told of an acknowledgement that no longer counts.
    chat.will([Reply::Status(500, "")]);
    world.run("UPDATE incident SET acknowledged = $1, acknowledged_by = 'eve'").await;
    world.settle().await;
    world.run("UPDATE incident SET acknowledged = NULL, acknowledged_by = NULL WHERE $1 > 0").await;
    world.until(BEGIN + seconds(7_500)).await;
    assert_eq!((kinds(&chat).iter().filter(|kind| *kind == "acknowledge").count(), world.open().await), (3, 0));
}

async fn nobody_else_is_told_during_maintenance_and_each_once_after_it(address: String) {
    let (chat, lead, boss) = (Receiver::http().await, Receiver::http().await, Receiver::http().await);
    let window = "maintenance: [{ name: w, from: \"2026-01-01T00:05:00Z\", until: \"2026-01-01T03:00:00Z\" }]\n";
    let channels = hooks(&[("chat", &chat), ("lead", &lead), ("boss", &boss)]);
    let config = format!("{channels}routes: [{{ channels: chat, {STEPS}, repeat: 20 }}]\n{window}");
    let mut world = World::new(&address, &config).await;
    world.write(Kind::Trigger, &["chat"]).await;
    world.until(BEGIN + seconds(3 * 3600 - 60)).await;
    assert_eq!((kinds(&lead).len(), kinds(&boss).len()), (0, 0));
    world.until(BEGIN + seconds(3 * 3600 + 61)).await;
    assert_eq!((kinds(&lead).len(), kinds(&boss).len()), (1, 1), "not as often as it came meanwhile");
}

async fn an_escalation_that_nobody_took_is_dropped_once_somebody_takes_care(address: String) {
    let (chat, lead, boss) = (Receiver::http().await, Receiver::http().await, Receiver::http().await);
    let channels = hooks(&[("chat", &chat), ("lead", &lead), ("boss", &boss)]);
    let mut world = World::new(&address, &format!("{channels}routes: [{{ channels: chat, {STEPS} }}]\n")).await;
    world.write(Kind::Trigger, &["chat"]).await;
    lead.will(vec![Reply::Status(500, ""); 100]);
    world.until(BEGIN + seconds(610)).await;
    assert!(world.open().await == 1 && !lead.heard().is_empty());
    let heard = lead.heard().len();
    world.run("UPDATE incident SET acknowledged = $1, acknowledged_by = 'ann'").await;
    world.until(BEGIN + seconds(1800)).await;
    assert_eq!((lead.heard().len(), kinds(&boss).len(), world.open().await), (heard, 0, 0));
    assert_eq!(kinds(&chat), ["trigger", "acknowledge"]);
}

async fn a_reminder_of_a_storm_names_those_who_still_fail(address: String) {
    let chat = Receiver::http().await;
    let config = format!("{}routes: [{{ channels: chat, remind_every: 10m }}]\n", hooks(&[("chat", &chat)]));
    let mut world = World::new(&address, &config).await;
    let storm = "UPDATE incident SET subject = 'host:a:1', class = 'storm', \
                 detail = '{\"message\":\"3 targets on a:1 fail at once\",\"members\":[\"a\",\"b\",\"c\"]}' WHERE $1 > 0";
    world.run(storm).await;
    // One of them came later, and is known by its own part of the storm only.
    world
        .run(
            "INSERT INTO incident (id, subject, class, severity, title, detail, since, opened, parent) \
             VALUES ('part', 'd', 'availability', 'page', 'd is down', '{\"message\":\"x\"}', $1, $1, '0197-incident')",
        )
        .await;
    world.run("DELETE FROM target WHERE $1 > 0").await;
    for target in [
        "INSERT INTO target (name, source, definition, host, every, tags, public, state, availability, surface, since) \
         VALUES ('a', 'config', '', 'a:1', 60000, '[]', 0, '{}', 'ok', 'ok', $1)",
        "INSERT INTO target (name, source, definition, host, every, tags, public, state, availability, surface, since) \
         VALUES ('b', 'config', '', 'a:1', 60000, '[]', 0, '{}', 'down', 'ok', $1)",
        "INSERT INTO target (name, source, definition, host, every, tags, public, state, availability, surface, since) \
         VALUES ('c', 'config', '', 'a:1', 60000, '[]', 0, '{}', 'recovering', 'ok', $1)",
        "INSERT INTO target (name, source, definition, host, every, tags, public, state, availability, surface, since) \
         VALUES ('d', 'config', '', 'a:1', 60000, '[]', 0, '{}', 'suspect', 'ok', $1)",
    ] {
        world.run(target).await;
    }
    world.write(Kind::Trigger, &["chat"]).await;
    world.until(BEGIN + seconds(605)).await;
    let of_storm: Vec<_> = chat.heard().iter().map(|heard| heard.json()).filter(|told| told["incident"] == INCIDENT).collect();
    assert_eq!(of_storm[0]["targets"], json!(["a", "b", "c"]));
    assert_eq!((of_storm[1]["kind"].as_str(), &of_storm[1]["targets"]), (Some("reminder"), &json!(["b", "c", "d"])));
    assert_eq!(of_storm[1]["message"], "3 of its 4 targets still fail, 1 works again");
}

async fn a_group_goes_the_way_of_its_tags_and_is_quiet_while_all_of_it_is(address: String) {
    let (chat, lead) = (Receiver::http().await, Receiver::http().await);
    let routes =
        "routes: [{ tags: blue, channels: chat, group_by: blue, remind_every: 10m, escalate: [{ after: 25m, channels: lead }] }]\n";
    let mut world = World::new(&address, &format!("{}{routes}", hooks(&[("chat", &chat), ("lead", &lead)]))).await;
    world
        .run(
            "UPDATE incident SET subject = 'group:blue@chat', class = 'group', title = '2 incidents in the group blue', \
             detail = '{\"message\":\"a is down; b is down\",\"members\":[\"a\",\"b\"],\"tags\":[\"blue\"]}' WHERE $1 > 0",
        )
        .await;
    for part in [
        "INSERT INTO incident (id, subject, class, severity, title, detail, since, opened, parent) \
         VALUES ('part-a', 'a', 'availability', 'page', 'a is down', '{\"message\":\"x\"}', $1, $1, '0197-incident')",
        "INSERT INTO incident (id, subject, class, severity, title, detail, since, opened, parent, resolved) \
         VALUES ('part-b', 'b', 'availability', 'page', 'b is down', '{\"message\":\"x\"}', $1, $1, '0197-incident', $1)",
        "DELETE FROM target WHERE $1 > 0",
        "INSERT INTO target (name, source, definition, host, every, tags, public, state, availability, surface, since) \
         VALUES ('a', 'config', '', 'a:1', 60000, '[\"blue\"]', 0, '{}', 'down', 'ok', $1)",
    ] {
        world.run(part).await;
    }
    world.write(Kind::Trigger, &["chat"]).await;
    world.until(BEGIN + seconds(605)).await;
    let told: Vec<_> = chat.heard().iter().map(|heard| heard.json()).collect();
    assert_eq!((told[0]["kind"].as_str(), &told[0]["targets"]), (Some("trigger"), &json!(["a", "b"])));
    assert_eq!(
        (told[1]["kind"].as_str(), &told[1]["targets"], told[1]["message"].as_str()),
        (Some("reminder"), &json!(["a"]), Some("a is down"))
    );
    // All that is left of it is muted for a while: until then nobody else is told either.
    world.run("UPDATE target SET muted_until = $1 + 1800000").await;
    world.until(BEGIN + seconds(2_400)).await;
    assert_eq!((kinds(&chat).len(), kinds(&lead).len()), (2, 0));
    world.until(BEGIN + seconds(2_500)).await;
    assert_eq!((kinds(&chat)[2..].to_vec(), kinds(&lead)), (vec!["reminder".to_owned()], vec!["escalation".to_owned()]));
}

async fn a_channel_has_words_of_its_own_and_a_template_that_fails_keeps_nothing_back(address: String) {
    let (chat, phone) = (Receiver::http().await, Receiver::http().await);
    let config = format!(
        "channels:\n  chat:\n    slack: \"{}\"\n    title: \"{{{{ kind }}}}: {{{{ target|upper }}}}\"\n    text: \"{{{{ message }}}}, {{{{ lasted }}}}\"\n  phone:\n    ntfy: \"{}\"\n    text: \"{{% for a in targets %}}{{% for b in targets %}}{{% for c in targets %}}{{% for d in targets %}}{{{{ a }}}}{{% endfor %}}{{% endfor %}}{{% endfor %}}{{% endfor %}}\"\n",
        chat.url("/"),
        phone.url("/topic")
    );
    let mut world = World::new(&address, &config).await;
    // More than its example has.
    let members: Vec<String> = (0..50).map(|number| format!("target-{number}")).collect();
    let detail = json!({ "message": "connection <!channel> refused\u{1b}[31m", "members": members }).to_string();
    sqlx::query("UPDATE incident SET detail = $1").bind(detail).execute(&world.rows).await.unwrap();
    world.write(Kind::Trigger, &["chat"]).await;
    world.write(Kind::Trigger, &["phone"]).await;
    world.settle().await;
    let told = chat.heard()[0].json();
    assert_eq!(told["text"], "trigger: SHOP");
    let texts: Vec<&str> = told["blocks"].as_array().unwrap().iter().filter_map(|block| block["text"]["text"].as_str()).collect();
    assert_eq!(texts, ["trigger: SHOP", "connection <!channel> refused\\u{1b}[31m, 0 s"]);
    assert!(!told.to_string().contains("availability"), "the text says it all: {told}");
    let told = phone.heard()[0].json();
    assert_eq!(told["title"], "[page] shop is down");
    let text = told["message"].as_str().unwrap();
    assert!(text.starts_with("connection <!channel> refused") && text.contains("(the template of this channel failed: the t"), "{text}");
    assert!(text.contains("availability"), "{text}");
}

async fn nobody_is_reminded_during_maintenance(address: String) {
    let chat = Receiver::http().await;
    let window = "maintenance: [{ name: w, from: \"2026-01-01T00:05:00Z\", until: \"2026-01-01T01:00:00Z\" }]\n";
    let config = format!("{}routes: [{{ channels: chat, remind_every: 10m }}]\n{window}", hooks(&[("chat", &chat)]));
    let mut world = World::new(&address, &config).await;
    world.write(Kind::Trigger, &["chat"]).await;
    for minute in 1..=59 {
        world.until(BEGIN + seconds(60 * minute)).await;
    }
    assert_eq!(kinds(&chat), ["trigger"]);
    world.until(BEGIN + seconds(3660)).await;
    assert_eq!(kinds(&chat), ["trigger", "reminder"]);
}

async fn an_alertmanager_is_told_again_until_the_end(address: String) {
    let alerts = Receiver::http().await;
    let mut world = World::new(&address, &format!("channels: {{ am: {{ alertmanager: \"{}\" }} }}\n", alerts.url(""))).await;
    world.write(Kind::Trigger, &["am"]).await;
    for minute in 0..=5 {
        world.until(BEGIN + seconds(60 * minute + 25)).await;
    }
    let heard = alerts.heard();
    assert_eq!(heard.len(), 6);
    assert!(heard.iter().all(|heard| heard.path == "/api/v2/alerts" && heard.json()[0]["labels"] == heard.json()[0]["labels"]));
    let labels: Vec<Value> = heard.iter().map(|heard| heard.json()[0]["labels"].clone()).collect();
    assert!(labels.iter().all(|each| *each == labels[0]), "{labels:?}");
    assert!(heard.windows(2).all(|pair| pair[0].json()[0]["endsAt"].as_str() < pair[1].json()[0]["endsAt"].as_str()));
    assert_eq!(world.open().await, 0);
    world.run("UPDATE incident SET resolved = $1").await;
    world.write(Kind::Resolve, &["am"]).await;
    world.until(BEGIN + seconds(3600)).await;
    let heard = alerts.heard();
    assert_eq!(heard.len(), 7);
    let last = heard[6].json();
    assert_eq!(last[0]["labels"], labels[0]);
    assert_eq!(last[0]["endsAt"], "2026-01-01T00:05:25Z");
}

async fn two_notifiers_do_not_send_the_same_message(address: String) {
    let chat = Receiver::http().await;
    let mut world = World::new(&address, &hooks(&[("chat", &chat)])).await;
    world.write(Kind::Trigger, &["chat"]).await;
    let other = world.notifier.clone();
    // Clocks differ a little, and so does how long a pass takes until it asks.
    let late = |number: u64| BEGIN + Duration::from_millis(20 - 2 * number);
    let rounds = futures_util::future::join_all((0..8).map(|number| other.pass(late(number)))).await;
    assert_eq!(rounds.into_iter().map(|round| round.unwrap().sent.len()).sum::<usize>(), 1);
    assert_eq!(kinds(&chat), ["trigger"]);
}

async fn two_notifiers_give_no_two_ends_of_one_incident_the_same_channel(address: String) {
    const GONE: [&str; 4] = ["a", "b", "c", "d"];
    for round in 0..6 {
        let (pager, mail) = (Receiver::http().await, Receiver::http().await);
        let channels: Vec<(&str, &Receiver)> = GONE.iter().map(|name| (*name, &pager)).collect();
        let mut world = World::new(&address, &hooks(&channels)).await;
        for channel in GONE {
            world.write(Kind::Trigger, &[channel]).await;
        }
        world.settle().await;
        // As it is once it was found out who is to be told: each of two processes has some of the ends.
        for channel in GONE {
            world.write(Kind::Resolve, &[channel]).await;
        }
        world.run("UPDATE outbox SET tried_since = $1, due = $1 WHERE kind = 'resolve'").await;
        world.run("UPDATE outbox SET due = $1 + 100 WHERE kind = 'resolve' AND route IN ('[\"c\"]', '[\"d\"]')").await;
        let config = format!("{}routes: [{{ channels: mail }}]\n", hooks(&[("mail", &mail)]));
        world.configure(&config);
        let one = world.notifier.clone();
        world.store = Store::open(&address).await.unwrap();
        world.configure(&config);
        let other = world.notifier.clone();
        let mut first = Freezable::new(one.pass(BEGIN));
        let leased = "SELECT count(*) FROM outbox WHERE kind = 'resolve' AND lease_until > 0";
        while sqlx::query_scalar::<_, i64>(leased).fetch_one(&world.rows).await.unwrap() == 0 {
            assert!(first.polled(1).await.is_none(), "nothing was due");
        }
        let ended = first.polled(round).await;
        let rest = async move {
            match ended {
                Some(outcome) => outcome,
                None => first.thawed().await,
            }
        };
        let (first, second) = tokio::join!(rest, other.pass(BEGIN + Duration::from_millis(100)));
        assert!(first.is_ok() && second.is_ok(), "{first:?} {second:?}");
        world.until(BEGIN + seconds(60)).await;
        assert_eq!((kinds(&mail), world.open().await), (vec!["resolve".to_owned()], 0), "round {round}");
    }
}

async fn what_was_taken_while_the_database_failed_is_not_sent_again_by_who_sent_it(address: String) {
    let chat = Receiver::http().await;
    let mut world = World::new(&address, &hooks(&[("chat", &chat)])).await;
    // It takes everything but that something was sent.
    for statement in [
        "INSERT INTO incident_event (incident, at, kind, text) VALUES ('another', 1, 'sent', '')",
        "CREATE UNIQUE INDEX one_event ON incident_event (kind)",
    ] {
        sqlx::query(statement).execute(&world.rows).await.unwrap();
    }
    world.write(Kind::Trigger, &["chat"]).await;
    assert!(world.notifier.pass(BEGIN).await.is_err());
    assert!(world.notifier.pass(BEGIN + seconds(1)).await.is_ok());
    assert_eq!((kinds(&chat), world.open().await), (vec!["trigger".to_owned()], 1));
    // Its lease is over.
    assert!(world.notifier.pass(BEGIN + seconds(31)).await.is_err());
    sqlx::query("DROP INDEX one_event").execute(&world.rows).await.unwrap();
    world.now = BEGIN + seconds(62);
    let (sent, _) = world.settle().await;
    assert_eq!((sent.len(), kinds(&chat), world.open().await), (1, vec!["trigger".to_owned()], 0), "{sent:?}");
    assert!(world.events().await.contains(&"sent: trigger by chat: status 202: ok".to_owned()));
}

async fn what_a_dead_notifier_had_leased_is_sent_when_its_lease_is_over(address: String) {
    let chat = Receiver::http().await;
    let mut world = World::new(&address, &hooks(&[("chat", &chat)])).await;
    world.write(Kind::Trigger, &["chat"]).await;
    world.run("UPDATE outbox SET lease_until = $1 + 30000, epoch = 7").await;
    let (sent, next) = world.settle().await;
    assert_eq!((sent.len(), next), (0, Some(BEGIN + seconds(30))));
    world.until(BEGIN + seconds(31)).await;
    assert_eq!(kinds(&chat), ["trigger"]);
    // A clock that was set back does not hold a row for longer.
    world.write(Kind::Update, &["chat"]).await;
    world.run("UPDATE outbox SET lease_until = $1 + 3600000 WHERE delivered IS NULL").await;
    world.settle().await;
    assert_eq!(kinds(&chat), ["trigger", "update"]);
}

async fn a_message_of_an_incident_that_is_gone_holds_nothing_up(address: String) {
    let chat = Receiver::http().await;
    let mut world = World::new(&address, &hooks(&[("chat", &chat)])).await;
    world.write(Kind::Trigger, &["chat"]).await;
    world.run("UPDATE outbox SET incident = 'gone' WHERE due <= $1").await;
    world.write(Kind::Trigger, &["chat"]).await;
    world.settle().await;
    assert_eq!((kinds(&chat), world.open().await), (vec!["trigger".to_owned()], 0));
}

async fn who_lost_the_row_while_sending_writes_nothing(address: String) {
    let chat = Receiver::http().await;
    chat.will([Reply::Hang]);
    let mut world = World::new(&address, &hooks(&[("chat", &chat)])).await;
    world.write(Kind::Trigger, &["chat"]).await;
    let slow = world.notifier.clone();
    let pass = tokio::spawn(async move { slow.pass(BEGIN).await.unwrap() });
    while chat.heard().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    world.now = BEGIN + seconds(31);
    world.settle().await;
    assert_eq!((kinds(&chat).len(), world.open().await), (2, 0));
    pass.await.unwrap();
    let (delivered, error): (i64, Option<String>) =
        sqlx::query_as("SELECT delivered, last_error FROM outbox").fetch_one(&world.rows).await.unwrap();
    assert!(delivered >= (BEGIN + seconds(31)).0);
    assert_eq!((error, world.events().await.len()), (None, 1));
}

/// It has sent its message, and stalls while it writes that down, after some statement.
async fn a_notifier_that_stalls_in_its_transaction_holds_nobody_up(address: String) {
    let stalls = (0..6).map(|round_trips| {
        let address = &address;
        async move { stall(&postgres::beside(address, &format!("stalled_{round_trips}")).await, round_trips).await }
    });
    let half_open = futures_util::future::join_all(stalls).await.into_iter().filter(|was_half_open| *was_half_open).count();
    assert!(half_open > 0, "no transaction was half open");
}

/// Whether that left a transaction half open.
async fn stall(address: &str, round_trips: usize) -> bool {
    let chat = Receiver::http().await;
    let mut world = World::new(address, &hooks(&[("chat", &chat)])).await;
    // A server can be so quick that nobody waits for it; here each of the two statements takes its time.
    for statement in [
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END $$",
        "CREATE TRIGGER slow AFTER UPDATE ON outbox FOR EACH ROW WHEN (NEW.delivered IS NOT NULL) EXECUTE FUNCTION slow()",
        "CREATE TRIGGER slow AFTER INSERT ON incident_event FOR EACH ROW EXECUTE FUNCTION slow()",
    ] {
        sqlx::query(statement).execute(&world.rows).await.unwrap();
    }
    world.write(Kind::Trigger, &["chat"]).await;
    // However long this machine takes for it, it may send.
    let slow = world.notifier.clone().leasing(seconds(600));
    // What it knows nobody else does.
    world.configure(&hooks(&[("chat", &chat)]));
    let mut stalled = Freezable::new(slow.pass(BEGIN));
    while chat.heard().is_empty() || postgres::half_open(address).await == 0 {
        let ended = stalled.polled(1).await;
        assert!(ended.is_none(), "nothing was written down: {ended:?}");
    }
    let ended = stalled.polled(round_trips).await;
    let was_half_open = postgres::half_open(address).await > 0;
    assert_eq!(kinds(&chat), ["trigger"]);
    world.write(Kind::Resolve, &["chat"]).await;
    world.now = BEGIN + seconds(601);
    let began = std::time::Instant::now();
    while world.open().await > 0 {
        // There is work for it all the time, and it is not to be had.
        world.notifier.pass(world.now).await.unwrap();
        assert!(began.elapsed() < seconds(30), "a transaction that stalled after {round_trips} round trips is still there");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let outcome = match ended {
        Some(outcome) => outcome,
        None => stalled.thawed().await,
    };
    let is_lost = outcome.as_ref().map_or(true, |round| round.sent.is_empty());
    assert!(is_lost || !was_half_open, "{outcome:?}");
    // It is sent again under the same key if nobody knows any more that it was.
    let heard = chat.heard();
    let expected: &[&str] = if is_lost { &["trigger", "trigger", "resolve"] } else { &["trigger", "resolve"] };
    assert_eq!(kinds(&chat), expected);
    assert_eq!(heard[0].header("idempotency-key") == heard[1].header("idempotency-key"), is_lost);
    let mut sent = world.events().await;
    // Both are of the same moment.
    sent.sort();
    assert_eq!(sent, ["sent: resolve by chat: status 202: ok", "sent: trigger by chat: status 202: ok"]);
    was_half_open
}

async fn mail_goes_out_and_what_a_server_refuses_for_good_is_refused(address: String) {
    let mail = Receiver::smtp().await;
    let relay = mail.address;
    let config = format!(
        "channels: {{ mail: {{ smtp: {{ url: \"smtp://ann%40x:pa%3Ass@{relay}?tls=none\", from: watch@example.com, to: [bob@example.com] }} }} }}\n"
    );
    mail.will([Reply::Status(451, ""), Reply::Drop, Reply::Status(554, "")]);
    let mut world = World::new(&address, &config).await;
    world.write(Kind::Trigger, &["mail"]).await;
    let sent = world.until(BEGIN + seconds(600)).await;
    let outcomes: Vec<bool> = sent.iter().map(|sent| sent.outcome.is_ok()).collect();
    assert_eq!(outcomes, [false, false, false, true], "{sent:?}");
    let heard = mail.heard();
    assert_eq!(heard.len(), 4);
    // `\0ann@x\0pa:ss`
    assert_eq!(heard[0].header("auth"), "AUTH PLAIN AGFubkB4AHBhOnNz");
    assert_eq!(heard[0].header("rcpt"), "RCPT TO:<bob@example.com>");
    assert!(heard.iter().all(|heard| heard.body.contains(&format!("Message-ID: <{INCIDENT}@example.com>"))), "{heard:?}");
    let refused = sent[2].outcome.clone().unwrap_err();
    assert!(refused.contains("554"), "{refused}");
    // Without TLS no password is sent, unless the URL says so.
    let config = config.replace("?tls=none", "");
    let mut world = World::new(&address, &config).await;
    world.write(Kind::Trigger, &["mail"]).await;
    let (sent, _) = world.settle().await;
    assert_eq!(sent[0].outcome, Err("the mail server does not offer TLS; to send without it, add `?tls=none` to its URL".to_owned()));
    assert_eq!(mail.heard().len(), 4);
    // Whom the server knows gets it, whoever else is gone; and nobody gets it if all are.
    for (to, taken) in [("gone@example.com, bob@example.com", true), ("gone@example.com, gone2@example.com", false)] {
        let config =
            format!("channels: {{ mail: {{ smtp: {{ url: \"smtp://{relay}?tls=none\", from: watch@example.com, to: [{to}] }} }} }}\n");
        let mut world = World::new(&address, &config).await;
        world.write(Kind::Trigger, &["mail"]).await;
        let (sent, _) = world.settle().await;
        let told = sent[0].outcome.as_ref().map_or_else(Clone::clone, Clone::clone);
        assert!(sent[0].outcome.is_ok() == taken && told.contains("550") && told.contains("gone@example.com") == taken, "{told}");
    }
    assert_eq!(mail.heard()[4..].iter().map(|heard| heard.header("rcpt")).collect::<Vec<_>>(), ["RCPT TO:<bob@example.com>"]);
}

async fn whom_a_server_refuses_for_a_moment_gets_the_mail_later_and_nobody_gets_it_twice(address: String) {
    let mail = Receiver::smtp().await;
    let to = "[ann@example.com, grey@example.com, gone@example.com]";
    let config =
        format!("channels: {{ mail: {{ smtp: {{ url: \"smtp://{}?tls=none\", from: watch@example.com, to: {to} }} }} }}\n", mail.address);
    let mut world = World::new(&address, &config).await;
    world.write(Kind::Trigger, &["mail"]).await;
    let (sent, _) = world.settle().await;
    let told = sent[0].outcome.clone().unwrap();
    assert!(told.contains("grey@example.com (") && told.ends_with("; tried again for grey@example.com"), "{told}");
    // Somebody has it: what comes next does not wait, and nothing is overdue.
    assert_eq!((sent.len(), world.open().await, world.store.oldest_unsent().await.unwrap()), (1, 1, None));
    world.write(Kind::Update, &["mail"]).await;
    assert_eq!(world.settle().await.0.len(), 1);
    let sent = world.until(BEGIN + seconds(10)).await;
    assert!(matches!(sent.as_slice(), [Sent { kind: Kind::Trigger, outcome: Ok(_), .. }]), "{sent:?}");
    assert_eq!(world.open().await, 0);
    let recipients = |heard: &Heard| -> Vec<String> {
        let of_mail = heard.headers.iter().filter(|(name, _)| name == "rcpt");
        of_mail.map(|(_, line)| line.trim_start_matches("RCPT TO:<").trim_end_matches("@example.com>").to_owned()).collect()
    };
    assert_eq!(mail.heard().iter().map(recipients).collect::<Vec<_>>(), [vec!["ann"], vec!["ann", "grey"], vec!["grey"]]);
    // Once it is over, it is not tried any more; and no other channel is told in place of a recipient.
    let config = config.replace("grey@", "grey2@").replace("channels: {", "channels: { other: { webhook: \"http://127.0.0.1:9/\" },");
    let mut world = World::new(&address, &config).await;
    world.write(Kind::Trigger, &["mail"]).await;
    world.settle().await;
    world.run("UPDATE outbox SET recipients = '[\"left@example.com\"]', created = created + $1 - $1 WHERE delivered IS NULL").await;
    let sent = world.until(BEGIN + seconds(10)).await;
    let outcomes: Vec<_> = sent.iter().map(|sent| (sent.channel.as_str(), sent.outcome.clone())).collect();
    assert_eq!(outcomes, [("mail", Err("the channel no longer has this recipient".to_owned()))]);
    assert_eq!(world.open().await, 0);
    let events = world.events().await;
    assert!(
        events.iter().any(|event| event.ends_with("not sent to left@example.com: the channel no longer has this recipient")),
        "{events:?}"
    );
}

async fn nothing_is_sent_once_the_right_to_it_is_gone(_: String) {
    use mcproof_watch::channel::{DeliveryFailure, Payload, Post, Success};
    let chat = Receiver::http().await;
    let delivery_client = DeliveryClient::new(Network::default());
    let (url, success) = (Secret::new(chat.url("/")), Success::Status);
    let post = Post { method: "POST", url, headers: Vec::new(), body: b"{}".to_vec(), hidden: Vec::new(), success };
    assert_eq!(delivery_client.deliver(&Payload::Post(post), BEGIN, &|| false).await, Err(DeliveryFailure::TooLate));
    assert!(chat.heard().is_empty());
}

/// A world with a heartbeat that is fetched from outside, every 30 s, for a target that is probed every 10 s.
async fn with_heart(address: &str, target: &str) -> (World, HeartbeatSender, Receiver) {
    let outside = Receiver::http().await;
    let config =
        format!("heartbeat: {{ url: \"{}\", every: 30s }}\ntargets: {{ shop: {{ {target}, every: 10s }} }}\n", outside.url("/ping"));
    let world = World::new(address, &config).await;
    let loaded = load("w.yaml", &config, Path::new("/"), &Environment::default()).unwrap().config;
    let targets = loaded.targets.iter().map(|(name, spec)| (name.clone(), Arc::new(spec.clone()))).collect();
    let specs: Vec<_> = loaded.targets.values().collect();
    world.store.sync_targets(&specs, "local", BEGIN).await.unwrap();
    let (_, plan) = watch::channel(Arc::new(Plan { config: Arc::new(loaded.clone()), targets }));
    let heartbeat_sender =
        HeartbeatSender::new(world.store.clone(), plan, DeliveryClient::new(Network::default()), WorkerHealth::default());
    (world, heartbeat_sender, outside)
}

impl World {
    /// Results came from these regions, and the next ones are due ten seconds later.
    async fn heard(&self, at: Moment, regions: &[&str]) {
        let votes: Vec<String> = regions.iter().map(|region| format!("\"{region}\":{{\"at\":{},\"is_up\":true}}", at.0)).collect();
        let state = format!("{{\"course\":{{\"votes\":{{{}}}}}}}", votes.join(","));
        sqlx::query("UPDATE target SET state = $1").bind(state).execute(&self.rows).await.unwrap();
        for region in regions {
            let statement = "UPDATE schedule SET due = $1 WHERE region = $2";
            sqlx::query(statement).bind((at + seconds(10)).0).bind(*region).execute(&self.rows).await.unwrap();
        }
    }
}

async fn the_heart_beats_only_while_results_come_in(address: String) {
    let (world, heartbeat_sender, outside) = with_heart(&address, "stdio: x").await;
    let silent = || HeartbeatOutcome::Silent("no recent results from local".to_owned());
    assert_eq!(heartbeat_sender.pass(BEGIN).await.unwrap(), (silent(), Some(BEGIN + seconds(10))));
    world.heard(BEGIN, &["local"]).await;
    assert_eq!(heartbeat_sender.pass(BEGIN + seconds(9)).await.unwrap(), (HeartbeatOutcome::Waited, Some(BEGIN + seconds(10))));
    assert_eq!(heartbeat_sender.pass(BEGIN + seconds(10)).await.unwrap(), (HeartbeatOutcome::Fetched, Some(BEGIN + seconds(40))));
    assert_eq!(outside.heard().len(), 1);
    outside.will([Reply::Status(500, "")]);
    let failed = HeartbeatOutcome::Failed("status 500".into());
    assert_eq!(heartbeat_sender.pass(BEGIN + seconds(40)).await.unwrap(), (failed, Some(BEGIN + seconds(50))));
    assert_eq!(heartbeat_sender.pass(BEGIN + seconds(50)).await.unwrap().0, HeartbeatOutcome::Fetched);
    // Three intervals and a minute after the last result, something is wrong.
    assert_eq!(heartbeat_sender.pass(BEGIN + seconds(80)).await.unwrap().0, HeartbeatOutcome::Fetched);
    assert_eq!(heartbeat_sender.pass(BEGIN + seconds(110)).await.unwrap().0, silent());
    assert_eq!(outside.heard().len(), 4);
    // A clock that was set back makes no result new.
    world.heard(BEGIN + seconds(3600), &["local"]).await;
    assert_eq!(heartbeat_sender.pass(BEGIN + seconds(120)).await.unwrap().0, silent());
}

async fn the_heart_needs_every_region(address: String) {
    let (world, heartbeat_sender, _outside) = with_heart(&address, "stdio: x, regions: [eu, us]").await;
    world.heard(BEGIN, &["eu", "us"]).await;
    assert_eq!(heartbeat_sender.pass(BEGIN).await.unwrap().0, HeartbeatOutcome::Fetched);
    let now = BEGIN + seconds(300);
    world.heard(now, &["eu"]).await;
    assert_eq!(heartbeat_sender.pass(now).await.unwrap().0, HeartbeatOutcome::Silent("no recent results from us".to_owned()));
    // It probes, and learns nothing: its own network does not work.
    world.run("UPDATE schedule SET due = $1 + 300000").await;
    assert_eq!(heartbeat_sender.pass(now + seconds(10)).await.unwrap().0, HeartbeatOutcome::Silent("no recent results from us".to_owned()));
    world.heard(now, &["eu", "us"]).await;
    assert_eq!(heartbeat_sender.pass(now + seconds(20)).await.unwrap().0, HeartbeatOutcome::Fetched);
}

async fn a_page_that_no_channel_takes_silences_the_heart_and_has_an_age(address: String) {
    let (mut world, heartbeat_sender, _outside) = with_heart(&address, "stdio: x").await;
    let chat = Receiver::http().await;
    chat.will(vec![Reply::Status(404, ""); 100]);
    let config = load("w.yaml", &hooks(&[("chat", &chat)]), Path::new("/"), &Environment::default()).unwrap().config;
    let (_, plan) = watch::channel(Arc::new(Plan { config: Arc::new(config), targets: BTreeMap::new() }));
    world.notifier = Notifier::new(world.store.clone(), plan, DeliveryClient::new(Network::default()));
    world.write(Kind::Trigger, &["chat"]).await;
    world.until(BEGIN + seconds(240)).await;
    // It waits for its next attempt.
    assert_eq!(world.store.oldest_unsent().await.unwrap(), Some(BEGIN));
    assert_eq!(world.store.overdue_page(BEGIN + seconds(100)).await.unwrap(), None, "its channels have that long");
    assert_eq!(world.store.overdue_page(world.now).await.unwrap(), Some(seconds(240)));
    world.heard(world.now, &["local"]).await;
    assert_eq!(
        heartbeat_sender.pass(world.now).await.unwrap().0,
        HeartbeatOutcome::Silent("no channel accepted the alert for 4 min".to_owned())
    );
    world.run("UPDATE outbox SET delivered = $1").await;
    assert_eq!(heartbeat_sender.pass(world.now + seconds(20)).await.unwrap().0, HeartbeatOutcome::Fetched);
    // What waits for the hours of its route waits for no channel.
    world.write(Kind::Update, &["chat"]).await;
    world.run("UPDATE outbox SET due = $1 + 3600000 WHERE delivered IS NULL").await;
    assert_eq!(world.store.overdue_page(world.now + seconds(3_700)).await.unwrap(), None);
    assert_eq!(world.store.overdue_page(world.now + seconds(3_800)).await.unwrap(), Some(seconds(200)));
}

async fn a_page_that_its_route_does_not_take_goes_to_the_other_channels(address: String) {
    let (pager, chat) = (Receiver::http().await, Receiver::http().await);
    pager.will(vec![Reply::Status(403, ""); 100]);
    let mut world = World::new(&address, &hooks(&[("chat", &chat), ("pager", &pager)])).await;
    world.write(Kind::Trigger, &["pager"]).await;
    world.until(BEGIN + seconds(5)).await;
    assert_eq!((kinds(&chat), world.open().await), (vec!["trigger".to_owned()], 0));
    assert!(world.events().await[0].ends_with("trying chat"), "{:?}", world.events().await);
    world.write(Kind::Resolve, &["pager"]).await;
    world.settle().await;
    assert_eq!((kinds(&chat), world.open().await), (vec!["trigger".to_owned(), "resolve".to_owned()], 0));
    // What need wake nobody stays where it belongs.
    let mut world = World::new(&address, &hooks(&[("chat", &chat), ("pager", &pager)])).await;
    world.run("UPDATE incident SET severity = 'notify' WHERE opened = $1").await;
    world.write(Kind::Trigger, &["pager"]).await;
    world.until(BEGIN + seconds(60)).await;
    assert_eq!((kinds(&chat).len(), world.open().await), (2, 1));
}
