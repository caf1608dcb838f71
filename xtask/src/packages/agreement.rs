//! What has to say the same everywhere: version, license, platforms, Rust. Only tests: they read the checkout.

use std::fs;
use std::path::Path;

use super::{TARGETS, UNPUBLISHED, version};
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The value of `key = "value"`, in the first line that has it.
fn value(text: &str, key: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix("= \""));
    line.and_then(|rest| rest.split('"').next()).unwrap_or_else(|| panic!("no {key}")).to_owned()
}

#[test]
fn version_and_license_are_the_same_everywhere() {
    let cargo = read("Cargo.toml");
    let license = value(&cargo, "license");
    assert_eq!(value(&cargo, "version"), version());
    let own = cargo.lines().filter(|line| line.starts_with("mcproof") && line.contains("version = "));
    for line in own {
        assert!(line.contains(&format!("version = \"{}\"", version())), "{line}");
    }
    let npm: Value = serde_json::from_str(&read("bindings/node/package.json")).unwrap();
    assert_eq!((npm["version"].as_str(), npm["license"].as_str()), (Some(version()), Some(license.as_str())));
    let python = read("bindings/python/pyproject.toml");
    assert_eq!(value(&python, "license"), license);
    assert!(python.contains("[tool.hatch.version]\npath = \"../../Cargo.toml\""), "the wheel takes the version of Cargo.toml");
    for file in ["LICENSE-APACHE", "LICENSE-MIT"] {
        assert!(read(file).len() > 500, "{file}");
    }
    assert!(read("packages/homebrew/mcproof.rb").contains("license any_of: [\"MIT\", \"Apache-2.0\"]"));
    assert!(read("packages/scoop/mcproof.json").contains("\"license\": \"MIT|Apache-2.0\""));
    assert!(read("packages/winget/mcproof.locale.en-US.yaml").contains(&format!("License: {license}\n")));
    assert!(read("packages/container/Dockerfile").contains(&format!("image.licenses=\"{license}\"")));
}

#[test]
fn every_crate_takes_version_and_license_of_the_workspace() {
    let folders = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let mut count = 0;
    for manifest in folders.map(|folder| folder.join("Cargo.toml")).filter(|manifest| manifest.is_file()) {
        let text = fs::read_to_string(&manifest).unwrap();
        for line in
            ["version.workspace = true", "license.workspace = true", "description.workspace = true", "rust-version.workspace = true"]
        {
            assert!(text.contains(line), "{}: {line}", manifest.display());
        }
        let name = value(&text, "name");
        assert_eq!(text.contains("publish = false"), UNPUBLISHED.contains(&name.as_str()), "{name}");
        count += 1;
    }
    assert!(count > 10, "the crates are read");
}

#[test]
fn the_platforms_are_the_same_everywhere() {
    let npm: Value = serde_json::from_str(&read("bindings/node/package.json")).unwrap();
    let wanted = npm["optionalDependencies"].as_object().unwrap();
    let mut packages: Vec<String> = TARGETS.iter().map(|target| format!("@mcproof/cli-{}", target.npm)).collect();
    packages.sort();
    assert_eq!(wanted.keys().cloned().collect::<Vec<_>>(), packages);
    assert!(wanted.values().all(|wanted| wanted == version()), "{wanted:?}");
    let (release, launcher, binstall) =
        (read(".github/workflows/release.yml"), read("bindings/node/src/binary.ts"), read("crates/cli/Cargo.toml"));
    for target in &TARGETS {
        let builds = [format!("{{ target: {}, ", target.triple), format!("TARGET: {}\n", target.triple)];
        assert!(builds.iter().any(|line| release.contains(line)), "release.yml builds {}", target.triple);
        assert!(launcher.contains(&format!("\"{}\"", target.npm.trim_end_matches("-musl"))), "the launcher knows {}", target.npm);
    }
    for end in [".tar.gz", ".zip"] {
        assert!(binstall.contains(&format!("/mcproof-{{ target }}{end}\"")), "cargo binstall finds the archives");
    }
    for file in ["homebrew/mcproof.rb", "scoop/mcproof.json", "winget/mcproof.installer.yaml"] {
        let text = read(&format!("packages/{file}"));
        let named: Vec<&str> = text.split("@SHA256_").skip(1).filter_map(|rest| rest.split('@').next()).collect();
        assert!(!named.is_empty(), "{file}");
        for triple in named {
            let target = TARGETS.iter().find(|target| target.triple == triple).unwrap_or_else(|| panic!("{file}: {triple}"));
            assert!(text.contains(&format!("/{}", target.archive())), "{file}: {triple}");
        }
    }
}

#[test]
fn unpublished_crates_are_left_out_wherever_crates_are_packed() {
    let release = read(".github/workflows/release.yml");
    let lines: Vec<&str> = release.lines().filter(|line| line.contains("--exclude")).collect();
    assert_eq!(lines.len(), 2);
    for (line, name) in lines.iter().flat_map(|line| UNPUBLISHED.map(|name| (line, name))) {
        assert!(line.contains(&format!("--exclude {name}")), "{name}: {line}");
    }
}

#[test]
fn the_toolchain_is_new_enough_for_the_crates() {
    let toolchain = value(&read("rust-toolchain.toml"), "channel");
    let minor = |version: &str| version.split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok()).unwrap();
    assert!(minor(&toolchain) >= minor(&value(&read("Cargo.toml"), "rust-version")));
}
