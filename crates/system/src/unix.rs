//! Systems with process groups and signals: Linux, macOS, the BSDs.

pub(crate) mod commands;
pub(crate) mod errors;
pub(crate) mod files;
pub(crate) mod guardian;
pub(crate) mod machine;
pub(crate) mod memory;
pub(crate) mod pipes;
pub(crate) mod signals;
