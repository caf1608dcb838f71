//! `mcproof probe`: the real binary against servers that work, that come late, that never come, and behind TLS.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "certificates are valid from now on")]

mod heard;
mod secure;

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Ran {
    fn report(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}{}", self.stdout, self.stderr))
    }

    fn phases(&self) -> Vec<String> {
        let report = self.report();
        report["phases"].as_array().unwrap().iter().map(|phase| phase["phase"].as_str().unwrap().to_owned()).collect()
    }
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(MCPROOF);
    command.env("XDG_STATE_HOME", "/nowhere").env("NO_PROXY", "*").arg("probe").args(arguments).current_dir(folder);
    command
}

fn probe(arguments: &[&str]) -> Ran {
    probe_in(Path::new("."), arguments)
}

fn probe_in(folder: &Path, arguments: &[&str]) -> Ran {
    let output = command(folder, arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// A demo shop that listens, until it is dropped.
struct Shop {
    process: Child,
    _stderr: BufReader<ChildStderr>,
}

impl Shop {
    fn at(port: u16) -> Self {
        let mut process = Command::new(MCPROOF)
            .args(["demo", "shop", "--http", "--port", &port.to_string()])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(process.stderr.take().unwrap());
        // It says where it listens once it does.
        stderr.read_line(&mut String::new()).unwrap();
        Self { process, _stderr: stderr }
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_command_is_probed_in_one_line() {
    let ran = probe(&["--", MCPROOF, "demo", "shop"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
    assert_eq!(ran.stdout.lines().count(), 1);
    for part in [
        "healthy: ",
        ", stdio, modern era, 2026-07-28, ",
        " tools, sha256:",
        " for modern/minimal, ",
        " ms (spawn ",
        ", first byte ",
        ", handshake ",
        ", list ",
    ] {
        assert!(ran.stdout.contains(part), "{part:?} is not in {}", ran.stdout);
    }
}

#[test]
fn the_document_keeps_its_schema_and_has_what_was_reached() {
    let schema = Command::new(MCPROOF).args(["schema", "probe"]).output().unwrap();
    let schema = jsonschema::validator_for(&serde_json::from_slice::<Value>(&schema.stdout).unwrap()).unwrap();
    let check = |arguments: &[&str], code: i32, verdict: &str, phases: &[&str]| {
        let ran = probe(&[&["--json"], arguments].concat());
        let report = ran.report();
        assert_eq!((ran.code, report["verdict"].as_str()), (Some(code), Some(verdict)), "{report:#}");
        assert_eq!(ran.phases(), phases, "{arguments:?}");
        assert!(schema.is_valid(&report), "{report:#}");
        let sum: f64 = report["phases"].as_array().unwrap().iter().map(|phase| phase["duration_ms"].as_f64().unwrap()).sum();
        assert!(sum <= report["duration_ms"].as_f64().unwrap() + 0.1, "{report:#}");
    };
    let port = mcproof_testkit::free_port();
    let (closed, by_name) = (format!("http://127.0.0.1:{port}/mcp"), format!("http://localhost:{port}/mcp"));
    check(&[&closed], 3, "unreachable", &[]);
    check(&[&by_name], 3, "unreachable", &["dns"]);
    let shop = Shop::at(port);
    check(&[&closed], 0, "healthy", &["connect", "first-byte", "handshake", "list"]);
    check(&[&by_name], 0, "healthy", &["dns", "connect", "first-byte", "handshake", "list"]);
    check(&[&format!("http://127.0.0.1:{port}/nowhere")], 3, "unhealthy", &["connect", "first-byte"]);
    drop(shop);
    check(&["--", MCPROOF, "demo", "shop"], 0, "healthy", &["spawn", "first-byte", "handshake", "list"]);
    check(&["--connect-timeout", "300ms", "--", "sleep", "60"], 3, "unhealthy", &["spawn"]);
    let started =
        ["http://127.0.0.1:${port}/mcp", "-e", "PORT=${port}", "--", "sh", "-c", "exec \"$0\" demo shop --http --port $PORT", MCPROOF];
    check(&started, 0, "healthy", &["spawn", "listen", "connect", "first-byte", "handshake", "list"]);
    check(&["--", "sh", "-c", "exit 3"], 3, "unreachable", &["spawn"]);
    check(&["--", "no-such-program-anywhere"], 3, "unreachable", &[]);
}

#[test]
fn the_wait_for_a_server_that_ignores_discover_is_no_part_of_its_latency() {
    let server = |discover: &str| {
        format!(
            r#"while read -r line; do id=${{line#*'"id":'}}; id=${{id%%[!0-9]*}}; case "$line" in
            *server/discover*) {discover};;
            *'"initialize"'*) printf '{{"jsonrpc":"2.0","id":%s,"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}}}\n' "$id";;
            *tools/list*) printf '{{"jsonrpc":"2.0","id":%s,"result":{{"tools":[]}}}}\n' "$id";; esac; done"#
        )
    };
    // One reads on, the other is stuck in what it does not know.
    for discover in [":", "exec sleep 60"] {
        let began = Instant::now();
        let ran = probe(&["--json", "--connect-timeout", "16s", "--", "sh", "-c", &server(discover)]);
        let (took, report) = (began.elapsed(), ran.report());
        assert_eq!(
            (ran.code, report["verdict"].as_str(), report["handshake"]["era"].as_str()),
            (Some(0), Some("healthy"), Some("legacy")),
            "{report:#}"
        );
        assert_eq!(ran.phases(), ["spawn", "first-byte", "handshake", "list"]);
        assert!(report["duration_ms"].as_f64().unwrap() + 1900.0 < took.as_secs_f64() * 1000.0, "{took:?} {report:#}");
    }
}

#[test]
fn a_legacy_session_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let port = mcproof_testkit::free_port();
    let _shop = Shop::at(port);
    let url = format!("http://127.0.0.1:{port}/mcp");
    let ran = probe_in(folder.path(), &[&url, "--era", "legacy", "--trace", "t.json"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let trace: Value = serde_json::from_str(&std::fs::read_to_string(folder.path().join("t.json")).unwrap()).unwrap();
    let methods = trace["frames"].as_array().unwrap().iter().filter_map(|frame| frame["body"]["method"].as_str());
    assert_eq!(methods.filter(|method| *method == "DELETE").count(), 1, "{trace:#}");
}

#[test]
fn a_server_that_comes_late_is_waited_for() {
    let port = mcproof_testkit::free_port();
    let url = format!("http://127.0.0.1:{port}/mcp");
    let mut waiting = command(Path::new("."), &[&url, "--deadline", "5m"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(waiting.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.starts_with("attempt 1: unreachable after ") && line.contains("refused; again in "), "{line}");
    let _shop = Shop::at(port);
    let mut stdout = String::new();
    waiting.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    assert!(stdout.starts_with("healthy: "), "{stdout}");
    assert_eq!(waiting.wait().unwrap().code(), Some(0));
}

#[test]
fn waiting_has_an_end_and_is_not_done_in_vain() {
    let url = format!("http://127.0.0.1:{}/mcp", mcproof_testkit::free_port());
    let began = Instant::now();
    let ran = probe(&[&url, "--deadline", "1500ms"]);
    // The last attempt is made when all the time has passed, not when the next delay would be too long for it.
    assert!(began.elapsed() >= Duration::from_millis(1500), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("attempt 1: ") && ran.stdout.starts_with("unreachable: "), "{}{}", ran.stdout, ran.stderr);
    let ran = probe(&["--retry", "--", "no-such-program-anywhere"]);
    assert_eq!(ran.code, Some(3));
    assert!(!ran.stderr.contains("attempt"), "{}", ran.stderr);
}

#[test]
fn a_lock_says_what_the_server_has_to_promise() {
    let folder = tempfile::tempdir().unwrap();
    let mcproof = |arguments: &[&str]| {
        let output = Command::new(MCPROOF).args(arguments).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let shop = ["--", MCPROOF, "demo", "shop"];
    mcproof(&[&["lock"], &shop[..]].concat());
    let hash = mcproof(&[&["hash"], &shop[..]].concat());
    let probe = |arguments: &[&str], server: &[&str]| probe_in(folder.path(), &[&["--json"], arguments, server].concat());
    let lock = ["--lock", "mcproof.lock"];
    for (era, key) in [("auto", "modern/full"), ("legacy", "legacy/full")] {
        let ran = probe(&["--lock", "mcproof.lock", "--era", era], &shop);
        let contract = &ran.report()["contract"];
        assert_eq!((ran.code, contract["key"].as_str()), (Some(0), Some(key)), "{}{}", ran.stdout, ran.stderr);
        assert_eq!((contract["tools"].as_str(), &contract["tools"]), (Some(hash.trim_end()), &contract["locked"]));
    }
    let without = probe(&[], &shop).report();
    assert_eq!((without["contract"]["key"].as_str(), &without["contract"]["locked"]), (Some("modern/minimal"), &Value::Null));
    let ran = probe(&lock, &["--", MCPROOF, "demo", "tracker"]);
    let report = ran.report();
    assert_eq!((ran.code, report["verdict"].as_str(), report["reason"].as_str()), (Some(1), Some("unhealthy"), Some("contract-changed")));
    assert!(report["contract"]["changes"].as_array().unwrap().len() > 3, "{report:#}");
    assert!(ran.stderr.contains("the contract differs from mcproof.lock: tool `"), "{}", ran.stderr);
    let text = std::fs::read_to_string(folder.path().join("mcproof.lock")).unwrap();
    let mut older: Value = serde_json::from_str(&text).unwrap();
    older["contracts"].as_object_mut().unwrap().retain(|key, _| key == "legacy/full");
    std::fs::write(folder.path().join("older.lock"), older.to_string()).unwrap();
    let ran = probe(&["--lock", "older.lock", "--era", "modern"], &shop);
    assert_eq!(ran.code, Some(2), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("older.lock has no contract for this transport and era"), "{}", ran.stderr);
    std::fs::write(folder.path().join("broken.lock"), "{").unwrap();
    assert_eq!(probe(&["--lock", "broken.lock"], &shop).code, Some(2));
    assert_eq!(probe(&["--lock", "missing.lock"], &shop).code, Some(2));
}

#[test]
fn the_days_of_a_certificate_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let days = |days: u64| SystemTime::now() + Duration::from_secs(days * 86_400 + 3_600);
    let port = secure::serve_with(folder.path(), |params| {
        (params.not_before, params.not_after) = (SystemTime::now().into(), days(20).into());
    });
    let url = format!("https://localhost:{port}/mcp");
    let check = |arguments: &[&str], code: i32, verdict: &str| {
        let ran = probe_in(folder.path(), &[&[&url, "--json"], arguments].concat());
        let report = ran.report();
        assert_eq!((ran.code, report["verdict"].as_str()), (Some(code), Some(verdict)), "{report:#}");
        ran
    };
    let ran = check(&["--cacert", "ca.pem"], 0, "healthy");
    assert_eq!(ran.phases(), ["dns", "connect", "tls", "first-byte", "handshake", "list"]);
    let tls = &ran.report()["tls"];
    assert_eq!((&tls["protocol"], &tls["verified"], &tls["certificate"]["days_left"]), (&"TLS 1.3".into(), &true.into(), &20.into()));
    assert_eq!(tls["certificate"]["issuer"], "CN=test authority");
    check(&["--cacert", "ca.pem", "--min-days", "20"], 0, "healthy");
    let ran = check(&["--cacert", "ca.pem", "--min-days", "21"], 1, "unhealthy");
    assert_eq!(ran.report()["reason"], "certificate-expires");
    assert!(ran.stderr.contains("the certificate of localhost expires in 20 days"), "{}", ran.stderr);
    let ran = check(&["--insecure"], 0, "healthy");
    assert_eq!(ran.report()["tls"]["verified"], false);
    let ran = check(&[], 3, "unreachable");
    assert_eq!(ran.phases(), ["dns", "connect"]);
    let soon = secure::serve_with(folder.path(), |params| {
        (params.not_before, params.not_after) = (SystemTime::now().into(), days(3).into());
    });
    let ran = probe_in(folder.path(), &[&format!("https://localhost:{soon}/mcp"), "--cacert", "ca.pem"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.starts_with("healthy: "), "a certificate that was just made for four days is no news: {}", ran.stdout);
    let ran = probe_in(folder.path(), &["http://127.0.0.1:1/mcp", "--min-days", "3"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
}
