//! Broken servers that accept requests without authorization, leak secrets, or do not announce their authorization server.

use super::changes::{is_tool_error, remove};
use super::deviation::Deviation;
use super::http::{asks, renumber};
use super::internal_deviation::InternalDeviation;
use super::server::{Body, Response, notification};
use super::{ALL, BOTH, BrokenServer, HTTP, LEGACY, MODERN, WEB, broken_server};
use crate::raw_http::Request;
use serde_json::{Value, json};

pub(super) const BROKEN_SERVERS: &[BrokenServer] = &[
    broken_server(
        "any-origin",
        "answers pages of any origin",
        "origin-is-validated",
        WEB,
        BOTH,
        Deviation::Internal(InternalDeviation::OriginUnchecked),
    ),
    broken_server(
        "origin-not-on-get",
        "opens event streams for pages of any origin",
        "origin-is-validated",
        WEB,
        LEGACY,
        Deviation::Internal(InternalDeviation::OriginUncheckedForGet),
    ),
    broken_server(
        "origin-not-on-delete",
        "ends sessions for pages of any origin",
        "origin-is-validated",
        HTTP,
        LEGACY,
        Deviation::Internal(InternalDeviation::OriginUncheckedForDelete),
    ),
    broken_server(
        "origin-by-its-beginning",
        "answers pages of any origin that begins as a local one does",
        "origin-is-validated",
        WEB,
        BOTH,
        Deviation::Internal(InternalDeviation::OriginsByTheirBeginning),
    ),
    broken_server(
        "null-origin",
        "answers pages whose origin is `null`",
        "origin-is-validated",
        WEB,
        BOTH,
        Deviation::Internal(InternalDeviation::NullOriginWelcome),
    ),
    broken_server(
        "foreign-origin-gets-400",
        "refuses a foreign origin with 400",
        "origin-is-validated",
        WEB,
        BOTH,
        Deviation::Response(|request, response| {
            if request.header("origin").is_some() {
                renumber(response, 403, 400);
            }
        }),
    ),
    broken_server(
        "any-host",
        "answers under any name",
        "host-is-validated",
        WEB,
        BOTH,
        Deviation::Internal(InternalDeviation::HostUnchecked),
    ),
    broken_server(
        "host-by-its-beginning",
        "answers under any name that begins as a local one does",
        "host-is-validated",
        WEB,
        BOTH,
        Deviation::Internal(InternalDeviation::HostsByTheirBeginning),
    ),
    broken_server(
        "host-by-its-port",
        "answers under any name that has its port",
        "host-is-validated",
        WEB,
        BOTH,
        Deviation::Internal(InternalDeviation::HostsByTheirPort),
    ),
    broken_server(
        "origin-demanded",
        "refuses lists to clients without an origin",
        "origin-absent-is-accepted",
        WEB,
        BOTH,
        Deviation::Rejects(|request| {
            let lists = String::from_utf8_lossy(&request.body).contains("/list\"");
            (lists && request.header("origin").is_none()).then(|| Response::text(403, "Origin is missing"))
        }),
    ),
    broken_server(
        "stack-trace",
        "puts the stack into the data of errors",
        "errors-hide-stack-traces",
        ALL,
        BOTH,
        Deviation::Errors(|error| {
            let stack = "Error: no such thing\n    at Zoo.dispatch (/srv/zoo/dist/server.js:112:15)\n    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)";
            let mut data = error.get("data").cloned().unwrap_or_else(|| json!({}));
            data["stack"] = json!(stack);
            error["data"] = data;
        }),
    ),
    broken_server(
        "traceback",
        "answers wrong arguments with a traceback",
        "errors-hide-stack-traces",
        ALL,
        BOTH,
        Deviation::Result("tools/call", |_, result| {
            let trace = "Traceback (most recent call last):\n  File \"/srv/zoo/server.py\", line 88, in call_tool\n    return tools[name](**arguments)\nTypeError: unexpected argument";
            if result["isError"] == true {
                result["content"][0]["text"] = json!(trace);
            }
        }),
    ),
    broken_server(
        "connection-string",
        "tells the password of its database in errors",
        "errors-hide-secrets",
        ALL,
        BOTH,
        Deviation::Errors(|error| error["message"] = json!("cannot connect to postgres://zoo:Gir4ffe-9fk2@db.internal:5432/zoo")),
    ),
    broken_server(
        "api-key",
        "tells a key in the errors of tools",
        "errors-hide-secrets",
        ALL,
        BOTH,
        Deviation::Outgoing(|_, mut message| {
            if is_tool_error(&message) {
                message["result"]["content"][0]["text"] = json!("401 from api.example: invalid key sk-live-4f9bD81kQmZr7TtXw2Yc0PqL");
            }
            vec![message]
        }),
    ),
    broken_server(
        "challenge-without-metadata",
        "does not tell where to sign in",
        "unauthorized-names-metadata",
        HTTP,
        BOTH,
        Deviation::Guarded(|request, response| {
            if response.status == 401 {
                response.set("www-authenticate", "Bearer");
            } else if is_resource_metadata(request) {
                *response = Response::text(404, "there is nothing here");
            }
        }),
    ),
    broken_server(
        "no-challenge",
        "answers with 401 and no WWW-Authenticate",
        "unauthorized-names-metadata",
        HTTP,
        BOTH,
        Deviation::Guarded(|request, response| {
            if response.status == 401 {
                response.remove("www-authenticate");
            } else if is_resource_metadata(request) {
                *response = Response::text(404, "there is nothing here");
            }
        }),
    ),
    broken_server(
        "calls-without-challenge",
        "answers calls with 401 and no WWW-Authenticate, and everything else",
        "unauthorized-names-metadata",
        HTTP,
        BOTH,
        Deviation::Rejects(|request| asks(request, "tools/call").then(|| Response::new(401))),
    ),
    broken_server(
        "metadata-without-servers",
        "names no authorization server",
        "resource-metadata-is-valid",
        HTTP,
        BOTH,
        Deviation::Guarded(|request, response| {
            if is_resource_metadata(request) {
                edit(response, |metadata| remove(metadata, "authorization_servers"));
            }
        }),
    ),
    broken_server(
        "metadata-with-text-for-list",
        "tells the ways to send a token as one text, not as a list",
        "resource-metadata-is-valid",
        HTTP,
        BOTH,
        Deviation::Guarded(|request, response| {
            if is_resource_metadata(request) {
                edit(response, |metadata| metadata["bearer_methods_supported"] = json!("header"));
            }
        }),
    ),
    broken_server(
        "metadata-as-page",
        "calls the metadata of the resource text/html",
        "resource-metadata-is-valid",
        HTTP,
        BOTH,
        Deviation::Guarded(|request, response| {
            if is_resource_metadata(request) {
                response.set("content-type", "text/html");
            }
        }),
    ),
    broken_server(
        "issuer-with-slash",
        "names itself as an issuer with a slash at the end, and without one as that of the resource",
        "authorization-server-has-metadata",
        HTTP,
        BOTH,
        Deviation::Guarded(|request, response| {
            if is_server_metadata(request) {
                edit(response, |metadata| metadata["issuer"] = json!(format!("{}/", metadata["issuer"].as_str().unwrap_or_default())));
            }
        }),
    ),
    broken_server(
        "challenge-with-a-path",
        "names the path of its metadata in a 401, and no URL",
        "unauthorized-names-metadata",
        HTTP,
        BOTH,
        Deviation::Guarded(|_, response| {
            if response.status == 401 {
                response.set("www-authenticate", r#"Bearer resource_metadata="/.well-known/oauth-protected-resource/mcp""#);
            }
        }),
    ),
    broken_server(
        "metadata-of-another",
        "tells the metadata of another resource",
        "resource-metadata-matches-url",
        HTTP,
        BOTH,
        Deviation::Guarded(|request, response| {
            if is_resource_metadata(request) {
                edit(response, |metadata| metadata["resource"] = json!("https://zoo.example/mcp"));
            }
        }),
    ),
    broken_server(
        "authorization-server-unknown",
        "names an authorization server that tells nothing about itself",
        "authorization-server-has-metadata",
        HTTP,
        BOTH,
        Deviation::Guarded(|request, response| {
            if is_server_metadata(request) {
                *response = Response::text(404, "there is nothing here");
            }
        }),
    ),
    broken_server(
        "pkce-missing",
        "has an authorization server without PKCE",
        "authorization-server-supports-pkce",
        HTTP,
        BOTH,
        Deviation::Guarded(|request, response| {
            if is_server_metadata(request) {
                edit(response, |metadata| remove(metadata, "code_challenge_methods_supported"));
            }
        }),
    ),
    broken_server(
        "any-token",
        "lets in whoever has a token",
        "invalid-token-gets-401",
        HTTP,
        BOTH,
        Deviation::Internal(InternalDeviation::AnyTokenIsGood),
    ),
    broken_server(
        "invalid-token-gets-500",
        "answers a token that is not good with 500",
        "invalid-token-gets-401",
        HTTP,
        BOTH,
        Deviation::Guarded(|request, response| {
            if request.header("authorization").is_some() {
                renumber(response, 401, 500);
            }
        }),
    ),
    broken_server(
        "authorization-server-without-tls",
        "names an authorization server that is reached without TLS",
        "authorization-server-is-https",
        HTTP,
        BOTH,
        Deviation::Guarded(|request, response| {
            if is_server_metadata(request) {
                edit(response, |metadata| metadata["registration_endpoint"] = json!("http://auth.zoo.example/register"));
            }
        }),
    ),
    broken_server(
        "scopes-untold",
        "has scopes, and does not say which ones are needed",
        "unauthorized-names-scope",
        HTTP,
        BOTH,
        Deviation::Guarded(|request, response| {
            if is_resource_metadata(request) {
                edit(response, |metadata| metadata["scopes_supported"] = json!(["feed", "visit"]));
            }
        }),
    ),
    broken_server(
        "offline-access-wanted",
        "wants refresh tokens as a scope",
        "offline-access-is-not-requested",
        HTTP,
        BOTH,
        Deviation::Guarded(|request, response| {
            if is_resource_metadata(request) {
                edit(response, |metadata| metadata["scopes_supported"] = json!(["offline_access"]));
            }
        }),
    ),
    broken_server(
        "log-with-password",
        "logs a URL with its password",
        "log-hides-secrets",
        ALL,
        LEGACY,
        Deviation::Extra(|received| match received.calls("echo") {
            true => {
                let data = "cannot reach postgres://keeper:feeding-time@db.zoo.example/animals";
                vec![notification("notifications/message", json!({ "level": "error", "data": data }))]
            }
            false => Vec::new(),
        }),
    ),
    broken_server(
        "secret-in-a-header",
        "wants an API key in a header",
        "header-annotation-holds-no-secret",
        ALL,
        MODERN,
        Deviation::Catalogue(|all| {
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
