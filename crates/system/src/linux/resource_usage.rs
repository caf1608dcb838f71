//! Counts what a server's processes hold, processes and open file descriptors, and how long they waited for a processor.

use super::family::family;
use crate::ResourceUsage;
use std::collections::BTreeMap;
use std::time::Duration;

/// Whether this system tells what a process holds.
pub const COUNTS_RESOURCES: bool = true;

/// What a process and those below it hold. `None` where it is gone, or the system does not tell.
pub fn resource_usage(pid: i32) -> Option<ResourceUsage> {
    let mut usage = ResourceUsage::default();
    count_descriptors(pid, &mut usage.descriptors)?;
    for pid in std::iter::once(pid).chain(family(pid)) {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).map_or_else(|_| "?".to_owned(), |name| name.trim().to_owned());
        *usage.processes.entry(name).or_default() += 1;
        usage.resident += resident(pid);
    }
    for child in family(pid) {
        // One that ended meanwhile holds nothing.
        let _ = count_descriptors(child, &mut usage.descriptors);
    }
    Some(usage)
}

/// How long the threads of a process and of those below it that live now were ready to run while there was no processor for them, each
/// since its start, in all (`schedstat` of proc_pid_schedstat(5)). `None` where the process is gone, or the system does not tell.
pub fn processor_wait(pid: i32) -> Option<Duration> {
    let waits = std::iter::once(pid).chain(family(pid)).flat_map(threads).filter_map(|thread| {
        let text = std::fs::read_to_string(thread.join("schedstat")).ok()?;
        text.split_ascii_whitespace().nth(1)?.parse().ok()
    });
    waits.map(Duration::from_nanos).reduce(|sum, wait| sum + wait)
}

fn threads(pid: i32) -> impl Iterator<Item = std::path::PathBuf> {
    std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Nothing if it is gone.
fn resident(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap_or(0);
    kibibytes << 10
}

fn count_descriptors(pid: i32, counts: &mut BTreeMap<String, usize>) -> Option<()> {
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten() {
        let Ok(target) = std::fs::read_link(entry.path()) else { continue };
        let target = target.to_string_lossy();
        let kind = match target.split_once(":[") {
            Some((kind @ ("socket" | "pipe"), _)) => kind,
            _ => &target,
        };
        *counts.entry(kind.to_owned()).or_default() += 1;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_no_processor_waits_for_one() {
        // All on one processor, so that each waits for the others most of the time.
        let mut busy: Vec<_> = (0..4)
            .map(|_| std::process::Command::new("taskset").args(["-c", "0", "sh", "-c", "while :; do :; done"]).spawn().unwrap())
            .collect();
        let pid = i32::try_from(busy[0].id()).unwrap();
        let mut idle = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let waits = || processor_wait(pid).unwrap() > Duration::from_millis(200);
        let given_up = std::time::Instant::now() + Duration::from_secs(60);
        while !waits() && std::time::Instant::now() < given_up {
            std::thread::sleep(Duration::from_millis(20));
        }
        let (waited, slept) = (waits(), processor_wait(i32::try_from(idle.id()).unwrap()).unwrap());
        busy.iter_mut().chain([&mut idle]).for_each(|child| {
            child.kill().unwrap();
            child.wait().unwrap();
        });
        assert!(waited && slept < Duration::from_millis(200), "{slept:?}");
        assert_eq!(processor_wait(pid), None);
    }

    #[test]
    fn an_open_file_and_a_child_are_counted_by_name() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let path = std::env::temp_dir().join(format!("mcproof-usage-{pid}"));
        let name = format!("{} (deleted)", path.display());
        let before = resource_usage(pid).unwrap();
        let file = std::fs::File::create(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let now = resource_usage(pid).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        // Other tests open and close sockets and pipes meanwhile; what is looked for is ours alone.
        assert_eq!(ResourceUsage::growth(&before.descriptors, &now.descriptors).get(&name), Some(&1));
        assert!(ResourceUsage::growth(&before.processes, &now.processes).values().sum::<usize>() >= 1);
        drop(file);
        assert_eq!(resource_usage(pid).unwrap().descriptors.get(&name), None);
    }
}
