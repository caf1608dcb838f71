//! Calls of tools: arguments are checked strictly, mistakes that a model can mend are results.

use super::catalogue::PICTURE;
use super::message::{Outlet, Received, RpcError, notification};
use super::session::rank;
use super::ticket::Ticket;
use super::{fixtures, legacy_tasks};
use crate::zoo::InternalDeviation;
use crate::zoo::deviation::die;
use mcproof_protocol::error_code::INTERNAL_ERROR;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::Duration;
use uuid::Uuid;

/// The longest that a call waits at once.
const STEP: Duration = Duration::from_millis(100);

/// The result of a call; `None` if it was cancelled.
pub(super) fn call(received: &Received, ticket: &Ticket, outlet: &dyn Outlet) -> Result<Option<Value>, RpcError> {
    let name = received.params()["name"].as_str().ok_or_else(|| RpcError::invalid_params("`name` must be a string"))?;
    let tool = received.server.catalogue.tool(name).ok_or_else(|| RpcError::invalid_params(format!("Unknown tool: {name}")))?;
    let arguments = match received.params().get("arguments") {
        None => json!({}),
        Some(arguments) if arguments.is_object() => arguments.clone(),
        Some(_) => return Err(RpcError::invalid_params("`arguments` must be an object")),
    };
    log(received, outlet, "debug", &format!("{name} was called"));
    if let Some(outcome) = legacy_tasks::call(received, name) {
        return outcome.map(Some);
    }
    Ok(match mistakes(&tool["inputSchema"], &arguments) {
        Some(mistakes) => Some(refused(&mistakes)),
        None => match fixtures::call(received, name, &arguments, outlet) {
            Some(outcome) => Some(outcome?),
            None if !asks_first(received, name, ticket, outlet)? => None,
            None => run(received, name, &arguments, ticket, outlet),
        },
    })
}

/// What is wrong with the arguments.
fn mistakes(schema: &Value, arguments: &Value) -> Option<String> {
    // A schema that does not compile is what some rows are about; nothing can be held against it.
    let validator = jsonschema::validator_for(schema).ok()?;
    let all: Vec<String> =
        validator.iter_errors(arguments).map(|error| format!("{error} at {:?}", error.instance_path().as_str())).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Asks the client something before `echo`, where the server does that wrongly or cannot cope with a user who declines. Whether the call is
/// still wanted then.
fn asks_first(received: &Received, name: &str, ticket: &Ticket, outlet: &dyn Outlet) -> Result<bool, RpcError> {
    let server = &received.server;
    let (is_endless, breaks) = (server.deviates(InternalDeviation::FormsWithoutEnd), server.deviates(InternalDeviation::DeclinesBreak));
    if name == "echo" && !received.is_modern() {
        if server.deviates(InternalDeviation::PagesForAnyElicitation) && received.client_can("/elicitation") {
            let (id, url) = (Uuid::new_v4().to_string(), "https://zoo.example/sign-in");
            let page = json!({ "mode": "url", "message": "Please sign in", "url": url, "elicitationId": id });
            server.ask(received, outlet, "elicitation/create", page);
        }
        if server.deviates(InternalDeviation::ToolsForAnySampling) && received.client_can("/sampling") {
            let message = json!({ "role": "user", "content": { "type": "text", "text": "Which animal is hungry?" } });
            let tool = json!({ "name": "feed", "description": "Feeds an animal", "inputSchema": { "type": "object" } });
            let params = json!({ "messages": [message], "maxTokens": 100, "tools": [tool] });
            server.ask(received, outlet, "sampling/createMessage", params);
        }
    }
    let (hangs, kills) = (server.deviates(InternalDeviation::CanceledFormsHang), server.deviates(InternalDeviation::CanceledFormsKill));
    if name != "echo" || received.is_modern() || !received.client_can("/elicitation") || !(is_endless || breaks || hangs || kills) {
        return Ok(true);
    }
    let form = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let params = json!({ "message": "Who are you?", "requestedSchema": form });
    if hangs || kills {
        let answer = server.ask(received, outlet, "elicitation/create", params);
        let is_canceled = answer.is_some_and(|answer| answer["action"] == "cancel");
        if is_canceled && kills {
            die(1);
        }
        while is_canceled && ticket.is_wanted(received.is_modern(), outlet) {
            sleep(STEP);
        }
        return Ok(!is_canceled);
    }
    let is_accepted = || {
        let answer = server.ask(received, outlet, "elicitation/create", params.clone());
        answer.is_some_and(|answer| answer["action"] == "accept")
    };
    while !is_accepted() {
        if breaks {
            return Err(RpcError::new(INTERNAL_ERROR, "Cannot read properties of undefined (reading 'name')"));
        }
        if !ticket.is_wanted(received.is_modern(), outlet) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn run(received: &Received, name: &str, arguments: &Value, ticket: &Ticket, outlet: &dyn Outlet) -> Option<Value> {
    let text = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
    let server = &received.server;
    Some(match name {
        "echo" if server.deviates(InternalDeviation::CallsLostBesideOthers) => return one_of_few(said(&text("text"))),
        "echo" => said(&text("text")),
        "add" => match sum(&arguments["a"], &arguments["b"]) {
            Some(sum) => structured(json!({ "sum": sum })),
            None => refused("the sum is too large"),
        },
        "patrol" => return patrol(received, arguments["steps"].as_u64().unwrap_or(5), ticket, outlet),
        "find_animals" => structured(json!({ "animals": match text("region").as_str() {
            "africa" => ["giraffe", "gnu", "lion", "okapi"].as_slice(),
            "asia" => &["gecko"],
            _ => &[],
        } })),
        "draw" => json!({ "content": [{ "type": "image", "data": PICTURE, "mimeType": "image/png" }] }),
        "read_note" => match server.notes().get(&text("name")) {
            Some(note) => said(note),
            None => refused("nothing was written down about that"),
        },
        "write_note" => {
            let before = server.notes().insert(text("name"), text("text"));
            if before != Some(text("text")) {
                server.notes_changed();
            }
            said("written down")
        }
        "discard_notes" => {
            server.notes().clear();
            server.notes_changed();
            said("thrown away")
        }
        _ => said("done"),
    })
}

/// What a pool of a few places gives: nothing, if all of them are taken.
fn one_of_few(result: Value) -> Option<Value> {
    const PLACES: usize = 3;
    const WORK: Duration = Duration::from_millis(20);
    static TAKEN: AtomicUsize = AtomicUsize::new(0);
    let others = TAKEN.fetch_add(1, Ordering::SeqCst);
    sleep(WORK);
    TAKEN.fetch_sub(1, Ordering::SeqCst);
    (others < PLACES).then_some(result)
}

/// `None` if no number of JSON can hold it.
fn sum(a: &Value, b: &Value) -> Option<Value> {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a.checked_add(b).map(Value::from),
        _ => serde_json::Number::from_f64(a.as_f64()? + b.as_f64()?).map(Value::Number),
    }
}

fn patrol(received: &Received, steps: u64, ticket: &Ticket, outlet: &dyn Outlet) -> Option<Value> {
    let token = received.params().pointer("/_meta/progressToken");
    for step in 1..=steps {
        sleep(STEP);
        if !ticket.is_wanted(received.is_modern(), outlet) {
            return None;
        }
        log(received, outlet, "info", &format!("round {step} of {steps}"));
        if let Some(token) = token {
            received
                .send(notification("notifications/progress", json!({ "progressToken": token, "progress": step, "total": steps })), outlet);
        }
    }
    Some(said("all is quiet"))
}

/// Tells the client what happened, if it wants to know.
pub(super) fn log(received: &Received, outlet: &dyn Outlet, level: &str, text: &str) {
    let wanted = if received.is_modern() {
        let asked = received.params().pointer("/_meta/io.modelcontextprotocol~1logLevel").and_then(Value::as_str);
        asked.is_some_and(|least| rank(level) >= rank(least))
    } else {
        received.session.wants_level(level)
    };
    if wanted {
        received.send(notification("notifications/message", json!({ "level": level, "logger": "zoo", "data": text })), outlet);
    }
}

fn said(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn structured(value: Value) -> Value {
    json!({ "content": [{ "type": "text", "text": value.to_string() }], "structuredContent": value })
}

pub(super) fn refused(why: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": why }], "isError": true })
}
