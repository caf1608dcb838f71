//! Animals that let in whom they should not, tell what they should not, or hide where to sign in.

use super::changes::{is_tool_error, remove};
use super::http::{asks, renumber};
use super::server::{Body, Response, notification};
use super::slip::Slip;
use super::twist::Twist;
use super::{ALL, Animal, BOTH, HTTP, LEGACY, MODERN, WEB, animal};
use crate::raw_http::Request;
use serde_json::{Value, json};

pub(super) const ANIMALS: &[Animal] = &[
    animal("any-origin", "answers pages of any origin", "origin-is-validated", WEB, BOTH, Twist::Slip(Slip::OriginUnchecked)),
    animal(
        "origin-not-on-get",
        "opens event streams for pages of any origin",
        "origin-is-validated",
        WEB,
        LEGACY,
        Twist::Slip(Slip::OriginUncheckedForGet),
    ),
    animal(
        "origin-by-its-beginning",
        "answers pages of any origin that begins as a local one does",
        "origin-is-validated",
        WEB,
        BOTH,
        Twist::Slip(Slip::OriginsByTheirBeginning),
    ),
    animal("null-origin", "answers pages whose origin is `null`", "origin-is-validated", WEB, BOTH, Twist::Slip(Slip::NullOriginWelcome)),
    animal(
        "foreign-origin-gets-400",
        "refuses a foreign origin with 400",
        "origin-is-validated",
        WEB,
        BOTH,
        Twist::Response(|request, response| {
            if request.header("origin").is_some() {
                renumber(response, 403, 400);
            }
        }),
    ),
    animal("any-host", "answers under any name", "host-is-validated", WEB, BOTH, Twist::Slip(Slip::HostUnchecked)),
    animal(
        "origin-demanded",
        "refuses lists to clients without an origin",
        "origin-absent-is-accepted",
        WEB,
        BOTH,
        Twist::Refuses(|request| {
            let lists = String::from_utf8_lossy(&request.body).contains("/list\"");
            (lists && request.header("origin").is_none()).then(|| Response::text(403, "Origin is missing"))
        }),
    ),
    animal(
        "stack-trace",
        "puts the stack into the data of errors",
        "errors-hide-stack-traces",
        ALL,
        BOTH,
        Twist::Errors(|error| {
            let stack = "Error: no such thing\n    at Zoo.dispatch (/srv/zoo/dist/server.js:112:15)\n    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)";
            let mut data = error.get("data").cloned().unwrap_or_else(|| json!({}));
            data["stack"] = json!(stack);
            error["data"] = data;
        }),
    ),
    animal(
        "traceback",
        "answers wrong arguments with a traceback",
        "errors-hide-stack-traces",
        ALL,
        BOTH,
        Twist::Result("tools/call", |_, result| {
            let trace = "Traceback (most recent call last):\n  File \"/srv/zoo/server.py\", line 88, in call_tool\n    return tools[name](**arguments)\nTypeError: unexpected argument";
            if result["isError"] == true {
                result["content"][0]["text"] = json!(trace);
            }
        }),
    ),
    animal(
        "connection-string",
        "tells the password of its database in errors",
        "errors-hide-secrets",
        ALL,
        BOTH,
        Twist::Errors(|error| error["message"] = json!("cannot connect to postgres://zoo:Gir4ffe-9fk2@db.internal:5432/zoo")),
    ),
    animal(
        "api-key",
        "tells a key in the errors of tools",
        "errors-hide-secrets",
        ALL,
        BOTH,
        Twist::Says(|_, mut message| {
            if is_tool_error(&message) {
                message["result"]["content"][0]["text"] = json!("401 from api.example: invalid key sk-live-4f9bD81kQmZr7TtXw2Yc0PqL");
            }
            vec![message]
        }),
    ),
    animal(
        "challenge-without-metadata",
        "does not tell where to sign in",
        "unauthorized-names-metadata",
        HTTP,
        BOTH,
        Twist::Guarded(|request, response| {
            if response.status == 401 {
                response.set("www-authenticate", "Bearer");
            } else if is_resource_metadata(request) {
                *response = Response::text(404, "there is nothing here");
            }
        }),
    ),
    animal(
        "no-challenge",
        "answers with 401 and no WWW-Authenticate",
        "unauthorized-names-metadata",
        HTTP,
        BOTH,
        Twist::Guarded(|request, response| {
            if response.status == 401 {
                response.remove("www-authenticate");
            } else if is_resource_metadata(request) {
                *response = Response::text(404, "there is nothing here");
            }
        }),
    ),
    animal(
        "calls-without-challenge",
        "answers calls with 401 and no WWW-Authenticate, and everything else",
        "unauthorized-names-metadata",
        HTTP,
        BOTH,
        Twist::Refuses(|request| asks(request, "tools/call").then(|| Response::new(401))),
    ),
    animal(
        "metadata-without-servers",
        "names no authorization server",
        "resource-metadata-is-valid",
        HTTP,
        BOTH,
        Twist::Guarded(|request, response| {
            if is_resource_metadata(request) {
                edit(response, |metadata| remove(metadata, "authorization_servers"));
            }
        }),
    ),
    animal(
        "metadata-of-another",
        "tells the metadata of another resource",
        "resource-metadata-matches-url",
        HTTP,
        BOTH,
        Twist::Guarded(|request, response| {
            if is_resource_metadata(request) {
                edit(response, |metadata| metadata["resource"] = json!("https://zoo.example/mcp"));
            }
        }),
    ),
    animal(
        "authorization-server-unknown",
        "names an authorization server that tells nothing about itself",
        "authorization-server-has-metadata",
        HTTP,
        BOTH,
        Twist::Guarded(|request, response| {
            if is_server_metadata(request) {
                *response = Response::text(404, "there is nothing here");
            }
        }),
    ),
    animal(
        "pkce-missing",
        "has an authorization server without PKCE",
        "authorization-server-supports-pkce",
        HTTP,
        BOTH,
        Twist::Guarded(|request, response| {
            if is_server_metadata(request) {
                edit(response, |metadata| remove(metadata, "code_challenge_methods_supported"));
            }
        }),
    ),
    animal("any-token", "lets in whoever has a token", "invalid-token-gets-401", HTTP, BOTH, Twist::Slip(Slip::AnyTokenIsGood)),
    animal(
        "invalid-token-gets-500",
        "answers a token that is not good with 500",
        "invalid-token-gets-401",
        HTTP,
        BOTH,
        Twist::Guarded(|request, response| {
            if request.header("authorization").is_some() {
                renumber(response, 401, 500);
            }
        }),
    ),
    animal(
        "authorization-server-without-tls",
        "names an authorization server that is reached without TLS",
        "authorization-server-is-https",
        HTTP,
        BOTH,
        Twist::Guarded(|request, response| {
            if is_server_metadata(request) {
                edit(response, |metadata| metadata["registration_endpoint"] = json!("http://auth.zoo.example/register"));
            }
        }),
    ),
    animal(
        "scopes-untold",
        "has scopes, and does not say which ones are needed",
        "unauthorized-names-scope",
        HTTP,
        BOTH,
        Twist::Guarded(|request, response| {
            if is_resource_metadata(request) {
                edit(response, |metadata| metadata["scopes_supported"] = json!(["feed", "visit"]));
            }
        }),
    ),
    animal(
        "offline-access-wanted",
        "wants refresh tokens as a scope",
        "offline-access-is-not-requested",
        HTTP,
        BOTH,
        Twist::Guarded(|request, response| {
            if is_resource_metadata(request) {
                edit(response, |metadata| metadata["scopes_supported"] = json!(["offline_access"]));
            }
        }),
    ),
    animal(
        "log-with-password",
        "logs a URL with its password",
        "log-hides-secrets",
        ALL,
        LEGACY,
        Twist::Unasked(|heard| match heard.calls("echo") {
            true => {
                let data = "cannot reach postgres://keeper:feeding-time@db.zoo.example/animals";
                vec![notification("notifications/message", json!({ "level": "error", "data": data }))]
            }
            false => Vec::new(),
        }),
    ),
    animal(
        "secret-in-a-header",
        "wants an API key in a header",
        "header-annotation-holds-no-secret",
        ALL,
        MODERN,
        Twist::Catalogue(|all| {
            let argument = json!({ "type": "string", "description": "A key of the zoo.", "x-mcp-header": "Key" });
            all.tool_mut("draw")["inputSchema"]["properties"]["api_key"] = argument;
        }),
    ),
];

fn is_resource_metadata(request: &Request) -> bool {
    request.path().starts_with("/.well-known/oauth-protected-resource")
}

fn is_server_metadata(request: &Request) -> bool {
    request.path().starts_with("/.well-known/oauth-authorization-server")
}

/// Changes the JSON of a body.
fn edit(response: &mut Response, change: impl FnOnce(&mut Value)) {
    if let Body::Bytes(bytes) = &mut response.body
        && let Ok(mut value) = serde_json::from_slice::<Value>(bytes)
    {
        change(&mut value);
        *bytes = value.to_string().into_bytes();
    }
}
