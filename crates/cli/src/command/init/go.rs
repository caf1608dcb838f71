//! Which package of a Go module a job in CI builds, and to where, so that it is the program that a command names. Knows files of Go, no jobs.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders below that of the module that may hold the package, one within the other.
const MOST_LEVELS: usize = 4;
/// Folders that are looked at.
const MOST_FOLDERS: usize = 1000;

/// What builds this program in a module: a path is where it is written to, a bare name is found in the PATH.
///
/// # Errors
/// The files do not tell. Gives what it may be.
pub(super) fn build(module: &Path, program: &str) -> Result<String, String> {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-' | '/');
    let path = Path::new(program);
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let is_script = path.extension().is_some_and(|extension| extension == "sh");
    let (mains, is_installed) = (mains(module), !program.contains('/'));
    let of = |package: &str| match is_installed {
        true => format!("go install {package}"),
        false => format!("go build -o {program} {package}"),
    };
    if is_script || path.is_absolute() || !program.chars().all(is_plain) || name.is_empty() {
        return Err("go build -o PROGRAM PACKAGE".to_owned());
    }
    let package = mains.iter().find(|package| last_name(package) == name).or_else(|| {
        let of_module = mains.iter().find(|package| *package == "." && module_name(module).as_deref() == Some(name));
        // A path gives the program any name; in the PATH it has that of its package.
        of_module.or_else(|| mains.first().filter(|_| mains.len() == 1 && !is_installed))
    });
    package.map(|package| of(package)).ok_or_else(|| of(mains.first().map_or("./cmd/PACKAGE", String::as_str)))
}

/// The last name of a package, which is that of its program.
fn last_name(package: &str) -> &str {
    package.rsplit('/').next().unwrap_or_default()
}

/// The name of the program that the package at the root of a module becomes.
fn module_name(module: &Path) -> Option<String> {
    let text = fs::read_to_string(module.join("go.mod")).ok()?;
    let path = text.lines().find_map(|line| line.trim().strip_prefix("module "))?.trim().trim_matches('"');
    let is_version = |name: &str| name.strip_prefix('v').is_some_and(|number| number.parse::<u32>().is_ok());
    path.rsplit('/').find(|name| !is_version(name)).map(str::to_owned)
}

/// The packages that are programs, as they are written after `go build`, in their order.
fn mains(module: &Path) -> Vec<String> {
    let (mut found, mut left, mut looked) = (Vec::new(), vec![(module.to_owned(), ".".to_owned(), 0)], 0);
    while let Some((folder, package, level)) = left.pop() {
        looked += 1;
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|entry| entry.is_dir());
        if files.iter().any(|file| is_of_main(file)) {
            found.push(package.clone());
        }
        if level < MOST_LEVELS && looked < MOST_FOLDERS {
            let below = folders.into_iter().filter_map(|folder| {
                let name = folder.file_name()?.to_str()?.to_owned();
                let is_module = folder.join("go.mod").is_file();
                let is_ignored = name.starts_with(['.', '_']) || matches!(name.as_str(), "vendor" | "testdata" | "node_modules");
                (!is_module && !is_ignored).then(|| (folder, format!("{package}/{name}"), level + 1))
            });
            left.extend(below);
        }
    }
    found.sort();
    found
}

/// Whether a file belongs to a program, and to no test and no tool that is left out of builds.
fn is_of_main(file: &Path) -> bool {
    let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
    if !name.ends_with(".go") || name.ends_with("_test.go") {
        return false;
    }
    let text = fs::read_to_string(file).unwrap_or_default();
    let clause = text.lines().map(str::trim).take_while(|line| !line.starts_with("import")).find(|line| line.starts_with("package "));
    let is_left_out = text.lines().any(|line| line.starts_with("//go:build ignore") || line.starts_with("// +build ignore"));
    clause.is_some_and(|clause| clause.split_ascii_whitespace().nth(1) == Some("main")) && !is_left_out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_is_the_one_of_the_program_or_the_only_one() {
        let check = |program: &str, files: &[(&str, &str)], expected: Result<&str, &str>| {
            let module = tempfile::tempdir().unwrap();
            fs::write(module.path().join("go.mod"), "module example.com/tools/shop\n\ngo 1.26\n").unwrap();
            for (name, text) in files {
                let file = module.path().join(name);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
            }
            let found = build(module.path(), program);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{program}: {files:?}");
        };
        let (main, library) = ("package main\n\nfunc main() {}\n", "package shop\n");
        check("./anything", &[("main.go", main)], Ok("go build -o ./anything ."));
        check("./anything", &[("shop.go", library), ("internal/run/main.go", main)], Ok("go build -o ./anything ./internal/run"));
        check("bin/b", &[("cmd/a/main.go", main), ("cmd/b/main.go", main)], Ok("go build -o bin/b ./cmd/b"));
        check("./shop", &[("main.go", main), ("cmd/a/main.go", main)], Ok("go build -o ./shop ."));
        check("shop", &[("main.go", main)], Ok("go install ."));
        check("server", &[("main.go", main)], Err("go install ."));
        check("./c", &[("cmd/a/main.go", main), ("cmd/b/main.go", main)], Err("go build -o ./c ./cmd/a"));
        check("./c", &[("shop.go", library)], Err("go build -o ./c ./cmd/PACKAGE"));
        check("/usr/local/bin/shop", &[("main.go", main)], Err("go build -o PROGRAM PACKAGE"));
        check("./start.sh", &[("main.go", main)], Err("go build -o PROGRAM PACKAGE"));
        // Neither tests nor tools, nor what belongs to others.
        let files = [
            ("main.go", main),
            ("gen/gen.go", "//go:build ignore\n\npackage main\n"),
            ("a/x_test.go", main),
            ("vendor/y/main.go", main),
            ("other/go.mod", "module other\n"),
            ("other/main.go", main),
        ];
        check("./x", &files, Ok("go build -o ./x ."));
    }
}
