//! Broken servers with the fixtures of the official conformance suite, one of which does not do what its name says.

use super::changes::{accept, ask, count, is_error, refuse, remove};
use super::deviation::Deviation;
use super::server::{Received, notification};
use super::{ALL, BOTH, BrokenServer, LEGACY, MODERN, broken_server};
use serde_json::{Value, json};

const WIRES: &[&str] = &["stdio", "http"];

pub(super) const BROKEN_SERVERS: &[BrokenServer] = &[
    broken_server(
        "fixture-image-is-text",
        "gives a text in place of an image",
        "fixture-content-types",
        WIRES,
        BOTH,
        Deviation::Fixtures(|received, message| {
            changed(message, received.calls("test_image_content"), |result| result["content"] = text("[image]"))
        }),
    ),
    broken_server(
        "fixture-text-failed",
        "says that its simplest tool failed, with a text",
        "fixture-content-types",
        WIRES,
        BOTH,
        Deviation::Fixtures(|received, message| {
            changed(message, received.calls("test_simple_text"), |result| result["isError"] = json!(true))
        }),
    ),
    broken_server(
        "fixture-error-unmarked",
        "does not mark the result of the tool that fails",
        "fixture-error-is-a-result",
        WIRES,
        BOTH,
        Deviation::Fixtures(|received, message| {
            changed(message, received.calls("test_error_handling"), |result| remove(result, "isError"))
        }),
    ),
    broken_server(
        "fixture-logs-unsent",
        "keeps its log messages for itself",
        "fixture-logs",
        WIRES,
        LEGACY,
        Deviation::Fixtures(|received, message| without(message, received.calls("test_tool_with_logging"), "notifications/message")),
    ),
    broken_server(
        "fixture-progress-unsent",
        "keeps its progress for itself",
        "fixture-progress",
        WIRES,
        BOTH,
        Deviation::Fixtures(|received, message| without(message, received.calls("test_tool_with_progress"), "notifications/progress")),
    ),
    broken_server(
        "fixture-sampling-unasked",
        "does not ask the model",
        "fixture-sampling",
        WIRES,
        LEGACY,
        Deviation::Fixtures(|received, message| without(message, received.calls("test_sampling"), "sampling/createMessage")),
    ),
    broken_server(
        "fixture-entry-lost",
        "loses what the user entered",
        "fixture-elicitation",
        WIRES,
        LEGACY,
        Deviation::Fixtures(|received, message| {
            let loses = received.calls("test_elicitation") && message["result"]["isError"] != true;
            changed(message, loses, |result| result["content"] = text("User response: undefined"))
        }),
    ),
    broken_server(
        "fixture-defaults-stripped",
        "asks with a form that has lost its defaults",
        "fixture-elicitation-defaults",
        WIRES,
        LEGACY,
        Deviation::Fixtures(|received, mut message| {
            if received.calls("test_elicitation_sep1034_defaults") && message["method"] == "elicitation/create" {
                properties(&mut message).for_each(|property| remove(property, "default"));
            }
            vec![message]
        }),
    ),
    broken_server(
        "fixture-titles-stripped",
        "asks with a form in which titled choices are plain ones",
        "fixture-elicitation-enums",
        WIRES,
        LEGACY,
        Deviation::Fixtures(|received, mut message| {
            if received.calls("test_elicitation_sep1330_enums") && message["method"] == "elicitation/create" {
                for property in properties(&mut message).filter(|property| property.get("oneOf").is_some()) {
                    *property = json!({ "type": "string", "enum": ["value1", "value2"] });
                }
            }
            vec![message]
        }),
    ),
    broken_server(
        "fixture-schema-stripped",
        "lists a schema without keywords that a conversion did not know",
        "fixture-schema-keywords-are-preserved",
        WIRES,
        BOTH,
        Deviation::Fixtures(|_, mut message| {
            let tools = message.pointer_mut("/result/tools").and_then(Value::as_array_mut);
            for tool in tools.into_iter().flatten().filter(|tool| tool["name"] == "json_schema_2020_12_tool") {
                remove(&mut tool["inputSchema"], "additionalProperties");
                remove(&mut tool["inputSchema"], "$schema");
            }
            vec![message]
        }),
    ),
    broken_server(
        "fixture-template-unfilled",
        "gives a template as it stands",
        "fixture-resources",
        WIRES,
        BOTH,
        Deviation::Fixtures(|received, message| {
            let is_it = received.params()["uri"].as_str().is_some_and(|uri| uri.starts_with("test://template/"));
            changed(message, is_it, |result| result["contents"][0]["text"] = json!("data of {id}"))
        }),
    ),
    broken_server(
        "fixture-prompt-unfilled",
        "gives a prompt without its arguments",
        "fixture-prompts",
        WIRES,
        BOTH,
        Deviation::Fixtures(|received, message| {
            changed(message, received.name() == "test_prompt_with_arguments", |result| {
                result["messages"][0]["content"]["text"] = json!("arg1={arg1}, arg2={arg2}");
            })
        }),
    ),
    broken_server(
        "fixture-capability-unneeded",
        "works for a client that cannot do what it needs",
        "fixture-missing-capability",
        WIRES,
        MODERN,
        Deviation::Fixtures(|received, message| match received.calls("test_missing_capability") && is_error(&message) {
            true => vec![accept(received, json!({ "content": text("works all the same") }))],
            false => vec![message],
        }),
    ),
    broken_server(
        "fixture-change-untold",
        "changes its tools and tells nobody",
        "fixture-list-change-is-notified",
        WIRES,
        MODERN,
        Deviation::Fixtures(|_, message| without(message, true, "notifications/tools/list_changed")),
    ),
    broken_server(
        "fixture-never-satisfied",
        "asks again whatever it is given",
        "fixture-input-required",
        WIRES,
        MODERN,
        Deviation::Fixtures(|received, message| {
            match received.calls("test_input_required_result_list_roots") && given(received).is_object() {
                true => {
                    let mut again = accept(received, json!({ "inputRequests": { "roots": { "method": "roots/list", "params": {} } } }));
                    again["result"]["resultType"] = json!("input_required");
                    vec![again]
                }
                false => vec![message],
            }
        }),
    ),
    broken_server(
        "fixture-missing-input-refused",
        "gives an error where input is missing",
        "fixture-missing-input-is-requested-again",
        WIRES,
        MODERN,
        Deviation::Fixtures(|received, message| {
            match asks_name(received) && given(received).is_object() && given(received).get("user_name").is_none() {
                true => vec![refuse(received, -32602, "user_name is missing")],
                false => vec![message],
            }
        }),
    ),
    broken_server(
        "fixture-extra-input-refused",
        "gives an error where there is more input than it wants",
        "fixture-unrequested-input-is-ignored",
        WIRES,
        MODERN,
        Deviation::Fixtures(|received, message| {
            match asks_name(received) && given(received).as_object().is_some_and(|given| given.len() > 1) {
                true => vec![refuse(received, -32602, "there is too much input")],
                false => vec![message],
            }
        }),
    ),
    broken_server(
        "fixture-any-input-will-do",
        "takes a number for what the user entered",
        "fixture-input-is-validated",
        WIRES,
        MODERN,
        Deviation::Fixtures(|received, message| match asks_name(received) && given(received)["user_name"].is_number() {
            true => vec![accept(received, json!({ "content": text("Hello, unknown!") }))],
            false => vec![message],
        }),
    ),
    broken_server(
        "fixture-any-state-will-do",
        "takes a state that it did not give",
        "fixture-tampered-state-is-refused",
        WIRES,
        MODERN,
        Deviation::Fixtures(|received, message| match received.calls("test_input_required_result_tampered_state") && is_error(&message) {
            true => vec![accept(received, json!({ "content": text("state-ok") }))],
            false => vec![message],
        }),
    ),
    broken_server(
        "fixture-asks-nobody",
        "asks a client for nothing that can do only a part",
        "fixture-input-matches-client-capabilities",
        WIRES,
        MODERN,
        Deviation::Fixtures(|received, message| {
            match received.calls("test_input_required_result_capabilities") && message["result"]["resultType"] == "input_required" {
                true => vec![accept(received, json!({ "content": text("never mind") }))],
                false => vec![message],
            }
        }),
    ),
    broken_server(
        "fixture-task-refused",
        "makes no task where one is wanted",
        "fixture-task-is-created",
        WIRES,
        MODERN,
        Deviation::Fixtures(|received, message| match received.calls("multi_input") && makes_task(&message) {
            true => vec![accept(received, json!({ "content": text("done at once") }))],
            false => vec![message],
        }),
    ),
    broken_server(
        "fixture-task-failure-mistaken",
        "calls a task failed because its tool did",
        "fixture-task-status-matches-outcome",
        WIRES,
        MODERN,
        Deviation::Fixtures(|received, message| {
            changed(message, is_about(received, "failing_job"), |result| {
                if result["status"] == "completed" {
                    remove(result, "result");
                    result["status"] = json!("failed");
                    result["error"] = json!({ "code": -32603, "message": "the tool failed" });
                }
            })
        }),
    ),
    broken_server(
        "fixture-task-cancel-tells-all",
        "answers the end of a task with the task",
        "fixture-task-cancel-is-acknowledged",
        WIRES,
        MODERN,
        Deviation::Fixtures(|received, message| {
            changed(message, received.method() == "tasks/cancel", |result| {
                result["taskId"] = json!("a task");
                result["status"] = json!("cancelled");
            })
        }),
    ),
    broken_server(
        "fixture-task-extension-unneeded",
        "answers for tasks to who has not declared them",
        "fixture-task-needs-the-extension",
        WIRES,
        MODERN,
        Deviation::Fixtures(|received, message| match received.method().starts_with("tasks/") && message["error"]["code"] == -32021 {
            true => vec![refuse(received, -32602, "Unknown task")],
            false => vec![message],
        }),
    ),
    broken_server(
        "fixture-task-unknown-breaks",
        "calls an unknown task an internal error",
        "fixture-task-unknown-is-refused",
        WIRES,
        MODERN,
        Deviation::Fixtures(|received, message| match received.method() == "tasks/get" && message["error"]["code"] == -32602 {
            true => vec![refuse(received, -32603, "Internal error")],
            false => vec![message],
        }),
    ),
    broken_server(
        "fixture-task-unknown-acknowledged",
        "acknowledges the end of a task that does not exist",
        "fixture-task-unknown-update-or-cancel-is-refused",
        WIRES,
        MODERN,
        Deviation::Fixtures(|received, message| match received.method() == "tasks/cancel" && message["error"]["code"] == -32602 {
            true => vec![accept(received, json!({}))],
            false => vec![message],
        }),
    ),
    broken_server(
        "fixture-task-refuses-more-input",
        "refuses input that a task has not asked for",
        "fixture-task-unrequested-input-is-ignored",
        WIRES,
        MODERN,
        Deviation::Fixtures(|received, message| {
            let is_unasked = given(received).as_object().is_some_and(|given| given.contains_key("mcproof-unasked"));
            match received.method() == "tasks/update" && is_unasked {
                true => vec![refuse(received, -32602, "no such input")],
                false => vec![message],
            }
        }),
    ),
    broken_server(
        "fixture-task-tells-everybody",
        "lets everybody listen for tasks",
        "fixture-task-notifications-need-the-extension",
        WIRES,
        MODERN,
        Deviation::Fixtures(|received, message| match received.method() == "subscriptions/listen" && is_error(&message) {
            true => {
                let meta = json!({ "io.modelcontextprotocol/subscriptionId": received.id() });
                let params = json!({ "notifications": received.params()["notifications"], "_meta": meta });
                vec![notification("notifications/subscriptions/acknowledged", params)]
            }
            false => vec![message],
        }),
    ),
    broken_server(
        "fixture-task-reports-on-subscription",
        "reports progress on a subscription to a task",
        "fixture-task-subscription-has-only-tasks",
        &["stdio"],
        MODERN,
        Deviation::Fixtures(|received, message| {
            if received.calls("slow_compute") {
                received.server.memory()["token"] = received.params()["_meta"]["progressToken"].clone();
            }
            let filter = &message["params"]["notifications"];
            if message["method"] != "notifications/subscriptions/acknowledged" || !filter["taskIds"].is_array() {
                return vec![message];
            }
            let meta = json!({ "io.modelcontextprotocol/subscriptionId": received.id() });
            let progress = json!({ "progressToken": received.server.memory()["token"], "progress": 1, "_meta": meta });
            vec![message, notification("notifications/progress", progress)]
        }),
    ),
    broken_server(
        "fixture-breaks-when-declined",
        "breaks when the user declines",
        "fixture-declined-elicitation-is-handled",
        WIRES,
        MODERN,
        Deviation::Fixtures(|received, message| match asks_name(received) && given(received)["user_name"]["action"] == "decline" {
            true => vec![refuse(received, -32603, "cannot read properties of undefined")],
            false => vec![message],
        }),
    ),
    broken_server(
        "fixture-task-list-remains",
        "lists tasks as in 2025-11-25",
        "fixture-task-legacy-methods-are-removed",
        WIRES,
        MODERN,
        Deviation::Fixtures(|received, message| match received.method() == "tasks/list" && is_error(&message) {
            true => vec![accept(received, json!({ "tasks": [] }))],
            false => vec![message],
        }),
    ),
    broken_server(
        "fixture-task-asks-nothing",
        "goes on without the input that a task needs",
        "fixture-task-accepts-input",
        WIRES,
        MODERN,
        Deviation::Fixtures(|received, message| {
            changed(message, is_about(received, "confirm_delete"), |result| {
                if result["status"] == "input_required" {
                    remove(result, "inputRequests");
                    result["status"] = json!("completed");
                    result["result"] = json!({ "content": text("deleted") });
                }
            })
        }),
    ),
    broken_server(
        "fixture-task-forgets-input",
        "loses the input from which a task was made",
        "fixture-task-follows-input",
        WIRES,
        MODERN,
        Deviation::Fixtures(|received, message| {
            changed(message, is_about(received, "test_tool_with_task"), |result| {
                if result["status"] == "completed" {
                    result["result"]["content"] = text("Hello, unknown!");
                }
            })
        }),
    ),
    broken_server(
        "fixture-greeting-refused",
        "refuses a call with the hint of 2025-11-25",
        "fixture-quick-tool-returns-no-task",
        WIRES,
        MODERN,
        Deviation::Fixtures(|received, message| match received.calls("greet") && received.params().get("task").is_some() {
            true => vec![refuse(received, -32602, "`task` is not known")],
            false => vec![message],
        }),
    ),
    broken_server(
        "form-asks-for-password",
        "asks for a password in a form",
        "form-requests-no-secrets",
        ALL,
        LEGACY,
        Deviation::Fixtures(|_, mut message| {
            if message["method"] == "elicitation/create" {
                message["params"]["requestedSchema"]["properties"]["password"] = json!({ "type": "string" });
            }
            vec![message]
        }),
    ),
    broken_server(
        "form-with-link",
        "puts a link into a form",
        "form-has-no-links",
        ALL,
        LEGACY,
        Deviation::Fixtures(|_, mut message| {
            if message["method"] == "elicitation/create" {
                let field = json!({ "type": "string", "description": "See https://zoo.example/help" });
                message["params"]["requestedSchema"]["properties"]["remark"] = field;
            }
            vec![message]
        }),
    ),
    broken_server(
        "page-without-tls",
        "sends the user to a page without TLS",
        "elicitation-url-is-https",
        ALL,
        LEGACY,
        Deviation::Fixtures(|received, message| {
            if !received.calls("test_elicitation") || message["method"] != "elicitation/create" || received.version.as_str() < "2025-11-25"
            {
                return vec![message];
            }
            let id = json!(format!("page-{}", count(received)));
            let page = json!({ "mode": "url", "elicitationId": id, "message": "Sign in", "url": "http://zoo.example/login" });
            vec![message, ask(id, "elicitation/create", page)]
        }),
    ),
    broken_server(
        "samples-with-mixed-results",
        "gives the model a text and the result of a tool in one message",
        "sampling-tool-results-are-not-mixed",
        WIRES,
        BOTH,
        Deviation::Fixtures(|_, message| {
            sampled(message, |messages| {
                let uses = json!({ "type": "tool_use", "id": "use-1", "name": "echo", "input": {} });
                messages.push(json!({ "role": "assistant", "content": uses }));
                let result = json!({ "type": "tool_result", "toolUseId": "use-1", "content": [] });
                messages.push(json!({ "role": "user", "content": [{ "type": "text", "text": "This came:" }, result] }));
            })
        }),
    ),
    broken_server(
        "samples-with-lost-results",
        "gives the model the result of one of two tools",
        "sampling-tool-uses-have-results",
        WIRES,
        BOTH,
        Deviation::Fixtures(|_, message| {
            sampled(message, |messages| {
                let uses = |id: &str| json!({ "type": "tool_use", "id": id, "name": "echo", "input": {} });
                messages.push(json!({ "role": "assistant", "content": [uses("use-1"), uses("use-2")] }));
                messages.push(json!({ "role": "user", "content": { "type": "tool_result", "toolUseId": "use-1", "content": [] } }));
            })
        }),
    ),
    broken_server(
        "samples-with-stray-result",
        "gives the model a result of a tool that it did not use",
        "sampling-tool-uses-have-results",
        WIRES,
        BOTH,
        Deviation::Fixtures(|_, message| {
            sampled(message, |messages| {
                messages.push(json!({ "role": "user", "content": { "type": "tool_result", "toolUseId": "use-9", "content": [] } }));
            })
        }),
    ),
    broken_server(
        "samples-with-context",
        "asks for the context of all servers",
        "sampling-context-is-declared",
        ALL,
        LEGACY,
        Deviation::Fixtures(|_, mut message| {
            if message["method"] == "sampling/createMessage" {
                message["params"]["includeContext"] = json!("allServers");
            }
            vec![message]
        }),
    ),
];

/// The message with more in each request for a sample, be it one by itself or inside of a result.
fn sampled(mut message: Value, add: fn(&mut Vec<Value>)) -> Vec<Value> {
    let is_sample = |request: &&mut Value| request["method"] == "sampling/createMessage";
    if is_sample(&&mut message) {
        message["params"]["messages"].as_array_mut().into_iter().for_each(add);
    }
    let inside = message.pointer_mut("/result/inputRequests").and_then(Value::as_object_mut);
    for request in inside.into_iter().flat_map(serde_json::Map::values_mut).filter(is_sample) {
        request["params"]["messages"].as_array_mut().into_iter().for_each(add);
    }
    vec![message]
}

fn makes_task(message: &Value) -> bool {
    message["result"]["resultType"] == "task"
}

/// Whether this asks for a task of that tool.
fn is_about(received: &Received, tool: &str) -> bool {
    received.method() == "tasks/get" && received.params()["taskId"].as_str().is_some_and(|id| id.starts_with(tool))
}

fn text(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}

/// The message with another result, if it has one and is meant.
fn changed(mut message: Value, is_meant: bool, change: fn(&mut Value)) -> Vec<Value> {
    if is_meant && let Some(result) = message.get_mut("result") {
        change(result);
    }
    vec![message]
}

/// The message, unless it is meant and of this method.
fn without(message: Value, is_meant: bool, method: &str) -> Vec<Value> {
    if is_meant && message["method"] == method { Vec::new() } else { vec![message] }
}

/// The fields of the form in a request.
fn properties(message: &mut Value) -> impl Iterator<Item = &mut Value> {
    let properties = message.pointer_mut("/params/requestedSchema/properties").and_then(Value::as_object_mut);
    properties.into_iter().flat_map(serde_json::Map::values_mut)
}

fn asks_name(received: &Received) -> bool {
    received.calls("test_input_required_result_elicitation")
}

fn given(received: &Received) -> &Value {
    &received.params()["inputResponses"]
}
