//! Contracts of servers that others wrote, over every transport that they have, and what `lock`, `diff` and `hash` tell when
//! one changes. `cargo xtask peers` installs the servers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod peers;

use peers::{Peer, names, root};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs `mcproof` in a folder.
fn run(folder: &Path, arguments: &[&str]) -> Ran {
    let output = Command::new(MCPROOF).current_dir(folder).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// It ends with this code and says all of this.
fn check(folder: &Path, arguments: &[&str], code: i32, said: &[&str]) -> Ran {
    let ran = run(folder, arguments);
    let all = format!("{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.code, Some(code), "{arguments:?}: {all}");
    for part in said {
        assert!(all.contains(part), "{arguments:?}: {part:?} is not in\n{all}");
    }
    ran
}

fn lock_in(folder: &Path) -> Value {
    lock_of(&folder.join("mcproof.lock"))
}

fn lock_of(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A server that listens, until this is dropped.
struct Listening {
    process: Child,
    url: String,
}

impl Listening {
    fn start(peer: &Peer, transport: &str) -> Self {
        let start = peer.start(transport);
        let port = mcproof_testkit::free_port();
        let filled = |text: &str| text.replace("${port}", &port.to_string());
        let words: Vec<String> = start.command.iter().map(|word| filled(word)).collect();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.envs(start.env.iter().map(|(name, value)| (name, filled(value))));
        let process = command.spawn().unwrap();
        let listening = Self { process, url: filled(&start.url.unwrap()) };
        let deadline = Instant::now() + Duration::from_secs(120);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "{words:?} does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        listening
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Servers that are visited at the same time.
const AT_ONCE: usize = 4;
const PATIENT: [&str; 4] = ["--connect-timeout", "120s", "--timeout", "60s"];

/// What was found of one server.
struct Found {
    name: String,
    contracts: BTreeMap<String, Value>,
    /// Over which transports each kind of client was shown the same.
    transports: BTreeMap<String, Vec<&'static str>>,
}

/// Locks a server over stdio as the fullest and as the plainest client of each era, and verifies it over every transport.
fn locks_and_verifies(name: &str) -> Found {
    let peer = Peer::named(name);
    let folder = tempfile::tempdir().unwrap();
    let start = peer.start("stdio");
    let mut reach: Vec<String> = start.env.iter().flat_map(|(key, value)| ["-e".to_owned(), format!("{key}={value}")]).collect();
    reach.extend(start.cwd.iter().flat_map(|cwd| ["--cwd".to_owned(), cwd.clone()]));
    let reach: Vec<&str> = reach.iter().map(String::as_str).collect();
    let command: Vec<&str> = start.command.iter().map(String::as_str).collect();
    let clients = ["--as", "full,minimal"];
    let lock = [&["lock"], &clients[..], &PATIENT, &reach, &["--"], &command].concat();
    check(folder.path(), &lock, 0, &["wrote mcproof.lock"]);
    let lock = lock_in(folder.path());
    let contracts: BTreeMap<String, Value> = serde_json::from_value(lock["contracts"].clone()).unwrap();
    let eras = peer.0["eras"].as_array().unwrap().iter().map(|era| era.as_str().unwrap());
    let mut keys: Vec<String> = eras.flat_map(|era| ["full", "minimal"].map(|profile| format!("{era}/{profile}"))).collect();
    keys.sort();
    assert_eq!(contracts.keys().collect::<Vec<_>>(), keys.iter().collect::<Vec<_>>(), "{name}");
    let mut transports: BTreeMap<String, Vec<&'static str>> = keys.iter().map(|key| (key.clone(), vec!["stdio"])).collect();
    // The lock knows how to reach the server, but not what was secret in its environment.
    check(folder.path(), &[&["lock", "--verify"], &PATIENT[..], &reach].concat(), 0, &["no changes"]);
    for transport in ["http", "sse"].into_iter().filter(|transport| peer.0[*transport].is_object()) {
        let listening = Listening::start(&peer, transport);
        let ran = run(folder.path(), &[&["hash", "--json"], &clients[..], &[&listening.url], &PATIENT].concat());
        let hashes: BTreeMap<String, Value> = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{name}: {}", ran.stderr));
        for (key, found) in &hashes {
            assert_eq!(found, &contracts[key]["hashes"], "{name} over {transport}, {key}");
            transports.get_mut(key).unwrap().push(transport);
        }
        assert!(hashes.contains_key("legacy/full"), "{name} over {transport}: {hashes:?}");
        let verified = run(folder.path(), &[&["lock", "--verify", &listening.url], &PATIENT[..]].concat());
        // Some live in one era more over stdio than over HTTP, and SSE is of the legacy era alone.
        let is_all = hashes.len() == contracts.len() || transport == "sse";
        assert_eq!(verified.code, Some(i32::from(!is_all)), "{name} over {transport}: {}", verified.stdout);
        if !is_all {
            assert!(verified.stdout.contains("era-removed"), "{name} over {transport}: {}", verified.stdout);
        }
    }
    Found { name: name.to_owned(), contracts, transports }
}

/// A line for each kind of client, with what sets it apart from the fullest one of its era.
fn told(found: &Found) -> String {
    let names = |contract: &Value| -> BTreeSet<String> {
        contract["tools"].as_array().into_iter().flatten().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let line = |(key, contract): (&String, &Value)| {
        let fullest = &found.contracts[&format!("{}/full", key.split_once('/').unwrap().0)];
        let hidden: Vec<String> = names(fullest).difference(&names(contract)).cloned().collect();
        let hidden = if hidden.is_empty() { String::new() } else { format!("  without {}", hidden.join(", ")) };
        let digits = |hash: &str| contract["hashes"][hash].as_str().unwrap()["sha256:".len()..][..12].to_owned();
        let (count, over) = (names(contract).len(), found.transports[key].join(" = "));
        format!("{:<20} {key:<15} {count:>3} tools  tools {}  full {}  {over}{hidden}\n", found.name, digits("tools"), digits("full"))
    };
    found.contracts.iter().map(line).collect()
}

#[test]
fn every_server_has_one_contract_per_kind_of_client_over_all_its_transports() {
    let queue = Mutex::new(names());
    let found = Mutex::new(Vec::new());
    let next = || queue.lock().unwrap().pop();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(name) = next() {
                    let kept = locks_and_verifies(&name);
                    found.lock().unwrap().push(kept);
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    println!("{}", found.iter().map(told).collect::<String>());
    assert!(found.len() >= 10);
    let several = |transports: &Vec<&str>| transports.len() > 1;
    assert!(found.iter().filter(|found| found.transports.values().any(several)).count() >= 4);
    let differs = |era: &str, found: &Found| {
        let hashes = |profile: &str| found.contracts.get(&format!("{era}/{profile}")).map(|contract| contract["hashes"]["tools"].clone());
        hashes("full") != hashes("minimal")
    };
    let of_clients: Vec<&str> = found.iter().filter(|found| differs("legacy", found)).map(|found| found.name.as_str()).collect();
    assert_eq!(of_clients, ["everything"]);
}

#[test]
fn lesser_clients_have_other_contracts() {
    let folder = tempfile::tempdir().unwrap();
    let start = Peer::named("everything").start("stdio");
    let command: Vec<&str> = start.command.iter().map(String::as_str).collect();
    check(folder.path(), &[&["lock", "--as", "full,minimal,roots,legacy/sampling", "--"], &command[..]].concat(), 0, &[]);
    let contracts = lock_in(folder.path())["contracts"].clone();
    let count = |key: &str| contracts[key]["tools"].as_array().unwrap().len();
    let keys = ["legacy/full", "legacy/minimal", "legacy/roots", "legacy/sampling"];
    let hashes: BTreeSet<&str> = keys.iter().map(|key| contracts[*key]["hashes"]["tools"].as_str().unwrap()).collect();
    assert_eq!(hashes.len(), 4, "{hashes:?}");
    assert!(count("legacy/full") > count("legacy/roots") && count("legacy/roots") > count("legacy/minimal"));
    let trace = ["--trace", "t.json"];
    check(folder.path(), &[&["tools"], &trace[..], &["--"], &command].concat(), 0, &[]);
    check(folder.path(), &["diff", "mcproof.lock", "t.json", "--deny", "breaking"], 0, &["not compared", "no changes, for legacy/minimal"]);
    // What the fullest client is offered besides is not gone.
    check(folder.path(), &[&["lock", "--output", "full.lock", "--"], &command[..]].concat(), 0, &[]);
    let hidden = ["not compared: `get-roots-list`, `trigger-", "no changes, for legacy/minimal"];
    check(folder.path(), &["diff", "full.lock", "t.json", "--deny", "any"], 0, &hidden);
}

#[test]
fn a_lock_tells_drift_and_is_not_touched_without() {
    let folder = tempfile::tempdir().unwrap();
    let (at, path) = (folder.path(), folder.path().join("mcproof.lock"));
    check(at, &["lock", "--verify"], 2, &["cannot read mcproof.lock", "create it with `mcproof lock TARGET`"]);
    check(at, &["lock", "--", MCPROOF, "demo", "shop"], 0, &["tools", "wrote mcproof.lock"]);
    let before = std::fs::metadata(&path).unwrap();
    check(at, &["lock", "--", MCPROOF, "demo", "shop"], 0, &["is up to date"]);
    check(at, &["lock", "--json", "--", MCPROOF, "demo", "shop"], 2, &["`--json` requires --verify"]);
    let after = std::fs::metadata(&path).unwrap();
    use std::os::unix::fs::MetadataExt as _;
    assert_eq!((before.ino(), before.modified().unwrap()), (after.ino(), after.modified().unwrap()));
    check(at, &["lock", "--verify"], 0, &["no changes"]);
    let ran = check(at, &["lock", "--verify", "--json", "--", MCPROOF, "demo", "tracker"], 1, &["tool-removed"]);
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    validates("diff", &found);
    validates("lock", &lock_in(at));
    let text = std::fs::read_to_string(&path).unwrap();
    // A hand that changes a contract has to change its hash as well.
    std::fs::write(&path, text.replace("create_order", "make_order")).unwrap();
    check(at, &["lock", "--verify"], 2, &["is damaged", "restore it from version control"]);
    check(at, &["lock", "--", MCPROOF, "demo", "shop"], 2, &["is damaged"]);
    std::fs::write(&path, text.replace("\"version\": 1,\n  \"target\"", "\"version\": 99,\n  \"target\"")).unwrap();
    check(at, &["lock", "--verify"], 2, &["was written by a newer mcproof", "update mcproof"]);
    std::fs::write(&path, "not json").unwrap();
    check(at, &["diff", "mcproof.lock", "--", MCPROOF, "demo", "shop"], 2, &["is not valid JSON"]);
}

#[test]
fn a_lock_is_not_overwritten_by_what_breaks_it() {
    let folder = tempfile::tempdir().unwrap();
    let (at, path) = (folder.path(), folder.path().join("mcproof.lock"));
    check(at, &["lock", "--", MCPROOF, "demo", "shop"], 0, &["wrote mcproof.lock"]);
    let written = std::fs::read_to_string(&path).unwrap();
    let broken = ["tool-removed", "mcproof.lock was not modified: the server has breaking changes", "`mcproof lock --update`"];
    check(at, &["lock", "--", MCPROOF, "demo", "tracker"], 1, &broken);
    let fewer = ["mcproof.lock was not modified: it would lose", "legacy/full"];
    check(at, &["lock", "--as", "minimal", "--", MCPROOF, "demo", "shop"], 1, &fewer);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), written);
    check(at, &["lock", "--update", "--", MCPROOF, "demo", "tracker"], 0, &["tool-removed", "wrote mcproof.lock"]);
    assert_ne!(std::fs::read_to_string(&path).unwrap(), written);
    // Nothing of this lock shows over HTTP+SSE: that is no proof that it is kept.
    check(at, &["lock", "--output", "modern.lock", "--era", "modern", "--", MCPROOF, "demo", "shop"], 0, &[]);
    let over_sse = ["http://127.0.0.1:${port}/sse", "--", MCPROOF, "demo", "shop", "--sse", "--port", "${port}"];
    let verify = [&["lock", "--verify", "--output", "modern.lock"], &over_sse[..]].concat();
    check(at, &verify, 3, &["for an HTTP+SSE server, use --transport sse"]);
}

/// What the binary prints is as its own schema says.
fn validates(what: &str, value: &Value) {
    let printed = Command::new(MCPROOF).args(["schema", what]).output().unwrap().stdout;
    let schema: Value = serde_json::from_slice(&printed).unwrap();
    let errors: Vec<String> = jsonschema::validator_for(&schema).unwrap().iter_errors(value).map(|error| error.to_string()).collect();
    assert_eq!(errors, [""; 0], "{what}");
}

#[test]
fn an_era_that_is_silent_today_is_not_called_removed() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let serve = at.join("serve.sh");
    std::fs::write(&serve, format!("exec {MCPROOF} demo shop\n")).unwrap();
    check(at, &["lock", "--", "sh", "serve.sh"], 0, &["modern/full", "wrote mcproof.lock"]);
    let slow = format!(
        "IFS= read -r first\ncase $first in *server/discover*) while read -r more; do :; done; exit;; esac\n\
         {{ printf '%s\\n' \"$first\"; cat; }} | {MCPROOF} demo shop\n"
    );
    std::fs::write(&serve, slow).unwrap();
    check(at, &["lock", "--verify", "--connect-timeout", "4s"], 3, &["no response to `server/discover`"]);
    check(at, &["diff", "mcproof.lock", "--connect-timeout", "4s", "--", "sh", "serve.sh"], 3, &["no response to `server/discover`"]);
}

/// Responds to a list of prompts with an error, if it has the argument `fails`.
const WITH_PROMPTS: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    response = {"jsonrpc": "2.0", "id": message["id"]}
    method = message.get("method")
    if method == "initialize":
        info = {"name": "s", "version": "1"}
        capabilities = {"tools": {}, "prompts": {}}
        response["result"] = {"protocolVersion": message["params"]["protocolVersion"], "serverInfo": info, "capabilities": capabilities}
    elif method == "tools/list":
        response["result"] = {"tools": [{"name": "t", "description": "T.", "inputSchema": {"type": "object"}}]}
    elif method == "prompts/list" and "fails" not in sys.argv:
        response["result"] = {"prompts": [{"name": "p"}]}
    elif method == "prompts/list":
        response["error"] = {"code": -32603, "message": "no database"}
    elif method == "ping":
        response["result"] = {}
    else:
        response["error"] = {"code": -32601, "message": "unknown method"}
    print(json.dumps(response), flush=True)
"#;

/// What the lock of a trace does not know is named; what a server did not return is not green.
#[test]
fn what_a_partial_side_does_not_show_is_told_or_inconclusive() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("s.py"), WITH_PROMPTS).unwrap();
    let sound = ["--", "python3", "s.py"];
    check(at, &[&["tools", "--era", "legacy", "--trace", "t.mcptrace"], &sound[..]].concat(), 0, &[]);
    check(at, &["trace", "export", "t.mcptrace", "--lock", "--output", "part.lock"], 0, &["no client listed them: prompts"]);
    let partial = lock_of(&at.join("part.lock"));
    validates("lock", &partial);
    assert_eq!(partial["contracts"]["legacy/minimal"]["partial"], json!({}));
    let told = ["not compared: revisions: ", "not compared: prompts: not listed in ", "no changes, for legacy/minimal"];
    check(at, &[&["diff", "part.lock"], &sound[..]].concat(), 0, &told);
    check(at, &[&["diff", "t.mcptrace"], &sound[..]].concat(), 0, &told);
    check(at, &[&["lock", "--verify", "--lock", "part.lock"], &sound[..]].concat(), 0, &told);
    check(at, &[&["probe", "--lock", "part.lock"], &sound[..]].concat(), 0, &[]);
    check(at, &[&["lock", "--output", "whole.lock"], &sound[..]].concat(), 0, &[]);
    assert!(lock_of(&at.join("whole.lock"))["contracts"]["legacy/full"].get("partial").is_none());
    // What it knows is judged, and a client that was chosen is no change.
    check(at, &["diff", "part.lock", "--", MCPROOF, "demo", "shop"], 1, &["tool-removed"]);
    let unseen = ["not compared: `modern/full` of ", "no changes, for legacy/full"];
    check(at, &["lock", "--output", "shop.lock", "--", MCPROOF, "demo", "shop"], 0, &[]);
    check(at, &["diff", "shop.lock", "--as", "legacy", "--", MCPROOF, "demo", "shop"], 0, &unseen);
    // A list that fails.
    check(at, &["check", "--only", "lists", "--trace", "failed.json", "--", "python3", "s.py", "fails"], 1, &[]);
    let failed = ["prompts: `prompts/list` failed in failed.json", "the comparison is inconclusive"];
    check(at, &["diff", "whole.lock", "failed.json"], 1, &failed);
    check(at, &["diff", "whole.lock", "failed.json", "--deny", "none", "--json"], 1, &["\"inconclusive\": true", failed[1]]);
    check(at, &[&["diff", "failed.json"], &sound[..]].concat(), 1, &failed);
    check(at, &["lock", "--verify", "--lock", "whole.lock", "--", "python3", "s.py", "fails"], 1, &["no database"]);
}

#[test]
fn credentials_and_what_others_are_offered_stay_where_they_belong() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let secret = ["env", "API_KEY=k-123456", MCPROOF, "demo", "shop"];
    check(at, &[&["lock", "--"], &secret[..]].concat(), 0, &["contains a secret"]);
    assert!(!std::fs::read_to_string(at.join("mcproof.lock")).unwrap().contains("k-123456"));
    check(at, &["lock", "--verify"], 2, &["no server given", "does not record the server"]);
    // A variable is kept by its name.
    check(at, &["lock", "-e", "API_KEY=k-123456", "--", MCPROOF, "demo", "shop"], 0, &[]);
    assert_eq!(lock_in(at)["target"]["variables"], json!(["API_KEY"]));
    assert!(!std::fs::read_to_string(at.join("mcproof.lock")).unwrap().contains("k-123456"));
    check(at, &["lock", "--verify"], 2, &["the variable `API_KEY`", "-e API_KEY="]);
    check(at, &["lock", "--verify", "-e", "API_KEY=other"], 0, &["no changes"]);
    // A server that has to be started, and is reached over HTTP.
    let started = ["http://127.0.0.1:${port}/mcp", "--", MCPROOF, "demo", "shop", "--http", "--port", "${port}"];
    check(at, &[&["lock", "--output", "http.lock"], &started[..]].concat(), 0, &["wrote http.lock"]);
    check(at, &["lock", "--verify", "--output", "http.lock"], 0, &["no changes"]);
    check(at, &["diff", "mcproof.lock", "http.lock"], 0, &["no changes"]);
    // Another identity has contracts of its own in the same file.
    check(at, &["lock", "--identity", "admin", "--as", "minimal", "--", MCPROOF, "demo", "tracker"], 0, &["legacy/minimal/admin"]);
    let keys: Vec<String> = lock_in(at)["contracts"].as_object().unwrap().keys().cloned().collect();
    assert!(keys.iter().any(|key| key == "legacy/full") && keys.iter().any(|key| key == "legacy/minimal/admin"), "{keys:?}");
    check(at, &["lock", "--verify", "--identity", "admin"], 0, &["no changes, for legacy/minimal/admin"]);
    check(at, &["lock", "--verify", "--identity", "nobody"], 2, &["has no matching contract"]);
}

#[test]
fn two_sides_of_any_kind_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (shop, tracker) = (format!("'{MCPROOF}' demo shop"), format!("'{MCPROOF}' demo tracker"));
    check(at, &["diff", "--old", &shop, "--new", &shop, "--deny", "any"], 0, &["no changes"]);
    check(at, &["diff", &shop, &shop], 0, &["no changes"]);
    // As `lock --verify` does, with and without --deny.
    check(at, &["diff", "--old", &shop, "--new", &tracker], 1, &["tool-removed", "tool-added"]);
    check(at, &["diff", "--old", &shop, "--new", &tracker, "--deny", "none"], 0, &["tool-removed", "tool-added"]);
    check(
        at,
        &["diff", "--old", &shop, "--new", &tracker, "--deny", "breaking", "--markdown"],
        1,
        &["### MCP contract:", "| **breaking** |"],
    );
    check(at, &["lock", "--output", "shop.lock", "--", MCPROOF, "demo", "shop"], 0, &[]);
    check(at, &["diff", "shop.lock", "--", MCPROOF, "demo", "shop"], 0, &["no changes"]);
    check(at, &["diff", "shop.lock", "shop.lock", "--json"], 0, &["\"changes\": []"]);
    std::fs::write(at.join(".mcp.json"), json!({ "mcpServers": { "shop": { "command": MCPROOF, "args": ["demo", "shop"] } } }).to_string())
        .unwrap();
    check(at, &["diff", "shop.lock", "shop"], 0, &["no changes"]);
    check(at, &["diff", "shop", "shop.lock"], 0, &["no changes"]);
    // A trace shows what somebody asked.
    check(at, &["tools", "--trace", "t.json", "--", MCPROOF, "demo", "shop"], 0, &[]);
    check(at, &["diff", "shop.lock", "t.json", "--deny", "any"], 0, &["no changes"]);
    // So do the conversations of a check.
    check(at, &["check", "--only", "tools", "--trace", "c.json", "--", MCPROOF, "demo", "shop"], 0, &[]);
    check(at, &["diff", "shop.lock", "c.json", "--deny", "any"], 0, &["no changes"]);
    check(at, &["diff", "c.json", "--deny", "breaking", "--", MCPROOF, "demo", "tracker"], 1, &["tool-removed"]);
    check(at, &["ping", "--trace", "p.json", "--", MCPROOF, "demo", "shop"], 0, &[]);
    check(at, &["diff", "shop.lock", "p.json"], 2, &["trace p.json has no complete list"]);
    check(at, &["diff", "shop.lock"], 2, &["missing side to compare"]);
    check(at, &["diff", "shop.lock", "shop.lock", "--new", "shop.lock"], 2, &["more than two sides"]);
    check(at, &["diff", "--old", "'", "--new", "shop"], 2, &["has an unclosed quote"]);
    check(at, &["diff", "shop.lock", "--as", "fullest", "--", MCPROOF], 2, &["unknown client kind `fullest`; use legacy, modern, full"]);
    check(at, &["lock", "--", "/nowhere/server"], 3, &["/nowhere/server"]);
}

#[test]
fn a_hash_stands_alone() {
    let at = root();
    let hash = |more: &[&str]| {
        let ran = check(&at, &[&["hash"], more, &["--", MCPROOF, "demo", "shop"]].concat(), 0, &[]);
        assert_eq!(ran.stderr, "");
        ran.stdout
    };
    let (tools, full) = (hash(&[]), hash(&["--full"]));
    for line in [&tools, &full] {
        let digits = line.strip_prefix("sha256:").and_then(|line| line.strip_suffix('\n')).unwrap();
        assert!(digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()), "{line}");
    }
    assert_ne!(tools, full);
    let both: BTreeMap<String, Value> = serde_json::from_str(&hash(&["--json"])).unwrap();
    let hashes = both.values().next().unwrap();
    assert_eq!((hashes["tools"].as_str(), hashes["full"].as_str()), (Some(tools.trim()), Some(full.trim())));
    assert!(hash(&["--as", "full,minimal"]).lines().all(|line| line.contains("  legacy/") || line.contains("  modern/")));
}

/// Lists tools that take thousands of values, shifted by its argument, and leaves a mark when it ends.
const LISTED: &str = r#"
import json, sys
shift = int(sys.argv[1])
tools = [{"name": f"t{t}", "inputSchema": {"type": "object", "properties": {"a": {"enum": list(range(shift, shift + 1300))}}}} for t in range(180)]
results = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}},
    "tools/list": {"tools": tools},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = results.get(message["method"])
        answer = {"result": result} if result else {"error": {"code": -32601, "message": "no such method"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
open("ended", "w").close()
"#;

#[test]
fn a_comparison_that_takes_long_ends_when_it_is_told_to() {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    let folder = tempfile::tempdir().unwrap();
    check(folder.path(), &["lock", "--era", "legacy", "--", "python3", "-c", LISTED, "0"], 0, &["wrote "]);
    std::fs::remove_file(folder.path().join("ended")).unwrap();
    let arguments = ["lock", "--verify", "--", "python3", "-c", LISTED, "1"];
    let mut comparing =
        Command::new(MCPROOF).current_dir(folder.path()).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !folder.path().join("ended").exists() {
        assert_eq!(comparing.try_wait().unwrap(), None);
        std::thread::yield_now();
    }
    kill(Pid::from_raw(i32::try_from(comparing.id()).unwrap()), Signal::SIGTERM).unwrap();
    assert_eq!(comparing.wait().unwrap().code(), Some(143));
}
