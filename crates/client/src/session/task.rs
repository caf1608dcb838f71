//! Requests that run as tasks: a handle at once, the result later, by polling. One form for the tasks of 2025-11-25 and
//! for the extension `io.modelcontextprotocol/tasks` of the modern era; what differs stays in here.
//! Source: 2025-11-25, basic/utilities/tasks; SEP-2663.

mod call;
mod follow;

pub use call::Called;
pub(super) use call::TaskSupport;

use super::{CallFailure, ListFailure, Reply, Session};
use crate::jsonrpc::RpcError;
use mcproof_protocol::{Era, methods};
use mcproof_record::FrameId;
use mcproof_record::duration::readable;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// A task of the server, and what is known of it. Plain data: the session that it belongs to is given to what asks it.
#[derive(Clone, Debug)]
pub struct Task {
    state: TaskState,
    /// The request that became this task; `None` for a task that was found by its id.
    request: Option<FrameId>,
    asked: Instant,
    /// Where the next status notification is looked for.
    position: u64,
    /// When the server told the state.
    polled: Instant,
    /// How long was waited before the last poll, where the server does not say.
    unasked_interval: Option<Duration>,
    /// Input that was given already, by its key.
    given: HashSet<String>,
}

/// What the server said last of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskState {
    pub id: String,
    pub status: TaskStatus,
    pub message: Option<String>,
    /// How long to wait before the next poll, as the server wishes.
    pub poll_interval: Option<Duration>,
    /// The whole task, as it came.
    pub value: Value,
    pub frame: FrameId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStatus {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

/// How a task ended.
#[derive(Clone, Debug)]
pub struct TaskEnd {
    /// What the server said last. If that is no end, it gave the result too early, or forgot the task with it.
    pub status: TaskStatus,
    /// The response to the request that became the task, from which on it counts the time. `None` for a task that was
    /// canceled.
    pub reply: Option<Reply>,
}

/// Why a task could not be had, or did not come to its end.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TaskFailure {
    #[error("revision {version} has no tasks: they came with 2025-11-25")]
    NotInThisRevision { version: String },
    #[error("server does not declare {what}")]
    NotDeclared { what: &'static str },
    #[error("tool `{tool}` must not be called as a task: {reason}")]
    NotForThisTool { tool: String, reason: String },
    #[error(transparent)]
    Call(#[from] CallFailure),
    #[error(transparent)]
    List(#[from] ListFailure),
    #[error("{method} returned {error}")]
    Rpc { method: &'static str, error: RpcError, frame: FrameId },
    #[error("the response to {method} is not a task: {reason}")]
    NotATask { method: &'static str, reason: String, frame: FrameId },
    #[error("task `{id}` requests input that no client response covers: {}", .wanted.join(", "))]
    NoInput { id: String, wanted: Vec<String>, frame: FrameId },
    #[error("task `{id}` is still {status} after {}, {}", readable(*.after), describe_canceling(.cancelled))]
    TimedOut { id: String, status: TaskStatus, after: Duration, cancelled: Result<(), Box<Self>> },
}

fn describe_canceling(cancelled: &Result<(), Box<TaskFailure>>) -> String {
    match cancelled {
        Ok(()) => "and was canceled".to_owned(),
        Err(failure) => format!("and could not be canceled: {failure}"),
    }
}

impl TaskStatus {
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// The word of the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    fn named(name: &str) -> Option<Self> {
        let all = [Self::Working, Self::InputRequired, Self::Completed, Self::Failed, Self::Cancelled];
        all.into_iter().find(|status| status.name() == name)
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl TaskState {
    /// # Errors
    /// Why this is no task.
    fn read(value: &Value, frame: FrameId) -> Result<Self, String> {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let status = text("status").ok_or("it has no string `status`")?;
        // The extension put the unit into the name.
        let interval = value.get("pollInterval").or_else(|| value.get("pollIntervalMs"));
        Ok(Self {
            id: text("taskId").ok_or("it has no string `taskId`")?.to_owned(),
            status: TaskStatus::named(status).ok_or_else(|| format!("`{status}` is not a known status"))?,
            message: text("statusMessage").map(str::to_owned),
            poll_interval: interval.and_then(Value::as_u64).map(Duration::from_millis),
            value: value.clone(),
            frame,
        })
    }

    /// The state of this task and no other, in the response to `method`.
    fn of(id: &str, method: &'static str, value: &Value, frame: FrameId) -> Result<Self, TaskFailure> {
        let read = Self::read(value, frame).and_then(|state| match state.id == id {
            true => Ok(state),
            false => Err(format!("it is for task `{}`, not `{id}`", state.id)),
        });
        read.map_err(|reason| TaskFailure::NotATask { method, reason, frame })
    }
}

impl Task {
    fn new(state: TaskState, request: Option<FrameId>, asked: Instant, position: u64) -> Self {
        Self { state, request, asked, position, polled: Instant::now(), unasked_interval: None, given: HashSet::new() }
    }

    pub fn id(&self) -> &str {
        &self.state.id
    }

    pub fn state(&self) -> &TaskState {
        &self.state
    }

    /// Asks for the state once, by `tasks/get`.
    ///
    /// # Errors
    /// There was no response, an error, or no task in it.
    pub async fn refresh(&mut self, session: &Session, deadline: Duration) -> Result<&TaskState, TaskFailure> {
        self.get(session, deadline).await?;
        Ok(&self.state)
    }

    async fn get(&mut self, session: &Session, deadline: Duration) -> Result<Reply, TaskFailure> {
        const METHOD: &str = methods::TASKS_GET;
        let reply = session.request_of_task(METHOD, self.id(), Map::new(), deadline).await?;
        let result = succeeded(METHOD, &reply)?;
        self.adopt(METHOD, result, reply.frame)?;
        Ok(reply)
    }

    /// Asks the server to stop. In the modern era it only takes note of that: the task may still complete.
    ///
    /// # Errors
    /// The server offers no cancellation, or refused it.
    pub async fn cancel(&mut self, session: &Session, deadline: Duration) -> Result<(), TaskFailure> {
        const METHOD: &str = methods::TASKS_CANCEL;
        session.needs_legacy("/tasks/cancel", "the capability `tasks.cancel`")?;
        let reply = session.request_of_task(METHOD, self.id(), Map::new(), deadline).await?;
        let result = succeeded(METHOD, &reply)?;
        match session.handshake.era {
            Era::Legacy => self.adopt(METHOD, result, reply.frame),
            Era::Modern => Ok(()),
        }
    }

    fn adopt(&mut self, method: &'static str, value: &Value, frame: FrameId) -> Result<(), TaskFailure> {
        self.polled = Instant::now();
        self.state = TaskState::of(&self.state.id, method, value, frame)?;
        Ok(())
    }
}

/// The result in a reply.
fn succeeded<'a>(method: &'static str, reply: &'a Reply) -> Result<&'a Value, TaskFailure> {
    reply.answer.as_ref().map_err(|error| TaskFailure::Rpc { method, error: error.clone(), frame: reply.frame })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_task_is_read_in_the_words_of_both_eras() {
        let check = |value: Value, expected: Result<(TaskStatus, Option<u64>), &str>| {
            let read = TaskState::read(&value, FrameId(0));
            let found = read.map(|state| (state.status, state.poll_interval.map(|interval| interval.as_secs())));
            assert_eq!(found, expected.map_err(str::to_owned), "{value}");
        };
        check(json!({ "taskId": "t", "status": "working", "ttl": null, "pollInterval": 5000 }), Ok((TaskStatus::Working, Some(5))));
        check(json!({ "taskId": "t", "status": "failed", "pollIntervalMs": 5000 }), Ok((TaskStatus::Failed, Some(5))));
        check(json!({ "taskId": "t", "status": "input_required", "pollInterval": -1 }), Ok((TaskStatus::InputRequired, None)));
        check(json!({ "taskId": "t", "status": "done" }), Err("`done` is not a known status"));
        check(json!({ "taskId": "t" }), Err("it has no string `status`"));
        check(json!({ "taskId": 1, "status": "working" }), Err("it has no string `taskId`"));
        check(json!([]), Err("it has no string `status`"));
    }
}
