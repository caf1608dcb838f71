//! Calls that are kept in the page: what a test expects of them, and what it does not say.

use crate::browser::Page;
use crate::inspector::{click, fill, open_tool, opened_on, violations, wait_for};
use serde_json::{Value, json};
use std::process::Command;

const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");

/// A server that gives everything an identifier of its own.
const NOTES: &str = r#"
import sys, json, uuid
NOTES = {}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params, answer = message.get("method"), message.get("params", {}), {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "notes", "version": "1"}}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"it": {"type": "string"}}, "required": ["it"]}
        answer["result"] = {"tools": [{"name": name, "inputSchema": schema} for name in ("put", "get")]}
    elif method == "tools/call" and params["name"] == "put":
        key = str(uuid.uuid4())
        NOTES[key] = params["arguments"]["it"]
        answer["result"] = {"content": [{"type": "text", "text": json.dumps({"id": key})}], "structuredContent": {"id": key}}
    elif method == "tools/call":
        found = NOTES.get(params["arguments"]["it"])
        answer["result"] = {"content": [{"type": "text", "text": found or "no such note"}], "isError": found is None}
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(answer), flush=True)
"#;

#[test]
fn all_calls_of_a_session_become_a_test_that_passes_again() {
    let (inspector, mut page) = opened_on("notes.py", NOTES);
    let call = |page: &mut Page, tool: &str, it: &str, expected: &str| {
        open_tool(page, tool);
        fill(page, "[data-testid=input-it]", it);
        click(page, "send");
        wait_for(page, &format!("document.querySelector('[data-testid=result]')?.innerText.includes('{expected}')"));
    };
    call(&mut page, "put", "milk", "-");
    let result = page.text_of("[data-testid=result]");
    let id = result.split(|symbol: char| !symbol.is_ascii_hexdigit() && symbol != '-').find(|word| word.len() == 36).unwrap().to_owned();
    call(&mut page, "get", &id, "milk");
    call(&mut page, "get", "nope", "no such note");
    click(&mut page, "nav-saved");
    // The suite of another server asks first, and the steps stay.
    let other = "server: { stdio: { command: node other.js } }\ntests: []\n";
    std::fs::write(inspector.folder.path().join("other.mcproof.yaml"), other).unwrap();
    click(&mut page, "take-all");
    wait_for(&mut page, "document.querySelectorAll('[data-testid=saved] .step').length >= 3");
    assert_eq!(violations(&mut page), json!([]));
    wait_for(&mut page, "document.querySelector('[data-testid=save-file]').value !== ''");
    fill(&mut page, "[data-testid=save-file]", "other.mcproof.yaml");
    click(&mut page, "save-suite");
    wait_for(&mut page, "document.querySelector('[data-testid=save-wrong]')?.innerText.includes('node other.js')");
    assert_eq!(violations(&mut page), json!([]));
    assert_eq!(page.evaluate("Boolean(document.querySelector('[data-testid=save-anyway]'))"), Value::Bool(true));
    assert_eq!(std::fs::read_to_string(inspector.folder.path().join("other.mcproof.yaml")).unwrap(), other);
    fill(&mut page, "[data-testid=save-file]", "all.mcproof.yaml");
    wait_for(&mut page, "!document.querySelector('[data-testid=save-anyway]')");
    click(&mut page, "save-suite");
    wait_for(&mut page, "!document.querySelector('[data-testid=save-as]')");
    let text = std::fs::read_to_string(inspector.folder.path().join("all.mcproof.yaml")).unwrap();
    assert!(!text.contains(&id) && text.contains("save: {") && text.contains("no such note"), "{text}");
    let output = Command::new(MCPROOF).args(["test", "all.mcproof.yaml"]).current_dir(inspector.folder.path()).output().unwrap();
    assert!(output.status.success(), "{}{text}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

/// A tool that fails in its own way; `gone` takes it away.
const FAILING: &str = r#"
import sys, json
GONE = "gone" in sys.argv
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params, answer = message.get("method"), message.get("params", {}), {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "failing", "version": "1"}}
    elif method == "tools/list":
        answer["result"] = {"tools": [] if GONE else [{"name": name, "inputSchema": {"type": "object"}} for name in ("get", "sign")]}
    elif method == "tools/call" and not GONE and params["name"] == "get":
        answer["result"] = {"isError": True, "content": [{"type": "text", "text": "no such id nope"}]}
    elif method == "tools/call" and not GONE:
        answer["error"] = {"code": -32050, "message": "sign in first"}
    elif method == "tools/call":
        answer["error"] = {"code": -32602, "message": "unknown tool"}
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(answer), flush=True)
"#;

#[test]
fn a_failed_call_is_kept_with_its_error() {
    let (inspector, mut page) = opened_on("failing.py", FAILING);
    for tool in ["get", "sign"] {
        open_tool(&mut page, tool);
        click(&mut page, "send");
        click(&mut page, "keep");
        page.click("[role=menuitem]");
    }
    click(&mut page, "nav-saved");
    wait_for(&mut page, "document.querySelector('[data-testid=save-file]').value !== ''");
    fill(&mut page, "[data-testid=save-file]", "kept.mcproof.yaml");
    click(&mut page, "save-suite");
    wait_for(&mut page, "!document.querySelector('[data-testid=save-as]')");
    let kept = inspector.folder.path().join("kept.mcproof.yaml");
    let text = std::fs::read_to_string(&kept).unwrap();
    assert!(text.contains("tool_error: \"no such id nope\"") && text.contains("rpc_error: {\"code\":-32050,"), "{text}");
    let verdict = |text: &str| {
        std::fs::write(&kept, text).unwrap();
        let output = Command::new(MCPROOF).args(["test", "kept.mcproof.yaml"]).current_dir(inspector.folder.path()).output().unwrap();
        output.status.code()
    };
    assert_eq!(verdict(&text), Some(0), "{text}");
    assert_eq!(verdict(&text.replace("failing.py", "failing.py gone")), Some(1), "a tool that is gone is another error");
}

/// A tool that takes a password.
const LOGIN: &str = r#"
import sys, json
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params, answer = message.get("method"), message.get("params", {}), {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "login", "version": "1"}}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"secret": {"type": "string", "format": "password"}}, "required": ["secret"]}
        answer["result"] = {"tools": [{"name": "login", "inputSchema": schema}]}
    elif method == "tools/call":
        answer["result"] = {"content": [{"type": "text", "text": "in" if params["arguments"]["secret"] == "hunter22" else "out"}]}
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(answer), flush=True)
"#;

#[test]
fn a_password_is_nowhere_in_what_is_kept() {
    let (inspector, mut page) = opened_on("login.py", LOGIN);
    open_tool(&mut page, "login");
    fill(&mut page, "[data-testid=input-secret]", "hunter22");
    click(&mut page, "send");
    wait_for(&mut page, "document.querySelector('[data-testid=result]')?.innerText.includes('in')");
    click(&mut page, "keep");
    page.click("[role=menuitem]");
    click(&mut page, "nav-saved");
    click(&mut page, "take-all");
    wait_for(&mut page, "document.querySelectorAll('[data-testid=saved] .step').length > 1");
    wait_for(&mut page, "document.querySelector('[data-testid=masked]')");
    assert_eq!(page.evaluate("JSON.stringify({ ...localStorage }).includes('hunter22')"), Value::Bool(false));
    wait_for(&mut page, "document.querySelector('[data-testid=save-file]').value !== ''");
    fill(&mut page, "[data-testid=save-file]", "login.mcproof.yaml");
    click(&mut page, "save-suite");
    wait_for(&mut page, "!document.querySelector('[data-testid=save-as]')");
    let text = std::fs::read_to_string(inspector.folder.path().join("login.mcproof.yaml")).unwrap();
    assert!(text.matches(r#"with: {"secret":"${env.SECRET}"}"#).count() == 2 && !text.contains("hunter22"), "{text}");
    let run = |secret: &str| {
        let mut command = Command::new(MCPROOF);
        command.args(["test", "login.mcproof.yaml"]).current_dir(inspector.folder.path()).env("SECRET", secret);
        command.output().unwrap().status.code()
    };
    assert_eq!((run("hunter22"), run("another")), (Some(0), Some(1)), "{text}");
    // What is handed on does not have it either.
    let shared = page.evaluate(
        "(async () => { for (let id = 1; id < 20; id++) { \
         const found = await fetch(`/api/sessions/${id}/page`, { headers: { authorization: `Bearer ${sessionStorage.getItem('mcproof-token')}` } }); \
         if (found.ok) { const text = await found.text(); return [text.includes('tools/call'), text.includes('hunter22')]; } } })()",
    );
    assert_eq!(shared, json!([true, false]));
}
