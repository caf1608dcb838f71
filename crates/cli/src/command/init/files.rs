//! Writes the files around a suite, and over no existing file without `--force`. Knows formats and directories, no servers.

use crate::failure::Failure;
use crate::whole_file;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The JSON Schema of suites, beside them.
pub(super) const SCHEMA: &str = "mcproof.schema.json";

const WORKFLOW: &str = include_str!("workflow.yml");
const GITLAB: &str = include_str!("gitlab.yml");
const DOCKER: &str = include_str!("docker.txt");
const PRE_COMMIT: &str = include_str!("pre-commit.yaml");
/// The parts of the forms that verify the lock.
const VERIFY_ON_GITHUB: &str = "      - name: Verify the contract\n        run: mcproof lock --verify --deny breaking\n";
const VERIFY_ON_GITLAB: &str = "    - mcproof lock --verify --deny breaking\n";
/// The path of the hook, unless other hooks exist.
const PRE_COMMIT_FILE: &str = ".pre-commit-config.yaml";
/// The line by which our own one is known.
const MARK: &str = "# Written by `mcproof init`";

/// A file that is to be written.
pub(super) struct Planned {
    /// Below the folder.
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) about: String,
}

/// What the forms are filled with.
pub(super) struct Scaffold<'a> {
    pub(super) suite: &'a str,
    /// The environment that the suite needs.
    pub(super) variables: &'a [String],
    /// Whether the lock is verified, too.
    pub(super) verifies: bool,
}

/// What runs the suite: on GitHub, on GitLab, in a build of an image, before a commit.
pub(super) fn scaffold(folder: &Path, scaffold: &Scaffold<'_>) -> Vec<Planned> {
    let mut secrets = String::new();
    for name in scaffold.variables {
        writeln!(secrets, "      {name}: ${{{{ secrets.{name} }}}}").expect("a String takes all text");
    }
    let mut mounts = String::new();
    for name in scaffold.variables {
        write!(mounts, "--mount=type=secret,id={name},env={name} ").expect("a String takes all text");
    }
    let planned = |path: &str, text: String, about: &str| Planned { path: path.into(), text, about: about.to_owned() };
    // Builders that know no secrets in the environment fetch one that does.
    let syntax = if mounts.is_empty() { "" } else { "# syntax=docker/dockerfile:1\n" };
    let others = fs::read_to_string(folder.join(PRE_COMMIT_FILE)).is_ok_and(|text| !text.starts_with(MARK));
    let hook = if others { "mcproof.pre-commit.yaml" } else { PRE_COMMIT_FILE };
    let about_hook = if others { "a hook to add to the ones in .pre-commit-config.yaml" } else { "runs the tests before a commit" };
    let verified = |form: &str| match scaffold.verifies {
        true => form.to_owned(),
        false => form.replace(VERIFY_ON_GITHUB, "").replace(VERIFY_ON_GITLAB, ""),
    };
    vec![
        planned(".github/workflows/mcproof.yml", verified(WORKFLOW).replace("      # secrets\n", &secrets), "runs the tests on GitHub"),
        planned(".gitlab/mcproof.yml", verified(GITLAB), "runs the tests on GitLab, if .gitlab-ci.yml includes it"),
        planned(
            "mcproof.Dockerfile",
            syntax.to_owned() + &DOCKER.replace("SUITE.mcproof.yaml", scaffold.suite).replace("RUN_SECRETS ", &mounts),
            "an image that is only built if the tests pass on it",
        ),
        planned(hook, PRE_COMMIT.to_owned(), about_hook),
    ]
}

/// Writes the files, and gives a line about each. Those that exist stay as they are; if there is nothing to add, that is an error.
pub(super) fn write(folder: &Path, planned: &[Planned], overwrite: bool) -> Result<String, Failure> {
    let cannot =
        |path: &Path, error: std::io::Error| Failure::bad_input("cannot-write", format!("cannot write {}: {error}", path.display()));
    let stays = |file: &Planned| !overwrite && file.is_in_the_way(folder);
    let kept: Vec<String> = planned.iter().filter(|file| stays(file)).map(|file| file.path.display().to_string()).collect();
    if !kept.is_empty() && planned.iter().all(|file| folder.join(&file.path).symlink_metadata().is_ok()) {
        let verb = if kept.len() == 1 { "exists" } else { "exist" };
        let message = format!("{} already {verb}; nothing was written", kept.join(", "));
        return Err(Failure::bad_input("file-exists", message).hint("--force overwrites, --dir FOLDER writes somewhere else"));
    }
    let mut told = String::new();
    for file in planned {
        let path = folder.join(&file.path);
        if stays(file) {
            writeln!(told, "{}: kept as it is; --force overwrites it", path.display()).expect("a String takes all text");
            continue;
        }
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(|error| cannot(parent, error))?;
        whole_file::write(&path, &file.text).map_err(|error| cannot(&path, error))?;
        writeln!(told, "{}: {}", path.display(), file.about).expect("a String takes all text");
    }
    Ok(told)
}

impl Planned {
    /// What is the same for every server may be there already; a suite may have been edited.
    fn is_in_the_way(&self, folder: &Path) -> bool {
        let path = folder.join(&self.path);
        let is_suite = self.path.to_string_lossy().ends_with(".mcproof.yaml");
        let is_same = fs::read(&path).is_ok_and(|known| known == self.text.as_bytes());
        path.symlink_metadata().is_ok() && (is_suite || !is_same)
    }
}
