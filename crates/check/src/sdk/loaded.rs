//! Which modules a process has loaded: their paths are in its memory. What is only installed is not.

use mcproof_client::{Program, read_memory};
use memchr::memmem::Finder;
use std::ops::ControlFlow;

/// Bytes of a process that are read at most.
const MOST: usize = 512 << 20;

/// Whether a program has each of these texts in its memory; `None` where that cannot be read.
pub(super) type InMemory<'m> = &'m dyn Fn(&Program, &[String]) -> Option<Vec<bool>>;

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
