//! Incidents, what was sent about them, and planned work.

use crate::incident::{Class, Detail, Severity};
use crate::moment::Moment;
use crate::store::{Store, StoreFailure};
use sqlx::AnyPool;

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
    /// The newest first.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn incidents(&self, which: Which, before: Moment, limit: i64) -> Result<Vec<IncidentRow>, StoreFailure> {
        let only = match which {
            Which::Open => " AND resolved IS NULL",
            Which::All => "",
        };
        let query = format!("SELECT {COLUMNS} FROM incident WHERE opened < $1{only} ORDER BY opened DESC LIMIT $2");
        let rows: Vec<Columns> =
            sqlx::query_as(sqlx::AssertSqlSafe(query)).bind(before.0).bind(limit.clamp(1, 1_000)).fetch_all(&self.pool).await?;
        Ok(rows.into_iter().map(IncidentRow::from).collect())
    }

    /// Of one target, the newest first.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn incidents_of(&self, subject: &str, limit: i64) -> Result<Vec<IncidentRow>, StoreFailure> {
        let query = format!("SELECT {COLUMNS} FROM incident WHERE subject = $1 ORDER BY opened DESC LIMIT $2");
        let rows: Vec<Columns> =
            sqlx::query_as(sqlx::AssertSqlSafe(query)).bind(subject).bind(limit.clamp(1, 1_000)).fetch_all(&self.pool).await?;
        Ok(rows.into_iter().map(IncidentRow::from).collect())
    }

    /// # Errors
    /// The database does not answer.
    pub async fn incident(&self, id: &str) -> Result<Option<IncidentRow>, StoreFailure> {
        Ok(incident(&self.pool, id).await?)
    }

    /// In the order in which they happened.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn incident_events(&self, id: &str) -> Result<Vec<EventRow>, StoreFailure> {
        let query = "SELECT at, kind, text FROM incident_event WHERE incident = $1 ORDER BY at LIMIT 1000";
        let rows: Vec<(i64, String, String)> = sqlx::query_as(query).bind(id).fetch_all(&self.pool).await?;
        Ok(rows.into_iter().map(|(at, kind, text)| EventRow { at: Moment(at), kind, text }).collect())
    }

    /// In the order in which they were written.
    ///
    /// # Errors
    /// The database does not answer.
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
    /// The database does not answer.
    pub async fn maintenance(&self, now: Moment) -> Result<Vec<MaintenanceRow>, StoreFailure> {
        let query = "SELECT id, name, targets, tags, starts, ends FROM maintenance WHERE ends > $1 ORDER BY starts LIMIT 1000";
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
