//! Broken servers that handle tool calls wrongly, or report progress and logs wrongly.

use super::changes::{accept, count, is_tool_error, pretend, refuse, remove};
use super::deviation::{Deviation, die};
use super::internal_deviation::InternalDeviation;
use super::server::{Received, notification};
use super::{ALL, BOTH, BrokenServer, LEGACY, STDIO, WEB, broken_server};
use serde_json::{Value, json};

pub(super) const BROKEN_SERVERS: &[BrokenServer] = &[
    broken_server(
        "is-error-in-snake-case",
        "calls the member `is_error`, so that calls that failed seem to have succeeded",
        "message-matches-schema",
        ALL,
        BOTH,
        Deviation::Result("tools/call", |_, result| {
            if let Some(is_error) = result.as_object_mut().and_then(|result| result.remove("isError")) {
                result["is_error"] = is_error;
            }
        }),
    ),
    broken_server(
        "unknown-tool-succeeds",
        "answers calls of tools that it does not have",
        "call-unknown-tool-is-refused",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| if is_about(&message, "Unknown tool") { vec![pretend(received)] } else { vec![message] }),
    ),
    broken_server(
        "negative-sum-is-text",
        "returns a sum below zero as a text",
        "call-output-matches-schema",
        ALL,
        BOTH,
        Deviation::Result("tools/call", |received, result| {
            if received.calls("add") && result["structuredContent"]["sum"].as_f64().is_some_and(|sum| sum < 0.0) {
                let sum = json!({ "sum": result["structuredContent"]["sum"].to_string() });
                result["content"][0]["text"] = json!(sum.to_string());
                result["structuredContent"] = sum;
            }
        }),
    ),
    broken_server(
        "bounds-are-not-checked",
        "declares bounds of arguments that it does not check",
        "call-out-of-range-argument-is-refused",
        ALL,
        BOTH,
        Deviation::Tools(|message| {
            let tools = message["result"]["tools"].as_array_mut().into_iter().flatten();
            tools.filter(|tool| tool["name"] == "echo").for_each(|tool| tool["inputSchema"]["properties"]["text"]["maxLength"] = json!(40));
        }),
    ),
    broken_server(
        "lists-tool-under-other-name",
        "lists a tool under a name that it does not have",
        "listed-tool-is-callable",
        ALL,
        BOTH,
        Deviation::Tools(|message| {
            let tools = message["result"]["tools"].as_array_mut().into_iter().flatten();
            tools.filter(|tool| tool["name"] == "echo").for_each(|tool| tool["name"] = json!("Echo"));
        }),
    ),
    broken_server(
        "tool-breaks-inside",
        "answers each call of a tool that its schema allows with an internal error",
        "listed-tool-is-callable",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| {
            match received.calls("echo") && message.get("result").is_some_and(|it| it["isError"] != true) {
                true => vec![refuse(received, -32603, "Cannot read properties of undefined")],
                false => vec![message],
            }
        }),
    ),
    broken_server(
        "declined-form-breaks",
        "asks the user for a name in the midst of a call, and breaks if the user declines",
        "client-response-is-processed",
        ALL,
        LEGACY,
        Deviation::Internal(InternalDeviation::DeclinesBreak),
    ),
    broken_server(
        "forms-without-end",
        "asks the user for a name in the midst of a call until there is one, whatever the user says",
        "client-response-is-processed",
        ALL,
        LEGACY,
        Deviation::Internal(InternalDeviation::FormsWithoutEnd),
    ),
    broken_server(
        "closed-form-hangs",
        "asks the user for a name in the midst of a call, which does not end if the user closes the form",
        "client-response-is-processed",
        STDIO,
        LEGACY,
        Deviation::Internal(InternalDeviation::CanceledFormsHang),
    ),
    broken_server(
        "closed-form-kills",
        "asks the user for a name in the midst of a call, and exits if the user closes the form",
        "server-stays-alive",
        STDIO,
        LEGACY,
        Deviation::Internal(InternalDeviation::CanceledFormsKill),
    ),
    broken_server(
        "missing-argument-hangs",
        "never responds to a call without an argument that it requires",
        "request-gets-response",
        STDIO,
        BOTH,
        Deviation::Outgoing(|received, message| {
            if received.calls("echo") && complains(&message, "is a required property") { Vec::new() } else { vec![message] }
        }),
    ),
    broken_server(
        "calls-lost-beside-others",
        "never responds to a call of a tool while several others are under way",
        "request-gets-response",
        STDIO,
        LEGACY,
        Deviation::Internal(InternalDeviation::CallsLostBesideOthers),
    ),
    broken_server(
        "unknown-tool-internal-error",
        "calls an unknown tool an internal error",
        "call-unknown-tool-code",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| match is_about(&message, "Unknown tool") {
            true => vec![refuse(received, -32603, "Internal error")],
            false => vec![message],
        }),
    ),
    broken_server(
        "nameless-call-succeeds",
        "answers calls that name no tool",
        "call-without-name-is-refused",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| if is_about(&message, "`name` must be") { vec![pretend(received)] } else { vec![message] }),
    ),
    broken_server(
        "missing-argument-succeeds",
        "works without arguments that it requires",
        "call-missing-argument-is-refused",
        ALL,
        BOTH,
        Deviation::Outgoing(
            |received, message| if complains(&message, "is a required property") { vec![pretend(received)] } else { vec![message] },
        ),
    ),
    broken_server(
        "wrong-type-succeeds",
        "works with arguments of another type",
        "call-wrong-type-is-refused",
        ALL,
        BOTH,
        Deviation::Outgoing(
            |received, message| if complains(&message, "is not of type") { vec![pretend(received)] } else { vec![message] },
        ),
    ),
    broken_server(
        "extra-argument-kills",
        "dies of an argument that it does not know",
        "call-extra-argument-is-survived",
        ALL,
        BOTH,
        Deviation::Extra(|received| {
            let known = received.server.catalogue.tool(received.name()).map(|tool| tool["inputSchema"]["properties"].clone());
            die_if(known.is_some_and(|known| arguments(received).any(|(name, _)| known.get(name).is_none())))
        }),
    ),
    broken_server(
        "null-argument-kills",
        "dies of an argument that is null",
        "call-null-argument-is-survived",
        ALL,
        BOTH,
        Deviation::Extra(|received| die_if(arguments(received).any(|(_, value)| value.is_null()))),
    ),
    broken_server(
        "empty-text-kills",
        "dies of an empty text",
        "call-boundary-argument-is-survived",
        ALL,
        BOTH,
        Deviation::Extra(|received| die_if(arguments(received).any(|(_, value)| value == ""))),
    ),
    broken_server(
        "large-number-kills",
        "dies of a number beyond 32 bits",
        "call-boundary-argument-is-survived",
        ALL,
        BOTH,
        Deviation::Extra(|received| {
            die_if(arguments(received).any(|(_, value)| value.as_f64().is_some_and(|number| number.abs() > f64::from(u32::MAX))))
        }),
    ),
    broken_server(
        "unicode-kills",
        "dies of a text that is not ASCII",
        "call-unicode-argument-is-survived",
        ALL,
        BOTH,
        Deviation::Extra(|received| die_if(arguments(received).any(|(_, value)| value.as_str().is_some_and(|text| !text.is_ascii())))),
    ),
    broken_server(
        "large-argument-kills",
        "dies of a text of more than 64 KiB",
        "call-large-argument-is-survived",
        ALL,
        BOTH,
        Deviation::Extra(|received| die_if(arguments(received).any(|(_, value)| value.as_str().is_some_and(|text| text.len() > 64 << 10)))),
    ),
    broken_server(
        "output-of-another-type",
        "gives a sum as text, against its output schema",
        "call-output-matches-schema",
        ALL,
        BOTH,
        Deviation::Result("tools/call", |_, result| {
            if let Some(sum) = result["structuredContent"].get("sum") {
                result["structuredContent"]["sum"] = json!(sum.to_string());
            }
        }),
    ),
    broken_server(
        "output-missing",
        "has an output schema, and gives no structured content",
        "call-output-matches-schema",
        ALL,
        BOTH,
        Deviation::Result("tools/call", |_, result| remove(result, "structuredContent")),
    ),
    broken_server(
        "structured-and-other-text",
        "returns other JSON as text than as structured content",
        "call-structured-has-text",
        ALL,
        BOTH,
        Deviation::Result("tools/call", |_, result| {
            if result.get("structuredContent").is_some() {
                result["content"] = json!([{ "type": "text", "text": "{\"sum\":-1}" }]);
            }
        }),
    ),
    broken_server(
        "structured-only",
        "gives structured content, and no text",
        "call-structured-has-text",
        ALL,
        BOTH,
        Deviation::Result("tools/call", |_, result| {
            if result.get("structuredContent").is_some() {
                result["content"] = json!([]);
            }
        }),
    ),
    broken_server(
        "tool-errors-are-errors",
        "answers calls that failed with an error of JSON-RPC",
        "call-argument-errors-are-results",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| match is_tool_error(&message) {
            true => vec![refuse(received, -32603, message["result"]["content"][0]["text"].as_str().unwrap_or_default())],
            false => vec![message],
        }),
    ),
    broken_server(
        "reader-writes",
        "writes down who has called a tool that only reads",
        "read-only-changes-nothing",
        ALL,
        BOTH,
        Deviation::Extra(|received| {
            if received.calls("echo") {
                let visits = count(received);
                received.server.notes().insert("visits".to_owned(), visits.to_string());
            }
            Vec::new()
        }),
    ),
    broken_server(
        "writer-appends",
        "adds to a note each time it is written, and calls that idempotent",
        "idempotent-changes-nothing-twice",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| {
            if received.calls("write_note") && !is_tool_error(&message) {
                let time = count(received);
                let name = received.params()["arguments"]["name"].as_str().unwrap_or_default();
                if let Some(note) = received.server.notes().get_mut(name) {
                    note.push_str(&format!(" ({time})"));
                }
            }
            vec![message]
        }),
    ),
    broken_server(
        "writer-doubles",
        "adds to a note each time it is written, and claims nothing",
        "lost-response-doubles-no-effect",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, mut message| {
            if let Some(tools) = message.pointer_mut("/result/tools").and_then(Value::as_array_mut) {
                let annotated = tools.iter_mut().filter(|tool| tool["name"] == "write_note");
                annotated.for_each(|tool| remove(&mut tool["annotations"], "idempotentHint"));
            }
            if received.calls("write_note") && !is_tool_error(&message) {
                let time = count(received);
                let name = received.params()["arguments"]["name"].as_str().unwrap_or_default();
                if let Some(note) = received.server.notes().get_mut(name) {
                    note.push_str(&format!(" ({time})"));
                }
            }
            vec![message]
        }),
    ),
    broken_server(
        "image-is-no-base64",
        "gives the bytes of an image as text",
        "content-is-base64",
        ALL,
        BOTH,
        Deviation::Result("tools/call", |_, result| {
            if result["content"][0]["type"] == "image" {
                result["content"][0]["data"] = json!("\u{fffd}PNG\r\n\u{1a}\n");
            }
        }),
    ),
    broken_server(
        "image-is-text",
        "gives what went wrong in place of the bytes of an image",
        "media-data-matches-mime-type",
        ALL,
        BOTH,
        Deviation::Result("tools/call", |_, result| {
            if result["content"][0]["type"] == "image" {
                // "no picture today"
                result["content"][0]["data"] = json!("bm8gcGljdHVyZSB0b2RheQ==");
            }
        }),
    ),
    broken_server(
        "image-is-a-data-url",
        "gives an image as a data URL",
        "content-is-base64",
        ALL,
        BOTH,
        Deviation::Result("tools/call", |_, result| {
            if let Some(data) = result["content"][0]["data"].as_str() {
                result["content"][0]["data"] = json!(format!("data:image/png;base64,{data}"));
            }
        }),
    ),
    broken_server(
        "progress-of-nobody",
        "reports progress to a client that did not ask for it",
        "progress-has-known-token",
        ALL,
        BOTH,
        Deviation::Extra(|received| match received.method() {
            "tools/call" => vec![notification("notifications/progress", json!({ "progressToken": "made-up", "progress": 1 }))],
            _ => Vec::new(),
        }),
    ),
    broken_server(
        "progress-token-changes-type",
        "reports progress with the token as text, or as a number",
        "progress-has-known-token",
        ALL,
        BOTH,
        Deviation::Outgoing(|_, mut message| {
            if message["method"] == "notifications/progress" {
                let token = &message["params"]["progressToken"];
                message["params"]["progressToken"] = if token.is_string() { json!(0) } else { json!(token.to_string()) };
            }
            vec![message]
        }),
    ),
    broken_server(
        "progress-token-becomes-text",
        "reports progress with the token as text where the client gave a number",
        "progress-has-known-token",
        ALL,
        BOTH,
        Deviation::Outgoing(|_, mut message| {
            if message["method"] == "notifications/progress" && message["params"]["progressToken"].is_number() {
                message["params"]["progressToken"] = json!(message["params"]["progressToken"].to_string());
            }
            vec![message]
        }),
    ),
    broken_server(
        "progress-token-in-ascii",
        "reports progress with a token whose letters are small, and ASCII",
        "progress-has-known-token",
        ALL,
        BOTH,
        Deviation::Outgoing(|_, mut message| {
            if message["method"] == "notifications/progress"
                && let Some(token) = message["params"]["progressToken"].as_str()
            {
                let plain = |letter: char| if letter.is_ascii() { letter.to_ascii_lowercase() } else { '?' };
                message["params"]["progressToken"] = json!(token.chars().map(plain).collect::<String>());
            }
            vec![message]
        }),
    ),
    broken_server(
        "progress-stands-still",
        "reports the same progress again and again",
        "progress-increases",
        ALL,
        BOTH,
        Deviation::Outgoing(|_, mut message| {
            if message["method"] == "notifications/progress" {
                message["params"]["progress"] = json!(1);
            }
            vec![message]
        }),
    ),
    broken_server(
        "progress-goes-back",
        "reports less and less progress",
        "progress-increases",
        ALL,
        BOTH,
        Deviation::Outgoing(|_, mut message| {
            if message["method"] == "notifications/progress" {
                message["params"]["progress"] = json!(100 - message["params"]["progress"].as_i64().unwrap_or_default());
                message["params"]["total"] = json!(100);
            }
            vec![message]
        }),
    ),
    broken_server(
        "progress-after-answer",
        "reports progress of a call that it has answered",
        "progress-ends-with-response",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| {
            let token = received.params().pointer("/_meta/progressToken");
            match token {
                Some(token) if message.get("result").is_some() => {
                    let late = notification("notifications/progress", json!({ "progressToken": token, "progress": 1000 }));
                    vec![message, late]
                }
                _ => vec![message],
            }
        }),
    ),
    broken_server(
        "cancelled-call-answered",
        "answers a call that was cancelled",
        CANCELLED,
        STDIO,
        BOTH,
        Deviation::Internal(InternalDeviation::CancelledRequestsAnswered),
    ),
    broken_server(
        "cancelled-call-answered-over-http",
        "answers a call that was cancelled",
        CANCELLED,
        WEB,
        LEGACY,
        Deviation::Internal(InternalDeviation::CancelledRequestsAnswered),
    ),
    broken_server(
        "cancel-gets-an-empty-answer",
        "confirms that a call was cancelled with an empty answer",
        CANCELLED,
        super::PIPES,
        LEGACY,
        Deviation::Extra(|received| match received.method() {
            "notifications/cancelled" if received.server.is_running(&received.session, &received.params()["requestId"]) => {
                let id = &received.params()["requestId"];
                vec![json!({ "jsonrpc": "2.0", "id": id, "result": accept(received, json!({ "content": [] }))["result"] })]
            }
            _ => Vec::new(),
        }),
    ),
    broken_server(
        "embeds-undeclared-resources",
        "embeds a resource, and has no resources",
        "embedded-resource-needs-capability",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, mut message| {
            if message["result"]["capabilities"].is_object() {
                remove(&mut message["result"]["capabilities"], "resources");
            }
            if received.calls("draw") && message["result"]["content"].is_array() {
                let resource = json!({ "uri": "zoo://gate/rules", "mimeType": "text/plain", "text": "Do not feed." });
                message["result"]["content"] = json!([{ "type": "resource", "resource": resource }]);
            }
            match received.method().starts_with("resources/") {
                true => vec![refuse(received, -32601, "Method not found")],
                false => vec![message],
            }
        }),
    ),
];

const CANCELLED: &str = "canceled-request-gets-no-response";

/// The arguments of a call; none of other messages.
fn arguments(received: &Received) -> impl Iterator<Item = (&String, &Value)> {
    let arguments = received.params()["arguments"].as_object().filter(|_| received.method() == "tools/call");
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
