//! What others wrote, to judge what we tell others: `cargo xtask peers` installs it. The scripts beside this file use it.

#![allow(dead_code, reason = "each test program uses some of these")]

use serde_json::Value;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// One of the scripts, ready to be started.
pub(crate) fn script(name: &str) -> Command {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = crate_folder.join("../../target/peers/python/receivers/bin/python");
    assert!(python.exists(), "{} is not there: run `cargo xtask peers` first", python.display());
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(python).arg(crate_folder.join("tests/receivers").join(name));
    command
}

/// What a script makes of a text.
pub(crate) fn judge(name: &str, text: &str) -> Value {
    let mut judging = script(name).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    judging.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let judged = judging.wait_with_output().unwrap();
    assert!(judged.status.success(), "{}\n{text}", String::from_utf8_lossy(&judged.stderr));
    serde_json::from_slice(&judged.stdout).unwrap()
}
