//! Incidents, what was sent about them, and planned work.

use crate::incident::{Class, Detail, Severity};
use crate::moment::Moment;
use crate::store::values::Values;
use crate::store::{Store, StoreFailure, outbox};
use sqlx::{AnyPool, Row as _};
use std::collections::BTreeMap;
use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

#[derive(Clone, Debug)]
pub struct IncidentRow {
    pub id: String,
    pub subject: String,
    pub class: Class,
    pub severity: Severity,
    pub title: String,
    pub detail: Detail,
    pub since: Moment,
    pub opened: Moment,
    pub resolved: Option<Moment>,
    pub acknowledged: Option<Moment>,
    pub acknowledged_by: Option<String>,
    pub parent: Option<String>,
    pub evidence: Option<String>,
}

#[derive(Clone, Debug)]
pub struct EventRow {
    pub at: Moment,
    pub kind: String,
    pub text: String,
}

/// One message about an incident, and what became of it.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub kind: String,
    pub created: Moment,
    pub attempts: i64,
    pub delivered: Option<Moment>,
    pub delivered_by: Option<String>,
    pub last_error: Option<String>,
}

#[derive(Clone, Debug)]
pub struct MaintenanceRow {
    pub id: String,
    pub name: String,
    pub targets: Vec<String>,
    pub tags: Vec<String>,
    pub starts: Moment,
    pub ends: Moment,
}

/// Which incidents are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Open,
    All,
}

/// An incident's place in the list of all: many are opened in the same millisecond when much breaks at once. As a text it goes
/// into links; one without an id is before all of its millisecond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    opened: Moment,
    id: String,
}

impl Place {
    /// Where a page of so many ends, if more may follow it.
    pub(crate) fn after(page: &[IncidentRow], limit: i64) -> Option<Self> {
        let is_full = i64::try_from(page.len()) == Ok(limit);
        page.last().filter(|_| is_full).map(|incident| Self { opened: incident.opened, id: incident.id.clone() })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}_{}", self.opened.0, self.id)
    }
}

impl FromStr for Place {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        let (opened, id) = text.split_once('_').unwrap_or((text, ""));
        Ok(Self { opened: Moment(opened.parse()?), id: id.to_owned() })
    }
}

type Columns =
    (String, String, String, String, String, String, i64, i64, Option<i64>, Option<i64>, Option<String>, Option<String>, Option<String>);

const COLUMNS: &str =
    "id, subject, class, severity, title, detail, since, opened, resolved, acknowledged, acknowledged_by, parent, evidence";

impl From<Columns> for IncidentRow {
    fn from(row: Columns) -> Self {
        let (id, subject, class, severity, title, detail, since, opened, resolved, acknowledged, acknowledged_by, parent, evidence) = row;
        Self {
            id,
            subject,
            // What a newer version wrote is shown as the most common kind.
            class: Class::of_word(&class).unwrap_or(Class::Availability),
            severity: Severity::of_word(&severity).unwrap_or(Severity::Page),
            title,
            detail: serde_json::from_str(&detail).unwrap_or_default(),
            since: Moment(since),
            opened: Moment(opened),
            resolved: resolved.map(Moment),
            acknowledged: acknowledged.map(Moment),
            acknowledged_by,
            parent,
            evidence,
        }
    }
}

pub(in crate::store) async fn incident(pool: &AnyPool, id: &str) -> Result<Option<IncidentRow>, sqlx::Error> {
    let query = format!("SELECT {COLUMNS} FROM incident WHERE id = $1");
    let row: Option<Columns> = sqlx::query_as(sqlx::AssertSqlSafe(query)).bind(id).fetch_optional(pool).await?;
    Ok(row.map(IncidentRow::from))
}

impl Store {
    /// How many incidents are open, by class and severity.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn open_incidents(&self) -> Result<BTreeMap<(Class, Severity), i64>, StoreFailure> {
        let query = "SELECT class, severity, count(*) FROM incident WHERE resolved IS NULL GROUP BY class, severity";
        let rows: Vec<(String, String, i64)> = sqlx::query_as(query).fetch_all(&self.pool).await?;
        let known =
            |(class, severity, count): (String, String, i64)| Some(((Class::of_word(&class)?, Severity::of_word(&severity)?), count));
        Ok(rows.into_iter().filter_map(known).collect())
    }

    /// The newest first; with a place, those that come after it.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn incidents(&self, which: Which, after: Option<&Place>, limit: i64) -> Result<Vec<IncidentRow>, StoreFailure> {
        let only = match which {
            Which::Open => " AND resolved IS NULL",
            Which::All => "",
        };
        let query = format!("SELECT {COLUMNS} FROM incident WHERE (opened, id) < ($1, $2){only} ORDER BY opened DESC, id DESC LIMIT $3");
        let rows: Vec<Columns> = sqlx::query_as(sqlx::AssertSqlSafe(query))
            .bind(after.map_or(i64::MAX, |place| place.opened.0))
            .bind(after.map_or("", |place| place.id.as_str()))
            .bind(limit.clamp(1, 1_000))
            .fetch_all(&self.pool)
            .await?;
        Ok(rows.into_iter().map(IncidentRow::from).collect())
    }

    /// Of one target, the newest first.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn incidents_of(&self, subject: &str, limit: i64) -> Result<Vec<IncidentRow>, StoreFailure> {
        let query = format!("SELECT {COLUMNS} FROM incident WHERE subject = $1 ORDER BY opened DESC, id DESC LIMIT $2");
        let rows: Vec<Columns> =
            sqlx::query_as(sqlx::AssertSqlSafe(query)).bind(subject).bind(limit.clamp(1, 1_000)).fetch_all(&self.pool).await?;
        Ok(rows.into_iter().map(IncidentRow::from).collect())
    }

    /// # Errors
    /// The database does not respond.
    pub async fn incident(&self, id: &str) -> Result<Option<IncidentRow>, StoreFailure> {
        Ok(incident(&self.pool, id).await?)
    }

    /// What is a part of an incident, or is explained by it, in the order in which it was opened.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn parts(&self, id: &str) -> Result<Vec<IncidentRow>, StoreFailure> {
        let query = format!("SELECT {COLUMNS} FROM incident WHERE parent = $1 ORDER BY opened, id LIMIT 1000");
        let rows: Vec<Columns> = sqlx::query_as(sqlx::AssertSqlSafe(query)).bind(id).fetch_all(&self.pool).await?;
        Ok(rows.into_iter().map(IncidentRow::from).collect())
    }

    /// Of these targets, those that are down because of another one, with the name of that, and whether that is public.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn causes(&self, targets: &[&str]) -> Result<BTreeMap<String, (String, bool)>, StoreFailure> {
        if targets.is_empty() {
            return Ok(BTreeMap::new());
        }
        let query = "SELECT incident.subject, cause.subject, COALESCE(target.public, 0) FROM incident \
             JOIN incident cause ON cause.id = incident.parent AND cause.resolved IS NULL AND cause.class NOT IN ('storm', 'group') \
             LEFT JOIN target ON target.name = cause.subject AND target.removed IS NULL \
             WHERE incident.subject IN (VALUES {}) AND incident.resolved IS NULL AND incident.class IN ('availability', 'flapping')";
        let rows = Values::names(self.dialect, targets.iter().copied()).query(query).fetch_all(&self.pool).await?;
        rows.iter()
            .map(|row| Ok((row.try_get(0)?, (row.try_get(1)?, row.try_get::<i64, _>(2)? != 0))))
            .collect::<Result<_, sqlx::Error>>()
            .map_err(StoreFailure::from)
    }

    /// In the order in which they happened.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn incident_events(&self, id: &str) -> Result<Vec<EventRow>, StoreFailure> {
        let query = "SELECT at, kind, text FROM incident_event WHERE incident = $1 \
                     ORDER BY at, CASE kind WHEN 'opened' THEN 0 WHEN 'resolved' THEN 2 ELSE 1 END LIMIT 1000";
        let rows: Vec<(i64, String, String)> = sqlx::query_as(query).bind(id).fetch_all(&self.pool).await?;
        let shown = |kind: &str, text: String| match kind {
            outbox::UNCONFIRMED => outbox::unconfirmed_taker(&text).0.to_owned(),
            _ => text,
        };
        Ok(rows.into_iter().map(|(at, kind, text)| EventRow { at: Moment(at), text: shown(&kind, text), kind }).collect())
    }

    /// In the order in which they were written.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn deliveries(&self, incident: &str) -> Result<Vec<Delivery>, StoreFailure> {
        let query = "SELECT kind, created, attempts, delivered, delivered_by, last_error FROM outbox WHERE incident = $1 \
                     ORDER BY id LIMIT 1000";
        type Columns = (String, i64, i64, Option<i64>, Option<String>, Option<String>);
        let rows: Vec<Columns> = sqlx::query_as(query).bind(incident).fetch_all(&self.pool).await?;
        Ok(rows
            .into_iter()
            .map(|(kind, created, attempts, delivered, delivered_by, last_error)| Delivery {
                kind,
                created: Moment(created),
                attempts,
                delivered: delivered.map(Moment),
                delivered_by,
                last_error,
            })
            .collect())
    }

    /// What was announced over the API or the dashboard and is not over, the next first.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn maintenance(&self, now: Moment) -> Result<Vec<MaintenanceRow>, StoreFailure> {
        let query = "SELECT id, name, targets, tags, starts, ends FROM maintenance WHERE ends > $1 ORDER BY starts, id LIMIT 1000";
        let rows: Vec<(String, String, String, String, i64, i64)> = sqlx::query_as(query).bind(now.0).fetch_all(&self.pool).await?;
        let list = |json: &str| serde_json::from_str(json).unwrap_or_default();
        Ok(rows
            .into_iter()
            .map(|(id, name, targets, tags, starts, ends)| MaintenanceRow {
                id,
                name,
                targets: list(&targets),
                tags: list(&tags),
                starts: Moment(starts),
                ends: Moment(ends),
            })
            .collect())
    }
}
