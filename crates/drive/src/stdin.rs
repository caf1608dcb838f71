//! The input lines of the driver. Knows line feeds, not the content.

use mcproof_system::pipes::PipedInput;
use std::io::{self, BufRead as _};
use tokio::sync::mpsc;
use tokio::task::consume_budget;

/// Lines of a terminal or a file that wait for being looked at.
const MOST_WAITING: usize = 1024;
/// What a pipe holds.
const ROOM: usize = 64 << 10;

/// The lines of stdin without their line feeds, until its end. Empty ones are nothing, as on a terminal.
pub(crate) enum Lines {
    /// Of a pipe or a socket: read by the runtime itself, which then wakes no thread and is woken by none.
    Piped(Piped),
    /// Of a terminal or a file, which cannot be waited for, or not without changing how they are.
    Threaded(mpsc::Receiver<Vec<u8>>),
}

impl Lines {
    /// Needs a runtime.
    pub(crate) fn open() -> io::Result<Self> {
        Ok(match Piped::open() {
            Some(piped) => Self::Piped(piped),
            None => Self::Threaded(threaded()?),
        })
    }

    /// The next one. Cancelling this loses none.
    pub(crate) async fn next(&mut self) -> Option<Vec<u8>> {
        match self {
            Self::Piped(piped) => piped.next().await,
            Self::Threaded(lines) => lines.recv().await,
        }
    }
}

pub(crate) struct Piped {
    input: PipedInput,
    room: Box<[u8]>,
    /// What was read, and not all looked at yet.
    bytes: Vec<u8>,
    /// Where the next line begins.
    begin: usize,
    /// Up to here there is no line feed from there on.
    searched: usize,
    has_ended: bool,
}

impl Piped {
    /// None where the runtime cannot wait for stdin.
    fn open() -> Option<Self> {
        let input = PipedInput::open()?;
        let room = vec![0; ROOM].into_boxed_slice();
        Some(Self { input, room, bytes: Vec::new(), begin: 0, searched: 0, has_ended: false })
    }

    async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            // A driver that writes without a pause lets what it asked for be done all the same.
            consume_budget().await;
            match self.line() {
                Some(line) if line.is_empty() => {}
                Some(line) => return Some(line),
                None if self.has_ended => return None,
                None => self.fill().await,
            }
        }
    }

    /// The next line of what was read.
    fn line(&mut self) -> Option<Vec<u8>> {
        let found = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n');
        let end = match found {
            Some(found) => self.searched + found,
            // The last one may lack its line feed.
            None if self.has_ended && self.begin < self.bytes.len() => self.bytes.len(),
            None => {
                self.searched = self.bytes.len();
                return None;
            }
        };
        let line = self.bytes[self.begin..end].trim_ascii_end().to_vec();
        self.begin = (end + 1).min(self.bytes.len());
        self.searched = self.begin;
        Some(line)
    }

    /// Waits for more, and takes all of it.
    async fn fill(&mut self) {
        match self.input.read(&mut self.room).await {
            Some(0) => self.has_ended = true,
            Some(count) => {
                self.bytes.drain(..self.begin);
                self.searched -= self.begin;
                self.begin = 0;
                self.bytes.extend_from_slice(&self.room[..count]);
            }
            None => {}
        }
    }
}

fn threaded() -> io::Result<mpsc::Receiver<Vec<u8>>> {
    let (sender, lines) = mpsc::channel(MOST_WAITING);
    let reads = move || {
        let mut stdin = io::BufReader::with_capacity(256 << 10, io::stdin().lock());
        loop {
            let mut line = Vec::new();
            match stdin.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let end = line.trim_ascii_end().len();
            line.truncate(end);
            if !line.is_empty() && sender.blocking_send(line).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("stdin".into()).spawn(reads)?;
    Ok(lines)
}
