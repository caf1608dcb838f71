//! The licenses of what others wrote and we pack: libraries in the page of `mcproof ui`, crates in the program. Knows the lock file of npm,
//! `cargo metadata`, and what license files are called.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// What a file with a license, a copyright or a notice is called, in capitals.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];

/// The licenses of the crates in the program, in each package that has the program.
pub(crate) const FILE: &str = "THIRD-PARTY.txt";

/// One package that is part of something.
struct Part {
    name: String,
    version: String,
    license: String,
    authors: Vec<String>,
    folder: PathBuf,
}

/// Those of the libraries in the page of `mcproof ui`: what its lock file has besides tools, where `npm ci` has put it.
///
/// # Errors
/// The lock file cannot be read, or a library has no license.
pub(crate) fn of_page(sources: &Path) -> Result<String, String> {
    let lock = json(&sources.join("package-lock.json"))?;
    let packages = lock["packages"].as_object().ok_or("the lock file of the page has no packages")?;
    let is_tool = |about: &Value| ["dev", "devOptional", "optional"].iter().any(|kind| about[*kind] == true);
    let mut parts = Vec::new();
    for (path, about) in packages.iter().filter(|(path, about)| !path.is_empty() && !is_tool(about)) {
        let folder = sources.join(path);
        let manifest = json(&folder.join("package.json"))?;
        let author = manifest["author"].as_str().or_else(|| manifest["author"]["name"].as_str());
        parts.push(Part {
            name: text(&manifest["name"]),
            version: text(&about["version"]),
            license: text(&about["license"]),
            authors: author.map(str::to_owned).into_iter().collect(),
            folder,
        });
    }
    parts.retain(|part| !part.name.starts_with("@types/"));
    written("JavaScript libraries in the page of `mcproof ui`", &parts)
}

/// Those of the crates in the program for a platform. Macros and build scripts are not part of it.
///
/// # Errors
/// `cargo metadata` fails, or a crate has no license.
pub(crate) fn of_program(root: &Path, triple: &str) -> Result<String, String> {
    let arguments = ["metadata", "--format-version", "1", "--locked", "--filter-platform", triple];
    let output = Command::new("cargo").args(arguments).current_dir(root).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cannot start cargo: {error}"))?;
    let metadata: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))?;
    let all = metadata["packages"].as_array().into_iter().flatten();
    let packages: BTreeMap<&str, &Value> = all.filter_map(|package| Some((package["id"].as_str()?, package))).collect();
    let nodes = metadata["resolve"]["nodes"].as_array().into_iter().flatten();
    let nodes: BTreeMap<&str, &Value> = nodes.filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let own = packages.iter().find(|(_, package)| package["name"] == "mcproof").ok_or("there is no package mcproof")?;
    let (mut seen, mut queue) = (BTreeSet::new(), vec![*own.0]);
    while let Some(id) = queue.pop() {
        if seen.insert(id) && !is_macro(packages[id]) {
            let edges = nodes[id]["deps"].as_array().into_iter().flatten();
            let normal = edges.filter(|edge| edge["dep_kinds"].as_array().into_iter().flatten().any(|kind| kind["kind"].is_null()));
            queue.extend(normal.filter_map(|edge| edge["pkg"].as_str()));
        }
    }
    let foreign = seen.into_iter().map(|id| packages[id]).filter(|package| !package["source"].is_null() && !is_macro(package));
    let mut parts = Vec::new();
    for package in foreign {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        parts.push(Part {
            name: text(&package["name"]),
            version: text(&package["version"]),
            license: text(&package["license"]),
            authors: package["authors"].as_array().into_iter().flatten().map(text).collect(),
            folder: manifest.parent().map(Path::to_owned).unwrap_or_default(),
        });
    }
    parts.sort_by(|one, other| (&one.name, &one.version).cmp(&(&other.name, &other.version)));
    written("Rust crates in mcproof", &parts)
}

fn is_macro(package: &Value) -> bool {
    package["targets"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|target| target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "proc-macro")))
}

/// A list of all parts, and each text once, below the parts that it is for.
fn written(title: &str, parts: &[Part]) -> Result<String, String> {
    if parts.is_empty() {
        return Err(format!("{title}: there are none"));
    }
    let mut page = format!("{title}\n{}\n\n", "=".repeat(title.chars().count()));
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for part in parts {
        if part.license.is_empty() {
            return Err(format!("{} {} names no license", part.name, part.version));
        }
        let name = format!("{} {}", part.name, part.version);
        let authors = if part.authors.is_empty() { String::new() } else { format!(", {}", part.authors.join(", ")) };
        writeln!(page, "{name} ({}){authors}", part.license.trim_start_matches('(').trim_end_matches(')'))
            .expect("writing to a text does not fail");
        for text in licenses(&part.folder)? {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    let mut texts: Vec<(String, Vec<String>)> = texts.into_iter().collect();
    texts.sort_by(|one, other| one.1.cmp(&other.1));
    for (text, names) in texts {
        write!(page, "\n{}\n{}\n\n{text}\n", "-".repeat(80), names.join(", ")).expect("writing to a text does not fail");
    }
    Ok(page)
}

/// The texts beside a manifest. Some packages have none: then its name and its license are what there is.
fn licenses(folder: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_file()).collect();
    files.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        NAMES.iter().any(|known| name.starts_with(known)) && !name.ends_with(".RS")
    });
    files.sort();
    let read = |path: &PathBuf| fs::read(path).map(|bytes| trimmed(&String::from_utf8_lossy(&bytes)));
    files.iter().map(|path| read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))).collect()
}

/// Without spaces at the ends of lines, by which copies of one text differ.
fn trimmed(text: &str) -> String {
    let lines: Vec<&str> = text.trim_start_matches('\u{feff}').lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn json(path: &Path) -> Result<Value, String> {
    let text = fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_listed_and_each_text_stands_once() {
        let folder = tempfile::tempdir().unwrap();
        let part = |name: &str, license: &str, text: Option<&str>| {
            let place = folder.path().join(name);
            fs::create_dir_all(&place).unwrap();
            if let Some(text) = text {
                fs::write(place.join("LICENSE-MIT.md"), text).unwrap();
                fs::write(place.join("license.rs"), "fn main() {}").unwrap();
            }
            Part { name: name.into(), version: "1.0.0".into(), license: license.into(), authors: vec!["Me".into()], folder: place }
        };
        let parts = [part("a", "MIT", Some("Copyright A  \nfree\n")), part("b", "MIT", Some("Copyright A\nfree")), part("c", "ISC", None)];
        let page = written("Parts", &parts).unwrap();
        assert_eq!(page.matches("Copyright A\nfree").count(), 1, "{page}");
        assert!(page.contains("a 1.0.0, b 1.0.0\n\nCopyright A") && page.contains("c 1.0.0 (ISC), Me\n"), "{page}");
        assert!(!page.contains("fn main"), "{page}");
        assert!(written("Parts", &[part("d", "", None)]).unwrap_err().contains("d 1.0.0 names no license"));
        assert!(written("Parts", &[]).is_err());
    }

    #[test]
    fn the_notice_of_the_page_names_its_libraries() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let manifest = json(&root.join("crates/ui/web/package.json")).unwrap();
        let notice = fs::read_to_string(root.join("crates/ui/NOTICE.txt")).unwrap();
        for (name, version) in manifest["dependencies"].as_object().unwrap() {
            assert!(notice.contains(&format!("\n{name} {} (", version.as_str().unwrap())), "{name}");
        }
    }
}
