//! Targets that share a tag by which their route groups them are told together: the first one opens an incident of the group, whose
//! page waits a little for others, and whoever comes later updates it. Those of the single targets are its parts.

use super::{IncidentContext, JOINED, Opening, UnsentIncident, in_json};
use crate::config::{Config, Route};
use crate::incident::{Class, Detail, Severity};
use crate::moment::Moment;
use crate::store::{Dialect, Store};
use sqlx::{Any, AnyConnection, AssertSqlSafe, Row as _, Transaction};
use std::collections::BTreeSet;

/// Names, and titles, that are told one by one.
const MOST_NAMES: usize = 50;
const MOST_TITLES: usize = 20;
/// Two processes that open one group at the same time find that of the other.
const ATTEMPTS: usize = 5;
/// Why a group ends.
pub(super) const LAST: &str = "its last incident is resolved";

/// What is open of a group.
pub(super) struct Part {
    subject: String,
    title: String,
    severity: Severity,
}

/// Makes an incident a part of its group, and tells people of it. A group that somebody takes care of gets no more parts: nobody would
/// be woken.
pub(super) async fn join(
    transaction: &mut Transaction<'_, Any>,
    context: &IncidentContext<'_>,
    unsent: &UnsentIncident<'_>,
    tags: &[String],
    route: &Route,
    tag: &str,
) -> Result<(), sqlx::Error> {
    let channels = in_json(&route.channels);
    // Routes that begin with the same channel reach the same people.
    let base = format!("group:{tag}@{}", route.channels[0]);
    for _ in 0..ATTEMPTS {
        if let Some((group, severity)) = open_group(transaction, &base).await? {
            add(transaction, &group, unsent.id).await?;
            let parts = refresh(transaction, context, &group, tag).await?;
            let title = parts.iter().find(|part| part.subject == unsent.target).map_or("", |part| part.title.as_str());
            context.note(transaction, &group, JOINED, title).await?;
            raise(transaction, context, &group, severity, severity.max(unsent.severity)).await?;
            update(transaction, context, &group, &channels, route).await?;
            context.note(transaction, unsent.id, "grouped", &format!("grouped with other incidents of {tag}")).await?;
            return Ok(());
        }
        let found = sqlx::query("SELECT title, detail, evidence FROM incident WHERE id = $1").bind(unsent.id);
        let row = found.fetch_one(&mut **transaction).await?;
        let (title, evidence): (String, Option<String>) = (row.try_get("title")?, row.try_get("evidence")?);
        let mut detail: Detail = serde_json::from_str(&row.try_get::<String, _>("detail")?).unwrap_or_default();
        detail.members = vec![unsent.target.to_owned()];
        detail.tags = tags.to_vec();
        let subject = free_name(transaction, &base).await?;
        let opening = Opening {
            subject: &subject,
            class: Class::Group,
            severity: unsent.severity,
            title: &title,
            detail: &detail,
            since: unsent.since,
            parent: None,
            evidence: evidence.as_deref(),
        };
        if let Some(group) = context.open(transaction, &opening).await? {
            add(transaction, &group, unsent.id).await?;
            context.note(transaction, unsent.id, "grouped", &format!("grouped with other incidents of {tag}")).await?;
            return context.send_after(transaction, &group, "trigger", &channels, route.group_wait).await;
        }
    }
    // Nobody waits for a group that never is there.
    context.send(transaction, unsent.id, "trigger", &channels).await
}

/// Ends groups of which nothing is left: the last two parts may have ended at the same time. True if there were any.
///
/// # Errors
/// The database refused.
pub async fn end_empty_groups(store: &Store, config: &Config, now: Moment) -> Result<bool, sqlx::Error> {
    let statement = "SELECT id FROM incident WHERE class = 'group' AND resolved IS NULL AND NOT EXISTS \
         (SELECT 1 FROM incident part WHERE part.parent = incident.id AND part.resolved IS NULL)";
    // Whoever only reads does not wait for those who write.
    let empty: Vec<String> = sqlx::query_scalar(statement).fetch_all(&store.pool).await?;
    if empty.is_empty() {
        return Ok(false);
    }
    let mut transaction = store.begin().await?;
    let context = IncidentContext::new(config, now);
    for group in &empty {
        // Something may have joined it meanwhile; what joins it right now is told on its own.
        if parts_of(&mut transaction, group).await?.is_empty() {
            context.end_storm(&mut transaction, group, LAST).await?;
        }
    }
    transaction.commit().await?;
    Ok(true)
}

/// A part matters more than it did, or is something else: those who were told of its group are told again. Nothing if the parent is no
/// group.
pub(super) async fn changed(
    transaction: &mut Transaction<'_, Any>,
    context: &IncidentContext<'_>,
    group: &str,
    part: &str,
    severity: Severity,
) -> Result<(), sqlx::Error> {
    let statement = "SELECT incident.subject, incident.severity, incident.detail, outbox.route FROM incident \
         JOIN outbox ON outbox.incident = incident.id AND outbox.kind = 'trigger' \
         WHERE incident.id = $1 AND incident.class = 'group' AND incident.resolved IS NULL ORDER BY outbox.id LIMIT 1";
    let Some(row) = sqlx::query(statement).bind(group).fetch_optional(&mut **transaction).await? else { return Ok(()) };
    let detail: Detail = serde_json::from_str(&row.try_get::<String, _>("detail")?).unwrap_or_default();
    let before = Severity::of_word(&row.try_get::<String, _>("severity")?).unwrap_or(severity);
    let channels: String = row.try_get("route")?;
    let subject: String = row.try_get("subject")?;
    // Who is told of it may be somebody else now: then it is told on its own.
    let Some(route) = context
        .config
        .route(severity, &detail.tags, context.now)
        .filter(|route| first_of(&channels).as_deref() == route.channels.first().map(String::as_str))
    else {
        let query = sqlx::query("UPDATE incident SET parent = NULL WHERE id = $1").bind(part);
        query.execute(&mut **transaction).await?;
        if let Some(route) = context.route(severity, &detail.tags) {
            context.send(transaction, part, "trigger", &route).await?;
        }
        if parts_of(transaction, group).await?.is_empty() {
            context.end_storm(transaction, group, "its last incident is alerted separately").await?;
        }
        return Ok(());
    };
    refresh(transaction, context, group, tag_of(&subject)).await?;
    raise(transaction, context, group, before, before.max(severity)).await?;
    update(transaction, context, group, &channels, route).await
}

/// The first channel of a route, as the outbox keeps it.
pub(super) fn first_of(route: &str) -> Option<String> {
    serde_json::from_str::<Vec<String>>(route).ok()?.into_iter().next()
}

/// The tag that a group is named after.
fn tag_of(subject: &str) -> &str {
    let name = subject.strip_prefix("group:").unwrap_or(subject);
    name.rsplit_once('@').map_or(name, |(tag, _)| tag)
}

/// A group of this name of which nobody takes care, and how much it matters.
async fn open_group(transaction: &mut Transaction<'_, Any>, base: &str) -> Result<Option<(String, Severity)>, sqlx::Error> {
    let statement = "SELECT id, subject FROM incident WHERE class = 'group' AND resolved IS NULL AND acknowledged IS NULL ORDER BY id";
    let open: Vec<(String, String)> = sqlx::query_as(statement).fetch_all(&mut **transaction).await?;
    for (id, _) in open.iter().filter(|(_, subject)| is_named(subject, base)) {
        // Somebody may acknowledge or end it right now.
        let statement = format!(
            "SELECT severity FROM incident WHERE id = $1 AND resolved IS NULL AND acknowledged IS NULL {}",
            Dialect::of(transaction).lock()
        );
        let found: Option<String> = sqlx::query_scalar(AssertSqlSafe(statement)).bind(id).fetch_optional(&mut **transaction).await?;
        if let Some(severity) = found {
            return Ok(Some((id.clone(), Severity::of_word(&severity).unwrap_or(Severity::Page))));
        }
    }
    Ok(None)
}

/// Whether a group has this name, or this name and a number.
fn is_named(subject: &str, base: &str) -> bool {
    let rest = subject.strip_prefix(base);
    rest.is_some_and(|rest| {
        rest.is_empty() || rest.strip_prefix('#').is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
    })
}

/// Groups of which somebody takes care keep their names. The name of any other is not avoided: another process may have opened it since
/// it was looked for, and then it has to be joined.
async fn free_name(transaction: &mut Transaction<'_, Any>, base: &str) -> Result<String, sqlx::Error> {
    let statement = "SELECT subject FROM incident WHERE class = 'group' AND resolved IS NULL AND acknowledged IS NOT NULL";
    let taken: Vec<String> = sqlx::query_scalar(statement).fetch_all(&mut **transaction).await?;
    let names = (1_usize..).map(|number| if number == 1 { base.to_owned() } else { format!("{base}#{number}") });
    Ok(names.into_iter().find(|name| !taken.contains(name)).unwrap_or_else(|| base.to_owned()))
}

async fn add(transaction: &mut Transaction<'_, Any>, group: &str, part: &str) -> Result<(), sqlx::Error> {
    let query = sqlx::query("UPDATE incident SET parent = $1 WHERE id = $2").bind(group).bind(part);
    query.execute(&mut **transaction).await.map(drop)
}

async fn raise(
    transaction: &mut Transaction<'_, Any>,
    context: &IncidentContext<'_>,
    group: &str,
    before: Severity,
    severity: Severity,
) -> Result<(), sqlx::Error> {
    let query = sqlx::query("UPDATE incident SET severity = $1 WHERE id = $2").bind(severity.word()).bind(group);
    query.execute(&mut **transaction).await?;
    context.raise(transaction, group, before, severity).await
}

/// Tells of the group as it is now, unless a message that says so is about to be sent for the first time anyway.
async fn update(
    transaction: &mut Transaction<'_, Any>,
    context: &IncidentContext<'_>,
    group: &str,
    channels: &str,
    route: &Route,
) -> Result<(), sqlx::Error> {
    let statement = format!(
        "SELECT id FROM outbox WHERE incident = $1 AND kind IN ('trigger', 'update') AND delivered IS NULL AND lease_until <= $2 \
         AND attempts = 0 AND hop = 0 AND tried_since IS NULL {}",
        Dialect::of(transaction).lock()
    );
    let waiting = sqlx::query(AssertSqlSafe(statement)).bind(group).bind(context.now.0).fetch_all(&mut **transaction).await?;
    if waiting.is_empty() {
        context.send_after(transaction, group, "update", channels, route.group_wait).await?;
    }
    Ok(())
}

/// Writes what is open of a group into its title and its message.
async fn refresh(
    transaction: &mut Transaction<'_, Any>,
    context: &IncidentContext<'_>,
    group: &str,
    tag: &str,
) -> Result<Vec<Part>, sqlx::Error> {
    let parts = parts_of(transaction, group).await?;
    if let [_, _, ..] = parts.as_slice() {
        let detail: String =
            sqlx::query_scalar("SELECT detail FROM incident WHERE id = $1").bind(group).fetch_one(&mut **transaction).await?;
        let Detail { tags, .. } = serde_json::from_str(&detail).unwrap_or_default();
        let title = format!("{} incidents in the group {tag}", parts.len());
        let detail = Detail { message: told(&parts), members: members(&parts), tags, ..Detail::default() };
        let statement = "UPDATE incident SET title = $1, detail = $2, evidence = NULL WHERE id = $3 AND opened <= $4";
        let query = sqlx::query(statement).bind(title).bind(serde_json::to_string(&detail).expect("a detail has text keys only"));
        query.bind(group).bind(context.now.0).execute(&mut **transaction).await?;
    }
    Ok(parts)
}

pub(super) async fn parts_of(connection: &mut AnyConnection, group: &str) -> Result<Vec<Part>, sqlx::Error> {
    let statement = "SELECT subject, title, severity FROM incident WHERE parent = $1 AND resolved IS NULL ORDER BY id";
    let rows: Vec<(String, String, String)> = sqlx::query_as(statement).bind(group).fetch_all(connection).await?;
    let part = |(subject, title, severity): (String, String, String)| {
        let severity = Severity::of_word(&severity).unwrap_or(Severity::Page);
        Part { subject, title, severity }
    };
    Ok(rows.into_iter().map(part).collect())
}

/// What is open, the most severe first.
pub(super) fn told(parts: &[Part]) -> String {
    let mut parts: Vec<&Part> = parts.iter().collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.severity));
    let titles: Vec<&str> = parts.iter().take(MOST_TITLES).map(|part| part.title.as_str()).collect();
    let rest = parts.len().saturating_sub(MOST_TITLES);
    let more = if rest > 0 { format!("; and {rest} more") } else { String::new() };
    format!("{}{more}", titles.join("; "))
}

pub(super) fn members(parts: &[Part]) -> Vec<String> {
    let names: BTreeSet<&str> = parts.iter().map(|part| part.subject.as_str()).collect();
    names.into_iter().take(MOST_NAMES).map(str::to_owned).collect()
}
