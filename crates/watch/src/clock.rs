//! What time it is, for everybody who shares a database. With SQLite that is the clock of the machine. Postgres has a clock of its
//! own: workers whose machines disagree still agree on what is due, and on which lease is over.

use crate::moment::Moment;
use crate::store::{Store, StoreFailure};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// A clock that is set forward or back by less than this goes as it always did.
pub const TOLERANCE: Duration = Duration::from_secs(2);

/// Clones show the same time.
#[derive(Clone, Debug)]
pub struct Clock {
    machine: fn() -> SystemTime,
    /// What the database said last, and when.
    database: Arc<Mutex<Option<(Moment, Instant)>>>,
}

impl Clock {
    /// The clock of the machine, until [`Clock::follow`] finds another one.
    pub fn of_machine(machine: fn() -> SystemTime) -> Self {
        Self { machine, database: Arc::default() }
    }

    pub fn now(&self) -> Moment {
        let read = *self.database.lock().unwrap_or_else(PoisonError::into_inner);
        read.map_or_else(|| Moment::from((self.machine)()), |(moment, read)| moment + read.elapsed())
    }

    /// The clock on the wall of this machine, whatever the database says.
    pub(crate) fn machine(&self) -> SystemTime {
        (self.machine)()
    }

    /// Goes by the clock of this database from now on, if it has one.
    ///
    /// # Errors
    /// The database does not respond; the clock goes on as it did.
    pub async fn follow(&self, store: &Store) -> Result<(), StoreFailure> {
        let read = store.time().await?;
        *self.database.lock().unwrap_or_else(PoisonError::into_inner) = read;
        Ok(())
    }
}
