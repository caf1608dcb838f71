//! What `mcproof ui` shows besides a live server: apps in their sandbox, traces as files, tests that were saved.

use crate::browser::Page;
use crate::inspector::{Inspector, choose, click, fill, open_tool, send_to, violations, wait_for};
use crate::peers;
use serde_json::{Value, json};
use std::io::Read as _;
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");

/// One tool for each app; the tool has the name of the app.
const SERVER: &str = include_str!("apps.py");

/// Counts who requests something of it: nobody should.
struct Beacon {
    port: u16,
    visits: Arc<AtomicUsize>,
}

impl Beacon {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let visits = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&visits);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let counted = Arc::clone(&counted);
                std::thread::spawn(move || {
                    // Browsers connect ahead of a request that they then refuse to send; what counts is one that was sent.
                    if matches!(stream.unwrap().read(&mut [0; 1]), Ok(1..)) {
                        counted.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        Self { port, visits }
    }

    fn visits(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }
}

fn of_apps(beacon: &Beacon) -> (Inspector, Page) {
    let folder = tempfile::tempdir().unwrap();
    let server = folder.path().join("apps.py");
    std::fs::write(&server, SERVER).unwrap();
    let port = beacon.port.to_string();
    let inspector = Inspector::start_in(folder, "ui", &["--", "python3", server.to_str().unwrap(), &port]);
    let mut page = Page::new();
    page.look(1440, 900, "light");
    page.visit(&inspector.url);
    wait_for(&mut page, "document.querySelector('[data-testid=overview]')?.dataset.status === 'open'");
    (inspector, page)
}

fn call(page: &mut Page, tool: &str) {
    open_tool(page, tool);
    click(page, "send");
}

fn causes(page: &mut Page) -> Value {
    page.evaluate("[...document.querySelectorAll('[data-testid=app-cause]')].map((cause) => cause.innerText)")
}

const STATE: &str = "document.querySelector('[data-testid=app-view]')?.dataset.status";

#[test]
fn an_app_is_shown_with_its_tool() {
    let app = peers::root().join("target/peers/node/apps/node_modules/@modelcontextprotocol/server-budget-allocator/dist/index.js");
    assert!(app.exists(), "{} is not there: run `cargo xtask peers`", app.display());
    let inspector = Inspector::start(&["--", "node", app.to_str().unwrap(), "--stdio"]);
    let mut page = Page::new();
    page.look(1440, 900, "dark");
    page.visit(&inspector.url);
    wait_for(&mut page, "document.querySelector('[data-testid=overview]')?.dataset.status === 'open'");
    call(&mut page, "get-budget-data");
    wait_for(&mut page, &format!("{STATE} === 'initialized'"));
    // The app has told how high it is, so it has drawn what it got.
    wait_for(&mut page, "parseInt(document.querySelector('.app-frame').style.height) > 400");
    for method in ["ui/initialize", "ui/notifications/tool-input", "ui/notifications/tool-result"] {
        fill(&mut page, "[data-testid=filter]", &format!("client:app method:{method}"));
        wait_for(&mut page, "document.querySelector('[data-testid=calls]').dataset.count === '1'");
    }
    assert_eq!(causes(&mut page), json!([]));
    page.evaluate("const theme = document.querySelector('[data-testid=app-theme]'); theme.value = 'light'; theme.dispatchEvent(new Event('change', { bubbles: true }))");
    fill(&mut page, "[data-testid=filter]", "method:ui/notifications/host-context-changed");
    wait_for(&mut page, "document.querySelector('[data-testid=calls]').dataset.count === '1'");
    page.click("[data-testid=calls] .row");
    wait_for(&mut page, "document.querySelector('[data-testid=story]').innerText.includes('theme')");
}

#[test]
fn each_cause_of_a_blank_frame_is_named() {
    let beacon = Beacon::new();
    let (_inspector, mut page) = of_apps(&beacon);
    for (app, cause) in [
        ("missing", "not-readable"),
        ("wrong-mime", "wrong-mime-type"),
        ("no-html", "no-html"),
        ("empty", "empty"),
        ("bad-blob", "bad-blob"),
        ("blocked-script", "blocked"),
        ("script-error", "script-error"),
        ("missing-file", "load-error"),
        ("unreachable", "load-error"),
        ("evals", "blocked"),
        ("leaves", "left"),
        ("submits", "left"),
        ("silent", "no-initialize"),
        ("other-protocol", "other-protocol"),
        ("client-info", "no-app-info"),
        ("not-initialized", "no-initialized"),
        ("draws-nothing", "nothing-drawn"),
        ("flood", "flood"),
    ] {
        call(&mut page, app);
        wait_for(&mut page, &format!("document.querySelector('[data-testid=app-cause][data-cause={cause}]')"));
        match app {
            "client-info" => continue,
            // It has drawn the error as its content by now, or soon.
            "evals" => wait_for(&mut page, &format!("{STATE} === 'failed'")),
            _ => assert_eq!(page.evaluate(STATE), "failed", "{app}"),
        }
        if app == "unreachable" {
            assert!(causes(&mut page).to_string().contains("the policy lets it through"), "{}", causes(&mut page));
        }
    }
    // A host that allows `eval` shows the same app.
    call(&mut page, "evals");
    choose(&mut page, "app-profile", "reference");
    wait_for(&mut page, "document.querySelector('[data-testid=app]').innerText.includes('evaluated: 42')");
    assert_eq!(page.evaluate(STATE), "initialized");
    assert_eq!(causes(&mut page), json!([]));
    assert_eq!(violations(&mut page), json!([]));
    // The same with nothing wrong has none: the table above would prove nothing otherwise.
    call(&mut page, "good");
    wait_for(&mut page, &format!("{STATE} === 'initialized'"));
    wait_for(&mut page, "document.querySelector('[data-testid=app]').innerText.includes('\"the app got: hello\"')");
    assert_eq!(causes(&mut page), json!([]));
    assert_eq!(beacon.visits(), 0);
    // Nothing but views is served beside the page, and only under its own name.
    let source = page.evaluate("document.querySelector('.app-frame').src").as_str().unwrap().to_owned();
    let (authority, path) = source.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let status = |line: &str, host: &str| {
        send_to(authority, &format!("{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")).0
    };
    assert_eq!(status(&format!("GET /{path}"), authority), 200);
    assert_eq!(status(&format!("GET /{path}"), "evil.example"), 421);
    assert_eq!(status(&format!("POST /{path}"), authority), 405);
    assert_eq!(status(&format!("GET /{path}x"), authority), 404);
    assert_eq!(status("GET /api/stream", authority), 404);
}

#[test]
fn an_app_reaches_nothing_but_its_own_server() {
    let beacon = Beacon::new();
    let (_inspector, mut page) = of_apps(&beacon);
    let attempts = |page: &mut Page| -> Value {
        wait_for(page, "document.querySelector('[data-testid=app-context]')");
        serde_json::from_str(&page.text_of("[data-testid=app-context]")).unwrap()
    };
    call(&mut page, "hostile");
    let found = attempts(&mut page);
    let found = found["structuredContent"].as_object().unwrap();
    let through: Vec<_> = found.iter().filter(|(name, got)| **got != "refused" && !name.starts_with("control")).collect();
    assert_eq!(through, Vec::<(&String, &Value)>::new());
    assert!(found.len() > 18, "{found:?}");
    // What an app may do it can: otherwise everything would be refused for another reason.
    assert_eq!(found["control: storage"], "through: kept");
    assert_eq!(found["control: own tool"], "through: helped");
    assert_eq!(page.evaluate("document.querySelectorAll('[data-testid=app-refused]').length > 0"), true);
    assert_eq!(page.evaluate("String(window.pwned)"), "undefined");
    assert_eq!(page.evaluate("location.host"), page.evaluate("new URL(document.baseURI).host"));
    // A link opens only if the user agrees.
    wait_for(&mut page, "document.querySelector('[data-testid=app-link]')");
    assert!(page.text_of("[data-testid=app-link]").contains("http://evil.example/"));
    choose(&mut page, "app-profile", "reference");
    wait_for(&mut page, "!document.querySelector('[data-testid=app-context]')");
    let found = attempts(&mut page);
    let found = found["structuredContent"].as_object().unwrap();
    let through = found.iter().filter(|(name, got)| **got != "refused" && !name.starts_with("control")).map(|(name, _)| name.as_str());
    let mut through: Vec<&str> = through.collect();
    through.sort_unstable();
    assert_eq!(through, ["eval", "worker"], "a host that allows these two allows nothing else");
    choose(&mut page, "app-profile", "strict");
    wait_for(&mut page, "!document.querySelector('[data-testid=app-context]')");
    assert_eq!(attempts(&mut page)["structuredContent"]["control: storage"], "refused", "the strict profile has no storage");
    assert_eq!(beacon.visits(), 0, "something was reached");
}

#[test]
fn an_exported_trace_is_the_viewer_without_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = Command::new(MCPROOF).args(arguments).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run(&[
        "call",
        "check_inventory",
        "product_id=</script><script>window.pwned=1</script>",
        "--trace",
        "a.mcptrace",
        "--",
        MCPROOF,
        "demo",
        "shop",
    ]);
    run(&["trace", "export", "a.mcptrace", "--html", "--output", "a.html"]);
    let mut page = Page::new();
    page.look(1440, 900, "light");
    page.open(&folder.path().join("a.html"));
    wait_for(&mut page, "document.querySelector('[data-testid=overview]')?.dataset.status === 'recorded'");
    fill(&mut page, "[data-testid=filter]", "tool:check_inventory");
    wait_for(&mut page, "document.querySelector('[data-testid=calls]').dataset.count === '1'");
    page.click("[data-testid=calls] .row");
    wait_for(&mut page, "document.querySelector('[data-testid=story]').innerText.includes('window.pwned')");
    click(&mut page, "nav-tools");
    wait_for(&mut page, "document.querySelector('[data-testid=list-tools]').innerText.includes('no list of tools')");
    assert_eq!(page.evaluate("String(window.pwned)"), "undefined");
    assert_eq!(page.complaints(), Vec::<&Value>::new());
    assert!(page.requests().iter().all(|url| url.starts_with("file:///") || url.starts_with("data:")), "{:?}", page.requests());
}

#[test]
fn the_evidence_of_an_incident_opens_with_what_the_probe_found() {
    let folder = tempfile::tempdir().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let probe = [&*format!("http://{free}/mcp"), "--json", "--trace", "trace.json"];
    let output = Command::new(MCPROOF).arg("probe").args(probe).current_dir(folder.path()).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let transcript: Value = serde_json::from_slice(&std::fs::read(folder.path().join("trace.json")).unwrap()).unwrap();
    // As a monitor saves it.
    let evidence = folder.path().join("evidence.json");
    std::fs::write(&evidence, json!({ "report": report, "transcript": transcript }).to_string()).unwrap();
    let inspector = Inspector::start_in(folder, "ui", &[evidence.to_str().unwrap()]);
    let mut page = Page::new();
    page.look(1440, 900, "light");
    page.visit(&inspector.url);
    wait_for(&mut page, "document.querySelector('[data-testid=overview]')?.dataset.status === 'recorded'");
    wait_for(&mut page, "document.querySelector('[data-testid=overview]').innerText.includes('refused')");
    wait_for(&mut page, "Number(document.querySelector('[data-testid=calls]')?.dataset.count) > 0");
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn a_call_is_saved_as_a_test_that_passes() {
    let inspector = Inspector::start(&["--", MCPROOF, "demo", "shop"]);
    let mut page = Page::new();
    page.look(1440, 900, "light");
    page.visit(&inspector.url);
    wait_for(&mut page, "document.querySelector('[data-testid=overview]')?.dataset.status === 'open'");
    for (product, available) in [("PROD-123", "10"), ("PROD-456", "")] {
        open_tool(&mut page, "check_inventory");
        fill(&mut page, "[data-testid=input-product_id]", product);
        click(&mut page, "send");
        wait_for(&mut page, &format!("document.querySelector('[data-testid=result]')?.innerText.includes('{available}')"));
        click(&mut page, "keep");
        page.click("[role=menuitem]");
        click(&mut page, "nav-saved");
        assert_eq!(violations(&mut page), json!([]));
        // It proposes a file once it knows the suites.
        wait_for(&mut page, "document.querySelector('[data-testid=save-file]').value !== ''");
        fill(&mut page, "[data-testid=save-name]", &format!("stock of {product}"));
        fill(&mut page, "[data-testid=save-file]", "../outside.mcproof.yaml");
        click(&mut page, "save-suite");
        wait_for(&mut page, "document.querySelector('[data-testid=save-wrong]')?.innerText.includes('below this folder')");
        fill(&mut page, "[data-testid=save-file]", "kept.mcproof.yaml");
        click(&mut page, "save-suite");
        wait_for(&mut page, "!document.querySelector('[data-testid=save-as]')");
    }
    // A second test of a name is refused before it is written: the suite would not run any more.
    open_tool(&mut page, "check_inventory");
    click(&mut page, "send");
    wait_for(&mut page, "document.querySelector('[data-testid=result]')");
    click(&mut page, "keep");
    page.click("[role=menuitem]");
    click(&mut page, "nav-saved");
    wait_for(&mut page, "document.querySelector('[data-testid=save-file]').value === 'kept.mcproof.yaml'");
    fill(&mut page, "[data-testid=save-name]", "stock of PROD-123");
    wait_for(&mut page, "document.querySelector('[data-testid=name-taken]')?.innerText.includes('stock of PROD-123 2')");
    let folder = inspector.folder.path();
    assert!(!folder.parent().unwrap().join("outside.mcproof.yaml").exists());
    let output = Command::new(MCPROOF).args(["test", "kept.mcproof.yaml", "--json"]).current_dir(folder).output().unwrap();
    let last: Value = serde_json::from_str(String::from_utf8_lossy(&output.stdout).lines().last().unwrap()).unwrap();
    assert_eq!((&last["counts"]["passed"], &last["counts"]["failed"]), (&json!(2), &json!(0)), "{last}");
}

#[test]
fn tests_are_watched_run_again_and_edited() {
    let folder = tempfile::tempdir().unwrap();
    let suite = folder.path().join("shop.mcproof.yaml");
    let test = |name: &str, available: u32| {
        format!(
            "  - name: {name}\n    steps:\n      - call: check_inventory\n        with: {{ product_id: PROD-123 }}\n        expect: {{ available: {available} }}\n"
        )
    };
    std::fs::write(
        &suite,
        format!("server: {{ stdio: {MCPROOF} demo shop }}\ntests:\n{}{}    tags: [slow]\n", test("holds", 10), test("fails (once)", 11)),
    )
    .unwrap();
    let inspector = Inspector::start_in(folder, "test", &["--ui"]);
    let mut page = Page::new();
    page.look(1440, 900, "light");
    page.visit(&inspector.url);
    let counts = |passed: u32, failed: u32| {
        format!("document.querySelector('[data-testid=tests][data-status=idle][data-passed=\"{passed}\"][data-failed=\"{failed}\"]')")
    };
    wait_for(&mut page, &counts(1, 1));
    page.evaluate(
        "[...document.querySelectorAll('[data-testid=items-tests] .row')].find((row) => row.innerText.includes('fails (once)')).click()",
    );
    wait_for(&mut page, "document.querySelector('[data-testid=test] .diff')?.innerText.includes('11')");
    assert_eq!(violations(&mut page), json!([]));
    // What went over the wire in it is in the same viewer.
    fill(&mut page, "[data-testid=filter]", "tool:check_inventory");
    wait_for(&mut page, "document.querySelector('[data-testid=calls]').dataset.count === '1'");
    page.click("[data-testid=calls] .row");
    wait_for(&mut page, "document.querySelector('[data-testid=story]').innerText.includes('PROD-123')");
    page.press("Escape");
    // The search takes the language of `--filter` as well.
    let listed = |number: u32| format!("document.querySelector('[data-testid=items-tests]')?.dataset.count === '{number}'");
    fill(&mut page, "[data-testid=search-tests]", "tag(slow) & !name(holds)");
    wait_for(&mut page, &listed(1));
    fill(&mut page, "[data-testid=search-tests]", "tag(slow) &");
    wait_for(&mut page, "document.querySelector('[data-testid=tests-mistake]')?.innerText.includes('expected a condition')");
    fill(&mut page, "[data-testid=search-tests]", "name(o) | name(f)");
    wait_for(&mut page, &listed(2));
    click(&mut page, "edit-suite");
    // The caret is in the line that fails.
    let line = "document.querySelector('[data-testid=suite-text]')?.value.slice(document.activeElement.selectionStart).split('\\n')[0]";
    wait_for(&mut page, &format!("{line}.includes('available: 11')"));
    assert_eq!(violations(&mut page), json!([]));
    page.evaluate(
        "const text = document.querySelector('[data-testid=suite-text]'); text.value = text.value.replace('11', '10'); \
         text.dispatchEvent(new Event('input', { bubbles: true }))",
    );
    // Somebody else has changed the file: what was typed stays.
    std::fs::write(&suite, std::fs::read_to_string(&suite).unwrap() + "# another\n").unwrap();
    click(&mut page, "save-run");
    click(&mut page, "keep-mine");
    wait_for(&mut page, "!document.querySelector('[data-testid=keep-mine]')");
    click(&mut page, "save-run");
    wait_for(&mut page, &counts(2, 0));
    assert!(!std::fs::read_to_string(&suite).unwrap().contains("another"));
    assert!(!std::fs::read_to_string(&suite).unwrap().contains("11"));
    // What is shown is of this run, and a test that passes has its messages as well.
    wait_for(
        &mut page,
        "document.querySelector('[data-testid=test][data-status=pass]') && !document.querySelector('[data-testid=test] .diff')",
    );
    wait_for(&mut page, "document.querySelector('[data-testid=calls]')?.dataset.count === '1'");
    assert_eq!(page.evaluate("document.querySelector('[data-testid=traffic-dropped]')"), Value::Null);
    // A suite that is broken says so, and the results stay.
    std::fs::write(&suite, "tests: [").unwrap();
    click(&mut page, "run-all");
    wait_for(&mut page, "document.querySelector('[data-testid=tests-problem]')?.innerText.includes('never closed')");
    assert_eq!(page.complaints().len(), 2, "the expression and the text that were refused: {:?}", page.complaints());
}
