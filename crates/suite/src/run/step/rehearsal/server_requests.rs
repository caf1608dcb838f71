//! What a server asks of the user, the model and the client for the `answers` of a suite to be used. Knows policies, no steps.

use super::MadeEvent;
use mcproof_client::{Answers, Elicitation};
use mcproof_protocol::methods;
use serde_json::{Map, Value, json};

/// A request for each of these policies, with the response that the client of the suite gives.
///
/// # Errors
/// No form has fields for such values: a lowercase fragment without a final dot.
pub(super) fn of(answers: &Answers) -> Result<Vec<MadeEvent>, String> {
    let mut asked = Vec::new();
    if answers.roots.is_some() {
        asked.push((methods::ROOTS_LIST, json!({})));
    }
    if let Some(policy) = &answers.elicitation {
        asked.push((methods::ELICITATION_CREATE, json!({ "message": "Please fill in the form.", "requestedSchema": form(policy)? })));
    }
    if answers.sampling.is_some() {
        let message = json!({ "role": "user", "content": { "type": "text", "text": "text" } });
        asked.push((methods::SAMPLING_CREATE_MESSAGE, json!({ "messages": [message], "maxTokens": 100 })));
    }
    let with_response = |(method, params): (&'static str, Value)| {
        let response = answers.answer(method, &params).map_err(|error| error.to_value());
        MadeEvent::Request { method, params, response }
    };
    Ok(asked.into_iter().map(with_response).collect())
}

/// Whether there is anything that a server could ask for.
pub(super) fn are_any(answers: &Answers) -> bool {
    answers.roots.is_some() || answers.elicitation.is_some() || answers.sampling.is_some()
}

/// The schema of a form that these values are for.
fn form(policy: &Elicitation) -> Result<Value, String> {
    let values = match policy {
        Elicitation::Accept(values) => Some(values),
        Elicitation::Result(result) => result.get("content").and_then(Value::as_object),
        Elicitation::Decline | Elicitation::Cancel => None,
    };
    let mut fields = Map::new();
    for (name, value) in values.into_iter().flatten() {
        let field = match value {
            Value::String(_) => json!({ "type": "string" }),
            Value::Bool(_) => json!({ "type": "boolean" }),
            Value::Number(number) if number.is_f64() => json!({ "type": "number" }),
            Value::Number(_) => json!({ "type": "integer" }),
            Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_string) => {
                json!({ "type": "array", "items": { "type": "string", "enum": items } })
            }
            _ => return Err(format!("no form has a field for the value of `{name}` in `answers`")),
        };
        fields.insert(name.clone(), field);
    }
    let required: Vec<&String> = fields.keys().collect();
    if required.is_empty() {
        return Ok(json!({ "type": "object", "properties": { "confirmed": { "type": "boolean", "default": true } } }));
    }
    Ok(json!({ "type": "object", "properties": fields, "required": required }))
}
