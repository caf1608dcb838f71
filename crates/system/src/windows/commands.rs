//! Where programs are, and how they are started. `npx` is `npx.cmd` on Windows: whoever starts it without a shell has to find that file,
//! as hosts do.

use std::ffi::{OsStr, OsString};
use std::os::windows::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use windows_sys::Win32::System::Threading::CREATE_NEW_PROCESS_GROUP;

/// The words that start a program: its file by PATH and PATHEXT; a script of PowerShell by its interpreter. The standard library runs
/// `.cmd` and `.bat` by `cmd.exe`, with arguments quoted so that nothing in them is a command. What is not found stays as it was typed,
/// so that the error names it.
pub fn resolve(command: &[String], path: Option<&OsStr>, folder: Option<&Path>) -> Vec<String> {
    let Some((program, arguments)) = command.split_first() else { return Vec::new() };
    let folder = folder.map_or_else(|| std::env::current_dir().unwrap_or_default(), Path::to_owned);
    let found = match path {
        Some(path) => which::which_in(program, Some(path), &folder),
        None => which::which(program).or_else(|_| which::which_in(program, None::<OsString>, &folder)),
    };
    let found = found.map_or_else(|_| program.clone(), |file| file.to_string_lossy().into_owned());
    let is_script = Path::new(&found).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ps1"));
    let interpreter: &[&str] =
        if is_script { &["powershell.exe", "-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-File"] } else { &[] };
    let words = interpreter.iter().map(|word| (*word).to_owned());
    words.chain([found]).chain(arguments.iter().cloned()).collect()
}

/// The file that Windows would run with this PATH.
pub fn find(name: &str, path: &OsStr) -> Option<PathBuf> {
    which::which_in_global(name, Some(path)).ok()?.next()
}

/// Whether a file is a program by its extension.
pub fn is_executable(file: &Path) -> bool {
    const PROGRAMS: [&str; 4] = ["exe", "com", "cmd", "bat"];
    let extension = file.extension().and_then(OsStr::to_str).unwrap_or_default();
    file.is_file() && PROGRAMS.iter().any(|known| known.eq_ignore_ascii_case(extension))
}

/// It can be asked to end by [`super::signals::interrupt`].
pub fn interruptible(command: &mut Command) {
    own_group(command);
}

/// Ctrl-C at the console does not reach it.
pub fn own_group(command: &mut Command) {
    command.creation_flags(CREATE_NEW_PROCESS_GROUP);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_found_by_its_name_alone() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["npx.cmd", "setup.ps1", "notes.txt"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let path = folder.path().as_os_str();
        let resolved = |name: &str| resolve(&[name.to_owned(), "-y".to_owned()], Some(path), None);
        let npx = resolved("npx");
        assert!(npx[0].to_ascii_lowercase().ends_with("npx.cmd") && npx[1] == "-y", "{npx:?}");
        assert!(find("npx", path).is_some_and(|file| is_executable(&file)));
        let script = resolve(&[folder.path().join("setup.ps1").display().to_string()], None, None);
        assert_eq!((script[0].as_str(), script.last().map(|file| file.ends_with("setup.ps1"))), ("powershell.exe", Some(true)));
        // What is not there is named as it was typed.
        assert_eq!(resolved("missing"), ["missing", "-y"]);
        assert!(!is_executable(&folder.path().join("notes.txt")));
    }
}
