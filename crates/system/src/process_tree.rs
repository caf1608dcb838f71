//! What can be told of the processes of a server, whatever the system.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

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

/// A process that listens where a server was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherListener {
    pub pid: i32,
    /// How it was started, cut where it is long.
    pub command: String,
}

/// Programs that listen for containers.
const FORWARDERS: [&str; 8] =
    ["docker-proxy", "rootlessport", "rootlesskit", "com.docker.backend", "vpnkit", "gvproxy", "pasta", "slirp4netns"];

impl OtherListener {
    pub(crate) fn new(pid: i32, command: &str) -> Self {
        Self { pid, command: command.trim().chars().take(LONGEST_COMMAND).collect() }
    }

    /// Whether it passes on what containers are sent, so that the server may be one.
    pub fn forwards_to_containers(&self) -> bool {
        let program = self.command.split_whitespace().next().unwrap_or_default();
        let name = Path::new(program).file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        let whole = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        FORWARDERS.contains(&name) || FORWARDERS.contains(&whole)
    }
}

/// As ``process 4321 (`python other.py`)``.
impl fmt::Display for OtherListener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "process {} (`{}`)", self.pid, self.command)
    }
}

/// Whether who listens at an address is reached at a host of this machine: `None` stands for `localhost`.
pub(crate) fn is_reached_at(address: IpAddr, host: Option<IpAddr>) -> bool {
    let address = address.to_canonical();
    let is_host = |host: IpAddr| address == host.to_canonical();
    address.is_unspecified() || host.map_or(is_host(Ipv4Addr::LOCALHOST.into()) || is_host(Ipv6Addr::LOCALHOST.into()), is_host)
}

/// Characters of a command that are shown.
const LONGEST_COMMAND: usize = 80;

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
