//! Which processes there are, by what stands in their command lines. Linux tells.

#![allow(dead_code, reason = "each test binary uses some of these")]

use std::time::{Duration, Instant};

/// Processes whose command line holds `marker`, zombies not counted.
pub(crate) fn count(marker: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    let holds = |pid: &i32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(marker) && is_running(pid)
    };
    pids.filter(holds).count()
}

/// Whether a process is there, and no zombie.
pub(crate) fn is_running(pid: impl std::fmt::Display) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Waits for so many.
#[track_caller]
pub(crate) fn until(marker: &str, is_so: impl Fn(usize) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so(count(marker)) {
        assert!(Instant::now() < deadline, "{} processes", count(marker));
        std::thread::sleep(Duration::from_millis(10));
    }
}
