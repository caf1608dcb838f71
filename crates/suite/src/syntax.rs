//! Why a text is no YAML, in words that help its author. Decides from the text at the spot, not from the parser's wording.

use super::source::{Source, Span, to_u32};
use mcproof_record::Diagnostic;

/// `spot` is where the parser gave up, `bracket` the innermost open `[` or `{`.
pub(crate) fn explain(source: &Source, spot: Span, reason: &str, bracket: Option<Span>) -> Diagnostic {
    let Span { line, column, .. } = spot;
    let text = source.line(spot);
    let before: String = text.chars().take(usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX)).collect();
    let at = text.chars().nth(before.chars().count());
    let error = |message: String, span: Span| Diagnostic::error("yaml-syntax", message).at(source.place(span));

    let tab_in = |place: Span| {
        let indent = |character: &char| character.is_whitespace();
        let tab = source.line(place).chars().take_while(indent).position(|character| character == '\t')?;
        let span = Span { column: to_u32(tab) + 1, ..place };
        Some(error("a tab cannot indent YAML".into(), span).hint("use spaces"))
    };
    if let Some(tabbed) = tab_in(spot) {
        return tabbed;
    }
    if at == Some('{') && before.ends_with('$') {
        let variable: String = text.chars().skip(before.chars().count() - 1).take_while(|character| *character != '}').collect();
        let span = Span { column: column - 1, length: to_u32(variable.chars().count()) + 1, ..spot };
        return error("a variable needs quotes inside of `{ }` and `[ ]`".into(), span).hint(format!("write \"{variable}}}\""));
    }
    if let Some(bracket) = bracket.filter(|bracket| bracket.line < line || at.is_none()) {
        let character = source.line(bracket).chars().nth(usize::try_from(bracket.column - 1).unwrap_or(0)).unwrap_or('[');
        let hint = "close it, and indent the lines between the brackets more than the key before them";
        return error(format!("this `{character}` is never closed"), bracket).hint(hint);
    }
    match at {
        Some(character @ ('@' | '`' | '%')) => {
            error(format!("a text cannot start with `{character}`"), spot).hint("put the text in quotes")
        }
        Some('*') => {
            let name: String = text.chars().skip(before.chars().count() + 1).take_while(|character| character.is_alphanumeric()).collect();
            let span = Span { length: to_u32(name.chars().count()) + 1, ..spot };
            error(format!("no anchor `&{name}` stands above"), span).hint("put a text that starts with `*` in quotes")
        }
        Some('"') if let Some(character) = surrogate_pair(text) => {
            let hint = format!("write the character itself, or `\\U{:08X}`: two halves of one are JSON, and no YAML", u32::from(character));
            error("this text in `\"` quotes holds half of a character".into(), spot).hint(hint)
        }
        Some(quote @ ('"' | '\'')) => error(format!("this text in `{quote}` quotes does not end where it should"), spot)
            .hint("close the quote, and double or escape quotes inside of the text"),
        Some(_) if before.ends_with(['"', '\'']) => error("something follows a text in quotes".into(), source.rest_of_line(spot))
            .hint("double or escape quotes inside of the text, or put the other kind of quotes around it"),
        Some(':') if before.contains(": ") => error("a second `: ` in one line".into(), spot).hint("put the value in quotes"),
        Some(':') => error("this `:` starts a map where none can stand".into(), spot)
            .hint("check that the line above has `: ` after its key and the same indentation"),
        _ if before.trim().is_empty() && at.is_some() => {
            error("this line does not fit the lines above it".into(), source.rest_of_line(spot))
                .hint("lines of one list or map start in the same column; check the indentation and the `-`")
        }
        Some(character @ ('[' | '{')) if before.ends_with(|last: char| last.is_alphanumeric() || matches!(last, '_' | ']' | '}' | '.')) => {
            error(format!("a text inside of `{{ }}` or `[ ]` cannot hold `{character}`"), spot).hint("put the whole text in quotes")
        }
        // A value may go on in the next line: then the parser gives up at the end of this one.
        _ => tab_in(Span { line: line + 1, column: 1, length: 1, ..spot })
            .unwrap_or_else(|| error(format!("not valid YAML: {reason}"), spot)),
    }
}

/// The character that JSON writes as two halves.
fn surrogate_pair(line: &str) -> Option<char> {
    let unit = |text: &str| u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok();
    let pair = |(at, _): (usize, &str)| {
        let halves = [unit(&line[at..])?, unit(line.get(at + 6..)?)?];
        char::decode_utf16(halves).next()?.ok().filter(|character| u32::from(*character) > 0xFFFF)
    };
    line.match_indices("\\u").find_map(pair)
}
