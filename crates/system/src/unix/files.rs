//! Files and folders of one user, or of everybody, by their mode.

use std::fs::{self, DirBuilder, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// A new file is for this user alone.
pub fn private_file(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// A new folder is for this user alone.
pub fn private_folder(builder: &mut DirBuilder) -> &mut DirBuilder {
    builder.mode(0o700)
}

/// Whether other users than its owner may read or change a file.
pub fn is_open_to_others(about: &Metadata) -> bool {
    about.permissions().mode() & 0o077 != 0
}

/// For a new file that others may read, as far as the mask of the user lets them. `None` where files have no such permissions.
pub fn shared_permissions() -> Option<Permissions> {
    Some(Permissions::from_mode(0o666))
}

/// For a new file that everybody may read, such as one of a repository.
pub fn public_permissions() -> Option<Permissions> {
    Some(Permissions::from_mode(0o644))
}

/// Temporary files are for their owner alone; this makes one readable for everybody.
///
/// # Errors
/// It is gone, or somebody else's.
pub fn make_public(file: &Path) -> io::Result<()> {
    fs::set_permissions(file, Permissions::from_mode(0o644))
}

/// Tells a file from another one that was put in its place.
pub fn identity(about: &Metadata) -> u64 {
    about.ino()
}

/// Makes `link` lead to `target`.
///
/// # Errors
/// Something is there already.
pub fn link(target: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}
