//! What can be told of the processes of a server, whatever the system.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// A process of a server's tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    pub pid: i32,
    /// The file that runs, with all links followed.
    pub executable: PathBuf,
    /// As it was started; the first is what it was called by.
    pub arguments: Vec<String>,
    /// Where it works.
    pub folder: PathBuf,
    /// Files that it has mapped into memory, such as native modules, sorted. Empty where the system does not tell.
    pub mapped: Vec<PathBuf>,
}

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
    /// What there is more of now than `before`, with how much more.
    pub fn growth(before: &BTreeMap<String, usize>, now: &BTreeMap<String, usize>) -> BTreeMap<String, usize> {
        let more = |(name, count): (&String, &usize)| {
            let more = count.saturating_sub(before.get(name).copied().unwrap_or_default());
            (more > 0).then(|| (name.clone(), more))
        };
        now.iter().filter_map(more).collect()
    }
}
