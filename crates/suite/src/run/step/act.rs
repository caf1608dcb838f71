//! Does the action of a step on an open session, and gives what came of it. Judges only what no client could use.

use super::judge::is_tool_error;
use super::request::{Request, fill, fill_object, fill_text, request};
use crate::judge::{Numbers, Origin, Payload, has_large_number, pretty};
use crate::plan::{Action, Bytes, HttpRequest, Listing, RetryCause, Step, TaskCall};
use crate::run::resilience::{self, Policy, RequestError, RetriedRequest, persist, retry_cause_of};
use crate::run::sessions::Open;
use mcproof_analysis::diagnosis::{self, Audience, Scene};
use mcproof_analysis::messages::{MessageFlaw, result_flaws};
use mcproof_client::jsonrpc::RpcError;
use mcproof_client::{CallFailure, Called, Deadline, ListFailure, RawHttpRequest, RawHttpResponse, Reply, TaskEnd, Unanswered, WaitFor};
use mcproof_protocol::{Revision, methods};
use mcproof_record::{AnswerKind, Diagnostic, Direction, Exchange, Frame, FrameBody, FrameId, Transcript};
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// What came of an action.
pub(in crate::run) struct Answer {
    pub(in crate::run) result: Result<Value, ErrorResponse>,
    pub(in crate::run) payload: Payload,
    pub(in crate::run) frame: Option<FrameId>,
    pub(in crate::run) elapsed: Duration,
}

/// A response that is no result.
#[derive(Clone, Debug)]
pub(in crate::run) enum ErrorResponse {
    Rpc(RpcError),
    /// Only of what was sent as it stood: an HTTP status, without a message.
    Status(u16),
}

impl fmt::Display for ErrorResponse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rpc(error) => write!(formatter, "{error}"),
            Self::Status(status) => write!(formatter, "HTTP status {status} without a JSON-RPC message"),
        }
    }
}

/// An action that was done.
pub(super) struct Done {
    /// `None` where there is nothing to look at.
    pub(super) outcome: Result<Option<Answer>, Diagnostic>,
    /// What kept the response from coming.
    pub(super) retry_cause: Option<RetryCause>,
    /// One for each time that it was tried.
    pub(super) exchanges: Vec<Exchange>,
    /// The tool that was called.
    pub(super) target: Option<String>,
}

pub(super) async fn act(step: &Step, open: &Open, scope: &Map<String, Value>, terms: Deadline, policy: Policy<'_>) -> Done {
    let deadline = terms.idle;
    let request = match request(step, open.session.handshake().era, scope) {
        Ok(request) => request,
        Err(diagnostic) => return Done { outcome: Err(diagnostic), retry_cause: None, exchanges: Vec::new(), target: None },
    };
    let started = Instant::now();
    let ActionAttempts { outcome, retry_cause, earlier, last } = match (&step.action, &request, step.task) {
        (Action::Cancel { after, reason, .. }, Some(request), _) => {
            ActionAttempts::once(cancel(request, *after, reason, open, scope).await)
        }
        (_, Some(request), Some(task)) => ActionAttempts::once(as_task(request, task, open, deadline).await),
        (action, Some(request), None) => ask(action, request, open, terms, policy).await,
        (Action::List(listing), None, _) => list(*listing, open, deadline, policy).await,
        (action, None, _) => ActionAttempts::once(besides(action, step, open, scope, deadline).await),
    };
    let revision = &open.session.handshake().protocol_version;
    let outcome = outcome.and_then(|answer| match answer.as_ref().and_then(|answer| shape(&step.action, answer, revision)) {
        Some(flaw) => Err(flaw.evidence(diagnosis::evidence(&open.tap.transcript(), answer.as_ref().and_then(|answer| answer.frame)))),
        None => Ok(answer),
    });
    let asked = match (&step.action, request) {
        (_, Some(Request { method, target, arguments, .. })) => Some((method.to_owned(), target, arguments)),
        (Action::List(listing), None) => Some((listing.method().to_owned(), None, Map::new())),
        (Action::Raw(message), None) => message.get("method").and_then(Value::as_str).map(|method| (method.to_owned(), None, Map::new())),
        (_, None) => None,
    };
    let target = asked.as_ref().and_then(|(_, target, _)| target.clone());
    let mut exchanges = Vec::new();
    if let Some((method, target, arguments)) = asked {
        let (answer, frame) = kind(&outcome);
        let duration = last.unwrap_or_else(|| started.elapsed());
        let exchange = Exchange { method, target, arguments, answer, retried: false, duration, frame };
        let lost = |duration| Exchange { answer: AnswerKind::Nothing, retried: true, frame: None, duration, ..exchange.clone() };
        exchanges.extend(earlier.into_iter().map(lost));
        exchanges.push(exchange);
    }
    Done { outcome, retry_cause, exchanges, target }
}

fn kind(outcome: &Result<Option<Answer>, Diagnostic>) -> (AnswerKind, Option<FrameId>) {
    match outcome {
        Ok(Some(Answer { result: Err(_), frame, .. })) => (AnswerKind::RpcError, *frame),
        Ok(Some(Answer { result: Ok(result), frame, .. })) if is_tool_error(result) => (AnswerKind::ToolError, *frame),
        Ok(Some(Answer { frame, .. })) => (AnswerKind::Result, *frame),
        Ok(None) | Err(_) => (AnswerKind::Nothing, None),
    }
}

/// What is no request of the protocol.
async fn besides(
    action: &Action,
    step: &Step,
    open: &Open,
    scope: &Map<String, Value>,
    deadline: Duration,
) -> Result<Option<Answer>, Diagnostic> {
    let session = &open.session;
    match action {
        Action::Handshake => {
            let handshake = session.handshake();
            let payload = Payload::of(handshake.to_value());
            Ok(Some(Answer { result: Ok(handshake.result.clone()), payload, frame: None, elapsed: Duration::ZERO }))
        }
        Action::Subscribe(topic) => open.subscriptions.open(topic, open, scope, deadline).await.map(Some),
        Action::Unsubscribe(topic) => open.subscriptions.close(topic, open, scope, deadline).await.map(Some),
        Action::Raw(message) => {
            let message = fill_object(message, scope)?;
            let is_call = message.get("method").and_then(Value::as_str) == Some(methods::TOOLS_CALL);
            as_it_stood(session.send_message(&message, deadline).await, is_call, open).await
        }
        Action::SendBytes(bytes) => {
            let bytes = match bytes {
                Bytes::Text(text) => fill_text(text, scope)?.into_bytes(),
                Bytes::Fixed(bytes) => bytes.clone(),
            };
            let wait_for = if expects_an_answer(step) { WaitFor::Answer } else { WaitFor::Nothing };
            as_it_stood(session.send_bytes(bytes, wait_for, deadline).await, false, open).await
        }
        Action::Http(request) => over_http(request, open, scope, deadline).await.map(Some),
        Action::CloseStdin => {
            tell_to_end(step, open)?;
            session.close_stdin();
            Ok(None)
        }
        Action::Signal(signal) => {
            tell_to_end(step, open)?;
            session.signal(*signal);
            Ok(None)
        }
        _ => unreachable!("all others are requests, or done by the case"),
    }
}

/// From here on the server may end. An end before is none that the step has brought about.
fn tell_to_end(step: &Step, open: &Open) -> Result<(), Diagnostic> {
    match (open.told_to_end.swap(true, Ordering::Relaxed), open.session.exit()) {
        (false, Some(exit)) => Err(Diagnostic::error("server-exited", format!("{exit}, before this step told it to end"))),
        (true, Some(_)) => Ok(()),
        (_, None) => {
            *open.ended_by.lock().unwrap_or_else(PoisonError::into_inner) = Some(step.place.clone());
            Ok(())
        }
    }
}

fn expects_an_answer(step: &Step) -> bool {
    let expect = &step.expect;
    let judged = expect.payload.is_some() || expect.result.is_some() || expect.failure.is_some();
    judged || step.within.is_some() || step.snapshot.is_some() || !step.save.is_empty()
}

/// An action with all its attempts.
struct ActionAttempts {
    outcome: Result<Option<Answer>, Diagnostic>,
    retry_cause: Option<RetryCause>,
    /// How long each attempt before the last one took.
    earlier: Vec<Duration>,
    /// How long the last one took, where somebody looked.
    last: Option<Duration>,
}

impl ActionAttempts {
    fn once(outcome: Result<Option<Answer>, Diagnostic>) -> Self {
        Self { outcome, retry_cause: None, earlier: Vec::new(), last: None }
    }

    async fn of(persisted: RetriedRequest<Result<Answer, Diagnostic>>, method: &str, open: &Open, faults_before: usize) -> Self {
        let RetriedRequest { outcome, retry_cause, earlier, last, given_up } = persisted;
        let outcome = match outcome {
            Ok(answered) => answered.map(Some),
            Err(request_error) => Err(resilience::explain(request_error, method, open, earlier.len() + 1, faults_before, given_up).await),
        };
        Self { outcome, retry_cause, earlier, last: Some(last) }
    }
}

async fn ask(action: &Action, request: &Request, open: &Open, deadline: Deadline, policy: Policy<'_>) -> ActionAttempts {
    let faults_before = resilience::faults_so_far(open);
    let is_call = matches!(action, Action::Call { .. });
    let tool = request.target.as_deref().filter(|_| is_call);
    let send = || async move {
        let sent = open.session.request_rounds(request.method, Some(request.params.clone()), deadline).await;
        sent.map_err(RequestError::Call)
    };
    let RetriedRequest { outcome, retry_cause, earlier, last, given_up } =
        persist(open, policy, tool, deadline.idle, send, retry_cause_of).await;
    let outcome = outcome.map(|reply| Ok(answer(reply, is_call)));
    ActionAttempts::of(RetriedRequest { outcome, retry_cause, earlier, last, given_up }, request.method, open, faults_before).await
}

/// Calls a tool as a task, and gives its result once it has ended.
async fn as_task(request: &Request, task: TaskCall, open: &Open, deadline: Duration) -> Result<Option<Answer>, Diagnostic> {
    let (session, end) = (&open.session, Instant::now() + deadline);
    let flawed =
        |code: &str, message: String, frame| Diagnostic::error(code, message).evidence(diagnosis::evidence(&open.tap.transcript(), frame));
    let followed = match session.call_as_task(request.params.clone(), task.ttl, deadline).await {
        Ok(Called::Task(mut task)) => task.finish(session, end.saturating_duration_since(Instant::now())).await,
        Ok(Called::Answered(reply)) if reply.answer.is_err() => return Ok(Some(answer(reply, true))),
        Ok(Called::Answered(reply)) => {
            let message = "the call returned at once and did not become a task".to_owned();
            return Err(flawed("not-a-task", message, Some(reply.frame)).hint("leave out `task` if the server may respond at once"));
        }
        Err(failure) => Err(failure),
    };
    match followed {
        Ok(TaskEnd { reply: Some(reply), .. }) => Ok(Some(answer(reply, true))),
        Ok(TaskEnd { status, reply: None }) => {
            Err(flawed("task-without-result", format!("the task is {status}, so that it has no result"), None))
        }
        Err(failure) => Err(diagnosis::of_task_failure(&failure, request.method, &scene(open).await)),
    }
}

async fn cancel(
    request: &Request,
    after: Duration,
    reason: &str,
    open: &Open,
    scope: &Map<String, Value>,
) -> Result<Option<Answer>, Diagnostic> {
    let reason = fill_text(reason, scope)?;
    match open.session.request_and_cancel(request.method, Some(request.params.clone()), after, &reason).await {
        Err(CallFailure::Cancelled { .. }) => Ok(None),
        Ok(Reply { elapsed, frame, .. }) => {
            let message = format!("the response arrived after {}, before the call was canceled", show(elapsed));
            let diagnostic = Diagnostic::error("response-before-cancel", message).hint("shorten `after`, or call what takes longer");
            Err(diagnostic.evidence(diagnosis::evidence(&open.tap.transcript(), Some(frame))))
        }
        Err(failure) => Err(diagnosis::of_call_failure(&failure, request.method, &scene(open).await)),
    }
}

pub(in crate::run) fn answer(reply: Reply, is_call: bool) -> Answer {
    let payload = match &reply.answer {
        Err(error) => Payload::of(error.to_value()),
        Ok(result) if is_call => Payload::from_call_result(result),
        Ok(result) => Payload::of(result.clone()),
    };
    Answer { result: reply.answer.map_err(ErrorResponse::Rpc), payload, frame: Some(reply.frame), elapsed: reply.elapsed }
}

/// Whether large numbers of a response are those that the server sent: known where it came in one frame, and of lists before.
pub(super) fn numbers(action: &Action, answer: &Answer, open: &Open) -> Numbers {
    let known = answer.payload.numbers;
    let is_of_one_frame = answer.payload.origin == Origin::Json && !matches!(action, Action::List(_));
    if !is_of_one_frame || !has_large_number(&answer.payload.value) {
        return known;
    }
    match answer.frame.and_then(|frame| open.tap.frame(frame)).map(|frame| frame.body) {
        Some(FrameBody::Line { bytes, .. } | FrameBody::HttpBody { bytes, .. } | FrameBody::SseEvent { data: Some(bytes), .. }) => {
            Numbers::of(&bytes.to_text())
        }
        _ => known,
    }
}

/// The same for a list, whose pages came from the frame `begun` to the frame `last`.
fn numbers_of_pages(value: &Value, begun: FrameId, last: FrameId, open: &Open) -> Numbers {
    if !has_large_number(value) {
        return Numbers::Exact;
    }
    let Transcript { frames, dropped } = open.tap.transcript_since(begun);
    let is_rounded = |frame: &Frame| match &frame.body {
        FrameBody::Line { bytes, .. } | FrameBody::HttpBody { bytes, .. } | FrameBody::SseEvent { data: Some(bytes), .. } => {
            frame.direction == Direction::FromServer && Numbers::of(&bytes.to_text()) == Numbers::Rounded
        }
        _ => false,
    };
    let are_kept = dropped == 0 && frames.iter().any(|frame| frame.id == last);
    if are_kept && !frames.iter().any(is_rounded) { Numbers::Exact } else { Numbers::Rounded }
}

async fn as_it_stood(outcome: Result<Option<Reply>, CallFailure>, is_call: bool, open: &Open) -> Result<Option<Answer>, Diagnostic> {
    match outcome {
        Ok(reply) => Ok(reply.map(|reply| answer(reply, is_call))),
        Err(CallFailure::Unanswered(Unanswered::Response { head, excerpt, .. })) if head.status >= 400 => {
            let payload = Payload::of(json!({ "status": head.status, "body": excerpt }));
            Ok(Some(Answer { result: Err(ErrorResponse::Status(head.status)), payload, frame: Some(head.frame), elapsed: Duration::ZERO }))
        }
        Err(failure) => Err(diagnosis::of_call_failure(&failure, "what was sent", &scene(open).await)),
    }
}

async fn over_http(request: &HttpRequest, open: &Open, scope: &Map<String, Value>, deadline: Duration) -> Result<Answer, Diagnostic> {
    let HttpRequest { method, path, headers, body, in_session } = request;
    let path = path.as_ref().map(|path| fill_text(path, scope)).transpose()?;
    let mut all = Vec::new();
    for (name, value) in headers {
        all.push((name.clone(), fill_text(value, scope)?));
    }
    let body = match body.as_ref().map(|body| fill(body, scope)).transpose()? {
        None => Vec::new(),
        Some(Value::String(text)) => text.into_bytes(),
        Some(json) => {
            if !all.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                all.push(("content-type".into(), "application/json".into()));
            }
            json.to_string().into_bytes()
        }
    };
    let question =
        RawHttpRequest { method: method.clone(), path, headers: all, body, in_session: *in_session, ..RawHttpRequest::default() };
    let asked = open.session.ask_over_http(&question, deadline).await;
    match asked.expect("a case runs only where its actions can be done") {
        Ok(RawHttpResponse { head, body, elapsed }) => {
            let mut headers = Map::new();
            for (name, value) in &head.headers {
                match headers.get_mut(name) {
                    Some(Value::String(known)) => *known = format!("{known}, {value}"),
                    _ => drop(headers.insert(name.clone(), json!(value))),
                }
            }
            let text = String::from_utf8_lossy(&body).into_owned();
            let body = match text.as_str() {
                "" => Value::Null,
                text => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
            };
            let value = json!({ "status": head.status, "headers": headers, "body": body });
            let numbers = Numbers::of(&text);
            let payload = Payload { value: value.clone(), text: Some(text), origin: Origin::Http, numbers };
            Ok(Answer { result: Ok(value), payload, frame: Some(head.frame), elapsed })
        }
        Err(failure) => Err(diagnosis::of_call_failure(&failure, method, &scene(open).await)),
    }
}

async fn list(listing: Listing, open: &Open, deadline: Duration, policy: Policy<'_>) -> ActionAttempts {
    let faults_before = resilience::faults_so_far(open);
    let persisted = persist(open, policy, None, deadline, || list_once(listing, open, deadline), |_| None).await;
    ActionAttempts::of(persisted, listing.method(), open, faults_before).await
}

/// The outer error is one of the wire, the inner one of the list that came.
async fn list_once(listing: Listing, open: &Open, deadline: Duration) -> Result<Result<Answer, Diagnostic>, RequestError> {
    let method = listing.method();
    let (key, name) = listing.members();
    let begun = open.tap.mark();
    let listed = match open.session.list(method, key, deadline).await {
        Ok(listed) => listed,
        Err(ListFailure::Rpc { error, frame, .. }) => {
            let payload = Payload::of(error.to_value());
            return Ok(Ok(Answer { result: Err(ErrorResponse::Rpc(error)), payload, frame: Some(frame), elapsed: Duration::ZERO }));
        }
        Err(failure) => return Err(RequestError::List(failure)),
    };
    if listing == Listing::Tools {
        open.outputs.learn(&listed).await;
    }
    let flawed = |code: &str, message: String| Diagnostic::error(code, message).evidence(diagnosis::evidence(&open.tap.transcript(), None));
    let mut by_name = Map::new();
    for item in &listed.items {
        let Some(found) = item.get(name).and_then(Value::as_str) else {
            return Ok(Err(flawed("invalid-result", format!("an item of {method} has no text `{name}`: {item}"))));
        };
        if by_name.insert(found.to_owned(), item.clone()).is_some() {
            return Ok(Err(flawed("duplicate-name", format!("{method} lists `{found}` twice"))));
        }
    }
    // Moved, not copied: a list may be as large as the bounds allow.
    let result = Value::Object(Map::from_iter([(key.to_owned(), Value::Array(listed.items))]));
    let value = Value::Object(by_name);
    let numbers = numbers_of_pages(&value, begun, listed.frame, open);
    let payload = Payload { numbers, ..Payload::of(value) };
    Ok(Ok(Answer { result: Ok(result), payload, frame: Some(listed.frame), elapsed: listed.elapsed }))
}

/// What is wrong with a result, whatever the step expects: clients validate results and refuse such a one. What a step sends as it
/// stands gets its response as it stands.
pub(super) fn shape(action: &Action, answer: &Answer, revision: &str) -> Option<Diagnostic> {
    let method = match action {
        Action::Call { .. } => methods::TOOLS_CALL,
        Action::Read { .. } => methods::RESOURCES_READ,
        Action::Prompt { .. } => methods::PROMPTS_GET,
        Action::Complete { .. } => methods::COMPLETION_COMPLETE,
        Action::Ping => methods::PING,
        Action::List(listing) => listing.method(),
        _ => return None,
    };
    let result = answer.result.as_ref().ok()?;
    let flawed = |flaw: &str| Some(Diagnostic { actual: Some(pretty(result)), ..Diagnostic::error("invalid-result", flaw) });
    if Revision::at(revision) >= Revision::V2026_07_28 && result.get("resultType").and_then(Value::as_str) == Some("input_required") {
        return flawed("the server requests input that no client response is configured for, or requests it without end");
    }
    let flaws = result_flaws(result, method, revision);
    let flaw = flaws.iter().find(|flaw| !is_tolerated(flaw, action, result))?;
    flawed(&format!("the result is not valid: {}, at `{}`", flaw.message, flaw.pointer.trim_start_matches("/result")))
}

/// What clients do without, and what a list of several pages is put together without.
fn is_tolerated(flaw: &MessageFlaw, action: &Action, result: &Value) -> bool {
    let is_of_page = matches!(action, Action::List(_)) && flaw.pointer.matches('/').count() < 3;
    // Clients take a result without a type for a complete one.
    let has_no_type = flaw.pointer == "/result/resultType" && result.get("resultType").is_none();
    // No client looks at the syntax of these keys, and FastMCP 2 sends `_fastmcp` with each tool; `check` reports it.
    let is_meta_key = flaw.message.contains("is not a valid key for `_meta`");
    is_of_page || has_no_type || is_meta_key || matches!(flaw.pointer.as_str(), "/result/ttlMs" | "/result/cacheScope")
}

pub(in crate::run) async fn scene(open: &Open) -> Scene {
    Scene::of(&open.session, &open.tap, Audience::Suite).await
}

pub(super) fn show(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1e3)
}
