//! After the clock was set forward: what waits to be confirmed waits as long as it would have, so that failures do not come closer
//! together than they should.

use super::values::Values;
use super::{Store, StoreFailure};
use crate::moment::{Moment, millis};
use crate::state::TargetState;
use std::time::Duration;

/// Several processes on one Postgres notice it within this time.
const NOTICED_WITHIN: Duration = Duration::from_secs(30);
/// No confirmation is further away.
const FURTHEST: Duration = Duration::from_secs(600);

impl Store {
    /// Moves everything that is looked at out of turn by the time by which the clock was set forward. The first process that notices
    /// does it for all of them. False if it was done before.
    ///
    /// # Errors
    /// The database failed; everything is as it was.
    pub async fn keep_confirmations_apart(&self, jump: Duration, now: Moment) -> Result<bool, StoreFailure> {
        let mut transaction = self.begin().await?;
        sqlx::query("INSERT INTO chore (name) VALUES ('set-forward') ON CONFLICT DO NOTHING").execute(&mut *transaction).await?;
        let first = "UPDATE chore SET last_run = $1 WHERE name = 'set-forward' AND last_run < $2";
        let first = sqlx::query(first).bind(now.0).bind((now - jump - NOTICED_WITHIN).0).execute(&mut *transaction).await?;
        if first.rows_affected() == 0 {
            return Ok(false);
        }
        // What was written since is due later than anything that was written before.
        let statement = "UPDATE schedule SET due = due + $1 WHERE attempt > 0 AND due < $2";
        let until = now - jump + FURTHEST;
        sqlx::query(statement).bind(millis(jump)).bind(until.0).execute(&mut *transaction).await?;
        let statement = format!(
            "SELECT name, state FROM target WHERE availability = 'suspect' AND removed IS NULL ORDER BY name {}",
            self.dialect.lock()
        );
        let suspects: Vec<(String, String)> = sqlx::query_as(sqlx::AssertSqlSafe(statement)).fetch_all(&mut *transaction).await?;
        for some in suspects.chunks(super::set_back::ROWS) {
            let mut values = Values::new(self.dialect);
            for (name, state) in some {
                let mut state: TargetState = serde_json::from_str(state).unwrap_or_default();
                state.set_forward(jump);
                values.row(|row| {
                    row.add(name.clone()).add(serde_json::to_string(&state).expect("a state has text keys only"));
                });
            }
            let statement = "UPDATE target SET state = v.column2 FROM (VALUES {}) AS v WHERE target.name = v.column1";
            values.query(statement).execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        Ok(true)
    }
}
