//! Broken servers whose resources, prompts and completions are wrong.

use super::changes::{accept, is_error, refuse};
use super::deviation::Deviation;
use super::server::notification;
use super::{ALL, BOTH, BrokenServer, LEGACY, MODERN, PIPES, broken_server};
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::Duration;

pub(super) const BROKEN_SERVERS: &[BrokenServer] = &[
    broken_server(
        "listed-resource-unreadable",
        "lists a resource that cannot be read",
        "listed-resource-is-readable",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| {
            match received.params()["uri"] == "zoo://gate/rules" && received.method() == "resources/read" && !is_mismatch(&message) {
                true => vec![refuse(received, -32603, "cannot read the rules")],
                false => vec![message],
            }
        }),
    ),
    broken_server(
        "prompt-argument-misspelled",
        "lists an argument of a prompt under another name than the prompt reads",
        "prompt-takes-listed-arguments",
        ALL,
        BOTH,
        Deviation::Result("prompts/list", |_, result| result["prompts"][0]["arguments"][0]["name"] = json!("animals")),
    ),
    broken_server(
        "template-misspelled",
        "lists a template that its completion does not know",
        "listed-reference-is-completable",
        ALL,
        BOTH,
        Deviation::Result("resources/templates/list", |_, result| {
            result["resourceTemplates"][0]["uriTemplate"] = json!("zoo://animal/{species}");
        }),
    ),
    broken_server(
        "template-breaks-inside",
        "fails to read what it offers for a template",
        "listed-resource-is-readable",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| {
            let is_of_template = received.params()["uri"].as_str().is_some_and(|uri| uri.starts_with("zoo://animals/"));
            match received.method() == "resources/read" && is_of_template && !is_error(&message) {
                true => vec![refuse(received, -32603, "cannot read the animal")],
                false => vec![message],
            }
        }),
    ),
    broken_server(
        "typed-completion-breaks",
        "fails to complete what somebody has begun to type",
        "listed-reference-is-completable",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| {
            let is_typed = received.params()["argument"]["value"].as_str().is_some_and(|value| !value.is_empty());
            match received.method() == "completion/complete" && is_typed && !is_error(&message) {
                true => vec![refuse(received, -32603, "cannot complete it")],
                false => vec![message],
            }
        }),
    ),
    broken_server(
        "template-completion-breaks",
        "fails to complete the variables of templates, and completes the arguments of prompts",
        "listed-reference-is-completable",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| {
            match received.method() == "completion/complete" && received.params()["ref"]["type"] == "ref/resource" && !is_error(&message) {
                true => vec![refuse(received, -32603, "cannot complete it")],
                false => vec![message],
            }
        }),
    ),
    broken_server(
        "subscribes-once",
        "fails when a resource is subscribed to that is subscribed to already",
        "resource-subscription-works",
        ALL,
        LEGACY,
        Deviation::Outgoing(|received, message| {
            let mut memory = received.server.memory();
            let was_watched = memory["watched"] == true;
            match received.method() {
                "resources/subscribe" if !is_error(&message) => memory["watched"] = json!(true),
                "resources/unsubscribe" => memory["watched"] = json!(false),
                _ => return vec![message],
            }
            match was_watched && received.method() == "resources/subscribe" {
                true => vec![refuse(received, -32603, "it is subscribed to already")],
                false => vec![message],
            }
        }),
    ),
    broken_server(
        "updates-of-others",
        "tells who subscribes to a resource that another one has changed",
        "resource-update-is-subscribed",
        ALL,
        LEGACY,
        Deviation::Outgoing(|received, message| match received.method() == "resources/subscribe" && !is_error(&message) {
            true => vec![notification("notifications/resources/updated", json!({ "uri": "zoo://gate/opening-hours" })), message],
            false => vec![message],
        }),
    ),
    broken_server(
        "updates-after-unsubscribe",
        "tells of changes of a resource after its client has unsubscribed from it",
        "resource-update-is-subscribed",
        PIPES,
        LEGACY,
        Deviation::Extra(|received| {
            let mut memory = received.server.memory();
            if received.method() == "resources/unsubscribe" {
                *memory = json!({ "uri": received.params()["uri"], "later": 0 });
            } else if received.method() == "tools/list" && memory["uri"].is_string() {
                memory["later"] = json!(memory["later"].as_u64().unwrap_or_default() + 1);
                if memory["later"] == 3 {
                    // Longer than anything is under way.
                    sleep(Duration::from_millis(120));
                    return vec![notification("notifications/resources/updated", json!({ "uri": memory["uri"] }))];
                }
            }
            Vec::new()
        }),
    ),
    broken_server(
        "contents-of-another",
        "gives the contents of a resource under another URI",
        "resource-read-names-uri",
        ALL,
        BOTH,
        Deviation::Result("resources/read", |_, result| result["contents"][0]["uri"] = json!("zoo://somewhere/else")),
    ),
    broken_server(
        "unknown-resource-empty",
        "gives no contents for a resource that is not there",
        "resource-unknown-is-refused",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| match received.method() == "resources/read" && is_not_found(&message) {
            true => vec![accept(received, json!({ "contents": [] }))],
            false => vec![message],
        }),
    ),
    broken_server(
        "unknown-resource-served",
        "gives contents for a resource that is not there",
        "resource-unknown-is-refused",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| match received.method() == "resources/read" && is_not_found(&message) {
            true => vec![accept(received, json!({ "contents": [{ "uri": received.params()["uri"], "text": "not found" }] }))],
            false => vec![message],
        }),
    ),
    broken_server(
        "unknown-resource-internal-error",
        "calls a resource that is not there an internal error",
        "resource-unknown-code",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| match received.method() == "resources/read" && is_not_found(&message) {
            true => vec![refuse(received, -32603, "Internal error")],
            false => vec![message],
        }),
    ),
    broken_server(
        "template-broken",
        "has a URI template with a brace that is not closed",
        "resource-template-parses",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| all.templates[0]["uriTemplate"] = json!("zoo://animals/{species")),
    ),
    broken_server(
        "subscription-missing",
        "declares subscriptions, and does not know `resources/subscribe`",
        "resource-subscription-works",
        ALL,
        LEGACY,
        Deviation::Outgoing(|received, message| match received.method() {
            "resources/subscribe" => vec![refuse(received, -32601, "Method not found: resources/subscribe")],
            _ => vec![message],
        }),
    ),
    broken_server(
        "resource-is-read-as-another-type",
        "reads as HTML what it lists as plain text",
        "resource-matches-listing",
        ALL,
        BOTH,
        Deviation::Result("resources/read", |_, result| {
            if result["contents"][0]["mimeType"] == "text/plain" {
                result["contents"][0]["mimeType"] = json!("text/html");
            }
        }),
    ),
    broken_server(
        "blob-is-no-base64",
        "gives a blob that is no Base64",
        "content-is-base64",
        ALL,
        BOTH,
        Deviation::Result("resources/read", |_, result| {
            if result["contents"][0].get("blob").is_some() {
                result["contents"][0]["blob"] = json!("<Buffer 89 50 4e 47>");
            }
        }),
    ),
    broken_server(
        "unknown-prompt-served",
        "gives a prompt that it does not have",
        "prompt-unknown-is-refused",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| {
            if is_refused(received.method(), &message, "Unknown prompt") { vec![accept(received, messages())] } else { vec![message] }
        }),
    ),
    broken_server(
        "unknown-prompt-code-0",
        "refuses an unknown prompt with the code 0",
        "prompt-unknown-code",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| match is_refused(received.method(), &message, "Unknown prompt") {
            true => vec![refuse(received, 0, "Unknown prompt")],
            false => vec![message],
        }),
    ),
    broken_server(
        "missing-prompt-argument-accepted",
        "gives a prompt without the argument that it requires",
        "prompt-missing-argument-is-refused",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| {
            if is_refused(received.method(), &message, "is missing") && !is_mismatch(&message) {
                vec![accept(received, messages())]
            } else {
                vec![message]
            }
        }),
    ),
    broken_server(
        "listed-prompt-unknown",
        "lists a prompt that it does not give",
        "listed-prompt-is-retrievable",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| match received.method() == "prompts/get" && received.name() == "tour" {
            true => vec![refuse(received, -32603, "cannot render the prompt")],
            false => vec![message],
        }),
    ),
    broken_server(
        "prompt-with-arguments-unknown",
        "gives no prompt that has arguments, with the values that it offers for them either",
        "listed-prompt-is-retrievable",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| match received.method() == "prompts/get" && message["result"].get("messages").is_some() {
            true if received.name() == "feed" => vec![refuse(received, -32603, "cannot render the prompt")],
            _ => vec![message],
        }),
    ),
    broken_server(
        "completion-without-values",
        "completes without saying with what",
        "message-matches-schema",
        ALL,
        BOTH,
        Deviation::Result("completion/complete", |_, result| result["completion"] = json!({ "total": 0 })),
    ),
    broken_server(
        "completion-total-too-small",
        "completes with more values than it counts",
        "completion-total-is-consistent",
        ALL,
        BOTH,
        Deviation::Result("completion/complete", |_, result| {
            result["completion"] = json!({ "values": ["okapi", "zebra"], "total": 1, "hasMore": false });
        }),
    ),
    broken_server(
        "completion-hides-more",
        "leaves values out, and says that there are no more",
        "completion-total-is-consistent",
        ALL,
        BOTH,
        Deviation::Result("completion/complete", |_, result| {
            result["completion"] = json!({ "values": ["okapi"], "total": 7, "hasMore": false });
        }),
    ),
    broken_server(
        "too-many-completions",
        "completes with 150 values at once",
        "completion-has-at-most-100",
        ALL,
        BOTH,
        Deviation::Result("completion/complete", |_, result| {
            let values: Vec<String> = (0..150).map(|number| format!("okapi-{number}")).collect();
            result["completion"] = json!({ "total": 150, "values": values, "hasMore": false });
        }),
    ),
    broken_server(
        "unknown-reference-completed",
        "completes for a prompt that it does not have",
        "completion-unknown-reference-is-refused",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| match received.method() == "completion/complete" && is_error(&message) {
            true => vec![accept(received, json!({ "completion": { "values": [] } }))],
            false => vec![message],
        }),
    ),
    broken_server(
        "template-leads-outside",
        "gives any file of the machine for a template",
        "resource-template-blocks-path-traversal",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| {
            let uri = received.params()["uri"].as_str().unwrap_or_default().to_owned();
            match received.method() == "resources/read" && uri.contains("..") && !is_mismatch(&message) {
                true => vec![accept(received, json!({ "contents": [{ "uri": uri, "text": "root:x:0:0:root:/root:/bin/sh\n" }] }))],
                false => vec![message],
            }
        }),
    ),
    broken_server(
        "mime-type-without-subtype",
        "gives a MIME type without its second half",
        "mime-type-is-valid",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| all.resources[1]["mimeType"] = json!("png")),
    ),
    broken_server(
        "modified-yesterday",
        "says in words when a resource was modified",
        "last-modified-is-iso-8601",
        ALL,
        BOTH,
        Deviation::Catalogue(|all| all.resources[1]["annotations"] = json!({ "lastModified": "yesterday" })),
    ),
    broken_server(
        "error-code-undefined",
        "refuses with a code that the specification keeps for itself",
        "error-code-is-defined-in-revision",
        ALL,
        MODERN,
        Deviation::Outgoing(|received, message| match is_refused(received.method(), &message, "Unknown prompt") {
            true => vec![refuse(received, -32050, "Unknown prompt")],
            false => vec![message],
        }),
    ),
    broken_server(
        "error-code-reserved",
        "refuses with a code that JSON-RPC keeps for itself",
        "error-code-is-not-reserved",
        ALL,
        MODERN,
        Deviation::Outgoing(|received, message| match is_refused(received.method(), &message, "Unknown prompt") {
            true => vec![refuse(received, -32005, "Unknown prompt")],
            false => vec![message],
        }),
    ),
    broken_server(
        "extension-without-prefix",
        "declares an extension without a prefix",
        "extension-id-is-well-formed",
        ALL,
        MODERN,
        Deviation::Catalogue(|all| all.capabilities["extensions"] = json!({ "charts": {} })),
    ),
];

fn messages() -> Value {
    json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "undefined" } }] })
}

/// Whether a prompt is refused for that reason.
fn is_refused(method: &str, message: &Value, why: &str) -> bool {
    method == "prompts/get" && message["error"]["message"].as_str().is_some_and(|text| text.contains(why))
}

fn is_not_found(message: &Value) -> bool {
    message["error"]["message"] == "Resource not found"
}

/// Headers are checked before anything of the message is.
fn is_mismatch(message: &Value) -> bool {
    message["error"]["code"] == -32020
}
