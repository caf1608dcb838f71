//! Broken servers that break JSON-RPC.

use super::changes::{accept, ask, is_handshake, lists_tools, refuse, remove};
use super::deviation::{Deviation, event, line};
use super::internal_deviation::InternalDeviation;
use super::server::{METHOD_NOT_FOUND, Received, notification, result};
use super::{ALL, BOTH, BrokenServer, HTTP, LEGACY, MODERN, PIPES, STDIO, WEB, broken_server};
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::Duration;

pub(super) const BROKEN_SERVERS: &[BrokenServer] = &[
    broken_server(
        "jsonrpc-missing",
        "leaves `jsonrpc` out of the list of tools",
        "jsonrpc-version-is-2-0",
        ALL,
        BOTH,
        Deviation::Tools(|message| remove(message, "jsonrpc")),
    ),
    broken_server(
        "jsonrpc-1",
        "answers in JSON-RPC 1.0",
        "jsonrpc-version-is-2-0",
        ALL,
        BOTH,
        Deviation::Tools(|message| message["jsonrpc"] = json!("1.0")),
    ),
    broken_server(
        "acknowledgement-without-method",
        "leaves the method out of the acknowledgement of a subscription",
        "message-has-method-or-outcome",
        STDIO,
        MODERN,
        Deviation::Outgoing(|_, mut message| {
            if message["method"] == "notifications/subscriptions/acknowledged" {
                remove(&mut message, "method");
            }
            vec![message]
        }),
    ),
    broken_server(
        "progress-misspelled",
        "misspells the notification of progress",
        "notification-method-is-known",
        ALL,
        BOTH,
        Deviation::Outgoing(|_, mut message| {
            if message["method"] == "notifications/progress" {
                message["method"] = json!("notification/progress");
            }
            vec![message]
        }),
    ),
    broken_server(
        "result-twice",
        "gives the list of tools two results",
        "message-has-each-member-once",
        STDIO,
        BOTH,
        Deviation::Line(|message, json| line(&if lists_tools(message) { doubled(&json, "result") } else { json })),
    ),
    broken_server(
        "handshake-result-twice",
        "gives the answer to the handshake two results",
        "message-has-each-member-once",
        STDIO,
        BOTH,
        Deviation::Line(|message, json| line(&if is_handshake(message) { doubled(&json, "result") } else { json })),
    ),
    broken_server(
        "id-twice",
        "gives the list of tools two ids",
        "message-has-each-member-once",
        WEB,
        BOTH,
        Deviation::Event(|message, json| event(&if lists_tools(message) { doubled(&json, "id") } else { json })),
    ),
    broken_server(
        "tools-twice",
        "names the list of tools twice in its result",
        "json-names-are-unique",
        WEB,
        BOTH,
        Deviation::Event(|message, json| event(&if lists_tools(message) { doubled(&json, "tools") } else { json })),
    ),
    broken_server(
        "number-ids-become-strings",
        "gives the id of the list of tools back as a string",
        "response-id-matches-request",
        ALL,
        BOTH,
        Deviation::Tools(|message| {
            if message["id"].is_number() {
                message["id"] = json!(message["id"].to_string());
            }
        }),
    ),
    broken_server(
        "string-ids-become-numbers",
        "gives ids that are strings back as numbers",
        "response-id-matches-request",
        ALL,
        BOTH,
        Deviation::Outgoing(|_, mut message| {
            if let Some(text) = message["id"].as_str() {
                message["id"] = json!(text.parse().unwrap_or(-1_i64));
            }
            vec![message]
        }),
    ),
    broken_server(
        "long-ids-are-cut",
        "cuts ids that are strings to 32 characters",
        "response-id-matches-request",
        ALL,
        BOTH,
        Deviation::Outgoing(|_, message| vec![with_string_id(message, |id| id.chars().take(32).collect())]),
    ),
    broken_server(
        "ids-in-small-letters",
        "gives ids that are strings back in small letters",
        "response-id-matches-request",
        ALL,
        BOTH,
        Deviation::Outgoing(|_, message| vec![with_string_id(message, str::to_ascii_lowercase)]),
    ),
    broken_server(
        "ids-in-ascii",
        "gives ids back with question marks for what is not ASCII",
        "response-id-matches-request",
        ALL,
        BOTH,
        Deviation::Outgoing(|_, message| {
            vec![with_string_id(message, |id| id.chars().map(|letter| if letter.is_ascii() { letter } else { '?' }).collect())]
        }),
    ),
    broken_server(
        "ids-without-blanks",
        "gives ids back without the blanks around them",
        "response-id-matches-request",
        ALL,
        BOTH,
        Deviation::Outgoing(|_, message| vec![with_string_id(message, |id| id.trim().to_owned())]),
    ),
    broken_server(
        "ignores-id-0",
        "takes a request with the id 0 for a notification",
        "valid-request-is-served",
        ALL,
        BOTH,
        Deviation::Incoming(|message| {
            if message["id"] == json!(0) {
                message.as_object_mut().map(|message| message.remove("id"));
            }
        }),
    ),
    broken_server(
        "demands-arguments",
        "refuses a call without `arguments`, also of a tool that needs none",
        "valid-request-is-served",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| {
            let lacks_them = received.method() == "tools/call" && received.params().get("arguments").is_none();
            if lacks_them { refuse_result(received, message, "arguments: Required") } else { vec![message] }
        }),
    ),
    broken_server(
        "demands-params-of-prompts",
        "refuses the list of prompts to a request without `params`",
        "valid-request-is-served",
        ALL,
        LEGACY,
        Deviation::Outgoing(|received, message| {
            let lacks_them = received.method() == "prompts/list" && received.message.get("params").is_none();
            if lacks_them { refuse_result(received, message, "params: Required") } else { vec![message] }
        }),
    ),
    broken_server(
        "refuses-traced-requests",
        "refuses a request that a tracing middleware has marked in `_meta`",
        "valid-request-is-served",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| {
            let is_traced = received.params()["_meta"].get("traceparent").is_some();
            if is_traced { refuse_result(received, message, "_meta: unrecognized key") } else { vec![message] }
        }),
    ),
    broken_server(
        "refuses-titled-clients",
        "refuses a client that has a title",
        "valid-request-is-served",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| {
            let of_request = &received.params()["_meta"]["io.modelcontextprotocol/clientInfo"];
            let has_title = |info: &Value| info.get("title").is_some();
            let is_titled = has_title(&received.params()["clientInfo"]) || has_title(of_request);
            if is_titled { refuse_result(received, message, "clientInfo: unrecognized key") } else { vec![message] }
        }),
    ),
    broken_server(
        "refuses-context",
        "refuses a completion whose context has no arguments",
        "valid-request-is-served",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| {
            let is_bare = received.method() == "completion/complete" && received.params()["context"]["arguments"] == json!({});
            if is_bare { refuse_result(received, message, "context: unrecognized key") } else { vec![message] }
        }),
    ),
    broken_server(
        "changed-roots-break-lists",
        "refuses the list of tools once the roots of the client have changed",
        "valid-request-is-served",
        ALL,
        LEGACY,
        Deviation::Internal(InternalDeviation::ChangedRootsBreakLists),
    ),
    broken_server(
        "wants-jsonrpc-first",
        "refuses the list of tools to a request that does not begin with `jsonrpc`",
        "valid-request-is-served",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| {
            let first = received.message.as_object().and_then(|members| members.keys().next());
            match lists_tools(&message) && first.is_some_and(|first| first != "jsonrpc") {
                true => refuse_result(received, message, "not a request"),
                false => vec![message],
            }
        }),
    ),
    broken_server(
        "wants-no-blanks",
        "cannot read a message with blanks between its members",
        "valid-request-is-served",
        ALL,
        BOTH,
        Deviation::Unread(|bytes| bytes.starts_with(b"{ ")),
    ),
    broken_server(
        "wants-no-escapes",
        "cannot read a method with escaped characters",
        "valid-request-is-served",
        ALL,
        BOTH,
        Deviation::Unread(|bytes| std::str::from_utf8(bytes).is_ok_and(|text| text.contains(r#""method":"\u"#))),
    ),
    broken_server(
        "splits-at-separators",
        "takes U+2028 for the end of a message",
        "valid-request-is-served",
        ALL,
        BOTH,
        Deviation::Unread(|bytes| std::str::from_utf8(bytes).is_ok_and(|text| text.contains('\u{2028}'))),
    ),
    broken_server(
        "half-of-the-log-levels",
        "knows only four of the eight levels of the log",
        "valid-request-is-served",
        ALL,
        LEGACY,
        Deviation::Outgoing(|received, message| {
            let is_unusual = ["notice", "critical", "alert", "emergency"].iter().any(|level| received.params()["level"] == *level);
            if received.method() == "logging/setLevel" && is_unusual {
                refuse_result(received, message, "Unknown log level")
            } else {
                vec![message]
            }
        }),
    ),
    broken_server(
        "wants-numbers-for-ids",
        "refuses a request whose id is a text",
        "valid-request-is-served",
        ALL,
        LEGACY,
        Deviation::Outgoing(|received, message| match received.id().is_string() && message.get("method").is_none() {
            true => vec![refuse(received, -32600, "the id has to be a number")],
            false => vec![message],
        }),
    ),
    broken_server(
        "wants-params",
        "refuses the list of tools if it is asked for without `params`",
        "valid-request-is-served",
        ALL,
        LEGACY,
        Deviation::Outgoing(|received, message| match lists_tools(&message) && received.message.get("params").is_none() {
            true => vec![refuse(received, -32602, "`params` is missing")],
            false => vec![message],
        }),
    ),
    broken_server(
        "wants-no-progress",
        "refuses the list of tools if progress is asked for",
        "valid-request-is-served",
        ALL,
        LEGACY,
        Deviation::Outgoing(|received, message| match lists_tools(&message) && received.message["params"].get("_meta").is_some() {
            true => vec![refuse(received, -32602, "unknown member `_meta`")],
            false => vec![message],
        }),
    ),
    broken_server(
        "ids-become-null",
        "answers `tools/list` with the id null",
        "response-id-matches-request",
        ALL,
        BOTH,
        Deviation::Tools(|message| message["id"] = Value::Null),
    ),
    broken_server(
        "answers-twice",
        "sends the list of tools twice",
        "request-gets-one-response",
        ALL,
        BOTH,
        Deviation::Outgoing(|_, message| match lists_tools(&message) {
            true => vec![message.clone(), message],
            false => vec![message],
        }),
    ),
    broken_server(
        "result-and-error",
        "answers with a result and an error",
        "response-has-result-or-error",
        ALL,
        BOTH,
        Deviation::Tools(|message| message["error"] = json!({ "code": -32603, "message": "Internal error" })),
    ),
    broken_server(
        "neither-result-nor-error",
        "answers with nothing but an id",
        "response-has-result-or-error",
        ALL,
        BOTH,
        Deviation::Tools(|message| remove(message, "result")),
    ),
    broken_server(
        "error-without-code",
        "tells errors without a code",
        "error-has-code-and-message",
        ALL,
        BOTH,
        Deviation::Errors(|error| remove(error, "code")),
    ),
    broken_server(
        "error-code-is-text",
        "tells the codes of errors as text",
        "error-has-code-and-message",
        ALL,
        BOTH,
        Deviation::Errors(|error| error["code"] = json!("METHOD_NOT_FOUND")),
    ),
    broken_server(
        "discovery-refused-without-message",
        "refuses `server/discover` with an error that has no message",
        "error-has-code-and-message",
        STDIO,
        LEGACY,
        Deviation::Outgoing(|received, mut message| {
            if received.method() == "server/discover" {
                remove(&mut message["error"], "message");
            }
            vec![message]
        }),
    ),
    broken_server(
        "other-era-refused-under-other-id",
        "refuses the discovery of the modern era under another id",
        "response-id-matches-request",
        STDIO,
        LEGACY,
        Deviation::Outgoing(|received, mut message| {
            if received.method() == "server/discover" {
                message["id"] = json!("mcproof");
            }
            vec![message]
        }),
    ),
    broken_server(
        "other-era-refused-on-two-lines",
        "refuses the discovery of the modern era on several lines",
        "stdio-message-on-one-line",
        STDIO,
        LEGACY,
        Deviation::Line(|message, json| match message["error"]["message"].as_str() {
            Some(text) if text.contains("first request") => {
                [serde_json::to_vec_pretty(message).unwrap_or_default(), b"\n".to_vec()].concat()
            }
            _ => line(&json),
        }),
    ),
    broken_server(
        "refusal-without-id",
        "refuses a method of earlier revisions without an id",
        "response-id-matches-request",
        HTTP,
        MODERN,
        Deviation::Outgoing(|received, mut message| {
            if received.method() == "logging/setLevel" {
                message["id"] = json!(null);
            }
            vec![message]
        }),
    ),
    broken_server(
        "error-without-message",
        "tells errors without a message",
        "error-has-code-and-message",
        ALL,
        BOTH,
        Deviation::Errors(|error| remove(error, "message")),
    ),
    broken_server(
        "notifications-answered",
        "answers notifications with an error whose id is null",
        "notification-gets-no-response",
        PIPES,
        BOTH,
        Deviation::Extra(|received| match received.method().starts_with("notifications/") {
            true => vec![json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32601, "message": "Method not found" } })],
            false => Vec::new(),
        }),
    ),
    broken_server(
        "answers-nobody",
        "answers a request that nobody has made",
        "response-belongs-to-a-request",
        ALL,
        BOTH,
        Deviation::Extra(|received| match received.method() {
            "tools/list" => vec![result(&json!(987_654), accept(received, json!({}))["result"].clone())],
            _ => Vec::new(),
        }),
    ),
    broken_server(
        "request-ids-repeat",
        "asks twice with the same id",
        "server-request-id-is-unique",
        ALL,
        LEGACY,
        Deviation::Extra(|received| match received.method() {
            "tools/list" => vec![ask(json!("again"), "ping", json!({})), ask(json!("again"), "ping", json!({}))],
            _ => Vec::new(),
        }),
    ),
    broken_server(
        "progress-tokens-alike",
        "asks twice at once with the same progress token",
        "progress-tokens-are-unique",
        STDIO,
        LEGACY,
        Deviation::Line(|message, json| {
            let before = if lists_tools(message) { alike(message) } else { Vec::new() };
            before.iter().map(Value::to_string).chain([json]).flat_map(|json| line(&json)).collect()
        }),
    ),
    broken_server(
        "progress-tokens-alike-in-events",
        "asks twice at once with the same progress token",
        "progress-tokens-are-unique",
        WEB,
        LEGACY,
        Deviation::Event(|message, json| {
            let before = if lists_tools(message) { alike(message) } else { Vec::new() };
            before.iter().map(Value::to_string).chain([json]).flat_map(|json| event(&json)).collect()
        }),
    ),
    broken_server(
        "batches-refused",
        "speaks the revision with batches, and refuses them",
        "batch-gets-response",
        ALL,
        LEGACY,
        Deviation::Internal(InternalDeviation::BatchesRefused),
    ),
    broken_server(
        "request-id-null",
        "asks with the id null",
        "server-request-id-is-unique",
        ALL,
        LEGACY,
        Deviation::Extra(|received| match received.method() {
            "tools/list" => vec![ask(Value::Null, "ping", json!({}))],
            _ => Vec::new(),
        }),
    ),
    broken_server(
        "answers-in-batches",
        "puts the list of tools into an array of one message",
        "messages-are-not-batched",
        ALL,
        BOTH,
        Deviation::Outgoing(|_, message| match lists_tools(&message) {
            true => vec![json!([message])],
            false => vec![message],
        }),
    ),
    broken_server(
        "unknown-methods-succeed",
        "answers every method with an empty result",
        "unknown-method-is-refused",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| match message["error"]["code"] == METHOD_NOT_FOUND {
            true => vec![accept(received, json!({}))],
            false => vec![message],
        }),
    ),
    broken_server(
        "unknown-method-internal-error",
        "calls an unknown method an internal error",
        "unknown-method-code",
        ALL,
        LEGACY,
        MISNAMED,
    ),
    broken_server(
        "unknown-method-internal-error-modern",
        "calls an unknown method an internal error",
        "unknown-method-code",
        STDIO,
        MODERN,
        MISNAMED,
    ),
    broken_server(
        "results-are-shared",
        "gives each of several calls at once the result of the last one, whatever was called",
        "concurrent-responses-match-requests",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, mut message| {
            if received.method() == "tools/call" && message["result"]["content"].is_array() {
                *received.server.memory() = message["result"].clone();
                sleep(Duration::from_millis(150));
                message["result"] = received.server.memory().clone();
            }
            vec![message]
        }),
    ),
    broken_server(
        "results-by-id",
        "keeps what it echoes by the id of the request, which another client may use as well",
        "concurrent-responses-match-requests",
        HTTP,
        BOTH,
        Deviation::Outgoing(|received, mut message| {
            if received.calls("echo") && message["result"]["content"].is_array() {
                let id = message["id"].to_string();
                received.server.memory()[&id] = message["result"]["content"].clone();
                sleep(Duration::from_millis(150));
                message["result"]["content"] = received.server.memory()[&id].clone();
            }
            vec![message]
        }),
    ),
    broken_server(
        "cross-talk",
        "echoes, to each of several calls at once, the text of the last one",
        "concurrent-responses-match-requests",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, mut message| {
            if received.calls("echo") && message["result"]["content"].is_array() {
                *received.server.memory() = message["result"]["content"].clone();
                sleep(Duration::from_millis(150));
                message["result"]["content"] = received.server.memory().clone();
            }
            vec![message]
        }),
    ),
    broken_server(
        "cancels-what-it-never-asked",
        "cancels a request that it never sent",
        "server-cancels-only-own-requests",
        ALL,
        BOTH,
        Deviation::Extra(|received| match received.method() {
            "prompts/list" => vec![notification("notifications/cancelled", json!({ "requestId": "nobody-asked", "reason": "closing" }))],
            _ => Vec::new(),
        }),
    ),
    broken_server(
        "notification-with-id",
        "gives an id to a notification",
        "notification-has-no-id",
        ALL,
        LEGACY,
        Deviation::Extra(|received| match received.method() {
            "prompts/list" => vec![
                json!({ "jsonrpc": "2.0", "id": format!("told with {}", received.id()), "method": "notifications/message", "params": { "level": "error", "data": "the gate is open" } }),
            ],
            _ => Vec::new(),
        }),
    ),
];

const MISNAMED: Deviation = Deviation::Outgoing(|received, message| match message["error"]["code"] == METHOD_NOT_FOUND {
    true => vec![refuse(received, -32603, "Internal error")],
    false => vec![message],
});

/// A response whose id, if it is a string, is changed. Other messages stay as they are.
fn with_string_id(mut message: Value, change: fn(&str) -> String) -> Value {
    if message.get("method").is_none()
        && let Some(id) = message["id"].as_str()
    {
        message["id"] = json!(change(id));
    }
    message
}

/// A message with a member that stands there a first time, with null.
fn doubled(json: &str, name: &str) -> String {
    json.replacen(&format!("\"{name}\":"), &format!("\"{name}\":null,\"{name}\":"), 1)
}

/// Two requests with one progress token.
fn alike(answer: &Value) -> Vec<Value> {
    let client_requests = |which: &str| {
        let id = json!(format!("{which}-{}", answer["id"]));
        ask(id, "ping", json!({ "_meta": { "progressToken": "the-same" } }))
    };
    vec![client_requests("one"), client_requests("other")]
}

/// Invalid params in place of a result.
fn refuse_result(received: &Received, message: Value, why: &str) -> Vec<Value> {
    match message.get("result").is_some() {
        true => vec![refuse(received, -32602, why)],
        false => vec![message],
    }
}
