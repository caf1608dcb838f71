//! The events of a run as JSON lines, for programs. Does not interpret them.

use crate::{Reporter, escape_json};
use mcproof_record::{CheckReport, Event};
use std::io::{self, BufWriter, Write};

/// A sink of events that writes each as one line of JSON.
pub struct JsonLines<W> {
    writer: W,
}

impl<W: Write> JsonLines<W> {
    pub fn new(writer: W) -> Self {
        Self { writer }
    }

    pub fn into_inner(self) -> W {
        self.writer
    }
}

impl<W: Write> Reporter for JsonLines<W> {
    /// Writes the event whole and flushes, so that a reader at the other end of a pipe follows the run. It is not built in
    /// memory first: a transcript may be large.
    fn event(&mut self, event: &Event) -> io::Result<()> {
        let mut writer = BufWriter::new(&mut self.writer);
        serde_json::to_writer(Visible(&mut writer), event)?;
        writer.write_all(b"\n")?;
        writer.flush()
    }
}

/// Writes the result of a check as one document. Here and for one kind of writer, so that this is compiled once, and well: most of a
/// document is what was on the wire.
///
/// # Errors
/// The writer failed.
pub fn write_check(writer: &mut dyn Write, report: &CheckReport) -> io::Result<()> {
    let mut writer = BufWriter::new(writer);
    serde_json::to_writer(Visible(&mut writer), report)?;
    writer.write_all(b"\n")?;
    writer.flush()
}

/// Writes JSON so that nothing in it hides or steers, wherever it is shown. For a serializer, which writes whole characters.
pub struct Visible<W>(pub W);

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(bytes) {
            Ok(json) => self.0.write_all(escape_json(json).as_bytes())?,
            Err(_) => self.0.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
