//! A mark that everything bears which a process has started, whatever became of its parent, group and session.
//!
//! Limits of resources are inherited by children and kept by programs that replace each other. The one that is used here,
//! `RLIMIT_RTTIME`, counts only for processes with a real-time scheduling policy, and in microseconds: a number above 2^61 limits
//! nothing, but is found again in every descendant that has not changed it itself.

use nix::libc;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::OnceLock;
use std::time::Duration;

/// Tells the descendants of one process from those of any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(u64);

/// The least mark. The limit of whoever sets one for its own sake is far below.
const LEAST: u64 = 1 << 61;

/// How often the bearers are looked for, and how long to wait in between: one that was just being started is found by the next look.
const MOST_LOOKS: u32 = 40;
const PAUSE: Duration = Duration::from_millis(25);

impl Mark {
    /// The one of this process, whichever guardian asks.
    pub(crate) fn of_this_process() -> Self {
        static OWN: OnceLock<Mark> = OnceLock::new();
        *OWN.get_or_init(Self::new)
    }

    fn new() -> Self {
        Self(LEAST | (RandomState::new().build_hasher().finish() & (LEAST - 1)))
    }

    /// Puts it on a process: what that starts from here on bears it, too. `0` is this process. False where the system refuses.
    pub(crate) fn put_on(self, pid: i32) -> bool {
        limit(pid).is_some_and(|(_, most)| set_limit(pid, (self.0, most)))
    }

    /// Whether it is on a process that may be asked.
    pub(crate) fn is_borne_by(self, pid: i32) -> bool {
        limit(pid).is_some_and(|(now, _)| now == self.0)
    }

    /// Ends all that bear it, until nobody does, apart from `spared`. Async-signal-safe.
    pub(crate) fn end_bearers(self, spared: i32) {
        for _ in 0..MOST_LOOKS {
            let mut found = false;
            super::stdin_processes::each_process(|_, _, pid| {
                if pid != spared && limit(pid).is_some_and(|(now, _)| now == self.0) {
                    found = true;
                    // SAFETY: signals have no memory effects here.
                    unsafe { libc::kill(pid, libc::SIGKILL) };
                }
            });
            if !found {
                return;
            }
            let pause = libc::timespec { tv_sec: 0, tv_nsec: i64::from(PAUSE.subsec_nanos()) as _ };
            // SAFETY: the time outlives the call; what is left of it is not asked for.
            unsafe { libc::nanosleep(&raw const pause, std::ptr::null_mut()) };
        }
    }
}

/// Takes the mark from this process: what it starts from here on has none. Async-signal-safe.
pub(crate) fn take_off() {
    if let Some((now, most)) = limit(0)
        && now >= LEAST
    {
        set_limit(0, (most, most));
    }
}

/// The limit of a process, and the most that it may set itself.
fn limit(pid: i32) -> Option<(u64, u64)> {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `now` outlives the call.
    let outcome = unsafe { libc::prlimit(pid, libc::RLIMIT_RTTIME, std::ptr::null(), &raw mut now) };
    (outcome == 0).then_some((now.rlim_cur, now.rlim_max))
}

fn set_limit(pid: i32, (now, most): (u64, u64)) -> bool {
    let limit = libc::rlimit { rlim_cur: now, rlim_max: most };
    // SAFETY: `limit` outlives the call.
    unsafe { libc::prlimit(pid, libc::RLIMIT_RTTIME, &raw const limit, std::ptr::null_mut()) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn a_descendant_without_parent_group_and_session_bears_it() {
        let script = "read -r go; (setsid sh -c 'sleep 61 & echo $!' &)";
        let mut shell = Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mark = Mark::new();
        assert!(mark.put_on(shell.id().cast_signed()));
        drop(shell.stdin.take());
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        shell.wait().unwrap();
        let pid: i32 = line.trim().parse().unwrap();
        assert_eq!(limit(pid).map(|(now, _)| now), Some(mark.0));
        Mark::new().end_bearers(0);
        assert!(super::super::family::is_alive(pid), "another mark ends it");
        mark.end_bearers(0);
        assert!(!super::super::family::is_alive(pid), "it still runs");
    }
}
