//! The real binary against a server behind TLS, whose certificates are made when the test runs.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod heard;
mod secure;

use secure::serve;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");

fn run(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(MCPROOF);
    // Whatever is stored by those who run this is their own.
    command.env("XDG_STATE_HOME", "/nowhere");
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
        command.env_remove(name).env_remove(name.to_ascii_uppercase());
    }
    command.args(arguments).envs(variables.iter().copied()).current_dir(folder).output().unwrap()
}

#[track_caller]
fn check(found: &Output, code: i32, stdout: &str, stderr: &str) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&found.stdout), text(&found.stderr));
    assert!(found.status.code() == Some(code) && out.contains(stdout) && err.contains(stderr), "{}\n{out}\n{err}", found.status);
}

#[test]
fn an_https_server_is_reached_when_it_is_trusted_and_only_then() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("https://localhost:{}/mcp", serve(folder.path()));
    let run = |arguments: &[&str]| run(folder.path(), &[&["tools", &url], arguments].concat(), &[]);
    check(&run(&["--cacert", "ca.pem"]), 0, r#""name": "echo""#, "");
    check(&run(&[]), 3, "", "is from an authority that this machine does not trust");
    check(&run(&[]), 3, "", "--cacert sets the CA to trust");
    check(&run(&["--insecure"]), 0, r#""name": "echo""#, "warning: --insecure: certificates are not verified");
    check(&run(&["--cacert", "ca.pem", "--cert", "ca.pem"]), 2, "", "pass the private key with --key FILE");
}

#[test]
fn a_suite_reaches_an_https_server() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("https://localhost:{}/mcp", serve(folder.path()));
    let suite = format!("server: {{ http: {{ url: \"{url}\" }} }}\ntests:\n  - name: one tool\n    steps:\n      - tools: [echo]\n");
    std::fs::write(folder.path().join("one.mcproof.yaml"), suite).unwrap();
    check(&run(folder.path(), &["test", "--cacert", "ca.pem"], &[]), 0, "", "");
    check(&run(folder.path(), &["test"], &[]), 3, "is from an authority that this machine does not trust", "");
}

#[test]
fn a_suite_says_itself_whom_it_trusts() {
    let folder = tempfile::tempdir().unwrap();
    let port = serve(folder.path());
    let url = format!("https://localhost:{port}/mcp");
    let test = |keys: &str, arguments: &[&str]| {
        let case = |name: &str| format!("  - name: {name}\n    steps:\n      - tools: [echo]\n");
        let suite = format!("server:\n  http: {{ url: \"{url}\", {keys} }}\ntests:\n{}{}", case("one"), case("two"));
        std::fs::write(folder.path().join("one.mcproof.yaml"), suite).unwrap();
        run(folder.path(), &[&["test"], arguments].concat(), &[("HTTPS_PROXY", "http://127.0.0.1:1")])
    };
    // Paths begin at the suite, wherever the command is run.
    let elsewhere = tempfile::tempdir().unwrap();
    check(&test("tls: { ca: ca.pem }", &[]), 0, "2 passed", "");
    let there = run(elsewhere.path(), &["test", folder.path().to_str().unwrap()], &[]);
    check(&there, 0, "2 passed", "");
    check(&test("tls: { cert: ca.pem }", &[]), 2, "", "there is no PEM private key in it");
    check(&test("", &[]), 3, "`tls: { ca: … }` sets the CA to trust", "");
    let told = test("tls: { insecure: true }", &["--json"]);
    check(&told, 0, "", "");
    let events = String::from_utf8(told.stdout).unwrap();
    let warned: Vec<&str> = events.lines().filter(|event| event.contains(r#""code":"insecure","severity":"warning""#)).collect();
    assert_eq!(warned.len(), 1, "{events}");
    assert!(warned[0].contains(r#""event":"notice""#), "{}", warned[0]);
    check(&test("tls: { insecure: true }", &[]), 0, "certificates are not verified, so that anybody may pass for this server", "");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let proxied = format!("tls: {{ ca: ca.pem }}, proxy: \"http://{closed}\"");
    check(&test(&proxied, &[]), 3, &format!("connection to the proxy {closed} refused"), "");
    check(&test(&proxied, &["--no-proxy"]), 0, "2 passed", "");
    check(&test("tls: { ca: ca.pem }, proxy: none", &[]), 0, "2 passed", "");
    check(&test("tls: { ca: ca.pem }, limits: { body: 100 }", &[]), 3, "the body is larger than 100 bytes", "");
    check(&test("tls: { ca: ca.pem }, limits: { body: 100 }", &["--max-body", "1M"]), 0, "2 passed", "");
}

#[test]
fn proxies_of_the_environment_are_for_the_world_outside() {
    let folder = tempfile::tempdir().unwrap();
    let port = serve(folder.path());
    let url = format!("https://localhost:{port}/mcp");
    // Nothing listens there.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let proxy = format!("http://{closed}");
    let variables = [("HTTPS_PROXY", proxy.as_str())];
    check(&run(folder.path(), &["tools", &url, "--cacert", "ca.pem"], &variables), 0, "echo", "");
    let refused = format!("connection to the proxy {closed} refused");
    check(&run(folder.path(), &["tools", "https://server.example/"], &variables), 3, "", &refused);
    check(&run(folder.path(), &["tools", &url, "--cacert", "ca.pem", "--proxy", &proxy], &[]), 3, "", &refused);
    let socks = [("ALL_PROXY", "socks5://u:hunter2@h:1")];
    let found = run(folder.path(), &["tools", "https://server.example/"], &socks);
    check(&found, 2, "", "the proxy cannot be used: `socks5://` proxies are not supported");
    assert!(!String::from_utf8_lossy(&found.stderr).contains("hunter2"));
}
