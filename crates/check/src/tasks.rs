//! A client of 2025-11-25 that calls tools as tasks (basic/utilities/tasks): it makes a task, waits for its end, makes another one and
//! cancels that, and asks for what does not exist. Knows what to ask, not what is right.

use super::calls::Callable;
use super::visit::{Bird, Visit};
use mcproof_analysis::probes::MISLED;
use mcproof_analysis::probes::RELATED;
use mcproof_client::Session;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// The one revision that has them.
const REVISION: &str = "2025-11-25";
/// What is asked for, in milliseconds: longer than this conversation takes.
const TTL: u64 = 60_000;
/// How long the end of a task is waited for.
const WORK: Duration = Duration::from_secs(5);
/// How long a call that becomes no task is waited for.
const CALL: Duration = Duration::from_millis(1200);
/// The same for a state: some servers keep it until somebody asks for the result.
const STATE: Duration = Duration::from_millis(700);
/// No task, and no page.
const UNKNOWN: &str = "mcproof-no-such-task";

/// Whether a tool may be called as a task, and only so.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Support {
    None,
    Optional,
    Required,
}

impl Support {
    fn of(tool: &Callable) -> Self {
        match tool.tool.pointer("/execution/taskSupport").and_then(Value::as_str) {
            Some("optional") => Self::Optional,
            Some("required") => Self::Required,
            _ => Self::None,
        }
    }
}

/// Tools that may be called at all.
pub(super) async fn take(visit: &mut Visit<'_>, tools: &[Callable]) {
    if visit.is_modern() || visit.revision() != REVISION || visit.is_over() {
        return;
    }
    let first = |support: fn(Support) -> bool| tools.iter().find(|tool| support(Support::of(tool)));
    let plain = first(|support| support == Support::None);
    if !visit.declares("tasks/requests/tools/call") {
        if let Some(tool) = plain {
            call(visit, "task-undeclared", tool, true).await;
        }
        return;
    }
    if let Some(tool) = plain {
        call(visit, "task-forbidden", tool, true).await;
    }
    if let Some(tool) = first(|support| support == Support::Required) {
        call(visit, "task-needed", tool, false).await;
    }
    unknown(visit).await;
    if let Some(tool) = first(|support| support != Support::None) {
        lives(visit, tool).await;
    }
}

/// A call that is not to become a task, which may take its time.
async fn call(visit: &mut Visit<'_>, probe: &'static str, tool: &Callable, as_task: bool) {
    let mut call = tool.call(probe, tool.arguments.clone());
    if as_task {
        call.params["task"] = json!({ "ttl": TTL });
    }
    visit.flock(&[call], CALL, Instant::now() + CALL).await;
}

async fn unknown(visit: &mut Visit<'_>) {
    let mut methods = vec!["tasks/get", "tasks/result"];
    methods.extend(visit.declares("tasks/cancel").then_some("tasks/cancel"));
    for method in methods {
        visit.ask("task-unknown", Some(method), method, json!({ "taskId": UNKNOWN })).await;
    }
    if visit.declares("tasks/list") {
        visit.ask("task-unknown", Some("tasks/list"), "tasks/list", json!({ "cursor": UNKNOWN })).await;
    }
}

/// One task that may end by itself, and one that is cancelled.
async fn lives(visit: &mut Visit<'_>, tool: &Callable) {
    let Some(first) = create(visit, tool, 1).await else { return };
    status(visit, "after it was made", &first).await;
    if visit.declares("tasks/list") {
        let list = async |session: &Session, deadline: Duration| session.list("tasks/list", "tasks", deadline).await;
        // What came of it is in the transcript.
        let _ = visit.together_on("task-list", Some(&first), list).await;
    }
    let wanted = Bird { probe: "task-result", subject: first.clone(), method: "tasks/result", params: json!({ "taskId": first }) };
    let landed = visit.flock(&[wanted], WORK, Instant::now() + WORK).await;
    status(visit, "after its result", &first).await;
    if landed.first().is_some_and(|landed| landed.answer.is_some()) {
        visit.ask("task-result-again", Some(&first), "tasks/result", json!({ "taskId": first })).await;
        cancel(visit, "task-cancel-ended", &first).await;
    } else {
        cancel(visit, "task-cancel", &first).await;
    }
    status(visit, "at last", &first).await;
    let Some(second) = create(visit, tool, 2).await else { return };
    let misleading = json!({ "taskId": second, "_meta": { RELATED: { "taskId": first } } });
    let misled = Bird { probe: "task-status", subject: MISLED.into(), method: "tasks/get", params: misleading };
    visit.flock(&[misled], STATE, Instant::now() + STATE).await;
    cancel(visit, "task-cancel", &second).await;
    status(visit, "after it was cancelled", &second).await;
    cancel(visit, "task-cancel-ended", &second).await;
    status(visit, "at last", &second).await;
    visit.leaves_work();
}

async fn create(visit: &mut Visit<'_>, tool: &Callable, number: usize) -> Option<String> {
    let meta = json!({ "progressToken": format!("mcproof-task-{number}") });
    let params = json!({ "name": tool.name, "arguments": tool.arguments, "task": { "ttl": TTL }, "_meta": meta });
    let created = visit.ask("task-create", Some(&tool.name), "tools/call", params).await?.ok()?;
    created.pointer("/task/taskId")?.as_str().map(str::to_owned)
}

async fn status(visit: &mut Visit<'_>, when: &str, id: &str) {
    visit.ask("task-status", Some(when), "tasks/get", json!({ "taskId": id })).await;
}

async fn cancel(visit: &mut Visit<'_>, probe: &str, id: &str) {
    if visit.declares("tasks/cancel") {
        visit.ask(probe, Some(id), "tasks/cancel", json!({ "taskId": id })).await;
    }
}
