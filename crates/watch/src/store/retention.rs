//! What is kept, and for how long: results and evidence for days, counts for months and years. Contracts, incidents and the
//! counts of days stay.

use super::values::Values;
use super::{Dialect, Store, StoreFailure};
use crate::config::Retention;
use crate::moment::Moment;

/// Targets in one transaction, so that nobody waits long for it.
const TARGETS: usize = 100;
const FIVE_MINUTES: i64 = 300_000;
const HOUR: i64 = 3_600_000;
/// Days of Postgres that are made before they are needed.
const AHEAD: i64 = 2;
const DAY: i64 = 86_400_000;

impl Store {
    /// Deletes what is older than it has to be, and makes room for the days to come.
    ///
    /// # Errors
    /// The database failed; what was deleted before is gone.
    pub async fn retain(&self, retention: &Retention, now: Moment) -> Result<(), StoreFailure> {
        self.prepare_days((0..=AHEAD).map(|days| Moment(now.0 + days * DAY))).await?;
        let raw = now - retention.raw;
        sqlx::query("DELETE FROM evidence WHERE at < $1").bind(raw.0).execute(&self.pool).await?;
        let mut statements = vec![
            format!(
                "DELETE FROM rollup WHERE target IN (VALUES {{}}) AND width = {FIVE_MINUTES} AND start < {}",
                (now - retention.five_minutes).0
            ),
            format!("DELETE FROM rollup WHERE target IN (VALUES {{}}) AND width = {HOUR} AND start < {}", (now - retention.hours).0),
        ];
        match self.dialect {
            Dialect::Postgres => drop(self.drop_days(raw).await?),
            Dialect::Sqlite => statements.push(format!("DELETE FROM result WHERE target IN (VALUES {{}}) AND slot < {}", raw.0)),
        }
        let names: Vec<String> = sqlx::query_scalar("SELECT name FROM target ORDER BY name").fetch_all(&self.pool).await?;
        for some in names.chunks(TARGETS) {
            for statement in &statements {
                let mut values = Values::default();
                some.iter().for_each(|name| {
                    values.row(|row| {
                        row.add(name.clone());
                    })
                });
                values.query(statement).execute(&self.pool).await?;
            }
        }
        Ok(())
    }
}
