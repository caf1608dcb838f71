//! The partitions of Postgres: results of one day are a table of their own, made before they are needed and dropped as a whole.
//! SQLite has none, and deletes rows.

use super::{Dialect, Store, StoreFailure};
use crate::moment::{DAY, Moment, millis};
use std::collections::BTreeSet;
use std::sync::PoisonError;

impl Store {
    /// Makes sure that there is a place for results of these slots.
    pub(super) async fn prepare_days(&self, slots: impl Iterator<Item = Moment>) -> Result<(), StoreFailure> {
        if self.dialect == Dialect::Sqlite {
            return Ok(());
        }
        let wanted: BTreeSet<i64> = slots.map(|slot| slot.day()).collect();
        let missing: Vec<i64> = {
            let known = self.days.lock().unwrap_or_else(PoisonError::into_inner);
            wanted.difference(&known).copied().collect()
        };
        for day in missing {
            self.make_day(day).await?;
            self.days.lock().unwrap_or_else(PoisonError::into_inner).insert(day);
        }
        Ok(())
    }

    async fn make_day(&self, day: i64) -> Result<(), StoreFailure> {
        let mut transaction = self.begin().await?;
        // Several processes may need it first.
        sqlx::query("SELECT pg_advisory_xact_lock(7131)").execute(&mut *transaction).await?;
        let (from, until) = (day * millis(DAY), (day + 1) * millis(DAY));
        let statement = format!("CREATE TABLE IF NOT EXISTS {} PARTITION OF result FOR VALUES FROM ({from}) TO ({until})", name(day));
        sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut *transaction).await?;
        Ok(transaction.commit().await?)
    }

    /// Drops the days that ended before this moment, and says how many.
    pub(super) async fn drop_days(&self, before: Moment) -> Result<usize, StoreFailure> {
        let statement = "SELECT CAST(c.relname AS TEXT) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid \
             JOIN pg_class p ON p.oid = i.inhparent WHERE p.relname = 'result'";
        let tables: Vec<String> = sqlx::query_scalar(statement).fetch_all(&self.pool).await?;
        let first_kept = before.day();
        let days = tables.iter().filter_map(|table| table.strip_prefix(PREFIX)?.parse::<i64>().ok());
        let old: Vec<i64> = days.filter(|day| *day < first_kept).collect();
        for day in &old {
            self.days.lock().unwrap_or_else(PoisonError::into_inner).remove(day);
            let statement = format!("DROP TABLE IF EXISTS {}", name(*day));
            sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&self.writer).await?;
        }
        Ok(old.len())
    }
}

const PREFIX: &str = "result_day_";

/// Days since 1970.
fn name(day: i64) -> String {
    format!("{PREFIX}{day}")
}
