//! Broken servers whose lists and capabilities are wrong.

use super::changes::{accept, count, is_error, lists_tools, refuse, remove};
use super::deviation::Deviation;
use super::server::{Received, notification};
use super::{ALL, BOTH, BrokenServer, LEGACY, MODERN, STDIO, broken_server};
use serde_json::{Value, json};

pub(super) const BROKEN_SERVERS: &[BrokenServer] = &[
    broken_server(
        "refuses-its-cursor",
        "gives a cursor with the first page of its tools, and refuses it",
        "list-pagination-ends",
        ALL,
        BOTH,
        Deviation::Tools(|message| message["result"]["nextCursor"] = json!("tools-of-page-2")),
    ),
    broken_server(
        "cursor-works-once",
        "refuses the cursor of its own page if that was used before",
        "list-pagination-ends",
        STDIO,
        BOTH,
        Deviation::Outgoing(|received, message| {
            let cursor = &received.params()["cursor"];
            if received.method() != "tools/list" || cursor.is_null() || is_error(&message) {
                return vec![message];
            }
            let mut memory = received.server.memory();
            if *memory == *cursor {
                return vec![refuse(received, -32602, "Invalid cursor")];
            }
            *memory = cursor.clone();
            vec![message]
        }),
    ),
    broken_server(
        "declared-prompts-missing",
        "declares prompts, and does not know `prompts/list`",
        "declared-capability-is-implemented",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| match received.method() {
            "prompts/list" => vec![refuse(received, -32601, "Method not found: prompts/list")],
            _ => vec![message],
        }),
    ),
    broken_server(
        "declared-completions-missing",
        "declares completions, and does not know `completion/complete`",
        "declared-capability-is-implemented",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| match received.method() {
            "completion/complete" => vec![refuse(received, -32601, "Method not found: completion/complete")],
            _ => vec![message],
        }),
    ),
    broken_server(
        "prompts-undeclared",
        "has prompts, and does not declare them",
        "capability-is-declared",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| remove(&mut all.capabilities, "prompts")),
    ),
    broken_server(
        "resources-undeclared",
        "has resources, and does not declare them",
        "capability-is-declared",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| remove(&mut all.capabilities, "resources")),
    ),
    broken_server(
        "completions-undeclared",
        "completes, and does not declare it",
        "capability-is-declared",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| remove(&mut all.capabilities, "completions")),
    ),
    broken_server(
        "undeclared-list-change",
        "tells that its tools have changed, which it did not declare",
        "notifications-are-declared",
        ALL,
        LEGACY,
        Deviation::Extra(|received| match received.method() {
            "tools/list" => vec![notification("notifications/tools/list_changed", json!({}))],
            _ => Vec::new(),
        }),
    ),
    broken_server(
        "elicitation-of-nobody-completed",
        "tells that an elicitation is complete which never began",
        "elicitation-complete-has-known-id",
        &["stdio", "http"],
        LEGACY,
        Deviation::Extra(completes_elicitation),
    ),
    broken_server(
        "elicitation-completed-in-modern-era",
        "sends a notification of an earlier revision",
        "notification-method-is-known",
        STDIO,
        MODERN,
        Deviation::Extra(completes_elicitation),
    ),
    broken_server(
        "undeclared-log",
        "logs, which it did not declare",
        "notifications-are-declared",
        ALL,
        LEGACY,
        Deviation::Outgoing(|received, mut message| {
            if received.method() == "initialize" && message["result"].is_object() {
                remove(&mut message["result"]["capabilities"], "logging");
            }
            let log = || notification("notifications/message", json!({ "level": "error", "data": "the gate is open" }));
            if lists_tools(&message) { vec![log(), message] } else { vec![message] }
        }),
    ),
    broken_server(
        "undeclared-log-on-request",
        "logs for who asks for it, which it did not declare",
        "notifications-are-declared",
        ALL,
        MODERN,
        Deviation::Outgoing(|received, mut message| {
            if received.method() == "server/discover" && message["result"].is_object() {
                remove(&mut message["result"]["capabilities"], "logging");
            }
            let log = || notification("notifications/message", json!({ "level": "error", "data": "the gate is open" }));
            let is_asked_for = received.params()["_meta"].get("io.modelcontextprotocol/logLevel").is_some();
            if lists_tools(&message) && is_asked_for { vec![log(), message] } else { vec![message] }
        }),
    ),
    broken_server("log-level-ignored", "logs below the level that was set", "log-level-is-honored", ALL, LEGACY, LOGS),
    broken_server(
        "any-log-level",
        "takes any level of logs",
        "log-level-unknown-is-refused",
        ALL,
        LEGACY,
        Deviation::Outgoing(|received, message| match received.method() {
            "logging/setLevel" => vec![accept(received, json!({}))],
            _ => vec![message],
        }),
    ),
    broken_server(
        "pages-without-end",
        "gives the cursor of the second page again and again",
        "list-pagination-ends",
        ALL,
        BOTH,
        Deviation::Tools(|message| message["result"]["nextCursor"] = json!("tools-5")),
    ),
    broken_server(
        "another-page-for-ever",
        "lists one more tool on one more page for whoever asks",
        "list-pagination-ends",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, mut message| {
            if received.method() == "tools/list" {
                let page = received.params()["cursor"].as_str().and_then(|cursor| cursor.strip_prefix("page-")?.parse().ok());
                let first = received.params()["cursor"].is_null().then_some(0_u32);
                if let Some(page) = page.or(first) {
                    let tool = json!({ "name": format!("tool_{page}"), "description": "Feeds.", "inputSchema": { "type": "object" } });
                    message = accept(received, json!({ "tools": [tool], "nextCursor": format!("page-{}", page + 1) }));
                }
            }
            vec![message]
        }),
    ),
    broken_server(
        "tool-listed-twice",
        "lists a tool twice",
        "list-has-no-duplicates",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| {
            let again = all.tools[0].clone();
            all.tools.push(again);
        }),
    ),
    broken_server(
        "resource-listed-twice",
        "lists a resource under two names",
        "list-has-no-duplicates",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| {
            let mut again = all.resources[0].clone();
            again["name"] = json!("rules-again");
            all.resources.push(again);
        }),
    ),
    broken_server(
        "pages-overlap",
        "begins each page with the last item of the page before",
        "list-has-no-duplicates",
        ALL,
        BOTH,
        Deviation::Result("tools/list", |received, result| {
            if let (Some(_), Some(tools)) = (received.params().get("cursor"), result["tools"].as_array_mut()) {
                tools.insert(0, received.server.catalogue.tools[received.server.catalogue.page - 1].clone());
            }
        }),
    ),
    broken_server(
        "cursor-internal-error",
        "refuses a cursor that it does not know with an internal error",
        "list-unknown-cursor-is-refused",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| match received.method().ends_with("/list") && is_error(&message) {
            true => vec![refuse(received, -32603, "Internal error")],
            false => vec![message],
        }),
    ),
    broken_server(
        "any-cursor",
        "gives the first page for a cursor that it does not know",
        "list-unknown-cursor-is-refused",
        ALL,
        BOTH,
        Deviation::Incoming(|message| {
            let known = message["params"]["cursor"].as_str().is_none_or(|cursor| cursor == "tools-5");
            if !known {
                remove(&mut message["params"], "cursor");
            }
        }),
    ),
    broken_server(
        "order-changes",
        "lists its tools in another order each time",
        "list-order-is-stable",
        ALL,
        BOTH,
        Deviation::Result("tools/list", |received, result| {
            let turns = usize::try_from(count(received) / 2).unwrap_or_default();
            if let Some(tools) = result["tools"].as_array_mut().filter(|tools| !tools.is_empty()) {
                let turns = turns % tools.len();
                tools.rotate_left(turns);
            }
        }),
    ),
    broken_server(
        "description-changes",
        "describes a tool otherwise each time",
        "list-does-not-change-unannounced",
        ALL,
        BOTH,
        Deviation::Result("tools/list", |received, result| {
            let time = count(received);
            if let Some(tool) = result["tools"].as_array_mut().and_then(|tools| tools.first_mut()) {
                tool["description"] = json!(format!("Was listed {time} times."));
            }
        }),
    ),
    broken_server(
        "calls-change-schemas-of-session",
        "loses what its tools require once it has served calls",
        "list-does-not-change-unannounced",
        STDIO,
        LEGACY,
        Deviation::Outgoing(forget_required),
    ),
    broken_server(
        "tools-appear",
        "lists more tools each time",
        "list-does-not-change-unannounced",
        ALL,
        BOTH,
        Deviation::Result("tools/list", |received, result| {
            let time = count(received);
            if let Some(tools) = result["tools"].as_array_mut().filter(|tools| tools.len() < received.server.catalogue.page) {
                let mut tool = tools[0].clone();
                tool["name"] = json!(format!("look_{time}"));
                tools.push(tool);
            }
        }),
    ),
    broken_server(
        "tool-without-schema",
        "lists a tool without an input schema",
        "message-matches-schema",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| remove(all.tool_mut("draw"), "inputSchema")),
    ),
    broken_server(
        "schema-is-a-list",
        "lists a tool whose input is an array",
        "message-matches-schema",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| all.tool_mut("draw")["inputSchema"] = json!({ "type": "array" })),
    ),
    broken_server(
        "tools-as-map",
        "lists its tools as an object by name",
        "message-matches-schema",
        ALL,
        BOTH,
        Deviation::Result("tools/list", |_, result| {
            let tools: serde_json::Map<String, Value> = result["tools"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|tool| (tool["name"].as_str().unwrap_or_default().to_owned(), tool.clone()))
                .collect();
            result["tools"] = Value::Object(tools);
        }),
    ),
    broken_server(
        "resource-without-name",
        "lists a resource without a name",
        "message-matches-schema",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| remove(&mut all.resources[0], "name")),
    ),
    broken_server(
        "content-is-text",
        "answers calls with a text instead of a list of content",
        "message-matches-schema",
        ALL,
        BOTH,
        Deviation::Result("tools/call", |_, result| {
            if result["content"][0]["type"] == "text" {
                result["content"] = result["content"][0]["text"].clone();
            }
        }),
    ),
    broken_server(
        "capabilities-are-true",
        "declares capabilities as `true` instead of an object",
        "message-matches-schema",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| all.capabilities["prompts"] = json!(true)),
    ),
];

/// The schemas of its tools lose what they require once the tool `add` was called.
pub(super) fn forget_required(received: &Received, mut message: Value) -> Vec<Value> {
    let mut is_called = received.server.memory();
    if received.calls("add") {
        *is_called = json!(true);
    }
    if *is_called == true
        && let Some(tools) = message.pointer_mut("/result/tools").and_then(Value::as_array_mut)
    {
        tools.iter_mut().filter_map(|tool| tool["inputSchema"].as_object_mut()).for_each(|schema| drop(schema.remove("required")));
    }
    vec![message]
}

fn completes_elicitation(received: &Received) -> Vec<Value> {
    match received.method() {
        "tools/list" => vec![notification("notifications/elicitation/complete", json!({ "elicitationId": "sign-in-7" }))],
        _ => Vec::new(),
    }
}

/// Logs at `debug`, whoever asked for what.
pub(super) const LOGS: Deviation = Deviation::Extra(|received| match received.method() {
    "tools/call" | "tools/list" => vec![notification("notifications/message", json!({ "level": "debug", "data": "somebody is here" }))],
    _ => Vec::new(),
});
