//! Lines of JSON, one after the other, of which none may be too long.

use super::TraceError;
use crate::line::TraceLine;
use std::io::{self, BufRead, BufReader, Read};

/// A longer line is no line of a trace: it is read as a whole.
pub(crate) const LONGEST_LINE: u64 = 64 << 20;

pub(super) struct Lines {
    reader: BufReader<Box<dyn Read + Send>>,
    first: Option<Vec<u8>>,
    number: u64,
    unpacked: u64,
    cut_off: bool,
}

impl Lines {
    pub(super) fn new(reader: Box<dyn Read + Send>) -> Self {
        Self { reader: BufReader::with_capacity(1 << 16, reader), first: None, number: 0, unpacked: 0, cut_off: false }
    }

    /// The same, beginning with a line that was read.
    pub(super) fn with_first(mut self, first: Vec<u8>) -> Self {
        self.first = Some(first);
        self
    }

    /// Whether the last thing that was read ended in the middle.
    pub(super) fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    /// Bytes that were read, after they were unpacked.
    pub(super) fn unpacked(&self) -> u64 {
        self.unpacked
    }

    pub(super) fn next_line(&mut self) -> Result<Option<TraceLine>, TraceError> {
        loop {
            let Some(text) = (match self.first.take() {
                Some(first) => Some(first),
                None => self.next_text()?,
            }) else {
                return Ok(None);
            };
            if text.trim_ascii().is_empty() {
                continue;
            }
            return match serde_json::from_slice(&text) {
                Ok(line) => Ok(Some(line)),
                // Without its line feed it is the last one, in which the writer was killed.
                Err(_) if !text.ends_with(b"\n") => {
                    self.cut_off = true;
                    Ok(None)
                }
                Err(error) => Err(TraceError::Damaged(format!("line {}: {error}", self.number))),
            };
        }
    }

    /// The next line, with its line feed if it has one.
    pub(super) fn next_text(&mut self) -> Result<Option<Vec<u8>>, TraceError> {
        let mut text = Vec::new();
        let outcome = (&mut self.reader).take(LONGEST_LINE).read_until(b'\n', &mut text);
        if let Err(error) = outcome {
            // A stream of zstd that was not finished.
            if error.kind() != io::ErrorKind::UnexpectedEof {
                return Err(TraceError::Damaged(error.to_string()));
            }
            self.cut_off = true;
        }
        if text.len() as u64 == LONGEST_LINE && !text.ends_with(b"\n") {
            return Err(TraceError::Damaged(format!("line {} is longer than {LONGEST_LINE} bytes", self.number + 1)));
        }
        self.number += 1;
        self.unpacked += text.len() as u64;
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    /// Everything that follows, as one text.
    pub(super) fn rest(mut self, mut text: Vec<u8>, most: u64) -> Result<Vec<u8>, TraceError> {
        (&mut self.reader).take(most).read_to_end(&mut text)?;
        if text.len() as u64 >= most {
            return Err(TraceError::NotATrace(format!("it is one JSON document of more than {most} bytes")));
        }
        Ok(text)
    }
}
