//! The Python package: a wheel that maturin makes, installed where nothing else of this repository is, and tested there. Knows maturin,
//! pip and what runs the tests, not what they bring.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::AS_FOR_TESTS;
use crate::peers;

/// Builds the wheel, and runs its types' and its own tests where it is installed: all with the newest generation of servers, and
/// what server objects do in memory with the generation before, too.
///
/// # Errors
/// A text that says which step failed, with what it printed.
pub(crate) fn test(root: &Path, program: &Path) -> Result<(), String> {
    let place = Place::of(root);
    let newest = place.tools("test")?;
    let before = place.tools("sdk1")?;
    let wheel = place.build(root, &newest, program)?;

    // The types first: a test that does not fit them would otherwise fail in words of the runner.
    let installed = place.install(&newest, &wheel)?;
    for what in [["-p", "mcproof"].as_slice(), &["tests", "benches"]] {
        let cache = place.target.join("mypy");
        peers::run(
            place.python(&newest).args(["-m", "mypy", "--cache-dir"]).arg(cache).arg("--python-executable").arg(&installed).args(what),
        )?;
    }
    place.pytest(&installed, &["-n", "2", "tests"])?;

    let installed = place.install(&before, &wheel)?;
    place.pytest(&installed, &["-k", "not stdio and not http", "tests/guide", "tests/test_client.py", "tests/test_sdks.py"])
}

/// Builds and installs the wheel, and prints how long its calls take.
///
/// # Errors
/// A text that says which step failed, with what it printed.
pub(crate) fn bench(root: &Path, program: &Path) -> Result<(), String> {
    let place = Place::of(root);
    let tools = place.tools("test")?;
    let wheel = place.build(root, &tools, program)?;
    let installed = place.install(&tools, &wheel)?;
    let status = place.command(&installed).arg("benches/latency.py").status();
    let status = status.map_err(|error| format!("cannot start {}: {error}", installed.display()))?;
    if status.success() { Ok(()) } else { Err(format!("latency.py ended with {status}")) }
}

struct Place {
    source: PathBuf,
    target: PathBuf,
}

impl Place {
    fn of(root: &Path) -> Self {
        Self { source: root.join("bindings/python"), target: root.join("target/bindings/python") }
    }

    /// A virtual environment with what one lock file names; once per lock file.
    fn tools(&self, name: &str) -> Result<PathBuf, String> {
        let folder = self.target.join(name);
        let lock = self.source.join("requirements").join(format!("{name}.txt"));
        let text = fs::read_to_string(&lock).map_err(|error| cannot("read", &lock, &error))?;
        let wanted = format!("{}\n{}\n{text}", peers::version_of("python3").unwrap_or_default(), folder.display());
        let stamp = folder.join("installed");
        if fs::read_to_string(&stamp).is_ok_and(|present| present == wanted) {
            return Ok(folder);
        }
        peers::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        peers::run(
            Command::new(folder.join("bin/python"))
                .args(["-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps", "--requirement"])
                .arg(&lock),
        )?;
        fs::write(&stamp, wanted).map_err(|error| cannot("write", &stamp, &error))?;
        Ok(folder)
    }

    /// Gives back the wheel. maturin asks cargo for the program again, which has it.
    fn build(&self, root: &Path, tools: &Path, program: &Path) -> Result<PathBuf, String> {
        let profile = ["dev", "release", "dist"].into_iter().find(|profile| {
            let folder = if *profile == "dev" { "debug" } else { profile };
            program == root.join("target").join(folder).join("mcproof")
        });
        let Some(profile) = profile else {
            return Err(format!("maturin builds the program itself, and cannot take {}: leave --program out", program.display()));
        };
        let folder = self.target.join("wheels");
        remove(&folder)?;
        let mut maturin = Command::new(tools.join("bin/maturin"));
        // The wheel is for this machine: it does not matter how old a system it would run on.
        maturin.args(["build", "--profile", profile, "--compatibility", "linux", "--compression-level", "1", "--out"]).arg(&folder);
        if profile == "dev" {
            maturin.args(AS_FOR_TESTS);
        }
        peers::run(maturin.current_dir(&self.source))?;
        let entries = fs::read_dir(&folder).map_err(|error| cannot("read", &folder, &error))?;
        let wheels: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
        match wheels.as_slice() {
            [wheel] => Ok(wheel.clone()),
            _ => Err(format!("maturin made {} files instead of one wheel", wheels.len())),
        }
    }

    /// Installs the wheel into a fresh environment, which sees the tools too, and gives back its interpreter.
    fn install(&self, tools: &Path, wheel: &Path) -> Result<PathBuf, String> {
        let fresh = self.target.join("fresh");
        remove(&fresh)?;
        peers::run(Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&fresh))?;
        let python = fresh.join("bin/python");
        let pip = ["-m", "pip", "--quiet", "--python"];
        peers::run(Command::new(tools.join("bin/python")).args(pip).arg(&python).args(["install", "--no-index", "--no-deps"]).arg(wheel))?;
        let (visible, own) = (site_packages(tools)?, site_packages(&fresh)?.join("tools.pth"));
        fs::write(&own, format!("{}\n", visible.display())).map_err(|error| cannot("write", &own, &error))?;
        Ok(python)
    }

    fn pytest(&self, python: &Path, arguments: &[&str]) -> Result<(), String> {
        peers::run(self.command(python).args(["-m", "pytest", "-p", "no:cacheprovider", "--quiet"]).args(arguments))
    }

    fn python(&self, tools: &Path) -> Command {
        self.command(&tools.join("bin/python"))
    }

    /// The program is the installed one, whatever the developer's shell says; the checkout stays as it is.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.source).env_remove("MCPROOF_BINARY").env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

/// Where an environment has its packages: the folder is named for the version of Python.
fn site_packages(environment: &Path) -> Result<PathBuf, String> {
    let folder = environment.join("lib");
    let entries = fs::read_dir(&folder).map_err(|error| cannot("read", &folder, &error))?;
    let found = entries.filter_map(Result::ok).map(|entry| entry.path().join("site-packages")).find(|path| path.is_dir());
    found.ok_or_else(|| format!("{} has no site-packages", folder.display()))
}

fn remove(folder: &Path) -> Result<(), String> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot("remove", folder, &error)),
        _ => Ok(()),
    }
}

fn cannot(verb: &str, path: &Path, error: &io::Error) -> String {
    format!("cannot {verb} {}: {error}", path.display())
}
