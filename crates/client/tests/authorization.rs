//! OAuth against a small authorization server and a small MCP server, both on loopback and both remembering what they
//! were asked. Each case also proves that the transcript holds none of the secrets that were exchanged.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "authorization/world.rs"]
mod world;

use mcproof_client::auth::{
    Approval, Authorization, AuthorizationPage, Credential, DynamicRegistration, FlowControl, FlowEvent, FlowRequest, Grant, Headless,
    Identity, IdentityProvider, Kept, Registered, Secret, SigningAlgorithm, SigningKey, TokenPersistence, TokenStore, UserAgent, Visit,
};
use mcproof_protocol::{EraChoice, Transport};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use url::Url;
use world::{Wish, World};

const RESOURCE: &str = "rs/.well-known/oauth-protected-resource";
const RESOURCE_MCP: &str = "rs/.well-known/oauth-protected-resource/mcp";
const OAUTH: &str = "as/.well-known/oauth-authorization-server";
const HINT: &str = r#"Bearer resource_metadata="{rs}/.well-known/oauth-protected-resource/mcp""#;

fn code() -> Authorization {
    let user = Headless::new(Url::parse("http://localhost:3000/callback").unwrap());
    Authorization::new(Identity::default(), Grant::Code { user: Arc::new(user) })
}

fn registered(credential: Credential, issuer: Option<String>) -> Identity {
    let client = Registered { id: "known-client".into(), credential, issuer };
    Identity { registered: Some(client), dynamic: DynamicRegistration::Never, ..Identity::default() }
}

fn secret() -> Credential {
    Credential::Secret(Secret::new("client secret/of old"))
}

fn resource() -> Value {
    json!({ "resource": "{rs}/mcp", "authorization_servers": ["{as}"] })
}

fn server() -> Value {
    json!({
        "issuer": "{as}",
        "authorization_endpoint": "{as}/authorize",
        "token_endpoint": "{as}/token",
        "registration_endpoint": "{as}/register",
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "authorization_response_iss_parameter_supported": true,
    })
}

fn with(mut document: Value, name: &str, value: Value) -> Value {
    document[name] = value;
    document
}

fn without(mut document: Value, name: &str) -> Value {
    document.as_object_mut().unwrap().remove(name);
    document
}

/// What most servers do.
fn usual() -> Wish {
    Wish { documents: vec![(RESOURCE_MCP, resource()), (OAUTH, server())], challenge: HINT, ..Wish::default() }
}

fn usual_with(server: Value) -> Wish {
    Wish { documents: vec![(RESOURCE_MCP, resource()), (OAUTH, server)], ..usual() }
}

/// Opens a session; gives the requests besides those to the MCP endpoint.
async fn steps(wish: Wish, authorization: &Authorization, era: EraChoice) -> Result<Vec<String>, String> {
    let world = World::new(wish).await;
    let opened = world.open(Some(authorization), era).await;
    world.assert_secrets_are_hidden();
    opened.map(|_| world.steps()).map_err(|failure| world.anonymous(&failure))
}

async fn check_discovery(documents: Vec<(&'static str, Value)>, challenge: &'static str, era: EraChoice, expected: &[&str]) {
    let wish = Wish { documents, challenge, ..Wish::default() };
    let found = steps(wish, &code(), era).await.unwrap();
    let flow = ["POST as/register", "GET as/authorize", "POST as/token"];
    let own = ["POST rs/register", "GET rs/authorize", "POST rs/token"];
    let flow = if expected.iter().any(|step| step.contains(" as/")) { flow } else { own };
    let expected: Vec<&str> = expected.iter().copied().chain(flow).collect();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn metadata_is_found_wherever_the_specification_lets_it_be() {
    let auto = EraChoice::Auto;
    let get_oauth = "GET as/.well-known/oauth-authorization-server";
    let get_openid = "GET as/.well-known/openid-configuration";
    let get_path = "GET rs/.well-known/oauth-protected-resource/mcp";
    let get_root = "GET rs/.well-known/oauth-protected-resource";
    check_discovery(vec![(RESOURCE_MCP, resource()), (OAUTH, server())], HINT, auto, &[get_path, get_oauth]).await;
    check_discovery(vec![(RESOURCE_MCP, resource()), (OAUTH, server())], "", auto, &[get_path, get_oauth]).await;
    let root = with(resource(), "resource", json!("{rs}"));
    check_discovery(vec![(RESOURCE, root), (OAUTH, server())], "Bearer", auto, &[get_path, get_root, get_oauth]).await;
    let custom = r#"Basic realm="x", Bearer resource_metadata="{rs}/some/where.json""#;
    check_discovery(vec![("rs/some/where.json", resource()), (OAUTH, server())], custom, auto, &["GET rs/some/where.json", get_oauth])
        .await;
    let openid = vec![(RESOURCE_MCP, resource()), ("as/.well-known/openid-configuration", server())];
    check_discovery(openid, HINT, auto, &[get_path, get_oauth, get_openid]).await;

    let tenant = || with(resource(), "authorization_servers", json!(["{as}/tenant1"]));
    let server_of_tenant = || with(server(), "issuer", json!("{as}/tenant1"));
    let forms = [
        "as/.well-known/oauth-authorization-server/tenant1",
        "as/.well-known/openid-configuration/tenant1",
        "as/tenant1/.well-known/openid-configuration",
    ];
    let gets = forms.map(|form| format!("GET {form}"));
    for (index, form) in forms.into_iter().enumerate() {
        let mut expected = vec![get_path];
        expected.extend(gets[..=index].iter().map(String::as_str));
        // A document at the root would be of another issuer: it must not even be requested.
        let documents = vec![(RESOURCE_MCP, tenant()), (form, server_of_tenant()), (OAUTH, server())];
        check_discovery(documents, HINT, auto, &expected).await;
    }
}

#[tokio::test]
async fn a_server_of_2025_03_26_is_its_own_authorization_server() {
    let get_path = "GET rs/.well-known/oauth-protected-resource/mcp";
    let get_root = "GET rs/.well-known/oauth-protected-resource";
    let get_own = "GET rs/.well-known/oauth-authorization-server";
    let own = json!({
        "issuer": "{rs}",
        "authorization_endpoint": "{rs}/authorize",
        "token_endpoint": "{rs}/token",
        "registration_endpoint": "{rs}/register",
        "code_challenge_methods_supported": ["S256"],
    });
    let documents = || vec![("rs/.well-known/oauth-authorization-server", own.clone())];
    for era in [EraChoice::Auto, EraChoice::Legacy] {
        check_discovery(documents(), "", era, &[get_path, get_root, get_own]).await;
        check_discovery(Vec::new(), "", era, &[get_path, get_root, get_own]).await;
    }
    // Nothing there at all: most such servers want a key that people get elsewhere.
    let failure = steps(Wish { registration: (404, json!({})), ..Wish::default() }, &code(), EraChoice::Auto).await.unwrap_err();
    assert!(failure.contains("{rs} does not describe how to get a token: it has no protected-resource metadata,"), "{failure}");
    // The modern revision knows no such thing.
    let failure = steps(Wish { documents: documents(), ..Wish::default() }, &code(), EraChoice::Modern).await.unwrap_err();
    assert!(failure.ends_with("{rs}/mcp has no protected-resource metadata, neither at its path nor at its root"), "{failure}");
}

async fn check_refused(wish: Wish, authorization: &Authorization, expected: &str) {
    let failure = steps(wish, authorization, EraChoice::Auto).await.expect_err(expected);
    let expected = format!("`server/discover`: server requires authorization (HTTP 401), which failed: {expected}");
    assert_eq!(failure, expected);
}

#[tokio::test]
async fn whatever_is_not_as_it_must_be_ends_the_flow() {
    let check = async |wish: Wish, expected: &str| check_refused(wish, &code(), expected).await;
    let resource_is = |resource: Value| Wish { documents: vec![(RESOURCE_MCP, resource), (OAUTH, server())], ..usual() };
    check(
        resource_is(with(resource(), "resource", json!("https://evil.example/mcp"))),
        "the protected-resource metadata at {rs}/.well-known/oauth-protected-resource/mcp is for `https://evil.example/mcp`, not for the server {rs}/mcp",
    )
    .await;
    check(
        resource_is(json!({ "resource": "{rs}/mcp" })),
        "the protected-resource metadata at {rs}/.well-known/oauth-protected-resource/mcp names no `authorization_servers`",
    )
    .await;
    check(
        Wish { documents: vec![(OAUTH, server())], ..usual() },
        "the protected-resource metadata at {rs}/.well-known/oauth-protected-resource/mcp is named by the challenge, but the response is not a JSON object: status 404, text/plain",
    )
    .await;
    for issuer in ["https://attacker.example", "{as}/"] {
        let text = format!(
            "the authorization-server metadata at {{as}}/.well-known/oauth-authorization-server is of the issuer `{issuer}`, not of `{{as}}`"
        );
        check(usual_with(with(server(), "issuer", json!(issuer))), &text).await;
    }
    check(
        Wish { documents: vec![(RESOURCE_MCP, resource())], ..usual() },
        "no metadata of the authorization server {as}, neither for OAuth nor for OpenID Connect",
    )
    .await;
    check(
        Wish { documents: vec![(RESOURCE_MCP, resource()), (OAUTH, json!("<!doctype html><p>Welcome</p>"))], ..usual() },
        "no metadata of the authorization server {as}, neither for OAuth nor for OpenID Connect: {as}/.well-known/oauth-authorization-server is a web page",
    )
    .await;
    for methods in [json!(null), json!([]), json!(["plain"])] {
        check(
            usual_with(with(server(), "code_challenge_methods_supported", methods)),
            "the metadata of the authorization server {as} does not declare support for PKCE with S256",
        )
        .await;
    }
    check(
        usual_with(without(server(), "registration_endpoint")),
        "no way to get a client id from {as}: it offers no dynamic registration and accepts no client metadata document, and no client id is configured",
    )
    .await;
    check(
        Wish { registration: (400, json!({ "error": "invalid_redirect_uri", "error_description": "https only" })), ..usual() },
        "{as}/register refused to register the client: `invalid_redirect_uri`: https only",
    )
    .await;
    check(
        Wish { redirect: "", ..usual() },
        "no response from the authorization page: HTTP 200 instead of a redirect: the page needs a person",
    )
    .await;
    check(
        Wish { redirect: "http://localhost:3000/callback?code={code}&state=other&iss={as}", ..usual() },
        "the authorization response does not carry the `state` of the request",
    )
    .await;
    check(
        Wish { redirect: "http://localhost:3000/callback?error=access_denied&state={state}&iss={as}", ..usual() },
        "the authorization server refused: `access_denied`",
    )
    .await;
    check(
        Wish { token: (400, json!({ "error": "invalid_grant", "error_description": "not {code}" })), ..usual() },
        "the token endpoint {as}/token issued no token: `invalid_grant`: not [redacted]",
    )
    .await;
    check(
        Wish { token: (200, json!({ "access_token": "{access}", "token_type": "DPoP" })), ..usual() },
        "the token endpoint {as}/token issued no token: its token is of the type `DPoP`, not `Bearer`",
    )
    .await;
    check(
        Wish { token: (200, json!({ "access_token": "two words", "token_type": "Bearer" })), ..usual() },
        "the token endpoint {as}/token issued no token: its response has no usable `access_token`",
    )
    .await;
    let large = "t".repeat((64 << 10) + 1);
    for name in ["access_token", "refresh_token"] {
        let document = with(json!({ "access_token": "{access}", "token_type": "Bearer" }), name, json!(large));
        let expected = format!("the token endpoint {{as}}/token issued no token: its `{name}` is larger than 65536 bytes");
        check(Wish { token: (200, document), ..usual() }, &expected).await;
    }
    check(
        Wish { token: (200, json!({ "access_token": "of-somebody-else", "token_type": "Bearer" })), ..usual() },
        "the server rejects the token that its own authorization server issued",
    )
    .await;
}

#[tokio::test]
async fn the_issuer_of_the_response_is_compared_as_a_string() {
    let silent = || usual_with(without(server(), "authorization_response_iss_parameter_supported"));
    let redirect = |wish: Wish, redirect| Wish { redirect, ..wish };
    let no_issuer = "http://localhost:3000/callback?code={code}&state={state}";
    let wrong = "http://localhost:3000/callback?code={code}&state={state}&iss=https://evil.example";
    let slash = "http://localhost:3000/callback?code={code}&state={state}&iss={as}/";
    for wish in [usual(), silent(), redirect(silent(), no_issuer)] {
        assert!(steps(wish, &code(), EraChoice::Auto).await.is_ok());
    }
    for wish in [usual(), silent()] {
        let evil = "the authorization response is of the issuer `https://evil.example`, not of `{as}`";
        check_refused(redirect(wish, wrong), &code(), evil).await;
    }
    let normalized = "the authorization response is of the issuer `{as}/`, not of `{as}`";
    check_refused(redirect(usual(), slash), &code(), normalized).await;
    let missing = "the authorization response names no issuer, but {as} declares that it always does";
    check_refused(redirect(usual(), no_issuer), &code(), missing).await;
}

/// How the client shows itself: its id on the authorization page, and its authentication at the token endpoint.
async fn check_client(wish: Wish, identity: Identity, expected: (&str, &str)) {
    let world = World::new(wish).await;
    world.open(Some(&Authorization { identity, ..code() }), EraChoice::Auto).await.unwrap();
    world.assert_secrets_are_hidden();
    assert_eq!((world.last("client_id").as_str(), world.client_authentication().as_str()), expected);
    assert_eq!(world.last("resource"), world.filled("{rs}/mcp"));
    assert_eq!(world.last("redirect_uri"), "http://localhost:3000/callback");
}

#[tokio::test]
async fn a_client_is_known_by_registration_by_document_or_by_nobody() {
    let methods = |methods: Value| usual_with(with(server(), "token_endpoint_auth_methods_supported", methods));
    let basic = "Basic known-client:client+secret%2Fof+old";
    check_client(methods(json!(["client_secret_basic"])), registered(secret(), None), ("known-client", basic)).await;
    check_client(methods(json!(null)), registered(secret(), None), ("known-client", basic)).await;
    let post = "post known-client:client secret/of old";
    check_client(methods(json!(["client_secret_post"])), registered(secret(), None), ("known-client", post)).await;
    check_client(usual(), registered(Credential::None, None), ("known-client", "none known-client")).await;

    let document = || Identity { metadata_document: Some(Url::parse("https://me.example/client.json").unwrap()), ..Identity::default() };
    let supported = || with(server(), "client_id_metadata_document_supported", json!(true));
    let url = "https://me.example/client.json";
    check_client(usual_with(supported()), document(), (url, "none https://me.example/client.json")).await;
    check_client(usual(), document(), ("registered-at-as", "none registered-at-as")).await;
    // What is registered goes first.
    let both = Identity { registered: registered(Credential::None, None).registered, ..document() };
    check_client(usual_with(supported()), both, ("known-client", "none known-client")).await;

    let registration = |method: Value| {
        let answer = json!({ "client_id": "dynamic", "client_secret": "dynamic-secret", "token_endpoint_auth_method": method });
        Wish { registration: (201, answer), ..methods(json!(["client_secret_basic", "client_secret_post"])) }
    };
    check_client(registration(json!("client_secret_post")), Identity::default(), ("dynamic", "post dynamic:dynamic-secret")).await;
    check_client(registration(json!("client_secret_basic")), Identity::default(), ("dynamic", "Basic dynamic:dynamic-secret")).await;
    check_client(registration(json!("none")), Identity::default(), ("dynamic", "none dynamic")).await;
    check_client(registration(json!(null)), Identity::default(), ("dynamic", "Basic dynamic:dynamic-secret")).await;
}

#[tokio::test]
async fn a_registration_says_what_the_client_is() {
    let world = World::new(usual()).await;
    world.open(Some(&code()), EraChoice::Auto).await.unwrap();
    let expected = json!({
        "client_name": "mcproof",
        "token_endpoint_auth_method": "none",
        "redirect_uris": ["http://localhost:3000/callback"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "application_type": "native",
    });
    assert_eq!(world.registered(), expected);
}

async fn check_scopes(resource: Value, server: Value, challenge: &'static str, configured: Option<&str>, expected: &str) {
    let world = World::new(Wish { documents: vec![(RESOURCE_MCP, resource), (OAUTH, server)], challenge, ..Wish::default() }).await;
    let scopes = configured.map(|scopes| scopes.split(' ').map(str::to_owned).collect());
    world.open(Some(&Authorization { scopes, ..code() }), EraChoice::Auto).await.unwrap();
    assert_eq!(world.last("scope"), expected);
}

#[tokio::test]
async fn scopes_are_selected_as_the_specification_says() {
    let advertised = || with(resource(), "scopes_supported", json!(["b", "a"]));
    let offline = || with(server(), "scopes_supported", json!(["a", "offline_access"]));
    check_scopes(advertised(), server(), r#"Bearer scope="c""#, None, "c").await;
    check_scopes(advertised(), server(), HINT, None, "a b").await;
    check_scopes(resource(), server(), HINT, None, "").await;
    check_scopes(resource(), server(), r#"Bearer scope="""#, None, "").await;
    check_scopes(advertised(), offline(), HINT, None, "a b offline_access").await;
    // Alone it would narrow what the server gives by default.
    check_scopes(resource(), offline(), HINT, None, "").await;
    check_scopes(advertised(), offline(), r#"Bearer scope="c""#, Some("x y"), "x y").await;
}

#[tokio::test]
async fn a_call_that_needs_more_gets_more_and_loses_nothing() {
    let wish = Wish { challenge: r#"Bearer scope="basic""#, needs: vec![("tools/call", "write")], ..usual() };
    let world = World::new(wish).await;
    let session = world.open(Some(&code()), EraChoice::Auto).await.unwrap();
    assert!(session.request("tools/list", None, Duration::from_secs(5)).await.unwrap().answer.is_ok());
    assert_eq!(world.last("scope"), "basic");
    for _ in 0..2 {
        assert!(session.request("tools/call", None, Duration::from_secs(5)).await.unwrap().answer.is_ok());
    }
    assert_eq!(world.last("scope"), "basic write");
    assert_eq!(world.count("POST as/token"), 2);
    assert_eq!(world.count("POST as/register"), 1);
    world.assert_secrets_are_hidden();
}

#[tokio::test]
async fn a_scope_that_is_never_granted_is_asked_for_once() {
    let wish = Wish { needs: vec![("tools/call", "withheld"), ("tools/list", "withheld")], ..usual() };
    let world = World::new(wish).await;
    let session = world.open(Some(&code()), EraChoice::Auto).await.unwrap();
    let refused = "server requires authorization (HTTP 403), which failed: the server requires the scopes `withheld` again, although the token was already requested with them";
    for (method, authorizations) in [("tools/call", 2), ("tools/call", 2), ("tools/list", 3)] {
        let failure = session.request(method, None, Duration::from_secs(5)).await.unwrap_err();
        assert_eq!(failure.to_string(), refused);
        assert_eq!(world.count("GET as/authorize"), authorizations, "{method}");
    }
}

#[tokio::test]
async fn a_server_that_always_wants_yet_another_scope_is_given_up() {
    let world = World::new(Wish { needs: vec![("tools/call", "*")], ..usual() }).await;
    let session = world.open(Some(&code()), EraChoice::Auto).await.unwrap();
    let failure = session.request("tools/call", None, Duration::from_secs(5)).await.unwrap_err();
    let expected = "server requires authorization (HTTP 403), which failed: the server requires more than 3 authorizations for one request";
    assert_eq!(failure.to_string(), expected);
}

#[tokio::test]
async fn a_token_that_has_had_its_day_is_refreshed() {
    let token = json!({ "access_token": "{access}", "token_type": "bearer", "refresh_token": "{refresh}", "expires_in": 3600 });
    let world = World::new(Wish { token: (200, token), ..usual() }).await;
    let session = world.open(Some(&code()), EraChoice::Auto).await.unwrap();
    world.revoke();
    assert!(session.request("tools/list", None, Duration::from_secs(5)).await.unwrap().answer.is_ok());
    assert_eq!((world.count("GET as/authorize"), world.last("grant_type")), (1, "refresh_token".to_owned()));
    // A refresh token that is refused leads to a new authorization.
    world.revoke();
    world.forget_refresh();
    assert!(session.request("tools/list", None, Duration::from_secs(5)).await.unwrap().answer.is_ok());
    assert_eq!((world.count("GET as/authorize"), world.last("grant_type")), (2, "authorization_code".to_owned()));
    world.assert_secrets_are_hidden();
}

#[tokio::test]
async fn a_token_that_is_known_to_have_expired_is_not_sent() {
    let token = json!({ "access_token": "{access}", "token_type": "bearer", "refresh_token": "{refresh}", "expires_in": 0 });
    let world = World::new(Wish { token: (200, token), ..usual() }).await;
    // The handshake requests a token; each request after that refreshes before it is sent.
    let session = world.open(Some(&code()), EraChoice::Auto).await.unwrap();
    let before = (world.count("POST as/token"), world.count("POST rs/mcp"));
    session.request("tools/list", None, Duration::from_secs(5)).await.unwrap();
    assert_eq!((world.count("POST as/token"), world.count("POST rs/mcp")), (before.0 + 1, before.1 + 1));
    world.assert_secrets_are_hidden();
}

#[tokio::test]
async fn another_authorization_server_means_another_registration() {
    let world = World::new(usual()).await;
    let session = world.open(Some(&code()), EraChoice::Auto).await.unwrap();
    let other = World::new(Wish::default()).await;
    world.migrate(&other, &resource(), &server());
    world.revoke();
    assert!(session.request("tools/list", None, Duration::from_secs(5)).await.unwrap().answer.is_ok());
    assert_eq!((other.count("POST as/register"), other.last("client_id")), (1, "registered-at-as".to_owned()));
    // The old one is left in peace.
    assert_eq!(world.count("POST as/token"), 1);
}

#[tokio::test]
async fn a_registered_client_does_not_follow_to_another_authorization_server() {
    let world = World::new(usual()).await;
    let authorization = Authorization { identity: registered(secret(), None), ..code() };
    let session = world.open(Some(&authorization), EraChoice::Auto).await.unwrap();
    let other = World::new(Wish::default()).await;
    world.migrate(&other, &resource(), &server());
    world.revoke();
    let failure = session.request("tools/list", None, Duration::from_secs(5)).await.unwrap_err().to_string();
    let failure = world.anonymous(&failure);
    assert!(failure.contains("the client is registered with {as}, but the server now names http://"), "{failure}");
    assert_eq!(other.count("POST as/token"), 0);
    let elsewhere = Authorization { identity: registered(secret(), Some("https://as.example".into())), ..code() };
    check_refused(usual(), &elsewhere, "the client is registered with https://as.example, but the server now names {as}").await;
}

#[tokio::test]
async fn a_client_gets_a_token_for_itself() {
    let methods = |methods: Value| usual_with(with(server(), "token_endpoint_auth_methods_supported", methods));
    let open = async |wish: Wish, identity, grant| {
        let world = World::new(wish).await;
        let scopes = Some(vec!["own".to_owned()]);
        world.open(Some(&Authorization { scopes, ..Authorization::new(identity, grant) }), EraChoice::Auto).await.unwrap();
        world.assert_secrets_are_hidden();
        assert_eq!(world.count("GET as/authorize"), 0);
        assert_eq!((world.last("scope"), world.last("resource")), ("own".to_owned(), world.filled("{rs}/mcp")));
        world
    };
    let world = open(methods(json!(["client_secret_basic"])), registered(secret(), None), Grant::ClientCredentials).await;
    assert_eq!(world.last("grant_type"), "client_credentials");
    assert_eq!(world.client_authentication(), "Basic known-client:client+secret%2Fof+old");

    let (pem, public) = world::key_pair();
    let key = Credential::Key(SigningKey::from_pem(&pem, SigningAlgorithm::Es256).unwrap());
    let world = open(methods(json!(["private_key_jwt"])), registered(key, None), Grant::ClientCredentials).await;
    let claims = world::verified(&world.last("client_assertion"), &public);
    assert_eq!(
        (&claims["iss"], &claims["sub"], &claims["aud"]),
        (&json!("known-client"), &json!("known-client"), &json!(world.filled("{as}")))
    );

    let assertion = Grant::Assertion(Secret::new("header.claims.signature"));
    let world = open(usual(), registered(Credential::None, None), assertion).await;
    assert_eq!(world.last("grant_type"), "urn:ietf:params:oauth:grant-type:jwt-bearer");
    assert_eq!(world.last("assertion"), "header.claims.signature");
}

#[tokio::test]
async fn an_identity_provider_vouches_for_its_user() {
    let idp = World::new(Wish {
        token: (
            200,
            json!({ "access_token": "{access}", "token_type": "N_A", "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag" }),
        ),
        ..Wish::default()
    })
    .await;
    let provider = IdentityProvider {
        token_endpoint: Url::parse(&idp.filled("{as}/token")).unwrap(),
        client: "known-to-idp".into(),
        credential: Credential::None,
        id_token: Secret::new("id/token"),
    };
    let world = World::new(usual()).await;
    let grant = Grant::IdentityProvider(provider);
    world.open(Some(&Authorization::new(registered(Credential::None, None), grant)), EraChoice::Auto).await.unwrap();
    assert_eq!((idp.last("audience"), idp.last("resource")), (world.filled("{as}"), world.filled("{rs}/mcp")));
    assert_eq!((idp.last("subject_token"), idp.last("client_id")), ("id/token".to_owned(), "known-to-idp".to_owned()));
    assert_eq!(world.last("assertion"), "access/token-1");
    world.assert_hidden(&["id/token", "access/token-1"]);
    world.assert_secrets_are_hidden();
}

#[tokio::test]
async fn sessions_that_share_a_store_need_one_consent() {
    let world = World::new(usual()).await;
    let authorization = code();
    let open = || world.open(Some(&authorization), EraChoice::Auto);
    let (one, two, three) = tokio::join!(open(), open(), open());
    let sessions = [one.unwrap(), two.unwrap(), three.unwrap()];
    assert_eq!(world.count("POST as/token"), 1);
    // Also when all find out at once that the token is worth nothing any more.
    world.revoke();
    let list = |index: usize| sessions[index].request("tools/list", None, Duration::from_secs(5));
    let (one, two, three) = tokio::join!(list(0), list(1), list(2));
    assert!([one, two, three].into_iter().all(|reply| reply.unwrap().answer.is_ok()));
    assert_eq!(world.count("POST as/token"), 2);
    world.assert_secrets_are_hidden();
}

#[tokio::test]
async fn a_refusal_may_be_explained_in_any_form() {
    for body in ["", "plain", r#"{"error":"invalid_token"}"#, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"m"}}"#] {
        let world = World::new(Wish { refusal: body, ..usual() }).await;
        let session = world.open(Some(&code()), EraChoice::Auto).await.unwrap();
        assert_eq!(session.faults(), [], "{body}");
        let without = world.open(None, EraChoice::Auto).await.err().unwrap();
        let expected = "server requires authorization: HTTP 401 for `server/discover`";
        assert_eq!(without, expected, "{body}");
    }
}

#[tokio::test]
async fn an_event_stream_is_opened_with_a_token() {
    let world = World::new(usual()).await;
    let session = world.open_over(Some(&code()), EraChoice::Legacy, Transport::Sse).await.unwrap();
    assert!(session.request("tools/list", None, Duration::from_secs(5)).await.unwrap().answer.is_ok());
    assert_eq!(world.count("POST as/token"), 1);
    world.assert_secrets_are_hidden();
}

#[tokio::test]
async fn a_notification_that_is_refused_is_sent_again_with_a_token() {
    let world = World::new(Wish { open_to_all: &["initialize"], ..usual() }).await;
    let session = world.open(Some(&code()), EraChoice::Legacy).await.unwrap();
    assert_eq!((session.faults(), world.count("POST as/token")), (Vec::new(), 1));
    assert_eq!((world.count("POST rs/mcp 401"), world.count("POST rs/mcp 202")), (1, 1));
}

#[tokio::test]
async fn a_stream_that_was_refused_is_opened_once_there_is_a_token() {
    let wish = Wish { open_to_all: &["initialize", "notifications/initialized"], ..usual() };
    let world = World::new(wish).await;
    let session = world.open(Some(&code()), EraChoice::Legacy).await.unwrap();
    world.until("GET rs/mcp 401").await;
    assert!(session.request("tools/list", None, Duration::from_secs(5)).await.unwrap().answer.is_ok());
    world.until("GET rs/mcp 200").await;
}

#[tokio::test]
async fn a_header_of_the_user_goes_before_any_token() {
    let world = World::new(usual()).await;
    let failure = world.open_with_header("Authorization", "Bearer of-the-user", &code()).await.err().unwrap();
    assert_eq!(failure, "server requires authorization: HTTP 401 for `server/discover`");
    assert_eq!(world.steps(), Vec::<String>::new());
}

/// Keeps tokens in memory, as another process would on disk.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<Kept>>>);

impl TokenPersistence for Memory {
    fn recall(&self, server: &Url) -> Option<Kept> {
        self.0.lock().unwrap().iter().rfind(|kept| kept.server == *server).cloned()
    }

    fn keep(&self, kept: &Kept) {
        self.0.lock().unwrap().push(kept.clone());
    }
}

/// Somebody who has gone home.
struct Nobody(Url);

impl UserAgent for Nobody {
    fn is_there(&self) -> Result<(), String> {
        Err("it is late".into())
    }

    fn redirect_uri(&self) -> &Url {
        &self.0
    }

    fn visit<'a>(&'a self, _: AuthorizationPage<'a>) -> Visit<'a> {
        panic!("nobody is there")
    }
}

#[tokio::test]
async fn a_kept_token_serves_later_sessions_and_is_renewed_for_them() {
    let token = json!({ "access_token": "{access}", "token_type": "bearer", "refresh_token": "{refresh}", "expires_in": 3600 });
    let wish = Wish {
        token: (200, token),
        registration: (
            201,
            json!({ "client_id": "dynamic", "client_secret": "of dynamic", "token_endpoint_auth_method": "client_secret_basic" }),
        ),
        ..usual()
    };
    let world = World::new(wish).await;
    let memory = Memory::default();
    let with_memory = |authorization: Authorization| Authorization { store: TokenStore::persisted_by(memory.clone()), ..authorization };
    world.open(Some(&with_memory(code())), EraChoice::Auto).await.unwrap();
    let absent = || {
        let user = Nobody(Url::parse("http://localhost:3000/callback").unwrap());
        with_memory(Authorization::new(Identity::default(), Grant::Code { user: Arc::new(user) }))
    };
    let before = world.count("POST rs/mcp 401");
    world.open(Some(&absent()), EraChoice::Auto).await.unwrap();
    assert_eq!(world.count("POST rs/mcp 401"), before);
    // A session that has a token meets its end after another has renewed it.
    let late = world.open(Some(&absent()), EraChoice::Auto).await.unwrap();
    world.revoke();
    world.open(Some(&absent()), EraChoice::Auto).await.unwrap();
    assert_eq!((world.last("grant_type"), world.client_authentication()), ("refresh_token".into(), "Basic dynamic:of+dynamic".into()));
    assert!(late.request("tools/list", None, Duration::from_secs(5)).await.unwrap().answer.is_ok());
    assert_eq!((world.count("POST as/token"), world.count("GET as/authorize")), (2, 1));
    // Another scope is another token.
    let other = Authorization { scopes: Some(vec!["more".into()]), ..absent() };
    let failure = world.open(Some(&other), EraChoice::Auto).await.err().unwrap();
    assert!(failure.ends_with("no user can consent: it is late"), "{failure}");
    // Nothing was done in the name of somebody who is not there.
    assert_eq!(world.count("POST as/register"), 1);
    world.assert_secrets_are_hidden();
}

/// Writes down what it is asked and told, and stops before the request that it is made for.
#[derive(Default)]
struct Walker {
    stop_before: Option<&'static str>,
    seen: Mutex<Vec<String>>,
}

impl FlowControl for Walker {
    fn approve<'a>(&'a self, request: FlowRequest<'a>) -> Approval<'a> {
        Box::pin(async move {
            let FlowRequest { step, method, url } = request;
            self.seen.lock().unwrap().push(format!("{step:?} {method} {}?", url.path()));
            match self.stop_before == Some(url.path()) {
                true => Err("enough".to_owned()),
                false => Ok(()),
            }
        })
    }

    fn tell(&self, event: FlowEvent<'_>) {
        let told = match event {
            FlowEvent::Refused { operation, .. } => format!("refused {operation}"),
            FlowEvent::Sent { .. } => return,
            FlowEvent::Answered { status } => format!("{status}"),
            FlowEvent::Unanswered { reason } => format!("no response: {reason}"),
            FlowEvent::Unneeded { step, reason } => format!("{step:?} unneeded: {reason}"),
            FlowEvent::Page { url } => format!("page {}", url.path()),
            FlowEvent::Returned { url } => {
                assert!(url.contains("code=[redacted]"), "{url}");
                "returned".to_owned()
            }
            FlowEvent::Ended { failure: None } => "token".to_owned(),
            FlowEvent::Ended { failure: Some(failure) } => failure.to_string().rsplit_once(": ").unwrap().1.to_owned(),
        };
        self.seen.lock().unwrap().push(told);
    }
}

#[tokio::test]
async fn whoever_goes_through_a_flow_is_asked_before_each_request_and_told_of_each_response() {
    let walk = async |walker: Walker, identity: Identity| {
        let walker = Arc::new(walker);
        let control: Arc<dyn FlowControl> = Arc::clone(&walker) as _;
        let outcome = steps(usual(), &Authorization { identity, control: Some(control), ..code() }, EraChoice::Auto).await;
        let seen = walker.seen.lock().unwrap().clone();
        (outcome, seen)
    };
    let metadata = [
        "refused server/discover",
        "ResourceMetadata GET /.well-known/oauth-protected-resource/mcp?",
        "200",
        "ServerMetadata GET /.well-known/oauth-authorization-server?",
        "200",
    ];
    let registration = ["Registration POST /register?", "201"];
    let consent = ["page /authorize", "Consent GET /authorize?", "302", "returned", "Token POST /token?", "200", "token"];
    let (outcome, seen) = walk(Walker::default(), Identity::default()).await;
    outcome.unwrap();
    assert_eq!(seen, [&metadata[..], &registration[..], &consent[..]].concat());
    let (outcome, seen) = walk(Walker::default(), registered(Credential::None, None)).await;
    outcome.unwrap();
    assert_eq!(seen, [&metadata[..], &["Registration unneeded: the client ID `known-client` is configured"], &consent[..]].concat());
    // What is not approved is not sent.
    let (outcome, seen) = walk(Walker { stop_before: Some("/register"), ..Walker::default() }, Identity::default()).await;
    assert!(outcome.unwrap_err().contains("the user stopped it before"));
    assert_eq!(seen, [&metadata[..], &registration[..1], &["enough"]].concat());
}
