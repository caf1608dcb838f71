//! Regions of which nothing is heard any more, while others go on: the targets that are probed from there are judged by those that are
//! left. Each region is one incident, however many targets it has.

use super::group::first_of;
use super::{IncidentContext, Opening, RAISED, Subject};
use crate::clock::TOLERANCE;
use crate::config::{Config, TargetSpec};
use crate::incident::{Class, Detail, Severity};
use crate::maintenance;
use crate::moment::Moment;
use crate::state::{Availability, TargetState};
use crate::store::{BLIND_AFTER, Store, StoreFailure};
use sqlx::any::AnyRow;
use sqlx::{Any, Row as _, Transaction};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// As its incident names it.
const REGION: &str = "region:";
/// Names that are told one by one.
const MOST_NAMES: usize = 50;

/// What is known of a region, of targets that have others as well.
#[derive(Default)]
struct KnownRegion<'a> {
    /// Of some target nothing was heard for too long, whether people are to be told of that or not.
    is_silent: bool,
    missing: Vec<MissingResults<'a>>,
}

/// A target of which nothing was heard from a region.
struct MissingResults<'a> {
    target: &'a str,
    row: &'a AnyRow,
    /// When something was heard last, or should have been for the first time.
    heard: Moment,
    /// So few regions are left that they are no majority of all.
    is_needed: bool,
}

/// Opens and ends the incidents of regions that are not heard: of what has more than one region, and was not heard from one of them for three
/// intervals and the time of a probe. `targets` are those that this process knows; what was not to be heard before `started` does not
/// count. True if there were any.
///
/// # Errors
/// The database failed.
pub async fn sweep_regions(
    store: &Store,
    config: &Config,
    targets: &BTreeMap<String, Arc<TargetSpec>>,
    started: Moment,
    now: Moment,
) -> Result<bool, StoreFailure> {
    // No other region writes into the memory of this process.
    if store.is_in_memory() {
        return Ok(false);
    }
    let statement = "SELECT target.name, target.state, target.host, target.tags, target.every, target.muted_until, target.availability, \
         target.since, target.created, schedule.region, schedule.due, schedule.patience \
         FROM schedule JOIN target ON target.name = schedule.target WHERE target.removed IS NULL AND target.name IN \
         (SELECT several.target FROM schedule several GROUP BY several.target HAVING count(*) > 1) ORDER BY target.name, schedule.region";
    let rows = sqlx::query(statement).fetch_all(&store.pool).await?;
    let regions = read(&rows, targets, started, now)?;
    let statement = "SELECT id, subject FROM incident WHERE class = 'blind' AND resolved IS NULL AND subject LIKE 'region:%' ORDER BY id";
    let open: Vec<(String, String)> = sqlx::query_as(statement).fetch_all(&store.pool).await?;
    if open.is_empty() && regions.values().all(|region| region.missing.is_empty()) {
        return Ok(false);
    }
    let mut transaction = store.begin().await?;
    let mut context = IncidentContext::new(config, now);
    context.planned = maintenance::announced(&mut transaction, now).await?;
    let mut is_any = false;
    for (name, region) in &regions {
        is_any |= open_or_raise(&mut transaction, &context, name, &region.missing).await?;
    }
    for (incident, subject) in &open {
        let name = subject.strip_prefix(REGION).unwrap_or(subject);
        let reason = match regions.get(name) {
            Some(region) if region.is_silent => continue,
            Some(_) => format!("results arrive again from {name}"),
            None => {
                mark_unmonitored(&mut transaction, incident).await?;
                format!("nothing is probed from {name} any more")
            }
        };
        is_any |= context.end_storm(&mut transaction, incident, &reason).await?;
    }
    transaction.commit().await?;
    Ok(is_any)
}

/// By region. The rows are one for each target and region, in this order.
fn read<'a>(
    rows: &'a [AnyRow],
    targets: &'a BTreeMap<String, Arc<TargetSpec>>,
    started: Moment,
    now: Moment,
) -> Result<BTreeMap<String, KnownRegion<'a>>, sqlx::Error> {
    let mut regions: BTreeMap<String, KnownRegion<'a>> = BTreeMap::new();
    let mut by_target: BTreeMap<String, Vec<&AnyRow>> = BTreeMap::new();
    for row in rows {
        by_target.entry(row.try_get("name")?).or_default().push(row);
    }
    for (target, rows) in by_target {
        let known = targets.get_key_value(&target);
        let Some(&row) = rows.first() else { continue };
        let state: TargetState = serde_json::from_str(&row.try_get::<String, _>("state")?).unwrap_or_default();
        let every = Duration::from_millis(row.try_get::<i64, _>("every")?.unsigned_abs());
        let is_blind = row.try_get::<String, _>("availability")? == Availability::Blind.word();
        // Whoever was not seen at all until then may be heard from one region before the others.
        let since = Moment(row.try_get::<i64, _>("since")?.max(row.try_get("created")?)).max(started);
        let (mut count, mut silent) = (0_usize, Vec::new());
        for row in &rows {
            let region: String = row.try_get("region")?;
            // The turns of a region that it had before another one was the default.
            if known.is_some_and(|(_, spec)| !spec.regions.contains(&region)) {
                continue;
            }
            count += 1;
            let found = regions.entry(region.clone()).or_default();
            let patience = every * BLIND_AFTER + Duration::from_millis(row.try_get::<i64, _>("patience")?.unsigned_abs());
            // What was heard in the future was written by a clock that has been set back since.
            let heard = state.heard_from(&region).filter(|heard| *heard <= now + TOLERANCE);
            let heard = heard.unwrap_or(Moment(row.try_get("due")?));
            if heard + patience >= now {
                continue;
            }
            found.is_silent = true;
            if !is_blind && since + patience < now {
                silent.push((region, heard));
            }
        }
        // Who knows nothing of it leaves it to the others; and of what is not heard at all people are told as that.
        let (Some((target, _)), true) = (known, silent.len() < count) else { continue };
        let is_needed = (count - silent.len()) * 2 <= count;
        for (region, heard) in silent {
            if let Some(found) = regions.get_mut(&region) {
                found.missing.push(MissingResults { target, row, heard, is_needed });
            }
        }
    }
    Ok(regions)
}

/// True if people are to be told of it now.
async fn open_or_raise(
    transaction: &mut Transaction<'_, Any>,
    context: &IncidentContext<'_>,
    region: &str,
    missing: &[MissingResults<'_>],
) -> Result<bool, sqlx::Error> {
    let mut told: Vec<(&MissingResults<'_>, Subject)> = Vec::new();
    for one in missing {
        let subject = context.read_subject(one.target, one.row)?;
        if !subject.is_quiet {
            told.push((one, subject));
        }
    }
    let Some(since) = told.iter().map(|(one, _)| one.heard).min() else { return Ok(false) };
    let severity = if told.iter().any(|(one, _)| one.is_needed) { Severity::Page } else { Severity::Notify };
    let tags: Vec<Vec<String>> = told.iter().map(|(_, subject)| subject.tags.clone()).collect();
    let names: Vec<String> = told.iter().take(MOST_NAMES).map(|(one, _)| one.target.to_owned()).collect();
    let what = match told.as_slice() {
        [(one, _)] => one.target.to_owned(),
        several => format!("{} targets", several.len()),
    };
    let hint = format!("check the monitor in {region}: whether it runs, its network, its logs");
    let detail = Detail {
        message: format!("no result from {region} since {since}; what the other regions see decides"),
        hint: Some(hint),
        members: names,
        tags: tags.first().cloned().unwrap_or_default(),
        ..Detail::default()
    };
    let (subject, title) = (format!("{REGION}{region}"), format!("monitoring from {region} is blind: no results for {what}"));
    let opening =
        Opening { subject: &subject, class: Class::Blind, severity, title: &title, detail: &detail, since, parent: None, evidence: None };
    if let Some(incident) = context.open(transaction, &opening).await? {
        return tell_routes(transaction, context, &incident, severity, &tags).await;
    }
    let statement = "SELECT id, severity FROM incident WHERE subject = $1 AND class = 'blind' AND resolved IS NULL";
    let Some(row) = sqlx::query(statement).bind(&subject).fetch_optional(&mut **transaction).await? else { return Ok(false) };
    let incident: String = row.try_get("id")?;
    let known = Severity::of_word(&row.try_get::<String, _>("severity")?).unwrap_or(severity);
    if severity > known {
        let statement = "UPDATE incident SET severity = $1, title = $2, detail = $3 WHERE id = $4";
        let detail = serde_json::to_string(&detail).expect("a detail has text keys only");
        let query = sqlx::query(statement).bind(severity.word()).bind(&title).bind(detail).bind(&incident);
        query.execute(&mut **transaction).await?;
        context.note(transaction, &incident, "escalated", &title).await?;
        context.raise(transaction, &incident, known, severity).await?;
        return tell_routes(transaction, context, &incident, severity, &tags).await;
    }
    // It may have begun, or have become a page, outside the hours of its routes.
    if is_told(transaction, &incident).await? {
        return Ok(false);
    }
    tell_routes(transaction, context, &incident, known, &tags).await
}

/// Whether anybody was told of it since it became as severe as it is.
async fn is_told(transaction: &mut Transaction<'_, Any>, incident: &str) -> Result<bool, sqlx::Error> {
    let statement = "SELECT count(*) FROM outbox WHERE incident = $1 AND created >= \
         COALESCE((SELECT MAX(at) FROM incident_event WHERE incident = $1 AND kind = $2), 0)";
    Ok(sqlx::query_scalar::<_, i64>(statement).bind(incident).bind(RAISED).fetch_one(&mut **transaction).await? > 0)
}

/// Tells everybody who is to be told of one of these targets. Routes that begin with the same channel reach the same people. False if
/// nobody is to be told now.
async fn tell_routes(
    transaction: &mut Transaction<'_, Any>,
    context: &IncidentContext<'_>,
    incident: &str,
    severity: Severity,
    members: &[Vec<String>],
) -> Result<bool, sqlx::Error> {
    let statement = "SELECT route FROM outbox WHERE incident = $1 AND kind = 'trigger' AND recipients IS NULL";
    let told: Vec<String> = sqlx::query_scalar(statement).bind(incident).fetch_all(&mut **transaction).await?;
    let told: BTreeSet<String> = told.iter().filter_map(|route| first_of(route)).collect();
    let mut now_told = BTreeSet::new();
    for route in members.iter().filter_map(|tags| context.route(severity, tags)) {
        let Some(channel) = first_of(&route) else { continue };
        let kind = if told.contains(&channel) { "update" } else { "trigger" };
        if now_told.insert(channel) {
            context.send(transaction, incident, kind, &route).await?;
        }
    }
    Ok(!now_told.is_empty())
}

/// Its end is no recovery.
async fn mark_unmonitored(transaction: &mut Transaction<'_, Any>, incident: &str) -> Result<(), sqlx::Error> {
    let query = sqlx::query_scalar("SELECT detail FROM incident WHERE id = $1").bind(incident);
    let detail: String = query.fetch_one(&mut **transaction).await?;
    let detail = Detail { is_unmonitored: true, ..serde_json::from_str(&detail).unwrap_or_default() };
    let detail = serde_json::to_string(&detail).expect("a detail has text keys only");
    let query = sqlx::query("UPDATE incident SET detail = $1 WHERE id = $2").bind(detail).bind(incident);
    query.execute(&mut **transaction).await.map(drop)
}
