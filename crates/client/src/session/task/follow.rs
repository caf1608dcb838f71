//! How a task is followed to its end: polls, status notifications, input on the way, and the result.

use super::call::remaining;
use super::{Task, TaskEnd, TaskFailure, TaskStatus, succeeded};
use crate::jsonrpc::{RpcError, read_error};
use crate::session::{CallFailure, Reply, Session};
use mcproof_protocol::{Era, methods};
use serde_json::{Map, Value};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// Between the first polls and between later ones, where the server does not say: each wait is twice as long as the one before.
const FIRST_POLL: Duration = Duration::from_millis(50);
const POLL: Duration = Duration::from_secs(1);
/// The bounds of what it may say.
const SHORTEST_POLL: Duration = Duration::from_millis(20);
const LONGEST_POLL: Duration = Duration::from_secs(60);
/// How long to wait for the response to the cancellation of a task that took too long.
const CANCELING: Duration = Duration::from_secs(2);
/// Far above what a task requests: a bound against one that requests ever.
const MAX_INPUTS: usize = 1000;

type Asking<'a> = Pin<Box<dyn Future<Output = Result<Reply, CallFailure>> + Send + 'a>>;

impl Task {
    /// Follows the task to its end, giving the input that it requests as the session's answers say. A task that has not
    /// ended by the deadline is canceled.
    ///
    /// # Errors
    /// The deadline passed, a request about the task failed, or it requests what no policy gives; in that case it still
    /// runs.
    pub async fn finish(&mut self, session: &Session, deadline: Duration) -> Result<TaskEnd, TaskFailure> {
        let end = Instant::now() + deadline;
        let outcome = match session.handshake.era {
            Era::Legacy => self.finish_legacy(session, end).await,
            Era::Modern => self.finish_modern(session, end).await,
        };
        match outcome {
            // Whatever request the deadline met.
            Err(TaskFailure::Call(CallFailure::TimedOut { .. })) if !self.state.status.is_terminal() => {
                let (id, status) = (self.id().to_owned(), self.state.status);
                let cancelled = self.cancel(session, CANCELING).await.map_err(Box::new);
                Err(TaskFailure::TimedOut { id, status, after: deadline, cancelled })
            }
            other => other,
        }
    }

    /// The result has a method of its own, which also carries what the server requests meanwhile (2025-11-25, tasks, input
    /// required status).
    async fn finish_legacy(&mut self, session: &Session, end: Instant) -> Result<TaskEnd, TaskFailure> {
        let mut asking = None;
        let outcome = self.follow_legacy(session, end, &mut asking).await;
        if let Some(asking) = asking {
            // Left alone by a failure: its response must not come to nobody. It has the same deadline, and is canceled when it
            // meets it.
            let _ = timeout(CANCELING, asking).await;
        }
        outcome
    }

    async fn follow_legacy<'a>(
        &mut self,
        session: &'a Session,
        end: Instant,
        asking: &mut Option<Asking<'a>>,
    ) -> Result<TaskEnd, TaskFailure> {
        let id = self.id().to_owned();
        let ask = || -> Asking<'a> {
            let id = id.clone();
            Box::pin(async move { session.request_of_task(methods::TASKS_RESULT, &id, Map::new(), remaining(end)).await })
        };
        let mut came = None;
        while !self.state.status.is_terminal() {
            if self.state.status == TaskStatus::InputRequired {
                asking.get_or_insert_with(ask);
            }
            let result = async {
                match asking.as_mut() {
                    Some(asking) => asking.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                reply = result => {
                    *asking = None;
                    came = Some(reply?);
                    break;
                }
                paused = self.pause(session, end) => paused?,
            }
            self.get(session, remaining(end)).await?;
        }
        let reply = match (came, asking.take()) {
            (Some(reply), _) => Some(reply),
            (None, Some(asking)) => Some(asking.await?),
            (None, None) if self.state.status == TaskStatus::Cancelled => None,
            (None, None) => Some(ask().await?),
        };
        if !self.state.status.is_terminal() {
            // The result came before the news. A server may forget a task whose result it gave.
            match self.get(session, remaining(end)).await {
                Ok(_) | Err(TaskFailure::Rpc { .. }) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(self.ended(reply))
    }

    /// The task itself carries its result, and what the server requests meanwhile.
    async fn finish_modern(&mut self, session: &Session, end: Instant) -> Result<TaskEnd, TaskFailure> {
        // Neither a result nor a question comes with the response that creates a task.
        let mut reply = match self.state.status {
            TaskStatus::Working => None,
            _ => Some(self.get(session, remaining(end)).await?),
        };
        while !self.state.status.is_terminal() {
            if self.state.status == TaskStatus::InputRequired {
                self.give_input(session, end).await?;
            }
            self.pause(session, end).await?;
            reply = Some(self.get(session, remaining(end)).await?);
        }
        let payload = |key: &str| {
            let reason = || format!("it is {} and has no `{key}`", self.state.status);
            let missing = || TaskFailure::NotATask { method: methods::TASKS_GET, reason: reason(), frame: self.state.frame };
            self.state.value.get(key).cloned().ok_or_else(missing)
        };
        let answer = match self.state.status {
            TaskStatus::Completed => Ok(payload("result")?),
            TaskStatus::Failed => Err(self.read_error(payload("error")?)?),
            _ => return Ok(self.ended(None)),
        };
        let reply = reply.map(|reply| Reply { answer, ..reply });
        Ok(self.ended(reply))
    }

    fn read_error(&self, error: Value) -> Result<RpcError, TaskFailure> {
        read_error(error).map_err(|reason| TaskFailure::NotATask {
            method: methods::TASKS_GET,
            reason: reason.to_owned(),
            frame: self.state.frame,
        })
    }

    fn ended(&self, reply: Option<Reply>) -> TaskEnd {
        let of_call = |reply| Reply { request_frame: self.request, elapsed: self.asked.elapsed(), ..reply };
        TaskEnd { status: self.state.status, reply: reply.map(of_call) }
    }

    /// Waits until it is time for the next poll: for as long as the server wishes, or until it says by a notification that
    /// the status is another one.
    async fn pause(&mut self, session: &Session, end: Instant) -> Result<(), TaskFailure> {
        let (id, status) = (self.state.id.as_str(), self.state.status.name());
        let is_news = |notification: &crate::session::Notification| {
            let says = |pointer| notification.param(pointer).and_then(Value::as_str);
            matches!(notification.method.as_str(), methods::notifications::TASKS_STATUS | methods::notifications::TASKS)
                && says("/taskId") == Some(id)
                && says("/status") != Some(status)
        };
        let own = self.unasked_interval.map_or(FIRST_POLL, |before| (before * 2).min(POLL));
        self.unasked_interval = Some(own);
        let interval = self.state.poll_interval.unwrap_or(own).clamp(SHORTEST_POLL, LONGEST_POLL);
        let at_the_earliest = (self.polled + SHORTEST_POLL).min(end);
        tokio::select! {
            () = sleep_until((self.polled + interval).min(end)) => {}
            // Also when the connection has ended, which the next poll will tell.
            _ = session.dispatcher.notifications.next(&mut self.position, is_news) => sleep_until(at_the_earliest).await,
        }
        match remaining(end).is_zero() {
            true => Err(CallFailure::TimedOut { method: methods::TASKS_GET.into(), after: Duration::ZERO, stage: None }.into()),
            false => Ok(()),
        }
    }

    /// Answers what is asked and was not answered before: a server goes on asking until it has seen the response.
    async fn give_input(&mut self, session: &Session, end: Instant) -> Result<(), TaskFailure> {
        const METHOD: &str = methods::TASKS_UPDATE;
        let answers = session.policies.get();
        let (mut responses, mut wanted) = (Map::new(), Vec::new());
        for (key, request) in self.state.value.get("inputRequests").and_then(Value::as_object).into_iter().flatten() {
            let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
            if self.given.contains(key) {
                continue;
            }
            match answers.give(method, request.get("params").unwrap_or(&Value::Null)).await {
                Ok(response) => {
                    responses.insert(key.clone(), response);
                }
                Err(_) => wanted.push(format!("{method} (`{key}`)")),
            }
        }
        if !responses.is_empty() {
            self.given.extend(responses.keys().cloned());
            let params = Map::from_iter([("inputResponses".to_owned(), Value::Object(responses))]);
            let reply = session.request_of_task(METHOD, self.id(), params, remaining(end)).await?;
            succeeded(METHOD, &reply)?;
        }
        let frame = self.state.frame;
        if self.given.len() > MAX_INPUTS {
            let reason = format!("it requests input more than {MAX_INPUTS} times");
            return Err(TaskFailure::NotATask { method: methods::TASKS_GET, reason, frame });
        }
        match wanted.is_empty() {
            true => Ok(()),
            false => Err(TaskFailure::NoInput { id: self.id().to_owned(), wanted, frame }),
        }
    }
}
