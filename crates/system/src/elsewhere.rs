//! What systems without `/proc` tell of their processes: macOS, the BSDs, Windows.

pub(crate) mod family;
pub(crate) mod listening;
pub(crate) mod process_memory;
pub(crate) mod programs;
pub(crate) mod resource_usage;

use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

/// All processes as they are now, with what is asked for.
fn processes(what: ProcessRefreshKind) -> System {
    let mut system = System::new();
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, what);
    system
}

/// One process, if it is there, without more than its start and state.
fn process(pid: i32) -> System {
    let mut system = System::new();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[id(pid)]), true, ProcessRefreshKind::nothing());
    system
}

/// Where there are threads, they are no processes of their own here.
fn id(pid: i32) -> Pid {
    Pid::from_u32(pid.cast_unsigned())
}
