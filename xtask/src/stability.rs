//! `cargo xtask stability`: the same server checked again and again on a busy machine has to give the same findings each time.
//! Writes a row for each server into `docs/stability.md` as soon as it is done; rows of other servers stay as they are, so that a
//! whole run can be done in parts.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    /// Checks at a time: each is a part of the load of the others.
    parallel: usize,
    /// Busy loops beside them.
    load: usize,
    /// The binary that checks; the one of this checkout unless it is given.
    program: Option<PathBuf>,
    names: Vec<String>,
}

impl Plan {
    /// # Errors
    /// A flag without its number.
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        let mut plan = Self { runs: 20, parallel: 8, load: 8, program: None, names: Vec::new() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            let number = |value: &str| value.parse().map_err(|_| format!("{word} needs a number, not `{value}`"));
            match *word {
                "--runs" => plan.runs = number(value()?)?,
                "--parallel" => plan.parallel = number(value()?)?.max(1),
                "--load" => plan.load = number(value()?)?,
                "--program" => plan.program = Some(value()?.into()),
                name => plan.names.push(name.to_owned()),
            }
        }
        Ok(plan)
    }
}

/// What the checks of one server gave: each set of findings, and how often.
#[derive(Default)]
struct Row {
    sets: BTreeMap<Vec<String>, usize>,
    /// Rules that were left out for want of time, and how often.
    out_of_time: BTreeMap<String, usize>,
    slowest: Duration,
}

/// # Errors
/// A server gave different findings, or could not be checked.
pub(crate) fn stability(root: &Path, plan: &Plan) -> Result<(), String> {
    let program = plan.program.clone().unwrap_or_else(|| root.join("target/debug/mcproof"));
    let servers =
        fs::read_to_string(root.join("peers/servers.json")).map_err(|error| format!("cannot read peers/servers.json: {error}"))?;
    let peers = root.join("target/peers");
    let servers: Value =
        serde_json::from_str(&servers.replace("${peers}", &peers.display().to_string())).map_err(|error| error.to_string())?;
    let path = root.join("docs/stability.md");
    let load = Load::start(plan.load)?;
    let mut unstable = Vec::new();
    for (name, transport) in SERVERS {
        let label = format!("{name}, {transport}");
        if !plan.names.is_empty() && !plan.names.iter().any(|wanted| wanted == name || *wanted == label) {
            continue;
        }
        let row = check(&program, &servers[name][transport], plan)?;
        println!("{label:<20} {} set(s) of findings in {} checks, slowest {:.1} s", row.sets.len(), plan.runs, row.slowest.as_secs_f64());
        if row.sets.len() > 1 {
            unstable.push(label.clone());
        }
        let page = fs::read_to_string(&path).unwrap_or_default();
        let page = with_row(&page, &label, rendered(plan, &label, &row));
        fs::write(&path, page).map_err(|error| format!("cannot write docs/stability.md: {error}"))?;
    }
    drop(load);
    if unstable.is_empty() { Ok(()) } else { Err(format!("not the same findings each time: {}", unstable.join("; "))) }
}

fn check(program: &Path, start: &Value, plan: &Plan) -> Result<Row, String> {
    let (next, row) = (AtomicUsize::new(0), Mutex::new(Row::default()));
    let check_in_turn = || {
        while next.fetch_add(1, Ordering::Relaxed) < plan.runs {
            let began = Instant::now();
            let (found, out_of_time) = check_once(program, start)?;
            let mut row = row.lock().expect("no check panics");
            row.slowest = row.slowest.max(began.elapsed());
            *row.sets.entry(found).or_default() += 1;
            out_of_time.into_iter().for_each(|rule| *row.out_of_time.entry(rule).or_default() += 1);
        }
        Ok::<(), String>(())
    };
    thread::scope(|scope| {
        let checks: Vec<_> = (0..plan.parallel).map(|_| scope.spawn(check_in_turn)).collect();
        checks.into_iter().try_for_each(|check| check.join().expect("no check panics"))
    })?;
    Ok(row.into_inner().expect("no check panics"))
}

fn check_once(program: &Path, start: &Value) -> Result<(Vec<String>, Vec<String>), String> {
    let words = |key: &str| start[key].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>();
    let mut command = Command::new(program);
    command.args(["check", "--json"]);
    for (key, value) in start["env"].as_object().into_iter().flatten() {
        command.args(["-e".to_owned(), format!("{key}={}", value.as_str().unwrap_or_default())]);
    }
    command.args(start["cwd"].as_str().into_iter().flat_map(|folder| ["--cwd", folder]));
    command.args(start["url"].as_str()).arg("--").args(words("command"));
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().map_err(|error| format!("cannot start mcproof: {error}"))?;
    Ok(findings(&output.stdout, output.status.code()))
}

/// Rules and severities of what was found, in order; and the rules for which there was no time.
fn findings(report: &[u8], code: Option<i32>) -> (Vec<String>, Vec<String>) {
    let Ok(report) = serde_json::from_slice::<Value>(report) else { return (vec![format!("no report, exit code {code:?}")], Vec::new()) };
    let (mut found, mut out_of_time) = (Vec::new(), Vec::new());
    for ruling in report["rules"].as_array().into_iter().flatten() {
        let rule = ruling["rule"].as_str().unwrap_or_default();
        for finding in ruling["judged"]["findings"].as_array().into_iter().flatten() {
            found.push(format!("{} {rule}", finding["severity"].as_str().unwrap_or_default()));
        }
        if ruling["judged"]["why"].as_str().is_some_and(|why| why.contains("deadline")) {
            out_of_time.push(rule.to_owned());
        }
    }
    for gap in report["gaps"].as_array().into_iter().flatten() {
        found.push(format!("inconclusive: {}", gap["kind"].as_str().unwrap_or_default()));
    }
    found.sort();
    found.dedup();
    (found, out_of_time)
}

const HEAD: &str = "# Stability\n\nWhether `mcproof check` finds the same each time on a busy machine: each server was checked again and \
again, several times at once, while busy loops ran beside it. A set of findings is the rules with their severities. Where time was up after 60 s, the \
report names the rules that were left out; the last column counts them. The load is that of the whole machine when the checks of the server ended. Written by `cargo xtask stability`, which replaces the row \
of each server that it checks.\n\n| server | checks | at once | busy loops | cores | load | sets of findings | slowest check | findings that differed | left out for want of time |\n\
|---|---:|---:|---:|---:|---:|---:|---:|---|---|\n";

/// The page with this row in place of the one of the same server. Rows stand in the order of [`SERVERS`].
fn with_row(page: &str, label: &str, row: String) -> String {
    let rows = SERVERS.iter().map(|(name, transport)| format!("{name}, {transport}"));
    let of = |server: &str| page.lines().find(|line| line.starts_with(&format!("| {server} |"))).map(str::to_owned);
    let all = rows.filter_map(|server| if server == label { Some(row.clone()) } else { of(&server) });
    all.fold(HEAD.to_owned(), |page, row| page + &row + "\n")
}

fn rendered(plan: &Plan, label: &str, row: &Row) -> String {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    row.sets.iter().flat_map(|(set, times)| set.iter().map(move |one| (one, times))).for_each(|(one, times)| {
        *seen.entry(one).or_default() += times;
    });
    let counted = |(one, times): (&str, usize)| format!("{one} ({times} of {})", plan.runs);
    let differing: Vec<String> = seen.into_iter().filter(|(_, times)| *times < plan.runs).map(counted).collect();
    let left_out = match row.out_of_time.values().max() {
        Some(checks) => format!("{} rules, in {checks} of {}", row.out_of_time.len(), plan.runs),
        None => String::new(),
    };
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!(
        "| {label} | {} | {} | {} | {} | {} | {} | {:.1} s | {} | {} |",
        plan.runs,
        plan.parallel,
        plan.load,
        thread::available_parallelism().map_or(1, usize::from),
        load.split(' ').next().unwrap_or_default(),
        row.sets.len(),
        row.slowest.as_secs_f64(),
        differing.join(", "),
        left_out
    )
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
