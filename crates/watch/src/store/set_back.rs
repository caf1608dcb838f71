//! After the clock was set back: what was written by the clock as it was lies in the future, and is not believed any more. Turns
//! begin anew, results that are still to come are no results, and messages wait for nothing. What people decided meanwhile lasts as long
//! as they said, from now on.

use super::audit::IS_MUTE;
use super::values::Values;
use super::{Dialect, Store, StoreFailure, ids};
use crate::clock::TOLERANCE;
use crate::moment::{Moment, millis};
use crate::schedule::{Grid, Turn};
use crate::state::TargetState;
use sqlx::{Any, Row as _, Transaction};
use std::time::{Duration, Instant};

/// Rows in one statement.
pub(super) const ROWS: usize = 200;

impl Store {
    /// What time it is by the clock of the database, and when that was so. SQLite has none of its own.
    pub(crate) async fn time(&self) -> Result<Option<(Moment, Instant)>, StoreFailure> {
        if self.dialect == Dialect::Sqlite {
            return Ok(None);
        }
        // The wait for a connection is no part of the way to the database.
        let mut connection = self.pool.acquire().await?;
        let asked = Instant::now();
        let statement = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)";
        let millis: i64 = sqlx::query_scalar(statement).fetch_one(&mut *connection).await?;
        Ok(Some((Moment(millis), asked + asked.elapsed() / 2)))
    }

    /// Forgets every time that has not come yet, if there are chores that were done or results that were written later than now.
    /// False if there are none.
    ///
    /// # Errors
    /// The database failed; everything is as it was.
    pub async fn recover_from_set_back(&self, now: Moment) -> Result<bool, StoreFailure> {
        // Whoever only reads does not wait for those who write.
        let statement = "SELECT MAX(latest) FROM (SELECT MAX(last_run) AS latest FROM chore UNION ALL SELECT MAX(last_slot) FROM target \
             UNION ALL SELECT MAX(last_result) FROM target) AS written";
        let latest: Option<i64> = sqlx::query_scalar(statement).fetch_one(&self.pool).await?;
        if latest.is_none_or(|latest| Moment(latest) <= now + TOLERANCE) {
            return Ok(false);
        }
        let mut transaction = self.begin().await?;
        begin_turns_anew(&mut transaction, self.dialect, now).await?;
        begin_decisions_anew(&mut transaction, now).await?;
        for statement in [
            "UPDATE target SET last_slot = CASE WHEN last_slot > $1 THEN 0 ELSE last_slot END, \
             last_result = CASE WHEN last_result > $1 THEN 0 ELSE last_result END, \
             since = CASE WHEN since > $1 THEN $1 ELSE since END, created = CASE WHEN created > $1 THEN $1 ELSE created END \
             WHERE last_slot > $1 OR last_result > $1 OR since > $1 OR created > $1",
            "UPDATE incident SET since = CASE WHEN since > $1 THEN $1 ELSE since END, opened = $1 WHERE opened > $1",
            "UPDATE incident SET resolved = $1 WHERE resolved > $1",
            "UPDATE outbox SET due = $1 WHERE due > $1 AND (delivered IS NULL OR kind = 'repeat')",
            "UPDATE outbox SET created = $1 WHERE created > $1",
            // What is told of it, and acknowledged, from now on is later than that.
            "UPDATE incident_event SET at = $1 - 1 WHERE kind IN ('raised', 'worse', 'changed', 'joined') AND at > $1",
            "UPDATE incident SET acknowledged = $1 WHERE acknowledged > $1 AND resolved IS NULL",
            "UPDATE outbox SET tried_since = $1 WHERE tried_since > $1",
            "UPDATE outbox SET delivered = $1 WHERE delivered > $1",
            // What a job said last stays what it said last.
            "UPDATE push SET started = CASE WHEN started > $1 THEN $1 - CASE WHEN succeeded > started THEN 1 ELSE 0 END \
             - CASE WHEN failed > started THEN 1 ELSE 0 END ELSE started END, \
             succeeded = CASE WHEN succeeded > $1 THEN $1 - CASE WHEN started > succeeded THEN 1 ELSE 0 END \
             - CASE WHEN failed > succeeded THEN 1 ELSE 0 END ELSE succeeded END, \
             failed = CASE WHEN failed > $1 THEN $1 - CASE WHEN started > failed THEN 1 ELSE 0 END \
             - CASE WHEN succeeded > failed THEN 1 ELSE 0 END ELSE failed END \
             WHERE started > $1 OR succeeded > $1 OR failed > $1",
            // What readers of the status page are told is told now, and to those who have asked for it.
            "UPDATE notice SET updated = CASE WHEN updated > $1 THEN $1 ELSE updated END, \
             resolved = CASE WHEN resolved > $1 THEN $1 ELSE resolved END WHERE updated > $1 OR resolved > $1",
            "UPDATE notice_update SET at = $1 WHERE at > $1",
            "UPDATE subscription SET created = CASE WHEN created > $1 THEN $1 ELSE created END, \
             asked = CASE WHEN asked > $1 THEN $1 ELSE asked END, confirmed = CASE WHEN confirmed > $1 THEN $1 ELSE confirmed END \
             WHERE created > $1 OR asked > $1 OR confirmed > $1",
            "UPDATE subscription_message SET created = CASE WHEN created > $1 THEN $1 ELSE created END, due = $1 \
             WHERE due > $1 AND delivered IS NULL",
            "UPDATE chore SET last_run = $1, lease_until = 0 WHERE last_run > $1",
        ] {
            sqlx::query(statement).bind(now.0).execute(&mut *transaction).await?;
        }
        forget_in_states(&mut transaction, self.dialect, now).await?;
        transaction.commit().await?;
        Ok(true)
    }
}

/// What somebody muted, silenced or announced by the clock as it was lasts as long from now on, and what they ended has ended. What was
/// to begin at a time that they named themselves begins at that time.
async fn begin_decisions_anew(transaction: &mut Transaction<'_, Any>, now: Moment) -> Result<(), StoreFailure> {
    /// What was refused, or was said by the right clock, is not meant.
    const SAID: &str = "FROM audit WHERE at > $1 AND COALESCE(outcome, 'done') = 'done' AND";
    let muted = format!("{SAID} {IS_MUTE} AND subject = target.name");
    let ended = |table: &str, action: &str| {
        format!("UPDATE {table} SET ends = $1 WHERE ends > $1 AND EXISTS (SELECT 1 {SAID} action = '{action}' AND subject = {table}.id)")
    };
    let statements = [
        format!(
            "UPDATE target SET muted_until = muted_until - (SELECT MAX(at) {muted}) + $1 WHERE muted_until > $1 AND EXISTS (SELECT 1 {muted})"
        ),
        ended("silence", "end a silence"),
        ended("maintenance", "end work"),
        "UPDATE deploy SET until = until - at + $1, at = $1 WHERE at > $1".to_owned(),
        // Whoever decides from now on does so later.
        "UPDATE audit SET at = $1 WHERE at > $1".to_owned(),
    ];
    for table in ["silence", "maintenance"] {
        let statement = format!("SELECT id, starts FROM {table} WHERE starts > $1");
        let planned: Vec<(String, i64)> = sqlx::query_as(sqlx::AssertSqlSafe(statement)).bind(now.0).fetch_all(&mut **transaction).await?;
        for (id, _) in planned.iter().filter(|(id, starts)| ids::made_at(id) == Some(Moment(*starts))) {
            let statement = format!("UPDATE {table} SET ends = ends - starts + $1, starts = $1 WHERE id = $2");
            sqlx::query(sqlx::AssertSqlSafe(statement)).bind(now.0).bind(id).execute(&mut **transaction).await?;
        }
    }
    for statement in statements {
        sqlx::query(sqlx::AssertSqlSafe(statement)).bind(now.0).execute(&mut **transaction).await?;
    }
    Ok(())
}

/// No turn is further away than an interval, and no lease longer than its patience.
async fn begin_turns_anew(transaction: &mut Transaction<'_, Any>, dialect: Dialect, now: Moment) -> Result<(), StoreFailure> {
    let statement = format!(
        "SELECT schedule.target, schedule.region, target.every FROM schedule JOIN target ON target.name = schedule.target \
         WHERE schedule.due > $1 + target.every OR schedule.lease_until > $1 + schedule.patience + {}",
        millis(TOLERANCE)
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(statement)).bind(now.0).fetch_all(&mut **transaction).await?;
    let spread = super::schedule::spread(rows.len());
    for some in rows.chunks(ROWS) {
        let mut values = Values::new(dialect);
        for row in some {
            let (target, region, every): (String, String, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            let turn = Turn::first(Grid::new(&target, Duration::from_millis(every.unsigned_abs())), now, spread);
            values.row(|row| {
                row.add(target).add(region).add(turn.slot.0).add(i64::from(turn.attempt)).add(turn.due.0);
            });
        }
        let statement = "UPDATE schedule SET slot = v.column3, attempt = v.column4, due = v.column5, lease_until = 0, epoch = epoch + 1 \
             FROM (VALUES {}) AS v WHERE schedule.target = v.column1 AND schedule.region = v.column2";
        values.query(statement).execute(&mut **transaction).await?;
    }
    Ok(())
}

async fn forget_in_states(transaction: &mut Transaction<'_, Any>, dialect: Dialect, now: Moment) -> Result<(), StoreFailure> {
    let statement = format!("SELECT name, state FROM target WHERE removed IS NULL ORDER BY name {}", dialect.lock());
    let rows = sqlx::query(sqlx::AssertSqlSafe(statement)).fetch_all(&mut **transaction).await?;
    for some in rows.chunks(ROWS) {
        let mut values = Values::new(dialect);
        for row in some {
            let (name, state): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            let mut state: TargetState = serde_json::from_str(&state).unwrap_or_default();
            state.set_back(now);
            values.row(|row| {
                row.add(name).add(serde_json::to_string(&state).expect("a state has text keys only"));
            });
        }
        let statement = "UPDATE target SET state = v.column2 FROM (VALUES {}) AS v WHERE target.name = v.column1";
        values.query(statement).execute(&mut **transaction).await?;
    }
    Ok(())
}
