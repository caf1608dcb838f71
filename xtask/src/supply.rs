//! `cargo xtask supply`: whether the crates that we build on may be what they are (`deny.toml`). Knows cargo by its command line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program from the registry, built once for each version.
struct Tool {
    package: &'static str,
    version: &'static str,
}

const DENY: Tool = Tool { package: "cargo-deny", version: "0.20.2" };

/// Licences, duplicates and sources; advisories where their database can be reached.
///
/// # Errors
/// Says what could not be done; cargo-deny has said what it found.
pub(crate) fn supply(root: &Path) -> Result<(), String> {
    let deny = ensure(root, &DENY)?;
    let run = |arguments: &[&str]| run(Command::new(&deny).args(arguments).current_dir(root));
    run(&["--log-level", "error", "check", "licenses", "bans", "sources"])?;
    if run(&["--log-level", "off", "fetch", "db"]).is_err() {
        println!("advisories were NOT looked at: their database (github.com/RustSec/advisory-db) cannot be reached from here");
        return Ok(());
    }
    run(&["check", "advisories"])
}

/// The program, which is built if it is not there yet. A new version gets a folder of its own.
fn ensure(root: &Path, tool: &Tool) -> Result<PathBuf, String> {
    let Tool { package, version } = tool;
    let tools = root.join("target/tools");
    let folder = tools.join(format!("{package}-{version}"));
    let program = folder.join("bin").join(package);
    if !program.exists() {
        println!("building {package} {version}, once");
        let wanted = format!("{package}@{version}");
        let build = tools.join("build");
        let mut install = Command::new("cargo");
        install.args(["install", "--quiet", "--locked", &wanted, "--root"]).arg(&folder).arg("--target-dir").arg(&build);
        let installed = run(&mut install);
        let _ = fs::remove_dir_all(&build);
        installed?;
    }
    Ok(program)
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).status().map_err(|error| format!("{name} cannot be started: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} ended with {status}")) }
}
