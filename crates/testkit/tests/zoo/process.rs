//! A server of the zoo as a process, and the processes that it leaves behind.

use mcproof_protocol::Era;
use mcproof_testkit::zoo::CORRECT;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a server may take to do what it should do at once. The correct ones do it, on a busy machine only later; others may
/// never do it.
pub(crate) fn patience(name: &str) -> Duration {
    Duration::from_secs(if CORRECT.contains(&name) { 60 } else { 3 })
}

pub(crate) fn spawn(name: &str, reach: &[&str], era: Era) -> Child {
    let era = if era == Era::Modern { "modern" } else { "legacy" };
    let mut command = Command::new(env!("CARGO_BIN_EXE_zoo"));
    command.arg(name).args(reach).args(["--era", era]).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The ways to stop a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Input,
    Signal,
}

/// How often a server has opened a file that nobody reads.
pub(crate) fn opened(child: &Child) -> String {
    const NOTHING: &str = "/dev/null";
    let entries = std::fs::read_dir(format!("/proc/{}/fd", child.id())).into_iter().flatten().flatten();
    let leads_there = |entry: &std::fs::DirEntry| std::fs::read_link(entry.path()).is_ok_and(|target| target == Path::new(NOTHING));
    format!("holds {NOTHING}: {}", entries.filter(leads_there).count())
}

/// How a server exits, and how many processes it leaves behind.
pub(crate) fn end(mut child: Child, cause: Cause, patience: Duration) -> String {
    let pid = Pid::from_raw(child.id().try_into().unwrap());
    let children = children(child.id());
    match cause {
        Cause::Input => drop(child.stdin.take()),
        // It may have ended already.
        Cause::Signal => drop(kill(pid, Signal::SIGTERM)),
    }
    let told = finish(&mut child, patience).unwrap_or_else(|| {
        // Not before: the ids of what has ended are given to others.
        let _ = killpg(pid, Signal::SIGKILL);
        let _ = child.wait();
        format!("ignores {cause:?}")
    });
    for child in &children {
        let _ = kill(*child, Signal::SIGKILL);
    }
    format!("{told}; {} children", children.len())
}

fn finish(child: &mut Child, patience: Duration) -> Option<String> {
    let begin = Instant::now();
    while begin.elapsed() < patience {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status.to_string());
        }
        sleep(Duration::from_millis(5));
    }
    None
}

fn children(parent: u32) -> Vec<Pid> {
    let all = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<i32>().ok());
    let is_child = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // pid (name) state parent …
        let mut words = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace()).into_iter().flatten();
        words.nth(1).is_some_and(|word| word == parent.to_string())
    };
    all.filter(is_child).map(Pid::from_raw).collect()
}
