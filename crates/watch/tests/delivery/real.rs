//! Real services that others wrote: a mail server that wants TLS and a password, and an Alertmanager.

use super::{INCIDENT, World, seconds};
use crate::receiver::Receiver;
use crate::receivers::script;
use libtest_mimic::{Failed, Trial};
use mcproof_client::{HttpCall, Network};
use mcproof_watch::channel::Kind;
use mcproof_watch::moment::Moment;
use mcproof_watch::store::sqlite;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitCode, Stdio};
use std::time::{Duration, Instant, SystemTime};
use url::Url;

/// Debian gives it a name of its own.
const ALERTMANAGERS: [&str; 2] = ["alertmanager", "prometheus-alertmanager"];
const PATIENCE: Duration = seconds(30);

pub(crate) fn trials() -> Vec<Trial> {
    let alertmanager = ALERTMANAGERS.into_iter().find(|name| is_there(name));
    vec![
        Trial::test("mail_goes_through_a_server_that_wants_tls_and_a_password", mail),
        // It is installed by those who want to; nothing else needs it.
        Trial::test("an_alertmanager_has_an_alert_until_its_end", move || alerts(alertmanager.unwrap()))
            .with_ignored_flag(alertmanager.is_none()),
    ]
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Killed when it is dropped.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        // It may be dead already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn mail() -> Result<(), Failed> {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("server.pem"), folder.path().join("key.pem"));
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let mut server = script("mail_server.py");
    server.arg(&certificate).arg(&key).args(["ann@example.com", "s3cret:/+"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut server = Service(server.spawn().unwrap());
    let mut said: Lines<BufReader<ChildStdout>> = BufReader::new(server.0.stdout.take().unwrap()).lines();
    let port = said.next().unwrap().unwrap();
    let relay = |password: &str, rest: &str| format!("smtp://ann%40example.com:{password}@localhost:{port}{rest}");

    let refused = |relay: &str, trusted: Option<&Path>, why: &str| {
        let told = post(relay, trusted);
        assert!(told.iter().all(|told| told["outcome"]["Err"].as_str().is_some_and(|told| told.contains(why))), "{why}: {told:?}");
    };
    refused(&relay("wrong", ""), Some(&certificate), "535");
    // Nobody vouches for the server.
    refused(&relay("s3cret%3A%2F%2B", ""), None, "certificate");
    // It wants TLS before anything else.
    refused(&relay("s3cret%3A%2F%2B", "?tls=none"), Some(&certificate), "");

    let told = post(&relay("s3cret%3A%2F%2B", ""), Some(&certificate));
    let outcomes: Vec<&Value> = told.iter().map(|told| &told["outcome"]).collect();
    assert_eq!(outcomes, [&json!({ "Ok": "250 taken" }), &json!({ "Ok": "250 taken" })]);
    let letters: Vec<Value> = said.by_ref().take(2).map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    let thread = format!("<{INCIDENT}@example.com>");
    for letter in &letters {
        assert_eq!((&letter["tls"], &letter["authenticated"], &letter["defects"]), (&json!(true), &json!(true), &json!([])));
        assert_eq!((&letter["from"], &letter["to"]), (&json!("watch@example.com"), &json!(["bob@example.com"])));
        assert!(letter["text"].as_str().unwrap().contains("connection refused"), "{letter}");
    }
    assert_eq!((&letters[0]["message_id"], &letters[0]["references"]), (&json!(thread), &Value::Null));
    assert_ne!(letters[1]["message_id"], letters[0]["message_id"]);
    assert_eq!(letters[1]["references"], json!(thread));
    Ok(())
}

/// Tells of a begin and of its end, in a process of its own: whom it trusts is read once.
fn post(relay: &str, trusted: Option<&Path>) -> Vec<Value> {
    let mut posting = Command::new(std::env::current_exe().unwrap());
    posting.args(["--post", relay]).env("SSL_CERT_FILE", trusted.unwrap_or(Path::new("/dev/null"))).env_remove("SSL_CERT_DIR");
    let output = posting.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The other process.
pub(crate) fn post_to(relay: &str) -> ExitCode {
    let folder = tempfile::tempdir().unwrap();
    let config = format!("channels: {{ mail: {{ smtp: {{ url: \"{relay}\", from: watch@example.com, to: [bob@example.com] }} }} }}\n");
    let told = alone().block_on(async {
        let mut world = World::new(&sqlite(&folder.path().join("watch.db")), &config).await;
        world.write(Kind::Trigger, &["mail"]).await;
        let mut told = world.settle().await.0;
        world.write(Kind::Resolve, &["mail"]).await;
        told.extend(world.settle().await.0);
        told
    });
    let told: Vec<Value> = told.iter().map(|sent| json!({ "kind": sent.kind.word(), "outcome": sent.outcome })).collect();
    serde_json::to_writer(std::io::stdout(), &told).unwrap();
    ExitCode::SUCCESS
}

fn alone() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn alerts(program: &str) -> Result<(), Failed> {
    alone().block_on(async {
        let folder = tempfile::tempdir().unwrap();
        // Whoever an Alertmanager tells of what it was told.
        let people = Receiver::http().await;
        let config = format!(
            "route: {{ receiver: people, group_wait: 0s, group_interval: 1s }}\n\
             receivers: [{{ name: people, webhook_configs: [{{ url: '{}', send_resolved: true }}] }}]\n",
            people.url("/")
        );
        std::fs::write(folder.path().join("alertmanager.yml"), config).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", program, "--web.listen-address=127.0.0.1:0", "--cluster.listen-address="]);
        command.args(["--config.file=alertmanager.yml", "--storage.path=data"]).current_dir(folder.path());
        let mut service = Service(command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
        let root = format!("http://{}", listens_at(service.0.stderr.take().unwrap()));
        let alerts = async || {
            let url = Url::parse(&format!("{root}/api/v2/alerts")).unwrap();
            let answer = HttpCall::connect(&url, &Network::default()).await.unwrap().send("GET", &[], Vec::new()).await.unwrap();
            let alerts: Vec<Value> = serde_json::from_slice(&answer.body).unwrap();
            alerts
        };
        let statuses = || people.heard().iter().map(|heard| heard.json()["status"].as_str().unwrap().to_owned()).collect::<Vec<_>>();

        let address = sqlite(&folder.path().join("watch.db"));
        let mut world = World::new(&address, &format!("channels: {{ am: {{ alertmanager: \"{root}\" }} }}\n")).await;
        // It has a clock of its own.
        world.now = now();
        world.run("UPDATE incident SET since = $1").await;
        world.write(Kind::Trigger, &["am"]).await;
        let (sent, _) = world.settle().await;
        assert!(matches!(&sent[..], [sent] if sent.outcome.is_ok()), "{sent:?}");
        let active = alerts().await;
        assert_eq!(active.len(), 1, "{active:?}");
        assert_eq!(active[0]["status"]["state"], "active");
        let labels = json!({
            "alertname": "mcproof-availability", "target": "shop", "class": "availability", "severity": "page", "incident": INCIDENT,
        });
        assert_eq!(active[0]["labels"], labels);
        assert!(active[0]["annotations"]["description"].as_str().unwrap().contains("connection refused"), "{active:?}");
        wait_until("somebody hears of the alert", || statuses() == ["firing"]).await;

        // Repeated, it is the same alert.
        world.now = world.now + seconds(60);
        world.settle().await;
        assert_eq!(alerts().await.len(), 1);
        // Another severity is another alert for it, and the only one.
        world.now = now();
        world.run("UPDATE incident SET severity = 'security' WHERE since <= $1").await;
        world.write(Kind::Update, &["am"]).await;
        world.settle().await;
        let active = alerts().await;
        assert_eq!((active.len(), &active[0]["labels"]["severity"]), (1, &json!("security")), "{active:?}");

        world.now = now();
        world.run("UPDATE incident SET resolved = $1").await;
        world.write(Kind::Resolve, &["am"]).await;
        let (sent, _) = world.settle().await;
        assert!(sent.iter().all(|sent| sent.outcome.is_ok()), "{sent:?}");
        let active = alerts().await;
        assert!(active.is_empty(), "{active:?}");
        wait_until("somebody hears of the end", || statuses().last().is_some_and(|status| status == "resolved")).await;
        let last = people.heard().pop().unwrap().json();
        assert!(last["alerts"].as_array().unwrap().iter().all(|alert| alert["status"] == "resolved"), "{last}");
    });
    Ok(())
}

/// As it says itself. The rest of what it says is read, too, so that it never waits for us.
fn listens_at(said: ChildStderr) -> String {
    let mut lines = BufReader::new(said).lines();
    let address = lines.by_ref().find_map(|line| {
        let line = line.unwrap();
        let listens = line.contains("Listening on").then(|| line.split("address=").nth(1).map(str::to_owned));
        listens.flatten()
    });
    std::thread::spawn(move || lines.for_each(drop));
    address.unwrap().trim().to_owned()
}

async fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "the service has the clock of the machine")]
fn now() -> Moment {
    Moment::from(SystemTime::now())
}
