//! Runs `mcproof test` as a person does.

#![allow(dead_code, reason = "each test binary uses some of these")]

use super::peers::root;
use std::process::Command;

pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// What came of the cases of a run with --json.
    pub(crate) fn finished(&self) -> Vec<serde_json::Value> {
        let events = self.stdout.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        events.filter(|event| event["event"] == "test-finished").collect()
    }
}

pub(crate) fn run(arguments: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_mcproof")).current_dir(root()).arg("test").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Runs a suite of this text.
pub(crate) fn run_suite(text: &str, arguments: &[&str]) -> Ran {
    run_files(&[("s.mcproof.yaml", text)], arguments)
}

/// Runs the first of these files, in a folder with the others.
pub(crate) fn run_files(files: &[(&str, &str)], arguments: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let first = folder.path().join(files[0].0);
    run(&[&[first.to_str().unwrap()], arguments].concat())
}

/// The suite fails with this exit code, and says all of this on stdout.
pub(crate) fn check(text: &str, arguments: &[&str], code: i32, said: &[&str]) {
    let ran = run_suite(text, arguments);
    assert_eq!(ran.code, Some(code), "{}{}", ran.stdout, ran.stderr);
    for part in said {
        assert!(ran.stdout.contains(part), "{part:?} is not in\n{}", ran.stdout);
    }
}
