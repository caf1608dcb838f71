//! Calls of the tools that may be called, with arguments made from their schemas and with wrong ones.

use super::visit::Visit;
use serde_json::Value;

pub(super) async fn take(visit: &mut Visit<'_>, tools: &[Value]) {
    let permission = visit.inquiry.calls.clone();
    for tool in tools.iter().filter(|tool| permission.allows(tool)) {
        let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
        let arguments = serde_json::json!({});
        visit.ask("call-empty", Some(name), "tools/call", serde_json::json!({ "name": name, "arguments": arguments })).await;
    }
}
