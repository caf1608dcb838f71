//! The authorization code grant: the page that the user is sent to, what comes back from it, and PKCE.
//! Source: 2026-07-28, authorization, authorization response validation, and security-considerations; RFC 7636; RFC 9207.

use super::authorization_failure::AuthorizationFailure;
use super::discovery::{AuthorizationServer, Pkce};
use super::flow::FlowEvent;
use super::secret::Secret;
use super::token::{self, GrantCredential, Purpose, Tokens};
use super::user_agent::{AuthorizationPage, UserAgent};
use super::web::{Web, plain};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use url::Url;

/// Sends the user to the authorization page, and redeems the code that comes back.
pub(super) async fn authorize(web: &Web, user: &dyn UserAgent, purpose: &Purpose<'_>) -> Result<Tokens, AuthorizationFailure> {
    let Purpose { server, client, resource, scopes } = purpose;
    if server.pkce == Pkce::Unsupported {
        return Err(AuthorizationFailure::NoPkce { issuer: server.issuer.clone() });
    }
    let no_endpoint = || AuthorizationFailure::NoEndpoint { issuer: server.issuer.clone(), name: "authorization_endpoint" };
    let mut page = server.authorization_endpoint.clone().ok_or_else(no_endpoint)?;
    let (verifier, state) = (token::random_secret()?, token::random_secret()?);
    web.keep_secret(verifier.expose());
    let redirect_uri = user.redirect_uri();
    page.query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", &client.id)
        .append_pair("redirect_uri", redirect_uri.as_str())
        .append_pair("code_challenge", &challenge_of(&verifier))
        .append_pair("code_challenge_method", "S256")
        .append_pair("state", state.expose())
        .append_pair("resource", resource);
    if !scopes.is_empty() {
        page.query_pairs_mut().append_pair("scope", &token::joined(scopes));
    }
    web.note(format!("the user is sent to {}", plain(&page)));
    web.tell(FlowEvent::Page { url: &page });
    let back = user.visit(AuthorizationPage { url: &page, web }).await.map_err(AuthorizationFailure::NoRedirect)?;
    for (name, value) in back.query_pairs() {
        if name == "code" {
            web.keep_secret(&value);
        }
    }
    web.tell(FlowEvent::Returned { url: &web.redacted(back.to_string()) });
    let code = code_of(&back, redirect_uri, &state, server).map_err(|failure| clean(web, failure))?;
    token::redeem(web, purpose, GrantCredential::Code { code, verifier, redirect_uri: redirect_uri.as_str() }).await
}

/// S256 (RFC 7636, 4.2).
fn challenge_of(verifier: &Secret) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.expose().as_bytes()))
}

/// The code in an authorization response, once the response is known to be from the right server and for us.
fn code_of(back: &Url, redirect_uri: &Url, state: &Secret, server: &AuthorizationServer) -> Result<Secret, AuthorizationFailure> {
    let bad = |reason: String| AuthorizationFailure::BadResponse(reason);
    if plain(back) != plain(redirect_uri) {
        return Err(bad(format!("leads to {}, not to the redirect URI {redirect_uri}", plain(back))));
    }
    let find = |wanted: &str| back.query_pairs().find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned());
    // Before anything else, errors included; compared as strings (RFC 9207, 2.4).
    match find("iss") {
        Some(issuer) if issuer != server.issuer => return Err(bad(format!("is of the issuer `{issuer}`, not of `{}`", server.issuer))),
        None if server.names_issuer => return Err(bad(format!("names no issuer, but {} declares that it always does", server.issuer))),
        _ => {}
    }
    if find("state").as_deref() != Some(state.expose()) {
        return Err(bad("does not carry the `state` of the request".into()));
    }
    if let Some(error) = find("error") {
        let description = find("error_description").map(|description| format!(": {description}")).unwrap_or_default();
        return Err(AuthorizationFailure::Refused(format!("`{error}`{description}")));
    }
    find("code").filter(|code| !code.is_empty()).map(Secret::new).ok_or_else(|| bad("has neither a code nor an error".into()))
}

fn clean(web: &Web, failure: AuthorizationFailure) -> AuthorizationFailure {
    match failure {
        AuthorizationFailure::BadResponse(reason) => AuthorizationFailure::BadResponse(web.redacted(reason)),
        AuthorizationFailure::Refused(reason) => AuthorizationFailure::Refused(web.redacted(reason)),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(names_issuer: bool) -> AuthorizationServer {
        AuthorizationServer {
            issuer: "https://as.example".into(),
            authorization_endpoint: None,
            token_endpoint: None,
            registration_endpoint: None,
            scopes: Vec::new(),
            client_authentication: None,
            pkce: Pkce::Supported,
            names_issuer,
            takes_metadata_documents: false,
        }
    }

    #[test]
    fn only_a_response_of_the_right_issuer_with_our_state_gives_a_code() {
        let check = |names_issuer: bool, back: &str, expected: Result<&str, &str>| {
            let redirect = Url::parse("http://localhost:3000/callback").unwrap();
            let found = code_of(&Url::parse(back).unwrap(), &redirect, &Secret::new("s"), &server(names_issuer));
            let found = found.map(|code| code.expose().to_owned()).map_err(|failure| failure.to_string());
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{back}");
        };
        let at = "http://localhost:3000/callback";
        let issuer = "iss=https%3A%2F%2Fas.example";
        check(true, &format!("{at}?code=c%2Fd&state=s&{issuer}"), Ok("c/d"));
        check(false, &format!("{at}?code=c&state=s&{issuer}"), Ok("c"));
        check(false, &format!("{at}?code=c&state=s"), Ok("c"));
        let other = |found: &str| format!("the authorization response is of the issuer `{found}`, not of `https://as.example`");
        for names_issuer in [true, false] {
            check(names_issuer, &format!("{at}?code=c&state=s&{issuer}%2F"), Err(&other("https://as.example/")));
            check(names_issuer, &format!("{at}?error=boo&state=s&iss=https://evil.example"), Err(&other("https://evil.example")));
        }
        let missing = "the authorization response names no issuer, but https://as.example declares that it always does";
        check(true, &format!("{at}?code=c&state=s"), Err(missing));
        check(true, &format!("{at}?error=access_denied&state=s"), Err(missing));
        check(false, &format!("{at}?code=c"), Err("the authorization response does not carry the `state` of the request"));
        check(false, &format!("{at}?code=c&state=S"), Err("the authorization response does not carry the `state` of the request"));
        check(false, &format!("{at}?state=s"), Err("the authorization response has neither a code nor an error"));
        check(
            false,
            &format!("{at}?error=access_denied&error_description=no+way&state=s"),
            Err("the authorization server refused: `access_denied`: no way"),
        );
        check(
            false,
            "https://as.example/login?next=x",
            Err("the authorization response leads to https://as.example/login, not to the redirect URI http://localhost:3000/callback"),
        );
    }

    #[test]
    fn the_challenge_is_that_of_the_standard() {
        // RFC 7636, appendix B.
        let verifier = Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(challenge_of(&verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}
