//! The scopes and the authorization server that a server with authorization names.
//! Source: basic/authorization.

use super::ConversationView;
use super::authorization::{document, refusal};
use super::rule_definition::{AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use mcproof_analysis::wording::excerpt;
use mcproof_protocol::Revision;
use serde_json::Value;
use url::Url;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "authorization-server-is-https",
        area: Area::Security,
        requirement: "the endpoints of the authorization server are served over HTTPS",
        sources: &[
            RequirementSource {
                revisions: Revision::V2025_03_26..=Revision::V2025_03_26,
                level: RequirementLevel::Must,
                source: "basic/authorization#security-considerations",
            },
            RequirementSource {
                revisions: Revision::V2025_06_18..=Revision::V2025_11_25,
                level: RequirementLevel::Must,
                source: "basic/authorization#communication-security",
            },
            RequirementSource {
                revisions: revisions::MODERN,
                level: RequirementLevel::Must,
                source: "basic/authorization/security-considerations#communication-security",
            },
        ],
        on: AppliesTo::Web,
        judge: Judge::Each(authorization_server_is_https),
        why: "without TLS, anyone on the network path can read codes and tokens; clients refuse such addresses",
        remedy: "use `https://` addresses; plain HTTP is allowed only on the local machine",
        ..Rule::DEFAULT
    },
    Rule {
        id: "unauthorized-names-scope",
        area: Area::Security,
        requirement: "a 401 of a server with scopes names the required ones",
        sources: &[
            RequirementSource {
                revisions: Revision::V2025_11_25..=Revision::V2025_11_25,
                level: RequirementLevel::Should,
                source: "basic/authorization#protected-resource-metadata-discovery-requirements",
            },
            RequirementSource {
                revisions: revisions::MODERN,
                level: RequirementLevel::Should,
                source: "basic/authorization#scope-selection-strategy",
            },
        ],
        on: AppliesTo::Web,
        judge: Judge::Each(unauthorized_names_scope),
        why: "without this, a client requests every scope in the metadata, which is more than it needs",
        remedy: "add `scope=\"…\"` with the scopes of this request to the challenge in `WWW-Authenticate`",
        sdks: &[("TypeScript", "`requireBearerAuth({ requiredScopes: [...] })`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "offline-access-is-not-requested",
        area: Area::Security,
        requirement: "a server does not list `offline_access` among its scopes",
        // The era of a server that refuses all requests is unknown; it is judged as a legacy one.
        sources: &[
            RequirementSource {
                revisions: Revision::V2025_11_25..=Revision::V2025_11_25,
                level: RequirementLevel::Portability,
                source: "",
            },
            RequirementSource {
                revisions: revisions::MODERN,
                level: RequirementLevel::Should,
                source: "basic/authorization#refresh-tokens",
            },
        ],
        on: AppliesTo::Web,
        judge: Judge::Each(offline_access_is_not_requested),
        why: "refresh tokens are a matter of the client and the authorization server; as a scope of the server, `offline_access` makes users consent to more than necessary",
        remedy: "remove `offline_access` from `scopes_supported` and from the challenge",
        ..Rule::DEFAULT
    },
];

const NO_METADATA: &str = "the server has no protected resource metadata";

/// Whether an address is on another machine and without TLS.
fn is_plain(address: &str) -> bool {
    let is_local = |url: &Url| matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    Url::parse(address).is_ok_and(|url| url.scheme() == "http" && !is_local(&url))
}

fn authorization_server_is_https(conversation: &ConversationView<'_>) -> Judgment {
    if let Err(judgment) = refusal(conversation) {
        return judgment;
    }
    let mut addresses = Vec::new();
    if let Some((metadata, _, frames)) = document(conversation, "resource-metadata") {
        let named = metadata.get("authorization_servers").and_then(Value::as_array).into_iter().flatten();
        addresses.extend(named.filter_map(Value::as_str).map(|address| ("authorization_servers", address.to_owned(), frames.clone())));
    }
    let of_server = ["server-metadata", "own-server-metadata"].iter().find_map(|probe| document(conversation, probe));
    if let Some((metadata, _, frames)) = of_server {
        for key in ["issuer", "authorization_endpoint", "token_endpoint", "registration_endpoint"] {
            addresses.extend(metadata.get(key).and_then(Value::as_str).map(|address| (key, address.to_owned(), frames.clone())));
        }
    }
    let violation = addresses
        .iter()
        .find(|(_, address, _)| is_plain(address))
        .map(|(key, address, frames)| Violation::new(format!("`{key}` is `{}`, which is not HTTPS", excerpt(address)), frames.clone()));
    Judgment::of(violation.into_iter().collect(), addresses.len(), "no metadata names an authorization server")
}

/// The scopes of a challenge, if it names any.
fn challenged(header: Option<&str>) -> Option<&str> {
    let (_, rest) = header?.split_once("scope=")?;
    Some(rest.trim_start_matches('"').split('"').next().unwrap_or_default())
}

fn unauthorized_names_scope(conversation: &ConversationView<'_>) -> Judgment {
    let refused = match refusal(conversation) {
        Ok(refused) => refused,
        Err(judgment) => return judgment,
    };
    let Some((metadata, _, frames)) = document(conversation, "resource-metadata") else { return Judgment::Untestable(NO_METADATA.into()) };
    let has_scopes = metadata.get("scopes_supported").and_then(Value::as_array).is_some_and(|scopes| !scopes.is_empty());
    if !has_scopes {
        return Judgment::NotApplicable("the protected resource metadata names no scopes".into());
    }
    match challenged(refused.http.and_then(|http| http.header("www-authenticate"))) {
        Some(_) => Judgment::Pass,
        None => {
            let message = "the 401 does not name the required ones of `scopes_supported`";
            Judgment::Broken(vec![Violation::new(message, refused.frames().into_iter().chain(frames))])
        }
    }
}

fn offline_access_is_not_requested(conversation: &ConversationView<'_>) -> Judgment {
    const OFFLINE: &str = "offline_access";
    let refused = match refusal(conversation) {
        Ok(refused) => refused,
        Err(judgment) => return judgment,
    };
    let challenge = challenged(refused.http.and_then(|http| http.header("www-authenticate"))).unwrap_or_default();
    if challenge.split(' ').any(|scope| scope == OFFLINE) {
        return Judgment::Broken(vec![Violation::new("the challenge of the 401 names `offline_access`", refused.frames())]);
    }
    let Some((metadata, _, frames)) = document(conversation, "resource-metadata") else { return Judgment::Untestable(NO_METADATA.into()) };
    let scopes = metadata.get("scopes_supported").and_then(Value::as_array);
    match scopes.is_some_and(|scopes| scopes.iter().any(|scope| scope == OFFLINE)) {
        true => Judgment::Broken(vec![Violation::new("`scopes_supported` of the resource contains `offline_access`", frames)]),
        false => Judgment::Pass,
    }
}
