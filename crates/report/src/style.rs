//! How text is shown: colours, characters and width. Knows no terminal: whoever does, fills this in.

use crate::escape::{self, Lines};

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

impl Style {
    /// `text` made safe for one line, in whole.
    pub(crate) fn text(&self, text: &str) -> String {
        escape::escape_also(text, Lines::One, |character| self.lacks(character))
    }

    /// `text` made safe for one line of at most `width` columns.
    pub(crate) fn line(&self, text: &str, width: usize) -> String {
        escape::cut(text, width, self.pick("…", "..."), |character| self.lacks(character))
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

    fn lacks(&self, character: char) -> bool {
        self.charset == Charset::Ascii && !character.is_ascii()
    }
}
