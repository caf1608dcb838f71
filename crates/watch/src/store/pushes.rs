//! What jobs report.

use super::{Store, StoreFailure};
use crate::moment::Moment;
use crate::push::{Reported, Said};

/// Characters of what a job says beside its failure.
const LONGEST: usize = 500;

impl Store {
    /// A job reports in.
    ///
    /// # Errors
    /// The database does not respond: the job has to say it again.
    pub async fn push(&self, target: &str, said: Said, message: &str, now: Moment) -> Result<(), StoreFailure> {
        let column = match said {
            Said::Started => "started",
            Said::Succeeded => "succeeded",
            Said::Failed => "failed",
        };
        // No text of Postgres has a NUL in it.
        let message: String = message.chars().filter(|character| *character != '\0').take(LONGEST).collect();
        // Why the run before it failed is still true when the next one begins.
        let said_with = if said == Said::Started { "" } else { ", message = excluded.message" };
        let statement = format!(
            "INSERT INTO push (target, {column}, message) VALUES ($1, $2, $3) \
             ON CONFLICT (target) DO UPDATE SET {column} = excluded.{column}{said_with}"
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(statement)).bind(target).bind(now.0).bind(message);
        query.execute(&self.writer).await?;
        Ok(())
    }

    /// What a job said last, and since when it is known.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn pushed(&self, target: &str) -> Result<Reported, StoreFailure> {
        type Columns = (i64, Option<i64>, Option<i64>, Option<i64>, Option<String>);
        let query = "SELECT target.created, push.started, push.succeeded, push.failed, push.message FROM target \
             LEFT JOIN push ON push.target = target.name WHERE target.name = $1";
        let row: Option<Columns> = sqlx::query_as(query).bind(target).fetch_optional(&self.pool).await?;
        let Some((known, started, succeeded, failed, message)) = row else { return Ok(Reported::default()) };
        Ok(Reported {
            known: Moment(known),
            started: started.map(Moment),
            succeeded: succeeded.map(Moment),
            failed: failed.map(Moment),
            message: message.unwrap_or_default(),
        })
    }
}
