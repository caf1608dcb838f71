//! Why authorization does not come about: what the server says of how to get a token, step by step.
//! Source: 2025-11-25, basic/authorization, authorization server discovery; RFC 9728.

use crate::evidence::Evidence;
use mcproof_client::{ConnectOptions, RawHttpRequest, Tap, Target, request_elsewhere};
use serde_json::Value;
use std::time::Duration;
use url::Url;

/// Of each document.
const PATIENCE: Duration = Duration::from_secs(10);

/// What to do, after a look at the metadata of the server.
pub(crate) async fn explain(target: &Target, options: &ConnectOptions, tap: &Tap, evidence: &Evidence) -> Option<String> {
    let Target::Http { endpoint, .. } = target else { return None };
    let head = evidence.telling_head()?;
    if head.status == 403 {
        return Some("HTTP 403: the credentials are not enough for this server, or it refuses this host or origin".to_owned());
    }
    let named = head.header("www-authenticate").and_then(|value| parameter(value, "resource_metadata"));
    let metadata_url = match named.as_deref().map(Url::parse) {
        Some(Ok(url)) => url,
        Some(Err(_)) => {
            return Some("the server names a `resource_metadata` that is not a URL: correct its WWW-Authenticate header".to_owned());
        }
        None => {
            let mut url = endpoint.url.clone();
            url.set_query(None);
            let path = format!("/.well-known/oauth-protected-resource{}", endpoint.url.path().trim_end_matches('/'));
            url.set_path(&path);
            url
        }
    };
    // A server must not send us anywhere else than to itself before anybody has consented.
    if metadata_url.origin() != endpoint.url.origin() {
        return Some(format!(
            "the server keeps its metadata at {metadata_url}: sign in on a terminal, or send a token with --bearer env:NAME"
        ));
    }
    let metadata = match document(&metadata_url, options, tap).await {
        Ok(metadata) => metadata,
        Err(why) => {
            return Some(format!(
                "{metadata_url} has no metadata of the resource ({why}), so that clients cannot find the authorization server: serve it, or send a token with --bearer env:NAME"
            ));
        }
    };
    let resource = metadata.get("resource").and_then(Value::as_str).unwrap_or_default();
    let is_ours = Url::parse(resource).is_ok_and(|resource| {
        resource.origin() == endpoint.url.origin() && endpoint.url.path().starts_with(resource.path().trim_end_matches('/'))
    });
    if !is_ours {
        return Some(format!(
            "the metadata is about the resource `{resource}`, not {}: clients refuse it; correct `resource`",
            endpoint.url
        ));
    }
    let servers = metadata.get("authorization_servers").and_then(Value::as_array).map(Vec::len).unwrap_or_default();
    if servers == 0 {
        return Some("the metadata names no `authorization_servers`: add the issuer, or send a token with --bearer env:NAME".to_owned());
    }
    Some(
        "sign in on a terminal (a browser opens), send a token with --bearer env:NAME, or request one with --auth client-credentials"
            .to_owned(),
    )
}

async fn document(url: &Url, options: &ConnectOptions, tap: &Tap) -> Result<Value, String> {
    let request = RawHttpRequest {
        method: "GET".to_owned(),
        headers: vec![("accept".to_owned(), "application/json".to_owned())],
        is_anonymous: true,
        ..RawHttpRequest::default()
    };
    let response = request_elsewhere(url, &request, options, tap, PATIENCE).await.map_err(|failure| failure.to_string())?;
    match response.head.status {
        200 => serde_json::from_slice(&response.body).map_err(|_| "not JSON".to_owned()),
        status => Err(format!("HTTP {status}")),
    }
}

/// A parameter of a challenge: `name="value"` or `name=value`.
fn parameter(challenge: &str, name: &str) -> Option<String> {
    let at = challenge.find(&format!("{name}="))?;
    let value = &challenge[at + name.len() + 1..];
    match value.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next().map(str::to_owned),
        None => value.split([',', ' ']).next().map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_with_and_without_quotes() {
        let check =
            |challenge, expected: Option<&str>| assert_eq!(parameter(challenge, "resource_metadata").as_deref(), expected, "{challenge}");
        check(r#"Bearer resource_metadata="https://a/b", scope="x""#, Some("https://a/b"));
        check("Bearer resource_metadata=https://a/b, scope=x", Some("https://a/b"));
        check("Bearer scope=x", None);
    }
}
