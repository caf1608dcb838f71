//! Files that are replaced as a whole, with a copy of what they were.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// More is no configuration.
const MOST_BYTES: u64 = 16 << 20;

/// # Errors
/// The file cannot be read, is too large, or is no UTF-8.
pub fn read(file: &Path) -> io::Result<String> {
    if fs::metadata(file)?.len() > MOST_BYTES {
        return Err(io::Error::other("it is larger than 16 MiB"));
    }
    fs::read_to_string(file)
}

/// Where the copy of a file is kept.
pub fn backup_of(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_os_string();
    name.push(".mcproof-backup");
    file.with_file_name(name)
}

/// The lines that change, with some around them.
pub fn difference(before: &str, after: &str) -> String {
    similar::TextDiff::from_lines(before, after).unified_diff().context_radius(2).to_string()
}

/// Replaces the file, or what it links to, at once: no reader ever finds half of it. The first replacement keeps a copy; one that gives
/// back the bytes of the copy removes it.
///
/// # Errors
/// Nothing was changed.
pub fn replace(file: &Path, before: &str, after: &str) -> io::Result<()> {
    let file = fs::canonicalize(file)?;
    if fs::read(&file)? != before.as_bytes() {
        return Err(io::Error::other("it was changed by another program meanwhile"));
    }
    let folder = file.parent().ok_or_else(|| io::Error::other("it is in no directory"))?;
    let permissions = fs::metadata(&file)?.permissions();
    let write = |path: &Path, text: &str| {
        let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
        temporary.write_all(text.as_bytes())?;
        temporary.as_file().set_permissions(permissions.clone())?;
        temporary.as_file().sync_all()?;
        temporary.persist(path).map(drop).map_err(|error| error.error)
    };
    let backup = backup_of(&file);
    if !backup.exists() {
        write(&backup, before)?;
    }
    write(&file, after)?;
    if fs::read(&backup).is_ok_and(|kept| kept == after.as_bytes()) {
        fs::remove_file(&backup)?;
    }
    Ok(())
}
