//! A real Postgres of our own, and what a test asks it.

#![allow(dead_code, reason = "each test program uses some of these")]

mod cluster;

pub(crate) use cluster::{Cluster, Durability};
use sqlx::{AnyConnection, Connection as _, Executor as _};

impl Cluster {
    /// One that is also reached over TCP, by this machine only.
    pub(crate) fn over_tcp() -> Self {
        // Below those that systems give to whoever asks for any.
        let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
        let port = std::iter::repeat_with(|| fastrand::u16(10_000..30_000)).find(is_free);
        Self::start_at(Durability::None, port, &std::env::temp_dir(), Vec::new())
    }
}

/// A new, empty database in the same cluster, and its address.
pub(crate) async fn beside(address: &str, name: &str) -> String {
    let mut connection = connect(address).await;
    connection.execute(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"))).await.unwrap();
    let (scheme, rest) = address.split_once(":///").unwrap();
    let (_, query) = rest.split_once('?').unwrap();
    format!("{scheme}:///{name}?{query}")
}

/// How many transactions of this database wait for a client to say what is next.
pub(crate) async fn half_open(address: &str) -> i64 {
    let mut connection = connect(address).await;
    let statement = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'";
    sqlx::query_scalar(statement).fetch_one(&mut connection).await.unwrap()
}

async fn connect(address: &str) -> AnyConnection {
    sqlx::any::install_default_drivers();
    AnyConnection::connect(address).await.unwrap()
}
