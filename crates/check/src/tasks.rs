//! A client of 2025-11-25 that calls tools as tasks (basic/utilities/tasks): it makes a task, waits for its end, makes another one and
//! cancels that, and asks for what does not exist. Knows what to ask, not what is right.

use super::calls::Callable;
use super::explorer::{Explorer, ParallelRequest};
use mcproof_analysis::probes::{MISLED, RELATED};
use mcproof_client::Session;
use mcproof_protocol::{Revision, methods};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// What is asked for, in milliseconds: longer than this conversation lasts.
const TTL: u64 = 60_000;
/// How long the end of a task is waited for.
const WORK: Duration = Duration::from_secs(5);
/// How long a call that becomes no task is waited for.
const CALL: Duration = Duration::from_millis(1200);
/// The same for a state: some servers keep it until somebody asks for the result.
const STATE: Duration = Duration::from_millis(700);
/// How much longer than the first task the work of a canceled one may take.
const AFTER_WORK: Duration = Duration::from_millis(300);
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

/// Tasks that have ended, and the moment at which the work of the canceled one would have ended as well: whoever lets it go on may change its
/// status only then.
pub(super) struct LastLook {
    tasks: Vec<String>,
    at: Instant,
}

impl LastLook {
    /// Asks for each task once more, as late as that.
    pub(super) async fn take(self, explorer: &mut Explorer<'_>) {
        if explorer.is_over() {
            return;
        }
        sleep_until(self.at).await;
        for task in &self.tasks {
            status(explorer, "after its work", task).await;
        }
    }
}

/// Tools that may be called at all.
pub(super) async fn take(explorer: &mut Explorer<'_>, tools: &[Callable]) -> Option<LastLook> {
    if explorer.is_modern() || !Revision::at(explorer.revision()).has_tasks() || explorer.is_over() {
        return None;
    }
    let first = |support: fn(Support) -> bool| tools.iter().find(|tool| support(Support::of(tool)));
    let plain = first(|support| support == Support::None);
    if !explorer.declares("tasks/requests/tools/call") {
        if let Some(tool) = plain {
            call(explorer, "task-undeclared", tool, true).await;
        }
        return None;
    }
    if let Some(tool) = plain {
        call(explorer, "task-forbidden", tool, true).await;
    }
    if let Some(tool) = first(|support| support == Support::Required) {
        call(explorer, "task-needed", tool, false).await;
    }
    unknown(explorer).await;
    lives(explorer, first(|support| support != Support::None)?).await
}

/// A call that is not to become a task, which may take its time.
async fn call(explorer: &mut Explorer<'_>, probe: &'static str, tool: &Callable, as_task: bool) {
    let mut call = tool.call(probe, tool.arguments.clone());
    if as_task {
        call.params["task"] = json!({ "ttl": TTL });
    }
    explorer.request_in_parallel(&[call], CALL, Instant::now() + CALL).await;
}

async fn unknown(explorer: &mut Explorer<'_>) {
    let mut methods = vec![methods::TASKS_GET, methods::TASKS_RESULT];
    methods.extend(explorer.declares("tasks/cancel").then_some(methods::TASKS_CANCEL));
    for method in methods {
        explorer.send_request("task-unknown", Some(method), method, json!({ "taskId": UNKNOWN })).await;
    }
    if explorer.declares("tasks/list") {
        explorer.send_request("task-unknown", Some(methods::TASKS_LIST), methods::TASKS_LIST, json!({ "cursor": UNKNOWN })).await;
    }
}

/// One task that may end by itself, and one that is cancelled.
async fn lives(explorer: &mut Explorer<'_>, tool: &Callable) -> Option<LastLook> {
    let first = create(explorer, tool, 1).await?;
    let began = Instant::now();
    status(explorer, "after it was made", &first).await;
    if explorer.declares("tasks/list") {
        let list = async |session: &Session, deadline: Duration| session.list(methods::TASKS_LIST, "tasks", deadline).await;
        // What came of it is in the transcript.
        let _ = explorer.together_on("task-list", Some(&first), list).await;
    }
    let wanted =
        ParallelRequest { probe: "task-result", subject: first.clone(), method: methods::TASKS_RESULT, params: json!({ "taskId": first }) };
    let outcomes = explorer.request_in_parallel(&[wanted], WORK, Instant::now() + WORK).await;
    let worked = outcomes.first().and_then(|outcome| outcome.response.as_ref()).map_or(Duration::ZERO, |_| began.elapsed());
    status(explorer, "after its result", &first).await;
    if outcomes.first().is_some_and(|outcome| outcome.response.is_some()) {
        explorer.send_request("task-result-again", Some(&first), methods::TASKS_RESULT, json!({ "taskId": first })).await;
        cancel(explorer, "task-cancel-ended", &first).await;
    } else {
        cancel(explorer, "task-cancel", &first).await;
    }
    status(explorer, "at last", &first).await;
    let second = create(explorer, tool, 2).await?;
    let at = Instant::now() + worked + AFTER_WORK;
    let misleading = json!({ "taskId": second, "_meta": { RELATED: { "taskId": first } } });
    let misled = ParallelRequest { probe: "task-status", subject: MISLED.into(), method: methods::TASKS_GET, params: misleading };
    explorer.request_in_parallel(&[misled], STATE, Instant::now() + STATE).await;
    cancel(explorer, "task-cancel", &second).await;
    status(explorer, "after it was cancelled", &second).await;
    cancel(explorer, "task-cancel-ended", &second).await;
    status(explorer, "at last", &second).await;
    explorer.mark_unfinished_work();
    Some(LastLook { tasks: vec![first, second], at })
}

async fn create(explorer: &mut Explorer<'_>, tool: &Callable, number: usize) -> Option<String> {
    let meta = json!({ "progressToken": format!("mcproof-task-{number}") });
    let params = json!({ "name": tool.name, "arguments": tool.arguments, "task": { "ttl": TTL }, "_meta": meta });
    let created = explorer.send_request("task-create", Some(&tool.name), methods::TOOLS_CALL, params).await?.ok()?;
    created.pointer("/task/taskId")?.as_str().map(str::to_owned)
}

async fn status(explorer: &mut Explorer<'_>, when: &str, id: &str) {
    explorer.send_request("task-status", Some(when), methods::TASKS_GET, json!({ "taskId": id })).await;
}

async fn cancel(explorer: &mut Explorer<'_>, probe: &str, id: &str) {
    if explorer.declares("tasks/cancel") {
        explorer.send_request(probe, Some(id), methods::TASKS_CANCEL, json!({ "taskId": id })).await;
    }
}
