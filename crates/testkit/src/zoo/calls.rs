//! Animals that take calls of tools otherwise, and those that report on them otherwise.

use super::changes::{accept, count, is_tool_error, pretend, refuse, remove};
use super::server::{Heard, notification};
use super::slip::Slip;
use super::twist::{Twist, die};
use super::{ALL, Animal, BOTH, LEGACY, STDIO, WEB, animal};
use serde_json::{Value, json};

pub(super) const ANIMALS: &[Animal] = &[
    animal(
        "unknown-tool-succeeds",
        "answers calls of tools that it does not have",
        "call-unknown-tool-is-refused",
        ALL,
        BOTH,
        Twist::Says(|heard, message| if is_about(&message, "Unknown tool") { vec![pretend(heard)] } else { vec![message] }),
    ),
    animal(
        "unknown-tool-internal-error",
        "calls an unknown tool an internal error",
        "call-unknown-tool-code",
        ALL,
        BOTH,
        Twist::Says(|heard, message| match is_about(&message, "Unknown tool") {
            true => vec![refuse(heard, -32603, "Internal error")],
            false => vec![message],
        }),
    ),
    animal(
        "nameless-call-succeeds",
        "answers calls that name no tool",
        "call-without-name-is-refused",
        ALL,
        BOTH,
        Twist::Says(|heard, message| if is_about(&message, "`name` must be") { vec![pretend(heard)] } else { vec![message] }),
    ),
    animal(
        "missing-argument-succeeds",
        "works without arguments that it requires",
        "call-missing-argument-is-refused",
        ALL,
        BOTH,
        Twist::Says(|heard, message| if complains(&message, "is a required property") { vec![pretend(heard)] } else { vec![message] }),
    ),
    animal(
        "wrong-type-succeeds",
        "works with arguments of another type",
        "call-wrong-type-is-refused",
        ALL,
        BOTH,
        Twist::Says(|heard, message| if complains(&message, "is not of type") { vec![pretend(heard)] } else { vec![message] }),
    ),
    animal(
        "extra-argument-kills",
        "dies of an argument that it does not know",
        "call-extra-argument-is-survived",
        ALL,
        BOTH,
        Twist::Unasked(|heard| {
            let known = heard.server.catalogue.tool(heard.name()).map(|tool| tool["inputSchema"]["properties"].clone());
            die_if(known.is_some_and(|known| arguments(heard).any(|(name, _)| known.get(name).is_none())))
        }),
    ),
    animal(
        "null-argument-kills",
        "dies of an argument that is null",
        "call-null-argument-is-survived",
        ALL,
        BOTH,
        Twist::Unasked(|heard| die_if(arguments(heard).any(|(_, value)| value.is_null()))),
    ),
    animal(
        "empty-text-kills",
        "dies of an empty text",
        "call-boundary-argument-is-survived",
        ALL,
        BOTH,
        Twist::Unasked(|heard| die_if(arguments(heard).any(|(_, value)| value == ""))),
    ),
    animal(
        "large-number-kills",
        "dies of a number beyond 32 bits",
        "call-boundary-argument-is-survived",
        ALL,
        BOTH,
        Twist::Unasked(|heard| {
            die_if(arguments(heard).any(|(_, value)| value.as_f64().is_some_and(|number| number.abs() > f64::from(u32::MAX))))
        }),
    ),
    animal(
        "unicode-kills",
        "dies of a text that is not ASCII",
        "call-unicode-argument-is-survived",
        ALL,
        BOTH,
        Twist::Unasked(|heard| die_if(arguments(heard).any(|(_, value)| value.as_str().is_some_and(|text| !text.is_ascii())))),
    ),
    animal(
        "large-argument-kills",
        "dies of a text of more than 64 KiB",
        "call-large-argument-is-survived",
        ALL,
        BOTH,
        Twist::Unasked(|heard| die_if(arguments(heard).any(|(_, value)| value.as_str().is_some_and(|text| text.len() > 64 << 10)))),
    ),
    animal(
        "output-of-another-type",
        "gives a sum as text, against its output schema",
        "call-output-matches-schema",
        ALL,
        BOTH,
        Twist::Result("tools/call", |_, result| {
            if let Some(sum) = result["structuredContent"].get("sum") {
                result["structuredContent"]["sum"] = json!(sum.to_string());
            }
        }),
    ),
    animal(
        "output-missing",
        "has an output schema, and gives no structured content",
        "call-output-matches-schema",
        ALL,
        BOTH,
        Twist::Result("tools/call", |_, result| remove(result, "structuredContent")),
    ),
    animal(
        "structured-only",
        "gives structured content, and no text",
        "call-structured-has-text",
        ALL,
        BOTH,
        Twist::Result("tools/call", |_, result| {
            if result.get("structuredContent").is_some() {
                result["content"] = json!([]);
            }
        }),
    ),
    animal(
        "tool-errors-are-errors",
        "answers calls that failed with an error of JSON-RPC",
        "call-argument-errors-are-results",
        ALL,
        BOTH,
        Twist::Says(|heard, message| match is_tool_error(&message) {
            true => vec![refuse(heard, -32603, message["result"]["content"][0]["text"].as_str().unwrap_or_default())],
            false => vec![message],
        }),
    ),
    animal(
        "reader-writes",
        "writes down who has called a tool that only reads",
        "read-only-changes-nothing",
        ALL,
        BOTH,
        Twist::Unasked(|heard| {
            if heard.calls("echo") {
                let visits = count(heard);
                heard.server.notes().insert("visits".to_owned(), visits.to_string());
            }
            Vec::new()
        }),
    ),
    animal(
        "writer-appends",
        "adds to a note each time it is written, and calls that idempotent",
        "idempotent-changes-nothing-twice",
        ALL,
        BOTH,
        Twist::Says(|heard, message| {
            if heard.calls("write_note") && !is_tool_error(&message) {
                let time = count(heard);
                let name = heard.params()["arguments"]["name"].as_str().unwrap_or_default();
                if let Some(note) = heard.server.notes().get_mut(name) {
                    note.push_str(&format!(" ({time})"));
                }
            }
            vec![message]
        }),
    ),
    animal(
        "image-is-no-base64",
        "gives the bytes of an image as text",
        "content-is-base64",
        ALL,
        BOTH,
        Twist::Result("tools/call", |_, result| {
            if result["content"][0]["type"] == "image" {
                result["content"][0]["data"] = json!("\u{fffd}PNG\r\n\u{1a}\n");
            }
        }),
    ),
    animal(
        "image-is-a-data-url",
        "gives an image as a data URL",
        "content-is-base64",
        ALL,
        BOTH,
        Twist::Result("tools/call", |_, result| {
            if let Some(data) = result["content"][0]["data"].as_str() {
                result["content"][0]["data"] = json!(format!("data:image/png;base64,{data}"));
            }
        }),
    ),
    animal(
        "progress-of-nobody",
        "reports progress to a client that did not ask for it",
        "progress-has-known-token",
        ALL,
        BOTH,
        Twist::Unasked(|heard| match heard.method() {
            "tools/call" => vec![notification("notifications/progress", json!({ "progressToken": "made-up", "progress": 1 }))],
            _ => Vec::new(),
        }),
    ),
    animal(
        "progress-token-changes-type",
        "reports progress with the token as text, or as a number",
        "progress-has-known-token",
        ALL,
        BOTH,
        Twist::Says(|_, mut message| {
            if message["method"] == "notifications/progress" {
                let token = &message["params"]["progressToken"];
                message["params"]["progressToken"] = if token.is_string() { json!(0) } else { json!(token.to_string()) };
            }
            vec![message]
        }),
    ),
    animal(
        "progress-stands-still",
        "reports the same progress again and again",
        "progress-increases",
        ALL,
        BOTH,
        Twist::Says(|_, mut message| {
            if message["method"] == "notifications/progress" {
                message["params"]["progress"] = json!(1);
            }
            vec![message]
        }),
    ),
    animal(
        "progress-goes-back",
        "reports less and less progress",
        "progress-increases",
        ALL,
        BOTH,
        Twist::Says(|_, mut message| {
            if message["method"] == "notifications/progress" {
                message["params"]["progress"] = json!(100 - message["params"]["progress"].as_i64().unwrap_or_default());
                message["params"]["total"] = json!(100);
            }
            vec![message]
        }),
    ),
    animal(
        "progress-after-answer",
        "reports progress of a call that it has answered",
        "progress-ends-with-response",
        ALL,
        BOTH,
        Twist::Says(|heard, message| {
            let token = heard.params().pointer("/_meta/progressToken");
            match token {
                Some(token) if message.get("result").is_some() => {
                    let late = notification("notifications/progress", json!({ "progressToken": token, "progress": 1000 }));
                    vec![message, late]
                }
                _ => vec![message],
            }
        }),
    ),
    animal(
        "cancelled-call-answered",
        "answers a call that was cancelled",
        CANCELLED,
        STDIO,
        BOTH,
        Twist::Slip(Slip::CancelledRequestsAnswered),
    ),
    animal(
        "cancelled-call-answered-over-http",
        "answers a call that was cancelled",
        CANCELLED,
        WEB,
        LEGACY,
        Twist::Slip(Slip::CancelledRequestsAnswered),
    ),
    animal(
        "cancel-gets-an-empty-answer",
        "confirms that a call was cancelled with an empty answer",
        CANCELLED,
        super::PIPES,
        LEGACY,
        Twist::Unasked(|heard| match heard.method() {
            "notifications/cancelled" if heard.server.is_running(&heard.session, &heard.params()["requestId"]) => {
                let id = &heard.params()["requestId"];
                vec![json!({ "jsonrpc": "2.0", "id": id, "result": accept(heard, json!({ "content": [] }))["result"] })]
            }
            _ => Vec::new(),
        }),
    ),
    animal(
        "embeds-undeclared-resources",
        "embeds a resource, and has no resources",
        "embedded-resource-needs-capability",
        ALL,
        BOTH,
        Twist::Says(|heard, mut message| {
            if message["result"]["capabilities"].is_object() {
                remove(&mut message["result"]["capabilities"], "resources");
            }
            if heard.calls("draw") && message["result"]["content"].is_array() {
                let resource = json!({ "uri": "zoo://gate/rules", "mimeType": "text/plain", "text": "Do not feed." });
                message["result"]["content"] = json!([{ "type": "resource", "resource": resource }]);
            }
            match heard.method().starts_with("resources/") {
                true => vec![refuse(heard, -32601, "Method not found")],
                false => vec![message],
            }
        }),
    ),
];

const CANCELLED: &str = "canceled-request-gets-no-response";

/// The arguments of a call; none of other messages.
fn arguments(heard: &Heard) -> impl Iterator<Item = (&String, &Value)> {
    let arguments = heard.params()["arguments"].as_object().filter(|_| heard.method() == "tools/call");
    arguments.into_iter().flatten()
}

fn die_if(hurt: bool) -> Vec<Value> {
    if hurt {
        die(1);
    }
    Vec::new()
}

/// Whether this is an error about that.
fn is_about(message: &Value, what: &str) -> bool {
    message["error"]["message"].as_str().is_some_and(|text| text.contains(what))
}

/// Whether this says that the arguments of a call are wrong in that way.
fn complains(message: &Value, what: &str) -> bool {
    is_tool_error(message) && message["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains(what))
}
