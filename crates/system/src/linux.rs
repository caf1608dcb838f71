//! Linux tells everything about its processes in `/proc`.

pub(crate) mod family;
pub(crate) mod listening;
pub(crate) mod mark;
pub(crate) mod process_memory;
pub(crate) mod programs;
pub(crate) mod resource_usage;
pub(crate) mod stdin_processes;
