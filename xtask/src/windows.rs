//! `cargo xtask windows FOLDER`: builds mcproof for Windows in a chroot of Debian forky below FOLDER, and runs it under wine in one of Debian
//! trixie. Both are made if they are missing, with debootstrap (3 GB, as root), and are mounted in a mount namespace that ends with each
//! command: nothing is left mounted. What runs here is what wine can run; the GitHub workflow runs the tests on Windows itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "x86_64-pc-windows-gnu";
/// The standard library for Windows is built from its sources: Debian has no package of it.
const BUILD: [&str; 5] = ["rustc", "cargo", "rust-src", "gcc-mingw-w64-x86-64-win32", "ca-certificates"];
const RUN: [&str; 2] = ["wine", "wine64"];

pub(crate) fn windows(root: &Path, folder: &Path) -> Result<(), String> {
    let folder = fs::canonicalize(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let builder = chroot(&folder, "forky", &BUILD)?;
    let wine = chroot(&folder, "trixie", &RUN)?;
    build(root, &builder)?;
    let place = wine.join("mcproof");
    fs::create_dir_all(&place).map_err(|error| error.to_string())?;
    run(Command::new("cp").arg(builder.join("target").join(TARGET).join("debug/mcproof.exe")).arg(&place))?;
    run(Command::new("cp").arg("-r").arg(root.join("examples")).arg(&place))?;
    say("version", wine_run(&wine, "wine mcproof.exe --version"))?;
    say("quickstart over three transports", wine_run(&wine, QUICKSTART))?;
    say("check of the demo server", wine_run(&wine, CHECK))?;
    say("a driver over stdio", wine_run(&wine, DRIVE))
}

const QUICKSTART: &str = "wine mcproof.exe test examples/quickstart | tee /tmp/out; grep -q '9 passed' /tmp/out";
const CHECK: &str = "wine mcproof.exe check -- mcproof.exe demo shop | tail -1 | tee /tmp/out; grep -q '0 failures' /tmp/out";
const DRIVE: &str = r#"printf '%s\n' '{"id":1,"method":"hello","params":{"protocol":1}}' | wine mcproof.exe drive | tee /tmp/out; grep -q '"id":1' /tmp/out"#;

fn chroot(folder: &Path, suite: &str, packages: &[&str]) -> Result<PathBuf, String> {
    let (place, ready) = (folder.join(suite), folder.join(format!("{suite}.ready")));
    if !ready.exists() {
        let include = format!("--include={}", packages.join(","));
        run(Command::new("debootstrap").args(["--variant=minbase", &include, suite]).arg(&place))?;
        fs::write(&ready, "").map_err(|error| error.to_string())?;
    }
    Ok(place)
}

/// A script in a chroot, with a `/proc` of its own, that ends with all that it has started.
fn inside(place: &Path, script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-ec"]);
    command.arg(r#"mount -t proc proc "$0/proc"; exec chroot "$0" bash -o pipefail -ec "$1""#).arg(place).arg(script);
    command
}

/// The sources as committed, and the crates that are here, go into the chroot: it needs no network.
fn build(root: &Path, place: &Path) -> Result<(), String> {
    let library = place.join("usr/lib/rustlib/src/rust/library/Cargo.toml");
    run(Command::new("cargo").args(["fetch", "--locked", "--target", TARGET]).current_dir(root))?;
    run(Command::new("cargo").args(["fetch", "--manifest-path"]).arg(library).env("RUSTC_BOOTSTRAP", "1"))?;
    let home = std::env::home_dir().ok_or("there is no home directory")?;
    let registry = place.join("root/.cargo/registry");
    fs::create_dir_all(&registry).map_err(|error| error.to_string())?;
    for part in ["index", "cache"] {
        run(Command::new("cp").arg("-ru").arg(home.join(".cargo/registry").join(part)).arg(&registry))?;
    }
    let archive = "mkdir -p \"$0/src\" && git archive HEAD | tar -x -C \"$0/src\"";
    run(Command::new("sh").args(["-ec", archive]).arg(place).current_dir(root))?;
    let script = format!(
        "export RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=/target CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0; cd /src; \
         cargo build --offline -Zbuild-std=std,panic_unwind --target {TARGET} --package mcproof --bin mcproof \
         --no-default-features --features servers \
         --config 'profile.dev.package.\"*\".opt-level=0'"
    );
    run(&mut inside(place, &script))
}

fn wine_run(place: &Path, script: &str) -> Result<(), String> {
    run(&mut inside(place, &format!("export WINEDEBUG=-all; cd /mcproof; export WINEPATH='Z:\\mcproof'; {script}")))
}

fn say(what: &str, outcome: Result<(), String>) -> Result<(), String> {
    outcome.map_err(|error| format!("{what}: {error}")).inspect(|()| println!("passed under wine: {what}"))
}

fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}")) }
}
