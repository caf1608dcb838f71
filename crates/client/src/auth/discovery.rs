//! From a server's URL to its authorization server: protected-resource metadata (RFC 9728), then authorization-server
//! metadata (RFC 8414, OpenID Connect Discovery), each checked against what it was requested.
//! Source: 2026-07-28, authorization-server-discovery; 2025-03-26, authorization, for servers that have neither.

use super::authorization_failure::AuthorizationFailure;
use super::challenge::Challenge;
use super::flow::FlowStep;
use super::web::Web;
use serde_json::{Map, Value};
use std::fmt;
use url::{Host, Url};

/// Which kind of metadata a sentence is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    ProtectedResource,
    AuthorizationServer,
}

impl fmt::Display for Document {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::ProtectedResource => "protected-resource metadata",
            Self::AuthorizationServer => "authorization-server metadata",
        })
    }
}

/// What the MCP server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProtectedResource {
    /// The `resource` parameter of all requests, as the document spells it.
    pub(super) identifier: String,
    pub(super) authorization_servers: Vec<String>,
    pub(super) scopes: Option<Vec<String>>,
}

/// What an authorization server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AuthorizationServer {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Option<Url>,
    pub(super) token_endpoint: Option<Url>,
    pub(super) registration_endpoint: Option<Url>,
    pub(super) scopes: Vec<String>,
    /// `token_endpoint_auth_methods_supported`; `client_secret_basic` where it is left out.
    pub(super) client_authentication: Option<Vec<String>>,
    pub(super) pkce: Pkce,
    /// Whether each authorization response has to name its issuer (RFC 9207).
    pub(super) names_issuer: bool,
    pub(super) takes_metadata_documents: bool,
}

/// Whether the authorization server says that it supports S256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pkce {
    Supported,
    /// The metadata does not list it.
    Unsupported,
    /// There is no metadata.
    Unknown,
}

/// What a server without any metadata of its own is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fallback {
    /// A server of 2025-03-26, which is its own authorization server.
    OwnAuthorizationServer,
    None,
}

const RESOURCE_SUFFIX: &str = "/.well-known/oauth-protected-resource";
const OAUTH_SUFFIX: &str = "/.well-known/oauth-authorization-server";
const OPENID_SUFFIX: &str = "/.well-known/openid-configuration";

/// Where the challenge says, and nowhere else; without a hint at the path of the server, then at its root. `None` if there
/// is none at all.
pub(super) async fn protected_resource(
    web: &Web,
    server: &Url,
    challenge: &Challenge,
) -> Result<Option<ProtectedResource>, AuthorizationFailure> {
    if let Some(hint) = &challenge.resource_metadata {
        let bad = |url: &Url, reason: String| bad(Document::ProtectedResource, url, reason);
        let url = Url::parse(hint).map_err(|_| bad(server, format!("is named as `{hint}`, which is not a valid URL")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad(&url, "cannot be fetched over HTTP".into()));
        }
        let answer = web.metadata(FlowStep::ResourceMetadata, &url).await?;
        let document = answer.object().filter(|_| answer.status() == 200);
        let document = document.ok_or_else(|| {
            bad(&url, format!("is named by the challenge, but the response is not a JSON object: {}", answer.complaint()))
        })?;
        return read_resource(&url, &document, server).map(Some);
    }
    for url in resource_locations(server) {
        let answer = web.metadata(FlowStep::ResourceMetadata, &url).await?;
        // Servers of single-page applications answer any path with 200 and HTML.
        if let Some(document) = answer.object().filter(|_| answer.status() == 200) {
            return read_resource(&url, &document, server).map(Some);
        }
    }
    Ok(None)
}

/// The metadata of an issuer, from the first place that has it.
pub(super) async fn authorization_server(web: &Web, issuer: &str, server: &Url) -> Result<AuthorizationServer, AuthorizationFailure> {
    let Some(base) = Url::parse(issuer).ok().filter(|url| matches!(url.scheme(), "http" | "https")) else {
        return Err(bad(Document::ProtectedResource, server, format!("names an authorization server that is not a valid URL: `{issuer}`")));
    };
    let mut page = None;
    for url in server_locations(&base) {
        let answer = web.metadata(FlowStep::ServerMetadata, &url).await?;
        if let Some(document) = answer.object().filter(|_| answer.status() == 200) {
            return read_server(&url, &document, &[issuer], server);
        }
        // An application behind a catch-all route answers any path like this.
        if page.is_none() && answer.status() == 200 && answer.is_page() {
            page = Some(Box::new(url));
        }
    }
    Err(AuthorizationFailure::NoServerMetadata { issuer: issuer.to_owned(), page })
}

/// The MCP server as its own authorization server, with metadata at its root or else with default endpoints
/// (2025-03-26, authorization, fallbacks for servers without metadata discovery).
pub(super) async fn own_authorization_server(web: &Web, server: &Url) -> Result<AuthorizationServer, AuthorizationFailure> {
    let url = at(server, OAUTH_SUFFIX);
    let base = server.origin().ascii_serialization();
    let answer = web.metadata(FlowStep::ServerMetadata, &url).await?;
    if let Some(document) = answer.object().filter(|_| answer.status() == 200) {
        // We made this identifier out of a URL ourselves, so either spelling of the empty path is identical to it.
        return read_server(&url, &document, &[&base, &format!("{base}/")], server);
    }
    web.note("the server has no authorization metadata: trying the default endpoints of 2025-03-26");
    Ok(AuthorizationServer {
        issuer: base,
        authorization_endpoint: Some(at(server, "/authorize")),
        token_endpoint: Some(at(server, "/token")),
        registration_endpoint: Some(at(server, "/register")),
        scopes: Vec::new(),
        client_authentication: None,
        pkce: Pkce::Unknown,
        names_issuer: false,
        takes_metadata_documents: false,
    })
}

/// Where a server's protected-resource metadata may be without a hint, in the order in which clients look.
pub fn resource_locations(server: &Url) -> Vec<Url> {
    let path = server.path().trim_end_matches('/');
    let root = at(server, RESOURCE_SUFFIX);
    match path {
        "" => vec![root],
        path => vec![at(server, &format!("{RESOURCE_SUFFIX}{path}")), root],
    }
}

/// Where the metadata of an issuer may be, in the order in which clients look.
pub fn server_locations(issuer: &Url) -> Vec<Url> {
    match issuer.path().trim_end_matches('/') {
        "" => vec![at(issuer, OAUTH_SUFFIX), at(issuer, OPENID_SUFFIX)],
        path => vec![
            at(issuer, &format!("{OAUTH_SUFFIX}{path}")),
            at(issuer, &format!("{OPENID_SUFFIX}{path}")),
            at(issuer, &format!("{path}{OPENID_SUFFIX}")),
        ],
    }
}

/// Another path on the same origin.
fn at(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

fn read_resource(url: &Url, document: &Map<String, Value>, server: &Url) -> Result<ProtectedResource, AuthorizationFailure> {
    let bad = |reason: &str| bad(Document::ProtectedResource, url, reason.to_owned());
    let identifier = document.get("resource").and_then(Value::as_str).ok_or_else(|| bad("has no `resource`"))?;
    if !identifies(identifier, server) {
        return Err(AuthorizationFailure::OtherResource {
            url: Box::new(url.clone()),
            found: identifier.to_owned(),
            expected: Box::new(server.clone()),
        });
    }
    let authorization_servers = texts(document.get("authorization_servers")).unwrap_or_default();
    if authorization_servers.is_empty() {
        return Err(bad("names no `authorization_servers`"));
    }
    let scopes = texts(document.get("scopes_supported"));
    Ok(ProtectedResource { identifier: identifier.to_owned(), authorization_servers, scopes })
}

/// Whether a resource identifier is that of the server or of something that holds it: the same origin, and a path that is
/// the server's or leads to it. Metadata at the root of a host is for all that is below.
pub fn identifies(identifier: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(identifier) else { return false };
    let held = resource.path().trim_end_matches('/');
    let below = server.path().strip_prefix(held).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    resource.origin().is_tuple() && resource.origin() == server.origin() && resource.fragment().is_none() && below
}

fn read_server(
    url: &Url,
    document: &Map<String, Value>,
    issuers: &[&str],
    server: &Url,
) -> Result<AuthorizationServer, AuthorizationFailure> {
    let bad = |reason: String| bad(Document::AuthorizationServer, url, reason);
    let issuer = document.get("issuer").and_then(Value::as_str).ok_or_else(|| bad("has no `issuer`".into()))?;
    // Compared as strings, without any normalization (RFC 8414, 3.3).
    if !issuers.contains(&issuer) {
        return Err(AuthorizationFailure::OtherIssuer {
            url: Box::new(url.clone()),
            found: issuer.to_owned(),
            expected: issuers.first().copied().unwrap_or_default().to_owned(),
        });
    }
    let endpoint = |name: &str| match document.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let endpoint = value.as_str().and_then(|text| Url::parse(text).ok());
            let endpoint = endpoint.ok_or_else(|| bad(format!("has a `{name}` that is not a valid URL")))?;
            match is_safe(&endpoint, server) {
                true => Ok(Some(endpoint)),
                false => Err(bad(format!("has an `{name}` that is not served over https: {endpoint}"))),
            }
        }
    };
    let flag = |name: &str| document.get(name) == Some(&Value::Bool(true));
    let challenges = texts(document.get("code_challenge_methods_supported")).unwrap_or_default();
    Ok(AuthorizationServer {
        issuer: issuer.to_owned(),
        authorization_endpoint: endpoint("authorization_endpoint")?,
        token_endpoint: endpoint("token_endpoint")?,
        registration_endpoint: endpoint("registration_endpoint")?,
        scopes: texts(document.get("scopes_supported")).unwrap_or_default(),
        client_authentication: texts(document.get("token_endpoint_auth_methods_supported")),
        pkce: if challenges.iter().any(|method| method == "S256") { Pkce::Supported } else { Pkce::Unsupported },
        names_issuer: flag("authorization_response_iss_parameter_supported"),
        takes_metadata_documents: flag("client_id_metadata_document_supported"),
    })
}

/// Secrets go over https (2026-07-28, communication security), or stay on this machine. A server that is itself tested
/// over plain http has nothing left to protect.
fn is_safe(endpoint: &Url, server: &Url) -> bool {
    let loopback = match endpoint.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    endpoint.scheme() == "https" || (endpoint.scheme() == "http" && (loopback || server.scheme() == "http"))
}

fn texts(value: Option<&Value>) -> Option<Vec<String>> {
    let values = value?.as_array()?;
    Some(values.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect())
}

fn bad(document: Document, url: &Url, reason: String) -> AuthorizationFailure {
    AuthorizationFailure::BadMetadata { document, url: Box::new(url.clone()), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn well_known_locations_are_tried_in_the_order_of_the_specification() {
        let check = |found: Vec<Url>, expected: &[&str]| {
            assert_eq!(found.iter().map(Url::as_str).collect::<Vec<_>>(), expected);
        };
        check(
            resource_locations(&url("https://h:8443/a/mcp?x=1")),
            &["https://h:8443/.well-known/oauth-protected-resource/a/mcp", "https://h:8443/.well-known/oauth-protected-resource"],
        );
        check(resource_locations(&url("https://h/")), &["https://h/.well-known/oauth-protected-resource"]);
        check(
            server_locations(&url("https://h")),
            &["https://h/.well-known/oauth-authorization-server", "https://h/.well-known/openid-configuration"],
        );
        check(
            server_locations(&url("https://h/tenant1/")),
            &[
                "https://h/.well-known/oauth-authorization-server/tenant1",
                "https://h/.well-known/openid-configuration/tenant1",
                "https://h/tenant1/.well-known/openid-configuration",
            ],
        );
    }

    #[test]
    fn a_resource_has_to_be_the_server_or_to_hold_it() {
        let check = |identifier: &str, server: &str, expected: bool| {
            assert_eq!(identifies(identifier, &url(server)), expected, "{identifier} for {server}");
        };
        check("https://h/mcp", "https://h/mcp", true);
        check("https://h/mcp/", "https://h/mcp", true);
        check("HTTPS://H:443/mcp", "https://h/mcp", true);
        check("https://h", "https://h/mcp", true);
        check("https://h/", "https://h/a/b", true);
        check("https://h/a", "https://h/a/b", true);
        check("https://h/a", "https://h/ab", false);
        check("https://h/mcp/deeper", "https://h/mcp", false);
        check("https://h/other", "https://h/mcp", false);
        check("http://h/mcp", "https://h/mcp", false);
        check("https://h:8443/mcp", "https://h/mcp", false);
        check("https://evil.example/mcp", "https://h/mcp", false);
        check("https://h/mcp#fragment", "https://h/mcp", false);
        check("mcp", "https://h/mcp", false);
    }

    #[test]
    fn metadata_is_refused_where_it_is_somebody_elses_or_unsafe() {
        let check = |document: Value, expected: Result<(), &str>| {
            let place = url("https://as.example/.well-known/oauth-authorization-server");
            let object = document.as_object().unwrap();
            let found = read_server(&place, object, &["https://as.example"], &url("https://h/mcp"));
            let found = found.map(drop).map_err(|failure| failure.to_string());
            let prefix = format!("the authorization-server metadata at {place} ");
            assert_eq!(found, expected.map_err(|reason| prefix + reason), "{document}");
        };
        let with = |name: &str, value: &str| serde_json::json!({ "issuer": "https://as.example", name: value });
        check(with("token_endpoint", "https://as.example/token"), Ok(()));
        check(with("token_endpoint", "http://127.0.0.1:9/token"), Ok(()));
        check(serde_json::json!({}), Err("has no `issuer`"));
        check(
            serde_json::json!({ "issuer": "https://as.example/" }),
            Err("is of the issuer `https://as.example/`, not of `https://as.example`"),
        );
        check(with("token_endpoint", "/token"), Err("has a `token_endpoint` that is not a valid URL"));
        check(
            with("token_endpoint", "http://as.example/token"),
            Err("has an `token_endpoint` that is not served over https: http://as.example/token"),
        );
        check(
            with("authorization_endpoint", "javascript:alert(1)"),
            Err("has an `authorization_endpoint` that is not served over https: javascript:alert(1)"),
        );
    }
}
