//! Animals whose lists and capabilities are otherwise.

use super::changes::{accept, count, lists_tools, refuse, remove};
use super::server::notification;
use super::twist::Twist;
use super::{ALL, Animal, BOTH, LEGACY, MODERN, animal};
use serde_json::{Value, json};

pub(super) const ANIMALS: &[Animal] = &[
    animal(
        "refuses-its-cursor",
        "gives a cursor with the first page of its tools, and refuses it",
        "list-pagination-ends",
        ALL,
        BOTH,
        Twist::Tools(|message| message["result"]["nextCursor"] = json!("tools-of-page-2")),
    ),
    animal(
        "declared-prompts-missing",
        "declares prompts, and does not know `prompts/list`",
        "declared-capability-is-implemented",
        ALL,
        BOTH,
        Twist::Says(|heard, message| match heard.method() {
            "prompts/list" => vec![refuse(heard, -32601, "Method not found: prompts/list")],
            _ => vec![message],
        }),
    ),
    animal(
        "declared-completions-missing",
        "declares completions, and does not know `completion/complete`",
        "declared-capability-is-implemented",
        ALL,
        BOTH,
        Twist::Says(|heard, message| match heard.method() {
            "completion/complete" => vec![refuse(heard, -32601, "Method not found: completion/complete")],
            _ => vec![message],
        }),
    ),
    animal(
        "prompts-undeclared",
        "has prompts, and does not declare them",
        "capability-is-declared",
        ALL,
        BOTH,
        Twist::Catalogue(|all| remove(&mut all.capabilities, "prompts")),
    ),
    animal(
        "resources-undeclared",
        "has resources, and does not declare them",
        "capability-is-declared",
        ALL,
        BOTH,
        Twist::Catalogue(|all| remove(&mut all.capabilities, "resources")),
    ),
    animal(
        "completions-undeclared",
        "completes, and does not declare it",
        "capability-is-declared",
        ALL,
        BOTH,
        Twist::Catalogue(|all| remove(&mut all.capabilities, "completions")),
    ),
    animal(
        "undeclared-list-change",
        "tells that its tools have changed, which it did not declare",
        "notifications-are-declared",
        ALL,
        LEGACY,
        Twist::Unasked(|heard| match heard.method() {
            "tools/list" => vec![notification("notifications/tools/list_changed", json!({}))],
            _ => Vec::new(),
        }),
    ),
    animal(
        "undeclared-log",
        "logs, which it did not declare",
        "notifications-are-declared",
        ALL,
        LEGACY,
        Twist::Says(|heard, mut message| {
            if heard.method() == "initialize" && message["result"].is_object() {
                remove(&mut message["result"]["capabilities"], "logging");
            }
            let log = || notification("notifications/message", json!({ "level": "error", "data": "the gate is open" }));
            if lists_tools(&message) { vec![log(), message] } else { vec![message] }
        }),
    ),
    animal(
        "undeclared-log-on-request",
        "logs for who asks for it, which it did not declare",
        "notifications-are-declared",
        ALL,
        MODERN,
        Twist::Says(|heard, mut message| {
            if heard.method() == "server/discover" && message["result"].is_object() {
                remove(&mut message["result"]["capabilities"], "logging");
            }
            let log = || notification("notifications/message", json!({ "level": "error", "data": "the gate is open" }));
            let is_asked_for = heard.params()["_meta"].get("io.modelcontextprotocol/logLevel").is_some();
            if lists_tools(&message) && is_asked_for { vec![log(), message] } else { vec![message] }
        }),
    ),
    animal("log-level-ignored", "logs below the level that was set", "log-level-is-honored", ALL, LEGACY, LOGS),
    animal(
        "any-log-level",
        "takes any level of logs",
        "log-level-unknown-is-refused",
        ALL,
        LEGACY,
        Twist::Says(|heard, message| match heard.method() {
            "logging/setLevel" => vec![accept(heard, json!({}))],
            _ => vec![message],
        }),
    ),
    animal(
        "pages-without-end",
        "gives the cursor of the second page again and again",
        "list-pagination-ends",
        ALL,
        BOTH,
        Twist::Tools(|message| message["result"]["nextCursor"] = json!("tools-5")),
    ),
    animal(
        "another-page-for-ever",
        "lists one more tool on one more page for whoever asks",
        "list-pagination-ends",
        ALL,
        BOTH,
        Twist::Says(|heard, mut message| {
            if heard.method() == "tools/list" {
                let page = heard.params()["cursor"].as_str().and_then(|cursor| cursor.strip_prefix("page-")?.parse().ok());
                let first = heard.params()["cursor"].is_null().then_some(0_u32);
                if let Some(page) = page.or(first) {
                    let tool = json!({ "name": format!("tool_{page}"), "description": "Feeds.", "inputSchema": { "type": "object" } });
                    message = accept(heard, json!({ "tools": [tool], "nextCursor": format!("page-{}", page + 1) }));
                }
            }
            vec![message]
        }),
    ),
    animal(
        "tool-listed-twice",
        "lists a tool twice",
        "list-has-no-duplicates",
        ALL,
        BOTH,
        Twist::Catalogue(|all| {
            let again = all.tools[0].clone();
            all.tools.push(again);
        }),
    ),
    animal(
        "resource-listed-twice",
        "lists a resource under two names",
        "list-has-no-duplicates",
        ALL,
        BOTH,
        Twist::Catalogue(|all| {
            let mut again = all.resources[0].clone();
            again["name"] = json!("rules-again");
            all.resources.push(again);
        }),
    ),
    animal(
        "pages-overlap",
        "begins each page with the last item of the page before",
        "list-has-no-duplicates",
        ALL,
        BOTH,
        Twist::Result("tools/list", |heard, result| {
            if let (Some(_), Some(tools)) = (heard.params().get("cursor"), result["tools"].as_array_mut()) {
                tools.insert(0, heard.server.catalogue.tools[heard.server.catalogue.page - 1].clone());
            }
        }),
    ),
    animal(
        "any-cursor",
        "gives the first page for a cursor that it does not know",
        "list-unknown-cursor-is-refused",
        ALL,
        BOTH,
        Twist::Hears(|message| {
            let known = message["params"]["cursor"].as_str().is_none_or(|cursor| cursor == "tools-5");
            if !known {
                remove(&mut message["params"], "cursor");
            }
        }),
    ),
    animal(
        "order-changes",
        "lists its tools in another order each time",
        "list-order-is-stable",
        ALL,
        BOTH,
        Twist::Result("tools/list", |heard, result| {
            let turns = usize::try_from(count(heard) / 2).unwrap_or_default();
            if let Some(tools) = result["tools"].as_array_mut().filter(|tools| !tools.is_empty()) {
                let turns = turns % tools.len();
                tools.rotate_left(turns);
            }
        }),
    ),
    animal(
        "description-changes",
        "describes a tool otherwise each time",
        "list-does-not-change-unannounced",
        ALL,
        BOTH,
        Twist::Result("tools/list", |heard, result| {
            let time = count(heard);
            if let Some(tool) = result["tools"].as_array_mut().and_then(|tools| tools.first_mut()) {
                tool["description"] = json!(format!("Was listed {time} times."));
            }
        }),
    ),
    animal(
        "tools-appear",
        "lists more tools each time",
        "list-does-not-change-unannounced",
        ALL,
        BOTH,
        Twist::Result("tools/list", |heard, result| {
            let time = count(heard);
            if let Some(tools) = result["tools"].as_array_mut().filter(|tools| tools.len() < heard.server.catalogue.page) {
                let mut tool = tools[0].clone();
                tool["name"] = json!(format!("look_{time}"));
                tools.push(tool);
            }
        }),
    ),
    animal(
        "tool-without-schema",
        "lists a tool without an input schema",
        "message-matches-schema",
        ALL,
        BOTH,
        Twist::Catalogue(|all| remove(all.tool_mut("draw"), "inputSchema")),
    ),
    animal(
        "schema-is-a-list",
        "lists a tool whose input is an array",
        "message-matches-schema",
        ALL,
        BOTH,
        Twist::Catalogue(|all| all.tool_mut("draw")["inputSchema"] = json!({ "type": "array" })),
    ),
    animal(
        "tools-as-map",
        "lists its tools as an object by name",
        "message-matches-schema",
        ALL,
        BOTH,
        Twist::Result("tools/list", |_, result| {
            let tools: serde_json::Map<String, Value> = result["tools"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|tool| (tool["name"].as_str().unwrap_or_default().to_owned(), tool.clone()))
                .collect();
            result["tools"] = Value::Object(tools);
        }),
    ),
    animal(
        "resource-without-name",
        "lists a resource without a name",
        "message-matches-schema",
        ALL,
        BOTH,
        Twist::Catalogue(|all| remove(&mut all.resources[0], "name")),
    ),
    animal(
        "content-is-text",
        "answers calls with a text instead of a list of content",
        "message-matches-schema",
        ALL,
        BOTH,
        Twist::Result("tools/call", |_, result| {
            if result["content"][0]["type"] == "text" {
                result["content"] = result["content"][0]["text"].clone();
            }
        }),
    ),
    animal(
        "capabilities-are-true",
        "declares capabilities as `true` instead of an object",
        "message-matches-schema",
        ALL,
        BOTH,
        Twist::Catalogue(|all| all.capabilities["prompts"] = json!(true)),
    ),
];

/// Logs at `debug`, whoever asked for what.
pub(super) const LOGS: Twist = Twist::Unasked(|heard| match heard.method() {
    "tools/call" | "tools/list" => vec![notification("notifications/message", json!({ "level": "debug", "data": "somebody is here" }))],
    _ => Vec::new(),
});
