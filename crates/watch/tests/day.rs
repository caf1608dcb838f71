//! A day in a minute: the clock jumps from one thing to do to the next, the sockets and the servers are real. What people are
//! told, when, and in which order, is all that counts.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "certificates are checked by the clock of the machine, so that the day begins today")]

mod authority;
#[path = "day/people.rs"]
mod people;
#[path = "day/weather.rs"]
mod weather;

use authority::Authority;
use mcproof_client::{Guardian, Network};
use mcproof_demo::DemoName::{Shop, Tracker};
use mcproof_suite::Environment;
use mcproof_watch::channel::DeliveryClient;
use mcproof_watch::config::{self, Config};
use mcproof_watch::moment::Moment;
use mcproof_watch::monitor::{Monitor, Reach};
use mcproof_watch::notifier::Notifier;
use mcproof_watch::store::{Store, sqlite};
use people::{People, Told};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio_rustls::TlsAcceptor;
use weather::{Door, Hour, Town, Weather};

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// Between two probes of a target.
const EVERY: i64 = 10 * MINUTE;
/// What a failure takes to be confirmed.
const CONFIRMED: i64 = 15_000;

const fn at(hours: i64, minutes: i64) -> i64 {
    hours * HOUR + minutes * MINUTE
}

/// The weather is another one during these times of the day, and fine otherwise.
fn during(times: &[(i64, i64)], then: Weather) -> impl Fn(i64) -> Weather + Send + Sync + use<> {
    let times = times.to_vec();
    move |hour| if times.iter().any(|(from, until)| (*from..*until).contains(&hour)) { then } else { Weather::Leads(Shop) }
}

/// What people are to be told of one subject: what, and when at the earliest and at the latest.
type Expected = (&'static str, &'static str, &'static [(&'static str, i64, i64)]);

/// From a time of the day on: until when a failure that begins then is told, and the end of one.
const fn told(what: &'static str, from: i64) -> (&'static str, i64, i64) {
    (what, from, from + EVERY + 2 * CONFIRMED)
}

const EXPECTED: &[Expected] = &[
    ("crashes", "availability", &[told("trigger", at(2, 0)), told("resolve", at(2, 40))]),
    ("hangs", "availability", &[told("trigger", at(3, 0)), told("resolve", at(3, 30))]),
    ("breaks", "availability", &[told("trigger", at(4, 0)), told("resolve", at(4, 20))]),
    ("drifts", "contract", &[told("trigger", at(5, 0)), told("resolve", at(9, 0))]),
    ("mixed", "mixed-fleet", &[("trigger", at(7, 5), at(7, 50)), ("resolve", at(10, 20), at(11, 0))]),
    // What became a page is an alert of its own, and both end.
    ("expires", "certificate", &[told("trigger", 0), told("trigger", at(12, 0)), told("resolve", at(19, 20)), told("resolve", at(19, 20))]),
    ("slows", "latency", &[("trigger", at(10, 20), at(11, 0)), ("resolve", at(12, 20), at(13, 0))]),
    (
        "flaps",
        "availability",
        &[
            told("trigger", at(13, 0)),
            told("resolve", at(13, 10)),
            told("trigger", at(13, 20)),
            told("resolve", at(13, 30)),
            // What stays down for ten minutes does not flap.
            told("trigger", at(14, 30)),
            told("resolve", at(14, 50)),
        ],
    ),
    ("flaps", "flapping", &[told("trigger", at(13, 40)), told("resolve", at(14, 30))]),
    ("planned", "availability", &[("trigger", at(18, 0), at(18, 1)), told("resolve", at(18, 30))]),
    ("flaps", "blind", &[("trigger", at(21, 10), at(21, 18)), told("resolve", CUT.1)]),
    ("slows", "blind", &[("trigger", at(21, 10), at(21, 18)), told("resolve", CUT.1)]),
    ("host", "storm", &[told("trigger", at(19, 0)), told("resolve", at(19, 30))]),
];

/// The targets, each behind a door of its own, but for those of the host that they share.
const STORM: usize = 8;

struct Street {
    doors: Vec<Door>,
    targets: String,
}

impl Street {
    fn add(&mut self, name: &str, door: Door, more: &str) {
        // Not by a loopback address: whether that can be reached is no question of our own network.
        let scheme = if door.is_secure() { "https://localhost" } else { "http://0.0.0.0" };
        let url = format!("{scheme}:{}/mcp", door.address().port());
        writeln!(self.targets, "  {name}: {{ http: {{ url: \"{url}\" }}{more} }}").unwrap();
        self.doors.push(door);
    }
}

fn street(town: &Arc<Town>, hour: &Hour, authority: Authority, begin: SystemTime) -> Street {
    let mut street = Street { doors: Vec::new(), targets: String::new() };
    let door = |weather: fn(i64) -> Weather| Door::new(town, hour, weather);
    let when = |times: &[(i64, i64)], then| Door::new(town, hour, during(times, then));
    street.add("steady", door(|_| Weather::Leads(Shop)), "");
    street.add("crashes", when(&[(at(2, 0), at(2, 40))], Weather::Refuses), "");
    street.add("hangs", when(&[(at(3, 0), at(3, 30))], Weather::Hangs), ", timeout: 1s");
    street.add("breaks", when(&[(at(4, 0), at(4, 20))], Weather::Breaks), "");
    // Too short to be confirmed.
    street.add("blinks", door(|hour| if hour % (4 * HOUR) < 4_000 { Weather::Breaks } else { Weather::Leads(Shop) }), ", every: 1h");
    street.add("drifts", when(&[(at(5, 0), at(9, 0))], Weather::Leads(Tracker)), "");
    street.add("deploys", when(&[(at(6, 0), DAY)], Weather::Leads(Tracker)), "");
    let by_turns = |hour: i64| match hour {
        // Another one with each slot, and with each look at it five seconds later.
        _ if !(at(7, 0)..at(9, 0)).contains(&hour) || (hour / EVERY + hour / 5_000) % 2 == 0 => Weather::Leads(Shop),
        _ => Weather::Leads(Tracker),
    };
    street.add("mixed", door(by_turns), "");
    let lasting = |days: u64, hours: u64| {
        let until = begin + Duration::from_secs(days * 86_400 + hours * 3_600);
        TlsAcceptor::from(authority.server(|certificate| {
            certificate.not_after = until.into();
            certificate.not_before = (until - Duration::from_secs(200 * 86_400)).into();
        }))
    };
    let (old, renewed) = (lasting(7, 12), lasting(90, 0));
    let certificate = move |hour| if hour < at(18, 0) { old.clone() } else { renewed.clone() };
    street.add("expires", door(|_| Weather::Leads(Shop)).behind_tls(certificate), ", tls: { ca: ca.pem }");
    street.add("slows", when(&[(at(10, 0), at(12, 0))], Weather::Slow(Shop, Duration::from_millis(400))), ", every: 5m");
    let outages =
        &[(at(13, 0), at(13, 10)), (at(13, 20), at(13, 30)), (at(13, 40), at(13, 50)), (at(14, 0), at(14, 10)), (at(14, 20), at(14, 50))];
    street.add("flaps", when(outages, Weather::Refuses), ", every: 5m");
    street.add("planned", when(&[(at(17, 10), at(17, 25)), (at(17, 30), at(18, 30))], Weather::Refuses), ", tags: [planned]");
    let shared = when(&[(at(19, 0), at(19, 30))], Weather::Refuses);
    let url = format!("http://0.0.0.0:{}/mcp", shared.address().port());
    for number in 1..STORM {
        writeln!(street.targets, "  storm-{number}: {{ http: {{ url: \"{url}\" }} }}").unwrap();
    }
    street.add("storm-0", shared, "");
    street
}

/// When our own network does not work: nothing but this machine can be reached. Nobody is down then; whoever is probed often is not
/// seen for three intervals.
const CUT: (i64, i64) = (at(21, 0), at(21, 20));

fn configuration(folder: &Path, street: &Street, pager: &str, canary: &str, begin: Moment) -> Config {
    let time = |hour: i64| Moment(begin.0 + hour);
    let text = format!(
        "defaults: {{ every: 10m, timeout: 5s }}\ntargets:\n{}\
         channels: {{ pager: {{ pagerduty: {{ routing_key: 'env:KEY', url: '{pager}' }} }} }}\n\
         maintenance: [{{ name: planned, tags: [planned], from: '{}', until: '{}' }}]\ncanaries: ['{canary}']\n",
        street.targets,
        time(at(17, 0)),
        time(at(18, 0)),
    );
    let variables = BTreeMap::from([("KEY".to_owned(), "a-key-for-a-day".to_owned())]);
    let environment = Environment { variables, ..Environment::default() };
    config::load("day.yaml", &text, folder, &environment).unwrap_or_else(|mistakes| panic!("{mistakes:#?}\n{text}")).config
}

#[tokio::test]
async fn a_day_in_a_minute() {
    let folder = tempfile::tempdir().unwrap();
    // A whole hour, so that slots and outages meet as they would on any other day.
    let begin = Moment(Moment::from(SystemTime::now()).0 / HOUR * HOUR);
    let hour = Hour::default();
    let town = Arc::new(Town::build().await);
    let mut street = street(&town, &hour, Authority::new(folder.path()), UNIX_EPOCH + Duration::from_millis(begin.0.unsigned_abs()));
    let mut canary = Door::new(&town, &hour, |_| Weather::Leads(Shop));
    let (people, pager) = People::listen(&hour).await;
    let config = configuration(folder.path(), &street, &pager, &canary.address().to_string(), begin);

    let store = Store::open(&sqlite(&folder.path().join("watch.db"))).await.unwrap();
    let reach = Reach {
        network: Network::default(),
        guardian: Guardian::default(),
        own_binary: None,
        variables: BTreeMap::new(),
        name: "a day".into(),
    };
    let monitor = Monitor::over(store.clone(), config, reach, begin).await.unwrap();
    let notifier = Notifier::new(store.clone(), monitor.plan(), DeliveryClient::new(Network::default()));
    let mut is_announced = false;
    let mut now = begin;
    while now.0 < begin.0 + DAY {
        hour.set(now.0 - begin.0);
        let is_cut = (CUT.0..CUT.1).contains(&hour.get());
        for door in street.doors.iter_mut().chain([&mut canary]) {
            if is_cut && !door.is_secure() { door.close().await } else { door.tick().await }
        }
        if hour.get() >= at(5, 58) && !is_announced {
            is_announced = true;
            store.announce_deploy("deploys", now, now + Duration::from_secs(1_800), None, "a deployment").await.unwrap();
        }
        let next =
            [monitor.worker.pass(now).await.unwrap(), monitor.chores.pass(now).await.unwrap(), notifier.pass(now).await.unwrap().next];
        let soon = now + Duration::from_millis(100);
        now = next.into_iter().flatten().min().unwrap_or(soon).max(soon);
    }
    check(&people.told());
}

/// Compares what was told with what was to be told: nothing else, nothing twice, and no end before its begin.
fn check(told: &[Told]) {
    let mut found: BTreeMap<String, Vec<(String, i64)>> = BTreeMap::new();
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    for one in told {
        if one.action == "trigger" {
            let subject = one.subject.split_once(':').map_or(one.subject.as_str(), |(kind, _)| kind);
            names.insert(&one.key, format!("{subject} {}", one.class));
        }
        let name = names.get(one.key.as_str()).cloned().unwrap_or_else(|| format!("{} without a trigger", one.key));
        found.entry(name).or_default().push((one.action.clone(), one.hour));
    }
    let mut wrong = Vec::new();
    for (subject, class, expected) in EXPECTED {
        let name = format!("{subject} {class}");
        let heard = found.remove(&name).unwrap_or_default();
        let fits =
            |((what, from, until), (action, hour)): (&(&str, i64, i64), &(String, i64))| what == action && (*from..=*until).contains(hour);
        if heard.len() != expected.len() || !expected.iter().zip(&heard).all(fits) {
            wrong.push(format!(
                "{name}: expected {}, heard {}",
                times(expected.iter().map(|(what, from, _)| (*what, *from))),
                times(heard.iter().map(|(what, at)| (what.as_str(), *at)))
            ));
        }
    }
    wrong.extend(found.iter().map(|(name, heard)| format!("{name}: heard {}", times(heard.iter().map(|(what, at)| (what.as_str(), *at))))));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn times<'a>(told: impl Iterator<Item = (&'a str, i64)>) -> String {
    let clock = |at: i64| format!("{}:{:02}:{:02}", at / HOUR, at % HOUR / MINUTE, at % MINUTE / 1_000);
    let told: Vec<String> = told.map(|(what, at)| format!("{what} {}", clock(at))).collect();
    if told.is_empty() { "nothing".into() } else { told.join(", ") }
}
