//! What the system says of this process.

/// Seconds of CPU that this process has had, and those of its children that have ended.
pub(crate) fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    ticks(&text)
}

/// Seconds of CPU of another process and, if it has ended them, its children.
pub(crate) fn cpu_of(process: u32) -> f64 {
    ticks(&std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default())
}

/// User, system, and both of children that were waited for: the fields behind the name, which may have spaces in it.
fn ticks(stat: &str) -> f64 {
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u32 = after_name.split_whitespace().skip(11).take(4).filter_map(|ticks| ticks.parse::<u32>().ok()).sum();
    f64::from(ticks) / 100.0
}

/// The most that was ever in memory, in MiB.
pub(crate) fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}
