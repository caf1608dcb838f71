//! What people decide at the dashboard or over the API: they acknowledge, mute, announce work and deploys, and give tokens away.

use super::{Store, StoreFailure, ids};
use crate::moment::Moment;
use crate::role::Role;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use uuid::NoContext;

#[derive(Clone, Debug)]
pub struct TokenRow {
    pub name: String,
    pub role: Role,
    pub created: Moment,
}

/// Planned work that somebody announces.
#[derive(Clone, Debug)]
pub struct Announcement {
    pub name: String,
    pub targets: Vec<String>,
    pub tags: Vec<String>,
    pub starts: Moment,
    pub ends: Moment,
}

/// Whether this can be the full hash of a contract: `sha256:` and 64 hexadecimal digits.
pub fn is_full_hash(text: &str) -> bool {
    let digits = text.strip_prefix("sha256:").unwrap_or_default();
    digits.len() == 64 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

impl Store {
    /// Nobody is told of the target until then; 0 ends it. False if there is no such target.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn mute(&self, target: &str, until: Moment) -> Result<bool, StoreFailure> {
        let query = "UPDATE target SET muted_until = $1 WHERE name = $2 AND removed IS NULL";
        Ok(sqlx::query(query).bind(until.0).bind(target).execute(&self.writer).await?.rows_affected() > 0)
    }

    /// A change of the contract is no surprise until then. Returns the marker's id.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn announce_deploy(
        &self,
        target: &str,
        now: Moment,
        until: Moment,
        expected: Option<&str>,
        note: &str,
    ) -> Result<String, StoreFailure> {
        let id = ids::new(NoContext, now);
        sqlx::query("INSERT INTO deploy (id, target, at, until, expected, note) VALUES ($1, $2, $3, $4, $5, $6)")
            .bind(id.as_str())
            .bind(target)
            .bind(now.0)
            .bind(until.0)
            .bind(expected)
            .bind(note)
            .execute(&self.writer)
            .await?;
        Ok(id)
    }

    /// Returns its id.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn announce(&self, work: &Announcement, now: Moment) -> Result<String, StoreFailure> {
        let id = ids::new(NoContext, now);
        let list = |names: &[String]| serde_json::Value::from(names.to_vec()).to_string();
        sqlx::query("INSERT INTO maintenance (id, name, targets, tags, starts, ends) VALUES ($1, $2, $3, $4, $5, $6)")
            .bind(id.as_str())
            .bind(work.name.as_str())
            .bind(list(&work.targets))
            .bind(list(&work.tags))
            .bind(work.starts.0)
            .bind(work.ends.0)
            .execute(&self.writer)
            .await?;
        Ok(id)
    }

    /// Ends planned work now, or forgets it if it has not begun. False if there is none.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn end_maintenance(&self, id: &str, now: Moment) -> Result<bool, StoreFailure> {
        let query = "UPDATE maintenance SET ends = $1 WHERE id = $2 AND ends > $1";
        Ok(sqlx::query(query).bind(now.0).bind(id).execute(&self.writer).await?.rows_affected() > 0)
    }

    /// A login is over before its time. It is known by the hash of its cookie.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn end_login(&self, cookie: &str, until: Moment) -> Result<(), StoreFailure> {
        let query = "INSERT INTO ended_login (hash, until) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        sqlx::query(query).bind(hash(cookie)).bind(until.0).execute(&self.writer).await?;
        Ok(())
    }

    /// # Errors
    /// The database does not respond.
    pub async fn is_login_ended(&self, cookie: &str) -> Result<bool, StoreFailure> {
        let query = "SELECT count(*) FROM ended_login WHERE hash = $1";
        Ok(sqlx::query_scalar::<_, i64>(query).bind(hash(cookie)).fetch_one(&self.pool).await? > 0)
    }

    /// What a service tells us is taken once, in whichever process. False if it was taken before.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn take_call(&self, id: &str, now: Moment) -> Result<bool, StoreFailure> {
        let query = "INSERT INTO taken_call (id, at) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        Ok(sqlx::query(query).bind(hash(id)).bind(now.0).execute(&self.writer).await?.rows_affected() > 0)
    }

    /// Whether [`Store::take_call`] has taken it.
    pub(crate) async fn has_taken_call(&self, id: &str) -> Result<bool, StoreFailure> {
        let query = "SELECT count(*) FROM taken_call WHERE id = $1";
        Ok(sqlx::query_scalar::<_, i64>(query).bind(hash(id)).fetch_one(&self.pool).await? > 0)
    }

    /// What was taken could not be done: it may be told again.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn give_back_call(&self, id: &str) -> Result<(), StoreFailure> {
        sqlx::query("DELETE FROM taken_call WHERE id = $1").bind(hash(id)).execute(&self.writer).await?;
        Ok(())
    }

    /// Only the hash of the secret is kept. False if there is one of that name.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn add_token(&self, name: &str, secret: &str, role: Role, now: Moment) -> Result<bool, StoreFailure> {
        let query = "INSERT INTO api_token (name, hash, role, created) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
        let inserted =
            sqlx::query(query).bind(name).bind(hash(secret)).bind(role.word()).bind(now.0).execute(&self.writer).await?.rows_affected();
        Ok(inserted > 0)
    }

    /// # Errors
    /// The database does not respond.
    pub async fn remove_token(&self, name: &str) -> Result<bool, StoreFailure> {
        Ok(sqlx::query("DELETE FROM api_token WHERE name = $1").bind(name).execute(&self.writer).await?.rows_affected() > 0)
    }

    /// # Errors
    /// The database does not respond.
    pub async fn tokens(&self) -> Result<Vec<TokenRow>, StoreFailure> {
        let rows: Vec<(String, String, i64)> =
            sqlx::query_as("SELECT name, role, created FROM api_token ORDER BY name").fetch_all(&self.pool).await?;
        let token =
            |(name, role, created): (String, String, i64)| Some(TokenRow { name, role: Role::of_word(&role)?, created: Moment(created) });
        Ok(rows.into_iter().filter_map(token).collect())
    }

    /// Whose token it is, and what it allows. The look-up is by hash, so that its time tells nothing of the secret.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn token(&self, secret: &str) -> Result<Option<(String, Role)>, StoreFailure> {
        let row: Option<(String, String)> =
            sqlx::query_as("SELECT name, role FROM api_token WHERE hash = $1").bind(hash(secret)).fetch_optional(&self.pool).await?;
        Ok(row.and_then(|(name, role)| Some((name, Role::of_word(&role)?))))
    }
}

pub(crate) fn hash(secret: &str) -> String {
    Sha256::digest(secret).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes all text");
        text
    })
}
