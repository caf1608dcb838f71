//! Ends the process groups of our servers when this process dies without doing so itself: SIGKILL, a panic that aborts.
//! Knows process ids, nothing of servers.
//!
//! The guardian is a forked copy of this process that executes nothing but async-signal-safe calls. It waits on a pipe
//! whose other end only this process holds; end of file there means that this process is gone. A server's process
//! registers itself between fork and exec, so there is no moment at which it could be lost.

use nix::libc;
use nix::unistd::{ForkResult, Pid, fork};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError};

/// Handle to the guardian. Clones share one; it is started with the first server.
#[derive(Clone, Default)]
pub struct Guardian(Arc<Mutex<Option<Started>>>);

struct Started {
    pid: Pid,
    /// Ends the guardian when dropped.
    pipe: Option<OwnedFd>,
}

/// Registers a process from inside it, between fork and exec.
#[derive(Clone, Copy)]
pub(crate) struct Registration(RawFd);

impl Guardian {
    /// # Errors
    /// The guardian could not be started: no process or file descriptor left.
    pub(crate) fn registration(&self) -> io::Result<Registration> {
        let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if started.is_none() {
            *started = Some(start()?);
        }
        let pipe = started.as_ref().and_then(|started| started.pipe.as_ref()).expect("a started guardian has its pipe");
        Ok(Registration(pipe.as_raw_fd()))
    }

    /// Its group has ended; the id may belong to somebody else from now on.
    pub(crate) fn forget(&self, group: i32) {
        let started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipe) = started.as_ref().and_then(|started| started.pipe.as_ref()) {
            send(pipe.as_raw_fd(), -group);
        }
    }
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
