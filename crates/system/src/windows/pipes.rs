//! Streams of this process and of its children. They are read and written by threads: the pipes of the standard streams cannot be waited
//! for.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::windows::io::{AsHandle, AsRawHandle as _, IntoRawHandle as _, OwnedHandle, RawHandle};
use std::time::Duration;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use windows_sys::Wdk::Storage::FileSystem::{FILE_PIPE_LOCAL_INFORMATION, FilePipeLocalInformation, NtQueryInformationFile};
use windows_sys::Win32::Storage::FileSystem::{FILE_TYPE_PIPE, GetFileType};
use windows_sys::Win32::System::Console::{STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, SetStdHandle};
use windows_sys::Win32::System::IO::IO_STATUS_BLOCK;
use windows_sys::Win32::System::Pipes::PeekNamedPipe;

/// The pipes that whoever started this process gave it.
pub struct HostPipes {
    pub input: File,
    pub output: File,
    pub errors: File,
}

/// Takes stdin and stdout out of the process: what anything of ours printed from here on reaches nobody.
///
/// # Errors
/// The streams are closed, or no handle is left.
pub fn take_host_pipes() -> io::Result<HostPipes> {
    let input = io::stdin().as_handle().try_clone_to_owned()?.into();
    let output = io::stdout().as_handle().try_clone_to_owned()?.into();
    let errors = io::stderr().as_handle().try_clone_to_owned()?.into();
    for stream in [STD_INPUT_HANDLE, STD_OUTPUT_HANDLE] {
        let nothing = OpenOptions::new().read(true).write(true).open("NUL")?;
        // It stays open as long as the process, whose stream it is.
        // SAFETY: the handle is open, and given away.
        if unsafe { SetStdHandle(stream, nothing.into_raw_handle()) } == 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(HostPipes { input, output, errors })
}

/// For blocking reads and writes.
///
/// # Errors
/// The stream is closed.
pub fn input_of(stdin: ChildStdin) -> io::Result<File> {
    Ok(File::from(stdin.into_owned_handle()?))
}

/// For blocking reads.
///
/// # Errors
/// The stream is closed.
pub fn output_of(stdout: ChildStdout) -> io::Result<File> {
    Ok(File::from(stdout.into_owned_handle()?))
}

/// For blocking reads.
///
/// # Errors
/// The stream is closed.
pub fn errors_of(stderr: ChildStderr) -> io::Result<File> {
    Ok(File::from(stderr.into_owned_handle()?))
}

/// For blocking reads.
pub fn file_of_reader(end: PipeReader) -> File {
    File::from(OwnedHandle::from(end))
}

/// For blocking writes.
pub fn file_of_writer(end: PipeWriter) -> File {
    File::from(OwnedHandle::from(end))
}

/// Tells whether all was read that was written to a process, which no end of a pipe does here.
pub enum PipeGauge {}

impl PipeGauge {
    /// None: nothing tells it.
    pub fn of(_stdin: &ChildStdin) -> Option<Self> {
        None
    }

    /// Whether something that was written waits for its reader.
    pub fn has_unread(&self) -> bool {
        match *self {}
    }
}

/// The end of a pipe from which tasks read, as from that of a child.
pub type AsyncInput = ChildStdout;
/// The end of a pipe to which tasks write, as to that of a child.
pub type AsyncOutput = ChildStdin;

/// Ends of two pipes, for tasks.
///
/// # Errors
/// No thread of the runtime is left.
pub fn async_pipes(input: PipeReader, output: PipeWriter) -> io::Result<(AsyncInput, AsyncOutput)> {
    let (input, output) = (OwnedHandle::from(input), OwnedHandle::from(output));
    Ok((ChildStdout::from_std(input.into())?, ChildStdin::from_std(output.into())?))
}

/// Reads a piece. That nobody writes any more is the end.
///
/// # Errors
/// As those of `read`.
pub fn read_piece(from: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    match from.read(buffer) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(0),
        outcome => outcome,
    }
}

/// Writes all of a piece, and waits for its reader.
///
/// # Errors
/// As those of `write`.
pub fn write_piece(to: &mut File, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes)
}

/// How often to look whether anybody reads.
const LOOK: Duration = Duration::from_millis(250);
/// The other end is closed.
const CLOSING: u32 = 4;

/// Waits until nobody reads `output` any more, or the other end of `ended` is closed. Whether it was the former.
pub fn is_abandoned(output: &File, ended: &PipeReader) -> bool {
    loop {
        // SAFETY: the handle is open; nothing is asked for but whether the call works.
        let open = unsafe {
            let nothing = std::ptr::null_mut();
            PeekNamedPipe(ended.as_raw_handle(), std::ptr::null_mut(), 0, nothing, nothing, nothing)
        };
        if open == 0 {
            return false;
        }
        match state_of(output.as_raw_handle()) {
            // No pipe: nobody can tell.
            None => return false,
            Some(CLOSING) => return true,
            Some(_) => std::thread::sleep(LOOK),
        }
    }
}

/// The state of a pipe, as the system numbers it; `None` where it is none.
fn state_of(pipe: RawHandle) -> Option<u32> {
    let (mut status, mut about) = (IO_STATUS_BLOCK::default(), FILE_PIPE_LOCAL_INFORMATION::default());
    let size = u32::try_from(size_of_val(&about)).expect("it is small");
    // SAFETY: both structures outlive the call, which does not wait.
    let outcome = unsafe { NtQueryInformationFile(pipe, &raw mut status, (&raw mut about).cast(), size, FilePipeLocalInformation) };
    (outcome >= 0).then_some(about.NamedPipeState)
}

/// Whether stdout is a pipe that nobody reads any more.
pub fn stdout_is_abandoned() -> bool {
    state_of(io::stdout().as_raw_handle()) == Some(CLOSING)
}

/// Never: a console that is closed ends its programs.
pub fn stdin_is_gone() -> bool {
    false
}

/// Takes nothing: whether a pipe takes more without waiting is not known here, so that all is written by whoever waits for its reader.
pub fn write_at_once(_bytes: &mut Vec<u8>) {}

/// Whether a stream of this process is a pipe.
pub fn is_pipe(stream: &impl AsHandle) -> bool {
    // SAFETY: the handle is open as long as its owner is borrowed.
    unsafe { GetFileType(stream.as_handle().as_raw_handle()) == FILE_TYPE_PIPE }
}

/// Our stdin, where the runtime can wait for it by itself: never on Windows.
pub enum PipedInput {}

impl PipedInput {
    pub fn open() -> Option<Self> {
        None
    }

    /// Waits for more, and takes as much of it as there is room; nothing at its end.
    pub async fn read(&mut self, _room: &mut [u8]) -> Option<usize> {
        match *self {}
    }
}
