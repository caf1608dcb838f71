//! Paths and the folders of files that are to be written. The same on every system.

use std::path::{Component, Path, PathBuf};
use std::{fs, io};

/// Makes the folder of a file that is about to be written, and those above it: reports, traces and the like often go where no fresh
/// checkout has a folder.
///
/// # Errors
/// One of them cannot be made, or is a file.
pub fn make_folder_of(path: &Path) -> io::Result<()> {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).map_or(Ok(()), fs::create_dir_all)
}

/// The path without `.` and `..`, as it is spelled: no link is followed, and nothing of it need be there.
#[must_use]
pub fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}
