//! The folders of files that are to be written. The same on every system.

use std::path::Path;
use std::{fs, io};

/// Makes the folder of a file that is about to be written, and those above it: reports, traces and the like often go where no fresh
/// checkout has a folder.
///
/// # Errors
/// One of them cannot be made, or is a file.
pub fn make_folder_of(path: &Path) -> io::Result<()> {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).map_or(Ok(()), fs::create_dir_all)
}
