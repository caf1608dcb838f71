//! The zoo against the real binary: `mcproof check` has to find what each broken server breaks, on every wire and in every
//! era where it shows, and must report no other failure; for the correct server it must report nothing.
//!
//! One test for each row, so without the usual harness: this program is also the servers (`--zoo NAME …`). A run of all tests
//! checks each broken server at one place (transport and era), `--every-place` and a run with a filter at all of them. The detection
//! table is written to `target/detection.txt`, that of every place to `docs/detection.md`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "zoo/doctor.rs"]
mod doctor;
#[path = "zoo/mutations.rs"]
mod mutations;
#[path = "zoo/others.rs"]
mod others;
mod peers;
#[path = "zoo/visits.rs"]
mod visits;

use libtest_mimic::{Arguments, Failed, Trial};
use mcproof_protocol::Era;
use mcproof_testkit::zoo::{self, broken_servers};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::slice;
use std::sync::{Arc, Mutex};
use std::thread;

/// The rule about several instances of a server.
const LOST_RESPONSE: &str = "lost-response-doubles-no-effect";
const REPLICAS: &str = "replicas-are-interchangeable";

/// Check each broken server on each of its transports in every era, instead of at one of these places.
const EVERY_PLACE: &str = "--every-place";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(("--zoo", broken_server)) = words.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return match zoo::run(&zoo::parse(broken_server).unwrap()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    if words == ["--others"] {
        others::compare();
        return ExitCode::SUCCESS;
    }
    if let Some(("--mutations", rest)) = words.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        mutations::try_all(rest);
        return ExitCode::SUCCESS;
    }
    let (words, is_thorough) = (without(&words, EVERY_PLACE), words.iter().any(|word| word == EVERY_PLACE));
    let mut arguments = Arguments::from_iter(["zoo".to_owned()].into_iter().chain(words));
    let is_whole = arguments.filter.is_none() && !arguments.list;
    let table = Arc::new(Mutex::new(Vec::new()));
    // From the longest on, since what is begun last is waited for with idle processors.
    let mut trials: Vec<Trial> = Vec::new();
    for (server, what) in [("none", "server"), ("fixtures", "fixtures")] {
        for transport in ["stdio", "http", "sse"] {
            for eras in [&["legacy"][..], &["modern"], &[]] {
                if (transport, eras) != ("sse", &["modern"]) {
                    let name = format!("the_correct_{what}_over_{transport}_{}", eras.first().unwrap_or(&"both"));
                    trials.push(Trial::test(name, move || praised(server, transport, eras)));
                }
            }
        }
    }
    trials.push(Trial::test("the_correct_server_with_thousands_of_tools", || praised("many-tools", "stdio", &[])));
    trials.push(Trial::test("a_modern_call_learns_first_which_arguments_go_into_headers", || {
        called_well(&["find_animals", "region=Africa"])?;
        called_well(&["find_animals", "--args", r#"{"region":"Africa"}"#])
    }));
    trials.push(Trial::test("a_tool_that_never_answers_makes_a_check_inconclusive", || {
        let told: Vec<_> = thread::scope(|scope| {
            let checks: Vec<_> = mutations::PLACES.map(|place| scope.spawn(move || mutations::a_silent_tool_is_told(place))).into();
            checks.into_iter().map(|check| check.join().unwrap()).collect()
        });
        told.into_iter().collect()
    }));
    trials.push(Trial::test("a_lost_discovery_of_a_server_of_both_eras_is_told", mutations::lost_discoveries_of_both_eras_are_told));
    trials.push(Trial::test("the_doctor_names_the_step_that_fails", doctor::names_the_step_that_fails));
    for place in mutations::PLACES {
        let name = format!("mutations_of_the_correct_server_over_{}_{}_are_told", place.0, place.1);
        trials.push(Trial::test(name, move || mutations::sample(place, 4)));
    }
    trials.extend(visits::trials());
    for broken_server in broken_servers() {
        let places: Vec<_> = broken_server.places().collect();
        // Who names a test means that one.
        let places =
            if is_thorough || !is_whole { &places[..] } else { slice::from_ref(&places[one_of(broken_server.name, places.len())]) };
        for &(transport, era) in places {
            let table = Arc::clone(&table);
            let name = format!("{}_over_{transport}_{}", broken_server.name, word(era));
            trials.push(Trial::test(name, move || caught(broken_server, transport, era, &table)));
        }
    }
    // Much of the time is spent waiting for servers that do not answer. More would not be done earlier on two processors, and
    // would keep other test programs from theirs.
    arguments.test_threads.get_or_insert(12);
    let conclusion = libtest_mimic::run(&arguments, trials);
    if is_whole {
        let rows = &mut table.lock().unwrap();
        write_table(rows);
        if is_thorough {
            others::write(rows);
        }
    }
    conclusion.exit_code()
}

/// The same index for a name in each run, whatever other servers there are; the places are about equally frequent.
fn one_of(name: &str, count: usize) -> usize {
    name.bytes().fold(0_usize, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into())) % count
}

fn without(words: &[String], flag: &str) -> Vec<String> {
    words.iter().filter(|word| *word != flag).cloned().collect()
}

fn word(era: Era) -> &'static str {
    match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    }
}

/// What a check said: exit code, and for each finding its severity, rule and sentence.
struct Checked {
    code: Option<i32>,
    findings: Vec<(String, String, String)>,
    report: Value,
    stderr: String,
}

impl Checked {
    fn rules(&self, severity: &str) -> BTreeSet<&str> {
        self.findings.iter().filter(|(known, ..)| known == severity).map(|(_, rule, _)| rule.as_str()).collect()
    }
}

fn caught(broken_server: &zoo::BrokenServer, transport: &'static str, era: Era, table: &Mutex<Vec<Row>>) -> Result<(), Failed> {
    let checked = check(broken_server.name, transport, &[word(era)]);
    let found = checked.findings.iter().any(|(_, rule, _)| rule == broken_server.rule);
    let unrelated: Vec<String> = checked
        .findings
        .iter()
        .filter(|(severity, rule, _)| severity == "error" && rule != broken_server.rule)
        .map(|(_, rule, message)| format!("{rule}: {message}"))
        .collect();
    let also: Vec<String> = checked
        .rules("warning")
        .union(&checked.rules("note"))
        .filter(|rule| **rule != broken_server.rule)
        .map(|rule| (*rule).to_owned())
        .collect();
    let row = Row {
        broken_server: broken_server.name,
        rule: broken_server.rule,
        transport,
        era: word(era),
        found,
        unrelated: unrelated.len(),
        also,
    };
    table.lock().unwrap().push(row);
    let said = || checked.findings.iter().map(|(severity, rule, message)| format!("  {severity} {rule}: {message}\n")).collect::<String>();
    if !found {
        return Err(format!(
            "{} does this: {}\nand `{}` was not found. exit {:?}\n{}{}",
            broken_server.name,
            broken_server.does,
            broken_server.rule,
            checked.code,
            said(),
            checked.stderr
        )
        .into());
    }
    if !unrelated.is_empty() {
        return Err(format!("{} only does this: {}\nbut there is more:\n{}", broken_server.name, broken_server.does, said()).into());
    }
    Ok(())
}

fn praised(server: &str, transport: &'static str, eras: &[&str]) -> Result<(), Failed> {
    let checked = check(server, transport, eras);
    let said: Vec<String> = checked.findings.iter().map(|(severity, rule, message)| format!("{severity} {rule}: {message}")).collect();
    let untestable: Vec<String> = checked.report["rules"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|ruling| ruling["judged"]["verdict"] == "untestable")
        .map(|ruling| format!("untestable {}: {}", ruling["rule"], ruling["judged"]["why"]))
        .collect();
    if !said.is_empty() || checked.code != Some(0) {
        return Err(format!("exit {:?}\n{}\n{}\n{}", checked.code, said.join("\n"), untestable.join("\n"), checked.stderr).into());
    }
    Ok(())
}

/// Calls a tool of the correct modern server, which refuses what is not in the headers as well.
fn called_well(words: &[&str]) -> Result<(), Failed> {
    let this = std::env::current_exe().unwrap();
    let words_of_server = ["--zoo", "none", "--http", "0", "--era", "modern"];
    let (mut server, url) =
        listen(&[this.to_str().unwrap()].iter().chain(&words_of_server).map(|&word| word.to_owned()).collect::<Vec<_>>());
    let output = Command::new(env!("CARGO_BIN_EXE_mcproof")).args(["call", &url.unwrap()]).args(words).output().unwrap();
    let _ = server.kill();
    let _ = server.wait();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned().into()) }
}

/// With a second instance of the same server where there may be several.
fn check(name: &str, transport: &str, eras: &[&str]) -> Checked {
    let this = std::env::current_exe().unwrap();
    let mut server = vec![this.to_str().unwrap().to_owned(), "--zoo".into(), name.into()];
    let era = match eras {
        [only] => vec!["--era".to_owned(), (*only).to_owned()],
        _ => Vec::new(),
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcproof"));
    command.args(["check", "--json", "--browser", "--call", "all", "--timeout", "3s", "--connect-timeout", "6s", "--deadline", "5m"]);
    if transport == "stdio" {
        server.push("--stdio".into());
    } else {
        server.extend([format!("--{transport}"), "${port}".into()]);
        let path = if transport == "sse" { "sse" } else { "mcp" };
        command.args(["--transport", transport]).arg(format!("http://127.0.0.1:${{port}}/{path}"));
    }
    // On request only: it takes its time.
    if broken_servers().any(|one| one.name == name && one.rule == LOST_RESPONSE) {
        command.arg("--lost-response");
    }
    let has_replica =
        transport == "http" && (zoo::CORRECT.contains(&name) || broken_servers().any(|one| one.name == name && one.rule == REPLICAS));
    let replica = has_replica.then(|| {
        let mut server = server.clone();
        *server.last_mut().unwrap() = "0".into();
        server.extend(era.clone());
        listen(&server)
    });
    if let Some((_, url)) = &replica {
        command.args(["--replica", url.as_deref().unwrap()]);
    }
    server.extend(era);
    let output = command.arg("--").args(&server).output().unwrap();
    if let Some((mut server, _)) = replica {
        let _ = server.kill();
        let _ = server.wait();
    }
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut findings = Vec::new();
    for ruling in report["rules"].as_array().into_iter().flatten() {
        // What follows from another finding is one with it.
        for finding in ruling["judged"]["findings"].as_array().into_iter().flatten().filter(|finding| finding["cause"].is_null()) {
            findings.push((text(&finding["severity"]), text(&ruling["rule"]), text(&finding["message"])));
        }
    }
    Checked { code: output.status.code(), findings, report, stderr: String::from_utf8_lossy(&output.stderr).into_owned() }
}

/// Starts a server that listens, and gives its URL, if it tells one before it ends.
fn listen(server: &[String]) -> (Child, Option<String>) {
    let mut child = Command::new(&server[0]).args(&server[1..]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let url = lines.by_ref().map_while(Result::ok).find_map(|line| line.strip_prefix("listening on ").map(str::to_owned));
    // Nobody may block on a pipe that is full.
    thread::spawn(move || lines.for_each(drop));
    (child, url)
}

struct Row {
    broken_server: &'static str,
    rule: &'static str,
    transport: &'static str,
    era: &'static str,
    found: bool,
    unrelated: usize,
    also: Vec<String>,
}

fn write_table(rows: &mut [Row]) {
    rows.sort_by_key(|row| (row.rule, row.broken_server, row.transport, row.era));
    let found = rows.iter().filter(|row| row.found).count();
    let mut text = format!("{found} of {} found\n\n", rows.len());
    for Row { broken_server, rule, transport, era, found, unrelated, also } in rows {
        let verdict = if *found { "found" } else { "MISSED" };
        text += &format!(
            "{rule:<38} {broken_server:<38} {transport:<5} {era:<6} {verdict:<6} {unrelated} unrelated failures {}\n",
            also.join(" ")
        );
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    std::fs::write(target.join("detection.txt"), text).unwrap();
}
