//! Patterns that find something in every text, and so prove nothing. Knows regular expressions, and nothing of suites.

use regex_syntax::hir::{Hir, HirKind, Look};

/// Whether there is no text in which this pattern finds nothing, as `\d*`, `(order \d+)?` and `x|`: it is content with no characters at the
/// beginning or at the end of a text. `flags` are some of `imsx`. A pattern that is not valid matches nothing.
pub fn matches_every_text(pattern: &str, flags: &str) -> bool {
    // These two ask for the whole text, and take each: without a flag, the first only takes one line.
    let is_whole = match pattern {
        "^.*$" => flags.contains(['s', 'm']),
        "^[\\s\\S]*$" => true,
        _ => false,
    };
    let prefixed = if flags.is_empty() { pattern.to_owned() } else { format!("(?{flags}){pattern}") };
    is_whole || regex_syntax::parse(&prefixed).is_ok_and(|parsed| takes_nothing(&parsed, is_beginning) || takes_nothing(&parsed, is_end))
}

/// Whether it matches no characters where only these assertions hold.
fn takes_nothing(pattern: &Hir, holds: fn(Look) -> bool) -> bool {
    match pattern.kind() {
        HirKind::Empty => true,
        HirKind::Look(look) => holds(*look),
        HirKind::Literal(_) | HirKind::Class(_) => false,
        HirKind::Repetition(repetition) => repetition.min == 0 || takes_nothing(&repetition.sub, holds),
        HirKind::Capture(capture) => takes_nothing(&capture.sub, holds),
        HirKind::Concat(parts) => parts.iter().all(|part| takes_nothing(part, holds)),
        HirKind::Alternation(parts) => parts.iter().any(|part| takes_nothing(part, holds)),
    }
}

fn is_beginning(look: Look) -> bool {
    matches!(look, Look::Start | Look::StartLF | Look::StartCRLF)
}

fn is_end(look: Look) -> bool {
    matches!(look, Look::End | Look::EndLF | Look::EndCRLF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_takes_no_characters_matches_every_text() {
        let check = |pattern: &str, flags: &str, expected: bool| {
            assert_eq!(matches_every_text(pattern, flags), expected, "/{pattern}/{flags}");
        };
        for pattern in
            ["", "^", "$", ".*", "^.*", ".*$", "[\\s\\S]*", "^[\\s\\S]*$", "()", "\\d*", "(order \\d+)?", "not found|", "x{0,3}$"]
        {
            check(pattern, "", true);
        }
        for pattern in ["^$", "^\\d*$", "^.*$", "\\d+", "a*b", "^[^<]*$", "\\b", "\\B", "^(a|$)", ".+", "(", "x*|${id}"] {
            check(pattern, "", false);
        }
        check("^.*$", "s", true);
        check("^.*$", "m", true);
        check("a ? # none", "x", true);
        check("a ?", "", false);
        check("NOT FOUND|", "i", true);
    }
}
