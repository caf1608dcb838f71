//! Somebody outside of this crate who answers what a server asks: the test itself. Knows no transport and no policies.

use crate::jsonrpc::RpcError;
use mcproof_protocol::methods;
use serde_json::Value;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

/// What is waited for: the result that the server gets, or the error.
pub type CallbackResponse = Pin<Box<dyn Future<Output = Result<Value, RpcError>> + Send>>;

/// Who is asked, and about what. What it covers is declared as a capability.
#[derive(Clone)]
pub struct Callback {
    pub roots: bool,
    pub elicitation: bool,
    pub sampling: bool,
    /// Takes the method and its params. It has to bound its wait itself.
    pub ask: Arc<dyn Fn(String, Value) -> CallbackResponse + Send + Sync>,
}

impl Callback {
    pub(super) fn covers(&self, method: &str) -> bool {
        match method {
            methods::ROOTS_LIST => self.roots,
            methods::ELICITATION_CREATE => self.elicitation,
            methods::SAMPLING_CREATE_MESSAGE => self.sampling,
            _ => false,
        }
    }
}

impl fmt::Debug for Callback {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { roots, elicitation, sampling, .. } = self;
        let mut shown = formatter.debug_struct("Callback");
        shown.field("roots", roots).field("elicitation", elicitation).field("sampling", sampling).finish_non_exhaustive()
    }
}

/// The same one, about the same.
impl PartialEq for Callback {
    fn eq(&self, other: &Self) -> bool {
        let about = |callback: &Self| (callback.roots, callback.elicitation, callback.sampling);
        about(self) == about(other) && Arc::ptr_eq(&self.ask, &other.ask)
    }
}
