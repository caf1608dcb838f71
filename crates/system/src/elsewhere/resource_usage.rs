//! These systems do not tell what a process holds, file by file.

use crate::ResourceUsage;
use std::time::Duration;

/// Whether this system tells what a process holds.
pub const COUNTS_RESOURCES: bool = false;

/// What a process and those below it hold. `None` where it is gone, or the system does not tell.
pub fn resource_usage(_pid: i32) -> Option<ResourceUsage> {
    None
}

/// How long the threads of a process and of those below it were ready to run while there was no processor for them. Nobody tells.
pub fn processor_wait(_pid: i32) -> Option<Duration> {
    None
}
