//! Lists the examples of the rules, so that a new rule needs no entry anywhere.

#![expect(clippy::disallowed_methods, reason = "cargo talks to build scripts in this way")]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or(io::ErrorKind::NotFound)?).join("examples");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    files.sort();
    let mut table = String::from("&[\n");
    for file in files {
        let id = file.file_stem().unwrap_or_default();
        writeln!(table, "    ({id:?}, include_str!({file:?})),").map_err(io::Error::other)?;
    }
    table.push(']');
    let target = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    fs::write(target.join("examples.rs"), table)
}
