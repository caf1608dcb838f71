//! What one process does for all of them. Whoever takes a chore has it for a while; if it dies, another one takes it then.

use super::incidents::{self, Turn};
use super::{Store, StoreFailure};
use crate::config::Config;
use crate::moment::{Moment, millis};
use crate::state::{self, TargetState};
use sqlx::Row as _;
use std::time::Duration;

/// Nobody else does a chore for so long, unless it is done before.
const LEASE: Duration = Duration::from_secs(120);
/// Without a result for so many intervals a target is not seen any more.
pub const BLIND_AFTER: u32 = 3;

impl Store {
    /// When a chore was done last, if it is ours to do now.
    ///
    /// # Errors
    /// The database failed.
    pub async fn take_chore(&self, name: &str, holder: &str, every: Duration, now: Moment) -> Result<Option<Moment>, StoreFailure> {
        let make = "INSERT INTO chore (name) VALUES ($1) ON CONFLICT DO NOTHING";
        sqlx::query(make).bind(name).execute(&self.writer).await?;
        let take = "UPDATE chore SET holder = $1, lease_until = $2 WHERE name = $3 AND lease_until <= $4 AND last_run + $5 <= $4 \
             RETURNING last_run";
        let query = sqlx::query_scalar::<_, i64>(take).bind(holder).bind((now + LEASE).0).bind(name).bind(now.0).bind(millis(every));
        Ok(query.fetch_optional(&self.writer).await?.map(Moment))
    }

    /// A chore was done, up to this moment.
    ///
    /// # Errors
    /// The database failed.
    pub async fn end_chore(&self, name: &str, holder: &str, now: Moment) -> Result<(), StoreFailure> {
        let statement = "UPDATE chore SET last_run = $1, lease_until = 0 WHERE name = $2 AND holder = $3";
        sqlx::query(statement).bind(now.0).bind(name).bind(holder).execute(&self.writer).await?;
        Ok(())
    }

    /// Tells of `most` of the targets of which nothing was heard for three intervals and the time of a probe, and of which nobody was told yet;
    /// says how many these were. What was not to be heard before `started` does not count: the monitor itself was not there.
    ///
    /// # Errors
    /// The database failed.
    pub async fn sweep_blind(&self, config: &Config, region: &str, started: Moment, most: i64, now: Moment) -> Result<usize, StoreFailure> {
        let mut transaction = self.begin().await?;
        // A failure is confirmed later than in the next interval, if that is short, and a probe takes its time.
        let patience =
            format!("(every * {BLIND_AFTER} + COALESCE((SELECT MAX(patience) FROM schedule WHERE schedule.target = target.name), 0))");
        let statement = format!(
            "SELECT name, state, last_result, created FROM target WHERE removed IS NULL AND availability <> 'blind' \
             AND last_result + {patience} < $1 AND created + {patience} < $1 AND $2 + {patience} < $1 \
             ORDER BY name LIMIT $3 {}",
            self.dialect.lock()
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(statement)).bind(now.0).bind(started.0).bind(most);
        let rows = query.fetch_all(&mut *transaction).await?;
        let mut turns = Vec::new();
        for row in &rows {
            let (target, state): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            let heard = Moment(row.try_get::<i64, _>(2)?.max(row.try_get(3)?));
            let mut state: TargetState = serde_json::from_str(&state).unwrap_or_default();
            let effects = state::go_blind(&mut state, &target, heard, now);
            turns.push(Turn { target, region: region.to_owned(), state, effects, last_slot: None, last_result: None, evidence: None });
        }
        if !turns.is_empty() {
            incidents::apply(&mut transaction, config, &mut turns, now).await?;
        }
        transaction.commit().await?;
        Ok(turns.len())
    }
}
