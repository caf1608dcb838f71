//! A stdio server behind the pipes of its client. Bytes pass in both directions as they come, before anything is made of them.
//!
//! The copies are blocking reads and writes on threads of their own: the client's pipes are shared with whoever made them and must not
//! become non-blocking, and a thread that is woken by the pipe itself adds the least delay. A full pipe blocks its thread, so that
//! backpressure reaches the other side as it would without us.

use super::recorder::{PassingStream, Recorder};
use mcproof_client::transport::{DisturbedLines, FaultInjector};
use mcproof_client::{Launch, ShutdownTimeouts, Spawned};
use mcproof_record::{Direction, FrameBody};
use mcproof_system::pipes::{self, HostPipes};
use mcproof_system::signals::{self, ForwardedSignals};
use mcproof_system::{Group, ProcessSignal};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

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

/// The command that starts a server whose stdout and stderr are pipes.
///
/// # Errors
/// Its working directory does not exist.
pub fn command_of(launch: &Launch) -> Result<Command, RelayFailure> {
    if let Some(folder) = launch.folder.as_ref().filter(|folder| !folder.is_dir()) {
        return Err(RelayFailure::NoFolder(folder.display().to_string()));
    }
    let mut command = launch.to_command();
    command.envs(launch.env.iter().cloned());
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
    let errors = pipes::errors_of(stderr)?;
    let (to_server, from_server, mut disturbed) = match faults {
        None => (pipes::input_of(stdin)?, pipes::output_of(stdout)?, None),
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
    let outbound = Pump::start(PassingStream::Stdout, from_server, host.output, recorder.clone(), {
        let watched = Arc::clone(&watched);
        move || {
            drop(take(&watched));
            drop(output_ends);
        }
    })?;
    let talk = Pump::start(PassingStream::Stderr, errors, host.errors, recorder.clone(), || {})?;
    let inbound_recorder = recorder.clone();
    thread::Builder::new().name("stdin".into()).spawn(move || {
        let activity = Activity::default();
        pump(PassingStream::Stdin, host.input, to_server, &inbound_recorder, &activity);
        drop(inbound_recorder);
        if take(&watched).is_some_and(|output| pipes::is_abandoned(&output, &output_ended)) {
            // Nobody listens once the server has ended.
            let _ = lost.send(());
        }
    })?;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status?,
            Some(()) = client_lost.recv() => {
                recorder.fact(Direction::Local, FrameBody::Note { text: "the client is gone".into() });
                break end_server(&mut child, &group, &recorder, patience).await?;
            }
            () = ended(&mut disturbed) => {
                // Its pipes are closed: a server that does not end by itself is ended, since its client is not told of it.
                break end_server(&mut child, &group, &recorder, patience).await?;
            }
            received = signals.next() => forward(received, &group, &recorder),
        }
    };
    let (code, signal) = (status.code(), signals::of_exit(status));
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
    if let Some(number) = end.signal {
        signals::end_like(number);
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
    let (from_client, to_client) = pipes::async_pipes(from_client, to_client)?;
    let lines = DisturbedLines::between(stdout, stdin, to_client, from_client, &faults.injector, faults.limit, recorder.tap());
    Ok((pipes::file_of_writer(to_server), pipes::file_of_reader(from_server), lines))
}

async fn ended(disturbed: &mut Option<DisturbedLines>) {
    match disturbed {
        Some(lines) => lines.ended().await,
        None => std::future::pending().await,
    }
}

async fn end_server(
    child: &mut tokio::process::Child,
    group: &Group,
    recorder: &Recorder,
    patience: ShutdownTimeouts,
) -> io::Result<std::process::ExitStatus> {
    if let Ok(status) = timeout(patience.end_of_input, child.wait()).await {
        return status;
    }
    forward(ProcessSignal::TERMINATE, group, recorder);
    if let Ok(status) = timeout(patience.terminate, child.wait()).await {
        return status;
    }
    let _ = group.signal(ProcessSignal::KILL);
    recorder.fact(Direction::Local, FrameBody::Signalled { signal: ProcessSignal::KILL.full_name() });
    child.wait().await
}

/// What a terminal sends goes to the whole group, as the terminal would send it; the rest to the server alone.
fn forward(received: ProcessSignal, group: &Group, recorder: &Recorder) {
    let sent = match received {
        ProcessSignal::Int | ProcessSignal::Quit | ProcessSignal::Hup => group.signal(received),
        _ => group.signal_leader(received),
    };
    if sent.is_ok() {
        recorder.fact(Direction::Local, FrameBody::Signalled { signal: received.full_name() });
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
        let count = match pipes::read_piece(&mut from, &mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(count) => count,
        };
        activity.writing.store(true, Ordering::Release);
        activity.pieces.fetch_add(1, Ordering::Release);
        recorder.bytes(stream, &buffer[..count]);
        let written = pipes::write_piece(&mut to, &buffer[..count]);
        activity.writing.store(false, Ordering::Release);
        // A client that does not read stderr must not keep the server from writing to it.
        if written.is_err() && stream != PassingStream::Stderr {
            break;
        }
    }
    recorder.end(stream);
}

fn take(watched: &Mutex<Option<File>>) -> Option<File> {
    watched.lock().unwrap_or_else(PoisonError::into_inner).take()
}
