//! What pages and metrics ask of the store: only reads, each with a bound. Knows no page.

mod history;
mod trouble;

pub use history::{Bucket, ChangeRow, ResultRow, Strip};
pub(super) use trouble::incident;
pub use trouble::{Delivery, EventRow, IncidentRow, MaintenanceRow, Place, Which};

use super::{BLIND_AFTER, Store, StoreFailure};
use crate::clock::TOLERANCE;
use crate::incident::Class;
use crate::moment::Moment;
use crate::state::{Availability, Surface, TargetState};
use std::collections::BTreeMap;
use std::time::Duration;

/// A target as lists show it.
#[derive(Clone, Debug)]
pub struct TargetRow {
    pub name: String,
    /// `config` or `api`.
    pub source: String,
    pub host: String,
    /// Milliseconds between two scheduled probes.
    pub every: i64,
    pub tags: Vec<String>,
    pub public: bool,
    pub availability: Availability,
    pub surface: Surface,
    pub contract: Option<String>,
    pub last_slot: Moment,
    pub last_result: Moment,
    pub muted_until: Moment,
    /// Since when its availability is what it is.
    pub since: Moment,
}

/// How many public targets are in the same state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicState {
    pub availability: Availability,
    pub count: usize,
    /// The sum of the times since when they are: another one if others are.
    pub since: i64,
}

/// An outage of a public target, or a time in which it fails and works again in turns.
#[derive(Clone, Debug)]
pub struct PublicOutage {
    pub id: String,
    pub target: String,
    pub is_flapping: bool,
    pub opened: Moment,
    pub resolved: Option<Moment>,
}

/// When the last result of a target was written: its slot, and its time if it said anything about the target.
#[derive(Clone, Debug)]
pub struct Freshness {
    pub name: String,
    pub last: (Moment, Moment),
    /// Milliseconds.
    pub every: i64,
}

/// A message that waited for so long was offered to a first channel for all the time that it has, and to the next one.
const OVERDUE: Duration = Duration::from_secs(180);
/// A result may be so much later than its interval says.
const GRACE: Duration = Duration::from_secs(60);

/// What was heard from a region.
struct Region {
    shortest: Duration,
    heard: Option<Moment>,
    /// A turn has waited for too long.
    is_late: bool,
}

const COLUMNS: &str =
    "name, source, host, every, tags, public, availability, surface, contract, last_slot, last_result, muted_until, since";

type TargetColumns = (String, String, String, i64, String, i64, String, String, Option<String>, i64, i64, i64, i64);

impl From<TargetColumns> for TargetRow {
    fn from(row: TargetColumns) -> Self {
        let (name, source, host, every, tags, public, availability, surface, contract, last_slot, last_result, muted_until, since) = row;
        Self {
            name,
            source,
            host,
            every,
            tags: serde_json::from_str(&tags).unwrap_or_default(),
            public: public != 0,
            availability: Availability::of_word(&availability).unwrap_or_default(),
            surface: Surface::of_word(&surface).unwrap_or_default(),
            contract,
            last_slot: Moment(last_slot),
            last_result: Moment(last_result),
            muted_until: Moment(muted_until),
            since: Moment(since),
        }
    }
}

impl Store {
    /// All targets that are watched, by name.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn targets(&self) -> Result<Vec<TargetRow>, StoreFailure> {
        let query = format!("SELECT {COLUMNS} FROM target WHERE removed IS NULL ORDER BY name");
        let rows: Vec<TargetColumns> = sqlx::query_as(sqlx::AssertSqlSafe(query)).fetch_all(&self.pool).await?;
        Ok(rows.into_iter().map(TargetRow::from).collect())
    }

    /// In which states the public targets are.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn public_states(&self) -> Result<Vec<PublicState>, StoreFailure> {
        let query = "SELECT availability, count(*), CAST(sum(since) AS BIGINT) FROM target \
             WHERE public = 1 AND removed IS NULL GROUP BY availability ORDER BY availability";
        let rows: Vec<(String, i64, i64)> = sqlx::query_as(query).fetch_all(&self.pool).await?;
        let state = |(availability, count, since): (String, i64, i64)| PublicState {
            availability: Availability::of_word(&availability).unwrap_or_default(),
            count: usize::try_from(count).unwrap_or(0),
            since,
        };
        Ok(rows.into_iter().map(state).collect())
    }

    /// Some of the public targets: those that do not work first, then by name.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn public_targets(&self, limit: usize, offset: usize) -> Result<Vec<TargetRow>, StoreFailure> {
        let query = format!(
            "SELECT {COLUMNS} FROM target WHERE public = 1 AND removed IS NULL \
             ORDER BY CASE availability WHEN 'down' THEN 0 WHEN 'flapping' THEN 1 WHEN 'recovering' THEN 2 ELSE 3 END, name \
             LIMIT {limit} OFFSET {offset}"
        );
        let rows: Vec<TargetColumns> = sqlx::query_as(sqlx::AssertSqlSafe(query)).fetch_all(&self.pool).await?;
        Ok(rows.into_iter().map(TargetRow::from).collect())
    }

    /// When public targets went down or began to flap after `since`, and when that was over, the latest first. At most 100.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn public_outages(&self, since: Moment) -> Result<Vec<PublicOutage>, StoreFailure> {
        let query = "SELECT incident.id, incident.subject, incident.class, incident.opened, incident.resolved FROM incident \
             JOIN target ON target.name = incident.subject WHERE target.public = 1 AND target.removed IS NULL \
             AND incident.class IN ('availability', 'flapping') AND incident.opened > $1 ORDER BY incident.opened DESC, incident.id LIMIT 100";
        let rows: Vec<(String, String, String, i64, Option<i64>)> = sqlx::query_as(query).bind(since.0).fetch_all(&self.pool).await?;
        let outage = |(id, target, class, opened, resolved): (String, String, String, i64, Option<i64>)| PublicOutage {
            id,
            target,
            is_flapping: class == Class::Flapping.word(),
            opened: Moment(opened),
            resolved: resolved.map(Moment),
        };
        Ok(rows.into_iter().map(outage).collect())
    }

    /// # Errors
    /// The database does not respond.
    pub async fn target(&self, name: &str) -> Result<Option<TargetRow>, StoreFailure> {
        let query = format!("SELECT {COLUMNS} FROM target WHERE name = $1 AND removed IS NULL");
        let row: Option<TargetColumns> = sqlx::query_as(sqlx::AssertSqlSafe(query)).bind(name).fetch_optional(&self.pool).await?;
        Ok(row.map(TargetRow::from))
    }

    /// Where targets are probed from.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn regions(&self) -> Result<Vec<String>, StoreFailure> {
        Ok(sqlx::query_scalar("SELECT DISTINCT region FROM schedule ORDER BY region").fetch_all(&self.pool).await?)
    }

    /// What the API was given for a target, as it was sealed.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn definition(&self, name: &str) -> Result<Option<Vec<u8>>, StoreFailure> {
        let query = "SELECT definition FROM target WHERE name = $1 AND removed IS NULL";
        Ok(sqlx::query_scalar(query).bind(name).fetch_optional(&self.pool).await?)
    }

    /// How fresh each target is.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn freshness(&self) -> Result<Vec<Freshness>, StoreFailure> {
        let query = "SELECT name, last_slot, last_result, every FROM target WHERE removed IS NULL";
        let rows: Vec<(String, i64, i64, i64)> = sqlx::query_as(query).fetch_all(&self.pool).await?;
        let fresh = |(name, slot, result, every)| Freshness { name, last: (Moment(slot), Moment(result)), every };
        Ok(rows.into_iter().map(fresh).collect())
    }

    /// Since when the oldest message waits that nobody has taken, also while it waits for its next attempt.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn oldest_unsent(&self) -> Result<Option<Moment>, StoreFailure> {
        let statement = "SELECT min(created) FROM outbox WHERE delivered IS NULL AND recipients IS NULL";
        let oldest: Option<i64> = sqlx::query_scalar(statement).fetch_one(&self.pool).await?;
        Ok(oldest.map(Moment))
    }

    /// For how long a page has waited that nobody has taken, if that is longer than its channels are given.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn overdue_page(&self, now: Moment) -> Result<Option<Duration>, StoreFailure> {
        let oldest = self.oldest_unsent_page().await?;
        Ok(oldest.map(|oldest| now.since(oldest)).filter(|waited| *waited > OVERDUE))
    }

    /// Since when the oldest page waits that nobody has taken. Ends and reminders are none: somebody was told. One that is to be sent later,
    /// when the hours of its route begin or others of its group have had their time, waits from then on.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn oldest_unsent_page(&self) -> Result<Option<Moment>, StoreFailure> {
        let statement = "SELECT min(CASE WHEN outbox.due > outbox.created AND outbox.hop = 0 AND outbox.attempts = 0 \
             AND outbox.tried_since IS NULL THEN outbox.due ELSE outbox.created END) FROM outbox JOIN incident ON incident.id = outbox.incident \
             WHERE outbox.delivered IS NULL AND outbox.recipients IS NULL AND outbox.kind IN ('trigger', 'update', 'escalation') \
             AND incident.severity <> 'notify'";
        let oldest: Option<i64> = sqlx::query_scalar(statement).fetch_one(&self.pool).await?;
        Ok(oldest.map(Moment))
    }

    /// Regions of which nothing was heard for three intervals of the target that is probed most often there, or where a turn has
    /// waited for so long.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn silent_regions(&self, now: Moment) -> Result<Vec<String>, StoreFailure> {
        let is_silent =
            |region: &Region| region.is_late || region.heard.is_none_or(|heard| now.since(heard) > region.shortest * BLIND_AFTER + GRACE);
        let regions = self.heard_regions(now).await?;
        Ok(regions.into_iter().filter(|(_, region)| is_silent(region)).map(|(name, _)| name).collect())
    }

    /// Regions where a turn has waited for three intervals: nobody probes from there. What is probed and found inconclusive is not among
    /// them.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn unprobed_regions(&self, now: Moment) -> Result<Vec<String>, StoreFailure> {
        let regions = self.heard_regions(now).await?;
        Ok(regions.into_iter().filter(|(_, region)| region.is_late).map(|(name, _)| name).collect())
    }

    async fn heard_regions(&self, now: Moment) -> Result<BTreeMap<String, Region>, StoreFailure> {
        let statement = "SELECT schedule.region, schedule.due, target.every, target.state FROM schedule \
             JOIN target ON target.name = schedule.target WHERE target.removed IS NULL";
        let turns: Vec<(String, i64, i64, String)> = sqlx::query_as(statement).fetch_all(&self.pool).await?;
        let mut regions: BTreeMap<String, Region> = BTreeMap::new();
        for (name, due, every, state) in turns {
            let every = Duration::from_millis(every.unsigned_abs());
            let state: TargetState = serde_json::from_str(&state).unwrap_or_default();
            let heard = state.heard_from(&name).filter(|heard| *heard <= now + TOLERANCE);
            let region = regions.entry(name).or_insert(Region { shortest: every, heard: None, is_late: false });
            region.shortest = region.shortest.min(every);
            region.heard = region.heard.max(heard);
            region.is_late |= now.since(Moment(due)) > every * BLIND_AFTER + GRACE;
        }
        Ok(regions)
    }

    /// For how long the most belated of the due probes waits.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn oldest_due(&self, now: Moment) -> Result<Option<Moment>, StoreFailure> {
        let query = "SELECT min(due) FROM schedule WHERE due <= $1 AND lease_until <= $1";
        let oldest: Option<i64> = sqlx::query_scalar(query).bind(now.0).fetch_one(&self.pool).await?;
        Ok(oldest.map(Moment))
    }

    /// How often the contract changed, by level.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn contract_changes_by_level(&self) -> Result<Vec<(String, String, i64)>, StoreFailure> {
        let query = "SELECT target, level, count(*) FROM contract_change GROUP BY target, level";
        Ok(sqlx::query_as(query).fetch_all(&self.pool).await?)
    }

    /// When the certificate of each target ends, as far as that is known.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn certificates(&self) -> Result<BTreeMap<String, Moment>, StoreFailure> {
        let rows: Vec<(String, String)> =
            sqlx::query_as("SELECT name, state FROM target WHERE removed IS NULL").fetch_all(&self.pool).await?;
        let ends = |state: &str| serde_json::from_str::<TargetState>(state).ok()?.certificate_ends();
        Ok(rows.into_iter().filter_map(|(name, state)| Some((name, ends(&state)?))).collect())
    }
}
