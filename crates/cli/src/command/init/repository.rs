//! Where the repository of a folder begins, and its branch. Reads the files of git, and starts no program.

use std::fs;
use std::path::{Path, PathBuf};

/// The branch of a repository that does not tell.
const USUAL: &str = "main";

/// A folder in its repository.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The root of the repository, if the folder is below it: what runs jobs and hooks looks there only.
    pub(super) root: Option<PathBuf>,
    /// The folder as seen from the root, with slashes; empty for the root itself.
    pub(super) within: String,
    /// The branch whose pushes are tested.
    pub(super) branch: String,
}

/// The place of `folder`, which need not be there yet. A folder in no repository is the root of one to come; so is one in the repository of
/// the user's settings, which is all of `home`.
pub(super) fn find(folder: &Path, home: Option<&Path>) -> Place {
    let whole = real(folder);
    let home = home.map(real).filter(|home| *home != whole);
    let is_root = |folder: &&Path| folder.join(".git").exists() && home.as_deref() != Some(*folder);
    let Some(root) = whole.ancestors().find(is_root) else {
        return Place { root: None, within: String::new(), branch: USUAL.to_owned() };
    };
    let parts = whole.strip_prefix(root).into_iter().flat_map(Path::components);
    let within = parts.map(|part| part.as_os_str().to_string_lossy().into_owned()).collect::<Vec<_>>().join("/");
    let branch = metadata(&root.join(".git")).and_then(|metadata| default_branch(&metadata));
    Place { root: (!within.is_empty()).then(|| root.to_owned()), within, branch: branch.unwrap_or_else(|| USUAL.to_owned()) }
}

/// The folder without links, as far as it is there.
fn real(folder: &Path) -> PathBuf {
    let there = folder.ancestors().find_map(|above| Some((above.canonicalize().ok()?, folder.strip_prefix(above).ok()?)));
    there.map_or_else(|| folder.to_owned(), |(above, rest)| above.components().chain(rest.components()).collect())
}

/// The folder with the branches, which all worktrees of a repository share, and the one with the `HEAD` of this one.
struct Metadata {
    shared: PathBuf,
    own: PathBuf,
}

fn metadata(git: &Path) -> Option<Metadata> {
    let own = match git.is_dir() {
        true => git.to_owned(),
        false => git.parent()?.join(fs::read_to_string(git).ok()?.trim().strip_prefix("gitdir:")?.trim()),
    };
    let shared = fs::read_to_string(own.join("commondir")).map_or_else(|_| own.clone(), |shared| own.join(shared.trim()));
    Some(Metadata { shared, own })
}

/// The one that the remote repository begins with; without one, `main` or `master`, or what is checked out.
fn default_branch(metadata: &Metadata) -> Option<String> {
    let Metadata { shared, own } = metadata;
    let target = |file: PathBuf, prefix: &str| Some(fs::read_to_string(file).ok()?.trim().strip_prefix(prefix)?.to_owned());
    let packed = fs::read_to_string(shared.join("packed-refs")).unwrap_or_default();
    let is_there = |branch: &&str| {
        let name = format!("refs/heads/{branch}");
        shared.join(&name).is_file() || packed.lines().any(|line| line.split_once(' ').is_some_and(|(_, known)| known == name))
    };
    target(shared.join("refs/remotes/origin/HEAD"), "ref: refs/remotes/origin/")
        .or_else(|| [USUAL, "master"].iter().copied().find(is_there).map(str::to_owned))
        .or_else(|| target(own.join("HEAD"), "ref: refs/heads/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_branch_is_that_of_the_remote_or_the_one_that_is_there() {
        let check = |files: &[(&str, &str)], folder: &str, within: &str, branch: &str| {
            let root = tempfile::tempdir().unwrap();
            let root = root.path().canonicalize().unwrap();
            for (name, text) in files {
                fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
                fs::write(root.join(name), text).unwrap();
            }
            let found = find(&root.join(folder), None);
            let expected = Place { root: (!within.is_empty()).then_some(root), within: within.to_owned(), branch: branch.to_owned() };
            assert_eq!(found, expected, "{files:?}");
        };
        let head = (".git/HEAD", "ref: refs/heads/feature/x\n");
        check(&[], "a", "", "main");
        check(&[head], "", "", "feature/x");
        check(&[(".git/HEAD", "ref: refs/heads/master\n")], "packages/b", "packages/b", "master");
        check(&[head, (".git/refs/heads/master", "0\n")], "", "", "master");
        check(&[head, (".git/packed-refs", "# pack-refs\n0 refs/heads/main\n")], "", "", "main");
        let remote = (".git/refs/remotes/origin/HEAD", "ref: refs/remotes/origin/trunk\n");
        check(&[head, (".git/refs/heads/main", "0\n"), remote], "a/b", "a/b", "trunk");
        // A worktree.
        let shared = ("store/refs/remotes/origin/HEAD", "ref: refs/remotes/origin/trunk\n");
        check(&[("w/.git", "gitdir: ../store/worktrees/w\n"), ("store/worktrees/w/commondir", "../..\n"), shared], "w", "", "trunk");
    }
}
