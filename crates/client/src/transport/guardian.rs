//! Ends the process groups of our servers when this process dies without doing so itself: SIGKILL, a panic that aborts.
//! Knows process ids, nothing of servers.
//!
//! The guardian is a forked copy of this process that executes nothing but async-signal-safe calls. It waits on a pipe
//! whose other end only this process holds; end of file there means that this process is gone. A server's process
//! registers itself between fork and exec, so there is no moment at which it could be lost.

use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{ForkResult, Pid, fork};
use std::collections::HashSet;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Handle to the guardian. Clones share one; it is started with the first server.
#[derive(Clone, Default)]
pub struct Guardian(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    started: Option<Started>,
    /// Groups that have not ended.
    groups: HashSet<i32>,
    orphans: Orphans,
}

/// Whose are the processes that lose their parent somewhere below us?
#[derive(Default)]
enum Orphans {
    /// Not ours: this process may have children that are none of our business.
    #[default]
    Ignored,
    /// Ours: every child of this process belongs to a server, but those that were there before (a shell that started
    /// something and then became this program).
    Adopted { before: HashSet<i32> },
}

struct Started {
    pid: Pid,
    /// Ends the guardian when dropped.
    pipe: Option<OwnedFd>,
}

/// Registers a process from inside it, between fork and exec.
#[derive(Clone, Copy)]
pub(crate) struct Registration(RawFd);

impl Guardian {
    /// A guardian for a process that starts nothing but servers. It also ends what has left a server's group and lost its
    /// parent, once the last server has ended (Linux).
    pub fn of_whole_process() -> Self {
        #[cfg(target_os = "linux")]
        let orphans = match nix::sys::prctl::set_child_subreaper(true) {
            Ok(()) => Orphans::Adopted { before: children().collect() },
            Err(_) => Orphans::Ignored,
        };
        #[cfg(not(target_os = "linux"))]
        let orphans = Orphans::Ignored;
        Self(Arc::new(Mutex::new(State { orphans, ..State::default() })))
    }

    /// This process is about to start something else than servers, whose offspring has to outlive it. From now on what
    /// leaves a server's group and loses its parent is nobody's.
    pub fn disown_orphans(&self) {
        let mut state = self.state();
        #[cfg(target_os = "linux")]
        if matches!(state.orphans, Orphans::Adopted { .. }) {
            // If this fails we keep children that nobody ends: a leak of ours, not of theirs.
            let _ = nix::sys::prctl::set_child_subreaper(false);
        }
        state.orphans = Orphans::Ignored;
    }

    /// # Errors
    /// The guardian could not be started: no process or file descriptor left.
    pub(crate) fn registration(&self) -> io::Result<Registration> {
        let mut state = self.state();
        if state.started.is_none() {
            state.started = Some(start()?);
        }
        Ok(Registration(state.pipe().expect("a started guardian has its pipe")))
    }

    /// The group has a running server.
    pub(crate) fn remember(&self, group: i32) {
        self.state().groups.insert(group);
    }

    /// The group has ended; the id may belong to somebody else from now on. Gives the orphans that were ended with the
    /// last one.
    pub(crate) fn forget(&self, group: i32) -> Vec<i32> {
        let mut state = self.state();
        state.groups.remove(&group);
        if let Some(pipe) = state.pipe() {
            send(pipe, -group);
        }
        match (&state.orphans, &state.started) {
            (Orphans::Adopted { before }, Some(guardian)) if state.groups.is_empty() => {
                end_orphans(|pid| pid == guardian.pid.as_raw() || before.contains(&pid))
            }
            _ => Vec::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn pipe(&self) -> Option<RawFd> {
        Some(self.started.as_ref()?.pipe.as_ref()?.as_raw_fd())
    }
}

/// Kills all children of this process that are not spared, and theirs that come up by that.
fn end_orphans(is_spared: impl Fn(i32) -> bool) -> Vec<i32> {
    let mut ended = Vec::new();
    loop {
        let left: Vec<i32> = children().filter(|pid| !is_spared(*pid) && !ended.contains(pid)).collect();
        if left.is_empty() {
            return ended;
        }
        for pid in left {
            let child = Pid::from_raw(pid);
            let _ = kill(child, Signal::SIGKILL);
            // Ours to collect, and gone at once: nothing holds up SIGKILL but the kernel itself.
            let _ = nix::sys::wait::waitpid(child, None);
            ended.push(pid);
        }
    }
}

/// Children of this process, zombies included, as far as the system tells (Linux does).
fn children() -> impl Iterator<Item = i32> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|pids| pids.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
}

impl Drop for Started {
    fn drop(&mut self) {
        drop(self.pipe.take());
        // The guardian ends at once on end of file; without this a long-lived host would collect zombies.
        let _ = nix::sys::wait::waitpid(self.pid, None);
    }
}

impl Registration {
    /// Async-signal-safe.
    pub(crate) fn register_this_process(self) {
        // SAFETY: getpid has no preconditions.
        send(self.0, unsafe { libc::getpid() });
    }
}

/// One record: a process group to end, or its negative to forget it. Smaller than PIPE_BUF, hence atomic.
fn send(pipe: RawFd, record: i32) {
    let bytes = record.to_ne_bytes();
    // SAFETY: `bytes` outlives the call; a bad descriptor only yields an error.
    unsafe { libc::write(pipe, bytes.as_ptr().cast(), bytes.len()) };
}

fn start() -> io::Result<Started> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors.
    if unsafe { libc::pipe(ends.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both descriptors were just made and belong to nobody else.
    let (read, write) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
    for end in ends {
        // SAFETY: the descriptor is open.
        unsafe { libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    // Allocated before the fork: the child must not allocate, for another thread may hold the allocator's lock.
    let groups = Vec::with_capacity(65_536);
    // SAFETY: the child runs `guard` only, which keeps to async-signal-safe calls and never returns.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => {
            drop(read);
            Ok(Started { pid: child, pipe: Some(write) })
        }
        ForkResult::Child => guard(read.as_raw_fd(), groups),
    }
}

/// The life of the guardian.
fn guard(pipe: RawFd, mut groups: Vec<i32>) -> ! {
    // SAFETY: plain system calls on descriptors of this process, nothing that allocates or locks.
    unsafe {
        // Its own session: Ctrl-C at the terminal and signals to our group do not reach it.
        libc::setsid();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
            libc::signal(signal, libc::SIG_IGN);
        }
        // Holding on to inherited descriptors would keep pipes of other people open.
        libc::dup2(pipe, 0);
        close_from(1);
    }
    let mut record = [0_u8; 4];
    loop {
        // SAFETY: `record` has room for its length. Records are written atomically, so a read gives a whole one.
        let count = unsafe { libc::read(0, record.as_mut_ptr().cast(), record.len()) };
        if count == 4 {
            let id = i32::from_ne_bytes(record);
            if id > 0 && groups.len() < groups.capacity() {
                groups.push(id);
            } else if let Some(index) = groups.iter().position(|known| *known == -id) {
                groups.swap_remove(index);
            }
        } else if count == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            break;
        }
    }
    for group in &groups {
        // SAFETY: signals have no memory effects here. The process itself as well: it may not lead its group yet.
        unsafe {
            libc::kill(-*group, libc::SIGKILL);
            libc::kill(*group, libc::SIGKILL);
        }
    }
    // SAFETY: ends this process without running what the parent registered for its exit.
    unsafe { libc::_exit(0) }
}

/// Closes all descriptors from `first` on.
fn close_from(first: RawFd) {
    #[cfg(target_os = "linux")]
    // SAFETY: a system call without memory arguments.
    if unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) } == 0 {
        return;
    }
    // SAFETY: closing a descriptor that is not open only yields an error.
    unsafe {
        let most = libc::sysconf(libc::_SC_OPEN_MAX).clamp(0, 65_536);
        for descriptor in first..i32::try_from(most).unwrap_or(i32::MAX) {
            libc::close(descriptor);
        }
    }
}
