//! `cargo xtask stability`: the same server checked again and again on a busy machine has to give the same findings each time.
//! Writes what came of it into `docs/stability.md`.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Servers, and the transport over which each is checked.
const SERVERS: [(&str, &str); 10] = [
    ("everything", "stdio"),
    ("everything", "http"),
    ("filesystem", "stdio"),
    ("memory", "stdio"),
    ("context7", "stdio"),
    ("kubernetes", "stdio"),
    ("time", "stdio"),
    ("git", "stdio"),
    ("sqlite", "stdio"),
    ("fastmcp", "http"),
];

pub(crate) struct Plan {
    runs: usize,
    load: usize,
    names: Vec<String>,
}

impl Plan {
    /// # Errors
    /// A flag without its number.
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        let mut plan = Self { runs: 20, load: 16, names: Vec::new() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut number = || words.next().and_then(|number| number.parse().ok()).ok_or(format!("{word} needs a number"));
            match *word {
                "--runs" => plan.runs = number()?,
                "--load" => plan.load = number()?,
                name => plan.names.push(name.to_owned()),
            }
        }
        Ok(plan)
    }
}

/// What the checks of one server gave: each set of findings, and how often.
struct Row {
    sets: BTreeMap<Vec<String>, usize>,
    slowest: Duration,
}

/// # Errors
/// A server gave different findings, or could not be checked.
pub(crate) fn stability(root: &Path, plan: &Plan) -> Result<(), String> {
    let program = root.join("target/debug/mcproof");
    let servers =
        fs::read_to_string(root.join("peers/servers.json")).map_err(|error| format!("cannot read peers/servers.json: {error}"))?;
    let peers = root.join("target/peers");
    let servers: Value =
        serde_json::from_str(&servers.replace("${peers}", &peers.display().to_string())).map_err(|error| error.to_string())?;
    let load = Load::start(plan.load)?;
    let mut rows = Vec::new();
    for (name, transport) in SERVERS {
        let label = format!("{name}, {transport}");
        if !plan.names.is_empty() && !plan.names.iter().any(|wanted| wanted == name || *wanted == label) {
            continue;
        }
        let row = check(&program, &servers[name][transport], plan.runs)?;
        println!("{label:<20} {} set(s) of findings in {} checks, slowest {:.1} s", row.sets.len(), plan.runs, row.slowest.as_secs_f64());
        rows.push((label, row));
    }
    drop(load);
    let page = rendered(plan, &rows);
    fs::write(root.join("docs/stability.md"), page).map_err(|error| format!("cannot write docs/stability.md: {error}"))?;
    let unstable: Vec<&str> = rows.iter().filter(|(_, row)| row.sets.len() > 1).map(|(label, _)| label.as_str()).collect();
    if unstable.is_empty() { Ok(()) } else { Err(format!("not the same findings each time: {}", unstable.join("; "))) }
}

fn check(program: &Path, start: &Value, runs: usize) -> Result<Row, String> {
    let words = |key: &str| start[key].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>();
    let mut row = Row { sets: BTreeMap::new(), slowest: Duration::ZERO };
    for _ in 0..runs {
        let mut command = Command::new(program);
        command.args(["check", "--json"]);
        for (key, value) in start["env"].as_object().into_iter().flatten() {
            command.args(["-e".to_owned(), format!("{key}={}", value.as_str().unwrap_or_default())]);
        }
        command.args(start["cwd"].as_str().into_iter().flat_map(|folder| ["--cwd", folder]));
        command.args(start["url"].as_str()).arg("--").args(words("command"));
        let began = Instant::now();
        let output =
            command.stdin(Stdio::null()).stderr(Stdio::null()).output().map_err(|error| format!("cannot start mcproof: {error}"))?;
        row.slowest = row.slowest.max(began.elapsed());
        *row.sets.entry(findings(&output.stdout, output.status.code())).or_default() += 1;
    }
    Ok(row)
}

/// Rules and severities of what was found, in order, and what could not be tested in time.
fn findings(report: &[u8], code: Option<i32>) -> Vec<String> {
    let Ok(report) = serde_json::from_slice::<Value>(report) else { return vec![format!("no report, exit code {code:?}")] };
    let mut found = Vec::new();
    for ruling in report["rules"].as_array().into_iter().flatten() {
        let rule = ruling["rule"].as_str().unwrap_or_default();
        for finding in ruling["judged"]["findings"].as_array().into_iter().flatten() {
            found.push(format!("{} {rule}", finding["severity"].as_str().unwrap_or_default()));
        }
        if ruling["judged"]["why"].as_str().is_some_and(|why| why.contains("deadline")) {
            found.push(format!("out of time: {rule}"));
        }
    }
    found.sort();
    found.dedup();
    found
}

fn rendered(plan: &Plan, rows: &[(String, Row)]) -> String {
    let mut text = format!(
        "# Stability\n\nThe findings of `mcproof check`, {} times on each server while {} busy loops ran on {} cores. \
         Written by `cargo xtask stability`.\n\n| server | sets of findings | slowest check | what differed |\n|---|---|---|---|\n",
        plan.runs,
        plan.load,
        thread::available_parallelism().map_or(1, usize::from)
    );
    for (label, row) in rows {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        row.sets.iter().flat_map(|(set, times)| set.iter().map(move |one| (one, times))).for_each(|(one, times)| {
            *seen.entry(one).or_default() += times;
        });
        let differing: Vec<String> = seen
            .into_iter()
            .filter(|(_, times)| *times < plan.runs)
            .map(|(one, times)| format!("{one} ({times} of {})", plan.runs))
            .collect();
        let _ = writeln!(text, "| {label} | {} | {:.1} s | {} |", row.sets.len(), row.slowest.as_secs_f64(), differing.join(", "));
    }
    text
}

/// Processes that do nothing but keep the machine busy; they end with this.
struct Load(Vec<Child>);

impl Load {
    fn start(count: usize) -> Result<Self, String> {
        let mut load = Self(Vec::new());
        for _ in 0..count {
            let child = Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn();
            load.0.push(child.map_err(|error| format!("cannot start a busy loop: {error}"))?);
        }
        Ok(load)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may have been ended by somebody else.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
