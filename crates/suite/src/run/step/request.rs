//! From an action to the JSON-RPC request that it stands for, with its variables filled in. Sends nothing.

use crate::interpolate;
use crate::plan::{Action, Step};
use mcproof_protocol::{Era, methods};
use mcproof_record::Diagnostic;
use serde_json::{Map, Value, json};

/// A request that is ready to be sent.
pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) params: Map<String, Value>,
    /// The name of the tool or prompt, or the URI of the resource.
    pub(super) target: Option<String>,
    pub(super) arguments: Map<String, Value>,
}

/// `None` for what is not one request.
pub(super) fn request(step: &Step, era: Era, scope: &Map<String, Value>) -> Result<Option<Request>, Diagnostic> {
    let of = |method: &'static str, params: Value, target: Option<String>, arguments: Map<String, Value>| Request {
        method,
        params: params.as_object().cloned().unwrap_or_default(),
        target,
        arguments,
    };
    let mut request = match &step.action {
        Action::Call { tool, arguments } | Action::Cancel { tool, arguments, .. } => {
            let (tool, arguments) = (fill_text(tool, scope)?, fill_object(arguments, scope)?);
            of(methods::TOOLS_CALL, json!({ "name": tool, "arguments": arguments }), Some(tool), arguments)
        }
        Action::Read { uri } => {
            let uri = fill_text(uri, scope)?;
            of(methods::RESOURCES_READ, json!({ "uri": uri }), Some(uri), Map::new())
        }
        Action::Prompt { name, arguments } => {
            let (name, arguments) = (fill_text(name, scope)?, fill_object(arguments, scope)?);
            let mut params = json!({ "name": name });
            if !arguments.is_empty() {
                params["arguments"] = Value::Object(arguments.clone());
            }
            of(methods::PROMPTS_GET, params, Some(name), arguments)
        }
        Action::Complete { reference, argument, value, context } => {
            let (reference, value) = (fill(reference, scope)?, fill_text(value, scope)?);
            let target = reference.get("name").or(reference.get("uri")).and_then(Value::as_str).map(str::to_owned);
            let mut arguments = Map::from_iter([(argument.clone(), json!(value))]);
            let mut params = json!({ "ref": reference, "argument": { "name": argument, "value": value } });
            if !context.is_empty() {
                let context = fill_object(context, scope)?;
                params["context"] = json!({ "arguments": context });
                arguments.extend(context);
            }
            of(methods::COMPLETION_COMPLETE, params, target, arguments)
        }
        // 2026-07-28 has no `ping` any more: there, this is how a server shows that it lives, as for `mcproof ping`.
        Action::Ping if era == Era::Modern => of(methods::SERVER_DISCOVER, Value::Null, None, Map::new()),
        Action::Ping => of(methods::PING, Value::Null, None, Map::new()),
        Action::Discover => of(methods::SERVER_DISCOVER, Value::Null, None, Map::new()),
        _ => return Ok(None),
    };
    if !step.meta.is_empty() {
        request.params.insert("_meta".into(), Value::Object(fill_object(&step.meta, scope)?));
    }
    Ok(Some(request))
}

pub(super) fn fill(value: &Value, scope: &Map<String, Value>) -> Result<Value, Diagnostic> {
    interpolate(value, scope).map_err(|missing| Diagnostic::error("unknown-variable", missing.to_string()))
}

/// A text stays one, whatever its variables hold.
pub(super) fn fill_text(text: &str, scope: &Map<String, Value>) -> Result<String, Diagnostic> {
    fill(&json!(text), scope).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

pub(super) fn fill_object(object: &Map<String, Value>, scope: &Map<String, Value>) -> Result<Map<String, Value>, Diagnostic> {
    match fill(&Value::Object(object.clone()), scope)? {
        Value::Object(object) => Ok(object),
        _ => unreachable!("variables in an object leave it an object"),
    }
}
