//! Broken servers that break requirements of the modern era.

use super::changes::{accept, ask, count, is_error, refuse, remove};
use super::deviation::Deviation;
use super::http::{asks, renumber};
use super::internal_deviation::InternalDeviation;
use super::lists::LOGS;
use super::server::{Body, MODERN as REVISION, Received, Response, notification};
use super::{ALL, BrokenServer, HTTP, MODERN, STDIO, broken_server};
use crate::raw_http::Request;
use serde_json::{Value, json};

pub(super) const BROKEN_SERVERS: &[BrokenServer] = &[
    broken_server(
        "discovery-lists-more",
        "lists a version at discovery that it refuses",
        "discover-names-versions",
        ALL,
        MODERN,
        Deviation::Result("server/discover", |_, result| result["supportedVersions"] = json!(["2026-07-28", "2099-01-01"])),
    ),
    broken_server(
        "second-subscription-breaks",
        "bears one subscription, and fails at the next",
        "listen-is-acknowledged-first",
        STDIO,
        MODERN,
        Deviation::Outgoing(|received, message| {
            match message["method"] == "notifications/subscriptions/acknowledged" && count(received).is_multiple_of(2) {
                true => vec![refuse(received, -32603, "Internal error")],
                false => vec![message],
            }
        }),
    ),
    broken_server(
        "grants-what-it-does-not-declare",
        "acknowledges a subscription to changes that it never tells of",
        "listen-filter-is-honored",
        ALL,
        MODERN,
        Deviation::Outgoing(|received, mut message| {
            if message["method"] == "notifications/subscriptions/acknowledged" {
                for (kind, requested) in received.params()["notifications"].as_object().into_iter().flatten() {
                    message["params"]["notifications"][kind] = requested.clone();
                }
            }
            vec![message]
        }),
    ),
    broken_server(
        "discovery-as-page",
        "calls the result of a discovery text/html",
        "http-response-content-type",
        HTTP,
        MODERN,
        Deviation::Response(|request, response| {
            if asks(request, "server/discover") && response.status == 200 {
                response.set("content-type", "text/html");
            }
        }),
    ),
    broken_server(
        "discovery-in-an-array",
        "puts the result of a discovery into an array",
        "messages-are-not-batched",
        HTTP,
        MODERN,
        Deviation::Response(|request, response| {
            if let (true, Body::Bytes(bytes)) = (asks(request, "server/discover") && response.status == 200, &mut response.body) {
                *bytes = [b"[", bytes.as_slice(), b"]"].concat();
            }
        }),
    ),
    broken_server(
        "discovery-lists-the-future",
        "lists a version of the future at discovery, and not the one that it speaks",
        "discover-names-versions",
        ALL,
        MODERN,
        Deviation::Result("server/discover", |_, result| result["supportedVersions"] = json!(["2027-01-01"])),
    ),
    broken_server(
        "discover-unknown",
        "does not know `server/discover`",
        "discover-is-implemented",
        ALL,
        MODERN,
        Deviation::Outgoing(|received, message| match received.method() {
            "server/discover" => vec![refuse(received, -32601, "Method not found: server/discover")],
            _ => vec![message],
        }),
    ),
    broken_server(
        "discover-without-this-version",
        "does not name the version that it speaks",
        "discover-names-versions",
        ALL,
        MODERN,
        Deviation::Result("server/discover", |_, result| result["supportedVersions"] = json!(["2025-11-25"])),
    ),
    broken_server(
        "discover-without-versions",
        "names no version at all",
        "discover-names-versions",
        ALL,
        MODERN,
        Deviation::Result("server/discover", |_, result| result["supportedVersions"] = json!([])),
    ),
    broken_server(
        "discover-nameless",
        "does not tell its name",
        "result-meta-names-server",
        ALL,
        MODERN,
        Deviation::Result("server/discover", |_, result| remove(result, "_meta")),
    ),
    broken_server(
        "legacy-client-left-in-the-dark",
        "refuses `initialize` without a word about versions",
        "legacy-handshake-names-versions",
        &["stdio", "http"],
        MODERN,
        Deviation::Outgoing(|received, message| match received.method() == "initialize" && received.params().get("_meta").is_none() {
            true => vec![refuse(received, -32601, "Method not found")],
            false => vec![message],
        }),
    ),
    broken_server(
        "input-without-end",
        "asks the user for the same again, whatever the user says",
        "input-response-is-processed",
        ALL,
        MODERN,
        Deviation::Result("tools/call", |received, result| {
            let modes = &received.params()["_meta"][CAPABILITIES]["elicitation"];
            let takes_forms = modes.is_object() && (modes.get("form").is_some() || modes.get("url").is_none());
            if received.calls("echo") && takes_forms && result["isError"] != true {
                let form = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
                let params = json!({ "mode": "form", "message": "Who are you?", "requestedSchema": form });
                remove(result, "content");
                result["resultType"] = json!("input_required");
                result["inputRequests"] = json!({ "who": { "method": "elicitation/create", "params": params } });
            }
        }),
    ),
    broken_server(
        "trace-unreadable",
        "puts the id of a trace alone where all of its parent belongs",
        "trace-context-is-well-formed",
        ALL,
        MODERN,
        Deviation::Result("tools/list", |_, result| result["_meta"]["traceparent"] = json!("0af7651916cd43dd8448eb211c80319c")),
    ),
    broken_server(
        "meta-version-optional",
        "takes requests without a version in `_meta`",
        "meta-version-is-required",
        ALL,
        MODERN,
        Deviation::Incoming(|message| fill(message, |meta| meta.is_object(), &[VERSION])),
    ),
    broken_server(
        "meta-capabilities-optional",
        "takes requests without capabilities in `_meta`",
        "meta-capabilities-are-required",
        ALL,
        MODERN,
        Deviation::Incoming(|message| fill(message, |meta| meta.is_object(), &[CAPABILITIES])),
    ),
    broken_server(
        "meta-optional",
        "takes requests without `_meta`",
        "meta-is-required",
        ALL,
        MODERN,
        Deviation::Incoming(|message| fill(message, Value::is_null, &[VERSION, CAPABILITIES])),
    ),
    broken_server(
        "meta-missing-gets-429",
        "refuses a discovery without `_meta` as if there were too many requests",
        "meta-is-required",
        HTTP,
        MODERN,
        Deviation::Response(|request, response| {
            let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            if message["method"] == "server/discover" && message["params"]["_meta"].is_null() {
                renumber(response, 400, 429);
            }
        }),
    ),
    broken_server(
        "client-info-required",
        "refuses requests without the name of the client",
        "meta-client-info-is-optional",
        ALL,
        MODERN,
        Deviation::Outgoing(|received, message| match received.params()["_meta"].get("io.modelcontextprotocol/clientInfo") {
            None => vec![refuse(received, -32602, "clientInfo is missing")],
            Some(_) => vec![message],
        }),
    ),
    broken_server(
        "any-version",
        "takes requests of any version",
        NAMED,
        STDIO,
        MODERN,
        Deviation::Incoming(|message| {
            if message["params"]["_meta"].get(VERSION).is_some() {
                message["params"]["_meta"][VERSION] = json!(REVISION);
            }
        }),
    ),
    broken_server(
        "unsupported-version-unexplained",
        "does not tell which versions it supports",
        NAMED,
        ALL,
        MODERN,
        Deviation::Errors(|error| {
            if error["code"] == -32022 {
                remove(error, "data")
            }
        }),
    ),
    broken_server(
        "unsupported-version-hangs-up",
        "closes the connection of each request in an unsupported version without a response",
        NAMED,
        HTTP,
        MODERN,
        Deviation::Internal(InternalDeviation::UnknownVersionsHangUp),
    ),
    broken_server(
        "unsupported-version-invalid-params",
        "calls an unsupported version invalid parameters",
        NAMED,
        ALL,
        MODERN,
        Deviation::Errors(|error| {
            if error["code"] == -32022 {
                error["code"] = json!(-32602)
            }
        }),
    ),
    broken_server(
        "version-header-unchecked",
        "takes a version in the header that is not that of the message",
        "header-version-is-checked",
        HTTP,
        MODERN,
        Deviation::Internal(InternalDeviation::VersionHeaderUnchecked),
    ),
    broken_server(
        "meta-optional-in-calls",
        "takes calls without `_meta`",
        "meta-is-required",
        &["stdio", "http"],
        MODERN,
        Deviation::Incoming(|message| {
            if message["method"] == "tools/call" {
                fill(message, Value::is_null, &[VERSION, CAPABILITIES]);
            }
        }),
    ),
    broken_server(
        "meta-capabilities-optional-in-reads",
        "takes requests for resources without capabilities in `_meta`",
        "meta-capabilities-are-required",
        &["stdio", "http"],
        MODERN,
        Deviation::Incoming(|message| {
            if message["method"] == "resources/read" {
                fill(message, |meta| meta.is_object(), &[CAPABILITIES]);
            }
        }),
    ),
    broken_server(
        "unsupported-version-of-calls-is-misquoted",
        "quotes another version than the one of a call that it refuses",
        NAMED,
        ALL,
        MODERN,
        Deviation::Outgoing(|received, mut message| {
            if received.method() == "tools/call" && message["error"]["data"]["requested"].is_string() {
                message["error"]["data"]["requested"] = json!("1999-12-31");
            }
            vec![message]
        }),
    ),
    broken_server(
        "any-version-in-calls",
        "takes calls in any version",
        "unsupported-version-error-names-versions",
        STDIO,
        MODERN,
        Deviation::Incoming(|message| {
            if message["method"] == "tools/call" && message["params"]["_meta"][VERSION].is_string() {
                message["params"]["_meta"][VERSION] = json!(REVISION);
            }
        }),
    ),
    broken_server(
        "method-header-unchecked-for-calls",
        "does not look at the Mcp-Method of calls",
        "header-method-is-checked",
        HTTP,
        MODERN,
        Deviation::Internal(InternalDeviation::MethodHeaderUncheckedForCalls),
    ),
    broken_server(
        "missing-capability-gets-200",
        "asks with status 200 for what the client has not declared",
        "error-has-http-status-400",
        HTTP,
        MODERN,
        Deviation::Rejects(|request| {
            let message: Value = serde_json::from_slice(&request.body).ok()?;
            let data = json!({ "requiredCapabilities": { "sampling": {} } });
            let error = json!({ "code": -32021, "message": "sampling is needed", "data": data });
            let calls = message["method"] == "tools/call" && message["params"]["name"] == "draw";
            calls.then(|| Response::json(200, &json!({ "jsonrpc": "2.0", "id": message["id"], "error": error })))
        }),
    ),
    broken_server(
        "calls-change-schemas",
        "loses what its tools require once it has served calls",
        "list-does-not-depend-on-calls",
        STDIO,
        MODERN,
        Deviation::Outgoing(super::lists::forget_required),
    ),
    broken_server(
        "call-unlocks-a-tool",
        "lists one tool more once a tool was called",
        "list-does-not-depend-on-calls",
        STDIO,
        MODERN,
        Deviation::Outgoing(|received, mut message| {
            let mut is_unlocked = received.server.memory();
            if received.calls("add") {
                *is_unlocked = json!(true);
            }
            if *is_unlocked == true
                && let Some(tools) = message.pointer_mut("/result/tools").and_then(Value::as_array_mut)
                && let Some(mut tool) = tools.first().cloned()
            {
                tool["name"] = json!("unlocked");
                tools.push(tool);
            }
            vec![message]
        }),
    ),
    broken_server(
        "method-header-unchecked",
        "does not look at Mcp-Method",
        "header-method-is-checked",
        HTTP,
        MODERN,
        Deviation::Internal(InternalDeviation::MethodHeaderUnchecked),
    ),
    broken_server(
        "name-header-unchecked",
        "does not look at Mcp-Name",
        "header-name-is-checked",
        HTTP,
        MODERN,
        Deviation::Internal(InternalDeviation::NameHeaderUnchecked),
    ),
    broken_server(
        "name-header-in-any-case",
        "compares Mcp-Name without regard to case",
        "header-name-is-checked",
        HTTP,
        MODERN,
        Deviation::Internal(InternalDeviation::NameHeaderInAnyCase),
    ),
    broken_server(
        "method-header-unchecked-for-subscriptions",
        "does not look at the Mcp-Method of subscriptions",
        "header-method-is-checked",
        HTTP,
        MODERN,
        Deviation::Internal(InternalDeviation::MethodHeaderUncheckedForSubscriptions),
    ),
    broken_server(
        "mismatch-gets-another-code",
        "calls a header that does not match an invalid request",
        "header-method-is-checked",
        HTTP,
        MODERN,
        Deviation::Errors(|error| {
            if error["code"] == -32020 {
                error["code"] = json!(-32600)
            }
        }),
    ),
    broken_server(
        "input-required-for-a-list",
        "wants input before it lists its prompts",
        "input-required-only-where-allowed",
        ALL,
        MODERN,
        Deviation::Result("prompts/list", |_, result| {
            result["resultType"] = json!("input_required");
            result["requestState"] = json!("of the gate");
        }),
    ),
    broken_server(
        "header-names-have-a-case",
        "knows Mcp-Method in no other case",
        "header-names-are-case-insensitive",
        HTTP,
        MODERN,
        Deviation::Rejects(|request| {
            let odd = request
                .headers
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case("mcp-method") && !["mcp-method", "Mcp-Method"].contains(&name.as_str()));
            odd.then(|| mismatch(request, "Mcp-Method is missing"))
        }),
    ),
    broken_server(
        "header-values-untrimmed",
        "takes the blanks around the value of Mcp-Method for a part of it",
        "header-values-are-trimmed",
        HTTP,
        MODERN,
        Deviation::Rejects(|request| {
            let value = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("mcp-method")).map(|(_, value)| value.as_str());
            let odd = value.is_some_and(|value| value.strip_prefix(' ').unwrap_or(value) != value.trim());
            odd.then(|| mismatch(request, "Mcp-Method does not match"))
        }),
    ),
    broken_server(
        "base64-undecoded",
        "does not decode Mcp-Name",
        "header-base64-is-decoded",
        HTTP,
        MODERN,
        Deviation::Internal(InternalDeviation::Base64Undecoded),
    ),
    broken_server(
        "parameter-numbers-as-texts",
        "compares numbers in headers as texts",
        "header-param-numbers-are-compared",
        HTTP,
        MODERN,
        Deviation::Internal(InternalDeviation::ParameterNumbersAreTexts),
    ),
    broken_server(
        "parameter-in-any-letters",
        "takes a header that is not ASCII",
        "header-params-are-checked",
        HTTP,
        MODERN,
        Deviation::Internal(InternalDeviation::ParameterInAnyLetters),
    ),
    broken_server(
        "parameter-expected-for-null",
        "wants a header for an argument that is null",
        "header-params-are-checked",
        HTTP,
        MODERN,
        Deviation::Internal(InternalDeviation::ParameterExpectedForNull),
    ),
    broken_server(
        "parameter-headers-unchecked",
        "does not look at the headers of arguments",
        "header-params-are-checked",
        HTTP,
        MODERN,
        Deviation::Internal(InternalDeviation::ParameterHeadersUnchecked),
    ),
    broken_server(
        "ping-answered",
        "still answers `ping`",
        GONE,
        ALL,
        MODERN,
        Deviation::Outgoing(|received, message| still(received, message, "ping")),
    ),
    broken_server(
        "set-level-answered",
        "still answers `logging/setLevel`",
        GONE,
        ALL,
        MODERN,
        Deviation::Outgoing(|received, message| still(received, message, "logging/setLevel")),
    ),
    broken_server(
        "subscribe-answered",
        "still answers `resources/subscribe`",
        GONE,
        ALL,
        MODERN,
        Deviation::Outgoing(|received, message| still(received, message, "resources/subscribe")),
    ),
    broken_server(
        "unknown-method-gets-200",
        "answers an unknown method with 200, and an error",
        "unknown-method-gets-404",
        HTTP,
        MODERN,
        Deviation::Response(|request, response| {
            if request.method == "POST" {
                renumber(response, 404, 200);
            }
        }),
    ),
    broken_server(
        "result-without-type",
        "does not tell the type of results of tools",
        "result-has-type",
        ALL,
        MODERN,
        Deviation::Result("tools/call", |_, result| remove(result, "resultType")),
    ),
    broken_server(
        "ttl-missing",
        "does not tell how long a list holds",
        CACHE,
        ALL,
        MODERN,
        Deviation::Result("tools/list", |_, result| remove(result, "ttlMs")),
    ),
    broken_server(
        "ttl-negative",
        "says that a list has ceased to hold",
        CACHE,
        ALL,
        MODERN,
        Deviation::Result("tools/list", |_, result| result["ttlMs"] = json!(-1)),
    ),
    broken_server(
        "cache-scope-missing",
        "does not tell for whom a resource may be kept",
        CACHE,
        ALL,
        MODERN,
        Deviation::Result("resources/read", |_, result| remove(result, "cacheScope")),
    ),
    broken_server(
        "cache-scope-unknown",
        "lets lists be kept for somebody that nobody knows",
        CACHE,
        ALL,
        MODERN,
        Deviation::Result("prompts/list", |_, result| result["cacheScope"] = json!("shared")),
    ),
    broken_server(
        "listen-unacknowledged",
        "does not acknowledge a subscription",
        "listen-is-acknowledged-first",
        ALL,
        MODERN,
        Deviation::Outgoing(|_, message| if acknowledges(&message) { Vec::new() } else { vec![message] }),
    ),
    broken_server(
        "listen-acknowledged-twice",
        "acknowledges each subscription twice",
        "listen-is-acknowledged-first",
        ALL,
        MODERN,
        Deviation::Outgoing(|_, message| if acknowledges(&message) { vec![message.clone(), message] } else { vec![message] }),
    ),
    broken_server(
        "listen-acknowledged-late",
        "notifies a subscriber before it acknowledges",
        "listen-is-acknowledged-first",
        ALL,
        MODERN,
        Deviation::Outgoing(|received, message| match acknowledges(&message) {
            true => vec![wanted(received), message],
            false => vec![message],
        }),
    ),
    broken_server(
        "listen-untagged",
        "does not tell to which subscription a notification belongs",
        "listen-notifications-are-tagged",
        ALL,
        MODERN,
        Deviation::Outgoing(|_, mut message| {
            if message["params"]["_meta"].get(SUBSCRIPTION).is_some() {
                remove(&mut message["params"], "_meta");
            }
            vec![message]
        }),
    ),
    broken_server(
        "listen-tagged-with-a-name",
        "tags notifications with a name of its own",
        "listen-notifications-are-tagged",
        ALL,
        MODERN,
        Deviation::Outgoing(|_, mut message| {
            if message["params"]["_meta"].get(SUBSCRIPTION).is_some() {
                message["params"]["_meta"][SUBSCRIPTION] = json!("subscription-of-the-zoo");
            }
            vec![message]
        }),
    ),
    broken_server(
        "listen-updates-untagged",
        "tags the acknowledgement of a subscription, and no update of a resource",
        "listen-notifications-are-tagged",
        ALL,
        MODERN,
        Deviation::Outgoing(|_, mut message| {
            if message["method"] == "notifications/resources/updated" {
                remove(&mut message["params"], "_meta");
            }
            vec![message]
        }),
    ),
    broken_server(
        "listen-unfiltered",
        "notifies subscribers of what they did not ask for",
        "listen-filter-is-honored",
        ALL,
        MODERN,
        Deviation::Outgoing(|received, message| match acknowledges(&message) {
            true => {
                let all = [("toolsListChanged", "tools"), ("promptsListChanged", "prompts"), ("resourcesListChanged", "resources")];
                let extra = all.into_iter().find(|(key, _)| received.params()["notifications"][key] != true);
                let extra = extra.map(|(_, kind)| tagged(received, &format!("notifications/{kind}/list_changed"), json!({})));
                [message].into_iter().chain(extra).collect()
            }
            false => vec![message],
        }),
    ),
    broken_server(
        "server-asks",
        "asks its client in a request of its own",
        "server-sends-no-requests",
        ALL,
        MODERN,
        Deviation::Extra(|received| match received.method() {
            "tools/list" => vec![ask(json!("zoo-1"), "roots/list", json!({}))],
            _ => Vec::new(),
        }),
    ),
    broken_server(
        "list-needs-input",
        "wants a list to be asked for twice",
        "input-required-only-where-allowed",
        ALL,
        MODERN,
        Deviation::Outgoing(|received, mut message| {
            if received.method() == "prompts/list" && !is_error(&message) {
                message["result"] = json!({ "resultType": "input_required", "requestState": "1" });
            }
            vec![message]
        }),
    ),
    broken_server("logs-unasked", "logs to clients that did not ask for it", "logs-only-when-requested", ALL, MODERN, LOGS),
    broken_server(
        "modern-session",
        "gives a session id to modern clients",
        "modern-response-has-no-session-id",
        HTTP,
        MODERN,
        Deviation::Response(|request, response| {
            if request.method == "POST" && request.header("mcp-protocol-version") == Some(REVISION) {
                response.set("mcp-session-id", "3c2a8c1e-60a7-4a58-9a53-1d8a3c7e4a10");
            }
        }),
    ),
    broken_server(
        "discovery-needed",
        "refuses everything until `server/discover` was asked",
        "requests-need-no-discovery",
        ALL,
        MODERN,
        Deviation::Outgoing(|received, message| {
            let mut memory = received.server.memory();
            if received.method() == "server/discover" {
                *memory = json!("discovered");
            }
            if is_error(&message) || *memory == json!("discovered") {
                vec![message]
            } else {
                vec![refuse(received, -32600, "Server not initialized")]
            }
        }),
    ),
    broken_server(
        "cursors-of-one-process",
        "gives cursors that only the same process understands",
        "replicas-are-interchangeable",
        HTTP,
        MODERN,
        Deviation::Internal(InternalDeviation::CursorsOfOneProcess),
    ),
];

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

const NAMED: &str = "unsupported-version-error-names-versions";
const GONE: &str = "removed-methods-are-refused";
const CACHE: &str = "result-has-cache-hints";

/// Fills in what is missing in the `_meta` of a request, if that looks so.
fn fill(message: &mut Value, looks: fn(&Value) -> bool, keys: &[&str]) {
    if message.get("id").is_none() || message["method"] == "initialize" || !looks(&message["params"]["_meta"]) {
        return;
    }
    for key in keys {
        if message["params"]["_meta"].get(key).is_none() {
            message["params"]["_meta"][*key] = if *key == VERSION { json!(REVISION) } else { json!({}) };
        }
    }
}

/// An answer to a method that is gone.
fn still(received: &Received, message: Value, method: &str) -> Vec<Value> {
    if received.method() == method && is_error(&message) { vec![accept(received, json!({}))] } else { vec![message] }
}

fn acknowledges(message: &Value) -> bool {
    message["method"] == "notifications/subscriptions/acknowledged"
}

/// A notification of a subscription.
fn tagged(received: &Received, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({ SUBSCRIPTION: received.id() });
    notification(method, params)
}

/// A notification that the subscriber has asked for, as far as it has.
fn wanted(received: &Received) -> Value {
    let filter = &received.params()["notifications"];
    match filter["resourceSubscriptions"][0].as_str() {
        Some(uri) => tagged(received, "notifications/resources/updated", json!({ "uri": uri })),
        None => {
            let all = [("promptsListChanged", "prompts"), ("resourcesListChanged", "resources")];
            let kind = all.into_iter().find(|(key, _)| filter[key] == true).map_or("tools", |(_, kind)| kind);
            tagged(received, &format!("notifications/{kind}/list_changed"), json!({}))
        }
    }
}

/// The refusal of a request for one of its headers.
fn mismatch(request: &Request, what: &str) -> Response {
    let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let error = json!({ "code": -32020, "message": format!("Header mismatch: {what}") });
    Response::json(400, &json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }))
}
