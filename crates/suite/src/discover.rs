//! Finds suite files. Looks at names only.

use mcproof_analysis::{did_you_mean, interpreter};
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
    let mut advice = None;
    for path in paths {
        if path.is_file() {
            match interpreter(path) {
                Some(runner) => {
                    problems.push(format!("`{}` is a program, not a suite", path.display()));
                    let first = format!("`mcproof init -- {runner} {}` writes a suite for a server", path.display());
                    advice.get_or_insert(first);
                }
                None => found.push(path.clone()),
            }
            continue;
        }
        if !path.exists() {
            problems.push(format!("`{}` does not exist", path.display()));
            if let Some(near) = near(path) {
                advice.get_or_insert(format!("did you mean `{}`?", near.display()));
            }
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
        false => {
            let hint = advice
                .unwrap_or_else(|| "name suite files, or directories that contain some; -E 'name(TEXT)' selects tests by name".to_owned());
            Err(Diagnostic::error("unreadable-path", problems.join("; ")).hint(hint))
        }
    }
}

/// The suite or folder beside it that is called most like it.
fn near(path: &Path) -> Option<PathBuf> {
    let typed = path.file_name()?.to_str()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?.filter_map(Result::ok);
    let takes = |entry: &std::fs::DirEntry| is_suite(&entry.path()) || entry.path().is_dir();
    let mut names: Vec<String> = entries.filter(takes).filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let begun = names.iter().find(|name| name.strip_prefix(typed).is_some_and(|rest| rest.starts_with('.') && is_suite(Path::new(name))));
    let found = begun.map(String::as_str).or_else(|| did_you_mean(typed, names.iter().map(String::as_str)))?;
    Some(path.with_file_name(found))
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
        let hint = |path: &str| discover(&[at(path)]).unwrap_err().hint.unwrap();
        let meant = |path: &str| format!("did you mean `{}`?", at(path).display());
        assert_eq!(
            [hint("z.mcproof.yml"), hint("z"), hint("b/a")],
            [meant("z.mcproof.yaml"), meant("z.mcproof.yaml"), meant("b/a.mcproof.yml")]
        );
        assert_eq!(hint("far/away"), "name suite files, or directories that contain some; -E 'name(TEXT)' selects tests by name");
        fs::write(at("server.py"), "").unwrap();
        assert_eq!(hint("server.py"), format!("`mcproof init -- python {}` writes a suite for a server", at("server.py").display()));
    }
}
