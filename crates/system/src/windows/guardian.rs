//! Ends the processes of our servers with this process, whatever ends it: each server is in a job of its own, of which only this process
//! has a handle. Knows process ids, nothing of servers.
//!
//! There is no moment at which a process could be lost. A server begins suspended, is put into its job, and goes on there, so that it has
//! started nothing before. Should this process be killed in between, the suspended one is ended by the job of this whole process, if it
//! starts nothing but servers; children are born into it.

use super::job::{Job, OnClose};
use super::signals;
use crate::tables::family;
use crate::{Descendant, ProcessSignal};
use std::io;
use std::os::windows::io::RawHandle;
use std::sync::OnceLock;
use tokio::process::{Child, ChildStdin, Command};
use windows_sys::Win32::Foundation::{CloseHandle, INVALID_HANDLE_VALUE};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, TH32CS_SNAPTHREAD, THREADENTRY32, Thread32First, Thread32Next,
};
use windows_sys::Win32::System::Threading::{
    CREATE_NEW_PROCESS_GROUP, CREATE_SUSPENDED, GetCurrentProcess, OpenThread, ResumeThread, THREAD_SUSPEND_RESUME,
};

/// Handle to what ends servers with this process. Clones share one.
#[derive(Clone, Default)]
pub struct Guardian {
    /// Of this process and all that it starts.
    whole: Option<&'static Job>,
}

/// The job that this process is in, if the system has not refused it. It is never dropped: with its last handle, this process would end.
static WHOLE: OnceLock<Option<Job>> = OnceLock::new();

/// A process that was just started.
pub struct Spawned {
    /// Dropped first: a child that is waited for has an id that may be somebody else's.
    pub group: Group,
    pub child: Child,
    pub stdin: ChildStdin,
}

/// A running server with all that it has started. Dropping it ends them at once.
pub struct Group {
    id: i32,
    job: Job,
    ended: bool,
}

/// What a process is told to have ended with that was ended by us.
const KILLED: u32 = 1;

impl Guardian {
    /// A guardian for a process that starts nothing but servers. Where the system refuses the job, servers still have their own.
    pub fn of_whole_process() -> Self {
        let enter = || {
            let job = Job::new().ok()?;
            // SAFETY: the pseudo handle is always valid.
            job.assign(unsafe { GetCurrentProcess() }).ok()?;
            Some(job)
        };
        Self { whole: WHOLE.get_or_init(enter).as_ref() }
    }

    /// This process is about to start something else than servers, which has to outlive it.
    pub fn disown_orphans(&self) {
        if let Some(job) = &self.whole {
            // If this fails, what is started ends with this process.
            let _ = job.on_close(OnClose::Spare);
        }
    }

    /// Starts a process with a job of its own, and gives our end of its stdin.
    ///
    /// # Errors
    /// It could not be started, or put into its job.
    pub async fn spawn(&self, command: Command) -> io::Result<Spawned> {
        let mut command = command;
        command.stdin(std::process::Stdio::piped()).kill_on_drop(true);
        command.creation_flags(CREATE_SUSPENDED | CREATE_NEW_PROCESS_GROUP);
        let job = Job::new()?;
        let mut child = command.spawn()?;
        let (Some(process), Some(pid), Some(stdin)) = (child.raw_handle(), child.id(), child.stdin.take()) else {
            unreachable!("a child that was not waited for has a handle and an id, and its stdin was requested as a pipe");
        };
        // If either fails, dropping the child ends it: it has done nothing yet.
        job.assign(process as RawHandle)?;
        resume(pid)?;
        // From here on the job ends it.
        Ok(Spawned { group: Group { id: pid.cast_signed(), job, ended: false }, child, stdin })
    }

    /// Nobody is asked: who holds the groups of the servers is not known here.
    pub fn ask_to_end(&self) -> Vec<Descendant> {
        Vec::new()
    }

    /// Whether there is nothing to wait for, as nobody was asked.
    pub fn is_idle(&self) -> bool {
        true
    }
}

impl Group {
    pub fn id(&self) -> i32 {
        self.id
    }

    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// To all of its processes, as far as Windows knows such a thing: what asks to end is Ctrl-Break on their console.
    ///
    /// # Errors
    /// It is gone, there is no console, or no such signal on Windows.
    pub fn signal(&self, signal: ProcessSignal) -> io::Result<()> {
        match signal {
            ProcessSignal::Kill => self.job.terminate(KILLED),
            ProcessSignal::Term | ProcessSignal::Int | ProcessSignal::Hup | ProcessSignal::Quit => {
                signals::break_group(self.id.cast_unsigned())
            }
            _ => Err(io::Error::new(io::ErrorKind::Unsupported, format!("Windows has no {}", signal.full_name()))),
        }
    }

    /// As above: events of the console reach all processes that a process has started on it.
    ///
    /// # Errors
    /// It is gone, there is no console, or no such signal on Windows.
    pub fn signal_leader(&self, signal: ProcessSignal) -> io::Result<()> {
        self.signal(signal)
    }

    /// Ends what is left of it. Returns what was still there besides the server itself.
    pub fn end(&mut self) -> Vec<i32> {
        if std::mem::replace(&mut self.ended, true) {
            return Vec::new();
        }
        let left = self.job.processes().into_iter().filter(|pid| *pid != self.id && family::is_alive(*pid)).collect();
        let _ = self.job.terminate(KILLED);
        left
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// Lets the first thread of a process run.
fn resume(pid: u32) -> io::Result<()> {
    // SAFETY: a snapshot of all threads needs no memory of ours.
    let snapshot = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0) };
    if snapshot == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    let mut entry = THREADENTRY32 { dwSize: u32::try_from(size_of::<THREADENTRY32>()).expect("it is small"), ..THREADENTRY32::default() };
    let mut resumed = false;
    // SAFETY: the entry has the size that it says; handles are closed once each.
    unsafe {
        let mut more = Thread32First(snapshot, &raw mut entry);
        while more != 0 {
            if entry.th32OwnerProcessID == pid {
                let thread = OpenThread(THREAD_SUSPEND_RESUME, 0, entry.th32ThreadID);
                if !thread.is_null() {
                    resumed |= ResumeThread(thread) != u32::MAX;
                    CloseHandle(thread);
                }
            }
            more = Thread32Next(snapshot, &raw mut entry);
        }
        CloseHandle(snapshot);
    }
    if resumed { Ok(()) } else { Err(io::Error::other("the new process has no thread that can be resumed")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn this_process_outlives_its_guardians() {
        drop(Guardian::of_whole_process());
        let [one, other] = [Guardian::of_whole_process(), Guardian::of_whole_process()];
        let jobs = [&one, &other].map(|guardian| guardian.whole.map(std::ptr::from_ref));
        assert_eq!(jobs[0], jobs[1]);
    }

    #[tokio::test]
    async fn what_a_server_has_started_ends_with_it() {
        let mut command = Command::new("cmd.exe");
        command.args(["/d", "/c", "cmd.exe /d /c pause"]).stdout(std::process::Stdio::null());
        let mut server = Guardian::default().spawn(command).await.unwrap();
        let begin = Instant::now();
        while server.group.job.processes().len() < 2 {
            assert!(begin.elapsed() < Duration::from_secs(30), "no second process");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(server.group.end().len(), 1);
        assert!(server.group.has_ended() && server.group.end().is_empty());
        assert!(!server.child.wait().await.unwrap().success());
        assert!(server.group.job.processes().is_empty());
    }
}
