//! Which modules a process has loaded: their paths are in its memory. What is only installed is not.

use mcproof_client::{Program, read_memory};
use memchr::memmem::Finder;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::PathBuf;
use url::Url;

/// Bytes of a process that are read at most.
const MOST: usize = 512 << 20;

/// Whether a program has each of these texts in its memory; `None` where that cannot be read.
pub(super) type InMemory<'m> = &'m dyn Fn(&Program, &[String]) -> Option<Vec<bool>>;

/// A file that a program has loaded, by a part of its path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LoadedFile {
    /// Which part it is.
    pub(super) part: usize,
    /// The absolute folder before that.
    pub(super) before: PathBuf,
    /// The first name behind it.
    pub(super) next: String,
}

/// The files with one of these parts in their paths, such as `/node_modules/x/`, whose paths a program has in its memory.
pub(super) type FilesInMemory<'m> = &'m dyn Fn(&Program, &[String]) -> Vec<LoadedFile>;

/// As the system tells.
pub(super) fn files_in_memory(program: &Program, parts: &[String]) -> Vec<LoadedFile> {
    /// Of more, nothing is certain.
    const MOST_FILES: usize = 64;
    let finders: Vec<Finder<'_>> = parts.iter().map(|part| Finder::new(part.as_bytes())).collect();
    let mut found = BTreeSet::new();
    let search = |piece: &[u8]| {
        found.extend(mentioned(piece, &finders));
        if found.len() >= MOST_FILES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    match read_memory(program.pid, MOST, 2 * LONGEST_PATH, search) {
        Ok(()) => found.into_iter().collect(),
        Err(_) => Vec::new(),
    }
}

/// Bytes of a path on either side of a part.
const LONGEST_PATH: usize = 1024;

/// What the runtimes load.
const SOURCES: [&str; 7] = [".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py"];

/// The source files in a piece of memory, with odd characters in no path that is not a URL.
pub(super) fn mentioned(piece: &[u8], finders: &[Finder<'_>]) -> Vec<LoadedFile> {
    let is_of_path = |byte: u8| byte.is_ascii_graphic() && !b"\"'`()<>|*?{}[],;".contains(&byte);
    let at = |part: usize, finder: &Finder<'_>, place: usize| {
        let before = &piece[place.saturating_sub(LONGEST_PATH)..place];
        let length = before.iter().rev().take_while(|byte| is_of_path(**byte)).count();
        let before = std::str::from_utf8(&before[before.len() - length..]).ok()?;
        let before = match before.rfind("file://") {
            Some(url) => Url::parse(&before[url..]).ok()?.to_file_path().ok()?,
            None => Some(PathBuf::from(before)).filter(|before| before.is_absolute())?,
        };
        let after = &piece[place + finder.needle().len()..];
        let length = after.iter().take(LONGEST_PATH).take_while(|byte| is_of_path(**byte)).count();
        let after = std::str::from_utf8(&after[..length]).ok()?;
        let next = after.split('/').next().filter(|_| SOURCES.iter().any(|end| after.ends_with(end)))?;
        Some(LoadedFile { part, before, next: next.to_owned() })
    };
    let of = |(part, finder): (usize, &Finder<'_>)| finder.find_iter(piece).filter_map(|place| at(part, finder, place)).collect::<Vec<_>>();
    finders.iter().enumerate().flat_map(of).collect()
}

/// As the system tells.
pub(super) fn in_memory(program: &Program, texts: &[String]) -> Option<Vec<bool>> {
    let finders: Vec<Finder<'_>> = texts.iter().map(|text| Finder::new(text.as_bytes())).collect();
    let longest = texts.iter().map(String::len).max()?;
    let mut found = vec![false; texts.len()];
    let search = |piece: &[u8]| {
        for (finder, found) in finders.iter().zip(&mut found) {
            *found = *found || finder.find(piece).is_some();
        }
        if found.iter().all(|found| *found) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    read_memory(program.pid, MOST, longest, search).ok()?;
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loaded_file_has_an_absolute_path_and_is_a_source() {
        let finders = [Finder::new("/node_modules/x/"), Finder::new("/mcp/server/")];
        let check = |memory: &[u8], expected: &[(usize, &str, &str)]| {
            let found: Vec<_> = mentioned(memory, &finders).into_iter().map(|file| (file.part, file.before, file.next)).collect();
            let expected: Vec<_> = expected.iter().map(|(part, before, next)| (*part, PathBuf::from(before), (*next).to_owned())).collect();
            assert_eq!(found, expected, "{}", String::from_utf8_lossy(memory));
        };
        check(b"\x12\0\0\0file:///home/a%20b/node_modules/x/dist/index.js\0", &[(0, "/home/a b", "dist")]);
        check(b"\0/srv/.pnpm/x@1/node_modules/x/index.cjs\x01", &[(0, "/srv/.pnpm/x@1", "index.cjs")]);
        check(b"\0/venv/lib/mcp/server/lowlevel/server.py", &[(1, "/venv/lib", "lowlevel")]);
        // Looked for, or named by the file in which it was bundled.
        check(b"\0/srv/node_modules/x/package.json\0/srv/node_modules/x/node_modules\0", &[]);
        check(b"// ../node_modules/x/dist/index.js\n", &[]);
        check(b"/node_modules/x/", &[]);
    }
}
