//! Tasks of 2025-11-25 (basic/utilities/tasks): two tools of the server with fixtures, one that may become a task and one that has to.

use super::Server;
use super::features;
use super::message::{METHOD_NOT_FOUND, Outlet, Received, RpcError, notification};
use super::ticket::Ticket;
use serde_json::{Value, json};
use std::sync::{MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// The one revision that has them.
const REVISION: &str = "2025-11-25";
/// The tool that may become a task, and the one that has to.
pub(super) const TOOLS: [(&str, &str); 2] = [("feed_animals", "optional"), ("count_animals", "required")];
const RELATED: &str = "io.modelcontextprotocol/related-task";
/// Any moment will do.
const CREATED: &str = "2025-11-25T12:00:00Z";
const LASTS: Duration = Duration::from_millis(400);
const TICK: Duration = Duration::from_millis(20);

/// A call that goes on after it was answered.
pub(super) struct LegacyTask {
    id: String,
    tool: String,
    token: Value,
    ttl: Value,
    began: Instant,
    is_cancelled: bool,
}

impl LegacyTask {
    fn status(&self) -> &'static str {
        match self.began.elapsed() < LASTS {
            _ if self.is_cancelled => "cancelled",
            true => "working",
            false => "completed",
        }
    }

    fn state(&self) -> Value {
        json!({
            "taskId": self.id,
            "status": self.status(),
            "createdAt": CREATED,
            "lastUpdatedAt": CREATED,
            "ttl": self.ttl,
            "pollInterval": 100,
        })
    }
}

impl Server {
    fn legacy_tasks(&self) -> MutexGuard<'_, Vec<LegacyTask>> {
        self.legacy_tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether this is for somebody who may know these tasks.
pub(super) fn has_tasks(received: &Received) -> bool {
    received.version == REVISION && received.server.catalogue.tool(TOOLS[0].0).is_some()
}

/// What the server declares.
pub(super) fn capability() -> Value {
    json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } })
}

/// What a tool says of tasks; nothing if it says nothing.
fn support(tool: &str) -> Option<&'static str> {
    TOOLS.into_iter().find(|(name, _)| *name == tool).map(|(_, support)| support)
}

/// The tools of a list with what they say of tasks.
pub(super) fn mark(tools: &mut Value) {
    for tool in tools.as_array_mut().into_iter().flatten() {
        if let Some(support) = tool["name"].as_str().and_then(support) {
            tool["execution"] = json!({ "taskSupport": support });
        }
    }
}

/// The result of a call that becomes a task, or its refusal; nothing if it is an ordinary one.
pub(super) fn call(received: &Received, tool: &str) -> Option<Result<Value, RpcError>> {
    if !has_tasks(received) {
        return None;
    }
    let refused = |why: &str| Some(Err(RpcError::new(METHOD_NOT_FOUND, format!("`{tool}` {why}"))));
    match (received.params().get("task"), support(tool)) {
        (None, Some("required")) => refused("has to be called as a task"),
        (None, _) => None,
        (Some(_), None) => refused("cannot be called as a task"),
        (Some(task), Some(_)) => {
            let task = LegacyTask {
                id: Uuid::new_v4().to_string(),
                tool: tool.to_owned(),
                token: received.params()["_meta"]["progressToken"].clone(),
                ttl: task["ttl"].clone(),
                began: Instant::now(),
                is_cancelled: false,
            };
            let created = json!({ "task": task.state() });
            received.server.legacy_tasks().push(task);
            Some(Ok(created))
        }
    }
}

/// What a tool says in the end, as a task or without.
pub(super) fn finished(tool: &str) -> Option<Value> {
    support(tool).map(|_| json!({ "content": [{ "type": "text", "text": format!("{tool} is done") }] }))
}

/// The result of a method of tasks; `None` if it was cancelled.
pub(super) fn answer(received: &Received, ticket: &Ticket, outlet: &dyn Outlet) -> Result<Option<Value>, RpcError> {
    if received.method() == "tasks/list" {
        let all: Vec<Value> = received.server.legacy_tasks().iter().map(LegacyTask::state).collect();
        return features::page(received, "tasks", &all).map(Some);
    }
    match received.method() {
        "tasks/get" => with_task(received, |task| Ok(task.state())).map(Some),
        "tasks/cancel" => with_task(received, |task| {
            if task.status() != "working" {
                return Err(RpcError::invalid_params(format!("the task is {} already", task.status())));
            }
            task.is_cancelled = true;
            Ok(task.state())
        })
        .map(Some),
        "tasks/result" => outcome(received, ticket, outlet),
        _ => Err(RpcError::new(METHOD_NOT_FOUND, format!("Method not found: {}", received.method()))),
    }
}

fn with_task<T>(received: &Received, act: impl FnOnce(&mut LegacyTask) -> Result<T, RpcError>) -> Result<T, RpcError> {
    let mut tasks = received.server.legacy_tasks();
    let task = tasks.iter_mut().find(|task| received.params()["taskId"] == *task.id);
    act(task.ok_or_else(|| RpcError::invalid_params("Unknown task"))?)
}

/// Waits for the end of a task.
fn outcome(received: &Received, ticket: &Ticket, outlet: &dyn Outlet) -> Result<Option<Value>, RpcError> {
    let (token, id) = with_task(received, |task| Ok((task.token.clone(), task.id.clone())))?;
    let related = json!({ RELATED: { "taskId": id } });
    if !token.is_null() && with_task(received, |task| Ok(task.status()))? == "working" {
        let params = json!({ "progressToken": token, "progress": 1, "_meta": related });
        received.send(notification("notifications/progress", params), outlet);
    }
    loop {
        let (status, tool) = with_task(received, |task| Ok((task.status(), task.tool.clone())))?;
        match status {
            "working" if !ticket.is_wanted(received.is_modern(), outlet) => return Ok(None),
            "working" => sleep(TICK),
            "cancelled" => return Err(RpcError::invalid_params("the task was cancelled, and has no result")),
            _ => {
                let mut result = finished(&tool).unwrap_or_default();
                result["_meta"] = related;
                return Ok(Some(result));
            }
        }
    }
}
