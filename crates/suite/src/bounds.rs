//! How large a suite may be. Each bound is far above what people write, and low enough that a file which multiplies itself is refused
//! at once and in little memory: suites come from pull requests of strangers, too.

use mcproof_record::Diagnostic;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Bytes of a suite with all that it includes.
pub const MOST_BYTES: usize = 8 << 20;
/// Values in a suite with all that it includes: texts, numbers, lists, maps. What aliases add counts as if it were written out.
pub(crate) const MOST_VALUES: usize = 300_000;
/// Keys of one map.
pub(crate) const MOST_KEYS: usize = 10_000;
/// Steps of one list.
pub(crate) const MOST_STEPS: usize = 10_000;
/// Mistakes that are reported for one suite.
pub(crate) const MOST_MISTAKES: usize = 500;
/// Bytes, by estimate, of what a suite comes to: variables filled in, rows and hooks written out.
pub(crate) const MOST_FILLED: usize = 112 << 20;
/// Lines of one file.
pub(crate) const MOST_LINES: usize = 300_000;

/// Bytes that all patterns of a suite may take, those that are the same counted once.
pub(crate) const MOST_OF_PATTERNS: usize = 64 << 20;
/// Bytes by which a pattern is counted: the first that it fits into. No pattern is larger than the last.
pub(crate) const PATTERN_SIZES: [usize; 4] = [8 << 10, 64 << 10, 1 << 20, 10 << 20];

/// What a step takes besides its values and places, and a case besides its steps, by estimate.
pub(crate) const STEP: usize = 640;

/// Bytes of any other input: a configuration, a lock, a baseline, arguments, a certificate.
const MOST_INPUT: usize = 64 << 20;

/// A file, or what comes out of a pipe, such as that of `<(…)` in a shell.
///
/// # Errors
/// It cannot be read, or it is larger than 64 MiB, as a device is that never ends.
pub fn read_input(path: &Path) -> io::Result<Vec<u8>> {
    read_within(path, MOST_INPUT)?
        .ok_or_else(|| io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {}", size(MOST_INPUT))))
}

/// Nothing if there are more bytes than these.
fn read_within(path: &Path, most: usize) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() <= most))
}

/// The same, as text.
///
/// # Errors
/// As above, or it is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_input(path)?).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// A file as it was read, unless it is too large or no file.
///
/// # Errors
/// Says what is wrong with it, after its name.
pub fn read_file(path: &Path, most: usize) -> Result<Vec<u8>, String> {
    let told = |error: io::Error| format!("cannot be read: {error}");
    // A pipe might never end, or never begin.
    if !std::fs::metadata(path).map_err(told)?.is_file() {
        return Err("cannot be read: not a regular file".to_owned());
    }
    read_within(path, most).map_err(told)?.ok_or_else(|| format!("is too large: {} are read at most", size(most)))
}

pub(crate) fn too_large() -> Diagnostic {
    let message = format!("with its variables, rows and hooks written out, this suite takes more than {}", size(MOST_FILLED));
    Diagnostic::error("suite-too-large", message).hint("use fewer rows or steps, or variables that do not multiply each other")
}

fn size(bytes: usize) -> String {
    format!("{} MiB", bytes >> 20)
}
