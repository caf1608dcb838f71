//! The database: SQLite in a file, or Postgres. One set of tables and one set of statements for both; where they differ, the
//! dialect says how. Knows rows, not what they mean.

pub mod audit;
mod chores;
mod commit;
mod contracts;
mod copy;
mod days;
mod decisions;
mod ids;
pub mod incidents;
mod layout;
pub mod notices;
pub mod operations;
pub(crate) mod outbox;
pub(crate) mod packed;
mod processes;
mod pushes;
pub mod read;
mod results;
mod retention;
mod rollup;
mod schedule;
mod set_back;
mod set_forward;
pub mod silences;
pub mod subscriptions;
mod values;

pub use chores::BLIND_AFTER;
pub use commit::{Committed, Finished};
pub use contracts::SeenContract;
pub(crate) use copy::Reading;
pub(crate) use processes::LONGEST_SILENCE;
pub use results::{ProbeEvidence, evidence_id};
pub use schedule::{Lease, Source, Synced};

use layout::VERSION;
use mcproof_system::files;
use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Any, AnyConnection, AnyPool, ConnectOptions as _, Connection as _, Executor as _, Transaction};
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::Duration;

/// For a connection of the pool to become free.
const PATIENCE: Duration = Duration::from_secs(10);
/// Of a SQLite file, at the same time.
const READERS: u32 = 4;
/// Each of them keeps as much of the file in memory as this, once it has read so much: 4 MiB.
const CACHE_OF_READERS: &str = "PRAGMA cache_size = -4000";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Sqlite,
    Postgres,
}

#[derive(Clone, Debug)]
pub struct Store {
    /// For reading.
    pub(crate) pool: AnyPool,
    /// For writing. In SQLite it is one connection: nobody waits for a lock, and what it has written once it need not read again.
    pub(crate) writer: AnyPool,
    pub(crate) dialect: Dialect,
    pub(crate) fence: Fence,
    /// Days whose partition is there; always empty in SQLite, which has none.
    days: Arc<Mutex<BTreeSet<i64>>>,
    admission: Arc<Admission>,
    /// Of SQLite: what was written last is lost.
    is_log_lost: Arc<AtomicBool>,
    /// Targets that only other processes know, as an array of JSON.
    left_alone: Arc<RwLock<Option<Arc<str>>>>,
    /// When this process read its file, in milliseconds: what is known of processes that vanished before that does not count.
    kept_since: Arc<AtomicI64>,
    /// A connection that nobody uses: a database in memory ends with its last one, and the pool closes those that fail.
    anchor: Option<AnyPool>,
}

/// What each new connection of a pool needs to be of use.
#[derive(Debug, Default)]
struct Admission {
    /// Nothing is read or written before.
    is_open: AtomicBool,
    /// Of SQLite on a disk: what another file at its path says is of another database.
    file: OnceLock<OpenFile>,
}

impl Admission {
    fn new(is_open: bool) -> Arc<Self> {
        Arc::new(Self { is_open: is_open.into(), ..Self::default() })
    }

    fn is_displaced(&self) -> bool {
        self.file.get().is_some_and(|file| identity(&file.path) != Some(file.identity))
    }
}

/// The file that a database was opened in. A file that is removed or replaced can still be written by whoever has it open, and nobody
/// else ever reads that.
#[derive(Clone, Debug)]
struct OpenFile {
    path: PathBuf,
    identity: u64,
}

impl OpenFile {
    fn of(address: &str) -> Option<Self> {
        let options = SqliteConnectOptions::from_str(address).ok()?;
        let path = options.get_filename().to_owned();
        let identity = identity(&path)?;
        Some(Self { path, identity })
    }
}

fn identity(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().map(|about| files::identity(&about))
}

const PUT_BACK: &str = "put the file back, or restart the monitor: it then begins with the file that is there, and forgets what it knows";

/// What keeps results away from the tables whose lease somebody else has by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    Up,
    /// Only to prove that a test notices.
    Down,
}

#[derive(Debug, thiserror::Error)]
pub enum StoreFailure {
    #[error("`{0}` is not a database URL: write `sqlite:FILE` or `postgres://…`")]
    Address(String),
    #[error("the database was written by a newer version of this program (tables of version {0}, this one knows {VERSION})")]
    Newer(i64),
    #[error("the file of the database was removed or replaced")]
    Displaced,
    #[error("{prefix}{0}", prefix = prefix(.0))]
    Database(#[from] sqlx::Error),
}

impl StoreFailure {
    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        let error = match self {
            Self::Displaced => return Some(PUT_BACK),
            Self::Database(error) => error,
            Self::Address(_) | Self::Newer(_) => return None,
        };
        DatabaseProblem::of(error).map(|problem| problem.hint)
    }

    /// Whether a monitor may start without it: it cannot be reached, is locked or read-only, or its disk is full or fails, which ends while
    /// the monitor runs. An address, a password or a file that is wrong does not.
    pub fn may_be_outlasted(&self) -> bool {
        let Self::Database(error) = self else { return false };
        let code = error.as_database_error().and_then(|error| error.code());
        self.may_pass()
            || code.is_some_and(|code| match code.as_ref() {
                "53100" | "55P03" | "25006" => true,
                code => code.len() < 5 && code.parse::<u32>().is_ok_and(|code| matches!(code & 0xff, 5 | 6 | 10 | 13)),
            })
    }

    /// Whether it may work in a moment: nobody answers, or the server is being started or ended.
    pub fn may_pass(&self) -> bool {
        let Self::Database(error) = self else { return false };
        match error {
            sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut => true,
            // <https://www.postgresql.org/docs/current/errcodes-appendix.html>: operator intervention, connections, too many of those.
            _ => error
                .as_database_error()
                .and_then(|error| error.code())
                .is_some_and(|code| code.starts_with("57P") || code.starts_with("08") || code == "53300"),
        }
    }
}

/// What is wrong with a database, in words for those who have never seen its messages.
struct DatabaseProblem {
    name: &'static str,
    hint: &'static str,
}

impl DatabaseProblem {
    /// By the primary result code of SQLite, <https://sqlite.org/rescode.html>, which is shorter than the codes of Postgres.
    fn of(error: &sqlx::Error) -> Option<Self> {
        const FULL: u32 = 13;
        match error {
            sqlx::Error::PoolTimedOut => {
                let hint = "check that the database server runs and takes connections, and the address in `database`";
                return Some(Self { name: "the database does not answer", hint });
            }
            sqlx::Error::Io(_) => {
                let hint = "check that the database server runs, and the address in `database`";
                return Some(Self { name: "the database cannot be reached", hint });
            }
            _ => {}
        }
        let code = error.as_database_error()?.code()?;
        let code = match code.as_ref() {
            "53100" => FULL,
            "55P03" => {
                let hint = "end the program that holds the lock, such as a migration or a shell: `pg_locks` lists it";
                return Some(Self { name: "another program has locked a table of the database", hint });
            }
            "25006" => {
                let hint = "connect to the primary server, or end the read-only mode of this one (`default_transaction_read_only`)";
                return Some(Self { name: "the database is read-only", hint });
            }
            code if code.len() < 5 => code.parse::<u32>().ok()? & 0xff,
            _ => return None,
        };
        let (name, hint) = match code {
            5 | 6 => ("another program has locked the database", "stop the program that has the file open, such as a backup or a shell"),
            8 => ("the database is not writable", "allow the user of the monitor to write the file and its folder"),
            10 => ("the disk reports I/O errors", "check the disk of the database and the kernel log"),
            11 | 26 => (
                "the file of the database is damaged",
                "end the monitor, move the file away together with those ending in `-wal` and `-shm`, and put a backup in its place; \
                 without one the monitor begins a new database",
            ),
            14 => ("cannot open the database", "allow the user of the monitor to read and write the file and its folder"),
            FULL => ("the disk of the database is full", "free some space: a monitor that runs goes on by itself"),
            _ => return None,
        };
        Some(Self { name, hint })
    }
}

fn prefix(error: &sqlx::Error) -> String {
    DatabaseProblem::of(error).map(|problem| format!("{}: ", problem.name)).unwrap_or_default()
}

impl Store {
    /// Opens a database, and makes its tables if it has none.
    ///
    /// # Errors
    /// The address is none, the database cannot be reached, or its tables are newer than this program.
    pub async fn open(address: &str) -> Result<Self, StoreFailure> {
        let dialect = Dialect::of_address(address)?;
        let options = dialect.options(address)?;
        let admission = Admission::new(true);
        let is_log_lost = Arc::new(AtomicBool::new(dialect.has_damaged_log(address)));
        if dialect == Dialect::Sqlite {
            make_private(&dialect.address(address))?;
            // A pool tries again, and only says in the end that it took too long.
            let mut first = AnyConnection::connect_with(&options).await?;
            for statement in dialect.preparation() {
                first.execute(*statement).await?;
            }
            first.close().await?;
        }
        let writer = dialect.prepared(dialect.writers(), &[], &admission).connect_with(options.clone()).await?;
        let pool = match dialect {
            Dialect::Sqlite => dialect.prepared(READERS, &[CACHE_OF_READERS], &admission).connect_with(options).await?,
            Dialect::Postgres => writer.clone(),
        };
        let store = Self { is_log_lost, ..Self::of_pools(dialect, pool, writer, admission) };
        store.know_file(address);
        store.prepare().await?;
        Ok(store)
    }

    /// Over a database that cannot be opened now: whoever asks anything of it waits in vain, until [`Store::admit`] has opened it.
    ///
    /// # Errors
    /// The address is none.
    pub(crate) fn closed(address: &str) -> Result<Self, StoreFailure> {
        let dialect = Dialect::of_address(address)?;
        let options = dialect.options(address)?;
        let admission = Admission::new(false);
        let writer = dialect.prepared(dialect.writers(), &[], &admission).connect_lazy_with(options.clone());
        let pool = match dialect {
            Dialect::Sqlite => dialect.prepared(READERS, &[CACHE_OF_READERS], &admission).connect_lazy_with(options),
            Dialect::Postgres => writer.clone(),
        };
        Ok(Self::of_pools(dialect, pool, writer, admission))
    }

    /// Opens what was closed, if its tables are, or can be made, those of this program.
    ///
    /// # Errors
    /// As of [`Store::open`]; it stays closed.
    pub(crate) async fn admit(&self, address: &str) -> Result<(), StoreFailure> {
        if self.is_open() {
            return Ok(());
        }
        // It is no longer there once it was opened, also if that fails in the end.
        self.is_log_lost.fetch_or(self.dialect.has_damaged_log(address), Ordering::Relaxed);
        let opened = Self::open(address).await?;
        opened.writer.close().await;
        opened.pool.close().await;
        self.know_file(address);
        self.admission.is_open.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the database was opened at all.
    pub(crate) fn is_open(&self) -> bool {
        self.admission.is_open.load(Ordering::Relaxed)
    }

    fn of_pools(dialect: Dialect, pool: AnyPool, writer: AnyPool, admission: Arc<Admission>) -> Self {
        let (days, left_alone, kept_since) = (Arc::default(), Arc::default(), processes::never());
        let (fence, is_log_lost, anchor) = (Fence::Up, Arc::default(), None);
        Self { pool, writer, dialect, fence, days, admission, is_log_lost, left_alone, kept_since, anchor }
    }

    fn know_file(&self, address: &str) {
        if self.dialect == Dialect::Sqlite
            && let Some(file) = OpenFile::of(&self.dialect.address(address))
        {
            drop(self.admission.file.set(file));
        }
    }

    /// Whether the file of the database was removed, or another one put in its place.
    pub fn is_displaced(&self) -> bool {
        self.admission.is_displaced()
    }

    /// Whether the write-ahead log of the file was damaged when it was opened: SQLite then goes on with what the file has, and says nothing.
    pub fn has_lost_log(&self) -> bool {
        self.is_log_lost.load(Ordering::Relaxed)
    }

    /// Whether it stands in for a database that others write, too.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.anchor.is_some()
    }

    /// The same store with another fence.
    #[must_use]
    pub fn fenced(self, fence: Fence) -> Self {
        Self { fence, ..self }
    }

    /// A transaction that will write.
    pub(crate) async fn begin(&self) -> Result<Transaction<'static, Any>, sqlx::Error> {
        self.writer.begin_with(self.dialect.begin()).await
    }
}

impl Dialect {
    /// What is at the other end.
    pub(crate) fn of(connection: &AnyConnection) -> Self {
        match connection.backend_name() {
            "SQLite" => Self::Sqlite,
            _ => Self::Postgres,
        }
    }

    fn of_address(address: &str) -> Result<Self, StoreFailure> {
        match address.split_once(':') {
            Some(("sqlite", _)) => Ok(Self::Sqlite),
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres),
            _ => Err(StoreFailure::Address(address.to_owned())),
        }
    }

    fn options(self, address: &str) -> Result<AnyConnectOptions, sqlx::Error> {
        sqlx::any::install_default_drivers();
        Ok(AnyConnectOptions::from_str(&self.address(address))?.disable_statement_logging())
    }

    /// Whose connections are told first what all are told, and then `more`; none is given away before it is admitted.
    fn prepared(self, connections: u32, more: &'static [&'static str], admission: &Arc<Admission>) -> AnyPoolOptions {
        let admission = Arc::clone(admission);
        self.pool(connections).acquire_timeout(PATIENCE).after_connect(move |connection, _| {
            let is_admitted = admission.is_open.load(Ordering::Relaxed) && !admission.is_displaced();
            Box::pin(async move {
                if !is_admitted {
                    return Err(sqlx::Error::PoolClosed);
                }
                for statement in self.preparation().iter().chain(more) {
                    connection.execute(*statement).await?;
                }
                Ok(())
            })
        })
    }

    /// Closes a connection of SQLite that is given back inside a transaction.
    fn pool(self, connections: u32) -> AnyPoolOptions {
        AnyPoolOptions::new().max_connections(connections).after_release(move |connection, _| {
            Box::pin(async move { Ok(self == Self::Postgres || is_between_transactions(connection).await) })
        })
    }

    fn address(self, address: &str) -> String {
        match self {
            Self::Sqlite if !address.contains('?') => format!("{address}?mode=rwc"),
            _ => address.to_owned(),
        }
    }

    /// Whether SQLite would lose what was written last when it opens this.
    fn has_damaged_log(self, address: &str) -> bool {
        self == Self::Sqlite && has_damaged_log(&self.address(address))
    }

    /// SQLite has one writer at a time whatever we do.
    fn writers(self) -> u32 {
        match self {
            Self::Sqlite => 1,
            Self::Postgres => 8,
        }
    }

    /// What each connection is told first.
    fn preparation(self) -> &'static [&'static str] {
        match self {
            // A commit is to be on the disk before anybody is told of what it says.
            // Pages that change all the time (the schedule) are copied out of the log once for many changes: 32 MiB of log
            // instead of 4, and 16 MiB of memory instead of 2 for who writes.
            Self::Sqlite => &[
                "PRAGMA journal_mode = WAL",
                "PRAGMA synchronous = FULL",
                "PRAGMA busy_timeout = 10000",
                "PRAGMA wal_autocheckpoint = 8000",
                "PRAGMA cache_size = -16000",
            ],
            // A process that froze in the middle must not hide rows from the others, and nobody waits for ever for somebody's lock.
            Self::Postgres => &[
                "SET idle_in_transaction_session_timeout = '5s'",
                "SET lock_timeout = '10s'",
                "SET tcp_keepalives_idle = 10",
                "SET tcp_keepalives_interval = 5",
                "SET tcp_keepalives_count = 3",
            ],
        }
    }

    /// Ends a statement that reads what this transaction is about to change. SQLite has one writer anyway.
    pub(crate) fn lock(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => "FOR UPDATE",
        }
    }

    /// As above, for rows of which others may be taken as well: what somebody is about to change is left out.
    pub(crate) fn skip_locked(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => "FOR UPDATE SKIP LOCKED",
        }
    }

    /// Begins a transaction that will write.
    pub(crate) fn begin(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgres => "BEGIN",
        }
    }
}

/// What it says of servers and people is nobody else's: a new file can be read by its owner only, and SQLite gives those beside it the
/// same rights. What is there already stays as somebody may have set it.
fn make_private(address: &str) -> Result<(), sqlx::Error> {
    let options = SqliteConnectOptions::from_str(address)?;
    if !address.contains("mode=rwc") {
        return Ok(());
    }
    // It may be there already; of what is wrong with it SQLite says more.
    drop(files::private_file(OpenOptions::new().write(true).create_new(true)).open(options.get_filename()));
    Ok(())
}

/// Whether there is a write-ahead log beside a file, and its header is none, <https://sqlite.org/fileformat2.html#walformat>: one that was
/// written in part has a header, or has nothing that counts.
fn has_damaged_log(address: &str) -> bool {
    const MAGIC: [u32; 2] = [0x377f_0682, 0x377f_0683];
    const HEADER: usize = 32;
    let Ok(options) = SqliteConnectOptions::from_str(address) else { return false };
    let mut path = options.get_filename().as_os_str().to_owned();
    path.push("-wal");
    let mut header = [0; HEADER];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut header));
    let magic = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
    read.is_ok() && header != [0; HEADER] && !MAGIC.contains(&magic)
}

/// What is left inside a transaction whose end failed, because the disk was full, would refuse to begin another one for ever: such a
/// connection is closed, and the next one is new.
async fn is_between_transactions(connection: &mut AnyConnection) -> bool {
    match connection.begin_with("BEGIN").await {
        Ok(transaction) => transaction.rollback().await.is_ok(),
        Err(_) => false,
    }
}

/// The database that a path names.
pub fn sqlite(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_new_database_gets_its_tables_and_an_old_one_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let address = sqlite(&folder.path().join("watch.db"));
        for _ in 0..2 {
            let store = Store::open(&address).await.unwrap();
            let count: i64 = sqlx::query_scalar("SELECT count(*) FROM target").fetch_one(&store.pool).await.unwrap();
            assert_eq!(count, 0);
        }
    }

    #[tokio::test]
    async fn a_new_file_is_its_owners_and_what_was_there_stays_as_it_was() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let mode = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777;
        let address = sqlite(&folder.path().join("watch.db"));
        let store = Store::open(&address).await.unwrap();
        assert_eq!(["watch.db", "watch.db-wal", "watch.db-shm"].map(mode), [0o600; 3]);
        drop(store);
        std::fs::set_permissions(folder.path().join("watch.db"), std::fs::Permissions::from_mode(0o660)).unwrap();
        Store::open(&address).await.unwrap();
        assert_eq!(mode("watch.db"), 0o660);
    }

    #[tokio::test]
    async fn a_log_that_is_damaged_when_a_closed_database_is_opened_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("watch.db");
        let opened = Store::open(&sqlite(&file)).await.unwrap();
        opened.pool.close().await;
        opened.writer.close().await;
        for (log, is_lost) in [(None, false), (Some([1_u8; 64]), true)] {
            let store = Store::closed(&sqlite(&file)).unwrap();
            if let Some(log) = log {
                std::fs::write(folder.path().join("watch.db-wal"), log).unwrap();
            }
            store.admit(&sqlite(&file)).await.unwrap();
            assert_eq!(store.has_lost_log(), is_lost);
        }
    }

    #[tokio::test]
    async fn a_transaction_that_the_database_has_ended_by_itself_is_no_obstacle() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&sqlite(&folder.path().join("watch.db"))).await.unwrap();
        for _ in 0..3 {
            let mut transaction = store.begin().await.unwrap();
            // As SQLite does when the disk is full.
            transaction.execute("ROLLBACK").await.unwrap();
            transaction.commit().await.unwrap_err();
            let mut next = store.begin().await.unwrap();
            next.execute("INSERT INTO chore (name) VALUES ('a') ON CONFLICT DO NOTHING").await.unwrap();
            next.commit().await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_database_in_memory_outlives_its_connections() {
        let memory = Store::in_memory().await.unwrap();
        sqlx::query("INSERT INTO chore (name) VALUES ('a')").execute(&memory.writer).await.unwrap();
        for _ in 0..3 {
            memory.writer.acquire().await.unwrap().close().await.unwrap();
            let mut transaction = memory.begin().await.unwrap();
            transaction.execute("ROLLBACK").await.unwrap();
            transaction.commit().await.unwrap_err();
            let count: i64 = sqlx::query_scalar("SELECT count(*) FROM chore").fetch_one(&memory.pool).await.unwrap();
            assert_eq!(count, 1);
        }
        let other = Store::in_memory().await.unwrap();
        let count: i64 = sqlx::query_scalar("SELECT count(*) FROM chore").fetch_one(&other.pool).await.unwrap();
        assert_eq!(count, 0, "each has its own");
    }
}
