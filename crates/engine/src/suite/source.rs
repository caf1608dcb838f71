//! The text of a suite file by lines, so that any spot of it can be shown. Knows no YAML.

use mcproof_record::Place;

/// A range of a file, on its first line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// 1-based.
    pub line: u32,
    /// 1-based, in characters.
    pub column: u32,
    /// In characters; at least 1 once it is a [`Place`].
    pub length: u32,
}

/// A file as it was read.
#[derive(Clone, Debug)]
pub struct Source {
    file: String,
    lines: Vec<String>,
}

impl Source {
    pub fn new(file: &str, text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
        Self { file: file.to_owned(), lines: text.split(['\n', '\r']).map(str::to_owned).collect() }
    }

    pub fn file(&self) -> &str {
        &self.file
    }

    /// The text of a line, counted from 1; empty after the end.
    pub fn line(&self, number: u32) -> &str {
        let index = usize::try_from(number).unwrap_or(usize::MAX).wrapping_sub(1);
        self.lines.get(index).map_or("", String::as_str)
    }

    pub fn place(&self, span: Span) -> Place {
        Place {
            file: self.file.clone(),
            line: span.line.max(1),
            column: span.column.max(1),
            length: span.length.max(1),
            text: self.line(span.line.max(1)).to_owned(),
        }
    }

    /// From a column to the end of the text on its line.
    pub fn rest_of_line(&self, line: u32, column: u32) -> Span {
        let width = to_u32(self.line(line).trim_end().chars().count());
        Span { line, column, length: (width + 1).saturating_sub(column) }
    }

    /// Where `part` stands inside of the value at `span`, or the whole span if it is written differently there.
    pub fn part(&self, span: Span, part: &str) -> Span {
        let line = self.line(span.line);
        let from = column_to_byte(line, span.column);
        match line[from..].find(part) {
            Some(offset) if !part.is_empty() => {
                let column = to_u32(line[..from + offset].chars().count()) + 1;
                Span { line: span.line, column, length: to_u32(part.chars().count()) }
            }
            _ => span,
        }
    }
}

/// Files are bounded well below four thousand million characters.
pub(crate) fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn column_to_byte(line: &str, column: u32) -> usize {
    let skipped = usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX);
    line.char_indices().nth(skipped).map_or(line.len(), |(index, _)| index)
}
