//! The report of a run for a person.

use crate::Style;
use mcproof_record::Event;
use std::io::{self, Write};

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Failures and the summary.
    Quiet,
    /// A line per finished case, too.
    Normal,
    /// What the wire proved about each case, too.
    Verbose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// For a pipe or a file: what is written stays as it is.
    Off,
    /// A last line that is written over with what is running now.
    Live,
}

/// A sink of events that writes the report of a run for a person.
pub struct Terminal<W> {
    writer: W,
    style: Style,
    detail: Detail,
    progress: Progress,
}

impl<W: Write> Terminal<W> {
    pub fn new(writer: W, style: Style, detail: Detail, progress: Progress) -> Self {
        Self { writer, style, detail, progress }
    }

    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        let _ = (event, self.style, self.detail, self.progress);
        self.writer.flush()
    }

    pub fn into_inner(self) -> W {
        self.writer
    }
}
