//! Clocks that are set forward and back, and workers whose clocks differ: targets are probed on, and outages are told.

use super::fixtures::*;
use super::probing::{monitor, small_server};
use mcproof_watch::clock::Clock;
use mcproof_watch::config::{Config, Route, TargetSpec};
use mcproof_watch::moment::Moment;
use mcproof_watch::monitor::Monitor;
use mcproof_watch::push::Said;
use mcproof_watch::store::Store;
use mcproof_watch::store::audit::AuditEvent;
use mcproof_watch::store::operations::Announcement;
use mcproof_watch::store::silences::Silence;
use sqlx::AnyPool;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

const HOUR: Duration = Duration::from_secs(3_600);

/// A target that is probed by passes, at the times that the test says.
struct Watched {
    address: String,
    monitor: Monitor,
    is_well: Arc<AtomicBool>,
    target: TargetSpec,
}

impl Watched {
    async fn new(address: &str) -> Self {
        let is_well = Arc::new(AtomicBool::new(true));
        let target = over_http("small", &small_server(Arc::clone(&is_well)).await);
        let monitor = monitor(address, vec![target.clone()], Vec::new()).await;
        Self { address: address.to_owned(), monitor, is_well, target }
    }

    /// Passes of everything, for as long as the clock takes from one time to the other.
    async fn go_on(&self, from: Moment, until: Moment) {
        let mut now = from;
        while now < until {
            let next = [self.monitor.worker.pass(now).await.unwrap(), self.monitor.chores.pass(now).await.unwrap()];
            now = next.into_iter().flatten().min().unwrap_or(until).max(now + Duration::from_secs(1));
        }
    }

    /// Another process on the same database.
    async fn restart(&mut self, now: Moment) {
        let store = Store::open(&self.address).await.unwrap();
        store.free_leases().await.unwrap();
        let channels = vec!["chat".to_owned()];
        let route = Route { severities: Vec::new(), tags: Vec::new(), channels, ..Route::default() };
        let targets = [("small".to_owned(), self.target.clone())].into();
        self.monitor = Monitor::over(store, Config { targets, routes: vec![route], ..config() }, reach("again"), now).await.unwrap();
    }

    async fn availability(&self) -> String {
        rows(&self.address, "SELECT availability FROM target").await.remove(0).remove(0)
    }

    async fn last_result(&self) -> Moment {
        Moment(rows(&self.address, "SELECT CAST(last_result AS TEXT) FROM target").await[0][0].parse().unwrap())
    }

    async fn fails(&self, from: Moment, until: Moment) {
        self.is_well.store(false, Ordering::Relaxed);
        self.go_on(from, until).await;
        assert_eq!(self.availability().await, "down", "an outage at {from} is not seen");
        self.is_well.store(true, Ordering::Relaxed);
    }
}

pub(crate) async fn a_clock_that_is_set_forward_and_back_hides_no_outage(address: String) {
    let watched = Watched::new(&address).await;
    watched.go_on(START, START + MINUTE * 3).await;
    watched.go_on(START + HOUR, START + HOUR + MINUTE * 2).await;
    assert_eq!(watched.availability().await, "ok", "nobody was away: the clock was set forward");
    assert!(watched.last_result().await > START + HOUR);
    let back = START + MINUTE * 5;
    watched.go_on(back, back + MINUTE * 2).await;
    let newest = watched.last_result().await;
    assert!((back..back + MINUTE * 2).contains(&newest), "{newest}");
    watched.fails(back + MINUTE * 2, back + MINUTE * 4).await;
    // The slots of these minutes have results from before.
    watched.go_on(START, START + MINUTE * 3).await;
    assert_eq!(watched.availability().await, "ok");
    watched.fails(START + MINUTE * 3, START + MINUTE * 6).await;
}

/// A job says something while the clock is ahead: afterwards what it says now counts.
pub(crate) async fn what_a_job_said_while_the_clock_was_ahead_is_outlived_by_what_it_says_later(address: String) {
    let store = store_of(&address, &[target("backup")]).await;
    let ahead = START + HOUR * 24;
    let orders: [[(Said, u64); 3]; 3] = [
        [(Said::Started, 1), (Said::Succeeded, 2), (Said::Failed, 3)],
        [(Said::Failed, 1), (Said::Started, 2), (Said::Succeeded, 3)],
        [(Said::Succeeded, 1), (Said::Failed, 2), (Said::Started, 3)],
    ];
    for (round, order) in orders.into_iter().enumerate() {
        let now = START + MINUTE * u32::try_from(round).unwrap();
        for (said, minute) in order {
            store.push("backup", said, "", ahead + Duration::from_secs(60 * minute)).await.unwrap();
        }
        assert!(store.take_chore("look", "worker", Duration::ZERO, ahead).await.unwrap().is_some());
        store.end_chore("look", "worker", ahead).await.unwrap();
        assert!(store.recover_from_set_back(now).await.unwrap());
        let reported = store.pushed("backup").await.unwrap();
        let at = |said| match said {
            Said::Started => reported.started,
            Said::Succeeded => reported.succeeded,
            Said::Failed => reported.failed,
        };
        let times: Vec<Moment> = order.iter().filter_map(|(said, _)| at(*said)).collect();
        assert!(times.len() == 3 && times.is_sorted() && times[0] < times[1] && times[1] < times[2], "{reported:?}");
        assert_eq!(times[2], now, "the last thing that it said was said just now: {reported:?}");
    }
}

pub(crate) async fn what_people_decided_while_the_clock_was_ahead_lasts_as_long_as_they_said(address: String) {
    let store = store_of(&address, &["desk", "job", "late", "old", "other", "shop"].map(target)).await;
    let (ahead, now) = (START + HOUR * 24, START + MINUTE);
    let say = async |action: &str, subject: &str, at: Moment| {
        store.write_down(&AuditEvent { who: "ann", via: "login", action, subject }, at).await.unwrap()
    };
    let silence = |name: &str, starts: Moment, ends: Moment| Silence {
        names: vec![name.to_owned()],
        tags: Vec::new(),
        author: "ann".into(),
        reason: "moving".into(),
        starts,
        ends,
    };
    // By the right clock.
    say("mute for 2 d", "other", START).await;
    store.mute("other", START + HOUR * 48).await.unwrap();
    let old = store.silence(&silence("old", START, START + HOUR * 48), START).await.unwrap();
    // By the other one: from then on, except for what was to begin at some time.
    say("mute for 5 min", "shop", ahead).await;
    store.mute("shop", ahead + MINUTE * 5).await.unwrap();
    store.silence(&silence("desk", ahead, ahead + MINUTE * 10), ahead).await.unwrap();
    store.silence(&silence("late", START + HOUR * 30, START + HOUR * 32), ahead).await.unwrap();
    let (targets, tags) = (vec!["job".to_owned()], Vec::new());
    let work = Announcement { name: "upgrade".into(), targets, tags, starts: ahead, ends: ahead + MINUTE * 30 };
    store.announce(&work, ahead).await.unwrap();
    store.announce_deploy("shop", ahead, ahead + MINUTE * 15, None, "").await.unwrap();
    say("end a silence", &old, ahead).await;
    assert!(store.end_silence(&old, ahead).await.unwrap());
    // What was refused did not end it.
    let refused = say("mute for 1 h", "other", ahead).await;
    assert!(store.write_outcome(&refused, "refused: 404 Not Found").await.unwrap());
    assert!(store.take_chore("look", "worker", Duration::ZERO, ahead).await.unwrap().is_some());
    store.end_chore("look", "worker", ahead).await.unwrap();
    assert!(store.recover_from_set_back(now).await.unwrap());
    let quiet = [
        ("desk", format!("silenced until {}", now + MINUTE * 10)),
        ("job", format!("under maintenance until {}", now + MINUTE * 30)),
        ("other", format!("muted until {}", START + HOUR * 48)),
        ("shop", format!("muted until {}", now + MINUTE * 5)),
    ];
    assert_eq!(store.quiet(&[], now).await.unwrap(), BTreeMap::from(quiet.map(|(name, why)| (name.to_owned(), why))));
    let later = store.quiet(&[], START + HOUR * 31).await.unwrap();
    assert_eq!(later.keys().collect::<Vec<_>>(), ["late", "other"]);
    let deploy = rows(&address, "SELECT CAST(at AS TEXT), CAST(until AS TEXT) FROM deploy").await;
    assert_eq!(deploy, [[now.0.to_string(), (now + MINUTE * 15).0.to_string()]]);
    // They may decide something else now.
    say("unmute", "shop", now).await;
    store.mute("shop", Moment(0)).await.unwrap();
    assert!(!store.recover_from_set_back(now + MINUTE).await.unwrap());
    assert!(!store.quiet(&[], now).await.unwrap().contains_key("shop"));
}

/// When the only target is probed next.
async fn due(address: &str) -> Moment {
    Moment(rows(address, "SELECT CAST(due AS TEXT) FROM schedule").await[0][0].parse().unwrap())
}

pub(crate) async fn a_clock_that_is_set_forward_brings_no_confirmation_forward(address: String) {
    use mcproof_watch::state::Verdict;
    for jump in [Duration::from_secs(3), HOUR] {
        let address = match address.strip_prefix("sqlite:") {
            Some(path) => format!("sqlite:{path}-{}", jump.as_secs()),
            None => crate::postgres::beside(&address, &format!("set_forward_{}", jump.as_secs())).await,
        };
        let store = store_of(&address, &[target("small")]).await;
        let mut now = FIRST;
        let mut attempts = Vec::new();
        for (wait, by) in [(5, jump), (10, Duration::ZERO)] {
            let leases = lease(&store, "here", now).await;
            assert_eq!(leases.len(), 1, "{now}");
            attempts.push(leases[0].turn.attempt);
            commit(&store, &[finished(&leases[0], Verdict::Down, now)], now).await;
            let wait = Duration::from_secs(wait);
            assert_eq!(due(&address).await, now + wait);
            now = now + by;
            if by > Duration::ZERO {
                assert!(store.keep_confirmations_apart(by, now).await.unwrap());
                // So does the other process that notices.
                assert!(!store.keep_confirmations_apart(by, now + Duration::from_secs(1)).await.unwrap());
                assert_eq!(due(&address).await, now + wait, "it waits as long as it would have");
            }
            assert!(lease(&store, "here", now + wait - Duration::from_secs(1)).await.is_empty());
            now = now + wait;
        }
        let leases = lease(&store, "here", now).await;
        attempts.push(leases[0].turn.attempt);
        assert_eq!(attempts, [0, 1, 2]);
        commit(&store, &[finished(&leases[0], Verdict::Down, now)], now).await;
        assert_eq!(rows(&address, "SELECT availability FROM target").await, [["down"]]);
    }
}

pub(crate) async fn a_restart_believes_no_times_that_have_not_come_yet(address: String) {
    let mut watched = Watched::new(&address).await;
    watched.restart(START + HOUR * 24).await;
    watched.go_on(START + HOUR * 24, START + HOUR * 24 + MINUTE * 3).await;
    watched.restart(START).await;
    assert!(watched.last_result().await <= START);
    watched.fails(START, START + MINUTE * 2).await;
    let told = rows(&address, "SELECT kind FROM outbox WHERE delivered IS NULL AND due <= 1800000120000").await;
    assert_eq!(told, [["trigger"]]);
    // What waits for its next attempt waits no day longer.
    rows(&address, "UPDATE outbox SET due = 1800086400000, tried_since = 1800086400000 RETURNING id").await;
    rows(&address, "UPDATE chore SET last_run = 1800086400000 RETURNING name").await;
    watched.restart(START + MINUTE * 2).await;
    assert_eq!(rows(&address, "SELECT id FROM outbox WHERE due <= 1800000120000 AND tried_since <= due").await.len(), 1);
}

pub(crate) async fn workers_whose_clocks_differ_go_by_that_of_the_database(address: String) {
    #[expect(clippy::disallowed_methods, reason = "the clock of a machine")]
    fn right() -> SystemTime {
        SystemTime::now()
    }
    fn ten_minutes_ahead() -> SystemTime {
        right() + Duration::from_secs(600)
    }
    let store = Store::open(&address).await.unwrap();
    let [right, ahead] = [right as fn() -> SystemTime, ten_minutes_ahead].map(Clock::of_machine);
    assert!(ahead.now().since(right.now()) > Duration::from_secs(500));
    right.follow(&store).await.unwrap();
    ahead.follow(&store).await.unwrap();
    let (before, now, after) = (right.now(), ahead.now(), right.now());
    let slack = Duration::from_secs(60);
    assert!((before - slack..after + slack).contains(&now), "{before} {now} {after}");
}

pub(crate) async fn the_clock_of_a_busy_database_is_right(address: String) {
    #[expect(clippy::disallowed_methods, reason = "the clock of a machine")]
    let clock = Clock::of_machine(SystemTime::now);
    let store = Store::open(&address).await.unwrap();
    let other = AnyPool::connect(&address).await.unwrap();
    let mut locked = other.begin().await.unwrap();
    sqlx::query("LOCK TABLE target IN ACCESS EXCLUSIVE MODE").execute(&mut *locked).await.unwrap();
    // So many connections there are; all of them wait.
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.remove_target("small", START).await.unwrap() })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let release = async {
        tokio::time::sleep(Duration::from_secs(4)).await;
        locked.commit().await.unwrap();
    };
    let (followed, ()) = tokio::join!(clock.follow(&store), release);
    followed.unwrap();
    for one in waiting {
        one.await.unwrap();
    }
    let statement = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)";
    let right: i64 = sqlx::query_scalar(statement).fetch_one(&other).await.unwrap();
    let slack = Duration::from_secs(1);
    assert!((Moment(right) - slack..Moment(right) + slack).contains(&clock.now()), "{right} {}", clock.now());
}
