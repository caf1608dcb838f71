//! Makes sure of the programs that the tests look at reports with, and of the database that they need. Knows Debian's packages, not what the programs are for.
//!
//! Debian keeps only the newest version of a package, so none can be pinned: what is asked for is a version that is new enough.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

struct Program {
    name: &'static str,
    package: &'static str,
    /// The first number of its version.
    at_least: u32,
}

const PROGRAMS: [Program; 3] = [
    // The first with `light-dark()` in style sheets.
    Program { name: "chromium", package: "chromium", at_least: 123 },
    // Its version is one number: 20914 is 2.9.14.
    Program { name: "xmllint", package: "libxml2-utils", at_least: 20900 },
    // The first whose partitioned tables can be the target of `ON CONFLICT`.
    Program { name: "postgres", package: "postgresql", at_least: 11 },
];

/// Where Debian puts the programs of the database, in a folder for each version.
const POSTGRES: &str = "/usr/lib/postgresql";
/// Where it puts what sets clocks.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

/// Installs what is missing, where that is possible.
///
/// # Errors
/// Says what to install by hand.
pub(crate) fn ensure() -> Result<(), String> {
    let missing: Vec<&str> = PROGRAMS.iter().filter(|program| version(program.name).is_none()).map(|program| program.package).collect();
    if !missing.is_empty() {
        install(&missing)?;
    }
    for Program { name, at_least, .. } in &PROGRAMS {
        match version(name) {
            Some(version) if version >= *at_least => {}
            Some(version) => return Err(format!("{name} {version} is too old: the tests need {at_least} or newer")),
            None => return Err(format!("{name} cannot be started, or does not tell its version")),
        }
    }
    Ok(())
}

/// What sets the clocks of single processes.
///
/// # Errors
/// Says what to install by hand.
pub(crate) fn ensure_clocks() -> Result<(), String> {
    if Path::new(FAKETIME).exists() { Ok(()) } else { install(&["libfaketime"]) }
}

/// Installs packages of Debian that this machine lacks.
///
/// # Errors
/// Says what to install by hand.
pub(crate) fn install(packages: &[&str]) -> Result<(), String> {
    println!("programs: installing {}", packages.join(" "));
    let apt = |arguments: &[&str]| {
        let status = Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    let install = [&["install", "--yes", "--quiet", "--no-install-recommends"], packages].concat();
    if apt(&["update", "--quiet"]) && apt(&install) {
        return Ok(());
    }
    Err(format!("install by hand what the tests need: apt-get install {}", packages.join(" ")))
}

/// The first number of what a program answers to `--version`.
fn version(program: &str) -> Option<u32> {
    let output = Command::new(found(program)).arg("--version").stdin(Stdio::null()).output().ok()?;
    first_number(&format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
}

/// Programs of the database are on no PATH.
fn found(program: &str) -> PathBuf {
    let versions = std::fs::read_dir(POSTGRES).into_iter().flatten().flatten();
    let mut found = versions.map(|version| version.path().join("bin").join(program)).filter(|path| path.exists());
    found.next().unwrap_or_else(|| program.into())
}

fn first_number(text: &str) -> Option<u32> {
    // A wrapper script may complain first, with numbers of its own.
    let told = text.lines().find(|line| ["Chromium ", "version ", "(PostgreSQL) "].iter().any(|mark| line.contains(mark)))?;
    told.split(|character: char| !character.is_ascii_digit()).find(|digits| !digits.is_empty())?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<u32>) {
        assert_eq!(first_number(text), expected, "{text}");
    }

    #[test]
    fn a_version_is_read_from_what_a_program_says() {
        check("Chromium 156.0.8078.79 built on Debian GNU/Linux 12 (bookworm)\n", Some(156));
        check("Chromium 156.0\n/usr/bin/chromium: 9: [: 25276510208: unexpected operator\n", Some(156));
        check("xmllint: using libxml version 20914\n   compiled with: Threads\n", Some(20914));
        check("postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n", Some(15));
        check("", None);
    }
}
