//! Answers what the server requests of us, as the policies say. Knows no transport.

use super::dispatcher::{ServerRequest, ServerRequests};
use super::history_bounds::BacklogSlot;
use super::hosted_tasks::{CurrentTime, HostedResponse, TaskHost};
use super::wire::Wire;
use crate::answers::{Answers, HostedTasks};
use crate::jsonrpc::{self, RequestId, RpcError};
use crate::transport::{Envelope, Purpose, Repeat, Resume};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::SystemTime;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

/// Every message that belongs to a task says so under this key (2025-11-25, basic/utilities/tasks, related task metadata).
pub(super) const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// The policies of a session as they are now; the session and the task that answers share them.
#[derive(Clone)]
pub(super) struct ResponsePolicies(Arc<RwLock<Answers>>);

impl ResponsePolicies {
    pub(super) fn new(answers: Answers) -> Self {
        Self(Arc::new(RwLock::new(answers)))
    }

    pub(super) fn get(&self) -> Answers {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, answers: Answers) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = answers;
    }
}

/// The task that answers the server's requests. Ends with its session.
pub(super) struct Responder(JoinHandle<()>);

impl Responder {
    pub(super) fn start(queue: ServerRequests, wire: &Arc<Wire>, policies: ResponsePolicies, tasks: Option<HostedTasks>) -> Self {
        Self(tokio::spawn(respond_to_requests(queue, Arc::downgrade(wire), policies, tasks.map(TaskHost::new))))
    }

    /// Ends the task and waits until it has let go of the connection.
    pub(super) async fn end(mut self) {
        self.0.abort();
        let _ = (&mut self.0).await;
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn respond_to_requests(mut queue: ServerRequests, wire: Weak<Wire>, policies: ResponsePolicies, mut host: Option<TaskHost>) {
    let mut rooms: HashMap<RequestId, BacklogSlot> = HashMap::new();
    // Whoever is asked may take their time: the others are answered meanwhile.
    let mut consulted: JoinSet<Response> = JoinSet::new();
    loop {
        let due = host.as_ref().and_then(TaskHost::due);
        let mut outgoing = Vec::new();
        tokio::select! {
            request = queue.recv() => {
                let Some((request, room)) = request else { return };
                rooms.insert(request.id.clone(), room);
                let answers = policies.get();
                match answers.consult(&request.method, &request.params) {
                    Some(consulting) => drop(consulted.spawn(async move {
                        let answer = consulting.await;
                        related(request, answer)
                    })),
                    None => outgoing.extend(answer(&answers, host.as_mut(), request)),
                }
            }
            Some(Ok(response)) = consulted.join_next() => outgoing.push(response),
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
        outgoing.extend(host.as_mut().map(|host| host.release(now().instant)).unwrap_or_default());
        let Some(wire) = wire.upgrade() else { return };
        for (id, answer) in outgoing {
            let body = jsonrpc::response(&id, answer);
            let purpose = rooms.remove(&id).map_or(Purpose::Response, |room| Purpose::Answer { _room: room });
            wire.connection.send(Envelope { body, purpose, headers: wire.headers(), resume: Resume::Never, repeat: Repeat::Never });
        }
    }
}

type Response = (RequestId, Result<Value, RpcError>);

/// `None` for what is answered later.
fn answer(answers: &Answers, host: Option<&mut TaskHost>, request: ServerRequest) -> Option<Response> {
    let hosted = host.map_or(HostedResponse::Elsewhere, |host| host.receive(&request, answers, now()));
    let answer = match hosted {
        HostedResponse::Now(answer) => answer,
        HostedResponse::Later => return None,
        HostedResponse::Elsewhere => answers.answer(&request.method, &request.params),
    };
    Some(related(request, answer))
}

/// The response to a request, which says to which task it belongs.
fn related(request: ServerRequest, mut answer: Result<Value, RpcError>) -> Response {
    if let (Ok(result), Some(related)) = (&mut answer, request.params.get("_meta").and_then(|meta| meta.get(RELATED_TASK))) {
        relate(result, related);
    }
    (request.id, answer)
}

/// Says to which task a result belongs, unless it says so itself.
pub(super) fn relate(result: &mut Value, related: &Value) {
    let Some(result) = result.as_object_mut() else { return };
    if let Some(meta) = result.entry("_meta").or_insert_with(|| json!({})).as_object_mut() {
        meta.entry(RELATED_TASK).or_insert_with(|| related.clone());
    }
}

#[expect(clippy::disallowed_methods, reason = "a task tells the server at which time of day it was created and changed")]
fn now() -> CurrentTime {
    CurrentTime { instant: Instant::now(), time_of_day: SystemTime::now() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answers::Elicitation;

    #[test]
    fn an_answer_belongs_to_the_task_of_its_request() {
        let answers = Answers { elicitation: Some(Elicitation::Decline), ..Answers::default() };
        let check = |params: Value, expected: Value| {
            let request = ServerRequest { id: RequestId::Number(1), method: "elicitation/create".into(), params };
            assert_eq!(answer(&answers, None, request), Some((RequestId::Number(1), Ok(expected))));
        };
        check(json!({}), json!({ "action": "decline" }));
        check(json!({ "_meta": { "progressToken": 1 } }), json!({ "action": "decline" }));
        let meta = json!({ RELATED_TASK: { "taskId": "t", "kept": [1] } });
        check(json!({ "_meta": meta }), json!({ "action": "decline", "_meta": meta }));
    }
}
