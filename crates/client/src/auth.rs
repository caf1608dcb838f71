//! OAuth 2.1 as MCP requests it: from the server's challenge to a token, over our own HTTP, so that the transcript shows
//! each step and no secret. Knows no MCP methods.
//! Source: 2026-07-28, basic/authorization; 2025-03-26, basic/authorization, for servers without resource metadata.

mod assertion;
mod authorization_failure;
mod authorizer;
mod bearer;
mod challenge;
mod code;
mod discovery;
mod flow;
mod registration;
mod secret;
pub(crate) mod secret_finder;
mod store;
mod stored_token;
mod token;
mod user_agent;
mod web;

pub use assertion::{SigningAlgorithm, SigningKey, UnreadableKey};
pub use authorization_failure::AuthorizationFailure;
pub use challenge::metadata_hint;
pub(crate) use challenge::reason_of;
pub use discovery::{Document, identifies, resource_locations, server_locations};
pub use flow::{Approval, FlowControl, FlowEvent, FlowRequest, FlowStep};
pub use secret::Secret;
pub use store::TokenStore;
pub use stored_token::{ClientMethod, Kept, TokenPersistence};
pub use user_agent::{AuthorizationPage, Headless, UserAgent, Visit};

pub(crate) use assertion::random_text;
pub(crate) use authorizer::{Attempts, Authorizer, wants_authorization};
pub(crate) use bearer::Bearer;
pub(crate) use discovery::Fallback;

use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// How to come by a token when the server requests one.
#[derive(Clone)]
pub struct Authorization {
    pub identity: Identity,
    pub grant: Grant,
    /// Asks for these scopes instead of those that the server's challenge and metadata select.
    pub scopes: Option<Vec<String>>,
    /// Sessions that are given clones of one store share its tokens. One identity, one store.
    pub store: TokenStore,
    /// For one authorization, with all its exchanges and the user's part.
    pub timeout: Duration,
    /// Who goes through it step by step, if anybody does.
    pub control: Option<Arc<dyn FlowControl>>,
}

impl std::fmt::Debug for Authorization {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { identity, grant, scopes, store, timeout, control } = self;
        formatter
            .debug_struct("Authorization")
            .field("identity", identity)
            .field("grant", grant)
            .field("scopes", scopes)
            .field("store", store)
            .field("timeout", timeout)
            .field("is_controlled", &control.is_some())
            .finish()
    }
}

impl Authorization {
    /// With an empty store and the deadline that a flow without people needs.
    pub fn new(identity: Identity, grant: Grant) -> Self {
        Self { identity, grant, scopes: None, store: TokenStore::default(), timeout: Duration::from_secs(30), control: None }
    }
}

/// Who the client is to an authorization server. Of what is given, the first that fits is used, in the order of the
/// fields (2026-07-28, client registration).
#[derive(Clone, Debug, Default)]
pub struct Identity {
    pub registered: Option<Registered>,
    /// An https URL that leads to the client's metadata and serves as its id. The document has to name the redirect URI.
    pub metadata_document: Option<Url>,
    pub dynamic: DynamicRegistration,
}

/// A client that an authorization server knows already.
#[derive(Clone, Debug)]
pub struct Registered {
    pub id: String,
    pub credential: Credential,
    /// The authorization server that issued the id; the first one that is met, if not set.
    pub issuer: Option<String>,
}

/// How a client proves that it is who it says.
#[derive(Clone, Debug)]
pub enum Credential {
    /// A public client: it cannot.
    None,
    Secret(Secret),
    /// `private_key_jwt`.
    Key(SigningKey),
}

/// Whether a client that is not known registers itself (RFC 7591).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DynamicRegistration {
    #[default]
    Allowed,
    Never,
}

/// On what grounds the authorization server gives a token.
#[derive(Clone)]
pub enum Grant {
    /// A user consents; with PKCE.
    Code { user: Arc<dyn UserAgent> },
    /// The client acts for itself.
    ClientCredentials,
    /// A JWT that somebody else issued vouches for the client (RFC 7523), as workload identities do.
    Assertion(Secret),
    /// An enterprise's identity provider vouches for its user (enterprise-managed authorization): it exchanges what the
    /// user got from it for an assertion (RFC 8693).
    IdentityProvider(IdentityProvider),
}

/// Where a user is signed in already.
#[derive(Clone, Debug)]
pub struct IdentityProvider {
    pub token_endpoint: Url,
    /// The client's id at the identity provider.
    pub client: String,
    pub credential: Credential,
    /// What the user's signing in gave.
    pub id_token: Secret,
}

impl std::fmt::Debug for Grant {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code { user } => write!(formatter, "Code({})", user.redirect_uri()),
            Self::ClientCredentials => formatter.write_str("ClientCredentials"),
            Self::IdentityProvider(provider) => formatter.debug_tuple("IdentityProvider").field(provider).finish(),
            Self::Assertion(assertion) => formatter.debug_tuple("Assertion").field(assertion).finish(),
        }
    }
}
