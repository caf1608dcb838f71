//! `cargo xtask fuzz`: builds the fuzz targets with coverage, by the stable compiler, and runs them side by side for a while.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

const TARGETS: [&str; 10] = ["lines", "sse", "jsonrpc", "head", "suite", "template", "config", "schema", "contract", "trace"];
/// As long as a person who is there to look at it may want to wait.
const SECONDS: u32 = 60;

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) seconds: u32,
    pub(crate) targets: Vec<&'static str>,
}

impl Plan {
    /// All targets.
    pub(crate) fn all(seconds: u32) -> Self {
        Self { seconds, targets: TARGETS.to_vec() }
    }
}

/// Reads `[--seconds N] [TARGET…]`.
pub(crate) fn parse(arguments: &[&str]) -> Result<Plan, String> {
    let (seconds, names) = match arguments {
        ["--seconds", number, names @ ..] => {
            (number.parse().map_err(|_| format!("--seconds takes a whole number, found `{number}`"))?, names)
        }
        names => (SECONDS, names),
    };
    let target = |name: &&str| {
        let found = TARGETS.iter().find(|target| *target == name);
        found.copied().ok_or_else(|| format!("unknown fuzz target `{name}`; expected one of {}", TARGETS.join(", ")))
    };
    let targets: Vec<_> = names.iter().map(target).collect::<Result<_, _>>()?;
    Ok(if targets.is_empty() { Plan::all(seconds) } else { Plan { seconds, targets } })
}

/// Runs the targets; an error tells what was found and how to see it again.
pub(crate) fn fuzz(root: &Path, plan: &Plan) -> Result<(), String> {
    build(root)?;
    let runs: Vec<_> = plan.targets.iter().map(|target| (*target, start(root, target, plan.seconds))).collect();
    let failures: Vec<String> = runs.into_iter().filter_map(|(target, run)| finish(root, target, run).err()).collect();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

fn build(root: &Path) -> Result<(), String> {
    let status = Command::new("cargo")
        .args(["build", "--package", "mcproof-fuzz", "--features", "libfuzzer", "--bins"])
        .env("RUSTC_WORKSPACE_WRAPPER", root.join("fuzz/instrument"))
        .current_dir(root)
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("cargo ended with {status}")) }
}

type Run = thread::JoinHandle<Result<bool, String>>;

fn start(root: &Path, target: &'static str, seconds: u32) -> Run {
    let root = root.to_owned();
    thread::spawn(move || run(&root, target, seconds).map_err(|error| format!("`{target}` cannot be run: {error}")))
}

/// True if nothing was found. What libFuzzer says goes into a file.
fn run(root: &Path, target: &str, seconds: u32) -> std::io::Result<bool> {
    let work = root.join("target/fuzz");
    let (corpus, found) = (work.join(target), root.join("fuzz/artifacts").join(target));
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&found)?;
    let log = File::create(log_of(root, target))?;
    let mut fuzzer = Command::new(root.join(format!("target/debug/fuzz-{target}")));
    fuzzer.args([format!("-max_total_time={seconds}"), format!("-artifact_prefix={}/", found.display())]);
    fuzzer.args(["-timeout=10", "-rss_limit_mb=1024", "-print_funcs=0", "-print_final_stats=1"]);
    let words = root.join("fuzz/words").join(target);
    if words.exists() {
        fuzzer.arg(format!("-dict={}", words.display()));
    }
    fuzzer.arg(corpus).arg(root.join("fuzz/seeds").join(target));
    Ok(fuzzer.current_dir(root).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).status()?.success())
}

fn log_of(root: &Path, target: &str) -> std::path::PathBuf {
    root.join(format!("target/fuzz/{target}.log"))
}

fn finish(root: &Path, target: &str, run: Run) -> Result<(), String> {
    let passed = run.join().expect("the thread that runs a target does not panic")?;
    let log = fs::read(log_of(root, target)).map_err(|error| format!("cannot read the log of `{target}`: {error}"))?;
    let log = String::from_utf8_lossy(&log);
    if !passed {
        return Err(explain(target, &log));
    }
    let executions = log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    println!("fuzz {target:<8} {:>12} executions, nothing found", executions.ok_or("libFuzzer gave no statistics")?.trim());
    Ok(())
}

/// What broke, and the command that repeats it.
fn explain(target: &str, log: &str) -> String {
    let reason = log.lines().skip_while(|line| !line.contains("panicked at")).nth(1).unwrap_or("no panic: see the log");
    let input = log.lines().find_map(|line| line.split("Test unit written to ").nth(1)).unwrap_or("FILE");
    format!(
        "fuzz target `{target}`: {reason}\n  repeat  target/debug/fuzz-{target} {input}\n  log     target/fuzz/{target}.log\n  \
         keep    once it is fixed, put the input into fuzz/seeds/{target}, which every run begins with"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_and_seconds_are_read() {
        assert_eq!(parse(&[]).unwrap(), Plan::all(SECONDS));
        assert_eq!(parse(&["--seconds", "5", "sse"]).unwrap(), Plan { seconds: 5, targets: vec!["sse"] });
        assert!(parse(&["nothing"]).unwrap_err().contains("unknown fuzz target `nothing`; expected one of lines, sse"));
        assert!(parse(&["--seconds", "x"]).unwrap_err().contains("whole number"));
    }

    #[test]
    fn every_target_has_seeds_and_a_program() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for target in TARGETS {
            assert!(root.join(format!("fuzz/src/bin/{target}.rs")).exists(), "{target}");
            assert!(fs::read_dir(root.join("fuzz/seeds").join(target)).unwrap().count() > 0, "{target}");
        }
        assert_eq!(fs::read_dir(root.join("fuzz/src/bin")).unwrap().count(), TARGETS.len());
    }

    #[test]
    fn a_finding_tells_how_to_repeat_it() {
        let log = "INFO: x\nthread '<unnamed>' panicked at fuzz/src/sse.rs:9:5:\ncut and uncut\nTest unit written to a/crash-1\n";
        let said = explain("sse", log);
        assert!(said.starts_with("fuzz target `sse`: cut and uncut\n  repeat  target/debug/fuzz-sse a/crash-1\n"), "{said}");
    }
}
