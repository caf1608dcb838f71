//! Ends the process groups of our servers when this process dies without doing so itself: SIGKILL, a panic that aborts.
//! Knows process ids, nothing of servers.
//!
//! The guardian is a forked copy of this process that executes nothing but async-signal-safe calls. It waits on a pipe
//! whose other end only this process holds; end of file there means that this process is gone.
//!
//! There is no moment at which a process could be lost. On Linux the guardian is told beforehand which pipe will be the
//! stdin of the next process, and looks for the one that holds it if the process id does not follow: a closure that
//! registers the process between fork and exec would keep the standard library from `posix_spawn`, and the copy of our
//! page tables that a real fork makes costs more than everything else about a start. Elsewhere it is that closure.
//!
//! What has left the group of its server is found by a mark that it has inherited (Linux, [`crate::linux::mark`]). A process that starts
//! nothing but servers bears the mark itself, so that nothing is started without it; otherwise each server gets it once it was started.

mod record;

#[cfg(target_os = "linux")]
use crate::linux::{family, mark, mark::Mark, stdin_processes};
use crate::system::signals;
use crate::{Descendant, ProcessSignal, descendants};
use nix::libc;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{ForkResult, Pid, fork};
use record::Record;
use std::collections::HashSet;
use std::io::{self, PipeReader};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::process::{Child, ChildStdin, Command};

/// Handle to the guardian. Clones share one; it is started with the first server.
#[derive(Clone, Default)]
pub struct Guardian(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    started: Option<Started>,
    /// Groups that have not ended.
    groups: HashSet<i32>,
    /// Processes that may be there already, but whose ids are not known.
    starting: usize,
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
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "other systems let nobody adopt them"))]
    Adopted { before: HashSet<i32> },
}

/// A process that was just started.
pub struct Spawned {
    /// Dropped first: a child that is waited for has an id that may be somebody else's.
    pub group: Group,
    pub child: Child,
    pub stdin: ChildStdin,
}

/// A running process group. Dropping it kills it at once.
pub struct Group {
    id: i32,
    guardian: Guardian,
    ended: bool,
}

struct Started {
    pid: Pid,
    /// Ends the guardian when dropped.
    pipe: Option<OwnedFd>,
}

impl Guardian {
    /// The guardian of a process that starts nothing but servers. It also ends what has left a server's group and lost its
    /// parent, once the last server has ended (Linux). There is one at a time, whoever asks: to another one, its servers would be orphans.
    pub fn of_whole_process() -> Self {
        static WHOLE: Mutex<Weak<Mutex<State>>> = Mutex::new(Weak::new());
        let mut whole = WHOLE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = whole.upgrade() {
            return Self(known);
        }
        let guardian = Self::adopting();
        *whole = Arc::downgrade(&guardian.0);
        guardian
    }

    fn adopting() -> Self {
        #[cfg(target_os = "linux")]
        let orphans = {
            Mark::of_this_process().put_on(0);
            match nix::sys::prctl::set_child_subreaper(true) {
                Ok(()) => Orphans::Adopted { before: family::children_of("self").into_iter().collect() },
                Err(_) => Orphans::Ignored,
            }
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
            mark::take_off();
        }
        state.orphans = Orphans::Ignored;
    }

    /// Starts a process that leads a group of its own, and gives our end of its stdin. It is ended if nobody waits for it any
    /// more.
    ///
    /// # Errors
    /// It could not be started, or the guardian could not: no process or file descriptor left.
    pub async fn spawn(&self, command: Command) -> io::Result<Spawned> {
        let guardian = self.clone();
        // The system call returns when the new process runs, which takes as long as a busy machine lets it wait: on this thread
        // nothing else would happen meanwhile.
        let spawned = tokio::task::spawn_blocking(move || guardian.spawn_blocking(command));
        spawned.await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    fn spawn_blocking(self, mut command: Command) -> io::Result<Spawned> {
        let (stdin, writer) = io::pipe()?;
        let writer = ChildStdin::from_std(OwnedFd::from(writer).into())?;
        let pipe = self.pipe()?;
        let id = expect(pipe, &stdin, &mut command)?;
        command.process_group(0).stdin(stdin);
        self.state().starting += 1;
        let spawned = command.spawn();
        let mut state = self.state();
        state.starting -= 1;
        let child = match spawned {
            Ok(child) => child,
            Err(error) => {
                send(pipe, Record::Missing { stdin: id });
                state.end_orphans();
                return Err(error);
            }
        };
        let group = child.id().and_then(|pid| i32::try_from(pid).ok()).expect("a child that was not waited for has an id");
        send(pipe, Record::Arrived { stdin: id, group });
        #[cfg(target_os = "linux")]
        Mark::of_this_process().put_on(group);
        state.groups.insert(group);
        drop(state);
        Ok(Spawned { group: Group { id: group, guardian: self, ended: false }, child, stdin: writer })
    }

    /// Asks all servers that run to end, as a supervisor does it. Gives what was below them, some of which may have left their groups: once
    /// they have ended, the system does not tell any more.
    pub fn ask_to_end(&self) -> Vec<Descendant> {
        let groups: Vec<i32> = self.state().groups.iter().copied().collect();
        let family = groups.iter().copied().flat_map(descendants).collect();
        for group in groups {
            let _ = killpg(Pid::from_raw(group), signals::of(ProcessSignal::TERMINATE));
        }
        family
    }

    /// Whether all servers have ended, with all that is still in their groups.
    pub fn is_idle(&self) -> bool {
        let state = self.state();
        state.starting == 0 && state.groups.iter().all(|group| killpg(Pid::from_raw(*group), None::<Signal>).is_err())
    }

    /// To the guardian, which is started if it is not there.
    fn pipe(&self) -> io::Result<RawFd> {
        let mut state = self.state();
        if state.started.is_none() {
            #[cfg(target_os = "linux")]
            let started = start(Mark::of_this_process())?;
            #[cfg(not(target_os = "linux"))]
            let started = start(())?;
            state.started = Some(started);
        }
        Ok(state.pipe().expect("a started guardian has its pipe"))
    }

    /// The group has ended; the id may belong to somebody else from now on. Returns the orphans that were ended with the
    /// last one.
    fn forget(&self, group: i32) -> Vec<i32> {
        let mut state = self.state();
        state.groups.remove(&group);
        if let Some(pipe) = state.pipe() {
            send(pipe, Record::Ended { group });
        }
        state.end_orphans()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Group {
    pub fn id(&self) -> i32 {
        self.id
    }

    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// To all of its processes, as a terminal or a supervisor does it.
    ///
    /// # Errors
    /// It is gone.
    pub fn signal(&self, signal: ProcessSignal) -> io::Result<()> {
        Ok(killpg(Pid::from_raw(self.id), signals::of(signal))?)
    }

    /// To the process that leads it, as a supervisor does it that knows no groups.
    ///
    /// # Errors
    /// It is gone.
    pub fn signal_leader(&self, signal: ProcessSignal) -> io::Result<()> {
        Ok(kill(Pid::from_raw(self.id), signals::of(signal))?)
    }

    /// Kills what is left of it. Returns the orphans that were ended with it.
    pub fn end(&mut self) -> Vec<i32> {
        if std::mem::replace(&mut self.ended, true) {
            return Vec::new();
        }
        let _ = killpg(Pid::from_raw(self.id), Signal::SIGKILL);
        self.guardian.forget(self.id)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

impl State {
    fn pipe(&self) -> Option<RawFd> {
        Some(self.started.as_ref()?.pipe.as_ref()?.as_raw_fd())
    }

    /// Ends what has lost its parent, if there is no server to which it may belong, and none that would be taken for it.
    fn end_orphans(&self) -> Vec<i32> {
        match (&self.orphans, &self.started) {
            (Orphans::Adopted { before }, Some(guardian)) if self.groups.is_empty() && self.starting == 0 => {
                end_children(|pid| pid == guardian.pid.as_raw() || before.contains(&pid))
            }
            _ => Vec::new(),
        }
    }
}

/// Kills all children of this process that are not spared, and theirs that come up by that. Gives those that were alive: one
/// that had ended before only waited for us to collect it.
#[cfg(target_os = "linux")]
fn end_children(is_spared: impl Fn(i32) -> bool) -> Vec<i32> {
    let (mut ended, mut alive) = (Vec::new(), Vec::new());
    loop {
        let left: Vec<i32> = family::children_of("self").into_iter().filter(|pid| !is_spared(*pid) && !ended.contains(pid)).collect();
        if left.is_empty() {
            return alive;
        }
        for pid in left {
            let child = Pid::from_raw(pid);
            if family::is_alive(pid) {
                alive.push(pid);
            }
            let _ = kill(child, Signal::SIGKILL);
            // Ours to collect, and gone at once: nothing holds up SIGKILL but the kernel itself.
            let _ = nix::sys::wait::waitpid(child, None);
            ended.push(pid);
        }
    }
}

/// Nothing is known to be adopted.
#[cfg(not(target_os = "linux"))]
fn end_children(_: impl Fn(i32) -> bool) -> Vec<i32> {
    Vec::new()
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(pipe) = self.pipe.take() {
            send(pipe.as_raw_fd(), Record::Finished);
        }
        // The guardian ends at once on end of file; without this a long-lived host would collect zombies.
        let _ = nix::sys::wait::waitpid(self.pid, None);
    }
}

/// Tells the guardian of a process that is about to be started. Returns what names it until it has an id.
#[cfg(target_os = "linux")]
fn expect(pipe: RawFd, stdin: &PipeReader, _command: &mut Command) -> io::Result<u64> {
    let id = nix::sys::stat::fstat(stdin)?.st_ino;
    send(pipe, Record::Expected { stdin: id });
    Ok(id)
}

/// Has the process tell the guardian of itself.
#[cfg(not(target_os = "linux"))]
fn expect(pipe: RawFd, _stdin: &PipeReader, command: &mut Command) -> io::Result<u64> {
    let register = move || {
        // SAFETY: getpid has no preconditions.
        send(pipe, Record::Arrived { stdin: 0, group: unsafe { libc::getpid() } });
        Ok(())
    };
    // SAFETY: the closure only makes async-signal-safe calls.
    unsafe { command.pre_exec(register) };
    Ok(0)
}

/// Smaller than PIPE_BUF, hence atomic. Async-signal-safe.
fn send(pipe: RawFd, record: Record) {
    let bytes = record.to_bytes();
    // SAFETY: `bytes` outlives the call; a bad descriptor only yields an error.
    unsafe { libc::write(pipe, bytes.as_ptr().cast(), bytes.len()) };
}

fn start(mark: ServersMark) -> io::Result<Started> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors.
    if unsafe { libc::pipe(ends.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both descriptors were just made and belong to nothing else.
    let (read, write) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
    for end in ends {
        // SAFETY: the descriptor is open.
        unsafe { libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    // Allocated before the fork: the child must not allocate, for another thread may hold the allocator's lock.
    let watched = Vec::with_capacity(65_536);
    // SAFETY: the child runs `guard` only, which keeps to async-signal-safe calls and never returns.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => {
            drop(read);
            Ok(Started { pid: child, pipe: Some(write) })
        }
        ForkResult::Child => guard(read.as_raw_fd(), watched, mark),
    }
}

/// By what the offspring of servers is found.
#[cfg(target_os = "linux")]
type ServersMark = Mark;
/// Nothing else is inherited by all.
#[cfg(not(target_os = "linux"))]
type ServersMark = ();

/// What the guardian ends: a process that is about to be there, or is.
#[derive(Clone, Copy)]
struct Watched {
    stdin: u64,
    group: Option<i32>,
}

/// The life of the guardian.
fn guard(pipe: RawFd, mut watched: Vec<Watched>, mark: ServersMark) -> ! {
    // What ends others is not to be ended by another guardian, above us, before its work is done.
    #[cfg(target_os = "linux")]
    mark::take_off();
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
    // This process ended its servers itself, and theirs with them.
    let mut in_order = false;
    let mut bytes = [0_u8; record::SIZE];
    loop {
        // SAFETY: `bytes` has room for its length. Records are written atomically, so a read gives a whole one.
        let count = unsafe { libc::read(0, bytes.as_mut_ptr().cast(), bytes.len()) };
        if usize::try_from(count) == Ok(bytes.len()) {
            match Record::from_bytes(bytes) {
                Record::Finished => in_order = true,
                record => note(&mut watched, record),
            }
        } else if count == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            break;
        }
    }
    for Watched { stdin, group } in watched.iter().copied() {
        match group {
            Some(group) => end(group),
            // A process between fork and exec would still hold our pipe, so that this search comes too early for none.
            #[cfg(target_os = "linux")]
            None => stdin_processes::of_stdin(stdin, end),
            #[cfg(not(target_os = "linux"))]
            None => unreachable!("unexpected {stdin}: processes register themselves"),
        }
    }
    #[cfg(target_os = "linux")]
    if !in_order {
        // The one that is gone may bear it as well; it ends without us.
        mark.end_bearers(0);
    }
    #[cfg(not(target_os = "linux"))]
    let (_, ()) = (in_order, mark);
    // SAFETY: ends this process without running what the parent registered for its exit.
    unsafe { libc::_exit(0) }
}

/// Never allocates: what does not fit is not watched.
fn note(watched: &mut Vec<Watched>, record: Record) {
    let named = |stdin: u64| move |known: &Watched| known.group.is_none() && known.stdin == stdin;
    let found = match record {
        Record::Expected { .. } | Record::Finished => None,
        Record::Arrived { stdin, .. } | Record::Missing { stdin } => watched.iter().position(named(stdin)),
        Record::Ended { group } => watched.iter().position(|known| known.group == Some(group)),
    };
    let now = match record {
        Record::Expected { stdin } => Some(Watched { stdin, group: None }),
        Record::Arrived { stdin, group } => Some(Watched { stdin, group: Some(group) }),
        Record::Missing { .. } | Record::Ended { .. } | Record::Finished => None,
    };
    match (found, now) {
        (Some(index), Some(now)) => watched[index] = now,
        (Some(index), None) => drop(watched.swap_remove(index)),
        (None, Some(now)) if watched.len() < watched.capacity() => watched.push(now),
        (None, _) => {}
    }
}

fn end(group: i32) {
    // SAFETY: signals have no memory effects here. The process itself as well: it may not lead its group (yet).
    unsafe {
        libc::kill(-group, libc::SIGKILL);
        libc::kill(group, libc::SIGKILL);
    }
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

#[cfg(all(test, target_os = "linux"))]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Child, Command};

    /// A process that would be there for a minute, started as [`Guardian::spawn`] starts one.
    fn sleeper(stdin: PipeReader) -> Child {
        use std::os::unix::process::CommandExt as _;
        Command::new("sleep").arg("60").process_group(0).stdin(stdin).spawn().unwrap()
    }

    /// What the guardian does to a process of which it has these records when its pipe closes: the signal that ended it,
    /// which is SIGTERM if it was spared.
    fn check(records: impl Fn(u64, i32) -> Vec<Record>) -> Option<i32> {
        let guardian = Guardian::default();
        let pipe = guardian.pipe().unwrap();
        let (stdin, writer) = io::pipe().unwrap();
        let id = nix::sys::stat::fstat(&stdin).unwrap().st_ino;
        let mut child = sleeper(stdin);
        for record in records(id, i32::try_from(child.id()).unwrap()) {
            send(pipe, record);
        }
        // Returns when the guardian has done its work.
        drop(guardian);
        // Whoever was killed before that does not take note of it.
        let _ = kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM);
        let status = child.wait().unwrap();
        drop(writer);
        status.signal()
    }

    /// As if this process had been killed between the start of the process and the moment that it knows of it.
    #[test]
    fn a_process_that_was_only_expected_is_ended() {
        assert_eq!(check(|stdin, _| vec![Record::Expected { stdin }]), Some(libc::SIGKILL));
    }

    #[test]
    fn whoever_asks_gets_the_same_guardian_of_the_process() {
        let [one, other] = [Guardian::of_whole_process(), Guardian::of_whole_process()];
        assert!(Arc::ptr_eq(&one.0, &other.0));
    }

    #[test]
    fn a_process_that_has_arrived_is_ended() {
        assert_eq!(check(|stdin, group| vec![Record::Expected { stdin }, Record::Arrived { stdin, group }]), Some(libc::SIGKILL));
    }

    #[test]
    fn what_has_ended_or_never_came_is_not_looked_for() {
        let spared = [
            check(|stdin, group| vec![Record::Expected { stdin }, Record::Arrived { stdin, group }, Record::Ended { group }]),
            check(|stdin, _| vec![Record::Expected { stdin }, Record::Missing { stdin }]),
            check(|stdin, _| vec![Record::Expected { stdin: stdin + 1 }]),
            check(|_, _| Vec::new()),
        ];
        assert_eq!(spared, [Some(libc::SIGTERM); 4]);
    }
}
