//! Every verb that talks to a server, on every hostile server, in the form that a person types: no flag, no suite of ours. The chore
//! `cargo xtask hostile` runs all of them and writes `docs/hostile.md`. What came of each is kept in `target/hostile`, so that it can be
//! run in parts.

#![expect(clippy::print_stderr, reason = "a chore tells how far it is")]

use super::measured::{Measured, run};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Those that judge a server; the others use it, and get along with some of what these have to tell.
const JUDGES: [&str; 2] = ["check", "test"];
/// What a client gets along with, although it is odd, or that is only unpleasant.
const USABLE: [&str; 5] = ["large-answer", "answer-before-request", "duplicate-answer", "wrong-id-type", "escapes-in-names"];
const VERBS: [&str; 8] = ["tools", "call", "probe", "check", "init", "lock", "test", "watch"];
/// What is shown of them: those that ask for the same say the same.
const SHOWN_VERDICTS: [&str; 3] = ["tools", "check", "watch"];
/// By when each has to end.
const PATIENCE: Duration = Duration::from_secs(60);
/// Most of the time is waiting for deadlines.
const AT_ONCE: usize = 4;

/// Characters of what a command says that are shown.
const LONGEST_VERDICT: usize = 140;

/// The most memory that an optimized build may ever have.
const PEAK_OF_OPTIMIZED: u64 = 105_000_000;

/// The program that is tried, and what it may take.
struct Subject {
    program: PathBuf,
    /// Where what came of it is kept.
    folder: &'static str,
    peak: u64,
    /// What is said of it.
    build: &'static str,
}

impl Subject {
    /// The one of this checkout, as it is built for tests.
    fn own(peak: u64) -> Self {
        let build = "an unoptimized build, of whose memory the program itself is about 40 MB";
        Self { program: env!("CARGO_BIN_EXE_mcproof").into(), folder: "hostile", peak, build }
    }

    fn optimized(program: &str) -> Self {
        // Cargo starts this program in the folder of its package, and whoever types a path is at the top of the checkout.
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(program);
        let program = fs::canonicalize(&program).unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        Self { program, folder: "hostile-optimized", peak: PEAK_OF_OPTIMIZED, build: "an optimized build" }
    }
}

pub(crate) struct Row {
    pub(crate) peer: &'static str,
    pub(crate) transport: &'static str,
    /// Whether a test of it passes.
    pub(crate) sound: bool,
}

/// What one verb did with one server.
#[derive(Deserialize, Serialize)]
struct Cell {
    code: Option<i32>,
    took: Duration,
    busy: Duration,
    peak: u64,
    /// The first thing that it said.
    verdict: String,
    /// Why it is not as it should be.
    wrong: Vec<String>,
}

impl Cell {
    fn shown(&self) -> String {
        let code = self.code.map_or_else(|| "killed".to_owned(), |code| code.to_string());
        let mark = if self.wrong.is_empty() { "" } else { " **!**" };
        let [took, busy] = [self.took, self.busy].map(|time| time.as_secs_f64());
        format!("{code}, {took:.1} s ({busy:.1}), {} MB{mark}", self.peak / 1_000_000)
    }
}

/// Where the cell of a row is kept.
fn kept(subject: &Subject, row: &Row, verb: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join(subject.folder);
    fs::create_dir_all(&folder).unwrap();
    folder.join(format!("{} {} {verb}.json", row.peer, row.transport))
}

/// Runs all verbs on those whose name holds the word that is given, and writes the page if all are known. With `--program` it is that of an
/// optimized build. `most`: the bytes that a build for tests may have in memory.
pub(crate) fn table(rows: &[Row], words: &[String], most: u64) -> ExitCode {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (subject, only) = match words.as_slice() {
        ["--program", program, only @ ..] => (Subject::optimized(program), only.first().copied()),
        only => (Subject::own(most), only.first().copied()),
    };
    let named = |row: &Row, verb: &str| only.is_none_or(|only| format!("{} {} {verb}", row.peer, row.transport).contains(only));
    let all = (0..rows.len()).flat_map(|row| VERBS.map(|verb| (row, verb)));
    let jobs: Vec<(usize, &str)> = all.clone().filter(|(row, verb)| named(&rows[*row], verb)).collect();
    let (next, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((row, verb)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let cell = tried(&subject, &rows[*row], verb);
                    eprintln!("{} {} {verb}: {}", rows[*row].peer, rows[*row].transport, cell.shown());
                    for wrong in &cell.wrong {
                        eprintln!("    {wrong}");
                    }
                    wrong.fetch_add(usize::from(!cell.wrong.is_empty()), Ordering::Relaxed);
                    fs::write(kept(&subject, &rows[*row], verb), serde_json::to_string(&cell).unwrap()).unwrap();
                }
            });
        }
    });
    let known = all.map(|(row, verb)| {
        let text = fs::read_to_string(kept(&subject, &rows[row], verb)).ok()?;
        Some(((row, verb), serde_json::from_str(&text).unwrap()))
    });
    if let Some(cells) = known.collect::<Option<BTreeMap<(usize, &str), Cell>>>() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/hostile.md");
        fs::write(page, rendered(rows, &cells, &subject)).unwrap();
    }
    let wrong = wrong.into_inner();
    eprintln!("{} runs, {wrong} not as they should be", jobs.len());
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn tried(subject: &Subject, row: &Row, verb: &str) -> Cell {
    let folder = tempfile::tempdir().unwrap();
    let mut mcproof = Command::new(&subject.program);
    mcproof.current_dir(folder.path()).env("HOME", folder.path()).env("NO_COLOR", "1");
    command(&mut mcproof, row, verb, folder.path());
    let began = Instant::now();
    let ran = run(&mut mcproof);
    let took = began.elapsed();
    Cell {
        code: ran.code,
        took,
        busy: ran.busy,
        peak: ran.peak,
        verdict: verdict(&ran, verb),
        wrong: wrong(may_be_green(row, verb), &ran, took, subject.peak),
    }
}

/// The first finding, or what else was told first.
fn verdict(ran: &Measured, verb: &str) -> String {
    let lines = || ran.stdout.lines().chain(ran.stderr.lines()).map(str::trim).filter(|line| !line.is_empty());
    let finding = || lines().find(|line| line.starts_with("error: ") || line.starts_with("warning: "));
    // A monitor warns that it has no channels, and its targets have a line each.
    let told = if verb == "watch" { lines().next() } else { finding().or_else(|| lines().next()) };
    told.unwrap_or_default().chars().take(LONGEST_VERDICT).collect()
}

fn command(mcproof: &mut Command, row: &Row, verb: &str, folder: &Path) {
    let this = std::env::current_exe().unwrap();
    // Whoever builds it anew takes it away, and then no server starts.
    assert!(this.exists(), "{} was built anew meanwhile: start this again", this.display());
    let this = this.display().to_string();
    let url = (row.transport != "stdio").then_some("http://127.0.0.1:${port}/");
    let mut server = vec![this, "--peer".to_owned(), row.peer.to_owned(), format!("--{}", row.transport)];
    server.extend(url.map(|_| "${port}".to_owned()));
    match verb {
        "test" => {
            let started = started(server, url);
            let suite = json!({ "server": { row.transport: started }, "tests": [{ "name": "a", "steps": [{ "tools": [] }] }] });
            fs::write(folder.join("a.mcproof.yaml"), suite.to_string()).unwrap();
            mcproof.args(["test", "a.mcproof.yaml"]);
        }
        "watch" => {
            let file = json!({ "targets": { "a": { row.transport: started(server, url) } }, "database": "sqlite:monitor.db" });
            fs::write(folder.join("monitor.yaml"), file.to_string()).unwrap();
            mcproof.args(["watch", "monitor.yaml", "--once"]);
        }
        _ => {
            mcproof.arg(verb).args(url).args((verb == "call").then_some("t")).arg("--").args(server);
        }
    }
}

/// A server as suites and the monitor's configuration have it.
fn started(command: Vec<String>, url: Option<&str>) -> Value {
    let mut server = json!({ "command": command });
    if let Some(url) = url {
        server["url"] = json!(url);
    }
    server
}

fn may_be_green(row: &Row, verb: &str) -> bool {
    row.sound || !JUDGES.contains(&verb) && USABLE.contains(&row.peer)
}

fn wrong(may_be_green: bool, ran: &Measured, took: Duration, most: u64) -> Vec<String> {
    let mut wrong = Vec::new();
    if !ran.ended || took > PATIENCE {
        wrong.push(format!("took {:.0} s", took.as_secs_f64()));
    }
    if ran.peak > most {
        wrong.push(format!("had {} MB in memory", ran.peak / 1_000_000));
    }
    if !ran.orphans.is_empty() {
        wrong.push(format!("left {}", ran.orphans.join(", ")));
    }
    match ran.code {
        Some(0) if !may_be_green => wrong.push("is green".to_owned()),
        Some(0 | 1 | 3) => {}
        code => wrong.push(format!("ended with {code:?}")),
    }
    if ran.stdout.trim().is_empty() && ran.stderr.trim().is_empty() {
        wrong.push("said nothing".to_owned());
    }
    if !wrong.is_empty() {
        let said = ran.stderr.lines().chain(ran.stdout.lines()).filter(|line| !line.trim().is_empty()).take(3);
        wrong.extend(said.map(|line| line.chars().take(160).collect()));
    }
    wrong
}

fn rendered(rows: &[Row], cells: &BTreeMap<(usize, &str), Cell>, subject: &Subject) -> String {
    let Subject { build, peak, .. } = subject;
    let mut text = format!(
        "# Hostile servers\n\nWhat each command makes of each hostile server of the testkit: exit code, time to the end, in parentheses the \
         processor time that mcproof took for itself, and the most memory that it had. The commands run as a person types them, without \
         flags, {AT_ONCE} at a time, with {build}. All have to end within {} s and {} MB, leave no process behind, and be green only where a \
         client gets through; what does not is marked **!**. Written by `cargo xtask hostile`, which keeps what it found, so that it can be \
         run in parts: `cargo xtask hostile --program target/release/mcproof 'gzip-bomb http'`.\n\n| server | transport |",
        PATIENCE.as_secs(),
        peak / 1_000_000,
    );
    for verb in VERBS {
        let _ = write!(text, " {verb} |");
    }
    text.push_str("\n|---|---|");
    text.push_str(&"---|".repeat(VERBS.len()));
    for (index, row) in rows.iter().enumerate() {
        let _ = write!(text, "\n| {} | {} |", row.peer, row.transport);
        for verb in VERBS {
            let _ = write!(text, " {} |", cells[&(index, verb)].shown());
        }
    }
    text.push_str("\n\n## What they say first\n\n| server | transport |");
    for verb in SHOWN_VERDICTS {
        let _ = write!(text, " {verb} |");
    }
    text.push_str("\n|---|---|");
    text.push_str(&"---|".repeat(SHOWN_VERDICTS.len()));
    for (index, row) in rows.iter().enumerate() {
        let _ = write!(text, "\n| {} | {} |", row.peer, row.transport);
        for verb in SHOWN_VERDICTS {
            let _ = write!(text, " {} |", cells[&(index, verb)].verdict.replace('|', "\\|").replace('<', "&lt;"));
        }
    }
    text.push('\n');
    text
}
