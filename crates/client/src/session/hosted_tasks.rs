//! The tasks that a server gives us: what it asks with `task` is answered later, by polling. Time is passed in; nothing is
//! sent from here.
//! Source: 2025-11-25, basic/utilities/tasks, where we are the receiver. Later revisions have no such tasks.

use super::dispatcher::ServerRequest;
use super::responder::relate;
use crate::answers::{Answers, HostedTasks};
use crate::auth::random_text;
use crate::jsonrpc::{RequestId, RpcError};
use jiff::Timestamp;
use mcproof_protocol::error_code::{INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND};
use mcproof_protocol::methods;
use serde_json::{Map, Value, json};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// More than a server needs at a time: a bound against one that never stops.
const MAX_TASKS: usize = 100;
/// Longer than any session, and short enough to be added to a time.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Clone, Copy)]
pub(super) struct CurrentTime {
    pub(super) instant: Instant,
    pub(super) time_of_day: SystemTime,
}

/// What became of a request.
#[derive(Debug, PartialEq)]
pub(super) enum HostedResponse {
    Now(Result<Value, RpcError>),
    /// Once its task is over, by [`Host::release`].
    Later,
    /// It has nothing to do with tasks.
    Elsewhere,
}

pub(super) struct TaskHost {
    policy: HostedTasks,
    tasks: Vec<Hosted>,
    /// Requests of `tasks/result`, and the task that each waits for.
    waiting: Vec<(RequestId, String)>,
}

struct Hosted {
    id: String,
    created: CurrentTime,
    takes: Duration,
    ttl: Option<Duration>,
    outcome: Result<Value, RpcError>,
    cancelled: Option<CurrentTime>,
}

impl TaskHost {
    pub(super) fn new(policy: HostedTasks) -> Self {
        Self { policy: bounded(policy), tasks: Vec::new(), waiting: Vec::new() }
    }

    pub(super) fn receive(&mut self, request: &ServerRequest, answers: &Answers, now: CurrentTime) -> HostedResponse {
        self.forget_expired(now.instant);
        self.policy = answers.tasks.map_or(self.policy, bounded);
        let ServerRequest { id, method, params } = request;
        match (method.as_str(), params.get("task")) {
            (methods::SAMPLING_CREATE_MESSAGE | methods::ELICITATION_CREATE, Some(task)) => match answers.answer(method, params) {
                // Not declared, so that it is no task either.
                Err(error) if error.code == METHOD_NOT_FOUND => HostedResponse::Now(Err(error)),
                outcome => HostedResponse::Now(self.create(task, outcome, now)),
            },
            (methods::TASKS_LIST, _) => HostedResponse::Now(self.list(params, now)),
            (methods::TASKS_GET, _) => {
                HostedResponse::Now(self.find(params).map(|task| Value::Object(task.state(&self.policy, now.instant))))
            }
            (methods::TASKS_CANCEL, _) => HostedResponse::Now(self.cancel(params, now)),
            (methods::TASKS_RESULT, _) => match self.find(params) {
                Err(error) => HostedResponse::Now(Err(error)),
                Ok(_) if self.waiting.len() >= MAX_TASKS => HostedResponse::Now(Err(refusal(INTERNAL_ERROR, "too many pending results"))),
                Ok(task) => {
                    let wanted = (id.clone(), task.id.clone());
                    self.waiting.push(wanted);
                    HostedResponse::Later
                }
            },
            _ => HostedResponse::Elsewhere,
        }
    }

    /// When the next answer that was put off can be given.
    pub(super) fn due(&self) -> Option<Instant> {
        let over = |(_, id): &(RequestId, String)| self.tasks.iter().find(|task| task.id == *id).map(Hosted::over_at);
        self.waiting.iter().filter_map(over).min()
    }

    /// The responses that can be given by now.
    pub(super) fn release(&mut self, now: Instant) -> Vec<(RequestId, Result<Value, RpcError>)> {
        let mut ready = Vec::new();
        let tasks = &self.tasks;
        self.waiting.retain(|(request, id)| {
            let answer = match tasks.iter().find(|task| task.id == *id) {
                Some(task) if task.over_at() > now => return true,
                Some(task) => task.result(),
                None => Err(unknown(id)),
            };
            ready.push((request.clone(), answer));
            false
        });
        ready
    }

    fn create(&mut self, task: &Value, outcome: Result<Value, RpcError>, now: CurrentTime) -> Result<Value, RpcError> {
        if self.tasks.len() >= MAX_TASKS {
            return Err(refusal(INTERNAL_ERROR, "this client has too many tasks already"));
        }
        let id = random_text().map_err(|reason| refusal(INTERNAL_ERROR, &reason))?;
        let ttl = task.get("ttl").and_then(Value::as_u64).map(Duration::from_millis);
        let task = Hosted { id, created: now, takes: self.policy.takes, ttl, outcome, cancelled: None };
        let mut state = task.state(&self.policy, now.instant);
        // A task begins as `working`, even one that takes no time.
        state.insert("status".into(), "working".into());
        self.tasks.push(task);
        Ok(json!({ "task": state }))
    }

    fn find(&self, params: &Value) -> Result<&Hosted, RpcError> {
        let id = params.get("taskId").and_then(Value::as_str).ok_or_else(|| refusal(INVALID_PARAMS, "`taskId` is missing"))?;
        self.tasks.iter().find(|task| task.id == id).ok_or_else(|| unknown(id))
    }

    fn cancel(&mut self, params: &Value, now: CurrentTime) -> Result<Value, RpcError> {
        let id = self.find(params)?.id.clone();
        let task = self.tasks.iter_mut().find(|task| task.id == id).ok_or_else(|| unknown(&id))?;
        let status = task.status(now.instant);
        if status != "working" {
            return Err(refusal(INVALID_PARAMS, &format!("the task is over: {status}")));
        }
        task.cancelled = Some(now);
        Ok(Value::Object(task.state(&self.policy, now.instant)))
    }

    /// All on one page, so that no cursor was ever handed out.
    fn list(&self, params: &Value, now: CurrentTime) -> Result<Value, RpcError> {
        if params.get("cursor").is_some() {
            return Err(refusal(INVALID_PARAMS, "unknown cursor"));
        }
        let tasks: Vec<_> = self.tasks.iter().map(|task| task.state(&self.policy, now.instant)).collect();
        Ok(json!({ "tasks": tasks }))
    }

    fn forget_expired(&mut self, now: Instant) {
        self.tasks.retain(|task| task.ttl.is_none_or(|ttl| now.saturating_duration_since(task.created.instant) < ttl));
    }
}

impl Hosted {
    fn over_at(&self) -> Instant {
        self.cancelled.map_or(self.created.instant + self.takes, |cancelled| cancelled.instant)
    }

    fn status(&self, now: Instant) -> &'static str {
        match &self.outcome {
            _ if self.cancelled.is_some() => "cancelled",
            _ if now < self.over_at() => "working",
            Ok(_) => "completed",
            Err(_) => "failed",
        }
    }

    fn state(&self, policy: &HostedTasks, now: Instant) -> Map<String, Value> {
        let status = self.status(now);
        let updated = match self.cancelled {
            Some(cancelled) => cancelled.time_of_day,
            None if status == "working" => self.created.time_of_day,
            None => self.created.time_of_day + self.takes,
        };
        let mut state = Map::from_iter([
            ("taskId".to_owned(), json!(self.id)),
            ("status".to_owned(), json!(status)),
            ("createdAt".to_owned(), timestamp(self.created.time_of_day)),
            ("lastUpdatedAt".to_owned(), timestamp(updated)),
            ("ttl".to_owned(), json!(self.ttl.map(millis))),
            ("pollInterval".to_owned(), json!(millis(policy.poll_interval))),
        ]);
        if let (Err(error), "failed") = (&self.outcome, status) {
            state.insert("statusMessage".into(), json!(error.message));
        }
        state
    }

    fn result(&self) -> Result<Value, RpcError> {
        if self.cancelled.is_some() {
            return Err(refusal(INVALID_PARAMS, "the task was canceled and has no result"));
        }
        let mut result = self.outcome.clone()?;
        relate(&mut result, &json!({ "taskId": self.id }));
        Ok(result)
    }
}

fn bounded(policy: HostedTasks) -> HostedTasks {
    HostedTasks { takes: policy.takes.min(LONGEST), ..policy }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn timestamp(time: SystemTime) -> Value {
    // Beyond the year 9999 there is no such text.
    Timestamp::try_from(time).map_or(Value::Null, |time| json!(time.to_string()))
}

fn refusal(code: i64, message: &str) -> RpcError {
    RpcError { code, message: message.to_owned(), data: None }
}

fn unknown(id: &str) -> RpcError {
    refusal(INVALID_PARAMS, &format!("there is no task `{id}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answers::{Elicitation, Sampling};
    use crate::session::responder::RELATED_TASK;

    const TAKES: Duration = Duration::from_secs(5);

    struct Scene {
        host: TaskHost,
        answers: Answers,
        start: Instant,
    }

    impl Scene {
        fn new(sampling: Sampling) -> Self {
            let policy = HostedTasks { takes: TAKES, poll_interval: Duration::from_millis(200) };
            let answers = Answers { sampling: Some(sampling), tasks: Some(policy), ..Answers::default() };
            Self { host: TaskHost::new(policy), answers, start: Instant::now() }
        }

        fn at(&self, seconds: u64) -> CurrentTime {
            let passed = Duration::from_secs(seconds);
            CurrentTime { instant: self.start + passed, time_of_day: SystemTime::UNIX_EPOCH + passed }
        }

        fn ask(&mut self, seconds: u64, method: &str, params: Value) -> HostedResponse {
            let now = self.at(seconds);
            let request = ServerRequest { id: RequestId::Number(1), method: method.into(), params };
            self.host.receive(&request, &self.answers, now)
        }

        fn result(&mut self, seconds: u64, method: &str, params: Value) -> Value {
            match self.ask(seconds, method, params) {
                HostedResponse::Now(Ok(result)) => result,
                other => panic!("{method}: {other:?}"),
            }
        }

        fn code(&mut self, seconds: u64, method: &str, params: Value) -> i64 {
            match self.ask(seconds, method, params) {
                HostedResponse::Now(Err(error)) => error.code,
                other => panic!("{method}: {other:?}"),
            }
        }

        /// The parameters that name a new task.
        fn create(&mut self, seconds: u64) -> Value {
            let created = self.result(seconds, "sampling/createMessage", json!({ "task": { "ttl": 60_000 } }));
            json!({ "taskId": created["task"]["taskId"] })
        }
    }

    #[test]
    fn a_task_works_then_completes_then_gives_its_result() {
        let mut scene = Scene::new(Sampling::Text("hi".into()));
        let created = scene.result(0, "sampling/createMessage", json!({ "task": { "ttl": 60_000 } }));
        let id = created["task"]["taskId"].clone();
        let expected = |status: &str, updated: &str| {
            json!({ "taskId": id, "status": status, "createdAt": "1970-01-01T00:00:00Z", "lastUpdatedAt": updated,
                "ttl": 60_000, "pollInterval": 200 })
        };
        assert_eq!(created["task"], expected("working", "1970-01-01T00:00:00Z"));
        let named = json!({ "taskId": id });
        assert_eq!(scene.result(4, "tasks/get", named.clone())["status"], "working");
        assert_eq!(scene.ask(4, "tasks/result", named.clone()), HostedResponse::Later);
        assert_eq!(scene.host.due(), Some(scene.at(5).instant));
        assert!(scene.host.release(scene.at(4).instant).is_empty());
        let released = scene.host.release(scene.at(5).instant);
        let result = released[0].1.clone().unwrap();
        assert_eq!(result["content"]["text"], "hi");
        assert_eq!(result["_meta"], json!({ RELATED_TASK: { "taskId": id } }));
        assert_eq!((released.len(), scene.host.due()), (1, None));
        assert_eq!(scene.result(6, "tasks/get", named.clone()), expected("completed", "1970-01-01T00:00:05Z"));
        assert_eq!(scene.result(6, "tasks/list", json!({}))["tasks"].as_array().unwrap().len(), 1);
        assert_eq!(scene.code(6, "tasks/cancel", named.clone()), INVALID_PARAMS);
        // Its life is over.
        assert_eq!(scene.code(60, "tasks/get", named), INVALID_PARAMS);
        assert_eq!(scene.code(60, "tasks/list", json!({ "cursor": "x" })), INVALID_PARAMS);
    }

    #[test]
    fn a_task_that_takes_no_time_begins_as_working_all_the_same() {
        let mut scene = Scene::new(Sampling::Text("hi".into()));
        scene.answers.tasks = Some(HostedTasks { takes: Duration::ZERO, ..HostedTasks::default() });
        assert_eq!(scene.result(0, "sampling/createMessage", json!({ "task": {} }))["task"]["status"], "working");
        let tasks = scene.result(0, "tasks/list", Value::Null);
        assert_eq!(tasks["tasks"][0]["status"], "completed");
        assert_eq!(tasks["tasks"][0]["ttl"], Value::Null);
    }

    #[test]
    fn each_task_takes_as_long_as_the_policy_of_its_time_says() {
        let mut scene = Scene::new(Sampling::Text("hi".into()));
        let slow = scene.create(0);
        scene.answers.tasks = Some(HostedTasks { takes: Duration::from_secs(1), ..HostedTasks::default() });
        let quick = scene.create(0);
        // Without a policy the last one holds: what was declared is declared.
        scene.answers.tasks = None;
        let other = scene.create(0);
        let statuses = [slow, quick, other].map(|named| scene.result(2, "tasks/get", named)["status"].clone());
        assert_eq!(statuses, ["working", "completed", "completed"]);
    }

    #[test]
    fn a_rejected_request_fails_and_its_result_is_the_error() {
        let mut scene = Scene::new(Sampling::Reject);
        let named = scene.create(0);
        assert_eq!(scene.result(9, "tasks/get", named.clone())["statusMessage"], "user rejected sampling request");
        assert_eq!(scene.ask(9, "tasks/result", named), HostedResponse::Later);
        assert_eq!(scene.host.release(scene.at(9).instant)[0].1.clone().unwrap_err().code, -1);
    }

    #[test]
    fn a_cancelled_task_stays_cancelled_and_lets_go_of_who_waits() {
        let mut scene = Scene::new(Sampling::Text("hi".into()));
        let named = scene.create(0);
        assert_eq!(scene.ask(1, "tasks/result", named.clone()), HostedResponse::Later);
        assert_eq!(scene.result(2, "tasks/cancel", named.clone())["status"], "cancelled");
        assert_eq!(scene.host.release(scene.at(2).instant)[0].1.clone().unwrap_err().code, INVALID_PARAMS);
        assert_eq!(scene.result(9, "tasks/get", named)["lastUpdatedAt"], "1970-01-01T00:00:02Z");
    }

    #[test]
    fn what_is_no_task_is_answered_elsewhere_or_refused() {
        let mut scene = Scene::new(Sampling::Text("hi".into()));
        assert_eq!(scene.ask(0, "sampling/createMessage", json!({})), HostedResponse::Elsewhere);
        assert_eq!(scene.ask(0, "ping", json!({ "task": {} })), HostedResponse::Elsewhere);
        assert_eq!(scene.code(0, "elicitation/create", json!({ "task": {} })), METHOD_NOT_FOUND);
        scene.answers.elicitation = Some(Elicitation::Decline);
        assert_eq!(scene.result(0, "elicitation/create", json!({ "task": {} }))["task"]["status"], "working");
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            assert_eq!(scene.code(0, method, json!({ "taskId": "none" })), INVALID_PARAMS);
            assert_eq!(scene.code(0, method, json!({})), INVALID_PARAMS);
        }
        for _ in 1..MAX_TASKS {
            scene.create(0);
        }
        assert_eq!(scene.code(0, "sampling/createMessage", json!({ "task": {} })), INTERNAL_ERROR);
    }
}
