//! Which processes there are, by what stands in their command lines. Linux tells.

use std::time::{Duration, Instant};

/// Processes whose command line holds `marker`, zombies not counted.
pub(crate) fn count(marker: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    let holds = |pid: &i32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(marker) && !stat.contains(") Z ")
    };
    pids.filter(holds).count()
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
