//! `mcproof upgrade`: which command brings a newer version, and with `--check` whether there is one. Asks the package manager that
//! installed this program, only when told to, and never replaces anything.

mod manager;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::{conversation, output, settings};
use manager::{Asked, Manager};
use mcproof_client::{Guardian, Launch, Tap, TapBounds, run_command};
use mcproof_record::{Diagnostic, FrameBody, Transcript};
use semver::Version;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Print the command that upgrades mcproof; with --check, ask whether a newer version exists
///
/// Nothing is replaced, and without --check nothing is asked. --check asks the registry that this program came from, through npm, uv,
/// pip, cargo, brew, scoop or winget with their own settings. Exits with 1 if a newer version exists, and with 3 if there is no answer.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof upgrade
  mcproof upgrade --check
  mcproof upgrade --check --from npm")]
pub(crate) struct Arguments {
    /// Ask the registry for the newest version
    #[arg(long)]
    check: bool,
    /// Package manager to use [default: the one that installed this program]
    #[arg(long, value_name = "MANAGER")]
    from: Option<Manager>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// A package manager that has not answered by then does not answer.
const WITHIN: Duration = Duration::from_secs(30);

/// Lines of a package manager that tell why it failed.
const SHOWN: usize = 3;

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let place = settings::own_binary().ok_or_else(|| Failure::bad_input("no-own-path", "the path of this program is unknown"))?;
    // A link in a directory of PATH leads to what a package manager has put elsewhere.
    let place = place.canonicalize().unwrap_or(place);
    let manager = match arguments.from {
        Some(manager) => manager,
        None => Manager::of(&place, &installed_by_cargo(&place)).ok_or_else(|| unknown(&place))?,
    };
    let installed = Version::parse(env!("CARGO_PKG_VERSION")).expect("cargo has read this version");
    if !arguments.check {
        return told(arguments, manager, &installed, None);
    }
    let newest = newest(manager, &place)?;
    told(arguments, manager, &installed, Some(&newest))
}

fn told(arguments: &Arguments, manager: Manager, installed: &Version, newest: Option<&Version>) -> Result<Exit, Failure> {
    let is_newer = newest.is_some_and(|newest| newest > installed);
    if arguments.json {
        let report = serde_json::json!({
            "installed": installed.to_string(),
            "newest": newest.map(Version::to_string),
            "from": manager.name(),
            "upgrade": manager.upgrade(),
        });
        output::json(&format!("{report:#}\n"))?;
    } else {
        let upgrade = format!("upgrade with `{}`", manager.upgrade());
        let text = match newest {
            None => format!("mcproof {installed}, from {}: {upgrade}", manager.name()),
            Some(newest) if is_newer => format!("mcproof {newest} is available; this is {installed}: {upgrade}"),
            Some(newest) if newest == installed => format!("mcproof {installed} is the newest version ({})", manager.name()),
            Some(newest) => format!("mcproof {installed} is newer than {newest}, the newest version on {}", manager.name()),
        };
        output::show(&format!("{text}\n"))?;
    }
    Ok(if is_newer { Exit::Failed } else { Exit::Passed })
}

/// What the registry has, through the package manager's own program.
fn newest(manager: Manager, place: &Path) -> Result<Version, Failure> {
    let folder = tempfile::tempdir().map_err(|error| Failure::cannot_write(&settings::temporary_folder(), &error))?;
    let path = settings::variable("PATH").unwrap_or_default();
    let Asked { program, arguments, file } =
        manager.question(place, |name| settings::find_program(name, &path)).map_err(|name| not_found(manager, name))?;
    if let Some((name, text)) = file {
        let path = folder.path().join(name);
        std::fs::write(&path, text).map_err(|error| Failure::cannot_write(&path, &error))?;
    }
    let mut command = vec![program.display().to_string()];
    command.extend(arguments.iter().map(|word| (*word).to_owned()));
    let typed = format!("{} {}", program.file_name().unwrap_or(program.as_os_str()).display(), arguments.join(" "));
    // Not in the directory of the user: a project there may be called mcproof, too.
    let launch = Launch { command, folder: Some(folder.path().to_owned()), ..Launch::default() };
    let tap = Tap::with(TapBounds::default(), Vec::new(), None);
    let guardian = Guardian::of_whole_process();
    let ended = conversation::run(run_command(&launch, &guardian, &tap, WITHIN))?;
    let exit = ended.map_err(|failure| no_version(format!("`{typed}` does not start: {failure}")))?;
    let said = Said::of(&tap.transcript());
    match exit {
        None => Err(no_version(format!("`{typed}` did not answer within {} s", WITHIN.as_secs()))),
        Some(exit) if exit.code == Some(0) => {
            manager.newest(&said.stdout).ok_or_else(|| no_version(format!("`{typed}` names no version of mcproof{}", said.shown())))
        }
        Some(_) => Err(no_version(format!("`{typed}` failed{}", said.shown()))),
    }
}

/// What a program has printed.
struct Said {
    stdout: String,
    stderr: Vec<String>,
}

impl Said {
    fn of(transcript: &Transcript) -> Self {
        let mut said = Self { stdout: String::new(), stderr: Vec::new() };
        for frame in &transcript.frames {
            match &frame.body {
                FrameBody::Stdout { bytes } => {
                    said.stdout += String::from_utf8_lossy(bytes.as_bytes()).trim_end();
                    said.stdout.push('\n');
                }
                FrameBody::Stderr { bytes } => said.stderr.push(String::from_utf8_lossy(bytes.as_bytes()).trim().to_owned()),
                _ => {}
            }
        }
        said
    }

    fn shown(&self) -> String {
        let tells = |line: &&str| !line.is_empty() && !line.starts_with("WARNING");
        let lines: Vec<&str> = self.stderr.iter().map(String::as_str).filter(tells).take(SHOWN).collect();
        if lines.is_empty() { String::new() } else { format!(": {}", lines.join("; ")) }
    }
}

fn no_version(message: String) -> Failure {
    Failure::new(Exit::Unreachable, Diagnostic::error("no-newest-version", message))
        .hint("mcproof may not be published there, or this machine is offline: run the command by hand")
}

fn not_found(manager: Manager, name: &str) -> Failure {
    Failure::new(
        Exit::Unreachable,
        Diagnostic::error("no-newest-version", format!("`{name}` is not on PATH, so {} cannot be asked", manager.name())),
    )
    .hint("`--from` names another package manager")
}

fn unknown(place: &Path) -> Failure {
    Failure::bad_input("unknown-installation", format!("no package manager is known to have installed {}", place.display())).hint(
        "it was built from sources, or copied from an archive: get a newer one in the same way, or name a package manager with --from",
    )
}

/// What cargo remembers of the programs in a directory.
fn installed_by_cargo(place: &Path) -> String {
    let list: Option<PathBuf> = place.parent().and_then(Path::parent).map(|root| root.join(".crates.toml"));
    list.and_then(|list| std::fs::read_to_string(list).ok()).unwrap_or_default()
}
