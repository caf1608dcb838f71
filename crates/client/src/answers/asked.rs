//! What a server asked of the client, noted for whoever wrote the answers.

use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};

/// One request of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub method: String,
    /// The fields of the form, of an elicitation that has one.
    pub fields: Vec<String>,
}

/// Requests that are noted; nobody reads more.
const MOST: usize = 100;
/// Fields that are noted of each.
const MOST_FIELDS: usize = 200;

/// Requests of a server, in their order. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct AskedLog(Arc<Mutex<Vec<Asked>>>);

impl AskedLog {
    pub(super) fn note(&self, method: &str, params: &Value) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < MOST {
            let properties = params.pointer("/requestedSchema/properties").and_then(Value::as_object);
            let fields = properties.into_iter().flatten().map(|(name, _)| name.clone()).take(MOST_FIELDS).collect();
            all.push(Asked { method: method.to_owned(), fields });
        }
    }

    pub fn all(&self) -> Vec<Asked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl PartialEq for AskedLog {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
