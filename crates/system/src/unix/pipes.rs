//! Streams of this process and of its children.

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{dup2_stdin, dup2_stdout};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

/// The pipes that whoever started this process gave it.
pub struct HostPipes {
    pub input: File,
    pub output: File,
    pub errors: File,
}

/// Takes stdin and stdout out of the process: what anything of ours printed from here on reaches nobody.
///
/// # Errors
/// The descriptors are closed, or none is left.
pub fn take_host_pipes() -> io::Result<HostPipes> {
    let input = io::stdin().as_fd().try_clone_to_owned()?.into();
    let output = io::stdout().as_fd().try_clone_to_owned()?.into();
    let errors = io::stderr().as_fd().try_clone_to_owned()?.into();
    let nothing = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&nothing)?;
    dup2_stdout(&nothing)?;
    Ok(HostPipes { input, output, errors })
}

/// For blocking reads and writes.
///
/// # Errors
/// The stream is closed.
pub fn input_of(stdin: ChildStdin) -> io::Result<File> {
    blocking(stdin.into_owned_fd()?)
}

/// For blocking reads.
///
/// # Errors
/// The stream is closed.
pub fn output_of(stdout: ChildStdout) -> io::Result<File> {
    blocking(stdout.into_owned_fd()?)
}

/// For blocking reads.
///
/// # Errors
/// The stream is closed.
pub fn errors_of(stderr: ChildStderr) -> io::Result<File> {
    blocking(stderr.into_owned_fd()?)
}

/// Our own end of a pipe, which tokio has made non-blocking.
fn blocking(descriptor: OwnedFd) -> io::Result<File> {
    let flags = OFlag::from_bits_truncate(fcntl(&descriptor, FcntlArg::F_GETFL)?);
    fcntl(&descriptor, FcntlArg::F_SETFL(flags & !OFlag::O_NONBLOCK))?;
    Ok(File::from(descriptor))
}

/// For blocking reads.
pub fn file_of_reader(end: PipeReader) -> File {
    File::from(OwnedFd::from(end))
}

/// For blocking writes.
pub fn file_of_writer(end: PipeWriter) -> File {
    File::from(OwnedFd::from(end))
}

/// Tells whether all was read that was written to a process. Keeps its stdin open.
pub struct PipeGauge(OwnedFd);

impl PipeGauge {
    /// None where the system does not tell it at this end of a pipe.
    pub fn of(stdin: &ChildStdin) -> Option<Self> {
        if cfg!(target_os = "linux") { stdin.as_fd().try_clone_to_owned().ok().map(Self) } else { None }
    }

    /// Whether something that was written waits for its reader.
    pub fn has_unread(&self) -> bool {
        let mut unread: libc::c_int = 0;
        // SAFETY: the descriptor is open, and the call writes one integer.
        let told = unsafe { libc::ioctl(self.0.as_raw_fd(), libc::FIONREAD, &raw mut unread) };
        told == 0 && unread > 0
    }
}

/// The end of a pipe from which tasks read.
pub type AsyncInput = pipe::Receiver;
/// The end of a pipe to which tasks write.
pub type AsyncOutput = pipe::Sender;

/// Ends of two pipes, for tasks.
///
/// # Errors
/// The system refuses to make them non-blocking.
pub fn async_pipes(input: PipeReader, output: PipeWriter) -> io::Result<(AsyncInput, AsyncOutput)> {
    Ok((pipe::Receiver::from_owned_fd(input.into())?, pipe::Sender::from_owned_fd(output.into())?))
}

/// Reads a piece, and waits for one even if whoever made the pipe has made it non-blocking.
///
/// # Errors
/// As those of `read`.
pub fn read_piece(from: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait_for(from.as_fd(), PollFlags::POLLIN)?,
            outcome => return outcome,
        }
    }
}

/// Writes all of a piece, and waits for its reader even if whoever made the pipe has made it non-blocking.
///
/// # Errors
/// As those of `write`.
pub fn write_piece(to: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait_for(to.as_fd(), PollFlags::POLLOUT)?,
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

/// Waits until nobody reads `output` any more, or the other end of `ended` is closed. Whether it was the former.
pub fn is_abandoned(output: &File, ended: &PipeReader) -> bool {
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

/// Whether stdout is a pipe that nobody reads any more.
pub fn stdout_is_abandoned() -> bool {
    let stdout = io::stdout();
    // Only the other end is asked about, which some systems answer wrongly for what is no pipe.
    is_pipe(&stdout) && is_ready(stdout.as_fd(), PollFlags::empty())
}

/// Whether the terminal on stdin, or the other end of what else is there, is gone: who waits for keys then waits for ever.
pub fn stdin_is_gone() -> bool {
    let stdin = io::stdin();
    let mut watched = [PollFd::new(stdin.as_fd(), PollFlags::empty())];
    let gone = PollFlags::POLLHUP | PollFlags::POLLERR;
    poll(&mut watched, PollTimeout::ZERO).is_ok() && watched[0].revents().is_some_and(|events| events.intersects(gone))
}

/// Takes from the front of data what a pipe on stdout takes without waiting for whoever reads it.
pub fn write_at_once(bytes: &mut Vec<u8>) {
    let stdout = io::stdout();
    let mut begin = 0;
    while begin < bytes.len() && is_ready(stdout.as_fd(), PollFlags::POLLOUT) {
        let end = bytes.len().min(begin + SURE);
        match nix::unistd::write(&stdout, &bytes[begin..end]) {
            Ok(count) => begin += count,
            Err(Errno::EINTR) => {}
            // The waiting caller receives the error.
            Err(_) => break,
        }
    }
    bytes.drain(..begin);
}

/// What a pipe that takes anything takes as a whole.
const SURE: usize = libc::PIPE_BUF;

fn is_ready(descriptor: BorrowedFd<'_>, flags: PollFlags) -> bool {
    poll(&mut [PollFd::new(descriptor, flags)], PollTimeout::ZERO).is_ok_and(|count| count == 1)
}

/// Whether a stream of this process is a pipe, or a socket used as one.
pub fn is_pipe(stream: &impl AsFd) -> bool {
    let kind = stream.as_fd().try_clone_to_owned().and_then(|stream| File::from(stream).metadata()).map(|about| about.file_type());
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket())
}

/// Our stdin, where it is a pipe that the runtime can wait for by itself: no thread is woken for it.
pub struct PipedInput {
    /// Left blocking: others may share it.
    file: AsyncFd<File>,
}

impl PipedInput {
    /// None where stdin is neither a pipe nor a socket. Needs a runtime.
    pub fn open() -> Option<Self> {
        if !is_pipe(&io::stdin()) {
            return None;
        }
        let file = File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
        // SAFETY: a file is open as long as it lives, has the same descriptor all the time, and this one is never replaced.
        let file = unsafe { AsyncFd::register_with_interest(file, Interest::READABLE) }.ok()?;
        Some(Self { file })
    }

    /// Waits for more, and takes as much of it as there is room; nothing at its end. `None` where there is nothing yet, because somebody
    /// else was faster. Cancelling this loses nothing.
    pub async fn read(&mut self, room: &mut [u8]) -> Option<usize> {
        let Ok(mut ready) = self.file.readable().await else { return Some(0) };
        let mut file = ready.get_inner();
        // Whoever shares it may have been faster.
        if !is_ready(file.as_fd(), PollFlags::POLLIN) {
            ready.clear_ready();
            return None;
        }
        match file.read(room) {
            Ok(count) => {
                if count > 0 && count < room.len() {
                    ready.clear_ready();
                }
                Some(count)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => None,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                ready.clear_ready();
                None
            }
            Err(_) => Some(0),
        }
    }
}
