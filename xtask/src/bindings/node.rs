//! The npm package: packed with a program and its addon inside, installed into an empty project, and tested there. Knows npm and the package's
//! own scripts, not what they bring.

use std::env::consts;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::packages::{self, Program};
use crate::{notice, peers};

/// Packs the package with `program` inside, and runs its tests where it is installed from the tarballs.
///
/// # Errors
/// A text that says which step failed, with what it printed.
pub(crate) fn test(root: &Path, program: &Path) -> Result<(), String> {
    let place = Place::of(root);
    place.install(&place.pack_own(root, program)?)?;
    // The types first: a test that does not compile would otherwise fail in words of the runner.
    peers::run(place.node("typescript/bin/tsc").args(["--project", "."]))?;
    peers::run(place.node("vitest/vitest.mjs").arg("run"))
}

/// Packs and installs it, and prints how long its calls and suites take.
///
/// # Errors
/// A text that says which step failed, with what it printed.
pub(crate) fn bench(root: &Path, program: &Path) -> Result<(), String> {
    let place = Place::of(root);
    place.install(&place.pack_own(root, program)?)?;
    for bench in ["latency.mjs", "suites.mjs"] {
        let status = place.command("node").arg(Path::new("benches").join(bench)).status();
        let status = status.map_err(|error| format!("cannot start node: {error}"))?;
        if !status.success() {
            return Err(format!("{bench} ended with {status}"));
        }
    }
    Ok(())
}

/// Packs a program for a platform, as it is published.
///
/// # Errors
/// A text that says which step failed, with what it printed.
pub(crate) fn tarballs(
    root: &Path,
    program: &Program,
    platform: &str,
    repository: Option<&str>,
    out: &Path,
) -> Result<Vec<PathBuf>, String> {
    let mut more = vec!["--platform", platform];
    more.extend(repository.iter().flat_map(|repository| ["--repository", repository]));
    Place::of(root).pack(root, program, &more, out)
}

/// The tarballs that were tested last.
///
/// # Errors
/// There are none.
pub(crate) fn made(root: &Path) -> Result<Vec<PathBuf>, String> {
    tarballs_in(&Place::of(root).target)
}

fn tarballs_in(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut tarballs = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| cannot("read", folder, &error))? {
        let path = entry.map_err(|error| cannot("read", folder, &error))?.path();
        if path.extension().is_some_and(|extension| extension == "tgz") {
            tarballs.push(path);
        }
    }
    Ok(tarballs)
}

/// Installs what a lock file names into a folder; once per lock file.
///
/// # Errors
/// A text that says which step failed, with what it printed.
pub(crate) fn install_locked(source: &Path, target: &Path) -> Result<(), String> {
    fs::create_dir_all(target).map_err(|error| cannot("create", target, &error))?;
    let lock = source.join("package-lock.json");
    let wanted = fs::read_to_string(&lock).map_err(|error| cannot("read", &lock, &error))?;
    if wanted.contains("\"resolved\":") {
        return Err(format!("{} names a registry; write it again as peers/README.md says", lock.display()));
    }
    let stamp = target.join("installed");
    if fs::read_to_string(&stamp).is_ok_and(|present| present == wanted) {
        return Ok(());
    }
    for file in TOOLS {
        let (from, to) = (source.join(file), target.join(file));
        fs::copy(&from, &to).map_err(|error| cannot("copy", &from, &error))?;
    }
    peers::run(npm("ci").current_dir(target))?;
    fs::write(&stamp, wanted).map_err(|error| cannot("write", &stamp, &error))
}

struct Place {
    source: PathBuf,
    /// The tarballs, and what compiles and tests them: modules are also looked for in the folders above the project.
    target: PathBuf,
    /// Has the tarballs installed, and nothing else.
    project: PathBuf,
}

impl Place {
    fn of(root: &Path) -> Self {
        let target = root.join("target/bindings/node");
        Self { source: root.join("bindings/node"), project: target.join("project"), target }
    }

    /// Gives back the tarballs for this machine.
    fn pack_own(&self, root: &Path, program: &Path) -> Result<Vec<PathBuf>, String> {
        self.pack(
            root,
            &Program { program: program.to_owned(), addon: Some(addon_beside(program)?), ..Program::default() },
            &[],
            &self.target,
        )
    }

    fn pack(&self, root: &Path, program: &Program, more: &[&str], out: &Path) -> Result<Vec<PathBuf>, String> {
        self.install_tools()?;
        fs::create_dir_all(out).map_err(|error| cannot("create", out, &error))?;
        for old in tarballs_in(out)? {
            fs::remove_file(&old).map_err(|error| cannot("remove", &old, &error))?;
        }
        let script = self.source.join("scripts/pack.mjs");
        let mut packs = Command::new("node");
        let platform = more.iter().skip_while(|word| **word != "--platform").nth(1).copied().unwrap_or_default();
        let notices = self.target.join(notice::FILE);
        fs::write(&notices, notice::of_program(root, packages::triple_of(platform))?).map_err(|error| cannot("write", &notices, &error))?;
        packs
            .arg(script)
            .arg("--notices")
            .arg(&notices)
            .arg("--binary")
            .arg(&program.program)
            .args(more)
            .arg("--tools")
            .arg(&self.target)
            .arg("--out")
            .arg(out);
        if let Some(addon) = &program.addon {
            packs.arg("--addon").arg(addon);
        }
        peers::run(&mut packs)?;
        tarballs_in(out)
    }

    /// The compiler, the test runners and the SDKs, as the lock file of the tests has them.
    fn install_tools(&self) -> Result<(), String> {
        install_locked(&self.source.join("tests"), &self.target)
    }

    /// Installs the tarballs into an empty project, and puts the tests and benchmarks beside them.
    fn install(&self, tarballs: &[PathBuf]) -> Result<(), String> {
        match fs::remove_dir_all(&self.project) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(cannot("remove", &self.project, &error)),
            _ => {}
        }
        copy(&self.source.join("tests"), &self.project)?;
        copy(&self.source.join("benches"), &self.project.join("benches"))?;
        let manifest = self.project.join("package.json");
        fs::write(&manifest, "{ \"private\": true, \"type\": \"module\" }\n").map_err(|error| cannot("write", &manifest, &error))?;
        peers::run(npm("install").args(["--offline", "--no-package-lock"]).args(tarballs).current_dir(&self.project))
    }

    /// A tool on the project.
    fn node(&self, tool: &str) -> Command {
        let mut command = self.command("node");
        command.arg(self.target.join("node_modules").join(tool));
        command
    }

    /// The program is the installed one, whatever the developer's shell says.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.project).env_remove("MCPROOF_BINARY");
        command
    }
}

/// The engine as a library, where cargo puts it.
fn addon_beside(program: &Path) -> Result<PathBuf, String> {
    let name = format!("{}mcproof_node{}", consts::DLL_PREFIX, consts::DLL_SUFFIX);
    let addon = program.with_file_name(&name);
    if addon.is_file() {
        Ok(addon)
    } else {
        Err(format!("beside {} there is no {name}: build the package mcproof-node as well", program.display()))
    }
}

/// What belongs to the tools, which lie one folder above the project.
const TOOLS: [&str; 2] = ["package.json", "package-lock.json"];

fn npm(verb: &str) -> Command {
    let mut command = Command::new("npm");
    command.args([verb, "--ignore-scripts", "--no-audit", "--no-fund"]);
    command
}

/// Copies a folder, but for what describes the tools or was installed by hand.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::create_dir_all(to).map_err(|error| cannot("create", to, &error))?;
    for entry in fs::read_dir(from).map_err(|error| cannot("read", from, &error))? {
        let entry = entry.map_err(|error| cannot("read", from, &error))?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() && entry.file_name() != "node_modules" {
            copy(&path, &target)?;
        } else if path.is_file() && TOOLS.iter().all(|tool| entry.file_name() != *tool) {
            fs::copy(&path, &target).map_err(|error| cannot("copy", &path, &error))?;
        }
    }
    Ok(())
}

fn cannot(verb: &str, path: &Path, error: &io::Error) -> String {
    format!("cannot {verb} {}: {error}", path.display())
}
