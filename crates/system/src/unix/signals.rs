//! Signals that this process receives, and those of others.

use crate::{EndRequest, ProcessSignal};
use nix::sys::signal::{SigHandler, SigSet, Signal, kill, raise, signal};
use nix::unistd::Pid;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use tokio::signal::unix::{self, SignalKind, signal as listen};
use tokio::sync::mpsc;

pub(crate) fn of(signal: ProcessSignal) -> Signal {
    match signal {
        ProcessSignal::Term => Signal::SIGTERM,
        ProcessSignal::Int => Signal::SIGINT,
        ProcessSignal::Hup => Signal::SIGHUP,
        ProcessSignal::Quit => Signal::SIGQUIT,
        ProcessSignal::Kill => Signal::SIGKILL,
        ProcessSignal::Usr1 => Signal::SIGUSR1,
        ProcessSignal::Usr2 => Signal::SIGUSR2,
        ProcessSignal::Stop => Signal::SIGSTOP,
        ProcessSignal::Cont => Signal::SIGCONT,
        ProcessSignal::Abrt => Signal::SIGABRT,
        ProcessSignal::Pipe => Signal::SIGPIPE,
        ProcessSignal::Segv => Signal::SIGSEGV,
    }
}

pub(crate) fn number(signal: ProcessSignal) -> i32 {
    of(signal) as i32
}

/// The name of a signal by its number.
pub fn name_of(number: i32) -> Option<&'static str> {
    Signal::try_from(number).ok().map(Signal::as_str)
}

/// The number of the signal that ended a process, if one did.
pub fn of_exit(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// What asks this process to end no longer does, in this thread and those that it starts from here on.
///
/// # Errors
/// The system refuses.
pub fn block_termination() -> io::Result<()> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    Ok(signals.thread_block()?)
}

/// Asks another process to end as Ctrl-C does. One that is gone needs no signal.
pub fn interrupt(process: u32) {
    if let Ok(process) = i32::try_from(process) {
        let _ = kill(Pid::from_raw(process), Signal::SIGINT);
    }
}

/// Ends this process by a signal that has ended another one. Returns if that is not possible.
pub fn end_like(number: i32) {
    if let Ok(ending) = Signal::try_from(number) {
        // SAFETY: the default action is no handler of ours.
        let _ = unsafe { signal(ending, SigHandler::SigDfl) };
        let _ = raise(ending);
    }
}

/// SIGINT, SIGTERM, and SIGHUP if asked for. From the moment that this exists they no longer end the process by themselves.
pub struct EndRequests {
    interrupt: unix::Signal,
    terminate: unix::Signal,
    hangup: Option<unix::Signal>,
}

impl EndRequests {
    /// # Errors
    /// The system refuses a handler.
    pub fn new() -> io::Result<Self> {
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())?, hangup: None })
    }

    /// As [`Self::new`]; the end of the terminal is a request, too, unless whoever started this wants it to be ignored, as `nohup` does.
    ///
    /// # Errors
    /// The system refuses a handler.
    pub fn with_hangup() -> io::Result<Self> {
        let hangup = if is_ignored(nix::libc::SIGHUP) { None } else { Some(listen(SignalKind::hangup())?) };
        Ok(Self { hangup, ..Self::new()? })
    }

    /// Waits for the next one. Cancelling this loses none.
    pub async fn next(&mut self) -> EndRequest {
        tokio::select! {
            _ = self.interrupt.recv() => EndRequest::Interrupt,
            _ = self.terminate.recv() => EndRequest::Terminate,
            _ = received(&mut self.hangup) => EndRequest::Terminate,
        }
    }
}

/// Waits for ever where nothing is listened for.
async fn received(signal: &mut Option<unix::Signal>) {
    match signal {
        Some(signal) => _ = signal.recv().await,
        None => std::future::pending().await,
    }
}

/// Whether a signal is ignored.
fn is_ignored(signal: nix::libc::c_int) -> bool {
    // SAFETY: all zeros is a valid `sigaction`, and without a new action the call only reads the present one into it.
    unsafe {
        let mut present: nix::libc::sigaction = std::mem::zeroed();
        nix::libc::sigaction(signal, std::ptr::null(), &raw mut present) == 0 && present.sa_sigaction == nix::libc::SIG_IGN
    }
}

/// SIGHUP, by which people ask a service to read its configuration again.
pub struct ReloadRequests(unix::Signal);

impl ReloadRequests {
    /// `None` if the system refuses a handler.
    pub fn new() -> Option<Self> {
        listen(SignalKind::hangup()).ok().map(Self)
    }

    /// Waits for the next one; `None` where no other will come. Cancelling this loses none.
    pub async fn next(&mut self) -> Option<()> {
        self.0.recv().await
    }
}

/// The signals that a program which stands for another one hands on to it.
pub struct ForwardedSignals(mpsc::UnboundedReceiver<ProcessSignal>);

impl ForwardedSignals {
    /// # Errors
    /// The system refuses a handler.
    pub fn new() -> io::Result<Self> {
        use ProcessSignal::{Hup, Int, Quit, Term, Usr1, Usr2};
        let (sender, receiver) = mpsc::unbounded_channel();
        for forwarded in [Int, Term, Hup, Quit, Usr1, Usr2] {
            let mut stream = listen(SignalKind::from_raw(number(forwarded)))?;
            let sender = sender.clone();
            tokio::spawn(async move { while stream.recv().await.is_some() && sender.send(forwarded).is_ok() {} });
        }
        Ok(Self(receiver))
    }

    /// Waits for the next one. Cancelling this loses none.
    pub async fn next(&mut self) -> ProcessSignal {
        match self.0.recv().await {
            Some(received) => received,
            None => std::future::pending().await,
        }
    }
}
