//! The token endpoint: each grant as a form, the client's authentication, and the response.
//! Source: OAuth 2.1 draft 13, 3.2 and 4; RFC 7523; RFC 8707 for `resource`.

use super::assertion::random_text;
use super::authorization_failure::AuthorizationFailure;
use super::discovery::AuthorizationServer;
use super::flow::FlowStep;
use super::registration::{Authentication, Client};
use super::secret::Secret;
use super::web::{Form, Web};
use super::{Credential, IdentityProvider};
use crate::session::Headers;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use url::form_urlencoded;

pub(super) const ASSERTION_GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const EXCHANGE_GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_ASSERTION: &str = "urn:ietf:params:oauth:token-type:id-jag";
const CLIENT_ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// What a token is requested with.
pub(super) enum GrantCredential<'a> {
    Code { code: Secret, verifier: Secret, redirect_uri: &'a str },
    Refresh(&'a Secret),
    ClientCredentials,
    Assertion(&'a Secret),
}

/// Where and for what a token is requested.
pub(super) struct Purpose<'a> {
    pub(super) server: &'a AuthorizationServer,
    pub(super) client: &'a Client,
    pub(super) resource: &'a str,
    pub(super) scopes: &'a BTreeSet<String>,
}

/// What the token endpoint gave.
#[derive(Debug)]
pub(super) struct Tokens {
    pub(super) access: Secret,
    pub(super) refresh: Option<Secret>,
    pub(super) expires: Option<Instant>,
}

pub(super) async fn redeem(web: &Web, purpose: &Purpose<'_>, ticket: GrantCredential<'_>) -> Result<Tokens, AuthorizationFailure> {
    let Purpose { server, client, resource, scopes } = purpose;
    let url = server.token_endpoint.as_ref();
    let url = url.ok_or_else(|| AuthorizationFailure::NoEndpoint { issuer: server.issuer.clone(), name: "token_endpoint" })?;
    let step = if matches!(ticket, GrantCredential::Refresh(_)) { FlowStep::Renewal } else { FlowStep::Token };
    let mut form = Form::new();
    match ticket {
        GrantCredential::Code { code, verifier, redirect_uri } => {
            form.push(("grant_type", "authorization_code".into()));
            form.push(("code", code.expose().to_owned()));
            form.push(("redirect_uri", redirect_uri.to_owned()));
            form.push(("code_verifier", verifier.expose().to_owned()));
        }
        GrantCredential::Refresh(token) => {
            form.push(("grant_type", "refresh_token".into()));
            form.push(("refresh_token", token.expose().to_owned()));
        }
        GrantCredential::ClientCredentials => {
            form.push(("grant_type", "client_credentials".into()));
            form.extend((!scopes.is_empty()).then(|| ("scope", joined(scopes))));
        }
        GrantCredential::Assertion(assertion) => {
            web.keep_secret(assertion.expose());
            form.push(("grant_type", ASSERTION_GRANT.into()));
            form.push(("assertion", assertion.expose().to_owned()));
            form.extend((!scopes.is_empty()).then(|| ("scope", joined(scopes))));
        }
    }
    form.push(("resource", (*resource).to_owned()));
    let headers = authenticate(web, client, &server.issuer, &mut form)?;
    let answer = web.post_form(step, url, headers, &form).await?;
    let failure = |reason: String, code: Option<String>| {
        let reason = web.redacted(reason);
        AuthorizationFailure::NoToken { url: Box::new(url.clone()), reason, code }
    };
    let refused = |reason: String| failure(reason, None);
    let document = answer.object().filter(|_| answer.status() == 200);
    let document = document.ok_or_else(|| failure(answer.complaint(), answer.error_code()))?;
    let text = |name: &str| document.get(name).and_then(Value::as_str);
    for name in ["access_token", "refresh_token"] {
        bounded(name, text(name)).map_err(refused)?;
    }
    let access = text("access_token").filter(|token| is_token(token));
    let access = access.ok_or_else(|| refused("its response has no usable `access_token`".into()))?;
    match text("token_type") {
        Some(kind) if kind.eq_ignore_ascii_case("bearer") => {}
        Some(kind) => return Err(refused(format!("its token is of the type `{kind}`, not `Bearer`"))),
        None => return Err(refused("its response has no `token_type`".into())),
    }
    let lifetime = document.get("expires_in").and_then(Value::as_u64).map(Duration::from_secs);
    let tokens = Tokens {
        access: Secret::new(access),
        refresh: text("refresh_token").map(Secret::new),
        expires: lifetime.and_then(|lifetime| Instant::now().checked_add(lifetime)),
    };
    web.keep_secret(tokens.access.expose());
    if let Some(refresh) = &tokens.refresh {
        web.keep_secret(refresh.expose());
    }
    Ok(tokens)
}

/// Asks the identity provider to vouch for its user at the authorization server: token exchange for an ID-JAG
/// (enterprise-managed authorization, token exchange; RFC 8693).
pub(super) async fn vouch(web: &Web, provider: &IdentityProvider, purpose: &Purpose<'_>) -> Result<Secret, AuthorizationFailure> {
    let IdentityProvider { token_endpoint: url, client, credential, id_token } = provider;
    web.keep_secret(id_token.expose());
    let mut form: Form = vec![
        ("grant_type", EXCHANGE_GRANT.into()),
        ("requested_token_type", ID_ASSERTION.into()),
        ("subject_token", id_token.expose().to_owned()),
        ("subject_token_type", ID_TOKEN.into()),
        ("audience", purpose.server.issuer.clone()),
        ("resource", purpose.resource.to_owned()),
    ];
    form.extend((!purpose.scopes.is_empty()).then(|| ("scope", joined(purpose.scopes))));
    let authentication = match credential {
        Credential::None => Authentication::None,
        Credential::Secret(secret) => Authentication::Basic(secret.clone()),
        Credential::Key(key) => Authentication::PrivateKeyJwt(key.clone()),
    };
    let client = Client { id: client.clone(), authentication };
    let headers = authenticate(web, &client, url.as_str(), &mut form)?;
    let answer = web.post_form(FlowStep::Assertion, url, headers, &form).await?;
    let refused = |reason: String| AuthorizationFailure::NoToken { url: Box::new(url.clone()), reason: web.redacted(reason), code: None };
    let document = answer.object().filter(|_| answer.status() == 200).ok_or_else(|| refused(answer.complaint()))?;
    let text = |name: &str| document.get(name).and_then(Value::as_str);
    bounded("access_token", text("access_token")).map_err(refused)?;
    match (text("issued_token_type"), text("access_token")) {
        (Some(ID_ASSERTION), Some(assertion)) => Ok(Secret::new(assertion)),
        (Some(ID_ASSERTION), None) => Err(refused("its response has no `access_token`".into())),
        (kind, _) => Err(refused(format!("it issued `{}`, not `{ID_ASSERTION}`", kind.unwrap_or("a token of unknown type")))),
    }
}

/// Puts the client into headers or form.
fn authenticate(web: &Web, client: &Client, issuer: &str, form: &mut Form) -> Result<Headers, AuthorizationFailure> {
    match &client.authentication {
        Authentication::Basic(secret) => {
            web.keep_secret(secret.expose());
            // Both halves are form-encoded before they are joined (RFC 6749, 2.3.1).
            let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
            let pair = STANDARD.encode(format!("{}:{}", encode(&client.id), encode(secret.expose())));
            web.keep_secret(&pair);
            return Ok(vec![("authorization".into(), format!("Basic {pair}"))]);
        }
        Authentication::None => form.push(("client_id", client.id.clone())),
        Authentication::Post(secret) => {
            web.keep_secret(secret.expose());
            form.push(("client_id", client.id.clone()));
            form.push(("client_secret", secret.expose().to_owned()));
        }
        Authentication::PrivateKeyJwt(key) => {
            let assertion = key.assertion(&client.id, issuer).map_err(AuthorizationFailure::Unsigned)?;
            web.keep_secret(assertion.expose());
            form.push(("client_id", client.id.clone()));
            form.push(("client_assertion_type", CLIENT_ASSERTION.into()));
            form.push(("client_assertion", assertion.expose().to_owned()));
        }
    }
    Ok(Headers::new())
}

/// Bytes of a token, or of anything else that an authorization server hands out: each is sent with every request, and looked for in all that
/// is recorded.
pub(super) const LARGEST: usize = 64 << 10;

/// Refuses what no server takes in a header.
///
/// # Errors
/// It is larger than that, in words for a reason.
pub(super) fn bounded(name: &str, value: Option<&str>) -> Result<(), String> {
    match value.is_some_and(|value| value.len() > LARGEST) {
        true => Err(format!("its `{name}` is larger than {LARGEST} bytes")),
        false => Ok(()),
    }
}

/// A value that may stand in a header: visible ASCII (RFC 6750, 2.1, is stricter still).
fn is_token(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic())
}

pub(super) fn joined(scopes: &BTreeSet<String>) -> String {
    scopes.iter().map(String::as_str).collect::<Vec<_>>().join(" ")
}

pub(super) fn random_secret() -> Result<Secret, AuthorizationFailure> {
    random_text().map(Secret::new).map_err(AuthorizationFailure::Unsigned)
}
