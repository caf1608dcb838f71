//! The tables of a database, made or brought up to date. A newer program reads the database of an older one; an older program leaves that
//! of a newer one alone.

use super::{Dialect, Store, StoreFailure};
use sqlx::{Any, Executor as _, Transaction};

const SCHEMA: &str = include_str!("schema.sql");
/// The version of the tables, as the store itself says it.
pub(super) const VERSION: i64 = 9;

/// What makes each version of the one before it: tables that are new come with it from the schema, as they are in the latest version.
const STEPS: [Step; 8] = [
    Step {
        changes: &[
            ("api_token", "ALTER TABLE api_token RENAME COLUMN scope TO role"),
            // Who could write could do everything.
            ("api_token", "UPDATE api_token SET role = CASE role WHEN 'write' THEN 'admin' ELSE 'viewer' END"),
        ],
        tables: &["ended_login", "audit", "silence", "push"],
    },
    Step { changes: &[], tables: &["taken_call"] },
    Step { changes: &[], tables: &["notice", "notice_update"] },
    Step { changes: &[], tables: &["subscription", "subscription_token", "subscription_news", "subscription_message"] },
    Step { changes: &[("audit", "ALTER TABLE audit RENAME COLUMN deed TO action")], tables: &[] },
    Step { changes: &[], tables: &["monitor_process"] },
    Step {
        changes: &[
            ("outbox", "ALTER TABLE outbox ADD COLUMN recipients TEXT"),
            ("monitor_process", "ALTER TABLE monitor_process ADD COLUMN rejected TEXT"),
        ],
        tables: &[],
    },
    Step { changes: &[("outbox", "ALTER TABLE outbox ADD COLUMN destination TEXT")], tables: &[] },
];

struct Step {
    /// Statements for a table that an earlier version has left.
    changes: &'static [(&'static str, &'static str)],
    tables: &'static [&'static str],
}

impl Store {
    pub(super) async fn prepare(&self) -> Result<(), StoreFailure> {
        let mut transaction = self.begin().await?;
        if self.dialect == Dialect::Postgres {
            // Several processes may start at once.
            transaction.execute("SELECT pg_advisory_xact_lock(7130)").await?;
        }
        transaction.execute("CREATE TABLE IF NOT EXISTS layout (version BIGINT NOT NULL)").await?;
        let version: Option<i64> = sqlx::query_scalar("SELECT version FROM layout").fetch_optional(&mut *transaction).await?;
        match version {
            Some(version) if version > VERSION => return Err(StoreFailure::Newer(version)),
            Some(VERSION) => {}
            Some(version) => {
                let steps = &STEPS[usize::try_from(version - 1).unwrap_or(0)..];
                for (at, step) in steps.iter().enumerate() {
                    // A table that one of these steps has made is as it is to be.
                    let is_old = |table: &str| !steps[..at].iter().any(|earlier| earlier.tables.contains(&table));
                    step.take(&mut transaction, self.dialect, is_old).await?;
                }
                sqlx::query("UPDATE layout SET version = $1").bind(VERSION).execute(&mut *transaction).await?;
            }
            None => {
                for statement in statements(&spelled(self.dialect)) {
                    run(&mut transaction, statement).await?;
                }
                sqlx::query("INSERT INTO layout (version) VALUES ($1)").bind(VERSION).execute(&mut *transaction).await?;
            }
        }
        Ok(transaction.commit().await?)
    }
}

impl Step {
    async fn take(
        &self,
        transaction: &mut Transaction<'_, Any>,
        dialect: Dialect,
        is_old: impl Fn(&str) -> bool,
    ) -> Result<(), sqlx::Error> {
        for (_, change) in self.changes.iter().filter(|(table, _)| is_old(table)) {
            run(transaction, change).await?;
        }
        let schema = spelled(dialect);
        let is_new = |statement: &&str| {
            let mut words = statement.split([' ', '(', '\n']).filter(|word| !word.is_empty());
            words.any(|word| self.tables.contains(&word))
        };
        for statement in statements(&schema).filter(is_new) {
            run(transaction, statement).await?;
        }
        Ok(())
    }
}

async fn run(transaction: &mut Transaction<'_, Any>, statement: &str) -> Result<(), sqlx::Error> {
    sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut **transaction).await.map(drop)
}

fn statements(schema: &str) -> impl Iterator<Item = &str> {
    schema.split(';').map(str::trim).filter(|statement| !statement.is_empty())
}

fn spelled(dialect: Dialect) -> String {
    let lines = SCHEMA.lines().filter(|line| !line.trim_start().starts_with("--"));
    let schema = lines.collect::<Vec<_>>().join("\n");
    match dialect {
        Dialect::Sqlite => schema.replace("/* by key */", "WITHOUT ROWID"),
        Dialect::Postgres => schema.replace("BLOB", "BYTEA").replace("/* by day */", "PARTITION BY RANGE (slot)"),
    }
}
