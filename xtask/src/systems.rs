//! `cargo xtask windows|musl|arm64 FOLDER`: builds mcproof for another system in a chroot of Debian below FOLDER, and runs it as far as this
//! machine can: under wine, without any file of this system, under qemu. Knows compilers and emulators; what is run is in `trial`.
//!
//! The chroots are made if they are missing, as root (windows: 4 GB, the others: 3 GB). Nothing stays mounted, and no process is left.

mod chroot;
mod trial;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use trial::{Machine, Trial};

const HOW: &str = "usage: cargo xtask windows|musl|arm64 FOLDER [--kills N] [--features LIST]";

/// Another system than this machine has.
struct System {
    name: &'static str,
    target: &'static str,
    /// What the compilers of Rust and C need to know.
    variables: &'static [(&'static str, &'static str)],
    suffix: &'static str,
    /// Programs whose tests run: what cargo calls them, and the words by which it finds them.
    tests: &'static [(&'static str, &'static [&'static str])],
}

const UNIT_TESTS: [&str; 7] = ["--package", "mcproof-system", "--package", "mcproof-protocol", "--package", "mcproof-client", "--lib"];
const PROCESS_TESTS: [&str; 4] = ["--package", "mcproof-client", "--test", "process"];
const ORPHAN_TESTS: [&str; 4] = ["--package", "mcproof", "--test", "no_orphans"];

const SYSTEMS: [System; 3] = [
    System { name: "windows", target: "x86_64-pc-windows-gnu", variables: &[], suffix: ".exe", tests: &[("unit tests", &UNIT_TESTS)] },
    System {
        name: "musl",
        target: "x86_64-unknown-linux-musl",
        variables: &[
            ("CC_x86_64_unknown_linux_musl", "musl-gcc"),
            ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_LINKER", "musl-gcc"),
            // musl-gcc brings the start files of musl, and knows no `-static-pie`.
            ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_RUSTFLAGS", "-Clink-self-contained=no -Crelocation-model=static -L/unwind"),
        ],
        suffix: "",
        tests: &[("unit tests", &UNIT_TESTS), ("process tests", &PROCESS_TESTS), ("orphan tests", &ORPHAN_TESTS)],
    },
    System {
        name: "arm64",
        target: "aarch64-unknown-linux-gnu",
        variables: &[("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc")],
        suffix: "",
        tests: &[("unit tests", &UNIT_TESTS), ("process tests", &PROCESS_TESTS), ("orphan tests", &ORPHAN_TESTS)],
    },
];

/// One chroot builds for all three. The standard library is built from its sources: Debian has no package of it for two of them.
const BUILD: [&str; 11] = [
    "rustc",
    "cargo",
    "rust-src",
    "gcc",
    "libc6-dev",
    "ca-certificates",
    "gcc-mingw-w64-x86-64-win32",
    "musl-tools",
    "gcc-aarch64-linux-gnu",
    "libc6-dev-arm64-cross",
    "qemu-user",
];
/// What Cargo.toml has optimized in the profile for development, which takes longer than what runs here.
const UNOPTIMIZED: [&str; 8] = [
    "\"*\"",
    "mcproof-protocol",
    "mcproof-record",
    "mcproof-client",
    "mcproof-analysis",
    "mcproof-check",
    "mcproof-rules",
    "mcproof-watch",
];
/// The newest release that has it; that of bookworm is too old.
const WINE: [&str; 2] = ["wine", "wine64"];

/// # Errors
/// What could not be built, or how many steps of the trial did not pass.
pub(crate) fn systems(root: &Path, name: &str, arguments: &[&str]) -> Result<(), String> {
    let plan = Plan::parse(arguments)?;
    let system = SYSTEMS.iter().find(|system| system.name == name).ok_or(HOW)?;
    let folder = fs::create_dir_all(plan.folder).and_then(|()| fs::canonicalize(plan.folder));
    let folder = folder.map_err(|error| format!("{}: {error}", plan.folder))?;
    let builder = chroot::of_release(&folder, "forky", &BUILD)?;
    let built = build(root, &builder, system, plan.features)?;
    let mut trial = Trial::new(root, &folder.join("log").join(name), plan.kills)?;
    let machine = |title, place: PathBuf, start: &'static [&'static str]| Machine {
        title,
        folder: place.join("trial"),
        place,
        start,
        suffix: system.suffix,
    };
    match name {
        "windows" => {
            let wine = machine("wine", chroot::of_release(&folder, "trixie", &WINE)?, &["wine"]);
            trial.prepare_wine(&wine)?;
            trial.program(&wine, &built.program)?;
            trial.batch_file(&wine)?;
            trial.npm_package(&wine, &built.program)?;
            trial.tests(&wine, &built.tests)?;
        }
        "musl" => {
            trial.program(&Machine { folder: folder.join("trial"), ..machine("this machine", "/".into(), &[]) }, &built.program)?;
            trial.program(&machine("an empty chroot", chroot::empty(&folder)?, &[]), &built.program)?;
            trial.tests(&machine("Debian forky", builder, &[]), &built.tests)?;
        }
        _ => {
            let qemu = machine("qemu-user", builder, &[]);
            trial.program(&qemu, &built.program)?;
            trial.tests(&qemu, &built.tests)?;
        }
    }
    trial.verdict()
}

#[derive(Debug, PartialEq, Eq)]
struct Plan<'a> {
    folder: &'a str,
    kills: usize,
    /// Of the program, if not its default ones: fewer are built sooner.
    features: Option<&'a str>,
}

impl<'a> Plan<'a> {
    fn parse(arguments: &[&'a str]) -> Result<Self, String> {
        let (folder, mut options) = arguments.split_first().filter(|(folder, _)| !folder.starts_with('-')).ok_or(HOW)?;
        let mut plan = Self { folder, kills: 20, features: None };
        while let [name, value, rest @ ..] = options {
            match *name {
                "--kills" => plan.kills = value.parse().map_err(|_| HOW)?,
                "--features" => plan.features = Some(value),
                _ => return Err(HOW.to_owned()),
            }
            options = rest;
        }
        if options.is_empty() { Ok(plan) } else { Err(HOW.to_owned()) }
    }
}

/// Files outside of the chroot.
struct Built {
    program: PathBuf,
    /// By what the table calls them.
    tests: BTreeMap<String, PathBuf>,
}

/// Builds the sources as committed. The crates that are here already are used.
fn build(root: &Path, place: &Path, system: &System, features: Option<&str>) -> Result<Built, String> {
    let sources = r#"rm -rf "$0/src" && mkdir -p "$0/src" "$0/unwind" "$0/root/.cargo/registry" "$HOME/.cargo/registry" && git archive HEAD | tar -x -C "$0/src""#;
    chroot::run(Command::new("sh").args(["-ec", sources]).arg(place).current_dir(root))?;
    // A static program is linked with LLVM's unwinder, which Debian has for glibc only; that of the C compiler does the same.
    fs::write(place.join("unwind/unwind.c"), include_str!("systems/unwind.c")).map_err(|error| format!("unwind.c: {error}"))?;
    let unwinder = "cd /unwind; cp -f $(gcc -print-file-name=libgcc_eh.a) libunwind.a; musl-gcc -c unwind.c; ar r libunwind.a unwind.o";
    chroot::run(&mut chroot::as_root(place, "", unwinder))?;
    let mut words = vec!["build", "--package", "mcproof", "--bin", "mcproof"];
    words.extend(features.iter().flat_map(|list| ["--no-default-features", "--features", list]));
    let program = cargo(place, system, &words)?;
    let program = program.into_values().next().ok_or("cargo built no program")?;
    let mut tests = BTreeMap::new();
    for (title, words) in system.tests {
        let built = cargo(place, system, &[&["test", "--no-run"], *words].concat())?;
        tests.extend(built.into_iter().map(|(name, file)| (format!("{title} of {name}"), file)));
    }
    Ok(Built { program, tests })
}

/// Gives the executables, by their packages.
fn cargo(place: &Path, system: &System, words: &[&str]) -> Result<BTreeMap<String, PathBuf>, String> {
    let profiles: Vec<String> = UNOPTIMIZED.iter().map(|package| format!("--config 'profile.dev.package.{package}.opt-level=0'")).collect();
    let exports: Vec<String> = system.variables.iter().map(|(name, value)| format!("{name}='{value}'")).collect();
    let script = format!(
        "export RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=/target CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 PATH=/usr/bin:/bin {}; cd /src; \
         exec cargo {} -Zbuild-std=std,panic_unwind --target {} --locked {} --message-format=json-render-diagnostics",
        exports.join(" "),
        words.join(" "),
        system.target,
        profiles.join(" "),
    );
    let mounts = r#"mount --bind "$HOME/.cargo/registry" "$0/root/.cargo/registry"; mount --rbind /etc/ssl "$0/etc/ssl""#;
    let mut command = chroot::as_root(place, mounts, &script);
    let mut cargo = command.stdout(Stdio::piped()).spawn().map_err(|error| format!("cannot start unshare: {error}"))?;
    let lines = BufReader::new(cargo.stdout.take().expect("stdout is piped")).lines();
    let built = lines
        .map_while(Result::ok)
        .filter_map(|line| executable(&line, words[0] == "test"))
        .map(|(name, file)| (name, place.join(file)))
        .collect();
    let status = cargo.wait().map_err(|error| format!("cannot wait for cargo: {error}"))?;
    if status.success() { Ok(built) } else { Err(format!("cargo {} ended with {status}", words.join(" "))) }
}

/// The package and the file, without its first slash, of a line in which cargo names a program: of tests if `are_tests`, for which cargo
/// also builds the program that they start.
fn executable(line: &str, are_tests: bool) -> Option<(String, String)> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message.pointer("/profile/test")?.as_bool()? != are_tests {
        return None;
    }
    let file = message.get("executable")?.as_str()?.trim_start_matches('/').to_owned();
    let folder = Path::new(message.get("manifest_path")?.as_str()?).parent()?.file_name()?.to_str()?.to_owned();
    Some((folder, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_and_options_are_read() {
        assert_eq!(Plan::parse(&["out"]), Ok(Plan { folder: "out", kills: 20, features: None }));
        let plan = Plan { folder: "out", kills: 200, features: Some("servers") };
        assert_eq!(Plan::parse(&["out", "--features", "servers", "--kills", "200"]), Ok(plan));
        for wrong in [&[][..], &["--kills"], &["out", "--kills"], &["out", "--kills", "many"], &["out", "more"]] {
            assert_eq!(Plan::parse(wrong), Err(HOW.to_owned()), "{wrong:?}");
        }
    }

    #[test]
    fn a_program_is_found_in_what_cargo_says() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/src/crates/system/Cargo.toml","profile":{"test":true},"executable":"/target/x/debug/deps/a.exe"}"#;
        assert_eq!(executable(line, true), Some(("system".to_owned(), "target/x/debug/deps/a.exe".to_owned())));
        assert_eq!(executable(line, false), None);
        let library = r#"{"reason":"compiler-artifact","manifest_path":"/src/Cargo.toml","profile":{"test":true},"executable":null}"#;
        assert_eq!(executable(library, true), None);
        assert_eq!(executable("no JSON", true), None);
    }
}
