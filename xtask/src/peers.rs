//! Installs the real servers of `peers/` into `target/peers` (and those of `field/` into `target/field`), once per lock file. Knows
//! npm and pip, not what they bring.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

/// One folder of servers that are installed together.
pub(crate) struct Peer {
    pub(crate) name: String,
    /// Where it is installed.
    pub(crate) folder: PathBuf,
    ecosystem: Ecosystem,
    /// Where its manifest and its lock file are.
    source: PathBuf,
}

/// Installs the named peers, or all of them, and gives back which. What is up to date is left alone.
///
/// # Errors
/// One text that tells of every peer that could not be installed; the others are installed nevertheless.
pub(crate) fn install(root: &Path, names: &[&str]) -> Result<Vec<Peer>, String> {
    install_set(root, "peers", names)
}

/// The same for another folder of the checkout that is laid out as `peers/` is.
///
/// # Errors
/// As for [`install`].
pub(crate) fn install_set(root: &Path, set: &str, names: &[&str]) -> Result<Vec<Peer>, String> {
    let peers = select(find(root, set)?, names)?;
    let target = root.join("target").join(set);
    fs::create_dir_all(&target).map_err(|error| cannot("create", &target, &error))?;

    // Two checks of one checkout take turns: an installer starts by emptying its folder.
    let turn = target.join("turn.lock");
    let turn = File::create(&turn).map_err(|error| cannot("create", &turn, &error))?;
    turn.lock().map_err(|error| format!("cannot wait for another installation to end: {error}"))?;

    lay_out_fixture(&root.join(set).join("fixture"), &target.join("fixture"))?;

    let python = version_of("python3");
    let mut queue: Vec<(&Peer, String)> = Vec::new();
    for peer in &peers {
        let stamp = stamp(peer, python.as_deref())?;
        if fs::read_to_string(peer.stamp_file()).is_ok_and(|present| present == stamp) {
            continue;
        }
        queue.push((peer, stamp));
    }
    require_tools(&queue)?;

    let failures = Mutex::new(Vec::new());
    let queue = Mutex::new(queue);
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("no worker panics").pop();
                    let Some((peer, stamp)) = next else { break };
                    let started = Instant::now();
                    match install_one(peer, &stamp) {
                        Ok(()) => println!("peers: {} installed in {:.1} s", peer.name, started.elapsed().as_secs_f64()),
                        Err(why) => failures.lock().expect("no worker panics").push(format!("{}: {why}", peer.name)),
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no worker panics");
    if failures.is_empty() { Ok(peers) } else { Err(failures.join("\n")) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ecosystem {
    Node,
    Python,
}

impl Ecosystem {
    fn folder(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Python => "python",
        }
    }

    fn lock_file(self) -> &'static str {
        match self {
            Self::Node => "package-lock.json",
            Self::Python => "requirements.txt",
        }
    }
}

impl Peer {
    fn stamp_file(&self) -> PathBuf {
        self.folder.join("installed")
    }
}

fn find(root: &Path, set: &str) -> Result<Vec<Peer>, String> {
    let mut peers = Vec::new();
    for ecosystem in [Ecosystem::Node, Ecosystem::Python] {
        let folder = root.join(set).join(ecosystem.folder());
        let entries = fs::read_dir(&folder).map_err(|error| cannot("read", &folder, &error))?;
        for entry in entries {
            let source = entry.map_err(|error| cannot("read", &folder, &error))?.path();
            if !source.join(ecosystem.lock_file()).is_file() {
                continue;
            }
            let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let folder = root.join("target").join(set).join(ecosystem.folder()).join(&name);
            peers.push(Peer { name, folder, ecosystem, source });
        }
    }
    peers.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(peers)
}

fn select(peers: Vec<Peer>, names: &[&str]) -> Result<Vec<Peer>, String> {
    if let Some(unknown) = names.iter().find(|name| peers.iter().all(|peer| peer.name != **name)) {
        let known: Vec<&str> = peers.iter().map(|peer| peer.name.as_str()).collect();
        return Err(format!("no peer is called `{unknown}`; there are {}", known.join(", ")));
    }
    let wanted = |peer: &Peer| names.is_empty() || names.contains(&peer.name.as_str());
    Ok(peers.into_iter().filter(wanted).collect())
}

/// What has to be the same for an installation to be kept: the lock itself rather than its hash, which needs no crate.
/// A virtual environment also depends on its interpreter, and its scripts on the place where they lie.
fn stamp(peer: &Peer, python: Option<&str>) -> Result<String, String> {
    let file = peer.source.join(peer.ecosystem.lock_file());
    let lock = fs::read_to_string(&file).map_err(|error| cannot("read", &file, &error))?;
    match peer.ecosystem {
        Ecosystem::Node if lock.contains("\"resolved\":") => {
            Err(format!("{} names a registry; write it again as peers/README.md says", file.display()))
        }
        Ecosystem::Node => Ok(lock),
        Ecosystem::Python => Ok(format!("{}\n{}\n{lock}", python.unwrap_or_default(), peer.folder.display())),
    }
}

/// Says at once what the machine lacks, rather than once per peer.
fn require_tools(stale: &[(&Peer, String)]) -> Result<(), String> {
    let needs = |ecosystem| stale.iter().any(|(peer, _)| peer.ecosystem == ecosystem);
    let mut missing = Vec::new();
    if needs(Ecosystem::Node) {
        missing.extend(["node", "npm"].into_iter().filter(|tool| version_of(tool).is_none()));
    }
    if needs(Ecosystem::Python) && version_of("python3").is_none() {
        missing.push("python3");
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!(
        "not found on PATH: {}; the servers to test against need Node.js 20 or newer with npm, and Python 3.11 or newer",
        missing.join(", ")
    ))
}

/// What a program answers to `--version`, or nothing if it cannot be started.
pub(crate) fn version_of(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn install_one(peer: &Peer, stamp: &str) -> Result<(), String> {
    fs::create_dir_all(&peer.folder).map_err(|error| cannot("create", &peer.folder, &error))?;
    // Gone while the folder changes, so that an interrupted installation is not taken for a whole one.
    match fs::remove_file(peer.stamp_file()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(cannot("remove", &peer.stamp_file(), &error));
        }
        _ => {}
    }
    match peer.ecosystem {
        Ecosystem::Node => install_node(peer)?,
        Ecosystem::Python => install_python(peer)?,
    }
    fs::write(peer.stamp_file(), stamp).map_err(|error| cannot("write", &peer.stamp_file(), &error))
}

fn install_node(peer: &Peer) -> Result<(), String> {
    for file in ["package.json", "package-lock.json"] {
        let (from, to) = (peer.source.join(file), peer.folder.join(file));
        fs::copy(&from, &to).map_err(|error| cannot("copy", &from, &error))?;
    }
    // No script of a stranger's package runs at installation: none of these servers needs one.
    run(Command::new("npm").args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]).current_dir(&peer.folder))
}

fn install_python(peer: &Peer) -> Result<(), String> {
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&peer.folder))?;
    // The list is complete, so nothing is resolved again.
    run(Command::new(peer.folder.join("bin/python"))
        .args(["-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps", "--requirement"])
        .arg(peer.source.join("requirements.txt")))
}

/// Runs a command in silence; what it printed becomes the error if it fails.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().display().to_string();
    let first = command.get_args().next().unwrap_or(OsStr::new("")).display().to_string();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("cannot start {program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "`{program} {first} …` ended with {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}

/// Copies the files that the servers work on, and gives them an empty git repository (which git cannot keep inside another).
fn lay_out_fixture(source: &Path, target: &Path) -> Result<(), String> {
    let repository = target.join("repository/.git");
    for folder in [repository.join("objects"), repository.join("refs")] {
        fs::create_dir_all(&folder).map_err(|error| cannot("create", &folder, &error))?;
    }
    write_if_changed(&repository.join("HEAD"), b"ref: refs/heads/main\n")?;
    for entry in fs::read_dir(source).map_err(|error| cannot("read", source, &error))? {
        let entry = entry.map_err(|error| cannot("read", source, &error))?;
        let content = fs::read(entry.path()).map_err(|error| cannot("read", &entry.path(), &error))?;
        write_if_changed(&target.join(entry.file_name()), &content)?;
    }
    Ok(())
}

/// Leaves a file that is right already alone: a running server may have it open.
fn write_if_changed(path: &Path, content: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|present| present == content) {
        return Ok(());
    }
    fs::write(path, content).map_err(|error| cannot("write", path, &error))
}

fn cannot(verb: &str, path: &Path, error: &io::Error) -> String {
    format!("cannot {verb} {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(root: &Path, names: &[&str], expected: Result<&[&str], &str>) {
        let found = find(root, "peers").and_then(|peers| select(peers, names));
        let found = found.map(|peers| peers.into_iter().map(|peer| peer.name).collect::<Vec<_>>());
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
            (found, expected) => panic!("{names:?}: {found:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn peers_are_selected_by_name_and_listed_in_order() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        check(root, &["memory", "everything"], Ok(&["everything", "memory"]));
        check(root, &["mcp1"], Ok(&["mcp1"]));
        check(root, &["mcp1", "nobody"], Err("no peer is called `nobody`; there are "));
        check(root, &["nobody"], Err(", eslint, everything, filesystem, "));
    }

    #[test]
    fn a_lock_file_that_names_a_registry_is_refused() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for peer in ["peers", "field"].into_iter().flat_map(|set| find(root, set).unwrap()) {
            stamp(&peer, None).unwrap();
        }
        let source = root.join("target/peers-test");
        fs::create_dir_all(&source).unwrap();
        fs::write(source.join("package-lock.json"), r#"{ "resolved": "somewhere" }"#).unwrap();
        let peer = Peer { name: "x".into(), folder: source.clone(), ecosystem: Ecosystem::Node, source };
        assert!(stamp(&peer, None).unwrap_err().contains("names a registry"));
    }
}
