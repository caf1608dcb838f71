//! SDKs of servers in Python: what the interpreter has loaded, in the version that is installed where it has its modules from.

use super::loaded::{FilesInMemory, InMemory};
use super::sdk;
use mcproof_client::Program;
use mcproof_record::Sdk;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What servers in Python are made with, those that are built on another one first.
const PACKAGES: [(&str, &str); 2] = [("fastmcp", "FastMCP"), ("mcp", "Python SDK")];

/// Names of the folders that hold installed modules.
const OF_MODULES: [&str; 2] = ["site-packages", "dist-packages"];

pub(super) fn sdks(program: &Program, in_memory: InMemory<'_>, files: FilesInMemory<'_>) -> Vec<Sdk> {
    let of_mapped = sdks_beside_native_modules(program, in_memory);
    if of_mapped.is_empty() && is_python(program) { sdks_from_elsewhere(program, files) } else { of_mapped }
}

fn is_python(program: &Program) -> bool {
    let name = program.executable.file_name().unwrap_or_default().to_string_lossy();
    ["python", "pypy"].iter().any(|known| name.starts_with(known))
}

/// Of the packages that an interpreter has loaded from another folder than its native modules: that of a user, or one that `PYTHONPATH` names.
fn sdks_from_elsewhere(program: &Program, files: FilesInMemory<'_>) -> Vec<Sdk> {
    let loaded = files(program, &PACKAGES.map(|(package, _)| format!("/{package}/server/")));
    let version_of = |part: usize| {
        let (package, _) = PACKAGES[part];
        let folders: BTreeSet<&Path> = loaded.iter().filter(|file| file.part == part).map(|file| file.before.as_path()).collect();
        let found = folders.into_iter().flat_map(distributions).filter(|(of, _)| *of == package);
        let found: BTreeSet<String> = found.map(|(_, sdk)| sdk.version).collect();
        // Of two versions nobody knows which one talks.
        if found.len() == 1 { found.into_iter().next() } else { None }
    };
    let known = PACKAGES.iter().enumerate();
    known.filter_map(|(part, (package, name))| Some(sdk(name, "PyPI", package, &version_of(part)?))).collect()
}

fn sdks_beside_native_modules(program: &Program, in_memory: InMemory<'_>) -> Vec<Sdk> {
    let of = |folder: &PathBuf| {
        let installed = distributions(folder);
        // The interpreter keeps the path of each module that it has loaded, for tracebacks. Both packages have their servers in a
        // package `server`, which nobody comes upon who only asks whether an SDK is installed.
        let name = folder.file_name().unwrap_or_default().display();
        let modules: Vec<String> = installed.iter().map(|(package, _)| format!("{name}/{package}/server/")).collect();
        let is_loaded = if modules.is_empty() { None } else { in_memory(program, &modules) };
        let loaded = installed.into_iter().zip(is_loaded.unwrap_or_default()).filter(|(_, is_loaded)| *is_loaded);
        loaded.map(|((_, sdk), _)| sdk).collect::<Vec<_>>()
    };
    folders(program).iter().map(of).find(|sdks| !sdks.is_empty()).unwrap_or_default()
}

/// Where the interpreter has its modules from. The executable does not tell: links lead from all virtual environments to the same
/// one. But the SDKs have native modules, and those are mapped into memory.
fn folders(program: &Program) -> Vec<PathBuf> {
    let is_of_modules = |folder: &&Path| folder.file_name().is_some_and(|name| OF_MODULES.iter().any(|known| name == *known));
    let mapped = program.mapped.iter().filter_map(|file| file.ancestors().skip(1).find(is_of_modules).map(Path::to_owned));
    let mut folders: Vec<PathBuf> = mapped.collect();
    folders.dedup();
    folders
}

/// By the names of `*.dist-info`, as PyPA specifies them: name and version, with no hyphen in either.
fn distributions(folder: &Path) -> Vec<(&'static str, Sdk)> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let names: Vec<String> = names.filter(|name| name.ends_with(".dist-info")).collect();
    let version_of = |package: &str| {
        names.iter().find_map(|name| name.strip_suffix(".dist-info")?.strip_prefix(package)?.strip_prefix('-').map(str::to_owned))
    };
    PACKAGES.iter().filter_map(|(package, name)| Some((*package, sdk(name, "PyPI", package, &version_of(package)?)))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::loaded::mentioned;
    use super::*;
    use memchr::memmem::Finder;

    fn check(mapped: &[PathBuf], memory: Option<&str>, expected: &[&str]) {
        let program = Program { executable: "/usr/bin/python3.11".into(), mapped: mapped.to_vec(), ..Program::default() };
        let in_memory = |_: &Program, texts: &[String]| {
            let memory = memory?;
            Some(texts.iter().map(|text| memory.contains(text)).collect())
        };
        let files = |_: &Program, parts: &[String]| {
            let finders: Vec<_> = parts.iter().map(|part| Finder::new(part.as_bytes())).collect();
            mentioned(memory.unwrap_or_default().as_bytes(), &finders)
        };
        let found: Vec<String> = sdks(&program, &in_memory, &files).iter().map(|sdk| format!("{} {}", sdk.package, sdk.version)).collect();
        assert_eq!(found, expected, "{mapped:?} {memory:?}");
    }

    #[test]
    fn an_interpreter_has_the_distributions_that_it_has_loaded_from_where_its_native_modules_are() {
        let root = tempfile::tempdir().unwrap();
        let modules = root.path().join("venv/lib/python3.11/site-packages");
        for distribution in ["mcp-1.30.0", "mcp_types-2.3.0", "fastmcp-3.4.5", "fastmcp_slim-4.1.2", "mcp_server_time-2026.10.19"] {
            fs::create_dir_all(modules.join(format!("{distribution}.dist-info"))).unwrap();
        }
        let native = modules.join("pydantic_core/_pydantic_core.so");
        let mcp = "/venv/lib/python3.11/site-packages/mcp/server/lowlevel/server.py";
        let both = format!("{mcp}\0/venv/lib/python3.11/site-packages/fastmcp/server/server.py");
        let mapped = ["/usr/lib/libc.so.6".into(), native];
        check(&mapped, Some(&both), &["PyPI:fastmcp 3.4.5", "PyPI:mcp 1.30.0"]);
        check(&mapped, Some(mcp), &["PyPI:mcp 1.30.0"]);
        // A server that others wrote by hand, beside an SDK that it does not use.
        check(&mapped, Some("/venv/lib/python3.11/site-packages/mcp/__init__.py"), &[]);
        check(&mapped, None, &[]);
        check(&[root.path().join("venv/lib/python3.11/lib-dynload/_json.so")], Some(&both), &[]);
        check(&[root.path().join("gone/site-packages/x.so")], Some(&both), &[]);
    }

    #[test]
    fn what_is_loaded_from_another_folder_than_native_modules_counts() {
        let root = tempfile::tempdir().unwrap();
        let (system, own) = (root.path().join("usr/lib/python3/dist-packages"), root.path().join("vendor"));
        for distribution in [system.join("pydantic_core-2.41.0.dist-info"), own.join("mcp-1.30.0.dist-info")] {
            fs::create_dir_all(distribution).unwrap();
        }
        let memory = format!("\0{}/mcp/server/lowlevel/server.py\0", own.display());
        let native = system.join("pydantic_core/_pydantic_core.so");
        check(std::slice::from_ref(&native), Some(&memory), &["PyPI:mcp 1.30.0"]);
        check(&[], Some(&memory), &["PyPI:mcp 1.30.0"]);
        // What a file says about others is no path of its own.
        check(&[native], Some("# see mcp/server/lowlevel/server.py"), &[]);
    }
}
