//! Writes the files around a suite, and over no existing file without `--force`. Knows formats and directories, no servers.

use super::install::Installation;
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
/// Where the forms for GitHub and GitLab install the server, and the image of the latter.
const INSTALL_ON_GITHUB: &str = "      # install\n";
const INSTALL_ON_GITLAB: &str = "    # install\n";
const IMAGE: &str = "IMAGE";
/// The parts of the forms that verify the lock.
const VERIFY_ON_GITHUB: &str = "      - name: Verify the contract\n        run: mcproof lock --verify --deny breaking\n";
const VERIFY_ON_GITLAB: &str = "    - mcproof lock --verify --deny breaking\n";
/// The forms that run the tests in CI.
pub(super) const ON_GITHUB: &str = ".github/workflows/mcproof.yml";
pub(super) const ON_GITLAB: &str = ".gitlab/mcproof.yml";
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
    /// What has to be there before the server starts.
    pub(super) installation: &'a Installation,
}

/// What was written.
pub(super) struct Written {
    /// A line about each file.
    pub(super) told: String,
    /// Below the folder.
    pub(super) paths: Vec<PathBuf>,
}

/// Whether files can be written to a folder, or to the nearest one above it that is there.
///
/// # Errors
/// They cannot.
pub(super) fn check_writable(folder: &Path) -> Result<(), Failure> {
    // The parent of a relative path with one part is empty, and means this folder.
    let mut named = folder.ancestors().map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    let Some(nearest) = named.find(|folder| folder.exists()) else { return Ok(()) };
    let tried = tempfile::tempfile_in(nearest).map(drop);
    tried.map_err(|error| Failure::cannot_write(folder, &error).hint("choose another directory with --dir"))
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
    let installation = scaffold.installation;
    let workflow = verified(WORKFLOW).replace("      # secrets\n", &secrets).replace(INSTALL_ON_GITHUB, &installation.github());
    let job = verified(GITLAB).replace(IMAGE, installation.image()).replace(INSTALL_ON_GITLAB, &installation.gitlab());
    vec![
        planned(ON_GITHUB, workflow, "runs the tests on GitHub"),
        planned(ON_GITLAB, job, "runs the tests on GitLab, if .gitlab-ci.yml includes it"),
        planned(
            "mcproof.Dockerfile",
            syntax.to_owned() + &DOCKER.replace("SUITE.mcproof.yaml", scaffold.suite).replace("RUN_SECRETS ", &mounts),
            "an image that is only built if the tests pass on it",
        ),
        planned(hook, PRE_COMMIT.to_owned(), about_hook),
    ]
}

/// Writes the files, and tells about each. Those that exist stay as they are, but for those that this run has written; if there is nothing to
/// add, that is an error.
pub(super) fn write(folder: &Path, planned: &[Planned], written: &[PathBuf], overwrite: bool) -> Result<Written, Failure> {
    let stays = |file: &Planned| !overwrite && !written.contains(&file.path) && file.is_in_the_way(folder);
    if written.is_empty() && planned.iter().any(stays) && planned.iter().all(|file| folder.join(&file.path).symlink_metadata().is_ok()) {
        let all: Vec<String> = planned.iter().map(|file| file.path.display().to_string()).collect();
        let message = format!("{} already exist; nothing was written", all.join(", "));
        return Err(Failure::bad_input("file-exists", message).hint("--force overwrites, --dir FOLDER writes somewhere else"));
    }
    let (mut told, mut paths) = (String::new(), Vec::new());
    for file in planned {
        let path = folder.join(&file.path);
        if stays(file) {
            writeln!(told, "{}: kept as it is; --force overwrites it", path.display()).expect("a String takes all text");
            continue;
        }
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(|error| Failure::cannot_write(parent, &error))?;
        whole_file::write(&path, &file.text).map_err(|error| Failure::cannot_write(&path, &error))?;
        writeln!(told, "{}: {}", path.display(), file.about).expect("a String takes all text");
        paths.push(file.path.clone());
    }
    Ok(Written { told, paths })
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
