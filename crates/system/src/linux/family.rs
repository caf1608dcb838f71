//! The processes below a process.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A process below another one, remembered so that it can be found when it has left the group or lost its parent.
#[derive(Debug)]
pub struct Descendant {
    pid: i32,
    /// Start time in clock ticks: tells it from a later process of the same id.
    started: u64,
}

impl Descendant {
    pub fn pid(&self) -> i32 {
        self.pid
    }

    pub fn is_alive(&self) -> bool {
        start_time(self.pid) == Some(self.started)
    }

    pub fn kill_if_alive(&self) -> bool {
        self.is_alive() && kill(Pid::from_raw(self.pid), Signal::SIGKILL).is_ok()
    }
}

/// The ids of all processes below `pid`.
pub(super) fn family(pid: i32) -> impl Iterator<Item = i32> {
    descendants(pid).into_iter().map(|descendant| descendant.pid)
}

/// All processes below `pid`.
pub fn descendants(pid: i32) -> Vec<Descendant> {
    let mut found = Vec::new();
    let mut open = vec![pid];
    while let Some(pid) = open.pop() {
        for child in children_of(&pid.to_string()) {
            if let Some(started) = start_time(child) {
                found.push(Descendant { pid: child, started });
                open.push(child);
            }
        }
    }
    found
}

/// Children of a process (`self` is this one), zombies included. Each thread has the children that it started itself.
pub(crate) fn children_of(process: &str) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|pids| pids.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}

/// Whether a process lives and is no zombie.
pub(crate) fn is_alive(pid: i32) -> bool {
    start_time(pid).is_some()
}

/// Start time of a process that lives and is no zombie.
fn start_time(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so fields are counted from its end; state is the first of them.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?.parse().ok()?;
    (state != "Z" && state != "X").then_some(started)
}
