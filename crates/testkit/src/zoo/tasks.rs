//! Animals that break what 2025-11-25 says of tasks.

use super::changes::{is_error, refuse, remove};
use super::server::{Heard, notification, result};
use super::twist::Twist;
use super::{Animal, HTTP, LEGACY, animal};
use serde_json::{Value, json};

const WIRES: &[&str] = &["stdio", "http"];
const RELATED: &str = "io.modelcontextprotocol/related-task";

pub(super) const ANIMALS: &[Animal] = &[
    animal(
        "task-undeclared",
        "makes a task of a call, and has not declared that it can",
        "undeclared-task-request-is-ignored",
        WIRES,
        LEGACY,
        Twist::Says(|heard, message| match heard.method() == "tools/call" && heard.params().get("task").is_some() {
            true => vec![result(heard.id(), json!({ "task": state("a-task", "working") }))],
            false => vec![message],
        }),
    ),
    animal(
        "task-call-waits",
        "answers a call as a task with its result",
        "call-as-task-returns-task",
        WIRES,
        LEGACY,
        Twist::Fixtures(|heard, message| match makes_task(&message) {
            true => vec![result(heard.id(), done())],
            false => vec![message],
        }),
    ),
    animal(
        "task-begins-in-need",
        "makes tasks that need input from the first moment",
        "new-task-status-is-working",
        WIRES,
        LEGACY,
        Twist::Fixtures(|_, mut message| {
            if makes_task(&message) {
                message["result"]["task"]["status"] = json!("input_required");
            }
            vec![message]
        }),
    ),
    animal(
        "task-ids-alike",
        "gives two tasks the same id",
        "task-ids-differ",
        WIRES,
        LEGACY,
        Twist::Fixtures(|heard, mut message| {
            if makes_task(&message) {
                let mut memory = heard.server.memory();
                if memory["task"].is_null() {
                    memory["task"] = message["result"]["task"]["taskId"].clone();
                }
                message["result"]["task"]["taskId"] = memory["task"].clone();
            }
            vec![message]
        }),
    ),
    animal(
        "task-comes-back",
        "completes a task that was cancelled",
        "task-terminal-status-is-final",
        WIRES,
        LEGACY,
        Twist::Fixtures(|heard, mut message| {
            if heard.method() == "tasks/get" && message["result"]["status"] == "cancelled" {
                message["result"]["status"] = json!("completed");
            }
            vec![message]
        }),
    ),
    animal(
        "task-result-too-early",
        "gives the result of a task that is still at work",
        "task-result-waits-for-task-end",
        WIRES,
        LEGACY,
        Twist::Fixtures(|heard, mut message| {
            // What comes first of this request is its progress, while it waits.
            if heard.method() == "tasks/get" && message["result"]["status"] == "completed" {
                message["result"]["status"] = json!("working");
            }
            vec![message]
        }),
    ),
    animal(
        "task-result-given-once",
        "gives the result of a task to the first who asks",
        "task-result-is-stable",
        WIRES,
        LEGACY,
        Twist::Fixtures(|heard, message| {
            if heard.method() != "tasks/result" || message["result"].is_null() {
                return vec![message];
            }
            let id = heard.params()["taskId"].clone();
            let mut memory = heard.server.memory();
            if memory["given"] == id {
                return vec![refuse(heard, -32603, "the result was fetched already")];
            }
            memory["given"] = id;
            vec![message]
        }),
    ),
    animal(
        "task-result-of-another",
        "names another task in its results",
        "task-result-names-its-task",
        WIRES,
        LEGACY,
        Twist::Fixtures(|heard, mut message| {
            if heard.method() == "tasks/result" && message["result"].is_object() {
                message["result"]["_meta"][RELATED]["taskId"] = json!("another-task");
            }
            vec![message]
        }),
    ),
    animal(
        "task-result-of-none",
        "names no task in its results",
        "message-matches-schema",
        WIRES,
        LEGACY,
        Twist::Fixtures(|heard, mut message| {
            if heard.method() == "tasks/result" && message["result"].is_object() {
                remove(&mut message["result"], "_meta");
            }
            vec![message]
        }),
    ),
    animal(
        "task-without-dates",
        "does not tell when a task was made",
        "message-matches-schema",
        WIRES,
        LEGACY,
        Twist::Fixtures(|heard, mut message| {
            if heard.method() == "tasks/get" && message["result"].is_object() {
                remove(&mut message["result"], "createdAt");
            }
            vec![message]
        }),
    ),
    animal(
        "task-named-twice",
        "names a task in `_meta` of its state",
        "task-status-has-no-related-task-meta",
        WIRES,
        LEGACY,
        Twist::Fixtures(|heard, mut message| {
            if heard.method() == "tasks/get" && message["result"].is_object() {
                message["result"]["_meta"] = json!({ RELATED: { "taskId": heard.params()["taskId"] } });
            }
            vec![message]
        }),
    ),
    animal(
        "task-taken-from-meta",
        "looks for a task where `_meta` says",
        "task-id-in-params-takes-precedence",
        WIRES,
        LEGACY,
        Twist::Fixtures(|heard, mut message| {
            let other = &heard.params()["_meta"][RELATED]["taskId"];
            if heard.method() == "tasks/get" && other.is_string() && message["result"].is_object() {
                message["result"]["taskId"] = other.clone();
                message["result"]["status"] = json!("completed");
            }
            vec![message]
        }),
    ),
    animal(
        "task-unlisted",
        "lists no tasks that are at work",
        "task-list-has-each-task",
        WIRES,
        LEGACY,
        Twist::Fixtures(|_, mut message| {
            if let Some(tasks) = message.pointer_mut("/result/tasks").and_then(Value::as_array_mut) {
                tasks.retain(|task| task["status"] != "working");
            }
            vec![message]
        }),
    ),
    animal(
        "task-cancelled-later",
        "answers that a cancelled task is at work",
        "task-cancel-sets-status-cancelled",
        WIRES,
        LEGACY,
        Twist::Fixtures(|heard, mut message| {
            if heard.method() == "tasks/cancel" && message["result"].is_object() {
                message["result"]["status"] = json!("working");
            }
            vec![message]
        }),
    ),
    animal(
        "task-cancelled-twice",
        "cancels what was cancelled before",
        "ended-task-cannot-be-canceled",
        WIRES,
        LEGACY,
        Twist::Fixtures(|heard, message| {
            let refused = message["error"]["message"].as_str().unwrap_or_default();
            match heard.method() == "tasks/cancel" && refused.contains("cancelled already") {
                true => vec![result(heard.id(), state(heard.params()["taskId"].as_str().unwrap_or_default(), "cancelled"))],
                false => vec![message],
            }
        }),
    ),
    animal(
        "task-unknown-breaks",
        "calls an unknown task an internal error",
        "task-unknown-is-refused",
        WIRES,
        LEGACY,
        Twist::Fixtures(|heard, message| match heard.method() == "tasks/result" && message["error"]["message"] == "Unknown task" {
            true => vec![refuse(heard, -32603, "Internal error")],
            false => vec![message],
        }),
    ),
    animal(
        "task-where-none-is",
        "calls a tool that has no tasks all the same",
        "call-as-task-is-refused-where-forbidden",
        WIRES,
        LEGACY,
        Twist::Fixtures(|heard, message| match heard.params().get("task").is_some() && is_error(&message) {
            true => vec![result(heard.id(), done())],
            false => vec![message],
        }),
    ),
    animal(
        "task-not-needed",
        "calls a tool that has to be a task without one",
        "call-without-needed-task-is-refused",
        WIRES,
        LEGACY,
        Twist::Fixtures(|heard, message| {
            match heard.calls("count_animals") && heard.params().get("task").is_none() && is_error(&message) {
                true => vec![result(heard.id(), done())],
                false => vec![message],
            }
        }),
    ),
    animal(
        "task-progress-after-its-end",
        "reports progress of a task that was cancelled",
        "task-progress-ends-with-task",
        &["stdio"],
        LEGACY,
        Twist::Fixtures(|heard, message| {
            if makes_task(&message) {
                heard.server.memory()["token"] = heard.params()["_meta"]["progressToken"].clone();
            }
            let mut all = vec![message];
            if heard.method() == "tasks/cancel" && all[0]["result"].is_object() {
                let params = json!({ "progressToken": heard.server.memory()["token"], "progress": 9 });
                all.push(notification("notifications/progress", params));
            }
            all
        }),
    ),
    animal("task-ids-counted", "counts its tasks", "task-id-is-unguessable", HTTP, LEGACY, Twist::Fixtures(counted)),
];

/// The message with a number for the id of its task; what asks for that is given the state of that very task.
fn counted(heard: &Heard, mut message: Value) -> Vec<Value> {
    if makes_task(&message) {
        let mut memory = heard.server.memory();
        let count = memory["tasks"].as_u64().unwrap_or_default() + 1;
        memory["tasks"] = json!(count);
        message["result"]["task"]["taskId"] = json!(format!("task-{count}"));
    }
    vec![message]
}

fn makes_task(message: &Value) -> bool {
    message["result"]["task"].is_object()
}

fn state(id: &str, status: &str) -> Value {
    let moment = "2025-11-25T12:00:00Z";
    json!({ "taskId": id, "status": status, "createdAt": moment, "lastUpdatedAt": moment, "ttl": null })
}

fn done() -> Value {
    json!({ "content": [{ "type": "text", "text": "done" }] })
}
