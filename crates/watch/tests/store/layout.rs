//! A database that an earlier version has left goes on, with all that is in it.

use super::fixtures::*;
use mcproof_watch::config::{When, Window};
use mcproof_watch::moment::Moment;
use mcproof_watch::push::Said;
use mcproof_watch::role::Role;
use mcproof_watch::store::audit::AuditEvent;
use mcproof_watch::store::notices::{NoticeUpdate, Progress, SHOWN};
use mcproof_watch::store::read::Which;
use mcproof_watch::store::silences::Silence;
use mcproof_watch::store::subscriptions::{Medium, SubscriptionRequest};
use mcproof_watch::store::{Store, StoreFailure};
use sqlx::{AnyConnection, Connection as _, Executor as _};
use std::collections::BTreeMap;

/// As `mcproof watch --once` has left it, with two tokens and work that somebody announced.
const FILE: &[u8] = include_bytes!("old/layout-1.db");
/// As `mcproof watch --once`, `mute` and `ack` have left it in version 5.
const FILE_OF_5: &[u8] = include_bytes!("old/layout-5.db");
/// The tables of the time of version 1, as they are in Postgres.
const TABLES: &str = include_str!("old/layout-1.sql");

async fn old(address: &str) {
    if let Some(path) = address.strip_prefix("sqlite:") {
        return std::fs::write(path, FILE).unwrap();
    }
    sqlx::any::install_default_drivers();
    let mut connection = AnyConnection::connect(address).await.unwrap();
    let lines = TABLES.lines().filter(|line| !line.trim_start().starts_with("--"));
    let schema = lines.collect::<Vec<_>>().join("\n").replace("BLOB", "BYTEA").replace("/* by day */", "PARTITION BY RANGE (slot)");
    let rest = [
        "CREATE TABLE layout (version BIGINT NOT NULL)",
        "INSERT INTO layout (version) VALUES (1)",
        "INSERT INTO api_token VALUES ('reader', 'aa', 'read', 1), ('writer', 'bb', 'write', 2)",
        "INSERT INTO maintenance VALUES ('m1', 'upgrade', '[]', '[]', 1, 9000000000000)",
        "INSERT INTO incident (id, subject, class, severity, title, detail, since, opened) \
         VALUES ('i1', 'shop', 'availability', 'page', 'shop is down', '{\"message\":\"x\"}', 1, 1)",
        "INSERT INTO target (name, source, definition, host, every, tags, public, state, availability, surface, since) \
         VALUES ('shop', 'config', '', 'a:1', 60000, '[\"paid\"]', 0, '{}', 'down', 'unknown', 1)",
        "INSERT INTO outbox (id, incident, kind, route, created, due) VALUES ('o1', 'i1', 'trigger', '[\"chat\"]', 1, 1)",
    ];
    for statement in schema.split(';').map(str::trim).filter(|statement| !statement.is_empty()).chain(rest) {
        connection.execute(sqlx::AssertSqlSafe(statement)).await.unwrap();
    }
    connection.close().await.unwrap();
}

pub(crate) async fn a_database_of_an_earlier_version_goes_on(address: String) {
    old(&address).await;
    for _ in 0..2 {
        let store = Store::open(&address).await.unwrap();
        let tokens = store.tokens().await.unwrap();
        let tokens: Vec<_> = tokens.iter().map(|token| (token.name.as_str(), token.role)).collect();
        assert_eq!(tokens, [("reader", Role::Viewer), ("writer", Role::Admin)], "who could write could do everything");
        let targets = store.targets().await.unwrap();
        assert_eq!(
            (targets[0].name.as_str(), targets[0].availability.word(), targets[0].tags.as_slice()),
            ("shop", "down", &["paid".to_owned()][..])
        );
        assert_eq!(store.incidents(Which::Open, None, 10).await.unwrap()[0].subject, "shop");
        assert_eq!(store.maintenance(START).await.unwrap()[0].name, "upgrade");
        assert!(store.oldest_unsent().await.unwrap().is_some());
    }
    assert_eq!(rows(&address, "SELECT CAST(version AS TEXT) FROM layout").await, [["9"]]);
    // What is new works there, too.
    let store = Store::open(&address).await.unwrap();
    let silence = Silence {
        names: vec!["*".into()],
        tags: Vec::new(),
        author: "ann".into(),
        reason: "moving".into(),
        starts: START,
        ends: START + MINUTE,
    };
    store.silence(&silence, START).await.unwrap();
    assert_eq!(store.silences(START).await.unwrap()[0].silence, silence);
    store.write_down(&AuditEvent { who: "ann", via: "login", action: "silence", subject: "" }, START).await.unwrap();
    store.push("shop", Said::Succeeded, "", START).await.unwrap();
    assert_eq!(store.pushed("shop").await.unwrap().succeeded, Some(START));
    let update = NoticeUpdate { at: START, author: "ann".into(), progress: Progress::Investigating, text: "slow".into() };
    let notice = store.post_notice("the shop is slow", &["shop".to_owned()], &update).await.unwrap();
    let update = NoticeUpdate { progress: Progress::Resolved, text: "it is quick again".into(), ..update };
    assert!(store.update_notice(&notice, &update).await.unwrap());
    let notices = store.notices(START + MINUTE).await.unwrap();
    assert_eq!((notices[0].title.as_str(), notices[0].updates.len(), notices[0].is_resolved()), ("the shop is slow", 2, true));
    assert!(store.notices(START + SHOWN + MINUTE).await.unwrap().is_empty(), "what was resolved two weeks ago is not shown");
    let wanted = SubscriptionRequest { medium: Medium::Mail, address: "ann@example.com", targets: &[], secret: &[] };
    store.request_subscription(&wanted, START).await.unwrap();
    assert_eq!(rows(&address, "SELECT kind FROM subscription_message").await, [["question"]]);
    store.end_login("cookie", START).await.unwrap();
    assert!(store.is_login_ended("cookie").await.unwrap());
    // A new database has the same tables as one that was brought up to date.
    let columns = |address: String| async move {
        let statement = match address.starts_with("sqlite") {
            true => {
                "SELECT m.name, p.name, p.type, CAST(p.\"notnull\" AS TEXT) FROM sqlite_master m JOIN pragma_table_info(m.name) p WHERE m.type = 'table' ORDER BY 1, 2"
            }
            false => {
                "SELECT CAST(table_name AS TEXT), CAST(column_name AS TEXT), CAST(data_type AS TEXT), CAST(is_nullable AS TEXT) FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2"
            }
        };
        rows(&address, statement).await
    };
    let new = match address.strip_prefix("sqlite:") {
        Some(path) => format!("sqlite:{path}-new"),
        None => crate::postgres::beside(&address, "layout_new").await,
    };
    drop(Store::open(&new).await.unwrap());
    assert_eq!(columns(address).await, columns(new).await);
}

/// The audit log of the version before had another word for what somebody did.
pub(crate) async fn a_database_of_the_version_before_keeps_its_audit_log(address: String) {
    let path = address.strip_prefix("sqlite:").map(str::to_owned);
    match &path {
        Some(path) => std::fs::write(path, FILE_OF_5).unwrap(),
        None => {
            drop(Store::open(&address).await.unwrap());
            let mut connection = AnyConnection::connect(&address).await.unwrap();
            for statement in [
                "DROP TABLE monitor_process",
                "ALTER TABLE outbox DROP COLUMN recipients",
                "ALTER TABLE outbox DROP COLUMN destination",
                "ALTER TABLE audit RENAME COLUMN action TO deed",
                "UPDATE layout SET version = 5",
                "INSERT INTO audit (id, at, who, via, deed, subject) VALUES ('a1', 1, 'ann', 'command line', 'mute', 'shop')",
                "INSERT INTO audit (id, at, who, via, deed, subject, outcome) \
                 VALUES ('a2', 2, 'ann', 'command line', 'acknowledge as ann', 'i1', 'done')",
            ] {
                connection.execute(statement).await.unwrap();
            }
            connection.close().await.unwrap();
        }
    }
    for _ in 0..2 {
        let store = Store::open(&address).await.unwrap();
        let entries = store.audit(None, 10).await.unwrap();
        let entries: Vec<_> = entries.iter().map(|entry| (entry.who.as_str(), entry.via.as_str(), entry.action.as_str())).collect();
        assert_eq!(entries, [("ann", "command line", "acknowledge as ann"), ("ann", "command line", "mute")]);
        if path.is_some() {
            let target = store.target("shop").await.unwrap().unwrap();
            assert!(target.availability.word() == "down" && target.muted_until.0 > 0, "{target:?}");
            assert_eq!(store.incidents(Which::Open, None, 10).await.unwrap()[0].acknowledged_by.as_deref(), Some("ann"));
        }
    }
    assert_eq!(rows(&address, "SELECT CAST(version AS TEXT) FROM layout").await, [["9"]]);
    let store = Store::open(&address).await.unwrap();
    let now = Moment(9_000_000_000_000);
    store.write_down(&AuditEvent { who: "bob", via: "login", action: "silence", subject: "" }, now).await.unwrap();
    assert_eq!(store.audit(None, 1).await.unwrap()[0].action, "silence");
}

pub(crate) async fn a_database_of_a_later_version_is_left_alone(address: String) {
    drop(Store::open(&address).await.unwrap());
    let mut connection = AnyConnection::connect(&address).await.unwrap();
    connection.execute("UPDATE layout SET version = 1000").await.unwrap();
    connection.close().await.unwrap();
    assert!(matches!(Store::open(&address).await, Err(StoreFailure::Newer(1000))));
}

/// Whoever waits for somebody's lock for ever says nothing.
pub(crate) async fn a_lock_of_another_program_is_named_with_what_to_do(address: String) {
    drop(Store::open(&address).await.unwrap());
    let mut other = AnyConnection::connect(&address).await.unwrap();
    let lock = match address.starts_with("sqlite:") {
        true => "BEGIN EXCLUSIVE",
        false => "BEGIN; LOCK TABLE layout IN ACCESS EXCLUSIVE MODE",
    };
    other.execute(lock).await.unwrap();
    let failure = Store::open(&address).await.unwrap_err();
    assert!(failure.to_string().starts_with("another program has locked "), "{failure}");
    assert!(failure.hint().is_some());
    other.execute("ROLLBACK").await.unwrap();
    drop(Store::open(&address).await.unwrap());
}

pub(crate) async fn a_read_only_database_is_named_with_what_to_do(address: String) {
    sqlx::any::install_default_drivers();
    let mut connection = AnyConnection::connect(&address).await.unwrap();
    let database = address.strip_prefix("postgres:///").unwrap().split('?').next().unwrap();
    let statement = format!("ALTER DATABASE {database} SET default_transaction_read_only = on");
    connection.execute(sqlx::AssertSqlSafe(statement)).await.unwrap();
    let failure = Store::open(&address).await.unwrap_err();
    assert!(failure.to_string().starts_with("the database is read-only: "), "{failure}");
    assert!(failure.hint().unwrap().contains("default_transaction_read_only"));
}

/// What is silenced is kept to oneself until that is over, and is told then.
pub(crate) async fn nobody_is_told_of_what_is_silenced_until_it_ends(address: String) {
    use mcproof_watch::config::{ChannelSpec, Config, Route, Secret};
    use mcproof_watch::state::Verdict;
    use mcproof_watch::store::incidents::tell_what_is_owed;
    let channel = ChannelSpec::Webhook { url: Secret::new("http://127.0.0.1:9/"), secret: None };
    let config = Config {
        channels: [("chat".to_owned(), channel)].into(),
        routes: vec![Route { channels: vec!["chat".into()], ..Route::default() }],
        ..config()
    };
    let targets = ["shop-eu", "shop-us", "other"].map(target);
    let store = store_of(&address, &targets).await;
    let silence = |names: &[&str], tags: &[&str]| Silence {
        names: names.iter().map(|&name| name.to_owned()).collect(),
        tags: tags.iter().map(|&tag| tag.to_owned()).collect(),
        author: "ann".into(),
        reason: "moving".into(),
        starts: START,
        ends: START + MINUTE * 10,
    };
    store.silence(&silence(&["shop-*"], &["team-?"]), START).await.unwrap();
    store.silence(&silence(&["other"], &["nobody-has-it"]), START).await.unwrap();
    let mut now = FIRST;
    for _ in 0..3 {
        let leases = lease(&store, "here", now).await;
        assert_eq!(leases.len(), 3);
        let finished: Vec<_> = leases.iter().map(|lease| finished(lease, Verdict::Down, now)).collect();
        store.commit(&finished, &config, now).await.unwrap();
        now = now + MINUTE / 4;
    }
    store.mute("shop-us", START + MINUTE * 90).await.unwrap();
    let quiet = store.quiet(&[], now).await.unwrap();
    let expected = [("shop-eu", "silenced", 10), ("shop-us", "muted", 90)];
    let told = |(name, how, minutes): (&str, &str, u32)| (name.to_owned(), format!("{how} until {}", START + MINUTE * minutes));
    assert_eq!(quiet, BTreeMap::from(expected.map(told)));
    let when = When::Once { from: START, until: START + MINUTE * 30 };
    let window = Window { name: "nightly".into(), targets: vec!["shop-eu".into()], tags: Vec::new(), when };
    let planned = store.quiet(&[window], now).await.unwrap();
    assert_eq!(planned["shop-eu"], format!("under maintenance until {}", START + MINUTE * 30));
    assert!(store.quiet(&[], START + MINUTE * 90).await.unwrap().is_empty());
    store.mute("shop-us", Moment(0)).await.unwrap();
    let told = || rows(&address, "SELECT incident.subject FROM outbox JOIN incident ON incident.id = outbox.incident ORDER BY 1");
    assert_eq!(rows(&address, "SELECT subject FROM incident ORDER BY 1").await, [["other"], ["shop-eu"], ["shop-us"]]);
    assert_eq!(told().await, [["other"]]);
    assert!(!tell_what_is_owed(&store, &config, START + MINUTE * 9).await.unwrap());
    assert!(tell_what_is_owed(&store, &config, Moment((START + MINUTE * 10).0)).await.unwrap());
    assert_eq!(told().await, [["other"], ["shop-eu"], ["shop-us"]]);
}
