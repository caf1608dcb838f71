//! Counts what a server's processes hold: processes and open file descriptors. Reads `/proc`, so it knows Linux only.

use super::process::family;
use std::collections::BTreeMap;

/// What a server's process and those below it hold at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceUsage {
    /// Living processes by the name of their program.
    pub processes: BTreeMap<String, usize>,
    /// Open file descriptors by what they lead to: `socket`, `pipe`, another kind, or the path of a file.
    pub descriptors: BTreeMap<String, usize>,
    /// Bytes in memory, of all of them.
    pub resident: u64,
}

impl ResourceUsage {
    /// `None` where the system does not tell, or the process is gone.
    pub(super) fn take(pid: i32) -> Option<Self> {
        let mut usage = Self::default();
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

    /// What there is more of now than `before`, with how much more.
    pub fn growth(before: &BTreeMap<String, usize>, now: &BTreeMap<String, usize>) -> BTreeMap<String, usize> {
        let more = |(name, count): (&String, &usize)| {
            let more = count.saturating_sub(before.get(name).copied().unwrap_or_default());
            (more > 0).then(|| (name.clone(), more))
        };
        now.iter().filter_map(more).collect()
    }
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
    #[cfg(target_os = "linux")]
    fn an_open_file_and_a_child_are_counted_by_name() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let path = std::env::temp_dir().join(format!("mcproof-usage-{pid}"));
        let name = format!("{} (deleted)", path.display());
        let before = ResourceUsage::take(pid).unwrap();
        let file = std::fs::File::create(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let now = ResourceUsage::take(pid).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        // Other tests open and close sockets and pipes meanwhile; what is looked for is ours alone.
        assert_eq!(ResourceUsage::growth(&before.descriptors, &now.descriptors).get(&name), Some(&1));
        assert!(ResourceUsage::growth(&before.processes, &now.processes).values().sum::<usize>() >= 1);
        drop(file);
        assert_eq!(ResourceUsage::take(pid).unwrap().descriptors.get(&name), None);
    }
}
