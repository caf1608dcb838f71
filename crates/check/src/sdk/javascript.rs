//! SDKs of servers that run in Node.js and the like: the packages that a script finds where it lies, as its runtime looks for them, of
//! those that it has loaded.

use super::loaded::{FilesInMemory, InMemory};
use super::sdk;
use mcproof_client::Program;
use mcproof_record::Sdk;
use memchr::memmem;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use url::Url;

/// What servers in JavaScript are made with, those that are built on another one first.
const PACKAGES: [(&str, &str); 4] = [
    ("fastmcp", "FastMCP for TypeScript"),
    ("tmcp", "tmcp"),
    ("@modelcontextprotocol/server", "TypeScript SDK"),
    ("@modelcontextprotocol/sdk", "TypeScript SDK"),
];

/// Without the number of a version, as in `node-20`.
const RUNTIMES: [&str; 5] = ["node", "nodejs", "bun", "deno", "electron"];

/// Flags of runtimes whose value is a word of its own, and may be a file.
const FLAGS_WITH_FILE: [&str; 11] = [
    "-r",
    "--require",
    "--import",
    "--loader",
    "--experimental-loader",
    "--preload",
    "--env-file",
    "--env-file-if-exists",
    "--config",
    "--import-map",
    "--cwd",
];

/// What stands in each bundle that has an SDK in it: the one in the texts of its errors, the other in its names.
const OF_BUNDLES: [&str; 2] = ["MCP error ", "modelcontextprotocol"];

/// A larger file is no bundle of a server.
const LARGEST_BUNDLE: u64 = 32 << 20;

/// A larger file describes no package.
const LARGEST_MANIFEST: u64 = 1 << 20;

/// Where npm writes which versions it has installed.
const LOCKS: [&str; 2] = ["package-lock.json", "npm-shrinkwrap.json"];

/// A larger file is no lock.
const LARGEST_LOCK: u64 = 32 << 20;

pub(super) fn sdks(program: &Program, in_memory: InMemory<'_>, files: FilesInMemory<'_>) -> Vec<Sdk> {
    let Some(runtime) = runtime(program) else { return Vec::new() };
    let of_script = script(program).map(|script| sdks_of_script(program, &script, in_memory)).unwrap_or_default();
    if of_script.is_empty() { sdks_from_elsewhere(program, runtime, files) } else { of_script }
}

fn runtime(program: &Program) -> Option<&'static str> {
    let name = program.executable.file_name()?.to_str()?;
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let name = name.trim_end_matches(|end: char| end.is_ascii_digit() || matches!(end, '.' | '-'));
    RUNTIMES.into_iter().find(|known| *known == name)
}

/// Of the packages that a runtime has loaded from wherever they lie: those of another package, of the store of a package manager, or of a cache.
fn sdks_from_elsewhere(program: &Program, runtime: &str, files: FilesInMemory<'_>) -> Vec<Sdk> {
    // Deno keeps packages in a folder of their registry, each in a folder for its version.
    let folders: &[Option<&str>] = if runtime == "deno" { &[Some("node_modules"), None] } else { &[Some("node_modules")] };
    let places: Vec<_> = PACKAGES.iter().flat_map(|package| folders.iter().map(move |folder| (package, *folder))).collect();
    let parts: Vec<String> = places
        .iter()
        .map(|((package, _), folder)| folder.map_or_else(|| format!("/{package}/"), |folder| format!("/{folder}/{package}/")))
        .collect();
    let loaded = files(program, &parts);
    let version_of = |package: &str| {
        let of_package = loaded.iter().filter(|file| places[file.part].0.0 == package);
        let versions: BTreeSet<String> = of_package
            .filter_map(|file| {
                let folder = match places[file.part].1 {
                    Some(parent) => file.before.join(parent).join(package),
                    None if file.before.parent()?.file_name()? == "npm" => file.before.join(package).join(&file.next),
                    None => return None,
                };
                let manifest =
                    manifest(&folder.join("package.json")).filter(|found| found.get("name").is_some_and(|name| name == package))?;
                Some(manifest.get("version")?.as_str()?.to_owned())
            })
            .collect();
        // Of two versions nobody knows which one talks.
        if versions.len() == 1 { versions.into_iter().next() } else { None }
    };
    PACKAGES.iter().filter_map(|(package, name)| Some(sdk(name, "npm", package, &version_of(package)?))).collect()
}

fn sdks_of_script(program: &Program, script: &Path, in_memory: InMemory<'_>) -> Vec<Sdk> {
    let depends_on = declared(script);
    let is_wanted = |package: &str| depends_on.is_empty() || depends_on.contains(&package);
    let mut found: Vec<(Sdk, PathBuf)> = Vec::new();
    let mut modules = Vec::new();
    for (package, name) in PACKAGES {
        // What an SDK is built on may be its own, in another version than that of its surroundings.
        let above = found.first().and_then(|(_, folder)| fs::canonicalize(folder.join("package.json")).ok());
        let of_above = above.and_then(|file| installed(&file, package, name));
        let of_script = || if is_wanted(package) { installed(script, package, name) } else { None };
        if let Some(installed) = of_above.or_else(of_script) {
            modules.push(modules_of(&installed.1));
            found.push(installed);
        }
    }
    if found.is_empty() {
        return if is_bundle(script) { locked(script) } else { Vec::new() };
    }
    let found = found.into_iter().map(|(sdk, _)| sdk);
    // The runtime keeps the path of each module that it has loaded.
    let is_loaded = if modules.is_empty() { None } else { in_memory(program, &modules) };
    match is_loaded {
        Some(is_loaded) if is_loaded.contains(&true) => {
            found.zip(is_loaded).filter(|(_, is_loaded)| *is_loaded).map(|(sdk, _)| sdk).collect()
        }
        Some(_) if !is_bundle(script) => Vec::new(),
        // What can be neither seen nor denied is what the package declares.
        _ if depends_on.is_empty() => Vec::new(),
        _ => found.collect(),
    }
}

/// How the paths of a package's modules begin, as URLs: a path without odd characters reads the same.
fn modules_of(folder: &Path) -> String {
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    Url::from_directory_path(&folder).map_or_else(|()| format!("{}/", folder.display()), |url| url.path().to_owned())
}

/// Whether a script has an SDK in it that was installed where it was built. A published one was built somewhere else.
fn is_bundle(script: &Path) -> bool {
    let is_published = script.ancestors().any(|folder| folder.file_name().is_some_and(|name| name == "node_modules"));
    let text = if is_published { None } else { bounded(script, LARGEST_BUNDLE) };
    text.is_some_and(|text| OF_BUNDLES.iter().any(|part| memmem::find(&text, part.as_bytes()).is_some()))
}

/// The SDKs of a bundle that was built here, by the version that its package names or has locked, where they are no longer installed.
fn locked(script: &Path) -> Vec<Sdk> {
    let declares = |folder: &&Path| manifest(&folder.join("package.json")).is_some_and(|manifest| !dependencies(&manifest).is_empty());
    let Some(folder) = script.ancestors().skip(1).find(declares) else { return Vec::new() };
    let Some(declaring) = manifest(&folder.join("package.json")) else { return Vec::new() };
    let mut locks = folder.ancestors().flat_map(|folder| LOCKS.map(|lock| folder.join(lock)));
    let lock: Option<Value> = locks.find_map(|lock| serde_json::from_slice(&bounded(&lock, LARGEST_LOCK)?).ok());
    let version_of = |package: &str| {
        let installed =
            lock.as_ref().and_then(|lock| lock.get("packages")?.get(format!("node_modules/{package}"))?.get("version")?.as_str());
        let named = || KINDS.iter().find_map(|kind| declaring.get(kind)?.get(package)?.as_str()).filter(|version| is_exact(version));
        installed.or_else(named).map(str::to_owned)
    };
    let declared = dependencies(&declaring);
    let known = PACKAGES.iter().filter(|(package, _)| declared.contains(package));
    known.filter_map(|(package, name)| Some(sdk(name, "npm", package, &version_of(package)?))).collect()
}

/// Whether a version is one and no range of them.
fn is_exact(version: &str) -> bool {
    let numbers = version.split(['-', '+']).next().unwrap_or_default();
    numbers.split('.').count() == 3 && numbers.split('.').all(|number| number.parse::<u32>().is_ok())
}

/// The file that the runtime was told to run, with all links followed.
fn script(program: &Program) -> Option<PathBuf> {
    let mut words = program.arguments.iter().skip(1);
    while let Some(word) = words.next() {
        if FLAGS_WITH_FILE.contains(&word.as_str()) {
            words.next();
        } else if !word.starts_with('-') {
            let file = program.folder.join(word);
            let spellings = ["", ".js", ".mjs", ".cjs", ".ts"].map(|end| PathBuf::from(format!("{}{end}", file.display())));
            if let Some(file) = spellings.into_iter().find_map(|file| fs::canonicalize(file).ok()) {
                // A folder stands for the package in it.
                return Some(if file.is_dir() { file.join("package.json") } else { file });
            }
        }
    }
    None
}

/// The SDKs that the package of a script names among its dependencies; none if it names none, or there is no such file.
fn declared(script: &Path) -> Vec<&'static str> {
    let manifests = script.ancestors().skip(1).filter_map(|folder| manifest(&folder.join("package.json")));
    manifests.map(|manifest| dependencies(&manifest)).find(|declared| !declared.is_empty()).unwrap_or_default()
}

/// What a manifest may call its dependencies.
const KINDS: [&str; 4] = ["dependencies", "devDependencies", "peerDependencies", "optionalDependencies"];

/// The SDKs among the dependencies of a package.
fn dependencies(manifest: &Value) -> Vec<&'static str> {
    let depends = |package: &str| KINDS.iter().any(|kind| manifest.get(kind).and_then(|kind| kind.get(package)).is_some());
    PACKAGES.iter().map(|(package, _)| *package).filter(|package| depends(package)).collect()
}

/// The package that a file would import, and its folder.
fn installed(file: &Path, package: &str, name: &str) -> Option<(Sdk, PathBuf)> {
    let folders = file.ancestors().skip(1).filter(|folder| folder.file_name().is_none_or(|name| name != "node_modules"));
    let (folder, manifest) = folders.into_iter().find_map(|folder| {
        let folder = folder.join("node_modules").join(package);
        let manifest = manifest(&folder.join("package.json"))?;
        Some((folder, manifest))
    })?;
    Some((sdk(name, "npm", package, manifest.get("version")?.as_str()?), folder))
}

fn manifest(file: &Path) -> Option<Value> {
    serde_json::from_slice(&bounded(file, LARGEST_MANIFEST)?).ok()
}

/// What is in a file, unless that is too much.
fn bounded(file: &Path, most: u64) -> Option<Vec<u8>> {
    // A pipe would be waited for.
    let is_fit = fs::metadata(file).is_ok_and(|found| found.is_file() && found.len() <= most);
    is_fit.then(|| fs::read(file).ok())?
}

#[cfg(test)]
mod tests {
    use super::super::loaded::mentioned;
    use super::*;
    use memchr::memmem::Finder;
    use tempfile::TempDir;

    fn package(root: &Path, folder: &str, manifest: &str) {
        let folder = root.join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("package.json"), manifest).unwrap();
    }

    /// Of a runtime that has loaded whatever it can.
    fn check(root: &TempDir, words: &[&str], expected: &[&str]) {
        check_loaded(root, words, Some("*"), expected);
    }

    /// Of a runtime that has these paths in its memory, where that can be read.
    fn check_loaded(root: &TempDir, words: &[&str], memory: Option<&str>, expected: &[&str]) {
        let memory = memory.map(|memory| memory.replace("ROOT", &fs::canonicalize(root.path()).unwrap().display().to_string()));
        let in_memory = |_: &Program, texts: &[String]| {
            let memory = memory.as_ref()?;
            Some(texts.iter().map(|text| memory == "*" || memory.contains(text)).collect())
        };
        let files = |_: &Program, parts: &[String]| {
            let finders: Vec<_> = parts.iter().map(|part| Finder::new(part.as_bytes())).collect();
            mentioned(memory.as_deref().unwrap_or_default().as_bytes(), &finders)
        };
        let root = fs::canonicalize(root.path()).unwrap();
        let arguments = std::iter::once("node").chain(words.iter().copied()).map(|word| word.replace("ROOT", &root.display().to_string()));
        let program =
            Program { executable: "/usr/bin/node".into(), arguments: arguments.collect(), folder: root.join("work"), ..Program::default() };
        let found: Vec<String> = sdks(&program, &in_memory, &files).iter().map(|sdk| format!("{} {}", sdk.package, sdk.version)).collect();
        assert_eq!(found, expected, "{words:?} {memory:?}");
    }

    #[test]
    fn a_script_is_made_with_what_lies_nearest_above_it() {
        let root = tempfile::tempdir().unwrap();
        let of = |version: &str| format!("{{\"version\":\"{version}\"}}");
        package(root.path(), "node_modules/@modelcontextprotocol/sdk", &of("1.8.0"));
        package(root.path(), "work/node_modules/@modelcontextprotocol/sdk", &of("1.29.0"));
        package(root.path(), "work/dist", "{\"type\":\"module\"}");
        fs::write(root.path().join("work/dist/server.js"), "").unwrap();
        fs::write(root.path().join("server.mjs"), "").unwrap();
        fs::write(root.path().join("preload.js"), "").unwrap();
        check(&root, &["dist/server.js"], &["npm:@modelcontextprotocol/sdk 1.29.0"]);
        check(&root, &["--inspect", "-r", "../preload.js", "dist/server", "../server.mjs"], &["npm:@modelcontextprotocol/sdk 1.29.0"]);
        check(&root, &["ROOT/server.mjs", "dist/server.js"], &["npm:@modelcontextprotocol/sdk 1.8.0"]);
        check(&root, &["-e", "0"], &[]);
        check(&root, &["dist/nothing.js"], &[]);
        // Through the link that an installer makes.
        fs::create_dir_all(root.path().join("bin")).unwrap();
        std::os::unix::fs::symlink("../work/dist/server.js", root.path().join("bin/server")).unwrap();
        check(&root, &["ROOT/bin/server"], &["npm:@modelcontextprotocol/sdk 1.29.0"]);
    }

    #[test]
    fn what_the_package_declares_counts_and_what_that_is_built_on() {
        let root = tempfile::tempdir().unwrap();
        let of = |version: &str| format!("{{\"version\":\"{version}\"}}");
        // As pnpm lays it out, the SDK of the server in one version and that of its client in another.
        package(root.path(), "work", r#"{"dependencies":{"fastmcp":"^4","x":"1"}}"#);
        fs::write(root.path().join("work/server.js"), "").unwrap();
        package(root.path(), "store/node_modules/fastmcp", &of("4.3.2"));
        package(root.path(), "store/node_modules/@modelcontextprotocol/sdk", &of("1.30.1"));
        fs::create_dir_all(root.path().join("work/node_modules")).unwrap();
        std::os::unix::fs::symlink("../../store/node_modules/fastmcp", root.path().join("work/node_modules/fastmcp")).unwrap();
        package(root.path(), "work/node_modules/@modelcontextprotocol/sdk", &of("1.0.1"));
        check(&root, &["server.js"], &["npm:fastmcp 4.3.2", "npm:@modelcontextprotocol/sdk 1.30.1"]);
        package(root.path(), "work", r#"{"dependencies":{"@modelcontextprotocol/sdk":"1"}}"#);
        check(&root, &["server.js"], &["npm:@modelcontextprotocol/sdk 1.0.1"]);
    }

    #[test]
    fn what_is_installed_and_not_loaded_is_no_sdk_of_the_server_unless_it_is_in_its_bundle() {
        const SDK: &str = "npm:@modelcontextprotocol/sdk 1.29.0";
        let root = tempfile::tempdir().unwrap();
        package(root.path(), "work/node_modules/@modelcontextprotocol/sdk", r#"{"version":"1.29.0"}"#);
        package(root.path(), "work/node_modules/published", r#"{"devDependencies":{"@modelcontextprotocol/sdk":"1.26"}}"#);
        for (file, text) in [
            ("server.js", "http.createServer()"),
            ("bundle.js", "Error(`MCP error ${a}: `)"),
            ("node_modules/published/bundle.js", "MCP error "),
        ] {
            fs::write(root.path().join("work").join(file), text).unwrap();
        }
        let path = "file://ROOT/work/node_modules/@modelcontextprotocol/sdk/dist/esm/server/index.js";
        // A package that does not name it, such as one whose inspector brought it.
        check_loaded(&root, &["server.js"], Some(path), &[SDK]);
        check_loaded(&root, &["server.js"], Some("file://ROOT/work/server.js"), &[]);
        // A bundle that names the files that it was made of, somewhere else.
        check_loaded(&root, &["server.js"], Some("// ../node_modules/@modelcontextprotocol/sdk/dist/esm/server/index.js"), &[]);
        check_loaded(&root, &["bundle.js"], Some(""), &[]);
        check_loaded(&root, &["server.js"], None, &[]);
        // One that names it, perhaps for the client of its tests.
        package(root.path(), "work", r#"{"devDependencies":{"@modelcontextprotocol/sdk":"1"}}"#);
        check_loaded(&root, &["server.js"], Some(path), &[SDK]);
        check_loaded(&root, &["server.js"], Some(""), &[]);
        check_loaded(&root, &["bundle.js"], Some(""), &[SDK]);
        check_loaded(&root, &["server.js"], None, &[SDK]);
        // The bundle of somebody else has another version in it.
        check_loaded(&root, &["node_modules/published/bundle.js"], Some(""), &[]);
        // Only one of those that are installed.
        package(root.path(), "work/node_modules/fastmcp", r#"{"version":"4.3.2"}"#);
        package(root.path(), "work", r#"{"dependencies":{"@modelcontextprotocol/sdk":"1","fastmcp":"4"}}"#);
        check_loaded(&root, &["server.js"], Some(path), &[SDK]);
    }

    #[test]
    fn what_is_loaded_from_elsewhere_counts_if_it_is_one_version() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("work")).unwrap();
        fs::write(root.path().join("work/server.js"), "").unwrap();
        let store = |version: &str| format!("store/.pnpm/@modelcontextprotocol+server@{version}/node_modules/@modelcontextprotocol/server");
        for version in ["2.0.0", "2.1.0"] {
            package(root.path(), &store(version), &format!(r#"{{"name":"@modelcontextprotocol/server","version":"{version}"}}"#));
        }
        let loaded = |version: &str| format!("\0file://ROOT/{}/dist/index.mjs\0", store(version));
        check_loaded(&root, &["server.js"], Some(&loaded("2.1.0")), &["npm:@modelcontextprotocol/server 2.1.0"]);
        check_loaded(&root, &["server.js"], Some(&(loaded("2.0.0") + &loaded("2.1.0"))), &[]);
        check_loaded(&root, &["server.js"], Some(&loaded("2.2.0")), &[]);
        check_loaded(&root, &["-e", "import(process.argv[1])"], Some(&loaded("2.0.0")), &["npm:@modelcontextprotocol/server 2.0.0"]);
        check_loaded(&root, &["server.js"], None, &[]);
    }

    #[test]
    fn a_bundle_has_the_version_that_its_package_has_locked() {
        let root = tempfile::tempdir().unwrap();
        let lock = r#"{"packages":{"node_modules/@modelcontextprotocol/sdk":{"version":"1.29.0"}}}"#;
        package(root.path(), "work", r#"{"devDependencies":{"@modelcontextprotocol/sdk":"^1.20"}}"#);
        fs::write(root.path().join("work/bundle.js"), "Error(`MCP error ${a}: `)").unwrap();
        fs::write(root.path().join("work/server.js"), "http.createServer()").unwrap();
        check(&root, &["bundle.js"], &[]);
        fs::write(root.path().join("work/package-lock.json"), lock).unwrap();
        check(&root, &["bundle.js"], &["npm:@modelcontextprotocol/sdk 1.29.0"]);
        check(&root, &["server.js"], &[]);
        fs::remove_file(root.path().join("work/package-lock.json")).unwrap();
        package(root.path(), "work", r#"{"dependencies":{"@modelcontextprotocol/sdk":"1.26.0"}}"#);
        check(&root, &["bundle.js"], &["npm:@modelcontextprotocol/sdk 1.26.0"]);
    }

    #[test]
    fn a_runtime_may_have_its_version_in_its_name() {
        let of = |name: &str| runtime(&Program { executable: Path::new("/usr/bin").join(name), ..Program::default() });
        assert_eq!(
            ["node", "node-20", "node22.1", "deno", "bun", "node-gyp", "python3"].map(of),
            [Some("node"), Some("node"), Some("node"), Some("deno"), Some("bun"), None, None]
        );
    }

    #[test]
    fn a_manifest_that_cannot_be_read_tells_nothing() {
        let root = tempfile::tempdir().unwrap();
        package(root.path(), "work/node_modules/@modelcontextprotocol/sdk", "{\"version\": 1");
        fs::write(root.path().join("work/server.js"), "").unwrap();
        check(&root, &["server.js"], &[]);
        package(root.path(), "work/node_modules/@modelcontextprotocol/sdk", "{\"version\": 1}");
        check(&root, &["server.js"], &[]);
    }
}
