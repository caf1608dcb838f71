//! Who did what: written down before it is done, with what came of it afterwards.

use super::{Store, StoreFailure, ids};
use crate::moment::Moment;
use mcproof_record::duration::readable;
use std::sync::Mutex;
use std::time::Duration;
use uuid::ContextV7;

/// What somebody is about to do.
#[derive(Clone, Copy, Debug)]
pub struct AuditEvent<'a> {
    pub who: &'a str,
    /// How they were recognized: `login`, `token`, `proxy`, `local`, `command line`, or by the service that told us: `pagerduty`, `slack`.
    pub via: &'a str,
    pub action: &'a str,
    /// The target, the incident, or whatever else it is about.
    pub subject: &'a str,
}

#[derive(Clone, Debug)]
pub struct AuditRow {
    pub id: String,
    pub at: Moment,
    pub who: String,
    pub via: String,
    pub action: String,
    pub subject: String,
    /// Nothing if nobody knows.
    pub outcome: Option<String>,
}

/// Of what people chose.
const LONGEST: usize = 200;

/// Of an entry that is about to be made. Entries of one millisecond sort in the order in which they were made.
pub(crate) fn new_id(now: Moment) -> String {
    static MADE: Mutex<ContextV7> = Mutex::new(ContextV7::new());
    ids::new(&MADE, now)
}

/// An action that holds for some time, in words of the audit log. A mute without any is its end.
pub fn lasting(action: &str, lasts: Duration) -> String {
    match lasts {
        Duration::ZERO if action == "mute" => "unmute".to_owned(),
        lasts => format!("{action} for {}", readable(lasts)),
    }
}

/// Whether an entry is a mute or the end of one, as [`lasting`] words them. Databases of earlier versions have `mute`.
pub(crate) const IS_MUTE: &str = "(action LIKE 'mute%' OR action = 'unmute')";

impl Store {
    /// Returns the id of the entry.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn write_down(&self, event: &AuditEvent<'_>, now: Moment) -> Result<String, StoreFailure> {
        let id = new_id(now);
        self.write_down_as(&id, event, now).await?;
        Ok(id)
    }

    /// Under an id that was made before: twice, it is one entry.
    pub(crate) async fn write_down_as(&self, id: &str, event: &AuditEvent<'_>, now: Moment) -> Result<(), StoreFailure> {
        let short = |text: &str| text.chars().take(LONGEST).collect::<String>();
        sqlx::query("INSERT INTO audit (id, at, who, via, action, subject) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING")
            .bind(id)
            .bind(now.0)
            .bind(short(event.who))
            .bind(event.via)
            .bind(short(event.action))
            .bind(short(event.subject))
            .execute(&self.writer)
            .await?;
        Ok(())
    }

    /// False if there is no such entry.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn write_outcome(&self, id: &str, outcome: &str) -> Result<bool, StoreFailure> {
        let query = "UPDATE audit SET outcome = $1 WHERE id = $2";
        Ok(sqlx::query(query).bind(outcome).bind(id).execute(&self.writer).await?.rows_affected() > 0)
    }

    /// The newest first; those before an entry, if one is named.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn audit(&self, before: Option<&str>, limit: i64) -> Result<Vec<AuditRow>, StoreFailure> {
        type Columns = (String, i64, String, String, String, String, Option<String>);
        let query = "SELECT id, at, who, via, action, subject, outcome FROM audit \
             WHERE $1 = '' OR (at, id) < (SELECT earlier.at, earlier.id FROM audit earlier WHERE earlier.id = $1) \
             ORDER BY at DESC, id DESC LIMIT $2";
        let rows: Vec<Columns> =
            sqlx::query_as(query).bind(before.unwrap_or_default()).bind(limit.clamp(1, 1_000)).fetch_all(&self.pool).await?;
        let row = |(id, at, who, via, action, subject, outcome)| AuditRow { id, at: Moment(at), who, via, action, subject, outcome };
        Ok(rows.into_iter().map(row).collect())
    }
}
