//! Broken servers that break requirements of 2025-11-25 about tasks.

use super::changes::{is_error, refuse, remove};
use super::deviation::Deviation;
use super::server::{Received, notification, result};
use super::{BrokenServer, HTTP, LEGACY, broken_server};
use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const WIRES: &[&str] = &["stdio", "http"];
const RELATED: &str = "io.modelcontextprotocol/related-task";

pub(super) const BROKEN_SERVERS: &[BrokenServer] = &[
    broken_server(
        "task-undeclared",
        "makes a task of a call, and has not declared that it can",
        "undeclared-task-request-is-ignored",
        WIRES,
        LEGACY,
        Deviation::Outgoing(|received, message| {
            let is_task = received.method() == "tools/call" && received.params().get("task").is_some();
            // What is logged meanwhile is no response.
            match is_task && message.get("method").is_none() {
                true => vec![result(received.id(), json!({ "task": state("a-task", "working") }))],
                false => vec![message],
            }
        }),
    ),
    broken_server(
        "task-status-undeclared",
        "tells the status of a task, and has not declared tasks",
        "notifications-are-declared",
        WIRES,
        LEGACY,
        Deviation::Extra(|received| match received.method() {
            "tools/list" => vec![notification("notifications/tasks/status", state("a-task", "working"))],
            _ => Vec::new(),
        }),
    ),
    broken_server(
        "task-status-of-nobody",
        "tells the status of a task that nobody has created",
        "task-status-names-known-task",
        WIRES,
        LEGACY,
        Deviation::Fixtures(|received, message| match received.method() == "tools/list" && message.get("result").is_some() {
            true => vec![notification("notifications/tasks/status", state("a-task", "working")), message],
            false => vec![message],
        }),
    ),
    broken_server(
        "task-call-waits",
        "answers a call as a task with its result",
        "call-as-task-returns-task",
        WIRES,
        LEGACY,
        Deviation::Fixtures(|received, message| match makes_task(&message) {
            true => vec![result(received.id(), done())],
            false => vec![message],
        }),
    ),
    broken_server(
        "task-begins-in-need",
        "makes tasks that need input from the first moment",
        "new-task-status-is-working",
        WIRES,
        LEGACY,
        Deviation::Fixtures(|_, mut message| {
            if makes_task(&message) {
                message["result"]["task"]["status"] = json!("input_required");
            }
            vec![message]
        }),
    ),
    broken_server(
        "task-ids-alike",
        "gives two tasks the same id",
        "task-ids-differ",
        WIRES,
        LEGACY,
        Deviation::Fixtures(|received, mut message| {
            if makes_task(&message) {
                let mut memory = received.server.memory();
                if memory["task"].is_null() {
                    memory["task"] = message["result"]["task"]["taskId"].clone();
                }
                message["result"]["task"]["taskId"] = memory["task"].clone();
            }
            vec![message]
        }),
    ),
    broken_server(
        "task-comes-back",
        "completes a task that was cancelled",
        "task-terminal-status-is-final",
        WIRES,
        LEGACY,
        Deviation::Fixtures(|received, mut message| {
            if received.method() == "tasks/get" && message["result"]["status"] == "cancelled" {
                message["result"]["status"] = json!("completed");
            }
            vec![message]
        }),
    ),
    broken_server(
        "task-completes-after-its-cancellation",
        "goes on with the work of a canceled task, and completes it when that is done",
        "task-terminal-status-is-final",
        WIRES,
        LEGACY,
        Deviation::Fixtures(|received, mut message| {
            static CANCELED: Mutex<Option<Instant>> = Mutex::new(None);
            let mut canceled = CANCELED.lock().unwrap_or_else(PoisonError::into_inner);
            if received.method() == "tasks/cancel" && message["result"].is_object() {
                *canceled = Some(Instant::now());
            }
            let is_done = canceled.is_some_and(|since| since.elapsed() > Duration::from_millis(200));
            if received.method() == "tasks/get" && is_done && message["result"]["status"] == "cancelled" {
                message["result"]["status"] = json!("completed");
            }
            vec![message]
        }),
    ),
    broken_server(
        "task-result-too-early",
        "gives the result of a task that is still at work",
        "task-result-waits-for-task-end",
        WIRES,
        LEGACY,
        Deviation::Fixtures(|received, mut message| {
            // What comes first of this request is its progress, while it waits.
            if received.method() == "tasks/get" && message["result"]["status"] == "completed" {
                message["result"]["status"] = json!("working");
            }
            vec![message]
        }),
    ),
    broken_server(
        "task-result-given-once",
        "gives the result of a task to the first who asks",
        "task-result-is-stable",
        WIRES,
        LEGACY,
        Deviation::Fixtures(|received, message| {
            if received.method() != "tasks/result" || message["result"].is_null() {
                return vec![message];
            }
            let id = received.params()["taskId"].clone();
            let mut memory = received.server.memory();
            if memory["given"] == id {
                return vec![refuse(received, -32603, "the result was fetched already")];
            }
            memory["given"] = id;
            vec![message]
        }),
    ),
    broken_server(
        "task-result-of-another",
        "names another task in its results",
        "task-result-names-its-task",
        WIRES,
        LEGACY,
        Deviation::Fixtures(|received, mut message| {
            if received.method() == "tasks/result" && message["result"].is_object() {
                message["result"]["_meta"][RELATED]["taskId"] = json!("another-task");
            }
            vec![message]
        }),
    ),
    broken_server(
        "task-result-of-none",
        "names no task in its results",
        "message-matches-schema",
        WIRES,
        LEGACY,
        Deviation::Fixtures(|received, mut message| {
            if received.method() == "tasks/result" && message["result"].is_object() {
                remove(&mut message["result"], "_meta");
            }
            vec![message]
        }),
    ),
    broken_server(
        "task-without-dates",
        "does not tell when a task was made",
        "message-matches-schema",
        WIRES,
        LEGACY,
        Deviation::Fixtures(|received, mut message| {
            if received.method() == "tasks/get" && message["result"].is_object() {
                remove(&mut message["result"], "createdAt");
            }
            vec![message]
        }),
    ),
    broken_server(
        "task-named-twice",
        "names a task in `_meta` of its state",
        "task-status-has-no-related-task-meta",
        WIRES,
        LEGACY,
        Deviation::Fixtures(|received, mut message| {
            if received.method() == "tasks/get" && message["result"].is_object() {
                message["result"]["_meta"] = json!({ RELATED: { "taskId": received.params()["taskId"] } });
            }
            vec![message]
        }),
    ),
    broken_server(
        "task-taken-from-meta",
        "looks for a task where `_meta` says",
        "task-id-in-params-takes-precedence",
        WIRES,
        LEGACY,
        Deviation::Fixtures(|received, mut message| {
            let other = &received.params()["_meta"][RELATED]["taskId"];
            if received.method() == "tasks/get" && other.is_string() && message["result"].is_object() {
                message["result"]["taskId"] = other.clone();
                message["result"]["status"] = json!("completed");
            }
            vec![message]
        }),
    ),
    broken_server(
        "task-unlisted",
        "lists no tasks that are at work",
        "task-list-has-each-task",
        WIRES,
        LEGACY,
        Deviation::Fixtures(|_, mut message| {
            if let Some(tasks) = message.pointer_mut("/result/tasks").and_then(Value::as_array_mut) {
                tasks.retain(|task| task["status"] != "working");
            }
            vec![message]
        }),
    ),
    broken_server(
        "task-cancelled-later",
        "answers that a cancelled task is at work",
        "task-cancel-sets-status-cancelled",
        WIRES,
        LEGACY,
        Deviation::Fixtures(|received, mut message| {
            if received.method() == "tasks/cancel" && message["result"].is_object() {
                message["result"]["status"] = json!("working");
            }
            vec![message]
        }),
    ),
    broken_server(
        "task-cancelled-twice",
        "cancels what was cancelled before",
        "ended-task-cannot-be-canceled",
        WIRES,
        LEGACY,
        Deviation::Fixtures(|received, message| {
            let refused = message["error"]["message"].as_str().unwrap_or_default();
            match received.method() == "tasks/cancel" && refused.contains("cancelled already") {
                true => vec![result(received.id(), state(received.params()["taskId"].as_str().unwrap_or_default(), "cancelled"))],
                false => vec![message],
            }
        }),
    ),
    broken_server(
        "task-unknown-breaks",
        "calls an unknown task an internal error",
        "task-unknown-is-refused",
        WIRES,
        LEGACY,
        Deviation::Fixtures(|received, message| {
            match received.method() == "tasks/result" && message["error"]["message"] == "Unknown task" {
                true => vec![refuse(received, -32603, "Internal error")],
                false => vec![message],
            }
        }),
    ),
    broken_server(
        "task-where-none-is",
        "calls a tool that has no tasks all the same",
        "call-as-task-is-refused-where-forbidden",
        WIRES,
        LEGACY,
        Deviation::Fixtures(|received, message| match received.params().get("task").is_some() && is_error(&message) {
            true => vec![result(received.id(), done())],
            false => vec![message],
        }),
    ),
    broken_server(
        "task-not-needed",
        "calls a tool that has to be a task without one",
        "call-without-needed-task-is-refused",
        WIRES,
        LEGACY,
        Deviation::Fixtures(|received, message| {
            match received.calls("count_animals") && received.params().get("task").is_none() && is_error(&message) {
                true => vec![result(received.id(), done())],
                false => vec![message],
            }
        }),
    ),
    broken_server(
        "task-progress-after-its-end",
        "reports progress of a task that was cancelled",
        "task-progress-ends-with-task",
        &["stdio"],
        LEGACY,
        Deviation::Fixtures(|received, message| {
            if makes_task(&message) {
                received.server.memory()["token"] = received.params()["_meta"]["progressToken"].clone();
            }
            let mut all = vec![message];
            if received.method() == "tasks/cancel" && all[0]["result"].is_object() {
                let params = json!({ "progressToken": received.server.memory()["token"], "progress": 9 });
                all.push(notification("notifications/progress", params));
            }
            all
        }),
    ),
    broken_server("task-ids-counted", "counts its tasks", "task-id-is-unguessable", HTTP, LEGACY, Deviation::Fixtures(counted)),
];

/// The message with a number for the id of its task; what asks for that is given the state of that very task.
fn counted(received: &Received, mut message: Value) -> Vec<Value> {
    if makes_task(&message) {
        let mut memory = received.server.memory();
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
