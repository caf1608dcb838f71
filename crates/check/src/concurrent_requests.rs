//! Sends many requests at once, chosen so that mixed-up responses are visible.

use super::explorer::{Explorer, Rest};
use super::http;
use mcproof_analysis::named;
use mcproof_analysis::probes::{AT_ONCE, AT_ONCE_NUMBERS, EXPLORED_IN_PART};
use mcproof_protocol::methods;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// Resources that are read at once at most.
const MOST_READS: usize = 4;
/// Tools that are called at once at most, and how often each.
const MOST_TOOLS: usize = 2;
const CALLS: [&str; 5] = ["one", "two", "three", "four", "five"];
/// A tool that takes longer does not keep the others waiting.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) async fn take(explorer: &mut Explorer<'_>, tools: &[Value], resources: &[Value]) {
    let any = explorer.any_method();
    let mut requests: Vec<(&str, Value)> =
        [any, methods::PROMPTS_LIST, any, methods::RESOURCES_LIST, methods::PROMPTS_LIST].map(|method| (method, json!({}))).into();
    let uris = resources.iter().filter_map(|resource| resource.get("uri")?.as_str());
    requests.extend(uris.take(MOST_READS).map(|uri| (methods::RESOURCES_READ, json!({ "uri": uri }))));
    let permission = explorer.check_options.calls.clone();
    let callable = tools.iter().filter(|tool| permission.allows(tool)).filter_map(|tool| Some((tool.get("name")?, only_argument(tool)?)));
    // Those of one tool go together, and those of another later: where all get the result of the last one, that is a result of the tool.
    for (name, (argument, kind)) in callable.take(MOST_TOOLS) {
        requests.extend(CALLS.into_iter().zip(AT_ONCE_NUMBERS).map(|(call, number)| {
            // With the name of the tool, which tells where a result that comes to another call is from.
            let text = || format!("{AT_ONCE}{call}-{}", name.as_str().unwrap_or_default());
            let value = if kind == "string" { json!(text()) } else { json!(number) };
            (methods::TOOLS_CALL, json!({ "name": name, "arguments": { argument: value } }))
        }));
        send_at_once(explorer, std::mem::take(&mut requests)).await;
    }
    if !requests.is_empty() {
        send_at_once(explorer, requests).await;
    }
}

/// Calls that got no response go out once more, which tells a moment in which nothing went on from what is used up for good.
async fn send_at_once(explorer: &mut Explorer<'_>, requests: Vec<(&str, Value)>) {
    let answered = send_as(explorer, "concurrent", &requests).await;
    let silent: Vec<_> = requests.into_iter().zip(answered).filter(|(_, answered)| !answered).map(|(request, _)| request).collect();
    if silent.is_empty() {
        return;
    }
    explorer.mark_unfinished_work();
    explorer.owe(silent.len());
    // A server that does one call after the other is not given the same work again, and not taken for silent while it does it.
    if matches!(explorer.come_to_rest().await, Rest::Reached(waited) if waited >= PATIENCE) {
        let tools: BTreeSet<&str> = silent.iter().filter_map(|(_, params)| params.get("name")?.as_str()).collect();
        let tools: Vec<String> = tools.into_iter().map(str::to_owned).collect();
        let message = format!("not called several times at once, because the server does one slow call after the other: {}", named(&tools));
        explorer.record_observation(EXPLORED_IN_PART, &message);
        return;
    }
    let answered = send_as(explorer, "concurrent-again", &silent).await;
    explorer.owe(answered.into_iter().filter(|answered| !answered).count());
}

/// Which of the requests had a response, as far as they are calls.
async fn send_as(explorer: &mut Explorer<'_>, probe: &str, requests: &[(&str, Value)]) -> Vec<bool> {
    let first = explorer.mark();
    let answered = explorer
        .together(probe, async |session, deadline| {
            let send = async |method: &str, params: &Value| {
                let patience = if method == methods::TOOLS_CALL { PATIENCE.min(deadline) } else { deadline };
                let params: Option<Map<String, Value>> = params.as_object().cloned();
                // What came of it is in the transcript.
                session.request(method, params, patience).await.is_ok() || method != methods::TOOLS_CALL
            };
            futures_util::future::join_all(requests.iter().map(|(method, params)| send(method, params))).await
        })
        .await;
    http::examine_connections(explorer, first).await;
    answered
}

/// The one argument that a tool needs, if it may be any text.
pub(super) fn only_text(tool: &Value) -> Option<&str> {
    only_argument(tool).filter(|(_, kind)| *kind == "string").map(|(name, _)| name)
}

/// The one argument that a tool needs, if it may be any text, or any number that names something, and which of them.
fn only_argument(tool: &Value) -> Option<(&str, &str)> {
    let schema = tool.get("inputSchema")?;
    let [needed] = schema.get("required")?.as_array()?.as_slice() else { return None };
    let needed = needed.as_str()?;
    let property = schema.get("properties")?.get(needed)?;
    let kind = property.get("type")?.as_str()?;
    let bounds: &[&str] = match kind {
        "string" => &["enum", "const", "format", "pattern", "maxLength"],
        "integer" | "number" if is_identifier(needed) => &["enum", "const", "multipleOf", "maximum", "exclusiveMaximum"],
        _ => return None,
    };
    bounds.iter().all(|key| property.get(key).is_none()).then_some((needed, kind))
}

/// Whether a number of this name only tells things apart. Any other one may be how long something takes, or how much of it is made.
fn is_identifier(name: &str) -> bool {
    name.eq_ignore_ascii_case("id") || ["_id", "-id", "Id", "ID"].iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_called_with_any_text_or_number_only_if_it_takes_any() {
        let check = |properties: Value, required: Value, expected: Option<&str>| {
            let tool = json!({ "name": "t", "inputSchema": { "type": "object", "properties": properties, "required": required } });
            assert_eq!(only_argument(&tool).map(|(name, _)| name), expected, "{tool}");
        };
        let text = json!({ "type": "string" });
        check(json!({ "a": text, "b": text }), json!(["a"]), Some("a"));
        check(json!({ "a": text, "b": text }), json!(["a", "b"]), None);
        check(json!({ "a": text }), json!([]), None);
        check(json!({ "a": { "type": "string", "enum": ["x"] } }), json!(["a"]), None);
        check(json!({ "a": { "type": "string", "format": "uri" } }), json!(["a"]), None);
        check(json!({ "userId": { "type": "integer", "minimum": 1 } }), json!(["userId"]), Some("userId"));
        check(json!({ "id": { "type": "integer", "maximum": 10 } }), json!(["id"]), None);
        check(json!({ "seconds": { "type": "integer" } }), json!(["seconds"]), None);
        check(json!({ "a": { "type": "boolean" } }), json!(["a"]), None);
    }
}
