//! `cargo xtask bindings`: each package for another language, built with the program inside, installed from the built artefact, and
//! tested there. Knows cargo; the languages know their own tools.

mod node;
mod python;

pub(crate) use node::{install_locked, tarballs};
pub(crate) use python::{environment, wheel};

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::peers;

type Chore = fn(&Path, &Path) -> Result<(), String>;

const TESTS: [(&str, Chore); 2] = [("python", python::test), ("node", node::test)];
const BENCHES: [(&str, Chore); 2] = [("python", python::bench), ("node", node::bench)];

/// Runs what the arguments ask for: names of bindings (all if there are none), `--release` or `--program PATH` for what goes into
/// them, and `--bench` instead of the tests.
///
/// # Errors
/// One text that tells of every binding that failed.
pub(crate) fn bindings(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let (mut chores, mut names, mut profile, mut program) = (TESTS, Vec::new(), Profile::Development, None);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match *argument {
            "--bench" => chores = BENCHES,
            "--release" => profile = Profile::Release,
            "--program" => program = Some(arguments.next().ok_or("--program needs a path")?),
            flag if flag.starts_with("--") => return Err(format!("no flag is called {flag}; there are --release, --program and --bench")),
            name => names.push(name),
        }
    }
    if let Some(unknown) = names.iter().find(|name| chores.iter().all(|(known, _)| known != *name)) {
        return Err(format!("no binding is called `{unknown}`; there are {}", chores.map(|(name, _)| name).join(", ")));
    }
    let is_wanted = |name: &str| names.is_empty() || names.contains(&name);
    let program = match program {
        Some(path) => std::path::absolute(path).map_err(|error| format!("{path} is not a valid path: {error}"))?,
        None => {
            let packages: &[&str] = if is_wanted("node") { &["mcproof", "mcproof-node"] } else { &["mcproof"] };
            build(root, profile, packages)?
        }
    };
    let mut failures = Vec::new();
    for (name, chore) in chores {
        if is_wanted(name) {
            let started = Instant::now();
            match chore(root, &program) {
                Ok(()) => println!("bindings: {name} passed in {:.1} s", started.elapsed().as_secs_f64()),
                Err(why) => failures.push(format!("{name}: {why}")),
            }
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// What was made when the bindings were tested last.
///
/// # Errors
/// They were not.
pub(crate) fn made(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut made = node::made(root)?;
    made.push(python::made(root)?);
    Ok(made)
}

/// Without them most dependencies would be built again, only because a test wants a clock that stands still.
pub(crate) const AS_FOR_TESTS: [&str; 2] = ["--features", "tokio/test-util"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Profile {
    /// What the tests of this repository have anyhow built.
    Development,
    /// What is shipped.
    Release,
}

/// Gives back the program, beside which the rest is.
fn build(root: &Path, profile: Profile, packages: &[&str]) -> Result<PathBuf, String> {
    let mut build = Command::new("cargo");
    build.args(["build", "--quiet"]).args(packages.iter().flat_map(|package| ["--package", package])).current_dir(root);
    match profile {
        Profile::Development => build.args(AS_FOR_TESTS),
        Profile::Release => build.args(["--profile", "dist"]),
    };
    peers::run(&mut build)?;
    let folder = if profile == Profile::Release { "dist" } else { "debug" };
    Ok(root.join("target").join(folder).join("mcproof"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_done_is_told_before_anything_is_built() {
        let check = |arguments: &[&str], expected: &str| {
            let failure = bindings(Path::new("/nowhere"), arguments).unwrap_err();
            assert!(failure.contains(expected), "{arguments:?}: {failure}");
        };
        check(&["nobody"], "no binding is called `nobody`; there are python, node");
        check(&["node", "--relase"], "no flag is called --relase; there are --release");
        check(&["--program"], "--program needs a path");
    }
}
