//! `mcproof ui` in a real browser, with real servers over three transports, and attacked by other pages, strangers and hostile servers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "ui/apps.rs"]
mod apps;
#[path = "browser/mod.rs"]
mod browser;
#[path = "ui/compare.rs"]
mod compare;
#[path = "ui/completion.rs"]
mod completion;
#[path = "ui/figures.rs"]
mod figures;
#[path = "ui/inspector.rs"]
mod inspector;
#[path = "ui/keeping.rs"]
mod keeping;
#[path = "ui/modern.rs"]
mod modern;
#[path = "ui/panels.rs"]
mod panels;
#[path = "peers/mod.rs"]
mod peers;
#[path = "ui/policies.rs"]
mod policies;
#[path = "ui/settings.rs"]
mod settings;
#[path = "ui/sign_in.rs"]
mod sign_in;
#[path = "ui/tasks.rs"]
mod tasks;

use browser::Page;
use inspector::{DEADLINE, Inspector, click, fill, open_tool, wait_for};
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn a_server_is_explored_over_each_transport() {
    let binary = env!("CARGO_BIN_EXE_mcproof");
    let address = "http://127.0.0.1:${port}";
    let (http, sse) = (format!("{address}/mcp"), format!("{address}/sse"));
    for (transport, arguments) in [
        ("stdio", vec!["--", binary, "demo", "shop"]),
        ("http", vec![&http, "--", binary, "demo", "shop", "--http", "--port", "${port}"]),
        ("sse", vec![&sse, "--", binary, "demo", "shop", "--sse", "--port", "${port}"]),
    ] {
        let inspector = Inspector::start(&arguments);
        let mut page = Page::new();
        page.look(1440, 900, "light");
        page.visit(&inspector.url);
        wait_for(&mut page, "document.querySelector('[data-testid=overview]')?.dataset.status === 'open'");
        assert_eq!(page.evaluate("location.hash.includes('token')"), Value::Bool(false), "the token does not stay in the address");
        assert_eq!(page.text_of(".terms dd"), transport);
        open_tool(&mut page, "check_inventory");
        fill(&mut page, "[data-testid=input-product_id]", "PROD-123");
        click(&mut page, "send");
        wait_for(&mut page, "document.querySelector('[data-testid=result]')?.dataset.status === 'ok'");
        assert!(page.text_of("[data-testid=result]").contains("available"));
        // The call is in the traffic, and its story has both messages.
        fill(&mut page, "[data-testid=filter]", "tool:check_inventory");
        wait_for(&mut page, "document.querySelector('[data-testid=calls]').dataset.count === '1'");
        page.click("[data-testid=calls] .row");
        wait_for(&mut page, "document.querySelectorAll('[data-testid=story] .story-part > .block').length >= 2");
        assert!(page.text_of("[data-testid=story]").contains("PROD-123"));
        fill(&mut page, "[data-testid=filter]", "methud:x");
        assert!(page.text_of("#filter-mistake").contains("did you mean"));
        assert_eq!(page.complaints(), Vec::<&Value>::new(), "{transport}");
        let own = format!("http://{}/", inspector.authority());
        assert!(page.requests().iter().all(|url| url.starts_with(&own) || url.starts_with("data:")), "{:?}", page.requests());
    }
}

#[test]
fn a_page_that_is_loaded_again_sees_the_same_session() {
    let inspector = Inspector::start(&["--", env!("CARGO_BIN_EXE_mcproof"), "demo", "shop"]);
    let mut page = Page::new();
    page.look(1440, 900, "dark");
    page.visit(&inspector.url);
    wait_for(&mut page, "Number(document.querySelector('[data-testid=calls]').dataset.count) > 1");
    let before = page.evaluate("document.querySelector('[data-testid=calls]').dataset.count");
    page.visit(&format!("http://{}/", inspector.authority()));
    // It may list the tools again, but it does not connect again.
    wait_for(&mut page, &format!("Number(document.querySelector('[data-testid=calls]')?.dataset.count) >= Number({before})"));
    assert_eq!(page.evaluate("document.body.innerText.split('server/discover').length - 1"), 1);
}

#[test]
fn a_connection_that_fails_is_diagnosed() {
    let inspector = Inspector::start(&["--", "no-such-program-anywhere"]);
    let mut page = Page::new();
    page.visit(&inspector.url);
    wait_for(&mut page, "document.querySelector('[data-testid=overview]')?.dataset.status === 'failed'");
    click(&mut page, "run-doctor");
    wait_for(&mut page, "document.querySelector('[data-testid=step-command]')?.dataset.status === 'failed'");
    assert!(page.text_of("[data-testid=doctor]").contains("no-such-program-anywhere"));
}

#[test]
fn servers_are_added_on_the_page_one_after_the_other() {
    let inspector = Inspector::start(&[]);
    let mut page = Page::new();
    page.look(1440, 900, "light");
    page.visit(&inspector.url);
    for (number, name) in [(1, "shop"), (2, "tracker")] {
        if number > 1 {
            click(&mut page, "add-server");
        }
        wait_for(&mut page, "document.querySelector('[data-testid=target]')");
        fill(&mut page, "[data-testid=target]", &format!("{} demo {name}", env!("CARGO_BIN_EXE_mcproof")));
        click(&mut page, "connect-button");
        let title = format!("document.querySelector('[data-testid=overview] h1')?.textContent.toLowerCase().includes('{name}')");
        wait_for(&mut page, &format!("document.querySelector('[data-testid=overview]')?.dataset.status === 'open' && {title}"));
        assert_eq!(page.evaluate("document.querySelectorAll('[data-testid=server]').length"), number);
    }
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn a_mistyped_server_is_mended_on_the_page() {
    let inspector = Inspector::start(&["--", "no-such-program-anywhere", "demo", "shop"]);
    let mut page = Page::new();
    page.look(1440, 900, "light");
    page.visit(&inspector.url);
    wait_for(&mut page, "document.querySelector('[data-testid=overview]')?.dataset.status === 'failed'");
    click(&mut page, "edit-server");
    wait_for(&mut page, "document.querySelector('[data-testid=target]').value === 'no-such-program-anywhere demo shop'");
    fill(&mut page, "[data-testid=target]", &format!("{} demo shop", env!("CARGO_BIN_EXE_mcproof")));
    click(&mut page, "connect-button");
    wait_for(&mut page, "document.querySelector('[data-testid=overview]')?.dataset.status === 'open'");
    assert_eq!(page.evaluate("document.querySelectorAll('[data-testid=server]').length"), 1, "it is the same server");
    // A URL without its scheme is named, and so is an entry that starts nothing.
    click(&mut page, "add-server");
    fill(&mut page, "[data-testid=target]", "example.com/mcp");
    wait_for(&mut page, "document.querySelector('[data-testid=taken-as-command] button')?.innerText === 'https://example.com/mcp'");
    fill(&mut page, "[data-testid=target]", r#"{"mcpServers": {"three": {"comand": "x"}}}"#);
    click(&mut page, "connect-button");
    wait_for(&mut page, "document.querySelector('.connect .note.error')?.innerText.includes('three')");
    assert_eq!(page.evaluate("document.querySelectorAll('[data-testid=server]').length"), 1);
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

/// Answers with the arguments that it got; its tool has a property that is called as what all JavaScript objects have.
const ECHO: &str = r#"
import sys, json
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, answer = message.get("method"), {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "echo", "version": "1"}}
    elif method == "tools/list":
        properties = {"id": {"type": "integer"}, "constructor": {"type": "string"}, "price": {"type": "number"}}
        properties["word"] = {"type": "string", "pattern": "^(a+)+$"}
        properties["list"] = {"type": "array", "items": {"type": "number"}}
        answer["result"] = {"tools": [{"name": "echo", "inputSchema": {"type": "object", "properties": properties, "required": ["id"]}}]}
    elif method == "tools/call":
        arguments = message["params"].get("arguments", {})
        answer["result"] = {"content": [{"type": "text", "text": json.dumps(arguments)}], "structuredContent": arguments}
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(answer), flush=True)
"#;

/// Such a server, and a page with its tool.
fn echo() -> (tempfile::TempDir, Inspector, Page) {
    let folder = tempfile::tempdir().unwrap();
    let server = folder.path().join("echo.py");
    std::fs::write(&server, ECHO).unwrap();
    let inspector = Inspector::start(&["--", "python3", server.to_str().unwrap()]);
    let mut page = Page::new();
    page.look(1440, 900, "light");
    page.visit(&inspector.url);
    wait_for(&mut page, "document.querySelector('[data-testid=overview]')?.dataset.status === 'open'");
    open_tool(&mut page, "echo");
    (folder, inspector, page)
}

/// Types into a field key by key, in place of what stood there, and gives what stands in it then.
fn type_keys(page: &mut Page, field: &str, text: &str) -> Value {
    page.evaluate(&format!("document.querySelector('{field}').focus(); document.querySelector('{field}').select()"));
    for key in text.chars() {
        page.press(&key.to_string());
    }
    page.evaluate(&format!("new Promise((done) => setTimeout(() => done(document.querySelector('{field}').value), 100))"))
}

#[test]
fn numbers_are_sent_as_they_are_typed_key_by_key() {
    let (_folder, _inspector, mut page) = echo();
    fill(&mut page, "[data-testid=input-id]", "1");
    for text in ["-0.5", "10.01", "1e10", "0.001", "1.0", "1.05"] {
        assert_eq!(type_keys(&mut page, "[data-testid=input-price]", text), text);
    }
    // A new item is empty until something is typed.
    page.evaluate("[...document.querySelectorAll('[data-testid=field-list] button')].find((one) => one.innerText === 'Add item').click()");
    wait_for(&mut page, "document.querySelector('[data-testid=input-0]')?.value === ''");
    wait_for(&mut page, "document.querySelector('[data-testid=send]').disabled");
    assert_eq!(type_keys(&mut page, "[data-testid=input-0]", "5."), "5.");
    wait_for(&mut page, "document.querySelector('[data-testid=send]').disabled");
    page.press("2");
    wait_for(&mut page, "!document.querySelector('[data-testid=send]').disabled");
    click(&mut page, "send");
    wait_for(&mut page, "document.querySelector('[data-testid=structured]')?.innerText.includes('1.05')");
    wait_for(&mut page, "document.querySelector('[data-testid=structured]')?.innerText.includes('5.2')");
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn a_pattern_of_a_server_does_not_stop_the_page() {
    let (_folder, _inspector, mut page) = echo();
    let begun = Instant::now();
    fill(&mut page, "[data-testid=input-word]", &format!("{}!", "a".repeat(60)));
    wait_for(&mut page, "document.querySelector('[data-testid=field-word] .field-flaw')?.innerText.includes('pattern')");
    fill(&mut page, "[data-testid=input-word]", &"a".repeat(60));
    wait_for(&mut page, "!document.querySelector('[data-testid=field-word] .field-flaw')");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn back_and_a_reload_keep_the_place_and_what_was_typed() {
    let (_folder, inspector, mut page) = echo();
    fill(&mut page, "[data-testid=input-id]", "42");
    wait_for(&mut page, "location.hash.endsWith('/tools/echo')");
    wait_for(&mut page, "sessionStorage.getItem('mcproof-drafts')?.includes('42')");
    // Steps that follow each other at once are one step back.
    page.evaluate("new Promise((done) => setTimeout(done, 1000))");
    click(&mut page, "nav-logs");
    wait_for(&mut page, "location.hash.endsWith('/logs')");
    page.evaluate("history.back()");
    wait_for(&mut page, "document.querySelector('[data-testid=input-id]')?.value === '42'");
    page.reload();
    wait_for(&mut page, "document.querySelector('[data-testid=input-id]')?.value === '42'");
    // In another tab, which has the token only.
    let place = page.evaluate("location.hash.slice(1)");
    let mut other = Page::new();
    other.look(1440, 900, "light");
    other.visit(&format!("{}&at={}", inspector.url, place.as_str().unwrap()));
    wait_for(&mut other, "document.querySelector('[data-testid=tool] h1')?.textContent === 'echo'");
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn a_session_is_downloaded_as_a_trace_and_as_a_page() {
    let (folder, _inspector, mut page) = echo();
    fill(&mut page, "[data-testid=input-id]", "42");
    click(&mut page, "send");
    wait_for(&mut page, "document.querySelector('[data-testid=structured]')?.innerText.includes('42')");
    // The connection is 1, its session 2.
    let get = |form: &str| {
        format!(
            "fetch('/api/sessions/2/{form}', {{ headers: {{ authorization: 'Bearer ' + sessionStorage.getItem('mcproof-token') }} }})\
             .then((response) => response.arrayBuffer()).then((bytes) => btoa(Array.from(new Uint8Array(bytes), (byte) => String.fromCharCode(byte)).join('')))"
        )
    };
    for form in ["trace", "page"] {
        let got = page.evaluate(&get(form));
        let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, got.as_str().unwrap()).unwrap();
        let file = folder.path().join(if form == "trace" { "session.mcptrace" } else { "session.html" });
        std::fs::write(&file, bytes).unwrap();
        if form == "trace" {
            let shown = Command::new(env!("CARGO_BIN_EXE_mcproof")).args(["trace", "show"]).arg(&file).output().unwrap();
            let text = String::from_utf8_lossy(&shown.stdout).into_owned();
            assert!(shown.status.success() && text.contains("tools/call"), "{text}{}", String::from_utf8_lossy(&shown.stderr));
        } else {
            let mut viewer = Page::new();
            viewer.look(1440, 900, "light");
            viewer.open(&file);
            wait_for(&mut viewer, "document.querySelector('[data-testid=calls]')?.innerText.includes('tools/call')");
            assert_eq!(viewer.complaints(), Vec::<&Value>::new());
        }
    }
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn arguments_are_sent_as_they_are_typed() {
    let (_folder, _inspector, mut page) = echo();
    fill(&mut page, "[data-testid=input-id]", "9007199254740993");
    fill(&mut page, "[data-testid=input-constructor]", "x");
    click(&mut page, "send");
    wait_for(&mut page, "document.querySelector('[data-testid=structured]')?.innerText.includes('9007199254740993')");
    // The session before stays to be looked at.
    click(&mut page, "nav-overview");
    click(&mut page, "reconnect");
    wait_for(&mut page, "document.querySelectorAll('[data-testid=sessions] option').length === 2");
    page.evaluate(
        "const sessions = document.querySelector('[data-testid=sessions]'); sessions.selectedIndex = 0; \
         sessions.dispatchEvent(new Event('change', { bubbles: true }))",
    );
    wait_for(&mut page, "document.querySelector('[data-testid=calls]')?.innerText.includes('tools/call')");
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn strangers_are_refused() {
    let inspector = Inspector::start(&[]);
    let (host, token) = (inspector.authority().to_owned(), inspector.token().to_owned());
    let marker = tempfile::tempdir().unwrap();
    let touched = marker.path().join("started");
    let body = format!(r#"{{"command":["touch","{}"]}}"#, touched.display());
    let post = |headers: &str| {
        format!("POST /api/connections HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n\r\n{body}", body.len())
    };
    let own = format!("Host: {host}");
    let json = "Content-Type: application/json";
    let bearer = format!("Authorization: Bearer {token}");
    for (attack, headers) in [
        ("no token", format!("{own}\r\n{json}")),
        ("a wrong token", format!("{own}\r\n{json}\r\nAuthorization: Bearer {}x", &token[1..])),
        ("an empty token", format!("{own}\r\n{json}\r\nAuthorization: Bearer ")),
        ("the token in a cookie", format!("{own}\r\n{json}\r\nCookie: token={token}")),
        ("a name that was rebound", format!("Host: evil.example:{}\r\n{json}\r\n{bearer}", host.split(':').nth(1).unwrap())),
        ("a name that ends like ours", format!("Host: {host}.evil.example\r\n{json}\r\n{bearer}")),
        ("no host", format!("{json}\r\n{bearer}")),
        ("two hosts", format!("{own}\r\nHost: evil.example\r\n{json}\r\n{bearer}")),
        ("another site", format!("{own}\r\nOrigin: http://evil.example\r\n{json}\r\n{bearer}")),
        ("another port", format!("{own}\r\nOrigin: http://127.0.0.1:1\r\n{json}\r\n{bearer}")),
        ("a sandboxed frame", format!("{own}\r\nOrigin: null\r\n{json}\r\n{bearer}")),
        ("a cross-site fetch", format!("{own}\r\nSec-Fetch-Site: cross-site\r\n{json}\r\n{bearer}")),
        ("a form", format!("{own}\r\nContent-Type: application/x-www-form-urlencoded\r\n{bearer}")),
        ("a form that looks like JSON", format!("{own}\r\nContent-Type: text/plain\r\n{bearer}")),
    ] {
        let (status, response) = inspector.send(&post(&headers));
        assert!((400..500).contains(&status), "{attack}: {response}");
    }
    let (status, _) = inspector.send(&format!("GET /api/stream?token={token} HTTP/1.1\r\n{own}\r\nConnection: close\r\n\r\n"));
    assert_eq!(status, 401, "the token is not taken from an address");
    let (status, _) = inspector.send(&format!("OPTIONS /api/connections HTTP/1.1\r\n{own}\r\nOrigin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\nConnection: close\r\n\r\n"));
    assert_eq!(status, 403, "a preflight of another site is refused");
    assert!(!touched.exists(), "a stranger has started a program");
    // The same with everything right is taken: the table above would prove nothing otherwise.
    let (status, response) = inspector.send(&post(&format!("{own}\r\n{json}\r\n{bearer}\r\nOrigin: http://{host}")));
    assert_eq!(status, 200, "{response}");
    let begun = Instant::now();
    while !touched.exists() {
        assert!(begun.elapsed() < DEADLINE, "the user's own command is started");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Requests as they were published against other inspectors: CVE-2025-49596 (MCP Inspector), CVE-2026-23744 and the issues 1891 and 2406 of MCPJam.
#[test]
fn published_attacks_on_inspectors_start_nothing() {
    let inspector = Inspector::start(&[]);
    let (host, token) = (inspector.authority().to_owned(), inspector.token().to_owned());
    let port = host.split(':').nth(1).unwrap().to_owned();
    let marker = tempfile::tempdir().unwrap();
    let touched = marker.path().join("started").display().to_string();
    let connect = format!(r#"{{"serverConfig":{{"command":"touch","args":["{touched}"]}},"serverId":"x"}}"#);
    let own = format!(r#"{{"command":["touch","{touched}"]}}"#);
    let get = |path: &str, headers: &str| format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n\r\n");
    let post = |path: &str, headers: &str, body: &str| {
        format!("POST {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n\r\n{body}", body.len())
    };
    let here = format!("Host: {host}");
    let json = format!("{here}\r\nContent-Type: application/json");
    for (attack, request) in [
        ("a proxy that starts commands of a query", get(&format!("/sse?transportType=stdio&command=touch&args={touched}"), &here)),
        (
            "the same, from any site",
            get(&format!("/stdio?command=touch&args={touched}"), &format!("{here}\r\nOrigin: http://evil.example")),
        ),
        ("a message to that proxy", post("/message?sessionId=1", &json, &connect)),
        ("an unauthenticated connect", post("/api/mcp/connect", &json, &connect)),
        ("the same in a form", post("/api/connections", &format!("{here}\r\nContent-Type: application/x-www-form-urlencoded"), &own)),
        (
            "0.0.0.0 as the host",
            post(
                "/api/connections",
                &format!("Host: 0.0.0.0:{port}\r\nContent-Type: application/json\r\nAuthorization: Bearer {token}"),
                &own,
            ),
        ),
        ("a token that is asked for by the Host", get("/api/session-token", &format!("Host: localhost:{port}"))),
        (
            "a forwarded host",
            post(
                "/api/connections",
                &format!(
                    "Host: evil.example\r\nX-Forwarded-Host: {host}\r\nContent-Type: application/json\r\nAuthorization: Bearer {token}"
                ),
                &own,
            ),
        ),
        ("the token in the query", post(&format!("/api/connections?token={token}&MCP_INSPECTOR_API_TOKEN={token}"), &json, &own)),
        ("the token as a name and password", post("/api/connections", &format!("{json}\r\nAuthorization: Basic {token}"), &own)),
        ("the whole URL as the target", post(&format!("http://{host}/api/connections"), &json, &own)),
        ("a path that leaves its folder", get("/..%2f..%2fetc/passwd", &here)),
        (
            "a suite that leaves its folder",
            get("/api/suites/text?file=../../../etc/passwd", &format!("{here}\r\nAuthorization: Bearer {token}")),
        ),
    ] {
        let (status, response) = inspector.send(&request);
        assert!((400..500).contains(&status), "{attack}: {response}");
        assert!(!response.contains(&token) && !response.contains("root:"), "{attack}: {response}");
    }
    assert!(!std::path::Path::new(&touched).exists(), "a stranger has started a program");
}

#[test]
fn other_addresses_than_loopback_require_a_token() {
    let refused = Command::new(env!("CARGO_BIN_EXE_mcproof")).args(["ui", "--no-open", "--listen", "0.0.0.0:0"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--token"));
}

#[test]
fn a_command_in_a_link_is_not_started() {
    let inspector = Inspector::start(&[]);
    let marker = tempfile::tempdir().unwrap();
    let touched = marker.path().join("started");
    let mut page = Page::new();
    let link = format!(
        "http://{}/?target=touch%20{}&autoConnect=1&command=touch#token={}",
        inspector.authority(),
        touched.display(),
        inspector.token()
    );
    page.visit(&link);
    wait_for(&mut page, "document.querySelector('[data-testid=target]').value.startsWith('touch ')");
    // What would connect by itself has done so before the page has told the server anything else and heard of it.
    page.evaluate("new Promise((done) => setTimeout(done, 300))");
    assert!(!touched.exists(), "a link has started a program");
    assert_eq!(page.evaluate("document.querySelectorAll('[data-testid=server]').length"), 0);
}

/// Answers with markup, scripts and addresses wherever it may.
const HOSTILE: &str = r##"
import sys, json
X = "<img src=x onerror=window.pwned=1><script>window.pwned=1</script><svg onload=window.pwned=1>\u202e[a](javascript:window.pwned=1) ![b](http://evil.example/pixel.png) <a href='javascript:window.pwned=1'>c</a><iframe src='javascript:window.parent.pwned=1'></iframe><style>*{display:none}</style><form action='http://evil.example'><input></form>"
MD = "# title\n\n**bold** [good](https://example.com) [bad](javascript:window.pwned=1) ![image](http://evil.example/p.png)\n\n" + X
def reply(message):
    method = message.get("method")
    if method == "initialize":
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "logging": {}}, "serverInfo": {"name": X, "version": X, "title": X}, "instructions": MD}
    if method == "tools/list":
        return {"tools": [{"name": "attack", "title": X, "description": MD, "inputSchema": {"type": "object", "title": X, "description": X, "properties": {"__proto__": {"type": "string"}, X: {"type": "string", "description": X, "enum": [X, "b"], "default": X}}}}]}
    if method == "prompts/list":
        return {"prompts": [{"name": X, "description": MD}]}
    if method == "resources/list":
        return {"resources": [{"name": X, "uri": "javascript:window.pwned=1", "mimeType": "text/html", "description": MD}]}
    if method == "resources/templates/list":
        return {"resourceTemplates": []}
    if method == "tools/call":
        svg = "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIG9ubG9hZD0id2luZG93LnB3bmVkPTEiLz4="
        return {"content": [
            {"type": "text", "text": X}, {"type": "text", "text": MD},
            {"type": "image", "mimeType": "image/svg+xml", "data": svg},
            {"type": "image", "mimeType": "image/png\" onerror=\"window.pwned=1", "data": "AAAA\" onerror=\"window.pwned=1"},
            {"type": "resource_link", "uri": "javascript:window.pwned=1", "name": X},
            {"type": "resource", "resource": {"uri": "ui://x", "mimeType": "text/html;profile=mcp-app", "text": X}}],
            "structuredContent": {X: X, "__proto__": {"x": 1}}}
    return None
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = reply(message)
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    answer.update({"result": result} if result is not None else {"error": {"code": -32601, "message": X}})
    sys.stderr.write(X + "\n")
    sys.stderr.flush()
    print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": X, "logger": X, "data": X}}), flush=True)
    print(json.dumps(answer), flush=True)
"##;

#[test]
fn nothing_that_a_server_sends_runs_or_loads() {
    let folder = tempfile::tempdir().unwrap();
    let server = folder.path().join("hostile.py");
    std::fs::write(&server, HOSTILE).unwrap();
    let inspector = Inspector::start(&["--", "python3", server.to_str().unwrap()]);
    let mut page = Page::new();
    page.look(1440, 900, "light");
    page.visit(&inspector.url);
    wait_for(&mut page, "document.querySelector('[data-testid=overview]')?.dataset.status === 'open'");
    wait_for(&mut page, "document.querySelector('.markdown strong')");
    open_tool(&mut page, "attack");
    click(&mut page, "send");
    wait_for(&mut page, "document.querySelector('[data-testid=result]')?.dataset.status === 'ok'");
    for view in ["logs", "prompts", "resources", "overview"] {
        click(&mut page, &format!("nav-{view}"));
        page.evaluate("document.querySelector('.side-list .row')?.click()");
    }
    page.click("[data-testid=calls] .row");
    wait_for(&mut page, "document.querySelector('[data-testid=story]')");
    assert_eq!(page.evaluate("String(window.pwned)"), "undefined");
    assert_eq!(
        page.evaluate("document.querySelectorAll('iframe, script:not([src]), object, embed, form[action], svg[onload], [onerror]').length"),
        0
    );
    assert_eq!(page.evaluate("[...document.querySelectorAll('a[href]')].filter((link) => !/^https?:/.test(link.href)).length"), 0);
    assert!(page.requests().iter().all(|url| !url.contains("evil.example")), "{:?}", page.requests());
    assert_eq!(
        page.evaluate("document.body.innerText.includes('\u{202e}')"),
        Value::Bool(false),
        "bidi characters are shown by their code"
    );
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn pages_are_accessible() {
    let inspector = Inspector::start(&["--", env!("CARGO_BIN_EXE_mcproof"), "demo", "tracker"]);
    for (width, scheme) in [(1440, "light"), (1440, "dark"), (360, "light"), (360, "dark")] {
        // One for each: a visit to an address that differs in its fragment alone loads nothing.
        let mut page = Page::new();
        page.look(width, 900, scheme);
        page.visit(&inspector.url);
        wait_for(&mut page, "document.querySelector('[data-testid=overview]')?.dataset.status === 'open'");
        let violations = |page: &mut Page, place: &str| {
            assert_eq!(inspector::violations(page), serde_json::json!([]), "{place}, {width} px, {scheme}");
            let wide = page.evaluate("document.documentElement.scrollWidth > innerWidth");
            assert_eq!(wide, Value::Bool(false), "{place} is wider than {width} px");
        };
        // In a narrow window, one part is seen at a time.
        let pane = |page: &mut Page, name: &str| {
            if width == 360 {
                click(page, &format!("pane-{name}"));
            }
        };
        violations(&mut page, "overview");
        for view in ["tools", "prompts", "resources", "logs", "answers", "check", "compare", "saved"] {
            pane(&mut page, "side");
            click(&mut page, &format!("nav-{view}"));
            violations(&mut page, view);
            if matches!(view, "tools" | "prompts" | "resources") {
                pane(&mut page, "side");
                wait_for(&mut page, &format!("document.querySelector('[data-testid=items-{view}] .row')"));
                violations(&mut page, &format!("list of {view}"));
                page.evaluate(&format!("document.querySelector('[data-testid=items-{view}] .row').click()"));
                wait_for(&mut page, "document.querySelector('[data-testid=send]')");
                violations(&mut page, &format!("one of the {view}"));
            }
        }
        pane(&mut page, "side");
        open_tool(&mut page, "echo");
        fill(&mut page, "[data-testid=input-message]", "hello");
        click(&mut page, "send");
        wait_for(&mut page, "document.querySelector('[data-testid=result]')?.dataset.status === 'ok'");
        violations(&mut page, "result");
        pane(&mut page, "traffic");
        violations(&mut page, "traffic");
        page.evaluate("document.querySelector('[data-testid=calls] .row').click()");
        wait_for(&mut page, "document.querySelector('[data-testid=story]')");
        violations(&mut page, "story");
        click(&mut page, "search");
        wait_for(&mut page, "document.querySelector('[data-testid=palette]')");
        violations(&mut page, "palette");
        page.press("Escape");
        click(&mut page, "add-server");
        click(&mut page, "more-settings");
        violations(&mut page, "connect");
    }
}
