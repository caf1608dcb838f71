//! Where programs are, and how they are started.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The words that start a program as it was typed: the system finds it by itself.
pub fn resolve(command: &[String], _path: Option<&OsStr>, _folder: Option<&Path>) -> Vec<String> {
    command.to_vec()
}

/// The file that a shell with this PATH would run.
pub fn find(name: &str, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path)
        .filter(|folder| !folder.as_os_str().is_empty())
        .map(|folder| folder.join(name))
        .find(|place| is_executable(place))
}

pub fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// It can be asked to end by [`super::signals::interrupt`].
pub fn interruptible(_command: &mut Command) {}

/// Ctrl-C at the terminal does not reach it.
pub fn own_group(command: &mut Command) {
    command.process_group(0);
}
