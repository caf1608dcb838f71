//! What is kept, and for how long: results and evidence for days, counts for months and years. Contracts, incidents and the
//! counts of days stay.

use super::values::Values;
use super::{Dialect, Store, StoreFailure};
use crate::config::Retention;
use crate::moment::{DAY, FIVE_MINUTES, HOUR, Moment, millis};

/// Targets in one transaction, so that nobody waits long for it.
const TARGETS: usize = 100;
/// Days of Postgres that are made before they are needed.
const AHEAD: u32 = 2;

impl Store {
    /// Deletes what is older than it has to be, and makes room for the days to come.
    ///
    /// # Errors
    /// The database failed; what was deleted before is gone.
    pub async fn retain(&self, retention: &Retention, now: Moment) -> Result<(), StoreFailure> {
        self.prepare_days((0..=AHEAD).map(|days| now + DAY * days)).await?;
        let raw = now - retention.raw;
        sqlx::query("DELETE FROM evidence WHERE at < $1").bind(raw.0).execute(&self.writer).await?;
        // What people did is kept as long as sums over hours are.
        let old = now - retention.hours;
        for (statement, until) in [
            ("DELETE FROM ended_login WHERE until < $1", now),
            ("DELETE FROM silence WHERE ends < $1", old),
            ("DELETE FROM audit WHERE at < $1", old),
            ("DELETE FROM notice_update WHERE notice IN (SELECT id FROM notice WHERE resolved < $1)", old),
            ("DELETE FROM notice WHERE resolved < $1", old),
            ("DELETE FROM taken_call WHERE at < $1", now - DAY * 2),
            // Of processes that were killed.
            ("DELETE FROM monitor_process WHERE seen < $1", now - DAY),
        ] {
            sqlx::query(statement).bind(until.0).execute(&self.writer).await?;
        }
        let mut statements: Vec<String> = [(FIVE_MINUTES, retention.five_minutes), (HOUR, retention.hours)]
            .map(|(width, kept)| {
                let (width, until) = (millis(width), (now - kept).0);
                format!("DELETE FROM rollup WHERE target IN (VALUES {{}}) AND width = {width} AND start < {until}")
            })
            .into();
        match self.dialect {
            Dialect::Postgres => drop(self.drop_days(raw).await?),
            Dialect::Sqlite => statements.push(format!("DELETE FROM result WHERE target IN (VALUES {{}}) AND slot < {}", raw.0)),
        }
        let names: Vec<String> = sqlx::query_scalar("SELECT name FROM target ORDER BY name").fetch_all(&self.pool).await?;
        for some in names.chunks(TARGETS) {
            for statement in &statements {
                Values::names(self.dialect, some.iter().map(String::as_str)).query(statement).execute(&self.writer).await?;
            }
        }
        Ok(())
    }
}
