//! Animals that break what is new in 2026-07-28.

use super::changes::{accept, ask, is_error, refuse, remove};
use super::http::renumber;
use super::lists::LOGS;
use super::server::{Heard, MODERN as REVISION, Response, notification};
use super::slip::Slip;
use super::twist::Twist;
use super::{ALL, Animal, HTTP, MODERN, STDIO, animal};
use crate::raw_http::Request;
use serde_json::{Value, json};

pub(super) const ANIMALS: &[Animal] = &[
    animal(
        "discover-unknown",
        "does not know `server/discover`",
        "discover-is-implemented",
        ALL,
        MODERN,
        Twist::Says(|heard, message| match heard.method() {
            "server/discover" => vec![refuse(heard, -32601, "Method not found: server/discover")],
            _ => vec![message],
        }),
    ),
    animal(
        "discover-without-this-version",
        "does not name the version that it speaks",
        "discover-names-versions",
        ALL,
        MODERN,
        Twist::Result("server/discover", |_, result| result["supportedVersions"] = json!(["2025-11-25"])),
    ),
    animal(
        "discover-without-versions",
        "names no version at all",
        "discover-names-versions",
        ALL,
        MODERN,
        Twist::Result("server/discover", |_, result| result["supportedVersions"] = json!([])),
    ),
    animal(
        "discover-nameless",
        "does not tell its name",
        "result-meta-names-server",
        ALL,
        MODERN,
        Twist::Result("server/discover", |_, result| remove(result, "_meta")),
    ),
    animal(
        "legacy-client-left-in-the-dark",
        "refuses `initialize` without a word about versions",
        "legacy-handshake-names-versions",
        &["stdio", "http"],
        MODERN,
        Twist::Says(|heard, message| match heard.method() == "initialize" && heard.params().get("_meta").is_none() {
            true => vec![refuse(heard, -32601, "Method not found")],
            false => vec![message],
        }),
    ),
    animal(
        "trace-unreadable",
        "puts the id of a trace alone where all of its parent belongs",
        "trace-context-is-well-formed",
        ALL,
        MODERN,
        Twist::Result("tools/list", |_, result| result["_meta"]["traceparent"] = json!("0af7651916cd43dd8448eb211c80319c")),
    ),
    animal(
        "meta-version-optional",
        "takes requests without a version in `_meta`",
        "meta-version-is-required",
        ALL,
        MODERN,
        Twist::Hears(|message| fill(message, |meta| meta.is_object(), &[VERSION])),
    ),
    animal(
        "meta-capabilities-optional",
        "takes requests without capabilities in `_meta`",
        "meta-capabilities-are-required",
        ALL,
        MODERN,
        Twist::Hears(|message| fill(message, |meta| meta.is_object(), &[CAPABILITIES])),
    ),
    animal(
        "meta-optional",
        "takes requests without `_meta`",
        "meta-is-required",
        ALL,
        MODERN,
        Twist::Hears(|message| fill(message, Value::is_null, &[VERSION, CAPABILITIES])),
    ),
    animal(
        "client-info-required",
        "refuses requests without the name of the client",
        "meta-client-info-is-optional",
        ALL,
        MODERN,
        Twist::Says(|heard, message| match heard.params()["_meta"].get("io.modelcontextprotocol/clientInfo") {
            None => vec![refuse(heard, -32602, "clientInfo is missing")],
            Some(_) => vec![message],
        }),
    ),
    animal(
        "any-version",
        "takes requests of any version",
        NAMED,
        STDIO,
        MODERN,
        Twist::Hears(|message| {
            if message["params"]["_meta"].get(VERSION).is_some() {
                message["params"]["_meta"][VERSION] = json!(REVISION);
            }
        }),
    ),
    animal(
        "unsupported-version-unexplained",
        "does not tell which versions it supports",
        NAMED,
        ALL,
        MODERN,
        Twist::Errors(|error| {
            if error["code"] == -32022 {
                remove(error, "data")
            }
        }),
    ),
    animal(
        "unsupported-version-invalid-params",
        "calls an unsupported version invalid parameters",
        NAMED,
        ALL,
        MODERN,
        Twist::Errors(|error| {
            if error["code"] == -32022 {
                error["code"] = json!(-32602)
            }
        }),
    ),
    animal(
        "version-header-unchecked",
        "takes a version in the header that is not that of the message",
        "header-version-is-checked",
        HTTP,
        MODERN,
        Twist::Slip(Slip::VersionHeaderUnchecked),
    ),
    animal(
        "meta-optional-in-calls",
        "takes calls without `_meta`",
        "meta-is-required",
        &["stdio", "http"],
        MODERN,
        Twist::Hears(|message| {
            if message["method"] == "tools/call" {
                fill(message, Value::is_null, &[VERSION, CAPABILITIES]);
            }
        }),
    ),
    animal(
        "meta-capabilities-optional-in-reads",
        "takes requests for resources without capabilities in `_meta`",
        "meta-capabilities-are-required",
        &["stdio", "http"],
        MODERN,
        Twist::Hears(|message| {
            if message["method"] == "resources/read" {
                fill(message, |meta| meta.is_object(), &[CAPABILITIES]);
            }
        }),
    ),
    animal(
        "any-version-in-calls",
        "takes calls in any version",
        "unsupported-version-error-names-versions",
        STDIO,
        MODERN,
        Twist::Hears(|message| {
            if message["method"] == "tools/call" && message["params"]["_meta"][VERSION].is_string() {
                message["params"]["_meta"][VERSION] = json!(REVISION);
            }
        }),
    ),
    animal(
        "method-header-unchecked-for-calls",
        "does not look at the Mcp-Method of calls",
        "header-method-is-checked",
        HTTP,
        MODERN,
        Twist::Slip(Slip::MethodHeaderUncheckedForCalls),
    ),
    animal(
        "missing-capability-gets-200",
        "asks with status 200 for what the client has not declared",
        "error-has-http-status-400",
        HTTP,
        MODERN,
        Twist::Refuses(|request| {
            let message: Value = serde_json::from_slice(&request.body).ok()?;
            let data = json!({ "requiredCapabilities": { "sampling": {} } });
            let error = json!({ "code": -32021, "message": "sampling is needed", "data": data });
            let calls = message["method"] == "tools/call" && message["params"]["name"] == "draw";
            calls.then(|| Response::json(200, &json!({ "jsonrpc": "2.0", "id": message["id"], "error": error })))
        }),
    ),
    animal(
        "call-unlocks-a-tool",
        "lists one tool more once a tool was called",
        "list-does-not-depend-on-calls",
        STDIO,
        MODERN,
        Twist::Says(|heard, mut message| {
            let mut is_unlocked = heard.server.memory();
            if heard.calls("add") {
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
    animal(
        "method-header-unchecked",
        "does not look at Mcp-Method",
        "header-method-is-checked",
        HTTP,
        MODERN,
        Twist::Slip(Slip::MethodHeaderUnchecked),
    ),
    animal(
        "name-header-unchecked",
        "does not look at Mcp-Name",
        "header-name-is-checked",
        HTTP,
        MODERN,
        Twist::Slip(Slip::NameHeaderUnchecked),
    ),
    animal(
        "mismatch-gets-another-code",
        "calls a header that does not match an invalid request",
        "header-method-is-checked",
        HTTP,
        MODERN,
        Twist::Errors(|error| {
            if error["code"] == -32020 {
                error["code"] = json!(-32600)
            }
        }),
    ),
    animal(
        "input-required-for-a-list",
        "wants input before it lists its prompts",
        "input-required-only-where-allowed",
        ALL,
        MODERN,
        Twist::Result("prompts/list", |_, result| {
            result["resultType"] = json!("input_required");
            result["requestState"] = json!("of the gate");
        }),
    ),
    animal(
        "header-names-have-a-case",
        "knows Mcp-Method in no other case",
        "header-names-are-case-insensitive",
        HTTP,
        MODERN,
        Twist::Refuses(|request| {
            let odd = request
                .headers
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case("mcp-method") && !["mcp-method", "Mcp-Method"].contains(&name.as_str()));
            odd.then(|| mismatch(request, "Mcp-Method is missing"))
        }),
    ),
    animal(
        "header-values-untrimmed",
        "takes the blanks around the value of Mcp-Method for a part of it",
        "header-values-are-trimmed",
        HTTP,
        MODERN,
        Twist::Refuses(|request| {
            let value = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("mcp-method")).map(|(_, value)| value.as_str());
            let odd = value.is_some_and(|value| value.strip_prefix(' ').unwrap_or(value) != value.trim());
            odd.then(|| mismatch(request, "Mcp-Method does not match"))
        }),
    ),
    animal("base64-undecoded", "does not decode Mcp-Name", "header-base64-is-decoded", HTTP, MODERN, Twist::Slip(Slip::Base64Undecoded)),
    animal(
        "parameter-numbers-as-texts",
        "compares numbers in headers as texts",
        "header-param-numbers-are-compared",
        HTTP,
        MODERN,
        Twist::Slip(Slip::ParameterNumbersAreTexts),
    ),
    animal(
        "parameter-in-any-letters",
        "takes a header that is not ASCII",
        "header-params-are-checked",
        HTTP,
        MODERN,
        Twist::Slip(Slip::ParameterInAnyLetters),
    ),
    animal(
        "parameter-expected-for-null",
        "wants a header for an argument that is null",
        "header-params-are-checked",
        HTTP,
        MODERN,
        Twist::Slip(Slip::ParameterExpectedForNull),
    ),
    animal(
        "parameter-headers-unchecked",
        "does not look at the headers of arguments",
        "header-params-are-checked",
        HTTP,
        MODERN,
        Twist::Slip(Slip::ParameterHeadersUnchecked),
    ),
    animal("ping-answered", "still answers `ping`", GONE, ALL, MODERN, Twist::Says(|heard, message| still(heard, message, "ping"))),
    animal(
        "set-level-answered",
        "still answers `logging/setLevel`",
        GONE,
        ALL,
        MODERN,
        Twist::Says(|heard, message| still(heard, message, "logging/setLevel")),
    ),
    animal(
        "subscribe-answered",
        "still answers `resources/subscribe`",
        GONE,
        ALL,
        MODERN,
        Twist::Says(|heard, message| still(heard, message, "resources/subscribe")),
    ),
    animal(
        "unknown-method-gets-200",
        "answers an unknown method with 200, and an error",
        "unknown-method-gets-404",
        HTTP,
        MODERN,
        Twist::Response(|request, response| {
            if request.method == "POST" {
                renumber(response, 404, 200);
            }
        }),
    ),
    animal(
        "result-without-type",
        "does not tell the type of results of tools",
        "result-has-type",
        ALL,
        MODERN,
        Twist::Result("tools/call", |_, result| remove(result, "resultType")),
    ),
    animal(
        "ttl-missing",
        "does not tell how long a list holds",
        CACHE,
        ALL,
        MODERN,
        Twist::Result("tools/list", |_, result| remove(result, "ttlMs")),
    ),
    animal(
        "ttl-negative",
        "says that a list has ceased to hold",
        CACHE,
        ALL,
        MODERN,
        Twist::Result("tools/list", |_, result| result["ttlMs"] = json!(-1)),
    ),
    animal(
        "cache-scope-missing",
        "does not tell for whom a resource may be kept",
        CACHE,
        ALL,
        MODERN,
        Twist::Result("resources/read", |_, result| remove(result, "cacheScope")),
    ),
    animal(
        "cache-scope-unknown",
        "lets lists be kept for somebody that nobody knows",
        CACHE,
        ALL,
        MODERN,
        Twist::Result("prompts/list", |_, result| result["cacheScope"] = json!("shared")),
    ),
    animal(
        "listen-unacknowledged",
        "does not acknowledge a subscription",
        "listen-is-acknowledged-first",
        ALL,
        MODERN,
        Twist::Says(|_, message| if acknowledges(&message) { Vec::new() } else { vec![message] }),
    ),
    animal(
        "listen-acknowledged-late",
        "notifies a subscriber before it acknowledges",
        "listen-is-acknowledged-first",
        ALL,
        MODERN,
        Twist::Says(|heard, message| match acknowledges(&message) {
            true => vec![wanted(heard), message],
            false => vec![message],
        }),
    ),
    animal(
        "listen-untagged",
        "does not tell to which subscription a notification belongs",
        "listen-notifications-are-tagged",
        ALL,
        MODERN,
        Twist::Says(|_, mut message| {
            if message["params"]["_meta"].get(SUBSCRIPTION).is_some() {
                remove(&mut message["params"], "_meta");
            }
            vec![message]
        }),
    ),
    animal(
        "listen-tagged-with-a-name",
        "tags notifications with a name of its own",
        "listen-notifications-are-tagged",
        ALL,
        MODERN,
        Twist::Says(|_, mut message| {
            if message["params"]["_meta"].get(SUBSCRIPTION).is_some() {
                message["params"]["_meta"][SUBSCRIPTION] = json!("subscription-of-the-zoo");
            }
            vec![message]
        }),
    ),
    animal(
        "listen-unfiltered",
        "notifies subscribers of what they did not ask for",
        "listen-filter-is-honored",
        ALL,
        MODERN,
        Twist::Says(|heard, message| match acknowledges(&message) {
            true => {
                let all = [("toolsListChanged", "tools"), ("promptsListChanged", "prompts"), ("resourcesListChanged", "resources")];
                let unasked = all.into_iter().find(|(key, _)| heard.params()["notifications"][key] != true);
                let extra = unasked.map(|(_, kind)| tagged(heard, &format!("notifications/{kind}/list_changed"), json!({})));
                [message].into_iter().chain(extra).collect()
            }
            false => vec![message],
        }),
    ),
    animal(
        "server-asks",
        "asks its client in a request of its own",
        "server-sends-no-requests",
        ALL,
        MODERN,
        Twist::Unasked(|heard| match heard.method() {
            "tools/list" => vec![ask(json!("zoo-1"), "roots/list", json!({}))],
            _ => Vec::new(),
        }),
    ),
    animal(
        "list-needs-input",
        "wants a list to be asked for twice",
        "input-required-only-where-allowed",
        ALL,
        MODERN,
        Twist::Says(|heard, mut message| {
            if heard.method() == "prompts/list" && !is_error(&message) {
                message["result"] = json!({ "resultType": "input_required", "requestState": "1" });
            }
            vec![message]
        }),
    ),
    animal("logs-unasked", "logs to clients that did not ask for it", "logs-only-when-requested", ALL, MODERN, LOGS),
    animal(
        "modern-session",
        "gives a session id to modern clients",
        "modern-response-has-no-session-id",
        HTTP,
        MODERN,
        Twist::Response(|request, response| {
            if request.method == "POST" && request.header("mcp-protocol-version") == Some(REVISION) {
                response.set("mcp-session-id", "3c2a8c1e-60a7-4a58-9a53-1d8a3c7e4a10");
            }
        }),
    ),
    animal(
        "discovery-needed",
        "refuses everything until `server/discover` was asked",
        "requests-need-no-discovery",
        ALL,
        MODERN,
        Twist::Says(|heard, message| {
            let mut memory = heard.server.memory();
            if heard.method() == "server/discover" {
                *memory = json!("discovered");
            }
            if is_error(&message) || *memory == json!("discovered") {
                vec![message]
            } else {
                vec![refuse(heard, -32600, "Server not initialized")]
            }
        }),
    ),
    animal(
        "cursors-of-one-process",
        "gives cursors that only the same process understands",
        "replicas-are-interchangeable",
        HTTP,
        MODERN,
        Twist::Slip(Slip::CursorsOfOneProcess),
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
fn still(heard: &Heard, message: Value, method: &str) -> Vec<Value> {
    if heard.method() == method && is_error(&message) { vec![accept(heard, json!({}))] } else { vec![message] }
}

fn acknowledges(message: &Value) -> bool {
    message["method"] == "notifications/subscriptions/acknowledged"
}

/// A notification of a subscription.
fn tagged(heard: &Heard, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({ SUBSCRIPTION: heard.id() });
    notification(method, params)
}

/// A notification that the subscriber has asked for, as far as it has.
fn wanted(heard: &Heard) -> Value {
    let filter = &heard.params()["notifications"];
    match filter["resourceSubscriptions"][0].as_str() {
        Some(uri) => tagged(heard, "notifications/resources/updated", json!({ "uri": uri })),
        None => {
            let all = [("promptsListChanged", "prompts"), ("resourcesListChanged", "resources")];
            let kind = all.into_iter().find(|(key, _)| filter[key] == true).map_or("tools", |(_, kind)| kind);
            tagged(heard, &format!("notifications/{kind}/list_changed"), json!({}))
        }
    }
}

/// The refusal of a request for one of its headers.
fn mismatch(request: &Request, what: &str) -> Response {
    let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let error = json!({ "code": -32020, "message": format!("Header mismatch: {what}") });
    Response::json(400, &json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }))
}
