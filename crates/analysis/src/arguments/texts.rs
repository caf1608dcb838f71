//! Texts that a format or a pattern accepts.

use regex_syntax::hir::{Class, Hir, HirKind};

/// What stands where any text may.
pub const WORD: &str = "mcproof";

/// Longer texts than this are not made from a pattern.
const LONGEST: usize = 4096;

/// A text of a format of JSON Schema, or of OpenAPI.
pub(super) fn of_format(format: &str) -> Option<&'static str> {
    Some(match format {
        "date-time" => "2026-01-31T12:00:00Z",
        "date" => "2026-01-31",
        "time" => "12:00:00Z",
        "duration" => "PT1H",
        "email" | "idn-email" => "mcproof@example.com",
        "hostname" | "idn-hostname" => "example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "uri" | "iri" | "url" => "https://example.com/mcproof",
        "uri-reference" | "iri-reference" => "/mcproof",
        "uri-template" => "https://example.com/{mcproof}",
        "uuid" => "3f2c9a52-7d1b-4a86-9d0e-5b8c6a1f2e47",
        "json-pointer" => "/mcproof",
        "relative-json-pointer" => "0",
        "regex" => "mcproof",
        "byte" => "bWNwcm9vZg==",
        _ => return None,
    })
}

/// A short text that matches a pattern; `None` where the pattern is not understood, as those that look around are not.
pub(super) fn matching(pattern: &str) -> Option<String> {
    let mut text = String::new();
    append(&regex_syntax::parse(pattern).ok()?, &mut text)?;
    Some(text)
}

fn append(pattern: &Hir, text: &mut String) -> Option<()> {
    match pattern.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(Class::Unicode(class)) => text.push(readable(class.ranges().iter().map(|range| (range.start(), range.end())))?),
        HirKind::Class(Class::Bytes(class)) => {
            text.push(readable(class.ranges().iter().map(|range| (char::from(range.start()), char::from(range.end()))))?);
        }
        HirKind::Repetition(repetition) => {
            for _ in 0..repetition.min {
                append(&repetition.sub, text)?;
                if text.len() > LONGEST {
                    return None;
                }
            }
        }
        HirKind::Capture(capture) => append(&capture.sub, text)?,
        HirKind::Concat(parts) => parts.iter().try_for_each(|part| append(part, text))?,
        HirKind::Alternation(options) => append(options.first()?, text)?,
    }
    Some(())
}

/// A letter or a digit if the class has one.
fn readable(ranges: impl Iterator<Item = (char, char)> + Clone) -> Option<char> {
    let has = |wanted: char| ranges.clone().any(|(first, last)| first <= wanted && wanted <= last);
    ['a', 'A', '0', '1', '_', '-', ' '].into_iter().find(|wanted| has(*wanted)).or_else(|| ranges.clone().next().map(|(first, _)| first))
}
