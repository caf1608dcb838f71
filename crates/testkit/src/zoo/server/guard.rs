//! OAuth in front of the server (authorization, 2025-06-18 and later): what a client without a token is told. Nobody can
//! sign in here; one token is good.

use super::http::Exchange;
use super::response::Response;
use crate::zoo::InternalDeviation;
use serde_json::json;

/// The token that is good.
pub const TOKEN: &str = "okapi-9b1f3c7e55d24a0f";

/// What the guard answers; nothing if the request may pass.
pub(super) fn answer(exchange: &Exchange<'_>) -> Option<Response> {
    let (server, request) = (exchange.server, exchange.request);
    if !server.deviation.guards() {
        return None;
    }
    let origin = format!("http://{}", request.header("host").unwrap_or_default());
    match request.path() {
        "/.well-known/oauth-protected-resource" | "/.well-known/oauth-protected-resource/mcp" => {
            return Some(Response::json(
                200,
                &json!({ "resource": format!("{origin}/mcp"), "authorization_servers": [origin], "bearer_methods_supported": ["header"] }),
            ));
        }
        "/.well-known/oauth-authorization-server" => {
            return Some(Response::json(
                200,
                &json!({
                    "issuer": origin,
                    "authorization_endpoint": format!("{origin}/authorize"),
                    "token_endpoint": format!("{origin}/token"),
                    "response_types_supported": ["code"],
                    "grant_types_supported": ["authorization_code", "refresh_token"],
                    "code_challenge_methods_supported": ["S256"],
                    "token_endpoint_auth_methods_supported": ["none"],
                }),
            ));
        }
        "/authorize" => return Some(Response::text(400, "nobody can sign in here")),
        "/token" => return Some(Response::json(400, &json!({ "error": "invalid_grant" }))),
        _ => {}
    }
    let given = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    let good = if server.deviates(InternalDeviation::AnyTokenIsGood) { given.is_some() } else { given == Some(TOKEN) };
    if good {
        return None;
    }
    let mut challenge = format!("Bearer resource_metadata=\"{origin}/.well-known/oauth-protected-resource/mcp\"");
    if given.is_some() {
        challenge.push_str(", error=\"invalid_token\"");
    }
    Some(Response::text(401, "a token is needed").with("www-authenticate", &challenge))
}
