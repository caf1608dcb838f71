//! What a client without a token is told, and whether it leads to where tokens are to be had.
//! Source: basic/authorization; RFC 9728, RFC 8414.

use super::http::{evidence, told};
use super::rule_definition::{AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::{Attempt, AttemptOutcome, ConversationView, HttpExchange};
use mcproof_analysis::read_json;
use mcproof_analysis::wording::excerpt;
use mcproof_client::auth::{identifies, metadata_hint};
use mcproof_protocol::Revision;
use mcproof_record::FrameId;
use serde_json::Value;
use url::Url;

const DISCOVERY: &[RequirementSource] = &[
    RequirementSource {
        revisions: Revision::V2025_06_18..=Revision::V2025_06_18,
        level: RequirementLevel::Must,
        source: "basic/authorization#authorization-server-location",
    },
    RequirementSource {
        revisions: Revision::V2025_11_25..=Revision::V2025_11_25,
        level: RequirementLevel::Must,
        source: "basic/authorization#authorization-server-location",
    },
    RequirementSource {
        revisions: revisions::MODERN,
        level: RequirementLevel::Must,
        source: "basic/authorization/authorization-server-discovery#authorization-server-location",
    },
];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "unauthorized-names-metadata",
        area: Area::Security,
        requirement: "a 401 names the URL of the protected resource metadata, or the metadata is at its well-known URL",
        sources: &[
            RequirementSource {
                revisions: Revision::V2025_06_18..=Revision::V2025_06_18,
                level: RequirementLevel::Must,
                source: "basic/authorization#authorization-server-location",
            },
            RequirementSource {
                revisions: Revision::V2025_11_25..=Revision::V2025_11_25,
                level: RequirementLevel::Must,
                source: "basic/authorization#protected-resource-metadata-discovery-requirements",
            },
            RequirementSource {
                revisions: revisions::MODERN,
                level: RequirementLevel::Must,
                source: "basic/authorization/authorization-server-discovery#protected-resource-metadata-discovery-requirements",
            },
        ],
        on: AppliesTo::Web,
        judge: Judge::Each(unauthorized_names_metadata),
        why: "a client cannot find out where to sign in, and reports that the server failed",
        remedy: "respond with `WWW-Authenticate: Bearer resource_metadata=\"…\"`, and serve the document at this URL",
        sdks: &[
            ("TypeScript", "`requireBearerAuth({ verifier, resourceMetadataUrl })`"),
            ("FastMCP", "`RemoteAuthProvider`, which does both"),
        ],
        ..Rule::DEFAULT
    },
    Rule {
        id: "resource-metadata-is-valid",
        area: Area::Security,
        requirement: "the protected resource metadata is JSON with `resource` and at least one entry in `authorization_servers`",
        sources: DISCOVERY,
        on: AppliesTo::Web,
        judge: Judge::Each(resource_metadata_is_valid),
        why: "the client needs a token, but cannot find out where to get it",
        remedy: "include both members (RFC 9728, section 2)",
        ..Rule::DEFAULT
    },
    Rule {
        id: "resource-metadata-matches-url",
        area: Area::Security,
        requirement: "`resource` is the URL of the server or a prefix of it",
        sources: DISCOVERY,
        on: AppliesTo::Web,
        judge: Judge::Each(resource_metadata_matches_url),
        why: "a client must not request a token for a different resource, and gives up",
        remedy: "use the URL that clients use, with the scheme and the host of the proxy",
        ..Rule::DEFAULT
    },
    Rule {
        id: "authorization-server-has-metadata",
        area: Area::Security,
        requirement: "the authorization server serves its metadata, with the issuer named by the resource",
        sources: &[
            RequirementSource {
                revisions: Revision::V2025_06_18..=Revision::V2025_06_18,
                level: RequirementLevel::Must,
                source: "basic/authorization#server-metadata-discovery",
            },
            RequirementSource {
                revisions: Revision::V2025_11_25..=Revision::V2025_11_25,
                level: RequirementLevel::Must,
                source: "basic/authorization#authorization-server-metadata-discovery",
            },
            RequirementSource {
                revisions: revisions::MODERN,
                level: RequirementLevel::Must,
                source: "basic/authorization/authorization-server-discovery#authorization-server-metadata-discovery",
            },
        ],
        on: AppliesTo::Web,
        judge: Judge::Each(authorization_server_has_metadata),
        why: "without it, a client cannot find out where to sign in and where to get a token",
        remedy: "serve the document at `/.well-known/oauth-authorization-server` (RFC 8414) or `/.well-known/openid-configuration`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "authorization-server-supports-pkce",
        area: Area::Security,
        requirement: "the metadata of the authorization server declares PKCE with S256",
        sources: &[
            RequirementSource {
                revisions: Revision::V2025_11_25..=Revision::V2025_11_25,
                level: RequirementLevel::Must,
                source: "basic/authorization#authorization-code-protection",
            },
            RequirementSource {
                revisions: revisions::MODERN,
                level: RequirementLevel::Must,
                source: "basic/authorization/security-considerations#authorization-code-protection",
            },
        ],
        on: AppliesTo::Web,
        judge: Judge::Each(authorization_server_offers_pkce),
        why: "clients must refuse to continue without it, because an intercepted code could be used by others",
        remedy: "add `\"code_challenge_methods_supported\": [\"S256\"]` to the metadata",
        ..Rule::DEFAULT
    },
    Rule {
        id: "invalid-token-gets-401",
        area: Area::Security,
        requirement: "an invalid token gets status 401",
        sources: &[
            RequirementSource {
                revisions: revisions::SESSIONS,
                level: RequirementLevel::Must,
                source: "basic/authorization#token-handling",
            },
            RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Must, source: "basic/authorization#token-handling" },
        ],
        on: AppliesTo::Web,
        judge: Judge::Each(invalid_token_gets_401),
        why: "401 makes a client get a new token; after another error it gives up, and a server that accepts any token is open to everyone",
        remedy: "verify signature, expiry and audience of each token, and respond with 401 if any check fails",
        ..Rule::DEFAULT
    },
];

/// The refusal of a request without credentials, if this server refuses those.
pub(super) fn refusal<'a, 'c>(conversation: &'c ConversationView<'a>) -> Result<Attempt<'a, 'c>, Judgment> {
    let refused = conversation.probes("anonymous").find(|attempt| attempt.status() == Some(401));
    match refused.or_else(|| conversation.probe("anonymous")) {
        None => Err(Judgment::NotTried("no request was sent without credentials".into())),
        Some(attempt) => match attempt.status() {
            Some(401) => Ok(attempt),
            Some(_) => Err(Judgment::NotApplicable("the server requires no authorization".into())),
            None => Err(Judgment::Untestable("a request without credentials got no response".into())),
        },
    }
}

/// The first document that was served among those that were looked for, and where it came.
pub(super) fn document<'a, 'c>(conversation: &'c ConversationView<'a>, probe: &str) -> Option<(Value, Attempt<'a, 'c>, Vec<FrameId>)> {
    conversation.probes(probe).find_map(|attempt| {
        let http = attempt.http.filter(|http| http.status() == Some(200))?;
        let (frame, body) = http.body?;
        let value = read_json(body).ok().flatten().filter(Value::is_object)?;
        let frames = http.heads().into_iter().chain([frame.id]).collect();
        Some((value, attempt, frames))
    })
}

/// All that was looked for in vain.
fn in_vain(conversation: &ConversationView<'_>, probe: &str) -> (String, Vec<FrameId>) {
    let tried: Vec<_> = conversation.probes(probe).collect();
    let told: Vec<String> =
        tried.iter().map(|attempt| format!("{} gave {}", attempt.http.map_or("it", |http| http.url), told(attempt))).collect();
    (told.join(", "), tried.iter().flat_map(evidence).collect())
}

/// Why a server counts for less that takes a token from its operator and names no authorization server at all: authorization as
/// the specification has it is optional (basic/authorization, protocol requirements).
fn own_token(conversation: &ConversationView<'_>) -> Option<&'static str> {
    let is_given =
        conversation.probe("plain").and_then(|attempt| attempt.http).is_some_and(|http| http.request_header("authorization").is_some());
    let refused = refusal(conversation).ok()?;
    let headers = refused.http.and_then(|http| http.response).map(|response| response.headers).unwrap_or_default();
    let names_none = metadata_hint(headers).is_none() && document(conversation, "resource-metadata").is_none();
    (is_given && names_none).then_some("the server accepts the given token, and authorization as specified is optional")
}

fn unauthorized_names_metadata(conversation: &ConversationView<'_>) -> Judgment {
    let refused = match refusal(conversation) {
        Ok(refused) => refused,
        Err(judgment) => return judgment,
    };
    let headers = refused.http.and_then(|http| http.response).map(|response| response.headers).unwrap_or_default();
    if let Some(hint) = metadata_hint(headers).filter(|hint| Url::parse(hint).is_err()) {
        let message = format!("the 401 names `{}` as its `resource_metadata`, which is not a URL with a scheme and a host", excerpt(hint));
        let remedy = Some("write the whole URL of the document, as clients reach it".to_owned());
        let violation = Violation::new(message, evidence(&refused));
        return Judgment::Broken(vec![Violation { tolerance: Some(WELL_KNOWN_PLACE_IS_LEFT), remedy, ..violation }]);
    }
    // Only since 2025-11-25 the well-known place is enough.
    let place_is_enough = Revision::at(&conversation.conversation.revision) >= Revision::V2025_11_25;
    if metadata_hint(headers).is_some() || (place_is_enough && document(conversation, "resource-metadata").is_some()) {
        return Judgment::Pass;
    }
    let challenge = refused.http.and_then(|http| http.header("www-authenticate"));
    let challenge = challenge.map_or_else(|| "no `WWW-Authenticate`".to_owned(), |value| format!("`WWW-Authenticate: {}`", excerpt(value)));
    let (vain, frames) = in_vain(conversation, "resource-metadata");
    let places = if vain.is_empty() { String::new() } else { format!("; {vain}") };
    let of = refused.probed.subject.as_ref().map(|method| format!(" of `{method}`")).unwrap_or_default();
    let violation = Violation::new(format!("the 401{of} has {challenge}{places}"), evidence(&refused).into_iter().chain(frames));
    Judgment::Broken(vec![Violation { tolerance: own_token(conversation), ..violation }])
}

const WELL_KNOWN_PLACE_IS_LEFT: &str = "clients that cannot read it look at the well-known URL";

fn resource_metadata_is_valid(conversation: &ConversationView<'_>) -> Judgment {
    let refused = match refusal(conversation) {
        Ok(refused) => refused,
        Err(judgment) => return judgment,
    };
    let Some((metadata, served, frames)) = document(conversation, "resource-metadata") else {
        let headers = refused.http.and_then(|http| http.response).map(|response| response.headers).unwrap_or_default();
        let (vain, frames) = in_vain(conversation, "resource-metadata");
        return match metadata_hint(headers) {
            Some(_) if !vain.is_empty() => {
                Judgment::Broken(vec![Violation::new(format!("the document that the 401 names is not a JSON object: {vain}"), frames)])
            }
            _ => Judgment::Untestable("there is no metadata: see unauthorized-names-metadata".into()),
        };
    };
    let servers = metadata.get("authorization_servers").and_then(Value::as_array);
    let names_server = servers.is_some_and(|servers| servers.iter().any(Value::is_string));
    let mut missing = Vec::new();
    missing.extend((!metadata.get("resource").is_some_and(Value::is_string)).then_some("`resource`"));
    missing.extend((!names_server).then_some("`authorization_servers`"));
    let mut violations = Vec::new();
    if !missing.is_empty() {
        let message = format!("the protected resource metadata has no {}", missing.join(" and no "));
        violations.push(Violation::new(message, frames.iter().copied()));
    }
    let is_list = |value: &Value| value.as_array().is_some_and(|all| all.iter().all(Value::is_string));
    for member in LISTS {
        if let Some(value) = metadata.get(member).filter(|value| !is_list(value)) {
            let message =
                format!("`{member}` of the protected resource metadata is {}, not an array of strings", excerpt(value.to_string()));
            let remedy = format!("write `\"{member}\": [\"…\"]` (RFC 9728, section 2)");
            violations.push(Violation { remedy: Some(remedy), ..Violation::new(message, frames.iter().copied()) });
        }
    }
    let kind = served.http.and_then(HttpExchange::media_type);
    if kind.as_deref() != Some("application/json") {
        let kind = kind.map_or_else(|| "no content type".to_owned(), |kind| format!("`Content-Type: {}`", excerpt(kind)));
        let violation = Violation::new(format!("the protected resource metadata has {kind}, not `application/json`"), frames);
        let remedy = Some("set `Content-Type: application/json` (RFC 9728, section 3.2)".to_owned());
        violations.push(Violation { tolerance: Some(TYPE_IS_PASSED_OVER), remedy, ..violation });
    }
    Judgment::from_violations(violations)
}

/// Members of the protected resource metadata that are lists, besides the one that has to be there (RFC 9728, section 2).
const LISTS: [&str; 5] = [
    "scopes_supported",
    "bearer_methods_supported",
    "resource_signing_alg_values_supported",
    "authorization_details_types_supported",
    "dpop_signing_alg_values_supported",
];

const TYPE_IS_PASSED_OVER: &str = "many clients read the document whatever its type";

fn resource_metadata_matches_url(conversation: &ConversationView<'_>) -> Judgment {
    let refused = match refusal(conversation) {
        Ok(refused) => refused,
        Err(judgment) => return judgment,
    };
    let found = document(conversation, "resource-metadata");
    let told = found.as_ref().and_then(|(metadata, _, frames)| Some((metadata.get("resource")?.as_str()?, frames)));
    let (Some((resource, frames)), Some(server)) = (told, refused.http.and_then(|http| Url::parse(http.url).ok())) else {
        return Judgment::Untestable("no metadata names a resource".into());
    };
    match identifies(resource, &server) {
        true => Judgment::Pass,
        false => {
            let message = format!("`resource` is `{}`, and the server is at {server}", excerpt(resource));
            Judgment::Broken(vec![Violation::new(message, frames.clone())])
        }
    }
}

/// The issuer that the resource names first.
fn issuer(conversation: &ConversationView<'_>) -> Option<String> {
    let (metadata, ..) = document(conversation, "resource-metadata")?;
    metadata.pointer("/authorization_servers/0").and_then(Value::as_str).map(str::to_owned)
}

fn authorization_server_has_metadata(conversation: &ConversationView<'_>) -> Judgment {
    if let Err(judgment) = refusal(conversation) {
        return judgment;
    }
    let Some(issuer) = issuer(conversation) else { return Judgment::Untestable("no authorization server is named".into()) };
    let was_reached = conversation.probes("server-metadata").any(|attempt| attempt.status().is_some());
    let Some((metadata, _, frames)) = document(conversation, "server-metadata") else {
        let (vain, frames) = in_vain(conversation, "server-metadata");
        return match was_reached {
            true => Judgment::Broken(vec![Violation::new(format!("`{}` serves no metadata: {vain}", excerpt(issuer)), frames)]),
            false => Judgment::Untestable(format!("the authorization server `{}` could not be reached", excerpt(issuer))),
        };
    };
    match metadata.get("issuer").and_then(Value::as_str) {
        Some(told) if told == issuer => Judgment::Pass,
        Some(told) if told.trim_end_matches('/') == issuer.trim_end_matches('/') => {
            let message = format!("the metadata of `{}` names the issuer `{}`, which has to be identical", excerpt(issuer), excerpt(told));
            let remedy =
                Some("write the issuer in both documents with the slash at its end, or in both without it (RFC 8414, 3.3)".to_owned());
            Judgment::Broken(vec![Violation { tolerance: Some(SLASH_IS_PASSED_OVER), remedy, ..Violation::new(message, frames) }])
        }
        told => {
            let told = told.map_or_else(|| "no issuer".to_owned(), |told| format!("the issuer `{}`", excerpt(told)));
            Judgment::Broken(vec![Violation::new(format!("the metadata of `{}` names {told}", excerpt(issuer)), frames)])
        }
    }
}

const SLASH_IS_PASSED_OVER: &str = "many clients do not compare the two, or pass over a slash at the end";

fn authorization_server_offers_pkce(conversation: &ConversationView<'_>) -> Judgment {
    if let Err(judgment) = refusal(conversation) {
        return judgment;
    }
    let Some((metadata, _, frames)) = document(conversation, "server-metadata") else {
        return Judgment::Untestable("the authorization server has no metadata".into());
    };
    let methods = metadata.get("code_challenge_methods_supported");
    match methods.and_then(Value::as_array).is_some_and(|methods| methods.contains(&Value::from("S256"))) {
        true => Judgment::Pass,
        false => {
            let found = methods.map_or_else(|| "missing".to_owned(), |methods| format!("`{}`", excerpt(methods.to_string())));
            Judgment::Broken(vec![Violation::new(format!("`code_challenge_methods_supported` is {found}"), frames)])
        }
    }
}

/// Of a server that serves whoever asks: an invalid token was sent to it only if credentials were given for it.
fn serves_any_token(conversation: &ConversationView<'_>) -> Option<Judgment> {
    let (anonymous, intruder) = (conversation.probe("anonymous")?, conversation.probe("bad-token")?);
    if intruder.status() == Some(401) {
        return Some(Judgment::Pass);
    }
    let is_served = |attempt: &Attempt<'_, '_>| matches!(attempt.answer, AttemptOutcome::Result { .. }) && !attempt.answer.is_refusal();
    if !is_served(&anonymous) || !is_served(&intruder) {
        return None;
    }
    let message = "credentials were given, but a request without any got a result, and so did one with an invalid token";
    let violation = Violation::new(message, evidence(&anonymous).into_iter().chain(evidence(&intruder)));
    Some(Judgment::Broken(vec![Violation { tolerance: Some("authorization is optional, and the server requires none"), ..violation }]))
}

fn invalid_token_gets_401(conversation: &ConversationView<'_>) -> Judgment {
    match refusal(conversation) {
        Ok(_) => {}
        Err(Judgment::NotApplicable(why)) => return serves_any_token(conversation).unwrap_or(Judgment::NotApplicable(why)),
        Err(judgment) => return judgment,
    }
    let Some(attempt) = conversation.probe("bad-token") else { return Judgment::Untestable("no invalid token was sent".into()) };
    match attempt.http.and_then(HttpExchange::status) {
        None => Judgment::Untestable("a request with an invalid token got no response".into()),
        Some(401) => Judgment::Pass,
        Some(_) => {
            let violation = Violation::new(format!("an invalid token got {}", told(&attempt)), evidence(&attempt));
            Judgment::Broken(vec![Violation { tolerance: own_token(conversation), ..violation }])
        }
    }
}
