//! Finds suite files. Looks at names only.

use mcproof_record::Diagnostic;
use std::path::{Path, PathBuf};

/// The suites among and below `paths`, sorted and each once. A file that is named is taken whatever it is called; below a folder,
/// files called `*.mcproof.yaml`, `*.mcproof.yml` or `mcproof.yaml` (or `.yml`) are, unless `.gitignore` excludes them.
///
/// # Errors
/// Names every path that does not exist or cannot be searched.
pub fn discover(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Diagnostic> {
    let mut found = Vec::new();
    let mut problems = Vec::new();
    for path in paths {
        if path.is_file() {
            found.push(path.clone());
            continue;
        }
        if !path.exists() {
            problems.push(format!("`{}` does not exist", path.display()));
            continue;
        }
        for entry in ignore::WalkBuilder::new(path).require_git(false).build() {
            match entry {
                Ok(entry) if entry.file_type().is_some_and(|kind| !kind.is_dir()) && is_suite(entry.path()) => {
                    found.push(entry.into_path());
                }
                Ok(_) => {}
                Err(error) => problems.push(format!("`{}` cannot be searched: {error}", path.display())),
            }
        }
    }
    found.sort();
    found.dedup();
    match problems.is_empty() {
        true => Ok(found),
        false => Err(Diagnostic::error("unreadable-path", problems.join("; ")).hint("name suite files or folders that hold some")),
    }
}

fn is_suite(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    [".mcproof.yaml", ".mcproof.yml"].iter().any(|ending| name.ends_with(ending)) || matches!(name, "mcproof.yaml" | "mcproof.yml")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn suites_are_found_by_name_below_folders_and_taken_when_named() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir_all(at("b/ignored")).unwrap();
        for file in ["z.mcproof.yaml", "b/a.mcproof.yml", "mcproof.yaml", "other.yaml", "b/ignored/x.mcproof.yaml", "b/readme.md"] {
            fs::write(at(file), "").unwrap();
        }
        fs::write(at(".gitignore"), "ignored/\n").unwrap();
        let check = |paths: &[&str], expected: &[&str]| {
            let paths: Vec<PathBuf> = paths.iter().map(|path| at(path)).collect();
            let expected: Vec<PathBuf> = expected.iter().map(|path| at(path)).collect();
            assert_eq!(discover(&paths).unwrap(), expected);
        };
        check(&[""], &["b/a.mcproof.yml", "mcproof.yaml", "z.mcproof.yaml"]);
        check(&["b"], &["b/a.mcproof.yml"]);
        check(&["other.yaml", "z.mcproof.yaml", "z.mcproof.yaml"], &["other.yaml", "z.mcproof.yaml"]);
        check(&[], &[]);
        let problem = discover(&[at("nope"), at("b"), at("nil")]).unwrap_err();
        let expected = format!("`{}` does not exist; `{}` does not exist", at("nope").display(), at("nil").display());
        assert_eq!(problem.message, expected);
    }
}
