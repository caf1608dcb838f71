//! Results, rollups and contracts over time.

use crate::latency::Latency;
use crate::moment::{DAY, FIVE_MINUTES, HOUR, Moment, millis};
use crate::state::Verdict;
use crate::store::packed;
use crate::store::values::Values;
use crate::store::{Store, StoreFailure};
use mcproof_record::ContractDiff;
use serde_json::value::RawValue;
use sqlx::FromRow as _;
use std::collections::BTreeMap;
use std::time::Duration;

/// More results than this are never read at once.
const MOST_RESULTS: i64 = 5_000;

/// Counts and latencies of a stretch of time.
#[derive(Clone, Debug, Default)]
pub struct Bucket {
    pub start: Moment,
    pub good: i64,
    pub bad: i64,
    pub inconclusive: i64,
    pub missed: i64,
    pub latency: Latency,
}

/// What lists show of a target's last day.
#[derive(Clone, Debug, Default)]
pub struct Strip {
    pub hours: Vec<Bucket>,
}

#[derive(Clone, Debug)]
pub struct ResultRow {
    pub target: String,
    pub slot: Moment,
    pub region: String,
    pub attempt: i64,
    pub at: Moment,
    pub verdict: Verdict,
    pub reason: String,
    /// Microseconds.
    pub duration: i64,
    /// Microseconds by phase, in the order in which they happened.
    pub phases: Vec<(String, i64)>,
    pub contract: Option<String>,
    pub evidence: Option<String>,
}

#[derive(Clone, Debug)]
pub struct ChangeRow {
    pub id: String,
    pub target: String,
    pub at: Moment,
    pub old_hash: String,
    pub new_hash: String,
    pub level: String,
    pub announced: bool,
}

impl Bucket {
    /// The share of conclusive probes that were good.
    pub fn share(&self) -> Option<f64> {
        let conclusive = self.good + self.bad;
        (conclusive > 0).then(|| self.good as f64 / conclusive as f64)
    }

    pub fn add(&mut self, other: &Self) {
        self.good += other.good;
        self.bad += other.bad;
        self.inconclusive += other.inconclusive;
        self.missed += other.missed;
        self.latency.merge(&other.latency);
    }

    fn of_result(row: &ResultRow) -> Self {
        let mut bucket = Self { start: row.slot, ..Self::default() };
        match row.verdict {
            Verdict::Up | Verdict::Warning => {
                bucket.good = 1;
                bucket.latency.record(u64::try_from(row.duration).unwrap_or(0));
            }
            Verdict::Down => bucket.bad = 1,
            Verdict::Inconclusive => bucket.inconclusive = 1,
        }
        bucket
    }
}

type ResultColumns = (String, i64, String, i64, i64, String, String, i64, String, Option<String>, Option<String>);

/// Start, counts, histogram.
type RollupColumns = (i64, i64, i64, i64, i64, Vec<u8>);
/// The same of a target.
type StripColumns = (String, i64, i64, i64, i64, i64, Vec<u8>);

impl From<RollupColumns> for Bucket {
    fn from((start, good, bad, inconclusive, missed, histogram): RollupColumns) -> Self {
        Self { start: Moment(start), good, bad, inconclusive, missed, latency: Latency::read(&histogram) }
    }
}

const RESULT: &str = "r.target, r.slot, r.region, r.attempt, r.at, r.verdict, r.reason, r.duration, r.phases, r.contract, r.evidence";

impl From<ResultColumns> for ResultRow {
    fn from(row: ResultColumns) -> Self {
        let (target, slot, region, attempt, at, verdict, reason, duration, phases, contract, evidence) = row;
        Self {
            target,
            slot: Moment(slot),
            region,
            attempt,
            at: Moment(at),
            verdict: Verdict::of_word(&verdict).unwrap_or(Verdict::Inconclusive),
            reason,
            duration,
            phases: phases_of(&phases),
            contract,
            evidence,
        }
    }
}

/// The key order of the JSON is the order of the phases.
fn phases_of(json: &str) -> Vec<(String, i64)> {
    let Ok(serde_json::Value::Object(map)) = serde_json::from_str(json) else { return Vec::new() };
    map.into_iter().filter_map(|(phase, micros)| Some((phase, micros.as_i64()?))).collect()
}

impl Store {
    /// The results of a target with slots from `from` on and before `until`, the newest first.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn results(&self, target: &str, from: Moment, until: Moment, limit: i64) -> Result<Vec<ResultRow>, StoreFailure> {
        let query = format!(
            "SELECT {RESULT} FROM result r WHERE r.target = $1 AND r.slot >= $2 AND r.slot < $3 \
             ORDER BY r.slot DESC, r.attempt DESC, r.region LIMIT $4"
        );
        let rows: Vec<ResultColumns> = sqlx::query_as(sqlx::AssertSqlSafe(query))
            .bind(target)
            .bind(from.0)
            .bind(until.0)
            .bind(limit.clamp(1, MOST_RESULTS))
            .fetch_all(&self.pool)
            .await?;
        Ok(rows.into_iter().map(ResultRow::from).collect())
    }

    /// The last result of each target. `CROSS JOIN`, here and for strips, keeps SQLite from beginning with the larger table.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn newest_results(&self) -> Result<BTreeMap<String, ResultRow>, StoreFailure> {
        let query = format!(
            "SELECT {RESULT} FROM target t CROSS JOIN result r \
             WHERE r.target = t.name AND r.slot = t.last_slot AND t.removed IS NULL ORDER BY r.at"
        );
        let rows: Vec<ResultColumns> = sqlx::query_as(sqlx::AssertSqlSafe(query)).fetch_all(&self.pool).await?;
        Ok(rows.into_iter().map(|row| (row.0.clone(), ResultRow::from(row))).collect())
    }

    /// Why nothing is known of a target: what its last probe says, where that was made since then and inconclusive.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn inconclusive(&self, since: Moment) -> Result<BTreeMap<String, String>, StoreFailure> {
        let mut reasons = BTreeMap::new();
        let results = self.newest_results().await?.into_iter();
        for (name, row) in results.filter(|(_, row)| row.verdict == Verdict::Inconclusive && row.at >= since) {
            let report = match &row.evidence {
                Some(id) => self.evidence(id).await?.map(|evidence| evidence.report),
                None => None,
            };
            // A probe in whose midst the machine was suspended says nothing, whatever it saw.
            let decided = report.filter(|report| report.reason.as_deref() == Some(&row.reason));
            let message = decided.and_then(|report| Some(report.diagnostics.into_iter().find(|one| one.code == row.reason)?.message));
            reasons.insert(name, message.unwrap_or(row.reason));
        }
        Ok(reasons)
    }

    /// The results of some targets with slots from `from` on, the oldest first.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn results_since(&self, targets: &[String], from: Moment) -> Result<Vec<ResultRow>, StoreFailure> {
        let mut found = Vec::new();
        for some in targets.chunks(50) {
            let places: Vec<String> = (2..some.len() + 2).map(|place| format!("${place}")).collect();
            let query = format!(
                "SELECT {RESULT} FROM result r WHERE r.target IN ({}) AND r.slot >= $1 ORDER BY r.slot, r.attempt, r.region",
                places.join(", ")
            );
            let mut query = sqlx::query_as::<_, ResultColumns>(sqlx::AssertSqlSafe(query)).bind(from.0);
            for target in some {
                query = query.bind(target.as_str());
            }
            found.extend(query.fetch_all(&self.pool).await?.into_iter().map(ResultRow::from));
        }
        Ok(found)
    }

    /// The rollups of one width, the oldest first.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn rollups(&self, target: &str, width: Duration, from: Moment) -> Result<Vec<Bucket>, StoreFailure> {
        let query = "SELECT start, good, bad, inconclusive, missed, histogram FROM rollup \
                     WHERE target = $1 AND width = $2 AND start >= $3 ORDER BY start";
        let rows: Vec<RollupColumns> = sqlx::query_as(query).bind(target).bind(millis(width)).bind(from.0).fetch_all(&self.pool).await?;
        Ok(rows.into_iter().map(Bucket::from).collect())
    }

    /// What is known from `from` on, in buckets of `width` and, after the last of those, in finer ones: the newest results are not
    /// rolled up yet.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn history(&self, target: &str, width: Duration, from: Moment, now: Moment) -> Result<Vec<Bucket>, StoreFailure> {
        let mut known = Vec::new();
        let mut next = from;
        for finer in [DAY, HOUR, FIVE_MINUTES].into_iter().filter(|finer| *finer <= width) {
            let rows = self.rollups(target, finer, next).await?;
            if let Some(last) = rows.last() {
                next = last.start + finer;
            }
            known.extend(rows);
        }
        // Confirmations replace the result of their slot.
        let mut last: BTreeMap<(Moment, String), Bucket> = BTreeMap::new();
        for row in self.results(target, next, now + DAY, MOST_RESULTS).await?.iter().rev() {
            last.insert((row.slot, row.region.clone()), Bucket::of_result(row));
        }
        known.extend(last.into_values());
        Ok(known)
    }

    /// The rollups of one width of all targets, by name.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn strips(&self, width: Duration, from: Moment) -> Result<BTreeMap<String, Strip>, StoreFailure> {
        let query = "SELECT t.name, r.start, r.good, r.bad, r.inconclusive, r.missed, r.histogram FROM target t \
             CROSS JOIN rollup r WHERE r.target = t.name AND r.width = $1 AND r.start >= $2 AND t.removed IS NULL \
             ORDER BY t.name, r.start";
        let rows: Vec<StripColumns> = sqlx::query_as(query).bind(millis(width)).bind(from.0).fetch_all(&self.pool).await?;
        Ok(by_name(rows))
    }

    /// The rollups of one width of some targets, by name.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn strips_of(&self, names: &[&str], width: Duration, from: Moment) -> Result<BTreeMap<String, Strip>, StoreFailure> {
        if names.is_empty() {
            return Ok(BTreeMap::new());
        }
        let statement = format!(
            "SELECT target, start, good, bad, inconclusive, missed, histogram FROM rollup \
             WHERE target IN (VALUES {{}}) AND width = {} AND start >= {} ORDER BY target, start",
            millis(width),
            from.0
        );
        let rows = Values::names(self.dialect, names.iter().copied()).query(&statement).fetch_all(&self.pool).await?;
        Ok(by_name(rows.iter().map(StripColumns::from_row).collect::<Result<_, _>>()?))
    }

    /// Contract changes of a target, the newest first.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn changes(&self, target: &str, limit: i64) -> Result<Vec<ChangeRow>, StoreFailure> {
        let query = "SELECT id, target, at, old_hash, new_hash, level, announced FROM contract_change WHERE target = $1 \
                     ORDER BY at DESC, id DESC LIMIT $2";
        let rows: Vec<ChangeColumns> = sqlx::query_as(query).bind(target).bind(limit).fetch_all(&self.pool).await?;
        Ok(rows.into_iter().map(ChangeRow::from).collect())
    }

    /// One change, and what it is in words. The difference is missing if it cannot be read.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn change(&self, id: &str) -> Result<Option<(ChangeRow, Option<ContractDiff>)>, StoreFailure> {
        let query = "SELECT id, target, at, old_hash, new_hash, level, announced FROM contract_change WHERE id = $1";
        let Some(row) = sqlx::query_as::<_, ChangeColumns>(query).bind(id).fetch_optional(&self.pool).await? else { return Ok(None) };
        let diff: Vec<u8> = sqlx::query_scalar("SELECT diff FROM contract_change WHERE id = $1").bind(id).fetch_one(&self.pool).await?;
        Ok(Some((ChangeRow::from(row), packed::unpack(&diff))))
    }

    /// The JSON of an evidence, as it was written.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn kept_evidence(&self, id: &str) -> Result<Option<(String, Moment, Box<RawValue>)>, StoreFailure> {
        let row: Option<(String, i64, Vec<u8>)> =
            sqlx::query_as("SELECT target, at, body FROM evidence WHERE id = $1").bind(id).fetch_optional(&self.pool).await?;
        Ok(row.and_then(|(target, at, body)| Some((target, Moment(at), packed::unpack(&body)?))))
    }
}

fn by_name(rows: Vec<StripColumns>) -> BTreeMap<String, Strip> {
    let mut strips: BTreeMap<String, Strip> = BTreeMap::new();
    for (name, start, good, bad, inconclusive, missed, histogram) in rows {
        strips.entry(name).or_default().hours.push((start, good, bad, inconclusive, missed, histogram).into());
    }
    strips
}

type ChangeColumns = (String, String, i64, String, String, String, i64);

impl From<ChangeColumns> for ChangeRow {
    fn from((id, target, at, old_hash, new_hash, level, announced): ChangeColumns) -> Self {
        Self { id, target, at: Moment(at), old_hash, new_hash, level, announced: announced != 0 }
    }
}
