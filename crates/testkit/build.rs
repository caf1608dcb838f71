//! Tells the tests whether the official schemas are beside the checkout (`cfg(official_schemas)`): without them they are ignored, not
//! passed.

#![expect(clippy::disallowed_methods, reason = "cargo talks to build scripts in this way")]

use std::path::PathBuf;
use std::{env, io};

fn main() -> io::Result<()> {
    let schemas = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or(io::ErrorKind::NotFound)?).join("../../../shared/spec");
    println!("cargo::rustc-check-cfg=cfg(official_schemas)\ncargo::rerun-if-changed={}", schemas.display());
    if schemas.is_dir() {
        println!("cargo::rustc-cfg=official_schemas");
    }
    Ok(())
}
