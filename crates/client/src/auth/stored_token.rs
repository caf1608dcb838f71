//! What of a token outlives this process: enough to send it and to renew it. Knows no files and no formats.

use super::assertion::now;
use super::discovery::{AuthorizationServer, Pkce};
use super::registration::{Authentication, Client};
use super::secret::Secret;
use super::store::HeldToken;
use super::{Credential, Identity};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use url::Url;

/// Keeps tokens beyond this process. Called while a request waits, so it has to be quick.
pub trait TokenPersistence: Send + Sync {
    /// The token for a server, if one is kept.
    fn recall(&self, server: &Url) -> Option<Kept>;

    /// A token that was just given, in place of an earlier one of the same server, issuer and client.
    fn keep(&self, kept: &Kept);
}

/// A token as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The MCP server.
    pub server: Url,
    /// The `resource` parameter.
    pub resource: String,
    pub issuer: String,
    pub token_endpoint: Option<Url>,
    pub client: String,
    pub method: ClientMethod,
    /// Only of a client that registered itself: what the user gave is the user's to keep.
    pub client_secret: Option<Secret>,
    pub access: Secret,
    pub refresh: Option<Secret>,
    pub expires: Option<SystemTime>,
    pub scopes: BTreeSet<String>,
}

/// How the client shows itself at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientMethod {
    None,
    Basic,
    Post,
    PrivateKeyJwt,
}

impl Kept {
    pub(super) fn of(server: &Url, held: &HeldToken, identity: &Identity) -> Self {
        let HeldToken { access, refresh, expires, scopes, server: issuer, client, resource } = held;
        let given = identity.registered.as_ref().is_some_and(|registered| registered.id == client.id);
        let (method, secret) = match &client.authentication {
            Authentication::None => (ClientMethod::None, None),
            Authentication::Basic(secret) => (ClientMethod::Basic, Some(secret)),
            Authentication::Post(secret) => (ClientMethod::Post, Some(secret)),
            Authentication::PrivateKeyJwt(_) => (ClientMethod::PrivateKeyJwt, None),
        };
        let left = expires.map(|expires| expires.saturating_duration_since(Instant::now()));
        Self {
            server: server.clone(),
            resource: resource.clone(),
            issuer: issuer.issuer.clone(),
            token_endpoint: issuer.token_endpoint.clone(),
            client: client.id.clone(),
            method,
            client_secret: secret.filter(|_| !given).cloned(),
            access: access.clone(),
            refresh: refresh.clone(),
            expires: left.and_then(|left| now().checked_add(left)),
            scopes: scopes.clone(),
        }
    }

    /// Without what proves who the client is, the token is good but cannot be renewed.
    pub(super) fn into_held(self, identity: &Identity) -> HeldToken {
        let given = identity.registered.as_ref().filter(|registered| registered.id == self.client).map(|registered| &registered.credential);
        let secret = self.client_secret.or_else(|| match given {
            Some(Credential::Secret(secret)) => Some(secret.clone()),
            _ => None,
        });
        let authentication = match (self.method, secret, given) {
            (ClientMethod::None, ..) => Some(Authentication::None),
            (ClientMethod::Basic, Some(secret), _) => Some(Authentication::Basic(secret)),
            (ClientMethod::Post, Some(secret), _) => Some(Authentication::Post(secret)),
            (ClientMethod::PrivateKeyJwt, _, Some(Credential::Key(key))) => Some(Authentication::PrivateKeyJwt(key.clone())),
            _ => None,
        };
        let left = |expires: SystemTime| expires.duration_since(now()).unwrap_or(Duration::ZERO);
        HeldToken {
            access: self.access,
            refresh: self.refresh.filter(|_| authentication.is_some()),
            expires: self.expires.and_then(|expires| Instant::now().checked_add(left(expires))),
            scopes: self.scopes,
            server: Arc::new(AuthorizationServer {
                issuer: self.issuer,
                authorization_endpoint: None,
                token_endpoint: self.token_endpoint,
                registration_endpoint: None,
                scopes: Vec::new(),
                client_authentication: None,
                pkce: Pkce::Unknown,
                names_issuer: false,
                takes_metadata_documents: false,
            }),
            client: Client { id: self.client, authentication: authentication.unwrap_or(Authentication::None) },
            resource: self.resource,
        }
    }
}
