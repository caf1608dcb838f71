//! The same claims for both databases: each is a test on SQLite, and one on a real Postgres.

use super::postgres::{Cluster, Durability};
use libtest_mimic::{Arguments, Trial};
use mcproof_watch::store::sqlite;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// Takes the address of a database that nobody else has.
pub(crate) type Claim = fn(String) -> Pin<Box<dyn Future<Output = ()>>>;

macro_rules! claims {
    ($($name:ident),* $(,)?) => {
        &[$((stringify!($name), |address| Box::pin($name(address)))),*]
    };
}
pub(crate) use claims;

/// Must be called by a thread that lives as long as the tests run. Some claims are about what only Postgres has.
pub(crate) fn trials(claims: &[(&'static str, Claim)], of_postgres: &[(&'static str, Claim)], arguments: &Arguments) -> Vec<Trial> {
    let cluster = (!arguments.list).then(|| Arc::new(Cluster::start(Durability::None)));
    let on_sqlite = |(name, claim): &(&'static str, Claim)| {
        let claim = *claim;
        Trial::test(format!("sqlite::{name}"), move || {
            let folder = tempfile::tempdir().unwrap();
            run(claim, sqlite(&folder.path().join("watch.db")));
            Ok(())
        })
    };
    let on_postgres = |(name, claim): &(&'static str, Claim)| {
        let (name, claim, cluster) = (*name, *claim, cluster.clone());
        Trial::test(format!("postgres::{name}"), move || {
            run(claim, cluster.unwrap().database(name));
            Ok(())
        })
    };
    claims.iter().map(on_sqlite).chain(claims.iter().chain(of_postgres).map(on_postgres)).collect()
}

fn run(claim: Claim, address: String) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(claim(address));
}
