//! What a stranger's suite, configuration, lock or agent may not do: each attack runs through the real binary, next to a server that
//! would notice and a file that would be there.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(target_os = "linux")]

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");

const COMMAND: &str = "may not be started: --restricted is on";
const HOST: &str = "may not be reached: --restricted is on";
const VARIABLE: &str = "may not be used: --restricted is on";
const PATH: &str = "out of th";

/// Counts who comes, and answers nobody.
struct Trap {
    port: u16,
    visits: Arc<AtomicUsize>,
}

impl Trap {
    fn set() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, visits) = (listener.local_addr().unwrap().port(), Arc::<AtomicUsize>::default());
        let counted = Arc::clone(&visits);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::SeqCst);
                drop(stream);
            }
        });
        Self { port, visits }
    }

    fn visits(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }
}

/// A checkout of a stranger's branch, with a secret beside it.
struct Checkout {
    outer: tempfile::TempDir,
}

impl Checkout {
    fn new() -> Self {
        let outer = tempfile::tempdir().unwrap();
        std::fs::create_dir(outer.path().join("checkout")).unwrap();
        std::fs::write(outer.path().join("secret"), "TOP-SECRET\n").unwrap();
        Self { outer }
    }

    fn path(&self) -> PathBuf {
        self.outer.path().join("checkout")
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(MCPROOF);
        command.args(arguments).current_dir(self.path()).env("XDG_STATE_HOME", "/nowhere").env("LEAK", "TOP-SECRET").stdin(Stdio::null());
        command.output().unwrap()
    }

    /// Refused with code 2, this diagnostic, this place and this hint; nothing was started, and no secret is told.
    #[track_caller]
    fn refused(&self, arguments: &[&str], code: &str, place: &str, hint: &str) {
        let output = self.run(arguments);
        let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(2), "{arguments:?}\n{told}");
        for part in [code, place, hint] {
            assert!(told.contains(part), "{arguments:?} does not say {part:?}:\n{told}");
        }
        assert!(!told.contains("TOP-SECRET"), "{told}");
        assert!(!self.path().join("owned").exists() && !self.outer.path().join("owned").exists(), "something was started or written");
    }
}

#[test]
fn a_strangers_suite_starts_nothing_and_reaches_nobody() {
    let (checkout, trap) = (Checkout::new(), Trap::set());
    let check = |suite: &str, code: &str, place: &str, hint: &str| {
        checkout.write("s.mcproof.yaml", suite);
        checkout.refused(&["test", "--restricted"], code, place, hint);
        checkout.refused(&["plan", "--restricted"], code, place, hint);
    };
    let own = "tests: [{ name: a, steps: [ping] }]\n";
    check(&format!("server:\n  stdio: touch owned\n{own}"), COMMAND, "s.mcproof.yaml:2:", "--allow-command 'touch owned'");
    check(
        "server: { http: \"http://127.0.0.1:1/mcp\" }\ntests:\n  - name: a\n    steps:\n      - run: touch owned\n",
        COMMAND,
        "s.mcproof.yaml:5:",
        "--allow-command 'touch owned'",
    );
    let url = format!("http://127.0.0.1:{}/mcp", trap.port);
    check(&format!("server:\n  http: {url}\n{own}"), HOST, "s.mcproof.yaml:2:", &format!("--allow-host 127.0.0.1:{}", trap.port));
    check(
        &format!("vars:\n  a: \"${{env.LEAK}}\"\nserver: {{ http: \"{url}\" }}\n{own}"),
        VARIABLE,
        "s.mcproof.yaml:2:",
        "--allow-env LEAK",
    );
    check(&format!("include: [../secret]\nserver: {{ http: \"{url}\" }}\n{own}"), PATH, "s.mcproof.yaml:1:", "--allow-path");
    check(&format!("audit: ../owned\nserver: {{ http: \"{url}\" }}\n{own}"), PATH, "s.mcproof.yaml:1:", "--allow-path");
    assert_eq!(trap.visits(), 0);

    // What is typed is the user's; what the suite wants besides is not.
    checkout.write("s.mcproof.yaml", &format!("server: {{ stdio: touch owned }}\n{own}"));
    let demo = ["test", "--restricted", "--", MCPROOF, "demo", "shop"];
    let output = checkout.run(&demo);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    // And what is allowed is done.
    checkout.write("s.mcproof.yaml", &format!("server: {{ stdio: mcproof demo shop }}\n{own}"));
    let output = checkout.run(&["test", "--restricted", "--allow-command", "mcproof demo *"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    checkout.write("s.mcproof.yaml", &format!("server: {{ http: {{ command: \"mcproof demo shop --http --port ${{port}}\", url: \"http://127.0.0.1:${{port}}/mcp\" }} }}\n{own}"));
    let output = checkout.run(&["test", "--restricted", "--allow-command", "mcproof demo *"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn links_in_a_checkout_lead_nowhere() {
    let checkout = Checkout::new();
    let secret = checkout.outer.path().join("secret");
    symlink(&secret, checkout.path().join("link.mcproof.yaml")).unwrap();
    checkout.refused(&["test", "--restricted"], PATH, "link.mcproof.yaml", "--allow-path");
    checkout.refused(&["test", "--restricted", "link.mcproof.yaml"], PATH, "link.mcproof.yaml", "--allow-path");
    symlink(checkout.outer.path(), checkout.path().join("suites")).unwrap();
    checkout.refused(&["test", "--restricted", "suites"], PATH, "suites", "--allow-path");
    // Snapshots are read, and written beside the suite.
    checkout
        .write("s.mcproof.yaml", "server: { stdio: mcproof demo shop }\ntests: [{ name: a, steps: [{ tools: true, snapshot: true }] }]\n");
    symlink(checkout.outer.path(), checkout.path().join("s.snapshots")).unwrap();
    let snapshots = ["test", "--restricted", "--update-snapshots", "--allow-command", "mcproof *", "s.mcproof.yaml"];
    checkout.refused(&snapshots, PATH, "s.mcproof.yaml:2:", "--allow-path");
    assert_eq!(std::fs::read_dir(checkout.outer.path()).unwrap().count(), 2);
    // Configuration.
    symlink(&secret, checkout.path().join(".mcp.json")).unwrap();
    checkout.refused(&["tools", "--restricted"], PATH, ".mcp.json", "--allow-path");
}

#[test]
fn no_output_is_written_through_a_link() {
    let checkout = Checkout::new();
    let outside = checkout.outer.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let kept = outside.join("s-p-stdio.mcptrace");
    let suite = |available: u8| {
        let step = format!("{{ call: check_inventory, with: {{ product_id: PROD-123 }}, expect: {{ available: {available} }} }}");
        checkout.write("s.mcproof.yaml", &format!("server: {{ stdio: x }}\ntests: [{{ name: p, steps: [{step}] }}]\n"));
    };
    let server = ["--", MCPROOF, "demo", "shop"];
    let refused = |flags: &[&str], link: &str| {
        std::fs::write(&kept, "keep").unwrap();
        checkout.refused(&[flags, &server].concat(), PATH, link, "--allow-path");
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "keep", "{flags:?}");
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1, "{flags:?}");
    };
    let html = format!("html={}", checkout.path().join("reports/a.html").display());
    symlink("../outside", checkout.path().join("reports")).unwrap();
    symlink("../outside", checkout.path().join("mcproof-traces")).unwrap();
    for available in [2, 10] {
        suite(available);
        for flags in [
            &["--reporter", "junit=reports/a.xml"][..],
            &["--reporter", "json=reports/deeper/a.json"],
            &["--reporter", html.as_str()],
            &["--reporter", "tap=../checkout/reports/a.tap"],
            &["--audit", "reports/a.jsonl"],
            &["--trace", "reports"],
            &["--trace", "on-failure"],
        ] {
            let link = if flags[1] == "on-failure" { "mcproof-traces" } else { "reports" };
            refused(&[&["test", "--restricted"][..], flags].concat(), link);
        }
    }
    for flags in [
        &["check", "--restricted", "--reporter", "sarif=reports/a.sarif"][..],
        &["check", "--restricted", "--trace", "reports/a.mcptrace"],
        &["tools", "--restricted", "--trace", "reports/a.mcptrace"],
        &["tools", "--restricted", "--output", "reports/a.json"],
        &["probe", "--restricted", "--trace", "reports"],
    ] {
        refused(flags, "reports");
    }
    // A file of the folder may be a link, too; in CI, the folder is the default.
    std::fs::remove_file(checkout.path().join("mcproof-traces")).unwrap();
    std::fs::create_dir(checkout.path().join("mcproof-traces")).unwrap();
    symlink(&kept, checkout.path().join("mcproof-traces/s-p-stdio.mcptrace")).unwrap();
    refused(&["test", "--restricted", "--trace", "on"], "mcproof-traces/s-p-stdio.mcptrace");
    // What the user allows, what lies elsewhere by the command line alone, and what is not there yet is written.
    let allowed = |flags: &[&str], file: &Path| {
        let output = checkout.run(&[&["test", "--restricted", "--trace", "off"][..], flags, &server].concat());
        assert_eq!(output.status.code(), Some(0), "{flags:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(file.exists(), "{flags:?}");
    };
    allowed(&["--reporter", "junit=reports/a.xml", "--allow-path", "../outside"], &outside.join("a.xml"));
    allowed(&["--reporter", "junit=../outside/b.xml"], &outside.join("b.xml"));
    allowed(&["--reporter", "junit=new/folder/c.xml"], &checkout.path().join("new/folder/c.xml"));
}

#[test]
fn a_review_stays_in_the_folder() {
    let checkout = Checkout::new();
    std::fs::write(checkout.outer.path().join("secret.json"), "\"TOP-SECRET\"").unwrap();
    let folder = checkout.path().join("s.snapshots");
    let fresh = |suite: &str| {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        checkout.write("s.mcproof.yaml", suite);
    };
    let own = "server: { stdio: touch owned }\ntests: [{ name: a, steps: [{ tools: true, snapshot: true }] }]\n";
    fresh(own);
    // Nothing is started for a review, and what lies in the folder is reviewed.
    std::fs::write(folder.join("a-1.json.new"), "1").unwrap();
    let accepted = checkout.run(&["review", "--restricted", "--accept"]);
    assert_eq!(accepted.status.code(), Some(0), "{}", String::from_utf8_lossy(&accepted.stderr));
    assert!(folder.join("a-1.json").exists());
    // What waits, what it would replace, the folder itself and the suite may be links.
    let check = |links: &[(&str, &str)]| {
        fresh(own);
        std::fs::write(folder.join("a-1.json.new"), "1").unwrap();
        for (link, to) in links {
            let link = checkout.path().join(link);
            let _ = std::fs::remove_file(&link);
            let _ = std::fs::remove_dir_all(&link);
            symlink(checkout.outer.path().join(to), link).unwrap();
        }
        for arguments in
            [&["review", "--restricted"][..], &["review", "--restricted", "--accept"], &["review", "--restricted", "s.mcproof.yaml"]]
        {
            checkout.refused(arguments, PATH, "s.", "--allow-path");
        }
        let stays = std::fs::read_to_string(checkout.outer.path().join("secret.json")).unwrap();
        assert_eq!(stays, "\"TOP-SECRET\"");
        for (link, _) in links {
            std::fs::remove_file(checkout.path().join(link)).unwrap();
        }
    };
    check(&[("s.snapshots/a-1.json.new", "secret.json")]);
    check(&[("s.snapshots/a-1.json", "secret.json")]);
    check(&[("s.snapshots", "")]);
    check(&[("s.mcproof.yaml", "secret")]);
}

#[test]
fn where_nothing_is_restricted_the_flag_is_refused() {
    let checkout = Checkout::new();
    checkout.write("watch.yaml", "targets: [{ name: a, command: touch owned }]\n");
    for arguments in [
        &["watch", "--restricted", "watch.yaml", "--check"][..],
        &["watch", "watch.yaml", "--once", "--restricted"],
        &["watch", "status", "--restricted", "watch.yaml"],
        &["watch", "test-alert", "watch.yaml", "--restricted"],
        &["watch", "watch.yaml", "--check", "--allow-command", "x"],
        &["drive", "--restricted"],
        &["drive", "--allow-env", "X"],
    ] {
        checkout.refused(arguments, "unexpected argument", "is never restricted", "a sandbox without secrets");
    }
}

#[test]
fn a_strangers_configuration_and_lock_start_nothing() {
    let (checkout, trap) = (Checkout::new(), Trap::set());
    let verbs: [&[&str]; 7] = [&["check"], &["lock"], &["init"], &["probe"], &["tools"], &["hash"], &["call", "--server", "a", "x"]];
    for verb in verbs {
        let check = |entry: &Value, code: &str, hint: &str| {
            checkout.write(".mcp.json", &format!("{{\n\"mcpServers\": {{\n  \"a\": {entry}\n}} }}\n"));
            checkout.refused(&[verb, &["--restricted"]].concat(), code, ".mcp.json:3:", hint);
            checkout.refused(&[verb, &["--restricted", "--config", ".mcp.json"]].concat(), code, ".mcp.json:3:", hint);
        };
        check(&json!({ "command": "touch", "args": ["owned"] }), COMMAND, "--allow-command 'touch owned'");
        check(&json!({ "url": format!("http://127.0.0.1:{}/mcp", trap.port) }), HOST, "--allow-host 127.0.0.1:");
        check(&json!({ "url": "http://localhost/${LEAK}" }), VARIABLE, "--allow-env LEAK");
        check(&json!({ "url": "http://localhost/${env:LEAK:-x}" }), VARIABLE, "--allow-env LEAK");
    }
    let check = |target: &Value, code: &str, hint: &str| {
        checkout.write("mcproof.lock", "");
        std::fs::remove_file(checkout.path().join("mcproof.lock")).unwrap();
        let written = checkout.run(&["lock", "--", MCPROOF, "demo", "shop"]);
        assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
        let text = std::fs::read_to_string(checkout.path().join("mcproof.lock")).unwrap();
        let mut lock: Value = serde_json::from_str(&text).unwrap();
        lock["target"] = target.clone();
        checkout.write("mcproof.lock", &serde_json::to_string_pretty(&lock).unwrap());
        checkout.refused(&["lock", "--verify", "--restricted"], code, "mcproof.lock:", hint);
    };
    check(&json!({ "command": ["touch", "owned"] }), COMMAND, "--allow-command 'touch owned'");
    check(&json!({ "url": format!("http://127.0.0.1:{}/mcp", trap.port) }), HOST, "--allow-host 127.0.0.1:");
    check(&json!({ "url": "http://localhost/mcp", "variables": ["LEAK"] }), VARIABLE, "--allow-env LEAK");
    assert_eq!(trap.visits(), 0);
}

/// A server that sends a client elsewhere, with its answers and its authorization.
fn tempter(elsewhere: u16) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || tempt(stream, elsewhere));
        }
    });
    url
}

fn tempt(mut stream: TcpStream, elsewhere: u16) -> Option<()> {
    let mut line = String::new();
    BufReader::new(stream.try_clone().ok()?).read_line(&mut line).ok()?;
    let there = format!("http://127.0.0.1:{elsewhere}");
    let answer = match line.split(' ').nth(1)? {
        "/redirect" => format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {there}/mcp\r\ncontent-length: 0\r\n\r\n"),
        "/sse" => format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: endpoint\ndata: {there}/messages\n\n"),
        _ => format!(
            "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer resource_metadata=\"{there}/metadata\"\r\ncontent-length: 0\r\n\r\n"
        ),
    };
    stream.write_all(answer.as_bytes()).ok()
}

#[test]
fn no_answer_leads_elsewhere() {
    let (checkout, trap) = (Checkout::new(), Trap::set());
    let server = tempter(trap.port);
    let host = server.trim_start_matches("http://");
    for (transport, path) in [("http", "redirect"), ("sse", "sse"), ("http", "auth")] {
        let auth = if path == "auth" { ", auth: { client_id: a, client_secret: b }" } else { "" };
        let suite = format!(
            "server: {{ {transport}: {{ url: \"{server}/{path}\"{auth} }} }}\ntests: [{{ name: a, steps: [{{ http: \"//127.0.0.1:{}/x\" }}] }}]\n",
            trap.port
        );
        checkout.write("s.mcproof.yaml", &suite);
        let common = ["test", "--restricted", "--allow-host", host, "--timeout", "2s", "--connect-timeout", "2s"];
        let output = checkout.run(&common);
        assert!(matches!(output.status.code(), Some(1..=3)), "{}", String::from_utf8_lossy(&output.stdout));
        assert_eq!(trap.visits(), 0, "{path}: {}", String::from_utf8_lossy(&output.stdout));
    }
    // The same for whoever asks by hand.
    for arguments in [["tools", "--restricted", "--transport=sse", "/sse"], ["tools", "--restricted", "--transport=http", "/redirect"]] {
        let url = format!("{server}{}", arguments[3]);
        checkout.run(&[arguments[0], arguments[1], arguments[2], "--connect-timeout=2s", &url]);
        assert_eq!(trap.visits(), 0, "{arguments:?}");
    }
    // Without the flag, metadata is fetched from where the server says: the trap works.
    let output = checkout.run(&["test", "--timeout", "2s", "--connect-timeout", "2s"]);
    assert!(trap.visits() > 0, "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_port_that_a_server_names_is_its_own() {
    let (checkout, trap) = (Checkout::new(), Trap::set());
    for url in ["http://127.0.0.1:${port}/admin", "http://localhost:${port}/mcp"] {
        let line = format!("echo database at localhost:{}; exec sleep 20", trap.port);
        let server = format!("command: [sh, -c, '{line}'], port_from: 'localhost:(\\d+)', url: \"{url}\"");
        let step = "{ http: { method: POST, path: /admin/delete, body: evil } }";
        checkout.write("s.mcproof.yaml", &format!("server: {{ http: {{ {server} }} }}\ntests: [{{ name: a, steps: [{step}] }}]\n"));
        for flags in [&["--restricted", "--allow-command", "sh -c *"][..], &[]] {
            let output = checkout.run(&[&["test", "--connect-timeout", "2s"][..], flags].concat());
            let told = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.code() != Some(0) && told.contains("accepts connections"), "{flags:?}: {told}");
            assert_eq!(trap.visits(), 0, "{flags:?}: {told}");
        }
    }
    // Its own port is found in a line, and nothing else of this machine is let in by that.
    let server = "command: [mcproof, demo, shop, --http, --port, \"0\"], port_from: ':(\\d+)', url: \"http://127.0.0.1:${port}/mcp\"";
    let steps = format!("[ping, {{ http: \"//127.0.0.1:{}/x\" }}]", trap.port);
    for (steps, code) in [("[ping]", 0), (steps.as_str(), 1)] {
        checkout.write("s.mcproof.yaml", &format!("server: {{ http: {{ {server} }} }}\ntests: [{{ name: a, steps: {steps} }}]\n"));
        let output = checkout.run(&["test", "--restricted", "--allow-command", "mcproof demo *"]);
        let told = String::from_utf8_lossy(&output.stdout);
        assert_eq!((output.status.code(), trap.visits()), (Some(code), 0), "{steps}: {told}{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn what_is_started_knows_no_secret() {
    let checkout = Checkout::new();
    checkout.write(
        "s.mcproof.yaml",
        "server: { stdio: mcproof demo shop }\ntests: [{ name: a, steps: [{ run: [sh, -c, 'env; env >&2'], expect: { code: 0, stdout: { $not: { $regex: TOP-SECRET } } } }] }]\n",
    );
    let output = checkout.run(&["test", "--restricted", "--allow-command", "mcproof demo *", "--allow-command", "sh -c 'env; env >&2'"]);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{told}{}", String::from_utf8_lossy(&output.stderr));
    let output = checkout.run(&["test", "--allow-command", "x"]);
    assert_eq!(output.status.code(), Some(2), "--allow-command alone would look as if it restricted something");
}

/// One call of a tool of `mcproof mcp`.
fn asked(checkout: &Checkout, flags: &[&str], tool: &str, arguments: &Value) -> String {
    let mut command = Command::new(MCPROOF);
    command.arg("mcp").args(flags).current_dir(checkout.path()).env("XDG_STATE_HOME", "/nowhere").env("LEAK", "TOP-SECRET");
    let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    let client = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "agent", "version": "1" } });
    for message in [
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": arguments } }),
    ] {
        writeln!(input, "{message}").unwrap();
    }
    let lines = BufReader::new(server.stdout.take().unwrap()).lines().map_while(Result::ok);
    let answers = lines.map(|line| serde_json::from_str::<Value>(&line).unwrap());
    let answer = answers.into_iter().find(|message| message["id"] == 1).unwrap();
    drop(input);
    server.wait().unwrap();
    let text = answer["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(!text.contains("TOP-SECRET") && !checkout.path().join("owned").exists(), "{text}");
    text
}

#[test]
fn an_agent_is_kept_to_what_is_allowed() {
    let checkout = Checkout::new();
    let shop = format!("{MCPROOF} demo shop");
    let pattern = format!("{MCPROOF} demo *");
    let limited = ["--folder", ".", "--allow-command", pattern.as_str()];
    let check = |flags: &[&str], tool: &str, arguments: Value, said: &str| {
        let told = asked(&checkout, flags, tool, &arguments);
        assert!(told.contains(said), "{tool} {arguments}: {said:?} is not in\n{told}");
    };
    let outside = checkout.outer.path().to_str().unwrap();
    check(&limited, "list", json!({ "command": shop }), "exit code 0");
    check(&limited, "list", json!({ "command": "touch owned" }), "is not allowed");
    check(&limited, "check", json!({ "command": "sh -c 'touch owned'" }), "is not allowed");
    check(&limited, "diff", json!({ "old": "touch owned", "new": "touch owned" }), "is not allowed");
    check(&limited, "list", json!({ "command": shop, "env": { "LD_PRELOAD": "x" } }), "--allow-env LD_PRELOAD");
    check(&limited, "list", json!({ "command": shop, "cwd": outside }), "--folder");
    check(&limited, "test", json!({ "paths": [outside] }), "--folder");
    check(&limited, "diff", json!({ "old": format!("{outside}/secret"), "new": shop }), "--folder");
    check(&["--no-spawn"], "list", json!({ "command": shop }), "--no-spawn");
    // What lies in the folder asks for it.
    checkout.write("s.mcproof.yaml", "server: { stdio: touch owned }\ntests: [{ name: a, steps: [ping] }]\n");
    checkout.write(".mcp.json", &json!({ "mcpServers": { "a": { "command": "touch", "args": ["owned"] } } }).to_string());
    check(&limited, "test", json!({}), COMMAND);
    check(&["--no-spawn"], "test", json!({}), COMMAND);
    check(&limited, "list", json!({ "server": "a" }), COMMAND);
    check(&limited, "probe", json!({}), COMMAND);
    check(&limited, "diff", json!({ "old": "a", "new": shop }), COMMAND);
    checkout.write(
        "s.mcproof.yaml",
        "vars: { a: \"${env.LEAK}\" }\nserver: { stdio: mcproof demo shop }\ntests: [{ name: a, steps: [ping] }]\n",
    );
    check(&limited, "test", json!({}), VARIABLE);
}

#[test]
fn the_guide_names_each_flag() {
    let guide = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/untrusted.md")).unwrap();
    for (verb, flags) in [
        ("test", ["--restricted", "--allow-command", "--allow-env", "--allow-host", "--allow-path"]),
        ("check", ["--restricted", "--allow-command", "--allow-env", "--allow-host", "--allow-path"]),
        ("mcp", ["--folder", "--allow-command", "--allow-env", "--no-spawn", "--folder"]),
    ] {
        let help = Command::new(MCPROOF).args([verb, "--help"]).output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        for flag in flags {
            assert!(help.contains(flag) && guide.contains(flag), "{verb} {flag}");
        }
    }
}
