//! Why a text that somebody typed is not JSON, in the words that configuration files get.

use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::Value;

/// JSON as it is defined, without what editors add.
const STRICT: ParseOptions = ParseOptions {
    allow_comments: false,
    allow_trailing_commas: false,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Characters of the text that are shown from the mistake on.
const SHOWN: usize = 20;

/// What continues `not valid JSON: `: what is wrong, and where. `error` is told where only its parser finds a mistake.
pub(crate) fn json_mistake(text: &str, error: &serde_json::Error) -> String {
    if text.trim().is_empty() {
        return "the text is empty".to_owned();
    }
    let Err(found) = parse_to_serde_value::<Value>(text, &STRICT) else { return error.to_string() };
    let kind = uncapitalized(&found.kind().to_string());
    let line = if text.contains('\n') { format!(" in line {}", found.line_display()) } else { String::new() };
    let rest = text.get(found.range().start..).unwrap_or_default().lines().next().unwrap_or_default();
    let shown: String = rest.chars().take(SHOWN).collect();
    let shown = if shown.len() < rest.len() { format!("{shown}…") } else { shown };
    if shown.trim().is_empty() { format!("{kind}{line}") } else { format!("{kind}{line}, at `{}`", shown.trim()) }
}

/// For a sentence that goes on.
pub(crate) fn uncapitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_told_with_what_stands_there() {
        let check = |text: &str, expected: &str| {
            let error = serde_json::from_str::<Value>(text).expect_err(text);
            assert_eq!(json_mistake(text, &error), expected, "{text}");
        };
        check("two", "unexpected word, at `two`");
        check("{\"a\": 1 \"b\": 2}", "expected comma, at `\"b\": 2}`");
        check("{'a': 1}", "single-quoted strings are not allowed, at `'a': 1}`");
        check("{\n  \"a\": nope\n}", "unexpected word in line 2, at `nope`");
        check(" ", "the text is empty");
    }
}
