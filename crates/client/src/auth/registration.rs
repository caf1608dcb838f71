//! Which client we are to an authorization server: one that it knows, one with a metadata document, or one that registers
//! itself.
//! Source: 2026-07-28, client-registration; RFC 7591.

use super::authorization_failure::AuthorizationFailure;
use super::discovery::{AuthorizationServer, Pkce};
use super::flow::{FlowEvent, FlowStep};
use super::secret::Secret;
use super::store::TokenStore;
use super::web::Web;
use super::{Credential, DynamicRegistration, Grant, Identity, Registered, token};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use url::{Host, Url};

/// A client as one authorization server knows it.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) authentication: Authentication,
}

/// How the client shows itself at the token endpoint (RFC 8414, `token_endpoint_auth_methods_supported`).
#[derive(Clone, Debug)]
pub(super) enum Authentication {
    None,
    Basic(Secret),
    Post(Secret),
    PrivateKeyJwt(super::SigningKey),
}

const NONE: &str = "none";
const BASIC: &str = "client_secret_basic";
const POST: &str = "client_secret_post";
const CLIENT_NAME: &str = "mcproof";

/// The client id for this authorization server, from the first of the identity's forms that serves there.
pub(super) async fn identify(
    web: &Web,
    identity: &Identity,
    grant: &Grant,
    server: &AuthorizationServer,
    store: &TokenStore,
    scopes: &BTreeSet<String>,
) -> Result<Client, AuthorizationFailure> {
    let unneeded = |reason: &str| web.tell(FlowEvent::Unneeded { step: FlowStep::Registration, reason });
    if let Some(registered) = &identity.registered {
        unneeded(&format!("the client ID `{}` is configured", registered.id));
        return known(registered, server, store);
    }
    if let Some(document) = identity.metadata_document.as_ref().filter(|_| server.takes_metadata_documents) {
        unneeded(&format!("the authorization server reads the client ID metadata document {document}"));
        return Ok(Client { id: document.to_string(), authentication: Authentication::None });
    }
    if let Some(client) = store.client(&server.issuer) {
        unneeded(&format!("the client ID `{}` was registered before", client.id));
        return Ok(client);
    }
    let none = |reason| AuthorizationFailure::NoClient { issuer: server.issuer.clone(), reason };
    match (&server.registration_endpoint, identity.dynamic) {
        (Some(endpoint), DynamicRegistration::Allowed) => {
            let client = register(web, endpoint, grant, server, scopes).await?;
            store.keep_client(&server.issuer, &client);
            Ok(client)
        }
        (Some(_), DynamicRegistration::Never) => Err(none("no client is registered with it, and dynamic registration is off")),
        (None, _) => Err(none("it offers no dynamic registration and accepts no client metadata document, and no client id is configured")),
    }
}

/// A registered client belongs to the authorization server that issued it, and to no other.
fn known(registered: &Registered, server: &AuthorizationServer, store: &TokenStore) -> Result<Client, AuthorizationFailure> {
    let expected = registered.issuer.clone().unwrap_or_else(|| store.bind(&registered.id, &server.issuer));
    if expected != server.issuer {
        return Err(AuthorizationFailure::OtherAuthorizationServer { expected, found: server.issuer.clone() });
    }
    let authentication = match &registered.credential {
        Credential::None => Authentication::None,
        Credential::Key(key) => Authentication::PrivateKeyJwt(key.clone()),
        Credential::Secret(secret) => with_secret(secret, None, server),
    };
    Ok(Client { id: registered.id.clone(), authentication })
}

/// `registered` is the method that the registration settled; without one, the metadata chooses.
fn with_secret(secret: &Secret, registered: Option<&str>, server: &AuthorizationServer) -> Authentication {
    let supports = |method: &str| match &server.client_authentication {
        Some(methods) => methods.iter().any(|known| known == method),
        None => method == BASIC,
    };
    match registered {
        Some(NONE) => Authentication::None,
        Some(POST) => Authentication::Post(secret.clone()),
        Some(_) => Authentication::Basic(secret.clone()),
        None if supports(BASIC) => Authentication::Basic(secret.clone()),
        None if supports(POST) => Authentication::Post(secret.clone()),
        None if supports(NONE) => Authentication::None,
        None => Authentication::Basic(secret.clone()),
    }
}

async fn register(
    web: &Web,
    endpoint: &Url,
    grant: &Grant,
    server: &AuthorizationServer,
    scopes: &BTreeSet<String>,
) -> Result<Client, AuthorizationFailure> {
    let refused = |reason: String| AuthorizationFailure::NotRegistered { url: Box::new(endpoint.clone()), reason: web.redacted(reason) };
    let answer = web.post_json(FlowStep::Registration, endpoint, &metadata(grant, server, scopes)).await?;
    // An endpoint that nobody advertised, and that is not there.
    if server.pkce == Pkce::Unknown && matches!(answer.status(), 401 | 403 | 404 | 405) {
        return Err(AuthorizationFailure::NoMetadata { issuer: server.issuer.clone() });
    }
    let document = answer.object().filter(|_| matches!(answer.status(), 200 | 201)).ok_or_else(|| refused(answer.complaint()))?;
    let text = |name: &str| document.get(name).and_then(Value::as_str);
    for name in ["client_id", "client_secret"] {
        token::bounded(name, text(name)).map_err(refused)?;
    }
    let id = text("client_id").ok_or_else(|| refused("its response has no `client_id`".into()))?.to_owned();
    let authentication = match text("client_secret") {
        Some(secret) => with_secret(&Secret::new(secret), text("token_endpoint_auth_method"), server),
        None => Authentication::None,
    };
    Ok(Client { id, authentication })
}

/// Client metadata (RFC 7591, 2).
fn metadata(grant: &Grant, server: &AuthorizationServer, scopes: &BTreeSet<String>) -> Value {
    let supported = server.client_authentication.as_deref();
    let offers = |method: &str| supported.is_some_and(|methods| methods.iter().any(|known| known == method));
    let authentication = match grant {
        // A client on a user's machine cannot keep a secret.
        Grant::Code { .. } | Grant::Assertion(_) | Grant::IdentityProvider(_) if offers(NONE) => NONE,
        _ if offers(POST) && !offers(BASIC) => POST,
        _ => BASIC,
    };
    let mut metadata = Map::new();
    let mut set = |name: &str, value: Value| metadata.insert(name.to_owned(), value);
    set("client_name", json!(CLIENT_NAME));
    set("token_endpoint_auth_method", json!(authentication));
    match grant {
        Grant::Code { user } => {
            set("redirect_uris", json!([user.redirect_uri().as_str()]));
            set("grant_types", json!(["authorization_code", "refresh_token"]));
            set("response_types", json!(["code"]));
            set("application_type", json!(application_type(user.redirect_uri())));
        }
        Grant::ClientCredentials => {
            set("grant_types", json!(["client_credentials"]));
            set("application_type", json!("native"));
        }
        Grant::Assertion(_) | Grant::IdentityProvider(_) => {
            set("grant_types", json!([token::ASSERTION_GRANT]));
            set("application_type", json!("native"));
        }
    }
    if !scopes.is_empty() {
        set("scope", json!(token::joined(scopes)));
    }
    Value::Object(metadata)
}

/// 2026-07-28, client registration, application type and redirect URI constraints.
fn application_type(redirect: &Url) -> &'static str {
    let local = match redirect.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => true,
    };
    if local || !matches!(redirect.scheme(), "http" | "https") { "native" } else { "web" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_to_this_machine_makes_a_native_application() {
        let check = |uri: &str, expected| assert_eq!(application_type(&Url::parse(uri).unwrap()), expected, "{uri}");
        check("http://localhost:3000/callback", "native");
        check("http://127.0.0.1/", "native");
        check("http://[::1]:1/", "native");
        check("com.example.app:/callback", "native");
        check("https://app.example.com/callback", "web");
    }
}
