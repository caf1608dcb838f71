//! Turns for servers that insist on one address.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OwnedMutexGuard;

/// Shared by all cases of a run: a lock for each fixed address.
#[derive(Clone, Default)]
pub(super) struct AddressLocks(Arc<Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>>);

/// Holds an address until the server that uses it has ended.
pub(super) type AddressLock = OwnedMutexGuard<()>;

impl AddressLocks {
    /// Waits until no other case has a server at that address.
    pub(super) async fn at(&self, address: &str) -> AddressLock {
        let turn = Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(address.to_owned()).or_default());
        turn.lock_owned().await
    }
}
