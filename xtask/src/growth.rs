//! `cargo xtask growth`: what each more of something costs, in time and in memory, from a hundred to ten thousand. Runs the program;
//! knows nothing of its inside.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: cargo xtask growth [--program PATH] [--most N] [NAME…]";
/// Whoever takes longer is no use to anybody.
const LONGEST: Duration = Duration::from_secs(300);
const SIZES: [usize; 3] = [100, 1_000, 10_000];
const SERVER: &str = include_str!("growth/server.py");
const PAGE: &str = "docs/growth.md";

/// What grows, and the command that meets it.
struct Subject {
    name: &'static str,
    about: &'static str,
    arguments: fn(usize, &Path) -> Vec<String>,
    /// What the command ends with.
    code: i32,
    /// Of how many it is asked at most.
    most: usize,
}

const SUBJECTS: [Subject; 9] = [
    Subject {
        name: "plan",
        about: "rows of one test that `plan` writes out",
        arguments: |size, folder| with_suite(folder, "plan", &rows(size)),
        code: 0,
        most: usize::MAX,
    },
    Subject {
        name: "cases",
        about: "tests that share a server, run by `test`",
        arguments: |size, folder| with_suite(folder, "test", &rows(size)),
        code: 0,
        most: usize::MAX,
    },
    Subject {
        name: "frames",
        about: "messages of one session, two for each run of a step with `times`",
        arguments: |size, folder| with_suite(folder, "test", &times(size)),
        code: 0,
        most: usize::MAX,
    },
    Subject {
        name: "failures",
        about: "tests that fail, with their reports",
        arguments: |size, folder| with_suite(folder, "test", &failures(size)),
        code: 1,
        most: usize::MAX,
    },
    Subject {
        name: "tools",
        about: "tools that `tools` lists",
        arguments: |size, folder| on_server(folder, &["tools"], size, "sound"),
        code: 0,
        most: usize::MAX,
    },
    Subject {
        name: "check",
        about: "tools that `check` judges",
        arguments: |size, folder| on_server(folder, &["check"], size, "sound"),
        code: 0,
        most: usize::MAX,
    },
    Subject {
        name: "findings",
        about: "tools that each break a rule, found by `check`",
        arguments: |size, folder| on_server(folder, &["check", "--reporter", "html=report.html"], size, "flawed"),
        code: 1,
        most: usize::MAX,
    },
    Subject {
        name: "lock",
        about: "tools that `lock` writes down",
        arguments: |size, folder| on_server(folder, &["lock"], size, "sound"),
        code: 0,
        most: usize::MAX,
    },
    Subject {
        name: "values",
        about: "values of a suite that `plan` reads",
        arguments: |size, folder| with_suite(folder, "plan", &values(size)),
        code: 0,
        most: usize::MAX,
    },
];

/// One run.
struct Measured {
    size: usize,
    took: Duration,
    /// Most memory that was in use at once, in KiB.
    peak: u64,
}

/// # Errors
/// A run failed, or the page cannot be written.
pub(crate) fn growth(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let Plan { program, most, names } = parse(arguments)?;
    let program = match program {
        Some(program) => program,
        None => build(root)?,
    };
    let mut page = String::from(HEAD);
    let subjects = SUBJECTS.iter().filter(|subject| names.is_empty() || names.iter().any(|name| name == subject.name));
    for subject in subjects {
        let mut runs: Vec<Measured> = Vec::new();
        for size in SIZES.into_iter().filter(|size| *size <= most.min(subject.most)) {
            let measured = measure(&program, subject, size)?;
            let line = row(subject, &measured, runs.last());
            print!("{line}");
            page += &line;
            runs.push(measured);
        }
    }
    if names.is_empty() {
        let page_file = root.join(PAGE);
        fs::write(&page_file, page).map_err(|error| format!("{PAGE} cannot be written: {error}"))?;
        println!("{PAGE} is written");
    }
    Ok(())
}

const HEAD: &str = "\
# What more costs

Written by `cargo xtask growth`, which runs the release build on a machine of two cores. *times* is how much longer, and how much more memory, ten
times as much takes; what every run takes (to start, a server included) is in it, so that small sizes grow by less than ten.

| what | how many | time | for each | times | memory | for each | times |
|---|--:|--:|--:|--:|--:|--:|--:|
";

fn row(subject: &Subject, now: &Measured, before: Option<&Measured>) -> String {
    let Measured { size, took, peak } = now;
    let each = |total: f64| total / *size as f64;
    let times = |now: f64, before: Option<f64>| before.map_or(String::new(), |before| format!("{:.1}", now / before));
    let mut line = String::new();
    writeln!(
        line,
        "| {}: {} | {size} | {:.2} s | {:.2} ms | {} | {:.0} MB | {:.1} KB | {} |",
        subject.name,
        subject.about,
        took.as_secs_f64(),
        each(took.as_secs_f64() * 1000.0),
        times(took.as_secs_f64(), before.map(|before| before.took.as_secs_f64())),
        *peak as f64 / 1024.0,
        each(*peak as f64),
        times(*peak as f64, before.map(|before| before.peak as f64)),
    )
    .expect("a String takes all text");
    line
}

struct Plan {
    program: Option<PathBuf>,
    most: usize,
    names: Vec<String>,
}

fn parse(arguments: &[&str]) -> Result<Plan, String> {
    let mut plan = Plan { program: None, most: usize::MAX, names: Vec::new() };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match *word {
            "--program" => plan.program = Some(words.next().ok_or(USAGE)?.into()),
            "--most" => plan.most = words.next().and_then(|number| number.parse().ok()).ok_or(USAGE)?,
            name if SUBJECTS.iter().any(|subject| subject.name == name) => plan.names.push(name.to_owned()),
            other => {
                let known: Vec<&str> = SUBJECTS.iter().map(|subject| subject.name).collect();
                return Err(format!("there is nothing called `{other}`; there are {}\n{USAGE}", known.join(", ")));
            }
        }
    }
    Ok(plan)
}

fn build(root: &Path) -> Result<PathBuf, String> {
    let build = ["build", "--release", "--package", "mcproof"];
    let status = Command::new("cargo").args(build).current_dir(root).stdin(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(root.join("target/release/mcproof")),
        Ok(status) => Err(format!("cargo ended with {status}")),
        Err(error) => Err(format!("cannot start cargo: {error}")),
    }
}

fn measure(program: &Path, subject: &Subject, size: usize) -> Result<Measured, String> {
    let folder = std::env::temp_dir().join(format!("mcproof-growth-{}-{}-{size}", std::process::id(), subject.name));
    fs::create_dir_all(&folder).map_err(|error| format!("{} cannot be created: {error}", folder.display()))?;
    let arguments = (subject.arguments)(size, &folder);
    let measured = run(program, &arguments, &folder);
    let _ = fs::remove_dir_all(&folder);
    let (code, took, peak) = measured.map_err(|error| format!("{} {size}: {error}", subject.name))?;
    match code == Some(subject.code) {
        true => Ok(Measured { size, took, peak }),
        false => Err(format!("{} {size} ended with {code:?}, not {}: {}", subject.name, subject.code, arguments.join(" "))),
    }
}

fn run(program: &Path, arguments: &[String], folder: &Path) -> Result<(Option<i32>, Duration, u64), String> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).env("XDG_STATE_HOME", folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    let mut child = command.spawn().map_err(|error| format!("{} cannot be started: {error}", program.display()))?;
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let mut peak = 0;
    loop {
        // The system keeps the highest mark, so that only what comes right before the end is missed.
        let text = fs::read_to_string(&status).unwrap_or_default();
        let mark = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        peak = mark.map_or(peak, |mark: u64| peak.max(mark));
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok((status.code(), started.elapsed(), peak));
        }
        if started.elapsed() > LONGEST {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("not done after {} s", LONGEST.as_secs()));
        }
        sleep(Duration::from_millis(2));
    }
}

fn with_suite(folder: &Path, verb: &str, text: &str) -> Vec<String> {
    write(folder, "s.mcproof.yaml", text);
    vec![verb.to_owned()]
}

fn on_server(folder: &Path, verb: &[&str], size: usize, kind: &str) -> Vec<String> {
    write(folder, "server.py", SERVER);
    let size = size.to_string();
    let words = [verb, &["--", "python3", "server.py", &size, kind]].concat();
    words.into_iter().map(str::to_owned).collect()
}

/// A folder of our own takes what we write; a run that misses it fails.
fn write(folder: &Path, name: &str, text: &str) {
    let _ = fs::write(folder.join(name), text);
}

const SHOP: &str = "server: { stdio: mcproof demo shop }\nisolation: file\n";

fn rows(size: usize) -> String {
    let rows: String = (0..size).map(|row| format!("      - {{ id: {row} }}\n")).collect();
    format!("{SHOP}tests:\n  - name: \"number ${{id}}\"\n    rows:\n{rows}    steps: [ping]\n")
}

fn times(size: usize) -> String {
    format!("{SHOP}tests:\n  - name: many\n    steps: [{{ ping: true, times: {size} }}]\n")
}

fn failures(size: usize) -> String {
    rows(size).replace("steps: [ping]", "steps: [{ tools: [nothing] }]")
}

fn values(size: usize) -> String {
    let values: String = (0..size).map(|value| format!("    - {{ name: value {value}, size: {value} }}\n")).collect();
    format!("vars:\n  many:\n{values}{SHOP}tests:\n  - name: few\n    steps: [ping]\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read() {
        let plan = parse(&["--most", "100", "check", "lock"]).unwrap();
        assert_eq!((plan.most, plan.names), (100, vec!["check".to_owned(), "lock".to_owned()]));
        assert!(parse(&["nothing"]).err().unwrap().contains("there are plan, cases"));
    }

    #[test]
    fn a_row_tells_how_it_grows() {
        let measured = |size, seconds, peak| Measured { size, took: Duration::from_secs(seconds), peak };
        let line = row(&SUBJECTS[0], &measured(1000, 20, 20 << 10), Some(&measured(100, 2, 10 << 10)));
        assert_eq!(line, "| plan: rows of one test that `plan` writes out | 1000 | 20.00 s | 20.00 ms | 10.0 | 20 MB | 20.5 KB | 2.0 |\n");
    }
}
