//! Writes a trace while it happens: each frame is in the file when [`TraceWriter::frame`] returns, so that whatever kills the process, the
//! file opens. Entries of the zip are stored, not deflated, because their content is compressed; so `unzip` reads all of them.

use crate::line::{End, Mark, Omitted, TraceLine, TracedFrame};
use crate::manifest::{Manifest, SessionInfo, SessionKey, TRACE_FORMAT};
use crate::reader::LONGEST_LINE;
use mcproof_record::Frame;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tempfile::NamedTempFile;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};
use zstd::stream::write::Encoder;

/// What a trace may take.
#[derive(Clone, Copy, Debug)]
pub struct TraceLimits {
    /// Bytes of the file. Frames that come later are counted, not stored.
    pub bytes: u64,
    /// The same for their number.
    pub frames: u64,
}

impl Default for TraceLimits {
    fn default() -> Self {
        Self { bytes: 1 << 30, frames: u64::MAX }
    }
}

/// The most that a zip without its extension for large files holds, with room for its directory.
const MOST_BYTES: u64 = (u32::MAX - (64 << 20)) as u64;

/// Lines of an entry, before they are compressed: so much is read to reach the next one.
const ENTRY_BYTES: u64 = 16 << 20;

/// Fast; frames of one session are much alike, so that more effort gains little.
const LEVEL: i32 = 3;

/// Writes a trace. Clones write to the same one.
#[derive(Clone)]
pub struct TraceWriter {
    shared: Arc<Mutex<Writing>>,
}

struct Writing {
    manifest: Manifest,
    limits: TraceLimits,
    file: TraceFile,
    sessions: Vec<SessionInfo>,
    /// Frames that were left out, by session.
    omitted: Vec<u64>,
    frames: u64,
    entries: u32,
    /// Lines in the open entry.
    entry_bytes: u64,
    attachments: Vec<String>,
    /// The first error; nothing is written after it.
    failed: Option<io::Error>,
}

/// A zip in which one entry may be open.
enum TraceFile {
    Between(ZipWriter<Counted>),
    Open(Encoder<'static, ZipWriter<Counted>>),
    Finished,
}

impl TraceWriter {
    /// Creates the file, or empties it.
    ///
    /// # Errors
    /// If it cannot be created or written.
    pub fn create(path: &Path, manifest: Manifest) -> io::Result<Self> {
        Self::with_limits(path, manifest, TraceLimits::default())
    }

    /// Like [`TraceWriter::create`], with limits other than the defaults.
    ///
    /// # Errors
    /// If the file cannot be created or written.
    pub fn with_limits(path: &Path, manifest: Manifest, limits: TraceLimits) -> io::Result<Self> {
        Self::onto(File::create(path)?, manifest, limits)
    }

    /// Writes to a file that is empty.
    ///
    /// # Errors
    /// If it cannot be written, or only from its start to its end, as a pipe.
    pub fn onto(mut file: File, manifest: Manifest, limits: TraceLimits) -> io::Result<Self> {
        if file.stream_position().is_err() {
            return Err(io::Error::new(io::ErrorKind::NotSeekable, "a trace is a file, not a pipe or a terminal"));
        }
        Self::begin(Sink::File(file), manifest, limits)
    }

    fn begin(sink: Sink, manifest: Manifest, limits: TraceLimits) -> io::Result<Self> {
        let manifest = Manifest { format: TRACE_FORMAT, sessions: Vec::new(), end: None, ..manifest };
        let mut writing = Writing {
            limits: TraceLimits { bytes: limits.bytes.min(MOST_BYTES), ..limits },
            file: TraceFile::Between(ZipWriter::new(Counted { sink, is_broken: false, length: 0, place: 0 })),
            sessions: Vec::new(),
            omitted: Vec::new(),
            frames: 0,
            entries: 0,
            entry_bytes: 0,
            attachments: Vec::new(),
            failed: None,
            manifest,
        };
        writing.line(&TraceLine::Trace(writing.manifest.clone()))?;
        Ok(Self { shared: Arc::new(Mutex::new(writing)) })
    }

    /// A new session. Its key in `session` is ignored.
    pub fn begin_session(&self, session: SessionInfo) -> SessionKey {
        let mut writing = self.writing();
        let key = SessionKey(u32::try_from(writing.sessions.len() + 1).unwrap_or(u32::MAX));
        let session = SessionInfo { key, ..session };
        writing.sessions.push(session.clone());
        writing.omitted.push(0);
        writing.record(&TraceLine::Session(session));
        key
    }

    /// What is known of a session by now, such as its revision. Unknown keys are ignored.
    pub fn describe_session(&self, session: SessionInfo) {
        let mut writing = self.writing();
        if let Some(known) = writing.sessions.iter_mut().find(|known| known.key == session.key)
            && *known != session
        {
            known.clone_from(&session);
            writing.record(&TraceLine::Session(session));
        }
    }

    /// Adds a frame. It has to be redacted. Errors are kept for [`TraceWriter::finish`].
    pub fn frame(&self, session: SessionKey, frame: &Frame) {
        let mut writing = self.writing();
        if writing.is_full() {
            writing.omit(session);
            return;
        }
        if writing.record(&TraceLine::Frame(TracedFrame::new(session, frame.clone()))) {
            writing.frames += 1;
        }
    }

    /// Frames that were seen and never reached the writer.
    pub fn omit(&self, session: SessionKey, frames: u64, reason: &str) {
        if frames > 0 {
            self.writing().record(&TraceLine::Omitted(Omitted { session, frames, reason: reason.to_owned() }));
        }
    }

    pub fn mark(&self, mark: Mark) {
        let mut writing = self.writing();
        if !writing.is_full() {
            writing.record(&TraceLine::Mark(mark));
        }
    }

    /// Adds a file, under a relative path. It has to be redacted. Of two with the same name the first is kept.
    pub fn attach(&self, name: &str, bytes: &[u8]) {
        let mut writing = self.writing();
        let name = safe_name(name);
        if !writing.is_full() && !writing.attachments.contains(&name) {
            let outcome = writing.entry(&format!("attachments/{name}"), bytes);
            writing.attachments.push(name);
            writing.keep_error(outcome);
        }
    }

    /// Writes the totals and the directory of the zip.
    ///
    /// # Errors
    /// The first error since the file was created.
    pub fn finish(self) -> io::Result<End> {
        self.writing().finish()
    }

    fn writing(&self) -> MutexGuard<'_, Writing> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A whole trace as bytes, for a download: what is to be written is in memory as well.
///
/// # Errors
/// It takes more bytes than a trace may.
pub fn trace_in_memory(manifest: Manifest, write: impl FnOnce(&TraceWriter)) -> io::Result<Vec<u8>> {
    let bytes = Arc::<Mutex<Cursor<Vec<u8>>>>::default();
    let writer = TraceWriter::begin(Sink::Memory(Arc::clone(&bytes)), manifest, TraceLimits::default())?;
    write(&writer);
    writer.finish()?;
    let written = std::mem::take(&mut *bytes.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(written.into_inner())
}

/// Adds files to a trace that is finished, under relative paths. They have to be redacted.
///
/// # Errors
/// The file cannot be read or written; one of the names is taken (`AlreadyExists`), in which case nothing is added; or it is no zip with a
/// directory (`InvalidData`).
pub fn attach_to(path: &Path, files: &[(String, Vec<u8>)]) -> io::Result<()> {
    let path = path.canonicalize()?;
    let mut file = File::open(&path)?;
    let invalid = |error: zip::result::ZipError| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
    let archive = ZipArchive::new(BufReader::new(file.try_clone()?)).map_err(invalid)?;
    let names: Vec<String> = files.iter().map(|(name, _)| format!("attachments/{}", safe_name(name))).collect();
    let is_twice = |(place, name): (usize, &String)| archive.index_for_name(name).is_some() || names[..place].contains(name);
    if let Some(taken) = names.iter().enumerate().find_map(|(place, name)| is_twice((place, name)).then_some(name)) {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("the trace has {taken} already")));
    }
    let added: u64 = files.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    if file.metadata()?.len().saturating_add(added) > MOST_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("a trace takes at most {MOST_BYTES} bytes")));
    }
    drop(archive);
    // A copy takes the place of the trace when it is whole: a full disk leaves the trace as it is.
    let mut copy = NamedTempFile::new_in(path.parent().unwrap_or(&path))?;
    file.seek(SeekFrom::Start(0))?;
    io::copy(&mut file, copy.as_file_mut())?;
    let mut zip = ZipWriter::new_append(copy.as_file_mut()).map_err(invalid)?;
    for (name, (_, bytes)) in names.iter().zip(files) {
        zip.start_file(name.as_str(), stored())?;
        zip.write_all(bytes)?;
    }
    zip.finish()?.sync_all()?;
    copy.as_file().set_permissions(file.metadata()?.permissions())?;
    copy.persist(&path).map_err(|error| error.error)?;
    Ok(())
}

impl Writing {
    fn is_full(&self) -> bool {
        self.frames >= self.limits.frames || self.file.length() >= self.limits.bytes
    }

    /// Which limit was reached.
    fn limit(&self) -> String {
        match self.frames >= self.limits.frames {
            true => format!("limit of {} frames reached", self.limits.frames),
            false => format!("limit of {} bytes reached", self.limits.bytes),
        }
    }

    fn omit(&mut self, session: SessionKey) {
        let Some(count) = (session.0 as usize).checked_sub(1).and_then(|index| self.omitted.get_mut(index)) else { return };
        *count += 1;
        if *count == 1 {
            let reason = format!("{}: frames from here on are counted, not stored", self.limit());
            self.record(&TraceLine::Omitted(Omitted { session, frames: 0, reason }));
        }
    }

    /// Whether the line was written.
    fn record(&mut self, line: &TraceLine) -> bool {
        if self.failed.is_some() {
            return false;
        }
        let outcome = self.line(line);
        self.keep_error(outcome)
    }

    fn keep_error(&mut self, outcome: io::Result<()>) -> bool {
        match outcome {
            Ok(()) => true,
            Err(error) => {
                self.failed.get_or_insert(error);
                false
            }
        }
    }

    fn line(&mut self, line: &TraceLine) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        if text.len() as u64 >= LONGEST_LINE
            && let TraceLine::Frame(frame) = line
        {
            let reason = "a frame is too large for a trace".to_owned();
            text = serde_json::to_vec(&TraceLine::Omitted(Omitted { session: frame.session, frames: 1, reason }))?;
        }
        text.push(b'\n');
        if self.entry_bytes > ENTRY_BYTES {
            self.file.close()?;
        }
        if !self.file.is_open() {
            self.entries += 1;
            self.entry_bytes = 0;
            self.file.open(&format!("frames/{:05}.jsonl.zst", self.entries))?;
        }
        self.entry_bytes += text.len() as u64;
        self.file.write(&text)
    }

    fn entry(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.file.close()?;
        self.file.whole(name, bytes)
    }

    fn finish(&mut self) -> io::Result<End> {
        let reason = self.limit();
        for (index, count) in std::mem::take(&mut self.omitted).into_iter().enumerate().filter(|(_, count)| *count > 0) {
            let session = self.sessions[index].key;
            self.record(&TraceLine::Omitted(Omitted { session, frames: count, reason: reason.clone() }));
            self.manifest.end.get_or_insert_default().omitted += count;
        }
        let sessions = u32::try_from(self.sessions.len()).unwrap_or(u32::MAX);
        let omitted = self.manifest.end.map_or(0, |end| end.omitted);
        let end = End { sessions, frames: self.frames, omitted };
        self.record(&TraceLine::End(end));
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let manifest = Manifest { sessions: std::mem::take(&mut self.sessions), end: Some(end), ..self.manifest.clone() };
        let mut text = serde_json::to_vec_pretty(&manifest)?;
        text.push(b'\n');
        self.entry("manifest.json", &text)?;
        self.file.finish()?;
        Ok(end)
    }
}

impl TraceFile {
    fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    fn length(&self) -> u64 {
        match self {
            Self::Between(zip) => zip.get_ref().map_or(0, |counted| counted.length),
            Self::Open(encoder) => encoder.get_ref().get_ref().map_or(0, |counted| counted.length),
            Self::Finished => 0,
        }
    }

    fn open(&mut self, name: &str) -> io::Result<()> {
        if let Self::Between(mut zip) = std::mem::replace(self, Self::Finished) {
            zip.start_file(name, stored())?;
            *self = Self::Open(Encoder::new(zip, LEVEL)?);
        }
        Ok(())
    }

    /// The line is in the file afterwards, as far as the operating system is concerned.
    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        match self {
            Self::Open(encoder) => encoder.write_all(line).and_then(|()| encoder.flush()),
            Self::Between(_) | Self::Finished => Err(finished()),
        }
    }

    fn close(&mut self) -> io::Result<()> {
        *self = match std::mem::replace(self, Self::Finished) {
            Self::Open(encoder) => Self::Between(encoder.finish()?),
            other => other,
        };
        Ok(())
    }

    fn whole(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let Self::Between(zip) = self else { return Err(finished()) };
        zip.start_file(name, stored())?;
        zip.write_all(bytes)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.close()?;
        match std::mem::replace(self, Self::Finished) {
            Self::Between(zip) => zip.finish()?.flush(),
            Self::Open(_) | Self::Finished => Err(finished()),
        }
    }
}

fn finished() -> io::Error {
    io::Error::other("the trace is finished")
}

fn stored() -> SimpleFileOptions {
    SimpleFileOptions::default().compression_method(CompressionMethod::Stored)
}

/// The parts of a path that stay inside the trace.
fn safe_name(name: &str) -> String {
    let parts = name.split(['/', '\\']).filter(|part| !matches!(*part, "" | "." | ".."));
    let clean = parts.map(|part| part.replace(|symbol: char| symbol.is_control() || symbol == ':', "_")).collect::<Vec<_>>().join("/");
    if clean.is_empty() { "unnamed".to_owned() } else { clean }
}

/// Where the bytes go.
enum Sink {
    File(File),
    Memory(Arc<Mutex<Cursor<Vec<u8>>>>),
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Memory(memory) => memory.lock().unwrap_or_else(PoisonError::into_inner).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.flush(),
            Self::Memory(_) => Ok(()),
        }
    }
}

impl Seek for Sink {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::File(file) => file.seek(to),
            Self::Memory(memory) => memory.lock().unwrap_or_else(PoisonError::into_inner).seek(to),
        }
    }
}

/// A file that knows its length. After its first error, which its user keeps, it takes what comes without writing it: the zip on it tells
/// stderr of every error that comes while it is dropped.
struct Counted {
    sink: Sink,
    is_broken: bool,
    place: u64,
    length: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_broken {
            return Ok(bytes.len());
        }
        let count = self.sink.write(bytes).inspect_err(|error| self.is_broken = error.kind() != io::ErrorKind::Interrupted)?;
        self.place += count as u64;
        self.length = self.length.max(self.place);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

impl Seek for Counted {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.place = self.sink.seek(to)?;
        Ok(self.place)
    }
}
