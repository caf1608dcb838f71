//! Completions that depend on what is filled in beside the argument.

use crate::inspector::{click, fill, opened_on, wait_for};
use serde_json::Value;

/// Completes `name` with the department that it was told.
const SERVER: &str = r#"
import sys, json
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params, answer = message.get("method"), message.get("params", {}), {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"prompts": {}, "completions": {}}, "serverInfo": {"name": "team", "version": "1"}}
    elif method == "prompts/list":
        answer["result"] = {"prompts": [{"name": "team", "arguments": [{"name": "department", "required": True}, {"name": "name", "required": True}]}]}
    elif method == "completion/complete":
        department = params.get("context", {}).get("arguments", {}).get("department", "nobody")
        answer["result"] = {"completion": {"values": [f"somebody of {department}"]}}
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(answer), flush=True)
"#;

#[test]
fn completions_are_asked_for_with_the_other_arguments() {
    let (_inspector, mut page) = opened_on("team.py", SERVER);
    click(&mut page, "nav-prompts");
    wait_for(&mut page, "document.querySelector('[data-testid=items-prompts] .row')");
    page.click("[data-testid=items-prompts] .row");
    fill(&mut page, "[data-testid=input-department]", "Sales");
    fill(&mut page, "[data-testid=input-name]", "s");
    wait_for(&mut page, "[...document.querySelectorAll('datalist option')].some((option) => option.value === 'somebody of Sales')");
    // What was typed at once is asked for at once.
    page.type_text("omebody");
    fill(&mut page, "[data-testid=filter]", "method:completion/complete text:somebody");
    wait_for(&mut page, "Number(document.querySelector('[data-testid=calls]').dataset.count) >= 1");
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}
