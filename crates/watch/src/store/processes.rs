//! Which processes share the database, and which targets stand in the file of each: a target is monitored as long as one of them names it.
//! A process that starts with another file, or runs once with an older one, takes nothing away from those that run. What one that was
//! killed leaves behind is not seen any more, and that is told: nobody has said that it is not to be monitored.

use super::{Dialect, Store, StoreFailure};
use crate::moment::Moment;
use sqlx::{AnyConnection, Row as _};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// A process that said nothing for so long is gone.
pub(crate) const LONGEST_SILENCE: Duration = Duration::from_secs(30);

impl Store {
    /// This process runs, and these targets stand in its file.
    ///
    /// # Errors
    /// The database failed.
    pub async fn hold_targets(&self, process: &str, targets: &[&str], now: Moment) -> Result<(), StoreFailure> {
        let statement = "INSERT INTO monitor_process (name, seen, targets) VALUES ($1, $2, $3) \
             ON CONFLICT (name) DO UPDATE SET seen = excluded.seen, targets = excluded.targets";
        let targets = serde_json::to_string(targets).expect("names are JSON");
        sqlx::query(statement).bind(process).bind(now.0).bind(targets).execute(&self.writer).await?;
        Ok(())
    }

    /// Why this process goes on with an earlier version of its file; nothing if it has the one that is there.
    ///
    /// # Errors
    /// The database failed.
    pub async fn hold_rejection(&self, process: &str, why: Option<&str>) -> Result<(), StoreFailure> {
        let statement = "UPDATE monitor_process SET rejected = $1 WHERE name = $2";
        sqlx::query(statement).bind(why.map(str::to_owned)).bind(process).execute(&self.writer).await?;
        Ok(())
    }

    /// Why processes that run go on with an earlier version of their file, each reason once.
    ///
    /// # Errors
    /// The database failed.
    pub async fn rejections(&self, now: Moment) -> Result<BTreeSet<String>, StoreFailure> {
        let statement = "SELECT seen, rejected FROM monitor_process WHERE rejected IS NOT NULL";
        let rows: Vec<(i64, String)> = sqlx::query_as(statement).fetch_all(&self.pool).await?;
        Ok(rows.into_iter().filter(|(seen, _)| runs(Moment(*seen), now)).map(|(_, why)| why).collect())
    }

    /// This process ends.
    ///
    /// # Errors
    /// The database failed.
    pub async fn let_go(&self, process: &str) -> Result<(), StoreFailure> {
        sqlx::query("DELETE FROM monitor_process WHERE name = $1").bind(process).execute(&self.writer).await?;
        Ok(())
    }

    /// What stood in the files of processes that vanish from now on without a word stays, and is told as what nobody sees; until this is
    /// said again, by whoever reads its file. Gives when that was said before.
    pub fn keep_vanished_since(&self, now: Moment) -> Moment {
        Moment(self.kept_since.swap(now.0, Ordering::Relaxed))
    }

    pub(super) fn kept_since(&self) -> Moment {
        Moment(self.kept_since.load(Ordering::Relaxed))
    }

    /// The targets of the configuration that are monitored now, and those that the files of running processes name, or of those that
    /// vanished.
    ///
    /// # Errors
    /// The database failed.
    pub async fn monitored_and_held(&self, now: Moment) -> Result<(BTreeSet<String>, BTreeSet<String>), StoreFailure> {
        let mut connection = self.pool.acquire().await?;
        let statement = "SELECT name FROM target WHERE source = 'config' AND removed IS NULL";
        let monitored: Vec<String> = sqlx::query_scalar(statement).fetch_all(&mut *connection).await?;
        let monitored: BTreeSet<String> = monitored.into_iter().collect();
        let of_running = held(&mut connection, NEVER, now).await?;
        let mut held = held(&mut connection, self.kept_since(), now).await?;
        // What another process has removed since then stays removed.
        held.retain(|name| of_running.contains(name) || monitored.contains(name));
        Ok((monitored, held))
    }

    /// These are for other processes: no turn of theirs is taken here.
    pub fn leave_alone(&self, targets: &BTreeSet<String>) {
        let names = (!targets.is_empty()).then(|| Arc::from(serde_json::to_string(targets).expect("names are JSON")));
        *self.left_alone.write().unwrap_or_else(PoisonError::into_inner) = names;
    }

    /// What is left alone, as the value of one parameter, and the condition on a row of the schedule that leaves it out, in which that
    /// parameter has this number. However many they are, they are one parameter, and looked up.
    pub(super) fn left_alone(&self, parameter: usize) -> (Option<String>, String) {
        let names = self.left_alone.read().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(names) = names else { return (None, String::new()) };
        let listed = match self.dialect {
            Dialect::Sqlite => format!("SELECT value FROM json_each(${parameter})"),
            Dialect::Postgres => format!("SELECT jsonb_array_elements_text(CAST(${parameter} AS JSONB))"),
        };
        (Some(names.to_string()), format!(" AND schedule.target NOT IN ({listed})"))
    }
}

/// Later than any process vanishes: nothing of those is kept.
const NEVER: Moment = Moment(i64::MAX);

/// Nothing of processes that vanish is kept.
pub(super) fn never() -> Arc<AtomicI64> {
    Arc::new(AtomicI64::new(NEVER.0))
}

/// Whether a process that was heard of at that time runs. A clock that was set back has left behind what has not come yet.
fn runs(seen: Moment, now: Moment) -> bool {
    seen + LONGEST_SILENCE >= now && seen <= now + LONGEST_SILENCE
}

/// The targets that the files of running processes name, and of those that have vanished since then.
pub(super) async fn held(connection: &mut AnyConnection, kept_since: Moment, now: Moment) -> Result<BTreeSet<String>, sqlx::Error> {
    let statement = "SELECT seen, targets FROM monitor_process";
    let mut held = BTreeSet::new();
    for row in sqlx::query(statement).fetch_all(connection).await? {
        let (seen, targets): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
        let seen = Moment(seen);
        if runs(seen, now) || seen >= kept_since && seen < now {
            held.extend(serde_json::from_str::<Vec<String>>(&targets).unwrap_or_default());
        }
    }
    Ok(held)
}
