//! No other crate knows which system it runs on.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// What only this crate may say.
const OF_SYSTEMS: [&str; 8] =
    ["target_os", "target_family", "nix::", "libc::", "windows_sys::", "std::os::", "tokio::signal::", "tokio::net::unix"];

/// What only its conditions may ask, in whatever form: `cfg(unix)`, `cfg(not(windows))`, `cfg!(any(unix, …))`.
const FAMILIES: [&str; 3] = ["unix", "windows", "target_vendor"];

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
fn what_names_a_system_is_found_outside_of_tests_only() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("one.rs");
    let told = |text: &str| {
        fs::write(&file, text).unwrap();
        said_in(&file).len()
    };
    assert_eq!(told("use nix::unistd;\n#[cfg(test)]\nmod tests {\n    use nix::pty;\n}\n"), 1);
    assert_eq!(told("#[cfg(test)]\nmod tests;\n#[cfg(any(unix, test))]\nuse std::io;\n"), 1);
    assert_eq!(told("fn one() {\n    if cfg!(all(windows, debug_assertions)) {}\n}\n"), 1);
    assert_eq!(told("// nix::unistd\nlet windows = texts.windows(2);\n#[cfg(feature = \"ui\")]\n"), 0);
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

/// Places in a file that name a system. Tests are left out: they are the last module of a file, which a declaration for tests is not.
fn said_in(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let opens_tests = |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{');
    let end = lines.windows(2).position(opens_tests).unwrap_or(lines.len());
    let said = lines[..end].iter().enumerate().filter(|(_, line)| names_a_system(line));
    said.map(|(index, line)| format!("{}:{}: {}", file.display(), index + 1, line.trim())).collect()
}

fn names_a_system(line: &str) -> bool {
    let line = line.trim_start();
    let mut words = line.split(|character: char| !character.is_alphanumeric() && character != '_');
    let is_conditional = line.contains("cfg(") || line.contains("cfg!(") || line.contains("cfg_attr(");
    !line.starts_with("//")
        && (OF_SYSTEMS.iter().any(|name| line.contains(name)) || is_conditional && words.any(|word| FAMILIES.contains(&word)))
}
