//! The dashboard, the status page and the API: over real HTTP, and in a real browser.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../cli/tests/browser/mod.rs"]
mod browser;
#[path = "web/data.rs"]
mod data;
#[path = "web/looks.rs"]
mod looks;
mod postgres;
mod receiver;
mod receivers;
#[path = "web/subscriptions.rs"]
mod subscriptions;

use data::{Data, HOSTILE, NOW};
use mcproof_suite::Environment;
use mcproof_trace::{MarkBody, PROBE, Trace, TraceLine};
use mcproof_watch::api_target;
use mcproof_watch::config::{Config, Login, Proxy, Secret, StatusPageSpec, StatusSpec, TargetKind, TargetSpec, User, When, Window, load};
use mcproof_watch::moment::Moment;
use mcproof_watch::push::{Expectation, PushSchedule, Said};
use mcproof_watch::role::Role;
use mcproof_watch::seal::SealKey;
use mcproof_watch::store::{Store, sqlite};
use mcproof_watch::web::{self, ServeFailure, State};
use postgres::{Cluster, Durability};
use saphyr::LoadableYamlNode as _;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{broadcast, oneshot};

fn now() -> Moment {
    NOW
}

pub(crate) fn with_token(token: &str) -> Config {
    Config { login: Login { tokens: vec![Secret::new(token)], ..Login::default() }, ..Config::default() }
}

/// A dashboard over a database full of things, for as long as this lives.
pub(crate) struct Dashboard {
    pub(crate) address: SocketAddr,
    pub(crate) database: String,
    pub(crate) store: Store,
    pub(crate) data: Data,
    pub(crate) bell: broadcast::Sender<String>,
    pub(crate) runtime: tokio::runtime::Runtime,
    _end: oneshot::Sender<()>,
    _folder: Option<tempfile::TempDir>,
}

fn alone() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

impl Dashboard {
    pub(crate) fn new(config: Config) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::over(sqlite(&folder.path().join("watch.db")), Some(folder), config)
    }

    fn over(database: String, folder: Option<tempfile::TempDir>, config: Config) -> Self {
        let runtime = alone();
        let (store, data) = runtime.block_on(data::whole(&database));
        let (bell, _) = broadcast::channel(64);
        let (end, ended) = oneshot::channel::<()>();
        let (tell, address) = std::sync::mpsc::channel();
        let (ring, of_thread) = (bell.clone(), database.clone());
        std::thread::spawn(move || {
            alone().block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                let config = Arc::new(config);
                let state = State::new(Store::open(&of_thread).await.unwrap(), Arc::new(move || config.clone()), now, ring);
                let shutdown = async {
                    let _ = ended.await;
                };
                web::serve(listener, state, shutdown).await.unwrap();
            });
        });
        let address = address.recv().unwrap();
        Self { address, database, store, data, bell, runtime, _end: end, _folder: folder }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "")
    }

    /// One request on a connection of its own, as its bytes say.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub(crate) fn json(&self, method: &str, path: &str, token: &str, body: &Value) -> (u16, Value) {
        let bearer = format!("Bearer {token}");
        let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = self.ask(method, path, &headers, &body);
        (answer.status, serde_json::from_str(&answer.body).unwrap_or_default())
    }
}

/// The same dashboard over either database.
pub(crate) fn on_both(config: impl Fn() -> Config, claim: impl Fn(&Dashboard)) {
    claim(&Dashboard::new(config()));
    let cluster = Cluster::start(Durability::None);
    claim(&Dashboard::over(cluster.database("dashboard"), None, config()));
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Answer {
    fn header<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all_headers(name).next()
    }

    fn all_headers<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(move |(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The hidden field of the first form.
    fn seal(&self) -> &str {
        self.body.split("name=\"seal\" value=\"").nth(1).unwrap().split('"').next().unwrap()
    }

    /// The cookies that it sets, as a browser sends them back.
    fn cookies(&self) -> String {
        let pairs: Vec<&str> = self.all_headers("set-cookie").map(|cookie| cookie.split(';').next().unwrap()).collect();
        pairs.join("; ")
    }
}

#[test]
fn every_page_shows_what_it_is_for_and_no_server_writes_markup() {
    let dashboard = Dashboard::new(Config::default());
    let hostile = "%3C%2Fa%3E%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E%3Cscript%3Ealert%282%29%3C%2Fscript%3E%22%27%E2%80%AE%1B%5B31m";
    for (path, parts) in [
        (
            "/",
            vec!["3 of 13 targets down", "svc-0001", "connection refused", "waiting", "contract changed", "mixed fleet", "1 being probed"],
        ),
        ("/?state=down", vec!["svc-0001", "2 of 13 shown"]),
        ("/?tag=billing&q=svc-0003", vec!["svc-0003", "1 of 13 shown"]),
        ("/targets/svc-0001", vec!["It has been down for 30 min.", "connect-refused", "p95", "3 tools", "/evidence/evidence-1"]),
        ("/targets/svc-0007?span=30d", vec!["It is up.", "% up", "dns", "1.2 ms"]),
        ("/targets/svc-0003", vec!["/changes/change-1", "security"]),
        ("/incidents", vec!["svc-0001 is down", "availability"]),
        ("/incidents?state=all", vec!["svc-0001 is down"]),
        (
            "/incidents/incident-1",
            vec!["failed at <b>connect</b>", "three probes failed in a row", "HTTP 503", "POST /mcp", "Acknowledge", "does it listen"],
        ),
        ("/incidents/incident-2", vec!["storm", "needle"]),
        ("/evidence/evidence-1", vec!["handshake-failed", "needle", "x-evil"]),
        ("/changes/change-1", vec!["1 breaking, 1 compatible, 1 cosmetic", "is required now", "suspicious", "only for modern/minimal"]),
        ("/maintenance", vec!["Nothing is planned"]),
        ("/tokens", vec!["None."]),
        ("/status", vec!["down", "90 days ago", "3 tools"]),
        ("/status/svc-0005", vec!["svc-0005"]),
    ] {
        let page = dashboard.get(path);
        assert_eq!(page.status, 200, "{path}: {}", page.body);
        for part in parts {
            assert!(page.body.contains(part), "{part} is not in {path}:\n{}", page.body);
        }
        for evil in ["<img src=x", "<script>alert", "\u{202e}", "\u{1b}", "style=\""] {
            assert!(!page.body.contains(evil), "{path} holds {evil:?}");
        }
    }
    assert_eq!(dashboard.get(&format!("/targets/{hostile}")).status, 200);
    assert!(dashboard.get("/").body.contains(&format!("/targets/{hostile}")));
    for path in [
        "/targets/nobody",
        "/incidents/nobody",
        "/evidence/nobody",
        "/changes/nobody",
        "/nowhere",
        "/status/svc-0002",
        "/badge/svc-0002.svg",
        "/badge/x",
    ] {
        assert_eq!(dashboard.get(path).status, 404, "{path}");
    }
}

#[test]
fn everything_reads_the_same_whichever_database_it_comes_from() {
    let cluster = Cluster::start(Durability::None);
    let one = Dashboard::new(Config::default());
    let other = Dashboard::over(cluster.database("pages"), None, Config::default());
    for path in [
        "/",
        "/?state=down",
        "/?tag=billing&q=svc-0003",
        "/targets/svc-0001",
        "/targets/svc-0007?span=7d",
        "/targets/svc-0007?span=30d",
        "/targets/svc-0003",
        "/incidents?state=all",
        "/incidents/incident-1",
        "/incidents/incident-2",
        "/evidence/evidence-1",
        "/evidence/evidence-1?download",
        "/changes/change-1",
        "/maintenance",
        "/tokens",
        "/status",
        "/status/svc-0005",
        "/badge/svc-0001.svg",
        "/targets/nobody",
        "/incidents/nobody",
        "/api/targets",
        "/api/targets/svc-0001",
        "/api/incidents?state=all",
        "/api/results?target=svc-0001&limit=500",
        "/metrics",
        "/healthz",
    ] {
        let [one, other] = [&one, &other].map(|dashboard| {
            let answer = dashboard.get(path);
            let mut lines: Vec<String> = answer.body.lines().map(str::to_owned).collect();
            if path == "/metrics" {
                // Series are in no order.
                lines.sort();
            }
            (answer.status, lines)
        });
        assert_eq!(one.0, other.0, "{path}");
        // Forms are signed with a key of the process.
        let differ = |(one, other): &(&String, &String)| one != other && !one.contains("name=\"seal\"");
        let pairs = one.1.iter().zip(&other.1);
        assert_eq!(pairs.clone().find(differ), None, "{path}");
        assert_eq!(one.1.len(), other.1.len(), "{path}");
    }
}

#[test]
fn what_only_some_regions_see_is_shown_where_it_is_up() {
    let dashboard = Dashboard::new(Config::default());
    let (title, detail) = ("svc-0009 is down from eu, not from us", json!({ "layer": "connect", "message": "no route" }));
    dashboard.runtime.block_on(dashboard.data.incident("incident-3", "svc-0009", "partial", title, &detail, None));
    for (path, parts) in [
        ("/?q=svc-0009", vec![title, "1 of 13 shown"]),
        ("/targets/svc-0009", vec!["It is up, but not from everywhere.", title]),
        ("/incidents/incident-3", vec![title, "partial", "failed at <b>connect</b>"]),
    ] {
        let page = dashboard.get(path);
        for part in parts {
            assert!(page.body.contains(part), "{part} is not in {path}:\n{}", page.body);
        }
    }
}

#[test]
fn responses_tell_browsers_to_run_nothing_else() {
    let dashboard = Dashboard::new(Config::default());
    assert_eq!(dashboard.get("/login?next=%2Fincidents").header("location"), Some("/incidents"), "nobody has to log in");
    for path in ["/", "/login", "/status", "/nowhere", "/badge/svc-0001.svg", "/api/targets", "/healthz"] {
        let answer = dashboard.get(path);
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("referrer-policy"), Some("same-origin"), "{path}");
    }
    let style = dashboard.get("/").body.split("/assets/watch-").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let style = dashboard.get(&format!("/assets/watch-{style}"));
    assert_eq!(style.status, 200);
    assert!(style.header("cache-control").unwrap().contains("immutable"));
}

#[test]
fn evidence_is_downloaded_as_it_was_written() {
    let dashboard = Dashboard::new(Config::default());
    let file = dashboard.get("/evidence/evidence-1?download");
    assert_eq!(file.header("content-disposition"), Some("attachment; filename=\"probe-evidence-1.json\""));
    let body: Value = serde_json::from_str(&file.body).unwrap();
    assert_eq!((&body["version"], &body["report"]["reason"]), (&json!(1), &json!("handshake-failed")));
    assert_eq!(body["transcript"]["frames"].as_array().unwrap().len(), 4);
}

#[test]
fn evidence_is_downloaded_as_a_trace() {
    let dashboard = Dashboard::new(Config::default());
    let page = dashboard.get("/evidence/evidence-1").body;
    assert!(
        page.contains("/evidence/evidence-1?download=trace") && page.contains("mcproof trace show probe-evidence-1.mcptrace"),
        "{page}"
    );
    let mut stream = TcpStream::connect(dashboard.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let request = format!("GET /evidence/evidence-1?download=trace HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", dashboard.address);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("filename=\"probe-evidence-1.mcptrace\""), "{head}");
    let trace = Trace::from_reader(Box::new(std::io::Cursor::new(answer[end..].to_vec()))).unwrap();
    let session = trace.manifest().sessions[0].clone();
    assert_eq!((session.server.as_str(), session.transport.as_str(), session.era.as_deref()), ("svc-0001", "http", Some("legacy")));
    let lines: Vec<TraceLine> = trace.map(Result::unwrap).collect();
    let count = |is: fn(&TraceLine) -> bool| lines.iter().filter(|line| is(line)).count();
    assert_eq!(count(|line| matches!(line, TraceLine::Frame(_))), 4);
    assert_eq!(count(|line| matches!(line, TraceLine::Mark(mark) if matches!(mark.body, MarkBody::Finding { .. }))), 1);
    assert_eq!(count(|line| matches!(line, TraceLine::Attachment(file) if file.name == PROBE)), 1);
    assert_eq!(count(|line| matches!(line, TraceLine::End(_))), 1);
}

#[test]
fn without_a_login_only_this_machine_is_served_by_its_own_names() {
    let dashboard = Dashboard::new(Config { public_url: Some("https://watch.example".into()), ..Config::default() });
    for (host, expected) in [
        ("127.0.0.1:1", 200),
        ("localhost", 200),
        ("[::1]:80", 200),
        ("watch.example", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
    ] {
        for path in ["/", "/api/targets", "/status"] {
            assert_eq!(dashboard.ask("GET", path, &[("Host", host)], "").status, expected, "{host} {path}");
        }
    }
    let failure = dashboard.runtime.block_on(async {
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let config = Arc::new(Config::default());
        let state = State::new(dashboard.store.clone(), Arc::new(move || config.clone()), now, broadcast::channel(1).0);
        web::serve(listener, state, async {}).await.unwrap_err()
    });
    assert!(matches!(failure, ServeFailure::Open(_)) && failure.hint().contains("login.tokens"), "{failure}");
}

#[test]
fn pages_are_compressed_for_whoever_takes_that_and_events_come_at_once() {
    let dashboard = Dashboard::new(Config::default());
    let page = dashboard.get("/");
    // One visit, so that forms are sealed alike.
    let visit = page.cookies();
    // Of an older version of HTTP the body is all that is left, without marks of its pieces.
    let ask = |path: &str, more: &str| {
        let mut stream = TcpStream::connect(dashboard.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {}\r\nCookie: {visit}\r\n{more}\r\n", dashboard.address).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        (String::from_utf8(head).unwrap().to_lowercase(), stream)
    };
    let style = page.body.split("href=\"/assets/watch").nth(1).unwrap().split('"').next().unwrap();
    let style = format!("/assets/watch{style}");
    for path in ["/", "/targets/svc-0001", &style, "/api/targets", "/incidents", "/status"] {
        let bodies = ["", "Accept-Encoding: gzip;q=0\r\n", "Accept-Encoding: br, gzip\r\n"].map(|accept| {
            let (head, mut stream) = ask(path, accept);
            assert_eq!(head.contains("content-encoding: gzip"), accept.contains("br, gzip"), "{path} {head}");
            assert!(head.contains("vary: accept-encoding"), "{path} {head}");
            let mut body = Vec::new();
            stream.read_to_end(&mut body).unwrap();
            body
        });
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(bodies[2].as_slice()).read_to_end(&mut text).unwrap();
        assert!(text == bodies[0] && text == bodies[1] && !text.is_empty(), "{path}");
        assert!(bodies[2].len() * 2 < text.len(), "{path}: {} of {}", bodies[2].len(), text.len());
    }

    let (head, mut events) = ask("/events", "Accept-Encoding: gzip\r\n");
    assert!(head.contains("content-type: text/event-stream") && !head.contains("content-encoding"), "{head}");
    dashboard.bell.send("svc-0001".to_owned()).unwrap();
    let mut begin = [0; 14];
    events.read_exact(&mut begin).unwrap();
    assert_eq!(&begin, b"event: changed");
}

#[test]
fn a_token_opens_the_dashboard_until_it_is_left() {
    let dashboard = Dashboard::new(with_token("open sesame"));
    let refused = dashboard.get("/targets/svc-0001?span=7d");
    assert_eq!((refused.status, refused.header("location")), (303, Some("/login?next=%2Ftargets%2Fsvc-0001%3Fspan%3D7d")));
    for path in ["/", "/incidents/incident-1", "/evidence/evidence-1?download", "/events", "/tokens"] {
        assert_eq!(dashboard.get(path).status, 303, "{path}");
    }
    for path in ["/api/targets", "/metrics"] {
        assert_eq!(dashboard.get(path).status, 401, "{path}");
    }
    for path in ["/status", "/badge/svc-0001.svg", "/healthz"] {
        assert_eq!(dashboard.get(path).status, 200, "{path} is for everybody");
    }

    let form = dashboard.get("/login?next=%2Ftargets%2Fsvc-0001");
    let (visit, seal) = (form.cookies(), form.seal().to_owned());
    let enter = |token: &str, seal: &str| {
        let body = format!("seal={seal}&token={}&name=Eve&next=%2Ftargets%2Fsvc-0001", token.replace(' ', "+"));
        let headers = [("Cookie", visit.as_str()), ("Content-Type", "application/x-www-form-urlencoded")];
        dashboard.ask("POST", "/login", &headers, &body)
    };
    assert_eq!(enter("open sesame", "forged").status, 403);
    let wrong = enter("wrong", &seal);
    assert!(wrong.status == 403 && wrong.body.contains("not valid") && wrong.header("set-cookie").is_none());
    let entered = enter("open sesame", &seal);
    assert_eq!((entered.status, entered.header("location")), (303, Some("/targets/svc-0001")));
    let cookie = entered.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict") && !cookie.contains("open sesame"), "{cookie}");

    let session = entered.cookies();
    let page = dashboard.ask("GET", "/incidents/incident-1", &[("Cookie", &session)], "");
    assert!(page.body.contains("Acknowledge"));
    let send = |seal: &str, more: &[(&str, &str)]| {
        let mut headers = vec![("Cookie", session.as_str()), ("Content-Type", "application/x-www-form-urlencoded")];
        headers.extend(more);
        dashboard.ask("POST", "/incidents/incident-1/acknowledge", &headers, &format!("seal={seal}"))
    };
    for (seal, more) in [
        ("", vec![]),
        (seal.as_str(), vec![]),
        (page.seal(), vec![("Origin", "http://evil.example")]),
        (page.seal(), vec![("Sec-Fetch-Site", "cross-site")]),
        (page.seal(), vec![("Origin", "null")]),
    ] {
        assert_eq!(send(seal, &more).status, 403, "{seal} {more:?}");
    }
    // Whoever looked at it before it became more severe has not acknowledged what it is.
    let raised = "INSERT INTO incident_event (incident, at, kind, text) VALUES ('incident-1', 2, 'raised', 'from notify to page')";
    dashboard.runtime.block_on(dashboard.data.run(raised));
    assert_eq!(send(&format!("{}&seen=1", page.seal()), &[]).status, 409);
    assert_eq!(dashboard.runtime.block_on(dashboard.data.text("SELECT acknowledged_by FROM incident WHERE id = 'incident-1'")), None);
    assert_eq!(send(page.seal(), &[("Origin", &dashboard.url(""))]).status, 303);
    let by = dashboard.runtime.block_on(dashboard.data.text("SELECT acknowledged_by FROM incident WHERE id = 'incident-1'"));
    assert_eq!(by.as_deref(), Some("token"), "whose token it is, whatever the form says");

    // A cookie that was changed, or signed with another token, is none.
    let forged = format!("{}x", session);
    assert_eq!(dashboard.ask("GET", "/", &[("Cookie", &forged)], "").status, 303);
    let left = dashboard.ask(
        "POST",
        "/logout",
        &[("Cookie", &session), ("Content-Type", "application/x-www-form-urlencoded")],
        &format!("seal={}", page.seal()),
    );
    assert!(left.header("set-cookie").unwrap().contains("Max-Age=0"));
    // A copy of the cookie opens nothing any more, and a new login does.
    assert_eq!(dashboard.ask("GET", "/", &[("Cookie", &session)], "").status, 303);
    let again = enter("open sesame", &seal).cookies();
    assert_eq!(dashboard.ask("GET", "/", &[("Cookie", &again)], "").status, 200);
}

fn with_people() -> Config {
    let people = [("ann", Role::Admin), ("oscar", Role::Operator), ("vera", Role::Viewer)];
    let user = |(name, role): (&str, Role)| (name.to_owned(), User { role, token: Some(Secret::new(format!("token-of-{name}"))) });
    Config { login: Login { users: people.map(user).into(), ..Login::default() }, ..Config::default() }
}

/// The cookie of somebody who logged in with a token.
fn log_in(dashboard: &Dashboard, token: &str) -> String {
    let form = dashboard.get("/login");
    let headers = [("Cookie", form.cookies()), ("Content-Type", "application/x-www-form-urlencoded".to_owned())];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let entered = dashboard.ask("POST", "/login", &headers, &format!("seal={}&token={token}&name=somebody-else", form.seal()));
    assert_eq!(entered.status, 303, "{}", entered.body);
    entered.cookies()
}

#[test]
fn a_login_that_was_left_is_over_for_every_copy_of_it_even_after_a_restart() {
    on_both(with_people, a_login_is_over);
}

fn a_login_is_over(dashboard: &Dashboard) {
    let [left, kept] = [log_in(dashboard, "token-of-ann"), log_in(dashboard, "token-of-ann")];
    let open = |cookie: &str| dashboard.ask("GET", "/", &[("Cookie", cookie)], "");
    let seal = open(&left).seal().to_owned();
    let headers = [("Cookie", left.as_str()), ("Content-Type", "application/x-www-form-urlencoded")];
    assert_eq!(dashboard.ask("POST", "/logout", &headers, &format!("seal={seal}")).status, 303);
    assert_eq!((open(&left).status, open(&kept).status), (303, 200));
    assert_eq!(dashboard.ask("GET", "/api/targets", &[("Cookie", &left)], "").status, 401);
    // Another process with the same database and the same configuration.
    let (store, config) = (dashboard.store.clone(), Arc::new(with_people()));
    let status = dashboard.runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = State::new(store, Arc::new(move || config.clone()), now, broadcast::channel(1).0);
        let asking = async {
            let mut found = Vec::new();
            for cookie in [&left, &kept] {
                let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
                let head = format!("GET / HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n");
                tokio::io::AsyncWriteExt::write_all(&mut stream, head.as_bytes()).await.unwrap();
                let mut answer = Vec::new();
                tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut answer).await.unwrap();
                found.push(String::from_utf8_lossy(&answer[9..12]).into_owned());
            }
            found
        };
        tokio::select! {
            found = asking => found,
            _ = web::serve(listener, state, std::future::pending()) => unreachable!(),
        }
    });
    assert_eq!(status, ["303", "200"]);
}

#[test]
fn who_somebody_is_is_told_by_their_token_and_by_nothing_else() {
    let dashboard = Dashboard::new(with_people());
    let session = log_in(&dashboard, "token-of-oscar");
    let page = dashboard.ask("GET", "/incidents/incident-1", &[("Cookie", &session)], "");
    let headers = [("Cookie", session.as_str()), ("Content-Type", "application/x-www-form-urlencoded")];
    let body = format!("seal={}&name=ann&by=ann&acknowledged_by=ann", page.seal());
    assert_eq!(dashboard.ask("POST", "/incidents/incident-1/acknowledge", &headers, &body).status, 303);
    let body = json!({ "by": "ann", "name": "ann", "acknowledged_by": "ann" });
    assert_eq!(dashboard.json("POST", "/api/incidents/incident-2/acknowledge", "token-of-oscar", &body).0, 200);
    for incident in ["incident-1", "incident-2"] {
        let statement = format!("SELECT acknowledged_by FROM incident WHERE id = '{incident}'");
        let by = dashboard.runtime.block_on(dashboard.data.text(Box::leak(statement.into_boxed_str())));
        assert_eq!(by.as_deref(), Some("oscar"));
    }
    // What the cookie says of its end is signed; it says nothing else.
    let value = session.split_once("mcproof_session=").unwrap().1;
    assert_eq!(value.split('.').count(), 3, "{value}");
    let longer = session.replacen("mcproof_session=1", "mcproof_session=2", 1);
    assert_eq!(dashboard.ask("GET", "/", &[("Cookie", &longer)], "").status, 303);
}

#[test]
fn roles_say_what_somebody_may_do_and_the_audit_log_what_they_did() {
    on_both(with_people, roles_and_audit);
}

fn roles_and_audit(dashboard: &Dashboard) {
    let ask = |who: &str, method: &str, path: &str, body: Value| dashboard.json(method, path, &format!("token-of-{who}"), &body).0;
    let silence = || json!({ "names": ["svc-*"], "reason": "moving", "minutes": 5 });
    for (method, path, body, statuses) in [
        ("GET", "/api/targets", Value::Null, [200, 200, 200]),
        ("GET", "/incidents", Value::Null, [200, 200, 200]),
        ("GET", "/silences", Value::Null, [200, 200, 200]),
        ("POST", "/api/targets/svc-0001/mute", json!({ "minutes": 5 }), [403, 200, 200]),
        ("POST", "/api/targets/svc-0002/mute", json!({ "minutes": 0 }), [403, 200, 200]),
        ("POST", "/api/silences", silence(), [403, 201, 201]),
        ("POST", "/api/notices", json!({ "title": "Slow", "progress": "investigating", "text": "we look" }), [403, 201, 201]),
        ("POST", "/api/maintenance", json!({ "name": "upgrade", "minutes": 5 }), [403, 201, 201]),
        ("POST", "/api/targets/svc-0001/deploys", json!({}), [403, 201, 201]),
        ("DELETE", "/api/targets/nobody", Value::Null, [403, 403, 404]),
        ("GET", "/tokens", Value::Null, [403, 403, 200]),
        ("GET", "/audit", Value::Null, [403, 403, 200]),
        ("GET", "/api/audit", Value::Null, [403, 403, 200]),
        ("POST", "/tokens/reader/remove", Value::Null, [403, 403, 303]),
    ] {
        let found = ["vera", "oscar", "ann"].map(|who| ask(who, method, path, body.clone()));
        assert_eq!(found, statuses, "{method} {path}");
    }
    let page = |who: &str| {
        let session = log_in(dashboard, &format!("token-of-{who}"));
        dashboard.ask("GET", "/incidents/incident-1", &[("Cookie", &session)], "").body
    };
    assert!(!page("vera").contains("id=\"acknowledge\"") && page("oscar").contains("id=\"acknowledge\""));
    assert!(!page("oscar").contains("href=\"/audit\"") && page("ann").contains("href=\"/audit\""));
    let (_, log) = dashboard.json("GET", "/api/audit?limit=200", "token-of-ann", &Value::Null);
    let entries = log["entries"].as_array().unwrap();
    let of = |entry: &Value| ["who", "via", "action", "subject", "outcome"].map(|key| entry[key].as_str().unwrap_or_default().to_owned());
    let mut found: Vec<[String; 5]> = entries.iter().map(of).collect();
    found.sort();
    let expected = [
        ["ann", "login", "log in", "", "done"],
        ["ann", "token", "announce a deploy", "svc-0001", "done"],
        ["ann", "token", "announce work for 5 min", "upgrade", "done"],
        ["ann", "token", "mute for 5 min", "svc-0001", "done"],
        ["ann", "token", "publish a notice", "Slow", "done"],
        ["ann", "token", "remove a target", "nobody", "refused: 404 Not Found"],
        ["ann", "token", "revoke a token", "reader", "done"],
        ["ann", "token", "silence for 5 min", "svc-*", "done"],
        ["ann", "token", "unmute", "svc-0002", "done"],
        ["oscar", "login", "log in", "", "done"],
        ["oscar", "login", "log in", "", "done"],
        ["oscar", "token", "announce a deploy", "svc-0001", "done"],
        ["oscar", "token", "announce work for 5 min", "upgrade", "done"],
        ["oscar", "token", "mute for 5 min", "svc-0001", "done"],
        ["oscar", "token", "publish a notice", "Slow", "done"],
        ["oscar", "token", "silence for 5 min", "svc-*", "done"],
        ["oscar", "token", "unmute", "svc-0002", "done"],
        ["vera", "login", "log in", "", "done"],
    ];
    let (refused, found): (Vec<_>, Vec<_>) = found.into_iter().partition(|entry| entry[4] == "refused: 403 Forbidden");
    assert_eq!(found, expected.map(|row| row.map(str::to_owned)), "who may do nothing has done nothing");
    // What somebody tried who may not do it is written down, too.
    let by = |who: &str| refused.iter().filter(|entry| entry[0] == who).map(|entry| entry[2..4].join(" ")).collect::<Vec<String>>();
    assert_eq!(by("oscar"), ["GET /api/audit ", "GET /audit ", "GET /tokens ", "remove a target nobody", "revoke a token reader"]);
    assert_eq!((by("vera").len(), by("ann").len(), refused.len()), (11, 0, 16));
    assert!(by("vera").contains(&"mute svc-0001".to_owned()), "{refused:?}");
    let page = dashboard.ask("GET", "/audit", &[("Authorization", "Bearer token-of-ann")], "").body;
    assert!(page.contains("announce a deploy") && page.contains("oscar"), "{page}");
    let last = entries.last().unwrap()["id"].as_str().unwrap();
    assert_eq!(dashboard.json("GET", &format!("/api/audit?before={last}"), "token-of-ann", &Value::Null).1["entries"], json!([]));
    // What cannot be written down is not done.
    dashboard.runtime.block_on(dashboard.data.run("ALTER TABLE audit RENAME TO gone"));
    assert_eq!(ask("oscar", "POST", "/api/incidents/incident-1/acknowledge", json!({})), 503);
    assert_eq!(dashboard.runtime.block_on(dashboard.data.text("SELECT acknowledged_by FROM incident WHERE id = 'incident-1'")), None);
}

#[test]
fn silences_are_made_and_ended_on_the_dashboard_and_over_the_api() {
    on_both(with_people, silences_are_made_and_ended);
}

fn silences_are_made_and_ended(dashboard: &Dashboard) {
    let session = log_in(dashboard, "token-of-oscar");
    let page = dashboard.ask("GET", "/silences", &[("Cookie", &session)], "");
    assert!(page.body.contains("No active silences"));
    let send = |path: &str, body: &str| {
        let headers = [("Cookie", session.as_str()), ("Content-Type", "application/x-www-form-urlencoded")];
        dashboard.ask("POST", path, &headers, &format!("seal={}&{body}", page.seal()))
    };
    assert_eq!(send("/silences", "names=&tags=&reason=x&minutes=5").status, 422, "nobody is meant");
    assert_eq!(send("/silences", "names=svc-*&tags=&reason=+&minutes=5").status, 422, "no reason");
    for path in ["/silences", "/maintenance", "/targets/svc-0001/mute", "/targets/svc-0001/deploys"] {
        let refused = send(path, "names=svc-*&tags=&reason=x&name=x&starts=&targets=&minutes=86401");
        assert!(refused.status == 422 && refused.body.contains("use 1 to 86400 minutes"), "{path}: {}", refused.body);
    }
    let refused = send("/silences", "names=svc-*%2C+other&tags=billing&reason=%3Cb%3Emoving&minutes=90");
    assert!(refused.status == 422 && refused.body.contains("no target has a name that matches `other`"), "{}", refused.body);
    assert_eq!(send("/silences", "names=svc-*%2C+other&tags=billing&future=yes&reason=%3Cb%3Emoving&minutes=90").status, 303);
    let (_, listed) = dashboard.json("GET", "/api/silences", "token-of-vera", &Value::Null);
    let silence = &listed["silences"][0];
    assert_eq!((&silence["names"], &silence["tags"]), (&json!(["svc-*", "other"]), &json!(["billing"])));
    assert_eq!(
        (&silence["author"], &silence["reason"], &silence["ends"]),
        (&json!("oscar"), &json!("<b>moving"), &json!("2026-11-21T13:30:00Z"))
    );
    let shown = dashboard.ask("GET", "/silences", &[("Cookie", &session)], "").body;
    assert!(shown.contains("svc-*, other, tagged billing") && !shown.contains("<b>moving"), "{shown}");
    let id = silence["id"].as_str().unwrap();
    assert_eq!(send(&format!("/silences/{id}/end"), "x=y").status, 303);
    assert_eq!(dashboard.json("GET", "/api/silences", "token-of-vera", &Value::Null).1["silences"], json!([]));
    for (body, error) in [
        (json!({ "names": ["*"], "reason": "", "minutes": 5 }), "the reason is missing"),
        (json!({ "reason": "x", "minutes": 5 }), "the silence matches no targets"),
        (json!({ "names": ["*"], "reason": "x", "minutes": 0 }), "`minutes` is out of range: 0"),
        (json!({ "names": ["*"], "reason": "x", "minutes": 5, "starts": "2026-11-20T00:00:00Z" }), "the silence is over already"),
        (json!({ "names": ["svc-000l"], "reason": "x", "minutes": 5 }), "no target has a name that matches `svc-000l`"),
        (json!({ "tags": ["biling"], "reason": "x", "minutes": 5 }), "no target has a tag that matches `biling`"),
    ] {
        let (status, answer) = dashboard.json("POST", "/api/silences", "token-of-oscar", &body);
        assert_eq!((status, answer["problem"].as_str()), (422, Some(error)));
    }
    let future = json!({ "tags": ["biling"], "reason": "x", "minutes": 5, "future": true });
    assert_eq!(dashboard.json("POST", "/api/silences", "token-of-oscar", &future).0, 201, "it may be meant for targets to come");
    let (status, made) = dashboard.json("POST", "/api/silences", "token-of-oscar", &json!({ "tags": ["*"], "reason": "x", "minutes": 5 }));
    assert_eq!((status, made["author"].as_str()), (201, Some("oscar")));
    let path = format!("/api/silences/{}", made["id"].as_str().unwrap());
    assert_eq!([200, 404].map(|_| dashboard.json("DELETE", &path, "token-of-oscar", &Value::Null).0), [200, 404]);
}

#[test]
fn notices_of_operators_stand_on_the_status_page_and_in_its_feed() {
    on_both(with_people, notices_are_published);
}

fn notices_are_published(dashboard: &Dashboard) {
    let post = |who: &str, path: &str, body: Value| dashboard.json("POST", path, &format!("token-of-{who}"), &body);
    let notice = || json!({ "title": "Search is <b>slow</b>", "targets": ["svc-0001"], "progress": "investigating", "text": "We look.\nSoon more." });
    assert_eq!(post("vera", "/api/notices", notice()).0, 403, "a viewer publishes nothing");
    for (change, problem) in [
        (json!({ "title": " " }), "the title is missing"),
        (json!({ "text": "" }), "the text is missing"),
        (json!({ "progress": "done" }), "unknown progress `done`"),
        (json!({ "targets": ["nowhere"] }), "`nowhere` is not a public target"),
    ] {
        let mut body = notice();
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let (status, answer) = post("oscar", "/api/notices", body);
        assert_eq!((status, answer["problem"].as_str()), (422, Some(problem)));
    }
    let before = dashboard.get("/status");
    assert!(!before.body.contains("Search is"));
    let (status, made) = post("oscar", "/api/notices", notice());
    assert_eq!((status, &made["updates"][0]["author"]), (201, &json!("oscar")), "{made}");
    let id = made["id"].as_str().unwrap().to_owned();
    // At once, although the page is kept for all readers, and without its author.
    for (path, is_there) in [("/status", true), ("/status/svc-0001", true), ("/status/svc-0005", false)] {
        let page = dashboard.get(path).body;
        assert_eq!(page.contains("Search is &#60;b&#62;slow") && page.contains("<p>Soon more.</p>"), is_there, "{path}: {page}");
        assert!(!page.contains("oscar"), "{path}");
    }
    assert_eq!(post("oscar", &format!("/api/notices/{id}/updates"), json!({ "progress": "resolved", "text": "It is quick." })).0, 201);
    assert_eq!(post("oscar", "/api/notices/nothing/updates", json!({ "progress": "resolved", "text": "x" })).0, 404);
    let page = dashboard.get("/status").body;
    assert!(page.contains("Past notices") && page.contains("It is quick."), "{page}");
    let feed = dashboard.get("/status.atom");
    assert_eq!(feed.header("content-type"), Some("application/atom+xml; charset=utf-8"));
    let mut reader = quick_xml::Reader::from_str(&feed.body);
    let (mut ids, mut last) = (Vec::new(), String::new());
    loop {
        match reader.read_event().expect("the feed is XML") {
            quick_xml::events::Event::Start(start) => last = start.name().as_ref().to_owned(),
            quick_xml::events::Event::Text(text) if last == "id" && !text.trim().is_empty() => {
                ids.push(text.to_string());
            }
            quick_xml::events::Event::Eof => break,
            _ => {}
        }
    }
    assert!(
        ids.iter().any(|found| found.ends_with(&format!("#{id}-0"))) && ids.iter().any(|found| found.ends_with(&format!("#{id}-1"))),
        "{ids:?}"
    );
    assert_eq!(ids.len(), BTreeSet::from_iter(&ids).len(), "each entry has an id of its own");
    assert!(feed.body.contains("Search is") && !feed.body.contains("<b>") && !feed.body.contains("oscar"), "{}", feed.body);
    let session = log_in(dashboard, "token-of-oscar");
    let form = dashboard.ask("GET", "/notices", &[("Cookie", &session)], "");
    let headers = [("Cookie", session.as_str()), ("Content-Type", "application/x-www-form-urlencoded")];
    let send = |path: &str, body: &str| dashboard.ask("POST", path, &headers, &format!("seal={}&{body}", form.seal())).status;
    assert_eq!(send("/notices", "title=Upgrade&targets=&progress=information&text=Tonight."), 303);
    assert_eq!(send("/notices", "title=&targets=&progress=information&text=Tonight."), 422);
    assert_eq!(send(&format!("/notices/{id}/withdraw"), "x=y"), 303);
    let page = dashboard.get("/status").body;
    assert!(page.contains("Upgrade") && !page.contains("Search is"), "{page}");
    let (_, entries) = dashboard.json("GET", "/api/audit", "token-of-ann", &Value::Null);
    let actions: Vec<&str> = entries["entries"].as_array().unwrap().iter().filter_map(|entry| entry["action"].as_str()).collect();
    for action in ["publish a notice", "update a notice", "withdraw a notice"] {
        assert!(actions.contains(&action), "{actions:?}");
    }
}

#[test]
fn further_status_pages_show_their_targets_with_their_notices_and_feeds() {
    let page = |name: &str, targets: &[&str]| StatusPageSpec {
        name: name.into(),
        title: format!("Page {name}"),
        targets: targets.iter().map(|&target| target.to_owned()).collect(),
        tags: Vec::new(),
    };
    let pages = vec![page("eu", &["svc-0001", "svc-0005"]), page("us", &["svc-0009"])];
    let status = StatusSpec { pages, ..StatusSpec::default() };
    on_both(
        || Config { status: status.clone(), ..with_people() },
        |dashboard| {
            let post = |title: &str, targets: &[&str]| {
                let notice = json!({ "title": title, "targets": targets, "progress": "investigating", "text": "We look." });
                assert_eq!(dashboard.json("POST", "/api/notices", "token-of-oscar", &notice).0, 201);
            };
            post("Europe is slow", &["svc-0001"]);
            post("The world is slow", &[]);
            let (eu, us, all) = (dashboard.get("/status/eu"), dashboard.get("/status/us"), dashboard.get("/status"));
            assert_eq!((eu.status, us.status), (200, 200));
            assert_eq!((eu.body.matches("class=\"public\"").count(), us.body.matches("class=\"public\"").count()), (2, 1));
            for (page, europe) in [(&eu, true), (&us, false), (&all, true)] {
                assert_eq!(page.body.contains("Europe is slow"), europe, "{}", page.body);
                assert!(page.body.contains("The world is slow"));
            }
            assert!(eu.body.contains("Page eu") && eu.body.contains("href=\"/status/eu.atom\"") && !eu.body.contains("svc-0009"));
            let (eu, us) = (dashboard.get("/status/eu.atom").body, dashboard.get("/status/us.atom").body);
            assert!(eu.contains("Europe is slow") && !us.contains("Europe is slow") && us.contains("The world is slow"), "{us}");
            for path in ["/status/eu?page=2", "/status/asia", "/status/asia.atom"] {
                assert_eq!(dashboard.get(path).status, 404, "{path}");
            }
        },
    );
}

#[test]
fn a_job_reports_in_by_its_token_and_by_no_other() {
    on_both(with_jobs, a_job_reports_in);
}

fn with_jobs() -> Config {
    let job = |name: &str, token: &str| {
        let lasts = (name == "svc-0002").then_some(Duration::from_secs(3_600));
        let expectation = Expectation { rhythm: PushSchedule::Every(Duration::from_secs(3_600)), grace: Duration::from_secs(60), lasts };
        let kind = TargetKind::Push { token: Secret::new(token), expectation };
        let text = "targets: { NAME: { monitor: 'http://127.0.0.1:9/' } }".replace("NAME", name);
        let loaded = load("w.yaml", &text, std::path::Path::new("/"), &Environment::default()).unwrap();
        (name.to_owned(), TargetSpec { kind, ..loaded.config.targets[name].clone() })
    };
    Config { targets: [job("svc-0001", "a-token-of-one-job"), job("svc-0002", "b-token-of-one-job")].into(), ..with_people() }
}

fn a_job_reports_in(dashboard: &Dashboard) {
    let reported = |name: &str| dashboard.runtime.block_on(dashboard.store.pushed(name)).unwrap();
    for (method, path, body, expected) in [
        ("GET", "/push/a-token-of-one-job", "", [false, true, false]),
        ("POST", "/push/a-token-of-one-job/start", "", [true, true, false]),
        ("POST", "/push/a-token-of-one-job/fail", "disk full\n", [true, true, true]),
    ] {
        let answer = dashboard.ask(method, path, &[], body);
        assert_eq!((answer.status, answer.body.as_str()), (200, "ok\n"), "{method} {path}");
        let found = reported("svc-0001");
        assert_eq!([found.started, found.succeeded, found.failed].map(|time| time == Some(NOW)), expected, "{method} {path}");
    }
    assert_eq!(reported("svc-0001").message, "disk full");
    // A failure is one, however much a job says, in whatever bytes, and whatever number its system ends it with.
    let log = format!("line\0 one{}", "x".repeat(3_000_000));
    for (method, path) in [("POST", "/push/a-token-of-one-job/fail"), ("PUT", "/push/a-token-of-one-job/3221225477")] {
        dashboard.runtime.block_on(dashboard.data.run("UPDATE push SET failed = NULL, message = ''"));
        let answer = dashboard.ask(method, path, &[], &log);
        assert_eq!((answer.status, answer.body.as_str()), (200, "ok\n"), "{method} {path}");
        let found = reported("svc-0001");
        assert_eq!((found.failed, found.message.as_str()), (Some(NOW), format!("line one{}", "x".repeat(492)).as_str()));
    }
    for code in ["256", "-1"] {
        dashboard.runtime.block_on(dashboard.data.run("UPDATE push SET failed = NULL"));
        assert_eq!(dashboard.get(&format!("/push/a-token-of-one-job/{code}")).status, 200);
        assert_eq!(reported("svc-0001").failed, Some(NOW), "{code}");
    }
    assert_eq!(reported("svc-0002").succeeded, None, "each has its own");
    // A run that has lasted too long is not over because another one begins.
    for (minutes, expected) in [(61, NOW - Duration::from_secs(61 * 60)), (59, NOW)] {
        let began = NOW - Duration::from_secs(minutes * 60);
        dashboard.runtime.block_on(dashboard.store.push("svc-0002", Said::Started, "", began)).unwrap();
        assert_eq!(dashboard.get("/push/b-token-of-one-job/start").status, 200);
        assert_eq!(reported("svc-0002").started, Some(expected));
    }
    assert_eq!(dashboard.ask("HEAD", "/push/b-token-of-one-job/0", &[], "").status, 200);
    assert_eq!(reported("svc-0002").succeeded, Some(NOW));
    assert_eq!(dashboard.ask("GET", "/push/b-token-of-one-job/137", &[], "").status, 200);
    assert_eq!(reported("svc-0002").failed, Some(NOW));
    assert_eq!(dashboard.ask("GET", "/push/b-token-of-one-job/maybe", &[], "").status, 404);
    let wrong: Vec<u16> = (0..31).map(|_| dashboard.get("/push/another-token-of-a-job").status).collect();
    assert_eq!((wrong[0], wrong[29], wrong[30]), (404, 404, 429));
    assert_eq!(dashboard.get("/push/a-token-of-one-job").status, 200, "a good token always gets in");
    dashboard.runtime.block_on(dashboard.data.run("ALTER TABLE push RENAME TO gone"));
    assert_eq!(dashboard.get("/push/a-token-of-one-job").status, 503, "the job says it again");
}

#[test]
fn the_status_page_has_pages_of_which_the_first_shows_what_does_not_work() {
    on_both(Config::default, the_status_page_has_pages);
}

fn the_status_page_has_pages(dashboard: &Dashboard) {
    dashboard.runtime.block_on(async {
        for number in 0..120 {
            dashboard.data.target(&format!("many-{number:03}"), "ok", "ok", &json!([]), true).await;
        }
        dashboard.data.run("UPDATE target SET availability = 'down' WHERE name = 'many-119'").await;
    });
    let names =
        |page: &str| page.split("href=\"/status/").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect::<Vec<_>>();
    let pages = ["/status", "/status?page=2", "/status?page=3"].map(|path| dashboard.get(path).body);
    let all: Vec<String> = pages.iter().flat_map(|page| names(page)).collect();
    assert_eq!(pages.each_ref().map(|page| names(page).len()), [50, 50, all.len() - 100]);
    assert_eq!(BTreeSet::from_iter(&all).len(), all.len(), "none comes twice");
    assert!(names(&pages[0])[..3].contains(&"many-119".to_owned()), "{:?}", names(&pages[0]));
    assert!(pages[0].contains("Page 1 of 3") && pages[0].contains("href=\"/status?page=2\"") && !pages[0].contains("Previous"));
    assert!(pages[2].contains("Page 3 of 3") && !pages[2].contains("Next"));
    let sentence = |page: &str| page.split("<h1>").nth(1).unwrap().split("</h1>").next().unwrap().to_owned();
    assert!(pages.iter().all(|page| sentence(page) == sentence(&pages[0])), "each tells of all");
    for path in ["/status?page=4", "/status?page=0"] {
        assert_eq!(dashboard.get(path).status, 404, "{path}");
    }
    // What changes is seen at once, on whichever page.
    dashboard.runtime.block_on(dashboard.data.run("UPDATE target SET availability = 'ok', since = since + 1 WHERE name = 'many-119'"));
    assert!(!names(&dashboard.get("/status").body)[..3].contains(&"many-119".to_owned()));
}

#[test]
fn a_login_that_ended_does_not_stand_in_the_way_of_a_new_one() {
    let stale = "mcproof_session=1795262400000.QWRh.b2xk.b2xk";
    // A browser does not send the cookie of the login where it comes from another site, and sends it with the form.
    for (config, path, target, body) in [
        (with_token("t"), "/login", "/login", "token=t"),
        (Config::default(), "/incidents/incident-1", "/incidents/incident-1/acknowledge", "x=y"),
    ] {
        let dashboard = Dashboard::new(config);
        let form = dashboard.get(path);
        let cookies = format!("{stale}; {}", form.cookies());
        let headers = [("Cookie", cookies.as_str()), ("Content-Type", "application/x-www-form-urlencoded")];
        let answer = dashboard.ask("POST", target, &headers, &format!("seal={}&{body}", form.seal()));
        assert_eq!(answer.status, 303, "{target}: {}", answer.body);
    }
}

#[test]
fn wrong_tokens_keep_nobody_out_who_has_a_good_one() {
    let dashboard = Dashboard::new(with_token("good"));
    let form = dashboard.get("/login");
    let (visit, seal) = (form.cookies(), form.seal().to_owned());
    let enter = |token: &str| {
        let headers = [("Cookie", visit.as_str()), ("Content-Type", "application/x-www-form-urlencoded")];
        dashboard.ask("POST", "/login", &headers, &format!("seal={seal}&token={token}")).status
    };
    let refused: Vec<u16> = (0..31).map(|_| enter("wrong")).collect();
    assert_eq!((refused[0], refused[29], refused[30], enter("good")), (403, 403, 429, 303));
    let ask = |token: &str| dashboard.json("GET", "/api/targets", token, &Value::Null);
    let (status, answer) = ask("wrong");
    assert_eq!((status, answer["error"].as_str()), (429, Some("too-many")));
    assert_eq!(ask("good").0, 200);
}

#[test]
fn who_has_to_log_in_first_comes_back_to_a_page() {
    let dashboard = Dashboard::new(with_token("t"));
    for (method, path, expected) in
        [("GET", "/incidents/incident-1", "/login?next=%2Fincidents%2Fincident-1"), ("POST", "/incidents/incident-1/acknowledge", "/login")]
    {
        assert_eq!(dashboard.ask(method, path, &[], "").header("location"), Some(expected), "{method} {path}");
    }
}

#[test]
fn a_target_that_is_coming_back_is_not_up_yet() {
    let dashboard = Dashboard::new(Config::default());
    dashboard.runtime.block_on(dashboard.data.run("UPDATE target SET removed = 1 WHERE name NOT IN ('svc-0005', 'svc-0009')"));
    for (statement, overview, status) in [
        ("UPDATE target SET availability = 'ok'", "All 2 targets are up.", "All systems operational."),
        ("UPDATE target SET availability = 'recovering' WHERE name = 'svc-0005'", "Nothing is down.", "1 of 2 targets recovering."),
        ("UPDATE target SET removed = 1 WHERE name = 'svc-0009'", "Nothing is down.", "It is recovering."),
        ("UPDATE target SET availability = 'suspect'", "Nothing is down.", "All systems operational."),
        ("UPDATE target SET availability = 'ok'", "The only target is up.", "All systems operational."),
    ] {
        dashboard.runtime.block_on(dashboard.data.run(statement));
        for (path, expected) in [("/", overview), ("/status", status)] {
            let page = dashboard.get(path).body;
            assert!(page.contains(&format!("</span> {expected}</h1>")), "{statement}: {path} does not say {expected}\n{page}");
        }
    }
}

#[test]
fn incidents_of_the_same_moment_are_all_on_some_page() {
    let dashboard = Dashboard::new(with_token("t"));
    dashboard.runtime.block_on(async {
        for number in 0..120 {
            let name = format!("many-{number:03}");
            dashboard.data.incident(&name, &name, "availability", "down", &json!({ "message": "down" }), None).await;
        }
    });
    let ask = |path: &str| dashboard.ask("GET", path, &[("Authorization", "Bearer t")], "").body;
    let mut on_pages = BTreeSet::new();
    let mut path = "/incidents".to_owned();
    loop {
        let page = ask(&path);
        let links = page.split("href=\"/incidents/").skip(1);
        on_pages.extend(links.map(|rest| rest.split('"').next().unwrap().to_owned()));
        let Some(next) = page.split("before=").nth(1) else { break };
        path = format!("/incidents?state=open&before={}", next.split('"').next().unwrap());
    }
    assert_eq!(on_pages.len(), 122);
    let mut of_the_api = Vec::new();
    let mut next = String::new();
    loop {
        let answer: Value = serde_json::from_str(&ask(&format!("/api/incidents?limit=50{next}"))).unwrap();
        of_the_api.extend(answer["incidents"].as_array().unwrap().iter().map(|incident| incident["id"].as_str().unwrap().to_owned()));
        let Some(place) = answer["next"].as_str() else { break };
        next = format!("&before={place}");
    }
    assert_eq!(of_the_api.len(), 122, "none comes twice");
    assert_eq!(BTreeSet::from_iter(of_the_api), on_pages);
}

#[test]
fn planned_work_that_is_going_on_is_marked() {
    let window = |name: &str, expression: &str| Window {
        name: name.to_owned(),
        targets: Vec::new(),
        tags: Vec::new(),
        when: When::Cron { expression: expression.to_owned(), zone: "UTC".to_owned(), lasts: Duration::from_secs(3_600) },
    };
    let maintenance = vec![window("going on", "30 11 * * *"), window("long over", "30 9 * * *")];
    let page = Dashboard::new(Config { maintenance, ..Config::default() }).get("/maintenance").body;
    assert!(page.contains("going on <span class=\"tag\">now</span>"), "{page}");
    assert!(page.contains("long over</td>"), "{page}");
}

#[test]
fn a_proxy_is_believed_only_from_its_own_address() {
    for (addresses, header, expected) in [
        (vec!["127.0.0.1"], Some("ada"), 200),
        (vec!["10.0.0.1"], Some("ada"), 303),
        (vec!["127.0.0.1"], None, 303),
        (vec!["127.0.0.1"], Some(""), 303),
    ] {
        let addresses = addresses.into_iter().map(|address| address.parse().unwrap()).collect();
        let proxy = Proxy { header: "X-Forwarded-User".into(), from: addresses, role: Some(Role::Admin) };
        let login = Login { proxy: Some(proxy), ..Login::default() };
        let dashboard = Dashboard::new(Config { login, ..Config::default() });
        let headers: Vec<(&str, &str)> = header.into_iter().map(|name| ("X-Forwarded-User", name)).collect();
        let page = dashboard.ask("GET", "/", &headers, "");
        assert_eq!(page.status, expected, "{headers:?}");
        assert_eq!(page.body.contains("href=\"/tokens\""), expected == 200, "whoever may make tokens finds where");
    }
}

#[test]
fn whom_a_proxy_names_has_the_role_that_the_configuration_gives_them() {
    for (role, name, expected) in [
        (Some(Role::Admin), "ada", [200, 200, 200]),
        (Some(Role::Viewer), "ada", [200, 403, 403]),
        (Some(Role::Admin), "vera", [200, 403, 403]),
        (None, "oscar", [200, 200, 403]),
        (None, "ada", [403, 403, 403]),
    ] {
        let proxy = Proxy { header: "X-Forwarded-User".into(), from: vec!["127.0.0.1".parse().unwrap()], role };
        let dashboard = Dashboard::new(Config { login: Login { proxy: Some(proxy), ..with_people().login }, ..Config::default() });
        let ask = |method: &str, path: &str, body: &str| {
            let headers = [("X-Forwarded-User", name), ("Content-Type", "application/json")];
            dashboard.ask(method, path, &headers, body).status
        };
        let found = [ask("GET", "/", ""), ask("POST", "/api/targets/svc-0001/mute", "{\"minutes\": 5}"), ask("GET", "/audit", "")];
        assert_eq!(found, expected, "{role:?} {name}");
    }
}

#[test]
fn tokens_of_the_api_are_hashed_and_do_what_their_scope_allows() {
    on_both(|| with_token("master"), tokens_do_what_their_scope_allows);
}

fn tokens_do_what_their_scope_allows(dashboard: &Dashboard) {
    dashboard.runtime.block_on(async {
        assert!(dashboard.store.add_token("reader", "r3ad", Role::Viewer, NOW).await.unwrap());
        assert!(dashboard.store.add_token("writer", "wr1te", Role::Admin, NOW).await.unwrap());
        assert!(!dashboard.store.add_token("writer", "other", Role::Admin, NOW).await.unwrap());
        let hash = dashboard.data.text("SELECT hash FROM api_token WHERE name = 'reader'").await.unwrap();
        assert!(hash.len() == 64 && !hash.contains("r3ad"));
    });
    let acknowledge = |token: &str| dashboard.json("POST", "/api/incidents/incident-1/acknowledge", token, &json!({})).0;
    assert_eq!((acknowledge("nobody"), acknowledge("r3ad"), acknowledge("wr1te"), acknowledge("master")), (401, 403, 200, 409));
    for (token, expected) in [("r3ad", 200), ("wr1te", 200), ("master", 200), ("", 401), ("wrong", 401)] {
        assert_eq!(dashboard.json("GET", "/api/targets", token, &Value::Null).0, expected, "{token}");
    }
    assert!(dashboard.runtime.block_on(dashboard.store.remove_token("reader")).unwrap());
    assert_eq!(dashboard.json("GET", "/api/targets", "r3ad", &Value::Null).0, 401);
}

#[test]
fn the_api_reads_and_writes_what_pages_do_and_says_what_is_wrong() {
    on_both(|| with_token("t"), the_api_reads_and_writes);
}

fn the_api_reads_and_writes(dashboard: &Dashboard) {
    let ask = |method: &str, path: &str, body: Value| dashboard.json(method, path, "t", &body);
    let (status, targets) = ask("GET", "/api/targets", Value::Null);
    assert_eq!((status, targets["targets"].as_array().unwrap().len()), (200, 13));
    let (_, incidents) = ask("GET", "/api/incidents", Value::Null);
    let refused = incidents["incidents"].as_array().unwrap().iter().find(|incident| incident["id"] == "incident-1").unwrap();
    assert_eq!(refused["detail"]["layer"], "connect");
    let (_, results) = ask("GET", "/api/results?target=svc-0001&limit=5", Value::Null);
    let first = &results["results"][0];
    assert_eq!(
        (first["verdict"].as_str(), first["reason"].as_str(), first["phases_ms"]["dns"].as_f64()),
        (Some("down"), Some("connect-refused"), Some(1.2))
    );
    assert_eq!(results["results"].as_array().unwrap().len(), 5);

    let (status, deploy) = ask("POST", "/api/targets/svc-0003/deploys", json!({ "minutes": 30, "note": "release 7" }));
    assert_eq!((status, deploy["until"].as_str()), (201, Some("2026-11-21T12:30:00Z")));
    let (status, work) =
        ask("POST", "/api/maintenance", json!({ "name": "upgrade", "tags": ["billing"], "starts": "2026-11-21T20:00:00Z", "minutes": 60 }));
    assert_eq!((status, work["ends"].as_str()), (201, Some("2026-11-21T21:00:00Z")));
    let (_, listed) = ask("GET", "/api/maintenance", Value::Null);
    assert_eq!(listed["maintenance"][0]["name"], "upgrade");
    assert_eq!(ask("DELETE", &format!("/api/maintenance/{}", work["id"].as_str().unwrap()), Value::Null).0, 200);
    assert_eq!(ask("GET", "/api/maintenance", Value::Null).1["maintenance"], json!([]));
    assert_eq!(ask("POST", "/api/targets/svc-0001/mute", json!({ "minutes": 60 })).1["muted_until"], "2026-11-21T13:00:00Z");

    for (method, path, body, status, error) in [
        ("GET", "/api/targets/nobody", Value::Null, 404, "not-found"),
        ("GET", "/api/nothing", Value::Null, 404, "not-found"),
        ("POST", "/api/targets/nobody/deploys", json!({}), 404, "not-found"),
        ("POST", "/api/targets/svc-0003/deploys", json!({ "minutes": 0 }), 422, "invalid"),
        ("POST", "/api/targets/svc-0003/deploys", json!({ "minuets": 5 }), 422, "invalid"),
        ("POST", "/api/maintenance", json!({ "name": "x", "targets": ["nobody"], "minutes": 5 }), 422, "invalid"),
        ("POST", "/api/maintenance", json!({ "name": "x", "tags": ["biling"], "minutes": 5 }), 422, "invalid"),
        ("GET", "/api/incidents?state=closed", Value::Null, 422, "invalid"),
        ("GET", "/api/incidents?before=x", Value::Null, 422, "invalid"),
        ("GET", "/api/incidents?limit=x", Value::Null, 400, "invalid"),
        ("GET", "/api/results?target=svc-0001&limit=x", Value::Null, 400, "invalid"),
        ("GET", "/api/results", Value::Null, 400, "invalid"),
        ("GET", "/api/targets/%FF", Value::Null, 400, "invalid"),
        ("GET", "/api/", Value::Null, 404, "not-found"),
        ("PATCH", "/api/nothing", Value::Null, 404, "not-found"),
        ("PATCH", "/api/targets", Value::Null, 405, "method"),
        ("PUT", "/api/incidents/incident-1/acknowledge", json!({}), 405, "method"),
    ] {
        let (found, answer) = ask(method, path, body);
        assert_eq!((found, answer["error"].as_str()), (status, Some(error)), "{method} {path}: {answer}");
        assert!(!answer["problem"].as_str().unwrap().is_empty() && !answer["remedy"].as_str().unwrap().is_empty());
    }
    let other = dashboard.ask("PATCH", "/api/targets", &[("Authorization", "Bearer t")], "");
    assert_eq!(other.header("allow"), Some("GET,HEAD"));
}

#[test]
fn machines_learn_how_the_targets_and_the_monitor_are() {
    on_both(Config::default, machines_learn);
}

fn machines_learn(dashboard: &Dashboard) {
    let metrics = dashboard.get("/metrics");
    assert!(metrics.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    for line in [
        "mcproof_probe_success{target=\"svc-0001\"} 0",
        "mcproof_probe_success{target=\"svc-0007\"} 1",
        "mcproof_contract_changes_total{target=\"svc-0003\",level=\"security\"} 1",
        "mcproof_incidents_open{class=\"memory\",severity=\"page\"} 0",
    ] {
        assert!(metrics.body.lines().any(|found| found == line), "{line} is not in\n{}", metrics.body);
    }
    assert!(metrics.body.contains("mcproof_probe_duration_seconds{target=\"svc-0007\",phase=\"dns\"} 0.0012"));
    assert!(!metrics.body.contains("sha256"), "no hash is a label");
    let pending: f64 =
        metrics.body.lines().find_map(|line| line.strip_prefix("mcproof_outbox_oldest_age_seconds ")).unwrap().parse().unwrap();
    assert_eq!(pending, 29.0 * 60.0);
    let families = receivers::judge("openmetrics.py", &metrics.body);
    for (name, kind) in [
        ("mcproof_probe_success", "gauge"),
        ("mcproof_probe_duration_seconds", "gauge"),
        ("mcproof_contract_changes", "counter"),
        ("mcproof_incidents_open", "gauge"),
        ("mcproof_schedule_lag_seconds", "gauge"),
        ("mcproof_outbox_oldest_age_seconds", "gauge"),
    ] {
        assert_eq!(families[name][0], kind, "{name} in {families}");
    }

    assert_eq!(dashboard.get("/healthz").status, 200);
    dashboard.runtime.block_on(dashboard.data.run("UPDATE target SET last_result = 1, last_slot = 1"));
    assert_eq!(dashboard.get("/healthz").status, 200, "the monitor has just begun");
    assert!(!dashboard.get("/").body.contains("No channel has accepted"));
    dashboard.runtime.block_on(dashboard.data.run("UPDATE outbox SET delivered = NULL, delivered_by = NULL WHERE kind = 'trigger'"));
    let ill = dashboard.get("/healthz");
    assert!(ill.status == 503 && ill.body.contains("no channel accepted the alert for 29 min"), "{}", ill.body);
    for path in ["/", "/rows"] {
        assert!(dashboard.get(path).body.contains("No channel has accepted a page for 29 min"), "{path}");
    }
    dashboard.runtime.block_on(dashboard.data.run("ALTER TABLE target RENAME TO gone"));
    let ill = dashboard.get("/healthz");
    assert!(ill.status == 503 && ill.body.contains("the database does not respond"), "{}", ill.body);
}

#[test]
fn a_badge_says_up_or_down() {
    let dashboard = Dashboard::new(Config::default());
    for (name, word) in [("svc-0001", "down"), ("svc-0009", "up"), ("svc-0005", "up")] {
        let badge = dashboard.get(&format!("/badge/{name}.svg"));
        assert_eq!(badge.header("content-type"), Some("image/svg+xml"));
        assert!(badge.body.contains(&format!("aria-label=\"{name}: {word}\"")), "{}", badge.body);
    }
    let evil = HOSTILE.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let badge = dashboard.get(&format!("/badge/{evil}.svg"));
    assert!(badge.status == 200 && !badge.body.contains("<img") && !badge.body.contains("<script"));
}

#[test]
fn targets_of_the_api_are_sealed_and_lead_nowhere_inside() {
    let key = SealKey::parse(&"ab".repeat(32)).unwrap();
    let dashboard = Dashboard::new(Config { seal: Some(key.clone()), ..with_token("t") });
    let ask = |method: &str, path: &str, body: Value| dashboard.json(method, path, "t", &body);
    for (url, problem) in [
        ("http://127.0.0.1:9/mcp", "127.0.0.1 is not a public address"),
        ("http://[fd00::1]/mcp", "fd00::1 is not a public address"),
        ("http://169.254.169.254/latest", "169.254.169.254 is not a public address"),
        ("http://localhost:9/mcp", "which is not a public address"),
        ("ftp://mcp.example/", "not an http or https URL"),
    ] {
        let (status, answer) = ask("POST", "/api/targets/new", json!({ "url": url }));
        assert_eq!(status, 422, "{url}: {answer}");
        assert!(answer["problem"].as_str().unwrap().contains(problem), "{url}: {answer}");
    }
    let (status, answer) = ask("POST", "/api/targets/new", json!({ "url": "https://93.184.216.34/mcp", "regions": ["local", "mars"] }));
    assert_eq!((status, answer["problem"].as_str()), (422, Some("no worker probes from the region `mars`")), "{answer}");
    assert!(answer["remedy"].as_str().unwrap().starts_with("use one of `"), "{answer}");
    let body = json!({ "url": "https://93.184.216.34/mcp", "headers": { "authorization": "Bearer s3cret" }, "every": 30, "tags": ["new"] });
    assert_eq!(ask("POST", "/api/targets/new", body.clone()).0, 201);
    assert_eq!(ask("POST", "/api/targets/new", body.clone()).0, 409);
    let (status, shown) = ask("GET", "/api/targets/new", Value::Null);
    assert_eq!(
        (status, shown["source"].as_str(), shown["definition"]["headers"]["authorization"].as_str()),
        (200, Some("api"), Some("[redacted]"))
    );
    let sealed = dashboard.runtime.block_on(dashboard.store.definition("new")).unwrap().unwrap();
    assert!(!sealed.windows(6).any(|part| part == b"s3cret"));
    let spec = api_target::decode(&Config { seal: Some(key), ..Config::default() }, "new", &sealed).unwrap();
    assert_eq!((spec.every, spec.tags.as_slice()), (Duration::from_secs(30), &["new".to_owned()][..]));
    let other = SealKey::parse(&"cd".repeat(32)).unwrap();
    assert!(api_target::decode(&Config { seal: Some(other), ..Config::default() }, "new", &sealed).is_none());
    assert_eq!(ask("PUT", "/api/targets/new", json!({ "url": "https://93.184.216.34/mcp", "every": 120 })).0, 200);
    assert_eq!(ask("GET", "/api/targets/new", Value::Null).1["every_ms"], 120_000);
    assert_eq!(ask("DELETE", "/api/targets/new", Value::Null).0, 200);
    assert_eq!(ask("GET", "/api/targets/new", Value::Null).0, 404);
    assert_eq!(ask("DELETE", "/api/targets/svc-0001", Value::Null).0, 409);

    let keyless = Dashboard::new(with_token("t"));
    assert_eq!(keyless.json("POST", "/api/targets/new", "t", &body).1["error"], "no-key");
}

#[test]
fn what_is_in_deploy_parses_and_asks_for_no_privileges() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    for (name, documents) in [("compose.yaml", 1), ("kubernetes.yaml", 4)] {
        assert_eq!(saphyr::Yaml::load_from_str(&read(name)).unwrap().len(), documents, "{name}");
    }
    assert_eq!(read("kubernetes.yaml").matches("allowPrivilegeEscalation: false").count(), 3);
    let unit = read("mcproof-watch.service");
    for line in ["DynamicUser=yes", "ProtectSystem=strict", "NoNewPrivileges=yes", "CapabilityBoundingSet="] {
        assert!(unit.lines().any(|found| found == line), "{line}");
    }
}

const PAGERDUTY_SECRET: &str = "the-secret-of-the-subscription";
const SLACK_SECRET: &str = "the-signing-secret-of-the-app";

fn with_hooks() -> Config {
    let text = format!(
        "channels:\n  on-call: {{ pagerduty: {{ routing_key: abcdefgh, webhook_secret: {PAGERDUTY_SECRET} }} }}\n  chat: {{ slack: {{ url: \"https://hooks.example.com/services/T0\", signing_secret: {SLACK_SECRET} }} }}\n  mute: {{ slack: \"https://hooks.example.com/services/T1\" }}\nlogin: {{ tokens: an-admin-token-long-enough }}\n"
    );
    load("w.yaml", &text, std::path::Path::new("/"), &Environment::default()).unwrap().config
}

fn signed(secret: &str, text: &str) -> String {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret.as_bytes());
    ring::hmac::sign(&key, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// As PagerDuty sends it.
fn of_pagerduty(id: &str, kind: &str, agent: &str, incident: &str, at: &str) -> String {
    json!({ "event": {
        "id": id, "event_type": kind, "resource_type": "incident", "occurred_at": at,
        "agent": { "html_url": "https://acme.pagerduty.com/users/PLH1HKV", "id": "PLH1HKV", "summary": "Tenex Engineer", "type": agent },
        "client": null,
        "data": { "id": "PGR0VU2", "type": "incident", "number": 2, "status": "acknowledged", "incident_key": incident },
    } })
    .to_string()
}

/// As Slack sends it, with its signature.
fn of_slack(incident: &str, user: &str, at: i64) -> (String, String, String) {
    let payload = json!({
        "type": "block_actions", "user": { "id": "U1", "username": user, "name": user, "team_id": "T1" },
        "actions": [{ "type": "button", "action_id": "acknowledge", "block_id": "b", "value": incident, "action_ts": "1" }],
    });
    let body = url::form_urlencoded::Serializer::new(String::new()).append_pair("payload", &payload.to_string()).finish();
    (format!("v0={}", signed(SLACK_SECRET, &format!("v0:{at}:{body}"))), at.to_string(), body)
}

#[test]
fn who_acknowledges_in_pagerduty_or_slack_acknowledges_here_and_nobody_else_can() {
    on_both(with_hooks, |dashboard| {
        let call = |channel: &str, headers: &[(&str, &str)], body: &str| {
            let answer = dashboard.ask("POST", &format!("/hooks/{channel}"), headers, body);
            (answer.status, answer.body.trim().to_owned())
        };
        let page = |secret: &str, body: &str| {
            let old = format!("v1={}, v1={}", signed("the one before", body), signed(secret, body));
            call("on-call", &[("X-PagerDuty-Signature", &old), ("Content-Type", "application/json")], body)
        };
        let acknowledged = || {
            let (_, told) = dashboard.json("GET", "/api/incidents?state=all", "an-admin-token-long-enough", &Value::Null);
            let of = |id: &str| {
                let incidents = told["incidents"].as_array().unwrap();
                incidents.iter().find(|incident| incident["id"] == id).unwrap()["acknowledged_by"].as_str().map(str::to_owned)
            };
            (of("incident-1"), of("incident-2"))
        };
        let now = NOW.to_string();
        let good = of_pagerduty("01EVENT", "incident.acknowledged", "user_reference", "incident-1", &now);
        let stale = of_pagerduty("01OLD", "incident.acknowledged", "user_reference", "incident-1", "2026-11-19T00:00:00Z");
        let own = of_pagerduty("01OWN", "incident.resolved", "service_reference", "incident-1", &now);
        let foreign = of_pagerduty("01WHO", "incident.acknowledged", "user_reference", "nobody-knows", &now);
        let (signature, at, body) = of_slack("incident-2", "ann", NOW.0 / 1000 - 299);
        let slack = |signature: &str, at: &str, body: &str| {
            let kind = ("Content-Type", "application/x-www-form-urlencoded");
            call("chat", &[("X-Slack-Signature", signature), ("X-Slack-Request-Timestamp", at), kind], body)
        };
        // Forged, changed on the way, for another channel, too old, or nothing that anybody did.
        let unsigned = (401, "no channel of this name has the secret of this signature".to_owned());
        assert_eq!(page("another secret", &good), unsigned);
        assert_eq!(call("on-call", &[], &good), unsigned);
        assert_eq!(call("on-call", &[("X-PagerDuty-Signature", "v1=zz")], &good), unsigned);
        for channel in ["mute", "chat", "nobody"] {
            let signature = format!("v1={}", signed(PAGERDUTY_SECRET, &good));
            assert_eq!(call(channel, &[("X-PagerDuty-Signature", &signature)], &good), unsigned, "{channel}");
        }
        assert_eq!(page(PAGERDUTY_SECRET, &stale).0, 401);
        assert_eq!(page(PAGERDUTY_SECRET, "{}").0, 400);
        assert_eq!(page(PAGERDUTY_SECRET, &own), (200, "nothing to do".to_owned()));
        assert_eq!(page(PAGERDUTY_SECRET, &foreign), (200, "no such incident".to_owned()));
        assert_eq!(slack(&signature, &at, &body.replace("ann", "eve")).0, 401);
        assert_eq!(slack(&signature, &(NOW.0 / 1000).to_string(), &body).0, 401, "the time is signed, too");
        let (late, then, old) = of_slack("incident-2", "ann", NOW.0 / 1000 - 301);
        assert_eq!(slack(&late, &then, &old), (401, "the signature is too old, or the clock of the sender is wrong".to_owned()));
        assert_eq!(acknowledged(), (None, None));
        // What is right is taken, once.
        assert_eq!(page(PAGERDUTY_SECRET, &good), (200, "acknowledged".to_owned()));
        assert_eq!(page(PAGERDUTY_SECRET, &good), (409, "already received".to_owned()));
        let resolved = of_pagerduty("02EVENT", "incident.resolved", "user_reference", "incident-1", &now);
        assert_eq!(page(PAGERDUTY_SECRET, &resolved), (200, "it is resolved or already acknowledged".to_owned()));
        assert_eq!(slack(&signature, &at, &body), (200, "acknowledged".to_owned()));
        assert_eq!(slack(&signature.to_uppercase().replace("V0=", "v0="), &at, &body), (409, "already received".to_owned()));
        assert_eq!(acknowledged(), (Some("Tenex Engineer (pagerduty)".to_owned()), Some("ann (slack)".to_owned())));
        let (_, log) = dashboard.json("GET", "/api/audit", "an-admin-token-long-enough", &Value::Null);
        let mut log: Vec<String> = log["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| ["who", "via", "action", "subject", "outcome"].map(|key| entry[key].as_str().unwrap_or_default()).join(" "))
            .collect();
        // All of them are of the same moment.
        log.sort();
        assert_eq!(
            log,
            [
                "Tenex Engineer pagerduty acknowledge incident-1 done",
                "Tenex Engineer pagerduty acknowledge incident-1 refused: it is resolved or already acknowledged",
                "ann slack acknowledge incident-2 done",
            ]
        );
        // Whoever guesses is not let go on.
        let statuses: Vec<u16> = (0..40).map(|_| page("a guess", &good).0).collect();
        assert_eq!((statuses[0], statuses[39]), (401, 429));
    });
}

#[test]
fn who_acknowledges_late_what_an_incident_was_before_does_not_acknowledge_what_it_is() {
    const CHANGED: &str = "it has changed since: look at it, and acknowledge it as it is now";
    on_both(with_hooks, |dashboard| {
        let then = |minutes: i64| Moment(NOW.0 - minutes * 60_000);
        let page_as = |key: &str, id: &str, minutes: i64| {
            let body = of_pagerduty(id, "incident.acknowledged", "user_reference", key, &then(minutes).to_string());
            let signature = format!("v1={}", signed(PAGERDUTY_SECRET, &body));
            dashboard.ask("POST", "/hooks/on-call", &[("X-PagerDuty-Signature", &signature)], &body).body.trim().to_owned()
        };
        // Under the key of what it became.
        let page = |id: &str, minutes: i64| page_as("incident-1.1", id, minutes);
        let press = |value: &str| {
            let (signature, at, body) = of_slack(value, "ann", NOW.0 / 1000);
            let headers = [("X-Slack-Signature", signature.as_str()), ("X-Slack-Request-Timestamp", at.as_str())];
            dashboard.ask("POST", "/hooks/chat", &headers, &body).body.trim().to_owned()
        };
        let click = |incident: &str, minutes: i64| {
            let form = ("Content-Type", "application/x-www-form-urlencoded");
            let headers = [("Authorization", "Bearer an-admin-token-long-enough"), form];
            let body = format!("seen={}", then(minutes).0);
            dashboard.ask("POST", &format!("/incidents/{incident}/acknowledge"), &headers, &body).status
        };
        let acknowledged = || {
            let statement = "SELECT CAST(count(acknowledged) AS TEXT) FROM incident";
            dashboard.runtime.block_on(dashboard.data.text(statement)).unwrap()
        };
        for incident in ["incident-1", "incident-2"] {
            dashboard.runtime.block_on(dashboard.data.event(incident, 10, "raised", "from notify to page"));
        }
        // A storm that has grown is still the same one.
        dashboard.runtime.block_on(dashboard.data.event("incident-2", 5, "changed", "svc-0002 fails as well"));
        assert_eq!(page("01LATE", 11), CHANGED);
        assert_eq!(page_as("incident-1", "05LATE", 9), CHANGED, "the alert of what it was before");
        assert_eq!(press(&format!("incident-2 {}", then(11).0)), CHANGED);
        assert_eq!(click("incident-1", 11), 409);
        assert_eq!(acknowledged(), "0");
        let (_, log) = dashboard.json("GET", "/api/audit", "an-admin-token-long-enough", &Value::Null);
        assert!(log.to_string().contains(&format!("refused: {CHANGED}")), "{log}");
        // Whoever knew of it has.
        assert_eq!(press(&format!("incident-2 {}", then(9).0)), "acknowledged");
        assert_eq!(page("02LATE", 9), "acknowledged");
        assert_eq!(acknowledged(), "2");
        // Another contract is not what somebody took for good.
        dashboard
            .runtime
            .block_on(dashboard.data.run("UPDATE incident SET class = 'contract', acknowledged = NULL WHERE id = 'incident-1'"));
        dashboard.runtime.block_on(dashboard.data.event("incident-1", 3, "changed", "the contract of svc-0001 changed"));
        assert_eq!(page("03LATE", 4), CHANGED);
        assert_eq!(page("04LATE", 2), "acknowledged");
    });
}

#[test]
fn what_is_down_because_of_something_else_says_so() {
    on_both(Config::default, |dashboard| {
        let title = "svc-0009 is down: connection refused";
        let detail = json!({ "message": "connection refused", "because_of": "svc-0001" });
        dashboard.runtime.block_on(async {
            dashboard.data.incident("incident-4", "svc-0009", "availability", title, &detail, None).await;
            dashboard.data.run("UPDATE incident SET parent = 'incident-1' WHERE id = 'incident-4'").await;
            dashboard.data.run("UPDATE target SET availability = 'down' WHERE name = 'svc-0009'").await;
        });
        for (path, part) in [
            ("/?q=svc-0009", "connection refused (because of svc-0001)"),
            ("/targets/svc-0009", "It has been down for 30 min because of svc-0001."),
            ("/incidents/incident-4", "<dt>because of</dt><dd><a href=\"/incidents/incident-1\">svc-0001</a>"),
            ("/incidents/incident-1", "<a href=\"/incidents/incident-4\">svc-0009 is down: connection refused</a>"),
            ("/status/svc-0009", "It is down because of svc-0001."),
        ] {
            let page = dashboard.get(path);
            assert!(page.body.contains(part), "{part} is not in {path}:\n{}", page.body);
        }
        // One that is not public is not named.
        dashboard.runtime.block_on(dashboard.data.run("UPDATE target SET public = 0 WHERE name = 'svc-0001'"));
        let page = dashboard.get("/status");
        assert!(page.body.contains("It is down because of a dependency."), "{}", page.body);
        assert!(!page.body.contains("svc-0001"));
    });
}
