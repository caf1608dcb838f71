//! Why there is no token: one sentence for each place where a flow can end.

use super::discovery::Document;
use mcproof_record::duration::readable;
use std::time::Duration;
use url::Url;

/// Why a server that wants authorization did not get it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthorizationFailure {
    #[error("{url}: {reason}")]
    Unreachable { url: Box<Url>, reason: String },
    #[error("the {document} at {url} {reason}")]
    BadMetadata { document: Document, url: Box<Url>, reason: String },
    #[error("{server} has no protected-resource metadata, neither at its path nor at its root")]
    NoResourceMetadata { server: Box<Url> },
    #[error(
        "{issuer} does not describe how to get a token: it has no protected-resource metadata, no authorization-server metadata, and nothing at \
         the default endpoints of 2025-03-26"
    )]
    NoMetadata { issuer: String },
    #[error("no metadata of the authorization server {issuer}, neither for OAuth nor for OpenID Connect{}", .page.as_ref().map(|url| format!(": {url} is a web page")).unwrap_or_default())]
    NoServerMetadata {
        issuer: String,
        /// Where a web page came in their place.
        page: Option<Box<Url>>,
    },
    #[error("the protected-resource metadata at {url} is for `{found}`, not for the server {expected}")]
    OtherResource { url: Box<Url>, found: String, expected: Box<Url> },
    #[error("the authorization-server metadata at {url} is of the issuer `{found}`, not of `{expected}`")]
    OtherIssuer { url: Box<Url>, found: String, expected: String },
    #[error("the metadata of the authorization server {issuer} has no `{name}`")]
    NoEndpoint { issuer: String, name: &'static str },
    #[error("the metadata of the authorization server {issuer} does not declare support for PKCE with S256")]
    NoPkce { issuer: String },
    #[error("no way to get a client id from {issuer}: {reason}")]
    NoClient { issuer: String, reason: &'static str },
    #[error("the client is registered with {expected}, but the server now names {found}")]
    OtherAuthorizationServer { expected: String, found: String },
    #[error("{url} refused to register the client: {reason}")]
    NotRegistered { url: Box<Url>, reason: String },
    #[error("the user stopped it before {url} was requested: {reason}")]
    Stopped { url: Box<Url>, reason: String },
    #[error("no user can consent: {0}")]
    NoUser(String),
    #[error("no response from the authorization page: {0}")]
    NoRedirect(String),
    #[error("the authorization response {0}")]
    BadResponse(String),
    #[error("the authorization server refused: {0}")]
    Refused(String),
    #[error("the token endpoint {url} issued no token: {reason}")]
    NoToken {
        url: Box<Url>,
        reason: String,
        /// The error code of its response, such as `invalid_client`, unless it is one of an identity provider.
        code: Option<String>,
    },
    #[error("cannot sign with the client's key: {0}")]
    Unsigned(String),
    #[error("the server rejects the token that its own authorization server issued")]
    TokenRefused,
    #[error("the server requires the scopes `{scopes}` again, although the token was already requested with them")]
    ScopesRefused { scopes: String },
    #[error("the scopes to request are larger than {limit} bytes together")]
    ScopesTooLarge { limit: usize },
    #[error("the server requires more than {limit} authorizations for one request")]
    TooMany { limit: usize },
    #[error("authorization took longer than {}{}", readable(*.after), .awaited.as_ref().map(|url| format!(": no response from {url}")).unwrap_or_default())]
    TimedOut {
        after: Duration,
        /// Whose response was awaited, if it was not the user.
        awaited: Option<Box<Url>>,
    },
}
