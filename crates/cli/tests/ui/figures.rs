//! A chore, and no test: how fast the page opens and scrolls, beside MCP Inspector in the same run. It asserts no times.
//! `cargo test --release --workspace --test ui -- --ignored figures` writes target/ui-figures.md; docs/ui.md has them.

use crate::browser::Page;
use crate::inspector::{Inspector, click, wait_for};
use crate::peers;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");

/// A server with as many tools as its argument says.
const TOOLS: &str = r#"
import json, sys
tools = [{"name": f"tool-{at:04}", "description": f"Does something with the things of group {at % 37}", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}} for at in range(int(sys.argv[1]))]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {"initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "many", "version": "1"}}, "tools/list": {"tools": tools}}.get(message["method"])
    answer = {"result": result} if result else {"error": {"code": -32601, "message": "no such method"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"#;

/// Frames that the browser made in three seconds, in which something was done for each: per second, and the longest in ms.
fn frames(page: &mut Page, each: &str) -> String {
    let found = page.evaluate(&format!(
        "new Promise((done) => {{ const run = (n) => {{ {each} }}; const times = []; let last = performance.now(); const end = last + 3000; \
         const step = (now) => {{ times.push(now - last); last = now; run(times.length); if (now < end) requestAnimationFrame(step); \
         else {{ times.shift(); done({{ rate: times.length / 3, worst: Math.max(...times) }}); }} }}; requestAnimationFrame(step); }})"
    ));
    format!("{:.0} frames/s, longest {:.0} ms", found["rate"].as_f64().unwrap(), found["worst"].as_f64().unwrap())
}

const SCROLL: &str =
    "const box = document.querySelector('[data-testid=LIST]'); box.scrollTop = (n * 997) % (box.scrollHeight - box.clientHeight);";
const TYPE: &str = "const input = document.querySelector('INPUT'); if (n % 12 === 0) { const all = TEXTS; \
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(input, all[(n / 12) % all.length]); \
    input.dispatchEvent(new Event('input', { bubbles: true })); }";

fn first_paint(page: &mut Page) -> f64 {
    wait_for(page, "performance.getEntriesByName('first-contentful-paint').length");
    page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime").as_f64().unwrap()
}

/// 100,000 frames of 50,000 calls.
fn write_trace(path: &Path) {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    let mut line = |line: &Value| writeln!(file, "{line}").unwrap();
    line(&json!({ "trace": { "format": 1, "mcproof": "0.1.0", "command": [], "sessions": [] } }));
    line(&json!({ "session": { "key": 1, "server": "many", "transport": "stdio", "at_us": 0 } }));
    for call in 0..50_000_u64 {
        let request = json!({ "jsonrpc": "2.0", "id": call, "method": "tools/call", "params": { "name": format!("tool-{}", call % 97), "arguments": { "a": call } } });
        let answer = match call % 211 {
            0 => json!({ "jsonrpc": "2.0", "id": call, "error": { "code": -32602, "message": "no" } }),
            _ => json!({ "jsonrpc": "2.0", "id": call, "result": { "content": [{ "type": "text", "text": format!("result {call}") }] } }),
        };
        for (half, direction, message) in [(0, "to-server", request), (1, "from-server", answer)] {
            let body = json!({ "kind": "line", "bytes": message.to_string() });
            line(
                &json!({ "frame": { "session": 1, "id": call * 2 + half, "at_us": call * 1300 + half * 400, "direction": direction, "body": body } }),
            );
        }
    }
    line(&json!({ "end": { "sessions": 1, "frames": 100_000, "omitted": 0 } }));
}

/// MCP Inspector at an address that it prints.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-INT", &self.0.id().to_string()]).status();
        let _ = self.0.wait();
    }
}

fn start_other(server: &str) -> (Other, String) {
    let command = peers::installed("inspector");
    let mut process = Command::new(&command[0])
        .args(&command[1..command.len() - 1])
        .args(["--web", "--", "python3", server, "1000"])
        .envs([("MCP_AUTO_OPEN_ENABLED", "false"), ("CLIENT_PORT", "7461")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    let url = lines.map(|line| line.trim().to_owned()).find(|line| line.starts_with("http://127.0.0.1:7461")).unwrap();
    (Other(process), url)
}

#[test]
#[ignore = "a chore: run it on a quiet machine"]
fn figures() {
    let folder = tempfile::tempdir().unwrap();
    let server = folder.path().join("tools.py");
    std::fs::write(&server, TOOLS).unwrap();
    let server = server.to_str().unwrap();
    let mut page = Page::new();
    page.look(1440, 900, "light");
    let mut table = String::from("| what | mcproof | MCP Inspector 2.12 |\n|---|---|---|\n");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let began = Instant::now();
        let inspector = Inspector::start(&["--", MCPROOF, "demo", "shop"]);
        let printed = began.elapsed();
        page.visit(&inspector.url);
        ours.push(printed.as_secs_f64() * 1000.0 + first_paint(&mut page));
        page.visit("about:blank");
        let began = Instant::now();
        let (_other, url) = start_other(server);
        let printed = began.elapsed();
        page.visit(&url);
        theirs.push(printed.as_secs_f64() * 1000.0 + first_paint(&mut page));
        page.visit("about:blank");
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    writeln!(table, "| from the command to the first paint, median of 5 | {:.0} ms | {:.0} ms |", median(&mut ours), median(&mut theirs))
        .unwrap();
    {
        let inspector = Inspector::start(&["--", "python3", server, "1000"]);
        page.visit(&inspector.url);
        wait_for(&mut page, "document.querySelector('[data-testid=overview]')?.dataset.status === 'open'");
        click(&mut page, "nav-tools");
        wait_for(&mut page, "document.querySelector('[data-testid=items-tools] .row')");
        writeln!(table, "| 1,000 tools, scrolling | {} | |", frames(&mut page, &SCROLL.replace("LIST", "items-tools"))).unwrap();
        let search =
            TYPE.replace("INPUT", ".side-search input").replace("TEXTS", "['', 'tool', 'tool-1', 'group 3', 'group 36 tool', 'x']");
        writeln!(table, "| 1,000 tools, searching | {} | |", frames(&mut page, &search)).unwrap();
        page.visit("about:blank");
    }
    let trace = folder.path().join("many.jsonl");
    write_trace(&trace);
    let inspector = Inspector::start(&[trace.to_str().unwrap()]);
    let began = Instant::now();
    page.visit(&inspector.url);
    wait_for(&mut page, "document.querySelector('[data-testid=calls]')?.dataset.count === '50000'");
    writeln!(table, "| 100,000 frames, until all are listed | {:.0} ms | no traces |", began.elapsed().as_secs_f64() * 1000.0).unwrap();
    writeln!(table, "| 100,000 frames, scrolling | {} | |", frames(&mut page, &SCROLL.replace("LIST", "calls"))).unwrap();
    let filter = TYPE
        .replace("INPUT", "[data-testid=filter]")
        .replace("TEXTS", "['', 'tool:tool-1', 'tool:tool-1*', 'status:error', 'duration:>100us tool:tool-5', 'result 4']");
    writeln!(table, "| 100,000 frames, filtering | {} | |", frames(&mut page, &filter)).unwrap();
    std::fs::write(peers::root().join("target/ui-figures.md"), table).unwrap();
}
