//! The processes below a process.

use super::{id, process, processes};
use sysinfo::{Pid, ProcessRefreshKind, ProcessStatus, System};

/// A process below another one, remembered so that it can be found when it has left the group or lost its parent.
#[derive(Debug)]
pub struct Descendant {
    pid: i32,
    /// Seconds since 1970: tells it from a later process of the same id.
    started: u64,
}

impl Descendant {
    pub fn pid(&self) -> i32 {
        self.pid
    }

    pub fn is_alive(&self) -> bool {
        start_time(&process(self.pid), id(self.pid)) == Some(self.started)
    }

    pub fn kill_if_alive(&self) -> bool {
        let system = process(self.pid);
        start_time(&system, id(self.pid)) == Some(self.started) && system.process(id(self.pid)).is_some_and(sysinfo::Process::kill)
    }
}

/// All processes below `pid`, parents first. A process that is older than its parent only has the id of one that is gone.
pub fn descendants(pid: i32) -> Vec<Descendant> {
    let system = processes(ProcessRefreshKind::nothing());
    below(&system, pid).into_iter().filter_map(|pid| Some(Descendant { pid, started: start_time(&system, id(pid))? })).collect()
}

pub(super) fn below(system: &System, pid: i32) -> Vec<i32> {
    let (mut found, mut open) = (Vec::new(), vec![id(pid)]);
    while let Some(parent) = open.pop() {
        let since = system.process(parent).map_or(0, sysinfo::Process::start_time);
        for (child, process) in system.processes() {
            let number = child.as_u32().cast_signed();
            if process.parent() == Some(parent) && process.start_time() >= since && *child != id(pid) && !found.contains(&number) {
                found.push(number);
                open.push(*child);
            }
        }
    }
    found
}

/// Start time of a process that lives and is no zombie.
fn start_time(system: &System, pid: Pid) -> Option<u64> {
    system.process(pid).filter(|process| process.status() != ProcessStatus::Zombie).map(sysinfo::Process::start_time)
}

/// Whether a process lives and is no zombie.
#[cfg(windows)]
pub(crate) fn is_alive(pid: i32) -> bool {
    start_time(&process(pid), id(pid)).is_some()
}
