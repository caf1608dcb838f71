//! Subscriptions to the status page: asked for over HTTP, and told by real mails and real webhooks.

use crate::data::NOW;
use crate::receiver::{Heard, Receiver, Reply};
use crate::{Dashboard, on_both};
use mcproof_client::{Destinations, Network};
use mcproof_watch::channel::{SIGNATURE_HEADER, signature};
use mcproof_watch::config::{Config, Login, Secret, StatusSpec, SubscriptionMail, SubscriptionsSpec};
use mcproof_watch::moment::Moment;
use mcproof_watch::seal::SealKey;
use mcproof_watch::subscribers::{FailedMessage, Subscribers};
use mcproof_watch::worker::Plan;
use serde_json::{Value, json};
use sqlx::{AnyConnection, Connection as _, Executor as _};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;

const SECOND: Duration = Duration::from_secs(1);

/// `relay` takes mails; webhooks may be anywhere.
fn config(relay: SocketAddr) -> Config {
    let relay = Secret::new(format!("smtp://{relay}"));
    let mail = SubscriptionMail { relay, from: "Example status <status@example.com>".into() };
    let subscriptions = SubscriptionsSpec { mail: Some(mail), webhook: Some(Destinations::Any) };
    Config {
        public_url: Some("https://status.example.com".into()),
        seal: Some(SealKey::parse(&"ab".repeat(32)).unwrap()),
        login: Login { tokens: vec![Secret::new("token-of-ann")], ..Login::default() },
        status: StatusSpec { title: Some("Example".into()), subscriptions, ..StatusSpec::default() },
        ..Config::default()
    }
}

/// Somebody who reads the status page, and the monitor that tells them.
struct Scene<'d> {
    dashboard: &'d Dashboard,
    subscribers: Subscribers,
    now: Moment,
}

impl<'d> Scene<'d> {
    fn new(dashboard: &'d Dashboard, config: Config) -> Self {
        let (_, plan) = watch::channel(Arc::new(Plan { config: Arc::new(config), targets: BTreeMap::new() }));
        let subscribers = Subscribers::new(dashboard.store.clone(), plan, Network::default(), "test".into());
        Self { dashboard, subscribers, now: NOW }
    }

    fn post(&self, path: &str, body: &str) -> (u16, String) {
        let answer = self.dashboard.ask("POST", path, &[("Content-Type", "application/x-www-form-urlencoded")], body);
        (answer.status, answer.body)
    }

    fn publish(&self, title: &str, targets: &[&str]) {
        let notice = json!({ "title": title, "targets": targets, "progress": "investigating", "text": "We look." });
        assert_eq!(self.dashboard.json("POST", "/api/notices", "token-of-ann", &notice).0, 201);
    }

    /// Sends until nothing is due for so long.
    fn pass(&mut self, after: Duration) -> Vec<FailedMessage> {
        self.now = self.now + after;
        self.dashboard.runtime.block_on(async {
            let mut undelivered = Vec::new();
            loop {
                let (some, next) = self.subscribers.pass(self.now).await.unwrap();
                undelivered.extend(some);
                if next > self.now {
                    return undelivered;
                }
            }
        })
    }

    fn run(&self, statement: &str) -> Vec<String> {
        self.dashboard.runtime.block_on(async {
            let mut connection = AnyConnection::connect(&self.dashboard.database).await.unwrap();
            let rows = sqlx::query_scalar::<_, String>(sqlx::AssertSqlSafe(statement.to_owned())).fetch_all(&mut connection).await.unwrap();
            connection.close().await.unwrap();
            rows
        })
    }

    fn outage(&self, target: &str, opened: Moment, resolved: Option<Moment>) {
        self.incident("availability", target, opened, resolved);
    }

    fn incident(&self, class: &str, target: &str, opened: Moment, resolved: Option<Moment>) {
        let resolved = resolved.map_or("NULL".to_owned(), |resolved| resolved.0.to_string());
        let statement = format!(
            "INSERT INTO incident (id, subject, class, severity, title, detail, since, opened, resolved) VALUES \
             ('{class}-{target}-{opened}', '{target}', '{class}', 'page', 'down', '{{\"message\":\"x\"}}', {opened}, {opened}, {resolved}) \
             ON CONFLICT (id) DO UPDATE SET resolved = excluded.resolved",
            opened = opened.0
        );
        self.dashboard.runtime.block_on(async {
            let mut connection = AnyConnection::connect(&self.dashboard.database).await.unwrap();
            connection.execute(sqlx::AssertSqlSafe(statement)).await.unwrap();
            connection.close().await.unwrap();
        });
    }
}

/// What stands behind this in a mail.
fn link(mail: &Heard, path: &str) -> String {
    let text = text(mail);
    let start = text.find(path).unwrap_or_else(|| panic!("{path}: {text}"));
    text[start..].split(|character: char| !(character.is_ascii_alphanumeric() || "/-_".contains(character))).next().unwrap().to_owned()
}

/// Without the ends of lines that are the mail's only (quoted-printable).
fn text(mail: &Heard) -> String {
    mail.body.replace("=\r\n", "").replace("\r\n ", " ").replace("=3D", "=")
}

fn subject(mail: &Heard) -> &str {
    mail.body.lines().find_map(|line| line.strip_prefix("Subject: ")).unwrap()
}

/// A runtime that goes on by itself, for as long as this process lives.
fn background() -> Handle {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tell.send(runtime.handle().clone()).unwrap();
        runtime.block_on(std::future::pending::<()>());
    });
    told.recv().unwrap()
}

/// A mail server that lives as long as its thread's runtime.
fn relay(runtime: &Handle) -> Receiver {
    runtime.block_on(Receiver::smtp())
}

#[test]
fn who_confirms_an_address_is_told_by_mail_until_they_unsubscribe() {
    let runtime = background();
    let relay = relay(&runtime);
    let heard = std::cell::Cell::new(0);
    on_both(
        || config(relay.address),
        |dashboard| {
            let mut scene = Scene::new(dashboard, config(relay.address));
            let mails = || {
                let all = relay.heard();
                let new = all[heard.get()..].to_vec();
                heard.set(all.len());
                new
            };
            assert!(dashboard.get("/status").body.contains("action=\"/subscribe\""));
            assert_eq!(scene.post("/subscribe", "medium=mail&address=nobody").0, 422);
            assert_eq!(scene.post("/subscribe", "medium=mail&address=ann@example.com&targets=nowhere").0, 422);
            let (status, first) = scene.post("/subscribe", "medium=mail&address=Ann@example.com&targets=svc-0009");
            assert_eq!(status, 202);
            // Asked twice, written to once.
            assert_eq!(scene.post("/subscribe", "medium=mail&address=ann@EXAMPLE.com&targets=svc-0009"), (202, first.clone()));
            assert_eq!(scene.pass(Duration::ZERO), []);
            let asked = mails();
            assert_eq!(asked.iter().map(subject).collect::<Vec<_>>(), ["Confirm your subscription to Example"]);
            assert!(asked[0].header("rcpt").contains("<ann@example.com>"), "{:?}", asked[0].headers);
            let confirm = link(&asked[0], "/subscribe/");
            let token = confirm.rsplit('/').next().unwrap();
            let kept = scene.run("SELECT hash || subscription FROM subscription_token");
            assert!(token.len() == 43 && kept.len() == 1 && !kept[0].contains(token), "only a hash is kept: {token} {kept:?}");
            // A mail program that opens the link confirms nothing.
            assert!(dashboard.get(&confirm).body.contains("Subscribe</button>"));
            scene.publish("Too early", &[]);
            scene.pass(SECOND);
            assert!(mails().is_empty(), "nobody is told who has not confirmed");
            assert_eq!(scene.post(&format!("{confirm}x"), "").0, 404);
            assert_eq!(scene.post(&confirm, "").0, 200);
            // What concerns them, once, whoever passes.
            scene.publish("Search is slow", &["svc-0009"]);
            scene.publish("Another one is slow", &["svc-0005"]);
            scene.publish("All are slow", &[]);
            relay.will([Reply::Status(451, "")]);
            assert_eq!(scene.pass(SECOND).len(), 1, "the mail server was busy");
            assert_eq!(mails().len(), 1);
            scene.pass(SECOND * 11);
            let mut told = mails();
            // Those of one moment are in no order.
            told.sort_by(|one, two| subject(two).cmp(subject(one)));
            assert_eq!(
                told.iter().map(subject).collect::<Vec<_>>(),
                ["[Example] Search is slow (investigating)", "[Example] All are slow (investigating)"]
            );
            let leave = link(&told[0], "/unsubscribe/");
            let raw = text(&told[0]);
            assert!(raw.contains(&format!("List-Unsubscribe: <https://status.example.com{leave}>")), "{raw}");
            assert!(raw.contains("List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"), "{raw}");
            let opened = scene.now;
            scene.outage("svc-0009", opened, None);
            scene.outage("svc-0005", opened, None);
            scene.pass(SECOND);
            scene.outage("svc-0009", opened, Some(opened + SECOND));
            scene.pass(SECOND);
            let outage = mails();
            assert_eq!(
                outage.iter().map(subject).collect::<Vec<_>>(),
                ["[Example] svc-0009 is down", "[Example] svc-0009 is up again after 1 s"]
            );
            // Who is subscribed is told so in a mail, not on the page.
            assert_eq!(scene.post("/subscribe", "medium=mail&address=ben@example.com&targets=").1, first);
            scene.now = NOW + SECOND * 700;
            let again = dashboard.runtime.block_on(async {
                let wanted = mcproof_watch::store::subscriptions::SubscriptionRequest {
                    medium: mcproof_watch::store::subscriptions::Medium::Mail,
                    address: "ann@example.com",
                    targets: &[],
                    secret: &[],
                };
                dashboard.store.request_subscription(&wanted, scene.now).await
            });
            again.unwrap();
            scene.pass(SECOND);
            let mut subjects: Vec<String> = mails().iter().map(|mail| subject(mail).to_owned()).collect();
            subjects.sort();
            assert_eq!(subjects, ["Confirm your subscription to Example", "You are subscribed to Example"]);
            // As a mail program does it by itself.
            assert_eq!(scene.post(&leave, "List-Unsubscribe=One-Click").0, 200);
            assert_eq!(scene.post(&leave, "List-Unsubscribe=One-Click").0, 404);
            assert_eq!(scene.run("SELECT address FROM subscription"), ["ben@example.com"], "nothing is left of them");
            scene.publish("Too late", &[]);
            scene.pass(SECOND);
            assert!(mails().is_empty());
            // Nobody has us write to everybody.
            let mut refused = 0;
            for number in 0..12 {
                refused += u32::from(scene.post("/subscribe", &format!("medium=mail&address=stranger-{number}@example.com")).0 == 429);
            }
            assert!((1..12).contains(&refused), "{refused} of 12 refused");
        },
    );
}

/// A subscriber's service: what it was sent, and whether it returns challenges.
#[derive(Clone, Default)]
struct Hook {
    heard: Arc<Mutex<Vec<(String, String, Value)>>>,
    /// Statuses of the next responses; 200 if there are none.
    will: Arc<Mutex<Vec<u16>>>,
    returns: Arc<Mutex<bool>>,
}

impl Hook {
    fn listen(&self, runtime: &Handle) -> String {
        let hook = self.clone();
        let take = async move |headers: axum::http::HeaderMap, body: String| {
            let message: Value = serde_json::from_str(&body).unwrap();
            let challenge = message["challenge"].as_str().filter(|_| *hook.returns.lock().unwrap()).unwrap_or("ok").to_owned();
            let signed = headers[SIGNATURE_HEADER].to_str().unwrap().to_owned();
            hook.heard.lock().unwrap().push((signed, body, message));
            let status = hook.will.lock().unwrap().pop().unwrap_or(200);
            (axum::http::StatusCode::from_u16(status).unwrap(), json!({ "challenge": challenge }).to_string())
        };
        let router = axum::Router::new().route("/hook", axum::routing::post(take));
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        runtime.spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let service = hyper_util::service::TowerToHyperService::new(router.clone());
                tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(hyper_util::rt::TokioIo::new(stream), service));
            }
        });
        url
    }

    fn kinds(&self) -> Vec<String> {
        self.heard.lock().unwrap().iter().map(|(.., message)| message["kind"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn a_webhook_that_returns_the_challenge_is_told_with_a_signature() {
    let runtime = background();
    let relay = relay(&runtime);
    on_both(
        || config(relay.address),
        |dashboard| {
            let mut scene = Scene::new(dashboard, config(relay.address));
            let hook = Hook::default();
            let url = hook.listen(&runtime);
            let request = format!("medium=webhook&address={url}&targets=svc-0009");
            assert_eq!(scene.post("/subscribe", &request).0, 202);
            let undelivered = scene.pass(Duration::ZERO);
            assert_eq!(
                undelivered.iter().map(|undelivered| undelivered.why.as_str()).collect::<Vec<_>>(),
                ["it did not return the challenge"]
            );
            assert_eq!(scene.run("SELECT address FROM subscription"), Vec::<String>::new(), "who does not want it is forgotten");
            *hook.returns.lock().unwrap() = true;
            let (status, page) = scene.post("/subscribe", &request);
            let secret = page.split("<code>").nth(1).unwrap().split('<').next().unwrap();
            assert_eq!((status, secret.len()), (202, 43), "{page}");
            assert_eq!(scene.pass(Duration::ZERO), []);
            assert_eq!(hook.kinds(), ["challenge", "challenge"]);
            let opened = scene.now + SECOND;
            scene.outage("svc-0009", opened, None);
            scene.publish("Another one is slow", &["svc-0005"]);
            hook.will.lock().unwrap().push(500);
            assert_eq!(scene.pass(SECOND).len(), 1);
            scene.pass(SECOND * 11);
            assert_eq!(hook.kinds()[2..], ["outage-began", "outage-began"], "tried again");
            let heard = hook.heard.lock().unwrap().clone();
            for (signed, body, _) in &heard[1..] {
                let seconds: i64 = signed.strip_prefix("t=").unwrap().split(',').next().unwrap().parse().unwrap();
                assert_eq!(*signed, signature(&Secret::new(secret), Moment(seconds * 1000), body.as_bytes()));
            }
            let (first, again) = (&heard[2].2, &heard[3].2);
            assert_eq!(
                (&first["id"], &first["title"], &first["targets"]),
                (&again["id"], &json!("svc-0009 is down"), &json!(["svc-0009"]))
            );
            let leave = again["unsubscribe_url"].as_str().unwrap().strip_prefix("https://status.example.com").unwrap();
            assert_eq!(scene.post(leave, "").0, 200);
            scene.outage("svc-0009", opened, Some(scene.now));
            scene.pass(SECOND);
            assert_eq!(hook.kinds().len(), 4);
        },
    );
}

#[test]
fn what_subscribers_were_told_last_is_true_also_of_what_flaps() {
    let runtime = background();
    let relay = relay(&runtime);
    on_both(
        || config(relay.address),
        |dashboard| {
            let mut scene = Scene::new(dashboard, config(relay.address));
            let hook = Hook { returns: Arc::new(Mutex::new(true)), ..Hook::default() };
            let url = hook.listen(&runtime);
            assert_eq!(scene.post("/subscribe", &format!("medium=webhook&address={url}&targets=svc-0009")).0, 202);
            assert_eq!(scene.pass(Duration::ZERO), []);
            let told = || {
                let heard = hook.heard.lock().unwrap();
                heard[1..].iter().map(|(.., message)| message["title"].as_str().unwrap().to_owned()).collect::<Vec<String>>()
            };
            let began = scene.now + SECOND;
            scene.incident("flapping", "svc-0009", began, None);
            scene.pass(SECOND);
            assert_eq!(told(), ["svc-0009 is unstable"]);
            // It stays down.
            let down = scene.now + SECOND;
            scene.incident("flapping", "svc-0009", began, Some(down));
            scene.outage("svc-0009", down, None);
            scene.pass(SECOND);
            scene.outage("svc-0009", down, Some(down + SECOND));
            scene.pass(SECOND);
            assert_eq!(told()[1..], ["svc-0009 is down", "svc-0009 is up again after 1 s"]);
            // It is calm again.
            let began = scene.now + SECOND;
            scene.incident("flapping", "svc-0009", began, None);
            scene.pass(SECOND);
            scene.incident("flapping", "svc-0009", began, Some(began + SECOND));
            scene.pass(SECOND);
            assert_eq!(told()[3..], ["svc-0009 is unstable", "svc-0009 is stable again after 1 s"]);
            assert_eq!(hook.kinds()[4..], ["outage-began", "outage-ended"]);
            let feed = dashboard.get("/status.atom").body;
            assert!(feed.contains("svc-0009 is unstable") && feed.contains("svc-0009 is stable again after 1 s"), "{feed}");
        },
    );
}

#[test]
fn nobody_can_subscribe_where_that_is_not_configured() {
    let dashboard = Dashboard::new(Config::default());
    assert!(!dashboard.get("/status").body.contains("/subscribe"));
    let headers = [("Content-Type", "application/x-www-form-urlencoded")];
    for medium in ["mail", "webhook"] {
        let body = format!("medium={medium}&address=ann@example.com");
        assert_eq!(dashboard.ask("POST", "/subscribe", &headers, &body).status, 404, "{medium}");
    }
}
