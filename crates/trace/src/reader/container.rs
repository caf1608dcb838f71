//! The entries of a trace's zip, found by its directory or, where a killed writer has left none, by the header before each entry.

use super::TraceError;
use super::lines::Lines;
use crate::line::{Attachment, TraceLine};
use crate::manifest::Manifest;
use flate2::Crc;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use zip::{CompressionMethod, ZipArchive};

/// A larger attachment is left out.
const LARGEST_ATTACHMENT: u64 = 256 << 20;

/// A larger manifest is not read: every session has a line as well.
const LARGEST_MANIFEST: u64 = 16 << 20;

/// What an entry that another program has packed may grow to: a zip can hold far more than its size.
const LARGEST_ENTRY: u64 = 4 << 30;

/// Entries of a zip: more are not read.
const MOST_ENTRIES: usize = 100_000;

pub(super) struct Container {
    file: File,
    entries: std::vec::IntoIter<Entry>,
    lines: Option<Lines>,
    /// Bytes of the entries that were read to their end, after they were unpacked.
    unpacked: u64,
}

struct Entry {
    name: String,
    content: Content,
}

enum Content {
    /// As it stands in the file, to the end of the file if the length is unknown.
    Stored { start: u64, length: Option<u64>, checksum: Option<u32> },
    /// Position in the directory, for what another program has packed again.
    Packed(usize),
}

impl Container {
    pub(super) fn open(mut file: File) -> Result<Self, TraceError> {
        let entries = match ZipArchive::new(BufReader::new(file.try_clone()?)) {
            Ok(archive) => by_directory(archive)?,
            Err(_) => by_headers(&mut file)?,
        };
        if !entries.iter().any(|entry| entry.name.starts_with("frames/")) {
            return Err(TraceError::NotATrace("a zip without frames".into()));
        }
        Ok(Self { file, entries: entries.into_iter(), lines: None, unpacked: 0 })
    }

    /// What was known at the end, if the trace was completed.
    pub(super) fn manifest(&self) -> Option<Manifest> {
        let entry = self.entries.as_slice().iter().find(|entry| entry.name == "manifest.json")?;
        let mut text = Vec::new();
        self.content(&entry.content).ok()?.take(LARGEST_MANIFEST).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Bytes that were read, after they were unpacked.
    pub(super) fn unpacked(&self) -> u64 {
        self.unpacked + self.lines.as_ref().map_or(0, Lines::unpacked)
    }

    pub(super) fn next_line(&mut self) -> Result<Option<TraceLine>, TraceError> {
        loop {
            if let Some(lines) = &mut self.lines {
                if let Some(line) = lines.next_line()? {
                    return Ok(Some(line));
                }
                let was_cut_off = lines.is_cut_off();
                self.unpacked += lines.unpacked();
                self.lines = None;
                if was_cut_off {
                    return Ok(None);
                }
            }
            let Some(entry) = self.entries.next() else { return Ok(None) };
            if entry.name.starts_with("frames/") {
                let content = BufReader::new(self.content(&entry.content)?);
                let is_compressed = entry.name.ends_with(".zst");
                self.lines = Some(Lines::new(match is_compressed {
                    true => Box::new(zstd::stream::read::Decoder::with_buffer(content)?),
                    false => Box::new(content),
                }));
            } else if let Some(name) = entry.name.strip_prefix("attachments/").filter(|name| !name.is_empty() && !name.ends_with('/')) {
                let mut bytes = Vec::new();
                let read = self.content(&entry.content)?.take(LARGEST_ATTACHMENT).read_to_end(&mut bytes);
                read.map_err(|error| match error.kind() {
                    io::ErrorKind::InvalidData => TraceError::Damaged(error.to_string()),
                    _ => TraceError::Io(error),
                })?;
                self.unpacked += bytes.len() as u64;
                return Ok(Some(TraceLine::Attachment(Attachment { name: name.to_owned(), bytes: bytes.into() })));
            }
        }
    }

    fn content(&self, content: &Content) -> Result<Box<dyn Read + Send>, TraceError> {
        match *content {
            Content::Stored { start, length, checksum } => {
                // Clones share their place: nothing else of the file is read until this was read.
                let mut file = self.file.try_clone()?;
                file.seek(SeekFrom::Start(start))?;
                let stored = file.take(length.unwrap_or(u64::MAX));
                Ok(match checksum {
                    Some(checksum) => Box::new(Checked { stored, sum: Crc::new(), checksum }),
                    None => Box::new(stored),
                })
            }
            Content::Packed(index) => {
                let mut archive = ZipArchive::new(BufReader::new(self.file.try_clone()?)).map_err(damaged)?;
                let mut unpacked = tempfile::tempfile()?;
                let mut entry = archive.by_index(index).map_err(damaged)?.take(LARGEST_ENTRY + 1);
                if io::copy(&mut entry, &mut unpacked)? > LARGEST_ENTRY {
                    return Err(TraceError::Damaged("an entry of the zip unpacks to more than 4 GiB".into()));
                }
                unpacked.seek(SeekFrom::Start(0))?;
                Ok(Box::new(unpacked))
            }
        }
    }
}

/// Bytes that have a checksum: once they were read to their end, another one is an error.
struct Checked<R> {
    stored: R,
    sum: Crc,
    checksum: u32,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.stored.read(bytes)?;
        self.sum.update(&bytes[..count]);
        if count == 0 && !bytes.is_empty() && self.sum.sum() != self.checksum {
            let message = "the checksum of an entry differs: the file is not as it was written";
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(count)
    }
}

fn damaged(error: zip::result::ZipError) -> TraceError {
    TraceError::Damaged(error.to_string())
}

fn by_directory(mut archive: ZipArchive<BufReader<File>>) -> Result<Vec<Entry>, TraceError> {
    let mut entries = Vec::new();
    for index in 0..archive.len().min(MOST_ENTRIES) {
        let entry = archive.by_index_raw(index).map_err(damaged)?;
        let content = match (entry.compression(), entry.data_start()) {
            (CompressionMethod::Stored, Some(start)) => {
                Content::Stored { start, length: Some(entry.compressed_size()), checksum: Some(entry.crc32()) }
            }
            _ => Content::Packed(index),
        };
        entries.push((entry.header_start(), Entry { name: entry.name().map_err(damaged)?.into_owned(), content }));
    }
    // As they were written, whatever the order of the directory.
    entries.sort_by_key(|(start, entry)| (!entry.name.starts_with("frames/"), *start));
    Ok(entries.into_iter().map(|(_, entry)| entry).collect())
}

/// Signature, flags, method, sizes and the lengths of what follows, at their places in a local header.
const HEADER: usize = 30;

fn by_headers(file: &mut File) -> Result<Vec<Entry>, TraceError> {
    let end = file.seek(SeekFrom::End(0))?;
    let (mut place, mut entries) = (0, Vec::new());
    while place + HEADER as u64 <= end && entries.len() < MOST_ENTRIES {
        let mut header = [0; HEADER];
        file.seek(SeekFrom::Start(place))?;
        file.read_exact(&mut header)?;
        if header[..4] != *super::ZIP {
            break;
        }
        let number = |at: usize| u64::from(u16::from_le_bytes([header[at], header[at + 1]]));
        let (method, name_length, extra) = (number(8), number(26), number(28));
        let long = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (checksum, size) = (long(14), u64::from(long(18)));
        let start = place + HEADER as u64 + name_length + extra;
        let mut name = vec![0; name_length as usize];
        if file.read_exact(&mut name).is_err() || start > end {
            break;
        }
        let name = String::from_utf8_lossy(&name).into_owned();
        if method != 0 {
            return Err(TraceError::Damaged(format!("the zip has no directory, and its entry {name} is packed in a way that needs one")));
        }
        // The size is written when an entry is complete.
        let length = Some(size).filter(|size| *size > 0);
        let is_whole = length.is_some_and(|length| start.saturating_add(length) <= end);
        entries.push(Entry { name, content: Content::Stored { start, length, checksum: is_whole.then_some(checksum) } });
        match length {
            Some(length) => place = start.saturating_add(length),
            None => break,
        }
    }
    Ok(entries)
}
