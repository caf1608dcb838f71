//! The texts of a suite and of the files that it includes, by lines, so that any spot of them can be shown. Knows no YAML.

use super::bounds::{MOST_FILLED, MOST_LINES, MOST_OF_PATTERNS, PATTERN_SIZES};
use mcproof_record::Place;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// A range of a file, on its first line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Which file of a [`Source`]; the suite itself is 0.
    pub file: u16,
    /// 1-based.
    pub line: u32,
    /// 1-based, in characters.
    pub column: u32,
    /// In characters; at least 1 once it is a [`Place`].
    pub length: u32,
}

/// The files of one suite as they were read.
#[derive(Clone, Debug)]
pub struct Source {
    files: Vec<File>,
    /// How many values were found in them.
    values: Cell<usize>,
    /// Bytes that the suite may still come to, by estimate.
    room: Cell<usize>,
    /// Patterns that were compiled, by themselves and their flags: rows share them.
    patterns: RefCell<HashMap<(String, String), regex::Regex>>,
    /// Bytes that patterns may still take.
    room_for_patterns: Cell<usize>,
}

#[derive(Clone, Debug)]
struct File {
    name: String,
    text: String,
    lines: Vec<Line>,
}

#[derive(Clone, Debug)]
struct Line {
    text: String,
    /// In characters.
    width: u32,
    /// Where each character begins that is a multiple of [`STRIDE`]; empty if all are single bytes.
    starts: Vec<usize>,
}

const STRIDE: usize = 256;
/// Characters of a line that a place shows: every step has a place of its own, and a file may be one line.
const LONGEST_SHOWN: u32 = 1000;

impl Source {
    /// The suite itself.
    pub fn new(file: &str, text: &str) -> Self {
        let mut source = Self {
            files: Vec::new(),
            values: Cell::default(),
            room: Cell::new(MOST_FILLED),
            patterns: RefCell::default(),
            room_for_patterns: Cell::new(MOST_OF_PATTERNS),
        };
        source.add(file, text);
        source
    }

    /// One more file, and its number.
    pub fn add(&mut self, file: &str, text: &str) -> u16 {
        let number = u16::try_from(self.files.len()).expect("includes are bounded");
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = text.replace("\r\n", "\n").split(['\n', '\r']).take(MOST_LINES + 1).map(Line::new).collect();
        self.files.push(File { name: file.to_owned(), text: text.to_owned(), lines });
        number
    }

    /// Puts stars in the place of secrets, so that no place that is shown tells them.
    pub fn mask(&mut self, secrets: &[String]) {
        // A shorter one would star out half of the file without hiding anything, as in the tap.
        for secret in secrets.iter().filter(|secret| secret.len() >= 4) {
            let stars = "*".repeat(secret.chars().count());
            for line in self.files.iter_mut().flat_map(|file| &mut file.lines) {
                if line.text.contains(secret.as_str()) {
                    *line = Line::new(&line.text.replace(secret.as_str(), &stars));
                }
            }
        }
    }

    /// The name of the suite itself, as the user gave it.
    pub fn file(&self) -> &str {
        &self.files[0].name
    }

    /// The whole text of a file, without a byte order mark.
    pub fn text(&self, file: u16) -> &str {
        &self.files[usize::from(file)].text
    }

    /// Whether any file has this text in it.
    pub fn mentions(&self, text: &str) -> bool {
        self.files.iter().any(|file| file.text.contains(text))
    }

    /// Whether there is room for so many bytes more. There is none afterwards if not.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let left = self.room.get().checked_sub(bytes);
        self.room.set(left.unwrap_or(0));
        left.is_some()
    }

    /// Bytes that the suite may still come to, by estimate.
    pub(crate) fn room(&self) -> usize {
        self.room.get()
    }

    /// How many files there are.
    pub(crate) fn count_files(&self) -> usize {
        self.files.len()
    }

    /// Bytes of all files.
    pub(crate) fn size(&self) -> usize {
        self.files.iter().map(|file| file.text.len()).sum()
    }

    /// Counts values, and gives how many there are by now.
    pub(crate) fn count_values(&self, more: usize) -> usize {
        self.values.set(self.values.get().saturating_add(more));
        self.values.get()
    }

    /// The compiled pattern; `build` takes the bytes that it may have.
    ///
    /// # Errors
    /// It is no pattern, or takes too much memory, alone or with those before it.
    pub(crate) fn pattern(
        &self,
        body: &str,
        flags: &str,
        build: impl Fn(usize) -> Result<regex::Regex, regex::Error>,
    ) -> Result<regex::Regex, regex::Error> {
        let key = (body.to_owned(), flags.to_owned());
        if let Some(known) = self.patterns.borrow().get(&key) {
            return Ok(known.clone());
        }
        let made = self.sized(build)?;
        self.patterns.borrow_mut().insert(key, made.clone());
        Ok(made)
    }

    /// What is compiled from a pattern and kept nowhere else.
    ///
    /// # Errors
    /// As [`Source::pattern`].
    pub(crate) fn sized<T>(&self, build: impl Fn(usize) -> Result<T, regex::Error>) -> Result<T, regex::Error> {
        // How large it is, nobody tells: only whether it is larger than that.
        for size in PATTERN_SIZES {
            let size = size.min(self.room_for_patterns.get());
            match build(size) {
                Err(regex::Error::CompiledTooBig(_)) => {}
                Ok(made) => {
                    self.room_for_patterns.set(self.room_for_patterns.get() - size);
                    return Ok(made);
                }
                Err(error) => return Err(error),
            }
        }
        // To find that out takes as long as to compile it.
        let largest = PATTERN_SIZES[PATTERN_SIZES.len() - 1];
        self.room_for_patterns.set(self.room_for_patterns.get().saturating_sub(largest));
        Err(regex::Error::CompiledTooBig(largest))
    }

    pub fn count_lines(&self, file: u16) -> u32 {
        to_u32(self.files[usize::from(file)].lines.len())
    }

    /// The text of the line on which a span stands; empty after the end.
    pub fn line(&self, span: Span) -> &str {
        self.find(span).map_or("", |line| line.text.as_str())
    }

    /// What stands at a span, as far as it is on one line.
    pub(crate) fn written(&self, span: Span) -> &str {
        let Some(line) = self.find(span) else { return "" };
        let end = span.column.saturating_add(span.length);
        &line.text[line.byte(span.column)..line.byte(end)]
    }

    fn find(&self, span: Span) -> Option<&Line> {
        let index = usize::try_from(span.line.max(1)).unwrap_or(usize::MAX).wrapping_sub(1);
        self.files[usize::from(span.file)].lines.get(index)
    }

    /// What lies behind the end of a line or of the file, as a YAML error may, is shown at that end.
    pub fn place(&self, span: Span) -> Place {
        let File { name, lines, .. } = &self.files[usize::from(span.file)];
        let last = to_u32(lines.len()).max(1);
        let (line, column) = if span.line > last { (last, u32::MAX) } else { (span.line.max(1), span.column.max(1)) };
        let found = self.find(Span { line, ..span });
        let end = found.map_or(0, |line| line.width) + 1;
        let column = column.min(end);
        let text = found.map_or_else(String::new, |line| line.text[..line.byte(LONGEST_SHOWN + 1)].to_owned());
        // It is kept for as long as the suite is.
        self.take(name.len() + text.len());
        Place { file: name.clone(), line, column, length: span.length.clamp(1, (end - column).max(1)), text }
    }

    /// From where a span starts to the end of the text on its line.
    pub fn rest_of_line(&self, start: Span) -> Span {
        let Some(line) = self.find(start) else { return Span { length: 0, ..start } };
        let blank = to_u32(line.text.chars().rev().take_while(|character| character.is_whitespace()).count());
        Span { length: (line.width - blank + 1).saturating_sub(start.column), ..start }
    }

    /// Where `part` stands inside of the value at `span`, or the whole span if it is written differently there.
    pub fn part(&self, span: Span, part: &str) -> Span {
        let Some(line) = self.find(span) else { return span };
        let from = line.byte(span.column);
        match line.text[from..].find(part) {
            Some(offset) if !part.is_empty() => {
                let column = span.column.max(1) + to_u32(line.text[from..from + offset].chars().count());
                Span { column, length: to_u32(part.chars().count()), ..span }
            }
            _ => span,
        }
    }
}

/// Files are bounded well below four thousand million characters.
pub(crate) fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl Line {
    fn new(text: &str) -> Self {
        let plain = text.is_ascii();
        let starts = if plain { Vec::new() } else { text.char_indices().step_by(STRIDE).map(|(start, _)| start).collect() };
        let width = to_u32(if plain { text.len() } else { text.chars().count() });
        Self { text: text.to_owned(), width, starts }
    }

    /// Where a column begins, or the end of the line.
    fn byte(&self, column: u32) -> usize {
        let skipped = usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX);
        if self.starts.is_empty() {
            return skipped.min(self.text.len());
        }
        let Some(near) = self.starts.get(skipped / STRIDE).copied() else { return self.text.len() };
        self.text[near..].char_indices().nth(skipped % STRIDE).map_or(self.text.len(), |(index, _)| near + index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_characters_on_lines_of_any_length() {
        let check = |text: &str| {
            let line = Line::new(text);
            let starts: Vec<usize> = text.char_indices().map(|(start, _)| start).chain([text.len()]).collect();
            for (index, start) in starts.iter().enumerate() {
                assert_eq!(line.byte(to_u32(index) + 1), *start, "column {} of {} bytes", index + 1, text.len());
            }
            assert_eq!((line.byte(u32::MAX), line.width), (text.len(), to_u32(starts.len() - 1)));
        };
        ["", "a", "é", &"x".repeat(3 * STRIDE), &"aé𝄞".repeat(STRIDE)].into_iter().for_each(check);
    }

    #[test]
    fn a_place_on_a_long_line_shows_its_beginning_only() {
        let source = Source::new("f", &"é".repeat(5000));
        let place = source.place(Span { file: 0, line: 1, column: 4000, length: 3 });
        assert_eq!((place.column, place.length, place.text.chars().count()), (4000, 3, LONGEST_SHOWN as usize));
        assert_eq!(source.written(Span { file: 0, line: 1, column: 4999, length: 9 }), "éé");
    }
}
