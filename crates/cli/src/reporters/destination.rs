//! Where a report goes: stdout, a file that grows, or a file that appears when complete. Knows files, not reports.

use super::Writer;
use crate::failure::Failure;
use mcproof_system::files;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

pub(super) enum Destination {
    Stdout,
    /// What is no plain file (a pipe, a terminal) cannot be put in the place of another, so it grows, too.
    Growing {
        path: PathBuf,
        file: File,
    },
    Whole {
        path: PathBuf,
        unfinished: NamedTempFile,
    },
}

impl Destination {
    /// A file that holds what was written so far.
    pub(super) fn growing(path: &Path) -> Result<Self, Failure> {
        make_folder_of(path)?;
        let opened = OpenOptions::new().write(true).create(true).truncate(true).open(path);
        let file = opened.map_err(|error| Failure::cannot_write(path, &error))?;
        Ok(Self::Growing { path: path.to_owned(), file })
    }

    /// A file that is there, or is written over, only when all of it is written.
    pub(super) fn whole(path: &Path) -> Result<Self, Failure> {
        make_folder_of(path)?;
        // Where it is a link, what it points at is written over.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match fs::metadata(&path) {
            Ok(present) if present.is_dir() => return Err(Failure::cannot_write(&path, &io::Error::from(io::ErrorKind::IsADirectory))),
            Ok(present) if !present.is_file() => return Self::growing(&path),
            _ => {}
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Others may read a report, as far as the user's mask lets them.
        let mut builder = tempfile::Builder::new();
        if let Some(permissions) = files::shared_permissions() {
            builder.permissions(permissions);
        }
        let unfinished = builder.prefix(".mcproof-").tempfile_in(folder).map_err(|error| Failure::cannot_write(&path, &error))?;
        Ok(Self::Whole { path, unfinished })
    }

    pub(super) fn writer(&self) -> Result<Writer, Failure> {
        Ok(match self {
            Self::Stdout => Box::new(io::stdout()),
            Self::Growing { path, file } => {
                Box::new(BufWriter::new(file.try_clone().map_err(|error| Failure::cannot_write(path, &error))?))
            }
            Self::Whole { path, unfinished } => {
                Box::new(BufWriter::new(unfinished.reopen().map_err(|error| Failure::cannot_write(path, &error))?))
            }
        })
    }

    /// Called when all is written.
    pub(super) fn keep(self) -> io::Result<()> {
        match self {
            Self::Whole { path, unfinished } => unfinished.persist(path).map(drop).map_err(|failure| failure.error),
            Self::Stdout | Self::Growing { .. } => Ok(()),
        }
    }
}

/// Reports mostly go to a folder that only reports go to, and that no fresh checkout has.
fn make_folder_of(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or(Ok(()), |folder| fs::create_dir_all(folder).map_err(|error| Failure::cannot_write(path, &error)))
}
