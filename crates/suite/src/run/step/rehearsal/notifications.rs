//! The notifications that a step expects, as a server would send them. Knows their parameters, not when they may be sent.

use super::overlaid;
use crate::judge::Matcher;
use crate::run::step::awaited::compare;
use mcproof_protocol::methods::notifications;
use serde_json::{Map, Value, json};

/// What is known of the request during which they are sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Occasion<'a> {
    pub(super) progress_token: Option<&'a Value>,
    /// The resource that was subscribed to last.
    pub(super) resource: Option<&'a str>,
}

/// Whether a list of notifications is another one than the step expects.
pub(super) fn differ(matcher: &Matcher, came: &[Value], scope: &Map<String, Value>) -> bool {
    !compare(matcher, came, scope).is_empty()
}

/// As few notifications as the step accepts, each `{method, params}`.
///
/// # Errors
/// None were found: a lowercase fragment without a final dot.
pub(super) fn made(matcher: &Matcher, occasion: Occasion<'_>, scope: &Map<String, Value>) -> Result<Vec<Value>, String> {
    if !differ(matcher, &[], scope) {
        return Ok(Vec::new());
    }
    let described = matcher.example(scope).and_then(|example| example.as_array().cloned()).unwrap_or_default();
    let whole: Vec<Value> = described.iter().zip(1..).map(|(item, nth)| whole(item, nth, occasion)).collect();
    let are_methods = described.iter().all(|item| item.get("method").is_some_and(Value::is_string));
    let guesses = [Some(whole), are_methods.then_some(described)];
    let fitting = guesses.into_iter().flatten().find(|guess| !guess.is_empty() && !differ(matcher, guess, scope));
    fitting.ok_or_else(|| "no notifications were found that fit what it expects".to_owned())
}

/// With the parameters that are required, where they are not described.
fn whole(item: &Value, nth: u64, occasion: Occasion<'_>) -> Value {
    let method = item.get("method").and_then(Value::as_str).unwrap_or(notifications::MESSAGE);
    let mut usual = json!({ "method": method });
    match method {
        notifications::PROGRESS => {
            let token = occasion.progress_token.cloned().unwrap_or_else(|| json!(0));
            usual["params"] = json!({ "progressToken": token, "progress": nth });
        }
        notifications::MESSAGE => usual["params"] = json!({ "level": "info", "data": "text" }),
        notifications::RESOURCES_UPDATED => usual["params"] = json!({ "uri": occasion.resource.unwrap_or_default() }),
        _ => {}
    }
    if item.is_object() { overlaid(usual, item.clone()) } else { usual }
}
