//! One step: does its action and judges the answer against its expectations.

use super::command;
use super::sessions::Sessions;
use crate::diagnosis::{self, Asker, Scene};
use crate::judge::Payload;
use crate::suite::interpolate;
use crate::suite::plan::{Action, Expectations, ExpectedFailure, Listing, Step};
use mcproof_client::jsonrpc::RpcError;
use mcproof_client::{Session, Tap};
use mcproof_record::{AnswerKind, Diagnostic, Difference, Exchange, FrameId};
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// A step that was run.
pub(super) struct StepRun {
    /// Empty when the step passed.
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) exchanges: Vec<Exchange>,
}

/// What came of an action.
struct Answer {
    result: Result<Value, RpcError>,
    payload: Payload,
    frame: Option<FrameId>,
    elapsed: Duration,
}

/// A request that is ready to be sent.
struct Request {
    method: &'static str,
    params: Option<Map<String, Value>>,
    target: Option<String>,
    arguments: Map<String, Value>,
}

/// Values that the step saves go into `scope`.
pub(super) async fn run_step(step: &Step, sessions: &mut Sessions<'_>, scope: &mut Map<String, Value>, deadline: Duration) -> StepRun {
    let mut exchanges = Vec::new();
    let place = |diagnostic: Diagnostic| match diagnostic.place {
        Some(_) => diagnostic,
        None => diagnostic.at(step.place.clone()),
    };
    let diagnostics = match attempt(step, sessions, scope, deadline, &mut exchanges).await {
        Ok(()) => Vec::new(),
        Err(diagnostics) => diagnostics.into_iter().map(place).collect(),
    };
    StepRun { diagnostics, exchanges }
}

async fn attempt(
    step: &Step,
    sessions: &mut Sessions<'_>,
    scope: &mut Map<String, Value>,
    deadline: Duration,
    exchanges: &mut Vec<Exchange>,
) -> Result<(), Vec<Diagnostic>> {
    if let Action::Run(launch) = &step.action {
        let started = Instant::now();
        let options = sessions.options;
        let payload = command::run(launch, options.mcproof.as_deref(), scope, &options.guardian, deadline).await;
        let payload = payload.map_err(|diagnostic| vec![diagnostic])?;
        if let (None, Some(failure)) = (&step.expect.payload, command::failure(launch, &payload)) {
            return Err(vec![failure]);
        }
        let answer = Answer { result: Ok(payload.value.clone()), payload, frame: None, elapsed: started.elapsed() };
        return conclude(judge(step, &answer, scope), step, &answer, scope);
    }
    let server = step.server.as_ref().expect("the parser gives a server to every step that needs one");
    let open = sessions.of(server).await.map_err(|diagnostic| vec![*diagnostic])?;
    let (session, tap) = (&open.session, &open.tap);
    let answer = act(&step.action, session, tap, scope, deadline, exchanges).await.map_err(|diagnostic| vec![diagnostic])?;
    let diagnostics = match shape(&step.action, &answer) {
        Some(flaw) => vec![flaw],
        None => judge(step, &answer, scope),
    };
    conclude(diagnostics, step, &answer, scope).map_err(|mut diagnostics| {
        let transcript = tap.transcript();
        for diagnostic in &mut diagnostics {
            diagnostic.evidence = Some(diagnosis::evidence(&transcript, answer.frame));
        }
        diagnostics
    })
}

/// Saves what the step saves if nothing was wrong so far.
fn conclude(mut diagnostics: Vec<Diagnostic>, step: &Step, answer: &Answer, scope: &mut Map<String, Value>) -> Result<(), Vec<Diagnostic>> {
    if diagnostics.is_empty() {
        diagnostics = save(step, answer, scope);
    }
    if diagnostics.is_empty() { Ok(()) } else { Err(diagnostics) }
}

async fn act(
    action: &Action,
    session: &Session,
    tap: &Tap,
    scope: &Map<String, Value>,
    deadline: Duration,
    exchanges: &mut Vec<Exchange>,
) -> Result<Answer, Diagnostic> {
    let request = match action {
        Action::Handshake => {
            let value = session.handshake().to_value();
            let result = session.handshake().result.clone();
            return Ok(Answer { result: Ok(result), payload: Payload::of(value), frame: None, elapsed: Duration::ZERO });
        }
        Action::List(listing) => Request { method: listing.method(), params: None, target: None, arguments: Map::new() },
        _ => request(action, scope)?,
    };
    let started = Instant::now();
    let outcome = match action {
        Action::List(listing) => list(*listing, session, tap, deadline).await,
        _ => ask(action, &request, session, tap, deadline).await,
    };
    let (answer, frame) = match &outcome {
        Ok(Answer { result: Err(_), frame, .. }) => (AnswerKind::RpcError, *frame),
        Ok(Answer { result: Ok(result), frame, .. }) if is_tool_error(result) => (AnswerKind::ToolError, *frame),
        Ok(Answer { frame, .. }) => (AnswerKind::Result, *frame),
        Err(_) => (AnswerKind::Nothing, None),
    };
    let Request { method, target, arguments, .. } = request;
    exchanges.push(Exchange { method: method.into(), target, arguments, answer, duration: started.elapsed(), frame });
    outcome
}

/// The request of an action, with its variables filled in.
fn request(action: &Action, scope: &Map<String, Value>) -> Result<Request, Diagnostic> {
    let fill = |value: &Value| interpolate(value, scope).map_err(|missing| Diagnostic::error("unknown-variable", missing.to_string()));
    let fill_text = |text: &str| fill(&json!(text)).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    let fill_object = |object: &Map<String, Value>| match fill(&Value::Object(object.clone()))? {
        Value::Object(object) => Ok(object),
        _ => unreachable!("variables in an object leave it an object"),
    };
    let of = |method: &'static str, params: Value, target: Option<String>, arguments: Map<String, Value>| Request {
        method,
        params: params.as_object().cloned(),
        target,
        arguments,
    };
    Ok(match action {
        Action::Call { tool, arguments } => {
            let (tool, arguments) = (fill_text(tool)?, fill_object(arguments)?);
            of("tools/call", json!({ "name": tool, "arguments": arguments }), Some(tool), arguments)
        }
        Action::Read { uri } => {
            let uri = fill_text(uri)?;
            of("resources/read", json!({ "uri": uri }), Some(uri), Map::new())
        }
        Action::Prompt { name, arguments } => {
            let (name, arguments) = (fill_text(name)?, fill_object(arguments)?);
            let mut params = json!({ "name": name });
            if !arguments.is_empty() {
                params["arguments"] = Value::Object(arguments.clone());
            }
            of("prompts/get", params, Some(name), arguments)
        }
        Action::Complete { reference, argument, value } => {
            let reference = fill(reference)?;
            let value = fill_text(value)?;
            let target = reference.get("name").or(reference.get("uri")).and_then(Value::as_str).map(str::to_owned);
            let arguments = Map::from_iter([(argument.clone(), json!(value))]);
            of("completion/complete", json!({ "ref": reference, "argument": { "name": argument, "value": value } }), target, arguments)
        }
        Action::Ping => of("ping", Value::Null, None, Map::new()),
        Action::Handshake | Action::List(_) | Action::Run(_) => unreachable!("none of them is one request"),
    })
}

async fn ask(action: &Action, request: &Request, session: &Session, tap: &Tap, deadline: Duration) -> Result<Answer, Diagnostic> {
    let reply = match session.request_rounds(request.method, request.params.clone(), deadline).await {
        Ok(reply) => reply,
        Err(failure) => {
            return Err(diagnosis::of_call_failure(&failure, request.method, &Scene::of(session, tap, Asker::Suite).await));
        }
    };
    let payload = match (action, &reply.answer) {
        (_, Err(error)) => Payload::of(error.to_value()),
        (Action::Call { .. }, Ok(result)) => Payload::from_call_result(result),
        (_, Ok(result)) => Payload::of(result.clone()),
    };
    Ok(Answer { result: reply.answer, payload, frame: Some(reply.frame), elapsed: reply.elapsed })
}

fn is_tool_error(result: &Value) -> bool {
    result.get("isError") == Some(&Value::Bool(true))
}

async fn list(listing: Listing, session: &Session, tap: &Tap, deadline: Duration) -> Result<Answer, Diagnostic> {
    let method = listing.method();
    let (key, name) = match listing {
        Listing::Tools => ("tools", "name"),
        Listing::Prompts => ("prompts", "name"),
        Listing::Resources => ("resources", "uri"),
        Listing::ResourceTemplates => ("resourceTemplates", "uriTemplate"),
    };
    let listed = match session.list(method, key, deadline).await {
        Ok(listed) => listed,
        Err(mcproof_client::ListFailure::Rpc { error, frame, .. }) => {
            let payload = Payload::of(error.to_value());
            return Ok(Answer { result: Err(error), payload, frame: Some(frame), elapsed: Duration::ZERO });
        }
        Err(failure) => {
            return Err(diagnosis::of_list_failure(&failure, method, &Scene::of(session, tap, Asker::Suite).await));
        }
    };
    let mut by_name = Map::new();
    for item in &listed.items {
        let Some(found) = item.get(name).and_then(Value::as_str) else {
            let message = format!("an item of {method} has no text `{name}`: {item}");
            return Err(Diagnostic::error("invalid-result", message).evidence(diagnosis::evidence(&tap.transcript(), None)));
        };
        if by_name.insert(found.to_owned(), item.clone()).is_some() {
            let message = format!("{method} lists `{found}` twice");
            return Err(Diagnostic::error("duplicate-name", message).evidence(diagnosis::evidence(&tap.transcript(), None)));
        }
    }
    // Moved, not copied: a list may be as large as the bounds allow.
    let result = Value::Object(Map::from_iter([(key.to_owned(), Value::Array(listed.items))]));
    Ok(Answer { result: Ok(result), payload: Payload::of(Value::Object(by_name)), frame: Some(listed.frame), elapsed: listed.elapsed })
}

/// What makes a result unusable for every client, whatever the step expects (2024-11-05 to 2026-07-28, schema,
/// `CallToolResult`).
fn shape(action: &Action, answer: &Answer) -> Option<Diagnostic> {
    let (Action::Call { .. }, Ok(result)) = (action, &answer.result) else { return None };
    let flaw = match (result, result.get("content")) {
        (Value::Object(_), Some(Value::Array(_))) => return None,
        (Value::Object(result), None) => match result.get("resultType").and_then(Value::as_str) {
            Some("input_required") => "the server asks for input, and no policy says how to answer",
            // An extension's result type has a shape of its own.
            Some(kind) if kind != "complete" => return None,
            _ => "the result of a tool has to have `content`",
        },
        (Value::Object(_), Some(_)) => "the `content` of a result has to be a list",
        _ => "the result of a tool has to be an object",
    };
    Some(Diagnostic { actual: Some(pretty(result)), ..Diagnostic::error("invalid-result", flaw) })
}

fn judge(step: &Step, answer: &Answer, scope: &Map<String, Value>) -> Vec<Diagnostic> {
    let Expectations { payload, result, names, failure } = &step.expect;
    let mut diagnostics = Vec::new();
    let outcome = judge_outcome(failure.as_ref().map(|failure| &failure.value), answer, scope);
    if let Err(mut diagnostic) = outcome {
        diagnostic.place = Some(failure.as_ref().map_or(&step.place, |failure| &failure.place).clone());
        // What a failure lacks in its result is no news.
        return vec![diagnostic];
    }
    if let Some(matcher) = payload {
        let differences = matcher.compare(&answer.payload, scope);
        diagnostics.extend(mismatch("answer", differences, &answer.payload.value).map(|found| found.at(matcher.place().clone())));
    }
    if let (Some(matcher), Ok(raw)) = (result, &answer.result) {
        let differences = matcher.compare(&Payload::of(raw.clone()), scope);
        diagnostics.extend(mismatch("result", differences, raw).map(|found| found.at(matcher.place().clone())));
    }
    if let (Some(names), Value::Object(found)) = (names, &answer.payload.value) {
        diagnostics.extend(judge_names(&names.value, found).map(|diagnostic| diagnostic.at(names.place.clone())));
    }
    if let Some(within) = step.within.as_ref().filter(|within| answer.elapsed > within.value) {
        let message = format!("the answer took {}, longer than {}", show(answer.elapsed), show(within.value));
        diagnostics.push(Diagnostic::error("too-slow", message).at(within.place.clone()));
    }
    diagnostics
}

/// Whether the action succeeded or failed as the step expects it.
fn judge_outcome(expected: Option<&ExpectedFailure>, answer: &Answer, scope: &Map<String, Value>) -> Result<(), Diagnostic> {
    let is_error = answer.result.as_ref().is_ok_and(is_tool_error);
    let text = || answer.payload.text.clone().unwrap_or_else(|| answer.payload.value.to_string());
    let unexpected = |message: String| {
        Err(Diagnostic { actual: Some(pretty(&answer.payload.value)), ..Diagnostic::error("unexpected-outcome", message) })
    };
    match (expected, &answer.result) {
        (None | Some(ExpectedFailure::Tool(_)), Err(error)) => {
            let wanted = if expected.is_some() { "expected an `isError` result" } else { "expected a result" };
            unexpected(format!("{wanted}, found {error}"))
        }
        (None, Ok(_)) if is_error => unexpected(format!("expected success, found an `isError` result: {}", text())),
        (Some(ExpectedFailure::Either), Err(_)) | (None, Ok(_)) => Ok(()),
        (Some(ExpectedFailure::Either), Ok(_)) if is_error => Ok(()),
        (Some(ExpectedFailure::Either), Ok(_)) => unexpected("expected a failure, but the call succeeded".into()),
        (Some(ExpectedFailure::Tool(_)), Ok(_)) if !is_error => unexpected("expected an `isError` result, but the call succeeded".into()),
        (Some(ExpectedFailure::Tool(pattern)), Ok(_)) => match pattern {
            Some(pattern) if !pattern.matches_within(&text(), scope) => {
                unexpected(format!("the error text does not match {}: {}", pattern.describe_within(scope), text()))
            }
            _ => Ok(()),
        },
        (Some(ExpectedFailure::Rpc(_)), Ok(_)) => {
            unexpected(format!("expected a JSON-RPC error, found {}", if is_error { "an `isError` result" } else { "a result" }))
        }
        (Some(ExpectedFailure::Rpc(matcher)), Err(error)) => {
            let error = error.to_value();
            let differences = matcher.as_ref().map(|matcher| matcher.compare(&Payload::of(error.clone()), scope)).unwrap_or_default();
            mismatch("JSON-RPC error", differences, &error).map_or(Ok(()), Err)
        }
    }
}

fn mismatch(what: &str, differences: Vec<Difference>, actual: &Value) -> Option<Diagnostic> {
    let message = match differences.len() {
        0 => return None,
        1 => format!("the {what} is not as expected"),
        count => format!("the {what} is not as expected in {count} places"),
    };
    Some(Diagnostic { differences, actual: Some(pretty(actual)), ..Diagnostic::error("unexpected-value", message) })
}

fn judge_names(expected: &[String], found: &Map<String, Value>) -> Option<Diagnostic> {
    let missing: Vec<&str> = expected.iter().map(String::as_str).filter(|name| !found.contains_key(*name)).collect();
    let extra: Vec<&str> = found.keys().map(String::as_str).filter(|name| !expected.iter().any(|known| known == name)).collect();
    let part = |names: &[&str], label: &str| (!names.is_empty()).then(|| format!("{label} {}", names.join(", ")));
    let parts: Vec<String> = [part(&missing, "missing:"), part(&extra, "not expected:")].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| Diagnostic::error("unexpected-names", format!("the list is not as expected; {}", parts.join("; "))))
}

fn save(step: &Step, answer: &Answer, scope: &mut Map<String, Value>) -> Vec<Diagnostic> {
    let result = answer.result.as_ref().map_or(Value::Null, Clone::clone);
    let mut diagnostics = Vec::new();
    for (name, path) in &step.save {
        match path.value.select(&answer.payload, &result) {
            Ok(value) => {
                scope.insert(name.clone(), value.clone());
            }
            Err(error) => {
                let mut diagnostic =
                    Diagnostic::error("nothing-to-save", format!("`{name}` cannot be saved: {error}")).at(path.place.clone());
                diagnostic.actual = Some(pretty(&answer.payload.value));
                diagnostic.hint = error.hint;
                diagnostics.push(diagnostic);
            }
        }
    }
    diagnostics
}

/// Indented JSON, cut where nobody reads on.
fn pretty(value: &Value) -> String {
    const MOST: usize = 4000;
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    if let Some((end, _)) = text.char_indices().nth(MOST) {
        text.truncate(end);
        text.push('…');
    }
    text
}

fn show(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1e3)
}
