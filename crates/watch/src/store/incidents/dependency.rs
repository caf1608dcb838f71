//! What is down because something else is that it depends on: nobody is told of it as long as that is open, and it is told if it
//! outlasts that. The incident of the other one is its parent. Decided from rows each time, so that a restart changes nothing; what is
//! not clear yet is waited for, but never for ever.

use super::{IncidentContext, UnsentIncident};
use crate::config::Dependencies;
use crate::incident::{Class, Detail, Severity};
use crate::moment::Moment;
use crate::state::{Availability, Thresholds};
use crate::store::schedule::before_its_turn;
use crate::store::values::Values;
use crate::store::{BLIND_AFTER, Dialect};
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};
use std::collections::BTreeSet;
use std::time::Duration;

/// Why something does not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// For reasons of its own.
    None,
    /// What it depends on is being looked at.
    Unknown,
    /// This target is down.
    Incident { id: String, target: String },
}

/// For the probe of a target that was added through the API, and for its result to be written.
const PATIENCE: Duration = Duration::from_secs(30);
/// A result may be so much later than its interval says.
const GRACE: Duration = Duration::from_secs(60);
/// What explains something may itself be explained by something else, a storm or a group. Longer chains were made by nobody.
const LONGEST_CHAIN: usize = 16;

/// Whether the failure of something else explains it. A changed contract and a certificate have reasons of their own, and that nothing
/// is known says nothing.
fn is_explained(class: Class) -> bool {
    matches!(class, Class::Availability | Class::Partial | Class::Flapping | Class::Latency | Class::Objective)
}

/// Why a target does not work, as far as that can be known now.
pub(super) async fn of(
    transaction: &mut Transaction<'_, Any>,
    context: &IncidentContext<'_>,
    unsent: &UnsentIncident<'_>,
) -> Result<Cause, sqlx::Error> {
    let names = match context.config.targets.get(unsent.target) {
        Some(spec) if is_explained(unsent.class) => names(transaction, unsent.target, &spec.depends_on).await?,
        _ => return Ok(Cause::None),
    };
    if names.is_empty() {
        return Ok(Cause::None);
    }
    let statement = "SELECT target.name, target.availability, target.last_result, incident.id FROM target \
         LEFT JOIN incident ON incident.subject = target.name AND incident.resolved IS NULL AND incident.class IN ('availability', 'flapping') \
         WHERE target.name IN (VALUES {}) AND target.removed IS NULL ORDER BY target.name, incident.id";
    let dialect = Dialect::of(transaction);
    let rows = Values::names(dialect, names.iter().map(String::as_str)).query(statement).fetch_all(&mut **transaction).await?;
    let mut cause = Cause::None;
    for row in &rows {
        let target: String = row.try_get("name")?;
        if let Some(id) = row.try_get::<Option<String>, _>("id")? {
            if is_anybodys(transaction, context, &id, unsent.id).await? {
                return Ok(Cause::Incident { id, target });
            }
            continue;
        }
        let is_being_looked_at = match Availability::of_word(&row.try_get::<String, _>("availability")?) {
            Some(Availability::Suspect) => true,
            Some(Availability::Ok) => Moment(row.try_get("last_result")?) < unsent.since,
            _ => false,
        };
        if is_being_looked_at && context.now < unsent.opened + patience(context, &target) {
            cause = Cause::Unknown;
        }
    }
    Ok(cause)
}

/// For what fails at the same time to be confirmed.
fn patience(context: &IncidentContext<'_>, target: &str) -> Duration {
    let spec = context.config.targets.get(target);
    let usual = Thresholds::default();
    let confirmations = spec.map_or(&usual.confirmations, |spec| &spec.thresholds.confirmations);
    confirmations.last().copied().unwrap_or_default() + spec.map_or(PATIENCE, |spec| spec.deadline()) + PATIENCE
}

async fn names(transaction: &mut Transaction<'_, Any>, target: &str, all: &Dependencies) -> Result<BTreeSet<String>, sqlx::Error> {
    let mut names = all.names.clone();
    if !all.tags.is_empty() {
        let statement = "SELECT name, tags FROM target WHERE source = 'api' AND removed IS NULL";
        let found: Vec<(String, String)> = sqlx::query_as(statement).fetch_all(&mut **transaction).await?;
        let has_one =
            |tags: &str| serde_json::from_str::<Vec<String>>(tags).is_ok_and(|tags| tags.iter().any(|tag| all.tags.contains(tag)));
        names.extend(found.into_iter().filter(|(name, tags)| name != target && has_one(tags)).map(|(name, _)| name));
    }
    Ok(names)
}

/// Whether somebody is told of an incident, or of what it is a part of, or is deliberately told of nothing. What is told to nobody
/// explains nothing: else nobody would ever be told.
async fn is_anybodys(
    transaction: &mut Transaction<'_, Any>,
    context: &IncidentContext<'_>,
    incident: &str,
    own: &str,
) -> Result<bool, sqlx::Error> {
    let mut at = incident.to_owned();
    for _ in 0..LONGEST_CHAIN {
        // A configuration that was turned round: each would wait for the other one.
        if at == own {
            return Ok(false);
        }
        let statement = "SELECT incident.subject, incident.severity, target.host, target.tags, target.every, target.muted_until, \
             (SELECT COUNT(*) FROM outbox WHERE outbox.incident = incident.id) AS told, \
             (SELECT whole.id FROM incident whole WHERE whole.id = incident.parent AND whole.resolved IS NULL) AS whole \
             FROM incident LEFT JOIN target ON target.name = incident.subject WHERE incident.id = $1";
        let Some(row) = sqlx::query(statement).bind(&at).fetch_optional(&mut **transaction).await? else { return Ok(false) };
        if row.try_get::<i64, _>("told")? > 0 {
            return Ok(true);
        }
        if let Some(whole) = row.try_get::<Option<String>, _>("whole")? {
            at = whole;
            continue;
        }
        if row.try_get::<Option<String>, _>("host")?.is_none() {
            return Ok(false);
        }
        let subject = context.read_subject(&row.try_get::<String, _>("subject")?, &row)?;
        let severity = Severity::of_word(&row.try_get::<String, _>("severity")?).unwrap_or(Severity::Page);
        return Ok(subject.is_quiet || context.route(severity, &subject.tags).is_some());
    }
    Ok(false)
}

/// Nobody is told of an incident as long as this other one is open.
pub(super) async fn hold(
    transaction: &mut Transaction<'_, Any>,
    context: &IncidentContext<'_>,
    incident: &str,
    cause: &str,
    target: &str,
) -> Result<(), sqlx::Error> {
    let statement = "SELECT detail, parent FROM incident WHERE id = $1";
    let row = sqlx::query(statement).bind(incident).fetch_one(&mut **transaction).await?;
    if row.try_get::<Option<String>, _>("parent")?.as_deref() == Some(cause) {
        return Ok(());
    }
    explain(transaction, incident, Some(cause), &row, Some(target)).await?;
    context.note(transaction, incident, "suppressed", &format!("alerts are held while {target}, which it depends on, is down")).await
}

async fn explain(
    transaction: &mut Transaction<'_, Any>,
    incident: &str,
    parent: Option<&str>,
    row: &AnyRow,
    target: Option<&str>,
) -> Result<(), sqlx::Error> {
    let mut detail: Detail = serde_json::from_str(&row.try_get::<String, _>("detail")?).unwrap_or_default();
    detail.because_of = target.map(str::to_owned);
    let statement = "UPDATE incident SET parent = $1, detail = $2 WHERE id = $3";
    let text = serde_json::to_string(&detail).expect("a detail has text keys only");
    sqlx::query(statement).bind(parent).bind(text).bind(incident).execute(&mut **transaction).await.map(drop)
}

/// Whether nothing explains an incident any more. What depends on something that works again may work again, too: it is looked at
/// first. `row` is that of [`super::tell_what_is_owed`].
pub(super) async fn is_released(
    transaction: &mut Transaction<'_, Any>,
    context: &IncidentContext<'_>,
    unsent: &UnsentIncident<'_>,
    row: &AnyRow,
) -> Result<bool, sqlx::Error> {
    match of(transaction, context, unsent).await? {
        Cause::Unknown => return Ok(false),
        Cause::Incident { id, target } => {
            hold(transaction, context, unsent.id, &id, &target).await?;
            return Ok(false);
        }
        Cause::None => {}
    }
    let is_whole = matches!(row.try_get::<Option<String>, _>("whole_class")?.as_deref(), Some("storm" | "group"));
    let cause: Option<String> = row.try_get("whole_subject")?;
    let ended = row.try_get::<Option<i64>, _>("whole_resolved")?.map(Moment);
    if let (Some(ended), false) = (ended, is_whole) {
        let availability = Availability::of_word(&row.try_get::<String, _>("availability")?);
        let is_seen =
            Moment(row.try_get("last_result")?) > ended && !matches!(availability, Some(Availability::Recovering | Availability::Suspect));
        let every = Duration::from_millis(row.try_get::<i64, _>("every")?.unsigned_abs());
        if !is_seen && context.now < ended + every * BLIND_AFTER + GRACE {
            return Ok(false);
        }
    }
    let found = sqlx::query("SELECT detail FROM incident WHERE id = $1").bind(unsent.id).fetch_one(&mut **transaction).await?;
    explain(transaction, unsent.id, None, &found, None).await?;
    let text = match (&cause, ended) {
        (Some(cause), Some(_)) => format!("{cause} is up again, but this is still down"),
        (Some(cause), None) => format!("{cause} no longer explains it"),
        (None, _) => "the incident that it belonged to is gone".to_owned(),
    };
    context.note(transaction, unsent.id, "outlasted", &text).await?;
    Ok(true)
}

/// Brings forward the probes of what a target depends on, so that both are known to fail at about the same time. Their slots stay
/// what they are.
pub(super) async fn ask(transaction: &mut Transaction<'_, Any>, context: &IncidentContext<'_>, target: &str) -> Result<(), sqlx::Error> {
    let Some(spec) = context.config.targets.get(target) else { return Ok(()) };
    let names = names(transaction, target, &spec.depends_on).await?;
    for name in names {
        let statement = "UPDATE schedule SET slot = (SELECT {} FROM target WHERE target.name = schedule.target), attempt = $1, due = $2 \
             WHERE target = $3 AND attempt = 0 AND lease_until < $2 AND slot > $2 AND EXISTS (\
             SELECT 1 FROM target WHERE target.name = $3 AND removed IS NULL AND availability = 'ok')";
        let statement = statement.replace("{}", &before_its_turn("schedule.slot", "target"));
        let query = sqlx::query(AssertSqlSafe(statement)).bind(super::storm::OUT_OF_TURN).bind(context.now.0).bind(&name);
        query.execute(&mut **transaction).await?;
    }
    Ok(())
}
