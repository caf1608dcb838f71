//! Somebody without a token, with a wrong one, and on the way to where tokens are to be had.

use super::super::CheckOptions;
use super::super::explorer::Explorer;
use super::super::listing::UNKNOWN_NAME;
use super::request_variants::{Questions, RequestVariants as _};
use mcproof_analysis::read_json;
use mcproof_client::auth::{Grant, metadata_hint, resource_locations, server_locations};
use mcproof_client::{RawHttpRequest, RawHttpResponse, Target};
use mcproof_protocol::methods;
use serde_json::{Value, json};
use url::Url;

/// No server ever gave it out.
const BAD_TOKEN: &str = "Bearer mcproof-no-such-token";

pub(super) async fn take(explorer: &mut Explorer<'_>, http_requests: &Questions) {
    let mut refused = None;
    // Some servers show to anybody what they have, and ask for a token where it is used.
    for method in [None, Some(methods::TOOLS_CALL)] {
        let ask = |explorer: &Explorer<'_>| match method {
            None => http_requests.plain(explorer).anonymous(),
            Some(method) => call(http_requests, explorer, method).anonymous(),
        };
        let anonymous = ask(explorer);
        let Some(answer) = explorer.http("anonymous", method, &anonymous).await else { return };
        if answer.head.status == 401 {
            let intruder = ask(explorer).with("authorization", BAD_TOKEN);
            explorer.http("bad-token", method, &intruder).await;
            refused = Some(answer);
            break;
        }
        if !explorer.declares("tools") {
            break;
        }
    }
    let Some(refused) = refused else {
        // Whoever gives credentials takes the server for one that requires them: then an invalid token has to be refused, too.
        if are_credentials_given(explorer.check_options) {
            let intruder = http_requests.plain(explorer).anonymous().with("authorization", BAD_TOKEN);
            explorer.http("bad-token", None, &intruder).await;
        }
        return;
    };
    let Some(server) = explorer.session().url().cloned() else { return };
    let hint = metadata_hint(&refused.head.headers).and_then(|hint| server.join(&hint).ok());
    let places = match hint {
        Some(hint) => vec![hint],
        None => resource_locations(&server),
    };
    let Some(resource) = fetch(explorer, "resource-metadata", places).await else {
        // Until 2025-03-26 the server was its own authorization server, at the root of its address.
        if let Ok(root) = server.join("/") {
            fetch(explorer, "own-server-metadata", server_locations(&root)).await;
        }
        return;
    };
    let issuer = resource.pointer("/authorization_servers/0").and_then(Value::as_str);
    if let Some(issuer) = issuer.and_then(|issuer| Url::parse(issuer).ok()) {
        fetch(explorer, "server-metadata", server_locations(&issuer)).await;
    }
}

/// Whether there is an `Authorization` header or a client with a secret, from a flag or a file. That somebody may sign in is none.
fn are_credentials_given(check_options: &CheckOptions) -> bool {
    let is_authorization = |(name, _): &(String, String)| name.eq_ignore_ascii_case("authorization");
    let has_header = matches!(&check_options.target, Target::Http { endpoint, .. } if endpoint.headers.iter().any(is_authorization));
    let authorization = check_options.options.authorization.as_ref();
    has_header || authorization.is_some_and(|authorization| matches!(authorization.grant, Grant::ClientCredentials))
}

/// A call of a tool that no server has.
fn call(http_requests: &Questions, explorer: &Explorer<'_>, method: &str) -> RawHttpRequest {
    let http_request = http_requests.request(explorer, method, json!({ "name": UNKNOWN_NAME, "arguments": {} }));
    if explorer.is_modern() { http_request.with("mcp-name", UNKNOWN_NAME) } else { http_request }
}

/// The first document that there is.
async fn fetch(explorer: &mut Explorer<'_>, probe: &str, places: Vec<Url>) -> Option<Value> {
    for place in places.iter().filter(|place| matches!(place.scheme(), "http" | "https")) {
        let http_request = RawHttpRequest { method: "GET".into(), ..RawHttpRequest::default() }.with("accept", "application/json");
        if let Some(document) = explorer.http_elsewhere(probe, place, &http_request).await.as_ref().and_then(document) {
            return Some(document);
        }
    }
    None
}

fn document(answer: &RawHttpResponse) -> Option<Value> {
    let document = (answer.head.status == 200).then(|| read_json(&answer.body).ok().flatten())?;
    document.filter(Value::is_object)
}
