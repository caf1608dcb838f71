//! The test programs of the workspace, some at a time: many spend their time waiting for servers and deadlines. Knows what cargo
//! says of the programs and starts each as cargo would; knows nothing of what they test.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// One test program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// What repeats it.
    command: String,
    file: PathBuf,
    /// The folder of its package, where cargo starts it.
    folder: PathBuf,
}

/// Do much at a time by themselves, so that two of them would be in each other's way: what they test has deadlines. From the longest
/// on, since what is begun last is waited for with idle processors.
const CROWDED: [&str; 5] =
    ["mcproof --test zoo", "mcproof --test contract", "mcproof --test field", "mcproof-testkit --test zoo", "mcproof --test hostile"];

/// Those of the others that take long, from the longest on.
const LONG: [&str; 4] = ["mcproof --test init", "mcproof-watch --test store", "mcproof --test real_servers", "mcproof --test inspector"];

/// What builds and runs them, as words for cargo.
pub(crate) const TEST: [&str; 2] = ["test", "--workspace"];

/// Builds the programs of all packages.
///
/// # Errors
/// Says how cargo ended; what the compiler found is on stderr.
pub(crate) fn build(root: &Path) -> Result<Vec<Program>, String> {
    let mut cargo = Command::new("cargo")
        .args(TEST)
        .args(["--no-run", "--message-format=json-render-diagnostics"])
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    let mut programs = Vec::new();
    for line in BufReader::new(cargo.stdout.take().expect("stdout is piped")).lines() {
        let line = line.map_err(|error| format!("cannot read what cargo says: {error}"))?;
        programs.extend(program(&line)?);
    }
    let status = cargo.wait().map_err(|error| format!("cannot wait for cargo: {error}"))?;
    if !status.success() {
        return Err(format!("cargo ended with {status}"));
    }
    if programs.is_empty() {
        return Err("cargo named no test program".into());
    }
    sort(&mut programs);
    Ok(programs)
}

/// The crowded ones, and beside them one other at a time: two cores have no more to give, and what waits for a processor misses deadlines.
const AT_ONCE: usize = 2;

const NO_PANIC: &str = "the threads that run the programs do not panic";

/// Runs all programs to their end, some at a time, and prints what each of them said as soon as it is done. What failed is not run
/// again: a test that passes the second time has a defect that nobody would look for.
///
/// # Errors
/// Names those that failed, by the commands that repeat them.
pub(crate) fn run<'a>(root: &Path, programs: &'a [Program]) -> Result<(), String> {
    let logs = root.join("target/tests");
    fs::create_dir_all(&logs).map_err(|error| format!("cannot create {}: {error}", logs.display()))?;
    let libraries = libraries()?;
    let (crowded, others): (Vec<_>, Vec<_>) = programs.iter().partition(|program| place(program, &CROWDED) < CROWDED.len());
    let (others, failed) = (Mutex::new(others.into_iter()), Mutex::new(Vec::new()));
    let run = |program: &'a Program| {
        let ran = start(program, &logs, &libraries);
        let mut failed = failed.lock().expect(NO_PANIC);
        println!("\n{ran}");
        failed.extend((!ran.passed()).then_some(program));
    };
    let next = || others.lock().expect(NO_PANIC).next();
    thread::scope(|scope| {
        scope.spawn(|| crowded.into_iter().chain(std::iter::from_fn(next)).for_each(run));
        for _ in 1..AT_ONCE {
            scope.spawn(|| std::iter::from_fn(next).for_each(run));
        }
    });
    let failed = failed.into_inner().expect(NO_PANIC);
    if failed.is_empty() {
        return Ok(());
    }
    let commands: String = failed.iter().map(|program| format!("\n  CI=true {}", program.command)).collect();
    Err(format!("{} of {} test programs failed; repeat them with{commands}", failed.len(), programs.len()))
}

/// What became of a program.
struct Ran<'a> {
    command: &'a str,
    took: Duration,
    ended: Result<ExitStatus, String>,
    said: String,
}

impl Ran<'_> {
    fn passed(&self) -> bool {
        self.ended.as_ref().is_ok_and(ExitStatus::success)
    }
}

impl std::fmt::Display for Ran<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { command, took, ended, said } = self;
        let seconds = took.as_secs_f64();
        writeln!(formatter, "==> {command}")?;
        writeln!(formatter, "{}", said.trim_end())?;
        match ended {
            Ok(status) if status.success() => write!(formatter, "==> passed in {seconds:.1} s: {command}"),
            Ok(status) => write!(formatter, "==> FAILED after {seconds:.1} s, {status}: {command}"),
            Err(why) => write!(formatter, "==> FAILED, {why}: {command}"),
        }
    }
}

/// What it says goes into one file, as it comes: so a person can look at a program that hangs, and what a test has left running
/// keeps no pipe open.
fn start<'a>(program: &'a Program, logs: &Path, libraries: &Path) -> Ran<'a> {
    let started = Instant::now();
    let log = logs.join(program.file.file_name().unwrap_or_default()).with_extension("log");
    let ended = File::create(&log).and_then(|file| Ok((file.try_clone()?, file))).and_then(|(stdout, stderr)| {
        Command::new(&program.file)
            .current_dir(&program.folder)
            .env("CARGO_MANIFEST_DIR", &program.folder)
            .env("LD_LIBRARY_PATH", libraries)
            // Commands have other defaults in CI: everywhere the same are tested.
            .env("CI", "true")
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .status()
    });
    let said = fs::read(&log).unwrap_or_default();
    Ran {
        command: &program.command,
        took: started.elapsed(),
        ended: ended.map_err(|error| format!("it cannot be started: {error}")),
        said: String::from_utf8_lossy(&said).into_owned(),
    }
}

/// The standard library as a shared one: the tests of procedural macros are linked with it.
fn libraries() -> Result<PathBuf, String> {
    let output = Command::new("rustc").args(["--print", "target-libdir"]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot start rustc: {error}"))?;
    let path = String::from_utf8(output.stdout).map_err(|error| format!("path from rustc is not UTF-8: {error}"))?;
    Ok(path.trim_end().into())
}

/// The test program that one of cargo's messages tells of, if it does.
fn program(message: &str) -> Result<Option<Program>, String> {
    let message: Value = serde_json::from_str(message).map_err(|error| format!("message from cargo is not valid JSON: {error}"))?;
    let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
    let (true, Some(file)) = (is_test, message["executable"].as_str()) else { return Ok(None) };
    let text = |value: &Value| value.as_str().map(str::to_owned).ok_or_else(|| format!("cargo left out the place of {file}"));
    let manifest = PathBuf::from(text(&message["manifest_path"])?);
    let folder = manifest.parent().ok_or_else(|| format!("{} lies in no folder", manifest.display()))?;
    let (package, name) = (package(&text(&message["package_id"])?), text(&message["target"]["name"])?);
    let target = match message["target"]["kind"][0].as_str() {
        Some("test") => format!("--test {name}"),
        Some("bin") => format!("--bin {name}"),
        _ => "--lib".to_owned(),
    };
    Ok(Some(Program { command: format!("cargo test -p {package} {target}"), file: file.into(), folder: folder.to_owned() }))
}

/// The name in a package id: `path+file:///folder/name#1.0.0`, or `…/folder#name@1.0.0` where the folder is called otherwise.
fn package(id: &str) -> String {
    let (path, version) = id.rsplit_once('#').unwrap_or((id, ""));
    let name = version.split_once('@').map_or_else(|| path.rsplit('/').next().unwrap_or(path), |(name, _)| name);
    name.to_owned()
}

fn sort(programs: &mut [Program]) {
    programs.sort_by_key(|program| (place(program, &CROWDED), place(program, &LONG)));
}

/// Where a program stands in a list, or the end of it.
fn place(program: &Program, list: &[&str]) -> usize {
    list.iter().position(|name| program.command.ends_with(name)).unwrap_or(list.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: &str, name: &str, id: &str, is_test: bool) -> String {
        serde_json::json!({
            "reason": "compiler-artifact",
            "package_id": id,
            "manifest_path": "/w/crates/cli/Cargo.toml",
            "target": { "kind": [kind], "name": name },
            "profile": { "test": is_test },
            "executable": "/w/target/debug/deps/x-1",
        })
        .to_string()
    }

    #[test]
    fn a_test_program_is_told_from_what_cargo_says() {
        let check = |message: &str, expected: Option<&str>| {
            let found = program(message).unwrap();
            assert_eq!(found.as_ref().map(|program| program.command.as_str()), expected, "{message}");
            assert!(found.is_none_or(|program| program.folder == Path::new("/w/crates/cli")));
        };
        let id = "path+file:///w/crates/cli#mcproof@0.1.0";
        check(&message("test", "zoo", id, true), Some("cargo test -p mcproof --test zoo"));
        check(&message("bin", "mcproof", id, true), Some("cargo test -p mcproof --bin mcproof"));
        check(&message("lib", "mcproof", "path+file:///w/crates/mcproof-test#0.1.0", true), Some("cargo test -p mcproof-test --lib"));
        check(&message("proc-macro", "m", "path+file:///w/crates/m#0.1.0", true), Some("cargo test -p m --lib"));
        check(&message("bin", "mcproof", id, false), None);
        check(r#"{"reason":"build-finished","success":true}"#, None);
        program("noise").unwrap_err();
    }

    fn named(command: &str, file: &str) -> Program {
        Program { command: command.into(), file: file.into(), folder: "/".into() }
    }

    #[test]
    fn the_longest_are_begun_first() {
        let mut programs = ["cargo test -p a --lib", "cargo test -p mcproof --test init", "cargo test -p mcproof --test zoo"]
            .map(|command| named(command, "/x"));
        sort(&mut programs);
        let order: Vec<&str> = programs.iter().map(|program| program.command.rsplit(' ').next().unwrap()).collect();
        assert_eq!(order, ["zoo", "init", "--lib"]);
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("crates");
        for name in CROWDED.iter().chain(&LONG) {
            let (package, test) = name.split_once(" --test ").unwrap();
            let package = if package == "mcproof" { "cli" } else { package.trim_start_matches("mcproof-") };
            let source = crates.join(package).join("tests").join(test);
            assert!(source.with_extension("rs").exists() || source.join("main.rs").exists(), "{name}");
        }
    }

    #[test]
    fn each_failure_is_named_with_what_repeats_it() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert_eq!(run(folder, &[named("right", "/bin/true")]), Ok(()));
        let failure = run(folder, &[named("wrong", "/bin/false"), named("right", "/bin/true"), named("gone", "/no/such")]).unwrap_err();
        assert!(failure.starts_with("2 of 3 test programs failed; repeat them with\n"), "{failure}");
        assert!(failure.contains("\n  CI=true wrong") && failure.contains("\n  CI=true gone") && !failure.contains("right"), "{failure}");
    }

    #[test]
    fn a_program_that_would_pass_the_second_time_fails() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let once = tempfile::tempdir().unwrap();
        let script = once.path().join("fails-once");
        fs::write(&script, "#!/bin/sh\ntest -e \"$0.ran\" || { touch \"$0.ran\"; exit 1; }\n").unwrap();
        fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        run(folder, &[named("flaky", script.to_str().unwrap())]).unwrap_err();
    }
}
