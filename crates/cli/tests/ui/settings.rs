//! What a configuration file sets for its server is shown by name in the page, kept, changed and removed.

use crate::browser::Page;
use crate::inspector::{Inspector, click, fill, open_tool, violations, wait_for};
use serde_json::{Value, json};

/// Its tool tells how long the values of two variables are; -1 for one that is not set.
const SERVER: &str = r#"
import sys, json, os
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, answer = message.get("method"), {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "lengths", "version": "1"}}
    elif method == "tools/list":
        answer["result"] = {"tools": [{"name": "lengths", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        lengths = [len(os.environ[name]) if name in os.environ else -1 for name in ("FILE_TOKEN", "FILE_STAGE")]
        answer["result"] = {"content": [{"type": "text", "text": "lengths " + " ".join(map(str, lengths))}]}
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(answer), flush=True)
"#;

fn is_open(page: &mut Page) {
    wait_for(page, "document.querySelector('[data-testid=overview]')?.dataset.status === 'open'");
}

/// Calls the tool, and waits for this.
fn lengths(page: &mut Page, expected: &str) {
    open_tool(page, "lengths");
    click(page, "send");
    wait_for(page, &format!("document.querySelector('[data-testid=result]')?.innerText.includes('lengths {expected}')"));
    click(page, "nav-overview");
    is_open(page);
}

/// Connects anew with these lines in place of those that are shown, for the session of this number.
fn edit(page: &mut Page, shown: &str, lines: &str, session: usize) {
    click(page, "edit-server");
    let sorted = "document.querySelector('[data-testid=env]')?.value.split('\\n').sort().join(' ')";
    wait_for(page, &format!("{sorted} === '{shown}'"));
    fill(page, "[data-testid=env]", lines);
    click(page, "connect-button");
    wait_for(page, &format!("document.querySelectorAll('[data-testid=sessions] option').length === {session}"));
    is_open(page);
}

#[test]
fn variables_of_a_configuration_file_are_named_kept_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let server = folder.path().join("lengths.py");
    std::fs::write(&server, SERVER).unwrap();
    let file = folder.path().join("mcp.json");
    let env = json!({ "FILE_TOKEN": "not-for-the-page", "FILE_STAGE": "stage-one" });
    let config = json!({ "mcpServers": { "lengths": { "command": "python3", "args": [server], "env": env } } });
    std::fs::write(&file, config.to_string()).unwrap();
    let inspector = Inspector::start_in(folder, "ui", &[file.to_str().unwrap()]);
    let mut page = Page::new();
    page.look(1440, 900, "light");
    page.visit(&inspector.url);
    is_open(&mut page);
    assert!(page.text_of("[data-testid=settings]").contains("FILE_TOKEN"));
    lengths(&mut page, "16 9");
    let both = "FILE_STAGE= FILE_TOKEN=";
    // A line as it was shown, and one with a value.
    edit(&mut page, both, "FILE_TOKEN=\nFILE_STAGE=another-stage", 2);
    lengths(&mut page, "16 13");
    // One that is removed is told, and comes back.
    edit(&mut page, both, "FILE_STAGE=", 3);
    assert!(page.text_of("[data-testid=settings]").contains("left out of the configuration file: FILE_TOKEN"));
    lengths(&mut page, "-1 13");
    edit(&mut page, "FILE_STAGE=", "FILE_TOKEN=\nFILE_STAGE=", 4);
    lengths(&mut page, "16 13");
    click(&mut page, "edit-server");
    wait_for(&mut page, "document.querySelector('[data-testid=env]')");
    assert_eq!(violations(&mut page), json!([]));
    assert_eq!(page.evaluate("document.body.innerHTML.includes('not-for-the-page')"), Value::Bool(false));
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}
