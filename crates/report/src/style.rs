//! How text is shown: colors, characters and width. Knows no terminal: the caller fills this in.

use crate::escape::{self, Lines};
use anstyle::AnsiColor;
pub(crate) use mcproof_record::counted as count;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    Plain,
    Ansi,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    Unicode,
    /// Nothing but ASCII, for a locale that is not UTF-8.
    Ascii,
}

/// How text is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    pub color: Color,
    pub charset: Charset,
    /// In columns.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self { color: Color::Plain, charset: Charset::Unicode, width: 100 }
    }
}

pub(crate) const RED: anstyle::Style = AnsiColor::Red.on_default();
pub(crate) const GREEN: anstyle::Style = AnsiColor::Green.on_default();
pub(crate) const YELLOW: anstyle::Style = AnsiColor::Yellow.on_default();
pub(crate) const CYAN: anstyle::Style = AnsiColor::Cyan.on_default();
pub(crate) const BOLD: anstyle::Style = anstyle::Style::new().bold();
pub(crate) const DIM: anstyle::Style = anstyle::Style::new().dimmed();

impl Style {
    /// `text` made safe for one line, in whole.
    pub(crate) fn text(&self, text: &str) -> String {
        escape::escape_also(text, Lines::One, |character| self.lacks(character))
    }

    /// `text` made safe for one line of at most `width` columns.
    pub(crate) fn line(&self, text: &str, width: usize) -> String {
        escape::cut(text, width, self.ellipsis(), |character| self.lacks(character))
    }

    /// `text` made safe for one line of at most `width` columns. Of a longer one the middle is left out, so that it keeps its end.
    pub(crate) fn sentence(&self, text: &str, width: usize) -> String {
        let whole = self.text(text);
        if escape::columns(&whole) <= width {
            return whole;
        }
        let (end, mut used) = ((width / 3).saturating_sub(1), 0);
        let fits = |(_, character): &(usize, char)| {
            used += escape::columns(character.encode_utf8(&mut [0; 4]));
            used <= end
        };
        let start = whole.char_indices().rev().take_while(fits).last().map_or(whole.len(), |(at, _)| at);
        format!("{} {}", self.line(text, width - width / 3), &whole[start..])
    }

    /// `text` made safe for at most `rows` lines of at most `width` columns, broken between words where that is possible.
    pub(crate) fn wrap(&self, text: &str, width: usize, rows: usize) -> Vec<String> {
        let mut lines = Vec::new();
        let text = self.line(text, width.saturating_mul(rows));
        let mut rest = text.as_str();
        while escape::columns(rest) > width {
            let end = self.break_before(rest, width);
            if end == 0 {
                break;
            }
            lines.push(rest[..end].trim_end().to_owned());
            rest = rest[end..].trim_start();
        }
        if !rest.is_empty() || lines.is_empty() {
            lines.push(rest.to_owned());
        }
        if lines.len() > rows {
            lines.truncate(rows);
            if let Some(last) = lines.last_mut() {
                *last = self.line(&format!("{last} {}", self.ellipsis()), width);
            }
        }
        lines
    }

    /// A line of a source file, with all columns unchanged, so that carets point at the right characters.
    pub(crate) fn source(&self, text: &str) -> String {
        escape::substitute(text, self.pick_char('\u{fffd}', '?'), |character| self.lacks(character))
    }

    pub(crate) fn ellipsis(&self) -> &'static str {
        self.pick("…", "...")
    }

    /// The sign that this character set has.
    pub(crate) fn pick(&self, unicode: &'static str, ascii: &'static str) -> &'static str {
        match self.charset {
            Charset::Unicode => unicode,
            Charset::Ascii => ascii,
        }
    }

    pub(crate) fn paint(&self, style: anstyle::Style, text: &str) -> String {
        match self.color {
            Color::Plain => text.to_owned(),
            Color::Ansi => format!("{style}{text}{style:#}"),
        }
    }

    fn pick_char(&self, unicode: char, ascii: char) -> char {
        match self.charset {
            Charset::Unicode => unicode,
            Charset::Ascii => ascii,
        }
    }

    fn lacks(&self, character: char) -> bool {
        self.charset == Charset::Ascii && !character.is_ascii()
    }

    /// Byte offset of the last break in `text` that leaves at most `width` columns before it.
    fn break_before(&self, text: &str, width: usize) -> usize {
        let mut used = 0;
        let mut last_space = None;
        for (at, character) in text.char_indices() {
            used += escape::columns(character.encode_utf8(&mut [0; 4]));
            if used > width {
                // A word that fills most of the line is broken: a long path or number has no better place.
                return last_space.filter(|space| space * 2 > at).unwrap_or(at);
            }
            if character == ' ' {
                last_space = Some(at + 1);
            }
        }
        text.len()
    }
}
