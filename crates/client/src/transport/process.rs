//! A server's process: started in a group of its own, its output copied to the tap, its whole group ended on every way
//! out. Knows nothing of messages.

use super::line_channel::record_closed_stdin;
use super::lines::{Line, LineReader};
use crate::Tap;
use mcproof_record::{Direction, FrameBody};
use mcproof_system::{
    Descendant, Group, Guardian, ProcessSignal, Program, ResourceUsage, Spawned, commands, descendants, programs, resource_usage, signals,
};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::AsyncRead;
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// A command that starts a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Set besides what its surroundings give.
    pub env: Vec<(String, String)>,
    pub folder: Option<PathBuf>,
    pub surroundings: BaseEnvironment,
}

impl Launch {
    /// The program as this system finds it, with its arguments.
    pub fn to_command(&self) -> Command {
        let path = self.env.iter().rfind(|(name, _)| name.eq_ignore_ascii_case("PATH")).map(|(_, path)| OsStr::new(path));
        let words = commands::resolve(&self.command, path, self.folder.as_deref());
        let mut command = Command::new(words.first().map_or("", String::as_str));
        command.args(words.iter().skip(1));
        command
    }
}

/// The variables that a process has before any are set for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BaseEnvironment {
    /// Those of this process.
    #[default]
    Ours,
    /// None.
    Nothing,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// Since its start.
    pub after: Duration,
}

impl fmt::Display for Exit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(formatter, "server exited with code {code}")?,
            (None, Some(number)) => match signals::name_of(number) {
                Some(signal) => write!(formatter, "server was ended by {signal}")?,
                None => write!(formatter, "server was ended by signal {number}")?,
            },
            (None, None) => formatter.write_str("server ended")?,
        }
        write!(formatter, ", {} ms after start", self.after.as_millis())
    }
}

/// Why a process could not be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartFailure {
    #[error("the command is empty")]
    Empty,
    #[error("`{program}` was not found")]
    NotFound { program: String },
    /// A script whose first line names a program that is not there; with a carriage return behind it, the line does.
    #[error("`{program}` was found, but its interpreter `{}` was not", .interpreter.escape_debug())]
    NoInterpreter { program: String, interpreter: String },
    #[error("the working directory {} does not exist", .0.display())]
    NoFolder(PathBuf),
    #[error("`{program}` could not be started: {reason}")]
    Other {
        program: String,
        reason: String,
        /// As the system numbers it.
        number: Option<i32>,
    },
}

/// What is not there: the program, or what runs it. Of a program in the PATH, nobody knows where it would be.
fn not_found(launch: &Launch, program: &str) -> StartFailure {
    let script = program.contains('/').then(|| launch.folder.clone().unwrap_or_default().join(program));
    let program = program.to_owned();
    match script.and_then(|script| missing_interpreter(&script)) {
        Some(interpreter) => StartFailure::NoInterpreter { program, interpreter },
        None => StartFailure::NotFound { program },
    }
}

/// What the first line of a script names, if that is not there.
fn missing_interpreter(script: &Path) -> Option<String> {
    let mut head = Vec::new();
    std::fs::File::open(script).ok()?.take(256).read_to_end(&mut head).ok()?;
    let line = std::str::from_utf8(head.split(|byte| *byte == b'\n').next()?).ok()?.strip_prefix("#!")?;
    // The system takes it for a part of the name, or of the only argument.
    if line.ends_with('\r') {
        return Some(line.trim_start().to_owned());
    }
    let interpreter = line.split_ascii_whitespace().next()?;
    (!Path::new(interpreter).exists()).then(|| interpreter.to_owned())
}

/// How long a server may take to end by itself.
#[derive(Clone, Copy, Debug)]
pub struct ShutdownTimeouts {
    /// After its stdin was closed.
    pub end_of_input: Duration,
    /// After SIGTERM.
    pub terminate: Duration,
}

impl Default for ShutdownTimeouts {
    fn default() -> Self {
        Self { end_of_input: Duration::from_secs(2), terminate: Duration::from_secs(2) }
    }
}

impl ShutdownTimeouts {
    /// For when the user wants to leave now.
    pub const SHORT: Self = Self { end_of_input: Duration::from_millis(100), terminate: Duration::from_millis(400) };
}

/// How the end of a server went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShutdownReport {
    pub exit: Option<Exit>,
    /// It did not end when its stdin was closed (stdio only).
    pub ignored_end_of_input: bool,
    /// It did not end on SIGTERM either.
    pub ignored_terminate: bool,
    /// Processes of its tree that were still there shortly after it had ended. They have been killed.
    pub left_behind: Vec<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StdinUse {
    /// The protocol's channel: closing it asks the server to end.
    Protocol,
    /// Only held open, because some HTTP servers end when it is closed.
    Held,
}

/// A running server. Dropping it kills its group at once.
pub(crate) struct Process {
    group: Group,
    exit: watch::Receiver<Option<Exit>>,
    tap: Tap,
    stderr: JoinHandle<()>,
    /// True once stderr was read to its end.
    drained: watch::Receiver<bool>,
    /// What was below it when it was sent a signal: once it has ended, the system does not tell any more.
    family: Mutex<Vec<Descendant>>,
}

impl Process {
    /// `watcher` sees each line of stderr as well.
    pub(crate) async fn start(
        launch: &Launch,
        guardian: &Guardian,
        tap: &Tap,
        watcher: Option<OutputWatcher>,
    ) -> Result<(Self, ChildStdin, ChildStdout), StartFailure> {
        let program = launch.command.first().ok_or(StartFailure::Empty)?;
        let other = |error: &std::io::Error| StartFailure::Other {
            program: program.clone(),
            reason: error.to_string(),
            number: error.raw_os_error(),
        };
        if let Some(folder) = launch.folder.as_ref().filter(|folder| !folder.is_dir()) {
            return Err(StartFailure::NoFolder(folder.clone()));
        }
        let mut command = launch.to_command();
        if launch.surroundings == BaseEnvironment::Nothing {
            command.env_clear();
        }
        command.envs(launch.env.iter().cloned());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(folder) = &launch.folder {
            command.current_dir(folder);
        }
        let start = Instant::now();
        let Spawned { group, mut child, stdin } = guardian.spawn(command).await.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => not_found(launch, program),
            _ => other(&error),
        })?;
        let pid = child.id().expect("a child that was not waited for has an id");
        tap.record(Direction::Local, FrameBody::Spawned { pid, command: launch.command.clone() });
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            unreachable!("both streams were requested as pipes");
        };
        let (mark_drained, drained) = watch::channel(false);
        let stderr_tap = tap.clone();
        let stderr = tokio::spawn(async move {
            copy_output(stderr, stderr_tap, Stream::Stderr, watcher).await;
            mark_drained.send_replace(true);
        });
        let (exited, exit) = watch::channel(None);
        let reaper_tap = tap.clone();
        tokio::spawn(async move {
            let status = child.wait().await;
            let (code, signal) = status.map_or((None, None), |status| (status.code(), signals::of_exit(status)));
            reaper_tap.record(Direction::Local, FrameBody::Exited { code, signal });
            exited.send_replace(Some(Exit { code, signal, after: start.elapsed() }));
        });
        Ok((Self { group, exit, tap: tap.clone(), stderr, drained, family: Mutex::default() }, stdin, stdout))
    }

    /// Tells when the process has ended, without owning it.
    pub(crate) fn watch_exit(&self) -> watch::Receiver<Option<Exit>> {
        self.exit.clone()
    }

    pub(crate) fn exit(&self) -> Option<Exit> {
        *self.exit.borrow()
    }

    pub(crate) fn resource_usage(&self) -> Option<ResourceUsage> {
        self.exit().is_none().then(|| resource_usage(self.group())).flatten()
    }

    pub(crate) fn programs(&self) -> Vec<Program> {
        if self.exit().is_none() { programs(self.group()) } else { Vec::new() }
    }

    pub(crate) fn group(&self) -> i32 {
        self.group.id()
    }

    /// If the process is ending, waits shortly for its end and for its last words. A grandchild may hold stderr open.
    pub(crate) async fn settle(&self) {
        let mut exit = self.exit.clone();
        if timeout(DYING, exited(&mut exit)).await.is_ok() {
            let mut drained = self.drained.clone();
            let _ = timeout(DRAIN, drained.wait_for(|drained| *drained)).await;
        }
    }

    /// Asks the server to end, ends it if it does not, and reports how that went.
    pub(crate) async fn shut_down(
        mut self,
        close_stdin: impl Future<Output = ()>,
        usage: StdinUse,
        patience: ShutdownTimeouts,
    ) -> ShutdownReport {
        let mut report = ShutdownReport::default();
        let mut family = self.take_family();
        family.extend(descendants(self.group()));
        let mut exit = self.exit.clone();
        if matches!(usage, StdinUse::Held) {
            record_closed_stdin(&self.tap);
        }
        close_stdin.await;
        let mut gone = match usage {
            StdinUse::Protocol => {
                let gone = timeout(patience.end_of_input, exited(&mut exit)).await.is_ok();
                report.ignored_end_of_input = !gone;
                gone
            }
            StdinUse::Held => exit.borrow().is_some(),
        };
        if !gone {
            self.signal(ProcessSignal::TERMINATE);
            gone = timeout(patience.terminate, exited(&mut exit)).await.is_ok();
            report.ignored_terminate = !gone;
        }
        if gone {
            report.left_behind = survivors(&family).await;
        }
        let _ = self.group.signal(ProcessSignal::KILL);
        if !gone {
            let _ = timeout(KILL, exited(&mut exit)).await;
        }
        report.exit = *exit.borrow();
        let killed: Vec<i32> = family.into_iter().filter(Descendant::kill_if_alive).map(|descendant| descendant.pid()).collect();
        if !gone {
            report.left_behind = killed;
        }
        report.left_behind.extend(self.group.end());
        // One that has just been killed may be found again.
        report.left_behind.sort_unstable();
        report.left_behind.dedup();
        self.settle().await;
        report
    }

    /// To the server's whole group, as a terminal or a supervisor does it.
    pub(crate) fn signal(&self, signal: ProcessSignal) {
        self.remember_family();
        if self.group.signal(signal).is_ok() {
            self.tap.record(Direction::Local, FrameBody::Signalled { signal: signal.full_name() });
        }
    }

    /// To the server's own process, as a supervisor does it that knows no groups.
    pub(crate) fn signal_alone(&self, signal: ProcessSignal) {
        self.remember_family();
        if self.exit().is_none() && self.group.signal_leader(signal).is_ok() {
            self.tap.record(Direction::Local, FrameBody::Signalled { signal: signal.full_name() });
        }
    }

    fn remember_family(&self) {
        let now = descendants(self.group());
        self.family.lock().unwrap_or_else(PoisonError::into_inner).extend(now);
    }

    fn take_family(&self) -> Vec<Descendant> {
        std::mem::take(&mut *self.family.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.group.has_ended() {
            for descendant in self.take_family().into_iter().chain(descendants(self.group())) {
                descendant.kill_if_alive();
            }
        }
        self.stderr.abort();
    }
}

/// A server that dies closes its connections just before its exit can be seen.
const DYING: Duration = Duration::from_millis(100);
/// How long output may lag behind the end of the process that wrote it.
const DRAIN: Duration = Duration::from_millis(250);
/// How long the children of a server may take to notice that it has ended.
const GRACE: Duration = Duration::from_millis(300);
/// How long the kernel may take to end a process after SIGKILL.
const KILL: Duration = Duration::from_secs(2);
/// Longer lines of stderr are cut there: it is talk, not protocol.
const OUTPUT_LINE: usize = 64 << 10;

/// Waits for the end of a process.
pub(crate) async fn exited(exit: &mut watch::Receiver<Option<Exit>>) -> Option<Exit> {
    exit.wait_for(Option::is_some).await.ok().and_then(|exit| *exit)
}

/// Sees the lines that a process prints.
pub(crate) type OutputWatcher = Arc<dyn Fn(&[u8]) + Send + Sync>;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// Copies output that is no protocol, line by line, to the tap.
pub(crate) async fn copy_output(source: impl AsyncRead + Unpin, tap: Tap, stream: Stream, watcher: Option<OutputWatcher>) {
    let mut reader = LineReader::new(source, OUTPUT_LINE);
    loop {
        let bytes = match reader.next().await {
            Ok(Line::Whole(bytes) | Line::Unterminated(bytes) | Line::TooLong(bytes)) => bytes,
            Ok(Line::End) | Err(_) => break,
        };
        if let Some(watcher) = &watcher {
            watcher(bytes);
        }
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes).into();
        let body = match stream {
            Stream::Stdout => FrameBody::Stdout { bytes },
            Stream::Stderr => FrameBody::Stderr { bytes },
        };
        tap.record(Direction::FromServer, body);
    }
}

/// The ids of those that are still there after a grace, which nobody waits for where all have gone.
async fn survivors(family: &[Descendant]) -> Vec<i32> {
    let started = Instant::now();
    loop {
        let alive: BTreeSet<i32> = family.iter().filter(|descendant| descendant.is_alive()).map(Descendant::pid).collect();
        if alive.is_empty() || started.elapsed() > GRACE {
            return alive.into_iter().collect();
        }
        sleep(Duration::from_millis(10)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn what_is_missing_is_the_program_or_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let check = |text: Option<&str>, expected: Option<&str>| {
            let file = folder.path().join("run");
            match text {
                Some(text) => std::fs::write(&file, text).unwrap(),
                None => std::fs::remove_file(&file).unwrap(),
            }
            let launch = Launch { folder: Some(folder.path().to_owned()), ..Launch::default() };
            let program = "./run".to_owned();
            let expected = match expected {
                Some(interpreter) => StartFailure::NoInterpreter { program, interpreter: interpreter.to_owned() },
                None => StartFailure::NotFound { program },
            };
            assert_eq!(not_found(&launch, "./run"), expected, "{text:?}");
        };
        check(Some("#!/old/venv/bin/python -u\nprint()\n"), Some("/old/venv/bin/python"));
        check(Some("#!/bin/sh\r\necho\r\n"), Some("/bin/sh\r"));
        check(Some("#!/bin/sh\necho\n"), None);
        check(Some("\u{7f}ELF"), None);
        check(None, None);
    }
}
