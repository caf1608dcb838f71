//! Notices: what operators tell the readers of the status page, one update after the other.

use super::{Store, StoreFailure, ids};
use crate::moment::Moment;
use sqlx::Row as _;
use std::collections::BTreeMap;
use std::time::Duration;
use uuid::NoContext;

/// How long the status page shows a notice after it is resolved.
pub const SHOWN: Duration = Duration::from_secs(14 * 86_400);
/// Notices on the status page and in its feed.
const MOST: i64 = 50;
/// Updates of one notice.
const MOST_UPDATES: i64 = 100;
/// Characters of a title, and of a text.
const LONGEST_TITLE: usize = 200;
const LONGEST_TEXT: usize = 5_000;
const MOST_TARGETS: usize = 100;

/// How far the work on an problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    Investigating,
    Identified,
    Monitoring,
    Resolved,
    /// Nothing is wrong: a plan or a notice.
    Information,
}

impl Progress {
    pub const ALL: [Self; 5] = [Self::Investigating, Self::Identified, Self::Monitoring, Self::Resolved, Self::Information];

    /// As in the store, the API and the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Investigating => "investigating",
            Self::Identified => "identified",
            Self::Monitoring => "monitoring",
            Self::Resolved => "resolved",
            Self::Information => "information",
        }
    }

    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|progress| progress.word() == word)
    }
}

/// One message to the readers of the status page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeUpdate {
    pub at: Moment,
    /// Not shown in public.
    pub author: String,
    pub progress: Progress,
    pub text: String,
}

/// A notice with its updates, the oldest first.
#[derive(Clone, Debug)]
pub struct Notice {
    pub id: String,
    pub title: String,
    /// The names of the affected targets; empty if that is not said.
    pub targets: Vec<String>,
    pub updates: Vec<NoticeUpdate>,
}

/// Why a notice or an update is refused, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidNotice {
    pub problem: String,
    pub remedy: String,
}

impl InvalidNotice {
    fn new<T>(problem: impl Into<String>, remedy: impl Into<String>) -> Result<T, Self> {
        Err(Self { problem: problem.into(), remedy: remedy.into() })
    }
}

impl NoticeUpdate {
    /// # Errors
    /// A progress or a text that is not accepted.
    pub fn read(at: Moment, author: String, progress: &str, text: &str) -> Result<Self, InvalidNotice> {
        let Some(progress) = Progress::of_word(progress) else {
            let words = Progress::ALL.map(Progress::word).join(", ");
            return InvalidNotice::new(format!("unknown progress `{progress}`"), format!("use one of {words}"));
        };
        match text.trim() {
            "" => InvalidNotice::new("the text is missing", "add the text of the update"),
            text if text.chars().count() > LONGEST_TEXT => InvalidNotice::new("the text is too long", "use up to 5000 characters"),
            text => Ok(Self { at, author, progress, text: text.to_owned() }),
        }
    }
}

impl Notice {
    /// The latest update: every notice is made with one.
    pub fn latest(&self) -> Option<&NoticeUpdate> {
        self.updates.last()
    }

    pub fn is_resolved(&self) -> bool {
        self.latest().is_some_and(|update| update.progress == Progress::Resolved)
    }
}

impl Store {
    /// Whether a notice may have this title and be about these targets.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn review_subject(&self, title: &str, targets: &[String]) -> Result<Result<(), InvalidNotice>, StoreFailure> {
        let length = title.trim().chars().count();
        let refused = match () {
            () if length == 0 => InvalidNotice::new("the title is missing", "add a title"),
            () if length > LONGEST_TITLE => InvalidNotice::new("the title is too long", "use up to 200 characters"),
            () if targets.len() > MOST_TARGETS => InvalidNotice::new("there are too many targets", "name up to 100 targets, or none"),
            () => Ok(()),
        };
        for target in targets.iter().filter(|_| refused.is_ok()) {
            if !self.target(target).await?.is_some_and(|target| target.public) {
                return Ok(InvalidNotice::new(format!("`{target}` is not a public target"), "name targets with `public: true`, or none"));
            }
        }
        Ok(refused)
    }

    /// Returns the id of the notice.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn post_notice(&self, title: &str, targets: &[String], first: &NoticeUpdate) -> Result<String, StoreFailure> {
        let id = ids::new(NoContext, first.at);
        let mut transaction = self.begin().await?;
        sqlx::query("INSERT INTO notice (id, title, targets, updated, resolved) VALUES ($1, $2, $3, $4, $5)")
            .bind(id.as_str())
            .bind(title)
            .bind(serde_json::Value::from(targets.to_vec()).to_string())
            .bind(first.at.0)
            .bind(resolved(first))
            .execute(&mut *transaction)
            .await?;
        insert(&mut transaction, &id, first).await?;
        transaction.commit().await?;
        Ok(id)
    }

    /// Adds an update. False if there is no such notice.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn update_notice(&self, id: &str, update: &NoticeUpdate) -> Result<bool, StoreFailure> {
        let mut transaction = self.begin().await?;
        let known = sqlx::query("UPDATE notice SET updated = $1, resolved = $2 WHERE id = $3")
            .bind(update.at.0)
            .bind(resolved(update))
            .bind(id)
            .execute(&mut *transaction)
            .await?;
        if known.rows_affected() == 0 {
            return Ok(false);
        }
        insert(&mut transaction, id, update).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Removes a notice that was a mistake. False if there is none.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn withdraw_notice(&self, id: &str) -> Result<bool, StoreFailure> {
        let mut transaction = self.begin().await?;
        sqlx::query("DELETE FROM notice_update WHERE notice = $1").bind(id).execute(&mut *transaction).await?;
        let removed = sqlx::query("DELETE FROM notice WHERE id = $1").bind(id).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(removed.rows_affected() > 0)
    }

    /// Those that are not resolved, or not for long, the latest first.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn notices(&self, now: Moment) -> Result<Vec<Notice>, StoreFailure> {
        let since = now - SHOWN;
        let query = format!("SELECT id, title, targets FROM notice WHERE resolved IS NULL OR resolved > $1 ORDER BY id DESC LIMIT {MOST}");
        let rows: Vec<(String, String, String)> = sqlx::query_as(sqlx::AssertSqlSafe(query)).bind(since.0).fetch_all(&self.pool).await?;
        let query = format!(
            "SELECT notice, at, author, progress, text FROM notice_update \
             WHERE notice IN (SELECT id FROM notice WHERE resolved IS NULL OR resolved > $1) ORDER BY number DESC LIMIT {}",
            MOST * MOST_UPDATES
        );
        let mut updates: BTreeMap<String, Vec<NoticeUpdate>> = BTreeMap::new();
        for row in sqlx::query(sqlx::AssertSqlSafe(query)).bind(since.0).fetch_all(&self.pool).await? {
            let progress: String = row.try_get(3)?;
            let update = NoticeUpdate {
                at: Moment(row.try_get(1)?),
                author: row.try_get(2)?,
                progress: Progress::of_word(&progress).unwrap_or(Progress::Information),
                text: row.try_get(4)?,
            };
            updates.entry(row.try_get(0)?).or_default().push(update);
        }
        let notice = |(id, title, targets): (String, String, String)| {
            let mut updates = updates.remove(&id).unwrap_or_default();
            updates.reverse();
            Notice { title, targets: serde_json::from_str(&targets).unwrap_or_default(), updates, id }
        };
        Ok(rows.into_iter().map(notice).collect())
    }

    /// Changes whenever [`Store::notices`] does, other than by time.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn notices_version(&self) -> Result<(i64, String), StoreFailure> {
        let query = "SELECT count(*), COALESCE(max(notice), '') FROM notice_update";
        Ok(sqlx::query_as(query).fetch_one(&self.pool).await?)
    }
}

fn resolved(update: &NoticeUpdate) -> Option<i64> {
    (update.progress == Progress::Resolved).then_some(update.at.0)
}

async fn insert(transaction: &mut sqlx::Transaction<'_, sqlx::Any>, id: &str, update: &NoticeUpdate) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO notice_update (notice, number, at, author, progress, text) \
         SELECT $1, count(*), $2, $3, $4, $5 FROM notice_update WHERE notice = $1",
    )
    .bind(id)
    .bind(update.at.0)
    .bind(update.author.as_str())
    .bind(update.progress.word())
    .bind(update.text.as_str())
    .execute(&mut **transaction)
    .await
    .map(drop)
}
