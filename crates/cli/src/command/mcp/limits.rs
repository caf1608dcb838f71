//! The restrictions of an agent: commands that may be started, variables that may be set, and the directory of all files. Checked before
//! anything is started; suites and configuration files are checked by the process that reads them, with the flags of `--restricted`.

use crate::failure::Failure;
use crate::settings;
use mcproof_suite::restriction::{CommandPattern, Folder, line};
use mcproof_system::commands;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct LimitArgs {
    /// Start only commands that match this glob, such as 'node server.js *'; may be repeated
    #[arg(long, value_name = "GLOB", conflicts_with = "no_spawn")]
    allow_command: Vec<String>,
    /// With --allow-command or --no-spawn, allow this environment variable to be read and set, or * for all; may be repeated
    #[arg(long, value_name = "NAME")]
    allow_env: Vec<String>,
    /// Start no commands: test only servers at URLs
    #[arg(long)]
    no_spawn: bool,
    /// Work in this directory, and read and write no file outside it
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Without any, everything is allowed.
#[derive(Debug, Default)]
pub(super) struct Limits {
    commands: Option<Vec<(String, CommandPattern)>>,
    variables: Vec<String>,
    folder: Option<Folder>,
}

/// The parts of a tool call that may be restricted.
pub(super) struct RequestedAccess<'a> {
    /// Commands, each in its words.
    pub(super) commands: Vec<Vec<String>>,
    pub(super) variables: Vec<&'a str>,
    /// Files and folders.
    pub(super) paths: Vec<String>,
    /// Words that are a file, a command, a URL or a name.
    pub(super) sides: Vec<&'a str>,
}

impl LimitArgs {
    /// # Errors
    /// A pattern is none, or the folder is not there.
    pub(super) fn limits(&self) -> Result<Limits, Failure> {
        let pattern = |text: &String| match CommandPattern::parse(text) {
            Ok(pattern) => Ok((text.clone(), pattern)),
            Err(error) => Err(Failure::bad_input("bad-flag", format!("--allow-command {text}: {error}"))),
        };
        let commands = match self.no_spawn {
            true => Some(Vec::new()),
            false if self.allow_command.is_empty() => None,
            false => Some(self.allow_command.iter().map(pattern).collect::<Result<_, _>>()?),
        };
        if commands.is_none() && !self.allow_env.is_empty() {
            return Err(Failure::bad_input("bad-flag", "--allow-env requires --allow-command or --no-spawn"));
        }
        let folder = self.folder.as_deref().map(|path| {
            let missing = |error| Failure::bad_input("no-such-folder", format!("--folder {}: {error}", path.display()));
            Folder::at(path).map_err(missing).and_then(|folder| match folder.path().is_dir() {
                true => Ok(folder),
                false => Err(Failure::bad_input("no-such-folder", format!("--folder {} is a file, not a directory", path.display()))),
            })
        });
        Ok(Limits { commands, variables: self.allow_env.clone(), folder: folder.transpose()? })
    }
}

impl Limits {
    /// Where a job works whose agent has not said where.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.path().to_owned())
    }

    /// The flags with which a process of ours keeps to this.
    pub(super) fn flags(&self) -> Vec<String> {
        if self.commands.is_none() && self.folder.is_none() {
            return Vec::new();
        }
        let mut flags = vec!["--restricted".to_owned(), "--allow-host=*".to_owned()];
        match &self.commands {
            None => flags.extend(["--allow-command=*", "--allow-env=*"].map(str::to_owned)),
            Some(commands) => {
                flags.extend(commands.iter().map(|(text, _)| format!("--allow-command={text}")));
                flags.extend(self.variables.iter().map(|name| format!("--allow-env={name}")));
            }
        }
        let folder = self.folder.as_ref().map_or(Path::new("/"), Folder::path);
        flags.push(format!("--allow-path={}", folder.display()));
        flags
    }

    /// The restrictions, for the instructions of the server.
    pub(super) fn told(&self) -> String {
        let mut told = String::new();
        match &self.commands {
            None => {}
            Some(commands) if commands.is_empty() => told += "\nCommands are not allowed: name the server with a URL.",
            Some(commands) => {
                let patterns: Vec<&str> = commands.iter().map(|(text, _)| text.as_str()).collect();
                told += &format!("\nOnly these commands are allowed (* matches any text): {}.", patterns.join("; "));
            }
        }
        if let Some(folder) = &self.folder {
            told += &format!("\nAll files must be in {}.", folder.path().display());
        }
        told
    }

    /// # Errors
    /// Says what is not allowed, and which flag of this server would allow it.
    pub(super) fn permit(&self, requested_access: &RequestedAccess<'_>, cwd: Option<&Path>) -> Result<(), String> {
        let here = cwd.map(Path::to_owned).or_else(|| self.folder()).unwrap_or_else(settings::current_folder);
        cwd.map_or(Ok(()), |cwd| self.path(cwd, &cwd.display().to_string()))?;
        requested_access.commands.iter().try_for_each(|words| self.command(words))?;
        if self.commands.is_some() {
            requested_access.variables.iter().try_for_each(|name| self.variable(name))?;
        }
        for path in &requested_access.paths {
            self.path(&here.join(path), path)?;
        }
        requested_access.sides.iter().try_for_each(|side| self.side(side, &here))
    }

    fn command(&self, words: &[String]) -> Result<(), String> {
        let Some(commands) = &self.commands else { return Ok(()) };
        if commands.iter().any(|(_, pattern)| pattern.covers(words)) {
            return Ok(());
        }
        let line = line(words);
        Err(match commands.is_empty() {
            true => format!("command `{line}` is not allowed: `mcproof mcp` runs with --no-spawn"),
            false => format!("command `{line}` is not allowed: `mcproof mcp` runs without a matching --allow-command"),
        })
    }

    fn variable(&self, name: &str) -> Result<(), String> {
        match self.variables.iter().any(|allowed| allowed == "*" || allowed == name) {
            true => Ok(()),
            false => Err(format!("variable `{name}` is not allowed: `mcproof mcp` runs without --allow-env {name}")),
        }
    }

    fn path(&self, path: &Path, named: &str) -> Result<(), String> {
        match &self.folder {
            Some(folder) if !folder.holds(path) => {
                Err(format!("`{named}` is outside {}, the --folder of `mcproof mcp`", folder.path().display()))
            }
            _ => Ok(()),
        }
    }

    /// As `mcproof diff` reads it.
    fn side(&self, side: &str, here: &Path) -> Result<(), String> {
        let words = shlex::split(side).unwrap_or_default();
        match words.as_slice() {
            [word] if word.contains("://") => Ok(()),
            [word] => {
                let path = here.join(word);
                if commands::is_executable(&path) || (!path.is_file() && settings::program_exists(word)) {
                    self.command(&words)?;
                }
                self.path(&path, word)
            }
            _ => self.command(&words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(arguments: LimitArgs) -> Limits {
        arguments.limits().unwrap()
    }

    #[test]
    fn what_is_not_allowed_is_refused_before_anything_starts() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("mcproof.lock"), "{}").unwrap();
        std::os::unix::fs::symlink("/etc", folder.path().join("away")).unwrap();
        let limited = limits(LimitArgs {
            allow_command: vec!["node server.js*".into()],
            allow_env: vec!["KEY".into()],
            no_spawn: false,
            folder: Some(folder.path().to_owned()),
        });
        let check = |requested_access: RequestedAccess<'_>, cwd: Option<&str>, expected: Result<(), &str>| {
            let found = limited.permit(&requested_access, cwd.map(Path::new));
            match (found, expected) {
                (Ok(()), Ok(())) => {}
                (Err(found), Err(part)) => assert!(found.contains(part), "{found} lacks {part}"),
                (found, expected) => panic!("{found:?} is not {expected:?}"),
            }
        };
        let requested_access = || RequestedAccess { commands: Vec::new(), variables: Vec::new(), paths: Vec::new(), sides: Vec::new() };
        let command = |text: &str| vec![shlex::split(text).unwrap()];
        check(RequestedAccess { commands: command("node server.js --port 1"), ..requested_access() }, None, Ok(()));
        check(RequestedAccess { commands: command("sh -c 'node server.js'"), ..requested_access() }, None, Err("is not allowed"));
        check(RequestedAccess { commands: command("'node server.js'"), ..requested_access() }, None, Err("is not allowed"));
        check(RequestedAccess { variables: vec!["KEY"], ..requested_access() }, None, Ok(()));
        check(RequestedAccess { variables: vec!["LD_PRELOAD"], ..requested_access() }, None, Err("--allow-env LD_PRELOAD"));
        check(RequestedAccess { paths: vec!["sub/a.mcproof.yaml".into()], ..requested_access() }, None, Ok(()));
        check(RequestedAccess { paths: vec!["away/passwd".into()], ..requested_access() }, None, Err("--folder"));
        check(RequestedAccess { paths: vec!["../x".into()], ..requested_access() }, None, Err("--folder"));
        check(requested_access(), Some("/"), Err("--folder"));
        check(RequestedAccess { sides: vec!["mcproof.lock", "http://h/mcp", "shop"], ..requested_access() }, None, Ok(()));
        check(RequestedAccess { sides: vec!["sh -c evil"], ..requested_access() }, None, Err("is not allowed"));
        check(RequestedAccess { sides: vec!["sh"], ..requested_access() }, None, Err("is not allowed"));
        check(RequestedAccess { sides: vec!["/bin/sh"], ..requested_access() }, None, Err("is not allowed"));
        check(RequestedAccess { sides: vec!["away/passwd"], ..requested_access() }, None, Err("--folder"));
    }

    #[test]
    fn flags_hand_the_limits_on() {
        let spawnless = limits(LimitArgs { no_spawn: true, ..LimitArgs::default() });
        assert_eq!(spawnless.flags(), ["--restricted", "--allow-host=*", "--allow-path=/"]);
        assert!(limits(LimitArgs::default()).flags().is_empty());
        assert!(LimitArgs { allow_env: vec!["A".into()], ..LimitArgs::default() }.limits().is_err());
    }
}
