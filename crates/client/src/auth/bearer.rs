//! The token that requests to one MCP server carry, shared by everything that talks to it.

use super::secret::Secret;
use std::sync::Arc;
use tokio::sync::watch;

/// Clones show the same token.
#[derive(Clone, Debug)]
pub(crate) struct Bearer(Arc<watch::Sender<Option<Secret>>>);

/// Tells when the token changes after this was made.
pub(crate) struct Renewal(watch::Receiver<Option<Secret>>);

impl Bearer {
    pub(super) fn new(token: Option<Secret>) -> Self {
        Self(Arc::new(watch::Sender::new(token)))
    }

    pub(super) fn set(&self, token: Secret) {
        self.0.send_replace(Some(token));
    }

    pub(crate) fn token(&self) -> Option<Secret> {
        self.0.borrow().clone()
    }

    /// The `Authorization` header (2026-07-28, authorization, token requirements: in every HTTP request).
    pub(crate) fn header(&self) -> Option<(String, String)> {
        self.0.borrow().as_ref().map(|token| ("authorization".to_owned(), format!("Bearer {}", token.expose())))
    }

    pub(crate) fn renewal(&self) -> Renewal {
        Renewal(self.0.subscribe())
    }
}

impl Renewal {
    /// Waits until there is another token; for ever, if there will be none. Loses nothing when canceled.
    pub(crate) async fn renewed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending().await
        }
    }
}
