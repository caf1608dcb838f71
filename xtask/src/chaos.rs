//! `cargo xtask chaos`: builds the program and the harness in `crates/watch/tests/chaos`, and starts the one on the other. What is
//! done to the monitor, and what that has to come to, is the harness's.

use crate::{programs, test_programs};
use std::path::Path;
use std::process::Command;

/// The harness is no part of the package that has the program, so that cargo is asked for both.
const PROGRAM: [&str; 4] = ["build", "--workspace", "--bin", "mcproof"];
const HARNESS: [&str; 3] = ["--test", "chaos", "--"];

/// # Errors
/// Something was lost or made up, or the run could not be made.
pub(crate) fn chaos(root: &Path, words: &[&str]) -> Result<(), String> {
    programs::ensure()?;
    if let Err(why) = programs::ensure_clocks() {
        println!("no clocks are set: {why}");
    }
    cargo(root, &PROGRAM)?;
    let program = root.join("target/debug/mcproof").display().to_string();
    let arguments = [&test_programs::TEST[..], &HARNESS, &["--chaos", &program], words].concat();
    cargo(root, &arguments)
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let status = Command::new("cargo").args(arguments).current_dir(root).status();
    let status = status.map_err(|error| format!("cannot start cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("cargo {} ended with {status}", arguments[0])) }
}
