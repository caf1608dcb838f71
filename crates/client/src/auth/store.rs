//! What is remembered between requests and between sessions: tokens for each server, client ids for each authorization
//! server. In memory; a keeper may know tokens of earlier processes.

use super::Identity;
use super::discovery::AuthorizationServer;
use super::registration::Client;
use super::secret::Secret;
use super::stored_token::{Kept, TokenPersistence};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::Mutex as Gate;
use url::Url;

/// Tokens and registrations. Clones share them.
#[derive(Clone, Default)]
pub struct TokenStore(Arc<TokenStoreInner>);

#[derive(Default)]
struct TokenStoreInner {
    /// HeldToken during an authorization: sessions that start at once need one consent, not one each.
    gate: Gate<()>,
    state: Mutex<TokenStoreState>,
    keeper: Option<Box<dyn TokenPersistence>>,
}

#[derive(Default)]
struct TokenStoreState {
    tokens: HashMap<Url, HeldToken>,
    /// By issuer: an id is worth nothing elsewhere (2026-07-28, client registration, authorization server binding).
    clients: HashMap<String, Client>,
    /// The issuer with which a registered client was first used.
    bound: HashMap<String, String>,
}

/// A token, and what is needed to renew it.
#[derive(Clone)]
pub(super) struct HeldToken {
    pub(super) access: Secret,
    pub(super) refresh: Option<Secret>,
    pub(super) expires: Option<Instant>,
    /// Everything that was ever requested.
    pub(super) scopes: BTreeSet<String>,
    pub(super) server: Arc<AuthorizationServer>,
    pub(super) client: Client,
    /// The `resource` parameter.
    pub(super) resource: String,
}

impl HeldToken {
    pub(super) fn is_expired(&self) -> bool {
        self.expires.is_some_and(|expires| expires <= Instant::now())
    }
}

impl TokenStore {
    /// A store whose tokens outlive this process.
    pub fn persisted_by(keeper: impl TokenPersistence + 'static) -> Self {
        Self(Arc::new(TokenStoreInner { keeper: Some(Box::new(keeper)), ..TokenStoreInner::default() }))
    }

    /// Takes over the token that the keeper has, if it is not the one that is held: another process may have renewed it.
    pub(super) fn recall(&self, server: &Url, identity: &Identity, scopes: Option<&[String]>) {
        let Some(kept) = self.0.keeper.as_ref().and_then(|keeper| keeper.recall(server)) else { return };
        if scopes.unwrap_or_default().iter().any(|scope| !kept.scopes.contains(scope)) {
            return;
        }
        let mut state = self.state();
        if state.tokens.get(server).is_none_or(|held| held.access != kept.access) {
            state.tokens.insert(server.clone(), kept.into_held(identity));
        }
    }

    pub(super) fn gate(&self) -> &Gate<()> {
        &self.0.gate
    }

    pub(super) fn held(&self, server: &Url) -> Option<HeldToken> {
        self.state().tokens.get(server).cloned()
    }

    /// Whether there is a token that its own account says is over.
    pub(super) fn is_expired(&self, server: &Url) -> bool {
        self.state().tokens.get(server).is_some_and(HeldToken::is_expired)
    }

    pub(super) fn hold(&self, server: &Url, held: HeldToken, identity: &Identity) {
        if let Some(keeper) = &self.0.keeper {
            keeper.keep(&Kept::of(server, &held, identity));
        }
        self.state().tokens.insert(server.clone(), held);
    }

    pub(super) fn client(&self, issuer: &str) -> Option<Client> {
        self.state().clients.get(issuer).cloned()
    }

    pub(super) fn keep_client(&self, issuer: &str, client: &Client) {
        self.state().clients.insert(issuer.to_owned(), client.clone());
    }

    /// The issuer that a registered client belongs to: the first with which it is used.
    pub(super) fn bind(&self, client: &str, issuer: &str) -> String {
        self.state().bound.entry(client.to_owned()).or_insert_with(|| issuer.to_owned()).clone()
    }

    fn state(&self) -> MutexGuard<'_, TokenStoreState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for TokenStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "TokenStore({} tokens)", self.state().tokens.len())
    }
}
