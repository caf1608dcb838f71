//! What runs where a server was started: the programs of its process tree.

use super::family::family;
use crate::Program;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// The programs of a process and of all below it, parents first. What ends meanwhile is left out.
pub fn programs(pid: i32) -> Vec<Program> {
    std::iter::once(pid).chain(family(pid)).filter_map(program).collect()
}

fn program(pid: i32) -> Option<Program> {
    let mounts = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    // In a container, the same paths lead to other files.
    if mounts(&pid.to_string())? != mounts("self")? {
        return None;
    }
    let executable = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let folder = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    let words = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = words.strip_suffix(b"\0").unwrap_or(&words);
    let arguments = words.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let maps = String::from_utf8_lossy(&maps);
    // Address, rights, offset, device and inode stand before the path.
    let path = |line: &str| line.find('/').map(|start| PathBuf::from(&line[start..]));
    let mapped: BTreeSet<PathBuf> = maps.lines().filter_map(path).collect();
    Some(Program { pid, executable, arguments, folder, mapped: mapped.into_iter().collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_and_what_it_started_are_told_parents_first() {
        let folder = fs::canonicalize(std::env::temp_dir()).unwrap();
        let script = "sleep 60 & echo started; wait";
        let mut command = std::process::Command::new("sh");
        let mut shell = command.args(["-c", script]).current_dir(&folder).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(shell.stdout.take().unwrap()), &mut line).unwrap();
        let is_asleep = |programs: &[Program]| programs.len() == 2 && programs[1].arguments == ["sleep", "60"];
        let mut found = programs(shell.id().try_into().unwrap());
        // The shell says that it has forked, not that the program has been loaded.
        while !is_asleep(&found) {
            std::thread::yield_now();
            found = programs(shell.id().try_into().unwrap());
        }
        for pid in family(shell.id().try_into().unwrap()).collect::<Vec<_>>() {
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).unwrap();
        }
        shell.wait().unwrap();
        assert_eq!(found[0].arguments, ["sh", "-c", script]);
        assert_eq!(found[0].folder, folder);
        assert!(found[0].mapped.contains(&found[0].executable), "{found:?}");
    }
}
