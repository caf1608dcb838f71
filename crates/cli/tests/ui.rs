//! `mcproof ui` in a real browser, with real servers over three transports, and attacked by other pages, strangers and hostile servers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "browser/mod.rs"]
mod browser;
#[path = "peers/mod.rs"]
mod peers;

use browser::Page;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// An inspector; it ends with this.
struct Inspector {
    process: Child,
    url: String,
    _state: tempfile::TempDir,
}

impl Inspector {
    fn start(arguments: &[&str]) -> Self {
        let state = tempfile::tempdir().unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_mcproof"))
            .args(["ui", "--no-open", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .current_dir(state.path())
            .env("XDG_STATE_HOME", state.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        assert!(url.contains("#token="), "the address of the page is printed: {url:?}");
        Self { process, url: url.trim().to_owned(), _state: state }
    }

    fn authority(&self) -> &str {
        self.url.strip_prefix("http://").unwrap().split('/').next().unwrap()
    }

    fn token(&self) -> &str {
        self.url.split_once("#token=").unwrap().1
    }

    /// Sends these bytes, and gives the status of the response and the rest of it.
    fn send(&self, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.authority()).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = Vec::new();
        let _ = stream.read_to_end(&mut response);
        let text = String::from_utf8_lossy(&response).into_owned();
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        (status, text)
    }
}

impl Drop for Inspector {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-INT", &self.process.id().to_string()]).status();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(10) {
            if let Ok(Some(_)) = self.process.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits until an expression is true in the page.
fn wait_for(page: &mut Page, condition: &str) {
    let look = format!(
        "new Promise((done) => {{ const until = performance.now() + 50000; const look = () => {{ let found = false; \
         try {{ found = Boolean({condition}); }} catch {{ }} \
         if (found || performance.now() > until) done(found); else setTimeout(look, 30); }}; look(); }})"
    );
    let found = page.evaluate(&look);
    assert_eq!(found, Value::Bool(true), "{condition}: {}", page.evaluate("document.body.innerText.slice(0, 3000)"));
}

fn id(name: &str) -> String {
    format!("[data-testid={name}]")
}

fn click(page: &mut Page, name: &str) {
    wait_for(page, &format!("document.querySelector('{}')", id(name)));
    page.click(&id(name));
}

fn open_tool(page: &mut Page, tool: &str) {
    click(page, "nav-tools");
    let row = format!(
        "[...document.querySelectorAll('[data-testid=items-tools] .row')].find((row) => row.querySelector('.offer-name').textContent === '{tool}')"
    );
    wait_for(page, &row);
    page.evaluate(&format!("{row}.click()"));
    wait_for(page, &format!("document.querySelector('[data-testid=tool] h1').textContent === '{tool}'"));
}

/// Types into a field, as a person would.
fn fill(page: &mut Page, selector: &str, text: &str) {
    wait_for(page, &format!("document.querySelector('{selector}')"));
    page.evaluate(&format!("document.querySelector('{selector}').focus(); document.querySelector('{selector}').select?.()"));
    page.type_text(text);
}

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
        assert_eq!(page.evaluate("location.hash"), "", "the token does not stay in the address");
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
    let axe = peers::root().join("crates/ui/web/node_modules/axe-core/axe.min.js");
    let axe = std::fs::read_to_string(&axe).expect("axe-core is installed: run `cargo xtask web --check`");
    let inspector = Inspector::start(&["--", env!("CARGO_BIN_EXE_mcproof"), "demo", "shop"]);
    for (width, scheme) in [(1440, "light"), (1440, "dark"), (360, "light")] {
        // One for each: a visit to an address that differs in its fragment alone loads nothing.
        let mut page = Page::new();
        page.look(width, 900, scheme);
        page.visit(&inspector.url);
        wait_for(&mut page, "document.querySelector('[data-testid=overview]')?.dataset.status === 'open'");
        page.evaluate(&format!("{axe}; true"));
        let violations = |page: &mut Page, place: &str| {
            let found = page.evaluate(
                "axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] }).then((found) => \
                 found.violations.map((one) => one.id + ': ' + one.nodes.map((node) => node.html + ' ' + node.failureSummary).slice(0, 3).join(' | ')))",
            );
            assert_eq!(found, serde_json::json!([]), "{place}, {width} px, {scheme}");
        };
        violations(&mut page, "overview");
        if width == 360 {
            continue;
        }
        open_tool(&mut page, "check_inventory");
        fill(&mut page, "[data-testid=input-product_id]", "PROD-123");
        click(&mut page, "send");
        wait_for(&mut page, "document.querySelector('[data-testid=result]')?.dataset.status === 'ok'");
        violations(&mut page, "tool");
        page.evaluate("document.querySelector('[data-testid=calls] .row').click()");
        wait_for(&mut page, "document.querySelector('[data-testid=story]')");
        violations(&mut page, "story");
        click(&mut page, "search");
        wait_for(&mut page, "document.querySelector('[data-testid=palette]')");
        violations(&mut page, "palette");
        page.press("Escape");
        click(&mut page, "add-server");
        violations(&mut page, "connect");
    }
}
