//! Whether a target fails alone. Many that share a host, or a place that they are probed from, fail for one reason: that is one
//! incident, and one page.

use super::group::first_of;
use super::{CHANGED, IncidentContext, Opening, ROWS, Subject, Turn, UnsentIncident, dependency};
use crate::config::Config;
use crate::incident::{Class, Detail, Severity};
use crate::maintenance;
use crate::moment::{Moment, millis};
use crate::store::Store;
use crate::store::schedule::{JOBS, THIS_MACHINE, before_its_turn};
use crate::store::values::Values;
use sqlx::{Any, Row as _, Transaction};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use uuid::ContextV7;

/// Severity.
const SEVERITY: Severity = Severity::Page;
/// What begins so much later than a storm is no part of it, or an interval where targets are probed less often. And so long after
/// one of its targets works again, the others are waited for.
const WITHIN: Duration = Duration::from_secs(300);
/// Names that are told one by one.
const MOST_NAMES: usize = 50;
/// How many others are looked at when one fails.
const NEIGHBOURS: i64 = 8;
/// The attempt of a probe out of turn; it confirms nothing.
pub(super) const OUT_OF_TURN: i64 = 9;

/// Of those that fail at once, what tells that others work.
#[derive(Clone, Copy)]
pub(super) enum Others {
    /// What works and was not looked at since says nothing.
    SeenSince,
    /// It has gone on for long enough for all of them to be seen.
    Known,
}

/// What goes wrong with a target, as far as it may be a part of a storm.
pub(super) struct Failure<'a> {
    pub(super) region: &'a str,
    pub(super) class: Class,
    /// When the first sign of it was seen.
    pub(super) since: Moment,
}

/// The storm that an incident of this target is a part of, opened if it just became one. Of a storm that is open only what began
/// with it is a part, and only while there still is one.
pub(super) async fn of(
    transaction: &mut Transaction<'_, Any>,
    context: &IncidentContext<'_>,
    subject: &Subject,
    failure: &Failure<'_>,
    others: Others,
) -> Result<Option<String>, sqlx::Error> {
    let Failure { region, class, .. } = *failure;
    // What is expected to fail is nobody's storm.
    if subject.is_quiet || !matches!(class, Class::Availability | Class::Blind) {
        return Ok(None);
    }
    let states: &[&str] = if class == Class::Blind { &["blind"] } else { &["suspect", "down"] };
    let (began, working_since) = match others {
        Others::SeenSince => (context.now, context.now - RECENT),
        Others::Known => (Moment(0), Moment(0)),
    };
    // What is not seen any more has begun when that was noticed; so has what was seen before the clock was set back.
    let since = if class == Class::Blind { context.now } else { failure.since.min(context.now) };
    let places = [Place::Host(&subject.host), Place::Region(region)];
    for place in places {
        let Some(OpenStorm { id: storm, opened, acknowledged }) = open_storm(transaction, &place.subject()).await? else { continue };
        if is_known_without(acknowledged, since, others) {
            continue;
        }
        let wave = failing(transaction, context, place, states, opened).await?;
        let is_part = since <= opened + subject.every.max(WITHIN);
        if is_part && is_storm(transaction, context, place, &wave, working_since).await? {
            tell_routes(transaction, context, &storm, std::slice::from_ref(&subject.tags)).await?;
            return Ok(Some(storm));
        }
    }
    for place in places {
        let mut wave = failing(transaction, context, place, states, began).await?;
        let open = open_storm(transaction, &place.subject()).await?;
        let is_earlier = |opened: Moment| since > opened + subject.every.max(WITHIN);
        let is_known = |storm: &OpenStorm| is_known_without(storm.acknowledged, since, others);
        let older = open.as_ref().filter(|storm| is_known(storm) || is_earlier(storm.opened)).map(|storm| storm.id.as_str());
        let parts = match older {
            Some(older) => parts(transaction, context, older).await?,
            None => Vec::new(),
        };
        // What is known to fail since then is no part of another wave.
        if !parts.is_empty() {
            wave = Arc::new(wave.without(&parts));
        }
        if !is_storm(transaction, context, place, &wave, working_since).await? {
            continue;
        }
        let mut tags: Vec<Vec<String>> = wave.targets.iter().map(|(_, subject)| subject.tags.clone()).collect();
        if let (Some(OpenStorm { id: storm, .. }), None) = (&open, older) {
            tell_routes(transaction, context, storm, &tags).await?;
            return Ok(Some(storm.clone()));
        }
        if let Some(older) = older {
            context
                .end_storm(transaction, older, "more targets fail at once: another storm, which includes what is left of this one")
                .await?;
            tags.extend(parts.iter().map(|(_, subject)| subject.tags.clone()));
        }
        let (count, hosts) = (wave.targets.len(), wave.hosts);
        let members: Vec<String> = wave.targets.iter().map(|(name, _)| name.clone()).take(MOST_NAMES).collect();
        let what = if class == Class::Blind { "are not seen any more" } else { "fail at once" };
        let (title, hint) = match place {
            Place::Host(JOBS) => {
                (format!("{count} jobs {what}"), "check first whether jobs can reach this monitor, and what they have in common".to_owned())
            }
            Place::Host(THIS_MACHINE) => {
                let hint = "check this machine before the single servers: its memory, its disk, its load";
                (format!("{count} targets on the machine of the monitor {what}"), hint.to_owned())
            }
            Place::Host(host) => (format!("{count} targets on {host} {what}"), format!("check {host} before the single servers")),
            Place::Region(region) => {
                (format!("{count} targets on {hosts} hosts {what}, probed from {region}"), format!("check the network of {region} first"))
            }
        };
        let detail = Detail { message: title.clone(), hint: Some(hint), members, ..Detail::default() };
        let (name, since) = (place.subject(), context.now);
        let opening = Opening {
            subject: &name,
            class: Class::Storm,
            severity: SEVERITY,
            title: &title,
            detail: &detail,
            since,
            parent: None,
            evidence: None,
        };
        if let Some(storm) = context.open(transaction, &opening).await? {
            if let Some(older) = older {
                context.adopt(transaction, older, &storm).await?;
            }
            tell_routes(transaction, context, &storm, &tags).await?;
            return Ok(Some(storm));
        }
    }
    Ok(None)
}

/// Who has acknowledged a storm knows of what had begun then, unless nobody was told of that until now.
fn is_known_without(acknowledged: Option<Moment>, since: Moment, others: Others) -> bool {
    match others {
        Others::SeenSince => acknowledged.is_some_and(|acknowledged| since > acknowledged),
        Others::Known => acknowledged.is_some(),
    }
}

/// All that are open.
pub(super) async fn open(transaction: &mut Transaction<'_, Any>) -> Result<BTreeSet<String>, sqlx::Error> {
    let statement = "SELECT id FROM incident WHERE class = 'storm' AND resolved IS NULL";
    let open: Vec<String> = sqlx::query_scalar(statement).fetch_all(&mut **transaction).await?;
    Ok(open.into_iter().collect())
}

/// Of these parts of a storm nobody was told until now, because they were muted, silenced or under maintenance: the storm names them, and
/// whoever of their routes was told of it before is told again. Those whose routes were not are told of the whole storm.
pub(super) async fn tell_of_more(
    transaction: &mut Transaction<'_, Any>,
    context: &IncidentContext<'_>,
    storm: &str,
    targets: &[(String, Subject)],
) -> Result<(), sqlx::Error> {
    let query = sqlx::query_as("SELECT title, detail FROM incident WHERE id = $1 AND resolved IS NULL").bind(storm);
    let known: Option<(String, String)> = query.fetch_optional(&mut **transaction).await?;
    let Some((title, detail)) = known else { return Ok(()) };
    let mut detail: Detail = serde_json::from_str(&detail).unwrap_or_default();
    let is_new = |name: &&str| !detail.members.iter().any(|known| known == name);
    let mut names: Vec<&str> = targets.iter().map(|(name, _)| name.as_str()).filter(is_new).collect();
    names.sort_unstable();
    if names.is_empty() {
        return Ok(());
    }
    let rest = names.len().saturating_sub(MOST_NAMES);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let fail = if names.len() == 1 { "fails" } else { "fail" };
    let text = format!("{}{more} {fail} as well, of which no alert was sent before", names[..names.len() - rest].join(", "));
    detail.message = format!("{title}; {text}");
    detail.members = names.iter().map(|name| (*name).to_owned()).chain(std::mem::take(&mut detail.members)).take(MOST_NAMES).collect();
    detail.members.sort();
    let query = sqlx::query("UPDATE incident SET detail = $1 WHERE id = $2");
    let detail = serde_json::to_string(&detail).expect("a detail has text keys only");
    query.bind(detail).bind(storm).execute(&mut **transaction).await?;
    context.note(transaction, storm, CHANGED, &text).await?;
    // What was written just now is sent with what stands there now.
    let statement = "SELECT route FROM outbox WHERE incident = $1 AND kind = 'trigger' AND recipients IS NULL AND created < $2 ORDER BY id";
    let told: Vec<String> = sqlx::query_scalar(statement).bind(storm).bind(context.now.0).fetch_all(&mut **transaction).await?;
    let told: BTreeSet<String> = told.iter().filter_map(|route| first_of(route)).collect();
    let mut again = BTreeSet::new();
    for route in targets.iter().filter_map(|(_, subject)| context.route(SEVERITY, &subject.tags)) {
        if first_of(&route).is_some_and(|channel| told.contains(&channel) && again.insert(channel)) {
            context.send(transaction, storm, "update", &route).await?;
        }
    }
    Ok(())
}

/// Storms of which nobody was told: they began outside the hours of their routes.
pub(super) async fn unannounced(transaction: &mut Transaction<'_, Any>) -> Result<Vec<String>, sqlx::Error> {
    let statement = "SELECT id FROM incident WHERE class = 'storm' AND resolved IS NULL AND acknowledged IS NULL \
         AND NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.incident = incident.id) ORDER BY id";
    sqlx::query_scalar(statement).fetch_all(&mut **transaction).await
}

/// Tells the routes that are open now. False if there are none.
pub(super) async fn tell(transaction: &mut Transaction<'_, Any>, context: &IncidentContext<'_>, storm: &str) -> Result<bool, sqlx::Error> {
    let parts = parts(transaction, context, storm).await?;
    let tags: Vec<Vec<String>> = parts.into_iter().filter(|(_, subject)| !subject.is_quiet).map(|(_, subject)| subject.tags).collect();
    if !tags.iter().any(|tags| context.route(SEVERITY, tags).is_some()) {
        return Ok(false);
    }
    tell_routes(transaction, context, storm, &tags).await?;
    Ok(true)
}

/// Of this storm, those that still fail.
async fn parts(
    transaction: &mut Transaction<'_, Any>,
    context: &IncidentContext<'_>,
    storm: &str,
) -> Result<Vec<(String, Subject)>, sqlx::Error> {
    let statement = "SELECT target.name, target.host, target.tags, target.every, target.muted_until \
         FROM incident JOIN target ON target.name = incident.subject WHERE incident.parent = $1 AND incident.resolved IS NULL";
    let rows = sqlx::query(statement).bind(storm).fetch_all(&mut **transaction).await?;
    let mut parts = Vec::new();
    for row in rows {
        let name: String = row.try_get("name")?;
        let subject = context.read_subject(&name, &row)?;
        parts.push((name, subject));
    }
    Ok(parts)
}

/// Tells everybody who is to be told of one of these members, and was not told yet. Routes that begin with the same channel reach
/// the same people.
async fn tell_routes(
    transaction: &mut Transaction<'_, Any>,
    context: &IncidentContext<'_>,
    storm: &str,
    members: &[Vec<String>],
) -> Result<(), sqlx::Error> {
    let statement = "SELECT route FROM outbox WHERE incident = $1 AND kind = 'trigger' AND recipients IS NULL";
    let told: Vec<String> = sqlx::query_scalar(statement).bind(storm).fetch_all(&mut **transaction).await?;
    let mut told: BTreeSet<String> = told.iter().filter_map(|route| first_of(route)).collect();
    for route in members.iter().filter_map(|tags| context.route(SEVERITY, tags)) {
        if first_of(&route).is_some_and(|channel| told.insert(channel)) {
            context.send(transaction, storm, "trigger", &route).await?;
        }
    }
    Ok(())
}

/// Targets that fail at once.
#[derive(Default)]
struct Wave {
    targets: Vec<(String, Subject)>,
    hosts: usize,
}

impl Wave {
    fn of(targets: Vec<(String, Subject)>) -> Self {
        let hosts = targets.iter().map(|(_, subject)| subject.host.as_str()).collect::<BTreeSet<_>>().len();
        Self { targets, hosts }
    }

    /// Those that are no part of what is known already.
    fn without(&self, parts: &[(String, Subject)]) -> Self {
        let parts: BTreeSet<&str> = parts.iter().map(|(name, _)| name.as_str()).collect();
        Self::of(self.targets.iter().filter(|(name, _)| !parts.contains(name.as_str())).cloned().collect())
    }
}

/// What was read of the other targets in one transaction, so that many that fail at once do not each read all of them. It stays what it
/// is because states are written before anything follows from them.
#[derive(Default)]
pub(super) struct Seen(Mutex<OthersSeen>);

#[derive(Default)]
struct OthersSeen {
    /// By the place, the states and the time.
    failing: BTreeMap<(String, String, Moment), Arc<Wave>>,
    working: BTreeMap<(String, Moment), i64>,
}

impl Seen {
    fn lock(&self) -> MutexGuard<'_, OthersSeen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether so many fail, and more than work, that there is one reason for it.
async fn is_storm(
    transaction: &mut Transaction<'_, Any>,
    context: &IncidentContext<'_>,
    place: Place<'_>,
    wave: &Wave,
    working_since: Moment,
) -> Result<bool, sqlx::Error> {
    let is_wide = matches!(place, Place::Host(_)) || wave.hosts > 1;
    let count = i64::try_from(wave.targets.len()).unwrap_or(i64::MAX);
    Ok(count >= i64::from(context.config.storm) && is_wide && count > working(transaction, context, place, working_since).await?)
}

/// Ends storms of which only a few targets are left that were looked at since the others work again: those are told on their own.
/// True if there were any.
///
/// # Errors
/// The database refused.
pub async fn end_storms(store: &Store, config: &Config, now: Moment) -> Result<bool, sqlx::Error> {
    let statement = "SELECT id, opened FROM incident WHERE class = 'storm' AND resolved IS NULL ORDER BY id";
    // Whoever only reads does not wait for those who write.
    let storms: Vec<(String, i64)> = sqlx::query_as(statement).fetch_all(&store.pool).await?;
    if storms.is_empty() {
        return Ok(false);
    }
    let mut transaction = store.begin().await?;
    let planned = maintenance::announced(&mut transaction, now).await?;
    let context = IncidentContext { config, now, ids: Mutex::new(ContextV7::new()), planned, seen: Seen::default() };
    let mut is_any = false;
    for (storm, opened) in &storms {
        let statement = "SELECT MAX(resolved) FROM incident WHERE parent = $1";
        let ended: Option<i64> = sqlx::query_scalar(statement).bind(storm).fetch_one(&mut *transaction).await?;
        // Those that were about to be a part of it may have worked again before they were.
        let ended = Moment(ended.unwrap_or(*opened));
        if ended + WITHIN > now {
            continue;
        }
        let statement = "SELECT incident.id, incident.subject, incident.class, incident.severity, incident.since, incident.opened, \
             target.host, target.tags, target.every, target.muted_until, target.last_result \
             FROM incident JOIN target ON target.name = incident.subject WHERE incident.parent = $1 AND incident.resolved IS NULL";
        let rows = sqlx::query(statement).bind(storm).fetch_all(&mut *transaction).await?;
        let mut parts = Vec::new();
        let mut is_open = false;
        for row in &rows {
            let name: String = row.try_get("subject")?;
            // What is not seen any more is not looked at again either.
            let is_blind = row.try_get::<String, _>("class")? == Class::Blind.word();
            is_open |= !is_blind && Moment(row.try_get("last_result")?) < ended;
            let subject = context.read_subject(&name, row)?;
            parts.push((name, subject));
        }
        // However many others work: each of those that are left would be told of on its own.
        if is_open || i64::try_from(parts.len()).is_ok_and(|left| left >= i64::from(config.storm)) {
            continue;
        }
        is_any = true;
        let reason = format!("{} of its targets still fail and are alerted separately", parts.len());
        if !context.end_storm(&mut transaction, storm, &reason).await? {
            continue;
        }
        for (row, (name, subject)) in rows.iter().zip(&parts) {
            let id: String = row.try_get("id")?;
            let severity = Severity::of_word(&row.try_get::<String, _>("severity")?).unwrap_or(SEVERITY);
            let class = Class::of_word(&row.try_get::<String, _>("class")?).unwrap_or(Class::Availability);
            let (since, opened) = (Moment(row.try_get("since")?), Moment(row.try_get("opened")?));
            sqlx::query("UPDATE incident SET parent = NULL WHERE id = $1").bind(&id).execute(&mut *transaction).await?;
            context.note(&mut transaction, &id, "outlasted", "the storm that it was a part of is over").await?;
            // Who is told of nothing now is told afterwards.
            if !subject.is_quiet {
                let unsent = UnsentIncident { id: &id, target: name, class, severity, since, opened };
                context.tell(&mut transaction, &unsent, subject).await?;
            }
        }
    }
    transaction.commit().await?;
    Ok(is_any)
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

const HOST: &str = "host:";
const REGION: &str = "region:";

impl<'a> Place<'a> {
    fn condition(self) -> &'static str {
        match self {
            Self::Host(_) => "target.host = $1",
            Self::Region(_) => "EXISTS (SELECT 1 FROM schedule WHERE schedule.target = target.name AND schedule.region = $1)",
        }
    }

    /// As incidents name it.
    fn subject(&self) -> String {
        match self {
            Self::Host(name) => format!("{HOST}{name}"),
            Self::Region(name) => format!("{REGION}{name}"),
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Host(name) | Self::Region(name) => name,
        }
    }
}

struct OpenStorm {
    id: String,
    opened: Moment,
    acknowledged: Option<Moment>,
}

async fn open_storm(transaction: &mut Transaction<'_, Any>, subject: &str) -> Result<Option<OpenStorm>, sqlx::Error> {
    let query = sqlx::query_as("SELECT id, opened, acknowledged FROM incident WHERE subject = $1 AND class = 'storm' AND resolved IS NULL");
    let open: Option<(String, i64, Option<i64>)> = query.bind(subject).fetch_optional(&mut **transaction).await?;
    Ok(open.map(|(id, opened, acknowledged)| OpenStorm { id, opened: Moment(opened), acknowledged: acknowledged.map(Moment) }))
}

/// Those that fail, that nobody expects to, and that did not begin long before `began`.
async fn failing(
    transaction: &mut Transaction<'_, Any>,
    context: &IncidentContext<'_>,
    place: Place<'_>,
    states: &[&str],
    began: Moment,
) -> Result<Arc<Wave>, sqlx::Error> {
    let key = (place.subject(), states.join(" "), began);
    if let Some(wave) = context.seen.lock().failing.get(&key) {
        return Ok(Arc::clone(wave));
    }
    let wave = Arc::new(Wave::of(read_failing(transaction, context, place, states, began).await?));
    context.seen.lock().failing.insert(key, Arc::clone(&wave));
    Ok(wave)
}

async fn read_failing(
    transaction: &mut Transaction<'_, Any>,
    context: &IncidentContext<'_>,
    place: Place<'_>,
    states: &[&str],
    began: Moment,
) -> Result<Vec<(String, Subject)>, sqlx::Error> {
    let states: Vec<String> = states.iter().map(|state| format!("'{state}'")).collect();
    let within = millis(WITHIN);
    let statement = format!(
        "SELECT name, host, tags, every, muted_until FROM target WHERE availability IN ({}) AND removed IS NULL AND {} \
         AND since + CASE WHEN every > {within} THEN every ELSE {within} END >= $2 ORDER BY name",
        states.join(", "),
        place.condition()
    );
    let query = sqlx::query(sqlx::AssertSqlSafe(statement)).bind(place.name()).bind(began.0);
    let rows = query.fetch_all(&mut **transaction).await?;
    let mut failing = Vec::new();
    for row in rows {
        let name: String = row.try_get("name")?;
        let subject = context.read_subject(&name, &row)?;
        if !subject.is_quiet {
            failing.push((name, subject));
        }
    }
    Ok(failing)
}

/// How many worked when they were last looked at, and that was not before.
async fn working(
    transaction: &mut Transaction<'_, Any>,
    context: &IncidentContext<'_>,
    place: Place<'_>,
    since: Moment,
) -> Result<i64, sqlx::Error> {
    let key = (place.subject(), since);
    if let Some(count) = context.seen.lock().working.get(&key) {
        return Ok(*count);
    }
    let statement = format!(
        "SELECT count(*) FROM target WHERE availability IN ('ok', 'recovering') AND last_result >= $2 AND removed IS NULL AND {}",
        place.condition()
    );
    let query = sqlx::query_scalar(sqlx::AssertSqlSafe(statement)).bind(place.name()).bind(since.0);
    let count: i64 = query.fetch_one(&mut **transaction).await?;
    context.seen.lock().working.insert(key, count);
    Ok(count)
}

/// The time in which one failure is confirmed.
const RECENT: Duration = Duration::from_secs(20);

/// Brings forward the probes of some that share a host with a target that began to fail, and of some others, as long as it is
/// not known whether this is a storm. Their slots stay what they are.
pub(super) async fn ask_neighbours(
    transaction: &mut Transaction<'_, Any>,
    context: &IncidentContext<'_>,
    turn: &Turn,
    subject: &Subject,
) -> Result<(), sqlx::Error> {
    dependency::ask(transaction, context, &turn.target).await?;
    for (place, condition) in [(Place::Host(&subject.host), "host = $2"), (Place::Region(&turn.region), "host <> $2")] {
        let wave = failing(transaction, context, place, &["suspect", "down"], context.now).await?;
        if i64::try_from(wave.targets.len()).is_ok_and(|count| count > i64::from(context.config.storm)) {
            continue;
        }
        let statement = format!(
            "UPDATE schedule SET slot = (SELECT {} FROM target WHERE target.name = schedule.target), attempt = $5, due = $3 \
             WHERE region = $4 AND attempt = 0 AND lease_until < $3 AND slot > $3 AND target IN (\
             SELECT name FROM target WHERE {condition} AND name <> $1 AND removed IS NULL AND availability = 'ok' \
             AND last_result < $6 ORDER BY last_result LIMIT {NEIGHBOURS})",
            before_its_turn("schedule.slot", "target")
        );
        sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(&turn.target)
            .bind(&subject.host)
            .bind(context.now.0)
            .bind(&turn.region)
            .bind(OUT_OF_TURN)
            .bind((context.now - RECENT).0)
            .execute(&mut **transaction)
            .await?;
    }
    Ok(())
}
