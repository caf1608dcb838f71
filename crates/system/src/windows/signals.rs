//! Console events in place of signals: Ctrl-C and Ctrl-Break, and what the system says before it closes a console.

use crate::{EndRequest, ProcessSignal};
use std::io;
use std::process::ExitStatus;
use tokio::signal::windows::{CtrlBreak, CtrlC, CtrlClose, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown};
use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, GenerateConsoleCtrlEvent, SetConsoleCtrlHandler};

/// The numbers of POSIX, which the C library of Windows uses as far as it knows them.
pub(crate) fn number(signal: ProcessSignal) -> i32 {
    match signal {
        ProcessSignal::Hup => 1,
        ProcessSignal::Int => 2,
        ProcessSignal::Quit => 3,
        ProcessSignal::Abrt => 6,
        ProcessSignal::Kill => 9,
        ProcessSignal::Usr1 => 10,
        ProcessSignal::Segv => 11,
        ProcessSignal::Usr2 => 12,
        ProcessSignal::Pipe => 13,
        ProcessSignal::Term => 15,
        ProcessSignal::Cont => 18,
        ProcessSignal::Stop => 19,
    }
}

/// No process of Windows ends by a signal.
pub fn name_of(_number: i32) -> Option<&'static str> {
    None
}

/// No process of Windows ends by a signal; its exit code says how it ended.
pub fn of_exit(_status: ExitStatus) -> Option<i32> {
    None
}

/// What asks this process to end no longer does.
///
/// # Errors
/// The system refuses.
pub fn block_termination() -> io::Result<()> {
    unsafe extern "system" fn seen(_event: u32) -> i32 {
        1
    }
    // SAFETY: the handler touches nothing.
    if unsafe { SetConsoleCtrlHandler(Some(seen), 1) } == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Asks another process to end as Ctrl-Break does. It has to lead a group of its own ([`super::commands::own_group`]).
pub fn interrupt(process: u32) {
    // One that is gone needs none.
    let _ = break_group(process);
}

pub(super) fn break_group(leader: u32) -> io::Result<()> {
    // SAFETY: a call without memory arguments.
    if unsafe { GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, leader) } == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Nothing to do: exit codes say all.
pub fn end_like(_number: i32) {}

/// Ctrl-C, Ctrl-Break, a console that is closed, a system that shuts down. From the moment that this exists the first two no longer end the
/// process by themselves.
pub struct EndRequests {
    interrupt: CtrlC,
    terminate: CtrlBreak,
    close: CtrlClose,
    shutdown: CtrlShutdown,
}

impl EndRequests {
    /// # Errors
    /// The system refuses a handler.
    pub fn new() -> io::Result<Self> {
        Ok(Self { interrupt: ctrl_c()?, terminate: ctrl_break()?, close: ctrl_close()?, shutdown: ctrl_shutdown()? })
    }

    /// As [`Self::new`], which hears of the end of the console.
    ///
    /// # Errors
    /// The system refuses a handler.
    pub fn with_hangup() -> io::Result<Self> {
        Self::new()
    }

    /// Waits for the next one. Cancelling this loses none.
    pub async fn next(&mut self) -> EndRequest {
        tokio::select! {
            _ = self.interrupt.recv() => EndRequest::Interrupt,
            _ = self.terminate.recv() => EndRequest::Terminate,
            _ = self.close.recv() => EndRequest::Terminate,
            _ = self.shutdown.recv() => EndRequest::Terminate,
        }
    }
}

/// Windows has no signal by which people ask a service to read its configuration again.
pub struct ReloadRequests(());

impl ReloadRequests {
    /// `None` if the system refuses a handler.
    pub fn new() -> Option<Self> {
        None
    }

    /// Waits for the next one; `None` where no other will come.
    #[expect(clippy::unused_async, reason = "the other systems wait here")]
    pub async fn next(&mut self) -> Option<()> {
        None
    }
}

/// The events that a program which stands for another one hands on to it.
pub struct ForwardedSignals(EndRequests);

impl ForwardedSignals {
    /// # Errors
    /// The system refuses a handler.
    pub fn new() -> io::Result<Self> {
        EndRequests::new().map(Self)
    }

    /// Waits for the next one. Cancelling this loses none.
    pub async fn next(&mut self) -> ProcessSignal {
        match self.0.next().await {
            EndRequest::Interrupt => ProcessSignal::Int,
            EndRequest::Terminate => ProcessSignal::Term,
        }
    }
}
