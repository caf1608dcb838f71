//! How all targets are, in few words.

use super::{Store, StoreFailure};
use crate::state::{Availability, Surface};
use sqlx::Row as _;

impl Store {
    /// By their names.
    ///
    /// # Errors
    /// The database failed.
    pub async fn standing(&self) -> Result<Vec<(String, Availability, Surface)>, StoreFailure> {
        let statement = "SELECT name, availability, surface FROM target WHERE removed IS NULL ORDER BY name";
        let rows = sqlx::query(statement).fetch_all(&self.pool).await?;
        let read = |row: &sqlx::any::AnyRow| {
            let availability = Availability::of_word(&row.try_get::<String, _>("availability")?).unwrap_or_default();
            let surface = Surface::of_word(&row.try_get::<String, _>("surface")?).unwrap_or_default();
            Ok((row.try_get("name")?, availability, surface))
        };
        rows.iter().map(read).collect()
    }
}
