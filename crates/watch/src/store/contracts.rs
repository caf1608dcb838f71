//! Contracts that targets were seen with: each version once, compressed.

use super::values::Values;
use super::{Dialect, Store, StoreFailure, packed};
use crate::moment::Moment;
use mcproof_record::Contract;
use sqlx::AnyConnection;

/// A contract that the store may not know yet.
#[derive(Clone, Debug)]
pub struct SeenContract {
    pub hash: String,
    body: Vec<u8>,
}

impl SeenContract {
    pub fn new(contract: &Contract) -> Self {
        Self { hash: contract.hashes.full.clone(), body: packed::pack(contract) }
    }
}

impl Store {
    /// The contract of this hash, if that target ever had it.
    ///
    /// # Errors
    /// The database failed.
    pub async fn contract(&self, target: &str, hash: &str) -> Result<Option<Contract>, StoreFailure> {
        Ok(load(&mut *self.pool.acquire().await?, target, hash).await?)
    }
}

pub(super) async fn load(connection: &mut AnyConnection, target: &str, hash: &str) -> Result<Option<Contract>, sqlx::Error> {
    let query = sqlx::query_scalar::<_, Vec<u8>>("SELECT body FROM contract WHERE target = $1 AND hash = $2");
    let body = query.bind(target).bind(hash).fetch_optional(connection).await?;
    Ok(body.and_then(|body| packed::unpack(&body)))
}

pub(super) async fn insert<'a>(
    connection: &mut AnyConnection,
    seen: impl Iterator<Item = (&'a str, Moment, &'a SeenContract)>,
) -> Result<(), StoreFailure> {
    let mut values = Values::new(Dialect::of(connection));
    for (target, at, contract) in seen {
        values.row(|row| {
            row.add(target.to_owned()).add(contract.hash.clone()).add(at.0).add(contract.body.clone());
        });
    }
    if !values.is_empty() {
        let statement = "INSERT INTO contract (target, hash, first_seen, body) VALUES {} ON CONFLICT DO NOTHING";
        values.query(statement).execute(connection).await?;
    }
    Ok(())
}
