//! Finds suite files. Looks at names only: what git ignores may be a suite, and what is in a folder of others is none of the user's.

use mcproof_analysis::{did_you_mean, interpreter};
use mcproof_record::Diagnostic;
use std::fs::DirEntry;
use std::io;
use std::path::{Path, PathBuf};

/// Suite files, sorted and each once.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Discovered {
    pub suites: Vec<PathBuf>,
    /// In folders that are not searched, and hidden: as far as they are near enough to be seen without reading whole trees of dependencies.
    pub left_out: Vec<PathBuf>,
    /// Folders that were named and have no suite, as they were named.
    pub empty: Vec<PathBuf>,
    /// Folders that this user may not read.
    pub unreadable: Vec<PathBuf>,
}

/// Which folders are not searched.
pub const NOT_SEARCHED: &str = "hidden ones, `node_modules`, virtual environments, and `target` of a build";

/// How deep folders that are not searched are looked into, to tell what is left out.
const DEEPEST: usize = 3;

/// The suites among and below `paths`. A file that is named is taken whatever it is called, and a folder that is named is searched whatever
/// it is; below a folder, files called `*.mcproof.yaml`, `*.mcproof.yml` or `mcproof.yaml` (or `.yml`) are taken.
///
/// # Errors
/// Names every path that does not exist or cannot be searched.
pub fn discover(paths: &[PathBuf]) -> Result<Discovered, Diagnostic> {
    let mut found = Discovered::default();
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
                None => found.suites.push(path.clone()),
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
        let before = found.suites.len();
        match search(path, &mut found) {
            Err(error) => problems.push(format!("`{}` cannot be searched: {error}", path.display())),
            Ok(()) if found.suites.len() == before => found.empty.push(path.clone()),
            Ok(()) => {}
        }
    }
    for list in [&mut found.suites, &mut found.left_out, &mut found.unreadable] {
        list.sort();
        list.dedup();
    }
    match problems.is_empty() {
        true => Ok(found),
        false => {
            let hint = advice
                .unwrap_or_else(|| "name suite files, or directories that contain some; -E 'name(TEXT)' selects tests by name".to_owned());
            Err(Diagnostic::error("unreadable-path", problems.join("; ")).hint(hint))
        }
    }
}

/// Adds the suites below a folder. Links to folders are not followed.
fn search(folder: &Path, found: &mut Discovered) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let is_folder = match entry.file_type() {
            // It went away meanwhile, as what a build makes anew.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            kind => kind?.is_dir(),
        };
        if is_folder && is_of_others(&entry) {
            glance(&path, DEEPEST, &mut found.left_out);
        } else if is_folder {
            match search(&path, found) {
                // Such as the data of a database that runs as somebody else.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => found.unreadable.push(path),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                searched => searched?,
            }
        } else if is_suite(&path) {
            let list = if is_hidden(&entry) { &mut found.left_out } else { &mut found.suites };
            list.push(path);
        }
    }
    Ok(())
}

/// Adds the suites in a folder that is not searched. What is installed there is not of the user, however it is called.
fn glance(folder: &Path, depth: usize, left_out: &mut Vec<PathBuf>) {
    let is_vast = matches!(name_of(folder), "node_modules" | ".git" | "site-packages");
    if depth == 0 || is_vast {
        return;
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => glance(&path, depth - 1, left_out),
            // A job of GitHub or GitLab may be called `mcproof.yml`.
            Ok(_) if has_ending(&path) => left_out.push(path),
            _ => {}
        }
    }
}

/// Whether a folder is one of dependencies, of build results or of a tool.
fn is_of_others(folder: &DirEntry) -> bool {
    let path = folder.path();
    let beside = |file: &str| path.with_file_name(file).is_file();
    is_hidden(folder)
        || match folder.file_name().to_str() {
            Some("node_modules") => true,
            Some("target") => path.join("CACHEDIR.TAG").is_file() || ["Cargo.toml", "pom.xml", "build.sbt"].into_iter().any(beside),
            _ => path.join("pyvenv.cfg").is_file(),
        }
}

fn is_hidden(entry: &DirEntry) -> bool {
    entry.file_name().as_encoded_bytes().starts_with(b".")
}

/// The suite or folder beside it that is called most like it.
fn near(path: &Path) -> Option<PathBuf> {
    let typed = path.file_name()?.to_str()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?.filter_map(Result::ok);
    let takes = |entry: &DirEntry| is_suite(&entry.path()) || entry.path().is_dir();
    let mut names: Vec<String> = entries.filter(takes).filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let begun = names.iter().find(|name| name.strip_prefix(typed).is_some_and(|rest| rest.starts_with('.') && is_suite(Path::new(name))));
    let found = begun.map(String::as_str).or_else(|| did_you_mean(typed, names.iter().map(String::as_str)))?;
    Some(path.with_file_name(found))
}

fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn has_ending(path: &Path) -> bool {
    [".mcproof.yaml", ".mcproof.yml"].iter().any(|ending| name_of(path).ends_with(ending))
}

fn is_suite(path: &Path) -> bool {
    has_ending(path) || matches!(name_of(path), "mcproof.yaml" | "mcproof.yml")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn suites_are_found_by_name_below_folders_and_taken_when_named() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir(at("b")).unwrap();
        for file in ["z.mcproof.yaml", "b/a.mcproof.yml", "mcproof.yaml", "other.yaml", "b/readme.md"] {
            fs::write(at(file), "").unwrap();
        }
        let check = |paths: &[&str], expected: &[&str]| {
            let paths: Vec<PathBuf> = paths.iter().map(|path| at(path)).collect();
            let expected: Vec<PathBuf> = expected.iter().map(|path| at(path)).collect();
            assert_eq!(discover(&paths).unwrap(), Discovered { suites: expected, ..Discovered::default() });
        };
        check(&[""], &["b/a.mcproof.yml", "mcproof.yaml", "z.mcproof.yaml"]);
        check(&["b"], &["b/a.mcproof.yml"]);
        check(&["other.yaml", "z.mcproof.yaml", "z.mcproof.yaml"], &["other.yaml", "z.mcproof.yaml"]);
        check(&[], &[]);
        // Each folder that is named has to have one.
        fs::create_dir(at("none")).unwrap();
        let found = discover(&[at("none"), at("b")]).unwrap();
        assert_eq!((found.suites, found.empty), (vec![at("b/a.mcproof.yml")], vec![at("none")]));
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

    #[test]
    fn suites_are_found_whatever_git_ignores_but_not_in_folders_of_others() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let write = |name: &str| {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), "").unwrap();
        };
        let searched = ["build/a.mcproof.yaml", "dist/b.mcproof.yaml", "target/c.mcproof.yaml"];
        let told = [".d.mcproof.yaml", ".github/e.mcproof.yaml", "env/f.mcproof.yaml", "rust/target/g/h.mcproof.yaml"];
        let deep = ["node_modules/p/i.mcproof.yaml", ".git/j.mcproof.yaml", "env/lib/python3/site-packages/k.mcproof.yaml"];
        searched.iter().chain(&told).chain(&deep).chain(&["env/pyvenv.cfg", "rust/Cargo.toml"]).for_each(|name| write(name));
        fs::write(at(".gitignore"), "build/\n*.yaml\n").unwrap();
        fs::write(at(".ignore"), "dist/\n").unwrap();
        let check = |path: &str, suites: &[&str], left_out: &[&str]| {
            let all = |names: &[&str]| names.iter().map(|name| at(name)).collect();
            let expected = Discovered { suites: all(suites), left_out: all(left_out), ..Discovered::default() };
            assert_eq!(discover(&[at(path)]).unwrap(), expected, "{path}");
        };
        check("", &searched, &told);
        // What is named is searched.
        check(".github", &told[1..2], &[]);
        check("node_modules", &deep[..1], &[]);
        check(".d.mcproof.yaml", &told[..1], &[]);
    }
}
