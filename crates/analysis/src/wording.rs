//! Shortens texts of servers for use in a sentence. Does not escape control characters: the result is as untrusted as the input.

/// The first `most` characters of a text, with an ellipsis if it is longer.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The beginning of what a server sent, on one line.
pub fn excerpt(sent: impl AsRef<[u8]>) -> String {
    const MOST: usize = 60;
    let text = String::from_utf8_lossy(sent.as_ref());
    let line: String = text.trim_end().chars().map(|character| if character.is_whitespace() { ' ' } else { character }).collect();
    shortened(&line, MOST)
}

/// A few names of many, for the sentence of a finding: `a`, `b` and 7 more.
pub fn named(names: &[String]) -> String {
    const MOST: usize = 4;
    let shown: Vec<String> = names.iter().take(MOST).map(|name| format!("`{name}`")).collect();
    match (names.len() - shown.len(), shown.split_last()) {
        (0, Some((last, []))) => last.clone(),
        (0, Some((last, others))) => format!("{} and {last}", others.join(", ")),
        (more, _) => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters_with_an_ellipsis() {
        for (text, most, expected) in [("", 0, ""), ("abc", 3, "abc"), ("abcd", 3, "abc…"), ("äöü", 2, "äö…"), ("a", 0, "…")] {
            assert_eq!(shortened(text, most), expected, "{text:?} cut to {most}");
        }
    }

    #[test]
    fn an_excerpt_is_one_line() {
        for (sent, expected) in [(&b"one\r\ntwo\tthree\n"[..], "one  two three"), (b"\xff!", "\u{fffd}!"), (b"", "")] {
            assert_eq!(excerpt(sent), expected);
        }
    }
}
