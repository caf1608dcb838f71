//! Makes text that a server or a suite chose safe and honest on a terminal: what would move the cursor, change colors,
//! turn the reading direction or hide itself becomes visible as `\u{1b}`. Knows characters, not what they mean.

use std::borrow::Cow;
use std::fmt::Write as _;
use unicode_width::UnicodeWidthChar;

/// More combining marks than this on one character are a flood that paints over the lines above and below.
const MARKS_PER_CHARACTER: usize = 4;

/// For text within one line: line feeds and tabs are shown as `\n` and `\t`, so that no server can forge a line of the report.
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_with(text, Lines::One)
}

/// For a block of several lines: line feeds and tabs stay.
pub fn escape_block(text: &str) -> Cow<'_, str> {
    escape_with(text, Lines::Many)
}

/// For text within one line of at most `width` columns; the rest becomes `…`. Reads no more of the text than it shows.
pub fn escape_line(text: &str, width: usize) -> String {
    cut(text, width, "…", |_| false)
}

/// [`escape_line`] with another sign for the rest, and with further characters to escape.
pub(crate) fn cut(text: &str, width: usize, ellipsis: &str, also: impl Fn(char) -> bool) -> String {
    let room = width.saturating_sub(columns(ellipsis));
    let mut line = String::new();
    let mut used = 0;
    // Where the line ends if there turns out to be more text than `width` holds.
    let mut last_fit = 0;
    for piece in pieces(text, Lines::One, also) {
        let wide = piece.columns();
        if used + wide > width {
            line.truncate(last_fit);
            line.push_str(ellipsis);
            return line;
        }
        piece.push_to(&mut line);
        used += wide;
        if used <= room {
            last_fit = line.len();
        }
    }
    line
}

/// Escapes `text` wholly, with further characters to escape.
pub(crate) fn escape_also(text: &str, lines: Lines, also: impl Fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    pieces(text, lines, also).for_each(|piece| piece.push_to(&mut escaped));
    escaped
}

/// `text` with every unsafe character replaced by `substitute`, so that positions in it stay what they are. Tabs stay.
pub(crate) fn substitute(text: &str, substitute: char, also: impl Fn(char) -> bool) -> String {
    text.chars()
        .map(|character| if character != '\t' && (is_unsafe(character) || also(character)) { substitute } else { character })
        .collect()
}

/// Columns of escaped text on a terminal.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(|character| character.width().unwrap_or(0)).sum()
}

/// Equivalent JSON, with everything escaped that a terminal would obey or hide.
pub fn escape_json(json: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t' | b'\r');
    if json.bytes().all(is_plain) {
        return Cow::Borrowed(json);
    }
    let mut safe = String::with_capacity(json.len());
    let mut before = None;
    for character in json.chars() {
        let follows = before.replace(character);
        let is_written_so = matches!(character, '\u{fe0e}' | '\u{fe0f}') && follows.is_some_and(is_pictograph);
        // ASCII control characters are only allowed between values.
        if (character.is_ascii() && character != '\u{7f}') || is_written_so || !is_unsafe(character) {
            safe.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(safe, "\\u{unit:04x}").expect("a String takes all text");
            }
        }
    }
    Cow::Owned(safe)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    One,
    Many,
}

fn escape_with(text: &str, lines: Lines) -> Cow<'_, str> {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') || (lines == Lines::Many && matches!(byte, b'\n' | b'\t'));
    if text.bytes().all(is_plain) { Cow::Borrowed(text) } else { Cow::Owned(escape_also(text, lines, |_| false)) }
}

/// One character, as it is or made visible.
enum Piece {
    Plain(char),
    Short(&'static str),
    Code(char),
}

impl Piece {
    fn columns(&self) -> usize {
        match self {
            Self::Plain(character) => character.width().unwrap_or(0),
            Self::Short(text) => text.len(),
            Self::Code(character) => 4 + hexadecimal_digits(*character),
        }
    }

    fn push_to(&self, text: &mut String) {
        match self {
            Self::Plain(character) => text.push(*character),
            Self::Short(short) => text.push_str(short),
            Self::Code(character) => write!(text, "\\u{{{:x}}}", u32::from(*character)).expect("a String takes all text"),
        }
    }
}

fn pieces(text: &str, lines: Lines, also: impl Fn(char) -> bool) -> impl Iterator<Item = Piece> {
    let mut previous = None;
    let mut marks = 0;
    text.chars().map(move |character| {
        let before = previous.replace(character);
        marks = if character.width() == Some(0) { marks + 1 } else { 0 };
        match character {
            '\n' | '\t' if lines == Lines::Many => Piece::Plain(character),
            '\n' => Piece::Short("\\n"),
            '\t' => Piece::Short("\\t"),
            '\r' => Piece::Short("\\r"),
            '\u{fe0e}' | '\u{fe0f}' if before.is_some_and(is_pictograph) => Piece::Plain(character),
            _ if is_unsafe(character) || marks > MARKS_PER_CHARACTER || also(character) => Piece::Code(character),
            _ => Piece::Plain(character),
        }
    })
}

/// Controls, bidirectional controls, and everything that is there without being seen.
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Characters after which a variation selector is how one writes them, not a way to hide data.
fn is_pictograph(character: char) -> bool {
    matches!(character, '\u{a9}' | '\u{ae}' | '\u{203c}'..='\u{205e}' | '\u{2100}'..='\u{2bff}' | '\u{3030}' | '\u{1f000}'..='\u{1faff}')
}

fn hexadecimal_digits(character: char) -> usize {
    (u32::from(character).max(1).ilog2() / 4 + 1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, one: &str, many: &str) {
        assert_eq!(escape(text), one, "{text:?} in one line");
        assert_eq!(escape_block(text), many, "{text:?} as a block");
    }

    #[test]
    fn json_for_a_terminal_stays_json() {
        let check = |text: &str, expected: &str| {
            let json = serde_json::Value::from(text).to_string();
            let safe = escape_json(&json);
            assert_eq!(safe, expected);
            assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), text);
        };
        check("naïve 日本 ⚠\u{fe0f}", "\"naïve 日本 ⚠\u{fe0f}\"");
        check("\u{1b}[31m", r#""\u001b[31m""#);
        check("a\u{202e}b\u{9b}\u{7f}", r#""a\u202eb\u009b\u007f""#);
        check("\u{e0041}", r#""\udb40\udc41""#);
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        check("", "", "");
        check("plain ~ text", "plain ~ text", "plain ~ text");
        check("a\nb\tc", "a\\nb\\tc", "a\nb\tc");
        check("a\r\nb", "a\\r\\nb", "a\\r\nb");
        check("\u{1b}[31mred\u{1b}[0m", "\\u{1b}[31mred\\u{1b}[0m", "\\u{1b}[31mred\\u{1b}[0m");
        check("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}", "\\u{1b}]0;title\\u{7}");
        check("\0\u{8}\u{b}\u{c}\u{7f}", "\\u{0}\\u{8}\\u{b}\\u{c}\\u{7f}", "\\u{0}\\u{8}\\u{b}\\u{c}\\u{7f}");
        check("\u{80}\u{85}\u{9b}31m", "\\u{80}\\u{85}\\u{9b}31m", "\\u{80}\\u{85}\\u{9b}31m");
    }

    #[test]
    fn what_turns_the_reading_direction_is_shown() {
        for control in "\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}\u{200e}\u{200f}\u{61c}".chars() {
            let shown = format!("a\\u{{{:x}}}b", u32::from(control));
            check(&format!("a{control}b"), &shown, &shown);
        }
    }

    #[test]
    fn what_hides_itself_is_shown() {
        for hidden in "\u{ad}\u{34f}\u{180e}\u{200b}\u{200c}\u{200d}\u{2028}\u{2029}\u{2060}\u{2064}\u{206a}\u{3164}\u{fe01}\u{feff}\u{ffa0}\u{fff9}\u{e0001}\u{e0041}\u{e0100}".chars() {
            let shown = format!("a\\u{{{:x}}}b", u32::from(hidden));
            check(&format!("a{hidden}b"), &shown, &shown);
        }
    }

    #[test]
    fn what_people_write_stays() {
        for text in ["naïve Ünïcödé", "日本語", "שלום عليكم", "e\u{301}", "👍🏽", "⚠\u{fe0f} careful", "C:\\new\\table", "\u{a0}"]
        {
            check(text, text, text);
        }
    }

    #[test]
    fn a_flood_of_combining_marks_is_shown() {
        let flood = format!("z{}", "\u{300}".repeat(6));
        let shown = format!("z{}\\u{{300}}\\u{{300}}", "\u{300}".repeat(4));
        check(&flood, &shown, &shown);
    }

    fn check_line(text: &str, width: usize, expected: &str) {
        let line = escape_line(text, width);
        assert_eq!(line, expected, "{text:?} in {width} columns");
        assert!(columns(&line) <= width.max(1), "{line:?} is wider than {width}");
    }

    #[test]
    fn a_line_is_cut_to_its_width() {
        check_line("", 5, "");
        check_line("12345", 5, "12345");
        check_line("123456", 5, "1234…");
        check_line("日本語", 6, "日本語");
        check_line("日本語", 5, "日本…");
        check_line("日本語", 4, "日…");
        check_line("ab\u{1b}c", 8, "ab…");
        check_line("ab\u{1b}c", 9, "ab\\u{1b}c");
        check_line("a\nb", 4, "a\\nb");
        check_line("abc", 1, "…");
        check_line("abc", 0, "…");
        check_line(&"x".repeat(5000), 3, "xx…");
    }
}
