//! Broken servers with a tool that names a page (MCP Apps); the tool or the page is wrong.

use super::changes::accept;
use super::deviation::Deviation;
use super::server::{Catalogue, Received};
use super::{ALL, BOTH, BrokenServer, broken_server};
use serde_json::{Value, json};

const URI: &str = "ui://zoo/forecast";

const PAGE: &str = "<!doctype html><title>Forecast</title><p>Tomorrow the animals will be outside.";

const MIME_TYPE: &str = "text/html;profile=mcp-app";

pub(super) const BROKEN_SERVERS: &[BrokenServer] = &[
    broken_server(
        "page-elsewhere",
        "names a page on the web",
        "app-uri-is-ui",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| add(all, "https://zoo.example/forecast", page())),
    ),
    broken_server(
        "page-missing",
        "names a page that it does not have",
        "app-page-is-readable",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| add(all, "ui://zoo/forecast/of-yesterday", page())),
    ),
    broken_server(
        "page-as-any-html",
        "gives its page as text/html, without the profile",
        "app-page-has-mime-type",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| add(all, URI, json!({ "uri": URI, "mimeType": "text/html", "text": PAGE }))),
    ),
    broken_server(
        "page-is-a-fragment",
        "gives a piece of a page",
        "app-page-is-html",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| add(all, URI, json!({ "uri": URI, "mimeType": MIME_TYPE, "text": "<div id=root></div>" }))),
    ),
    broken_server(
        "app-without-text",
        "leaves what it has to say to its page",
        "app-tool-has-content",
        ALL,
        BOTH,
        Deviation::Outgoing(say_nothing),
    ),
    broken_server(
        "app-for-everybody",
        "offers a page to clients that have not asked for pages",
        "app-tools-need-declared-extension",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| add(all, URI, page())),
    ),
];

fn page() -> Value {
    json!({ "uri": URI, "mimeType": MIME_TYPE, "text": PAGE })
}

/// A tool that names this page, and a page.
fn add(all: &mut Catalogue, uri: &str, page: Value) {
    all.add_tool("forecast", "Says what the weather will be like tomorrow.")["_meta"] = json!({ "ui": { "resourceUri": uri } });
    all.pages.push(page);
}

/// Its page for `echo`, whose results are empty.
fn say_nothing(received: &Received, mut message: Value) -> Vec<Value> {
    if let Some(tools) = message.pointer_mut("/result/tools").and_then(Value::as_array_mut) {
        for tool in tools.iter_mut().filter(|tool| tool["name"] == "echo") {
            tool["_meta"] = json!({ "ui": { "resourceUri": URI } });
        }
    }
    match received.method() {
        "tools/call" if received.name() == "echo" && message.pointer("/result/content").is_some() => {
            message["result"]["content"] = json!([])
        }
        "resources/read" if received.params()["uri"] == URI => message = accept(received, json!({ "contents": [page()] })),
        _ => {}
    }
    vec![message]
}
