//! Runs a program to its end: what it printed, the most memory that it ever had, and what it left behind.

use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{Pid, SysconfVar, sysconf};
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) struct Measured {
    /// False if it had to be killed.
    pub(crate) ended: bool,
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// Bytes resident, at the most.
    pub(crate) peak: u64,
    /// Processor time that it took itself, without what it started.
    pub(crate) busy: Duration,
    /// Command lines of processes that it started, and that were still there after it.
    pub(crate) orphans: Vec<String>,
}

/// Inherited by everything that a run starts.
const MARK: &str = "MCPROOF_TEST_RUN";
/// Far more than any row takes: what runs into this hangs.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn run(command: &mut Command) -> Measured {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let mark = format!("{}-{}", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
    let mut child = command.env(MARK, &mark).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdout = read(child.stdout.take().unwrap());
    let stderr = read(child.stderr.take().unwrap());
    let (ended, peak, busy) = watch(&mut child);
    let code = child.wait().unwrap().code();
    let orphans = orphans(&mark);
    Measured { ended, code, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap(), peak, busy, orphans }
}

fn read(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).unwrap();
        text
    })
}

/// Waits for the end. The kernel keeps the highest amount of memory itself, for as long as the process lives.
fn watch(child: &mut Child) -> (bool, u64, Duration) {
    let (status, stat) = (format!("/proc/{}/status", child.id()), format!("/proc/{}/stat", child.id()));
    let process = Pid::from_raw(child.id().cast_signed());
    let deadline = Instant::now() + PATIENCE;
    let mut peak = 0;
    loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let kilobytes = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        peak = peak.max(kilobytes.unwrap_or_default() * 1024);
        // What it took is known until it is waited for.
        let state = waitid(Id::Pid(process), WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT).unwrap();
        if state != WaitStatus::StillAlive {
            return (true, peak, busy(&stat));
        }
        if Instant::now() > deadline {
            let busy = busy(&stat);
            child.kill().unwrap();
            return (false, peak, busy);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn busy(stat: &str) -> Duration {
    let text = std::fs::read_to_string(stat).unwrap();
    // The name of the program, which may hold anything, ends with the last parenthesis; the times are the 14th and 15th value.
    let ticks: u64 = text.rsplit_once(')').unwrap().1.split_whitespace().skip(11).take(2).map(|value| value.parse::<u64>().unwrap()).sum();
    let each = sysconf(SysconfVar::CLK_TCK).unwrap().unwrap().cast_unsigned();
    Duration::from_millis(ticks * 1000 / each)
}

/// Those that are still there after a while; what was killed may need a moment to go.
fn orphans(mark: &str) -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let found = marked(mark);
        if found.is_empty() || Instant::now() > deadline {
            return found;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn marked(mark: &str) -> Vec<String> {
    let entry = format!("{MARK}={mark}");
    let mut found = Vec::new();
    for folder in std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()) {
        // Empty for a zombie, and unreadable for what is not ours.
        let environment = std::fs::read(folder.join("environ")).unwrap_or_default();
        if environment.split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes()) {
            found.push(String::from_utf8_lossy(&std::fs::read(folder.join("cmdline")).unwrap_or_default()).replace('\0', " "));
        }
    }
    found
}
