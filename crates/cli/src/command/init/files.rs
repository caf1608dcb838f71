//! Writes the files around a suite, and over no existing file without `--force`. Knows formats and directories, no servers.

use super::install::Installation;
use super::repository::Place;
use super::safe_name;
use crate::failure::Failure;
use crate::settings;
use crate::whole_file;
use mcproof_suite::plain_scalar_is_text;
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
const BRANCH: &str = "__BRANCH__";
/// Of the workflow, the job and the hook; each folder of a repository has its own.
const NAME: &str = "__NAME__";
/// Where the jobs run, and before the names of files that they write.
const FOLDER_OF_JOB: &str = "    # folder\n";
const FOLDER: &str = "__FOLDER__";
/// The parts of the forms that verify the lock.
const VERIFY_ON_GITHUB: &str = "      - name: Verify the contract\n        run: mcproof lock --verify --deny breaking\n";
const VERIFY_ON_GITLAB: &str = "    - mcproof lock --verify --deny breaking\n";
/// The path of the hook, unless other hooks exist.
const PRE_COMMIT_FILE: &str = ".pre-commit-config.yaml";
/// The line by which our own one is known.
const MARK: &str = "# Written by `mcproof init`";

/// A file that is to be written.
pub(super) struct Planned {
    /// Below the folder; absolute in the root of the repository above it.
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
    pub(super) place: &'a Place,
}

/// The forms that run the tests in CI, on GitHub and on GitLab.
pub(super) fn jobs(place: &Place) -> [PathBuf; 2] {
    let name = name(place);
    [format!(".github/workflows/{name}.yml"), format!(".gitlab/{name}.yml")].map(|file| at_root(place, &file))
}

fn name(place: &Place) -> String {
    if place.within.is_empty() {
        return "mcproof".to_owned();
    }
    let safe = safe_name(&place.within);
    match safe == place.within.to_ascii_lowercase().replace(['/', '_', '.', ' '], "-") {
        true => format!("mcproof-{safe}"),
        // Another folder may be called the same in what is left of it.
        false => format!("mcproof-{safe}-{:08x}", fingerprint(&place.within)),
    }
}

/// FNV-1a, which is the same in each version.
fn fingerprint(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

fn at_root(place: &Place, file: &str) -> PathBuf {
    place.root.as_ref().map_or_else(|| file.into(), |root| root.join(file))
}

/// A scalar of YAML, in quotes unless it is of plain letters.
fn scalar(text: &str) -> String {
    let is_plain = text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_./ ".contains(letter));
    if is_plain && plain_scalar_is_text(text) { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

/// A word of a shell.
fn word(text: &str) -> String {
    shlex::try_quote(text).map_or_else(|_| text.to_owned(), std::borrow::Cow::into_owned)
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
    let planned = |path: PathBuf, text: String, about: &str| Planned { path, text, about: about.to_owned() };
    // Builders that know no secrets in the environment fetch one that does.
    let syntax = if mounts.is_empty() { "" } else { "# syntax=docker/dockerfile:1\n" };
    let Scaffold { installation, place, .. } = scaffold;
    let hooks = at_root(place, PRE_COMMIT_FILE);
    let tested = if place.within.is_empty() { "mcproof test".to_owned() } else { format!("mcproof test {}", word(&place.within)) };
    let own_hook = PRE_COMMIT.replace(&format!("mcproof test {FOLDER}"), &scalar(&tested)).replace(NAME, &name(place));
    // The file of another folder is one of others, too.
    let is_of_others =
        |text: String| !text.starts_with(MARK) || (text != own_hook && (place.root.is_some() || text.contains("- id: mcproof-")));
    let others = fs::read_to_string(folder.join(&hooks)).is_ok_and(is_of_others);
    let hook = if others { "mcproof.pre-commit.yaml".into() } else { hooks };
    let about_hook = if others { "a hook to add to the ones in .pre-commit-config.yaml" } else { "runs the tests before a commit" };
    let verified = |form: &str| match scaffold.verifies {
        true => form.to_owned(),
        false => form.replace(VERIFY_ON_GITHUB, "").replace(VERIFY_ON_GITLAB, ""),
    };
    let (there, change, below) = match place.within.as_str() {
        "" => (String::new(), String::new(), String::new()),
        within => (
            format!("    defaults: {{ run: {{ working-directory: {} }} }}\n", scalar(within)),
            format!("    - {}\n", scalar(&format!("cd {}", word(within)))),
            format!("{within}/"),
        ),
    };
    let named = |form: &str| verified(form).replace(NAME, &name(place)).replace(BRANCH, &scalar(&place.branch));
    let workflow = named(WORKFLOW).replace(FOLDER_OF_JOB, &there).replace(FOLDER, &below);
    let workflow = workflow.replace("      # secrets\n", &secrets).replace(INSTALL_ON_GITHUB, &installation.github(&below));
    let job = named(GITLAB).replace(IMAGE, installation.image()).replace(FOLDER_OF_JOB, &change);
    let job = ["mcproof.html", "mcproof.xml"]
        .iter()
        .fold(job, |job, file| job.replace(&format!("{FOLDER}{file}"), &scalar(&format!("{below}{file}"))));
    let job = job.replace(INSTALL_ON_GITLAB, &installation.gitlab());
    let [on_github, on_gitlab] = jobs(place);
    vec![
        planned(on_github, workflow, "runs the tests on GitHub"),
        planned(on_gitlab, job, "runs the tests on GitLab, if .gitlab-ci.yml includes it"),
        planned(
            "mcproof.Dockerfile".into(),
            syntax.to_owned() + &DOCKER.replace("SUITE.mcproof.yaml", scaffold.suite).replace("RUN_SECRETS ", &mounts),
            "an image that is only built if the tests pass on it",
        ),
        planned(hook, own_hook, about_hook),
    ]
}

/// Writes the files, and tells about each. Those that exist stay as they are, but for those that this run has written; if there is nothing to
/// add, that is an error.
pub(super) fn write(folder: &Path, planned: &[Planned], written: &[PathBuf], overwrite: bool) -> Result<Written, Failure> {
    let here = settings::current_folder();
    let shown = |path: &Path| path.strip_prefix(&here).unwrap_or(path).display().to_string();
    let stays = |file: &Planned| !overwrite && !written.contains(&file.path) && file.is_in_the_way(folder);
    if written.is_empty() && planned.iter().any(stays) && planned.iter().all(|file| folder.join(&file.path).symlink_metadata().is_ok()) {
        let all: Vec<String> = planned.iter().map(|file| shown(&file.path)).collect();
        let message = format!("{} already exist; nothing was written", all.join(", "));
        return Err(Failure::bad_input("file-exists", message).hint("--force overwrites, --dir FOLDER writes somewhere else"));
    }
    let (mut told, mut paths) = (String::new(), Vec::new());
    for file in planned {
        let path = folder.join(&file.path);
        if stays(file) {
            writeln!(told, "{}: kept as it is; --force overwrites it", shown(&path)).expect("a String takes all text");
            continue;
        }
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(|error| Failure::cannot_write(parent, &error))?;
        whole_file::write(&path, &file.text).map_err(|error| Failure::cannot_write(&path, &error))?;
        writeln!(told, "{}: {}", shown(&path), file.about).expect("a String takes all text");
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
