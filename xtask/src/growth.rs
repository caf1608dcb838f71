//! `cargo xtask growth`: what each more of something costs, in processor time and in memory, from a hundred to a hundred thousand. Runs
//! the program; knows nothing of its inside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: cargo xtask growth [--program PATH] [--most N] [NAME…]";
/// Whoever takes longer is no use to anybody.
const LONGEST: Duration = Duration::from_secs(300);
/// Whoever needs more is killed before the machine is in trouble. In KiB.
const MOST_MEMORY: u64 = 3 << 20;
const LIMITS: &str = "300 s and 3 GB";
const SIZES: [usize; 4] = [100, 1_000, 10_000, 100_000];
/// What one of many costs may be so many times what one of a few costs.
const MOST_GROWTH: f64 = 1.5;
/// One with ten times as many has more values than a suite may have.
const MOST_OF_A_SUITE: usize = 10_000;
/// Less than this is too little to be measured in hundredths of a second.
const LEAST: Duration = Duration::from_millis(100);
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

const SUBJECTS: [Subject; 11] = [
    Subject {
        name: "plan",
        about: "rows of one test that `plan` writes out",
        arguments: |size, folder| with_suite(folder, "plan", &rows(size)),
        code: 0,
        most: MOST_OF_A_SUITE,
    },
    Subject {
        name: "cases",
        about: "tests that share a server, run by `test`",
        arguments: |size, folder| with_suite(folder, "test", &rows(size)),
        code: 0,
        most: MOST_OF_A_SUITE,
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
        most: MOST_OF_A_SUITE,
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
        most: MOST_OF_A_SUITE,
    },
    Subject {
        name: "targets",
        about: "targets of a monitor that `watch --check` reads",
        arguments: |size, folder| with_targets(folder, size, "--check"),
        code: 0,
        most: 10_000,
    },
    Subject {
        name: "probes",
        about: "targets that are down, probed and told by `watch --once`",
        arguments: |size, folder| with_targets(folder, size, "--once"),
        code: 1,
        most: 10_000,
    },
];

/// One run.
struct Measured {
    size: usize,
    /// Processor time of the program itself, without that of the servers that it started: other work of the machine changes it little.
    busy: Duration,
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
    let optimized = !program.components().any(|part| part.as_os_str() == "debug");
    let mut page = head(optimized);
    let mut grown = Vec::new();
    let subjects = SUBJECTS.iter().filter(|subject| names.is_empty() || names.iter().any(|name| name == subject.name));
    for subject in subjects {
        let mut runs: Vec<Measured> = Vec::new();
        for size in SIZES.into_iter().filter(|size| *size <= most.min(subject.most)) {
            let Some(measured) = measure(&program, subject, size)? else {
                let line = format!("| {}: {} | {size} | not done in {} **!** |  |  |  |  |  |\n", subject.name, subject.about, LIMITS);
                print!("{line}");
                page += &line;
                grown.push(format!("{} {size}", subject.name));
                break;
            };
            runs.push(measured);
            let Row { line, has_grown } = row(subject, &runs);
            print!("{line}");
            page += &line;
            grown.extend(has_grown.then(|| format!("{} {size}", subject.name)));
        }
    }
    if names.is_empty() {
        let page_file = root.join(PAGE);
        fs::write(&page_file, page).map_err(|error| format!("{PAGE} cannot be written: {error}"))?;
        println!("{PAGE} is written");
    }
    if grown.is_empty() { Ok(()) } else { Err(format!("grew by more than {MOST_GROWTH}: {}", grown.join(", "))) }
}

fn head(optimized: bool) -> String {
    let build = if optimized { "the release build" } else { "an unoptimized build, of whose memory the program itself is about 40 MB" };
    format!(
        "# What more costs\n\nWritten by `cargo xtask growth` with {build}, on a machine of two cores that did other work as well. The time is \
         processor time of mcproof itself. Each of a number may cost at most {MOST_GROWTH} times what each of a smaller number costs, in time and \
         in memory; where it costs more, the growth is marked **!**. What every run takes, to start for example, is in the figures, so that \
         each costs less the more there are; a time below 0.1 s counts as 0.1 s. A suite has at most 300,000 values, which 100,000 rows exceed. \
         The more tools there are, the less often `check` lists them, and the more rules it reports as not tested. How memory and time grow with the days of a monitor is in [soak.md](soak.md).\n\n\
         | what | how many | time | each | growth | memory | each | growth |\n|---|--:|--:|--:|--:|--:|--:|--:|\n"
    )
}

struct Row {
    line: String,
    has_grown: bool,
}

/// The last of these runs, compared with the best of those before it.
fn row(subject: &Subject, runs: &[Measured]) -> Row {
    let (now, before) = runs.split_last().expect("a row is written after a run");
    let each_ms = |run: &Measured| run.busy.as_secs_f64() * 1000.0 / run.size as f64;
    let each_kb = |run: &Measured| run.peak as f64 / run.size as f64;
    let growth = |each: &dyn Fn(&Measured) -> f64| before.iter().map(each).reduce(f64::min).map(|least| each(now) / least);
    let least_ms = |run: &Measured| run.busy.max(LEAST).as_secs_f64() * 1000.0 / run.size as f64;
    let (time, memory) = (growth(&least_ms), growth(&each_kb));
    let shown = |growth: Option<f64>| match growth {
        Some(growth) if growth > MOST_GROWTH => format!("{growth:.2} **!**"),
        Some(growth) => format!("{growth:.2}"),
        None => String::new(),
    };
    let line = format!(
        "| {}: {} | {} | {:.2} s | {:.3} ms | {} | {:.0} MB | {:.2} KB | {} |\n",
        subject.name,
        subject.about,
        now.size,
        now.busy.as_secs_f64(),
        each_ms(now),
        shown(time),
        now.peak as f64 / 1024.0,
        each_kb(now),
        shown(memory),
    );
    Row { line, has_grown: [time, memory].into_iter().flatten().any(|growth| growth > MOST_GROWTH) }
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

/// Nothing if it ran into a limit.
fn measure(program: &Path, subject: &Subject, size: usize) -> Result<Option<Measured>, String> {
    let folder = std::env::temp_dir().join(format!("mcproof-growth-{}-{}-{size}", std::process::id(), subject.name));
    fs::create_dir_all(&folder).map_err(|error| format!("{} cannot be created: {error}", folder.display()))?;
    let arguments = (subject.arguments)(size, &folder);
    let measured = run(program, &arguments, &folder);
    let _ = fs::remove_dir_all(&folder);
    let Some((code, busy, peak)) = measured.map_err(|error| format!("{} {size}: {error}", subject.name))? else { return Ok(None) };
    match code == Some(subject.code) {
        true => Ok(Some(Measured { size, busy, peak })),
        false => Err(format!("{} {size} ended with {code:?}, not {}: {}", subject.name, subject.code, arguments.join(" "))),
    }
}

type Ended = (Option<i32>, Duration, u64);

fn run(program: &Path, arguments: &[String], folder: &Path) -> Result<Option<Ended>, String> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).env("XDG_STATE_HOME", folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    let mut child = command.spawn().map_err(|error| format!("{} cannot be started: {error}", program.display()))?;
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let stat = PathBuf::from(format!("/proc/{}/stat", child.id()));
    let mut peak = 0;
    loop {
        // The system keeps the highest mark, so that only what comes right before the end is missed.
        let text = fs::read_to_string(&status).unwrap_or_default();
        let mark = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        peak = mark.map_or(peak, |mark: u64| peak.max(mark));
        // What it took is known until it is waited for.
        if let Some(busy) = busy_at_the_end(&stat) {
            let status = child.wait().map_err(|error| error.to_string())?;
            return Ok(Some((status.code(), busy, peak)));
        }
        if started.elapsed() > LONGEST || peak > MOST_MEMORY {
            let _ = child.kill();
            let _ = child.wait();
            return Ok(None);
        }
        sleep(Duration::from_millis(2));
    }
}

/// The processor time of a process that has ended. In hundredths of a second, as the kernel tells it to everybody.
fn busy_at_the_end(stat: &Path) -> Option<Duration> {
    let text = fs::read_to_string(stat).ok()?;
    // The name of the program, which may hold anything, ends with the last parenthesis.
    let values: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |position: usize| values.get(position)?.parse::<u64>().ok();
    (values.first() == Some(&"Z")).then_some(Duration::from_millis((ticks(11)? + ticks(12)?) * 10))
}

fn with_targets(folder: &Path, size: usize, mode: &str) -> Vec<String> {
    let targets: String =
        (0..size).map(|target| format!("  t{target}: {{ http: \"http://127.0.0.1:1/{target}\", failures: 1 }}\n")).collect();
    write(folder, "watch.yaml", &format!("targets:\n{targets}"));
    ["watch", "watch.yaml", mode].map(str::to_owned).into()
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
        let check = |runs: &[(usize, u64, u64)], expected: &str, has_grown: bool| {
            let of = |&(size, busy, peak): &(usize, u64, u64)| Measured { size, busy: Duration::from_secs(busy), peak: peak << 10 };
            let row = row(&SUBJECTS[0], &runs.iter().map(of).collect::<Vec<_>>());
            let line = format!("| plan: rows of one test that `plan` writes out | {expected} |\n");
            assert_eq!((row.line, row.has_grown), (line, has_grown));
        };
        check(&[(100, 2, 10)], "100 | 2.00 s | 20.000 ms |  | 10 MB | 102.40 KB | ", false);
        check(&[(100, 2, 10), (1000, 20, 20)], "1000 | 20.00 s | 20.000 ms | 1.00 | 20 MB | 20.48 KB | 0.20", false);
        let more = [(100, 20, 10), (1000, 20, 20), (10_000, 400, 400)];
        check(&more, "10000 | 400.00 s | 40.000 ms | 2.00 **!** | 400 MB | 40.96 KB | 2.00 **!**", true);
    }
}
