//! Animals that break JSON-RPC.

use super::changes::{accept, ask, is_handshake, lists_tools, refuse, remove};
use super::server::{METHOD_NOT_FOUND, notification, result};
use super::slip::Slip;
use super::twist::{Twist, event, line};
use super::{ALL, Animal, BOTH, HTTP, LEGACY, MODERN, PIPES, STDIO, WEB, animal};
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::Duration;

pub(super) const ANIMALS: &[Animal] = &[
    animal(
        "jsonrpc-missing",
        "leaves `jsonrpc` out of the list of tools",
        "jsonrpc-version-is-2-0",
        ALL,
        BOTH,
        Twist::Tools(|message| remove(message, "jsonrpc")),
    ),
    animal(
        "jsonrpc-1",
        "answers in JSON-RPC 1.0",
        "jsonrpc-version-is-2-0",
        ALL,
        BOTH,
        Twist::Tools(|message| message["jsonrpc"] = json!("1.0")),
    ),
    animal(
        "result-twice",
        "gives the list of tools two results",
        "message-has-each-member-once",
        STDIO,
        BOTH,
        Twist::Line(|message, json| line(&if lists_tools(message) { doubled(&json, "result") } else { json })),
    ),
    animal(
        "handshake-result-twice",
        "gives the answer to the handshake two results",
        "message-has-each-member-once",
        STDIO,
        BOTH,
        Twist::Line(|message, json| line(&if is_handshake(message) { doubled(&json, "result") } else { json })),
    ),
    animal(
        "id-twice",
        "gives the list of tools two ids",
        "message-has-each-member-once",
        WEB,
        BOTH,
        Twist::Event(|message, json| event(&if lists_tools(message) { doubled(&json, "id") } else { json })),
    ),
    animal(
        "tools-twice",
        "names the list of tools twice in its result",
        "json-names-are-unique",
        WEB,
        BOTH,
        Twist::Event(|message, json| event(&if lists_tools(message) { doubled(&json, "tools") } else { json })),
    ),
    animal(
        "number-ids-become-strings",
        "gives the id of the list of tools back as a string",
        "response-id-matches-request",
        ALL,
        BOTH,
        Twist::Tools(|message| {
            if message["id"].is_number() {
                message["id"] = json!(message["id"].to_string());
            }
        }),
    ),
    animal(
        "string-ids-become-numbers",
        "gives ids that are strings back as numbers",
        "response-id-matches-request",
        ALL,
        BOTH,
        Twist::Says(|_, mut message| {
            if let Some(text) = message["id"].as_str() {
                message["id"] = json!(text.parse().unwrap_or(-1_i64));
            }
            vec![message]
        }),
    ),
    animal(
        "ignores-id-0",
        "takes a request with the id 0 for a notification",
        "valid-request-is-served",
        ALL,
        BOTH,
        Twist::Hears(|message| {
            if message["id"] == json!(0) {
                message.as_object_mut().map(|message| message.remove("id"));
            }
        }),
    ),
    animal(
        "wants-numbers-for-ids",
        "refuses a request whose id is a text",
        "valid-request-is-served",
        ALL,
        LEGACY,
        Twist::Says(|heard, message| match heard.id().is_string() && message.get("method").is_none() {
            true => vec![refuse(heard, -32600, "the id has to be a number")],
            false => vec![message],
        }),
    ),
    animal(
        "wants-params",
        "refuses the list of tools if it is asked for without `params`",
        "valid-request-is-served",
        ALL,
        LEGACY,
        Twist::Says(|heard, message| match lists_tools(&message) && heard.message.get("params").is_none() {
            true => vec![refuse(heard, -32602, "`params` is missing")],
            false => vec![message],
        }),
    ),
    animal(
        "wants-no-progress",
        "refuses the list of tools if progress is asked for",
        "valid-request-is-served",
        ALL,
        LEGACY,
        Twist::Says(|heard, message| match lists_tools(&message) && heard.message["params"].get("_meta").is_some() {
            true => vec![refuse(heard, -32602, "unknown member `_meta`")],
            false => vec![message],
        }),
    ),
    animal(
        "ids-become-null",
        "answers `tools/list` with the id null",
        "response-id-matches-request",
        ALL,
        BOTH,
        Twist::Tools(|message| message["id"] = Value::Null),
    ),
    animal(
        "answers-twice",
        "sends the list of tools twice",
        "request-gets-one-response",
        ALL,
        BOTH,
        Twist::Says(|_, message| match lists_tools(&message) {
            true => vec![message.clone(), message],
            false => vec![message],
        }),
    ),
    animal(
        "result-and-error",
        "answers with a result and an error",
        "response-has-result-or-error",
        ALL,
        BOTH,
        Twist::Tools(|message| message["error"] = json!({ "code": -32603, "message": "Internal error" })),
    ),
    animal(
        "neither-result-nor-error",
        "answers with nothing but an id",
        "response-has-result-or-error",
        ALL,
        BOTH,
        Twist::Tools(|message| remove(message, "result")),
    ),
    animal(
        "error-without-code",
        "tells errors without a code",
        "error-has-code-and-message",
        ALL,
        BOTH,
        Twist::Errors(|error| remove(error, "code")),
    ),
    animal(
        "error-code-is-text",
        "tells the codes of errors as text",
        "error-has-code-and-message",
        ALL,
        BOTH,
        Twist::Errors(|error| error["code"] = json!("METHOD_NOT_FOUND")),
    ),
    animal(
        "discovery-refused-without-message",
        "refuses `server/discover` with an error that has no message",
        "error-has-code-and-message",
        STDIO,
        LEGACY,
        Twist::Says(|heard, mut message| {
            if heard.method() == "server/discover" {
                remove(&mut message["error"], "message");
            }
            vec![message]
        }),
    ),
    animal(
        "refusal-without-id",
        "refuses a method of earlier revisions without an id",
        "response-id-matches-request",
        HTTP,
        MODERN,
        Twist::Says(|heard, mut message| {
            if heard.method() == "logging/setLevel" {
                message["id"] = json!(null);
            }
            vec![message]
        }),
    ),
    animal(
        "error-without-message",
        "tells errors without a message",
        "error-has-code-and-message",
        ALL,
        BOTH,
        Twist::Errors(|error| remove(error, "message")),
    ),
    animal(
        "notifications-answered",
        "answers notifications with an error whose id is null",
        "notification-gets-no-response",
        PIPES,
        BOTH,
        Twist::Unasked(|heard| match heard.method().starts_with("notifications/") {
            true => vec![json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32601, "message": "Method not found" } })],
            false => Vec::new(),
        }),
    ),
    animal(
        "answers-nobody",
        "answers a request that nobody has made",
        "response-belongs-to-a-request",
        ALL,
        BOTH,
        Twist::Unasked(|heard| match heard.method() {
            "tools/list" => vec![result(&json!(987_654), accept(heard, json!({}))["result"].clone())],
            _ => Vec::new(),
        }),
    ),
    animal(
        "request-ids-repeat",
        "asks twice with the same id",
        "server-request-id-is-unique",
        ALL,
        LEGACY,
        Twist::Unasked(|heard| match heard.method() {
            "tools/list" => vec![ask(json!("again"), "ping", json!({})), ask(json!("again"), "ping", json!({}))],
            _ => Vec::new(),
        }),
    ),
    animal(
        "progress-tokens-alike",
        "asks twice at once with the same progress token",
        "progress-tokens-are-unique",
        STDIO,
        LEGACY,
        Twist::Line(|message, json| {
            let before = if lists_tools(message) { alike(message) } else { Vec::new() };
            before.iter().map(Value::to_string).chain([json]).flat_map(|json| line(&json)).collect()
        }),
    ),
    animal(
        "progress-tokens-alike-in-events",
        "asks twice at once with the same progress token",
        "progress-tokens-are-unique",
        WEB,
        LEGACY,
        Twist::Event(|message, json| {
            let before = if lists_tools(message) { alike(message) } else { Vec::new() };
            before.iter().map(Value::to_string).chain([json]).flat_map(|json| event(&json)).collect()
        }),
    ),
    animal(
        "batches-refused",
        "speaks the revision with batches, and refuses them",
        "batch-gets-response",
        ALL,
        LEGACY,
        Twist::Slip(Slip::BatchesRefused),
    ),
    animal(
        "request-id-null",
        "asks with the id null",
        "server-request-id-is-unique",
        ALL,
        LEGACY,
        Twist::Unasked(|heard| match heard.method() {
            "tools/list" => vec![ask(Value::Null, "ping", json!({}))],
            _ => Vec::new(),
        }),
    ),
    animal(
        "answers-in-batches",
        "puts the list of tools into an array of one message",
        "messages-are-not-batched",
        ALL,
        BOTH,
        Twist::Says(|_, message| match lists_tools(&message) {
            true => vec![json!([message])],
            false => vec![message],
        }),
    ),
    animal(
        "unknown-methods-succeed",
        "answers every method with an empty result",
        "unknown-method-is-refused",
        ALL,
        BOTH,
        Twist::Says(|heard, message| match message["error"]["code"] == METHOD_NOT_FOUND {
            true => vec![accept(heard, json!({}))],
            false => vec![message],
        }),
    ),
    animal("unknown-method-internal-error", "calls an unknown method an internal error", "unknown-method-code", ALL, LEGACY, MISNAMED),
    animal(
        "unknown-method-internal-error-modern",
        "calls an unknown method an internal error",
        "unknown-method-code",
        STDIO,
        MODERN,
        MISNAMED,
    ),
    animal(
        "cross-talk",
        "echoes, to each of several calls at once, the text of the last one",
        "concurrent-responses-match-requests",
        ALL,
        BOTH,
        Twist::Says(|heard, mut message| {
            if heard.calls("echo") && message["result"]["content"].is_array() {
                *heard.server.memory() = message["result"]["content"].clone();
                sleep(Duration::from_millis(150));
                message["result"]["content"] = heard.server.memory().clone();
            }
            vec![message]
        }),
    ),
    animal(
        "cancels-what-it-never-asked",
        "cancels a request that it never sent",
        "server-cancels-only-own-requests",
        ALL,
        BOTH,
        Twist::Unasked(|heard| match heard.method() {
            "prompts/list" => vec![notification("notifications/cancelled", json!({ "requestId": "nobody-asked", "reason": "closing" }))],
            _ => Vec::new(),
        }),
    ),
    animal(
        "notification-with-id",
        "gives an id to a notification",
        "notification-has-no-id",
        ALL,
        LEGACY,
        Twist::Unasked(|heard| match heard.method() {
            "prompts/list" => vec![
                json!({ "jsonrpc": "2.0", "id": format!("told with {}", heard.id()), "method": "notifications/message", "params": { "level": "error", "data": "the gate is open" } }),
            ],
            _ => Vec::new(),
        }),
    ),
];

const MISNAMED: Twist = Twist::Says(|heard, message| match message["error"]["code"] == METHOD_NOT_FOUND {
    true => vec![refuse(heard, -32603, "Internal error")],
    false => vec![message],
});

/// A message with a member that stands there a first time, with null.
fn doubled(json: &str, name: &str) -> String {
    json.replacen(&format!("\"{name}\":"), &format!("\"{name}\":null,\"{name}\":"), 1)
}

/// Two requests with one progress token.
fn alike(answer: &Value) -> Vec<Value> {
    let asking = |which: &str| {
        let id = json!(format!("{which}-{}", answer["id"]));
        ask(id, "ping", json!({ "_meta": { "progressToken": "the-same" } }))
    };
    vec![asking("one"), asking("other")]
}
