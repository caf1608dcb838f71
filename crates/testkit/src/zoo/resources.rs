//! Animals whose resources, prompts and completions are otherwise.

use super::changes::{accept, is_error, refuse};
use super::twist::Twist;
use super::{ALL, Animal, BOTH, LEGACY, MODERN, animal};
use serde_json::{Value, json};

pub(super) const ANIMALS: &[Animal] =
    &[
        animal(
            "listed-resource-unreadable",
            "lists a resource that cannot be read",
            "listed-resource-is-readable",
            ALL,
            BOTH,
            Twist::Says(|heard, message| {
                match heard.params()["uri"] == "zoo://gate/rules" && heard.method() == "resources/read" && !is_mismatch(&message) {
                    true => vec![refuse(heard, -32603, "cannot read the rules")],
                    false => vec![message],
                }
            }),
        ),
        animal(
            "contents-of-another",
            "gives the contents of a resource under another URI",
            "resource-read-names-uri",
            ALL,
            BOTH,
            Twist::Result("resources/read", |_, result| result["contents"][0]["uri"] = json!("zoo://somewhere/else")),
        ),
        animal(
            "unknown-resource-empty",
            "gives no contents for a resource that is not there",
            "resource-unknown-is-refused",
            ALL,
            BOTH,
            Twist::Says(|heard, message| match heard.method() == "resources/read" && is_error(&message) && !is_mismatch(&message) {
                true => vec![accept(heard, json!({ "contents": [] }))],
                false => vec![message],
            }),
        ),
        animal(
            "unknown-resource-served",
            "gives contents for a resource that is not there",
            "resource-unknown-is-refused",
            ALL,
            BOTH,
            Twist::Says(|heard, message| match heard.method() == "resources/read" && is_error(&message) && !is_mismatch(&message) {
                true => vec![accept(heard, json!({ "contents": [{ "uri": heard.params()["uri"], "text": "not found" }] }))],
                false => vec![message],
            }),
        ),
        animal(
            "unknown-resource-internal-error",
            "calls a resource that is not there an internal error",
            "resource-unknown-code",
            ALL,
            BOTH,
            Twist::Says(|heard, message| match heard.method() == "resources/read" && is_error(&message) && !is_mismatch(&message) {
                true => vec![refuse(heard, -32603, "Internal error")],
                false => vec![message],
            }),
        ),
        animal(
            "template-broken",
            "has a URI template with a brace that is not closed",
            "resource-template-parses",
            ALL,
            BOTH,
            Twist::Catalogue(|all| all.templates[0]["uriTemplate"] = json!("zoo://animals/{species")),
        ),
        animal(
            "subscription-missing",
            "declares subscriptions, and does not know `resources/subscribe`",
            "resource-subscription-works",
            ALL,
            LEGACY,
            Twist::Says(|heard, message| match heard.method() {
                "resources/subscribe" => vec![refuse(heard, -32601, "Method not found: resources/subscribe")],
                _ => vec![message],
            }),
        ),
        animal(
            "blob-is-no-base64",
            "gives a blob that is no Base64",
            "content-is-base64",
            ALL,
            BOTH,
            Twist::Result("resources/read", |_, result| {
                if result["contents"][0].get("blob").is_some() {
                    result["contents"][0]["blob"] = json!("<Buffer 89 50 4e 47>");
                }
            }),
        ),
        animal(
            "unknown-prompt-served",
            "gives a prompt that it does not have",
            "prompt-unknown-is-refused",
            ALL,
            BOTH,
            Twist::Says(|heard, message| {
                if is_refused(heard.method(), &message, "Unknown prompt") { vec![accept(heard, messages())] } else { vec![message] }
            }),
        ),
        animal(
            "unknown-prompt-code-0",
            "refuses an unknown prompt with the code 0",
            "prompt-unknown-code",
            ALL,
            BOTH,
            Twist::Says(|heard, message| match is_refused(heard.method(), &message, "Unknown prompt") {
                true => vec![refuse(heard, 0, "Unknown prompt")],
                false => vec![message],
            }),
        ),
        animal(
            "missing-prompt-argument-accepted",
            "gives a prompt without the argument that it requires",
            "prompt-missing-argument-is-refused",
            ALL,
            BOTH,
            Twist::Says(|heard, message| {
                if is_refused(heard.method(), &message, "is missing") && !is_mismatch(&message) {
                    vec![accept(heard, messages())]
                } else {
                    vec![message]
                }
            }),
        ),
        animal(
            "listed-prompt-unknown",
            "lists a prompt that it does not give",
            "listed-prompt-is-retrievable",
            ALL,
            BOTH,
            Twist::Says(|heard, message| match heard.method() == "prompts/get" && heard.name() == "tour" {
                true => vec![refuse(heard, -32603, "cannot render the prompt")],
                false => vec![message],
            }),
        ),
        animal(
            "prompt-with-arguments-unknown",
            "gives no prompt that has arguments, with the values that it offers for them either",
            "listed-prompt-is-retrievable",
            ALL,
            BOTH,
            Twist::Says(|heard, message| match heard.method() == "prompts/get" && message["result"].get("messages").is_some() {
                true if heard.name() == "feed" => vec![refuse(heard, -32603, "cannot render the prompt")],
                _ => vec![message],
            }),
        ),
        animal(
            "completion-without-values",
            "completes without saying with what",
            "message-matches-schema",
            ALL,
            BOTH,
            Twist::Result("completion/complete", |_, result| result["completion"] = json!({ "total": 0 })),
        ),
        animal(
            "too-many-completions",
            "completes with 150 values at once",
            "completion-has-at-most-100",
            ALL,
            BOTH,
            Twist::Result("completion/complete", |_, result| {
                let values: Vec<String> = (0..150).map(|number| format!("okapi-{number}")).collect();
                result["completion"] = json!({ "total": 150, "values": values, "hasMore": false });
            }),
        ),
        animal(
            "unknown-reference-completed",
            "completes for a prompt that it does not have",
            "completion-unknown-reference-is-refused",
            ALL,
            BOTH,
            Twist::Says(|heard, message| match heard.method() == "completion/complete" && is_error(&message) {
                true => vec![accept(heard, json!({ "completion": { "values": [] } }))],
                false => vec![message],
            }),
        ),
        animal(
            "template-leads-outside",
            "gives any file of the machine for a template",
            "resource-template-blocks-path-traversal",
            ALL,
            BOTH,
            Twist::Says(|heard, message| {
                let uri = heard.params()["uri"].as_str().unwrap_or_default().to_owned();
                match heard.method() == "resources/read" && uri.contains("..") && !is_mismatch(&message) {
                    true => vec![accept(heard, json!({ "contents": [{ "uri": uri, "text": "root:x:0:0:root:/root:/bin/sh\n" }] }))],
                    false => vec![message],
                }
            }),
        ),
        animal(
            "mime-type-without-subtype",
            "gives a MIME type without its second half",
            "mime-type-is-valid",
            ALL,
            BOTH,
            Twist::Catalogue(|all| all.resources[1]["mimeType"] = json!("png")),
        ),
        animal(
            "error-code-undefined",
            "refuses with a code that the specification keeps for itself",
            "error-code-is-defined-in-revision",
            ALL,
            MODERN,
            Twist::Says(|heard, message| match is_refused(heard.method(), &message, "Unknown prompt") {
                true => vec![refuse(heard, -32050, "Unknown prompt")],
                false => vec![message],
            }),
        ),
        animal(
            "error-code-reserved",
            "refuses with a code that JSON-RPC keeps for itself",
            "error-code-is-not-reserved",
            ALL,
            MODERN,
            Twist::Says(|heard, message| match is_refused(heard.method(), &message, "Unknown prompt") {
                true => vec![refuse(heard, -32005, "Unknown prompt")],
                false => vec![message],
            }),
        ),
        animal(
            "extension-without-prefix",
            "declares an extension without a prefix",
            "extension-id-is-well-formed",
            ALL,
            MODERN,
            Twist::Catalogue(|all| all.capabilities["extensions"] = json!({ "charts": {} })),
        ),
    ];

fn messages() -> Value {
    json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "undefined" } }] })
}

/// Whether a prompt is refused for that reason.
fn is_refused(method: &str, message: &Value, why: &str) -> bool {
    method == "prompts/get" && message["error"]["message"].as_str().is_some_and(|text| text.contains(why))
}

/// Headers are checked before anything of the message is.
fn is_mismatch(message: &Value) -> bool {
    message["error"]["code"] == -32020
}
