//! `docs/packages.md`: what was made, how large it is, and what came of installing it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::elf::Version;
use super::trial::{Outcome, Trial};
use super::{cannot, fill};

/// # Errors
/// A file that was made is not there.
pub(crate) fn page(
    trials: &[Trial],
    made: &[PathBuf],
    needs: &[(&str, Option<Version>)],
    packed: &[(&str, PathBuf)],
) -> Result<String, String> {
    let mut page = String::from(
        "# Packages\n\nWritten by `cargo xtask packages`, which builds the program in the profile `dist`, makes the packages of this machine's platform, \
         installs each\nfrom the file into an empty directory, and runs the quickstart there (`examples/quickstart`); the seconds depend on what \
         else the machine does.\nThe goal is at most 10 MB for each download, which not all meet yet: the task fails as long as one is larger. How to install mcproof: \
         [guide/install.md](guide/install.md).\n\n\
         | installed by | as | quickstart | from nothing to the first passing run |\n|---|---|---|---|\n",
    );
    for Trial { manager, command, outcome } in trials {
        let (passed, took) = match outcome {
            Outcome::Passed(took) => ("passed".to_owned(), format!("{:.1} s", took.as_secs_f64())),
            Outcome::Failed(_) => ("**failed**".to_owned(), String::new()),
            Outcome::NotTried(why) => (format!("not tried: {why}"), String::new()),
        };
        writeln!(page, "| {manager} | `{command}` | {passed} | {took} |").expect("writing to a text does not fail");
    }
    page += "\n| file | download |\n|---|---|\n";
    let mut listed = BTreeSet::new();
    for path in downloads(made) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // The package that asks for those of the platforms is made with each of them.
        if !listed.insert(name.clone()) {
            continue;
        }
        writeln!(page, "| `{name}` | {:.2} MB |", size(path)? as f64 / 1e6).expect("writing to a text does not fail");
    }
    page += "\n| program | size | newest glibc that it needs |\n|---|---|---|\n";
    for (name, version) in needs {
        let version = version.map_or_else(|| "none: it is static".to_owned(), |(major, minor)| format!("{major}.{minor}"));
        let size = match packed.iter().find(|(packed, _)| packed == name) {
            Some((_, path)) => format!("{:.1} MB", size(path)? as f64 / 1e6),
            None => String::new(),
        };
        writeln!(page, "| {name} | {size} | {version} |").expect("writing to a text does not fail");
    }
    Ok(page)
}

/// # Errors
/// A package is larger than promised.
pub(crate) fn judge(made: &[PathBuf], largest: u64) -> Result<(), String> {
    for path in downloads(made) {
        let size = size(path)?;
        if size > largest {
            let (size, largest) = (size as f64 / 1e6, largest as f64 / 1e6);
            return Err(format!("{} has {size:.1} MB; at most {largest:.0} MB are promised", path.display()));
        }
    }
    Ok(())
}

/// What a user downloads; the installer is a page of text.
fn downloads(made: &[PathBuf]) -> impl Iterator<Item = &PathBuf> {
    made.iter().filter(|path| !path.ends_with(fill::INSTALLER))
}

fn size(path: &Path) -> Result<u64, String> {
    fs::metadata(path).map(|metadata| metadata.len()).map_err(|error| cannot("read", path, &error))
}
