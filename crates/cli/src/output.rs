//! The only place that writes to stdout and stderr: data to stdout, messages to stderr.

use crate::ci_commands::broken_up;
use crate::failure::Failure;
use mcproof_system::pipes;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a write to stdout has failed because nobody reads it any more.
static ABANDONED: AtomicBool = AtomicBool::new(false);

/// Text for a person, on stdout. Colours in it are dropped where they are not wanted.
pub(crate) fn show(text: &str) -> Result<(), Failure> {
    let text = broken_up(text);
    let mut stdout = anstream::stdout().lock();
    written(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Data on stdout, byte for byte.
pub(crate) fn data(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    written(stdout.write_all(bytes).and_then(|()| stdout.flush()))
}

/// JSON on stdout, in which nothing hides or steers a terminal, whatever a server wrote.
pub(crate) fn json(text: &str) -> Result<(), Failure> {
    plain(&mcproof_report::escape_json(text))
}

/// Text for programs, or for people and programs, on stdout: without what a CI system would obey.
pub(crate) fn plain(text: &str) -> Result<(), Failure> {
    data(broken_up(text).as_bytes())
}

/// Takes from the front of data what a pipe on stdout takes without waiting for whoever reads it.
pub(crate) fn data_at_once(bytes: &mut Vec<u8>) {
    pipes::write_at_once(bytes);
}

/// Whether stdout is a pipe, or a socket used as one.
pub(crate) fn stdout_is_pipe() -> bool {
    pipes::is_pipe(&io::stdout())
}

/// Whether a write to stdout has shown that nobody reads it any more.
pub(crate) fn is_abandoned() -> bool {
    ABANDONED.load(Ordering::Relaxed)
}

/// Looks whether anybody reads stdout, for a loop over many items of which few may be printed.
#[derive(Default)]
pub(crate) struct ReaderWatch {
    items: u32,
}

impl ReaderWatch {
    /// Items between two looks at the pipe, each of which is a call of the system.
    const LOOK_AFTER: u32 = 512;

    /// Called for each item: whether the loop works for nobody.
    pub(crate) fn has_gone(&mut self) -> bool {
        self.items = self.items.wrapping_add(1);
        is_abandoned() || (self.items.is_multiple_of(Self::LOOK_AFTER) && pipes::stdout_is_abandoned())
    }
}

/// Prints a message to stderr. Does nothing if stderr is closed.
pub(crate) fn talk(text: &str) {
    let text = broken_up(text);
    let mut stderr = anstream::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Whether escape sequences reach stdout.
pub(crate) fn colors_are_on() -> bool {
    anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never
}

pub(crate) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

pub(crate) fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Whether a line on stderr can be written over.
pub(crate) fn stderr_takes_cursor() -> bool {
    stderr_is_terminal() && anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never
}

/// A reader that has seen enough, such as `head`, is no failure.
pub(crate) fn written(outcome: io::Result<()>) -> Result<(), Failure> {
    match outcome {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::bad_input("cannot-write", format!("cannot write to stdout: {error}")))
        }
        Err(_) => {
            ABANDONED.store(true, Ordering::Relaxed);
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}
