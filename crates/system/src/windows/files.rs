//! Files of one user: what is in the folders of a user's profile is that user's by the access lists that they inherit, so that nothing has
//! to be set. Files have no modes.

use std::fs::{DirBuilder, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::windows::fs::MetadataExt as _;
use std::path::Path;

/// A new file is for this user alone, as its folder is.
pub fn private_file(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// A new folder is for this user alone, as the one that it is in.
pub fn private_folder(builder: &mut DirBuilder) -> &mut DirBuilder {
    builder
}

/// Whether other users than its owner may read or change a file: files of a profile are never.
pub fn is_open_to_others(_about: &Metadata) -> bool {
    false
}

/// For a new file that others may read. `None` where files have no such permissions.
pub fn shared_permissions() -> Option<Permissions> {
    None
}

/// For a new file that everybody may read. `None` where files have no such permissions.
pub fn public_permissions() -> Option<Permissions> {
    None
}

/// Whoever may use the folder may read the file.
///
/// # Errors
/// None.
pub fn make_public(_file: &Path) -> io::Result<()> {
    Ok(())
}

/// Tells a file from another one that was put in its place.
pub fn identity(about: &Metadata) -> u64 {
    about.creation_time()
}

/// Makes `link` lead to `target`.
///
/// # Errors
/// Something is there already, or this user may make no links.
pub fn link(target: &Path, link: &Path) -> io::Result<()> {
    if target.is_dir() { std::os::windows::fs::symlink_dir(target, link) } else { std::os::windows::fs::symlink_file(target, link) }
}
