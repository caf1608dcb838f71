//! How a task begins: which calls may become one, and what the server answers.

use super::{Task, TaskEnd, TaskFailure, TaskState, TaskStatus, succeeded};
use crate::session::modern::{TASKS, declare_tasks};
use crate::session::{CallFailure, Listed, Reply, Session, WaitOptions};
use mcproof_protocol::{Era, Revision, methods};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::PoisonError;
use std::time::Duration;
use tokio::time::Instant;

/// What became of a call that might become a task.
#[derive(Clone, Debug)]
pub enum Called {
    Task(Task),
    /// The server answered at once: its right in the modern era, a fault of 2025-11-25 unless it is an error.
    Answered(Reply),
}

/// Which tools may be called as tasks (2025-11-25, basic/utilities/tasks, tool-level negotiation). `None` until tools have
/// been listed.
#[derive(Debug, Default)]
pub(in crate::session) struct TaskSupport(Option<HashMap<String, Option<String>>>);

impl TaskSupport {
    /// Takes in a whole list of tools, or its first page.
    pub(in crate::session) fn learn(&mut self, tools: &[Value]) {
        self.0 = None;
        self.learn_more(tools);
    }

    /// Takes in a further page.
    pub(in crate::session) fn learn_more(&mut self, tools: &[Value]) {
        let support = |tool: &Value| {
            let support = tool.pointer("/execution/taskSupport").and_then(Value::as_str);
            Some((tool.get("name")?.as_str()?.to_owned(), support.map(str::to_owned)))
        };
        self.0.get_or_insert_default().extend(tools.iter().filter_map(support));
    }

    /// Why this tool must not be called as a task, if so.
    fn refusal(&self, tool: &str) -> Option<String> {
        match self.0.as_ref()?.get(tool) {
            None => Some("it is not in tools/list".to_owned()),
            Some(None) => Some("it has no `execution.taskSupport`".to_owned()),
            Some(Some(support)) if matches!(support.as_str(), "optional" | "required") => None,
            Some(Some(support)) => Some(format!("its `execution.taskSupport` is `{support}`")),
        }
    }
}

impl Session {
    /// Calls a tool as a task: `params` are those of `tools/call`. In 2025-11-25 the server has to offer that, for tools in
    /// general and for this one, for which the tools are listed if they were not; `ttl` is how long it is asked to keep
    /// the task. In the modern era the server decides whether a call becomes a task, and for how long it is kept; it may
    /// ask for input first, and the deadline counts for each round of that.
    ///
    /// # Errors
    /// The server does not offer tasks, there was no response, or it is neither a task nor a result.
    pub async fn call_as_task(
        &self,
        params: Map<String, Value>,
        ttl: Option<Duration>,
        terms: impl Into<WaitOptions>,
    ) -> Result<Called, TaskFailure> {
        let (asked, position) = (Instant::now(), self.dispatcher.notifications.position());
        let terms = terms.into();
        let end = asked + terms.deadline.idle;
        let (reply, task) = match self.handshake.era {
            Era::Legacy => {
                self.may_become_task(&params, end).await?;
                let mut params = params;
                let ttl = ttl.map(|ttl| json!({ "ttl": u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX) }));
                params.entry("task").or_insert_with(|| ttl.unwrap_or_else(|| json!({})));
                let terms = WaitOptions { deadline: remaining(end).into(), ..terms };
                let reply = self.request(methods::TOOLS_CALL, Some(params), terms).await?;
                let task = reply.answer.as_ref().ok().and_then(|result| result.get("task").cloned());
                (reply, task)
            }
            Era::Modern => {
                self.needs_extension()?;
                let mut params = params;
                declare_tasks(&self.profile(), &mut params);
                let reply = self.request_rounds(methods::TOOLS_CALL, Some(params), terms).await?;
                let is_task = |result: &&Value| result.get("resultType").and_then(Value::as_str) == Some("task");
                let task = reply.answer.as_ref().ok().filter(is_task).cloned();
                (reply, task)
            }
        };
        let Some(task) = task else { return Ok(Called::Answered(reply)) };
        let frame = reply.frame;
        let state = TaskState::read(&task, frame).map_err(|reason| TaskFailure::NotATask { method: methods::TOOLS_CALL, reason, frame })?;
        Ok(Called::Task(Task::new(state, reply.request_frame, asked, position)))
    }

    /// Like [`Session::call_as_task`], and follows the task to its end, all within one deadline.
    ///
    /// # Errors
    /// As [`Session::call_as_task`] and [`Task::finish`].
    pub async fn finish_as_task(
        &self,
        params: Map<String, Value>,
        ttl: Option<Duration>,
        deadline: Duration,
    ) -> Result<TaskEnd, TaskFailure> {
        let end = Instant::now() + deadline;
        match self.call_as_task(params, ttl, deadline).await? {
            Called::Task(mut task) => task.finish(self, remaining(end)).await,
            Called::Answered(reply) => {
                let status = if reply.answer.is_ok() { TaskStatus::Completed } else { TaskStatus::Failed };
                Ok(TaskEnd { status, reply: Some(reply) })
            }
        }
    }

    /// A task of which only the id is known, such as one that was created in another session.
    ///
    /// # Errors
    /// There was no response, an error, or no task in it.
    pub async fn task(&self, id: &str, deadline: Duration) -> Result<Task, TaskFailure> {
        const METHOD: &str = methods::TASKS_GET;
        let (asked, position) = (Instant::now(), self.dispatcher.notifications.position());
        let reply = self.request_of_task(METHOD, id, Map::new(), deadline).await?;
        let state = TaskState::of(id, METHOD, succeeded(METHOD, &reply)?, reply.frame)?;
        Ok(Task::new(state, None, asked, position))
    }

    /// All tasks that the server has for us (2025-11-25 only).
    ///
    /// # Errors
    /// The server does not offer the list, or a page of it did not come.
    pub async fn list_tasks(&self, deadline: Duration) -> Result<Listed, TaskFailure> {
        if self.handshake.era == Era::Modern {
            return Err(TaskFailure::NotDeclared { what: "`tasks/list`, which the modern era does not have" });
        }
        self.needs_legacy("/tasks/list", "the capability `tasks.list`")?;
        Ok(self.list(methods::TASKS_LIST, "tasks", deadline).await?)
    }

    /// Sends a request about a task, in the modern era with the declaration that it needs.
    pub(super) async fn request_of_task(
        &self,
        method: &str,
        id: &str,
        mut params: Map<String, Value>,
        deadline: Duration,
    ) -> Result<Reply, CallFailure> {
        params.insert("taskId".into(), id.into());
        if self.handshake.era == Era::Modern {
            declare_tasks(&self.profile(), &mut params);
        }
        self.request(method, Some(params), deadline).await
    }

    /// In the legacy era, that the server declares the capability at this JSON pointer.
    pub(super) fn needs_legacy(&self, pointer: &str, what: &'static str) -> Result<(), TaskFailure> {
        let declared = self.handshake.era == Era::Modern || self.handshake.capabilities.pointer(pointer).is_some_and(Value::is_object);
        declared.then_some(()).ok_or(TaskFailure::NotDeclared { what })
    }

    fn needs_extension(&self) -> Result<(), TaskFailure> {
        let extensions = self.handshake.capabilities.get("extensions");
        let declared = extensions.and_then(|extensions| extensions.get(TASKS)).is_some_and(Value::is_object);
        declared.then_some(()).ok_or(TaskFailure::NotDeclared { what: "the extension `io.modelcontextprotocol/tasks`" })
    }

    async fn may_become_task(&self, params: &Map<String, Value>, end: Instant) -> Result<(), TaskFailure> {
        let version = &self.handshake.protocol_version;
        if !Revision::at(version).has_tasks() {
            return Err(TaskFailure::NotInThisRevision { version: version.clone() });
        }
        self.needs_legacy("/tasks/requests/tools/call", "the capability `tasks.requests.tools.call`")?;
        let listed = || self.task_support.lock().unwrap_or_else(PoisonError::into_inner).0.is_some();
        if !listed() {
            self.tap.note("the tools are listed, to see whether this one may be called as a task");
            self.list(methods::TOOLS_LIST, "tools", remaining(end)).await?;
        }
        let tool = params.get("name").and_then(Value::as_str).unwrap_or_default();
        match self.task_support.lock().unwrap_or_else(PoisonError::into_inner).refusal(tool) {
            Some(reason) => Err(TaskFailure::NotForThisTool { tool: tool.to_owned(), reason }),
            None => Ok(()),
        }
    }
}

pub(super) fn remaining(end: Instant) -> Duration {
    end.saturating_duration_since(Instant::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_says_whether_it_may_become_a_task() {
        let mut support = TaskSupport::default();
        let tool = |name: &str, support: Value| json!({ "name": name, "execution": { "taskSupport": support } });
        support.learn(&[
            json!({ "name": "silent" }),
            tool("forbidden", json!("forbidden")),
            tool("optional", json!("optional")),
            tool("required", json!("required")),
            tool("strange", json!("sometimes")),
            tool("wrong", json!(true)),
        ]);
        let check = |tool, expected: Option<&str>| assert_eq!(support.refusal(tool).as_deref(), expected, "{tool}");
        check("optional", None);
        check("required", None);
        check("silent", Some("it has no `execution.taskSupport`"));
        check("wrong", Some("it has no `execution.taskSupport`"));
        check("forbidden", Some("its `execution.taskSupport` is `forbidden`"));
        check("strange", Some("its `execution.taskSupport` is `sometimes`"));
        check("nowhere", Some("it is not in tools/list"));
    }
}
