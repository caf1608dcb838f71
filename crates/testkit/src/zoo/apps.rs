//! Animals with a tool that names a page (MCP Apps), one of whose two is otherwise.

use super::changes::accept;
use super::server::{Catalogue, Heard};
use super::twist::Twist;
use super::{ALL, Animal, BOTH, animal};
use serde_json::{Value, json};

const URI: &str = "ui://zoo/forecast";

const PAGE: &str = "<!doctype html><title>Forecast</title><p>Tomorrow the animals will be outside.";

const MIME_TYPE: &str = "text/html;profile=mcp-app";

pub(super) const ANIMALS: &[Animal] = &[
    animal(
        "page-elsewhere",
        "names a page on the web",
        "app-uri-is-ui",
        ALL,
        BOTH,
        Twist::Catalogue(|all| add(all, "https://zoo.example/forecast", page())),
    ),
    animal(
        "page-missing",
        "names a page that it does not have",
        "app-page-is-readable",
        ALL,
        BOTH,
        Twist::Catalogue(|all| add(all, "ui://zoo/forecast/of-yesterday", page())),
    ),
    animal(
        "page-as-any-html",
        "gives its page as text/html, without the profile",
        "app-page-has-mime-type",
        ALL,
        BOTH,
        Twist::Catalogue(|all| add(all, URI, json!({ "uri": URI, "mimeType": "text/html", "text": PAGE }))),
    ),
    animal(
        "page-is-a-fragment",
        "gives a piece of a page",
        "app-page-is-html",
        ALL,
        BOTH,
        Twist::Catalogue(|all| add(all, URI, json!({ "uri": URI, "mimeType": MIME_TYPE, "text": "<div id=root></div>" }))),
    ),
    animal("app-without-text", "leaves what it has to say to its page", "app-tool-has-content", ALL, BOTH, Twist::Says(say_nothing)),
    animal(
        "app-for-everybody",
        "offers a page to clients that have not asked for pages",
        "app-tools-need-declared-extension",
        ALL,
        BOTH,
        Twist::Catalogue(|all| add(all, URI, page())),
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
fn say_nothing(heard: &Heard, mut message: Value) -> Vec<Value> {
    if let Some(tools) = message.pointer_mut("/result/tools").and_then(Value::as_array_mut) {
        for tool in tools.iter_mut().filter(|tool| tool["name"] == "echo") {
            tool["_meta"] = json!({ "ui": { "resourceUri": URI } });
        }
    }
    match heard.method() {
        "tools/call" if heard.name() == "echo" && message.pointer("/result/content").is_some() => message["result"]["content"] = json!([]),
        "resources/read" if heard.params()["uri"] == URI => message = accept(heard, json!({ "contents": [page()] })),
        _ => {}
    }
    vec![message]
}
