//! Parts of the page that go with a list, a running call or the timeline.

use crate::browser::Page;
use crate::inspector::{Inspector, click, fill, open_tool, opened_on, violations, wait_for};
use serde_json::{Value, json};

/// A tool that tells how far it is and waits to be canceled, one with a long list, and prompts that are called otherwise.
const SERVER: &str = r#"
import sys, json
def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message.get("method"), message.get("params", {})
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "prompts": {}}, "serverInfo": {"name": "panels", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("slow", "long")]}
    elif method == "prompts/list":
        result = {"prompts": [{"name": "greet"}]}
    elif method == "tools/call" and params["name"] == "slow":
        token = params["_meta"]["progressToken"]
        send({"method": "notifications/progress", "params": {"progressToken": token, "progress": 3, "total": 8, "message": "digging"}})
        continue
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "long"}], "structuredContent": {"numbers": [{"a": [n], "b": n} for n in range(400)]}}
    else:
        send({"id": message["id"], "error": {"code": -32601, "message": "no"}})
        continue
    send({"id": message["id"], "result": result})
"#;

fn opened() -> (Inspector, Page) {
    opened_on("panels.py", SERVER)
}

#[test]
fn a_running_call_shows_how_far_it_is() {
    let (_inspector, mut page) = opened();
    open_tool(&mut page, "slow");
    click(&mut page, "send");
    wait_for(&mut page, "document.querySelector('[data-testid=progress]')?.innerText.replace(/\\s+/g, ' ').includes('3 of 8 digging')");
    assert_eq!(page.evaluate("document.querySelector('[data-testid=progress] progress').value"), 3);
    assert_eq!(violations(&mut page), json!([]));
    click(&mut page, "cancel");
    wait_for(&mut page, "!document.querySelector('[data-testid=progress]')");
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn a_call_that_runs_is_not_sent_again() {
    let (_inspector, mut page) = opened();
    open_tool(&mut page, "slow");
    for repeat in [false, true, false] {
        page.evaluate(&format!(
            "document.querySelector('[data-testid=tool] .tabs button').dispatchEvent(new KeyboardEvent('keydown', \
             {{ key: 'Enter', ctrlKey: true, repeat: {repeat}, bubbles: true, cancelable: true }}))"
        ));
    }
    wait_for(&mut page, "document.querySelector('[data-testid=progress]')");
    fill(&mut page, "[data-testid=filter]", "tool:slow");
    wait_for(&mut page, "document.querySelector('[data-testid=calls]').dataset.count === '1'");
    click(&mut page, "cancel");
    wait_for(&mut page, "document.querySelector('[data-testid=calls] .call-status')?.innerText === 'canceled'");
    click(&mut page, "send");
    wait_for(&mut page, "document.querySelector('[data-testid=calls]').dataset.count === '2'");
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn the_traffic_of_a_narrow_window_is_left_by_its_tabs() {
    let (_inspector, mut page) = opened();
    page.look(360, 800, "light");
    click(&mut page, "pane-traffic");
    wait_for(&mut page, "document.querySelector('[data-testid=calls]')");
    assert_eq!(page.evaluate("document.querySelector('[aria-label=\"Hide traffic\"]')"), Value::Null);
    click(&mut page, "pane-main");
    wait_for(&mut page, "document.querySelector('[data-testid=overview]')");
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn each_list_has_a_search_of_its_own() {
    let (_inspector, mut page) = opened();
    click(&mut page, "nav-tools");
    fill(&mut page, ".side-search input", "slow");
    wait_for(&mut page, "document.querySelector('[data-testid=items-tools]')?.dataset.count === '1'");
    click(&mut page, "nav-prompts");
    wait_for(&mut page, "document.querySelector('[data-testid=items-prompts]')?.dataset.count === '1'");
    click(&mut page, "nav-tools");
    wait_for(&mut page, "document.querySelector('.side-search input').value === 'slow'");
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn long_results_have_targets_that_are_large_enough() {
    let (_inspector, mut page) = opened();
    open_tool(&mut page, "long");
    click(&mut page, "send");
    wait_for(
        &mut page,
        "[...document.querySelectorAll('[data-testid=result] button')].some((button) => button.innerText.endsWith(' more'))",
    );
    for (width, theme) in [(1440, "light"), (360, "dark")] {
        page.look(width, 900, theme);
        assert_eq!(violations(&mut page), json!([]), "{width} {theme}");
    }
}

#[test]
fn the_time_range_is_chosen_by_keys() {
    let (_inspector, mut page) = opened();
    open_tool(&mut page, "long");
    click(&mut page, "send");
    wait_for(&mut page, "document.querySelector('[data-testid=result]')?.dataset.status === 'ok'");
    let of = "document.querySelector('[data-testid=timeline]').getAttribute('aria-valuetext')";
    page.evaluate("document.querySelector('[data-testid=timeline]').focus()");
    assert!(page.evaluate(of).as_str().unwrap().starts_with("all of "));
    page.press("ArrowRight");
    wait_for(&mut page, &format!("{of}.startsWith('from ')"));
    wait_for(&mut page, "document.querySelector('.traffic-count').innerText.includes(' of ')");
    page.press("Escape");
    wait_for(&mut page, &format!("{of}.startsWith('all of ')"));
    fill(&mut page, "[data-testid=filter]", "at:>1m");
    wait_for(&mut page, "document.querySelector('[data-testid=calls]').dataset.count === '0'");
    fill(&mut page, "[data-testid=filter]", "at:<1m method:tools/call");
    wait_for(&mut page, "document.querySelector('[data-testid=calls]').dataset.count === '1'");
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

/// Lists a tool on each page, and there is always another page.
const ENDLESS: &str = r#"
import sys, json
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, answer = message.get("method"), {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "endless", "version": "1"}}
    elif method == "tools/list":
        number = int(message.get("params", {}).get("cursor", "0"))
        answer["result"] = {"tools": [{"name": f"tool-{number}", "inputSchema": {"type": "object"}}], "nextCursor": str(number + 1)}
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(answer), flush=True)
"#;

#[test]
fn a_list_without_end_is_shown_and_its_pages_are_stepped_through() {
    let folder = tempfile::tempdir().unwrap();
    let server = folder.path().join("endless.py");
    std::fs::write(&server, ENDLESS).unwrap();
    let inspector = Inspector::start_in(folder, "ui", &["--", "python3", server.to_str().unwrap()]);
    let mut page = Page::new();
    page.look(1440, 900, "dark");
    page.visit(&inspector.url);
    wait_for(&mut page, "document.querySelector('[data-testid=overview]')?.dataset.status === 'open'");
    click(&mut page, "nav-tools");
    let listed = |number: u32| format!("document.querySelector('[data-testid=items-tools]')?.dataset.count === '{number}'");
    wait_for(&mut page, &listed(100));
    wait_for(&mut page, "document.querySelector('[data-testid=pages-tools]').innerText.includes('100 pages, and more')");
    click(&mut page, "next-page");
    wait_for(&mut page, &listed(101));
    assert_eq!(violations(&mut page), json!([]));
    click(&mut page, "first-page");
    wait_for(&mut page, &listed(1));
    click(&mut page, "next-page");
    wait_for(&mut page, &listed(2));
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}
