//! No other crate knows which system it runs on.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// What only this crate may say.
const OF_SYSTEMS: [&str; 12] = [
    "cfg(unix)",
    "cfg(windows)",
    "cfg(not(unix))",
    "cfg(not(windows))",
    "target_os",
    "target_family",
    "nix::",
    "libc::",
    "windows_sys::",
    "std::os::",
    "tokio::signal::",
    "tokio::net::unix",
];

#[test]
fn no_other_crate_asks_for_the_system_or_calls_it() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for member in fs::read_dir(crates).unwrap().flatten().filter(|member| member.file_name() != "system") {
        collect(&member.path().join("src"), &mut files);
    }
    assert!(files.len() > 300, "only {} files were looked at", files.len());
    let found: Vec<String> = files.iter().flat_map(|file| said_in(file)).collect();
    assert!(found.is_empty(), "put it behind the interface of crates/system:\n{}", found.join("\n"));
}

#[test]
fn a_forbidden_word_is_found_outside_of_tests_only() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("one.rs");
    fs::write(&file, "use nix::unistd;\n#[cfg(test)]\nmod tests {\n    use nix::pty;\n}\n").unwrap();
    assert_eq!(said_in(&file).len(), 1);
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") && path.file_name().is_none_or(|name| name != "tests.rs") {
            files.push(path);
        }
    }
}

/// Places in a file, up to its tests, that name a system.
fn said_in(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().enumerate().take_while(|(_, line)| !line.starts_with("#[cfg(test)]"));
    let is_said = |line: &str| !line.trim_start().starts_with("//") && OF_SYSTEMS.iter().any(|word| line.contains(word));
    lines.filter(|(_, line)| is_said(line)).map(|(index, line)| format!("{}:{}: {}", file.display(), index + 1, line.trim())).collect()
}
