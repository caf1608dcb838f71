//! Whether a target fails alone. Many that share a host, or a place that they are probed from, fail for one reason: that is one
//! incident, and one page.

use super::{Opening, ROWS, Scene, Subject, Turn};
use crate::incident::{Class, Detail, Severity};
use crate::moment::Moment;
use crate::store::Store;
use crate::store::values::Values;
use sqlx::{Any, Row as _, Transaction};
use std::collections::BTreeSet;

/// So many have to fail at once, and more than work.
const LEAST: i64 = 5;
/// Names that are told one by one.
const MOST_NAMES: usize = 50;
/// How many others are looked at when one fails.
const NEIGHBOURS: i64 = 8;
/// The attempt of a probe out of turn; it confirms nothing.
const OUT_OF_TURN: i64 = 9;

/// Of those that fail at once, what tells that others work.
#[derive(Clone, Copy)]
pub(super) enum Others {
    /// What works and was not looked at since says nothing.
    SeenSince,
    /// It has gone on for long enough for all of them to be seen.
    Known,
}

/// The storm that an incident of this target is a part of, opened if it just became one.
pub(super) async fn of(
    transaction: &mut Transaction<'_, Any>,
    scene: &Scene<'_>,
    region: &str,
    subject: &Subject,
    class: Class,
    others: Others,
) -> Result<Option<String>, sqlx::Error> {
    // What is expected to fail is nobody's storm.
    if subject.is_quiet || !matches!(class, Class::Availability | Class::Blind) {
        return Ok(None);
    }
    let names = [format!("host:{}", subject.host), format!("region:{region}")];
    for name in &names {
        if let Some(storm) = open_storm(transaction, name).await? {
            return Ok(Some(storm));
        }
    }
    let states: &[&str] = if class == Class::Blind { &["blind"] } else { &["suspect", "down"] };
    let since = match others {
        Others::SeenSince => scene.now - RECENT,
        Others::Known => Moment(0),
    };
    for (name, place) in names.iter().zip([Place::Host(&subject.host), Place::Region(region)]) {
        let failing = failing(transaction, scene, place, states).await?;
        let hosts = failing.iter().map(|(_, host)| host).collect::<BTreeSet<_>>().len();
        let is_wide = matches!(place, Place::Host(_)) || hosts > 1;
        let count = i64::try_from(failing.len()).unwrap_or(i64::MAX);
        if count < LEAST || !is_wide || count <= working(transaction, place, since).await? {
            continue;
        }
        let members: Vec<String> = failing.into_iter().map(|(name, _)| name).take(MOST_NAMES).collect();
        let what = if class == Class::Blind { "are not seen any more" } else { "fail at once" };
        let (title, hint) = match place {
            Place::Host(host) => (format!("{count} targets on {host} {what}"), format!("look at {host}, not at the single servers")),
            Place::Region(region) => {
                (format!("{count} targets on {hosts} hosts {what}, probed from {region}"), format!("look at the network of {region} first"))
            }
        };
        let detail = Detail { message: title.clone(), hint: Some(hint), members, ..Detail::default() };
        let (severity, since) = (Severity::Page, scene.now);
        let opening =
            Opening { subject: name, class: Class::Storm, severity, title: &title, detail: &detail, since, parent: None, evidence: None };
        if let Some(storm) = scene.open(transaction, &opening).await? {
            if let Some(route) = scene.route(severity, &subject.tags) {
                scene.send(transaction, &storm, "trigger", &route).await?;
            }
            return Ok(Some(storm));
        }
    }
    Ok(None)
}

/// What has become of a storm since it was opened: who of it still fails, and how many work again.
pub(in crate::store) async fn left_of(store: &Store, storm: &str, members: &[String]) -> Result<(Vec<String>, usize), sqlx::Error> {
    let joined: Vec<String> =
        sqlx::query_scalar("SELECT DISTINCT subject FROM incident WHERE parent = $1").bind(storm).fetch_all(&store.pool).await?;
    let all: BTreeSet<&str> = members.iter().chain(&joined).map(String::as_str).collect();
    let statement = "SELECT name FROM target WHERE name IN (VALUES {}) AND removed IS NULL \
         AND availability NOT IN ('ok', 'unknown') ORDER BY name";
    let mut failing = Vec::new();
    for some in all.iter().copied().collect::<Vec<_>>().chunks(ROWS) {
        let rows = Values::names(store.dialect, some.iter().copied()).query(statement).fetch_all(&store.pool).await?;
        for row in rows {
            failing.push(row.try_get("name")?);
        }
    }
    let recovered = all.len() - failing.len();
    Ok((failing, recovered))
}

/// What targets may have in common.
#[derive(Clone, Copy)]
enum Place<'a> {
    Host(&'a str),
    Region(&'a str),
}

impl Place<'_> {
    fn condition(self) -> &'static str {
        match self {
            Self::Host(_) => "target.host = $1",
            Self::Region(_) => "EXISTS (SELECT 1 FROM schedule WHERE schedule.target = target.name AND schedule.region = $1)",
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Host(name) | Self::Region(name) => name,
        }
    }
}

async fn open_storm(transaction: &mut Transaction<'_, Any>, subject: &str) -> Result<Option<String>, sqlx::Error> {
    let query = sqlx::query_scalar("SELECT id FROM incident WHERE subject = $1 AND class = 'storm' AND resolved IS NULL");
    query.bind(subject).fetch_optional(&mut **transaction).await
}

/// Names and hosts of those that fail, and that nobody expects to.
async fn failing(
    transaction: &mut Transaction<'_, Any>,
    scene: &Scene<'_>,
    place: Place<'_>,
    states: &[&str],
) -> Result<Vec<(String, String)>, sqlx::Error> {
    let states: Vec<String> = states.iter().map(|state| format!("'{state}'")).collect();
    let statement = format!(
        "SELECT name, host, tags, muted_until FROM target WHERE availability IN ({}) AND removed IS NULL AND {} ORDER BY name",
        states.join(", "),
        place.condition()
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(statement)).bind(place.name()).fetch_all(&mut **transaction).await?;
    let mut failing = Vec::new();
    for row in rows {
        let name: String = row.try_get("name")?;
        let subject = scene.read_subject(&name, &row)?;
        if !subject.is_quiet {
            failing.push((name, subject.host));
        }
    }
    Ok(failing)
}

/// How many worked when they were last looked at, and that was not before.
async fn working(transaction: &mut Transaction<'_, Any>, place: Place<'_>, since: Moment) -> Result<i64, sqlx::Error> {
    let statement = format!(
        "SELECT count(*) FROM target WHERE availability IN ('ok', 'recovering') AND last_result >= $2 AND removed IS NULL AND {}",
        place.condition()
    );
    sqlx::query_scalar(sqlx::AssertSqlSafe(statement)).bind(place.name()).bind(since.0).fetch_one(&mut **transaction).await
}

/// The time in which one failure is confirmed.
const RECENT: std::time::Duration = std::time::Duration::from_secs(20);

/// Brings forward the probes of some that share a host with a target that began to fail, and of some others, as long as it is
/// not known whether this is a storm. Their slots stay what they are.
pub(super) async fn ask_neighbours(
    transaction: &mut Transaction<'_, Any>,
    scene: &Scene<'_>,
    turn: &Turn,
    subject: &Subject,
) -> Result<(), sqlx::Error> {
    for (place, condition) in [(Place::Host(&subject.host), "host = $2"), (Place::Region(&turn.region), "host <> $2")] {
        let failing = failing(transaction, scene, place, &["suspect", "down"]).await?;
        if i64::try_from(failing.len()).is_ok_and(|count| count > LEAST) {
            continue;
        }
        let statement = format!(
            "UPDATE schedule SET slot = slot - (SELECT every FROM target WHERE target.name = schedule.target), attempt = $5, due = $3 \
             WHERE region = $4 AND attempt = 0 AND lease_until < $3 AND slot > $3 AND target IN (\
             SELECT name FROM target WHERE {condition} AND name <> $1 AND removed IS NULL AND availability = 'ok' \
             AND last_result < $6 ORDER BY last_result LIMIT {NEIGHBOURS})"
        );
        sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(&turn.target)
            .bind(&subject.host)
            .bind(scene.now.0)
            .bind(&turn.region)
            .bind(OUT_OF_TURN)
            .bind((scene.now - RECENT).0)
            .execute(&mut **transaction)
            .await?;
    }
    Ok(())
}
