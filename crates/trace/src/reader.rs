//! Reads traces line by line, in constant memory: the zip, also one that was never finished; plain lines, also from a pipe; and what
//! earlier versions wrote. Knows no messages.

mod container;
mod lines;
mod older;

use crate::line::TraceLine;
use crate::manifest::{Manifest, SessionKey, TRACE_FORMAT};
use container::Container;
pub(crate) use lines::LONGEST_LINE;
use lines::Lines;
pub use older::transport_of;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Cursor, Read, Seek as _, SeekFrom};
use std::path::Path;

/// A trace that is being read: its lines after the first, in order.
pub struct Trace {
    manifest: Manifest,
    source: Source,
    ending: Ending,
    /// A line that was read before it was asked for.
    ahead: Option<TraceLine>,
    /// Lines that were read.
    count: u64,
    /// What may be read, where there is a bound.
    room: Option<TraceRoom>,
    /// Those that were told of, or have frames.
    sessions: BTreeSet<SessionKey>,
}

/// Sessions of a trace: of each, something is kept until its end.
pub(crate) const MOST_SESSIONS: usize = 5_000;

/// How much of a trace is read by whoever keeps all of it in memory: a small file can unpack to far more than its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRoom {
    /// A line of a few bytes takes more room than its text.
    pub lines: u64,
    /// Of all lines and attachments, after they were unpacked.
    pub bytes: u64,
}

impl Default for TraceRoom {
    fn default() -> Self {
        Self { lines: 100_000, bytes: 128 << 20 }
    }
}

/// How a trace ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Not read to its end yet.
    Unread,
    /// Written to its end.
    Complete,
    /// Cut off: whoever wrote it was killed, or a copy is not complete.
    CutOff,
}

#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("not a trace: {0}")]
    NotATrace(String),
    #[error("written by a newer mcproof: format {found}, and this version reads formats up to {TRACE_FORMAT}")]
    TooNew { found: u64 },
    #[error("damaged: {0}")]
    Damaged(String),
    #[error("it unpacks to more than {most} {unit}, the most that is read into memory")]
    TooLarge { most: u64, unit: &'static str },
}

enum Source {
    Lines(Box<Lines>),
    Container(Box<Container>),
    Older(std::vec::IntoIter<TraceLine>),
}

const ZIP: &[u8] = b"PK\x03\x04";
/// Whether a file begins as a zip does, which no JSON document is.
pub fn is_zip(path: &Path) -> bool {
    let mut start = [0; 2];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && ZIP.starts_with(&start)
}

const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

impl Trace {
    /// Opens a file.
    ///
    /// # Errors
    /// If it cannot be read, or is no trace.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let mut file = File::open(path)?;
        let mut start = [0; 4];
        let count = read_start(&mut file, &mut start)?;
        if !file.metadata()?.is_file() {
            return Self::from_reader(Box::new(Cursor::new(start[..count].to_vec()).chain(file)));
        }
        file.seek(SeekFrom::Start(0))?;
        if start[..count] == *ZIP { Self::from_zip(file) } else { Self::from_text(Box::new(file)) }
    }

    /// Reads a pipe. A zip is copied to a temporary file first, because its directory comes last.
    ///
    /// # Errors
    /// If it cannot be read, or is no trace.
    pub fn from_reader(mut reader: Box<dyn Read + Send>) -> Result<Self, TraceError> {
        let mut start = [0; 4];
        let count = read_start(&mut reader, &mut start)?;
        let mut whole = Cursor::new(start[..count].to_vec()).chain(reader);
        if start[..count] != *ZIP {
            return Self::from_text(Box::new(whole));
        }
        let mut file = tempfile::tempfile()?;
        io::copy(&mut whole, &mut file)?;
        file.seek(SeekFrom::Start(0))?;
        Self::from_zip(file)
    }

    /// For whoever keeps what is read: more than this is [`TraceError::TooLarge`].
    #[must_use]
    pub fn within(mut self, room: TraceRoom) -> Self {
        self.room = Some(room);
        self
    }

    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// How it ends, once it was read to its end.
    pub fn ending(&self) -> Ending {
        self.ending
    }

    fn from_zip(file: File) -> Result<Self, TraceError> {
        let container = Container::open(file)?;
        let complete = container.manifest();
        let mut trace = Self::started(Source::Container(Box::new(container)))?;
        if let Some(complete) = complete {
            too_many_sessions(complete.sessions.len())?;
            trace.manifest.sessions = complete.sessions;
            trace.manifest.end = complete.end;
        }
        Ok(trace)
    }

    fn from_text(reader: Box<dyn Read + Send>) -> Result<Self, TraceError> {
        let mut reader = BufReader::new(reader);
        let start = reader.fill_buf()?;
        let reader: Box<dyn Read + Send> = if start.starts_with(ZSTD) {
            Box::new(zstd::stream::read::Decoder::with_buffer(reader)?)
        } else if start.is_empty() {
            return Err(TraceError::NotATrace("it is empty".into()));
        } else {
            Box::new(reader)
        };
        let mut lines = Lines::new(reader);
        let Some(first) = lines.next_text()? else { return Err(TraceError::NotATrace("it has no complete line".into())) };
        match older::kind_of(&first) {
            None => Self::started(Source::Lines(Box::new(lines.with_first(first)))),
            Some(kind) => {
                let (manifest, lines) = older::read(kind, &first, lines)?;
                Ok(Self {
                    manifest,
                    source: Source::Older(lines.into_iter()),
                    ending: Ending::Unread,
                    ahead: None,
                    count: 0,
                    room: None,
                    sessions: BTreeSet::new(),
                })
            }
        }
    }

    fn started(source: Source) -> Result<Self, TraceError> {
        let mut trace = Self {
            manifest: Manifest::default(),
            source,
            ending: Ending::Unread,
            ahead: None,
            count: 0,
            room: None,
            sessions: BTreeSet::new(),
        };
        match trace.advance()? {
            Some(TraceLine::Trace(manifest)) if manifest.format <= TRACE_FORMAT => trace.manifest = manifest,
            Some(TraceLine::Trace(manifest)) => return Err(TraceError::TooNew { found: u64::from(manifest.format) }),
            // A fragment, such as the output of `grep` on plain lines.
            Some(line) => trace.ahead = Some(line),
            None => return Err(TraceError::NotATrace("it has no complete line".into())),
        }
        Ok(trace)
    }

    fn advance(&mut self) -> Result<Option<TraceLine>, TraceError> {
        let line = match &mut self.source {
            Source::Lines(lines) => lines.next_line()?,
            Source::Container(container) => container.next_line()?,
            Source::Older(lines) => {
                let line = lines.next();
                if line.is_none() {
                    self.ending = Ending::Complete;
                }
                return Ok(line);
            }
        };
        self.check_room()?;
        self.check_sessions(line.as_ref())?;
        match (&line, self.ending) {
            (Some(TraceLine::End(_)), _) => self.ending = Ending::Complete,
            (None, Ending::Unread) => self.ending = Ending::CutOff,
            _ => {}
        }
        Ok(line)
    }

    fn check_sessions(&mut self, line: Option<&TraceLine>) -> Result<(), TraceError> {
        match line {
            Some(TraceLine::Session(session)) => self.sessions.insert(session.key),
            Some(TraceLine::Frame(frame)) => self.sessions.insert(frame.session),
            _ => return Ok(()),
        };
        too_many_sessions(self.sessions.len())
    }

    /// After a line was read.
    fn check_room(&mut self) -> Result<(), TraceError> {
        let unpacked = match &self.source {
            Source::Lines(lines) => lines.unpacked(),
            Source::Container(container) => container.unpacked(),
            // It was read as a whole, within a bound of its own.
            Source::Older(_) => return Ok(()),
        };
        self.count += 1;
        let Some(TraceRoom { lines, bytes }) = self.room else { return Ok(()) };
        if self.count > lines {
            return Err(TraceError::TooLarge { most: lines, unit: "lines" });
        }
        if unpacked > bytes {
            return Err(TraceError::TooLarge { most: bytes, unit: "bytes" });
        }
        Ok(())
    }
}

impl Iterator for Trace {
    type Item = Result<TraceLine, TraceError>;

    /// After an error there is nothing more.
    fn next(&mut self) -> Option<Self::Item> {
        if let Some(line) = self.ahead.take() {
            return Some(Ok(line));
        }
        let next = self.advance().transpose();
        if matches!(next, Some(Err(_))) {
            self.source = Source::Older(Vec::new().into_iter());
        }
        next
    }
}

fn too_many_sessions(count: usize) -> Result<(), TraceError> {
    if count > MOST_SESSIONS { Err(TraceError::TooLarge { most: MOST_SESSIONS as u64, unit: "sessions" }) } else { Ok(()) }
}

fn read_start(reader: &mut impl Read, start: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    while count < start.len() {
        match reader.read(&mut start[count..]) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}
