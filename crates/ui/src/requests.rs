//! Requests that the user sends to a server.

use crate::connection::{self, Live};
use crate::hub::{Hub, HubFailure};
use crate::spec::REQUEST_TIMEOUT;
use crate::tasks;
use mcproof_analysis::diagnosis::{Audience, Scene, of_call_failure, of_list_failure};
use mcproof_client::{CallFailure, Called, Canceler, Deadline, ListFailure, Listed, Reply, Session, TaskFailure, WaitOptions};
use mcproof_record::{Diagnostic, FrameId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// A request to send.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Request {
    method: String,
    #[serde(default)]
    params: Option<Map<String, Value>>,
    /// By which it can be canceled.
    key: String,
    /// Until there is a response or progress.
    #[serde(default)]
    timeout_ms: Option<u64>,
    /// The array of all pages that is wanted, for the list methods.
    #[serde(default)]
    all_pages_of: Option<String>,
    /// The array of one page that is wanted, for the list methods. The cursor is among the parameters.
    #[serde(default)]
    page_of: Option<String>,
    /// That the tool is to be called as a task.
    #[serde(default)]
    task: Option<AsTask>,
    /// Values among the parameters that the schema of the tool declares as passwords: no frame of the session has them, from now on.
    #[serde(default)]
    secrets: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct AsTask {
    /// How long the server is asked to keep it (2025-11-25).
    ttl_ms: Option<u64>,
}

/// What came of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Outcome {
    session: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<Value>,
    /// A JSON-RPC error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Value>,
    /// Why there was no response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<Diagnostic>,
    /// The task that the call has become. Its result comes later.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    canceled: bool,
    request_frame: Option<FrameId>,
    pub(crate) frame: Option<FrameId>,
    elapsed_us: Option<u64>,
}

impl Outcome {
    pub(crate) fn of(session: u64) -> Self {
        Self {
            session,
            result: None,
            error: None,
            failure: None,
            task: None,
            canceled: false,
            request_frame: None,
            frame: None,
            elapsed_us: None,
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

pub(crate) async fn send(hub: &Arc<Hub>, id: u64, request: Request) -> Result<Outcome, HubFailure> {
    let live = connection::live(hub, id)?;
    let Live { recorded, session, cancelers, .. } = live.clone();
    let held = session.read_owned().await;
    let session = held.as_ref().ok_or(HubFailure::NotOpen)?;
    request.secrets.iter().for_each(|secret| session.tap().keep_secret(secret));
    let (canceler, cancellation) = Canceler::new();
    cancelers.lock().unwrap_or_else(PoisonError::into_inner).insert(request.key.clone(), canceler);
    let mut outcome = Outcome::of(recorded);
    let idle = request.timeout_ms.map_or(REQUEST_TIMEOUT, Duration::from_millis).min(REQUEST_TIMEOUT);
    match (&request.all_pages_of, &request.task) {
        (Some(key), _) => {
            let listed = session.list(&request.method, key, idle).await.map(|listed| (listed, None));
            note_list(session, listed, key, &mut outcome, &request.method).await;
        }
        (None, _) if request.page_of.is_some() => {
            let key = request.page_of.as_deref().unwrap_or_default();
            let cursor = request.params.as_ref().and_then(|params| params.get("cursor")).and_then(Value::as_str).map(str::to_owned);
            let listed = session.page(&request.method, key, cursor, idle).await;
            note_list(session, listed, key, &mut outcome, &request.method).await;
        }
        (None, Some(AsTask { ttl_ms })) => {
            let ttl = ttl_ms.map(Duration::from_millis);
            let terms = WaitOptions { deadline: REQUEST_TIMEOUT.into(), cancellation: Some(cancellation) };
            match session.call_as_task(request.params.unwrap_or_default(), ttl, terms).await {
                Ok(Called::Task(task)) => {
                    outcome.task = Some(task.id().to_owned());
                    outcome.frame = Some(task.state().frame);
                    tasks::follow(hub, id, &live, task);
                }
                Ok(Called::Answered(reply)) => note(session, Ok(reply), &mut outcome, &request.method).await,
                Err(TaskFailure::Call(failure)) => note(session, Err(failure), &mut outcome, &request.method).await,
                Err(failure) => outcome.failure = Some(tasks::diagnosed(session, &failure).await),
            }
        }
        (None, None) => {
            let deadline = Deadline { idle, maximum: Some(REQUEST_TIMEOUT) };
            let terms = WaitOptions { deadline, cancellation: Some(cancellation) };
            let replied = session.request_rounds(&request.method, request.params, terms).await;
            note(session, replied, &mut outcome, &request.method).await;
        }
    }
    cancelers.lock().unwrap_or_else(PoisonError::into_inner).remove(&request.key);
    let tap = session.tap();
    outcome.result = outcome.result.map(|result| tap.redacted_value(result));
    outcome.error = outcome.error.map(|error| tap.redacted_value(error));
    outcome.failure = outcome.failure.map(|failure| failure.map_text(|text| tap.redacted(text)));
    Ok(outcome)
}

/// A list or one page of it, with the cursor of the next one.
async fn note_list(
    session: &Session,
    listed: Result<(Listed, Option<String>), ListFailure>,
    key: &str,
    outcome: &mut Outcome,
    method: &str,
) {
    match listed {
        Ok((listed, next)) => {
            let items = listed.items.into_iter().chain(listed.rejected.into_iter().map(|(tool, _)| tool)).collect();
            let mut result = Map::from_iter([(key.to_owned(), Value::Array(items))]);
            result.extend(next.map(|next| ("nextCursor".to_owned(), Value::from(next))));
            outcome.result = Some(Value::Object(result));
            outcome.frame = Some(listed.frame);
            outcome.elapsed_us = Some(micros(listed.elapsed));
        }
        Err(ListFailure::Rpc { error, frame, .. }) => {
            outcome.error = Some(error.to_value());
            outcome.frame = Some(frame);
        }
        Err(failure) => {
            let scene = Scene::of(session, session.tap(), Audience::CommandLine).await;
            outcome.failure = Some(of_list_failure(&failure, method, &scene));
        }
    }
}

async fn note(session: &Session, replied: Result<Reply, CallFailure>, outcome: &mut Outcome, method: &str) {
    match replied {
        Ok(reply) => {
            outcome.request_frame = reply.request_frame;
            outcome.frame = Some(reply.frame);
            outcome.elapsed_us = Some(micros(reply.elapsed));
            match reply.answer {
                Ok(result) => outcome.result = Some(result),
                Err(error) => outcome.error = Some(error.to_value()),
            }
        }
        Err(CallFailure::Cancelled { after, .. }) => {
            outcome.canceled = true;
            outcome.elapsed_us = Some(micros(after));
        }
        Err(failure) => {
            let scene = Scene::of(session, session.tap(), Audience::CommandLine).await;
            outcome.failure = Some(of_call_failure(&failure, method, &scene));
        }
    }
}

/// Cancels a request. False if it is over.
pub(crate) fn cancel(hub: &Hub, id: u64, key: &str) -> Result<bool, HubFailure> {
    let live = connection::live(hub, id)?;
    let canceler = live.cancelers.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    Ok(canceler.map(|canceler| canceler.cancel("the user has canceled it".to_owned())).is_some())
}

/// A message as it stands, or bytes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Message {
    message: Map<String, Value>,
}

pub(crate) async fn send_message(hub: &Hub, id: u64, message: Message) -> Result<Outcome, HubFailure> {
    let Live { recorded, session, .. } = connection::live(hub, id)?;
    let held = session.read_owned().await;
    let session = held.as_ref().ok_or(HubFailure::NotOpen)?;
    let mut outcome = Outcome::of(recorded);
    match session.send_message(&message.message, RAW_TIMEOUT).await {
        Ok(None) => {}
        Ok(Some(reply)) => note(session, Ok(reply), &mut outcome, "the message").await,
        Err(failure) => note(session, Err(failure), &mut outcome, "the message").await,
    }
    Ok(outcome)
}

/// Nothing cancels a message that is sent as it stands.
const RAW_TIMEOUT: Duration = Duration::from_secs(30);
