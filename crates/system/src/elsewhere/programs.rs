//! What runs where a server was started: the programs of its process tree.

use super::family::below;
use super::{id, processes};
use crate::Program;
use sysinfo::{ProcessRefreshKind, UpdateKind};

/// The programs of a process and of all below it, parents first. What ends meanwhile is left out. Which files they have mapped into
/// memory is not told.
pub fn programs(pid: i32) -> Vec<Program> {
    let what = ProcessRefreshKind::nothing().with_exe(UpdateKind::Always).with_cmd(UpdateKind::Always).with_cwd(UpdateKind::Always);
    let system = processes(what);
    let program = |pid: i32| {
        let process = system.process(id(pid))?;
        Some(Program {
            pid,
            executable: process.exe()?.to_owned(),
            arguments: process.cmd().iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            folder: process.cwd().map(ToOwned::to_owned).unwrap_or_default(),
            mapped: Vec::new(),
        })
    };
    std::iter::once(pid).chain(below(&system, pid)).filter_map(program).collect()
}
