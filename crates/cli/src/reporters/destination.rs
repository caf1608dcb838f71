//! Where a report goes: stdout, a file that grows, or a file that appears when complete. Knows files, not reports.

use super::Writer;
use crate::ci_commands::BrokenUp;
use crate::failure::Failure;
use crate::whole_file::WholeFile;
use mcproof_system::files;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

pub(super) enum Destination {
    Stdout,
    Growing { path: PathBuf, file: File },
    Whole { path: PathBuf, file: WholeFile },
}

impl Destination {
    /// A file that holds what was written so far.
    pub(super) fn growing(path: &Path) -> Result<Self, Failure> {
        let opened = files::make_folder_of(path).and_then(|()| OpenOptions::new().write(true).create(true).truncate(true).open(path));
        let file = opened.map_err(|error| Failure::cannot_write(path, &error))?;
        Ok(Self::Growing { path: path.to_owned(), file })
    }

    /// A file that is there, or is written over, only when all of it is written.
    pub(super) fn whole(path: &Path) -> Result<Self, Failure> {
        let file = WholeFile::begin(path).map_err(|error| Failure::cannot_write(path, &error))?;
        Ok(Self::Whole { path: path.to_owned(), file })
    }

    pub(super) fn writer(&self) -> Result<Writer, Failure> {
        Ok(match self {
            Self::Stdout => Box::new(BrokenUp::new(io::stdout())),
            Self::Growing { path, file } => {
                Box::new(BufWriter::new(file.try_clone().map_err(|error| Failure::cannot_write(path, &error))?))
            }
            Self::Whole { path, file } => Box::new(file.writer().map_err(|error| Failure::cannot_write(path, &error))?),
        })
    }

    /// Called when all is written.
    pub(super) fn keep(self) -> io::Result<()> {
        match self {
            Self::Whole { file, .. } => file.keep(),
            Self::Stdout | Self::Growing { .. } => Ok(()),
        }
    }
}
