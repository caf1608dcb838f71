//! The package managers that install mcproof: how each is recognized, asked and told to upgrade. Pure: knows their command lines and
//! what they print, and runs nothing.

use semver::Version;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Manager {
    Npm,
    Uv,
    Pipx,
    Pip,
    Cargo,
    Homebrew,
    Scoop,
    Winget,
}

/// A question for a package manager.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) program: PathBuf,
    pub(super) arguments: &'static [&'static str],
    /// A file that the arguments name, and its text.
    pub(super) file: Option<(&'static str, &'static str)>,
}

impl Manager {
    /// The one that has put a program where it is. `crates` is what cargo remembers of its programs there.
    pub(super) fn of(place: &Path, crates: &str) -> Option<Self> {
        let has = |name: &str| place.components().any(|part| part.as_os_str() == name);
        let has_both = |first: &str, second: &str| {
            let mut parts = place.components().map(|part| part.as_os_str());
            parts.by_ref().any(|part| part == first) && parts.next().is_some_and(|part| part == second)
        };
        if has("node_modules") {
            Some(Self::Npm)
        } else if has_both("uv", "tools") {
            Some(Self::Uv)
        } else if has_both("pipx", "venvs") {
            Some(Self::Pipx)
        } else if has("site-packages") || is_in_environment(place) {
            Some(Self::Pip)
        } else if has("Cellar") {
            Some(Self::Homebrew)
        } else if has_both("scoop", "apps") {
            Some(Self::Scoop)
        } else if has_both("WinGet", "Packages") {
            Some(Self::Winget)
        } else {
            let from_registry = |line: &str| line.starts_with("\"mcproof ") && line.contains("(registry+");
            crates.lines().any(|line| from_registry(line.trim_start())).then_some(Self::Cargo)
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Uv => "uv",
            Self::Pipx => "pipx",
            Self::Pip => "pip",
            Self::Cargo => "cargo",
            Self::Homebrew => "Homebrew",
            Self::Scoop => "Scoop",
            Self::Winget => "winget",
        }
    }

    /// What to type.
    pub(super) fn upgrade(self) -> &'static str {
        match self {
            Self::Npm => "npm install mcproof@latest",
            Self::Uv => "uv tool upgrade mcproof",
            Self::Pipx => "pipx upgrade mcproof",
            Self::Pip => "pip install --upgrade mcproof",
            Self::Cargo => "cargo install --locked mcproof",
            Self::Homebrew => "brew upgrade mcproof",
            Self::Scoop => "scoop update mcproof",
            Self::Winget => "winget upgrade --moniker mcproof",
        }
    }

    /// How it is asked for the newest version.
    ///
    /// # Errors
    /// The name of the program that was not found.
    pub(super) fn question(self, place: &Path, find: impl Fn(&str) -> Option<PathBuf>) -> Result<Asked, &'static str> {
        let asked = |name: &'static str, arguments| Ok(Asked { program: find(name).ok_or(name)?, arguments, file: None });
        match self {
            Self::Npm => asked("npm", &["view", "mcproof", "version"]),
            // uv has no question of its own for this, but it resolves what a file asks for.
            Self::Uv => Ok(Asked {
                program: find("uv").ok_or("uv")?,
                arguments: &["pip", "compile", "--quiet", "--no-deps", "--no-header", "--no-annotate", "--upgrade", "requirements.in"],
                file: Some(("requirements.in", "mcproof\n")),
            }),
            Self::Pipx | Self::Pip => {
                const ARGUMENTS: &[&str] = &["-m", "pip", "index", "versions", "mcproof", "--disable-pip-version-check"];
                let beside = place.parent().map(|bin| bin.join("python")).filter(|python| python.is_file());
                let program = beside.or_else(|| find("python3")).ok_or("python3")?;
                Ok(Asked { program, arguments: ARGUMENTS, file: None })
            }
            Self::Cargo => asked("cargo", &["info", "mcproof", "--color", "never"]),
            Self::Homebrew => asked("brew", &["info", "--json=v2", "mcproof"]),
            Self::Scoop => asked("scoop", &["cat", "mcproof"]),
            Self::Winget => asked(
                "winget",
                &["show", "--moniker", "mcproof", "--locale", "en-US", "--accept-source-agreements", "--disable-interactivity"],
            ),
        }
    }

    /// The newest version, from what it printed.
    pub(super) fn newest(self, printed: &str) -> Option<Version> {
        let first_after = |prefix: &str| {
            let mut rests = printed.lines().filter_map(|line| line.trim().strip_prefix(prefix));
            rests.next().and_then(version_at_start)
        };
        match self {
            Self::Npm => printed.lines().rev().find_map(|line| version_at_start(line.trim())),
            Self::Uv => first_after("mcproof=="),
            Self::Pipx | Self::Pip => first_after("mcproof ("),
            Self::Cargo => {
                let line = printed.lines().find_map(|line| line.trim().strip_prefix("version: "))?;
                // Cargo names an older one first, if this toolchain is too old for the newest.
                let newest = line.split_once("latest ").map_or(line, |(_, newest)| newest);
                version_at_start(newest)
            }
            Self::Homebrew => {
                let report: serde_json::Value = serde_json::from_str(printed).ok()?;
                Version::parse(report.pointer("/formulae/0/versions/stable")?.as_str()?).ok()
            }
            Self::Scoop => {
                let manifest: serde_json::Value = serde_json::from_str(printed).ok()?;
                Version::parse(manifest.get("version")?.as_str()?).ok()
            }
            Self::Winget => first_after("Version: "),
        }
    }
}

/// Beside a Python interpreter, in a virtual environment.
fn is_in_environment(place: &Path) -> bool {
    place.parent().and_then(Path::parent).is_some_and(|root| root.join("pyvenv.cfg").is_file())
}

fn version_at_start(text: &str) -> Option<Version> {
    let end = text.find(|at: char| !(at.is_ascii_alphanumeric() || matches!(at, '.' | '-' | '+'))).unwrap_or(text.len());
    Version::parse(&text[..end]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_manager_is_recognized_by_its_directories() {
        let check = |place: &str, crates: &str, expected: Option<Manager>| {
            assert_eq!(Manager::of(Path::new(place), crates), expected, "{place}");
        };
        check("/w/node_modules/@mcproof/cli-linux-x64/bin/mcproof", "", Some(Manager::Npm));
        check("/home/me/.local/share/uv/tools/mcproof/bin/mcproof", "", Some(Manager::Uv));
        check("/home/me/.local/share/pipx/venvs/mcproof/bin/mcproof", "", Some(Manager::Pipx));
        check("/usr/lib/python3/site-packages/mcproof/bin/mcproof", "", Some(Manager::Pip));
        check("/opt/homebrew/Cellar/mcproof/0.1.0/bin/mcproof", "", Some(Manager::Homebrew));
        check("/Users/me/scoop/apps/mcproof/0.1.0/mcproof.exe", "", Some(Manager::Scoop));
        check("/Users/me/AppData/Local/Microsoft/WinGet/Packages/own.mcproof_x/mcproof.exe", "", Some(Manager::Winget));
        let registry = "[v1]\n\"mcproof 0.1.0 (registry+https://index.invalid)\" = [\"mcproof\"]\n";
        check("/home/me/.cargo/bin/mcproof", registry, Some(Manager::Cargo));
        // From a checkout, or of another crate.
        check("/home/me/.cargo/bin/mcproof", "\"mcproof 0.1.0 (path+file:///w)\" = [\"mcproof\"]", None);
        check("/home/me/.cargo/bin/mcproof", "\"mcproof-x 0.1.0 (registry+https://index.invalid)\" = [\"x\"]", None);
        check("/home/me/uv/x/tools/mcproof", "", None);
        check("/usr/local/bin/mcproof", "", None);
    }

    #[test]
    fn the_newest_version_is_read_from_what_each_prints() {
        let check = |manager: Manager, printed: &str, expected: Option<&str>| {
            assert_eq!(manager.newest(printed).map(|version| version.to_string()).as_deref(), expected, "{printed}");
        };
        check(Manager::Npm, "1.2.3\n", Some("1.2.3"));
        check(Manager::Npm, "a notice\n1.2.3-beta.1\n", Some("1.2.3-beta.1"));
        check(Manager::Npm, "", None);
        check(Manager::Uv, "mcproof==0.2.0\n", Some("0.2.0"));
        check(Manager::Uv, "mcproof-x==0.2.0\n", None);
        check(Manager::Pip, "mcproof (0.2.0)\nAvailable versions: 0.2.0, 0.1.0\n", Some("0.2.0"));
        check(Manager::Cargo, "mcproof #mcp\ntext\nversion: 0.2.0\nlicense: MIT\n", Some("0.2.0"));
        check(Manager::Cargo, "mcproof\nversion: 0.2.0 (latest 0.3.1)\n", Some("0.3.1"));
        check(Manager::Homebrew, r#"{"formulae":[{"versions":{"stable":"0.2.0"}}]}"#, Some("0.2.0"));
        check(Manager::Homebrew, "Error", None);
        check(Manager::Scoop, r#"{"version":"0.2.0","bin":"mcproof.exe"}"#, Some("0.2.0"));
        check(Manager::Scoop, "Couldn't find manifest for 'mcproof'.", None);
        check(Manager::Winget, "Found mcproof [own.mcproof]\r\nVersion: 0.2.0\r\nPublisher: own\r\n", Some("0.2.0"));
        check(Manager::Winget, "No package found matching input criteria.", None);
    }
}
