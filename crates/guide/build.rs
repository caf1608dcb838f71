//! Lists the pages of the documentation that the program shows, so that a new page needs no entry anywhere.

#![expect(clippy::disallowed_methods, reason = "cargo talks to build scripts in this way")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The folders of `docs/`, in the order in which their pages are listed.
const SECTIONS: [&str; 4] = ["tutorial", "guide", "reference", "explanation"];

/// Longer than a page for a terminal: `mcproof help COMMAND` says the same.
const NOT_SHOWN: [&str; 1] = ["commands"];

/// Pages at the top of `docs/`, and the folder that they are listed with. What is only measured, or only for those who work on mcproof, is
/// on the site alone. `Cargo.toml` names them as well.
const AT_THE_TOP: [(&str, &[&str]); 2] =
    [("reference", &["GLOSSARY", "drive", "sdks"]), ("explanation", &["field-notes", "packages", "recorded", "tolerance"])];

fn main() -> io::Result<()> {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or(io::ErrorKind::NotFound)?);
    let mut table = String::from("&[\n");
    for section in SECTIONS {
        let folder = manifest.join("docs").join(section);
        println!("cargo::rerun-if-changed={}", folder.display());
        let top = AT_THE_TOP.iter().filter(|(listed, _)| *listed == section).flat_map(|(_, names)| names.iter());
        let top: Vec<PathBuf> = top.map(|name| manifest.join("docs").join(format!("{name}.md"))).collect();
        for path in &top {
            println!("cargo::rerun-if-changed={}", path.display());
        }
        for path in pages(&folder)?.into_iter().chain(top) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
            if !NOT_SHOWN.contains(&name.as_str()) {
                writeln!(table, "    Topic {{ section: {section:?}, name: {name:?}, text: include_str!({path:?}) }},")
                    .map_err(io::Error::other)?;
            }
        }
    }
    table.push(']');
    let target = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    fs::write(target.join("topics.rs"), table)
}

fn pages(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    Ok(pages)
}
