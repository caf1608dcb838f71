//! The page of `mcproof ui`: built from its sources by Vite, and compared with what the repository has. Knows npm, not what the page does.

use crate::notice;
use crate::peers::run;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Whether what is built replaces what the repository has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Built {
    Written,
    Compared,
}

/// Bytes of the page as browsers get it over a network, for which it was promised.
const LARGEST: usize = 400_000;

pub(crate) fn web(root: &Path, built: Built) -> Result<(), String> {
    let sources = root.join("crates/ui/web");
    let committed = root.join("crates/ui/assets");
    let fresh = root.join("target/web");
    // No script of a stranger's package runs at installation: none of these needs one.
    run(Command::new("npm").args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]).current_dir(&sources))?;
    run(Command::new("npx").args(["tsc", "--noEmit"]).current_dir(&sources))?;
    run(Command::new("npx").args(["vitest", "run"]).current_dir(&sources))?;
    run(Command::new("npx").args(["vite", "build", "--emptyOutDir", "--outDir"]).arg(&fresh).current_dir(&sources))?;
    let mut whole = 0;
    for file in listed(&fresh)? {
        whole += packed(&fresh.join(&file))?;
    }
    if whole > LARGEST {
        return Err(format!("the page has {whole} bytes, gzipped: more than {LARGEST}"));
    }
    let (notice, place) = (notice::of_page(&sources)?, root.join("crates/ui/NOTICE.txt"));
    if built == Built::Written {
        fs::write(&place, &notice).map_err(|error| format!("cannot write {}: {error}", place.display()))?;
        for file in listed(&committed)? {
            fs::remove_file(committed.join(&file)).map_err(|error| format!("cannot remove {file}: {error}"))?;
        }
        for file in listed(&fresh)? {
            fs::copy(fresh.join(&file), committed.join(&file)).map_err(|error| format!("cannot copy {file}: {error}"))?;
        }
        println!("crates/ui/assets: {whole} bytes, gzipped");
        return Ok(());
    }
    if fs::read_to_string(&place).ok().as_ref() != Some(&notice) {
        return Err("crates/ui/NOTICE.txt has not the licenses of the libraries in the page: run `cargo xtask web`".to_owned());
    }
    let (fresh_files, known) = (listed(&fresh)?, listed(&committed)?);
    if fresh_files != known {
        return Err(format!("crates/ui/assets has {known:?}, and its sources make {fresh_files:?}: run `cargo xtask web`"));
    }
    for file in known {
        if fs::read(fresh.join(&file)).ok() != fs::read(committed.join(&file)).ok() {
            return Err(format!("crates/ui/assets/{file} is not what its sources make: run `cargo xtask web`"));
        }
    }
    Ok(())
}

fn listed(folder: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    let mut files: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    files.sort();
    Ok(files)
}

fn packed(file: &Path) -> Result<usize, String> {
    let output = Command::new("gzip").args(["-9", "-c"]).arg(file).output().map_err(|error| format!("cannot start gzip: {error}"))?;
    if output.status.success() { Ok(output.stdout.len()) } else { Err(format!("gzip failed on {}", file.display())) }
}
