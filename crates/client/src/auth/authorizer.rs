//! Answers a server's challenge: finds its authorization server, gets or renews a token, and knows when to give up. One for
//! each session; sessions that share a store share their tokens.

use super::authorization_failure::AuthorizationFailure;
use super::bearer::Bearer;
use super::challenge::Challenge;
use super::discovery::{self, AuthorizationServer, Fallback};
use super::flow::FlowEvent;
use super::registration::{self, Client};
use super::secret::Secret;
use super::store::HeldToken;
use super::token::{self, GrantCredential, Purpose, Tokens};
use super::web::Web;
use super::{Authorization, Grant, code};
use crate::Tap;
use crate::transport::{HttpHead, Limits, Network};
use mcproof_record::ExchangeId;
use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::timeout;
use url::Url;

pub(crate) struct Authorizer {
    options: Authorization,
    /// The MCP server.
    server: Url,
    fallback: Fallback,
    web: Web,
    bearer: Bearer,
    /// Steps up that were made, by operation and scopes: the same again would end as before (2026-07-28, step-up
    /// authorization flow, retry limits).
    steps: Mutex<HashSet<(String, BTreeSet<String>)>>,
}

/// What was done so far for one request.
#[derive(Default)]
pub(crate) struct Attempts {
    rounds: usize,
    authorizations: usize,
    /// How the token was come by that the server refused.
    last: Option<Obtained>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Obtained {
    /// From another session.
    Shared,
    Refreshed,
    Authorized,
}

/// What a challenge requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// 401: a token, or another one.
    Token,
    /// 403: a token for more.
    Scopes,
}

/// A response by which the server wants a token.
struct Refusal<'a> {
    exchange: ExchangeId,
    operation: &'a str,
    challenge: &'a Challenge,
    need: Need,
}

/// Tokens tried for one request, wherever they came from: sessions that refresh one store for a server that is never
/// content would hand each other new tokens for ever.
const MAX_ROUNDS: usize = 8;
/// Full authorizations for one request: to get a token at all, and to step up.
const MAX_AUTHORIZATIONS: usize = 3;
const INSUFFICIENT_SCOPE: &str = "insufficient_scope";
const OFFLINE_ACCESS: &str = "offline_access";

/// Whether a response requires a token, or one with more scopes (RFC 6750, 3.1).
pub(crate) fn wants_authorization(head: &HttpHead) -> bool {
    need(head, &Challenge::of(head)).is_some()
}

fn need(head: &HttpHead, challenge: &Challenge) -> Option<Need> {
    match head.status {
        401 => Some(Need::Token),
        403 if challenge.error.as_deref() == Some(INSUFFICIENT_SCOPE) => Some(Need::Scopes),
        _ => None,
    }
}

impl Authorizer {
    /// `version` is the revision of MCP that the session is to speak.
    pub(crate) fn new(
        options: &Authorization,
        server: &Url,
        fallback: Fallback,
        limits: Limits,
        network: Network,
        tap: &Tap,
        version: &str,
    ) -> Self {
        let mut server = server.clone();
        server.set_fragment(None);
        let web = Web::new(limits, network, tap, version.to_owned(), options.control.clone());
        if options.store.held(&server).is_none() {
            options.store.recall(&server, &options.identity, options.scopes.as_deref());
        }
        let held = options.store.held(&server).map(|held| held.access);
        if let Some(token) = &held {
            web.keep_secret(token.expose());
        }
        Self { options: options.clone(), server, fallback, web, bearer: Bearer::new(held), steps: Mutex::default() }
    }

    /// Waits no longer than this for the response to each request of a flow.
    pub(crate) fn with_patience(mut self, most: Duration) -> Self {
        self.web.limit_patience(most);
        self
    }

    pub(crate) fn bearer(&self) -> &Bearer {
        &self.bearer
    }

    /// Renews a token that has expired by its own account, if it can be. Otherwise the server will say what it wants.
    pub(crate) async fn freshen(&self) {
        if !self.options.store.is_expired(&self.server) {
            return;
        }
        let renew = async {
            let _gate = self.options.store.gate().lock().await;
            match self.options.store.held(&self.server) {
                Some(held) if held.is_expired() => drop(self.refresh(held).await),
                Some(held) => self.take(&held.access),
                None => {}
            }
        };
        let _ = timeout(self.options.timeout, renew).await;
    }

    /// Gets the token that a refused request wants. `refused` is the one that it carried, `operation` what it was about.
    ///
    /// # Errors
    /// Says why the request cannot succeed.
    pub(crate) async fn answer(
        &self,
        operation: &str,
        head: &HttpHead,
        refused: Option<&Secret>,
        attempts: &mut Attempts,
    ) -> Result<(), AuthorizationFailure> {
        let challenge = Challenge::of(head);
        let need = need(head, &challenge).unwrap_or(Need::Token);
        let after = self.options.timeout;
        let refusal = Refusal { exchange: head.exchange, operation, challenge: &challenge, need };
        let obtained = timeout(after, self.obtain(refusal, refused, attempts)).await;
        let obtained = obtained.unwrap_or_else(|_| Err(AuthorizationFailure::TimedOut { after, awaited: self.web.awaited() }));
        if obtained != Ok(Obtained::Shared) {
            self.web.tell(FlowEvent::Ended { failure: obtained.as_ref().err() });
        }
        let obtained = obtained?;
        attempts.rounds += 1;
        attempts.authorizations += usize::from(obtained == Obtained::Authorized);
        attempts.last = Some(obtained);
        Ok(())
    }

    async fn obtain(&self, refusal: Refusal<'_>, refused: Option<&Secret>, attempts: &Attempts) -> Result<Obtained, AuthorizationFailure> {
        let Refusal { exchange, operation, challenge, need } = refusal;
        if need == Need::Token && (attempts.last == Some(Obtained::Authorized) || attempts.rounds >= MAX_ROUNDS) {
            return Err(AuthorizationFailure::TokenRefused);
        }
        if attempts.authorizations >= MAX_AUTHORIZATIONS {
            return Err(AuthorizationFailure::TooMany { limit: MAX_AUTHORIZATIONS });
        }
        let _gate = self.options.store.gate().lock().await;
        let Authorization { identity, grant, store, .. } = &self.options;
        if store.held(&self.server).is_none_or(|held| Some(&held.access) == refused) {
            store.recall(&self.server, identity, self.options.scopes.as_deref());
        }
        let held = store.held(&self.server);
        if let Some(held) = &held
            && Some(&held.access) != refused
            && attempts.last != Some(Obtained::Shared)
        {
            self.take(&held.access);
            return Ok(Obtained::Shared);
        }
        self.web.tell(FlowEvent::Refused { exchange, operation });
        let is_renewable =
            need == Need::Token && attempts.last != Some(Obtained::Refreshed) && held.as_ref().is_some_and(|held| held.refresh.is_some());
        if let Grant::Code { user } = grant
            && !is_renewable
        {
            // Whatever the metadata say, somebody has to consent.
            user.is_there().map_err(AuthorizationFailure::NoUser)?;
        }
        // Each time anew: the server may have moved to another authorization server (2026-07-28, client registration,
        // authorization server binding).
        let (server, resource, advertised) = self.discover(challenge, held.as_ref()).await?;
        let same_server = held.as_ref().is_some_and(|held| held.server.issuer == server.issuer);
        if let Some(held) = &held
            && same_server
            && is_renewable
        {
            match self.refresh(held.clone()).await {
                Ok(()) => return Ok(Obtained::Refreshed),
                Err(failure) => self.web.note(format!("the token could not be refreshed: {failure}")),
            }
        }
        if let Grant::Code { user } = grant {
            user.is_there().map_err(AuthorizationFailure::NoUser)?;
        }
        let before = held.map(|held| held.scopes).unwrap_or_default();
        let scopes = self.scopes(challenge, need, advertised.as_deref(), before, &server);
        if scopes.iter().map(String::len).sum::<usize>() > token::LARGEST {
            return Err(AuthorizationFailure::ScopesTooLarge { limit: token::LARGEST });
        }
        if need == Need::Scopes {
            let step = (operation.to_owned(), scopes.clone());
            if !self.steps.lock().unwrap_or_else(PoisonError::into_inner).insert(step) {
                return Err(AuthorizationFailure::ScopesRefused { scopes: token::joined(&scopes) });
            }
        }
        let client = registration::identify(&self.web, identity, grant, &server, store, &scopes).await?;
        let purpose = Purpose { server: &server, client: &client, resource: &resource, scopes: &scopes };
        let tokens = match grant {
            Grant::Code { user } => code::authorize(&self.web, &**user, &purpose).await,
            Grant::ClientCredentials => token::redeem(&self.web, &purpose, GrantCredential::ClientCredentials).await,
            Grant::Assertion(assertion) => token::redeem(&self.web, &purpose, GrantCredential::Assertion(assertion)).await,
            Grant::IdentityProvider(provider) => {
                let assertion = token::vouch(&self.web, provider, &purpose).await?;
                token::redeem(&self.web, &purpose, GrantCredential::Assertion(&assertion)).await
            }
        }?;
        self.hold(tokens, None, scopes, Arc::new(server), client, resource);
        Ok(Obtained::Authorized)
    }

    /// The authorization server, the `resource` parameter, and the scopes that the MCP server advertises.
    async fn discover(
        &self,
        challenge: &Challenge,
        held: Option<&HeldToken>,
    ) -> Result<(AuthorizationServer, String, Option<Vec<String>>), AuthorizationFailure> {
        let Some(resource) = discovery::protected_resource(&self.web, &self.server, challenge).await? else {
            return match self.fallback {
                Fallback::OwnAuthorizationServer => {
                    let server = discovery::own_authorization_server(&self.web, &self.server).await?;
                    Ok((server, self.canonical(), None))
                }
                Fallback::None => Err(AuthorizationFailure::NoResourceMetadata { server: Box::new(self.server.clone()) }),
            };
        };
        let listed = |wanted: &str| resource.authorization_servers.iter().any(|issuer| issuer == wanted);
        let registered = self.options.identity.registered.as_ref().and_then(|client| client.issuer.as_deref());
        let issuer = match (registered, held) {
            (Some(issuer), _) if listed(issuer) => issuer,
            (None, Some(held)) if listed(&held.server.issuer) => &held.server.issuer,
            _ => &resource.authorization_servers[0],
        };
        let server = discovery::authorization_server(&self.web, issuer, &self.server).await?;
        Ok((server, resource.identifier, resource.scopes))
    }

    /// The server's URL as an identifier (2026-07-28, authorization, canonical server URI).
    fn canonical(&self) -> String {
        let text = self.server.as_str();
        if self.server.path() == "/" && self.server.query().is_none() { text.trim_end_matches('/').to_owned() } else { text.to_owned() }
    }

    /// 2026-07-28, authorization, scope selection strategy and refresh tokens. What was requested before stays.
    fn scopes(
        &self,
        challenge: &Challenge,
        need: Need,
        advertised: Option<&[String]>,
        before: BTreeSet<String>,
        server: &AuthorizationServer,
    ) -> BTreeSet<String> {
        let challenged = challenge.scopes.as_deref();
        let configured = self.options.scopes.as_deref();
        let mut scopes = before;
        scopes.extend(configured.or(challenged).or(advertised).unwrap_or_default().iter().cloned());
        if need == Need::Scopes {
            scopes.extend(challenged.unwrap_or_default().iter().cloned());
        }
        if configured.is_none() && !scopes.is_empty() && matches!(self.options.grant, Grant::Code { .. }) {
            match server.scopes.iter().any(|scope| scope == OFFLINE_ACCESS) {
                true => scopes.insert(OFFLINE_ACCESS.to_owned()),
                // Asked for at another authorization server before.
                false => !challenged.unwrap_or_default().iter().any(|scope| scope == OFFLINE_ACCESS) && scopes.remove(OFFLINE_ACCESS),
            };
        }
        scopes
    }

    async fn refresh(&self, held: HeldToken) -> Result<(), AuthorizationFailure> {
        let HeldToken { refresh, scopes, server, client, resource, .. } = held;
        let Some(refresh) = refresh else { return Err(AuthorizationFailure::TokenRefused) };
        let purpose = Purpose { server: &server, client: &client, resource: &resource, scopes: &scopes };
        let tokens = token::redeem(&self.web, &purpose, GrantCredential::Refresh(&refresh)).await?;
        self.hold(tokens, Some(refresh), scopes, Arc::clone(&server), client.clone(), resource.clone());
        Ok(())
    }

    /// `refresh` stays good where no other came.
    fn hold(
        &self,
        tokens: Tokens,
        refresh: Option<Secret>,
        scopes: BTreeSet<String>,
        server: Arc<AuthorizationServer>,
        client: Client,
        resource: String,
    ) {
        let Tokens { access, refresh: newer, expires } = tokens;
        let held = HeldToken { access: access.clone(), refresh: newer.or(refresh), expires, scopes, server, client, resource };
        self.options.store.hold(&self.server, held, &self.options.identity);
        self.take(&access);
    }

    fn take(&self, token: &Secret) {
        self.web.keep_secret(token.expose());
        self.bearer.set(token.clone());
    }
}
