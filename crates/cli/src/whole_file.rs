//! Files that are there, or written over, only when all of it is written: a full disk or a kill leaves what was there before.

use mcproof_system::files;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file on its way.
pub(crate) enum WholeFile {
    /// What is no plain file (a pipe, a terminal) cannot be put in the place of another, and a folder may take no new file.
    InPlace(File),
    Beside {
        path: PathBuf,
        unfinished: NamedTempFile,
    },
}

impl WholeFile {
    /// Begins a file, and makes its folder. One that exists keeps its permissions; others may read a new one, as far as the user's mask lets them.
    ///
    /// # Errors
    /// It is a folder, or nothing can be written there.
    pub(crate) fn begin(path: &Path) -> io::Result<Self> {
        // Where it is a link, what it points at is written over.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let present = fs::metadata(&path).ok();
        match &present {
            Some(present) if present.is_dir() => return Err(io::Error::from(io::ErrorKind::IsADirectory)),
            Some(present) if !present.is_file() => return in_place(&path),
            _ => {}
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        files::make_folder_of(&path)?;
        let mut builder = tempfile::Builder::new();
        if let Some(permissions) = present.as_ref().map(fs::Metadata::permissions).or_else(files::shared_permissions) {
            builder.permissions(permissions);
        }
        match builder.prefix(".mcproof-").tempfile_in(folder) {
            Ok(unfinished) => Ok(Self::Beside { path, unfinished }),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && present.is_some() => in_place(&path),
            Err(error) => Err(error),
        }
    }

    /// Whoever writes to it; the bytes are there once it is dropped.
    pub(crate) fn writer(&self) -> io::Result<BufWriter<File>> {
        self.file().map(BufWriter::new)
    }

    /// The same without a buffer.
    pub(crate) fn file(&self) -> io::Result<File> {
        match self {
            Self::InPlace(file) => file.try_clone(),
            Self::Beside { unfinished, .. } => unfinished.reopen(),
        }
    }

    /// Called when all is written.
    pub(crate) fn keep(self) -> io::Result<()> {
        match self {
            Self::InPlace(_) => Ok(()),
            Self::Beside { path, unfinished } => unfinished.persist(path).map(drop).map_err(|failure| failure.error),
        }
    }
}

/// Writes a file as a whole, or not at all.
pub(crate) fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let file = WholeFile::begin(path.as_ref())?;
    let mut writer = file.writer()?;
    writer.write_all(bytes.as_ref())?;
    writer.flush()?;
    file.keep()
}

fn in_place(path: &Path) -> io::Result<WholeFile> {
    OpenOptions::new().write(true).truncate(true).open(path).map(WholeFile::InPlace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_kept_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        write(&path, "first").unwrap();
        let unfinished = WholeFile::begin(&path).unwrap();
        unfinished.writer().unwrap().write_all(b"half").unwrap();
        drop(unfinished);
        assert_eq!(fs::read(&path).unwrap(), b"first");
        write(&path, "second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
        let deeper = folder.path().join("not/there/yet.yaml");
        write(&deeper, "third").unwrap();
        assert_eq!(fs::read(&deeper).unwrap(), b"third");
        let refused = write(folder.path(), "").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::IsADirectory);
        write(Path::new("/dev/null"), "what is no plain file is written to").unwrap();
    }
}
