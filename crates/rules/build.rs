//! Lists the examples of the rules, so that a new rule needs no entry anywhere; and tells the tests whether the official schemas
//! are beside the checkout (`cfg(official_schemas)`): without them they are ignored, not passed.

#![expect(clippy::disallowed_methods, reason = "cargo talks to build scripts in this way")]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or(io::ErrorKind::NotFound)?);
    let schemas = package.join("../../../shared/spec");
    println!("cargo::rustc-check-cfg=cfg(official_schemas)\ncargo::rerun-if-changed={}", schemas.display());
    if schemas.is_dir() {
        println!("cargo::rustc-cfg=official_schemas");
    }
    let folder = package.join("examples");
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
