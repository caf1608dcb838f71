//! `cargo xtask supply`: whether the crates that we build on may be what they are (`deny.toml`), and the list of those that are in the
//! program (an SBOM). Knows cargo by its command line.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program from the registry, built once for each version.
struct Tool {
    package: &'static str,
    version: &'static str,
}

const DENY: Tool = Tool { package: "cargo-deny", version: "0.20.2" };

/// Kept by CycloneDX itself; it takes half a second.
const CYCLONEDX: Tool = Tool { package: "cargo-cyclonedx", version: "0.5.9" };

/// The package whose program is described.
const DESCRIBED: &str = "mcproof";
const SBOM: &str = "target/sbom/mcproof.cdx.json";
/// What cargo-cyclonedx writes beside each manifest of the workspace.
const DRAFT: &str = "mcproof.cdx.json";

/// Licences, duplicates and sources; advisories where their database can be reached.
///
/// # Errors
/// Says what could not be done; cargo-deny has said what it found.
pub(crate) fn supply(root: &Path) -> Result<(), String> {
    let deny = ensure(root, &DENY)?;
    let run = |arguments: &[&str]| run(Command::new(&deny).args(arguments).current_dir(root));
    run(&["--log-level", "error", "check", "licenses", "bans", "sources"])?;
    println!("{SBOM}: {} crates, each with its version, license and hash", write_sbom(root)?);
    if run(&["--log-level", "off", "fetch", "db"]).is_err() {
        println!("advisories were NOT looked at: their database (github.com/RustSec/advisory-db) cannot be reached from here");
        return Ok(());
    }
    run(&["check", "advisories"])
}

/// Writes what is in the program, for all systems, and gives how many crates that is.
///
/// # Errors
/// A crate that is built into the program is missing, or something that is not; or says what could not be done.
fn write_sbom(root: &Path) -> Result<usize, String> {
    let cyclonedx = ensure(root, &CYCLONEDX)?;
    let mut describe = Command::new(cyclonedx);
    describe.args(["cyclonedx", "--quiet", "--format", "json", "--spec-version", "1.5", "--target", "all"]);
    describe.args(["--manifest-path", "crates/cli/Cargo.toml", "--override-filename", DRAFT.trim_end_matches(".json")]);
    let described = run(describe.current_dir(root));
    let metadata = metadata(root)?;
    let manifests = list(&metadata, "packages").iter().filter_map(|package| package["manifest_path"].as_str());
    let own = manifests.filter(|manifest| Path::new(manifest).starts_with(root)).map(|manifest| Path::new(manifest).with_file_name(DRAFT));
    let wanted = root.join("crates/cli").join(DRAFT);
    let read = fs::read_to_string(&wanted);
    own.for_each(|draft| drop(fs::remove_file(draft)));
    described?;
    // Where it was built is nobody's business.
    let text = read.map_err(|error| format!("cannot read {}: {error}", wanted.display()))?;
    let text = text.replace(&format!("path+file://{}/", root.display()), "path+file:///");
    let sbom: Value = serde_json::from_str(&text).map_err(|error| format!("the SBOM is not valid JSON: {error}"))?;
    let lock = fs::read_to_string(root.join("Cargo.lock")).map_err(|error| format!("cannot read Cargo.lock: {error}"))?;
    let count = compare(&sbom, &reachable(&metadata, DESCRIBED), &checksums(&lock))?;
    let path = root.join(SBOM);
    fs::create_dir_all(root.join("target/sbom")).and_then(|()| fs::write(&path, text)).map_err(|error| format!("{SBOM}: {error}"))?;
    Ok(count)
}

/// Name and version.
type Crate = (String, String);

/// Whether an SBOM has these crates and no others, each with the hash that Cargo.lock has.
fn compare(sbom: &Value, built: &BTreeSet<Crate>, checksums: &BTreeMap<Crate, String>) -> Result<usize, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut wrong = Vec::new();
    let mut listed = BTreeSet::new();
    for component in list(sbom, "components").iter().chain([&sbom["metadata"]["component"]]) {
        let named = (text(&component["name"]), text(&component["version"]));
        let hash = list(component, "hashes").iter().find(|hash| hash["alg"] == "SHA-256").map(|hash| text(&hash["content"]));
        if hash.as_ref() != checksums.get(&named) {
            wrong.push(format!("{} {} has another hash than in Cargo.lock", named.0, named.1));
        }
        if list(component, "licenses").is_empty() {
            wrong.push(format!("{} {} has no license", named.0, named.1));
        }
        listed.insert(named);
    }
    wrong.extend(built.difference(&listed).map(|(name, version)| format!("{name} {version} is built into the program and not listed")));
    wrong.extend(listed.difference(built).map(|(name, version)| format!("{name} {version} is listed and not built into the program")));
    if wrong.is_empty() { Ok(listed.len()) } else { Err(format!("the SBOM is not right: {}", wrong.join("; "))) }
}

fn metadata(root: &Path) -> Result<Value, String> {
    let cargo = ["metadata", "--format-version", "1", "--locked"];
    let output = Command::new("cargo").args(cargo).current_dir(root).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cargo cannot be started: {error}"))?;
    serde_json::from_slice(&output.stdout).map_err(|error| format!("output of cargo metadata is not valid JSON: {error}"))
}

/// What is built for a package, itself included: all that it depends on, but for tests.
fn reachable(metadata: &Value, package: &str) -> BTreeSet<Crate> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<&str, Crate> = list(metadata, "packages")
        .iter()
        .filter_map(|package| Some((package["id"].as_str()?, (text(&package["name"]), text(&package["version"])))))
        .collect();
    let nodes: BTreeMap<&str, &Value> =
        list(&metadata["resolve"], "nodes").iter().filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let is_built = |dependency: &&Value| list(dependency, "dep_kinds").iter().any(|kind| kind["kind"] != "dev");
    let mut found = BTreeSet::new();
    let mut waiting: Vec<&str> = packages.iter().filter(|(_, (name, _))| name == package).map(|(id, _)| *id).collect();
    while let Some(id) = waiting.pop() {
        if let (Some(named), Some(node)) = (packages.get(id), nodes.get(id))
            && found.insert(named.clone())
        {
            waiting.extend(list(node, "deps").iter().filter(is_built).filter_map(|dependency| dependency["pkg"].as_str()));
        }
    }
    found
}

/// What Cargo.lock says that each crate of a registry has to be.
fn checksums(lock: &str) -> BTreeMap<Crate, String> {
    let crates = lock.split("[[package]]").map(|part| {
        let key = |name: &str| part.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \"")?.strip_suffix('"'));
        Some(((key("name")?.to_owned(), key("version")?.to_owned()), key("checksum")?.to_owned()))
    });
    crates.flatten().collect()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// The program, which is built if it is not there yet. A new version gets a folder of its own.
fn ensure(root: &Path, tool: &Tool) -> Result<PathBuf, String> {
    let Tool { package, version } = tool;
    let tools = root.join("target/tools");
    let folder = tools.join(format!("{package}-{version}"));
    let program = folder.join("bin").join(package);
    if !program.exists() {
        println!("building {package} {version}, once");
        let wanted = format!("{package}@{version}");
        let build = tools.join("build");
        let mut install = Command::new("cargo");
        install.args(["install", "--quiet", "--debug", "--locked", &wanted, "--root"]).arg(&folder).arg("--target-dir").arg(&build);
        let installed = run(&mut install);
        let _ = fs::remove_dir_all(&build);
        installed?;
    }
    Ok(program)
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).status().map_err(|error| format!("{name} cannot be started: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} ended with {status}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_sbom_has_what_is_built_and_nothing_else() {
        let dependency = |id: &str, kind: Value| json!({ "pkg": id, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [
                { "id": "1", "name": "mcproof", "version": "0.1.0" },
                { "id": "2", "name": "serde", "version": "1.0.0" },
                { "id": "3", "name": "cc", "version": "2.0.0" },
                { "id": "4", "name": "tempfile", "version": "3.0.0" },
            ],
            "resolve": { "nodes": [
                { "id": "1", "deps": [dependency("2", Value::Null), dependency("4", json!("dev"))] },
                { "id": "2", "deps": [dependency("3", json!("build"))] },
                { "id": "3", "deps": [] },
                { "id": "4", "deps": [] },
            ] },
        });
        let built = reachable(&metadata, DESCRIBED);
        assert_eq!(built.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["cc", "mcproof", "serde"]);
        let lock = "[[package]]\nname = \"serde\"\nversion = \"1.0.0\"\nchecksum = \"ab\"\n\n[[package]]\nname = \"mcproof\"\nversion = \"0.1.0\"\n";
        let sums = checksums(lock);
        let licenses = json!([{ "expression": "MIT" }]);
        let serde = json!({ "name": "serde", "version": "1.0.0", "licenses": licenses, "hashes": [{ "alg": "SHA-256", "content": "ab" }] });
        let cc = json!({ "name": "cc", "version": "2.0.0", "licenses": licenses });
        let own = json!({ "name": "mcproof", "version": "0.1.0", "licenses": licenses });
        let check = |components: Value, expected: Result<usize, &str>| {
            let sbom = json!({ "metadata": { "component": own }, "components": components });
            let found = compare(&sbom, &built, &sums).map_err(|error| error.replace("the SBOM is not right: ", ""));
            assert_eq!(found, expected.map_err(str::to_owned));
        };
        check(json!([serde, cc]), Ok(3));
        check(json!([serde]), Err("cc 2.0.0 is built into the program and not listed"));
        let mut odd = cc.clone();
        odd["name"] = json!("odd");
        check(json!([serde, cc, odd]), Err("odd 2.0.0 is listed and not built into the program"));
        let mut changed = serde.clone();
        changed["hashes"][0]["content"] = json!("cd");
        check(json!([changed, cc]), Err("serde 1.0.0 has another hash than in Cargo.lock"));
        let mut unlicensed = cc;
        unlicensed["licenses"] = json!([]);
        check(json!([serde, unlicensed]), Err("cc 2.0.0 has no license"));
    }
}
