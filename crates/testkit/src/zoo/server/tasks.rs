//! Tasks (extension io.modelcontextprotocol/tasks), as the fixtures of the official conformance suite make them.

use super::message::{METHOD_NOT_FOUND, Received, RpcError};
use super::{Server, fixtures};
use serde_json::{Map, Value, json};
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;

pub(super) const EXTENSION: &str = "/extensions/io.modelcontextprotocol~1tasks";
/// What the extension is declared under, among capabilities.
pub(super) const DECLARED: &str = "io.modelcontextprotocol/tasks";
const MISSING_CAPABILITY: i64 = -32021;
/// Any moment will do.
const CREATED: &str = "2026-07-28T12:00:00Z";

/// One call that goes on after it was answered.
pub(super) struct Task {
    /// Begins with the name of the tool.
    id: String,
    began: Instant,
    lasts: Duration,
    /// What it waits for, and what it has.
    wants: &'static [&'static str],
    given: Map<String, Value>,
    is_cancelled: bool,
}

impl Server {
    fn tasks(&self) -> MutexGuard<'_, Vec<Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Task {
    fn is_missing(&self, key: &str) -> bool {
        !self.given.contains_key(key)
    }

    fn state(&self) -> Value {
        let missing: Map<String, Value> =
            self.wants.iter().filter(|key| self.is_missing(key)).map(|key| ((*key).to_owned(), fixtures::yes_or_no())).collect();
        let mut state = json!({ "taskId": self.id, "createdAt": CREATED, "lastUpdatedAt": CREATED, "ttlMs": null, "pollIntervalMs": 100 });
        let text = |text: String| json!([{ "type": "text", "text": text }]);
        if self.is_cancelled {
            state["status"] = json!("cancelled");
        } else if !missing.is_empty() {
            state["status"] = json!("input_required");
            state["inputRequests"] = Value::Object(missing);
        } else if self.began.elapsed() < self.lasts {
            state["status"] = json!("working");
        } else if self.id.starts_with("protocol_error_job") {
            state["status"] = json!("failed");
            state["error"] = json!({ "code": -32603, "message": "broken on purpose" });
        } else {
            state["status"] = json!("completed");
            state["result"] = json!({ "content": text(format!("done with {}", Value::Object(self.given.clone()))) });
            if self.id.starts_with("failing_job") {
                state["result"]["isError"] = json!(true);
            }
        }
        state
    }
}

pub(super) fn needs_extension() -> RpcError {
    let capabilities = json!({ "requiredCapabilities": { "extensions": { DECLARED: {} } } });
    RpcError::new(MISSING_CAPABILITY, "tasks are needed").with(capabilities)
}

/// The result of a method of the extension.
pub(super) fn answer(received: &Received) -> Result<Value, RpcError> {
    let known = matches!(received.method(), "tasks/get" | "tasks/update" | "tasks/cancel");
    if !known || !received.is_modern() || received.server.catalogue.capabilities.pointer(EXTENSION).is_none() {
        return Err(RpcError::new(METHOD_NOT_FOUND, format!("Method not found: {}", received.method())));
    }
    if !received.client_can(EXTENSION) {
        return Err(needs_extension());
    }
    let mut tasks = received.server.tasks();
    let task =
        tasks.iter_mut().find(|task| received.params()["taskId"] == *task.id).ok_or_else(|| RpcError::invalid_params("Unknown task"))?;
    Ok(match received.method() {
        "tasks/get" => task.state(),
        "tasks/cancel" => {
            let status = task.state();
            task.is_cancelled |= matches!(status["status"].as_str(), Some("working" | "input_required"));
            json!({})
        }
        _ => {
            let responses = received.params()["inputResponses"].as_object();
            task.given.extend(responses.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
            json!({})
        }
    })
}

/// The result of a tool that may become a task; nothing if it is another.
pub(super) fn call(received: &Received, name: &str, arguments: &Value) -> Option<Result<Value, RpcError>> {
    const SHORT: Duration = Duration::from_millis(200);
    let (lasts, wants): (Duration, &'static [&'static str]) = match name {
        "greet" => {
            let text = format!("Hello, {}!", arguments["name"].as_str().unwrap_or("you"));
            return Some(Ok(json!({ "content": [{ "type": "text", "text": text }] })));
        }
        "slow_compute" => (Duration::from_secs(arguments["seconds"].as_u64().unwrap_or(1).min(60)), &[]),
        "failing_job" | "protocol_error_job" | "test_tool_with_task" => (SHORT, &[]),
        "confirm_delete" => (SHORT, &["confirm"]),
        "multi_input" => (SHORT, &["first", "second"]),
        _ => return None,
    };
    if !received.is_modern() || !received.client_can(EXTENSION) {
        let is_quick = name == "slow_compute" || !received.is_modern();
        let done = json!({ "content": [{ "type": "text", "text": "done" }] });
        return Some(if is_quick { Ok(done) } else { Err(needs_extension()) });
    }
    let given = match name {
        "test_tool_with_task" => match fixtures::dialogue(received, name) {
            Ok(result) if result["resultType"] != "input_required" => received.params()["inputResponses"].as_object().cloned(),
            other => return Some(other),
        },
        _ => None,
    };
    let id = format!("{name}-{}", Uuid::new_v4());
    let task = Task { id, began: Instant::now(), lasts, wants, given: given.unwrap_or_default(), is_cancelled: false };
    let mut created = json!({ "resultType": "task", "taskId": task.id, "status": "working" });
    for member in ["createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"] {
        created[member] = task.state()[member].clone();
    }
    received.server.tasks().push(task);
    Some(Ok(created))
}
