//! Which values are so plain that hiding them would hide words and numbers that stand everywhere. Knows no names.

/// Of fewer characters a value is no secret that only its place tells.
const SHORTEST_OPAQUE: usize = 8;
/// A longer run of letters is no word.
const LONGEST_WORD: usize = 20;
/// A longer part with letters and digits is no name, such as `v2`.
const LONGEST_MIXED: usize = 4;
/// The digits of a date without hyphens.
const LONGEST_NUMBER: usize = 8;
/// Letters of units, of time and of size.
const UNITS: &str = "smhdkgbiKMGBT%.,";

/// A number, with a unit or without: a limit, a port, a time.
pub(super) fn is_quantity(value: &str) -> bool {
    let is_number = value.len() < 12 && value.bytes().all(|byte| byte.is_ascii_digit());
    let has_unit = value.len() < 8 && value.chars().all(|symbol| symbol.is_ascii_digit() || UNITS.contains(symbol));
    value.starts_with(|first: char| first.is_ascii_digit()) && (is_number || has_unit)
}

/// A word of any length.
pub(super) fn is_word(value: &str) -> bool {
    value.chars().all(char::is_alphabetic)
}

/// A word that may stand anywhere.
pub(super) fn is_short_word(value: &str) -> bool {
    value.len() < SHORTEST_OPAQUE && value.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// A path of this machine.
pub(super) fn is_path(value: &str) -> bool {
    value.starts_with(['/', '.', '~']) || value.get(1..3) == Some(":\\")
}

/// Whether a value is long enough to be a secret, and neither a sentence, a path, nor made of words and numbers, as hosts, options and
/// ordinary addresses are.
pub(super) fn is_opaque(value: &str) -> bool {
    if value.len() < SHORTEST_OPAQUE || value.contains(char::is_whitespace) || is_path(value) {
        return false;
    }
    let parts = || value.split(|symbol: char| !symbol.is_alphanumeric()).filter(|part| !is_ordinary(part));
    // One of these is a version; several of them are the groups of a key.
    parts().count() > 1 || parts().any(|part| part.len() > LONGEST_MIXED)
}

/// A word in lower case, in capitals or with one, or a number.
fn is_ordinary(part: &str) -> bool {
    let is_number = part.len() <= LONGEST_NUMBER && part.bytes().all(|byte| byte.is_ascii_digit());
    let has_no_capital_inside = !part.chars().skip(1).any(char::is_uppercase);
    let is_word = part.len() <= LONGEST_WORD && is_word(part) && (has_no_capital_inside || !part.chars().any(char::is_lowercase));
    is_number || is_word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_numbers_paths_and_hosts_are_plain() {
        for (value, expected) in [
            ("DASHE_SECRET1", true),
            ("Pl4inV4lue99xyz", true),
            ("ghp_9f8e7d6c5b4a", true),
            ("ab12-cd34-ef56", true),
            ("qwertyuiopasdfghjklzxcvb", true),
            ("short1", false),
            ("production", false),
            ("us-east-1", false),
            ("gpt-4o-mini", false),
            ("localhost:8080", false),
            ("https://api.example.com/v1", false),
            ("https://hooks.example.com/T000/B000/x", true),
            ("2026-11-28", false),
            ("debug,hyper=info", false),
            ("a sentence with 4ab5c6d7", false),
            ("C:\\Users\\Ab12Cd34", false),
        ] {
            assert_eq!(is_opaque(value), expected, "{value}");
        }
    }
}
