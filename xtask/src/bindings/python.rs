//! The Python package: a wheel that hatchling makes, installed where nothing else of this repository is, and tested there. Knows
//! hatchling, pip and what runs the tests, not what they bring.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{notice, packages, peers};

/// Builds the wheel, and runs its types' and its own tests where it is installed: all with the newest generation of servers, and
/// what server objects do in memory with the generation before, too.
///
/// # Errors
/// A text that says which step failed, with what it printed.
pub(crate) fn test(root: &Path, program: &Path) -> Result<(), String> {
    let place = Place::of(root);
    let newest = place.tools("test")?;
    let before = place.tools("sdk1")?;
    let wheel = place.build(root, &newest, program, OWN_PLATFORM, &place.wheels())?;

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
    let wheel = place.build(root, &tools, program, OWN_PLATFORM, &place.wheels())?;
    let installed = place.install(&tools, &wheel)?;
    let status = place.command(&installed).arg("benches/latency.py").status();
    let status = status.map_err(|error| format!("cannot start {}: {error}", installed.display()))?;
    if status.success() { Ok(()) } else { Err(format!("latency.py ended with {status}")) }
}

/// Builds a wheel of a program for a platform, as it is published.
///
/// # Errors
/// A text that says which step failed, with what it printed.
pub(crate) fn wheel(root: &Path, program: &Path, platform: &str, folder: &Path) -> Result<PathBuf, String> {
    let place = Place::of(root);
    place.build(root, &place.tools("test")?, program, platform, folder)
}

/// The wheel that was tested last.
///
/// # Errors
/// There is none.
pub(crate) fn made(root: &Path) -> Result<PathBuf, String> {
    only_wheel(&Place::of(root).wheels())
}

fn only_wheel(folder: &Path) -> Result<PathBuf, String> {
    let entries = fs::read_dir(folder).map_err(|error| cannot("read", folder, &error))?;
    let wheels: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    match wheels.as_slice() {
        [wheel] => Ok(wheel.clone()),
        _ => Err(format!("{} has {} files instead of one wheel", folder.display(), wheels.len())),
    }
}

/// The wheel is for this machine: it does not matter how old a system it would run on.
const OWN_PLATFORM: &str = "linux_x86_64";

/// A virtual environment with what a lock file names; once per lock file.
///
/// # Errors
/// A text that says which step failed, with what it printed.
pub(crate) fn environment(lock: &Path, folder: &Path) -> Result<PathBuf, String> {
    let text = fs::read_to_string(lock).map_err(|error| cannot("read", lock, &error))?;
    let wanted = format!("{}\n{}\n{text}", peers::version_of("python3").unwrap_or_default(), folder.display());
    let stamp = folder.join("installed");
    if fs::read_to_string(&stamp).is_ok_and(|present| present == wanted) {
        return Ok(folder.to_owned());
    }
    peers::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
    peers::run(
        Command::new(folder.join("bin/python"))
            .args(["-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps", "--requirement"])
            .arg(lock),
    )?;
    fs::write(&stamp, wanted).map_err(|error| cannot("write", &stamp, &error))?;
    Ok(folder.to_owned())
}

struct Place {
    source: PathBuf,
    target: PathBuf,
}

impl Place {
    fn of(root: &Path) -> Self {
        Self { source: root.join("bindings/python"), target: root.join("target/bindings/python") }
    }

    /// A virtual environment with what one lock file names.
    fn tools(&self, name: &str) -> Result<PathBuf, String> {
        environment(&self.source.join("requirements").join(format!("{name}.txt")), &self.target.join(name))
    }

    fn wheels(&self) -> PathBuf {
        self.target.join("wheels")
    }

    /// Gives back the wheel for a platform, in a folder that holds no other. Only what git knows goes into it.
    fn build(&self, root: &Path, tools: &Path, program: &Path, platform: &str, folder: &Path) -> Result<PathBuf, String> {
        let (checkout, out) = (self.target.join("checkout"), folder);
        remove(&checkout)?;
        remove(out)?;
        let listed = Command::new("git").args(["ls-files", "-z", "--", "Cargo.toml", "bindings/python"]).current_dir(root).output();
        let listed = listed.map_err(|error| format!("cannot start git: {error}"))?;
        for file in String::from_utf8_lossy(&listed.stdout).split('\0').filter(|file| !file.is_empty()) {
            let to = checkout.join(file);
            let folder = to.parent().unwrap_or(&checkout);
            fs::create_dir_all(folder).map_err(|error| cannot("create", folder, &error))?;
            fs::copy(root.join(file), &to).map_err(|error| cannot("copy", &root.join(file), &error))?;
        }
        let source = checkout.join("bindings/python");
        for license in ["LICENSE-APACHE", "LICENSE-MIT"] {
            fs::copy(root.join(license), source.join(license)).map_err(|error| cannot("copy", &root.join(license), &error))?;
        }
        let notices = source.join(notice::FILE);
        fs::write(&notices, notice::of_program(root, packages::triple_of(platform))?).map_err(|error| cannot("write", &notices, &error))?;
        let packed = checkout.join("mcproof");
        fs::copy(program, &packed).map_err(|error| cannot("copy", program, &error))?;
        if platform.contains("linux") {
            // Half of a development build is what only a debugger reads.
            peers::run(Command::new("strip").arg("--strip-unneeded").arg(&packed))?;
        }
        let mut hatchling = Command::new(tools.join("bin/hatchling"));
        hatchling.args(["build", "--target", "wheel", "--directory"]).arg(out);
        peers::run(hatchling.env("MCPROOF_PROGRAM", &packed).env("MCPROOF_PLATFORM", platform).current_dir(&source))?;
        only_wheel(out)
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
