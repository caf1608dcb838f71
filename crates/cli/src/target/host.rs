//! Starts a command as a desktop host does that a person has clicked on: without the shell's PATH and variables, and in
//! another folder. What works in a terminal and not there is what users report as "the server does not start".
//!
//! Sources: the debugging guide of the protocol (servers inherit a subset of the variables, such as HOME, PATH and USER; the
//! working folder may be `/`), the default environment of the TypeScript and Python SDKs (HOME, LOGNAME, PATH, SHELL, TERM,
//! USER; a program without a terminal has no TERM), launchd on macOS and systemd on Linux for the PATH.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::settings;
use mcproof_client::{BaseEnvironment, Launch};
use mcproof_record::Diagnostic;
use mcproof_suite::run::Launcher;
use mcproof_system::machine::{HOST_FOLDER, HOST_VARIABLES, host_path};
use std::path::{Path, PathBuf, is_separator};
use std::sync::Arc;

/// How a command is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Style {
    /// The environment and directory of this shell
    #[default]
    Shell,
    /// The environment of a desktop host: a minimal PATH, few variables, and the directory `/`
    Host,
}

impl Style {
    /// For the servers of suites.
    pub(crate) fn launcher(self) -> Option<Launcher> {
        match self {
            Self::Shell => None,
            Self::Host => Some(Arc::new(|launch| launched(launch).map_err(|failure| *failure.diagnostic))),
        }
    }
}

/// The same command in the surroundings of a host; `launch.folder` is the one that was asked for, if any was.
///
/// # Errors
/// A host would not find the program.
pub(crate) fn launched(launch: Launch) -> Result<Launch, Failure> {
    let Launch { command, env: chosen, folder, .. } = launch;
    let folder = folder.unwrap_or_else(|| HOST_FOLDER.into());
    let mut env: Vec<(String, String)> =
        HOST_VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), settings::variable(name)?))).collect();
    env.push(("PATH".to_owned(), host_path()));
    env.retain(|(name, _)| chosen.iter().all(|(other, _)| other != name));
    env.extend(chosen);
    if let Some(program) = command.first() {
        let path = env.iter().rfind(|(name, _)| name == "PATH").map(|(_, path)| path.as_str()).unwrap_or_default();
        find(program, path, &folder)?;
    }
    Ok(Launch { command, env, folder: Some(folder), surroundings: BaseEnvironment::Nothing })
}

fn find(program: &str, path: &str, folder: &Path) -> Result<(), Failure> {
    let missing =
        |message: String, hint: String| Failure::new(Exit::Unreachable, Diagnostic::error("command-not-found", message).hint(hint));
    if program.contains(is_separator) {
        let (there, here) = (folder.join(program), settings::current_folder().join(program));
        return match (there.is_file(), here.is_file()) {
            (true, _) => Ok(()),
            (false, true) => Err(missing(
                format!("`{program}` is not found from {}, where a desktop host starts it", folder.display()),
                format!("use its absolute path in the configuration of the host: {}", tidy(&here).display()),
            )),
            (false, false) => Err(missing(format!("`{program}` was not found"), "check the spelling of the path".to_owned())),
        };
    }
    if settings::find_program(program, path).is_some() {
        return Ok(());
    }
    let own = settings::variable("PATH").unwrap_or_default();
    let hint = match settings::find_program(program, &own) {
        Some(place) => format!(
            "it is at {}: use this path in the configuration of the host, or set PATH there (here: -e PATH=…)",
            tidy(&place).display()
        ),
        None => format!("it is not on the PATH of this shell either: check the spelling of `{program}` and whether it is installed"),
    };
    Err(missing(format!("`{program}` is not on the PATH of a desktop host: {path}"), hint))
}

/// What to do about files that are named as if the host worked in this folder.
pub(super) fn hint(launch: &Launch) -> Option<String> {
    let folder = launch.folder.as_deref().filter(|_| launch.surroundings == BaseEnvironment::Nothing)?;
    let is_lost = |word: &&String| Path::new(word).is_relative() && Path::new(word).exists() && !folder.join(word).exists();
    let word = launch.command.iter().skip(1).filter(|word| !word.starts_with('-')).find(is_lost)?;
    let whole = tidy(&settings::current_folder().join(word));
    Some(format!("`{word}` is not found from {}, where a desktop host starts it: write {}", folder.display(), whole.display()))
}

/// Without `.` in the middle, which `join` leaves there.
fn tidy(path: &Path) -> PathBuf {
    path.components().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(command: &[&str], env: &[(&str, &str)]) -> Launch {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Launch { command, env, ..Launch::default() }
    }

    #[test]
    fn a_host_gives_little_and_what_it_is_told_to() {
        let Launch { env, folder, surroundings, .. } = launched(launch(&["sh"], &[("API_KEY", "k"), ("HOME", "/elsewhere")])).unwrap();
        assert_eq!((folder, surroundings), (Some("/".into()), BaseEnvironment::Nothing));
        let value = |name: &str| env.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect::<Vec<_>>();
        assert_eq!((value("PATH"), value("API_KEY"), value("HOME")), (vec![host_path().as_str()], vec!["k"], vec!["/elsewhere"]));
        let known = [HOST_VARIABLES, &["PATH", "API_KEY"]].concat();
        assert!(env.iter().all(|(name, _)| known.contains(&name.as_str())), "{env:?}");
    }

    #[test]
    fn what_a_host_would_not_find_is_named_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("some-runner");
        std::fs::write(&program, "").unwrap();
        let check = |command: &str, path: &str, expected: Result<(), &str>| {
            let found = launched(launch(&[command], &[("PATH", path)])).map(drop);
            let message = |failure: Failure| failure.diagnostic.message;
            assert_eq!(found.map_err(message), expected.map_err(str::to_owned));
        };
        // There, but no program.
        let place = folder.path().to_str().unwrap();
        check("some-runner", place, Err(&format!("`some-runner` is not on the PATH of a desktop host: {place}")));
        check(program.to_str().unwrap(), "", Ok(()));
        check("src/main.rs", "", Err("`src/main.rs` is not found from /, where a desktop host starts it"));
        check("./nowhere", "", Err("`./nowhere` was not found"));
    }

    #[test]
    fn files_that_are_named_from_here_get_a_hint() {
        let check = |words: &[&str], expected: bool| {
            let launch = Launch { folder: Some("/".into()), surroundings: BaseEnvironment::Nothing, ..launch(words, &[]) };
            assert_eq!(hint(&launch).is_some(), expected, "{words:?}");
        };
        check(&["node", "src/main.rs"], true);
        check(&["node", "--import", "./src/main.rs"], true);
        check(&["node", "/src/main.rs"], false);
        check(&["node", "nowhere.js"], false);
    }
}
