//! The methods that both eras have: lists, resources, prompts and completion.

use super::calls;
use super::catalogue::{PICTURE, SPECIES};
use super::message::{Outlet, Received, RpcError};
use super::notes::NOTES;
use super::tasks;
use super::ticket::Ticket;
use super::{fixtures, legacy_tasks};
use crate::zoo::InternalDeviation;
use serde_json::{Value, json};

/// The result of a request; `None` if it was cancelled.
///
/// # Errors
/// It is refused.
pub(crate) fn answer(received: &Received, ticket: &Ticket, outlet: &dyn Outlet) -> Result<Option<Value>, RpcError> {
    let catalogue = &received.server.catalogue;
    Ok(Some(match received.method() {
        "tools/list" => {
            let mut page = page(received, "tools", &catalogue.tools)?;
            if legacy_tasks::has_tasks(received) {
                legacy_tasks::mark(&mut page["tools"]);
            }
            page
        }
        "resources/list" => page(received, "resources", &catalogue.resources)?,
        "resources/templates/list" => page(received, "resourceTemplates", &catalogue.templates)?,
        "prompts/list" => page(received, "prompts", &catalogue.prompts)?,
        "tools/call" => return calls::call(received, ticket, outlet),
        "resources/read" => read(received)?,
        "prompts/get" => prompt(received)?,
        "completion/complete" => complete(received)?,
        method if method.starts_with("tasks/") && legacy_tasks::has_tasks(received) => {
            return legacy_tasks::answer(received, ticket, outlet);
        }
        _ => tasks::answer(received)?,
    }))
}

pub(super) fn page(received: &Received, key: &str, items: &[Value]) -> Result<Value, RpcError> {
    let size = received.server.catalogue.page;
    // A replica that knows only its own cursors is what one row is about.
    let mark =
        if received.server.deviates(InternalDeviation::CursorsOfOneProcess) { std::process::id().to_string() } else { key.to_owned() };
    let from = match received.params().get("cursor") {
        None => 0,
        Some(cursor) => {
            let place = cursor.as_str().and_then(|cursor| cursor.strip_prefix(&mark)?.strip_prefix('-')?.parse().ok());
            place
                .filter(|from| from % size == 0 && *from < items.len() && *from > 0)
                .ok_or_else(|| RpcError::invalid_params("Unknown cursor"))?
        }
    };
    let to = (from + size).min(items.len());
    let mut result = json!({ key: items[from..to] });
    if to < items.len() {
        result["nextCursor"] = json!(format!("{mark}-{to}"));
    }
    Ok(result)
}

/// Whether there is a resource at that URI.
pub(crate) fn is_resource(received: &Received, uri: &str) -> bool {
    contents(received, uri).is_some()
}

/// The refusal of a resource that is not there. The code changed with 2026-07-28.
pub(crate) fn no_resource(received: &Received, uri: &str) -> RpcError {
    let code = if received.is_modern() { super::message::INVALID_PARAMS } else { -32002 };
    RpcError::new(code, "Resource not found").with(json!({ "uri": uri }))
}

fn read(received: &Received) -> Result<Value, RpcError> {
    let uri = received.params()["uri"].as_str().ok_or_else(|| RpcError::invalid_params("`uri` must be a string"))?;
    let contents = contents(received, uri).ok_or_else(|| no_resource(received, uri))?;
    Ok(json!({ "contents": [contents] }))
}

fn contents(received: &Received, uri: &str) -> Option<Value> {
    if let Some(species) = uri.strip_prefix("zoo://animals/") {
        let known = SPECIES.contains(&species);
        return known.then(|| json!({ "uri": uri, "mimeType": "text/plain", "text": format!("The {species} lives here.") }));
    }
    let catalogue = &received.server.catalogue;
    if let Some(contents) = fixtures::contents(uri).filter(|_| catalogue.tool("test_simple_text").is_some()) {
        return Some(contents);
    }
    if let Some(page) = catalogue.pages.iter().find(|page| page["uri"] == uri) {
        return Some(page.clone());
    }
    let listed = catalogue.resources.iter().find(|resource| resource["uri"] == uri)?;
    let mut contents = json!({ "uri": uri, "mimeType": listed["mimeType"] });
    match uri {
        "zoo://gate/logo" => contents["blob"] = json!(PICTURE),
        NOTES => contents["text"] = json!(json!(*received.server.notes()).to_string()),
        _ => contents["text"] = json!("Do not feed the animals. Grüße, 動物園 🦒"),
    }
    Some(contents)
}

fn prompt(received: &Received) -> Result<Value, RpcError> {
    let name = received.name();
    let prompts = &received.server.catalogue.prompts;
    let prompt =
        prompts.iter().find(|prompt| prompt["name"] == name).ok_or_else(|| RpcError::invalid_params(format!("Unknown prompt: {name}")))?;
    let given = &received.params()["arguments"];
    if !(given.is_null() || given.as_object().is_some_and(|given| given.values().all(Value::is_string))) {
        return Err(RpcError::invalid_params("the arguments of prompts are strings"));
    }
    for argument in prompt["arguments"].as_array().into_iter().flatten() {
        let needed = argument["name"].as_str().unwrap_or_default();
        if argument["required"] == true && given.get(needed).is_none() {
            return Err(RpcError::invalid_params(format!("the argument `{needed}` is missing")));
        }
    }
    if let Some(outcome) = fixtures::prompt(received, name, given) {
        return outcome;
    }
    let text = match name {
        "feed" => format!("What does the {} eat?", given["animal"].as_str().unwrap_or_default()),
        _ => "What is there to see?".to_owned(),
    };
    let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
    Ok(json!({ "description": prompt["description"], "messages": [message] }))
}

fn complete(received: &Received) -> Result<Value, RpcError> {
    let (reference, argument) = (&received.params()["ref"], &received.params()["argument"]);
    let (Some(name), Some(typed)) = (argument["name"].as_str(), argument["value"].as_str()) else {
        return Err(RpcError::invalid_params("`argument` must have a name and a value"));
    };
    let catalogue = &received.server.catalogue;
    let known = match reference["type"].as_str() {
        Some("ref/prompt") => catalogue.prompts.iter().any(|prompt| prompt["name"] == reference["name"]),
        Some("ref/resource") => {
            let uri = &reference["uri"];
            catalogue.templates.iter().any(|template| template["uriTemplate"] == *uri)
                || catalogue.resources.iter().any(|resource| resource["uri"] == *uri)
        }
        _ => false,
    };
    if !known {
        return Err(RpcError::invalid_params("`ref` names nothing that is here"));
    }
    let values: Vec<&str> = match name {
        "animal" | "species" => SPECIES.into_iter().filter(|species| species.starts_with(typed)).collect(),
        _ => Vec::new(),
    };
    Ok(json!({ "completion": { "total": values.len(), "values": values, "hasMore": false } }))
}
