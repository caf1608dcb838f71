//! The installer script and the manifests of Homebrew, Scoop and winget: templates that get the version, the place and the checksums of
//! the archives.

use std::fs;
use std::path::{Path, PathBuf};

use super::make::checksum;
use super::{TARGETS, WINDOWS, cannot, read, version};

pub(crate) const INSTALLER: &str = "mcproof-installer.sh";
pub(crate) const FORMULA: &str = "mcproof.rb";

/// Templates below `packages`, and what they are called when they are filled in. winget names the publisher in front.
const MANIFESTS: [(&str, &str); 5] = [
    ("homebrew/mcproof.rb", FORMULA),
    ("scoop/mcproof.json", "mcproof.json"),
    ("winget/mcproof.yaml", "winget/@OWNER@.mcproof.yaml"),
    ("winget/mcproof.installer.yaml", "winget/@OWNER@.mcproof.installer.yaml"),
    ("winget/mcproof.locale.en-US.yaml", "winget/@OWNER@.mcproof.locale.en-US.yaml"),
];

/// What to do about an archive that a manifest names and that is not there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    Refuse,
    /// Only to see whether the manifests have the right form.
    Zeros,
}

/// `packages finish --repository URL OUT`: what needs the checksums of all archives.
pub(crate) fn command(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let (repository, out) = match arguments {
        ["--repository", repository, out] | [out, "--repository", repository] => (repository.trim_end_matches('/'), Path::new(out)),
        _ => return Err("--repository is missing: packages finish --repository URL DIRECTORY".into()),
    };
    installer(root, out, &releases_of(repository))?;
    manifests(root, out, repository, Missing::Refuse)
}

fn releases_of(repository: &str) -> String {
    format!("{repository}/releases/download/v{}", version())
}

/// Writes the installer of the archives that are in a folder.
pub(crate) fn installer(root: &Path, out: &Path, releases: &str) -> Result<(), String> {
    let mut lines = String::new();
    // A shell script installs what a shell runs.
    for (triple, archive) in archives(out).into_iter().filter(|(triple, _)| *triple != WINDOWS) {
        lines += &format!("    {triple}) echo {} ;;\n", checksum(&archive)?);
    }
    if lines.is_empty() {
        return Err(format!("{} has no archive", out.display()));
    }
    let template = read(&root.join("packages/installer/install.sh"))?;
    let text = template.replace("    '@TARGET@') echo '@SHA256@' ;;\n", &lines);
    write(out, INSTALLER, &text.replace("@VERSION@", version()).replace("@RELEASES@", releases))
}

/// Writes the manifests, which name an archive for each system that their package managers run on.
pub(crate) fn manifests(root: &Path, out: &Path, repository: &str, missing: Missing) -> Result<(), String> {
    let owner = repository.rsplit('/').nth(1).filter(|owner| !owner.is_empty()).ok_or_else(|| format!("{repository} names no owner"))?;
    let pair = |placeholder: &str, value: &str| (placeholder.to_owned(), value.to_owned());
    let mut values = vec![
        pair("@VERSION@", version()),
        pair("@DESCRIPTION@", env!("CARGO_PKG_DESCRIPTION")),
        pair("@REPOSITORY@", repository),
        pair("@RELEASES@", &releases_of(repository)),
        pair("@OWNER@", owner),
    ];
    for (triple, archive) in archives(out) {
        values.push((format!("@SHA256_{triple}@"), checksum(&archive)?));
    }
    // Those that are there stand before, and have filled their places.
    if missing == Missing::Zeros {
        values.extend(TARGETS.iter().map(|target| (format!("@SHA256_{}@", target.triple), "0".repeat(64))));
    }
    for (template, name) in MANIFESTS {
        let template = read(&root.join("packages").join(template))?;
        let text = values.iter().fold(template, |text, (placeholder, value)| text.replace(placeholder, value));
        write(out, &name.replace("@OWNER@", owner), &text)?;
    }
    Ok(())
}

/// Those that are in a folder, with their targets.
fn archives(out: &Path) -> Vec<(&'static str, PathBuf)> {
    let all = TARGETS.iter().map(|target| (target.triple, out.join(target.archive())));
    all.filter(|(_, archive)| archive.is_file()).collect()
}

/// Nothing that was to be filled in may be left.
fn write(out: &Path, name: &str, text: &str) -> Result<(), String> {
    if let Some(line) = text.lines().find(|line| line.split('@').nth(1).is_some_and(is_placeholder)) {
        return Err(format!("{name}: an archive is missing for the line `{}`", line.trim()));
    }
    let place = out.join(name);
    let folder = place.parent().unwrap_or(out);
    fs::create_dir_all(folder).map_err(|error| cannot("create", folder, &error))?;
    fs::write(&place, text).map_err(|error| cannot("write", &place, &error))
}

fn is_placeholder(text: &str) -> bool {
    ["VERSION", "DESCRIPTION", "RELEASES", "REPOSITORY", "OWNER", "TARGET", "SHA256"].iter().any(|name| text.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packages::make::sha256;

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
    }

    fn archive(out: &Path, triple: &str) -> String {
        let name = crate::packages::target(triple).unwrap().archive();
        fs::write(out.join(&name), triple).unwrap();
        let sum = sha256(&out.join(&name)).unwrap();
        fs::write(out.join(format!("{name}.sha256")), format!("{sum}  x\n")).unwrap();
        sum
    }

    #[test]
    fn a_formula_is_refused_while_an_archive_is_missing() {
        let out = tempfile::tempdir().unwrap();
        let arguments = ["--repository", "https://host.invalid/own/mcproof/", out.path().to_str().unwrap()];
        assert!(command(root(), &arguments).unwrap_err().contains("has no archive"));
        let sum = archive(out.path(), "x86_64-apple-darwin");
        let failure = command(root(), &arguments).unwrap_err();
        assert!(failure.contains("mcproof.rb: an archive is missing for the line `sha256 \"@SHA256_"), "{failure}");
        for target in &TARGETS {
            archive(out.path(), target.triple);
        }
        let windows = archive(out.path(), WINDOWS);
        command(root(), &arguments).unwrap();
        let formula = fs::read_to_string(out.path().join(FORMULA)).unwrap();
        let installer = fs::read_to_string(out.path().join(INSTALLER)).unwrap();
        assert!(formula.contains(&sum) && installer.contains(&format!("    x86_64-apple-darwin) echo {sum} ;;\n")));
        let place = format!("https://host.invalid/own/mcproof/releases/download/v{}", version());
        assert!(formula.contains(&place) && installer.contains(&format!("RELEASES='{place}'")), "{installer}");
        assert!(!installer.contains("windows"), "{installer}");
        let scoop: serde_json::Value = serde_json::from_str(&fs::read_to_string(out.path().join("mcproof.json")).unwrap()).unwrap();
        assert_eq!(scoop["architecture"]["64bit"]["hash"], windows.as_str());
        assert_eq!(scoop["architecture"]["64bit"]["url"], format!("{place}/mcproof-{WINDOWS}.zip").as_str());
        let winget = fs::read_to_string(out.path().join("winget/own.mcproof.installer.yaml")).unwrap();
        let lines = [
            "PackageIdentifier: own.mcproof\n",
            &format!("InstallerUrl: {place}/mcproof-{WINDOWS}.zip\n"),
            &format!("Sha256: {windows}\n"),
        ];
        for line in lines {
            assert!(winget.contains(line), "{line}: {winget}");
        }
    }

    #[test]
    fn an_archive_that_differs_from_its_checksum_is_refused() {
        let out = tempfile::tempdir().unwrap();
        archive(out.path(), "x86_64-apple-darwin");
        fs::write(out.path().join("mcproof-x86_64-apple-darwin.tar.gz"), "changed").unwrap();
        assert!(installer(root(), out.path(), "https://x.invalid").unwrap_err().contains("but its .sha256 file says"));
    }
}
