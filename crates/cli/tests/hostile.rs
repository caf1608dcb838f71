//! Every hostile server of the testkit against the real binary, on every transport on which it makes sense: mcproof ends
//! with the right verdict, stays small, leaves no process behind, and prints nothing that a terminal would obey.
//!
//! One test for each row, so without the usual harness: this program is also the servers (`--peer NAME …`). The table of
//! peaks is written to `target/hostile.txt`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "hostile/measured.rs"]
mod measured;
#[path = "hostile/verbs.rs"]
mod verbs;
#[path = "hostile/verdicts.rs"]
mod verdicts;

use libtest_mimic::{Arguments, Failed, Trial};
use mcproof_testkit::hostile::{self, hostile_servers};
use measured::{Measured, run};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex};
use verdicts::{Expected, VERDICTS};

/// The most that mcproof may ever have had in memory. The program itself, as it is built for tests, is 40 MiB of it; optimized it
/// is less than half of that.
const PEAK: u64 = 120 << 20;

/// Servers of which `check` takes most: it talks to each in many conversations, and judges all of them together.
const CHECKED: [(&str, &str); 11] = [
    ("notification-flood", "stdio"),
    ("notification-flood", "sse"),
    ("large-notifications", "stdio"),
    ("large-unknown-ids", "stdio"),
    ("large-unknown-ids", "sse"),
    ("large-event-names", "sse"),
    ("gzip-bomb-event", "http"),
    ("many-values", "sse"),
    ("many-tools", "stdio"),
    ("endless-message", "stdio"),
    ("stderr-flood", "stdio"),
];

/// Other commands that have the same large list several times.
const USED: [(&str, &str, &str); 2] = [("init", "large-answer", "http"), ("lock", "large-answer", "sse")];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(("--peer", peer)) = words.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        let (peer, transport) = hostile::parse(peer).unwrap();
        return match hostile::run(peer, transport) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    if let Some(("--verbs", only)) = words.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return verbs::table(&verb_rows(), only, PEAK);
    }
    let table = Arc::new(Mutex::new(Vec::new()));
    let rows = hostile_servers().iter().flat_map(|peer| peer.transports.iter().map(|transport| (peer.name, *transport)));
    let mut trials: Vec<Trial> = rows
        .map(|(name, transport)| {
            let table = Arc::clone(&table);
            Trial::test(format!("{name}_over_{transport}"), move || check(name, transport, &table))
        })
        .collect();
    for (name, transport) in CHECKED {
        trials.push(Trial::test(format!("a_check_of_{name}_over_{transport}_stays_small"), move || checked(name, transport)));
    }
    for (verb, name, transport) in USED {
        trials.push(Trial::test(format!("{verb}_of_{name}_over_{transport}_stays_small"), move || used(verb, name, transport)));
    }
    trials.push(Trial::test("every_peer_has_a_verdict_and_every_verdict_a_peer", every_verdict_has_a_peer));
    let mut arguments = Arguments::from_args();
    // Most of the time is spent waiting for deadlines.
    arguments.test_threads.get_or_insert(4);
    let conclusion = libtest_mimic::run(&arguments, trials);
    write_table(&mut table.lock().unwrap());
    conclusion.exit_code()
}

fn verb_rows() -> Vec<verbs::Row> {
    let rows = VERDICTS.iter().flat_map(|row| row.on.iter().map(move |transport| (row, *transport)));
    rows.map(|(row, transport)| verbs::Row { peer: row.peer, transport, sound: row.verdict == "pass" }).collect()
}

fn every_verdict_has_a_peer() -> Result<(), Failed> {
    let mut rows: Vec<_> =
        hostile_servers().iter().flat_map(|peer| peer.transports.iter().map(|transport| (peer.name, *transport))).collect();
    let mut expected: Vec<_> = VERDICTS.iter().flat_map(|row| row.on.iter().map(|transport| (row.peer, *transport))).collect();
    rows.sort_unstable();
    expected.sort_unstable();
    assert_eq!(rows, expected);
    Ok(())
}

fn check(peer: &str, transport: &str, table: &Mutex<Vec<String>>) -> Result<(), Failed> {
    let expected = VERDICTS.iter().find(|row| row.peer == peer && row.on.contains(&transport)).unwrap();
    let judged = tried(peer, transport, &["--json"]);
    let finished = judged.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let outcome = finished.into_iter().find(|event| event["event"] == "test-finished");
    let outcome = outcome.ok_or_else(|| format!("exit code {:?}, ended: {}\n{}", judged.code, judged.ended, judged.stderr))?;
    let mut diagnostics = outcome["diagnostics"].as_array().into_iter().flatten();
    // That a flood was not judged by rules is a warning.
    let first = diagnostics.find(|diagnostic| diagnostic["severity"] == "error").unwrap_or(&Value::Null);
    let (code, said) = (first["code"].as_str().unwrap_or("pass"), first["message"].as_str().unwrap_or_default());
    table.lock().unwrap().push(format!("{peer:<22} {transport:<5}  {code:<22} {:>5.1} MiB", judged.peak as f64 / 1_048_576.0));
    let Expected { verdict, says, .. } = *expected;
    assert_eq!((code, judged.code), (verdict, Some(i32::from(verdict != "pass"))), "{said}\n{}", judged.stderr);
    assert!(said.contains(says), "{says:?} is not in {said:?}");
    check_marks(&judged);

    // The same as a person sees it, once for each peer, and on every transport where it is about that.
    if !peer.starts_with("escapes") && hostile_servers().iter().any(|known| known.name == peer && known.transports[0] != transport) {
        return Ok(());
    }
    let shown = tried(peer, transport, &[]);
    check_marks(&shown);
    let obeyed = |character: &char| (character.is_control() && *character != '\n') || is_bidi(*character);
    let found = shown.stdout.chars().chain(shown.stderr.chars()).find(obeyed);
    assert_eq!(found, None, "{:?}", shown.stdout);
    Ok(())
}

fn is_bidi(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// What holds for each run, whatever its verdict.
fn check_marks(run: &Measured) {
    assert!(run.ended, "mcproof did not end");
    assert!(run.peak < PEAK, "{} MiB resident", run.peak >> 20);
    assert_eq!(run.orphans, Vec::<String>::new());
}

/// `mcproof test` on a suite that asks that peer for its tools.
fn tried(peer: &str, transport: &str, arguments: &[&str]) -> Measured {
    let this = std::env::current_exe().unwrap();
    let mut command = vec![json!(this), json!("--peer"), json!(peer), json!(format!("--{transport}"))];
    let mut server = json!({});
    if transport != "stdio" {
        command.push(json!("${port}"));
        server["url"] = json!("http://127.0.0.1:${port}/");
    }
    server["command"] = json!(command);
    let suite = json!({ "server": { transport: server }, "tests": [{ "name": "a", "steps": [{ "tools": [] }] }] });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hostile.mcproof.yaml");
    std::fs::write(&file, suite.to_string()).unwrap();
    let mut mcproof = Command::new(env!("CARGO_BIN_EXE_mcproof"));
    // What is written by default in CI goes there too.
    mcproof
        .current_dir(folder.path())
        .env("CI", "true")
        .arg("test")
        .arg(&file)
        .args(["--era", "legacy", "--color", "never"])
        .args(arguments);
    mcproof.args(["--timeout", verdicts::timeout(peer)]);
    run(&mut mcproof)
}

/// `mcproof check` of that peer. Only a flood of notifications is no fault.
fn checked(peer: &str, transport: &str) -> Result<(), Failed> {
    let run = started(&["check", "--deadline", "8s"], peer, transport);
    check_marks(&run);
    match (run.code, peer) {
        (Some(1 | 3), _) | (Some(0), "notification-flood") => Ok(()),
        (code, _) => Err(format!("exit code {code:?}\n{}{}", run.stdout, run.stderr).into()),
    }
}

/// A command that gets along with that peer.
#[expect(clippy::unnecessary_wraps, reason = "what the harness asks for")]
fn used(verb: &str, peer: &str, transport: &str) -> Result<(), Failed> {
    let run = started(&[verb], peer, transport);
    check_marks(&run);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    Ok(())
}

/// These words, and the command that starts that peer.
fn started(words: &[&str], peer: &str, transport: &str) -> Measured {
    let this = std::env::current_exe().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut mcproof = Command::new(env!("CARGO_BIN_EXE_mcproof"));
    mcproof.current_dir(folder.path()).args(words).args(["--era", "legacy", "--color", "never"]);
    let mut server = vec!["--peer".to_owned(), peer.to_owned(), format!("--{transport}")];
    if transport != "stdio" {
        mcproof.arg("http://127.0.0.1:${port}/");
        server.push("${port}".into());
    }
    run(mcproof.arg("--").arg(this).args(server))
}

fn write_table(rows: &mut Vec<String>) {
    rows.sort_unstable();
    let mut text = String::new();
    for row in rows {
        writeln!(text, "{row}").unwrap();
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    std::fs::write(target.join("hostile.txt"), text).unwrap();
}
