//! Snapshots on disk: one JSON file each, in the folder `NAME.snapshots` beside `NAME.mcproof.yaml`. A run never changes a
//! reviewed one unless it was told to; what is new or different waits beside it as `.new`, for `mcproof review`.

use super::Snapshots;
use super::expand::Work;
use super::sessions::Sessions;
use crate::judge::{Numbers, Payload, changes, equality, large_number, redact};
use crate::plan::{Case, Redaction, Snapshot, Step, Suite};
use crate::restriction::Restriction;
use mcproof_record::{Diagnostic, Difference};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The end of the name of each folder with snapshots.
const FOLDER: &str = ".snapshots";
/// What is added to the name of a snapshot that waits for its review.
const PENDING: &str = "new";
const NOT_REVIEWED: &str = "snapshot-not-reviewed";
const DIFFERS: &str = "snapshot-differs";

/// Compares a payload with what was reviewed.
pub(super) fn check(snapshot: &Snapshot, payload: &Payload, sessions: &Sessions<'_>) -> Option<Diagnostic> {
    let file = file(&sessions.work.suite, &sessions.work.plan.name, snapshot);
    // It goes into a repository.
    let value = sessions.without_secrets_in(payload.value.clone());
    let hint = "review it with `mcproof review`, or accept it with `mcproof test --update-snapshots`";
    match compare(&file, &value, payload.numbers, &snapshot.redact, sessions.options.snapshots) {
        Ok(Compared::Same | Compared::Written) => None,
        Ok(Compared::New(diagnostic) | Compared::Differs(diagnostic)) => Some(diagnostic.at(snapshot.place.clone()).hint(hint)),
        Err(diagnostic) => Some(diagnostic.at(snapshot.place.clone())),
    }
}

/// Whether a step failed only for what a review may accept.
pub(super) fn waits_for_review(diagnostic: &Diagnostic) -> bool {
    matches!(diagnostic.code.as_str(), NOT_REVIEWED | DIFFERS)
}

/// How a value compares with a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub enum Compared {
    Same,
    /// There was none.
    New(Diagnostic),
    Differs(Diagnostic),
    Written,
}

/// Holds a value against the snapshot in a file. What is new or different is put beside it, or in its place if that is the mode.
///
/// # Errors
/// The file cannot be read or written, or the value is not known exactly.
pub fn compare(file: &Path, value: &Value, numbers: Numbers, rules: &[Redaction], mode: Snapshots) -> Result<Compared, Diagnostic> {
    let now = redact(value, rules);
    if let Some(large) = large_number(&now, "$").filter(|_| numbers == Numbers::Rounded) {
        let message = format!("`{large}` does not fit 64 bits, so that the snapshot `{}` cannot be compared exactly", name(file));
        return Err(Diagnostic::error("snapshot-unusable", message).hint(format!("leave it out with `redact: ['{large}']`")));
    }
    let reviewed = read(file).map_err(|reason| unusable(file, "read", &reason))?;
    // As `expect` compares: what is shown as a difference, and what is one, are the same.
    if reviewed.as_ref().is_some_and(|reviewed| equality(reviewed, &now, Numbers::Exact) == Some(true)) {
        return Ok(Compared::Same);
    }
    let target = match mode {
        Snapshots::Update => file.to_owned(),
        Snapshots::Compare => pending(file),
    };
    write(&target, &now).map_err(|error| unusable(&target, "write", &error.to_string()))?;
    if mode == Snapshots::Update {
        return Ok(Compared::Written);
    }
    let actual = serde_json::to_string_pretty(&now).ok();
    Ok(match reviewed {
        None => {
            let message = format!("the new snapshot `{}` has not been reviewed", name(file));
            Compared::New(Diagnostic { actual, ..Diagnostic::error(NOT_REVIEWED, message) })
        }
        Some(reviewed) => {
            let message = format!("response does not match the snapshot `{}`", name(file));
            let differences = changes(&reviewed, &now);
            Compared::Differs(Diagnostic { actual, differences, ..Diagnostic::error(DIFFERS, message) })
        }
    })
}

/// Drops what waits from an earlier run of this case.
pub(super) fn forget_pending(work: &Work) {
    for snapshot in snapshots(work.case()) {
        // It is not there, as a rule.
        let _ = std::fs::remove_file(pending(&file(&work.suite, &work.plan.name, snapshot)));
    }
}

/// Whether the snapshots of a suite file lie where files may lie, each of them: one may be a link.
///
/// # Errors
/// Names the one that does not.
pub fn permit(restriction: &Restriction, suite: &Path) -> Result<(), Diagnostic> {
    let folder = folder_beside(suite);
    restriction.path(&folder, &folder.display().to_string())?;
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).try_for_each(|path| restriction.path(&path, &path.display().to_string()))
}

/// A snapshot that waits for its review.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    /// Where it will be once it is accepted.
    pub file: PathBuf,
    /// `None` if there was none before.
    pub reviewed: Option<Value>,
    pub now: Value,
}

impl Pending {
    /// How it differs from what was reviewed; none if there was nothing.
    pub fn differences(&self) -> Vec<Difference> {
        self.reviewed.as_ref().map(|reviewed| changes(reviewed, &self.now)).unwrap_or_default()
    }

    /// # Errors
    /// The file system refused.
    pub fn accept(&self) -> io::Result<()> {
        std::fs::rename(pending(&self.file), &self.file)
    }

    /// # Errors
    /// The file system refused.
    pub fn reject(&self) -> io::Result<()> {
        std::fs::remove_file(pending(&self.file))
    }
}

/// What waits beside these suite files, in the order of their paths.
///
/// # Errors
/// A snapshot cannot be read; says which, and why.
pub fn waiting(suites: &[PathBuf]) -> Result<Vec<Pending>, String> {
    let mut found = Vec::new();
    for suite in suites {
        let Ok(entries) = std::fs::read_dir(folder_beside(suite)) else { continue };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        for path in paths.filter(|path| path.extension().is_some_and(|end| end == PENDING) && is_snapshot(path)) {
            let file = path.with_extension("");
            let named = |path: &Path, reason: String| format!("{}: {reason}", path.display());
            if let Some(now) = read(&path).map_err(|reason| named(&path, reason))? {
                let reviewed = read(&file).map_err(|reason| named(&file, reason))?;
                found.push(Pending { file, reviewed, now });
            }
        }
    }
    found.sort_by(|one, other| one.file.cmp(&other.file));
    found.dedup();
    Ok(found)
}

/// Snapshots that no case of the suite takes any more, by their paths.
fn unreferenced(suite: &Suite) -> Vec<PathBuf> {
    let taken: BTreeSet<PathBuf> = suite
        .cases
        .iter()
        .flat_map(|case| snapshots(case).map(|snapshot| file(suite, &case.name, snapshot)))
        .flat_map(|file| [pending(&file), file])
        .collect();
    let Ok(entries) = std::fs::read_dir(folder(suite)) else { return Vec::new() };
    let files = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| is_snapshot(path) && !taken.contains(path));
    let mut files: Vec<PathBuf> = files.collect();
    files.sort();
    files
}

/// A notice of what is left over, if anything is.
pub(super) fn leftovers(suite: &Suite) -> Option<Diagnostic> {
    let files = if suite.left_out.is_empty() { unreferenced(suite) } else { Vec::new() };
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let message = match names.as_slice() {
        [] => return None,
        [only] => format!("no test of {} takes the snapshot {only}", suite.file),
        many => format!("no test of {} takes these snapshots: {}", suite.file, many.join(", ")),
    };
    Some(Diagnostic::warning("snapshot-unreferenced", message).hint("delete what is no longer needed"))
}

fn snapshots(case: &Case) -> impl Iterator<Item = &Snapshot> {
    case.steps.iter().flat_map(Step::leaves).filter_map(|step| step.snapshot.as_ref())
}

fn folder(suite: &Suite) -> PathBuf {
    let name = Path::new(&suite.file).file_name().unwrap_or_default();
    folder_beside(&suite.folder.join(name))
}

fn folder_beside(suite: &Path) -> PathBuf {
    let file = suite.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let stem = file.trim_end_matches(".yaml").trim_end_matches(".yml").trim_end_matches(".mcproof");
    suite.with_file_name(format!("{stem}{FOLDER}"))
}

fn file(suite: &Suite, case: &str, snapshot: &Snapshot) -> PathBuf {
    let which = snapshot.name.clone().unwrap_or_else(|| snapshot.number.to_string());
    folder(suite).join(format!("{}-{which}.json", slug(case)))
}

fn pending(file: &Path) -> PathBuf {
    file.with_extension(format!("json.{PENDING}"))
}

fn is_snapshot(path: &Path) -> bool {
    let name = name(path);
    name.ends_with(".json") || name.ends_with(&format!(".json.{PENDING}"))
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// A file name for a test. Names that would become the same are distinguished by a number made of the whole name.
fn slug(case: &str) -> String {
    const LONGEST: usize = 80;
    let mut slug = String::new();
    for character in case.chars() {
        match character {
            'a'..='z' | '0'..='9' => slug.push(character),
            _ if character.is_alphanumeric() => slug.extend(character.to_lowercase()),
            _ if slug.ends_with('-') || slug.is_empty() => {}
            _ => slug.push('-'),
        }
    }
    let slug: String = slug.trim_end_matches('-').chars().take(LONGEST).collect();
    if slug.replace('-', " ") == case { slug } else { format!("{slug}-{:06x}", hash(case) & 0xff_ffff) }
}

/// FNV-1a: the same on every machine and in every version, which file names have to be.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// `None` if there is no such file.
fn read(file: &Path) -> Result<Option<Value>, String> {
    match std::fs::read(file) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| format!("not valid JSON: {error}")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Gives each file that is being written a name of its own.
static DRAFTS: AtomicU64 = AtomicU64::new(0);

/// All at once, because several transports may write the same file.
fn write(file: &Path, value: &Value) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut text = serde_json::to_string_pretty(value).map_err(io::Error::other)?;
    text.push('\n');
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    let draft = file.with_extension(format!("{}-{number}.tmp", std::process::id()));
    // Never through a link that somebody has put there.
    OpenOptions::new().write(true).create_new(true).open(&draft)?.write_all(text.as_bytes())?;
    std::fs::rename(&draft, file)
}

fn unusable(file: &Path, verb: &str, reason: &str) -> Diagnostic {
    Diagnostic::error("snapshot-unusable", format!("cannot {verb} the snapshot {}: {reason}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_has_a_file_name_of_its_own() {
        assert_eq!(slug("an order reduces the stock"), "an-order-reduces-the-stock");
        let odd = ["An order", "an order!", "an-order", " an order", "über", "a  b", "../../etc/passwd", "!"];
        let slugs: BTreeSet<String> = odd.iter().map(|name| slug(name)).collect();
        assert_eq!(slugs.len(), odd.len());
        assert!(slugs.iter().all(|slug| !slug.contains(['/', '.'])), "{slugs:?}");
        assert!(slug(&"x".repeat(500)).len() < 100);
    }
}
