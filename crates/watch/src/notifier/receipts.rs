//! What services have taken, until the database knows it: a database that fails in between is no reason to send it again. Knows no
//! channels. It ends with the process; what a process that died had sent is sent once more by another one.

use crate::moment::Moment;
use crate::store::outbox::LeasedDelivery;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// By the ids of rows. Clones share what they know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receipts(Arc<Mutex<BTreeMap<String, Receipt>>>);

/// That a message was taken.
#[derive(Clone, Debug)]
pub(super) struct Receipt {
    pub(super) row: LeasedDelivery,
    /// The name of the channel.
    pub(super) by: String,
    /// Where it leads.
    pub(super) destination: Option<String>,
    /// What it said.
    pub(super) said: String,
    pub(super) at: Moment,
    /// When it is sent again, if it is.
    pub(super) again: Option<Moment>,
    /// The recipients of a mail who do not have it yet.
    pub(super) left: Vec<String>,
    /// The database did not take it.
    pub(super) is_owed: bool,
}

impl Receipts {
    pub(super) fn keep(&self, receipt: Receipt) {
        self.lock().insert(receipt.row.id.clone(), receipt);
    }

    pub(super) fn of(&self, row: &str) -> Option<Receipt> {
        self.lock().get(row).cloned()
    }

    /// Those that the database did not take. The others are on their way to it.
    pub(super) fn owed(&self) -> Vec<Receipt> {
        self.lock().values().filter(|receipt| receipt.is_owed).cloned().collect()
    }

    pub(super) fn owe(&self, row: &str) {
        if let Some(receipt) = self.lock().get_mut(row) {
            receipt.is_owed = true;
        }
    }

    pub(super) fn forget(&self, row: &str) {
        self.lock().remove(row);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Receipt>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
