//! Windows: job objects in place of process groups, console events in place of signals.

pub(crate) mod commands;
pub(crate) mod errors;
pub(crate) mod files;
pub(crate) mod guardian;
mod job;
pub(crate) mod machine;
pub(crate) mod memory;
pub(crate) mod pipes;
pub(crate) mod signals;
