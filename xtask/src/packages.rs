//! `cargo xtask packages`: everything that people install mcproof from, made around a program that is built once, and each of them
//! installed from the file into an empty project. Knows what package managers ask for, and nothing of MCP.

#[cfg(test)]
mod agreement;
mod elf;
mod fill;
mod make;
mod page;
mod trial;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{bindings, peers};
pub(crate) use make::Program;

/// A platform that there are packages for, by the names that the package managers have for it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Rust's, in the names of archives.
    pub(crate) triple: &'static str,
    /// As in `@mcproof/cli-linux-x64`.
    pub(crate) npm: &'static str,
    /// The platform tags of a wheel.
    pub(crate) wheel: &'static str,
}

impl Target {
    fn is_windows(&self) -> bool {
        self.triple.contains("windows")
    }

    /// What the program is called there.
    fn program(&self) -> &'static str {
        if self.is_windows() { "mcproof.exe" } else { "mcproof" }
    }

    /// Of a release. Windows unpacks a zip without further programs.
    fn archive(&self) -> String {
        format!("mcproof-{}.{}", self.triple, if self.is_windows() { "zip" } else { "tar.gz" })
    }
}

pub(crate) const TARGETS: [Target; 7] = [
    Target { triple: "aarch64-apple-darwin", npm: "darwin-arm64", wheel: "macosx_11_0_arm64" },
    Target { triple: "aarch64-unknown-linux-gnu", npm: "linux-arm64", wheel: "manylinux_2_28_aarch64" },
    Target { triple: "aarch64-unknown-linux-musl", npm: "linux-arm64-musl", wheel: "musllinux_1_1_aarch64" },
    Target { triple: "x86_64-apple-darwin", npm: "darwin-x64", wheel: "macosx_10_12_x86_64" },
    Target { triple: WINDOWS, npm: "win32-x64", wheel: "win_amd64" },
    Target { triple: GNU, npm: "linux-x64", wheel: "manylinux_2_28_x86_64" },
    Target { triple: MUSL, npm: "linux-x64-musl", wheel: "musllinux_1_1_x86_64" },
];

const GNU: &str = "x86_64-unknown-linux-gnu";
const MUSL: &str = "x86_64-unknown-linux-musl";
pub(crate) const WINDOWS: &str = "x86_64-pc-windows-msvc";

/// What a platform's package may be to download, in bytes.
const LARGEST: u64 = 10_000_000;
/// The newest glibc that the programs for Linux may need: of Debian 10, RHEL 8 and Ubuntu 18.10.
const GLIBC: (u32, u32) = (2, 28);

/// Runs what the arguments ask for.
///
/// # Errors
/// Says which package cannot be made, or does not work where it is installed.
pub(crate) fn packages(root: &Path, arguments: &[&str]) -> Result<(), String> {
    match arguments {
        ["make", arguments @ ..] => make::command(root, arguments),
        ["check"] => check(root),
        ["finish", arguments @ ..] => fill::command(root, arguments),
        arguments => publishable(root, arguments),
    }
}

/// `packages check`, after `cargo xtask bindings`: the packages of the program that the tests have, and the forms of those that are only published.
///
/// # Errors
/// Says which package does not work where it is installed.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let program = Program::beside(&root.join("target/debug/mcproof"));
    let out = root.join("target/packages/check");
    anew(&out)?;
    // The stage before has made and tested the packages for other languages.
    let mut made: Vec<PathBuf> = bindings::made(root)?;
    made.push(make::archive(root, target(GNU)?, &program, &out)?);
    fill::installer(root, &out, "https://releases.invalid")?;
    fill::manifests(root, &out, "https://repository.invalid/own/mcproof", fill::Missing::Zeros)?;
    made.push(out.join(fill::INSTALLER));
    let trials = trial::all(root, &made, &out)?;
    for trial in &trials {
        println!("packages: {trial}");
    }
    crates(root)?;
    trial::verdict(&trials)
}

/// The chore: what is published for this machine, tried, measured, and written to docs/packages.md.
fn publishable(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let (mut dynamic, mut fixed, mut alpine) = (None, None, None);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let place = match *word {
            "--program" => &mut dynamic,
            "--static" => &mut fixed,
            "--alpine" => &mut alpine,
            _ => return Err(format!("no flag is called {word}; there are --program, --static and --alpine, each with a path")),
        };
        *place = Some(PathBuf::from(words.next().ok_or_else(|| format!("{word} needs a path"))?));
    }
    let program = match dynamic {
        Some(path) => Program::beside(&path),
        None => build(root)?,
    };
    let out = root.join("target/packages/dist");
    anew(&out)?;
    let mut made = make::all(root, target(GNU)?, &program, None, &out)?;
    // In a directory of its own: one that is made anew holds the packages of one program.
    let out_static = out.join("static");
    if let Some(fixed) = &fixed {
        made.extend(make::all(root, target(MUSL)?, &Program { program: fixed.clone(), ..Program::default() }, None, &out_static)?);
    }
    fill::installer(root, &out, "https://releases.invalid")?;
    fill::manifests(root, &out, "https://repository.invalid/own/mcproof", fill::Missing::Zeros)?;
    made.push(out.join(fill::INSTALLER));
    let mut needs = vec![("mcproof", elf::glibc(&program.program)?)];
    let mut packed = vec![("mcproof", make::published(&out, target(GNU)?, &program.program))];
    if let Some(addon) = &program.addon {
        needs.push(("mcproof.node", elf::glibc(addon)?));
        packed.push(("mcproof.node", make::published(&out, target(GNU)?, addon)));
    }
    let mut trials = trial::all(root, &made, &out)?;
    trials.extend(trial::looked_at(root, &out));
    if let Some(fixed) = &fixed {
        let program = make::published(&out_static, target(MUSL)?, fixed);
        needs.push(("mcproof, static", elf::glibc(fixed)?));
        trials.extend(trial::fixed(root, &program, alpine.as_deref(), &out)?);
        packed.push(("mcproof, static", program));
    }
    let page = page::page(&trials, &made, &needs, &packed)?;
    let place = root.join("docs/packages.md");
    fs::write(&place, page).map_err(|error| cannot("write", &place, &error))?;
    println!("wrote {}", place.display());
    trial::verdict(&trials)?;
    elf::judge(&needs, GLIBC)?;
    page::judge(&made, LARGEST)
}

/// The program for old systems, and the addon beside it.
fn build(root: &Path) -> Result<Program, String> {
    let folder = root.join("target/dist-packages");
    let mut cargo = Command::new("cargo");
    let old = format!("{GNU}.{}.{}", GLIBC.0, GLIBC.1);
    cargo.args(["zigbuild", "--locked", "--profile", "dist", "--target", &old, "--package", "mcproof", "--package", "mcproof-node"]);
    peers::run(cargo.env("CARGO_TARGET_DIR", &folder).current_dir(root))
        .map_err(|why| format!("{why}\ninstall what it needs: pip install ziglang cargo-zigbuild"))?;
    Ok(Program::beside(&folder.join(GNU).join("dist/mcproof")))
}

/// Whether cargo takes all crates that are published, as `cargo publish` would pack them. It does not compile them again.
fn crates(root: &Path) -> Result<(), String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["package", "--quiet", "--workspace", "--no-verify", "--allow-dirty", "--locked", "--target-dir"]);
    cargo.arg(root.join("target/packages/crates"));
    cargo.args(UNPUBLISHED.iter().flat_map(|name| ["--exclude", name]));
    peers::run(cargo.current_dir(root))
}

/// Crates that only this repository needs.
const UNPUBLISHED: [&str; 4] = ["mcproof-testkit", "mcproof-node", "mcproof-fuzz", "xtask"];

/// Package managers and linters, as the lock file has them.
fn tools(root: &Path) -> Result<PathBuf, String> {
    bindings::environment(&root.join("packages/tools/requirements.txt"), &root.join("target/packages/tools"))
}

/// The target of a platform by any of its names; what is only tested here is for this machine.
pub(crate) fn triple_of(platform: &str) -> &'static str {
    TARGETS.iter().find(|target| [target.npm, target.wheel].contains(&platform)).map_or(GNU, |target| target.triple)
}

pub(crate) fn target(triple: &str) -> Result<&'static Target, String> {
    let all = || TARGETS.map(|target| target.triple).join(", ");
    TARGETS.iter().find(|target| target.triple == triple).ok_or_else(|| format!("no target is called {triple}; there are {}", all()))
}

/// The version of everything.
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// An empty folder, whatever was there.
fn anew(folder: &Path) -> Result<(), String> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(cannot("remove", folder, &error)),
        _ => {}
    }
    fs::create_dir_all(folder).map_err(|error| cannot("create", folder, &error))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to).map(drop).map_err(|error| format!("cannot copy {} to {}: {error}", from.display(), to.display()))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| cannot("read", path, &error))
}

fn cannot(verb: &str, path: &Path, error: &io::Error) -> String {
    format!("cannot {verb} {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_done_is_told_before_anything_is_built() {
        let check = |arguments: &[&str], expected: &str| {
            let failure = packages(Path::new("/nowhere"), arguments).unwrap_err();
            assert!(failure.contains(expected), "{arguments:?}: {failure}");
        };
        check(&["--progam", "x"], "no flag is called --progam; there are --program");
        check(&["--program"], "--program needs a path");
        check(&["make", "--target", "riscv", "--program", "x", "out"], "no target is called riscv; there are aarch64-apple-darwin");
        check(&["make", "--target", GNU, "out"], "--program is missing");
        check(&["finish", "out"], "--repository is missing");
    }
}
