//! What the official conformance suite wants of a server that it tests, by its names: tools, resources and prompts, each of
//! which shows one feature.

use super::catalogue::{Catalogue, PICTURE, list};
use super::message::{Outlet, Received, RpcError, notification};
use super::{calls, legacy_tasks, modern, tasks};
use serde_json::{Map, Value, json};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::thread::sleep;
use std::time::Duration;

/// Half a second of silence.
const SOUND: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";
const MISSING_CAPABILITY: i64 = -32021;
/// Between two messages of one call.
const STEP: Duration = Duration::from_millis(20);

const PLAIN: [(&str, &str); 9] = [
    ("test_simple_text", "Gives a text."),
    ("test_image_content", "Gives an image."),
    ("test_audio_content", "Gives a sound."),
    ("test_embedded_resource", "Gives a resource."),
    ("test_multiple_content_types", "Gives a text, an image and a resource."),
    ("test_error_handling", "Fails on purpose."),
    ("test_tool_with_logging", "Logs while it works."),
    ("test_tool_with_progress", "Reports progress while it works."),
    ("test_logging_tool", "Logs if it is asked to."),
];
const ASKING: [(&str, &str); 13] = [
    ("test_elicitation_sep1034_defaults", "Shows a form with defaults."),
    ("test_elicitation_sep1330_enums", "Shows a form with choices."),
    ("test_missing_capability", "Needs a client that can sample."),
    ("test_streaming_elicitation", "Needs a name."),
    ("test_trigger_tool_change", "Says that the tools have changed."),
    ("test_input_required_result_elicitation", "Needs a name."),
    ("test_input_required_result_sampling", "Needs what a model says."),
    ("test_input_required_result_list_roots", "Needs the roots."),
    ("test_input_required_result_request_state", "Needs a yes, and remembers the question."),
    ("test_input_required_result_multiple_inputs", "Needs a name, what a model says, and the roots."),
    ("test_input_required_result_multi_round", "Needs a name, and then a colour."),
    ("test_input_required_result_tampered_state", "Needs a yes, and takes its own state only."),
    ("test_input_required_result_capabilities", "Needs whatever the client can give."),
];

impl Catalogue {
    /// The correct one, with all fixtures.
    pub(super) fn with_fixtures() -> Self {
        let mut catalogue = Self::correct();
        catalogue.page = 50;
        catalogue.capabilities["tools"] = json!({ "listChanged": true });
        catalogue.capabilities["extensions"] = json!({ tasks::DECLARED: {} });
        for (name, description) in PLAIN.into_iter().chain(ASKING) {
            catalogue.tools.push(tool(name, description, json!({ "type": "object", "properties": {} })));
        }
        for (name, description, argument) in
            [("test_sampling", "Asks the model.", "prompt"), ("test_elicitation", "Asks the user.", "message")]
        {
            let schema = json!({ "type": "object", "properties": { argument: { "type": "string" } }, "required": [argument] });
            catalogue.tools.push(tool(name, description, schema));
        }
        for (name, description, properties) in [
            (legacy_tasks::TOOLS[0].0, "Feeds all animals.", json!({})),
            (legacy_tasks::TOOLS[1].0, "Counts all animals.", json!({})),
            ("greet", "Says hello.", json!({ "name": { "type": "string" } })),
            ("slow_compute", "Takes its time.", json!({ "seconds": { "type": "integer" }, "label": { "type": "string" } })),
            ("failing_job", "Fails after a while.", json!({})),
            ("protocol_error_job", "Breaks after a while.", json!({})),
            ("confirm_delete", "Asks before it goes on.", json!({ "filename": { "type": "string" } })),
            ("multi_input", "Asks for two things before it goes on.", json!({})),
            ("test_tool_with_task", "Needs a name, and takes its time then.", json!({})),
        ] {
            catalogue.tools.push(tool(name, description, json!({ "type": "object", "properties": properties })));
        }
        catalogue.tools.push(tool("json_schema_2020_12_tool", "Has a schema with everything.", schema()));
        catalogue.resources.extend(list(json!([
            { "uri": "test://static-text", "name": "static-text", "description": "A text.", "mimeType": "text/plain" },
            { "uri": "test://static-binary", "name": "static-binary", "description": "An image.", "mimeType": "image/png" },
            { "uri": "test://watched-resource", "name": "watched-resource", "description": "A text.", "mimeType": "text/plain" },
        ])));
        catalogue.templates.extend(list(json!([
            { "uriTemplate": "test://template/{id}/data", "name": "template", "description": "A text.", "mimeType": "text/plain" },
        ])));
        let needed = |name: &str| json!({ "name": name, "description": "Any text.", "required": true });
        catalogue.prompts.extend(list(json!([
            { "name": "test_simple_prompt", "description": "A text." },
            { "name": "test_prompt_with_arguments", "description": "A text.", "arguments": [needed("arg1"), needed("arg2")] },
            { "name": "test_prompt_with_embedded_resource", "description": "A resource.", "arguments": [needed("resourceUri")] },
            { "name": "test_prompt_with_image", "description": "An image." },
            { "name": "test_input_required_result_prompt", "description": "Needs a context." },
        ])));
        catalogue
    }
}

fn tool(name: &str, description: &str, schema: Value) -> Value {
    let annotations = json!({ "readOnlyHint": false, "destructiveHint": false, "idempotentHint": false, "openWorldHint": false });
    json!({ "name": name, "description": description, "inputSchema": schema, "annotations": annotations })
}

fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": { "$anchor": "addressDef", "type": "object", "properties": { "city": { "type": "string" } } } },
        "properties": {
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

/// The result of a fixture; nothing if the tool is none.
pub(super) fn call(received: &Received, name: &str, arguments: &Value, outlet: &dyn Outlet) -> Option<Result<Value, RpcError>> {
    let text = |text: &str| json!({ "type": "text", "text": text });
    let image = || json!({ "type": "image", "data": PICTURE, "mimeType": "image/png" });
    let resource = |uri: &str| json!({ "type": "resource", "resource": { "uri": uri, "mimeType": "text/plain", "text": "a text" } });
    let blocks = |blocks: Value| Some(Ok(json!({ "content": blocks })));
    if let Some(outcome) = tasks::call(received, name, arguments) {
        return Some(outcome);
    }
    if let Some(result) = legacy_tasks::finished(name) {
        return Some(Ok(result));
    }
    match name {
        "test_simple_text" => blocks(json!([text("a text")])),
        "test_image_content" => blocks(json!([image()])),
        "test_audio_content" => blocks(json!([{ "type": "audio", "data": SOUND, "mimeType": "audio/wav" }])),
        "test_embedded_resource" => blocks(json!([resource("test://embedded-resource")])),
        "test_multiple_content_types" => blocks(json!([text("a text"), image(), resource("test://mixed-content-resource")])),
        "test_error_handling" => Some(Ok(calls::refused("failed on purpose"))),
        "test_tool_with_logging" | "test_logging_tool" => {
            for step in ["started", "at work", "done"] {
                calls::log(received, outlet, "info", step);
                sleep(STEP);
            }
            blocks(json!([text("logged")]))
        }
        "test_tool_with_progress" => {
            if let Some(token) = received.params().pointer("/_meta/progressToken") {
                for progress in [0, 50, 100] {
                    let params = json!({ "progressToken": token, "progress": progress, "total": 100 });
                    received.send(notification("notifications/progress", params), outlet);
                    sleep(STEP);
                }
            }
            blocks(json!([text("done")]))
        }
        "json_schema_2020_12_tool" => blocks(json!([text("called")])),
        "test_trigger_tool_change" => {
            modern::tools_changed(&received.server);
            blocks(json!([text("told")]))
        }
        "test_missing_capability" if received.is_modern() && !received.client_can("/sampling") => {
            let fault = RpcError::new(MISSING_CAPABILITY, "sampling is needed");
            Some(Err(fault.with(json!({ "requiredCapabilities": { "sampling": {} } }))))
        }
        "test_missing_capability" => blocks(json!([text("can sample")])),
        _ if name.starts_with("test_input_required_result_") || name == "test_streaming_elicitation" => Some(dialogue(received, name)),
        _ if name.starts_with("test_") => Some(Ok(ask(received, name, arguments, outlet))),
        _ => None,
    }
}

/// Asks the client in the middle of a call, as in the legacy era.
fn ask(received: &Received, name: &str, arguments: &Value, outlet: &dyn Outlet) -> Value {
    let capability = if name == "test_sampling" { "/sampling" } else { "/elicitation" };
    if received.is_modern() || !received.client_can(capability) {
        return calls::refused("this client cannot be asked");
    }
    let (method, params) = match name {
        "test_sampling" => {
            let message = json!({ "role": "user", "content": { "type": "text", "text": arguments["prompt"] } });
            ("sampling/createMessage", json!({ "messages": [message], "maxTokens": 100 }))
        }
        _ => ("elicitation/create", json!({ "message": "Please fill this in", "requestedSchema": form(name, received) })),
    };
    match received.server.ask(received, outlet, method, params) {
        Some(answer) => json!({ "content": [{ "type": "text", "text": format!("the client says {answer}") }] }),
        None => calls::refused("the client gave no answer"),
    }
}

fn form(name: &str, received: &Received) -> Value {
    let choices = |first: &str| json!([{ "const": first, "title": "One" }, { "const": "value2", "title": "Two" }]);
    let properties = match name {
        "test_elicitation_sep1034_defaults" if received.version.as_str() >= "2025-11-25" => json!({
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
            "verified": { "type": "boolean", "default": true },
        }),
        "test_elicitation_sep1330_enums" if received.version.as_str() >= "2025-11-25" => json!({
            "untitledSingle": { "type": "string", "enum": ["option1", "option2"] },
            "titledSingle": { "type": "string", "oneOf": choices("value1") },
            "legacyEnum": { "type": "string", "enum": ["opt1", "opt2"], "enumNames": ["One", "Two"] },
            "untitledMulti": { "type": "array", "items": { "type": "string", "enum": ["option1", "option2"] } },
            "titledMulti": { "type": "array", "items": { "anyOf": choices("value1") } },
        }),
        _ => json!({ "username": { "type": "string" } }),
    };
    json!({ "type": "object", "properties": properties })
}

/// What a fixture has to be given before it answers.
struct Question {
    key: &'static str,
    capability: &'static str,
    method: &'static str,
    params: Value,
}

fn for_text(key: &'static str, field: &str) -> Question {
    let schema = json!({ "type": "object", "properties": { field: { "type": "string" } }, "required": [field] });
    Question { key, capability: "/elicitation", method: "elicitation/create", params: client_requests(schema) }
}

fn for_yes(key: &'static str) -> Question {
    let schema = json!({ "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"] });
    Question { key, capability: "/elicitation", method: "elicitation/create", params: client_requests(schema) }
}

/// The request for a yes.
pub(super) fn yes_or_no() -> Value {
    let Question { method, params, .. } = for_yes("");
    json!({ "method": method, "params": params })
}

fn client_requests(schema: Value) -> Value {
    json!({ "mode": "form", "message": "Please fill this in", "requestedSchema": schema })
}

fn for_sample(key: &'static str) -> Question {
    let message = json!({ "role": "user", "content": { "type": "text", "text": "What is the capital of France?" } });
    let params = json!({ "messages": [message], "maxTokens": 100 });
    Question { key, capability: "/sampling", method: "sampling/createMessage", params }
}

fn for_roots(key: &'static str) -> Question {
    Question { key, capability: "/roots", method: "roots/list", params: json!({}) }
}

/// Asks until everything is there (2026-07-28, basic/patterns/mrtr).
pub(super) fn dialogue(received: &Received, name: &str) -> Result<Value, RpcError> {
    let given = &received.params()["inputResponses"];
    if !given.is_object() && received.params().get("inputResponses").is_some() {
        return Err(RpcError::invalid_params("`inputResponses` must be an object"));
    }
    let opened = match received.params()["requestState"].as_str() {
        Some(state) => Some(open(state).ok_or_else(|| RpcError::invalid_params("`requestState` is not ours"))?),
        None => None,
    };
    let (mut pending_requests, state) = match name {
        "test_input_required_result_sampling" => (vec![for_sample("said")], None),
        "test_input_required_result_list_roots" => (vec![for_roots("roots")], None),
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
            (vec![for_yes("confirm")], Some("asked"))
        }
        "test_input_required_result_multiple_inputs" => {
            (vec![for_text("user_name", "name"), for_sample("greeting"), for_roots("roots")], Some("asked"))
        }
        "test_input_required_result_multi_round" => match opened {
            Some("step 1") if given["step1"].is_object() => (vec![for_text("step2", "colour")], Some("step 2")),
            Some("step 2") => (vec![for_text("step2", "colour")], Some("step 2")),
            _ => (vec![for_text("step1", "name")], Some("step 1")),
        },
        "test_input_required_result_capabilities" => (vec![for_text("name", "name"), for_sample("said"), for_roots("roots")], None),
        "test_input_required_result_prompt" => (vec![for_text("context", "context")], None),
        _ => (vec![for_text("user_name", "name")], None),
    };
    if name == "test_input_required_result_capabilities" {
        pending_requests.retain(|question| received.client_can(question.capability));
    }
    if !received.is_modern()
        || pending_requests.is_empty()
        || pending_requests.iter().any(|question| !received.client_can(question.capability))
    {
        return Ok(calls::refused("this client cannot be asked"));
    }
    let knows_state = state.is_none() || opened.is_some();
    if knows_state && pending_requests.iter().all(|question| given[question.key].is_object()) {
        let kept = if state.is_some() { "state-ok: " } else { "" };
        return Ok(json!({ "content": [{ "type": "text", "text": format!("{kept}the client says {given}") }] }));
    }
    let requests: Map<String, Value> = pending_requests
        .into_iter()
        .map(|question| (question.key.to_owned(), json!({ "method": question.method, "params": question.params })))
        .collect();
    let mut result = json!({ "resultType": "input_required", "inputRequests": requests });
    if let Some(state) = state {
        result["requestState"] = json!(sealed(state));
    }
    Ok(result)
}

/// A state that shows whether somebody else wrote it.
fn sealed(state: &str) -> String {
    format!("{state}/{:x}", seal(state))
}

fn open(state: &str) -> Option<&str> {
    let (payload, given) = state.rsplit_once('/')?;
    (format!("{:x}", seal(payload)) == given).then_some(payload)
}

fn seal(state: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    ("a secret of the zoo", state).hash(&mut hasher);
    hasher.finish()
}

/// The contents of a fixture besides its URI and type; nothing if it is none.
pub(super) fn contents(uri: &str) -> Option<Value> {
    let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    match (uri, id) {
        ("test://static-binary", _) => Some(json!({ "uri": uri, "mimeType": "image/png", "blob": PICTURE })),
        (_, Some(id)) => Some(json!({ "uri": uri, "mimeType": "text/plain", "text": format!("data of {id}") })),
        _ => None,
    }
}

/// The result of a prompt that is a fixture; nothing if it is none.
pub(super) fn prompt(received: &Received, name: &str, given: &Value) -> Option<Result<Value, RpcError>> {
    let said = |content: Value| json!({ "role": "user", "content": content });
    let text = |text: String| said(json!({ "type": "text", "text": text }));
    let messages = match name {
        "test_simple_prompt" => vec![text("a text".into())],
        "test_prompt_with_arguments" => vec![text(format!("arg1={}, arg2={}", given["arg1"], given["arg2"]))],
        "test_prompt_with_embedded_resource" => {
            let resource = json!({ "uri": given["resourceUri"], "mimeType": "text/plain", "text": "a text" });
            vec![said(json!({ "type": "resource", "resource": resource })), text("What does it say?".into())]
        }
        "test_prompt_with_image" => {
            vec![said(json!({ "type": "image", "data": PICTURE, "mimeType": "image/png" })), text("What does it show?".into())]
        }
        "test_input_required_result_prompt" => {
            return Some(dialogue(received, name).map(|result| match result.get("content") {
                Some(content) => json!({ "messages": [said(content[0].clone())] }),
                None => result,
            }));
        }
        _ => return None,
    };
    Some(Ok(json!({ "messages": messages })))
}
