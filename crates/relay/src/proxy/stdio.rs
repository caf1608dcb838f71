//! A stdio server behind the pipes of its client. Bytes pass in both directions as they come, before anything is made of them.
//!
//! The copies are blocking reads and writes on threads of their own: the client's pipes are shared with whoever made them and must not
//! become non-blocking, and a thread that is woken by the pipe itself adds the least delay. A full pipe blocks its thread, so that
//! backpressure reaches the other side as it would without us.

use super::recorder::{PassingStream, Recorder};
use mcproof_client::transport::{DisturbedLines, FaultInjector};
use mcproof_client::{Launch, ShutdownTimeouts, Spawned};
use mcproof_record::{Direction, FrameBody};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigHandler, Signal, kill, killpg, raise, signal};
use nix::unistd::{Pid, dup2_stdin, dup2_stdout};
use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::net::unix::pipe;
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::signal::unix::{SignalKind, signal as listen};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// The pipes that a client gave us.
pub struct HostPipes {
    pub input: OwnedFd,
    pub output: OwnedFd,
    pub errors: OwnedFd,
}

/// How the server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerEnd {
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

#[derive(Debug, thiserror::Error)]
pub enum RelayFailure {
    #[error("`{program}` was not found")]
    NotFound { program: String },
    #[error("the working directory {0} does not exist")]
    NoFolder(String),
    #[error("`{program}` could not be started: {reason}")]
    NotStarted { program: String, reason: io::Error },
    #[error("the relay could not be set up: {0}")]
    System(#[from] io::Error),
}

/// How long output may lag behind the end of the process that wrote it.
const DRAIN: Duration = Duration::from_millis(250);
/// How long the last frames may take to be recorded.
const SETTLE: Duration = Duration::from_secs(5);

/// Takes stdin and stdout out of the process: what anything of ours printed from here on reaches nobody.
///
/// # Errors
/// The descriptors are closed, or none is left.
pub fn take_host_pipes() -> io::Result<HostPipes> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    let errors = io::stderr().as_fd().try_clone_to_owned()?;
    let nothing = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&nothing)?;
    dup2_stdout(&nothing)?;
    Ok(HostPipes { input, output, errors })
}

/// The command that starts a server whose stdout and stderr are pipes.
///
/// # Errors
/// Its working directory does not exist.
pub fn command_of(launch: &Launch) -> Result<Command, RelayFailure> {
    let (program, arguments) = launch.command.split_first().map_or(("", &[][..]), |(program, rest)| (program.as_str(), rest));
    if let Some(folder) = launch.folder.as_ref().filter(|folder| !folder.is_dir()) {
        return Err(RelayFailure::NoFolder(folder.display().to_string()));
    }
    let mut command = Command::new(program);
    command.args(arguments).envs(launch.env.iter().cloned());
    if let Some(folder) = &launch.folder {
        command.current_dir(folder);
    }
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    Ok(command)
}

/// Relays until the server has ended and the client has all of its output. Signals of this process go to the server. A server whose
/// client is gone is ended when it does not end by itself.
///
/// # Errors
/// The pipes cannot be used, or no thread is left.
pub async fn relay_stdio(
    spawned: Spawned,
    launch: &Launch,
    host: HostPipes,
    recorder: Recorder,
    patience: ShutdownTimeouts,
    faults: Option<&LineFaults>,
) -> Result<ServerEnd, RelayFailure> {
    // Before anything passes: a client that has heard of the server may send it a signal.
    let mut signals = ForwardedSignals::new()?;
    let Spawned { mut group, mut child, stdin } = spawned;
    let pid = child.id().unwrap_or_default();
    recorder.fact(Direction::Local, FrameBody::Spawned { pid, command: launch.command.clone() });
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        unreachable!("both streams were requested as pipes");
    };
    let errors = blocking(stderr.into_owned_fd()?)?;
    let (to_server, from_server, mut disturbed) = match faults {
        None => (blocking(stdin.into_owned_fd()?)?, blocking(stdout.into_owned_fd()?)?, None),
        Some(faults) => {
            let (to_server, from_server, disturbed) = disturb(stdin, stdout, faults, &recorder)?;
            (to_server, from_server, Some(disturbed))
        }
    };
    // Whoever ends first takes it: a copy that stays open would keep the end of the output from the client.
    let watched = Arc::new(Mutex::new(Some(host.output.try_clone()?)));
    // Closed when the output has ended: then there is nothing left by which the client could be gone.
    let (output_ended, output_ends) = io::pipe()?;
    let (lost, mut client_lost) = mpsc::unbounded_channel();
    let outbound = Pump::start(PassingStream::Stdout, from_server, File::from(host.output), recorder.clone(), {
        let watched = Arc::clone(&watched);
        move || {
            drop(take(&watched));
            drop(output_ends);
        }
    })?;
    let talk = Pump::start(PassingStream::Stderr, errors, File::from(host.errors), recorder.clone(), || {})?;
    let inbound_recorder = recorder.clone();
    thread::Builder::new().name("stdin".into()).spawn(move || {
        let activity = Activity::default();
        pump(PassingStream::Stdin, File::from(host.input), to_server, &inbound_recorder, &activity);
        drop(inbound_recorder);
        if take(&watched).is_some_and(|output| is_abandoned(&output, &output_ended)) {
            // Nobody listens once the server has ended.
            let _ = lost.send(());
        }
    })?;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status?,
            Some(()) = client_lost.recv() => {
                recorder.fact(Direction::Local, FrameBody::Note { text: "the client is gone".into() });
                break end_server(&mut child, group.id(), &recorder, patience).await?;
            }
            () = ended(&mut disturbed) => {
                // Its pipes are closed: a server that does not end by itself is ended, since its client is not told of it.
                break end_server(&mut child, group.id(), &recorder, patience).await?;
            }
            received = signals.next() => forward(received, group.id(), &recorder),
        }
    };
    let (code, signal) = (status.code(), status.signal());
    recorder.fact(Direction::Local, FrameBody::Exited { code, signal });
    let drained = async {
        outbound.drained().await;
        talk.drained().await;
    };
    tokio::select! {
        () = drained => {}
        // Nobody is left to take it: whoever sends it now means us.
        _ = signals.next() => {}
    }
    group.end();
    // The thread of stdin may wait for a client that has nothing more to say: what matters is what was told so far.
    recorder.settle(SETTLE);
    Ok(ServerEnd { code, signal })
}

/// Ends this process by the signal that ended the server, if one did; else gives its exit code.
pub fn end_like(end: ServerEnd) -> u8 {
    if let Some(number) = end.signal
        && let Ok(ending) = Signal::try_from(number)
    {
        // SAFETY: the default action is no handler of ours.
        let _ = unsafe { signal(ending, SigHandler::SigDfl) };
        let _ = raise(ending);
        return u8::try_from(128 + number).unwrap_or(u8::MAX);
    }
    end.code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Faults on the lines of a server.
pub struct LineFaults {
    pub injector: FaultInjector,
    /// Bytes of a line.
    pub limit: usize,
}

/// Stands between the pipes of a server and those that are pumped, which it gives.
fn disturb(stdin: ChildStdin, stdout: ChildStdout, faults: &LineFaults, recorder: &Recorder) -> io::Result<(File, File, DisturbedLines)> {
    let (from_client, to_server) = io::pipe()?;
    let (from_server, to_client) = io::pipe()?;
    let from_client = pipe::Receiver::from_owned_fd(from_client.into())?;
    let to_client = pipe::Sender::from_owned_fd(to_client.into())?;
    let lines = DisturbedLines::between(stdout, stdin, to_client, from_client, &faults.injector, faults.limit, recorder.tap());
    Ok((File::from(OwnedFd::from(to_server)), File::from(OwnedFd::from(from_server)), lines))
}

async fn ended(disturbed: &mut Option<DisturbedLines>) {
    match disturbed {
        Some(lines) => lines.ended().await,
        None => std::future::pending().await,
    }
}

async fn end_server(
    child: &mut tokio::process::Child,
    group: i32,
    recorder: &Recorder,
    patience: ShutdownTimeouts,
) -> io::Result<std::process::ExitStatus> {
    if let Ok(status) = timeout(patience.end_of_input, child.wait()).await {
        return status;
    }
    forward(Signal::SIGTERM, group, recorder);
    if let Ok(status) = timeout(patience.terminate, child.wait()).await {
        return status;
    }
    let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    recorder.fact(Direction::Local, FrameBody::Signalled { signal: Signal::SIGKILL.to_string() });
    child.wait().await
}

/// What a terminal sends goes to the whole group, as the terminal would send it; the rest to the server alone.
fn forward(received: Signal, group: i32, recorder: &Recorder) {
    let sent = match received {
        Signal::SIGINT | Signal::SIGQUIT | Signal::SIGHUP => killpg(Pid::from_raw(group), received),
        _ => kill(Pid::from_raw(group), received),
    };
    if sent.is_ok() {
        recorder.fact(Direction::Local, FrameBody::Signalled { signal: received.to_string() });
    }
}

struct ForwardedSignals(mpsc::UnboundedReceiver<Signal>);

impl ForwardedSignals {
    fn new() -> io::Result<Self> {
        let (sender, receiver) = mpsc::unbounded_channel();
        for forwarded in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2] {
            let mut stream = listen(SignalKind::from_raw(forwarded as i32))?;
            let sender = sender.clone();
            tokio::spawn(async move { while stream.recv().await.is_some() && sender.send(forwarded).is_ok() {} });
        }
        Ok(Self(receiver))
    }

    /// Waits for the next one. Cancelling this loses none.
    async fn next(&mut self) -> Signal {
        match self.0.recv().await {
            Some(received) => received,
            None => std::future::pending().await,
        }
    }
}

/// One direction, on a thread of its own.
struct Pump {
    activity: Arc<Activity>,
    done: oneshot::Receiver<()>,
}

#[derive(Default)]
struct Activity {
    pieces: AtomicU64,
    /// A piece is being written; its reader may take its time.
    writing: AtomicBool,
}

impl Pump {
    fn start(stream: PassingStream, from: File, to: File, recorder: Recorder, ended: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let activity = Arc::new(Activity::default());
        let (finished, done) = oneshot::channel();
        let watched = Arc::clone(&activity);
        thread::Builder::new().name(format!("{stream:?}")).spawn(move || {
            pump(stream, from, to, &recorder, &watched);
            drop(recorder);
            ended();
            let _ = finished.send(());
        })?;
        Ok(Self { activity, done })
    }

    /// Waits for the end of the stream; if somebody else holds it open, until nothing has come for a while.
    async fn drained(mut self) {
        let mut seen = u64::MAX;
        loop {
            let pieces = self.activity.pieces.load(Ordering::Acquire);
            if pieces == seen && !self.activity.writing.load(Ordering::Acquire) {
                return;
            }
            seen = pieces;
            if timeout(DRAIN, &mut self.done).await.is_ok() {
                return;
            }
        }
    }
}

/// Copies until one side ends. Both ends are closed then, which is how the other side learns of it.
fn pump(stream: PassingStream, mut from: File, mut to: File, recorder: &Recorder, activity: &Activity) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = match read(&mut from, &mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(count) => count,
        };
        activity.writing.store(true, Ordering::Release);
        activity.pieces.fetch_add(1, Ordering::Release);
        recorder.bytes(stream, &buffer[..count]);
        let written = write_all(&mut to, &buffer[..count]);
        activity.writing.store(false, Ordering::Release);
        // A client that does not read stderr must not keep the server from writing to it.
        if written.is_err() && stream != PassingStream::Stderr {
            break;
        }
    }
    recorder.end(stream);
}

fn take(watched: &Mutex<Option<OwnedFd>>) -> Option<OwnedFd> {
    watched.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Whether nobody reads the output any more, before it has ended by itself.
fn is_abandoned(output: &OwnedFd, ended: &PipeReader) -> bool {
    loop {
        let mut watched = [PollFd::new(output.as_fd(), PollFlags::empty()), PollFd::new(ended.as_fd(), PollFlags::empty())];
        match poll(&mut watched, PollTimeout::NONE) {
            Err(Errno::EINTR) => continue,
            Err(_) => return false,
            Ok(_) => {}
        }
        let happened = |index: usize| watched[index].any().unwrap_or(false);
        if happened(1) {
            return false;
        }
        if happened(0) {
            return true;
        }
    }
}

fn read(from: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait_for(from.as_fd(), PollFlags::POLLIN)?,
            outcome => return outcome,
        }
    }
}

fn write_all(to: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait_for(to.as_fd(), PollFlags::POLLOUT)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The client's end may be non-blocking: whoever made it decides.
fn wait_for(descriptor: BorrowedFd<'_>, flags: PollFlags) -> io::Result<()> {
    match poll(&mut [PollFd::new(descriptor, flags)], PollTimeout::NONE) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Our own end of a pipe, which tokio has made non-blocking.
fn blocking(descriptor: OwnedFd) -> io::Result<File> {
    let flags = OFlag::from_bits_truncate(fcntl(&descriptor, FcntlArg::F_GETFL)?);
    fcntl(&descriptor, FcntlArg::F_SETFL(flags & !OFlag::O_NONBLOCK))?;
    Ok(File::from(descriptor))
}
