//! The texts of a suite and of the files that it includes, by lines, so that any spot of them can be shown. Knows no YAML.

use mcproof_record::Place;

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
}

#[derive(Clone, Debug)]
struct File {
    name: String,
    text: String,
    lines: Vec<String>,
}

impl Source {
    /// The suite itself.
    pub fn new(file: &str, text: &str) -> Self {
        let mut source = Self { files: Vec::new() };
        source.add(file, text);
        source
    }

    /// One more file, and its number.
    pub fn add(&mut self, file: &str, text: &str) -> u16 {
        let number = u16::try_from(self.files.len()).expect("includes are bounded");
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = text.replace("\r\n", "\n").split(['\n', '\r']).map(str::to_owned).collect();
        self.files.push(File { name: file.to_owned(), text: text.to_owned(), lines });
        number
    }

    /// Puts stars in the place of secrets, so that no place that is shown tells them.
    pub fn mask(&mut self, secrets: &[String]) {
        // A shorter one would star out half of the file without hiding anything, as in the tap.
        for secret in secrets.iter().filter(|secret| secret.len() >= 4) {
            let stars = "*".repeat(secret.chars().count());
            for line in self.files.iter_mut().flat_map(|file| &mut file.lines) {
                if line.contains(secret.as_str()) {
                    *line = line.replace(secret.as_str(), &stars);
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

    pub fn count_lines(&self, file: u16) -> u32 {
        to_u32(self.files[usize::from(file)].lines.len())
    }

    /// The text of the line on which a span stands; empty after the end.
    pub fn line(&self, span: Span) -> &str {
        let index = usize::try_from(span.line.max(1)).unwrap_or(usize::MAX).wrapping_sub(1);
        self.files[usize::from(span.file)].lines.get(index).map_or("", String::as_str)
    }

    /// What lies behind the end of a line or of the file, as a YAML error may, is shown at that end.
    pub fn place(&self, span: Span) -> Place {
        let File { name, lines, .. } = &self.files[usize::from(span.file)];
        let last = to_u32(lines.len()).max(1);
        let (line, column) = if span.line > last { (last, u32::MAX) } else { (span.line.max(1), span.column.max(1)) };
        let text = self.line(Span { line, ..span }).to_owned();
        let end = to_u32(text.chars().count()) + 1;
        let column = column.min(end);
        Place { file: name.clone(), line, column, length: span.length.clamp(1, (end - column).max(1)), text }
    }

    /// From where a span starts to the end of the text on its line.
    pub fn rest_of_line(&self, start: Span) -> Span {
        let width = to_u32(self.line(start).trim_end().chars().count());
        Span { length: (width + 1).saturating_sub(start.column), ..start }
    }

    /// Where `part` stands inside of the value at `span`, or the whole span if it is written differently there.
    pub fn part(&self, span: Span, part: &str) -> Span {
        let line = self.line(span);
        let from = column_to_byte(line, span.column);
        match line[from..].find(part) {
            Some(offset) if !part.is_empty() => {
                let column = to_u32(line[..from + offset].chars().count()) + 1;
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

fn column_to_byte(line: &str, column: u32) -> usize {
    let skipped = usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX);
    line.char_indices().nth(skipped).map_or(line.len(), |(index, _)| index)
}
