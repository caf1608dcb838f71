//! `cargo xtask check`: one stage after the other, each with its wall time. A failed stage stops only those that need it.

use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::{bindings, packages, peers, programs, site, supply, test_programs, web, workflows};

/// Runs every stage and prints a table of them; true if all passed.
pub(crate) fn check(root: &Path) -> bool {
    let started = Instant::now();
    // The servers come over the network while the compiler has the processor; only the tests need them.
    let peers = {
        let root = root.to_owned();
        thread::spawn(move || {
            let installed = timed("peers", || peers::install(&root, &[]).map(drop));
            // Its packages are those of the tests of the page, too.
            let page = timed("web", || web::web(&root, web::Built::Compared));
            [installed, page, timed("programs", || programs::ensure().and_then(|()| programs::ensure_clocks()))]
        })
    };

    let mut stages = vec![
        cargo(root, "fmt", &["fmt", "--all", "--check"], None),
        cargo(root, "clippy", &[&LINT[..], &["--", "-D", "warnings"]].concat(), None),
    ];
    println!("\n==> build: cargo {} --no-run", test_programs::TEST.join(" "));
    let mut programs = Vec::new();
    let build = timed("build", || test_programs::build(root).map(|built| programs = built));
    let built = build.outcome.passed();
    stages.push(build);
    stages.extend(peers.join().expect("the thread that installs the peers does not panic"));
    if built {
        // Also without its peers: whatever does not need the missing one still says something.
        println!("\n==> tests: {} programs", programs.len());
        stages.push(timed("tests", || test_programs::run(root, &programs)));
        stages.push(cargo(root, "examples", &[&test_programs::TEST[..], &["--doc"]].concat(), None));
    } else {
        stages.extend(["tests", "examples"].map(|name| not_run(name, "build")));
    }
    let bound = if built { timed("bindings", || bindings::bindings(root, &[])) } else { not_run("bindings", "build") };
    // They wait for package managers, and the documentation for the compiler.
    let packages = bound.outcome.passed().then(|| {
        let root = root.to_owned();
        thread::spawn(move || timed("packages", || packages::check(&root)))
    });
    stages.push(bound);
    stages.push(timed("workflows", || workflows::workflows(root)));
    println!("\n==> site: the documentation");
    stages.push(timed("site", || site::site(root)));
    println!("\n==> supply: what the crates may be");
    stages.push(timed("supply", || supply::supply(root)));
    stages.push(cargo(root, "docs", &[&["doc", "--workspace", "--no-deps"], &bindings::AS_FOR_TESTS[..]].concat(), WARNINGS_OF_DOCS));
    let packages = packages.map(|stage| stage.join().expect("the thread that installs packages does not panic"));
    stages.push(packages.unwrap_or_else(|| not_run("packages", "bindings")));

    println!();
    for stage in &stages {
        println!("{stage}");
    }
    conclude(&stages, started.elapsed())
}

/// Also the fuzz targets, which no test needs.
const LINT: [&str; 5] = ["clippy", "--workspace", "--all-targets", "--features", "mcproof-fuzz/libfuzzer"];
const WARNINGS_OF_DOCS: Option<(&str, &str)> = Some(("RUSTDOCFLAGS", "-D warnings"));

fn conclude(stages: &[Stage], took: Duration) -> bool {
    let unhappy: Vec<&str> = stages.iter().filter(|stage| !stage.outcome.passed()).map(|stage| stage.name).collect();
    let seconds = took.as_secs_f64();
    if unhappy.is_empty() {
        println!("check passed in {seconds:.0} s");
    } else {
        println!("check FAILED after {seconds:.0} s: {}", unhappy.join(", "));
    }
    unhappy.is_empty()
}

struct Stage {
    name: &'static str,
    took: Duration,
    outcome: Outcome,
}

enum Outcome {
    Passed,
    Failed { why: String },
    NotRun { needs: &'static str },
}

impl Outcome {
    fn passed(&self) -> bool {
        matches!(self, Self::Passed)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:<9} {:>7.1} s  ", self.name, self.took.as_secs_f64())?;
        match &self.outcome {
            Outcome::Passed => write!(formatter, "passed"),
            Outcome::Failed { why } => write!(formatter, "FAILED: {why}"),
            Outcome::NotRun { needs } => write!(formatter, "not run, it needs {needs}"),
        }
    }
}

fn not_run(name: &'static str, needs: &'static str) -> Stage {
    Stage { name, took: Duration::ZERO, outcome: Outcome::NotRun { needs } }
}

fn timed(name: &'static str, work: impl FnOnce() -> Result<(), String>) -> Stage {
    let started = Instant::now();
    let outcome = match work() {
        Ok(()) => Outcome::Passed,
        Err(why) => Outcome::Failed { why },
    };
    Stage { name, took: started.elapsed(), outcome }
}

/// One cargo command with its output left as it is, so that the closing lines of the tests stay visible in CI.
fn cargo(root: &Path, name: &'static str, arguments: &[&str], variable: Option<(&str, &str)>) -> Stage {
    println!("\n==> {name}: cargo {}", arguments.join(" "));
    timed(name, || {
        let status = Command::new("cargo")
            .args(arguments)
            .envs(variable)
            .current_dir(root)
            .stdin(Stdio::null())
            .status()
            .map_err(|error| format!("cannot start cargo: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("cargo ended with {status}")) }
    })
}
