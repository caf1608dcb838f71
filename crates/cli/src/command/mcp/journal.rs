//! The last operations by number: their output and traffic, line by line, within limits.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Operations that are kept.
const MOST: usize = 16;
/// Bytes of each part of an operation that are kept.
const LARGEST: usize = 200_000;
/// Characters of one line; what is longer goes on in the next.
const LINE: usize = 4000;

/// Lines, up to a bound; what is beyond it is counted.
#[derive(Debug, Default)]
pub(super) struct StoredLines {
    pub(super) lines: Vec<String>,
    pub(super) left_out: usize,
    bytes: usize,
}

impl StoredLines {
    pub(super) fn push(&mut self, text: &str) {
        let mut rest = text;
        loop {
            let end = rest.char_indices().nth(LINE).map_or(rest.len(), |(end, _)| end);
            let (line, more) = rest.split_at(end);
            if self.left_out > 0 || self.bytes + line.len() > LARGEST {
                self.left_out += 1;
            } else {
                // An empty line costs something, too.
                self.bytes += line.len() + 1;
                self.lines.push(line.to_owned());
            }
            if more.is_empty() {
                return;
            }
            rest = more;
        }
    }
}

impl<'a> FromIterator<&'a str> for StoredLines {
    fn from_iter<T: IntoIterator<Item = &'a str>>(lines: T) -> Self {
        let mut kept = Self::default();
        lines.into_iter().for_each(|line| kept.push(line));
        kept
    }
}

#[derive(Debug)]
pub(super) struct Operation {
    pub(super) number: u64,
    pub(super) tool: String,
    pub(super) output: StoredLines,
    pub(super) wire: StoredLines,
}

#[derive(Debug, Default)]
pub(super) struct Journal(Mutex<Operations>);

#[derive(Debug, Default)]
struct Operations {
    so_far: u64,
    kept: VecDeque<Arc<Operation>>,
}

impl Journal {
    pub(super) fn write(&self, tool: &str, output: StoredLines, wire: StoredLines) -> Arc<Operation> {
        let mut operations = self.lock();
        operations.so_far += 1;
        let operation = Arc::new(Operation { number: operations.so_far, tool: tool.to_owned(), output, wire });
        if operations.kept.len() == MOST {
            operations.kept.pop_front();
        }
        operations.kept.push_back(operation.clone());
        operation
    }

    /// The operation of this number, or the newest.
    ///
    /// # Errors
    /// There is none, or not any more.
    pub(super) fn find(&self, number: Option<u64>) -> Result<Arc<Operation>, String> {
        let operations = self.lock();
        let newest = operations.kept.back().ok_or("no operation was run yet: start with `list`")?;
        let Some(number) = number else { return Ok(newest.clone()) };
        let found = operations.kept.iter().find(|operation| operation.number == number);
        let oldest = operations.kept.front().map_or(0, |operation| operation.number);
        found.cloned().ok_or_else(|| format!("unknown operation {number}; operations {oldest} to {} are stored", newest.number))
    }

    fn lock(&self) -> MutexGuard<'_, Operations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_go_on_and_what_is_too_much_is_counted() {
        let kept: StoredLines = ["", &"é".repeat(LINE + 1)].into_iter().collect();
        assert_eq!(kept.lines.iter().map(|line| line.chars().count()).collect::<Vec<_>>(), [0, LINE, 1]);
        let flood: StoredLines = std::iter::repeat_n("0123456789", LARGEST).collect();
        assert!(flood.lines.len() < LARGEST / 10 && flood.lines.len() + flood.left_out == LARGEST, "{}", flood.lines.len());
        let empty: StoredLines = std::iter::repeat_n("", LARGEST * 2).collect();
        assert!(empty.lines.len() <= LARGEST + 1, "{}", empty.lines.len());
    }

    #[test]
    fn the_last_operations_are_found_by_their_numbers() {
        let journal = Journal::default();
        assert!(journal.find(None).unwrap_err().contains("no operation was run yet"));
        for _ in 0..20 {
            journal.write("list", StoredLines::default(), StoredLines::default());
        }
        assert_eq!(journal.find(None).unwrap().number, 20);
        assert_eq!(journal.find(Some(5)).unwrap().number, 5);
        assert_eq!(journal.find(Some(4)).unwrap_err(), "unknown operation 4; operations 5 to 20 are stored");
    }
}
